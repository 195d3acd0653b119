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

// TestArchitectureNames compares the names in docs/architecture.md with runtime/gpu, its internal packages and the face of its drivers. Every
// name in backticks occurs in their code; what stands behind a type and a point is a field or a method of that type; and what the
// table of mutexes has in backticks under "protects" are fields of the struct that has the mutex, or of those that the cell names.
func TestArchitectureNames(t *testing.T) {
	page, err := os.ReadFile("../../docs/architecture.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, x := range vocabularyOf(t, "../../runtime").compare(string(page)) {
		t.Error(x)
	}
}

// A vocabulary is what a page can name of the code. The package itself is named by nothing, all others by their names: "blockpool.Pool".
type vocabulary struct {
	types map[string]*members
	words map[string]bool // packages and identifiers, and with the package's name what is declared outside of functions: "wake.Until"
}

// members are what can stand behind a type and a point.
type members struct {
	fields  map[string]string // with their types, "" for one that is not known
	methods map[string]bool
	parts   []string // types whose members it has as well: what is embedded, or what it is made of
}

var (
	codeBlock = regexp.MustCompile("(?ms)^```.*?^```$")
	named     = regexp.MustCompile("`([A-Za-z_]\\w*(?:\\.[A-Za-z_]\\w*)*)`")
	protects  = regexp.MustCompile("(?m)^\\| `([^`]+)` \\| ([^|]*)")
)

// vocabularyOf reads the packages gpu and driver of a folder, and the internal ones of gpu.
func vocabularyOf(t *testing.T, dir string) *vocabulary {
	t.Helper()
	v := newVocabulary()
	gpu, drivers := filepath.Join(dir, "gpu"), filepath.Join(dir, "driver")
	files := 0
	err := filepath.WalkDir(dir, func(name string, d fs.DirEntry, err error) error {
		inside := strings.HasPrefix(name, filepath.Join(gpu, "internal"))
		switch {
		case err != nil:
			return err
		case d.IsDir() && filepath.Dir(name) == drivers: // that satisfy it, and are not read
			v.words[d.Name()] = true
			return fs.SkipDir
		case d.IsDir() && filepath.Dir(name) == gpu && !inside:
			return fs.SkipDir
		case d.IsDir() || !strings.HasSuffix(name, ".go") || strings.HasSuffix(name, "_test.go"):
			return nil
		}
		f, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.SkipObjectResolution)
		if err == nil {
			v.add(f, filepath.Dir(name) == gpu)
			files++
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	if files == 0 || len(v.types) == 0 {
		t.Fatalf("%s has %d files and %d types", dir, files, len(v.types))
	}
	return v
}

func newVocabulary() *vocabulary {
	return &vocabulary{map[string]*members{}, map[string]bool{}}
}

// compare returns what is wrong with a page.
func (v *vocabulary) compare(page string) (wrong []string) {
	page = codeBlock.ReplaceAllString(page, "")
	for _, m := range named.FindAllStringSubmatch(page, -1) {
		if name := m[1]; !strings.HasSuffix(name, ".go") && !citedTest.MatchString(m[0]) && !v.has(name) { // files and tests are for TestArchitecture
			wrong = append(wrong, "docs/architecture.md names "+name+", which the code does not have")
		}
	}
	_, section, _ := strings.Cut(page, "\n## Mutexes\n")
	section, _, _ = strings.Cut(section, "\n## ")
	for _, row := range protects.FindAllStringSubmatch(section, -1) {
		structs := []string{row[1][:max(strings.LastIndexByte(row[1], '.'), 0)]}
		var plain []string
		for _, m := range named.FindAllStringSubmatch(row[2], -1) {
			switch i := strings.LastIndexByte(m[1], '.'); {
			case i >= 0: // looked at above
				structs = append(structs, m[1][:i])
			case v.types[m[1]] != nil:
				structs = append(structs, m[1])
			default:
				plain = append(plain, m[1])
			}
		}
		for _, x := range plain {
			if !slices.ContainsFunc(structs, func(s string) bool { return v.member(s, x, true) }) {
				wrong = append(wrong, "docs/architecture.md, Mutexes: "+row[1]+" protects "+x+", which is no field of "+strings.Join(structs, ", nor of "))
			}
		}
	}
	return wrong
}

// has reports whether there is what a name says: an identifier, a declaration of a package, a type, or a member of one, or of such a
// field's type, and so on.
func (v *vocabulary) has(name string) bool {
	if i := strings.LastIndexByte(name, '.'); i >= 0 && v.member(name[:i], name[i+1:], false) {
		return true
	}
	return v.words[name] || v.types[name] != nil
}

// member reports whether a type has a field, or also a method. One that package gpu has not may be another package's, if it is named
// without that.
func (v *vocabulary) member(typ, name string, isField bool) bool {
	return slices.ContainsFunc(v.typesOf(typ), func(t string) bool { return v.find(t, name, isField, nil) != nil })
}

// typesOf returns the types that a name may mean: of a type, or of a type's fields and their fields.
func (v *vocabulary) typesOf(name string) (all []string) {
	if v.types[name] != nil {
		return []string{name}
	}
	for t := range v.types {
		if strings.HasSuffix(t, "."+name) {
			all = append(all, t)
		}
	}
	if i := strings.LastIndexByte(name, '.'); len(all) == 0 && i >= 0 {
		for _, t := range v.typesOf(name[:i]) {
			if m := v.find(t, name[i+1:], true, nil); m != nil && v.types[*m] != nil {
				all = append(all, *m)
			}
		}
	}
	return all
}

// find returns the type of a field, of a method "", and nil if the type has no such member. seen are the types that have been looked at.
func (v *vocabulary) find(typ, name string, isField bool, seen []string) *string {
	t := v.types[typ]
	if t == nil || slices.Contains(seen, typ) {
		return nil
	}
	if of, ok := t.fields[name]; ok {
		return &of
	}
	if t.methods[name] && !isField {
		return new(string)
	}
	for _, p := range t.parts {
		if m := v.find(p, name, isField, append(seen, typ)); m != nil {
			return m
		}
	}
	return nil
}

// add adds a file, of package gpu itself or of another one.
func (v *vocabulary) add(f *ast.File, top bool) {
	prefix := f.Name.Name + "."
	if top {
		prefix = ""
	}
	v.words[f.Name.Name] = true
	ast.Inspect(f, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.Ident:
			v.words[n.Name] = true
		case *ast.SelectorExpr:
			if x, ok := n.X.(*ast.Ident); ok && imports(f, x.Name) {
				v.words[x.Name+"."+n.Sel.Name] = true // of packages that are not read themselves
			}
		}
		return true
	})
	for _, d := range f.Decls {
		switch d := d.(type) {
		case *ast.GenDecl:
			for _, s := range d.Specs {
				switch s := s.(type) {
				case *ast.TypeSpec:
					v.addType(prefix, prefix+s.Name.Name, s.Type)
				case *ast.ValueSpec:
					for _, n := range s.Names {
						v.words[prefix+n.Name] = true
					}
				}
			}
		case *ast.FuncDecl:
			if d.Recv == nil {
				v.words[prefix+d.Name.Name] = true
			} else {
				typ, method, _ := strings.Cut(nameOf(d), ".")
				v.typeCalled(prefix + typ).methods[method] = true
			}
		}
	}
}

