package gpu_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"runtime"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/puregpu/puregpu/runtime/collective"
	"github.com/puregpu/puregpu/runtime/driver"
	"github.com/puregpu/puregpu/runtime/driver/simdriver"
	"github.com/puregpu/puregpu/runtime/gpu"
	"github.com/puregpu/puregpu/runtime/internal/testkit"
	"github.com/puregpu/puregpu/runtime/interop"
)

// A tape is a sequence of bytes that choose operations and arguments. After the last byte,
// tape.next returns 0.
type tape []byte

func (t *tape) next() byte {
	if len(*t) == 0 {
		return 0
	}
	b := (*t)[0]
	*t = (*t)[1:]
	return b
}

// n returns a number below a limit.
func (t *tape) n(limit int) int { return int(t.next()) % limit }

// number returns a size, an offset or a value. Most results are small. The others are at or near a
// power of two.
func (t *tape) number() uint64 {
	ends := [...]uint64{255, 256, 257, 511, 512, 513, 4095, 4096, 4097, 1 << 31, 1<<32 - 1, 1 << 32, 1 << 40, math.MaxInt64, 1 << 63, gpu.MaxValue, math.MaxUint64, math.MaxUint64 - 511}
	switch b := t.next(); {
	case b < 128:
		return uint64(b)
	case b < 192:
		return 8 * uint64(b-128)
	default:
		return ends[int(b)%len(ends)]
	}
}

var errFuzz = errors.New("the end of a fuzz")

// A fuzz has the objects that the operations of a tape use.
type fuzz struct {
	*tape
	t            *testing.T
	devs         []*gpu.Device
	queues       []*gpu.Queue
	communicator *collective.Communicator
	kernels      []*gpu.Kernel
	semaphores   []*gpu.Semaphore
	buffers      []*gpu.Buffer
	pools        []*gpu.Pool
	recordings   []*gpu.CommandBuffer
	next         map[*gpu.Semaphore]uint64 // the value of most new points; grows with the signals
	bindings     map[*gpu.CommandBuffer]int
	done         []*gpu.Semaphore // one for each accepted operation; each must be reached or fail
	what         []string         // the names of the operations, in the order of done
	running      atomic.Int64     // the number of running host calls
}

func one[T any](f *fuzz, of []T) T { return of[f.n(len(of))] }

func (f *fuzz) buffer() *gpu.Buffer  { return one(f, f.buffers) }
func (f *fuzz) queue() *gpu.Queue    { return one(f, f.queues) }
func (f *fuzz) bytes() []byte        { return make([]byte, min(f.number(), 600)) }
func (f *fuzz) command() gpu.Command { return gpu.Command(f.n(12) - 1) }
func (f *fuzz) options() gpu.PoolOptions {
	return gpu.PoolOptions{Kind: gpu.MemKind(f.n(8) - 1), MaxSize: f.number(), InitialSize: f.number(), Threshold: f.number(), Zero: f.n(2) == 0, Portable: f.n(2) == 0}
}

// sem returns a semaphore, or sometimes nil.
func (f *fuzz) sem() *gpu.Semaphore {
	if f.n(32) == 31 {
		return nil
	}
	return one(f, f.semaphores)
}

// point returns a point, mostly one that will be reached.
func (f *fuzz) point() gpu.Point {
	s := f.sem()
	if f.n(16) == 15 {
		return gpu.Point{Semaphore: s, Value: f.number()}
	}
	return gpu.Point{Semaphore: s, Value: f.next[s] + uint64(f.n(4)/3)}
}

// signals returns points to signal. Most of their values are above all earlier values for the same
// semaphore.
func (f *fuzz) signals() (list []gpu.Point) {
	for range f.n(3) {
		p := f.point()
		if f.n(16) != 15 && p.Semaphore != nil {
			f.next[p.Semaphore]++
			p.Value = f.next[p.Semaphore]
		}
		list = append(list, p)
	}
	return list
}

// ranges returns a range, mostly one inside its buffer.
func (f *fuzz) ranges() gpu.Range {
	switch b := f.buffer(); {
	case b == nil || f.n(4) == 0:
		return gpu.Range{Buffer: b, Offset: f.number(), Size: f.number()}
	case f.n(2) == 0:
		return b.Range(8*uint64(f.n(16)), 8*uint64(f.n(16)))
	default:
		return b.All()
	}
}

// sized returns a range of n bytes at the start of a buffer, or sometimes any range.
func (f *fuzz) sized(n uint64) gpu.Range {
	if f.n(8) == 0 {
		return f.ranges()
	}
	return gpu.Range{Buffer: f.buffer(), Size: n}
}

