package kernels

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/puregpu/puregpu/runtime/compile"
	"github.com/puregpu/puregpu/runtime/driver"
	"github.com/puregpu/puregpu/runtime/gpu"
)

// Kernels are the kernels for a model, compiled for a device. Each method for an operation returns
// launches. Add these to a recording in order, with nothing between them. Most launches are
// dependent (see [driver.LaunchAttrs]): the kernel begins before the previous launch has ended, and
// itself waits until that launch has ended. A recording must not begin with a dependent launch. The
// launches of Embed and EmbedChunk are not dependent. Behind an operation that is not a launch, no
// launch begins early.
type Kernels struct {
	dims       Dims
	invariant  bool
	processors int
	dependent  bool // the device can do dependent launches and clusters
	usual      bool // set by Usual: no launch is dependent
	plan       plan
	code       *LlamaCode

	qkv    map[int]qkvMany // by the largest number of rows: 8, 16, 32, 64
	gateUp map[int]gateUpMany
	add    map[int]addMany
	logits map[int]logitsMany
}

type (
	qkvMany interface {
		Launch(grid gpu.Grid, d Dims, rows, layer int32, active, position, pages gpu.Slice[int32], cache gpu.Range, freq gpu.Slice[float32],
			h gpu.Slice[uint16], w, scale gpu.Range, q gpu.Slice[uint16]) gpu.Op
	}
	gateUpMany interface {
		Launch(grid gpu.Grid, d Dims, rows int32, h gpu.Slice[uint16], w, scale gpu.Range, g gpu.Slice[uint16]) gpu.Op
	}
	addMany interface {
		Launch(grid gpu.Grid, d Dims, rows, in, add int32, a gpu.Slice[uint16], w, scale gpu.Range, x gpu.Slice[float32]) gpu.Op
	}
	logitsMany interface {
		Launch(grid gpu.Grid, d Dims, rows int32, h gpu.Slice[uint16], w gpu.Range, logits gpu.Slice[float32]) gpu.Op
	}
)

// Open compiles the kernels, or finds them in the cache. With invariant, a row's result does not
// depend on the number of rows. Otherwise a step of one row is faster, and rounds differently.
func Open(dev *gpu.Device, d Dims, invariant bool) (*Kernels, error) {
	if err := d.check(); err != nil {
		return nil, err
	}
	info := dev.Info()
	if nvidia := strings.HasPrefix(info.Arch, "sm_"); info.Arch != "sim" && (!nvidia || info.Major < 8) {
		return nil, fmt.Errorf("kernels: %w: %s is %s; the kernels need an NVIDIA GPU of compute capability 8.0 or later", gpu.ErrUnsupported, info.Name, info.Arch)
	}
	p, err := newPlan(&d, info)
	if err != nil {
		return nil, err
	}
	code, _, err := CompileLlama(dev, compile.Options{Options: p.options(&d)})
	if err != nil {
		return nil, err
	}
	return &Kernels{
		dims: d, invariant: invariant, processors: info.Processors, dependent: info.Arch != "sim" && info.Major >= 9, plan: p, code: code,
		qkv:    map[int]qkvMany{8: code.QkvMany8, 16: code.QkvMany16, 32: code.QkvMany32, 64: code.QkvMany64},
		gateUp: map[int]gateUpMany{8: code.GateUpMany8, 16: code.GateUpMany16, 32: code.GateUpMany32, 64: code.GateUpMany64},
		add:    map[int]addMany{8: code.AddMany8, 16: code.AddMany16, 32: code.AddMany32, 64: code.AddMany64},
		logits: map[int]logitsMany{8: code.LogitsMany8, 16: code.LogitsMany16, 32: code.LogitsMany32, 64: code.LogitsMany64},
	}, nil
}

// Close unloads the kernels once the launches in flight are done with them.
func (k *Kernels) Close() error { return k.code.Close() }

// Dims returns the sizes.
func (k *Kernels) Dims() Dims { return k.dims }

// Usual returns kernels whose launches begin only when the previous launch has ended. k.Close
// closes the returned kernels too.
func (k *Kernels) Usual() *Kernels {
	u := *k
	u.usual = true
	return &u
}

// single reports whether kernels for one row are used.
func (k *Kernels) single(rows int) bool { return rows == 1 && !k.invariant }

// grid returns a grid. A launch with the grid is dependent if the device can do that, unless Usual
// made k.
func (k *Kernels) grid(threads, shared int, blocks ...int) gpu.Grid {
	g := gpu.Grid{Threads: [3]uint32{uint32(threads)}, SharedMem: uint32(shared)}
	for i, n := range blocks {
		g.Blocks[i] = uint32(n)
	}
	g.Attrs.Dependent = k.dependent && !k.usual
	return g
}

