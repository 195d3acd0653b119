package gpu

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/puregpu/puregpu/runtime/internal/work"
)

// Upload writes host data to a range. Unlike [Queue.UploadCopy] it may read the data later, which must be left alone until a
// signal of it is reached, and it takes no more pinned memory for large data than for small: data goes through it in pieces,
// by a goroutine that begins when the waits are reached.
func (q *Queue) Upload(o Order, dst Range, data []byte) error {
	if q.dev == nil || len(data) <= q.dev.opt.StageSize {
		return q.UploadCopy(o, dst, data)
	}
	if _, err := dst.checkTo("upload", q); err != nil {
		return err
	}
	if dst.Size != uint64(len(data)) {
		return argument("upload", "%d bytes of data for a range of %d", len(data), dst.Size)
	}
	return q.transfer(o, "upload", dst, nil, true, func(_ *lent, piece []byte, at int64) error {
		land(piece, data[at:])
		return nil
	})
}

// Read reads into a range from a file, or whatever else can be read from anywhere, beginning at offset. It reads when the
// waits are reached, on a goroutine. What cannot be read, also because it ends too early, fails the signals.
func (q *Queue) Read(o Order, dst Range, from io.ReaderAt, offset int64) error {
	if from == nil || offset < 0 {
		return argument("read", "nothing to read from, or a negative offset")
	}
	return q.transfer(o, "read", dst, nil, true, func(_ *lent, piece []byte, at int64) error {
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

// Write writes a range to a file, or whatever else can be written to anywhere, beginning at offset. It does so when the waits
// are reached, on a goroutine. What cannot be written fails the signals, and the file may have a part of it then.
func (q *Queue) Write(o Order, to io.WriterAt, offset int64, src Range) error {
	if to == nil || offset < 0 {
		return argument("write", "nothing to write to, or a negative offset")
	}
	return q.transfer(o, "write", src, nil, false, func(_ *lent, piece []byte, at int64) error {
		if _, err := to.WriteAt(piece, offset+at); err != nil {
			return fmt.Errorf("%d bytes at %d: %w", len(piece), offset+at, err)
		}
		return nil
	})
}

// copyAcross copies between devices of two drivers, of which one is the queue's.
func (q *Queue) copyAcross(o Order, dst, src Range) error {
	up := dst.Buffer.dev.of == q.dev.of
	mine, other := src, dst
	if up {
		mine, other = dst, src
	}
	there := other.Buffer.dev.Queue(0)
	if _, err := dst.checkTo("copy", dst.Buffer.dev.Queue(0)); err != nil {
		return err
	}
	if _, err := src.check("copy", src.Buffer.dev.Queue(0)); err != nil {
		return err
	}
	if err := sameSize(dst, src); err != nil {
		return err
	}
	return q.transfer(o, "copy", mine, other.Buffer, up, func(free *lent, piece []byte, at int64) error {
		if err := there.dev.stay(); err != nil { // or its pinned memory would go
			return err
		}
		defer there.dev.leave()
		part := Range{other.Buffer, other.Offset + uint64(at), uint64(len(piece))}
		done, err := NewSemaphore(0)
		if err != nil {
			return err
		}
		return there.pieces(free, part, done, !up, func(_ *lent, p []byte, at int64) error {
			if up {
				copy(piece[at:], p)
			} else {
				copy(p, piece[at:])
			}
			return nil
		})
	})
}

// transfer moves a range through pinned memory in pieces; do fills a piece, or empties it. Besides the range's buffer it holds
// another one, or nil.
func (q *Queue) transfer(o Order, op string, r Range, also *Buffer, up bool, do func(free *lent, piece []byte, at int64) error) error {
	check := r.check
	if up {
		check = r.checkTo
	}
	if _, err := check(op, q); err != nil {
		return err
	}
	if err := o.checkAll(); err != nil {
		return fmt.Errorf("gpu: %s on %v: %w", op, q, err)
	}
	done, err := NewSemaphore(0) // of the pieces
	if err != nil {
		return err
	}
	s := q.get(work.Transfer)
	s.mode = untilReached
	s.fn = func() error {
		err := q.pieces(s.lent, r, done, up, do)
		if err != nil {
			err = fmt.Errorf("%s: %w", op, err)
		}
		return err
	}
	return q.submitWith(s, o, r.Buffer, also)
}

// piecesAhead is how many pieces are on their way at a time.
const piecesAhead = 3

// pieces moves a range, which the caller holds. Each piece that is there signals done with its number, from 1, and holds up the points of Free,
// if there are any.
func (q *Queue) pieces(free *lent, r Range, done *Semaphore, up bool, do func(free *lent, piece []byte, at int64) error) (err error) {
	size := uint64(q.dev.opt.StageSize)
	n := int((r.Size + size - 1) / size)
	ctx := context.Background() // whatever ends the device fails the semaphore
	blocks := make([]*stageBlock, min(n, piecesAhead))
	var errs []error
	for i := range blocks {
		b, err := q.dev.stage.get(int(min(size, r.Size)))
		if err != nil {
			if blocks = blocks[:i]; i == 0 {
				errs = append(errs, err)
			}
			break
		}
		defer b.free() // pieces on their way hold it
		blocks[i] = b
	}
	issued := 0
	// submit has the device do a piece.
	submit := func(i int) error {
		at := uint64(i) * size
		part := Range{r.Buffer, r.Offset + at, min(size, r.Size-at)}
		op := work.Download
		if up {
			op = work.Upload
		}
		s := q.get(op)
		s.op.Count, s.stage = part.Size, blocks[i%len(blocks)].hold()
		ours, keep := &s.src, 1
		if up {
			ours, keep = &s.dst, 0
		}
		s.keep[keep] = part.Buffer
		part.Buffer.refs.Add(1)
		if free != nil { // pieces on their way may be over after this has failed
			free.left.Add(1)
			s.lent = free
		}
		if *ours, err = part.check(op.String(), q); err != nil {
			q.dev.recycle(s)
			return err
		}
		// In the order of the pieces, also where some are parked, for their memory has yet to be allocated.
		err = q.submit(s, Order{Wait: []Point{{done, uint64(i)}}, Signal: []Point{{done, uint64(i) + 1}}, Label: "piece"})
		if err == nil {
			issued++
		}
		return err
	}
	bytes := func(i int) []byte {
		at := uint64(i) * size
		return blocks[i%len(blocks)].at(int(min(size, r.Size-at)))
	}
	for i := 0; i < n && len(errs) == 0; i++ {
		if up {
			if i >= len(blocks) {
				err = done.Wait(ctx, uint64(i-len(blocks))+1)
			}
			if err == nil {
				err = do(free, bytes(i), int64(uint64(i)*size))
			}
			if err == nil {
				err = submit(i)
			}
		} else {
			for ; err == nil && issued < min(n, i+len(blocks)); err = submit(issued) {
			}
			if err == nil {
				err = done.Wait(ctx, uint64(i)+1)
			}
			if err == nil {
				err = do(free, bytes(i), int64(uint64(i)*size))
			}
		}
		if err != nil {
			errs = append(errs, err)
		}
	}
	if issued > 0 {
		if err := done.Wait(ctx, uint64(issued)); err != nil && len(errs) == 0 {
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}
