package recording_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/puregpu/puregpu/runtime/driver"
	"github.com/puregpu/puregpu/runtime/driver/simdriver"
	"github.com/puregpu/puregpu/runtime/gpu"
)

// region is the largest number of words that a launch of a modelled recording writes.
const region = 8

// A modelled is a recording, and a model of the words that its executions write. Each launch writes
// n words to its own region: first, first+step, and so on. A launch of fewer than n threads writes
// one word per thread.
type modelled struct {
	c        *gpu.CommandBuffer
	scalars  []gpu.Param[uint32]
	blocks   []gpu.Param[[3]uint32]
	initial  values // the defaults of all parameters
	launches []modelLaunch
}

// values are values of a recording's parameters.
type values struct {
	scalars []uint32
	blocks  [][3]uint32
}

func (v values) clone() values { return values{slices.Clone(v.scalars), slices.Clone(v.blocks)} }

// A number is a scalar argument of a launch, or the Blocks of its Grid. It is a constant or a
// parameter.
type number[T any] struct {
	param int // index of the parameter, or -1 for a constant
	value T
}

func (n number[T]) in(values []T) T {
	if n.param >= 0 {
		return values[n.param]
	}
	return n.value
}

type modelLaunch struct {
	n           uint64
	first, step number[uint32]
	blocks      number[[3]uint32]
	threads     uint32
	at          int // number of the region that it writes
}

// words returns the words that an execution with the values v leaves in zeroed memory.
func (m *modelled) words(v values) []uint32 {
	all := make([]uint32, region*m.regions())
	for _, l := range m.launches {
		b := l.blocks.in(v.blocks)
		threads := uint64(b[0]) * uint64(max(b[1], 1)) * uint64(max(b[2], 1)) * uint64(l.threads)
		for i := range uint32(min(l.n, threads)) {
			all[region*l.at+int(i)] = i*l.step.in(v.scalars) + l.first.in(v.scalars)
		}
	}
	return all
}

func (m *modelled) regions() int {
	n := 1
	for _, l := range m.launches {
		n = max(n, l.at+1)
	}
	return n
}

// randomBlocks returns blocks for a launch. If the parameter none is true, the first dimension may
// be 0: then the launch has no blocks.
func randomBlocks(r *rand.Rand, none bool) (b [3]uint32) {
	b = [3]uint32{1 + r.Uint32N(3), r.Uint32N(3), r.Uint32N(2)}
	if none && r.IntN(4) == 0 {
		b[0] = 0
	}
	return b
}

// newModelled records random launches, and sometimes nests some of the children.
func newModelled(t *testing.T, dev *gpu.Device, caps driver.Caps, k *gpu.Kernel, r *rand.Rand, children []*modelled) *modelled {
	t.Helper()
	o := gpu.CommandOptions{Mode: gpu.Mode(r.IntN(3)), InOrder: r.IntN(2) == 0}
	if !caps.Graphs {
		o.Mode = gpu.StreamMode
	}
	c, err := dev.NewCommandBuffer(o)
	must(t, err)
	t.Cleanup(func() { c.Close() })
	m := &modelled{c: c}
	out, err := c.Binding()
	must(t, err)
	for range r.IntN(4) {
		v := r.Uint32()
		m.scalars, m.initial.scalars = append(m.scalars, param(t, c, v)), append(m.initial.scalars, v)
	}
	for range r.IntN(3) {
		v := randomBlocks(r, false)
		m.blocks, m.initial.blocks = append(m.blocks, param(t, c, v)), append(m.initial.blocks, v)
	}
	if r.IntN(2) == 0 { // with scratch memory, executions that overlap have graphs of their own
		b, err := c.Scratch(64)
		must(t, err)
		recorded(t)(c.Add(gpu.Fill(b.All(), []byte{1})))
	}
	next := 0
	for range 1 + r.IntN(6) {
		switch x := r.IntN(8); {
		case x == 0:
			recorded(t)(c.Add(gpu.HostCall(func() error { return nil })))
		case x == 1:
			recorded(t)(c.Add(gpu.Barrier()))
		case x <= 3 && len(children) > 0:
			child := children[r.IntN(len(children))]
			m.nest(t, r, child, out, next)
			next += child.regions()
		default:
			m.launch(t, r, k, out, next)
			next++
		}
	}
	must(t, c.End())
	return m
}

// launch records a random launch. The argument at is the number of the region that the launch
// writes.
func (m *modelled) launch(t *testing.T, r *rand.Rand, k *gpu.Kernel, out *gpu.Buffer, at int) {
	t.Helper()
	l := modelLaunch{n: r.Uint64N(region + 1), threads: 1 + r.Uint32N(3), at: at}
	grid := gpu.Grid{Blocks: randomBlocks(r, false), Threads: [3]uint32{l.threads}}
	l.blocks = number[[3]uint32]{-1, grid.Blocks}
	var args [2]any
	for i, n := range []*number[uint32]{&l.first, &l.step} {
		*n = number[uint32]{-1, r.Uint32()}
		args[i] = n.value
		if len(m.scalars) > 0 && r.IntN(2) == 0 {
			n.param = r.IntN(len(m.scalars))
			args[i] = m.scalars[n.param]
		}
	}
	op := gpu.Launch(k, grid, l.n, args[0], args[1], out.Range(uint64(4*region*at), 4*region))
	if len(m.blocks) > 0 && r.IntN(2) == 0 {
		l.blocks.param = r.IntN(len(m.blocks))
		op = op.GridParam(m.blocks[l.blocks.param])
	}
	recorded(t)(m.c.Add(op))
	m.launches = append(m.launches, l)
}

