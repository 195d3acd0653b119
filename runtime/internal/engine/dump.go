package engine

import (
	"context"
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/puregpu/puregpu/runtime/internal/wake"
)

// A mutex is a *sync.Mutex, or the type with which tools/locks replaces sync.Mutex.
type mutex interface {
	sync.Locker
	TryLock() bool
}

// soonLocked tries to lock a mutex for up to a second, and reports whether it succeeded.
func soonLocked(mu mutex) bool {
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	return wake.Lock(ctx, mu)
}

// Dump writes the state of the device and of its timelines to w, for tests and for reports about
// stuck programs. If a mutex stays locked for a second, Dump writes that the mutex is locked, and
// goes on.
func (d *Device) Dump(w io.Writer) {
	d.dump(w)
	for _, tl := range d.All() {
		tl.dump(w)
	}
}

func (d *Device) dump(w io.Writer) {
	fmt.Fprintf(w, "%s: %s, %d host calls, %d issue what was ready", d.Info.Name,
		[...]string{isOpen: "open", isClosing: "closing", isStopped: "stopped", isLeft: "left", isEnded: "ended"}[d.phase.Load()],
		d.calls.Load(), d.pending.running.Load())
	if f := d.lost.Load(); f != nil {
		fmt.Fprintf(w, ", lost: %v", f.Err)
	}
	if !soonLocked(&d.mu) {
		fmt.Fprint(w, ", its mu is held\n")
		return
	}
	defer d.mu.Unlock()
	ready := 0
	for s := d.pending.runnow; s != nil; s = s.next {
		ready++
	}
	fmt.Fprintf(w, ", %d parked, %d barriers behind work, %d ready\n", d.pending.nparked, d.pending.npublished.Load(), ready)
	shown := 0
	for s := range d.pending.parked.all() {
		if shown == 4 {
			break
		}
		if s.Mode == published {
			shown++
			fmt.Fprintf(w, "  %s on %v, behind %s\n", s.Op.Kind, s.Timeline.Queue, s.Deps.marks[0].describe())
		}
	}
}

func (tl *Timeline) dump(w io.Writer) {
	fmt.Fprintf(w, "  %s: issued %d, marked %d, passed %d, wanted %d, asked %d times in vain", tl.name(), tl.issued.Load(), tl.marked.Load(),
		tl.passed.Load(), tl.wanted.Load(), tl.emptyPolls.Load())
	if tl.Lane != nil {
		if _, err := tl.Lane.Halted(); err != nil {
			fmt.Fprintf(w, ", failed: %v", err)
		}
	}
	for i, mu := range []mutex{&tl.mu, &tl.queryMu, &tl.retireMu} {
		if soonLocked(mu) {
			mu.Unlock()
		} else {
			fmt.Fprintf(w, ", its %s is held", [...]string{"mu", "queryMu", "retireMu"}[i])
		}
	}
	if ranges := tl.failures.Load(); ranges != nil {
		r := (*ranges)[len(*ranges)-1]
		fmt.Fprintf(w, ", failed in %d ranges, last %d to %d: %v", len(*ranges), r.first, r.last, r.err)
	}
	if !soonLocked(&tl.ring.mu) {
		fmt.Fprint(w, ", its ring's mu is held\n")
		return
	}
	defer tl.ring.mu.Unlock()
	fmt.Fprintf(w, ", head %d\n", tl.ring.head)
	for seq, last := tl.ring.head, min(tl.ring.head+2, tl.issued.Load()); seq <= last; seq++ {
		tl.ring.at(seq).dump(w)
	}
}

// dump writes one line about a submission in flight. The caller holds ring.mu.
func (s *Submission) dump(w io.Writer) {
	fmt.Fprintf(w, "    %d: %s, recorded %v", s.Seq, s.Op.Kind, s.recorded)
	for _, m := range s.Follows.marks {
		fmt.Fprintf(w, ", after %s", m.describe())
	}
	for i, p := range s.Signals {
		if i == 4 {
			fmt.Fprint(w, ", and more")
			break
		}
		now, _ := p.Semaphore.Value()
		fmt.Fprintf(w, ", signals %d (now %d)", p.Value, now)
	}
	fmt.Fprintln(w)
}

// describe returns the mark as text, with the number that its timeline has passed.
func (m Mark) describe() string {
	if m.Timeline == nil {
		return "nothing"
	}
	return fmt.Sprintf("%d of %s (passed %d)", m.Seq, m.Timeline.name(), m.Timeline.passed.Load())
}

// name returns the name of the timeline's queue, for Dump, or a text that says that the queue is
// gone.
func (tl *Timeline) name() string {
	if tl.IsListed() {
		return tl.Queue.String()
	}
	return "a queue that is gone"
}
