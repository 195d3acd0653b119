package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"golang.org/x/tools/txtar"

	"github.com/puregpu/puregpu/symbols"
)

var update = flag.Bool("update", false, "rewrite testdata/golden.txtar")

// small is a browser of one made-up library that has a little of everything.
func small(t *testing.T) *browser {
	t.Helper()
	read := func(name string) []byte {
		b, err := os.ReadFile(filepath.Join("testdata", name))
		if err != nil {
			t.Fatal(err)
		}
		return b
	}
	l, err := symbols.Decode("table.json", read("table.json"), "overlay.json", read("overlay.json"))
	if err != nil {
		t.Fatal(err)
	}
	return &browser{libs: []*symbols.Library{l}, goName: func(_, symbol string) (string, string, error) {
		return strings.ToUpper(symbol[1:2]) + symbol[2:], "func (l *Library)\n\t" + symbol[1:] + "() error", nil
	}}
}

func TestOutput(t *testing.T) {
	b := small(t)
	got := &txtar.Archive{Comment: []byte("What the program prints for each name in the library of table.json.\n")}
	for _, name := range []string{
		"xInit", "xMake", "xMake_v2_ptsz", "xRead", "xPrint", "xStream", "xOpaque", "xPtr", "xStreamOld", "xResult", "xResult_enum",
		"xBusy", "xFloat", "xLoose", "xPoint", "xPoint.anon1", "xFn", "X_VERSION", "X_NAME",
	} {
		var out bytes.Buffer
		if err := b.names(&out, false, []string{name}); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		got.Files = append(got.Files, txtar.File{Name: name, Data: out.Bytes()})
	}
	var sets, asJSON bytes.Buffer
	if err := output(&sets, false, b.sets(), writeSets); err != nil {
		t.Error(err)
	}
	if err := b.names(&asJSON, true, []string{"xMake_v2", "xBusy"}); err != nil {
		t.Error(err)
	}
	got.Files = append(got.Files, txtar.File{Name: "-sets", Data: sets.Bytes()}, txtar.File{Name: "-json xMake_v2 xBusy", Data: asJSON.Bytes()})
	name := filepath.Join("testdata", "golden.txtar")
	if *update {
		if err := os.WriteFile(name, txtar.Format(got), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := txtar.ParseFile(name)
	if err != nil {
		t.Fatal(err)
	}
	if len(want.Files) != len(got.Files) {
		t.Fatalf("%d golden parts, want %d; run with -update and read the difference", len(want.Files), len(got.Files))
	}
	for i, f := range got.Files {
		if w := want.Files[i]; f.Name != w.Name || !bytes.Equal(f.Data, w.Data) {
			t.Errorf("%s prints\n%s\nwant for %s\n%s", f.Name, f.Data, w.Name, w.Data)
		}
	}
}

func TestUnknownNameSuggestsNearOnes(t *testing.T) {
	b := small(t)
	for _, tt := range []struct{ name, want string }{
		{"xMakes", "x has no xMakes; did you mean xMake?"},
		{"XINIT", "x has no XINIT; did you mean xInit?"},
		{"xResult_enun", "x has no xResult_enun; did you mean xResult_enum?"},
		{"somethingElseEntirely", "x has no somethingElseEntirely"},
		{"cudaMalloc", "x has no cudaMalloc, which is in CUDA's runtime API: docs/guide/bindings.md lists what package cuda has in its place"},
		{"", "x has no "},
	} {
		var out bytes.Buffer
		err := b.names(&out, false, []string{tt.name})
		if err == nil || err.Error() != tt.want || out.Len() > 0 {
			t.Errorf("%q prints %q and gives %q, want %q", tt.name, &out, err, tt.want)
		}
	}
	b.libs = append(b.libs, b.libs[0])
	if got := b.unknown("xMakee").Error(); !strings.HasPrefix(got, "no library has xMakee; did you mean xMake") {
		t.Errorf("with two libraries the error is %q", got)
	}
}

func TestKnownNamesArePrintedBeforeTheErrorForUnknownOnes(t *testing.T) {
	var out bytes.Buffer
	err := small(t).names(&out, false, []string{"xGone1234", "xLoose"})
	if err == nil || !strings.HasPrefix(out.String(), "xLoose (x enumerator)") {
		t.Errorf("prints %q and gives %v", &out, err)
	}
}

func TestAtMostFiveSuggestions(t *testing.T) {
	cuda, err := symbols.Load("cuda")
	if err != nil {
		t.Fatal(err)
	}
	b := &browser{libs: []*symbols.Library{cuda}}
	near := b.near("cuMemcpyDtoHAsink")
	if len(near) != 5 || !slices.Contains(near, "cuMemcpyDtoHAsync") {
		t.Errorf("near cuMemcpyDtoHAsink are %q", near)
	}
}

func TestDistance(t *testing.T) {
	for _, tt := range []struct {
		a, b string
		want int
	}{
		{"", "", 0}, {"a", "", 1}, {"", "ab", 2}, {"kitten", "sitting", 3}, {"abc", "abc", 0}, {"abc", "acb", 2}, {"abcdefgh", "x", 4}, {"aaaaaaaa", "bbbbbbbb", 4},
	} {
		if got := distance(tt.a, tt.b, 3); got != tt.want { // 4 means beyond the limit of 3
			t.Errorf("distance(%q, %q) = %d, want %d", tt.a, tt.b, got, tt.want)
		}
	}
}

func TestUsage(t *testing.T) {
	for _, args := range [][]string{{}, {"-json"}, {"-sets", "cuInit"}, {"-lib", "cuda"}} {
		if err := run(args, io.Discard, io.Discard); !errors.Is(err, errUsage) {
			t.Errorf("symbols %q: %v, want the usage", args, err)
		}
	}
	if err := run([]string{"-lib", "opencl", "x"}, io.Discard, io.Discard); err == nil || !strings.Contains(err.Error(), "there are") {
		t.Errorf("an unknown library gives %v", err)
	}
	if err := run([]string{"-color"}, io.Discard, io.Discard); !errors.Is(err, errUsage) {
		t.Errorf("an unknown flag gives %v, want the usage", err)
	}
	var help bytes.Buffer
	if err := run([]string{"-h"}, io.Discard, &help); !errors.Is(err, flag.ErrHelp) || !strings.Contains(help.String(), "-sets") {
		t.Errorf("-h gives %v and prints %q", err, &help)
	}
}

func TestEmbeddedLibrariesAreSearched(t *testing.T) {
	var out bytes.Buffer
	if err := run([]string{"-json", "cuCtxCreate", "hipInit", "ncclSend"}, &out, io.Discard); err != nil {
		t.Fatal(err)
	}
	var got []record
	if err := json.Unmarshal(out.Bytes(), &got); err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, r := range got {
		names = append(names, r.Library+" "+r.Name)
		if r.Function == nil || r.Function.Declaration == "" || !strings.Contains(r.Function.Declaration, r.Function.Go+"(") || r.Function.Set == nil {
			t.Errorf("%s: no Go method or no set: %+v", r.Name, r.Function)
		}
	}
	want := []string{"cuda cuCtxCreate", "cuda cuCtxCreate_v2", "cuda cuCtxCreate_v3", "cuda cuCtxCreate_v4", "hip hipInit", "nccl ncclSend"}
	if !slices.Equal(names, want) {
		t.Errorf("found %q, want %q", names, want)
	}
	if err := run([]string{"-lib", "nccl", "cuInit"}, io.Discard, io.Discard); err == nil {
		t.Error("-lib nccl finds cuInit")
	}
	out.Reset()
	if err := run([]string{"-sets"}, &out, io.Discard); err != nil {
		t.Fatal(err)
	}
	var cores []string
	for line := range strings.Lines(out.String()) {
		if f := strings.Fields(line); f[1] == "core" {
			cores = append(cores, f[0])
		}
	}
	if !slices.Equal(cores, symbols.Names()) {
		t.Errorf("-sets lists a core for %q, want %q", cores, symbols.Names())
	}
}
