// Package tracetest makes traces for tests, by the rules of docs/trace-format.md.
package tracetest

import (
	"cmp"
	"fmt"
	"time"

	"github.com/puregpu/puregpu/internal/traceformat"
)

// Units of time.
const (
	Microsecond traceformat.Time = 1000
	Millisecond                  = 1000 * Microsecond
	Second                       = 1000 * Millisecond
)

// A Builder holds the events of a program's trace.
type Builder struct {
	Events []traceformat.Event

	subs       uint64
	flows      uint64
	sems       uint64
	recordings uint64
	tids       map[int64]int64
	signaled   map[uint64][]signal
}

type signal struct {
	value    uint64
	pid, tid int64
	at       traceformat.Time // time within the slice that signals
}

// A Track is the track of slices of a stream, a communicator, a queue or the host.
type Track struct {
	PID, TID int64
	Title    string
}

// hostPID is the process of the program itself. Device n has the process hostPID+1+n.
const hostPID = 1

// New begins the trace of a program with a rank. The trace starts at the wall clock time start.
func New(program string, rank, world int, start time.Time) *Builder {
	b := &Builder{tids: map[int64]int64{}, signaled: map[uint64][]signal{}}
	b.add(traceformat.Event{Phase: traceformat.Metadata, Name: traceformat.MetaTrace, PID: hostPID, Args: traceformat.Args{
		Format: traceformat.Version, Version: "v0.0.0", Go: "go1.26.0", Program: program, Host: "host", OSPID: 4000 + rank, Rank: rank, World: world,
		Level: "commands", Start: start.UTC().Format(time.RFC3339Nano), Unix: start.UnixNano(),
	}})
	b.process(hostPID, traceformat.Args{Name: program, Kind: traceformat.KindHost})
	return b
}

func (b *Builder) add(e traceformat.Event) { b.Events = append(b.Events, e) }

func (b *Builder) process(pid int64, a traceformat.Args) {
	b.add(traceformat.Event{Phase: traceformat.Metadata, Name: traceformat.MetaProcess, PID: pid, Args: a})
	b.add(traceformat.Event{Phase: traceformat.Metadata, Name: traceformat.MetaProcessSort, PID: pid, Args: traceformat.Args{SortIndex: int(pid)}})
}

// Host adds a track of calls and waits of the host.
func (b *Builder) Host(title string) Track {
	return b.track(hostPID, title, traceformat.Args{Kind: traceformat.KindHost})
}

// Device adds a device's process.
func (b *Builder) Device(n int, model string) int64 {
	pid := int64(hostPID + 1 + n)
	b.process(pid, traceformat.Args{Name: fmt.Sprintf("GPU %d: %s", n, model), Kind: traceformat.KindDevice, Device: n, Model: model, Driver: "cuda"})
	return pid
}

// Queue adds a track for the submissions of a queue of the device.
func (b *Builder) Queue(pid int64, n int, title string) Track {
	return b.track(pid, title, traceformat.Args{Kind: traceformat.KindQueue, Queue: n})
}

// Stream adds a track for the work that a stream of the device executes.
func (b *Builder) Stream(pid int64, n int) Track {
	return b.track(pid, fmt.Sprintf("stream %d", n), traceformat.Args{Kind: traceformat.KindStream, Stream: n})
}

// Channel adds a track for the work that a communicator's stream on the device executes.
func (b *Builder) Channel(pid int64, title string) Track {
	return b.track(pid, title, traceformat.Args{Kind: traceformat.KindChannel})
}

func (b *Builder) track(pid int64, title string, a traceformat.Args) Track {
	b.tids[pid]++
	t := Track{pid, b.tids[pid], title}
	a.Name = title
	b.add(traceformat.Event{Phase: traceformat.Metadata, Name: traceformat.MetaThread, PID: pid, TID: t.TID, Args: a})
	b.add(traceformat.Event{Phase: traceformat.Metadata, Name: traceformat.MetaThreadSort, PID: pid, TID: t.TID, Args: traceformat.Args{SortIndex: int(t.TID)}})
	return t
}

