package engine_test

import (
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/puregpu/puregpu/runtime/driver/simdriver"
	"github.com/puregpu/puregpu/runtime/gpu"
)

// TestSwitches checks that submitting and waiting make no driver calls that make a device current
// on a thread. These calls are slow here.
func TestSwitches(t *testing.T) {
	now := goleak.IgnoreCurrent()
	t.Cleanup(func() { goleak.VerifyNone(t, now) })
	for _, devices := range []int{1, 2, 8} {
		hip := simdriver.HIPCaps()
		d := newSim(t, simdriver.Config{Devices: devices, Caps: &hip, Latency: map[simdriver.Op]time.Duration{simdriver.OpBind: 10 * time.Millisecond}})
		var devs []*gpu.Device
		var bufs []*gpu.Buffer
		for i := range devices {
			devs = append(devs, openDevice(t, d, i, gpu.Options{Queues: 2, Events: 512}))
			bufs = append(bufs, allocate(t, devs[i], 64))
		}
		binds := func() (n uint64) {
			for i := range devices {
				n += calls(d, i, simdriver.OpBind)
			}
			return n
		}
		s, v := semaphores(t, 1)[0], uint64(0)
		work := func() {
			for i := range 200 { // with several devices, each submission waits for another device
				to := i % devices
				must(t, devs[to].Queue(i).Submit(order(s, v, s, v+1), gpu.Fill(bufs[to].All(), []byte{1})))
				v++
			}
			must(t, s.Wait(minute(t), v))
		}
		work() // lets pools grow
		before := binds()
		work()
		if n := binds() - before; n > 0 {
			t.Errorf("B118 on %d devices %d of 200 submissions switch devices", devices, n)
		}
	}
}
