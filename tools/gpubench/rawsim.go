package main

import (
	"errors"
	"math"
	"unsafe"

	"github.com/puregpu/puregpu/runtime/driver"
	"github.com/puregpu/puregpu/runtime/driver/simdriver"
	"github.com/puregpu/puregpu/testdata/kernels"
)

// simKernels replace the kernels of kernels.Empty on simulated devices.
var simKernels = map[string]simdriver.Kernel{"empty": simdriver.MustKernel(func(*simdriver.Grid, driver.Ptr) {})}

// rawSim calls a driver.Device of the simulated driver.
type rawSim struct {
	d      driver.Device
	stream [rawStreams]driver.Stream
	event  [rawEvents]driver.Event
	mem    driver.Mem
	pool   driver.Pool
	mod    driver.Module // zero until it is loaded
	empty  driver.Launch
	timed  driver.Event
	arg    *uint64 // the argument of the kernel empty
}

func newRawSim(d driver.Driver, index int) (*rawSim, error) {
	dev, err := d.Open(index)
	if err != nil {
		return nil, err
	}
	a := &rawSim{d: dev, arg: new(uint64)}
	if err := a.create(); err != nil {
		return nil, errors.Join(err, a.close())
	}
	return a, nil
}

func (a *rawSim) create() (err error) {
	if err = a.d.Bind(); err != nil {
		return err
	}
	for i := range a.stream {
		if a.stream[i], err = a.d.NewStream(); err != nil {
			return err
		}
	}
	for i := range a.event {
		if a.event[i], err = a.d.NewEvent(); err != nil {
			return err
		}
	}
	if a.timed, err = a.d.(driver.Timers).NewTimer(); err != nil {
		return err
	}
	a.mem, err = a.d.Alloc(driver.DeviceMem, fillSize)
	return err
}

func (a *rawSim) fill(stream int) error {
	return a.d.Fill(a.stream[stream], a.mem.Ptr, fillPattern, 4, fillSize/4)
}

func (a *rawSim) record(event, stream int) error {
	return a.d.Record(a.event[event], a.stream[stream])
}

func (a *rawSim) recordTime(stream int) error { return a.d.Record(a.timed, a.stream[stream]) }

func (a *rawSim) query(event int) (bool, error) { return a.d.Query(a.event[event]) }

func (a *rawSim) wait(stream, event int) error {
	return a.d.StreamWait(a.stream[stream], a.event[event])
}

func (a *rawSim) bind() error { return a.d.Bind() }

func (a *rawSim) unbind() error { return a.d.Unbind() }

func (a *rawSim) follow(stream int, other api, event int) error {
	return a.d.StreamWait(a.stream[stream], other.(*rawSim).event[event])
}

func (a *rawSim) copyTo(stream int, _ api, dst, src, n uint64) error {
	return a.d.Copy(a.stream[stream], driver.Ptr(dst), driver.Ptr(src), n)
}

func (a *rawSim) keep() (err error) {
	pools := a.d.(driver.Pools)
	if a.pool, err = pools.CurrentPool(); err != nil {
		return err
	}
	return pools.SetPoolAttr(a.pool, driver.PoolThreshold, math.MaxUint64)
}

func (a *rawSim) alloc(stream int) (uint64, error) {
	m, err := a.d.(driver.Pools).AllocAsync(a.stream[stream], a.pool, allocSize)
	return uint64(m.Ptr), err
}

func (a *rawSim) free(stream int, address uint64) error {
	return a.d.(driver.Pools).FreeAsync(a.stream[stream], driver.Mem{Ptr: driver.Ptr(address), Size: allocSize})
}

func (a *rawSim) fillAt(stream int, address uint64) error {
	return a.d.Fill(a.stream[stream], driver.Ptr(address), fillPattern, 4, fillSize/4)
}

func (a *rawSim) load() (err error) {
	if a.mod != 0 {
		return nil
	}
	if a.mod, err = a.d.Load(kernels.Empty); err != nil {
		return err
	}
	one := [3]uint32{1, 1, 1}
	a.empty = driver.Launch{Grid: one, Block: one, Args: []unsafe.Pointer{unsafe.Pointer(a.arg)}}
	a.empty.Function, _, err = a.d.Function(a.mod, "empty")
	return err
}

func (a *rawSim) launch(stream int) error { return a.d.Launch(a.stream[stream], &a.empty) }

// A simGraph is a graph of empty kernels and the operation of its nodes.
type simGraph struct {
	a     *rawSim
	g     driver.Graphs
	graph driver.Graph
	exec  driver.Exec
	nodes []driver.Node
	op    driver.NodeOp
}

func (a *rawSim) chain(n int) (rawGraph, error) {
	g := &simGraph{a: a, g: a.d.(driver.Graphs), op: driver.NodeOp{Kind: driver.KernelNode, Launch: a.empty}}
	if err := g.create(n); err != nil {
		return nil, errors.Join(err, g.close())
	}
	return g, nil
}

func (g *simGraph) create(n int) (err error) {
	if g.graph, err = g.g.NewGraph(); err != nil {
		return err
	}
	for i := range n {
		node, err := g.g.AddNode(g.graph, g.nodes[max(0, i-1):], &g.op)
		if err != nil {
			return err
		}
		g.nodes = append(g.nodes, node)
	}
	g.exec, err = g.g.Instantiate(g.graph)
	return err
}

func (g *simGraph) set(node int, to uint64) error {
	*g.a.arg = to
	return g.g.SetNode(g.exec, g.nodes[node], &g.op)
}

func (g *simGraph) launch(stream int) error { return g.g.LaunchGraph(g.a.stream[stream], g.exec) }

func (g *simGraph) close() error {
	var errs []error
	if g.exec != 0 {
		errs = append(errs, g.g.DestroyExec(g.exec))
	}
	if g.graph != 0 {
		errs = append(errs, g.g.DestroyGraph(g.graph))
	}
	return errors.Join(errs...)
}

func (a *rawSim) close() error {
	var errs []error
	if a.mod != 0 {
		errs = append(errs, a.d.Unload(a.mod))
	}
	if a.mem.Size != 0 {
		errs = append(errs, a.d.Free(a.mem))
	}
	for _, e := range append(a.event[:], a.timed) {
		if e != 0 {
			errs = append(errs, a.d.DestroyEvent(e))
		}
	}
	for _, s := range a.stream {
		if s != 0 {
			errs = append(errs, a.d.DestroyStream(s))
		}
	}
	return errors.Join(append(errs, a.d.Close())...)
}
