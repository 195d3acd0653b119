//go:build linux && (amd64 || arm64) && !nogpu

package cudadriver

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"unsafe"

	"github.com/puregpu/puregpu/cuda"
	"github.com/puregpu/puregpu/internal/testlib"
	"github.com/puregpu/puregpu/runtime/dl"
	"github.com/puregpu/puregpu/runtime/driver"
)

// attrs are launch attributes, one at a time and all at once. Each entry says which attributes the
// driver must get for a launch and for a node.
var attrs = []struct {
	attrs          driver.LaunchAttrs
	launched, node string
	wish           bool
}{
	{attrs: driver.LaunchAttrs{Cluster: [3]uint32{4, 2, 1}}, launched: " 4: 4 2 1", node: " 4: 4 2 1"},
	{attrs: driver.LaunchAttrs{Cooperative: true}, launched: " 2: 1", node: " 2: 1"},
	{attrs: driver.LaunchAttrs{Dependent: true}, launched: " 6: 1"},
	{attrs: driver.LaunchAttrs{Priority: -3}, launched: " 8: -3", wish: true},
	{attrs: driver.LaunchAttrs{Carveout: 100}, launched: " 14: 100", node: " 14: 100", wish: true},
	{attrs: driver.LaunchAttrs{Carveout: -1}, launched: " 14: 0", node: " 14: 0", wish: true},
	{attrs: driver.LaunchAttrs{Cluster: [3]uint32{1, 1, 8}, Cooperative: true, Dependent: true, Priority: 2, Carveout: 7},
		launched: " 4: 1 1 8 2: 1 6: 1 8: 2 14: 7", node: " 4: 1 1 8 2: 1 14: 7"},
}

func TestLaunchAttrs(t *testing.T) {
	f := newFake(t, 13000)
	d := f.device()
	fn, _ := function(t, d, "count")
	counter, by := new(uint64), new(uint32)
	*by = 1
	for i, c := range attrs {
		op := countOp(fn, &counter, by)
		op.Launch.Attrs = c.attrs
		f.Calls()
		ok(t, d.Launch(stream0, &op.Launch))
		f.Want("cuLaunchKernelEx(0xf001, 2 3 4, 5 6 7, 8, 0x5000;" + c.launched + ")")
		if *counter != uint64(i+1) {
			t.Errorf("%+v: the kernel counts %d", c.attrs, *counter)
		}
	}
}

// TestLaunchAttrsMissing tests drivers and devices without attributes: hints are dropped, other
// attributes are refused.
func TestLaunchAttrsMissing(t *testing.T) {
	for name, c := range map[string]struct {
		release dl.Version
		lacks   []string // settings of the fake driver
		says    string
		kept    string // numbers of the hints that the driver gets
	}{
		"an old driver":  {11040, nil, "the driver has CUDA 11.4, and launch attributes need CUDA 11.8", ""},
		"an old device":  {13000, []string{"attr 75", "attr 95", "attr 120"}, " on sm_", " 8 14"},
		"before 12.8":    {12060, []string{"attr 75", "attr 95", "attr 120"}, " on sm_", " 8"},
		"without a name": {11070, nil, "launch attributes need CUDA 11.8", ""},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFake(t, c.release)
			for _, s := range c.lacks {
				f.Set(s, 1)
			}
			d := f.device()
			if d.caps.Cooperative || d.caps.Clusters || d.caps.DependentLaunch {
				t.Errorf("%+v", d.caps)
			}
			fn, info := function(t, d, "count")
			if info.MaxCluster != 0 {
				t.Errorf("clusters of %d blocks", info.MaxCluster)
			}
			counter, by := new(uint64), new(uint32)
			for _, a := range attrs {
				op := countOp(fn, &counter, by)
				op.Launch.Attrs = a.attrs
				f.Calls()
				err := d.Launch(stream0, &op.Launch)
				all := slices.DeleteFunc(f.Calls(), func(c string) bool { return strings.HasPrefix(c, "cuCtx") })
				calls := strings.Join(all, " ")
				if !a.wish {
					e, isError := errors.AsType[*driver.Error](err)
					if !isError || e.Op != "launch" || !errors.Is(err, driver.ErrUnsupported) || !strings.Contains(err.Error(), c.says) || calls != "" {
						t.Errorf("%+v: %v, calls %s", a.attrs, err, calls)
					}
					if d.noGraphs != nil {
						continue
					}
					g, err := d.NewGraph()
					ok(t, err)
					f.Calls()
					if n, err := d.AddNode(g, nil, op); n != 0 || !errors.Is(err, driver.ErrUnsupported) || f.Calls()[0] != "" {
						t.Errorf("%+v: a node, %v", a.attrs, err)
					}
					ok(t, d.DestroyGraph(g))
					continue
				}
				ok(t, err)
				want := "cuLaunchKernel(0xf001, 2 3 4, 5 6 7, 8, 0x5000)"
				if c.kept != "" {
					want = "cuLaunchKernelEx(0xf001, 2 3 4, 5 6 7, 8, 0x5000;"
					if number, _, _ := strings.Cut(a.launched, ":"); strings.Contains(c.kept, number) {
						want += a.launched
					}
					want += ")"
				}
				if calls != want {
					t.Errorf("%+v: %s, want %s", a.attrs, calls, want)
				}
			}
		})
	}
}

