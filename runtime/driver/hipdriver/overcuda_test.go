//go:build linux && (amd64 || arm64) && !nogpu

package hipdriver

import (
	"errors"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/puregpu/puregpu/hip"
	"github.com/puregpu/puregpu/internal/testlib"
	"github.com/puregpu/puregpu/runtime/dl"
	"github.com/puregpu/puregpu/runtime/driver"
	"github.com/puregpu/puregpu/runtime/gpu"
)

var cudaSpec = dl.Spec{
	Name: "fake CUDA's handles", Package: "fake",
	Sets:    []dl.Set{{Name: "core"}},
	Symbols: []dl.Symbol{{Name: "fake_hold", Sig: "ww"}, {Name: "fake_lose", Sig: "w"}, {Name: "fake_live"}, {Name: "fake_made", Sig: "w"}},
}

// overCUDA builds the library of testdata/hipovercuda for a CUDA driver.
func overCUDA(t testing.TB, cuda string, defines ...string) *hip.Library {
	t.Helper()
	lib, err := hip.Open(hip.Options{Path: testlib.Fake{
		File: "libhipovercuda.so", Source: "../hipovercuda/hip_over_cuda.c", Symbols: []string{},
		Defines: append([]string{`LIBCUDA="` + cuda + `"`}, defines...),
	}.Build(t)})
	if err != nil {
		t.Fatal(err)
	}
	return lib
}

// fakeCUDA builds the CUDA driver of testdata/cuda.c.
func fakeCUDA(t testing.TB) (path string, ctl *dl.Library) {
	t.Helper()
	path = testlib.Fake{File: "libcuda.so.1", Source: "../../runtime/driver/hipdriver/testdata/cuda.c", Symbols: []string{}}.Build(t)
	ctl = new(dl.Library)
	if err := ctl.Open(&cudaSpec, nil, dl.Options{Path: path}); err != nil {
		t.Fatal(err)
	}
	return path, ctl
}

// TestOverFakeCUDA runs the tests of TestLibrary and TestLibraryConformance without a GPU, with
// HIP's library over a fake CUDA driver.
func TestOverFakeCUDA(t *testing.T) {
	pools := []Option{WithPools()}
	for name, c := range map[string]struct {
		defines []string
		opts    []Option
		suite   bool // run the conformance tests with -short too
	}{
		"strict":           {nil, nil, true},
		"from the stream":  {[]string{"STREAM_DEVICE"}, nil, false},
		"rows of bytes":    {[]string{"MEMSET_D2D32=4"}, nil, false},
		"rows of elements": {[]string{"MEMSET_D2D32=1", "STREAM_DEVICE"}, nil, false},
		"pools":            {[]string{"STREAM_DEVICE"}, pools, true},
		"pools, strict":    {[]string{"VERSION=60200000"}, pools, false},
		"no pools before":  {nil, pools, false}, // this release is older than 6.2
	} {
		t.Run(name, func(t *testing.T) {
			defines := c.defines
			cuda, ctl := fakeCUDA(t)
			lib := overCUDA(t, cuda, defines...)
			live := func() int {
				n, err := ctl.Slow(2)
				if err != nil {
					t.Fatal(err)
				}
				return int(int32(n))
			}
			hold := func(device int, on uintptr) {
				if _, err := ctl.Slow(0, uintptr(device), on); err != nil {
					t.Error(err)
				}
			}
			stall := func(device int) (resume func()) {
				hold(device, 1)
				return func() { hold(device, 0) }
			}
			testLibrary(t, lib, stall, c.opts...)
			before := live()
			if c.suite || !testing.Short() && (name == "from the stream" || name == "pools, strict") {
				t.Run("conformance", func(t *testing.T) { conform(t, lib, stall, c.opts...) })
			}
			// The library keeps the events of completed waits for reuse. All other objects must
			// have been destroyed.
			if n := live() - before; n > 64 {
				t.Errorf("%d objects are left", n)
			}
			drv, err := New(lib, c.opts...)
			if err != nil {
				t.Fatal(err)
			}
			if d, err := drv.Open(1); err != nil || d.Caps().Pools != strings.HasPrefix(name, "pools") || (d.(*device).unit != 0) != strings.HasPrefix(name, "rows") ||
				d.(*device).sets == slices.Contains(defines, "STREAM_DEVICE") {
				t.Errorf("%+v, %v", d, err)
			}
		})
	}
}

