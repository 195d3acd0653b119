//go:build linux && (amd64 || arm64) && !nogpu

package cudadriver

import (
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/puregpu/puregpu/cuda"
	"github.com/puregpu/puregpu/internal/testlib"
	"github.com/puregpu/puregpu/nvml"
	"github.com/puregpu/puregpu/runtime/driver"
	"github.com/puregpu/puregpu/runtime/health"
)

// TestLostXID checks that the error of a lost device names the XID error if NVML reports one, and
// that other errors name no XID error.
func TestLostXID(t *testing.T) {
	for name, c := range map[string]struct {
		defines []string
		code    cuda.Result
		xid     health.XID
	}{
		"lost":                  {[]string{"XID=79"}, cuda.ErrorLaunchFailed, 79},
		"a failed call":         {[]string{"XID=79"}, cuda.ErrorInvalidValue, 0},
		"NVML without events":   {nil, cuda.ErrorLaunchFailed, 0},
		"NVML does not start":   {[]string{"XID=79", "BROKEN"}, cuda.ErrorLaunchFailed, 0},
		"lost by another error": {[]string{"XID=31"}, cuda.ErrorIllegalAddress, 31},
	} {
		f := newFake(t, 13000)
		drv, err := Open(cuda.Options{Path: f.Path}, WithNVML(nvml.Options{Path: testlib.NVML(t, c.defines...).Build(t)}))
		ok(t, err)
		opened, err := drv.Open(0)
		ok(t, err)
		d := opened.(*device)
		<-d.watch.ready // NVML starts in the background
		f.Set("cuEventQuery", int(c.code))
		for range 2 {
			_, err = d.Query(event0)
			xid, has := errors.AsType[health.XID](err)
			if xid != c.xid || has != (c.xid != 0) || !errors.Is(err, c.code) {
				t.Errorf("%s: %v, with XID %d; want %d", name, err, xid, c.xid)
			}
			if c.xid == 79 && !strings.HasSuffix(err.Error(), "; the last XID error of the GPU, at an unknown time, is XID 79: GPU has fallen off the bus (the device is lost)") || errors.Is(err, driver.ErrLost) != (name != "a failed call") {
				t.Errorf("%s: %v", name, err)
			}
		}
		f.Set("cuEventQuery", 0)
		ok(t, d.Close())
	}
}

// timed is a session that reports XID errors at given times. Wait hangs until the channel ask is
// closed, and Close hangs until the channel free is closed.
type timed struct {
	health.Session
	began     time.Time
	xids      []health.XID
	at        []time.Duration
	ask, free chan struct{} // nil: the call does not hang
	freed     *atomic.Int32
}

func (s *timed) Wait(timeout time.Duration) (health.XID, bool, error) {
	if s.ask != nil {
		<-s.ask
	}
	if len(s.xids) > 0 {
		if left := s.at[0] - time.Since(s.began); left <= timeout {
			time.Sleep(left)
			xid := s.xids[0]
			s.xids, s.at = s.xids[1:], s.at[1:]
			return xid, true, nil
		}
	}
	time.Sleep(timeout)
	return 0, false, nil
}

func (s *timed) Close() error {
	if s.free != nil {
		<-s.free
	}
	s.freed.Add(1)
	return nil
}

func watchOf(s *timed) *watch {
	w := &watch{ready: make(chan struct{}), session: s}
	close(w.ready)
	s.began, s.freed = time.Now(), new(atomic.Int32)
	return w
}

// TestOldXID checks that the error of a lost device names the XID error that comes with the loss,
// and not an older one.
func TestOldXID(t *testing.T) {
	const ms = time.Millisecond
	long := make([]health.XID, 500) // too many errors to read one by one within xidPatience
	for i := range long {
		long[i] = 31
	}
	for name, c := range map[string]struct {
		xids []health.XID
		at   []time.Duration
		want string
	}{
		"none":       {nil, nil, ""},
		"too late":   {[]health.XID{79}, []time.Duration{time.Minute}, ""},
		"new":        {[]health.XID{79}, []time.Duration{10 * ms}, "; the last XID error of the GPU is XID 79: GPU has fallen off the bus"},
		"old":        {[]health.XID{79}, []time.Duration{0}, "; the last XID error of the GPU, at an unknown time, is XID 79: GPU has fallen off the bus"},
		"old, new":   {[]health.XID{31, 43, 79}, []time.Duration{0, 0, 10 * ms}, "; the last XID error of the GPU is XID 79: GPU has fallen off the bus"},
		"many, new":  {append(long[:500:500], 79), append(make([]time.Duration, 500), 10*ms), "; the last XID error of the GPU is XID 79: GPU has fallen off the bus"},
		"new, newer": {[]health.XID{43, 79}, []time.Duration{10 * ms, 10 * ms}, "; the last XID error of the GPU is XID 79: GPU has fallen off the bus"},
	} {
		synctest.Test(t, func(t *testing.T) {
			w := watchOf(&timed{xids: c.xids, at: c.at})
			lost := errors.New("lost")
			if err := w.of(lost); err.Error() != "lost"+c.want || !errors.Is(err, lost) {
				t.Errorf("%s: %v", name, err)
			}
			if took := time.Since(w.session.(*timed).began); took > 25*ms {
				t.Errorf("%s: the first error took %v", name, took)
			}
			w.stop()
		})
	}
}

// TestHungNVML checks how long errors and Close wait for calls of NVML that hang.
func TestHungNVML(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		took := func(want time.Duration, what string, f func()) {
			t.Helper()
			began := time.Now()
			f()
			if took := time.Since(began); took != want {
				t.Errorf("%s took %v, want %v", what, took, want)
			}
		}
		s := &timed{ask: make(chan struct{}), free: make(chan struct{})}
		w := watchOf(s)
		lost := errors.New("lost")
		of := func() {
			if err := w.of(lost); err != lost {
				t.Error(err)
			}
		}
		took(askPatience, "the first error", of)
		took(0, "the next error", of)
		close(s.ask)
		time.Sleep(time.Second)
		took(startPatience, "Close", w.stop)
		close(s.free)
		synctest.Wait()
		if n := s.freed.Load(); n != 1 {
			t.Errorf("freed %d times", n)
		}
		never := &watch{ready: make(chan struct{})}
		took(startPatience, "Close while NVML starts", never.stop)
		close(never.ready)
	})
}

// TestCloseWhileNVMLHangs checks that Close gives up while a call of NVML hangs, and that the event
// set is freed only after the call.
func TestCloseWhileNVMLHangs(t *testing.T) {
	t.Parallel()
	s := &timed{ask: make(chan struct{})}
	w := watchOf(s)
	w.of(errors.New("lost"))
	began := time.Now()
	w.stop() // gives up, because the call hangs until s.ask is closed
	if took := time.Since(began); took < startPatience || s.freed.Load() != 0 {
		t.Errorf("Close took %v, and freed %d times", took, s.freed.Load())
	}
	close(s.ask)
	for end := time.Now().Add(time.Minute); s.freed.Load() != 1; time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("the event set is not freed after the call has returned")
		}
	}
}
