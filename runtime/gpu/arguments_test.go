package gpu_test

import (
	"context"
	"errors"
	"math"
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"

	"github.com/puregpu/puregpu/runtime/collective"
	"github.com/puregpu/puregpu/runtime/driver"
	"github.com/puregpu/puregpu/runtime/driver/simdriver"
	"github.com/puregpu/puregpu/runtime/gpu"
	"github.com/puregpu/puregpu/runtime/internal/testkit"
	"github.com/puregpu/puregpu/runtime/interop"
)

// TestExtremes calls methods and functions with extreme sizes, offsets, values and numbers, on
// buffers that are allocated, freed, closed or imported, and on a binding. Each error that a call
// returns or signals must be documented.
func TestExtremes(t *testing.T) {
	cuda, hip := simdriver.CUDACaps(), simdriver.HIPCaps()
	for name, caps := range map[string]driver.Caps{"cuda": cuda, "hip": hip, "bare": {Comms: true}} {
		t.Run(name, func(t *testing.T) {
			d := newSim(t, simdriver.Config{Caps: &caps, Memory: 1 << 24, HostMemory: 1 << 24})
			dev := openDevice(t, d, 0, gpu.Options{StageSize: 4096})
			q := dev.Queue(0)
			w := newWorld(t)
			buffers := func(kinds ...*gpu.Buffer) { just(w, kinds...) }
			var pools []*gpu.Pool
			for _, o := range []gpu.PoolOptions{{}, {Portable: true}, {MaxSize: 4096}, {MaxSize: 4096, Portable: true}, {Zero: true, Portable: true},
				{Over: allocate(t, dev, 4096)}} {
				p, err := dev.NewPool(o)
				must(t, err)
				pools = append(pools, p)
				if o.MaxSize == 0 {
					b := alloca(t, q, gpu.Order{}, p, 512)
					buffers(b)
					gone := alloca(t, q, gpu.Order{}, p, 512)
					must(t, q.Submit(gpu.Order{}, gpu.Free(gone)))
					shut := alloca(t, q, gpu.Order{}, p, 512)
					shut.Close()
					buffers(gone, shut)
				}
			}
			closedPool, err := dev.NewPool(gpu.PoolOptions{Portable: true})
			must(t, err)
			left := alloca(t, q, gpu.Order{}, closedPool, 512)
			closedPool.Close()
			just(w, append(pools, closedPool)...)
			imported, err := interop.ImportPointer(dev, allocate(t, dev, 4096).Ptr(), 4096, nil)
			must(t, err)
			host, err := dev.Alloc(gpu.HostMem, 8192)
			must(t, err)
			closed := allocate(t, dev, 64)
			closed.Close()
			c, err := dev.NewCommandBuffer(gpu.CommandOptions{})
			must(t, err)
			bound, err := c.Binding()
			must(t, err)
			small := allocate(t, dev, 255)
			buffers(allocate(t, dev, 8192), small, allocate(t, dev, 0), imported, host, closed, bound, left)
			ended, err := dev.NewCommandBuffer(gpu.CommandOptions{})
			must(t, err)
			must(t, ended.End())
			just(w, c, ended)
			just(w, dev)
			x, err := dev.Load([]byte("// sim: nothing saxpy"))
			must(t, err)
			k, err := x.Kernel("saxpy")
			must(t, err)
			just(w, k)
			g, err := gpu.NewGroup(dev)
			must(t, err)
			id, err := collective.NewID(dev)
			must(t, err)
			ch, err := collective.New(minute(t), dev, collective.Options{ID: id, Count: 1})
			must(t, err)
			just(w, ch)
			just(w, gpu.PoolOptions{}, gpu.PoolOptions{Over: small}, gpu.PoolOptions{Over: allocate(t, dev, 0)}, gpu.PoolOptions{Over: new(gpu.Buffer)},
				gpu.PoolOptions{InitialSize: math.MaxUint64}, gpu.PoolOptions{InitialSize: math.MaxUint64, Portable: true},
				gpu.PoolOptions{InitialSize: 1 << 62, Portable: true}, gpu.PoolOptions{MaxSize: 1, Portable: true},
				gpu.PoolOptions{MaxSize: math.MaxUint64, InitialSize: 1, Threshold: math.MaxUint64})
			var signalled []*gpu.Semaphore
			for _, value := range []uint64{1, gpu.MaxValue} {
				give(w, func() gpu.Order {
					s := new(gpu.Semaphore)
					signalled = append(signalled, s)
					return gpu.Order{Signal: pts(s, value)}
				})
			}
			for _, of := range []any{dev, q, g, c, x, ch, pools[0], pools[1], imported, host, left} {
				typ := reflect.TypeOf(of)
				for i := range typ.NumMethod() {
					method := typ.Method(i).Name
					switch name := typ.Elem().Name() + "." + method; {
					case method == "Close" || method == "Shutdown" || method == "End" || method == "Abort" || method == "Shrink":
						continue
					default:
						t.Run(name, func(t *testing.T) {
							r := rand.New(rand.NewPCG(3, uint64(i)))
							for range max(300, rounds(typ.Method(i).Type)) {
								signalled = signalled[:0]
								if errs := w.try(t, name, reflect.ValueOf(of).Method(i), r); len(errs) > 0 {
									continue
								}
								for _, s := range signalled {
									ctx, cancel := context.WithTimeout(t.Context(), patience)
									if err := s.Wait(ctx, 1); err != nil && (!documented(err) || errors.Is(err, context.DeadlineExceeded)) {
										t.Errorf("%s signals with an error that is not documented: %v", name, err)
									}
									cancel()
								}
							}
						})
					}
				}
			}
			for name, fn := range interopFunctions {
				t.Run(name, func(t *testing.T) {
					r := rand.New(rand.NewPCG(3, 0))
					for range 600 {
						w.try(t, name, reflect.ValueOf(fn), r)
					}
				})
			}
			if err := q.Flush(); err != nil {
				t.Errorf("the device is lost: %v", err)
			}
		})
	}
}

