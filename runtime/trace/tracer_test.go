package trace_test

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	rtrace "runtime/trace"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"
	"weak"

	"github.com/puregpu/puregpu/runtime/driver"
	"github.com/puregpu/puregpu/runtime/driver/simdriver"
	"github.com/puregpu/puregpu/runtime/gpu"
	"github.com/puregpu/puregpu/runtime/internal/testkit"
	"github.com/puregpu/puregpu/runtime/internal/work"
	"github.com/puregpu/puregpu/runtime/trace"
)

func newTracer(t testing.TB, o trace.TracerOptions) *trace.Tracer {
	t.Helper()
	tracer, err := trace.NewTracer(o)
	must(t, err)
	return tracer
}

// taken takes all records.
func taken(tracer *trace.Tracer) (all []trace.Record) {
	for {
		some := make([]trace.Record, 64)
		n := tracer.Take(some)
		all = append(all, some[:n]...)
		if n < len(some) {
			return all
		}
	}
}

// submissions returns the records of submissions.
func submissions(records []trace.Record) []trace.Record {
	return slices.DeleteFunc(slices.Clone(records), func(r trace.Record) bool { return r.Kind != trace.KindSubmission })
}

// TestTraceTimes checks that the records have the times at which the device ran the work, and that
// the device's times lie within the host's times.
func TestTraceTimes(t *testing.T) {
	for kind, caps := range bothCaps() {
		t.Run(kind, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				tracer := newTracer(t, trace.TracerOptions{})
				_, dev, sleep := sleeper(t, caps, gpu.Options{Queues: 2, Tracer: tracer})
				s := semaphores(t, 1)[0]
				times := []time.Duration{5 * time.Microsecond, 3 * time.Millisecond, 100 * time.Microsecond, time.Second}
				for i, d := range slices.Backward(times) { // backwards: only the submission for times[0] is not parked
					must(t, dev.Queue(i).Submit(gpu.Order{Wait: pts(s, uint64(i)), Signal: pts(s, uint64(i)+1)}, sleep.Launch(gpu.GridFor(1, 1), sleepArgs{Nanoseconds: uint64(d)})))
				}
				must(t, s.Wait(context.Background(), uint64(len(times))))
				must(t, dev.Close())
				list := submissions(taken(tracer))
				if len(list) != len(times) {
					t.Fatalf("%d records of %d submissions", len(list), len(times))
				}
				for _, r := range list {
					i := int(r.Waits[0].Value)
					if r.Timed != trace.DeviceTime || r.Untimed || r.Kernel != "sleep" || r.Signals[0].Value != uint64(i)+1 || r.Signals[0].Semaphore != r.Waits[0].Semaphore {
						t.Errorf("submission %d: %+v", i, r)
					}
					if took := r.Ended - r.Begun; took != times[i] {
						t.Errorf("submission %d took %v, and was to take %v", i, took, times[i])
					}
					if r.Submitted > r.Issued || r.Issued > r.Begun || r.Begun > r.Ended || r.Ended > r.Done || r.Within > time.Millisecond {
						t.Errorf("submission %d: submitted %v, issued %v, begun %v, ended %v, done %v, within %v", i, r.Submitted, r.Issued, r.Begun, r.Ended, r.Done, r.Within)
					}
					if parked := r.Parked > 0; parked != (i > 0) {
						t.Errorf("submission %d: parked at %v", i, r.Parked)
					}
				}
			})
		})
	}
}

