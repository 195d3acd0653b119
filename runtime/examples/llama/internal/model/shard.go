package model

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"sync"

	"github.com/puregpu/puregpu/runtime/blas"
	"github.com/puregpu/puregpu/runtime/collective"
	"github.com/puregpu/puregpu/runtime/examples/llama/internal/checkpoint"
	"github.com/puregpu/puregpu/runtime/examples/llama/internal/kernels"
	"github.com/puregpu/puregpu/runtime/examples/llama/internal/peer"
	"github.com/puregpu/puregpu/runtime/gpu"
)

// Options configure a [Shard]. The zero value has good defaults.
type Options struct {
	Slots       int // sequences at once; 0: 64
	Pages       int // pages of the cache; 0: enough for all slots, in at most 90 % of free memory
	MaxTokens   int // largest number of tokens in a sequence; 0: as many as the model allows
	ChunkTokens int // tokens in a chunk of a prompt, a multiple of 16; 0: 256

	// Rank and Ranks say which part of each matrix this shard has. If Ranks is above 1, Peer or
	// Comm adds the shards' products. Peer is a kernel and needs devices of one process that have
	// access to each other's memory. Comm may wait forever for a missing shard unless Comm has a
	// Timeout. The caller closes Peer or Comm, after all shards.
	Rank, Ranks int
	Peer        *peer.Sum
	Comm        *collective.Communicator

	// Invariant makes a sequence's tokens independent of the sequences that are decoded with it.
	// Then a sequence that decodes alone uses the same kernels as many sequences, and is slower.
	Invariant bool

	// Warm has numbers of sequences that are decoded together. Open makes their recordings. The
	// recordings for other numbers are made in the first step that needs them.
	Warm []int

	// WarmPrompts has Open make the recordings for chunks of all lengths.
	WarmPrompts bool
}

// A Shard is a model on a device, or one device's part of it. It is a [Runner].
type Shard struct {
	dev     *gpu.Device
	options Options
	info    Info

	weights *weights
	kernels *kernels.Kernels
	blas    *blas.Library
	stream  *gpu.Stream
	alone   func() gpu.Op // returns one launch that computes the logits of a sequence that decodes alone; may be nil

	closers []io.Closer // in the order in which they were opened

	// Memory of the device. The plans use it one after the other.
	state  kernels.State
	active gpu.Slice[int32]   // [MaxRows]: the slots that decode, then -1
	chunk  gpu.Slice[int32]   // [chunkHead+ChunkTokens]: slot, position and length of a chunk, and its tokens
	out    gpu.Slice[int32]   // [MaxRows+1]: the new tokens; the last element is the chunk's
	rows   *kernels.Buffers   // of a decode step
	prompt *kernels.Buffers   // of a chunk
	wide   gpu.Slice[uint16]  // a product of cuBLAS, before the rotation or SwiGLU
	plain  gpu.Slice[uint16]  // a matrix in 16 bits, for cuBLAS; only if the model is quantised
	part   gpu.Slice[float32] // this shard's part of a sum, with Options.Peer

	recordings map[recorded]*gpu.CommandBuffer

	// Memory of the host.
	slots      []slot
	hostActive [MaxRows]int32 // the contents of the field active after the plans so far
	hostChunk  []int32
	hostPages  []int32
	ops        []gpu.Op // operations of the plan that is being queued; kept to save allocations
}

// chunkHead is the index in Shard.chunk of the first token. Before the token are three numbers and
// one unused element.
const chunkHead = 4

// Open uploads the model to a device. The shard uses the device's first queue.
func Open(ctx context.Context, dev *gpu.Device, ck *checkpoint.Checkpoint, o Options) (*Shard, error) {
	s := &Shard{dev: dev, stream: dev.Queue(0).NewStream(), recordings: map[recorded]*gpu.CommandBuffer{}}
	if err := s.open(ctx, ck, o); err != nil {
		return nil, errors.Join(err, s.Close())
	}
	return s, nil
}

