package main

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/puregpu/puregpu/symbols"
)

// A leaf is an elementary part of a parameter: a number, a pointer, an array of numbers, or a
// union.
type leaf struct {
	// Path in C after the parameter: "srcPitch", "location.id", "params[1].x"; empty for the
	// parameter itself.
	path    string
	offset  int
	size    int // 0 if the table does not say the size, as for a parameter of type int
	pointer bool
	enum    *symbols.Enum // nil for other types
}

// types finds the types of a table by name.
type types struct {
	table   *symbols.Table
	structs map[string]*symbols.Struct
	enums   map[string]*symbols.Enum
	aliases map[string]string // also has the handles, as pointers to their tags
}

func typesOf(t *symbols.Table) *types {
	x := &types{table: t, structs: map[string]*symbols.Struct{}, enums: map[string]*symbols.Enum{}, aliases: map[string]string{}}
	for i := range t.Structs {
		x.structs[t.Structs[i].Name] = &t.Structs[i]
	}
	for i := range t.Enums {
		x.enums[t.Enums[i].Name] = &t.Enums[i]
	}
	for _, h := range t.Handles {
		x.aliases[h.Name] = h.Tag + " *"
	}
	for _, a := range t.Aliases {
		x.aliases[a.Name] = a.Type
	}
	return x
}

// borrowed reports whether a type belongs to another library.
func (x *types) borrowed(name string) bool {
	return slices.ContainsFunc(x.table.Borrowed, func(b symbols.Borrowed) bool { return b.Name == name })
}

// resolve parses a type and replaces aliases.
func (x *types) resolve(ctype string) (symbols.CType, error) {
	t, err := symbols.ParseType(ctype)
	for range 8 {
		of, ok := x.aliases[t.Base]
		if err != nil || !ok {
			break
		}
		var u symbols.CType
		if u, err = symbols.ParseType(of); err == nil {
			u.Pointers += t.Pointers
			u.Dims = append(slices.Clone(t.Dims), u.Dims...)
			t = u
		}
	}
	return t, err
}

// A chooser decides whether a member of an unnamed union counts, by the leaves in it. A nil chooser
// takes every member.
type chooser func(paths []leaf) bool

// leaves returns the leaves of a value of a type, in the order of the fields. It omits reserved
// fields, padding and bit-fields, and the elements of an array of structs after the second. Of an
// unnamed union it returns the leaves of the first member that the function choose accepts, or else
// of the first member. If choose is nil, it returns the leaves of all members.
func (x *types) leaves(t symbols.CType, path string, offset, size int, choose chooser) []leaf {
	s := x.structs[t.Base]
	switch {
	case t.Pointers > 0 && len(t.Dims) == 0:
		return []leaf{{path: path, offset: offset, size: 8, pointer: true}}
	case t.Pointers > 0 || len(t.Dims) > 0 && (s == nil || s.Union) || s != nil && s.Union:
		if s != nil && s.Union && len(t.Dims) == 0 {
			size = s.Size
		}
		return []leaf{{path: path, offset: offset, size: size, pointer: t.Pointers > 0}}
	case len(t.Dims) > 0:
		var all []leaf
		for i := range min(t.Dims[0], 2) {
			one := symbols.CType{Base: t.Base, Dims: t.Dims[1:]}
			all = append(all, x.leaves(one, fmt.Sprintf("%s[%d]", path, i), offset+i*size/t.Dims[0], size/t.Dims[0], choose)...)
		}
		return all
	case s == nil:
		return []leaf{{path: path, offset: offset, size: size, enum: x.enums[t.Base]}}
	}
	var all []leaf
	for _, f := range s.Fields {
		name := strings.ToLower(f.Name)
		if f.Bits > 0 || strings.Contains(name, "reserved") || strings.Contains(name, "pad") {
			continue
		}
		ft, err := x.resolve(f.Type)
		if err != nil {
			continue // no package is generated from a table with unreadable types
		}
		at := path
		switch {
		case f.Anonymous:
		case path == "" || strings.HasSuffix(path, "."):
			at += f.Name
		default:
			at += "." + f.Name
		}
		if u := x.structs[ft.Base]; f.Anonymous && u != nil && u.Union && ft.Pointers+len(ft.Dims) == 0 {
			all = append(all, x.member(u, path, offset+f.Offset, choose)...)
			continue
		}
		all = append(all, x.leaves(ft, at, offset+f.Offset, f.Size, choose)...)
	}
	return all
}