// TestTraceRing submits up to a million operations, and takes no records meanwhile. The tracer
// must need only limited memory, and must count the dropped records.
func TestTraceRing(t *testing.T) {
	const room = 1 << 16
	n := uint64(1_000_000)
	if raceEnabled || testing.Short() {
		n /= 5
	}
	tracer := newTracer(t, trace.TracerOptions{Records: room, Times: trace.NoTimes})
	dev, err := gpu.Open(idleDriver{}, 0, gpu.Options{Tracer: tracer})
	must(t, err)
	b := allocate(t, dev, 64)
	s := semaphores(t, 1)[0]
	var wait, signal [1]gpu.Point
	submit := func(from, to uint64) {
		for i := from; i < to; i++ {
			wait[0], signal[0] = s.At(i), s.At(i+1)
			must(t, dev.Queue(0).Submit(gpu.Order{Wait: wait[:], Signal: signal[:]}, gpu.Fill(b.All(), []byte{1}).Label("a fill")))
		}
	}
	submit(0, 1000)
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	submit(1000, n)
	runtime.ReadMemStats(&after)
	// The limit includes the lists of points of all records, which are allocated once.
	if got := after.TotalAlloc - before.TotalAlloc; got > 64<<20 && !raceEnabled {
		t.Errorf("%d bytes were allocated", got)
	}
	must(t, s.Wait(context.Background(), n))
	must(t, dev.Close())
	stats := tracer.Stats()
	const others = 3 // device opened, memory allocated, device closed
	if stats.Submissions != n || stats.Records != room || stats.Dropped < n+others-room || stats.Dropped > n+others+1-room {
		t.Errorf("%+v", stats)
	}
	list := taken(tracer)
	if len(list) != room {
		t.Errorf("%d records", len(list))
	}
	for i, r := range submissions(list) {
		if r.ID != uint64(i)+1 || r.Waits[0].Value != uint64(i) || r.Label != "a fill" {
			t.Fatalf("record %d is %+v", i, r)
		}
	}
}

// TestTraceAllocs checks that a submission allocates nothing. The device has a tracer or none, and
// the submission has a Timing or none.
func TestTraceAllocs(t *testing.T) {
	if raceEnabled {
		t.Skip("the race detector allocates")
	}
	tracer := newTracer(t, trace.TracerOptions{Records: 64})
	for name, tr := range map[string]*trace.Tracer{"off": nil, "on": tracer} {
		dev := openDevice(t, newSim(t, simdriver.Config{}), 0, gpu.Options{Tracer: tr})
		b := allocate(t, dev, 64)
		timing, err := dev.NewTiming()
		must(t, err)
		s := semaphores(t, 1)[0]
		v := uint64(0)
		one := func() {
			wait, signal := [1]gpu.Point{s.At(v)}, [1]gpu.Point{s.At(v + 1)}
			op := gpu.Fill(b.All(), []byte{1}).Label("fill")
			if v++; v%2 == 0 {
				op = op.Timed(timing)
			}
			if err := dev.Queue(0).Submit(gpu.Order{Wait: wait[:], Signal: signal[:]}, op); err != nil {
				t.Fatal(err)
			}
			for now, _ := s.Query(); now < v; now, _ = s.Query() {
				runtime.Gosched()
			}
		}
		// With the tracer, this loop ends with mostUnasked submissions whose times wait to be
		// queried. So the times of later submissions are not recorded.
		for range 20_000 {
			one()
		}
		n := testing.AllocsPerRun(1000, one)
		// The refiller may still be making events, and AllocsPerRun counts the allocations of all
		// goroutines.
		for range 4 {
			if n > 0 {
				n = testing.AllocsPerRun(1000, one)
			}
		}
		if n != 0 {
			t.Errorf("%s: %v allocations a submission", name, n)
		}
	}
}

