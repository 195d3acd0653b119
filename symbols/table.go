// Package symbols holds the exported functions and types of the GPU libraries. Each library has a
// table, which tools/extract writes from the library's C headers and nobody edits. Beside the table
// is a small overlay, written by hand, for facts that headers do not state.
//
// Every record of a table is one line of JSON, so that a diff shows what a refresh changed. [Load]
// decodes a table, checks it and joins it with its overlay. Load's errors name the file, the record
// and the field.
package symbols

import (
	"cmp"
	"fmt"
	"regexp"
	"strconv"
)

// A Table holds the declarations of one library's headers, on the LP64 platforms (Linux on amd64
// and arm64).
type Table struct {
	Library   string     `json:"library"`            // short name: "cuda", "nccl", "hip"
	Version   Version    `json:"version"`            // of the newest header read
	Releases  []Version  `json:"releases,omitempty"` // releases whose headers were read, oldest first; empty if only the newest was read
	Headers   []Header   `json:"headers"`
	Borrowed  []Borrowed `json:"borrowed,omitempty"` // types of other libraries
	Handles   []Handle   `json:"handles"`
	Scalars   []Scalar   `json:"scalars"`
	Aliases   []Alias    `json:"aliases"`
	Enums     []Enum     `json:"enums"`
	Structs   []Struct   `json:"structs"`
	Callbacks []Callback `json:"callbacks"`
	Constants []Constant `json:"constants"`
	Functions []Function `json:"functions"`
	Refused   []Refusal  `json:"refused,omitempty"` // declarations that the table cannot hold
}

// A Refusal is a declaration that the table leaves out, with the reason.
type Refusal struct {
	Name   string `json:"name"`
	Where  string `json:"where"` // header and line
	Reason string `json:"reason"`
}

func (r Refusal) String() string {
	if r.Where == "" {
		return r.Name + ": " + r.Reason
	}
	return r.Where + ": " + r.Name + ": " + r.Reason
}

// A Header names a file that a table was extracted from, with the file's release and checksum.
type Header struct {
	Name    string  `json:"name"`
	Version Version `json:"version"`
	SHA256  string  `json:"sha256"`
}

// A Handle is an opaque pointer type: typedef struct Tag *Name, or typedef void *Name if Tag is
// "void".
type Handle struct {
	Name string `json:"name"`
	Tag  string `json:"tag"`
	// Struct is set if Name is the name of the struct itself and differs from Tag. C then writes the
	// handle as Name *.
	Struct bool `json:"struct,omitempty"`

	Since Version `json:"since,omitzero"`
	Until Version `json:"until,omitzero"` // newest release that had it, if newer ones do not
	Lib   string  `json:"lib,omitempty"`  // set if only another implementation has it ("rccl")
}

// A Scalar is a typedef of an arithmetic type, such as CUdeviceptr.
type Scalar struct {
	Name  string  `json:"name"`
	Type  string  `json:"type"` // C arithmetic type
	Since Version `json:"since,omitzero"`
	Until Version `json:"until,omitzero"` // newest release that had it, if newer ones do not
	Lib   string  `json:"lib,omitempty"`  // set if only another implementation has it ("rccl")

	Others []OtherScalar `json:"others,omitempty"` // types in other releases
}

// An Alias is another name of a type in the table.
type Alias struct {
	Name string `json:"name"`
	Type string `json:"type"`
}

// An Enum is an enumeration. It may have no name.
type Enum struct {
	Name   string      `json:"name"`          // typedef name, or the tag if there is none
	Tag    string      `json:"tag,omitempty"` // the name after "enum", if it differs
	Signed bool        `json:"signed,omitempty"`
	Size   int         `json:"size,omitempty"` // in bytes, if it is not 4
	Since  Version     `json:"since,omitzero"`
	Until  Version     `json:"until,omitzero"` // newest release that had it, if newer ones do not
	Values []EnumValue `json:"values"`

	Others []OtherEnum `json:"others,omitempty"` // sizes and signs in other releases
}