// A mistake has the objects that wrong calls use.
type mistake struct {
	t    *testing.T
	dev  *gpu.Device
	q    *gpu.Queue
	b    *gpu.Buffer
	s    *gpu.Semaphore // its value is 5
	x    *gpu.Semaphore // new for each call; the call must leave it at 0
	pool *gpu.Pool
	// code is a recording that has ended. It has a host call between two fills, and no bindings.
	code *gpu.CommandBuffer
	open *gpu.CommandBuffer // a recording that has not ended
	bind *gpu.Buffer        // the only binding of the recording in the field open
}

// signals returns an order that signals x with 1, and then s with the values.
func (m *mistake) signals(values ...uint64) (o gpu.Order) {
	o.Signal = pts(m.x, 1)
	for _, v := range values {
		o.Signal = append(o.Signal, gpu.Point{Semaphore: m.s, Value: v})
	}
	return o
}

// waiting is like signals, but the order also waits for s to reach the value wait.
func (m *mistake) waiting(wait uint64, values ...uint64) gpu.Order {
	o := m.signals(values...)
	o.Wait = pts(m.s, wait)
	return o
}

// queueOperations submit operations of most kinds to a queue.
var queueOperations = map[string]func(m *mistake, o gpu.Order) error{
	"barrier":         func(m *mistake, o gpu.Order) error { return m.q.Submit(o, gpu.Barrier()) },
	"fill":            func(m *mistake, o gpu.Order) error { return m.q.Submit(o, gpu.Fill(m.b.All(), []byte{1})) },
	"fill of nothing": func(m *mistake, o gpu.Order) error { return m.q.Submit(o, gpu.Fill(m.b.Range(0, 0), []byte{1})) },
	"copy":            func(m *mistake, o gpu.Order) error { return m.q.Submit(o, gpu.Copy(m.b.Range(0, 8), m.b.Range(8, 8))) },
	"update": func(m *mistake, o gpu.Order) error {
		return m.q.Submit(o, gpu.UploadCopy(m.b.Range(0, 3), []byte{1, 2, 3}))
	},
	"upload": func(m *mistake, o gpu.Order) error {
		return m.q.Submit(o, gpu.Upload(m.b.All(), make([]byte, m.b.Size())))
	},
	"download": func(m *mistake, o gpu.Order) error {
		return m.q.Submit(o, gpu.Download(make([]byte, 8), m.b.Range(0, 8)))
	},
	"download in pieces": func(m *mistake, o gpu.Order) error {
		return m.q.Submit(o, gpu.Download(make([]byte, m.b.Size()), m.b.All()))
	},
	"read": func(m *mistake, o gpu.Order) error {
		return m.q.Submit(o, gpu.ReadFrom(m.b.Range(0, 4), strings.NewReader("four"), 0))
	},
	"write": func(m *mistake, o gpu.Order) error { return m.q.Submit(o, gpu.WriteTo(noWriter{}, 0, m.b.Range(0, 4))) },
	"host call": func(m *mistake, o gpu.Order) error {
		return m.q.Submit(o, gpu.HostCall(func() error { m.t.Error("called"); return nil }))
	},
	"notify": func(m *mistake, o gpu.Order) error {
		return m.q.Submit(o, gpu.Notify(func() { m.t.Error("notified") }))
	},
	"execute": func(m *mistake, o gpu.Order) error { return m.q.Submit(o, gpu.Execute(m.code)) },
	"alloc": func(m *mistake, o gpu.Order) error {
		b, err := testkit.AllocIn(m.q, o, m.pool, 64)
		if (b == nil) != (err != nil) {
			m.t.Errorf("buffer %v, %v", b, err)
		}
		return err
	},
	"alloc of nothing": func(m *mistake, o gpu.Order) error {
		b, err := testkit.AllocIn(m.q, o, m.pool, 0)
		if (b == nil) != (err != nil) {
			m.t.Errorf("buffer %v, %v", b, err)
		}
		return err
	},
	"free": func(m *mistake, o gpu.Order) error {
		b := alloca(m.t, m.q, gpu.Order{}, m.pool, 64)
		err := m.q.Submit(o, gpu.Free(b))
		done := semaphores(m.t, 1)[0]
		// The refused Free has freed nothing.
		must(m.t, m.q.Submit(gpu.Order{Signal: pts(done, 1)}, gpu.Free(b)))
		must(m.t, done.Wait(minute(m.t), 1))
		return err
	},
}