// TestTraceWithoutEvents uses a driver that makes no timing events, or does not return their times.
// The records must say that times are missing, and everything else must work.
func TestTraceWithoutEvents(t *testing.T) {
	for _, op := range []simdriver.Op{simdriver.OpNewTimer, simdriver.OpElapsed} {
		t.Run(string(op), func(t *testing.T) {
			d := newSim(t, simdriver.Config{})
			d.Inject(simdriver.Fault{Op: op, Device: simdriver.AnyDevice})
			tracer := newTracer(t, trace.TracerOptions{})
			dev := openDevice(t, d, 0, gpu.Options{Tracer: tracer})
			b, s := allocate(t, dev, 64), semaphores(t, 1)[0]
			for i := range uint64(10) {
				must(t, dev.Queue(0).Submit(gpu.Order{Wait: pts(s, i), Signal: pts(s, i+1)}, gpu.Fill(b.All(), []byte{byte(i)})))
				taken(tracer)
			}
			must(t, s.Wait(minute(t), 10))
			if got := bytesOf(t, dev.Queue(0), b, s.At(10)); got[0] != 9 {
				t.Errorf("the memory has %d", got[0])
			}
			must(t, dev.Close())
			for _, r := range submissions(taken(tracer)) {
				if !r.Untimed || r.Timed != trace.NoTime || r.Err != nil || r.Done == 0 {
					t.Errorf("%+v", r)
				}
			}
			if stats := tracer.Stats(); stats.Untimed != stats.Submissions || stats.Submissions != 11 {
				t.Errorf("%+v", stats)
			}
		})
	}
}

// TestTraceLoss checks that the records of submissions that fail with their device have the error,
// and that the loss has a record.
func TestTraceLoss(t *testing.T) {
	d := newSim(t, simdriver.Config{})
	tracer := newTracer(t, trace.TracerOptions{})
	dev := openDevice(t, d, 0, gpu.Options{Tracer: tracer})
	b, s, never := allocate(t, dev, 64), semaphores(t, 1)[0], semaphores(t, 1)[0]
	must(t, dev.Queue(0).Submit(gpu.Order{Signal: pts(s, 1)}, gpu.Fill(b.All(), []byte{1})))
	must(t, s.Wait(minute(t), 1))
	must(t, dev.Queue(0).Submit(gpu.Order{Wait: pts(never, 1), Signal: pts(s, 2)}, gpu.Fill(b.All(), []byte{1}).Label("parked")))
	d.LoseDevice(0, io.ErrClosedPipe)
	must(t, dev.Queue(0).Submit(gpu.Order{}, gpu.Fill(b.All(), []byte{1}))) // this call finds the loss
	if err := s.Wait(minute(t), 2); !errors.Is(err, driver.ErrLost) {
		t.Errorf("%v", err)
	}
	dev.Close()
	all := taken(tracer)
	lost := 0
	for _, r := range all {
		if r.Kind == trace.KindLost && errors.Is(r.Err, driver.ErrLost) {
			lost++
		}
	}
	list := submissions(all) // may be out of order, because records with device times come later
	slices.SortFunc(list, func(a, b trace.Record) int { return cmp.Compare(a.ID, b.ID) })
	if lost != 1 || len(list) != 3 || list[0].Err != nil {
		t.Errorf("%d losses, %d submissions", lost, len(list))
	}
	for _, r := range list[1:] {
		if !errors.Is(r.Err, driver.ErrLost) || r.Timed != trace.NoTime || r.Done < r.Submitted {
			t.Errorf("%+v", r)
		}
	}
}

// TestTracePools checks the records of how much memory the driver's pools reserve and return.
func TestTracePools(t *testing.T) {
	caps := simdriver.CUDACaps()
	tracer := newTracer(t, trace.TracerOptions{})
	dev := openDevice(t, newSim(t, simdriver.Config{Caps: &caps}), 0, gpu.Options{Tracer: tracer})
	p, err := dev.NewPool(gpu.PoolOptions{})
	must(t, err)
	if p.Options().Portable {
		t.Fatal("the pool is not the driver's")
	}
	s := semaphores(t, 1)[0]
	changes := func() (grown, shrunk uint64) {
		for _, r := range taken(tracer) {
			switch r.Kind {
			case trace.KindGrow:
				grown += r.Bytes
			case trace.KindShrink:
				shrunk += r.Bytes
			}
		}
		return grown, shrunk
	}
	b, err := testkit.AllocIn(dev.Queue(0), gpu.Order{Signal: pts(s, 1)}, p, 1<<20)
	must(t, err)
	must(t, s.Wait(minute(t), 1))
	for range 2 { // the second sample finds no change, so it must add no record about the pool
		tracer.Sample()
	}
	stats, err := p.Stats()
	must(t, err)
	if grown, shrunk := changes(); grown != stats.Reserved || grown < 1<<20 || shrunk != 0 {
		t.Errorf("it has grown by %d and shrunk by %d bytes, and %d are reserved", grown, shrunk, stats.Reserved)
	}
	must(t, dev.Queue(0).Submit(gpu.Order{Signal: pts(s, 2)}, gpu.Free(b)))
	must(t, s.Wait(minute(t), 2))
	must(t, p.Close())
	must(t, dev.Close())
	if grown, shrunk := changes(); grown != 0 || shrunk != stats.Reserved {
		t.Errorf("it has grown by %d and shrunk by %d bytes, of %d", grown, shrunk, stats.Reserved)
	}
}

