package model

import "github.com/puregpu/puregpu/runtime/collective"

// Options are how a [Shard] is opened. The zero value is good.
type Options struct {
	Slots       int // sequences at once; 0: 64
	Pages       int // pages of the cache; 0: as many as fit into 90 % of the free memory
	MaxTokens   int // tokens in a sequence; 0: what the model was made for
	ChunkTokens int // tokens in a chunk of a prompt; 0: 256

	// Rank and Ranks say which part of each matrix this shard has, with tensor parallelism. Comm
	// joins the shards' devices. It stays the caller's, who closes it after the shard.
	Rank, Ranks int
	Comm        *collective.Communicator

	// Invariant makes a sequence's tokens independent of the others that are decoded with it: a
	// sequence that is alone uses the same kernels as many do.
	Invariant bool
}
