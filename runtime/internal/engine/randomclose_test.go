package engine_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"github.com/puregpu/puregpu/runtime/driver"
	"github.com/puregpu/puregpu/runtime/driver/simdriver"
	"github.com/puregpu/puregpu/runtime/gpu"
	"github.com/puregpu/puregpu/runtime/internal/testkit"
)

// A mortal is a pool that is closed while other goroutines use it. Allocs from the pool may fail,
// but must not return memory that another buffer has.
type mortal struct {
	pool    *gpu.Pool
	limit   uint64        // in bytes; 0 means none
	at      int           // the pool is closed after this many nodes, or at the end of a shorter graph
	over    chan struct{} // closed when the memory of PoolOptions.Over is released; nil without Over
	closing atomic.Bool   // close has begun
	closed  atomic.Bool   // close has returned
}

func (g *graph) newMortals(dev *gpu.Device) {
	r := g.r
	for range r.IntN(3) {
		m := &mortal{at: r.IntN(400)}
		o := gpu.PoolOptions{Portable: r.IntN(2) == 0, Zero: r.IntN(4) == 0, Threshold: r.Uint64N(3) * blockSize}
		switch r.IntN(4) {
		case 0: // without a limit
		case 1:
			m.over = make(chan struct{})
			o.Portable, o.Threshold = false, 0
			var err error
			o.Over, err = dev.ImportHost(make([]byte, blockSize*(1+r.IntN(3))), func() { close(m.over) })
			must(g.t, err)
			m.limit = o.Over.Size()
		default:
			m.limit = blockSize * (1 + r.Uint64N(3))
			o.MaxSize = m.limit
		}
		m.pool = newPool(g.t, dev, o)
		if o.Over != nil {
			must(g.t, o.Over.Close())
		}
		g.mortals[dev] = append(g.mortals[dev], m)
	}
}

func (m *mortal) close() error {
	m.closing.Store(true)
	err := m.pool.Close()
	m.closed.Store(true)
	return err
}

// end closes the pool while another goroutine uses it. That goroutine also uses the closed pool
// once.
func (m *mortal) end(g *graph, k uint64) {
	var wg sync.WaitGroup
	wg.Go(func() {
		x := &meddler{g: g, r: rand.New(rand.NewPCG(g.seed, k))}
		for last := false; !last; {
			last = m.closed.Load()
			if err := x.useMortal(m); err != nil {
				g.t.Error(err)
			}
		}
	})
	if err := m.close(); err != nil && !errors.Is(err, driver.ErrLost) {
		g.t.Errorf("close of a pool: %v", err)
	}
	wg.Wait()
}

// wrong checks err, the result of an operation on the pool. It returns nil if that result is
// allowed. If closed is true, the pool was closed before the operation, and in mode sound, err must
// not be nil.
func (m *mortal) wrong(g *graph, closed bool, err error) error {
	switch {
	case err == nil && closed && g.mode == sound:
		return errors.New("the pool had been closed")
	case err == nil, m.closing.Load() && errors.Is(err, gpu.ErrClosed), m.limit > 0 && errors.Is(err, driver.ErrOutOfMemory):
		return nil
	case g.mode != sound && (errors.Is(err, gpu.ErrClosed) || errors.Is(err, driver.ErrLost) || errors.Is(err, driver.ErrOutOfMemory)):
		return nil
	}
	return err
}

