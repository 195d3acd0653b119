package memory

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/puregpu/puregpu/runtime/driver"
	"github.com/puregpu/puregpu/runtime/internal/blockpool"
	"github.com/puregpu/puregpu/runtime/internal/engine"
	"github.com/puregpu/puregpu/runtime/internal/errs"
	"github.com/puregpu/puregpu/runtime/internal/observe"
)

// makePortable makes p a portable pool: a blockpool over slabs that slabs.Grow allocates.
func (p *Pool) makePortable() (err error) {
	p.slabs.p, p.opt.Portable = p, true
	p.threshold.Store(p.opt.Threshold)
	p.blocks, err = blockpool.New(&p.slabs, blockpool.Config{MaxSize: p.limit(), Initial: p.opt.InitialSize})
	return err
}

// limit returns how many bytes the pool may have in use, or 0 if there is no limit. The sizes of a
// portable pool's blocks are multiples of Alignment. So MaxSize is rounded down if the pool is over
// a buffer, whose last bytes make no block. Otherwise it is rounded up, so that an allocation of
// MaxSize bytes fits. A driver may round the limit of a native pool up further.
func (p *Pool) limit() uint64 {
	if p.over != nil {
		return p.opt.MaxSize &^ (Alignment - 1)
	}
	return (p.opt.MaxSize + Alignment - 1) &^ (Alignment - 1) // 0 if this overflows
}

// makeOver makes a pool over a buffer.
func (p *Pool) makeOver(b *Buffer) error {
	switch {
	case b.dev != p.dev:
		return errs.Argument("new pool", "the buffer is of another device")
	case b.Late():
		return errs.Argument("new pool", "over memory from another pool, growing memory, or what stands for memory in a command buffer")
	case b.ReadOnly():
		return errs.Argument("new pool", "over a buffer that was imported for reading only")
	}
	if err := b.Hold(); err != nil {
		return err
	}
	var err error
	if p.blocks, err = blockpool.Fixed(uint64(b.mem.Ptr), b.mem.Size, blockpool.Config{}); err != nil {
		b.Release()
		return errs.Argument("new pool", "over memory without room for an allocation: %v", err)
	}
	p.threshold.Store(p.opt.Threshold)
	p.over, p.opt.Kind, p.opt.MaxSize, p.opt.Portable = b, b.mem.Kind, b.mem.Size, true
	return nil
}

// A slabs holds the driver allocations (slabs) of a portable pool. The blockpool calls Grow and
// Release one at a time.
type slabs struct {
	p   *Pool
	mu  sync.Mutex // protects mem, which other goroutines read; no other lock is taken while it is held
	mem []driver.Mem
}

// Grow allocates a slab. The driver's call runs on a new bound thread, and Grow waits for the call.
func (s *slabs) Grow(size uint64) (base, got uint64, err error) {
	d := s.p.dev
	var m driver.Mem
	began := time.Now()
	err = d.Engine.OnBound(func() (err error) {
		m, err = d.Engine.Native.Alloc(s.p.opt.Kind, size)
		return err
	})
	observe.Tell(d.Observer, observe.Grow, began, "", m.Size, err)
	if err != nil {
		return 0, 0, err
	}
	s.mu.Lock()
	s.mem = append(s.mem, m)
	s.mu.Unlock()
	return uint64(m.Ptr), m.Size, nil
}

// Release frees a slab. If no thread can be bound for that, the slab is freed when the device is
// closed.
func (s *slabs) Release(base, size uint64) error {
	d := s.p.dev
	s.mu.Lock()
	i := slices.IndexFunc(s.mem, func(m driver.Mem) bool { return uint64(m.Ptr) == base })
	m := s.mem[i]
	s.mem = slices.Delete(s.mem, i, i+1)
	s.mu.Unlock()
	// If Stay fails, Close of the device no longer waits for new calls. This call of Release is
	// safe even then: either Close itself makes it, to destroy the pool, or Close cannot destroy
	// the pool until this call has returned.
	if d.Engine.Stay() == nil {
		defer d.Engine.Leave()
	}
	asked := false
	began := time.Now()
	err := d.Engine.OnThread(func() error {
		asked = true
		return d.Engine.Native.Free(m)
	})
	observe.Tell(d.Observer, observe.Shrink, began, "", m.Size, err)
	if !asked {
		d.buffers.add(&Buffer{dev: d, mem: m, from: allocated})
	}
	return err
}

