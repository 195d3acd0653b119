package engine_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/puregpu/puregpu/runtime/driver"
	"github.com/puregpu/puregpu/runtime/driver/simdriver"
	"github.com/puregpu/puregpu/runtime/gpu"
	"github.com/puregpu/puregpu/runtime/gpu/gputest"
	"github.com/puregpu/puregpu/runtime/internal/testkit"
)

// A supply has objects of a device that many nodes share: pools, recordings and a kernel.
type supply struct {
	pools []*source // the first is the device's current pool
	moves []*move
	way   *move
	stamp *gpu.Kernel
}

// A source is a pool of a supply.
type source struct {
	pool  *gpu.Pool // nil means the device's current pool
	kind  gpu.MemKind
	zero  bool
	limit uint64      // in bytes; 0 means none
	slots []gpu.Point // with a limit: one for each block that fits, the point of the block's last user
}

// blockSize is the largest size that nodes allocate from pools, except in graph.excess. Nodes also
// allocate up to 56 bytes less, which takes the same room in a pool.
const blockSize = 512

// supply makes the pools, the recordings and the kernel of a device.
func (g *graph) supply(dev *gpu.Device) {
	r := g.r
	s := &supply{pools: []*source{{kind: gpu.DeviceMem}}}
	for _, k := range r.Perm(5)[:1+r.IntN(2)] {
		p := &source{}
		limit := blockSize * (1 + r.Uint64N(4))
		if g.breaks {
			limit = blockSize * 1000
		}
		o := gpu.PoolOptions{Zero: r.IntN(2) == 0, Portable: r.IntN(2) == 0, Threshold: r.Uint64N(3) * blockSize}
		if k == 2 || k == 3 {
			o.Kind = gpu.HostMem
		}
		if k == 1 || k == 2 {
			p.limit, o.MaxSize, o.InitialSize = limit, limit, r.Uint64N(2)*limit
		}
		if k == 4 {
			over, err := dev.Alloc([]gpu.MemKind{gpu.DeviceMem, gpu.HostMem, gpu.ManagedMem}[r.IntN(3)], limit)
			must(g.t, err)
			defer over.Close() // the pool keeps the memory alive
			p.limit, o.Portable, o.Over = limit, false, over
		}
		p.slots = make([]gpu.Point, p.limit/blockSize)
		p.pool = newPool(g.t, dev, o)
		p.kind, p.zero = p.pool.Options().Kind, o.Zero
		s.pools = append(s.pools, p)
	}
	x, err := dev.Load(simdriver.Image("stamp"))
	must(g.t, err)
	s.stamp, err = x.Kernel("stamp")
	must(g.t, err)
	g.supplies[dev] = s
	for range 2 {
		s.moves = append(s.moves, g.move(dev, r.IntN(3), gpu.Range{}))
	}
	s.way = g.way(dev)
}

// A move is a recording that copies 8 bytes from its last binding to its first, and may change some
// of these bytes.
type move struct {
	c     *gpu.CommandBuffer
	write []func(v *[8]byte) // the changes, in order
}

// of returns the value that the move makes from v.
func (m *move) of(v [8]byte) [8]byte {
	for _, f := range m.write {
		f(&v)
	}
	return v
}

// newMove begins a recording with bindings.
func (g *graph) newMove(dev *gpu.Device, bindings int) (m *move, bound []*gpu.Buffer) {
	m = &move{c: commandBuffer(g.t, dev, gpu.Mode(g.r.IntN(3)))}
	for range bindings {
		b, err := m.c.Binding()
		must(g.t, err)
		bound = append(bound, b)
	}
	return m, bound
}

// pass records an execution of child in m, and sometimes closes child.
func (g *graph) pass(m, child *move, to, from gpu.Range) {
	recorded(g.t)(m.c.Add(gpu.Execute(child.c, to, from)))
	recorded(g.t)(m.c.Add(gpu.Barrier()))
	m.write = append(m.write, child.write...)
	if g.r.IntN(2) == 0 {
		must(g.t, child.c.Close())
	}
}

