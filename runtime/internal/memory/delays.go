package memory

import (
	"context"
	"slices"
	"sync"
)

// A delay is the time in which a parked Free, or a trim of growing memory, waits until nothing uses
// the memory.
type delay struct {
	isReady func() bool   // reports whether nothing uses the memory any more; then the delay ends soon
	over    chan struct{} // closed when the delay has ended
}

// delays are the delays on a device that have not ended.
type delays struct {
	mu  sync.Mutex // protects the field all; no other lock is taken while it is held
	all []*delay
}

func (l *delays) begin(isReady func() bool) *delay {
	w := &delay{isReady, make(chan struct{})}
	l.mu.Lock()
	l.all = append(l.all, w)
	l.mu.Unlock()
	return w
}

func (l *delays) end(w *delay) {
	l.mu.Lock()
	l.all = slices.DeleteFunc(l.all, func(o *delay) bool { return o == w })
	l.mu.Unlock()
	close(w.over)
}

// awaitReady calls isReady of each delay once, and waits for the end of the delays that are ready.
// It returns early if the context ends.
func (l *delays) awaitReady(ctx context.Context) {
	l.mu.Lock()
	all := slices.Clone(l.all)
	l.mu.Unlock()
	for _, w := range slices.DeleteFunc(all, func(w *delay) bool { return !w.isReady() }) {
		select {
		case <-w.over:
		case <-ctx.Done():
			return
		}
	}
}
