package folders

import (
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
)

func TestCompareNatural(t *testing.T) {
	sorted := []string{"a", "a-2", "a-10", "a-10.2", "a-10.10", "b"}
	for i, a := range sorted {
		for j, b := range sorted {
			if got := compareNatural(a, b); (got < 0) != (i < j) || (got > 0) != (i > j) {
				t.Errorf("compareNatural(%q, %q) = %d", a, b, got)
			}
		}
	}
	if compareNatural("a-02", "a-2") != 0 {
		t.Error("leading zeros count")
	}
}

func TestExpand(t *testing.T) {
	list := "/a" + string(os.PathListSeparator) + string(os.PathListSeparator) + "/b"
	t.Setenv("PUREGPU_TEST_LIST", list)
	t.Setenv("PUREGPU_TEST_EMPTY", "")
	for pattern, want := range map[string][]string{
		"/plain":                   {"/plain"},
		"$PUREGPU_TEST_LIST":       {"/a", "/b"},
		"$PUREGPU_TEST_EMPTY":      nil,
		"$PUREGPU_TEST_EMPTY/lib":  nil,
		"$PUREGPU_TEST_LIST/lib":   {list + "/lib"},
		"/x/$PUREGPU_TEST_EMPTY/y": nil,
	} {
		if got := Expand(pattern); !slices.Equal(got, want) {
			t.Errorf("%s: %q, want %q", pattern, got, want)
		}
	}
	if got := Expand("/usr/lib/$multiarch"); runtime.GOARCH == "amd64" && !slices.Equal(got, []string{"/usr/lib/x86_64-linux-gnu"}) {
		t.Errorf("$multiarch: %q", got)
	}
}

func TestMatch(t *testing.T) {
	root := t.TempDir()
	for _, d := range []string{"cuda-9.2", "cuda-12.10", "cuda-12.4"} {
		if err := os.Mkdir(filepath.Join(root, d), 0o777); err != nil {
			t.Fatal(err)
		}
	}
	var got []string
	for _, d := range Match(filepath.Join(root, "cuda-*")) {
		got = append(got, filepath.Base(d))
	}
	if want := []string{"cuda-12.10", "cuda-12.4", "cuda-9.2"}; !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
	if got := Match("/no such/folder"); !slices.Equal(got, []string{"/no such/folder"}) {
		t.Errorf("a plain folder: %q", got)
	}
}

// TestQuoted checks that folders with pattern characters in their names are found, whether a user
// or a variable names them.
func TestQuoted(t *testing.T) {
	root := t.TempDir()
	names := []string{"env[1]", "env1"}
	if runtime.GOOS != "windows" {
		names = append(names, `a*?[\b]`, `a\b`)
	}
	for _, name := range names {
		dir := filepath.Join(root, name)
		if err := os.MkdirAll(filepath.Join(dir, "lib"), 0o700); err != nil {
			t.Fatal(err)
		}
		t.Setenv("PUREGPU_TEST_DIR", dir)
		for _, pattern := range []string{"$PUREGPU_TEST_DIR", "$PUREGPU_TEST_DIR/lib", "$PUREGPU_TEST_DIR/l*b"} {
			want := filepath.Clean(dir + strings.ReplaceAll(strings.TrimPrefix(pattern, "$PUREGPU_TEST_DIR"), "*", "i"))
			expanded := Expand(pattern)
			if len(expanded) != 1 {
				t.Fatalf("%s: %q", pattern, expanded)
			}
			if got := Match(expanded[0]); !slices.Equal(got, []string{want}) {
				t.Errorf("%s of %s: %q, want %q", pattern, dir, got, want)
			}
		}
		if got := Match(Named(dir)); !slices.Equal(got, []string{dir}) {
			t.Errorf("%s: %q", dir, got)
		}
		if got := Unquote(Quote(dir)); got != dir {
			t.Errorf("unquoted: %q, want %q", got, dir)
		}
	}
	if got := Match(Named(filepath.Join(root, "env[12]"))); !slices.Equal(got, []string{filepath.Join(root, "env1")}) {
		t.Errorf("a pattern: %q", got)
	}
}
