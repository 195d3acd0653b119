package libcall

import (
	"fmt"
	"unsafe"

	"github.com/puregpu/puregpu/runtime/driver"
	"github.com/puregpu/puregpu/runtime/gpu"
)

// An Operand is memory that an operation uses: Batch matrices of Rows rows of Width bytes. The
// distances Stride and BatchStride are in bytes.
type Operand struct {
	Name                       string // for errors
	Range                      gpu.Range
	Written                    bool
	Align                      uint64 // the address must be a multiple of it
	Batch, Rows                uint64
	Width, Stride, BatchStride uint64
}

// Whole returns the operand that is a slice.
func Whole[T any](name string, s gpu.Slice[T], written bool) Operand {
	r := s.Range()
	return Operand{Name: name, Range: r, Written: written, Align: uint64(unsafe.Sizeof(*new(T))), Batch: 1, Rows: 1, Width: r.Size}
}

// Check returns an error if the operation writes an operand that certainly overlaps another one. It
// compares operands of the same buffer. If at has the addresses of the operands, Check compares
// operands of different buffers instead, and checks the addresses: a recording's bindings may be
// bound to the same memory, and to any address.
func Check(operands []Operand, at []driver.Ptr) error {
	for i := range operands {
		if at != nil {
			if err := Aligned(operands[i].Name, "address %#x", uint64(at[i]), operands[i].Align); err != nil {
				return err
			}
		}
		for j := range i {
			a, b := &operands[j], &operands[i]
			if !a.Written && !b.Written || (a.Range.Buffer == b.Range.Buffer) != (at == nil) {
				continue
			}
			p, q := a.Range.Offset, b.Range.Offset
			if at != nil {
				p, q = uint64(at[j]), uint64(at[i])
			}
			if a.overlaps(p, b, q) {
				return fmt.Errorf("%s and %s overlap: %w", a.Name, b.Name, gpu.ErrArgument)
			}
		}
	}
	return nil
}

// Aligned returns an error if memory does not begin at a multiple of align. where is the format of
// the place.
func Aligned(name, where string, at, align uint64) error {
	if at%align == 0 {
		return nil
	}
	return fmt.Errorf("%s is at %s, which is not a multiple of %d: %w", name, fmt.Sprintf(where, at), align, gpu.ErrArgument)
}

// Overlap reports whether n bytes at p and m bytes at q overlap.
func Overlap(p, n, q, m uint64) bool { return n > 0 && m > 0 && p < q+m && q < p+n }

// overlaps reports whether o at p and x at q certainly have a byte in common. It takes the same
// time for all sizes. It may miss overlaps of operands whose rows are at different distances, and
// of operands of several matrices whose rows, taken together, are not at equal distances.
func (o *Operand) overlaps(p uint64, x *Operand, q uint64) bool {
	if q < p {
		o, p, x, q = x, q, o, p
	}
	// x does not begin before o. So if any rows overlap, the first row of x overlaps the last row of
	// o that does not begin behind it, or the next row.
	n, width, stride := o.comb()
	_, first, _ := x.comb()
	last := min((q-p)/max(stride, 1), n-1)
	next := min(last+1, n-1)
	return Overlap(last*stride, width, q-p, first) || Overlap(next*stride, width, q-p, first)
}

// comb describes the operand as n rows of width bytes at equal distances. If it cannot, it
// describes the first matrix.
func (o *Operand) comb() (n, width, stride uint64) {
	n, width, stride = o.Rows, o.Width, o.Stride
	switch {
	case n == 1 || stride == width: // a matrix has no gaps, so it is a row
		n, width, stride = o.Batch, n*width, o.BatchStride
	case o.BatchStride == n*stride: // the matrices follow one another
		n *= o.Batch
	case o.BatchStride == width: // row i of all matrices is one row
		width *= o.Batch
	}
	if stride == width { // there are no gaps
		n, width = 1, n*width
	}
	return n, width, stride
}
