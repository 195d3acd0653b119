package ncclcomm

import (
	"errors"
	"fmt"
	"math"
	"runtime"
	"unsafe"

	"github.com/puregpu/puregpu/nccl"
	"github.com/puregpu/puregpu/runtime/dl"
	"github.com/puregpu/puregpu/runtime/driver"
)

// defaultStreams is the highest handle of a default stream. Drivers refuse default streams in all
// calls.
const defaultStreams = 2

// Collect skips operations with a Count of 0.
func (c *Comms) Collect(s driver.Stream, h driver.Comm, ops []driver.CommOp) error {
	r, x, err := c.enter(h)
	if err == nil {
		err = r.leave(r.collect(x, s, ops))
	}
	if err != nil {
		return c.fail("collect", err, "communicator %d in stream %#x", h, uintptr(s))
	}
	return nil
}

// collect checks all operations before it passes any to the library, because the library may give
// up the communicator after an error.
func (r *rank) collect(x nccl.Comm, s driver.Stream, ops []driver.CommOp) error {
	if s <= defaultStreams {
		return fmt.Errorf("not a stream that NewStream or AdoptStream accepts: %w", nccl.ErrorInvalidArgument)
	}
	work := false
	for i := range ops {
		if err := r.check(&ops[i]); err != nil {
			return failOp(ops, i, err)
		}
		work = work || ops[i].Count != 0
	}
	if !work {
		return nil // the library would leak memory for an empty group
	}
	runtime.LockOSThread() // a group belongs to the thread that began it
	defer runtime.UnlockOSThread()
	var end error
	err := r.call(func() error {
		if err := r.lib.GroupStart(); err != nil {
			return fmt.Errorf("begin a group: %w", explain(r.lib, err))
		}
		err := r.issueAll(x, nccl.CudaStream(s), ops)
		end = r.lib.GroupEnd() // even after an error, because the thread must leave the group
		return err
	})
	if end == nccl.ErrorInProgress {
		end = r.wait(x)
	}
	drop := r.dropFactors(x)
	switch {
	case err != nil:
	case end != nil:
		err = fmt.Errorf("end a group of %d: %w", len(ops), explain(r.lib, end))
	case drop != nil:
		err = fmt.Errorf("destroy the factor of a group of %d: %w", len(ops), explain(r.lib, drop))
	}
	// ErrSymbol and ErrUnsupported would say that nothing was issued, but earlier operations of the
	// group may have been issued.
	if errors.Is(err, dl.ErrSymbol) || errors.Is(err, driver.ErrUnsupported) {
		err = fmt.Errorf("inside a group: %v", err)
	}
	return err
}

// wait waits until x is ready, if x is nonblocking. x is r.ops. In plain ranks r.ops is
// nonblocking. In other ranks r.ops is nonblocking if an environment variable of the library says
// so.
func (r *rank) wait(x nccl.Comm) error {
	for p := pause(0); ; p.wait() {
		done := false
		err := r.call(func() (err error) {
			done, err = poll(r.lib, x)
			return err
		})
		if done || err != nil {
			return err
		}
	}
}

func failOp(ops []driver.CommOp, i int, err error) error {
	o := &ops[i]
	what := ""
	if o.Kind.Reduces() {
		what = " by " + o.Reduction.String()
	}
	return fmt.Errorf("operation %d, %v%s of %d × %v: %w", i, o.Kind, what, o.Count, o.Type, err)
}

// check returns an error if an operation is not valid.
func (r *rank) check(o *driver.CommOp) error {
	have := r.lib.Version()
	bad := ""
	switch {
	case o.Kind < driver.AllReduce || o.Kind > driver.Recv:
		bad = "no such kind"
	case !o.Type.Valid():
		bad = "no such type"
	case o.Kind.Reduces() && (o.Reduction < driver.Sum || o.Reduction > driver.PreMulSum):
		bad = "no such reduction"
	case hasPeer(o.Kind) && (o.Peer < 0 || o.Peer >= r.count):
		return fmt.Errorf("no rank %d of %d: %w", o.Peer, r.count, nccl.ErrorInvalidArgument)
	case o.Count > math.MaxInt64/uint64(o.Type.Size())/uint64(r.count):
		bad = "larger than the address space"
	case r.count == 1 && o.Kind.Reduces() && o.Reduction == driver.PreMulSum && (o.Type == driver.Float8E4M3 || o.Type == driver.Float8E5M2):
		// With one rank the library mishandles these types, up to 2.28 at least.
		return fmt.Errorf("in a communicator of one rank: %w", driver.ErrUnsupported)
	case o.Kind.Reduces() && o.Reduction == driver.Avg && have != 0 && have < since2_10:
		return fmt.Errorf("averages need release %s, and the library is %s: %w", nccl.FormatVersion(since2_10), nccl.FormatVersion(have), driver.ErrUnsupported)
	}
	if bad != "" {
		return fmt.Errorf("%s: %w", bad, nccl.ErrorInvalidArgument)
	}
	if _, err := dataType(o.Type, o.Kind.Reduces(), have); err != nil {
		return err
	}
	switch { // if the library lacks a function, calling it returns the error to report
	case o.Kind.Reduces() && o.Reduction == driver.PreMulSum && !r.has.factors:
		_, err := r.lib.RedOpCreatePreMulSum(nil, 0, 0, 0)
		return unsupported{err}
	case r.byMessages(o.Kind) && !r.has.messages:
		return unsupported{r.lib.Send(0, 0, 0, 0, 0, 0)}
	}
	return nil
}

