package health_test

import (
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"github.com/puregpu/puregpu/runtime/driver"
	"github.com/puregpu/puregpu/runtime/health"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var two = []driver.Info{{Index: 0, Name: "Simulated GPU 0"}, {Index: 1, Name: "Simulated GPU 1"}}

func watch(t *testing.T, f *health.Fake, opt health.Options) (*health.Watcher, chan health.Event) {
	t.Helper()
	w, err := health.Watch(f, two, opt)
	if err != nil {
		t.Fatal(err)
	}
	c := make(chan health.Event, 100)
	w.Notify(c)
	return w, c
}

// next returns the channel's event when all goroutines of the bubble are blocked.
func next(t *testing.T, c chan health.Event) health.Event {
	t.Helper()
	synctest.Wait()
	select {
	case e := <-c:
		return e
	default:
		t.Fatal("no event came")
		panic("not reached")
	}
}

func none(t *testing.T, c chan health.Event) {
	t.Helper()
	synctest.Wait()
	select {
	case e := <-c:
		t.Errorf("an event that nothing caused: %v", e)
	default:
	}
}

func closeAll(t *testing.T, w *health.Watcher, f *health.Fake) {
	t.Helper()
	began := time.Now()
	if err := w.Close(); err != nil {
		t.Error(err)
	}
	if took := time.Since(began); took > time.Second/2 {
		t.Errorf("Close took %v", took)
	}
	if n := f.Sessions(); n != 0 {
		t.Errorf("%d sessions are open after Close", n)
	}
	if err := w.Close(); err != nil {
		t.Errorf("a second Close: %v", err)
	}
}

// TestXID checks that XID errors are sent at once, to all channels, with the device that reported
// them.
func TestXID(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var f health.Fake
		f.Report(1, 48) // before the watcher starts, so no event
		w, c := watch(t, &f, health.Options{Interval: -1})
		more := make(chan health.Event, 1)
		w.Notify(more)
		w.Notify(more) // the second call must have no effect
		time.Sleep(time.Hour)
		none(t, c)
		f.Report(1, 79)
		e := next(t, c)
		if e.Device.Index != 1 || e.Kind != health.KindXID || e.XID != 79 || !e.Time.Equal(time.Now()) ||
			e.String() != "device 1 (Simulated GPU 1): XID 79: GPU has fallen off the bus" {
			t.Errorf("%+v: %v", e, e)
		}
		f.Report(1, 79)
		f.Report(0, 63)
		synctest.Wait()
		if len(more) != 1 || w.Dropped() != 2 {
			t.Errorf("a full channel has %d events, and %d were dropped; want 1 and 2", len(more), w.Dropped())
		}
		w.Stop(more)
		<-more
		f.Report(0, 63)
		synctest.Wait()
		if len(more) != 0 {
			t.Errorf("an event after Stop: %v", <-more)
		}
		s := w.Status()
		if len(s) != 2 || s[0].XIDs[63] != 2 || s[0].LastXID != 63 || s[1].XIDs[79] != 2 || s[1].XIDs[48] != 0 || s[1].Device.Index != 1 || !s[0].ReadAt.IsZero() {
			t.Errorf("status %+v", s)
		}
		closeAll(t, w, &f)
		for len(c) > 0 {
			<-c
		}
		f.Report(0, 79)
		none(t, c)
	})
}

// A gated source blocks readings until the channel open is closed, so that no reading comes before
// Notify.
type gated struct {
	*health.Fake
	open chan struct{}
}

func (g gated) Watch(info driver.Info) (health.Session, error) {
	s, err := g.Fake.Watch(info)
	return gatedSession{s, g.open}, err
}

type gatedSession struct {
	health.Session
	open chan struct{}
}

func (s gatedSession) Read() (health.Reading, error) {
	<-s.open
	return s.Session.Read()
}

