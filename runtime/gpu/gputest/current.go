package gputest

import (
	"bytes"
	"errors"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"reflect"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/puregpu/puregpu/runtime/collective"
	"github.com/puregpu/puregpu/runtime/driver"
	"github.com/puregpu/puregpu/runtime/gpu"
	"github.com/puregpu/puregpu/runtime/interop"
	"github.com/puregpu/puregpu/testdata/kernels"
)

// A stand has the objects that the tests in the list operations use.
type stand struct {
	*env
	d     *gpu.Device
	other *gpu.Device // another device of the driver, or the same device opened again
	count int         // number of distinct devices: 1 or 2
	group *gpu.Group  // a group of d and other
	b, c  *gpu.Buffer // memory of d, and memory of other
	x     *gpu.Module
	k     *gpu.Kernel // "words", or nil
	p     *gpu.Pool
	comm  *collective.Communicator // a communicator of one rank, or nil
	mode  gpu.Mode                 // the mode of command buffers
	how   string                   // which device is current, for errors

	scratch [2]*gpu.Buffer // memory of the devices d and other, for the method drain
}

// checkCurrent calls f, and reports an error if f has changed the current device.
func (x *stand) checkCurrent(what string, f func()) {
	x.Helper()
	before := x.h.Current()
	f()
	if after := x.h.Current(); after != before {
		x.Errorf("%s, with %s: %v is current, and %v was", what, x.how, after, before)
	}
}

// supported returns true if err is nil, and false if the device lacks the feature. On any other
// error it ends the test.
func (x *stand) supported(err error) bool {
	x.Helper()
	if errors.Is(err, driver.ErrUnsupported) {
		return false
	}
	x.must(err)
	return true
}

// submit calls f three times to submit an operation. The first operation is issued at once, the
// second is parked until the host signals, and the third is parked until a fill on the device
// x.other is issued.
func (x *stand) submit(f func(o gpu.Order) error) {
	x.Helper()
	host, s := x.sem(), x.sem()
	x.checkCurrent("the call", func() { x.must(f(signal(s, 1))) })
	x.checkCurrent("the wait", func() { x.wait(s, 1) })
	x.checkCurrent("the call that parks", func() { x.must(f(between(host, 1, s, 2))) })
	x.checkCurrent("the signal of the host", func() { x.must(host.Signal(1)) })
	x.checkCurrent("the wait", func() { x.wait(s, 2) })
	x.checkCurrent("the call that parks", func() { x.must(f(between(host, 2, s, 3))) })
	x.checkCurrent("the signal of another device", func() { x.must(x.other.Queue(0).Submit(signal(host, 2), gpu.Fill(x.c.Range(0, 4), []byte{1}))) })
	x.checkCurrent("the wait", func() { x.wait(s, 3) })
}

// onQueue tests an Op on a queue.
func (x *stand) onQueue(op gpu.Op) {
	x.Helper()
	x.submit(func(o gpu.Order) error { return x.d.Queue(0).Submit(o, op) })
}

// launch returns a launch of the kernel k.
func (x *stand) launch(g gpu.Grid) gpu.Op {
	return gpu.Launch(x.k, g, uint64(8), x.b.Range(0, 32), x.b.Range(32, 32))
}

// alloc allocates memory of the pool x.p and waits for it.
func (x *stand) alloc() *gpu.Buffer {
	s := x.sem()
	var b *gpu.Buffer
	err := x.d.Queue(0).Submit(signal(s, 1), gpu.Alloc(&b, x.p, 64))
	x.must(err)
	x.wait(s, 1)
	return b
}

// recording makes a command buffer, records to it, and ends it.
func (x *stand) recording(record func(c *gpu.CommandBuffer)) *gpu.CommandBuffer {
	x.Helper()
	c, err := x.d.NewCommandBuffer(gpu.CommandOptions{Mode: x.mode})
	x.must(err)
	record(c)
	x.checkCurrent("CommandBuffer.End", func() { x.must(c.End()) })
	return c
}

// recorded makes a recording, executes it three times, as the method submit does, and closes it.
func (x *stand) recorded(record func(c *gpu.CommandBuffer) (gpu.Command, error)) {
	x.Helper()
	c := x.recording(func(c *gpu.CommandBuffer) {
		x.checkCurrent("the recording", func() {
			_, err := record(c)
			x.must(err)
		})
	})
	x.submit(func(o gpu.Order) error { return x.d.Queue(0).Submit(o, gpu.Execute(c)) })
	x.checkCurrent("CommandBuffer.Close", func() { x.must(c.Close()) })
}

// inRecording tests an Op in a recording.
func (x *stand) inRecording(op gpu.Op) {
	x.Helper()
	x.recorded(func(c *gpu.CommandBuffer) (gpu.Command, error) { return c.Add(op) })
}

// native is a function for Native. It gives a fill to the stream, and then makes the last device
// current: the second device if there are two.
func (x *stand) native(n gpu.NativeCall) error {
	err := n.Device.Fill(n.Stream, n.Ptrs[0], 7, 1, 4)
	x.h.SetCurrent(x.count - 1)
	return err
}

// onComm calls f if the driver has communicators.
func (x *stand) onComm(f func()) {
	if x.comm != nil {
		f()
	}
}

// onEvent calls f with an event that processes can share, if the driver has such events.
func (x *stand) onEvent(f func(e *interop.Event)) {
	x.Helper()
	if e, err := interop.NewSharedEvent(x.d); x.supported(err) {
		f(e)
		x.must(e.Close())
	}
}

// onShared calls f with a pool that processes can share, the file of the pool, and the pool that
// this process imports from the file. If this process cannot import the pool, imported is a zero
// Pool. If the driver has no such pools, onShared does not call f.
func (x *stand) onShared(f func(p *gpu.Pool, file *os.File, imported *interop.Pool)) {
	x.Helper()
	p, err := x.d.NewPool(gpu.PoolOptions{Shareable: true})
	if !x.supported(err) {
		return
	}
	file, err := interop.ExportPool(p)
	x.must(err)
	imported, err := interop.ImportPool(x.d, file)
	if err != nil {
		imported = new(interop.Pool)
	}
	f(p, file, imported)
	x.must(imported.Close())
	x.must(file.Close())
	x.must(p.Close())
}

// onShareable calls f with memory that processes can share by a file, and with the file, if the
// driver has such memory.
func (x *stand) onShareable(f func(b *gpu.Buffer, file *os.File)) {
	x.Helper()
	b, err := x.d.Alloc(gpu.ShareableMem, 64)
	if !x.supported(err) {
		return
	}
	file, err := interop.ExportMemoryFile(b)
	x.must(err)
	f(b, file)
	x.must(file.Close())
	x.must(b.Close())
}

// onStream calls f with a queue that has adopted a native stream, if the driver can adopt streams.
func (x *stand) onStream(f func(q *gpu.Queue)) {
	x.Helper()
	var h driver.Stream
	s := x.d.Queue(0).NewStream()
	if !x.supported(s.Do(gpu.Native("", func(n gpu.NativeCall) (err error) { h, err = n.Device.NewStream(); return err }))) {
		return
	}
	x.must(s.Wait(x.ctx))
	if q, err := interop.AdoptStream(x.d, h); x.supported(err) {
		f(q)
		x.must(q.Close())
	}
	x.must(s.Do(gpu.Native("", func(n gpu.NativeCall) error { return n.Device.DestroyStream(h) })))
	x.must(s.Wait(x.ctx))
}

