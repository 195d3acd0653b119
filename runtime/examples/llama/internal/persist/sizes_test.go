package persist

import "strings"

// fullSize is the model whose speed is measured: 1.57 GB of weights.
func fullSize() Dims {
	return Dims{Layers: 16, Width: 2048, Heads: 32, KVHeads: 8, HeadDim: 64, FFN: 5632, Vocab: 32000, MaxPages: 256, Eps: 1e-5, RopeFactor: 1}
}

// tinySize has rows that are no multiples of anything.
func tinySize() Dims {
	return Dims{Layers: 3, Width: 72, Heads: 4, KVHeads: 2, HeadDim: 32, FFN: 200, Vocab: 101, MaxPages: 40, Eps: 1e-5, RopeFactor: 1}
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

// wrong reports whether the variant computes nothing useful. It shows how fast a block is without
// waiting for others, without multiplying, or without memory.
func (v variant) wrong() bool {
	return strings.HasPrefix(v.name, "untagged") || strings.HasPrefix(v.name, "dry")
}

var variants = []variant{
	{"default", Tuning{}},
	{"copies-2", Tuning{Copies: 2}},
	{"copies-8", Tuning{Copies: 8}},
	{"hint-90", Tuning{Hint: 90}},
	{"hint-75", Tuning{Hint: 75}},
	{"hint-50", Tuning{Hint: 50}},
	{"no-hint-qkv", Tuning{Defines: []string{"-DHINT_QKV=0"}}},
	{"pages-16", Tuning{MinPages: 16}},
	{"ahead-2", Tuning{Defines: []string{"-DAHEAD=2"}}},
	{"ahead-4", Tuning{Defines: []string{"-DAHEAD=4"}}},
	{"ahead-6", Tuning{Defines: []string{"-DAHEAD=6"}}},
	{"ahead-8", Tuning{Defines: []string{"-DAHEAD=8"}}},
	{"hint-75-no-hint-qkv", Tuning{Hint: 75, Defines: []string{"-DHINT_QKV=0"}}},
	{"hint-75-ahead-4", Tuning{Hint: 75, Defines: []string{"-DAHEAD=4"}}},
	{"ahead-4-no-hint-qkv", Tuning{Defines: []string{"-DHINT_QKV=0", "-DAHEAD=4"}}},
	{"pages-16-ahead-4", Tuning{MinPages: 16, Defines: []string{"-DAHEAD=4"}}},
	{"pages-32", Tuning{MinPages: 32}},
	{"hint-90-ahead-6-no-hint-qkv", Tuning{Hint: 90, Defines: []string{"-DHINT_QKV=0", "-DAHEAD=6"}}},
	{"all", Tuning{Hint: 75, MinPages: 16, Defines: []string{"-DHINT_QKV=0", "-DAHEAD=4"}}},
	{"all-100", Tuning{MinPages: 16, Defines: []string{"-DHINT_QKV=0", "-DAHEAD=4"}}},
	{"half-the-ring", Tuning{Stages: 6}},
	{"untagged", Tuning{Defines: []string{"-DUNTAGGED"}}},
	{"untagged-dry", Tuning{Defines: []string{"-DUNTAGGED", "-DDRY"}}},
	{"untagged-dry-idle", Tuning{Defines: []string{"-DUNTAGGED", "-DDRY", "-DIDLE"}}},
	{"dry", Tuning{Defines: []string{"-DDRY"}}},
	{"untagged-idle", Tuning{Defines: []string{"-DUNTAGGED", "-DIDLE"}}},
}
