package busyfile

import (
	"errors"
	"io/fs"
	"syscall"
	"testing"
	"testing/synctest"
	"time"
)

// TestPatience checks that Retry waits for a temporary error to end, and gives up after two
// seconds.
func TestPatience(t *testing.T) {
	for _, code := range []error{syscall.ERROR_ACCESS_DENIED, sharingViolation, deletePending} {
		synctest.Test(t, func(t *testing.T) {
			calls, began := 0, time.Now()
			err := Retry(func() error {
				if calls++; calls < 5 {
					return &fs.PathError{Op: "open", Path: "file", Err: code}
				}
				return nil
			})
			if err != nil || calls != 5 {
				t.Errorf("%v after %d calls", err, calls)
			}
			began = time.Now()
			err = Retry(func() error { return &fs.PathError{Op: "open", Path: "file", Err: code} })
			if took := time.Since(began); !errors.Is(err, code) || took < patience || took > patience+longest {
				t.Errorf("%v after %v", err, took)
			}
		})
	}
}
