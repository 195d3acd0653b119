package explore

import (
	"fmt"
	"strings"
)

// A strategy decides, where more than one goroutine can run, which one does.
type strategy interface {
	started(r *run, g *goroutine)
	// next returns one of r.ready. actor decides: the current goroutine, which is self if it can go on; self is nil if it waits or has ended.
	// usual is who would be next without a strategy.
	next(r *run, actor, self, usual *goroutine) *goroutine
	pick(r *run, g *goroutine, n int) int
}

// A Deed is a decision that was another one than usual: the At-th of a goroutine was that Next runs, or the choice of Pick among some. Goroutines
// are named by who started them, so that a deed means the same when others are left out.
type Deed struct {
	Actor string `json:"actor"`
	At    int    `json:"at"`
	Next  string `json:"next,omitempty"`
	Pick  int    `json:"pick,omitempty"`
}

// strategyOf returns the strategy that a seed stands for, or that has a name. length is how many steps the usual schedule has.
//
//go:norace
func strategyOf(name string, seed uint64, length int) (strategy, error) {
	rnd := random{seed}
	if name == "" || name == "mix" {
		names := [...]string{"walk", "walk", "pct", "pct", "delay"}
		name = names[rnd.below(len(names))]
	}
	switch {
	case name == "usual":
		return usualStrategy{}, nil
	case name == "walk":
		odds := [...]int{2, 4, 8, 20, 60}
		return &walk{rnd: rnd, odds: odds[rnd.below(len(odds))]}, nil
	case name == "pct" || strings.HasPrefix(name, "pct:"):
		depth := 1 + rnd.below(4)
		if n, err := fmt.Sscanf(name, "pct:%d", &depth); name != "pct" && (n != 1 || err != nil || depth < 1) {
			return nil, fmt.Errorf("strategy %q: no depth", name)
		}
		p := &pct{rnd: rnd, low: -1}
		for range depth - 1 {
			p.changes = append(p.changes, p.rnd.below(max(length, 1)))
		}
		return p, nil
	case name == "delay":
		return &delay{rnd: rnd, odds: 4 << rnd.below(8)}, nil
	}
	return nil, fmt.Errorf("strategy %q: there are mix, usual, walk, pct, pct:DEPTH and delay", name)
}

type usualStrategy struct{}

func (usualStrategy) started(*run, *goroutine) {}

//go:norace
func (usualStrategy) next(_ *run, _, _, usual *goroutine) *goroutine { return usual }

//go:norace
func (usualStrategy) pick(*run, *goroutine, int) int { return 0 }

// A walk goes on with anybody, once in so many steps.
type walk struct {
	rnd  random
	odds int
}

func (*walk) started(*run, *goroutine) {}

//go:norace
func (w *walk) next(r *run, _, self, usual *goroutine) *goroutine {
	if self != nil && usual == self && w.rnd.below(w.odds) != 0 {
		return self
	}
	return r.ready[w.rnd.below(len(r.ready))]
}

//go:norace
func (w *walk) pick(_ *run, _ *goroutine, n int) int { return w.rnd.below(n) }

// A pct always goes on with who has the highest priority of those that can. Priorities are random, and at some random steps that of who runs becomes
// the lowest: so a fault that takes d switches at certain places is found with a probability that is known (Burckhardt and others, 2010). Who lets others
// run, or runs for very long, gets the lowest priority as well.
type pct struct {
	rnd     random
	changes []int // decisions
	n       int
	low     int
}

//go:norace
func (p *pct) started(_ *run, g *goroutine) { g.priority = 1 + p.rnd.below(1<<30) }

//go:norace
func (p *pct) next(r *run, _, self, usual *goroutine) *goroutine {
	p.n++
	if self != nil {
		change := usual != self
		for _, c := range p.changes {
			change = change || c == p.n
		}
		if change {
			self.priority = p.low
			p.low--
		}
	}
	best := r.ready[0]
	for _, g := range r.ready {
		if g.priority > best.priority {
			best = g
		}
	}
	return best
}

//go:norace
func (p *pct) pick(_ *run, _ *goroutine, n int) int { return p.rnd.below(n) }

// A delay keeps a goroutine from running for some hundreds of steps, now and then, if there is anybody else.
type delay struct {
	rnd  random
	odds int
}

func (*delay) started(*run, *goroutine) {}

//go:norace
func (d *delay) next(r *run, _, self, usual *goroutine) *goroutine {
	if self != nil && d.rnd.below(d.odds) == 0 {
		self.held = r.steps + 16<<d.rnd.below(7)
	}
	if usual.held <= r.steps && (self == usual || d.rnd.below(2) == 0) {
		return usual
	}
	first := d.rnd.below(len(r.ready))
	for i := range r.ready {
		if g := r.ready[(i+first)%len(r.ready)]; g.held <= r.steps {
			return g
		}
	}
	return usual
}

//go:norace
func (d *delay) pick(_ *run, _ *goroutine, n int) int { return d.rnd.below(n) }

// A replay does what is listed.
type replay struct {
	deeds []Deed
}

func (*replay) started(*run, *goroutine) {}

//go:norace
func (p *replay) find(path string, at int) *Deed {
	for i := range p.deeds {
		if d := &p.deeds[i]; d.At == at && d.Actor == path {
			return d
		}
	}
	return nil
}

//go:norace
func (p *replay) next(r *run, actor, _, usual *goroutine) *goroutine {
	if d := p.find(actor.path, actor.took); d != nil {
		for _, g := range r.ready {
			if g.path == d.Next {
				return g
			}
		}
	}
	return usual
}

//go:norace
func (p *replay) pick(_ *run, g *goroutine, n int) int {
	if d := p.find(g.path, g.took); d != nil && d.Pick < n {
		return d.Pick
	}
	return 0
}

// String says what a deed is.
func (d Deed) String() string {
	if d.Next != "" {
		return fmt.Sprintf("decision %d of goroutine %s: goroutine %s goes on", d.At, d.Actor, d.Next)
	}
	return fmt.Sprintf("decision %d of goroutine %s: choice %d", d.At, d.Actor, d.Pick)
}