// fromMortal makes the node allocate memory from a mortal of the queue's device, write it and read
// it. If the device has no mortal, fromMortal returns false.
func (g *graph) fromMortal(x *node, q *gpu.Queue) bool {
	all := g.mortals[q.Device()]
	if len(all) == 0 {
		return false
	}
	r, m := g.r, all[g.r.IntN(len(all))]
	x.what, x.may = "memory of a closing pool", []error{gpu.ErrClosed}
	if m.limit > 0 {
		x.may = append(x.may, driver.ErrOutOfMemory)
	}
	size, at, data, got := uint64(blockSize-8*r.IntN(8)), 8*r.Uint64N(32), g.bytes(8), make([]byte, 8)
	closes, other, middle := r.IntN(3) == 0, q.Device().Queue(r.IntN(3)), g.sem()
	x.passesOn = !closes
	x.submit = func(o gpu.Order) error {
		x.done.Semaphore.OnReached(x.done.Value, func(err error) {
			if err := m.wrong(g, false, err); err != nil {
				g.t.Errorf("%s: %v", x.what, err)
			}
		})
		closed := m.closed.Load()
		b, err := testkit.AllocIn(g.allocator(q), gpu.Order{Wait: o.Wait, Signal: pts(middle, 1)}, m.pool, size)
		if err != nil {
			return err
		}
		if closed && g.mode == sound {
			g.t.Errorf("%s: it had been closed", x.what)
		}
		in, out := order(middle, 1, middle, 2), order(middle, 2, middle, 3)
		if closes {
			out.Signal, out.Free = o.Signal, o.Free
			defer b.Close()
		}
		err = other.Submit(in, gpu.UploadCopy(b.Range(at, 8), data))
		if err == nil {
			err = q.Submit(out, gpu.Download(got, b.Range(at, 8)))
		}
		if err == nil && !closes {
			err = other.Submit(gpu.Order{Wait: pts(middle, 3), Signal: o.Signal, Free: o.Free}, gpu.Free(b))
		}
		if err != nil {
			b.Close()
			return err
		}
		middle.OnReached(3, func(err error) {
			if err != nil { // then the free fails too, and the memory stays allocated
				b.Close()
			}
		})
		return nil
	}
	x.check = func() error { return came(got, data) }
	return true
}

// A meddler queries, trims and configures objects that nodes use, and allocates from mortals (pools
// that are closed meanwhile). These calls must not disturb the nodes.
type meddler struct {
	g *graph
	r *rand.Rand
}

// meddle queries or trims one object, uses one mortal, or does nothing.
func (m *meddler) meddle() error {
	g, r := m.g, m.r
	dev := g.devs[r.IntN(len(g.devs))]
	known := func(err error) error {
		if g.mode != sound && (errors.Is(err, gpu.ErrClosed) || errors.Is(err, driver.ErrLost)) {
			return nil
		}
		return err
	}
	mortals, stable := g.mortals[dev], g.supplies[dev].pools[1:]
	switch k := r.IntN(8); {
	case k == 0:
		return known(dev.Trim())
	case k == 1:
		_ = dev.Stats()
		return nil
	case k == 2:
		if t := g.trace.tracer(); t != nil {
			t.Sample()
		}
		return nil
	case k == 3 && len(stable) > 0:
		p := stable[r.IntN(len(stable))]
		st, err := p.pool.Stats()
		if err == nil && p.limit > 0 && st.ReservedHigh > p.limit {
			err = fmt.Errorf("it may have %d bytes: %+v", p.limit, st)
		}
		if p.pool == g.shut {
			return known(err)
		}
		return known(errors.Join(err, p.pool.Trim(r.Uint64N(3)*blockSize)))
	case len(mortals) > 0:
		return m.useMortal(mortals[r.IntN(len(mortals))])
	}
	return nil
}

// useMortal uses a mortal once. It returns an error if the result is wrong.
func (m *meddler) useMortal(p *mortal) error {
	closed := p.closed.Load()
	what, err := m.use(p)
	if err = p.wrong(m.g, closed && what != "free", err); err != nil {
		return fmt.Errorf("%s of a pool that is closed meanwhile: %w", what, err)
	}
	return nil
}

