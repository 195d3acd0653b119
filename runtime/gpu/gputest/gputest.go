// Package gputest is the conformance suite of package gpu: what a program may rely on, whatever driver is below. The tests
// of a driver call [Run].
//
// Sub-tests are named by the behaviours that they prove, B54 and so on, which are numbered through the project.
package gputest

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"

	"io"
	"math/rand/v2"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"
	"unsafe"

	"go.uber.org/goleak"

	"github.com/puregpu/puregpu/runtime/driver"
	"github.com/puregpu/puregpu/runtime/gpu"
	"github.com/puregpu/puregpu/testdata/kernels"
)

// A Harness is a driver to be tested, and what the tests may do with it besides.
type Harness struct {
	Driver driver.Driver // with one device at least

	// Kernels says that the driver can load the PTX of testdata/kernels, or what stands for it.
	Kernels bool

	// Stall holds the work of a device until the function returned is called. Nil if that is not possible.
	Stall func(device int) (resume func())

	// Calls returns how often a native call was made on a device; op is as in [driver.Error]. Nil if nobody counts.
	Calls func(device int, op string) uint64

	// Current returns what is current on the calling thread, and SetCurrent changes it. Nil if there is no such thing.
	Current    func() any
	SetCurrent func(device int)
}

// Run runs the suite. open is called once for each test.
func Run(t *testing.T, open func(t *testing.T) Harness) {
	for _, group := range []struct {
		name  string
		tests []test
	}{
		{"submissions", submissions},
		{"host and device", mixed},
		{"failures", failures},
		{"closing", closing},
		{"buffers", buffers},
		{"transfers", transfers},
		{"kernels", dispatches},
		{"host calls", hostCalls},
		{"devices", devices},
		{"threads", threads},
	} {
		t.Run(group.name, func(t *testing.T) {
			for _, x := range group.tests {
				t.Run(x.name, func(t *testing.T) {
					now := goleak.IgnoreCurrent()
					t.Cleanup(func() { goleak.VerifyNone(t, now) })
					h := open(t)
					infos, err := h.Driver.Devices()
					switch {
					case err != nil:
						t.Fatal(err)
					case len(infos) < max(x.devices, 1):
						t.Skipf("needs %d devices, and there are %d", max(x.devices, 1), len(infos))
					case x.kernels && !h.Kernels:
						t.Skip("needs kernels")
					case x.stall && h.Stall == nil:
						t.Skip("needs a driver that can hold a device's work")
					case x.calls && h.Calls == nil:
						t.Skip("needs a driver that counts calls")
					}
					e := &env{T: t, h: h}
					ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
					t.Cleanup(cancel)
					e.ctx = ctx
					for i := range max(x.devices, 1) {
						d, err := gpu.Open(h.Driver, i, gpu.Options{Queues: 4})
						if err != nil {
							t.Fatal(err)
						}
						t.Cleanup(func() {
							if err := d.Close(); err != nil {
								t.Errorf("close: %v", err)
							}
						})
						e.devs = append(e.devs, d)
					}
					x.run(e)
				})
			}
		})
	}
}

// A test is one of the suite.
type test struct {
	name    string
	devices int // 0 is 1
	kernels bool
	stall   bool
	calls   bool
	run     func(e *env)
}

// An env is what a test has.
type env struct {
	*testing.T
	h    Harness
	devs []*gpu.Device
	ctx  context.Context // ends when nobody can hope any more
}

// q returns a queue of the first device.
func (e *env) q(i int) *gpu.Queue { return e.devs[0].Queue(i) }

// must ends the test on an error.
func (e *env) must(err error) {
	e.Helper()
	if err != nil {
		e.Fatal(err)
	}
}

// sem makes a semaphore at 0.
func (e *env) sem() *gpu.Semaphore {
	e.Helper()
	s, err := gpu.NewSemaphore(0)
	e.must(err)
	return s
}

// sems makes n semaphores at 0.
func (e *env) sems(n int) (all []*gpu.Semaphore) {
	for range n {
		all = append(all, e.sem())
	}
	return all
}

// wait waits, and ends the test if that fails.
func (e *env) wait(s *gpu.Semaphore, v uint64) {
	e.Helper()
	e.must(s.Wait(e.ctx, v))
}

// at checks a semaphore's value.
func (e *env) at(s *gpu.Semaphore, v uint64) {
	e.Helper()
	if got, err := s.Query(); got != v || err != nil {
		e.Errorf("at %d, %v; want %d", got, err, v)
	}
}

// failed waits for a value and checks that the semaphore has failed with one of an error's kind.
func (e *env) failed(s *gpu.Semaphore, v uint64, kind error) error {
	e.Helper()
	err := s.Wait(e.ctx, v)
	if !errors.Is(err, kind) {
		e.Errorf("Wait = %v; want %v", err, kind)
	}
	return err
}

// buffer makes a buffer of the first device's own memory and fills it with zeros.
func (e *env) buffer(size uint64) *gpu.Buffer {
	e.Helper()
	return e.bufferOn(e.devs[0], size)
}

func (e *env) bufferOn(d *gpu.Device, size uint64) *gpu.Buffer {
	e.Helper()
	b, err := d.Alloc(gpu.DeviceMem, size)
	e.must(err)
	e.Cleanup(func() { b.Close() })
	s := e.sem()
	e.must(d.Queue(0).Fill(signal(s, 1), b.All(), []byte{0}))
	e.wait(s, 1)
	return b
}

// read downloads a buffer, after some points.
func (e *env) read(b *gpu.Buffer, after ...gpu.Point) []byte {
	e.Helper()
	data := make([]byte, b.Size())
	s := e.sem()
	e.must(e.q(3).Download(gpu.Order{Wait: after, Signal: points(s, 1)}, data, b.All()))
	e.wait(s, 1)
	return data
}

// holds checks that a buffer has a byte everywhere.
func (e *env) holds(b *gpu.Buffer, want byte, after ...gpu.Point) {
	e.Helper()
	for i, got := range e.read(b, after...) {
		if got != want {
			e.Errorf("byte %d is %#x, want %#x", i, got, want)
			return
		}
	}
}

// words returns a buffer's 32-bit words.
func (e *env) words(b *gpu.Buffer, after ...gpu.Point) []uint32 {
	e.Helper()
	data := e.read(b, after...)
	w := make([]uint32, len(data)/4)
	for i := range w {
		w[i] = binary.LittleEndian.Uint32(data[4*i:])
	}
	return w
}

// kernel loads one of the kernels of package kernels.
func (e *env) kernel(image []byte, name string) *gpu.Kernel {
	e.Helper()
	x, err := e.devs[0].Load(image)
	e.must(err)
	e.Cleanup(func() { x.Close() })
	k, err := x.Kernel(name)
	e.must(err)
	return k
}

func points(s *gpu.Semaphore, v uint64) []gpu.Point { return []gpu.Point{{Semaphore: s, Value: v}} }

// signal is the order to signal a point.
func signal(s *gpu.Semaphore, v uint64) gpu.Order { return gpu.Order{Signal: points(s, v)} }

// between is the order to wait for a point and signal another.
func between(w *gpu.Semaphore, wv uint64, s *gpu.Semaphore, sv uint64) gpu.Order {
	return gpu.Order{Wait: points(w, wv), Signal: points(s, sv)}
}

// until asks until something is so.
func (e *env) until(what string, so func() bool) {
	e.Helper()
	for !so() {
		if e.ctx.Err() != nil {
			e.Fatalf("%s: it does not happen", what)
		}
		time.Sleep(50 * time.Microsecond)
	}
}

var ended = func() context.Context {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	return ctx
}()