// Bytes returns the size of the enumeration.
func (e *Enum) Bytes() int { return cmp.Or(e.Size, 4) }

// CType returns the C integer type of the same size and sign.
func (e *Enum) CType() string {
	if n := e.Bytes(); n != 4 {
		return fmt.Sprintf("%sint%d_t", map[bool]string{false: "u"}[e.Signed], 8*n)
	}
	return map[bool]string{true: "int", false: "unsigned int"}[e.Signed]
}

// An EnumValue is one enumerator.
type EnumValue struct {
	Name  string  `json:"name"`
	Value int64   `json:"value"` // in an unsigned enumeration of 8 bytes, the bits of the value
	Since Version `json:"since,omitzero"`
	Until Version `json:"until,omitzero"` // newest release that had it, if newer ones do not
	Lib   string  `json:"lib,omitempty"`  // set if only another implementation has it ("rccl")

	Others []OtherValue `json:"others,omitempty"` // numbers in other releases
}

// A Span is a range of the releases that were read, from Since to Until inclusive.
type Span struct {
	Since Version `json:"since"`
	Until Version `json:"until"`
}

// An OtherScalar is the type of a scalar in releases where it differs from the bound one.
type OtherScalar struct {
	Span
	Type string `json:"type"`
}

// An OtherEnum is the size and the sign of an enumeration in releases where one differs from the
// bound one.
type OtherEnum struct {
	Span
	Signed bool `json:"signed,omitempty"`
	Size   int  `json:"size,omitempty"` // in bytes, if it is not 4
}

// An OtherValue is the number of an enumerator in releases where it differs from the bound one.
type OtherValue struct {
	Span
	Value int64 `json:"value"`
}

// An OtherConstant is the value of a constant in releases where it differs from the bound one.
type OtherConstant struct {
	Span
	Type  string `json:"type"`
	Value string `json:"value"`
}

// A Layout is a struct's layout in releases where it differs from the bound one.
type Layout struct {
	Span
	Size   int     `json:"size"`
	Align  int     `json:"align"`
	Fields []Field `json:"fields"`
}

// A Signature is the signature of a function or a callback in releases where it differs from the
// bound one, if only in the declared length of an array.
type Signature struct {
	Span
	Result string  `json:"result"`
	Params []Param `json:"params"`

	// Why is set if a table cannot hold the function's declaration in these releases. It says why.
	// The result is then void, and there are no parameters.
	Why string `json:"why,omitempty"`
}

// A Struct is a structure or a union with its layout in bytes.
type Struct struct {
	Name    string  `json:"name"`
	Tag     string  `json:"tag,omitempty"`
	TagOnly bool    `json:"tagOnly,omitempty"` // C knows it only as struct Name or union Name
	Union   bool    `json:"union,omitempty"`
	Size    int     `json:"size"`
	Align   int     `json:"align"`
	Since   Version `json:"since,omitzero"`
	Until   Version `json:"until,omitzero"` // newest release that had it, if newer ones do not
	Lib     string  `json:"lib,omitempty"`  // set if only another implementation has it ("rccl")
	Fields  []Field `json:"fields"`

	Others []Layout `json:"others,omitempty"` // layouts in other releases
	Opaque []Span   `json:"opaque,omitempty"` // releases whose headers name the struct and do not define it
}

// A Field is one member. An anonymous member has Anonymous set and a name from the extractor; C
// code names the members inside it directly.
type Field struct {
	Name      string `json:"name"`
	Type      string `json:"type"`
	Offset    int    `json:"offset"`
	Size      int    `json:"size"`
	Bits      int    `json:"bits,omitempty"` // width, if the field is a bit-field
	BitOffset int    `json:"bit,omitempty"`  // first bit within the unit at Offset
	Anonymous bool   `json:"anonymous,omitempty"`
}