// values tests WriteValue or WaitValue on host memory. The parameter do submits one of these
// operations. If the driver does not support the operation, values does nothing more.
func (x *stand) values(do func(o gpu.Order, r gpu.Range) error) {
	x.Helper()
	b, err := x.d.Alloc(gpu.HostMem, 8)
	x.must(err)
	if x.supported(do(gpu.Order{}, b.All())) {
		x.submit(func(o gpu.Order) error { return do(o, b.All()) })
	}
	x.must(b.Close())
}

// communicator makes a communicator of one rank.
func (x *stand) communicator() *collective.Communicator {
	x.Helper()
	id, err := collective.NewID(x.d)
	x.must(err)
	c, err := collective.New(x.ctx, x.d, collective.Options{ID: id, Count: 1})
	x.must(err)
	return c
}

// sum returns an all-reduce of the device's memory.
func (x *stand) sum() collective.Operation {
	return collective.AllReduce(x.b.All(), x.b.All(), collective.Float32, collective.Sum())
}

// known allocates memory, registers it by calling register, and ends the registration.
func (x *stand) known(register func(b *gpu.Buffer) (*collective.Memory, error)) {
	x.Helper()
	x.onComm(func() {
		b, err := x.d.Alloc(gpu.CommMem, 1<<16)
		if !x.supported(err) {
			return
		}
		if m, err := register(b); x.supported(err) {
			x.checkCurrent("Close", func() { x.must(m.Close()) })
		}
		x.must(b.Close())
	})
}

// rest suspends and resumes a communicator, if the library supports that.
func (x *stand) rest() {
	x.Helper()
	x.onComm(func() {
		id, err := collective.NewID(x.d)
		x.must(err)
		c, err := collective.New(x.ctx, x.d, collective.Options{ID: id, Count: 1, Plain: true})
		x.must(err)
		able := false
		x.checkCurrent("Suspend", func() { able = x.supported(c.Suspend(x.ctx)) })
		if able {
			x.checkCurrent("Resume", func() { x.must(c.Resume(x.ctx)) })
		}
		x.must(c.Close())
	})
}

// ofCurrent are the types whose exported methods must all have a test in the list operations.
var ofCurrent = []any{(*gpu.Device)(nil), (*gpu.Queue)(nil), (*gpu.Buffer)(nil), (*gpu.Pool)(nil), (*gpu.CommandBuffer)(nil), (*gpu.Module)(nil),
	(*gpu.Kernel)(nil), (*gpu.Group)(nil), (*gpu.Semaphore)(nil), (*collective.Communicator)(nil), (*collective.Memory)(nil), (*interop.Event)(nil), (*interop.Pool)(nil), (*gpu.Timing)(nil)}

