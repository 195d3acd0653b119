package ncclcomm

import (
	"sync"

	"github.com/puregpu/puregpu/nccl"
	"github.com/puregpu/puregpu/runtime/driver"
)

// A stage says how far a rank is.
type stage int

const (
	splitting    stage = iota // it is being split off another rank, or made by shrinking that
	joining                   // base is being made
	makingOps                 // ops is being split off base
	makingSource              // source is being split off base
	made
	failed // it cannot be made, or used any more
)

// A rank is one end of a communicator. The rank that it is made of may be locked while it is, not the other way round.
type rank struct {
	handle driver.Comm
	lib    *nccl.Library
	name   *byte
	abort  chan struct{} // closed when it is aborted
	ended  chan struct{} // closed when the library has done so

	mu      sync.Mutex
	stage   stage
	err     error // why it cannot be made, or used any more
	aborted bool
	closing bool // DestroyComm was called
	shrunk  bool // its operations were given up, for another one to be made of it
	inside  bool // a call is in ops
	plain   bool // there is ops alone, which does not block

	suspended bool // ops has given its memory back: changed by a call that is in it

	calling sync.Mutex // of a plain rank: held while a call takes ops, or ends it

	// Zero: there is none, or whoever took it away has it.
	base, ops, source nccl.Comm

	from    *rank       // while splitting, what it is made of
	by      *split      // that makes it, under from's mu
	off     *split      // of base, that makes ops or source
	under   *split      // of source, that makes another rank, or nil
	partial []nccl.Comm // what such a split left behind that failed; source holds on to it

	has           features
	number, count int
	memory        map[driver.CommMemory]memory
	lastMemory    driver.CommMemory
	window        *nccl.Window // of the last NewWindow: a thread of the library's may write it as long as an abort is under way

	factors []nccl.RedOp // of the group that is being issued
}

// A split is the making of a communicator out of another one.
type split struct {
	child *nccl.Comm // a thread of the library's writes it, before it is done
	done  bool
	err   error
}

// features are functions that the library may have or not.
type features struct{ messages, factors, allToAll, gather, scatter, finalize bool }

func newRank(lib *nccl.Library, s stage) *rank {
	return &rank{lib: lib, stage: s, abort: make(chan struct{}), ended: make(chan struct{}), has: features{
		messages: lib.Has("point-to-point"), factors: lib.Has("reduction-operators"), allToAll: lib.HasSymbol("ncclAlltoAll"),
		gather: lib.HasSymbol("ncclGather"), scatter: lib.HasSymbol("ncclScatter"), finalize: lib.HasSymbol("ncclCommFinalize"),
	}}
}

// enter begins a call that uses a rank's ops, one at a time. Call leave after it.
func (c *Comms) enter(h driver.Comm) (*rank, nccl.Comm, error) {
	r, x, err := c.enterAnyway(h)
	if err == nil && r.suspended {
		return nil, 0, r.leave(errSuspended)
	}
	return r, x, err
}

// enterAnyway is enter for a call that a suspended rank takes too.
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

// leave ends the call. What was aborted meanwhile has failed, whatever the library says.
func (r *rank) leave(err error) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.inside = false
	if r.aborted {
		return errAborted
	}
	return err
}

// call makes a call that takes ops. Of a plain rank it returns at once, and is not made while the library ends that.
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

// usable reports why nothing can be done with a rank any more. The caller holds mu.
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

// look finds out whether what is being made of source is done. The caller holds mu.
func (r *rank) look() {
	if r.under == nil || r.source == 0 {
		return
	}
	if done, err := poll(r.lib, r.source); done || err != nil {
		r.settle(err)
	}
}

// settle ends what is being made of source. What there is of it if that failed must not go before source, which still
// has the address of its abort flag. The caller holds mu.
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

// idle waits until nothing is being made of source, or until the rank is aborted.
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

// take takes away what is there, so that nobody else uses it any more.
func take[T any](r *rank, x *T) (taken T) {
	r.mu.Lock()
	defer r.mu.Unlock()
	taken, *x = *x, taken
	return taken
}
