package cproof

import (
	"context"
	"os"
	"path/filepath"
	"testing"

	"github.com/puregpu/puregpu/symbols"
)

// TestOwnTables proves what the project's own tables say of each release against that release's headers. PUREGPU_HEADERS names a folder with a folder for each
// library and in that one for each release, as tools/bundle/headers.sh makes it: cuda/12.4, nccl/2.30.7, hip/5.2.
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
		for _, v := range lib.Releases {
			dir := filepath.Join(root, library, v.String())
			if _, err := os.Stat(dir); err != nil {
				t.Logf("%s %v: no headers in %s", library, v, dir)
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
				t.Logf("%d facts are as %s has them; %d names are not in these headers", r.Right(), cc.Name, len(r.Absent))
			})
		}
	}
	if tried == 0 {
		t.Fatalf("%s has the headers of no release", root)
	}
}
