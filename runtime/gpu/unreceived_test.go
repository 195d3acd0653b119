package gpu_test

import (
	"context"
	"errors"
	"io"
	"math/rand/v2"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/puregpu/puregpu/runtime/driver"
	"github.com/puregpu/puregpu/runtime/driver/simdriver"
	"github.com/puregpu/puregpu/runtime/gpu"
)

// TestUnreceived makes streams fail. Close must return the first error that the program has not
// received, and the number of streams whose errors the program has not received.
func TestUnreceived(t *testing.T) {
	fails := func(t *testing.T, s *gpu.Stream) {
		t.Helper()
		must(t, s.Do(gpu.HostCall(func() error { time.Sleep(time.Nanosecond); return io.ErrUnexpectedEOF })))
		must(t, s.Do(gpu.Barrier()))
		time.Sleep(time.Second) // time of the synctest bubble
	}
	for _, x := range []struct {
		name string
		run  func(t *testing.T, d *simdriver.Driver, dev *gpu.Device)
		want string // the number of streams in the error of Close; empty if Close returns no error
	}{
		{"B196 nobody waits", func(t *testing.T, d *simdriver.Driver, dev *gpu.Device) {
			fails(t, dev.Queue(0).NewStream())
		}, "1"},
		{"B196 nobody waits for several", func(t *testing.T, d *simdriver.Driver, dev *gpu.Device) {
			for range 3 {
				fails(t, dev.Queue(0).NewStream())
			}
		}, "3"},
		{"B196 nobody waits for a great many", func(t *testing.T, d *simdriver.Driver, dev *gpu.Device) {
			for i := range 400 {
				s := dev.Queue(0).NewStream()
				fails(t, s)
				if i%2 == 0 {
					s.Wait(t.Context())
				}
			}
		}, "200"},
		{"B196 nobody waits for more than are noted", func(t *testing.T, d *simdriver.Driver, dev *gpu.Device) {
			for range 300 {
				fails(t, dev.Queue(0).NewStream())
			}
		}, "at least 256"},
		{"B196 it fails while the device is closed", func(t *testing.T, d *simdriver.Driver, dev *gpu.Device) {
			must(t, dev.Queue(0).NewStream().Do(gpu.HostCall(func() error { time.Sleep(time.Second); return io.ErrUnexpectedEOF })))
			time.Sleep(time.Millisecond)
		}, "1"},
		{"B196 another stream waits for it, for which nobody does", func(t *testing.T, d *simdriver.Driver, dev *gpu.Device) {
			a, b := dev.Queue(0).NewStream(), dev.Queue(0).NewStream()
			must(t, b.After(a.Point()))
			fails(t, a)
			must(t, b.After(a.Point()))
			must(t, b.Do(gpu.Barrier()))
			time.Sleep(time.Second)
		}, "2"},
		{"B196 one of two is waited for", func(t *testing.T, d *simdriver.Driver, dev *gpu.Device) {
			a := dev.Queue(0).NewStream()
			fails(t, a)
			fails(t, dev.Queue(0).NewStream())
			if err := a.Wait(t.Context()); err == nil {
				t.Error("it has not failed")
			}
		}, "1"},
		{"B196 waited for", func(t *testing.T, d *simdriver.Driver, dev *gpu.Device) {
			s := dev.Queue(0).NewStream()
			fails(t, s)
			s.Wait(t.Context())
		}, ""},
		{"B196 a later call returns the error", func(t *testing.T, d *simdriver.Driver, dev *gpu.Device) {
			s := dev.Queue(0).NewStream()
			fails(t, s)
			if err := s.Do(gpu.Barrier()); !errors.Is(err, io.ErrUnexpectedEOF) {
				t.Error(err)
			}
		}, ""},
		{"B196 its semaphore is asked", func(t *testing.T, d *simdriver.Driver, dev *gpu.Device) {
			s := dev.Queue(0).NewStream()
			fails(t, s)
			s.Point().Semaphore.Query()
		}, ""},
		{"B196 a function is told", func(t *testing.T, d *simdriver.Driver, dev *gpu.Device) {
			s := dev.Queue(0).NewStream()
			s.Point().Semaphore.OnReached(9, func(error) {})
			fails(t, s)
		}, ""},
		{"B196 the error arrives by a stream that comes after it", func(t *testing.T, d *simdriver.Driver, dev *gpu.Device) {
			a, b := dev.Queue(0).NewStream(), dev.Queue(0).NewStream()
			must(t, a.Do(gpu.HostCall(func() error { return io.ErrUnexpectedEOF })))
			must(t, b.After(a.Point()))
			must(t, b.Do(gpu.Barrier()))
			b.Wait(t.Context())
		}, ""},
		{"B196 the error arrives by a queue", func(t *testing.T, d *simdriver.Driver, dev *gpu.Device) {
			a, s := dev.Queue(0).NewStream(), semaphores(t, 1)[0]
			must(t, a.Do(gpu.HostCall(func() error { return io.ErrUnexpectedEOF })))
			must(t, dev.Queue(0).Submit(gpu.Order{Wait: []gpu.Point{a.Point()}, Signal: pts(s, 1)}, gpu.Barrier()))
			s.Wait(t.Context(), 1)
		}, ""},
		{"B196 the call is refused", func(t *testing.T, d *simdriver.Driver, dev *gpu.Device) {
			if err := dev.Queue(0).NewStream().Do(gpu.HostCall(nil)); err == nil {
				t.Error("it is not refused")
			}
		}, ""},
		{"B196 the program fails the stream", func(t *testing.T, d *simdriver.Driver, dev *gpu.Device) {
			s, never := dev.Queue(0).NewStream(), semaphores(t, 1)[0]
			must(t, s.After(never.At(1)))
			must(t, s.Do(gpu.Barrier()))
			s.Fail(context.Canceled)
		}, ""},
		{"B196 the program fails what the stream waits for", func(t *testing.T, d *simdriver.Driver, dev *gpu.Device) {
			s, never := dev.Queue(0).NewStream(), semaphores(t, 1)[0]
			must(t, s.After(never.At(1)))
			must(t, s.Do(gpu.Barrier()))
			must(t, s.Do(gpu.Barrier()))
			never.Fail(context.Canceled)
			time.Sleep(time.Second)
		}, ""},
		{"B196 the device is closed with parked work", func(t *testing.T, d *simdriver.Driver, dev *gpu.Device) {
			s, never := dev.Queue(0).NewStream(), semaphores(t, 1)[0]
			must(t, s.After(never.At(1)))
			must(t, s.Do(gpu.Barrier()))
		}, ""},
	} {
		t.Run(x.name, func(t *testing.T) {
			onEach(t, 1, func(t *testing.T, d *simdriver.Driver, _ driver.Caps) {
				dev := openDevice(t, d, 0, gpu.Options{})
				x.run(t, d, dev)
				err := dev.Close()
				if x.want == "" {
					must(t, err)
					return
				}
				var of *gpu.SubmitError
				says := "streams whose error nobody received (" + x.want + ")"
				if !errors.As(err, &of) || !errors.Is(err, io.ErrUnexpectedEOF) || !strings.Contains(err.Error(), says) {
					t.Errorf("Close: %v; want it to say %q and why", err, says)
				}
				if again := dev.Close(); again != err {
					t.Errorf("Close again: %v", again)
				}
			})
		})
	}
}

