package scenarios

import (
	"errors"
	"testing"

	"github.com/puregpu/puregpu/internal/explore"
	"github.com/puregpu/puregpu/runtime/driver"
	"github.com/puregpu/puregpu/runtime/driver/simdriver"
	"github.com/puregpu/puregpu/runtime/gpu"
)

// These are the smallest scenarios of the core. They exclude their set-up and their end from
// exploration, so that -exhaust can run all schedules with few unusual switches.

// TestSmallSubmitSignal submits work while its wait is signalled.
func TestSmallSubmitSignal(t *testing.T) {
	explore.Run(t, func(x *explore.T) {
		r := open(x, simdriver.Config{}, small())
		x.Window(false)
		b, s := r.alloc(r.devs[0], 8), r.sem()
		x.Window(true)
		r.do(func() { r.must(s.Signal(1)) })
		r.must(r.devs[0].Queue(0).Submit(gpu.Order{Wait: pts(s, 1), Signal: pts(s, 2)}, gpu.Fill(b.All(), []byte{1})))
		r.must(r.wait(s, 2))
		x.Window(false)
		r.full("the fill", r.bytes(r.devs[0].Queue(0), b), 1)
		r.must(b.Close())
		r.end()
	})
}

// TestSmallParkRelease releases work that is parked for two points, from two goroutines.
func TestSmallParkRelease(t *testing.T) {
	explore.Run(t, func(x *explore.T) {
		r := open(x, simdriver.Config{}, small())
		x.Window(false)
		b, s, u := r.alloc(r.devs[0], 8), r.sem(), r.sem()
		r.must(r.devs[0].Queue(0).Submit(gpu.Order{Wait: []gpu.Point{s.At(1), u.At(1)}, Signal: pts(s, 2)}, gpu.Fill(b.All(), []byte{1})))
		x.Window(true)
		r.do(func() { r.must(s.Signal(1)) })
		r.must(u.Signal(1))
		r.must(r.wait(s, 2))
		x.Window(false)
		r.full("the fill", r.bytes(r.devs[0].Queue(0), b), 1)
		r.must(b.Close())
		r.end()
	})
}

// TestSmallPublishFail fails a semaphore while work that signals it is submitted.
func TestSmallPublishFail(t *testing.T) {
	explore.Run(t, func(x *explore.T) {
		r := open(x, simdriver.Config{}, small())
		x.Window(false)
		b, s, boom := r.alloc(r.devs[0], 8), r.sem(), errors.New("boom")
		x.Window(true)
		r.do(func() { s.Fail(boom) })
		r.is(r.devs[0].Queue(0).Submit(gpu.Order{Signal: pts(s, 1)}, gpu.Fill(b.All(), []byte{1})), boom)
		r.is(r.wait(s, 1), boom)
		r.wg.Wait()
		x.Window(false)
		if err := r.wait(s, 2); !errors.Is(err, boom) {
			r.Errorf("a value above: %v", err)
		}
		r.must(b.Close())
		r.end()
	})
}

// TestSmallFailOrder submits work that waits for another device's completed work. Meanwhile a
// waiter may find that the completed work has failed, because that work depends on a third device,
// which is lost. Then the submitted work must fail too.
func TestSmallFailOrder(t *testing.T) {
	explore.Run(t, func(x *explore.T) {
		r := open(x, simdriver.Config{Devices: 3}, small())
		x.Window(false)
		lost, failed, end := r.sem(), r.sem(), r.sem()
		var mem []*gpu.Buffer
		for _, d := range r.devs {
			mem = append(mem, r.alloc(d, 8))
		}
		r.must(r.devs[0].Queue(0).Submit(gpu.Order{Signal: pts(lost, 1)}, gpu.Fill(mem[0].All(), []byte{1})))
		r.must(r.devs[1].Queue(0).Submit(gpu.Order{Wait: pts(lost, 1), Signal: pts(failed, 1)}, gpu.Fill(mem[1].All(), []byte{1})))
		r.settles("the second device is through", func() bool { return r.sim.Counters().Devices[1].Pending == 0 })
		r.sim.LoseDevice(0, nil)
		_, err := r.devs[0].Alloc(gpu.DeviceMem, 8)
		r.is(err, driver.ErrLost)
		x.Window(true)
		r.do(func() { r.is(r.wait(failed, 1), driver.ErrLost) })
		r.is(r.devs[2].Queue(0).Submit(gpu.Order{Wait: pts(failed, 1), Signal: pts(end, 1)}, gpu.Fill(mem[2].All(), []byte{1})), driver.ErrLost)
		one := r.wait(end, 1)
		r.wg.Wait()
		x.Window(false)
		if two := r.wait(failed, 1); two != nil && one == nil {
			r.Errorf("work was reached although the work that it waits for has failed: %v", two)
		}
		r.lose()
	})
}

// small are options of a device with few events, on which waits park at once.
func small() gpu.Options { return gpu.Options{Events: 2, Spin: -1, Poll: -1} }
