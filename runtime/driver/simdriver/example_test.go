package simdriver_test

import (
	"errors"
	"fmt"
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

// A program's PTX runs if Go functions stand for its kernels.
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

// A test decides when work is executed.
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

// The second allocation finds no memory.
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

// A test fails every call of a piece of a program, one at a time.
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

// A stream uses memory from its allocation on until its free. What other streams do has to be ordered between.
func Example_pool() {
	d := simdriver.New(simdriver.Config{})
	v, _ := d.Open(0)
	defer v.Close()
	pools := v.(driver.Pools) // Caps.Pools is set
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

// Nodes run in an order that the seed chooses among those that the graph allows.
func Example_graph() {
	d := simdriver.New(simdriver.Config{Deterministic: true, Seed: 8, OnExecute: func(e simdriver.Executed) { fmt.Println(e.Op, e.Node) }})
	v, _ := d.Open(0)
	defer v.Close()
	graphs := v.(driver.Graphs) // Caps.Graphs is set
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