// TestTraceGo enables the standard library's trace. Submissions must be tasks with their labels,
// and waits must be regions.
func TestTraceGo(t *testing.T) {
	if rtrace.IsEnabled() {
		t.Skip("this process is already being traced")
	}
	var out strings.Builder
	must(t, rtrace.Start(&out))
	dev := openDevice(t, newSim(t, simdriver.Config{}), 0, gpu.Options{Tracer: newTracer(t, trace.TracerOptions{})})
	b, s := allocate(t, dev, 64), semaphores(t, 1)[0]
	must(t, dev.Queue(0).Submit(gpu.Order{Signal: pts(s, 1)}, gpu.Fill(b.All(), []byte{1}).Label("my own label")))
	must(t, s.Wait(minute(t), 1))
	must(t, dev.Close())
	rtrace.Stop()
	for _, want := range []string{"gpu fill", "gpu wait", "my own label"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("the trace has no %q", want)
		}
	}
	tool, err := exec.LookPath("go")
	if err != nil {
		t.Skip("without the go command nothing here reads the trace's events")
	}
	file := filepath.Join(t.TempDir(), "go.trace")
	must(t, os.WriteFile(file, []byte(out.String()), 0o600))
	events, err := exec.CommandContext(minute(t), tool, "tool", "trace", "-d=parsed", file).CombinedOutput()
	if err != nil {
		t.Skipf("go tool trace does not read the trace: %v: %.300s", err, events)
	}
	begin := regexp.MustCompile(`TaskBegin .*\bID=(\d+) .*Type="gpu fill"`).FindSubmatch(events)
	log := regexp.MustCompile(`Log .*\bTask=(\d+) .*Message="my own label"`).FindSubmatch(events)
	if begin == nil || log == nil || !bytes.Equal(begin[1], log[1]) {
		t.Errorf("the label is not logged to the task of its submission: %s, and %s", begin, log)
	}
}

// TestTraceNameDropped drops the record of a semaphore's name, because the ring is full. The name
// must be recorded when the semaphore is used again.
func TestTraceNameDropped(t *testing.T) {
	tracer := newTracer(t, trace.TracerOptions{Records: 4, Times: trace.NoTimes})
	dev := openDevice(t, newSim(t, simdriver.Config{}), 0, gpu.Options{Tracer: tracer})
	var s, named gpu.Semaphore
	named.SetName("step")
	for v := range uint64(4) {
		must(t, dev.Queue(0).Submit(gpu.Order{Signal: []gpu.Point{s.At(v + 1)}}, gpu.Barrier()))
	}
	must(t, dev.Queue(0).Submit(gpu.Order{Signal: []gpu.Point{named.At(1)}}, gpu.Barrier()))
	must(t, named.Wait(context.Background(), 1))
	taken(tracer)
	must(t, dev.Queue(0).Submit(gpu.Order{Signal: []gpu.Point{named.At(2)}}, gpu.Barrier()))
	must(t, named.Wait(context.Background(), 2))
	if all := taken(tracer); !slices.ContainsFunc(all, func(r trace.Record) bool { return r.Kind == trace.KindName && r.Label == "step" }) {
		t.Errorf("%+v", all)
	}
}

