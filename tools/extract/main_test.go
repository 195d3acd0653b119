package main

import (
	"bytes"
	"errors"
	"flag"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/tools/txtar"

	"github.com/puregpu/puregpu/symbols"
)

var update = flag.Bool("update", false, "rewrite the golden parts of testdata")

func TestUsage(t *testing.T) {
	for _, args := range [][]string{
		{}, {"cuda"}, {"opencl", "-headers", "x"}, {"diff"}, {"diff", "a"}, {"diff", "a", "b", "c"}, {"cuda", "-headers", "x", "y"}, {"-headers", "x"},
	} {
		if err := run(args, io.Discard, io.Discard); !errors.Is(err, errUsage) {
			t.Errorf("extract %q: %v, want the usage", args, err)
		}
	}
	for _, args := range [][]string{{"cuda", "-color"}, {"diff", "-headers", "x", "a", "b"}} {
		if err := run(args, io.Discard, io.Discard); !errors.Is(err, errUsage) {
			t.Errorf("extract %q: %v, want the usage", args, err)
		}
	}
}

func TestHelp(t *testing.T) {
	for _, args := range [][]string{{"-h"}, {"--help"}, {"cuda", "-h"}, {"diff", "-h"}} {
		var stdout, stderr bytes.Buffer
		err := run(args, &stdout, &stderr)
		if !errors.Is(err, flag.ErrHelp) || stdout.Len() > 0 || !strings.HasPrefix(stderr.String(), errUsage.Error()) || !strings.Contains(stderr.String(), "-rccl") {
			t.Errorf("extract %q: %v, printed %q and %q", args, err, &stdout, &stderr)
		}
	}
}

func TestMissingFilesAreNamed(t *testing.T) {
	dir := t.TempDir()
	gone := filepath.Join(dir, "gone")
	for _, tt := range []struct {
		args []string
		want string
	}{
		{[]string{"cuda", "-headers", dir}, "cudaTypedefs.h"},
		{[]string{"nccl", "-headers", dir}, "nccl.h"},
		{[]string{"hip", "-headers", dir}, "hip_runtime_api.h"},
		{[]string{"hip", "-headers", dir}, dir},
		{[]string{"cuda", "-headers", gone}, gone + ": "},
		{[]string{"nccl", "-headers", gone}, gone + ": "},
		{[]string{"hip", "-headers", dir + "," + gone}, gone + ": "},
		{[]string{"nccl", "-headers", dir, "-rccl", gone}, gone + ": "},
		{[]string{"cuda", "-headers", "main.go"}, "main.go: not a folder"},
		{[]string{"hip", "-headers", dir, "-library", filepath.Join(dir, "libgone.so")}, "libgone.so"},
		{[]string{dir, "-headers", dir}, "library.json"},
		{[]string{gone + "/", "-headers", dir}, gone},
		{[]string{"diff", filepath.Join(dir, "old.json"), filepath.Join(dir, "new.json")}, "old.json"},
	} {
		err := run(tt.args, io.Discard, io.Discard)
		if err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("extract %q: %v, want %s in it", tt.args, err, tt.want)
		}
	}
}

func TestFlagsThatDoNotFitTheLibrary(t *testing.T) {
	dir := t.TempDir()
	for _, tt := range []struct {
		args []string
		want string
	}{
		{[]string{"cuda", "-headers", dir}, "-headers: " + dir + " has no cudaTypedefs.h, which dates the functions: put a newer release first"},
		{[]string{"cuda", "-headers", dir, "-library", "x.so"}, "-library: not used for cuda: its description names no version nodes"},
		{[]string{"cuda", "-headers", dir, "-version", "13.0"}, "-version: leave it out: the headers of cuda contain their version"},
		{[]string{"nvml", "-headers", dir + "," + dir}, "the headers of nvml do not contain their version"},
		{[]string{"nvml", "-headers", dir + "," + dir, "-version", "12.4"}, "-version: 1 releases for 2 folders of headers"},
		{[]string{"nvml", "-headers", dir, "-version", "12.x"}, "-version: "},
		{[]string{"nvrtc", "-headers", dir, "-rccl", dir}, "-rccl: nvrtc has no such implementation"},
	} {
		err := run(tt.args, io.Discard, io.Discard)
		if err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("extract %q: %v, want %s in it", tt.args, err, tt.want)
		}
	}
}

