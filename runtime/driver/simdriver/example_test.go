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
