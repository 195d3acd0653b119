package blockpool

import (
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/puregpu/puregpu/runtime/driver"
)

var seed = flag.Uint64("blockpool.seed", 0, "seed of the random test; 0 takes one")

// A trace is a list of bytes that chooses the next operations.
type trace struct{ data []byte }

func (c *trace) more() bool { return len(c.data) > 0 }

// below returns a number less than n. n is at most 256.
func (c *trace) below(n int) int {
	if len(c.data) == 0 {
		return 0
	}
	b := c.data[0]
	c.data = c.data[1:]
	return int(b) % n
}

// A unit is the model's view of one aligned piece of memory.
type unit struct {
	live int  // the block that contains it, or 0
	mark Mark // if the unit is free: the mark behind the unit's last use
}

// A held is a live block.
type held struct {
	id   int
	b    Block
	on   int
	was  []Mark // the marks that the block's units had when they were free
	used bool   // the timeline has waited for b.Wait, or need not wait
}

// A world is a pool with a model of it.
type world struct {
	t         testing.TB
	c         trace
	p         *Pool
	src       *fakeSource // nil for a fixed pool
	rule      WaitRule
	align     uint64
	limit     uint64
	keep      uint64 // the argument of Maintain
	timelines int
	order     fakeOrder
	issued    [8]uint64
	slabs     map[uint64][]unit // by address of the first unit
	live      []held
	lastID    int
	used      uint64
	high      uint64
	failures  bool
}

const fixedBase = 1<<20 + 40 // deliberately not aligned to a block

func newWorld(t testing.TB, data []byte) *world {
	w := &world{t: t, c: trace{data}, slabs: map[uint64][]unit{}}
	w.timelines = 1 + w.c.below(4)
	w.rule = WaitRule(w.c.below(3))
	w.align = []uint64{256, 64, 1, 4096}[w.c.below(4)]
	c := Config{Align: w.align, Waits: w.rule}
	var err error
	if w.c.below(4) == 0 {
		w.limit = w.align * 100
		w.p, err = Fixed(fixedBase, w.limit+w.align-1, c)
		if err == nil {
			w.adopt(fixedBase, w.limit+w.align-1)
		}
	} else {
		w.src = newSource()
		w.src.gap = []uint64{0, 1 << 16}[w.c.below(2)]
		w.src.capacity = []uint64{0, 150 * w.align}[w.c.below(2)]
		w.limit = 200 * w.align
		c.MaxSize = w.limit
		c.SlabSize = uint64(1+w.c.below(64)) * w.align
		w.keep = uint64(w.c.below(100)) * w.align
		w.failures = w.c.below(2) == 0
		fail := func(uint64) error {
			if w.failures && w.c.below(4) == 0 {
				return errInjected
			}
			return nil
		}
		w.src.failGrow, w.src.failBack = fail, fail
		w.p, err = New(w.src, c)
	}
	if err != nil {
		t.Fatal(err)
	}
	return w
}

func (w *world) adopt(base, size uint64) {
	from, to := w.p.inner(base, size)
	w.slabs[from] = make([]unit, (to-from)/w.align)
}

// sync updates the model's slabs from the source's, and checks that only entirely free slabs were
// released.
func (w *world) sync() {
	if w.src == nil {
		return
	}
	for base, units := range w.slabs {
		if _, ok := w.src.slabs[base]; ok {
			continue
		}
		for i, u := range units {
			if u.live != 0 || !w.done(u.mark) {
				w.t.Fatalf("slab at %#x was released with %+v at unit %d", base, u, i)
			}
		}
		delete(w.slabs, base)
	}
	for base, size := range w.src.slabs {
		if _, ok := w.slabs[base]; !ok {
			w.adopt(base, size)
		}
	}
}

func (w *world) done(m Mark) bool { return m.Seq == 0 || w.order.done[m.Timeline] >= m.Seq }