// wrongOrders are orders that Submit must refuse.
var wrongOrders = map[string]struct {
	of   func(m *mistake) gpu.Order
	want error
}{

	"a signal of a value that is reached": {func(m *mistake) gpu.Order { return m.signals(5) }, gpu.ErrValue},

	"a signal of a value that has passed": {func(m *mistake) gpu.Order { return m.signals(1) }, gpu.ErrValue},

	"the second signal backward": {func(m *mistake) gpu.Order { return m.signals(7, 6) }, gpu.ErrValue},

	"a signal twice": {func(m *mistake) gpu.Order { return m.signals(6, 6) }, gpu.ErrValue},

	"a wait for its own signal": {func(m *mistake) gpu.Order { return m.waiting(6, 6) }, gpu.ErrValue},

	"a wait for more than its own signal": {func(m *mistake) gpu.Order { return m.waiting(9, 6) }, gpu.ErrValue},

	"a wait for the first of its signals": {func(m *mistake) gpu.Order { return m.waiting(6, 6, 7) }, gpu.ErrValue},

	"a signal of no semaphore": {func(m *mistake) gpu.Order { return gpu.Order{Signal: append(pts(m.x, 1), gpu.Point{})} }, gpu.ErrArgument},

	"a wait for no semaphore": {func(m *mistake) gpu.Order { return gpu.Order{Wait: pts(nil, 1), Signal: pts(m.x, 1)} }, gpu.ErrArgument},

	"a signal above the highest": {func(m *mistake) gpu.Order { return m.signals(gpu.MaxValue + 1) }, gpu.ErrArgument},

	"a signal backward in a list of 1,000": {func(m *mistake) gpu.Order { return m.long(9, 8) }, gpu.ErrValue},

	"a list of 1,000 with a wait for it": {func(m *mistake) gpu.Order { o := m.long(8, 9); o.Wait = append(o.Wait, pts(m.s, 9)...); return o }, gpu.ErrValue},

	"a list of 1,000 with one reached": {func(m *mistake) gpu.Order { return m.long(4, 9) }, gpu.ErrValue},
}

