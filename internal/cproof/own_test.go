package cproof

import (
	"context"
	"flag"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/puregpu/puregpu/symbols"
)

var update = flag.Bool("update", false, "record in symbols/LIBRARY/proof.json what was proven")

// proofOf returns the path of a library's proof record, and the text of the library's table.
func proofOf(t *testing.T, library string) (file string, table []byte) {
	t.Helper()
	dir := filepath.Join("..", "..", "symbols", library)
	table, err := os.ReadFile(filepath.Join(dir, "table.json"))
	if err != nil {
		t.Fatal(err)
	}
	return filepath.Join(dir, "proof.json"), table
}

// TestOwnRecords checks that each of the project's tables is the one that was proven. It logs the
// releases that were not proven.
func TestOwnRecords(t *testing.T) {
	for _, library := range symbols.Names() {
		file, table := proofOf(t, library)
		text, err := os.ReadFile(file)
		if err != nil {
			t.Errorf("%s: %v; run make headers check-headers", library, err)
			continue
		}
		r, err := Decode(text)
		if err != nil {
			t.Fatal(err)
		}
		if !r.Holds(table) {
			t.Errorf("%s: the table has changed since it was proven; run make headers check-headers", library)
		}
		lib, err := symbols.Load(library)
		if err != nil {
			t.Fatal(err)
		}
		for _, v := range lib.Releases {
			if !slices.ContainsFunc(r.Releases, func(x Release) bool { return x.Version == v }) {
				t.Logf("%s %v was not proven", library, v)
			}
		}
	}
}

// TestOwnTables proves each release in the project's tables against that release's headers.
// PUREGPU_HEADERS names a folder of headers as tools/bundle/headers.sh makes it: cuda/12.4,
// nccl/2.30.7, hip/5.2.
func TestOwnTables(t *testing.T) {
	root := os.Getenv("PUREGPU_HEADERS")
	if root == "" {
		t.Skip("PUREGPU_HEADERS does not name a folder with headers: make headers makes one")
	}
	cc, err := Find(context.Background(), os.Getenv("PUREGPU_TEST_CC"))
	if err != nil {
		t.Fatal(err)
	}
	tried := 0
	for _, library := range symbols.Names() {
		lib, err := symbols.Load(library)
		if err != nil {
			t.Fatal(err)
		}
		align := map[string]int{}
		for _, n := range lib.Overlay.Types {
			align[n.Name] = n.Align
		}
		file, table := proofOf(t, library)
		now := &Record{Table: "table.json", SHA256: Sum(table)}
		old := &Record{}
		if text, err := os.ReadFile(file); err == nil {
			if old, err = Decode(text); err != nil {
				t.Fatal(err)
			}
		}
		for _, v := range lib.Releases {
			before := slices.IndexFunc(old.Releases, func(x Release) bool { return x.Version == v })
			dir := filepath.Join(root, library, v.String())
			if _, err := os.Stat(dir); err != nil {
				t.Logf("%s %v: no headers in %s", library, v, dir)
				if before >= 0 && old.Holds(table) {
					now.Releases = append(now.Releases, old.Releases[before])
				}
				continue
			}
			tried++
			t.Run(library+" "+v.String(), func(t *testing.T) {
				r, err := Prove(context.Background(), lib.At(v), Input{Compiler: cc, Description: lib.Description, Dirs: []string{dir}, Align: align, Union: len(lib.Releases) > 1, Older: v != lib.Version})
				if err != nil {
					t.Fatal(err)
				}
				for _, f := range r.Wrong {
					t.Error(f)
				}
				if !t.Failed() {
					now.Releases = append(now.Releases, r.Release(v, cc))
				}
				t.Logf("%d facts are as %s has them; %d names are not in these headers", r.Right(), cc.Name, len(r.Absent))
			})
		}
		if *update && !t.Failed() && len(now.Releases) > 0 && !now.Same(old) {
			if err := os.WriteFile(file, now.Encode(), 0o644); err != nil {
				t.Fatal(err)
			}
		}
	}
	if tried == 0 {
		t.Fatalf("%s has the headers of no release", root)
	}
}