// after reports whether a timeline needs no wait for a mark.
func (w *world) after(on int, m Mark) bool {
	return w.done(m) || m.Timeline == on || w.order.cover[on][m.Timeline] >= m.Seq
}

// room looks for n adjacent free units. The result none says whether some need no wait, and the
// result one whether some need waits for at most one timeline.
func (w *world) room(n int, on int) (none, one bool) {
	for _, units := range w.slabs {
		for i := range units {
			waits := -1
			for j := i; j < len(units) && units[j].live == 0; j++ {
				if m := units[j].mark; !w.after(on, m) {
					if waits >= 0 && waits != m.Timeline {
						break
					}
					waits = m.Timeline
				}
				if j-i+1 == n {
					one = true
					none = none || waits < 0
					break
				}
			}
		}
	}
	return none, one
}

func (w *world) units(addr, size uint64) []unit {
	for base, units := range w.slabs {
		if addr >= base && addr < base+uint64(len(units))*w.align {
			i := (addr - base) / w.align
			n := size / w.align
			if i+n > uint64(len(units)) {
				w.t.Fatalf("block of %d bytes at %#x ends behind its slab", size, addr)
			}
			return units[i : i+n]
		}
	}
	w.t.Fatalf("block at %#x is in no slab", addr)
	return nil
}

func (w *world) alloc() {
	on := w.c.below(w.timelines)
	n := uint64(1 + w.c.below(24))
	if w.c.below(16) == 0 {
		n *= 8
	}
	size := n*w.align - uint64(w.c.below(int(min(w.align, 256))))
	none, one := w.room(int(n), on)
	was := w.p.Stats()
	grows := 0
	if w.src != nil {
		grows = w.src.grows
	}
	b, err := w.p.Alloc(size, on, &w.order)
	w.sync()
	asked := w.src != nil && w.src.grows > grows
	if asked && (none || one && w.rule == WaitThenGrow) {
		w.t.Fatalf("%d units for %d: grown where there was room (%t, %t)", n, on, none, one)
	}
	if err != nil {
		if none || one && w.rule != NeverWait {
			w.t.Fatalf("%d units for %d: %v; there was room (%t, %t)", n, on, err, none, one)
		}
		var e *AllocError
		if !errors.As(err, &e) || e.Size != size || e.Used != w.used || e.Reserved != w.p.Stats().Reserved {
			w.t.Fatalf("alloc of %d: %v", size, err)
		}
		if !errors.Is(err, driver.ErrOutOfMemory) && !errors.Is(err, errInjected) {
			w.t.Fatalf("alloc of %d: not an out-of-memory error: %v", size, err)
		}
		return
	}
	wait := b.Wait != Mark{}
	switch {
	case b.Size != n*w.align || b.Addr%w.align != 0:
		w.t.Fatalf("got %d bytes at %#x, not %d", b.Size, b.Addr, n*w.align)
	case wait && (none || w.rule == NeverWait || w.after(on, b.Wait)):
		w.t.Fatalf("wait for %v on %d; none was needed", b.Wait, on)
	case w.p.Stats().Waits-was.Waits != map[bool]uint64{true: 1}[wait]:
		w.t.Fatal("waits are not counted")
	}
	w.lastID++
	h := held{id: w.lastID, b: b, on: on}
	needed := false
	units := w.units(b.Addr, b.Size)
	for i := range units {
		u := &units[i]
		if u.live != 0 {
			w.t.Fatalf("block at %#x overlaps block %d", b.Addr, u.live)
		}
		if !w.after(on, u.mark) {
			if u.mark.Timeline != b.Wait.Timeline || u.mark.Seq > b.Wait.Seq {
				w.t.Fatalf("block at %#x for %d has %v, and waits for %v", b.Addr, on, u.mark, b.Wait)
			}
			needed = needed || u.mark == b.Wait
		}
		h.was = append(h.was, u.mark)
		u.live = h.id
	}
	if wait && !needed {
		w.t.Fatalf("block at %#x for %d waits for %v, which nothing needs", b.Addr, on, b.Wait)
	}
	if !wait || w.c.below(4) != 0 {
		h.used = true
		w.wait(on, b.Wait)
	}
	w.live = append(w.live, h)
	w.used += b.Size
	w.high = max(w.high, w.used)
}

