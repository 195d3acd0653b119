//go:build linux && (amd64 || arm64) && !nogpu

package cudadriver

import (
	"testing"
	"unsafe"

	"github.com/puregpu/puregpu/cuda"
	"github.com/puregpu/puregpu/runtime/dl"
	"github.com/puregpu/puregpu/runtime/driver"
)

// errSink keeps the compiler from dropping what a test computes.
var errSink error

// TestSubmittingAllocatesNothing goes through the interface, as the runtime does.
func TestSubmittingAllocatesNothing(t *testing.T) {
	if !dl.Fast {
		t.Skip("no fast path in this build")
	}
	f := newFake(t, 13000)
	dev := f.device()
	var d driver.Device = dev
	m, err := d.Alloc(driver.HostMem, 64)
	if err != nil {
		t.Fatal(err)
	}
	defer d.Free(m)
	fn, _ := function(t, d, "count")
	counter, by := new(uint64), new(uint32)
	launch := &driver.Launch{Function: fn, Grid: [3]uint32{1, 1, 1}, Block: [3]uint32{1, 1, 1}, Args: []unsafe.Pointer{unsafe.Pointer(&counter), unsafe.Pointer(by)}}
	ex := *launch
	ex.Attrs = driver.LaunchAttrs{Cluster: [3]uint32{1, 1, 1}, Cooperative: true, Dependent: true, Priority: -1, Carveout: 50}
	host, err := d.(driver.Pools).NewPool(driver.PoolDesc{Kind: driver.HostMem})
	if err != nil {
		t.Fatal(err)
	}
	pools, graphs, timers := d.(driver.Pools), d.(driver.Graphs), d.(driver.Timers)
	values, adopter := d.(driver.Values), d.(driver.Adopter)
	allocFree := func(p driver.Pool) error {
		m, err := pools.AllocAsync(stream0, p, 64)
		if err != nil {
			return err
		}
		return pools.FreeAsync(stream0, m)
	}
	g, err := graphs.NewGraph()
	if err != nil {
		t.Fatal(err)
	}
	ops := []*driver.NodeOp{
		{Kind: driver.KernelNode, Launch: *launch},
		{Kind: driver.FillNode, Dst: m.Ptr, Pattern: 1, Width: 4, Count: 16},
		{Kind: driver.CopyNode, Dst: m.Ptr + 32, Src: m.Ptr, Count: 32},
	}
	nodes := make([]driver.Node, len(ops))
	for i, op := range ops {
		if nodes[i], err = graphs.AddNode(g, nodes[:i], op); err != nil {
			t.Fatal(err)
		}
	}
	exec, err := graphs.Instantiate(g)
	if err != nil {
		t.Fatal(err)
	}
	set := func(i int) func() error { return func() error { return graphs.SetNode(exec, nodes[i], ops[i]) } }
	ready := true
	for name, call := range map[string]func() error{
		"Record":     func() error { return d.Record(event0, stream0) },
		"StreamWait": func() error { return d.StreamWait(stream0, event0) },
		"Query": func() error {
			done, err := d.Query(event0)
			if done != ready {
				t.Errorf("Query = %t", done)
			}
			return err
		},
		"Fill 1":                             func() error { return d.Fill(stream0, m.Ptr, 0x12345678, 1, 64) },
		"Fill 2":                             func() error { return d.Fill(stream0, m.Ptr, 0x12345678, 2, 32) },
		"Fill 4":                             func() error { return d.Fill(stream0, m.Ptr, 0x12345678, 4, 16) },
		"Copy":                               func() error { return d.Copy(stream0, m.Ptr+32, m.Ptr, 32) },
		"Upload":                             func() error { return d.Upload(stream0, m.Ptr+32, m.Host, 32) },
		"Download":                           func() error { return d.Download(stream0, m.Host, m.Ptr+32, 32) },
		"Launch":                             func() error { return d.Launch(stream0, launch) },
		"Launch, with attributes":            func() error { return d.Launch(stream0, &ex) },
		"AllocAsync and FreeAsync":           func() error { return allocFree(pool0) },
		"AllocAsync and FreeAsync, the host": func() error { return allocFree(host) },
		"SetNode, a kernel":                  set(0),
		"SetNode, a fill":                    set(1),
		"SetNode, a copy":                    set(2),
		"LaunchGraph":                        func() error { return graphs.LaunchGraph(stream0, exec) },
		"Elapsed":                            func() error { _, err := timers.Elapsed(event0, event0); return err },
		"Bind":                               d.Bind,
		"WriteValue":                         func() error { return values.WriteValue(stream0, m.Ptr, 7) },
		"WaitValue":                          func() error { return values.WaitValue(stream0, m.Ptr, 0) },
		"Capturing":                          func() error { _, err := adopter.Capturing(stream0); return err },
	} {
		states := []bool{true}
		if name == "Query" {
			states = []bool{true, false}
		}
		for _, ready = range states {
			if !ready {
				f.set("cuEventQuery", int(cuda.ErrorNotReady))
			}
			for _, dev.sets = range []bool{true, false} {
				if n := testing.AllocsPerRun(100, func() { errSink = call() }); n != 0 || errSink != nil {
					t.Errorf("%s allocates %v times, with %v", name, n, errSink)
				}
			}
		}
	}
}
