package gpu

import (
	"fmt"
	"math"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/puregpu/puregpu/runtime/internal/points"
	"github.com/puregpu/puregpu/runtime/internal/wake"
)

// MaxValue is the highest value of a semaphore.
const MaxValue = math.MaxUint64 - 1

// A Semaphore is a timeline: a value that only grows, signalled by the host or by devices and waited for by either, in any
// order. It can fail once, and then stays failed: every wait returns the failure, also for values that had been reached.
//
// A wait for a value is over once that value or a higher one is reached. Work that nothing orders may signal several values of one
// semaphore, and end in any order: then a wait for a lower value may end before the work that signals it has.
//
// A semaphore belongs to no device, orders work across all of them and may outlive them. Make one with [NewSemaphore]; all
// methods may be called concurrently.
type Semaphore struct {
	value   atomic.Uint64                   // reached, as far as the host knows; failedValue once it has failed
	failure atomic.Pointer[failure]         // before value says so
	final   uint64                          // the value reached when it failed; written before value says so
	flags   atomic.Uint32                   // what list has, to be known without the lock
	stream  atomic.Uint32                   // isStream and so on; 0 if it is no stream's
	hopes   atomic.Bool                     // a channel's thread has been asked to raise it, before which there is nobody to ask
	trace   atomic.Pointer[tracedSemaphore] // by tracers that have met it
	mu      sync.Mutex
	list    *expected // made when it is needed
}

// failedValue stands for the value of a semaphore that has failed. Every value is below it, so that who asks whether one is
// reached looks at the failure only if it is.
const failedValue = math.MaxUint64

// What flags says.
const (
	hasPoints  = 1 << iota // a device will raise the value
	hasWaiters             // or something that a signal must look at
)

// expected is what is to happen to a semaphore: who will signal it and who waits for that.
type expected struct {
	points points.Set[*timeline] // of work that is issued and not known to be over
	issued timepointHeap
	reach  timepointHeap
	joins  []*submission // barriers whose points here come behind several timelines: see producers
	order  uint64
	idle   *hostEvent // kept for who parks next
	name   string     // of the semaphore; see SetName
}

type failure struct{ err error }

var errSemaphoreClosed = fmt.Errorf("gpu: semaphore: %w", ErrClosed)

// semaphoreClosed is the failure of every semaphore that was closed, made once so that closing allocates nothing.
var semaphoreClosed = failure{errSemaphoreClosed}

// A point says that a value is signalled once a timeline has done a number.
type point = points.Point[*timeline]

// NewSemaphore makes a semaphore that has reached a value already.
func NewSemaphore(initial uint64) (*Semaphore, error) {
	if initial > MaxValue {
		return nil, argument("semaphore", "initial value %d is above %d", initial, uint64(MaxValue))
	}
	s := new(Semaphore)
	if initial > 0 {
		s.value.Store(initial)
	}
	return s, nil
}

// Query returns the value reached and the failure, if the semaphore has failed. It never blocks. Where a device may have
// reached a value that the host does not know of yet, it asks the device.
func (s *Semaphore) Query() (uint64, error) {
	if s == nil {
		return 0, errNoSemaphore
	}
	if s.flags.Load()&hasPoints == 0 {
		if v := s.value.Load(); v != failedValue {
			return v, nil
		}
	}
	return s.ask()
}

// ask is Query where the value alone is not the answer.
func (s *Semaphore) ask() (uint64, error) {
	if s.flags.Load()&hasPoints != 0 {
		s.pollAll()
	}
	if v := s.value.Load(); v != failedValue {
		return v, nil
	}
	return s.final, received(s.failure.Load().err)
}

// failed returns the failure, if there is one.
func (s *Semaphore) failed() error {
	if s.value.Load() != failedValue {
		return nil
	}
	return s.failure.Load().err
}

// Signal sets the value from the host and releases what waits for it. A value that is not above the present one is refused
// with [ErrValue], a failed semaphore with its failure; neither changes anything.
func (s *Semaphore) Signal(value uint64) error {
	if s == nil {
		return errNoSemaphore
	}
	// Who adds to the list sets flags first and looks at the value then.
	if now := s.value.Load(); now < value && value <= MaxValue && s.value.CompareAndSwap(now, value) {
		if s.trace.Load() != nil {
			s.traceSignal(value, nil)
		}
		if s.flags.Load() != 0 {
			releaseFromHost(s.passTo(value))
		}
		return nil
	}
	return s.signalSlowly(value)
}

