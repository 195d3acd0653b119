package gpu

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/puregpu/puregpu/runtime/driver"
	"github.com/puregpu/puregpu/runtime/internal/errs"
	"github.com/puregpu/puregpu/runtime/internal/wake"
)

// A ChannelID names a channel to be made. One rank makes the id with [Device.NewChannelID], and all
// ranks use the same one.
type ChannelID driver.UniqueID

// ParseChannelID makes an id from its bytes.
func ParseChannelID(b []byte) (id ChannelID, err error) {
	if len(b) != len(id) {
		return id, errs.Argument("channel id", "%d bytes; it has %d", len(b), len(id))
	}
	copy(id[:], b)
	if id == (ChannelID{}) {
		return id, errs.Argument("channel id", "all its bytes are zero")
	}
	return id, nil
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
	// shrunk: that is [driver.ErrUnsupported]. Without Plain, the ranks together make more of the
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

// A Channel is one rank's end of a communicator. A communicator consists of devices, in one process
// or many, that move and reduce data among them over the hardware's interconnect. A channel is a
// queue of its own that takes groups of collective operations: see [Channel.Submit] and
// [CommandBuffer.Collective]. It has its own stream and OS thread, so only semaphores order its
// work relative to other queues.
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
type Channel struct {
	dev    *Device
	comms  driver.Comms
	comm   driver.Comm
	limits driver.CommLimits // nil if the driver does not implement it
	asked  driver.Comm       // the communicator to pass to limits
	rank   int               // the thread sets it and count under mu before NewChannel returns
	count  int
	opt    ChannelOptions
	q      *Queue
	memory memories

	// deriveMu protects comm: only one call at a time splits, shrinks, suspends or closes the
	// channel.
	deriveMu sync.Mutex
	// mu protects comm, rank, count and fields of the two structs below. It is locked before
	// ring.mu and before the driver's CommError is called.
	mu sync.Mutex
	channelThread
	channelLife
}

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

// comms returns the driver's communicator interface.
func (d *Device) comms(op string) (driver.Comms, error) {
	if err := d.failed(); err != nil {
		return nil, err
	}
	if d.native.Caps.Comms {
		if c, ok := d.native.Native.(driver.Comms); ok {
			return c, nil
		}
	}
	return nil, fmt.Errorf("gpu: %s: communicators on %s: %w", op, d.native.Info.Name, driver.ErrUnsupported)
}

// NewChannelID makes an id. The ranks find each other through this process, which must keep running
// until they have. The first call blocks while the library is loaded.
func (d *Device) NewChannelID() (ChannelID, error) {
	comms, err := d.comms("channel id")
	if err != nil {
		return ChannelID{}, err
	}
	if err := d.native.Stay(); err != nil {
		return ChannelID{}, err
	}
	defer d.native.Leave()
	var id driver.UniqueID
	err = d.native.OnBound(func() (err error) {
		id, err = comms.NewUniqueID()
		return err
	})
	if err != nil {
		return ChannelID{}, fmt.Errorf("gpu: channel id on %s: %w", d.native.Info.Name, err)
	}
	return ChannelID(id), nil
}

// NewChannel makes a rank's end of a channel. It waits until the other ranks have called it too, or
// the context ends.
func (d *Device) NewChannel(ctx context.Context, o ChannelOptions) (*Channel, error) {
	if err := o.meet(ctx, d); err != nil {
		return nil, err
	}
	return d.newChannel(ctx, o, nil, func(c driver.Comms) (driver.Comm, error) {
		desc := driver.CommDesc{ID: driver.UniqueID(o.ID), Rank: o.Rank, Count: o.Count, Name: o.Name, Plain: o.Plain}
		for _, id := range o.More {
			desc.More = append(desc.More, driver.UniqueID(id))
		}
		return c.NewComm(desc)
	})
}

// meet checks the options. It gets a missing rank, count or id from the rendezvous.
func (o *ChannelOptions) meet(ctx context.Context, d *Device) error {
	if o.Rendezvous == nil && (o.lacksPlace() || o.ID == ChannelID{}) {
		return errs.Argument("channel", "an id of zeros, or a rank or a count of -1, and no rendezvous to ask")
	}
	if ctx == nil {
		return errs.Argument("channel", "no context")
	}
	if o.Timeout < 0 {
		return errs.Argument("channel", "a timeout of %v", o.Timeout)
	}
	if i := slices.Index(o.More, ChannelID{}); i >= 0 {
		return errs.Argument("channel", "further id %d is zero", i)
	}
	if err := o.findPlace(1); err != nil {
		return err
	}
	if o.Count < 1 || o.Rank < 0 || o.Rank >= o.Count {
		return errs.Argument("channel", "rank %d of %d", o.Rank, o.Count)
	}
	if o.ID != (ChannelID{}) {
		return nil
	}
	if err := o.shareID(ctx, d); err != nil {
		return fmt.Errorf("gpu: channel: rank %d of %d: %w", o.Rank, o.Count, err)
	}
	return nil
}

// lacksPlace reports whether the rank or the count is missing.
func (o *ChannelOptions) lacksPlace() bool { return o.Rank == -1 || o.Count == -1 || o.Count == 0 }

// findPlace gets a missing rank or count from the rendezvous, if there is one. Each process has n
// ranks.
func (o *ChannelOptions) findPlace(n int) error {
	if o.Rendezvous == nil || !o.lacksPlace() {
		return nil
	}
	rank, count, err := o.Rendezvous.Place()
	if err != nil {
		return fmt.Errorf("gpu: channel: %w", err)
	}
	if o.Rank == -1 {
		o.Rank = rank * n
	}
	if o.Count == -1 || o.Count == 0 {
		o.Count = count * n
	}
	return nil
}

// shareID gets the channel's id through the rendezvous. Rank 0 makes the id, or each rank if the
// rendezvous requires that.
func (o *ChannelOptions) shareID(ctx context.Context, d *Device) error {
	var id []byte
	every, ok := o.Rendezvous.(interface{ EachRankMakesID() bool })
	if o.Rank == 0 || ok && every.EachRankMakesID() {
		made, err := d.NewChannelID()
		if err != nil {
			return err
		}
		id = made[:]
	}
	id, err := o.Rendezvous.Share(ctx, o.Name, id)
	if err == nil {
		o.ID, err = ParseChannelID(id)
	}
	return err
}

// newChannel makes a channel. begin starts making its communicator, on the channel's thread.
// newChannel returns nil if begin returns no communicator.
func (d *Device) newChannel(ctx context.Context, o ChannelOptions, parent *Channel, begin func(driver.Comms) (driver.Comm, error)) (*Channel, error) {
	comms, err := d.comms("channel")
	if err != nil {
		return nil, err
	}
	// Otherwise the channel's thread could call the driver after the device has been closed.
	if err := d.native.Stay(); err != nil {
		return nil, err
	}
	defer d.native.Leave()
	c := &Channel{dev: d, comms: comms, opt: o, rank: o.Rank, count: o.Count,
		channelThread: channelThread{thread: wake.NewThread(&d.native.Waits)}}
	c.channelLife.init()
	c.q = newQueue(d, -1)
	c.q.tl.Lane = (*channelLane)(c)
	started := make(chan error, 1)
	go c.run(started)
	if err := <-started; err != nil {
		<-c.entered[channelEnded]
		return nil, fmt.Errorf("gpu: channel on %s: %w", d.native.Info.Name, err)
	}
	err = d.native.AddLane((*channelLane)(c), c.q.tl)
	made := false
	if err == nil {
		made, err = c.make(ctx, parent, begin)
	}
	if made {
		return c, nil
	}
	d.native.Check(err)
	// The driver may have to abort the parent to abort this one.
	if err != nil && parent != nil && c.handle() != 0 {
		parent.fail(fmt.Errorf("a channel that was to be made of it was given up: %w", err))
	}
	c.fail(errors.Join(err, ErrClosed))
	late, cancel := context.WithTimeout(context.Background(), abortTime)
	defer cancel()
	if end := c.Shutdown(late); end != nil {
		err = errors.Join(err, end)
	}
	if err != nil {
		of := "rank"
		if parent != nil {
			of = "made of rank"
		}
		return nil, fmt.Errorf("gpu: channel on %s: %s %d of %d: %w", d.native.Info.Name, of, o.Rank, o.Count, err)
	}
	return nil, nil
}

// make makes the communicator. It returns false without an error if begin returns none. Meanwhile
// the device may be closed. Closing the device closes the channel, which may destroy the
// communicator at any time.
func (c *Channel) make(ctx context.Context, parent *Channel, begin func(driver.Comms) (driver.Comm, error)) (made bool, err error) {
	var h driver.Comm
	err = c.do(func() (err error) {
		h, err = begin(c.comms)
		c.mu.Lock()
		c.comm = h
		c.mu.Unlock()
		return err
	})
	if err != nil || h == 0 {
		return false, err
	}
	var pauses wake.Pauses
	for {
		ready := false
		err := c.do(func() (err error) {
			if err = c.failed(); err == nil { // else h may have been destroyed
				ready, err = c.comms.CommReady(h)
			}
			return err
		})
		if f := c.failed(); f != nil {
			return false, f
		}
		if ready && err == nil {
			break
		}
		// The parent's failure ends this channel as well.
		if parent != nil && parent.phase() != channelShrinking && parent.failed() != nil {
			why := fmt.Errorf("the channel that it is made of: %w", parent.failed())
			if err != nil {
				why = fmt.Errorf("%w: %w", why, err)
			}
			return false, why
		}
		if err != nil {
			return false, err
		}
		if ctx.Err() != nil {
			return false, fmt.Errorf("%s: %w", c.missing(h), context.Cause(ctx))
		}
		pauses.Pause(ctx.Done())
	}
	err = c.do(func() error {
		if err := c.failed(); err != nil {
			return err
		}
		rank, count, err := c.comms.CommRank(h)
		if err != nil {
			return err
		}
		c.limits, _ = c.comms.(driver.CommLimits)
		c.asked = h
		c.mu.Lock()
		defer c.mu.Unlock()
		c.rank, c.count = rank, count
		if !c.move(channelOpen) {
			return c.failed()
		}
		return nil
	})
	return err == nil, err
}

// missing describes what the creation of a communicator is waiting for.
func (c *Channel) missing(h driver.Comm) string {
	if m, ok := c.comms.(driver.CommMaking); ok {
		if what := m.CommAwaits(h); what != "" {
			return "it waits for " + what
		}
	}
	return "the other ranks have not all come"
}

// isPlain returns an error if the channel is plain, so that no other channel can be derived from
// it.
func (c *Channel) isPlain(op string) error {
	if !c.opt.Plain {
		return nil
	}
	return fmt.Errorf("gpu: channel on %s: %s: it was joined plainly (ChannelOptions.Plain), for ranks of other programs, and lacks the communicators "+
		"besides of which others are made (ncclCommSplit by all ranks): make the new channel under an id of its own: %w", c.dev.native.Info.Name, op, driver.ErrUnsupported)
}

// Rank returns the rank of this end.
func (c *Channel) Rank() int { return c.rank }

// Count returns how many ranks there are.
func (c *Channel) Count() int { return c.count }

// Device returns the device of this end.
func (c *Channel) Device() *Device { return c.dev }

// Abort fails the channel. Operations in flight end and leave undefined data in the memory that
// they write. All submitted operations fail with an error that is [ErrAborted] and wraps err, if
// err is not nil. The other ranks have to notice by themselves. Abort does not wait for the device.
func (c *Channel) Abort(err error) {
	if c.dev == nil {
		return
	}
	if err == nil {
		err = ErrAborted
	} else {
		err = fmt.Errorf("%w: %w", ErrAborted, err)
	}
	c.fail(err)
}

// Split divides the channel into new channels. Each consists of the ranks that pass the same color,
// ordered by key and then by rank. All ranks must call Split. A rank that passes [NoColor] gets a
// nil channel. Split waits until earlier operations are done, and for the other ranks, until the
// context ends. Other goroutines must not submit operations meanwhile. The new channel inherits the
// timeout, and stays open when this channel is closed. This channel fails too if the new channel
// cannot be made, or if the context ends when this rank has begun and others have not come: the
// library can only end the creation of a part by aborting the whole.
func (c *Channel) Split(ctx context.Context, color, key int) (*Channel, error) {
	if color < NoColor || int64(color) > 1<<31-1 || int64(key) != int64(int32(key)) {
		return nil, errs.Argument("split", "color %d, key %d", color, key)
	}
	if ctx == nil {
		return nil, errs.Argument("split", "no context")
	}
	if err := c.isPlain("split"); err != nil {
		return nil, err
	}
	return c.derive(ctx, true, func(comms driver.Comms) (driver.Comm, error) {
		return comms.SplitComm(c.comm, color, key)
	})
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
	for _, r := range exclude {
		if r < 0 || r >= c.count || r == c.rank {
			return nil, errs.Argument("shrink", "excluding rank %d of %d on rank %d", r, c.count, c.rank)
		}
	}
	if len(exclude) == 0 {
		return nil, errs.Argument("shrink", "no ranks to exclude")
	}
	if ctx == nil { // checked before the channel fails
		return nil, errs.Argument("shrink", "no context")
	}
	if err := c.isPlain("shrink"); err != nil {
		return nil, err
	}
	if c.limits != nil {
		if err := c.limits.CheckShrink(c.asked); err != nil {
			return nil, fmt.Errorf("gpu: channel on %s: shrink: %w", c.dev.native.Info.Name, err)
		}
	}
	shrink := func(comms driver.Comms) (driver.Comm, error) { return comms.ShrinkComm(c.comm, exclude, abort) }
	if abort {
		why := fmt.Errorf("%w: to shrink without ranks %v", ErrAborted, exclude)
		if err := c.setFailure(channelShrinking, why); !errors.Is(err, why) {
			return nil, fmt.Errorf("gpu: channel on %s: shrink: it has failed already, or was closed: close it, and make a new one: %w", c.dev.native.Info.Name, c.failed())
		}
		c.failAll()
	}
	made, err := c.derive(ctx, !abort, shrink)
	if abort && err != nil { // the driver may not have aborted the channel
		c.fail(err)
		c.awaitAbort(abortTime)
	}
	return made, err
}

// derive makes a channel from this one. With idle, it first waits until nothing is in flight.
func (c *Channel) derive(ctx context.Context, idle bool, begin func(driver.Comms) (driver.Comm, error)) (*Channel, error) {
	c.deriveMu.Lock()
	defer c.deriveMu.Unlock()
	if idle {
		if err := c.idle(ctx); err != nil {
			return nil, fmt.Errorf("gpu: channel: made of rank %d of %d: %w", c.rank, c.count, err)
		}
	}
	opt := c.opt
	opt.Rank, opt.Count = c.rank, c.count
	return c.dev.newChannel(ctx, opt, c, func(comms driver.Comms) (driver.Comm, error) {
		return c.begin(ctx, func() (driver.Comm, error) { return begin(comms) })
	})
}

// begin runs fn, a call of the library, on the channel's thread, because only one goroutine at a
// time may use a communicator. It serves to make a new communicator, to suspend and to resume. The
// thread may be blocked, before or in fn, until other ranks come. If the context ends or the
// channel fails first, begin gives up.
func (c *Channel) begin(ctx context.Context, fn func() (driver.Comm, error)) (driver.Comm, error) {
	type result struct {
		h   driver.Comm
		err error
	}
	done := make(chan result, 1)
	var taken atomic.Bool // either the thread takes fn, or this call takes it back
	posted := c.post(func() {
		if !taken.CompareAndSwap(false, true) {
			return
		}
		if c.phase() >= channelAborting {
			done <- result{0, c.failed()}
			return
		}
		h, err := fn()
		done <- result{h, err}
	})
	if !posted {
		return 0, errChannelClosed
	}
	look := time.NewTicker(watchEvery)
	defer look.Stop()
	var why error
	for why == nil {
		select {
		case r := <-done:
			return r.h, r.err
		case <-c.entered[channelClosing]:
			why = ErrClosed
		case <-c.entered[channelAborting]:
			why = c.Err()
		case <-ctx.Done():
			why = context.Cause(ctx)
		case <-look.C:
			c.mu.Lock()
			why = c.fault()
			c.mu.Unlock()
		}
	}
	if taken.CompareAndSwap(false, true) {
		return 0, fmt.Errorf("the library had not begun it: %w", why)
	}
	why = fmt.Errorf("the library did not come to an end with it in time: %w", why)
	c.fail(why)
	c.awaitAbort(abortTime)
	select {
	case r := <-done: // a new communicator has been aborted as well, unless it was complete
		if r.err != nil {
			why = fmt.Errorf("%w: %w", why, r.err)
		}
		return r.h, why
	case <-time.After(abortTime):
		return 0, fmt.Errorf("the library did not return %v after the communicator was aborted: %w", abortTime, why)
	}
}

// idle waits until all submitted operations are done.
func (c *Channel) idle(ctx context.Context) error {
	var err error
	ended := wake.Until(ctx, func() bool {
		if err = c.failed(); err != nil || !c.busy() {
			return true
		}
		c.q.tl.Poll(c.q.tl.Latest(), 1)
		return false
	})
	if !ended {
		return ctx.Err()
	}
	return err
}
