package gpu

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync"

	"github.com/puregpu/puregpu/runtime/internal/engine"
	"github.com/puregpu/puregpu/runtime/internal/memory"
	"github.com/puregpu/puregpu/runtime/internal/work"
)

// copyAcross copies between devices of two drivers. One of these drivers must be the queue's.
func (q *Queue) copyAcross(o *Order, dst, src memory.Range) error {
	up := dst.Buffer.Device().Engine.Driver == q.dev.native.Driver
	mine, other := src, dst
	if up {
		mine, other = dst, src
	}
	there := deviceOf(other.Buffer.Device().Engine).Queue(0)
	if _, err := dst.CheckTo("copy", dst.Buffer.Device()); err != nil {
		return err
	}
	if _, err := src.Check("copy", src.Buffer.Device()); err != nil {
		return err
	}
	if err := memory.SameSize(dst, src); err != nil {
		return err
	}
	return q.transfer(o, "copy", mine, other.Buffer, up, func(free *lent, piece []byte, at int64) error {
		// Stay keeps Close of the other device from freeing that device's pinned memory.
		if err := there.dev.native.Stay(); err != nil {
			return err
		}
		defer there.dev.native.Leave()
		part := memory.Range{Buffer: other.Buffer, Offset: other.Offset + uint64(at), Size: uint64(len(piece))}
		x := pieces{q: there, r: part, up: !up, free: free, done: new(Semaphore)}
		return x.move(func(_ *lent, p []byte, at int64) error {
			if up {
				copy(piece[at:], p)
			} else {
				copy(p, piece[at:])
			}
			return nil
		})
	})
}

// A pieceFunc fills or empties a piece of pinned memory. at is the offset of the piece in the range
// that moves. If the function itself submits pieces, it counts them in the parameter free, unless
// free is nil.
type pieceFunc func(free *lent, piece []byte, at int64) error

// transfer submits an operation that moves a range through pinned memory in pieces. The operation
// uploads the range if up is set, and downloads it otherwise. do fills or empties each piece. The
// submission holds the range's buffer, and also the buffer other, unless it is nil.
func (q *Queue) transfer(o *Order, op string, r memory.Range, other *memory.Buffer, up bool, do pieceFunc) error {
	check := r.Check
	if up {
		check = r.CheckTo
	}
	if _, err := check(op, q.dev.mem()); err != nil {
		return err
	}
	if err := o.checkAll(); err != nil {
		return fmt.Errorf("gpu: %s on %v: %w", op, q, err)
	}
	s := q.get(work.Transfer)
	s.Mode = engine.UntilReached
	s.fn = func() error {
		if err := q.move(r, up, s.lent, do); err != nil {
			return fmt.Errorf("%s: %w", op, err)
		}
		return nil
	}
	return q.submitWith(s, o, r.Buffer, other)
}

// transferGoroutines is the highest number of goroutines that move a large range. One goroutine
// copies about 8 GB/s to pinned memory, and a link of PCIe 5 carries 55 GB/s.
const transferGoroutines = 8

// move moves a range, and blocks until the whole range has moved or there is an error. If the range
// is large, several goroutines move a share each, at the same time. After an error, pieces may
// still be in flight: see pieces.move.
func (q *Queue) move(r memory.Range, up bool, free *lent, do pieceFunc) error {
	if r.Size == 0 {
		return nil
	}
	stage := uint64(q.dev.opt.StageSize)
	share := r.Size // a multiple of stage, except for the last share
	var blocks []*memory.Block
	for range max(1, min(transferGoroutines, runtime.GOMAXPROCS(0), int(r.Size/(piecesAhead*stage)))) {
		b, err := q.dev.memory.Stage.Get(int(min(stage, r.Size)))
		if err != nil && len(blocks) == 0 {
			return err
		}
		if err != nil { // too little pinned memory: make fewer shares
			break
		}
		defer b.Free() // pieces in flight hold their block, too
		blocks = append(blocks, b)
	}
	if n := uint64(len(blocks)); n > 1 {
		share = (r.Size + n*stage - 1) / (n * stage) * stage
	}
	shares, errs := make([]pieces, (r.Size+share-1)/share), make([]error, (r.Size+share-1)/share)
	for i := range shares {
		from := uint64(i) * share
		part := memory.Range{Buffer: r.Buffer, Offset: r.Offset + from, Size: min(share, r.Size-from)}
		shares[i] = pieces{q: q, r: part, up: up, free: free, done: new(Semaphore), blocks: blocks[i : i+1 : i+1]}
	}
	run := func(i int) {
		errs[i] = errEnded // remains if a function of the program ends the goroutine
		defer func() {
			if errs[i] != nil { // make the other shares stop waiting: the stream may be stuck
				for k := range shares {
					shares[k].done.Fail(errs[i])
				}
			}
		}()
		errs[i] = guard(func() error {
			return shares[i].move(func(free *lent, piece []byte, at int64) error { return do(free, piece, int64(uint64(i)*share)+at) })
		})
	}
	var wg sync.WaitGroup
	defer wg.Wait() // needed if a function of the program calls runtime.Goexit in run(last)
	last := len(shares) - 1
	for i := range last {
		wg.Go(func() { run(i) })
	}
	run(last)
	wg.Wait()
	return cmp.Or(errs...)
}