var submissions = []test{
	{name: "B52 a barrier signals after its waits", run: func(e *env) {
		host, a, b := e.sem(), e.sem(), e.sem()
		e.must(e.q(0).Barrier(gpu.Order{}))
		e.must(e.q(0).Barrier(signal(a, 1)))
		e.wait(a, 1)
		e.must(e.q(0).Barrier(between(host, 1, b, 1)))
		if err := b.Wait(ended, 1); err == nil {
			e.Error("signalled before its wait")
		}
		e.must(host.Signal(1))
		e.wait(b, 1)
	}},
	{name: "B53 a submission returns before the work is done, and signals after", stall: true, run: func(e *env) {
		b, s := e.buffer(64), e.sem()
		resume := e.h.Stall(0)
		e.must(e.q(0).Fill(signal(s, 1), b.All(), []byte{7}))
		for range 100 {
			e.at(s, 0)
		}
		resume()
		e.wait(s, 1)
		e.at(s, 1)
		e.holds(b, 7)
	}},
	{name: "B54 a submission with an unsatisfied wait returns at once, and nothing runs before the signal", run: func(e *env) {
		b, host, s := e.buffer(64), e.sem(), e.sem()
		e.must(e.q(0).Fill(between(host, 5, s, 1), b.All(), []byte{7}))
		e.must(host.Signal(4))
		e.holds(b, 0)
		e.at(s, 0)
		e.must(host.Signal(6))
		e.wait(s, 1)
		e.holds(b, 7)
	}},
	{name: "B55 several waits and several signals", run: func(e *env) {
		for _, order := range [][]int{{0, 1, 2}, {2, 1, 0}, {1, 0, 2}} {
			b, in, out := e.buffer(64), e.sems(3), e.sems(3)
			o := gpu.Order{}
			for i := range in {
				o.Wait = append(o.Wait, gpu.Point{Semaphore: in[i], Value: uint64(i + 1)})
				o.Signal = append(o.Signal, gpu.Point{Semaphore: out[i], Value: uint64(i + 7)})
			}
			e.must(e.q(0).Fill(o, b.All(), []byte{7}))
			for _, i := range order {
				e.holds(b, 0)
				e.must(in[i].Signal(uint64(i + 1)))
			}
			for i := range out {
				e.wait(out[i], uint64(i+7))
				e.at(out[i], uint64(i+7))
			}
			e.holds(b, 7)
		}
	}},
	{name: "B56 waiting before the signal across queues", run: func(e *env) {
		a, b, s := e.buffer(64), e.buffer(64), e.sem()
		e.must(e.q(1).Copy(between(s, 1, s, 2), b.All(), a.All()))
		e.must(e.q(0).Fill(signal(s, 1), a.All(), []byte{9}))
		e.wait(s, 2)
		e.holds(b, 9)
	}},
	{name: "B57 fan-out to different values before the signals", run: func(e *env) {
		const n = 12
		s, out := e.sem(), e.sems(n)
		for i := range out {
			e.must(e.q(i).Barrier(between(s, uint64(i+1), out[i], 1)))
		}
		for _, v := range []uint64{1, 2, 5, 11, 12} {
			e.must(s.Signal(v))
			for i := range out {
				if uint64(i+1) <= v {
					e.wait(out[i], 1)
				} else if err := out[i].Wait(ended, 1); err == nil {
					e.Errorf("value %d is released at %d", i+1, v)
				}
			}
		}
	}},
	{name: "B58 a submission that waits does not hold up the next", run: func(e *env) {
		a, b, host, s := e.buffer(64), e.buffer(64), e.sem(), e.sem()
		for range 10 {
			e.must(e.q(0).Fill(gpu.Order{Wait: points(host, 1)}, a.All(), []byte{1}))
		}
		e.must(e.q(0).Fill(signal(s, 1), b.All(), []byte{2}))
		e.wait(s, 1)
		e.holds(b, 2)
		e.holds(a, 0)
		e.must(host.Signal(1))
	}},
	{name: "B59 what a submission uses may be let go of", run: func(e *env) {
		a, b, host, s := e.buffer(64), e.buffer(64), e.sem(), e.sem()
		wait, sig := points(host, 1), points(s, 1)
		e.must(e.q(0).Fill(gpu.Order{Wait: wait, Signal: sig}, a.All(), []byte{5}))
		wait[0], sig[0] = gpu.Point{}, gpu.Point{} // the lists were copied
		e.must(e.q(1).Copy(between(s, 1, s, 2), b.All(), a.All()))
		e.must(a.Close())
		if err := e.q(0).Fill(gpu.Order{}, a.All(), []byte{1}); !errors.Is(err, gpu.ErrClosed) {
			e.Errorf("use of a closed buffer: %v", err)
		}
		e.must(host.Signal(1))
		e.wait(s, 2)
		e.holds(b, 5)
	}},
	{name: "B60 the data of an update is captured by the call", run: func(e *env) {
		b, host, s := e.buffer(1000), e.sem(), e.sem()
		data := bytes.Repeat([]byte{3}, 1000)
		e.must(e.q(0).Update(between(host, 1, s, 1), b.All(), data))
		for i := range data {
			data[i] = 4
		}
		e.must(host.Signal(1))
		e.wait(s, 1)
		e.holds(b, 3)
	}},
	{name: "B71 a waiter is issued when its producer is, not when that is done", stall: true, calls: true, run: func(e *env) {
		a, b, host, s := e.buffer(64), e.buffer(64), e.sem(), e.sem()
		e.must(e.q(2).Copy(between(s, 1, s, 2), b.All(), a.All()))
		e.must(e.q(1).Fill(between(host, 1, s, 1), a.All(), []byte{8}))
		waits, copies := e.h.Calls(0, "wait"), e.h.Calls(0, "copy")
		resume := e.h.Stall(0)
		e.must(host.Signal(1))
		e.until("the copy is issued", func() bool { return e.h.Calls(0, "copy") == copies+1 })
		if n := e.h.Calls(0, "wait") - waits; n != 1 {
			e.Errorf("%d waits of streams for events, want 1", n)
		}
		e.at(s, 0)
		resume()
		e.wait(s, 2)
		e.holds(b, 8)
	}},
	{name: "B73 chains, forwards and in reverse, on one queue and on several", run: func(e *env) {
		const n = 300
		for _, queues := range []int{1, 4} {
			for _, reverse := range []bool{false, true} {
				b, s := e.buffer(n+1), e.sem()
				e.must(e.q(0).Update(signal(s, 1), b.Range(0, 1), []byte{42}))
				for k := range uint64(n) {
					i := k
					if reverse {
						i = n - 1 - k
					}
					e.must(e.q(int(i)%queues).Copy(between(s, i+1, s, i+2), b.Range(i+1, 1), b.Range(i, 1)))
				}
				e.wait(s, n+1)
				e.at(s, n+1)
				e.holds(b, 42)
			}
		}
	}},
	{name: "B74 bursts of more than the event pool has", run: func(e *env) {
		const rounds, burst = 64, 64
		b, s := e.buffer(4*burst), e.sem()
		for r := range uint32(rounds) {
			o := gpu.Order{}
			done := e.sems(burst)
			if r > 0 {
				o.Wait = points(s, uint64(r))
			}
			end := gpu.Order{Signal: points(s, uint64(r+1))}
			for i := range uint64(burst) {
				o.Signal = points(done[i], 1)
				e.must(e.q(int(i)).Fill(o, b.Range(4*i, 4), binary.LittleEndian.AppendUint32(nil, r<<16|uint32(i))))
				end.Wait = append(end.Wait, gpu.Point{Semaphore: done[i], Value: 1})
			}
			e.must(e.q(int(r)).Barrier(end))
		}
		e.wait(s, rounds)
		for i, w := range e.words(b) {
			if w != (rounds-1)<<16|uint32(i) {
				e.Fatalf("word %d is %#x", i, w)
			}
		}
	}},
	{name: "B75 a barrier orders what is on several queues", run: func(e *env) {
		b, parts, s := e.buffer(400), e.sems(4), e.sem()
		o := gpu.Order{Signal: points(s, 1)}
		for i := range uint64(4) {
			e.must(e.q(int(i)).Fill(signal(parts[i], 1), b.Range(100*i, 100), []byte{1}))
			o.Wait = append(o.Wait, gpu.Point{Semaphore: parts[i], Value: 1})
		}
		e.must(e.q(0).Barrier(o))
		e.holds(b, 1, gpu.Point{Semaphore: s, Value: 1})
	}},
	{name: "B76 long lists", run: func(e *env) {
		for _, hostly := range []bool{true, false} {
			a, b, in, out := e.buffer(200), e.buffer(64), e.sems(200), e.sems(200)
			o := gpu.Order{}
			for i := range in {
				o.Wait = append(o.Wait, gpu.Point{Semaphore: in[i], Value: 1})
				o.Signal = append(o.Signal, gpu.Point{Semaphore: out[i], Value: 1})
			}
			e.must(e.q(0).Fill(o, b.All(), []byte{1}))
			for i := range in {
				if hostly {
					e.must(in[i].Signal(1))
				} else {
					e.must(e.q(i).Fill(signal(in[i], 1), a.Range(uint64(i), 1), []byte{0}))
				}
			}
			e.must(gpu.WaitAll(e.ctx, o.Signal...))
			e.holds(b, 1)
		}
	}},
	{name: "B75 a value that a device of two raises in any order of discovery", run: func(e *env) {
		// The end of a chain may be found done before its beginning.
		b := e.buffer(64)
		for range 200 {
			s, x := e.sem(), e.sem()
			data := make([]byte, 64)
			e.must(e.q(0).Fill(signal(s, 1), b.All(), []byte{6}))
			e.must(e.q(1).Download(between(s, 1, s, 2), data, b.All()))
			e.must(e.q(2).Barrier(between(s, 2, x, 1)))
			e.wait(x, 1)
			if data[63] != 6 {
				e.Fatal("what waited for the download is done, and the data is not there")
			}
			e.must(s.Signal(3))
			e.must(e.q(0).Fill(between(s, 3, s, 4), b.All(), []byte{0}))
			e.wait(s, 4)
			e.at(s, 4)
		}
	}},
}

