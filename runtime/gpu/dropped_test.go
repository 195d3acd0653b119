package gpu_test

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/puregpu/puregpu/runtime/driver/simdriver"
	"github.com/puregpu/puregpu/runtime/gpu"
)

// A reports collects a device's reports of dropped objects.
type reports struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (r *reports) Write(p []byte) (int, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.text.Write(p)
}

func (r *reports) lines() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return strings.Split(strings.TrimSuffix(r.text.String(), "\n"), "\n")[:strings.Count(r.text.String(), "\n")]
}

func (r *reports) options() gpu.Options {
	return gpu.Options{Leaks: slog.New(slog.NewTextHandler(r, nil))}
}

// collect runs the garbage collector until there are n reports, or for ten seconds. It then runs
// the collector a few times more, to find reports that should not come. It returns all reports.
func (r *reports) collect(t *testing.T, n int) []string {
	t.Helper()
	ctx := in(t, 10*time.Second)
	for len(r.lines()) < n && ctx.Err() == nil {
		runtime.GC()
		runtime.Gosched()
	}
	for range 2 {
		runtime.GC()
		runCleanups(t)
	}
	return r.lines()
}

// runCleanups drops an object, and runs the garbage collector until the cleanup of that object has
// run. In the meantime, the cleanups of objects that were dropped before can run too.
func runCleanups(t *testing.T) {
	t.Helper()
	found := make(chan struct{})
	runtime.AddCleanup(new([64]byte), func(c chan struct{}) { close(c) }, found)
	for ctx := in(t, 10*time.Second); ; {
		runtime.GC()
		select {
		case <-found:
			return
		case <-ctx.Done():
			t.Fatal("the collector does not find the dropped object")
		default:
			runtime.Gosched()
		}
	}
}

// openWatched opens a device that reports dropped objects to r, and closes the device when the test
// ends.
func openWatched(t *testing.T, d *simdriver.Driver, r *reports) *gpu.Device {
	t.Helper()
	dev, err := gpu.Open(d, 0, r.options())
	must(t, err)
	t.Cleanup(func() { must(t, dev.Close()) })
	return dev
}

// TestDroppedBuffersAreReported checks that a buffer dropped without Close is reported once. This
// test and the tests below test B200.
func TestDroppedBuffersAreReported(t *testing.T) {
	each := map[string]func(t *testing.T, dev *gpu.Device){
		"of Alloc": func(t *testing.T, dev *gpu.Device) {
			_, err := dev.Alloc(gpu.DeviceMem, 100)
			must(t, err)
		},
		"of a stream": func(t *testing.T, dev *gpu.Device) {
			s := dev.Queue(0).NewStream()
			x, err := gpu.AllocSliceIn[byte](s, nil, 100)
			must(t, err)
			must(t, s.Do(x.Fill(1)))
			must(t, s.Wait(minute(t)))
		},
		"of a stream, in flight": func(t *testing.T, dev *gpu.Device) {
			s := dev.Queue(0).NewStream()
			x, err := gpu.AllocSliceIn[byte](s, nil, 100)
			must(t, err)
			must(t, s.Do(x.Fill(1)))
		},
		"of a portable pool": func(t *testing.T, dev *gpu.Device) {
			p, err := dev.NewPool(gpu.PoolOptions{Portable: true})
			must(t, err)
			s := dev.Queue(0).NewStream()
			_, err = s.Alloc(p, 100)
			must(t, err)
			must(t, s.Wait(minute(t)))
			must(t, p.Close())
		},
		"of the program's memory": func(t *testing.T, dev *gpu.Device) {
			_, err := dev.ImportHost(make([]byte, 100), nil)
			must(t, err)
		},
	}
	for name, drop := range each {
		t.Run(name, func(t *testing.T) {
			r := new(reports)
			dev := openWatched(t, newSim(t, simdriver.Config{}), r)
			drop(t, dev)
			got := r.collect(t, 1)
			if len(got) != 1 || !strings.Contains(got[0], "a Buffer was dropped without Close") || !strings.Contains(got[0], "dropped_test.go:") ||
				!strings.Contains(got[0], "bytes=100") || !strings.Contains(got[0], dev.Info().Name) {
				t.Errorf("reported: %q", got)
			}
			if n := dev.Stats().Buffers; n != 1 {
				t.Errorf("%d buffers, want the one that was dropped", n)
			}
		})
	}
}

func TestDroppedPoolsAreReported(t *testing.T) {
	for name, opt := range map[string]gpu.PoolOptions{"of the driver": {}, "portable": {Portable: true, InitialSize: 1 << 16}} {
		t.Run(name, func(t *testing.T) {
			r := new(reports)
			dev := openWatched(t, newSim(t, simdriver.Config{}), r)
			s := dev.Queue(0).NewStream()
			b := func() *gpu.Buffer {
				p, err := dev.NewPool(opt)
				must(t, err)
				b, err := s.Alloc(p, 100)
				must(t, err)
				return b
			}()
			if got := r.collect(t, 1); len(got) != 1 || !strings.Contains(got[0], "a Pool was dropped without Close") || !strings.Contains(got[0], "dropped_test.go:") {
				t.Errorf("reported: %q", got)
			}
			must(t, s.Do(gpu.Free(b)))
			must(t, s.Wait(minute(t)))
		})
	}
}

