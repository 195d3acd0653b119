package trace

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"
	"weak"

	"github.com/puregpu/puregpu/internal/traceformat"
	"github.com/puregpu/puregpu/internal/version"
	"github.com/puregpu/puregpu/runtime/collective"
	"github.com/puregpu/puregpu/runtime/gpu"
	"github.com/puregpu/puregpu/runtime/internal/latest"
)

// A writer turns records into events of the trace (see docs/trace-format.md). One goroutine at a
// time uses a writer.
//
// The events of a submission are written after the submission has ended. Device times are exact
// only to some microseconds. So work may seem to begin before the work in front of it in the stream
// has ended. In that case the writer moves the later work behind the earlier work. The record of a
// wait may come before the record of the signal for that wait. In that case the writer draws the
// arrow when the record of the signal comes.
type writer struct {
	tracer  *Tracer
	opt     Options
	buf     []byte
	began   bool                         // the file has an event
	event   traceformat.Event            // the event that is being written
	names   latest.Map[uint64, string]   // the names of semaphores
	listed  latest.Map[uint64, struct{}] // the recordings whose commands the file has
	lanes   []lane                       // the tracks of the host
	devices map[*gpu.Device]*device
	closed  map[closedDevice][]*device // the processes of closed devices, for devices that are opened again
	pids    int64
	flows   uint64
	arrows  arrows

	dropped, undrawn, forgotten uint64 // the counts that the file has

	toldGraph bool // a warning that the commands of a graph have no times was logged

	waits    []traceformat.Point
	signals  []traceformat.Point
	counters [2]traceformat.Series
}

// A device is the process that the trace has for a gpu.Device.
type device struct {
	pid        int64
	tids       int64
	own        []*track                           // the tracks of the device's own queues
	queues     map[weak.Pointer[gpu.Queue]]*track // weak, because a program may run for weeks and adopt a stream for each request
	prune      int                                // when queues has this length, freed queues are removed
	margin     time.Duration                      // the margin of the last comparison of the clocks
	timesNodes bool                               // the commands of graphs are timed
	nodes      []lane                             // tracks for commands of graphs, which may overlap
}

// A lane is one of several tracks for slices that may overlap.
type lane struct {
	tid int64
	end traceformat.Time // the end of its last slice
}

// freeLane returns the index of the first lane whose slices have all ended by the given time, or
// the length of the list.
func freeLane(list []lane, at traceformat.Time) int {
	for i := range list {
		if list[i].end <= at {
			return i
		}
	}
	return len(list)
}

// A closedDevice identifies a device that may be opened again.
type closedDevice struct {
	index int
	name  string
}

// A track belongs to a queue. It has a thread for the queue's submissions, and a thread for the
// work of its stream.
type track struct {
	name   string
	tid    int64
	stream int64            // the tid of the stream's thread; 0 until the stream has done work
	end    traceformat.Time // the latest end of a slice of the stream
	cmd    traceformat.Time // the end of the command written last, or the beginning of the slice written last
	until  traceformat.Time // the end of the slice written last; end may be later
	ch     bool             // the queue is a communicator's
}

const hostPID = 1

func newWriter(t *Tracer, o Options) *writer {
	w := &writer{tracer: t, opt: o, devices: map[*gpu.Device]*device{}, closed: map[closedDevice][]*device{}, pids: hostPID}
	w.arrows.init()
	info := version.Read()
	host, _ := os.Hostname()
	program := ""
	if len(os.Args) > 0 {
		program = filepath.Base(os.Args[0])
	}
	start := t.Start()
	level := map[Times]string{CommandTimes: "commands", NoTimes: "none"}[o.Times]
	w.meta(traceformat.MetaTrace, hostPID, 0, traceformat.Args{Format: traceformat.Version, Version: info.Module, Go: info.Go, Program: program, Host: host,
		OSPID: os.Getpid(), Rank: o.Rank, World: o.World, Level: cmp.Or(level, "submissions"), Start: start.UTC().Format(time.RFC3339Nano), Unix: start.UnixNano()})
	w.process(hostPID, traceformat.Args{Name: cmp.Or(program, "program"), Kind: traceformat.KindHost})
	return w
}

