package interop_test

import (
	"bytes"
	"context"
	"encoding/gob"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/puregpu/puregpu/runtime/driver"
	"github.com/puregpu/puregpu/runtime/driver/simdriver"
	"github.com/puregpu/puregpu/runtime/gpu"
	"github.com/puregpu/puregpu/runtime/internal/testkit"
	"github.com/puregpu/puregpu/runtime/interop"
)

// onProcesses runs a test with each set of capabilities. The test gets two drivers, which stand for
// two processes of one machine, and a device of each.
func onProcesses(t *testing.T, test func(t *testing.T, ds [2]*simdriver.Driver, devs [2]*gpu.Device, caps driver.Caps)) {
	for _, set := range capabilitySets() {
		t.Run(set.Name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				machine := new(simdriver.Machine)
				var ds [2]*simdriver.Driver
				var devs [2]*gpu.Device
				for i := range ds {
					ds[i] = newSim(t, simdriver.Config{Machine: machine, Caps: &set.Caps})
					devs[i] = openDevice(t, ds[i], 0, gpu.Options{Queues: 2})
				}
				test(t, ds, devs, set.Caps)
			})
		})
	}
}

// imported exports a buffer and imports it on another process's device. The channel is closed when
// the driver has released the import.
func imported(t *testing.T, on *gpu.Device, b *gpu.Buffer) (*gpu.Buffer, <-chan struct{}) {
	t.Helper()
	h, err := interop.ExportMemory(b)
	must(t, err)
	back := make(chan struct{})
	o, err := interop.ImportMemory(on, h, func() { close(back) })
	must(t, err)
	return o, back
}

// sharedEvent makes an event on a, and imports it on b, another process's device.
func sharedEvent(t *testing.T, a, b *gpu.Device) (own, other *interop.Event) {
	t.Helper()
	own, err := interop.NewSharedEvent(a)
	must(t, err)
	h, err := own.Export()
	must(t, err)
	other, err = interop.ImportEvent(b, h, nil)
	must(t, err)
	return own, other
}

// TestImportMemory checks that a process can use memory that another process has exported.
func TestImportMemory(t *testing.T) {
	onProcesses(t, func(t *testing.T, ds [2]*simdriver.Driver, devs [2]*gpu.Device, caps driver.Caps) {
		a, b := devs[0], devs[1]
		own := allocate(t, a, 1024)
		h, err := interop.ExportMemory(own)
		if !caps.IPCMem {
			_, err2 := interop.ImportMemory(b, interop.MemoryHandle{Size: 1}, nil)
			if !errors.Is(err, driver.ErrUnsupported) || !errors.Is(err2, driver.ErrUnsupported) {
				t.Errorf("%v, %v", err, err2)
			}
			return
		}
		must(t, err)
		if h.Driver != "sim" || h.Device != a.Info().UUID || h.Offset != 0 || h.Size != 1024 {
			t.Errorf("%+v", h)
		}
		h.Offset, h.Size = 512, 256
		back := make(chan struct{})
		o, err := interop.ImportMemory(b, h, func() { close(back) })
		must(t, err)
		if o.Size() != 256 || o.Kind() != gpu.DeviceMem || o.Bytes() != nil || o.Ptr() == 0 || o.Device() != b {
			t.Errorf("%d bytes of kind %v at %#x", o.Size(), o.Kind(), o.Ptr())
		}
		if st := b.Stats(); st.Device.Live != 0 || st.Buffers != 1 {
			t.Errorf("%d bytes of %d buffers are counted", st.Device.Live, st.Buffers)
		}
		s := semaphores(t, 1)[0]
		must(t, a.Queue(0).Submit(gpu.Order{Signal: pts(s, 1)}, gpu.Fill(own.All(), []byte{1})))
		must(t, s.Wait(minute(t), 1)) // the host orders the two processes
		must(t, b.Queue(0).Submit(gpu.Order{Signal: pts(s, 2)}, gpu.Fill(o.Range(16, 16), []byte{2})))
		must(t, s.Wait(minute(t), 2))
		want := bytes.Repeat([]byte{1}, 1024)
		copy(want[512+16:], bytes.Repeat([]byte{2}, 16))
		if got := bytesOf(t, a.Queue(0), own); !bytes.Equal(got, want) {
			t.Errorf("the other process's fill is not there: %v", got)
		}

		// The runtime must close the import in the driver only after the last use of the import.
		host := semaphores(t, 1)[0]
		must(t, b.Queue(0).Submit(order(host, 1, host, 2), gpu.Fill(o.All(), []byte{3})))
		must(t, o.Close())
		synctest.Wait()
		if n := calls(ds[1], 0, simdriver.OpCloseMem); n != 0 {
			t.Errorf("closed %d times, and it is in use", n)
		}
		must(t, host.Signal(1))
		must(t, host.Wait(minute(t), 2))
		<-back
		if n := calls(ds[1], 0, simdriver.OpCloseMem); n != 1 {
			t.Errorf("closed %d times", n)
		}
		// Closing the device closes imports that are still open.
		_, back2 := imported(t, b, own)
		must(t, b.Close())
		<-back2
	})
}