// nest nests the recording child in m. Each parameter of child gets a value, its default, or a
// parameter of m.
func (m *modelled) nest(t *testing.T, r *rand.Rand, child *modelled, out *gpu.Buffer, at int) {
	t.Helper()
	op := gpu.Execute(child.c, out.Range(uint64(4*region*at), uint64(4*region*child.regions())))
	scalars, blocks := make([]number[uint32], len(child.scalars)), make([]number[[3]uint32], len(child.blocks))
	for i, p := range child.scalars {
		scalars[i] = number[uint32]{-1, child.initial.scalars[i]}
		switch x := r.IntN(3); {
		case x == 0:
			scalars[i].value = r.Uint32()
			op = op.With(p.Value(scalars[i].value))
		case x == 1 && len(m.scalars) > 0:
			scalars[i].param = r.IntN(len(m.scalars))
			op = op.Param(i, m.scalars[scalars[i].param])
		}
	}
	for i, p := range child.blocks {
		blocks[i] = number[[3]uint32]{-1, child.initial.blocks[i]}
		switch x := r.IntN(3); {
		case x == 0:
			blocks[i].value = randomBlocks(r, true)
			op = op.With(p.Value(blocks[i].value))
		case x == 1 && len(m.blocks) > 0:
			blocks[i].param = r.IntN(len(m.blocks))
			op = op.Param(len(child.scalars)+i, m.blocks[blocks[i].param])
		}
	}
	recorded(t)(m.c.Add(op))
	for _, l := range child.launches {
		l.at += at
		if l.first.param >= 0 {
			l.first = scalars[l.first.param]
		}
		if l.step.param >= 0 {
			l.step = scalars[l.step.param]
		}
		if l.blocks.param >= 0 {
			l.blocks = blocks[l.blocks.param]
		}
		m.launches = append(m.launches, l)
	}
}

// execute returns an execution with random values, and the words that the execution leaves in
// zeroed memory.
func (m *modelled) execute(r *rand.Rand, to gpu.Range) (op gpu.Op, want []uint32) {
	op, v := gpu.Execute(m.c, to), m.initial.clone()
	for i, p := range m.scalars {
		if r.IntN(2) == 0 {
			v.scalars[i] = r.Uint32N(4)
			op = op.With(p.Value(v.scalars[i]))
		}
	}
	for i, p := range m.blocks {
		if r.IntN(2) == 0 {
			v.blocks[i] = randomBlocks(r, true)
			op = op.With(p.Value(v.blocks[i]))
		}
	}
	return op, m.words(v)
}

// TestRandomParams tests B199: random recordings, some nested, are executed with random values on
// several queues. Each execution must leave the model's words in its memory.
func TestRandomParams(t *testing.T) {
	seeds := uint64(40)
	if testing.Short() {
		seeds = 8
	}
	for seed := range seeds {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			onEach(t, 1, func(t *testing.T, d *simdriver.Driver, caps driver.Caps) {
				r := rand.New(rand.NewPCG(seed, 1))
				dev := openDevice(t, d, 0, gpu.Options{Queues: 3})
				k := kernelOf(t, dev, "index")
				var all []*modelled
				for range 4 {
					all = append(all, newModelled(t, dev, caps, k, r, all))
				}
				gate := semaphores(t, 1)[0]
				type execution struct {
					to   *gpu.Buffer
					want []uint32
					done *gpu.Semaphore
				}
				var begun []execution
				for i := range 30 {
					m := all[r.IntN(len(all))]
					e := execution{to: allocate(t, dev, uint64(4*region*m.regions())), done: semaphores(t, 1)[0]}
					op, want := m.execute(r, e.to.All())
					e.want = want
					q := dev.Queue(r.IntN(3))
					must(t, q.Submit(gpu.Order{Signal: pts(e.done, 1)}, gpu.Fill(e.to.All(), []byte{0})))
					behind := pts(e.done, 1)
					if r.IntN(2) == 0 {
						behind = append(behind, gpu.Point{Semaphore: gate, Value: uint64(i/10) + 1})
					}
					must(t, q.Submit(gpu.Order{Wait: behind, Signal: pts(e.done, 2)}, op))
					begun = append(begun, e)
					if i%10 == 9 {
						must(t, gate.Signal(uint64(i/10)+1))
					}
				}
				for i, e := range begun {
					must(t, e.done.Wait(minute(t), 2))
					if got := words(t, e.to); !slices.Equal(got, e.want) {
						t.Fatalf("execution %d: %v, not %v", i, got, e.want)
					}
				}
			})
		})
	}
}
