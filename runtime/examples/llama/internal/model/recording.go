package model

import (
	"fmt"
	"math/bits"

	"github.com/puregpu/puregpu/runtime/blas"
	"github.com/puregpu/puregpu/runtime/collective"
	"github.com/puregpu/puregpu/runtime/examples/llama/internal/checkpoint"
	"github.com/puregpu/puregpu/runtime/examples/llama/internal/kernels"
	"github.com/puregpu/puregpu/runtime/examples/llama/internal/peer"
	"github.com/puregpu/puregpu/runtime/gpu"
	"github.com/puregpu/puregpu/runtime/smallfloat"
)

// A recorded is the key of a recording: for decoding at most as many sequences as rows says, or, if
// chunk is set, for a chunk of at most as many tokens. The field last is Chunk.Last.
type recorded struct {
	rows        int
	chunk, last bool
}

// recording returns the recording for n sequences, or for a chunk of n tokens, and makes it if
// there is none yet. It rounds n up to a power of two, so that there are few recordings. For a
// chunk the size is also at least PageTokens and at most ChunkTokens.
func (s *Shard) recording(n int, chunk, last bool) (*gpu.CommandBuffer, error) {
	key := recorded{1 << bits.Len(uint(n-1)), chunk, last}
	if chunk {
		key.rows = min(max(key.rows, PageTokens), s.info.ChunkTokens)
	}
	if r := s.recordings[key]; r != nil {
		return r, nil
	}
	c, err := s.dev.NewCommandBuffer(gpu.CommandOptions{InOrder: true})
	if err != nil {
		return nil, err
	}
	r := recorder{Shard: s, rows: key.rows, commands: c}
	if chunk {
		r.chunkStep(last)
	} else {
		r.decodeStep()
	}
	if r.err == nil {
		r.err = c.End()
	}
	if r.err != nil {
		c.Close()
		return nil, fmt.Errorf("model: recording %+v: %w", key, r.err)
	}
	s.recordings[key] = c
	return c, nil
}

// recordChunks makes the recordings for all chunks. Only the last chunk of a prompt may be shorter
// than ChunkTokens.
func (s *Shard) recordChunks() error {
	most := s.info.ChunkTokens
	_, err := s.recording(most, true, false)
	for n := PageTokens; err == nil && n < 2*most; n *= 2 {
		_, err = s.recording(min(n, most), true, true)
	}
	return err
}

// A recorder records a step of the model.
type recorder struct {
	*Shard
	rows     int
	commands *gpu.CommandBuffer
	err      error // the first error
}

func (r *recorder) add(ops ...gpu.Op) {
	for _, op := range ops {
		if r.err == nil {
			_, r.err = r.commands.Add(op)
		}
	}
}

// decodeStep records a step that computes the next token of each active slot.
func (r *recorder) decodeStep() {
	k, w, b, s := r.kernels, r.weights, r.Shard.rows, &r.state
	out := r.out.Slice(0, MaxRows)
	if r.rows == 1 && r.alone != nil {
		r.add(r.alone())
		r.add(k.Sample(1, r.active, s, b, out)...)
		return
	}
	r.add(k.Embed(r.rows, r.active, s, w.embed, b)...)
	if r.rows < wideRows || r.options.Invariant || w.quantised() || r.options.Comm != nil {
		r.decode(k, 0, r.active, out)
		return
	}
	r.add(k.Norm(r.rows, w.layers[0].attentionNorm, b)...)
	for i := range w.layers {
		r.product(r.wide, b.H, &w.layers[i].qkv)
		r.add(k.RopeRows(r.rows, r.active, s, i, r.wide, b)...)
		r.add(k.Attend(r.rows, r.active, s, i, b)...)
		r.feedForward(i, b)
	}
	d := k.Dims()
	r.product32(b.Logits, b.H, &matrix{Matrix: kernels.Matrix{Data: w.head}, rows: int(d.Vocab), cols: int(d.Width)}, 0)
	r.add(k.Sample(r.rows, r.active, s, b, out)...)
}

// From wideRows rows on, a decode step multiplies with cuBLAS, which is faster there than package
// kernels. A decode step never uses cuBLAS with [Options.Invariant], because cuBLAS's results
// depend on the number of rows; with collectives, because they divide the recording into short
// graphs, and short graphs with cuBLAS launch slowly; and with quantised weights.
const wideRows = 32