// TestImportMemoryErrors checks the errors of ImportMemory and ExportMemory.
func TestImportMemoryErrors(t *testing.T) {
	onProcesses(t, func(t *testing.T, _ [2]*simdriver.Driver, devs [2]*gpu.Device, caps driver.Caps) {
		if !caps.IPCMem {
			t.Skip("there is no memory that processes share")
		}
		a, b := devs[0], devs[1]
		own := allocate(t, a, 1024)
		h, err := interop.ExportMemory(own)
		must(t, err)
		change := func(f func(h *interop.MemoryHandle)) interop.MemoryHandle {
			h := h
			f(&h)
			return h
		}
		for what, c := range map[string]struct {
			on   *gpu.Device
			h    interop.MemoryHandle
			want error
			say  string
		}{
			"its own":                {a, h, driver.ErrSameProcess, "1024 bytes"},
			"another driver's":       {b, change(func(h *interop.MemoryHandle) { h.Driver = "cuda" }), gpu.ErrArgument, "exported by driver cuda"},
			"nothing":                {b, change(func(h *interop.MemoryHandle) { h.Size = 0 }), gpu.ErrArgument, "0 bytes"},
			"more than there can be": {b, change(func(h *interop.MemoryHandle) { h.Offset = 1<<64 - 1 }), gpu.ErrArgument, ""},
			"more than there is":     {b, change(func(h *interop.MemoryHandle) { h.Offset = 1 }), gpu.ErrRange, "1024 bytes at 1 of an allocation of 1024"},
			"what is behind":         {b, change(func(h *interop.MemoryHandle) { h.Offset, h.Size = 2048, 1 }), gpu.ErrRange, ""},
			"no handle":              {b, interop.MemoryHandle{Size: 1}, simdriver.ErrInvalidHandle, "import shared memory"},
		} {
			called := false
			o, err := interop.ImportMemory(c.on, c.h, func() { called = true })
			if o != nil || !errors.Is(err, c.want) || !strings.Contains(err.Error(), c.say) {
				t.Errorf("%s: %v", what, err)
			}
			if synctest.Wait(); called {
				t.Errorf("%s: it was told that nobody uses it", what)
			}
		}
		raw := interop.MemoryHandle{Handle: h.Handle, Offset: 8, Size: 8} // another program may leave out the driver and the device
		o, err := interop.ImportMemory(b, raw, nil)
		must(t, err)
		if _, err := interop.ExportMemory(o); !errors.Is(err, gpu.ErrArgument) {
			t.Errorf("export of imported memory: %v", err)
		}
		must(t, o.Close())

		hostMem, err := a.Alloc(gpu.HostMem, 64)
		must(t, err)
		empty := allocate(t, a, 0)
		lent, err := interop.ImportPointer(a, own.Ptr(), 64, nil)
		must(t, err)
		pooled, err := testkit.AllocIn(a.Queue(0), gpu.Order{}, nil, 64)
		must(t, err)
		for what, b := range map[string]*gpu.Buffer{"the host's": hostMem, "no bytes": empty, "somebody's": lent, "a pool's": pooled} {
			if _, err := interop.ExportMemory(b); !errors.Is(err, gpu.ErrArgument) {
				t.Errorf("%s: %v", what, err)
			}
		}
		must(t, own.Close())
		if _, err := interop.ExportMemory(own); !errors.Is(err, gpu.ErrClosed) {
			t.Errorf("a closed buffer: %v", err)
		}
		must(t, b.Close())
		if _, err := interop.ImportMemory(b, h, nil); !errors.Is(err, gpu.ErrClosed) {
			t.Errorf("a closed device: %v", err)
		}
	})
}

