// Package trace records what devices do. A [Tracer] keeps records in a ring, for programs that look
// at them. A [Trace] writes them to a file that Perfetto (https://ui.perfetto.dev), Chrome's tracing
// and tools/gputrace show: what each queue was given, what waited for what, what each device ran
// and when, and what the host did meanwhile.
//
//	t, err := trace.Create("run.json", trace.Options{})
//	dev, err := gpu.Open(driver, 0, gpu.Options{Tracer: t.Tracer()})
//	…
//	dev.Close()
//	err = t.Close()
//
// Programs that open drivers by package drivers need no such code: they are traced if the
// environment variable PUREGPU_TRACE names a file ([FromEnv]). The file is written as a stream. If
// the program dies, the file is good up to that point. docs/trace-format.md describes it.
//
// While runtime/trace of the standard library is enabled, each submission is a task of it, and each
// wait a region. Functions that the runtime calls, such as host calls, run with labels of
// runtime/pprof: gpu_op, gpu_queue, gpu_label.
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

// Options say what is traced. The zero value is the usual way.
type Options struct {
	// Times selects the work whose device times are recorded.
	Times Times

	// Records is for how many records there is room until they are written; 0 means 32768, some 15 MB. What does not fit is missing, and
	// counted in the file.
	Records int

	// Slow, if it is above 0, has each submission logged to Logger that took longer, from the call until it was seen done.
	Slow   time.Duration
	Logger *slog.Logger // nil means [slog.Default]

	// Rank and World say which of how many processes this is, from 0; a World of 0 leaves it to what launchers set: torchrun, mpirun, srun.
	Rank, World int
}

func (o *Options) check() error {
	if o.World < 0 || o.World > 0 && (o.Rank < 0 || o.Rank >= o.World) {
		return fmt.Errorf("trace: there is no rank %d among %d, which are numbered from 0: %w", o.Rank, o.World, gpu.ErrArgument)
	}
	return nil
}

// A Trace is being written. All methods may be called concurrently.
type Trace struct {
	tracer *Tracer

	mu      sync.Mutex
	w       *writer
	to      io.Writer
	records []Record
	sampled time.Time
	err     error // of the first write that failed
	closed  bool

	file *os.File // of Create
	stop chan struct{}
	done chan struct{}
}

// Start begins a trace that is written to w, in pieces: every few milliseconds, when a traced device is closed, and by Flush. An error of w
// ends the writing, and not the program; Close returns it.
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

// Create is Start with a file. It makes a new file, which only its owner can read, and first removes a regular file of that name. It
// fails if the name is that of a link, a device, a pipe or a folder. In the name %p becomes the number of the process and %r the rank. If
// there are several ranks, and neither is in the name, the rank is put in front of the ending. If another trace is being written to the
// file, the number of the process is put there.
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

// Tracer returns the tracer to name in [gpu.Options].
func (t *Trace) Tracer() *Tracer { return t.tracer }

// Driver returns a driver whose devices are traced, unless they are opened with another tracer. But for that it is the driver that it is
// given, though not the same value; a nil driver stays nil.
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

// Tracer is for package gpu.
func (d *traced) Tracer() gpu.Tracer { return d.tracer }

// Pauses between writes: a program that submits much is written often, and one that is idle costs as good as nothing.
const (
	shortest    = 5 * time.Millisecond
	longest     = 80 * time.Millisecond
	sampleEvery = 20 * time.Millisecond
)

// run writes what has come, until Close.
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

// Flush writes what there is. It asks the devices for the times of what they have done, and so waits for their drivers.
func (t *Trace) Flush() error {
	_, err := t.flush()
	return err
}

// flush is Flush, and returns how many records there were. It takes no more than there was room for when it began, rounded up as the tracer does:
// programs may note records faster than they can be written, and who closes a device waits for this.
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

// deviceClosed writes what there is when a device has been closed.
func (t *Trace) deviceClosed() {
	t.Flush()
	t.mu.Lock()
	defer t.mu.Unlock()
	t.writeEnd()
}

// writeEnd gives the file its end if no device is open, for a program that does not close the trace. It is written over if more comes.
func (t *Trace) writeEnd() {
	if t.closed || t.tracer.Stats().Devices > 0 {
		return
	}
	for d := range t.w.devices { // the record that one has been closed may have been dropped
		t.w.over(d)
	}
	if t.file == nil || t.err != nil {
		return
	}
	t.w.missing()
	t.write()
	if _, err := t.file.Seek(0, io.SeekCurrent); err != nil {
		return // a pipe, say
	}
	if n, err := t.file.WriteString(end); err == nil {
		t.file.Seek(int64(-n), io.SeekCurrent)
	}
}

// write hands over what is in the buffer.
func (t *Trace) write() {
	t.w.drops()
	if len(t.w.buf) > 0 && t.err == nil {
		if _, err := t.to.Write(t.w.buf); err != nil {
			t.err = fmt.Errorf("trace: %w", err)
		}
	}
	t.w.buf = t.w.buf[:0]
}

// Close writes what is left and the end of the file, and closes a file of [Create]. Devices that are still open go on, and nothing more of them is
// written. It returns the first error there was in writing. Closing again returns that too.
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
