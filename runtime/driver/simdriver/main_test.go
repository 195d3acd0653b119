package simdriver_test

import (
	"errors"
	"runtime"
	"strings"
	"testing"
	"time"
	"unsafe"

	"go.uber.org/goleak"

	"github.com/puregpu/puregpu/runtime/driver"
	"github.com/puregpu/puregpu/runtime/driver/simdriver"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// open opens all devices of a new driver. It closes them when the test ends, even if objects are
// left.
func open(t testing.TB, c simdriver.Config) (*simdriver.Driver, []driver.Device) {
	t.Helper()
	d := simdriver.New(c)
	infos, err := d.Devices()
	if err != nil {
		t.Fatal(err)
	}
	var vs []driver.Device
	for i := range infos {
		v, err := d.Open(i)
		if err != nil {
			t.Fatal(err)
		}
		vs = append(vs, v)
		t.Cleanup(func() { v.Close() })
	}
	return d, vs
}

// must returns a function that returns v, or ends the test if err is not nil.
func must[T any](v T, err error) func(t testing.TB) T {
	return func(t testing.TB) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
}

// check ends the test if err is not nil.
func check(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// refused ends the test unless err matches want and the text of err contains all of words.
func refused(t testing.TB, err, want error, words ...string) {
	t.Helper()
	if !errors.Is(err, want) {
		t.Fatalf("error %v, want %v", err, want)
	}
	for _, w := range words {
		if !strings.Contains(err.Error(), w) {
			t.Fatalf("error %q does not say %q", err, w)
		}
	}
	var e *driver.Error
	if !errors.As(err, &e) || e.Driver != "sim" || e.Op == "" {
		t.Fatalf("error %#v is not a *driver.Error", err)
	}
}

func stream(t testing.TB, v driver.Device) driver.Stream { t.Helper(); return must(v.NewStream())(t) }
func event(t testing.TB, v driver.Device) driver.Event   { t.Helper(); return must(v.NewEvent())(t) }
func alloc(t testing.TB, v driver.Device, kind driver.MemKind, n uint64) driver.Mem {
	t.Helper()
	return must(v.Alloc(kind, n))(t)
}

// record records an event in a stream.
func record(t testing.TB, v driver.Device, s driver.Stream) driver.Event {
	t.Helper()
	e := event(t, v)
	check(t, v.Record(e, s))
	return e
}

// wait waits for an event, and returns Query's error.
func wait(t testing.TB, v driver.Device, e driver.Event) error {
	t.Helper()
	for end := time.Now().Add(time.Minute); ; {
		done, err := v.Query(e)
		if done || err != nil {
			return err
		}
		if time.Now().After(end) {
			t.Fatal("the event does not complete")
		}
		runtime.Gosched()
		time.Sleep(time.Microsecond)
	}
}

// drain waits for all work of a stream. It returns the first error.
func drain(t testing.TB, v driver.Device, s driver.Stream) error {
	t.Helper()
	e, err := v.NewEvent()
	if err != nil {
		return err
	}
	if err := v.Record(e, s); err != nil {
		return err
	}
	return wait(t, v, e)
}

// pending ends the test if the event is complete, or completes within a short time.
func pending(t testing.TB, v driver.Device, e driver.Event) {
	t.Helper()
	for range 20 {
		done, err := v.Query(e)
		check(t, err)
		if done {
			t.Fatal("the event is complete too early")
		}
		time.Sleep(50 * time.Microsecond)
	}
}

// read downloads n bytes.
func read(t testing.TB, v driver.Device, p driver.Ptr, n int) []byte {
	t.Helper()
	s := stream(t, v)
	b := make([]byte, n)
	check(t, v.Download(s, unsafe.Pointer(unsafe.SliceData(b)), p, uint64(n)))
	check(t, drain(t, v, s))
	check(t, v.DestroyStream(s))
	return b
}

// launch launches a kernel with one thread.
func launch(v driver.Device, s driver.Stream, f driver.Function, args ...unsafe.Pointer) error {
	return v.Launch(s, &driver.Launch{Function: f, Grid: [3]uint32{1, 1, 1}, Block: [3]uint32{1, 1, 1}, Args: args})
}

// function loads a module with one kernel, and returns the kernel.
func function(t testing.TB, v driver.Device, name string) driver.Function {
	t.Helper()
	f, _, err := v.Function(must(v.Load(simdriver.Image(name)))(t), name)
	check(t, err)
	return f
}

// kernels makes kernels of Go functions.
func kernels(fs map[string]any) map[string]simdriver.Kernel {
	ks := make(map[string]simdriver.Kernel)
	for name, f := range fs {
		ks[name] = simdriver.MustKernel(f)
	}
	return ks
}