// TestSharedEvent checks that two processes can use memory in turns, ordered by shared events,
// without a host that waits for a device.
func TestSharedEvent(t *testing.T) {
	onProcesses(t, func(t *testing.T, ds [2]*simdriver.Driver, devs [2]*gpu.Device, caps driver.Caps) {
		a, b := devs[0], devs[1]
		if !caps.IPCEvents {
			_, err := interop.NewSharedEvent(a)
			_, err2 := interop.ImportEvent(a, interop.EventHandle{}, nil)
			if !errors.Is(err, driver.ErrUnsupported) || !errors.Is(err2, driver.ErrUnsupported) {
				t.Errorf("%v, %v", err, err2)
			}
			return
		}
		const rounds = 20
		mem, local := allocate(t, a, 64), allocate(t, b, 64)
		far, _ := imported(t, b, mem)
		there, thereIn := sharedEvent(t, a, b)
		back, backIn := sharedEvent(t, b, a)
		sa, sb := semaphores(t, 1)[0], semaphores(t, 1)[0]
		must(t, ds[0].StallDevice(0)) // a call that waits for a device would never return
		must(t, ds[1].StallDevice(0))
		for i := range uint64(rounds) {
			must(t, a.Queue(0).Submit(order(sa, 3*i, sa, 3*i+1), gpu.Fill(mem.All(), []byte{byte(i + 1)})))
			must(t, a.Queue(0).Submit(order(sa, 3*i+1, sa, 3*i+2), interop.RecordEvent(there)))
			must(t, sa.WaitIssued(minute(t), 3*i+2))
			must(t, b.Queue(1).Submit(order(sb, 3*i, sb, 3*i+1), interop.WaitEvent(thereIn)))
			must(t, b.Queue(1).Submit(order(sb, 3*i+1, sb, 3*i+2), gpu.Copy(local.Range(i, 1), far.Range(i, 1))))
			must(t, b.Queue(0).Submit(order(sb, 3*i+2, sb, 3*i+3), interop.RecordEvent(back)))
			must(t, sb.WaitIssued(minute(t), 3*i+3))
			must(t, a.Queue(1).Submit(order(sa, 3*i+2, sa, 3*i+3), interop.WaitEvent(backIn)))
			must(t, sa.WaitIssued(minute(t), 3*i+3))
		}
		must(t, ds[0].ResumeDevice(0))
		must(t, ds[1].ResumeDevice(0))
		must(t, sa.Wait(minute(t), 3*rounds))
		got := bytesOf(t, b.Queue(0), local, sb.At(3*rounds))[:rounds]
		for i, x := range got {
			if int(x) != i+1 {
				t.Errorf("round %d found %d", i, x)
			}
		}
		for _, e := range []*interop.Event{thereIn, backIn, there, back} {
			must(t, e.Close())
			must(t, e.Close())
		}
		must(t, far.Close())
	})
}

// TestSharedEventParked checks that a wait that was parked waits for the last record that was made
// before the wait is issued.
func TestSharedEventParked(t *testing.T) {
	onProcesses(t, func(t *testing.T, ds [2]*simdriver.Driver, devs [2]*gpu.Device, caps driver.Caps) {
		if !caps.IPCEvents {
			t.Skip("there are no events that processes share")
		}
		a, b := devs[0], devs[1]
		mem := allocate(t, a, 64)
		far, _ := imported(t, b, mem)
		e, in := sharedEvent(t, a, b)
		host := semaphores(t, 1)[0]
		reader, writer := b.Queue(0).NewStream(), a.Queue(0).NewStream()
		must(t, reader.Do(interop.WaitEvent(in))) // waits for nothing, because the event was never recorded
		must(t, reader.Wait(minute(t)))
		got := make([]byte, 64)
		must(t, reader.After(host.At(1)))
		must(t, reader.Do(interop.WaitEvent(in))) // this wait is parked until the host signals
		parked := reader.Point()
		must(t, reader.Download(got, far.All()))
		must(t, ds[0].StallDevice(0))
		must(t, writer.Fill(mem.All(), []byte{7}))
		must(t, writer.Do(interop.RecordEvent(e)))
		recorded := writer.Point()
		must(t, recorded.Semaphore.WaitIssued(minute(t), recorded.Value))
		if err := parked.Semaphore.WaitIssued(in0(t), parked.Value); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("a parked wait is issued: %v", err)
		}
		if list := b.Parked(); len(list) == 0 || list[0].Op != "event wait" {
			t.Errorf("parked: %+v", list)
		}
		must(t, host.Signal(1))
		must(t, parked.Semaphore.WaitIssued(minute(t), parked.Value))
		synctest.Wait()
		if v, err := parked.Semaphore.Query(); v >= parked.Value || err != nil {
			t.Errorf("the wait is over before the record: %d, %v", v, err)
		}
		must(t, ds[0].ResumeDevice(0))
		must(t, reader.Wait(minute(t)))
		if !bytes.Equal(got, bytes.Repeat([]byte{7}, 64)) {
			t.Errorf("%v", got)
		}
		must(t, in.Close())
		must(t, far.Close())
		synctest.Wait()
	})
}

