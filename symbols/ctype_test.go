package symbols

import (
	"reflect"
	"strings"
	"testing"
)

func TestParseType(t *testing.T) {
	tests := []struct {
		in   string
		want CType
	}{
		{"int", CType{Base: "int"}},
		{"unsigned long long", CType{Base: "unsigned long long"}},
		{"const char *", CType{Base: "char", Const: true, Pointers: 1}},
		{"void **", CType{Base: "void", Pointers: 2}},
		{"void * *", CType{Base: "void", Pointers: 2}},
		{"CUstream", CType{Base: "CUstream"}},
		{"const ncclComm_t", CType{Base: "ncclComm_t", Const: true}},
		{"constant", CType{Base: "constant"}},
		{"CUgraphNodeParams.anon1", CType{Base: "CUgraphNodeParams.anon1"}},
		{"char[128]", CType{Base: "char", Dims: []int{128}}},
		{"int[2][3]", CType{Base: "int", Dims: []int{2, 3}}},
		{"void *[16]", CType{Base: "void", Pointers: 1, Dims: []int{16}}},
		{"char[0]", CType{Base: "char", Dims: []int{0}}},
	}
	for _, tt := range tests {
		got, err := ParseType(tt.in)
		if err != nil || !reflect.DeepEqual(got, tt.want) {
			t.Errorf("ParseType(%q) = %+v, %v; want %+v", tt.in, got, err, tt.want)
		}
	}
}

func TestParseTypeRefusesWhatIsNoType(t *testing.T) {
	for _, in := range []string{
		"", " ", "*", "const *", "[3]", "int[", "int]", "int[]", "int[x]", "int[-1]", "int[+1]", "int[1.5]", "int&", "int(*)(void)",
		"?", "int;", "ünt", "int[3]*]",
		"int[2147483648]", "int[99999999999999999999]", // too large for any array
		"char[1000000000][1000000000]", "char[1048576][1048576]", "char[1073741824][2]",
		"char" + strings.Repeat("[1]", 9), "char" + strings.Repeat("[0]", 100000),
		"char" + strings.Repeat("*", 9), "char " + strings.Repeat("* ", 100000),
	} {
		if got, err := ParseType(in); err == nil {
			t.Errorf("ParseType(%.40q) = %+v, want an error", in, got)
		}
	}
}

func TestBuiltinsHaveTheirLP64Sizes(t *testing.T) {
	for name, want := range map[string]struct {
		size int
		goes string
	}{
		"char": {1, "byte"}, "int": {4, "int32"}, "unsigned long": {8, "uint64"}, "long long": {8, "int64"},
		"size_t": {8, "uint64"}, "float": {4, "float32"}, "double": {8, "float64"}, "bool": {1, "bool"}, "uint16_t": {2, "uint16"},
	} {
		size, goes, ok := Builtin(name)
		if !ok || size != want.size || goes != want.goes {
			t.Errorf("Builtin(%q) = %d, %q, %t; want %d, %q", name, size, goes, ok, want.size, want.goes)
		}
	}
	if _, _, ok := Builtin("CUstream"); ok {
		t.Error("CUstream is listed as a C built-in")
	}
}

func FuzzParseType(f *testing.F) {
	for _, s := range []string{"int", "const char *", "void *[16]", "int[2][3]", "X.anon1 **", "char[1000000000][9]", "[", "]", "*", "const "} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		got, err := ParseType(s)
		if err != nil {
			return
		}
		if got.Base == "" || got.Pointers > maxPointers || len(got.Dims) > maxDims {
			t.Errorf("ParseType(%q) = %+v", s, got)
		}
		n := 1
		for _, d := range got.Dims {
			if n *= d; d < 0 || n < 0 || n > maxElements {
				t.Errorf("ParseType(%q): the array has %v elements", s, got.Dims)
			}
		}
	})
}
