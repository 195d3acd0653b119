package kernels

import (
	"math"
	"math/cmplx"
	"slices"
	"strings"
	"testing"

	"github.com/puregpu/puregpu/runtime/gpu"
)

func smallModel() Dims {
	return Dims{Layers: 2, Width: 128, Heads: 4, KVHeads: 2, HeadDim: 64, FFN: 192, Vocab: 131, MaxPages: 4, Eps: 1e-5, RopeFactor: 1.5}
}

// numbers returns the rows of a matrix as float64.
func (w *world) numbers(m Matrix, in int) [][]float64 {
	var list [][]float64
	mem := mem{d: w.d}
	values, err := gpu.SliceOf[uint16](m.Data)
	if err != nil {
		w.t.Fatal(err)
	}
	for row := range slices.Chunk(get(w, values), in) {
		list = append(list, nil)
		for _, v := range row {
			list[len(list)-1] = append(list[len(list)-1], float64(mem.float(v)))
		}
	}
	return list
}

// times returns the product of a matrix and a row.
func times(m [][]float64, v []float64) []float64 {
	list := make([]float64, len(m))
	for i, row := range m {
		for j, x := range row {
			list[i] += x * v[j]
		}
	}
	return list
}

// plainLogits computes the model's logits after the last token, in float64 and without a cache. All
// layers have the same weights.
func (w *world) plainLogits(tokens []int32) []float64 {
	d := &w.d
	width, dim, ratio := int(d.Width), int(d.HeadDim), int(d.Heads/d.KVHeads)
	table, weight := w.numbers(Matrix{Data: w.table}, width), w.numbers(Matrix{Data: w.norm}, width)[0]
	qkv, out := w.numbers(w.qkv, width), w.numbers(w.out, int(d.Heads)*dim)
	gateUp, down := w.numbers(w.gateUp, width), w.numbers(w.down, int(d.FFN))
	norm := func(x []float64) []float64 {
		sum := 0.
		for _, v := range x {
			sum += v * v
		}
		list := slices.Clone(x)
		for i := range list {
			list[i] *= weight[i] / math.Sqrt(sum/float64(width)+float64(d.Eps))
		}
		return list
	}
	add := func(x, y []float64) {
		for i := range x {
			x[i] += y[i]
		}
	}
	var xs [][]float64
	for _, token := range tokens {
		xs = append(xs, slices.Clone(table[token]))
	}
	for range d.Layers {
		var all [][]float64
		for p, x := range xs {
			res := times(qkv, norm(x))
			for h := range int(d.Heads + d.KVHeads) {
				for i := range dim / 2 {
					a := &res[h*dim+i]
					b := &res[h*dim+i+dim/2]
					turned := complex(*a, *b) * cmplx.Exp(complex(0, float64(p)*math.Pow(10000, -2*float64(i)/float64(dim)))) * complex(float64(d.RopeFactor), 0)
					*a, *b = real(turned), imag(turned)
				}
			}
			all = append(all, res)
		}
		for p, x := range xs {
			var heads []float64
			for h := range int(d.Heads) {
				key := (int(d.Heads) + h/ratio) * dim
				value := key + int(d.KVHeads)*dim
				o, sum := make([]float64, dim), 0.
				for _, other := range all[:p+1] {
					score := 0.
					for i := range dim {
						score += all[p][h*dim+i] * other[key+i]
					}
					e := math.Exp(score / math.Sqrt(float64(dim)))
					sum += e
					for i := range dim {
						o[i] += e * other[value+i]
					}
				}
				for i := range o {
					o[i] /= sum
				}
				heads = append(heads, o...)
			}
			add(x, times(out, heads))
			res, g := times(gateUp, norm(x)), make([]float64, d.FFN)
			for i := range g {
				g[i] = res[i] / (1 + math.Exp(-res[i])) * res[len(g)+i]
			}
			add(x, times(down, g))
		}
	}
	return times(table, norm(xs[len(xs)-1]))
}

