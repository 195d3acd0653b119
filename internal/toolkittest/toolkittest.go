// Package toolkittest tests how the packages of CUDA's libraries open their library: all must
// behave the same. The tests of toolkittest itself call the libraries on a GPU.
package toolkittest

import (
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/puregpu/puregpu/internal/testlib"
	"github.com/puregpu/puregpu/runtime/dl"
	"github.com/puregpu/puregpu/symbols"
)

// An Opened is an open library of any package.
type Opened interface {
	Version() dl.Version
	Missing() []dl.MissingSymbol
	HasSymbol(cname string) bool
}

// A Case is a package and a release of its library that lacks a function.
type Case struct {
	Library string // "cufft"
	File    string // name of the library's file
	Release string // release that the library reports: "11.2.1"
	Open    func(dl.Options) (Opened, error)
	Format  func(dl.Version) string
	Source  string // C file in testdata/fakes; toolkit.c if ""
	Defines []string

	Needs   string             // a required function that Source does not define
	Lacks   string             // optional function that the library lacks
	Without bool               // the release has the function Lacks, but the test's library does not
	Call    func(Opened) error // calls the missing function
}

// Build makes a fake library of the release. The library has the functions that the table lists for
// the release, without the functions named in without.
func (c *Case) Build(t testing.TB, without ...string) string {
	t.Helper()
	lib, err := symbols.Load(c.Library)
	if err != nil {
		t.Fatal(err)
	}
	release, err := symbols.ParseVersion(c.Release)
	if err != nil {
		t.Fatal(err)
	}
	source := c.Source
	if source == "" {
		source = "toolkit.c"
	}
	f := testlib.Fake{File: c.File, Source: source, Defines: append([]string{
		fmt.Sprintf("VERSION=%d", lib.Description.Version.Encode(release)),
		fmt.Sprintf("MAJOR=%d", release.Major), fmt.Sprintf("MINOR=%d", release.Minor), fmt.Sprintf("PATCH=%d", release.Patch),
		strings.ToUpper(c.Library),
	}, c.Defines...)}
	for _, fn := range lib.Funcs {
		there := fn.Since.Compare(release) <= 0 && (fn.Until.IsZero() || fn.Until.Compare(release) >= 0)
		if there && !slices.Contains(without, fn.Symbol) {
			f.Symbols = append(f.Symbols, fn.Symbol)
		}
	}
	return f.Build(t)
}

// Run tests that a library opens and reports its version. It also checks the errors for a library
// that is absent, too old or lacks a function.
func Run(t *testing.T, c Case) {
	lib, err := symbols.Load(c.Library)
	if err != nil {
		t.Fatal(err)
	}
	release, err := symbols.ParseVersion(c.Release)
	if err != nil {
		t.Fatal(err)
	}
	m := &lib.Description.Implementations[0]
	t.Run("absent", func(t *testing.T) {
		path := filepath.Join(t.TempDir(), c.File)
		for _, opt := range []dl.Options{{Path: path}, {}} {
			t.Setenv(m.Env, path)
			l, err := c.Open(opt)
			if err == nil || !errors.Is(err, dl.ErrNotFound) {
				t.Fatalf("opening a missing file: %v, %v", l, err)
			}
			wants := []string{m.Name, path, m.Env, m.Hint}
			if opt.Path != "" {
				wants = []string{m.Name, path, ", or correct Options.Path"}
			}
			for _, want := range wants {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("the error does not have %q: %v", want, err)
				}
			}
		}
	})
	t.Run("too old", func(t *testing.T) {
		_, err := c.Open(dl.Options{Path: c.Build(t, c.Needs)})
		if !errors.Is(err, dl.ErrTooOld) || !strings.Contains(err.Error(), c.Needs) {
			t.Errorf("opening a library without %s, which is required: %v", c.Needs, err)
		}
	})
	t.Run("release", func(t *testing.T) {
		var without []string
		if c.Without {
			without = []string{c.Lacks}
		}
		l, err := c.Open(dl.Options{Path: c.Build(t, without...)})
		if err != nil {
			t.Fatal(err)
		}
		if want := dl.Version(lib.Description.Version.Encode(release)); l.Version() != want {
			t.Errorf("version %d, want %d", l.Version(), want)
		}
		if l.HasSymbol(c.Lacks) {
			t.Fatalf("the library has %s", c.Lacks)
		}
		fn := lib.Lookup(c.Lacks)[0]
		err = c.Call(l)
		e, ok := errors.AsType[*dl.SymbolError](err)
		if !ok || !errors.Is(err, dl.ErrSymbol) || e.Symbol != c.Lacks {
			t.Fatalf("calling %s, which is missing: %v", c.Lacks, err)
		}
		for _, want := range []string{c.Lacks, "set " + lib.Sets[fn.Set].Name, "since " + fn.Since.String(), "found " + m.Name + " " + c.Format(l.Version())} {
			if !strings.Contains(err.Error(), want) {
				t.Errorf("the error does not have %q: %v", want, err)
			}
		}
		for _, s := range l.Missing() {
			if s.Name != c.Lacks && s.Why == "undefined symbol" && s.Since <= l.Version() && lib.Lookup(s.Name)[0].Until.IsZero() {
				t.Errorf("%s is missing, since %s", s.Name, c.Format(s.Since))
			}
		}
	})
}

// Real opens this machine's library and returns it. It skips the test if the machine has no such
// library, or if the platform is not supported. The library must have every function that the table
// lists for the library's release, except functions that a newer release lacks.
func Real(t *testing.T, library string, open func(dl.Options) (Opened, error), format func(dl.Version) string) Opened {
	t.Helper()
	lib, err := symbols.Load(library)
	if err != nil {
		t.Fatal(err)
	}
	l, err := open(dl.Options{})
	if errors.Is(err, dl.ErrNotFound) || errors.Is(err, dl.ErrUnsupported) {
		t.Skip(err)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("%s %s", lib.Description.Brand, format(l.Version()))
	for _, s := range l.Missing() {
		fn := lib.Lookup(s.Name)[0]
		there := fn.Since.Compare(lib.Description.Version.Decode(int(l.Version()))) <= 0 && fn.Until.IsZero()
		if there && s.Why == "undefined symbol" {
			t.Errorf("%s lacks %s, since %s", format(l.Version()), s.Name, fn.Since)
		}
	}
	return l
}