func (s *Semaphore) signalSlowly(value uint64) error {
	list, err := s.signal(value)
	releaseFromHost(list)
	return err
}

// signal sets the value and returns the timepoints that this releases.
func (s *Semaphore) signal(value uint64) (*timepoint, error) {
	if value > MaxValue {
		return nil, argument("signal", "value %d is above %d", value, uint64(MaxValue))
	}
	if err := s.raise(value); err != nil {
		return nil, err
	}
	if s.trace.Load() != nil {
		s.traceSignal(value, nil)
	}
	if s.flags.Load() == 0 {
		return nil, nil
	}
	return s.passTo(value), nil
}

// raise sets the value.
func (s *Semaphore) raise(value uint64) error {
	for {
		now := s.value.Load()
		switch {
		case now == failedValue:
			return received(s.failure.Load().err)
		case value <= now:
			return fmt.Errorf("gpu: %w", backward(Point{s, value}, now))
		case s.value.CompareAndSwap(now, value):
			return nil
		}
	}
}

// SignalAll signals points from the host, one after the other, as [Semaphore.Signal] does. The first that cannot be signalled
// ends it, with its error: those before it are signalled, and those after it stay as they are. Functions that this releases are
// called when all are signalled.
func SignalAll(points ...Point) error {
	var released timepointList
	defer func() { releaseFromHost(released.first) }()
	for i, p := range points {
		if p.Semaphore == nil {
			return argument("signal", "point %d has no semaphore", i)
		}
		list, err := p.Semaphore.signal(p.Value)
		if err != nil {
			return fmt.Errorf("point %d: %w", i, err)
		}
		released.join(list)
	}
	return nil
}

// FailAll makes semaphores fail with err, one after the other. Those that have failed before keep their failure, and those that
// are nil are left out.
func FailAll(err error, semaphores ...*Semaphore) {
	var released timepointList
	for _, s := range semaphores {
		if s != nil {
			released.join(s.failWith(err))
		}
	}
	releaseFromHost(released.first)
}

// Fail makes the semaphore fail with err, for good, and releases everything that waits for it, with err. The first failure
// stands; a later one is dropped. Work that waits for the semaphore and has been issued runs all the same.
func (s *Semaphore) Fail(err error) {
	if s != nil {
		releaseFromHost(s.failWith(err))
	}
}

// failWith makes the semaphore fail for a reason of the program's, and returns the timepoints that this releases.
func (s *Semaphore) failWith(err error) *timepoint {
	if err == nil {
		err = fmt.Errorf("gpu: semaphore failed without a reason: %w", ErrArgument)
	}
	if s.trace.Load() != nil {
		s.traceSignal(0, err)
	}
	return s.fail(err)
}

// Close destroys the semaphore: what still waits for it fails with [ErrClosed]. Closing twice is fine, and so is never
// closing: a semaphore holds nothing but memory. Work in flight that was to signal it goes on. Memory of a pool that such work uses goes back
// only when the work is over, also if it is deallocated before: see [Queue.Dealloca].
func (s *Semaphore) Close() error {
	if s != nil && s.value.Load() != failedValue {
		releaseFromHost(s.fail(errSemaphoreClosed))
	}
	return nil
}

// expect returns the list, for the caller, who holds mu, to add something of the kind that flag says. From then on every
// signal looks at the list.
func (s *Semaphore) expect(flag uint32) *expected {
	if s.list == nil {
		s.list = new(expected)
	}
	if f := s.flags.Load(); f&flag == 0 {
		s.flags.Store(f | flag)
	}
	return s.list
}

// settle makes flags say what the list has. The caller holds mu.
func (s *Semaphore) settle() {
	flags := uint32(0)
	if l := s.list; l != nil {
		if !l.points.Empty() {
			flags |= hasPoints
		}
		if len(l.issued)+len(l.reach) > 0 {
			flags |= hasWaiters
		}
	}
	if flags != s.flags.Load() {
		s.flags.Store(flags)
	}
}

