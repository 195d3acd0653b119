package gpu_test

import (
	"context"
	"errors"
	"strconv"
	"testing"
	"time"

	"github.com/puregpu/puregpu/runtime/driver"
	"github.com/puregpu/puregpu/runtime/driver/simdriver"
	"github.com/puregpu/puregpu/runtime/gpu"
)

// soon returns a context that ends when something that should not block has.
func soon(t testing.TB) context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	t.Cleanup(cancel)
	return ctx
}

// waiters are the ways to wait for a value without asking the device oneself. Each returns what the wait has ended with. dev is not
// the device whose work is to reach the value.
var waiters = map[string]func(t *testing.T, dev *gpu.Device, s *gpu.Semaphore, value uint64) <-chan error{
	"a host wait": func(t *testing.T, _ *gpu.Device, s *gpu.Semaphore, value uint64) <-chan error {
		ended := make(chan error, 1)
		go func() { ended <- s.Wait(soon(t), value) }()
		return ended
	},
	"a function": func(t *testing.T, _ *gpu.Device, s *gpu.Semaphore, value uint64) <-chan error {
		ended := make(chan error, 1)
		s.OnReached(value, func(err error) { ended <- err })
		return ended
	},
	"a link": func(t *testing.T, _ *gpu.Device, s *gpu.Semaphore, value uint64) <-chan error {
		ended, to := make(chan error, 1), semaphores(t, 1)[0]
		to.OnReached(1, func(err error) { ended <- err })
		s.Link(value, to, 1)
		return ended
	},
	"a parked submission": func(t *testing.T, dev *gpu.Device, s *gpu.Semaphore, value uint64) <-chan error {
		ended, then := make(chan error, 1), semaphores(t, 1)[0]
		then.OnReached(1, func(err error) { ended <- err })
		must(t, dev.Queue(0).Fill(order(s, value, then, 1), allocate(t, dev, 64).All(), []byte{1}))
		return ended
	},
	"a parked barrier": func(t *testing.T, dev *gpu.Device, s *gpu.Semaphore, value uint64) <-chan error {
		ended, then := make(chan error, 1), semaphores(t, 1)[0]
		then.OnReached(1, func(err error) { ended <- err })
		must(t, dev.Queue(0).Barrier(order(s, value, then, 1)))
		return ended
	},
	"a host call": func(t *testing.T, dev *gpu.Device, s *gpu.Semaphore, value uint64) <-chan error {
		ended, then := make(chan error, 1), semaphores(t, 1)[0]
		then.OnReached(1, func(err error) { ended <- err })
		must(t, dev.Queue(0).HostCall(order(s, value, then, 1), func() error { return nil }))
		return ended
	},
}

// ends checks that a wait ends with an error of a kind.
func ends(t *testing.T, ended <-chan error, want error) {
	t.Helper()
	select {
	case err := <-ended:
		if !errors.Is(err, want) {
			t.Errorf("%v; want %v", err, want)
		}
	case <-soon(t).Done():
		t.Errorf("the wait has not ended; want %v", want)
	}
}

// TestLossBelow loses a device with work in flight that signals a lower value than those that are waited for: a waiter for any
// later value learns of it, though nothing in flight reaches that.
func TestLossBelow(t *testing.T) {
	for name, wait := range waiters {
		for _, when := range []string{"before the work", "behind the work", "behind the work again"} {
			t.Run(name+" "+when, func(t *testing.T) {
				onEach(t, 2, func(t *testing.T, d *simdriver.Driver, _ driver.Caps) {
					dev, other, s := openDevice(t, d, 0, gpu.Options{Spin: -1, Poll: -1}), openDevice(t, d, 1, gpu.Options{Spin: -1, Poll: -1}), semaphores(t, 1)[0]
					b := allocate(t, dev, 64)
					d.StallDevice(0)
					var ended <-chan error
					switch when {
					case "before the work":
						ended = wait(t, other, s, 2)
					case "behind the work again":
						s.OnReached(2, func(error) {})()
					}
					must(t, dev.Queue(0).Fill(gpu.Order{Signal: pts(s, 1)}, b.All(), []byte{1}))
					inFlight(t, dev, 1)
					if ended == nil {
						ended = wait(t, other, s, 2)
					}
					time.Sleep(time.Second) // of the bubble: waiters that are to park have
					d.LoseDevice(0, nil)
					ends(t, ended, driver.ErrLost)
				})
			})
		}
	}
}

// BenchmarkOnReachedBehind is about who waits for the last of much work in flight.
func BenchmarkOnReachedBehind(b *testing.B) {
	for _, n := range []int{1, 100, 10000} {
		b.Run(strconv.Itoa(n), func(b *testing.B) {
			d := newSim(b, simdriver.Config{})
			dev, s := openDevice(b, d, 0, gpu.Options{}), semaphores(b, 1)[0]
			buf := allocate(b, dev, 64)
			d.StallDevice(0)
			for i := range n {
				must(b, dev.Queue(0).Fill(gpu.Order{Signal: pts(s, uint64(i)+1)}, buf.All(), []byte{1}))
			}
			for b.Loop() {
				s.OnReached(uint64(n), func(error) {})()
			}
			d.ResumeDevice(0)
		})
	}
}