// Semaphore returns a function that returns points of a new semaphore.
func (b *Builder) Semaphore(name string) func(value uint64) traceformat.Point {
	b.sems++
	n := b.sems
	return func(value uint64) traceformat.Point { return traceformat.Point{Semaphore: n, Name: name, Value: value} }
}

// A Submission is work submitted to a queue, with its times. Begun and Ended are both 0 if they are
// unknown, Issued is 0 if the work was never issued, and Done is 0 if it is not done when the trace
// ends.
type Submission struct {
	Args                                  traceformat.Args // Submit sets Sub; Untimed and UntimedCommands are written only when the submission ends
	Submitted, Issued, Begun, Ended, Done traceformat.Time
	Parked                                bool
	Commands                              []Command
}

// A Command is a command of a recording, with its times.
type Command struct {
	Args         traceformat.Args
	Begun, Ended traceformat.Time
}

// Submit adds the events of a submission to the queue q. The argument executed is the track of the
// stream or the communicator that executed the work. Submit also adds arrows from earlier signals
// to the submission's waits. Submit returns the submission's number.
func (b *Builder) Submit(q, executed Track, s Submission) uint64 {
	b.subs++
	a := s.Args
	a.Sub, a.Untimed, a.UntimedCommands = b.subs, false, 0
	async := traceformat.Event{Cat: traceformat.CatSubmission, Name: q.Title, PID: q.PID, TID: q.TID, ID: a.Sub}
	begin := async
	begin.Phase, begin.Time, begin.Args = traceformat.AsyncBegin, s.Submitted, a
	begin.Args.Early, begin.Args.Margin = 0, 0 // Early and Margin belong to the slice
	b.add(begin)
	if s.Parked {
		parked := async
		parked.Name, parked.Phase, parked.Time = traceformat.NameParked, traceformat.AsyncBegin, s.Submitted
		b.add(parked)
		parked.Phase, parked.Time = traceformat.AsyncEnd, s.Issued
		if s.Issued == 0 {
			parked.Time = s.Done
		}
		b.add(parked)
	}
	if s.Begun != 0 || s.Ended != 0 {
		name := cmp.Or(a.Label, a.Kernel, a.Op)
		what := a
		what.Waits, what.Signals, what.Error = nil, nil, ""
		b.add(traceformat.Event{Phase: traceformat.Complete, Cat: traceformat.CatDevice, Name: name, PID: executed.PID, TID: executed.TID,
			Time: s.Begun, Dur: s.Ended - s.Begun, Args: what})
		for i, c := range s.Commands {
			c.Args.Sub, c.Args.Command = a.Sub, i
			b.add(traceformat.Event{Phase: traceformat.Complete, Cat: traceformat.CatCommand, Name: cmp.Or(c.Args.Label, c.Args.Kernel, c.Args.Op, "command"), PID: executed.PID, TID: executed.TID,
				Time: c.Begun, Dur: c.Ended - c.Begun, Args: c.Args})
		}
		b.arrows(a.Waits, executed, s.Begun)
		b.signal(a.Signals, executed, max(s.Begun, s.Ended-1))
	}
	if s.Done != 0 {
		end := async
		end.Phase, end.Time, end.Args = traceformat.AsyncEnd, s.Done, traceformat.Args{Issued: s.Issued, Error: s.Args.Error, Untimed: s.Args.Untimed,
			UntimedCommands: s.Args.UntimedCommands}
		b.add(end)
	}
	return a.Sub
}

// Wait adds a wait of the host.
func (b *Builder) Wait(host Track, begin, end traceformat.Time, waits ...traceformat.Point) {
	b.add(traceformat.Event{Phase: traceformat.Complete, Cat: traceformat.CatWait, Name: "wait", PID: host.PID, TID: host.TID, Time: begin, Dur: end - begin,
		Args: traceformat.Args{Waits: waits}})
	b.arrows(waits, host, max(begin, end-1))
}

