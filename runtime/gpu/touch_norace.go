//go:build !race

package gpu

// A touch does nothing without the race detector.
type touch struct{}

func touchWritten([]byte) touch { return touch{} }
func (touch) over()             {}
func land(dst, src []byte)      { copy(dst, src) }
