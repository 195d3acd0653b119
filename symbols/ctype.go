package symbols

import (
	"fmt"
	"strconv"
	"strings"
)

// A CType is a parsed C type: a base type, the number of pointers to it, and the dimensions of an
// array.
type CType struct {
	Base     string // such as "unsigned int", "CUstream" or "CUgraphNodeParams.anon1"
	Const    bool   // the base is const
	Pointers int
	Dims     []int // dimensions of an array of these pointers, outermost first
}

// The limits are far above any C type of a GPU library; a table that exceeds them is damaged.
const (
	maxPointers = 8
	maxDims     = 8
	maxElements = 1 << 30 // elements of an array, all dimensions together
	maxStruct   = 1 << 27 // bytes of a struct; its number of bits fits into an int of 32 bits
)

// ParseType reads a type as a table spells it.
func ParseType(s string) (CType, error) {
	var t CType
	rest := s
	elements := 1
	for strings.HasSuffix(rest, "]") {
		i := strings.LastIndexByte(rest, '[')
		if i < 0 {
			return t, fmt.Errorf("type %q: unbalanced bracket", s)
		}
		n, err := strconv.ParseUint(rest[i+1:len(rest)-1], 10, 31)
		if err != nil {
			return t, fmt.Errorf("type %q: bad array length", s)
		}
		if len(t.Dims) == maxDims || int(n) > maxElements/max(elements, 1) {
			return t, fmt.Errorf("type %q: the array is too large", s)
		}
		elements *= max(int(n), 1)
		t.Dims = append([]int{int(n)}, t.Dims...)
		rest = rest[:i]
	}
	for {
		rest = strings.TrimSpace(rest)
		if !strings.HasSuffix(rest, "*") {
			break
		}
		if t.Pointers++; t.Pointers > maxPointers {
			return t, fmt.Errorf("type %q: too many pointers", s)
		}
		rest = rest[:len(rest)-1]
	}
	if r, ok := strings.CutPrefix(rest, "const "); ok {
		t.Const, rest = true, r
	}
	for _, r := range rest {
		if !(r == '_' || r == '.' || r == ' ' || r >= '0' && r <= '9' || r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z') {
			return t, fmt.Errorf("type %q: cannot read %q", s, rest)
		}
	}
	if rest == "" || rest == "const" {
		return t, fmt.Errorf("type %q has no base", s)
	}
	t.Base = rest
	return t, nil
}

// builtins are C's built-in types, with their size in bytes on LP64 and the Go type of the same
// size and kind.
var builtins = map[string]struct {
	size int
	goes string
}{
	"void": {0, ""}, "bool": {1, "bool"}, "char": {1, "byte"}, "signed char": {1, "int8"}, "unsigned char": {1, "uint8"},
	"short": {2, "int16"}, "unsigned short": {2, "uint16"}, "int": {4, "int32"}, "unsigned int": {4, "uint32"},
	"long": {8, "int64"}, "unsigned long": {8, "uint64"}, "long long": {8, "int64"}, "unsigned long long": {8, "uint64"},
	"float": {4, "float32"}, "double": {8, "float64"}, "size_t": {8, "uint64"},
	"int8_t": {1, "int8"}, "uint8_t": {1, "uint8"}, "int16_t": {2, "int16"}, "uint16_t": {2, "uint16"},
	"int32_t": {4, "int32"}, "uint32_t": {4, "uint32"}, "int64_t": {8, "int64"}, "uint64_t": {8, "uint64"},
	"intptr_t": {8, "int64"}, "uintptr_t": {8, "uint64"}, "ptrdiff_t": {8, "int64"},
}

func isBuiltin(name string) bool { _, ok := builtins[name]; return ok }

// sizedBySystem reports whether a C built-in has another size on Windows.
func sizedBySystem(name string) bool { return name == "long" || name == "unsigned long" }

// Builtin returns the size in bytes of a C built-in type, and the Go type of the same shape.
func Builtin(name string) (size int, goType string, ok bool) {
	b, ok := builtins[name]
	return b.size, b.goes, ok
}
