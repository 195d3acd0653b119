package simdriver_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"runtime"
	"slices"
	"strings"
	"testing"
	"unsafe"

	"github.com/puregpu/puregpu/runtime/driver"
	"github.com/puregpu/puregpu/runtime/driver/simdriver"
)

func TestNewKernel(t *testing.T) {
	type small struct {
		A [3]int16
		B float64
	}
	for _, c := range []struct {
		fn     any
		params []int
		say    string // part of the error of NewKernel
	}{
		{fn: func(*simdriver.Grid) {}},
		{fn: func(*simdriver.Grid, driver.Ptr, int8, float32, small, [2]uint32) error { return nil }, params: []int{8, 1, 4, 16, 8}},
		{fn: nil, say: "a <nil> cannot"},
		{fn: 5, say: "a int cannot"},
		{fn: (func(*simdriver.Grid))(nil), say: "it is nil"},
		{fn: func() {}, say: "first parameter"},
		{fn: func(int) {}, say: "first parameter"},
		{fn: func(*simdriver.Grid, ...int) {}, say: "variadic"},
		{fn: func(*simdriver.Grid) int { return 0 }, say: "no result"},
		{fn: func(*simdriver.Grid, int32, *int32) {}, say: "parameter 2 is a *int32"},
		{fn: func(*simdriver.Grid, int) {}, say: "parameter 1 is a int, which a GPU cannot have: use integers of a fixed size (C's int is int32)"},
		{fn: func(*simdriver.Grid, uint) {}, say: "parameter 1 is a uint, "},
		{fn: func(*simdriver.Grid, uintptr) {}, say: "parameter 1 is a uintptr, "},
		{fn: func(*simdriver.Grid, struct{ N [2]int }) {}, say: "parameter 1"},
		{fn: func(*simdriver.Grid, string) {}, say: "parameter 1 is a string"},
		{fn: func(*simdriver.Grid, bool) {}, say: "parameter 1 is a bool"},
		{fn: func(*simdriver.Grid, struct{ S []int }) {}, say: "parameter 1"},
		{fn: func(*simdriver.Grid, struct{}) {}, say: "parameter 1"},
	} {
		k, err := simdriver.NewKernel(c.fn)
		if c.say != "" {
			if !errors.Is(err, simdriver.ErrInvalidValue) || !strings.Contains(err.Error(), c.say) {
				t.Errorf("%T: %v, want it to say %q", c.fn, err, c.say)
			}
			continue
		}
		if err != nil || !slices.Equal(k.Params(), c.params) {
			t.Errorf("%T: %v, %v", c.fn, k.Params(), err)
		}
	}
	if (simdriver.Kernel{}).Params() != nil {
		t.Error("the zero Kernel has parameters")
	}
}

// TestArguments checks that a kernel sees its arguments as they were at the launch.
func TestArguments(t *testing.T) {
	type pair struct {
		A uint16
		B float64
	}
	type args struct {
		P driver.Ptr
		I int8
		F float32
		S pair
	}
	var got []args
	var grids []simdriver.Grid
	d, vs := open(t, simdriver.Config{Devices: 2, Kernels: kernels(map[string]any{
		"k": func(g *simdriver.Grid, p driver.Ptr, i int8, f float32, s pair) {
			got = append(got, args{p, i, f, s})
			grids = append(grids, simdriver.Grid{Name: g.Name, Device: g.Device, Stream: g.Stream, Blocks: g.Blocks, Threads: g.Threads, Shared: g.Shared})
		},
	})})
	v := vs[1]
	s, f := stream(t, v), function(t, v, "k")
	check(t, d.StallStream(s))
	var want []args
	for i := range 5 {
		a := args{driver.Ptr(i) << 40, int8(-i), float32(i) / 2, pair{uint16(i), float64(i) / 4}}
		want = append(want, a)
		check(t, v.Launch(s, &driver.Launch{Function: f, Grid: [3]uint32{uint32(i + 1), 2, 3}, Block: [3]uint32{4, 5, 6}, SharedMem: 7,
			Args: []unsafe.Pointer{unsafe.Pointer(&a.P), unsafe.Pointer(&a.I), unsafe.Pointer(&a.F), unsafe.Pointer(&a.S)}}))
		a = args{}
	}
	check(t, d.ResumeStream(s))
	check(t, drain(t, v, s))
	if !slices.Equal(got, want) {
		t.Errorf("arguments %v, want %v", got, want)
	}
	for i := range grids {
		w := simdriver.Grid{Name: "k", Device: 1, Stream: s, Blocks: [3]uint32{uint32(i + 1), 2, 3}, Threads: [3]uint32{4, 5, 6}, Shared: 7}
		if !reflect.DeepEqual(&grids[i], &w) {
			t.Errorf("grid %d: %+v", i, &grids[i])
		}
	}
}

