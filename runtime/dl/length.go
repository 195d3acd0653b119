package dl

import "fmt"

// A LengthError says that two slices have different lengths, although C takes one count for both.
// The call was not made.
type LengthError struct {
	Package    string
	Function   string // exported name
	A, B       string // names of the slices
	LenA, LenB int
}

// A ShortError says that a slice has fewer elements than C would write to it. The call was not
// made.
type ShortError struct {
	Package  string
	Function string // exported name
	Slice    string // name of the slice
	Len      int
	Need     uint64 // elements that the library writes
	Size     string // method that returns Need
}

func (e *ShortError) Error() string {
	return fmt.Sprintf("%s: %s: %s has %d elements, but the library writes %d, the result of %s", e.Package, e.Function, e.Slice, e.Len, e.Need, e.Size)
}

func (e *LengthError) Error() string {
	return fmt.Sprintf("%s: %s: %s has %d elements and %s has %d; both must have the same number", e.Package, e.Function, e.A, e.LenA, e.B, e.LenB)
}
