package dnn

import (
	"fmt"
	"math"

	"github.com/puregpu/puregpu/cudnn"
	"github.com/puregpu/puregpu/runtime/driver"
	"github.com/puregpu/puregpu/runtime/gpu"
	"github.com/puregpu/puregpu/runtime/internal/standin"
)

// AttentionShape describes scaled dot-product attention, softmax(q·kᵀ·Scale)·v for each head of each
// sequence.
//
// Tensors are in row-major order. By default, the dimensions of q and out are Batch, Heads, Queries,
// HeadDim, and those of k and v are Batch, KVHeads, Keys, HeadDim, as in PyTorch's
// scaled_dot_product_attention.
type AttentionShape struct {
	Batch       int     // number of sequences
	Heads       int     // number of heads of queries
	KVHeads     int     // number of heads of keys and values; each serves Heads/KVHeads heads of queries; 0 means Heads
	Queries     int     // tokens of a sequence that attend
	Keys        int     // tokens of a sequence that are attended to; 0 means Queries
	HeadDim     int     // elements of a head, a multiple of 8
	Scale       float64 // positive; 0 means 1/√HeadDim
	Causal      bool    // a query attends to no later keys; the last query attends to all keys
	TokensFirst bool    // the dimensions are sequences, tokens, heads, elements
	Lengths     bool    // sequences may have fewer tokens than Queries and Keys: [Attention.ForwardLengths] takes the numbers
}

// defaults returns the shape with defaults filled in.
func (s AttentionShape) defaults() AttentionShape {
	if s.KVHeads == 0 {
		s.KVHeads = s.Heads
	}
	if s.Keys == 0 {
		s.Keys = s.Queries
	}
	if s.Scale == 0 {
		s.Scale = 1 / math.Sqrt(float64(s.HeadDim))
	}
	if s.Queries == 1 { // the only query is the last, which attends to all keys
		s.Causal = false
	}
	return s
}

// check checks a shape whose defaults are filled in. Computations with the sizes of a valid shape
// do not overflow.
func (s AttentionShape) check() error {
	bad := func(format string, args ...any) error {
		return fmt.Errorf("dnn: attention: %s: %w", fmt.Sprintf(format, args...), gpu.ErrArgument)
	}
	for _, x := range []struct {
		name  string
		count int
	}{{"Batch", s.Batch}, {"Heads", s.Heads}, {"KVHeads", s.KVHeads}, {"Queries", s.Queries}, {"Keys", s.Keys}} {
		if x.count < 1 {
			return bad("%s is %d; must be 1 or more", x.name, x.count)
		}
	}
	switch {
	case s.Queries > math.MaxInt32 || s.Keys > math.MaxInt32 || !fits(s.Batch, s.Heads, s.Queries, s.HeadDim) || !fits(s.Batch, s.KVHeads, s.Keys, s.HeadDim):
		return bad("%d sequences, %d heads, %d queries, %d keys, %d elements are too large", s.Batch, s.Heads, s.Queries, s.Keys, s.HeadDim)
	case s.Heads%s.KVHeads != 0:
		return bad("%d heads of keys do not divide %d heads", s.KVHeads, s.Heads)
	case s.HeadDim < 8 || s.HeadDim%8 != 0:
		return bad("heads of %d elements; this must be a multiple of 8", s.HeadDim)
	case s.Causal && s.Queries > s.Keys:
		return bad("a causal mask with %d queries and %d keys: the first queries would attend to nothing", s.Queries, s.Keys)
	case !(s.Scale > 0) || s.Scale > math.MaxFloat32: // cuDNN returns NaN if the scale is negative
		return bad("a scale of %v, which is not a positive number", s.Scale)
	}
	return nil
}

// An Attention is a plan for attention of one shape. It may be used concurrently, in several queues
// and recordings.
type Attention[T Half] struct {
	plan    *plan
	lengths bool // the shape has Lengths
}

