package simdriver

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/puregpu/puregpu/runtime/driver"
)

// A making is a call that ranks of a communicator make together: SplitComm, ShrinkComm, NewWindow,
// SuspendComm or ResumeComm. The ranks that take part make these calls in the same order. So a
// rank's call belongs to the oldest making that still lacks a call of this rank; for the exception
// see the method join.
type making struct {
	of        *communicator
	code      code
	exclude   []int // ranks that do not take part, ascending
	aborts    bool  // ShrinkComm with abort: the first caller has aborted its rank
	size      uint64
	symmetric bool

	callers []*caller // by rank; nil until the rank calls
	missing int
	bad     error
	done    chan struct{} // closed when all ranks have called, or the call has failed
}

// A caller is one rank's call in a making.
type caller struct {
	rank       *rank
	child      *rank // the rank that the call makes; nil if there is none
	color, key int
}

// takesPart reports whether the rank of that number is to make the call.
func (g *making) takesPart(number int) bool { return !slices.Contains(g.exclude, number) }

// trouble returns why the making cannot complete, or nil.
func (g *making) trouble() error {
	if g.bad != nil {
		return g.bad
	}
	if g.of.bad != nil && !g.aborts {
		return g.of.bad // the other ranks cannot call any more
	}
	for i, c := range g.callers {
		if r := g.of.ranks[i]; g.takesPart(i) && (c == nil || !g.aborts) {
			if err := r.absent(); err != nil {
				return err
			}
			if c == nil && r.orderly {
				return fmt.Errorf("%w: rank %d was destroyed before it called %v", ErrRankGone, i, g.code)
			}
		}
	}
	return nil
}

// join adds r to a making. g and c describe r's call. join returns the making that all ranks share.
func (r *rank) join(g *making, c *caller) (*making, error) {
	m := r.of
	c.rank = r
	at, found := len(m.makings), false
	for i, o := range m.makings {
		if o.callers[r.number] != nil || !o.takesPart(r.number) {
			continue
		}
		if o.code == g.code && o.size == g.size && o.symmetric == g.symmetric && slices.Equal(o.exclude, g.exclude) {
			at, found = i, true
			break
		}
		// If only ranks that take no part in g have called o, o is a later making.
		other := slices.IndexFunc(o.callers, func(c *caller) bool { return c != nil && g.takesPart(c.rank.number) })
		if other >= 0 {
			m.fail("rank %d calls %v, and rank %d %v", r.number, g, other, o)
			o.end(m.bad)
			return nil, m.bad
		}
		at = min(at, i)
	}
	if !found {
		g.of, g.callers, g.missing, g.done = m, make([]*caller, len(m.ranks)), len(m.ranks)-len(g.exclude), make(chan struct{})
		m.makings = slices.Insert(m.makings, at, g)
	}
	g = m.makings[at]
	if g.bad != nil {
		return nil, g.bad
	}
	g.callers[r.number] = c
	if c.child != nil {
		c.child.from = g
	}
	if g.missing--; g.missing == 0 {
		m.makings = slices.Delete(m.makings, at, at+1)
		g.end(nil)
	}
	return g, nil
}

// meet joins a making and waits until all ranks have joined. The caller holds comms.mu, which is
// unlocked while meet waits.
func (r *rank) meet(c code, g *making) (*making, error) {
	g, err := r.join(g, new(caller))
	if err != nil {
		return nil, failf(c, "%v: %w", r, err)
	}
	cs := &r.dev.d.comms
	r.awaits = g
	cs.mu.Unlock()
	err = r.await(c, g.done)
	cs.mu.Lock()
	r.awaits = nil
	if err == nil && g.bad != nil {
		err = failf(c, "%v: %w", r, g.bad)
	}
	if err == nil && r.out != nil {
		err = failf(c, "%v: %w", r, r.out)
	}
	return g, err
}

// String describes the making.
func (g *making) String() string {
	switch g.code {
	case codeNewWindow:
		s := fmt.Sprintf("%v of %d bytes", g.code, g.size)
		if g.symmetric {
			s += ", symmetric"
		}
		return s
	case codeShrinkComm:
		return fmt.Sprintf("%v without %v", g.code, g.exclude)
	}
	return g.code.String()
}

// end completes the making, or fails it with the error bad.
func (g *making) end(bad error) {
	if g.bad != nil {
		return
	}
	g.bad = bad
	close(g.done)
	if bad != nil {
		return
	}
	var children []*caller
	for _, c := range g.callers {
		if c != nil && c.child != nil {
			children = append(children, c)
		}
	}
	slices.SortStableFunc(children, func(a, b *caller) int { return cmp.Or(cmp.Compare(a.color, b.color), cmp.Compare(a.key, b.key)) })
	for len(children) > 0 {
		n := 1
		for n < len(children) && children[n].color == children[0].color {
			n++
		}
		m := &communicator{came: n, live: n}
		m.open(make([]*rank, n))
		for i, c := range children[:n] {
			c.child.of, c.child.number = m, i
			m.ranks[i] = c.child
			if c.child.leaving {
				m.leaving++
			}
		}
		m.ready(children[0].child.dev.d, g.code)
		children = children[n:]
	}
}

