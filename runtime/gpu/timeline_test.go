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
)

// untilIn waits until some goroutine is in a function.
func untilIn(name string) {
	for buf := make([]byte, 1<<20); !bytes.Contains(buf[:runtime.Stack(buf, true)], []byte(name)); {
		runtime.Gosched()
	}
}

// TestFailedWhenPassed: what a submission waits for is looked at for failure after it has been found passed, not before, for it may fail in between.
func TestFailedWhenPassed(t *testing.T) {
	d, why := new(Device), errors.New("why")
	tl, other, fails := newTimeline(d), newTimeline(d), newTimeline(d)
	var of Semaphore
	of.publish(point{Value: 1, Timeline: fails, Seq: 1})
	s := &submission{q: &Queue{dev: d, tl: tl}, waits: []Point{{&of, 1}}, deps: frontier{{other, 1}, {fails, 1}}}
	tl.coverMu.Lock() // holds it up at the first
	result := make(chan error)
	go func() {
		_, _, err := tl.order(s)
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

// TestDoubtBeforeFailure: the parts of an operation are in doubt when others can find that a semaphore has failed which the operation is to signal, and not
// only when all have been told.
func TestDoubtBeforeFailure(t *testing.T) {
	var of, parts Semaphore
	tl := newTimeline(new(Device))
	defer parts.doubtWith([]Point{{&of, 1}})()
	parts.publish(point{Value: 1, Timeline: tl, Seq: 1})
	of.fail(io.EOF) // and nobody has been told
	if !of.inDoubt() || !parts.inDoubt() || tl.doubted.Load() != 1 {
		t.Errorf("up to %d is in doubt", tl.doubted.Load())
	}
	var closed, rest Semaphore
	defer rest.doubtWith([]Point{{&closed, 1}})()
	closed.Close()
	if !rest.inDoubt() { // the work goes on, and nobody can be ordered behind it any more
		t.Error("closing makes no doubts")
	}
}

// TestWaitForClosed: work fails that was about to have its stream wait for another device when that one was lost and closed.
func TestWaitForClosed(t *testing.T) {
	d := simdriver.New(simdriver.Config{Devices: 2})
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
	loan := &devs[0].lent
	loan.mu.Lock() // holds the wait up
	result := make(chan error)
	go func() {
		result <- devs[1].Queue(0).Fill(Order{Wait: []Point{{s, 1}}, Signal: []Point{{u, 1}}}, mem[1].All(), []byte{1})
	}()
	untilIn("(*loan).add(")
	devs[0].markLost(io.ErrUnexpectedEOF) // but what is in flight has not failed yet
	loan.ended = true                     // as Close does
	loan.mu.Unlock()
	if err := <-result; err != nil {
		t.Fatal(err)
	}
	if err := u.Wait(t.Context(), 1); !errors.Is(err, ErrClosed) {
		t.Errorf("Wait = %v", err)
	}
	devs[0].failInFlight()
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
			devs[0].lent.mu.Lock() // holds the wait up
			result := make(chan error)
			go func() {
				result <- submit(devs[1].Queue(0), p, mem[1], Order{Wait: []Point{{s, 1}}, Signal: []Point{{u, 1}}})
			}()
			untilIn("(*loan).add(")
			d.LoseDevice(0, nil)
			devs[0].markLost(io.ErrUnexpectedEOF) // and nobody can find who waits
			devs[0].failInFlight()
			devs[0].lent.mu.Unlock()
			check(<-result)
			if err := devs[1].failed(); !errors.Is(err, driver.ErrLost) || !strings.Contains(err.Error(), devs[0].info.Name) {
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
	dev.markLost(io.ErrUnexpectedEOF)
	d.LoseDevice(0, nil)
	dev.Close()
	if _, err := s.Query(); !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Errorf("Query = %v", err)
	}
}

// TestNothingGoing: when work has been issued, or the driver has refused it, the timeline has none in hand, for the record may be used again.
func TestNothingGoing(t *testing.T) {
	d := simdriver.New(simdriver.Config{})
	dev, err := Open(d, 0, Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer dev.Close()
	b, err := dev.Alloc(DeviceMem, 64)
	if err != nil {
		t.Fatal(err)
	}
	for _, fault := range []simdriver.Op{"", simdriver.OpFill, simdriver.OpRecord} {
		for i := range markEvery { // the last has an event behind it
			if fault != "" && i == markEvery-1 {
				d.Inject(simdriver.Fault{Op: fault, N: 1})
			}
			if err := dev.Queue(0).Fill(Order{}, b.All(), []byte{1}); err != nil {
				t.Fatal(err)
			}
		}
		if tl := dev.Queue(0).tl; tl.going.Load() != nil {
			t.Errorf("after a fault of %q it has work in hand", fault)
		}
	}
}

// TestBorrowBeforeUse: work that is in doubt says that it uses another device's memory before it finds that, for a dealloca may be looking for such work.
func TestBorrowBeforeUse(t *testing.T) {
	d := simdriver.New(simdriver.Config{Devices: 2})
	var devs [2]*Device
	for i := range devs {
		dev, err := Open(d, i, Options{})
		if err != nil {
			t.Fatal(err)
		}
		defer dev.Close()
		devs[i] = dev
	}
	p, err := devs[0].NewPool(PoolOptions{Portable: true})
	if err != nil {
		t.Fatal(err)
	}
	b, err := devs[0].Queue(0).Alloca(Order{}, p, 64)
	if err != nil {
		t.Fatal(err)
	}
	x, err := devs[1].Alloc(DeviceMem, 64)
	if err != nil {
		t.Fatal(err)
	}
	s := new(Semaphore)
	s.Fail(io.EOF)
	devs[0].lent.mu.Lock() // holds the copy up
	result := make(chan error)
	go func() { result <- devs[1].Queue(0).Copy(Order{Signal: []Point{{s, 1}}}, b.All(), x.All()) }()
	untilIn("(*loan).add(")
	if err := devs[0].Queue(0).Dealloca(Order{}, b); err != nil {
		t.Fatal(err)
	}
	given := b.state.Load() == isGone
	devs[0].lent.mu.Unlock()
	if err := <-result; err != nil {
		t.Fatal(err)
	}
	if n := d.Counters().Devices[1].Calls[simdriver.OpCopy]; given && n != 0 {
		t.Error("a copy to memory that has been given back")
	}
}