// in0 returns a context that ends soon.
func in0(t *testing.T) context.Context { return in(t, time.Millisecond) }

// TestSharedEventErrors checks the errors of shared events. It also checks that an operation
// completes if its event is closed after the operation was submitted.
func TestSharedEventErrors(t *testing.T) {
	onProcesses(t, func(t *testing.T, ds [2]*simdriver.Driver, devs [2]*gpu.Device, caps driver.Caps) {
		if !caps.IPCEvents {
			t.Skip("there are no events that processes share")
		}
		a, b := devs[0], devs[1]
		e, other := sharedEvent(t, a, b)
		h, err := e.Export()
		must(t, err)
		if h.Driver != "sim" || h.Device != a.Info().UUID {
			t.Errorf("%+v", h)
		}
		wrong := h
		wrong.Driver = "hip"
		_, own := interop.ImportEvent(a, h, nil)
		_, foreign := interop.ImportEvent(b, wrong, nil)
		_, none := interop.ImportEvent(b, interop.EventHandle{}, nil)
		_, again := other.Export()
		s := semaphores(t, 1)[0]
		for what, c := range map[string]struct{ err, want error }{
			"its own":                 {own, driver.ErrSameProcess},
			"another driver's":        {foreign, gpu.ErrArgument},
			"no event":                {none, simdriver.ErrInvalidHandle},
			"exported twice":          {again, simdriver.ErrInvalidHandle},
			"another device's record": {b.Queue(0).Submit(gpu.Order{Signal: pts(s, 1)}, interop.RecordEvent(e)), gpu.ErrArgument},
			"another device's wait":   {b.Queue(0).Submit(gpu.Order{Signal: pts(s, 1)}, interop.WaitEvent(e)), gpu.ErrArgument},
			"nil":                     {b.Queue(0).Submit(gpu.Order{Signal: pts(s, 1)}, interop.WaitEvent(nil)), gpu.ErrArgument},
			"zero":                    {b.Queue(0).Submit(gpu.Order{Signal: pts(s, 1)}, interop.RecordEvent(new(interop.Event))), gpu.ErrArgument},
		} {
			if !errors.Is(c.err, c.want) {
				t.Errorf("%s: %v", what, c.err)
			}
		}
		// Close does not affect operations that were submitted before.
		host := semaphores(t, 1)[0]
		must(t, b.Queue(0).Submit(order(host, 1, s, 1), interop.WaitEvent(other)))
		must(t, other.Close())
		if err := b.Queue(0).Submit(gpu.Order{Signal: pts(s, 2)}, interop.WaitEvent(other)); !errors.Is(err, gpu.ErrClosed) {
			t.Errorf("a closed event: %v", err)
		}
		if _, err := other.Export(); !errors.Is(err, gpu.ErrClosed) {
			t.Errorf("a closed event: %v", err)
		}
		must(t, host.Signal(1))
		must(t, s.Wait(minute(t), 1))
		eventually(t, "the event is given back", func() bool { b.Queue(0).Flush(); return calls(ds[1], 0, simdriver.OpDestroyEvent) == 1 })

		// If the other process has destroyed its event, only operations that wait for the event
		// fail.
		late, err := interop.ImportEvent(b, h, nil)
		must(t, err)
		must(t, e.Close())
		synctest.Wait()
		must(t, b.Queue(0).Submit(gpu.Order{Signal: pts(s, 2)}, interop.WaitEvent(late)))
		var failed *gpu.SubmitError
		if err := s.Wait(minute(t), 2); !errors.As(err, &failed) || failed.Op != "event wait" || !errors.Is(err, simdriver.ErrInvalidHandle) {
			t.Errorf("an event that is no more: %v", err)
		}
		must(t, b.Queue(0).Submit(gpu.Order{}, gpu.Fill(allocate(t, b, 8).All(), []byte{1})))

		must(t, b.Close())
		sem := semaphores(t, 1)[0]
		if err := b.Queue(0).Submit(gpu.Order{Signal: pts(sem, 1)}, interop.WaitEvent(late)); !errors.Is(err, gpu.ErrClosed) || !errors.Is(sem.Wait(minute(t), 1), gpu.ErrClosed) {
			t.Errorf("a closed device: %v", err)
		}
	})
}