// TestUnreceivedLoss loses a device with work of two streams. Close must return the error of a
// stream, which wraps the loss, only if the program has not received the loss.
func TestUnreceivedLoss(t *testing.T) {
	for name, x := range map[string]struct {
		hear func(t *testing.T, dev *gpu.Device, s *gpu.Stream)
		want bool
	}{
		"B196 nobody hears of a loss": {func(*testing.T, *gpu.Device, *gpu.Stream) {}, true},
		"B196 who waits for another stream hears of the loss": {func(t *testing.T, dev *gpu.Device, s *gpu.Stream) {
			if err := s.Wait(t.Context()); !errors.Is(err, driver.ErrLost) {
				t.Error(err)
			}
		}, false},
		"B196 who submits hears of the loss": {func(t *testing.T, dev *gpu.Device, s *gpu.Stream) {
			if err := dev.Queue(0).Submit(gpu.Order{}, gpu.Barrier()); !errors.Is(err, driver.ErrLost) {
				t.Error(err)
			}
		}, false},
	} {
		t.Run(name, func(t *testing.T) {
			onEach(t, 1, func(t *testing.T, d *simdriver.Driver, _ driver.Caps) {
				dev := openDevice(t, d, 0, gpu.Options{})
				a, b := dev.Queue(0).NewStream(), dev.Queue(0).NewStream()
				x1, x2 := allocate(t, dev, 64), allocate(t, dev, 64)
				must(t, d.StallDevice(0))
				must(t, a.Fill(x1.All(), []byte{1}))
				// The runtime polls a download even if nobody waits for it, and so finds the loss.
				must(t, a.Download(make([]byte, 64), x1.All()))
				must(t, b.Fill(x2.All(), []byte{1}))
				must(t, d.LoseDevice(0, io.EOF))
				time.Sleep(time.Minute)
				x.hear(t, dev, b)
				if err := dev.Close(); errors.Is(err, driver.ErrLost) != x.want {
					t.Errorf("Close: %v; want a loss: %t", err, x.want)
				}
			})
		})
	}
}

