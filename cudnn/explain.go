package cudnn

import (
	"bytes"
	"errors"
	"fmt"
	"runtime"
)

// Explain calls do and returns its error. If that is a [Status], it adds the reason that the library gives for it. The
// library keeps its reasons for each thread, so Explain keeps do on one thread. errors.Is finds the code in the result.
func (l *Library) Explain(do func() error) error {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	return l.explain(do())
}

// explain adds the library's last reason to a Status. The call that failed ran on this thread.
func (l *Library) explain(err error) error {
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
	return fmt.Errorf("%w: %s", err, text)
}