// made returns the number of events, or execs, that the driver of fakeCUDA has made so far.
func made(t testing.TB, ctl *dl.Library, execs uintptr) int {
	t.Helper()
	n, err := ctl.Slow(3, execs)
	if err != nil {
		t.Fatal(err)
	}
	return int(int32(n))
}

// TestGraphFromAnyThread sets and launches an exec of device 1 on a thread with device 0.
func TestGraphFromAnyThread(t *testing.T) {
	cuda, ctl := fakeCUDA(t)
	lib := overCUDA(t, cuda, "STREAM_DEVICE")
	drv, err := New(lib)
	if err != nil {
		t.Fatal(err)
	}
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	ok := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	open, err := drv.Open(1)
	ok(err)
	d := open.(*device)
	if d.sets {
		t.Error("submitting sets the device")
	}
	ok(d.Bind())
	var streams [2]driver.Stream
	for i := range streams {
		streams[i], err = d.NewStream()
		ok(err)
	}
	m, err := d.Alloc(driver.DeviceMem, 64)
	ok(err)
	g, err := d.NewGraph()
	ok(err)
	op := driver.NodeOp{Kind: driver.FillNode, Dst: m.Ptr, Width: 4, Count: 4}
	n, err := d.AddNode(g, nil, &op)
	ok(err)
	x, err := d.Instantiate(g)
	ok(err)
	ok(lib.SetDevice(0))
	events := made(t, ctl, 0)
	launch := func(times int) {
		t.Helper()
		for i := range times {
			op.Pattern++
			ok(d.SetNode(x, n, &op))
			ok(d.SetNodes(x, []driver.Node{n}, []driver.NodeOp{op}))
			ok(d.LaunchGraph(streams[i%2], x))
			if current, err := lib.GetDevice(); current != 0 || err != nil {
				t.Fatalf("the thread has device %d, %v", current, err)
			}
		}
	}
	launch(10)
	// The library needs an event for each pending wait. All waits are complete, so it reuses the
	// events that it has.
	if n := made(t, ctl, 0) - events; n != 0 {
		t.Errorf("launches have made %d events", n)
	}
	// A pending event is not recorded again: the library would refuse that. So the exec gets more
	// events.
	_, err = ctl.Slow(0, 1, 1)
	ok(err)
	launch(10)
	if n := len(d.execs[x].events); n < 9 {
		t.Errorf("10 pending launches use %d events", n)
	}
	_, err = ctl.Slow(0, 1, 0)
	ok(err)
	events = made(t, ctl, 0)
	launch(100)
	if n := made(t, ctl, 0) - events; n != 0 {
		t.Errorf("more launches have made %d events", n)
	}
	ok(d.Bind())
	ok(errors.Join(d.DestroyExec(x), d.DestroyGraph(g), d.Free(m), d.DestroyStream(streams[0]), d.DestroyStream(streams[1]), d.Close()))
}

