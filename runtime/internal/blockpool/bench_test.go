package blockpool

import (
	"fmt"
	"math/rand/v2"
	"testing"
)

func benchPool(b *testing.B, c Config) *Pool {
	p, err := New(newSource(), c)
	if err != nil {
		b.Fatal(err)
	}
	return p
}

// BenchmarkHitSame allocates and frees on one timeline.
func BenchmarkHitSame(b *testing.B) {
	p := benchPool(b, Config{})
	var o Order = &fakeOrder{}
	seq := uint64(0)
	b.ReportAllocs()
	for b.Loop() {
		x, err := p.Alloc(4096, 0, o)
		if err != nil {
			b.Fatal(err)
		}
		seq++
		if p.Free(x.Addr, Mark{0, seq}) != nil {
			b.Fatal("free")
		}
	}
	if s := p.Stats(); s.Misses > 1 || s.Waits > 0 {
		b.Fatalf("%+v", s)
	}
}

// BenchmarkHitCovered allocates on one timeline a block that another timeline has freed. The first
// timeline is ordered after the second.
func BenchmarkHitCovered(b *testing.B) {
	src := newSource()
	p, err := New(src, Config{SlabSize: 4096})
	if err != nil {
		b.Fatal(err)
	}
	o := &fakeOrder{}
	b.ReportAllocs()
	for b.Loop() {
		x, err := p.Alloc(4096, 0, o)
		if err != nil {
			b.Fatal(err)
		}
		o.cover[0][1]++
		if p.Free(x.Addr, Mark{1, o.cover[0][1]}) != nil {
			b.Fatal("free")
		}
	}
	if s := p.Stats(); s.Misses > 1 || s.Waits > 0 {
		b.Fatalf("%+v", s)
	}
}

// BenchmarkHitDone is like BenchmarkHitCovered, but no timeline is ordered after another, and all
// work is done.
func BenchmarkHitDone(b *testing.B) {
	p := benchPool(b, Config{SlabSize: 4096})
	o := &fakeOrder{}
	b.ReportAllocs()
	for b.Loop() {
		x, err := p.Alloc(4096, 0, o)
		if err != nil {
			b.Fatal(err)
		}
		o.done[1]++
		if p.Free(x.Addr, Mark{1, o.done[1]}) != nil {
			b.Fatal("free")
		}
	}
	if s := p.Stats(); s.Misses > 1 || s.Waits > 0 {
		b.Fatalf("%+v", s)
	}
}

// BenchmarkHitWait is like BenchmarkHitDone, but no work is known to be done, so a wait is needed.
func BenchmarkHitWait(b *testing.B) {
	p := benchPool(b, Config{SlabSize: 4096})
	seq := uint64(0)
	b.ReportAllocs()
	for b.Loop() {
		x, err := p.Alloc(4096, 0, never{})
		if err != nil {
			b.Fatal(err)
		}
		seq++
		if p.Free(x.Addr, Mark{1, seq}) != nil {
			b.Fatal("free")
		}
	}
	if s := p.Stats(); s.Misses > 1 || s.Waits == 0 {
		b.Fatalf("%+v", s)
	}
}

// BenchmarkSplitMerge cuts three blocks off a large one, and joins them again.
func BenchmarkSplitMerge(b *testing.B) {
	p := benchPool(b, Config{Initial: 1 << 20})
	b.ReportAllocs()
	for b.Loop() {
		var at [3]uint64
		for i := range at {
			x, err := p.Alloc(4096<<i, 0, nil)
			if err != nil {
				b.Fatal(err)
			}
			at[i] = x.Addr
		}
		for _, addr := range at {
			if p.Free(addr, Mark{}) != nil {
				b.Fatal("free")
			}
		}
	}
	if s := p.Stats(); s.Misses > 0 || s.Free != 1 {
		b.Fatalf("%+v", s)
	}
}

// BenchmarkMissSplit adds a slab to the pool each time, and returns it to the source.
func BenchmarkMissSplit(b *testing.B) {
	p := benchPool(b, Config{})
	b.ReportAllocs()
	for b.Loop() {
		x, err := p.Alloc(4096, 0, allDone{})
		if err != nil || p.Free(x.Addr, Mark{0, 1}) != nil || p.Maintain(0, allDone{}) != nil {
			b.Fatal(err)
		}
	}
	if s := p.Stats(); s.Hits > 0 {
		b.Fatalf("%+v", s)
	}
}

// A lagOrder is an Order in which all work is done except the last few submissions.
type lagOrder struct {
	seq uint64 // the last number of each timeline
	lag uint64
}

func (o *lagOrder) Done(_ int, seq uint64) bool          { return seq+o.lag <= o.seq }
func (o *lagOrder) After(_ int, on int, seq uint64) bool { return seq+o.lag/2 <= o.seq }

// BenchmarkMixed frees a random block and allocates one of another size, with a number of blocks
// live.
func BenchmarkMixed(b *testing.B) {
	for _, timelines := range []int{1, 4} {
		for _, n := range []int{10, 1000, 100_000} {
			b.Run(fmt.Sprintf("timelines=%d/live=%d", timelines, n), func(b *testing.B) {
				p := benchPool(b, Config{})
				o := &lagOrder{lag: 64}
				r := rand.New(rand.NewPCG(1, 2))
				type live struct {
					addr uint64
					tl   int
				}
				blocks := make([]live, n)
				alloc := func(i int) {
					size := uint64(1) << (8 + r.IntN(9))
					size += r.Uint64N(size)
					tl := r.IntN(timelines)
					x, err := p.Alloc(size, tl, o)
					if err != nil {
						b.Fatal(err)
					}
					blocks[i] = live{x.Addr, tl}
				}
				swap := func() {
					i := r.IntN(n)
					o.seq++
					if err := p.Free(blocks[i].addr, Mark{blocks[i].tl, o.seq}); err != nil {
						b.Fatal(err)
					}
					alloc(i)
				}
				for i := range n {
					alloc(i)
				}
				for range 5 * n {
					swap()
				}
				was := p.Stats()
				b.ReportAllocs()
				for b.Loop() {
					swap()
				}
				s := p.Stats()
				b.ReportMetric(float64(s.Reserved)/float64(s.UsedHigh), "reserved/used")
				b.ReportMetric(float64(s.Misses-was.Misses)/float64(b.N), "misses/op")
				b.ReportMetric(float64(s.Waits-was.Waits)/float64(b.N), "waits/op")
			})
		}
	}
}
