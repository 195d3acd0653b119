package comm

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/puregpu/puregpu/runtime/driver"
	"github.com/puregpu/puregpu/runtime/internal/errs"
)

// Options describe a communicator to make. Package collective documents the fields under the same
// names.
type Options struct {
	ID         driver.UniqueID
	Rank       int
	Count      int
	More       []driver.UniqueID
	Plain      bool
	Rendezvous Rendezvous
	Name       string
	Timeout    time.Duration

	// NewError makes the error of a communicator that fails with err. It must be set, and must not
	// block.
	NewError func(d *Device, name string, rank, count int, err error) error
}

// A Rendezvous tells a process its rank and passes ids from one rank to the others. Package
// collective documents it.
type Rendezvous interface {
	Place() (rank, count int, err error)
	Share(ctx context.Context, name string, id []byte) ([]byte, error)
}

// ParseID makes an id from its bytes.
func ParseID(b []byte) (id driver.UniqueID, err error) {
	if len(b) != len(id) {
		return id, errs.Argument("communicator id", "%d bytes; it has %d", len(b), len(id))
	}
	copy(id[:], b)
	if id == (driver.UniqueID{}) {
		return id, errs.Argument("communicator id", "all its bytes are zero")
	}
	return id, nil
}

// NewID makes an id. The first call blocks while the library is loaded.
func (d *Device) NewID() (id driver.UniqueID, err error) {
	comms, err := d.comms("communicator id")
	if err != nil {
		return id, err
	}
	if err := d.Engine.Stay(); err != nil {
		return id, err
	}
	defer d.Engine.Leave()
	err = d.Engine.OnBound(func() (err error) {
		id, err = comms.NewUniqueID()
		return err
	})
	if err != nil {
		return driver.UniqueID{}, fmt.Errorf("gpu: communicator id on %s: %w", d.Engine.Info.Name, err)
	}
	return id, nil
}

// New makes a rank's end of a communicator. It waits until the other ranks have called New too, or
// the context ends.
func (d *Device) New(ctx context.Context, o Options) (*Communicator, error) {
	if err := o.meet(ctx, d); err != nil {
		return nil, err
	}
	return d.newCommunicator(ctx, o, nil, func(c driver.Comms) (driver.Comm, error) {
		return c.NewComm(driver.CommDesc{ID: o.ID, Rank: o.Rank, Count: o.Count, Name: o.Name, Plain: o.Plain, More: o.More})
	})
}

// NewAll makes a communicator with a rank for each device, in their order. The rank in the options
// is the rank of the first device. If NewAll fails for one device, it makes no communicator.
func NewAll(ctx context.Context, devs []*Device, o Options) ([]*Communicator, error) {
	n := len(devs)
	switch {
	case ctx == nil:
		return nil, errs.Argument("communicators", "no context")
	case n == 0:
		return nil, errs.Argument("communicators", "no devices")
	case o.Count == 0 && o.Rank != -1 && o.Rendezvous == nil:
		o.Count = n
		if o.ID == (driver.UniqueID{}) && o.Rank == 0 {
			id, err := devs[0].NewID()
			if err != nil {
				return nil, err
			}
			o.ID = id
		}
	}
	if err := o.findPlace(n); err != nil {
		return nil, err
	}
	if o.Count > 0 && o.Rank > o.Count-n {
		return nil, errs.Argument("communicators", "ranks %d to %d of %d", o.Rank, o.Rank+n-1, o.Count)
	}
	if err := o.meet(ctx, devs[0]); err != nil { // one rendezvous for all communicators
		return nil, err
	}
	all, failures := make([]*Communicator, n), make([]error, n)
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var made sync.WaitGroup
	for i, d := range devs {
		made.Go(func() {
			mine := o
			mine.Rank += i
			if all[i], failures[i] = d.New(ctx, mine); failures[i] != nil {
				cancel(failures[i]) // otherwise the other communicators would wait for this one
			}
		})
	}
	made.Wait()
	err := errors.Join(failures...)
	if err == nil {
		return all, nil
	}
	for _, c := range all {
		if c != nil {
			c.Abort(err)
			c.Close()
		}
	}
	return nil, err
}

// meet checks the options. It gets a missing rank, count or id from the rendezvous.
func (o *Options) meet(ctx context.Context, d *Device) error {
	if o.Rendezvous == nil {
		switch {
		case o.Rank == -1:
			return errs.Argument("communicator", "Options.Rank is -1, and there is no Rendezvous that knows the rank")
		case o.lacksPlace():
			return errs.Argument("communicator", "Options.Count is %d, and there is no Rendezvous that knows the count", o.Count)
		case o.ID == driver.UniqueID{}:
			return errs.Argument("communicator", "Options.ID is zero, and there is no Rendezvous that shares an id")
		}
	}
	if ctx == nil {
		return errs.Argument("communicator", "no context")
	}
	if o.Timeout < 0 {
		return errs.Argument("communicator", "a timeout of %v", o.Timeout)
	}
	if i := slices.Index(o.More, driver.UniqueID{}); i >= 0 {
		return errs.Argument("communicator", "further id %d is zero", i)
	}
	if err := o.findPlace(1); err != nil {
		return err
	}
	if o.Count < 1 || o.Rank < 0 || o.Rank >= o.Count {
		return errs.Argument("communicator", "rank %d of %d", o.Rank, o.Count)
	}
	if o.ID != (driver.UniqueID{}) {
		return nil
	}
	if err := o.shareID(ctx, d); err != nil {
		return fmt.Errorf("gpu: communicator: rank %d of %d: %w", o.Rank, o.Count, err)
	}
	return nil
}

// lacksPlace reports whether the rank or the count is missing.
func (o *Options) lacksPlace() bool { return o.Rank == -1 || o.Count == -1 || o.Count == 0 }

// findPlace gets a missing rank or count from the rendezvous, if there is one. Each process has n
// ranks.
func (o *Options) findPlace(n int) error {
	if o.Rendezvous == nil || !o.lacksPlace() {
		return nil
	}
	rank, count, err := o.Rendezvous.Place()
	if err != nil {
		return fmt.Errorf("gpu: communicator: %w", err)
	}
	switch {
	case o.Rank == -1:
		o.Rank = rank * n
	case o.Rank == 0 && rank != 0: // otherwise several processes would be rank 0, and wait for others
		return errs.Argument("communicator", "Options.Rank is 0, and the Rendezvous says that this process is rank %d: set Rank to -1", rank)
	}
	if o.Count == -1 || o.Count == 0 {
		o.Count = count * n
	}
	return nil
}

// shareID gets the communicator's id through the rendezvous. Rank 0 makes an id. If the rendezvous
// requires an id of every rank, the other ranks make ids too. All use the id that Share returns.
func (o *Options) shareID(ctx context.Context, d *Device) error {
	var id []byte
	every, ok := o.Rendezvous.(interface{ EachRankMakesID() bool })
	if o.Rank == 0 || ok && every.EachRankMakesID() {
		made, err := d.NewID()
		if err != nil {
			return err
		}
		id = made[:]
	}
	id, err := o.Rendezvous.Share(ctx, o.Name, id)
	if err == nil {
		o.ID, err = ParseID(id)
	}
	return err
}
