package simdriver

import (
	"fmt"
	"iter"
	"reflect"
	"sync/atomic"
	"unsafe"

	"github.com/puregpu/puregpu/runtime/driver"
)

// A Grid is one launch of a kernel. It is the first argument of the kernel's Go function, and valid
// until the function returns.
type Grid struct {
	Name    string        // name of the kernel
	Device  int           // index of the device
	Stream  driver.Stream // stream of the launch
	Node    driver.Node   // the graph's node, if a graph has launched the kernel
	Blocks  [3]uint32     // blocks in the grid
	Threads [3]uint32     // threads in a block
	Shared  uint32        // bytes of dynamic shared memory per block
	Cluster [3]uint32     // blocks in a cluster; ones without clusters
	Attrs   driver.LaunchAttrs

	dev    *device
	module *module
	task   *task // the node's task, which records uses of memory; nil outside a graph
	bad    atomic.Pointer[AccessError]
}

// A Thread is one of the threads of a grid.
type Thread struct {
	Block  [3]uint32 // index of the thread's block in the grid
	Thread [3]uint32 // index of the thread in the block
	Global [3]uint64 // index of the thread in the grid
}

// Size returns the number of threads of the grid.
func (g *Grid) Size() uint64 {
	n := uint64(1)
	for i := range 3 {
		n *= uint64(g.Blocks[i]) * uint64(g.Threads[i])
	}
	return n
}

// All yields all threads block by block. x varies fastest.
func (g *Grid) All() iter.Seq[Thread] {
	return func(yield func(Thread) bool) {
		for b := range indices(g.Blocks) {
			for i := range indices(g.Threads) {
				t := Thread{Block: b, Thread: i}
				for a := range 3 {
					t.Global[a] = uint64(b[a])*uint64(g.Threads[a]) + uint64(i[a])
				}
				if !yield(t) {
					return
				}
			}
		}
	}
}

// indices yields all indices below n. x varies fastest.
func indices(n [3]uint32) iter.Seq[[3]uint32] {
	return func(yield func([3]uint32) bool) {
		for z := range n[2] {
			for y := range n[1] {
				for x := range n[0] {
					if !yield([3]uint32{x, y, z}) {
						return
					}
				}
			}
		}
	}
}

// Global finds a variable of the kernel's module by name. It returns the variable's address and
// size in bytes.
func (g *Grid) Global(name string) (driver.Ptr, uint64, bool) {
	if g.module == nil {
		return 0, 0, false
	}
	a, ok := g.module.vars[name]
	if !ok {
		return 0, 0, false
	}
	return a.base, a.size, true
}

// View returns n elements of type T of the memory at p. The memory may be on the host, or on
// another device to whose memory this device has access. The slice is the memory itself, and must
// not be used after the kernel's function has returned. View may be called concurrently.
//
// If there is no such memory, or p is not aligned for T, View returns an [AccessError]. The device
// is then lost with the first such error when the kernel's function returns, even if that function
// returns nil. T must be a type that [NewKernel] allows for parameters.
func View[T any](g *Grid, p driver.Ptr, n int) ([]T, error) { return view[T](g, p, n, false) }

// ReadView is [View] for memory that the kernel only reads. The kernel must not write to the slice.
// With ReadView the simulated GPU can find nodes that write the memory and are not ordered with the
// kernel: see [OrderError].
func ReadView[T any](g *Grid, p driver.Ptr, n int) ([]T, error) { return view[T](g, p, n, true) }

func view[T any](g *Grid, p driver.Ptr, n int, reads bool) ([]T, error) {
	t := reflect.TypeFor[T]()
	if !plain(t) || t.Size() == 0 {
		return nil, fmt.Errorf("simdriver: kernel %s: View of %v: %w: a GPU cannot have that type", g.Name, t, ErrInvalidValue)
	}
	v := g.dev
	if v == nil {
		return nil, fmt.Errorf("simdriver: View: %w: this Grid belongs to no launch, or its launch is over", ErrInvalidValue)
	}
	if n == 0 {
		return nil, nil
	}
	size, ok := product(uint64(n), uint64(t.Size()))
	if !ok || n < 0 {
		size = ^uint64(0)
	}
	var e *AccessError
	var b []byte
	if align := uint64(t.Align()); uint64(p)%align != 0 {
		e = v.d.miss(p, size)
		e.Align = align
	} else {
		b, e = v.launched(p, size)
	}
	if e == nil && g.task != nil {
		if reads {
			g.task.uses.read(g.task, p, size)
		} else {
			g.task.uses.view(g.task, p, b)
		}
	}
	if e != nil {
		e.Op, e.Kernel, e.Node, e.Device, e.Stream = OpLaunch, g.Name, g.Node, g.Device, g.Stream
		g.bad.CompareAndSwap(nil, e)
		return nil, e
	}
	return unsafe.Slice((*T)(unsafe.Pointer(unsafe.SliceData(b))), n), nil
}