func (f *fuzz) after() (list []gpu.Command) {
	for range f.n(3) {
		list = append(list, f.command())
	}
	return list
}

func (f *fuzz) points() (list []gpu.Point) {
	for range f.n(3) {
		list = append(list, f.point())
	}
	return list
}

func (f *fuzz) fn() func() error {
	k := f.n(6)
	if k == 0 {
		return nil
	}
	return func() error {
		f.running.Add(1)
		defer f.running.Add(-1)
		switch k {
		case 1:
			return io.EOF
		case 2:
			panic(errFuzz)
		case 3:
			runtime.Goexit()
		}
		return nil
	}
}

// near returns an index below n for a list whose first entries are for the devices, in the order of
// devs. Mostly the index is that of q's device.
func (f *fuzz) near(q *gpu.Queue, n int) int {
	for i, d := range f.devs {
		if d == q.Device() && f.n(4) != 3 {
			return i
		}
	}
	return f.n(n)
}

// launch returns a launch, mostly of a kernel of the queue's device. The grid and the arguments may
// be invalid.
func (f *fuzz) launch(q *gpu.Queue) gpu.Op {
	n := uint64(f.n(40))
	k := f.kernels[f.near(q, len(f.kernels))]
	g := gpu.Grid{Blocks: [3]uint32{1 + uint32(f.n(3)), 1, uint32(1 - f.n(8)/7)}, Threads: [3]uint32{uint32(f.n(64)), 1, uint32(f.n(3))}}
	args := []any{n, f.sized(n * 4), f.sized(n * 4)}
	switch f.n(16) {
	case 15:
		args = args[:f.n(4)]
	case 14:
		args[f.n(3)] = make([]byte, f.n(10))
	case 13:
		args[f.n(3)] = nil
	case 12:
		g.SharedMem, g.Blocks[1], g.Threads[0] = uint32(f.number()), uint32(f.number()), uint32(f.number())
	}
	return gpu.Launch(k, g, args...)
}

// submit submits an operation to a queue. If the call accepts the operation, submit adds a new
// semaphore to fuzz.done. Most operations signal this semaphore themselves. For the others, submit
// signals it.
func (f *fuzz) submit() {
	q, done := f.queue(), new(gpu.Semaphore)
	o := gpu.Order{Wait: f.points(), Signal: append(f.signals(), gpu.Point{Semaphore: done, Value: 1})}
	var what string
	var err error
	switch f.n(19) {
	case 0:
		what, err = "barrier", q.Submit(o, gpu.Barrier())
	case 1:
		what, err = "host call", q.Submit(o, gpu.HostCall(f.fn()))
	case 2:
		var fn func()
		if call := f.fn(); call != nil {
			fn = func() {
				defer func() { recover() }() // the runtime would log the panic
				call()
			}
		}
		what, err = "notify", q.Submit(o, gpu.Notify(fn))
	case 3:
		what, err = "fill", q.Submit(o, gpu.Fill(f.ranges(), make([]byte, 1<<f.n(5))))
	case 4:
		n := f.number()
		what, err = "copy", q.Submit(o, gpu.Copy(f.sized(n), f.sized(n)))
	case 5:
		data := f.bytes()
		what, err = "update", q.Submit(o, gpu.UploadCopy(f.sized(uint64(len(data))), data))
	case 6:
		data := f.bytes()
		what, err = "upload", q.Submit(o, gpu.Upload(f.sized(uint64(len(data))), data))
	case 7:
		data := f.bytes()
		what, err = "download", q.Submit(o, gpu.Download(data, f.sized(uint64(len(data)))))
	case 8:
		what, err = "read", q.Submit(o, gpu.ReadFrom(f.ranges(), bytes.NewReader(make([]byte, 5000)), int64(f.number())))
	case 9:
		what, err = "write", q.Submit(o, gpu.WriteTo(noWriter{}, int64(f.number()), f.ranges()))
	case 10:
		what, err = "prefetch", q.Submit(o, gpu.Prefetch(f.ranges(), gpu.MemKind(f.n(8)-1)))
	case 11, 12:
		var b *gpu.Buffer
		what = "alloc"
		if b, err = testkit.AllocIn(q, o, f.pools[f.near(q, len(f.pools))], f.number()); err == nil {
			f.buffers = append(f.buffers, b)
		}
	case 13:
		what, err = "alloc without lists", nil
		if b, err := testkit.AllocIn(q, gpu.Order{}, f.pools[f.near(q, len(f.pools))], f.number()); err == nil {
			f.buffers = append(f.buffers, b)
		}
		done.Signal(1)
	case 14:
		what, err = "free", q.Submit(o, gpu.Free(f.buffer()))
	case 15:
		what, err = "free without lists", q.Submit(gpu.Order{}, gpu.Free(f.buffer()))
		done.Signal(1)
	case 16:
		what, err = "launch", q.Submit(o, f.launch(q))
	case 17:
		c, n := f.recordings[f.near(q, len(f.recordings))], f.n(3)
		if f.n(4) != 3 && c != nil {
			c.End()
			n = f.bindings[c]
		}
		var bound []gpu.Range
		for range n {
			bound = append(bound, f.ranges())
		}
		what, err = "execute", q.Submit(o, gpu.Execute(c, bound...))
	case 18:
		what = "collective"
		err = f.communicator.Device().Queue(0).Submit(o, f.communicator.Group(collective.AllReduce(f.ranges(), f.ranges(), collective.ElementType(f.n(12)-1), collective.Sum())))
	}
	if err == nil {
		f.done, f.what = append(f.done, done), append(f.what, what)
	} else if what != "collective" && !documented(err) { // a collective may return any earlier error of its communicator
		f.t.Errorf("%s: an error that is not documented: %v", what, err)
	}
}

