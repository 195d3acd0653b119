package persist

import (
	"errors"
	"math"
	"sync/atomic"
	"time"

	"github.com/puregpu/puregpu/runtime/driver"
	"github.com/puregpu/puregpu/runtime/driver/simdriver"
	"github.com/puregpu/puregpu/runtime/examples/llama/internal/peer"
	"github.com/puregpu/puregpu/runtime/smallfloat"
)

// Twins run in place of the kernel on a simulated GPU: pass SimPersist(Twins{}) as Kernels of
// simdriver.Config. They add in float64.
type Twins struct{}

// A twin is one launch.
type twin struct {
	*simdriver.Grid
	dims  Dims
	peers peer.Peers
	errs  []error
}

// view returns n elements of the memory at p, or zeros if there is no such memory.
func view[T any](t *twin, p driver.Ptr, n int) []T {
	v, err := simdriver.View[T](t.Grid, p, n)
	return viewed(t, v, err, n)
}

// read is view for memory that is only read.
func read[T any](t *twin, p driver.Ptr, n int) []T {
	v, err := simdriver.ReadView[T](t.Grid, p, n)
	return viewed(t, v, err, n)
}

// viewed notes an error of a view.
func viewed[T any](t *twin, v []T, err error, n int) []T {
	if err != nil {
		t.errs = append(t.errs, err)
		return make([]T, n)
	}
	return v
}

// number converts a 16-bit number.
func (t *twin) number(bits uint16) float64 {
	if t.dims.Half != 0 {
		return float64(smallfloat.Float16(bits).Float32())
	}
	return float64(smallfloat.BFloat16(bits).Float32())
}

// bits rounds to a 16-bit number.
func (t *twin) bits(x float64) uint16 {
	if t.dims.Half != 0 {
		return uint16(smallfloat.ToFloat16(float32(x)))
	}
	return uint16(smallfloat.ToBFloat16(float32(x)))
}

// multiply returns the products of a matrix's rows with x.
func (t *twin) multiply(w driver.Ptr, rows int, x []float64) []float64 {
	m, y := read[uint16](t, w, rows*len(x)), make([]float64, rows)
	for i := range y {
		for j, v := range m[i*len(x) : (i+1)*len(x)] {
			y[i] += t.number(v) * x[j]
		}
	}
	return y
}

// norm returns the RMS norm of x.
func (t *twin) norm(weight driver.Ptr, x []float64) []float64 {
	squares := 0.0
	for _, v := range x {
		squares += v * v
	}
	f := 1 / math.Sqrt(squares/float64(len(x))+float64(t.dims.Eps))
	y := make([]float64, len(x))
	for i, w := range read[uint16](t, weight, len(x)) {
		y[i] = x[i] * f * t.number(w)
	}
	return y
}

// rotate applies the rotary position embedding to each head of x.
func (t *twin) rotate(x []float64, freq []float32, position int) {
	half := len(freq)
	for ; len(x) > 0; x = x[2*half:] {
		for i, f := range freq {
			angle := float64(float32(position) * f)
			c, s := math.Cos(angle)*float64(t.dims.RopeFactor), math.Sin(angle)*float64(t.dims.RopeFactor)
			x[i], x[half+i] = x[i]*c-x[half+i]*s, x[half+i]*c+x[i]*s
		}
	}
}

// attend adds the new token to the cache, and returns the attention's result. layer is the address
// of the layer in page 0.
func (t *twin) attend(layer driver.Ptr, pages []int32, position int, q, k, v []float64) []float64 {
	d := &t.dims
	dim, kvHeads := int(d.HeadDim), int(d.KVHeads)
	pageBytes := driver.Ptr(d.pageBytes())
	at := func(position, head int, values bool) driver.Ptr {
		i := head
		if values {
			i += kvHeads
		}
		p := layer + driver.Ptr(pages[position/PageTokens])*pageBytes
		return p + driver.Ptr((i*PageTokens+position%PageTokens)*dim*2)
	}
	for h := range kvHeads {
		to, toV := view[uint16](t, at(position, h, false), dim), view[uint16](t, at(position, h, true), dim)
		for i := range dim {
			to[i], toV[i] = t.bits(k[h*dim+i]), t.bits(v[h*dim+i])
		}
	}
	out := make([]float64, len(q))
	scores := make([]float64, position+1)
	for h := range int(d.Heads) {
		kv := h * kvHeads / int(d.Heads)
		most := math.Inf(-1)
		for p := range scores {
			scores[p] = 0
			for i, b := range read[uint16](t, at(p, kv, false), dim) {
				scores[p] += q[h*dim+i] * t.number(b) / math.Sqrt(float64(dim))
			}
			most = max(most, scores[p])
		}
		sum := 0.0
		for p, s := range scores {
			w := math.Exp(s - most)
			sum += w
			for i, b := range read[uint16](t, at(p, kv, true), dim) {
				out[h*dim+i] += w * t.number(b)
			}
		}
		for i := range dim {
			out[h*dim+i] /= sum
		}
	}
	return out
}