func TestGrid(t *testing.T) {
	g := simdriver.Grid{Blocks: [3]uint32{2, 1, 2}, Threads: [3]uint32{3, 2, 1}}
	var seen []simdriver.Thread
	for x := range g.All() {
		seen = append(seen, x)
	}
	if g.Size() != 24 || len(seen) != 24 {
		t.Fatalf("%d threads of %d", len(seen), g.Size())
	}
	if want := (simdriver.Thread{Block: [3]uint32{1, 0, 1}, Thread: [3]uint32{2, 1, 0}, Global: [3]uint64{5, 1, 1}}); seen[23] != want {
		t.Errorf("last thread %+v", seen[23])
	}
	if want := (simdriver.Thread{Thread: [3]uint32{0, 1, 0}, Global: [3]uint64{0, 1, 0}}); seen[3] != want {
		t.Errorf("fourth thread %+v", seen[3])
	}
	for range g.All() {
		break
	}
	if _, err := simdriver.View[byte](&g, 8, 1); !errors.Is(err, simdriver.ErrInvalidValue) {
		t.Errorf("View of no launch: %v", err)
	}
	if _, _, ok := g.Global("x"); ok {
		t.Error("a Grid of no launch has a variable")
	}
}

// TestKernelFails tests all ways in which a kernel can fail.
func TestKernelFails(t *testing.T) {
	var errAssert = errors.New("assertion failed")
	for _, c := range []struct {
		name string
		fn   any
		want error
		say  string
	}{
		{"panic", func(*simdriver.Grid) { panic("out of luck") }, driver.ErrLost, "kernel k on stream"},
		{"panic's text", func(*simdriver.Grid) { panic("out of luck") }, driver.ErrLost, "panic: out of luck"},
		{"index", func(g *simdriver.Grid) { _ = []int{}[len(g.Name)] }, driver.ErrLost, "index out of range"},
		{"error", func(*simdriver.Grid) error { return errAssert }, errAssert, "assertion failed"},
		{"goexit", func(*simdriver.Grid) { runtime.Goexit() }, driver.ErrLost, "runtime.Goexit"},
		{"type", func(g *simdriver.Grid) error {
			_, err := simdriver.View[*int](g, 8, 1)
			return err
		}, simdriver.ErrInvalidValue, "cannot have that type"},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, vs := open(t, simdriver.Config{Kernels: kernels(map[string]any{"k": c.fn})})
			v := vs[0]
			s, f, e := stream(t, v), function(t, v, "k"), event(t, v)
			check(t, launch(v, s, f))
			v.Record(e, s) // fails if the device is already lost
			err := wait(t, v, e)
			refused(t, err, c.want, c.say)
			refused(t, err, driver.ErrLost)
			refused(t, v.DestroyStream(s), driver.ErrLost)
		})
	}
}

