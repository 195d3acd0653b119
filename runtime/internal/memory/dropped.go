package memory

import (
	"runtime"
	"sync/atomic"
	"weak"

	"github.com/puregpu/puregpu/runtime/internal/leaks"
)

// If the program wants reports of dropped buffers, the device's list has a stand-in for each
// buffer, so that the list does not keep the buffer reachable. The stand-in is another Buffer with
// the same memory. No work uses it. If the garbage collector finds that nothing refers to a buffer
// any more, the buffer is not closed, and its stand-in is still on the list, then the program has
// dropped the buffer. The memory then stays allocated until Close of the device frees the stand-in.
//
// The functions that the collector calls get weak pointers. Strong pointers would keep a device
// reachable after the program has dropped the device and its buffers.

// watched has the data with which a device reports a buffer as dropped.
type watched struct {
	made    *leaks.Site // where the buffer was made
	real    weak.Pointer[Buffer]
	standIn atomic.Pointer[Buffer] // nil until the buffer is listed; set under books.mu
}

// watch makes the device report the new buffer if the program drops it without closing it.
func (b *Buffer) watch() {
	w := &watched{made: leaks.Here(), real: weak.Make(b)}
	b.setRare(&rare{watched: w})
	runtime.AddCleanup(b, func(p weak.Pointer[watched]) {
		if w := p.Value(); w != nil {
			w.report()
		}
	}, weak.Make(w))
}

// watchedBy returns the watched of a buffer, or nil if the device does not report dropped buffers.
// For the buffer's stand-in it returns the same watched.
func (b *Buffer) watchedBy() *watched {
	if b.rare == nil {
		return nil
	}
	return b.rare.watched
}

// standFor makes the stand-in of a buffer. The caller holds books.mu.
func (w *watched) standFor(b *Buffer) *Buffer {
	s := &Buffer{dev: b.dev, mem: b.mem, from: b.from, pool: b.pool, home: b.home, rare: b.rare}
	s.closed.Store(b.closed.Load())
	w.standIn.Store(s)
	return s
}

// realOr returns the buffer, or its stand-in s if the buffer has been dropped.
func (w *watched) realOr(s *Buffer) *Buffer {
	if b := w.real.Value(); b != nil {
		return b
	}
	return s
}

// close notes that the program has closed the buffer.
func (w *watched) close(b *Buffer) {
	b.dev.buffers.mu.Lock()
	defer b.dev.buffers.mu.Unlock()
	if s := w.standIn.Load(); s != nil {
		s.closed.Store(true)
	}
}

// report is called when nothing refers to the buffer any more. It reports the buffer if the buffer
// is not closed and its stand-in is still on the device's list. When the device is closed or lost,
// report does nothing: Close of the device has freed the memory, or will free it.
func (w *watched) report() {
	s := w.standIn.Load()
	if s == nil || s.closed.Load() || s.dev.Failed() != nil {
		return
	}
	s.dev.buffers.mu.Lock()
	has := s.dev.buffers.has(s)
	s.dev.buffers.mu.Unlock()
	if has {
		s.dev.Leaks.Dropped("Buffer", w.made, "bytes", s.mem.Size)
	}
}

// Watch makes the device report the new pool if the program drops its PoolHandle without closing
// the pool. If the device does not report dropped pools, Watch does nothing. Watch stores the stack
// of the calling goroutine, so call Watch where the pool is made.
func (h *PoolHandle) Watch() {
	if h.pool.dev.Leaks == nil {
		return
	}
	made := leaks.Here()
	runtime.AddCleanup(h, func(w weak.Pointer[Pool]) {
		if p := w.Value(); p != nil && !p.closed.Load() && p.dev.Failed() == nil {
			p.dev.Leaks.Dropped("Pool", made)
		}
	}, weak.Make(h.pool))
}
