package apitest

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// TestEnvironment checks that imported packages read the environment only through
// internal/secureenv, and that SECURITY.md lists exactly the variables that they read.
func TestEnvironment(t *testing.T) {
	read := environmentOf(t, "../..")
	for _, x := range read.direct {
		if strings.HasPrefix(x, "runtime/dl/internal/hostlibc/program.go:") && strings.HasSuffix(x, ": os.Environ") {
			continue // program.go passes the environment to glibc, which itself ignores variables in set-user-ID programs
		}
		t.Error(x + " reads the environment also in a set-user-ID program: use internal/secureenv")
	}
	page, err := os.ReadFile("../../SECURITY.md")
	if err != nil {
		t.Fatal(err)
	}
	listed := listedVariables(string(page))
	for name, at := range read.names {
		if !slices.Contains(listed, name) {
			t.Errorf("SECURITY.md does not list %s, which %s reads", name, at)
		}
	}
	for _, name := range listed {
		if _, ok := read.names[name]; !ok {
			t.Errorf("SECURITY.md lists %s, which nothing reads", name)
		}
	}
}

// TestEnvironmentOf checks listedVariables, and the reads that are found in a small file.
func TestEnvironmentOf(t *testing.T) {
	const source = `package p

import (
	"os"
	sys "syscall"

	"` + module + `internal/secureenv"
)

const named = "A_NAMED"

var spec = Spec{Env: "SPEC", Dirs: []string{"$IN_DIR/lib", "/opt"}}

func f() {
	secureenv.Get("PLAIN")
	lookup(secureenv.Lookup, []string{"IN_A_LIST"})
	os.Getenv("X")
	_ = os.LookupEnv
	sys.Getenv("Y")
	os.CreateTemp("", "x")
	os.CreateTemp(dir, "x")
	println("a Text", "EOF")
}
`
	var e environment
	e.names = map[string]string{}
	e.file(t, "p/p.go", source, true)
	var names []string
	for name := range e.names {
		names = append(names, name)
	}
	slices.Sort(names)
	if want := []string{"A_NAMED", "IN_A_LIST", "IN_DIR", "PLAIN", "SPEC"}; !slices.Equal(names, want) {
		t.Errorf("names %q, want %q", names, want)
	}
	if want := []string{"p/p.go:17: os.Getenv", "p/p.go:18: os.LookupEnv", "p/p.go:19: syscall.Getenv", "p/p.go:20: os.CreateTemp"}; !slices.Equal(e.direct, want) {
		t.Errorf("direct %q, want %q", e.direct, want)
	}
	if got := listedVariables("| `A`, `B_C` | x |\n| `D` | `E` |\n"); !slices.Equal(got, []string{"A", "B_C", "D"}) {
		t.Errorf("listed %q", got)
	}
}

// listedVariables returns the names in the first cells of a page's tables.
func listedVariables(page string) (names []string) {
	for _, row := range regexp.MustCompile("(?m)^\\|(( `[A-Za-z_0-9]+`,?)+) \\|").FindAllStringSubmatch(page, -1) {
		for _, m := range regexp.MustCompile("`([^`]+)`").FindAllStringSubmatch(row[1], -1) {
			names = append(names, m[1])
		}
	}
	return names
}

// An environment lists the reads of the environment in source code.
type environment struct {
	names  map[string]string // where each variable is read, by name
	direct []string          // places that use a function of os or syscall that reads the environment
}

