// Package kernels has the kernels of a Llama-style decoder, and their twins for the simulated GPU.
// [Kernels] has a method for each operation, which chooses the kernels to launch.
//
// Numbers of 16 bits are bfloat16 or float16, as the weights are (Dims.Half); Go sees their bits as
// uint16. A weight matrix is row-major [out][in], as in a checkpoint.
package kernels

//go:generate go run github.com/puregpu/puregpu/tools/kernelgen -runtime -type Dims=Dims -type Sampling=Sampling -instance qkvMany<8> -instance qkvMany<16> -instance qkvMany<32> -instance qkvMany<64> -instance gateUpMany<8> -instance gateUpMany<16> -instance gateUpMany<32> -instance gateUpMany<64> -instance addMany<8> -instance addMany<16> -instance addMany<32> -instance addMany<64> -instance logitsMany<8> -instance logitsMany<16> -instance logitsMany<32> -instance logitsMany<64> llama.cu

import (
	"github.com/puregpu/puregpu/runtime/gpu"
)

// A State is the device memory with the state of all slots.
type State struct {
	Token    gpu.Slice[int32]    // [slots]: the token that the next step takes as input
	Position gpu.Slice[int32]    // [slots]: that token's position in its sequence
	Sampling gpu.Slice[Sampling] // [slots]
	Pages    gpu.Slice[int32]    // [slots][Dims.MaxPages]: the pages of a slot's sequence, in order
	Cache    gpu.Range           // page p begins at p * Dims.PageBytes()
	Freq     gpu.Slice[float32]  // [HeadDim/2]: radians of rotation per position
}

// A Matrix is a weight matrix of a layer: 16-bit numbers, or FP8 e4m3 if Dims.FP8 is 1. The address
// of Data must be a multiple of 16, like the addresses of all other memory that operations use.
type Matrix struct {
	Data  gpu.Range
	Scale gpu.Slice[float32] // one for each row, for FP8 only; otherwise the zero Slice
}

// scale returns a kernel's argument for the scales. Without FP8 the argument can be any memory,
// because no kernel reads the scales.
func (k *Kernels) scale(w Matrix) gpu.Range {
	if k.dims.FP8 == 0 {
		return w.Data
	}
	return w.Scale.Range()
}

// Embed sets each row of X to the embedding of its slot's token. A row without a slot becomes 0.
// The table is [Vocab][Width], of 16-bit numbers.
func (k *Kernels) Embed(rows int, active gpu.Slice[int32], s *State, table gpu.Range, b *Buffers) []gpu.Op {
	g := gpu.Grid{Blocks: [3]uint32{uint32(rows)}, Threads: [3]uint32{256}} // not dependent
	return []gpu.Op{k.code.Embed.Launch(g, k.dims, active, s.Token, table, b.X)}
}

// QKV computes queries, keys and values of a layer for each row of X: norm (weight [Width]),
// product with w [QKVRows][Width], and rotation. The queries go to Q. The keys and values
// go to the cache, at the slot's position.
func (k *Kernels) QKV(rows int, active gpu.Slice[int32], s *State, layer int, norm gpu.Range, w Matrix, b *Buffers) []gpu.Op {
	out, in, q := k.dims.QKVRows(), int(k.dims.Width), int(k.dims.Heads*k.dims.HeadDim)
	if k.single(rows) {
		return []gpu.Op{k.code.QkvOne.Launch(k.gridOne(out, in), k.dims, int32(layer), active, s.Position, s.Pages, s.Cache, s.Freq,
			b.X, norm, w.Data, k.scale(w), b.Q)}
	}
	ops := k.Norm(rows, norm, b)
	for _, p := range k.parts(qkvKind, rows) {
		ops = append(ops, k.qkv[p.size].Launch(k.gridMany(qkvKind, p.size, out, in), k.dims, p.rows(), int32(layer), active.Slice(p.from, p.to),
			s.Position, s.Pages, s.Cache, s.Freq, b.H.Slice(p.from*in, p.to*in), w.Data, k.scale(w), b.Q.Slice(p.from*q, p.to*q)))
	}
	return ops
}

// Attend sets A to the attention of each row of Q over its slot's positions, including the row's
// own.
func (k *Kernels) Attend(rows int, active gpu.Slice[int32], s *State, layer int, b *Buffers) []gpu.Op {
	d := &k.dims
	groups := int(d.KVHeads * ((d.Heads/d.KVHeads + 15) / 16))
	splits := 2 // even if not all blocks run at once
	for splits < maxSplits && groups*rows*splits*2 <= 4*k.processors {
		splits *= 2 // while all blocks can run at once
	}
	g := k.grid(128, 544*int(d.HeadDim), groups, rows, splits)
	return []gpu.Op{k.code.Attend.Launch(g, *d, int32(layer), active, s.Position, s.Pages, s.Cache, b.Q, b.A, b.Work)}
}

