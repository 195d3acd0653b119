//go:build !race

package memory

// A touch does nothing without the race detector.
type touch struct{}

func touchWritten([]byte) touch { return touch{} }
func (touch) over()             {}

// Land copies src to dst. One of them is memory of the program.
func Land(dst, src []byte) { copy(dst, src) }
