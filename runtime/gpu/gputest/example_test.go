package gputest_test

import (
	"testing"

	"github.com/puregpu/puregpu/runtime/driver/simdriver"
	"github.com/puregpu/puregpu/runtime/gpu/gputest"
)

// The tests of a driver run the suite. The suite skips tests of features that the harness leaves
// out.
func ExampleRun() {
	testConformance := func(t *testing.T) {
		gputest.Run(t, func(t *testing.T) gputest.Harness {
			d := simdriver.New(simdriver.Config{Devices: 2}) // the tested driver
			return gputest.Harness{
				Driver: d,
				Comms:  true,
				Stall: func(device int) (resume func()) {
					d.StallDevice(device)
					return func() { d.ResumeDevice(device) }
				},
			}
		})
	}
	_ = testConformance // in a test file, this is func TestConformance(t *testing.T)
}
