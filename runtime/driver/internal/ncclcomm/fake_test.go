//go:build linux && (amd64 || arm64) && !nogpu

package ncclcomm

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"
	"unsafe"

	"go.uber.org/goleak"

	"github.com/puregpu/puregpu/internal/testlib"
	"github.com/puregpu/puregpu/nccl"
	"github.com/puregpu/puregpu/runtime/dl"
	"github.com/puregpu/puregpu/runtime/driver"
)

// stream is a made-up handle of a stream.
const stream = 0x5000

// A fake is a Comms that uses the NCCL built from testdata/fakes/comms.c. ctl has that NCCL's test
// functions.
type fake struct {
	*Comms
	t   testing.TB
	ctl dl.Library
}

var fakeSpec = dl.Spec{
	Name: "fake's handles", Package: "fake",
	Sets: []dl.Set{{Name: "core"}},
	Symbols: []dl.Symbol{
		{Name: "fake_set", Sig: "ww"}, {Name: "fake_trace", Sig: "ww"}, {Name: "fake_faults", Sig: "ww"},
		{Name: "fake_live"}, {Name: "fake_device"}, {Name: "fake_depth"}, {Name: "fake_bind", Sig: "w"},
	},
}

// built holds the libraries built so far, by release.
var built = map[dl.Version][]byte{}

// newFake makes a library of a release, for one test only. It binds the test's thread to the device
// and locks the thread until the test ends. The test fails if an object or a goroutine is left when
// the test ends, or if a call would have crashed NCCL.
func newFake(t testing.TB, release dl.Version) *fake {
	t.Helper()
	current := goleak.IgnoreCurrent()
	if built[release] == nil {
		b, err := os.ReadFile(testlib.NCCL(t, int(release), false).Build(t))
		if err != nil {
			t.Fatal(err)
		}
		built[release] = b
	}
	path := filepath.Join(t.TempDir(), "libnccl.so.2")
	if err := os.WriteFile(path, built[release], 0o777); err != nil {
		t.Fatal(err)
	}
	f := &fake{t: t}
	if err := f.ctl.Open(&fakeSpec, nil, dl.Options{Path: path}); err != nil {
		t.Fatal(err)
	}
	lib := NCCL(nccl.Options{Path: path})
	f.Comms = New(lib, Host{
		Bind:   func() error { f.number(6, 1); return nil },
		Unbind: func() error { f.number(6, 0); return nil },
		Fail: func(op string, err error, what string) error {
			return &driver.Error{Driver: "fake", Op: op, Err: fmt.Errorf("%s: %w", what, err)}
		},
	})
	runtime.LockOSThread()
	f.number(6, 1)
	t.Cleanup(func() {
		f.sound()
		if f.live() != 0 {
			t.Errorf("%d objects are left", f.live())
		}
		runtime.UnlockOSThread()
		goleak.VerifyNone(t, current)
	})
	return f
}

// number calls a test function that returns a number.
func (f *fake) number(i int, args ...uintptr) int {
	n, err := f.ctl.Slow(i, args...)
	if err != nil {
		f.t.Error(err)
	}
	return int(int32(n))
}

// set changes a setting. comms.c lists the settings.
func (f *fake) set(name string, value int) {
	f.t.Helper()
	c, err := dl.CString(name)
	if err == nil {
		var full uintptr
		if full, err = f.ctl.Slow(0, uintptr(unsafe.Pointer(c)), uintptr(value)); err == nil && int32(full) != 0 {
			err = fmt.Errorf("no room for setting %s", name)
		}
	}
	if err != nil {
		f.t.Fatal(err)
	}
}

// text calls a test function that copies lines of text, and returns the lines.
func (f *fake) text(i int) []string {
	b := make([]byte, 1<<16)
	n := f.number(i, uintptr(unsafe.Pointer(&b[0])), uintptr(len(b)))
	if n == 0 {
		return nil
	}
	return strings.Split(strings.TrimSuffix(string(b[:n]), "\n"), "\n")
}

// calls returns the library's calls since the last use of the method calls or want.
func (f *fake) calls() []string { return f.text(1) }

func (f *fake) live() int { return f.number(3) }

// want fails the test unless the given calls of the library have been made since the last use of
// the method calls or want.
func (f *fake) want(want ...string) {
	f.t.Helper()
	if got := f.calls(); !slices.Equal(got, want) {
		f.t.Errorf("calls:\n\t%s\nwant:\n\t%s", strings.Join(got, "\n\t"), strings.Join(want, "\n\t"))
	}
}

// sound checks that no call would have crashed NCCL, and that the test's thread is unchanged.
func (f *fake) sound() {
	f.t.Helper()
	if faults := f.text(2); faults != nil {
		f.t.Errorf("faults:\n\t%s", strings.Join(faults, "\n\t"))
	}
	if f.number(4) != 1 || f.number(5) != 0 {
		f.t.Errorf("the thread has device %d, and is in %d groups", f.number(4), f.number(5))
	}
}

// begin calls NewComm for a rank.
func (f *fake) begin(number, count int) driver.Comm {
	f.t.Helper()
	id, err := f.NewUniqueID()
	ok(f.t, err)
	h, err := f.NewComm(driver.CommDesc{ID: id, Rank: number, Count: count, Name: "mine"})
	ok(f.t, err)
	if h == 0 {
		f.t.Fatal("a communicator without a handle")
	}
	return h
}

// ready waits until a rank is ready or has failed.
func (f *fake) ready(h driver.Comm) error {
	f.t.Helper()
	for end := time.Now().Add(10 * time.Second); time.Now().Before(end); time.Sleep(50 * time.Microsecond) {
		if done, err := f.CommReady(h); done || err != nil {
			return err
		}
	}
	f.t.Fatal("the communicator does not become ready")
	return nil
}

// comm makes a rank, waits until it is ready, and forgets the calls so far.
func (f *fake) comm(number, count int) driver.Comm {
	f.t.Helper()
	h := f.begin(number, count)
	ok(f.t, f.ready(h))
	f.calls()
	return h
}

func (f *fake) destroy(h driver.Comm) {
	f.t.Helper()
	ok(f.t, f.DestroyComm(h))
}

func ok(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
