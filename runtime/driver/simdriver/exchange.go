package simdriver

import (
	"errors"
	"fmt"

	"github.com/puregpu/puregpu/runtime/driver"
)

// An exchange collects the parts of several ranks that together are one operation: one part of each
// rank for a collective, or a send and its receive. The goroutine that adds the last part executes
// the exchange.
type exchange struct {
	line  *line
	at    uint64
	parts []*part // by rank; for a send: sender, receiver
	come  int
	done  bool

	dsts, srcs [][]byte // memory of the parts; set during execution
	scales     [][8]byte
	next       *exchange // next exchange to execute, or in the list line.spare the next spare exchange
}

// A line holds the exchanges between the same ranks, in order.
type line struct {
	of    *communicator
	name  [2]int
	first uint64
	open  []*exchange // exchanges with the numbers line.first and up; the oldest of them is not over
	spare *exchange
}

// line returns the line with a name. It makes the line if there is none.
func (m *communicator) line(name [2]int) *line {
	l := m.lines[name]
	if l == nil {
		l = &line{of: m, name: name}
		m.lines[name] = l
	}
	return l
}

// exchange returns the exchange with number at, which must not be over.
func (l *line) exchange(at uint64) *exchange {
	for at >= l.first+uint64(len(l.open)) {
		e := l.spare
		if e != nil {
			l.spare, e.next = e.next, nil
		} else {
			n := 2
			if l.name[0] == anyone {
				n = len(l.of.ranks)
			}
			e = &exchange{line: l, parts: make([]*part, n)}
		}
		e.at = l.first + uint64(len(l.open))
		l.open = append(l.open, e)
	}
	return l.open[at-l.first]
}

// finish records that an exchange has executed. It removes finished exchanges from the front of the
// line, and keeps them for later use.
func (l *line) finish(e *exchange) {
	e.done = true
	n := 0
	for ; n < len(l.open) && l.open[n].done; n++ {
		e := l.open[n]
		clear(e.parts)
		e.come, e.done = 0, false
		e.next, l.spare = l.spare, e
	}
	l.first += uint64(n)
	l.open = append(l.open[:0], l.open[n:]...)
}

// start begins the group, because its stream has reached it. It executes the exchanges that the
// group's parts complete.
func (g *group) start() {
	mu := &g.rank.dev.d.comms.mu
	mu.Lock()
	defer mu.Unlock()
	r := g.rank
	g.begun = true
	r.begun = append(r.begun, g)
	if r.out != nil {
		g.settle()
		return
	}
	var first *exchange
	last := &first
	for i := range g.parts {
		p := &g.parts[i]
		if e := r.of.line(p.line()).exchange(p.at); e.add(p) {
			for _, p := range e.parts {
				p.group.moving++
			}
			*last, e.next = e, nil
			last = &e.next
		}
	}
	if first == nil {
		return
	}
	mu.Unlock()
	for e := first; e != nil; e = e.next {
		e.execute()
	}
	mu.Lock()
	for e := first; e != nil; {
		next := e.next
		e.finish()
		e = next
	}
}

// add adds a part to the exchange. It reports whether the exchange can execute: all parts are
// there, the ranks agree, and all ranks are still usable. The caller holds comms.mu; so do the
// callers of compare, finish, settle and end.
func (e *exchange) add(p *part) bool {
	m := e.line.of
	slot := p.group.rank.number
	switch p.op.Kind {
	case driver.Send:
		slot = 0
	case driver.Recv:
		slot = 1
	}
	for _, q := range e.parts {
		if q != nil && m.bad == nil {
			e.compare(p, q)
			break
		}
	}
	e.parts[slot] = p
	e.come++
	if e.come < len(e.parts) || m.bad != nil {
		return false
	}
	for _, p := range e.parts {
		if r := p.group.rank; r.out != nil || r.dev.down.Load() != nil {
			return false
		}
	}
	return true
}