// number returns the number of a timeline in the blockpool. A new timeline gets the next number.
func (p *Pool) number(tl *engine.Timeline) int {
	if all := p.tls.Load(); all != nil {
		for i := range *all {
			if (*all)[i] == tl {
				return i
			}
		}
	}
	return p.newNumber(tl)
}

func (p *Pool) newNumber(tl *engine.Timeline) int {
	p.mu.Lock()
	defer p.mu.Unlock()
	var all []*engine.Timeline
	if known := p.tls.Load(); known != nil {
		all = *known
	}
	i := slices.Index(all, tl)
	if i < 0 {
		i = len(all)
		all = append(slices.Clip(all), tl)
		p.tls.Store(&all)
	}
	return i
}

// timeline returns the timeline with a number.
func (p *Pool) timeline(i int) *engine.Timeline { return (*p.tls.Load())[i] }

// A poolOrder is the blockpool.Order of a portable pool. It knows which work is done, and which
// work is ordered after other work.
type poolOrder Pool

func (p *Pool) order() *poolOrder { return (*poolOrder)(p) }

// Done reports whether a timeline's stream has passed seq.
func (o *poolOrder) Done(timeline int, seq uint64) bool {
	return (*Pool)(o).timeline(timeline).Passed(seq)
}

// After reports whether all work that is issued to one timeline from now on runs after the work
// with the number seq of another. The arguments timeline and other are the numbers of these
// timelines.
func (o *poolOrder) After(timeline, other int, seq uint64) bool {
	p := (*Pool)(o)
	return p.timeline(timeline).Covers(p.timeline(other), seq)
}

// keepsAll reports whether the pool keeps all memory until it is trimmed or closed.
func (p *Pool) keepsAll() bool { return p.threshold.Load() == KeepAll && !p.closed.Load() }

// maintain is called when a Free has been retired or has failed. The argument done is the Free's
// mark. maintain makes the reclaimer wait until the stream has passed this mark, and then give back
// the memory that the pool need not keep.
func (p *Pool) maintain(done engine.Mark) {
	if p.keepsAll() {
		return
	}
	keep := p.threshold.Load()
	p.dev.Engine.Reclaim(func() {
		done.Await(context.Background())
		if p.blocks == nil {
			if p.closed.Load() {
				p.dev.sweepPools()
			} else {
				// Some drivers do not trim by themselves. Memory that they keep counts as reserved.
				p.dev.Faces.Pools.TrimPool(p.native, keep)
			}
			return
		}
		p.dev.Engine.NotTaken(p.tidySoon())
	})
}

func (p *Pool) tidySoon() error {
	err := p.tidy()
	if p.closed.Load() {
		p.dev.sweepPools()
	}
	return err
}

// tidyIfClosed makes the reclaimer tidy the pool if it is closed.
func (p *Pool) tidyIfClosed() {
	if p.closed.Load() {
		p.dev.Engine.Reclaim(func() { p.dev.Engine.NotTaken(p.tidySoon()) })
	}
}

// hurry polls the timelines on which the pool has allocated or freed memory.
func (p *Pool) hurry() {
	if all := p.tls.Load(); all != nil {
		for _, l := range *all {
			l.Poll(l.Latest(), 1)
		}
	}
}

// tidy gives back memory that a portable pool need not keep. If the pool is closed and has no slabs
// left, tidy removes it from the device's list, and releases the buffer Pool.over, if there is one.
func (p *Pool) tidy() error {
	err := p.blocks.Maintain(p.threshold.Load(), p.order())
	if p.closed.Load() && p.blocks.Stats().Slabs == 0 && p.dev.pools.remove(p) && p.over != nil {
		p.over.Release()
	}
	return err
}
