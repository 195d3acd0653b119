//go:build linux && (amd64 || arm64) && !nogpu

package ncclcomm

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/puregpu/puregpu/nccl"
	"github.com/puregpu/puregpu/runtime/dl"
	"github.com/puregpu/puregpu/runtime/driver"
)

// single makes a plain rank, waits until it is ready, and forgets the calls so far.
func (f *fake) single() driver.Comm {
	f.t.Helper()
	h := f.plain()
	ok(f.t, f.ready(h))
	f.calls()
	return h
}

// TestSuspend checks that a suspended rank refuses operations until it is resumed, and that
// CommStats reports its memory.
func TestSuspend(t *testing.T) {
	f := newFake(t, 23007)
	h := f.single()
	m, err := f.RegisterComm(h, 0x1000, 64)
	ok(t, err)
	f.set("polls", 3)
	for range 2 {
		f.calls()
		ok(t, f.SuspendComm(h))
		if s, err := f.CommStats(h); s != (driver.CommStats{Persistent: 1 << 10, Suspendable: 1 << 20, Suspended: true}) || err != nil {
			t.Errorf("it has %+v, %v", s, err)
		}
		f.want("ncclCommSuspend(c1, 1)", "ncclCommMemStats(c1, 2)", "ncclCommMemStats(c1, 0)", "ncclCommMemStats(c1, 1)")
		_, reg := f.RegisterComm(h, 0x2000, 64)
		_, win := f.NewWindow(h, 0x2000, 64, false)
		for what, err := range map[string]error{
			"collect": f.Collect(stream, h, reduce), "register": reg, "window": win, "release": f.ReleaseCommMemory(h, m), "suspend again": f.SuspendComm(h),
		} {
			if !errors.Is(err, errSuspended) {
				t.Errorf("%s: %v", what, err)
			}
		}
		if _, _, err := f.CommRank(h); err != nil {
			t.Errorf("its rank: %v", err)
		}
		if done, err := f.CommReady(h); !done || err != nil {
			t.Errorf("ready: %t, %v", done, err)
		}
		ok(t, f.CommError(h))
		f.want()
		ok(t, f.ResumeComm(h))
		f.want("ncclCommResume(c1)")
		if s, err := f.CommStats(h); s.Suspended || err != nil {
			t.Errorf("resumed it has %+v, %v", s, err)
		}
		if err := f.ResumeComm(h); err == nil || !strings.Contains(err.Error(), "resume comm") || !strings.Contains(err.Error(), "not suspended") {
			t.Errorf("resume again: %v", err)
		}
		ok(t, f.Collect(stream, h, reduce))
	}
	f.destroy(h)
}

// TestSuspendRefused checks that SuspendComm returns ErrUnsupported if the library lacks the
// function, if the library's function cannot be aborted, if the rank has several communicators, and
// if the library keeps no account of memory.
func TestSuspendRefused(t *testing.T) {
	refused := func(what string, err error, says string) {
		t.Helper()
		if !errors.Is(err, driver.ErrUnsupported) || !strings.Contains(err.Error(), says) {
			t.Errorf("%s: %v; want %q", what, err, says)
		}
	}
	f := newFake(t, 22803)
	h := f.single()
	err := f.SuspendComm(h)
	refused("2.28.3", err, "2.29.7")
	if !errors.Is(err, dl.ErrSymbol) || !strings.Contains(err.Error(), "ncclCommSuspend") {
		t.Errorf("2.28.3: %v", err)
	}
	_, err = f.CommStats(h)
	refused("statistics in 2.28.3", err, "ncclCommMemStats")
	ok(t, f.Collect(stream, h, reduce)) // the rank still works
	f.destroy(h)

	f = newFake(t, 22907)
	h = f.single()
	refused("2.29.7", f.SuspendComm(h), "2.30.3")
	if s, err := f.CommStats(h); s.Suspendable == 0 || err != nil {
		t.Errorf("2.29.7 has %+v, %v", s, err)
	}
	f.destroy(h)

	f = newFake(t, 23007)
	h = f.comm(0, 2)
	refused("a rank with several communicators", f.SuspendComm(h), "Plain")
	if s, err := f.CommStats(h); s.Suspendable == 0 || s.Suspended || err != nil {
		t.Errorf("a rank with several communicators has %+v, %v", s, err)
	}
	f.want("ncclCommMemStats(c2, 2)", "ncclCommMemStats(c2, 0)", "ncclCommMemStats(c2, 1)")
	f.destroy(h)

	h = f.single()
	f.set("ncclCommSuspend", int(nccl.ErrorInvalidUsage))
	f.set("ncclCommMemStats", int(nccl.ErrorInvalidUsage))
	refused("without an account of memory", f.SuspendComm(h), "as the fake was told")
	_, err = f.CommStats(h)
	refused("statistics without an account", err, "as the fake was told")
	ok(t, f.Collect(stream, h, reduce))
	f.destroy(h)
}

