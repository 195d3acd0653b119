package gpu_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"runtime"
	"testing"
	"time"

	"github.com/puregpu/puregpu/runtime/driver"
	"github.com/puregpu/puregpu/runtime/driver/simdriver"
	"github.com/puregpu/puregpu/runtime/gpu"
)

func TestStream(t *testing.T) {
	t.Run("B144 each operation comes after the one before, also while that one is parked", func(t *testing.T) {
		onEach(t, 1, func(t *testing.T, d *simdriver.Driver, caps driver.Caps) {
			dev, host := openDevice(t, d, 0, gpu.Options{}), semaphores(t, 1)[0]
			a, b := allocate(t, dev, 8), allocate(t, dev, 8)
			s, calls := dev.Queue(0).NewStream(), ""
			got := make([]byte, 8)
			must(t, s.After(host.At(1)))
			must(t, s.Do(gpu.UploadCopy(a.All(), []byte{1, 2, 3, 4, 5, 6, 7, 8})))
			must(t, s.Do(gpu.HostCall(func() error { calls += "host call "; return nil })))
			must(t, s.Fill(a.Range(0, 4), []byte{9}))
			must(t, s.Copy(b.All(), a.All()))
			must(t, s.Fill(a.All(), []byte{0}))
			must(t, s.Upload(b.Range(7, 1), []byte{10}))
			must(t, s.Do(gpu.ReadFrom(b.Range(6, 1), bytes.NewReader([]byte{0, 11}), 1)))
			must(t, s.Do(gpu.Notify(func() {})))
			must(t, s.Download(got, b.All()))
			end := s.Point()
			if n, err := end.Semaphore.Query(); n != 0 || err != nil {
				t.Errorf("%d operations are done, %v, though the first waits", n, err)
			}
			must(t, host.Signal(1))
			must(t, s.Wait(minute(t)))
			if want := []byte{9, 9, 9, 9, 5, 6, 11, 10}; !bytes.Equal(got, want) || calls != "host call " {
				t.Errorf("%v, and %q called; want %v", got, calls, want)
			}
			if n, err := end.Semaphore.Query(); n != end.Value || err != nil {
				t.Errorf("%d operations are done, %v; want %d", n, err, end.Value)
			}
		})
	})
	t.Run("B145 a refused call fails the stream, and later work does not run", func(t *testing.T) {
		onEach(t, 1, func(t *testing.T, d *simdriver.Driver, caps driver.Caps) {
			dev := openDevice(t, d, 0, gpu.Options{})
			b := allocate(t, dev, 8)
			for range 1000 {
				s := dev.Queue(0).NewStream()
				must(t, s.Fill(b.All(), []byte{1}))
				refused := s.Fill(b.Range(4, 8), []byte{2})
				if !errors.Is(refused, gpu.ErrRange) {
					t.Fatal(refused)
				}
				for _, err := range []error{s.Fill(b.All(), []byte{3}), s.Do(gpu.HostCall(func() error { t.Error("called"); return nil })), s.After(), s.Wait(minute(t))} {
					if err != refused {
						t.Fatalf("%v; want the error of the call that was refused: %v", err, refused)
					}
				}
			}
			eventually(t, "nothing is left", func() bool {
				dev.Queue(0).Flush()
				n := dev.Stats()
				return n.Parked == 0 && n.InFlight == 0
			})
			// got[0] is 1 if an operation before a refused call has run, and 0 if none has.
			if got := bytesOf(t, dev.Queue(0), b); got[0] > 1 {
				t.Errorf("%v: an operation after the refused one has run", got)
			}
		})
	})
	t.Run("B145 a failed operation fails the stream with one error", func(t *testing.T) {
		onEach(t, 1, func(t *testing.T, d *simdriver.Driver, caps driver.Caps) {
			dev := openDevice(t, d, 0, gpu.Options{})
			b, s := allocate(t, dev, 8), dev.Queue(0).NewStream()
			failure := errors.New("the file is gone")
			submitted := make(chan struct{})
			must(t, s.Do(gpu.HostCall(func() error { <-submitted; return failure })))
			must(t, s.Fill(b.All(), []byte{1})) // submitted before the failure is known
			must(t, s.Fill(b.All(), []byte{1}))
			close(submitted)
			err := s.Wait(minute(t))
			var of *gpu.SubmitError
			if !errors.Is(err, failure) || !errors.As(err, &of) {
				t.Fatal(err)
			}
			if again := s.Fill(b.All(), []byte{1}); again != err {
				t.Errorf("%v; want %v", again, err)
			}
			if _, again := s.Alloc(nil, 8); again != err {
				t.Errorf("%v; want %v", again, err)
			}
			if got := bytesOf(t, dev.Queue(0), b); got[0] != 0 {
				t.Errorf("%v: an operation after the failed one has run", got)
			}
		})
	})
	t.Run("B146 streams wait for semaphores and for one another", func(t *testing.T) {
		onEach(t, 2, func(t *testing.T, d *simdriver.Driver, caps driver.Caps) {
			dev, other := openDevice(t, d, 0, gpu.Options{Queues: 2}), openDevice(t, d, 1, gpu.Options{})
			b, done := allocate(t, dev, 8), semaphores(t, 1)[0]
			one, two, three := dev.Queue(0).NewStream(), dev.Queue(1).NewStream(), other.Queue(0).NewStream()
			must(t, two.After(gpu.Point{Semaphore: done, Value: 1}))
			must(t, two.Do(gpu.Barrier()))
			must(t, three.After(two.Point()))
			got := make([]byte, 8)
			must(t, one.Fill(b.All(), []byte{5}))
			must(t, dev.Queue(1).Submit(gpu.Order{Wait: []gpu.Point{one.Point()}, Signal: pts(done, 1)}, gpu.Fill(b.Range(0, 4), []byte{6})))
			must(t, one.After(done.At(1)))
			must(t, three.Do(gpu.HostCall(func() error { return two.Download(got, b.All()) })))
			must(t, three.Wait(minute(t)))
			must(t, two.Wait(minute(t)))
			if want := []byte{6, 6, 6, 6, 5, 5, 5, 5}; !bytes.Equal(got, want) {
				t.Errorf("%v; want %v", got, want)
			}
			failure := errors.New("enough")
			must(t, three.After(one.Point()))
			one.Fail(failure)
			if err := three.Do(gpu.Barrier()); err != nil && !errors.Is(err, failure) {
				t.Error(err)
			}
			if err := three.Wait(minute(t)); !errors.Is(err, failure) {
				t.Errorf("%v; want that of the other stream, %v", err, failure)
			}
		})
	})
	t.Run("B146 memory of pools needs no lists", func(t *testing.T) {
		onEach(t, 1, func(t *testing.T, d *simdriver.Driver, caps driver.Caps) {
			dev, host := openDevice(t, d, 0, gpu.Options{}), semaphores(t, 1)[0]
			p, err := dev.NewPool(gpu.PoolOptions{MaxSize: 1 << 20})
			if errors.Is(err, driver.ErrUnsupported) {
				p, err = nil, nil
			}
			must(t, err)
			s, got := dev.Queue(0).NewStream(), make([]byte, 4)
			must(t, s.After(host.At(1)))
			for i := range byte(8) { // together the allocations are larger than the pool's limit
				b, err := s.Alloc(p, 1<<19)
				must(t, err)
				must(t, s.Fill(b.All(), []byte{i}))
				must(t, s.Download(got, b.Range(1<<18, 4)))
				must(t, s.Free(b))
			}
			must(t, host.Signal(1))
			must(t, s.Wait(minute(t)))
			if !bytes.Equal(got, []byte{7, 7, 7, 7}) {
				t.Error(got)
			}
		})
	})
	t.Run("B146 an operation with its own Order, in stream order", func(t *testing.T) {
		onEach(t, 1, func(t *testing.T, d *simdriver.Driver, caps driver.Caps) {
			dev := openDevice(t, d, 0, gpu.Options{Queues: 2})
			s, x, b, got := dev.Queue(0).NewStream(), semaphores(t, 3), allocate(t, dev, 4), make([]byte, 4)
			must(t, s.After(x[0].At(1)))
			must(t, s.Fill(b.All(), []byte{1}))
			o := gpu.Order{Wait: []gpu.Point{s.Point()}, Signal: pts(x[1], 1), Free: pts(x[2], 1)}
			must(t, dev.Queue(1).Submit(o, gpu.Download(got, b.All())))
			must(t, s.After(x[1].At(1)))
			must(t, s.Fill(b.All(), []byte{2}))
			must(t, x[0].Signal(1))
			must(t, s.Wait(minute(t)))
			must(t, x[2].Wait(minute(t), 1))
			if !bytes.Equal(got, []byte{1, 1, 1, 1}) {
				t.Error(got)
			}
			holds(t, "the memory", dev, b, 2)
		})
	})
	t.Run("B145 points that cannot be reached", func(t *testing.T) {
		d := newSim(t, simdriver.Config{})
		q := openDevice(t, d, 0, gpu.Options{}).Queue(0)
		for name, p := range map[string]func(s *gpu.Stream) gpu.Point{
			"no semaphore":         func(*gpu.Stream) gpu.Point { return gpu.Point{} },
			"a value too high":     func(*gpu.Stream) gpu.Point { return new(gpu.Semaphore).At(gpu.MaxValue + 1) },
			"the stream's own end": func(s *gpu.Stream) gpu.Point { p := s.Point(); p.Value++; return p },
		} {
			s := q.NewStream()
			if err := s.After(p(s)); !errors.Is(err, gpu.ErrArgument) || s.Do(gpu.Barrier()) != err || s.Wait(minute(t)) != err {
				t.Errorf("%s: %v", name, err)
			}
		}
		s := q.NewStream()
		must(t, s.Do(gpu.Barrier()))
		must(t, s.After(s.Point()))
		must(t, s.Do(gpu.Barrier()))
		must(t, s.Wait(minute(t)))
	})
	t.Run("B77 B145 Fail stops only work that was not issued", func(t *testing.T) {
		onEach(t, 1, func(t *testing.T, d *simdriver.Driver, caps driver.Caps) {
			dev, failure := openDevice(t, d, 0, gpu.Options{Queues: 2}), errors.New("enough")
			first, far, waiting := allocate(t, dev, 8), allocate(t, dev, 8), allocate(t, dev, 8)
			s, other := dev.Queue(0).NewStream(), dev.Queue(1).NewStream()
			must(t, d.StallDevice(0))
			must(t, s.Fill(first.All(), []byte{1}))
			must(t, other.After(s.Point()))
			must(t, other.Fill(far.All(), []byte{1}))
			p := other.Point()
			must(t, p.Semaphore.WaitIssued(minute(t), p.Value))
			must(t, s.Do(gpu.HostCall(func() error { t.Error("a host call runs behind the failure"); return nil })))
			must(t, s.Fill(waiting.All(), []byte{1}))
			s.Fail(failure)
			must(t, d.ResumeDevice(0))
			if err := s.Wait(minute(t)); err != failure {
				t.Errorf("the stream: %v; want %v", err, failure)
			}
			eventually(t, "nothing is left", func() bool {
				dev.Queue(0).Flush()
				dev.Queue(1).Flush()
				n := dev.Stats()
				return n.Parked == 0 && n.InFlight == 0
			})
			holds(t, "memory of issued work", dev, first, 1)
			holds(t, "memory of issued work of another stream", dev, far, 1)
			holds(t, "memory of work that was not issued", dev, waiting, 0)
		})
	})
	t.Run("B145 a lost device fails it", func(t *testing.T) {
		onEach(t, 1, func(t *testing.T, d *simdriver.Driver, caps driver.Caps) {
			dev, host := openDevice(t, d, 0, gpu.Options{}), semaphores(t, 1)[0]
			s := dev.Queue(0).NewStream()
			b := allocate(t, dev, 8)
			must(t, s.After(host.At(1)))
			must(t, s.Fill(b.All(), []byte{1}))
			called := make(chan error, 1)
			p := s.Point()
			p.Semaphore.OnReached(p.Value, func(err error) { called <- errors.Join(err, s.Fill(b.All(), []byte{1})) })
			d.LoseDevice(0, nil)
			must(t, host.Signal(1))
			if err := s.Wait(minute(t)); !errors.Is(err, driver.ErrLost) {
				t.Error(err)
			}
			ends(t, called, driver.ErrLost)
			if err := s.Fill(b.All(), []byte{1}); !errors.Is(err, driver.ErrLost) {
				t.Error(err)
			}
		})
	})
	t.Run("B144 calls from many goroutines", func(t *testing.T) {
		onEach(t, 1, func(t *testing.T, d *simdriver.Driver, caps driver.Caps) {
			dev := openDevice(t, d, 0, gpu.Options{})
			s, n := dev.Queue(0).NewStream(), 0
			ended := make(chan error)
			for range 8 {
				go func() {
					for range 50 {
						// The stream runs one function at a time. Otherwise the race detector would
						// report the accesses to n.
						if err := s.Do(gpu.HostCall(func() error { n++; return nil })); err != nil {
							ended <- err
							return
						}
					}
					ended <- s.Wait(minute(t))
				}()
			}
			for range 8 {
				must(t, <-ended)
			}
			if n != 400 {
				t.Errorf("%d calls; want 400", n)
			}
		})
	})
}

