package memory_test

import (
	"errors"
	"testing"
	"testing/synctest"

	"github.com/puregpu/puregpu/runtime/driver"
	"github.com/puregpu/puregpu/runtime/driver/simdriver"
	"github.com/puregpu/puregpu/runtime/gpu"
)

// TestTrim puts much work in flight, and checks that Trim releases the objects made for that work,
// but not before the work has completed.
func TestTrim(t *testing.T) {
	onEach(t, 2, func(t *testing.T, d *simdriver.Driver, _ driver.Caps) {
		const n, events = 500, 16
		opt := gpu.Options{Queues: 2, Events: events, StageSize: 4096}
		dev, other := openDevice(t, d, 0, opt), openDevice(t, d, 1, opt)
		b, c, s := allocate(t, dev, 4096), allocate(t, other, 4096), semaphores(t, 3)
		down := make([]byte, 4000)
		burst := func(n, base uint64) {
			t.Helper()
			for i := range n {
				must(t, dev.Queue(0).Submit(gpu.Order{Wait: pts(s[2], base), Signal: pts(s[0], base+i+1)}, gpu.Fill(b.Range(0, 64), []byte{1})))
				must(t, dev.Queue(1).Submit(gpu.Order{Wait: []gpu.Point{{Semaphore: s[0], Value: base + i + 1}, {Semaphore: s[1], Value: base + i}}, Signal: pts(s[1], base+i+1)}, gpu.Download(down, b.Range(96, 4000))))
			}
			must(t, other.Queue(0).Submit(gpu.Order{Wait: pts(s[1], base+n), Signal: pts(s[2], base+n)}, gpu.Fill(c.All(), []byte{1})))
		}
		wait := func(v uint64) {
			t.Helper()
			must(t, s[2].Wait(minute(t), v))
		}
		must(t, d.StallDevice(0))
		burst(n, 0)
		inFlight(t, dev, 2*n)
		must(t, dev.Trim()) // Trim frees nothing that is in use
		if st := dev.Stats(); st.Events.Held < 2*n || st.Records.Held < 2*n || st.Staging.Held < n*4096 {
			t.Errorf("%+v", st)
		}
		must(t, d.ResumeDevice(0))
		wait(n)
		synctest.Wait() // until the Submissions are recycled, which is after their signals
		before := dev.Stats()
		must(t, dev.Trim())
		st := dev.Stats()
		if st.Events.Held > events || st.Events.Free != st.Events.Held || st.Events.Made != before.Events.Made {
			t.Errorf("events: %+v, and before %+v", st.Events, before.Events)
		}
		if st.Records.Held != 0 || st.Records.Free != 0 || st.Records.Made != before.Records.Made || st.Timepoints.Held != 0 {
			t.Errorf("records: %+v, and before %+v; timepoints: %+v", st.Records, before.Records, st.Timepoints)
		}
		if st.Staging.Held != 0 || st.Staging.Used != 0 || st.Staging.Peak != before.Staging.Peak {
			t.Errorf("staging: %+v, and before %+v", st.Staging, before.Staging)
		}
		if on := d.Counters().Devices[0]; on.Events != st.Events.Held {
			t.Errorf("the driver has %d events", on.Events)
		}
		for i := range uint64(50) { // makes the objects that small bursts of work need
			burst(2, n+2*i)
			wait(n + 2*i + 2)
			synctest.Wait() // until all Submissions are free, so that each burst takes the same number
		}
		made := dev.Stats()
		for i := range uint64(50) {
			burst(2, n+100+2*i)
			wait(n + 100 + 2*i + 2)
			synctest.Wait()
		}
		if st := dev.Stats(); st.Events.Made != made.Events.Made || st.Records.Made != made.Records.Made || st.Staging.Held != made.Staging.Held {
			t.Errorf("%+v, and before %+v", st, made)
		}
		must(t, dev.Close())
		if err := dev.Trim(); !errors.Is(err, gpu.ErrClosed) {
			t.Errorf("of a device that is closed: %v", err)
		}
		if st := dev.Stats(); st.Events.Held != 0 || st.Staging.Held != 0 {
			t.Errorf("%+v", st)
		}
	})
}
