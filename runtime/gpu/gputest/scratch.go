package gputest

import (
	"bytes"
	"errors"
	"io"
	"math/rand/v2"

	"github.com/puregpu/puregpu/runtime/driver"
	"github.com/puregpu/puregpu/runtime/gpu"
	"github.com/puregpu/puregpu/runtime/interop"
	"github.com/puregpu/puregpu/testdata/kernels"
)

func (r *recorder) scratch(size uint64) *gpu.Buffer {
	r.e.Helper()
	b, err := r.Scratch(size)
	r.e.must(err)
	return b
}

func (r *recorder) scratchSize() uint64 {
	r.e.Helper()
	n, err := r.ScratchSize()
	r.e.must(err)
	return n
}

// A scratchValue is a scratch buffer of a scratchProgram, with its contents and its last uses.
type scratchValue struct {
	b *gpu.Buffer
	// If input[i] is set, byte i of b equals byte i of the execution's input. Otherwise byte i of b
	// equals data[i].
	data  []byte
	input []bool
	wrote gpu.Command   // the last write
	read  []gpu.Command // the reads since the last write
}

// A scratchProgram is a recording that writes its input and constants to scratch memory, copies
// them between scratch buffers, and finally copies some of the buffers to its output.
type scratchProgram struct {
	*recorder
	in, out *gpu.Buffer // bindings
	values  []*scratchValue
	size    uint64                 // size of the output in bytes
	want    func(in []byte) []byte // returns the output for an input
}

// scratchInput is the size of a scratchProgram's input in bytes.
const scratchInput = 512

// newScratchProgram records a random program. If lists is set, commands name the commands that they
// depend on. Otherwise barriers order the commands. If the argument words is not nil, launches of
// this kernel make some of the copies.
func (e *env) newScratchProgram(m gpu.Mode, r *rand.Rand, lists bool, words *gpu.Kernel) *scratchProgram {
	e.Helper()
	p := &scratchProgram{recorder: e.commands(m)}
	p.in, p.out = p.binding(), p.binding()
	after := func(v *scratchValue, writes bool) []gpu.Command {
		if !lists {
			return nil
		}
		if writes {
			return append(v.read, v.wrote)
		}
		return []gpu.Command{v.wrote}
	}
	used := func(at gpu.Command, dst, src *scratchValue) {
		if dst != nil {
			dst.wrote, dst.read = at, nil
		}
		if src != nil {
			src.read = append(src.read, at)
		}
		if !lists {
			p.barrier()
		}
	}
	fresh := func() *scratchValue {
		n := 4 * (1 + r.Uint64N(256))
		v := &scratchValue{b: p.scratch(n), data: make([]byte, n), input: make([]bool, n)}
		p.values = append(p.values, v)
		return v
	}
	begin := func() {
		v := fresh()
		n := min(v.b.Size(), scratchInput)
		at := p.fill(v.b.All(), []byte{byte(len(p.values))})
		for i := range v.data {
			v.data[i] = byte(len(p.values))
		}
		if !lists {
			p.barrier()
		}
		at = p.copy(v.b.Range(0, n), p.in.Range(0, n), at)
		for i := range n {
			v.input[i] = true
		}
		used(at, v, nil)
	}
	begin()
	native := e.q(0).Submit(gpu.Order{}, gpu.Native("", func(gpu.NativeCall) error { return nil })) == nil
	for range 40 {
		src := p.values[r.IntN(len(p.values))]
		switch k := r.IntN(14); {
		case k == 0:
			begin()
		case k == 1:
			p.got(p.Add(gpu.HostCall(func() error { return nil })))
		case k == 2:
			if at, err := p.Timestamp(); err == nil {
				used(at, nil, nil)
			} else if !errors.Is(err, driver.ErrUnsupported) {
				e.Fatal(err)
			}
		case k == 3: // a part of the contents is overwritten
			n := 1 + r.Uint64N(src.b.Size())
			data := random(int(n), r.Uint64())
			at := p.update(src.b.Range(src.b.Size()-n, n), data, after(src, true)...)
			copy(src.data[src.b.Size()-n:], data)
			clear(src.input[src.b.Size()-n:])
			used(at, src, nil)
		case k < 6 && len(p.values) > 2: // the program does not use this value any more
			i := r.IntN(len(p.values))
			p.values = append(p.values[:i], p.values[i+1:]...)
		default:
			dst := fresh()
			n := min(src.b.Size(), dst.b.Size())
			var at gpu.Command
			switch {
			case words != nil && r.IntN(2) == 0:
				at = p.add(wordsOf(words, n/4, dst.b.Range(0, n), src.b.Range(0, n)), after(src, false)...)
			case native && r.IntN(4) == 0:
				at = p.native(copying(n), []gpu.Range{dst.b.Range(0, n), src.b.Range(0, n)}, after(src, false)...)
			default:
				at = p.copy(dst.b.Range(0, n), src.b.Range(0, n), after(src, false)...)
			}
			copy(dst.data, src.data)
			copy(dst.input, src.input)
			used(at, dst, src)
			if n < dst.b.Size() {
				at = p.fill(dst.b.Range(n, dst.b.Size()-n), []byte{0xee}, after(dst, true)...)
				for i := n; i < dst.b.Size(); i++ {
					dst.data[i] = 0xee
				}
				used(at, dst, nil)
			}
		}
	}
	for _, v := range p.values {
		at := p.copy(p.out.Range(p.size, v.b.Size()), v.b.All(), after(v, false)...)
		used(at, nil, v)
		p.size += v.b.Size()
	}
	values := p.values
	p.want = func(in []byte) (out []byte) {
		for _, v := range values {
			for i, x := range v.data {
				if v.input[i] {
					x = in[i]
				}
				out = append(out, x)
			}
		}
		return out
	}
	return p
}