// add adds y to x. If ranks share the model, it adds the y of all ranks, in the order of the ranks.
// Each rank has an array [2][ranks][width] of words, each with a tag and a float32. The parameter
// named which is the first index. Consecutive sums use different halves. So a rank overwrites the
// words of a sum only after it has got the words of the next sum from all ranks, and each rank has
// written the words of the next sum after it read the words of the first sum.
func (t *twin) add(x, y []float64, which int, tag uint32) {
	ranks, width := int(t.peers.Ranks), len(x)
	if ranks == 0 {
		for i := range x {
			x[i] += y[i]
		}
		return
	}
	all := make([][]uint64, ranks) // the words that go to each rank
	for r := range all {
		all[r] = view[uint64](t, driver.Ptr(t.peers.Words[r]), 2*ranks*width)[which*ranks*width:][:ranks*width]
		for i, v := range y {
			word := uint64(tag)<<32 | uint64(math.Float32bits(float32(v)))
			atomic.StoreUint64(&all[r][int(t.peers.Rank)*width+i], word)
		}
	}
	lost := view[uint32](t, driver.Ptr(t.peers.Lost), 1)
	for i := range all[t.peers.Rank] {
		if atomic.LoadUint32(&lost[0]) != 0 {
			return
		}
		word, ok := peer.AwaitWord(&all[t.peers.Rank][i], tag, time.Duration(t.peers.Patience))
		if !ok {
			atomic.StoreUint32(&lost[0], uint32(1+i/width))
			return
		}
		x[i%width] += float64(math.Float32frombits(uint32(word)))
	}
}

// Decode computes the logits of one token.
func (Twins) Decode(g *simdriver.Grid, d Dims, p peer.Peers, table, embeddings, lastNorm, head, freq, cache, pages, active, token, position, work, logits driver.Ptr) error {
	t := &twin{Grid: g, dims: d, peers: p}
	slot := read[int32](t, active, 1)[0]
	if slot < 0 {
		return errors.Join(t.errs...)
	}
	entry := func(p driver.Ptr) int { return int(read[int32](t, p+4*driver.Ptr(slot), 1)[0]) }
	pos, width, ffn := entry(position), int(d.Width), int(d.FFN)
	list := read[int32](t, pages+4*driver.Ptr(slot*d.MaxPages), int(d.MaxPages))
	freqs := read[float32](t, freq, int(d.HeadDim)/2)
	x := make([]float64, width)
	for i, b := range read[uint16](t, embeddings+driver.Ptr(2*width*entry(token)), width) {
		x[i] = t.number(b)
	}
	var tag uint32
	if p.Ranks > 0 { // the tag of the latest sum is in memory behind the words of add
		last := &view[uint32](t, work+driver.Ptr(8*2*int(p.Ranks)*width), 1)[0]
		tag = *last
		defer func() { *last = tag }()
	}
	nq, nk := int(d.Heads*d.HeadDim), int(d.KVHeads*d.HeadDim)
	for l := range int(d.Layers) {
		w := read[driver.Ptr](t, table+driver.Ptr(48*l), 6)
		qkv := t.multiply(w[1], nq+2*nk, t.norm(w[0], x))
		q, k, v := qkv[:nq], qkv[nq:nq+nk], qkv[nq+nk:]
		t.rotate(q, freqs, pos)
		t.rotate(k, freqs, pos)
		layer := cache + driver.Ptr(l*d.pageBytes()/int(d.Layers))
		tag++
		t.add(x, t.multiply(w[2], width, t.attend(layer, list, pos, q, k, v)), 0, tag)
		gateUp := t.multiply(w[4], 2*ffn, t.norm(w[3], x))
		h := gateUp[:ffn]
		for i, g := range h {
			h[i] = g / (1 + math.Exp(-g)) * gateUp[ffn+i]
		}
		t.add(x, t.multiply(w[5], width, h), 1, tag)
	}
	to := view[float32](t, logits, int(d.Vocab))
	for i, y := range t.multiply(head, int(d.Vocab), t.norm(lastNorm, x)) {
		to[i] = float32(y)
	}
	return errors.Join(t.errs...)
}
