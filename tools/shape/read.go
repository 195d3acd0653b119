package main

import (
	"bytes"
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// A module has the packages that were read.
type module struct {
	root, path string
	pkgs       map[string]*pkg // by folder
}

// A pkg is the Go files of a folder, for all build tags, without tests.
type pkg struct {
	dir   string
	lines int
	fset  *token.FileSet
	files []*ast.File
}

// A function is a declared function or method with a body, including the function literals in the
// body.
type function struct {
	name, place       string
	complexity, lines int
}

// expand returns the folders that patterns match.
func (m *module) expand(patterns []string) (dirs []string) {
	for _, p := range patterns {
		base, below := strings.CutSuffix(p, "/...")
		if !below {
			dirs = append(dirs, p)
			continue
		}
		filepath.WalkDir(filepath.Join(m.root, base), func(path string, d fs.DirEntry, err error) error {
			if err != nil || !d.IsDir() {
				return nil
			}
			if d.Name() == "testdata" {
				return filepath.SkipDir
			}
			if dir, err := filepath.Rel(m.root, path); err == nil {
				dirs = append(dirs, filepath.ToSlash(dir))
			}
			return nil
		})
	}
	slices.Sort(dirs)
	return slices.Compact(dirs)
}

// load returns the package of a folder, or nil if there is no such folder. It reads each folder
// once. If some files cannot be read or parsed, it returns the package without them, and an error.
func (m *module) load(dir string) (*pkg, error) {
	if p, ok := m.pkgs[dir]; ok {
		return p, nil
	}
	if m.pkgs == nil {
		m.pkgs = map[string]*pkg{}
	}
	m.pkgs[dir] = nil
	entries, err := os.ReadDir(filepath.Join(m.root, dir))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	} else if err != nil {
		return nil, err
	}
	p := &pkg{dir: dir, fset: token.NewFileSet()}
	m.pkgs[dir] = p
	var errs []error
	for _, e := range entries {
		if e.IsDir() || !strings.HasSuffix(e.Name(), ".go") || strings.HasSuffix(e.Name(), "_test.go") {
			continue
		}
		text, err := os.ReadFile(filepath.Join(m.root, dir, e.Name()))
		if err != nil {
			errs = append(errs, err)
			continue
		}
		p.lines += bytes.Count(text, []byte("\n"))
		file, err := parser.ParseFile(p.fset, dir+"/"+e.Name(), text, parser.ParseComments|parser.SkipObjectResolution)
		if err != nil {
			errs = append(errs, err)
			continue
		}
		p.files = append(p.files, file)
	}
	return p, errors.Join(errs...)
}

// functions returns the functions of a package.
func (p *pkg) functions() (fs []function) {
	for _, file := range p.files {
		for _, d := range file.Decls {
			f, ok := d.(*ast.FuncDecl)
			if !ok || f.Body == nil {
				continue
			}
			name := f.Name.Name
			if f.Recv != nil && len(f.Recv.List) > 0 {
				name = typeName(f.Recv.List[0].Type) + "." + name
			}
			fs = append(fs, function{name, p.place(f.Pos()), complexity(f), p.fset.Position(f.End()).Line - p.fset.Position(f.Pos()).Line + 1})
		}
	}
	return fs
}

// complexity is the cyclomatic complexity of a function as gocyclo counts it.
func complexity(f *ast.FuncDecl) int {
	n := 1
	ast.Inspect(f, func(node ast.Node) bool {
		switch node := node.(type) {
		case *ast.IfStmt, *ast.ForStmt, *ast.RangeStmt:
			n++
		case *ast.CaseClause:
			if node.List != nil { // the default case adds nothing
				n++
			}
		case *ast.CommClause:
			if node.Comm != nil {
				n++
			}
		case *ast.BinaryExpr:
			if node.Op == token.LAND || node.Op == token.LOR {
				n++
			}
		}
		return true
	})
	return n
}

// A structType is a struct, and its file with the imports that the fields' types use.
type structType struct {
	fields *ast.FieldList
	file   *ast.File
}

// structs returns the structs of a package by name.
func (p *pkg) structs() map[string]structType {
	all := map[string]structType{}
	for _, file := range p.files {
		ast.Inspect(file, func(n ast.Node) bool {
			if spec, ok := n.(*ast.TypeSpec); ok {
				if s, ok := spec.Type.(*ast.StructType); ok {
					all[spec.Name.Name] = structType{s.Fields, file}
				}
			}
			return true
		})
	}
	return all
}

// largest returns a package's struct that has the most fields, and their number.
func (m *module) largest(p *pkg) (name string, fields int) {
	for s := range maps.Keys(p.structs()) {
		if n := m.fields(p, s, map[string]bool{}); n > fields || n == fields && s < name {
			name, fields = s, n
		}
	}
	return name, fields
}

