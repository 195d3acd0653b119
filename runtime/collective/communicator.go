package collective

import (
	"context"

	"github.com/puregpu/puregpu/runtime/gpu"
	"github.com/puregpu/puregpu/runtime/internal/comm"
	"github.com/puregpu/puregpu/runtime/internal/errs"
	"github.com/puregpu/puregpu/runtime/internal/inside"
)

// A Communicator is one rank's end of a communicator. A communicator consists of devices, in one
// process or many, that move and reduce data among each other over the hardware's interconnect.
// Each end takes groups of operations: see [Communicator.Group]. Each end has its own native stream
// and OS thread. An end's groups are ordered with other work of the device only by semaphores, by
// a [gpu.Stream] or by a recording.
//
// The ranks of a communicator must submit the same operations in the same order with the same
// sizes. If they do not, and the library does not detect the mistake, the operation hangs until a
// timeout. If several communicators have ranks in common, semaphores must order the operations of
// these communicators in the same way on all common ranks.
//
// A communicator fails as a whole, for example when another rank dies, when a group takes too long,
// or when it is aborted. Then all unfinished and later operations fail with the same error, and the
// program can only close the communicator. All methods may be called concurrently.
//
// If a group fails, all work that waits for the group fails too. Such work does not run if it has
// not been issued. If it has been issued, it runs, also in a [gpu.Stream]. The memory that this
// work or the group wrote then has undefined contents: restore or broadcast the contents before you
// go on.
type Communicator comm.Communicator

// in returns the communicator of package comm.
func (c *Communicator) in() *comm.Communicator { return (*comm.Communicator)(c) }

// part returns the comm.Device of a device, or nil for a nil or zero Device.
func part(dev *gpu.Device) *comm.Device {
	if d := gpu.Inside(dev); d != nil {
		return d.Comm
	}
	return nil
}

// New makes a rank's end of a communicator. New waits until all other ranks have joined too, by New
// or NewAll, or until the context ends.
func New(ctx context.Context, dev *gpu.Device, o Options) (*Communicator, error) {
	c, err := part(dev).New(ctx, o.in())
	return (*Communicator)(c), err
}

// NewAll makes the ends of a communicator for several devices. The devices get consecutive ranks,
// in the order of the list. Rank in the options is the rank of the first device. If there is no
// Rendezvous, Rank is not -1 and Count is 0, the communicator has as many ranks as there are
// devices. If also Rank is 0 and ID is zero, NewAll makes the id. If there is a Rendezvous, and
// Rank is -1 or Count is -1 or 0, the Rendezvous supplies the place of the process, and all
// processes must have the same number of devices. NewAll blocks until all ranks have joined or the
// context ends. If one end cannot be made, NewAll closes the others and returns none.
func NewAll(ctx context.Context, devices []*gpu.Device, o Options) ([]*Communicator, error) {
	parts := make([]*comm.Device, len(devices))
	for i, dev := range devices {
		parts[i] = part(dev)
	}
	made, err := comm.NewAll(ctx, parts, o.in())
	if err != nil {
		return nil, err
	}
	all := make([]*Communicator, len(made))
	for i, c := range made {
		all[i] = (*Communicator)(c)
	}
	return all, nil
}

// Rank returns the rank of this end.
func (c *Communicator) Rank() int { return c.in().Rank() }

// Count returns how many ranks there are.
func (c *Communicator) Count() int { return c.in().Count() }

// Device returns the device of this end.
func (c *Communicator) Device() *gpu.Device {
	tl := c.in().Timeline()
	if tl == nil {
		return nil
	}
	return inside.Outer(tl.Device).(*gpu.Device)
}

// Err returns the error with which the communicator has failed, or nil.
func (c *Communicator) Err() error { return c.in().Err() }

