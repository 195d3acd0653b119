package gputest

import (
	"errors"
	"math/rand/v2"
	"slices"

	"github.com/puregpu/puregpu/runtime/gpu"
	"github.com/puregpu/puregpu/testdata/kernels"
)

// paramOf adds a parameter to a recording.
func paramOf[T any](r *recorder, initial T) gpu.Param[T] {
	r.e.Helper()
	p, err := gpu.NewParam(r.CommandBuffer, initial)
	r.e.must(err)
	return p
}

var params = []test{
	{name: "B199 scalars change from one execution to the next", kernels: true, run: func(e *env) {
		e.eachMode(func(e *env, m gpu.Mode) {
			const n, launches, times = 64, 12, 24
			k, c := e.kernel(kernels.Basic, "index"), e.commands(m)
			out := c.binding()
			count, first, step := paramOf(c, uint64(n)), paramOf(c, uint32(1)), paramOf(c, uint32(2))
			for i := range uint64(launches) { // every second launch uses first, and every third uses step
				args := []any{count, uint32(i), uint32(10), out.Range(4*n*i, 4*n)}
				if i%2 == 0 {
					args[1] = first
				}
				if i%3 == 0 {
					args[2] = step
				}
				c.add(gpu.Launch(k, gpu.GridFor(n, 32), args...))
			}
			c.end()
			host, r := e.sem(), rand.New(rand.NewPCG(1, 2))
			type execution struct {
				to          *gpu.Buffer
				count       uint64
				first, step uint32
			}
			var all []execution
			done := e.sems(times)
			// All executions wait for the same signal of the host.
			for i := range times {
				x := execution{e.buffer(4 * n * launches), n, 1, 2}
				e.must(e.q(i%4).Submit(signal(done[i], 1), gpu.Fill(x.to.All(), []byte{0})))
				op := gpu.Execute(c.CommandBuffer, x.to.All())
				if r.IntN(2) == 0 {
					x.count = r.Uint64N(n + 1)
					op = op.With(count.Value(x.count))
				}
				if r.IntN(2) == 0 {
					x.first, x.step = r.Uint32(), r.Uint32N(3)
					op = op.With(first.Value(x.first), step.Value(x.step))
				}
				o := between(host, 1, done[i], 2)
				o.Wait = append(o.Wait, points(done[i], 1)...)
				e.must(e.q(i%4).Submit(o, op))
				all = append(all, x)
			}
			e.must(host.Signal(1))
			for i, x := range all {
				e.wait(done[i], 2)
				want := make([]uint32, n*launches)
				for l := range uint32(launches) {
					first, step := l, uint32(10)
					if l%2 == 0 {
						first = x.first
					}
					if l%3 == 0 {
						step = x.step
					}
					for j := range uint32(x.count) {
						want[n*l+j] = first + j*step
					}
				}
				if got := e.words(x.to); !slices.Equal(got, want) {
					e.Fatalf("execution %d: %v, not %v", i, got, want)
				}
			}
		})
	}},
	{name: "B199 blocks change from one execution to the next", kernels: true, run: func(e *env) {
		e.eachMode(func(e *env, m gpu.Mode) {
			ids, c := e.kernel(kernels.Basic, "ids"), e.commands(m)
			out := c.binding()
			blocks := paramOf(c, [3]uint32{2, 3, 1})
			before := c.fill(out.Range(0, 16*32), []byte{0xff})
			c.add(gpu.Launch(ids, gpu.Grid{Threads: [3]uint32{4, 2, 3}}, out.Range(0, 16*24)).GridParam(blocks), before)
			c.add(gpu.Launch(ids, gpu.Grid{Blocks: [3]uint32{2}}, out.Range(16*30, 32)), before)
			c.end()
			check := func(op gpu.Op, b *gpu.Buffer, grid [3]uint32) {
				e.Helper()
				s := e.sem()
				e.must(e.q(0).Submit(signal(s, 1), op))
				e.wait(s, 1)
				want := slices.Repeat([]uint32{^uint32(0)}, 4*32)
				for i := range grid[0] * grid[1] * grid[2] {
					copy(want[4*i:], []uint32{i % grid[0], i / grid[0] % grid[1], i / grid[0] / grid[1], 24})
				}
				copy(want[4*30:], []uint32{0, 0, 0, 1, 1, 0, 0, 1})
				if got := e.words(b); !slices.Equal(got, want) {
					e.Errorf("blocks %v: %v, not %v", grid, got, want)
				}
			}
			b := e.buffer(16 * 32)
			op := gpu.Execute(c.CommandBuffer, b.All())
			check(op, b, [3]uint32{2, 3, 1})
			for _, grid := range [][3]uint32{{4, 3, 2}, {1, 1, 1}, {0, 1, 1}, {24, 1, 1}, {2, 3, 1}, {0, 7, 7}, {0, 1, 1}} {
				check(op.With(blocks.Value(grid)), b, grid)
			}
			check(op, b, [3]uint32{2, 3, 1})
			check(op.With(blocks.Value([3]uint32{5})), b, [3]uint32{5, 1, 1})
			tooMany := blocks.Value([3]uint32{1, 1 << 31, 1})
			if err := e.q(0).Submit(gpu.Order{}, op.With(tooMany)); !errors.Is(err, gpu.ErrArgument) {
				e.Errorf("too many blocks: %v", err)
			}
		})
	}},
	{name: "B199 blocks of launches in clusters", kernels: true, run: func(e *env) {
		k := newer[ringArgs](e, kernels.Ring, "ring")
		out := wordSlice(e, 2*48)
		s := e.q(0).NewStream()
		grid := gpu.Grid{Blocks: [3]uint32{4, 1, 1}, Attrs: gpu.LaunchAttrs{Cluster: [3]uint32{4, 1, 1}}}
		e.trial(func(o gpu.Order) error { return e.q(1).Submit(o, k.Launch(grid, ringArgs{out.Range()})) })
		e.eachMode(func(e *env, m gpu.Mode) {
			c := e.commands(m)
			blocks := paramOf(c, [3]uint32{8})
			c.fill(out.Range(), []byte{0})
			c.barrier()
			c.add(k.Launch(grid, ringArgs{out.Range()}).GridParam(blocks))
			c.end()
			for _, n := range []uint32{8, 48, 4, 0, 16} {
				want := make([]uint32, 2*48)
				copy(want, ringOf(int(n), 4))
				e.must(s.Do(gpu.Execute(c.CommandBuffer).With(blocks.Value([3]uint32{n}))))
				if got := contentOf(e, s, out); !slices.Equal(got, want) {
					e.Errorf("%d blocks: %v, not %v", n, got, want)
				}
			}
			op := gpu.Execute(c.CommandBuffer).With(blocks.Value([3]uint32{6}))
			if err := e.q(1).NewStream().Do(op); !errors.Is(err, gpu.ErrArgument) {
				e.Errorf("6 blocks in clusters of 4: %v", err)
			}
		})
	}},
	{name: "B199 blocks of cooperative launches", kernels: true, run: func(e *env) {
		ids, b := e.kernel(kernels.Basic, "ids"), e.buffer(16*48)
		grid := gpu.Grid{Attrs: gpu.LaunchAttrs{Cooperative: true}}
		e.trial(func(o gpu.Order) error { return e.q(1).Submit(o, gpu.Launch(ids, grid, b)) })
		e.eachMode(func(e *env, m gpu.Mode) {
			c := e.commands(m)
			blocks := paramOf(c, [3]uint32{8})
			c.fill(b.All(), []byte{0xff})
			c.barrier()
			c.add(gpu.Launch(ids, grid, b).GridParam(blocks))
			c.end()
			for _, n := range []uint32{8, 48, 4, 0, 16} {
				s, want := e.sem(), slices.Repeat([]uint32{^uint32(0)}, 4*48)
				for i := range n {
					copy(want[4*i:], []uint32{i, 0, 0, 1})
				}
				e.must(e.q(0).Submit(signal(s, 1), gpu.Execute(c.CommandBuffer).With(blocks.Value([3]uint32{n}))))
				e.wait(s, 1)
				if got := e.words(b); !slices.Equal(got, want) {
					e.Errorf("%d blocks: %v, not %v", n, got, want)
				}
			}
			if _, err := ids.Occupancy(1, 0); err != nil {
				return // the driver does not report how many blocks fit
			}
			op := gpu.Execute(c.CommandBuffer).With(blocks.Value([3]uint32{1 << 24}))
			if err := e.q(1).NewStream().Do(op); !errors.Is(err, gpu.ErrArgument) {
				e.Errorf("%d blocks: %v", 1<<24, err)
			}
		})
	}},
	{name: "B103 B199 parameters of nested recordings", kernels: true, run: func(e *env) {
		e.eachMode(func(e *env, m gpu.Mode) {
			const n = 8
			k, inner, outer := e.kernel(kernels.Basic, "index"), e.commands(m), e.commands(m)
			x := inner.binding()
			count, first := paramOf(inner, uint64(n)), paramOf(inner, uint32(5))
			inner.add(gpu.Launch(k, gpu.GridFor(n, n), count, first, uint32(1), x.Range(0, 4*n)))
			inner.end()
			out := outer.binding()
			position := paramOf(outer, uint32(100))
			layer := func(i uint64) gpu.Op { return gpu.Execute(inner.CommandBuffer, out.Range(4*n*i, 4*n)) }
			outer.add(layer(0))
			outer.add(layer(1).With(count.Value(2), first.Value(7)))
			outer.add(layer(2).Param(1, position))
			outer.add(layer(3).Param(1, position).With(count.Value(4)))
			outer.end()
			for _, p := range []uint32{100, 3, 3, 100, 200} {
				b, s := e.buffer(4*n*4), e.sem()
				op := gpu.Execute(outer.CommandBuffer, b.All())
				if p != 100 {
					op = op.With(position.Value(p))
				}
				e.must(e.q(0).Submit(signal(s, 1), gpu.Fill(b.All(), []byte{0})))
				e.must(e.q(0).Submit(between(s, 1, s, 2), op))
				e.wait(s, 2)
				want := []uint32{}
				for _, l := range []struct{ first, count uint32 }{{5, n}, {7, 2}, {p, n}, {p, 4}} {
					for i := range uint32(n) {
						if i < l.count {
							want = append(want, l.first+i)
						} else {
							want = append(want, 0)
						}
					}
				}
				if got := e.words(b); !slices.Equal(got, want) {
					e.Errorf("%d: %v, not %v", p, got, want)
				}
			}
		})
	}},
}