// long returns an order that signals x with 1, s with the value first, x 1,000 times more, and
// finally s with the value second.
func (m *mistake) long(first, second uint64) gpu.Order {
	o := m.signals(first)
	for v := range uint64(1000) {
		o.Signal = append(o.Signal, gpu.Point{Semaphore: m.x, Value: v + 2})
	}
	o.Signal = append(o.Signal, gpu.Point{Semaphore: m.s, Value: second})
	return o
}

// wrongCalls are calls whose mistake is not in an Order. A function returns the error of its call.
// If the called method has no error result, the function checks what the call has done.
var wrongCalls = map[string]struct {
	call func(m *mistake) error
	want error
}{

	"Open with no driver": {func(*mistake) error { _, err := gpu.Open(nil, 0, gpu.Options{}); return err }, gpu.ErrArgument},

	"OpenGroup with no driver": {func(*mistake) error { _, err := gpu.OpenGroup(nil, gpu.Options{}); return err }, gpu.ErrArgument},

	"Wait with no context": {func(m *mistake) error { return m.s.Wait(noContext, 6) }, gpu.ErrArgument},

	"WaitAll with no context": {func(m *mistake) error { return gpu.WaitAll(noContext, pts(m.s, 6)...) }, gpu.ErrArgument},

	"WaitAny with no context": {func(m *mistake) error { _, err := gpu.WaitAny(noContext, pts(m.s, 6)...); return err }, gpu.ErrArgument},

	"Wait of no semaphore": {func(m *mistake) error { return (*gpu.Semaphore)(nil).Wait(m.t.Context(), 1) }, gpu.ErrArgument},

	"WaitAll for no semaphore": {func(m *mistake) error { return gpu.WaitAll(m.t.Context(), gpu.Point{Value: 1}) }, gpu.ErrArgument},

	"WaitAny for no semaphore": {func(m *mistake) error { _, err := gpu.WaitAny(m.t.Context(), gpu.Point{}); return err }, gpu.ErrArgument},

	"Signal of no semaphore": {func(m *mistake) error { return (*gpu.Semaphore)(nil).Signal(1) }, gpu.ErrArgument},

	"Query of no semaphore": {func(m *mistake) error { _, err := (*gpu.Semaphore)(nil).Query(); return err }, gpu.ErrArgument},

	"SignalAll of no semaphore": {func(m *mistake) error { return gpu.SignalAll(gpu.Point{Value: 1}) }, gpu.ErrArgument},

	"Signal of a value reached": {func(m *mistake) error { return m.s.Signal(5) }, gpu.ErrValue},

	"OnReached of no semaphore": {func(m *mistake) (err error) {
		(*gpu.Semaphore)(nil).OnReached(1, func(e error) { err = e })
		return err
	}, gpu.ErrArgument},
	"OnReached of no function": {func(m *mistake) error { return late(m.s.OnReached(6, nil)) }, nil},
	"Link to no semaphore":     {func(m *mistake) error { return late(m.s.Link(1, nil, 1)) }, nil},
	"Link of no semaphore": {func(m *mistake) error {
		x := semaphores(m.t, 1)[0]
		(*gpu.Semaphore)(nil).Link(1, x, 1)
		_, err := x.Query()
		return err
	}, gpu.ErrArgument},
	"Fail, Close of no semaphore":        {func(m *mistake) error { (*gpu.Semaphore)(nil).Fail(nil); return (*gpu.Semaphore)(nil).Close() }, nil},
	"a fill of all of a binding":         {func(m *mistake) error { _, err := m.open.Add(gpu.Fill(m.bind.All(), []byte{1})); return err }, gpu.ErrArgument},
	"a copy of all of a binding":         {func(m *mistake) error { _, err := m.open.Add(gpu.Copy(m.bind.All(), m.bind.All())); return err }, gpu.ErrArgument},
	"a copy to all of a binding":         {func(m *mistake) error { _, err := m.open.Add(gpu.Copy(m.bind.All(), m.b.All())); return err }, gpu.ErrArgument},
	"an update of all of a binding":      {func(m *mistake) error { _, err := m.open.Add(gpu.UploadCopy(m.bind.All(), []byte{1})); return err }, gpu.ErrArgument},
	"a binding outside of its recording": {func(m *mistake) error { return m.q.Submit(m.signals(), gpu.Fill(m.bind.All(), []byte{1})) }, gpu.ErrArgument},
}

