package gpu_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"
	"unsafe"

	"go.uber.org/goleak"

	"github.com/puregpu/puregpu/runtime/driver"
	"github.com/puregpu/puregpu/runtime/driver/simdriver"
	"github.com/puregpu/puregpu/runtime/gpu"
)

func pts(s *gpu.Semaphore, v uint64) []gpu.Point { return []gpu.Point{{Semaphore: s, Value: v}} }

func order(w *gpu.Semaphore, wv uint64, s *gpu.Semaphore, sv uint64) gpu.Order {
	return gpu.Order{Wait: pts(w, wv), Signal: pts(s, sv)}
}

func semaphores(t testing.TB, n int) (all []*gpu.Semaphore) {
	t.Helper()
	for range n {
		s, err := gpu.NewSemaphore(0)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, s)
	}
	return all
}

func openDevice(t testing.TB, d driver.Driver, i int, o gpu.Options) *gpu.Device {
	t.Helper()
	dev, err := gpu.Open(d, i, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { dev.Close() })
	return dev
}

func allocate(t testing.TB, d *gpu.Device, size uint64) *gpu.Buffer {
	t.Helper()
	b, err := d.Alloc(gpu.DeviceMem, size)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func minute(t testing.TB) context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	t.Cleanup(cancel)
	return ctx
}