// Out multiplies A by w [Width][Heads*HeadDim]. If add is set, Out adds the product to X. Otherwise
// Out sets X to the product. For tensor parallelism one device adds, the others do not, and then
// the sum of all devices' X is the new X.
func (k *Kernels) Out(rows int, add bool, w Matrix, b *Buffers) []gpu.Op {
	return k.product(rows, int(k.dims.Heads*k.dims.HeadDim), add, b.A, w, b)
}

// Down multiplies G by w [Width][FFN]; see Out for add.
func (k *Kernels) Down(rows int, add bool, w Matrix, b *Buffers) []gpu.Op {
	return k.product(rows, int(k.dims.FFN), add, b.G, w, b)
}

func (k *Kernels) product(rows, in int, add bool, a gpu.Slice[uint16], w Matrix, b *Buffers) []gpu.Op {
	width, adds := int(k.dims.Width), int32(0)
	if add {
		adds = 1
	}
	if k.single(rows) {
		return []gpu.Op{k.code.AddOne.Launch(k.gridOne(width, in), k.dims, int32(in), adds, a, w.Data, k.scale(w), b.X)}
	}
	var ops []gpu.Op
	for _, p := range k.parts(addKind, rows) {
		ops = append(ops, k.add[p.size].Launch(k.gridMany(addKind, p.size, width, in), k.dims, p.rows(), int32(in), adds,
			a.Slice(p.from*in, p.to*in), w.Data, k.scale(w), b.X.Slice(p.from*width, p.to*width)))
	}
	return ops
}

// GateUp computes silu(gate) * up for each row of X: norm, then the product with w [2*FFN][Width],
// which has the rows of gate, then of up. The results go to G.
func (k *Kernels) GateUp(rows int, norm gpu.Range, w Matrix, b *Buffers) []gpu.Op {
	out, in, ffn := 2*int(k.dims.FFN), int(k.dims.Width), int(k.dims.FFN)
	if k.single(rows) {
		return []gpu.Op{k.code.GateUpOne.Launch(k.gridOne(out, in), k.dims, b.X, norm, w.Data, k.scale(w), b.G)}
	}
	ops := k.Norm(rows, norm, b)
	for _, p := range k.parts(gateUpKind, rows) {
		ops = append(ops, k.gateUp[p.size].Launch(k.gridMany(gateUpKind, p.size, out, in), k.dims, p.rows(), b.H.Slice(p.from*in, p.to*in),
			w.Data, k.scale(w), b.G.Slice(p.from*ffn, p.to*ffn)))
	}
	return ops
}

// Logits computes the logits of each row of X: norm, then the product with w [Vocab][Width], of
// 16-bit numbers.
func (k *Kernels) Logits(rows int, norm, w gpu.Range, b *Buffers) []gpu.Op {
	out, in := int(k.dims.Vocab), int(k.dims.Width)
	if k.single(rows) {
		return []gpu.Op{k.code.LogitsOne.Launch(k.gridOne(out, in), k.dims, b.X, norm, w, b.Logits)}
	}
	ops := k.Norm(rows, norm, b)
	for _, p := range k.parts(logitsKind, rows) {
		ops = append(ops, k.logits[p.size].Launch(k.gridMany(logitsKind, p.size, out, in), k.dims, p.rows(), b.H.Slice(p.from*in, p.to*in), w,
			b.Logits.Slice(p.from*out, p.to*out)))
	}
	return ops
}

// Sample chooses the next token of each row's slot from the row's logits. It writes the token to
// out[row] and to the slot's Token, and adds 1 to the slot's Position. The random numbers depend
// only on the slot's seed and position. For a row without a slot, out[row] becomes -1.
func (k *Kernels) Sample(rows int, active gpu.Slice[int32], s *State, b *Buffers, out gpu.Slice[int32]) []gpu.Op {
	return []gpu.Op{k.code.Sample.Launch(k.grid(1024, 0, rows), k.dims, active, s.Token, s.Position, s.Sampling, b.Logits, out)}
}

// A chunk is a piece of a prompt: n tokens of one slot from a position on. It is three numbers in
// device memory: slot, position, n. The parameter rows of an operation on a chunk is at least n, so
// that one recording serves all chunks. The rows from n on change nothing in the cache.

