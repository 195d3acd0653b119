package dl

import "fmt"

// A LengthError says that two slices have different lengths, although C takes one count for both.
// The call was not made.
type LengthError struct {
	Function   string // exported name
	A, B       string // names of the slices
	LenA, LenB int
}

func (e *LengthError) Error() string {
	return fmt.Sprintf("%s: %s has %d elements and %s has %d; both must have as many", e.Function, e.A, e.LenA, e.B, e.LenB)
}
