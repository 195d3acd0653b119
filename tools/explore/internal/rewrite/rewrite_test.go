package rewrite

import (
	"errors"
	"flag"
	"go/ast"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/tools/txtar"
	"os"
)

var update = flag.Bool("update", false, "write the golden files anew")

// rewritten rewrites a file that needs only the standard library.
func rewritten(t *testing.T, src []byte) (string, error) {
	t.Helper()
	fset := token.NewFileSet()
	f, err := parser.ParseFile(fset, "x.go", src, parser.ParseComments)
	if err != nil {
		t.Fatal(err)
	}
	info := &types.Info{Types: map[ast.Expr]types.TypeAndValue{}, Uses: map[*ast.Ident]types.Object{}, Defs: map[*ast.Ident]types.Object{}, Selections: map[*ast.SelectorExpr]*types.Selection{}}
	conf := types.Config{Importer: importer.ForCompiler(fset, "source", nil)}
	pkg, err := conf.Check("x", fset, []*ast.File{f}, info)
	if err != nil {
		t.Fatal(err)
	}
	_ = pkg
	exports := map[string]*types.Scope{}
	for _, s := range standIns { // each stand-in has all names of the real package except Tick, to test the refusal of a missing name
		real, err := conf.Importer.Import(s)
		if err != nil {
			t.Fatal(err)
		}
		scope := types.NewScope(nil, 0, 0, "")
		for _, n := range real.Scope().Names() {
			if n != "Tick" {
				scope.Insert(real.Scope().Lookup(n))
			}
		}
		exports[s] = scope
	}
	e := &edit{fset: fset, info: info, file: fset.File(f.FileStart), src: src, name: "x.go", exports: exports}
	if err := e.rewrite(f); err != nil {
		return "", err
	}
	return string(e.text(0, len(src))), nil
}

// TestGolden rewrites each file of testdata. The output must keep its lines and must parse.
func TestGolden(t *testing.T) {
	files, err := filepath.Glob("testdata/*.txtar")
	if err != nil || len(files) == 0 {
		t.Fatalf("%q, %v", files, err)
	}
	for _, name := range files {
		t.Run(strings.TrimSuffix(filepath.Base(name), ".txtar"), func(t *testing.T) {
			a, err := txtar.ParseFile(name)
			if err != nil {
				t.Fatal(err)
			}
			src := a.Files[0].Data
			got, err := rewritten(t, src)
			if err != nil {
				var r *Refusal
				if !errors.As(err, &r) || r.Pos.Line == 0 {
					t.Errorf("%v names no place", err)
				}
				got = err.Error() + "\n"
			} else {
				if _, err := parser.ParseFile(token.NewFileSet(), "x.go", got, 0); err != nil {
					t.Error(err)
				}
				if n, m := strings.Count(string(src), "\n"), strings.Count(got, "\n"); n != m {
					t.Errorf("%d lines have become %d", n, m)
				}
			}
			if *update {
				a.Files = append(a.Files[:1], txtar.File{Name: "want", Data: []byte(got)})
				if err := os.WriteFile(name, txtar.Format(a), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			if len(a.Files) < 2 || string(a.Files[1].Data) != got {
				t.Errorf("it becomes\n%s", got)
			}
		})
	}
}