// wait makes a timeline wait for a mark, and for everything before it.
func (w *world) wait(on int, m Mark) {
	if m.Seq == 0 || m.Timeline == on {
		return
	}
	o := &w.order
	o.cover[on][m.Timeline] = max(o.cover[on][m.Timeline], m.Seq)
	if m.Seq == w.issued[m.Timeline] {
		for i, seq := range o.cover[m.Timeline] {
			if i != on {
				o.cover[on][i] = max(o.cover[on][i], seq)
			}
		}
	}
}

func (w *world) free() {
	if len(w.live) == 0 {
		return
	}
	i := w.c.below(min(len(w.live), 256))
	h := w.live[i]
	w.live[i] = w.live[len(w.live)-1]
	w.live = w.live[:len(w.live)-1]
	units := w.units(h.b.Addr, h.b.Size)
	w.used -= h.b.Size
	if !h.used || w.c.below(16) == 0 {
		// Sometimes cancel although the timeline has waited: the old marks still hold.
		if err := w.p.Cancel(h.b.Addr); err != nil {
			w.t.Fatal(err)
		}
		for i := range units {
			units[i] = unit{mark: h.was[i]}
		}
		return
	}
	m := Mark{Timeline: h.on}
	if w.c.below(4) == 0 {
		m.Timeline = w.c.below(w.timelines)
	}
	switch w.c.below(8) {
	case 0:
		m = Mark{}
	case 1:
		m.Seq = w.issued[m.Timeline]
	default:
		w.issued[m.Timeline]++
		m.Seq = w.issued[m.Timeline]
	}
	if err := w.p.Free(h.b.Addr, m); err != nil {
		w.t.Fatal(err)
	}
	if m.Seq == 0 {
		m = Mark{}
	}
	for i := range units {
		units[i] = unit{mark: m}
	}
}

// misuse makes calls that must fail and change nothing.
func (w *world) misuse() {
	was := w.p.Stats()
	call := func(addr uint64, want error) {
		if w.c.below(2) == 0 {
			if err := w.p.Free(addr, Mark{}); !errors.Is(err, want) {
				w.t.Fatalf("free of %#x: %v, not %v", addr, err, want)
			}
		} else if err := w.p.Cancel(addr); !errors.Is(err, want) {
			w.t.Fatalf("cancel of %#x: %v, not %v", addr, err, want)
		}
	}
	call(42, ErrUnknown)
	if len(w.live) > 0 {
		if b := w.live[w.c.below(min(len(w.live), 256))].b; b.Size > 1 {
			call(b.Addr+1+uint64(w.c.below(256))%(b.Size-1), ErrInside)
		}
	}
	for base, units := range w.slabs {
		for i, u := range units {
			if u.live == 0 {
				call(base+uint64(i)*w.align, ErrDoubleFree)
				break
			}
		}
		break
	}
	if err := w.p.Free(1<<40, Mark{MaxTimelines, 1}); !errors.Is(err, ErrTimeline) {
		w.t.Fatal(err)
	}
	if now := w.p.Stats(); now != was {
		w.t.Fatalf("misuse changed %+v to %+v", was, now)
	}
}

