package dl

import "fmt"

// A LengthError says that two slices which C counts with one number have different lengths. The call was not made.
type LengthError struct {
	Function   string // exported name
	A, B       string // names of the slices
	LenA, LenB int
}

func (e *LengthError) Error() string {
	return fmt.Sprintf("%s: %s has %d elements and %s has %d; both must have as many", e.Function, e.A, e.LenA, e.B, e.LenB)
}