func TestOutputFileHoldsTheTable(t *testing.T) {
	dir := t.TempDir()
	a, err := txtar.ParseFile("../../internal/extract/testdata/nccl.txtar")
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range a.Files {
		if f.Name == "nccl/nccl.h" {
			if err := os.WriteFile(filepath.Join(dir, "nccl.h"), f.Data, 0o644); err != nil {
				t.Fatal(err)
			}
		}
	}
	var stdout bytes.Buffer
	if err := run([]string{"nccl", "-headers", dir}, &stdout, io.Discard); err != nil {
		t.Fatal(err)
	}
	out := filepath.Join(dir, "out.json")
	if err := run([]string{"nccl", "-headers", dir, "-o", out}, io.Discard, io.Discard); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(out)
	if err != nil || !bytes.Equal(text, stdout.Bytes()) {
		t.Errorf("-o and standard output differ (%v)", err)
	}
	table, err := symbols.DecodeTable(out, text)
	if err != nil || table.Library != "nccl" || len(table.Functions) != 2 {
		t.Errorf("table is %+v, %v", table, err)
	}
}

// TestInvalidTableIsNotWritten checks that no table is written if a struct is too large for any
// table.
func TestInvalidTableIsNotWritten(t *testing.T) {
	dir := t.TempDir()
	header := "#define NCCL_MAJOR 2\n#define NCCL_MINOR 3\n#define NCCL_PATCH 5\ntypedef struct { char x[0x10000000]; } ncclLarge_t;\n"
	if err := os.WriteFile(filepath.Join(dir, "nccl.h"), []byte(header), 0o644); err != nil {
		t.Fatal(err)
	}
	out := filepath.Join(dir, "out.json")
	err := run([]string{"nccl", "-headers", dir, "-o", out}, io.Discard, io.Discard)
	if err == nil || !strings.Contains(err.Error(), "which is not written") || !strings.Contains(err.Error(), "struct ncclLarge_t") {
		t.Errorf("a struct of 256 MiB: %v", err)
	}
	if _, err := os.Stat(out); err == nil {
		t.Error("the table is written")
	}
}

func TestDiff(t *testing.T) {
	a, err := txtar.ParseFile("../../internal/extract/testdata/diff/diff.txtar")
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	want := ""
	for i, f := range a.Files {
		if f.Name == "want" {
			want, a.Files = string(f.Data), a.Files[:i]
			break
		}
		if err := os.WriteFile(filepath.Join(dir, f.Name), f.Data, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	var got bytes.Buffer
	if err := run([]string{"diff", filepath.Join(dir, "old.json"), filepath.Join(dir, "new.json")}, &got, io.Discard); err != nil {
		t.Fatal(err)
	}
	if *update {
		a.Files = append(a.Files, txtar.File{Name: "want", Data: got.Bytes()})
		if err := os.WriteFile("../../internal/extract/testdata/diff/diff.txtar", txtar.Format(a), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if got.String() != want {
		t.Errorf("diff prints\n%s\nwant\n%s", &got, want)
	}
}

// TestEmbeddedTablesAreWhatTheHeadersGive compares the embedded tables with their headers, whose
// folder an environment variable names: adding the releases again must change nothing, and no note
// may report a difference.
func TestEmbeddedTablesAreWhatTheHeadersGive(t *testing.T) {
	for _, library := range symbols.Names() {
		t.Run(library, func(t *testing.T) {
			d := describe(t, library)
			args := []string{library}
			value := func(flag, name string) {
				v := os.Getenv("PUREGPU_" + strings.ToUpper(name))
				if v == "" {
					t.Skipf("PUREGPU_%s is not set: no headers to compare the table with", strings.ToUpper(name))
				}
				args = append(args, flag, v)
			}
			value("-headers", library+"_headers")
			for _, m := range d.Implementations[1:] {
				value("-"+m.Lib, m.Lib+"_headers")
			}
			file := filepath.Join("..", "..", "symbols", library, "table.json")
			args = append(args, "-onto", file)
			want, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			var got, notes bytes.Buffer
			if err := run(args, &got, &notes); err != nil {
				t.Fatal(err)
			}
			if notes.Len() > 0 {
				t.Errorf("the headers and the table differ:\n%s", &notes)
			}
			if !bytes.Equal(got.Bytes(), want) {
				t.Errorf("the headers give another table; extract it anew, and read the difference with extract diff")
			}
		})
	}
}

// describe returns the description of an embedded library.
func describe(t *testing.T, name string) *symbols.Description {
	t.Helper()
	d, err := symbols.Describe(name)
	if err != nil {
		t.Fatal(err)
	}
	return d
}
