package hipdriver

import (
	"fmt"

	"github.com/puregpu/puregpu/hip"
	"github.com/puregpu/puregpu/runtime/driver"
)

var (
	_ driver.Natives  = (*device)(nil)
	_ driver.Capturer = (*device)(nil)
)

// A Native holds the HIP handles of a device of this package. The handles are valid until the
// device is closed.
type Native struct {
	Library *hip.Library
	Device  int32 // the device's index
}

// NativeOf returns the HIP handles of a device, or false if the device is not of this package.
func NativeOf(d driver.Device) (Native, bool) {
	v, ok := d.(*device)
	if !ok {
		return Native{}, false
	}
	return Native{v.lib, v.id}, true
}

// Stream returns the HIP handle of a stream of this package.
func Stream(s driver.Stream) hip.Stream { return hip.Stream(s) }

// Enter makes the device current, and returns the index of the previously current device.
func (d *device) Enter() (uintptr, error) {
	before, err := d.lib.GetDevice()
	if err != nil {
		return 0, d.fail("enter", err, "the thread's current device")
	}
	if err := d.lib.SetDevice(d.id); err != nil {
		return 0, d.fail("enter", err, "make the device current")
	}
	return uintptr(before), nil
}

// Leave makes the device current again that was current before Enter. The parameter, the result of
// Enter, is that device's index.
func (d *device) Leave(was uintptr) error {
	if err := d.lib.SetDevice(int32(was)); err != nil {
		return d.fail("leave", err, "restore the thread's current device")
	}
	return nil
}

// BeginCapture captures in relaxed mode, so that a library and other threads may allocate memory
// meanwhile.
func (d *device) BeginCapture(s driver.Stream) error {
	if d.noGraphs != nil {
		return d.refuse("begin capture", d.noGraphs, "graphs")
	}
	if s <= defaultStreams {
		return d.noStream("begin capture", s)
	}
	d.setCaptured(s, true)
	if err := d.lib.StreamBeginCapture(hip.Stream(s), hip.StreamCaptureModeRelaxed); err != nil {
		d.setCaptured(s, false)
		return d.fail("begin capture", err, "stream %#x", uintptr(s))
	}
	return nil
}

func (d *device) EndCapture(s driver.Stream) (driver.Graph, error) {
	if d.noGraphs != nil {
		return 0, d.refuse("end capture", d.noGraphs, "graphs")
	}
	if s <= defaultStreams {
		return 0, d.noStream("end capture", s)
	}
	g, err := d.lib.StreamEndCapture(hip.Stream(s))
	d.setCaptured(s, false)
	if err == nil && g == 0 {
		err = fmt.Errorf("there is no graph: %w", hip.ErrorStreamCaptureInvalidated)
	}
	if err != nil {
		return 0, d.fail("end capture", err, "stream %#x", uintptr(s))
	}
	return driver.Graph(g), nil
}
