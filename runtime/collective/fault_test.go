package collective_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/puregpu/puregpu/runtime/collective"
	"github.com/puregpu/puregpu/runtime/driver"
	"github.com/puregpu/puregpu/runtime/driver/simdriver"
	"github.com/puregpu/puregpu/runtime/gpu"
	"github.com/puregpu/puregpu/runtime/interop"
)

// hasFailed checks that a semaphore fails with a collective.Error that wraps kind, an error.
func hasFailed(t *testing.T, what string, s *gpu.Semaphore, kind error) {
	t.Helper()
	err := s.Wait(minute(t), 1)
	if of, ok := errors.AsType[*collective.Error](err); !ok || !errors.Is(err, kind) {
		t.Errorf("%s: %v, %v; want a communicator's failure by %v", what, err, of, kind)
	}
}

// TestShrinkOfStuckThread calls Shrink while the communicator's thread is blocked in the library,
// in a group that waits for other ranks. Shrink must fail when the group's timeout or the context
// ends, or when the communicator is aborted or closed.
func TestShrinkOfStuckThread(t *testing.T) {
	for what, x := range map[string]struct {
		timeout, wait time.Duration
		end           func(c *collective.Communicator)
	}{
		"until a group's timeout": {timeout: 100 * time.Millisecond, wait: time.Minute},
		"until the context ends":  {wait: 100 * time.Millisecond},
		"until it is aborted":     {wait: time.Minute, end: func(c *collective.Communicator) { c.Abort(nil) }},
		"until it is closed":      {wait: time.Minute, end: func(c *collective.Communicator) { c.Close() }},
	} {
		t.Run(what, func(t *testing.T) {
			d := newSim(t, simdriver.Config{Devices: 3, LazyComms: true})
			g, comms := openCommunicators(t, d, 3, collective.Options{Timeout: x.timeout})
			c, b, s := comms[0], allocate(t, g.Devices()[0], 64), semaphores(t, 2)
			must(t, submitGroup(c, gpu.Order{Signal: pts(s[0], 1)}, sum(b)))
			must(t, submitGroup(c, gpu.Order{Signal: pts(s[1], 1)}, sum(b)))
			for d.Counters().Devices[0].Calls[simdriver.OpCollect] == 0 {
				runtime.Gosched()
			}
			if x.end != nil {
				time.AfterFunc(20*time.Millisecond, func() { x.end(c) })
			}
			if made, err := c.Shrink(in(t, x.wait), true, 1); err == nil || made != nil {
				t.Errorf("it was shrunk: %v", err)
			}
			for i, s := range s {
				hasFailed(t, fmt.Sprintf("group %d", i), s, collective.ErrAborted)
			}
			must(t, c.Close())
		})
	}
}

// TestShrinkRefused checks that a communicator fails and is aborted if the driver refuses
// ShrinkComm, or the stream of the new communicator.
func TestShrinkRefused(t *testing.T) {
	for what, f := range map[string]simdriver.Fault{
		"unsupported": {Op: simdriver.OpShrinkComm, Device: simdriver.AnyDevice, Err: driver.ErrUnsupported},
		"no stream":   {Op: simdriver.OpNewStream, Device: simdriver.AnyDevice},
	} {
		t.Run(what, func(t *testing.T) {
			d := newSim(t, simdriver.Config{Devices: 3})
			g, comms := openCommunicators(t, d, 3, collective.Options{})
			s := semaphores(t, 1)[0]
			must(t, submitGroup(comms[0], gpu.Order{Signal: pts(s, 1)}, sum(allocate(t, g.Devices()[0], 64))))
			fault := d.Inject(f)
			kind := f.Err
			if kind == nil {
				kind = simdriver.ErrInjected
			}
			if _, err := comms[0].Shrink(minute(t), true, 1); !errors.Is(err, kind) {
				t.Errorf("shrink: %v", err)
			}
			fault.Remove()
			hasFailed(t, "the group", s, collective.ErrAborted)
			if n := d.Counters().Devices[0].Calls[simdriver.OpAbortComm]; n == 0 {
				t.Error("the communicator was not aborted")
			}
			if _, err := comms[0].Shrink(minute(t), true, 1); !errors.Is(err, collective.ErrAborted) || !strings.Contains(err.Error(), "has failed already") {
				t.Errorf("shrink again: %v", err)
			}
			must(t, comms[0].Close())
		})
	}
}

// TestShrinkWithWorkUnderWay checks that two ranks can shrink a communicator with a group in
// flight, at the same time or one long after the other. The communicator of the later rank must not
// fail before that rank calls Shrink.
func TestShrinkWithWorkUnderWay(t *testing.T) {
	for _, inTurn := range []bool{false, true} {
		t.Run(fmt.Sprintf("in turn %v", inTurn), func(t *testing.T) {
			d := newSim(t, simdriver.Config{Devices: 3})
			g, comms := openCommunicators(t, d, 3, collective.Options{Timeout: time.Minute})
			survivors, rest := []*collective.Communicator{comms[0], comms[2]}, make([]*collective.Communicator, 2)
			bufs := []*gpu.Buffer{allocate(t, g.Devices()[0], 64), allocate(t, g.Devices()[2], 64)}
			under := reduceAll(t, survivors, bufs)
			var wg sync.WaitGroup
			for i, c := range survivors {
				if i > 0 && inTurn {
					eventually(t, "the first one shrinks", func() bool { return calls(d, 0, simdriver.OpShrinkComm) > 0 })
					looks := calls(d, 2, simdriver.OpCommError)
					eventually(t, "the other is looked at", func() bool { return calls(d, 2, simdriver.OpCommError) > looks+1 || c.Err() != nil })
				}
				wg.Go(func() {
					var err error
					if rest[i], err = c.Shrink(minute(t), true, 1); err != nil {
						t.Error(err)
					}
				})
			}
			wg.Wait()
			for _, s := range under {
				hasFailed(t, "the group", s, collective.ErrAborted)
			}
			if t.Failed() {
				return
			}
			for _, s := range reduceAll(t, rest, bufs) {
				must(t, s.Wait(minute(t), 1))
			}
		})
	}
}

// TestForeignDeadline checks that a communicator fails if a group's context or timeout ends while
// the group waits for a stalled device of another driver.
func TestForeignDeadline(t *testing.T) {
	for what, limit := range map[string]time.Duration{"a context": 0, "a timeout": 300 * time.Millisecond} {
		t.Run(what, func(t *testing.T) {
			other := newSim(t, simdriver.Config{})
			g, comms := openCommunicators(t, newSim(t, simdriver.Config{}), 1, collective.Options{Timeout: limit})
			dev := openDevice(t, other, 0, gpu.Options{})
			must(t, other.StallDevice(0))
			at, s := semaphores(t, 1)[0], semaphores(t, 2)
			must(t, dev.Queue(0).Submit(gpu.Order{Signal: pts(at, 1)}, gpu.Fill(allocate(t, dev, 64).All(), []byte{1})))
			b := allocate(t, g.Devices()[0], 64)
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			must(t, comms[0].Device().Queue(0).Submit(order(at, 1, s[0], 1), comms[0].GroupContext(ctx, sum(b))))
			must(t, submitGroup(comms[0], gpu.Order{Signal: pts(s[1], 1)}, sum(b)))
			why := context.DeadlineExceeded
			if limit == 0 {
				cancel()
				why = context.Canceled
			}
			hasFailed(t, "the group", s[0], why)
			hasFailed(t, "the one behind it", s[1], why)
			must(t, other.ResumeDevice(0))
		})
	}
}

