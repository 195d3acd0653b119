package simdriver_test

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"unsafe"

	"github.com/puregpu/puregpu/runtime/driver"
	"github.com/puregpu/puregpu/runtime/driver/simdriver"
)

// A graphWorld holds a few buffers, and graphs that change them.
type graphWorld struct {
	t    *testing.T
	r    *rand.Rand
	d    *simdriver.Driver
	v    driver.Device
	mix  driver.Function
	mem  []driver.Mem
	skip bool // if set, draw sometimes leaves out an edge

	mu  sync.Mutex
	ran []driver.Node // nodes of all launches, in the order of execution
}

// A drawing is a random graph and the effects of its nodes.
type drawing struct {
	g     driver.Graph
	nodes []*drawn
}

type drawn struct {
	id            driver.Node
	after         []int
	op            driver.NodeOp
	k             *uint8 // the kernel's argument
	reads, writes []int  // indices of the buffers that the node uses
	child         *drawing
}

const graphBuffer = 64

func newGraphWorld(t *testing.T, seed uint64, c simdriver.Config) *graphWorld {
	w := &graphWorld{t: t, r: rand.New(rand.NewPCG(seed, 3))}
	c.Seed = seed
	c.Kernels = kernels(map[string]any{
		"mix": func(g *simdriver.Grid, a, b driver.Ptr, k uint8) error {
			as, err := simdriver.View[byte](g, a, graphBuffer)
			if err != nil {
				return err
			}
			bs, err := simdriver.View[byte](g, b, graphBuffer)
			mix(bs, as, k)
			return err
		},
	})
	c.OnExecute = func(e simdriver.Executed) {
		if e.Node != 0 {
			w.mu.Lock()
			w.ran = append(w.ran, e.Node)
			w.mu.Unlock()
		}
	}
	var vs []driver.Device
	w.d, vs = open(t, c)
	w.v = vs[0]
	w.mix = function(t, w.v, "mix")
	for i := range 8 {
		w.mem = append(w.mem, alloc(t, w.v, driver.MemKind(i%3), graphBuffer))
	}
	return w
}

// draw makes a random graph. Unless skip is set, the graph orders all conflicting uses of a buffer.
func (w *graphWorld) draw(depth int) *drawing {
	d := &drawing{g: graph(w.t, w.v)}
	var behind []map[int]bool // for each node, the nodes before it
	for range 1 + w.r.IntN(12) {
		n := &drawn{}
		w.fill(n, depth)
		paths := make(map[int]bool)
		to := func(i int) {
			if paths[i] || w.skip && w.r.IntN(4) == 0 {
				return
			}
			n.after = append(n.after, i)
			paths[i] = true
			for j := range behind[i] {
				paths[j] = true
			}
		}
		for i := len(d.nodes) - 1; i >= 0; i-- {
			if p := d.nodes[i]; meet(n.writes, p.writes) || meet(n.writes, p.reads) || meet(n.reads, p.writes) || w.r.IntN(12) == 0 {
				to(i)
			}
		}
		var after []driver.Node
		for _, i := range n.after {
			after = append(after, d.nodes[i].id)
		}
		n.id = node(w.t, w.v, d.g, n.op, after...)
		d.nodes, behind = append(d.nodes, n), append(behind, paths)
	}
	return d
}

func meet(a, b []int) bool {
	return slices.ContainsFunc(a, func(i int) bool { return slices.Contains(b, i) })
}

// fill chooses a random operation for a node.
func (w *graphWorld) fill(n *drawn, depth int) {
	i, j := w.r.IntN(len(w.mem)), w.r.IntN(len(w.mem)-1)
	if j >= i {
		j++
	}
	switch k := w.r.IntN(9); {
	case k == 0:
		n.op.Kind = driver.EmptyNode
	case k == 1 && depth > 0:
		n.child = w.draw(depth - 1)
		n.op = driver.NodeOp{Kind: driver.ChildNode, Child: n.child.g}
		for _, c := range n.child.nodes {
			n.reads, n.writes = append(n.reads, c.reads...), append(n.writes, c.writes...)
		}
	case k < 4:
		n.op.Kind, n.op.Dst, n.writes = driver.FillNode, w.mem[i].Ptr, []int{i}
	case k < 6:
		n.op = copyOp(w.mem[i].Ptr, w.mem[j].Ptr, 1)
		n.reads, n.writes = []int{j}, []int{i}
	default:
		n.k = new(uint8)
		n.op = kernelOp(w.mix, unsafe.Pointer(&w.mem[j].Ptr), unsafe.Pointer(&w.mem[i].Ptr), unsafe.Pointer(n.k))
		n.reads, n.writes = []int{j}, []int{i}
	}
	w.vary(n)
}

