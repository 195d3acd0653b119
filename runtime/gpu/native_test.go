package gpu_test

import (
	"errors"
	"fmt"
	"io"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/puregpu/puregpu/runtime/driver"
	"github.com/puregpu/puregpu/runtime/driver/simdriver"
	"github.com/puregpu/puregpu/runtime/gpu"
)

// filler returns a function for Native that fills n bytes at the start of the operation's first
// range.
func filler(with byte, n uint64) func(gpu.NativeCall) error {
	return func(n2 gpu.NativeCall) error { return n2.Device.Fill(n2.Stream, n2.Ptrs[0], uint32(with), 1, n) }
}

// TestNative runs native functions on memory of a pool. The first function runs between operations
// of another queue, all of them parked at first. The second runs in a stream.
func TestNative(t *testing.T) {
	onEach(t, 1, func(t *testing.T, d *simdriver.Driver, caps driver.Caps) {
		if !caps.Native || !caps.HostRegister {
			t.Skip("no access to streams")
		}
		dev, s := openDevice(t, d, 0, gpu.Options{Queues: 2}), semaphores(t, 2)
		q, other := dev.Queue(0), dev.Queue(1)
		m := alloca(t, q, order(s[0], 1, s[1], 1), nil, 64)
		must(t, q.Submit(order(s[1], 1, s[1], 2), gpu.Fill(m.All(), []byte{1})))
		must(t, other.Submit(order(s[1], 2, s[1], 3), gpu.Native("", filler(2, 16), m.Range(8, 16), m.All())))
		must(t, q.Submit(order(s[1], 3, s[1], 4), gpu.Copy(m.Range(32, 16), m.Range(8, 16))))
		must(t, s[0].Signal(1))
		must(t, s[1].Wait(in(t, time.Minute), 4))
		got := bytesOf(t, q, m)
		for i, want := range map[int]byte{0: 1, 7: 1, 8: 2, 23: 2, 24: 1, 31: 1, 32: 2, 47: 2, 48: 1} {
			if got[i] != want {
				t.Errorf("byte %d is %d; want %d", i, got[i], want)
			}
		}
		st := q.NewStream()
		must(t, st.Fill(m.All(), []byte{3}))
		must(t, st.Do(gpu.Native("", filler(4, 8), m.All())))
		must(t, st.Copy(m.Range(8, 8), m.Range(0, 8)))
		must(t, st.Free(m))
		must(t, st.Wait(in(t, time.Minute)))
		must(t, dev.Close())
	})
}

// TestNativeFails makes native functions fail. Only the signals of their operations must fail. The
// memory that a function uses must stay until the stream has passed the function's work.
func TestNativeFails(t *testing.T) {
	onEach(t, 1, func(t *testing.T, d *simdriver.Driver, caps driver.Caps) {
		if !caps.Native || !caps.HostRegister {
			t.Skip("no access to streams")
		}
		dev, s := openDevice(t, d, 0, gpu.Options{}), semaphores(t, 6)
		q, b := dev.Queue(0), allocate(t, dev, 64)
		freed := false
		mem, err := dev.ImportHost(make([]byte, 4096), func() { freed = true })
		must(t, err)
		must(t, d.StallDevice(0))
		must(t, q.Submit(gpu.Order{Signal: pts(s[0], 1)}, gpu.Native("", func(n gpu.NativeCall) error {
			return errors.Join(n.Device.Fill(n.Stream, n.Ptrs[0], 7, 1, 64), io.ErrUnexpectedEOF)
		}, mem.All())))
		if err := s[0].Wait(in(t, time.Minute), 1); !errors.Is(err, io.ErrUnexpectedEOF) {
			t.Errorf("Wait = %v", err)
		}
		must(t, mem.Close())
		synctest.Wait()
		if freed {
			t.Error("the memory was let go of while the stream has work on it")
		}
		must(t, d.ResumeDevice(0))
		must(t, q.Submit(gpu.Order{Signal: pts(s[1], 1)}, gpu.Native("", func(gpu.NativeCall) error { panic("no") }, b.All())))
		var p *gpu.PanicError
		if err := s[1].Wait(in(t, time.Minute), 1); !errors.As(err, &p) {
			t.Errorf("Wait = %v", err)
		}
		called := false
		s[2].Fail(io.EOF)
		must(t, q.Submit(order(s[2], 1, s[3], 1), gpu.Native("", func(gpu.NativeCall) error { called = true; return nil })))
		if err := s[3].Wait(in(t, time.Minute), 1); !errors.Is(err, io.EOF) || called {
			t.Errorf("Wait = %v, called %v", err, called)
		}
		d.Inject(simdriver.Fault{Op: simdriver.OpEnter, N: 1, Err: io.ErrClosedPipe})
		must(t, q.Submit(gpu.Order{Signal: pts(s[4], 1)}, gpu.Native("", func(gpu.NativeCall) error { called = true; return nil })))
		if err := s[4].Wait(in(t, time.Minute), 1); !errors.Is(err, io.ErrClosedPipe) || called {
			t.Errorf("Wait = %v, called %v", err, called)
		}
		must(t, q.Submit(gpu.Order{Signal: pts(s[5], 1)}, gpu.Native("", filler(1, 64), b.All())))
		must(t, s[5].Wait(in(t, time.Minute), 1))
		synctest.Wait()
		if !freed {
			t.Error("the memory was not let go of")
		}
		must(t, dev.Close())
	})
}

