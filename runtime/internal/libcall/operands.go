package libcall

import (
	"fmt"

	"github.com/puregpu/puregpu/runtime/driver"
	"github.com/puregpu/puregpu/runtime/gpu"
)

// An Operand is memory that an operation uses: Batch matrices of Rows rows of Width bytes. The
// distances Stride and BatchStride are in bytes. Rows of an operand that is Written are in order
// and do not overlap.
type Operand struct {
	Name                       string // for errors
	Range                      gpu.Range
	Written                    bool
	Batch, Rows                uint64
	Width, Stride, BatchStride uint64
}

// Whole returns the operand that is a range without gaps.
func Whole(name string, r gpu.Range, written bool) Operand {
	return Operand{Name: name, Range: r, Written: written, Batch: 1, Rows: 1, Width: r.Size}
}

// Apart returns an error if the operation writes an operand that overlaps another one. It compares
// operands of the same buffer. If at has the addresses of the operands, Apart compares operands of
// different buffers instead: a recording's bindings may be bound to the same memory.
func Apart(operands []Operand, at []driver.Ptr) error {
	for i := range operands {
		for j := range i {
			a, b := i, j
			if !operands[a].Written {
				a, b = j, i
			}
			w, x := &operands[a], &operands[b]
			if !w.Written || (w.Range.Buffer == x.Range.Buffer) != (at == nil) {
				continue
			}
			p, q := w.Range.Offset, x.Range.Offset
			if at != nil {
				p, q = uint64(at[a]), uint64(at[b])
			}
			if w.overlaps(p, x, q) {
				return fmt.Errorf("%s and %s overlap: %w", w.Name, x.Name, gpu.ErrArgument)
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
func Overlap(p, n, q, m uint64) bool { return p < q+m && q < p+n }

// size returns the number of bytes from the first byte to the last.
func (o *Operand) size() uint64 {
	return (o.Batch-1)*o.BatchStride + (o.Rows-1)*o.Stride + o.Width
}

// overlaps reports whether o at p and x at q have a byte in common. o is Written.
func (o *Operand) overlaps(p uint64, x *Operand, q uint64) bool {
	if !Overlap(p, o.size(), q, x.size()) {
		return false
	}
	for i := range x.Batch {
		for r := range x.Rows {
			row := q + i*x.BatchStride + r*x.Stride
			if Overlap(p, o.size(), row, x.Width) && o.has(max(row, p)-p, row+x.Width-p) {
				return true
			}
		}
	}
	return false
}

// has reports whether the bytes from from to to, counted from the operand's first byte, include a
// byte of a row.
func (o *Operand) has(from, to uint64) bool {
	i, r := uint64(0), uint64(0)
	if o.Batch > 1 {
		i = min(from/o.BatchStride, o.Batch-1)
	}
	rest := from - i*o.BatchStride
	if o.Rows > 1 {
		r = min(rest/o.Stride, o.Rows-1)
	}
	if rest-r*o.Stride < o.Width {
		return true
	}
	// from is behind row r, so only the next row can be between from and to.
	switch {
	case r+1 < o.Rows:
		return to-from > (r+1)*o.Stride-rest
	case i+1 < o.Batch:
		return to-from > o.BatchStride-rest
	}
	return false
}