// scenario uses all that a program may use, on a group of devices, and ends whatever fails on the way. It reports what never
// ended, and if nothing is to fail what has.
func scenario(ctx context.Context, d driver.Driver, devices int, sound bool) (err error) {
	var devs []*gpu.Device
	var lent sync.WaitGroup // memory that somebody waits to have back
	defer func() {
		for _, dev := range devs {
			dev.Close() // with its error, if the fault meets it
		}
		back := make(chan struct{})
		go func() {
			defer close(back)
			lent.Wait()
		}()
		select {
		case <-back:
		case <-ctx.Done():
			err = errors.Join(err, errors.New("memory that was lent has not come back"))
		}
	}()
	const size = 600 // three pieces
	for i := range devices {
		dev, err := gpu.Open(d, i, gpu.Options{Queues: 2, Events: 2, StageSize: 256, Spin: -1, Poll: -1}) // what asks little makes few calls
		if err != nil {
			return nil
		}
		devs = append(devs, dev)
	}
	if _, err := gpu.NewGroup(devs[max(0, devices-2):]...); err != nil { // of two, for the calls grow with the square
		return nil
	}
	first, second := devs[0], devs[min(1, devices-1)]
	var bufs []*gpu.Buffer
	for _, dev := range append([]*gpu.Device{first, second}, devs[min(2, devices):]...) {
		b, err := dev.Alloc(gpu.DeviceMem, size)
		if err != nil {
			return nil
		}
		bufs = append(bufs, b)
	}
	x, err := first.Load(simdriver.Image("index", "table=64"))
	if err != nil {
		return nil
	}
	k, err := x.Kernel("index")
	if err != nil {
		return nil
	}
	table, err := x.Global("table")
	if err != nil {
		return nil
	}
	lent.Add(1)
	own, err := second.ImportHost(make([]byte, 64), lent.Done)
	if err != nil {
		lent.Done()
		return nil
	}
	lent.Add(1)
	part, err := first.Import(bufs[0].Ptr()+8, 64, lent.Done)
	if err != nil {
		lent.Done()
		return nil
	}
	managed, err := second.Alloc(gpu.ManagedMem, 64)
	if err != nil {
		return nil
	}
	var recordings []*gpu.CommandBuffer
	for _, m := range []gpu.Mode{gpu.StreamMode, gpu.GraphMode} {
		c, err := recording(first, k, m)
		if err != nil {
			return nil
		}
		recordings = append(recordings, c)
	}
	pool, err := second.NewPool(gpu.PoolOptions{Portable: true, Zero: true, Threshold: 1, InitialSize: 64})
	if err != nil {
		return nil
	}
	defer pool.Close()
	var lasting, left *gpu.Buffer // of pools
	data, file := make([]byte, size), &memoryFile{data: make([]byte, size)}
	n, one, ptr := uint64(64), uint32(1), bufs[0].Ptr()
	a, b := bufs[0], bufs[1]
	q := func(dev, i int) *gpu.Queue { return []*gpu.Device{first, second}[dev].Queue(i) }
	steps := []func(o gpu.Order) error{
		func(o gpu.Order) error { return q(0, 0).Fill(o, a.All(), []byte{1}) },
		func(o gpu.Order) error { return q(0, 1).Update(o, a.Range(0, 128), data[:128]) },
		func(o gpu.Order) error { return q(1, 0).Copy(o, b.All(), a.All()) },
		func(o gpu.Order) error {
			return q(0, 0).Dispatch(o, gpu.Dispatch{Kernel: k, Grid: [3]uint32{1, 1, 1}, Block: [3]uint32{64}, Sizes: []int{8, 4, 4, 8},
				Args: []unsafe.Pointer{unsafe.Pointer(&n), unsafe.Pointer(&one), unsafe.Pointer(&one), unsafe.Pointer(&ptr)}})
		},
		func(o gpu.Order) error { return q(0, 1).Copy(o, a.Range(0, 64), a.Range(64, 64)) },
		func(o gpu.Order) error { return q(1, 1).Barrier(o) },
		func(o gpu.Order) error { return q(1, 1).HostCall(o, func() error { return nil }) },
		func(o gpu.Order) error { return q(1, 0).Fill(o, b.All(), []byte{3, 0, 0, 0, 1, 0, 0, 0}) },
		func(o gpu.Order) error { return q(0, 0).Barrier(o) },
		func(o gpu.Order) error { return q(0, 0).Download(o, data[:100], b.Range(0, 100)) },
		func(o gpu.Order) error { return q(0, 1).Upload(o, a.All(), data) },
		func(o gpu.Order) error { return q(1, 1).Write(o, file, 0, b.All()) },
		func(o gpu.Order) error { return q(1, 0).Notify(o, func() {}) },
		func(o gpu.Order) error { return q(0, 0).Read(o, a.Range(0, 400), file, 100) },
		func(o gpu.Order) error { return q(1, 1).Copy(o, own.All(), managed.All()) },
		func(o gpu.Order) error { return q(0, 0).Fill(o, table.All(), []byte{1, 2}) },
		func(o gpu.Order) error { return q(0, 1).Fill(o, part.All(), []byte{4}) },
		func(o gpu.Order) (err error) { lasting, err = q(0, 0).Alloca(o, nil, 64); return err },
		func(o gpu.Order) error { return execute(q(0, 1), o, recordings[0], a, lasting) },
		func(o gpu.Order) error { return execute(q(0, 0), o, recordings[1], lasting, a) },
		func(o gpu.Order) error { return execute(q(0, 1), o, recordings[1], a, lasting) },
		func(o gpu.Order) (err error) { left, err = q(1, 0).Alloca(o, pool, 100); return err },
		func(o gpu.Order) error {
			if lasting == nil {
				return errNoMemory
			}
			return q(0, 1).Dealloca(o, lasting)
		},
		func(o gpu.Order) error {
			if left == nil {
				return errNoMemory
			}
			defer left.Close() // it goes with this use
			return q(1, 1).Fill(o, left.All(), []byte{1, 2})
		},
		func(o gpu.Order) error {
			b, err := q(0, 0).Alloca(gpu.Order{}, nil, 64)
			if err != nil {
				return err
			}
			return errors.Join(q(0, 0).Dealloca(gpu.Order{}, b), q(0, 0).Barrier(o))
		},
		func(o gpu.Order) error { return q(0, 1).Download(o, data, a.All()) },
	}
	for i := 2; i < devices; i++ { // and on over all others
		steps = append(steps, func(o gpu.Order) error { return devs[i].Queue(i%2).Copy(o, bufs[i].All(), bufs[i-1].All()) })
	}
	var sems []*gpu.Semaphore
	for range len(steps) + 3 {
		s, _ := gpu.NewSemaphore(0)
		sems = append(sems, s)
	}
	host, last, linked := sems[0], sems[len(steps)+1], sems[len(steps)+2]
	sems[5].Link(1, linked, 7)
	told := make(chan error, 1)
	sems[2].OnReached(1, func(err error) { told <- err })
	for i, submit := range steps {
		o := order(sems[i], 1, sems[i+1], 1)
		if i >= 5 {
			o.Wait = append(o.Wait, gpu.Point{Semaphore: sems[i-3], Value: 1})
		}
		if i == 4 {
			gpu.SignalAll(pts(host, 1)...) // what came before was parked
		}
		if err := submit(o); err != nil {
			sems[i+1].Fail(err)
		}
	}
	if q, err := second.Pick(2); err != nil {
		return err
	} else if err := q.Fill(order(host, 1, last, 1), b.Range(0, 0), []byte{1}); err != nil {
		last.Fail(err)
	}
	for _, dev := range devs {
		dev.Queue(0).Flush()
	}
	for _, b := range []*gpu.Buffer{b, own, part, table} {
		b.Close()
	}
	recordings[0].Close()
	second.Trim() // with its error, if the fault meets it
	x.Close()
	for i, s := range sems {
		err := s.Wait(ctx, 1)
		if ctx.Err() != nil {
			return fmt.Errorf("semaphore %d is neither reached nor failed", i)
		}
		if sound && err != nil {
			return fmt.Errorf("semaphore %d: %w", i, err)
		}
	}
	first.Trim()
	select {
	case <-told:
		return nil
	case <-ctx.Done():
		return errors.New("a function that waits for a semaphore was not called")
	}
}

var errNoMemory = errors.New("an alloca was refused")