// TestNativeRefused checks that Submit refuses native operations with wrong arguments, and on a
// device without access to its streams.
func TestNativeRefused(t *testing.T) {
	d := newSim(t, simdriver.Config{})
	dev := openDevice(t, d, 0, gpu.Options{})
	b, gone := allocate(t, dev, 64), allocate(t, dev, 64)
	must(t, gone.Close())
	nothing := func(gpu.NativeCall) error { return nil }
	for name, err := range map[string]error{
		"no function":         dev.Queue(0).Submit(gpu.Order{}, gpu.Native("", nil)),
		"no semaphore":        dev.Queue(0).Submit(gpu.Order{Wait: []gpu.Point{{}}}, gpu.Native("", nothing)),
		"no queue":            (*gpu.Queue)(nil).Submit(gpu.Order{}, gpu.Native("", nothing)),
		"zero queue":          new(gpu.Queue).Submit(gpu.Order{}, gpu.Native("", nothing)),
		"no buffer":           dev.Queue(0).Submit(gpu.Order{}, gpu.Native("", nothing, gpu.Range{})),
		"outside of a buffer": dev.Queue(0).Submit(gpu.Order{}, gpu.Native("", nothing, b.All(), b.Range(60, 8))),
		"closed buffer":       dev.Queue(0).Submit(gpu.Order{}, gpu.Native("", nothing, gone.All())),
	} {
		if err == nil || !strings.Contains(err.Error(), "gpu: ") {
			t.Errorf("%s: %v", name, err)
		}
	}
	must(t, dev.Close())
	caps := simdriver.CUDACaps()
	caps.Native = false
	dev = openDevice(t, newSim(t, simdriver.Config{Caps: &caps}), 0, gpu.Options{})
	if err := dev.Queue(0).Submit(gpu.Order{}, gpu.Native("", nothing)); !errors.Is(err, driver.ErrUnsupported) {
		t.Errorf("without access to streams: %v", err)
	}
	must(t, dev.Close())
}

// TestNativeHolds runs a parked native function that takes a second, in a queue or in a recording.
// The goroutine that signals must not wait for the function, other parked work must be issued
// meanwhile, and Close must wait for the function.
func TestNativeHolds(t *testing.T) {
	onEach(t, 1, func(t *testing.T, d *simdriver.Driver, caps driver.Caps) {
		if !caps.Native {
			t.Skip("no access to streams")
		}
		for _, mode := range []gpu.Mode{-1, gpu.StreamMode, gpu.AutoMode, gpu.GraphMode} {
			if mode == gpu.GraphMode && !caps.Graphs {
				continue
			}
			dev, s := openDevice(t, d, 0, gpu.Options{Queues: 2}), semaphores(t, 4)
			b, executed := allocate(t, dev, 64), uint64(0)
			var slow, over atomic.Bool
			fn := func(n gpu.NativeCall) error {
				if slow.Load() {
					time.Sleep(time.Second)
					over.Store(true)
				}
				return n.Device.Fill(n.Stream, n.Ptrs[0], 1, 1, 8)
			}
			run := func(o gpu.Order, at gpu.Range) error { return dev.Queue(0).Submit(o, gpu.Native("", fn, at)) }
			if mode >= 0 {
				c := commandBuffer(t, dev, mode)
				to, err := c.Binding()
				must(t, err)
				recorded(t)(c.Add(gpu.Native("", fn, to.Range(0, 8))))
				must(t, c.End())
				run = func(o gpu.Order, at gpu.Range) error { return dev.Queue(0).Submit(o, gpu.Execute(c, at)) }
				executed++ // this execution makes the graph, if there is one, and the next execution updates it
				must(t, run(gpu.Order{Signal: pts(s[1], executed)}, b.Range(0, 8)))
				must(t, s[1].Wait(in(t, time.Minute), executed))
			}
			slow.Store(true)
			must(t, run(order(s[0], 1, s[1], executed+1), b.Range(8, 8)))
			// These fills wait for the same point as the native function.
			for _, done := range s[2:] {
				must(t, dev.Queue(1).Submit(order(s[0], 1, done, 1), gpu.Fill(b.Range(32, 8), []byte{1})))
			}
			start := time.Now()
			must(t, s[0].Signal(1))
			if time.Since(start) >= time.Second {
				t.Errorf("mode %v: the signal has waited for the function", mode)
			}
			must(t, gpu.WaitAll(in(t, time.Minute), s[2].At(1), s[3].At(1)))
			if time.Since(start) >= time.Second {
				t.Errorf("mode %v: a fill has waited for the function", mode)
			}
			must(t, dev.Close())
			if !over.Load() {
				t.Errorf("mode %v: Close has not waited for the function", mode)
			}
			must(t, s[1].Wait(in(t, time.Minute), executed+1))
		}
	})
}

