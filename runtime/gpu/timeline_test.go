package gpu

import (
	"bytes"
	"errors"
	"io"
	"runtime"
	"strings"
	"testing"

	"github.com/puregpu/puregpu/runtime/driver"
	"github.com/puregpu/puregpu/runtime/driver/simdriver"
	"github.com/puregpu/puregpu/runtime/internal/sema"
)

// untilIn waits until some goroutine is in a function.
func untilIn(name string) {
	for buf := make([]byte, 1<<20); !bytes.Contains(buf[:runtime.Stack(buf, true)], []byte(name)); {
		runtime.Gosched()
	}
}

// TestFailedWhenPassed: what a submission waits for is looked at for failure after it has been found passed, not before, for it may fail in between.
func TestFailedWhenPassed(t *testing.T) {
	d, why := new(nativeDevice), errors.New("why")
	tl, other, fails := newTimeline(d, nil), newTimeline(d, nil), newTimeline(d, nil)
	var of Semaphore
	of.sema.Publish(sema.Signal{Value: 1, Producer: fails, Seq: 1}, nil)
	s := &submission{tl: tl, waits: []sema.Point{{Semaphore: &of.sema, Value: 1}}, deps: frontier{{other, 1}, {fails, 1}}}
	tl.addCover(mark{other, 1})
	tl.coverMu.Lock() // holds it up at the first
	result := make(chan error)
	go func() {
		_, err := s.findEvents()
		result <- err
	}()
	untilIn("(*timeline).covers(")
	fails.addFailed(1, 1, why)
	fails.passed.Store(1)
	tl.coverMu.Unlock()
	if err := <-result; !errors.Is(err, why) {
		t.Errorf("%v; it waits for what has failed", err)
	}
}

// TestWaitForClosed: work fails that was about to have its stream wait for another device when that one was lost and closed.
func TestWaitForClosed(t *testing.T) {
	d := simdriver.New(simdriver.Config{Devices: 2})
	defer d.Kill() // the stalled stream is left
	var devs [2]*Device
	var mem [2]*Buffer
	for i := range devs {
		var err error
		if devs[i], err = Open(d, i, Options{}); err != nil {
			t.Fatal(err)
		}
		defer devs[i].Close()
		if mem[i], err = devs[i].Alloc(DeviceMem, 64); err != nil {
			t.Fatal(err)
		}
	}
	d.StallDevice(0)
	s, u := new(Semaphore), new(Semaphore)
	if err := devs[0].Queue(0).Fill(Order{Signal: []Point{{s, 1}}}, mem[0].All(), []byte{1}); err != nil {
		t.Fatal(err)
	}
	loan := &devs[0].native.lent
	loan.mu.Lock() // holds the wait up
	result := make(chan error)
	go func() {
		result <- devs[1].Queue(0).Fill(Order{Wait: []Point{{s, 1}}, Signal: []Point{{u, 1}}}, mem[1].All(), []byte{1})
	}()
	untilIn("(*loan).add(")
	devs[0].native.markLost(io.ErrUnexpectedEOF) // but what is in flight has not failed yet
	loan.ended = true                            // as Close does
	loan.mu.Unlock()
	if err := <-result; err != nil {
		t.Fatal(err)
	}
	if err := u.Wait(t.Context(), 1); !errors.Is(err, ErrClosed) {
		t.Errorf("Wait = %v", err)
	}
	devs[0].native.failInFlight()
	if err := s.Wait(t.Context(), 1); !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Errorf("what it waited for: %v", err)
	}
}