// record adds a command to a recording, or calls another method of the recording.
func (f *fuzz) record() {
	c := one(f, f.recordings)
	if c == nil {
		return
	}
	switch f.n(12) {
	case 0:
		c.Add(gpu.Barrier())
	case 1:
		c.Add(gpu.Fill(f.ranges(), make([]byte, 1<<f.n(5))), f.after()...)
	case 2:
		n := f.number()
		c.Add(gpu.Copy(f.sized(n), f.sized(n)), f.after()...)
	case 3:
		data := f.bytes()
		c.Add(gpu.UploadCopy(f.sized(uint64(len(data))), data), f.after()...)
	case 4:
		c.Add(f.launch(f.queue()), f.after()...)
	case 5:
		c.Add(gpu.HostCall(f.fn()))
	case 6:
		c.Timestamp(f.after()...)
	case 7:
		if b, err := c.Binding(); err == nil {
			f.bindings[c]++
			f.buffers = append(f.buffers, b)
		}
	case 8:
		c.Add(gpu.Execute(one(f, f.recordings), []gpu.Range{f.ranges(), f.ranges()}[:f.n(3)]...), f.after()...)
	case 9:
		c.Add(f.communicator.Group(collective.AllReduce(f.ranges(), f.ranges(), collective.Float32, collective.Sum())))
	case 10:
		c.End()
	case 11:
		c.Elapsed(f.command(), f.command())
	}
}

// other makes a call that neither submits nor records an operation.
func (f *fuzz) other() {
	ended, cancel := context.WithCancel(context.Background())
	cancel()
	d := one(f, f.devs)
	switch f.n(16) {
	case 0:
		if p := f.point(); p.Semaphore != nil {
			f.next[p.Semaphore] = max(f.next[p.Semaphore], p.Value)
			p.Semaphore.Signal(p.Value)
		}
	case 1:
		gpu.SignalAll(f.points()...)
	case 2:
		f.sem().Link(f.number(), f.sem(), f.number())
	case 3:
		f.sem().OnReached(f.number(), func(error) {})
	case 4:
		if f.n(8) == 0 {
			f.sem().Fail(errFuzz)
		}
	case 5:
		gpu.WaitAll(ended, f.points()...)
	case 6:
		gpu.WaitAny(ended, f.points()...)
	case 7:
		f.sem().SetName("x")
	case 8:
		_ = fmt.Sprint(d.Parked(), d.Stats(), f.queue())
	case 9:
		if b := f.buffer(); b != nil {
			b.Ptr()
			_ = len(b.Bytes())
			b.Close()
		}
	case 10:
		if b, err := d.Alloc(gpu.MemKind(f.n(8)-1), f.number()); err == nil {
			f.buffers = append(f.buffers, b)
		}
	case 11:
		if p, err := d.NewPool(f.options()); err == nil {
			f.pools = append(f.pools, p)
		}
	case 12:
		if p := one(f, f.pools); p != nil {
			p.Trim(f.number())
			p.SetThreshold(f.number())
			if f.n(4) == 0 {
				p.Close()
			}
		}
	case 13:
		if c, err := d.NewCommandBuffer(gpu.CommandOptions{Mode: gpu.Mode(f.n(5) - 1)}); err == nil {
			f.recordings = append(f.recordings, c)
		}
	case 14:
		if c := one(f, f.recordings); c != nil && f.n(4) == 0 {
			c.Close()
		}
	case 15:
		f.queue().Flush()
	}
}

