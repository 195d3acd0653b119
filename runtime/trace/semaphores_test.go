package trace

import (
	"runtime"
	"testing"
	"time"

	"github.com/puregpu/puregpu/runtime/internal/sema"
)

// TestTracersForgotten checks that a semaphore forgets the tracers that the garbage collector has
// freed.
func TestTracersForgotten(t *testing.T) {
	var s sema.Semaphore
	meet := func() *Tracer {
		tracer, err := NewTracer(TracerOptions{Records: 2})
		if err != nil {
			t.Fatal(err)
		}
		tracer.number(&s)
		return tracer
	}
	used := []*Tracer{meet()}
	for range 10 {
		meet()
		used = append(used, meet())
	}
	for end := time.Now().Add(time.Minute); ; {
		runtime.GC()
		used = append(used, meet())
		found := 0
		for x := (*s.Notes.Load()).(*numbered); x != nil; x = x.next.Load() {
			found++
		}
		if found == len(used) {
			break
		}
		if time.Now().After(end) {
			t.Fatalf("%d are used, and %d remembered", len(used), found)
		}
	}
	for _, x := range used {
		if n := x.semaphores.Load(); x.number(&s) != 1 || n != 1 {
			t.Errorf("of %d semaphores this is %d", n, x.number(&s))
		}
	}
}