// late returns an error if cancel succeeds. After a call with a mistake there is nothing to cancel.
func late(cancel func() bool) error {
	if cancel() {
		return errors.New("cancel succeeded")
	}
	return nil
}

// TestMistakes makes wrong calls. Each call must return the right error. The call must submit
// nothing, signal nothing and leak no buffer.
func TestMistakes(t *testing.T) {
	onEach(t, 1, func(t *testing.T, d *simdriver.Driver, _ driver.Caps) {
		m := &mistake{t: t, dev: openDevice(t, d, 0, gpu.Options{StageSize: 512}), s: semaphores(t, 1)[0]}
		m.q, m.b, m.pool = m.dev.Queue(0), allocate(t, m.dev, 2048), newPool(t, m.dev, gpu.PoolOptions{})
		m.code, m.open = commandBuffer(t, m.dev, gpu.AutoMode), commandBuffer(t, m.dev, gpu.AutoMode)
		recorded(t)(m.code.Add(gpu.Fill(m.b.All(), []byte{7})))
		recorded(t)(m.code.Add(gpu.HostCall(func() error { t.Error("called"); return nil })))
		recorded(t)(m.code.Add(gpu.Fill(m.b.All(), []byte{8})))
		must(t, m.code.End())
		var err error
		m.bind, err = m.open.Binding()
		must(t, err)
		must(t, m.s.Signal(5))
		before := m.dev.Stats()
		try := func(name string, call func() error, want error) {
			t.Helper()
			m.x = semaphores(t, 1)[0]
			if err := call(); !errors.Is(err, want) || want == nil && err != nil {
				t.Errorf("%s: %v; want %v", name, err, want)
			}
			now := m.dev.Stats()
			if now.Parked+now.InFlight > 0 || now.Buffers != before.Buffers {
				t.Errorf("%s: left: %+v", name, now)
			}
			if v, err := m.s.Query(); v != 5 || err != nil {
				t.Fatalf("%s: the semaphore is at %d, %v", name, v, err)
			}
			if v, err := m.x.Query(); v != 0 || err != nil {
				t.Errorf("%s: another signal is at %d, %v", name, v, err)
			}
		}
		for mistake, o := range wrongOrders {
			for name, submit := range queueOperations {
				try(name+", "+mistake, func() error { return submit(m, o.of(m)) }, o.want)
			}
		}
		for name, c := range wrongCalls {
			try(name, func() error { return c.call(m) }, c.want)
		}
		for _, c := range bytesOf(t, m.q, m.b) {
			if c != 0 {
				t.Fatal("something has been written")
			}
		}
		// The objects still work.
		must(t, m.q.Submit(order(m.s, 5, m.s, 6), gpu.Fill(m.b.All(), []byte{1})))
		must(t, m.s.Wait(minute(t), 6))
		failed, x := semaphores(t, 1)[0], semaphores(t, 1)[0]
		// An operation may signal a semaphore that has failed. The operation runs, and its other
		// signals are given.
		failed.Fail(context.Canceled)
		must(t, m.q.Submit(gpu.Order{Signal: []gpu.Point{{Semaphore: failed, Value: 1}, {Semaphore: x, Value: 1}}}, gpu.Fill(m.b.All(), []byte{1})))
		must(t, x.Wait(minute(t), 1))
	})
}

