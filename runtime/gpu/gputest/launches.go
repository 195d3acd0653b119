package gputest

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/puregpu/puregpu/runtime/driver"
	"github.com/puregpu/puregpu/runtime/gpu"
	"github.com/puregpu/puregpu/runtime/interop"
	"github.com/puregpu/puregpu/testdata/kernels"
)

// manyParams is code with a kernel that has 32,764 bytes of parameters, the maximum. The kernel
// writes three words to the address params_out: the first and the last element of the array
// params_all, and params_last.
var manyParams = []byte(`.version 8.1
.target sm_70
.address_size 64

.visible .entry params(
	.param .u64 params_out,
	.param .align 8 .b8 params_all[32752],
	.param .u32 params_last
)
{
	.reg .b32 %r<2>;
	.reg .b64 %rd<6>;

	ld.param.u64 %rd1, [params_out];
	cvta.to.global.u64 %rd2, %rd1;
	ld.param.u64 %rd3, [params_all];
	ld.param.u64 %rd4, [params_all+32744];
	ld.param.u32 %r1, [params_last];
	cvt.u64.u32 %rd5, %r1;
	st.global.u64 [%rd2], %rd3;
	st.global.u64 [%rd2+8], %rd4;
	st.global.u64 [%rd2+16], %rd5;
	ret;
}
` + "\x00")

// code returns the harness's code for a kernel. If the harness has no code for it, code returns the
// parameter image.
func (e *env) code(image []byte, kernel string) []byte {
	if other := e.h.Code[kernel]; other != nil {
		return other
	}
	return image
}

// ofNVIDIA reports whether the first device is an NVIDIA GPU of compute capability 9 or later, with
// clusters. On such a GPU the tests expect clusters of 16 blocks, and dependent launches that begin
// early.
func (e *env) ofNVIDIA() bool {
	i := e.devs[0].Info()
	return strings.HasPrefix(i.Arch, "sm_") && i.Major >= 9 && i.Clusters
}

// newer loads a kernel. If the first device cannot load the code and is an NVIDIA GPU with a
// compute capability below 9, newer skips the test.
func newer[A any](e *env, image []byte, kernel string) *gpu.TypedKernel[A] {
	e.Helper()
	x, err := e.devs[0].Load(e.code(image, kernel))
	if info := e.devs[0].Info(); err != nil && strings.HasPrefix(info.Arch, "sm_") && info.Major < 9 {
		e.Skipf("%s is too old: %v", info.Arch, err)
	}
	e.must(err)
	e.Cleanup(func() { x.Close() })
	k, err := x.Kernel(kernel)
	e.must(err)
	return bind[A](e, k)
}

// wordSlice allocates n words of the first device's own memory, and fills them with zeros.
func wordSlice(e *env, n int) gpu.Slice[uint32] {
	e.Helper()
	xs, err := gpu.AllocSlice[uint32](e.devs[0], gpu.DeviceMem, n)
	e.must(err)
	e.Cleanup(func() { xs.Close() })
	s := e.q(0).NewStream()
	e.must(s.Do(xs.Fill(0)))
	e.must(s.Wait(e.ctx))
	return xs
}

// trial submits a launch and waits for it. If the device does not support the launch, trial skips
// the test.
func (e *env) trial(launch func(o gpu.Order) error) {
	e.Helper()
	s := e.sem()
	if err := launch(signal(s, 1)); errors.Is(err, driver.ErrUnsupported) {
		e.Skip(err)
	} else {
		e.must(err)
	}
	e.wait(s, 1)
}

// contentOf returns the elements of a slice, after all work of a stream so far is done.
func contentOf[T any](e *env, s *gpu.Stream, xs gpu.Slice[T]) []T {
	e.Helper()
	got := make([]T, xs.Len())
	e.must(s.Do(xs.Download(got)))
	e.must(s.Wait(e.ctx))
	return got
}

// ringArgs are the arguments of kernel ring.
type ringArgs struct{ Out gpu.Range }

// ringOf returns the output of kernel ring for the given numbers of blocks, and of blocks in a
// cluster.
func ringOf(blocks, cluster int) (all []uint32) {
	for b := range blocks {
		all = append(all, uint32(1000+b/cluster*cluster+(b+1)%cluster), uint32(cluster))
	}
	return all
}

// meetArgs are the arguments of kernel meet.
type meetArgs struct {
	Rounds       uint32
	Counter, Out gpu.Slice[uint32]
}

// leadArgs are the arguments of kernel lead. followArgs are the arguments of kernel follow, whose
// launch depends on the launch of lead.
type (
	leadArgs struct {
		Flags, Out gpu.Slice[uint32]
		Value      uint32
	}
	followArgs struct{ Flags, Out, In gpu.Slice[uint32] }
)