// imports reports whether a file imports a package of the standard library by a name.
func imports(f *ast.File, name string) bool {
	return slices.ContainsFunc(f.Imports, func(i *ast.ImportSpec) bool {
		path := strings.Trim(i.Path.Value, `"`)
		return i.Name == nil && !strings.Contains(path, "/") && path == name
	})
}

func (v *vocabulary) typeCalled(name string) *members {
	t := v.types[name]
	if t == nil {
		t = &members{map[string]string{}, map[string]bool{}, nil}
		v.types[name] = t
	}
	return t
}

// addType adds a type of a package. A field that is a struct without a name is a type as well.
func (v *vocabulary) addType(prefix, name string, typ ast.Expr) {
	t := v.typeCalled(name)
	switch x := typ.(type) {
	case *ast.StructType:
		for _, f := range x.Fields.List {
			of := typeName(prefix, f.Type)
			if len(f.Names) == 0 {
				t.fields[of[strings.LastIndexByte(of, '.')+1:]] = of
				t.parts = append(t.parts, of)
			}
			for _, n := range f.Names {
				if t.fields[n.Name] = of; of == "" {
					t.fields[n.Name] = name + "/" + n.Name // which no page names
					v.addType(prefix, t.fields[n.Name], f.Type)
				}
			}
		}
	case *ast.InterfaceType:
		for _, f := range x.Methods.List {
			for _, n := range f.Names {
				t.methods[n.Name] = true
			}
			if len(f.Names) == 0 {
				t.parts = append(t.parts, typeName(prefix, f.Type))
			}
		}
	default:
		t.parts = append(t.parts, typeName(prefix, typ))
	}
}