// A Callback is a function type that the library calls through a pointer.
type Callback struct {
	Name   string  `json:"name"`
	Result string  `json:"result"`
	Params []Param `json:"params"`
	Func   bool    `json:"func,omitempty"` // the C name names the function type, not a pointer to it
	Since  Version `json:"since,omitzero"`
	Until  Version `json:"until,omitzero"` // newest release that had it, if newer ones do not
	Lib    string  `json:"lib,omitempty"`  // set if only another implementation has it ("rccl")

	Others []Signature `json:"others,omitempty"` // results and parameters in other releases
}

// A Constant is an object-like macro with a value.
type Constant struct {
	Name  string  `json:"name"`
	Type  string  `json:"type"` // "int", "uint", "float", "string", "pointer" (a constant address), or the name of an enumeration
	Value string  `json:"value"`
	Since Version `json:"since,omitzero"`
	Until Version `json:"until,omitzero"` // newest release that had it, if newer ones do not
	Lib   string  `json:"lib,omitempty"`  // set if only another implementation has it ("rccl")

	Others []OtherConstant `json:"others,omitempty"` // values in other releases
}

// Dir is the direction of a parameter: whether the library reads or writes the memory behind it.
type Dir string

// The directions. Arguments passed by value are always In.
const (
	In    Dir = "in"
	Out   Dir = "out"
	InOut Dir = "inout"
)

// A Function is one ABI version of one function: an exported symbol. A function with several
// versions has one record for each, with the same API name.
type Function struct {
	Symbol     string   `json:"symbol"`         // exported name, for dlsym
	API        string   `json:"api"`            // the name in the header, for programs
	Since      Version  `json:"since,omitzero"` // first release with this ABI version
	Until      Version  `json:"until,omitzero"` // newest release that had it, if newer ones do not
	Result     string   `json:"result"`         // C type
	Params     []Param  `json:"params"`
	Current    bool     `json:"current,omitempty"` // the header's plain name selects this ABI version
	Deprecated bool     `json:"deprecated,omitempty"`
	Twins      []string `json:"twins,omitempty"` // per-thread-stream exports of the same ABI version; recorded, not bound
	Lib        string   `json:"lib,omitempty"`   // set if only another implementation of the API exports it ("rccl")

	Others []Signature `json:"others,omitempty"` // results and parameters in other releases

	// Where names the header and the line of the declaration, or is empty if the description has
	// Headers.Settled.
	Where string `json:"where,omitempty"`

	// Absent is set if the headers declare the function, but the library of the same release does
	// not export it.
	Absent bool `json:"absent,omitempty"`
}

// A Param is a parameter of a function or of a callback.
type Param struct {
	Name string `json:"name"`
	Type string `json:"type"`           // C type, with leading qualifiers: "const char *"
	Dir  Dir    `json:"dir,omitempty"`  // empty means In
	Null bool   `json:"null,omitempty"` // the header says that NULL is allowed
	Unit string `json:"unit,omitempty"` // "bytes" or another unit that the header names

	// C is the declaration if Type leaves out a const or the length of an array: "const char *const
	// *names", "int a[4]". The name of an array type is written out. Tables of embedded libraries
	// lack C.
	C string `json:"c,omitempty"`

	// Guess is set if the header does not say how the pointer is used. Nothing is generated until
	// the overlay or a rule of the description says how.
	Guess bool `json:"guess,omitempty"`
}

var arrayLength = regexp.MustCompile(`^[^(\[]*\[(\d+)\]`)

// Length returns the number of elements that C declares for an array, or 0.
func (p *Param) Length() int {
	if m := arrayLength.FindStringSubmatch(p.C); m != nil {
		n, _ := strconv.Atoi(m[1]) // a number too large becomes the largest one
		return n
	}
	return 0
}

// declaration returns the declaration of a parameter.
func (p *Param) declaration(t *Table) string {
	return cmp.Or(p.C, CDeclaration(t.HeaderType(p.Type), p.Name))
}