func TestLaunchRefused(t *testing.T) {
	d, vs := open(t, simdriver.Config{Devices: 2, Kernels: kernels(map[string]any{"k": func(*simdriver.Grid, int32) {}})})
	v := vs[0]
	s, m := stream(t, v), must(v.Load(simdriver.Image("k")))(t)
	f, _, err := v.Function(m, "k")
	check(t, err)
	one, arg := [3]uint32{1, 1, 1}, []unsafe.Pointer{ptr(1)}
	for _, c := range []struct {
		name string
		l    driver.Launch
		want error
	}{
		{"many blocks", driver.Launch{Function: f, Grid: [3]uint32{1, 65536, 1}, Block: one, Args: arg}, simdriver.ErrInvalidValue},
		{"many threads", driver.Launch{Function: f, Grid: one, Block: [3]uint32{32, 33, 1}, Args: arg}, simdriver.ErrInvalidValue},
		{"thick block", driver.Launch{Function: f, Grid: one, Block: [3]uint32{1, 1, 65}, Args: arg}, simdriver.ErrInvalidValue},
		{"shared memory", driver.Launch{Function: f, Grid: one, Block: one, SharedMem: 1 << 20, Args: arg}, simdriver.ErrInvalidValue},
		{"no arguments", driver.Launch{Function: f, Grid: one, Block: one}, simdriver.ErrInvalidValue},
		{"nil argument", driver.Launch{Function: f, Grid: one, Block: one, Args: []unsafe.Pointer{nil}}, simdriver.ErrInvalidValue},
		{"no function", driver.Launch{Function: f + 1, Grid: one, Block: one, Args: arg}, simdriver.ErrInvalidHandle},
	} {
		t.Run(c.name, func(t *testing.T) { refused(t, v.Launch(s, &c.l), c.want) })
	}
	good := &driver.Launch{Function: f, Grid: one, Block: one, Args: arg}
	refused(t, vs[1].Launch(stream(t, vs[1]), good), simdriver.ErrInvalidHandle, "loaded on device 0")
	check(t, v.Launch(s, good))
	check(t, drain(t, v, s))

	check(t, d.StallStream(s))
	check(t, v.Launch(s, good))
	e := record(t, v, s)
	check(t, v.Unload(m))
	refused(t, v.Launch(s, good), simdriver.ErrInvalidHandle)
	check(t, d.ResumeStream(s))
	refused(t, wait(t, v, e), driver.ErrLost, "unloaded before it ran")
}

// TestZeroDimensions launches grids, blocks and clusters with dimensions of 0, which mean 1.
func TestZeroDimensions(t *testing.T) {
	type shape struct{ grid, block, cluster [3]uint32 }
	var got []shape
	_, vs := open(t, simdriver.Config{Kernels: kernels(map[string]any{"k": func(g *simdriver.Grid) {
		got = append(got, shape{g.Blocks, g.Threads, g.Cluster})
	}})})
	v := vs[0]
	s, f := stream(t, v), function(t, v, "k")
	type dims = [3]uint32
	var want []shape
	for _, c := range []struct{ given, want shape }{
		{shape{}, shape{dims{1, 1, 1}, dims{1, 1, 1}, dims{1, 1, 1}}},
		{shape{grid: dims{64}}, shape{dims{64, 1, 1}, dims{1, 1, 1}, dims{1, 1, 1}}},
		{shape{grid: dims{0, 2, 0}, block: dims{0, 0, 3}}, shape{dims{1, 2, 1}, dims{1, 1, 3}, dims{1, 1, 1}}},
		{shape{grid: dims{4}, block: dims{32}, cluster: dims{2}}, shape{dims{4, 1, 1}, dims{32, 1, 1}, dims{2, 1, 1}}},
		{shape{grid: dims{0, 4}, cluster: dims{0, 2}}, shape{dims{1, 4, 1}, dims{1, 1, 1}, dims{1, 2, 1}}},
	} {
		l := driver.Launch{Function: f, Grid: c.given.grid, Block: c.given.block, Attrs: driver.LaunchAttrs{Cluster: c.given.cluster}}
		check(t, v.Launch(s, &l))
		g := graph(t, v)
		must(graphs(v).AddNode(g, nil, &driver.NodeOp{Kind: driver.KernelNode, Launch: l}))(t)
		x := must(graphs(v).Instantiate(g))(t)
		check(t, graphs(v).LaunchGraph(s, x))
		want = append(want, c.want, c.want)
		if n := uint64(c.want.grid[0]) * uint64(c.want.grid[1]) * uint64(c.want.grid[2]); l.Blocks() != n {
			t.Errorf("%v: %d blocks, want %d", c.given, l.Blocks(), n)
		}
	}
	check(t, drain(t, v, s))
	if !slices.Equal(got, want) {
		t.Errorf("launched\n%v, want\n%v", got, want)
	}
}

