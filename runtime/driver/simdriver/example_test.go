package simdriver_test

import (
	"errors"
	"fmt"
	"sync"
	"unsafe"

	"github.com/puregpu/puregpu/runtime/driver"
	"github.com/puregpu/puregpu/runtime/driver/simdriver"
)

// scale multiplies n numbers at x by a.
func scale(g *simdriver.Grid, x driver.Ptr, n uint32, a float32) error {
	xs, err := simdriver.View[float32](g, x, int(n))
	if err != nil {
		return err
	}
	for i := range xs {
		xs[i] *= a
	}
	return nil
}

// A program loads PTX, and Go functions run in place of the PTX's kernels.
func Example() {
	d := simdriver.New(simdriver.Config{Kernels: map[string]simdriver.Kernel{"scale": simdriver.MustKernel(scale)}})
	v, err := d.Open(0)
	if err != nil {
		fmt.Println(err)
		return
	}
	s, _ := v.NewStream()
	e, _ := v.NewEvent()
	x, _ := v.Alloc(driver.ManagedMem, 12)
	m, _ := v.Load([]byte(`.visible .entry scale(.param .u64 x, .param .u32 n, .param .f32 a) { ret; }`))
	f, _, _ := v.Function(m, "scale")

	xs := unsafe.Slice((*float32)(x.Host), 3)
	copy(xs, []float32{1, 2, 3})
	n, a := uint32(3), float32(10)
	v.Launch(s, &driver.Launch{
		Function: f,
		Grid:     [3]uint32{1, 1, 1},
		Block:    [3]uint32{3, 1, 1},
		Args:     []unsafe.Pointer{unsafe.Pointer(&x.Ptr), unsafe.Pointer(&n), unsafe.Pointer(&a)},
	})
	v.Record(e, s)
	for done := false; !done; {
		done, err = v.Query(e)
		if err != nil {
			fmt.Println(err)
			return
		}
	}
	fmt.Println(xs)

	v.Unload(m)
	v.Free(x)
	v.DestroyEvent(e)
	v.DestroyStream(s)
	fmt.Println(v.Close(), d.Leaks())
	// Output:
	// [10 20 30]
	// <nil> []
}

// In this test Step decides when operations execute.
func ExampleDriver_Step() {
	d := simdriver.New(simdriver.Config{Deterministic: true, OnExecute: func(e simdriver.Executed) { fmt.Println(e.Op, e.Seq) }})
	v, _ := d.Open(0)
	defer v.Close()
	s, _ := v.NewStream()
	e, _ := v.NewEvent()
	x, _ := v.Alloc(driver.DeviceMem, 64)
	v.Fill(s, x.Ptr, 0, 1, 64)
	v.Record(e, s)

	fmt.Println(v.Query(e))
	d.Step()
	fmt.Println(v.Query(e))
	d.Step()
	fmt.Println(v.Query(e))
	// Output:
	// false <nil>
	// fill 1
	// false <nil>
	// record 2
	// true <nil>
}

// The second allocation fails.
func ExampleDriver_Inject() {
	d := simdriver.New(simdriver.Config{})
	v, _ := d.Open(0)
	defer v.Close()
	d.Inject(simdriver.Fault{Op: simdriver.OpAlloc, N: 2, OOM: true})
	for range 3 {
		_, err := v.Alloc(driver.DeviceMem, 64)
		fmt.Println(err, errors.Is(err, driver.ErrOutOfMemory))
	}
	// Output:
	// <nil> false
	// sim: alloc: out of device memory true
	// <nil> false
}

// This test makes every call of a function fail, one call at a time.
func ExampleDriver_Calls() {
	piece := func(v driver.Device) error {
		s, err := v.NewStream()
		if err != nil {
			return err
		}
		return v.DestroyStream(s)
	}
	for n := uint64(1); ; n++ {
		d := simdriver.New(simdriver.Config{})
		v, _ := d.Open(0)
		before := d.Calls()
		f := d.Inject(simdriver.Fault{N: n})
		err := piece(v)
		f.Remove()
		fmt.Println(d.Calls()-before, "calls:", err)
		v.Close()
		if f.Hits() == 0 {
			break
		}
	}
	// Output:
	// 1 calls: sim: new stream: injected fault
	// 2 calls: sim: destroy stream: injected fault
	// 2 calls: <nil>
}

