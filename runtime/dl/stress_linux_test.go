//go:build (amd64 || (arm64 && (!puregpu_static || cgo))) && !nogpu

package dl

import (
	"flag"
	"io"
	"runtime/pprof"
	"testing"
	"time"
)

var stressFor = flag.Duration("dl.stress", 2*time.Second, "how long to call C while all that may disturb a call goes on")

// startProfile starts a CPU profile, which interrupts threads by SIGPROF.
func startProfile(t *testing.T) (stop func()) {
	if err := pprof.StartCPUProfile(io.Discard); err != nil {
		return func() {} // a profile of the test itself is running
	}
	return pprof.StopCPUProfile
}
