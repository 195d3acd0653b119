package simdriver

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"github.com/puregpu/puregpu/runtime/driver"
)

var _ driver.Comms = (*device)(nil)

// comms holds the communicators of a driver. Through it ranks find each other. mu protects the
// fields, the communicators and their ranks. While mu is held, only the mutexes of queues, memory
// and tables may be locked. Streams lock mu, so the race detector sees more order between streams
// than a GPU has.
type comms struct {
	mu     sync.Mutex
	ids    map[driver.UniqueID]*communicator // nil communicator: the id was used before
	count  uint64                            // number of ids made so far
	ranks  table[rank]
	memory table[commMemory]
	lazy   bool
	linger bool
	needs  uint64 // device memory that a rank takes, in bytes
}

// A communicator is the state that its ranks share.
type communicator struct {
	id    driver.UniqueID // zero if the communicator was made from another communicator
	ranks []*rank         // by number; each is nil until that rank has joined
	came  int
	live  int       // number of ranks that are not destroyed, including ranks whose NewComm disagreed with others
	at    time.Time // time at which the communicator is ready, if all ranks have joined
	bad   error     // disagreement between ranks; if set, no more operations execute

	leaving int           // number of ranks that are destroyed, or wait in DestroyComm
	parted  chan struct{} // closed when all ranks are leaving

	makings []*making
	lines   map[[2]int]*line // by sender and receiver; for collectives both are anyone
	links   map[[2]int]*link // by sender and receiver; for collectives both are anyone
}

// A rank is one end of a communicator.
type rank struct {
	dev    *device
	id     driver.Comm
	name   string
	number int
	plain  bool          // the rank joined with CommDesc.Plain
	of     *communicator // nil until from has ended
	from   *making       // the call that makes the rank; nil for NewComm
	made   bool          // CommReady has returned true

	out     error         // reason for which the rank has left the communicator; nil until then
	ended   chan struct{} // closed when out is set
	orderly bool          // the rank was made, and destroyed with nothing in flight; that is an error only for ranks that still need this rank
	secret  bool          // other ranks never notice that the rank has left
	noticed time.Time     // time at which other ranks notice that the rank has left, unless secret
	shrunk  *rank         // the new rank that ShrinkComm makes, if ShrinkComm aborted this rank
	leaving bool          // the rank is destroyed, or waits in DestroyComm

	awaits *making // the rank's call of NewWindow, SuspendComm or ResumeComm that is waiting

	has       uint64 // bytes of device memory that the rank holds
	suspended bool

	groups int      // number of groups in streams
	begun  []*group // groups that have begun
	last   mark     // position in a stream behind the last group
	spare  []*group
	count  map[[2]int]uint64 // number of operations so far, by peer and kind; all collectives count under {anyone, anyone}
	linked map[[2]int]bool   // by link: the rank has used it
	memory []*commMemory
}

// String names the rank.
func (r *rank) String() string {
	if r.name != "" {
		return fmt.Sprintf("rank %d of communicator %q", r.number, r.name)
	}
	return fmt.Sprintf("rank %d of communicator %#x", r.number, uint64(r.id))
}

// communicate begins a call about communicators that puts nothing into a stream.
func (v *device) communicate(c code, bound bool) error {
	return v.enterIf(c, bound, v.d.caps.Comms)
}

// NewUniqueID makes an id by which ranks join a new communicator.
func (v *device) NewUniqueID() (driver.UniqueID, error) {
	if err := v.communicate(codeNewUniqueID, true); err != nil {
		return driver.UniqueID{}, err
	}
	cs := &v.d.comms
	cs.mu.Lock()
	defer cs.mu.Unlock()
	cs.count++
	var id driver.UniqueID
	binary.BigEndian.PutUint64(id[:], cs.count)
	binary.BigEndian.PutUint64(id[8:], rand.Uint64()) // random, so that no other driver makes the same id
	cs.ids[id] = &communicator{id: id}
	return id, nil
}