// vary changes the operation of a node. The node uses the same buffers as before.
func (w *graphWorld) vary(n *drawn) {
	switch n.op.Kind {
	case driver.FillNode:
		n.op.Width = 1 << w.r.IntN(3)
		n.op.Stride = uint64(n.op.Width * w.r.IntN(4))
		n.op.Pattern = w.r.Uint32()
		n.op.Count = 1 + w.r.Uint64N((graphBuffer-uint64(n.op.Width))/max(n.op.Stride, uint64(n.op.Width))+1)
	case driver.CopyNode:
		n.op.Count = 1 + w.r.Uint64N(graphBuffer)
	case driver.KernelNode:
		*n.k = uint8(w.r.Uint32())
	}
}

// apply applies the graph's effects to the model.
func (d *drawing) apply(model [][]byte) {
	for _, n := range d.nodes {
		switch n.op.Kind {
		case driver.FillNode:
			b := model[n.writes[0]]
			for i := range n.op.Count {
				for j := range n.op.Width {
					b[i*max(n.op.Stride, uint64(n.op.Width))+uint64(j)] = byte(n.op.Pattern >> (8 * j))
				}
			}
		case driver.CopyNode:
			copy(model[n.writes[0]][:n.op.Count], model[n.reads[0]])
		case driver.KernelNode:
			mix(model[n.writes[0]], model[n.reads[0]], *n.k)
		case driver.ChildNode:
			n.child.apply(model)
		}
	}
}

// ordered ends the test unless the nodes of one launch have executed in an order that the graph
// allows.
func (d *drawing) ordered(t *testing.T, at map[driver.Node]int) {
	for _, n := range d.nodes {
		for _, i := range n.after {
			p := d.nodes[i]
			a, ok := at[p.id]
			b, ok2 := at[n.id]
			if ok && ok2 && a > b {
				t.Fatalf("node %#x was executed before %#x", n.id, p.id)
			}
		}
		if n.child != nil {
			n.child.ordered(t, at)
		}
	}
}

// run launches an exec of a random graph a few times and sets nodes of the exec in between. It
// reports whether the memory then equals the model. If w.skip is set, it instead reports whether
// there is no OrderError.
func (w *graphWorld) run(depth int) bool {
	var streams []driver.Stream
	for range 3 {
		streams = append(streams, stream(w.t, w.v))
	}
	d := w.draw(depth)
	x := instantiate(w.t, w.v, d.g)
	model := make([][]byte, len(w.mem))
	for i, m := range w.mem {
		model[i] = bytes.Repeat([]byte{byte(i)}, graphBuffer)
		check(w.t, w.v.Fill(streams[0], m.Ptr, uint32(i), 1, graphBuffer))
	}
	e := record(w.t, w.v, streams[0])
	for _, s := range streams[1:] {
		check(w.t, w.v.StreamWait(s, e))
	}
	w.ran = nil
	const launches = 4
	for range launches {
		check(w.t, graphs(w.v).LaunchGraph(streams[w.r.IntN(3)], x))
		d.apply(model)
		for range 3 {
			n := d.nodes[w.r.IntN(len(d.nodes))]
			switch n.op.Kind {
			case driver.FillNode, driver.CopyNode, driver.KernelNode:
				w.vary(n)
				check(w.t, graphs(w.v).SetNode(x, n.id, &n.op))
			}
		}
	}
	if w.skip {
		e := record(w.t, w.v, streams[0])
		w.d.Run()
		_, err := w.v.Query(e)
		return !errors.As(err, new(*simdriver.OrderError))
	}
	for _, s := range streams {
		e := record(w.t, w.v, s)
		w.d.Run()
		check(w.t, wait(w.t, w.v, e))
	}
	check(w.t, graphs(w.v).DestroyGraph(d.g))
	size := len(w.ran) / launches
	for i := range launches {
		at := make(map[driver.Node]int)
		for j, id := range w.ran[i*size : (i+1)*size] {
			if _, ok := at[id]; ok {
				w.t.Fatalf("node %#x was executed twice", id)
			}
			at[id] = j
		}
		d.ordered(w.t, at)
	}
	check(w.t, graphs(w.v).DestroyExec(x))
	for i, m := range w.mem {
		b := make([]byte, graphBuffer)
		check(w.t, w.v.Download(streams[0], unsafe.Pointer(&b[0]), m.Ptr, graphBuffer))
		e := record(w.t, w.v, streams[0])
		w.d.Run()
		check(w.t, wait(w.t, w.v, e))
		if !bytes.Equal(b, model[i]) {
			return false
		}
	}
	return true
}

