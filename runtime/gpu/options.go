package gpu

import (
	"time"
)

// Options set up a device. The zero value is the usual way.
type Options struct {
	// Queues is how many queues the device has, each a stream of its own; 0 means 1.
	Queues int

	// Events is how many events the pool makes at a time; 0 means 32.
	Events int

	// Spin is how long a wait asks the device itself before it parks; 0 means 50 microseconds, negative not at all. Where nobody has
	// parked before, one goes on for as long as Poll says, since the device would be asked on its behalf all the same.
	// While one asks for a channel, the channel's thread asks instead, and after that it looks out for more to do for four times as
	// long: each has a processor to itself then, so that no more than half of them do, and a quarter once that time is over.
	Spin time.Duration

	// Poll is how long the device is asked without a pause on behalf of those who have parked; then it is asked the less
	// often the longer nothing happens, down to once a millisecond. 0 means 10 milliseconds, negative not at all.
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
		o.Poll = 10 * time.Millisecond
	}
	if o.StageSize == 0 {
		o.StageSize = 1 << 20
	}
	return o, nil
}