// A stubbornDriver is a simulated driver that calls the functions below, if they are set. The
// functions collect, abort, destroy, split and record replace the driver's calls.
type stubbornDriver struct {
	*simdriver.Driver
	collect func(v *stubbornDevice, s driver.Stream, c driver.Comm, ops []driver.CommOp) error
	abort   func(v *stubbornDevice, c driver.Comm) error
	destroy func(v *stubbornDevice, c driver.Comm) error
	split   func(v *stubbornDevice, c driver.Comm, color, key int) (driver.Comm, error)
	record  func(v *stubbornDevice, e driver.Event, s driver.Stream) error
	unbind  func()                  // called before the driver's Unbind
	stream  func()                  // called after the driver's NewStream
	rank    func(v *stubbornDevice) // called after the driver's CommRank
	told    func() error            // called after the driver's RegisterComm succeeds; may return an error
	free    func()                  // called before the driver's Free

	mu   sync.Mutex
	late []string // the calls that stubbornDevice.note has recorded
}

type stubbornDevice struct {
	driver.Device
	driver.Comms
	d      *stubbornDriver
	closed atomic.Bool
}

func (d *stubbornDriver) Open(i int) (driver.Device, error) {
	v, err := d.Driver.Open(i)
	if err != nil {
		return nil, err
	}
	return &stubbornDevice{Device: v, Comms: v.(driver.Comms), d: d}, nil
}

// note records a call if the device is closed.
func (v *stubbornDevice) note(call string) {
	if v.closed.Load() {
		v.d.mu.Lock()
		defer v.d.mu.Unlock()
		v.d.late = append(v.d.late, call)
	}
}

// notLate checks that stubbornDevice.note has recorded no call.
func (d *stubbornDriver) notLate(t *testing.T) {
	t.Helper()
	d.mu.Lock()
	defer d.mu.Unlock()
	if len(d.late) > 0 {
		t.Errorf("calls of a device that was closed: %v", d.late)
	}
}

func (v *stubbornDevice) Close() error {
	defer v.closed.Store(true)
	return v.Device.Close()
}

// Caps returns only the features that the wrapper has.
func (v *stubbornDevice) Caps() driver.Caps {
	return driver.Caps{Comms: true, RerecordEvents: v.Device.Caps().RerecordEvents}
}

func (v *stubbornDevice) Collect(s driver.Stream, c driver.Comm, ops []driver.CommOp) error {
	if v.d.collect != nil {
		return v.d.collect(v, s, c, ops)
	}
	return v.Comms.Collect(s, c, ops)
}

func (v *stubbornDevice) AbortComm(c driver.Comm) error {
	if v.d.abort != nil {
		return v.d.abort(v, c)
	}
	return v.Comms.AbortComm(c)
}

func (v *stubbornDevice) DestroyComm(c driver.Comm) error {
	v.note("DestroyComm")
	if v.d.destroy != nil {
		return v.d.destroy(v, c)
	}
	return v.Comms.DestroyComm(c)
}

func (v *stubbornDevice) NewStream() (driver.Stream, error) {
	s, err := v.Device.NewStream()
	if v.d.stream != nil {
		v.d.stream()
	}
	return s, err
}

func (v *stubbornDevice) CommRank(c driver.Comm) (rank, count int, err error) {
	rank, count, err = v.Comms.CommRank(c)
	if v.d.rank != nil {
		v.d.rank(v)
	}
	return rank, count, err
}

func (v *stubbornDevice) Record(e driver.Event, s driver.Stream) error {
	v.note("Record")
	if v.d.record != nil {
		return v.d.record(v, e, s)
	}
	return v.Device.Record(e, s)
}

func (v *stubbornDevice) Query(e driver.Event) (bool, error) {
	v.note("Query")
	return v.Device.Query(e)
}

func (v *stubbornDevice) RegisterComm(c driver.Comm, p driver.Ptr, size uint64) (driver.CommMemory, error) {
	m, err := v.Comms.RegisterComm(c, p, size)
	if err == nil && v.d.told != nil {
		err = v.d.told()
	}
	return m, err
}

func (v *stubbornDevice) Unbind() error {
	v.note("Unbind")
	if v.d.unbind != nil {
		v.d.unbind()
	}
	return v.Device.Unbind()
}

func (v *stubbornDevice) Free(m driver.Mem) error {
	v.note("Free")
	if v.d.free != nil {
		v.d.free()
	}
	return v.Device.Free(m)
}

func (v *stubbornDevice) Unload(m driver.Module) error {
	v.note("Unload")
	return v.Device.Unload(m)
}

func (v *stubbornDevice) DestroyEvent(e driver.Event) error {
	v.note("DestroyEvent")
	return v.Device.DestroyEvent(e)
}

func (v *stubbornDevice) SplitComm(c driver.Comm, color, key int) (driver.Comm, error) {
	if v.d.split != nil {
		return v.d.split(v, c, color, key)
	}
	return v.Comms.SplitComm(c, color, key)
}

// TestThreadNeverReturns closes a communicator that the library refuses to abort, while the
// communicator's thread is blocked in the library. When Close returns, all submitted groups must
// have failed. When the library returns later, the thread must not call the driver of a closed
// device.
func TestThreadNeverReturns(t *testing.T) {
	for _, late := range []bool{false, true} {
		t.Run(fmt.Sprintf("after the device is closed %v", late), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { neverReturns(t, late) })
		})
	}
}

func neverReturns(t *testing.T, late bool) {
	stuck, inside := make(chan struct{}), make(chan struct{}, 1)
	unwilling := errors.New("the library does not want to")
	d := &stubbornDriver{Driver: simdriver.New(simdriver.Config{})}
	d.collect = func(v *stubbornDevice, s driver.Stream, c driver.Comm, ops []driver.CommOp) error {
		inside <- struct{}{}
		<-stuck
		return errors.New("much too late")
	}
	d.abort = func(*stubbornDevice, driver.Comm) error { return unwilling }
	g, comms := newCommunicators(t, d, gpu.Options{}, collective.Options{})
	c, b, s := comms[0], allocate(t, g.Devices()[0], 64), semaphores(t, 4)
	for _, s := range s[:2] {
		must(t, submitGroup(c, gpu.Order{Signal: pts(s, 1)}, sum(b)))
	}
	must(t, submitGroup(c, order(s[3], 1, s[2], 1), sum(b)))
	<-inside
	mem, err := g.Devices()[0].Alloc(gpu.CommMem, 64)
	must(t, err)
	registered := make(chan error)
	go func() {
		_, err := c.Register(mem)
		registered <- err
	}()
	c.Abort(nil)
	if err := c.Close(); !errors.Is(err, unwilling) || !errors.Is(err, gpu.ErrClosed) {
		t.Errorf("close: %v", err)
	}
	for i, s := range s[:3] {
		if err := s.Wait(in(t, time.Second), 1); !errors.Is(err, collective.ErrAborted) {
			t.Errorf("group %d: %v", i, err)
		}
	}
	if err := <-registered; err == nil {
		t.Error("memory was registered")
	}
	if !late {
		close(stuck)
		synctest.Wait()
	}
	if err := g.Close(); late && !errors.Is(err, unwilling) {
		t.Errorf("the group's close: %v", err)
	}
	if late {
		close(stuck)
		synctest.Wait()
	}
	d.notLate(t)
}