// Call adds a call of the host, which may signal.
func (b *Builder) Call(host Track, name string, begin, end traceformat.Time, a traceformat.Args) {
	b.add(traceformat.Event{Phase: traceformat.Complete, Cat: traceformat.CatCall, Name: name, PID: host.PID, TID: host.TID, Time: begin, Dur: end - begin, Args: a})
	b.signal(a.Signals, host, max(begin, end-1))
}

func (b *Builder) signal(points []traceformat.Point, t Track, at traceformat.Time) {
	for _, p := range points {
		b.signaled[p.Semaphore] = append(b.signaled[p.Semaphore], signal{p.Value, t.PID, t.TID, at})
	}
}

func (b *Builder) arrows(waits []traceformat.Point, t Track, at traceformat.Time) {
	for _, w := range waits {
		if w.Value == 0 { // every semaphore has this value from the start
			continue
		}
		for _, s := range b.signaled[w.Semaphore] {
			if s.value < w.Value {
				continue
			}
			b.flows++
			e := traceformat.Event{Phase: traceformat.FlowBegin, Cat: traceformat.CatSignal, Name: "signal", PID: s.pid, TID: s.tid, Time: s.at, ID: b.flows}
			b.add(e)
			e.Phase, e.PID, e.TID, e.Time, e.BindEnclosing = traceformat.FlowEnd, t.PID, t.TID, at, true
			b.add(e)
			break
		}
	}
}

// Count adds values of a counter of a device.
func (b *Builder) Count(pid int64, name string, at traceformat.Time, series ...traceformat.Series) {
	b.add(traceformat.Event{Phase: traceformat.Counter, Name: name, PID: pid, Time: at, Args: traceformat.Args{Series: series}})
}

// Instant adds an instant of a process: a loss, a drop, a fit of a clock.
func (b *Builder) Instant(pid int64, cat, name string, at traceformat.Time, a traceformat.Args) {
	b.add(traceformat.Event{Phase: traceformat.Instant, Cat: cat, Name: name, PID: pid, Time: at, Scope: 'p', Args: a})
}

// JSON returns the trace as a complete file.
func (b *Builder) JSON() []byte {
	out := []byte("[\n")
	for i := range b.Events {
		if i > 0 {
			out = append(out, ",\n"...)
		}
		out = b.Events[i].Append(out)
	}
	return append(out, "\n]\n"...)
}

// Recording lists the commands of a recording of a device, and returns its number.
func (b *Builder) Recording(pid int64, commands ...traceformat.Args) uint64 {
	b.recordings++
	for i, a := range commands {
		a.Recording, a.Command = b.recordings, i
		b.add(traceformat.Event{Phase: traceformat.Metadata, Name: traceformat.MetaCommand, PID: pid, Args: a})
	}
	return b.recordings
}

// NodeTimes states the source of the times of commands in a device's graphs, or why there is none.
func (b *Builder) NodeTimes(pid int64, source, why string) {
	b.add(traceformat.Event{Phase: traceformat.Metadata, Name: traceformat.MetaNodes, PID: pid, Args: traceformat.Args{NodeTimes: source, Error: why}})
}

// Nodes adds a track for commands of a device's graphs.
func (b *Builder) Nodes(pid int64, title string) Track {
	return b.track(pid, title, traceformat.Args{Kind: traceformat.KindNodes})
}

// Node adds a command of a graph. The args name the submission, the recording and the command.
func (b *Builder) Node(t Track, name string, begun, ended traceformat.Time, a traceformat.Args) {
	b.add(traceformat.Event{Phase: traceformat.Complete, Cat: traceformat.CatCommand, Name: name, PID: t.PID, TID: t.TID, Time: begun, Dur: ended - begun, Args: a})
}
