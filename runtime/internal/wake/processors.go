package wake

import (
	"runtime"
	"sync/atomic"
)

// Processors counts the Ps of Go's scheduler that waiting goroutines keep: the goroutine polls
// without yielding, or its thread sleeps briefly in a system call, so that no other goroutine can
// use the P. Processors limits that number. Devices that were opened together share one Processors.
type Processors struct{ kept atomic.Int32 }

// Limits on kept processors. A goroutine may keep one for a moment if at most 1/briefKeep of all
// processors are kept then. It may keep one for longer if at most 1/longKeep are kept.
const (
	briefKeep = 2
	longKeep  = 4
)

// keep counts one more kept processor and returns true if at most 1/n of all processors are kept
// then. The caller must call give later. If more would be kept, keep counts none and returns false.
func (p *Processors) keep(n int) bool {
	if n*int(p.kept.Add(1)) <= runtime.GOMAXPROCS(0) {
		return true
	}
	p.give()
	return false
}

// may reports whether at most 1/n of all processors are kept, including the caller's.
func (p *Processors) may(n int) bool { return n*int(p.kept.Load()) <= runtime.GOMAXPROCS(0) }

func (p *Processors) give() { p.kept.Add(-1) }

// Kept returns the number of kept processors.
func (p *Processors) Kept() int { return int(p.kept.Load()) }
