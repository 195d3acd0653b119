package dl

import (
	"cmp"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/puregpu/puregpu/internal/secureenv"
)

// A candidate is a file that may be the library.
type candidate struct {
	path   string
	source string
	loaded bool  // take it only if the process has it already
	err    error // known beforehand: there is nothing to load
}

// bare reports whether the system loader has to search for the file.
func (c candidate) bare() bool { return isBare(c.path) }

func isBare(path string) bool {
	return filepath.Base(path) == path && path != "." && path != ".."
}

// explicit returns the one candidate that the caller or the environment asks for.
func (s *Spec) explicit(opt *Options) (c candidate, ok bool) {
	if opt.Path != "" {
		return candidate{path: opt.Path, source: "Options.Path"}, true
	}
	if s.Env != "" {
		if p := secureenv.Get(s.Env); p != "" {
			return candidate{path: p, source: "environment variable " + s.Env}, true
		}
	}
	return candidate{}, false
}

// candidates returns the files to try, in order. An explicit one is the only one:
// falling back from it silently would hide a mistake.
func (s *Spec) candidates(opt *Options) []candidate {
	if c, ok := s.explicit(opt); ok {
		return []candidate{c}
	}
	var cs []candidate
	for _, name := range s.Names {
		cs = append(cs, candidate{path: name, source: "already in the process", loaded: true})
	}
	for _, name := range s.Names {
		cs = append(cs, candidate{path: name, source: "system loader"})
	}
	for _, pattern := range s.Dirs {
		dir, ok := expand(pattern)
		if !ok {
			continue
		}
		n := len(cs)
		for _, d := range glob(dir) {
			for _, name := range s.Names {
				p := filepath.Join(d, name)
				if _, err := os.Stat(p); err == nil {
					cs = append(cs, candidate{path: p, source: "directory " + pattern})
				}
			}
		}
		if len(cs) == n {
			cs = append(cs, candidate{path: dir, source: "directory " + pattern, err: &loadError{
				kind:  ErrNotFound,
				plain: "no " + strings.Join(s.Names, " or ") + " there",
			}})
		}
	}
	return cs
}

// expand replaces $VAR in a directory. It reports false if a variable is unset or
// empty: "$ROCM_PATH/lib" must not become "/lib".
func expand(dir string) (string, bool) {
	ok := true
	dir = os.Expand(dir, func(name string) string {
		v := secureenv.Get(name)
		if v == "" {
			ok = false
		}
		return v
	})
	return dir, ok
}

// glob returns the directories that match pattern, highest version first.
func glob(pattern string) []string {
	if !strings.ContainsAny(pattern, "*?[") {
		return []string{pattern}
	}
	dirs, err := filepath.Glob(pattern)
	if err != nil {
		return nil
	}
	slices.SortStableFunc(dirs, func(a, b string) int { return compareNatural(b, a) })
	return dirs
}

// compareNatural compares strings so that runs of digits count as numbers.
func compareNatural(a, b string) int {
	for a != "" && b != "" {
		x, y := digits(a), digits(b)
		if x > 0 && y > 0 {
			p, q := strings.TrimLeft(a[:x], "0"), strings.TrimLeft(b[:y], "0")
			if c := cmp.Or(cmp.Compare(len(p), len(q)), cmp.Compare(p, q)); c != 0 {
				return c
			}
			a, b = a[x:], b[y:]
			continue
		}
		if c := cmp.Compare(a[0], b[0]); c != 0 {
			return c
		}
		a, b = a[1:], b[1:]
	}
	return cmp.Compare(len(a), len(b))
}

// digits returns the length of the run of digits that s begins with.
func digits(s string) int {
	n := 0
	for n < len(s) && '0' <= s[n] && s[n] <= '9' {
		n++
	}
	return n
}

// load has the system loader open c, and says in plain words why it could not.
func (c candidate) load(ld *loader) (handle uintptr, err error) {
	if c.err != nil {
		return 0, c.err
	}
	if c.loaded {
		if h, _ := ld.open(c.path, true); h != 0 {
			return h, nil
		}
		return 0, &loadError{kind: ErrNotFound, plain: "not loaded"}
	}
	var plain string
	if !c.bare() {
		fault, err := inspectFile(c.path)
		switch {
		case isAbsent(err):
			return 0, &loadError{kind: ErrNotFound, plain: "no such file"}
		case err != nil:
			return 0, &loadError{kind: ErrNotLoadable, plain: plainIO(err)}
		case fault.harmful:
			return 0, &loadError{kind: ErrNotLoadable, plain: fault.plain}
		}
		plain = fault.plain
	}
	h, words := ld.open(c.path, false)
	if h != 0 {
		return h, nil
	}
	e := explain(c.path, words)
	if plain != "" {
		e.plain = plain
	}
	if !c.bare() {
		e.kind = ErrNotLoadable // the file is there
	}
	return 0, e
}

// isAbsent reports whether err says that a file does not exist.
func isAbsent(err error) bool {
	pe, ok := err.(*fs.PathError)
	return ok && (os.IsNotExist(err) || pe.Err.Error() == "not a directory")
}

// plainIO returns the reason in err without the operation and the path.
func plainIO(err error) string {
	if pe, ok := err.(*fs.PathError); ok {
		return pe.Err.Error()
	}
	return err.Error()
}
