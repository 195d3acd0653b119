package scenarios

import (
	"context"
	"testing"
	"time"

	"github.com/puregpu/puregpu/internal/explore"
	"github.com/puregpu/puregpu/runtime/driver"
	"github.com/puregpu/puregpu/runtime/driver/simdriver"
	"github.com/puregpu/puregpu/runtime/gpu"
	"github.com/puregpu/puregpu/runtime/trace"
)

// TestTracer takes records from a tracer with room for few records while work is submitted, parked
// and retired, and the device may be lost. The results of work must be right, and each submission
// must have at most one record, with the time when it was over.
func TestTracer(t *testing.T) {
	explore.Run(t, func(x *explore.T) {
		times := []trace.Times{trace.SubmissionTimes, trace.CommandTimes, trace.NoTimes}[x.Choose(3)]
		tracer, r := traced(x, trace.TracerOptions{Records: 4 << (2 * x.Choose(3)), Times: times})
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
			records := make([]trace.Record, 3)
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
						if z.Kind != trace.KindSubmission {
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
		ok(d.Queue(0).Submit(gpu.Order{Wait: pts(gate, 1), Signal: pts(s, 1)}, gpu.Fill(b.All(), []byte{1})))
		ok(d.Queue(1).Submit(gpu.Order{Wait: pts(s, 1), Signal: pts(s, 2)}, gpu.Execute(c)))
		ok(d.Queue(0).Submit(gpu.Order{Wait: pts(s, 2), Signal: pts(s, 3)}, gpu.HostCall(func() error { return nil })))
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

// TestTracerFull makes records of work, waits and samples with hardly any room for them, while a
// goroutine takes some records now and then. Each record must be taken once or counted as dropped.
// A name that finds no room must be reported later.
func TestTracerFull(t *testing.T) {
	explore.Run(t, func(x *explore.T) {
		tracer, r := traced(x, trace.TracerOptions{Records: 2 << x.Choose(2), Times: trace.NoTimes})
		d := r.devs[0]
		named := r.sem()
		named.SetName("step")
		submissions, others := map[uint64]bool{}, 0 // records taken: ids of submissions, and the number of other records
		told, closed := false, false
		take := func(records []trace.Record) bool { // one goroutine at a time calls take
			n := tracer.Take(records)
			for i := range records[:n] {
				z := &records[i]
				if closed {
					x.Errorf("a %v behind the record that the device was closed", z.Kind)
				}
				switch z.Kind {
				case trace.KindSubmission:
					if submissions[z.ID] || z.ID < 1 || z.ID > tracer.Stats().Submissions || z.Op == "" || z.Done <= 0 {
						x.Errorf("the record of submission %d: %+v", z.ID, *z)
					}
					submissions[z.ID] = true
					continue
				case trace.KindName:
					told = told || z.Label == "step"
				case trace.KindClosed:
					closed = true
				}
				others++
			}
			return n > 0
		}
		wait := func(p gpu.Point) { // WaitAll makes a record even if it does not block
			ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
			defer cancel()
			r.must(gpu.WaitAll(ctx, p))
		}
		room := make([]trace.Record, 2)
		made := 1 // the record of the open device
		for i := range 2 {
			r.do(func() {
				s := r.sem()
				r.must(d.Queue(i).Submit(gpu.Order{Wait: pts(named, 0), Signal: pts(s, 1)}, gpu.Barrier()))
				r.must(d.Queue(i).Submit(gpu.Order{Wait: pts(s, 1), Signal: pts(s, 2)}, gpu.HostCall(func() error { return nil })))
				r.must(d.Queue(1-i).Submit(gpu.Order{Wait: pts(s, 2), Signal: pts(s, 3)}, gpu.Barrier()))
				wait(s.At(3))
			})
			made += 3 + 1
		}
		r.do(func() { tracer.Sample() })
		made++
		r.do(func() {
			for range x.Choose(4) {
				take(room)
			}
		})
		r.wg.Wait()
		// There may be room only a moment after a record was taken.
		for end := time.Now().Add(patience()); !told && time.Now().Before(end); {
			time.Sleep(time.Millisecond) // a goroutine that found no room for the name may still have to note that
			for take(room) {
			}
			s := r.sem()
			r.must(d.Queue(0).Submit(gpu.Order{Wait: pts(named, 0), Signal: pts(s, 1)}, gpu.Barrier()))
			wait(s.At(1))
			made += 2
			for take(room) {
			}
		}
		if !told {
			x.Errorf("the name was never told")
		}
		sampled := x.Choose(2) == 1
		if sampled {
			r.do(func() { tracer.Sample() }) // makes a record only if the call comes before the device is closed
		}
		r.must(d.Close())
		made++
		r.end()
		for take(room) {
		}
		st := tracer.Stats()
		if told { // a name that found room counts as a record
			made++
		}
		if n := int(st.Records + st.Dropped); n != made && !(sampled && n == made+1) || int(st.Records) != len(submissions)+others {
			x.Errorf("%d records were made, and of submissions %d and others %d taken: %+v", made, len(submissions), others, st)
		}
	})
}

// traced opens a device with a tracer.
func traced(x *explore.T, o trace.TracerOptions) (*trace.Tracer, *rig) {
	tracer, err := trace.NewTracer(o)
	if err != nil {
		x.Fatalf("%v", err)
	}
	opt := quick()
	opt.Tracer = tracer
	return tracer, open(x, simdriver.Config{}, opt)
}
