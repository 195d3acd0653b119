package apitest

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// TestArchitecture compares the tables of docs/architecture.md with runtime/gpu and its internal packages: every field that is a mutex
// has a row, every function that starts a goroutine or a timer is named as what it is started in, every test that is cited is there,
// and neither table names what is gone.
func TestArchitecture(t *testing.T) {
	page, err := os.ReadFile("../../docs/architecture.md")
	if err != nil {
		t.Fatal(err)
	}
	code := coreOf(t, "../../runtime/gpu")
	for _, x := range compareArchitecture(string(page), code) {
		t.Error(x)
	}
}

// A core is what the page lists of the code.
type core struct {
	mutexes  []string // "Device.mu", and with the package's name if it is another one: "blockpool.Pool.mu"
	starters []string // functions that start goroutines: "Device.clean"
	tests    []string
	files    []string // of the package itself: "device.go"
}

var (
	firstCell = regexp.MustCompile("(?m)^\\| `([^`]+)` \\|")
	started   = regexp.MustCompile("(?m)^\\| [^|`]* \\| `([^`]+)`")
	citedTest = regexp.MustCompile("`(Test[A-Z]\\w*)`")
	namedFile = regexp.MustCompile("`([a-z_]+\\.go)`")
)

// compareArchitecture returns what is wrong with a page.
func compareArchitecture(page string, code core) (wrong []string) {
	compare := func(heading, what string, row *regexp.Regexp, want []string) {
		_, section, _ := strings.Cut(page, "\n## "+heading+"\n")
		section, _, _ = strings.Cut(section, "\n## ")
		var rows []string
		for _, m := range row.FindAllStringSubmatch(section, -1) {
			rows = append(rows, m[1])
		}
		for _, x := range want {
			if !slices.Contains(rows, x) {
				wrong = append(wrong, "docs/architecture.md, "+heading+": no row for "+what+" "+x)
			}
		}
		for _, x := range rows {
			if !slices.Contains(want, x) {
				wrong = append(wrong, "docs/architecture.md, "+heading+": a row for "+what+" "+x+", which is gone")
			}
		}
	}
	compare("Mutexes", "mutex", firstCell, code.mutexes)
	compare("Threads", "what is started in", started, code.starters)
	compare("The house", "file", namedFile, code.files)
	for _, m := range citedTest.FindAllStringSubmatch(page, -1) {
		if !slices.Contains(code.tests, m[1]) {
			wrong = append(wrong, "docs/architecture.md cites "+m[1]+", which is gone")
		}
	}
	return wrong
}

// coreOf reads the source of a package and of the internal ones below it.
func coreOf(t *testing.T, dir string) (c core) {
	t.Helper()
	err := filepath.WalkDir(dir, func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() && filepath.Dir(name) == filepath.Clean(dir) && d.Name() != "internal" {
			return fs.SkipDir
		}
		if d.IsDir() || !strings.HasSuffix(name, ".go") {
			return nil
		}
		f, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		if strings.HasSuffix(name, "_test.go") {
			c.addTests(f)
			return nil
		}
		top := filepath.Dir(name) == filepath.Clean(dir)
		c.add(f, top)
		if top && d.Name() != "doc.go" {
			c.files = append(c.files, d.Name())
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if len(c.mutexes) == 0 || len(c.starters) == 0 || len(c.tests) == 0 {
		t.Fatalf("%s has %d mutexes, %d functions that start goroutines, %d tests", dir, len(c.mutexes), len(c.starters), len(c.tests))
	}
	return c
}

func (c *core) addTests(f *ast.File) {
	for _, d := range f.Decls {
		if d, ok := d.(*ast.FuncDecl); ok && d.Recv == nil && strings.HasPrefix(d.Name.Name, "Test") {
			c.tests = append(c.tests, d.Name.Name)
		}
	}
}

// add adds a file, of the package itself or of one below it.
func (c *core) add(f *ast.File, top bool) {
	prefix := f.Name.Name + "."
	if top {
		prefix = ""
	}
	for _, d := range f.Decls {
		switch d := d.(type) {
		case *ast.GenDecl:
			for _, s := range d.Specs {
				if s, ok := s.(*ast.TypeSpec); ok {
					c.addMutexes(prefix+s.Name.Name, s.Type)
				}
			}
		case *ast.FuncDecl:
			if name := prefix + nameOf(d); starts(d) && !slices.Contains(c.starters, name) {
				c.starters = append(c.starters, name)
			}
		}
	}
}

// addMutexes adds the fields of a type that are mutexes, or pointers to some.
func (c *core) addMutexes(name string, typ ast.Expr) {
	s, ok := typ.(*ast.StructType)
	if !ok {
		return
	}
	for _, f := range s.Fields.List {
		if isMutex(f.Type) {
			if len(f.Names) == 0 {
				c.mutexes = append(c.mutexes, name+".Mutex")
			}
			for _, n := range f.Names {
				c.mutexes = append(c.mutexes, name+"."+n.Name)
			}
		}
		for _, n := range f.Names {
			c.addMutexes(name+"."+n.Name, f.Type)
		}
	}
}

func isMutex(x ast.Expr) bool {
	if p, ok := x.(*ast.StarExpr); ok {
		x = p.X
	}
	s, ok := x.(*ast.SelectorExpr)
	if !ok {
		return false
	}
	pkg, ok := s.X.(*ast.Ident)
	return ok && pkg.Name == "sync" && (s.Sel.Name == "Mutex" || s.Sel.Name == "RWMutex")
}

// starts reports whether a function starts a goroutine itself: by a go statement, a wait group, or a timer.
func starts(d *ast.FuncDecl) (found bool) {
	ast.Inspect(d, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.GoStmt:
			found = true
		case *ast.CallExpr:
			if s, ok := n.Fun.(*ast.SelectorExpr); ok && (s.Sel.Name == "AfterFunc" || s.Sel.Name == "Go") {
				found = true
			}
		}
		return !found
	})
	return found
}

