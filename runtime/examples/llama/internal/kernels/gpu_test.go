package kernels

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"sync"
	"testing"

	"github.com/puregpu/puregpu/runtime/gpu"
)

type shape struct {
	name string
	d    Dims
	rows []int
}

// shapes returns models for the comparison of GPUs with twins.
func shapes() []shape {
	list := []shape{
		{"tiny", Dims{Layers: 2, Width: 64, Heads: 2, KVHeads: 1, HeadDim: 64, FFN: 64, Vocab: 97, MaxPages: 8}, []int{1, 2, 5}},
		{"uneven", Dims{Layers: 1, Width: 192, Heads: 6, KVHeads: 2, HeadDim: 64, FFN: 320, Vocab: 1001, MaxPages: 150}, []int{1, 9, 33, 64}},
		{"wide heads", Dims{Layers: 2, Width: 512, Heads: 8, KVHeads: 1, HeadDim: 128, FFN: 704, Vocab: 500, MaxPages: 20}, []int{1, 16, 17}},
		{"one head of keys", Dims{Layers: 1, Width: 1024, Heads: 20, KVHeads: 1, HeadDim: 64, FFN: 1088, Vocab: 128, MaxPages: 40}, []int{1, 8}},
		{"large", Dims{Layers: 1, Width: 2048, Heads: 32, KVHeads: 8, HeadDim: 64, FFN: 5632, Vocab: 2000, MaxPages: 36}, []int{1, 16, 64}},
		{"8 billion", Dims{Layers: 1, Width: 4096, Heads: 32, KVHeads: 8, HeadDim: 128, FFN: 1792, Vocab: 300, MaxPages: 20}, []int{1, 4, 32}},
	}
	var all []shape
	for _, s := range list {
		for kind := range 4 {
			s := s
			s.d.Eps, s.d.RopeFactor, s.d.Half, s.d.FP8 = 1e-5, 1, int32(kind&1), int32(kind>>1)
			s.name = fmt.Sprintf("%s, %s", s.name, []string{"bfloat16", "float16", "fp8 and bfloat16", "fp8 and float16"}[kind])
			if kind == 0 || s.d.Width <= 512 || (kind == 2 && s.d.Width == 2048) {
				all = append(all, s)
			}
		}
	}
	return all
}

// limit returns how far results may differ from the twin's, relative to their size. Rounding a norm
// up instead of down changes a result more than another order of a sum does.
func (s step) limit(d *Dims) float64 {
	limit := 0.0005
	if s.halves != (gpu.Slice[uint16]{}) {
		limit = 0.002
	}
	if d.Half == 0 {
		limit *= 8
	}
	return limit
}

// TestGPU compares each operation on a GPU with its twin.
func TestGPU(t *testing.T) {
	dev, sim := openGPU(t), openSim(t)
	var worst differences
	t.Run("shapes", func(t *testing.T) { testShapes(t, dev, sim, &worst) })
	worst.print()
}

func testShapes(t *testing.T, dev, sim *gpu.Device, worst *differences) {
	for i, s := range shapes() {
		t.Run(s.name, func(t *testing.T) {
			t.Parallel()
			g, w := newWorld(t, dev, s.d, MaxRows, false, uint64(i)), newWorld(t, sim, s.d, MaxRows, false, uint64(i))
			most := int(s.d.MaxPages) * PageTokens
			for _, rows := range s.rows {
				// Rows with different slots and without a slot, and lengths around the borders of
				// pages and tiles.
				active, position := make([]int32, MaxRows), make([]int32, MaxRows)
				for r, p := range w.r.Perm(MaxRows) {
					active[r] = int32(p)
					if r%5 == 4 {
						active[r] = -1
					}
					position[p] = int32(min([]int{most - 1 - r, 62 + r, most * r / MaxRows, r}[r%4], most-1))
					position[p] = max(position[p], 0)
				}
				for _, x := range []*world{g, w} {
					x.do(x.active.Upload(active))
					x.setPositions(position)
				}
				compare(t, g, w, g.b, w.b, append(g.steps(), g.ropeRows(rows)), append(w.steps(), w.ropeRows(rows)), rows, worst)
			}
			for _, c := range []struct{ rows, n, position int }{{8, 5, 0}, {80, 70, 13}, {128, 128, most - 128}, {3, 1, most - 1}} {
				if c.position < 0 || c.position+c.n > most {
					continue
				}
				g.source.Seed(uint64(c.rows), 3)
				w.source.Seed(uint64(c.rows), 3)
				gb, gs := g.chunkSteps(c.rows, 2, c.position, c.n)
				wb, ws := w.chunkSteps(c.rows, 2, c.position, c.n)
				compare(t, g, w, gb, wb, gs, ws, c.rows, worst)
				if a, b := get(g, g.s.Position), get(w, w.s.Position); !slices.Equal(a, b) {
					t.Errorf("the chunk at %d left positions %v, want %v", c.position, a, b)
				}
			}
		})
	}
}

