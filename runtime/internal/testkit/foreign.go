package testkit

import (
	"errors"
	"runtime"
	"testing"
	"time"

	"github.com/puregpu/puregpu/runtime/driver"
	"github.com/puregpu/puregpu/runtime/driver/simdriver"
	"github.com/puregpu/puregpu/runtime/gpu"
	"github.com/puregpu/puregpu/runtime/interop"
)

// Natively calls a function of the driver's own API on a thread to which the device is bound, as a
// program or library does.
func Natively(v driver.Device, fn func() error) (err error) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		runtime.LockOSThread() // not unlocked, so that the thread ends with the goroutine
		bound := v.Bind()
		err = errors.Join(fn(), bound)
	}()
	<-done
	return err
}

// Drain waits until a native stream has no work left. It runs on a bound thread.
func Drain(v driver.Device, h driver.Stream) error {
	e, err := v.NewEvent()
	if err != nil {
		return err
	}
	err = v.Record(e, h)
	for done := false; err == nil && !done; {
		if done, err = v.Query(e); !done {
			time.Sleep(10 * time.Microsecond)
		}
	}
	return errors.Join(err, v.DestroyEvent(e))
}

// A Foreign is other code's access to a device: it calls the driver's own API, and has a stream.
type Foreign struct {
	driver.Device
	Stream driver.Stream
}

// NewForeign opens a device as other code does, and makes a stream. The test closes the runtime's
// devices and then calls End.
func NewForeign(t testing.TB, d *simdriver.Driver, device int) *Foreign {
	t.Helper()
	v, err := d.Open(device)
	Must(t, err)
	f := &Foreign{Device: v}
	Must(t, Natively(v, func() (err error) { f.Stream, err = v.NewStream(); return err }))
	return f
}

// Give calls a function on a bound thread, and ends the test if the function fails.
func (f *Foreign) Give(t testing.TB, fn func() error) {
	t.Helper()
	Must(t, Natively(f, fn))
}

// End destroys the stream and closes the device. It ignores the error of a lost device.
func (f *Foreign) End(t testing.TB) {
	t.Helper()
	if err := Natively(f, func() error { return errors.Join(f.DestroyStream(f.Stream), f.Close()) }); err != nil && !errors.Is(err, driver.ErrLost) {
		t.Error(err)
	}
}

// Adopt makes a queue of the stream. If the driver cannot adopt streams, Adopt skips the test.
func (f *Foreign) Adopt(t testing.TB, dev *gpu.Device) *gpu.Queue {
	t.Helper()
	q, err := interop.AdoptStream(dev, f.Stream)
	if errors.Is(err, driver.ErrUnsupported) {
		Must(t, dev.Close())
		f.End(t)
		t.Skip(err)
	}
	Must(t, err)
	return q
}