func (w *world) check() {
	w.p.verify(w.t)
	s := w.p.Stats()
	reserved := w.limit + w.align - 1
	if w.src != nil {
		reserved = w.src.held
		if s.Reserved > w.limit || s.Slabs != len(w.src.slabs) {
			w.t.Fatalf("%+v; the limit is %d and the source has %d slabs", s, w.limit, len(w.src.slabs))
		}
	}
	if s.Used != w.used || s.UsedHigh != w.high || s.Live != len(w.live) || s.Reserved != reserved || s.ReservedHigh < reserved {
		w.t.Fatalf("%+v; used are %d (%d) in %d blocks, reserved %d", s, w.used, w.high, len(w.live), reserved)
	}
}

func (w *world) step() {
	switch op := w.c.below(32); {
	case op < 14:
		w.alloc()
	case op < 24:
		w.free()
	case op < 26:
		tl := w.c.below(w.timelines)
		if todo := w.issued[tl] - w.order.done[tl]; todo > 0 {
			w.order.done[tl] += 1 + uint64(w.c.below(int(min(todo, 256))))
		}
	case op < 28:
		on, tl := w.c.below(w.timelines), w.c.below(w.timelines)
		if n := w.issued[tl]; n > 0 {
			w.wait(on, Mark{tl, n - uint64(w.c.below(int(min(n, 4))))})
		}
	case op == 28:
		err := w.p.Maintain(w.keep, &w.order)
		if err != nil && !errors.Is(err, errInjected) {
			w.t.Fatal(err)
		}
		w.sync()
	case op == 29:
		keep := uint64(w.c.below(256)) * w.align
		was := w.p.Stats().Reserved
		err := w.p.Trim(keep, &w.order)
		if err != nil && !errors.Is(err, errInjected) {
			w.t.Fatal(err)
		}
		if now := w.p.Stats().Reserved; now < min(was, keep) {
			w.t.Fatalf("trimmed from %d to %d, not to %d", was, now, keep)
		}
		w.sync()
	case op == 30:
		w.misuse()
	}
}

// run plays a trace and then gives everything back.
func run(t testing.TB, data []byte) {
	w := newWorld(t, data)
	for w.c.more() {
		w.step()
		w.check()
	}
	closed := len(w.live)%2 == 0
	w.failures = false
	if closed {
		live, err := w.p.Close(&w.order)
		w.sync()
		if live != len(w.live) || err != nil {
			t.Fatalf("close: %d live of %d, %v", live, len(w.live), err)
		}
		if _, err := w.p.Alloc(1, 0, nil); !errors.Is(err, ErrClosed) {
			t.Fatal(err)
		}
	}
	for len(w.live) > 0 {
		w.free()
	}
	w.order.done = w.issued
	var err error
	if closed {
		err = w.p.Maintain(w.keep, &w.order)
	} else {
		err = w.p.Trim(0, &w.order)
	}
	w.p.verify(t)
	s := w.p.Stats()
	if err != nil || s.Used != 0 || s.Live != 0 || s.Reserved != 0 && (closed || w.src != nil) || w.src != nil && w.src.held != 0 {
		t.Fatalf("left at the end: %+v, %v", s, err)
	}
}

// TestRandom plays random traces on a pool and on a model of it that remembers every unit's mark.
func TestRandom(t *testing.T) {
	first := *seed
	if first == 0 {
		first = rand.Uint64()
	}
	rounds := uint64(300)
	if testing.Short() {
		rounds = 60
	}
	for i := range rounds {
		t.Run(fmt.Sprint(first+i), func(t *testing.T) {
			run(t, randomTrace(first+i))
		})
		if t.Failed() {
			t.Fatalf("failed with -blockpool.seed=%d", first+i)
		}
	}
}

func randomTrace(seed uint64) []byte {
	r := rand.New(rand.NewPCG(seed, 2))
	data := make([]byte, 200+r.IntN(3000))
	for i := range data {
		data[i] = byte(r.Uint32())
	}
	return data
}

func FuzzPool(f *testing.F) {
	for i := range uint64(8) {
		f.Add(randomTrace(i)[:200])
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		if len(data) > 1<<12 {
			t.Skip("too long to be of use")
		}
		run(t, data)
	})
}
