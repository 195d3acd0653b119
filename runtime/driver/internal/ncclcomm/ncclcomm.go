// Package ncclcomm makes the communicators of package driver out of NCCL's, and of RCCL's, whose API is the same.
//
// # What a rank consists of
//
// Where the library has ncclCommSplit, which came with NCCL 2.18, a rank has three communicators of the library's:
//
//   - base, which does not block: that it is being made can be asked about, and ended. The others are split off it, by all
//     ranks alike and with splitShare, so that the three have one abort flag, and share connections and memory.
//   - ops, which blocks, for operations and registrations. One that does not block would make a thread for each group, and
//     whoever issued it would have to wait until that thread has done so.
//   - source, which does not block, for what is made of the rank by splitting and shrinking. It is without splitShare, so
//     that what is made of it has an abort flag, and everything else, of its own.
//
// No call that takes base or source lasts, so they are only touched under the rank's mutex and can be aborted by anybody at
// any time: that joins the library's threads which are at work for them, and sets the flag, which ends what is under way in
// ops. ops itself is given back by DestroyComm, when nobody is in it any more.
//
// The library can only end the making of what is split off by aborting what it is split off from. So until it is complete,
// aborting it aborts the rank that it is made of.
//
// Giving back may wait for other ranks in a way that nothing ends: the library then waits for its own threads, and these for
// other ranks to let go. It is done on a thread of its own, which is left behind if all else fails.
//
// A plain rank has one communicator, ops, which does not block. Whoever issues a group waits until the library's thread has done so, and
// asks meanwhile. Its calls return at once, and are made one at a time and not while it is being aborted.
//
// The library suspends no communicator that shares its memory, as base, ops and source do: of a plain rank alone. Nor can it give a suspended
// one back whole, which is why that is resumed first, by all ranks; what is aborted while it is suspended leaves some memory behind.
//
// Before 2.18 there is one communicator, ops, which blocks. NewComm waits for the other ranks, and AbortComm takes the
// communicator from whoever is in it, which is the library's own, unsafe, way. Those releases also have communicators that
// do not block, but abort them safely from the thread alone that made them.
package ncclcomm

import (
	"errors"
	"fmt"
	"runtime"
	"sync"
	"time"

	"github.com/puregpu/puregpu/internal/tried"
	"github.com/puregpu/puregpu/nccl"
	"github.com/puregpu/puregpu/runtime/dl"
	"github.com/puregpu/puregpu/runtime/driver"
)

// A Library is opened when it is needed for the first time. The devices of a driver share it.
type Library struct {
	get func() (*nccl.Library, error)

	mu    sync.Mutex
	names map[string]*byte
	stray []*rank // out of the collector's reach
}

// NCCL is NCCL, where nccl.Open finds it.
func NCCL(opt nccl.Options) *Library { return newLibrary(nccl.Open, opt) }

// RCCL is RCCL, where nccl.OpenRCCL finds it.
func RCCL(opt nccl.Options) *Library { return newLibrary(nccl.OpenRCCL, opt) }

func newLibrary(open func(nccl.Options) (*nccl.Library, error), opt nccl.Options) *Library {
	return &Library{names: map[string]*byte{}, get: sync.OnceValues(func() (*nccl.Library, error) {
		lib, err := open(opt)
		if err != nil {
			return nil, unsupported{err}
		}
		if err := tried.NotReady(lib); err != nil {
			return nil, err // each file that was found, with its answer
		}
		return lib, nil
	})}
}

// cname returns a communicator's name as the library takes it, which goes on reading it: it stays.
func (l *Library) cname(name string) (*byte, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if p := l.names[name]; p != nil {
		return p, nil
	}
	p, err := dl.CString(name)
	if err == nil {
		l.names[name] = p
	}
	return p, err
}

// keep keeps a rank for ever, whose words a thread of the library may still write.
func (l *Library) keep(r *rank) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.stray = append(l.stray, r)
}

// A Host is the device, as far as its communicators need it.
type Host struct {
	Bind   func() error                                  // makes it current on the calling thread
	Unbind func() error                                  // takes it from the thread
	Fail   func(op string, err error, what string) error // makes an error of the driver's
}

// Comms are a device's communicators. It implements driver.Comms, driver.CommLimits, driver.CommMaking and driver.CommSuspension.
type Comms struct {
	lib      *Library
	host     Host
	patience time.Duration // how long the library may take to end what was aborted

	mu    sync.RWMutex
	last  driver.Comm
	ranks map[driver.Comm]*rank
}