// TestRebindKeepsGraph executes a recording in two queues, with other bindings each time. The
// calling threads have another device current.
func TestRebindKeepsGraph(t *testing.T) {
	for name, defines := range map[string][]string{"strict": nil, "from the stream": {"STREAM_DEVICE"}} {
		t.Run(name, func(t *testing.T) {
			cuda, ctl := fakeCUDA(t)
			lib := overCUDA(t, cuda, defines...)
			drv, err := New(lib)
			if err != nil {
				t.Fatal(err)
			}
			runtime.LockOSThread()
			defer runtime.UnlockOSThread()
			if err := lib.SetDevice(0); err != nil {
				t.Fatal(err)
			}
			for index := range 2 {
				d, err := gpu.Open(drv, index, gpu.Options{Queues: 2})
				if err != nil {
					t.Fatal(err)
				}
				defer d.Close()
				b, err := d.Alloc(gpu.DeviceMem, 1<<16)
				if err != nil {
					t.Fatal(err)
				}
				c, err := d.NewCommandBuffer(gpu.CommandOptions{Mode: gpu.GraphMode})
				if err != nil {
					t.Fatal(err)
				}
				x, err := c.Binding()
				if err == nil {
					_, err = c.Add(gpu.Fill(x.Range(0, 64), []byte{1}))
				}
				s, sem := gpu.NewSemaphore(0)
				execs := made(t, ctl, 1)
				if err := errors.Join(err, sem, c.End()); err != nil {
					t.Fatal(err)
				}
				if got := made(t, ctl, 1) - execs; got != 1 {
					t.Errorf("device %d: the end of the recording has made %d graphs", index, got)
				}
				execs = made(t, ctl, 1)
				const n = 100
				for i := range uint64(n) {
					if err := d.Queue(int(i%2)).Submit(gpu.Order{Signal: []gpu.Point{{Semaphore: s, Value: i + 1}}}, gpu.Execute(c, b.Range(64*i, 64))); err != nil {
						t.Fatal(err)
					}
					if err := s.Wait(t.Context(), i+1); err != nil {
						t.Fatalf("execution %d on device %d: %v", i, index, err)
					}
				}
				if got := made(t, ctl, 1) - execs; got != 0 {
					t.Errorf("device %d: %d executions have made %d graphs", index, n, got)
				}
			}
		})
	}
}

// TestOverLostCUDA loses the CUDA device below HIP.
func TestOverLostCUDA(t *testing.T) {
	cuda, ctl := fakeCUDA(t)
	lib := overCUDA(t, cuda)
	drv, err := New(lib)
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan error)
	go func() {
		runtime.LockOSThread() // the thread ends with the goroutine
		open, err := drv.Open(0)
		if err == nil {
			err = open.Bind()
		}
		if err != nil {
			done <- err
			return
		}
		d := open.(*device)
		s, _ := d.NewStream()
		e, _ := d.NewEvent()
		for code, want := range map[int]hip.Result{700: hip.ErrorIllegalAddress, 715: hip.ErrorLaunchFailure, 719: hip.ErrorLaunchFailure} {
			ctl.Slow(1, uintptr(code))
			_, query := d.Query(e)
			for what, err := range map[string]error{"query": query, "record": d.Record(e, s), "launch": d.Launch(s, &driver.Launch{Function: 1})} {
				if !errors.Is(err, want) || !errors.Is(err, driver.ErrLost) {
					t.Errorf("CUDA says %d: %s: %v", code, what, err)
				}
			}
		}
		done <- open.Close()
	}()
	if err := <-done; err != nil {
		t.Error(err)
	}
}

// TestOverNoCUDA tests the library without a CUDA driver, and with a CUDA driver that lacks
// functions.
func TestOverNoCUDA(t *testing.T) {
	empty := testlib.Fake{File: "libcuda.so.1", Symbols: []string{"cuInit"}}.Build(t)
	for _, cuda := range []string{filepath.Join(t.TempDir(), "libcuda.so.1"), empty} {
		lib := overCUDA(t, cuda)
		d, err := New(lib)
		if d != nil || !errors.Is(err, hip.ErrorNoDevice) || !strings.HasPrefix(err.Error(), "hip: init: the HIP runtime in "+lib.Path()+", version unknown, finds no AMD GPU: ") {
			t.Errorf("%v, %v", d, err)
		}
	}
}
