package interop_test

import (
	"context"
	"errors"
	"io"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
	"unsafe"

	"github.com/puregpu/puregpu/runtime/driver"
	"github.com/puregpu/puregpu/runtime/driver/simdriver"
	"github.com/puregpu/puregpu/runtime/gpu"
	"github.com/puregpu/puregpu/runtime/internal/testkit"
	"github.com/puregpu/puregpu/runtime/interop"
)

// TestAdoptedLost loses a device with work on an adopted stream. That work, later work and
// AdoptStream must fail with the loss. Another device must stay usable.
func TestAdoptedLost(t *testing.T) {
	onEach(t, 2, func(t *testing.T, d *simdriver.Driver, caps driver.Caps) {
		dev, other := openDevice(t, d, 0, gpu.Options{}), openDevice(t, d, 1, gpu.Options{})
		f := newForeign(t, d, 0)
		q, b, c, s := f.Adopt(t, dev), allocate(t, dev, 64), allocate(t, other, 64), semaphores(t, 3)
		must(t, d.StallDevice(0))
		must(t, q.Submit(gpu.Order{Signal: pts(s[0], 1)}, gpu.Fill(b.All(), []byte{1})))
		must(t, q.Submit(order(s[1], 1, s[0], 2), gpu.Fill(b.All(), []byte{1})))
		must(t, s[0].WaitIssued(minute(t), 1))
		must(t, d.LoseDevice(0, io.ErrUnexpectedEOF))
		for v := range uint64(2) {
			if err := s[0].Wait(minute(t), v+1); !errors.Is(err, driver.ErrLost) || !errors.Is(err, io.ErrUnexpectedEOF) {
				t.Errorf("Wait = %v", err)
			}
		}
		if err := q.Submit(gpu.Order{}, gpu.Fill(b.All(), []byte{1})); !errors.Is(err, driver.ErrLost) {
			t.Errorf("after the loss: %v", err)
		}
		must(t, q.Close())
		if _, err := interop.AdoptStream(dev, f.Stream); !errors.Is(err, driver.ErrLost) {
			t.Errorf("AdoptStream after the loss: %v", err)
		}
		must(t, other.Queue(0).Submit(gpu.Order{Signal: pts(s[2], 1)}, gpu.Fill(c.All(), []byte{1})))
		must(t, s[2].Wait(minute(t), 1))
		must(t, other.Close())
		dev.Close()
		f.End(t)
	})
}

// TestAdoptedStuck checks that work on an adopted stream fails if that work waits for work of
// another device and the other device is lost.
func TestAdoptedStuck(t *testing.T) {
	onEach(t, 2, func(t *testing.T, d *simdriver.Driver, caps driver.Caps) {
		first, dev := openDevice(t, d, 0, gpu.Options{}), openDevice(t, d, 1, gpu.Options{})
		f := newForeign(t, d, 1)
		q, b, c, s := f.Adopt(t, dev), allocate(t, first, 64), allocate(t, dev, 64), semaphores(t, 1)[0]
		must(t, d.StallDevice(0))
		must(t, first.Queue(0).Submit(gpu.Order{Signal: pts(s, 1)}, gpu.Fill(b.All(), []byte{1})))
		must(t, q.Submit(order(s, 1, s, 2), gpu.Fill(c.All(), []byte{1})))
		must(t, s.WaitIssued(minute(t), 2))
		must(t, d.LoseDevice(0, nil))
		if err := s.Wait(minute(t), 2); !errors.Is(err, driver.ErrLost) {
			t.Errorf("Wait = %v", err)
		}
		must(t, q.Close())
		first.Close()
		// The error may be ErrBusy, because the stream may still be running.
		if err := dev.Close(); err != nil && !errors.Is(err, driver.ErrBusy) {
			t.Errorf("Close = %v", err)
		}
		f.End(t)
	})
}