// fields counts the fields of a struct. An embedded struct of the module counts as its own fields
// the first time, and as one field if seen has the struct. Any other embedded type counts as one
// field: a pointer, an interface, a struct of another module.
func (m *module) fields(p *pkg, name string, seen map[string]bool) (n int) {
	s, ok := p.structs()[name]
	if key := p.dir + "." + name; !ok || seen[key] {
		return 1
	} else {
		seen[key] = true
	}
	for _, f := range s.fields.List {
		if len(f.Names) > 0 {
			n += len(f.Names)
			continue
		}
		if _, pointer := f.Type.(*ast.StarExpr); pointer {
			n++
			continue
		}
		of, embedded := p, typeName(f.Type)
		if alias, in, ok := strings.Cut(embedded, "."); ok {
			of, embedded = m.imported(s.file, alias), in
		}
		if of == nil {
			n++
			continue
		}
		n += m.fields(of, embedded, seen)
	}
	return n
}

// imported returns the package of the module that a file imports under a name, or nil.
func (m *module) imported(file *ast.File, name string) *pkg {
	for _, spec := range file.Imports {
		path, err := strconv.Unquote(spec.Path.Value)
		dir, ok := strings.CutPrefix(path, m.path+"/")
		if err != nil || !ok || m.path == "" {
			continue
		}
		if spec.Name != nil && spec.Name.Name == name || spec.Name == nil && filepath.Base(dir) == name {
			p, _ := m.load(dir)
			return p
		}
	}
	return nil
}

// protects matches words of comments that say what a mutex protects.
var protects = regexp.MustCompile(`(?i)\b(protect|guard)(s|ed|ing)?\b`)

// mutexes returns the places of the mutexes, in structs and package variables, that do not say what
// they protect. A comment says so if it has a word such as "protects" or "guards", or names another
// field of the struct. Without such a comment the place of the mutex may say so: the mutex is
// embedded in a struct without a name that has other fields, or it begins a paragraph with other
// fields and without another mutex.
func (p *pkg) mutexes() (places []string) {
	for _, file := range p.files {
		groups := map[*ast.StructType]bool{} // structs without a name
		check := func(pos token.Pos, name string, comment string, names []string) {
			if protects.MatchString(comment) || slices.ContainsFunc(names, func(n string) bool {
				return regexp.MustCompile(`\b` + regexp.QuoteMeta(n) + `\b`).MatchString(comment)
			}) {
				return
			}
			places = append(places, fmt.Sprintf("%s: %s", p.place(pos), name))
		}
		ast.Inspect(file, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.Field:
				if s, ok := n.Type.(*ast.StructType); ok {
					groups[s] = true
				}
			case *ast.GenDecl:
				for _, spec := range n.Specs {
					v, ok := spec.(*ast.ValueSpec)
					if !ok {
						continue
					}
					if s, ok := v.Type.(*ast.StructType); ok {
						groups[s] = true
					}
					if isMutex(v.Type) {
						check(v.Pos(), v.Names[0].Name, n.Doc.Text()+v.Doc.Text()+v.Comment.Text(), nil)
					}
				}
			case *ast.FuncDecl:
				return false // skip mutexes of functions: their whole use is in view
			case *ast.StructType:
				var names []string
				for _, f := range n.Fields.List {
					if !isMutex(f.Type) {
						for _, name := range f.Names {
							names = append(names, name.Name)
						}
					}
				}
				for i, f := range n.Fields.List {
					if !isMutex(f.Type) || len(f.Names) == 0 && groups[n] && len(names) > 0 || p.heads(n.Fields.List, i) {
						continue
					}
					name := typeName(f.Type)
					if len(f.Names) > 0 {
						name = f.Names[0].Name
					}
					check(f.Pos(), name, f.Doc.Text()+f.Comment.Text(), names)
				}
			}
			return true
		})
	}
	return places
}

// heads reports whether the mutex at i begins a paragraph with other fields and no other mutex.
func (p *pkg) heads(fields []*ast.Field, i int) bool {
	// apart reports whether an empty line comes before a field.
	apart := func(i int) bool {
		begin := fields[i].Pos()
		if fields[i].Doc != nil {
			begin = fields[i].Doc.Pos()
		}
		return p.fset.Position(begin).Line > p.fset.Position(fields[i-1].End()).Line+1
	}
	if i > 0 && !apart(i) {
		return false
	}
	n := 0
	for i++; i < len(fields) && !apart(i); i++ {
		if isMutex(fields[i].Type) {
			return false
		}
		n++
	}
	return n > 0
}

// isMutex reports whether a type is one of package sync's locks.
func isMutex(t ast.Expr) bool {
	name := typeName(t)
	return name == "sync.Mutex" || name == "sync.RWMutex"
}

// typeName returns the name of a named type, without a pointer and type arguments: "Device",
// "sync.Mutex"; or "".
func typeName(t ast.Expr) string {
	switch t := t.(type) {
	case *ast.Ident:
		return t.Name
	case *ast.StarExpr:
		return typeName(t.X)
	case *ast.IndexExpr:
		return typeName(t.X)
	case *ast.IndexListExpr:
		return typeName(t.X)
	case *ast.SelectorExpr:
		return typeName(t.X) + "." + t.Sel.Name
	}
	return ""
}

// place returns the file and the line of a position.
func (p *pkg) place(pos token.Pos) string {
	at := p.fset.Position(pos)
	return fmt.Sprintf("%s:%d", at.Filename, at.Line)
}