// Memory of a pool exists from its allocation to its free, in stream order. Uses of the memory in
// another stream must come between the two.
func Example_pool() {
	d := simdriver.New(simdriver.Config{})
	v, _ := d.Open(0)
	defer v.Close()
	pools := v.(driver.Pools) // available because Caps.Pools is set
	s, _ := v.NewStream()
	e, _ := v.NewEvent()
	p, _ := pools.DefaultPool()

	x, _ := pools.AllocAsync(s, p, 1024)
	v.Fill(s, x.Ptr, 0, 4, 256)
	pools.FreeAsync(s, x)
	y, _ := pools.AllocAsync(s, p, 1024)
	fmt.Println(x.Ptr == y.Ptr)

	pools.FreeAsync(s, y)
	v.Fill(s, y.Ptr, 0, 4, 1)
	v.Record(e, s)
	var err error
	for err == nil {
		_, err = v.Query(e)
	}
	var access *simdriver.AccessError
	fmt.Println(errors.As(err, &access), access.Op, access.Freed)
	// Output:
	// true
	// true fill true
}

// Nodes run in an order that the graph allows and the seed chooses.
func Example_graph() {
	d := simdriver.New(simdriver.Config{Deterministic: true, Seed: 8, OnExecute: func(e simdriver.Executed) { fmt.Println(e.Op, e.Node) }})
	v, _ := d.Open(0)
	defer v.Close()
	graphs := v.(driver.Graphs) // available because Caps.Graphs is set
	s, _ := v.NewStream()
	m, _ := v.Alloc(driver.DeviceMem, 64)

	g, _ := graphs.NewGraph()
	fill := driver.NodeOp{Kind: driver.FillNode, Dst: m.Ptr, Width: 4, Count: 8}
	a, _ := graphs.AddNode(g, nil, &fill)
	fill.Dst += 32
	b, _ := graphs.AddNode(g, nil, &fill)
	graphs.AddNode(g, []driver.Node{a, b}, &driver.NodeOp{Kind: driver.CopyNode, Dst: m.Ptr, Src: m.Ptr + 32, Count: 32})
	x, _ := graphs.Instantiate(g)
	graphs.LaunchGraph(s, x)
	d.Run()
	// Output:
	// fill 2
	// fill 1
	// copy 3
	// launch graph 0
}

// Each rank of a communicator is a goroutine with its own device.
func Example_comms() {
	d := simdriver.New(simdriver.Config{Devices: 3})
	first, _ := d.Open(0)
	id, _ := first.(driver.Comms).NewUniqueID() // available because Caps.Comms is set
	var all sync.WaitGroup
	for rank := range 3 {
		all.Go(func() {
			v, _ := d.Open(rank)
			defer v.Close()
			comms := v.(driver.Comms)
			c, _ := comms.NewComm(driver.CommDesc{ID: id, Rank: rank, Count: 3})
			for ready := false; !ready; {
				ready, _ = comms.CommReady(c)
			}
			s, _ := v.NewStream()
			e, _ := v.NewEvent()
			x, _ := v.Alloc(driver.ManagedMem, 4)
			*(*float32)(x.Host) = float32(rank + 1)
			comms.Collect(s, c, []driver.CommOp{{
				Kind: driver.AllReduce, Type: driver.Float32, Reduction: driver.Prod, Src: x.Ptr, Dst: x.Ptr, Count: 1,
			}})
			v.Record(e, s)
			for done := false; !done; {
				done, _ = v.Query(e)
			}
			if rank == 0 {
				fmt.Println(*(*float32)(x.Host))
			}
			comms.DestroyComm(c)
			v.Free(x)
			v.DestroyEvent(e)
			v.DestroyStream(s)
		})
	}
	all.Wait()
	first.Close()
	fmt.Println(d.Leaks())
	// Output:
	// 6
	// []
}

// One rank dies, and the other goes on without it.
func ExampleDriver_KillComm() {
	d := simdriver.New(simdriver.Config{Devices: 2, Deterministic: true})
	var comms [2]driver.Comms
	var cs [2]driver.Comm
	var id driver.UniqueID
	for rank := range 2 {
		v, _ := d.Open(rank)
		defer v.Close()
		comms[rank] = v.(driver.Comms)
		if rank == 0 {
			id, _ = comms[0].NewUniqueID()
		}
		cs[rank], _ = comms[rank].NewComm(driver.CommDesc{ID: id, Rank: rank, Count: 2, Name: "all"})
	}
	fmt.Println(comms[0].CommReady(cs[0]))

	d.KillComm(cs[1], 0)
	fmt.Println(comms[0].CommError(cs[0]))
	rest, err := comms[0].ShrinkComm(cs[0], []int{1}, true)
	fmt.Println(err)
	fmt.Println(comms[0].CommReady(rest))
	fmt.Println(comms[0].CommRank(rest))
	// Output:
	// true <nil>
	// sim: comm error: rank 0 of communicator "all": a rank of the communicator is gone: rank 1, on device 1: it was killed: injected fault
	// <nil>
	// true <nil>
	// 0 1 <nil>
}