// put appends the event to the buffer.
func (w *writer) put() {
	if w.began {
		w.buf = append(w.buf, ",\n"...)
	} else {
		w.buf = append(w.buf, "[\n"...)
	}
	w.began = true
	w.buf = w.event.Append(w.buf)
}

// end is the end of the file.
const end = "\n]\n"

// end writes the end of the file.
func (w *writer) end() {
	w.drops()
	w.missing()
	w.buf = append(w.buf, end...)
}

func (w *writer) meta(name string, pid, tid int64, a traceformat.Args) {
	w.event = traceformat.Event{Phase: traceformat.Metadata, Name: name, PID: pid, TID: tid, Args: a}
	w.put()
}

func (w *writer) process(pid int64, a traceformat.Args) {
	w.meta(traceformat.MetaProcess, pid, 0, a)
	w.meta(traceformat.MetaProcessSort, pid, 0, traceformat.Args{SortIndex: int(pid)})
}

func (w *writer) thread(pid, tid int64, a traceformat.Args) {
	w.meta(traceformat.MetaThread, pid, tid, a)
	w.meta(traceformat.MetaThreadSort, pid, tid, traceformat.Args{SortIndex: int(tid)})
}

// add writes the events of a record.
func (w *writer) add(r *Record) {
	switch r.Kind {
	case KindSubmission:
		w.submission(r)
	case KindCommand:
		w.command(r)
	case KindNode:
		w.node(r)
	case KindWait:
		w.event = traceformat.Event{Phase: traceformat.Complete, Cat: traceformat.CatWait, Name: r.Op, Args: traceformat.Args{Waits: w.points(&w.waits, r.Waits), Error: errorOf(r)}}
		pid, tid, at := w.host(r)
		if r.Err == nil {
			w.arrows.wait(w, r.Waits, flowEnd{pid: pid, tid: tid, at: at, limit: at}, r.Op == "wait for any")
		}
	case KindSignal, KindAlloc, KindGrow, KindShrink, KindLoad, KindCompile, KindGraph, KindClosed:
		name := callNames[r.Kind]
		if r.Kind == KindSignal && r.Err != nil {
			name = failName
		}
		w.call(r, name)
		if r.Kind == KindClosed {
			w.over(r.Device)
		}
	case KindCall:
		w.call(r, r.Op)
	case KindName:
		for _, p := range r.Signals {
			w.names.Set(p.Semaphore, r.Label)
		}
	case KindClock:
		w.device(r.Device, r.Label)
		w.device(r.Device, "").margin = r.Within
		w.instant(r, traceformat.CatClock, "clock fit", traceformat.Args{Rate: -r.Drift * 1e6, Margin: traceformat.Time(r.Within)})
	case KindCounters:
		w.count(r)
	case KindOpen:
		w.opened(r)
		w.call(r, callNames[r.Kind])
	case KindLost:
		name := "device lost"
		if failed := (*collective.Error)(nil); errors.As(r.Err, &failed) {
			name = "communicator lost"
		}
		w.instant(r, traceformat.CatLoss, name, traceformat.Args{Error: errorOf(r), Channel: r.Communicator, Rank: r.Rank, Ranks: r.Ranks})
	}
}

// callNames are the names of the host's calls.
var callNames = map[Kind]string{KindSignal: "signal", KindAlloc: "allocate", KindGrow: "grow pool", KindShrink: "shrink pool", KindLoad: "load",
	KindCompile: "compile", KindGraph: "graph", KindOpen: "open", KindClosed: "close"}

const failName = "fail" // the name of a signal with an error

func errorOf(r *Record) string {
	if r.Err == nil {
		return ""
	}
	return r.Err.Error()
}

// points converts points of a record for the file. It stores them in *list, and returns the list.
func (w *writer) points(list *[]traceformat.Point, points []Point) []traceformat.Point {
	*list = (*list)[:0]
	for _, p := range points {
		name, _ := w.names.Of(p.Semaphore)
		*list = append(*list, traceformat.Point{Semaphore: p.Semaphore, Name: name, Value: p.Value})
	}
	return *list
}

// opened makes the process of a device that was opened. If the commands of the device's graphs have
// a timer, opened also writes the timer's name. If that timer cannot be used, opened writes why.
func (w *writer) opened(r *Record) {
	x := w.device(r.Device, r.Label)
	x.timesNodes = r.Op != ""
	if r.Op != "" || r.Err != nil {
		w.meta(traceformat.MetaNodes, x.pid, 0, traceformat.Args{NodeTimes: r.Op, Error: errorOf(r)})
	}
	r.Op, r.Err = "", nil
}

