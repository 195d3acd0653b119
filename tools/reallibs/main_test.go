//go:build linux && (amd64 || arm64) && !nogpu

package main

import (
	"bytes"
	"flag"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/puregpu/puregpu/internal/testlib"
	"github.com/puregpu/puregpu/symbols"
)

var update = flag.Bool("update", false, "write the tables of docs/guide/bindings.md and docs/releases.md anew")

// fake builds a library with the exports and the version of a recorded release.
func fake(t *testing.T, lib *library, r *recordedRelease) string {
	t.Helper()
	f := testlib.Fake{File: r.file, Source: "release.c", Symbols: r.exports}
	d, err := symbols.Describe(lib.pkg)
	if err != nil {
		t.Fatal(err)
	}
	v := d.Version.Decode(int(r.version))
	switch lib.pkg {
	case "cuda", "nccl":
		f.Defines = []string{fmt.Sprintf("%s=%d", strings.ToUpper(lib.pkg), r.version)}
	case "cufft", "curand", "cublas", "cublaslt", "cusparse", "cusolver", "cufile", "hipblas", "hipfft", "hiprand", "cupti":
		f.Source = "toolkit.c"
		f.Defines = []string{strings.ToUpper(lib.pkg), fmt.Sprintf("VERSION=%d", r.version), fmt.Sprintf("MAJOR=%d", v.Major), fmt.Sprintf("MINOR=%d", v.Minor), fmt.Sprintf("PATCH=%d", v.Patch)}
	case "nvrtc", "nvjitlink":
		f.Defines = []string{fmt.Sprintf("MAJOR=%d", v.Major), fmt.Sprintf("MINOR=%d", v.Minor)}
	}
	return f.Build(t)
}

// TestRecordedReleases checks that probe finds nothing wrong in fake libraries with the recorded
// exports, and that the pages have the tables made from probe's findings.
func TestRecordedReleases(t *testing.T) {
	root, err := moduleRoot()
	if err != nil {
		t.Skip(err)
	}
	var rows []row
	for i := range libraries {
		lib := &libraries[i]
		if lib.unpackaged {
			table, err := symbols.Load(lib.pkg)
			if err != nil {
				t.Fatal(err)
			}
			rows = append(rows, row{lib, "", &facts{Bound: len(table.Funcs)}})
			continue
		}
		rec, err := readRecord(filepath.Join(root, recordDir, lib.key+".txt"))
		if err != nil {
			t.Fatal(err)
		}
		for k := range rec.releases {
			r := &rec.releases[k]
			f, err := probe(lib, fake(t, lib, r))
			if err != nil {
				t.Fatalf("%s %s: %v", lib.name, r.name, err)
			}
			for _, w := range f.Wrong {
				t.Errorf("%s %s: %s", lib.name, r.name, w)
			}
			if f.Version != r.version || !slices.Equal(f.Exports, r.exports) {
				t.Errorf("%s %s: version %d and %d functions, want %d and %d", lib.name, r.name, f.Version, len(f.Exports), r.version, len(r.exports))
			}
			rows = append(rows, row{lib, r.name, f})
		}
	}
	for name, block := range map[string]string{"docs/guide/bindings.md": libraryTable(rows), "docs/releases.md": releaseTable(rows)} {
		file := filepath.Join(root, name)
		page, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		want, err := replaceBlock(page, block)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if bytes.Equal(page, want) {
			continue
		}
		if !*update {
			t.Errorf("the table of releases in %s is not what the tables of symbols and %s make of it; run go test ./tools/reallibs -update\n%s", name, recordDir, block)
		} else if err := os.WriteFile(file, want, 0o666); err != nil {
			t.Fatal(err)
		}
	}
}

