package sema_test

import (
	"context"
	"errors"
	"io"
	"testing"
	"time"

	"github.com/puregpu/puregpu/runtime/driver"
	"github.com/puregpu/puregpu/runtime/driver/simdriver"
	"github.com/puregpu/puregpu/runtime/gpu"
)

// TestParkedWaitAllocatesNothing makes two goroutines wait for each other in turn. There is no
// device to poll, so a goroutine parks if its wait cannot return at once. The waits must allocate
// nothing.
func TestParkedWaitAllocatesNothing(t *testing.T) {
	if raceEnabled {
		t.Skip("the race detector allocates")
	}
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	for name, c := range map[string]struct {
		ctx  context.Context
		more int // number of further points in each wait
	}{"a context that does not end": {context.Background(), 0}, "one that may end": {ctx, 0}, "several points": {ctx, 1}, "many points": {ctx, 8}} {
		t.Run(name, func(t *testing.T) {
			s := semaphores(t, 2)
			wait := func(s *gpu.Semaphore) func(v uint64) error {
				points := make([]gpu.Point, 1+c.more)
				return func(v uint64) error {
					if c.more == 0 {
						return s.Wait(c.ctx, v)
					}
					for i := range points {
						points[i] = s.At(v - min(v, uint64(i)))
					}
					return gpu.WaitAll(c.ctx, points...)
				}
			}
			ended := make(chan error, 1)
			go func() {
				wait := wait(s[0])
				for v := uint64(1); ; v++ {
					if err := wait(v); err != nil {
						ended <- err
						return
					}
					if s[1].Signal(v) != nil {
						ended <- nil
						return
					}
				}
			}()
			v, here := uint64(0), wait(s[1])
			step := func() {
				v++
				if err := s[0].Signal(v); err != nil {
					t.Fatal(err)
				}
				if err := here(v); err != nil {
					t.Fatal(err)
				}
			}
			for range 100 {
				step()
			}
			if n := testing.AllocsPerRun(1000, step); n != 0 {
				t.Errorf("%v objects for a wait on either side", n)
			}
			s[0].Close()
			<-ended
		})
	}
}

// TestParkedWaitsEndTogether ends the context of waits while the points that they wait for are
// signalled. Later waits reuse the host events of the earlier waits, and must not end early or
// hang.
func TestParkedWaitsEndTogether(t *testing.T) {
	const rounds, waiters = 300, 6
	s := semaphores(t, 2)
	for v := uint64(1); v <= rounds; v++ {
		ctx, cancel := context.WithCancel(t.Context())
		got := make(chan error, waiters)
		for i := range waiters {
			go func() {
				if i%2 == 0 {
					got <- s[0].Wait(ctx, v)
					return
				}
				_, err := gpu.WaitAny(ctx, s[0].At(v+1), s[1].At(v))
				got <- err
			}()
		}
		go cancel()
		must(t, s[0].Signal(v))
		must(t, s[1].Signal(v))
		for range waiters {
			if err := <-got; err != nil && !errors.Is(err, context.Canceled) {
				t.Error(err)
			}
		}
		cancel()
		must(t, s[0].Wait(t.Context(), v))
	}
	ended := make(chan error, waiters)
	for range waiters {
		go func() { ended <- s[0].Wait(t.Context(), rounds+1) }()
	}
	s[0].Fail(io.EOF)
	for range waiters {
		if err := <-ended; err != io.EOF {
			t.Errorf("a wait ended with %v", err)
		}
	}
}

// TestWaitEnded waits with an ended context. Such a wait must poll the device, and must also find
// the failure of work that signals a lower value.
func TestWaitEnded(t *testing.T) {
	ended, cancel := context.WithCancel(context.Background())
	cancel()
	for name, wait := range map[string]func(p, other gpu.Point) error{
		"Wait":    func(p, _ gpu.Point) error { return p.Semaphore.Wait(ended, p.Value) },
		"WaitAll": func(p, other gpu.Point) error { return gpu.WaitAll(ended, other, p) },
		"WaitAny": func(p, _ gpu.Point) error { _, err := gpu.WaitAny(ended, p); return err },
	} {
		// poll calls wait once, while the device stalls. Then it calls wait again until the result
		// is not context.Canceled, but at most 100 times, and returns the last result.
		poll := func(t *testing.T, p, other gpu.Point) error {
			if err := wait(p, other); !errors.Is(err, context.Canceled) {
				t.Errorf("%v, while the device stalls", err)
			}
			var err error
			for range 100 {
				time.Sleep(2 * time.Millisecond)
				if err = wait(p, other); !errors.Is(err, context.Canceled) {
					break
				}
			}
			return err
		}
		t.Run(name+" reached", func(t *testing.T) {
			onEach(t, 1, func(t *testing.T, d *simdriver.Driver, _ driver.Caps) {
				dev, s := openDevice(t, d, 0, gpu.Options{}), semaphores(t, 2)
				d.StallDevice(0)
				must(t, dev.Queue(0).Submit(gpu.Order{Signal: []gpu.Point{{Semaphore: s[0], Value: 1}, {Semaphore: s[1], Value: 1}}}, gpu.Fill(allocate(t, dev, 64).All(), []byte{1})))
				inFlight(t, dev, 1)
				time.AfterFunc(time.Millisecond, func() { d.ResumeDevice(0) })
				if err := poll(t, gpu.Point{Semaphore: s[0], Value: 1}, gpu.Point{Semaphore: s[1], Value: 1}); err != nil {
					t.Errorf("%v, though the work is done", err)
				}
			})
		})
		t.Run(name+" failed below", func(t *testing.T) {
			onEach(t, 2, func(t *testing.T, d *simdriver.Driver, _ driver.Caps) {
				dev, other, s := openDevice(t, d, 0, gpu.Options{}), openDevice(t, d, 1, gpu.Options{}), semaphores(t, 2)
				d.StallDevice(0)
				d.StallDevice(1)
				must(t, dev.Queue(0).Submit(gpu.Order{Signal: pts(s[0], 1)}, gpu.Fill(allocate(t, dev, 64).All(), []byte{1})))
				must(t, other.Queue(0).Submit(gpu.Order{Signal: pts(s[0], 2)}, gpu.Fill(allocate(t, other, 64).All(), []byte{1})))
				inFlight(t, dev, 1)
				inFlight(t, other, 1)
				time.AfterFunc(time.Millisecond, func() { d.LoseDevice(0, nil) })
				if err := poll(t, gpu.Point{Semaphore: s[0], Value: 3}, gpu.Point{Semaphore: s[1], Value: 1}); !errors.Is(err, driver.ErrLost) {
					t.Errorf("%v, though a device is lost", err)
				}
				d.ResumeDevice(1)
			})
		})
	}
}