// TestShared tests kernels with static shared memory.
func TestShared(t *testing.T) {
	_, vs := open(t, simdriver.Config{Kernels: kernels(map[string]any{"k": func(*simdriver.Grid) {}, "l": func(*simdriver.Grid) {}})})
	v := vs[0]
	most := v.Info().SharedOptIn
	for text, own := range map[string]int{
		".shared .b8 outside[64]; .entry k() { .shared .align 4 .b8 a[16384]; .shared .v2 .f32 b[2][3]; { .shared .u8 c; } ret; } .entry l() { .shared .u64 d; }": 16384 + 48 + 1,
		".func f() { .shared .u32 x; } .entry k() { ld.shared.u32 %r1, [x]; }":                                                                                    0,
		".extern .shared .align 16 .b8 dynamic[]; .entry k() {} .func f() { .shared .u32 x; }":                                                                    0,
		fmt.Sprintf(".entry k() { .shared .b8 all[%d]; }", most):                                                                                                  most,
	} {
		m := must(v.Load([]byte(text)))(t)
		f, info, err := v.Function(m, "k")
		check(t, err)
		if info.SharedMem != own {
			t.Errorf("%s: %d bytes, want %d", text, info.SharedMem, own)
		}
		s, one := stream(t, v), [3]uint32{1, 1, 1}
		l := &driver.Launch{Function: f, Grid: one, Block: one, SharedMem: uint32(most - own)}
		check(t, v.Launch(s, l))
		l.SharedMem++
		refused(t, v.Launch(s, l), simdriver.ErrInvalidValue, fmt.Sprintf("%d of them static", own))
		check(t, drain(t, v, s))
		check(t, v.Unload(m))
	}
	m := must(v.Load(fmt.Appendf(nil, ".entry k() { .shared .b8 all[%d]; }", most+1)))(t)
	_, _, err := v.Function(m, "k")
	refused(t, err, simdriver.ErrInvalidValue, "bytes of shared memory")
}

// TestClusters tests kernels that are compiled with clusters.
func TestClusters(t *testing.T) {
	_, vs := open(t, simdriver.Config{Kernels: kernels(map[string]any{"k": func(*simdriver.Grid) {}})})
	v := vs[0]
	for text, want := range map[string][3]int{
		".entry k() { ret; }":                                                      {},
		".entry k() .reqnctapercluster 2, 4, 3 { ret; }":                           {2, 4, 3},
		".entry k() .explicitcluster .reqnctapercluster 2,4 .maxntid 32,1,1 { }":   {2, 4, 1},
		".entry k() .reqnctapercluster 5 {} .entry l() .reqnctapercluster 1,1,7 {": {5, 1, 1},
		".entry k() .reqnctapercluster 0, x":                                       {1, 1, 1},
		".entry k() .reqnctapercluster":                                            {1, 1, 1},
	} {
		m := must(v.Load([]byte(text)))(t)
		f, info, err := v.Function(m, "k")
		check(t, err)
		if info.Cluster != want {
			t.Errorf("%s: clusters of %v, want %v", text, info.Cluster, want)
		}
		s, l := stream(t, v), &driver.Launch{Function: f, Block: [3]uint32{1, 1, 1}}
		for i, n := range want {
			l.Grid[i] = 2 * uint32(max(n, 1))
		}
		check(t, v.Launch(s, l))
		for i, n := range want {
			if l.Grid[i]++; n > 1 {
				refused(t, v.Launch(s, l), simdriver.ErrInvalidValue, "clusters of")
			}
			l.Grid[i]--
		}
		check(t, drain(t, v, s))
		check(t, v.Unload(m))
	}
}