// ropeRows returns a step that runs RopeRows on a product of its own.
func (w *world) ropeRows(rows int) step {
	w.source.Seed(uint64(rows), 4)
	qkv := put(w, w.halves(rows*w.d.QKVRows(), -2, 2))
	return step{name: "rope rows", halves: w.b.Q, width: int(w.d.Heads * w.d.HeadDim), ops: func(n int) []gpu.Op {
		return w.k.RopeRows(n, w.active, &w.s, int(w.d.Layers)-1, qkv, w.b)
	}}
}

// differences holds the largest difference of each operation.
type differences struct {
	mu   sync.Mutex
	list map[string]float64
}

func (d *differences) add(name string, e float64) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.list == nil {
		d.list = map[string]float64{}
	}
	d.list[name] = max(d.list[name], e)
}

func (d *differences) print() {
	for _, name := range slices.Sorted(maps.Keys(d.list)) {
		fmt.Printf("%-16s differs from its twin by at most %.2g\n", name, d.list[name])
	}
}

// compare runs each step on buffers gb of a GPU and wb of a simulated GPU. Before each step it
// fills both with the same random numbers.
func compare(t *testing.T, g, w *world, gb, wb *Buffers, gs, ws []step, rows int, worst *differences) {
	t.Helper()
	for i, s := range gs {
		g.source.Seed(uint64(i), uint64(rows))
		w.source.Seed(uint64(i), uint64(rows))
		g.fill(gb, rows)
		w.fill(wb, rows)
		g.do(s.ops(rows)...)
		w.do(ws[i].ops(rows)...)
		e := differ(g.resultOf(s, rows), w.resultOf(ws[i], rows))
		worst.add(s.name, e)
		if !(e <= s.limit(&w.d)) {
			t.Errorf("%s, %d rows: differs from the twin by %.3g, and %.3g is allowed", s.name, rows, e, s.limit(&w.d))
		}
		if slices.Contains([]string{"qkv", "rope chunk", "rope rows"}, s.name) {
			compareCaches(t, s.name, g, w)
		}
	}
}

// compareCaches compares all keys and values, and then copies the cache of w to that of g.
func compareCaches(t *testing.T, name string, g, w *world) {
	t.Helper()
	got, want := get(g, g.cache()), get(w, w.cache())
	bad, first := 0, -1
	for i := range got {
		if a, b := g.float(got[i]), w.float(want[i]); !(math.Abs(a-b) <= 0.02*(1+math.Abs(b))) {
			if bad++; first < 0 {
				first = i
			}
		}
	}
	if bad > 0 {
		t.Errorf("%s: %d numbers of the cache differ from the twin's: number %d is %v, want %v", name, bad, first, g.float(got[first]), w.float(want[first]))
	}
	g.do(g.cache().Upload(want))
}

