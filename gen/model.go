// Package gen turns symbol tables into Go source: binding packages such as cuda, nccl, nvml, nvrtc, nvjitlink, cublas, hip and hiprtc, their layout assertions, and
// the echo library and its test that prove every binding. What it needs to know of a library stands in its description.
//
// It works in two steps. Lowering (lower.go, names.go) decides what each C declaration is in Go and refuses, naming the
// symbol, what it does not understand. Emitting (emit_*.go) writes the decision down with jennifer and decides nothing.
package gen

import (
	"strings"

	"github.com/puregpu/puregpu/symbols"
)

// A pkg is one binding package, lowered.
type pkg struct {
	desc       *symbols.Description
	lib        *symbols.Library
	handles    []namedType
	scalars    []namedType
	enums      []enum
	structs    []structure
	cbs        []callback
	aliases    []typeAlias
	consts     []constant
	funcs      []function
	address    bool                        // the overlay speaks of a DevicePtr, and no type of the table is one
	resultPair *structure                  // the struct that functions return as their error, with codes of two libraries; nil if there is none
	misfits    map[string][]symbols.Misfit // by symbol, releases in which a function must not be called
	lenders    map[string]*lowering        // libraries whose types the table takes, by the names of their packages
}

// A namedType is a handle or a number with a type of its own.
type namedType struct {
	cname, name, under string
	doc                string
}

// A typeAlias is a second name of a type.
type typeAlias struct{ cname, name, of string }

// An enum is a named integer type and its values.
type enum struct {
	cname, name, under string
	doc                string
	result             bool // the library's error code
	values             []value
}

// A value is an enumerator.
type value struct {
	cname, name string
	n           int64
	doc         string
	life        string // as lifeOf has it
}

// A constant is a macro.
type constant struct {
	cname, name string
	typ         string // Go type, "" for an untyped constant
	lit         string // Go literal
	life        string // as lifeOf has it
}

// A structure is a C struct or union.
type structure struct {
	cname, name string
	doc         string
	union       bool
	size, align int // in C
	goAlign     int // what Go gives it
	bitAlign    int // of bit-fields that are bytes in Go
	fields      []field
}

// A field is a member, or padding where cname is empty.
type field struct {
	cname, name string
	typ         gotype
	offset      int
	size        int
	bits, bit   int    // of a bit-field: its width, and its first bit in the unit
	unit        string // field that holds the bit-field
	bytes       int    // size of the unit, if it is an array of bytes and not an integer of the bit-field's type
}

// signed reports whether a bit-field's highest bit is a sign.
func (f *field) signed() bool { return f.typ.signed || strings.HasPrefix(f.typ.expr, "int") }

// A callback is a C function type; a program passes a function's address.
type callback struct {
	cname, name string
	doc         string
	sig         string // in C's words, for the documentation
}

// A gotype is a Go type that a C type became.
type gotype struct {
	expr    string // without package, but for types of other libraries: "Stream", "*byte", "[4]uint32", "unsafe.Pointer", "cuda.Stream"
	size    int
	align   int
	kind    kind
	pointer bool // holds Go pointers
	signed  bool // of an enumeration; Go's own integers tell by their names
}

// A kind is the way in which a value becomes an argument word.
type kind int

const (
	kindInt     kind = iota // an integer, or a type that is one underneath
	kindBool                // bool
	kindPointer             // *T or unsafe.Pointer
	kindFloat               // float32
	kindDouble              // float64
	kindStruct              // struct or union by value
	kindArray               // only as a field
)

// A function is a method of Library.
type function struct {
	sym    *symbols.Func
	name   string // Go method
	index  string // constant that indexes the symbol
	sig    string // dl signature: one code a C parameter
	fast   bool   // through a frame on the stack
	params []param
	ret    ret
	value  gotype // of the result, for retValue
	result string // Go name of the result, for retValue and retString
	since  string
	set    string
}

// ret says what becomes of the C result.
type ret int

const (
	retResult ret = iota // an error code
	retVoid
	retString // const char *
	retValue  // a number, a handle or a pointer
)

// A param is a C parameter and its role in Go.
type param struct {
	c      *symbols.Arg
	name   string // Go name of the argument or result
	role   role
	typ    gotype // of the argument, of the slice's element, or of the result
	floats bool   // roleStruct: it has nothing but floats
	len    int    // roleCount, roleCountOut: index of the array that it counts; roleSlice, roleText: of its count, or -1
}

// A role is what a C parameter is in Go.
type role int

const (
	roleValue    role = iota // argument passed on as it is
	roleStruct               // struct by value
	rolePointer              // *T argument
	roleString               // string argument, NUL-terminated on the way
	roleSlice                // slice argument; C gets its first element
	roleCount                // no argument: the length of a slice
	roleCountOut             // result: number of elements; C reads the slice's length from it
	roleOut                  // result
	roleOutStr               // result: the string that C points to
	roleText                 // result: the text that C writes into a buffer
)