// move records a move with two bindings and some other commands. The parameter nested is the depth
// to which other moves are nested in the new move: 0 means not at all. The range fixed is either
// empty or the last byte of the range that will be bound to the first binding. Some moves write to
// fixed directly, not through the binding.
func (g *graph) move(dev *gpu.Device, nested int, fixed gpu.Range) *move {
	r := g.r
	m, b := g.newMove(dev, 2)
	x, y := b[0], b[1]
	var after []gpu.Command
	recorded(g.t)(m.c.Add(gpu.UploadCopy(x.Range(0, 8), g.bytes(8))))
	recorded(g.t)(m.c.Add(gpu.Barrier()))
	from := y.Range(0, 8)
	for range r.IntN(4) { // pass the value through scratch memory
		b, err := m.c.Scratch(8 + 8*r.Uint64N(64))
		must(g.t, err)
		to := b.Range(8*r.Uint64N(b.Size()/8), 8)
		if from.Buffer != y && r.IntN(2) == 0 { // kernels of the device may be unable to use the memory bound to y
			g.recordLaunch(m, dev, to, from)
		} else {
			recorded(g.t)(m.c.Add(gpu.Copy(to, from)))
		}
		recorded(g.t)(m.c.Add(gpu.Barrier()))
		from = to
	}
	if nested > 0 {
		g.pass(m, g.move(dev, nested-1, fixed), x.Range(0, 8), from)
	} else {
		after = append(after, recorded(g.t)(m.c.Add(gpu.Copy(x.Range(0, 8), from))))
	}
	if r.IntN(4) == 0 {
		recorded(g.t)(m.c.Add(gpu.HostCall(func() error { return nil })))
	}
	if r.IntN(2) == 0 {
		p, i := g.bytes(2), 2*r.Uint64N(4)
		if r.IntN(3) == 0 {
			recorded(g.t)(m.c.Add(gpu.Native("", nativeFill(p), x.Range(i, 2)), after...))
		} else {
			recorded(g.t)(m.c.Add(gpu.Fill(x.Range(i, 2), p), after...))
		}
		m.write = append(m.write, func(v *[8]byte) { copy(v[i:], p) })
	}
	if fixed.Size > 0 && r.IntN(3) == 0 {
		p := g.bytes(1)
		recorded(g.t)(m.c.Add(gpu.Barrier()))
		if r.IntN(2) == 0 {
			recorded(g.t)(m.c.Add(gpu.Native("", nativeFill(p), fixed)))
		} else {
			recorded(g.t)(m.c.Add(gpu.Fill(fixed, p)))
		}
		m.write = append(m.write, func(v *[8]byte) { copy(v[7:], p) })
	}
	must(g.t, m.c.End())
	return m
}

// stamped returns a launch of the kernel "stamp" with attributes that the device supports, and a
// function that changes a value as the kernel does.
func (g *graph) stamped(dev *gpu.Device, to, from gpu.Range) (gpu.Op, func(v *[8]byte)) {
	c := testkit.Launches[g.r.IntN(len(testkit.Launches))]
	for !testkit.CanLaunch(g.caps, c.Attrs) {
		c = testkit.Launches[g.r.IntN(len(testkit.Launches))]
	}
	is := c.Attrs
	is.Priority, is.Cluster = g.caps.ClampPriority(is.Priority), c.Cluster
	if is.Cluster == [3]uint32{} {
		is.Cluster = [3]uint32{1, 1, 1}
	}
	op := gpu.Launch(g.supplies[dev].stamp, gpu.Grid{Blocks: [3]uint32{4, 2, 2}, Threads: [3]uint32{32}, Attrs: c.Attrs}, to, from)
	return op, func(v *[8]byte) {
		binary.NativeEndian.PutUint32(v[:], binary.NativeEndian.Uint32(v[:])+testkit.Stamp(is))
	}
}

// recordLaunch records a launch of "stamp" from one range to another.
func (g *graph) recordLaunch(m *move, dev *gpu.Device, to, from gpu.Range) {
	op, write := g.stamped(dev, to, from)
	recorded(g.t)(m.c.Add(op))
	m.write = append(m.write, write)
}

