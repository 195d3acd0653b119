package simdriver

import (
	"fmt"
	"slices"
	"sync/atomic"

	"github.com/puregpu/puregpu/runtime/driver"
)

// A group holds the operations that one Collect has put into a stream. A group begins when the
// stream reaches it. A group is over when all its parts are done, when a part has failed, or when
// the group's rank has left the communicator.
type group struct {
	rank   *rank
	stream *stream
	parts  []part
	left   int         // number of parts that are not done
	moving int         // number of parts that are executing
	begun  bool        // the stream has reached the group; set by the code that executes the stream, with comms.mu held
	err    error       // if not nil, the device is lost with this error; set before over
	over   atomic.Bool // the group is over, so the stream may continue
	cut    atomic.Bool // the rank has left the communicator, so the stream does not wait for the latency of Collect
}

// A part is one operation of a group.
type part struct {
	group    *group
	op       driver.CommOp
	at       uint64 // number of the part's exchange in its line
	src, dst area
	done     bool
	fault    error // error of executing the part
}

// An area is memory that an operation uses.
type area struct {
	ptr        driver.Ptr
	size       uint64
	registered *commMemory // nil if the memory is not registered
	bytes      []byte      // set during execution
}

// anyone stands for all ranks in the names of lines and links.
const anyone = -1

// A link connects all ranks, or a sender and a receiver. It is complete when each rank of the link
// has called Collect for a group that uses the link.
type link struct {
	missing int
	done    chan struct{} // closed when no rank is missing
}

// line returns the name of the part's line: all ranks for a collective, or the sender and the
// receiver.
func (p *part) line() [2]int {
	switch p.op.Kind {
	case driver.Send:
		return [2]int{p.group.rank.number, p.op.Peer}
	case driver.Recv:
		return [2]int{p.op.Peer, p.group.rank.number}
	}
	return [2]int{anyone, anyone}
}

// needs reports whether a group in r.begun waits for the rank whose number is other.
func (r *rank) needs(other int) bool {
	for _, g := range r.begun {
		for i := range g.parts {
			if p := &g.parts[i]; !p.done && (p.line()[0] == anyone || p.op.Peer == other) {
				return true
			}
		}
	}
	return false
}

// Collect puts operations into a stream as one group. It needs a bound thread.
func (v *device) Collect(sh driver.Stream, h driver.Comm, ops []driver.CommOp) error {
	if v.d.strict {
		if err := v.checkThread(codeCollect); err != nil {
			return err
		}
	}
	later, err := v.submit(codeCollect)
	if err != nil {
		return err
	}
	if !v.d.caps.Comms {
		return v.cannot(codeCollect)
	}
	s, err := v.working(codeCollect, sh)
	if err != nil {
		return err
	}
	cs := &v.d.comms
	cs.mu.Lock()
	defer cs.mu.Unlock()
	r, err := v.rank(codeCollect, h)
	if err == nil {
		err = r.usable(codeCollect)
	}
	if err != nil {
		return err
	}
	g := r.group(s, len(ops))
	for i := range ops {
		if err := g.parts[i].become(&ops[i]); err != nil {
			return failf(codeCollect, "%v: operation %d, %v: %w", r, i, ops[i].Kind, err)
		}
	}
	if cs.lazy {
		if err := g.connect(); err != nil {
			return err
		}
		if err := r.usable(codeCollect); err != nil {
			return err
		}
	}
	if len(ops) > 0 {
		g.submit(later)
	}
	return nil
}

// group returns a group with n parts.
func (r *rank) group(s *stream, n int) *group {
	var g *group
	if last := len(r.spare) - 1; last >= 0 {
		g, r.spare = r.spare[last], r.spare[:last]
		g.over.Store(false)
		g.cut.Store(false)
	} else {
		g = &group{rank: r}
	}
	g.stream, g.left, g.begun = s, n, false
	g.parts = slices.Grow(g.parts[:0], n)[:n]
	for i := range g.parts {
		g.parts[i] = part{group: g}
	}
	return g
}