// TestAdoptedHeld stalls an adopted stream with work in flight. Other queues must work, and closing
// the adopted queue must succeed. Shutdown of the device must give up the work in flight. When the
// stream continues, it must still do that work.
func TestAdoptedHeld(t *testing.T) {
	onEachLeaky(t, func(t *testing.T, d *simdriver.Driver) {
		dev := openDevice(t, d, 0, gpu.Options{Queues: 2})
		f := newForeign(t, d, 0)
		q, b, s := f.Adopt(t, dev), allocate(t, dev, 64), semaphores(t, 2)
		must(t, d.StallStream(f.Stream))
		must(t, q.Submit(gpu.Order{Signal: pts(s[0], 1)}, gpu.Fill(b.All(), []byte{1})))
		must(t, q.Submit(gpu.Order{Signal: pts(s[0], 2)}, gpu.Fill(b.All(), []byte{1})))
		must(t, s[0].WaitIssued(minute(t), 2))
		must(t, dev.Queue(1).Submit(gpu.Order{Signal: pts(s[1], 1)}, gpu.Fill(b.All(), []byte{2})))
		must(t, s[1].Wait(minute(t), 1))
		if picked, err := dev.Pick(0); err != nil || picked == q {
			t.Errorf("%v is picked, %v", picked, err)
		}
		must(t, q.Close())
		if n := dev.Stats().InFlight; n != 2 {
			t.Errorf("%d in flight, want 2", n)
		}
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		var late *gpu.CloseError
		if err := dev.Shutdown(ctx); !errors.As(err, &late) || late.Submissions != 2 || !errors.Is(err, driver.ErrBusy) {
			t.Errorf("Shutdown = %v", err)
		}
		if err := s[0].Wait(minute(t), 1); !errors.Is(err, gpu.ErrClosed) || !errors.Is(err, driver.ErrLost) {
			t.Errorf("Wait = %v", err)
		}
		must(t, d.ResumeStream(f.Stream))
		eventually(t, "the stream has done all", func() bool { return d.Counters().Devices[0].Pending == 0 })
		f.End(t)
	})
}

// TestAdoptedClosed closes an adopted queue with issued and with parked work. The issued work must
// complete, the parked work must fail with ErrClosed, and afterwards no event of the device may be
// in use.
func TestAdoptedClosed(t *testing.T) {
	onEach(t, 1, func(t *testing.T, d *simdriver.Driver, caps driver.Caps) {
		dev := openDevice(t, d, 0, gpu.Options{Queues: 1, Events: 2})
		f := newForeign(t, d, 0)
		q, b := f.Adopt(t, dev), allocate(t, dev, 64)
		const n = 20
		s, gate := semaphores(t, n), semaphores(t, 1)[0]
		must(t, d.StallStream(f.Stream))
		for i := range s {
			o := gpu.Order{Signal: pts(s[i], 1)}
			if i >= n/2 {
				o.Wait = pts(gate, 1)
			}
			must(t, q.Submit(o, gpu.Fill(b.All(), []byte{1})))
		}
		must(t, q.Close())
		must(t, gate.Signal(1))
		fills := calls(d, 0, simdriver.OpFill)
		must(t, d.ResumeStream(f.Stream))
		reached := 0
		for i := range s {
			switch err := s[i].Wait(minute(t), 1); {
			case err == nil:
				reached++
			case !errors.Is(err, gpu.ErrClosed):
				t.Errorf("Wait = %v", err)
			}
		}
		if after := calls(d, 0, simdriver.OpFill); after != fills || reached != n/2 || uint64(reached) != fills {
			t.Errorf("%d of %d are reached, of %d fills before the queue was closed and %d after", reached, n, fills, after)
		}
		eventually(t, "all events are free", func() bool {
			e := dev.Stats().Events
			return e.Free == e.Held
		}, dev)
		must(t, dev.Trim())
		if e := dev.Stats().Events; e.Free != e.Held {
			t.Errorf("%d events are held, and %d of them are free", e.Held, e.Free)
		}
		must(t, dev.Close())
		f.End(t)
	})
}

// TestAdoptedSignals makes an adopted stream wait for other code's event, right behind work of the
// stream's queue. The signals of that work must be reached, and work of another queue that waits
// for these signals must run, before the event is complete.
func TestAdoptedSignals(t *testing.T) {
	onEach(t, 1, func(t *testing.T, d *simdriver.Driver, caps driver.Caps) {
		dev := openDevice(t, d, 0, gpu.Options{Queues: 2})
		f := newForeign(t, d, 0)
		q, b := f.Adopt(t, dev), allocate(t, dev, 64)
		held := newForeign(t, d, 0)
		var gate driver.Event
		for range 5 {
			s := semaphores(t, 1)[0]
			must(t, d.StallStream(held.Stream))
			f.Give(t, func() (err error) {
				if gate, err = f.NewEvent(); err == nil {
					err = errors.Join(f.Fill(held.Stream, b.Ptr(), 1, 1, 1), f.Record(gate, held.Stream))
				}
				return err
			})
			must(t, q.Submit(gpu.Order{Signal: pts(s, 1)}, gpu.Fill(b.Range(8, 8), []byte{1})))
			must(t, q.Submit(gpu.Order{Signal: pts(s, 2)}, gpu.Copy(b.Range(16, 8), b.Range(8, 8))))
			must(t, s.WaitIssued(minute(t), 2))
			f.Give(t, func() error { return f.StreamWait(f.Stream, gate) })
			must(t, dev.Queue(1).Submit(order(s, 2, s, 3), gpu.Copy(b.Range(24, 8), b.Range(16, 8))))
			must(t, s.Wait(minute(t), 3))
			must(t, d.ResumeStream(held.Stream))
			must(t, q.Submit(gpu.Order{Signal: pts(s, 4)}, gpu.Fill(b.Range(8, 8), []byte{2})))
			must(t, s.Wait(minute(t), 4))
			f.Give(t, func() error { return f.DestroyEvent(gate) })
		}
		must(t, dev.Close())
		held.End(t)
		f.End(t)
	})
}