// operations are tests of functions and methods of packages gpu, collective and interop. Most tests
// have the name of a function, or of a type and a method. There must be a test for each exported
// method of the types in ofCurrent, and for each name that the function functions returns.
var operations = []struct {
	name string
	run  func(x *stand)
}{
	{"Open", func(x *stand) {
		d, err := gpu.Open(x.h.Driver, 0, gpu.Options{Events: 1})
		x.must(err)
		x.must(d.Close())
		if _, err := gpu.Open(x.h.Driver, 1<<20, gpu.Options{}); err == nil {
			x.Error("a device that there is not is opened")
		}
	}},
	{"Device.Close", func(x *stand) {
		for i := range x.count {
			d, err := gpu.Open(x.h.Driver, i, gpu.Options{})
			x.must(err)
			b, err := d.Alloc(gpu.DeviceMem, 64)
			x.must(err)
			// The work may still be in flight at Close.
			x.must(d.Queue(0).Submit(gpu.Order{}, gpu.Fill(b.All(), []byte{1})))
			x.must(d.Queue(0).Submit(gpu.Order{Wait: points(x.sem(), 1)}, gpu.Fill(b.All(), []byte{1})))
			x.checkCurrent("Close", func() { x.must(d.Close()) })
			x.checkCurrent("Close again", func() { x.must(d.Close()) })
		}
	}},
	{"Device.Shutdown", func(x *stand) {
		for i := range x.count {
			d, err := gpu.Open(x.h.Driver, i, gpu.Options{})
			x.must(err)
			b, err := d.Alloc(gpu.DeviceMem, 64)
			x.must(err)
			// The work may still be in flight at Shutdown.
			x.must(d.Queue(0).Submit(gpu.Order{}, gpu.Fill(b.All(), []byte{1})))
			x.must(d.Queue(0).Submit(gpu.Order{Wait: points(x.sem(), 1)}, gpu.Fill(b.All(), []byte{1})))
			x.checkCurrent("Shutdown", func() { x.must(d.Shutdown(x.ctx)) })
			x.checkCurrent("Shutdown again", func() { x.must(d.Shutdown(x.ctx)) })
		}
	}},
	{"Device.Info", func(x *stand) { x.d.Info() }},
	{"Device.MemInfo", func(x *stand) {
		_, _, err := x.d.MemInfo()
		x.supported(err)
	}},
	{"Device.Link", func(x *stand) {
		for _, to := range []*gpu.Device{x.d, x.other} {
			_, err := x.d.Link(to)
			x.supported(err)
		}
	}},
	{"Device.PriorityRange", func(x *stand) { x.d.PriorityRange() }},
	{"Device.Queue", func(x *stand) { x.d.Queue(1) }},
	{"Device.Queues", func(x *stand) { x.d.Queues() }},
	{"Device.Pick", func(x *stand) { x.d.Pick(0) }},
	{"Device.PickAfter", func(x *stand) { x.d.PickAfter(0, gpu.Point{Semaphore: x.sem(), Value: 1}) }},
	{"Device.Stats", func(x *stand) { x.d.Stats() }},
	{"Device.Parked", func(x *stand) {
		x.must(x.d.Queue(0).Submit(gpu.Order{Wait: points(x.sem(), 1)}, gpu.Barrier()))
		x.checkCurrent("Parked", func() { x.d.Parked() })
	}},
	{"Device.Alloc", func(x *stand) {
		for _, kind := range []gpu.MemKind{gpu.DeviceMem, gpu.HostMem, gpu.ManagedMem} {
			if b, err := x.d.Alloc(kind, 64); x.supported(err) {
				x.must(b.Close())
			}
		}
		if _, err := x.d.Alloc(gpu.DeviceMem, 1<<50); !errors.Is(err, driver.ErrOutOfMemory) {
			x.Errorf("more than there is: %v", err)
		}
	}},
	{"interop.ImportPointer", func(x *stand) {
		b, err := interop.ImportPointer(x.d, x.b.Ptr(), 64, nil)
		x.must(err)
		x.must(b.Close())
	}},
	{"Device.ImportHost", func(x *stand) {
		if b, err := x.d.ImportHost(make([]byte, 64), nil); x.supported(err) {
			x.must(b.Close())
		}
	}},
	{"Device.ImportHostReadOnly", func(x *stand) {
		if b, err := x.d.ImportHostReadOnly(make([]byte, 1<<16), nil); x.supported(err) {
			x.must(b.Close())
		}
	}},
	{"interop.ImportMemory", func(x *stand) {
		if h, err := interop.ExportMemory(x.b); x.supported(err) {
			if _, err := interop.ImportMemory(x.d, h, nil); !errors.Is(err, driver.ErrSameProcess) {
				x.Errorf("this process's own memory: %v", err)
			}
		}
		if _, err := interop.ImportMemory(x.d, interop.MemoryHandle{Size: 1}, nil); err == nil {
			x.Error("no handle is opened")
		}
	}},
	{"interop.ImportMemoryFile", func(x *stand) {
		x.onShareable(func(b *gpu.Buffer, file *os.File) {
			freed := make(chan struct{})
			in, err := interop.ImportMemoryFile(x.d, file, 64, func() { close(freed) })
			x.must(err)
			x.onQueue(gpu.Fill(in.All(), []byte{1}))
			x.checkCurrent("Close", func() { x.must(in.Close()) })
			<-freed
			if _, err := interop.ImportMemoryFile(x.d, nil, 64, nil); !errors.Is(err, gpu.ErrArgument) {
				x.Errorf("%v", err)
			}
		})
	}},
	{"interop.ImportPool", func(x *stand) {
		x.onShared(func(p *gpu.Pool, file *os.File, imported *interop.Pool) {
			if _, err := interop.ImportPool(x.d, nil); !errors.Is(err, gpu.ErrArgument) {
				x.Errorf("%v", err)
			}
		})
	}},
	{"interop.NewSharedEvent", func(x *stand) {
		if e, err := interop.NewSharedEvent(x.d); x.supported(err) {
			x.must(e.Close())
		}
	}},
	{"interop.ImportEvent", func(x *stand) {
		if _, err := interop.ImportEvent(x.d, interop.EventHandle{}, nil); err == nil {
			x.Error("no handle is opened")
		}
	}},
	{"interop.NewEvent", func(x *stand) {
		e, err := interop.NewEvent(x.d)
		x.must(err)
		x.onQueue(interop.RecordEvent(e))
		x.must(e.Close())
	}},
	{"Device.NewTiming", func(x *stand) {
		if t, err := x.d.NewTiming(); x.supported(err) {
			x.must(t.Close())
		}
	}},
	{"Timing.Duration", func(x *stand) {
		if t, err := x.d.NewTiming(); x.supported(err) {
			x.onQueue(gpu.Fill(x.b.All(), []byte{1}).Timed(t))
			x.checkCurrent("Duration", func() {
				if took, err := t.Duration(); err != nil || took < 0 || took > time.Minute {
					x.Errorf("a fill took %v, %v", took, err)
				}
			})
			x.must(t.Close())
		}
	}},
	{"Timing.Close", func(x *stand) {
		if t, err := x.d.NewTiming(); x.supported(err) {
			x.checkCurrent("Close", func() { x.must(t.Close()) })
		}
	}},
	{"interop.AdoptEvent", func(x *stand) {
		e, err := interop.NewEvent(x.d)
		x.must(err)
		freed := make(chan struct{})
		if theirs, err := interop.AdoptEvent(x.d, e.Native(), func() { close(freed) }); x.supported(err) {
			x.onQueue(interop.WaitEvent(theirs))
			x.checkCurrent("Close", func() { x.must(theirs.Close()) })
			<-freed
		}
		x.must(e.Close())
	}},
	{"interop.AdoptStream", func(x *stand) { x.onStream(func(*gpu.Queue) {}) }},
	{"Queue.Close", func(x *stand) {
		x.onStream(func(q *gpu.Queue) {
			x.submit(func(o gpu.Order) error { return q.Submit(o, gpu.Fill(x.b.All(), []byte{1})) })
			x.must(q.Submit(gpu.Order{Wait: points(x.sem(), 1)}, gpu.Fill(x.b.All(), []byte{1})))
			x.checkCurrent("Close", func() { x.must(q.Close()) })
		})
	}},
	{"Device.Has", func(x *stand) { x.d.Has(gpu.DeviceMem) }},
	{"Device.Load", func(x *stand) {
		if x.h.Kernels {
			c, err := x.d.Load(kernels.Basic)
			x.must(err)
			x.must(c.Close())
		}
		if _, err := x.d.Load([]byte("no code\x00")); err == nil {
			x.Error("no code is loaded")
		}
	}},
	{"Device.Compiler", func(x *stand) {
		c, _, err := noCache.Compile(x.d, saxpySource)
		if err == nil {
			x.must(c.Close())
		} else if x.h.Kernels && !errors.Is(err, driver.ErrUnsupported) { // unsupported without a compiler
			x.Error(err)
		}
	}},
	{"Device.LoadCode", func(x *stand) {
		if x.h.Kernels {
			c, err := x.d.LoadCode(driver.Code{Image: kernels.Basic})
			x.must(err)
			x.must(c.Close())
		}
	}},
	{"Device.DefaultPool", func(x *stand) {
		_, err := x.d.DefaultPool()
		x.must(err)
	}},
	{"Device.CurrentPool", func(x *stand) {
		_, err := x.d.CurrentPool()
		x.must(err)
	}},
	{"Device.SetCurrentPool", func(x *stand) {
		before, err := x.d.CurrentPool()
		x.must(err)
		x.must(x.d.SetCurrentPool(x.p))
		x.must(x.d.SetCurrentPool(before))
	}},
	{"Device.NewPool", func(x *stand) {
		for _, o := range []gpu.PoolOptions{{InitialSize: 64}, {Kind: gpu.HostMem}, {Portable: true, InitialSize: 64}, {Over: x.bufferOn(x.d, 4096)}} {
			p, err := x.d.NewPool(o)
			x.must(err)
			x.must(p.Close())
		}
	}},
	{"Device.NewCommandBuffer", func(x *stand) {
		c, err := x.d.NewCommandBuffer(gpu.CommandOptions{Mode: x.mode})
		x.must(err)
		x.must(c.Close())
	}},

	{"collective.NewID", func(x *stand) {
		if x.comm != nil {
			_, err := collective.NewID(x.d)
			x.must(err)
		}
	}},
	{"collective.New", func(x *stand) {
		if x.comm != nil {
			c := x.communicator()
			x.checkCurrent("Close", func() { x.must(c.Close()) })
			if _, err := collective.New(x.ctx, x.d, collective.Options{}); err == nil {
				x.Error("a communicator without an id is made")
			}
		}
	}},

	{"collective.Communicator.Rank", func(x *stand) { x.onComm(func() { x.comm.Rank() }) }},
	{"collective.Communicator.Count", func(x *stand) { x.onComm(func() { x.comm.Count() }) }},
	{"collective.Communicator.Device", func(x *stand) { x.onComm(func() { x.comm.Device() }) }},
	{"collective.Communicator.Err", func(x *stand) { x.onComm(func() { x.must(x.comm.Err()) }) }},
	{"collective.Communicator.Group", func(x *stand) {
		x.onComm(func() {
			x.submit(func(o gpu.Order) error { return x.comm.Device().Queue(1).Submit(o, x.comm.Group(x.sum())) })
			x.recorded(func(c *gpu.CommandBuffer) (gpu.Command, error) { return c.Add(x.comm.Group(x.sum())) })
		})
	}},
	{"collective.Communicator.GroupContext", func(x *stand) {
		x.onComm(func() {
			x.submit(func(o gpu.Order) error {
				return x.comm.Device().Queue(1).Submit(o, x.comm.GroupContext(x.ctx, x.sum()))
			})
		})
	}},
	{"collective.Communicator.Split", func(x *stand) {
		x.onComm(func() {
			c, err := x.comm.Split(x.ctx, 0, 0)
			if x.supported(err) {
				x.must(c.Close())
			}
		})
	}},
	{"collective.Communicator.Shrink", func(x *stand) {
		x.onComm(func() {
			if _, err := x.comm.Shrink(x.ctx, false, 0); err == nil {
				x.Error("a communicator is made without this rank")
			}
		})
	}},
	{"collective.Communicator.Register", func(x *stand) { x.known(func(b *gpu.Buffer) (*collective.Memory, error) { return x.comm.Register(b) }) }},
	{"collective.Communicator.NewWindow", func(x *stand) {
		x.known(func(b *gpu.Buffer) (*collective.Memory, error) { return x.comm.NewWindow(x.ctx, b, false) })
	}},
	{"collective.Communicator.Stats", func(x *stand) {
		x.onComm(func() {
			_, err := x.comm.Stats()
			x.supported(err)
		})
	}},
	{"collective.Communicator.Suspend", (*stand).rest},
	{"collective.Communicator.Resume", (*stand).rest},
	{"collective.Memory.Close", func(x *stand) { x.known(func(b *gpu.Buffer) (*collective.Memory, error) { return x.comm.Register(b) }) }},
	{"collective.Communicator.Abort", func(x *stand) {
		x.onComm(func() {
			c := x.communicator()
			s := x.sem()
			x.must(c.Device().Queue(0).Submit(gpu.Order{Wait: points(x.sem(), 1), Signal: points(s, 1)}, c.GroupContext(x.ctx, x.sum())))
			x.checkCurrent("Abort", func() { c.Abort(nil) })
			x.failed(s, 1, collective.ErrAborted)
			x.must(c.Close())
		})
	}},
	{"collective.Communicator.Close", func(x *stand) {
		x.onComm(func() {
			c := x.communicator()
			// The group may still be in flight at Close.
			x.must(c.Device().Queue(0).Submit(gpu.Order{}, c.GroupContext(x.ctx, x.sum())))
			x.checkCurrent("Close", func() { x.must(c.Close()) })
		})
	}},

	{"collective.Communicator.Shutdown", func(x *stand) {
		x.onComm(func() {
			c := x.communicator()
			// The group may still be in flight.
			x.must(c.Device().Queue(0).Submit(gpu.Order{}, c.GroupContext(x.ctx, x.sum())))
			x.checkCurrent("Shutdown", func() { x.must(c.Shutdown(x.ctx)) })
		})
	}},

	{"Queue.Device", func(x *stand) { x.d.Queue(0).Device() }},
	{"Queue.Priority", func(x *stand) { x.d.Queue(0).Priority() }},
	{"Queue.SetName", func(x *stand) { x.d.Queue(0).SetName("") }},
	{"Queue.String", func(x *stand) { _ = x.d.Queue(0).String() }},
	{"Queue.Submit", func(x *stand) { // only a refused call: the tests of Ops below submit Ops
		x.checkCurrent("the call", func() {
			if err := x.d.Queue(0).Submit(gpu.Order{}, gpu.Op{}); !errors.Is(err, gpu.ErrArgument) {
				x.Errorf("a zero Op: %v", err)
			}
		})
	}},
	{"BadOp", func(x *stand) {
		wrong := errors.New("wrong")
		x.checkCurrent("the call", func() {
			if err := x.d.Queue(0).Submit(gpu.Order{}, gpu.BadOp(wrong)); err != wrong {
				x.Errorf("a wrong Op: %v", err)
			}
		})
	}},
	{"Barrier", func(x *stand) { x.onQueue(gpu.Barrier()) }},
	{"HostCall", func(x *stand) {
		x.onQueue(gpu.HostCall(func() error { return nil }))
	}},
	{"Notify", func(x *stand) {
		x.onQueue(gpu.Notify(func() {}))
	}},
	{"Queue.Flush", func(x *stand) {
		x.must(x.d.Queue(0).Submit(gpu.Order{}, gpu.Fill(x.b.All(), []byte{1})))
		x.must(x.d.Queue(0).Flush())
	}},
	{"Fill", func(x *stand) {
		for _, pattern := range [][]byte{{1}, {1, 2}, {1, 2, 3, 4}, {1, 2, 3, 4, 5, 6, 7, 8}} {
			x.onQueue(gpu.Fill(x.b.All(), pattern))
		}
		for range 200 { // enough calls that some of them look for finished work
			x.must(x.d.Queue(1).Submit(gpu.Order{}, gpu.Fill(x.b.Range(0, 4), []byte{1})))
		}
	}},
	{"Copy", func(x *stand) {
		for _, from := range []gpu.Range{x.b.Range(0, 32), x.c.Range(0, 32)} {
			x.onQueue(gpu.Copy(x.b.Range(32, 32), from))
		}
		b := x.bufferOn(x.stranger(gpu.Options{}), 32)
		x.onQueue(gpu.Copy(b.All(), x.b.Range(32, 32)))
	}},
	{"Prefetch", func(x *stand) {
		b, err := x.d.Alloc(gpu.ManagedMem, 64)
		if !x.supported(err) || !x.supported(x.d.Queue(0).Submit(gpu.Order{}, gpu.Prefetch(b.All(), gpu.HostMem))) {
			return
		}
		for _, to := range []gpu.MemKind{gpu.DeviceMem, gpu.HostMem} {
			x.onQueue(gpu.Prefetch(b.All(), to))
		}
		x.must(b.Close())
	}},
	{"UploadCopy", func(x *stand) {
		x.onQueue(gpu.UploadCopy(x.b.All(), make([]byte, 64)))
	}},
	{"Upload", func(x *stand) {
		b := x.bufferOn(x.d, 3<<20)
		x.onQueue(gpu.Upload(b.All(), make([]byte, 3<<20)))
		x.onQueue(gpu.Upload(x.b.All(), make([]byte, 64)))
	}},
	{"Download", func(x *stand) {
		b := x.bufferOn(x.d, 3<<20)
		x.onQueue(gpu.Download(make([]byte, 3<<20), b.All()))
		x.onQueue(gpu.Download(make([]byte, 64), x.b.All()))
	}},
	{"ReadFrom", func(x *stand) {
		x.onQueue(gpu.ReadFrom(x.b.All(), &memory{data: make([]byte, 64)}, 0))
	}},
	{"WriteTo", func(x *stand) {
		x.onQueue(gpu.WriteTo(&memory{data: make([]byte, 64)}, 0, x.b.All()))
	}},
	{"Launch", func(x *stand) {
		if x.k != nil {
			x.onQueue(x.launch(gpu.GridFor(8, 8)))
		}
	}},
	{"a cooperative launch", func(x *stand) { // the check of the launch queries the driver for the occupancy
		if x.k == nil {
			return
		}
		for threads := range uint32(3) {
			launch := x.launch(gpu.Grid{Threads: [3]uint32{6 + threads}, Attrs: gpu.LaunchAttrs{Cooperative: true}})
			if x.supported(x.d.Queue(0).Submit(gpu.Order{}, launch)) {
				x.onQueue(launch)
			}
		}
	}},
	{"Native", func(x *stand) {
		if x.supported(x.d.Queue(0).Submit(gpu.Order{}, gpu.Native("", x.native, x.b.All()))) {
			x.onQueue(gpu.Native("", x.native, x.b.All(), x.c.All()))
			s := x.d.Queue(0).NewStream()
			x.checkCurrent("Stream.Do", func() { x.must(s.Do(gpu.Native("", x.native, x.b.All()))) })
			x.checkCurrent("the wait", func() { x.must(s.Wait(x.ctx)) })
		}
	}},
	{"interop.Begun", func(x *stand) {
		if x.k == nil {
			return
		}
		e, err := interop.NewEvent(x.d)
		x.must(err)
		launch := interop.Begun(x.launch(gpu.Grid{Threads: [3]uint32{8}}), e)
		if x.supported(x.d.Queue(0).Submit(gpu.Order{}, launch)) {
			x.onQueue(launch)
		}
		x.must(e.Close())
	}},
	{"interop.WriteValue", func(x *stand) {
		x.values(func(o gpu.Order, r gpu.Range) error { return x.d.Queue(0).Submit(o, interop.WriteValue(r, 1)) })
	}},
	{"interop.WaitValue", func(x *stand) {
		x.values(func(o gpu.Order, r gpu.Range) error { return x.d.Queue(0).Submit(o, interop.WaitValue(r, 0)) })
	}},
	{"AllocSlice, AllocSliceIn, Typed", func(x *stand) {
		if x.k == nil {
			return
		}
		type words struct {
			N        uint64
			Dst, Src gpu.Slice[uint32]
		}
		s, got := x.d.Queue(0).NewStream(), make([]uint32, 4)
		x.checkCurrent("the calls", func() {
			k, err := gpu.Typed[words](x.k)
			x.must(err)
			from, err := gpu.AllocSlice[uint32](x.d, gpu.DeviceMem, 4)
			x.must(err)
			to, err := gpu.AllocSliceIn[uint32](s, x.p, 4)
			x.must(err)
			x.must(s.Do(from.Fill(5)))
			x.must(s.Do(k.Launch(gpu.GridFor(4, 4), words{4, to, from})))
			x.must(s.Do(to.Download(got)))
			x.must(s.Do(to.Free()))
			x.must(from.Close())
		})
		x.checkCurrent("the wait", func() { x.must(s.Wait(x.ctx)) })
		if !slices.Equal(got, []uint32{5, 5, 5, 5}) {
			x.Errorf("the launch leaves %v", got)
		}
	}},
	{"Alloc", func(x *stand) {
		for _, size := range []uint64{64, 8 << 20} { // 8 MiB make the pool grow
			var all []*gpu.Buffer
			x.submit(func(o gpu.Order) error {
				var b *gpu.Buffer
				err := x.d.Queue(0).Submit(o, gpu.Alloc(&b, x.p, size))
				all = append(all, b)
				return err
			})
			for _, b := range all {
				x.must(b.Device().Queue(0).Submit(gpu.Order{}, gpu.Free(b)))
			}
		}
	}},
	{"Queue.NewStream", func(x *stand) {
		host, got := x.sem(), make([]byte, 8)
		for v := range uint64(2) { // issued at once, and parked
			s := x.d.Queue(0).NewStream()
			x.checkCurrent("the calls", func() {
				x.must(s.After(host.At(v)))
				b, err := s.Alloc(x.p, 4096)
				x.must(err)
				x.must(s.Fill(b.All(), []byte{byte(v + 1)}))
				x.must(inStream(s, x.d.Queue(1), gpu.Fill(b.Range(0, 4), []byte{9})))
				x.must(s.Do(gpu.HostCall(func() error { return nil })))
				x.must(s.Download(got, b.Range(0, 8)))
				x.must(s.Free(b))
			})
			if v > 0 {
				x.checkCurrent("the signal", func() { x.must(host.Signal(v)) })
			}
			x.checkCurrent("the wait", func() { x.must(s.Wait(x.ctx)) })
			if n := byte(v + 1); !bytes.Equal(got, []byte{9, 9, 9, 9, n, n, n, n}) {
				x.Errorf("a stream leaves %v", got)
			}
		}
	}},
	{"Free", func(x *stand) {
		x.submit(func(o gpu.Order) error { return x.d.Queue(0).Submit(o, gpu.Free(x.alloc())) })
	}},
	{"Execute", func(x *stand) {
		c := x.recording(func(c *gpu.CommandBuffer) {
			b, err := c.Binding()
			x.must(err)
			fill, err := c.Add(gpu.Fill(b.Range(0, 4), []byte{1}))
			x.must(err)
			if x.k != nil {
				_, err = c.Add(x.launch(gpu.GridFor(8, 8)), fill)
				x.must(err)
			}
		})
		i := uint64(0)
		// Each execution has a different range, so the graph's nodes are updated.
		x.submit(func(o gpu.Order) error {
			i += 4
			return x.d.Queue(0).Submit(o, gpu.Execute(c, x.b.Range(i, 8)))
		})
		x.must(c.Close())
	}},

	{"interop.ExportMemory", func(x *stand) {
		_, err := interop.ExportMemory(x.b)
		x.supported(err)
	}},
	{"interop.ExportMemoryFile", func(x *stand) {
		if _, err := interop.ExportMemoryFile(x.b); !errors.Is(err, gpu.ErrArgument) {
			x.Errorf("%v", err)
		}
		x.onShareable(func(b *gpu.Buffer, file *os.File) {
			again, err := interop.ExportMemoryFile(b)
			x.must(err)
			x.must(again.Close())
		})
	}},
	{"Buffer.Device", func(x *stand) { x.b.Device() }},
	{"Buffer.Kind", func(x *stand) { x.b.Kind() }},
	{"Buffer.Size", func(x *stand) { x.b.Size() }},
	{"Buffer.Ptr", func(x *stand) { x.b.Ptr() }},
	{"Buffer.Bytes", func(x *stand) { x.b.Bytes() }},
	{"Buffer.All", func(x *stand) { x.b.All() }},
	{"Buffer.Range", func(x *stand) { x.b.Range(0, 1) }},
	{"Buffer.Close", func(x *stand) {
		b, err := x.d.Alloc(gpu.DeviceMem, 64)
		x.must(err)
		x.checkCurrent("Close", func() { x.must(b.Close()) })
		b = x.alloc()
		x.checkCurrent("Close of memory from a pool", func() { x.must(b.Close()) })
	}},
	{"Pool.Device", func(x *stand) { x.p.Device() }},
	{"Pool.Options", func(x *stand) { x.p.Options() }},
	{"Pool.Stats", func(x *stand) {
		_, err := x.p.Stats()
		x.must(err)
	}},
	{"Pool.SetThreshold", func(x *stand) { x.must(x.p.SetThreshold(1 << 20)) }},
	{"Pool.Reuse", func(x *stand) {
		_, err := x.p.Reuse()
		x.must(err)
	}},
	{"Pool.SetReuse", func(x *stand) {
		r, err := x.p.Reuse()
		x.must(err)
		x.must(x.p.SetReuse(r))
	}},
	{"Device.Trim", func(x *stand) { x.must(x.d.Trim()) }},
	{"Pool.Trim", func(x *stand) { x.must(x.p.Trim(0)) }},
	{"Pool.Access", func(x *stand) {
		if x.supported(x.p.Access(x.other, true)) && x.count > 1 { // a device cannot lose access to its own pool
			x.supported(x.p.Access(x.other, false)) // unsupported by a portable pool
		}
	}},
	{"interop.ExportPool", func(x *stand) {
		if _, err := interop.ExportPool(x.p); !errors.Is(err, gpu.ErrArgument) {
			x.Errorf("%v", err)
		}
		x.onShared(func(p *gpu.Pool, file *os.File, imported *interop.Pool) {
			again, err := interop.ExportPool(p)
			x.must(err)
			x.must(again.Close())
		})
	}},
	{"interop.Pool.Device", func(x *stand) {
		x.onShared(func(p *gpu.Pool, file *os.File, imported *interop.Pool) { imported.Device() })
	}},
	{"interop.Pool.Import", func(x *stand) {
		x.onShared(func(p *gpu.Pool, file *os.File, imported *interop.Pool) {
			s := x.sem()
			var b *gpu.Buffer
			err := x.d.Queue(0).Submit(signal(s, 1), gpu.Alloc(&b, p, 64))
			x.must(err)
			x.wait(s, 1)
			h, err := interop.ExportMemory(b)
			x.must(err)
			if o, err := imported.Import(h, nil); err == nil {
				x.must(o.Close())
			}
			x.must(b.Close())
		})
	}},
	{"interop.Pool.Close", func(x *stand) {
		x.onShared(func(p *gpu.Pool, file *os.File, imported *interop.Pool) { x.must(imported.Close()) })
	}},
	{"Pool.Close", func(x *stand) {
		for _, portable := range []bool{false, true} {
			p, err := x.d.NewPool(gpu.PoolOptions{Portable: portable})
			x.must(err)
			var b *gpu.Buffer
			err = x.d.Queue(0).Submit(gpu.Order{}, gpu.Alloc(&b, p, 64))
			x.must(err)
			x.checkCurrent("Close", func() { x.must(p.Close()) })
			x.must(b.Device().Queue(0).Submit(gpu.Order{}, gpu.Free(b)))
		}
	}},

	{"CommandBuffer.Add", func(x *stand) { // only a refused call: the tests of Ops below record Ops
		c := x.recording(func(c *gpu.CommandBuffer) {
			x.checkCurrent("Add", func() {
				if _, err := c.Add(gpu.Notify(func() {})); !errors.Is(err, gpu.ErrArgument) {
					x.Errorf("a notification: %v", err)
				}
			})
		})
		x.must(c.Close())
	}},
	{"CommandBuffer.Scratch", func(x *stand) {
		x.recorded(func(c *gpu.CommandBuffer) (at gpu.Command, err error) {
			var b *gpu.Buffer
			x.checkCurrent("Scratch", func() { b, err = c.Scratch(64) })
			x.must(err)
			return c.Add(gpu.Copy(b.All(), x.b.All()))
		})
	}},
	{"CommandBuffer.ScratchSize", func(x *stand) {
		c := x.recording(func(c *gpu.CommandBuffer) {
			x.checkCurrent("ScratchSize", func() {
				_, err := c.ScratchSize()
				x.must(err)
			})
		})
		x.must(c.Close())
	}},
	{"CommandBuffer.SetScratch", func(x *stand) {
		c := x.recording(func(c *gpu.CommandBuffer) {
			x.checkCurrent("SetScratch", func() { x.must(c.SetScratch(x.b.All())) })
		})
		x.must(c.Close())
	}},
	{"Barrier, recorded", func(x *stand) {
		x.inRecording(gpu.Barrier())
	}},
	{"CommandBuffer.Binding", func(x *stand) {
		c := x.recording(func(c *gpu.CommandBuffer) {
			x.checkCurrent("Binding", func() {
				_, err := c.Binding()
				x.must(err)
			})
		})
		x.must(c.Close())
	}},
	{"Fill, recorded", func(x *stand) {
		x.inRecording(gpu.Fill(x.b.All(), []byte{1, 2}))
	}},
	{"Copy, recorded", func(x *stand) {
		x.inRecording(gpu.Copy(x.b.Range(0, 32), x.b.Range(32, 32)))
	}},
	{"UploadCopy, recorded", func(x *stand) {
		x.inRecording(gpu.UploadCopy(x.b.All(), make([]byte, 64)))
	}},
	{"Launch, recorded", func(x *stand) {
		if x.k != nil {
			x.inRecording(x.launch(gpu.GridFor(8, 8)))
		}
	}},
	{"WriteValue, recorded", func(x *stand) {
		if x.d.Queue(0).Submit(gpu.Order{}, interop.WriteValue(x.b.Range(0, 8), 1)) == nil {
			x.inRecording(interop.WriteValue(x.b.Range(0, 8), 1))
		}
	}},
	{"WaitValue, recorded", func(x *stand) {
		if x.d.Queue(0).Submit(gpu.Order{}, interop.WriteValue(x.b.Range(0, 8), 1)) == nil {
			x.inRecording(interop.WaitValue(x.b.Range(0, 8), 0))
		}
	}},
	{"Native, recorded", func(x *stand) {
		c, err := x.d.NewCommandBuffer(gpu.CommandOptions{Mode: x.mode})
		x.must(err)
		b, err := c.Binding()
		x.must(err)
		_, err = c.Add(gpu.Native("", x.native, b.Range(0, 4)))
		if !x.supported(err) {
			x.must(c.Close())
			return
		}
		x.checkCurrent("CommandBuffer.End", func() { x.must(c.End()) })
		i := uint64(0)
		x.submit(func(o gpu.Order) error { // a different range each time
			i += 4
			return x.d.Queue(0).Submit(o, gpu.Execute(c, x.b.Range(i, 4)))
		})
		x.must(c.Close())
	}},
	{"HostCall, recorded", func(x *stand) {
		if x.mode != gpu.GraphMode {
			x.inRecording(gpu.HostCall(func() error { return nil }))
		}
	}},
	{"CommandBuffer.Timestamp", func(x *stand) {
		c, err := x.d.NewCommandBuffer(gpu.CommandOptions{Mode: x.mode})
		x.must(err)
		_, err = c.Timestamp()
		x.must(c.Close())
		if x.supported(err) {
			x.recorded(func(c *gpu.CommandBuffer) (gpu.Command, error) { return c.Timestamp() })
		}
	}},
	{"CommandBuffer.Elapsed", func(x *stand) {
		c, err := x.d.NewCommandBuffer(gpu.CommandOptions{Mode: x.mode})
		x.must(err)
		from, err := c.Timestamp()
		if x.supported(err) {
			to, err := c.Timestamp(from)
			x.must(err)
			x.must(c.End())
			s := x.sem()
			x.must(x.d.Queue(0).Submit(signal(s, 1), gpu.Execute(c)))
			x.wait(s, 1)
			x.checkCurrent("Elapsed", func() {
				_, err := c.Elapsed(from, to)
				x.must(err)
			})
		}
		x.must(c.Close())
	}},
	{"Execute, recorded", func(x *stand) {
		child := x.recording(func(c *gpu.CommandBuffer) {
			_, err := c.Add(gpu.Fill(x.b.All(), []byte{3}))
			x.must(err)
		})
		x.inRecording(gpu.Execute(child))
		x.must(child.Close())
	}},
	{"CommandBuffer.End", func(x *stand) { x.must(x.recording(func(*gpu.CommandBuffer) {}).Close()) }},
	{"CommandBuffer.Close", func(x *stand) {
		c, err := x.d.NewCommandBuffer(gpu.CommandOptions{Mode: x.mode})
		x.must(err)
		_, err = c.Add(gpu.Fill(x.b.All(), []byte{1}))
		x.must(err)
		x.must(c.Close()) // End has not been called
	}},

	{"Module.Kernel", func(x *stand) {
		if x.x != nil {
			_, err := x.x.Kernel("index")
			x.must(err)
			if _, err := x.x.Kernel("nothing"); err == nil {
				x.Error("a kernel that there is not is found")
			}
		}
	}},
	{"Module.Global", func(x *stand) {
		if x.x != nil {
			if _, err := x.x.Global("nothing"); err == nil {
				x.Error("a variable that there is not is found")
			}
		}
	}},
	{"Module.Close", func(x *stand) {
		if x.x != nil {
			c, err := x.d.Load(kernels.Basic)
			x.must(err)
			x.checkCurrent("Close", func() { x.must(c.Close()) })
		}
	}},
	{"Kernel.Name", func(x *stand) {
		if x.k != nil {
			x.k.Name()
		}
	}},
	{"Kernel.Info", func(x *stand) {
		if x.k != nil {
			x.k.Info()
		}
	}},
	{"Kernel.Occupancy", func(x *stand) {
		if x.k != nil {
			_, err := x.k.Occupancy(64, 0)
			x.supported(err)
		}
	}},
	{"Kernel.BlockSize", func(x *stand) {
		if x.k != nil {
			_, _, err := x.k.BlockSize(0, 0)
			x.supported(err)
		}
	}},

	{"OpenGroup", func(x *stand) {
		g, err := gpu.OpenGroup(x.h.Driver, gpu.Options{Events: 1}, []int{1, 0}[2-x.count:]...)
		x.must(err)
		x.must(g.Close())
	}},
	{"Group.Shutdown", func(x *stand) {
		g, err := gpu.OpenGroup(x.h.Driver, gpu.Options{}, []int{1, 0}[2-x.count:]...)
		x.must(err)
		x.checkCurrent("Shutdown", func() { x.must(g.Shutdown(x.ctx)) })
	}},
	{"NewGroup", func(x *stand) {
		_, err := gpu.NewGroup(x.d, x.other)
		x.must(err)
	}},
	{"Group.Devices", func(x *stand) {
		all, _, err := noCache.CompileAll(x.group.Devices(), saxpySource)
		if err != nil && x.h.Kernels && !errors.Is(err, driver.ErrUnsupported) {
			x.Error(err)
		}
		for _, c := range all {
			x.must(c.Close())
		}
	}},
	{"Group.Load", func(x *stand) {
		if x.h.Kernels {
			all, err := x.group.Load(kernels.Basic)
			x.must(err)
			for _, c := range all {
				x.must(c.Close())
			}
		}
	}},
	{"Group.NewPools", func(x *stand) {
		pools, err := x.group.NewPools(gpu.PoolOptions{})
		x.must(err)
		for _, p := range pools {
			x.must(p.Close())
		}
	}},
	{"collective.NewAll", func(x *stand) {
		x.onComm(func() {
			devices := x.group.Devices()[:x.count] // a communicator needs ranks on different devices
			all, err := collective.NewAll(x.ctx, devices, collective.Options{})
			x.must(err)
			for _, c := range all {
				c.Abort(nil)
				x.must(c.Close())
			}
		})
	}},
	{"Group.Close", func(x *stand) {
		g, err := gpu.OpenGroup(x.h.Driver, gpu.Options{Events: 1})
		x.must(err)
		x.checkCurrent("Close", func() { x.must(g.Close()) })
	}},

	{"interop.RecordEvent", func(x *stand) {
		x.onEvent(func(e *interop.Event) {
			x.onQueue(interop.RecordEvent(e))
		})
	}},
	{"interop.WaitEvent", func(x *stand) {
		x.onEvent(func(e *interop.Event) {
			x.onQueue(interop.WaitEvent(e))
		})
	}},
	{"interop.Event.Native", func(x *stand) { x.onEvent(func(e *interop.Event) { e.Native() }) }},
	{"interop.Event.Device", func(x *stand) { x.onEvent(func(e *interop.Event) { e.Device() }) }},
	{"interop.Event.Export", func(x *stand) {
		x.onEvent(func(e *interop.Event) {
			_, err := e.Export()
			x.must(err)
		})
	}},
	{"interop.Event.Close", func(x *stand) {
		x.onEvent(func(e *interop.Event) {
			x.must(x.d.Queue(0).Submit(gpu.Order{}, interop.RecordEvent(e))) // may be in flight
			x.checkCurrent("Close", func() { x.must(e.Close()) })
		})
	}},

	// Semaphores are tested too: waiting for a semaphore makes native calls, and so does issuing
	// the work that waits for a semaphore.
	{"Semaphore.At", func(x *stand) { x.sem().At(1) }},
	{"Semaphore.SetName", func(x *stand) { x.sem().SetName("tokens") }},
	{"Semaphore.String", func(x *stand) { _ = x.sem().String() }},
	{"Semaphore.Query", func(x *stand) {
		s := x.sem()
		x.must(x.d.Queue(0).Submit(signal(s, 1), gpu.Fill(x.b.All(), []byte{1})))
		for v := uint64(0); v == 0; {
			var err error
			v, err = s.Query()
			x.must(err)
			x.must(x.ctx.Err())
		}
	}},
	{"Semaphore.Signal", func(x *stand) {
		host, s := x.sem(), x.sem()
		for _, b := range []*gpu.Buffer{x.b, x.c} {
			x.must(b.Device().Queue(0).Submit(gpu.Order{Wait: points(host, 1)}, gpu.Fill(b.Range(0, 4), []byte{1})))
			x.must(b.Device().Queue(1).Submit(gpu.Order{Wait: points(host, 1)}, gpu.Barrier()))
		}
		x.must(x.d.Queue(0).Submit(between(host, 1, s, 1), gpu.Fill(x.b.All(), []byte{1})))
		x.checkCurrent("Signal", func() { x.must(host.Signal(1)) })
		x.wait(s, 1)
	}},
	{"Semaphore.Fail", func(x *stand) {
		host := x.sem()
		x.must(x.d.Queue(0).Submit(gpu.Order{Wait: points(host, 1)}, gpu.Fill(x.b.All(), []byte{1})))
		x.checkCurrent("Fail", func() { host.Fail(errors.New("no more")) })
	}},
	{"Semaphore.Close", func(x *stand) {
		host := x.sem()
		x.must(x.d.Queue(0).Submit(gpu.Order{Wait: points(host, 1)}, gpu.Fill(x.b.All(), []byte{1})))
		x.checkCurrent("Close", func() { x.must(host.Close()) })
	}},
	{"Semaphore.Wait", func(x *stand) {
		s := x.sem()
		x.must(x.d.Queue(0).Submit(signal(s, 1), gpu.Fill(x.b.All(), []byte{1})))
		x.checkCurrent("Wait", func() { x.wait(s, 1) })
		if err := s.Wait(ended, 2); err == nil {
			x.Error("it has not ended")
		}
	}},
	{"Semaphore.WaitIssued", func(x *stand) {
		host, s := x.sem(), x.sem()
		x.must(x.d.Queue(0).Submit(between(host, 1, s, 1), gpu.Fill(x.b.All(), []byte{1})))
		if err := s.WaitIssued(ended, 1); err == nil {
			x.Error("it is parked")
		}
		x.must(host.Signal(1))
		x.checkCurrent("WaitIssued", func() { x.must(s.WaitIssued(x.ctx, 1)) })
	}},
	{"Semaphore.OnReached", func(x *stand) {
		s, called := x.sem(), make(chan error, 1)
		x.must(x.d.Queue(0).Submit(signal(s, 1), gpu.Fill(x.b.All(), []byte{1})))
		s.OnReached(1, func(err error) { called <- err })
		x.must(<-called)
	}},
	{"Semaphore.Link", func(x *stand) {
		s, to := x.sem(), x.sem()
		s.Link(1, to, 1)
		x.must(x.d.Queue(0).Submit(signal(s, 1), gpu.Fill(x.b.All(), []byte{1})))
		x.must(x.other.Queue(0).Submit(gpu.Order{Wait: points(to, 1)}, gpu.Fill(x.c.All(), []byte{1})))
		x.wait(to, 1)
	}},
	{"WaitAll, WaitAny, SignalAll, FailAll", func(x *stand) {
		a, b, host := x.sem(), x.sem(), x.sem()
		x.must(x.d.Queue(0).Submit(between(host, 1, a, 1), gpu.Fill(x.b.All(), []byte{1})))
		x.must(x.other.Queue(0).Submit(between(host, 1, b, 1), gpu.Fill(x.c.All(), []byte{1})))
		x.checkCurrent("SignalAll", func() { x.must(gpu.SignalAll(points(host, 1)...)) })
		all := []gpu.Point{{Semaphore: a, Value: 1}, {Semaphore: b, Value: 1}}
		x.checkCurrent("WaitAny", func() {
			_, err := gpu.WaitAny(x.ctx, all...)
			x.must(err)
		})
		x.checkCurrent("WaitAll", func() { x.must(gpu.WaitAll(x.ctx, all...)) })
		x.checkCurrent("FailAll", func() { gpu.FailAll(errors.New("no more"), a, b) })
	}},
}

