// Package ncclcomm implements the communicators of package driver with NCCL, and with RCCL, whose
// API is the same.
//
// # What a rank consists of
//
// If the library has ncclCommSplit, which came with NCCL 2.18, a rank that is not plain
// (CommDesc.Plain) has three communicators of the library:
//
//   - base is nonblocking, so its creation can be polled and aborted. All ranks split ops and
//     source off base. base has NCCL's option splitShare, so the three share one abort flag,
//     connections and memory.
//   - ops is blocking, and is used for operations and registrations. A nonblocking communicator
//     would start a thread for each group, and the caller would have to wait for that thread.
//   - source is nonblocking. Other ranks are split or shrunk from source. source has no splitShare,
//     so those ranks have an abort flag and all other state of their own.
//
// No call on base or source blocks. So a goroutine calls the library with base or source only under
// the rank's mutex, or after it has taken them from the rank to release or abort them. This way any
// goroutine can abort base and source at any time. An abort joins the library's threads that work
// for base or source, and sets the abort flag, which ends the calls and operations in flight in
// ops. DestroyComm later releases ops, when no call uses it any more.
//
// The library can stop a split only by aborting the communicator that is being split. So until a
// split is complete, aborting the new rank also aborts the rank that the new one is made from.
//
// Destroying a communicator may wait for other ranks: the library waits for its own threads, and
// these wait for other ranks. Nothing can interrupt the wait. So the call runs on a separate
// thread, which is left behind if the call does not end soon after AbortComm.
//
// A plain rank has one communicator, ops, which is nonblocking. The caller of a group polls until
// the library's thread has issued the group. All calls on ops return at once. They are made one at
// a time, and never during an abort.
//
// The library cannot suspend communicators that share memory, as base, ops and source do. So only
// plain ranks can be suspended. The library cannot release a suspended communicator completely
// either. So DestroyComm first resumes the communicator, on all ranks. An abort of a suspended
// communicator leaks some memory.
//
// Before 2.18 there is one communicator, ops, which is blocking. NewComm waits for the other ranks.
// AbortComm aborts the communicator while other calls may use it, which is as unsafe as the
// library's own abort. Those releases also have nonblocking communicators, but only the thread that
// made one can abort it safely.
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

// A Library is NCCL or RCCL, opened when it is first needed. The devices of a driver share one
// Library.
type Library struct {
	get func() (*nccl.Library, error)

	mu    sync.Mutex
	names map[string]*byte // C strings of communicators' names
	stray []*rank          // keeps ranks from the garbage collector
}

// NCCL returns NCCL, opened with nccl.Open.
func NCCL(opt nccl.Options) *Library { return newLibrary(nccl.Open, opt) }

// RCCL returns RCCL, opened with nccl.OpenRCCL.
func RCCL(opt nccl.Options) *Library { return newLibrary(nccl.OpenRCCL, opt) }

func newLibrary(open func(nccl.Options) (*nccl.Library, error), opt nccl.Options) *Library {
	return &Library{names: map[string]*byte{}, get: sync.OnceValues(func() (*nccl.Library, error) {
		lib, err := open(opt)
		if err != nil {
			return nil, unsupported{err}
		}
		if err := tried.NotReady(lib); err != nil {
			return nil, err // the error names each file that was found, with the error of that file
		}
		return lib, nil
	})}
}

// cname returns a communicator's name as a C string. The library keeps the pointer, so cname keeps
// the string alive as long as l.
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

// keep keeps a rank alive forever, because a thread of the library may still write to the rank.
func (l *Library) keep(r *rank) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.stray = append(l.stray, r)
}

// A Host holds the functions of a device that its communicators need.
type Host struct {
	Bind   func() error                                  // makes the device current on the calling thread
	Unbind func() error                                  // makes no device current on the calling thread
	Fail   func(op string, err error, what string) error // makes a driver.Error
}

// Comms makes a device's communicators. It implements driver.Comms, driver.CommLimits,
// driver.CommMaking and driver.CommSuspension.
type Comms struct {
	lib      *Library
	host     Host
	patience time.Duration // how long a call may run on after its rank is aborted

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

// New makes the Comms of a device. It does not open the library.
func New(lib *Library, host Host) *Comms {
	return &Comms{lib: lib, host: host, patience: 3 * time.Second, ranks: map[driver.Comm]*rank{}}
}

// find returns the rank with a handle.
func (c *Comms) find(h driver.Comm) (*rank, error) {
	c.mu.RLock()
	r := c.ranks[h]
	c.mu.RUnlock()
	if r == nil {
		return nil, fmt.Errorf("no such communicator, or it was destroyed: %w", nccl.ErrorInvalidArgument)
	}
	return r, nil
}

// made returns the rank with a handle if the rank is in the stage made, or nil.
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

// add gives a rank a new handle. Handles are never reused.
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

// fail makes a driver.Error. Passing the arguments allocates, so fail is only for error paths.
func (c *Comms) fail(op string, err error, format string, args ...any) error {
	return c.host.Fail(op, err, fmt.Sprintf(format, args...))
}

// failComm is fail for an error of a communicator.
func (c *Comms) failComm(op string, h driver.Comm, err error) error {
	return c.fail(op, err, "communicator %d", h)
}

// unsupported makes an error match driver.ErrUnsupported without changing its text.
type unsupported struct{ error }

func (e unsupported) Unwrap() []error { return []error{e.error, driver.ErrUnsupported} }

var (
	errAborted = errors.New("it was aborted")
	errMaking  = errors.New("it is still being made: ask CommReady")
	errClosing = errors.New("it is being destroyed")
	errShrunk  = errors.New("it was aborted by ShrinkComm, and can only be destroyed")
	errPlain   = unsupported{errors.New("it joined with CommDesc.Plain, so that ranks of other programs can take part, and cannot be split (ncclCommSplit) or shrunk: " +
		"make the new communicator with an id of its own, or join without CommDesc.Plain")}
	errShares = unsupported{errors.New("it shares its memory with the communicators that make it safe to abort, and the library cannot suspend such communicators " +
		"(ncclCommSuspend): join with CommDesc.Plain")}
	errSuspended = fmt.Errorf("it is suspended: call ResumeComm first (ncclCommResume): %w", nccl.ErrorInvalidUsage)
	errOccupied  = fmt.Errorf("another call uses it: %w", driver.ErrBusy)
	errLeft      = errors.New("the library did not end its work in time; its thread was left behind")
)

// explain adds the library's last error message to err, if err is an error code of the library.
func explain(lib *nccl.Library, err error) error {
	if _, ok := errors.AsType[nccl.Result](err); !ok {
		return err
	}
	if text, e := lib.GetLastError(0); e == nil && text != "" {
		return fmt.Errorf("%w (the library's last message: %s)", err, text)
	}
	return err
}

// pending replaces the error "in progress" by nil.
func pending(err error) error {
	if err == nccl.ErrorInProgress {
		return nil
	}
	return err
}

// poll reports whether a communicator has finished its asynchronous work.
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

// A pause waits a little longer with every use, up to 0.1 ms. At first it only yields.
type pause int

func (p *pause) wait() {
	const yields = 64
	if *p++; *p < yields {
		runtime.Gosched()
		return
	}
	time.Sleep(min(time.Duration(*p-yields+1)*time.Microsecond, 100*time.Microsecond))
}
