package cudnn

import (
	"bytes"
	"errors"
	"fmt"
	"runtime"

	"github.com/puregpu/puregpu/internal/printable"
)

// WithReason calls the function do and returns the function's error. If the error is a [Status],
// WithReason adds the reason that the library gives. The library keeps its reasons per thread, so
// WithReason locks the goroutine to its thread while that function runs. errors.Is finds the code
// in the returned error.
func (l *Library) WithReason(do func() error) error {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	return l.withReason(do())
}

// withReason adds the library's last reason to a Status. The failed call must have run on the
// calling thread.
func (l *Library) withReason(err error) error {
	if _, ok := errors.AsType[Status](err); !ok {
		return err
	}
	text := make([]byte, 2048)
	if l.GetLastErrorString(text) != nil {
		return err
	}
	text, _, _ = bytes.Cut(text, []byte{0})
	text = bytes.TrimSpace(text)
	if len(text) == 0 {
		return err
	}
	return fmt.Errorf("%w: %s", err, printable.Text(string(text)))
}
