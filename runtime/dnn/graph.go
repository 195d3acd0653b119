package dnn

import (
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/puregpu/puregpu/cudnn"
	"github.com/puregpu/puregpu/runtime/gpu"
)

// A graph describes operations to cuDNN. After an error its methods make no more descriptors.
type graph struct {
	lib  *cudnn.Library
	err  error               // the first error
	all  []*cudnn.Descriptor // all descriptors; a later one may have earlier ones as attributes, so close goes backwards
	ops  []cudnn.BackendDescriptor
	args []argument
	next int64 // the id of the next tensor
}

// A node is a tensor of a graph.
type node struct {
	desc          cudnn.BackendDescriptor
	kind          cudnn.DataType
	dims, strides []int64
}

// An argument is a tensor whose address or value is set at each call.
type argument struct {
	id    int64
	index int    // index of the tensor's address in a call; -1 means that the tensor is a number in host memory
	bits  uint32 // the number, if index is -1
}

// with returns a function that sets an attribute of a descriptor.
func with[T cudnn.Attribute](name cudnn.BackendAttributeName, values ...T) func(*cudnn.Descriptor) error {
	return func(d *cudnn.Descriptor) error { return cudnn.Set(d, name, values...) }
}

// empty makes a descriptor without attributes.
func (g *graph) empty(kind cudnn.BackendDescriptorType) *cudnn.Descriptor {
	if g.err != nil {
		return nil
	}
	d, err := g.lib.NewDescriptor(kind)
	if err != nil {
		g.err = err
		return nil
	}
	g.all = append(g.all, d)
	return d
}

// finalized makes a descriptor, sets its attributes and finalizes it. After an error it returns
// nil.
func (g *graph) finalized(kind cudnn.BackendDescriptorType, set ...func(*cudnn.Descriptor) error) *cudnn.Descriptor {
	d := g.empty(kind)
	for _, f := range set {
		if g.err == nil {
			g.err = f(d)
		}
	}
	if g.err == nil {
		g.err = d.Finalize()
	}
	if g.err != nil {
		return nil
	}
	return d
}

// make is like finalized, but returns the descriptor's handle, which can be an attribute of other
// descriptors.
func (g *graph) make(kind cudnn.BackendDescriptorType, set ...func(*cudnn.Descriptor) error) cudnn.BackendDescriptor {
	if d := g.finalized(kind, set...); d != nil {
		return d.Handle()
	}
	return 0
}

// packed returns the strides of a tensor in row-major order.
func packed(dims []int64) []int64 {
	strides, stride := make([]int64, len(dims)), int64(1)
	for i := len(dims) - 1; i >= 0; i-- {
		strides[i] = stride
		stride *= dims[i]
	}
	return strides
}

// tensor makes a tensor with the next id.
func (g *graph) tensor(kind cudnn.DataType, dims, strides []int64, set ...func(*cudnn.Descriptor) error) node {
	g.next++
	set = append(set, with(cudnn.AttrTensorUniqueID, g.next), with(cudnn.AttrTensorDataType, kind), with(cudnn.AttrTensorByteAlignment, int64(alignment)),
		with(cudnn.AttrTensorDimensions, dims...), with(cudnn.AttrTensorStrides, strides...))
	return node{g.make(cudnn.BackendTensorDescriptor, set...), kind, dims, strides}
}

// alignment is the alignment of all tensors' addresses, in bytes.
const alignment = 16

// memory makes a tensor in device memory. index is the index of the tensor's address in a call.
func (g *graph) memory(index int, kind cudnn.DataType, dims, strides []int64) node {
	n := g.tensor(kind, dims, strides)
	g.args = append(g.args, argument{id: g.next, index: index})
	return n
}

// between makes a tensor for an intermediate result, which exists only inside the graph.
func (g *graph) between(kind cudnn.DataType, dims, strides []int64) node {
	return g.tensor(kind, dims, strides, with(cudnn.AttrTensorIsVirtual, true))
}

// number makes a tensor of one float32, which calls pass by value.
func (g *graph) number(v float32) node { return g.value(cudnn.DataFloat, math.Float32bits(v)) }

// integer makes a tensor of one int32, which calls pass by value.
func (g *graph) integer(v int32) node { return g.value(cudnn.DataInt32, uint32(v)) }

func (g *graph) value(kind cudnn.DataType, bits uint32) node {
	ones := []int64{1, 1, 1, 1}
	n := g.tensor(kind, ones, ones, with(cudnn.AttrTensorIsByValue, true))
	g.args = append(g.args, argument{id: g.next, index: -1, bits: bits})
	return n
}

