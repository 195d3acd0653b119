package gpu

import (
	"context"
	"fmt"
	"time"

	"github.com/puregpu/puregpu/runtime/driver"
	"github.com/puregpu/puregpu/runtime/internal/comm"
	"github.com/puregpu/puregpu/runtime/internal/engine"
	"github.com/puregpu/puregpu/runtime/internal/errs"
	"github.com/puregpu/puregpu/runtime/internal/inside"
	"github.com/puregpu/puregpu/runtime/internal/observe"
	"github.com/puregpu/puregpu/runtime/internal/sema"
	"github.com/puregpu/puregpu/runtime/internal/work"
)

// A ChannelID names a channel to be made. One rank makes the id with [Device.NewChannelID], and all
// ranks use the same one.
type ChannelID driver.UniqueID

// ParseChannelID makes an id from its bytes.
func ParseChannelID(b []byte) (ChannelID, error) {
	id, err := comm.ParseID(b)
	return ChannelID(id), err
}

// A Rendezvous tells a process its rank and passes ids from one rank to the others. Package
// rendezvous has implementations. If a Rendezvous has a method EachRankMakesID() bool that returns
// true, every rank passes an id to Share. This serves libraries that make the same id on each rank.
type Rendezvous interface {
	// Place returns the rank of the process and how many ranks there are.
	Place() (rank, count int, err error)
	// Share returns, on all ranks, the id that rank 0 passes. The other ranks pass nil. The name
	// distinguishes several exchanges.
	Share(ctx context.Context, name string, id []byte) ([]byte, error)
}

// ChannelOptions describe a channel to make.
type ChannelOptions struct {
	ID   ChannelID // the same on all ranks; zero if Rendezvous is to share one
	Rank int       // of this device; -1 if Rendezvous is to supply it
	// The number of ranks. -1 or 0 means that Rendezvous supplies it. In a group with a Rank, 0
	// means the number of its devices.
	Count int

	// More are further ids, made on other ranks and the same on all ranks. A few of them let
	// thousands of ranks find each other faster. An older library returns an error for them.
	More []ChannelID

	// Plain joins with a single call of the library (C: ncclCommInitRankConfig), as other programs
	// do. So other ranks may belong to PyTorch or a C program, for example. All ranks that use this
	// package must then set Plain. A plain channel can be aborted and suspended, but not split or
	// shrunk: that is [ErrUnsupported]. Without Plain, the ranks together make more of the
	// library's communicators, for use by Split. Ranks of other programs would not take part, so
	// this rank would wait for them in vain.
	Plain bool

	// Rendezvous supplies the missing fields above. It may be nil if none is missing.
	Rendezvous Rendezvous

	// Name appears in the library's messages and distinguishes channels that share a Rendezvous. It
	// may be empty.
	Name string

	// Timeout limits how long a group of operations may take after it is issued. When it expires,
	// the channel is aborted. 0 is no limit.
	Timeout time.Duration
}

// in returns the options as the packages below know them.
func (o ChannelOptions) in() comm.Options {
	more := make([]driver.UniqueID, len(o.More))
	for i, id := range o.More {
		more[i] = driver.UniqueID(id)
	}
	in := comm.Options{ID: driver.UniqueID(o.ID), Rank: o.Rank, Count: o.Count, More: more, Plain: o.Plain, Name: o.Name, Timeout: o.Timeout}
	if o.Rendezvous != nil {
		in.Rendezvous = o.Rendezvous
	}
	return in
}

// A Channel is one rank's end of a communicator. A communicator consists of devices, in one process
// or many, that move and reduce data among them over the hardware's interconnect. A channel is a
// queue of its own that takes groups of collective operations: see [Channel.Group]. It has its own
// stream and OS thread, so only semaphores order its work relative to other queues.
//
// The ranks of a channel must submit the same operations in the same order with the same sizes.
// Violations cannot always be detected: the operation then hangs until a timeout. Ranks that take
// part in operations of several channels must order these operations alike, by semaphores.
//
// A channel fails as a whole: when another rank dies, when an operation fails or takes too long, or
// when it is aborted. Then all submitted and later operations fail with the same error. Only Close
// is useful afterwards. All methods may be called concurrently.
//
// Work that waits for a group of a failed channel fails as well. If it has not been issued, it does
// not run. If it has been issued, it runs, also in a [Stream]. The memory that the group and this
// work wrote is undefined: restore or broadcast it before you go on.
type Channel comm.Channel

