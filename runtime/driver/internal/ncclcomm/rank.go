package ncclcomm

import (
	"sync"

	"github.com/puregpu/puregpu/nccl"
	"github.com/puregpu/puregpu/runtime/driver"
)

// A stage is a step in the making of a rank.
type stage int

const (
	splitting    stage = iota // the rank is being split or shrunk from another rank
	joining                   // base is being made
	makingOps                 // ops is being split off base
	makingSource              // source is being split off base
	made
	failed // the rank could not be made, or is no longer usable
)

// A rank is one end of a communicator. A goroutine that holds mu may lock mu of r.from too, but not
// the other way round.
type rank struct {
	handle driver.Comm
	lib    *nccl.Library
	name   *byte
	abort  chan struct{} // closed when the rank is aborted
	ended  chan struct{} // closed when the library's aborts have returned

	mu      sync.Mutex
	stage   stage
	err     error // for stage failed: the reason
	aborted bool
	closing bool // DestroyComm was called
	shrunk  bool // ShrinkComm was called with abort
	inside  bool // a call uses ops
	plain   bool // the rank has only ops, which is nonblocking

	suspended bool // ops has freed its memory; changed only by the call that uses ops

	calling sync.Mutex // for a plain rank: held while a call of the library uses or aborts ops

	// Each handle is 0 until the library has returned it, and again when a goroutine has taken it
	// to release or abort the communicator.
	base, ops, source nccl.Comm

	from    *rank       // the rank that this rank is split or shrunk from; nil when the split or shrink is done
	by      *split      // the split that makes this rank; its fields are protected by from.mu
	off     *split      // the split of base that makes ops or source; or nil
	under   *split      // the split of source that makes a rank of a new communicator, or nil
	partial []nccl.Comm // communicators of failed splits; they refer to source

	has           features
	number, count int
	memory        map[driver.CommMemory]memory
	lastMemory    driver.CommMemory
	// The library writes the result of NewWindow here. If the rank is aborted, the library may
	// still write until the abort has ended.
	window *nccl.Window

	factors []nccl.RedOp // operators with factors of the current group
}

// A split is one call of CommSplit or CommShrink, which makes a communicator from another
// communicator.
type split struct {
	child *nccl.Comm // the new communicator; the library may write here until the split is done
	done  bool
	err   error
}

// features tells which functions the library has.
type features struct{ messages, factors, allToAll, gather, scatter, finalize bool }

func newRank(lib *nccl.Library, s stage) *rank {
	return &rank{lib: lib, stage: s, abort: make(chan struct{}), ended: make(chan struct{}), has: features{
		messages: lib.Has("point-to-point"), factors: lib.Has("reduction-operators"), allToAll: lib.HasSymbol("ncclAlltoAll"),
		gather: lib.HasSymbol("ncclGather"), scatter: lib.HasSymbol("ncclScatter"), finalize: lib.HasSymbol("ncclCommFinalize"),
	}}
}

// enter begins a call that uses a rank's ops. It returns an error if the rank is not ready, has
// ended or is suspended, or if another call uses ops. Without an error, the caller must call leave.
func (c *Comms) enter(h driver.Comm) (*rank, nccl.Comm, error) {
	r, x, err := c.enterAnyway(h)
	if err == nil && r.suspended {
		return nil, 0, r.leave(errSuspended)
	}
	return r, x, err
}

// enterAnyway is like enter, but also accepts a suspended rank.
func (c *Comms) enterAnyway(h driver.Comm) (*rank, nccl.Comm, error) {
	r, err := c.find(h)
	if err != nil {
		return nil, 0, err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if err := r.usable(); err != nil {
		return nil, 0, err
	}
	if r.stage != made {
		return nil, 0, errMaking
	}
	if r.inside {
		return nil, 0, errOccupied
	}
	r.inside = true
	return r, r.ops, nil
}

// leave ends the use of ops that enter began. It returns err, or errAborted if the rank was aborted
// meanwhile.
func (r *rank) leave(err error) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.inside = false
	if r.aborted {
		return errAborted
	}
	return err
}

// call makes a call of the library that uses ops. On a plain rank the call returns at once, and is
// not made during or after an abort.
func (r *rank) call(f func() error) error {
	if !r.plain {
		return f()
	}
	r.calling.Lock()
	defer r.calling.Unlock()
	if r.isAborted() {
		return errAborted
	}
	return f()
}

// usable returns nil, or why the rank cannot be used. The caller holds r.mu.
func (r *rank) usable() error {
	switch {
	case r.aborted:
		return errAborted
	case r.closing:
		return errClosing
	case r.shrunk:
		return errShrunk
	}
	return r.err
}

// look calls settle if the split of source has completed or failed. The caller holds r.mu.
func (r *rank) look() {
	if r.under == nil || r.source == 0 {
		return
	}
	if done, err := poll(r.lib, r.source); done || err != nil {
		r.settle(err)
	}
}

// settle records that the split of source has ended with err. If the split failed, the new
// communicator must be released after source, because the new communicator refers to source's abort
// flag. The caller holds r.mu.
func (r *rank) settle(err error) {
	s := r.under
	if s == nil {
		return
	}
	s.done, s.err, r.under = true, err, nil
	if err != nil && *s.child != 0 {
		r.partial = append(r.partial, *s.child)
	}
}

// idle waits until the communicator source is no longer being split. It returns an error if the
// rank is aborted.
func (r *rank) idle() error {
	for p := pause(0); ; p.wait() {
		r.mu.Lock()
		r.look()
		busy, aborted := r.under != nil, r.aborted
		r.mu.Unlock()
		if aborted {
			return errAborted
		}
		if !busy {
			return nil
		}
	}
}

// isAborted reports whether the rank was aborted.
func (r *rank) isAborted() bool {
	select {
	case <-r.abort:
		return true
	default:
		return false
	}
}

// take returns *x and sets it to zero, so that no other goroutine uses the value.
func take[T any](r *rank, x *T) (taken T) {
	r.mu.Lock()
	defer r.mu.Unlock()
	taken, *x = *x, taken
	return taken
}