// compare makes the communicator fail if two parts cannot belong to the same operation.
func (e *exchange) compare(p, q *part) {
	m := e.line.of
	if p.group.rank.number < q.group.rank.number {
		p, q = q, p
	}
	differ := func(what string, a, b any) {
		which := fmt.Sprintf("collective %d", e.at)
		if e.line.name[0] != anyone {
			which = fmt.Sprintf("transfer %d from rank %d to rank %d", e.at, e.line.name[0], e.line.name[1])
		}
		m.fail("in %s rank %d has %s %v, and rank %d %v", which, p.group.rank.number, what, a, q.group.rank.number, b)
	}
	a, b := &p.op, &q.op
	if e.line.name[0] != anyone {
		switch {
		case a.Type != b.Type:
			differ("elements of", a.Type, b.Type)
		case a.Count != b.Count:
			differ("a count of", a.Count, b.Count)
		case (p.side().registered == nil) != (q.side().registered == nil):
			differ("memory that is", p.side(), q.side())
		}
		return
	}
	alike := func(x, y *area, whole bool) bool {
		if x.size == 0 || y.size == 0 {
			return true
		}
		r, s := x.registered, y.registered
		if r == nil || s == nil {
			return r == s
		}
		return !whole || !r.symmetric || !s.symmetric || r.window == s.window && x.ptr-r.base == y.ptr-s.base
	}
	n := len(m.ranks)
	src, dst := sides(a, p.group.rank.number, n)
	switch {
	case a.Kind != b.Kind:
		differ("operation", a.Kind, b.Kind)
	case a.Type != b.Type:
		differ("elements of", a.Type, b.Type)
	case a.Kind.Reduces() && a.Reduction != b.Reduction:
		differ("reduction", a.Reduction, b.Reduction)
	case a.Count != b.Count:
		differ("a count of", a.Count, b.Count)
	case hasPeer(a.Kind) && a.Peer != b.Peer:
		differ("root", a.Peer, b.Peer)
	case !alike(&p.src, &q.src, src >= dst): // one rank's part may be in place where others are not
		differ("a source that is", &p.src, &q.src)
	case !alike(&p.dst, &q.dst, dst >= src):
		differ("a destination that is", &p.dst, &q.dst)
	}
}

// side returns the memory of a send or receive.
func (p *part) side() *area {
	if p.op.Kind == driver.Send {
		return &p.src
	}
	return &p.dst
}

// String says how the memory is registered.
func (a *area) String() string {
	cm := a.registered
	switch {
	case cm == nil:
		return "not registered"
	case cm.symmetric:
		return fmt.Sprintf("at offset %d of a symmetric window", uint64(a.ptr-cm.base))
	}
	return "registered"
}

// execute performs the operation. The caller must not hold comms.mu.
func (e *exchange) execute() {
	fault := false
	for _, p := range e.parts {
		for _, a := range [2]*area{&p.src, &p.dst} {
			if err := p.reach(a); err != nil && p.fault == nil {
				p.fault, fault = fmt.Errorf("%v of %v: %w", p.op.Kind, p.group.rank, err), true
			}
		}
	}
	if fault {
		return
	}
	e.srcs, e.dsts, e.scales = e.srcs[:0], e.dsts[:0], e.scales[:0]
	for _, p := range e.parts {
		e.srcs, e.dsts, e.scales = append(e.srcs, p.src.bytes), append(e.dsts, p.dst.bytes), append(e.scales, p.op.Scale)
	}
	op, n := &e.parts[0].op, len(e.parts)
	size := op.Count * uint64(op.Type.Size())
	piece := func(b []byte, i int) []byte { return b[uint64(i)*size : uint64(i+1)*size] }
	switch op.Kind {
	case driver.AllReduce:
		reduce(op.Type, op.Reduction, e.dsts, e.srcs, e.scales)
	case driver.Reduce:
		reduce(op.Type, op.Reduction, e.dsts[op.Peer:op.Peer+1], e.srcs, e.scales)
	case driver.ReduceScatter:
		for i, dst := range e.dsts {
			for j, p := range e.parts {
				e.srcs[j] = piece(p.src.bytes, i)
			}
			e.dsts[0] = dst
			reduce(op.Type, op.Reduction, e.dsts[:1], e.srcs, e.scales)
		}
	case driver.Broadcast:
		for _, dst := range e.dsts {
			copy(dst, e.srcs[op.Peer])
		}
	case driver.AllGather:
		for _, dst := range e.dsts {
			for i, src := range e.srcs {
				copy(piece(dst, i), src)
			}
		}
	case driver.AllToAll:
		for i, dst := range e.dsts {
			for j, src := range e.srcs {
				copy(piece(dst, j), piece(src, i))
			}
		}
	case driver.Gather:
		for i, src := range e.srcs {
			copy(piece(e.dsts[op.Peer], i), src)
		}
	case driver.Scatter:
		for i, dst := range e.dsts {
			copy(dst, piece(e.srcs[op.Peer], i))
		}
	case driver.Send, driver.Recv:
		copy(e.dsts[n-1], e.srcs[0])
	}
	clear(e.srcs)
	clear(e.dsts)
}

