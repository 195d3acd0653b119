package scenarios

import (
	"testing"
	"time"

	"github.com/puregpu/puregpu/internal/explore"
	"github.com/puregpu/puregpu/runtime/driver"
	"github.com/puregpu/puregpu/runtime/driver/simdriver"
	"github.com/puregpu/puregpu/runtime/gpu"
)

// TestTracer has somebody take records, of which there is little room, while work is submitted, parked, failed and retired, a device is lost or closed: what becomes of work is the same, and
// each submission has at most one record, which says when it was over.
func TestTracer(t *testing.T) {
	explore.Run(t, func(x *explore.T) {
		times := []gpu.TraceTimes{gpu.SubmissionTimes, gpu.CommandTimes, gpu.NoTimes}[x.Choose(3)]
		tracer, err := gpu.NewTracer(gpu.TracerOptions{Records: 4 << (2 * x.Choose(3)), Times: times})
		if err != nil {
			x.Fatalf("%v", err)
		}
		o := quick()
		o.Tracer = tracer
		r := open(x, simdriver.Config{}, o)
		d := r.devs[0]
		b, s, gate := r.alloc(d, 8), r.sem(), r.sem()
		c := r.recorded(d, b.All(), 2)
		lost := x.Choose(3) == 1
		if lost {
			r.do(func() { r.sim.LoseDevice(0, nil) })
		}
		stop := make(chan struct{})
		taken := make(chan struct{})
		go func() {
			defer close(taken)
			seen := map[uint64]bool{}
			records := make([]gpu.TraceRecord, 3)
			for ended := false; !ended; {
				select {
				case <-stop:
					ended = true
				case <-tracer.Soon():
				case <-time.After(50 * time.Microsecond):
				}
				for n := tracer.Take(records); n > 0; n = tracer.Take(records) {
					for i := range records[:n] {
						z := &records[i]
						if z.Kind != gpu.TraceSubmission {
							continue
						}
						if seen[z.ID] {
							x.Errorf("two records of submission %d", z.ID)
						}
						seen[z.ID] = true
						if z.Done <= 0 {
							x.Errorf("submission %d was over at %v", z.ID, z.Done)
						}
					}
				}
			}
		}()
		ok := func(err error) { r.is(err, driver.ErrLost, gpu.ErrClosed) }
		r.do(func() { r.must(gate.Signal(1)) })
		ok(d.Queue(0).Fill(gpu.Order{Wait: pts(gate, 1), Signal: pts(s, 1)}, b.All(), []byte{1}))
		ok(d.Queue(1).Execute(gpu.Order{Wait: pts(s, 1), Signal: pts(s, 2)}, c))
		ok(d.Queue(0).HostCall(gpu.Order{Wait: pts(s, 2), Signal: pts(s, 3)}, func() error { return nil }))
		r.do(func() { tracer.Sample() })
		ok(r.wait(s, 3))
		r.wg.Wait()
		if !lost {
			r.full("behind a recording", r.bytes(d.Queue(0), b), 2)
		}
		ok(c.Close())
		ok(b.Close())
		if lost {
			r.lose()
		} else {
			r.end()
		}
		close(stop)
		<-taken
	})
}