var mixed = []test{
	{name: "B63 a host waits for all of a host's and a device's", run: func(e *env) {
		b := e.buffer(64)
		for _, hostFirst := range []bool{true, false} {
			host, dev, gate := e.sem(), e.sem(), e.sem()
			e.must(e.q(0).Fill(between(gate, 1, dev, 1), b.All(), []byte{1}))
			got := make(chan error, 1)
			go func() {
				got <- gpu.WaitAll(e.ctx, gpu.Point{Semaphore: host, Value: 1}, gpu.Point{Semaphore: dev, Value: 1})
			}()
			steps := []*gpu.Semaphore{host, gate}
			if !hostFirst {
				slices.Reverse(steps)
			}
			e.must(steps[0].Signal(1))
			if !hostFirst {
				e.wait(dev, 1)
			}
			if len(got) > 0 {
				e.Error("returned with one of them")
			}
			e.must(steps[1].Signal(1))
			e.must(<-got)
		}
	}},
	{name: "B64 a host waits for any of a host's and a device's", run: func(e *env) {
		b := e.buffer(64)
		for _, byDevice := range []bool{true, false} {
			host, dev, gate := e.sem(), e.sem(), e.sem()
			e.must(e.q(0).Fill(between(gate, 1, dev, 1), b.All(), []byte{1}))
			got := make(chan int, 1)
			go func() {
				i, err := gpu.WaitAny(e.ctx, gpu.Point{Semaphore: host, Value: 1}, gpu.Point{Semaphore: dev, Value: 1})
				if err != nil {
					i = -1
				}
				got <- i
			}()
			want := 0
			if byDevice {
				want = 1
				e.must(gate.Signal(1))
			} else {
				e.must(host.Signal(1))
			}
			if i := <-got; i != want {
				e.Errorf("WaitAny = %d, want %d", i, want)
			}
			if !byDevice {
				e.must(gate.Signal(1))
			}
		}
	}},
	{name: "B65 a semaphore between two submissions can be asked", run: func(e *env) {
		b, gate, s1, s2 := e.buffer(64), e.sem(), e.sem(), e.sem()
		e.must(e.q(0).Fill(signal(s1, 1), b.All(), []byte{1}))
		e.must(e.q(1).Fill(gpu.Order{Wait: []gpu.Point{{Semaphore: s1, Value: 1}, {Semaphore: gate, Value: 1}}, Signal: points(s2, 1)}, b.All(), []byte{2}))
		e.until("the first is done", func() bool { v, err := s1.Query(); e.must(err); return v == 1 })
		e.at(s2, 0)
		e.must(gate.Signal(1))
		e.wait(s2, 1)
		e.at(s1, 1)
		e.holds(b, 2)
	}},
	{name: "B65 a query finds what is done though a higher value is not", stall: true, devices: 2, run: func(e *env) {
		a, b, s := e.bufferOn(e.devs[0], 64), e.bufferOn(e.devs[1], 64), e.sem()
		resume := e.h.Stall(1)
		e.must(e.devs[0].Queue(0).Fill(signal(s, 1), a.All(), []byte{1}))
		e.must(e.devs[1].Queue(0).Fill(between(s, 1, s, 2), b.All(), []byte{1}))
		e.until("the first is done", func() bool { v, err := s.Query(); e.must(err); return v == 1 })
		resume()
		e.wait(s, 2)
	}},
	{name: "B66 two wait for one of two", run: func(e *env) {
		b, gate, s, x, y := e.buffer(64), e.sem(), e.sem(), e.sem(), e.sem()
		e.must(e.q(2).Fill(between(s, 1, x, 1), b.Range(0, 1), []byte{1}))
		e.must(e.q(3).Fill(between(s, 2, y, 1), b.Range(1, 1), []byte{1}))
		e.must(e.q(0).Fill(signal(s, 1), b.Range(2, 1), []byte{1}))
		e.must(e.q(1).Fill(gpu.Order{Wait: []gpu.Point{{Semaphore: s, Value: 1}, {Semaphore: gate, Value: 1}}, Signal: points(s, 2)}, b.Range(3, 1), []byte{1}))
		e.wait(x, 1)
		e.at(y, 0)
		e.must(gate.Signal(1))
		e.wait(y, 1)
	}},
	{name: "B67 two wait for different values", run: func(e *env) {
		b, s, x, y := e.buffer(64), e.sem(), e.sem(), e.sem()
		e.must(e.q(0).Fill(between(s, 1, x, 1), b.Range(0, 1), []byte{1}))
		e.must(e.q(0).Fill(between(s, 2, y, 1), b.Range(1, 1), []byte{1}))
		e.must(s.Signal(1))
		e.wait(x, 1)
		e.at(y, 0)
		e.must(s.Signal(2))
		e.wait(y, 1)
	}},
	{name: "B68 a wait for a device and for a host, in either order", run: func(e *env) {
		b := e.buffer(64)
		for _, hostFirst := range []bool{true, false} {
			host, s, x := e.sem(), e.sem(), e.sem()
			e.must(e.q(1).Fill(gpu.Order{Wait: []gpu.Point{{Semaphore: s, Value: 1}, {Semaphore: host, Value: 1}}, Signal: points(x, 1)}, b.All(), []byte{2}))
			if hostFirst {
				e.must(host.Signal(1))
				e.at(x, 0)
				e.must(e.q(0).Fill(signal(s, 1), b.All(), []byte{1}))
			} else {
				e.must(e.q(0).Fill(signal(s, 1), b.All(), []byte{1}))
				e.wait(s, 1)
				e.at(x, 0)
				e.must(host.Signal(1))
			}
			e.wait(x, 1)
			e.holds(b, 2)
		}
	}},
	{name: "B69 a device signals a device and a host", run: func(e *env) {
		b, s, x := e.buffer(64), e.sem(), e.sem()
		told := make(chan error, 1)
		s.OnReached(1, func(err error) { told <- err })
		e.must(e.q(1).Fill(between(s, 1, x, 1), b.All(), []byte{2}))
		e.must(e.q(0).Fill(signal(s, 1), b.All(), []byte{1}))
		e.wait(s, 1)
		e.wait(x, 1)
		e.must(<-told)
		e.holds(b, 2)
	}},
	{name: "B70 a wait for less than was signalled", run: func(e *env) {
		b, s, x, y := e.buffer(64), e.sem(), e.sem(), e.sem()
		e.must(e.q(1).Fill(between(s, 3, x, 1), b.All(), []byte{2}))
		e.must(e.q(0).Fill(signal(s, 7), b.All(), []byte{1}))
		e.must(e.q(1).Fill(between(s, 3, y, 1), b.All(), []byte{2}))
		e.wait(x, 1)
		e.wait(y, 1)
		e.wait(s, 2)
		e.at(s, 7)
	}},
	{name: "B28 a wait for a device ends with its context, and the device goes on", stall: true, run: func(e *env) {
		b, s := e.buffer(64), e.sem()
		resume := e.h.Stall(0)
		e.must(e.q(0).Fill(signal(s, 1), b.All(), []byte{1}))
		ctx, cancel := context.WithTimeout(e.ctx, 2*time.Millisecond)
		defer cancel()
		if err := s.Wait(ctx, 1); !errors.Is(err, context.DeadlineExceeded) {
			e.Errorf("Wait = %v", err)
		}
		resume()
		e.wait(s, 1)
	}},
}

