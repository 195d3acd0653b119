package main

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"golang.org/x/tools/txtar"

	"github.com/puregpu/puregpu/symbols"
)

var update = flag.Bool("update", false, "write the golden files")

// TestNextNCCL compares what refresh prints for a made-up release of NCCL with the golden text in
// testdata/nccl.txtar. The release is the newest one with the edits in that file. Constants that
// only contain the release's number must not be printed.
func TestNextNCCL(t *testing.T) {
	const golden = "testdata/nccl.txtar"
	a, err := txtar.ParseFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	var edits, want string
	for _, f := range a.Files {
		switch f.Name {
		case "edits":
			edits = string(f.Data)
		case "want":
			want = string(f.Data)
		}
	}

	lib, err := symbols.Load("nccl")
	if err != nil {
		t.Fatal(err)
	}
	root := t.TempDir()
	folder := filepath.Join(root, "symbols", "nccl")
	if err := os.CopyFS(folder, os.DirFS("../../symbols/nccl")); err != nil {
		t.Fatal(err)
	}
	headers := filepath.Join(root, "headers")
	if err := os.Mkdir(headers, 0o755); err != nil {
		t.Fatal(err)
	}
	next := symbols.Version{Major: lib.Version.Major, Minor: lib.Version.Minor + 1, Patch: 1}
	text := header(lib, next)
	for edit := range strings.SplitSeq(strings.TrimSpace(edits), "\n\n") {
		from, to, _ := strings.Cut(edit, "\n=>")
		to = strings.TrimPrefix(to, "\n")
		if strings.Count(text, from) != 1 {
			t.Fatalf("the header has %q %d times, want once", from, strings.Count(text, from))
		}
		text = strings.Replace(text, from, to, 1)
	}
	take := func(text string) (string, error) {
		if err := os.WriteFile(filepath.Join(headers, "nccl.h"), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		var out strings.Builder
		r := refresh{out: &out, folder: folder, pkg: filepath.Join(root, "nccl"), headers: []string{headers}}
		err := r.run()
		return out.String(), err
	}
	out, err := take(text)
	if !errors.Is(err, errUnsaid) {
		t.Fatalf("%v\n%s", err, out)
	}
	var got strings.Builder
	for line := range strings.Lines(filepath.ToSlash(strings.ReplaceAll(out, root+string(filepath.Separator), ""))) {
		if !strings.Contains(line, " facts are as ") && !strings.HasPrefix(line, "NOTHING IS PROVEN") { // these lines depend on the compiler
			got.WriteString(line)
		}
	}
	plain := strings.NewReplacer(lib.Version.String(), "OLD", next.String(), "NEW").Replace(got.String())
	plain = regexp.MustCompile(`overlay\.json:[0-9]+:`).ReplaceAllString(plain, "overlay.json:LINE:")
	if *update {
		a.Files = []txtar.File{{Name: "edits", Data: []byte(edits)}, {Name: "want", Data: []byte(plain)}}
		if err := os.WriteFile(golden, txtar.Format(a), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if plain != want {
		t.Errorf("refresh prints\n%s\nwant\n%s", plain, want)
	}

	next.Minor++
	if out, err := take(strings.Replace(header(lib, next), "\n", "\n#define NCCL_NEW 1\n", 1)); !errors.Is(err, errUnsaid) || !strings.Contains(out, "+ constant NCCL_NEW: 1 (int)\n") {
		t.Errorf("a release with a new constant: %v\n%s", err, out)
	} else if strings.Contains(out, "NCCL_MINOR") || strings.Contains(out, "NCCL_VERSION_CODE") {
		t.Errorf("refresh prints constants that only contain the release's number:\n%s", out)
	}
}

// header writes a release's header with the declarations of the newest release in the table.
func header(lib *symbols.Library, release symbols.Version) string {
	var b strings.Builder
	line := func(format string, args ...any) { fmt.Fprintf(&b, format+"\n", args...) }
	newest := lib.At(lib.Version)
	line("#include <cuda_runtime.h>\n#include <stddef.h>\n#include <stdint.h>\n#include <limits.h>")
	numbers := map[string]int{
		"NCCL_MAJOR": release.Major, "NCCL_MINOR": release.Minor, "NCCL_PATCH": release.Patch,
		"NCCL_VERSION_CODE": lib.Description.Version.Encode(release),
	}
	for _, c := range newest.Constants {
		n, tells := numbers[c.Name]
		switch {
		case tells:
			line("#define %s %d", c.Name, n)
		case c.Type == "string":
			line("#define %s %q", c.Name, c.Value)
		case c.Type == "pointer":
			line("#define %s ((void *)%s)", c.Name, c.Value)
		case c.Type == "uint":
			line("#define %s %su", c.Name, c.Value)
		case c.Type == "float":
			line("#define %s (%s.0f)", c.Name, c.Value)
		case c.Value == "-2147483648":
			line("#define %s INT_MIN", c.Name)
		default:
			line("#define %s %s", c.Name, c.Value)
		}
	}
	for _, h := range newest.Handles {
		if h.Name != "cudaStream_t" {
			line("typedef struct %s *%s;", h.Tag, h.Name)
		}
	}
	for _, s := range newest.Scalars {
		line("typedef %s %s;", s.Type, s.Name)
	}
	for _, e := range newest.Enums {
		line("typedef enum %s {", e.Tag)
		for _, v := range e.Values {
			line("  %s = %d,", v.Name, v.Value)
		}
		line("} %s;", e.Name)
	}
	for _, s := range newest.Structs {
		line("typedef struct %s {", s.Tag)
		for _, f := range s.Fields {
			line("  %s;", symbols.CDeclaration(f.Type, f.Name))
		}
		line("} %s;", s.Name)
	}
	for _, f := range newest.Functions {
		var params []string
		for _, p := range f.Params {
			params = append(params, symbols.CDeclaration(p.Type, p.Name))
		}
		if len(params) == 0 {
			params = []string{"void"}
		}
		line("%s(%s);", symbols.CDeclaration(f.Result, f.Symbol), strings.Join(params, ", "))
	}
	return b.String()
}