// TestStreamAllocs tests B142: submitting to a stream allocates no Go memory.
func TestStreamAllocs(t *testing.T) {
	if raceEnabled {
		t.Skip("the race detector allocates")
	}
	for kind, caps := range bothCaps() {
		d := newSim(t, simdriver.Config{Caps: &caps})
		// With these options the runtime polls without pauses, and so makes no timers.
		dev := openDevice(t, d, 0, gpu.Options{Spin: -1, Poll: time.Minute})
		b, host, data := allocate(t, dev, 64), semaphores(t, 1)[0], make([]byte, 64)
		x, err := dev.Load(simdriver.Image("nothing"))
		must(t, err)
		k, err := x.Kernel("nothing")
		must(t, err)
		other, end := dev.Queue(1).NewStream(), uint64(0)
		s := dev.Queue(0).NewStream()
		launch := gpu.Launch(k, gpu.Grid{}, uint64(1))
		run := func() {
			end++
			err := errors.Join(
				s.After(host.At(end)), // parks everything until the host signals this point
				s.Fill(b.All(), []byte{1, 2, 3, 4}),
				s.Do(gpu.UploadCopy(b.All(), data)),
				s.Copy(b.Range(0, 32), b.Range(32, 32)),
				s.Do(launch),
				s.Download(data, b.All()),
				other.After(s.Point()),
				other.Do(gpu.Barrier()),
				host.Signal(end),
			)
			if err != nil {
				t.Fatal(err)
			}
			for p := other.Point(); ; runtime.Gosched() {
				if v, err := p.Semaphore.Query(); err != nil || v >= p.Value {
					break
				}
			}
		}
		for range 200 {
			run()
		}
		if n := testing.AllocsPerRun(100, run); n != 0 {
			t.Errorf("%s: %v allocations", kind, n)
		}
	}
}