var failures = []test{
	{name: "B77 a failed wait fails the signals, and nothing runs", run: func(e *env) {
		b, host, s, x := e.buffer(64), e.sem(), e.sem(), e.sem()
		e.must(e.q(0).Fill(gpu.Order{Wait: points(host, 1), Signal: []gpu.Point{{Semaphore: s, Value: 1}, {Semaphore: x, Value: 1}}}, b.All(), []byte{1}))
		host.Fail(io.ErrUnexpectedEOF)
		e.failed(s, 1, io.ErrUnexpectedEOF)
		e.failed(x, 1, io.ErrUnexpectedEOF)
		y := e.sem() // failed before
		e.must(e.q(0).Fill(between(host, 1, y, 1), b.All(), []byte{1}))
		err := e.failed(y, 1, io.ErrUnexpectedEOF)
		var se *gpu.SubmitError
		if !errors.As(err, &se) || se.Op != "fill" {
			e.Errorf("the failure is %v", err)
		}
		e.holds(b, 0)
	}},
	{name: "B78 a failure passes through chains", run: func(e *env) {
		const n = 1000
		b, s, last := e.buffer(64), e.sems(n+1), e.sem()
		for i := range n {
			e.must(e.q(i).Fill(between(s[i], 1, s[i+1], 1), b.All(), []byte{1}))
		}
		e.must(e.q(0).HostCall(between(s[n], 1, last, 1), func() error { e.Error("the host call runs"); return nil }))
		s[0].Fail(io.ErrUnexpectedEOF)
		err := e.failed(last, 1, io.ErrUnexpectedEOF)
		if len(err.Error()) > 500 {
			e.Errorf("the failure has grown to %d bytes: %.200s…", len(err.Error()), err.Error())
		}
		e.holds(b, 0)
	}},
	{name: "B79 a failure hurts nothing else", run: func(e *env) {
		b, bad, x := e.buffer(64), e.sem(), e.sem()
		e.must(e.q(0).Fill(between(bad, 1, x, 1), b.Range(0, 8), []byte{1}))
		good, y := e.sem(), e.sem()
		e.must(e.q(0).Fill(between(good, 1, y, 1), b.Range(8, 8), []byte{2}))
		bad.Fail(io.EOF)
		e.failed(x, 1, io.EOF)
		e.must(good.Signal(1))
		e.wait(y, 1)
		z := e.sem()
		e.must(e.q(0).Fill(signal(z, 1), b.All(), []byte{3}))
		e.wait(z, 1)
		e.holds(b, 3)
	}},
	{name: "B82 a mistake is told at once, and nothing has changed", run: func(e *env) {
		b, s := e.buffer(64), e.sem()
		other, err := e.devs[0].Alloc(gpu.DeviceMem, 16)
		e.must(err)
		e.must(other.Close())
		q, o := e.q(0), signal(s, 1)
		none := gpu.Order{Wait: []gpu.Point{{}}, Signal: o.Signal}
		high := gpu.Order{Signal: []gpu.Point{{Semaphore: s, Value: 1}, {Semaphore: s, Value: 1<<64 - 1}}}
		for name, c := range map[string]struct {
			err, kind error
		}{
			"fill behind the end":         {q.Fill(o, b.Range(60, 8), []byte{1}), gpu.ErrRange},
			"fill far behind the end":     {q.Fill(o, b.Range(65, 0), []byte{1}), gpu.ErrRange},
			"fill with an overflow":       {q.Fill(o, b.Range(8, 1<<64-4), []byte{1}), gpu.ErrRange},
			"fill of no buffer":           {q.Fill(o, gpu.Range{}, []byte{1}), gpu.ErrArgument},
			"fill of a closed buffer":     {q.Fill(o, other.All(), []byte{1}), gpu.ErrClosed},
			"fill with no pattern":        {q.Fill(o, b.All(), nil), gpu.ErrArgument},
			"fill with 3 bytes":           {q.Fill(o, b.All(), []byte{1, 2, 3}), gpu.ErrArgument},
			"fill with a size unaligned":  {q.Fill(o, b.Range(0, 6), []byte{1, 2, 3, 4}), gpu.ErrArgument},
			"fill with an offset of 2":    {q.Fill(o, b.Range(2, 8), []byte{1, 2, 3, 4}), gpu.ErrArgument},
			"copy of different sizes":     {q.Copy(o, b.Range(0, 8), b.Range(8, 16)), gpu.ErrArgument},
			"copy from behind the end":    {q.Copy(o, b.Range(0, 8), b.Range(60, 8)), gpu.ErrRange},
			"copy from a closed buffer":   {q.Copy(o, b.Range(0, 8), other.Range(0, 8)), gpu.ErrClosed},
			"update of a different size":  {q.Update(o, b.Range(0, 8), make([]byte, 9)), gpu.ErrArgument},
			"update behind the end":       {q.Update(o, b.Range(64, 8), make([]byte, 8)), gpu.ErrRange},
			"download of another size":    {q.Download(o, make([]byte, 9), b.Range(0, 8)), gpu.ErrArgument},
			"download behind the end":     {q.Download(o, make([]byte, 8), b.Range(57, 8)), gpu.ErrRange},
			"update of a closed buffer":   {q.Update(o, other.Range(0, 8), make([]byte, 8)), gpu.ErrClosed},
			"download of a closed buffer": {q.Download(o, make([]byte, 8), other.Range(0, 8)), gpu.ErrClosed},
			"dispatch of no kernel":       {q.Dispatch(o, gpu.Dispatch{}), gpu.ErrArgument},
			"host call of no function":    {q.HostCall(o, nil), gpu.ErrArgument},
			"a wait for no semaphore":     {q.Barrier(none), gpu.ErrArgument},
			"a signal of no semaphore":    {q.Fill(gpu.Order{Signal: []gpu.Point{{}}}, b.All(), []byte{1}), gpu.ErrArgument},
			"a signal above the highest":  {q.Update(high, b.All(), make([]byte, 64)), gpu.ErrArgument},
		} {
			if !errors.Is(c.err, c.kind) {
				e.Errorf("%s: %v; want %v", name, c.err, c.kind)
			}
		}
		e.at(s, 0)
		e.must(q.Fill(o, b.All(), []byte{1}))
		e.wait(s, 1)
		if n := e.devs[0].Stats(); n.InFlight+n.Parked > 0 {
			e.Errorf("left: %+v", n)
		}
	}},
	{name: "B83 a value that has passed fails its own submission only", run: func(e *env) {
		b, gate, s, x, y := e.buffer(64), e.sem(), e.sem(), e.sem(), e.sem()
		e.must(e.q(0).Fill(gpu.Order{Wait: points(gate, 1), Signal: []gpu.Point{{Semaphore: s, Value: 5}, {Semaphore: x, Value: 1}}}, b.All(), []byte{1}))
		e.must(s.Signal(5))
		e.must(gate.Signal(1))
		e.failed(x, 1, gpu.ErrValue)
		e.failed(s, 5, gpu.ErrValue)
		e.must(e.q(0).Fill(signal(y, 1), b.All(), []byte{2}))
		e.wait(y, 1)
		e.holds(b, 2)
	}},
	{name: "B87 a closed semaphore in a list hurts no other", run: func(e *env) {
		b, gate, s, x := e.buffer(64), e.sem(), e.sem(), e.sem()
		e.must(e.q(0).Fill(gpu.Order{Wait: points(gate, 1), Signal: []gpu.Point{{Semaphore: s, Value: 1}, {Semaphore: x, Value: 1}}}, b.All(), []byte{1}))
		e.must(s.Close())
		e.must(gate.Signal(1))
		e.wait(x, 1)
		e.failed(s, 1, gpu.ErrClosed)
	}},
}

