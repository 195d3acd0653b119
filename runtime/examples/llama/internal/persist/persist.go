// Package persist decodes one token of a Llama-style model in one launch, for a sequence that runs
// alone. All multiprocessors work from the beginning to the end and read the weights without a
// pause. Launches of single operations reach about two thirds of the memory's bandwidth.
//
// Several devices can share the model, in tensor parallelism: then the launch on each device writes
// its part of the sums to the memory of the other devices.
package persist

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/puregpu/puregpu/runtime/compile"
	"github.com/puregpu/puregpu/runtime/examples/llama/internal/peer"
	"github.com/puregpu/puregpu/runtime/gpu"
)

// PageTokens is the number of tokens of a page of the cache.
const PageTokens = 16

// Dims are the sizes of a model. If ranks share the model, Heads, KVHeads and FFN are those of one
// rank. The type in C is struct Dims.
type Dims struct {
	Layers, Width, Heads, KVHeads, HeadDim, FFN, Vocab int32

	MaxPages   int32   // length of a row of the page table
	Half       int32   // 1: 16-bit numbers are float16; 0: they are bfloat16
	FP8        int32   // must be 0
	Eps        float32 // of the RMS norm
	RopeFactor float32 // factor of the rotation's cosine and sine: 1 except for YaRN
}

func (d *Dims) pageBytes() int {
	return int(d.Layers) * 2 * int(d.KVHeads) * PageTokens * int(d.HeadDim) * 2
}

func (d *Dims) qkv() int { return int(d.Heads+2*d.KVHeads) * int(d.HeadDim) }

// Tuning has parameters that change only the speed, except that some Defines make results wrong. A
// field of 0 gets a good value.
type Tuning struct {
	Stages int // stages of the ring of weights in shared memory; 0: as many as fit
	Copies int // copies of exchanged words, so that blocks do not all read the same ones
	Hint   int // percentage of an exchange's words that must be written before all warps poll the words

	Defines []string // further options of the compiler, such as -DUNTAGGED: see persist.cu
}

// Supported reports whether the device can run a Decoder. NVIDIA GPUs of compute capability 9.0 or
// later with cooperative launches can, and simulated GPUs.
func Supported(dev *gpu.Device) bool {
	arch := dev.Info().Arch
	n, err := strconv.Atoi(strings.TrimPrefix(arch, "sm_"))
	return arch == "sim" || err == nil && n >= 90 && dev.Info().Cooperative
}

// A Layer has the weights of a layer. Matrices are row-major [out][in].
type Layer struct {
	Norm1  gpu.Range // [Width]
	QKV    gpu.Range // [(Heads + 2 KVHeads) HeadDim][Width]: rows of q, then of k, then of v
	Out    gpu.Range // [Width][Heads HeadDim]
	Norm2  gpu.Range // [Width]
	GateUp gpu.Range // [2 FFN][Width]: rows of gate, then of up
	Down   gpu.Range // [Width][FFN]
}

// Args are the memory that a decode step uses. The memory must stay allocated until the steps are
// done. The addresses of weights must be multiples of 16. A step is for slot Active[0]. If
// Active[0] is -1, the step does nothing.
type Args struct {
	Layers               []Layer
	Embeddings, LastNorm gpu.Range // [Vocab][Width], [Width]
	Head                 gpu.Range // [Vocab][Width]

	Freq     gpu.Slice[float32] // [HeadDim/2]: radians of rotation per position
	Cache    gpu.Range          // 16-bit numbers [pages][Layers][2: K, V][KVHeads][PageTokens][HeadDim]
	Pages    gpu.Slice[int32]   // [slots][MaxPages]: the pages of a slot's sequence, in order
	Active   gpu.Slice[int32]
	Token    gpu.Slice[int32]   // [slots]: the input
	Position gpu.Slice[int32]   // [slots]: the input's position
	Logits   gpu.Slice[float32] // [Vocab]: the result

	// Rank is this device's rank if several devices share the model; otherwise it is nil. The
	// decoder uses the scratch memory of Rank, so a Rank may have only one decoder at a time. The
	// devices of all ranks must be of one kind. Make the decoders of all ranks while no step runs,
	// and launch the same steps on all ranks in the same order. If the same devices have two teams,
	// launch the steps of both teams in the same order on all devices, because a launch takes all
	// multiprocessors.
	Rank *peer.Sum
}

