package persist

import "strings"

// fullSize is the model whose speed is measured: 1.57 GB of weights.
func fullSize() Dims {
	return Dims{Layers: 16, Width: 2048, Heads: 32, KVHeads: 8, HeadDim: 64, FFN: 5632, Vocab: 32000, MaxPages: 256, Eps: 1e-5, RopeFactor: 1}
}

// doubleSize is the model whose speed is measured on two devices: 3.37 GB of weights.
func doubleSize() Dims {
	return Dims{Layers: 16, Width: 3072, Heads: 48, KVHeads: 12, HeadDim: 64, FFN: 8192, Vocab: 32000, MaxPages: 256, Eps: 1e-5, RopeFactor: 1}
}

// wideSize has heads for eight ranks.
func wideSize() Dims {
	return Dims{Layers: 2, Width: 4096, Heads: 32, KVHeads: 8, HeadDim: 128, FFN: 14336, Vocab: 1000, MaxPages: 256, Eps: 1e-5, RopeFactor: 1}
}

// of returns the sizes of each rank's part of the model.
func (d Dims) of(ranks int32) Dims {
	d.Heads, d.KVHeads, d.FFN = d.Heads/ranks, d.KVHeads/ranks, d.FFN/ranks
	return d
}

// tinySize has rows that end inside a segment, and an odd vocabulary.
func tinySize() Dims {
	return Dims{Layers: 3, Width: 72, Heads: 4, KVHeads: 2, HeadDim: 32, FFN: 208, Vocab: 101, MaxPages: 40, Eps: 1e-5, RopeFactor: 1}
}

// halfSize has float16 weights, heads of 128 and rows of several segments.
func halfSize() Dims {
	return Dims{Layers: 2, Width: 2560, Heads: 20, KVHeads: 5, HeadDim: 128, FFN: 1032, Vocab: 777, MaxPages: 160, Half: 1, Eps: 1e-6, RopeFactor: 1.2}
}

// A variant is a tuning that is tried.
type variant struct {
	name string
	Tuning
}

// wrong reports whether the variant's results are wrong. Variants with wrong results show how fast
// a block is without waiting for other blocks, without multiplying, or without copying from memory.
func (v variant) wrong() bool {
	return strings.HasPrefix(v.name, "untagged") || strings.HasPrefix(v.name, "dry")
}

var variants = []variant{
	{"default", Tuning{}},
	{"copies-1", Tuning{Copies: 1}},
	{"copies-8", Tuning{Copies: 8}},
	{"hint-100", Tuning{Hint: 100}},
	{"hint-50", Tuning{Hint: 50}},
	{"half-the-ring", Tuning{Stages: 6}},
	{"untagged", Tuning{Defines: []string{"-DUNTAGGED"}}},
	{"untagged-idle", Tuning{Defines: []string{"-DUNTAGGED", "-DIDLE"}}},
	{"dry", Tuning{Defines: []string{"-DDRY"}}},
	{"untagged-dry", Tuning{Defines: []string{"-DUNTAGGED", "-DDRY"}}},
}
