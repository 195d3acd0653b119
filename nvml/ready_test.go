//go:build linux && (amd64 || arm64) && !nogpu

package nvml

import (
	"errors"
	"testing"

	"github.com/puregpu/puregpu/internal/testlib"
	"github.com/puregpu/puregpu/runtime/dl"
)

// TestReady checks the errors of ready, and that it leaves NVML stopped.
func TestReady(t *testing.T) {
	for _, c := range []struct {
		defines []string
		want    error
	}{{nil, dl.ErrNoDevice}, {[]string{"BROKEN"}, ErrorDriverNotLoaded}} { // the fake has no devices
		l, err := Open(Options{Path: testlib.NVML(t, c.defines...).Build(t)})
		if err != nil {
			t.Fatal(err)
		}
		if err := ready(&l.Library); !errors.Is(err, c.want) || !errors.Is(err, dl.ErrNoDevice) {
			t.Errorf("%v, want %v", err, c.want)
		}
		if _, err := l.DeviceGetHandleByPciBusId("00000000:3b:00.0"); !errors.Is(err, ErrorUninitialized) {
			t.Errorf("it is left started: %v", err)
		}
	}
}
