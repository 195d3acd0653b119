package dl

import (
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"

	"github.com/puregpu/puregpu/internal/folders"
	"github.com/puregpu/puregpu/internal/ownfolder"
	"github.com/puregpu/puregpu/internal/secureenv"
)

// Open searches these places in this order, for every library:
//
//  1. [Options].Path. Nothing else is tried.
//  2. The file in the library's own environment variable ([Spec].Env). Nothing else is tried.
//  3. The folders in [Options].Dirs, then those in the environment variable PUREGPU_LIBRARY_PATH.
//  4. Libraries that the process has already loaded.
//  5. $ORIGIN/lib, except on Windows: the folder lib beside the program. It must not be a link.
//     Only the user of this process or root may be able to change the folder and the file.
//  6. The system loader's own search: LD_LIBRARY_PATH, the loader's cache, the system's folders.
//  7. On Linux, caches of ldconfig that the loader of this process may not read; see [caches].
//  8. The folders in [Spec].Dirs.
//
// Open loads the files that exist, calls [Spec].Ready for each, and takes the first that is ready.
// In a program with more privileges than its caller, Open skips 2, the variable in 3, 5, and
// folders in 8 that begin with a variable.

// A candidate is a file that may be the library.
type candidate struct {
	path   string
	source string
	named  bool  // named by the caller or the environment: no other file is tried
	loaded bool  // take it only if the process has already loaded it
	err    error // why the file must not be loaded; nil if it may be
}

// bare reports whether the system loader must search for the file.
func (c candidate) bare() bool { return isBare(c.path) }

func isBare(path string) bool {
	return filepath.Base(path) == path && path != "." && path != ".."
}

// explicit returns the candidate that the caller or the environment names.
func (s *Spec) explicit(opt *Options) (c candidate, ok bool) {
	if opt.Path != "" {
		return candidate{path: opt.Path, source: "Options.Path", named: true}, true
	}
	if s.Env != "" {
		if p := secureenv.Get(s.Env); p != "" {
			return candidate{path: p, source: "environment variable " + s.Env, named: true}, true
		}
	}
	return candidate{}, false
}

// candidates returns the files to try, in order. An explicit candidate is the only one: silently
// trying others would hide a mistake.
func (s *Spec) candidates(opt *Options) []candidate {
	if c, ok := s.explicit(opt); ok {
		return []candidate{c}
	}
	var cs []candidate
	for _, dir := range opt.Dirs {
		if dir == "" {
			continue
		}
		cs = s.inFolder(cs, folders.Named(dir), "Options.Dirs")
	}
	for _, dir := range folders.Expand(folders.Variable) {
		cs = s.inFolder(cs, dir, "environment variable "+folders.Variable[1:])
	}
	for _, name := range s.Names {
		cs = append(cs, candidate{path: name, source: "already in the process", loaded: true})
	}
	cs = s.besideProgram(cs)
	for _, name := range s.Names {
		cs = append(cs, candidate{path: name, source: "system loader"})
	}
	cs = s.cached(cs, "/")
	for _, pattern := range s.Dirs {
		for _, dir := range folders.Expand(pattern) {
			cs = s.inDir(cs, dir, "directory "+pattern)
		}
	}
	return cs
}

// inFolder appends the files in a folder that a user has named. If there are none, the folder may
// be Python's site-packages, so inFolder looks in NVIDIA's wheels there.
func (s *Spec) inFolder(cs []candidate, dir, source string) []candidate {
	n := len(cs)
	cs = s.inDir(cs, dir, source)
	if len(cs) != n+1 || cs[n].err == nil {
		return cs
	}
	for _, d := range []string{"lib", "bin", "bin/x86_64"} {
		if more := s.inDir(cs[:n:n], filepath.Join(dir, "nvidia", "*", d), source); more[n].err == nil {
			return more
		}
	}
	return cs
}

// inDir appends the files in the folders that match a pattern. If there are no such files, inDir
// appends one candidate with an error that says so.
func (s *Spec) inDir(cs []candidate, pattern, source string) []candidate {
	n := len(cs)
	for _, d := range folders.Match(pattern) {
		d, err := filepath.Abs(d) // the system loader would search for a bare name
		if err != nil {
			continue
		}
		for _, name := range s.Names {
			p := filepath.Join(d, name)
			if _, err := os.Stat(p); err == nil {
				cs = append(cs, candidate{path: p, source: source})
			}
		}
	}
	if len(cs) == n {
		cs = append(cs, candidate{path: folders.Unquote(pattern), source: source, err: &loadError{
			kind:  ErrNotFound,
			plain: "no " + strings.Join(s.Names, " or ") + " there",
		}})
	}
	return cs
}

// besideProgram appends the trusted files in the folder lib beside the program. The program may be
// in a shared folder, such as /tmp, where anyone could have made lib.
func (s *Spec) besideProgram(cs []candidate) []candidate {
	const source = "directory $ORIGIN/lib"
	program := secureenv.Program()
	if program == "" || runtime.GOOS == "windows" {
		return cs
	}
	return s.trusted(cs, filepath.Join(filepath.Dir(program), "lib"), source)
}

// trusted appends the files in a folder. If a user other than this process's and root can change
// the folder or a file, trusted appends a candidate with an error instead.
func (s *Spec) trusted(cs []candidate, dir, source string) []candidate {
	n := len(cs)
	if cs = s.inDir(cs, folders.Quote(dir), source); cs[n].err != nil {
		return cs[:n] // most programs have no such folder
	}
	refused := func(path string, err error) candidate {
		return candidate{path: path, source: source, err: &loadError{kind: ErrNotLoadable, plain: "not used: " + plainIO(err)}}
	}
	if err := ownfolder.TrustedFolder(dir); err != nil {
		return append(cs[:n], refused(dir, err))
	}
	for i, c := range cs[n:] {
		if err := ownfolder.TrustedFile(c.path); err != nil {
			cs[n+i] = refused(c.path, err)
		}
	}
	return cs
}

// load opens c with the system loader. Its error says the cause in plain words.
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
		e.kind = ErrNotLoadable // inspectFile has read the file, so it exists
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
