package simdriver_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"unsafe"

	"github.com/puregpu/puregpu/runtime/driver"
	"github.com/puregpu/puregpu/runtime/driver/simdriver"
)

// A poolWorld has streams that allocate, use and free memory of two pools. Events order the uses of
// each block.
type poolWorld struct {
	t       *testing.T
	r       *rand.Rand
	d       *simdriver.Driver
	devices []driver.Device
	streams []driver.Stream // stream i is on device i%2
	own     []driver.Function
	pools   []driver.Pool // pool i is on device i
	strict  bool          // streams wait only for the test's events, and not for frees

	mu       sync.Mutex
	executed map[driver.Stream]int // for each stream, the number of frees executed so far

	time   []int   // for each stream, the number of operations submitted
	frees  []int   // for each stream, the number of frees submitted
	seen   [][]int // seen[s][o]: how many operations of stream o come before the next operation of stream s
	blocks []*poolBlock
	live   []*poolBlock // blocks that are not freed yet
	where  []string     // address of each allocation
}

type poolBlock struct {
	m     driver.Mem
	pool  int
	value byte // value of its bytes; 0 if unknown
	last  int  // stream that used the block last
	at    int  // time of that use in the stream
	freed bool // the last use was the free
	free  int  // number of the free among the frees of its stream
}

const poolStreams = 4

func newPoolWorld(t *testing.T, seed uint64, c simdriver.Config, limit uint64) *poolWorld {
	c.Devices, c.Seed = 2, seed
	c.Kernels = kernels(map[string]any{
		"own": func(g *simdriver.Grid, p driver.Ptr, n uint64, old, value byte) error {
			b, err := simdriver.View[byte](g, p, int(n))
			if err != nil {
				return err
			}
			for i := range b {
				if old != 0 && b[i] != old {
					return fmt.Errorf("byte %d of %d at %#x is %d, not %d", i, n, p, b[i], old)
				}
				b[i] = value
			}
			return nil
		},
	})
	w := &poolWorld{t: t, r: rand.New(rand.NewPCG(seed, 2)), strict: limit == 0, executed: make(map[driver.Stream]int)}
	c.OnExecute = func(e simdriver.Executed) {
		if e.Op == simdriver.OpFreeAsync {
			w.mu.Lock()
			w.executed[e.Stream]++
			w.mu.Unlock()
		}
	}
	w.d, w.devices = open(t, c)
	for i := range poolStreams {
		v := w.devices[i%2]
		w.streams = append(w.streams, stream(t, v))
		w.own = append(w.own, function(t, v, "own"))
		w.time, w.frees = append(w.time, 0), append(w.frees, 0)
		w.seen = append(w.seen, make([]int, poolStreams))
	}
	for i, v := range w.devices {
		w.pools = append(w.pools, pool(t, v, limit))
		check(t, pools(v).AccessPool(w.pools[i], w.devices[1-i], true))
		if w.strict {
			check(t, pools(v).SetPoolAttr(w.pools[i], driver.PoolReuseInternal, 0))
		}
	}
	return w
}

// before orders the next operations of stream s after the first operations of stream o. time is the
// number of these first operations.
func (w *poolWorld) before(s, o, time int) {
	if s == o || w.seen[s][o] >= time {
		return
	}
	e := record(w.t, w.devices[o%2], w.streams[o])
	check(w.t, w.devices[s%2].StreamWait(w.streams[s], e))
	for i := range poolStreams {
		w.seen[s][i] = max(w.seen[s][i], w.seen[o][i])
	}
	w.seen[s][o] = w.time[o]
}

// alloc allocates a block in a stream. It checks that all other blocks at the same addresses were
// freed and, if w.strict is set, that they cannot still be in use.
func (w *poolWorld) alloc(s int) {
	i := w.r.IntN(2)
	n := 1 + w.r.Uint64N(1<<(1+w.r.UintN(14)))
	v := w.devices[s%2]
	m, err := pools(v).AllocAsync(w.streams[s], w.pools[i], n)
	if err != nil && !w.strict {
		return // no room in the pool
	}
	check(w.t, err)
	for _, b := range w.blocks {
		if b.m.Ptr >= m.Ptr+driver.Ptr(m.Size) || m.Ptr >= b.m.Ptr+driver.Ptr(b.m.Size) {
			continue
		}
		if !b.freed {
			w.t.Fatalf("%d bytes at %#x: %d at %#x are not freed", m.Size, m.Ptr, b.m.Size, b.m.Ptr)
		}
		ordered := b.last == s || w.seen[s][b.last] >= b.at
		if !ordered && w.strict && !w.gone(b) {
			w.t.Fatalf("%d bytes at %#x in stream %d: the free of %d at %#x in stream %d may come later", m.Size, m.Ptr, s, b.m.Size, b.m.Ptr, b.last)
		}
	}
	w.time[s]++
	b := &poolBlock{m: m, pool: i, last: s, at: w.time[s]}
	w.blocks, w.live = append(w.blocks, b), append(w.live, b)
	w.where = append(w.where, fmt.Sprintf("%d+%x", i, m.Ptr&(1<<48-1)))
}

