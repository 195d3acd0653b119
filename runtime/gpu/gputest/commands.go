package gputest

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"

	"github.com/puregpu/puregpu/runtime/driver"
	"github.com/puregpu/puregpu/runtime/gpu"
	"github.com/puregpu/puregpu/testdata/kernels"
)

// eachMode runs a subtest with each mode of command buffers that the device supports.
func (e *env) eachMode(run func(e *env, m gpu.Mode)) {
	e.Helper()
	for _, x := range []struct {
		name string
		mode gpu.Mode
	}{{"auto", gpu.AutoMode}, {"stream", gpu.StreamMode}, {"graph", gpu.GraphMode}} {
		c, err := e.devs[0].NewCommandBuffer(gpu.CommandOptions{Mode: x.mode})
		if x.mode == gpu.GraphMode && errors.Is(err, driver.ErrUnsupported) {
			continue
		}
		e.must(err)
		e.must(c.Close())
		e.sub(x.name, func(e *env) { run(e, x.mode) })
	}
}

// commands makes a command buffer of the first device.
func (e *env) commands(m gpu.Mode) *recorder {
	e.Helper()
	c, err := e.devs[0].NewCommandBuffer(gpu.CommandOptions{Mode: m})
	e.must(err)
	e.Cleanup(func() { e.must(c.Close()) })
	return &recorder{c, e}
}

// A recorder is a command buffer with methods that end the test on an error.
type recorder struct {
	*gpu.CommandBuffer
	e *env
}

func (r *recorder) got(at gpu.Command, err error) gpu.Command {
	r.e.Helper()
	r.e.must(err)
	return at
}

func (r *recorder) fill(dst gpu.Range, pattern []byte, after ...gpu.Command) gpu.Command {
	r.e.Helper()
	return r.add(gpu.Fill(dst, pattern), after...)
}

func (r *recorder) copy(dst, src gpu.Range, after ...gpu.Command) gpu.Command {
	r.e.Helper()
	return r.add(gpu.Copy(dst, src), after...)
}

func (r *recorder) update(dst gpu.Range, data []byte, after ...gpu.Command) gpu.Command {
	r.e.Helper()
	return r.add(gpu.UploadCopy(dst, data), after...)
}

func (r *recorder) add(op gpu.Op, after ...gpu.Command) gpu.Command {
	r.e.Helper()
	return r.got(r.Add(op, after...))
}

func (r *recorder) barrier() {
	r.e.Helper()
	r.add(gpu.Barrier())
}

func (r *recorder) binding() *gpu.Buffer {
	r.e.Helper()
	b, err := r.Binding()
	r.e.must(err)
	return b
}

func (r *recorder) end() {
	r.e.Helper()
	r.e.must(r.End())
}

// execute executes the recording on queue q, and waits for it.
func (r *recorder) execute(q int, bindings ...gpu.Range) {
	r.e.Helper()
	s := r.e.sem()
	r.e.must(r.e.q(q).Submit(signal(s, 1), gpu.Execute(r.CommandBuffer, bindings...)))
	r.e.wait(s, 1)
}

// pattern returns n bytes that repeat p.
func pattern(p []byte, n uint64) []byte { return bytes.Repeat(p, int(n)/len(p)) }

// indexOf and wordsOf return launches of the kernels index and words in kernels.Basic, with a
// thread for each of n elements.
func indexOf(k *gpu.Kernel, n uint64, first, step uint32, out gpu.Range) gpu.Op {
	return gpu.Launch(k, gpu.GridFor(int(n), 64), n, first, step, out)
}

func wordsOf(k *gpu.Kernel, n uint64, dst, src gpu.Range) gpu.Op {
	return gpu.Launch(k, gpu.GridFor(int(n), 64), n, dst, src)
}

// saxpyOf returns a launch of the kernel in kernels.Saxpy, which adds a times x to y.
func saxpyOf(k *gpu.Kernel, n uint64, a float32, x, y gpu.Range) gpu.Op {
	return gpu.Launch(k, gpu.GridFor(int(n), 64), n, a, x, y)
}

// floats returns the bytes of float32 numbers, in little-endian order.
func floats(f ...float32) (b []byte) {
	for _, x := range f {
		b = binary.LittleEndian.AppendUint32(b, math.Float32bits(x))
	}
	return b
}