// NewAttention makes a plan for attention. It blocks until cuDNN has chosen an engine and compiled
// the engine's kernel. The kernel does not store the products of queries and keys. If cuDNN has no
// engine for the shape or the device, the error is gpu.ErrUnsupported, with cuDNN's reason. The
// device must be an Ampere GPU or a newer one.
func NewAttention[T Half](l *Library, s AttentionShape) (*Attention[T], error) {
	if l.isZero() {
		return nil, errZero
	}
	s = s.defaults()
	if err := s.check(); err != nil {
		return nil, err
	}
	a := &Attention[T]{lengths: s.Lengths}
	out, kv := s.Batch*s.Heads*s.Queries*s.HeadDim, s.Batch*s.KVHeads*s.Keys*s.HeadDim
	tensors := []spec{specOf[T]("out", out), specOf[T]("q", out), specOf[T]("k", kv), specOf[T]("v", kv)}
	if s.Lengths {
		tensors = append(tensors, specOf[int32]("queries", s.Batch), specOf[int32]("keys", s.Batch))
	}
	var err error
	a.plan, err = newPlan(l, "attention", tensors,
		func(h cudnn.Handle) ([]step, error) { return attentionSteps[T](l.in.Lib, h, s) },
		func(m standin.Memory, p []driver.Ptr) error { return attend[T](m, s, p) })
	if err != nil {
		return nil, err
	}
	return a, nil
}

// Forward returns the Op that computes attention. The tensor out must not overlap q, k or v. C:
// cudnnBackendExecute.
func (a *Attention[T]) Forward(out, q, k, v gpu.Slice[T]) gpu.Op {
	if a.lengths {
		return gpu.BadOp(fmt.Errorf("dnn: attention: the plan is one with lengths: use ForwardLengths: %w", gpu.ErrArgument))
	}
	return a.plan.op("attention", tensorOf(out), tensorOf(q), tensorOf(k), tensorOf(v))
}

// ForwardLengths is Forward for a shape with Lengths. Sequence i has queries[i] tokens that attend,
// at most Queries, and keys[i] tokens that are attended to, at most Keys. In the tensors, these
// tokens are the first of the sequence. The other tokens of the tensor out are undefined; on a
// simulated GPU they are NaN. Thus one plan can serve a growing cache of keys and values. A GPU
// reads the lengths and does not check them.
func (a *Attention[T]) ForwardLengths(out, q, k, v gpu.Slice[T], queries, keys gpu.Slice[int32]) gpu.Op {
	if a.plan != nil && !a.lengths {
		return gpu.BadOp(fmt.Errorf("dnn: attention: the plan is one without lengths: use Forward: %w", gpu.ErrArgument))
	}
	return a.plan.op("attention", tensorOf(out), tensorOf(q), tensorOf(k), tensorOf(v), tensorOf(queries), tensorOf(keys))
}

// Close destroys the plan. It blocks until the device is done with all work. Close the recordings
// that use the plan first. Closing again does nothing.
func (a *Attention[T]) Close() error { return a.plan.close() }

// Indexes of attention's tensors in the addresses of a call.
const (
	attentionOut = iota
	attentionQ
	attentionK
	attentionV
	attentionQueries
	attentionKeys
)

// strides returns the strides of a tensor whose dimensions are sequences, heads, tokens, elements.
func (s AttentionShape) strides(heads, tokens int) []int64 {
	h, n, d := int64(heads), int64(tokens), int64(s.HeadDim)
	if s.TokensFirst {
		return []int64{n * h * d, d, h * d, 1}
	}
	return []int64{h * n * d, n * d, d, 1}
}

