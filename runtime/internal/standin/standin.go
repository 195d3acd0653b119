// Package standin runs Go functions on a simulated GPU. They are stand-ins for functions of
// libraries that need a real GPU, such as cuBLAS. Packages with stand-ins use this package, so that
// they need not import the simulated GPU.
package standin

import (
	"fmt"
	"unsafe"

	"github.com/puregpu/puregpu/runtime/driver"
)

// A Device is a driver.Device of the simulated GPU.
type Device interface {
	// RunGo gives a stream a function, which runs in the stream's order. If the stream is being
	// captured, the function becomes a node of the graph; a launch of the graph fails if usable is
	// not nil and returns an error. If the function returns an error, the device is lost. Functions
	// with the same name are the same kernel: a graph may replace one by the other.
	RunGo(stream driver.Stream, name string, usable func() error, fn func(Memory) error) error
}

// Memory is the memory of a simulated GPU, for one call of a function.
type Memory interface {
	// Bytes returns n bytes of memory at p. The slice is the memory itself. The caller must not
	// write to the slice unless write is true, and must not keep the slice.
	Bytes(p driver.Ptr, n uint64, write bool) ([]byte, error)
}

// Read returns n elements at p, which the function only reads.
func Read[T any](m Memory, p driver.Ptr, n int) ([]T, error) { return elements[T](m, p, n, false) }

// Write returns n elements at p, which the function may read and write.
func Write[T any](m Memory, p driver.Ptr, n int) ([]T, error) { return elements[T](m, p, n, true) }

func elements[T any](m Memory, p driver.Ptr, n int, write bool) ([]T, error) {
	var zero T
	size, align := uint64(unsafe.Sizeof(zero)), uint64(unsafe.Alignof(zero))
	if n < 0 || size == 0 || uint64(n) > 1<<62/size {
		return nil, fmt.Errorf("%d elements of %T at %#x", n, zero, uint64(p))
	}
	if n == 0 {
		return nil, nil
	}
	if uint64(p)%align != 0 {
		return nil, fmt.Errorf("%T at %#x, which is not a multiple of %d", zero, uint64(p), align)
	}
	b, err := m.Bytes(p, uint64(n)*size, write)
	if err != nil {
		return nil, err
	}
	return unsafe.Slice((*T)(unsafe.Pointer(unsafe.SliceData(b))), n), nil
}
