// Package trace records the work of devices. A [Tracer] keeps records in a ring, for programs that
// read them. A [Trace] writes records to a file that Perfetto (https://ui.perfetto.dev), Chrome's
// tracing and tools/gputrace show: the work of each queue, the waits between operations, the device
// times of each operation, and the calls of the host.
//
//	t, err := trace.Create("run.json", trace.Options{})
//	dev, err := gpu.Open(driver, 0, gpu.Options{Tracer: t.Tracer()})
//	…
//	dev.Close()
//	err = t.Close()
//
// Programs that open drivers by package drivers need no such code: they are traced if the
// environment variable PUREGPU_TRACE names a file ([FromEnv]). The file is written while the
// program runs. If the program dies, the file is good up to the last write. docs/trace-format.md
// describes the format.
//
// While the standard library's runtime/trace is enabled, each submission is a task of
// runtime/trace, and each wait of the host is a region. When the runtime calls a function of the
// program, the function runs with labels of runtime/pprof. Host calls and notifications have
// gpu_op, gpu_queue and gpu_label. Functions given to OnReached have gpu_op and gpu_semaphore.
package trace

import (
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"sync"
	"time"

	"github.com/puregpu/puregpu/internal/secureenv"
	"github.com/puregpu/puregpu/runtime/driver"
	"github.com/puregpu/puregpu/runtime/gpu"
)

// Options configure a [Trace]. The zero value is the usual configuration.
type Options struct {
	// Times selects the work whose device times are recorded.
	Times Times

	// Records is the number of records that can wait to be written. 0 means 32768, which take about
	// 15 MB. Further records are dropped until some have been written. The file says how many were
	// dropped.
	Records int

	// Slow, if above 0, is a time limit, from the call that submits until the host has seen the
	// submission done. Submissions that take longer are logged to Logger.
	Slow   time.Duration
	Logger *slog.Logger // nil means [slog.Default]

	// Rank and World are the rank of this process, from 0, and the number of processes. If World is
	// 0, they are taken from the environment: from PUREGPU_RANK and PUREGPU_WORLD_SIZE, or from the
	// variables of torchrun, mpirun or srun.
	Rank, World int
}

func (o *Options) check() error {
	if o.World < 0 || o.World > 0 && (o.Rank < 0 || o.Rank >= o.World) {
		return fmt.Errorf("trace: there is no rank %d among %d, which are numbered from 0: %w", o.Rank, o.World, gpu.ErrArgument)
	}
	return nil
}

// A Trace writes the records of a tracer. All methods may be called concurrently.
type Trace struct {
	tracer *Tracer

	mu      sync.Mutex
	w       *writer
	to      io.Writer
	records []Record
	sampled time.Time
	err     error // the first error of writing or closing
	closed  bool

	file *os.File // the file that Create has made; nil for a trace of Start
	stop chan struct{}
	done chan struct{}
}

// Start starts a trace that is written to w. The trace is written at intervals of at most a tenth
// of a second, when a traced device is closed, and by Flush and Close. Start writes the beginning,
// and returns the error if writing fails. If a later write fails, the trace writes nothing more,
// and Close returns the error.
func Start(w io.Writer, o Options) (*Trace, error) {
	if w == nil {
		return nil, fmt.Errorf("trace: nothing to write to: %w", gpu.ErrArgument)
	}
	if err := o.check(); err != nil {
		return nil, err
	}
	if o.Records == 0 {
		o.Records = 1 << 15
	}
	if o.Logger == nil {
		o.Logger = slog.Default()
	}
	if o.World == 0 {
		o.Rank, o.World = rankOf(secureenv.Lookup)
	}
	t := &Trace{to: w, records: make([]Record, 256), stop: make(chan struct{}), done: make(chan struct{})}
	var err error
	if t.tracer, err = NewTracer(TracerOptions{Records: o.Records, Times: o.Times, Flush: t.deviceClosed}); err != nil {
		return nil, err
	}
	t.w = newWriter(t.tracer, o)
	if err := t.Flush(); err != nil {
		return nil, err
	}
	go t.run()
	return t, nil
}

// Create is like Start, with a file. It creates a new file, which only its owner can read. If a
// regular file has the name, Create removes that file first, unless another trace is being written
// to it. If the name belongs to a link, a device, a pipe or a folder, Create fails. In the name, %p
// is replaced by the number of the process and %r by the rank. If there are several ranks and the
// name has neither, Create puts the rank before the extension. If another trace is being written to
// the file with the name, Create puts the number of the process before the extension, and a further
// number if the file with that name is taken too.
func Create(name string, o Options) (*Trace, error) {
	if err := o.check(); err != nil {
		return nil, err
	}
	if o.World == 0 {
		o.Rank, o.World = rankOf(secureenv.Lookup)
	}
	f, err := create(name, o.Rank, o.World)
	if err != nil {
		return nil, fmt.Errorf("trace: %w", err)
	}
	t, err := Start(f, o)
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	t.mu.Lock()
	t.file = f
	t.mu.Unlock()
	return t, nil
}

