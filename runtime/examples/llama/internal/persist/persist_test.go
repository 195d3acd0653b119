package persist

import (
	"context"
	"errors"
	"math"
	"slices"
	"testing"

	"github.com/puregpu/puregpu/runtime/gpu"
)

// A formula computes logits in float64. It keeps the keys and values of the sequence in lists.
type formula struct {
	b            *bench
	keys, values [][][]float64 // [layer][position]
}

// matrix downloads weights as rows.
func (f *formula) matrix(r gpu.Range, columns int) (rows [][]float64) {
	bits := make([]uint16, r.Size/2)
	f.b.do(gpu.Download(gpu.BytesOf(bits), r))
	var all []float64
	for _, v := range f.b.numbers(bits) {
		all = append(all, float64(v))
	}
	for row := range slices.Chunk(all, columns) {
		rows = append(rows, row)
	}
	return rows
}

func dot(a, b []float64) (sum float64) {
	for i := range a {
		sum += a[i] * b[i]
	}
	return sum
}

func product(rows [][]float64, x []float64) (y []float64) {
	for _, r := range rows {
		y = append(y, dot(r, x))
	}
	return y
}

func (f *formula) norm(x, weight []float64) (y []float64) {
	r := math.Sqrt(dot(x, x)/float64(len(x)) + float64(f.b.dims.Eps))
	for i := range x {
		y = append(y, x[i]/r*weight[i])
	}
	return y
}

// rotated applies the rotary embedding: each pair of numbers is a complex number, which is
// multiplied by a factor that depends on the position.
func (f *formula) rotated(head []float64, position int) []float64 {
	half := len(head) / 2
	y := make([]float64, len(head))
	for i := range half {
		angle := float64(position) * math.Pow(10000, -2*float64(i)/float64(len(head)))
		z := complex(head[i], head[half+i]) * complex(math.Cos(angle), math.Sin(angle)) * complex(float64(f.b.dims.RopeFactor), 0)
		y[i], y[half+i] = real(z), imag(z)
	}
	return y
}

// rounded rounds to 16 bits, as the cache does.
func (f *formula) rounded(x []float64) (y []float64) {
	for _, v := range x {
		y = append(y, float64(f.b.numbers([]uint16{f.b.bits(v)})[0]))
	}
	return y
}

// next appends a token to the sequence, and returns the logits behind that token.
func (f *formula) next(token int) []float32 {
	d, a := &f.b.dims, &f.b.args
	dim, width := int(d.HeadDim), int(d.Width)
	x := slices.Clone(f.matrix(a.Embeddings, width)[token])
	add := func(y []float64) {
		for i := range x {
			x[i] += y[i]
		}
	}
	for l, w := range a.Layers {
		if len(f.keys) == l {
			f.keys, f.values = append(f.keys, nil), append(f.values, nil)
		}
		heads := slices.Collect(slices.Chunk(product(f.matrix(w.QKV, width), f.norm(x, f.matrix(w.Norm1, width)[0])), dim))
		position := len(f.keys[l]) / int(d.KVHeads)
		for i := range d.KVHeads {
			f.keys[l] = append(f.keys[l], f.rounded(f.rotated(heads[d.Heads+i], position)))
			f.values[l] = append(f.values[l], f.rounded(heads[d.Heads+d.KVHeads+i]))
		}
		var attention []float64
		for h := range d.Heads {
			q := f.rotated(heads[h], position)
			sum, out := 0.0, make([]float64, dim)
			for i := int(h * d.KVHeads / d.Heads); i < len(f.keys[l]); i += int(d.KVHeads) {
				e := math.Exp(dot(q, f.keys[l][i]) / math.Sqrt(float64(dim)))
				sum += e
				for j := range out {
					out[j] += e * f.values[l][i][j]
				}
			}
			for j := range out {
				out[j] /= sum
			}
			attention = append(attention, out...)
		}
		add(product(f.matrix(w.Out, len(attention)), attention))
		g := product(f.matrix(w.GateUp, width), f.norm(x, f.matrix(w.Norm2, width)[0]))
		for i := range d.FFN {
			g[i] = g[i] / (1 + math.Exp(-g[i])) * g[d.FFN+i]
		}
		add(product(f.matrix(w.Down, int(d.FFN)), g[:d.FFN]))
	}
	var logits []float32
	for _, y := range product(f.matrix(a.Head, width), f.norm(x, f.matrix(a.LastNorm, width)[0])) {
		logits = append(logits, float32(y))
	}
	return logits
}