// A Decoder is the kernel for a model. It serves one sequence of steps: two of its launches must
// not run at once.
type Decoder struct {
	dims  Dims
	code  *PersistCode
	grid  gpu.Grid
	peers peer.Peers
	work  gpu.Slice[uint64] // counts and words that blocks exchange; see persist.cu
	table gpu.Slice[uint64] // addresses of the layers' weights
	args  Args
}

// New compiles the kernel for a device, or finds the kernel in the cache, and allocates the
// Decoder's memory.
func New(ctx context.Context, dev *gpu.Device, d Dims, args Args, t Tuning) (*Decoder, error) {
	if !Supported(dev) {
		return nil, fmt.Errorf("persist: %s: compute capability 9.0 is needed: %w", dev.Info().Arch, gpu.ErrUnsupported)
	}
	if err := d.check(&args); err != nil {
		return nil, err
	}
	ranks := 1
	if args.Rank != nil {
		ranks = args.Rank.Count()
		if err := fits(dev, args.Rank); err != nil {
			return nil, err
		}
	}
	p, err := d.plan(dev.Info().Processors, int(dev.Info().SharedOptIn), ranks, t)
	if err != nil {
		return nil, err
	}
	if int(d.Heads) > p.blocks && dev.Info().Arch != "sim" { // the twin has no blocks
		return nil, fmt.Errorf("persist: %d heads on %d multiprocessors: %w", d.Heads, p.blocks, gpu.ErrUnsupported)
	}
	c := &Decoder{dims: d, args: args, grid: p.grid()}
	if c.code, _, err = CompilePersist(dev, compile.Options{Options: p.options()}); err == nil {
		err = c.upload(ctx, dev, p.words())
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("persist: %w", err), c.Close())
	}
	return c, nil
}

// fits checks that the ranks' devices can exchange words. If they cannot, all ranks get an error.
func fits(dev *gpu.Device, rank *peer.Sum) error {
	all := rank.Devices()
	if all[rank.Rank()] != dev {
		return fmt.Errorf("persist: rank %d is not on %s: %w", rank.Rank(), dev.Info().Name, gpu.ErrArgument)
	}
	for _, from := range all {
		for _, to := range all {
			a, b := from.Info(), to.Info()
			if a.Arch != b.Arch || a.Processors != b.Processors || a.SharedOptIn != b.SharedOptIn { // the grids would differ
				return fmt.Errorf("persist: %s and %s share the model: devices of one kind are needed: %w", a.Name, b.Name, gpu.ErrUnsupported)
			}
			if l, err := from.Link(to); err != nil {
				return err
			} else if !l.Atomics {
				return fmt.Errorf("persist: device %d has no atomic operations on the memory of device %d: %w", a.Index, b.Index, gpu.ErrUnsupported)
			}
		}
	}
	return nil
}

// A weights is a range of weights, with the number of 16-bit numbers that it must have.
type weights struct {
	of      string
	r       gpu.Range
	numbers uint64
}

func address(r gpu.Range) uint64 { return uint64(r.Buffer.Ptr()) + r.Offset }

