package gputest

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/puregpu/puregpu/runtime/gpu"
)

type test struct {
	name    string
	devices int         // how many devices the test needs; 0 means 1, and every means all, at least two
	options gpu.Options // the options for opening the test's devices; Queues is always 4
	kernels bool        // the test needs Harness.Kernels
	stall   bool        // it needs Harness.Stall
	calls   bool        // it needs Harness.Calls
	comms   bool        // it needs Harness.Comms
	run     func(e *env)
}

// The constant every, as a number of devices, means all devices, and at least two.
const every = -2

// needs returns the least number of devices with which a test runs.
func (x *test) needs() int { return max(x.devices, -x.devices, 1) }

// An env is a testing.T with the test's harness and devices, and with helper methods.
type env struct {
	*testing.T
	h    Harness
	devs []*gpu.Device
	ctx  context.Context // ends when the test takes too long
}

// pairs calls do with each pair of devices, in both orders.
func (e *env) pairs(do func(a, b *gpu.Device)) {
	for _, a := range e.devs {
		for _, b := range e.devs {
			if a != b {
				do(a, b)
			}
		}
	}
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

// wait waits until the semaphore reaches v, and ends the test on an error.
func (e *env) wait(s *gpu.Semaphore, v uint64) {
	e.Helper()
	e.must(s.Wait(e.ctx, v))
}

// at checks that a semaphore is at v and has not failed.
func (e *env) at(s *gpu.Semaphore, v uint64) {
	e.Helper()
	if got, err := s.Query(); got != v || err != nil {
		e.Errorf("at %d, %v; want %d", got, err, v)
	}
}

// failed checks that a wait for a value fails with an error that is or wraps kind, and returns the
// error.
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
	e.must(d.Queue(0).Submit(signal(s, 1), gpu.Fill(b.All(), []byte{0})))
	e.wait(s, 1)
	return b
}

// read returns the bytes of a buffer. A queue of the first device waits for the given points and
// then downloads the bytes.
func (e *env) read(b *gpu.Buffer, after ...gpu.Point) []byte {
	e.Helper()
	data := make([]byte, b.Size())
	s := e.sem()
	e.must(e.q(3).Submit(gpu.Order{Wait: after, Signal: points(s, 1)}, gpu.Download(data, b.All())))
	e.wait(s, 1)
	return data
}

// holds checks that every byte of a buffer has the value want, once all given points are reached.
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

// kernel loads code on the first device, and returns one of its kernels.
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

// signal returns an order that signals a point.
func signal(s *gpu.Semaphore, v uint64) gpu.Order { return gpu.Order{Signal: points(s, v)} }

// between returns an order that waits for one point and signals another.
func between(w *gpu.Semaphore, wv uint64, s *gpu.Semaphore, sv uint64) gpu.Order {
	return gpu.Order{Wait: points(w, wv), Signal: points(s, sv)}
}

// until calls the function so again and again, until the function returns true. If e.ctx ends
// first, until ends the test.
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

// settled waits until nothing is parked or in flight on the device.
func (e *env) settled(d *gpu.Device) {
	e.Helper()
	e.until("nothing is left", func() bool {
		for i := range d.Queues() {
			e.must(d.Queue(i).Flush()) // retires finished work for which nobody waits
		}
		st := d.Stats()
		return st.InFlight+st.Parked == 0
	})
}

// random returns n pseudorandom bytes, which depend on seed and n alone.
func random(n int, seed uint64) []byte {
	data, key := make([]byte, n), [32]byte{}
	binary.LittleEndian.PutUint64(key[:], seed)
	binary.LittleEndian.PutUint64(key[8:], uint64(n))
	rand.NewChaCha8(key).Read(data)
	return data
}

// same reports an error if the bytes differ.
func (e *env) same(what string, got, want []byte) {
	e.Helper()
	if len(got) != len(want) {
		e.Errorf("%s: %d bytes, want %d", what, len(got), len(want))
		return
	}
	if bytes.Equal(got, want) {
		return
	}
	for i := range got {
		if got[i] != want[i] {
			e.Errorf("%s: byte %d of %d is %#x, want %#x", what, i, len(got), got[i], want[i])
			return
		}
	}
}

// inStream submits op to the queue q. op comes after the earlier operations of the stream s, and
// later operations of s come after op.
func inStream(s *gpu.Stream, q *gpu.Queue, op gpu.Op) error {
	done := new(gpu.Semaphore).At(1)
	return errors.Join(q.Submit(gpu.Order{Wait: []gpu.Point{s.Point()}, Signal: []gpu.Point{done}}, op), s.After(done))
}

// queuesOf returns the queues of all devices of a group.
func queuesOf(g *gpu.Group) (all []*gpu.Queue) {
	for _, d := range g.Devices() {
		for i := range d.Queues() {
			all = append(all, d.Queue(i))
		}
	}
	return all
}