// TestGPUSampling compares the chosen tokens with the twin's. They must be the same.
func TestGPUSampling(t *testing.T) {
	dev, sim := openGPU(t), openSim(t)
	for _, vocab := range []int32{97, 32000, 128256} {
		d := Dims{Layers: 1, Width: 64, Heads: 1, KVHeads: 1, HeadDim: 64, FFN: 64, Vocab: vocab, MaxPages: 1, Eps: 1e-5, RopeFactor: 1}
		g, w := newWorld(t, dev, d, MaxRows, false, 1), newWorld(t, sim, d, MaxRows, false, 1)
		settings := samplings(MaxRows, vocab)
		different := 0
		for round := range min(8, 1+260000/int(vocab)) {
			var chosen [2][]int32
			for i, x := range []*world{g, w} {
				x.source.Seed(uint64(round), uint64(vocab))
				logits := x.floats(MaxRows * int(vocab))
				for j := range logits {
					logits[j] *= float32(1 + round)
					if round == 3 {
						logits[j] = float32(math.Round(float64(logits[j]))) // many logits are equal
					}
				}
				x.do(append([]gpu.Op{x.s.Sampling.Upload(settings), x.b.Logits.Upload(logits)}, x.k.Sample(MaxRows, x.active, &x.s, x.b, x.result)...)...)
				chosen[i] = append(append(get(x, x.result), get(x, x.s.Token)...), get(x, x.s.Position)...)
			}
			for i, v := range chosen[0] {
				if v != chosen[1][i] {
					if different++; different < 8 {
						t.Errorf("vocabulary %d, round %d, row %d, %+v: %d, and the twin's is %d", vocab, round, i%MaxRows, settings[i%MaxRows], v, chosen[1][i])
					}
				}
			}
		}
	}
}

// samplings returns many different settings.
func samplings(n int, vocab int32) []Sampling {
	list := make([]Sampling, n)
	for i := range list {
		s := &list[i]
		s.Seed = uint64(i) * 0x9e3779b97f4a7c15
		s.Temperature = []float32{0, 1, 0.7, 1.5, 0.1}[i%5]
		s.TopK = []int32{0, 1, 5, 50, 1000, vocab}[i/5%6]
		s.TopP = []float32{1, 0.9, 0.5, 0.01, 0}[i/3%5]
	}
	return list
}

// TestGPUInvariant checks that with invariant kernels the results of rows are the same, bit by bit,
// among all rows and among some of them.
func TestGPUInvariant(t *testing.T) {
	d := Dims{Layers: 1, Width: 2048, Heads: 32, KVHeads: 8, HeadDim: 64, FFN: 5632, Vocab: 3000, MaxPages: 40, Eps: 1e-5, RopeFactor: 1}
	for _, fp8 := range []int32{0, 1} {
		d.FP8 = fp8
		g := newWorld(t, openGPU(t), d, MaxRows, true, 1)
		all, width := MaxRows, 0
		for _, s := range g.steps() {
			g.source.Seed(1, 1)
			g.fill(g.b, all)
			x, q, a, h := get(g, g.b.X), get(g, g.b.Q), get(g, g.b.A), get(g, g.b.G)
			active := get(g, g.active)
			g.do(s.ops(all)...)
			want := g.resultOf(s, all)
			width = s.width
			for _, part := range [][2]int{{0, 1}, {63, 64}, {5, 8}, {20, 36}, {30, 62}} {
				from, to := part[0], part[1]
				n := to - from
				g.do(g.b.X.Slice(0, n*2048).Upload(x[from*2048:to*2048]), g.b.Q.Slice(0, n*2048).Upload(q[from*2048:to*2048]),
					g.b.A.Slice(0, n*2048).Upload(a[from*2048:to*2048]), g.b.G.Slice(0, n*5632).Upload(h[from*5632:to*5632]),
					g.active.Slice(0, n).Upload(active[from:to]))
				g.do(s.ops(n)...)
				if got := g.resultOf(s, n); !slices.Equal(got, want[from*width:to*width]) {
					t.Errorf("%s (FP8: %d): rows %d to %d alone have other results than among %d rows", s.name, fp8, from, to-1, all)
				}
			}
			g.do(g.active.Upload(active))
		}
	}
}
