package gpu

import (
	"errors"
	"fmt"
	"math"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"github.com/puregpu/puregpu/runtime/driver"
)

// Options set up a device. The zero value is the usual way.
type Options struct {
	// Queues is how many queues the device has, each a stream of its own; 0 means 1.
	Queues int

	// Events is how many events the pool makes at a time; 0 means 32.
	Events int

	// Spin is how long a wait asks the device itself before it parks; 0 means 50 microseconds, negative not at all.
	Spin time.Duration

	// Poll is how long the device is asked without a pause on behalf of those who have parked; then it is asked the less
	// often the longer nothing happens, down to once a millisecond. 0 means 2 milliseconds, negative not at all.
	Poll time.Duration

	// StageSize is the size in bytes of a block of pinned memory for updates and downloads; 0 means 1 MiB.
	StageSize int
}

func (o Options) check() (Options, error) {
	switch {
	case o.Queues < 0 || o.Queues > 64:
		return o, argument("open", "%d queues; there can be 1 to 64", o.Queues)
	case o.Events < 0 || o.Events > 1<<20:
		return o, argument("open", "an event pool of %d", o.Events)
	case o.StageSize < 0 || o.StageSize > 1<<30:
		return o, argument("open", "staging blocks of %d bytes", o.StageSize)
	}
	if o.Queues == 0 {
		o.Queues = 1
	}
	if o.Events == 0 {
		o.Events = 32
	}
	if o.Spin == 0 {
		o.Spin = 50 * time.Microsecond
	}
	if o.Poll == 0 {
		o.Poll = 2 * time.Millisecond
	}
	if o.StageSize == 0 {
		o.StageSize = 1 << 20
	}
	return o, nil
}

// A Device is an open device. It owns one OS thread, which makes native objects and issues what had to wait.
type Device struct {
	drv  driver.Device
	of   driver.Driver // events cross devices of one driver only
	info driver.Info
	caps driver.Caps
	opt  Options

	queues     []*Queue
	events     eventPool
	timepoints timepointPool
	stage      stage
	buffers    bufferStats
	pools      pools
	pooling    driver.Pools // nil if the driver has none
	current    atomic.Pointer[Pool]

	lentMu sync.Mutex
	lent   []mark // for each timeline of another device the last work that uses something of this one
	kept   bool   // nothing is lent any more

	calls   atomic.Int64 // host calls that are running
	overdue int64        // those that Close did not wait for
	lost    atomic.Pointer[failure]
	closing atomic.Bool   // takes nothing new
	stopped atomic.Bool   // issues nothing any more
	gone    atomic.Bool   // gives everything back
	closed  chan struct{} // the thread has ended
	closeMu sync.Mutex    // one Close at a time
	once    bool
	closeEr error

	wake  chan struct{}
	asker *asker // nil if the thread must ask itself

	mu      sync.Mutex // a leaf
	todo    []func()
	spare   []func()
	runnow  *submission // ready to be issued, in order
	runend  **submission
	parked  submission // head of a list, linked both ways
	nparked int
	// Barriers that wait for work in flight are in the list, but not parked: they will be done by themselves.
	npassing int
	running  bool // what was ready is being issued
	ended    bool
	code     map[*Executable]struct{} // loaded; the thread's

	graphs     driver.Graphs               // nil if the driver has none, as is:
	timers     driver.Timers               //
	recordings map[*CommandBuffer]struct{} // under mu
}

