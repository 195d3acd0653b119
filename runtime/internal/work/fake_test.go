package work

import (
	"fmt"
	"unsafe"

	"github.com/puregpu/puregpu/runtime/driver"
)

// A fakeDevice records its calls. The field fail is the number of the call that fails, counted from
// 1.
type fakeDevice struct {
	driver.Device
	calls []string
	fail  int
}

func (d *fakeDevice) note(format string, args ...any) error {
	if d.calls = append(d.calls, fmt.Sprintf(format, args...)); len(d.calls) == d.fail {
		return errFake
	}
	return nil
}

var errFake = fmt.Errorf("the fake's error")

func (d *fakeDevice) Record(e driver.Event, s driver.Stream) error {
	return d.note("record %#x on %d", uintptr(e), uintptr(s))
}

func (d *fakeDevice) StreamWait(s driver.Stream, e driver.Event) error {
	return d.note("%d waits for %#x", uintptr(s), uintptr(e))
}

func (d *fakeDevice) WriteValue(s driver.Stream, p driver.Ptr, value uint64) error {
	return d.note("write %#x to %#x on %d", value, uint64(p), uintptr(s))
}

func (d *fakeDevice) WaitValue(s driver.Stream, p driver.Ptr, value uint64) error {
	return d.note("%d waits for %#x at %#x", uintptr(s), value, uint64(p))
}

func (d *fakeDevice) Fill(s driver.Stream, dst driver.Ptr, pattern uint32, width int, count uint64) error {
	return d.note("fill %d of %#x, width %d, at %#x on %d", count, pattern, width, uint64(dst), uintptr(s))
}

func (d *fakeDevice) FillStrided(s driver.Stream, dst driver.Ptr, pattern uint32, stride, count uint64) error {
	return d.note("fill %d of %#x, %d apart, at %#x on %d", count, pattern, stride, uint64(dst), uintptr(s))
}

func (d *fakeDevice) Copy(s driver.Stream, dst, src driver.Ptr, n uint64) error {
	return d.note("copy %d from %#x to %#x on %d", n, uint64(src), uint64(dst), uintptr(s))
}

func (d *fakeDevice) Upload(s driver.Stream, dst driver.Ptr, src unsafe.Pointer, n uint64) error {
	return d.note("upload %d from %q to %#x on %d", n, *(*byte)(src), uint64(dst), uintptr(s))
}

func (d *fakeDevice) Download(s driver.Stream, dst unsafe.Pointer, src driver.Ptr, n uint64) error {
	return d.note("download %d from %#x to %q on %d", n, uint64(src), *(*byte)(dst), uintptr(s))
}

func (d *fakeDevice) Launch(s driver.Stream, l *driver.Launch) error {
	return d.note("launch %v on %d", *l, uintptr(s))
}

func (d *fakeDevice) Prefetch(s driver.Stream, p driver.Ptr, n uint64, to driver.MemKind) error {
	return d.note("prefetch %d at %#x to %d on %d", n, uint64(p), to, uintptr(s))
}

func (d *fakeDevice) EnablePeer(driver.Device) error { return nil }

func (d *fakeDevice) CopyPeer(s driver.Stream, dst driver.Ptr, to driver.Device, src driver.Ptr, from driver.Device, n uint64) error {
	name := map[driver.Device]string{d: "itself", other: "the other"}
	return d.note("copy %d from %#x of %s to %#x of %s on %d", n, uint64(src), name[from], uint64(dst), name[to], uintptr(s))
}

var other driver.Device = &fakeDevice{fail: -1}