// TestReturnsAndStays closes a communicator whose thread is blocked in the library. Then the
// library returns, and the device is closed while the thread destroys the communicator. Either
// DestroyComm takes a minute, or the communicator's stream has work that never ends. No goroutine
// may call the driver of the closed device.
func TestReturnsAndStays(t *testing.T) {
	for _, kept := range []bool{true, false} {
		t.Run(fmt.Sprintf("the library keeps the thread %v", kept), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				stuck := make(chan struct{})
				d := &stubbornDriver{Driver: simdriver.New(simdriver.Config{})} // newSim would report a leak: the stream does not end
				d.collect = func(v *stubbornDevice, s driver.Stream, c driver.Comm, ops []driver.CommOp) error {
					<-stuck
					if kept {
						return errors.New("much too late")
					}
					return v.Fill(s, ops[0].Dst, 0, 1, 64)
				}
				d.destroy = func(v *stubbornDevice, c driver.Comm) error {
					if kept {
						time.Sleep(time.Minute)
					}
					return v.Comms.DestroyComm(c)
				}
				g, comms := newCommunicators(t, d, gpu.Options{Queues: 1}, collective.Options{})
				dev, s := g.Devices()[0], semaphores(t, 1)[0]
				streams := d.Streams(0)
				if !kept {
					must(t, d.StallStream(streams[len(streams)-1]))
				}
				must(t, comms[0].Device().Queue(0).Submit(gpu.Order{Signal: pts(s, 1)}, comms[0].GroupContext(t.Context(), sum(allocate(t, dev, 64)))))
				synctest.Wait()
				if err := comms[0].Shutdown(in(t, time.Second)); !errors.Is(err, gpu.ErrClosed) {
					t.Errorf("close: %v", err)
				}
				close(stuck)
				time.Sleep(650 * time.Millisecond)
				err := dev.Shutdown(in(t, 100*time.Millisecond))
				if late, ok := errors.AsType[*gpu.CloseError](err); !ok || (late.Calls > 0) != kept {
					t.Errorf("the device's close: %v", err)
				}
				time.Sleep(5 * time.Minute)
				d.notLate(t)
				g.Close()
				d.Kill() // ends the stream, which may have leaked
			})
		})
	}
}

// TestReclaimedLate closes a device while the driver blocks the reclaimer in Free, as drivers may
// do until all work has ended. When the driver returns, the reclaimer must not call the closed
// device.
func TestReclaimedLate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := &stubbornDriver{Driver: simdriver.New(simdriver.Config{Kernels: simKernels})} // newSim would report the memory as a leak
		var first atomic.Bool
		d.free = func() {
			if first.CompareAndSwap(false, true) {
				time.Sleep(time.Minute)
			}
		}
		dev := openDevice(t, d, 0, gpu.Options{})
		b, other := allocate(t, dev, 64), allocate(t, dev, 64)
		x, err := dev.Load(simdriver.Image("nothing"))
		must(t, err)
		e, err := interop.NewEvent(dev)
		must(t, err)
		must(t, errors.Join(b.Close(), other.Close(), x.Close(), e.Close()))
		synctest.Wait()
		if err := dev.Shutdown(in(t, 100*time.Millisecond)); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("close: %v", err)
		}
		time.Sleep(5 * time.Minute)
		d.notLate(t)
	})
}

// TestAbortNeverReturns closes a device while the library takes long to abort the communicator. In
// some cases the communicator's thread is in a library call, too. Shutdown must return within 16
// seconds, the group must have failed, and no goroutine may call the driver of the closed device.
func TestAbortNeverReturns(t *testing.T) {
	for _, how := range []struct {
		what          string
		abort, thread time.Duration // durations of the abort and of the thread's library call
	}{
		{"soon", time.Second, 2 * time.Second},
		{"late", 13 * time.Second, 0},
		{"too late", time.Minute, 0},
		{"too late, with the thread", time.Minute, 2 * time.Minute},
		{"too late, without the thread", time.Minute, 3 * time.Second},
	} {
		t.Run(how.what, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				d := &stubbornDriver{Driver: simdriver.New(simdriver.Config{Devices: 2})}
				defer d.Kill() // ends the streams, which may leak
				d.abort = func(v *stubbornDevice, c driver.Comm) error {
					time.Sleep(how.abort)
					return v.Comms.AbortComm(c)
				}
				var once sync.Once
				d.collect = func(v *stubbornDevice, s driver.Stream, c driver.Comm, ops []driver.CommOp) error {
					once.Do(func() { time.Sleep(how.thread) })
					return v.Comms.Collect(s, c, ops)
				}
				g, comms := newCommunicators(t, d, gpu.Options{}, collective.Options{})
				dev, s := g.Devices()[0], semaphores(t, 1)[0]
				must(t, comms[0].Device().Queue(0).Submit(gpu.Order{Signal: pts(s, 1)}, comms[0].GroupContext(t.Context(), sum(allocate(t, dev, 64)))))
				synctest.Wait()
				start := time.Now()
				err := dev.Shutdown(in(t, time.Second))
				if took := time.Since(start); took > 16*time.Second || !errors.Is(err, context.DeadlineExceeded) || strings.Contains(err.Error(), "does not return") {
					t.Errorf("after %v: %v", took, err)
				}
				if err := s.Wait(in(t, time.Second), 1); !errors.Is(err, gpu.ErrClosed) {
					t.Errorf("the group: %v", err)
				}
				time.Sleep(5 * time.Minute)
				d.notLate(t)
				g.Close()
			})
		})
	}
}

// TestSplitWhileAborting checks that Split returns within 15 seconds if its context ends and the
// library finishes neither the split nor the abort.
func TestSplitWhileAborting(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := &stubbornDriver{Driver: simdriver.New(simdriver.Config{Devices: 2})}
		d.abort = func(v *stubbornDevice, c driver.Comm) error {
			time.Sleep(time.Minute)
			return v.Comms.AbortComm(c)
		}
		d.split = func(v *stubbornDevice, c driver.Comm, color, key int) (driver.Comm, error) {
			time.Sleep(2 * time.Minute)
			return 0, errors.New("much too late")
		}
		g, comms := newCommunicators(t, d, gpu.Options{}, collective.Options{})
		start := time.Now()
		_, err := comms[0].Split(in(t, time.Second), 0, 0)
		if took := time.Since(start); took > 15*time.Second || !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("after %v: %v", took, err)
		}
		time.Sleep(5 * time.Minute)
		g.Close()
		d.notLate(t)
	})
}