// BenchmarkStream submits fills to a stream, and to a queue with a semaphore. Each fill waits for
// the previous fill. The device completes each fill at once.
func BenchmarkStream(b *testing.B) {
	dev := idle(b)
	buf, err := dev.Alloc(gpu.DeviceMem, 4096)
	must(b, err)
	pattern := []byte{1, 2, 3, 4}
	b.Run("queue", func(b *testing.B) {
		s, n := semaphores(b, 1)[0], uint64(0)
		var wait, signal [1]gpu.Point
		b.ReportAllocs()
		for b.Loop() {
			wait[0], signal[0] = s.At(n), s.At(n+1)
			must(b, dev.Queue(0).Submit(gpu.Order{Wait: wait[:], Signal: signal[:]}, gpu.Fill(buf.All(), pattern)))
			n++
		}
		must(b, s.Wait(context.Background(), n))
	})
	b.Run("stream", func(b *testing.B) {
		s := dev.Queue(0).NewStream()
		b.ReportAllocs()
		for b.Loop() {
			must(b, s.Fill(buf.All(), pattern))
		}
		must(b, s.Wait(context.Background()))
	})
}

// TestFailedStreamCallsNothing makes streams fail whose last operation is parked until a point is
// reached. When the point is reached, the function of the operation must not be called.
func TestFailedStreamCallsNothing(t *testing.T) {
	dev := openDevice(t, newSim(t, simdriver.Config{}), 0, gpu.Options{StageSize: 64})
	b := allocate(t, dev, 256)
	failure := errors.New("enough")
	called := make(chan string, 4)
	for name, op := range map[string]gpu.Op{
		"host call":    gpu.HostCall(func() error { called <- "host call"; return nil }),
		"notification": gpu.Notify(func() { called <- "notification" }),
		"read":         gpu.ReadFrom(b.All(), readerFunc(func([]byte, int64) (int, error) { called <- "read"; return 0, io.EOF }), 0),
	} {
		s, gate := dev.Queue(0).NewStream(), semaphores(t, 1)[0]
		must(t, s.Fill(b.All(), []byte{1}))
		must(t, s.Wait(minute(t)))
		must(t, s.After(gate.At(1)))
		must(t, s.Do(op))
		p := s.Point()
		s.Fail(failure)
		must(t, gate.Signal(1))
		if err := p.Semaphore.Wait(minute(t), p.Value); !errors.Is(err, failure) {
			t.Errorf("%s: %v", name, err)
		}
	}
	// Read the names of the functions that were called, up to the name of the host call below.
	s := dev.Queue(0).NewStream()
	must(t, s.Do(gpu.HostCall(func() error { called <- "last"; return nil })))
	must(t, s.Wait(minute(t)))
	for {
		if what := <-called; what == "last" {
			break
		} else {
			t.Errorf("the %s is called", what)
		}
	}
}

type readerFunc func([]byte, int64) (int, error)

func (f readerFunc) ReadAt(p []byte, at int64) (int, error) { return f(p, at) }