// use checks the contents of a block in a stream, and writes new contents.
func (w *poolWorld) use(s int, b *poolBlock) {
	w.before(s, b.last, b.at)
	value := byte(1 + w.r.IntN(255))
	check(w.t, launch(w.devices[s%2], w.streams[s], w.own[s],
		unsafe.Pointer(&b.m.Ptr), unsafe.Pointer(&b.m.Size), unsafe.Pointer(&b.value), unsafe.Pointer(&value)))
	w.time[s]++
	b.value, b.last, b.at = value, s, w.time[s]
}

// free frees a live block in a stream.
func (w *poolWorld) free(s, i int) {
	b := w.live[i]
	w.before(s, b.last, b.at)
	v := w.devices[s%2]
	check(w.t, pools(v).FreeAsync(w.streams[s], b.m))
	w.time[s]++
	b.freed, b.last, b.at = true, s, w.time[s]
	w.frees[s]++
	b.free = w.frees[s]
	w.live[i] = w.live[len(w.live)-1]
	w.live = w.live[:len(w.live)-1]
}

func (w *poolWorld) act() {
	s := w.r.IntN(poolStreams)
	switch k := w.r.IntN(10); {
	case k < 4 || len(w.live) == 0:
		w.alloc(s)
	case k < 6:
		w.use(s, w.live[w.r.IntN(len(w.live))])
	case k < 9:
		w.free(s, w.r.IntN(len(w.live)))
	default:
		o := w.r.IntN(poolStreams)
		w.before(s, o, w.time[o])
	}
	for range w.r.IntN(3) {
		w.d.Step()
	}
}

// gone reports whether the free of a block has executed.
func (w *poolWorld) gone(b *poolBlock) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return b.freed && w.executed[w.streams[b.last]] >= b.free
}

// used returns the number of used bytes in each pool. Nothing may be executing.
func (w *poolWorld) used() []uint64 {
	used := make([]uint64, 2)
	for _, b := range w.blocks {
		if !w.gone(b) {
			used[b.pool] += (b.m.Size + 511) / 512 * 512
		}
	}
	return used
}

// drain waits until all streams are idle.
func (w *poolWorld) drain() {
	var ends []driver.Event
	for i, s := range w.streams {
		ends = append(ends, record(w.t, w.devices[i%2], s))
	}
	w.d.Run()
	for i, e := range ends {
		check(w.t, wait(w.t, w.devices[i%2], e))
	}
}

func (w *poolWorld) balanced() {
	for i, want := range w.used() {
		v, p := w.devices[i], w.pools[i]
		got, high, reserved := attr(w.t, v, p, driver.PoolUsed), attr(w.t, v, p, driver.PoolUsedHigh), attr(w.t, v, p, driver.PoolReserved)
		live := uint64(0)
		for _, b := range w.live {
			if b.pool == i {
				live += (b.m.Size + 511) / 512 * 512
			}
		}
		if want = min(want, reserved); got != want || high < got || reserved < live {
			w.t.Fatalf("pool %d: %d used, want %d; the most was %d; %d reserved", i, got, want, high, reserved)
		}
	}
}

// TestPoolModel submits random work to streams that share pools. It checks that blocks share
// addresses only if stream order separates them, that contents stay until the free, and that the
// pools' properties are right.
func TestPoolModel(t *testing.T) {
	hip := simdriver.HIPCaps()
	hip.Pools = true
	for _, c := range []struct {
		name  string
		c     simdriver.Config
		limit uint64
	}{
		{"concurrent", simdriver.Config{}, 0},
		{"deterministic", simdriver.Config{Deterministic: true}, 0},
		{"hip", simdriver.Config{Caps: &hip}, 0},
		{"full", simdriver.Config{}, 128 * kib},
		{"full, deterministic", simdriver.Config{Deterministic: true}, 128 * kib},
	} {
		t.Run(c.name, func(t *testing.T) {
			for seed := range uint64(8) {
				w := newPoolWorld(t, seed, c.c, c.limit)
				for range 3 {
					for range 150 {
						w.act()
						if c.c.Deterministic && w.r.IntN(10) == 0 {
							w.balanced()
						}
					}
					w.drain()
					w.balanced()
				}
				for len(w.live) > 0 {
					w.free(w.r.IntN(poolStreams), 0)
				}
				w.drain()
				w.balanced()
				for i, v := range w.devices {
					check(t, pools(v).TrimPool(w.pools[i], 0))
					if n := attr(t, v, w.pools[i], driver.PoolReserved); n != 0 {
						t.Fatalf("%d bytes are reserved at the end", n)
					}
				}
				if c := w.d.Counters().Devices[0]; c.PoolAllocations != 0 || c.Used != 0 {
					t.Fatalf("counters %+v", c)
				}
			}
		})
	}
}

// TestPoolReproducible checks that the same calls and seed give the same addresses.
func TestPoolReproducible(t *testing.T) {
	places := func() []string {
		w := newPoolWorld(t, 1, simdriver.Config{Deterministic: true}, 0)
		for range 300 {
			w.act()
		}
		w.drain()
		return w.where
	}
	if a, b := places(), places(); !slices.Equal(a, b) {
		t.Errorf("two runs allocate at different addresses: %v, %v", a, b)
	}
}
