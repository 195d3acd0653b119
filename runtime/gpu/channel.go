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
	"github.com/puregpu/puregpu/runtime/internal/wake"
)

// A ChannelID names a channel that is to be made: one rank makes it, with [Device.NewChannelID], and all ranks pass it.
type ChannelID driver.UniqueID

// ParseChannelID makes an id of the bytes of one.
func ParseChannelID(b []byte) (id ChannelID, err error) {
	if len(b) != len(id) {
		return id, argument("channel id", "%d bytes; it has %d", len(b), len(id))
	}
	copy(id[:], b)
	if id == (ChannelID{}) {
		return id, argument("channel id", "all its bytes are zero")
	}
	return id, nil
}

// A Rendezvous tells a process which rank it is and passes ids from one rank to the others. Package rendezvous has some. One that has
// a method EachRankMakesID() bool, and returns true, is given an id by all ranks, where the library makes the same one on each.
type Rendezvous interface {
	// Place returns the process's rank and how many there are.
	Place() (rank, count int, err error)
	// Share returns on all ranks what rank 0 passes. The others pass nil. Names tell several exchanges apart.
	Share(ctx context.Context, name string, id []byte) ([]byte, error)
}

// ChannelOptions say which channel to make.
type ChannelOptions struct {
	ID    ChannelID // the same on all ranks; or zero, for Rendezvous to share one
	Rank  int       // of this device; -1 for Rendezvous to tell, as is:
	Count int       // how many ranks there are; 0 also means -1, but in a group with a Rank the number of its devices

	// More are further ids, made on other ranks and the same on all: with a few, thousands of ranks find each other faster. An older
	// library cannot use them, and says so.
	More []ChannelID

	// Plain joins with one call of the library's (C: ncclCommInitRankConfig), as programs of others do, so that other ranks may be PyTorch's, say,
	// or of C: all of this package's then give it. Such a channel can be aborted as any, and be suspended, but neither be split nor shrunk: [driver.ErrUnsupported].
	// Without it the ranks make more of the library's communicators together, which they are split by, and others' ranks would be waited for in vain.
	Plain bool

	// Rendezvous is asked for what is not given. It may be nil if nothing is missing.
	Rendezvous Rendezvous

	// Name is for the library's own messages, and to tell channels apart that share a Rendezvous. It may be empty.
	Name string

	// Timeout is how long a group of operations may take from when it is issued; then the channel is aborted. 0 is for ever.
	Timeout time.Duration
}

// A Channel is one rank's end of a communicator: devices, of one process or of many, that move and reduce data among them with
// what the hardware has between them. It is a queue of its own, which takes groups of collective operations, see
// [Channel.Submit] and [CommandBuffer.Collective], and has a stream and an OS thread for them: only semaphores order them and the
// work of other queues.
//
// What one channel's ranks do in different order, or with different sizes, or do not do at all, nobody can detect in all cases:
// it waits until a timeout. The ranks that take part in operations of several channels must order these alike, by semaphores.
//
// A channel fails as a whole: when another rank dies, an operation fails or takes too long, or somebody aborts it. Then all that
// was submitted to it fails, with one error, and all that comes. What is left is Close. All methods may be called concurrently.
//
// Work that waits for a group of a failed channel fails as well. It does not run if it has not been issued yet. If it has been issued it
// runs, also in a [Stream]: the memory that the group and this work wrote is undefined. Restore or broadcast it before you go on.
type Channel struct {
	dev    *Device
	comms  driver.Comms
	comm   driver.Comm
	limits driver.CommLimits // nil if it has nothing to say
	asked  driver.Comm       // whom that is asked about
	rank   int               // it and count are set by the thread under mu, before the channel is handed out
	count  int
	opt    ChannelOptions
	q      *Queue
	memory memories

	deriveMu sync.Mutex // protects comm: one call at a time makes a channel of this one, suspends it or closes it
	mu       sync.Mutex // protects comm, rank, count, and fields of the two below; locked before ring.mu and the driver's CommError
	channelThread
	channelLife
}

// A ChannelError is what a channel failed with.
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

// comms returns the device's communicators.
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

// NewChannelID makes an id. The ranks will find each other through this process, which must go on until they have. It blocks
// while the library is loaded, the first time.
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

// NewChannel makes a rank's end of a channel. It waits for the other ranks to do so, until the context ends.
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