// TestProbeFinds checks what probe finds in libraries that lack functions or are too old.
func TestProbeFinds(t *testing.T) {
	lib := libraryNamed("nvjitlink")
	all := []string{
		"nvJitLinkCreate", "nvJitLinkDestroy", "nvJitLinkAddData", "nvJitLinkAddFile", "nvJitLinkComplete", "nvJitLinkGetLinkedCubinSize", "nvJitLinkGetLinkedCubin",
		"nvJitLinkGetErrorLogSize", "nvJitLinkGetErrorLog", "nvJitLinkGetInfoLogSize", "nvJitLinkGetInfoLog", "nvJitLinkVersion", "nvJitLinkOfItsOwn",
	}
	for _, c := range []struct {
		name                       string
		version                    int
		exports                    []string
		exported, resolved, absent int
		tooOld                     string
	}{
		{"without PTX", 12040, all, 13, 12, 2, ""},
		{"below the floor", 12020, all, 13, 0, 0, "12.2 (FILE) is too old; the oldest version supported is 12.3"},
		{"without a required function", 12040, all[1:], 12, 0, 0, "it lacks 1 of the 12 required functions: nvJitLinkCreate (since 12.3)"},
	} {
		r := recordedRelease{version: 0, file: "libnvJitLink.so.12", exports: c.exports}
		path := testlib.Fake{File: r.file, Source: "release.c", Symbols: c.exports, Defines: []string{fmt.Sprintf("MAJOR=%d", c.version/1000), fmt.Sprintf("MINOR=%d", c.version%1000/10)}}.Build(t)
		f, err := probe(lib, path)
		if err != nil {
			t.Fatal(err)
		}
		old := strings.ReplaceAll(f.TooOld, path, "FILE")
		// The fake library also exports NVRTC's version function, which does not belong to this
		// API.
		if len(f.Exports) != c.exported || len(f.Resolved) != c.resolved || f.Absent != c.absent || len(f.Wrong) > 0 || old == "" != (c.tooOld == "") || !strings.Contains(old, c.tooOld) {
			t.Errorf("%s: %+v", c.name, *f)
		}
	}
	if _, err := probe(lib, filepath.Join(t.TempDir(), "libnvJitLink.so.12")); err == nil {
		t.Error("a file that is not there")
	}
}

// TestRecordIsWhatWasWritten checks that reading returns the records that were written.
func TestRecordIsWhatWasWritten(t *testing.T) {
	dir := t.TempDir()
	lib := libraryNamed("hip")
	find := func(name string, exports ...string) found {
		return found{release: release{library: "hip", name: name}, lib: lib, path: "/lib/libamdhip64.so." + name, facts: &facts{Version: 7, Exports: exports}}
	}
	for _, all := range [][]found{
		{find("5.7", "a", "b", "c"), find("5.10", "a", "c")},
		{find("5.2", "a", "b"), find("6.4", "a", "c", "d")},
		{find("5.7", "a", "b", "d")}, // 5.7 is recorded a second time
	} {
		if err := record(dir, all); err != nil {
			t.Fatal(err)
		}
	}
	text, err := os.ReadFile(filepath.Join(dir, "hip.txt"))
	if err != nil {
		t.Fatal(err)
	}
	want := `# The functions that Debian's builds of HIP runtime export. Written by go run ./tools/reallibs -write.
release 5.2 7 libamdhip64.so.5.2
release 5.7 7 libamdhip64.so.5.7
release 5.10 7 libamdhip64.so.5.10
release 6.4 7 libamdhip64.so.6.4
a *
b 5.2..5.7
c 5.10..6.4
d 5.7 6.4
`
	if string(text) != want {
		t.Errorf("the record is\n%swant\n%s", text, want)
	}
	if _, err := os.Stat(filepath.Join(dir, "nccl.txt")); !os.IsNotExist(err) {
		t.Error("a library that was not found has a record")
	}
	for _, line := range []string{"a", "release 1 2", "release 1 x f", "a 9.9", "a 6.4..5.2"} {
		if err := os.WriteFile(filepath.Join(dir, "bad.txt"), []byte(want+line+"\n"), 0o666); err != nil {
			t.Fatal(err)
		}
		if _, err := readRecord(filepath.Join(dir, "bad.txt")); err == nil {
			t.Errorf("%q is taken for a line of a record", line)
		}
	}
}

// TestUnits checks that the libraries and the tested packages of units exist, and that each
// recorded release is in one unit.
func TestUnits(t *testing.T) {
	root, err := moduleRoot()
	if err != nil {
		t.Skip(err)
	}
	names := map[string]bool{}
	for _, u := range units {
		for _, r := range u.releases {
			if libraryNamed(r.library) == nil || names[r.library+" "+r.name] {
				t.Errorf("%s: library %s does not exist, or has release %s in two units", u.name, r.library, r.name)
			}
			names[r.library+" "+r.name] = true
		}
		for _, test := range u.tests {
			if _, err := fs.Stat(os.DirFS(root), test.pkg); err != nil {
				t.Errorf("%s: %v", u.name, err)
			}
		}
	}
	for _, lib := range libraries {
		if lib.unpackaged {
			continue
		}
		rec, err := readRecord(filepath.Join(root, recordDir, lib.key+".txt"))
		if err != nil {
			t.Fatal(err)
		}
		for _, r := range rec.releases {
			if !names[lib.key+" "+r.name] {
				t.Errorf("%s %s is recorded, and no unit has it", lib.name, r.name)
			}
		}
	}
}
