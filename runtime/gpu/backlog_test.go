package gpu

import (
	"testing"
	"testing/synctest"

	"github.com/puregpu/puregpu/runtime/driver/simdriver"
	"github.com/puregpu/puregpu/runtime/gpu/internal/work"
)

// TestBacklogOfItself puts a submission into a long backlog on the goroutine that is issuing the backlog. The call must return.
func TestBacklogOfItself(t *testing.T) {
	synctest.Test(t, func(t *testing.T) { // who waits for itself is found out at once
		d, err := Open(simdriver.New(simdriver.Config{}), 0, Options{})
		if err != nil {
			t.Fatal(err)
		}
		s := newSemaphore(t, 0)
		turn := make(chan struct{})
		go func() {
			defer close(turn)
			x := d.Queue(0).get(work.Nothing)
			x.signals = append(x.signals, Point{s, 1})
			d.backlog.turn.Lock()
			d.backlog.n.Add(farAhead)
			d.starve(x)
			d.backlog.n.Add(-farAhead)
			d.backlog.turn.Unlock()
		}()
		<-turn
		d.feed()
		if err := s.Wait(t.Context(), 1); err != nil {
			t.Error(err)
		}
		if err := d.Close(); err != nil {
			t.Error(err)
		}
	})
}
