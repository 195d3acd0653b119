package simdriver_test

import (
	"bytes"
	"errors"
	"runtime"
	"strings"
	"testing"
	"unsafe"

	"github.com/puregpu/puregpu/runtime/driver"
	"github.com/puregpu/puregpu/runtime/driver/simdriver"
)

// processes makes several drivers of one machine, and opens device 0 of each.
func processes(t *testing.T, n int, c simdriver.Config) (ds []*simdriver.Driver, vs []driver.Device) {
	t.Helper()
	c.Machine = new(simdriver.Machine)
	for range n {
		d, all := open(t, c)
		ds, vs = append(ds, d), append(vs, all[0])
	}
	return ds, vs
}

func shared(v driver.Device) interface {
	driver.IPCMem
	driver.IPCEvents
} {
	return v.(interface {
		driver.IPCMem
		driver.IPCEvents
	})
}

// write uploads bytes without waiting.
func write(t *testing.T, v driver.Device, s driver.Stream, p driver.Ptr, data []byte) {
	t.Helper()
	check(t, v.Upload(s, p, unsafe.Pointer(unsafe.SliceData(data)), uint64(len(data))))
}

// TestIPC passes memory between two processes, each of which waits for the other with an event.
func TestIPC(t *testing.T) {
	_, vs := processes(t, 2, simdriver.Config{})
	a, b := vs[0], vs[1]
	m := alloc(t, a, driver.DeviceMem, 100)
	name := must(shared(a).ExportMem(m))(t)
	if again := must(shared(a).ExportMem(m))(t); again != name {
		t.Error("the same memory has two names")
	}
	o := must(shared(b).OpenMem(name))(t)
	if o.Kind != driver.DeviceMem || o.Size != 100 || o.Host != nil {
		t.Errorf("opened %+v", o)
	}
	if again := must(shared(b).OpenMem(name))(t); again != o {
		t.Errorf("opened again %+v, first %+v", again, o)
	}
	check(t, shared(b).CloseMem(o))
	there, back := must(shared(a).NewIPCEvent())(t), must(shared(b).NewIPCEvent())(t)
	thereIn := must(shared(b).OpenEvent(must(shared(a).ExportEvent(there))(t)))(t)
	backIn := must(shared(a).OpenEvent(must(shared(b).ExportEvent(back))(t)))(t)
	sa, sb := stream(t, a), stream(t, b)
	local := alloc(t, b, driver.DeviceMem, 100)
	for i := range byte(50) {
		check(t, a.Fill(sa, m.Ptr, uint32(i), 1, 50))
		check(t, a.Record(there, sa))
		check(t, b.StreamWait(sb, thereIn))
		check(t, b.Copy(sb, o.Ptr+50, o.Ptr, 50))
		check(t, b.Copy(sb, local.Ptr+driver.Ptr(i), o.Ptr+50, 1))
		check(t, b.Record(back, sb))
		check(t, a.StreamWait(sa, backIn))
	}
	check(t, drain(t, a, sa))
	if got := read(t, a, m.Ptr, 100); !bytes.Equal(got, bytes.Repeat([]byte{49}, 100)) {
		t.Errorf("%v", got)
	}
	for i, x := range read(t, b, local.Ptr, 50) {
		if int(x) != i {
			t.Errorf("round %d: %d", i, x)
		}
	}
	// The other process can record the event too.
	check(t, b.Record(thereIn, sb))
	check(t, wait(t, a, there))
	check(t, shared(b).CloseMem(o))
	check(t, b.DestroyEvent(thereIn))
	check(t, a.DestroyEvent(backIn))
	check(t, a.DestroyEvent(there))
	check(t, b.DestroyEvent(back))
	check(t, a.Free(m))
}

// TestIPCWait checks which record of another process StreamWait waits for: the last one before the
// call of StreamWait.
func TestIPCWait(t *testing.T) {
	ds, vs := processes(t, 2, simdriver.Config{})
	a, b := vs[0], vs[1]
	e := must(shared(a).NewIPCEvent())(t)
	in := must(shared(b).OpenEvent(must(shared(a).ExportEvent(e))(t)))(t)
	sa, sb := stream(t, a), stream(t, b)
	check(t, b.StreamWait(sb, in)) // no wait, because the event was never recorded
	check(t, drain(t, b, sb))
	check(t, ds[0].StallStream(sa))
	check(t, a.Fill(sa, alloc(t, a, driver.DeviceMem, 8).Ptr, 0, 1, 8))
	check(t, a.Record(e, sa))
	check(t, b.StreamWait(sb, in))
	behind := record(t, b, sb)
	pending(t, b, behind)
	refused(t, b.DestroyEvent(in), driver.ErrBusy)
	check(t, ds[0].ResumeStream(sa))
	check(t, wait(t, b, behind))
	check(t, b.DestroyEvent(in))
}