var commandBuffers = []test{
	{name: "B61 B102 an empty command buffer passes its order on", run: func(e *env) {
		e.eachMode(func(e *env, m gpu.Mode) {
			c, host, s := e.commands(m), e.sem(), e.sem()
			if e.devs[0].Stats().Buffers != 0 {
				e.Error("it has buffers")
			}
			c.end()
			e.must(e.q(0).Submit(between(host, 1, s, 1), gpu.Execute(c.CommandBuffer)))
			e.must(e.q(0).Submit(between(s, 1, s, 2), gpu.Execute(c.CommandBuffer)))
			e.must(e.q(1).Submit(gpu.Order{}, gpu.Execute(c.CommandBuffer)))
			e.at(s, 0)
			e.must(host.Signal(1))
			e.wait(s, 2)
		})
	}},
	{name: "B99 fills of all widths change nothing else", run: func(e *env) {
		e.eachMode(func(e *env, m gpu.Mode) {
			b, c := e.buffer(8192), e.commands(m)
			want := make([]byte, 8192)
			at := uint64(16)
			for _, p := range [][]byte{{0xa1}, {0xb1, 0xb2}, {0xc1, 0xc2, 0xc3, 0xc4}, {1, 2, 3, 4, 1, 2, 3, 4}, {1, 2, 3, 4, 5, 6, 7, 8}} {
				w := uint64(len(p))
				for _, n := range []uint64{0, 1, 2, 3, 5, 8, 17, 33} {
					for _, shift := range []uint64{0, w, 3 * w} {
						off := at + shift
						off += (w - off%w) % w
						c.fill(b.Range(off, n*w), p)
						copy(want[off:], pattern(p, n*w))
						at = off + n*w + 1
					}
				}
			}
			c.end()
			c.execute(0)
			e.same("the buffer", e.read(b), want)
		})
	}},
	{name: "B99 fills of small buffers, whole and in part", run: func(e *env) {
		e.eachMode(func(e *env, m gpu.Mode) {
			c, bytes := e.commands(m), []byte{0xa1, 0xb2, 0xc3, 0xd4, 0xe5, 0xf6, 0x17, 0x28}
			var all []*gpu.Buffer
			var want [][]byte
			for _, x := range []struct{ width, size, offset, n uint64 }{
				{1, 1, 0, 1}, {1, 5, 0, 5}, {1, 16, 0, 1}, {1, 16, 0, 3}, {1, 16, 0, 8}, {1, 16, 2, 8}, {1, 16, 15, 1},
				{2, 2, 0, 2}, {2, 16, 0, 8}, {2, 16, 0, 10}, {2, 16, 2, 8}, {2, 16, 14, 2},
				{4, 4, 0, 4}, {4, 16, 0, 8}, {4, 16, 0, 12}, {4, 16, 4, 8}, {4, 16, 12, 4},
				{8, 8, 0, 8}, {8, 24, 8, 8}, {8, 24, 8, 16},
			} {
				b, data := e.buffer(x.size), make([]byte, x.size)
				c.fill(b.Range(x.offset, x.n), bytes[:x.width])
				copy(data[x.offset:], pattern(bytes[:x.width], x.n))
				all, want = append(all, b), append(want, data)
			}
			c.end()
			c.execute(0)
			for i, b := range all {
				e.same("a buffer", e.read(b), want[i])
			}
		})
	}},
	{name: "B99 fills of all sizes and alignments", run: func(e *env) {
		e.eachMode(func(e *env, m gpu.Mode) {
			for _, p := range [][]byte{{7}, {7, 8}, {7, 8, 9, 10}, {7, 8, 9, 10, 11, 12, 13, 14}} {
				w := uint64(len(p))
				b, c, want := e.buffer(1<<20), e.commands(m), make([]byte, 1<<20)
				at := uint64(0)
				for _, n := range []uint64{64, 127, 4096, 65536 / w, 65536/w + 1} {
					at += w
					c.fill(b.Range(at, n*w), p)
					copy(want[at:], pattern(p, n*w))
					at += n*w + w
				}
				c.end()
				c.execute(1)
				e.same("the buffer", e.read(b), want)
			}
		})
	}},
	{name: "B100 updates and copies, whole, in part, and large", run: func(e *env) {
		e.eachMode(func(e *env, m gpu.Mode) {
			const n = 300_000
			a, b, c := e.buffer(n), e.buffer(n), e.commands(m)
			// The slice small begins at an odd offset of its array.
			data, small := random(n, 3), []byte{0, 1, 2, 3, 4, 5}[1:]
			want := slices.Clone(data)
			c.update(a.All(), data)
			c.update(b.Range(7, 5), small)
			c.update(b.Range(40, 0), nil)
			clear(data) // the recording has a copy
			copy(small, []byte{9, 9, 9, 9, 9})
			c.barrier()
			wantB := make([]byte, n)
			copy(wantB[7:], []byte{1, 2, 3, 4, 5})
			c.copy(b.Range(100, 200_001), a.Range(33, 200_001))
			copy(wantB[100:], want[33:33+200_001])
			c.copy(b.Range(250_001, 1), a.Range(2, 1))
			wantB[250_001] = want[2]
			c.copy(b.Range(5, 0), a.Range(6, 0))
			for i := range uint64(16) {
				at := 260_000 + i*100 + i
				c.copy(b.Range(at, i), a.Range(i*3, i))
				copy(wantB[at:at+i], want[i*3:])
			}
			c.end()
			c.execute(2)
			e.same("what was updated", e.read(a), want)
			e.same("what was copied", e.read(b), wantB)
		})
	}},
	{name: "B103 B104 barriers, leading, repeated and trailing", run: func(e *env) {
		e.eachMode(func(e *env, m gpu.Mode) {
			a, b, x, c := e.buffer(4096), e.buffer(4096), e.buffer(4096), e.commands(m)
			c.barrier()
			c.barrier()
			c.fill(a.All(), []byte{1})
			c.barrier()
			c.barrier()
			c.copy(b.All(), a.All())
			c.copy(x.All(), a.All())
			c.barrier()
			c.fill(a.All(), []byte{2})
			c.fill(b.Range(0, 2048), []byte{3, 4, 5, 6, 7, 8, 9, 10})
			c.barrier()
			c.copy(x.Range(0, 1024), b.Range(0, 1024))
			c.barrier()
			c.barrier()
			c.end()
			for range 3 {
				c.execute(0)
				e.holds(a, 2)
				got := e.read(x)
				e.same("the beginning", got[:1024], pattern([]byte{3, 4, 5, 6, 7, 8, 9, 10}, 1024))
				e.same("the end", got[1024:], pattern([]byte{1}, 3072))
			}
		})
	}},
	{name: "B103 the order of commands without barriers", run: func(e *env) {
		e.eachMode(func(e *env, m gpu.Mode) {
			a, b, x, c := e.buffer(4096), e.buffer(4096), e.buffer(64), e.commands(m)
			f := c.fill(a.All(), []byte{1, 2, 3, 4, 5, 6, 7, 8})
			g := c.fill(b.Range(0, 64), []byte{9})
			// An empty fill keeps the order: a command that comes after the fill also comes after
			// f.
			nothing := c.fill(x.Range(0, 0), []byte{1}, f)
			h := c.copy(b.Range(64, 4032), a.Range(64, 4032), nothing)
			c.copy(a.Range(0, 64), b.Range(0, 64), f, g, h, h)
			c.barrier()
			k := c.copy(x.Range(0, 32), a.Range(0, 32), f)
			c.fill(x.Range(8, 8), []byte{1}, k, f, g)
			c.end()
			c.execute(0)
			want := pattern([]byte{1, 2, 3, 4, 5, 6, 7, 8}, 4096)
			copy(want, pattern([]byte{9}, 64))
			e.same("a", e.read(a), want)
			e.same("b", e.read(b), want)
			got := pattern([]byte{9}, 64)
			copy(got[8:], pattern([]byte{1}, 8))
			clear(got[32:])
			e.same("x", e.read(x), got)
		})
	}},
	{name: "B103 more commands than a new graph has room for, repeatedly", run: func(e *env) {
		e.eachMode(func(e *env, m gpu.Mode) {
			const n = 129
			b, c := e.buffer(4*n), e.commands(m)
			for i := range uint64(n) {
				c.fill(b.Range(4*i, 4), []byte{byte(i), 1, 2, 3})
			}
			c.end()
			s := e.sem()
			for i := range uint64(16) {
				e.must(e.q(0).Submit(between(s, 2*i, s, 2*i+1), gpu.Fill(b.All(), []byte{0xff})))
				e.must(e.q(0).Submit(between(s, 2*i+1, s, 2*i+2), gpu.Execute(c.CommandBuffer)))
			}
			for i, w := range e.words(b, gpu.Point{Semaphore: s, Value: 32}) {
				if w != 0x03020100|uint32(byte(i)) {
					e.Fatalf("word %d is %#x", i, w)
				}
			}
		})
	}},
	{name: "B102 512 commands, and 10,000", run: func(e *env) {
		e.eachMode(func(e *env, m gpu.Mode) {
			for _, n := range []uint64{512, 10_000} {
				b, c := e.buffer(4*n), e.commands(m)
				for i := range n {
					c.fill(b.Range(4*i, 4), binary.LittleEndian.AppendUint32(nil, uint32(i+1)))
					if i%100 == 99 {
						c.barrier()
					}
				}
				c.end()
				c.execute(0)
				for i, w := range e.words(b) {
					if w != uint32(i+1) {
						e.Fatalf("%d: word %d is %d", n, i, w)
					}
				}
			}
		})
	}},
	{name: "B74 many recordings, each executed as soon as it is made", run: func(e *env) {
		const n = 200
		e.eachMode(func(e *env, m gpu.Mode) {
			b, slots, chain, s := e.buffer(64), e.buffer(64*n), e.buffer(64*(n+1)), e.sems(2)
			data := random(64, 1)
			e.must(e.q(0).Submit(signal(s[1], 1), gpu.UploadCopy(chain.Range(0, 64), data)))
			run := func(i uint64, s *gpu.Semaphore, v uint64, record func(c *recorder)) {
				c, err := e.devs[0].NewCommandBuffer(gpu.CommandOptions{Mode: m})
				e.must(err)
				r := &recorder{c, e}
				record(r)
				r.end()
				e.must(e.q(int(i)).Submit(between(s, v, s, v+1), gpu.Execute(c)))
				e.must(c.Close())
			}
			for i := range uint64(n) { // the host submits all executions without waiting
				run(i, s[0], i, func(c *recorder) {
					f := c.fill(b.All(), []byte{byte(i)})
					c.copy(slots.Range(64*i, 64), b.All(), f)
				})
				run(i+1, s[1], i+1, func(c *recorder) { c.copy(chain.Range(64*(i+1), 64), chain.Range(64*i, 64)) })
			}
			want := make([]byte, 0, 64*n)
			for i := range n {
				want = append(want, pattern([]byte{byte(i)}, 64)...)
			}
			e.same("what was filled", e.read(slots, gpu.Point{Semaphore: s[0], Value: n}), want)
			e.same("what was copied", e.read(chain, gpu.Point{Semaphore: s[1], Value: n + 1}), pattern(data, 64*(n+1)))
		})
	}},
	{name: "B107 constants and bindings of launches", kernels: true, run: func(e *env) {
		e.eachMode(func(e *env, m gpu.Mode) {
			const n = 1000
			index, words, ids := e.kernel(kernels.Basic, "index"), e.kernel(kernels.Basic, "words"), e.kernel(kernels.Basic, "ids")
			a, b, x, c := e.buffer(4*n), e.buffer(4*n+64), e.buffer(30*16), e.commands(m)
			first := gpu.BytesOf([]uint32{100})
			args := []any{uint64(n), first, uint32(3), a.All()}
			c.add(gpu.Launch(index, gpu.GridFor(n, 64), args...))
			clear(first)
			clear(args)
			c.add(bind[indexArgs](e, index).Launch(gpu.GridFor(0, 256), indexArgs{N: 9, Out: a.All()}))
			c.add(gpu.Launch(ids, gpu.Grid{Blocks: [3]uint32{5, 3, 2}, Threads: [3]uint32{4, 2, 3}}, x.Ptr()))
			c.barrier()
			c.add(wordsOf(words, n, b.Range(64, 4*n), a.All()))
			c.end()
			for range 2 {
				c.execute(1)
				got := e.words(b)
				for i, w := range got[16:] {
					if w != uint32(100+3*i) {
						e.Fatalf("word %d is %d", i, w)
					}
				}
				w := e.words(x)
				for i := range uint32(30) {
					if got, want := w[4*i:4*i+4], []uint32{i % 5, i / 5 % 3, i / 15, 24}; !slices.Equal(got, want) {
						e.Errorf("block %d: %v, want %v", i, got, want)
					}
				}
			}
		})
	}},
	{name: "B107 pipelines of launches", kernels: true, run: func(e *env) {
		e.eachMode(func(e *env, m gpu.Mode) {
			const n = 4096
			words := e.kernel(kernels.Basic, "words")
			var bufs []*gpu.Buffer
			for range 9 {
				bufs = append(bufs, e.buffer(4*n))
			}
			c := e.commands(m)
			in := c.binding()
			last := c.copy(bufs[0].All(), in.Range(0, 4*n))
			for i := range 8 {
				if i%2 == 0 {
					last = c.add(wordsOf(words, n, bufs[i+1].All(), bufs[i].All()), last)
				} else {
					c.barrier()
					last = c.add(wordsOf(words, n, bufs[i+1].All(), bufs[i].All()))
				}
			}
			c.end()
			for i := range uint64(3) {
				input, s := e.buffer(4*n), e.sem()
				data := random(4*n, i)
				e.must(e.q(0).Submit(signal(s, 1), gpu.UploadCopy(input.All(), data)))
				e.must(e.q(1).Submit(between(s, 1, s, 2), gpu.Execute(c.CommandBuffer, input.All())))
				e.same("what comes out", e.read(bufs[8], gpu.Point{Semaphore: s, Value: 2}), data)
			}
		})
	}},
	{name: "B102 a recording in flight is executed with other bindings", run: func(e *env) {
		e.eachMode(func(e *env, m gpu.Mode) {
			const n = 64
			c := e.commands(m)
			dst, src := c.binding(), c.binding()
			all := c.copy(dst.Range(0, 256), src.Range(0, 256))
			c.fill(dst.Range(8, 16), []byte{1, 2, 3, 4, 5, 6, 7, 8}, all)
			c.fill(dst.Range(64, 4), []byte{7, 7}, all)
			c.end()
			from, to, s, host := e.buffer(256*n), e.buffer(256*n), e.sems(4), e.sem()
			data := random(256*n, 8)
			e.must(e.q(0).Submit(signal(host, 1), gpu.UploadCopy(from.All(), data)))
			e.wait(host, 1)
			want := slices.Clone(data)
			for i := range uint64(n) {
				copy(want[256*i+8:], pattern([]byte{1, 2, 3, 4, 5, 6, 7, 8}, 16))
				copy(want[256*i+64:], []byte{7, 7, 7, 7})
				q := int(i % 4)
				bindings := []gpu.Range{to.Range(256*i, 256), from.Range(256*i, 256)}
				o := gpu.Order{Wait: points(host, 1+i%2), Signal: points(s[q], i+1)}
				if i >= 4 {
					o.Wait = append(o.Wait, gpu.Point{Semaphore: s[q], Value: i - 3})
				}
				e.must(e.q(q).Submit(o, gpu.Execute(c.CommandBuffer, bindings...)))
				clear(bindings)
			}
			e.must(host.Signal(2))
			for q := range uint64(4) {
				e.wait(s[q], n-3+q)
			}
			e.same("what was copied", e.read(to), want)
		})
	}},
	{name: "B102 B107 the same launch with other bindings, from many goroutines", kernels: true, run: func(e *env) {
		e.eachMode(func(e *env, m gpu.Mode) {
			const rounds, n = 32, 64
			index, words := e.kernel(kernels.Basic, "index"), e.kernel(kernels.Basic, "words")
			c, fixed := e.commands(m), e.buffer(4*n)
			dst := c.binding()
			i := c.add(indexOf(index, n, 5, 2, dst.Range(0, 4*n)))
			c.add(wordsOf(words, n, dst.Range(4*n, 4*n), dst.Range(0, 4*n)), i)
			c.add(wordsOf(words, n, dst.Range(8*n, 4*n), fixed.All()))
			c.end()
			to := e.buffer(4 * rounds * 12 * n)
			var wg sync.WaitGroup
			var errs [4]error
			s := e.sems(4)
			for g := range uint64(4) {
				wg.Go(func() {
					for i := range uint64(rounds) {
						at := (g*rounds + i) * 12 * n
						if err := e.q(int(g+i/8)).Submit(between(s[g], i, s[g], i+1), gpu.Execute(c.CommandBuffer, to.Range(at, 12*n))); err != nil {
							errs[g] = err
							return
						}
					}
				})
			}
			wg.Wait()
			e.must(errors.Join(errs[:]...))
			for g := range s {
				e.wait(s[g], rounds)
			}
			for i, w := range e.words(to) {
				want := uint32(5 + 2*(i%n))
				if i%(3*n) >= 2*n {
					want = 0
				}
				if w != want {
					e.Fatalf("word %d is %d, want %d", i, w, want)
				}
			}
		})
	}},
	{name: "B59 B102 B107 launches with bindings and without, after the caller has closed the buffers", kernels: true, run: func(e *env) {
		e.eachMode(func(e *env, m gpu.Mode) {
			const n = 100
			x, err := e.devs[0].Load(kernels.Basic)
			e.must(err)
			words, err := x.Kernel("words")
			e.must(err)
			fixed, out, got, c := e.buffer(4*n), e.buffer(8*n), e.buffer(16*n), e.commands(m)
			dst, src := c.binding(), c.binding()
			c.add(wordsOf(words, n, dst.Range(0, 4*n), fixed.All()))
			c.add(wordsOf(words, n, out.Range(0, 4*n), src.Range(0, 4*n)))
			c.add(wordsOf(words, n, dst.Range(4*n, 4*n), src.Range(4*n, 4*n)))
			c.add(wordsOf(words, n, out.Range(4*n, 4*n), fixed.All()))
			c.end()
			e.must(x.Close())
			for i := range uint64(3) {
				to, from, host, s := e.buffer(8*n+64), e.buffer(8*n+64), e.sem(), e.sem()
				data, in := random(4*n, i), random(8*n, 10+i)
				e.must(e.q(0).Submit(signal(s, 1), gpu.UploadCopy(fixed.All(), data)))
				e.must(e.q(0).Submit(between(s, 1, s, 2), gpu.UploadCopy(from.Range(32, 8*n), in)))
				bindings := []gpu.Range{to.Range(16*i, 8*n), from.Range(32, 8*n)}
				order := gpu.Order{Wait: []gpu.Point{{Semaphore: host, Value: 1}, {Semaphore: s, Value: 2}}, Signal: points(s, 3)}
				e.must(e.q(1).Submit(order, gpu.Execute(c.CommandBuffer, bindings...)))
				clear(bindings)
				clear(order.Wait)
				clear(order.Signal)
				e.must(e.q(2).Submit(between(s, 3, s, 4), gpu.Copy(got.Range(0, 8*n), to.Range(16*i, 8*n))))
				e.must(e.q(2).Submit(between(s, 4, s, 5), gpu.Copy(got.Range(8*n, 8*n), out.All())))
				e.must(to.Close())
				e.must(from.Close())
				if i == 2 {
					e.must(fixed.Close())
					e.must(c.Close())
				}
				e.must(host.Signal(1))
				e.same("what was written", e.read(got, gpu.Point{Semaphore: s, Value: 5}), slices.Concat(data, in[4*n:], in[:4*n], data))
			}
		})
	}},
	{name: "B102 B107 several launches, repeatedly, each on the results before it", kernels: true, run: func(e *env) {
		e.eachMode(func(e *env, m gpu.Mode) {
			const n, rounds = 100, 8
			k, c := e.kernel(kernels.Saxpy, "saxpy"), e.commands(m)
			x, y := c.binding(), c.binding()
			f := c.add(saxpyOf(k, n, 1, x.Range(0, 4*n), y.Range(0, 4*n)))
			g := c.add(saxpyOf(k, n, 2, y.Range(0, 4*n), x.Range(0, 4*n)), f)
			c.add(saxpyOf(k, n, -1, x.Range(0, 4*n), y.Range(0, 4*n)), g)
			c.end()
			b, s, v := e.buffer(3*4*n), e.sem(), uint64(1)
			var model [3][n]float32
			for i := range model {
				for j := range n {
					model[i][j] = float32(i*j + 1)
				}
			}
			e.must(e.q(0).Submit(signal(s, 1), gpu.UploadCopy(b.All(), floats(slices.Concat(model[0][:], model[1][:], model[2][:])...))))
			for i := range uint64(rounds) {
				p, q := i%3, (i+1+i/3%2)%3
				e.must(e.q(int(i)).Submit(between(s, v, s, v+1), gpu.Execute(c.CommandBuffer, b.Range(4*n*p, 4*n), b.Range(4*n*q, 4*n))))
				v++
				for j := range n {
					x, y := &model[p][j], &model[q][j]
					*y += *x
					*x += 2 * *y
					*y -= *x
				}
			}
			e.same("what came out", e.read(b, gpu.Point{Semaphore: s, Value: v}), floats(slices.Concat(model[0][:], model[1][:], model[2][:])...))
		})
	}},
	{name: "B107 many blocks in a recording", kernels: true, run: func(e *env) {
		e.eachMode(func(e *env, m gpu.Mode) {
			const n = 1 << 19
			index, ids := e.kernel(kernels.Basic, "index"), e.kernel(kernels.Basic, "ids")
			b, grid, c := e.buffer(4*n), [3]uint32{32, 16, 8}, e.commands(m)
			x := c.binding()
			c.add(gpu.Launch(index, gpu.GridFor(n, 8), uint64(n), uint32(3), uint32(5), b))
			c.add(gpu.Launch(ids, gpu.Grid{Blocks: grid, Threads: [3]uint32{2, 1, 1}}, x.Range(0, 32*16*8*16)))
			c.end()
			out := e.buffer(32 * 16 * 8 * 16)
			c.execute(0, out.All())
			for i, w := range e.words(b) {
				if w != uint32(3+5*i) {
					e.Fatalf("word %d is %d", i, w)
				}
			}
			w := e.words(out)
			for i := range grid[0] * grid[1] * grid[2] {
				if got, want := w[4*i:4*i+4], []uint32{i % 32, i / 32 % 16, i / 512, 2}; !slices.Equal(got, want) {
					e.Fatalf("block %d: %v, want %v", i, got, want)
				}
			}
		})
	}},
	{name: "B59 B154 several recordings in a stream, one after the other", stall: true, run: func(e *env) {
		e.eachMode(func(e *env, m gpu.Mode) {
			b, host := e.buffer(64), e.sem()
			swap, fill, call := e.commands(m), e.commands(m), e.commands(m)
			swap.copy(b.Range(16, 8), b.Range(0, 8))
			swap.barrier()
			swap.copy(b.Range(0, 8), b.Range(8, 8))
			swap.barrier()
			swap.copy(b.Range(8, 8), b.Range(16, 8))
			fill.fill(b.Range(0, 4), []byte{7})
			fill.fill(b.Range(12, 4), []byte{8})
			calls := 0
			call.got(call.Add(gpu.HostCall(func() error { calls++; return nil })))
			call.fill(b.Range(24, 1), []byte{9})
			all := []*gpu.CommandBuffer{fill.CommandBuffer, swap.CommandBuffer, call.CommandBuffer, fill.CommandBuffer, swap.CommandBuffer, swap.CommandBuffer, call.CommandBuffer}
			for _, c := range []*recorder{swap, fill, call} {
				c.end()
			}
			st := e.q(0).NewStream()
			e.must(st.After(host.At(1)))
			for _, c := range all {
				e.must(st.Do(gpu.Execute(c)))
			}
			for _, c := range all {
				e.must(c.Close())
			}
			clear(all)
			resume := e.h.Stall(0)
			e.must(host.Signal(1))
			resume()
			e.must(st.Wait(e.ctx))
			want := make([]byte, 64)
			filled := func() {
				copy(want, []byte{7, 7, 7, 7})
				copy(want[12:], []byte{8, 8, 8, 8})
			}
			swapped := func() {
				copy(want[16:24], want[:8])
				copy(want[:8], want[8:16])
				copy(want[8:16], want[16:24])
			}
			filled()
			swapped()
			filled()
			swapped()
			swapped()
			if want[24] = 9; calls != 2 {
				e.Errorf("%d calls", calls)
			}
			e.same("the memory", e.read(b), want)
		})
	}},
	{name: "B154 one failed recording of several fails the stream", run: func(e *env) {
		e.eachMode(func(e *env, m gpu.Mode) {
			b := e.buffer(64)
			first, fails, last := e.commands(m), e.commands(m), e.commands(m)
			first.fill(b.Range(0, 1), []byte{1})
			fails.got(fails.Add(gpu.HostCall(func() error { return io.EOF })))
			last.fill(b.Range(1, 1), []byte{1})
			for _, c := range []*recorder{first, fails, last} {
				c.end()
			}
			st := e.q(0).NewStream()
			st.Do(gpu.Execute(first.CommandBuffer), gpu.Execute(fails.CommandBuffer), gpu.Execute(last.CommandBuffer))
			if err := st.Wait(e.ctx); !errors.Is(err, io.EOF) {
				e.Errorf("the stream: %v", err)
			}
			want := make([]byte, 64)
			want[0] = 1
			e.same("the memory", e.read(b), want)
		})
	}},
	{name: "B102 recordings in recordings", run: func(e *env) {
		e.eachMode(func(e *env, m gpu.Mode) {
			inner := e.commands(m)
			x, y := inner.binding(), inner.binding()
			own := e.buffer(16)
			f := inner.fill(x.Range(0, 16), []byte{1, 2, 3, 4, 5, 6, 7, 8})
			inner.copy(y.Range(4, 16), x.Range(0, 16), f)
			inner.fill(own.All(), []byte{3})
			inner.barrier()
			inner.update(x.Range(0, 2), []byte{0xaa, 0xbb})
			outer, fixed := e.commands(m), e.buffer(32)
			b := outer.binding()
			if _, err := outer.Add(gpu.Execute(inner.CommandBuffer, b.Range(0, 16), fixed.All())); !errors.Is(err, gpu.ErrArgument) {
				e.Errorf("Execute of a command buffer that has not ended = %v", err)
			}
			inner.end()
			outer.fill(fixed.All(), []byte{9})
			outer.barrier()
			outer.add(gpu.Execute(inner.CommandBuffer, b.Range(16, 16), fixed.All()))
			outer.barrier()
			outer.add(gpu.Execute(inner.CommandBuffer, b.Range(32, 16), b.Range(48, 20)))
			for name, c := range map[string]struct {
				op   gpu.Op
				kind error
			}{
				"no recording":          {gpu.Execute(nil), gpu.ErrArgument},
				"itself":                {gpu.Execute(outer.CommandBuffer, b.All()), gpu.ErrArgument},
				"one binding":           {gpu.Execute(inner.CommandBuffer, b.Range(0, 16)), gpu.ErrArgument},
				"a small binding":       {gpu.Execute(inner.CommandBuffer, b.Range(0, 16), fixed.Range(0, 19)), gpu.ErrRange},
				"another one's binding": {gpu.Execute(inner.CommandBuffer, x.Range(0, 16), fixed.All()), gpu.ErrArgument},
			} {
				if _, err := outer.Add(c.op); !errors.Is(err, c.kind) {
					e.Errorf("%s: %v", name, err)
				}
			}
			outer.end()
			e.must(inner.Close()) // the outer recording still needs inner
			e.must(own.Close())
			for range 2 {
				to := e.buffer(80)
				outer.execute(0, to.Range(8, 72))
				want := make([]byte, 80)
				p := []byte{1, 2, 3, 4, 5, 6, 7, 8, 1, 2, 3, 4, 5, 6, 7, 8}
				copy(want[8+16:], p)
				copy(want[8+16:], []byte{0xaa, 0xbb})
				copy(want[8+32:], p)
				copy(want[8+32:], []byte{0xaa, 0xbb})
				copy(want[8+48+4:], p)
				e.same("what was bound", e.read(to), want)
				want = pattern([]byte{9}, 32)
				copy(want[4:], p)
				e.same("the fixed one", e.read(fixed), want)
			}
			if err := e.q(0).Submit(gpu.Order{}, gpu.Execute(outer.CommandBuffer, fixed.All())); !errors.Is(err, gpu.ErrRange) {
				e.Errorf("an execution does not check the bindings of the nested recording: %v", err)
			}
		})
	}},
	{name: "B108 host calls in recordings come in order", run: func(e *env) {
		e.eachMode(func(e *env, m gpu.Mode) {
			b, c, host, s := e.buffer(16), e.commands(m), e.sem(), e.sem()
			mem, err := e.devs[0].Alloc(gpu.HostMem, 16)
			e.must(err)
			defer mem.Close()
			var saw []byte
			look := func() error { saw = append(saw, mem.Bytes()[3]); return nil }
			f := c.fill(b.All(), []byte{1})
			c.copy(mem.All(), b.All(), f)
			h := c.add(gpu.HostCall(look))
			c.add(gpu.HostCall(look))
			c.fill(mem.All(), []byte{2}, h, f)
			c.add(gpu.HostCall(look))
			c.add(gpu.HostCall(func() error { mem.Bytes()[3] = 77; return nil }))
			c.copy(b.All(), mem.All())
			c.end()
			e.must(e.q(0).Submit(between(host, 1, s, 1), gpu.Execute(c.CommandBuffer)))
			e.at(s, 0)
			if saw != nil {
				e.Error("called too early")
			}
			e.must(host.Signal(1))
			e.wait(s, 1)
			e.same("what the calls saw", saw, []byte{1, 1, 2})
			if got := e.read(b); got[3] != 77 || got[2] != 2 {
				e.Errorf("%x", got)
			}
		})
	}},
	{name: "B108 B109 a host call that fails, or panics, fails the execution", run: func(e *env) {
		e.eachMode(func(e *env, m gpu.Mode) {
			for _, panics := range []bool{false, true} {
				b, c, s, x := e.buffer(16), e.commands(m), e.sem(), e.sem()
				c.fill(b.Range(0, 8), []byte{1})
				c.got(c.Add(gpu.HostCall(func() error {
					if panics {
						panic("it is " + io.ErrNoProgress.Error())
					}
					return io.ErrNoProgress
				})))
				c.fill(b.Range(8, 8), []byte{1})
				c.add(gpu.HostCall(func() error { e.Error("called after a failure"); return nil }))
				c.end()
				e.must(e.q(0).Submit(gpu.Order{Signal: []gpu.Point{{Semaphore: s, Value: 1}, {Semaphore: x, Value: 5}}}, gpu.Execute(c.CommandBuffer)))
				for i, s := range []*gpu.Semaphore{s, x} {
					if err := s.Wait(e.ctx, 1); err == nil || !strings.Contains(err.Error(), io.ErrNoProgress.Error()) || !panics && !errors.Is(err, io.ErrNoProgress) {
						e.Errorf("signal %d: %v", i, err)
					}
				}
				e.same("the buffer", e.read(b), []byte{1, 1, 1, 1, 1, 1, 1, 1, 0, 0, 0, 0, 0, 0, 0, 0})
				bad, y := e.sem(), e.sem()
				e.must(e.q(0).Submit(between(bad, 1, y, 1), gpu.Execute(c.CommandBuffer)))
				bad.Fail(io.EOF)
				e.failed(y, 1, io.EOF)
			}
		})
	}},
	{name: "B126 times in recordings", run: func(e *env) {
		e.eachMode(func(e *env, m gpu.Mode) {
			b, c := e.buffer(1<<20), e.commands(m)
			from, err := c.Timestamp()
			if errors.Is(err, driver.ErrUnsupported) {
				if !strings.Contains(err.Error(), "command 0, timestamp") {
					e.Errorf("%v", err)
				}
				c.end()
				if _, err := c.Elapsed(0, 0); !errors.Is(err, gpu.ErrArgument) {
					e.Errorf("Elapsed = %v", err)
				}
				return
			}
			e.must(err)
			c.barrier()
			f := c.fill(b.All(), []byte{1})
			c.barrier()
			to := c.got(c.Timestamp(f))
			c.end()
			for range 3 {
				c.execute(0)
				if d, err := c.Elapsed(from, to); d < 0 || err != nil {
					e.Errorf("%v, %v", d, err)
				}
				if d, err := c.Elapsed(from, from); d != 0 || err != nil {
					e.Errorf("%v, %v", d, err)
				}
			}
			for _, at := range [][2]gpu.Command{{from, f}, {-1, to}, {from, 99}} {
				if _, err := c.Elapsed(at[0], at[1]); !errors.Is(err, gpu.ErrArgument) {
					e.Errorf("Elapsed(%d, %d) = %v", at[0], at[1], err)
				}
			}
			// Elapsed may be called while an execution is about to be issued.
			host, s := e.sem(), e.sem()
			e.must(e.q(0).Submit(between(host, 1, s, 1), gpu.Execute(c.CommandBuffer)))
			e.must(host.Signal(1))
			for range 20 {
				c.Elapsed(from, to)
			}
			e.wait(s, 1)
			e.must(c.Close())
			if _, err := c.Elapsed(from, to); !errors.Is(err, gpu.ErrClosed) {
				e.Errorf("Elapsed = %v", err)
			}
		})
	}},
	{name: "B96 memory that is allocated after it has been recorded", run: func(e *env) {
		e.eachMode(func(e *env, m gpu.Mode) {
			host, s, other := e.sem(), e.sem(), e.sem()
			b, out := e.alloc(0, between(host, 1, s, 1), nil, 1024), e.buffer(1024)
			c := e.commands(m)
			in := c.binding()
			f := c.fill(b.All(), []byte{4})
			u := c.update(b.Range(100, 4), []byte{1, 2, 3, 4}, f)
			c.copy(b.Range(200, 8), in.Range(0, 8), f)
			c.copy(out.Range(0, 200), b.Range(0, 200), u)
			c.copy(out.Range(208, 816), b.Range(208, 816), u)
			c.barrier()
			c.copy(out.Range(200, 8), b.Range(200, 8))
			c.copy(in.Range(8, 8), b.Range(96, 8))
			c.end()
			indirect := e.alloc(1, between(host, 1, other, 1), nil, 64)
			early := e.sem()
			e.must(e.q(2).Submit(signal(early, 1), gpu.Execute(c.CommandBuffer, indirect.Range(16, 16))))
			e.failed(early, 1, gpu.ErrUnallocated)
			e.must(e.q(1).Submit(gpu.Order{Wait: []gpu.Point{{Semaphore: s, Value: 1}, {Semaphore: other, Value: 1}}, Signal: points(s, 3)}, gpu.Fill(indirect.All(), []byte{9})))
			e.must(e.q(0).Submit(between(s, 3, s, 4), gpu.Execute(c.CommandBuffer, indirect.Range(16, 16))))
			e.must(host.Signal(1))
			e.wait(s, 4)
			want := pattern([]byte{4}, 1024)
			copy(want[100:], []byte{1, 2, 3, 4})
			copy(want[200:], pattern([]byte{9}, 8))
			e.same("what was copied", e.read(out), want)
			e.same("what was bound", e.read(indirect)[16:40], []byte{9, 9, 9, 9, 9, 9, 9, 9, 4, 4, 4, 4, 1, 2, 3, 4, 9, 9, 9, 9, 9, 9, 9, 9})
			e.must(e.q(0).Submit(signal(s, 5), gpu.Free(indirect)))
			e.wait(s, 5)
			if err := e.q(0).Submit(gpu.Order{}, gpu.Execute(c.CommandBuffer, indirect.Range(16, 16))); !errors.Is(err, gpu.ErrUnallocated) {
				e.Errorf("Execute with memory that is deallocated = %v", err)
			}
			e.must(e.q(0).Submit(signal(s, 6), gpu.Free(b)))
			x := e.sem()
			e.must(e.q(0).Submit(signal(x, 1), gpu.Execute(c.CommandBuffer, out.Range(0, 16))))
			e.failed(x, 1, gpu.ErrUnallocated)
		})
	}},
	{name: "B96 memory of a pool in recordings", run: func(e *env) {
		e.eachMode(func(e *env, m gpu.Mode) {
			s := e.sem()
			b, out := e.alloc(0, signal(s, 1), nil, 4096), e.buffer(4096)
			e.wait(s, 1)
			c := e.commands(m)
			for i, p := range [][]byte{{1}, {2, 3}, {4, 5, 6, 7}, {1, 2, 3, 4, 5, 6, 7, 8}} {
				c.fill(b.Range(uint64(i)*1024, 1024), p)
			}
			c.barrier()
			c.update(b.Range(1000, 100), random(100, 1))
			c.barrier()
			c.copy(out.All(), b.All())
			c.end()
			want := slices.Concat(pattern([]byte{1}, 1024), pattern([]byte{2, 3}, 1024), pattern([]byte{4, 5, 6, 7}, 1024), pattern([]byte{1, 2, 3, 4, 5, 6, 7, 8}, 1024))
			copy(want[1000:], random(100, 1))
			c.execute(1)
			e.same("what came out", e.read(out), want)
			e.must(e.q(0).Submit(gpu.Order{}, gpu.Free(b)))
		})
	}},
	{name: "B90 allocate, execute, deallocate, in a pipeline", run: func(e *env) {
		e.eachMode(func(e *env, m gpu.Mode) {
			c := e.commands(m)
			tmp, out := c.binding(), c.binding()
			f := c.fill(tmp.Range(0, 1024), []byte{6, 7})
			c.copy(out.Range(0, 64), tmp.Range(512, 64), f)
			c.end()
			for _, portable := range []bool{false, true} {
				const n = 24
				p, s, host, to := e.pool(gpu.PoolOptions{Portable: portable}), e.sem(), e.sem(), e.buffer(64*n)
				e.must(e.q(0).Submit(between(host, 1, s, 1), gpu.Barrier()))
				v := uint64(1)
				for i := range uint64(n) {
					b := e.alloc(int(i), between(s, v, s, v+1), p, 1024)
					e.must(e.q(int(i+1)).Submit(between(s, v+1, s, v+2), gpu.Execute(c.CommandBuffer, b.All(), to.Range(64*i, 64))))
					e.must(e.q(0).Submit(between(s, v+2, s, v+3), gpu.Free(b)))
					v += 3
				}
				e.must(host.Signal(1))
				e.wait(s, v)
				e.same("what came out", e.read(to), pattern([]byte{6, 7}, 64*n))
				e.unused(p)
			}
		})
	}},
	{name: "B96 B103 update, fill and launch one after the other, in memory that is allocated later", kernels: true, run: func(e *env) {
		e.eachMode(func(e *env, m gpu.Mode) {
			const n = 300
			k, host, s := e.kernel(kernels.Saxpy, "saxpy"), e.sem(), e.sem()
			x, y := e.alloc(0, between(host, 1, s, 1), nil, 4*n), e.alloc(1, between(s, 1, s, 2), nil, 4*n)
			in, want := make([]float32, n), make([]float32, n)
			for i := range in {
				in[i] = float32(i)
				want[i] = in[i] + 0.5*(1+2*in[i])
			}
			out, c := e.buffer(4*n), e.commands(m)
			to := c.binding()
			u := c.update(x.All(), floats(in...))
			c.fill(y.All(), floats(1))
			c.barrier()
			f := c.add(saxpyOf(k, n, 2, x.All(), y.All()), u)
			g := c.add(saxpyOf(k, n, 0.5, y.All(), x.All()), f)
			c.copy(to.Range(0, 4*n), x.All(), g)
			c.end()
			e.must(e.q(2).Submit(between(s, 2, s, 3), gpu.Execute(c.CommandBuffer, out.All())))
			e.must(host.Signal(1))
			e.same("what came out", e.read(out, gpu.Point{Semaphore: s, Value: 3}), floats(want...))
			again := e.buffer(4 * n)
			c.execute(3, again.All())
			e.same("what came out of it again", e.read(again), floats(want...))
			e.must(e.q(0).Submit(signal(s, 4), gpu.Free(x)))
			e.must(e.q(0).Submit(signal(s, 5), gpu.Free(y)))
			e.wait(s, 5)
		})
	}},
	{name: "B90 B107 allocate, launch, deallocate, one after the other and in a pipeline", kernels: true, run: func(e *env) {
		e.eachMode(func(e *env, m gpu.Mode) {
			const rounds, n = 16, 256
			words, c := e.kernel(kernels.Basic, "words"), e.commands(m)
			tmp, in, out := c.binding(), c.binding(), c.binding()
			f := c.add(wordsOf(words, n, tmp.Range(0, 4*n), in.Range(0, 4*n)))
			c.add(wordsOf(words, n, out.Range(0, 4*n), tmp.Range(0, 4*n)), f)
			c.end()
			data := random(4*rounds*n, 6)
			for _, portable := range []bool{false, true} {
				for _, pipeline := range []bool{false, true} {
					p, s, host, from, to := e.pool(gpu.PoolOptions{Portable: portable}), e.sem(), e.sem(), e.buffer(4*rounds*n), e.buffer(4*rounds*n)
					e.must(e.q(0).Submit(between(host, 1, s, 1), gpu.UploadCopy(from.All(), data)))
					if !pipeline {
						e.must(host.Signal(1))
					}
					v := uint64(1)
					for i := range uint64(rounds) {
						b := e.alloc(int(i), between(s, v, s, v+1), p, 4*n)
						e.must(e.q(int(i+1)).Submit(between(s, v+1, s, v+2), gpu.Execute(c.CommandBuffer, b.All(), from.Range(4*n*i, 4*n), to.Range(4*n*i, 4*n))))
						e.must(e.q(0).Submit(between(s, v+2, s, v+3), gpu.Free(b)))
						v += 3
						if !pipeline {
							e.wait(s, v)
						}
					}
					if pipeline {
						e.must(host.Signal(1))
					}
					e.same("what came out", e.read(to, gpu.Point{Semaphore: s, Value: v}), data)
					e.unused(p)
				}
			}
		})
	}},
	{name: "B82 mistakes in recordings are reported at once, by number and name, and change nothing", kernels: true, run: func(e *env) {
		e.eachMode(func(e *env, m gpu.Mode) {
			k := e.kernel(kernels.Basic, "words")
			a, gone, c, other := e.buffer(64), e.buffer(64), e.commands(m), e.commands(m)
			e.must(gone.Close())
			mine, theirs := c.binding(), other.binding()
			c.fill(a.All(), []byte{1})
			huge := mine.Range(1<<62, 64)
			over := func(change func(g *gpu.Grid)) gpu.Op {
				g := gpu.GridFor(16, 64)
				change(&g)
				return gpu.Launch(k, g, uint64(16), a, huge)
			}
			info := e.devs[0].Info()
			for name, r := range map[string]struct {
				op    gpu.Op
				kind  error
				named string
				after []gpu.Command
			}{
				"launch, threads": {over(func(g *gpu.Grid) { g.Threads = [3]uint32{64, 64, 64} }), gpu.ErrArgument, "launch", nil},
				"launch, grid":    {over(func(g *gpu.Grid) { g.Blocks[1] = uint32(info.MaxGrid[1]) + 1 }), gpu.ErrArgument, "launch", nil},
				"launch, shared memory": {over(func(g *gpu.Grid) { g.SharedMem = uint32(max(info.SharedOptIn, info.SharedMem)) + 1 }),
					gpu.ErrArgument, "launch", nil},
				"execute, nothing":       {gpu.Execute(nil), gpu.ErrArgument, "execute", nil},
				"execute, itself":        {gpu.Execute(c.CommandBuffer), gpu.ErrArgument, "execute", nil},
				"execute, not ended":     {gpu.Execute(other.CommandBuffer, a.All()), gpu.ErrArgument, "execute", nil},
				"fill, no pattern":       {gpu.Fill(a.All(), nil), gpu.ErrArgument, "fill", nil},
				"fill, 3 bytes":          {gpu.Fill(a.All(), []byte{1, 2, 3}), gpu.ErrArgument, "fill", nil},
				"fill, size":             {gpu.Fill(a.Range(0, 6), []byte{1, 2, 3, 4}), gpu.ErrArgument, "fill", nil},
				"fill, offset":           {gpu.Fill(a.Range(2, 8), []byte{1, 2, 3, 4}), gpu.ErrArgument, "fill", nil},
				"fill, bound, offset":    {gpu.Fill(mine.Range(2, 8), []byte{1, 2, 3, 4}), gpu.ErrArgument, "fill", nil},
				"fill, range":            {gpu.Fill(a.Range(60, 8), []byte{1}), gpu.ErrRange, "fill", nil},
				"fill, no buffer":        {gpu.Fill(gpu.Range{}, []byte{1}), gpu.ErrArgument, "fill", nil},
				"fill, closed":           {gpu.Fill(gone.All(), []byte{1}), gpu.ErrClosed, "fill", nil},
				"fill, another one's":    {gpu.Fill(theirs.Range(0, 8), []byte{1}), gpu.ErrArgument, "fill", nil},
				"fill, after":            {gpu.Fill(mine.Range(1<<50, 8), []byte{1}), gpu.ErrArgument, "fill", []gpu.Command{7}},
				"copy, sizes":            {gpu.Copy(a.Range(0, 8), a.Range(8, 9)), gpu.ErrArgument, "copy", nil},
				"copy, range":            {gpu.Copy(huge, a.Range(63, 64)), gpu.ErrRange, "copy", nil},
				"copy, closed":           {gpu.Copy(huge, gone.All()), gpu.ErrClosed, "copy", nil},
				"copy, after":            {gpu.Copy(huge, a.All()), gpu.ErrArgument, "copy", []gpu.Command{-1}},
				"update, size":           {gpu.UploadCopy(a.All(), make([]byte, 63)), gpu.ErrArgument, "upload", nil},
				"update, range":          {gpu.UploadCopy(a.Range(1, 64), make([]byte, 64)), gpu.ErrRange, "upload", nil},
				"update, after":          {gpu.UploadCopy(huge, make([]byte, 64)), gpu.ErrArgument, "upload", []gpu.Command{1}},
				"launch, no kernel":      {gpu.Launch(nil, gpu.Grid{}), gpu.ErrArgument, "launch", nil},
				"launch, arguments":      {gpu.Launch(k, gpu.Grid{}, uint64(16), nil, a), gpu.ErrArgument, "launch", nil},
				"launch, range":          {wordsOf(k, 16, huge, a.Range(1, 64)), gpu.ErrRange, "launch", nil},
				"launch, closed":         {wordsOf(k, 16, gone.All(), huge), gpu.ErrClosed, "launch", nil},
				"launch, after":          {wordsOf(k, 16, a.All(), huge), gpu.ErrArgument, "launch", []gpu.Command{1}},
				"host call, no function": {gpu.HostCall(nil), gpu.ErrArgument, "host call", nil},
			} {
				_, err := c.Add(r.op, r.after...)
				if !errors.Is(err, r.kind) {
					e.Errorf("%s: %v; want %v", name, err, r.kind)
				} else if msg := err.Error(); !strings.HasPrefix(msg, "gpu: ") || !strings.Contains(msg, "command 1, "+r.named) && !strings.Contains(msg, "command 1: "+r.named) {
					e.Errorf("%s: %v", name, err)
				}
			}
			if err := e.q(0).Submit(gpu.Order{}, gpu.Execute(c.CommandBuffer, a.All())); !errors.Is(err, gpu.ErrArgument) {
				e.Errorf("Execute before End = %v", err)
			}
			if n := c.fill(mine.Range(4, 4), []byte{2, 2, 2, 2}); n != 1 {
				e.Errorf("command %d", n)
			}
			c.end()
			_, noBinding := c.Binding()
			_, noTime := c.Timestamp()
			for name, err := range map[string]error{"End": c.End(), "Binding": noBinding, "Timestamp": noTime} {
				if !errors.Is(err, gpu.ErrArgument) {
					e.Errorf("%s after End = %v", name, err)
				}
			}
			for _, op := range []gpu.Op{
				gpu.Fill(a.All(), []byte{1}),
				gpu.Copy(a.All(), a.All()),
				gpu.UploadCopy(a.Range(0, 1), []byte{1}),
				wordsOf(k, 16, a.All(), a.All()),
				gpu.HostCall(func() error { return nil }),
				gpu.Barrier(),
				gpu.Execute(other.CommandBuffer),
			} {
				if _, err := c.Add(op); !errors.Is(err, gpu.ErrArgument) {
					e.Errorf("%v after End = %v", op, err)
				}
			}
			s := e.sem()
			for name, r := range map[string]struct {
				bindings []gpu.Range
				kind     error
			}{
				"no binding":            {nil, gpu.ErrArgument},
				"two bindings":          {[]gpu.Range{a.All(), a.All()}, gpu.ErrArgument},
				"a small one":           {[]gpu.Range{a.Range(0, 7)}, gpu.ErrRange},
				"one that is not there": {[]gpu.Range{a.Range(60, 8)}, gpu.ErrRange},
				"one that is unaligned": {[]gpu.Range{a.Range(2, 8)}, gpu.ErrArgument},
				"one that is closed":    {[]gpu.Range{gone.All()}, gpu.ErrClosed},
				"no buffer":             {[]gpu.Range{{}}, gpu.ErrArgument},
				"a binding of its own":  {[]gpu.Range{mine.Range(0, 8)}, gpu.ErrArgument},
				"another one's binding": {[]gpu.Range{theirs.Range(0, 8)}, gpu.ErrArgument},
			} {
				if err := e.q(0).Submit(signal(s, 1), gpu.Execute(c.CommandBuffer, r.bindings...)); !errors.Is(err, r.kind) {
					e.Errorf("%s: %v; want %v", name, err, r.kind)
				}
			}
			for name, err := range map[string]error{
				"fill":     e.q(0).Submit(gpu.Order{}, gpu.Fill(mine.Range(0, 8), []byte{1})),
				"no order": e.q(0).Submit(gpu.Order{Wait: []gpu.Point{{}}}, gpu.Execute(c.CommandBuffer, a.All())),
				"nothing":  e.q(0).Submit(gpu.Order{}, gpu.Execute(nil)),
			} {
				if !errors.Is(err, gpu.ErrArgument) {
					e.Errorf("%s: %v", name, err)
				}
			}
			e.at(s, 0)
			to := e.buffer(8)
			c.execute(0, to.All())
			e.same("what was bound", e.read(to), []byte{0, 0, 0, 0, 2, 2, 2, 2})
			e.must(c.Close())
			if err := e.q(0).Submit(gpu.Order{}, gpu.Execute(c.CommandBuffer, a.All())); !errors.Is(err, gpu.ErrClosed) {
				e.Errorf("Execute after Close = %v", err)
			}
			e.must(other.Close())
			if _, err := other.Add(gpu.Fill(a.All(), []byte{1})); !errors.Is(err, gpu.ErrClosed) {
				e.Errorf("Fill after Close = %v", err)
			}
			if err := other.End(); !errors.Is(err, gpu.ErrClosed) {
				e.Errorf("End after Close = %v", err)
			}
		})
	}},
	{name: "B82 invalid modes", devices: 2, run: func(e *env) {
		for _, m := range []gpu.Mode{-1, 3} {
			if c, err := e.devs[0].NewCommandBuffer(gpu.CommandOptions{Mode: m}); c != nil || !errors.Is(err, gpu.ErrArgument) {
				e.Errorf("mode %d: %v", m, err)
			}
		}
		c := e.commands(gpu.AutoMode)
		c.end()
		if err := e.devs[1].Queue(0).Submit(gpu.Order{}, gpu.Execute(c.CommandBuffer)); !errors.Is(err, gpu.ErrArgument) {
			e.Errorf("Execute on another device = %v", err)
		}
	}},
	{name: "B59 an execution keeps closed objects until it has completed", kernels: true, run: func(e *env) {
		e.eachMode(func(e *env, m gpu.Mode) {
			d := e.devs[0]
			for order := range 6 {
				x, err := d.Load(kernels.Basic)
				e.must(err)
				k, err := x.Kernel("index")
				e.must(err)
				own, err := d.Alloc(gpu.DeviceMem, 256)
				e.must(err)
				bound, err := d.Alloc(gpu.DeviceMem, 256)
				e.must(err)
				out, host, s := e.buffer(512), e.sem(), e.sem()
				c, err := d.NewCommandBuffer(gpu.CommandOptions{Mode: m})
				e.must(err)
				r := &recorder{c, e}
				b := r.binding()
				i := r.add(indexOf(k, 64, 7, 0, own.All()))
				f := r.fill(b.Range(0, 256), []byte{3})
				r.copy(out.Range(0, 256), own.All(), i)
				r.copy(out.Range(256, 256), b.Range(0, 256), f)
				r.end()
				e.must(e.q(0).Submit(between(host, 1, s, 1), gpu.Execute(c, bound.All())))
				e.must(e.q(1).Submit(between(s, 1, s, 2), gpu.Execute(c, bound.All())))
				closers := []func() error{x.Close, own.Close, bound.Close, c.Close}
				r2 := rand.New(rand.NewPCG(uint64(order), 1))
				r2.Shuffle(len(closers), func(i, j int) { closers[i], closers[j] = closers[j], closers[i] })
				for _, fn := range closers {
					e.must(fn())
					e.must(fn())
				}
				e.must(host.Signal(1))
				e.wait(s, 2)
				for i, w := range e.words(out) {
					want := uint32(7)
					if i >= 64 {
						want = 0x03030303
					}
					if w != want {
						e.Fatalf("order %d: word %d is %#x", order, i, w)
					}
				}
				e.must(out.Close())
				e.until("all is freed", func() bool { return d.Stats().Buffers == 0 })
			}
		})
	}},
	{name: "B82 a recording uses a closed object", run: func(e *env) {
		e.eachMode(func(e *env, m gpu.Mode) {
			b, c := e.buffer(64), e.commands(m)
			c.fill(b.All(), []byte{1})
			e.must(b.Close()) // the recording holds the buffer
			c.end()
			c.execute(0)
			if n := e.devs[0].Stats().Buffers; n != 1 {
				e.Errorf("%d buffers", n)
			}
			e.must(c.Close())
			e.until("it is freed", func() bool { return e.devs[0].Stats().Buffers == 0 })
		})
	}},
	{name: "B84 B85 a device is closed with recordings", run: func(e *env) {
		d, host, s := e.devs[0], e.sem(), e.sems(8)
		var all []*recorder
		var bufs []*gpu.Buffer
		for _, m := range []gpu.Mode{gpu.AutoMode, gpu.StreamMode, gpu.GraphMode} {
			c, err := d.NewCommandBuffer(gpu.CommandOptions{Mode: m})
			if errors.Is(err, driver.ErrUnsupported) {
				continue
			}
			e.must(err)
			r, b := &recorder{c, e}, e.buffer(64)
			x := r.binding()
			for range 4 {
				r.fill(x.Range(0, 8), []byte{1})
				r.update(b.Range(8, 8), make([]byte, 8))
				r.barrier()
			}
			if m != gpu.StreamMode {
				r.got(c.Add(gpu.HostCall(func() error { return nil })))
				r.fill(b.All(), []byte{1})
			}
			r.end()
			all, bufs = append(all, r), append(bufs, b)
		}
		b := bufs[0]
		unended := e.commands(gpu.AutoMode)
		unended.update(b.All(), make([]byte, 64))
		outer := e.commands(gpu.AutoMode)
		outer.add(gpu.Execute(all[0].CommandBuffer, b.All()))
		outer.end()
		for i, r := range all {
			e.must(e.q(i).Submit(signal(s[i], 1), gpu.Execute(r.CommandBuffer, bufs[i].All())))
			e.must(e.q(i).Submit(between(host, 1, s[4+i], 1), gpu.Execute(r.CommandBuffer, bufs[i].All())))
		}
		e.must(all[0].Close())
		e.must(e.q(0).Submit(signal(s[3], 1), gpu.Execute(outer.CommandBuffer)))
		e.must(d.Close())
		for i := range all {
			e.failed(s[4+i], 1, gpu.ErrClosed)
			// Close has failed the execution if a part of it was still parked.
			if err := s[i].Wait(e.ctx, 1); err != nil && !errors.Is(err, gpu.ErrClosed) {
				e.Error(err)
			}
		}
		for _, r := range append(all[1:], outer, unended) {
			x := e.sem()
			if err := e.q(0).Submit(signal(x, 1), gpu.Execute(r.CommandBuffer, b.All())); !errors.Is(err, gpu.ErrClosed) {
				e.Errorf("Execute = %v", err)
			}
			e.failed(x, 1, gpu.ErrClosed)
			if _, err := r.Add(gpu.Fill(b.All(), []byte{1})); !errors.Is(err, gpu.ErrClosed) {
				e.Errorf("Fill = %v", err)
			}
			e.must(r.Close())
		}
		if c, err := d.NewCommandBuffer(gpu.CommandOptions{}); c != nil || !errors.Is(err, gpu.ErrClosed) {
			e.Errorf("NewCommandBuffer = %v", err)
		}
	}},
	{name: "B59 B84 memory of another device stays until recordings have used it, and is then freed", devices: 2, stall: true, run: func(e *env) {
		d, other := e.devs[0], e.devs[1]
		var all []*recorder
		bound, own, resume := e.bufferOn(other, 64), e.buffer(64), e.h.Stall(0)
		s, x := e.sems(4), e.sems(4)
		for i, m := range []gpu.Mode{gpu.AutoMode, gpu.StreamMode, gpu.GraphMode} {
			c, err := d.NewCommandBuffer(gpu.CommandOptions{Mode: m})
			if errors.Is(err, driver.ErrUnsupported) {
				continue
			}
			e.must(err)
			r, fixed := &recorder{c, e}, e.bufferOn(other, 64)
			b := r.binding()
			f := r.fill(fixed.All(), []byte{1})
			r.copy(b.Range(uint64(16*i), 16), fixed.Range(0, 16), f)
			r.end()
			if i == 0 { // execute r in another recording, too
				outer := e.commands(m)
				outer.add(gpu.Execute(r.CommandBuffer, bound.All()))
				outer.end()
				e.must(e.q(3).Submit(signal(s[3], 1), gpu.Execute(outer.CommandBuffer)))
			}
			all = append(all, r)
			e.must(e.q(3).Submit(signal(s[i], 1), gpu.Execute(r.CommandBuffer, bound.All())))
		}
		// There are len(all)+1 executions, because one recording is also executed in another.
		e.until("all are issued", func() bool { st := d.Stats(); return st.InFlight > len(all) && st.Parked == 0 })
		closed := make(chan error, 1)
		go func() { closed <- other.Close() }()
		e.until("the device is being closed", func() bool { return errors.Is(other.Queue(0).Submit(gpu.Order{}, gpu.Barrier()), gpu.ErrClosed) })
		resume()
		e.wait(s[3], 1)
		for i := range all {
			e.wait(s[i], 1)
		}
		e.must(<-closed)
		for i, r := range all {
			e.must(e.q(i).Submit(signal(x[i], 1), gpu.Execute(r.CommandBuffer, own.All())))
			e.failed(x[i], 1, gpu.ErrClosed)
			if err := e.q(i).Submit(gpu.Order{}, gpu.Execute(r.CommandBuffer, bound.All())); !errors.Is(err, gpu.ErrClosed) {
				e.Errorf("Execute = %v", err)
			}
		}
		e.holds(own, 0)
	}},
	{name: "B122 recordings are made, closed and executed at once", run: func(e *env) {
		e.eachMode(func(e *env, m gpu.Mode) {
			d, b := e.devs[0], e.buffer(1<<16)
			var wg sync.WaitGroup
			var errs [4]error
			done := e.sems(4)
			for g := range uint64(4) {
				wg.Go(func() {
					for i := range uint64(12) {
						c, err := d.NewCommandBuffer(gpu.CommandOptions{Mode: m})
						if err != nil {
							errs[g] = err
							return
						}
						x, err := c.Binding()
						for j := range uint64(8) {
							_, err2 := c.Add(gpu.UploadCopy(x.Range(8*j, 8), bytes.Repeat([]byte{byte(g<<4 | i)}, 8)))
							err = errors.Join(err, err2)
						}
						err = errors.Join(err, c.End(), e.q(int(g)).Submit(between(done[g], i, done[g], i+1), gpu.Execute(c, b.Range(4096*g, 64))), c.Close())
						if err != nil {
							errs[g] = err
							return
						}
					}
				})
			}
			wg.Wait()
			e.must(errors.Join(errs[:]...))
			for g := range done {
				e.wait(done[g], 12)
			}
			got := e.read(b)
			for g := range 4 {
				e.same("what was written", got[4096*g:4096*g+64], pattern([]byte{byte(g<<4 | 11)}, 64))
			}
		})
	}},
	{name: "B122 a recording is closed while it is recorded", run: func(e *env) {
		e.eachMode(func(e *env, m gpu.Mode) {
			b := e.buffer(1 << 12)
			for range 20 {
				c, err := e.devs[0].NewCommandBuffer(gpu.CommandOptions{Mode: m})
				e.must(err)
				var wg sync.WaitGroup
				wg.Go(func() {
					for err := error(nil); err == nil; {
						_, err = c.Add(gpu.UploadCopy(b.All(), make([]byte, 1<<12)))
					}
				})
				wg.Go(func() {
					for err := error(nil); err == nil; {
						_, err = c.Timestamp()
					}
				})
				e.must(c.Close())
				wg.Wait()
			}
		})
	}},
}
