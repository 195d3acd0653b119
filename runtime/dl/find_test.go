package dl

import (
	"os"
	"path/filepath"
	"slices"
	"testing"
)

func TestCandidates(t *testing.T) {
	root := t.TempDir()
	for _, d := range []string{"rocm-5.7", "rocm-6.10", "rocm-6.4"} {
		dir := filepath.Join(root, d)
		if err := os.Mkdir(dir, 0o777); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, "libhip.so.6"), nil, 0o666); err != nil {
			t.Fatal(err)
		}
	}
	t.Setenv("DLTEST_ROOT", root)
	t.Setenv("DLTEST_LIBRARY", "")
	s := &Spec{
		Env:   "DLTEST_LIBRARY",
		Names: []string{"libhip.so.7", "libhip.so.6"},
		Dirs:  []string{"$DLTEST_UNSET/lib", "$DLTEST_ROOT/rocm-*", filepath.Join(root, "nowhere")},
	}
	paths := func(opt Options) (p []string) {
		for _, c := range s.candidates(&opt) {
			rel := c.path
			if r, err := filepath.Rel(root, c.path); err == nil && filepath.IsAbs(c.path) {
				rel = filepath.ToSlash(r)
			}
			if c.err != nil {
				rel += ": " + c.err.Error()
			}
			if c.loaded {
				rel += "?"
			}
			p = append(p, rel)
		}
		return p
	}
	want := []string{
		"libhip.so.7?", "libhip.so.6?", "libhip.so.7", "libhip.so.6",
		"rocm-6.10/libhip.so.6", "rocm-6.4/libhip.so.6", "rocm-5.7/libhip.so.6",
		"nowhere: no libhip.so.7 or libhip.so.6 there",
	}
	if got := paths(Options{}); !slices.Equal(got, want) {
		t.Errorf("candidates\n got %q\nwant %q", got, want)
	}
	named := filepath.Join(root, "rocm-5.7")
	t.Setenv("PUREGPU_LIBRARY_PATH", filepath.Join(root, "rocm-6.4"))
	if got := paths(Options{Dirs: []string{named}}); !slices.Equal(got, append([]string{"rocm-5.7/libhip.so.6", "rocm-6.4/libhip.so.6"}, want...)) {
		t.Errorf("candidates with named folders: %q", got)
	}
	t.Setenv("DLTEST_LIBRARY", "mine.so")
	if got := paths(Options{}); !slices.Equal(got, []string{"mine.so"}) {
		t.Errorf("candidates with the variable set: %q", got)
	}
	if got := paths(Options{Path: "yours.so"}); !slices.Equal(got, []string{"yours.so"}) {
		t.Errorf("candidates with a path: %q", got)
	}
}

func TestIsBare(t *testing.T) {
	for path, want := range map[string]bool{"libcuda.so.1": true, "./libcuda.so.1": false, "/lib/x.so": false, "lib/x.so": false, ".": false, "..": false} {
		if got := isBare(path); got != want {
			t.Errorf("isBare(%q) = %v", path, got)
		}
	}
}

// TestFolderIsNotBare checks that the candidate for a file in a named folder is a path, because the
// loader would search the system for a bare name.
func TestFolderIsNotBare(t *testing.T) {
	root := t.TempDir()
	t.Chdir(root)
	if err := os.WriteFile("libx.so", nil, 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PUREGPU_LIBRARY_PATH", string(os.PathListSeparator)+".")
	t.Setenv("DLTEST_DIRS", "."+string(os.PathListSeparator)+"./")
	s := &Spec{Names: []string{"libx.so"}, Dirs: []string{".", "$DLTEST_DIRS"}}
	folder := 0
	for _, c := range s.candidates(&Options{Dirs: []string{"", ".", "./"}}) {
		if c.source == "system loader" || c.source == "already in the process" {
			continue
		}
		if folder++; c.err != nil || !filepath.IsAbs(c.path) {
			t.Errorf("%s: %q, %v", c.source, c.path, c.err)
		}
	}
	if folder != 6 {
		t.Errorf("%d files in folders, want 6", folder)
	}
}