// TestAbortAfterDestroy lets the context of Shutdown end while the library destroys the
// communicator. The runtime then aborts the communicator. The abort fails, because the communicator
// is gone by then. Shutdown must not return the error of the abort.
func TestAbortAfterDestroy(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		aborting, destroyed := make(chan struct{}), make(chan struct{})
		d := &stubbornDriver{Driver: newSim(t, simdriver.Config{})}
		d.destroy = func(v *stubbornDevice, c driver.Comm) error {
			<-aborting
			defer close(destroyed)
			return v.Comms.DestroyComm(c)
		}
		late := make(chan error, 1)
		d.abort = func(v *stubbornDevice, c driver.Comm) error {
			close(aborting)
			<-destroyed
			err := v.Comms.AbortComm(c)
			late <- err
			return err
		}
		_, comms := openCommunicators(t, d, 1, collective.Options{})
		err := comms[0].Shutdown(in(t, time.Second))
		if refused := <-late; refused == nil || errors.Is(err, refused) || !errors.Is(err, context.DeadlineExceeded) || !errors.Is(err, gpu.ErrClosed) {
			t.Errorf("the abort: %v; the shutdown: %v", refused, err)
		}
	})
}

// TestRefusedOperation checks that if the library lacks an operation, the group and the work that
// waits for the group fail, and the communicator stays usable.
func TestRefusedOperation(t *testing.T) {
	d := newSim(t, simdriver.Config{Devices: 2})
	g, comms := openCommunicators(t, d, 2, collective.Options{Timeout: 10 * time.Second})
	bufs := make([]*gpu.Buffer, 2)
	for i := range bufs {
		bufs[i] = allocate(t, g.Devices()[i], 64)
	}
	refuse := func() (gone func()) {
		f := d.Inject(simdriver.Fault{Op: simdriver.OpCollect, Device: simdriver.AnyDevice, Err: driver.ErrUnsupported})
		return f.Remove
	}
	unsupported := func(what string, s *gpu.Semaphore) {
		t.Helper()
		if err := s.Wait(minute(t), 1); !errors.Is(err, driver.ErrUnsupported) {
			t.Errorf("%s: %v", what, err)
		}
	}
	sound := func(what string) {
		t.Helper()
		for i, s := range reduceAll(t, comms, bufs) {
			if err := s.Wait(minute(t), 1); err != nil || comms[i].Err() != nil {
				t.Errorf("after %s: rank %d: %v, %v", what, i, err, comms[i].Err())
			}
		}
	}
	gone := refuse()
	for i, s := range reduceAll(t, comms, bufs) {
		after, behind := semaphores(t, 1)[0], semaphores(t, 1)[0]
		must(t, g.Devices()[i].Queue(0).Submit(order(s, 1, after, 1), gpu.Fill(bufs[i].All(), []byte{1})))
		must(t, submitGroup(comms[i], order(after, 1, behind, 1), sum(bufs[i])))
		unsupported("the group", s)
		unsupported("a fill behind it", after)
		unsupported("a group behind that", behind)
	}
	// The error is the same if the stream has already got a part of the group: here the SendReceive,
	// which only fills its destination with zeros.
	for i, c := range comms {
		s := semaphores(t, 1)[0]
		must(t, submitGroup(c, gpu.Order{Signal: pts(s, 1)}, collective.SendReceive(bufs[i].Range(0, 32), gpu.Range{}, collective.Uint8, -1, -1), collective.AllGather(bufs[i].All(), bufs[i].Range(32, 32), collective.Uint8)))
		unsupported("zeros and a group", s)
	}
	gone()
	sound("a group")

	gone = refuse()
	for i, c := range comms {
		cb := commandBuffer(t, g.Devices()[i], gpu.AutoMode)
		recorded(t)(cb.Add(c.Group(sum(bufs[i]))))
		recorded(t)(cb.Add(gpu.Copy(bufs[i].Range(0, 4), bufs[i].Range(8, 4))))
		recorded(t)(cb.Add(c.Group(sum(bufs[i]))))
		must(t, cb.End())
		s := semaphores(t, 1)[0]
		must(t, g.Devices()[i].Queue(0).Submit(gpu.Order{Signal: pts(s, 1)}, gpu.Execute(cb)))
		unsupported("an execution", s)
		must(t, cb.Close())
	}
	gone()
	sound("an execution")
}

// An oldDevice has an old communicator library, which lacks averages and shrinking.
type oldDevice struct{ *stubbornDevice }

func (v oldDevice) CheckOp(_ driver.Comm, o driver.CommOp) error {
	if o.Kind.Reduces() && o.Reduction == driver.Avg {
		return fmt.Errorf("no averages: %w", driver.ErrUnsupported)
	}
	return nil
}

func (v oldDevice) CheckShrink(driver.Comm) error { return driver.ErrUnsupported }

type oldDriver struct{ *stubbornDriver }

func (d oldDriver) Open(i int) (driver.Device, error) {
	v, err := d.stubbornDriver.Open(i)
	if err != nil {
		return nil, err
	}
	return oldDevice{v.(*stubbornDevice)}, nil
}

// TestOldLibrary checks that submitting an average, recording one, and shrinking return
// ErrUnsupported if the driver reports beforehand that the library lacks them. The communicator
// must stay usable.
func TestOldLibrary(t *testing.T) {
	g, comms := openCommunicators(t, oldDriver{&stubbornDriver{Driver: newSim(t, simdriver.Config{Devices: 2})}}, 2, collective.Options{})
	b := []*gpu.Buffer{allocate(t, g.Devices()[0], 64), allocate(t, g.Devices()[1], 64)}
	s := semaphores(t, 1)[0]
	average := collective.AllReduce(b[0].All(), b[0].All(), collective.Float32, collective.Avg())
	if err := submitGroup(comms[0], gpu.Order{Signal: pts(s, 1)}, sum(b[0]), average); !errors.Is(err, driver.ErrUnsupported) {
		t.Errorf("submitted: %v", err)
	}
	cb := commandBuffer(t, g.Devices()[0], gpu.AutoMode)
	if _, err := cb.Add(comms[0].Group(average)); !errors.Is(err, driver.ErrUnsupported) {
		t.Errorf("recorded: %v", err)
	}
	must(t, cb.Close())
	for _, abort := range []bool{false, true} {
		if _, err := comms[0].Shrink(minute(t), abort, 1); !errors.Is(err, driver.ErrUnsupported) {
			t.Errorf("shrunk with abort %v: %v", abort, err)
		}
	}
	for i, s := range reduceAll(t, comms, b) {
		if err := s.Wait(minute(t), 1); err != nil || comms[i].Err() != nil {
			t.Errorf("rank %d: %v, %v", i, err, comms[i].Err())
		}
	}
}