// TestLaunchEvents tests launches that record an event at their beginning, and drivers too old for
// such launches.
func TestLaunchEvents(t *testing.T) {
	for release, has := range map[dl.Version]bool{13000: true, 12030: true, 12020: false, 11040: false} {
		t.Run(fmt.Sprint(release), func(t *testing.T) {
			f := newFake(t, release)
			d := f.device()
			if d.caps.LaunchEvents != has {
				t.Errorf("LaunchEvents is %v", d.caps.LaunchEvents)
			}
			e, err := d.NewEvent()
			ok(t, err)
			fn, _ := function(t, d, "count")
			counter, by := new(uint64), new(uint32)
			*by = 1
			op := countOp(fn, &counter, by)
			op.Launch.Begun = e
			for i, c := range []struct {
				attrs    driver.LaunchAttrs
				launched string
			}{
				{driver.LaunchAttrs{}, ""},
				{driver.LaunchAttrs{Cluster: [3]uint32{1, 1, 8}, Cooperative: true, Dependent: true, Priority: 2}, " 4: 1 1 8 2: 1 6: 1 8: 2"},
			} {
				op.Launch.Attrs = c.attrs
				f.Calls()
				err := d.Launch(stream0, &op.Launch)
				if !has {
					if !errors.Is(err, driver.ErrUnsupported) || *counter != 0 {
						t.Errorf("%+v: %v, %d", c.attrs, err, *counter)
					}
					continue
				}
				ok(t, err)
				f.Want(fmt.Sprintf("cuLaunchKernelEx(0xf001, 2 3 4, 5 6 7, 8, 0x5000;%s 12: %#x 0)", c.launched, uintptr(e)))
				if *counter != uint64(i+1) {
					t.Errorf("%+v: the kernel counts %d", c.attrs, *counter)
				}
			}
			if d.noGraphs != nil {
				return
			}
			g, err := d.NewGraph()
			ok(t, err)
			op.Launch.Attrs = driver.LaunchAttrs{}
			if n, err := d.AddNode(g, nil, op); n != 0 || !errors.Is(err, driver.ErrUnsupported) || !strings.Contains(err.Error(), "at its beginning") {
				t.Errorf("a node: %v", err)
			}
			op.Launch.Begun = 0
			n, err := d.AddNode(g, nil, op)
			ok(t, err)
			x, err := d.Instantiate(g)
			ok(t, err)
			op.Launch.Begun = e
			if err := d.SetNode(x, n, op); !errors.Is(err, driver.ErrUnsupported) {
				t.Errorf("a node set later: %v", err)
			}
			ok(t, errors.Join(d.DestroyExec(x), d.DestroyGraph(g), d.DestroyEvent(e)))
		})
	}
}

