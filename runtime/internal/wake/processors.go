package wake

import (
	"runtime"
	"sync/atomic"
)

// Processors counts how many of Go's processors are kept by goroutines that wait and do not let others run. Devices that are opened
// together share one.
type Processors struct{ kept atomic.Int32 }

// A processor may be kept for a moment if that is one of so many, and for longer if it is one of more.
const (
	briefKeep = 2
	longKeep  = 4
)

// keep reports whether one more may be kept, until give: of so many one.
func (p *Processors) keep(of int) bool {
	if of*int(p.kept.Add(1)) <= runtime.GOMAXPROCS(0) {
		return true
	}
	p.give()
	return false
}

// may is keep for who keeps one already.
func (p *Processors) may(of int) bool { return of*int(p.kept.Load()) <= runtime.GOMAXPROCS(0) }

func (p *Processors) give() { p.kept.Add(-1) }

// Kept returns how many are kept.
func (p *Processors) Kept() int { return int(p.kept.Load()) }
