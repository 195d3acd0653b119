package persist

// fullSize is the model whose speed is measured: 1.57 GB of weights.
func fullSize() Dims {
	return Dims{Layers: 16, Width: 2048, Heads: 32, KVHeads: 8, HeadDim: 64, FFN: 5632, Vocab: 32000, MaxPages: 256, Eps: 1e-5, RopeFactor: 1}
}

// tinySize has rows that end inside a segment, and an odd vocabulary.
func tinySize() Dims {
	return Dims{Layers: 3, Width: 72, Heads: 4, KVHeads: 2, HeadDim: 32, FFN: 200, Vocab: 101, MaxPages: 40, Eps: 1e-5, RopeFactor: 1}
}

// halfSize has float16 weights, heads of 128 and rows of several segments.
func halfSize() Dims {
	return Dims{Layers: 2, Width: 2560, Heads: 20, KVHeads: 5, HeadDim: 128, FFN: 1032, Vocab: 777, MaxPages: 160, Half: 1, Eps: 1e-6, RopeFactor: 1.2}
}

// A variant is a tuning that is tried. The untagged variants compute wrong results: they show how
// fast blocks are if they do not wait for each other, and the idle one if they do not multiply
// either.
type variant struct {
	name string
	Tuning
}

var variants = []variant{
	{"default", Tuning{}},
	{"copies-1", Tuning{Copies: 1}},
	{"copies-2", Tuning{Copies: 2}},
	{"copies-8", Tuning{Copies: 8}},
	{"warps-4", Tuning{Warps: 4}},
	{"half-the-ring", Tuning{Stages: 6}},
	{"sleep-50", Tuning{Defines: []string{"-DSLEEP=50"}}},
	{"sleep-200", Tuning{Defines: []string{"-DSLEEP=200"}}},
	{"untagged", Tuning{Defines: []string{"-DUNTAGGED"}}},
	{"untagged-idle", Tuning{Defines: []string{"-DUNTAGGED", "-DIDLE"}}},
}