// TestFailedWaitOfAnotherKind checks that a communicator fails if a group waits for a semaphore
// that the program has failed with ErrUnsupported. The other ranks do not know of that failure.
func TestFailedWaitOfAnotherKind(t *testing.T) {
	d := newSim(t, simdriver.Config{})
	g, comms := openCommunicators(t, d, 1, collective.Options{})
	b, s := allocate(t, g.Devices()[0], 64), semaphores(t, 2)
	s[0].Fail(driver.ErrUnsupported)
	must(t, submitGroup(comms[0], order(s[0], 1, s[1], 1), sum(b)))
	if err := s[1].Wait(minute(t), 1); !errors.Is(err, driver.ErrUnsupported) {
		t.Error(err)
	}
	if err := comms[0].Err(); !errors.Is(err, driver.ErrUnsupported) {
		t.Errorf("the communicator: %v", err)
	}
}

// TestEmptyCollective checks that groups without operations or without bytes, recorded between a
// send and a receive, do not separate the send from the receive. If the two were in separate
// groups, each rank would wait for the other.
func TestEmptyCollective(t *testing.T) {
	d := newSim(t, simdriver.Config{Devices: 2})
	g, comms := openCommunicators(t, d, 2, collective.Options{Timeout: 5 * time.Second})
	for what, empty := range map[string][]collective.Operation{"no operations": nil, "no peers and no bytes": {collective.SendReceive(gpu.Range{}, gpu.Range{}, collective.Uint8, -1, -1)}} {
		for _, nested := range []bool{false, true} {
			done := semaphores(t, 2)
			for i, c := range comms {
				dev := g.Devices()[i]
				b := allocate(t, dev, 64)
				if len(empty) > 0 {
					empty[0] = collective.SendReceive(b.Range(0, 0), b.Range(0, 0), collective.Uint8, -1, -1)
				}
				cb, child := commandBuffer(t, dev, gpu.AutoMode), commandBuffer(t, dev, gpu.AutoMode)
				recorded(t)(child.Add(c.Group(empty...)))
				must(t, child.End())
				recorded(t)(cb.Add(c.Group(empty...)))
				recorded(t)(cb.Add(c.Group(collective.Send(b.Range(0, 32), collective.Uint8, 1-i))))
				if nested {
					recorded(t)(cb.Add(gpu.Execute(child)))
				} else {
					recorded(t)(cb.Add(c.Group(empty...)))
				}
				recorded(t)(cb.Add(c.Group(collective.Receive(b.Range(32, 32), collective.Uint8, 1-i))))
				recorded(t)(cb.Add(c.Group(empty...)))
				must(t, cb.End())
				must(t, dev.Queue(0).Submit(gpu.Order{Signal: pts(done[i], 1)}, gpu.Execute(cb)))
				must(t, cb.Close())
				alone := semaphores(t, 1)[0]
				must(t, dev.Queue(0).Submit(gpu.Order{Signal: pts(alone, 1)}, gpu.Execute(child)))
				must(t, alone.Wait(minute(t), 1))
				must(t, child.Close())
			}
			for i, s := range done {
				if err := s.Wait(minute(t), 1); err != nil {
					t.Fatalf("%s, nested %v, rank %d: %v", what, nested, i, err)
				}
			}
		}
	}
}

// TestSplitInVain checks that Split and Shrink fail, and that the communicator fails, if the
// context ends before the other ranks have made the same call.
func TestSplitInVain(t *testing.T) {
	for what, split := range map[string]func(ctx context.Context, c *collective.Communicator) (*collective.Communicator, error){
		"split": func(ctx context.Context, c *collective.Communicator) (*collective.Communicator, error) {
			return c.Split(ctx, 0, 0)
		},
		"shrink": func(ctx context.Context, c *collective.Communicator) (*collective.Communicator, error) {
			return c.Shrink(ctx, false, 2)
		},
	} {
		t.Run(what, func(t *testing.T) {
			d := newSim(t, simdriver.Config{Devices: 3})
			_, comms := openCommunicators(t, d, 3, collective.Options{})
			if part, err := split(in(t, 200*time.Millisecond), comms[0]); part != nil || !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("%v, %v", part, err)
			}
			if err := comms[0].Err(); !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("the communicator: %v", err)
			}
			if _, err := split(in(t, time.Minute), comms[1]); !errors.Is(err, simdriver.ErrRankGone) {
				t.Errorf("another rank's: %v", err)
			}
			for _, c := range comms {
				must(t, c.Close())
			}
		})
	}
}

// TestSplitGivenUp checks that Split returns the context's error if the context ends during the
// library's call, even if the library makes the new communicator.
func TestSplitGivenUp(t *testing.T) {
	for _, begun := range []bool{false, true} {
		t.Run(fmt.Sprintf("the library has begun %v", begun), func(t *testing.T) {
			d := &stubbornDriver{Driver: newSim(t, simdriver.Config{})}
			_, comms := openCommunicators(t, d, 1, collective.Options{})
			ctx, cancel := context.WithCancel(t.Context())
			aborting := make(chan struct{})
			d.split = func(v *stubbornDevice, c driver.Comm, color, key int) (driver.Comm, error) {
				cancel()
				if !begun {
					<-aborting
					v.Comms.AbortComm(c)
				}
				part, err := v.Comms.SplitComm(c, color, key)
				<-aborting
				return part, err
			}
			var once sync.Once
			d.abort = func(v *stubbornDevice, c driver.Comm) error {
				once.Do(func() { close(aborting) })
				return v.Comms.AbortComm(c)
			}
			part, err := comms[0].Split(ctx, 0, 0)
			if part != nil || !errors.Is(err, context.Canceled) {
				t.Errorf("%v, %v", part, err)
			}
			if err := comms[0].Err(); !errors.Is(err, context.Canceled) {
				t.Errorf("the communicator: %v", err)
			}
			must(t, comms[0].Close())
		})
	}
}

// TestAbortWhileSplit checks that a Split that waits for another rank fails with the abort's error
// if the communicator is aborted.
func TestAbortWhileSplit(t *testing.T) {
	d := newSim(t, simdriver.Config{Devices: 2})
	_, comms := openCommunicators(t, d, 2, collective.Options{})
	why, failed := errors.New("no more parts"), make(chan error)
	go func() {
		_, err := comms[0].Split(minute(t), 0, 0)
		failed <- err
	}()
	eventually(t, "the split has begun", func() bool { return calls(d, 0, simdriver.OpSplitComm) > 0 })
	comms[0].Abort(why)
	if err := <-failed; !errors.Is(err, why) || !errors.Is(err, collective.ErrAborted) {
		t.Errorf("the split: %v", err)
	}
}

