package testkit

import (
	"errors"
	"testing"

	"github.com/puregpu/puregpu/runtime/gpu"
)

// Waiters has the ways to wait for a value. Each function begins a wait, and returns a channel that
// receives the error of the wait. Operations that wait are submitted to dev, which must not be the
// device whose work signals the value.
var Waiters = map[string]func(t *testing.T, dev *gpu.Device, s *gpu.Semaphore, value uint64) <-chan error{
	"a host wait": func(t *testing.T, _ *gpu.Device, s *gpu.Semaphore, value uint64) <-chan error {
		ended := make(chan error, 1)
		go func() { ended <- s.Wait(Minute(t), value) }()
		return ended
	},
	"a function": func(t *testing.T, _ *gpu.Device, s *gpu.Semaphore, value uint64) <-chan error {
		ended := make(chan error, 1)
		s.OnReached(value, func(err error) { ended <- err })
		return ended
	},
	"a link": func(t *testing.T, _ *gpu.Device, s *gpu.Semaphore, value uint64) <-chan error {
		ended, to := make(chan error, 1), Semaphores(t, 1)[0]
		to.OnReached(1, func(err error) { ended <- err })
		s.Link(value, to, 1)
		return ended
	},
	"a parked submission": func(t *testing.T, dev *gpu.Device, s *gpu.Semaphore, value uint64) <-chan error {
		ended, then := make(chan error, 1), Semaphores(t, 1)[0]
		then.OnReached(1, func(err error) { ended <- err })
		Must(t, dev.Queue(0).Submit(Order(s, value, then, 1), gpu.Fill(Alloc(t, dev, 64).All(), []byte{1})))
		return ended
	},
	"a parked barrier": func(t *testing.T, dev *gpu.Device, s *gpu.Semaphore, value uint64) <-chan error {
		ended, then := make(chan error, 1), Semaphores(t, 1)[0]
		then.OnReached(1, func(err error) { ended <- err })
		Must(t, dev.Queue(0).Submit(Order(s, value, then, 1), gpu.Barrier()))
		return ended
	},
	"a host call": func(t *testing.T, dev *gpu.Device, s *gpu.Semaphore, value uint64) <-chan error {
		ended, then := make(chan error, 1), Semaphores(t, 1)[0]
		then.OnReached(1, func(err error) { ended <- err })
		Must(t, dev.Queue(0).Submit(Order(s, value, then, 1), gpu.HostCall(func() error { return nil })))
		return ended
	},
}

// Ends checks that a wait ends with the error want.
func Ends(t *testing.T, ended <-chan error, want error) {
	t.Helper()
	select {
	case err := <-ended:
		if !errors.Is(err, want) {
			t.Errorf("%v; want %v", err, want)
		}
	case <-Minute(t).Done():
		t.Errorf("the wait has not ended; want %v", want)
	}
}
