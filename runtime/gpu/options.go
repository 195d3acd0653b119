package gpu

import (
	"slices"
	"time"
)

// Options set up a device. The zero value is the usual way.
type Options struct {
	// Queues is how many queues the device has, each a stream of its own; 0 means 1.
	Queues int

	// Priorities are the queues' priorities, by number. Those that are left out have 0, as all work has by itself; a lower number is
	// more urgent. One outside of the device's range ([Device.PriorityRange]) counts as the nearest in it.
	Priorities []int

	// Events is how many events the pool has at first; 0 means 1,024, which take about 0.3 ms to make on CUDA. More are made ahead
	// when half of them are in use.
	Events int

	// Spin is for how long a wait keeps asking the device before its goroutine sleeps: while it asks, it sees the end of the work at
	// once, and uses a processor. To be woken takes some tens of microseconds. 0 means 50 microseconds, negative not at all.
	Spin time.Duration

	// Poll is for how long one goroutine goes on asking, for all that wait: the only one that waits, or else one of the device's own.
	// After that it asks in pauses, up to a millisecond long. 0 means 10 milliseconds, negative not at all.
	Poll time.Duration

	// StageSize is the size in bytes of a block of pinned memory for updates and downloads; 0 means 1 MiB.
	StageSize int

	// Tracer learns what the device does, if it is not nil. Without it a driver with a method Tracer() *Tracer says what does, as that does which
	// package drivers opens where the environment variable PUREGPU_TRACE names a file.
	Tracer *Tracer
}

func (o Options) check() (Options, error) {
	switch {
	case o.Queues < 0 || o.Queues > 64:
		return o, argument("open", "%d queues; there can be 1 to 64", o.Queues)
	case len(o.Priorities) > max(o.Queues, 1):
		return o, argument("open", "%d priorities for %d queues", len(o.Priorities), max(o.Queues, 1))
	case o.Events < 0 || o.Events > 1<<20:
		return o, argument("open", "an event pool of %d", o.Events)
	case o.StageSize < 0 || o.StageSize > 1<<30:
		return o, argument("open", "staging blocks of %d bytes", o.StageSize)
	}
	if o.Tracer != nil && o.Tracer.slots == nil {
		return o, argument("open", "a tracer that was not made: make one with NewTracer")
	}
	o.Priorities = slices.Clone(o.Priorities)
	if o.Queues == 0 {
		o.Queues = 1
	}
	if o.Events == 0 {
		o.Events = 1024
	}
	if o.Spin == 0 {
		o.Spin = 50 * time.Microsecond
	}
	if o.Poll == 0 {
		o.Poll = 10 * time.Millisecond
	}
	if o.StageSize == 0 {
		o.StageSize = 1 << 20
	}
	return o, nil
}