// internalOps are functions that make Ops for other packages of this module. Their arguments have
// internal types, so programs cannot call them.
var internalOps = []string{"Begun", "OpOf", "OpOfGroup"}

// functions returns the names of the exported functions that must have a test in the list
// operations: the functions of gpu that return an Op (except internalOps), the functions of
// collective that take devices, and all functions of interop. The names come from the source of the
// three packages. Without the source, the result is nil.
func functions(e *env) (names []string) {
	for _, f := range functionsOf(e, "gpu") {
		if returnsOp(f) && !slices.Contains(internalOps, f.Name.Name) {
			names = append(names, f.Name.Name)
		}
	}
	for _, f := range functionsOf(e, "collective") {
		if takesDevices(f) {
			names = append(names, "collective."+f.Name.Name)
		}
	}
	for _, f := range functionsOf(e, "interop") {
		names = append(names, "interop."+f.Name.Name)
	}
	return names
}

// functionsOf returns the exported functions of the package pkg, from its source in runtime/pkg.
func functionsOf(e *env, pkg string) (all []*ast.FuncDecl) {
	_, here, _, _ := runtime.Caller(0)
	files, err := filepath.Glob(filepath.Join(filepath.Dir(filepath.Dir(filepath.Dir(here))), pkg, "*.go"))
	e.must(err)
	for _, file := range files {
		if strings.HasSuffix(file, "_test.go") {
			continue
		}
		parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.SkipObjectResolution)
		e.must(err)
		for _, d := range parsed.Decls {
			if f, ok := d.(*ast.FuncDecl); ok && f.Recv == nil && f.Name.IsExported() {
				all = append(all, f)
			}
		}
	}
	return all
}