// gridOne returns the grid of a product with one row. Each warp computes pairs of results. If the
// device does not hold a warp for each pair at once, all warps have about the same number of pairs.
func (k *Kernels) gridOne(out, in int) gpu.Grid {
	shared := k.plan.sharedOne(in)
	pairs, most := (out+1)/2, 8*k.processors*max(k.plan.perProcessor/(shared+1024), 1)
	rounds := (pairs + most - 1) / most
	return k.grid(256, shared, (pairs+8*rounds-1)/(8*rounds))
}

// gridMany returns the grid of a product with up to size rows. If there are few results, several
// blocks, a cluster, compute each tile of the results: every block takes a part of the columns. The
// number of blocks does not depend on size.
func (k *Kernels) gridMany(kind, size, out, in int) gpu.Grid {
	tile, stage := 32*manyTall[kind], 32*manyWide[kind]*k.plan.wide(kind)
	tiles, splits := (out+tile-1)/tile, 1
	for k.dependent && splits < 8 && tiles*splits*2 <= k.processors && in/stage >= 4*splits {
		splits *= 2
	}
	g := k.grid(32*manyTall[kind]*manyWide[kind], k.plan.many[kind][size].shared, tiles, splits)
	if splits > 1 {
		g.Attrs.Cluster = [3]uint32{1, uint32(splits), 1}
	}
	return g
}

// A part is a range of rows that one launch takes.
type part struct{ size, from, to int }

func (p part) rows() int32 { return int32(p.to - p.from) }

// parts divides rows among launches. It returns a single part if one block can take all rows.
func (k *Kernels) parts(kind, rows int) []part {
	var list []part
	for from := 0; from < rows; {
		size := 8
		for size < rows-from && size < MaxRows && k.plan.many[kind][2*size].stages > 0 {
			size *= 2
		}
		to := min(from+size, rows)
		list = append(list, part{size, from, to})
		from = to
	}
	return list
}

// The kinds of products.
const (
	qkvKind = iota
	gateUpKind
	addKind
	logitsKind
	kinds
)

// A block for many rows of kind k has manyTall[k] * manyWide[k] warps: see product.h.
var manyTall, manyWide = [kinds]int{3, 3, 2, 4}, [kinds]int{2, 2, 4, 2}

// A plan says how the blocks of product kernels use a multiprocessor's shared memory.
type plan struct {
	perProcessor int
	stagesOne    int
	fp8          bool
	many         [kinds]map[int]manyPlan // by the largest number of rows
}

// A manyPlan has the number of stages of a block for some number of rows, the key in plan.many, and
// the bytes of shared memory that the block uses. stages is 0 if the shared memory is too small for
// such a block.
type manyPlan struct{ stages, shared int }

// wide returns how many columns of a kind's matrix fit into 32 bytes, in units of 16 columns.
func (p *plan) wide(kind int) int {
	if p.fp8 && kind != logitsKind {
		return 2
	}
	return 1
}

func newPlan(d *Dims, info driver.Info) (plan, error) {
	block, all := info.SharedOptIn-1024, info.ProcessorSharedMem // less the arrays that the kernels declare
	p := plan{perProcessor: all, fp8: d.FP8 == 1}
	if info.Arch != "sim" {
		p.stagesOne = 8
		if block < 160<<10 {
			p.stagesOne = 4
		}
	}
	if n := p.sharedOne(int(max(d.Width, d.FFN, d.Heads*d.HeadDim))); n > block {
		return p, fmt.Errorf("kernels: the widest matrix needs %d bytes of shared memory, and %s gives a block %d", n, info.Name, block)
	}
	for kind := range p.many {
		p.many[kind] = map[int]manyPlan{}
		for size := 8; size <= MaxRows; size *= 2 {
			tile := 32 * manyTall[kind]
			stage := (tile + size*p.wide(kind)) * 4 * manyWide[kind] * 16
			stages := min(block, all/2-2048) / stage // if two blocks share a multiprocessor
			if stages < 3 {
				stages = block / stage // if a block has it alone
			}
			stages = min(stages, 8)
			if info.Arch == "sim" {
				p.many[kind][size] = manyPlan{stages: 2} // the twins use no shared memory
				continue
			}
			shared := max(stages*stage, manyWide[kind]*tile*(size+1)*4) // holds copied weights and rows, and later the sums of the warps
			if stages >= 2 && shared <= block {
				p.many[kind][size] = manyPlan{stages, shared}
			}
		}
		if p.many[kind][8].stages == 0 {
			return p, fmt.Errorf("kernels: %s gives a block only %d bytes of shared memory", info.Name, block)
		}
	}
	return p, nil
}