// Open opens a device of a driver, by its index in driver.Devices.
func Open(d driver.Driver, index int, opt Options) (*Device, error) {
	opt, err := opt.check()
	if err != nil {
		return nil, err
	}
	drv, err := d.Open(index)
	if err != nil {
		return nil, fmt.Errorf("gpu: open device %d of %s: %w", index, d.Name(), err)
	}
	dev := &Device{drv: drv, of: d, info: drv.Info(), caps: drv.Caps(), opt: opt,
		closed: make(chan struct{}), wake: make(chan struct{}, 1), code: map[*Executable]struct{}{},
		recordings: map[*CommandBuffer]struct{}{}}
	dev.parked.before, dev.parked.after = &dev.parked, &dev.parked
	dev.runend = &dev.runnow
	if dev.caps.Pools {
		dev.pooling, _ = drv.(driver.Pools)
	}
	if dev.caps.Graphs {
		dev.graphs, _ = drv.(driver.Graphs)
	}
	if dev.caps.Timers {
		dev.timers, _ = drv.(driver.Timers)
	}
	if dev.caps.SubmitAnywhere {
		dev.asker = &asker{wake: make(chan struct{}, 1), ended: make(chan struct{})}
	}
	dev.events.dev, dev.events.batch = dev, opt.Events
	dev.stage.dev = dev
	started := make(chan error, 1)
	go dev.run(started)
	if err := <-started; err != nil {
		<-dev.closed
		return nil, fmt.Errorf("gpu: open device %d of %s: %w", index, d.Name(), err)
	}
	if dev.asker != nil {
		go dev.ask()
	}
	return dev, nil
}

// Info describes the device, from what was read at open.
func (d *Device) Info() driver.Info { return d.info }

// Queue returns a queue by number, modulo the number of queues.
func (d *Device) Queue(i int) *Queue {
	n := len(d.queues)
	return d.queues[(i%n+n)%n]
}

// Pick returns the queue with the least in flight of those that affinity allows: bit i is queue i, and no bits are all. Bits
// of queues that there are not mean nothing; if there are no others, that is an error.
func (d *Device) Pick(affinity uint64) (*Queue, error) { return pick(d.queues, affinity) }

func pick(queues []*Queue, affinity uint64) (*Queue, error) {
	var best *Queue
	least := uint64(math.MaxUint64)
	for i, q := range queues {
		if affinity != 0 && affinity>>i&1 == 0 {
			continue
		}
		if n := q.tl.issued.Load() - q.tl.done.Load(); n < least {
			best, least = q, n
		}
	}
	if best == nil {
		return nil, argument("pick", "affinity %#x names none of the %d queues", affinity, len(queues))
	}
	return best, nil
}

// Queues returns how many queues there are.
func (d *Device) Queues() int { return len(d.queues) }

// Stats counts what a device holds.
type Stats struct {
	Events     PoolStats
	Timepoints PoolStats
	Parked     int    // submissions that wait for something nobody has issued
	InFlight   int    // submissions issued and not known to be done
	Buffers    int    // live
	Bytes      uint64 // in live buffers
	PeakBytes  uint64
}

// Stats returns a snapshot.
func (d *Device) Stats() Stats {
	s := Stats{Events: d.events.statistics(), Timepoints: d.timepoints.statistics()}
	s.Buffers, s.Bytes, s.PeakBytes = d.buffers.snapshot()
	d.mu.Lock()
	s.Parked, s.InFlight = d.nparked, d.npassing
	d.mu.Unlock()
	for _, q := range d.queues {
		s.InFlight += q.tl.inFlight()
		q.mu.Lock()
		s.Events.Free += q.kept
		q.mu.Unlock()
	}
	return s
}

// run is the device's thread.
func (d *Device) run(started chan<- error) {
	runtime.LockOSThread()
	defer close(d.closed)
	if err := d.start(); err != nil {
		d.drv.Bind() // it may be this that failed
		started <- errors.Join(err, d.destroy())
		return
	}
	started <- nil
	var wait patience
	for {
		worked, ended := d.work()
		if ended {
			if d.closeEr = d.destroy(); d.closeEr == nil && d.lost.Load() == nil {
				runtime.UnlockOSThread() // the driver has left it unbound; else it ends with the goroutine, and nobody finds it
			}
			return
		}
		switch {
		case d.asker != nil || !d.wanted():
			wait = patience{}
			if !worked {
				<-d.wake
			}
		case d.askWanted() || worked:
			wait = patience{}
			runtime.Gosched() // whoever was woken sits in this thread's queue
		default:
			wait.pause(d.opt.Poll, slice, d.wake)
		}
	}
}