// TestOtherProcessKilled kills process a while process b uses a's memory and waits for a's event.
// The stream of b never passes that wait. Nevertheless b can fail the semaphore that the wait
// signals, the other queues of b work, and Close of b's device returns.
func TestOtherProcessKilled(t *testing.T) {
	onProcesses(t, func(t *testing.T, ds [2]*simdriver.Driver, devs [2]*gpu.Device, caps driver.Caps) {
		if !caps.IPCEvents {
			t.Skip("there are no events that processes share")
		}
		a, b := devs[0], devs[1]
		mem := allocate(t, a, 64)
		far, back := imported(t, b, mem)
		e, in := sharedEvent(t, a, b)
		sa, sb := semaphores(t, 1)[0], semaphores(t, 1)[0]
		must(t, a.Queue(0).Submit(gpu.Order{Signal: pts(sa, 1)}, gpu.Fill(mem.All(), []byte{1})))
		must(t, sa.Wait(minute(t), 1))
		must(t, ds[0].StallDevice(0))
		must(t, a.Queue(0).Submit(gpu.Order{Signal: pts(sa, 2)}, gpu.Fill(mem.All(), []byte{2})))
		must(t, a.Queue(0).Submit(gpu.Order{Wait: pts(sa, 2), Signal: pts(sa, 3)}, interop.RecordEvent(e)))
		must(t, sa.WaitIssued(minute(t), 3))
		must(t, b.Queue(0).Submit(gpu.Order{Signal: pts(sb, 1)}, interop.WaitEvent(in)))
		must(t, b.Queue(0).Submit(gpu.Order{Wait: pts(sb, 1), Signal: pts(sb, 2)}, gpu.Fill(far.All(), []byte{3})))
		ds[0].Kill()
		if err := sa.Wait(minute(t), 3); !errors.Is(err, driver.ErrLost) || !errors.Is(err, simdriver.ErrKilled) {
			t.Errorf("the process that was killed: %v", err)
		}
		gone := errors.New("the other process has gone")
		sb.Fail(gone)
		if err := sb.Wait(minute(t), 2); !errors.Is(err, gone) {
			t.Errorf("%v", err)
		}
		if got := bytesOf(t, b.Queue(1), far); !bytes.Equal(got, bytes.Repeat([]byte{1}, 64)) {
			t.Errorf("its memory has %v", got)
		}
		must(t, far.Close())
		var late *gpu.CloseError
		if err := b.Close(); !errors.As(err, &late) || late.Submissions != 2 || !errors.Is(err, driver.ErrBusy) {
			t.Errorf("close: %v", err)
		}
		synctest.Wait()
		select {
		case <-back:
			t.Error("the memory was given back, and the fill is still to come")
		default:
		}
		a.Close()
	})
}