// CheckOp returns an error if the rank is ready, and the library does not support an operation.
func (c *Comms) CheckOp(h driver.Comm, o driver.CommOp) error {
	r := c.made(h)
	if r == nil {
		return nil
	}
	if err := r.check(&o); err != nil && errors.Is(err, driver.ErrUnsupported) {
		return c.fail("collect", err, "%v with communicator %d", o.Kind, h)
	}
	return nil
}

func hasPeer(k driver.CommOpKind) bool {
	switch k {
	case driver.Broadcast, driver.Reduce, driver.Gather, driver.Scatter, driver.Send, driver.Recv:
		return true
	}
	return false
}

// byMessages reports whether operations of a kind are made of sends and receives. Send and Recv are
// such kinds, and so is every kind for which the library has no function.
func (r *rank) byMessages(k driver.CommOpKind) bool {
	return k == driver.Send || k == driver.Recv || k == driver.AllToAll && !r.has.allToAll ||
		k == driver.Gather && !r.has.gather || k == driver.Scatter && !r.has.scatter
}

// issueAll issues the operations in order until one fails. It skips those with a Count of 0.
func (r *rank) issueAll(x nccl.Comm, s nccl.CudaStream, ops []driver.CommOp) error {
	for i := range ops {
		if ops[i].Count == 0 {
			continue
		}
		if err := r.issue(x, s, &ops[i]); err != nil {
			return failOp(ops, i, explain(r.lib, err))
		}
	}
	return nil
}

// issue issues one operation. If Broadcast ignores Src on this rank, or Reduce ignores Dst, issue
// passes the other buffer in its place.
func (r *rank) issue(x nccl.Comm, s nccl.CudaStream, o *driver.CommOp) error {
	src, dst, n, peer, lib := nccl.DevicePtr(o.Src), nccl.DevicePtr(o.Dst), o.Count, int32(o.Peer), r.lib
	t, _ := dataType(o.Type, o.Kind.Reduces(), lib.Version())
	rooted := o.Peer == r.number
	var red nccl.RedOp
	if o.Kind.Reduces() {
		var err error
		if red, err = r.reduction(x, o, t); err != nil {
			return err
		}
	}
	switch o.Kind {
	case driver.AllReduce:
		return pending(lib.AllReduce(src, dst, n, t, red, x, s))
	case driver.AllGather:
		return pending(lib.AllGather(src, dst, n, t, x, s))
	case driver.ReduceScatter:
		return pending(lib.ReduceScatter(src, dst, n, t, red, x, s))
	case driver.Broadcast:
		if !rooted {
			src = dst
		}
		return pending(lib.Broadcast(src, dst, n, t, peer, x, s))
	case driver.Reduce:
		if !rooted {
			dst = src
		}
		return pending(lib.Reduce(src, dst, n, t, red, peer, x, s))
	case driver.Send:
		return pending(lib.Send(src, n, t, peer, x, s))
	case driver.Recv:
		return pending(lib.Recv(dst, n, t, peer, x, s))
	case driver.AllToAll:
		if r.has.allToAll {
			return pending(lib.AlltoAll(src, dst, n, t, x, s))
		}
	case driver.Gather:
		if r.has.gather {
			return pending(lib.Gather(src, dst, n, t, peer, x, s))
		}
	case driver.Scatter:
		if r.has.scatter {
			return pending(lib.Scatter(src, dst, n, t, peer, x, s))
		}
	}
	return r.exchange(x, s, t, o)
}

// exchange performs an operation with sends and receives. It sends the rank's own part too, unless
// that part is in place.
func (r *rank) exchange(x nccl.Comm, s nccl.CudaStream, t nccl.DataType, o *driver.CommOp) error {
	part := nccl.DevicePtr(o.Count) * nccl.DevicePtr(o.Type.Size())
	rooted := o.Peer == r.number
	for p := range r.count {
		src, dst := nccl.DevicePtr(o.Src), nccl.DevicePtr(o.Dst)
		send, receive := true, true
		switch o.Kind {
		case driver.AllToAll:
			src, dst = src+nccl.DevicePtr(p)*part, dst+nccl.DevicePtr(p)*part
		case driver.Gather:
			dst += nccl.DevicePtr(p) * part
			send, receive = p == o.Peer, rooted
		case driver.Scatter:
			src += nccl.DevicePtr(p) * part
			send, receive = rooted, p == o.Peer
		}
		if p == r.number && send && receive && src == dst {
			continue
		}
		if send {
			if err := pending(r.lib.Send(src, o.Count, t, int32(p), x, s)); err != nil {
				return err
			}
		}
		if receive {
			if err := pending(r.lib.Recv(dst, o.Count, t, int32(p), x, s)); err != nil {
				return err
			}
		}
	}
	return nil
}

// reduction returns the library's operator for a reduction. For PreMulSum it makes an operator with
// the factor.
func (r *rank) reduction(x nccl.Comm, o *driver.CommOp, t nccl.DataType) (nccl.RedOp, error) {
	if o.Reduction != driver.PreMulSum {
		if o.Reduction == driver.Avg && r.count == 1 { // Sum has the same result, and supports all types
			return nccl.Sum, nil
		}
		return reductions[o.Reduction], nil
	}
	red, err := r.lib.RedOpCreatePreMulSum(unsafe.Pointer(&o.Scale), t, nccl.ScalarHostImmediate, x)
	if err == nil {
		r.factors = append(r.factors, red)
	}
	return red, err
}

// dropFactors destroys the operators that r.reduction made for a group, unless the rank was
// aborted: the abort destroys them.
func (r *rank) dropFactors(x nccl.Comm) (err error) {
	for _, red := range r.factors {
		if r.isAborted() {
			break
		}
		if e := r.call(func() error { return r.lib.RedOpDestroy(red, x) }); e != nil {
			err = e
		}
	}
	r.factors = r.factors[:0]
	return err
}