// NewComm makes one rank. A mistake in desc is an error of this call. A disagreement between ranks
// is an error of CommReady on all ranks.
func (v *device) NewComm(desc driver.CommDesc) (driver.Comm, error) {
	if err := v.communicate(codeNewComm, true); err != nil {
		return 0, err
	}
	d := v.d
	d.comms.mu.Lock()
	defer d.comms.mu.Unlock()
	m, ok := d.comms.ids[desc.ID]
	var bad string
	switch {
	case desc.ID == driver.UniqueID{}:
		bad = "the unique id is zero: make one with NewUniqueID"
	case !ok:
		bad = "the unique id was not made by a device of this driver: simulated GPUs of different processes or drivers cannot reach each other"
	case m == nil || m.came > 0 && m.came == len(m.ranks):
		bad = "the unique id was used already: every communicator needs a new one"
	case len(desc.More) > 0 && slices.ContainsFunc(desc.More, func(id driver.UniqueID) bool { _, ok := d.comms.ids[id]; return !ok }):
		bad = "a further unique id was not made by a device of this driver"
	case desc.Count < 1 || desc.Count > maxDevices:
		bad = fmt.Sprintf("a communicator has 1 to %d ranks", maxDevices)
	case desc.Rank < 0 || desc.Rank >= desc.Count:
		bad = "ranks are numbered from 0"
	}
	if bad != "" {
		return 0, failf(codeNewComm, "rank %d of %d: %w: %s", desc.Rank, desc.Count, ErrInvalidValue, bad)
	}
	r := v.newRank(desc.Name)
	if r == nil {
		return 0, fail(codeNewComm, errTooMany)
	}
	r.number, r.of, r.plain = desc.Rank, m, desc.Plain
	r.come(desc.Count)
	return r.id, nil
}

// newRank makes a rank that is in no communicator yet. It returns nil if there are too many ranks.
// The caller holds comms.mu, here and for the helpers below, except await.
func (v *device) newRank(name string) *rank {
	r := &rank{dev: v, name: name, ended: make(chan struct{}), count: make(map[[2]int]uint64), linked: make(map[[2]int]bool)}
	r.id = driver.Comm(v.d.comms.ranks.add(r))
	if r.id == 0 {
		return nil
	}
	return r
}

// come adds a rank to its communicator. count is the number of ranks that the rank expects.
func (r *rank) come(count int) {
	m := r.of
	m.live++
	if m.came == 0 {
		m.open(make([]*rank, count))
	}
	switch other := m.ranks[min(r.number, len(m.ranks)-1)]; {
	case count != len(m.ranks):
		m.fail("rank %d, on device %d, was made with a count of %d, the first rank with %d", r.number, r.dev.index, count, len(m.ranks))
		return
	case other != nil:
		m.fail("rank %d was made twice, on device %d and on device %d", r.number, other.dev.index, r.dev.index)
		return
	}
	for _, o := range m.ranks {
		if o != nil && o.dev == r.dev {
			m.fail("ranks %d and %d are both on device %d; each needs its own device", o.number, r.number, r.dev.index)
			return
		}
	}
	m.ranks[r.number] = r
	if m.came++; m.came == count {
		m.ready(r.dev.d, codeNewComm)
	}
}

func (m *communicator) open(ranks []*rank) {
	m.ranks = ranks
	m.parted = make(chan struct{})
	m.lines, m.links = make(map[[2]int]*line), make(map[[2]int]*link)
}

// ready sets the time at which the communicator is ready, after all ranks have joined.
func (m *communicator) ready(d *Driver, c code) {
	m.at = time.Now()
	if !d.manual {
		m.at = m.at.Add(time.Duration(d.delays[c].Load()))
	}
}

// fail records the first disagreement of the ranks.
func (m *communicator) fail(format string, args ...any) {
	if m.bad == nil {
		m.bad = fmt.Errorf("%w: %s", ErrMismatch, fmt.Sprintf(format, args...))
	}
}

// absent returns an error if r's device is lost, or if r has left and other ranks have noticed
// that. If r.orderly is set, absent returns nil.
func (r *rank) absent() error {
	if r.orderly {
		return nil
	}
	if p := r.dev.down.Load(); p != nil && p.lost {
		return fmt.Errorf("%w: rank %d, because device %d is lost: %v", ErrRankGone, r.number, r.dev.index, p.err)
	}
	if r.out == nil || r.secret || time.Now().Before(r.noticed) {
		return nil
	}
	return fmt.Errorf("%w: rank %d, on device %d: %v", ErrRankGone, r.number, r.dev.index, r.out)
}

// expects reports whether ShrinkComm has aborted r to make a new communicator in which o takes part
// too, and r's new rank is not absent. For o, that abort of r is no failure.
func (r *rank) expects(o *rank) bool {
	return r.shrunk != nil && r.shrunk.absent() == nil && r.shrunk.from.takesPart(o.number)
}

// trouble returns the error of r that r can know now, or nil.
func (r *rank) trouble() error {
	switch {
	case r.out != nil:
		return r.out
	case r.of == nil:
		return r.from.trouble()
	case r.of.bad != nil:
		return r.of.bad
	}
	for _, o := range r.of.ranks {
		if o == nil || o == r || o.expects(r) {
			continue
		}
		if err := o.absent(); err != nil {
			return err
		}
		if o.orderly && r.needs(o.number) {
			return fmt.Errorf("%w: rank %d, on device %d, was destroyed; operations in flight of rank %d need it",
				ErrRankGone, o.number, o.dev.index, r.number)
		}
	}
	if r.awaits != nil {
		return r.awaits.trouble()
	}
	return nil
}

