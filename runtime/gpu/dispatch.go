package gpu

import (
	"fmt"
	"unsafe"

	"github.com/puregpu/puregpu/runtime/driver"
)

// A Dispatch is a launch of a kernel.
type Dispatch struct {
	Kernel    *Kernel
	Grid      [3]uint32        // blocks; zero anywhere launches nothing, and signals
	Block     [3]uint32        // threads; zero counts as one
	SharedMem uint32           // dynamic, bytes; with the kernel's own at most what a block of the device has
	Args      []unsafe.Pointer // one a parameter, to its value, which is copied by the call
	Sizes     []int            // of the values in bytes; nil where the driver tells them

	// Buffers are the arguments that are addresses of ranges; the pointers in Args for them are nil. The buffers stay until
	// the kernel is done, and may be of memory that is allocated only when the launch is issued.
	Buffers []BufferArg
}

// A BufferArg is a kernel's argument that is the address of a range of a buffer.
type BufferArg struct {
	Index int // of the argument
	Range Range
}

// check checks a launch on a device, which may then change it, and returns the sizes of its arguments.
func (x *Dispatch) check(d *Device) ([]int, error) {
	if x.Kernel == nil || x.Kernel.exe == nil || x.Kernel.exe.dev != d {
		return nil, argument("dispatch", "no kernel, or one of another device")
	}
	sizes, err := x.Kernel.argSizes(x.Args, x.Sizes, x.Buffers)
	if err != nil {
		return nil, err
	}
	info, k := &d.info, &x.Kernel.info
	for i, b := range x.Block {
		x.Block[i] = max(b, 1)
		if n := info.MaxBlock[i]; n > 0 && uint64(b) > uint64(n) {
			return nil, argument("dispatch", "a block of %v threads; the device takes %v", x.Block, info.MaxBlock)
		}
		if n := info.MaxGrid[i]; n > 0 && uint64(x.Grid[i]) > uint64(n) {
			return nil, argument("dispatch", "a grid of %v blocks; the device takes %v", x.Grid, info.MaxGrid)
		}
		if n := k.Cluster[i]; n > 1 && x.Grid[i]%uint32(n) != 0 {
			return nil, argument("dispatch", "a grid of %v blocks; kernel %s has clusters of %v", x.Grid, x.Kernel.name, k.Cluster)
		}
	}
	if n := max(info.SharedMem, info.SharedOptIn); n > 0 && uint64(k.SharedMem)+uint64(x.SharedMem) > uint64(n) {
		return nil, argument("dispatch", "%d bytes of dynamic shared memory and %d of kernel %s's own; the device has %d for a block",
			x.SharedMem, k.SharedMem, x.Kernel.name, n)
	}
	most := k.MaxThreads
	if most == 0 { // the driver does not tell
		most = info.MaxThreads
	}
	if n := uint64(x.Block[0]) * uint64(x.Block[1]) * uint64(x.Block[2]); n > uint64(most) && most > 0 {
		return nil, argument("dispatch", "%d threads in a block; kernel %s takes %d", n, x.Kernel.name, most)
	}
	return sizes, nil
}

// nothing reports whether the launch does nothing.
func (x *Dispatch) nothing() bool { return x.Grid[0] == 0 || x.Grid[1] == 0 || x.Grid[2] == 0 }

// Dispatch launches a kernel.
func (q *Queue) Dispatch(o Order, d Dispatch) error {
	sizes, err := d.check(q.dev)
	if err != nil {
		return err
	}
	s := q.get(opDispatch)
	s.setArgs(sizes, d.Args)
	ended := q.dev.failed() != nil // then the submission fails, whatever has become of what it uses
	for _, b := range d.Buffers {
		at, err := b.Range.check("dispatch", q)
		if err == nil {
			err = b.Range.usable("dispatch", q.dev)
		}
		if err == nil && !ended {
			if err = b.Range.Buffer.hold(); err != nil {
				err = fmt.Errorf("gpu: dispatch: %w", err)
			}
		}
		if err != nil {
			q.dev.recycle(s)
			return err
		}
		arg := boundArg{word: wordOf(sizes, b.Index), at: at}
		if !ended {
			arg.held = b.Range.Buffer
		}
		s.bound = append(s.bound, arg)
	}
	if !ended {
		if err := d.Kernel.exe.hold(); err != nil {
			q.dev.recycle(s)
			return fmt.Errorf("gpu: dispatch: %w", err)
		}
		s.kernel = d.Kernel
	}
	s.launch = driver.Launch{Function: d.Kernel.fn, Grid: d.Grid, Block: d.Block, SharedMem: d.SharedMem, Args: s.launch.Args}
	if d.nothing() {
		s.op = opBarrier
	}
	return q.submit(s, o)
}

// wordOf returns the place of an argument where each begins at a word.
func wordOf(sizes []int, index int) (word int) {
	for _, n := range sizes[:index] {
		word += (n + 7) / 8
	}
	return word
}