var errEnded = errors.New("the function ended its goroutine")

// piecesAhead is the highest number of pieces of a share that are in flight at a time.
const piecesAhead = 3

// pieces are the pieces of a range that moves through pinned memory. The submission of the transfer
// holds the range's buffer.
type pieces struct {
	q      *Queue
	r      memory.Range
	up     bool            // the range is uploaded, not downloaded
	free   *lent           // counts the pieces in flight, for the points of Order.Free; or nil
	done   *Semaphore      // its value is the number of pieces that the device has moved
	blocks []*memory.Block // pinned memory: piece i uses block i % len(blocks)
	issued int             // pieces that have been submitted
}

// move moves all pieces, and blocks until it has moved them or there is an error. After an error,
// pieces may still be in flight. Each piece in flight holds its block and the buffer. If x.free is
// not nil, it counts the piece.
func (x *pieces) move(do pieceFunc) (err error) {
	size := uint64(x.q.dev.opt.StageSize)
	n := int((x.r.Size + size - 1) / size)
	for len(x.blocks) < min(n, piecesAhead) {
		b, err := x.q.dev.memory.Stage.Get(int(min(size, x.r.Size)))
		if err != nil && len(x.blocks) == 0 {
			return err
		}
		if err != nil { // too little pinned memory: use fewer blocks
			break
		}
		defer b.Free() // pieces in flight hold their block, too
		x.blocks = append(x.blocks, b)
	}
	for i := 0; i < n && err == nil; i++ {
		if x.up {
			err = x.send(i, do)
		} else {
			err = x.fetch(i, n, do)
		}
	}
	if x.issued > 0 {
		err = cmp.Or(err, x.wait(x.issued))
	}
	return err
}

// wait waits until the device has moved the first n pieces. It returns an error if a piece of this
// share has failed, or another share.
func (x *pieces) wait(n int) error { return x.done.Wait(context.Background(), uint64(n)) }

// send waits until the block of piece i is free, fills the piece, and submits it.
func (x *pieces) send(i int, do pieceFunc) error {
	if before := i + 1 - len(x.blocks); before > 0 {
		if err := x.wait(before); err != nil {
			return err
		}
	}
	at, n := x.extent(i)
	if err := do(x.free, x.block(i).At(int(n)), int64(at)); err != nil {
		return err
	}
	return x.submit(i)
}

// fetch submits pieces while there are free blocks, then waits for piece i of n, and empties piece
// i.
func (x *pieces) fetch(i, n int, do pieceFunc) error {
	for x.issued < min(n, i+len(x.blocks)) {
		if err := x.submit(x.issued); err != nil {
			return err
		}
	}
	if err := x.wait(i + 1); err != nil {
		return err
	}
	at, size := x.extent(i)
	return do(x.free, x.block(i).At(int(size)), int64(at))
}

// extent returns the offset of piece i in the range, and its size.
func (x *pieces) extent(i int) (at, size uint64) {
	size = uint64(x.q.dev.opt.StageSize)
	at = uint64(i) * size
	return at, min(size, x.r.Size-at)
}

// block returns the pinned memory of piece i.
func (x *pieces) block(i int) *memory.Block { return x.blocks[i%len(x.blocks)] }

// submit submits piece i to the device.
func (x *pieces) submit(i int) (err error) {
	q := x.q
	at, size := x.extent(i)
	part := memory.Range{Buffer: x.r.Buffer, Offset: x.r.Offset + at, Size: size}
	op := work.Download
	if x.up {
		op = work.Upload
	}
	s := q.get(op)
	s.Op.Count, s.staging.Block = size, x.block(i).Hold()
	ours := &s.Src
	if x.up {
		ours = &s.Dst
	}
	part.Buffer.HoldMore()
	s.keep(part.Buffer)
	if x.up {
		s.between(part.Buffer, nil)
	} else {
		s.between(nil, part.Buffer)
	}
	if x.free != nil { // the piece may still be in flight when the transfer has failed
		x.free.add()
		s.lent, s.Lends = x.free, true
	}
	*ours = part.Address()
	err = q.submit(s, &Order{Signal: []Point{{x.done, uint64(i) + 1}}, label: "piece"})
	if err == nil {
		x.issued++
	}
	return err
}