// returnsOp reports whether the only result of a function of package gpu is an Op.
func returnsOp(f *ast.FuncDecl) bool {
	if f.Type.Results == nil || len(f.Type.Results.List) != 1 {
		return false
	}
	t, ok := f.Type.Results.List[0].Type.(*ast.Ident)
	return ok && t.Name == "Op"
}

// takesDevices reports whether a parameter of a function is a device, or a list of devices.
func takesDevices(f *ast.FuncDecl) bool {
	return slices.ContainsFunc(f.Type.Params.List, func(p *ast.Field) bool {
		t := p.Type
		if list, ok := t.(*ast.ArrayType); ok {
			t = list.Elt
		}
		star, ok := t.(*ast.StarExpr)
		if !ok {
			return false
		}
		sel, ok := star.X.(*ast.SelectorExpr)
		return ok && sel.Sel.Name == "Device"
	})
}

var current = []test{
	{name: "B115 every operation is in the list", run: func(e *env) {
		tried := map[string]bool{}
		for _, op := range operations {
			tried[op.name] = true
		}
		there := map[string]bool{}
		for _, v := range ofCurrent {
			t := reflect.TypeOf(v)
			for i := range t.NumMethod() {
				there[strings.TrimPrefix(t.Elem().String(), "gpu.")+"."+t.Method(i).Name] = true
			}
		}
		made := functions(e)
		for _, name := range made {
			there[name] = true
		}
		for name := range there {
			if !tried[name] {
				e.Errorf("%s is missing", name)
			}
		}
		for name := range tried {
			isMethod := ast.IsExported(name) || strings.Count(name, ".") == 2
			if strings.Contains(name, ".") && !there[name] && (isMethod || len(made) > 0) {
				e.Errorf("%s does not exist", name)
			}
		}
	}},
	{name: "B115 B118 no operation changes the caller's current device", run: func(e *env) { tryAll(e, 1) }},
	{name: "B115 B118 no operation changes the caller's current device, of two", devices: 2, run: func(e *env) { tryAll(e, 2) }},
}

