//go:build linux && (amd64 || arm64) && !nogpu

package hipdriver

import (
	"errors"
	"strings"
	"testing"

	"github.com/puregpu/puregpu/hip"
	"github.com/puregpu/puregpu/runtime/driver"
)

// TestAdoptOthers tests a stream of another device, and a release that cannot adopt streams.
func TestAdoptOthers(t *testing.T) {
	f := newFake(t, hip64)
	d := f.device()
	if e := Event(event0); e != hip.Event(event0) {
		t.Errorf("event %#x", e)
	}
	f.Set("stream's device", 1)
	if _, err := d.AdoptStream(stream1); !errors.Is(err, hip.ErrorInvalidDevice) || !strings.Contains(err.Error(), "it is of device 1") {
		t.Errorf("a stream of another device: %v", err)
	}
	old := newFake(t, hip52).device()
	_, adopt := old.AdoptStream(stream1)
	_, asked := old.Capturing(stream1)
	for _, err := range []error{adopt, asked} {
		if !errors.Is(err, driver.ErrUnsupported) {
			t.Error(err)
		}
	}
}

// TestLaunchAdopted launches an exec in a stream of the program. The program may destroy the stream
// before the next launch. The next launch waits for an event, which must be recorded immediately
// after the launch.
func TestLaunchAdopted(t *testing.T) {
	f := newFake(t, hip64)
	d := f.device()
	d.setCaptured(stream0, false) // NewStream does this for its streams
	ok := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	g, err := d.NewGraph()
	ok(err)
	x, err := d.Instantiate(g)
	ok(err)
	f.Calls()
	ok(d.LaunchGraph(stream1, x))
	f.Want("hipGraphLaunch(0x7000, 0x5001)", "hipEventRecord(0xe000, 0x5001)")
	ok(d.LaunchGraph(stream0, x))
	f.Want("hipStreamWaitEvent(0x5000, 0xe000, 0)", "hipGraphLaunch(0x7000, 0x5000)")
	ok(d.LaunchGraph(stream0, x))
	f.Want("hipGraphLaunch(0x7000, 0x5000)")
	ok(d.LaunchGraph(stream1, x))
	f.Want("hipEventRecord(0xe000, 0x5000)", "hipStreamWaitEvent(0x5001, 0xe000, 0)", "hipGraphLaunch(0x7000, 0x5001)",
		"hipEventQuery(0xe000)", "hipEventRecord(0xe000, 0x5001)")
	ok(d.LaunchGraph(stream1, x))
	f.Want("hipStreamWaitEvent(0x5001, 0xe000, 0)", "hipGraphLaunch(0x7000, 0x5001)", "hipEventQuery(0xe000)", "hipEventRecord(0xe000, 0x5001)")
	f.Set("hipEventRecord", int(hip.ErrorUnknown)) // the event of this launch is then recorded by the next launch
	ok(d.LaunchGraph(stream1, x))
	f.Set("hipEventRecord", 0)
	f.Calls()
	ok(d.LaunchGraph(stream0, x))
	f.Want("hipEventQuery(0xe000)", "hipEventRecord(0xe000, 0x5001)", "hipStreamWaitEvent(0x5000, 0xe000, 0)", "hipGraphLaunch(0x7000, 0x5000)")
	if f.last() != 0 {
		t.Errorf("the thread's last error is %d", f.last())
	}
	ok(d.DestroyExec(x))
	ok(d.DestroyGraph(g))
}