var closing = []test{
	{name: "B84 after Close submissions fail, and so do their signals", run: func(e *env) {
		d, q := e.devs[0], e.q(0)
		b := e.buffer(64)
		e.must(d.Close())
		e.must(d.Close())
		for name, submit := range map[string]func(o gpu.Order) error{
			"barrier":   q.Barrier,
			"fill":      func(o gpu.Order) error { return q.Fill(o, b.All(), []byte{1}) },
			"update":    func(o gpu.Order) error { return q.Update(o, b.All(), make([]byte, 64)) },
			"download":  func(o gpu.Order) error { return q.Download(o, make([]byte, 64), b.All()) },
			"host call": func(o gpu.Order) error { return q.HostCall(o, func() error { return nil }) },
		} {
			s := e.sem()
			if err := submit(signal(s, 1)); !errors.Is(err, gpu.ErrClosed) {
				e.Errorf("%s: %v", name, err)
			}
			e.failed(s, 1, gpu.ErrClosed)
		}
		if _, err := d.Alloc(gpu.DeviceMem, 16); !errors.Is(err, gpu.ErrClosed) {
			e.Errorf("alloc: %v", err)
		}
		if _, err := d.Load([]byte("x")); !errors.Is(err, gpu.ErrClosed) {
			e.Errorf("load: %v", err)
		}
		e.must(b.Close())
	}},
	{name: "B85 Close fails what waits for nothing that comes", run: func(e *env) {
		const n = 100
		b, never, s := e.buffer(64), e.sem(), e.sems(n)
		var chain []*gpu.Semaphore
		for i := range s {
			e.must(e.q(i).Fill(between(never, uint64(i+1), s[i], 1), b.All(), []byte{1}))
			x := e.sem()
			e.must(e.q(i+1).Fill(between(s[i], 1, x, 1), b.All(), []byte{1}))
			chain = append(chain, x)
		}
		got := make(chan error, 1)
		go func() { got <- s[n/2].Wait(e.ctx, 1) }()
		e.must(e.devs[0].Close())
		for i := range s {
			e.failed(s[i], 1, gpu.ErrClosed)
			e.failed(chain[i], 1, gpu.ErrClosed)
		}
		if err := <-got; !errors.Is(err, gpu.ErrClosed) {
			e.Errorf("the waiter got %v", err)
		}
		e.at(never, 0)
		e.must(never.Signal(50)) // B86: nobody is there to hear it
		e.must(never.Signal(500))
	}},
	{name: "B85 Close waits for what the device is at", run: func(e *env) {
		b, s := e.buffer(1<<16), e.sem()
		for i := range uint64(50) {
			e.must(e.q(int(i)).Fill(gpu.Order{Wait: points(s, i), Signal: points(s, i+1)}, b.All(), []byte{byte(i)}))
		}
		e.must(e.devs[0].Close())
		e.at(s, 50)
	}},
	{name: "B86 semaphores outlive the device", run: func(e *env) {
		b, s := e.buffer(64), e.sem()
		e.must(e.q(0).Fill(signal(s, 1), b.All(), []byte{1}))
		e.must(e.devs[0].Close())
		e.wait(s, 1)
		e.at(s, 1)
		e.must(s.Signal(2))
		s.Fail(io.EOF)
		e.failed(s, 1, io.EOF)
	}},
	{name: "B84 B85 Close while others submit", run: func(e *env) {
		b := e.buffer(5)
		var wg sync.WaitGroup
		stop := atomic.Bool{}
		for g := range 4 {
			wg.Go(func() {
				s, host := e.sem(), e.sem()
				for v := uint64(1); !stop.Load(); v++ {
					o := signal(s, v)
					if v%3 == 0 {
						o.Wait = points(host, v)
					}
					if err := e.q(g).Fill(o, b.Range(uint64(g), 1), []byte{byte(v)}); err != nil {
						if !errors.Is(err, gpu.ErrClosed) {
							e.Error(err)
						}
						break
					}
					if v%3 == 0 {
						host.Signal(v)
					}
					if err := s.Wait(e.ctx, v); err != nil {
						if !errors.Is(err, gpu.ErrClosed) {
							e.Error(err)
						}
						break
					}
				}
			})
		}
		s := e.sem()
		e.must(e.q(0).Fill(signal(s, 1), b.Range(4, 1), []byte{1}))
		e.wait(s, 1)
		e.must(e.devs[0].Close())
		stop.Store(true)
		wg.Wait()
	}},
}

var buffers = []test{
	{name: "B91 a closed buffer cannot be used", run: func(e *env) {
		b := e.buffer(64)
		e.must(b.Close())
		e.must(b.Close())
		if err := e.q(0).Fill(gpu.Order{}, b.All(), []byte{1}); !errors.Is(err, gpu.ErrClosed) {
			e.Errorf("Fill = %v", err)
		}
	}},
	{name: "B95 a buffer is freed with its last use, once", run: func(e *env) {
		d := e.devs[0]
		host, s := e.sem(), e.sem()
		b, err := d.Alloc(gpu.DeviceMem, 1<<16)
		e.must(err)
		if st := d.Stats(); st.Buffers != 1 || st.Bytes != 1<<16 {
			e.Errorf("%+v", st)
		}
		e.must(e.q(0).Fill(between(host, 1, s, 1), b.All(), []byte{1}))
		e.must(b.Close())
		if st := d.Stats(); st.Buffers != 1 {
			e.Errorf("freed while it is needed: %+v", st)
		}
		e.must(host.Signal(1))
		e.wait(s, 1)
		e.until("it is freed", func() bool { return d.Stats().Buffers == 0 })
		if st := d.Stats(); st.Bytes != 0 || st.PeakBytes < 1<<16 {
			e.Errorf("%+v", st)
		}
	}},
	{name: "B97 a buffer of no size", run: func(e *env) {
		b, err := e.devs[0].Alloc(gpu.DeviceMem, 0)
		e.must(err)
		s := e.sem()
		e.must(e.q(0).Fill(signal(s, 1), b.All(), []byte{1}))
		e.must(e.q(0).Copy(between(s, 1, s, 2), b.All(), b.All()))
		e.must(e.q(0).Update(between(s, 2, s, 3), b.All(), nil))
		e.must(e.q(0).Download(between(s, 3, s, 4), nil, b.All()))
		e.wait(s, 4)
		if err := e.q(0).Fill(gpu.Order{}, b.Range(0, 1), []byte{1}); !errors.Is(err, gpu.ErrRange) {
			e.Errorf("Fill = %v", err)
		}
		e.must(b.Close())
	}},
	{name: "B97 memory of the host", run: func(e *env) {
		b, err := e.devs[0].Alloc(gpu.HostMem, 256)
		e.must(err)
		defer b.Close()
		s, dev := e.sem(), e.buffer(256)
		for i := range b.Bytes() {
			b.Bytes()[i] = byte(i)
		}
		e.must(e.q(0).Copy(signal(s, 1), dev.All(), b.All()))
		e.must(e.q(1).Fill(between(s, 1, s, 2), b.All(), []byte{0xaa}))
		e.wait(s, 2)
		for i, x := range e.read(dev) {
			if x != byte(i) {
				e.Fatalf("byte %d is %d", i, x)
			}
		}
		if x := b.Bytes()[255]; x != 0xaa {
			e.Errorf("the host sees %#x", x)
		}
	}},
	{name: "B97 memory of both", run: func(e *env) {
		b, err := e.devs[0].Alloc(gpu.ManagedMem, 256)
		if errors.Is(err, errors.ErrUnsupported) {
			e.Skip("there is none")
		}
		e.must(err)
		defer b.Close()
		s := e.sem()
		e.must(e.q(0).Fill(signal(s, 1), b.All(), []byte{0x55}))
		e.wait(s, 1)
		if x := b.Bytes(); len(x) != 256 || x[7] != 0x55 {
			e.Errorf("the host sees %d bytes", len(x))
		}
	}},
	{name: "imported memory is somebody else's", run: func(e *env) {
		own := e.buffer(64)
		b, err := e.devs[0].Import(own.Ptr()+16, 32, nil)
		e.must(err)
		s := e.sem()
		e.must(e.q(0).Fill(signal(s, 1), b.All(), []byte{9}))
		e.wait(s, 1)
		e.must(b.Close())
		got := e.read(own)
		if got[15] != 0 || got[16] != 9 || got[47] != 9 || got[48] != 0 {
			e.Errorf("%x", got)
		}
	}},
}

