package control_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/puregpu/puregpu/runtime/control"
	"github.com/puregpu/puregpu/runtime/driver/simdriver"
	"github.com/puregpu/puregpu/runtime/gpu"
)

// A program is a random program on a few numbers. The recording of a program has the numbers as
// bindings, in an order that the outer program chooses, one parameter, and perhaps a number in
// scratch memory.
type program struct {
	r       *rand.Rand
	t       *rig
	cells   int
	onHost  bool // some bodies contain a host call, so the host runs the control operations that enclose it
	streams bool // a recording has StreamMode
	noted   []noted
}

// A noted is the place of a control operation: a recording and a command.
type noted struct {
	c  *gpu.CommandBuffer
	at gpu.Command
}

// A recorded is the recording of a program. The field run has the program's model.
type recorded struct {
	c     *gpu.CommandBuffer
	cells []gpu.Slice[uint32] // the bindings
	step  gpu.Param[uint32]
	run   func(cells []*uint32, step uint32)
}

// record makes a program with control operations nested at most depth deep.
func (p *program) record(depth int) *recorded {
	mode := gpu.AutoMode
	if p.r.IntN(12) == 0 {
		mode, p.streams = gpu.StreamMode, true
	}
	c := must(p.t.dev.NewCommandBuffer(gpu.CommandOptions{Mode: mode, InOrder: true}))(p.t)
	p.t.Cleanup(func() { c.Close() })
	x := &recorded{c: c}
	for range p.cells {
		x.cells = append(x.cells, must(gpu.BindingSlice[uint32](c, 1))(p.t))
	}
	x.step = must(gpu.NewParam(c, uint32(1)))(p.t)
	var model []func(cells []*uint32, step uint32)
	all := slices.Clone(x.cells) // with the number in scratch memory
	scratch := p.r.IntN(2) == 0
	if scratch {
		s := must(gpu.SliceOf[uint32](must(c.Scratch(4))(p.t).All()))(p.t)
		all = append(all, s)
		p.t.Do(c, gpu.Fill(s.Range(), one(3)))
		model = append(model, func(cells []*uint32, _ uint32) { *cells[len(cells)-1] = 3 })
	}
	for range 1 + p.r.IntN(4) {
		f := p.operation(x, all, depth)
		model = append(model, f)
	}
	check(p.t, c.End())
	x.run = func(cells []*uint32, step uint32) {
		if scratch {
			cells = append(slices.Clone(cells), new(uint32))
		}
		for _, f := range model {
			f(cells, step)
		}
	}
	return x
}

// operation records an operation and returns its model.
func (p *program) operation(x *recorded, cells []gpu.Slice[uint32], depth int) func([]*uint32, uint32) {
	a, b, n := p.r.IntN(len(cells)), p.r.IntN(len(cells)), uint32(p.r.IntN(4))
	kind := p.r.IntN(8)
	if depth == 0 {
		kind %= 4
	}
	switch kind {
	case 0:
		p.t.Do(x.c, gpu.Fill(cells[a].Range(), one(n)))
		return func(m []*uint32, _ uint32) { *m[a] = n }
	case 1:
		p.t.Do(x.c, gpu.Launch(p.t.copy, gpu.Grid{}, cells[a], cells[b]))
		return func(m []*uint32, _ uint32) { *m[a] = *m[b] }
	case 2:
		p.t.Do(x.c, gpu.Launch(p.t.add, gpu.Grid{}, cells[a], x.step, uint32(5)))
		return func(m []*uint32, step uint32) { *m[a] = (*m[a] + step) % 5 }
	case 3:
		if p.onHost && p.r.IntN(3) == 0 {
			p.t.Do(x.c, gpu.HostCall(func() error { return nil }))
		}
		p.t.Do(x.c, gpu.Launch(p.t.add, gpu.Grid{}, cells[a], n, uint32(6)))
		return func(m []*uint32, _ uint32) { *m[a] = (*m[a] + n) % 6 }
	case 4: // nested without a condition
		op, run := p.body(x, cells, depth)
		p.t.Do(x.c, op)
		return run
	case 5:
		yes, ifYes := p.body(x, cells, depth)
		op, ifNo := gpu.Op{}, func([]*uint32, uint32) {}
		if p.r.IntN(2) == 0 {
			op = control.If(cells[a], yes)
		} else {
			op, ifNo = p.body(x, cells, depth)
			op = control.IfElse(cells[a], yes, op)
		}
		p.note(x.c, op)
		return func(m []*uint32, step uint32) {
			if *m[a] != 0 {
				ifYes(m, step)
			} else {
				ifNo(m, step)
			}
		}
	case 6:
		otherwise, ifOther := gpu.Barrier(), func([]*uint32, uint32) {}
		if p.r.IntN(2) == 0 {
			otherwise, ifOther = p.body(x, cells, depth)
		}
		var ops []gpu.Op
		var runs []func([]*uint32, uint32)
		for range p.r.IntN(4) {
			op, run := p.body(x, cells, depth)
			ops, runs = append(ops, op), append(runs, run)
		}
		p.note(x.c, control.Switch(cells[a], otherwise, ops...))
		return func(m []*uint32, step uint32) {
			if v := *m[a]; v < uint32(len(runs)) {
				runs[v](m, step)
			} else {
				ifOther(m, step)
			}
		}
	}
	// Record a loop with a counter of its own, so that the loop ends.
	count := must(gpu.SliceOf[uint32](must(x.c.Scratch(4))(p.t).All()))(p.t)
	p.t.Do(x.c, gpu.Fill(count.Range(), one(n)))
	inner := p.record(depth - 1)
	order := p.order(cells)
	loop := p.t.record(func(c *gpu.CommandBuffer) {
		var binds []gpu.Range
		for range inner.cells {
			binds = append(binds, must(c.Binding())(p.t).Range(0, 4))
		}
		counter := must(c.Binding())(p.t).Range(0, 4)
		p.t.Do(c, gpu.Execute(inner.c, binds...))
		p.t.Do(c, gpu.Launch(p.t.add, gpu.Grid{}, counter, ^uint32(0), uint32(0)))
	})
	binds := p.binds(cells, order)
	p.note(x.c, control.While(count, gpu.Execute(loop, append(binds, count.Range())...)))
	return func(m []*uint32, step uint32) {
		for range n {
			inner.run(pick(m, order), 1)
		}
	}
}