// TestNodeAttrs tests the attributes of kernel nodes, and the edges to dependent kernels.
func TestNodeAttrs(t *testing.T) {
	for _, release := range []dl.Version{13000, 12020} {
		t.Run(fmt.Sprint(release), func(t *testing.T) {
			f := newFake(t, release)
			d := f.device()
			fn, _ := function(t, d, "count")
			counter, by := new(uint64), new(uint32)
			g, err := d.NewGraph()
			ok(t, err)
			add := func(a driver.LaunchAttrs, after ...driver.Node) (driver.Node, []string) {
				t.Helper()
				op := countOp(fn, &counter, by)
				op.Launch.Attrs = a
				f.Calls()
				n, err := d.AddNode(g, after, op)
				ok(t, err)
				return n, f.Calls()
			}
			first, _ := add(driver.LaunchAttrs{})
			for _, c := range attrs {
				if c.attrs.Dependent {
					continue
				}
				n, calls := add(c.attrs, first)
				want := []string{fmt.Sprintf("cuGraphAddKernelNode_v2(0x10001, %#x; 0xf001, 2 3 4, 5 6 7, 8)", uintptr(first))}
				if c.node != "" && (release > 12080 || c.attrs.Carveout == 0) {
					want = append(want, fmt.Sprintf("cuGraphKernelNodeSetAttribute(%#x,%s)", uintptr(n), c.node))
				}
				if !slices.Equal(calls, want) {
					t.Errorf("%+v: calls %q, want %q", c.attrs, calls, want)
				}
			}
			empty, err := d.AddNode(g, nil, &driver.NodeOp{})
			ok(t, err)
			dependent := driver.LaunchAttrs{Dependent: true}
			for what, c := range map[string]struct {
				after []driver.Node
				early bool
			}{
				"nothing":     {nil, false},
				"a kernel":    {[]driver.Node{first}, release > 12030},
				"no kernel":   {[]driver.Node{empty}, false},
				"two kernels": {[]driver.Node{first, first + 1}, false},
			} {
				n, calls := add(dependent, c.after...)
				edge := fmt.Sprintf("cuGraphAddDependencies_v2(0x10001, %#x to %#x, port 1 to 0, type 1, 1)", uintptr(first), uintptr(n))
				if slices.Contains(calls, edge) != c.early || slices.Contains(calls, "cuGraphAddKernelNode_v2(0x10001,; 0xf001, 2 3 4, 5 6 7, 8)") != (c.early || c.after == nil) {
					t.Errorf("after %s: calls %q", what, calls)
				}
			}

			// A node whose attributes cannot be set is removed.
			fails := []string{"cuGraphKernelNodeSetAttribute"}
			if release > 12030 {
				fails = append(fails, "cuGraphAddDependencies_v2", "cuGraphNodeGetType")
			}
			for _, name := range fails {
				f.Set(name, int(cuda.ErrorInvalidValue))
				op := countOp(fn, &counter, by)
				op.Launch.Attrs = driver.LaunchAttrs{Cooperative: true, Dependent: true}
				f.Calls()
				n, err := d.AddNode(g, []driver.Node{first}, op)
				added, destroyed := 0, 0
				for _, call := range f.Calls() {
					if strings.HasPrefix(call, "cuGraphAddKernelNode") {
						added++
					}
					if strings.HasPrefix(call, "cuGraphDestroyNode") {
						destroyed++
					}
				}
				if n != 0 || !errors.Is(err, cuda.ErrorInvalidValue) || added != destroyed || !strings.Contains(err.Error(), ", cooperative, dependent, after 1 others") {
					t.Errorf("%s fails: node %#x, %v; %d added, %d destroyed", name, uintptr(n), err, added, destroyed)
				}
				f.Set(name, 0)
			}
		})
	}
}

// TestLaunchHeapFrames launches with attributes while the stack grows. Each call's arguments are in
// a frame on the heap.
func TestLaunchHeapFrames(t *testing.T) {
	f := newFake(t, 13000)
	d := f.device()
	d.lib.HeapFrames()
	fn, _ := function(t, d, "count")
	counter, by := new(uint64), new(uint32)
	*by = 2
	for i := range 50 {
		ok(t, d.Launch(stream0, &driver.Launch{Function: fn, Args: []unsafe.Pointer{unsafe.Pointer(&counter), unsafe.Pointer(by)},
			Attrs: driver.LaunchAttrs{Cluster: [3]uint32{2, 1, 1}, Carveout: 20}}))
		testlib.Deep(100 * i)
	}
	if calls := f.Calls(); *counter != 100 || calls[len(calls)-2] != "cuLaunchKernelEx(0xf001, 1 1 1, 1 1 1, 0, 0x5000; 4: 2 1 1 14: 20)" {
		t.Errorf("the kernels count %d; %q", *counter, calls[len(calls)-2])
	}
}
