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

// fakeLibrary is a fake as users write it for tests.
type fakeLibrary struct {
	Library
	size uint64
}

func (f *fakeLibrary) MemAlloc(size uint64) (DevicePtr, error) {
	f.size = size
	return 0x1000, nil
}

// TestFakeEmbedsZeroLibrary: a fake answers the methods that it has, and the zero Library in it
// refuses the others.
func TestFakeEmbedsZeroLibrary(t *testing.T) {
	type memory interface {
		MemAlloc(size uint64) (DevicePtr, error)
		MemFree(p DevicePtr) error
	}
	var _ memory = new(Library)
	var lib memory = new(fakeLibrary)
	if p, err := lib.MemAlloc(8); p != 0x1000 || err != nil {
		t.Errorf("MemAlloc: %v, %v", p, err)
	}
	if err := lib.MemFree(0x1000); !errors.Is(err, dl.ErrNotOpen) {
		t.Errorf("MemFree: %v", err)
	}
}
