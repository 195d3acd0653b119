//go:build linux && (amd64 || arm64) && !nogpu

package cudadriver

import (
	"errors"
	"strings"
	"testing"

	"github.com/puregpu/puregpu/cuda"
	"github.com/puregpu/puregpu/internal/testlib"
	"github.com/puregpu/puregpu/nvml"
	"github.com/puregpu/puregpu/runtime/driver"
	"github.com/puregpu/puregpu/runtime/health"
)

// TestLostXID has the error of a lost device name the XID error that NVML told, where there is NVML
// and the device is lost.
func TestLostXID(t *testing.T) {
	for name, c := range map[string]struct {
		defines []string
		code    cuda.Result
		xid     health.XID
	}{
		"lost":                  {[]string{"XID=79"}, cuda.ErrorLaunchFailed, 79},
		"a failed call":         {[]string{"XID=79"}, cuda.ErrorInvalidValue, 0},
		"NVML without events":   {nil, cuda.ErrorLaunchFailed, 0},
		"NVML does not start":   {[]string{"XID=79", "BROKEN"}, cuda.ErrorLaunchFailed, 0},
		"lost by another error": {[]string{"XID=31"}, cuda.ErrorIllegalAddress, 31},
	} {
		f := newFake(t, 13000)
		drv, err := Open(cuda.Options{Path: f.Path}, WithNVML(nvml.Options{Path: testlib.NVML(t, c.defines...).Build(t)}))
		ok(t, err)
		opened, err := drv.Open(0)
		ok(t, err)
		d := opened.(*device)
		<-d.watch.ready // NVML starts in the background
		f.Set("cuEventQuery", int(c.code))
		for range 2 {
			_, err = d.Query(event0)
			xid, has := errors.AsType[health.XID](err)
			if xid != c.xid || has != (c.xid != 0) || !errors.Is(err, c.code) {
				t.Errorf("%s: %v, with XID %d; want %d", name, err, xid, c.xid)
			}
			if c.xid == 79 && !strings.HasSuffix(err.Error(), "; the last that the GPU reported is XID 79: GPU has fallen off the bus (the device is lost)") || errors.Is(err, driver.ErrLost) != (name != "a failed call") {
				t.Errorf("%s: %v", name, err)
			}
		}
		f.Set("cuEventQuery", 0)
		ok(t, d.Close())
	}
}
