package testkit

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/puregpu/puregpu/runtime/gpu"
	"github.com/puregpu/puregpu/runtime/internal/engine"
	"github.com/puregpu/puregpu/runtime/internal/sema"
	"github.com/puregpu/puregpu/runtime/internal/wake"
)

// Dump lists the work in flight and the parked work of devices, for a test that hangs. If a mutex
// stays locked, Dump says so and continues.
func Dump(devices ...*gpu.Device) string {
	var b strings.Builder
	for _, d := range devices {
		if d == nil || Native(d).Native == nil {
			continue
		}
		var dump strings.Builder
		Native(d).Dump(&dump)
		b.WriteString(dump.String())
		if held := heldForParked(d, dump.String()); held != "" {
			fmt.Fprintf(&b, "  parked: %s is held\n", held)
			continue
		}
		for _, line := range soonReturned(func() []string { return parkedLines(d) }) {
			fmt.Fprintf(&b, "  parked: %s\n", line)
		}
	}
	return b.String()
}

// soonReturned returns the result of a function, unless the function takes too long.
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

// heldForParked names a mutex that [gpu.Device.Parked] takes and that stays locked. In a bubble of
// testing/synctest no time would pass while a goroutine waits for the mutex.
func heldForParked(d *gpu.Device, dump string) string {
	if strings.Contains(dump, " is held") {
		return "a mutex of the device"
	}
	var points []sema.Point
	Native(d).EachOpen(func(s *engine.Submission, _ engine.OpenState) { points = append(points, s.Waits...) })
	for _, p := range points {
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		free := wake.Lock(ctx, MutexOf(p.Semaphore))
		cancel()
		if !free {
			return "Semaphore.mu"
		}
		MutexOf(p.Semaphore).Unlock()
	}
	return ""
}

// parkedLines returns lines for up to 32 parked operations, oldest first. It omits most operations
// that only wait for parked operations.
func parkedLines(d *gpu.Device) (lines []string) {
	behind := 0
	for _, p := range d.Parked() {
		if !slices.ContainsFunc(p.Waits, func(w gpu.ParkedWait) bool { return !strings.HasSuffix(w.Producer, engine.IsParked.String()) }) && len(p.Waits) > 0 {
			if behind++; behind > 4 {
				continue
			}
		}
		if len(lines) == 32 {
			return append(lines, "and more")
		}
		lines = append(lines, p.String())
	}
	return append(lines, fmt.Sprintf("%d behind parked operations only", behind))
}