// file reads an image that NVIDIA's tools have made.
func file(t *testing.T, name string) string {
	t.Helper()
	b, err := os.ReadFile(filepath.Join("..", "cudadriver", "testdata", "images", name))
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// TestImages loads images of several forms. The Go functions of their kernels have two parameters,
// of 8 and 4 bytes.
func TestImages(t *testing.T) {
	k := func(*simdriver.Grid, driver.Ptr, float32) {}
	_, vs := open(t, simdriver.Config{Kernels: map[string]simdriver.Kernel{
		"saxpy": simdriver.MustKernel(k), "_Z5scalePff": simdriver.MustKernel(k), "empty": {},
		"small": simdriver.MustKernel(k), "big": simdriver.MustKernel(k), "none": simdriver.MustKernel(k),
	}})
	v := vs[0]
	const ptx = ".version 6.4\n.target sm_52\n.address_size 64\n"
	for _, c := range []struct {
		name, image, kernel string
		load, find          string // parts of the errors of Load and Function; "" if there is none
	}{
		{name: "image", image: string(simdriver.Image("saxpy", "other")), kernel: "saxpy"},
		{name: "line among others", image: "#!/bin/x\n  // sim: a b saxpy\n\x00\xff", kernel: "saxpy"},
		{name: "two lines", image: "// sim: a\n// sim: saxpy", kernel: "saxpy"},
		{name: "ptx", image: ptx + ".visible .entry saxpy(\n.param .u64 a,\n\t.param .f32 b\n)\n{ ret; }", kernel: "saxpy"},
		{name: "ptx with attributes", image: ptx + ".entry _Z5scalePff(.param .u64 .ptr .global .align 16 a, .param .align 4 .b8 b[4]) .maxntid 256, 1, 1 {}", kernel: "_Z5scalePff"},
		{name: "ptx with another parameter", image: ptx + ".entry saxpy(.param .u64 a, .param .u64 b){}", kernel: "saxpy", find: "declares parameters of [8 8] bytes, the Go function has [8 4]"},
		{name: "ptx without parameters", image: ptx + ".entry saxpy\n{}", kernel: "saxpy", find: "declares parameters of []"},
		{name: "ptx, other name", image: ptx + ".entry saxpy2(){}", kernel: "saxpy", find: "the module has saxpy2"},
		{name: "ptx, commented out", image: ptx + "// .entry saxpy()\n/* .entry saxpy() */ .entry x(){}", kernel: "saxpy", find: "the module has x"},
		{name: "not registered", image: "// sim: other", kernel: "other", find: "Config.Kernels has no Go function for it, only _Z5scalePff, big, empty, none, saxpy, small"},
		{name: "zero Kernel", image: "// sim: empty", kernel: "empty", find: "make it with NewKernel"},
		{name: "nothing", image: "", load: "neither a line"},
		{name: "binary", image: "\x7fELF\x02", load: "was cut off"},
		{name: "cut off", image: ".entry", load: "neither a line"},
		{name: "bad size", image: "// sim: x=ten", load: `"ten"`},
		{name: "cut off ptx", image: ".entry saxpy(.param .u64", kernel: "saxpy"},
		{name: "cubin", image: file(t, "params.cubin"), kernel: "small", find: "declares parameters of [1 2 3] bytes, the Go function has [8 4]"},
		{name: "fat binary", image: file(t, "params.fatbin"), kernel: "big", find: "declares parameters of"},
		{name: "compressed fat binary", image: file(t, "compressed.fatbin"), kernel: "none", find: "declares parameters of [] bytes"},
		{name: "cubin's other kernel", image: file(t, "params.cubin"), kernel: "saxpy", find: "the module has big, none, small"},
	} {
		t.Run(c.name, func(t *testing.T) {
			m, err := v.Load([]byte(c.image))
			if c.load != "" {
				refused(t, err, simdriver.ErrInvalidValue, c.load)
				return
			}
			check(t, err)
			f, info, err := v.Function(m, c.kernel)
			if c.find != "" {
				if err == nil || !strings.Contains(err.Error(), c.find) {
					t.Errorf("Function: %v, want it to say %q", err, c.find)
				}
			} else {
				check(t, err)
				if !slices.Equal(info.Params, []int{8, 4}) || info.MaxThreads != 1024 {
					t.Errorf("info %+v", info)
				}
				if again, _, _ := v.Function(m, c.kernel); again != f {
					t.Error("found twice, the kernel has two handles")
				}
			}
			check(t, v.Unload(m))
			refused(t, v.Unload(m), simdriver.ErrInvalidHandle)
		})
	}
}

func TestVariables(t *testing.T) {
	d, vs := open(t, simdriver.Config{Kernels: kernels(map[string]any{
		"count": func(g *simdriver.Grid) error {
			p, n, ok := g.Global("counter")
			if _, _, no := g.Global("none"); !ok || no || n != 4 {
				return errors.New("variables")
			}
			x, err := simdriver.View[uint32](g, p, 1)
			x[0]++
			return err
		},
	})})
	v := vs[0]
	for _, image := range []string{
		"// sim: count counter=4",
		".visible .global .align 4 .u32 counter;\n.entry count() { .global .u32 inside; ld.global.u32 %r1, [counter]; }",
		".global .align 4 .b8 counter[2][2];\n.global .u32 initial = 5;\n.entry count() {}",
	} {
		m := must(v.Load([]byte(image)))(t)
		p, n, err := v.Global(m, "counter")
		check(t, err)
		if n != 4 || d.Counters().Devices[0].Bytes != 4 || d.Counters().Devices[0].Allocations != 0 {
			t.Errorf("%q: a variable of %d bytes, %+v", image, n, d.Counters())
		}
		f, _, err := v.Function(m, "count")
		check(t, err)
		s := stream(t, v)
		for range 3 {
			check(t, launch(v, s, f))
		}
		check(t, drain(t, v, s))
		if got := read(t, v, p, 4); got[0] != 3 {
			t.Errorf("counter %v", got)
		}
		for _, name := range []string{"inside", "initial", "count"} {
			_, _, err = v.Global(m, name)
			refused(t, err, simdriver.ErrNotFound, "the module has counter")
		}
		check(t, v.Unload(m))
		if d.Counters().Devices[0].Bytes != 0 {
			t.Error("the variable still exists")
		}
	}
}

// TestPTX runs a program that loads PTX.
func TestPTX(t *testing.T) {
	ptx, err := os.ReadFile("../../../testdata/kernels/saxpy.ptx")
	check(t, err)
	_, vs := open(t, simdriver.Config{Kernels: kernels(map[string]any{
		"saxpy": func(g *simdriver.Grid, n uint64, a float32, x, y driver.Ptr) error {
			xs, err := simdriver.View[float32](g, x, int(n))
			if err != nil {
				return err
			}
			ys, err := simdriver.View[float32](g, y, int(n))
			if err != nil {
				return err
			}
			for i := range xs {
				ys[i] += a * xs[i]
			}
			return nil
		},
	})})
	v := vs[0]
	f, _, err := v.Function(must(v.Load(ptx))(t), "saxpy")
	check(t, err)
	n, a := uint64(100), float32(2)
	x, y := alloc(t, v, driver.ManagedMem, 4*n), alloc(t, v, driver.ManagedMem, 4*n)
	xs, ys := unsafe.Slice((*float32)(x.Host), n), unsafe.Slice((*float32)(y.Host), n)
	for i := range xs {
		xs[i], ys[i] = float32(i), 1
	}
	s := stream(t, v)
	check(t, launch(v, s, f, unsafe.Pointer(&n), unsafe.Pointer(&a), unsafe.Pointer(&x.Ptr), unsafe.Pointer(&y.Ptr)))
	check(t, drain(t, v, s))
	for i := range ys {
		if ys[i] != 1+2*float32(i) {
			t.Fatalf("y[%d] = %v", i, ys[i])
		}
	}
}

func FuzzLoad(f *testing.F) {
	f.Add([]byte("// sim: a b=3"))
	f.Add([]byte(".visible .entry saxpy(.param .u64 a, .param .align 4 .b8 b[4])\n{}\n.global .v4 .f32 x[2];"))
	f.Fuzz(func(t *testing.T, b []byte) {
		_, vs := open(t, simdriver.Config{})
		if m, err := vs[0].Load(b); err == nil {
			vs[0].Function(m, "a")
			vs[0].Global(m, "x")
		}
	})
}
