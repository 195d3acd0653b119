// Command rename rewrites Go code for the API of package gpu in which an operation is a value: a
// call such as q.Fill(order, r, pattern) becomes q.Submit(order, gpu.Fill(r, pattern)). Names that
// moved to other packages move too: dev.NewEvent() becomes interop.NewEvent(dev). [rules] lists all
// names that change.
//
//	rename [-n] [-build SETTINGS]... [PATTERN]...
//
// Run it before you require the new version, because rename needs the old version to know the
// types. A pattern is a directory. With /... at its end it includes the directories below, also
// those of other modules, but not folders whose name is vendor or node_modules, or begins with a
// dot. The default is ./... .
//
// Files that build only for some systems or tags need -build: with -build "GOOS=windows -tags=race"
// it loads the packages a second time with these settings. The flag may be repeated. rename loads
// everything before it changes a file. A second run changes nothing more.
//
// rename prints the places that it cannot rewrite as file:line: text, and on standard error the
// number of rewrites by each rule. The line numbers are those before the rewrite; run rename again
// for the numbers afterwards. With -n rename also prints each rewrite, and changes no file.
// Generated files stay unchanged. If a package does not type-check, rename rewrites the parts with
// known types and prints the first error. The exit status is 1 if something else failed.
package main

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"go/format"
	"go/parser"
	"go/token"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/tools/go/ast/astutil"
	"golang.org/x/tools/go/packages"
)

// Package paths.
const (
	module      = "github.com/puregpu/puregpu"
	gpuPath     = module + "/runtime/gpu"
	testkitPath = module + "/runtime/internal/testkit"
)

func main() {
	var builds []string
	dry := flag.Bool("n", false, "print what would change, and change nothing")
	flag.Func("build", "load the packages with these `settings` as well, for example \"GOOS=windows -tags=race\"", func(s string) error {
		builds = append(builds, s)
		return nil
	})
	flag.Parse()
	patterns := flag.Args()
	if len(patterns) == 0 {
		patterns = []string{"./..."}
	}
	if err := run(os.Stdout, os.Stderr, *dry, builds, patterns); err != nil {
		fmt.Fprintln(os.Stderr, "rename:", err)
		os.Exit(1)
	}
}

// A report is a message about a place in a file.
type report struct {
	file string
	line int
	what string
}

// A result has the findings of all packages in all their builds.
type result struct {
	files   map[string][]byte // the new text of each file that has been read, by absolute path
	counts  map[string]int    // rewrites by rule
	left    map[report]bool   // work left for a person
	changes []report
}

func run(out, log io.Writer, dry bool, builds, patterns []string) error {
	res := &result{map[string][]byte{}, map[string]int{}, map[report]bool{}, nil}
	var all []string
	for _, p := range patterns {
		modules, files, err := find(p)
		if err != nil {
			return err
		}
		all = append(all, files...)
		for _, m := range modules {
			for _, b := range append([]string{""}, builds...) {
				if err := res.load(log, m, b); err != nil {
					return err
				}
			}
		}
	}
	for _, name := range all {
		if _, read := res.files[name]; !read {
			res.left[report{name, 1, "the file was not loaded: see -build"}] = true
		}
	}
	var errs []error
	for name, text := range res.files {
		if old, err := os.ReadFile(name); err != nil || dry || bytes.Equal(old, text) {
			errs = append(errs, err)
		} else {
			errs = append(errs, os.WriteFile(name, text, 0o666))
		}
	}
	if dry {
		show(out, res.changes)
	}
	show(out, slices.Collect(maps.Keys(res.left)))
	for _, name := range slices.Sorted(maps.Keys(res.counts)) {
		fmt.Fprintf(log, "%5d %s\n", res.counts[name], name)
	}
	return errors.Join(errs...)
}

// show prints reports in the order of their places.
func show(out io.Writer, all []report) {
	slices.SortFunc(all, func(a, b report) int {
		return cmpAll(strings.Compare(a.file, b.file), a.line-b.line, strings.Compare(a.what, b.what))
	})
	wd, _ := os.Getwd()
	for _, r := range all {
		if rel, err := filepath.Rel(wd, r.file); err == nil {
			r.file = rel
		}
		fmt.Fprintf(out, "%s:%d: %s\n", r.file, r.line, r.what)
	}
}

func cmpAll(results ...int) int {
	for _, r := range results {
		if r != 0 {
			return r
		}
	}
	return 0
}

// A source is one load by go/packages: a pattern in a directory of one module.
type source struct{ dir, pattern string }