// device returns the process of a device. If the device has no process, the writer makes one, or
// takes the process of a closed device with the same index and name.
func (w *writer) device(d *gpu.Device, driver string) *device {
	x := w.devices[d]
	if x != nil {
		return x
	}
	info := d.Info()
	k := closedDevice{info.Index, info.Name}
	if list := w.closed[k]; len(list) > 0 {
		x, w.closed[k] = list[len(list)-1], list[:len(list)-1]
	} else {
		w.pids++
		x = &device{pid: w.pids}
		w.process(x.pid, traceformat.Args{Name: fmt.Sprintf("GPU %d: %s", info.Index, info.Name), Kind: traceformat.KindDevice, Device: info.Index, Model: info.Name,
			Driver: driver})
	}
	w.devices[d] = x
	x.queues, x.prune = map[weak.Pointer[gpu.Queue]]*track{}, remembered
	for i := range d.Queues() {
		if i == len(x.own) {
			x.own = append(x.own, x.track())
		}
		*x.own[i] = track{tid: x.own[i].tid} // the new device's queue may have another name
		x.queues[weak.Make(d.Queue(i))] = x.own[i]
	}
	return x
}

// over is called when a device has been closed. A device that is opened later may then take the
// process of the closed device.
func (w *writer) over(d *gpu.Device) {
	if x := w.devices[d]; x != nil {
		k := closedDevice{d.Info().Index, d.Info().Name}
		w.closed[k] = append(w.closed[k], x)
		x.queues, x.margin = nil, 0
		delete(w.devices, d)
	}
}

// track makes a track without a name. A track takes two thread numbers.
func (x *device) track() *track {
	x.tids += 2
	return &track{tid: x.tids - 1}
}

// queue returns the track of the queue of a record, and writes the track's name the first time.
func (w *writer) queue(x *device, d *gpu.Device, q *gpu.Queue, r *Record) *track {
	key := weak.Make(q)
	t := x.queues[key]
	if t == nil {
		if len(x.queues) >= x.prune {
			for q := range x.queues {
				if q.Value() == nil {
					delete(x.queues, q)
				}
			}
			x.prune = len(x.queues) + remembered
		}
		t = x.track()
		x.queues[key] = t
	}
	if t.name == "" {
		t.name, t.ch = strings.TrimSuffix(q.String(), " of "+d.Info().Name), r.Ranks > 0
		w.thread(x.pid, t.tid, traceformat.Args{Name: t.name, Kind: traceformat.KindQueue, Queue: int(t.tid / 2)})
	}
	return t
}

// stream returns the tid of the thread for the work of a queue's stream, and writes the thread's
// name the first time.
func (w *writer) stream(x *device, t *track) int64 {
	if t.stream == 0 {
		t.stream = t.tid + 1
		a := traceformat.Args{Name: t.name + ", on the device", Kind: traceformat.KindStream, Stream: int(t.tid / 2)}
		if t.ch {
			a.Kind = traceformat.KindChannel
		}
		w.thread(x.pid, t.stream, a)
	}
	return t.stream
}

// host writes w.event as a slice of the host, from the record's beginning to its end, on the first
// free thread. It returns that thread, and the last time inside the slice, at which an arrow can
// begin.
func (w *writer) host(r *Record) (pid, tid int64, at traceformat.Time) {
	from, to := traceformat.Time(r.Submitted), traceformat.Time(r.Done)
	if r.Kind == KindSubmission {
		from, to = traceformat.Time(r.Begun), traceformat.Time(r.Ended)
	}
	to = max(to, from)
	i := freeLane(w.lanes, from)
	if i == len(w.lanes) {
		w.lanes = append(w.lanes, lane{tid: int64(i) + 1})
		e := w.event
		w.thread(hostPID, w.lanes[i].tid, traceformat.Args{Name: fmt.Sprintf("host %d", i+1), Kind: traceformat.KindHost})
		w.event = e
	}
	x := &w.lanes[i]
	x.end = to
	w.event.PID, w.event.TID, w.event.Time, w.event.Dur = hostPID, x.tid, from, to-from
	w.put()
	return hostPID, x.tid, max(from, to-1)
}