// become fills in p from op. It returns an error if op is not valid.
func (p *part) become(op *driver.CommOp) error {
	r := p.group.rank
	n := len(r.of.ranks)
	src, dst := sides(op, r.number, n)
	bytes, ok := product(op.Count, uint64(op.Type.Size()))
	_, fits := product(bytes, uint64(n))
	switch {
	case src+dst == 0:
		return fmt.Errorf("%w: no such operation", ErrInvalidValue)
	case !op.Type.Valid():
		return fmt.Errorf("%v: %w", op.Type, ErrInvalidValue)
	case op.Kind.Reduces() && (op.Reduction < driver.Sum || op.Reduction > driver.PreMulSum):
		return fmt.Errorf("%v: %w", op.Reduction, ErrInvalidValue)
	case op.Kind.Reduces() && op.Type.Size() == 2 && !isFloat(op.Type):
		return fmt.Errorf("elements of %v can be moved but not reduced: %w", op.Type, driver.ErrUnsupported)
	case hasPeer(op.Kind) && (op.Peer < 0 || op.Peer >= n):
		return fmt.Errorf("rank %d: %w: there are %d ranks", op.Peer, ErrInvalidValue, n)
	case !ok || !fits || bytes > maxMemory:
		return fmt.Errorf("%d elements of %v: %w: larger than the address space", op.Count, op.Type, ErrInvalidValue)
	}
	p.op = *op
	p.src, p.dst = area{ptr: op.Src, size: uint64(src) * bytes}, area{ptr: op.Dst, size: uint64(dst) * bytes}
	if p.src.size > 0 && p.dst.size > 0 && (op.Dst-op.Src < driver.Ptr(p.src.size) || op.Src-op.Dst < driver.Ptr(p.dst.size)) {
		own := driver.Ptr(uint64(r.number) * bytes) // start of the rank's own part
		if op.Kind == driver.AllToAll || src == dst && op.Src != op.Dst || src < dst && op.Src != op.Dst+own || src > dst && op.Dst != op.Src+own {
			return fmt.Errorf("%d bytes at %#x and %d at %#x overlap: %w", p.src.size, uint64(op.Src), p.dst.size, uint64(op.Dst), ErrInvalidValue)
		}
	}
	if p.src.size > 0 {
		p.src.registered = r.registered(&p.src)
	}
	if p.dst.size > 0 {
		p.dst.registered = r.registered(&p.dst)
	}
	return nil
}

// sides returns the sizes of Src and Dst of an operation on one of n ranks, in multiples of
// op.Count. Both are 0 if the kind of op is unknown.
func sides(op *driver.CommOp, number, n int) (src, dst int) {
	root := func(n int) int {
		if number == op.Peer {
			return n
		}
		return 0
	}
	switch op.Kind {
	case driver.AllReduce:
		return 1, 1
	case driver.AllGather:
		return 1, n
	case driver.ReduceScatter:
		return n, 1
	case driver.Broadcast:
		return root(1), 1
	case driver.Reduce:
		return 1, root(1)
	case driver.AllToAll:
		return n, n
	case driver.Gather:
		return 1, root(n)
	case driver.Scatter:
		return root(n), 1
	case driver.Send:
		return 1, 0
	case driver.Recv:
		return 0, 1
	}
	return 0, 0
}

// hasPeer reports whether operations of a kind use Peer.
func hasPeer(k driver.CommOpKind) bool {
	switch k {
	case driver.AllReduce, driver.AllGather, driver.ReduceScatter, driver.AllToAll:
		return false
	}
	return true
}

// connect waits for each link that the rank has not used before, until the other ranks of the link
// have called Collect too. It returns an error if the rank leaves or its device is lost meanwhile.
// comms.mu is unlocked while connect waits.
func (g *group) connect() error {
	r := g.rank
	m := r.of
	var wait []*link
	for i := range g.parts {
		name := g.parts[i].line()
		if name[0] == name[1] && name[0] == r.number || r.linked[name] {
			continue // no wait for a link to itself, or for a link that the rank has used already
		}
		k := m.links[name]
		if k == nil {
			k = &link{missing: 2, done: make(chan struct{})}
			if name[0] == anyone {
				k.missing = len(m.ranks)
			}
			m.links[name] = k
		}
		r.linked[name] = true
		if k.missing--; k.missing == 0 {
			close(k.done)
		}
		wait = append(wait, k)
	}
	if len(wait) == 0 {
		return nil
	}
	mu := &r.dev.d.comms.mu
	mu.Unlock()
	defer mu.Lock()
	for _, k := range wait {
		if err := r.await(codeCollect, k.done); err != nil {
			return err
		}
	}
	return nil
}

// submit adds the group to its stream.
func (g *group) submit(later error) {
	r, s := g.rank, g.stream
	for i := range g.parts {
		p := &g.parts[i]
		name := [2]int{anyone, anyone}
		if p.op.Kind == driver.Send || p.op.Kind == driver.Recv {
			name = [2]int{p.op.Peer, int(p.op.Kind)}
		}
		p.at = r.count[name]
		r.count[name]++
		for _, a := range [2]*area{&p.src, &p.dst} {
			if a.registered != nil {
				a.registered.uses++
			}
		}
	}
	r.groups++
	s.mu.Lock()
	defer s.mu.Unlock()
	o := s.slot(codeCollect)
	o.fail, o.group = later, g
	if l := r.last; l.stream != nil && l.stream != s && l.stream.done.Load() < l.seq && !l.stream.stopped.Load() {
		o.source, o.seq = l.stream, l.seq
	}
	s.publish()
	r.last = mark{s, s.tail.Load()}
}