// TestSharedEventFaults makes each driver call for shared memory and shared events fail once, and
// checks the errors.
func TestSharedEventFaults(t *testing.T) {
	onProcesses(t, func(t *testing.T, ds [2]*simdriver.Driver, devs [2]*gpu.Device, caps driver.Caps) {
		if !caps.IPCEvents {
			t.Skip("there are no events that processes share")
		}
		a, b := devs[0], devs[1]
		mem := allocate(t, a, 64)
		h, err := interop.ExportMemory(mem)
		must(t, err)
		e, err := interop.NewSharedEvent(a)
		must(t, err)
		name, err := e.Export()
		must(t, err)
		for op, call := range map[simdriver.Op]func() error{
			simdriver.OpExportMem:   func() error { _, err := interop.ExportMemory(mem); return err },
			simdriver.OpOpenMem:     func() error { _, err := interop.ImportMemory(b, h, nil); return err },
			simdriver.OpNewIPCEvent: func() error { _, err := interop.NewSharedEvent(a); return err },
			simdriver.OpExportEvent: func() error { _, err := e.Export(); return err },
			simdriver.OpOpenEvent:   func() error { _, err := interop.ImportEvent(b, name, nil); return err },
		} {
			for _, d := range ds {
				defer d.Inject(simdriver.Fault{Op: op, N: 1}).Remove()
			}
			if err := call(); !errors.Is(err, simdriver.ErrInjected) {
				t.Errorf("%s fails: %v", op, err)
			}
		}
		far, back := imported(t, b, mem)
		ds[1].Inject(simdriver.Fault{Op: simdriver.OpCloseMem, N: 1})
		must(t, far.Close())
		<-back
		if err := b.Close(); !errors.Is(err, simdriver.ErrInjected) {
			t.Errorf("Close with a handle that the driver does not close: %v", err)
		}
		ds[0].Inject(simdriver.Fault{Op: simdriver.OpExportEvent, N: 1, Lost: true})
		if _, err := e.Export(); !errors.Is(err, driver.ErrLost) {
			t.Errorf("a lost device: %v", err)
		}
		if _, err := interop.ExportMemory(mem); !errors.Is(err, driver.ErrLost) {
			t.Errorf("a lost device: %v", err)
		}
		a.Close()
	})
}

// TestWaitIssued tests B163: WaitIssued returns when work that will signal the value is issued, or
// when the value is reached or the semaphore has failed. It does not return while that work is
// parked.
func TestWaitIssued(t *testing.T) {
	onEach(t, 1, func(t *testing.T, d *simdriver.Driver, _ driver.Caps) {
		dev := openDevice(t, d, 0, gpu.Options{})
		b := allocate(t, dev, 8)
		host, s := semaphores(t, 1)[0], semaphores(t, 1)[0]
		must(t, d.StallDevice(0))
		must(t, dev.Queue(0).Submit(order(host, 1, s, 5), gpu.Fill(b.All(), []byte{1})))
		issued := make(chan error, 2)
		for _, v := range []uint64{3, 5} {
			go func() { issued <- s.WaitIssued(minute(t), v) }()
		}
		synctest.Wait()
		if len(issued) != 0 {
			t.Error("it is parked")
		}
		if err := s.WaitIssued(in(t, time.Second), 5); !errors.Is(err, context.DeadlineExceeded) {
			t.Error(err)
		}
		must(t, host.Signal(1))
		must(t, <-issued)
		must(t, <-issued)
		must(t, s.WaitIssued(in(t, 0), 5))
		if err := s.WaitIssued(in(t, 0), 6); !errors.Is(err, context.DeadlineExceeded) {
			t.Error(err)
		}
		if v, _ := s.Query(); v != 0 {
			t.Errorf("at %d", v)
		}
		must(t, d.ResumeDevice(0))
		must(t, s.Wait(minute(t), 5))
		must(t, s.WaitIssued(minute(t), 5))
		go func() { issued <- s.WaitIssued(minute(t), 7) }()
		synctest.Wait()
		must(t, s.Signal(7))
		must(t, <-issued)
		go func() { issued <- s.WaitIssued(minute(t), 8) }()
		synctest.Wait()
		why := errors.New("no more")
		s.Fail(why)
		if err := <-issued; !errors.Is(err, why) {
			t.Error(err)
		}
		if err := s.WaitIssued(minute(t), 1); !errors.Is(err, why) {
			t.Error(err)
		}
		var none *gpu.Semaphore
		for _, err := range []error{none.WaitIssued(minute(t), 1), host.WaitIssued(noContext, 1), host.WaitIssued(minute(t), gpu.MaxValue+1)} {
			if !errors.Is(err, gpu.ErrArgument) {
				t.Error(err)
			}
		}
	})
}