// call writes a call of the host.
func (w *writer) call(r *Record, name string) {
	w.event = traceformat.Event{Phase: traceformat.Complete, Cat: traceformat.CatCall, Name: name, Args: traceformat.Args{Label: r.Label, Bytes: r.Bytes, Error: errorOf(r),
		Waits: w.points(&w.waits, r.Waits), Signals: w.points(&w.signals, r.Signals)}}
	if r.Kind == KindOpen || r.Kind == KindClosed {
		w.event.Args.Label = r.Device.Info().Name
		r.Submitted = max(r.Submitted, r.Done)
	}
	pid, tid, at := w.host(r)
	if r.Kind == KindSignal && r.Err == nil {
		w.arrows.signal(w, r.Signals, flowEnd{pid: pid, tid: tid, at: at, limit: at})
	}
	if r.Kind == KindCall {
		w.arrows.wait(w, r.Waits, flowEnd{pid: pid, tid: tid, at: traceformat.Time(r.Submitted), limit: traceformat.Time(r.Submitted)}, false)
	}
}

func (w *writer) instant(r *Record, cat, name string, a traceformat.Args) {
	x := w.device(r.Device, "")
	w.event = traceformat.Event{Phase: traceformat.Instant, Cat: cat, Name: name, PID: x.pid, Time: traceformat.Time(r.Done), Scope: 'p', Args: a}
	w.put()
}

// count writes the counters of a device.
func (w *writer) count(r *Record) {
	x := w.device(r.Device, "")
	one := func(name string, s ...traceformat.Series) {
		w.event = traceformat.Event{Phase: traceformat.Counter, Name: name, PID: x.pid, Time: traceformat.Time(r.Done), Args: traceformat.Args{Series: append(w.counters[:0], s...)}}
		w.put()
	}
	one(traceformat.CounterInFlight, traceformat.Series{Name: "operations", Value: int64(r.InFlight)})
	one(traceformat.CounterParked, traceformat.Series{Name: "operations", Value: int64(r.ParkedNow)})
	one(traceformat.CounterPoolBytes, traceformat.Series{Name: "reserved", Value: int64(r.Reserved)}, traceformat.Series{Name: "used", Value: int64(r.Used)})
}

// drops writes how many records the tracer has dropped since the last call of drops, if any.
func (w *writer) drops() {
	if n := w.tracer.Stats().Dropped; n > w.dropped {
		w.event = traceformat.Event{Phase: traceformat.Instant, Cat: traceformat.CatDrop, Name: "records are missing", PID: hostPID, Scope: 'g',
			Time: traceformat.Time(time.Since(w.tracer.Start())), Args: traceformat.Args{Dropped: n - w.dropped, Total: n}}
		w.put()
		w.dropped = n
	}
}

// missing writes how many arrows are missing, if the numbers have changed.
func (w *writer) missing() {
	undrawn, forgotten := w.arrows.missing()
	if undrawn == w.undrawn && forgotten == w.forgotten {
		return
	}
	w.undrawn, w.forgotten = undrawn, forgotten
	w.event = traceformat.Event{Phase: traceformat.Instant, Cat: traceformat.CatArrows, Name: "arrows are missing", PID: hostPID, Scope: 'g',
		Time: traceformat.Time(time.Since(w.tracer.Start())), Args: traceformat.Args{Undrawn: undrawn, Forgotten: forgotten}}
	w.put()
}