// decode returns the launches of a decode step.
func (w *world) decode(rows int) []gpu.Op {
	k, b := w.k, w.b
	ops := k.Embed(rows, w.active, &w.s, w.table, b)
	for layer := range int(w.d.Layers) {
		ops = append(ops, k.QKV(rows, w.active, &w.s, layer, w.norm, w.qkv, b)...)
		ops = append(ops, k.Attend(rows, w.active, &w.s, layer, b)...)
		ops = append(ops, k.Out(rows, true, w.out, b)...)
		ops = append(ops, k.GateUp(rows, w.norm, w.gateUp, b)...)
		ops = append(ops, k.Down(rows, true, w.down, b)...)
	}
	ops = append(ops, k.Logits(rows, w.norm, w.table, b)...)
	return append(ops, k.Sample(rows, w.active, &w.s, b, w.result)...)
}

// testDecode checks the logits of sequences that are decoded token by token: two together with a
// row without a slot, and then one alone.
func testDecode(t *testing.T, dev *gpu.Device) {
	w := newWorld(t, dev, smallModel(), 3, false, 1)
	tokens := [2][]int32{w.ints(37, int(w.d.Vocab)), w.ints(20, int(w.d.Vocab))}
	slots := []int32{2, 0}
	w.do(w.s.Position.Upload([]int32{0, 0, 0}))
	for p := range 37 {
		for i := range tokens {
			if p < len(tokens[i]) {
				w.do(w.s.Token.Slice(int(slots[i]), int(slots[i])+1).Upload(tokens[i][p : p+1]))
			}
		}
		rows := 3
		if p < 20 {
			w.do(w.active.Slice(0, 3).Upload([]int32{2, -1, 0}))
		} else {
			rows = 1
		}
		w.do(w.decode(rows)...)
		for i, row := range []int{0, 2} {
			if row >= rows || p%6 != 1 {
				continue
			}
			var got []float64
			for _, v := range get(w, w.b.Logits.Slice(row*int(w.d.Vocab), (row+1)*int(w.d.Vocab))) {
				got = append(got, float64(v))
			}
			if e := differ(got, w.plainLogits(tokens[i][:p+1])); !(e < 0.08) {
				t.Errorf("logits of sequence %d after %d tokens differ by %.3g from the plain model's", i, p+1, e)
			}
		}
	}
	if got := get(w, w.s.Position); !slices.Equal(got, []int32{20, 0, 37}) {
		t.Errorf("the slots' positions are %v", got)
	}
	if got := get(w, w.result.Slice(0, 1))[0]; got != get(w, w.s.Token)[2] {
		t.Errorf("the result is token %d, and the slot's token is %d", got, get(w, w.s.Token)[2])
	}
}

func TestDecode(t *testing.T) { testDecode(t, openSim(t)) }

func TestGPUDecode(t *testing.T) { testDecode(t, openGPU(t)) }