// meet checks the options, and asks the rendezvous for the place and the id that they lack.
func (o *ChannelOptions) meet(ctx context.Context, d *Device) error {
	if o.Rendezvous == nil && (o.lacksPlace() || o.ID == ChannelID{}) {
		return argument("channel", "an id of zeros, or a rank or a count of -1, and no rendezvous to ask")
	}
	if ctx == nil {
		return argument("channel", "no context")
	}
	if o.Timeout < 0 {
		return argument("channel", "a timeout of %v", o.Timeout)
	}
	if i := slices.Index(o.More, ChannelID{}); i >= 0 {
		return argument("channel", "further id %d is zero", i)
	}
	if err := o.findPlace(1); err != nil {
		return err
	}
	if o.Count < 1 || o.Rank < 0 || o.Rank >= o.Count {
		return argument("channel", "rank %d of %d", o.Rank, o.Count)
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

// findPlace asks the rendezvous, if there is one, for a rank or a count that is missing. Each process
// has n ranks.
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

// shareID gets the channel's id through the rendezvous. Rank 0 makes it, or each rank if the
// rendezvous wants that.
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

// newChannel makes a channel of a communicator that begin begins to make, on the channel's thread. It returns nil if that is
// none.
func (d *Device) newChannel(ctx context.Context, o ChannelOptions, parent *Channel, begin func(driver.Comms) (driver.Comm, error)) (*Channel, error) {
	comms, err := d.comms("channel")
	if err != nil {
		return nil, err
	}
	if err := d.native.Stay(); err != nil { // else its thread could call the driver after the device has been closed
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
	if err != nil && parent != nil && c.handle() != 0 { // which a driver may have to abort to take this one back
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

// make makes the communicator, and reports false without an error if that is none. Whoever closes the device may close the channel, and
// have the communicator destroyed, at any time.
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
			if err = c.failed(); err == nil { // else it may have been destroyed
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
		if parent != nil && parent.phase() != channelShrinking && parent.failed() != nil { // which has ended this as well
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

// missing says what the making of a communicator waits for.
func (c *Channel) missing(h driver.Comm) string {
	if m, ok := c.comms.(driver.CommMaking); ok {
		if what := m.CommAwaits(h); what != "" {
			return "it waits for " + what
		}
	}
	return "the other ranks have not all come"
}

// isPlain returns an error if the channel is one of which no others can be made.
func (c *Channel) isPlain(op string) error {
	if !c.opt.Plain {
		return nil
	}
	return fmt.Errorf("gpu: channel on %s: %s: it was joined plainly (ChannelOptions.Plain), for ranks of other programs, and lacks the communicators "+
		"besides of which others are made (ncclCommSplit by all ranks): make the new channel under an id of its own: %w", c.dev.native.Info.Name, op, driver.ErrUnsupported)
}

// Rank returns the rank of the channel's end.
func (c *Channel) Rank() int { return c.rank }

// Count returns how many ranks there are.
func (c *Channel) Count() int { return c.count }

// Device returns the device of this end.
func (c *Channel) Device() *Device { return c.dev }

// Abort fails the channel: what is under way ends, with anything in the memory that it was to write, and what was submitted fails,
// with an error that is [ErrAborted] and the one given, if it is not nil. The other ranks have to find out by themselves. It does not
// wait for the device.
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

// Split divides the channel into new ones: of the ranks that give the same color, ordered by key and then by rank. All ranks must
// call it; one that gives a color of [NoColor] gets no channel, and nil. It waits until what was submitted before is done and for the
// other ranks, until the context ends, and while it does nothing may be submitted by other goroutines. The new channel has
// the timeout of this one, and stays when that is closed. If the context ends when this rank has begun and others have not come, or
// the new channel cannot be made, this one fails too: the making of a part can only be ended by aborting the whole.
func (c *Channel) Split(ctx context.Context, color, key int) (*Channel, error) {
	if color < NoColor || int64(color) > 1<<31-1 || int64(key) != int64(int32(key)) {
		return nil, argument("split", "color %d, key %d", color, key)
	}
	if ctx == nil {
		return nil, argument("split", "no context")
	}
	if err := c.isPlain("split"); err != nil {
		return nil, err
	}
	return c.derive(ctx, true, func(comms driver.Comms) (driver.Comm, error) {
		return comms.SplitComm(c.comm, color, key)
	})
}

// NoColor is the color of a rank that wants no part in what a channel is split into.
const NoColor = driver.NoColor

// Shrink makes a channel of all ranks but some, which must not call it. With abort what is under way on this one is aborted first,
// as after a rank has died, and it fails; else it waits until that is done. It waits for the other ranks until the context ends, and if
// they have not come by then this channel fails, as with [Channel.Split].
//
// A channel that has failed already, which it does when the library finds that a rank is gone, cannot be shrunk: close it, and make a new
// one. The ranks that are to go on may shrink one after the other; with abort that is not their end for those that have yet to come. Nor
// can a channel be shrunk of which the library has a group that waits for a rank to come for the first time: when the context ends, or
// the group's time, it is aborted instead.
func (c *Channel) Shrink(ctx context.Context, abort bool, exclude ...int) (*Channel, error) {
	for _, r := range exclude {
		if r < 0 || r >= c.count || r == c.rank {
			return nil, argument("shrink", "excluding rank %d of %d on rank %d", r, c.count, c.rank)
		}
	}
	if len(exclude) == 0 {
		return nil, argument("shrink", "no ranks to exclude")
	}
	if ctx == nil { // before the channel fails
		return nil, argument("shrink", "no context")
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
	if abort && err != nil { // then perhaps the driver has not aborted it
		c.fail(err)
		c.awaitAbort(abortTime)
	}
	return made, err
}

// derive makes a channel of this one, if so when nothing is under way.
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

// begin has the thread call the library, to begin to make a communicator of this one or for something else, for one goroutine at a time may
// use it. The thread may be held up before, or by that, until other ranks come: if the context ends, or the channel, that is given up.
func (c *Channel) begin(ctx context.Context, fn func() (driver.Comm, error)) (driver.Comm, error) {
	type result struct {
		h   driver.Comm
		err error
	}
	done := make(chan result, 1)
	var taken atomic.Bool // by the thread, or back
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
	case r := <-done: // what there is of it has been aborted as well, unless it was complete
		if r.err != nil {
			why = fmt.Errorf("%w: %w", why, r.err)
		}
		return r.h, why
	case <-time.After(abortTime):
		return 0, fmt.Errorf("the library did not return %v after the communicator was aborted: %w", abortTime, why)
	}
}

// idle waits until all that was submitted is done.
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