// TestTraceOver uses a semaphore that outlives tracers. The semaphore must not keep old tracers
// alive, and must work with a new tracer.
func TestTraceOver(t *testing.T) {
	var s gpu.Semaphore
	use := func(v uint64) weak.Pointer[trace.Tracer] {
		tracer := newTracer(t, trace.TracerOptions{Records: 16, Times: trace.NoTimes})
		dev, err := gpu.Open(simdriver.New(simdriver.Config{}), 0, gpu.Options{Tracer: tracer})
		must(t, err)
		must(t, dev.Queue(0).Submit(gpu.Order{Signal: pts(&s, v)}, gpu.Barrier()))
		must(t, s.Wait(minute(t), v))
		must(t, dev.Close())
		return weak.Make(tracer)
	}
	for v := range uint64(3) {
		old := use(v + 1)
		eventually(t, "the tracer is forgotten", func() bool { runtime.GC(); return old.Value() == nil })
	}
	kept := newTracer(t, trace.TracerOptions{Records: 16, Times: trace.NoTimes})
	dev := openDevice(t, newSim(t, simdriver.Config{}), 0, gpu.Options{Tracer: kept})
	must(t, dev.Queue(0).Submit(gpu.Order{Wait: pts(&s, 3)}, gpu.Barrier()))
	must(t, s.Signal(4))
	if all := taken(kept); !slices.ContainsFunc(all, func(r trace.Record) bool { return r.Kind == trace.KindSignal && r.Signals[0].Value == 4 }) {
		t.Errorf("%+v", all)
	}
}

// TestTraceFlushBlocks uses a tracer whose Flush blocks. Close of the device must return before
// Flush does, with an error that names Flush. In one of the two cases, Close has first given up
// waiting for the driver.
func TestTraceFlushBlocks(t *testing.T) {
	for _, stuck := range []bool{false, true} {
		t.Run(fmt.Sprintf("stuck driver %v", stuck), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				written, d := make(chan struct{}), simdriver.New(simdriver.Config{})
				tracer := newTracer(t, trace.TracerOptions{Flush: func() { <-written }})
				dev, err := gpu.Open(d, 0, gpu.Options{Tracer: tracer})
				must(t, err)
				if stuck {
					d.SetLatency(simdriver.OpDestroyStream, time.Minute)
				}
				if err := dev.Close(); !errors.Is(err, driver.ErrBusy) || !strings.Contains(err.Error(), "Flush of its tracer") {
					t.Errorf("%v", err)
				}
				close(written)
				if err := dev.Close(); (err != nil) != stuck {
					t.Error(err)
				}
				d.SetLatency(simdriver.OpDestroyStream, 0)
				time.Sleep(2 * time.Minute) // until the driver call has returned
			})
		})
	}
}

// TestTraceSampleClosed samples counters all the time. A device's first record must be that of its
// opening, and the last that of its closing.
func TestTraceSampleClosed(t *testing.T) {
	for range 100 {
		tracer := newTracer(t, trace.TracerOptions{Times: trace.NoTimes})
		stop, stopped := make(chan struct{}), make(chan struct{})
		var all []trace.Record
		go func() {
			defer close(stopped)
			for {
				tracer.Sample()
				all = append(all, taken(tracer)...)
				select {
				case <-stop:
					return
				default:
				}
			}
		}()
		dev, err := gpu.Open(simdriver.New(simdriver.Config{}), 0, gpu.Options{Tracer: tracer})
		must(t, err)
		must(t, dev.Close())
		close(stop)
		<-stopped
		all = append(all, taken(tracer)...)
		if first, last := all[0].Kind, all[len(all)-1].Kind; first != trace.KindOpen || last != trace.KindClosed {
			t.Fatalf("records from %v to %v", first, last)
		}
	}
}