// passTo returns the timepoints that a value which the host has signalled releases.
func (s *Semaphore) passTo(value uint64) *timepoint {
	s.mu.Lock()
	if s.list == nil {
		s.mu.Unlock()
		return nil
	}
	list := s.list.reached(value)
	s.settle()
	s.mu.Unlock()
	return list
}

// arrive raises the value to that of last because a submission that signals it is done, or several of one timeline, from first to
// last, and returns the timepoints that this releases. Such a submission may find that another one, which nothing orders before it, has
// been found done first and has raised the value further: it has made no mistake.
func (s *Semaphore) arrive(first, last point) (*timepoint, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	l := s.list
	if l != nil && first.Value == last.Value && l.points.TakeOvertaken(first) {
		s.settle()
		return nil, nil
	}
	var now uint64
	for {
		now = s.value.Load()
		if now == failedValue {
			return nil, s.failure.Load().err
		}
		if first.Value <= now {
			return nil, fmt.Errorf("signal %d of %s, which is at %d: %w", first.Value, l.mention(), now, ErrValue)
		}
		if s.value.CompareAndSwap(now, last.Value) {
			break
		}
	}
	if l == nil {
		return nil, nil
	}
	l.points.Arrive(now, first, last)
	list := l.reached(last.Value)
	s.settle()
	return list, nil
}

// reached takes the timepoints up to a value away.
func (l *expected) reached(value uint64) *timepoint {
	return l.issued.pop(value, l.reach.pop(value, nil))
}

func (s *Semaphore) fail(err error) *timepoint {
	s.mu.Lock()
	defer s.mu.Unlock()
	why := &semaphoreClosed
	if err != errSemaphoreClosed {
		why = &failure{err}
	}
	if !s.failure.CompareAndSwap(nil, why) {
		return nil
	}
	l := s.list
	for {
		s.final = s.value.Load()
		if s.value.CompareAndSwap(s.final, failedValue) {
			break
		}
	}
	if l == nil {
		return nil
	}
	l.points.Clear()
	l.joins = nil
	list := l.reached(math.MaxUint64)
	s.settle()
	for t := list; t != nil; t = t.next {
		t.err = err
	}
	return list
}

// publish says that a value will be signalled when a timeline has done seq, which its stream has been given. It returns the timepoints
// for which that is enough, and whether a waiter is parked, for which the device must be asked: for this value or a lower one because
// it may be the first that is reached, for a higher one because the semaphore may fail.
func (s *Semaphore) publish(p point) (released *timepoint, wanted bool) { return s.publishFor(p, nil) }

// publishFor is publish for a passing barrier, if there is one. The point is of the first timeline that the barrier comes behind.
func (s *Semaphore) publishFor(p point, barrier *submission) (released *timepoint, wanted bool) {
	s.mu.Lock()
	l := s.expect(hasPoints)
	if s.value.Load() == failedValue {
		s.settle()
		s.mu.Unlock()
		return nil, false
	}
	l.points.Add(p)
	if barrier != nil && len(barrier.deps) > 1 {
		l.joins = append(l.joins, barrier)
	}
	wanted = len(l.reach) > 0
	if len(l.issued) > 0 {
		released = l.issued.pop(p.Value, nil)
		wanted = wanted || len(l.issued) > 0
	}
	if released != nil {
		s.settle()
	}
	s.mu.Unlock()
	return released, wanted
}

// A resolution is how a wait stands.
type resolution int

const (
	reached resolution = iota // nothing to wait for
	ordered                   // issued: a point says on what
	unknown                   // nobody has issued a producer
	failed
)

// forget takes a barrier away that joined several timelines and has given its signals.
func (s *Semaphore) forget(barrier *submission) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if l := s.list; l != nil {
		l.joins = slices.DeleteFunc(l.joins, func(b *submission) bool { return b == barrier })
	}
}

// producers returns all marks that a point comes behind, or nil if it is only the point's own. The caller holds the semaphore's mu, without
// which the barrier may be recycled.
func (l *expected) producers(p point) frontier {
	if p.Late {
		for _, b := range l.joins {
			if m := b.deps[0]; m.tl == p.Timeline && m.seq == p.Seq && slices.ContainsFunc(b.signals, func(at Point) bool { return at.Value == p.Value }) {
				return b.deps
			}
		}
	}
	return nil
}