// scratchSum fills n new scratch buffers of size bytes each, and copies buffer number i to the
// destination (to), at the offset i*size. It returns the number of bytes copied.
func scratchSum(r *recorder, to *gpu.Buffer, n int, size uint64) uint64 {
	for i := range uint64(n) {
		b := r.scratch(size)
		r.fill(b.All(), []byte{byte(i) + 1})
		r.barrier()
		r.copy(to.Range(i*size, size), b.All())
		r.barrier()
	}
	return uint64(n) * size
}

var scratchMemory = []test{
	{name: "B173 scratch memory in use at the same time does not overlap, for any commands in any order", run: func(e *env) {
		e.eachMode(func(e *env, m gpu.Mode) {
			var words *gpu.Kernel
			if e.h.Kernels {
				words = e.kernel(kernels.Basic, "words")
			}
			shared := false
			for seed := range uint64(8) {
				p := e.newScratchProgram(m, rand.New(rand.NewPCG(seed, 9)), seed%2 == 0, words)
				before := p.scratchSize()
				p.end()
				sum := uint64(0)
				for _, v := range p.values {
					sum += (v.b.Size() + gpu.Alignment - 1) / gpu.Alignment * gpu.Alignment
				}
				if n := p.scratchSize(); n != before || n < sum {
					e.Errorf("seed %d: a block of %d bytes, said to be %d before, for %d in use at the end", seed, n, before, sum)
				} else {
					shared = shared || n > sum
				}
				var at []gpu.Point
				var outs []*gpu.Buffer
				var ins [][]byte
				for i := range 6 { // executions with different bindings, without an order between them
					in, out, data, s := e.buffer(scratchInput), e.buffer(p.size), random(scratchInput, uint64(i)), e.sem()
					e.must(e.q(i).Submit(signal(s, 1), gpu.UploadCopy(in.All(), data)))
					e.must(e.q(i).Submit(between(s, 1, s, 2), gpu.Execute(p.CommandBuffer, in.All(), out.All())))
					at, outs, ins = append(at, gpu.Point{Semaphore: s, Value: 2}), append(outs, out), append(ins, data)
				}
				for i, out := range outs {
					e.same("an output", e.read(out, at[i]), p.want(ins[i]))
				}
			}
			if !shared {
				e.Error("no program had a buffer that was not in use at the end")
			}
		})
	}},
	{name: "B173 concurrent commands have separate scratch memory, ordered ones share it", run: func(e *env) {
		e.eachMode(func(e *env, m gpu.Mode) {
			const size = 1000
			for _, x := range []struct {
				what   string
				blocks uint64
				order  func(c *recorder, last gpu.Command) []gpu.Command
			}{
				{"nothing", 4, func(*recorder, gpu.Command) []gpu.Command { return nil }},
				{"a barrier", 1, func(c *recorder, _ gpu.Command) []gpu.Command { c.barrier(); return nil }},
				{"a host call", 1, func(c *recorder, _ gpu.Command) []gpu.Command {
					c.add(gpu.HostCall(func() error { return nil }))
					return nil
				}},
				{"lists", 1, func(_ *recorder, last gpu.Command) []gpu.Command { return []gpu.Command{last} }},
			} {
				c, to := e.commands(m), e.buffer(4*size)
				after := []gpu.Command(nil)
				for i := range uint64(4) {
					b := c.scratch(size)
					f := c.fill(b.All(), []byte{byte(i) + 1}, after...)
					last := c.copy(to.Range(size*i, size), b.All(), f)
					after = x.order(c, last)
				}
				if n := c.scratchSize(); n != 1024*x.blocks {
					e.Errorf("%s between them: %d bytes", x.what, n)
				}
				c.end()
				c.execute(1)
				want := []byte(nil)
				for i := range 4 {
					want = append(want, bytes.Repeat([]byte{byte(i) + 1}, size)...)
				}
				e.same(x.what, e.read(to), want)
			}
		})
	}},
	{name: "B174 overlapping executions do not share scratch memory, in any order of their starts", run: func(e *env) {
		e.eachMode(func(e *env, m gpu.Mode) {
			for _, split := range []bool{false, true} {
				const n, size = 8, 4096
				c := e.commands(m)
				in, out := c.binding(), c.binding()
				b := c.scratch(size)
				f := c.copy(b.All(), in.Range(0, size))
				if split {
					c.add(gpu.HostCall(func() error { return nil }))
				}
				c.copy(out.Range(0, size), b.All(), f)
				c.end()
				s, late := e.sems(n), e.sem()
				var outs []*gpu.Buffer
				for i := range n { // the first execution waits for the last execution, through a Link
					from, to := e.buffer(size), e.buffer(size)
					outs = append(outs, to)
					x := e.sem()
					e.must(e.q(i).Submit(signal(x, 1), gpu.Fill(from.All(), []byte{byte(i) + 1})))
					o := gpu.Order{Wait: points(x, 1), Signal: points(s[i], 1)}
					if i == 0 {
						o.Wait = append(o.Wait, gpu.Point{Semaphore: late, Value: 1})
						s[n-1].Link(1, late, 1)
					}
					e.must(e.q(i).Submit(o, gpu.Execute(c.CommandBuffer, from.All(), to.All())))
				}
				for i, to := range outs {
					e.holds(to, byte(i)+1, gpu.Point{Semaphore: s[i], Value: 1})
				}
			}
		})
	}},
	{name: "B174 overlapping executions are issued ahead of the device", stall: true, run: func(e *env) {
		e.eachMode(func(e *env, m gpu.Mode) {
			c := e.commands(m)
			out := c.binding()
			n := scratchSum(c, out, 4, 256)
			c.end()
			c.execute(0, e.buffer(n).All()) // the first execution may make the graph
			resume, s := e.h.Stall(0), e.sems(4)
			var all []*gpu.Buffer
			func() {
				defer resume()
				for i, x := range s {
					to, err := e.devs[0].Alloc(gpu.DeviceMem, n)
					e.must(err)
					e.Cleanup(func() { to.Close() })
					e.must(e.q(i).Submit(signal(x, 1), gpu.Execute(c.CommandBuffer, to.All())))
					all = append(all, to)
				}
				e.until("all are issued", func() bool { return e.devs[0].Stats().Parked == 0 })
			}()
			for i, to := range all {
				if got := e.read(to, gpu.Point{Semaphore: s[i], Value: 1}); got[0] != 1 || got[n-1] != 4 {
					e.Errorf("execution %d: %d to %d", i, got[0], got[n-1])
				}
			}
		})
	}},
	{name: "B175 a failed execution returns its instance", run: func(e *env) {
		e.eachMode(func(e *env, m gpu.Mode) {
			fails := true
			c := e.commands(m)
			out := c.binding()
			n := scratchSum(c, out, 2, 256)
			c.got(c.Add(gpu.HostCall(func() error {
				if fails {
					fails = false
					return io.ErrNoProgress
				}
				return nil
			})))
			n += 256
			b := c.scratch(256)
			f := c.fill(b.All(), []byte{3})
			c.copy(out.Range(n-256, 256), b.All(), f)
			c.end()
			s, never, to := e.sems(4), e.sem(), [2]*gpu.Buffer{e.buffer(n), e.buffer(n)}
			for i, x := range s {
				o := signal(x, 1)
				if i == 1 {
					o.Wait = points(never, 1)
				}
				if i == 2 {
					// Wait until the first execution has failed in its host call.
					e.failed(s[0], 1, io.ErrNoProgress)
				}
				e.must(e.q(i).Submit(o, gpu.Execute(c.CommandBuffer, to[i%2].All())))
			}
			never.Fail(io.ErrShortWrite)
			e.failed(s[1], 1, io.ErrShortWrite)
			e.wait(s[2], 1)
			e.wait(s[3], 1)
			for _, b := range to {
				if got := e.read(b); got[0] != 1 || got[256] != 2 || got[512] != 3 {
					e.Errorf("%d %d %d", got[0], got[256], got[512])
				}
			}
		})
	}},
	{name: "B176 each nesting takes scratch memory from the outer recording", run: func(e *env) {
		e.eachMode(func(e *env, m gpu.Mode) {
			const size = 512
			inner := e.commands(m)
			x, y := inner.binding(), inner.binding()
			b := inner.scratch(size)
			f := inner.copy(b.All(), x.Range(0, size))
			f = inner.fill(b.Range(0, 8), []byte{0xab}, f)
			inner.copy(y.Range(0, size), b.All(), f)
			inner.end()
			if n := inner.scratchSize(); n != size {
				e.Errorf("the inner recording has %d bytes", n)
			}
			for _, x := range []struct {
				what    string
				barrier bool
				most    uint64
			}{{"at once", false, 4 * size}, {"one after the other", true, 3 * size}} {
				outer := e.commands(m)
				in, out := outer.binding(), outer.binding()
				// Executions of the inner recording bind these buffers.
				middle := []*gpu.Buffer{outer.scratch(size), outer.scratch(size)}
				var ends []gpu.Command
				for i, b := range middle {
					if x.barrier {
						outer.barrier()
					}
					f := outer.copy(b.All(), in.Range(size*uint64(i), size))
					ends = append(ends, outer.add(gpu.Execute(inner.CommandBuffer, b.All(), out.Range(size*uint64(i), size)), f))
				}
				if x.barrier {
					outer.barrier()
					outer.add(gpu.Execute(inner.CommandBuffer, in.Range(size, size), middle[0].All()))
					outer.barrier()
					outer.copy(out.Range(0, 4), middle[0].Range(0, 4))
				} else {
					outer.fill(out.Range(0, 4), []byte{0xab}, ends...)
				}
				if n := outer.scratchSize(); n > x.most || n < 2*size {
					e.Errorf("%s: %d bytes", x.what, n)
				}
				outer.end()
				for round := range uint64(3) {
					from, to, data, s := e.buffer(2*size), e.buffer(2*size), random(2*size, round), e.sem()
					e.must(e.q(0).Submit(signal(s, 1), gpu.UploadCopy(from.All(), data)))
					e.must(e.q(1).Submit(between(s, 1, s, 2), gpu.Execute(outer.CommandBuffer, from.All(), to.All())))
					beside := e.buffer(size) // the inner recording is also executed by itself
					e.must(e.q(2).Submit(between(s, 1, s, 3), gpu.Execute(inner.CommandBuffer, from.Range(size, size), beside.All())))
					e.wait(s, 3)
					want := bytes.Clone(data)
					for i := range uint64(8) {
						want[i], want[size+i] = 0xab, 0xab
					}
					e.settled(e.devs[0])
					e.same(x.what, e.read(to), want)
					e.same("by itself", e.read(beside), want[size:])
				}
			}
		})
	}},
	{name: "B177 the program's scratch memory is shared, bound, and from pools", run: func(e *env) {
		e.eachMode(func(e *env, m gpu.Mode) {
			small, large, bound := e.commands(m), e.commands(m), e.commands(m)
			at := bound.binding()
			var all []*gpu.Buffer
			var sizes []uint64
			for i, c := range []*recorder{small, large, bound} {
				out := c.binding()
				sizes = append(sizes, scratchSum(c, out, 2+i, 256*uint64(1+i)))
				all = append(all, e.buffer(sizes[i]))
			}
			need := max(small.scratchSize(), large.scratchSize(), bound.scratchSize())
			if need != 768 {
				e.Errorf("%d bytes are needed", need)
			}
			pool, err := e.devs[0].DefaultPool()
			e.must(err)
			own := e.buffer(need + 256)
			later := e.fromPool(e.devs[0], pool, need)
			e.must(small.SetScratch(own.Range(256, need)))
			e.must(large.SetScratch(later.All()))
			e.must(bound.SetScratch(at.All()))
			e.settled(e.devs[0])
			allocated := e.devs[0].Stats().Device.Allocated
			for _, c := range []*recorder{small, large, bound} {
				c.end()
			}
			if n := e.devs[0].Stats().Device.Allocated; n != allocated {
				e.Errorf("%d bytes were allocated", n-allocated)
			}
			small.execute(0, all[0].All())
			large.execute(0, all[1].All())
			bound.execute(0, own.Range(0, need), all[2].All())
			bound.execute(1, later.All(), all[2].All())
			for i, b := range all {
				if got := e.read(b); got[0] != 1 || got[len(got)-1] != byte(2+i) {
					e.Errorf("recording %d: %d to %d", i, got[0], got[len(got)-1])
				}
			}
			used := e.read(own)
			if used[0] == 0 || used[256] == 0 {
				e.Error("the memory was not used")
			}
			if err := e.q(0).Submit(gpu.Order{}, gpu.Execute(bound.CommandBuffer, own.Range(0, need-256), all[2].All())); !errors.Is(err, gpu.ErrRange) {
				e.Errorf("a binding that is too small: %v", err)
			}
			if err := e.q(0).Submit(gpu.Order{}, gpu.Execute(bound.CommandBuffer, own.Range(8, need), all[2].All())); !errors.Is(err, gpu.ErrArgument) {
				e.Errorf("a binding that is not aligned: %v", err)
			}
			outer := e.commands(m) // executes bound: the binding is the scratch buffer mine
			mine := outer.scratch(need)
			outer.add(gpu.Execute(bound.CommandBuffer, mine.All(), all[2].All()))
			outer.end()
			outer.execute(2)
			e.must(e.q(0).Submit(gpu.Order{}, gpu.Free(later)))
			s := e.sem()
			e.must(e.q(0).Submit(signal(s, 1), gpu.Execute(large.CommandBuffer, all[1].All())))
			e.failed(s, 1, gpu.ErrUnallocated)
			// These ranges are too small, because the recording needs 512 bytes.
			for i, b := range []gpu.Range{own.Range(0, 256), own.Range(256, 256)} {
				c := e.commands(m)
				to := c.scratch(512)
				c.fill(to.All(), []byte{1})
				e.must(c.SetScratch(b))
				if err := c.End(); !errors.Is(err, gpu.ErrRange) {
					e.Errorf("%d: memory that is too small: %v", i, err)
				}
			}
		})
	}},
	{name: "B178 scratch buffers are refused elsewhere, and mistakes change nothing", run: func(e *env) {
		e.eachMode(func(e *env, m gpu.Mode) {
			remain := func(n int) {
				e.Helper()
				e.until("others are freed", func() bool { return e.devs[0].Stats().Buffers == n })
			}
			remain(0)
			c, other, to := e.commands(m), e.commands(m), e.buffer(64)
			binds := other
			bound := binds.binding()
			binds.fill(bound.Range(0, 64), []byte{1})
			binds.end()
			other = e.commands(m)
			b := c.scratch(64)
			if b.Ptr() != 0 || b.Bytes() != nil || b.Size() != 64 {
				e.Errorf("it is at %#x, with %d bytes", b.Ptr(), b.Size())
			}
			gone := e.buffer(256)
			e.must(gone.Close())
			_, otherFill := other.Add(gpu.Fill(b.All(), []byte{1}))
			_, otherNest := other.CommandBuffer.Add(gpu.Execute(c.CommandBuffer)) // c has not ended
			_, othersBinding := other.CommandBuffer.Add(gpu.Execute(binds.CommandBuffer, b.All()))
			_, tooMuch := c.Scratch(1 << 63)
			_, beyond := c.Add(gpu.Fill(b.Range(60, 8), []byte{1}))
			_, unaligned := c.Add(gpu.Fill(b.Range(2, 4), []byte{1, 2, 3, 4}))
			_, over := e.devs[0].NewPool(gpu.PoolOptions{Over: b})
			_, exported := interop.ExportMemory(b)
			for what, x := range map[string]struct{ err, kind error }{
				"a fill":               {e.q(0).Submit(gpu.Order{}, gpu.Fill(b.All(), []byte{1})), gpu.ErrArgument},
				"a copy":               {e.q(0).Submit(gpu.Order{}, gpu.Copy(to.All(), b.All())), gpu.ErrArgument},
				"a download":           {e.q(0).Submit(gpu.Order{}, gpu.Download(make([]byte, 64), b.All())), gpu.ErrArgument},
				"a binding":            {e.q(0).Submit(gpu.Order{}, gpu.Execute(binds.CommandBuffer, b.All())), gpu.ErrArgument},
				"another's nested":     {othersBinding, gpu.ErrArgument},
				"a free":               {e.q(0).Submit(gpu.Order{}, gpu.Free(b)), gpu.ErrArgument},
				"a pool over it":       {over, gpu.ErrArgument},
				"an export":            {exported, gpu.ErrArgument},
				"another recording":    {otherFill, gpu.ErrArgument},
				"an open recording":    {otherNest, gpu.ErrArgument},
				"too much":             {tooMuch, driver.ErrOutOfMemory},
				"beyond its end":       {beyond, gpu.ErrRange},
				"not aligned":          {unaligned, gpu.ErrArgument},
				"scratch of its own":   {c.SetScratch(b.All()), gpu.ErrArgument},
				"scratch of nothing":   {c.SetScratch(gpu.Range{}), gpu.ErrArgument},
				"scratch that is gone": {c.SetScratch(gone.All()), gpu.ErrClosed},
				"scratch out of line":  {c.SetScratch(to.Range(8, 8)), gpu.ErrArgument},
				"scratch out of range": {c.SetScratch(to.Range(0, 65)), gpu.ErrRange},
				"another's binding":    {c.SetScratch(bound.All()), gpu.ErrArgument},
			} {
				if !errors.Is(x.err, x.kind) {
					e.Errorf("%s: %v", what, x.err)
				}
			}
			nothing, unused := c.scratch(0), c.scratch(1<<62)
			c.fill(nothing.All(), []byte{1})
			e.must(unused.Close())
			f := c.fill(b.All(), []byte{5})
			c.copy(to.All(), b.All(), f)
			remain(1)
			before := e.devs[0].Stats()
			c.end()
			if st := e.devs[0].Stats(); st.Buffers != before.Buffers+1 || st.Device.Live != before.Device.Live+256 {
				e.Errorf("from %d buffers and %d bytes to %d and %d", before.Buffers, before.Device.Live, st.Buffers, st.Device.Live)
			}
			if _, err := c.Scratch(1); !errors.Is(err, gpu.ErrArgument) {
				e.Errorf("after the end: %v", err)
			}
			if err := c.SetScratch(to.All()); !errors.Is(err, gpu.ErrArgument) {
				e.Errorf("after the end: %v", err)
			}
			if n := c.scratchSize(); n != 256 {
				e.Errorf("%d bytes", n)
			}
			if err := e.q(0).Submit(gpu.Order{}, gpu.Fill(b.All(), []byte{1})); !errors.Is(err, gpu.ErrArgument) {
				e.Errorf("after the end: %v", err)
			}
			c.execute(0)
			e.holds(to, 5)
			e.must(c.Close())
			remain(1)

			big := e.commands(m) // needs more memory than any device has
			for range 3 {
				b := big.scratch(1 << 61)
				big.fill(b.Range(0, 8), []byte{1})
			}
			if err := big.End(); !errors.Is(err, driver.ErrOutOfMemory) {
				e.Errorf("more scratch memory than any device has: %v", err)
			}
			if err := e.q(0).Submit(gpu.Order{}, gpu.Execute(big.CommandBuffer)); !errors.Is(err, driver.ErrOutOfMemory) {
				e.Errorf("Execute of a recording whose End has failed: %v", err)
			}
		})
	}},
}