func (p *plan) sharedOne(in int) int {
	if p.stagesOne == 0 {
		return 0
	}
	return 8*p.stagesOne*1024 + (in+511)/512*1024
}

// options are the compiler's.
func (p *plan) options(d *Dims) []string {
	var stages [kinds][4]int
	for kind, many := range p.many {
		for i := range stages[kind] {
			stages[kind][i] = max(many[8<<i].stages, 2) // a kernel that does not fit is never launched
		}
	}
	define := func(name string, v any) string {
		return "-D" + name + "=" + strings.NewReplacer("[", "{", "]", "}", " ", ",").Replace(fmt.Sprint(v))
	}
	return []string{"--std=c++17", define("HEAD_DIM", d.HeadDim), define("HALF", d.Half), define("FP8", d.FP8), define("ONE_STAGES", p.stagesOne),
		define("MANY_TALL", manyTall), define("MANY_WIDE", manyWide), define("MANY_STAGES", stages)}
}

const maxSplits = 32 // largest number of parts of a sequence, as in attend.h

// Buffers are the memory that operations on up to Rows rows use. Row r of a decode step is slot
// active[r], or nothing if active[r] is -1.
type Buffers struct {
	Rows   int
	X      gpu.Slice[float32] // [Rows][Width]: the residual stream
	H      gpu.Slice[uint16]  // [Rows][Width]: X after the norm
	Q      gpu.Slice[uint16]  // [Rows][Heads*HeadDim]: queries
	A      gpu.Slice[uint16]  // [Rows][Heads*HeadDim]: result of the attention
	G      gpu.Slice[uint16]  // [Rows][FFN]: silu(gate) * up
	Logits gpu.Slice[float32] // [Rows][Vocab]; only with NewBuffers
	Work   gpu.Slice[uint32]  // for Attend; only with NewBuffers
}

// NewBuffers allocates memory for decode steps of up to rows rows. A step of fewer rows uses the
// first rows. Only one step at a time may use the memory.
func (k *Kernels) NewBuffers(dev *gpu.Device, rows int) (*Buffers, error) {
	if rows < 1 || rows > MaxRows {
		return nil, fmt.Errorf("kernels: a step of %d rows: 1 to %d are supported", rows, MaxRows)
	}
	d := &k.dims
	b, err := k.NewChunkBuffers(dev, rows)
	if err != nil {
		return nil, err
	}
	if b.Logits, err = gpu.AllocSlice[float32](dev, gpu.DeviceMem, rows*int(d.Vocab)); err != nil {
		return nil, errors.Join(err, b.Close())
	}
	work := MaxRows*int(d.KVHeads*((d.Heads/d.KVHeads+15)/16)) + rows*int(d.Heads*maxSplits*(d.HeadDim+2))
	if b.Work, err = gpu.AllocSlice[uint32](dev, gpu.DeviceMem, work); err != nil {
		return nil, errors.Join(err, b.Close())
	}
	s := dev.Queue(0).NewStream()
	if err = errors.Join(s.Do(b.Work.Fill(0)), s.Wait(context.Background())); err != nil {
		return nil, errors.Join(err, b.Close())
	}
	return b, nil
}

// NewChunkBuffers allocates memory for chunks of up to rows tokens of a prompt, without Logits and
// Work.
func (k *Kernels) NewChunkBuffers(dev *gpu.Device, rows int) (*Buffers, error) {
	d, b := &k.dims, &Buffers{Rows: rows}
	var err error
	if b.X, err = gpu.AllocSlice[float32](dev, gpu.DeviceMem, rows*int(d.Width)); err != nil {
		return nil, err
	}
	for _, n := range []struct {
		s     *gpu.Slice[uint16]
		width int32
	}{{&b.H, d.Width}, {&b.Q, d.Heads * d.HeadDim}, {&b.A, d.Heads * d.HeadDim}, {&b.G, d.FFN}} {
		if *n.s, err = gpu.AllocSlice[uint16](dev, gpu.DeviceMem, rows*int(n.width)); err != nil {
			return nil, errors.Join(err, b.Close())
		}
	}
	return b, nil
}

// Close frees the memory after the work that uses it.
func (b *Buffers) Close() error {
	return errors.Join(b.X.Close(), b.H.Close(), b.Q.Close(), b.A.Close(), b.G.Close(), b.Logits.Close(), b.Work.Close())
}
