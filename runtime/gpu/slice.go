package gpu

import (
	"bytes"
	"fmt"
	"math"
	"reflect"
	"unsafe"

	"github.com/puregpu/puregpu/runtime/driver"
	"github.com/puregpu/puregpu/runtime/internal/errs"
	"github.com/puregpu/puregpu/runtime/internal/memory"
)

// A Slice is a typed range of memory: elements of type T in a buffer. A Slice is a small value that
// can be copied and compared. It does not keep the memory allocated: the memory belongs to the
// buffer, which [Slice.Close] closes or [Slice.Free] frees.
//
// The host and kernels must lay out T in the same way: T is a bool, a number of a fixed size, or an
// array or struct of these. The zero Slice has no buffer: operations on it return [ErrArgument].
type Slice[T any] struct {
	_ [0]*T // prevents conversion to another Slice type
	r Range
}

// outside is the offset and the size of the result of [Slice.Slice] for indexes out of range. No
// buffer is so large, so operations on the result fail with ErrRange.
const outside = memory.Outside

// AllocSlice allocates memory of a kind for n elements, as [Device.Alloc] does. The initial values
// of the elements are undefined. The error is [ErrArgument] if n is negative, or if T has no bytes
// or the host and kernels may lay it out differently.
func AllocSlice[T any](d *Device, kind MemKind, n int) (Slice[T], error) {
	size, err := sizeOf[T]("allocate", n)
	if err != nil {
		return Slice[T]{}, err
	}
	b, err := d.Alloc(kind, size)
	if err != nil {
		return Slice[T]{}, err
	}
	return Slice[T]{r: Range{b, 0, size}}, nil
}

// AllocSliceIn allocates memory for n elements from a pool in the order of a stream's work, as
// [Stream.Alloc] does. If p is nil, AllocSliceIn uses the device's current pool.
func AllocSliceIn[T any](s *Stream, p *Pool, n int) (Slice[T], error) {
	size, err := sizeOf[T]("alloc", n)
	if err != nil {
		return Slice[T]{}, s.Do(BadOp(err))
	}
	b, err := s.Alloc(p, size)
	if err != nil {
		return Slice[T]{}, err
	}
	return Slice[T]{r: Range{b, 0, size}}, nil
}

// SliceOf returns a range of a buffer as a Slice. The range must lie inside the buffer, hold a
// whole number of elements, and begin at an address aligned for T. The buffer may be from a pool,
// or from [CommandBuffer.Binding] or [CommandBuffer.Scratch].
func SliceOf[T any](r Range) (Slice[T], error) {
	size, err := sizeOf[T]("slice", 1)
	if err != nil {
		return Slice[T]{}, err
	}
	if !r.Buffer.in().Exists() {
		return Slice[T]{}, errs.Argument("slice", "no buffer")
	}
	var zero T
	t, align := reflect.TypeFor[T](), uint64(unsafe.Alignof(zero))
	at, err := r.in().CheckRecorded("slice", r.Buffer.in().Device())
	switch {
	case err != nil:
		return Slice[T]{}, err
	case r.Size > math.MaxInt64: // for example all of a binding
		return Slice[T]{}, errs.Argument("slice", "%d bytes: name as many as are used", r.Size)
	case r.Size%size != 0:
		return Slice[T]{}, errs.Argument("slice", "%d bytes are no whole number of elements: a %v has %d", r.Size, t, size)
	case uint64(at.Ptr)%align != 0:
		return Slice[T]{}, errs.Argument("slice", "the address at offset %d is no multiple of %d, as that of a %v is", r.Offset, align, t)
	}
	return Slice[T]{r: r}, nil
}

// sizeOf returns the size of n elements in bytes. It returns an error if no kernel can have
// elements of type T, if n is negative, or if the size is too large.
func sizeOf[T any](op string, n int) (uint64, error) {
	t := reflect.TypeFor[T]()
	size := uint64(t.Size())
	where, of, why := t.String(), t, "it has no bytes"
	if size > 0 {
		where, of, why = notOnDevice(t, where)
	}
	switch {
	case why != "" && of == t:
		return 0, errs.Argument(op, "elements of type %v: %s", t, why)
	case why != "":
		return 0, errs.Argument(op, "elements of type %v: %s (%v): %s", t, where, of, why)
	case n < 0:
		return 0, errs.Argument(op, "%d elements", n)
	case uint64(n) > math.MaxInt64/size:
		return 0, fmt.Errorf("gpu: %s: %d elements of %d bytes: %w", op, n, size, driver.ErrOutOfMemory)
	}
	return uint64(n) * size, nil
}