// TestHandles checks that decoding an encoded handle returns the handle, and that decoding refuses
// data that is no handle.
func TestHandles(t *testing.T) {
	m := interop.MemoryHandle{Driver: "cuda", Device: [16]byte{1, 15: 2}, Handle: driver.MemHandle{3, 63: 4}, Offset: 5 << 32, Size: 6<<32 + 7}
	e := interop.EventHandle{Driver: "cuda", Device: m.Device, Handle: driver.EventHandle{8, 63: 9}}
	var buf bytes.Buffer
	must(t, gob.NewEncoder(&buf).Encode(m))
	var m2 interop.MemoryHandle
	must(t, gob.NewDecoder(&buf).Decode(&m2))
	md, err := m.MarshalBinary()
	must(t, err)
	ed, err := e.MarshalBinary()
	must(t, err)
	var e2 interop.EventHandle
	must(t, e2.UnmarshalBinary(ed))
	if m2 != m || e2 != e {
		t.Errorf("%+v, %+v", m2, e2)
	}
	for _, data := range [][]byte{nil, {}, []byte("puregpu"), ed, md[:len(md)-1], append(md[:len(md):len(md)], 0), bytes.Replace(md, []byte("memory\x01"), []byte("memory\x02"), 1)} {
		before := m2
		if err := m2.UnmarshalBinary(data); !errors.Is(err, gpu.ErrArgument) || m2 != before {
			t.Errorf("%q: %v, %+v", data, err, m2)
		}
	}
	if err := e2.UnmarshalBinary(md); !errors.Is(err, gpu.ErrArgument) {
		t.Error(err)
	}
	for n := range len(ed) {
		if err := e2.UnmarshalBinary(ed[:n]); !errors.Is(err, gpu.ErrArgument) {
			t.Errorf("%d bytes: %v", n, err)
		}
	}
	m.Driver = strings.Repeat("x", 256)
	if _, err := m.MarshalBinary(); !errors.Is(err, gpu.ErrArgument) {
		t.Error(err)
	}
	m.Driver = m.Driver[:255]
	md, err = m.MarshalBinary()
	must(t, err)
	if must(t, m2.UnmarshalBinary(md)); m2 != m {
		t.Errorf("%+v", m2)
	}
}

// TestSharingFaults calls the function share with faults (see sharingFaults). No stream may hang,
// and nothing may leak.
func TestSharingFaults(t *testing.T) {
	sharingFaults(t, share)
}

// sharingFaults calls the function share many times with two processes: the first time without a
// fault, and then each time with a fault in a later native call of the first process. The native
// call fails, or the operation that it submits loses the device.
func sharingFaults(t *testing.T, share func(t *testing.T, d, other driver.Driver, sound bool) error) {
	for _, kind := range []struct {
		name  string
		fault simdriver.Fault
	}{
		{"a call", simdriver.Fault{}},
		{"a call out of memory", simdriver.Fault{OOM: true}},
		{"a call that loses", simdriver.Fault{Lost: true}},
		{"an operation when it runs", simdriver.Fault{AtExecution: true}},
	} {
		t.Run(kind.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				total, step := uint64(1), uint64(1)
				if raceEnabled { // the race detector is slow
					step = 9
				}
				for n := uint64(0); n <= min(total, 200)+10; n += step { // later calls mostly poll the device
					machine := new(simdriver.Machine)
					d, other := newSim(t, simdriver.Config{Machine: machine}), newSim(t, simdriver.Config{Machine: machine})
					var hit *simdriver.Injected
					if n > 0 {
						f := kind.fault
						f.Device, f.N = simdriver.AnyDevice, n
						hit = d.Inject(f)
					}
					if err := share(t, d, other, n == 0); err != nil {
						t.Fatalf("call %d, which failed %v: %v", n, hit != nil && hit.Hits() > 0, err)
					}
					if n == 0 {
						total = d.Calls()
					}
				}
				t.Logf("%d calls", total)
			})
		})
	}
}

