package gpu

import (
	"context"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/puregpu/puregpu/runtime/driver/simdriver"
	"github.com/puregpu/puregpu/runtime/internal/engine"
	"github.com/puregpu/puregpu/runtime/internal/sema"
	"github.com/puregpu/puregpu/runtime/internal/wake"
)

// Dump tells what is in flight and what is parked on devices, for a test whose wait has given up. Where a mutex is not let go of it says
// so, and goes on.
func Dump(devices ...*Device) string {
	var b strings.Builder
	for _, d := range devices {
		if d == nil || d.native.Native == nil {
			continue
		}
		var dump strings.Builder
		d.native.Dump(&dump)
		b.WriteString(dump.String())
		if held := d.heldForParked(dump.String()); held != "" {
			fmt.Fprintf(&b, "  parked: %s is held\n", held)
			continue
		}
		for _, line := range soonReturned(d.parkedLines) {
			fmt.Fprintf(&b, "  parked: %s\n", line)
		}
	}
	return b.String()
}

// A mutex is a *sync.Mutex, or what stands for one in a test build.
type mutex interface {
	sync.Locker
	TryLock() bool
}

// soonReturned returns what a function returns, unless that takes too long.
func soonReturned(lines func() []string) []string {
	done := make(chan []string, 1)
	go func() { done <- lines() }()
	select {
	case all := <-done:
		return all
	case <-time.After(time.Second):
		return []string{"it takes too long to find out"}
	}
}

// lockOf returns the mutex of a semaphore, which another package keeps to itself.
func lockOf(s *sema.Semaphore) mutex {
	mu := reflect.ValueOf(s).Elem().FieldByName("mu")
	return reflect.NewAt(mu.Type(), mu.Addr().UnsafePointer()).Interface().(mutex)
}

// heldForParked names a mutex that [Device.Parked] takes and that is not let go of. In a bubble of
// testing/synctest no time would pass while a goroutine waits for it.
func (d *Device) heldForParked(dump string) string {
	if strings.Contains(dump, " is held") {
		return "a mutex of the device"
	}
	var points []sema.Point
	d.native.EachOpen(func(s *engine.Submission, _ engine.OpenState) { points = append(points, s.Waits...) })
	for _, p := range points {
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		free := wake.Lock(ctx, lockOf(p.Semaphore))
		cancel()
		if !free {
			return "Semaphore.mu"
		}
		lockOf(p.Semaphore).Unlock()
	}
	return ""
}

// parkedLines are what is parked, the oldest first, without most of what waits for parked operations only.
func (d *Device) parkedLines() (lines []string) {
	behind := 0
	for _, p := range d.Parked() {
		if !slices.ContainsFunc(p.Waits, func(w ParkedWait) bool { return !strings.HasSuffix(w.Producer, engine.IsParked.String()) }) && len(p.Waits) > 0 {
			if behind++; behind > 4 {
				continue
			}
		}
		if lines = append(lines, p.String()); len(lines) == 32 {
			return append(lines, "and more")
		}
	}
	return append(lines, fmt.Sprintf("%d behind parked operations only", behind))
}

// TestDump looks at a device that is stalled and at one that waits for it, also while somebody keeps their mutexes.
func TestDump(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sim := simdriver.New(simdriver.Config{Devices: 2})
		var devs [2]*Device
		var mem [2]Range
		check := func(err error) {
			t.Helper()
			if err != nil {
				t.Fatal(err)
			}
		}
		for i := range devs {
			d, err := Open(sim, i, Options{Queues: 1})
			check(err)
			defer d.Close()
			b, err := d.Alloc(DeviceMem, 8)
			check(err)
			devs[i], mem[i] = d, b.All()
		}
		check(sim.StallDevice(0))
		s, nobody := newSemaphore(t, 0), newSemaphore(t, 0)
		check(devs[0].Queue(0).Fill(Order{Signal: []Point{{s, 1}}}, mem[0], []byte{1}))
		check(devs[1].Queue(0).Fill(Order{Wait: []Point{{s, 1}}, Signal: []Point{{s, 2}}}, mem[1], []byte{1}))
		check(devs[1].Queue(0).Fill(Order{Wait: []Point{{nobody, 7}}}, mem[1], []byte{1}))
		wants := func(what string, parts ...string) {
			t.Helper()
			got := Dump(devs[:]...)
			for _, part := range parts {
				if !strings.Contains(got, part) {
					t.Errorf("%s: there is no %q in\n%s", what, part, got)
				}
			}
		}
		wants("stalled", "Simulated GPU 0", "queue 0 of Simulated GPU 0: issued 1, marked 1, passed 0", "1: fill, recorded true", "after 1 of queue 0 of Simulated GPU 0 (passed 0)",
			"signals 2 (now 0)", "1 parked", "parked: fill on queue 0 of Simulated GPU 1", "to reach 7")
		devs[1].Queue(0).tl.Locked(func() error {
			wants("with a mutex held", "its mu is held", "a mutex of the device is held")
			return nil
		})
		lockOf(&nobody.sema).Lock()
		wants("with a mutex held", "Semaphore.mu is held")
		lockOf(&nobody.sema).Unlock()
		check(sim.ResumeDevice(0))
	})
}