// typeName returns the name of a type, or of what a pointer points to, with the package's; "" if it has none.
func typeName(prefix string, typ ast.Expr) string {
	switch x := typ.(type) {
	case *ast.Ident:
		return prefix + x.Name
	case *ast.SelectorExpr:
		if pkg, ok := x.X.(*ast.Ident); ok {
			return pkg.Name + "." + x.Sel.Name
		}
	case *ast.StarExpr:
		return typeName(prefix, x.X)
	case *ast.IndexExpr:
		return typeName(prefix, x.X)
	case *ast.IndexListExpr:
		return typeName(prefix, x.X)
	}
	return ""
}

func TestCompareNames(t *testing.T) {
	v := newVocabulary()
	for _, source := range []string{`package gpu
import "runtime"
type (
	T struct { mu sync.Mutex; part; *other; at struct { mu sync.Mutex; deep int }; set points.Set[int]; u *U }
	part struct { inner, shared int }
	other struct { own int }
	U struct { far int }
	alias = points.Set[int]
	face interface { Do(); more }
	more interface { Also() }
	loop struct { *loop }
)
const limit = 1
func Open() { runtime.Gosched() }
func (t *T) run() {}
func (p *part) step() {}
`, `package points
type Set[T any] struct { n int }
func (s *Set[T]) Add() { local := 1; _ = local }
func Make() {}
`} {
		f, err := parser.ParseFile(token.NewFileSet(), "x.go", source, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		v.add(f, f.Name.Name == "gpu")
	}
	const table = "\n## Mutexes\n\n| mutex | protects | held |\n|---|---|---|\n| `T.mu` | "
	for page, want := range map[string]string{ // the name in what is wrong; nothing is if it is empty
		"`T` `T.mu` `T.run` `T.part` `T.other` `T.at.deep`":               "",
		"`T.inner` `T.step` `T.own`, by what is embedded":                 "",
		"`T.set.Add` `T.u.far`, by a field's type":                        "",
		"`points.Set.Add` `points.Set.n` `Set.Add` `alias.n`":             "",
		"`points.Make` `points` `Open` `limit` `local` `runtime.Gosched`": "",
		"`face.Do` `face.Also` `loop.loop` `x.go` `TestGone` `a b` `f()`": "",
		"```\n`T.gone`\n```\nin a block of code":                          "",
		"`T.gone`":                                                        "T.gone",
		"`T.far`":                                                         "T.far",
		"`U.mu`":                                                          "U.mu",
		"`T.u.gone`":                                                      "T.u.gone",
		"`T.mu.Lock`":                                                     "T.mu.Lock", // of a package that is not read
		"`T.at.far`":                                                      "T.at.far",
		"`at.deep`":                                                       "at.deep",
		"`part.own`":                                                      "part.own",
		"`Set.Make`":                                                      "Set.Make",
		"`points.Add`":                                                    "points.Add",
		"`points.local`":                                                  "points.local",
		"`loop.gone`":                                                     "loop.gone",
		"`face.Gone`":                                                     "face.Gone",
		"`gone`":                                                          "gone",
		"`runtime.Gone`":                                                  "runtime.Gone",
		"`Gone.mu`":                                                       "Gone.mu",
		table + "all | |\n":                                               "",
		table + "`inner`, `own`, `at`, `set` | `far`, which it calls |\n": "",
		table + "`inner`; `U.far` and `far` | |\n":                        "",
		table + "`inner`; of a `U` `far` | |\n":                           "",
		table + "`far` | |\n":                                             "protects far",
		table + "`run` | |\n":                                             "protects run", // no field
		table + "`limit` | |\n":                                           "protects limit",
		table + "`U.far` and `n` | |\n":                                   "protects n",
		table + "`inner` | |\n| `U.mu`":                                   "U.mu",
		table + "`inner` | |\n| `T.at.mu` | `deep` | |\n":                 "",
		table + "`inner` | |\n| `T.at.mu` | `inner` | |\n":                "T.at.mu protects inner",
		table + "`inner` | |\n\n## Rest\n\n| `T.mu` | `far` | |\n":        "",
	} {
		wrong := v.compare(page)
		if want == "" && len(wrong) > 0 || want != "" && (len(wrong) != 1 || !strings.Contains(wrong[0], " "+want+",")) {
			t.Errorf("%q: %q, want %q", page, wrong, want)
		}
	}
}