// share makes two processes exchange memory and events. It returns an error if work never ends. If
// sound is true, it also returns an error if a call fails or the data is wrong. After a call has
// failed, share may leave out the rest.
func share(t *testing.T, d, other driver.Driver, sound bool) error {
	var devs [2]*gpu.Device
	for i, d := range []driver.Driver{d, other} {
		dev, err := gpu.Open(d, 0, gpu.Options{Queues: 2, Events: 2})
		if err != nil {
			return failed(sound, err)
		}
		devs[i] = dev
		defer dev.Close() // may return the injected fault
	}
	var bufs, imported [2]*gpu.Buffer
	var events, opened [2]*interop.Event
	for i, dev := range devs {
		var err error
		if bufs[i], err = dev.Alloc(gpu.DeviceMem, 64); err != nil {
			return failed(sound, err)
		}
		if events[i], err = interop.NewSharedEvent(dev); err != nil {
			return failed(sound, err)
		}
	}
	for i, dev := range devs {
		mh, err := interop.ExportMemory(bufs[1-i])
		eh, err2 := events[1-i].Export()
		if err := errors.Join(err, err2); err != nil {
			return failed(sound, err)
		}
		imported[i], err = interop.ImportMemory(dev, mh, nil)
		opened[i], err2 = interop.ImportEvent(dev, eh, nil)
		if err := errors.Join(err, err2); err != nil {
			return failed(sound, err)
		}
	}
	ctx := in(t, 30*time.Second)
	var streams [2]*gpu.Stream
	for i, dev := range devs {
		streams[i] = dev.Queue(1).NewStream()
	}
	for round := range byte(3) { // after a fault, the stream's later calls fail
		for i, s := range streams {
			s.Fill(bufs[i].Range(uint64(round), 1), []byte{10*byte(i) + round + 1})
			s.Do(interop.RecordEvent(events[i]))
			p := s.Point()
			if p.Semaphore.WaitIssued(ctx, p.Value) == nil {
				streams[1-i].Do(interop.WaitEvent(opened[1-i]))
				streams[1-i].Copy(bufs[1-i].Range(32+uint64(round), 1), imported[1-i].Range(uint64(round), 1))
			}
		}
	}
	var errs []error
	for i, s := range streams {
		got := make([]byte, 64)
		s.Download(got, bufs[i].All())
		err := s.Wait(ctx)
		if i == 1 && err != nil && ctx.Err() != nil && !sound { // the first process did not record the event that this stream waits for
			s.Fail(err)
			continue
		}
		if ctx.Err() != nil {
			return errors.New("a stream has neither come to its end nor failed")
		}
		if want := []byte{11, 12, 13}; err == nil && sound && i == 0 && !bytes.Equal(got[32:35], want) {
			return fmt.Errorf("%v came, and %v was to", got[32:35], want)
		}
		errs = append(errs, failed(sound, err))
	}
	for i := range devs { // each process closes its imports before its device
		imported[i].Close()
		opened[i].Close()
	}
	for _, dev := range devs {
		dev.Queue(0).Flush()
	}
	synctest.Wait()
	return errors.Join(errs...)
}

// failed returns err if sound is true, and otherwise nil.
func failed(sound bool, err error) error {
	if sound {
		return err
	}
	return nil
}

// TestSharedEventGarbage checks that ordering the work of two processes by a shared event allocates
// nothing in steady state.
func TestSharedEventGarbage(t *testing.T) {
	if raceEnabled {
		t.Skip("the race detector allocates")
	}
	machine := new(simdriver.Machine)
	var devs [2]*gpu.Device
	for i := range devs {
		devs[i] = openDevice(t, newSim(t, simdriver.Config{Machine: machine}), 0, gpu.Options{Spin: -1, Poll: time.Minute})
	}
	e, in := sharedEvent(t, devs[0], devs[1])
	from, to, ctx := devs[0].Queue(0).NewStream(), devs[1].Queue(0).NewStream(), minute(t)
	turn := func() {
		must(t, from.Do(interop.RecordEvent(e)))
		p := from.Point()
		must(t, p.Semaphore.WaitIssued(ctx, p.Value))
		must(t, to.Do(interop.WaitEvent(in)))
		for end := to.Point(); ; runtime.Gosched() {
			if got, err := end.Semaphore.Query(); err != nil || got >= end.Value {
				break
			}
		}
	}
	for range 300 {
		turn()
	}
	if n := testing.AllocsPerRun(200, turn); n != 0 {
		t.Errorf("%v allocations", n)
	}
}