// recording records something of everything, for two bindings of 64 bytes.
func recording(d *gpu.Device, k *gpu.Kernel, m gpu.Mode) (*gpu.CommandBuffer, error) {
	c, err := d.NewCommandBuffer(gpu.CommandOptions{Mode: m})
	if err != nil {
		return nil, err
	}
	x, err := c.Binding()
	y, err2 := c.Binding()
	n, one := uint64(8), uint32(1)
	_, err3 := c.Dispatch(gpu.Dispatch{Kernel: k, Grid: [3]uint32{1, 1, 1}, Block: [3]uint32{8}, Sizes: []int{8, 4, 4, 8},
		Args:    []unsafe.Pointer{unsafe.Pointer(&n), unsafe.Pointer(&one), unsafe.Pointer(&one), nil},
		Buffers: []gpu.BufferArg{{Index: 3, Range: x.Range(0, 32)}}})
	_, err4 := c.Update(x.Range(32, 8), make([]byte, 8))
	_, err5 := c.Fill(x.Range(40, 24), []byte{1, 2, 3, 4, 5, 6, 7, 8})
	_, err6 := c.Barrier()
	_, err7 := c.Timestamp()
	_, err8 := c.HostCall(func() error { return nil })
	_, err9 := c.Copy(y.Range(0, 64), x.Range(0, 64))
	return c, errors.Join(err, err2, err3, err4, err5, err6, err7, err8, err9, c.End())
}

// execute executes what recording has recorded.
func execute(q *gpu.Queue, o gpu.Order, c *gpu.CommandBuffer, x, y *gpu.Buffer) error {
	if x == nil || y == nil {
		return errNoMemory
	}
	return q.Execute(o, c, x.Range(0, 64), y.Range(0, 64))
}

// A memoryFile is a file in memory, of a fixed size.
type memoryFile struct {
	mu   sync.Mutex
	data []byte
}

func (f *memoryFile) ReadAt(p []byte, at int64) (int, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return bytes.NewReader(f.data).ReadAt(p, at)
}

func (f *memoryFile) WriteAt(p []byte, at int64) (int, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return copy(f.data[at:], p), nil
}

// TestFaults fails the n-th native call, for every n: nobody hangs, nothing is left behind, every signal is reached or
// fails, and no memory is given back while the device uses it. With a step of k a call fails in one of k ways only, which
// differ from one run of the test to the next. The race detector, under which it takes long, sees a sample.
func TestFaults(t *testing.T) {
	cuda, hip := simdriver.CUDACaps(), simdriver.HIPCaps()
	anywhere := hip
	anywhere.SubmitAnywhere = true
	turn := rand.IntN(1000)
	for _, on := range []struct {
		name    string
		caps    *driver.Caps
		devices int
		step    uint64
		run     func(ctx context.Context, d driver.Driver, devices int, sound bool) error
	}{
		{"cuda over 2 devices", &cuda, 2, 1, scenario},
		{"hip over 1 device", &hip, 1, 2, scenario},
		{"hip over 2 devices", &hip, 2, 1, scenario},
		{"hip over 8 devices", &hip, 8, 4, scenario},
		{"hip from any thread", &anywhere, 2, 4, scenario},
		{"memories of cuda", &cuda, 1, 1, memories},
		{"memories of hip", &hip, 1, 2, memories},
		{"memories of hip from any thread", &anywhere, 1, 4, memories},
	} {
		if raceEnabled {
			on.step *= 8
		}
		for i, kind := range []struct {
			name  string
			fault simdriver.Fault
		}{
			{"a call", simdriver.Fault{}},
			{"a call out of memory", simdriver.Fault{OOM: true}},
			{"a call that loses", simdriver.Fault{Lost: true}},
			{"an operation when it runs", simdriver.Fault{AtExecution: true}},
		} {
			t.Run("B77 B80 B81 B85 B87 "+on.name+", "+kind.name, func(t *testing.T) {
				now, fault := goleak.IgnoreCurrent(), kind.fault
				var total uint64
				try := func(n uint64) {
					var mu sync.Mutex
					var broken error
					d := simdriver.New(simdriver.Config{Devices: on.devices, Caps: on.caps, Strict: true, Kernels: simKernels, OnExecute: func(e simdriver.Executed) {
						if e.Err != nil {
							mu.Lock()
							broken = e.Err
							mu.Unlock()
						}
					}})
					var hit *simdriver.Injected
					if n > 0 {
						f := fault
						f.Device, f.N = simdriver.AnyDevice, n
						hit = d.Inject(f)
					}
					ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
					err := on.run(ctx, d, on.devices, n == 0)
					cancel()
					if n == 0 {
						total = d.Calls()
						t.Logf("%d calls", total)
					}
					if err != nil {
						t.Errorf("call %d: %v", n, err)
					}
					mu.Lock()
					if broken != nil && !fault.Lost && !fault.AtExecution {
						t.Errorf("call %d: %v", n, broken)
					}
					mu.Unlock()
					for _, name := range d.Leaks() {
						t.Errorf("call %d: left behind: %s", n, name)
					}
					if t.Failed() {
						t.Fatalf("call %d failed %v", n, hit != nil && hit.Hits() > 0)
					}
				}
				try(0)
				for n := 1 + uint64(turn+i)%on.step; n <= total+10; n += on.step {
					try(n)
				}
				goleak.VerifyNone(t, now)
			})
		}
	}
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