// TestPrompt checks the logits behind a prompt that runs in chunks.
func TestPrompt(t *testing.T) {
	w := newWorld(t, openSim(t), smallModel(), 2, false, 2)
	const rows, slot = 24, 1
	b, err := w.k.NewChunkBuffers(w.dev, rows)
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	width, tokens := int(w.d.Width), w.ints(40, int(w.d.Vocab))
	chunk, ids := put(w, make([]int32, 3)), put(w, make([]int32, rows))
	multiply := func(a gpu.Slice[uint16], m Matrix, in int) [][]float64 {
		var list [][]float64
		for _, row := range w.numbers(Matrix{Data: a.Range()}, in) {
			list = append(list, times(w.numbers(m, in), row))
		}
		return list
	}
	halves := func(rows [][]float64) gpu.Slice[uint16] {
		var list []uint16
		for _, row := range rows {
			for _, v := range row {
				list = append(list, w.half(v))
			}
		}
		return put(w, list)
	}
	residual := func(rows [][]float64) {
		x := get(w, b.X)
		for i := range x {
			x[i] += float32(rows[i/width][i%width])
		}
		w.do(b.X.Upload(x))
	}
	for at := 0; at < len(tokens); at += rows {
		n := min(rows, len(tokens)-at)
		w.do(ids.Slice(0, n).Upload(tokens[at:at+n]), chunk.Upload([]int32{slot, int32(at), int32(n)}))
		w.do(w.k.EmbedChunk(rows, ids, w.table, b)...)
		for layer := range int(w.d.Layers) {
			w.do(w.k.Norm(rows, w.norm, b)...)
			w.do(w.k.RopeChunk(rows, chunk, &w.s, layer, halves(multiply(b.H, w.qkv, width)), b)...)
			w.do(w.k.AttendChunk(rows, chunk, &w.s, layer, b)...)
			residual(multiply(b.A, w.out, int(w.d.Heads*w.d.HeadDim)))
			w.do(w.k.Norm(rows, w.norm, b)...)
			w.do(w.k.SwiGLU(rows, halves(multiply(b.H, w.gateUp, width)), b)...)
			residual(multiply(b.G, w.down, int(w.d.FFN)))
		}
	}
	w.do(w.k.Last(chunk, &w.s, b, w.b)...)
	w.do(w.k.Logits(1, w.norm, w.table, w.b)...)
	w.do(w.k.Sample(1, chunk, &w.s, w.b, w.result)...)
	var got []float64
	for _, v := range get(w, w.b.Logits.Slice(0, int(w.d.Vocab))) {
		got = append(got, float64(v))
	}
	if e := differ(got, w.plainLogits(tokens)); !(e < 0.08) {
		t.Errorf("logits after the prompt differ by %.3g from the plain model's", e)
	}
	best := slices.Index(got, slices.Max(got))
	if got := get(w, w.s.Token)[slot]; int(got) != best {
		t.Errorf("the next token is %d, want %d", got, best)
	}
	if got := get(w, w.s.Position)[slot]; got != 40 {
		t.Errorf("the next token's position is %d, want 40", got)
	}
}

// TestFP8 compares a product of FP8 weights with the product of the same matrix dequantized.
func TestFP8(t *testing.T) {
	d := smallModel()
	d.FP8 = 1
	w := newWorld(t, openSim(t), d, 1, false, 3)
	width := int(d.Width)
	plain := put(w, make([]uint16, width*int(d.FFN)))
	w.fill(w.b, 3)
	w.do(w.k.Dequantize(width, int(d.FFN), w.down, plain)...)
	w.do(w.k.Down(3, false, w.down, w.b)...)
	weights := w.numbers(Matrix{Data: plain.Range()}, int(d.FFN))
	var got, want []float64
	for _, v := range get(w, w.b.X.Slice(0, 3*width)) {
		got = append(got, float64(v))
	}
	for _, row := range w.numbers(Matrix{Data: w.b.G.Slice(0, 3*int(d.FFN)).Range()}, int(d.FFN)) {
		want = append(want, times(weights, row)...)
	}
	if e := differ(got, want); !(e < 0.01) {
		t.Errorf("differs by %.3g from the product with the dequantized matrix", e)
	}
}

func TestSizesThatAreRefused(t *testing.T) {
	dev := openSim(t)
	for want, change := range map[string]func(d *Dims){
		"only 64 and 128 are supported":            func(d *Dims) { d.HeadDim = 96 },
		"the width is 100":                         func(d *Dims) { d.Width = 100 },
		"the FFN's width is 65":                    func(d *Dims) { d.FFN = 65 },
		"4 heads of queries, 3 of keys and values": func(d *Dims) { d.KVHeads = 3 },
		"the vocabulary has 1000000 tokens":        func(d *Dims) { d.Vocab = 1000000 },
		"0 pages of a sequence":                    func(d *Dims) { d.MaxPages = 0 },
	} {
		d := smallModel()
		change(&d)
		if k, err := Open(dev, d, false); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("Open: %v, %v; want an error with %q", k, err, want)
		}
	}
	w := newWorld(t, dev, smallModel(), 1, false, 4)
	if b, err := w.k.NewBuffers(dev, MaxRows+1); err == nil {
		t.Errorf("buffers for %d rows: %v", MaxRows+1, b)
	}
}