// upload allocates the memory for the exchanged words, unless Rank has it, and for the table of
// addresses. It clears the words and writes the table.
func (c *Decoder) upload(ctx context.Context, dev *gpu.Device, words int) (err error) {
	if c.args.Rank != nil {
		c.work, c.peers = c.args.Rank.Scratch()
	} else if c.work, err = gpu.AllocSlice[uint64](dev, gpu.DeviceMem, words); err != nil {
		return err
	}
	if c.table, err = gpu.AllocSlice[uint64](dev, gpu.DeviceMem, 6*len(c.args.Layers)); err != nil {
		return err
	}
	var table []uint64
	for _, l := range c.args.Layers {
		for _, r := range []gpu.Range{l.Norm1, l.QKV, l.Out, l.Norm2, l.GateUp, l.Down} {
			table = append(table, address(r))
		}
	}
	s := dev.Queue(0).NewStream()
	s.Do(c.work.Fill(0), c.table.UploadCopy(table))
	return s.Wait(ctx)
}

// Op returns the launch of a step. It can be recorded. The step computes the logits that follow the
// token of slot Active[0], and adds the token's keys and values to the cache.
func (c *Decoder) Op() gpu.Op {
	a := &c.args
	return c.code.Decode.Launch(c.grid, c.dims, c.peers, c.table, a.Embeddings, a.LastNorm, a.Head, a.Freq, a.Cache, a.Pages, a.Active,
		a.Token, a.Position, c.work, a.Logits)
}

// Close unloads the kernel and frees the Decoder's memory, after the work that uses them.
func (c *Decoder) Close() (err error) {
	if c.code != nil {
		err = c.code.Close()
	}
	if c.work.Range().Buffer != nil && c.args.Rank == nil {
		err = errors.Join(err, c.work.Close())
	}
	if c.table.Range().Buffer != nil {
		err = errors.Join(err, c.table.Close())
	}
	return err
}

// check refuses sizes that the kernel does not support, and weights that do not have these sizes.
func (d *Dims) check(a *Args) error {
	w, q, f := uint64(d.Width), uint64(d.Heads*d.HeadDim), uint64(d.FFN)
	switch {
	case d.FP8 != 0:
		return fmt.Errorf("persist: FP8 weights: %w", gpu.ErrUnsupported)
	case d.Layers <= 0 || d.Vocab <= 0 || d.MaxPages <= 0:
		return fmt.Errorf("persist: %d layers, %d tokens, %d pages of a sequence: %w", d.Layers, d.Vocab, d.MaxPages, gpu.ErrArgument)
	case d.Width <= 0 || d.Width%8 != 0 || d.FFN <= 0 || d.FFN%8 != 0:
		return fmt.Errorf("persist: width %d, FFN %d: they must be multiples of 8: %w", d.Width, d.FFN, gpu.ErrUnsupported)
	case d.HeadDim != 32 && d.HeadDim != 64 && d.HeadDim != 128:
		return fmt.Errorf("persist: heads of %d numbers: %w", d.HeadDim, gpu.ErrUnsupported)
	case d.KVHeads <= 0 || d.Heads <= 0 || d.Heads%d.KVHeads != 0:
		return fmt.Errorf("persist: %d heads for %d heads of keys and values: %w", d.Heads, d.KVHeads, gpu.ErrArgument)
	case len(a.Layers) != int(d.Layers):
		return fmt.Errorf("persist: weights of %d layers for %d: %w", len(a.Layers), d.Layers, gpu.ErrArgument)
	}
	vocab := uint64(d.Vocab) * w
	all := []weights{{"the embeddings", a.Embeddings, vocab}, {"the last norm", a.LastNorm, w}, {"the head", a.Head, vocab}}
	for i, l := range a.Layers {
		of := fmt.Sprintf("layer %d", i)
		all = append(all, weights{of, l.Norm1, w}, weights{of, l.QKV, uint64(d.qkv()) * w}, weights{of, l.Out, w * q},
			weights{of, l.Norm2, w}, weights{of, l.GateUp, 2 * f * w}, weights{of, l.Down, w * f})
	}
	for _, x := range all {
		if x.r.Buffer == nil || x.r.Size != 2*x.numbers {
			return fmt.Errorf("persist: weights of %s have %d bytes for %d: %w", x.of, x.r.Size, 2*x.numbers, gpu.ErrArgument)
		}
		if at := address(x.r); at%16 != 0 {
			return fmt.Errorf("persist: weights of %s at %#x: the address must be a multiple of 16: %w", x.of, at, gpu.ErrArgument)
		}
	}
	return nil
}

