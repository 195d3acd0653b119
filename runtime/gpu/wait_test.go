package gpu

import (
	"runtime"
	"testing"
	"time"

	"github.com/puregpu/puregpu/runtime/driver/simdriver"
)

// TestStandFor has a waiter ask in the asker's place for as long as it is alone, or was when it began.
func TestStandFor(t *testing.T) {
	sim := simdriver.New(simdriver.Config{})
	d, err := Open(sim, 0, Options{Spin: time.Microsecond, Poll: time.Hour})
	if err != nil {
		t.Fatal(err)
	}
	b, err1 := d.Alloc(DeviceMem, 64)
	s, err2 := NewSemaphore(0)
	if err1 != nil || err2 != nil {
		t.Fatal(err1, err2)
	}
	waiter := func(v uint64) chan error {
		done := make(chan error, 1)
		go func() { done <- s.Wait(within(t), v) }()
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
			if err := d.Queue(0).Fill(Order{Signal: []Point{{s, v + i}}}, b.All(), []byte{1}); err != nil {
				t.Fatal(err)
			}
		}
		first := waiter(v)
		until("the first one asks", d.stoodFor.Load)
		if d.wanted() {
			t.Error("the only waiter has parked")
		}
		second, third := waiter(v), waiter(v+1)
		until("the others have parked", d.wanted)
		if !d.stoodFor.Load() {
			t.Error("the first one has gone")
		}
		sim.ResumeDevice(0)
		for _, done := range []chan error{first, second, third} {
			if err := <-done; err != nil {
				t.Error(err)
			}
		}
		until("nobody asks any more", func() bool { return !d.wanted() })
		if d.stoodFor.Load() {
			t.Error("somebody still stands for the asker")
		}
	}
	// While somebody has parked nobody does.
	sim.StallDevice(0)
	if err := d.Queue(0).Fill(Order{Signal: []Point{{s, 9}}}, b.All(), []byte{1}); err != nil {
		t.Fatal(err)
	}
	d.stoodFor.Store(true) // as if there were one
	parked := waiter(9)
	until("it has parked", d.wanted)
	d.stoodFor.Store(false)
	if d.standFor() {
		t.Error("beside one who has parked")
	}
	sim.ResumeDevice(0)
	if err := <-parked; err != nil {
		t.Error(err)
	}
	if err := d.Close(); err != nil {
		t.Error(err)
	}
}