// submission writes the events of a submission.
func (w *writer) submission(r *Record) {
	x := w.device(r.Device, "")
	t := w.queue(x, r.Device, r.Queue, r)
	a := traceformat.Args{Sub: r.ID, Op: r.Op, Label: r.Label, Kernel: r.Kernel, Grid: r.Grid, Block: r.Block, Bytes: r.Bytes, Commands: r.Commands, Recording: r.Recording, First: r.First, Graph: r.Graph,
		Channel: r.Communicator, Collective: r.Collective, Rank: r.Rank, Ranks: r.Ranks}
	w.list(x, r)
	issued := traceformat.Time(r.Issued)
	if issued == 0 && r.Err == nil { // no stream got work, as for a barrier or a notification
		issued = traceformat.Time(r.Done)
	}
	async := func(phase traceformat.Phase, name string, at traceformat.Time, a traceformat.Args) {
		w.event = traceformat.Event{Phase: phase, Cat: traceformat.CatSubmission, Name: name, PID: x.pid, TID: t.tid, ID: r.ID, Time: at, Args: a}
		w.put()
	}
	given := a
	given.Waits, given.Signals = w.points(&w.waits, r.Waits), w.points(&w.signals, r.Signals)
	async(traceformat.AsyncBegin, t.name, traceformat.Time(r.Submitted), given)
	if r.Parked > 0 {
		until := issued
		if until == 0 {
			until = traceformat.Time(r.Done)
		}
		async(traceformat.AsyncBegin, traceformat.NameParked, min(traceformat.Time(r.Parked), until), traceformat.Args{})
		async(traceformat.AsyncEnd, traceformat.NameParked, until, traceformat.Args{})
	}
	async(traceformat.AsyncEnd, t.name, traceformat.Time(r.Done), traceformat.Args{Issued: issued, Error: errorOf(r), Untimed: r.Untimed, UntimedCommands: r.UntimedCommands})
	if a.Graph && !x.timesNodes && w.opt.Times == CommandTimes && !w.toldGraph {
		w.toldGraph = true
		w.opt.Logger.Warn("puregpu: the trace has no times of the commands of recordings of GraphMode: have them recorded in AutoMode, or import package runtime/trace/cuptitrace",
			"label", r.Label, "queue", r.Queue.String())
	}
	switch r.Timed {
	case DeviceTime:
		w.executed(x, t, r, a)
	case HostTime:
		w.event = traceformat.Event{Phase: traceformat.Complete, Cat: traceformat.CatCall, Name: nameOf(r), Args: given}
		pid, tid, at := w.host(r)
		w.arrows.wait(w, r.Waits, flowEnd{pid, tid, traceformat.Time(r.Begun), traceformat.Time(r.Begun), r.ID}, false)
		if r.Err == nil {
			w.arrows.signal(w, r.Signals, flowEnd{pid, tid, at, at, r.ID})
		}
	default: // keep the signal, although the submission has no slice: otherwise an arrow would begin at a later signal
		if r.Err == nil {
			w.arrows.signal(w, r.Signals, flowEnd{sub: r.ID})
		}
	}
	if took := r.Done - r.Submitted; w.opt.Slow > 0 && took > w.opt.Slow {
		w.logSlow(r, took)
	}
}

// list writes the commands of a record's recording, unless the file has them.
func (w *writer) list(x *device, r *Record) {
	if r.recorded == nil {
		return
	}
	if _, ok := w.listed.Of(r.Recording); ok {
		return
	}
	w.listed.Set(r.Recording, struct{}{})
	for i := range r.recorded.Commands {
		c := &r.recorded.Commands[i]
		w.meta(traceformat.MetaCommand, x.pid, 0, traceformat.Args{Recording: r.Recording, Command: i, Op: c.Kind.String(), Label: c.Label, Kernel: c.Kernel,
			Grid: c.Grid, Block: c.Block, Bytes: c.Bytes})
	}
}

// nameOf returns the name of a record's slice.
func nameOf(r *Record) string { return cmp.Or(r.Label, r.Kernel, r.Op) }

// The writer writes a record's own margin if that margin exceeds the margin of the clocks by more
// than this constant.
const inexact = 3 * time.Microsecond

// inexact returns the margin of a record's times if that margin is to be written, otherwise 0.
func (x *device) inexact(r *Record) traceformat.Time {
	if r.Within > x.margin+inexact {
		return traceformat.Time(r.Within)
	}
	return 0
}

// executed writes the slice of a submission on the device.
func (w *writer) executed(x *device, t *track, r *Record, a traceformat.Args) {
	tid := w.stream(x, t)
	begun, ended, done := traceformat.Time(r.Begun), traceformat.Time(r.Ended), traceformat.Time(r.Done)
	from := max(begun-traceformat.Time(r.Early), t.end) // the earliest possible beginning
	if by := t.end - begun; by > 0 {
		// Move the slice behind the previous slice, but not beyond the time at which the host saw
		// the work done. The previous slice may be of later work, because the records need not come
		// in the order of the stream's work.
		begun = min(begun+by, done)
		ended = max(min(ended+by, done), begun)
	}
	from = min(from, begun)
	t.end, t.cmd, t.until = max(t.end, ended), from, ended
	a.Margin, a.Early = x.inexact(r), begun-from
	w.event = traceformat.Event{Phase: traceformat.Complete, Cat: traceformat.CatDevice, Name: nameOf(r), PID: x.pid, TID: tid, Time: begun, Dur: ended - begun, Args: a}
	w.put()
	w.arrows.wait(w, r.Waits, flowEnd{x.pid, tid, begun, traceformat.Time(min(r.Begun+r.Within, r.Done)), r.ID}, false)
	if r.Err == nil {
		w.arrows.signal(w, r.Signals, flowEnd{x.pid, tid, max(begun, ended-1), traceformat.Time(max(r.Ended-r.Within, r.Issued)), r.ID})
	}
}