// launch makes the node launch "stamp" from src to dst, or from dst to dst if src is nil.
func (g *graph) launch(x *node, q *gpu.Queue, dst, src *cell) {
	x.what = "launch"
	from := src
	if from == nil {
		from = dst
	}
	op, write := g.stamped(q.Device(), dst.r, from.r)
	dst.value = from.value
	write(&dst.value)
	x.submit = func(o gpu.Order) error { return x.give(q, o, op) }
}

// nativeFill returns a function for gpu.Native that writes p to the start of the first range.
func nativeFill(p []byte) func(gpu.NativeCall) error {
	return func(n gpu.NativeCall) error {
		for i, b := range p {
			if err := n.Device.Fill(n.Stream, n.Ptrs[0]+driver.Ptr(i), uint32(b), 1, 1); err != nil {
				return err
			}
		}
		return nil
	}
}

// waySize is the number of bytes that are bound to the middle binding of a way.
const waySize = 64

// way records a move with three bindings. One nested move copies from the last binding to the
// middle one, and a second nested move from the middle one to the first. Both moves may be
// executions of one recording. Between the two moves, a nested launch sometimes copies within the
// middle binding.
func (g *graph) way(dev *gpu.Device) *move {
	r := g.r
	m, b := g.newMove(dev, 3)
	x, middle, y := b[0], b[1], b[2]
	first := g.move(dev, r.IntN(2), gpu.Range{})
	last := first
	if r.IntN(2) == 0 {
		last = g.move(dev, 0, gpu.Range{})
	}
	at := 8 * r.Uint64N(waySize/8)
	recorded(g.t)(m.c.Add(gpu.Execute(first.c, middle.Range(at, 8), y.Range(0, 8))))
	recorded(g.t)(m.c.Add(gpu.Barrier()))
	m.write = append(m.write, first.write...)
	if r.IntN(2) == 0 {
		k, kb := g.newMove(dev, 2)
		g.recordLaunch(k, dev, kb[0].Range(0, 8), kb[1].Range(0, 8))
		must(g.t, k.c.End())
		to := (at + 8) % waySize
		g.pass(m, k, middle.Range(to, 8), middle.Range(at, 8))
		at = to
	}
	g.pass(m, last, x.Range(0, 8), middle.Range(at, 8))
	must(g.t, m.c.End())
	return m
}

// execution makes the node execute a shared recording or a recording of its own.
func (g *graph) execution(x *node, q *gpu.Queue, dst, src *cell) {
	r, to, from := g.r, dst.r, src.r
	if r.IntN(2) == 0 {
		x.what = "execute a shared recording"
		moves := g.supplies[q.Device()].moves
		m := moves[r.IntN(len(moves))]
		dst.value = m.of(src.value)
		x.submit = func(o gpu.Order) error { return x.give(q, o, gpu.Execute(m.c, to, from)) }
		return
	}
	x.what = "execute"
	m := g.move(q.Device(), max(0, r.IntN(5)-2), to.Buffer.Range(to.Offset+7, 1))
	dst.value = m.of(src.value)
	x.submit = func(o gpu.Order) error {
		err := x.give(q, o, gpu.Execute(m.c, to, from))
		m.c.Close()
		return err
	}
}

// allocator returns a queue of q's device that can allocate from pools: q itself, or queue 0 if q
// is on an adopted stream.
func (g *graph) allocator(q *gpu.Queue) *gpu.Queue {
	own := q.Device().Queue(0)
	for i := range 3 {
		if q.Device().Queue(i) == q {
			own = q
		}
	}
	return own
}

