package cuda

import (
	"errors"
	"testing"

	"github.com/puregpu/puregpu/runtime/dl"
)

// TestNotOpenNamesTheCall: the zero Library answers each method, whatever it returns, with an error
// that says which method was called and what to call first.
func TestNotOpenNamesTheCall(t *testing.T) {
	l := new(Library)
	_, getErr := l.DeviceGetName(0)
	for want, err := range map[string]error{
		"cuda: Init: library is not open: call cuda.Open":          l.Init(0),
		"cuda: DeviceGetName: library is not open: call cuda.Open": getErr,
	} {
		if err == nil || err.Error() != want || !errors.Is(err, dl.ErrNotOpen) {
			t.Errorf("%v, want %s", err, want)
		}
	}
	if _, err := l.Slow(0); err == nil || err.Error() != "library is not open" || !errors.Is(err, dl.ErrNotOpen) {
		t.Errorf("a call from elsewhere: %v", err)
	}
}
