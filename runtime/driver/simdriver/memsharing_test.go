package simdriver_test

import (
	"errors"
	"os"
	"runtime"
	"strings"
	"testing"

	"github.com/puregpu/puregpu/runtime/driver"
	"github.com/puregpu/puregpu/runtime/driver/simdriver"
)

func memSharing(v driver.Device) driver.MemSharing { return v.(driver.MemSharing) }

// TestMemSharing shares memory between two processes. Each process maps the memory twice. The
// memory exists until the last mapping is freed.
func TestMemSharing(t *testing.T) {
	ds, vs := processes(t, 2, simdriver.Config{})
	a, b := vs[0], vs[1]
	sa, sb := stream(t, a), stream(t, b)
	m := alloc(t, a, driver.ShareableMem, 100)
	f := must(memSharing(a).ExportShareable(m))(t)
	defer f.Close()
	g := must(memSharing(a).ExportShareable(m))(t) // memory may be exported twice
	defer g.Close()
	o, part, same := must(memSharing(b).ImportShareable(f, 100))(t), must(memSharing(b).ImportShareable(g, 10))(t), must(memSharing(a).ImportShareable(f, 100))(t)
	if o.Kind != driver.ShareableMem || o.Size != 100 || o.Host != nil || part.Size != 10 || part.Ptr == o.Ptr || same.Ptr == m.Ptr {
		t.Errorf("imported %+v, %+v and %+v", o, part, same)
	}
	for i, want := range []struct{ bytes, opened int }{{100, 1}, {0, 2}} {
		if c := ds[i].Counters().Devices[0]; c.Bytes != uint64(want.bytes) || c.Opened != want.opened {
			t.Errorf("process %d has %d bytes and %d of another process", i, c.Bytes, c.Opened)
		}
	}
	check(t, a.Fill(sa, m.Ptr, 1, 1, 100))
	check(t, drain(t, a, sa))
	check(t, b.Fill(sb, part.Ptr, 2, 1, 10))
	check(t, drain(t, b, sb))
	check(t, a.Free(m))
	if got := read(t, a, same.Ptr, 100); got[9] != 2 || got[10] != 1 {
		t.Errorf("%v", got)
	}
	check(t, a.Free(same))
	check(t, b.Free(part))
	if got := read(t, b, o.Ptr, 100); got[9] != 2 || got[10] != 1 {
		t.Errorf("%v", got)
	}
	check(t, b.Free(must(memSharing(b).ImportShareable(f, 100))(t)))
	check(t, b.Free(o))
	refused(t, b.Free(o), simdriver.ErrInvalidValue, "was freed already")
	_, err := memSharing(b).ImportShareable(f, 100)
	refused(t, err, simdriver.ErrInvalidHandle, "no process has that memory any more")
}

