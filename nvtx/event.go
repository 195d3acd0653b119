package nvtx

import (
	"math"
	"runtime"
)

// An Event describes a mark or a range. The zero Event has no message and is in the default domain.
type Event struct {
	Domain   *Domain // nil is the default domain
	Message  string
	String   *String // if not nil, the message: a registered string, which costs less
	Category uint32  // number in the domain; 0 means none; see [Domain.NameCategory]
	Color    Color   // 0 leaves the choice to the tool
	Payload  Payload
}

// A Color is a colour as 0xAARRGGBB.
type Color uint32

// A Payload is a number that belongs to an event. The zero Payload means none.
type Payload struct {
	kind int32
	bits uint64
}

// Uint returns a payload of an unsigned number.
func Uint(n uint64) Payload { return Payload{1, n} }

// Int returns a payload of a signed number.
func Int(n int64) Payload { return Payload{2, uint64(n)} }

// Float returns a payload of a floating-point number.
func Float(x float64) Payload { return Payload{3, math.Float64bits(x)} }

// A Range is a range of the process. End does nothing for the zero Range.
type Range struct {
	domain  *Domain
	id      uint64
	started bool
}

// A ThreadRange is a range of a thread. Pop does nothing for the zero ThreadRange.
type ThreadRange struct {
	domain *Domain
	pushed bool
}

// Mark marks the present moment.
func Mark(message string) {
	if Enabled() {
		mark(&Event{Message: message})
	}
}

// Start begins a range of the process. Any goroutine may end it, and ranges may overlap.
//
//	defer nvtx.Start("load the model").End()
func Start(message string) Range {
	if !Enabled() {
		return Range{}
	}
	return start(&Event{Message: message})
}

// Push begins a range of the calling thread, inside the thread's open ranges. It locks the calling
// goroutine to the thread, as [runtime.LockOSThread] does, until Pop.
//
//	defer nvtx.Push("forward").Pop()
func Push(message string) ThreadRange {
	if !Enabled() {
		return ThreadRange{}
	}
	return push(&Event{Message: message})
}

// Mark marks the present moment with the event.
func (e Event) Mark() {
	if Enabled() {
		mark(&e)
	}
}

// Start is [Start] for an event.
func (e Event) Start() Range {
	if !Enabled() {
		return Range{}
	}
	return start(&e)
}

// Push is [Push] for an event.
func (e Event) Push() ThreadRange {
	if !Enabled() {
		return ThreadRange{}
	}
	return push(&e)
}

func mark(e *Event) {
	c := calls.Get().(*call)
	defer c.put()
	if domain, ok := e.Domain.enter(); ok {
		defer e.Domain.leave()
		if e.Domain == nil {
			c.do(moduleCore, coreMarkEx, c.event(e, domain))
		} else {
			c.do(moduleCore2, core2MarkEx, domain, c.event(e, domain))
		}
	}
}

func start(e *Event) (r Range) {
	c := calls.Get().(*call)
	defer c.put()
	if domain, ok := e.Domain.enter(); ok {
		defer e.Domain.leave()
		if e.Domain == nil {
			return Range{nil, uint64(c.do(moduleCore, coreRangeStartEx, c.event(e, domain))), true}
		}
		return Range{e.Domain, uint64(c.do(moduleCore2, core2RangeStartEx, domain, c.event(e, domain))), true}
	}
	return Range{}
}

func push(e *Event) ThreadRange {
	c := calls.Get().(*call)
	defer c.put()
	domain, ok := e.Domain.enter()
	if !ok {
		return ThreadRange{}
	}
	defer e.Domain.leave()
	runtime.LockOSThread()
	if e.Domain == nil {
		c.do(moduleCore, coreRangePushEx, c.event(e, domain))
	} else {
		c.do(moduleCore2, core2RangePushEx, domain, c.event(e, domain))
	}
	return ThreadRange{e.Domain, true}
}

// End ends the range. It does nothing if the range's domain has been closed. A range must be ended
// once.
func (r Range) End() {
	if !r.started {
		return
	}
	c := calls.Get().(*call)
	defer c.put()
	if domain, ok := r.domain.enter(); ok {
		defer r.domain.leave()
		if r.domain == nil {
			c.do(moduleCore, coreRangeEnd, uintptr(r.id))
		} else {
			c.do(moduleCore2, core2RangeEnd, domain, uintptr(r.id))
		}
	}
}

// Pop ends the range, and releases the goroutine's lock on its thread. If the range's domain has
// been closed, Pop only releases the lock. The goroutine that began the range must call Pop once,
// after the Pop of each range that it began later.
func (r ThreadRange) Pop() {
	if !r.pushed {
		return
	}
	defer runtime.UnlockOSThread()
	c := calls.Get().(*call)
	defer c.put()
	if domain, ok := r.domain.enter(); ok {
		defer r.domain.leave()
		if r.domain == nil {
			c.do(moduleCore, coreRangePop)
		} else {
			c.do(moduleCore2, core2RangePop, domain)
		}
	}
}
