package persist

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

// A variant is a tuning that is tried. Those whose name begins with untagged compute nothing useful:
// they show how fast a block is without waiting for others, and without multiplying either.
type variant struct {
	name string
	Tuning
}

var variants = []variant{
	{"default", Tuning{}},
	{"two-teams", Tuning{Teams: 2}},
	{"rows-2", Tuning{Rows: 2}},
	{"rows-8", Tuning{Rows: 8}},
	{"rows-2-two-teams", Tuning{Rows: 2, Teams: 2}},
	{"rows-8-two-teams", Tuning{Rows: 8, Teams: 2}},
	{"team-128", Tuning{Team: 128, Teams: 2, Rows: 8}},
	{"team-128-of-3", Tuning{Team: 128, Teams: 3, Rows: 8}},
	{"team-128-of-4", Tuning{Team: 128, Teams: 4, Rows: 4}},
	{"team-512", Tuning{Team: 512, Rows: 2}},
	{"task-heads-2", Tuning{TaskHeads: 2}},
	{"task-heads-4", Tuning{TaskHeads: 4}},
	{"half-the-ring", Tuning{Stages: 6}},
	{"same-policy", Tuning{Defines: []string{"-DSAME_POLICY"}}},
	{"sleep-50", Tuning{Defines: []string{"-DSLEEP=50"}}},
	{"sleep-300", Tuning{Defines: []string{"-DSLEEP=300"}}},
	{"probe-8", Tuning{Defines: []string{"-DPROBE=8"}}},
	{"probe-32", Tuning{Defines: []string{"-DPROBE=32"}}},
	{"probe-32-two-teams", Tuning{Teams: 2, Defines: []string{"-DPROBE=32"}}},
	{"barrier", Tuning{Defines: []string{"-DBARRIER"}}},
	{"barrier-two-teams", Tuning{Teams: 2, Defines: []string{"-DBARRIER"}}},
	{"untagged", Tuning{Defines: []string{"-DUNTAGGED"}}},
	{"untagged-two-teams", Tuning{Teams: 2, Defines: []string{"-DUNTAGGED"}}},
	{"untagged-idle", Tuning{Defines: []string{"-DUNTAGGED", "-DIDLE"}}},
}