// operation adds an operation of cuDNN with attributes.
func (g *graph) operation(kind cudnn.BackendDescriptorType, set ...func(*cudnn.Descriptor) error) {
	g.ops = append(g.ops, g.make(kind, set...))
}

// pointwise adds an operation on each element, and returns its result y. The inputs are x, then b,
// then the condition of a selection. cuDNN repeats inputs that are smaller than y.
func (g *graph) pointwise(y node, mode cudnn.PointwiseMode, compute cudnn.DataType, in ...node) node {
	return g.each(y, compute, in, with(cudnn.AttrPointwiseMode, mode))
}

// relu adds an operation that replaces negative elements by 0.
func (g *graph) relu(y, x node) node {
	return g.each(y, cudnn.DataFloat, []node{x}, with(cudnn.AttrPointwiseMode, cudnn.PointwiseRELUFwd), with(cudnn.AttrPointwiseNanPropagation, cudnn.PropagateNan),
		with(cudnn.AttrPointwiseRELULowerClip, 0.0), with(cudnn.AttrPointwiseRELUUpperClip, float64(math.MaxFloat32)), with(cudnn.AttrPointwiseRELULowerClipSlope, 0.0))
}

// index adds an operation whose result is the index of each element of x in dimension axis.
func (g *graph) index(y, x node, axis int64) node {
	return g.each(y, cudnn.DataFloat, []node{x}, with(cudnn.AttrPointwiseMode, cudnn.PointwiseGenIndex), with(cudnn.AttrPointwiseAxis, axis))
}

func (g *graph) each(y node, compute cudnn.DataType, in []node, set ...func(*cudnn.Descriptor) error) node {
	desc := g.make(cudnn.BackendPointwiseDescriptor, append(set, with(cudnn.AttrPointwiseMathPrec, compute))...)
	set = []func(*cudnn.Descriptor) error{with(cudnn.AttrOperationPointwisePwDescriptor, desc), with(cudnn.AttrOperationPointwiseYdesc, y.desc)}
	for i, name := range []cudnn.BackendAttributeName{cudnn.AttrOperationPointwiseXdesc, cudnn.AttrOperationPointwiseBdesc, cudnn.AttrOperationPointwiseTdesc} {
		if i < len(in) {
			set = append(set, with(name, in[i].desc))
		}
	}
	g.operation(cudnn.BackendOperationPointwiseDescriptor, set...)
	return y
}

// arithmetic is pointwise with computation in float32. The result has the shape of the first input,
// and stays inside the graph.
func (g *graph) arithmetic(mode cudnn.PointwiseMode, in ...node) node {
	return g.pointwise(g.between(cudnn.DataFloat, in[0].dims, in[0].strides), mode, cudnn.DataFloat, in...)
}

// reduce adds an operation that reduces the last dimension to one element.
func (g *graph) reduce(op cudnn.ReduceTensorOp, x node) node {
	dims := slices.Clone(x.dims)
	dims[len(dims)-1] = 1
	y := g.between(cudnn.DataFloat, dims, packed(dims))
	desc := g.make(cudnn.BackendReductionDescriptor, with(cudnn.AttrReductionOperator, op), with(cudnn.AttrReductionCompType, cudnn.DataFloat))
	g.operation(cudnn.BackendOperationReductionDescriptor, with(cudnn.AttrOperationReductionDesc, desc),
		with(cudnn.AttrOperationReductionXdesc, x.desc), with(cudnn.AttrOperationReductionYdesc, y.desc))
	return y
}

// matmul adds the operation c = a·b. The last two dimensions of each tensor are the matrices. If
// rows is not the zero node, it holds the number of rows of a that each product uses. In the same
// way cols limits the columns of b, and depth limits the columns of a.
func (g *graph) matmul(c, a, b node, rows, cols, depth node) node {
	desc := g.make(cudnn.BackendMatmulDescriptor, with(cudnn.AttrMatmulCompType, cudnn.DataFloat))
	set := []func(*cudnn.Descriptor) error{with(cudnn.AttrOperationMatmulDesc, desc), with(cudnn.AttrOperationMatmulAdesc, a.desc),
		with(cudnn.AttrOperationMatmulBdesc, b.desc), with(cudnn.AttrOperationMatmulCdesc, c.desc)}
	for i, name := range []cudnn.BackendAttributeName{cudnn.AttrOperationMatmulGemmMOverrideDesc, cudnn.AttrOperationMatmulGemmNOverrideDesc, cudnn.AttrOperationMatmulGemmKOverrideDesc} {
		if n := []node{rows, cols, depth}[i]; n.desc != 0 {
			set = append(set, with(name, n.desc))
		}
	}
	g.operation(cudnn.BackendOperationMatmulDescriptor, set...)
	return c
}