// TestGroupFails tests the runtime's part of B113: one thread passes all groups to the library. If
// a group fails, the later groups fail, and the library does not get them.
func TestGroupFails(t *testing.T) {
	t.Run("B113 groups come from one thread, and a failed group fails the later ones", func(t *testing.T) {
		broken, why := 3, errors.New("broken in the midst of a group")
		var mu sync.Mutex
		threads, calls := map[int]bool{}, 0
		d := &stubbornDriver{Driver: newSim(t, simdriver.Config{})}
		d.collect = func(v *stubbornDevice, s driver.Stream, c driver.Comm, ops []driver.CommOp) error {
			mu.Lock()
			defer mu.Unlock()
			threads[thread()] = true
			if calls++; calls == broken {
				v.Comms.Collect(s, c, ops[:1]) // a part of the group enters the stream before the call fails
				return why
			}
			return v.Comms.Collect(s, c, ops)
		}
		g, comms := openCommunicators(t, d, 1, collective.Options{})
		b, gate, done := allocate(t, g.Devices()[0], 64), semaphores(t, 1)[0], semaphores(t, 6)
		var wg sync.WaitGroup
		for i, s := range done {
			wait := pts(gate, uint64(i/2+1)) // the gate releases two groups at a time
			must(t, submitGroup(comms[0], gpu.Order{Wait: wait, Signal: pts(s, 1)}, sum(b), sum(b)))
		}
		for i := range 3 {
			wg.Go(func() { // release them from different threads
				runtime.LockOSThread()
				defer runtime.UnlockOSThread()
				if i > 0 {
					done[2*i-1].Wait(minute(t), 1)
				}
				gate.Signal(uint64(i + 1))
			})
		}
		wg.Wait()
		for i, s := range done {
			err := s.Wait(minute(t), 1)
			if i < broken-1 && err != nil || i >= broken-1 && !errors.Is(err, why) {
				t.Errorf("group %d: %v", i, err)
			}
		}
		if err := comms[0].Err(); !errors.Is(err, why) {
			t.Errorf("the communicator: %v", err)
		}
		must(t, comms[0].Close())
		mu.Lock()
		defer mu.Unlock()
		if len(threads) != 1 || calls != broken {
			t.Errorf("%d calls from %d threads", calls, len(threads))
		}
	})
}

// TestAbortUnbound checks that Abort works if the driver cannot bind the thread that would abort
// the communicator. In that case the communicator's own thread aborts it. The device must stay
// usable.
func TestAbortUnbound(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newSim(t, simdriver.Config{Devices: 2})
		g, comms := openCommunicators(t, d, 2, collective.Options{})
		dev, s := g.Devices()[0], semaphores(t, 1)[0]
		must(t, comms[0].Device().Queue(0).Submit(gpu.Order{Signal: pts(s, 1)}, comms[0].GroupContext(t.Context(), sum(allocate(t, dev, 64)))))
		inFlight(t, dev, 1)
		synctest.Wait()
		d.Inject(simdriver.Fault{Op: simdriver.OpBind, N: 1})
		comms[0].Abort(nil)
		hasFailed(t, "the group", s, collective.ErrAborted)
		must(t, comms[0].Close())
		must(t, dev.Queue(0).Flush())
	})
}

// TestLostUnderCommunicator checks that a communicator with a group in flight fails if its device
// is lost, and that the communicator is aborted once.
func TestLostUnderCommunicator(t *testing.T) {
	for _, wait := range []bool{false, true} {
		t.Run(fmt.Sprintf("closed when it has failed %v", wait), func(t *testing.T) {
			d := newSim(t, simdriver.Config{Devices: 2})
			g, comms := newCommunicators(t, d, gpu.Options{Queues: 1}, collective.Options{})
			dev, s, b := g.Devices()[0], semaphores(t, 2), allocate(t, g.Devices()[0], 1<<20)
			must(t, comms[0].Device().Queue(0).Submit(gpu.Order{Signal: pts(s[0], 1)}, comms[0].GroupContext(t.Context(), sum(b))))
			inFlight(t, dev, 1)
			fault := d.Inject(simdriver.Fault{Op: simdriver.OpRecord})
			// The runtime cannot record an event behind this operation, so the device is lost.
			must(t, dev.Queue(0).Submit(gpu.Order{Signal: pts(s[1], 1)}, gpu.Fill(b.All(), []byte{1})))
			fault.Remove()
			for i, s := range s {
				if err := s.Wait(minute(t), 1); !errors.Is(err, simdriver.ErrInjected) {
					t.Errorf("semaphore %d: %v", i, err)
				}
			}
			if wait {
				eventually(t, "the communicator fails", func() bool { return errors.Is(comms[0].Err(), driver.ErrLost) }, dev)
			}
			must(t, comms[0].Close())
			if n := calls(d, 0, simdriver.OpAbortComm); n != 1 {
				t.Errorf("the communicator was aborted %d times", n)
			}
			g.Close() // returns the loss of the device
		})
	}
}

// TestAbortWithoutEnd checks that no call hangs and the device is lost if the stream of an aborted
// communicator does not end.
func TestAbortWithoutEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := simdriver.New(simdriver.Config{}) // newSim would report a leak: the stream does not end
		g, comms := newCommunicators(t, d, gpu.Options{Queues: 1}, collective.Options{})
		dev, s := g.Devices()[0], semaphores(t, 3)
		q, streams, x := dev.Queue(0), d.Streams(0), allocate(t, dev, 64)
		must(t, d.StallStream(streams[len(streams)-1]))
		must(t, comms[0].Device().Queue(0).Submit(gpu.Order{Signal: pts(s[0], 1)}, comms[0].GroupContext(t.Context(), collective.SendReceive(x.All(), x.All(), collective.Float32, -1, -1))))
		synctest.Wait()
		must(t, q.Submit(order(s[0], 1, s[1], 1), gpu.Fill(x.All(), []byte{1})))
		comms[0].Abort(nil)
		if err := s[0].Wait(t.Context(), 1); !errors.Is(err, collective.ErrAborted) {
			t.Errorf("the group: %v", err)
		}
		if err := s[1].Wait(t.Context(), 1); !errors.Is(err, driver.ErrLost) || !strings.Contains(err.Error(), "its stream does not end") {
			t.Errorf("what comes after it: %v", err)
		}
		if err := q.Submit(gpu.Order{Signal: pts(s[2], 1)}, gpu.Fill(x.All(), []byte{1})); !errors.Is(err, driver.ErrLost) {
			t.Errorf("what comes later: %v", err)
		}
		comms[0].Close()
		must(t, d.ResumeStream(streams[len(streams)-1]))
		g.Close() // returns the loss of the device
	})
}

