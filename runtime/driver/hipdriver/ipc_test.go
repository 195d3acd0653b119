//go:build linux && (amd64 || arm64) && !nogpu

package hipdriver

import (
	"errors"
	"testing"

	"github.com/puregpu/puregpu/runtime/driver"
)

// TestNoIPC tests a library that lacks a function for shared memory.
func TestNoIPC(t *testing.T) {
	d := newFake(t, hip64, "hipIpcOpenMemHandle").device()
	if d.Caps().IPCMem {
		t.Error("a library without one of the functions")
	}
	calls := all(d)
	for _, op := range []string{"export memory", "open memory", "close memory"} {
		if err := calls[op](); !errors.Is(err, driver.ErrUnsupported) {
			t.Errorf("%s: %v", op, err)
		}
	}
}