// member returns the leaves of an unnamed union, as leaves does.
func (x *types) member(u *symbols.Struct, path string, offset int, choose chooser) (chosen []leaf) {
	for i, f := range u.Fields {
		one := *u
		one.Union, one.Fields = false, []symbols.Field{f}
		y := *x
		y.structs = maps.Clone(x.structs)
		y.structs[u.Name] = &one
		all := y.leaves(symbols.CType{Base: u.Name}, path, offset, u.Size, choose)
		switch {
		case choose == nil:
			chosen = append(chosen, all...)
		case choose(all):
			return all
		case i == 0:
			chosen = all
		}
	}
	return chosen
}

// among returns a chooser that takes members whose leaves are all in a list, by their paths.
func among(others []leaf) chooser {
	return func(paths []leaf) bool {
		for _, l := range paths {
			if !slices.ContainsFunc(others, func(o leaf) bool { return o.path == l.path }) {
				return false
			}
		}
		return len(paths) > 0
	}
}

// sized reports whether the first field of a struct is the struct's size, by which the library
// knows the caller's version.
func (x *types) sized(t symbols.CType) bool {
	s := x.structs[t.Base]
	return s != nil && !s.Union && len(s.Fields) > 0 && s.Fields[0].Name == "size" && s.Fields[0].Offset == 0
}

// sentinel matches enumerators that programs do not pass, such as the number of enumerators.
var sentinel = regexp.MustCompile(`(?i)(count|range|num_?(options|types|ops|results|input_types)|_num|_max|_end|domain_size|_undefined|max_enum|force_int|0x7fffffff)$`)

// renumbered lists enumerators that have another number in some releases, and for which the bound
// number is right nevertheless.
var renumbered = map[string]string{
	// In CUDA 11.7 and 11.8 the enumerators with these numbers have the suffix _V2. CUDA 12 dropped
	// the suffix. Drivers before 11.7 refuse these numbers.
	"CU_DEVICE_ATTRIBUTE_CAN_USE_STREAM_MEM_OPS":        "an attribute of its own since 11.7",
	"CU_DEVICE_ATTRIBUTE_CAN_USE_64_BIT_STREAM_MEM_OPS": "an attribute of its own since 11.7",
	"CU_DEVICE_ATTRIBUTE_CAN_USE_STREAM_WAIT_VALUE_NOR": "an attribute of its own since 11.7",

	// Only hipRTC 5.3 has other numbers. hiprtcGetErrorString then returns another error's text;
	// the number has no other use.
	"HIPRTC_ERROR_LINKING":                               "only told by a text",
	"HIPRTC_ERROR_BUILTIN_OPERATION_FAILURE":             "only told by a text",
	"HIPRTC_ERROR_NO_NAME_EXPRESSIONS_AFTER_COMPILATION": "only told by a text",
	"HIPRTC_ERROR_NO_LOWERED_NAMES_BEFORE_COMPILATION":   "only told by a text",
	"HIPRTC_ERROR_NAME_EXPRESSION_NOT_VALID":             "only told by a text",
	"HIPRTC_ERROR_INTERNAL_ERROR":                        "only told by a text",
}

// enumerator chooses an enumerator that both enumerations have, if possible one with different
// numbers in the two. It leaves out the enumerators in renumbered, and those that sentinel matches.
// It returns the name and the numbers in a and b, or "" for none.
func enumerator(a, b *symbols.Enum, seed uint64) (name string, in, out int64) {
	type both struct {
		name    string
		in, out int64
	}
	var same, other []both
	for _, v := range a.Values {
		if sentinel.MatchString(v.Name) || renumbered[v.Name] != "" {
			continue
		}
		i := slices.IndexFunc(b.Values, func(w symbols.EnumValue) bool { return w.Name == v.Name })
		if i < 0 {
			continue
		}
		if w := b.Values[i].Value; w == v.Value {
			same = append(same, both{v.Name, v.Value, w})
		} else {
			other = append(other, both{v.Name, v.Value, w})
		}
	}
	if len(other) > 0 {
		same = other
	}
	if len(same) == 0 {
		return "", 0, 0
	}
	x := same[seed%uint64(len(same))]
	return x.name, x.in, x.out
}
