package simdriver_test

import (
	"cmp"
	"slices"
	"testing"
	"testing/synctest"
	"time"
	"unsafe"

	"github.com/puregpu/puregpu/runtime/driver"
	"github.com/puregpu/puregpu/runtime/driver/simdriver"
)

// TestNodeTimes launches a graph once without a launch number, and twice with one. The launches
// with a number must give one time for each kernel and fill. The time has the launch's number and
// the node's ID. For a node of a child graph the time has the ID of the child node.
func TestNodeTimes(t *testing.T) {
	for _, manual := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			d, vs := open(t, simdriver.Config{Deterministic: manual, Kernels: kernels(map[string]any{
				"sleep": func(_ *simdriver.Grid, ns uint64) { time.Sleep(time.Duration(ns)) },
			})})
			v := vs[0]
			if !v.Caps().NodeTimes {
				t.Fatal("the device does not time nodes")
			}
			x := v.(driver.NodeTimer)
			s, m, e := stream(t, v), alloc(t, v, driver.DeviceMem, 8), timer(t, v)
			f, ns := function(t, v, "sleep"), uint64(3e6)
			inner := graph(t, v)
			node(t, v, inner, kernelOp(f, unsafe.Pointer(&ns)), node(t, v, inner, kernelOp(f, unsafe.Pointer(&ns))))
			g := graph(t, v)
			ns = 5e6
			first := node(t, v, g, kernelOp(f, unsafe.Pointer(&ns)))
			child := node(t, v, g, driver.NodeOp{Kind: driver.ChildNode, Child: inner}, first)
			empty := node(t, v, g, driver.NodeOp{Kind: driver.EmptyNode}, child)
			fill := node(t, v, g, fillOp(m.Ptr, 1, 8), empty)
			node(t, v, g, driver.NodeOp{Kind: driver.RecordNode, Event: e}, fill)
			exec := instantiate(t, v, g)
			for launch := range uint64(3) { // 0 means without BeginLaunch
				if launch > 0 {
					x.BeginLaunch(s, launch)
				}
				check(t, graphs(v).LaunchGraph(s, exec))
				if launch > 0 {
					x.EndLaunch(s)
				}
			}
			d.Run()
			done := record(t, v, s)
			d.Run()
			check(t, wait(t, v, done))
			got := x.NodeTimes(nil, false)
			slices.SortFunc(got, func(a, b driver.NodeTime) int {
				return cmp.Or(cmp.Compare(a.Launch, b.Launch), a.Begun.Compare(b.Begun))
			})
			type one struct {
				launch, node uint64
				kernel       string
				took         time.Duration
			}
			var have, want []one
			for _, n := range got {
				have = append(have, one{n.Launch, n.Node, n.Kernel, n.Ended.Sub(n.Begun)})
			}
			id := func(n driver.Node) uint64 { return x.NodeIDs(nil, n)[0] }
			for launch := range uint64(2) {
				want = append(want, one{launch + 1, id(first), "sleep", 5e6}, one{launch + 1, id(child), "sleep", 3e6}, one{launch + 1, id(child), "sleep", 3e6},
					one{launch + 1, id(fill), "", 0})
			}
			if !slices.Equal(have, want) {
				t.Errorf("manual %v: times %v\nwant %v", manual, have, want)
			}
			if again := x.NodeTimes(nil, true); len(again) != 0 {
				t.Errorf("times came twice: %v", again)
			}
		})
	}
}
