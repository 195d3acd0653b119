package gpu

import (
	"bytes"
	"fmt"
	"math"
	"reflect"
	"unsafe"

	"github.com/puregpu/puregpu/runtime/driver"
)

// A Slice is elements of a type in a device's memory: a range of a buffer that knows what it has. It is a small value, to be copied and
// compared, and holds nothing: the memory is its buffer's, which [Slice.Close] closes, or [Slice.Dealloca] deallocates.
//
// T means the same to the host and to kernels: it is a number of a fixed size, or an array or struct of numbers. The zero Slice has no
// buffer: to use it is [ErrArgument].
type Slice[T any] struct {
	_ [0]*T // keeps one from being converted to another
	r Range
}

// outside is where elements are that are not in the slice that they were taken from: in no buffer.
const outside = math.MaxUint64

// AllocSlice allocates memory of a kind, as [Device.Alloc] does, for n elements. What they are at first is undefined.
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

// AllocaSlice allocates memory for n elements from a pool, or from the device's current pool if that is nil, in the order of a stream's
// work, as [Stream.Alloca] does.
func AllocaSlice[T any](s *Stream, p *Pool, n int) (Slice[T], error) {
	size, err := sizeOf[T]("alloca", n)
	if err != nil {
		return Slice[T]{}, s.refuse(err)
	}
	b, err := s.Alloca(p, size)
	if err != nil {
		return Slice[T]{}, err
	}
	return Slice[T]{r: Range{b, 0, size}}, nil
}

// SliceOf returns a range of a buffer as elements. The range is inside the buffer, has a whole number of them, and begins at an address
// where T may be. The buffer may be of a pool, or of a [CommandBuffer.Binding] or [CommandBuffer.Alloca].
func SliceOf[T any](r Range) (Slice[T], error) {
	size, err := sizeOf[T]("slice", 1)
	if err != nil {
		return Slice[T]{}, err
	}
	if !r.Buffer.exists() {
		return Slice[T]{}, argument("slice", "no buffer")
	}
	var zero T
	t, align := reflect.TypeFor[T](), uint64(unsafe.Alignof(zero))
	at, err := r.checkOn("slice", r.Buffer.dev)
	switch {
	case err != nil:
		return Slice[T]{}, err
	case r.Size > math.MaxInt64: // all of a binding, say
		return Slice[T]{}, argument("slice", "%d bytes: name as many as are used", r.Size)
	case r.Size%size != 0:
		return Slice[T]{}, argument("slice", "%d bytes are no whole number of elements: a %v has %d", r.Size, t, size)
	case uint64(at.Ptr)%align != 0:
		return Slice[T]{}, argument("slice", "the address at offset %d is no multiple of %d, as that of a %v is", r.Offset, align, t)
	}
	return Slice[T]{r: r}, nil
}

// sizeOf returns how many bytes n elements have.
func sizeOf[T any](op string, n int) (uint64, error) {
	t := reflect.TypeFor[T]()
	size := uint64(t.Size())
	where, of, why := t.String(), t, "it has no bytes"
	if size > 0 {
		where, of, why = notOnDevice(t, where)
	}
	switch {
	case why != "" && of == t:
		return 0, argument(op, "elements of type %v: %s", t, why)
	case why != "":
		return 0, argument(op, "elements of type %v: %s (%v): %s", t, where, of, why)
	case n < 0:
		return 0, argument(op, "%d elements", n)
	case uint64(n) > math.MaxInt64/size:
		return 0, fmt.Errorf("gpu: %s: %d elements of %d bytes: %w", op, n, size, driver.ErrOutOfMemory)
	}
	return uint64(n) * size, nil
}

// elemSize returns the size of an element in bytes.
func (Slice[T]) elemSize() uint64 {
	var zero T
	return uint64(unsafe.Sizeof(zero))
}

// Len returns the number of elements.
func (s Slice[T]) Len() int {
	if s.r.Buffer == nil || s.r.Size == outside {
		return 0
	}
	return int(s.r.Size / s.elemSize())
}

// Range returns where the elements are, for operations that take that.
func (s Slice[T]) Range() Range { return s.r }

// Slice returns the elements from number i up to number j, without that one. If s does not have them, what is returned has no elements,
// and any use of it is [ErrRange].
func (s Slice[T]) Slice(i, j int) Slice[T] {
	if i < 0 || j < i || j > s.Len() || s.r.Size == outside {
		return Slice[T]{r: Range{s.r.Buffer, outside, outside}}
	}
	size := s.elemSize()
	return Slice[T]{r: Range{s.r.Buffer, s.r.Offset + uint64(i)*size, uint64(j-i) * size}}
}

// Host returns the elements as the host sees them, or nil if it does not. They are there for as long as what [Buffer.Bytes] returns.
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
	if uintptr(first)%unsafe.Alignof(zero) != 0 { // in memory of the program's that devices see elsewhere
		return nil
	}
	return unsafe.Slice((*T)(first), n)
}

// Close closes the buffer, of which the slice may be a part: see [Buffer.Close].
func (s Slice[T]) Close() error { return s.r.Buffer.Close() }

// Dealloca deallocates the buffer, of which the slice may be a part, in the order of a stream's work: see [Stream.Dealloca].
func (s Slice[T]) Dealloca(st *Stream) error { return st.Dealloca(s.r.Buffer) }

// UploadCopy writes elements of the host's, which are copied by the call and as many as the slice has. See [Stream.UploadCopy].
func (s Slice[T]) UploadCopy(st *Stream, src []T) error { return st.UploadCopy(s.r, BytesOf(src)) }

// Upload writes elements of the host's, which are left alone until that is done and as many as the slice has. See [Stream.Upload].
func (s Slice[T]) Upload(st *Stream, src []T) error { return st.Upload(s.r, BytesOf(src)) }

// Download reads the elements into memory of the host's, which is left alone until that is done and for as many as the slice has.
// See [Stream.Download].
func (s Slice[T]) Download(st *Stream, dst []T) error { return st.Download(BytesOf(dst), s.r) }

// CopyFrom copies as many elements as the slice has. See [Stream.Copy].
func (s Slice[T]) CopyFrom(st *Stream, src Slice[T]) error { return st.Copy(s.r, src.r) }

// Fill makes each element v. Devices repeat 1, 2, 4 or 8 bytes: of larger elements, it takes those that are a repetition of so many
// bytes, as zero is, and others are [ErrArgument]. See [Stream.Fill].
func (s Slice[T]) Fill(st *Stream, v T) error {
	all := unsafe.Slice((*byte)(unsafe.Pointer(&v)), unsafe.Sizeof(v))
	n := len(all)
	if n > 8 || n&(n-1) != 0 {
		for n = int(unsafe.Alignof(v)); n > 0 && !repeats(all, n); n /= 2 {
		}
	}
	if n == 0 {
		return st.refuse(argument("fill", "a %T of %d bytes; it can have 1, 2, 4 or 8, or repeat such a pattern", v, len(all)))
	}
	return st.Fill(s.r, all[:n])
}

// repeats reports whether bytes are the first n of them again and again.
func repeats(all []byte, n int) bool {
	return len(all)%n == 0 && bytes.Equal(all[n:], all[:len(all)-n])
}

// BytesOf returns the memory of elements as bytes, in the order of the host, for operations that take bytes. It is nil if T has
// pointers, which mean nothing to a device.
func BytesOf[T any](elements []T) []byte {
	var zero T
	if hasPointers(reflect.TypeFor[T]()) {
		return nil
	}
	return unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(elements))), uintptr(len(elements))*unsafe.Sizeof(zero))
}
