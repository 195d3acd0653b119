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

// comms is what a driver has of communicators: the place where their ranks meet. Its mu is held for all that it, they and
// their ranks have. Under it only the mutexes of streams' queues and of memory may be locked. That streams lock it orders them, for
// the race detector, more than a GPU would.
type comms struct {
	mu     sync.Mutex
	ids    map[driver.UniqueID]*communicator // nil: the id is used up
	count  uint64                            // of ids
	ranks  table[rank]
	memory table[commMemory]
	lazy   bool
	linger bool
	needs  uint64 // bytes that a rank takes
}

// A communicator is what its ranks have in common.
type communicator struct {
	id    driver.UniqueID // zero: it was made of another one
	ranks []*rank         // by number, nil: it has not come; none of them while nobody has
	came  int
	live  int       // ranks that are not destroyed, with those that there was no place for
	at    time.Time // from when on it is ready, if all have come
	bad   error     // what ranks disagree about: nothing is executed any more

	leaving int           // ranks that are destroyed, or wait for that
	parted  chan struct{} // closed when that is all

	makings []*making
	lines   map[[2]int]*line // by who sends and who receives, or of anyone
	links   map[[2]int]*link // likewise
}

// A rank is one end of a communicator.
type rank struct {
	dev    *device
	id     driver.Comm
	name   string
	number int
	plain  bool          // nothing is made of it
	of     *communicator // nil: from has yet to make it
	from   *making       // nil: NewComm has begun it
	made   bool          // CommReady has said so

	out     error         // why it takes no part any more; nil while it does
	ended   chan struct{} // closed when out is set
	orderly bool          // it was destroyed with nothing under way, which is no error of other ranks
	secret  bool          // other ranks do not find that it is out
	noticed time.Time     // else they find it from now on
	shrunk  *rank         // what ShrinkComm makes of it, which has aborted it
	leaving bool          // DestroyComm was called

	awaits *making // what NewWindow, SuspendComm or ResumeComm waits for

	has       uint64 // bytes that it has taken
	suspended bool

	groups int      // those that streams have
	begun  []*group // of these, those that have begun
	last   mark     // the last one has executed here
	spare  []*group
	count  map[[2]int]uint64 // operations: of all ranks, or with whom and whether they send
	linked map[[2]int]bool
	memory []*commMemory
}

// String names the rank.
func (r *rank) String() string {
	if r.name != "" {
		return fmt.Sprintf("rank %d of communicator %q", r.number, r.name)
	}
	return fmt.Sprintf("rank %d of communicator %#x", r.number, uint64(r.id))
}

// communicate begins a call about communicators that is not submitted.
func (v *device) communicate(c code, bound bool) error {
	return v.enterIf(c, bound, v.d.caps.Comms)
}

// NewUniqueID makes a name by which the ranks of a communicator find each other on the devices of this driver.
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
	binary.BigEndian.PutUint64(id[8:], rand.Uint64()) // another driver's is unknown here
	cs.ids[id] = &communicator{id: id}
	return id, nil
}

// NewComm makes one rank. What is wrong with the description itself is its error; what ranks disagree about all of them
// find in CommReady.
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
		bad = "the unique id is none that a device of this driver has made"
	case m == nil || m.came > 0 && m.came == len(m.ranks):
		bad = "the unique id was used already: every communicator needs a new one"
	case len(desc.More) > 0 && slices.ContainsFunc(desc.More, func(id driver.UniqueID) bool { _, ok := d.comms.ids[id]; return !ok }):
		bad = "a further unique id is none that a device of this driver has made"
	case desc.Count < 1 || desc.Count > maxDevices:
		bad = fmt.Sprintf("there can be 1 to %d ranks", maxDevices)
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

// newRank makes a rank that is of no communicator yet; it returns nil if there are too many. The caller holds mu, here and
// below.
func (v *device) newRank(name string) *rank {
	r := &rank{dev: v, name: name, ended: make(chan struct{}), count: make(map[[2]int]uint64), linked: make(map[[2]int]bool)}
	r.id = driver.Comm(v.d.comms.ranks.add(r))
	if r.id == 0 {
		return nil
	}
	return r
}

// come adds a rank to the communicator that it is of, which has count ranks as far as it knows.
func (r *rank) come(count int) {
	m := r.of
	m.live++
	if m.came == 0 {
		m.open(make([]*rank, count))
	}
	switch other := m.ranks[min(r.number, len(m.ranks)-1)]; {
	case count != len(m.ranks):
		m.fail("rank %d, on device %d, was made as one of %d ranks, and the first one as one of %d", r.number, r.dev.index, count, len(m.ranks))
		return
	case other != nil:
		m.fail("rank %d was made twice, on device %d and on device %d", r.number, other.dev.index, r.dev.index)
		return
	}
	for _, o := range m.ranks {
		if o != nil && o.dev == r.dev {
			m.fail("ranks %d and %d are both on device %d, and each needs one of its own", o.number, r.number, r.dev.index)
			return
		}
	}
	m.ranks[r.number] = r
	if m.came++; m.came == count {
		m.ready(r.dev.d, codeNewComm)
	}
}