var transfers = []test{
	{name: "B99 fills of all widths, offsets and sizes leave the neighbours alone", run: func(e *env) {
		b, s := e.buffer(96), e.sem()
		v := uint64(0)
		pattern := []byte{0xa1, 0xb2, 0xc3, 0xd4}
		for _, width := range []uint64{1, 2, 4, 8} {
			p := slices.Concat(pattern, pattern)[:width]
			for _, offset := range []uint64{0, 1, 2, 3, 4, 8, 12} {
				for _, n := range []uint64{0, 1, 2, 3, 5, 8} {
					if offset%width != 0 || offset+n*width > 96 {
						continue
					}
					e.must(e.q(0).Fill(gpu.Order{Wait: points(s, v), Signal: points(s, v+1)}, b.All(), []byte{0xee}))
					e.must(e.q(1).Fill(between(s, v+1, s, v+2), b.Range(offset, n*width), p))
					v += 2
					want := slices.Concat(bytes.Repeat([]byte{0xee}, int(offset)), bytes.Repeat(p, int(n)))
					want = append(want, bytes.Repeat([]byte{0xee}, 96-len(want))...)
					if got := e.read(b, gpu.Point{Semaphore: s, Value: v}); !bytes.Equal(got, want) {
						e.Fatalf("%d × %d bytes at %d:\n got %x\nwant %x", n, width, offset, got, want)
					}
				}
			}
		}
	}},
	{name: "B100 copies, updates and downloads of all offsets and sizes", run: func(e *env) {
		const size = 4096
		a, b, s := e.buffer(size), e.buffer(size), e.sem()
		r := rand.New(rand.NewPCG(1, 1))
		model, v := make([]byte, size), uint64(0)
		modelB := make([]byte, size)
		for range 150 {
			n := r.Uint64N(64) + 1
			if r.IntN(5) == 0 {
				n = r.Uint64N(size-64) + 1
			}
			at, to := r.Uint64N(size-n+1), r.Uint64N(size-n+1)
			data := make([]byte, n)
			for i := range data {
				data[i] = byte(r.Uint32())
			}
			got := make([]byte, n)
			e.must(e.q(0).Update(gpu.Order{Wait: points(s, v), Signal: points(s, v+1)}, a.Range(at, n), data))
			e.must(e.q(1).Copy(between(s, v+1, s, v+2), b.Range(to, n), a.Range(at, n)))
			e.must(e.q(2).Download(between(s, v+2, s, v+3), got, b.Range(to, n)))
			v += 3
			copy(model[at:], data)
			copy(modelB[to:], data)
			e.wait(s, v)
			if !bytes.Equal(got, data) {
				e.Fatalf("%d bytes from %d to %d:\n got %x\nwant %x", n, at, to, got, data)
			}
		}
		if !bytes.Equal(e.read(a), model) || !bytes.Equal(e.read(b), modelB) {
			e.Error("the buffers differ from what they should be")
		}
	}},
	{name: "B100 large updates and downloads", run: func(e *env) {
		for _, n := range []uint64{64<<10 - 1, 64<<10 + 1, 1 << 20, 5<<20 + 3} {
			b, s := e.buffer(n), e.sem()
			data := make([]byte, n)
			for i := range data {
				data[i] = byte(i * 7 >> 3)
			}
			e.must(e.q(0).Update(signal(s, 1), b.All(), data))
			if got := e.read(b, gpu.Point{Semaphore: s, Value: 1}); !bytes.Equal(got, data) {
				e.Errorf("%d bytes came back changed", n)
			}
		}
	}},
	{name: "B101 fill, copy, fill", run: func(e *env) {
		a, b, s := e.buffer(4096), e.buffer(4096), e.sem()
		e.must(e.q(0).Fill(signal(s, 1), a.All(), []byte{1}))
		e.must(e.q(1).Copy(between(s, 1, s, 2), b.All(), a.All()))
		e.must(e.q(2).Fill(between(s, 2, s, 3), a.All(), []byte{2}))
		e.wait(s, 3)
		e.holds(a, 2)
		e.holds(b, 1)
	}},
	{name: "a download is there with its signal, not before", run: func(e *env) {
		b, host, s := e.buffer(64), e.sem(), e.sem()
		data := bytes.Repeat([]byte{0x11}, 64)
		e.must(e.q(0).Fill(signal(s, 1), b.All(), []byte{0x22}))
		e.must(e.q(1).Download(gpu.Order{Wait: []gpu.Point{{Semaphore: s, Value: 1}, {Semaphore: host, Value: 1}}, Signal: points(s, 2)}, data, b.All()))
		e.wait(s, 1)
		if data[0] != 0x11 {
			e.Error("written before it was to run")
		}
		e.must(host.Signal(1))
		e.wait(s, 2)
		if data[0] != 0x22 || data[63] != 0x22 {
			e.Errorf("%x", data)
		}
	}},
}

// arg returns a pointer to a value as an argument.
func arg[T any](v T) unsafe.Pointer { return unsafe.Pointer(&v) }