// TestAbortWithGroupInHand aborts a communicator while its thread passes a group to the library.
// The group gets into the stream six seconds later, and never ends there. The device must be lost
// about five seconds after that.
func TestAbortWithGroupInHand(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := &stubbornDriver{Driver: simdriver.New(simdriver.Config{})} // newSim would report a leak: the stream does not end
		d.collect = func(v *stubbornDevice, s driver.Stream, c driver.Comm, ops []driver.CommOp) error {
			time.Sleep(6 * time.Second)
			return v.Fill(s, ops[0].Dst, 0, 1, 64)
		}
		g, comms := newCommunicators(t, d, gpu.Options{Queues: 1}, collective.Options{})
		dev, s := g.Devices()[0], semaphores(t, 1)[0]
		streams, x := d.Streams(0), allocate(t, dev, 64)
		must(t, d.StallStream(streams[len(streams)-1]))
		must(t, comms[0].Device().Queue(0).Submit(gpu.Order{Signal: pts(s, 1)}, comms[0].GroupContext(t.Context(), sum(x))))
		synctest.Wait()
		comms[0].Abort(nil)
		hasFailed(t, "the group", s, collective.ErrAborted)
		time.Sleep(4 * time.Second)
		must(t, dev.Queue(0).Flush())
		time.Sleep(2 * time.Second)
		if err := dev.Queue(0).Flush(); !errors.Is(err, driver.ErrLost) || !strings.Contains(err.Error(), "its stream does not end") {
			t.Errorf("the device: %v", err)
		}
		comms[0].Close()
		must(t, d.ResumeStream(streams[len(streams)-1]))
		g.Close() // returns the loss of the device
	})
}

// TestAbortedStreamTakesTime closes an aborted communicator whose stream takes 2.5 seconds to end,
// while a queue gets more and more work. The queue's work must complete meanwhile, and Close must
// return no error.
func TestAbortedStreamTakesTime(t *testing.T) {
	for kind, caps := range bothCaps() {
		t.Run(kind, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				d := newSim(t, simdriver.Config{Caps: &caps})
				g, comms := openCommunicators(t, d, 1, collective.Options{})
				dev, s := g.Devices()[0], semaphores(t, 2)
				streams, x := d.Streams(0), allocate(t, dev, 1<<20)
				slow := streams[len(streams)-1]
				must(t, d.StallStream(slow))
				must(t, comms[0].Device().Queue(0).Submit(gpu.Order{Signal: pts(s[0], 1)}, comms[0].GroupContext(t.Context(), collective.SendReceive(x.All(), x.All(), collective.Float32, -1, -1))))
				synctest.Wait()
				comms[0].Abort(nil)
				closed := make(chan error, 1)
				go func() { closed <- comms[0].Close() }()
				v := uint64(0)
				for n := range 25 {
					time.Sleep(100 * time.Millisecond)
					for range n { // each round submits more work, which needs new events
						v++
						must(t, dev.Queue(0).Submit(gpu.Order{Signal: pts(s[1], v)}, gpu.Fill(x.All(), []byte{1})))
					}
					must(t, s[1].Wait(minute(t), v))
				}
				must(t, d.ResumeStream(slow))
				must(t, <-closed)
			})
		})
	}
}

// TestShrunkWithoutEnd checks that Shrink with abort succeeds if the stream of the old communicator
// does not end. The device of that stream must be lost within six seconds.
func TestShrunkWithoutEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := simdriver.New(simdriver.Config{Devices: 3}) // newSim would report a leak: the stream does not end
		g, comms := newCommunicators(t, d, gpu.Options{Queues: 1}, collective.Options{})
		dev, s := g.Devices()[0], semaphores(t, 2)
		streams, x := d.Streams(0), allocate(t, dev, 64)
		must(t, d.StallStream(streams[len(streams)-1]))
		must(t, comms[0].Device().Queue(0).Submit(gpu.Order{Signal: pts(s[0], 1)}, comms[0].GroupContext(t.Context(), collective.SendReceive(x.All(), x.All(), collective.Float32, -1, -1))))
		synctest.Wait()
		must(t, dev.Queue(0).Submit(order(s[0], 1, s[1], 1), gpu.Fill(x.All(), []byte{1})))
		start := time.Now()
		shrunk := make(chan error, 2)
		for _, i := range []int{0, 2} {
			go func() {
				_, err := comms[i].Shrink(in(t, time.Minute), true, 1)
				shrunk <- err
			}()
		}
		must(t, errors.Join(<-shrunk, <-shrunk))
		hasFailed(t, "the group", s[0], collective.ErrAborted)
		if err := s[1].Wait(minute(t), 1); !errors.Is(err, driver.ErrLost) || !strings.Contains(err.Error(), "its stream does not end") {
			t.Errorf("what comes after it: %v", err)
		}
		if took := time.Since(start); took > 6*time.Second {
			t.Errorf("it took %v", took)
		}
		must(t, d.ResumeStream(streams[len(streams)-1]))
		g.Close() // returns the loss of the device
	})
}

// TestCloseLookingForEnd closes a device while its communicator's thread polls a stream that never
// ends. DestroyComm and Record are slow. The device must be lost, and no goroutine may call the
// driver of the closed device.
func TestCloseLookingForEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := &stubbornDriver{Driver: simdriver.New(simdriver.Config{})}
		defer d.Kill() // ends the streams, which may leak
		d.destroy = func(v *stubbornDevice, c driver.Comm) error {
			time.Sleep(1500 * time.Millisecond)
			d.record = func(v *stubbornDevice, e driver.Event, s driver.Stream) error { // from now on only the communicator's thread records events
				time.Sleep(5 * time.Second)
				return v.Device.Record(e, s)
			}
			return v.Comms.DestroyComm(c)
		}
		g, comms := newCommunicators(t, d, gpu.Options{Queues: 1}, collective.Options{})
		dev, s := g.Devices()[0], semaphores(t, 1)[0]
		streams, x := d.Streams(0), allocate(t, dev, 64)
		must(t, d.StallStream(streams[len(streams)-1]))
		must(t, comms[0].Device().Queue(0).Submit(gpu.Order{Signal: pts(s, 1)}, comms[0].GroupContext(t.Context(), collective.SendReceive(x.All(), x.All(), collective.Float32, -1, -1))))
		synctest.Wait()
		comms[0].Abort(nil)
		start := time.Now()
		err := dev.Shutdown(in(t, 100*time.Millisecond))
		if took := time.Since(start); took > 15*time.Second || !errors.Is(err, driver.ErrLost) || strings.Contains(err.Error(), "the library did not return") {
			t.Errorf("after %v: %v", took, err)
		}
		time.Sleep(time.Minute)
		d.notLate(t)
	})
}

// TestCloseWithoutEvents closes a communicator while the driver can record no events. The runtime
// tries for about five seconds to record one in the communicator's stream. Without an event the
// runtime cannot know whether the stream has ended, so the device must be lost.
func TestCloseWithoutEvents(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d, refusal, tries := &stubbornDriver{Driver: newSim(t, simdriver.Config{})}, errors.New("no events today"), 0
		g, comms := openCommunicators(t, d, 1, collective.Options{})
		d.record = func(v *stubbornDevice, e driver.Event, s driver.Stream) error {
			if tries++; tries > 10000 {
				return v.Device.Record(e, s)
			}
			return refusal
		}
		start := time.Now()
		comms[0].Close()
		if took := time.Since(start); tries > 10000 || took < 4*time.Second || took > 6*time.Second {
			t.Errorf("it was asked %d times in %v", tries, took)
		}
		if err := g.Devices()[0].Queue(0).Flush(); !errors.Is(err, refusal) || !errors.Is(err, driver.ErrLost) {
			t.Errorf("the device: %v", err)
		}
	})
}