func (d *Device) start() error {
	if err := d.drv.Bind(); err != nil {
		return err
	}
	for i := range d.opt.Queues {
		h, err := d.drv.NewStream()
		if err != nil {
			return err
		}
		tl := &timeline{dev: d, h: h, tidyAt: tidyEvery}
		tl.ring.head = 1
		d.queues = append(d.queues, &Queue{dev: d, tl: tl, index: i})
	}
	return d.events.grow()
}

// work does what was posted and issues what is ready. It reports whether there was something, and whether the thread is
// to end.
func (d *Device) work() (worked, ended bool) {
	d.mu.Lock()
	todo, list := d.todo, d.runnow
	d.todo, d.spare = d.spare[:0], nil
	d.runnow, d.runend = nil, &d.runnow
	d.running = list != nil
	ended = d.ended
	d.mu.Unlock()
	for _, fn := range todo {
		fn()
	}
	for s := list; s != nil; {
		next := s.next
		s.next = nil
		s.q.run(s, true)
		s = next
	}
	worked = len(todo) > 0 || list != nil
	clear(todo)
	d.mu.Lock()
	d.spare = todo[:0]
	d.running = false
	d.mu.Unlock()
	return worked, ended && !worked
}

func (d *Device) signalThread() {
	select {
	case d.wake <- struct{}{}:
	default:
	}
}

// post has a function run on the device's thread, some time. It does nothing, and reports false, when the thread is ending:
// then it gives back all that there is.
func (d *Device) post(fn func()) bool {
	d.mu.Lock()
	if d.ended {
		d.mu.Unlock()
		return false
	}
	d.todo = append(d.todo, fn)
	d.mu.Unlock()
	d.signalThread()
	return true
}

// do runs a function on the device's thread and waits for it.
func (d *Device) do(fn func() error) error {
	done := make(chan error, 1)
	d.mu.Lock()
	if d.ended {
		d.mu.Unlock()
		return d.closedError()
	}
	d.todo = append(d.todo, func() { done <- fn() })
	d.mu.Unlock()
	d.signalThread()
	return <-done
}

// ready hands over a submission to the device's thread, to be issued.
func (d *Device) ready(s *submission) { d.readyAll(s, s) }

// readyAll hands over a chain of submissions.
func (d *Device) readyAll(first, last *submission) {
	d.mu.Lock()
	last.next = nil
	for s := first; s != nil; s = s.next {
		if s.after != nil {
			d.unlink(s)
		}
	}
	if !d.ended {
		*d.runend, d.runend = first, &last.next
		d.mu.Unlock()
		d.signalThread()
		return
	}
	d.mu.Unlock()
	for s := first; s != nil; { // nobody is left to issue them
		next := s.next
		s.next = nil
		s.err.CompareAndSwap(nil, &failure{d.closedError()})
		s.q.run(s, false)
		s = next
	}
}

// park notes a submission that waits for something nobody has issued. It returns why the device takes no more of them: then
// nobody would look for it. The caller holds a count of it, so that it does not become ready.
func (d *Device) park(s *submission) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	s.before, s.after = d.parked.before, &d.parked
	s.before.after, s.after.before = s, s
	if s.passing { // it will be done by itself, and Close waits for it
		d.npassing++
		return d.halted()
	}
	d.nparked++
	return d.failed()
}

// unlink takes a submission off the list of parked ones. The caller holds mu.
func (d *Device) unlink(s *submission) {
	s.before.after, s.after.before = s.after, s.before
	s.before, s.after = nil, nil
	if s.passing {
		d.npassing--
	} else {
		d.nparked--
	}
}

// unpark undoes park, if it was done.
func (d *Device) unpark(s *submission) {
	d.mu.Lock()
	if s.after != nil {
		d.unlink(s)
	}
	d.mu.Unlock()
}

// toIssue reports whether submissions are ready, and the thread has not issued them.
func (d *Device) toIssue() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.runnow != nil || d.running
}