// note records a control operation.
func (p *program) note(c *gpu.CommandBuffer, op gpu.Op) {
	p.noted = append(p.noted, noted{c, p.t.Do(c, op)})
}

// reasons returns, for each control operation, why the host runs it, or "" if the device runs it.
func (p *program) reasons() (all []string) {
	for _, n := range p.noted {
		all = append(all, must(control.Host(n.c, n.at))(p.t))
	}
	return all
}

// body returns an operation that executes another program on some of the cells, and its model.
func (p *program) body(x *recorded, cells []gpu.Slice[uint32], depth int) (gpu.Op, func([]*uint32, uint32)) {
	inner, order := p.record(depth-1), p.order(cells)
	op := gpu.Execute(inner.c, p.binds(cells, order)...)
	switch p.r.IntN(3) {
	case 0:
		n := uint32(p.r.IntN(4))
		return op.With(inner.step.Value(n)), func(m []*uint32, _ uint32) { inner.run(pick(m, order), n) }
	case 1:
		return op.Param(0, x.step), func(m []*uint32, step uint32) { inner.run(pick(m, order), step) }
	}
	return op, func(m []*uint32, _ uint32) { inner.run(pick(m, order), 1) }
}

func (p *program) order(cells []gpu.Slice[uint32]) []int { return p.r.Perm(len(cells))[:p.cells] }

func (p *program) binds(cells []gpu.Slice[uint32], order []int) (all []gpu.Range) {
	for _, i := range order {
		all = append(all, cells[i].Range())
	}
	return all
}

func pick(m []*uint32, order []int) (all []*uint32) {
	for _, i := range order {
		all = append(all, m[i])
	}
	return all
}

// TestRandomPrograms compares random programs of nested control operations with a model.
func TestRandomPrograms(t *testing.T) {
	n := 60
	if testing.Short() {
		n = 15
	}
	ran := map[bool]int{} // numbers of control operations: true for those that the device runs
	for name, caps := range caps() {
		for seed := range n {
			t.Run(fmt.Sprint(name, seed), func(t *testing.T) {
				r := newRig(t, simdriver.Config{Caps: caps})
				p := &program{r: rand.New(rand.NewPCG(uint64(seed), 1)), t: r, cells: 3, onHost: seed%3 == 0}
				main := p.record(3)
				cells, model := r.numbers(0, 1, 2, 3, 4, 5), []uint32{0, 1, 2, 3, 4, 5}
				s := r.dev.Queue(0).NewStream()
				for i := range 6 { // executions overlap, with other bindings and values
					from, step := i%2*3, uint32(i)
					var binds []gpu.Range
					var at []*uint32
					for k := range p.cells {
						binds, at = append(binds, cells.Slice(from+k, from+k+1).Range()), append(at, &model[from+k])
					}
					check(t, s.Do(gpu.Execute(main.c, binds...).With(main.step.Value(step))))
					main.run(at, step)
				}
				check(t, s.Wait(context.Background()))
				equal(t, cells, model...)
				for _, why := range p.reasons() {
					if (why == "") != (caps == nil) && !p.onHost && !p.streams {
						t.Errorf("the host runs it because %q", why)
					}
					ran[why == ""]++
				}
			})
		}
	}
	if ran[true] < n || ran[false] < n {
		t.Errorf("the device runs %d control operations, and the host %d", ran[true], ran[false])
	}
}
