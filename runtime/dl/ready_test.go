//go:build linux && (amd64 || (arm64 && (!puregpu_static || cgo))) && !nogpu

package dl

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// places makes n folders, each with a copy of the fixture. To the loader the copies are different
// libraries. The result change makes a spec search the folders.
func places(t *testing.T, n int, ready func(path string) error) (dirs []string, change func(*Spec)) {
	t.Helper()
	name := filepath.Base(fixture(t))
	for range n {
		dirs = append(dirs, filepath.Dir(copyOf(t, fixture(t))))
	}
	return dirs, func(s *Spec) {
		s.Names, s.Dirs = []string{name}, dirs
		s.Ready = func(l *Library) error {
			if !l.HasSymbol("out2") || l.Addr(fAbsent) != 0 || l.Version() != 12050 {
				t.Error("Ready is asked before the functions are found")
			}
			return ready(l.Path())
		}
	}
}

// answers returns an argument for the function places: a function that returns errs[i] for a
// library in folder i.
func answers(dirs *[]string, errs ...error) func(string) error {
	return func(path string) error {
		for i, d := range *dirs {
			if filepath.Dir(path) == d {
				return errs[i]
			}
		}
		return fmt.Errorf("%s is in no folder", path)
	}
}

var errBroken = errors.New("error 999")

// TestReady checks which library Open takes for the errors that Ready returns. A library whose
// devices are hidden counts as ready. If no library is ready, Open takes the first whose error is
// not ErrNoDevice. If all errors are ErrNoDevice, Open takes the first library.
func TestReady(t *testing.T) {
	none := fmt.Errorf("%w (error 100)", ErrNoDevice)
	for _, c := range []struct {
		name  string
		errs  []error
		taken int
		asked int // number of tried libraries
	}{
		{"the first", []error{nil, nil, nil}, 0, 1},
		{"the second", []error{none, nil, nil}, 1, 2},
		{"the last", []error{none, errBroken, nil}, 2, 3},
		{"behind a stub", []error{fmt.Errorf("error 34: %w", ErrStub), none, nil}, 2, 3},
		{"the second, whose devices are hidden", []error{errBroken, fmt.Errorf("%w (error 100)", ErrHidden), nil}, 1, 2},
		{"none ready: an error other than no device", []error{none, errBroken, none}, 1, 3},
		{"none: the first", []error{none, none, none}, 0, 3},
		{"none ready: the first failed one", []error{errBroken, none, errors.New("error 803")}, 0, 3},
	} {
		t.Run(c.name, func(t *testing.T) {
			var dirs []string
			dirs, change := places(t, 3, answers(&dirs, c.errs...))
			l, err := open(t, Options{}, change)
			if err != nil {
				t.Fatal(err)
			}
			if got := filepath.Dir(l.Path()); got != dirs[c.taken] {
				t.Errorf("took %s of %v", got, dirs)
			}
			if r, err := l.Slow(fResolved, 1); r != 1001 || err != nil {
				t.Errorf("resolved = %d, %v", r, err)
			}
			as := l.Attempts()
			as = as[len(as)-c.asked:] // skip the attempt of the system loader, which comes first
			for i, a := range as {
				if a.File != filepath.Join(dirs[i], filepath.Base(fixture(t))) || a.Source != "directory "+dirs[i] || (a.Err == nil) != (c.errs[i] == nil) ||
					c.errs[i] != nil && !errors.Is(c.errs[i], ErrStub) && (a.Err != c.errs[i] || a.Version != 12050) {
					t.Errorf("attempt %d: %+v", i, a)
				}
			}
			if want := c.errs[c.taken]; want != nil && !strings.Contains(l.Explain(), "\nnot ready: "+want.Error()+"\n") {
				t.Errorf("Explain:\n%s", l.Explain())
			}
			if c.taken < c.asked-1 && !strings.Contains(l.Explain(), "\ntried after it:\n\t"+dirs[c.taken+1]) {
				t.Errorf("Explain:\n%s", l.Explain())
			}
		})
	}
	if got := new(Library).Attempts(); got != nil {
		t.Errorf("attempts of a library that is not open: %v", got)
	}
}

// TestReadyNamed checks that Open takes a named file without calling Ready, and that it tries a
// file with two names only once.
func TestReadyNamed(t *testing.T) {
	var dirs []string
	dirs, change := places(t, 2, func(string) error { return errBroken })
	file := filepath.Join(dirs[1], filepath.Base(fixture(t)))
	l, err := open(t, Options{Path: file}, func(s *Spec) {
		change(s)
		s.Ready = func(*Library) error { t.Error("asked"); return nil }
	})
	if err != nil || l.Path() != file || len(l.Attempts()) != 1 {
		t.Errorf("%v, %s, %v", err, l.Path(), l.Attempts())
	}
	t.Setenv("PUREGPU_TEST_LIBRARY", file)
	if l, err = open(t, Options{Dirs: dirs[:1]}, change); err != nil || l.Path() != file || len(l.Attempts()) != 1 {
		t.Errorf("%v, %s, %v", err, l.Path(), l.Attempts())
	}
	t.Setenv("PUREGPU_TEST_LIBRARY", "")

	alias := t.TempDir()
	if err := os.Symlink(file, filepath.Join(alias, filepath.Base(file))); err != nil {
		t.Fatal(err)
	}
	asked := 0
	_, err = open(t, Options{}, func(s *Spec) {
		change(s)
		s.Dirs = []string{dirs[1], alias, dirs[1]}
		s.Ready = func(*Library) error { asked++; return errBroken }
	})
	if err != nil || asked != 1 {
		t.Errorf("%v, asked %d times", err, asked)
	}
}

