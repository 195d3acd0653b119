package sema_test

import (
	"bytes"
	"errors"
	"log/slog"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/puregpu/puregpu/runtime/driver"
	"github.com/puregpu/puregpu/runtime/driver/simdriver"
	"github.com/puregpu/puregpu/runtime/gpu"
)

// releases are the calls of the program that make a semaphore reach 1 or fail. Each function makes
// one of these calls and returns the failure, or nil.
var releases = map[string]func(s *gpu.Semaphore) error{
	"Signal":    func(s *gpu.Semaphore) error { s.Signal(1); return nil },
	"SignalAll": func(s *gpu.Semaphore) error { gpu.SignalAll(gpu.Point{Semaphore: s, Value: 1}); return nil },
	"Fail":      func(s *gpu.Semaphore) error { s.Fail(errHostCall); return errHostCall },
	"FailAll":   func(s *gpu.Semaphore) error { gpu.FailAll(errHostCall, s); return errHostCall },
	"Close":     func(s *gpu.Semaphore) error { s.Close(); return gpu.ErrClosed },
}

// TestFunctionsLast tests B141: a signal calls the functions of OnReached after it has released
// everything else. The function here waits for work and for a goroutine that the same signal
// releases, although the work and the goroutine began to wait after the function was registered.
func TestFunctionsLast(t *testing.T) {
	for name, release := range releases {
		t.Run(name, func(t *testing.T) {
			onEach(t, 1, func(t *testing.T, d *simdriver.Driver, _ driver.Caps) {
				dev, s := openDevice(t, d, 0, gpu.Options{}), semaphores(t, 6)
				b, q := allocate(t, dev, 64), dev.Queue(0)
				waiting := make(chan error, 1)
				told := make(chan error, 1)
				s[0].OnReached(1, func(error) {
					for _, x := range s[1:] {
						x.Wait(minute(t), 1) // returns the failure, if the semaphore fails
					}
					<-waiting
					told <- minute(t).Err()
				})
				must(t, q.Submit(order(s[0], 1, s[1], 1), gpu.Fill(b.All(), []byte{1})))
				must(t, q.Submit(order(s[0], 1, s[2], 1), gpu.Fill(b.All(), []byte{1})))
				must(t, q.Submit(order(s[0], 1, s[3], 1), gpu.Barrier()))
				must(t, q.Submit(order(s[0], 1, s[4], 1), gpu.HostCall(func() error { return nil })))
				s[0].Link(1, s[5], 1)
				parked := make(chan struct{})
				go func() {
					close(parked)
					waiting <- s[0].Wait(minute(t), 1)
				}()
				<-parked
				begin := minute(t)
				want := release(s[0])
				select {
				case <-told:
				default:
					t.Error("the function was not called by the signal")
				}
				if begin.Err() != nil {
					t.Error("the function ended before the work that it waits for")
				}
				for i, x := range s[1:] {
					if err := x.Wait(minute(t), 1); !errors.Is(err, want) {
						t.Errorf("%d: %v", i, err)
					}
				}
			})
		})
	}
}

// TestFunctionOfBarrier makes a signal complete a barrier whose own signal releases a function of
// OnReached. The function waits for a fill that the first signal releases too.
func TestFunctionOfBarrier(t *testing.T) {
	onEach(t, 1, func(t *testing.T, d *simdriver.Driver, _ driver.Caps) {
		dev, s := openDevice(t, d, 0, gpu.Options{}), semaphores(t, 3)
		told := make(chan error, 1)
		s[1].OnReached(1, func(error) { told <- s[2].Wait(minute(t), 1) })
		must(t, dev.Queue(0).Submit(order(s[0], 1, s[1], 1), gpu.Barrier()))
		must(t, dev.Queue(0).Submit(order(s[0], 1, s[2], 1), gpu.Fill(allocate(t, dev, 64).All(), []byte{1})))
		must(t, s[0].Signal(1))
		ends(t, told, nil)
	})
}

