package gen

import (
	"go/types"
	"testing"

	"github.com/puregpu/puregpu/internal/testlib"
	"github.com/puregpu/puregpu/symbols"
)

// TestLayoutSizes checks that every generated struct has the table's layout on amd64 and arm64. It
// computes the layouts from the types, so one machine checks both.
func TestLayoutSizes(t *testing.T) {
	pkgs := testlib.Packages(t, Libraries()...)
	for _, name := range Libraries() {
		p, err := load(name)
		if err != nil {
			t.Fatal(err)
		}
		lib, err := symbols.Load(name)
		if err != nil {
			t.Fatal(err)
		}
		compared := 0
		for _, arch := range []string{"amd64", "arm64"} {
			sizes := types.SizesFor("gc", arch)
			fields := 0
			for _, s := range p.structs {
				fields += compareLayout(t, sizes, pkgs[name], s, name+" on "+arch)
			}
			t.Logf("%s on %s: %d structures and unions, %d fields", name, arch, len(p.structs), fields)
			compared += fields
		}
		if compared == 0 && len(lib.Structs) > 0 {
			t.Errorf("%s: none of the table's %d structures was compared", name, len(lib.Structs))
		}
	}
}

// compareLayout compares the layout of one Go type with the table's layout of the C struct or
// union. It returns the number of fields compared.
func compareLayout(t *testing.T, sizes types.Sizes, pkg *types.Package, s structure, where string) int {
	t.Helper()
	obj := pkg.Scope().Lookup(s.name)
	if obj == nil {
		t.Errorf("%s: %s (%s) does not exist", where, s.name, s.cname)
		return 0
	}
	typ, ok := obj.Type().Underlying().(*types.Struct)
	if !ok {
		t.Errorf("%s: %s (%s) is not a struct", where, s.name, s.cname)
		return 0
	}
	if n := sizes.Sizeof(typ); n != int64(s.size) {
		t.Errorf("%s: %s has %d bytes, in C %d", where, s.name, n, s.size)
	}
	if n := sizes.Alignof(typ); n != int64(s.goAlign) || n > int64(s.align) {
		t.Errorf("%s: %s is aligned to %d bytes, meant are %d, in C %d", where, s.name, n, s.goAlign, s.align)
	}
	if s.union {
		return 0 // a union has methods instead of fields
	}
	vars := make([]*types.Var, typ.NumFields())
	index := map[string]int{}
	for i := range vars {
		vars[i] = typ.Field(i)
		index[vars[i].Name()] = i
	}
	offsets := sizes.Offsetsof(vars)
	compared := 0
	for _, f := range s.fields {
		name := f.name
		if f.unit != "" {
			name = f.unit // the bit-fields of a unit share one Go field
		}
		if name == "_" {
			continue
		}
		i, ok := index[name]
		if !ok {
			t.Errorf("%s: %s has no field %s (%s)", where, s.name, name, f.cname)
			continue
		}
		compared++
		if offsets[i] != int64(f.offset) {
			t.Errorf("%s: %s.%s is at %d, in C at %d", where, s.name, name, offsets[i], f.offset)
		}
		if n := sizes.Sizeof(vars[i].Type()); f.unit == "" && n != int64(f.size) {
			t.Errorf("%s: %s.%s has %d bytes, in C %d", where, s.name, name, n, f.size)
		}
	}
	return compared
}
