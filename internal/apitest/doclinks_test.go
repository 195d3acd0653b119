package apitest

import (
	"go/ast"
	"go/doc"
	"go/doc/comment"
	"go/parser"
	"go/token"
	"go/types"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/puregpu/puregpu/internal/testlib"
)

const module = "github.com/puregpu/puregpu/"

// TestDocLinks checks every link, [Name] or [package.Name], in the documentation of the packages
// that programs import.
func TestDocLinks(t *testing.T) {
	pkgs := testlib.Packages(t, append(slices.Clone(imported), "runtime/driver/hipdriver")...)
	for dir := range pkgs {
		p := documentation(t, dir)
		parser := p.Parser()
		check := func(what, text string) {
			eachText(parser.Parse(text), func(x comment.Text) {
				switch x := x.(type) {
				case comment.Plain:
					for _, s := range unresolved.FindAllString(string(x), -1) {
						t.Errorf("%s: the documentation of %s has %s, which does not exist", dir, what, s)
					}
				case *comment.DocLink:
					to := pkgs[strings.TrimPrefix(x.ImportPath, module)]
					if to == nil || x.Name == "" {
						return // a link into a package that is not in pkgs, or to a whole package
					}
					if !has(to, x.Recv, x.Name) {
						t.Errorf("%s: the documentation of %s links to %s, which does not exist", dir, what, x.DefaultURL(""))
					}
				}
			})
		}
		check("the package", p.Doc)
		values := func(list []*doc.Value) {
			for _, v := range list {
				check(v.Names[0], v.Doc)
			}
		}
		funcs := func(prefix string, list []*doc.Func) {
			for _, f := range list {
				check(prefix+f.Name, f.Doc)
			}
		}
		values(p.Consts)
		values(p.Vars)
		funcs("", p.Funcs)
		for _, typ := range p.Types {
			check(typ.Name, typ.Doc)
			values(typ.Consts)
			values(typ.Vars)
			funcs("", typ.Funcs)
			funcs(typ.Name+".", typ.Methods)
		}
	}
}

// unresolved matches text that looks like a link and that the parser did not take for one.
var unresolved = regexp.MustCompile(`\[\*?([a-z]\w*\.)?[A-Z]\w*(\.\w+)?\]`)

// documentation parses all Go files of a package, except tests.
func documentation(t *testing.T, dir string) *doc.Package {
	t.Helper()
	fset := token.NewFileSet()
	names, err := filepath.Glob(filepath.Join("..", "..", dir, "*.go"))
	if err != nil {
		t.Fatal(err)
	}
	var files []*ast.File
	for _, name := range names {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		f, err := parser.ParseFile(fset, name, nil, parser.ParseComments)
		if err != nil {
			t.Fatal(err)
		}
		files = append(files, f)
	}
	p, err := doc.NewFromFiles(fset, files, module+dir)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// eachText calls f for the pieces of text in d, except code.
func eachText(d *comment.Doc, f func(comment.Text)) {
	var blocks func([]comment.Block)
	blocks = func(list []comment.Block) {
		for _, b := range list {
			switch b := b.(type) {
			case *comment.Heading:
				each(b.Text, f)
			case *comment.Paragraph:
				each(b.Text, f)
			case *comment.List:
				for _, item := range b.Items {
					blocks(item.Content)
				}
			}
		}
	}
	blocks(d.Content)
}

func each(list []comment.Text, f func(comment.Text)) {
	for _, x := range list {
		f(x)
	}
}

// has reports whether a package declares a name. If recv is not "", the name is that of a method or
// field of the type recv.
func has(p *types.Package, recv, name string) bool {
	if recv == "" {
		return p.Scope().Lookup(name) != nil
	}
	typ := p.Scope().Lookup(strings.TrimPrefix(recv, "*"))
	if typ == nil {
		return false
	}
	obj, _, _ := types.LookupFieldOrMethod(typ.Type(), true, p, name)
	return obj != nil
}