// find returns the loads for a pattern, and the files that import package gpu.
func find(pattern string) (modules []source, files []string, err error) {
	dir, below := strings.CutSuffix(filepath.ToSlash(pattern), "/...")
	if dir, err = filepath.Abs(dir); err != nil {
		return nil, nil, err
	}
	if !below {
		modules = append(modules, source{dir, "."})
	}
	needed := map[string]bool{} // modules with a file that imports package gpu
	top := dir
	err = filepath.WalkDir(dir, func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() {
			if name != dir && (!below || strings.HasPrefix(d.Name(), ".") || d.Name() == "vendor" || d.Name() == "node_modules") {
				return filepath.SkipDir
			}
			return nil
		}
		if filepath.Ext(name) != ".go" {
			return nil
		}
		f, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.ImportsOnly)
		if err != nil {
			return nil // go/packages reports the error if it matters
		}
		for _, i := range f.Imports {
			if path, _ := strconv.Unquote(i.Path.Value); path == gpuPath {
				files = append(files, name)
				needed[moduleOf(filepath.Dir(name), top)] = true
			}
		}
		return nil
	})
	if below {
		for _, dir := range slices.Sorted(maps.Keys(needed)) {
			modules = append(modules, source{dir, "./..."})
		}
	}
	return modules, files, err
}

// moduleOf returns the nearest directory with a go.mod, from the directory dir up to the directory
// top. It returns top if there is none.
func moduleOf(dir, top string) string {
	for dir != top && len(dir) > len(top) {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			break
		}
		dir = filepath.Dir(dir)
	}
	return dir
}

// load loads packages in one build, and rewrites the files that no earlier build had.
func (res *result) load(log io.Writer, from source, build string) error {
	conf := &packages.Config{
		Mode: packages.NeedName | packages.NeedFiles | packages.NeedCompiledGoFiles | packages.NeedImports |
			packages.NeedDeps | packages.NeedTypes | packages.NeedSyntax | packages.NeedTypesInfo,
		Dir:   from.dir,
		Env:   os.Environ(),
		Tests: true,
	}
	for _, s := range strings.Fields(build) {
		if strings.HasPrefix(s, "-") {
			conf.BuildFlags = append(conf.BuildFlags, s)
		} else {
			conf.Env = append(conf.Env, s)
		}
	}
	pkgs, err := packages.Load(conf, from.pattern)
	if err != nil {
		return err
	}
	for _, p := range pkgs {
		if len(p.Errors) > 0 {
			fmt.Fprintf(log, "%s: %d errors, the first is %v\n", p.ID, len(p.Errors), p.Errors[0])
		}
		for i, f := range p.Syntax {
			if i >= len(p.CompiledGoFiles) {
				break
			}
			name := p.CompiledGoFiles[i]
			if res.files[name] != nil || p.Fset.Position(f.FileStart).Filename != name || !strings.HasPrefix(name, from.dir) {
				continue
			}
			text, err := os.ReadFile(name)
			if err != nil {
				return err
			}
			w := newRewriter(res, p, f, name, text)
			if w != nil {
				if text, err = w.rewrite(); err != nil {
					return fmt.Errorf("%s: %w", name, err)
				}
			}
			res.files[name] = text
		}
	}
	return nil
}

// rewrite returns the new text of the file.
func (w *rewriter) rewrite() ([]byte, error) {
	w.walk()
	w.comments()
	w.imports()
	if len(w.edits) == 0 {
		return w.text, nil
	}
	text, err := format.Source([]byte(w.render(0, len(w.text))))
	if err != nil {
		return nil, err
	}
	return withoutUnused(text)
}

// withoutUnused removes the import of package gpu from a file that does not use it, except a dot or
// blank import.
func withoutUnused(text []byte) ([]byte, error) {
	fset := token.NewFileSet()
	f, err := parser.ParseFile(fset, "", text, parser.ParseComments)
	if err != nil {
		return nil, err
	}
	for _, i := range f.Imports {
		path, _ := strconv.Unquote(i.Path.Value)
		if path != gpuPath || i.Name != nil && (i.Name.Name == "." || i.Name.Name == "_") || astutil.UsesImport(f, gpuPath) {
			continue
		}
		name := ""
		if i.Name != nil {
			name = i.Name.Name
		}
		astutil.DeleteNamedImport(fset, f, name, gpuPath)
		var b bytes.Buffer
		err := format.Node(&b, fset, f)
		return b.Bytes(), err
	}
	return text, nil
}