// transient makes the node allocate memory of a pool, use it to write dst, mostly with the value of
// src, and free it.
func (g *graph) transient(x *node, q *gpu.Queue, dst, src *cell) {
	r, to, from, want := g.r, dst.r, src.r, src.value
	s := g.supplies[q.Device()]
	p := s.pools[r.IntN(len(s.pools))]
	for _, c := range []*cell{dst, src} { // drivers cannot copy between pooled host memory and imported or shareable memory of another device
		if p.kind == gpu.HostMem && (c.imported || c.r.Buffer.Kind() == gpu.ShareableMem) && c.r.Buffer.Device() != q.Device() {
			p = s.pools[0]
		}
	}
	if len(p.slots) > 0 { // wait until the last user of the block has freed it
		free := &p.slots[r.IntN(len(p.slots))]
		if free.Semaphore != nil {
			x.order.Wait = append(x.order.Wait, *free)
		}
		*free = x.done
	}
	// Close gives no point that says when the memory is free, and the next user of a slot waits for
	// such a point. So without slots only.
	closes := len(p.slots) == 0 && r.IntN(4) == 0
	size, at := uint64(blockSize-8*r.IntN(8)), 8*r.Uint64N(32)
	m, last := s.moves[r.IntN(len(s.moves))], s.moves[r.IntN(len(s.moves))]
	type step func(q *gpu.Queue, o gpu.Order, b *gpu.Buffer) error
	in := func(q *gpu.Queue, o gpu.Order, b *gpu.Buffer) error {
		return q.Submit(o, gpu.Copy(b.Range(at, 8), from))
	}
	out := func(q *gpu.Queue, o gpu.Order, b *gpu.Buffer) error { return q.Submit(o, gpu.Copy(to, b.Range(at, 8))) }
	var steps []step
	switch k := r.IntN(8); {
	case k == 0 && p.zero:
		x.what = "memory that is zero"
		steps = []step{out}
		dst.value = [8]byte{}
	case k == 1 && p.kind != gpu.DeviceMem:
		x.what = "memory of the host's"
		i, v := r.IntN(8), byte(r.Uint32())
		host := func(q *gpu.Queue, o gpu.Order, b *gpu.Buffer) error {
			return q.Submit(o, gpu.HostCall(func() error {
				mem := b.Bytes()[at:][:8]
				if !bytes.Equal(mem, want[:]) {
					return fmt.Errorf("%x arrived, want %x", mem, want)
				}
				mem[i] = v
				return nil
			}))
		}
		// The host call uses Bytes, so the buffer must be open until the call has ended.
		steps, closes = []step{in, host, out}, false
		dst.value = want
		dst.value[i] = v
	case k < 3:
		x.what = "memory bound"
		steps = []step{func(q *gpu.Queue, o gpu.Order, b *gpu.Buffer) error {
			return q.Submit(o, gpu.Execute(s.way.c, to, b.Range(at, waySize), from))
		}}
		dst.value = s.way.of(want)
	case k < 4:
		x.what = "memory bound twice"
		steps = []step{
			func(q *gpu.Queue, o gpu.Order, b *gpu.Buffer) error {
				return q.Submit(o, gpu.Execute(m.c, b.Range(at, 8), from))
			},
			func(q *gpu.Queue, o gpu.Order, b *gpu.Buffer) error {
				return q.Submit(o, gpu.Execute(last.c, to, b.Range(at, 8)))
			},
		}
		dst.value = last.of(m.of(want))
	case k < 5:
		x.what = "memory recorded"
		mode, twice := gpu.Mode(r.IntN(3)), r.IntN(2) == 0
		steps = []step{func(q *gpu.Queue, o gpu.Order, b *gpu.Buffer) error {
			c, err := q.Device().NewCommandBuffer(gpu.CommandOptions{Mode: mode})
			if err != nil {
				return err
			}
			defer c.Close()
			_, err = c.Add(gpu.Execute(m.c, b.Range(at, 8), from))
			if twice { // record the copy to dst in a second recording
				next, err2 := q.Device().NewCommandBuffer(gpu.CommandOptions{Mode: mode})
				if err := errors.Join(err, err2, c.End()); err != nil {
					return err
				}
				defer next.Close()
				_, err = next.Add(gpu.Copy(to, b.Range(at, 8)))
				if err := errors.Join(err, next.End()); err != nil {
					return err
				}
				mid := new(gpu.Semaphore).At(1)
				if err := q.Submit(gpu.Order{Wait: o.Wait, Signal: []gpu.Point{mid}}, gpu.Execute(c)); err != nil {
					return err
				}
				o.Wait = []gpu.Point{mid}
				return q.Submit(o, gpu.Execute(next))
			}
			_, err2 := c.Add(gpu.Barrier())
			_, err3 := c.Add(gpu.Copy(to, b.Range(at, 8)))
			if err := errors.Join(err, err2, err3, c.End()); err != nil {
				return err
			}
			return q.Submit(o, gpu.Execute(c))
		}}
		dst.value = m.of(want)
	default:
		x.what = "memory of a pool"
		steps = []step{in, out}
		dst.value = want
	}
	other, middle := q.Device().Queue(r.IntN(3)), g.sem()
	x.passesOn = !closes // without closes, the last operation is a gpu.Free
	x.submit = func(o gpu.Order) error {
		b, err := testkit.AllocIn(g.allocator(q), gpu.Order{Wait: o.Wait, Signal: pts(middle, 1)}, p.pool, size)
		if err != nil {
			return err
		}
		at := uint64(1)
		for i, do := range steps {
			next := order(middle, at, middle, at+1)
			// If closes is true, Close frees the memory after the last use.
			if closes && i == len(steps)-1 {
				next.Signal, next.Free = o.Signal, o.Free
				defer b.Close()
			}
			if err := do([]*gpu.Queue{other, q}[i%2], next, b); err != nil {
				b.Close()
				return err
			}
			at++
		}
		if closes {
			return nil
		}
		// If the wait of the free fails, the free fails too. Then closing the buffer frees the
		// memory.
		if g.mode != sound && len(p.slots) == 0 {
			middle.OnReached(at, func(err error) {
				if err != nil {
					b.Close()
				}
			})
		}
		return other.Submit(gpu.Order{Wait: pts(middle, at), Signal: o.Signal, Free: o.Free}, gpu.Free(b))
	}
}

