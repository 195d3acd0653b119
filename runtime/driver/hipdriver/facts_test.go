//go:build linux && (amd64 || arm64) && !nogpu

package hipdriver

import (
	"errors"
	"testing"

	"github.com/puregpu/puregpu/hip"
	"github.com/puregpu/puregpu/runtime/driver"
)

// TestFactErrors tests links and properties that HIP does not report.
func TestFactErrors(t *testing.T) {
	f := newFake(t, hip64)
	d := f.device()
	other := &device{lib: d.lib, id: d.id + 1, info: driver.Info{Index: 1}}
	f.Set("hipExtGetLinkTypeAndHopCount", int(hip.ErrorInvalidDevice))
	if _, err := d.Link(other); !errors.Is(err, hip.ErrorInvalidDevice) || f.last() != 0 {
		t.Errorf("the kind of the link: %v; the thread's last error is %d", err, f.last())
	}
	// Facts that the library does not know stay 0.
	f.Set("unknown 2", 1)
	infos, err := f.driver().Devices()
	if err != nil || infos[0].CopyEngines != 0 || infos[0].L2 == 0 || f.last() != 0 {
		t.Errorf("%+v, %v; the thread's last error is %d", infos[0], err, f.last())
	}
}