// attentionSteps makes the only step of an attention plan. The step's graph describes attention by
// simple operations, because all releases of cuDNN 9 have an engine that fuses them. The unified
// operation (CUDNN_BACKEND_OPERATION_SDPA_FWD_DESCRIPTOR) exists since cuDNN 9.13, and takes a
// causal mask only since 9.21.
func attentionSteps[T Half](lib *cudnn.Library, h cudnn.Handle, s AttentionShape) ([]step, error) {
	version := lib.Version()
	switch {
	case version == 91000 || version == 91001:
		return nil, fmt.Errorf("cuDNN %s has known bugs in attention: use 9.10.2 or newer: %w", cudnn.FormatVersion(version), gpu.ErrUnsupported)
	case version < 90600 && s.Causal && s.Queries != s.Keys && (s.Queries%64 != 0 || s.Keys%64 != 0):
		return nil, fmt.Errorf("cuDNN %s has no causal mask for %d queries and %d keys: use 9.6 or newer: %w", cudnn.FormatVersion(version), s.Queries, s.Keys, gpu.ErrUnsupported)
	}
	g, kind := &graph{lib: lib}, kindOf[T]()
	b, heads, kvHeads, n, m, d := int64(s.Batch), int64(s.Heads), int64(s.KVHeads), int64(s.Queries), int64(s.Keys), int64(s.HeadDim)
	outStrides, kvStrides := s.strides(s.Heads, s.Queries), s.strides(s.KVHeads, s.Keys)
	transposed := []int64{kvStrides[0], kvStrides[1], kvStrides[3], kvStrides[2]}
	out := g.memory(attentionOut, kind, []int64{b, heads, n, d}, outStrides)
	q := g.memory(attentionQ, kind, []int64{b, heads, n, d}, outStrides)
	k := g.memory(attentionK, kind, []int64{b, kvHeads, d, m}, transposed)
	v := g.memory(attentionV, kind, []int64{b, kvHeads, m, d}, kvStrides)

	var queries, keys node // numbers of tokens
	if s.Lengths {
		ones := []int64{1, 1, 1, 1}
		queries = g.memory(attentionQueries, cudnn.DataInt32, []int64{b, 1, 1, 1}, ones)
		keys = g.memory(attentionKeys, cudnn.DataInt32, []int64{b, 1, 1, 1}, ones)
	}

	scores := []int64{b, heads, n, m}
	point := func(kind, compute cudnn.DataType, mode cudnn.PointwiseMode, in ...node) node {
		return g.pointwise(g.between(kind, scores, packed(scores)), mode, compute, in...)
	}
	index := func(x node, axis int64) node {
		return g.index(g.between(cudnn.DataInt32, scores, packed(scores)), x, axis)
	}
	hidden := float32(math.Inf(-1))
	if version < 91000 {
		hidden = -math.MaxFloat32
	}
	show := func(score, seen node) node {
		return g.arithmetic(cudnn.PointwiseBinarySelect, score, g.number(hidden), seen)
	}

	score := g.matmul(g.between(cudnn.DataFloat, scores, packed(scores)), q, k, queries, keys, node{})
	score = g.arithmetic(cudnn.PointwiseMul, score, g.number(float32(s.Scale)))
	if s.Lengths {
		row := point(cudnn.DataBoolean, cudnn.DataBoolean, cudnn.PointwiseCmpLt, index(score, 2), queries)
		column := point(cudnn.DataBoolean, cudnn.DataBoolean, cudnn.PointwiseCmpLt, index(score, 3), keys)
		score = show(score, point(cudnn.DataBoolean, cudnn.DataBoolean, cudnn.PointwiseLogicalAnd, row, column))
	}
	if s.Causal {
		row, column := index(score, 2), index(score, 3)
		if s.Lengths || s.Queries != s.Keys {
			more, less := keys, queries
			if !s.Lengths {
				more, less = g.integer(int32(s.Keys)), g.integer(int32(s.Queries))
			}
			row = point(cudnn.DataInt32, cudnn.DataInt32, cudnn.PointwiseAdd, row, more)
			row = point(cudnn.DataInt32, cudnn.DataInt32, cudnn.PointwiseSub, row, less)
		}
		score = show(score, point(cudnn.DataBoolean, cudnn.DataBoolean, cudnn.PointwiseCmpGe, row, column))
	}
	// cuDNN's engines expect an operation that computes the logarithms of the sums, which training
	// stores. Here the result of that operation stays inside the graph.
	most := g.reduce(cudnn.ReduceTensorMax, score)
	exp := g.arithmetic(cudnn.PointwiseExp, g.arithmetic(cudnn.PointwiseSub, score, most))
	sum := g.reduce(cudnn.ReduceTensorAdd, exp)
	g.arithmetic(cudnn.PointwiseAdd, most, g.arithmetic(cudnn.PointwiseLog, sum))
	weight := point(kind, cudnn.DataFloat, cudnn.PointwiseDiv, exp, sum)
	g.matmul(out, weight, v, queries, node{}, keys)
	p, err := g.program(h)
	if err != nil {
		return nil, err
	}
	return []step{p}, nil
}
