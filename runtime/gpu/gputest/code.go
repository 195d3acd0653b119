package gputest

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"unsafe"

	"github.com/puregpu/puregpu/runtime/driver"
	"github.com/puregpu/puregpu/runtime/gpu"
	"github.com/puregpu/puregpu/testdata/kernels"
)

// variables is code with a variable whose name is table.
var variables = []byte(`.version 6.4
.target sm_50
.address_size 64

.visible .global .align 8 .b8 table[256];

.visible .entry nothing_to_do()
{
	ret;
}
` + "\x00")

// tabled is code with a kernel that has 16 KiB of static shared memory.
var tabled = []byte(`.version 6.4
.target sm_50
.address_size 64

.visible .entry ids(.param .u64 out)
{
	.reg .b32 %r<3>;
	.shared .align 4 .b8 table[16384];

	mov.u32 %r1, table;
	mov.u32 %r2, %tid.x;
	st.volatile.shared.u32 [%r1], %r2;
	ret;
}
` + "\x00")

// paired is code with a kernel whose blocks form clusters of two.
var paired = []byte(`.version 7.8
.target sm_90
.address_size 64

.visible .entry ids(.param .u64 out) .explicitcluster .reqnctapercluster 2, 1, 1
{
	ret;
}
` + "\x00")

// indexArgs are the arguments of the kernel index.
type indexArgs struct {
	N           uint64
	First, Step uint32
	Out         gpu.Range
}