// TestAdoptFaults checks the errors if the driver fails to adopt a stream, to say whether the
// stream is being captured, or to make an event.
func TestAdoptFaults(t *testing.T) {
	onEach(t, 1, func(t *testing.T, d *simdriver.Driver, caps driver.Caps) {
		dev := openDevice(t, d, 0, gpu.Options{})
		f := newForeign(t, d, 0)
		if caps.Adopt {
			hit := d.Inject(simdriver.Fault{Op: simdriver.OpAdoptStream, N: 1})
			if _, err := interop.AdoptStream(dev, f.Stream); !errors.Is(err, simdriver.ErrInjected) || !strings.Contains(err.Error(), "gpu: adopt a stream on Simulated GPU 0: ") || hit.Hits() != 1 {
				t.Errorf("AdoptStream = %v", err)
			}
		}
		q, b, s := f.Adopt(t, dev), allocate(t, dev, 64), semaphores(t, 2)
		d.Inject(simdriver.Fault{Op: simdriver.OpCapturing, N: 1})
		must(t, q.Submit(gpu.Order{Signal: pts(s[0], 1)}, gpu.Fill(b.All(), []byte{1})))
		var failed *gpu.SubmitError
		if err := s[0].Wait(minute(t), 1); !errors.As(err, &failed) || failed.Queue != q.String()[:len(failed.Queue)] || !errors.Is(err, simdriver.ErrInjected) {
			t.Errorf("Wait = %v", err)
		}
		must(t, q.Submit(gpu.Order{Signal: pts(s[1], 1)}, gpu.Fill(b.All(), []byte{1})))
		must(t, s[1].Wait(minute(t), 1))
		e, err := interop.NewEvent(dev)
		must(t, err)
		d.Inject(simdriver.Fault{Op: simdriver.OpNewEvent, N: 1, OOM: true})
		if _, err := interop.NewEvent(dev); !errors.Is(err, driver.ErrOutOfMemory) {
			t.Errorf("NewEvent = %v", err)
		}
		must(t, e.Close())
		must(t, dev.Close())
		f.End(t)
	})
}

// TestEventClosedWhileWaitedFor checks that an event can be closed while other code's stream waits
// for it, and that the event does not leak.
func TestEventClosedWhileWaitedFor(t *testing.T) {
	onEach(t, 1, func(t *testing.T, d *simdriver.Driver, caps driver.Caps) {
		dev := openDevice(t, d, 0, gpu.Options{})
		f := newForeign(t, d, 0)
		e, err := interop.NewEvent(dev)
		must(t, err)
		b, s := allocate(t, dev, 64), semaphores(t, 1)[0]
		must(t, d.StallStream(f.Stream))
		must(t, d.StallDevice(0))
		must(t, dev.Queue(0).Submit(gpu.Order{Signal: pts(s, 1)}, gpu.Fill(b.All(), []byte{1})))
		must(t, dev.Queue(0).Submit(order(s, 1, s, 2), interop.RecordEvent(e)))
		must(t, s.WaitIssued(minute(t), 2))
		f.Give(t, func() error { return f.StreamWait(f.Stream, e.Native()) })
		must(t, d.ResumeDevice(0))
		must(t, s.Wait(minute(t), 2))
		must(t, e.Close())
		synctest.Wait()
		must(t, d.ResumeStream(f.Stream))
		f.Give(t, func() error { return testkit.Drain(f, f.Stream) })
		must(t, dev.Close())
		f.End(t)
	})
}

// TestValueGivenUp closes a device whose stream waits for a value that is never written. Close must
// return in time, and all work must fail.
func TestValueGivenUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dev := openDevice(t, newSim(t, simdriver.Config{}), 0, gpu.Options{Queues: 2})
		word, err := dev.Alloc(gpu.HostMem, 8)
		must(t, err)
		s := semaphores(t, 3)
		must(t, dev.Queue(0).Submit(gpu.Order{Signal: pts(s[0], 1)}, interop.WaitValue(word.All(), 1)))
		must(t, dev.Queue(0).Submit(gpu.Order{Signal: pts(s[0], 2), Free: pts(s[2], 1)}, gpu.Fill(word.All(), []byte{1})))
		must(t, dev.Queue(1).Submit(gpu.Order{Wait: pts(s[0], 1), Signal: pts(s[1], 1)}, interop.WriteValue(word.All(), 1))) // never runs: it waits for the WaitValue that only it could end
		began := time.Now()
		var late *gpu.CloseError
		if err := dev.Close(); !errors.As(err, &late) || late.Submissions != 3 {
			t.Errorf("Close = %v", err)
		}
		if took := time.Since(began); took > 15*time.Second {
			t.Errorf("Close took %v", took)
		}
		for i, v := range []uint64{2, 1} {
			if err := s[i].Wait(minute(t), v); !errors.Is(err, gpu.ErrClosed) {
				t.Errorf("Wait = %v", err)
			}
		}
		if err := s[2].Wait(minute(t), 1); !errors.Is(err, driver.ErrBusy) {
			t.Errorf("whether the memory is free: %v", err)
		}
	})
}