// TestTwin compares the twin with the formulas, over a sequence of more than two pages, through a
// recording. The tolerance allows for a key that is rounded to the other neighbour.
func TestTwin(t *testing.T) {
	for name, d := range map[string]Dims{"bfloat16": tinySize(), "float16": func() Dims {
		d := tinySize()
		d.Half, d.RopeFactor = 1, 1.3
		return d
	}()} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t, simulated(t), d, 1)
			b.fillCache(0)
			rec := record(b, b.decoder(Tuning{}), 1)
			f := &formula{b: b}
			for position := range 2*PageTokens + 3 {
				token := position * 37 % int(d.Vocab)
				b.set(token, position)
				b.do(gpu.Execute(rec))
				if e := difference(b.logits(), f.next(token)); !(e < 1e-3) {
					t.Fatalf("position %d: logits differ by %.2g", position, e)
				}
			}
		})
	}
}

// record records n steps of a decoder.
func record(b *bench, c *Decoder, n int) *gpu.CommandBuffer {
	b.t.Helper()
	rec, err := b.dev.NewCommandBuffer(gpu.CommandOptions{InOrder: true})
	if err != nil {
		b.t.Fatal(err)
	}
	b.t.Cleanup(func() { rec.Close() })
	for range n {
		if _, err := rec.Add(c.Op()); err != nil {
			b.t.Fatal(err)
		}
	}
	if err := rec.End(); err != nil {
		b.t.Fatal(err)
	}
	return rec
}

// TestNoSlot checks that a step without a slot writes no logits.
func TestNoSlot(t *testing.T) {
	b := newBench(t, simulated(t), tinySize(), 1)
	b.fillCache(0)
	c := b.decoder(Tuning{})
	b.do(b.args.Active.UploadCopy([]int32{-1}), c.Op())
	if l := b.logits(); slices.ContainsFunc(l, func(x float32) bool { return x != 0 }) {
		t.Error("a step without a slot wrote logits")
	}
}

// TestRefused checks that New refuses models that the kernel cannot run.
func TestRefused(t *testing.T) {
	b := newBench(t, simulated(t), tinySize(), 1)
	for name, change := range map[string]func(*Dims, *Args){
		"FP8":                      func(d *Dims, _ *Args) { d.FP8 = 1 },
		"no layers":                func(d *Dims, _ *Args) { d.Layers = 0 },
		"another width":            func(d *Dims, _ *Args) { d.Width = 80 },
		"odd width":                func(d *Dims, _ *Args) { d.Width = 73 },
		"odd heads":                func(d *Dims, _ *Args) { d.KVHeads = 3 },
		"odd head":                 func(d *Dims, _ *Args) { d.HeadDim = 48 },
		"a smaller head of logits": func(_ *Dims, a *Args) { a.Head.Size -= 2 },
		"odd addresses": func(_ *Dims, a *Args) {
			a.LastNorm = a.Head.Buffer.Range(a.Head.Offset+2, a.LastNorm.Size)
		},
		"a layer fewer": func(_ *Dims, a *Args) { a.Layers = a.Layers[1:] },
	} {
		d, a := b.dims, b.args
		change(&d, &a)
		c, err := New(context.Background(), b.dev, d, a, Tuning{})
		if !errors.Is(err, gpu.ErrArgument) && !errors.Is(err, gpu.ErrUnsupported) {
			t.Errorf("%s: %v", name, err)
		}
		if err == nil {
			c.Close()
		}
	}
}
