package model

import (
	"context"
	"errors"
	"fmt"

	"github.com/puregpu/puregpu/runtime/examples/llama/internal/checkpoint"
	"github.com/puregpu/puregpu/runtime/examples/llama/internal/kernels"
	"github.com/puregpu/puregpu/runtime/gpu"
)

// weights are one shard's part of the model, in one buffer of the device.
type weights struct {
	mem    *gpu.Buffer
	reads  []*gpu.Stream    // streams that fill mem
	kind   checkpoint.DType // of all but quantised matrices: BF16 or F16
	embed  gpu.Range
	layers []layer
	norm   gpu.Range
	head   gpu.Range // the embeddings if the model ties them
}

type layer struct {
	attentionNorm, ffnNorm gpu.Range

	qkv    matrix // rows: the queries, keys and values of this shard's heads
	o      matrix // columns: this shard's heads
	gateUp matrix // rows: this shard's rows of gate, then of up
	down   matrix // columns: this shard's part of the FFN
}

// A matrix lies row by row, with a row for each output.
type matrix struct {
	kernels.Matrix
	rows, cols int
	quantised  bool // elements of 8 bits, with scales
}

// from returns the matrix without its first n rows.
func (m matrix) from(n int) matrix {
	row := m.Data.Size / uint64(m.rows)
	m.Data.Offset += uint64(n) * row
	m.Data.Size -= uint64(n) * row
	if m.quantised {
		m.Scale = m.Scale.Slice(n, m.rows)
	}
	m.rows -= n
	return m
}

// quantised reports whether the layers' matrices are quantised.
func (w *weights) quantised() bool { return w.layers[0].qkv.quantised }

// loadWeights begins to upload the weights of one rank. [weights.wait] waits for the upload.
func loadWeights(dev *gpu.Device, ck *checkpoint.Checkpoint, rank, ranks int) (*weights, error) {
	l := loader{ck: ck, config: ck.Config(), rank: rank, ranks: ranks}
	if _, err := l.weights(); err != nil { // without memory, this only counts the bytes
		return nil, err
	}
	free, _, err := dev.MemInfo()
	if err != nil {
		return nil, err
	}
	if l.used > free {
		return nil, fmt.Errorf("model: the weights need %s of device memory, and %s are free: %w", sized(l.used), sized(free), gpu.ErrOutOfMemory)
	}
	if l.mem, err = dev.Alloc(gpu.DeviceMem, l.used); err != nil {
		return nil, fmt.Errorf("model: allocate %s for the weights: %w", sized(l.used), err)
	}
	l.used = 0
	w, err := l.weights()
	if err != nil {
		return nil, errors.Join(err, l.mem.Close())
	}
	for i, op := range l.reads {
		if i < lanes {
			w.reads = append(w.reads, dev.Queue(0).NewStream())
		}
		w.reads[i%lanes].Do(op) // wait returns its error
	}
	return w, nil
}

// lanes is the number of streams that upload. With several, small tensors do not slow the upload
// down.
const lanes = 4

// wait waits until the weights are on the device. After an error, or when the context ends, wait
// stops the upload.
func (w *weights) wait(ctx context.Context) error {
	for _, s := range w.reads {
		if err := s.Wait(ctx); err != nil {
			for _, s := range w.reads {
				s.Fail(err)
			}
			return fmt.Errorf("model: upload of the weights: %w", err)
		}
	}
	return nil
}

// A loader divides device memory among the tensors, and collects the reads that fill the memory.
type loader struct {
	ck          *checkpoint.Checkpoint
	config      checkpoint.Config
	rank, ranks int
	kind        checkpoint.DType

	layout
	reads []gpu.Op
}

