package explore

import (
	"fmt"
	"strings"
)

// A strategy makes the decisions of a run.
type strategy interface {
	started(r *run, g *goroutine)
	// next returns a goroutine of r.ready. actor is the current goroutine. self is the same
	// goroutine if it can continue, and nil if it waits or has ended. The parameter usual is the
	// default choice.
	next(r *run, actor, self, usual *goroutine) *goroutine
	pick(r *run, g *goroutine, n int) int
}

// A Deed is one decision other than the default: the At-th decision of goroutine Actor let Next run
// or picked Pick. Actor and Next are paths of goroutines, so a deed keeps its meaning when other
// deeds are removed.
type Deed struct {
	Actor string `json:"actor"`
	At    int    `json:"at"`
	Next  string `json:"next,omitempty"`
	Pick  int    `json:"pick,omitempty"`
}

// strategyOf returns the strategy with a name; for "" and mix the seed selects one. The argument
// length is the number of steps of the default schedule.
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
	return nil, fmt.Errorf("strategy %q: use mix, usual, walk, pct, pct:DEPTH or delay", name)
}

type usualStrategy struct{}

func (usualStrategy) started(*run, *goroutine) {}

//go:norace
func (usualStrategy) next(_ *run, _, _, usual *goroutine) *goroutine { return usual }

//go:norace
func (usualStrategy) pick(*run, *goroutine, int) int { return 0 }

// A walk picks a random goroutine at each decision with probability 1/odds, and always if the
// running goroutine waits, ends or yields. Otherwise the running goroutine continues.
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

// A pct runs the runnable goroutine of highest priority. Priorities are random. At some random
// decisions the running goroutine gets the lowest priority. A fault that needs d switches at
// certain places is then found with a known probability (Burckhardt and others, 2010). A goroutine
// that yields, sleeps or runs for very long also gets the lowest priority.
type pct struct {
	rnd     random
	changes []int // decisions at which the running goroutine gets the lowest priority
	n       int   // number of decisions so far
	low     int   // the next lowest priority
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

// A delay sometimes holds a goroutine back for 16 to 1024 steps, if another one can run.
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

// A replay repeats a list of deeds.
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

// String describes a deed.
func (d Deed) String() string {
	if d.Next != "" {
		return fmt.Sprintf("decision %d of goroutine %s: goroutine %s goes on", d.At, d.Actor, d.Next)
	}
	return fmt.Sprintf("decision %d of goroutine %s: choice %d", d.At, d.Actor, d.Pick)
}