// TestDroppedDevicesAreReported checks that a dropped device is reported once, but not while the
// program still has a stream of the device. The test runs itself in a separate process, because the
// threads of a dropped device never end.
func TestDroppedDevicesAreReported(t *testing.T) {
	if os.Getenv("PUREGPU_TEST_DROPPED") == "" {
		cmd := exec.Command(os.Args[0], "-test.run=^TestDroppedDevicesAreReported$", "-test.v")
		cmd.Env = append(os.Environ(), "PUREGPU_TEST_DROPPED=1")
		if out, err := cmd.CombinedOutput(); err != nil || !strings.Contains(string(out), "was reported once") {
			t.Errorf("%v\n%s", err, out)
		}
		return
	}
	r := new(reports)
	sim := simdriver.New(simdriver.Config{Kernels: simKernels})
	ofDevices := func() (lines []string) {
		for _, line := range r.lines() {
			if strings.Contains(line, "a Device was dropped without Close") && strings.Contains(line, "dropped_test.go:") {
				lines = append(lines, line)
			}
		}
		return lines
	}
	s := func() *gpu.Stream {
		dev, err := gpu.Open(sim, 0, r.options())
		must(t, err)
		x, err := gpu.AllocSlice[byte](dev, gpu.DeviceMem, 100)
		must(t, err)
		_, err = dev.NewPool(gpu.PoolOptions{})
		must(t, err)
		s := dev.Queue(0).NewStream()
		must(t, s.Do(x.Fill(1), x.Download(make([]byte, 100))))
		return s
	}()
	r.collect(t, 2) // reports of the buffer and of the pool
	if got := ofDevices(); len(got) > 0 {
		t.Errorf("reported although the program has a stream: %q", got)
	}
	must(t, s.Wait(minute(t)))
	s = nil
	r.collect(t, 3)
	if got := ofDevices(); len(got) != 1 {
		t.Errorf("reported: %q", r.lines())
	}
	if !t.Failed() {
		fmt.Println("the device was reported once")
		os.Exit(0)
	}
}

func TestDroppedPoolsOfAGroupAreReported(t *testing.T) {
	r := new(reports)
	g, err := gpu.OpenGroup(newSim(t, simdriver.Config{Devices: 2}), r.options())
	must(t, err)
	defer g.Close()
	_, err = g.NewPools(gpu.PoolOptions{})
	must(t, err)
	got := r.collect(t, 2)
	for _, line := range got {
		if !strings.Contains(line, "a Pool was dropped without Close") || !strings.Contains(line, "dropped_test.go:") {
			t.Error(line)
		}
	}
	if len(got) != 2 {
		t.Errorf("reported: %q", got)
	}
}

func TestWhatIsClosedIsNotReported(t *testing.T) {
	r := new(reports)
	sim := newSim(t, simdriver.Config{})
	func() {
		dev, err := gpu.Open(sim, 0, r.options())
		must(t, err)
		s, start := dev.Queue(0).NewStream(), new(gpu.Semaphore)
		must(t, s.After(start.At(1)))
		x, err := dev.Alloc(gpu.DeviceMem, 64)
		must(t, err)
		must(t, s.Fill(x.All(), []byte{1}))
		must(t, x.Close()) // parked work still uses x
		y, err := s.Alloc(nil, 64)
		must(t, err)
		must(t, s.Do(gpu.Free(y))) // this Free is parked too
		z, err := s.Alloc(nil, 64)
		must(t, err)
		must(t, z.Close())
		p, err := dev.NewPool(gpu.PoolOptions{})
		must(t, err)
		must(t, dev.SetCurrentPool(p)) // the device holds a reference
		r.collect(t, 0)
		must(t, start.Signal(1))
		must(t, s.Wait(minute(t)))
		r.collect(t, 0)
		p, err = dev.CurrentPool()
		must(t, err)
		must(t, p.Close())
		_, err = dev.Alloc(gpu.DeviceMem, 64)
		must(t, err)
		must(t, dev.Shutdown(context.Background())) // frees the buffers that are not closed
	}()
	if got := r.collect(t, 0); len(got) > 0 {
		t.Errorf("reported: %q", got)
	}
}

// TestLeaksByEnvironment checks that the environment variable PUREGPU_LEAKS enables reports of
// dropped objects.
func TestLeaksByEnvironment(t *testing.T) {
	r, was := new(reports), slog.Default()
	slog.SetDefault(slog.New(slog.NewTextHandler(r, nil)))
	defer slog.SetDefault(was)
	for value, n := range map[string]int{"": 0, "1": 1} {
		t.Setenv("PUREGPU_LEAKS", value)
		before := len(r.lines())
		dev, err := gpu.Open(newSim(t, simdriver.Config{}), 0, gpu.Options{})
		must(t, err)
		_, err = dev.Alloc(gpu.DeviceMem, 64)
		must(t, err)
		if got := r.collect(t, before+n); len(got) != before+n {
			t.Errorf("PUREGPU_LEAKS=%q: reported: %q", value, got)
		}
		must(t, dev.Close())
	}
}