// TestUnreceivedLate lets a stream fail after Close has given up waiting for it. So many streams
// have failed by then that recording the late error removes the errors that the program has
// received.
func TestUnreceivedLate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dev, err := gpu.Open(simdriver.New(simdriver.Config{}), 0, gpu.Options{Queues: 2})
		must(t, err)
		release := make(chan struct{})
		late := dev.Queue(0).NewStream()
		must(t, late.Do(gpu.HostCall(func() error { <-release; return io.ErrUnexpectedEOF })))
		for i := range 256 {
			s := dev.Queue(1).NewStream()
			must(t, s.Do(gpu.HostCall(func() error { return io.ErrUnexpectedEOF })))
			if i%2 == 0 {
				if err := s.Wait(t.Context()); !errors.Is(err, io.ErrUnexpectedEOF) {
					t.Error(err)
				}
			}
		}
		synctest.Wait()
		if err := dev.Close(); !errors.Is(err, io.ErrUnexpectedEOF) {
			t.Errorf("Close = %v", err)
		}
		close(release)
		if err := late.Wait(t.Context()); err == nil {
			t.Error("the late stream has not failed")
		}
	})
}

// TestUnreceivedRace makes an operation of a stream fail while a call of the stream is refused.
// Wait returns the first of the two errors. Close must then return neither.
func TestUnreceivedRace(t *testing.T) {
	d := simdriver.New(simdriver.Config{})
	dev, err := gpu.Open(d, 0, gpu.Options{})
	must(t, err)
	q := dev.Queue(0)
	byRefusal := 0
	for range 3000 {
		s, start := q.NewStream(), make(chan struct{})
		done, err := gpu.NewSemaphore(0)
		must(t, err)
		must(t, q.Submit(gpu.Order{Signal: []gpu.Point{{Semaphore: done, Value: 1}}}, gpu.HostCall(func() error { <-start; return io.ErrUnexpectedEOF })))
		must(t, s.After(gpu.Point{Semaphore: done, Value: 1}))
		must(t, s.Do(gpu.Barrier()))
		close(start)
		for range rand.IntN(100) {
			runtime.Gosched()
		}
		s.Fill(gpu.Range{}, nil)
		if err := s.Wait(t.Context()); errors.Is(err, gpu.ErrArgument) {
			byRefusal++
		} else if !errors.Is(err, io.ErrUnexpectedEOF) {
			t.Fatal(err)
		}
	}
	t.Logf("%d of 3000 streams failed by the refusal", byRefusal)
	must(t, dev.Close())
}