var launches = []test{
	{name: "B152 launches with clusters", kernels: true, run: func(e *env) {
		const blocks = 48
		k := newer[ringArgs](e, kernels.Ring, "ring")
		s, out := e.q(0).NewStream(), wordSlice(e, 2*blocks)
		grid := gpu.Grid{Blocks: [3]uint32{blocks, 1, 1}, Attrs: gpu.LaunchAttrs{Cluster: [3]uint32{2, 1, 1}}}
		e.trial(func(o gpu.Order) error { return e.q(1).Submit(o, k.Launch(grid, ringArgs{out.Range()})) })
		x, err := e.devs[0].Load(e.code(kernels.Ring, "ring"))
		e.must(err)
		defer x.Close()
		plain, err := x.Kernel("ring")
		e.must(err)
		most := plain.Info().MaxCluster
		e.Logf("clusters of at most %d blocks", most)
		sizes := []int{1, 2, 4, 8, 16}
		if most < 16 && !e.ofNVIDIA() { // not every device has clusters of more than 8
			sizes = sizes[:4]
		}
		for _, n := range sizes {
			grid.Attrs.Cluster = [3]uint32{uint32(n)}
			e.must(s.Do(out.Fill(0)))
			e.must(s.Do(k.Launch(grid, ringArgs{out.Range()})))
			if got := contentOf(e, s, out); !slices.Equal(got, ringOf(blocks, n)) {
				e.Errorf("clusters of %d: %v", n, got)
			}
		}
		grid.Attrs.Cluster = [3]uint32{5, 1, 1}
		if err := e.q(1).NewStream().Do(k.Launch(grid, ringArgs{out.Range()})); !errors.Is(err, gpu.ErrArgument) {
			e.Errorf("a grid of %d blocks in clusters of 5: %v", blocks, err)
		}
		e.eachMode(func(e *env, m gpu.Mode) {
			c := e.commands(m)
			b := c.binding()
			want := []uint32{}
			for i, n := range sizes {
				grid.Attrs.Cluster = [3]uint32{uint32(n), 1, 1}
				grid.Blocks[0] = 16
				c.add(k.Launch(grid, ringArgs{b.Range(uint64(128*i), 128)}))
				want = append(want, ringOf(16, n)...)
			}
			c.end()
			for q := range 2 { // each execution has other addresses, so the graph's nodes are updated
				out := wordSlice(e, 32*q+len(want))
				s := e.q(q).NewStream()
				e.must(s.Do(gpu.Execute(c.CommandBuffer, out.Slice(32*q, 32*q+len(want)).Range())))
				if got := contentOf(e, s, out); !slices.Equal(got, slices.Concat(make([]uint32, 32*q), want)) {
					e.Errorf("execution %d: %v", q, got)
				}
			}
		})
	}},
	{name: "B152 cooperative grids, as large as fit", kernels: true, run: func(e *env) {
		const threads, rounds = 64, 5
		plain := e.kernel(e.code(kernels.Meet, "meet"), "meet")
		k := bind[meetArgs](e, plain)
		held, untold := plain.Occupancy(threads, 0)
		if untold != nil {
			held = 1
		}
		blocks := held * e.devs[0].Info().Processors
		e.Logf("%d blocks", blocks)
		s, counter, out := e.q(0).NewStream(), wordSlice(e, 1), wordSlice(e, blocks)
		grid := gpu.Grid{Blocks: [3]uint32{uint32(blocks), 1, 1}, Threads: [3]uint32{threads}, Attrs: gpu.LaunchAttrs{Cooperative: true}}
		e.trial(func(o gpu.Order) error {
			return e.q(1).Submit(o, k.Launch(gpu.Grid{Blocks: [3]uint32{1, 1, 1}, Attrs: grid.Attrs}, meetArgs{0, counter, out}))
		})
		met := func(what string, n int) {
			e.Helper()
			for i, v := range contentOf(e, s, out) {
				if v != uint32(n*rounds*blocks) {
					e.Fatalf("%s: block %d has seen %d, want %d", what, i, v, n*rounds*blocks)
				}
			}
		}
		e.must(s.Do(counter.Fill(0)))
		e.must(s.Do(k.Launch(grid, meetArgs{rounds, counter, out})))
		met("a stream", 1)
		e.eachMode(func(e *env, m gpu.Mode) {
			c := e.commands(m)
			first := c.fill(counter.Range(), []byte{0})
			first = c.add(k.Launch(grid, meetArgs{rounds, counter, out}), first)
			last := c.add(k.Launch(grid, meetArgs{0, counter, out}), first)
			c.fill(counter.Range(), []byte{0}, last)
			c.end()
			for range 2 {
				e.must(s.Do(gpu.Execute(c.CommandBuffer)))
			}
			met(fmt.Sprintf("mode %d", m), 1)
		})
		grid.Blocks[0]++
		if untold == nil {
			if err := e.q(2).NewStream().Do(k.Launch(grid, meetArgs{rounds, counter, out})); !errors.Is(err, gpu.ErrArgument) {
				e.Errorf("one block more: %v", err)
			}
		}
	}},
	{name: "B152 dependent launches come after the work that they wait for", kernels: true, run: func(e *env) {
		const threads = 256
		lead, follow := newer[leadArgs](e, kernels.Dependent, "lead"), newer[followArgs](e, kernels.Dependent, "follow")
		s, flags, mid, out := e.q(0).NewStream(), wordSlice(e, 2), wordSlice(e, threads), wordSlice(e, threads)
		grid := gpu.Grid{Blocks: [3]uint32{1, 1, 1}, Threads: [3]uint32{threads}}
		behind := grid
		behind.Attrs.Dependent = true
		e.trial(func(o gpu.Order) error { return e.q(1).Submit(o, follow.Launch(behind, followArgs{flags, out, mid})) })
		early := 0
		check := func(e *env, what string, value uint32) {
			e.Helper()
			for i, v := range contentOf(e, s, out) {
				if want := value + uint32(i) + 1; v != want {
					e.Fatalf("%s: element %d is %d, want %d", what, i, v, want)
				}
			}
			began := contentOf(e, s, flags)[1] != 0
			e.Logf("%s: the second kernel began before the first had ended: %v", what, began)
			if began {
				early++
			}
		}
		for v := range uint32(3) {
			e.must(s.Do(flags.Fill(0)))
			e.must(s.Do(lead.Launch(grid, leadArgs{flags, mid, 100 * v})))
			e.must(s.Do(follow.Launch(behind, followArgs{flags, out, mid})))
			check(e, "a stream", 100*v)
		}
		e.eachMode(func(e *env, m gpu.Mode) {
			c := e.commands(m)
			first := c.fill(flags.Range(), []byte{0})
			first = c.add(lead.Launch(grid, leadArgs{flags, mid, 7}), first)
			first = c.add(follow.Launch(behind, followArgs{flags, out, mid}), first)
			// This launch depends on a launch that is itself dependent.
			c.got(c.Add(follow.Launch(behind, followArgs{flags, mid, out}), first))
			c.end()
			for range 3 {
				e.must(s.Do(gpu.Execute(c.CommandBuffer)))
				check(e, fmt.Sprintf("mode %d", m), 7)
			}
			if got := contentOf(e, s, mid); got[threads-1] != 7+threads-1+2 {
				e.Errorf("behind the second: %v", got)
			}
		})
		// The first kernel waits some milliseconds for the second kernel to begin. Profilers and
		// checkers may run kernels one after the other. Tests under such a tool use -short, which
		// leaves out this check.
		if early == 0 && e.ofNVIDIA() && !testing.Short() {
			e.Error("the second kernel has never begun before the first had ended")
		}
	}},
	{name: "B187 a launch event is recorded when the launch has begun, and stays until then", kernels: true, run: func(e *env) {
		const n = 1000
		k, b, s, w := e.kernel(kernels.Basic, "index"), e.buffer(4*n), e.sem(), e.sem()
		event := func() *interop.Event {
			e.Helper()
			x, err := interop.NewEvent(e.devs[0])
			e.must(err)
			e.Cleanup(func() { x.Close() })
			return x
		}
		grid := gpu.GridFor(n, 64)
		launch := func(g gpu.Grid, first uint32, begun *interop.Event) gpu.Op {
			return interop.Begun(gpu.Launch(k, g, uint64(n), first, uint32(2), b), begun)
		}
		begun := event()
		e.trial(func(o gpu.Order) error { return e.q(2).Submit(o, launch(grid, 0, begun)) })
		for i := range uint64(20) {
			e.must(e.q(0).Submit(between(s, i, s, i+1), launch(grid, uint32(i), begun)))
			e.must(s.WaitIssued(e.ctx, i+1))
			e.must(e.q(1).Submit(between(w, i, w, i+1), interop.WaitEvent(begun)))
			e.wait(w, i+1)
			for j, got := range e.words(b, gpu.Point{Semaphore: s, Value: i + 1}) {
				if got != uint32(i)+2*uint32(j) {
					e.Fatalf("launch %d: word %d is %d", i, j, got)
				}
			}
		}

		// The first of these launches is empty. The second is parked when its event is closed.
		host, x, y := e.sem(), e.sem(), e.sem()
		e.must(e.q(0).Submit(signal(x, 1), launch(gpu.GridFor(0, 64), 0, begun)))
		e.must(x.WaitIssued(e.ctx, 1))
		e.must(e.q(1).Submit(between(x, 1, x, 2), interop.WaitEvent(begun)))
		e.wait(x, 2)
		parked := event()
		e.must(e.q(0).Submit(between(host, 1, y, 1), launch(grid, 0, parked)))
		e.must(parked.Close())
		e.must(host.Signal(1))
		e.wait(y, 1)

		refused := func(what string, op gpu.Op, kind error) {
			e.Helper()
			if err := e.q(0).Submit(signal(e.sem(), 1), op); !errors.Is(err, kind) {
				e.Errorf("%s: %v", what, err)
			}
		}
		refused("no event", launch(grid, 0, nil), gpu.ErrArgument)
		refused("a zero event", launch(grid, 0, new(interop.Event)), gpu.ErrArgument)
		refused("an event that was closed", launch(grid, 0, parked), gpu.ErrClosed)
		refused("a fill", interop.Begun(gpu.Fill(b.All(), []byte{1}), begun), gpu.ErrArgument)
		refused("a wrong launch", interop.Begun(gpu.BadOp(gpu.ErrRange), begun), gpu.ErrRange)
		if shared, err := interop.NewSharedEvent(e.devs[0]); err == nil {
			refused("an event of several processes", launch(grid, 0, shared), gpu.ErrArgument)
			e.must(shared.Close())
		}
		e.eachMode(func(e *env, m gpu.Mode) {
			if _, err := e.commands(m).Add(launch(grid, 0, begun)); !errors.Is(err, driver.ErrUnsupported) {
				e.Errorf("recorded: %v", err)
			}
		})
		e.settled(e.devs[0])
	}},
	{name: "B153 priorities of queues, and preferences of launches", kernels: true, options: gpu.Options{Priorities: []int{-1000, 1000, -1}}, run: func(e *env) {
		least, most := e.devs[0].PriorityRange()
		for i, want := range []int{most, least, min(max(-1, most), least), 0} {
			if got := e.q(i).Priority(); got != want {
				e.Errorf("queue %d has priority %d, want %d of %d to %d", i, got, want, least, most)
			}
		}
		const n = 1000
		k := e.kernel(kernels.Basic, "index")
		for i, attrs := range []gpu.LaunchAttrs{{Priority: -1000}, {Priority: 1000}, {Priority: -1}, {Carveout: -1}, {Carveout: 50}, {Carveout: 100}, {Priority: most, Carveout: 100}} {
			for _, mode := range []gpu.Mode{gpu.StreamMode, gpu.AutoMode} {
				b, s, c := e.buffer(4*n), e.sem(), e.commands(mode)
				grid := gpu.GridFor(n, 64)
				grid.Attrs = attrs
				launch := gpu.Launch(k, grid, uint64(n), uint32(i), uint32(2), b)
				e.must(e.q(i%4).Submit(signal(s, 1), launch))
				c.add(launch)
				for range 3 {
					c.add(gpu.Barrier())
					c.fill(b.Range(0, 4), []byte{byte(i), 0, 0, 0})
				}
				c.end()
				e.must(e.q(i%4).Submit(between(s, 1, s, 2), gpu.Execute(c.CommandBuffer)))
				for j, w := range e.words(b, gpu.Point{Semaphore: s, Value: 2}) {
					if w != uint32(i+2*j) {
						e.Fatalf("%+v: word %d is %d", attrs, j, w)
					}
				}
			}
		}
	}},
	{name: "B107 the largest possible arguments", kernels: true, run: func(e *env) {
		type args struct {
			Out  gpu.Slice[uint64]
			All  [4094]uint64
			Last uint32
		}
		k, s := newer[args](e, manyParams, "params"), e.q(0).NewStream()
		out, err := gpu.AllocSlice[uint64](e.devs[0], gpu.DeviceMem, 3)
		e.must(err)
		defer out.Close()
		a := args{Out: out, Last: 1 << 31}
		check := func(what string) {
			e.Helper()
			if got, want := contentOf(e, s, out), []uint64{a.All[0], a.All[4093], 1 << 31}; !slices.Equal(got, want) {
				e.Errorf("%s: %v, want %v", what, got, want)
			}
		}
		a.All[0], a.All[4093] = 1<<40+1, 1<<50+2
		e.must(s.Do(k.Launch(gpu.GridFor(1, 1), a)))
		check("a stream")
		e.eachMode(func(e *env, m gpu.Mode) {
			c := e.commands(m)
			a.All[0]++
			c.add(k.Launch(gpu.GridFor(1, 1), a))
			c.end()
			e.must(s.Do(gpu.Execute(c.CommandBuffer)))
			check(fmt.Sprintf("mode %d", m))
		})
	}},
}