// TestNativeAllocs checks that submitting native work allocates no Go memory.
func TestNativeAllocs(t *testing.T) {
	if raceEnabled {
		t.Skip("the race detector allocates")
	}
	d := newSim(t, simdriver.Config{})
	dev := openDevice(t, d, 0, gpu.Options{})
	b, s, v := allocate(t, dev, 64), semaphores(t, 1)[0], uint64(0)
	fn, signal := filler(1, 64), pts(s, 0)
	ctx := minute(t)
	if n := testing.AllocsPerRun(200, func() {
		v++
		signal[0].Value = v
		must(t, dev.Queue(0).Submit(gpu.Order{Signal: signal}, gpu.Native("", fn, b.All())))
		must(t, s.Wait(ctx, v))
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
	must(t, dev.Close())
}

// TestNativeRecorded executes a recording of native functions several times, with different memory.
// In a graph a function must be called again only if the function's memory has moved. Without
// graphs each execution must call the function.
func TestNativeRecorded(t *testing.T) {
	for _, mode := range []gpu.Mode{gpu.AutoMode, gpu.GraphMode, gpu.StreamMode} {
		t.Run(fmt.Sprint(mode), func(t *testing.T) {
			onEach(t, 1, func(t *testing.T, d *simdriver.Driver, caps driver.Caps) {
				if !caps.Native || mode == gpu.GraphMode && !caps.Graphs {
					t.Skip("no access to streams, or no graphs")
				}
				dev := openDevice(t, d, 0, gpu.Options{})
				q, fixed := dev.Queue(0), allocate(t, dev, 64)
				c := commandBuffer(t, dev, mode)
				to, err := c.Binding()
				must(t, err)
				calls, with := 0, byte(5)
				twice := func(n gpu.NativeCall) error {
					calls++
					return errors.Join(n.Device.Fill(n.Stream, n.Ptrs[1], uint32(with), 1, 16), n.Device.Copy(n.Stream, n.Ptrs[0], n.Ptrs[1], 8))
				}
				rec := recorded(t)
				rec(c.Add(gpu.Fill(fixed.All(), []byte{1})))
				rec(c.Add(gpu.Barrier()))
				a := rec(c.Add(gpu.Native("", twice, fixed.Range(8, 8), to.Range(16, 16))))
				b := rec(c.Add(gpu.Native("", func(n gpu.NativeCall) error { return n.Device.Fill(n.Stream, n.Ptrs[0], 6, 1, 8) }, fixed.Range(32, 8))))
				rec(c.Add(gpu.Copy(to.Range(0, 8), fixed.Range(8, 8)), a, b))
				rec(c.Add(gpu.Copy(to.Range(8, 8), fixed.Range(32, 8)), a, b))
				must(t, c.End())
				captures := mode != gpu.StreamMode && caps.Graphs
				x, y, s := allocate(t, dev, 32), allocate(t, dev, 64), semaphores(t, 1)[0]
				for i, r := range []gpu.Range{x.All(), x.All(), y.Range(32, 32), x.All()} {
					must(t, q.Submit(gpu.Order{Signal: pts(s, uint64(i+1))}, gpu.Execute(c, r)))
					must(t, s.Wait(in(t, time.Minute), uint64(i+1)))
					got := bytesOf(t, q, r.Buffer)[r.Offset:]
					if got[0] != 5 || got[8] != 6 || got[16] != 5 || got[31] != 5 {
						t.Errorf("execution %d: %v", i, got)
					}
				}
				if want := map[bool]int{false: 4, true: 3}[captures]; calls != want {
					t.Errorf("the function was called %d times; want %d", calls, want)
				}
				parent := commandBuffer(t, dev, mode)
				recorded(t)(parent.Add(gpu.Execute(c, y.Range(0, 32))))
				must(t, parent.End())
				must(t, q.Submit(gpu.Order{Signal: pts(s, 5)}, gpu.Execute(parent)))
				must(t, s.Wait(in(t, time.Minute), 5))
				if got := bytesOf(t, q, y); got[0] != 5 || got[31] != 5 {
					t.Errorf("nested: %v", got)
				}
				must(t, parent.Close())
				must(t, c.Close())
				must(t, dev.Close())
			})
		})
	}
}

// TestNativeCapture records native functions in graphs. If a function fails or its work cannot be
// captured, End or the execution must fail. If the function gives the stream other work than
// before, the graph must be made again.
func TestNativeCapture(t *testing.T) {
	onEach(t, 1, func(t *testing.T, d *simdriver.Driver, caps driver.Caps) {
		if !caps.Capture {
			t.Skip("no capture")
		}
		dev, s := openDevice(t, d, 0, gpu.Options{}), semaphores(t, 4)
		q, x, y := dev.Queue(0), allocate(t, dev, 64), allocate(t, dev, 64)
		make := func(fn func(gpu.NativeCall) error, uses ...gpu.Range) *gpu.CommandBuffer {
			c := commandBuffer(t, dev, gpu.GraphMode)
			to, err := c.Binding()
			must(t, err)
			if uses == nil {
				uses = []gpu.Range{to.Range(0, 64)}
			} else {
				recorded(t)(c.Add(gpu.Fill(to.Range(0, 64), []byte{1})))
			}
			recorded(t)(c.Add(gpu.Native("", fn, uses...)))
			return c
		}
		n := uint64(0)
		grows := make(func(v gpu.NativeCall) error {
			n += 8
			for i := range n / 8 {
				if err := v.Device.Fill(v.Stream, v.Ptrs[0]+driver.Ptr(8*i), 9, 1, 8); err != nil {
					return err
				}
			}
			return nil
		})
		must(t, grows.End())
		for i, b := range []*gpu.Buffer{x, y, x} {
			must(t, q.Submit(gpu.Order{Signal: pts(s[0], uint64(i+1))}, gpu.Execute(grows, b.All())))
			must(t, s[0].Wait(in(t, time.Minute), uint64(i+1)))
		}
		if got := bytesOf(t, q, x); got[23] != 9 {
			t.Errorf("%d calls, and %v", n/8, got)
		}
		fails := make(func(gpu.NativeCall) error { return io.EOF }, x.All())
		if err := fails.End(); !errors.Is(err, io.EOF) {
			t.Errorf("End = %v", err)
		}
		waits := make(func(v gpu.NativeCall) error {
			_, err := v.Device.(driver.Timers).Elapsed(0, 0)
			return err
		})
		must(t, waits.End())
		must(t, q.Submit(gpu.Order{Signal: pts(s[1], 1)}, gpu.Execute(waits, x.All())))
		if err := s[1].Wait(in(t, time.Minute), 1); err == nil {
			t.Error("an execution whose work cannot be captured has succeeded")
		}
		d.Inject(simdriver.Fault{Op: simdriver.OpEndCapture, N: 1, Err: io.ErrShortWrite})
		once := make(filler(3, 64))
		must(t, once.End())
		must(t, q.Submit(gpu.Order{Signal: pts(s[2], 1)}, gpu.Execute(once, x.All())))
		if err := s[2].Wait(in(t, time.Minute), 1); !errors.Is(err, io.ErrShortWrite) {
			t.Errorf("Wait = %v", err)
		}
		must(t, q.Submit(gpu.Order{Signal: pts(s[3], 1)}, gpu.Execute(once, x.All())))
		must(t, s[3].Wait(in(t, time.Minute), 1))
		if got := bytesOf(t, q, x); got[63] != 3 {
			t.Errorf("%v", got)
		}
		for _, c := range []*gpu.CommandBuffer{grows, fails, waits, once} {
			must(t, c.Close())
		}
		must(t, dev.Close())
	})
}
