// Package apitest checks the exported API of the packages that programs import, and the pages of
// documentation.
package apitest

import (
	"errors"
	"flag"
	"fmt"
	"go/types"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/puregpu/puregpu/internal/testlib"
	"github.com/puregpu/puregpu/symbols"
)

var update = flag.Bool("update", false, "add to the record what the API has gained")

// imported are the packages that programs import.
var imported = append(symbols.Names(),
	"nvtx", "runtime/blas", "runtime/collective", "runtime/compile", "runtime/control", "runtime/dl", "runtime/dl/dltest", "runtime/dnn", "runtime/driver", "runtime/driver/cudadriver", "runtime/driver/simdriver", "runtime/drivers", "runtime/fft", "runtime/gpu",
	"runtime/gpu/gputest", "runtime/growing", "runtime/health", "runtime/health/nvmlhealth", "runtime/interop", "runtime/metrics", "runtime/random", "runtime/rendezvous", "runtime/smallfloat", "runtime/solver", "runtime/sparse", "runtime/trace", "runtime/trace/cuptitrace", "runtime/trace/nvtxtrace",
)

// TestAPI checks that the exported declarations of the imported packages are those in the records
// of ../../testdata/api. The flag -update adds new declarations. A recorded declaration must stay.
func TestAPI(t *testing.T) {
	for dir, pkg := range testlib.Packages(t, imported...) {
		file := filepath.Join("..", "..", "testdata", "api", path.Base(dir)+".txt")
		compare(t, file, describe(pkg))
	}
}

func compare(t *testing.T, file string, have []string) {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil && !(*update && errors.Is(err, fs.ErrNotExist)) {
		t.Fatal(err)
	}
	want := strings.Split(strings.TrimSuffix(string(text), "\n"), "\n")
	if len(text) == 0 {
		want = nil
	}
	if !slices.IsSorted(want) {
		t.Errorf("%s is not sorted", file)
	}
	gone, added := diff(want, have), diff(have, want)
	if len(gone) > 0 {
		t.Errorf("%s: the API has lost or changed what programs may use:\n\t%s\nA name that has landed stays with its meaning: bring it back, give what came "+
			"instead a new name (in the overlay's names, say), or keep the old one as a deprecated alias. "+
			"If it has to go, delete these lines from the record, and say so in the release notes.", file, shorten(gone))
	}
	if len(added) == 0 {
		return
	}
	if !*update {
		t.Errorf("%s: the API has gained:\n\t%s\nTo keep these names, record them: go test ./internal/apitest -update", file, shorten(added))
		return
	}
	all := slices.Concat(want, added)
	slices.Sort(all)
	if err := os.WriteFile(file, []byte(strings.Join(all, "\n")+"\n"), 0o666); err != nil {
		t.Fatal(err)
	}
	t.Logf("%s: %d lines added", file, len(added))
}

// diff returns the lines of a that b lacks.
func diff(a, b []string) []string {
	in := map[string]bool{}
	for _, s := range b {
		in[s] = true
	}
	return slices.DeleteFunc(slices.Clone(a), func(s string) bool { return in[s] })
}

func shorten(lines []string) string {
	const most = 40
	if n := len(lines) - most; n > 0 {
		lines = append(slices.Clone(lines[:most]), fmt.Sprintf("and %d more", n))
	}
	return strings.Join(lines, "\n\t")
}

// describe returns a line for every exported declaration of pkg, sorted. It leaves out names of
// parameters, which may change.
func describe(pkg *types.Package) []string {
	qualify := func(p *types.Package) string {
		if p == pkg {
			return ""
		}
		return p.Name()
	}
	text := func(t types.Type) string { return types.TypeString(unnamed(t), qualify) }
	var lines []string
	add := func(format string, args ...any) { lines = append(lines, fmt.Sprintf(format, args...)) }
	scope := pkg.Scope()
	for _, name := range scope.Names() {
		obj := scope.Lookup(name)
		if !obj.Exported() {
			continue
		}
		switch obj := obj.(type) {
		case *types.Const:
			add("const %s %s = %s", name, text(obj.Type()), obj.Val().ExactString())
		case *types.Var:
			add("var %s %s", name, text(obj.Type()))
		case *types.Func:
			add("func %s%s", name, strings.TrimPrefix(text(obj.Signature()), "func"))
		case *types.TypeName:
			if obj.IsAlias() {
				add("type %s = %s", name, text(types.Unalias(obj.Type())))
				continue
			}
			named := obj.Type().(*types.Named)
			switch u := named.Underlying().(type) {
			case *types.Struct:
				add("type %s struct", name)
				for i := range u.NumFields() {
					if f := u.Field(i); f.Exported() {
						add("type %s struct, %s %s", name, f.Name(), text(f.Type()))
					}
				}
			case *types.Signature:
				add("type %s %s", name, text(u))
			case *types.Interface:
				add("type %s interface", name)
				for m := range u.Methods() {
					add("type %s interface, %s%s", name, m.Name(), strings.TrimPrefix(text(m.Signature()), "func"))
				}
			default:
				add("type %s %s", name, text(u))
			}
			for m := range named.Methods() {
				if m.Exported() {
					recv := text(m.Signature().Recv().Type())
					add("method (%s) %s%s", recv, m.Name(), strings.TrimPrefix(text(m.Signature()), "func"))
				}
			}
		}
	}
	slices.Sort(lines)
	return slices.Compact(lines)
}

// unnamed returns a function type without receiver, type parameters, and names of parameters and
// results. It also removes such names from function types of parameters and results, and from
// function types of slices' elements.
func unnamed(t types.Type) types.Type {
	strip := func(t *types.Tuple) *types.Tuple {
		var vars []*types.Var
		for v := range t.Variables() {
			vars = append(vars, types.NewParam(0, nil, "", unnamed(v.Type())))
		}
		return types.NewTuple(vars...)
	}
	switch t := t.(type) {
	case *types.Signature:
		return types.NewSignatureType(nil, nil, nil, strip(t.Params()), strip(t.Results()), t.Variadic())
	case *types.Slice:
		return types.NewSlice(unnamed(t.Elem()))
	}
	return t
}