// open gives a communicator room for its ranks.
func (m *communicator) open(ranks []*rank) {
	m.ranks = ranks
	m.parted = make(chan struct{})
	m.lines, m.links = make(map[[2]int]*line), make(map[[2]int]*link)
}

// ready says that all ranks have come.
func (m *communicator) ready(d *Driver, c code) {
	m.at = time.Now()
	if !d.manual {
		m.at = m.at.Add(time.Duration(d.delays[c].Load()))
	}
}

// fail notes what ranks disagree about, if it is the first time that they do.
func (m *communicator) fail(format string, args ...any) {
	if m.bad == nil {
		m.bad = fmt.Errorf("%w: %s", ErrMismatch, fmt.Sprintf(format, args...))
	}
}

// absent says why other ranks need not wait for r any more, if they can know.
func (r *rank) absent() error {
	if r.orderly {
		return nil
	}
	if p := r.dev.down.Load(); p != nil && p.lost {
		return fmt.Errorf("%w: rank %d, for device %d is lost: %v", ErrRankGone, r.number, r.dev.index, p.err)
	}
	if r.out == nil || r.secret || time.Now().Before(r.noticed) {
		return nil
	}
	return fmt.Errorf("%w: rank %d, on device %d: %v", ErrRankGone, r.number, r.dev.index, r.out)
}

// expects reports whether r is out because it was shrunk, and waits for o to be: to those that are to go on with it that is not its
// end.
func (r *rank) expects(o *rank) bool {
	return r.shrunk != nil && r.shrunk.absent() == nil && r.shrunk.from.takesPart(o.number)
}

// trouble says what is wrong with r, as far as it can know.
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
			return fmt.Errorf("%w: rank %d, on device %d, was destroyed, and what rank %d has begun needs it",
				ErrRankGone, o.number, o.dev.index, r.number)
		}
	}
	if r.awaits != nil {
		return r.awaits.trouble()
	}
	return nil
}

// usable fails unless CommReady has reported r and nothing is wrong with it, nor is it suspended.
func (r *rank) usable(c code) error {
	err := r.trouble()
	switch {
	case err != nil:
	case !r.made:
		err = fmt.Errorf("%w: CommReady has not reported it", ErrNotReady)
	case r.suspended && c != codeResumeComm && c != codeCommStats:
		err = fmt.Errorf("%w: ResumeComm is to come before", ErrSuspended)
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

// CommReady reports whether all ranks have called what makes the communicator, and it has taken its time.
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
		return true, nil // whatever has come of it
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

// CommRank returns the rank's number and how many there are. It may be called on any thread.
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

// CommError says what has gone wrong: that ranks disagree, or that another one is gone.
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

// AbortComm ends what is under way on this rank. The others find that it is gone, but what they have under way stays.
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
		child.leave(fmt.Errorf("%w: it was being made of %v", ErrAborted, r))
	}
	r.abortOrigin()
	return err
}

// making returns what is being made of r.
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

// abortOrigin aborts what r is being made of: a library can end that only so.
func (r *rank) abortOrigin() {
	if r.of != nil || r.from == nil || r.from.bad != nil {
		return
	}
	for _, c := range r.from.callers {
		if c != nil && c.child == r {
			c.rank.leave(fmt.Errorf("%w: %v, which was being made of it, was given up", ErrAborted, r))
		}
	}
}

// leave makes r take no part any more, unless that is so already. What it has under way ends.
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

// DestroyComm gives a rank back. If it waits for others, and AbortComm ends that, it has done its work all the same.
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
		return failf(codeDestroyComm, "%v: %d groups of operations are under way: %w; let them end, or abort it before", r, r.groups, ErrBusy)
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

// errDestroyed is why a rank is out that was destroyed.
var errDestroyed = errors.New("it was destroyed")

// depart counts r among the ranks that are destroyed, or wait for that.
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

// forgetRank takes a rank away that is out.
func (d *Driver) forgetRank(r *rank) {
	if d.comms.ranks.remove(uintptr(r.id)) == nil {
		return // closing the device has done it
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

// await waits for done, or for the end of r or its device. The caller does not hold mu.
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

// clearComms destroys the device's ranks.
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

// KillComm makes a rank of a communicator go away as if its process had died: its work in streams
// ends, its waiting calls return, and all but AbortComm and DestroyComm fail. Work of other ranks
// stays; their CommError reports it after the time notice, or never if that is negative.
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