// next finds how a wait for a value stands. For ordered the point is the lowest that reaches the value. If that is of a barrier which joins
// several timelines, all that it comes behind is added to a frontier, unless that is nil.
func (s *Semaphore) next(value uint64, joined *frontier) (resolution, point) {
	if value <= s.value.Load() {
		return s.standing()
	}
	s.mu.Lock()
	if l := s.list; l != nil {
		if p, ok := l.points.Lowest(value); ok {
			if joined != nil && len(l.joins) > 0 {
				for _, m := range l.producers(p) {
					joined.add(m)
				}
			}
			s.mu.Unlock()
			return ordered, p
		}
	}
	over := value <= s.value.Load()
	s.mu.Unlock()
	if over {
		return s.standing()
	}
	return unknown, point{}
}

// standing says how a wait for a value that is reached stands.
func (s *Semaphore) standing() (resolution, point) {
	if s.value.Load() == failedValue {
		return failed, point{}
	}
	return reached, point{}
}

// expectAt finds how a wait for a value stands, and leaves t with the semaphore if it is not over. For a timepoint that only
// needs the value's producer to be issued, it is over when there is one.
func (s *Semaphore) expectAt(value uint64, t *timepoint) resolution {
	if value <= s.value.Load() {
		how, _ := s.standing()
		return how
	}
	s.mu.Lock()
	l := s.expect(hasWaiters)
	var how resolution
	switch {
	case value <= s.value.Load():
		how, _ = s.standing()
	case t.issued && l.points.Reaches(value):
		how = ordered
	default:
		t.value, t.order = value, l.order
		l.order++
		if t.issued {
			l.issued.push(t)
		} else {
			l.reach.push(t)
		}
		if !t.lazy {
			l.points.Ask(value, (*timeline).want)
			for _, b := range l.joins {
				b.wantDeps()
			}
		}
		s.mu.Unlock()
		return unknown
	}
	s.settle()
	s.mu.Unlock()
	return how
}

// cancel takes a timepoint back; it reports false if it was released already, or is about to be.
func (s *Semaphore) cancel(t *timepoint) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if t.index < 0 {
		return false
	}
	if t.issued {
		s.list.issued.remove(t.index)
	} else {
		s.list.reach.remove(t.index)
	}
	s.settle()
	return true
}

// producer returns the timeline on which a value, or what comes next below it, depends, or nil.
func (s *Semaphore) producer(value uint64) (*timeline, uint64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.list == nil {
		return nil, 0
	}
	tl, seq := s.list.points.Next(value)
	for _, b := range s.list.joins { // then the work that is not done yet
		if m := b.deps[0]; m.tl == tl && m.seq == seq && tl.passed.Load() >= seq {
			for _, m := range b.deps {
				if m.tl.passed.Load() < m.seq {
					return m.tl, m.seq
				}
			}
		}
	}
	return tl, seq
}

// poll asks the device that will reach a value how far it is; who asks again may leave it out while somebody gives it work, and who
// stands for the poller does as that does. It returns the device if it makes sense to go on asking. An
// idle channel's thread asks by itself.
func (s *Semaphore) poll(value uint64, again, stands bool) *Device {
	tl, seq := s.producer(value)
	switch {
	case tl == nil:
		return nil
	case tl.ch != nil && tl.ch.ask(seq):
		return tl.dev
	}
	rounds, times := int32(wake.WaiterRests), watch
	if stands {
		rounds, times = wake.PollerRests, 1
	}
	if !tl.crowded(again, rounds) {
		tl.poll(seq, times)
	}
	return tl.dev
}

// askAtOnce is how many timelines a query asks at the most. One that comes again asks others.
const askAtOnce = 8

// pollAll asks the timelines that will raise the value how far they are: that of the highest point, and others.
func (s *Semaphore) pollAll() {
	var asks [askAtOnce]points.Front[*timeline]
	n := 0
	s.mu.Lock()
	if s.list != nil {
		n = s.list.points.Turn(asks[:])
		for _, b := range s.list.joins {
			for _, m := range b.deps[1:] {
				if n < len(asks) {
					asks[n] = points.Front[*timeline]{Timeline: m.tl, Seq: m.seq}
					n++
				}
			}
		}
	}
	s.mu.Unlock()
	for _, a := range asks[:n] {
		a.Timeline.poll(a.Seq, 1)
	}
}