// TestTraceOperations checks that docs/trace-format.md lists the operations of submissions, and no
// others.
func TestTraceOperations(t *testing.T) {
	page, err := os.ReadFile("../../docs/trace-format.md")
	must(t, err)
	_, row, _ := strings.Cut(string(page), "\n| `op` | ")
	row, _, ok := strings.Cut(row, " |\n")
	if !ok {
		t.Fatal("the page has no operations")
	}
	var want []string
	for k := work.Barrier; k <= work.Control; k++ {
		if k != work.Timestamp && !slices.Contains(want, "`"+k.String()+"`") { // a timestamp is only a command of a recording
			want = append(want, "`"+k.String()+"`")
		}
	}
	listed := strings.Split(row, ", ")
	slices.Sort(listed)
	slices.Sort(want)
	if !slices.Equal(listed, want) {
		t.Errorf("the page lists %v, and there are %v", listed, want)
	}
}

// TestTracerArguments checks that wrong options are errors.
func TestTracerArguments(t *testing.T) {
	for _, o := range []trace.TracerOptions{{Records: -1}, {Records: 1 << 30}, {Times: 3}, {Times: -1}} {
		if _, err := trace.NewTracer(o); !errors.Is(err, gpu.ErrArgument) {
			t.Errorf("%+v: %v", o, err)
		}
	}
	if _, err := gpu.Open(idleDriver{}, 0, gpu.Options{Tracer: new(trace.Tracer)}); !errors.Is(err, gpu.ErrArgument) {
		t.Errorf("a tracer that was not made: %v", err)
	}
}

// TestZeroTracer checks that a zero Tracer records nothing.
func TestZeroTracer(t *testing.T) {
	var tracer trace.Tracer
	tracer.Sample()
	if n := tracer.Take(make([]trace.Record, 3)); n != 0 || !tracer.Start().IsZero() || tracer.Soon() != nil || tracer.Stats() != (trace.TracerStats{}) {
		t.Errorf("%d records; %v, %+v", n, tracer.Start(), tracer.Stats())
	}
}

// TestNilTracer checks that a nil Tracer means no tracer.
func TestNilTracer(t *testing.T) {
	var tracer *trace.Tracer
	openDevice(t, newSim(t, simdriver.Config{}), 0, gpu.Options{Tracer: tracer})
}

// TestTraceLossByEvent loses a device because no event can be recorded behind its work. The loss
// must have one record.
func TestTraceLossByEvent(t *testing.T) {
	d, tr := newSim(t, simdriver.Config{}), newTracer(t, trace.TracerOptions{})
	dev, s := openDevice(t, d, 0, gpu.Options{Tracer: tr}), semaphores(t, 1)
	b := allocate(t, dev, 1<<20)
	fault := d.Inject(simdriver.Fault{Op: simdriver.OpRecord})
	must(t, dev.Queue(0).Submit(gpu.Order{Signal: pts(s[0], 1)}, gpu.Fill(b.All(), []byte{1})))
	if err := s[0].Wait(minute(t), 1); err == nil {
		t.Error("it has not failed")
	}
	fault.Remove()
	lost := 0
	records := make([]trace.Record, 1000)
	for _, r := range records[:tr.Take(records)] {
		if r.Kind == trace.KindLost && errors.Is(r.Err, driver.ErrLost) {
			lost++
		}
	}
	if lost != 1 {
		t.Errorf("the trace has %d losses", lost)
	}
}

// A noTracer is a driver whose tracer is a nil *trace.Tracer.
type noTracer struct{ driver.Driver }

func (noTracer) Tracer() gpu.Tracer { return (*trace.Tracer)(nil) }

// TestNilTracerOfDriver checks that a device works if its driver's tracer is a nil *trace.Tracer.
func TestNilTracerOfDriver(t *testing.T) {
	dev, err := gpu.Open(noTracer{simdriver.New(simdriver.Config{})}, 0, gpu.Options{})
	must(t, err)
	must(t, dev.Queue(0).Submit(gpu.Order{}, gpu.Barrier()))
	must(t, dev.Close())
}