func (m *meddler) use(p *mortal) (what string, err error) {
	switch r := m.r; r.IntN(8) {
	case 0:
		return "trim", p.pool.Trim(r.Uint64N(2) * blockSize)
	case 1:
		return "set threshold", p.pool.SetThreshold(r.Uint64N(3) * blockSize)
	case 2:
		_, err := p.pool.Reuse()
		return "reuse", err
	case 3, 4, 5:
		st, err := p.pool.Stats()
		if err == nil && p.pool.Options().Portable && (st.Used > st.Reserved || st.Used > st.UsedHigh || st.Reserved > st.ReservedHigh) {
			err = fmt.Errorf("it has %+v", st)
		}
		return "stats", err
	default: // the alloc and the free have no waits or signals: their order in the queue is enough
		q := p.pool.Device().Queue(r.IntN(3))
		b, err := testkit.AllocIn(q, gpu.Order{}, p.pool, blockSize)
		if err != nil {
			return "alloc", err
		}
		if r.IntN(2) == 0 {
			err = q.Submit(gpu.Order{}, gpu.Free(b))
			if errors.Is(err, gpu.ErrUnallocated) {
				// The alloc has failed. It has no signals, so only this error reports the failure.
				err = nil
			}
		}
		b.Close()
		return "free", err
	}
}

// askPools sets how long driver calls that query, configure or trim a pool take.
func (g *graph) askPools(d time.Duration) {
	for _, op := range []simdriver.Op{simdriver.OpPoolAttr, simdriver.OpSetPoolAttr, simdriver.OpTrimPool} {
		g.sim.SetLatency(op, d)
	}
}

// lastMortals allocates from each mortal that is still open, and closes the mortal. When all
// mortals are closed, lastMortals frees the memory with Frees that have no waits and no signals.
func (g *graph) lastMortals(ctx context.Context) {
	var last []func()
	for dev, all := range g.mortals {
		for i, m := range all {
			if m.closed.Load() {
				continue
			}
			q := dev.Queue(i)
			there := g.sem()
			b, err := testkit.AllocIn(q, gpu.Order{Signal: pts(there, 1)}, m.pool, blockSize)
			if err == nil {
				err = there.Wait(ctx, 1)
			}
			if m.limit > 0 && errors.Is(err, driver.ErrOutOfMemory) {
				// The pool has no free memory yet.
				must(g.t, errors.Join(m.close(), b.Close()))
				continue
			}
			must(g.t, err)
			must(g.t, m.close())
			last = append(last, func() {
				if err := q.Submit(gpu.Order{}, gpu.Free(b)); err != nil {
					g.t.Errorf("dealloca: %v", err)
				}
				b.Close()
			})
		}
	}
	time.Sleep(time.Duration(g.r.IntN(200)) * time.Microsecond) // time for closed pools to release unused memory
	for _, f := range last {
		f()
	}
}

// checkMortals checks that each device has only the native pools that are still open, and that
// closed pools have released the memory of PoolOptions.Over.
func (g *graph) checkMortals() {
	for i, dev := range g.devs {
		native := 0
		for _, p := range g.supplies[dev].pools[1:] {
			if !p.pool.Options().Portable {
				native++
			}
		}
		if g.far != nil && g.far.lentPool == dev { // the imported pool still exists, because one of its buffers is open
			native++
		}
		if !g.until(func() bool { return g.sim.Counters().Devices[i].Pools == native }) {
			g.t.Errorf("device %d has %d pools, and %d are open\n%s", i, g.sim.Counters().Devices[i].Pools, native, dump(dev))
		}
		for _, m := range g.mortals[dev] {
			if m.over != nil && !g.until(func() bool { return isClosed(m.over) }) {
				g.t.Errorf("device %d: the memory is not given back that a closed pool is over\n%s", i, dump(dev))
			}
		}
	}
}

func isClosed(c chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

// until waits up to a minute for a condition, and reports whether it became true.
func (g *graph) until(so func() bool) bool {
	for end := time.Now().Add(time.Minute); !so(); time.Sleep(50 * time.Microsecond) {
		if time.Now().After(end) {
			return false
		}
	}
	return true
}