// feedForward records the part of a layer behind the attention, and the norm behind the layer.
// cuBLAS computes the products.
func (r *recorder) feedForward(layer int, b *kernels.Buffers) {
	y := &r.weights.layers[layer]
	r.productSum(b, b.A, &y.o, y.ffnNorm)
	r.product(r.wide, b.H, &y.gateUp)
	r.add(r.kernels.SwiGLU(r.rows, r.wide, b)...)
	r.productSum(b, b.G, &y.down, r.normBehind(layer))
}

// normBehind returns the weight of the norm that follows a layer.
func (r *recorder) normBehind(layer int) gpu.Range {
	if next := layer + 1; next < len(r.weights.layers) {
		return r.weights.layers[next].attentionNorm
	}
	return r.weights.norm
}

// decode records the layers from the one with the index first on, and the choice of a token, for
// each active slot. The first product uses the kernels of the parameter front, everything else
// those of r.kernels.
func (r *recorder) decode(front *kernels.Kernels, first int, active, out gpu.Slice[int32]) {
	k, w, b, s := r.kernels, r.weights, r.Shard.rows, &r.state
	to := *b // b, but X is where this shard's products go
	to.X = r.summed(b.X)
	fused := r.options.Peer != nil && (r.rows > 1 || r.options.Invariant)
	sum := func(norm gpu.Range) {
		if fused {
			r.sumNorm(b, norm)
		} else {
			r.sum(b.X)
		}
	}
	behind := func(ops []gpu.Op) { // adds operations behind a sum; if fused, the first is a norm
		if fused {
			ops = ops[1:] // sumNorm has computed the norm
		}
		r.add(ops...)
	}
	r.add(front.QKV(r.rows, active, s, first, w.layers[first].attentionNorm, w.layers[first].qkv.Matrix, b)...)
	for i := first; i < len(w.layers); i++ {
		y := &w.layers[i]
		if i > first {
			behind(k.QKV(r.rows, active, s, i, y.attentionNorm, y.qkv.Matrix, b))
		}
		r.add(k.Attend(r.rows, active, s, i, b)...)
		r.add(k.Out(r.rows, r.adds(), y.o.Matrix, &to)...)
		sum(y.ffnNorm)
		behind(k.GateUp(r.rows, y.ffnNorm, y.gateUp.Matrix, b))
		r.add(k.Down(r.rows, r.adds(), y.down.Matrix, &to)...)
		sum(r.normBehind(i))
	}
	behind(k.Logits(r.rows, w.norm, w.head, b))
	r.add(k.Sample(r.rows, active, s, b, out)...)
}

// chunkStep records a chunk of a prompt. Of the last layer it computes only keys and values,
// because later tokens need nothing else. If last is true, chunkStep also records the last layer
// for the prompt's last token, as in a decode step, and the choice of the next token.
func (r *recorder) chunkStep(last bool) {
	k, w, b, s := r.kernels, r.weights, r.prompt, &r.state
	chunk := r.chunk.Slice(0, 3)
	r.add(k.EmbedChunk(r.rows, r.chunk.Slice(chunkHead, chunkHead+r.rows), w.embed, b)...)
	r.add(k.Norm(r.rows, w.layers[0].attentionNorm, b)...)
	for i := range w.layers {
		y := &w.layers[i]
		if i == len(w.layers)-1 {
			kv := y.qkv.from(int(k.Dims().Heads * k.Dims().HeadDim))
			r.product(r.wide, b.H, &kv)
			r.add(k.KeysChunk(r.rows, chunk, s, i, r.wide, b)...)
			break
		}
		r.product(r.wide, b.H, &y.qkv)
		r.add(k.RopeChunk(r.rows, chunk, s, i, r.wide, b)...)
		r.add(k.AttendChunk(r.rows, chunk, s, i, b)...)
		r.feedForward(i, b)
	}
	if last {
		r.add(k.Last(chunk, s, b, r.Shard.rows)...)
		r.rows = 1
		// The first product reads the slot's position. Without k.Usual() the product could begin
		// before Last has set the position.
		r.decode(k.Usual(), len(w.layers)-1, chunk.Slice(0, 1), r.out.Slice(MaxRows, MaxRows+1))
	}
}