var (
	_ driver.Comms          = (*Comms)(nil)
	_ driver.CommLimits     = (*Comms)(nil)
	_ driver.CommMaking     = (*Comms)(nil)
	_ driver.CommSuspension = (*Comms)(nil)
)

// New prepares communicators. It does not open the library.
func New(lib *Library, host Host) *Comms {
	return &Comms{lib: lib, host: host, patience: 3 * time.Second, ranks: map[driver.Comm]*rank{}}
}

// find returns what a handle stands for.
func (c *Comms) find(h driver.Comm) (*rank, error) {
	c.mu.RLock()
	r := c.ranks[h]
	c.mu.RUnlock()
	if r == nil {
		return nil, fmt.Errorf("there is none of this handle, or no longer: %w", nccl.ErrorInvalidArgument)
	}
	return r, nil
}

// made returns a rank that has been made, or nil.
func (c *Comms) made(h driver.Comm) *rank {
	r, err := c.find(h)
	if err != nil {
		return nil
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.stage != made {
		return nil
	}
	return r
}

// add gives a rank its handle. No handle comes twice.
func (c *Comms) add(r *rank) driver.Comm {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.last++
	r.handle = c.last
	c.ranks[r.handle] = r
	return r.handle
}

func (c *Comms) remove(r *rank) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.ranks, r.handle)
}

// fail makes an error of the driver's. It is for the way of failure alone: its arguments are allocated.
func (c *Comms) fail(op string, err error, format string, args ...any) error {
	return c.host.Fail(op, err, fmt.Sprintf(format, args...))
}

// failComm is fail for what went wrong with a communicator.
func (c *Comms) failComm(op string, h driver.Comm, err error) error {
	return c.fail(op, err, "communicator %d", h)
}

// unsupported is an error that is driver.ErrUnsupported too, and speaks for itself.
type unsupported struct{ error }

func (e unsupported) Unwrap() []error { return []error{e.error, driver.ErrUnsupported} }

var (
	errAborted = errors.New("it was aborted")
	errMaking  = errors.New("it is still being made: ask CommReady")
	errClosing = errors.New("it is being destroyed")
	errShrunk  = errors.New("it was given up to be shrunk, and can only be destroyed")
	errPlain   = unsupported{errors.New("it was joined plainly, for ranks of other programs to take part, and has none of the communicators besides, " +
		"split off by all ranks alike (ncclCommSplit), of which others are made: make the new one under an id of its own, or without CommDesc.Plain")}
	errShares = unsupported{errors.New("it shares its memory with the communicators besides, by which it can be aborted, split and shrunk, and the library suspends none " +
		"that does (ncclCommSuspend): have all ranks join plainly (Plain)")}
	errSuspended = fmt.Errorf("it is suspended: resume it before (ncclCommResume): %w", nccl.ErrorInvalidUsage)
	errOccupied  = fmt.Errorf("another call is in it: %w", driver.ErrBusy)
	errLeft      = errors.New("the library has not come to an end with it in time, and was left to itself")
)

// explain adds what the library has to say of its latest failure.
func explain(lib *nccl.Library, err error) error {
	if _, ok := errors.AsType[nccl.Result](err); !ok {
		return err
	}
	if text, e := lib.GetLastError(0); e == nil && text != "" {
		return fmt.Errorf("%w (its last word: %s)", err, text)
	}
	return err
}

// pending takes it for no error that the library has not finished.
func pending(err error) error {
	if err == nccl.ErrorInProgress {
		return nil
	}
	return err
}

// poll asks whether a communicator has finished.
func poll(lib *nccl.Library, x nccl.Comm) (done bool, err error) {
	state, err := lib.CommGetAsyncError(x)
	switch {
	case err != nil:
		return false, explain(lib, err)
	case state == nccl.Success:
		return true, nil
	case state == nccl.ErrorInProgress:
		return false, nil
	}
	return false, explain(lib, state)
}

// A pause gets longer with every use, up to a tenth of a millisecond.
type pause int

func (p *pause) wait() {
	const yields = 64
	if *p++; *p < yields {
		runtime.Gosched()
		return
	}
	time.Sleep(min(time.Duration(*p-yields+1)*time.Microsecond, 100*time.Microsecond))
}