// usable returns an error unless CommReady has returned true for r, and r has not failed. A
// suspended rank is usable only for ResumeComm and CommStats.
func (r *rank) usable(c code) error {
	err := r.trouble()
	switch {
	case err != nil:
	case !r.made:
		err = fmt.Errorf("%w: wait until CommReady returns true", ErrNotReady)
	case r.suspended && c != codeResumeComm && c != codeCommStats:
		err = fmt.Errorf("%w: call ResumeComm first", ErrSuspended)
	}
	if err != nil {
		return failf(c, "%v: %w", r, err)
	}
	return nil
}

// rank finds a rank of the device by handle.
func (v *device) rank(c code, h driver.Comm) (*rank, error) {
	r := v.d.comms.ranks.get(uintptr(h))
	if r == nil {
		return nil, failf(c, "communicator %#x: %w: no such communicator, or it was destroyed", uint64(h), ErrInvalidHandle)
	}
	if r.dev != v {
		return nil, failf(c, "communicator %#x: %w: it belongs to device %d, not %d", uint64(h), ErrInvalidHandle, r.dev.index, v.index)
	}
	return r, nil
}

// CommReady reports whether all ranks have joined and, after that, the latency of the call that
// made the communicator has passed.
func (v *device) CommReady(h driver.Comm) (bool, error) {
	if err := v.communicate(codeCommReady, true); err != nil {
		return false, err
	}
	v.d.comms.mu.Lock()
	defer v.d.comms.mu.Unlock()
	r, err := v.rank(codeCommReady, h)
	if err != nil {
		return false, err
	}
	if r.made && r.out == nil {
		return true, nil // CommReady stays true until this rank leaves, even if the communicator fails
	}
	if err := r.trouble(); err != nil {
		return false, failf(codeCommReady, "%v: %w", r, err)
	}
	if r.of == nil || r.of.at.IsZero() || time.Now().Before(r.of.at) {
		return false, nil
	}
	if err := r.take(); err != nil {
		return false, failf(codeCommReady, "%v: %w", r, err)
	}
	r.made = true
	return true, nil
}

// CommRank returns the rank's number and the number of ranks. It may be called on any thread.
func (v *device) CommRank(h driver.Comm) (number, count int, err error) {
	if err := v.communicate(codeCommRank, false); err != nil {
		return 0, 0, err
	}
	v.d.comms.mu.Lock()
	defer v.d.comms.mu.Unlock()
	r, err := v.rank(codeCommRank, h)
	if err != nil {
		return 0, 0, err
	}
	if !r.made {
		if err := r.usable(codeCommRank); err != nil {
			return 0, 0, err
		}
	}
	return r.number, len(r.of.ranks), nil
}

// CommError returns the error that the rank can know now, or nil; see trouble.
func (v *device) CommError(h driver.Comm) error {
	if err := v.communicate(codeCommError, false); err != nil {
		return err
	}
	v.d.comms.mu.Lock()
	defer v.d.comms.mu.Unlock()
	r, err := v.rank(codeCommError, h)
	if err != nil {
		return err
	}
	if err := r.trouble(); err != nil {
		return failf(codeCommError, "%v: %w", r, err)
	}
	return nil
}

// AbortComm ends the operations in flight of this rank. The other ranks notice that this rank has
// left, but their own operations stay in flight. AbortComm also aborts the ranks that are being
// made from this rank, and the rank that this rank is being made from.
func (v *device) AbortComm(h driver.Comm) error {
	err, ok := v.end(codeAbortComm)
	if !ok {
		return err
	}
	if !v.d.caps.Comms {
		return v.cannot(codeAbortComm)
	}
	v.d.comms.mu.Lock()
	defer v.d.comms.mu.Unlock()
	r, bad := v.rank(codeAbortComm, h)
	if bad != nil {
		return bad
	}
	r.leave(ErrAborted)
	for _, child := range r.making() {
		child.leave(fmt.Errorf("%w: %v, which it was made from, was aborted", ErrAborted, r))
	}
	r.abortOrigin()
	return err
}

// making returns the ranks that are being made from r.
func (r *rank) making() (children []*rank) {
	if r.of == nil {
		return nil
	}
	for _, g := range r.of.makings {
		if r.number < len(g.callers) && g.callers[r.number] != nil && g.callers[r.number].rank == r && g.callers[r.number].child != nil {
			children = append(children, g.callers[r.number].child)
		}
	}
	return children
}

// abortOrigin aborts the rank that r is being made from. A real library can end the making only in
// this way.
func (r *rank) abortOrigin() {
	if r.of != nil || r.from == nil || r.from.bad != nil {
		return
	}
	for _, c := range r.from.callers {
		if c != nil && c.child == r {
			c.rank.leave(fmt.Errorf("%w: %v, which was being made from it, was aborted", ErrAborted, r))
		}
	}
}

