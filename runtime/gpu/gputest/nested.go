package gputest

import (
	"errors"

	"github.com/puregpu/puregpu/runtime/driver"
	"github.com/puregpu/puregpu/runtime/gpu"
)

var nested = []test{
	{name: "B103 recordings in recordings, after some commands and before others", run: func(e *env) {
		e.eachMode(func(e *env, m gpu.Mode) {
			// The inner recording copies the first 8 bytes of its range to the next 8, and then the
			// first 16 bytes to the next 16. Barriers or lists of commands order the copies.
			for _, barrier := range []bool{false, true} {
				inner := e.commands(m)
				x := inner.binding()
				at := inner.copy(x.Range(8, 8), x.Range(0, 8))
				if barrier {
					inner.barrier()
					inner.copy(x.Range(16, 16), x.Range(0, 16))
				} else {
					inner.copy(x.Range(16, 16), x.Range(0, 16), at)
				}
				inner.end()
				empty := e.commands(m)
				empty.end()

				const n = 8
				to, sum := e.buffer(32*n), e.buffer(32*n)
				outer := e.commands(m)
				nest := func(c *recorder, bindings []gpu.Range, after ...gpu.Command) gpu.Command {
					return outer.add(gpu.Execute(c.CommandBuffer, bindings...), after...)
				}
				all := []gpu.Command{}
				for i := range uint64(n) {
					f := outer.fill(to.Range(32*i, 8), []byte{byte(i) + 1})
					nothing := nest(empty, nil, f)
					all = append(all, nest(inner, []gpu.Range{to.Range(32*i, 32)}, nothing))
				}
				copied := outer.copy(sum.All(), to.All(), all...)
				outer.fill(to.Range(0, 4), []byte{0xff}, nest(empty, nil, copied), nest(empty, nil))
				outer.end()
				for round := range 3 {
					outer.execute(0)
					got := e.read(sum)
					for i, b := range got {
						if b != byte(i/32)+1 {
							e.Fatalf("barrier %t, round %d: byte %d is %d", barrier, round, i, b)
						}
					}
				}
			}
		})
	}},
	{name: "B103 mistakes in the order of recordings change nothing", run: func(e *env) {
		e.eachMode(func(e *env, m gpu.Mode) {
			inner := e.commands(m)
			x := inner.binding()
			inner.fill(x.Range(0, 8), []byte{7})
			open := e.commands(m)
			c := e.commands(m)
			to, gone := e.buffer(8), e.buffer(8)
			e.must(gone.Close())
			f := c.fill(to.All(), []byte{1})
			nested := func(child *gpu.CommandBuffer, r gpu.Range, after ...gpu.Command) error {
				at, err := c.Add(gpu.Execute(child, r), after...)
				if at >= 0 {
					e.Errorf("command %d, and %v", at, err)
				}
				return err
			}
			if err := nested(inner.CommandBuffer, to.All()); !errors.Is(err, gpu.ErrArgument) {
				e.Errorf("a recording that has not ended: %v", err)
			}
			inner.end()
			for what, x := range map[string]struct{ err, kind error }{
				"nothing":               {nested(nil, to.All()), gpu.ErrArgument},
				"itself":                {nested(c.CommandBuffer, to.All()), gpu.ErrArgument},
				"an open one":           {nested(open.CommandBuffer, to.All()), gpu.ErrArgument},
				"no such command":       {nested(inner.CommandBuffer, to.All(), f+1), gpu.ErrArgument},
				"a small binding":       {nested(inner.CommandBuffer, to.Range(0, 4), f), gpu.ErrRange},
				"a buffer that is gone": {nested(inner.CommandBuffer, gone.All(), f), gpu.ErrClosed},
				"a zero range":          {nested(inner.CommandBuffer, gpu.Range{}, f), gpu.ErrArgument},
			} {
				if !errors.Is(x.err, x.kind) {
					e.Errorf("%s: %v", what, x.err)
				}
			}
			if at := c.got(c.Add(gpu.Execute(inner.CommandBuffer, to.All()), f)); at != f+3 {
				// Command f+1 is empty, and comes before the commands of inner. Command f+2 is the
				// fill of inner, and f+3 stands for the whole execution.
				e.Errorf("command %d", at)
			}
			c.end()
			c.execute(0)
			e.holds(to, 7)
		})
	}},
	{name: "B102 B105 End makes one graph for bindings of all kinds of memory", run: func(e *env) {
		const n = 1 << 20 // larger than the memory that End uses in a graph in place of a binding
		d := e.devs[0]
		if c, err := d.NewCommandBuffer(gpu.CommandOptions{Mode: gpu.GraphMode}); errors.Is(err, driver.ErrUnsupported) {
			e.Skip("there are no graphs")
		} else {
			e.must(err)
			e.must(c.Close())
		}
		made := func() uint64 {
			if e.h.Calls == nil {
				return 0
			}
			return e.h.Calls(0, "instantiate")
		}
		for _, size := range []uint64{64, n} {
			c := e.commands(gpu.GraphMode)
			x, y := c.binding(), c.binding()
			f := c.fill(x.Range(0, size), []byte{1, 2})
			u := c.update(x.Range(16, 8), []byte("12345678"), f)
			c.copy(y.Range(8, size), x.Range(0, size), u)
			c.fill(y.Range(0, 8), []byte{3, 0, 0, 0})
			before := made()
			c.end()
			after := made()
			if e.h.Calls != nil && after != before+1 && size == 64 {
				e.Errorf("the end of a recording of %d bytes has made %d graphs", size, after-before)
			}
			host, err := d.Alloc(gpu.HostMem, 2*n)
			e.must(err)
			p, err := d.DefaultPool()
			e.must(err)
			s := e.sem()
			pooled := e.alloc(0, signal(s, 1), p, 2*n)
			e.wait(s, 1)
			want := pattern([]byte{1, 2}, size)
			copy(want[16:], "12345678")
			want = append([]byte{3, 0, 0, 0, 3, 0, 0, 0}, want...)
			for _, from := range []*gpu.Buffer{e.buffer(2 * n), host, pooled} {
				for _, to := range []*gpu.Buffer{e.buffer(2 * n), host, pooled} {
					a, b := from.Range(0, size), to.Range(n, size+8)
					if size == n && to == from { // the source and the destination would overlap
						continue
					}
					if size == n {
						b = to.Range(0, size+8)
					}
					c.execute(0, a, b)
					e.same("what was copied", e.read(to)[b.Offset:b.Offset+b.Size], want)
				}
			}
			e.must(e.q(0).Submit(gpu.Order{}, gpu.Free(pooled)))
			e.must(host.Close())
		}
	}},
}
