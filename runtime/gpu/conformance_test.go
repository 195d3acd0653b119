package gpu_test

import (
	"testing"

	"github.com/puregpu/puregpu/runtime/driver"
	"github.com/puregpu/puregpu/runtime/driver/simdriver"
	"github.com/puregpu/puregpu/runtime/gpu/gputest"
)

func TestConformance(t *testing.T) {
	cuda, hip := simdriver.CUDACaps(), simdriver.HIPCaps()
	anywhere := hip // which is how HIP is from 5.6 on
	anywhere.SubmitAnywhere = true
	bare := driver.Caps{SubmitAnywhere: true} // nothing that can be done without
	for _, on := range []struct {
		name    string
		caps    driver.Caps
		devices int
		brief   bool
	}{
		{"cuda", cuda, 3, false},
		{"hip over 1 device", hip, 1, true}, // without what needs two
		{"hip over 2 devices", hip, 2, true},
		{"hip over 8 devices", hip, 8, false},
		{"hip from any thread", anywhere, 2, true},
		{"bare", bare, 3, false},
	} {
		if testing.Short() && on.name != "cuda" && on.devices != 2 {
			continue
		}
		if raceEnabled && on.name != "cuda" && on.name != "hip over 2 devices" { // whose goroutines are the others' too
			continue
		}
		t.Run(on.name, func(t *testing.T) {
			gputest.Run(t, func(t *testing.T) gputest.Harness {
				d := newSim(t, simdriver.Config{Devices: on.devices, Caps: &on.caps})
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
					Current: func() any {
						if i, ok := d.Current(); ok {
							return i
						}
						return nil
					},
					SetCurrent: func(device int) {
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
