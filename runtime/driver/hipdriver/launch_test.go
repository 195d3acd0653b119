//go:build linux && (amd64 || arm64) && !nogpu

package hipdriver

import (
	"errors"
	"strings"
	"testing"
	"unsafe"

	"github.com/puregpu/puregpu/runtime/driver"
)

// TestLaunchAttrs checks that Launch refuses attributes that a kernel relies on if HIP lacks them,
// and that Launch drops hints.
func TestLaunchAttrs(t *testing.T) {
	const plain, cooperative = "hipModuleLaunchKernel", "hipModuleLaunchCooperativeKernel"
	f := newFake(t, hip64)
	d := f.device()
	fn, _ := function(t, d, "count")
	counter, by := new(uint64), new(uint32)
	*by = 1
	runs := uint64(0)
	for _, c := range []struct {
		attrs driver.LaunchAttrs
		call  string // expected call; if empty, an error is expected whose text contains the field says
		says  string
		node  bool
		begun driver.Event
	}{
		{attrs: driver.LaunchAttrs{Cooperative: true}, call: cooperative},
		{attrs: driver.LaunchAttrs{Cooperative: true, Priority: -1, Carveout: 10}, call: cooperative},
		{attrs: driver.LaunchAttrs{Priority: -1, Carveout: -1}, call: plain, node: true},
		{attrs: driver.LaunchAttrs{Cluster: [3]uint32{2, 1, 1}}, says: "HIP has no clusters"},
		{attrs: driver.LaunchAttrs{Cooperative: true, Cluster: [3]uint32{2, 1, 1}}, says: "HIP has no clusters"},
		{attrs: driver.LaunchAttrs{Dependent: true}, says: "HIP has no dependent launches"},
		{begun: event0, says: "HIP has no events for the beginning of a kernel"},
	} {
		l := driver.Launch{Function: fn, Grid: [3]uint32{2, 3, 4}, Block: [3]uint32{5, 6, 7}, SharedMem: 8,
			Args: []unsafe.Pointer{unsafe.Pointer(&counter), unsafe.Pointer(by)}, Attrs: c.attrs, Begun: c.begun}
		f.Calls()
		err := d.Launch(stream0, &l)
		if c.call != "" {
			f.Want(c.call + "(0xf001, 2 3 4, 5 6 7, 8, 0x5000)")
			runs++
		} else if f.Want(""); !errors.Is(err, driver.ErrUnsupported) || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%+v: %v", c.attrs, err)
		}
		if c.call != "" && err != nil || *counter != runs {
			t.Errorf("%+v: %v; the kernel counts %d", c.attrs, err, *counter)
		}
		n, err := d.AddNode(graph0, nil, &driver.NodeOp{Kind: driver.KernelNode, Launch: l})
		if c.node != (err == nil) || c.node != (n != 0) || err != nil && !errors.Is(err, driver.ErrUnsupported) {
			t.Errorf("%+v: node %#x, %v", c.attrs, uintptr(n), err)
		}
		if c.node {
			runs++ // the fake library runs it once
		}
	}
	old := newFake(t, hip52).device()
	err := old.Launch(stream0, &driver.Launch{Function: 0xf000, Attrs: driver.LaunchAttrs{Cooperative: true}})
	if !errors.Is(err, driver.ErrUnsupported) || !strings.Contains(err.Error(), "version 5.2") {
		t.Errorf("a cooperative launch: %v", err)
	}
}