// nameOf returns a function's name, with its receiver's type.
func nameOf(d *ast.FuncDecl) string {
	if d.Recv == nil {
		return d.Name.Name
	}
	typ := d.Recv.List[0].Type
	if p, ok := typ.(*ast.StarExpr); ok {
		typ = p.X
	}
	if i, ok := typ.(*ast.IndexExpr); ok {
		typ = i.X
	}
	if id, ok := typ.(*ast.Ident); ok {
		return id.Name + "." + d.Name.Name
	}
	return d.Name.Name
}

func TestCompareArchitecture(t *testing.T) {
	const page = "# A\n\n## The house\n\n| subject | `a.go` |\n\n## Threads\n\n| goroutine | started in |\n|---|---|\n| poller | `Open` (`Device.ask`) |\n| callers | |\n\n" +
		"## Mutexes\n\n| mutex | protects |\n|---|---|\n| `T.mu` | all |\n\n## Rest\n\n| `U.mu` | of another table | `TestA` |\n"
	right := core{[]string{"T.mu"}, []string{"Open"}, []string{"TestA"}, []string{"a.go"}}
	for name, x := range map[string]struct {
		code core
		want string // in the one thing that is wrong, nothing if it is empty
	}{
		"right":               {right, ""},
		"a mutex more":        {core{[]string{"T.mu", "b.T.mu"}, right.starters, right.tests, right.files}, "no row for mutex b.T.mu"},
		"a mutex that's gone": {core{nil, right.starters, right.tests, right.files}, "mutex T.mu, which is gone"},
		"a goroutine more":    {core{right.mutexes, []string{"Open", "f"}, right.tests, right.files}, "no row for what is started in f"},
		"a goroutine gone":    {core{right.mutexes, nil, right.tests, right.files}, "started in Open, which is gone"},
		"a test that's gone":  {core{right.mutexes, right.starters, nil, right.files}, "TestA, which is gone"},
		"a file more":         {core{right.mutexes, right.starters, right.tests, []string{"a.go", "b.go"}}, "no row for file b.go"},
		"a file that's gone":  {core{right.mutexes, right.starters, right.tests, nil}, "file a.go, which is gone"},
	} {
		wrong := compareArchitecture(page, x.code)
		if x.want == "" && len(wrong) > 0 || x.want != "" && (len(wrong) != 1 || !strings.Contains(wrong[0], x.want)) {
			t.Errorf("%s: %q, want %q", name, wrong, x.want)
		}
	}
	const source = `package p
type (
	T struct { sync.Mutex; a, b sync.RWMutex; in struct { mu *sync.Mutex } }
	U []sync.Mutex
)
func f() { context.AfterFunc(ctx, g) }
func (t *T) h() { x := func() { go t.Lock() }; x() }
func g() {}
`
	f, err := parser.ParseFile(token.NewFileSet(), "x.go", source, parser.SkipObjectResolution)
	if err != nil {
		t.Fatal(err)
	}
	var c core
	c.add(f, false)
	if got, want := strings.Join(append(c.mutexes, c.starters...), " "), "p.T.Mutex p.T.a p.T.b p.T.in.mu p.f p.T.h"; got != want {
		t.Errorf("the code has %s, want %s", got, want)
	}
}
