//go:build linux && (amd64 || arm64) && !nogpu

package cudadriver

import (
	"errors"
	"testing"
	"unsafe"

	"github.com/puregpu/puregpu/runtime/driver"
)

// TestConditionals runs a loop and an if in a graph of the fake driver.
func TestConditionals(t *testing.T) {
	f := newFake(t, 13000)
	d := f.device()
	ok(t, d.ReadyConditionals())
	m, err := d.Load([]byte(countPTX))
	ok(t, err)
	count, _, err := d.Function(m, "count")
	ok(t, err)
	g, err := d.NewGraph()
	ok(t, err)
	c, err := d.NewCondition(g)
	ok(t, err)
	words := make([]uint64, 3) // the tested number, a count, and the number that SetNode makes the test read
	ptr := func(i int) driver.Ptr { return driver.Ptr(uintptr(unsafe.Pointer(&words[i]))) }
	kernel := func(i int, by uint32) *driver.NodeOp {
		at := ptr(i)
		return &driver.NodeOp{Kind: driver.KernelNode, Launch: driver.Launch{Function: count, Args: []unsafe.Pointer{unsafe.Pointer(&at), unsafe.Pointer(&by)}}}
	}
	test := driver.NodeOp{Kind: driver.TestNode, Src: ptr(0), Test: driver.Test{Condition: c, Low: 3, High: 9}}
	first, err := d.AddNode(g, nil, &test)
	ok(t, err)
	n, body, err := d.AddConditional(g, []driver.Node{first}, &driver.NodeOp{Kind: driver.WhileNode, Test: test.Test})
	ok(t, err)
	for _, op := range []*driver.NodeOp{kernel(0, 2), kernel(1, 1), &test} {
		_, err = d.AddNode(body, nil, op)
		ok(t, err)
	}
	once, err := d.NewCondition(g)
	ok(t, err)
	last := driver.NodeOp{Kind: driver.TestNode, Src: ptr(0), Test: driver.Test{Condition: once, Low: 0, High: 0}}
	second, err := d.AddNode(g, []driver.Node{n}, &last)
	ok(t, err)
	_, then, err := d.AddConditional(g, []driver.Node{second}, &driver.NodeOp{Kind: driver.IfNode, Test: last.Test})
	ok(t, err)
	_, err = d.AddNode(then, nil, kernel(1, 100))
	ok(t, err)
	x, err := d.Instantiate(g)
	ok(t, err)
	for _, c := range []struct{ number, want, count uint64 }{{3, 11, 4}, {2, 2, 0}, {0, 0, 100}, {10, 10, 0}} {
		words[0], words[1] = c.number, 0
		ok(t, d.LaunchGraph(stream0, x))
		if words[0] != c.want || words[1] != c.count {
			t.Errorf("%d: %v", c.number, words)
		}
	}
	moved := test
	moved.Src = ptr(2)
	ok(t, d.SetNode(x, first, &moved))
	words[0], words[1], words[2] = 4, 0, 1
	ok(t, d.LaunchGraph(stream0, x))
	if words[0] != 4 || words[1] != 0 {
		t.Error(words)
	}
	ok(t, d.DestroyExec(x))
	ok(t, d.DestroyGraph(g))
	ok(t, d.Unload(m))
}

// TestNoConditionals opens a driver that is too old, and a driver whose compiler refuses the kernel
// of test nodes.
func TestNoConditionals(t *testing.T) {
	d := newFake(t, 12030).device()
	if d.Caps().Conditionals || !errors.Is(d.ReadyConditionals(), driver.ErrUnsupported) {
		t.Error(d.Caps().Conditionals, d.ReadyConditionals())
	}
	_, err := d.NewCondition(graph0)
	_, _, err2 := d.AddConditional(graph0, nil, &driver.NodeOp{Kind: driver.IfNode})
	if !errors.Is(err, driver.ErrUnsupported) || !errors.Is(err2, driver.ErrUnsupported) {
		t.Error(err, err2)
	}
	f := newFake(t, 13000)
	d = f.device()
	f.Set("log", 1)
	if err := d.ReadyConditionals(); err == nil {
		t.Error("no error")
	}
}
