// Package gen turns symbol tables into Go source: binding packages such as cuda, nccl and hip, with
// assertions of their layouts. It can also write a test of a package's ABI. The test calls an echo
// library: a C library with the same functions, which record their arguments as C received them.
//
// Gen works in two steps. Lowering (lower*.go, names.go) decides the Go form of each C declaration.
// If a declaration has no Go form, the error names its symbol. Emitting (emit*.go) writes the Go
// forms with jennifer.
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
	address    bool                        // the overlay uses DevicePtr, which no type of the table declares
	resultPair *structure                  // the struct of two error codes that functions return as their error; or nil
	misfits    map[string][]symbols.Misfit // releases in which a function must not be called, by symbol
	lenders    map[string]*lowering        // libraries whose types the table and the overlay may use, by name
}

// A namedType is a handle or a number with a type of its own.
type namedType struct {
	cname, name, under string
	doc                string
}

// A typeAlias is an alternative name of a type.
type typeAlias struct{ cname, name, of string }

// An enum is an enumeration: an integer type and its values. An enum without a name has no type.
type enum struct {
	cname, name, under string
	doc                string
	result             bool // the values are the library's error codes
	values             []value
}

// A value is an enumerator.
type value struct {
	cname, name string
	n           int64
	doc         string
	life        string // the result of lifeOf
}

// A constant is a macro.
type constant struct {
	cname, name string
	typ         string // Go type, "" for an untyped constant
	lit         string // Go literal
	life        string // the result of lifeOf
}

// A structure is a C struct or union.
type structure struct {
	cname, name string
	doc         string
	union       bool
	size, align int // size and alignment in C
	goAlign     int // its alignment in Go
	bitAlign    int // the largest alignment of a bit-field that Go stores as bytes
	fields      []field
}

// A field is a member, or padding where cname is empty.
type field struct {
	cname, name string
	typ         gotype
	offset      int
	size        int
	bits, bit   int    // the width of a bit-field, and its first bit in the unit
	unit        string // field that holds the bit-field
	bytes       int    // the size of the unit if Go stores it as bytes; 0 if it is an integer
}

// signed reports whether the highest bit of a bit-field is its sign.
func (f *field) signed() bool { return f.typ.signed || strings.HasPrefix(f.typ.expr, "int") }

// A callback is a C function type. Its Go type holds the address of a C function.
type callback struct {
	cname, name string
	doc         string
	sig         string // the C type as text, for the documentation
}

// A gotype is the Go form of a C type.
type gotype struct {
	expr   string // such as "Stream", "*byte" or "[4]uint32"; "cuda.Stream" for a type of another library
	size   int
	align  int
	kind   kind
	signed bool // set for a named type of signed integers; Go's own integers show their sign in expr
}

// A kind is the way that a value becomes an argument word.
type kind int

const (
	kindInt     kind = iota // an integer, or a type whose underlying type is one
	kindBool                // bool
	kindPointer             // *T or unsafe.Pointer
	kindFloat               // float32
	kindDouble              // float64
	kindStruct              // struct or union by value
	kindArray               // only as a field
)

// A function is a C function and the method of Library that calls it.
type function struct {
	sym    *symbols.Func
	name   string // Go method
	index  string // constant that indexes the symbol
	sig    string // dl signature: one code for each C parameter, and one for a float result
	fast   bool   // has a fast path, which calls C through a frame on the stack
	params []param
	ret    ret
	value  gotype // type of the result, for retValue
	result string // Go name of the result, for retValue and retString
	since  string
	set    string
	use    string // what to call in a release without the function, in Go's names, or ""
}

// counted reports whether parameter i is an array whose count an earlier array determines.
func (f *function) counted(i int) bool {
	a := f.params[i]
	return a.role == roleSlice && a.len >= 0 && f.params[a.len].len != i
}

// ret says how the C result is used.
type ret int

const (
	retResult ret = iota // an error code, or the resultPair
	retVoid
	retString // const char *
	retValue  // a number, a handle, a pointer or a struct
)

// A param is a C parameter and its role in Go.
type param struct {
	c      *symbols.Arg
	name   string // Go name of the argument or result
	role   role
	typ    gotype // type of the argument, of the slice's element, or of the result
	floats bool   // roleStruct: it has one to four floats and nothing else
	len    int    // roleCount, roleCountOut: index of the array; roleSlice, roleText: index of the count, or -1
}

// A role is the Go form of a C parameter.
type role int

const (
	roleValue    role = iota // argument passed unchanged
	roleStruct               // struct by value
	rolePointer              // *T or unsafe.Pointer argument
	roleString               // string argument, NUL-terminated on the way
	roleSlice                // slice argument; C gets a pointer to its first element
	roleCount                // no argument: the length of a slice
	roleCountOut             // result: the number of elements; before the call it holds the slice's length for C
	roleOut                  // result
	roleOutStr               // result: the string that C points to
	roleText                 // result: the text that C writes into a buffer
)