// excess makes the node allocate more than the limit of a pool. That allocation fails. If no pool
// of the device has a limit, the node is a host call that fails.
func (g *graph) excess(x *node, q *gpu.Queue) {
	for _, p := range g.supplies[q.Device()].pools {
		if p.limit == 0 {
			continue
		}
		x.what = "alloca beyond a limit"
		closes := g.r.IntN(2) == 0
		x.submit = func(o gpu.Order) error {
			var b *gpu.Buffer
			err := x.give(g.allocator(q), o, gpu.Alloc(&b, p.pool, p.limit+1))
			if err == nil && closes {
				b.Close()
			}
			return err
		}
		return
	}
	x.what = "failing host call"
	x.submit = func(o gpu.Order) error { return x.give(q, o, gpu.HostCall(func() error { return errHostCall })) }
}

// checkPools checks the pools that supply has made. It waits until none of their memory is
// allocated, and checks that no pool has exceeded its limit. It closes some of the pools.
func (g *graph) checkPools() {
	for _, dev := range g.devs {
		for _, p := range g.supplies[dev].pools[1:] {
			unused(g.t, p.pool)
			st, err := p.pool.Stats()
			must(g.t, err)
			if p.limit > 0 && st.ReservedHigh > p.limit {
				g.t.Errorf("a pool has had %d bytes, and may have %d", st.ReservedHigh, p.limit)
			}
			if g.r.IntN(2) == 0 {
				must(g.t, p.pool.Close())
			}
		}
	}
}

func TestSoakPool(t *testing.T) {
	d := 300 * time.Millisecond
	if *soak {
		d = time.Minute
	}
	cuda, hip, byStream := simdriver.CUDACaps(), simdriver.HIPCaps(), hipPoolCaps()
	for name, x := range map[string]struct {
		caps *driver.Caps
		o    gpu.PoolOptions
	}{
		"the driver's pool":         {&cuda, gpu.PoolOptions{}},
		"the driver's, by stream":   {&byStream, gpu.PoolOptions{}},
		"portable":                  {&hip, gpu.PoolOptions{}},
		"portable, from any thread": {&cuda, gpu.PoolOptions{Portable: true}},
	} {
		t.Run("B90 B98 "+name, func(t *testing.T) {
			dev := openDevice(t, newSim(t, simdriver.Config{Caps: x.caps}), 0, gpu.Options{Queues: 8})
			p, err := dev.NewPool(x.o)
			must(t, err)
			gputest.SoakPool(t, p, d)
		})
	}
}
