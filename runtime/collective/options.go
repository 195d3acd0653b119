package collective

import (
	"context"
	"time"

	"github.com/puregpu/puregpu/runtime/driver"
	"github.com/puregpu/puregpu/runtime/gpu"
	"github.com/puregpu/puregpu/runtime/internal/comm"
)

// An ID names a communicator that is to be made. One rank makes the id with [NewID], and all ranks
// use that id.
type ID driver.UniqueID

// ParseID makes an id from its bytes.
func ParseID(b []byte) (ID, error) {
	id, err := comm.ParseID(b)
	return ID(id), err
}

// NewID makes an id. The ranks find each other through this process, which must keep running until
// all ranks have joined. The first call blocks while the library is loaded.
func NewID(dev *gpu.Device) (ID, error) {
	id, err := part(dev).NewID()
	return ID(id), err
}

// A Rendezvous tells a process its rank and passes ids from one rank to the others. Package
// rendezvous has implementations. If a Rendezvous has a method EachRankMakesID() bool that returns
// true, each rank makes an id and passes it to Share. The method is for libraries that can make the
// same id on every rank.
type Rendezvous interface {
	// Place returns the rank of this process among the processes, and how many processes there are.
	Place() (rank, count int, err error)
	// Share returns, on all ranks, the id that rank 0 passes. The other ranks pass nil, unless
	// EachRankMakesID returns true. The name tells exchanges apart.
	Share(ctx context.Context, name string, id []byte) ([]byte, error)
}

// Options describe a communicator to make.
type Options struct {
	ID ID // the same on all ranks; zero if Rendezvous shares it or NewAll makes it
	// Rank is the rank of this device. -1 means that Rendezvous supplies the rank. If Count is set,
	// a forgotten Rank means rank 0. If Count is missing too, New asks Rendezvous, and refuses 0 if
	// this process has another rank.
	Rank int
	// Count is the number of ranks. -1 or 0 means that Rendezvous supplies the number. In NewAll
	// without a Rendezvous, if Rank is not -1, a Count of 0 means the number of devices.
	Count int

	// More has further ids, which other ranks have made. All ranks must pass the same list. With a
	// few ids, thousands of ranks find each other faster. If the library is too old for several
	// ids, New returns an error.
	More []ID

	// Plain makes the communicator with a single call of the library (C: ncclCommInitRankConfig),
	// as other programs do. So other ranks may belong to a C program or to PyTorch. All ranks that
	// use this package must then set Plain. A plain communicator can be aborted and suspended, but
	// Split and Shrink return [gpu.ErrUnsupported]. Without Plain, New and NewAll make further
	// native communicators, for example for Split, and all ranks must take part. Ranks of other
	// programs do not, so New would wait for them in vain.
	Plain bool

	// Rendezvous supplies the missing fields above. It may be nil if no field is missing.
	Rendezvous Rendezvous

	// Name appears in the library's messages and distinguishes communicators that share a
	// Rendezvous. Name may be empty.
	Name string

	// Timeout limits how long a group of operations may take after it is issued. When it expires,
	// the communicator is aborted. 0 means no limit.
	Timeout time.Duration
}

// in returns the options as Options of package comm.
func (o Options) in() comm.Options {
	more := make([]driver.UniqueID, len(o.More))
	for i, id := range o.More {
		more[i] = driver.UniqueID(id)
	}
	in := comm.Options{ID: driver.UniqueID(o.ID), Rank: o.Rank, Count: o.Count, More: more, Plain: o.Plain,
		Name: o.Name, Timeout: o.Timeout, NewError: newError}
	if o.Rendezvous != nil {
		in.Rendezvous = o.Rendezvous
	}
	return in
}