// Tracer returns the trace's tracer, for [gpu.Options].
func (t *Trace) Tracer() *Tracer { return t.tracer }

// Driver returns a driver whose devices are traced, unless they are opened with another tracer.
// Apart from tracing, the returned driver behaves like d, but is not the same value. If d is nil,
// Driver returns nil.
func (t *Trace) Driver(d driver.Driver) driver.Driver {
	if d == nil {
		return nil
	}
	return &traced{d, t.tracer}
}

type traced struct {
	driver.Driver
	tracer *Tracer
}

// Tracer tells package gpu which tracer to use.
func (d *traced) Tracer() gpu.Tracer { return d.tracer }

// A trace pauses between writes. After a write of records the pause has the length shortest. Each
// time there were no records, the length doubles, but it never exceeds the length longest.
// Tracer.Soon ends a pause early. Counters are sampled at most once in sampleEvery, and not in an
// idle program.
const (
	shortest    = 5 * time.Millisecond
	longest     = 80 * time.Millisecond
	sampleEvery = 20 * time.Millisecond
)

// run writes new records until Close.
func (t *Trace) run() {
	defer close(t.done)
	pause := shortest
	timer := time.NewTimer(pause)
	defer timer.Stop()
	for {
		select {
		case <-t.stop:
			return
		case <-timer.C:
		case <-t.tracer.Soon():
		}
		if n, _ := t.flush(); n > 0 {
			pause = shortest
		} else {
			pause = min(2*pause, longest)
		}
		timer.Reset(pause)
	}
}

// Flush writes the records so far. It queries the devices for the times of finished work, and so
// waits for their drivers.
func (t *Trace) Flush() error {
	_, err := t.flush()
	return err
}

// flush is like Flush, and returns the number of records that it took. flush stops after about
// twice as many records as Options.Records: programs may add records faster than they can be
// written, and the goroutine that closes a device waits for flush.
func (t *Trace) flush() (total int, err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.closed {
		return 0, t.err
	}
	for more := true; more && total < 2*t.w.opt.Records; {
		n := t.tracer.Take(t.records)
		for i := range t.records[:n] {
			t.w.add(&t.records[i])
		}
		total += n
		more = n == len(t.records)
		if total > 0 && !more && time.Since(t.sampled) >= sampleEvery {
			t.tracer.Sample()
			t.sampled, more = time.Now(), true
		}
		t.write()
	}
	if total > 0 {
		t.writeEnd()
	}
	return total, t.err
}

// deviceClosed is called when a device has been closed or could not be opened. deviceClosed writes
// the records and, if no device is open, the end of the file (see writeEnd).
func (t *Trace) deviceClosed() {
	t.Flush()
	t.mu.Lock()
	defer t.mu.Unlock()
	t.writeEnd()
}

// writeEnd writes the end of a file of Create if no device is open, for programs that do not close
// the trace. Later records overwrite that end.
func (t *Trace) writeEnd() {
	if t.closed || t.tracer.Stats().Devices > 0 {
		return
	}
	for d := range t.w.devices { // the record of closing a device may have been dropped
		t.w.over(d)
	}
	if t.file == nil || t.err != nil {
		return
	}
	t.w.missing()
	t.write()
	if _, err := t.file.Seek(0, io.SeekCurrent); err != nil {
		return
	}
	if n, err := t.file.WriteString(end); err == nil {
		t.file.Seek(int64(-n), io.SeekCurrent)
	}
}

// write writes the buffer, with the number of newly dropped records.
func (t *Trace) write() {
	t.w.drops()
	if len(t.w.buf) > 0 && t.err == nil {
		if _, err := t.to.Write(t.w.buf); err != nil {
			t.err = fmt.Errorf("trace: %w", err)
		}
	}
	t.w.buf = t.w.buf[:0]
}

// Close writes the remaining records and the end of the file, and closes a file of [Create].
// Devices that are still open go on without a trace. Close returns the first error of writing or
// closing. Closing again returns the same error.
func (t *Trace) Close() error {
	t.Flush()
	t.mu.Lock()
	first := !t.closed
	if first {
		t.w.end()
		t.write()
		t.closed = true
		close(t.stop)
		if t.file != nil {
			if err := t.file.Close(); err != nil && t.err == nil {
				t.err = fmt.Errorf("trace: %w", err)
			}
		}
	}
	err := t.err
	t.mu.Unlock()
	<-t.done
	return err
}