// run makes the calls that the tape chooses, up to a limit. It checks that all accepted operations
// end and that the devices close.
func (f *fuzz) run() {
	t := f.t
	caps := capabilitySets()[f.n(len(capabilitySets()))].Caps
	const memory = 16 << 20 // small, because an operation may allocate all of it
	sims := []*simdriver.Driver{newSim(t, simdriver.Config{Devices: 2, Caps: &caps, Memory: memory, HostMemory: memory}),
		newSim(t, simdriver.Config{Memory: memory, HostMemory: memory})}
	opt := gpu.Options{Queues: 1 + f.n(3), StageSize: 1 + 16*f.n(256), Events: 1 + f.n(4)}
	for _, at := range []struct {
		sim   *simdriver.Driver
		index int
	}{{sims[0], 0}, {sims[0], 1}, {sims[1], 0}} {
		d := openDevice(t, driver.Driver(at.sim), at.index, opt)
		f.devs = append(f.devs, d)
		f.queues = append(f.queues, d.Queue(0), d.Queue(1))
		f.buffers = append(f.buffers, allocate(t, d, 512), allocate(t, d, 4096))
		x, err := d.Load(simdriver.Image("words"))
		must(t, err)
		k, err := x.Kernel("words")
		must(t, err)
		f.kernels = append(f.kernels, k)
		c, err := d.NewCommandBuffer(gpu.CommandOptions{})
		must(t, err)
		f.recordings = append(f.recordings, c)
		f.pools = append(f.pools, newPool(t, d, gpu.PoolOptions{MaxSize: 1 << 16}))
	}
	d := f.devs[0]
	if caps.Comms {
		id, err := collective.NewID(d)
		must(t, err)
		f.communicator, err = collective.New(context.Background(), d, collective.Options{ID: id, Count: 1})
		must(t, err)
	} else {
		f.communicator = new(collective.Communicator)
	}
	host, err := d.Alloc(gpu.HostMem, 4096)
	must(t, err)
	imported, err := interop.ImportPointer(d, allocate(t, d, 512).Ptr(), 512, nil)
	must(t, err)
	closed := allocate(t, d, 64)
	closed.Close()
	f.buffers = append(f.buffers, host, imported, closed, allocate(t, d, 0), new(gpu.Buffer), nil)
	if caps.HostRegister {
		b, err := d.ImportHostReadOnly(make([]byte, 512), nil)
		must(t, err)
		f.buffers = append(f.buffers, b)
	}
	f.queues = append(f.queues, new(gpu.Queue))
	f.kernels = append(f.kernels, new(gpu.Kernel), nil)
	f.pools = append(f.pools, new(gpu.Pool), nil)
	f.recordings = append(f.recordings, new(gpu.CommandBuffer), nil)
	f.devs = append(f.devs, new(gpu.Device))
	f.semaphores, f.next, f.bindings = semaphores(t, 5), map[*gpu.Semaphore]uint64{}, map[*gpu.CommandBuffer]int{}
	for steps := 0; len(*f.tape) > 0 && steps < 300; steps++ {
		switch k := f.n(8); {
		case k < 4:
			f.submit()
		case k < 6:
			f.record()
		default:
			f.other()
		}
	}
	gpu.FailAll(errFuzz, f.semaphores...)
	for i, s := range f.done {
		if err := s.Wait(minute(t), 1); errors.Is(err, context.DeadlineExceeded) && !errors.Is(err, errFuzz) {
			t.Errorf("%s: neither reached nor failed: %v\n%s", f.what[i], err, dump(f.devs...))
		}
	}
	for _, d := range f.devs {
		start := time.Now()
		// An operation that uses pool memory may lose the device, unless the operation is ordered
		// after the allocation and before the Free.
		if err := d.Close(); err != nil && !errors.Is(err, driver.ErrLost) {
			t.Errorf("close: %v", err)
		}
		if took := time.Since(start); took > time.Second {
			t.Errorf("close took %v", took)
		}
		if n := d.Stats(); n.Parked+n.InFlight > 0 {
			t.Errorf("left: %+v", n)
		}
	}
	if n := f.running.Load(); n != 0 {
		t.Errorf("%d host calls are running", n)
	}
}

// FuzzOperations makes arbitrary calls with arbitrary arguments on simulated GPUs. No call may
// panic or hang, accepted operations must end, and the devices must close.
func FuzzOperations(f *testing.F) {
	if raceEnabled {
		f.Skip("operations that nothing orders race for the simulated memory")
	}
	f.Add([]byte{})
	for seed := range byte(24) {
		var b []byte
		x := uint32(seed) + 1
		for range 2000 {
			x = x*1664525 + 1013904223
			b = append(b, byte(x>>24))
		}
		f.Add(b)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		synctest.Test(t, func(t *testing.T) {
			tp := tape(data)
			(&fuzz{tape: &tp, t: t}).run()
		})
	})
}