// summed returns the memory for a product that the shards sum: r.part if the options have a peer,
// otherwise the residual stream x.
func (r *recorder) summed(x gpu.Slice[float32]) gpu.Slice[float32] {
	if r.options.Peer != nil {
		return r.part
	}
	return x
}

// adds reports whether this shard adds its products to the residual stream X. With a peer no shard
// does, because the peer adds the sum. Otherwise the first shard does, and the others replace X by
// their products, so that the sum of all shards' X is the new residual stream.
func (r *recorder) adds() bool { return r.options.Rank == 0 && r.options.Peer == nil }

// sum records the sum of the shards' products. Behind the sum, x is the new residual stream, the
// same in all shards.
func (r *recorder) sum(x gpu.Slice[float32]) {
	n := r.rows * int(r.kernels.Dims().Width)
	if o := &r.options; o.Peer != nil {
		r.add(o.Peer.Op(x, r.part, n))
	} else if o.Ranks > 1 {
		all := x.Slice(0, n).Range()
		r.add(o.Comm.Group(collective.AllReduce(all, all, collective.Float32, collective.Sum())))
	}
}

// product records c = a·mᵀ.
func (r *recorder) product(c, a gpu.Slice[uint16], m *matrix) {
	w := r.in16(m)
	if r.weights.kind == checkpoint.F16 {
		r.add(gemm[smallfloat.Float16, smallfloat.Float16](r, c.Range(), a, w, m, 0))
	} else {
		r.add(gemm[smallfloat.BFloat16, smallfloat.BFloat16](r, c.Range(), a, w, m, 0))
	}
}

// sumNorm records the sum of the shards' products in b.X, and b.H = the norm of b.X with a weight.
func (r *recorder) sumNorm(b *kernels.Buffers, weight gpu.Range) {
	if r.options.Peer == nil {
		r.sum(b.X)
		r.add(r.kernels.Norm(r.rows, weight, b)...)
		return
	}
	d := r.kernels.Dims()
	r.add(r.options.Peer.OpNorm(b.X, r.part, r.rows, int(d.Width), peer.Norm{Weight: weight, Eps: d.Eps, Half: d.Half, To: b.H}))
}

// productSum records b.X += the sum of all shards' a·mᵀ, and b.H = the norm of b.X with a weight.
func (r *recorder) productSum(b *kernels.Buffers, a gpu.Slice[uint16], m *matrix, weight gpu.Range) {
	old := 0.0
	if r.adds() {
		old = 1
	}
	r.product32(r.summed(b.X), a, m, old)
	r.sumNorm(b, weight)
}

// product32 records c = old·c + a·mᵀ, in float32.
func (r *recorder) product32(c gpu.Slice[float32], a gpu.Slice[uint16], m *matrix, old float64) {
	w := r.in16(m)
	if r.weights.kind == checkpoint.F16 {
		r.add(gemm[float32, smallfloat.Float16](r, c.Range(), a, w, m, old))
	} else {
		r.add(gemm[float32, smallfloat.BFloat16](r, c.Range(), a, w, m, old))
	}
}

// in16 returns the matrix in 16 bits. If the matrix is quantised, in16 records its conversion into
// r.plain.
func (r *recorder) in16(m *matrix) gpu.Range {
	if !m.quantised {
		return m.Data
	}
	r.add(r.kernels.Dequantize(m.rows, m.cols, m.Matrix, r.plain)...)
	return r.plain.Range()
}

// gemm returns the Op of c = old·c + a·wᵀ, where w has the shape of m.
func gemm[C, T blas.Element](r *recorder, c gpu.Range, a gpu.Slice[uint16], w gpu.Range, m *matrix, old float64) gpu.Op {
	return blas.GemmWith(r.blas,
		blas.Matrix[C]{Data: as[C](r, c, r.rows*m.rows), Rows: r.rows, Cols: m.rows},
		blas.Matrix[T]{Data: as[T](r, a.Range(), r.rows*m.cols), Rows: r.rows, Cols: m.cols},
		blas.Matrix[T]{Data: as[T](r, w, m.size()), Rows: m.rows, Cols: m.cols}.T(),
		blas.GemmOptions[C]{Beta: old})
}

// as returns the first n elements of a range.
func as[T any](r *recorder, all gpu.Range, n int) gpu.Slice[T] {
	s, err := gpu.SliceOf[T](all)
	if err != nil {
		if r.err == nil {
			r.err = err
		}
		return s
	}
	return s.Slice(0, n)
}