// TestReadings checks that changes of counts and clocks cause events, and that the first counts
// cause none.
func TestReadings(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var f health.Fake
		f.Set(0, health.Reading{ECC: true, Corrected: 7, Clocks: true, Throttle: health.PowerCap})
		g := gated{&f, make(chan struct{})}
		w, err := health.Watch(g, two, health.Options{})
		if err != nil {
			t.Fatal(err)
		}
		c := make(chan health.Event, 100)
		w.Notify(c)
		close(g.open)
		if e := next(t, c); e.Kind != health.KindThrottle || e.String() != "device 0 (Simulated GPU 0): the clocks are held down: power cap" {
			t.Errorf("%v", e)
		}
		time.Sleep(time.Minute)
		none(t, c)
		f.Set(0, health.Reading{ECC: true, Corrected: 9, Uncorrected: 1, Clocks: true, Throttle: health.PowerCap})
		time.Sleep(time.Second)
		if e := next(t, c); e.Kind != health.KindECC || e.Corrected != 2 || e.Uncorrected != 1 || e.Device.Index != 0 ||
			e.String() != "device 0 (Simulated GPU 0): ECC found memory errors: 2 corrected, 1 uncorrected" {
			t.Errorf("%v", e)
		}
		// The counts were reset and have grown again.
		f.Set(0, health.Reading{ECC: true, Corrected: 1, Uncorrected: 1, Clocks: true})
		time.Sleep(time.Second)
		if e := next(t, c); e.Corrected != 1 || e.Uncorrected != 0 {
			t.Errorf("%v", e)
		}
		if e := next(t, c); e.Kind != health.KindThrottle || e.Throttle != 0 || !strings.HasSuffix(e.String(), "no longer held down") {
			t.Errorf("%v", e)
		}
		if s := w.Status()[0]; s.Corrected != 1 || s.Throttle != 0 || time.Since(s.ReadAt) > time.Second || s.Err != nil {
			t.Errorf("status %+v", s)
		}
		closeAll(t, w, &f)
	})
}

// TestUntoldClocks checks that readings without clocks cause no events, and that later clocks are
// compared with the last ones that the device reported.
func TestUntoldClocks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var f health.Fake
		w, c := watch(t, &f, health.Options{})
		none(t, c)
		set := func(r health.Reading) {
			f.Set(0, r)
			time.Sleep(2 * time.Second)
		}
		held := health.Reading{Clocks: true, Throttle: health.PowerCap}
		set(held)
		if e := next(t, c); e.Kind != health.KindThrottle || e.Throttle != health.PowerCap {
			t.Errorf("%v", e)
		}
		for range 2 {
			set(health.Reading{})
			none(t, c)
			set(held)
			none(t, c)
		}
		set(health.Reading{})
		none(t, c)
		set(health.Reading{Clocks: true})
		if e := next(t, c); e.Kind != health.KindThrottle || e.Throttle != 0 {
			t.Errorf("%v", e)
		}
		closeAll(t, w, &f)
	})
}

// TestFailingSource checks that a failing source causes one event, and another event when the
// source works again.
func TestFailingSource(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var f health.Fake
		w, c := watch(t, &f, health.Options{})
		synctest.Wait()
		gone := errors.New("the GPU does not answer")
		f.Fail(1, gone)
		time.Sleep(2 * time.Second)
		if e := next(t, c); e.Kind != health.KindSource || !errors.Is(e.Err, gone) || e.Device.Index != 1 || !strings.HasPrefix(e.String(), "device 1 (Simulated GPU 1): health is not told: ") {
			t.Errorf("%v", e)
		}
		time.Sleep(time.Minute)
		none(t, c)
		if s := w.Status(); !errors.Is(s[1].Err, gone) || s[0].Err != nil {
			t.Errorf("status %+v", s)
		}
		f.Report(0, 63) // the other device is still watched
		if e := next(t, c); e.XID != 63 {
			t.Errorf("%v", e)
		}
		f.Fail(1, nil)
		time.Sleep(2 * time.Second)
		if e := next(t, c); e.Kind != health.KindSource || e.Err != nil || !strings.HasSuffix(e.String(), "health is told again") {
			t.Errorf("%v", e)
		}
		f.Report(1, 94)
		time.Sleep(time.Second)
		if e := next(t, c); e.XID != 94 {
			t.Errorf("%v", e)
		}
		closeAll(t, w, &f)
	})
}

