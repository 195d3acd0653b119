package gpu_test

import (
	"io"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/puregpu/puregpu/runtime/driver"
	"github.com/puregpu/puregpu/runtime/driver/simdriver"
	"github.com/puregpu/puregpu/runtime/gpu/gputest"
)

func TestConformance(t *testing.T) {
	cuda, hip := simdriver.CUDACaps(), simdriver.HIPCaps()
	bare := driver.Caps{} // no optional features
	for _, on := range []struct {
		name    string
		caps    driver.Caps
		devices int
		brief   bool
	}{
		{"cuda", cuda, 3, false},
		{"hip over 1 device", hip, 1, true}, // the suite skips tests that need several devices
		{"hip over 2 devices", hip, 2, true},
		{"hip over 8 devices", hip, 8, false},
		{"hip with its pools", hipPoolCaps(), 2, true},
		{"bare", bare, 3, false},
	} {
		if testing.Short() && on.name != "cuda" && on.devices != 2 {
			continue
		}
		// With the race detector the suite runs on two configurations only.
		if raceEnabled && on.name != "cuda" && on.name != "hip over 2 devices" {
			continue
		}
		t.Run(on.name, func(t *testing.T) {
			gputest.Run(t, func(t *testing.T) gputest.Harness {
				machine := new(simdriver.Machine)
				d := newSim(t, simdriver.Config{Devices: on.devices, Caps: &on.caps, Machine: machine})
				var mu sync.Mutex // protects binders
				binders := map[int]driver.Device{}
				return gputest.Harness{
					Driver:  d,
					Kernels: true,
					Comms:   on.caps.Comms,
					Brief:   on.brief || raceEnabled,
					Stall: func(device int) func() {
						d.StallDevice(device)
						return func() { d.ResumeDevice(device) }
					},
					Calls: callsOf(d),
					Far: func(t *testing.T) gputest.Far {
						return startFar(t, newSim(t, simdriver.Config{Devices: 1, Caps: &on.caps, Machine: machine}))
					},
					Current: func() any {
						if i, ok := d.Current(); ok {
							return i
						}
						return nil
					},
					SetCurrent: func(device int) {
						mu.Lock()
						defer mu.Unlock()
						v := binders[device]
						if v == nil {
							var err error
							if v, err = d.Open(device); err != nil {
								t.Fatal(err)
							}
							binders[device] = v
							t.Cleanup(func() { closeBound(v) })
						}
						if err := v.Bind(); err != nil {
							t.Error(err)
						}
					},
				}
			})
		})
	}
}

// startFar runs the far side of a test on a goroutine. d is the driver of the simulated second
// process.
func startFar(t *testing.T, d *simdriver.Driver) gputest.Far {
	in, to := io.Pipe()
	from, out := io.Pipe()
	ended := make(chan struct{})
	var killed atomic.Bool
	go func() {
		defer close(ended)
		err := gputest.RunFar(d, in, out)
		in.Close()
		out.Close()
		if err != nil && !killed.Load() {
			t.Errorf("the far process: %v", err)
		}
	}()
	t.Cleanup(func() {
		to.Close()
		<-ended
	})
	return gputest.Far{To: to, From: from, Kill: func() {
		killed.Store(true)
		d.Kill()
		to.Close()
		from.Close()
	}}
}

// TestKilled kills a simulated second process while this process waits for an event of the second
// process. The stream of the second process has not reached the event yet.
func TestKilled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		machine := new(simdriver.Machine)
		slow := newSim(t, simdriver.Config{Machine: machine, Memory: 2 << 30, Latency: map[simdriver.Op]time.Duration{simdriver.OpFill: time.Second}})
		gputest.CheckKilled(t, newSim(t, simdriver.Config{Machine: machine}), startFar(t, slow))
	})
}

// closeBound closes a device on a thread bound to it.
func closeBound(v driver.Device) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		runtime.LockOSThread() // the thread ends with the goroutine
		v.Bind()
		v.Close()
	}()
	<-done
}
