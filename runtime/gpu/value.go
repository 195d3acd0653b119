package gpu

import (
	"fmt"

	"github.com/puregpu/puregpu/runtime/driver"
	"github.com/puregpu/puregpu/runtime/internal/errs"
	"github.com/puregpu/puregpu/runtime/internal/memory"
	"github.com/puregpu/puregpu/runtime/internal/work"
)

// valueOp returns an Op that writes a value to a range, or waits until the range has that value or
// a higher one.
func valueOp(kind opKind, r memory.Range, value uint64) (op Op) {
	op.kind, op.args[0], op.args[1].Offset = kind, Range{(*Buffer)(r.Buffer), r.Offset, r.Size}, value
	return op
}

// onValue submits the write or the wait of an Op that valueOp made. kind says which of the two it
// is. The range must have 8 bytes, at an address that is a multiple of 8.
func (q *Queue) onValue(o *Order, kind work.Kind, r memory.Range, value uint64) error {
	op := kind.String()
	at, err := r.Check(op, q.dev.mem())
	if err == nil {
		err = r.CheckValue(kind, value)
	}
	if err == nil && at.Ptr%8 != 0 {
		err = errs.Argument(op, "offset %d is not aligned to 8 bytes", r.Offset)
	}
	if err == nil {
		err = r.Usable(op, q.dev.mem())
	}
	switch {
	case err != nil:
		return err
	case !q.dev.native.Caps.Values:
		return fmt.Errorf("gpu: %s on %s: %w", op, q.dev.native.Info.Name, driver.ErrUnsupported)
	}
	s := q.get(kind)
	s.Op.SetValue(kind, value)
	s.Dst = at
	return q.submitWith(s, o, r.Buffer, nil)
}