// TestIPCMistakes tests wrong uses of shared memory and events.
func TestIPCMistakes(t *testing.T) {
	ds, vs := processes(t, 2, simdriver.Config{Devices: 2})
	a, b := vs[0], vs[1]
	m, host, comm := alloc(t, a, driver.DeviceMem, 64), alloc(t, a, driver.HostMem, 64), alloc(t, a, driver.CommMem, 64)
	name := must(shared(a).ExportMem(m))(t)
	o := must(shared(b).OpenMem(name))(t)
	e := must(shared(a).NewIPCEvent())(t)
	event := must(shared(a).ExportEvent(e))(t)
	in := must(shared(b).OpenEvent(event))(t)
	plain := must(a.NewEvent())(t)
	two := func(_ any, err error) error { return err }
	export := func(v driver.Device, m driver.Mem) error { return two(shared(v).ExportMem(m)) }
	for what, c := range map[string]struct {
		err, want error
		say       string
	}{
		"own memory":               {two(shared(a).OpenMem(name)), driver.ErrSameProcess, "64 bytes"},
		"own event":                {two(shared(a).OpenEvent(event)), driver.ErrSameProcess, ""},
		"no memory":                {two(shared(b).OpenMem(driver.MemHandle{1})), simdriver.ErrInvalidHandle, "it was not exported"},
		"no event":                 {two(shared(b).OpenEvent(driver.EventHandle{1})), simdriver.ErrInvalidHandle, "it was not exported"},
		"memory as event":          {two(shared(b).OpenEvent(driver.EventHandle(name))), simdriver.ErrInvalidHandle, ""},
		"the middle":               {export(a, driver.Mem{Ptr: m.Ptr + 8}), simdriver.ErrInvalidValue, "no allocation of device 0 begins there"},
		"memory of the host":       {export(a, host), simdriver.ErrInvalidValue, ""},
		"memory for communicators": {export(a, comm), simdriver.ErrInvalidValue, "it was not allocated as device memory"},
		"memory that was opened":   {export(b, o), simdriver.ErrInvalidValue, ""},
		"an event that was opened": {two(shared(b).ExportEvent(in)), simdriver.ErrInvalidHandle, ""},
		"an ordinary event":        {two(shared(a).ExportEvent(plain)), simdriver.ErrInvalidHandle, "it was not made by NewIPCEvent"},
		"freeing opened memory":    {b.Free(o), simdriver.ErrInvalidValue, "close it with CloseMem"},
		"closing own memory":       {shared(a).CloseMem(m), simdriver.ErrInvalidValue, "no memory of another process"},
		"closing the middle":       {shared(b).CloseMem(driver.Mem{Ptr: o.Ptr + 8}), simdriver.ErrInvalidValue, ""},
	} {
		t.Run(what, func(t *testing.T) { refused(t, c.err, c.want, c.say) })
	}
	if n := ds[1].Counters().Devices[0]; n.Opened != 1 || n.Bytes != 0 || n.Allocations != 0 || n.Events != 1 {
		t.Errorf("counters %+v", n)
	}
	leaks := strings.Join(ds[1].Leaks(), "\n")
	if !strings.Contains(leaks, "64 bytes of another process, opened at") || !strings.Contains(leaks, "of another process, opened,") {
		t.Errorf("leaks:\n%s", leaks)
	}
	// Another device can open the memory too, because there is a link between the devices.
	far := must(ds[1].Open(1))(t)
	defer far.Close()
	s, elsewhere := stream(t, far), must(shared(far).OpenMem(name))(t)
	check(t, far.Fill(s, elsewhere.Ptr, 7, 1, 64))
	check(t, drain(t, far, s))
	if got := read(t, a, m.Ptr, 1); got[0] != 7 {
		t.Error("another device has not written")
	}
	check(t, shared(far).CloseMem(elsewhere))

	// Memory is unusable after its process has freed it. So is an event after its process has
	// destroyed it.
	sb := stream(t, b)
	check(t, a.DestroyEvent(e))
	refused(t, b.StreamWait(sb, in), simdriver.ErrInvalidHandle, "has destroyed it")
	refused(t, b.Record(in, sb), simdriver.ErrInvalidHandle, "has destroyed it")
	refused(t, two(b.Query(in)), simdriver.ErrInvalidHandle, "has destroyed it")
	check(t, b.DestroyEvent(in))
	check(t, a.Free(m))
	refused(t, two(shared(b).OpenMem(name)), simdriver.ErrInvalidHandle, "was freed")
	check(t, b.Fill(sb, o.Ptr+4, 1, 1, 8))
	err := drain(t, b, sb)
	refused(t, err, driver.ErrLost, "were freed there or closed here")
	var access *simdriver.AccessError
	if !errors.As(err, &access) || !access.Freed || !access.Opened || access.Base != o.Ptr || access.Length != 64 {
		t.Errorf("%+v", access)
	}
}