// TestClosedBuffer checks that Ptr and Bytes return zero values for a closed buffer, even while
// work uses the buffer, and for a buffer of a closed device.
func TestClosedBuffer(t *testing.T) {
	onEach(t, 1, func(t *testing.T, d *simdriver.Driver, caps driver.Caps) {
		dev := openDevice(t, d, 0, gpu.Options{})
		q, s := dev.Queue(0), semaphores(t, 2)
		b, err := dev.Alloc(gpu.HostMem, 64)
		must(t, err)
		p := alloca(t, q, gpu.Order{Signal: pts(s[1], 1)}, newPool(t, dev, gpu.PoolOptions{Kind: gpu.HostMem, Portable: true}), 64)
		must(t, s[1].Wait(minute(t), 1))
		after := semaphores(t, 1)[0]
		seen := b.Bytes()
		for _, b := range []*gpu.Buffer{b, p} {
			if b.Ptr() == 0 || len(b.Bytes()) != 64 {
				t.Errorf("an open buffer: %#x, %d bytes", b.Ptr(), len(b.Bytes()))
			}
			v, _ := after.Query()
			must(t, q.Submit(order(s[0], 1, after, v+1), gpu.Fill(b.All(), []byte{7})))
			must(t, b.Close())
			if b.Ptr() != 0 || b.Bytes() != nil {
				t.Errorf("a closed buffer: %#x, %d bytes", b.Ptr(), len(b.Bytes()))
			}
			if b == p {
				break
			}
			must(t, s[0].Signal(1))
			must(t, after.Wait(minute(t), v+1))
			if seen[63] != 7 {
				t.Error("the work has not been done")
			}
		}
		must(t, after.Wait(minute(t), 2))
		left := allocate(t, dev, 64)
		dev.Close()
		if left.Ptr() != 0 || left.Bytes() != nil {
			t.Errorf("of a closed device: %#x", left.Ptr())
		}
	})
}

// TestAllOfBinding checks that a whole binding can be an argument of a kernel and of a nested
// recording.
func TestAllOfBinding(t *testing.T) {
	onEach(t, 1, func(t *testing.T, d *simdriver.Driver, caps driver.Caps) {
		for _, mode := range []gpu.Mode{gpu.StreamMode, gpu.GraphMode} {
			if mode == gpu.GraphMode && !caps.Graphs {
				continue
			}
			dev, s := openDevice(t, d, 0, gpu.Options{}), semaphores(t, 1)[0]
			x, err := dev.Load(simdriver.Image("words"))
			must(t, err)
			words, err := x.Kernel("words")
			must(t, err)
			child, c := commandBuffer(t, dev, mode), commandBuffer(t, dev, mode)
			var in [2]*gpu.Buffer
			for i, c := range []*gpu.CommandBuffer{child, c} {
				in[i], err = c.Binding()
				must(t, err)
			}
			out := allocate(t, dev, 64)
			recorded(t)(child.Add(gpu.Launch(words, gpu.GridFor(16, 16), uint64(16), out, in[0])))
			must(t, child.End())
			recorded(t)(c.Add(gpu.Execute(child, in[1].All())))
			must(t, c.End())
			src := allocate(t, dev, 256)
			must(t, dev.Queue(0).Submit(gpu.Order{Signal: pts(s, 1)}, gpu.Fill(src.Range(64, 64), []byte{9})))
			must(t, dev.Queue(0).Submit(order(s, 1, s, 2), gpu.Execute(c, src.Range(64, 64))))
			if got := bytesOf(t, dev.Queue(0), out, gpu.Point{Semaphore: s, Value: 2}); got[0] != 9 || got[63] != 9 {
				t.Errorf("got %v", got)
			}
			dev.Close()
		}
	})
}

// TestNoContext checks that calls that wait return ErrArgument for a nil context.
func TestNoContext(t *testing.T) {
	dev := openDevice(t, newSim(t, simdriver.Config{}), 0, gpu.Options{})
	g, err := gpu.NewGroup(dev)
	must(t, err)
	s := new(gpu.Semaphore)
	for name, call := range map[string]func() error{
		"Semaphore.Wait":       func() error { return s.Wait(noContext, 1) },
		"Semaphore.WaitIssued": func() error { return s.WaitIssued(noContext, 1) },
		"Stream.Wait": func() error {
			stream := dev.Queue(0).NewStream()
			must(t, stream.After(pts(s, 1)...))
			stream.Fill(allocate(t, dev, 64).All(), []byte{1})
			return stream.Wait(noContext)
		},
		"Group.Shutdown":  func() error { return g.Shutdown(noContext) },
		"Device.Shutdown": func() error { return dev.Shutdown(noContext) },
	} {
		t.Run(name, func(t *testing.T) {
			defer func() {
				if p := recover(); p != nil {
					t.Errorf("panics: %v", p)
				}
			}()
			if err := call(); !errors.Is(err, gpu.ErrArgument) {
				t.Errorf("%v", err)
			}
		})
	}
	must(t, s.Close())
}
