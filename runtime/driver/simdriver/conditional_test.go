package simdriver_test

import (
	"slices"
	"testing"
	"unsafe"

	"github.com/puregpu/puregpu/runtime/driver"
	"github.com/puregpu/puregpu/runtime/driver/simdriver"
)

// A loop is the graph of: while the number at w[0] is from 1 to 100, w[0]-- and w[1]++.
type loop struct {
	g, body   driver.Graph
	c         driver.Condition
	test, add driver.Node
	testOp    driver.NodeOp
	x         driver.Exec
	w         []uint32
	at        func(i int) driver.Ptr
	f         driver.Function
}

var addKernel = kernels(map[string]any{
	"add": func(g *simdriver.Grid, p driver.Ptr, n uint32) error {
		b, err := simdriver.View[uint32](g, p, 1)
		if err == nil {
			b[0] += n
		}
		return err
	},
})

func addOp(f driver.Function, p driver.Ptr, n uint32) driver.NodeOp {
	return kernelOp(f, unsafe.Pointer(&p), unsafe.Pointer(&n))
}

func newLoop(t *testing.T, v driver.Device) *loop {
	m := alloc(t, v, driver.HostMem, 64)
	l := &loop{g: graph(t, v), w: unsafe.Slice((*uint32)(m.Host), 16), at: func(i int) driver.Ptr { return m.Ptr + driver.Ptr(4*i) }}
	cs := v.(driver.Conditionals)
	check(t, cs.ReadyConditionals())
	l.c = must(cs.NewCondition(l.g))(t)
	l.testOp = driver.NodeOp{Kind: driver.TestNode, Src: l.at(0), Test: driver.Test{Condition: l.c, Low: 1, High: 100}}
	l.test = node(t, v, l.g, l.testOp)
	_, body, err := cs.AddConditional(l.g, []driver.Node{l.test}, &driver.NodeOp{Kind: driver.WhileNode, Test: l.testOp.Test})
	check(t, err)
	l.body = body
	f := function(t, v, "add")
	l.f = f
	less := node(t, v, body, addOp(f, l.at(0), ^uint32(0)))
	l.add = node(t, v, body, addOp(f, l.at(1), 1))
	node(t, v, body, l.testOp, less)
	l.x = instantiate(t, v, l.g)
	return l
}

// TestConditional runs a loop. It sets a node of the body while launches are in flight, and then
// the node that tests w[0].
func TestConditional(t *testing.T) {
	for _, manual := range []bool{false, true} {
		d, vs := open(t, simdriver.Config{Deterministic: manual, Kernels: addKernel})
		v := vs[0]
		l, s := newLoop(t, v), stream(t, v)
		run := func(want ...uint32) {
			t.Helper()
			e := record(t, v, s)
			d.Run()
			check(t, wait(t, v, e))
			if !slices.Equal(l.w[:len(want)], want) {
				t.Errorf("manual %v: %v, want %v", manual, l.w[:len(want)], want)
			}
		}
		l.w[0] = 5
		check(t, graphs(v).LaunchGraph(s, l.x))
		run(0, 5)
		l.w[0] = 101 // outside the test's bounds
		check(t, graphs(v).LaunchGraph(s, l.x))
		run(101, 5)
		l.w[0], l.w[1] = 3, 0
		// The body of launch i adds 7 to w[2+i]. The first launch executes its body three times,
		// until w[0] is 0. So the other launches do not execute their bodies.
		for i := range 4 {
			op := addOp(l.f, l.at(2+i), 7)
			check(t, graphs(v).SetNode(l.x, l.add, &op))
			check(t, graphs(v).LaunchGraph(s, l.x))
		}
		run(0, 0, 21, 0, 0, 0)
		moved := l.testOp
		moved.Src = l.at(9)
		check(t, graphs(v).SetNode(l.x, l.test, &moved))
		l.w[0], l.w[9] = 2, 0
		check(t, graphs(v).LaunchGraph(s, l.x))
		run(2, 0, 21, 0, 0, 0)
	}
}

// TestConditionalErrors makes calls that the simulated GPU refuses.
func TestConditionalErrors(t *testing.T) {
	_, vs := open(t, simdriver.Config{Kernels: addKernel})
	v := vs[0]
	l, cs := newLoop(t, v), vs[0].(driver.Conditionals)
	other := graph(t, v)
	add := func(g driver.Graph, op driver.NodeOp) error { _, err := graphs(v).AddNode(g, nil, &op); return err }
	conditional := func(g driver.Graph, kind driver.NodeKind, c driver.Condition) error {
		_, _, err := cs.AddConditional(g, nil, &driver.NodeOp{Kind: kind, Test: driver.Test{Condition: c}})
		return err
	}
	refused(t, conditional(l.g, driver.IfNode, l.c), simdriver.ErrInvalidValue, "another conditional node")
	refused(t, conditional(other, driver.IfNode, l.c), simdriver.ErrInvalidHandle, "no such condition")
	refused(t, conditional(l.g, driver.FillNode, l.c), simdriver.ErrInvalidValue, "no conditional node")
	refused(t, add(other, l.testOp), simdriver.ErrInvalidHandle, "no such condition")
	refused(t, add(other, driver.NodeOp{Kind: driver.ChildNode, Child: l.g}), simdriver.ErrInvalidValue, "child graph with conditional nodes")
	timer := must(v.(driver.Timers).NewTimer())(t)
	refused(t, add(l.body, driver.NodeOp{Kind: driver.RecordNode, Event: timer}), simdriver.ErrInvalidValue, "cannot record an event")
	_, err := graphs(v).Instantiate(l.body)
	refused(t, err, simdriver.ErrInvalidValue, "the body of a conditional node")
	refused(t, graphs(v).DestroyGraph(l.body), simdriver.ErrInvalidValue, "the body of a conditional node")
	wrong := l.testOp
	wrong.Test.Low = 7
	refused(t, graphs(v).SetNode(l.x, l.test, &wrong), simdriver.ErrInvalidValue, "only the address")

	caps := simdriver.CUDACaps()
	caps.Conditionals = false
	_, vs = open(t, simdriver.Config{Caps: &caps})
	v, cs = vs[0], vs[0].(driver.Conditionals)
	g := graph(t, v)
	_, err = cs.NewCondition(g)
	refused(t, err, driver.ErrUnsupported)
	refused(t, cs.ReadyConditionals(), driver.ErrUnsupported)
	_, _, err = cs.AddConditional(g, nil, &driver.NodeOp{Kind: driver.IfNode})
	refused(t, err, driver.ErrUnsupported)
	_, err = graphs(v).AddNode(g, nil, &l.testOp)
	refused(t, err, driver.ErrUnsupported)
}