// TestIPCClosed closes memory while a stream still uses it.
func TestIPCClosed(t *testing.T) {
	_, vs := processes(t, 2, simdriver.Config{})
	m := alloc(t, vs[0], driver.DeviceMem, 64)
	o := must(shared(vs[1]).OpenMem(must(shared(vs[0]).ExportMem(m))(t)))(t)
	check(t, shared(vs[1]).CloseMem(o))
	s := stream(t, vs[1])
	check(t, vs[1].Fill(s, o.Ptr, 1, 1, 8))
	refused(t, drain(t, vs[1], s), driver.ErrLost, "were freed there or closed here")
}

// TestIPCApart checks that memory can be opened on another device if and only if that device has a
// link to the memory's device.
func TestIPCApart(t *testing.T) {
	link := func(kind driver.LinkKind) func(from, to int) driver.Link {
		return func(from, to int) driver.Link { return driver.Link{Kind: kind} }
	}
	for name, c := range map[string]simdriver.Config{
		"apart": {Apart: true}, "without links": {Links: link(driver.LinkNone)}, "linked": {Apart: true, Links: link(driver.LinkPCIe)},
	} {
		t.Run(name, func(t *testing.T) {
			c.Devices = 2
			ds, vs := processes(t, 2, c)
			name := must(shared(vs[0]).ExportMem(alloc(t, vs[0], driver.DeviceMem, 64)))(t)
			far := must(ds[1].Open(1))(t)
			defer far.Close()
			m, err := shared(far).OpenMem(name)
			f := must(memSharing(vs[0]).ExportShareable(alloc(t, vs[0], driver.ShareableMem, 64)))(t)
			defer f.Close()
			shareable, err2 := memSharing(far).ImportShareable(f, 64)
			file := must(sharing(vs[0]).ExportPool(must(pools(vs[0]).NewPool(driver.PoolDesc{Shareable: true}))(t)))(t)
			defer file.Close()
			pool, err3 := sharing(far).ImportPool(file)
			if c.Links != nil && c.Apart {
				check(t, errors.Join(err, err2, err3))
				check(t, errors.Join(shared(far).CloseMem(m), far.Free(shareable), pools(far).DestroyPool(pool)))
				return
			}
			refused(t, err, driver.ErrUnsupported, "memory of device 0 on device 1")
			refused(t, err2, driver.ErrUnsupported, "memory of device 0 on device 1")
			refused(t, err3, driver.ErrUnsupported, "pool of device 0 on device 1")
		})
	}
}

// TestIPCKilled kills a process. Another process has opened the killed process's memory, and waits
// for its event.
func TestIPCKilled(t *testing.T) {
	ds, vs := processes(t, 2, simdriver.Config{})
	a, b := vs[0], vs[1]
	m := alloc(t, a, driver.DeviceMem, 8)
	name := must(shared(a).ExportMem(m))(t)
	o := must(shared(b).OpenMem(name))(t)
	e := must(shared(a).NewIPCEvent())(t)
	in := must(shared(b).OpenEvent(must(shared(a).ExportEvent(e))(t)))(t)
	sa, sb, other := stream(t, a), stream(t, b), stream(t, b)
	write(t, a, sa, m.Ptr, []byte("12345678"))
	check(t, drain(t, a, sa))
	check(t, ds[0].StallStream(sa))
	check(t, a.Fill(sa, m.Ptr, 0, 1, 8))
	check(t, a.Record(e, sa))
	check(t, b.StreamWait(sb, in))
	behind := record(t, b, sb)
	ds[0].Kill()
	refused(t, a.Fill(sa, m.Ptr, 0, 1, 8), simdriver.ErrKilled)
	a.Free(m) // as a program does when it finds the device lost
	a.DestroyEvent(e)
	pending(t, b, behind)
	check(t, b.Record(in, other))
	check(t, wait(t, b, in)) // the new record completes
	if got := read(t, b, o.Ptr, 8); string(got) != "12345678" {
		t.Errorf("%q", got)
	}
	_, err := shared(b).OpenMem(name)
	refused(t, err, simdriver.ErrInvalidHandle, "its process has ended")
	check(t, shared(b).CloseMem(o))
	check(t, b.DestroyStream(sb)) // the wait for the old record never ends
}