// TestValueFaults checks the errors of value operations that the driver refuses, and of one that
// fails on the device.
func TestValueFaults(t *testing.T) {
	onEach(t, 1, func(t *testing.T, d *simdriver.Driver, caps driver.Caps) {
		if !caps.Values {
			t.Skip("there are no values")
		}
		dev := openDevice(t, d, 0, gpu.Options{})
		word, err := dev.Alloc(gpu.HostMem, 8)
		must(t, err)
		q := dev.Queue(0)
		for op, submit := range map[simdriver.Op]func(o gpu.Order) error{
			simdriver.OpWriteValue: func(o gpu.Order) error { return q.Submit(o, interop.WriteValue(word.All(), 3)) },
			simdriver.OpWaitValue:  func(o gpu.Order) error { return q.Submit(o, interop.WaitValue(word.All(), 0)) },
		} {
			s := semaphores(t, 1)[0]
			d.Inject(simdriver.Fault{Op: op, N: 1})
			must(t, submit(gpu.Order{Signal: pts(s, 1)}))
			var failed *gpu.SubmitError
			if err := s.Wait(minute(t), 1); !errors.As(err, &failed) || !strings.HasPrefix(failed.Op, "value w") || !errors.Is(err, simdriver.ErrInjected) {
				t.Errorf("%s: %v", op, err)
			}
		}
		s := semaphores(t, 1)[0]
		must(t, q.Submit(gpu.Order{Signal: pts(s, 1)}, interop.WriteValue(word.All(), 3)))
		must(t, s.Wait(minute(t), 1))
		d.Inject(simdriver.Fault{Op: simdriver.OpWaitValue, N: 1, AtExecution: true})
		must(t, q.Submit(order(s, 1, s, 2), interop.WaitValue(word.All(), 9)))
		if err := s.Wait(minute(t), 2); !errors.Is(err, driver.ErrLost) || !errors.Is(err, simdriver.ErrInjected) {
			t.Errorf("Wait = %v", err)
		}
		dev.Close()
	})
}

// TestAdoptedAllocatesNothing checks that value operations and work on an adopted stream allocate
// nothing.
func TestAdoptedAllocatesNothing(t *testing.T) {
	if raceEnabled {
		t.Skip("the race detector allocates")
	}
	d := newSim(t, simdriver.Config{})
	dev := openDevice(t, d, 0, gpu.Options{Queues: 1})
	f := newForeign(t, d, 0)
	q, b, s := f.Adopt(t, dev), allocate(t, dev, 64), semaphores(t, 1)[0]
	word, err := dev.Alloc(gpu.HostMem, 8)
	must(t, err)
	at := (*atomic.Uint64)(unsafe.Pointer(unsafe.SliceData(word.Bytes())))
	v, number := uint64(0), uint64(0)
	ctx := minute(t)
	wait, signal := make([]gpu.Point, 1), make([]gpu.Point, 1)
	step := func(submit func(o gpu.Order) error) {
		wait[0], signal[0] = gpu.Point{Semaphore: s, Value: v}, gpu.Point{Semaphore: s, Value: v + 1}
		v++
		if err := submit(gpu.Order{Wait: wait, Signal: signal}); err != nil {
			t.Fatal(err)
		}
	}
	fill := func(o gpu.Order) error { return q.Submit(o, gpu.Fill(b.All(), []byte{1})) }
	write := func(o gpu.Order) error { return q.Submit(o, interop.WriteValue(word.All(), number)) }
	own := func(o gpu.Order) error { return dev.Queue(0).Submit(o, interop.WaitValue(word.All(), number+1)) }
	turn := func() {
		number += 2
		step(fill)
		step(write)
		step(own)
		if err := s.Wait(ctx, v-1); err != nil { // now the device has written number
			t.Fatal(err)
		}
		at.Store(number + 1)
		if err := s.Wait(ctx, v); err != nil {
			t.Fatal(err)
		}
	}
	for range 200 {
		turn()
	}
	if n := testing.AllocsPerRun(200, turn); n != 0 {
		t.Errorf("%v allocations a turn", n)
	}
	must(t, dev.Close())
	f.End(t)
}
