//go:build linux && (amd64 || arm64) && !nogpu

package hipdriver

import (
	"errors"
	"fmt"
	"runtime"
	"strings"
	"testing"

	"github.com/puregpu/puregpu/hip"
	"github.com/puregpu/puregpu/runtime/dl"
	"github.com/puregpu/puregpu/runtime/driver"
)

func TestNativeOf(t *testing.T) {
	d := newFake(t, hip64).device()
	if n, ok := NativeOf(d); !ok || n != (Native{d.lib, 0}) {
		t.Errorf("%+v, %v", n, ok)
	}
	for _, other := range []driver.Device{nil, struct{ driver.Device }{d}} {
		if n, ok := NativeOf(other); ok || n != (Native{}) {
			t.Errorf("of another driver: %+v, %v", n, ok)
		}
	}
	if s := Stream(stream0); s != hip.Stream(stream0) {
		t.Errorf("stream %#x", s)
	}
}

// TestEnter has a device current between Enter and Leave, nested, whatever is chosen meanwhile; and the one that was again then.
func TestEnter(t *testing.T) {
	f := newFake(t, hip64)
	drv := f.driver()
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	var devs [2]*device
	for i := range devs {
		d, err := drv.Open(i)
		if err != nil {
			t.Fatal(err)
		}
		defer d.Close()
		devs[i] = d.(*device)
	}
	step := func(err error, want int) {
		t.Helper()
		if got := f.current(); err != nil || got != want {
			t.Errorf("device %d is current, want %d: %v", got, want, err)
		}
	}
	f.calls()
	was, err := devs[1].Enter()
	step(err, 1)
	step(devs[1].Leave(was), 0)
	f.want("hipGetDevice()", "hipSetDevice(1)", "hipSetDevice(0)")
	for _, theirs := range []int{0, 1} {
		step(devs[0].lib.SetDevice(int32(theirs)), theirs)
		outer, err := devs[0].Enter()
		step(err, 0)
		inner, err := devs[1].Enter()
		step(err, 1)
		step(devs[0].lib.SetDevice(0), 0) // as a library might
		step(devs[1].Leave(inner), 0)
		step(devs[0].lib.SetDevice(1), 1)
		step(devs[0].Leave(outer), theirs)
	}
	step(devs[0].lib.SetDevice(0), 0)
}

// TestCaptureErrors has all releases with graphs.
func TestCaptureErrors(t *testing.T) {
	for _, release := range []dl.Version{hip61, hip64, hip70, hip71} {
		t.Run(hip.FormatVersion(release), func(t *testing.T) {
			f := newFake(t, release)
			d := f.device()
			for _, s := range []driver.Stream{0, 1, defaultStreams} {
				_, err := d.EndCapture(s)
				for op, err := range map[string]error{"begin capture": d.BeginCapture(s), "end capture": err} {
					if !errors.Is(err, hip.ErrorInvalidHandle) || !strings.HasPrefix(err.Error(), fmt.Sprintf("hip: %s: device 0 (Fake 0): stream %#x: ", op, uintptr(s))) {
						t.Errorf("%v", err)
					}
				}
			}
			f.want("")
			begun := d.BeginCapture(stream0)
			if err := d.BeginCapture(stream0); begun != nil || !errors.Is(err, hip.ErrorIllegalState) {
				t.Errorf("begun: %v; and twice: %v", begun, err)
			}
			if g, err := d.EndCapture(stream0); g != graph0 || err != nil {
				t.Errorf("graph %#x, %v", g, err)
			}
			f.want("hipStreamBeginCapture(0x5000, 2)", "hipStreamBeginCapture(0x5000, 2)", "hipStreamEndCapture(0x5000)")
			if g, err := d.EndCapture(stream0); g != 0 || !errors.Is(err, hip.ErrorIllegalState) {
				t.Errorf("what was not begun is ended: %#x, %v", g, err)
			}
			f.set("no graph", 1)
			begun = d.BeginCapture(stream0)
			if g, err := d.EndCapture(stream0); begun != nil || g != 0 || !errors.Is(err, hip.ErrorStreamCaptureInvalidated) || !strings.Contains(err.Error(), "stream 0x5000: it has made no graph") {
				t.Errorf("%v, %#x, %v", begun, g, err)
			}
			if f.last() != 0 {
				t.Errorf("the thread remembers %d", f.last())
			}
		})
	}
}