// TestMemSharingMistakes tests calls that are refused, and uses that lose the device.
func TestMemSharingMistakes(t *testing.T) {
	ds, all := open(t, simdriver.Config{Devices: 2})
	v, w := all[0], all[1]
	m, plain := alloc(t, v, driver.ShareableMem, 100), alloc(t, v, driver.DeviceMem, 100)
	f := must(memSharing(v).ExportShareable(m))(t)
	defer f.Close()
	o := must(memSharing(v).ImportShareable(f, 100))(t)
	other := must(os.CreateTemp(t.TempDir(), ""))(t)
	defer other.Close()

	for _, c := range []struct {
		err, want error
		say       string
	}{
		{second(memSharing(v).ExportShareable(plain)), simdriver.ErrInvalidValue, "not allocated as shareable"},
		{second(memSharing(v).ExportShareable(o)), simdriver.ErrInvalidValue, "not allocated as shareable"},
		{second(memSharing(v).ExportShareable(driver.Mem{Kind: driver.ShareableMem, Ptr: m.Ptr + 1})), simdriver.ErrInvalidValue, "no allocation of device 0 begins there"},
		{second(memSharing(v).ImportShareable(other, 100)), simdriver.ErrInvalidHandle, "it names no shareable memory"},
		{second(memSharing(v).ImportShareable(f, 101)), simdriver.ErrInvalidValue, "the memory has 100"},
		{second(memSharing(v).ImportShareable(f, 0)), simdriver.ErrInvalidValue, "the memory has 100"},
		{second(v.(driver.IPCMem).ExportMem(m)), simdriver.ErrInvalidValue, "not allocated as device memory"},
		{v.Free(driver.Mem{Kind: driver.DeviceMem, Ptr: o.Ptr}), simdriver.ErrInvalidValue, ""},
	} {
		refused(t, c.err, c.want, c.say)
	}
	far := must(memSharing(w).ImportShareable(f, 100))(t) // w may import memory of v, because there is a link
	s, z := stream(t, v), stream(t, w)
	check(t, v.(driver.Peers).EnablePeer(w))
	check(t, v.(driver.Peers).CopyPeer(s, far.Ptr, w, m.Ptr, v, 100))
	check(t, drain(t, v, s))
	check(t, w.Fill(z, far.Ptr, 1, 1, 100))
	check(t, drain(t, w, z))
	check(t, v.Fill(s, far.Ptr, 1, 1, 1)) // EnablePeer gives no access to shareable memory
	err := drain(t, v, s)
	if e, ok := errors.AsType[*simdriver.AccessError](err); !ok || !e.Barred {
		t.Errorf("%v", err)
	}
	refused(t, err, driver.ErrLost, "pool or shareable")
	check(t, w.Free(far))
	v.Free(m)
	v.Free(o)
	v.Free(plain)
	for _, name := range ds.Leaks() {
		if strings.Contains(name, "bytes") {
			t.Errorf("left behind: %s", name)
		}
	}

	apart, all := open(t, simdriver.Config{Devices: 2, Apart: true})
	m = alloc(t, all[0], driver.ShareableMem, 100)
	f2 := must(memSharing(all[0]).ExportShareable(m))(t)
	defer f2.Close()
	_, err = memSharing(all[1]).ImportShareable(f2, 100)
	refused(t, err, driver.ErrUnsupported, "the hardware has no link")
	check(t, all[0].Free(m))
	if n := apart.Counters().Devices[1].Opened; n != 0 {
		t.Errorf("%d are open", n)
	}

	caps := simdriver.HIPCaps()
	_, all = open(t, simdriver.Config{Caps: &caps})
	for _, err := range []error{second(all[0].Alloc(driver.ShareableMem, 8)), second(memSharing(all[0]).ExportShareable(m)), second(memSharing(all[0]).ImportShareable(f2, 8))} {
		refused(t, err, driver.ErrUnsupported, "")
	}
}

// TestMemSharerKilled kills the exporting process. A process that has imported the memory keeps it,
// and can import it again.
func TestMemSharerKilled(t *testing.T) {
	ds, vs := processes(t, 2, simdriver.Config{})
	a, b := vs[0], vs[1]
	m := alloc(t, a, driver.ShareableMem, 100)
	f := must(memSharing(a).ExportShareable(m))(t)
	defer f.Close()
	s := stream(t, a)
	check(t, a.Fill(s, m.Ptr, 1, 1, 100))
	check(t, drain(t, a, s))
	o := must(memSharing(b).ImportShareable(f, 100))(t)
	ds[0].Kill()
	a.Free(m) // a program must still free memory of a lost device and close the device
	a.Close()
	if got := read(t, b, o.Ptr, 100); got[99] != 1 {
		t.Errorf("%v", got)
	}
	again := must(memSharing(b).ImportShareable(f, 100))(t)
	check(t, b.Free(o))
	ds[1].Kill()
	b.Free(again)
	refused(t, second(memSharing(b).ImportShareable(f, 100)), simdriver.ErrKilled, "")
}

// TestMemSharingFaults makes every call fail.
func TestMemSharingFaults(t *testing.T) {
	d, all := open(t, simdriver.Config{Strict: true})
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	v := all[0]
	check(t, v.Bind())
	m := alloc(t, v, driver.ShareableMem, 100)
	f := must(memSharing(v).ExportShareable(m))(t)
	defer f.Close()
	for op, call := range map[simdriver.Op]func() error{
		simdriver.OpExportShareable: func() error { return second(memSharing(v).ExportShareable(m)) },
		simdriver.OpImportShareable: func() error { return second(memSharing(v).ImportShareable(f, 100)) },
	} {
		hit := d.Inject(simdriver.Fault{Op: op})
		refused(t, call(), simdriver.ErrInjected, string(op))
		hit.Remove()
		check(t, v.Unbind())
		refused(t, call(), simdriver.ErrInvalidContext, string(op))
		check(t, v.Bind())
	}
	check(t, v.Free(m))
}