// tryAll runs the tests of the list operations with the first device current, with the second
// device current if devices is 2, and with no device current. In GraphMode it runs only the tests
// of command buffers, of recorded Ops and of Execute. If devices is 1, stand.other is the first
// device, opened again.
func tryAll(e *env, devices int) {
	if e.h.Current == nil {
		e.Skip("there is no current device")
	}
	other := e.devs[devices-1]
	if devices == 1 {
		var err error
		other, err = gpu.Open(e.h.Driver, 0, gpu.Options{Queues: 2})
		e.must(err)
		defer other.Close()
	}
	for _, mode := range []gpu.Mode{gpu.StreamMode, gpu.GraphMode} {
		for device, how := range []string{"the same device current", "another device current", "no device current"} {
			if device == 1 && devices == 1 {
				continue
			}
			locked(func() {
				x := &stand{env: e, d: e.devs[0], other: other, count: devices, mode: mode, how: how}
				if device < 2 {
					x.h.SetCurrent(device)
				}
				x.open()
				for _, op := range operations {
					if mode == gpu.StreamMode || strings.Contains(op.name, "CommandBuffer") || strings.HasSuffix(op.name, ", recorded") || op.name == "Execute" {
						x.checkCurrent(op.name, func() { op.run(x) })
						x.drain()
					}
				}
				x.close()
			})
		}
	}
}

