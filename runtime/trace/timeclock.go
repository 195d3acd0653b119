package trace

import (
	"context"
	"math"
	"runtime"
	"time"

	"github.com/puregpu/puregpu/runtime/driver"
	"github.com/puregpu/puregpu/runtime/internal/engine"
)

// The device's clock is compared with the host's by events in a stream without other work. The host
// records an event and polls it until it is reached. So the event was reached between two host
// times. Of several events, the one with the narrowest interval becomes a clockMark. A device time
// is the time since the event of a clockMark, corrected by the drift between two clockMarks.

// A deviceClock relates a device's clock to the host's.
type deviceClock struct {
	stream driver.Stream
	spare  driver.Event // the event that try records next, or 0
	marks  [8]clockMark // a ring; mark number n is the latest, at index (n-1) modulo its length
	n      int
	vain   int     // failed comparisons before the first success
	by     int     // the index of the mark from which times are computed
	drift  float64 // of the device's clock: host seconds in one second of that clock, minus 1
	unsure float64 // the error margin of drift
}

// A clockMark is an event that was reached at a known time of the host.
type clockMark struct {
	event  driver.Event
	number int // number of the mark among the device's marks, from 1
	host   time.Duration
	within time.Duration
}

const (
	compareEvery = 100 * time.Millisecond
	compareTries = 8
	wideMark     = time.Millisecond
	giveUpMark   = 50 * time.Millisecond
	eventUnit    = time.Microsecond // error of the time between two events
	anyDrift     = 100e-6           // error margin of the drift before it has been measured
	elapsedUnit  = 1.0 / (1 << 23)  // relative error of Elapsed's result, which has seven digits
	mostVain     = 16               // failed comparisons before times are reported missing
)

func (c *deviceClock) last() *clockMark { return &c.marks[(c.n-1)%len(c.marks)] }

// compare compares the clocks, unless the last comparison is recent or the device is lost. It
// reports whether times should be queried now. It reports false only if the device is not lost, no
// comparison has succeeded yet, and fewer than mostVain have failed. It runs on a bound thread.
func (c *deviceClock) compare(o *observer) bool {
	if c.n > 0 && o.tracer.now()-c.last().host < compareEvery || o.core.Loss() != nil {
		return true
	}
	if c.compareNow(o) || c.n > 0 {
		return true
	}
	c.vain++
	return c.vain >= mostVain
}

// compareNow adds a mark, and reports whether that succeeded.
func (c *deviceClock) compareNow(o *observer) bool {
	if c.stream == 0 {
		h, err := o.core.Native.NewStream()
		if err != nil {
			return false
		}
		c.stream = h
	}
	var best clockMark
	for range compareTries {
		m, ok := c.try(o)
		if !ok {
			break
		}
		wide := m.within > wideMark
		if best.event == 0 || m.within < best.within {
			best, m = m, best
		}
		if c.spare = m.event; wide { // the spare is the event of the wider mark, or 0 after the first mark
			break // the device or the host is busy
		}
	}
	if best.event == 0 {
		return false
	}
	oldest := &c.marks[c.n%len(c.marks)]
	if c.spare == 0 {
		c.spare = oldest.event
	} else if oldest.event != 0 {
		o.core.NotTaken(o.core.Native.DestroyEvent(oldest.event))
	}
	c.n++
	best.number = c.n
	*oldest = best
	c.fit(o)
	o.tracer.push(&Record{Kind: KindClock, Device: o.dev, Label: o.core.Driver.Name(), Submitted: best.host, Done: best.host, Within: best.within, Drift: c.drift})
	return true
}

// try records an event and polls it until it is reached. It returns a mark with the event and the
// host time at which it was reached, or false if a call fails or the device takes too long.
func (c *deviceClock) try(o *observer) (m clockMark, ok bool) {
	if c.spare == 0 {
		e, err := o.timers.NewTimer()
		if err != nil {
			return m, false
		}
		c.spare = e
	}
	// The spare event may still be pending if an earlier try gave up.
	if done, err := o.core.Native.Query(c.spare); err != nil || !done {
		return m, false
	}
	from := o.tracer.now()
	if o.core.Native.Record(c.spare, c.stream) != nil {
		return m, false
	}
	for i := 1; ; i++ {
		done, err := o.core.Native.Query(c.spare)
		to := o.tracer.now()
		switch {
		case err != nil:
			return m, false
		case done:
			m = clockMark{event: c.spare, host: from + (to-from)/2, within: (to-from)/2 + eventUnit}
			c.spare = 0
			return m, true
		case to-from > giveUpMark || i > 1<<16:
			return m, false
		case i > 64:
			runtime.Gosched()
		}
	}
}

// fit computes the drift from the last mark and one other mark, the one that gives the smallest
// error. Then it chooses the mark from which times are computed.
func (c *deviceClock) fit(o *observer) {
	c.drift, c.unsure = 0, anyDrift
	last := c.last()
	for i := range c.marks {
		m := &c.marks[i]
		if m.event == 0 || m == last {
			continue
		}
		took, err := o.timers.Elapsed(m.event, last.event)
		if err != nil || took <= 0 {
			continue
		}
		if unsure := float64(m.within+last.within) / float64(took); unsure < c.unsure {
			c.drift, c.unsure = float64(last.host-m.host)/float64(took)-1, unsure
		}
	}
	// An older, narrow mark may give the current time more exactly than the latest mark.
	least := time.Duration(math.MaxInt64)
	for i := range c.marks {
		m := &c.marks[i]
		if m.event == 0 {
			continue
		}
		if within := m.within + time.Duration(float64(last.host-m.host)*c.unsure); within < least {
			least, c.by = within, i
		}
	}
}

// at returns the host time at which an event was reached, and the error margin of that time. A
// later call for the same event queries the event only if the number of the mark at c.by has
// changed.
func (c *deviceClock) at(o *observer, e *engine.Event) (at, within time.Duration, ok bool) {
	if c.n == 0 {
		return 0, 0, false
	}
	m := &c.marks[c.by]
	if e.SinceRef != m.number {
		since, err := o.timers.Elapsed(m.event, e.Handle)
		if err != nil {
			return 0, 0, false
		}
		e.SinceRef, e.Since = m.number, since
	}
	at = m.host + e.Since + time.Duration(float64(e.Since)*c.drift)
	return at, m.within + eventUnit + time.Duration(float64(e.Since.Abs())*(c.unsure+elapsedUnit)), true
}

// destroy destroys the clock's stream and events.
func (c *deviceClock) destroy(ctx context.Context, o *observer) {
	insist := func(destroy func() error) { o.core.NotTaken(o.core.Insist(ctx, destroy)) }
	if c.stream != 0 {
		insist(func() error { return o.core.Native.DestroyStream(c.stream) })
	}
	events := []driver.Event{c.spare}
	for i := range c.marks {
		events = append(events, c.marks[i].event)
	}
	for _, e := range events {
		if e != 0 {
			insist(func() error { return o.core.Native.DestroyEvent(e) })
		}
	}
	*c = deviceClock{}
}
