package symbols

import (
	"fmt"
	"strconv"
	"strings"
)

// An Overlay holds facts that the headers of a library do not state, written by hand. Every entry,
// except those of Sets and Docs, gives its reason. An entry that names nothing in the table is an
// error.
type Overlay struct {
	Sets      []SetNote      `json:"sets"`
	Functions []FunctionNote `json:"functions"`
	Params    []ParamNote    `json:"params"`
	Types     []TypeNote     `json:"types"`
	Names     []NameNote     `json:"names"`
	Docs      []DocNote      `json:"docs"`
	Changes   []ChangeNote   `json:"changes,omitempty"`
}

// A SetNote is a set of symbols that a release adds together. The first set of a library is its
// required core, and its patterns match symbols only. A function belongs to the first set with a
// pattern that matches its symbol or its API name. A function newer than its set belongs to
// the set's continuation, named after the set and the release: "graphs-12.3". The core has no
// continuation. A function of unknown age is as old as its set.
type SetNote struct {
	Name  string   `json:"name"`
	Since Version  `json:"since"`
	Doc   string   `json:"doc"`
	Match []string `json:"match"` // path.Match patterns
}

// A FunctionNote corrects or completes one function. Name is a symbol, or an API name, which stands
// for all ABI versions of the function.
type FunctionNote struct {
	Name      string  `json:"name"`
	Since     Version `json:"since,omitzero"`
	Callback  Answer  `json:"callback,omitempty"`  // the function may call back into the program before it returns
	Registers bool    `json:"registers,omitempty"` // registers a function that later calls may run before they return
	Skip      bool    `json:"skip,omitempty"`      // not bound
	Use       string  `json:"use,omitempty"`       // what to call in a release without the function: see ChangeNote
	Reason    string  `json:"reason"`
}

// An Answer is true or false, or "?", which a person must replace. It is empty if the overlay gives
// no answer.
type Answer string

// The answers.
const (
	Yes     Answer = "true"
	No      Answer = "false"
	Unknown Answer = "?"
)

// UnmarshalJSON reads an answer.
func (a *Answer) UnmarshalJSON(text []byte) error {
	*a = Answer(strings.Trim(string(text), `"`))
	if (*a == Yes || *a == No) == (text[0] != '"') && (*a == Yes || *a == No || *a == Unknown) {
		return nil
	}
	return fmt.Errorf("%s is neither true nor false", text)
}

// MarshalJSON writes an answer.
func (a Answer) MarshalJSON() ([]byte, error) {
	if a == Yes || a == No {
		return []byte(a), nil
	}
	return []byte(strconv.Quote(string(a))), nil
}

// A ParamNote says how a parameter, "function.parameter", is used. The function is a symbol, or an
// API name for all ABI versions that have such a parameter. Both parts may be path.Match patterns.
// If several notes match a parameter, all apply in turn, and each overrides the fields that it
// sets: first notes with patterns or Types, then a note on the API name, then one on the symbol.
//
// Null says that the pointer may be NULL. Every array may be NULL if its count is 0. If several
// arrays share a count, the first one determines it, and a later one with Null may be NULL
// whatever the count.
type ParamNote struct {
	Name   string   `json:"name"`
	Types  []string `json:"types,omitempty"` // C types, as headers or the table write them: the note applies only to parameters of these types
	Dir    Dir      `json:"dir,omitempty"`
	Null   *bool    `json:"null,omitempty"`
	Len    string   `json:"len,omitempty"`   // the parameter that counts this array; "*n" where n points to a count that the library updates
	Slice  bool     `json:"slice,omitempty"` // an array without a parameter for its length
	Size   string   `json:"size,omitempty"`  // with Slice: the function that returns how many elements the library writes
	Fixed  int      `json:"fixed,omitempty"` // an array of this many elements
	Text   int      `json:"text,omitempty"`  // a buffer for text; this many bytes hold every text that the library writes
	Late   string   `json:"late,omitempty"`  // when the library finishes with an output, if that may be after the call: "the split is complete"
	Type   string   `json:"type,omitempty"`  // Go type that is more exact than the C type: "uintptr" for a value that the library only hands back, "DevicePtr"
	Reason string   `json:"reason"`
}

// HowMeant lists the notes that can explain a pointer, one a line.
const HowMeant = `	"dir": "in"          one element, which the library reads
	"dir": "out"         a result of one element
	"dir": "inout"       one element, which the library reads and writes
	"len": "n"           an array that the parameter n counts; "*n" if n is a pointer
	"slice": true        an array that no parameter counts
	"fixed": 3           an array of three elements
	"text": 16           a char * into which the library writes text of at most 16 bytes; with "len": "n" if n is told its size
	"type": "DevicePtr"  device memory; "cuda.DevicePtr" if uses has cuda, "hip.DevicePtr" if it has hip
	"type": "uintptr"    a handle, or what the library only hands back`

// HowCalled lists the notes that can explain a function pointer, one a line.
const HowCalled = `	"callback": true     it may run the function before it returns
	"registers": true    it keeps the function, and later calls may run it before they return
	"callback": false    neither: no call runs it on the thread that makes the call`

// A TypeNote describes a type that its C declaration does not describe fully.
type TypeNote struct {
	Name string `json:"name"`

	// Kind is "result", "address", "handle", "pointer", "struct" or "number". A result is an error
	// code, or a struct with two error codes: one of this library and one of another. An address is
	// in device memory. A typedef of void * is a handle, unless its kind is "pointer": then it is
	// bound as void * is. A number has one of Go's own types. For C's long and unsigned long, the
	// kind "number" says that their different size on Windows does no harm.
	Kind string `json:"kind"`

	Align  int    `json:"align,omitempty"` // alignment, if the C front end does not see it
	Reason string `json:"reason"`

	// Values are path.Match patterns. The macros that match are the error codes of a result that is
	// an integer and not an enumeration.
	Values []string `json:"values,omitempty"`
}

// A NameNote gives a C name a Go name that differs from the rules. The C name is a function symbol,
// a type, an enumerator, a constant, "struct.field" or "function.parameter".
type NameNote struct {
	Name   string `json:"name"`
	Go     string `json:"go"`
	Reason string `json:"reason"`
}

// A ChangeNote describes a difference between releases in a struct, an enumeration, an enumerator
// ("COLOR_RED" or "color.COLOR_RED"), a number, a callback or a function's symbol. Without a note, a
// function is refused in every release whose layouts or parameters differ from the binding's.
//
// Use has the symbol of the function to call instead, or several symbols with " or " between them.
// A comma and a remark may follow. The generator fails if a symbol is not bound, and writes the
// names of Go.
type ChangeNote struct {
	Name     string  `json:"name"`
	Harmless bool    `json:"harmless,omitempty"` // no call fails because of the change
	Since    Version `json:"since,omitzero"`     // release of the change, if that release's headers were not read
	Use      string  `json:"use,omitempty"`      // the replacement to call
	Reason   string  `json:"reason"`
}

// A DocNote is the one-line summary of a function (by API name or symbol), a type or an enumerator,
// in our words. For a function the note is a phrase that continues the function's name, such as
// "makes a stream in the calling thread's current context" after "StreamCreate ".
type DocNote struct {
	Name string `json:"name"`
	Text string `json:"text"`
}