func (d *Device) busy() bool {
	for _, q := range d.queues {
		if q.tl.busy() {
			return true
		}
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.npassing > 0
}

// pollAll runs on the device's thread, or anywhere if the driver lets it.
func (d *Device) pollAll() (worked bool) {
	for _, q := range d.queues {
		if q.tl.busy() {
			worked = q.tl.poll(q.tl.issued.Load(), 1) || worked
		}
	}
	return worked
}

// failed returns why the device takes no more work.
func (d *Device) failed() error {
	if f := d.lost.Load(); f != nil {
		return f.err
	}
	if d.closing.Load() {
		return d.closedError()
	}
	return nil
}

func (d *Device) closedError() error { return fmt.Errorf("gpu: device %s: %w", d.info.Name, ErrClosed) }

// halted returns why the device issues nothing any more, not even what it has taken.
func (d *Device) halted() error {
	if d.lost.Load() == nil && !d.stopped.Load() {
		return nil
	}
	return d.failed()
}

// lostBy makes the failure of a device that is lost for a reason.
func (d *Device) lostBy(err error) *failure {
	if !errors.Is(err, driver.ErrLost) {
		err = fmt.Errorf("%w: %w", driver.ErrLost, err)
	}
	return &failure{fmt.Errorf("gpu: device %s: %w", d.info.Name, err)}
}

// lose marks the device as lost: everything that is in flight fails, and everything that comes.
func (d *Device) lose(err error) {
	if d.lost.CompareAndSwap(nil, d.lostBy(err)) {
		d.failInFlight()
	}
}

// check looks whether an error of the device's own driver says that the device is lost.
func (d *Device) check(err error) {
	var e *driver.Error
	if d.lost.Load() == nil && errors.As(err, &e) && e.Lost {
		d.lose(err)
	}
	if d.lost.Load() != nil {
		d.failInFlight()
	}
}

// failInFlight fails all that a lost device has been given, also what waits for something that may never come.
func (d *Device) failInFlight() {
	err := d.lost.Load().err
	for _, q := range d.queues {
		for s := q.tl.drain(err); s != nil; {
			next := s.next
			s.next = nil
			clear(s.held) // they stay away: nobody knows whether the lost streams still wait for them
			s.held = s.held[:0]
			d.failSubmission(s, err)
			s = next
		}
	}
	d.cancelParked(err, true)
}

// complete does the signals of a submission that is done, returns what that releases, and recycles the record.
func (d *Device) complete(s *submission) *timepoint {
	released := d.signal(s)
	d.recycle(s)
	return released
}

// signal does the signals of a submission that is done and returns what that releases.
func (d *Device) signal(s *submission) *timepoint {
	if s.op == opDownload && s.host != nil && s.seq != 0 {
		copy(s.host, s.stage.bytes())
	}
	at := mark{s.q.tl, s.seq}
	if s.passing {
		at = mark{s.deps[0].tl, s.deps[0].seq}
	}
	var released timepointList
	var wrong error
	for _, p := range s.signals {
		var list *timepoint
		if wrong == nil {
			var err error
			list, err = p.Semaphore.arrive(p.Value, p.Value, at)
			if err != nil && p.Semaphore.failed() == nil { // this submission fails, and nothing else does
				wrong = d.submitError(s, err)
			}
		}
		if wrong != nil {
			list = p.Semaphore.fail(wrong)
		}
		released.join(list)
	}
	return released.first
}

// submitError makes what a submission's signals fail with. What it fails with because of another one is passed on as it is.
func (d *Device) submitError(s *submission, err error) error {
	if _, ok := err.(*SubmitError); ok {
		return err
	}
	return &SubmitError{opNames[s.op], d.info.Name, err}
}

// failSignals fails what a submission would have signalled and returns what that releases.
func (d *Device) failSignals(s *submission, err error) *timepoint {
	err = d.submitError(s, err)
	var released timepointList
	for _, p := range s.signals {
		released.join(p.Semaphore.fail(err))
	}
	clear(s.signals)
	s.signals, s.host = s.signals[:0], nil
	return released.first
}

// failSubmission fails what a submission would have signalled, and recycles the record.
func (d *Device) failSubmission(s *submission, err error) {
	released := d.failSignals(s, err)
	d.recycle(s)
	release(released, d)
}

// recycle lets go of all that a submission held, and puts the record back.
func (d *Device) recycle(s *submission) {
	d.letGo(s)
	s.q.putAll(s, s)
}

// letGo lets go of all that a submission held, but of the event only if somebody else has it too.
func (d *Device) letGo(s *submission) {
	if s.event != nil && !s.event.alone() {
		s.event.drop()
		s.event = nil
	}
	s.letGoAll()
	for _, e := range s.held {
		e.drop()
	}
	if s.keep[0] != nil {
		if s.op == opDealloca {
			s.keep[0].pool.maintain(mark{s.q.tl, s.seq})
		}
		s.keep[0].release()
	}
	if s.keep[1] != nil {
		s.keep[1].release()
	}
	if s.cold {
		s.letGoCold()
	}
	s.reset()
}

func (s *submission) letGoCold() {
	for i := range s.bound {
		if b := s.bound[i].held; b != nil {
			b.release()
		}
	}
	for i := range s.binds {
		s.binds[i].Buffer.release()
	}
	if s.recording != nil {
		s.recording.release()
	}
	if s.kernel != nil {
		s.kernel.exe.release()
	}
	if s.stage != nil {
		s.stage.free()
	}
}

// Close ends the device: work that is parked fails with [ErrClosed], work in flight and host calls that are running are
// waited for, up to ten seconds, and everything native is given back. Transfers in pieces end with what is in flight and
// fail. Buffers and executables of the device are freed with it. Semaphores live on. Closing again returns the same error.
func (d *Device) Close() error {
	d.closeMu.Lock()
	defer d.closeMu.Unlock()
	if d.once {
		return d.closeEr
	}
	d.once = true
	d.closing.Store(true)
	deadline := time.Now().Add(10 * time.Second)
	for d.toIssue() && d.lost.Load() == nil && time.Now().Before(deadline) {
		time.Sleep(20 * time.Microsecond)
	}
	d.stopped.Store(true)
	for _, q := range d.queues { // whoever is issuing gets through
		q.tl.mu.Lock()
		q.tl.mu.Unlock()
	}
	err := d.closedError()
	d.cancelParked(err, false)
	for _, q := range d.queues {
		q.tl.want(q.tl.issued.Load())
	}
	d.wantPassing()
	for d.busy() && d.lost.Load() == nil && time.Now().Before(deadline) {
		if !d.caps.SubmitAnywhere || !d.pollAll() {
			time.Sleep(20 * time.Microsecond)
		}
	}
	if d.busy() && d.lost.Load() == nil {
		d.lose(fmt.Errorf("work did not end within 10 s of Close: %w", ErrClosed))
	}
	d.cancelParked(err, true)
	for d.calls.Load() > 0 && time.Now().Before(deadline) {
		time.Sleep(20 * time.Microsecond)
	}
	d.takeBack(deadline)
	d.gone.Store(true)
	for d.calls.Load() > 0 { // who has come before that
		if !time.Now().Before(deadline) {
			d.overdue = d.calls.Load()
			break
		}
		time.Sleep(20 * time.Microsecond)
	}
	if d.asker != nil {
		d.asker.stop()
	}
	for _, q := range d.queues { // whoever asks about an event gets through
		q.tl.askMu.Lock()
		q.tl.askMu.Unlock()
	}
	d.mu.Lock()
	d.ended = true
	d.mu.Unlock()
	d.signalThread()
	<-d.closed
	return d.closeEr
}

// lend notes that work of another device is about to wait for an event of this one, or to use a buffer. It reports false if
// it is too late.
func (d *Device) lend(to mark) bool {
	d.lentMu.Lock()
	defer d.lentMu.Unlock()
	if d.kept {
		return false
	}
	for i := range d.lent {
		if d.lent[i].tl == to.tl {
			d.lent[i].seq = max(d.lent[i].seq, to.seq)
			return true
		}
	}
	d.lent = append(d.lent, to)
	return true
}

// takeBack waits until no other device uses anything of this one.
func (d *Device) takeBack(deadline time.Time) {
	d.lentMu.Lock()
	d.kept = true
	lent := d.lent
	d.lentMu.Unlock()
	for _, m := range lent {
		m.tl.mu.Lock() // whoever is issuing gets through
		seq := min(m.seq, m.tl.issued.Load())
		m.tl.mu.Unlock()
		for m.tl.done.Load() < seq && time.Now().Before(deadline) {
			if !m.tl.dev.caps.SubmitAnywhere {
				m.tl.want(seq)
			} else if m.tl.poll(seq, 1) {
				continue
			}
			time.Sleep(20 * time.Microsecond)
		}
	}
}

// cancelParked makes the submissions that still wait ready, as failed ones; barriers behind work in flight only if passing.
func (d *Device) cancelParked(err error, passing bool) {
	d.mu.Lock()
	var list []*submission
	for s := d.parked.after; s != &d.parked; s = s.after {
		if (passing || !s.passing) && s.grab() { // else it is ready, and about to be unlinked
			list = append(list, s)
		}
	}
	d.mu.Unlock()
	for _, s := range list {
		s.cancel(err)
	}
}

// wantPassing has the work asked for that barriers wait for.
func (d *Device) wantPassing() {
	d.mu.Lock()
	defer d.mu.Unlock()
	for s := d.parked.after; s != &d.parked; s = s.after {
		if s.passing {
			s.deps[0].tl.want(s.deps[0].seq)
		}
	}
}

// destroy gives back what the device holds. It runs on the device's thread.
func (d *Device) destroy() error {
	var errs []error
	lost := d.lost.Load() != nil
	add := func(err error) {
		if err != nil && !lost { // nothing works on a lost device, and nobody can help it
			errs = append(errs, err)
		}
	}
	for _, q := range d.queues {
		for _, h := range q.tl.old {
			add(d.drv.DestroyStream(h))
		}
		for _, s := range q.tl.limbo {
			d.recycle(s)
		}
		q.tl.limbo = nil
	}
	for _, err := range d.buffers.close(true) {
		add(err)
	}
	for _, q := range d.queues {
		add(q.tl.settle())
	}
	for _, q := range d.queues {
		add(d.drv.DestroyStream(q.tl.h))
	}
	d.mu.Lock()
	recordings := d.recordings
	d.recordings = nil
	d.mu.Unlock()
	for c := range recordings {
		c.closed.Store(true)
		add(c.destroy())
	}
	for x := range d.code {
		x.closed.Store(true)
		add(d.drv.Unload(x.mod))
	}
	if n := d.overdue; n == 0 {
		add(d.stage.close())
	} else { // which may use the memory
		errs = append(errs, fmt.Errorf("gpu: device %s: %d host calls did not end within 10 s of Close", d.info.Name, n))
	}
	for _, err := range append(d.buffers.close(false), d.pools.close()...) {
		add(err)
	}
	add(d.events.close())
	add(d.drv.Close())
	return errors.Join(errs...)
}

// settle waits until a stream has done what no event is behind. It runs on the device's thread, when nothing else is left.
func (tl *timeline) settle() (err error) {
	if !tl.loose || tl.dev.lost.Load() != nil {
		return nil
	}
	for range maxFailed { // a stream that has work cannot be destroyed
		if err = tl.settleOnce(); err == nil || errors.Is(err, ErrClosed) || errors.Is(err, driver.ErrLost) {
			break
		}
	}
	return err
}

func (tl *timeline) settleOnce() error {
	e, err := tl.dev.events.get(true)
	if err != nil {
		return err
	}
	defer e.drop()
	if err := tl.dev.drv.Record(e.h, tl.h); err != nil {
		return err
	}
	for deadline := time.Now().Add(time.Second); ; {
		done, err := tl.dev.drv.Query(e.h)
		if done || err != nil {
			return err
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("a stream still has work: %w", ErrClosed)
		}
		time.Sleep(20 * time.Microsecond)
	}
}
