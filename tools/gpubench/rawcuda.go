package main

import (
	"errors"
	"math"
	"unsafe"

	"github.com/puregpu/puregpu/cuda"
	"github.com/puregpu/puregpu/testdata/kernels"
)

// rawCUDA calls the bindings directly.
type rawCUDA struct {
	l      *cuda.Library
	dev    cuda.Device
	ctx    cuda.Context
	stream [rawStreams]cuda.Stream
	event  [rawEvents]cuda.Event
	mem    cuda.DevicePtr
	timed  cuda.Event
	mod    cuda.Module // 0 until it is loaded
	empty  cuda.Function
	arg    *uint64 // the argument of the kernel empty
	args   []unsafe.Pointer
}

func newRawCUDA(l *cuda.Library, index int) (_ *rawCUDA, err error) {
	a := &rawCUDA{l: l, arg: new(uint64)}
	a.args = []unsafe.Pointer{unsafe.Pointer(a.arg)}
	if a.dev, err = l.DeviceGet(int32(index)); err != nil {
		return nil, err
	}
	if a.ctx, err = l.DevicePrimaryCtxRetain(a.dev); err != nil {
		return nil, err
	}
	if err = a.create(); err != nil {
		return nil, errors.Join(err, a.close())
	}
	return a, nil
}

func (a *rawCUDA) create() (err error) {
	if err = a.l.CtxSetCurrent(a.ctx); err != nil {
		return err
	}
	for i := range a.stream {
		if a.stream[i], err = a.l.StreamCreate(cuda.StreamNonBlocking); err != nil {
			return err
		}
	}
	for i := range a.event {
		if a.event[i], err = a.l.EventCreate(cuda.EventDisableTiming); err != nil {
			return err
		}
	}
	if a.timed, err = a.l.EventCreate(cuda.EventDefault); err != nil {
		return err
	}
	a.mem, err = a.l.MemAlloc(fillSize)
	return err
}

func (a *rawCUDA) fill(stream int) error {
	return a.l.MemsetD32Async(a.mem, fillPattern, fillSize/4, a.stream[stream])
}

func (a *rawCUDA) record(event, stream int) error {
	return a.l.EventRecord(a.event[event], a.stream[stream])
}

func (a *rawCUDA) recordTime(stream int) error { return a.l.EventRecord(a.timed, a.stream[stream]) }

func (a *rawCUDA) query(event int) (bool, error) {
	err := a.l.EventQuery(a.event[event])
	if err == cuda.ErrorNotReady {
		return false, nil
	}
	return err == nil, err
}

func (a *rawCUDA) wait(stream, event int) error {
	return a.l.StreamWaitEvent(a.stream[stream], a.event[event], 0)
}

func (a *rawCUDA) bind() error { return a.l.CtxSetCurrent(a.ctx) }

func (a *rawCUDA) unbind() error { return a.l.CtxSetCurrent(0) }

func (a *rawCUDA) follow(stream int, other api, event int) error {
	return a.l.StreamWaitEvent(a.stream[stream], other.(*rawCUDA).event[event], 0)
}

func (a *rawCUDA) copyTo(stream int, other api, dst, src, n uint64) error {
	return a.l.MemcpyPeerAsync(cuda.DevicePtr(dst), other.(*rawCUDA).ctx, cuda.DevicePtr(src), a.ctx, n, a.stream[stream])
}

func (a *rawCUDA) keep() error {
	pool, err := a.l.DeviceGetMemPool(a.dev)
	if err != nil {
		return err
	}
	all := uint64(math.MaxUint64)
	return a.l.MemPoolSetAttribute(pool, cuda.MemPoolAttrReleaseThreshold, unsafe.Pointer(&all))
}

func (a *rawCUDA) alloc(stream int) (uint64, error) {
	p, err := a.l.MemAllocAsync(allocSize, a.stream[stream])
	return uint64(p), err
}

func (a *rawCUDA) free(stream int, address uint64) error {
	return a.l.MemFreeAsync(cuda.DevicePtr(address), a.stream[stream])
}

func (a *rawCUDA) fillAt(stream int, address uint64) error {
	return a.l.MemsetD32Async(cuda.DevicePtr(address), fillPattern, fillSize/4, a.stream[stream])
}

func (a *rawCUDA) load() (err error) {
	if a.mod != 0 {
		return nil
	}
	if a.mod, err = a.l.ModuleLoadData(unsafe.Pointer(&kernels.Empty[0])); err != nil {
		return err
	}
	a.empty, err = a.l.ModuleGetFunction(a.mod, "empty")
	return err
}

func (a *rawCUDA) launch(stream int) error {
	return a.l.LaunchKernel(a.empty, 1, 1, 1, 1, 1, 1, 0, a.stream[stream], a.args, nil)
}

// A cudaGraph is a graph of empty kernels and the parameters of its nodes.
type cudaGraph struct {
	a      *rawCUDA
	graph  cuda.Graph
	exec   cuda.GraphExec
	nodes  []cuda.GraphNode
	params cuda.KernelNodeParams
}

func (a *rawCUDA) chain(n int) (rawGraph, error) {
	g := &cudaGraph{a: a, params: cuda.KernelNodeParams{
		Func: a.empty, GridDimX: 1, GridDimY: 1, GridDimZ: 1, BlockDimX: 1, BlockDimY: 1, BlockDimZ: 1,
		KernelParams: &a.args[0],
	}}
	if err := g.create(n); err != nil {
		return nil, errors.Join(err, g.close())
	}
	return g, nil
}

func (g *cudaGraph) create(n int) (err error) {
	if g.graph, err = g.a.l.GraphCreate(0); err != nil {
		return err
	}
	for i := range n {
		node, err := g.a.l.GraphAddKernelNode(g.graph, g.nodes[max(0, i-1):], &g.params)
		if err != nil {
			return err
		}
		g.nodes = append(g.nodes, node)
	}
	g.exec, err = g.a.l.GraphInstantiateWithFlags(g.graph, 0)
	return err
}

func (g *cudaGraph) set(node int, to uint64) error {
	*g.a.arg = to
	return g.a.l.GraphExecKernelNodeSetParams(g.exec, g.nodes[node], &g.params)
}

func (g *cudaGraph) launch(stream int) error { return g.a.l.GraphLaunch(g.exec, g.a.stream[stream]) }

func (g *cudaGraph) close() error {
	var errs []error
	if g.exec != 0 {
		errs = append(errs, g.a.l.GraphExecDestroy(g.exec))
	}
	if g.graph != 0 {
		errs = append(errs, g.a.l.GraphDestroy(g.graph))
	}
	return errors.Join(errs...)
}

func (a *rawCUDA) close() error {
	var errs []error
	if a.mod != 0 {
		errs = append(errs, a.l.ModuleUnload(a.mod))
	}
	if a.mem != 0 {
		errs = append(errs, a.l.MemFree(a.mem))
	}
	for _, e := range append(a.event[:], a.timed) {
		if e != 0 {
			errs = append(errs, a.l.EventDestroy(e))
		}
	}
	for _, s := range a.stream {
		if s != 0 {
			errs = append(errs, a.l.StreamDestroy(s))
		}
	}
	return errors.Join(append(errs, a.l.DevicePrimaryCtxRelease(a.dev))...)
}