// TestIPCRecord tests devices on which an event cannot be recorded while a wait for it is pending.
// This includes waits in another process.
func TestIPCRecord(t *testing.T) {
	caps := simdriver.CUDACaps()
	caps.RerecordEvents = false
	ds, vs := processes(t, 2, simdriver.Config{Caps: &caps})
	a, b := vs[0], vs[1]
	e := must(shared(a).NewIPCEvent())(t)
	in := must(shared(b).OpenEvent(must(shared(a).ExportEvent(e))(t)))(t)
	sa, sb, sc := stream(t, a), stream(t, b), stream(t, b)
	check(t, ds[0].StallStream(sa))
	check(t, a.Fill(sa, alloc(t, a, driver.DeviceMem, 8).Ptr, 0, 1, 8))
	check(t, a.Record(e, sa))
	refused(t, b.Record(in, sc), driver.ErrBusy, "its last record is pending")
	check(t, b.StreamWait(sb, in))
	check(t, ds[1].StallStream(sb))
	refused(t, a.Record(e, sa), driver.ErrBusy, "1 waits for its last record")
	refused(t, b.Record(in, sc), driver.ErrBusy, "1 waits for its last record")
	check(t, ds[0].ResumeStream(sa))
	check(t, wait(t, a, e))
	refused(t, a.Record(e, sa), driver.ErrBusy)
	check(t, ds[1].ResumeStream(sb))
	check(t, drain(t, b, sb))
	check(t, a.Record(e, sa))
}

// TestIPCUnsupported tests devices without shared memory and events.
func TestIPCUnsupported(t *testing.T) {
	_, vs := open(t, simdriver.Config{Caps: &driver.Caps{}})
	v := shared(vs[0])
	two := func(_ any, err error) error { return err }
	for _, err := range []error{
		two(v.ExportMem(driver.Mem{})), two(v.OpenMem(driver.MemHandle{})), v.CloseMem(driver.Mem{}),
		two(v.NewIPCEvent()), two(v.ExportEvent(0)), two(v.OpenEvent(driver.EventHandle{})),
	} {
		refused(t, err, driver.ErrUnsupported)
	}
	if hip := simdriver.HIPCaps(); !hip.IPCMem || hip.IPCEvents {
		t.Errorf("%+v", hip)
	}
}

// TestIPCFaults makes every call fail.
func TestIPCFaults(t *testing.T) {
	ds, vs := processes(t, 2, simdriver.Config{Strict: true})
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	a, b := shared(vs[0]), shared(vs[1])
	check(t, vs[0].Bind())
	check(t, vs[1].Bind()) // the devices are of two drivers, so both are current
	m := alloc(t, vs[0], driver.DeviceMem, 64)
	name := must(a.ExportMem(m))(t)
	e := must(a.NewIPCEvent())(t)
	event := must(a.ExportEvent(e))(t)
	o := must(b.OpenMem(name))(t)
	two := func(_ any, err error) error { return err }
	for _, c := range []struct {
		op   simdriver.Op
		d    *simdriver.Driver
		call func() error
	}{
		{simdriver.OpExportMem, ds[0], func() error { return two(a.ExportMem(m)) }},
		{simdriver.OpNewIPCEvent, ds[0], func() error { return two(a.NewIPCEvent()) }},
		{simdriver.OpExportEvent, ds[0], func() error { return two(a.ExportEvent(e)) }},
		{simdriver.OpOpenMem, ds[1], func() error { return two(b.OpenMem(name)) }},
		{simdriver.OpOpenEvent, ds[1], func() error { return two(b.OpenEvent(event)) }},
		// CloseMem closes the memory although it fails.
		{simdriver.OpCloseMem, ds[1], func() error { return b.CloseMem(o) }},
	} {
		f := c.d.Inject(simdriver.Fault{Op: c.op, N: 1})
		refused(t, c.call(), simdriver.ErrInjected)
		if f.Hits() != 1 || c.d.Counters().Calls[c.op] == 0 {
			t.Errorf("%s: %d hits", c.op, f.Hits())
		}
	}
	refused(t, b.CloseMem(o), simdriver.ErrInvalidValue)
	done := make(chan error)
	go func() { done <- two(a.ExportMem(m)) }()
	if err := <-done; runtime.GOOS == "linux" && !errors.Is(err, simdriver.ErrInvalidContext) {
		t.Errorf("on an unbound thread: %v", err)
	}
}
