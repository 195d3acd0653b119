//go:build linux && (amd64 || arm64) && !nogpu

package hipdriver

import (
	"errors"
	"strings"
	"testing"

	"github.com/puregpu/puregpu/hip"
	"github.com/puregpu/puregpu/runtime/driver"
)

// TestAdoptStream has streams of the device, and others.
func TestAdoptStream(t *testing.T) {
	f := newFake(t, hip64)
	d := f.device()
	f.set("priority", 1)
	if priority, err := d.AdoptStream(stream1); priority != -1 || err != nil {
		t.Errorf("priority %d, %v", priority, err)
	}
	f.want("hipStreamGetDevice(0x5001)", "hipStreamGetPriority(0x5001)")
	if e := Event(event0); e != hip.Event(event0) {
		t.Errorf("event %#x", e)
	}
	for _, s := range []driver.Stream{0, 1, 2} {
		if _, err := d.AdoptStream(s); !errors.Is(err, hip.ErrorInvalidHandle) || !strings.Contains(err.Error(), "a default stream is another one with each device") {
			t.Errorf("stream %d: %v", s, err)
		}
	}
	f.want("")
	f.set("stream's device", 1)
	if _, err := d.AdoptStream(stream1); !errors.Is(err, hip.ErrorInvalidDevice) || !strings.Contains(err.Error(), "it is of device 1") {
		t.Errorf("a stream of another device: %v", err)
	}
	for _, want := range []bool{false, true, false} {
		if want {
			if err := d.BeginCapture(stream1); err != nil {
				t.Fatal(err)
			}
		}
		if got, err := d.Capturing(stream1); got != want || err != nil {
			t.Errorf("captures %v, %v; want %v", got, err, want)
		}
		if want {
			if _, err := d.EndCapture(stream1); err != nil {
				t.Fatal(err)
			}
		}
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

// TestLaunchAdopted launches an exec in a stream of the program's, which may be gone when it is launched again: the next launch waits for an
// event that was recorded at once.
func TestLaunchAdopted(t *testing.T) {
	f := newFake(t, hip64)
	d := f.device()
	d.setCaptured(stream0, false) // as NewStream says
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
	f.calls()
	ok(d.LaunchGraph(stream1, x))
	f.want("hipGraphLaunch(0x7000, 0x5001)", "hipEventRecord(0xe000, 0x5001)")
	ok(d.LaunchGraph(stream0, x))
	f.want("hipStreamWaitEvent(0x5000, 0xe000, 0)", "hipGraphLaunch(0x7000, 0x5000)")
	ok(d.LaunchGraph(stream0, x))
	f.want("hipGraphLaunch(0x7000, 0x5000)")
	ok(d.LaunchGraph(stream1, x))
	f.want("hipEventRecord(0xe000, 0x5000)", "hipStreamWaitEvent(0x5001, 0xe000, 0)", "hipGraphLaunch(0x7000, 0x5001)",
		"hipEventQuery(0xe000)", "hipEventRecord(0xe000, 0x5001)")
	ok(d.LaunchGraph(stream1, x))
	f.want("hipStreamWaitEvent(0x5001, 0xe000, 0)", "hipGraphLaunch(0x7000, 0x5001)", "hipEventQuery(0xe000)", "hipEventRecord(0xe000, 0x5001)")
	f.set("hipEventRecord", int(hip.ErrorUnknown)) // then the next launch records it
	ok(d.LaunchGraph(stream1, x))
	f.set("hipEventRecord", 0)
	f.calls()
	ok(d.LaunchGraph(stream0, x))
	f.want("hipEventQuery(0xe000)", "hipEventRecord(0xe000, 0x5001)", "hipStreamWaitEvent(0x5000, 0xe000, 0)", "hipGraphLaunch(0x7000, 0x5000)")
	if f.last() != 0 {
		t.Errorf("the thread remembers %d", f.last())
	}
	ok(d.DestroyExec(x))
	ok(d.DestroyGraph(g))
}