// divide begins a call that needs a rank without operations in flight.
func (v *device) divide(c code, h driver.Comm) (*rank, error) {
	r, err := v.rank(c, h)
	if err != nil {
		return nil, err
	}
	if err := r.usable(c); err != nil {
		return nil, err
	}
	if r.groups > 0 {
		return nil, failf(c, "%v: %d groups of operations are in flight: %w; wait for them first", r, r.groups, ErrBusy)
	}
	return r, nil
}

// SplitComm begins to divide a communicator. The new communicators are ready when all ranks have
// called SplitComm.
func (v *device) SplitComm(h driver.Comm, color, key int) (driver.Comm, error) {
	if err := v.communicate(codeSplitComm, true); err != nil {
		return 0, err
	}
	v.d.comms.mu.Lock()
	defer v.d.comms.mu.Unlock()
	r, err := v.divide(codeSplitComm, h)
	if err != nil {
		return 0, err
	}
	if r.plain {
		return 0, failf(codeSplitComm, "%v: %w", r, errPlain)
	}
	if color < 0 && color != driver.NoColor {
		return 0, failf(codeSplitComm, "%v: color %d: %w: a color is not negative, or NoColor", r, color, ErrInvalidValue)
	}
	c := &caller{color: color, key: key}
	if color != driver.NoColor {
		if c.child = v.newRank(r.name); c.child == nil {
			return 0, fail(codeSplitComm, errTooMany)
		}
	}
	return r.child(&making{code: codeSplitComm}, c)
}

// errPlain is the error of making a communicator from one with CommDesc.Plain.
var errPlain = fmt.Errorf("it joined with CommDesc.Plain, like a communicator with ranks of other programs: %w", driver.ErrUnsupported)

// ShrinkComm begins to make a communicator of all ranks except some. The remaining ranks keep their
// order.
func (v *device) ShrinkComm(h driver.Comm, exclude []int, abort bool) (driver.Comm, error) {
	if err := v.communicate(codeShrinkComm, true); err != nil {
		return 0, err
	}
	v.d.comms.mu.Lock()
	defer v.d.comms.mu.Unlock()
	r, err := v.rank(codeShrinkComm, h)
	if err != nil {
		return 0, err
	}
	if !abort {
		r, err = v.divide(codeShrinkComm, h)
	} else if r.out != nil || !r.made {
		err = r.usable(codeShrinkComm)
	}
	if err != nil {
		return 0, err
	}
	if r.plain {
		return 0, failf(codeShrinkComm, "%v: %w", r, errPlain)
	}
	g := &making{code: codeShrinkComm, exclude: slices.Clone(exclude), aborts: abort}
	slices.Sort(g.exclude)
	for i, x := range g.exclude {
		switch {
		case x < 0 || x >= len(r.of.ranks):
			err = fmt.Errorf("excluded rank %d: %w: there are %d ranks", x, ErrInvalidValue, len(r.of.ranks))
		case x == r.number:
			err = fmt.Errorf("%w: it excludes itself; an excluded rank must not call", ErrInvalidValue)
		case i > 0 && g.exclude[i-1] == x:
			err = fmt.Errorf("rank %d is excluded twice: %w", x, ErrInvalidValue)
		}
	}
	if len(g.exclude) == 0 {
		err = fmt.Errorf("no rank is excluded: %w", ErrInvalidValue)
	}
	if err != nil {
		return 0, failf(codeShrinkComm, "%v: %w", r, err)
	}
	child := v.newRank(r.name)
	if child == nil {
		return 0, fail(codeShrinkComm, errTooMany)
	}
	if abort {
		r.leave(ErrAborted)
	}
	h, err = r.child(g, &caller{child: child})
	if abort && err == nil {
		r.shrunk = child
	}
	return h, err
}

// child joins a making of communicators. It returns the new rank that r gets, or 0.
func (r *rank) child(g *making, c *caller) (driver.Comm, error) {
	code := g.code
	if _, err := r.join(g, c); err != nil {
		if c.child != nil {
			r.dev.d.comms.ranks.remove(uintptr(c.child.id))
		}
		return 0, failf(code, "%v: %w", r, err)
	}
	if c.child == nil {
		return 0, nil
	}
	return c.child.id, nil
}