var dispatches = []test{
	{name: "B107 saxpy", kernels: true, run: func(e *env) {
		const n = 100_000
		k := e.kernel(kernels.Saxpy, "saxpy")
		x, y, s := e.buffer(4*n), e.buffer(4*n), e.sem()
		hx, hy := make([]float32, n), make([]float32, n)
		for i := range n {
			hx[i], hy[i] = float32(i), float32(2*i)
		}
		e.must(e.q(0).Update(signal(s, 1), x.All(), unsafe.Slice((*byte)(unsafe.Pointer(&hx[0])), 4*n)))
		e.must(e.q(0).Update(between(s, 1, s, 2), y.All(), unsafe.Slice((*byte)(unsafe.Pointer(&hy[0])), 4*n)))
		e.must(e.q(1).Dispatch(between(s, 2, s, 3), gpu.Dispatch{
			Kernel: k, Grid: [3]uint32{(n + 255) / 256, 1, 1}, Block: [3]uint32{256},
			Args:  []unsafe.Pointer{arg(uint64(n)), arg(float32(0.5)), arg(x.Ptr()), arg(y.Ptr())},
			Sizes: []int{8, 4, 8, 8},
		}))
		e.must(e.q(2).Download(between(s, 3, s, 4), unsafe.Slice((*byte)(unsafe.Pointer(&hy[0])), 4*n), y.All()))
		e.wait(s, 4)
		for i, v := range hy {
			if want := float32(0.5)*float32(i) + float32(2*i); v != want {
				e.Fatalf("element %d is %v, want %v", i, v, want)
			}
		}
	}},
	{name: "B107 constants and addresses reach the kernel, and are copied by the call", kernels: true, run: func(e *env) {
		index, words := e.kernel(kernels.Basic, "index"), e.kernel(kernels.Basic, "words")
		const n = 1000
		a, b, host, s := e.buffer(4*n), e.buffer(4*n), e.sem(), e.sem()
		count, first, step, ptr := uint64(n), uint32(100), uint32(3), a.Ptr()
		d := gpu.Dispatch{Kernel: index, Grid: [3]uint32{8, 1, 1}, Block: [3]uint32{128, 1, 1},
			Args:  []unsafe.Pointer{unsafe.Pointer(&count), unsafe.Pointer(&first), unsafe.Pointer(&step), unsafe.Pointer(&ptr)},
			Sizes: []int{8, 4, 4, 8}}
		e.must(e.q(0).Dispatch(between(host, 1, s, 1), d))
		count, first, step, ptr = 0, 0, 0, 0
		clear(d.Args)
		clear(d.Sizes)
		e.must(e.q(1).Dispatch(between(s, 1, s, 2), gpu.Dispatch{Kernel: words, Grid: [3]uint32{n, 1, 1},
			Args: []unsafe.Pointer{arg(uint64(n)), arg(b.Ptr()), arg(a.Ptr())}, Sizes: []int{8, 8, 8}}))
		e.must(host.Signal(1))
		e.wait(s, 2)
		for i, w := range e.words(b) {
			if w != uint32(100+3*i) {
				e.Fatalf("word %d is %d", i, w)
			}
		}
	}},
	{name: "B107 grids of three dimensions", kernels: true, run: func(e *env) {
		ids := e.kernel(kernels.Basic, "ids")
		grid := [3]uint32{5, 3, 2}
		b, s := e.buffer(5*3*2*16), e.sem()
		e.must(e.q(0).Dispatch(signal(s, 1), gpu.Dispatch{Kernel: ids, Grid: grid, Block: [3]uint32{4, 2, 3},
			Args: []unsafe.Pointer{arg(b.Ptr())}, Sizes: []int{8}}))
		w := e.words(b, gpu.Point{Semaphore: s, Value: 1})
		for i := range uint32(30) {
			want := []uint32{i % 5, i / 5 % 3, i / 15, 24}
			if got := w[4*i : 4*i+4]; !slices.Equal(got, want) {
				e.Errorf("block %d: %v, want %v", i, got, want)
			}
		}
	}},
	{name: "B106 a grid without blocks does nothing and signals", kernels: true, run: func(e *env) {
		index := e.kernel(kernels.Basic, "index")
		b, host, s := e.buffer(64), e.sem(), e.sem()
		v := uint64(0)
		for i := range 3 {
			grid := [3]uint32{1, 1, 1}
			grid[i] = 0
			d := gpu.Dispatch{Kernel: index, Grid: grid, Block: [3]uint32{16},
				Args: []unsafe.Pointer{arg(uint64(16)), arg(uint32(1)), arg(uint32(1)), arg(b.Ptr())}, Sizes: []int{8, 4, 4, 8}}
			e.must(e.q(0).Dispatch(gpu.Order{Wait: points(s, v), Signal: points(s, v+1)}, d))
			e.must(e.q(0).Dispatch(gpu.Order{Wait: []gpu.Point{{Semaphore: s, Value: v + 1}, {Semaphore: host, Value: uint64(i + 1)}}, Signal: points(s, v+2)}, d))
			e.must(host.Signal(uint64(i + 1)))
			v += 2
			e.wait(s, v)
		}
		e.holds(b, 0)
	}},
	{name: "B82 arguments that a kernel cannot take", kernels: true, run: func(e *env) {
		k := e.kernel(kernels.Basic, "words")
		info := e.devs[0].Info()
		b, s := e.buffer(64), e.sem()
		good := func() gpu.Dispatch {
			return gpu.Dispatch{Kernel: k, Grid: [3]uint32{1, 1, 1}, Block: [3]uint32{16, 1, 1},
				Args: []unsafe.Pointer{arg(uint64(16)), arg(b.Ptr()), arg(b.Ptr())}, Sizes: []int{8, 8, 8}}
		}
		for name, change := range map[string]func(d *gpu.Dispatch){
			"no argument":          func(d *gpu.Dispatch) { d.Args, d.Sizes = nil, nil; d.Sizes = []int{8} },
			"a nil argument":       func(d *gpu.Dispatch) { d.Args[1] = nil },
			"a size too few":       func(d *gpu.Dispatch) { d.Sizes = d.Sizes[:2] },
			"a size of nothing":    func(d *gpu.Dispatch) { d.Sizes[2] = 0 },
			"a size below nothing": func(d *gpu.Dispatch) { d.Sizes[2] = -8 },
			"too many threads":     func(d *gpu.Dispatch) { d.Block = [3]uint32{64, 64, 64} },
			"far too many threads": func(d *gpu.Dispatch) { d.Block = [3]uint32{1 << 31, 1 << 31, 4} },
			"a block too long":     func(d *gpu.Dispatch) { d.Block = [3]uint32{1, 1, uint32(info.MaxBlock[2]) + 1} },
			"a grid too high":      func(d *gpu.Dispatch) { d.Grid[1] = uint32(info.MaxGrid[1]) + 1 },
			"too much shared memory": func(d *gpu.Dispatch) {
				d.SharedMem = uint32(max(info.SharedOptIn, info.SharedMem)) + 1
			},
		} {
			d := good()
			change(&d)
			if err := e.q(0).Dispatch(signal(s, 1), d); !errors.Is(err, gpu.ErrArgument) {
				e.Errorf("%s: %v", name, err)
			}
		}
		if k.Info().Params != nil {
			d := good()
			d.Args, d.Sizes = append(d.Args, arg(uint64(1))), append(d.Sizes, 8)
			if err := e.q(0).Dispatch(signal(s, 1), d); !errors.Is(err, gpu.ErrArgument) {
				e.Errorf("an argument too many: %v", err)
			}
			d = good()
			d.Sizes[1] = 4
			if err := e.q(0).Dispatch(signal(s, 1), d); !errors.Is(err, gpu.ErrArgument) {
				e.Errorf("an argument of another size: %v", err)
			}
			d = good()
			d.Sizes = nil
			e.must(e.q(0).Dispatch(gpu.Order{}, d))
		}
		e.at(s, 0)
		e.must(e.q(0).Dispatch(signal(s, 1), good()))
		e.wait(s, 1)
	}},
	{name: "B59 code that is closed with a dispatch under way", kernels: true, run: func(e *env) {
		x, err := e.devs[0].Load(kernels.Basic)
		e.must(err)
		k, err := x.Kernel("index")
		e.must(err)
		b, host, s := e.buffer(64), e.sem(), e.sem()
		d := gpu.Dispatch{Kernel: k, Grid: [3]uint32{1, 1, 1}, Block: [3]uint32{16},
			Args: []unsafe.Pointer{arg(uint64(16)), arg(uint32(0)), arg(uint32(1)), arg(b.Ptr())}, Sizes: []int{8, 4, 4, 8}}
		e.must(e.q(0).Dispatch(between(host, 1, s, 1), d))
		e.must(x.Close())
		if err := e.q(0).Dispatch(gpu.Order{}, d); !errors.Is(err, gpu.ErrClosed) {
			e.Errorf("a dispatch of closed code: %v", err)
		}
		if _, err := x.Kernel("words"); !errors.Is(err, gpu.ErrClosed) {
			e.Errorf("a kernel of closed code: %v", err)
		}
		e.must(host.Signal(1))
		e.wait(s, 1)
		if w := e.words(b); w[15] != 15 {
			e.Errorf("%v", w)
		}
	}},
	{name: "a kernel that is not there, and code that is none", kernels: true, run: func(e *env) {
		x, err := e.devs[0].Load(kernels.Basic)
		e.must(err)
		defer x.Close()
		if k, err := x.Kernel("nothing"); k != nil || err == nil {
			e.Errorf("Kernel = %v, %v", k, err)
		}
		if _, err := e.devs[0].Load([]byte("this is no code\x00")); err == nil {
			e.Error("Load took it")
		}
	}},
}

var hostCalls = []test{
	{name: "B108 a host call runs after its waits and signals after it returns", run: func(e *env) {
		b, s := e.buffer(64), e.sem()
		data := make([]byte, 64)
		e.must(e.q(0).HostCall(between(s, 2, s, 3), func() error {
			if data[0] != 4 {
				e.Errorf("the host call finds %d", data[0])
			}
			e.at(s, 2)
			data[0] = 5
			return nil
		}))
		e.must(e.q(0).Download(between(s, 1, s, 2), data, b.All()))
		e.must(e.q(1).Fill(signal(s, 1), b.All(), []byte{4}))
		e.wait(s, 3)
		if data[0] != 5 {
			e.Error("the host call has not run")
		}
		e.must(e.q(0).HostCall(signal(s, 4), func() error { return nil }))
		e.wait(s, 4)
	}},
	{name: "B108 an error of a host call, or a panic, fails all its signals", run: func(e *env) {
		host := e.sem()
		for i, fn := range []func() error{func() error { return io.ErrNoProgress }, func() error { panic("no") }} {
			for _, wait := range []bool{false, true} {
				s, x := e.sem(), e.sem()
				o := gpu.Order{Signal: []gpu.Point{{Semaphore: s, Value: 1}, {Semaphore: x, Value: 1}}}
				if wait {
					o.Wait = points(host, uint64(i+1))
				}
				e.must(e.q(0).HostCall(o, fn))
				if wait {
					e.must(host.Signal(uint64(i + 1)))
				}
				for _, s := range []*gpu.Semaphore{s, x} {
					err := s.Wait(e.ctx, 1)
					if err == nil || i == 0 && !errors.Is(err, io.ErrNoProgress) {
						e.Errorf("Wait = %v", err)
					}
				}
			}
		}
	}},
	{name: "B109 a host call whose wait fails does not run", run: func(e *env) {
		host, s := e.sem(), e.sem()
		e.must(e.q(0).HostCall(between(host, 1, s, 1), func() error { e.Error("it runs"); return nil }))
		host.Fail(io.ErrNoProgress)
		e.failed(s, 1, io.ErrNoProgress)
	}},
	{name: "B108 a host call may submit, wait and close buffers", run: func(e *env) {
		b, s, x := e.buffer(64), e.sem(), e.sem()
		e.must(e.q(0).HostCall(signal(s, 1), func() error {
			if err := e.q(0).Fill(signal(x, 1), b.All(), []byte{1}); err != nil {
				return err
			}
			return x.Wait(e.ctx, 1)
		}))
		e.wait(s, 1)
		e.holds(b, 1)
	}},
}

