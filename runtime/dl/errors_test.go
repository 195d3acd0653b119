package dl

import (
	"errors"
	"path/filepath"
	"strings"
	"testing"
)

// TestOpenErrorText checks that the first line of an OpenError says what failed and what to do, and
// that candidates in a row with the same source and result share a line.
func TestOpenErrorText(t *testing.T) {
	local := filepath.FromSlash // the separators are the system's
	absent := func(path, source string) Attempt {
		return Attempt{Path: local(path), Source: local(source), Err: &loadError{kind: ErrNotFound, plain: "no such file"}}
	}
	stub := func(path, source string) Attempt {
		return Attempt{Path: local(path), Source: local(source), Err: &loadError{kind: ErrStub, plain: "a stub"}}
	}
	for _, test := range []struct {
		name     string
		attempts []Attempt
		want     string
	}{
		{"nothing to try", nil, "fix: fixture not found; install it"},
		{"one", []Attempt{absent("/x/a.so", "Options.Path")}, "fix: fixture not found: /x/a.so (Options.Path): no such file; install it"},
		{
			"absent",
			[]Attempt{
				absent("a.so.2", "system loader"), absent("a.so", "system loader"),
				absent("/x", "directory /x"), absent("/y", "directory /y"), absent("/z", "directory $Z"),
			},
			"fix: fixture not found; install it\n\ta.so.2, a.so (system loader): no such file\n\t/x, /y: no such file\n\t/z (directory $Z): no such file",
		},
		{
			"one refused",
			[]Attempt{absent("a.so.2", "system loader"), stub("/x/a.so", "directory /x"), absent("/y", "directory /y")},
			"fix: fixture found, but it cannot be loaded: /x/a.so: a stub; install it\n\ta.so.2 (system loader): no such file\n\t/y: no such file",
		},
		{
			"two refused",
			[]Attempt{absent("a.so.2", "system loader"), stub("/x/a.so", "directory /x"), stub("/y/a.so", "directory /y")},
			"fix: fixture found, but it cannot be loaded; install it\n\ta.so.2 (system loader): no such file\n\t/x/a.so, /y/a.so: a stub",
		},
	} {
		err := &OpenError{Package: "fix", Name: "fixture", Attempts: test.attempts, Hint: "install it"}
		if got, want := err.Error(), local(test.want); got != want {
			t.Errorf("%s: got\n%s\nwant\n%s", test.name, got, want)
		}
		if n := len(test.attempts); n != len(err.Attempts) {
			t.Errorf("%s: the text took attempts away", test.name)
		}
		refused := strings.Contains(test.want, "a stub")
		if errors.Is(err, ErrNotLoadable) != refused || errors.Is(err, ErrStub) != refused || errors.Is(err, ErrNotFound) == refused {
			t.Errorf("%s: the error is of the wrong kind", test.name)
		}
	}
}

// TestNotOpenText checks that the error of a library that is not open names no package if the
// import path does not end with the package's name.
func TestNotOpenText(t *testing.T) {
	for function, want := range map[string]string{
		"github.com/puregpu/puregpu/cuda.(*Library).Init": "cuda: Init: library is not open: call cuda.Open",
		"vec.(*Library).Add":                              "vec: Add: library is not open: call vec.Open",
		"example.com/vec3.(*Library).Add":                 "vec3: Add: library is not open: call vec3.Open",
		"example.com/go-vec.(*Library).Add":               "Add: library is not open: call Open",
		"example.com/vec/v2.(*Library).Add":               "Add: library is not open: call Open",
		"example.com/vec%2ev2.(*Library).Add":             "Add: library is not open: call Open", // vec.v2
		"example.com/3d.(*Library).Add":                   "Add: library is not open: call Open",
		"example.com/vec.(*Library).Add.func1":            "library is not open",
		"github.com/puregpu/puregpu/runtime/dl.add":       "library is not open",
	} {
		if got := notOpenText(function); got != want {
			t.Errorf("%s: %q, want %q", function, got, want)
		}
	}
}
