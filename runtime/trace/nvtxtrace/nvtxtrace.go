// Package nvtxtrace shows the labels of GPU work in NVIDIA's profilers, such as Nsight Systems.
// While a profiler is attached through NVTX, each labelled operation has a range in the NVTX domain
// "puregpu".
//
//	dev, err := gpu.Open(driver, 0, gpu.Options{Tracer: nvtxtrace.Tracer{}})
//
// Programs that open drivers by package drivers do not need this code: their devices have this
// tracer if the environment variable NVTX_INJECTION64_PATH is set, as profilers set it, and
// PUREGPU_TRACE is not.
//
// A range belongs to the thread that makes the calls of the GPU API: it begins before these calls
// and ends after them. So the profiler knows which GPU work belongs to the range, and also shows
// the range next to that work. The category of a range is the kind of its operation. The payload is
// the number of bytes of a copy, a fill or an allocation. When the runtime calls a function of the
// program for a labelled operation, such as a host call, this call is also a range.
//
// The labelled commands of a recording have ranges if the recording runs as calls, as it does with
// gpu.StreamMode. A graph is one call of the GPU API, so it has only one range, for the whole
// execution.
//
// Without a profiler a device with this tracer works like one without a tracer.
package nvtxtrace

import (
	"context"
	"sync"
	"time"

	"github.com/puregpu/puregpu/nvtx"
	"github.com/puregpu/puregpu/runtime/driver"
	"github.com/puregpu/puregpu/runtime/gpu"
	"github.com/puregpu/puregpu/runtime/internal/engine"
	"github.com/puregpu/puregpu/runtime/internal/observe"
	"github.com/puregpu/puregpu/runtime/internal/work"
)

// A Tracer shows labels in profilers. Set it in [gpu.Options].
type Tracer struct{}

// Driver returns a driver whose devices have this tracer, unless they are opened with another
// tracer. Apart from that the driver behaves like d, but it is not the same value. If d is nil,
// Driver returns nil.
func Driver(d driver.Driver) driver.Driver {
	if d == nil {
		return nil
	}
	return traced{d}
}

type traced struct{ driver.Driver }

// Tracer tells package gpu which tracer to use.
func (traced) Tracer() gpu.Tracer { return Tracer{} }

var (
	domain         = nvtx.NewDomain("puregpu")
	nameCategories = sync.OnceFunc(func() {
		for k := work.Barrier; k <= work.Control; k++ {
			domain.NameCategory(category(k), k.String())
		}
	})
)

// category returns the category of a kind of operation.
func category(k work.Kind) uint32 { return uint32(k) + 1 }

// Observe returns the observer of a device that is being opened, for package gpu. It returns nil if
// no profiler is attached.
func (Tracer) Observe(*gpu.Device, *engine.Device, func() (reserved, used uint64)) (observe.Device, error) {
	if !nvtx.Enabled() {
		return nil, nil
	}
	nameCategories()
	return device{}, nil
}

// A device observes a device.
type device struct{}

// TimesCommands returns false: no commands are timed, so recordings need not run as calls.
func (device) TimesCommands() bool { return false }

// TimesNodes returns false: no nodes of graphs are timed.
func (device) TimesNodes() bool { return false }

// Describes returns false: no descriptions of recordings are needed.
func (device) Describes() bool { return false }

// NewRecordingID is not called.
func (device) NewRecordingID() uint64 { return 0 }

// Node is not called.
func (device) Node(driver.Node, *observe.Recording, int) {}

// Submitted returns the observer of a submission that has a label, or commands that may have
// labels. For other submissions it returns nil.
func (device) Submitted(s *engine.Submission, d observe.Description) observe.Submission {
	if d.Label == "" && d.Commands == 0 {
		return nil
	}
	return &submission{kind: s.Op.Kind, label: d.Label, bytes: d.Bytes}
}

// Happened does nothing: only labels are shown, not the events of a device.
func (device) Happened(observe.Event, time.Time, string, uint64, error) {}

// Stopped does nothing.
func (device) Stopped(context.Context) {}

// Closed does nothing.
func (device) Closed() {}

// A submission is the observer of an engine.Submission. Its ranges are open while the engine issues
// the work.
type submission struct {
	kind    work.Kind
	label   string
	bytes   uint64
	whole   nvtx.ThreadRange // the range of the submission
	command nvtx.ThreadRange // the range of the command that is being issued
}

// push begins a range of the calling thread, if the work has a label.
func push(kind work.Kind, label string, bytes uint64) nvtx.ThreadRange {
	if label == "" {
		return nvtx.ThreadRange{}
	}
	e := nvtx.Event{Domain: domain, Message: label, Category: category(kind)}
	if bytes > 0 {
		e.Payload = nvtx.Uint(bytes)
	}
	return e.Push()
}

// Begins begins the range.
func (x *submission) Begins(*engine.Submission, bool) { x.whole = push(x.kind, x.label, x.bytes) }

// Begun ends the range.
func (x *submission) Begun(*engine.Submission, bool) { x.whole.Pop() }

// CommandBegins begins the range of a command.
func (x *submission) CommandBegins(_ *engine.Timeline, c observe.Command) {
	x.command = push(c.Kind, c.Label, c.Bytes)
}

// CommandBegun ends the range of a command.
func (x *submission) CommandBegun(*engine.Timeline, int, work.Kind, bool) {
	x.command.Pop()
	x.command = nvtx.ThreadRange{}
}

// Calls returns a function that calls fn in a range.
func (x *submission) Calls(fn func() error) func() error {
	kind, label := x.kind, x.label
	return func() error {
		defer push(kind, label, 0).Pop()
		return fn()
	}
}

// Ranges do not need the other methods of engine.Observer and observe.Submission.

func (x *submission) Collective(kernel, communicator string, rank, ranks int) {}
func (x *submission) Parks()                                                  {}
func (x *submission) Recorded(*engine.Event)                                  {}
func (x *submission) EventBehind(time.Duration) *engine.Event                 { return nil }
func (x *submission) Fails(error)                                             {}
func (x *submission) Ends(*engine.Submission)                                 {}
