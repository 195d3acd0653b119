package gpu

import (
	"log/slog"
	"slices"
	"time"

	"github.com/puregpu/puregpu/internal/secureenv"
	"github.com/puregpu/puregpu/runtime/internal/errs"
)

// Options configure a device. The zero value is the usual configuration.
type Options struct {
	// Queues is how many queues the device has, each with its own stream; 0 means 1.
	Queues int

	// Priorities[i] is the priority of queue i. Missing priorities are 0, the default of streams. A
	// lower number is more urgent. A priority outside the device's range ([Device.PriorityRange])
	// is clamped to it.
	Priorities []int

	// Events is how many events the device's pool of events has at first; 0 means 1,024, which take
	// about 0.3 ms to make on CUDA. More events are made in advance when only half of the pool's
	// events or fewer are free, in a large pool only when 512 or fewer are free.
	Events int

	// Spin is how long each waiting goroutine polls the device. Then the goroutine sleeps, or polls
	// for all waiting goroutines: see Poll. A polling goroutine uses a processor and sees the end
	// of the work at once. Waking from sleep takes some tens of microseconds. 0 means 50
	// microseconds; negative means that waiting goroutines sleep at once.
	Spin time.Duration

	// Poll is how long one goroutine polls without a pause, on behalf of all waiting goroutines,
	// while it finds no finished work. If only one goroutine waits, that goroutine polls; otherwise
	// a goroutine of the device polls. After that time a goroutine of the device polls with pauses
	// of up to a millisecond. 0 means 10 milliseconds; negative means a pause after every poll.
	Poll time.Duration

	// StageSize is the size in bytes of a block of pinned memory for uploads and downloads; 0 means
	// 1 MiB.
	StageSize int

	// Tracer, if not nil, records the work of the device. [trace.NewTracer] makes a Tracer, a
	// [trace.Trace] has a Tracer, and an [nvtxtrace.Tracer] is a Tracer. If Tracer is nil and the
	// driver has a method Tracer() gpu.Tracer, that method supplies the tracer. Drivers that
	// package drivers opens supply a tracer if the environment variable PUREGPU_TRACE names a file,
	// or if a profiler of NVIDIA is attached.
	//
	// [trace.NewTracer]: https://pkg.go.dev/github.com/puregpu/puregpu/runtime/trace#NewTracer
	// [trace.Trace]: https://pkg.go.dev/github.com/puregpu/puregpu/runtime/trace#Trace
	// [nvtxtrace.Tracer]: https://pkg.go.dev/github.com/puregpu/puregpu/runtime/trace/nvtxtrace#Tracer
	Tracer Tracer

	// Leaks, if not nil, logs a warning for each [Device], [Buffer] and [Pool] that the garbage
	// collector finds dropped without a call of Close. The warning has the place where the program
	// made the object. If Leaks is nil and the environment variable PUREGPU_LEAKS is 1, Leaks is
	// [slog.Default]. The warning frees nothing: a dropped buffer keeps its memory until the device
	// is closed. Buffers and pools that the program still refers to when it closes the device are
	// not reported. With Leaks each allocation takes about a microsecond longer, and the runtime
	// polls all work in flight.
	Leaks *slog.Logger
}

func (o Options) check() (Options, error) {
	switch {
	case o.Queues < 0 || o.Queues > 64:
		return o, errs.Argument("open", "%d queues; there can be 1 to 64", o.Queues)
	case len(o.Priorities) > max(o.Queues, 1):
		return o, errs.Argument("open", "%d priorities for %d queues", len(o.Priorities), max(o.Queues, 1))
	case o.Events < 0 || o.Events > 1<<20:
		return o, errs.Argument("open", "an event pool of %d", o.Events)
	case o.StageSize < 0 || o.StageSize > 1<<30:
		return o, errs.Argument("open", "staging blocks of %d bytes", o.StageSize)
	}
	if o.Leaks == nil && secureenv.Get("PUREGPU_LEAKS") == "1" {
		o.Leaks = slog.Default()
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