// EmbedChunk sets row i of X to the embedding of tokens[i]. Give a valid token for each of the
// rows.
func (k *Kernels) EmbedChunk(rows int, tokens gpu.Slice[int32], table gpu.Range, b *Buffers) []gpu.Op {
	g := gpu.Grid{Blocks: [3]uint32{uint32(rows)}, Threads: [3]uint32{256}} // not dependent
	return []gpu.Op{k.code.EmbedChunk.Launch(g, k.dims, tokens, table, b.X)}
}

// Norm sets H to the norm of X, with the given weight [Width].
func (k *Kernels) Norm(rows int, weight gpu.Range, b *Buffers) []gpu.Op {
	return []gpu.Op{k.code.RmsNorm.Launch(k.grid(256, 0, rows), k.dims, b.X, weight, b.H)}
}

// RopeChunk rotates queries and keys of a layer. qkv is the product of H with the matrix of QKV:
// [rows][QKVRows]. The queries go to Q; keys and values go to the slot's pages.
func (k *Kernels) RopeChunk(rows int, chunk gpu.Slice[int32], s *State, layer int, qkv gpu.Slice[uint16], b *Buffers) []gpu.Op {
	return []gpu.Op{k.code.RopeChunk.Launch(k.grid(256, 0, rows), k.dims, int32(layer), chunk, s.Pages, s.Cache, s.Freq, qkv, b.Q)}
}

// RopeRows is RopeChunk for the rows of a decode step.
func (k *Kernels) RopeRows(rows int, active gpu.Slice[int32], s *State, layer int, qkv gpu.Slice[uint16], b *Buffers) []gpu.Op {
	return []gpu.Op{k.code.RopeRows.Launch(k.grid(256, 0, rows), k.dims, int32(layer), active, s.Position, s.Pages, s.Cache, s.Freq, qkv, b.Q)}
}

// KeysChunk is RopeChunk for keys and values only. kv is the product of H with the last
// 2*KVHeads*HeadDim rows of the matrix of QKV.
func (k *Kernels) KeysChunk(rows int, chunk gpu.Slice[int32], s *State, layer int, kv gpu.Slice[uint16], b *Buffers) []gpu.Op {
	d := k.dims
	d.Heads = 0
	return []gpu.Op{k.code.RopeChunk.Launch(k.grid(256, 0, rows), d, int32(layer), chunk, s.Pages, s.Cache, s.Freq, kv, b.Q)}
}

// AttendChunk sets A to the attention of each row of Q over all positions up to the row's own. Rows
// from n on become 0.
func (k *Kernels) AttendChunk(rows int, chunk gpu.Slice[int32], s *State, layer int, b *Buffers) []gpu.Op {
	d := &k.dims
	threads := 128
	if d.HeadDim == 64 {
		threads = 256 // chunkGroups in attend.h
	}
	g := k.grid(threads, 64<<10, int(d.KVHeads), (rows*int(d.Heads/d.KVHeads)+63)/64)
	return []gpu.Op{k.code.AttendChunk.Launch(g, *d, int32(rows), int32(layer), chunk, s.Pages, s.Cache, b.Q, b.A)}
}

// SwiGLU sets G to silu(gate) * up. gateUp is the product of H with the matrix of GateUp:
// [rows][2*FFN].
func (k *Kernels) SwiGLU(rows int, gateUp gpu.Slice[uint16], b *Buffers) []gpu.Op {
	threads := min((int(k.dims.FFN)/16+31)/32*32, 1024) // if possible, each thread takes twice 8 numbers
	return []gpu.Op{k.code.Swiglu.Launch(k.grid(threads, 0, rows), k.dims, gateUp, b.G)}
}

// Last copies the row of X of the chunk's last token to row 0 of to.X, and sets the slot's Position
// to that token's position. Operations on one row of to can then go on as in a decode step. Their
// active is the chunk's first number, the slot.
func (k *Kernels) Last(chunk gpu.Slice[int32], s *State, b, to *Buffers) []gpu.Op {
	return []gpu.Op{k.code.Last.Launch(k.grid(256, 0), k.dims, chunk, s.Position, b.X, to.X)}
}

// Dequantize converts an FP8 matrix [out][in] with its scales to 16-bit numbers.
func (k *Kernels) Dequantize(out, in int, w Matrix, dst gpu.Slice[uint16]) []gpu.Op {
	return []gpu.Op{k.code.Dequantize.Launch(k.grid(256, 0, out), k.dims, int32(in), w.Data, w.Scale, dst)}
}
