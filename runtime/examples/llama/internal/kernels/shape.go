package kernels

import "fmt"

// PageTokens is the number of tokens of a page of the cache.
const PageTokens = 16

// MaxRows is the largest number of rows of a decode step.
const MaxRows = 64

// Dims are the sizes of a model, or of one device's part of it. All kernels take them. The type in
// C is struct Dims.
type Dims struct {
	Layers, Width, Heads, KVHeads, HeadDim, FFN, Vocab int32

	MaxPages   int32   // length of a row of the page table
	Half       int32   // 1: 16-bit numbers are float16; 0: they are bfloat16
	FP8        int32   // 1: the weights of the layers' products are FP8 e4m3, with a scale for each row
	Eps        float32 // of the RMS norm
	RopeFactor float32 // factor of the rotation's cosine and sine: 1 except for YaRN
}

// check refuses sizes that the kernels do not support.
func (d *Dims) check() error {
	switch {
	case d.HeadDim != 64 && d.HeadDim != 128:
		return fmt.Errorf("kernels: heads have %d numbers: only 64 and 128 are supported", d.HeadDim)
	case d.Width <= 0 || d.Width%64 != 0:
		return fmt.Errorf("kernels: the width is %d: it must be a multiple of 64", d.Width)
	case d.FFN <= 0 || d.FFN%64 != 0:
		return fmt.Errorf("kernels: the FFN's width is %d: it must be a multiple of 64 on each device", d.FFN)
	case d.KVHeads <= 0 || d.Heads <= 0 || d.Heads%d.KVHeads != 0:
		return fmt.Errorf("kernels: %d heads of queries, %d of keys and values: the first must be a multiple of the second", d.Heads, d.KVHeads)
	case d.Vocab <= 0 || d.Vocab > 1<<19:
		return fmt.Errorf("kernels: the vocabulary has %d tokens: at most %d are supported", d.Vocab, 1<<19)
	case d.Layers <= 0 || d.MaxPages <= 0:
		return fmt.Errorf("kernels: %d layers, %d pages of a sequence: both must be positive", d.Layers, d.MaxPages)
	}
	return nil
}

// PageBytes is the size of a page of the cache. A page has the keys and values of PageTokens
// tokens: 16-bit numbers [Layers][2: K, V][KVHeads][PageTokens][HeadDim].
func (d *Dims) PageBytes() int {
	return int(d.Layers) * 2 * int(d.KVHeads) * PageTokens * int(d.HeadDim) * 2
}

// QKVRows is the number of rows of the matrix that has the rows of q, then of k, then of v.
func (d *Dims) QKVRows() int {
	return int(d.Heads+2*d.KVHeads) * int(d.HeadDim)
}

// Sampling says how a slot's next token is chosen. A Temperature below 1e-5 takes the token with
// the largest logit, the first one if several are equal. Otherwise the token is random: TopK
// restricts the choice if it is above 0, and TopP if it is below 1. The type in C is struct
// Sampling.
type Sampling struct {
	Temperature, TopP float32
	TopK              int32
	_                 int32
	Seed              uint64
}