// TestFunctionsGoWrong tests B141: functions of OnReached panic or end their goroutine. The signal
// must still release everything else, and the other functions must be called.
func TestFunctionsGoWrong(t *testing.T) {
	for wrong, fn := range map[string]func(){
		"panics":              func() { panic("a mistake of the program's") },
		"ends its goroutine":  runtime.Goexit,
		"panics with nothing": func() { panic(nil) },
	} {
		for name, release := range releases {
			t.Run(name+", a function "+wrong, func(t *testing.T) {
				onEach(t, 1, func(t *testing.T, d *simdriver.Driver, _ driver.Caps) {
					dev, s := openDevice(t, d, 0, gpu.Options{}), semaphores(t, 4)
					b, q := allocate(t, dev, 64), dev.Queue(0)
					var called atomic.Int32
					s[0].OnReached(1, func(error) { called.Add(1); fn() })
					s[0].OnReached(1, func(error) { called.Add(1); fn() })
					must(t, q.Submit(order(s[0], 1, s[1], 1), gpu.Fill(b.All(), []byte{1})))
					must(t, q.Submit(order(s[0], 1, s[2], 1), gpu.Fill(b.All(), []byte{1})))
					waiting := make(chan error, 1)
					go func() { waiting <- s[0].Wait(minute(t), 1) }()
					s[0].OnReached(1, func(error) { called.Add(1) })
					s[0].Link(1, s[3], 1)
					var want error
					var caught any
					over := make(chan struct{})
					go func() {
						defer close(over)
						defer func() { caught = recover() }()
						want = map[string]error{"Fail": errHostCall, "FailAll": errHostCall, "Close": gpu.ErrClosed}[name]
						release(s[0])
					}()
					<-over
					if wrong == "panics" && caught != "a mistake of the program's" {
						t.Errorf("the caller recovers %v", caught)
					}
					if n := called.Load(); n != 3 {
						t.Errorf("%d of 3 functions were called", n)
					}
					if err := <-waiting; !errors.Is(err, want) {
						t.Error(err)
					}
					for i, x := range s[1:] {
						if err := x.Wait(minute(t), 1); !errors.Is(err, want) {
							t.Errorf("%d: %v", i, err)
						}
					}
				})
			})
		}
	}
	t.Run("the list is signalled whole", func(t *testing.T) {
		s := semaphores(t, 2)
		s[0].OnReached(1, func(error) { panic("a mistake of the program's") })
		func() {
			defer func() { recover() }()
			gpu.SignalAll(gpu.Point{Semaphore: s[0], Value: 1}, gpu.Point{Semaphore: s[1], Value: 1})
		}()
		must(t, s[1].Wait(minute(t), 1))
		func() {
			defer func() { recover() }()
			s[0].OnReached(2, func(error) { panic("a mistake of the program's") })
			gpu.FailAll(errHostCall, s...)
		}()
		if _, err := s[1].Query(); err != errHostCall {
			t.Error(err)
		}
	})
}

// TestNotifyPanics checks that a panic in a function of Notify is logged, with its value, its stack
// and the name of the device.
func TestNotifyPanics(t *testing.T) {
	var log bytes.Buffer
	before := slog.Default()
	slog.SetDefault(slog.New(slog.NewTextHandler(&log, nil)))
	defer slog.SetDefault(before)
	d := newSim(t, simdriver.Config{})
	dev, s := openDevice(t, d, 0, gpu.Options{}), semaphores(t, 1)
	must(t, dev.Queue(0).Submit(gpu.Order{Signal: pts(s[0], 1)}, gpu.Notify(func() { panic(errHostCall) })))
	must(t, s[0].Wait(minute(t), 1))
	must(t, dev.Close()) // Close waits for the function
	for _, want := range []string{errHostCall.Error(), "onreached_test.go", dev.Info().Name} {
		if !strings.Contains(log.String(), want) {
			t.Errorf("the log does not have %q: %s", want, &log)
		}
	}
}

// TestHostCallPanics checks that the signals of a host call that panics fail with a PanicError,
// which has the value and the stack of the panic.
func TestHostCallPanics(t *testing.T) {
	onEach(t, 1, func(t *testing.T, d *simdriver.Driver, _ driver.Caps) {
		dev, s := openDevice(t, d, 0, gpu.Options{}), semaphores(t, 1)
		must(t, dev.Queue(0).Submit(gpu.Order{Signal: pts(s[0], 1)}, gpu.HostCall(func() error { panic(errHostCall) })))
		err := s[0].Wait(minute(t), 1)
		var p *gpu.PanicError
		if !errors.Is(err, errHostCall) || !errors.As(err, &p) || p.Value != errHostCall {
			t.Fatal(err)
		}
		if !bytes.Contains(p.Stack, []byte("onreached_test.go")) {
			t.Errorf("the stack does not say where: %s", p.Stack)
		}
	})
}
