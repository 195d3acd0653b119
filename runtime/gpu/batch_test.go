package gpu_test

import (
	"errors"
	"slices"
	"testing"

	"github.com/puregpu/puregpu/runtime/driver"
	"github.com/puregpu/puregpu/runtime/driver/simdriver"
	"github.com/puregpu/puregpu/runtime/gpu"
)

// TestRuns has streams raise one semaphore with run after run of values, which are found done many at a time.
func TestRuns(t *testing.T) {
	type signal struct {
		queue int
		value uint64
	}
	interleaved := func(n int) (list []signal) {
		for v := range uint64(n) {
			list = append(list, signal{int(v) % 2, v + 1})
		}
		return list
	}
	for name, c := range map[string]struct {
		list []signal
		bad  []int // of which one each fails
	}{
		"one stream":            {list: []signal{{0, 1}, {0, 2}, {0, 3}, {0, 5}, {0, 9}}},
		"interleaved":           {list: interleaved(300)},
		"one above the other":   {list: []signal{{0, 1}, {0, 2}, {1, 3}, {1, 4}}},
		"backwards on a stream": {list: []signal{{0, 5}, {0, 3}, {0, 4}, {0, 6}}},
		"a value twice":         {list: []signal{{0, 1}, {0, 2}, {0, 3}, {1, 2}}, bad: []int{1, 3}},
		"the last one twice":    {list: []signal{{0, 1}, {0, 2}, {0, 3}, {1, 3}}, bad: []int{2, 3}},
		"twice on a stream":     {list: []signal{{0, 1}, {0, 2}, {0, 2}, {1, 7}}, bad: []int{1, 2}},
	} {
		for first := range 2 {
			eachCaps(t, "B5 B83 "+name+", "+[]string{"the first stream before", "the second stream before"}[first], func(t *testing.T, caps driver.Caps) {
				d := newSim(t, simdriver.Config{Caps: &caps})
				dev := openDevice(t, d, 0, gpu.Options{Queues: 2})
				b, s, host := allocate(t, dev, 64), semaphores(t, 1)[0], semaphores(t, 1)[0]
				streams := d.Streams(0)
				var own []*gpu.Semaphore
				count, last := [2]uint64{}, uint64(0)
				d.StallDevice(0)
				for i, x := range c.list {
					o := gpu.Order{Signal: pts(s, x.value)}
					if slices.Contains(c.bad, i) {
						own = append(own, semaphores(t, 1)[0])
						o.Signal = append(o.Signal, gpu.Point{Semaphore: own[len(own)-1], Value: 1})
					}
					must(t, dev.Queue(x.queue).Fill(o, b.Range(uint64(x.queue), 1), []byte{1}))
					count[x.queue]++
					last = max(last, x.value)
				}
				ends := semaphores(t, 2)
				for i := range ends {
					must(t, dev.Queue(i).Fill(gpu.Order{Signal: pts(ends[i], 1)}, b.Range(uint64(i), 1), []byte{2}))
				}
				must(t, dev.Queue(0).HostCall(order(s, last, host, 1), func() error { return nil }))
				eventually(t, "all is issued", func() bool { return dev.Stats().InFlight == len(c.list)+2 })
				d.StallStream(streams[1-first])
				d.ResumeDevice(0)
				must(t, ends[first].Wait(minute(t), 1)) // all of one stream is done, and found so
				d.ResumeStream(streams[1-first])
				must(t, ends[1-first].Wait(minute(t), 1))
				v, err := s.Query()
				if len(c.bad) == 0 {
					if v != last || err != nil {
						t.Errorf("at %d, %v; want %d", v, err, last)
					}
					must(t, host.Wait(minute(t), 1))
					return
				}
				if !errors.Is(err, gpu.ErrValue) {
					t.Errorf("at %d, %v; one value was signalled twice", v, err)
				}
				failed := 0
				for _, own := range own {
					if err := own.Wait(minute(t), 1); errors.Is(err, gpu.ErrValue) {
						failed++
					} else if err != nil {
						t.Error(err)
					}
				}
				if failed != 1 {
					t.Errorf("%d of the two submissions with the same value have failed", failed)
				}
			})
		}
	}
	eachCaps(t, "B29 B120 waiters of values inside a run are released with it", func(t *testing.T, caps driver.Caps) {
		const n = 200
		d := newSim(t, simdriver.Config{Caps: &caps})
		dev := openDevice(t, d, 0, gpu.Options{})
		b, s := allocate(t, dev, 64), semaphores(t, 1)[0]
		d.StallDevice(0)
		for v := range uint64(n) {
			must(t, dev.Queue(0).Fill(gpu.Order{Signal: pts(s, v+1)}, b.All(), []byte{1}))
		}
		told := make(chan error, 2*n)
		for v := range uint64(n) {
			s.OnReached(v+1, func(err error) { told <- err })
		}
		d.ResumeDevice(0)
		for range n {
			must(t, <-told)
		}
		if len(told) > 0 {
			t.Error("told twice")
		}
	})
	eachCaps(t, "B83 a value that the host has passed fails inside a run", func(t *testing.T, caps driver.Caps) {
		d := newSim(t, simdriver.Config{Caps: &caps})
		dev := openDevice(t, d, 0, gpu.Options{})
		b, s, end := allocate(t, dev, 64), semaphores(t, 1)[0], semaphores(t, 1)[0]
		d.StallDevice(0)
		for v := range uint64(10) {
			must(t, dev.Queue(0).Fill(gpu.Order{Signal: pts(s, v+1)}, b.All(), []byte{1}))
		}
		must(t, dev.Queue(0).Fill(gpu.Order{Signal: pts(end, 1)}, b.All(), []byte{1}))
		eventually(t, "all is issued", func() bool { return dev.Stats().InFlight == 11 })
		must(t, s.Signal(4))
		d.ResumeDevice(0)
		must(t, end.Wait(minute(t), 1))
		if v, err := s.Query(); v != 4 || !errors.Is(err, gpu.ErrValue) {
			t.Errorf("at %d, %v", v, err)
		}
	})
}