// TestLostWhileFollowed loses a device after a submission of another one has found its work in flight, and before that has its stream wait
// for it, when nobody can find the wait yet: the submission itself finds the loss, also where only its waits get into the stream.
func TestLostWhileFollowed(t *testing.T) {
	for name, submit := range map[string]func(q *Queue, p *Pool, b *Buffer, o Order) error{
		"a fill": func(q *Queue, _ *Pool, b *Buffer, o Order) error { return q.Fill(o, b.All(), []byte{1}) },
		"an allocation without memory": func(q *Queue, p *Pool, _ *Buffer, o Order) error {
			_, err := q.Alloca(o, p, 1<<20)
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			d := simdriver.New(simdriver.Config{Devices: 2})
			var devs [2]*Device
			var mem [2]*Buffer
			check := func(err error) {
				t.Helper()
				if err != nil {
					t.Fatal(err)
				}
			}
			for i := range devs {
				var err error
				devs[i], err = Open(d, i, Options{Spin: -1, Poll: -1})
				check(err)
				defer devs[i].Close()
				mem[i], err = devs[i].Alloc(DeviceMem, 64)
				check(err)
			}
			p, err := devs[1].NewPool(PoolOptions{MaxSize: 1 << 20})
			check(err)
			_, err = devs[1].Queue(0).Alloca(Order{}, p, 1<<20)
			check(err)
			d.StallDevice(0)
			s, u := new(Semaphore), new(Semaphore)
			check(devs[0].Queue(0).Fill(Order{Signal: []Point{{s, 1}}}, mem[0].All(), []byte{1}))
			devs[0].native.lent.mu.Lock() // holds the wait up
			result := make(chan error)
			go func() {
				result <- submit(devs[1].Queue(0), p, mem[1], Order{Wait: []Point{{s, 1}}, Signal: []Point{{u, 1}}})
			}()
			untilIn("(*loan).add(")
			d.LoseDevice(0, nil)
			devs[0].native.markLost(io.ErrUnexpectedEOF) // and nobody can find who waits
			devs[0].native.failInFlight()
			devs[0].native.lent.mu.Unlock()
			check(<-result)
			if err := devs[1].failed(); !errors.Is(err, driver.ErrLost) || !strings.Contains(err.Error(), devs[0].native.info.Name) {
				t.Errorf("the device whose stream waits for the lost one: %v", err)
			}
			if _, err := u.Query(); err == nil {
				t.Error("the work has not failed")
			}
		})
	}
}

// TestFailedByClose: work in flight of a lost device has failed when Close returns, even if the goroutine that found the loss has not failed it yet.
func TestFailedByClose(t *testing.T) {
	d := simdriver.New(simdriver.Config{})
	dev, err := Open(d, 0, Options{})
	if err != nil {
		t.Fatal(err)
	}
	b, err := dev.Alloc(DeviceMem, 64)
	if err != nil {
		t.Fatal(err)
	}
	d.StallDevice(0)
	s := new(Semaphore)
	if err := dev.Queue(0).Fill(Order{Signal: []Point{{s, 1}}}, b.All(), []byte{1}); err != nil {
		t.Fatal(err)
	}
	dev.native.markLost(io.ErrUnexpectedEOF)
	d.LoseDevice(0, nil)
	dev.Close()
	if _, err := s.Query(); !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Errorf("Query = %v", err)
	}
}

// TestUseBeforeCheck: if work is issued while its memory is being freed, either the work fails, or the dealloca waits for it. The number that
// the dealloca may have seen is passed even if the work has failed.
func TestUseBeforeCheck(t *testing.T) {
	d := simdriver.New(simdriver.Config{})
	dev, err := Open(d, 0, Options{Queues: 2})
	if err != nil {
		t.Fatal(err)
	}
	defer dev.Close()
	p, err := dev.NewPool(PoolOptions{Portable: true})
	if err != nil {
		t.Fatal(err)
	}
	there, used, freed := new(Semaphore), new(Semaphore), new(Semaphore)
	b, err := dev.Queue(0).Alloca(Order{Signal: []Point{{there, 1}}}, p, 64)
	if err != nil {
		t.Fatal(err)
	}
	if err := there.Wait(t.Context(), 1); err != nil {
		t.Fatal(err)
	}
	b.uses.mu.Lock() // holds the fill up, and then the dealloca
	result := make(chan error, 2)
	go func() {
		result <- dev.Queue(1).Fill(Order{Signal: []Point{{used, 1}}}, b.All(), []byte{1})
	}()
	untilIn("(*uses).add(")
	go func() { result <- dev.Queue(0).Dealloca(Order{Signal: []Point{{freed, 1}}}, b) }()
	untilIn("(*uses).left(")
	b.uses.mu.Unlock()
	for range 2 {
		if err := <-result; err != nil {
			t.Fatal(err)
		}
	}
	if err := used.Wait(t.Context(), 1); !errors.Is(err, ErrUnallocated) {
		t.Errorf("the fill found the memory freed: %v", err)
	}
	if n := d.Counters().Devices[0].Calls[simdriver.OpFill]; n != 0 {
		t.Errorf("%d fills", n)
	}
	if err := freed.Wait(t.Context(), 1); err != nil {
		t.Errorf("the dealloca: %v", err)
	}
}