// TestGraphModel launches random graphs, and compares the memory with that of a sequential run.
func TestGraphModel(t *testing.T) {
	hip := simdriver.HIPCaps()
	for name, c := range map[string]simdriver.Config{
		"concurrent": {}, "hip": {Caps: &hip}, "deterministic": {Deterministic: true},
	} {
		t.Run(name, func(t *testing.T) {
			for seed := range uint64(4) {
				w := newGraphWorld(t, seed, c)
				for i := range 15 {
					if !w.run(2) {
						t.Fatalf("seed %d, graph %d: the memory is wrong", seed, i)
					}
				}
			}
		})
	}
}

// TestGraphModelNotices leaves edges out. Launches of some of the graphs must then end with an
// OrderError.
func TestGraphModelNotices(t *testing.T) {
	found := 0
	for seed := range uint64(30) {
		w := newGraphWorld(t, seed, simdriver.Config{Deterministic: true})
		w.skip = true
		if !w.run(0) {
			found++
		}
	}
	if found < 5 {
		t.Errorf("%d of 30 graphs with missing edges gave an error or wrong memory", found)
	}
}

// TestGraphDeterministic checks that the order of nodes depends only on the seed, even with work in
// other streams.
func TestGraphDeterministic(t *testing.T) {
	order := func(seed uint64) (s string) {
		d := simdriver.New(simdriver.Config{Deterministic: true, Seed: seed, OnExecute: func(e simdriver.Executed) {
			s += fmt.Sprintf("%c%d ", 'a'+e.Stream&0xf, e.Node)
		}})
		v := must(d.Open(0))(t)
		defer v.Close()
		m := alloc(t, v, driver.DeviceMem, 16)
		var ss []driver.Stream
		for range 2 {
			ss = append(ss, stream(t, v))
		}
		g := graph(t, v)
		var last []driver.Node
		for i := range 9 {
			n := node(t, v, g, fillOp(m.Ptr+driver.Ptr(i), 1, 1), last...)
			if i%3 == 0 {
				last = []driver.Node{n}
			}
		}
		x := instantiate(t, v, g)
		for _, s := range ss {
			check(t, v.Fill(s, m.Ptr, 0, 1, 8))
			check(t, graphs(v).LaunchGraph(s, x))
			check(t, v.Fill(s, m.Ptr, 0, 1, 8))
		}
		if n := d.Run(); n != 2*(1+9+1) {
			t.Errorf("%d steps", n)
		}
		return s
	}
	orders := make(map[string]bool)
	for seed := range uint64(20) {
		a, b := order(seed), order(seed)
		if a != b {
			t.Errorf("seed %d: %s, then %s", seed, a, b)
		}
		orders[a] = true
	}
	if len(orders) < 18 {
		t.Errorf("20 seeds made %d orders", len(orders))
	}
}

// TestGraphStep checks that a launch takes a step even if none of its nodes does anything, and that
// a stall stops a launch between nodes.
func TestGraphStep(t *testing.T) {
	d, vs := open(t, simdriver.Config{Deterministic: true})
	v := vs[0]
	s, m := stream(t, v), alloc(t, v, driver.DeviceMem, 8)
	none, idle, two := graph(t, v), graph(t, v), graph(t, v)
	node(t, v, idle, driver.NodeOp{}, node(t, v, idle, driver.NodeOp{Kind: driver.ChildNode, Child: none}))
	node(t, v, two, driver.NodeOp{}, node(t, v, two, fillOp(m.Ptr, 1, 1), node(t, v, two, driver.NodeOp{}, node(t, v, two, fillOp(m.Ptr, 1, 1)))))
	for _, c := range []struct {
		g     driver.Graph
		steps int
	}{{none, 1}, {idle, 1}, {two, 2}} {
		check(t, graphs(v).LaunchGraph(s, instantiate(t, v, c.g)))
		if n := d.Run(); n != c.steps {
			t.Errorf("%d steps, want %d", n, c.steps)
		}
	}
	x := instantiate(t, v, two)
	check(t, graphs(v).LaunchGraph(s, x))
	if !d.Step() {
		t.Error("no step")
	}
	check(t, d.StallStream(s))
	if d.Step() {
		t.Error("a step while the stream is held")
	}
	refused(t, graphs(v).DestroyExec(x), simdriver.ErrBusy)
	check(t, d.ResumeStream(s))
	if n := d.Run(); n != 1 {
		t.Errorf("%d steps", n)
	}
	check(t, graphs(v).LaunchGraph(s, x))
	d.Step()
	check(t, d.LoseDevice(0, nil))
	if d.Step() {
		t.Error("a step of a lost device")
	}
	refused(t, v.DestroyStream(s), driver.ErrLost)
}
