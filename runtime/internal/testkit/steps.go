package testkit

import (
	"context"
	"errors"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/puregpu/puregpu/runtime/driver"
	"github.com/puregpu/puregpu/runtime/gpu"
)

// ErrHostCall is the error of host calls and functions that must fail.
var ErrHostCall = errors.New("a host call failed")

// Must ends the test if there is an error.
func Must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// CheckLeaks reports goroutines that begin after the call of CheckLeaks and have not ended when the
// test ends.
func CheckLeaks(t testing.TB) {
	t.Helper()
	now := goleak.IgnoreCurrent()
	t.Cleanup(func() { goleak.VerifyNone(t, now) })
}

// Within returns a context that ends with the test, or earlier at the limit.
func Within(t testing.TB, limit time.Duration) context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	t.Cleanup(cancel)
	return ctx
}

// Minute returns a context of a minute, for a wait that ends earlier on any machine.
func Minute(t testing.TB) context.Context { return Within(t, time.Minute) }

// Eventually waits until a condition holds. After a minute it ends the test, and prints the work in
// flight on the devices.
func Eventually(t testing.TB, what string, holds func() bool, devices ...*gpu.Device) {
	t.Helper()
	ctx := Minute(t)
	for pause := time.Microsecond; !holds(); pause = min(2*pause, time.Millisecond) {
		if ctx.Err() != nil {
			t.Fatalf("%s: it does not happen\n%s", what, Dump(devices...))
		}
		// Sleep, because time in a bubble of testing/synctest passes only while all goroutines are
		// blocked. Pollers need that time to pass.
		time.Sleep(pause)
	}
}

// InFlight waits until a device has n submissions in flight.
func InFlight(t testing.TB, dev *gpu.Device, n int) {
	t.Helper()
	Eventually(t, "the work is in flight", func() bool { return dev.Stats().InFlight == n }, dev)
}

// NewSemaphore makes a semaphore.
func NewSemaphore(t testing.TB, initial uint64) *gpu.Semaphore {
	t.Helper()
	s, err := gpu.NewSemaphore(initial)
	Must(t, err)
	return s
}

// Semaphores makes semaphores at 0.
func Semaphores(t testing.TB, n int) (all []*gpu.Semaphore) {
	t.Helper()
	for range n {
		all = append(all, NewSemaphore(t, 0))
	}
	return all
}

// Signal signals a semaphore.
func Signal(t testing.TB, s *gpu.Semaphore, value uint64) {
	t.Helper()
	Must(t, s.Signal(value))
}

// Points returns a list of one point.
func Points(s *gpu.Semaphore, v uint64) []gpu.Point { return []gpu.Point{{Semaphore: s, Value: v}} }

// Order returns an order of one wait and one signal.
func Order(wait *gpu.Semaphore, waitValue uint64, signal *gpu.Semaphore, signalValue uint64) gpu.Order {
	return gpu.Order{Wait: Points(wait, waitValue), Signal: Points(signal, signalValue)}
}

// OpenDevice opens a device and closes it at the end of the test.
func OpenDevice(t testing.TB, d driver.Driver, i int, o gpu.Options) *gpu.Device {
	t.Helper()
	dev, err := gpu.Open(d, i, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { dev.Close() })
	return dev
}

// Alloc allocates memory of a device.
func Alloc(t testing.TB, d *gpu.Device, size uint64) *gpu.Buffer {
	t.Helper()
	b, err := d.Alloc(gpu.DeviceMem, size)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// Content downloads a buffer after some points.
func Content(t testing.TB, q *gpu.Queue, b *gpu.Buffer, after ...gpu.Point) []byte {
	t.Helper()
	data, s := make([]byte, b.Size()), Semaphores(t, 1)[0]
	Must(t, q.Submit(gpu.Order{Wait: after, Signal: Points(s, 1)}, gpu.Download(data, b.All())))
	Must(t, s.Wait(Minute(t), 1))
	return data
}

// Holds checks that every byte of a buffer equals want.
func Holds(t *testing.T, what string, dev *gpu.Device, b *gpu.Buffer, want byte) {
	t.Helper()
	for i, got := range Content(t, dev.Queue(0), b) {
		if got != want {
			t.Errorf("%s: byte %d is %d, want %d", what, i, got, want)
			return
		}
	}
}

// CommandBuffer makes a command buffer.
func CommandBuffer(t testing.TB, d *gpu.Device, m gpu.Mode) *gpu.CommandBuffer {
	t.Helper()
	c, err := d.NewCommandBuffer(gpu.CommandOptions{Mode: m})
	Must(t, err)
	return c
}

// Recorded returns a function that ends the test if a command was not recorded.
func Recorded(t testing.TB) func(gpu.Command, error) gpu.Command {
	return func(c gpu.Command, err error) gpu.Command {
		t.Helper()
		Must(t, err)
		return c
	}
}