var devices = []test{
	{name: "B116 B117 a wait before and after the signal, between devices", devices: 2, run: func(e *env) {
		for from := range 2 {
			p, c := e.devs[from], e.devs[1-from]
			for _, waitFirst := range []bool{true, false} {
				for _, byHost := range []bool{true, false} {
					host, s, x := e.sem(), e.sem(), e.sem()
					a, b := e.bufferOn(p, 64), e.bufferOn(c, 64)
					steps := []func(){
						func() { e.must(c.Queue(0).Fill(between(s, 1, x, 1), b.All(), []byte{2})) },
						func() {
							if byHost {
								e.must(s.Signal(1))
							} else {
								e.must(p.Queue(1).Fill(between(host, 1, s, 1), a.All(), []byte{1}))
								e.must(host.Signal(1))
							}
						},
					}
					if !waitFirst {
						slices.Reverse(steps)
					}
					for _, f := range steps {
						f()
					}
					e.wait(x, 1)
					e.holds(b, 2)
				}
			}
		}
	}},
	{name: "B117 devices of a driver wait for each other without the host", devices: 2, stall: true, calls: true, run: func(e *env) {
		a, b, s := e.bufferOn(e.devs[0], 64), e.bufferOn(e.devs[1], 64), e.sem()
		waits, copies := e.h.Calls(1, "wait"), e.h.Calls(1, "copy")
		resume := e.h.Stall(0)
		e.must(e.devs[0].Queue(0).Fill(signal(s, 1), a.All(), []byte{4}))
		e.must(e.devs[1].Queue(0).Copy(between(s, 1, s, 2), b.All(), a.All()))
		e.until("the copy is issued", func() bool { return e.h.Calls(1, "copy") == copies+1 })
		if n := e.h.Calls(1, "wait") - waits; n != 1 {
			e.Errorf("%d waits of streams for events, want 1", n)
		}
		e.at(s, 0)
		resume()
		e.wait(s, 2)
		e.holds(b, 4)
	}},
	{name: "B116 fan-in from all devices, fan-out to them, and diamonds", devices: 2, run: func(e *env) {
		s := e.sem()
		var all []gpu.Point
		var bufs []*gpu.Buffer
		for _, d := range e.devs {
			bufs = append(bufs, e.bufferOn(d, 64))
		}
		for round := range uint64(50) {
			all = all[:0]
			for i, d := range e.devs {
				x := e.sem()
				e.must(d.Queue(i).Fill(between(s, 2*round+1, x, 1), bufs[i].All(), []byte{byte(round)}))
				all = append(all, gpu.Point{Semaphore: x, Value: 1})
			}
			e.must(e.devs[round%2].Queue(3).Barrier(gpu.Order{Wait: all, Signal: points(s, 2*round+2)}))
			e.must(s.Signal(2*round + 1))
			e.wait(s, 2*round+2)
		}
		for _, b := range bufs {
			e.holds(b, 49)
		}
	}},
	{name: "B116 a chain that goes to and fro", devices: 2, run: func(e *env) {
		const n = 200
		a, b, s := e.bufferOn(e.devs[0], n+2), e.bufferOn(e.devs[1], n+2), e.sem()
		for i := uint64(n); i >= 1; i-- {
			from, to := a, b
			if i%2 == 0 {
				from, to = b, a
			}
			e.must(e.devs[i%2].Queue(int(i)).Copy(between(s, i, s, i+1), to.Range(i+1, 1), from.Range(i, 1)))
		}
		e.must(e.q(0).Fill(signal(s, 1), a.Range(1, 1), []byte{77}))
		e.wait(s, n+1)
		if got := e.read(a); got[n+1] != 77 {
			e.Errorf("%v came through", got[n+1])
		}
	}},
}

var threads = []test{
	{name: "B115 the caller's current device stays what it is", devices: 2, run: func(e *env) {
		if e.h.Current == nil {
			e.Skip("there is no current device")
		}
		check := func(what string, f func()) {
			e.Helper()
			before := e.h.Current()
			f()
			if after := e.h.Current(); after != before {
				e.Errorf("%s: %v is current, and %v was", what, after, before)
			}
		}
		locked(func() {
			for device := -1; device < 2; device++ {
				if device >= 0 {
					e.h.SetCurrent(device)
				}
				for i := range 2 {
					var d *gpu.Device
					check("open", func() {
						var err error
						d, err = gpu.Open(e.h.Driver, i, gpu.Options{Events: 1})
						e.must(err)
					})
					var b *gpu.Buffer
					check("alloc", func() {
						var err error
						b, err = d.Alloc(gpu.DeviceMem, 64)
						e.must(err)
					})
					s := e.sem()
					check("submit", func() {
						for v := range uint64(20) {
							e.must(d.Queue(0).Fill(signal(s, v+1), b.All(), []byte{1}))
						}
					})
					check("wait", func() { e.wait(s, 20) })
					if e.h.Kernels {
						check("load", func() {
							x, err := d.Load(kernels.Basic)
							e.must(err)
							_, err = x.Kernel("words")
							e.must(err)
							e.must(x.Close())
						})
					}
					check("update and download", func() {
						data := make([]byte, 64)
						e.must(d.Queue(0).Update(between(s, 20, s, 21), b.All(), data))
						e.must(d.Queue(0).Download(between(s, 21, s, 22), data, b.All()))
						e.wait(s, 22)
					})
					check("close", func() {
						e.must(b.Close())
						e.must(d.Close())
					})
				}
			}
		})
	}},
	{name: "B118 B119 B120 many goroutines on many queues", run: func(e *env) {
		const goroutines, each = 8, 200
		b := e.buffer(goroutines * 4)
		var wg sync.WaitGroup
		for g := range uint64(goroutines) {
			s := e.sem()
			wg.Go(func() {
				for v := range uint64(each) {
					if err := e.q(int(v)).Fill(gpu.Order{Wait: points(s, v), Signal: points(s, v+1)}, b.Range(4*g, 4), binary.LittleEndian.AppendUint32(nil, uint32(v))); err != nil {
						e.Error(err)
						return
					}
					if v%16 == g {
						if err := s.Wait(e.ctx, v+1); err != nil {
							e.Error(err)
							return
						}
					}
				}
				if err := s.Wait(e.ctx, each); err != nil {
					e.Error(err)
				}
			})
		}
		wg.Wait()
		for i, w := range e.words(b) {
			if w != each-1 {
				e.Errorf("word %d is %d", i, w)
			}
		}
	}},
	{name: "B120 a storm of signals issues each submission once", calls: true, run: func(e *env) {
		const n = 1000
		b, host, s := e.buffer(n), e.sem(), e.sems(n)
		fills := e.h.Calls(0, "fill")
		var all []gpu.Point
		for i := range uint64(n) {
			e.must(e.q(int(i)).Fill(between(host, i/10*10+1, s[i], 1), b.Range(i, 1), []byte{1}))
			all = append(all, gpu.Point{Semaphore: s[i], Value: 1})
		}
		for v := range uint64(n) {
			e.must(host.Signal(v + 1))
		}
		e.must(gpu.WaitAll(e.ctx, all...))
		if got := e.h.Calls(0, "fill") - fills; got != n {
			e.Errorf("%d fills, want %d", got, n)
		}
	}},
}

// locked runs f on a thread of its own, which ends with it.
func locked(f func()) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		runtime.LockOSThread()
		f()
	}()
	<-done
}