func (s *Shard) open(ctx context.Context, ck *checkpoint.Checkpoint, o Options) (err error) {
	c := ck.Config()
	if s.options, err = o.complete(&c); err != nil {
		return err
	}
	o = s.options
	if s.weights, err = loadWeights(s.dev, ck, o.Rank, o.Ranks); err != nil {
		return err
	}
	s.closers = append(s.closers, s.weights.mem)
	s.info = Info{
		Slots: o.Slots, Pages: o.Pages, PageTokens: PageTokens, MaxTokens: o.MaxTokens, ChunkTokens: o.ChunkTokens, Vocab: c.Vocab,
	}
	d := kernels.Dims{
		Layers: int32(c.Layers), Width: int32(c.Width), HeadDim: int32(c.HeadDim), Vocab: int32(c.Vocab),
		Heads: int32(c.Heads / o.Ranks), KVHeads: int32(c.KVHeads / o.Ranks), FFN: int32(c.FFN / o.Ranks),
		MaxPages: int32(s.info.maxPages()), Eps: float32(c.Eps), RopeFactor: float32(c.Rope.Attention),
	}
	if s.weights.kind == checkpoint.F16 {
		d.Half = 1
	}
	if s.weights.quantised() {
		d.FP8 = 1
	}
	if err := s.openCode(&d); err != nil {
		return err
	}
	if err := s.alloc(&d); err != nil {
		return err
	}
	if err := s.allocCache(uint64(d.PageBytes())); err != nil {
		return err
	}
	if err := s.openAlone(ctx, &d); err != nil {
		return err
	}
	s.slots = make([]slot, o.Slots)
	s.hostChunk, s.hostPages = make([]int32, s.chunk.Len()), make([]int32, s.info.maxPages())
	for i := range s.hostActive {
		s.hostActive[i] = -1
	}
	// The first download may allocate memory of the host. In a step, the allocation could wait for
	// another shard's device while that device waits for this shard. So the first download is here.
	s.stream.Do(s.state.Freq.UploadCopy(c.InvFreq()), s.out.Download(make([]int32, s.out.Len())))
	for _, rows := range o.Warm {
		if _, err := s.recording(rows, false, false); err != nil {
			return err
		}
	}
	if o.WarmPrompts {
		if err := s.recordChunks(); err != nil {
			return err
		}
	}
	if err := errors.Join(s.weights.wait(ctx), s.stream.Wait(ctx)); err != nil {
		return err
	}
	return ctx.Err() // the context may have ended after the uploads
}

// openCode opens the kernels and cuBLAS, concurrently, because both take long.
func (s *Shard) openCode(d *kernels.Dims) error {
	var other sync.WaitGroup
	var err error
	other.Go(func() { s.blas, err = blas.Open(s.dev, blas.Options{}) })
	k, kernelsErr := kernels.Open(s.dev, *d, s.options.Invariant)
	if s.kernels = k; kernelsErr == nil {
		s.closers = append(s.closers, k)
	}
	if other.Wait(); err == nil {
		s.closers = append(s.closers, s.blas)
	}
	return errors.Join(kernelsErr, err)
}

// complete returns o with defaults filled in, or an error if an option is wrong for the model.
func (o Options) complete(c *checkpoint.Config) (Options, error) {
	for _, d := range []struct {
		option *int
		value  int
	}{{&o.Slots, MaxRows}, {&o.MaxTokens, c.MaxTokens}, {&o.ChunkTokens, 256}, {&o.Ranks, 1}} {
		if *d.option == 0 {
			*d.option = d.value
		}
	}
	bad := func(format string, args ...any) (Options, error) {
		return o, fmt.Errorf("model: "+format+": %w", append(args, gpu.ErrArgument)...)
	}
	switch {
	case o.Slots < 0 || o.Pages < 0 || o.MaxTokens < 0:
		return bad("%d slots, %d pages, sequences of %d tokens: none may be negative", o.Slots, o.Pages, o.MaxTokens)
	case o.MaxTokens > c.MaxTokens:
		return bad("sequences of %d tokens, but the model was made for %d at most", o.MaxTokens, c.MaxTokens)
	case o.ChunkTokens < 0 || o.ChunkTokens%PageTokens != 0:
		return bad("chunks of %d tokens: it must be a multiple of %d", o.ChunkTokens, PageTokens)
	case o.Rank < 0 || o.Rank >= o.Ranks:
		return bad("rank %d of %d: ranks begin at 0", o.Rank, o.Ranks)
	case c.KVHeads%o.Ranks != 0 || c.Heads%o.Ranks != 0 || c.FFN%o.Ranks != 0:
		return bad("%d shards cannot divide %d heads of queries, %d heads of keys and values, and %d columns of the FFN", o.Ranks, c.Heads, c.KVHeads, c.FFN)
	case slices.ContainsFunc(o.Warm, func(rows int) bool { return rows < 1 || rows > MaxRows }):
		return bad("steps of %v sequences: 1 to %d are decoded together", o.Warm, MaxRows)
	case o.Ranks > 1 && o.Peer == nil && o.Comm == nil:
		return bad("%d shards need peers or a communicator", o.Ranks)
	case o.Peer != nil && (o.Peer.Rank() != o.Rank || o.Peer.Count() != o.Ranks):
		return bad("rank %d of %d with a peer of rank %d of %d", o.Rank, o.Ranks, o.Peer.Rank(), o.Peer.Count())
	case o.Ranks > 1 && o.Peer == nil && (o.Comm.Rank() != o.Rank || o.Comm.Count() != o.Ranks):
		return bad("rank %d of %d with a communicator of rank %d of %d", o.Rank, o.Ranks, o.Comm.Rank(), o.Comm.Count())
	}
	return o, nil
}

