// Package kernels has the kernels of a Llama-style decoder, their twins for the simulated GPU, and
// a function for each operation that hides which kernels it launches.
//
// Numbers of 16 bits are bfloat16 or float16, as the weights are (Dims.Half); Go sees their bits as
// uint16. A weight matrix is row-major [out][in], as in a checkpoint.
package kernels

import (
	"github.com/puregpu/puregpu/runtime/compile"
	"github.com/puregpu/puregpu/runtime/gpu"
)

// Kernels are the kernels for a model, compiled for a device. Its methods return the launches of an
// operation: add them to a recording one after the other, each after the one before, with nothing
// else between them. Most launches are dependent: they begin early, and wait themselves for the
// launch before. So the first launch of a recording must be that of Embed or EmbedChunk, which is
// not dependent.
type Kernels struct {
	dims      Dims
	invariant bool
	code      *LlamaCode
}

// Open compiles the kernels, or finds them in the cache. With invariant, a row's result does not
// depend on the number of rows. Otherwise a step of one row is faster, and rounds differently.
func Open(dev *gpu.Device, d Dims, invariant bool, options compile.Options) (*Kernels, error) {
	return nil, nil
}

// Close unloads the kernels once the launches in flight are done with them.
func (k *Kernels) Close() error { return nil }

// Dims returns the sizes.
func (k *Kernels) Dims() Dims { return k.dims }

// A State is what the device knows about the slots.
type State struct {
	Token    gpu.Slice[int32]    // [slots]: the token that the next step takes as input
	Position gpu.Slice[int32]    // [slots]: that token's position in its sequence
	Sampling gpu.Slice[Sampling] // [slots]
	Pages    gpu.Slice[int32]    // [slots][Dims.MaxPages]: the pages of a slot's sequence, in order
	Cache    gpu.Range           // page p begins at p * Dims.PageBytes()
	Freq     gpu.Slice[float32]  // [HeadDim/2]: radians of rotation for each position
}

// Buffers are the memory that operations on up to Rows rows use. Row r of a decode step is slot
// active[r], or nothing if active[r] is -1.
type Buffers struct {
	Rows   int
	X      gpu.Slice[float32] // [Rows][Width]: the residual stream
	H      gpu.Slice[uint16]  // [Rows][Width]: X after the norm
	Q      gpu.Slice[uint16]  // [Rows][Heads*HeadDim]: queries
	A      gpu.Slice[uint16]  // [Rows][Heads*HeadDim]: result of the attention
	G      gpu.Slice[uint16]  // [Rows][FFN]: silu(gate) * up
	Logits gpu.Slice[float32] // [Rows][Vocab]; of NewBuffers only
	Work   gpu.Slice[uint32]  // for Attend; of NewBuffers only
}

// NewBuffers allocates memory for decode steps of up to rows rows. A step of fewer rows uses the
// first rows. Only one step at a time may use it.
func (k *Kernels) NewBuffers(dev *gpu.Device, rows int) (*Buffers, error) { return nil, nil }

// NewChunkBuffers allocates memory for chunks of up to rows tokens of a prompt: no Logits and Work.
func (k *Kernels) NewChunkBuffers(dev *gpu.Device, rows int) (*Buffers, error) { return nil, nil }

// Close frees the memory after the work that uses it.
func (b *Buffers) Close() error { return nil }

// A Matrix is a weight matrix of a layer: 16-bit numbers, or FP8 e4m3 if Dims.FP8 is 1.
type Matrix struct {
	Data  gpu.Range
	Scale gpu.Slice[float32] // one for each row, for FP8 only; otherwise the zero Slice
}

// Embed sets each row of X to the embedding of its slot's token. A row without a slot becomes 0.
// The table is [Vocab][Width], of 16-bit numbers.
func (k *Kernels) Embed(rows int, active gpu.Slice[int32], s *State, table gpu.Range, b *Buffers) []gpu.Op {
	return nil
}

// QKV computes queries, keys and values of a layer for each row of X: norm (weight [Width]), product
// with w [QKVRows][Width], and rotation. The queries go to Q; keys and values go to the slot's page
// at its position.
func (k *Kernels) QKV(rows int, active gpu.Slice[int32], s *State, layer int, norm gpu.Range, w Matrix, b *Buffers) []gpu.Op {
	return nil
}