// command writes the slice of a command of a recording, inside the slice of the stream that was
// written last.
func (w *writer) command(r *Record) {
	if r.Timed != DeviceTime {
		return
	}
	x := w.device(r.Device, "")
	t := w.queue(x, r.Device, r.Queue, r)
	if t.stream == 0 {
		return
	}
	begun := min(max(traceformat.Time(r.Begun), t.cmd), t.until)
	ended := min(max(traceformat.Time(r.Ended), begun), t.until)
	early := begun - max(min(traceformat.Time(r.Begun-r.Early), begun), t.cmd)
	t.cmd = ended
	w.event = traceformat.Event{Phase: traceformat.Complete, Cat: traceformat.CatCommand, Name: cmp.Or(r.Kernel, r.Op), PID: x.pid, TID: t.stream, Time: begun, Dur: ended - begun,
		Args: w.commandArgs(r)}
	w.event.Args.Margin, w.event.Args.Early = x.inexact(r), early
	w.put()
}

// commandArgs returns the arguments of the slice of a command: those that the list of the
// recording's commands does not have.
func (w *writer) commandArgs(r *Record) traceformat.Args {
	a := traceformat.Args{Sub: r.ID, Recording: r.Recording, Command: r.Command}
	if r.recorded == nil {
		a.Op, a.Kernel, a.Grid, a.Block, a.Bytes = r.Op, r.Kernel, r.Grid, r.Block, r.Bytes
		return a
	}
	c := &r.recorded.Commands[r.Command]
	if r.Kernel != c.Kernel {
		a.Kernel = r.Kernel
	}
	if r.Grid != c.Grid { // a parameter
		a.Grid = r.Grid
	}
	return a
}

// node writes the slice of a command of a graph. The times of the command need not lie within the
// times of the submission, because two clocks may have measured them.
func (w *writer) node(r *Record) {
	x := w.device(r.Device, "")
	w.list(x, r)
	begun, ended := traceformat.Time(r.Begun), traceformat.Time(r.Ended)
	i := freeLane(x.nodes, begun)
	if i == len(x.nodes) {
		title := "commands of graphs"
		if i > 0 {
			title = fmt.Sprintf("%s, %d", title, i+1)
		}
		x.nodes = append(x.nodes, lane{tid: x.track().tid})
		w.thread(x.pid, x.nodes[i].tid, traceformat.Args{Name: title, Kind: traceformat.KindNodes})
	}
	x.nodes[i].end = ended
	w.event = traceformat.Event{Phase: traceformat.Complete, Cat: traceformat.CatCommand, Name: cmp.Or(r.Kernel, r.Op), PID: x.pid, TID: x.nodes[i].tid, Time: begun, Dur: ended - begun,
		Args: w.commandArgs(r)}
	w.put()
}

// logSlow logs a slow submission.
func (w *writer) logSlow(r *Record, took time.Duration) {
	attrs := []any{"op", r.Op, "queue", r.Queue.String(), "took", took, "submission", r.ID}
	if r.Label != "" {
		attrs = append(attrs, "label", r.Label)
	}
	if r.Kernel != "" {
		attrs = append(attrs, "kernel", r.Kernel)
	}
	if r.Issued > 0 {
		attrs = append(attrs, "issued after", r.Issued-r.Submitted)
	}
	if r.Timed != NoTime {
		attrs = append(attrs, "ran for", r.Ended-r.Begun)
	}
	if r.Err != nil {
		attrs = append(attrs, "error", r.Err)
	}
	w.opt.Logger.Warn("puregpu: a slow submission", attrs...)
}