// A blind source fails all readings while the field from is true, but still reports XID errors.
type blind struct {
	*health.Fake
	from *atomic.Bool
}

func (b blind) Watch(info driver.Info) (health.Session, error) {
	s, err := b.Fake.Watch(info)
	return blindSession{s, b.from}, err
}

type blindSession struct {
	health.Session
	from *atomic.Bool
}

var errBlind = errors.New("no reading")

func (s blindSession) Read() (health.Reading, error) {
	if s.from.Load() {
		return health.Reading{}, errBlind
	}
	return s.Session.Read()
}

// TestFailingReadings checks that a row of failing readings causes only one event, and that XID
// errors are still reported.
func TestFailingReadings(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var f health.Fake
		var from atomic.Bool
		w, err := health.Watch(blind{&f, &from}, two[:1], health.Options{Interval: 10 * time.Second})
		if err != nil {
			t.Fatal(err)
		}
		c := make(chan health.Event, 100)
		w.Notify(c)
		none(t, c)
		from.Store(true)
		time.Sleep(11 * time.Second)
		if e := next(t, c); e.Kind != health.KindSource || !errors.Is(e.Err, errBlind) {
			t.Errorf("%v", e)
		}
		for range 60 {
			time.Sleep(time.Second)
			none(t, c)
			if s := w.Status()[0]; !errors.Is(s.Err, errBlind) {
				t.Fatalf("status %+v", s)
			}
		}
		f.Report(0, 63)
		if e := next(t, c); e.XID != 63 {
			t.Errorf("%v", e)
		}
		from.Store(false)
		time.Sleep(11 * time.Second)
		if e := next(t, c); e.Kind != health.KindSource || e.Err != nil {
			t.Errorf("%v", e)
		}
		closeAll(t, w, &f)
	})
}

// TestWithoutXIDs checks that a device that reports no XID errors is still read.
func TestWithoutXIDs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var f health.Fake
		lacks := fmt.Errorf("no such events: %w", errors.ErrUnsupported)
		f.WithoutXIDs(0, lacks)
		w, c := watch(t, &f, health.Options{Interval: time.Minute})
		time.Sleep(time.Hour)
		none(t, c)
		if s := w.Status(); s[0].NoXIDs != lacks || s[0].Err != nil || s[1].NoXIDs != nil || time.Since(s[0].ReadAt) > time.Minute {
			t.Errorf("status %+v", s)
		}
		began := time.Now()
		if xid, _ := w.LastXID(0, time.Hour); xid != 0 || time.Since(began) != 0 {
			t.Errorf("LastXID of a device without XID errors is %d, after %v", xid, time.Since(began))
		}
		closeAll(t, w, &f)
	})
}

// TestRefused checks that Watch watches no device if one device cannot be watched.
func TestRefused(t *testing.T) {
	var f health.Fake
	no := errors.New("no permission")
	f.Refuse(1, no)
	w, err := health.Watch(&f, two, health.Options{})
	if w != nil || !errors.Is(err, no) || err.Error() != "health: watch device 1 (Simulated GPU 1): no permission" || f.Sessions() != 0 {
		t.Errorf("%v, %v, %d sessions", w, err, f.Sessions())
	}
	if w, err := health.Watch(nil, two, health.Options{}); w != nil || err == nil {
		t.Errorf("without a source: %v, %v", w, err)
	}
	none, err := health.Watch(&f, nil, health.Options{})
	if err != nil || len(none.Status()) != 0 || none.Close() != nil {
		t.Errorf("of no devices: %v", err)
	}
}

