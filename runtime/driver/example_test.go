package driver_test

import (
	"errors"
	"fmt"
	"runtime"
	"unsafe"

	"github.com/puregpu/puregpu/runtime/driver"
	"github.com/puregpu/puregpu/runtime/driver/simdriver"
)

// fill fills memory on a device of any driver, and returns its contents.
func fill(d driver.Device, pattern uint32) (out [4]uint32, err error) {
	runtime.LockOSThread() // creating methods need a thread bound to the device
	defer runtime.UnlockOSThread()
	if err := d.Bind(); err != nil {
		return out, err
	}
	defer func() { err = errors.Join(err, d.Unbind()) }()
	s, err := d.NewStream()
	if err != nil {
		return out, err
	}
	defer func() { err = errors.Join(err, d.DestroyStream(s)) }()
	e, err := d.NewEvent()
	if err != nil {
		return out, err
	}
	defer func() { err = errors.Join(err, d.DestroyEvent(e)) }()
	m, err := d.Alloc(driver.HostMem, uint64(unsafe.Sizeof(out)))
	if err != nil {
		return out, err
	}
	defer func() { err = errors.Join(err, d.Free(m)) }()

	if err := d.Fill(s, m.Ptr, pattern, 4, uint64(len(out))); err != nil {
		return out, err
	}
	if err := d.Record(e, s); err != nil {
		return out, err
	}
	for done := false; !done; runtime.Gosched() {
		if done, err = d.Query(e); err != nil {
			return out, err
		}
	}
	return *(*[4]uint32)(m.Host), nil
}

// A program uses a GPU through the interfaces of this package, with any driver. This program uses
// the simulated GPU.
func Example() {
	var drv driver.Driver = simdriver.New(simdriver.Config{})
	d, err := drv.Open(0)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(fill(d, 42))
	fmt.Println(d.Close())
	// Output:
	// [42 42 42 42] <nil>
	// <nil>
}

// An error says which call of which driver failed, and whether the device is lost or out of memory.
func ExampleError() {
	d, err := simdriver.New(simdriver.Config{Memory: 1 << 20}).Open(0)
	if err != nil {
		fmt.Println(err)
		return
	}
	_, err = d.Alloc(driver.DeviceMem, 1<<30)
	if e, ok := errors.AsType[*driver.Error](err); ok {
		fmt.Println(e.Driver, e.Op, e.OOM, e.Lost)
	}
	fmt.Println(errors.Is(err, driver.ErrOutOfMemory))
	fmt.Println(d.Close())
	// Output:
	// sim alloc true false
	// true
	// <nil>
}
