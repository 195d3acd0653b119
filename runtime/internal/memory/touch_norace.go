//go:build !race

package memory

// A touch does nothing without the race detector.
type touch struct{}

func touchWritten([]byte) touch { return touch{} }
func (touch) over()             {}

// Land copies src to dst. With the race detector, Land also locks the mutex touches (see
// touch_race.go).
func Land(dst, src []byte) { copy(dst, src) }