// open makes the stand's objects, which the tests in the list operations use. If the driver does
// not support x.mode, open sets x.mode to AutoMode.
func (x *stand) open() {
	if c, err := x.d.NewCommandBuffer(gpu.CommandOptions{Mode: x.mode}); x.supported(err) {
		x.must(c.Close())
	} else {
		x.mode = gpu.AutoMode
	}
	var err error
	x.group, err = gpu.NewGroup(x.d, x.other)
	x.must(err)
	x.b, x.c = x.bufferOn(x.d, 64), x.bufferOn(x.other, 64)
	x.scratch = [2]*gpu.Buffer{x.bufferOn(x.d, 256), x.bufferOn(x.other, 256)}
	x.p, err = x.d.NewPool(gpu.PoolOptions{})
	x.must(err)
	if x.h.Comms {
		x.comm = x.communicator()
	}
	if x.h.Kernels {
		x.x, err = x.d.Load(kernels.Basic)
		x.must(err)
		x.k, err = x.x.Kernel("words")
		x.must(err)
	}
}

// drain waits for all issued work, because the next test uses the same memory. drain submits a fill
// to each queue and waits for the fills, which come last in their streams.
func (x *stand) drain() {
	x.Helper()
	var all []gpu.Point
	for _, b := range []*gpu.Buffer{x.scratch[0], x.scratch[1]} {
		for i := range b.Device().Queues() {
			s := x.sem()
			x.must(b.Device().Queue(i).Submit(signal(s, 1), gpu.Fill(b.Range(4*uint64(i), 4), []byte{1})))
			all = append(all, gpu.Point{Semaphore: s, Value: 1})
		}
	}
	x.must(gpu.WaitAll(x.ctx, all...))
}

func (x *stand) close() {
	x.onComm(func() { x.must(x.comm.Close()) })
	if x.x != nil {
		x.must(x.x.Close())
	}
	x.must(x.p.Close())
}