// Attend computes the attention of each row of Q over its slot's positions, including its own: A.
func (k *Kernels) Attend(rows int, active gpu.Slice[int32], s *State, layer int, b *Buffers) []gpu.Op {
	return nil
}

// Out multiplies A by w [Width][Heads*HeadDim]. With add, it adds the product to X. Otherwise it
// sets X to the product. For tensor parallelism one device adds, the others do not, and then the
// sum of all devices' X is the new X.
func (k *Kernels) Out(rows int, add bool, w Matrix, b *Buffers) []gpu.Op { return nil }

// GateUp computes silu(gate) * up for each row of X: norm, then the product with w [2*FFN][Width],
// which has the rows of gate, then of up: G.
func (k *Kernels) GateUp(rows int, norm gpu.Range, w Matrix, b *Buffers) []gpu.Op { return nil }

// Down multiplies G by w [Width][FFN]; see Out for add.
func (k *Kernels) Down(rows int, add bool, w Matrix, b *Buffers) []gpu.Op { return nil }

// Logits computes the logits of each row of X: norm, then the product with w [Vocab][Width], of
// 16-bit numbers.
func (k *Kernels) Logits(rows int, norm, w gpu.Range, b *Buffers) []gpu.Op { return nil }

// Sample chooses the next token of each row's slot from its logits. It writes it to out[row] and to
// the slot's Token, and adds 1 to the slot's Position. The random numbers depend on the slot's seed
// and position only. out[row] is -1 without a slot.
func (k *Kernels) Sample(rows int, active gpu.Slice[int32], s *State, b *Buffers, out gpu.Slice[int32]) []gpu.Op {
	return nil
}

// A chunk is a piece of a prompt: n tokens of one slot from a position on. It is three numbers in
// device memory: slot, position, n. Operations on a chunk are launched for rows >= n rows, so that
// one recording serves all chunks; rows from n on change nothing in the cache.

// EmbedChunk sets row i of X to the embedding of tokens[i]. Give a valid token for each of the rows.
func (k *Kernels) EmbedChunk(rows int, tokens gpu.Slice[int32], table gpu.Range, b *Buffers) []gpu.Op {
	return nil
}

// Norm sets H to the norm of X, with the given weight [Width].
func (k *Kernels) Norm(rows int, weight gpu.Range, b *Buffers) []gpu.Op { return nil }

// RopeChunk rotates queries and keys of a layer. qkv is the product of H with the matrix of QKV:
// [rows][QKVRows]. The queries go to Q; keys and values go to the slot's pages.
func (k *Kernels) RopeChunk(rows int, chunk gpu.Slice[int32], s *State, layer int, qkv gpu.Slice[uint16], b *Buffers) []gpu.Op {
	return nil
}

// AttendChunk computes the attention of each row of Q over all positions up to its own: A. Rows from
// n on become 0.
func (k *Kernels) AttendChunk(rows int, chunk gpu.Slice[int32], s *State, layer int, b *Buffers) []gpu.Op {
	return nil
}

// SwiGLU sets G to silu(gate) * up. gateUp is the product of H with the matrix of GateUp:
// [rows][2*FFN]. (Products with the matrices of Out and Down are added to X by the product itself:
// C is X as float32, with a factor of 1 for what X was.)
func (k *Kernels) SwiGLU(rows int, gateUp gpu.Slice[uint16], b *Buffers) []gpu.Op { return nil }

// Last copies the chunk's last row of X to row 0 of to.X, and sets the slot's Position to its
// position. Logits and Sample of one row of to then choose the next token; the slot in the chunk's
// first number serves as active.
func (k *Kernels) Last(chunk gpu.Slice[int32], s *State, b, to *Buffers) []gpu.Op { return nil }

// Dequantize converts an FP8 matrix [out][in] with its scales to 16-bit numbers.
func (k *Kernels) Dequantize(out, in int, w Matrix, dst gpu.Slice[uint16]) []gpu.Op { return nil }