// A plan has the parameters with which the kernel is compiled.
type plan struct {
	Dims
	Tuning
	blocks, ranks int
}

// plan completes a tuning for a device. It takes so few blocks that each has at least one row of
// each matrix.
func (d *Dims) plan(processors, shared, ranks int, t Tuning) (*plan, error) {
	p := &plan{Dims: *d, Tuning: t, ranks: ranks}
	p.blocks = min(processors, d.qkv(), int(d.Width), int(d.FFN), int(d.Vocab))
	for _, c := range []struct {
		field *int
		value int
	}{{&p.Copies, 4}, {&p.Hint, 75}} {
		if *c.field == 0 {
			*c.field = c.value
		}
	}
	if p.Stages == 0 {
		p.Stages = (shared - p.static()) / (stage + 16)
	}
	if p.Stages < 2 {
		return nil, fmt.Errorf("persist: %d bytes of shared memory: %w", shared, gpu.ErrUnsupported)
	}
	if n := 8 * p.words(); ranks > 1 && n > peer.ScratchSize {
		return nil, fmt.Errorf("persist: %d ranks exchange %d bytes, and there is room for %d: %w", ranks, n, peer.ScratchSize, gpu.ErrUnsupported)
	}
	return p, nil
}

const (
	warps   = 8                    // warps of a block that multiply
	gather  = 96                   // rows between two barriers of a block
	segment = 128 * warps          // a row's elements in a stage
	stage   = 8 * (2*segment + 64) // bytes of a stage
)

func (p *plan) parts() int { return p.blocks / int(p.Heads) }

// padded is the length of an exchanged vector of n numbers.
func padded(n int32) int { return align(int(n), segment) }

func align(n, to int) int { return (n + to - 1) / to * to }

// static is an upper bound of the size of struct Shared without the stages' barriers.
func (p *plan) static() int {
	floats := (2*gather+1)*warps + 2*(int(p.Width)/p.blocks+1) + int(p.HeadDim) + warps*(int(p.HeadDim)+2)
	return 4*floats + 48*int(p.Layers) + 400
}

// words is the length of Decoder.work, which holds each block's number of launches, the counts of
// written words, and the exchanged words.
func (p *plan) words() int {
	words := 2*p.ranks*padded(p.Width) + padded(p.FFN) + p.parts()*(padded(p.Heads*p.HeadDim)+2*int(p.Heads)) + p.qkv()
	return (align(2*p.blocks, 32) + 5*32 + p.Copies*align(words, 32)) / 2
}

func (p *plan) grid() gpu.Grid {
	g := gpu.Grid{Blocks: [3]uint32{uint32(p.blocks)}, Threads: [3]uint32{32*warps + 32}, SharedMem: uint32(p.Stages * stage)}
	g.Attrs.Cooperative = true
	return g
}

// options are the compiler's options.
func (p *plan) options() []string {
	options := []string{"--std=c++17"}
	for _, m := range []struct {
		name  string
		value int
	}{
		{"RANKS", p.ranks}, {"BLOCKS", p.blocks}, {"LAYERS", int(p.Layers)}, {"WIDTH", int(p.Width)}, {"HEADS", int(p.Heads)}, {"KV_HEADS", int(p.KVHeads)},
		{"HEAD_DIM", int(p.HeadDim)}, {"FFN", int(p.FFN)}, {"VOCAB", int(p.Vocab)}, {"MAX_PAGES", int(p.MaxPages)}, {"HALF", int(p.Half)},
		{"WARPS", warps}, {"STAGES", p.Stages}, {"GATHER", gather}, {"COPIES", p.Copies}, {"HINT", p.Hint},
	} {
		options = append(options, "-D"+m.name+"="+strconv.Itoa(m.value))
	}
	return append(options, p.Defines...)
}