// TestSuspendEnds checks that a suspended rank can be destroyed and aborted, that DestroyComm
// resumes it first, and that AbortComm ends a pending SuspendComm, ResumeComm or DestroyComm.
func TestSuspendEnds(t *testing.T) {
	f := newFake(t, 23007)
	h := f.single()
	_, err := f.RegisterComm(h, 0x1000, 64)
	ok(t, err)
	ok(t, f.SuspendComm(h))
	f.calls()
	f.destroy(h)
	f.want("ncclCommResume(c1)", "ncclCommDeregister(c1, 0x101)", "ncclCommFinalize(c1)", "ncclCommDestroy(c1)")

	h = f.single()
	ok(t, f.SuspendComm(h))
	f.calls()
	ok(t, f.AbortComm(h))
	if err := f.ResumeComm(h); !errors.Is(err, errAborted) {
		t.Errorf("resume an aborted communicator: %v", err)
	}
	f.destroy(h)
	f.want("ncclCommAbort(c2)")

	for what, call := range map[string]func(driver.Comm) error{"suspend": f.SuspendComm, "resume": f.ResumeComm, "destroy": f.DestroyComm} {
		h = f.single()
		if what != "suspend" {
			ok(t, f.SuspendComm(h))
		}
		f.set("stuck suspend", 1)
		aborts := f.later(func() error { return f.AbortComm(h) })
		err := within(t, what, 5*time.Second, func() error { return call(h) })
		if what != "destroy" && !errors.Is(err, errAborted) {
			t.Errorf("%s: %v", what, err)
		}
		aborts.Wait()
		f.set("stuck suspend", 0)
		if what != "destroy" {
			f.destroy(h)
		}
		f.sound()
	}
}

// TestSuspendFails checks that, after the library has failed to suspend or resume a rank, the rank
// refuses all calls, and DestroyComm aborts it.
func TestSuspendFails(t *testing.T) {
	f := newFake(t, 23007)
	fails := func(what string, h driver.Comm, err error) {
		t.Helper()
		if !errors.Is(err, nccl.ErrorUnhandledCUDA) || errors.Is(err, driver.ErrUnsupported) {
			t.Errorf("%s: %v", what, err)
		}
		for also, err := range map[string]error{"collect": f.Collect(stream, h, reduce), "resume": f.ResumeComm(h), "error": f.CommError(h)} {
			if !errors.Is(err, nccl.ErrorUnhandledCUDA) {
				t.Errorf("%s, then %s: %v", what, also, err)
			}
		}
		f.calls()
		f.destroy(h)
		for _, call := range f.calls() {
			if !strings.HasPrefix(call, "ncclCommAbort") {
				t.Errorf("%s, then the library is asked for %s", what, call)
			}
		}
		f.set("failing suspend", 0)
	}
	h := f.single()
	f.set("failing suspend", int(nccl.ErrorUnhandledCUDA))
	fails("suspend", h, f.SuspendComm(h))

	h = f.single()
	ok(t, f.SuspendComm(h))
	f.set("failing suspend", int(nccl.ErrorUnhandledCUDA))
	fails("resume", h, f.ResumeComm(h))

	h = f.single() // DestroyComm resumes the rank first, and this fails
	ok(t, f.SuspendComm(h))
	f.set("failing suspend", int(nccl.ErrorUnhandledCUDA))
	if err := f.DestroyComm(h); !errors.Is(err, nccl.ErrorUnhandledCUDA) {
		t.Errorf("destroy: %v", err)
	}
}