func (Slice[T]) elemSize() uint64 {
	var zero T
	return uint64(unsafe.Sizeof(zero))
}

// Len returns the number of elements. It is 0 for a result of [Slice.Slice] for indexes out of
// range.
func (s Slice[T]) Len() int {
	if s.r.Buffer == nil || s.r.Size == outside {
		return 0
	}
	return int(s.r.Size / s.elemSize())
}

// Range returns the elements as a Range, for operations that take one.
func (s Slice[T]) Range() Range { return s.r }

// Slice returns the elements from index i up to, but not including, index j. If i or j is out of
// range, or j is less than i, the result has no elements, and operations on it return [ErrRange].
func (s Slice[T]) Slice(i, j int) Slice[T] {
	if i < 0 || j < i || j > s.Len() || s.r.Size == outside {
		return Slice[T]{r: Range{s.r.Buffer, outside, outside}}
	}
	size := s.elemSize()
	return Slice[T]{r: Range{s.r.Buffer, s.r.Offset + uint64(i)*size, uint64(j-i) * size}}
}

// Host returns the elements as the host sees them. It returns nil if the host cannot access the
// elements, or if their address on the host is not aligned for T. The result is valid as long as
// the result of [Buffer.Bytes].
func (s Slice[T]) Host() []T {
	if s.r.Buffer == nil {
		return nil
	}
	all, n := s.r.Buffer.Bytes(), s.Len()
	if s.r.Offset > uint64(len(all)) || s.r.Size > uint64(len(all))-s.r.Offset || len(all) == 0 {
		return nil
	}
	first := unsafe.Pointer(unsafe.SliceData(all[s.r.Offset:]))
	var zero T
	// The host address of imported memory may be aligned differently from its device address.
	if uintptr(first)%unsafe.Alignof(zero) != 0 {
		return nil
	}
	return unsafe.Slice((*T)(first), n)
}

// Close closes the buffer, even if the slice is only a part of it: see [Buffer.Close].
func (s Slice[T]) Close() error { return s.r.Buffer.Close() }

// Free returns the Op [Free] of the buffer, even if the slice is only a part of it.
func (s Slice[T]) Free() Op { return Free(s.r.Buffer) }

// Upload returns the Op that writes elements from the host. src must have as many elements as the
// slice. Do not change src until the operation is done: see [Upload].
func (s Slice[T]) Upload(src []T) Op { return Upload(s.r, BytesOf(src)) }

// UploadCopy is like [Slice.Upload], but src may change as soon as Do, Submit or Add has returned:
// see [UploadCopy].
func (s Slice[T]) UploadCopy(src []T) Op { return UploadCopy(s.r, BytesOf(src)) }

// Download returns the Op that reads the elements into host memory. dst must have as many elements
// as the slice. Do not use dst until the operation is done: see [Download].
func (s Slice[T]) Download(dst []T) Op { return Download(BytesOf(dst), s.r) }

// CopyFrom returns the Op that copies elements from src, which must have as many elements as the
// slice: see [Copy].
func (s Slice[T]) CopyFrom(src Slice[T]) Op { return Copy(s.r, src.r) }

// Fill returns the Op that sets each element to v. Devices repeat patterns of 1, 2, 4 or 8 bytes.
// If T has another size, v must be a repetition of such a pattern, and the pattern must be no
// larger than the alignment of T: otherwise the error is [ErrArgument]. The zero value of every T
// is such a repetition. See [Fill].
func (s Slice[T]) Fill(v T) Op {
	all := unsafe.Slice((*byte)(unsafe.Pointer(&v)), unsafe.Sizeof(v))
	n := len(all)
	if n > 8 || n&(n-1) != 0 {
		for n = int(unsafe.Alignof(v)); n > 0 && !repeats(all, n); n /= 2 {
		}
	}
	if n == 0 {
		return BadOp(errs.Argument("fill", "a %T of %d bytes; it can have 1, 2, 4 or 8, or repeat such a pattern", v, len(all)))
	}
	return Fill(s.r, all[:n])
}

// repeats reports whether the bytes are a repetition of the first n bytes.
func repeats(all []byte, n int) bool {
	return len(all)%n == 0 && bytes.Equal(all[n:], all[:len(all)-n])
}

// BytesOf returns the memory of elements as bytes, for operations that take bytes. It does not copy
// the elements. The result is nil if T has pointers, which mean nothing to a device.
func BytesOf[T any](elements []T) []byte {
	var zero T
	if hasPointers(reflect.TypeFor[T]()) {
		return nil
	}
	return unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(elements))), uintptr(len(elements))*unsafe.Sizeof(zero))
}