// reach finds the bytes of an area. A rank needs the same access to memory as a kernel on its
// device.
func (p *part) reach(a *area) error {
	v, s := p.group.rank.dev, p.group.stream
	var e *AccessError
	if align := uint64(p.op.Type.Size()); a.size > 0 && uint64(a.ptr)%align != 0 {
		e = v.d.miss(a.ptr, a.size)
		e.Align = align
	} else {
		a.bytes, e = v.launched(a.ptr, a.size)
	}
	if e == nil {
		return nil
	}
	e.Op, e.Device, e.Stream = OpCollect, v.index, s.id
	return e
}

// finish records that the exchange has executed. Groups that waited only for this exchange are then
// over. If a rank had no access to the memory of its part, the rank's device will be lost, and the
// other ranks keep waiting.
func (e *exchange) finish() {
	fault := false
	for _, p := range e.parts {
		fault = fault || p.fault != nil
	}
	for _, p := range e.parts {
		g := p.group
		g.moving--
		p.src.bytes, p.dst.bytes = nil, nil
		switch {
		case p.fault != nil:
			g.err = p.fault
			g.end()
		case !fault:
			p.done = true
			if g.left--; g.left == 0 {
				g.end()
			}
		}
		if g.rank.out != nil {
			g.settle()
		}
	}
	if !fault {
		e.line.finish(e)
	}
}

// settle ends the group of a rank that has left the communicator. If parts of the group are
// executing, the group ends with the last of them.
func (g *group) settle() {
	g.cut.Store(true)
	if g.moving == 0 {
		g.end()
	}
}

// end marks the group as over and lets the stream continue.
func (g *group) end() {
	g.over.Store(true)
	g.stream.poke()
}

// discard is called when the stream has executed the group, or never will. The caller must not use
// g any more.
func (g *group) discard() {
	r := g.rank
	mu := &r.dev.d.comms.mu
	mu.Lock()
	defer mu.Unlock()
	r.groups--
	for i, b := range r.begun {
		if b == g {
			r.begun = append(r.begun[:i], r.begun[i+1:]...)
			break
		}
	}
	for i := range g.parts {
		for _, a := range [2]*area{&g.parts[i].src, &g.parts[i].dst} {
			if a.registered != nil {
				a.registered.uses--
			}
		}
	}
	switch {
	case g.left == 0 && r.out == nil:
		r.spare = append(r.spare, g)
	case g.begun && r.dev.down.Load() == nil:
		r.leave(errDropped) // other ranks may already wait for a group that has begun
	}
}

// errDropped is the reason for a rank to leave when its stream is destroyed with an operation in
// flight.
var errDropped = errors.New("its stream was destroyed with operations in flight")