// close destroys the descriptors in the reverse order of their creation.
func (g *graph) close() error {
	var errs []error
	for _, d := range slices.Backward(g.all) {
		errs = append(errs, d.Close())
	}
	g.all = nil
	return errors.Join(errs...)
}

// program lets cuDNN choose an engine that has no note in avoid, and returns the graph's
// execution plan. The graph must not be used afterwards.
func (g *graph) program(h cudnn.Handle, avoid ...cudnn.BackendNumericalNote) (*program, error) {
	whole := g.make(cudnn.BackendOperationgraphDescriptor, with(cudnn.AttrOperationgraphHandle, h), with(cudnn.AttrOperationgraphOps, g.ops...))
	if g.err != nil {
		return nil, errors.Join(g.err, g.close())
	}
	why := fmt.Errorf("its heuristics propose none")
	for _, mode := range []cudnn.BackendHeurMode{cudnn.HeurModeA, cudnn.HeurModeFallback} {
		first := len(g.all)
		p, err := g.choose(h, whole, mode, avoid)
		if p != nil {
			return p, nil
		}
		if err != nil {
			why = err
		}
		rest := graph{all: g.all[first:]}
		g.err = rest.close()
		g.all = g.all[:first]
	}
	return nil, errors.Join(fmt.Errorf("cuDNN %s has no engine for it on this device: %w: %w", cudnn.FormatVersion(g.lib.Version()), gpu.ErrUnsupported, why), g.close())
}

// choose returns the program of the first engine that the heuristic proposes, that has no note in
// avoid, and for which cuDNN can make an execution plan. If there is none, the program is nil, and
// the error says why, if it is known.
func (g *graph) choose(h cudnn.Handle, whole cudnn.BackendDescriptor, mode cudnn.BackendHeurMode, avoid []cudnn.BackendNumericalNote) (*program, error) {
	heuristic := g.finalized(cudnn.BackendEngineheurDescriptor, with(cudnn.AttrEngineheurOperationGraph, whole), with(cudnn.AttrEngineheurMode, mode))
	if g.err != nil {
		return nil, g.err
	}
	n, err := cudnn.Get[cudnn.BackendDescriptor](heuristic, cudnn.AttrEngineheurResults, nil)
	if err != nil {
		return nil, err
	}
	configs, handles := make([]*cudnn.Descriptor, n), make([]cudnn.BackendDescriptor, n)
	for i := range configs {
		if configs[i] = g.empty(cudnn.BackendEnginecfgDescriptor); g.err != nil {
			return nil, g.err
		}
		handles[i] = configs[i].Handle()
	}
	if n, err = cudnn.Get(heuristic, cudnn.AttrEngineheurResults, handles); err != nil {
		return nil, err
	}
	var why error
	for _, config := range configs[:min(n, len(configs))] {
		unfit, err := g.notes(config, avoid)
		if err != nil || unfit {
			why = errors.Join(why, err)
			continue
		}
		plan := g.empty(cudnn.BackendExecutionPlanDescriptor)
		if g.err != nil {
			return nil, g.err
		}
		err = cudnn.Set(plan, cudnn.AttrExecutionPlanHandle, h)
		if err == nil {
			err = cudnn.Set(plan, cudnn.AttrExecutionPlanEngineConfig, config.Handle())
		}
		if err == nil {
			err = plan.Finalize()
		}
		size := make([]int64, 1)
		if err == nil {
			_, err = cudnn.Get(plan, cudnn.AttrExecutionPlanWorkspaceSize, size)
		}
		if err != nil {
			why = err
			continue
		}
		return newProgram(g, plan, uint64(size[0])), nil
	}
	return nil, why
}

// notes reports whether the engine of config has one of the notes in avoid.
func (g *graph) notes(config *cudnn.Descriptor, avoid []cudnn.BackendNumericalNote) (bool, error) {
	if len(avoid) == 0 {
		return false, nil
	}
	engine := g.empty(cudnn.BackendEngineDescriptor)
	if g.err != nil {
		return false, g.err
	}
	if _, err := cudnn.Get(config, cudnn.AttrEnginecfgEngine, []cudnn.BackendDescriptor{engine.Handle()}); err != nil {
		return false, err
	}
	notes := make([]cudnn.BackendNumericalNote, 32)
	n, err := cudnn.Get(engine, cudnn.AttrEngineNumericalNote, notes)
	if err != nil {
		return false, err
	}
	return slices.ContainsFunc(notes[:min(n, len(notes))], func(x cudnn.BackendNumericalNote) bool { return slices.Contains(avoid, x) }), nil
}