// Abort fails the communicator. Operations in flight end and leave undefined data in the memory
// that they write. All unfinished operations fail with an error that wraps [ErrAborted]. If err is
// not nil, that error wraps err too. Abort does not tell the other ranks, and does not wait for the
// device.
func (c *Communicator) Abort(err error) { c.in().Abort(err) }

// Group returns an Op that does operations as one group. The operations of a group progress
// together. The groups of a communicator run one after the other. So if two ranks send to each
// other, each needs one group with its send and its receive: a separate send would wait for the
// other rank's receive. The group's signals are reached when all its operations are done. The Op
// may be submitted to any queue or stream of the communicator's device. The Op has room for 5
// operations. Longer groups allocate memory.
//
// A communicator issues groups in the order of their submission, because this order must be the
// same on all ranks. So a later group with fewer waits does not overtake an earlier group. If a
// group takes longer than [Options.Timeout], the communicator is aborted. If a wait fails before
// the group is issued, the communicator is aborted too, because this rank then misses an operation
// of the other ranks. If the communicator has failed or is suspended, or the device is lost or
// closed, the submitting call returns the error, and the signals fail with it.
//
// If the library is too old for an operation, or has no function for it, submitting or recording
// the Op returns [gpu.ErrUnsupported]. If the library refuses the operation only when it gets the
// group, the group and the work that waits for the group fail with this error, and the communicator
// stays usable. Ranks with the same library all get the error. If only some ranks get the error,
// the other ranks wait for those ranks until a timeout.
//
// In a recording, the operations run after all commands recorded before the group, and before all
// commands recorded after the group. Groups of one communicator that are recorded one right after
// the other become one group, unless the recording is in order (gpu.CommandOptions.InOrder) or the
// later group was added with a list of earlier commands. Any other command between two groups, or a
// barrier, separates the groups. Groups go to the communicator when the recording is executed, in the order of the
// executions. If a group fails, the execution fails. Issued commands behind the group still run, up
// to the next host call. The contents of the memory that these commands wrote are undefined.
func (c *Communicator) Group(ops ...Operation) gpu.Op {
	var none context.Context
	return c.group(none, ops)
}

// GroupContext is like [Communicator.Group], with a context. If the context ends after the
// submission and before the group is done, the communicator is aborted, because the state of the
// other ranks is then unknown. If the context has ended before the submission, only the submission
// fails. A recording refuses the Op.
func (c *Communicator) GroupContext(ctx context.Context, ops ...Operation) gpu.Op {
	if ctx == nil {
		return gpu.BadOp(errs.Argument("collective", "no context"))
	}
	return c.group(ctx, ops)
}

// group returns the Op of a group. If ctx is nil, the group has no context.
func (c *Communicator) group(ctx context.Context, ops []Operation) gpu.Op {
	g := comm.Group{Communicator: c.in(), Context: ctx}
	for _, x := range ops {
		g.Add(comm.Operation(x))
	}
	return gpu.OpOfGroup(&g)
}

// Close closes the communicator and ends its registrations. Operations that have not been issued
// fail with [gpu.ErrClosed]. Close waits for operations in flight. Some libraries destroy a
// communicator only when the other ranks destroy theirs. Then Close waits for those ranks too.
// After ten seconds of waiting, the communicator is aborted, and Close returns [gpu.ErrClosed], or
// [driver.ErrBusy] if a call of the library still does not return. Closing a failed communicator is
// not an error by itself. [gpu.Device.Close] closes the remaining communicators. Closing again
// returns the same error.
func (c *Communicator) Close() error { return c.in().Close() }

// Shutdown is like Close, with a context instead of the ten seconds. When the context ends, the
// communicator is aborted, and Shutdown waits up to about ten seconds more for the library. The
// error then wraps the context's error, and also [driver.ErrBusy] if a call of the library still
// does not return. Close and Shutdown may be called concurrently and repeatedly. The context that
// ends first bounds all of these calls.
func (c *Communicator) Shutdown(ctx context.Context) error { return c.in().Shutdown(ctx) }
