package cudadriver

import (
	"fmt"

	"github.com/puregpu/puregpu/cuda"
	"github.com/puregpu/puregpu/runtime/driver"
)

var (
	_ driver.Natives  = (*device)(nil)
	_ driver.Capturer = (*device)(nil)
)

// A Native holds the CUDA handles of a device of this package. The handles are valid until the
// device is closed.
type Native struct {
	Library *cuda.Library
	Device  cuda.Device  // the device's ordinal, which the CUDA runtime library uses too
	Context cuda.Context // primary context
}

// NativeOf returns the CUDA handles of a device, or false if the device is not of this package.
func NativeOf(d driver.Device) (Native, bool) {
	v, ok := d.(*device)
	if !ok {
		return Native{}, false
	}
	return Native{v.lib, v.id, v.ctx}, true
}

// Stream returns the CUDA handle of a stream of this package.
func Stream(s driver.Stream) cuda.Stream { return cuda.Stream(s) }

// Enter pushes the context.
func (d *device) Enter() (uintptr, error) {
	if err := d.lib.CtxPushCurrent(d.ctx); err != nil {
		return 0, d.fail("enter", err, "make the context current")
	}
	return 0, nil
}

// Leave pops the context.
func (d *device) Leave(uintptr) error {
	if _, err := d.lib.CtxPopCurrent(); err != nil {
		return d.fail("leave", err, "restore the thread's context")
	}
	return nil
}

// BeginCapture captures in relaxed mode, so that a library and other threads may allocate memory
// meanwhile. The method settle skips the stream during the capture, because a query would
// invalidate the capture.
func (d *device) BeginCapture(s driver.Stream) error {
	if d.noGraphs != nil {
		return d.fail("begin capture", d.noGraphs, "graphs")
	}
	if s <= defaultStreams {
		return d.noStream("begin capture", s)
	}
	d.listStream(s, false)
	if err := d.lib.StreamBeginCapture(cuda.Stream(s), cuda.StreamCaptureModeRelaxed); err != nil {
		d.listStream(s, true)
		return d.fail("begin capture", err, "stream %#x", uintptr(s))
	}
	return nil
}

func (d *device) EndCapture(s driver.Stream) (driver.Graph, error) {
	if d.noGraphs != nil {
		return 0, d.fail("end capture", d.noGraphs, "graphs")
	}
	if s <= defaultStreams {
		return 0, d.noStream("end capture", s)
	}
	g, err := d.lib.StreamEndCapture(cuda.Stream(s))
	d.listStream(s, true)
	if err == nil && g == 0 {
		err = fmt.Errorf("there is no graph: %w", cuda.ErrorStreamCaptureInvalidated)
	}
	if err != nil {
		return 0, d.fail("end capture", err, "stream %#x", uintptr(s))
	}
	return driver.Graph(g), nil
}

// listStream adds a stream to d.streams if asked is true. Otherwise it removes the stream. The
// method settle queries the streams in d.streams.
func (d *device) listStream(s driver.Stream, asked bool) {
	d.streamsMu.Lock()
	defer d.streamsMu.Unlock()
	if asked {
		d.streams[cuda.Stream(s)] = struct{}{}
	} else {
		delete(d.streams, cuda.Stream(s))
	}
}
