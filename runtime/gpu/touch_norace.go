//go:build !race

package gpu

// A touch does nothing without the race detector.
type touch struct{}

func touchWritten([]byte) touch { return touch{} }
func touchRead([]byte) touch    { return touch{} }
func (touch) over()             {}
