package ncclcomm

import (
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/puregpu/puregpu/internal/printable"
	"github.com/puregpu/puregpu/internal/secureenv"
	"github.com/puregpu/puregpu/nccl"
	"github.com/puregpu/puregpu/runtime/driver"
)

// NewUniqueID makes an id.
func (c *Comms) NewUniqueID() (driver.UniqueID, error) {
	lib, err := c.lib.get()
	if err != nil {
		return driver.UniqueID{}, c.fail("new unique id", err, "communicators")
	}
	id, err := lib.GetUniqueID()
	if err != nil {
		return driver.UniqueID{}, c.fail("new unique id", explain(lib, err), "get the id")
	}
	return id.Internal, nil
}

// NewComm waits for the other ranks only if the library lacks ncclCommSplit.
func (c *Comms) NewComm(desc driver.CommDesc) (driver.Comm, error) {
	const op = "new comm"
	r, err := c.join(desc)
	if err != nil {
		return 0, c.fail(op, err, "rank %d of %d", desc.Rank, desc.Count)
	}
	return c.add(r), nil
}

// join makes a rank, or begins to make it.
func (c *Comms) join(desc driver.CommDesc) (*rank, error) {
	if desc.Count < 1 || desc.Count > math.MaxInt32 || desc.Rank < 0 || desc.Rank >= desc.Count {
		return nil, fmt.Errorf("no such rank: %w", nccl.ErrorInvalidArgument)
	}
	lib, err := c.lib.get()
	if err != nil {
		return nil, err
	}
	r, id := newRank(lib, joining), nccl.UniqueID{Internal: desc.ID}
	r.plain = desc.Plain && lib.Has("split")
	x := new(nccl.Comm) // on the heap, because old releases write to it after the call has returned
	if !lib.Has("split") {
		if len(desc.More) > 0 {
			_, err := lib.CommInitRankScalable(0, 0, nil, nil)
			return nil, err
		}
		if err := lib.CommInitRank(x, int32(desc.Count), id, int32(desc.Rank)); err != nil {
			return nil, explain(lib, err)
		}
		r.ops, r.stage = *x, made
		if err := r.identify(r.ops); err != nil {
			return nil, errors.Join(err, c.abandon(r))
		}
		return r, nil
	}
	if err := checkEnvironment(); err != nil {
		return nil, err
	}
	if desc.Name != "" {
		if r.name, err = c.lib.cname(desc.Name); err != nil {
			return nil, fmt.Errorf("name %q: %w", desc.Name, err)
		}
	}
	if len(desc.More) == 0 {
		err = lib.CommInitRankConfig(x, int32(desc.Count), id, int32(desc.Rank), r.config(r.first()))
	} else {
		ids := []nccl.UniqueID{id}
		for _, more := range desc.More {
			ids = append(ids, nccl.UniqueID{Internal: more})
		}
		// CommInitRankScalable returns the communicator, and the library does not write to x later.
		*x, err = lib.CommInitRankScalable(int32(desc.Count), int32(desc.Rank), ids, r.config(r.first()))
	}
	err = pending(err)
	r.base = *x
	if err == nil && r.base == 0 {
		err = errNone
	}
	if err != nil {
		err = explain(lib, err)
		if r.base != 0 {
			err = errors.Join(err, c.abandon(r))
		}
		return nil, err
	}
	return r, nil
}

var errNone = fmt.Errorf("the library has returned none: %w", nccl.ErrorInternal)

// checkEnvironment refuses environment variables that override the settings that aborts rely on.
func checkEnvironment() error {
	for name, harmless := range map[string]string{"NCCL_COMM_BLOCKING": "0", "NCCL_COMM_SPLIT_SHARE_RESOURCES": ""} {
		if v := secureenv.Get(name); v != "" && v != harmless {
			return fmt.Errorf("with %s=%s communicators could not be aborted: unset it", name, printable.Text(v))
		}
	}
	return nil
}

// A purpose says what a rank uses a communicator of the library for.
type purpose int

const (
	forBase purpose = iota
	forOps
	forSource
)