var codeTests = []test{
	{name: "B107 saxpy", kernels: true, run: func(e *env) {
		const n = 100_000
		k := e.kernel(kernels.Saxpy, "saxpy")
		x, y, s := e.buffer(4*n), e.buffer(4*n), e.sem()
		hx, hy := make([]float32, n), make([]float32, n)
		for i := range n {
			hx[i], hy[i] = float32(i), float32(2*i)
		}
		e.must(e.q(0).Submit(signal(s, 1), gpu.UploadCopy(x.All(), unsafe.Slice((*byte)(unsafe.Pointer(&hx[0])), 4*n))))
		e.must(e.q(0).Submit(between(s, 1, s, 2), gpu.UploadCopy(y.All(), unsafe.Slice((*byte)(unsafe.Pointer(&hy[0])), 4*n))))
		e.must(e.q(1).Submit(between(s, 2, s, 3), gpu.Launch(k, gpu.GridFor(n, 256), uint64(n), float32(0.5), x.Ptr(), y.Ptr())))
		e.must(e.q(2).Submit(between(s, 3, s, 4), gpu.Download(unsafe.Slice((*byte)(unsafe.Pointer(&hy[0])), 4*n), y.All())))
		e.wait(s, 4)
		for i, v := range hy {
			if want := float32(0.5)*float32(i) + float32(2*i); v != want {
				e.Fatalf("element %d is %v, want %v", i, v, want)
			}
		}
	}},
	{name: "B107 constants and addresses reach the kernel, and are copied by the call", kernels: true, run: func(e *env) {
		index, words := e.kernel(kernels.Basic, "index"), e.kernel(kernels.Basic, "words")
		const n = 1000
		a, b, host, s := e.buffer(4*n), e.buffer(4*n), e.sem(), e.sem()
		count, first, step, ptr := gpu.BytesOf([]uint64{n}), gpu.BytesOf([]uint32{100}), gpu.BytesOf([]uint32{3}), gpu.BytesOf([]driver.Ptr{a.Ptr()})
		args := []any{count, first, step, ptr}
		e.must(e.q(0).Submit(between(host, 1, s, 1), gpu.Launch(index, gpu.GridFor(1024, 128), args...)))
		for _, raw := range [][]byte{count, first, step, ptr} {
			clear(raw)
		}
		clear(args)
		e.must(e.q(1).Submit(between(s, 1, s, 2), gpu.Launch(words, gpu.GridFor(n, 1), uint64(n), b.Ptr(), a.Ptr())))
		e.must(host.Signal(1))
		e.wait(s, 2)
		for i, w := range e.words(b) {
			if w != uint32(100+3*i) {
				e.Fatalf("word %d is %d", i, w)
			}
		}
	}},
	{name: "B107 grids of three dimensions", kernels: true, run: func(e *env) {
		ids := e.kernel(kernels.Basic, "ids")
		grid := gpu.Grid{Blocks: [3]uint32{5, 3, 2}, Threads: [3]uint32{4, 2, 3}}
		b, s := e.buffer(5*3*2*16), e.sem()
		e.must(e.q(0).Submit(signal(s, 1), gpu.Launch(ids, grid, b.Ptr())))
		w := e.words(b, gpu.Point{Semaphore: s, Value: 1})
		for i := range uint32(30) {
			want := []uint32{i % 5, i / 5 % 3, i / 15, 24}
			if got := w[4*i : 4*i+4]; !slices.Equal(got, want) {
				e.Errorf("block %d: %v, want %v", i, got, want)
			}
		}
	}},
	{name: "B106 a grid for no elements does nothing and signals", kernels: true, run: func(e *env) {
		k := bind[indexArgs](e, e.kernel(kernels.Basic, "index"))
		b, host, s := e.buffer(64), e.sem(), e.sem()
		a := indexArgs{N: 16, First: 1, Step: 1, Out: b.All()}
		e.must(e.q(0).Submit(signal(s, 1), k.Launch(gpu.GridFor(0, 16), a)))
		e.must(e.q(0).Submit(gpu.Order{Wait: []gpu.Point{s.At(1), host.At(1)}, Signal: points(s, 2)}, k.Launch(gpu.GridFor(0, 16), a)))
		e.must(host.Signal(1))
		e.wait(s, 2)
		e.holds(b, 0)
	}},
	{name: "B194 a dimension of zero is one", kernels: true, run: func(e *env) {
		// Each thread writes one word, so the number of words that are written is the number of
		// threads.
		typed := bind[indexArgs](e, e.kernel(kernels.Basic, "index"))
		plain := e.kernel(kernels.Basic, "index")
		for _, c := range []struct {
			grid, block [3]uint32
			threads     uint32
		}{
			{[3]uint32{}, [3]uint32{}, 1},
			{[3]uint32{4}, [3]uint32{}, 4},
			{[3]uint32{}, [3]uint32{8}, 8},
			{[3]uint32{4, 0, 1}, [3]uint32{2, 1}, 8},
			{[3]uint32{4, 1, 0}, [3]uint32{0, 1, 1}, 4},
		} {
			want := make([]uint32, 16)
			for i := range c.threads {
				want[i] = 5
			}
			got := func(how string, b *gpu.Buffer, p gpu.Point) {
				if w := e.words(b, p); !slices.Equal(w, want) {
					e.Errorf("%s: a grid of %v in blocks of %v writes %v", how, c.grid, c.block, w)
				}
			}
			b, s, grid := e.buffer(64), e.sem(), gpu.Grid{Blocks: c.grid, Threads: c.block}
			launch := func(at driver.Ptr) gpu.Op { return gpu.Launch(plain, grid, uint64(16), uint32(5), uint32(0), at) }
			e.must(e.q(0).Submit(signal(s, 1), launch(b.Ptr())))
			got("Launch", b, s.At(1))
			b = e.buffer(64)
			a := indexArgs{16, 5, 0, b.All()}
			e.must(e.q(0).Submit(signal(s, 2), typed.Launch(grid, a)))
			got("TypedKernel.Launch", b, s.At(2))
			e.eachMode(func(e *env, m gpu.Mode) {
				rec, b := e.commands(m), e.buffer(128)
				a.Out = b.Range(0, 64)
				rec.add(typed.Launch(grid, a))
				rec.add(launch(b.Ptr() + 64))
				rec.end()
				s := e.sem()
				e.must(e.q(0).Submit(signal(s, 1), gpu.Execute(rec.CommandBuffer)))
				if w := e.words(b, s.At(1)); !slices.Equal(w, slices.Concat(want, want)) {
					e.Errorf("recorded: a grid of %v in blocks of %v writes %v", c.grid, c.block, w)
				}
			})
		}
	}},
	{name: "B82 arguments that a kernel cannot take", kernels: true, run: func(e *env) {
		k := e.kernel(kernels.Basic, "words")
		info := e.devs[0].Info()
		b, s := e.buffer(64), e.sem()
		n, good := uint64(16), gpu.GridFor(16, 16)
		grid := func(change func(g *gpu.Grid)) gpu.Op {
			g := good
			change(&g)
			return gpu.Launch(k, g, n, b.Ptr(), b.Ptr())
		}
		for name, op := range map[string]gpu.Op{
			"no kernel":              gpu.Launch(nil, good, n, b.Ptr(), b.Ptr()),
			"a zero kernel":          gpu.Launch(new(gpu.Kernel), good, n, b.Ptr(), b.Ptr()),
			"a nil argument":         gpu.Launch(k, good, n, nil, b.Ptr()),
			"an argument of nothing": gpu.Launch(k, good, n, b.Ptr(), struct{}{}),
			"no bytes":               gpu.Launch(k, good, n, b.Ptr(), []byte{}),
			"a constant":             gpu.Launch(k, good, 16, b.Ptr(), b.Ptr()),
			"too many threads":       grid(func(g *gpu.Grid) { g.Threads = [3]uint32{64, 64, 64} }),
			"far too many threads":   grid(func(g *gpu.Grid) { g.Threads = [3]uint32{1 << 31, 1 << 31, 4} }),
			"a block too long":       grid(func(g *gpu.Grid) { g.Threads = [3]uint32{1, 1, uint32(info.MaxBlock[2]) + 1} }),
			"a grid too high":        grid(func(g *gpu.Grid) { g.Blocks[1] = uint32(info.MaxGrid[1]) + 1 }),
			"too much shared memory": grid(func(g *gpu.Grid) { g.SharedMem = uint32(max(info.SharedOptIn, info.SharedMem)) + 1 }),
		} {
			if err := e.q(0).Submit(signal(s, 1), op); !errors.Is(err, gpu.ErrArgument) {
				e.Errorf("%s: %v", name, err)
			}
		}
		if k.Info().Params != nil {
			for name, op := range map[string]gpu.Op{
				"no argument":                 gpu.Launch(k, good),
				"an argument too few":         gpu.Launch(k, good, n, b.Ptr()),
				"an argument too many":        gpu.Launch(k, good, n, b.Ptr(), b.Ptr(), uint64(1)),
				"an argument of another size": gpu.Launch(k, good, n, make([]byte, 4), b.Ptr()),
			} {
				if err := e.q(0).Submit(signal(s, 1), op); !errors.Is(err, gpu.ErrArgument) {
					e.Errorf("%s: %v", name, err)
				}
			}
		}
		e.at(s, 0)
		e.must(e.q(0).Submit(signal(s, 1), gpu.Launch(k, good, n, b.Ptr(), b.Ptr())))
		e.wait(s, 1)
	}},
	{name: "B82 a block has room for the kernel's own shared memory and the dynamic one together", kernels: true, run: func(e *env) {
		k, info := e.kernel(tabled, "ids"), e.devs[0].Info()
		const own = 16 << 10
		if n := k.Info().SharedMem; n != own {
			e.Fatalf("the kernel has %d bytes of shared memory of its own, want %d", n, own)
		}
		most := uint32(max(info.SharedOptIn, info.SharedMem))
		b, s := e.buffer(16), e.sem()
		launch := func(dynamic uint32) gpu.Op { return gpu.Launch(k, gpu.Grid{SharedMem: dynamic}, b.Ptr()) }
		refused := func(dynamic uint32, err error) {
			e.Helper()
			if !errors.Is(err, gpu.ErrArgument) {
				e.Errorf("%d bytes: %v", dynamic, err)
				return
			}
			for _, part := range []string{"kernel ids", fmt.Sprint(dynamic), fmt.Sprint(own), fmt.Sprint(most)} {
				if !strings.Contains(err.Error(), part) {
					e.Errorf("%d bytes: %v, which does not say %s", dynamic, err, part)
				}
			}
		}
		record := func(m gpu.Mode, dynamic uint32) (*gpu.CommandBuffer, error) {
			c := e.commands(m)
			_, err := c.Add(launch(dynamic))
			return c.CommandBuffer, err
		}
		for _, dynamic := range []uint32{most - own + 1, most - own + 128, most, math.MaxUint32} {
			refused(dynamic, e.q(0).Submit(signal(s, 1), launch(dynamic)))
			e.eachMode(func(e *env, m gpu.Mode) {
				_, err := record(m, dynamic)
				refused(dynamic, err)
			})
		}
		e.at(s, 0)
		v := uint64(1)
		e.must(e.q(0).Submit(signal(s, v), launch(most-own)))
		e.eachMode(func(e *env, m gpu.Mode) {
			c, err := record(m, most-own)
			e.must(err)
			e.must(c.End())
			e.must(e.q(0).Submit(between(s, v, s, v+1), gpu.Execute(c)))
			v++
			e.wait(s, v)
		})
	}},
	{name: "B82 a grid has whole clusters", kernels: true, run: func(e *env) {
		x, err := e.devs[0].Load(paired)
		if err != nil {
			e.Skipf("the device has no clusters: %v", err)
		}
		defer x.Close()
		k, err := x.Kernel("ids")
		e.must(err)
		if k.Info().Cluster == [3]int{} {
			e.Skip("the driver does not tell of clusters")
		}
		b, s := e.buffer(2*3*16), e.sem()
		half := gpu.Launch(k, gpu.Grid{Blocks: [3]uint32{3, 2, 1}}, b.Ptr())
		if err := e.q(0).Submit(signal(s, 1), half); !errors.Is(err, gpu.ErrArgument) || !strings.Contains(err.Error(), "clusters of [2 1 1]") {
			e.Errorf("half a cluster: %v", err)
		}
		if _, err := e.commands(gpu.AutoMode).Add(half); !errors.Is(err, gpu.ErrArgument) {
			e.Errorf("half a cluster, recorded: %v", err)
		}
		e.at(s, 0)
		e.must(e.q(0).Submit(signal(s, 1), gpu.Launch(k, gpu.Grid{Blocks: [3]uint32{2, 3, 1}}, b.Ptr())))
		e.wait(s, 1)
	}},
	{name: "B59 code is closed with a launch in flight", kernels: true, run: func(e *env) {
		x, err := e.devs[0].Load(kernels.Basic)
		e.must(err)
		k, err := x.Kernel("index")
		e.must(err)
		b, host, s := e.buffer(64), e.sem(), e.sem()
		launch := gpu.Launch(k, gpu.GridFor(16, 16), uint64(16), uint32(0), uint32(1), b.Ptr())
		e.must(e.q(0).Submit(between(host, 1, s, 1), launch))
		e.must(x.Close())
		if err := e.q(0).Submit(gpu.Order{}, launch); !errors.Is(err, gpu.ErrClosed) {
			e.Errorf("a launch of closed code: %v", err)
		}
		if _, err := x.Kernel("words"); !errors.Is(err, gpu.ErrClosed) {
			e.Errorf("a kernel of closed code: %v", err)
		}
		e.must(host.Signal(1))
		e.wait(s, 1)
		if w := e.words(b); w[15] != 15 {
			e.Errorf("%v", w)
		}
	}},
	{name: "B133 a missing kernel, and invalid code", kernels: true, run: func(e *env) {
		x, err := e.devs[0].Load(kernels.Basic)
		e.must(err)
		defer x.Close()
		if k, err := x.Kernel("nothing"); k != nil || err == nil {
			e.Errorf("Kernel = %v, %v", k, err)
		}
		if _, err := e.devs[0].Load([]byte("this is no code\x00")); err == nil {
			e.Error("Load took it")
		}
	}},
	{name: "B107 many blocks, and repeated launches", kernels: true, run: func(e *env) {
		index := e.kernel(kernels.Basic, "index")
		const n = 1 << 20
		b, s := e.buffer(4*n), e.sem()
		for v := range uint64(20) {
			e.must(e.q(int(v)).Submit(gpu.Order{Wait: points(s, v), Signal: points(s, v+1)}, gpu.Launch(index, gpu.GridFor(n, 64), uint64(n), uint32(v), uint32(v+1), b.Ptr())))
		}
		for i, w := range e.words(b, gpu.Point{Semaphore: s, Value: 20}) {
			if w != uint32(19+20*i) {
				e.Fatalf("word %d is %d", i, w)
			}
		}
	}},
	{name: "B95 a variable of the code is a buffer, which keeps the code", kernels: true, run: func(e *env) {
		d, s := e.devs[0], e.sem()
		x, err := d.Load(variables)
		e.must(err)
		b, err := x.Global("table")
		e.must(err)
		if b.Size() != 256 || b.Ptr() == 0 || b.Kind() != gpu.DeviceMem || b.Bytes() != nil || b.Device() != d {
			e.Errorf("%d bytes at %#x", b.Size(), b.Ptr())
		}
		if _, err := x.Global("nothing"); err == nil {
			e.Error("a variable that is not there")
		}
		e.must(x.Close())
		if _, err := x.Global("table"); !errors.Is(err, gpu.ErrClosed) {
			e.Errorf("a variable of closed code: %v", err)
		}
		e.must(e.q(0).Submit(signal(s, 1), gpu.Fill(b.All(), []byte{0x77})))
		e.must(e.q(1).Submit(between(s, 1, s, 2), gpu.Fill(b.Range(8, 8), []byte{1, 2, 3, 4, 5, 6, 7, 8})))
		want := bytes.Repeat([]byte{0x77}, 256)
		copy(want[8:], []byte{1, 2, 3, 4, 5, 6, 7, 8})
		e.same("the variable", e.read(b, gpu.Point{Semaphore: s, Value: 2}), want)
		if err := e.q(0).Submit(signal(s, 3), gpu.Fill(b.Range(256, 1), []byte{0})); !errors.Is(err, gpu.ErrRange) {
			e.Errorf("behind the variable: %v", err)
		}
		e.must(b.Close())
		e.must(b.Close())
		e.until("it is let go of", func() bool { return d.Stats().Buffers == 0 })
	}},
}