// in returns the channel as the packages below know it.
func (c *Channel) in() *comm.Channel { return (*comm.Channel)(c) }

// A ChannelError is the error with which a channel failed.
type ChannelError struct {
	Device string
	Name   string
	Rank   int
	Count  int
	Err    error
}

func (e *ChannelError) Error() string {
	name := ""
	if e.Name != "" {
		name = " " + e.Name
	}
	return fmt.Sprintf("gpu: channel%s, rank %d of %d, on %s: %v", name, e.Rank, e.Count, e.Device, e.Err)
}

func (e *ChannelError) Unwrap() error { return e.Err }

// communicators returns the device's part for communicators, or nil for a nil Device.
func (d *Device) communicators() *comm.Device {
	if d == nil {
		return nil
	}
	return &d.comm
}

// NewChannelID makes an id. The ranks find each other through this process, which must keep running
// until they have. The first call blocks while the library is loaded.
func (d *Device) NewChannelID() (ChannelID, error) {
	id, err := d.communicators().NewID()
	return ChannelID(id), err
}

// NewChannel makes a rank's end of a channel. It waits until the other ranks have called it too, or
// the context ends.
func (d *Device) NewChannel(ctx context.Context, o ChannelOptions) (*Channel, error) {
	c, err := d.communicators().New(ctx, o.in())
	return (*Channel)(c), err
}

// NewChannels makes a channel with a rank for each device, in their order. Rank in the options is
// the rank of the first device. If Rank is given and Count is 0, the count is the number of
// devices, and an id is made if none is given. If Rank or Count is -1, the Rendezvous supplies the
// place of the process. All processes must then have as many devices as this one. NewChannels
// blocks until all ranks have joined or the context ends. If one channel cannot be made, none is.
func (g *Group) NewChannels(ctx context.Context, o ChannelOptions) ([]*Channel, error) {
	devs := make([]*comm.Device, len(g.devs))
	for i, d := range g.devs {
		devs[i] = &d.comm
	}
	made, err := comm.NewChannels(ctx, devs, o.in())
	if err != nil {
		return nil, err
	}
	all := make([]*Channel, len(made))
	for i, c := range made {
		all[i] = (*Channel)(c)
	}
	return all, nil
}

// Rank returns the rank of this end.
func (c *Channel) Rank() int { return c.in().Rank() }

// Count returns how many ranks there are.
func (c *Channel) Count() int { return c.in().Count() }

// Device returns the device of this end.
func (c *Channel) Device() *Device {
	if c.in().Timeline() == nil {
		return nil
	}
	return deviceOf(c.in().Timeline().Device)
}

// Err returns the error with which the channel has failed, or nil.
func (c *Channel) Err() error { return c.in().Err() }

// Abort fails the channel. Operations in flight end and leave undefined data in the memory that
// they write. All submitted operations fail with an error that is [ErrAborted] and wraps err, if
// err is not nil. The other ranks have to notice by themselves. Abort does not wait for the device.
func (c *Channel) Abort(err error) { c.in().Abort(err) }

// Group returns an Op that does operations as one group. The operations of a group progress
// together. Operations that depend on each other must be in one group: if two ranks send to and
// receive from each other, a separate send would wait for the other rank's receive. The group's
// signals are reached when all its operations are done. The Op may be submitted to any queue or
// stream of the channel's device.
//
// A channel issues groups in the order of their submission, also when a later group has less to
// wait for, because that order must be the same on all ranks. [ChannelOptions.Timeout] limits how
// long a group may take, and aborts the channel. So does a failed wait, because this rank then
// misses an operation of the others. If the channel has failed or is suspended, or the device is
// lost or closed, the signals fail and the call returns the error.
//
// If the library is too old for an operation, or has no function for it, the error is
// [ErrUnsupported]. If that is found only later, the group fails alone, with the operations that
// wait for it. Ranks with the same library all find this. If only some ranks do, the others wait
// for them until a timeout.
//
// In a recording, the operations come behind all commands that were recorded before them and before
// all later ones. Neighbouring groups of one channel make one group. Any other command between
// them, or a barrier, ends the group. Groups go to the channel when the recording is executed, in
// the order of the executions. If a group fails, the execution fails. Commands behind the group
// that were issued run all the same, as far as the next host call, and the memory that they wrote
// is undefined.
func (c *Channel) Group(ops ...Collective) Op {
	return c.group(nil, ops)
}