// TestLostWhileMade loses a device while NewAll makes a communicator on it. NewAll or the
// communicator's first group must return the loss.
func TestLostWhileMade(t *testing.T) {
	for range 20 {
		d := &stubbornDriver{Driver: simdriver.New(simdriver.Config{})}
		g, err := gpu.OpenGroup(d, gpu.Options{})
		must(t, err)
		lost := make(chan error, 1)
		d.rank = func(*stubbornDevice) {
			go func() {
				d.LoseDevice(0, nil)
				_, err := g.Devices()[0].Alloc(gpu.DeviceMem, 64) // this call finds the loss
				lost <- err
			}()
		}
		comms, err := collective.NewAll(minute(t), g.Devices(), collective.Options{})
		if found := <-lost; !errors.Is(found, driver.ErrLost) {
			t.Errorf("it is not lost: %v", found)
		}
		if err == nil {
			err = comms[0].Device().Queue(0).Submit(gpu.Order{}, comms[0].GroupContext(t.Context()))
		}
		if !errors.Is(err, driver.ErrLost) {
			t.Errorf("the communicator: %v", err)
		}
		g.Close()
	}
}

// TestLostBeforeListed loses a device while NewAll makes a communicator on it: the communicator's
// stream exists, and the device does not list the communicator yet. NewAll must return the loss,
// and nothing may leak.
func TestLostBeforeListed(t *testing.T) {
	d := &stubbornDriver{Driver: simdriver.New(simdriver.Config{})}
	g, err := gpu.OpenGroup(d, gpu.Options{})
	must(t, err)
	d.stream = func() {
		d.LoseDevice(0, nil)
		if _, err := g.Devices()[0].Alloc(gpu.DeviceMem, 64); !errors.Is(err, driver.ErrLost) { // this call finds the loss
			t.Errorf("it is not lost: %v", err)
		}
	}
	if _, err := collective.NewAll(minute(t), g.Devices(), collective.Options{}); !errors.Is(err, driver.ErrLost) {
		t.Errorf("the communicator: %v", err)
	}
	g.Close()
	if left := d.Leaks(); len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
}

// TestShrinkWhileGroupFails calls Shrink on two ranks while the library works on a group of one of
// them. Then the library returns an error for the group, because a rank is gone. The group must
// fail, and Shrink must succeed on both ranks.
func TestShrinkWhileGroupFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := &stubbornDriver{Driver: newSim(t, simdriver.Config{Devices: 3})}
		held := make(chan error)
		d.collect = func(*stubbornDevice, driver.Stream, driver.Comm, []driver.CommOp) error { return <-held }
		g, comms := newCommunicators(t, d, gpu.Options{}, collective.Options{})
		s, shrunk := semaphores(t, 1)[0], make(chan error)
		must(t, comms[0].Device().Queue(0).Submit(gpu.Order{Signal: pts(s, 1)}, comms[0].GroupContext(t.Context(), sum(allocate(t, g.Devices()[0], 64)))))
		synctest.Wait()
		for _, c := range []*collective.Communicator{comms[0], comms[2]} {
			go func() {
				_, err := c.Shrink(in(t, time.Minute), true, 1)
				shrunk <- err
			}()
		}
		synctest.Wait()
		held <- simdriver.ErrRankGone
		if err := errors.Join(<-shrunk, <-shrunk); err != nil {
			t.Error(err)
		}
		hasFailed(t, "the group", s, collective.ErrAborted)
		if n := calls(d.Driver, 0, simdriver.OpAbortComm); n > 0 {
			t.Errorf("the communicator was aborted %d times besides", n)
		}
		must(t, g.Close())
	})
}

// TestRegisterLate blocks Register in the library until the communicator has been closed, and then
// lets the library return. The buffer must stay usable, and closing it must free its memory.
func TestRegisterLate(t *testing.T) {
	for what, outcome := range map[string]error{"with it": nil, "with an error": errors.New("much too late")} {
		t.Run(what, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				d := &stubbornDriver{Driver: newSim(t, simdriver.Config{})}
				stuck := make(chan struct{})
				d.told = func() error {
					<-stuck
					return outcome
				}
				dev := openDevice(t, d, 0, gpu.Options{})
				id, err := collective.NewID(dev)
				must(t, err)
				c, err := collective.New(t.Context(), dev, collective.Options{ID: id, Count: 1})
				must(t, err)
				mem, err := dev.Alloc(gpu.CommMem, 64)
				must(t, err)
				registered := make(chan error, 1)
				go func() {
					_, err := c.Register(mem)
					registered <- err
				}()
				synctest.Wait()
				if err := c.Close(); !errors.Is(err, gpu.ErrClosed) {
					t.Errorf("the library has kept the thread, and close: %v", err)
				}
				if err := <-registered; !errors.Is(err, gpu.ErrClosed) {
					t.Errorf("register: %v", err)
				}
				close(stuck)
				synctest.Wait()
				if n := calls(d.Driver, 0, simdriver.OpFree); n > 0 {
					t.Errorf("%d buffers were freed", n)
				}
				s := semaphores(t, 1)[0]
				must(t, dev.Queue(0).Submit(gpu.Order{Signal: pts(s, 1)}, gpu.Fill(mem.All(), []byte{1})))
				must(t, s.Wait(t.Context(), 1))
				must(t, mem.Close())
				synctest.Wait()
				if n := calls(d.Driver, 0, simdriver.OpFree); n != 1 {
					t.Errorf("%d buffers were freed", n)
				}
				must(t, dev.Close())
			})
		})
	}
}

// TestClosedWhileMade checks that New returns ErrClosed or a communicator if the device is closed
// during the call.
func TestClosedWhileMade(t *testing.T) {
	beside := func(t *testing.T, wait func()) (*collective.Communicator, error) {
		d := &stubbornDriver{Driver: newSim(t, simdriver.Config{})}
		dev := openDevice(t, d, 0, gpu.Options{})
		id, err := collective.NewID(dev)
		must(t, err)
		closed := make(chan error, 1)
		d.rank = func(*stubbornDevice) {
			go func() { closed <- dev.Close() }()
			wait()
		}
		c, err := collective.New(t.Context(), dev, collective.Options{ID: id, Count: 1})
		must(t, <-closed)
		return c, err
	}
	t.Run("before it is open", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			if c, err := beside(t, synctest.Wait); c != nil || !errors.Is(err, gpu.ErrClosed) {
				t.Errorf("%v, %v", c, err)
			}
		})
	})
	t.Run("as it is opened", func(t *testing.T) {
		for range 50 {
			c, err := beside(t, func() {})
			if (c == nil) == (err == nil) || err != nil && !errors.Is(err, gpu.ErrClosed) {
				t.Errorf("%v, %v", c, err)
			}
		}
	})
}