// leave takes r out of its communicator, unless r has left already. r's operations in flight end.
func (r *rank) leave(why error) {
	if r.out != nil {
		return
	}
	r.out, r.noticed = why, time.Now()
	close(r.ended)
	for _, g := range r.begun {
		g.settle()
	}
}

// DestroyComm destroys a rank. If operations are in flight and the rank has not left, the error is
// ErrBusy and the rank stays. The call may wait for other ranks; the rank is destroyed even if
// AbortComm ends the wait.
func (v *device) DestroyComm(h driver.Comm) error {
	err, ok := v.end(codeDestroyComm)
	if !ok {
		return err
	}
	if !v.d.caps.Comms {
		return v.cannot(codeDestroyComm)
	}
	cs := &v.d.comms
	cs.mu.Lock()
	defer cs.mu.Unlock()
	r, bad := v.rank(codeDestroyComm, h)
	switch {
	case bad != nil:
		return bad
	case r.leaving:
		return failf(codeDestroyComm, "%v: %w: it is being destroyed already", r, ErrInvalidHandle)
	case r.groups > 0 && r.out == nil && err == nil:
		return failf(codeDestroyComm, "%v: %d groups of operations are in flight: %w; wait for them, or abort the communicator", r, r.groups, ErrBusy)
	}
	r.depart()
	r.abortOrigin()
	if r.suspended && r.out == nil && err == nil {
		err = r.resume(codeDestroyComm)
	}
	if r.out == nil && err == nil && r.made {
		if cs.linger && r.trouble() == nil {
			parted := r.of.parted
			cs.mu.Unlock()
			err = r.await(codeDestroyComm, parted)
			cs.mu.Lock()
		}
		r.orderly = r.out == nil && err == nil
	}
	r.leave(errDestroyed)
	v.d.forgetRank(r)
	return err
}

// errDestroyed is the reason of a rank that has left because it was destroyed.
var errDestroyed = errors.New("it was destroyed")

// depart counts r as leaving, because r is destroyed or waits in DestroyComm.
func (r *rank) depart() {
	if r.leaving {
		return
	}
	r.leaving = true
	if m := r.of; m != nil && r.number < len(m.ranks) && m.ranks[r.number] == r {
		if m.leaving++; m.leaving == len(m.ranks) {
			close(m.parted)
		}
	}
}

// forgetRank removes a rank that has left.
func (d *Driver) forgetRank(r *rank) {
	if d.comms.ranks.remove(uintptr(r.id)) == nil {
		return // Close has removed it
	}
	r.depart()
	r.give()
	for _, cm := range r.memory {
		d.comms.memory.remove(uintptr(cm.id))
	}
	r.memory = nil
	if m := r.of; m != nil {
		if m.live--; m.live == 0 && m.id != (driver.UniqueID{}) {
			d.comms.ids[m.id] = nil
		}
	}
}

// await waits until done is closed, r has left, or r's device is lost. The caller must not hold
// comms.mu.
func (r *rank) await(c code, done <-chan struct{}) error {
	select {
	case <-done:
		return nil
	default:
	}
	select {
	case <-done:
		return nil
	case <-r.ended:
		return failf(c, "%v: %w", r, r.out)
	case <-*r.dev.gone.Load():
		return r.dev.down.Load().error(c)
	}
}

// clearComms destroys the device's ranks, when the device is closed.
func (v *device) clearComms() {
	cs := &v.d.comms
	cs.mu.Lock()
	defer cs.mu.Unlock()
	cs.ranks.all(func(_ uintptr, r *rank) {
		if r.dev == v {
			r.leave(ErrClosed)
			v.d.forgetRank(r)
		}
	})
}

// KillComm makes a rank of a communicator leave as if the rank's process had died. The rank's
// operations in streams end, and its waiting calls return. All its later calls fail, except
// AbortComm, DestroyComm, and CommRank if CommReady has returned true. Operations of other ranks
// stay in flight. The other ranks' CommError reports the death after the duration notice, or never
// if notice is negative.
func (d *Driver) KillComm(c driver.Comm, notice time.Duration) error {
	d.comms.mu.Lock()
	defer d.comms.mu.Unlock()
	r := d.comms.ranks.get(uintptr(c))
	if r == nil {
		return fmt.Errorf("simdriver: communicator %#x: %w: no such communicator, or it was destroyed", uint64(c), ErrInvalidHandle)
	}
	if r.out == nil {
		r.leave(fmt.Errorf("it was killed: %w", ErrInjected))
		r.secret, r.noticed = notice < 0, r.noticed.Add(notice)
	}
	return nil
}