// first returns the purpose of the communicator with which the rank joins.
func (r *rank) first() purpose {
	if r.plain {
		return forSource // the rank's only communicator shares nothing with others, like r.source
	}
	return forBase
}

// config returns the library's settings of a communicator for a purpose.
func (r *rank) config(p purpose) *nccl.Config {
	x := r.lib.NewConfig()
	x.Blocking, x.SplitShare = 0, 0
	switch p {
	case forBase:
		x.SplitShare = 1
	case forOps:
		x.Blocking = 1
	}
	if x.CommName = r.name; r.lib.CheckConfig(&x) != nil {
		x.CommName = nil // old libraries have no names
	}
	return &x
}

// SplitComm begins to split rank.source.
func (c *Comms) SplitComm(h driver.Comm, color, key int) (driver.Comm, error) {
	const op = "split comm"
	if color < driver.NoColor || color > math.MaxInt32 || int(int32(key)) != key {
		return 0, c.fail(op, nccl.ErrorInvalidArgument, "communicator %d by color %d and key %d", h, color, key)
	}
	child, err := c.derive(h, true, func(r *rank) (*split, error) {
		return begin(r.lib, r.source, int32(color), int32(key), r.config(forBase))
	})
	if err != nil {
		return 0, c.failComm(op, h, err)
	}
	if color == driver.NoColor {
		return 0, nil
	}
	return c.add(child), nil
}

// ShrinkComm begins to shrink rank.source.
func (c *Comms) ShrinkComm(h driver.Comm, exclude []int, abort bool) (driver.Comm, error) {
	const op = "shrink comm"
	child, err := c.derive(h, !abort, func(r *rank) (*split, error) {
		out := make([]int32, 0, len(exclude)) // a copy, because the library sorts the list in place
		for _, x := range exclude {
			if x < 0 || x >= r.count || x == r.number || slices.Contains(out, int32(x)) {
				return nil, fmt.Errorf("rank %d of %d cannot exclude %v: %w", r.number, r.count, exclude, nccl.ErrorInvalidArgument)
			}
			out = append(out, int32(x))
		}
		if len(out) == 0 {
			return nil, fmt.Errorf("no ranks to exclude: %w", nccl.ErrorInvalidArgument)
		}
		flags := int32(nccl.ShrinkDefault)
		if abort {
			flags, r.shrunk = nccl.ShrinkAbort, r.lib.HasSymbol("ncclCommShrink") // stays true even if the call fails
		}
		s := &split{child: new(nccl.Comm)}
		if err := pending(r.lib.CommShrink(r.source, out, s.child, r.config(forBase), flags)); err != nil {
			return nil, explain(r.lib, err)
		}
		return s, nil
	})
	if err != nil {
		return 0, c.failComm(op, h, err)
	}
	return c.add(child), nil
}

// CheckShrink returns an error if the rank is plain, or the library has no ncclCommShrink.
func (c *Comms) CheckShrink(h driver.Comm) error {
	r := c.made(h)
	switch {
	case r == nil:
		return nil
	case r.plain:
		return c.failComm("shrink comm", h, errPlain)
	case r.lib.HasSymbol("ncclCommShrink"):
		return nil
	}
	// Calling the missing function makes the error.
	return c.failComm("shrink comm", h, unsupported{r.lib.CommShrink(0, nil, nil, nil, 0)})
}

// derive begins to make a rank from rank.source of the rank h. If rank.source is being split
// already, derive waits for that split if wait is true, and otherwise returns an error.
func (c *Comms) derive(h driver.Comm, wait bool, start func(*rank) (*split, error)) (*rank, error) {
	from, _, err := c.enter(h)
	if err != nil {
		return nil, err
	}
	child := newRank(from.lib, splitting)
	child.from, child.name = from, from.name
	if from.plain {
		err, wait = errPlain, false
	}
	if wait {
		err = from.idle()
	}
	if err == nil {
		from.mu.Lock()
		switch from.look(); {
		case from.aborted:
		case from.under != nil:
			err = fmt.Errorf("another communicator is being made from it: %w", driver.ErrBusy)
		default:
			child.by, err = start(from)
			from.under = child.by
		}
		from.mu.Unlock()
	}
	if aborted := from.leave(err); child.by == nil {
		return nil, aborted
	}
	return child, nil // CommReady returns the error of the split
}

