package gpu

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/puregpu/puregpu/runtime/driver/simdriver"
	"github.com/puregpu/puregpu/runtime/internal/sema"
)

// Dump tells what is in flight and what is parked on devices, for a test whose wait has given up. Where a mutex is not let go of it says
// so, and goes on.
func Dump(devices ...*Device) string {
	var b strings.Builder
	for _, d := range devices {
		if d == nil || d.native.drv == nil {
			continue
		}
		d.dump(&b)
		for _, tl := range d.native.all() {
			tl.dump(&b)
		}
		if held := d.heldForParked(); held != "" {
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

// soonLocked locks a mutex unless that takes too long.
func soonLocked(mu mutex) bool {
	for start := time.Now(); !mu.TryLock(); time.Sleep(time.Millisecond) {
		if time.Since(start) > time.Second {
			return false
		}
	}
	return true
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

// heldForParked names a mutex that [Device.Parked] takes and that is not let go of. In a bubble of testing/synctest no time would pass
// while a goroutine waits for it.
func (d *Device) heldForParked() string {
	if !soonLocked(&d.native.mu) {
		return "Device.mu"
	}
	defer d.native.mu.Unlock()
	locks := map[mutex]string{}
	for _, l := range d.native.lanes {
		locks[&l.(*channelLane).mu] = "Channel.mu"
	}
	for _, tl := range d.native.all() {
		locks[&tl.ring.mu] = "ring.mu"
	}
	for s := d.native.pending.parked.after; s != &d.native.pending.parked; s = s.after {
		for _, p := range s.waits {
			locks[lockOf(p.Semaphore)] = "Semaphore.mu"
		}
	}
	for mu, name := range locks {
		if !soonLocked(mu) {
			return name
		}
		mu.Unlock()
	}
	return ""
}

// parkedLines are what is parked, the oldest first, without most of what waits for parked operations only.
func (d *Device) parkedLines() (lines []string) {
	behind := 0
	for _, p := range d.Parked() {
		if !slices.ContainsFunc(p.Waits, func(w ParkedWait) bool { return !strings.HasSuffix(w.Producer, isParked.String()) }) && len(p.Waits) > 0 {
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

func (d *Device) dump(b *strings.Builder) {
	fmt.Fprintf(b, "%s: %s, %d host calls, %d issue what was ready", d.native.info.Name,
		[...]string{isOpen: "open", isClosing: "closing", isStopped: "stopped", isLeft: "left", isEnded: "ended"}[d.native.phase.Load()],
		d.native.calls.Load(), d.native.pending.running.Load())
	if f := d.native.lost.Load(); f != nil {
		fmt.Fprintf(b, ", lost: %v", f.err)
	}
	if !soonLocked(&d.native.mu) {
		b.WriteString(", its mu is held\n")
		return
	}
	defer d.native.mu.Unlock()
	ready := 0
	for s := d.native.pending.runnow; s != nil; s = s.next {
		ready++
	}
	fmt.Fprintf(b, ", %d parked, %d barriers behind work, %d ready\n", d.native.pending.nparked, d.native.pending.npassing.Load(), ready)
	shown := 0
	for s := d.native.pending.parked.after; s != &d.native.pending.parked && shown < 4; s = s.after {
		if s.mode == passing {
			shown++
			fmt.Fprintf(b, "  %s on %v, behind %s\n", s.op.Kind, s.tl.queue, s.deps[0].describe())
		}
	}
}

func (tl *timeline) dump(b *strings.Builder) {
	fmt.Fprintf(b, "  %s: issued %d, marked %d, passed %d, wanted %d, asked %d times in vain", tl.name(), tl.issued.Load(), tl.marked.Load(),
		tl.passed.Load(), tl.wanted.Load(), tl.vain.Load())
	if tl.lane != nil {
		if _, err := tl.lane.halted(); err != nil {
			fmt.Fprintf(b, ", failed: %v", err)
		}
	}
	for i, mu := range []mutex{&tl.mu, &tl.askMu, &tl.retireMu} {
		if soonLocked(mu) {
			mu.Unlock()
		} else {
			fmt.Fprintf(b, ", its %s is held", [...]string{"mu", "askMu", "retireMu"}[i])
		}
	}
	if ranges := tl.failures.Load(); ranges != nil {
		r := (*ranges)[len(*ranges)-1]
		fmt.Fprintf(b, ", failed in %d ranges, last %d to %d: %v", len(*ranges), r.from, r.to, r.err)
	}
	if !soonLocked(&tl.ring.mu) {
		b.WriteString(", its ring's mu is held\n")
		return
	}
	defer tl.ring.mu.Unlock()
	fmt.Fprintf(b, ", head %d", tl.ring.head)
	b.WriteString("\n")
	for seq, last := tl.ring.head, min(tl.ring.head+2, tl.issued.Load()); seq <= last; seq++ {
		tl.ring.at(seq).dump(b)
	}
}

// dump tells of work that is in a ring, whose mu the caller holds.
func (s *submission) dump(b *strings.Builder) {
	fmt.Fprintf(b, "    %d: %s, recorded %v", s.seq, s.op.Kind, s.recorded)
	for _, m := range s.follows {
		fmt.Fprintf(b, ", after %s", m.describe())
	}
	for i, p := range s.signals {
		if i == 4 {
			b.WriteString(", and more")
			break
		}
		now, _ := p.Semaphore.Value()
		fmt.Fprintf(b, ", signals %d (now %d)", p.Value, now)
	}
	b.WriteString("\n")
}

// describe names a mark, and says how far its timeline is.
func (m mark) describe() string {
	if m.tl == nil {
		return "nothing"
	}
	return fmt.Sprintf("%d of %s of %s (passed %d)", m.seq, m.tl.name(), m.tl.dev.info.Name, m.tl.passed.Load())
}

// name names a timeline by its queue.
func (tl *timeline) name() string {
	if slices.Contains(tl.dev.all(), tl) {
		return tl.queue.(*Queue).mention()
	}
	return "a queue that is gone"
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
		wants("stalled", "Simulated GPU 0", "queue 0: issued 1, marked 1, passed 0", "1: fill, recorded true", "after 1 of queue 0 of Simulated GPU 0 (passed 0)",
			"signals 2 (now 0)", "1 parked", "parked: fill on queue 0 of Simulated GPU 1", "to reach 7")
		tl := devs[1].Queue(0).tl
		for name, mu := range map[string]mutex{"its mu": &tl.mu, "its retireMu": &tl.retireMu, "its ring's mu": &tl.ring.mu, "Device.mu": &devs[1].native.mu, "Semaphore.mu": lockOf(&nobody.sema)} {
			mu.Lock()
			wants("with a mutex held", name+" is held")
			mu.Unlock()
		}
		check(sim.ResumeDevice(0))
	})
}
