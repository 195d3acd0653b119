package gpu

import (
	"fmt"
	"io"

	"github.com/puregpu/puregpu/runtime/internal/errs"
	"github.com/puregpu/puregpu/runtime/internal/memory"
	"github.com/puregpu/puregpu/runtime/internal/work"
)

// Upload returns an Op that writes host data to a range of the same size. Do not change the data
// until a signal of the operation is reached or, in a recording, until the Op has been added. If
// the signals fail, the data may still be in use: see [Order].Free. Use [UploadCopy] to change the
// data sooner. [Stream.Do] and [Queue.Submit] copy data of up to [Options.StageSize] bytes to
// pinned memory, and a recording copies data of any size. Larger data that is submitted goes
// through pinned memory in pieces: when the waits are reached, up to 8 goroutines begin to move the
// pieces. Each goroutine uses up to 3 blocks of pinned memory.
func Upload(dst Range, data []byte) (op Op) {
	op.kind, op.args[0] = uploadOp, dst
	op.setData(data)
	return op
}

func (q *Queue) upload(o *Order, dst Range, data []byte) error {
	if len(data) <= q.dev.opt.StageSize {
		return q.uploadCopy(o, dst, data)
	}
	if _, err := dst.checkTo("upload", q); err != nil {
		return err
	}
	if dst.Size != uint64(len(data)) {
		return errs.Argument("upload", "%d bytes of data for a range of %d", len(data), dst.Size)
	}
	return q.transfer(o, "upload", dst.in(), nil, true, func(_ *lent, piece []byte, at int64) error {
		memory.Land(piece, data[at:])
		return nil
	})
}

// UploadCopy is like [Upload], but the data may change as soon as [Stream.Do], [Queue.Submit] or
// [CommandBuffer.Add] has returned: that call copies the data to pinned memory. If no pinned memory
// is free, the call blocks while the driver makes some.
func UploadCopy(dst Range, data []byte) (op Op) {
	op.kind, op.args[0] = uploadCopyOp, dst
	op.setData(data)
	return op
}

func (q *Queue) uploadCopy(o *Order, dst Range, data []byte) error {
	d, err := dst.checkTo("upload", q)
	if err != nil {
		return err
	}
	if dst.Size != uint64(len(data)) {
		return errs.Argument("upload", "%d bytes of data for a range of %d", len(data), dst.Size)
	}
	if len(data) == 0 {
		return q.submit(q.get(work.Barrier), o)
	}
	if q.dev.native.Stay() != nil { // the device is closed, so the submission fails
		return q.submit(q.get(work.Barrier), o)
	}
	defer q.dev.native.Leave() // Close does not free pinned memory before Leave
	b, err := q.dev.memory.Stage.Get(len(data))
	if err != nil {
		return q.notStaged(o, "upload", err)
	}
	copy(b.Bytes(), data)
	s := q.get(work.Upload)
	s.Dst, s.Op.Count, s.staging.Block = d, dst.Size, b
	return q.submitWith(s, o, dst.Buffer.in(), nil)
}

// Download returns an Op that copies a range to host memory of the same size. Do not use that
// memory until a signal of the operation is reached. If the signals fail, the memory may still be
// in use: see [Order].Free. The data arrives soon after the device is done, even if no goroutine
// waits for it. A download larger than [Options.StageSize] goes through pinned memory in pieces, as
// an [Upload] does. A recording cannot download: download after its execution, or record a copy to
// a [HostMem] buffer.
func Download(dst []byte, src Range) (op Op) {
	op.kind, op.args[0] = downloadOp, src
	op.setData(dst)
	return op
}

func (q *Queue) download(o *Order, dst []byte, src Range) error {
	f, err := src.check("download", q)
	if err != nil {
		return err
	}
	if src.Size != uint64(len(dst)) {
		return errs.Argument("download", "%d bytes of memory for a range of %d", len(dst), src.Size)
	}
	if len(dst) == 0 {
		return q.submit(q.get(work.Barrier), o)
	}
	if len(dst) > q.dev.opt.StageSize {
		return q.transfer(o, "download", src.in(), nil, false, func(_ *lent, piece []byte, at int64) error {
			memory.Land(dst[at:at+int64(len(piece))], piece)
			return nil
		})
	}
	b, err := q.dev.memory.Stage.Get(len(dst))
	if err != nil {
		return q.notStaged(o, "download", err)
	}
	s := q.get(work.Download)
	s.Src, s.Op.Count, s.Delivers = f, src.Size, true
	s.staging.Host, s.staging.Block = dst, b
	return q.submitWith(s, o, nil, src.Buffer.in())
}

// notStaged handles err, the reason why an operation got no pinned memory. It returns err with the
// name of the operation. If the device has failed, notStaged instead submits a barrier with the
// operation's Order. The barrier fails, and so do the Order's signals.
func (q *Queue) notStaged(o *Order, op string, err error) error {
	if q.dev.failed() != nil {
		return q.submit(q.get(work.Barrier), o)
	}
	return fmt.Errorf("gpu: %s: %w", op, err)
}

// ReadFrom returns an Op that reads into a range from a file, or from another io.ReaderAt,
// beginning at offset. When the waits are reached, goroutines read, several at the same time if the
// range is large. A read error fails the signals. If the file ends before the range is full, the
// signals fail with [io.ErrUnexpectedEOF]. A negative offset is [ErrArgument]. A recording cannot
// read files.
func ReadFrom(dst Range, from io.ReaderAt, offset int64) (op Op) {
	if from == nil || offset < 0 {
		return BadOp(errs.Argument("read", "nothing to read from, or a negative offset"))
	}
	op.kind, op.args[0], op.obj, op.args[1].Offset = readFromOp, dst, from, uint64(offset)
	return op
}

func (q *Queue) readFrom(o *Order, op *Op) error {
	from, offset := op.obj.(io.ReaderAt), int64(op.args[1].Offset)
	return q.transfer(o, "read", op.args[0].in(), nil, true, func(_ *lent, piece []byte, at int64) error {
		n, err := from.ReadAt(piece, offset+at)
		switch {
		case n == len(piece):
			return nil
		case err == nil || err == io.EOF:
			err = io.ErrUnexpectedEOF
		}
		return fmt.Errorf("%d bytes at %d: %w", len(piece), offset+at, err)
	})
}

// WriteTo returns an Op that writes a range to a file, or to another io.WriterAt, beginning at
// offset. When the waits are reached, goroutines write, several at the same time if the range is
// large. A write error fails the signals, and the file may then have a part of the data. A negative
// offset is [ErrArgument]. A recording cannot write files.
func WriteTo(to io.WriterAt, offset int64, src Range) (op Op) {
	if to == nil || offset < 0 {
		return BadOp(errs.Argument("write", "nothing to write to, or a negative offset"))
	}
	op.kind, op.args[0], op.obj, op.args[1].Offset = writeToOp, src, to, uint64(offset)
	return op
}

func (q *Queue) writeTo(o *Order, op *Op) error {
	to, offset := op.obj.(io.WriterAt), int64(op.args[1].Offset)
	return q.transfer(o, "write", op.args[0].in(), nil, false, func(_ *lent, piece []byte, at int64) error {
		if _, err := to.WriteAt(piece, offset+at); err != nil {
			return fmt.Errorf("%d bytes at %d: %w", len(piece), offset+at, err)
		}
		return nil
	})
}