// begin begins to split a communicator.
func begin(lib *nccl.Library, x nccl.Comm, color, key int32, config *nccl.Config) (*split, error) {
	s := &split{child: new(nccl.Comm)}
	if err := pending(lib.CommSplit(x, color, key, s.child, config)); err != nil {
		return nil, explain(lib, err)
	}
	return s, nil
}

// CommReady advances a rank through its stages.
func (c *Comms) CommReady(h driver.Comm) (bool, error) {
	r, err := c.find(h)
	if err != nil {
		return false, c.failComm("comm ready", h, err)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if err = r.usable(); err == nil {
		if err = r.advance(); err != nil {
			r.stage, r.err = failed, err
		}
	}
	if err != nil {
		return false, c.failComm("comm ready", h, err)
	}
	return r.stage == made, nil
}

// CommAwaits says what the rank's present stage waits for.
func (c *Comms) CommAwaits(h driver.Comm) string {
	r, err := c.find(h)
	if err != nil {
		return ""
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	switch r.stage {
	case splitting:
		return "all its ranks to call for it"
	case joining:
		return "all ranks to join (ncclCommInitRank)"
	case makingOps, makingSource:
		return "all ranks, which have joined, to split it twice (ncclCommSplit), as ranks of puregpu do; with ranks of other programs, set CommDesc.Plain on all ranks"
	}
	return ""
}

// advance advances the rank through its stages without waiting. The caller holds mu.
func (r *rank) advance() error {
	for r.stage != made {
		done, err := r.arrived()
		if !done || err != nil {
			return err
		}
		switch r.stage {
		case splitting:
			if r.base, r.from = *r.by.child, nil; r.base == 0 {
				return errNone
			}
			r.stage = joining
		case joining:
			if err := r.identify(r.base); err != nil {
				return err
			}
			if r.plain {
				r.ops, r.base, r.stage = r.base, 0, made
				return nil
			}
			r.stage, err = makingOps, r.offshoot(forOps)
		case makingOps:
			if r.ops = *r.off.child; r.ops == 0 {
				return errNone
			}
			r.stage, err = makingSource, r.offshoot(forSource)
		case makingSource:
			if r.source = *r.off.child; r.source == 0 {
				return errNone
			}
			r.stage, r.off = made, nil
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// arrived reports whether the stage is complete. The caller holds mu.
func (r *rank) arrived() (bool, error) {
	if r.stage != splitting {
		return poll(r.lib, r.base)
	}
	r.from.mu.Lock()
	defer r.from.mu.Unlock()
	if r.from.look(); !r.by.done && r.from.aborted {
		return false, fmt.Errorf("communicator %d, which it is made from: %w", r.from.handle, errAborted)
	}
	return r.by.done, r.by.err
}

// offshoot begins to split r.ops or r.source off r.base.
func (r *rank) offshoot(p purpose) (err error) {
	r.off = nil
	r.off, err = begin(r.lib, r.base, 0, int32(r.number), r.config(p))
	return err
}

// identify reads the rank's number and the number of ranks from a finished communicator.
func (r *rank) identify(x nccl.Comm) error {
	number, err := r.lib.CommUserRank(x)
	if err != nil {
		return explain(r.lib, err)
	}
	count, err := r.lib.CommCount(x)
	if err != nil {
		return explain(r.lib, err)
	}
	r.number, r.count = int(number), int(count)
	return nil
}

// CommRank returns the numbers that identify has read.
func (c *Comms) CommRank(h driver.Comm) (rank, count int, err error) {
	r, err := c.find(h)
	if err != nil {
		return 0, 0, c.failComm("comm rank", h, err)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if err = r.usable(); err == nil && r.stage != made {
		err = errMaking
	}
	if err != nil {
		return 0, 0, c.failComm("comm rank", h, err)
	}
	return r.number, r.count, nil
}
