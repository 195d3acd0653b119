//go:build race

package simdriver_test

import (
	"os"
	"os/exec"
	"strings"
	"testing"
	"unsafe"

	"github.com/puregpu/puregpu/runtime/driver"
	"github.com/puregpu/puregpu/runtime/driver/simdriver"
)

const raceEnabled = true

// TestRaceIsFound has the race detector find that nothing orders two streams' work, in a process of its own, and find
// nothing where an event does.
func TestRaceIsFound(t *testing.T) {
	const env = "SIMDRIVER_TEST_RACE"
	if mode := os.Getenv(env); mode != "" {
		race(t, mode == "ordered")
		return
	}
	for _, mode := range []string{"ordered", "unordered"} {
		c := exec.Command(os.Args[0], "-test.run=^TestRaceIsFound$")
		c.Env = append(os.Environ(), env+"="+mode)
		out, err := c.CombinedOutput()
		if found := strings.Contains(string(out), "DATA RACE"); found != (mode == "unordered") || found != (err != nil) {
			t.Errorf("%s: a race was found: %v, %v\n%s", mode, found, err, out)
		}
	}
}

// race has two streams write to the same memory, more than once.
func race(t *testing.T, ordered bool) {
	_, vs := open(t, simdriver.Config{Kernels: kernels(map[string]any{
		"inc": func(g *simdriver.Grid, p driver.Ptr) {
			if x, err := simdriver.View[uint32](g, p, 16); err == nil {
				for i := range x {
					x[i]++
				}
			}
		},
	})})
	v := vs[0]
	a, b, f, m := stream(t, v), stream(t, v), function(t, v, "inc"), alloc(t, v, driver.DeviceMem, 64)
	for range 100 {
		check(t, launch(v, a, f, unsafe.Pointer(&m.Ptr)))
		if ordered {
			check(t, v.StreamWait(b, record(t, v, a)))
		}
		check(t, launch(v, b, f, unsafe.Pointer(&m.Ptr)))
		if ordered {
			check(t, v.StreamWait(a, record(t, v, b)))
		}
	}
	check(t, drain(t, v, a))
	check(t, drain(t, v, b))
}
