package engine_test

import (
	"context"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/puregpu/puregpu/runtime/driver"
	"github.com/puregpu/puregpu/runtime/driver/simdriver"
)

// TestFaults makes the n-th native call of a scenario fail, or makes the operation that the call
// submits lose the device, for every n. Nothing may hang or leak, every signal must be reached or
// fail, and no memory may be freed while the device uses it. With a step of k only every k-th call
// gets a fault, and the first of them is chosen at random. Traced scenarios make many calls, so
// their steps are larger. Without the flag gpu.soak their steps are multiplied by 4. With the race
// detector or in a short run, all steps are multiplied by 8.
func TestFaults(t *testing.T) {
	cuda, hip := simdriver.CUDACaps(), simdriver.HIPCaps()
	pools := hipPoolCaps()
	turn := rand.IntN(1000)
	checkLeaks(t)
	for _, on := range []struct {
		name    string
		caps    *driver.Caps
		devices int
		step    uint64
		run     func(ctx context.Context, d driver.Driver, devices int, sound bool) error
	}{
		{"cuda over 2 devices", &cuda, 2, 1, scenario},
		{"hip over 1 device", &hip, 1, 1, scenario},
		{"hip over 2 devices", &hip, 2, 1, scenario},
		{"hip over 8 devices", &hip, 8, 2, scenario},
		{"hip with its pools", &pools, 2, 2, scenario},
		{"others' work on cuda", &cuda, 1, 1, others},
		{"others' work on hip", &hip, 1, 1, others},
		{"others' work on hip with its pools", &pools, 1, 1, others},
		{"memories of cuda", &cuda, 1, 1, memories},
		{"memories of hip", &hip, 1, 1, memories},
		{"memories of hip with its pools", &pools, 1, 1, memories},
		{"handing on memory of cuda", &cuda, 1, 1, handOn},
		{"handing on memory of hip", &hip, 1, 2, handOn},
		{"handing on memory of hip with its pools", &pools, 1, 2, handOn},
		{"traced on cuda", &cuda, 2, 11, inTrace(scenario)},
		{"traced on hip", &hip, 1, 11, inTrace(scenario)},
		{"others' work traced on cuda", &cuda, 1, 7, inTrace(others)},
	} {
		if strings.Contains(on.name, "traced") && !*soak {
			on.step *= 4
		}
		if raceEnabled || testing.Short() {
			on.step *= 8
		}
		for i, kind := range []struct {
			name  string
			fault simdriver.Fault
		}{
			{"a call", simdriver.Fault{}},
			{"a call out of memory", simdriver.Fault{OOM: true}},
			{"a call that loses", simdriver.Fault{Lost: true}},
			{"an operation when it runs", simdriver.Fault{AtExecution: true}},
		} {
			t.Run("B77 B80 B81 B85 B87 "+on.name+", "+kind.name, func(t *testing.T) {
				t.Parallel()
				fault := kind.fault
				var total uint64
				try := func(n uint64) {
					var mu sync.Mutex
					var broken error
					d := simdriver.New(simdriver.Config{Devices: on.devices, Caps: on.caps, Strict: true, Kernels: simKernels, OnExecute: func(e simdriver.Executed) {
						if e.Err != nil {
							mu.Lock()
							broken = e.Err
							mu.Unlock()
						}
					}})
					var hit *simdriver.Injected
					if n > 0 {
						f := fault
						f.Device, f.N = simdriver.AnyDevice, n
						hit = d.Inject(f)
					}
					ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
					err := on.run(ctx, d, on.devices, n == 0)
					cancel()
					if n == 0 {
						total = d.Calls()
						t.Logf("%d calls", total)
					}
					if err != nil {
						t.Errorf("call %d: %v", n, err)
					}
					mu.Lock()
					if broken != nil && !fault.Lost && !fault.AtExecution {
						t.Errorf("call %d: %v", n, broken)
					}
					mu.Unlock()
					for _, name := range d.Leaks() {
						t.Errorf("call %d: left behind: %s", n, name)
					}
					if t.Failed() {
						t.Fatalf("call %d failed %v", n, hit != nil && hit.Hits() > 0)
					}
				}
				synctest.Test(t, func(*testing.T) { try(0) })
				for n := 1 + uint64(turn+i)%on.step; n <= total+10; n += on.step {
					synctest.Test(t, func(*testing.T) { try(n) })
				}
			})
		}
	}
}
