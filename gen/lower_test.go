package gen

import (
	"slices"
	"strings"
	"testing"

	"github.com/puregpu/puregpu/symbols"
)

// TestOverrideSize checks the size of the Go type that an overlay gives a parameter. The elements
// of an output or an array must have C's size, since the library writes that many bytes. For a
// number, the Go type may be smaller, but not larger.
func TestOverrideSize(t *testing.T) {
	lib, err := symbols.Load("cuda")
	if err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct{ symbol, param, goType, want string }{
		{"cuGraphExecGetFlags", "flags", "GraphInstantiateFlags", "cuGraphExecGetFlags: parameter flags: overlay: GraphInstantiateFlags has 4 bytes and the element of"},
		{"cuCtxGetFlags", "flags", "uint64", "cuCtxGetFlags: parameter flags: overlay: uint64 has 8 bytes and the element of"},
		{"cuCtxGetFlags", "flags", "LogIterator", ""},
		{"cuMemcpyBatchAsync", "dsts", "StreamFlags", "cuMemcpyBatchAsync: parameter dsts: overlay: StreamFlags has 4 bytes and the element of"},
		{"cuStreamCreate", "Flags", "uint64", "cuStreamCreate: parameter Flags: overlay: uint64 has 8 bytes and unsigned int only 4"},
		{"cuStreamCreate", "Flags", "NoSuchFlags", "cuStreamCreate: parameter Flags: overlay: unknown Go type NoSuchFlags"},
		{"cuMemCreate", "flags", "StreamFlags", ""},
	} {
		changed := *lib // a copy, because all callers of Load share the library
		changed.Funcs = slices.Clone(lib.Funcs)
		f := &changed.Funcs[slices.IndexFunc(changed.Funcs, func(f symbols.Func) bool { return f.Symbol == test.symbol })]
		f.Args = slices.Clone(f.Args)
		f.Args[slices.IndexFunc(f.Args, func(a symbols.Arg) bool { return a.Name == test.param })].GoType = test.goType
		_, err := lower(&changed)
		switch {
		case test.want == "" && err != nil:
			t.Errorf("%s.%s as %s: %v", test.symbol, test.param, test.goType, err)
		case test.want != "" && (err == nil || !strings.Contains(err.Error(), test.want)):
			t.Errorf("%s.%s as %s: %v, want %q", test.symbol, test.param, test.goType, err, test.want)
		}
	}
}