// GroupContext is [Channel.Group] with a context. If the context ends before the group is done, the
// channel is aborted, because what the other ranks do in the meantime is unknown. A recording
// refuses it.
func (c *Channel) GroupContext(ctx context.Context, ops ...Collective) Op {
	if ctx == nil {
		return BadOp(errs.Argument("collective", "no context"))
	}
	return c.group(ctx, ops)
}

// group returns the Op of a group. ctx is nil if there is none.
func (c *Channel) group(ctx context.Context, ops []Collective) Op {
	all := make([]comm.Collective, len(ops))
	for i, x := range ops {
		all[i] = comm.Collective(x)
	}
	return OpOf(inside.Op{Kind: work.Collect, Group: &comm.Group{Channel: c.in(), Context: ctx, Ops: all}})
}

// Submit submits the Op of [Channel.GroupContext].
func (c *Channel) Submit(ctx context.Context, o Order, ops ...Collective) error {
	tl := c.in().Timeline()
	if tl == nil {
		return errs.Argument("collective", "a nil or zero Channel")
	}
	return queueOf(tl).Submit(o, c.GroupContext(ctx, ops...))
}

// Split divides the channel into new channels. Each consists of the ranks that pass the same color,
// ordered by key and then by rank. All ranks must call Split. A rank that passes [NoColor] gets a
// nil channel. Split waits until earlier operations are done, and for the other ranks, until the
// context ends. Other goroutines must not submit operations meanwhile. The new channel inherits the
// timeout, and stays open when this channel is closed. This channel fails too if the new channel
// cannot be made, or if the context ends when this rank has begun and others have not come: the
// library can only end the creation of a part by aborting the whole.
func (c *Channel) Split(ctx context.Context, color, key int) (*Channel, error) {
	made, err := c.in().Split(ctx, color, key)
	return (*Channel)(made), err
}

// NoColor is the color of a rank that gets no channel from [Channel.Split].
const NoColor = driver.NoColor

// Shrink makes a channel of all ranks except the excluded ones, which must not call Shrink. With
// abort, the operations in flight on this channel are aborted first, for example after a rank has
// died, and this channel fails. Without abort, Shrink waits until they are done. Shrink waits for
// the other ranks until the context ends. If they have not come by then, this channel fails, as
// with [Channel.Split].
//
// A channel that has already failed cannot be shrunk: close it, and make a new one. A channel also
// fails when the library finds that a rank is gone. The remaining ranks need not call Shrink at the
// same time: with abort, the first call does not end the channel for ranks that have yet to call
// it. A channel cannot be shrunk either while the library has a group that waits for a rank to join
// for the first time. Then the channel is aborted when the context, or the group's timeout, ends.
func (c *Channel) Shrink(ctx context.Context, abort bool, exclude ...int) (*Channel, error) {
	made, err := c.in().Shrink(ctx, abort, exclude...)
	return (*Channel)(made), err
}

// ChannelStats is how much device memory a channel's communicator uses, in bytes, without
// registered buffers.
type ChannelStats = driver.CommStats

// Stats returns how much memory the channel's communicator uses (C: ncclCommMemStats). It blocks
// until the channel's thread has queried the library. The thread may be blocked in a group until
// other ranks come. If the library cannot tell, the error is [ErrUnsupported].
func (c *Channel) Stats() (ChannelStats, error) { return c.in().Stats() }

// Suspend releases device memory that the channel does not need until [Channel.Resume], and keeps
// its connections (C: ncclCommSuspend). All ranks must call it. Suspend waits for earlier
// operations of the channel, for the other ranks and, because the library does, for all work of the
// device. It waits until the context ends. From the call on, the channel accepts no groups, memory
// or windows: they fail with [ErrSuspended] or the driver's error. Executions of recordings with
// groups fail too. Registered memory stays registered, and cannot be released meanwhile.
//
// If the context ends before this rank has begun, the channel is as it was. If the context ends
// when others have not come, or the library fails, the channel fails. Closing a suspended channel
// resumes it first, because the library could not release it completely otherwise. So all ranks
// must then close or resume theirs. A channel that is aborted while it is suspended leaks some of
// its memory until the process ends.
//
// NCCL supports this from 2.30.3 on, and only for channels made with [ChannelOptions.Plain], which
// share their memory with no other communicator. Otherwise the error is [ErrUnsupported],
// and the channel remains usable.
func (c *Channel) Suspend(ctx context.Context) error { return c.in().Suspend(ctx) }