// TestLastXID checks that LastXID waits for an XID error that is reported soon, but no longer than
// the given time.
func TestLastXID(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var f health.Fake
		w, _ := watch(t, &f, health.Options{Interval: -1})
		last := func(want health.XID, took time.Duration) {
			t.Helper()
			began := time.Now()
			if got, _ := w.LastXID(0, time.Second); got != want || time.Since(began) != took {
				t.Errorf("XID %d after %v; want %d after %v", got, time.Since(began), want, took)
			}
		}
		for _, index := range []int{-1, len(two)} {
			if xid, at := w.LastXID(index, time.Second); xid != 0 || !at.IsZero() {
				t.Errorf("XID %d at %v of device %d, which is not there", xid, at, index)
			}
		}
		last(0, time.Second)
		time.AfterFunc(time.Millisecond, func() { f.Report(0, 31) })
		last(31, time.Millisecond)
		last(31, 0)
		time.Sleep(time.Minute)
		last(31, time.Second) // no new error came, so LastXID returns the old one
		time.AfterFunc(time.Millisecond, func() { f.Report(0, 43) })
		last(43, time.Millisecond)
		time.Sleep(time.Minute)
		time.AfterFunc(100*time.Millisecond, func() { w.Close() })
		last(43, 100*time.Millisecond)
		time.Sleep(time.Second)
		closeAll(t, w, &f)
	})
}

// A stuck source blocks in Wait.
type stuck struct{ release chan struct{} }

func (s stuck) Watch(driver.Info) (health.Session, error) { return s, nil }
func (s stuck) Wait(time.Duration) (health.XID, bool, error) {
	<-s.release
	return 0, false, nil
}
func (s stuck) Read() (health.Reading, error) { return health.Reading{}, nil }
func (s stuck) Close() error                  { return nil }

// TestCloseOfStuckSource checks that Close gives up on a source that does not return.
func TestCloseOfStuckSource(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := stuck{make(chan struct{})}
		w, err := health.Watch(s, two, health.Options{})
		if err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		began := time.Now()
		err = w.Close()
		if took := time.Since(began); took != 5*time.Second || err == nil || !strings.Contains(err.Error(), "close device 0 (Simulated GPU 0)") || !strings.Contains(err.Error(), "close device 1") {
			t.Errorf("Close: %v, after %v", err, took)
		}
		close(s.release) // so that the goroutines of the watcher end
	})
}

// TestTexts checks that the texts of XID numbers are short and all different. It also checks the
// texts of Throttle and Kind.
func TestTexts(t *testing.T) {
	if got := health.XID(79).Error(); got != "XID 79: GPU has fallen off the bus" {
		t.Error(got)
	}
	if got := health.XID(4711).Error(); got != "XID 4711 (look it up: "+health.Catalog+")" {
		t.Error(got)
	}
	seen := map[string]health.XID{}
	for x := range health.XID(300) {
		text := x.Text()
		if other, has := seen[text]; has && text != "" {
			t.Errorf("%d and %d have the same text %q", x, other, text)
		}
		if seen[text] = x; len(text) > 100 || strings.HasSuffix(text, ".") {
			t.Errorf("%d: %q", x, text)
		}
	}
	all := health.PowerCap | health.SoftwareThermal | health.HardwareThermal | health.PowerBrake | health.HardwareSlow | health.SyncBoost
	if got := all.String(); got != "power cap, software thermal, hardware thermal, power brake, hardware slowdown, sync boost" || len(all.Reasons()) != 6 {
		t.Error(got)
	}
	if got := health.Throttle(0).String(); got != "none" {
		t.Error(got)
	}
	if got := fmt.Sprint(health.KindXID, health.KindECC, health.KindThrottle, health.KindSource, health.Kind(9)); got != "XID ECC throttle source Kind(9)" {
		t.Error(got)
	}
}
