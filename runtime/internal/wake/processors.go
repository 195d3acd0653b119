package wake

import (
	"runtime"
	"sync/atomic"
)

// Processors counts Go's processors (Ps) that waiting goroutines keep busy without yielding. It
// limits how many they keep, so that other goroutines can run. Devices that were opened together
// share one Processors.
type Processors struct{ kept atomic.Int32 }

// A goroutine may keep a processor for a moment if then at most one in briefKeep is kept, and for
// longer if at most one in longKeep is.
const (
	briefKeep = 2
	longKeep  = 4
)

// keep counts one more kept processor, until give, if then at most one processor in of is kept. It
// reports whether it did.
func (p *Processors) keep(of int) bool {
	if of*int(p.kept.Add(1)) <= runtime.GOMAXPROCS(0) {
		return true
	}
	p.give()
	return false
}

// may reports whether at most one processor in of is kept. The caller keeps one already.
func (p *Processors) may(of int) bool { return of*int(p.kept.Load()) <= runtime.GOMAXPROCS(0) }

func (p *Processors) give() { p.kept.Add(-1) }

// Kept returns how many processors are kept.
func (p *Processors) Kept() int { return int(p.kept.Load()) }