// Resume allocates the memory of a suspended channel again, after which the channel works as before
// (C: ncclCommResume). All ranks must call it. It waits for them until the context ends. If the
// context ends when others have not come, or there is not enough memory, the channel fails: free
// memory before. If the channel is not suspended, the error is [ErrArgument].
func (c *Channel) Resume(ctx context.Context) error { return c.in().Resume(ctx) }

// Close closes the channel and what is registered with it. It waits up to ten seconds for
// operations in flight and, if the library does, for the other ranks to close their ends.
// Operations that have not been issued fail with [ErrClosed]. After ten seconds the communicator is
// aborted, and the error is [ErrClosed]. Closing a failed channel is not an error by itself.
// Device.Close closes the remaining channels. Closing again returns the same error.
func (c *Channel) Close() error { return c.in().Close() }

// Shutdown is Close with a context instead of the ten seconds. When the context ends, the
// communicator is aborted, for which the library gets up to ten seconds. The error then wraps the
// context's error. Close and Shutdown may be called concurrently and repeatedly. The context that
// ends first bounds all of these calls, and they return the same error.
func (c *Channel) Shutdown(ctx context.Context) error { return c.in().Shutdown(ctx) }

// ChannelMemory is a buffer of kind [CommMem] that is registered with a channel, so that the
// channel's operations need no copies. In one operation, either all ranks use registered memory or
// none does. The registration ends with Close or with the channel.
type ChannelMemory comm.Memory

// Register registers a buffer with the channel for this rank alone. It blocks until the channel's
// thread has done that. The thread may be blocked in a group until other ranks come.
func (c *Channel) Register(b *Buffer) (*ChannelMemory, error) {
	m, err := c.in().Register(b.in())
	return (*ChannelMemory)(m), err
}

// NewWindow registers a buffer with the channel on all ranks at once. The buffers must have the
// same size. With symmetric, the caller promises that operations use the same offsets on all ranks,
// which enables more optimizations in the library. NewWindow waits for the other ranks. If the
// context ends before they have come, the channel is aborted.
func (c *Channel) NewWindow(ctx context.Context, b *Buffer, symmetric bool) (*ChannelMemory, error) {
	m, err := c.in().NewWindow(ctx, b.in(), symmetric)
	return (*ChannelMemory)(m), err
}

// Close ends the registration; a window's on all ranks. It waits until the channel is idle, since
// groups may use the memory, or until the channel fails. Closing again, or after the channel, does
// nothing. If the channel has failed, or its library returns an error, the memory stays registered
// until the channel is closed. If the buffer is closed before, its memory is freed then.
func (m *ChannelMemory) Close() error { return (*comm.Memory)(m).Close() }

// A commOwner is a device as its communicators see it: a comm.Owner.
type commOwner Device

// NewTimeline makes a queue for a channel.
func (o *commOwner) NewTimeline() *engine.Timeline { return newQueue((*Device)(o), -1).tl }

// ChannelError makes the error of a channel that fails.
func (o *commOwner) ChannelError(name string, rank, count int, err error) error {
	return &ChannelError{o.native.Info.Name, name, rank, count, err}
}

// ChannelFailed tells the tracer that a channel has failed.
func (o *commOwner) ChannelFailed(err error) {
	observe.Tell(o.memory.Observer, observe.Lost, time.Now(), "", 0, err)
}

// FailOwed fails the semaphores of a group.
func (o *commOwner) FailOwed(tl *engine.Timeline, err error, owed []*sema.Semaphore) {
	all := make([]*Semaphore, len(owed))
	for i, s := range owed {
		all[i] = outer(s)
	}
	FailAll(&SubmitError{Op: work.Collect.String(), Queue: queueOf(tl).mention(), Device: o.native.Info.Name, Err: err}, all...)
}
