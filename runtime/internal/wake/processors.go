package wake

import (
	"runtime"
	"sync/atomic"
)

// Processors counts the processors of Go that waiting goroutines keep, without letting others run.
// Devices that were opened together share one.
type Processors struct{ kept atomic.Int32 }

// A processor may be kept for a moment if at most one in briefKeep is kept, and for longer if at
// most one in longKeep is.
const (
	briefKeep = 2
	longKeep  = 4
)

// keep keeps one more processor, until give, if at most one in of is kept then. It reports whether
// it did.
func (p *Processors) keep(of int) bool {
	if of*int(p.kept.Add(1)) <= runtime.GOMAXPROCS(0) {
		return true
	}
	p.give()
	return false
}

// may reports whether at most one in of is kept, for a caller that keeps one already.
func (p *Processors) may(of int) bool { return of*int(p.kept.Load()) <= runtime.GOMAXPROCS(0) }

func (p *Processors) give() { p.kept.Add(-1) }

// Kept returns how many processors are kept.
func (p *Processors) Kept() int { return int(p.kept.Load()) }