// environmentOf returns the reads of the environment by packages that programs can import, and by
// the packages of this module that these import. It skips main packages and packages for tests.
func environmentOf(t *testing.T, root string) *environment {
	t.Helper()
	files := map[string]map[string]string{} // by folder and name
	imports := map[string][]string{}        // by folder
	var next []string
	err := filepath.WalkDir(root, func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, _ := filepath.Rel(root, name)
		rel = filepath.ToSlash(rel)
		if d.IsDir() {
			switch rel {
			case "build", "examples", "tools", "runtime/examples", "runtime/dl/dltest", "runtime/gpu/gputest":
				return fs.SkipDir
			}
			if d.Name() == "testdata" || rel != "." && strings.HasPrefix(d.Name(), ".") {
				return fs.SkipDir
			}
			return nil
		}
		if !strings.HasSuffix(name, ".go") || strings.HasSuffix(name, "_test.go") {
			return nil
		}
		text, err := os.ReadFile(name)
		if err != nil {
			return err
		}
		f, err := parser.ParseFile(token.NewFileSet(), rel, text, parser.ImportsOnly)
		if err != nil {
			return err
		}
		folder := path.Dir(rel)
		if files[folder] == nil {
			files[folder] = map[string]string{}
			if f.Name.Name != "main" && !strings.Contains("/"+folder+"/", "/internal/") {
				next = append(next, folder)
			}
		}
		files[folder][rel] = string(text)
		for _, i := range f.Imports {
			if p, ok := strings.CutPrefix(strings.Trim(i.Path.Value, `"`), module); ok {
				imports[folder] = append(imports[folder], p)
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	e := &environment{names: map[string]string{}}
	done := map[string]bool{"internal/secureenv": true}
	for len(next) > 0 {
		folder := next[0]
		next = next[1:]
		if done[folder] {
			continue
		}
		done[folder] = true
		next = append(next, imports[folder]...)
		for name, text := range files[folder] {
			e.file(t, name, text, slices.Contains(imports[folder], "internal/secureenv"))
		}
	}
	// The standard library reads these variables on behalf of secureenv's functions.
	for _, name := range []string{"HOME", "XDG_CACHE_HOME", "LocalAppData", "TMPDIR", "TMP", "TEMP", "USERPROFILE"} {
		e.names[name] = "internal/secureenv"
	}
	slices.Sort(e.direct)
	return e
}

var (
	variableName = regexp.MustCompile(`^([A-Z][A-Za-z0-9]*(_[A-Za-z0-9]+)+|[A-Z]{4,})$`)
	inFolder     = regexp.MustCompile(`^\$\{?([A-Za-z_0-9]+)`)
)

// reading lists functions of the standard library that read the environment.
var reading = []string{"os.Getenv", "os.LookupEnv", "os.Environ", "os.ExpandEnv", "os.UserCacheDir", "os.UserHomeDir", "os.UserConfigDir",
	"os.TempDir", "syscall.Getenv", "syscall.Environ"}

// file adds the reads in a file. A variable is the string in a field Env, the name after the $ that
// begins a string, or, if uses is set, any string that looks like a variable's name. The parameter
// uses says that the file's package imports secureenv.
func (e *environment) file(t *testing.T, name, text string, uses bool) {
	t.Helper()
	set := token.NewFileSet()
	f, err := parser.ParseFile(set, name, text, parser.SkipObjectResolution)
	if err != nil {
		t.Fatal(err)
	}
	local := map[string]string{} // "os" and "syscall", by the package's name in this file
	for _, i := range f.Imports {
		if p := strings.Trim(i.Path.Value, `"`); p == "os" || p == "syscall" {
			local[p] = p
			if i.Name != nil {
				delete(local, p)
				local[i.Name.Name] = p
			}
		}
	}
	at := func(n ast.Node) string { return name + ":" + strconv.Itoa(set.Position(n.Pos()).Line) }
	literal := func(n ast.Expr) string {
		l, ok := n.(*ast.BasicLit)
		if !ok || l.Kind != token.STRING {
			return ""
		}
		s, _ := strconv.Unquote(l.Value)
		return s
	}
	add := func(variable string, n ast.Node) {
		if e.names[variable] == "" {
			e.names[variable] = at(n)
		}
	}
	ast.Inspect(f, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.ImportSpec:
			return false
		case *ast.KeyValueExpr:
			key, _ := n.Key.(*ast.Ident)
			if key == nil {
				return true
			}
			if v := literal(n.Value); v != "" && key.Name == "Env" {
				add(v, n)
			}
			return key.Name != "name" // a launcher's name, such as MPICH, is not a variable
		case *ast.BasicLit:
			s := literal(n)
			if m := inFolder.FindStringSubmatch(s); m != nil {
				add(m[1], n)
			}
			if uses && variableName.MatchString(s) {
				add(s, n)
			}
		case *ast.CallExpr:
			if fun := called(n.Fun, local); (fun == "os.CreateTemp" || fun == "os.MkdirTemp") && len(n.Args) == 2 {
				if l, ok := n.Args[0].(*ast.BasicLit); ok && l.Value == `""` {
					e.direct = append(e.direct, at(n)+": "+fun)
				}
			}
		case *ast.SelectorExpr:
			if fun := called(n, local); slices.Contains(reading, fun) {
				e.direct = append(e.direct, at(n)+": "+fun)
			}
		}
		return true
	})
}

// called returns the name of the function of package os or syscall that n selects, such as
// "os.Getenv", or "" if n selects none.
func called(n ast.Expr, local map[string]string) string {
	sel, ok := n.(*ast.SelectorExpr)
	if !ok {
		return ""
	}
	x, ok := sel.X.(*ast.Ident)
	if !ok || local[x.Name] == "" {
		return ""
	}
	return local[x.Name] + "." + sel.Sel.Name
}