// alloc allocates all but the weights and the cache.
func (s *Shard) alloc(d *kernels.Dims) (err error) {
	if s.rows, err = s.kernels.NewBuffers(s.dev, MaxRows); err != nil {
		return err
	}
	s.closers = append(s.closers, s.rows)
	if s.prompt, err = s.kernels.NewChunkBuffers(s.dev, s.info.ChunkTokens); err != nil {
		return err
	}
	s.closers = append(s.closers, s.prompt)
	var l layout
	for range 2 { // the first time only counts
		if l.used > 0 {
			if l.mem, err = s.buffer(l.used); err != nil {
				return err
			}
			l.used = 0
		}
		s.state.Token = takeSlice[int32](&l, s.info.Slots)
		s.state.Position = takeSlice[int32](&l, s.info.Slots)
		s.state.Sampling = takeSlice[kernels.Sampling](&l, s.info.Slots)
		s.state.Pages = takeSlice[int32](&l, s.info.Slots*s.info.maxPages())
		s.state.Freq = takeSlice[float32](&l, int(d.HeadDim)/2)
		s.active = takeSlice[int32](&l, MaxRows)
		s.chunk = takeSlice[int32](&l, chunkHead+s.info.ChunkTokens)
		s.out = takeSlice[int32](&l, MaxRows+1)
		s.wide = takeSlice[uint16](&l, max(MaxRows, s.info.ChunkTokens)*max(d.QKVRows(), 2*int(d.FFN)))
		if s.options.Peer != nil {
			s.part = takeSlice[float32](&l, max(MaxRows, s.info.ChunkTokens)*int(d.Width))
		}
		if y := &s.weights.layers[0]; d.FP8 == 1 {
			s.plain = takeSlice[uint16](&l, max(y.qkv.size(), y.o.size(), y.gateUp.size(), y.down.size()))
		}
	}
	if l.err != nil {
		return l.err
	}
	s.stream.Do(gpu.Fill(l.mem.All(), []byte{0}), s.active.Fill(-1))
	return nil
}

// buffer allocates device memory that the shard frees.
func (s *Shard) buffer(size uint64) (*gpu.Buffer, error) {
	b, err := s.dev.Alloc(gpu.DeviceMem, size)
	if err != nil {
		return nil, fmt.Errorf("model: allocate %s of device memory: %w", sized(size), err)
	}
	s.closers = append(s.closers, b)
	return b, nil
}

// allocCache allocates the cache, with the number of pages that [Options.Pages] describes.
func (s *Shard) allocCache(page uint64) (err error) {
	free, _, err := s.dev.MemInfo()
	if err != nil {
		return err
	}
	if s.info.Pages == 0 {
		fill := free / 10 * 9
		if s.dev.Info().Arch == "sim" {
			fill = min(fill, 64<<20) // a simulated GPU uses the host's memory
		}
		s.info.Pages = int(min(fill/page, uint64(s.info.Slots*s.info.maxPages())))
	}
	size := page * uint64(s.info.Pages)
	if s.info.Pages == 0 || uint64(s.info.Pages) > free/page {
		return fmt.Errorf("model: %s of device memory are free beside the weights of %s, and the cache needs %s for %d pages of %d tokens: %w",
			sized(free), sized(s.weights.mem.Size()), sized(max(page, size)), max(s.info.Pages, 1), PageTokens, gpu.ErrOutOfMemory)
	}
	cache, err := s.buffer(size)
	if err == nil {
		s.state.Cache = cache.All()
	}
	return err
}

// Info describes the shard.
func (s *Shard) Info() Info { return s.info }

// Close waits for the plans that run, and frees the shard's memory.
func (s *Shard) Close() error {
	s.stream.Wait(context.Background()) // the functions that Run returned report the stream's error
	if s.weights != nil {
		s.weights.wait(context.Background()) // Open reported the error
	}
	var all error
	for _, r := range s.recordings {
		all = errors.Join(all, r.Close())
	}
	for _, c := range slices.Backward(s.closers) {
		all = errors.Join(all, c.Close())
	}
	s.recordings, s.closers = nil, nil
	return all
}
