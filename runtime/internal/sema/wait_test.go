package sema_test

import (
	"runtime"
	"testing"
	"time"

	"github.com/puregpu/puregpu/runtime/driver/simdriver"
	"github.com/puregpu/puregpu/runtime/gpu"
	"github.com/puregpu/puregpu/runtime/internal/testkit"
)

// TestStandFor checks that a waiter polls in place of the device's poller if no goroutine has
// parked when the waiter begins. The waiter must go on polling when other waiters park later.
func TestStandFor(t *testing.T) {
	sim := simdriver.New(simdriver.Config{})
	d, err := gpu.Open(sim, 0, gpu.Options{Spin: time.Microsecond, Poll: time.Hour})
	if err != nil {
		t.Fatal(err)
	}
	b, err1 := d.Alloc(gpu.DeviceMem, 64)
	s, err2 := gpu.NewSemaphore(0)
	if err1 != nil || err2 != nil {
		t.Fatal(err1, err2)
	}
	waiter := func(v uint64) chan error {
		done := make(chan error, 1)
		go func() { done <- s.Wait(minute(t), v) }()
		return done
	}
	until := func(what string, so func() bool) {
		t.Helper()
		for end := time.Now().Add(time.Minute); !so(); runtime.Gosched() {
			if time.Now().After(end) {
				t.Fatalf("after a minute it is not so that %s", what)
			}
		}
	}
	for v := uint64(1); v < 9; v += 2 {
		sim.StallDevice(0)
		for i := range uint64(2) {
			if err := d.Queue(0).Submit(gpu.Order{Signal: pts(s, v+i)}, gpu.Fill(b.All(), []byte{1})); err != nil {
				t.Fatal(err)
			}
		}
		first := waiter(v)
		until("the first waiter polls", testkit.Native(d).Waits.Stood)
		if testkit.Native(d).Wanted() {
			t.Error("the only waiter has parked")
		}
		second, third := waiter(v), waiter(v+1)
		until("the other waiters have parked", testkit.Native(d).Wanted)
		if !testkit.Native(d).Waits.Stood() {
			t.Error("the first waiter has stopped polling")
		}
		sim.ResumeDevice(0)
		for _, done := range []chan error{first, second, third} {
			if err := <-done; err != nil {
				t.Error(err)
			}
		}
		until("nobody requests polling any more", func() bool { return !testkit.Native(d).Wanted() })
		if testkit.Native(d).Waits.Stood() {
			t.Error("a waiter still polls in place of the poller")
		}
	}
	if err := d.Close(); err != nil {
		t.Error(err)
	}
}

// TestStandForAll waits for several devices at once. The waiter must poll in place of the poller of
// the first device, then of the second, and so on.
func TestStandForAll(t *testing.T) {
	sim := simdriver.New(simdriver.Config{Devices: 3})
	var points []gpu.Point
	var devs []*gpu.Device
	for i := range 3 {
		d, err := gpu.Open(sim, i, gpu.Options{Spin: time.Microsecond, Poll: time.Hour})
		if err != nil {
			t.Fatal(err)
		}
		b, err := d.Alloc(gpu.DeviceMem, 64)
		if err != nil {
			t.Fatal(err)
		}
		p := gpu.Point{Semaphore: newSemaphore(t, 0), Value: 1}
		sim.StallDevice(i)
		if err := d.Queue(0).Submit(gpu.Order{Signal: []gpu.Point{p}}, gpu.Fill(b.All(), []byte{1})); err != nil {
			t.Fatal(err)
		}
		devs, points = append(devs, d), append(points, p)
	}
	done := make(chan error, 1)
	go func() { done <- gpu.WaitAll(minute(t), points...) }()
	for i, d := range devs {
		for end := time.Now().Add(time.Minute); !testkit.Native(d).Waits.Stood(); runtime.Gosched() {
			if testkit.Native(d).Wanted() || time.Now().After(end) {
				t.Fatalf("the waiter does not poll device %d; it has parked: %t", i, testkit.Native(d).Wanted())
			}
		}
		for _, other := range devs[:i] {
			// The waiter may still poll this earlier device for a moment.
			for end := time.Now().Add(time.Minute); testkit.Native(other).Waits.Stood(); runtime.Gosched() {
				if time.Now().After(end) {
					t.Fatalf("the waiter polls for device %d, but also still for another device", i)
				}
			}
		}
		sim.ResumeDevice(i)
	}
	if err := <-done; err != nil {
		t.Error(err)
	}
	for _, d := range devs {
		if testkit.Native(d).Waits.Stood() {
			t.Error("a waiter still polls in place of a poller")
		}
		if err := d.Close(); err != nil {
			t.Error(err)
		}
	}
}