// TestReadyByVersion checks that a library that reports no version counts as not ready if the Spec
// has no Ready.
func TestReadyByVersion(t *testing.T) {
	dirs, change := places(t, 2, nil)
	l, err := open(t, Options{}, func(s *Spec) {
		change(s)
		version := s.Version
		s.Ready, s.Version = nil, func(l *Library) (Version, error) {
			if filepath.Dir(l.Path()) == dirs[0] {
				return 0, errBroken
			}
			return version(l)
		}
	})
	if err != nil || filepath.Dir(l.Path()) != dirs[1] {
		t.Errorf("%v, %s of %v", err, l.Path(), dirs)
	}
}

// TestTooOldAmongOthers checks that Open skips a library that is too old. If all are too old, the
// error must list all.
func TestTooOldAmongOthers(t *testing.T) {
	var dirs []string
	old := func(s *Spec) { // the library in the last folder has version 13.1, and the others have 12.5
		version := s.Version
		s.Floor, s.Version = 13000, func(l *Library) (Version, error) {
			if filepath.Dir(l.Path()) == dirs[len(dirs)-1] {
				return 13010, nil
			}
			return version(l)
		}
		s.Ready = nil
	}
	dirs, change := places(t, 3, nil)
	l, err := open(t, Options{}, func(s *Spec) { change(s); old(s) })
	if err != nil || filepath.Dir(l.Path()) != dirs[2] {
		t.Errorf("%v, %s of %v", err, l.Path(), dirs)
	}
	dirs = append(dirs, "/nowhere")
	_, err = open(t, Options{}, func(s *Spec) { change(s); old(s) })
	distinct(t, err, ErrTooOld)
	name := filepath.Base(fixture(t))
	wantText(t, err.Error(), "", fmt.Sprintf("fix: fixture 12.5 (%s/%s) is too old; the oldest version supported is 13.0; install the fixture\n"+
		"\t%[3]s/%[2]s: too old: version 12.5\n\t%[4]s/%[2]s: too old: version 12.5", dirs[0], name, dirs[1], dirs[2]))
}

// TestUnfitAmongOthers checks that the list of other files does not call a file too old that Open
// refused only because of functions that must not be called.
func TestUnfitAmongOthers(t *testing.T) {
	dirs, change := places(t, 2, nil)
	_, err := open(t, Options{}, func(s *Spec) {
		change(s)
		s.Ready = nil
		s.Symbols[fOut2].Set = setCore
		s.Symbols[fOut2].Misfits = []Misfit{{To: 13000, Why: "color has other numbers before 13.0"}}
	})
	distinct(t, err, ErrTooOld)
	name := filepath.Base(fixture(t))
	wantText(t, err.Error(), "", fmt.Sprintf("fix: fixture 12.5 (%s/%s) cannot be used: 1 of the 27 required functions must not be called: "+
		"out2 (color has other numbers before 13.0)\n\t%[3]s/%[2]s: cannot be used: version 12.5", dirs[0], name, dirs[1]))
}

// TestDirs checks that Open searches named folders before all others.
func TestDirs(t *testing.T) {
	dirs, change := places(t, 2, func(string) error { return nil })
	name := filepath.Base(fixture(t))
	site := t.TempDir()
	wheel := filepath.Join(site, "nvidia", "fixture", "lib")
	if err := os.MkdirAll(wheel, 0o777); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(copyOf(t, fixture(t)), filepath.Join(wheel, name)); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		dirs     []string
		variable string
		want     string
		source   string
	}{
		{nil, "", dirs[0], "directory " + dirs[0]},
		{[]string{"/nowhere", dirs[1]}, "", dirs[1], "Options.Dirs"},
		{[]string{site}, dirs[1], wheel, "Options.Dirs"},
		{[]string{filepath.Dir(dirs[1]) + "/*"}, "", dirs[1], "Options.Dirs"},
		{[]string{"/nowhere"}, "::" + site + ":/nowhere", wheel, "environment variable PUREGPU_LIBRARY_PATH"},
		{[]string{"/nowhere"}, "/nowhere", dirs[0], "directory " + dirs[0]},
	} {
		t.Setenv("PUREGPU_LIBRARY_PATH", c.variable)
		l, err := open(t, Options{Dirs: c.dirs}, change)
		if err != nil {
			t.Fatal(err)
		}
		as := l.Attempts()
		if got := filepath.Dir(l.Path()); got != c.want || as[len(as)-1].Source != c.source {
			t.Errorf("%q, %q: %s by %s, want %s by %s", c.dirs, c.variable, got, as[len(as)-1].Source, c.want, c.source)
		}
	}
}