func (l *loader) weights() (*weights, error) {
	w := &weights{mem: l.mem}
	embed, err := l.ck.Tensor("model.embed_tokens.weight")
	if err != nil {
		return nil, err
	}
	if w.kind = embed.DType; w.kind != checkpoint.F16 {
		w.kind = checkpoint.BF16
	}
	l.kind = w.kind
	w.embed = l.whole("model.embed_tokens")
	for i := range l.config.Layers {
		y := l.layer(fmt.Sprintf("model.layers.%d.", i))
		w.layers = append(w.layers, y)
		for _, m := range []matrix{y.qkv, y.o, y.gateUp, y.down} {
			if m.quantised != w.quantised() {
				l.fail(fmt.Errorf("model: some matrices of layers 0 to %d are quantised, and others are not", i))
			}
		}
	}
	w.norm = l.whole("model.norm")
	if w.head = w.embed; !l.config.Tied {
		w.head = l.whole("lm_head")
	}
	return w, l.err
}

func (l *loader) layer(prefix string) layer {
	c, attention, ffn := &l.config, prefix+"self_attn.", prefix+"mlp."
	return layer{
		attentionNorm: l.whole(prefix + "input_layernorm"),
		ffnNorm:       l.whole(prefix + "post_attention_layernorm"),
		qkv:           l.rows(c.Width, attention+"q_proj", attention+"k_proj", attention+"v_proj"),
		o:             l.columns(attention + "o_proj"),
		gateUp:        l.rows(c.Width, ffn+"gate_proj", ffn+"up_proj"),
		down:          l.columns(ffn + "down_proj"),
	}
}

// fill adds a read that fills a range with the tensor's bytes that begin at offset at.
func (l *loader) fill(to gpu.Range, from source, at int64) {
	if l.mem != nil {
		l.reads = append(l.reads, gpu.ReadFrom(to, from, at).Label(from.name))
	}
}

// whole loads a tensor of which each shard has a copy.
func (l *loader) whole(name string) gpu.Range {
	s := l.source(name)
	to := l.take(uint64(s.size))
	l.fill(to, s, 0)
	return to
}

// rows loads the shard's rows of several matrices with cols columns into one matrix, in the order
// of the names.
func (l *loader) rows(cols int, names ...string) matrix {
	m := matrix{cols: cols}
	var all []source
	size := uint64(0)
	for i, name := range names {
		s := l.source(name)
		if i == 0 {
			m.quantised = s.quantised
		} else if s.quantised != m.quantised {
			l.fail(fmt.Errorf("model: %s and %s differ: one is quantised", names[0], name))
		}
		all = append(all, s)
		m.rows += s.rows / l.ranks
		size += uint64(s.size) / uint64(l.ranks)
	}
	if l.err != nil {
		return m
	}
	m.Data = l.take(size)
	to := m.Data
	var scales []float32
	for _, s := range all {
		n := s.size / int64(l.ranks)
		to.Size = uint64(n)
		l.fill(to, s, n*int64(l.rank))
		to.Offset += to.Size
		if m.quantised {
			mine := s.rows / l.ranks
			scales = append(scales, l.scales(s)[mine*l.rank:][:mine]...)
		}
	}
	l.takeScales(&m, scales)
	return m
}

// columns loads the shard's columns of a matrix.
func (l *loader) columns(name string) matrix {
	s := l.source(name)
	if l.err != nil {
		return matrix{}
	}
	row := s.size / int64(s.rows) // bytes
	mine := row / int64(l.ranks)
	m := matrix{rows: s.rows, cols: int(mine), quantised: s.quantised}
	m.Data = l.take(uint64(mine) * uint64(s.rows))
	if m.quantised {
		l.takeScales(&m, l.scales(s))
	} else {
		m.cols /= 2
	}
	if l.ranks > 1 {
		s.ReaderAt = strided{s.ReaderAt, row, mine * int64(l.rank), mine}
	}
	l.fill(m.Data, s, 0)
	return m
}

// scales returns the factors of all rows of a quantised matrix.
func (l *loader) scales(m source) []float32 {
	all, err := l.ck.Scales(m.name)
	if err != nil {
		l.fail(err)
		return make([]float32, m.rows)
	}
	return all
}

func (l *loader) takeScales(m *matrix, scales []float32) {
	if m.quantised {
		m.Scale = takeSlice[float32](&l.layout, len(scales))
		l.fill(m.Scale.Range(), source{ReaderAt: memory(gpu.BytesOf(scales)), name: "scales"}, 0)
	}
}

// size is the number of elements.
func (m *matrix) size() int { return m.rows * m.cols }
