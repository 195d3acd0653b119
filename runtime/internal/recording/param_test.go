package recording_test

import (
	"encoding/binary"
	"errors"
	"math"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/puregpu/puregpu/runtime/driver"
	"github.com/puregpu/puregpu/runtime/driver/simdriver"
	"github.com/puregpu/puregpu/runtime/gpu"
)

func kernelOf(t testing.TB, dev *gpu.Device, name string) *gpu.Kernel {
	t.Helper()
	x, err := dev.Load(simdriver.Image(name))
	must(t, err)
	k, err := x.Kernel(name)
	must(t, err)
	return k
}

func param[T any](t testing.TB, c *gpu.CommandBuffer, initial T) gpu.Param[T] {
	t.Helper()
	p, err := gpu.NewParam(c, initial)
	must(t, err)
	return p
}

// words returns the content of a buffer as 32-bit words.
func words(t testing.TB, b *gpu.Buffer) (all []uint32) {
	t.Helper()
	data := bytesOf(t, b.Device().Queue(0), b)
	for i := range len(data) / 4 {
		all = append(all, binary.LittleEndian.Uint32(data[4*i:]))
	}
	return all
}

// TestParamsInFlight tests B199: each execution in flight has its own values, and an execution
// without a value has the default. One parameter is in several launches.
func TestParamsInFlight(t *testing.T) {
	onEach(t, 1, func(t *testing.T, d *simdriver.Driver, caps driver.Caps) {
		dev := openDevice(t, d, 0, gpu.Options{Queues: 3})
		k := kernelOf(t, dev, "index")
		for _, m := range []gpu.Mode{gpu.StreamMode, gpu.GraphMode} {
			if m == gpu.GraphMode && !caps.Graphs {
				continue
			}
			c := commandBuffer(t, dev, m)
			out, err := c.Binding()
			must(t, err)
			n, first, step := param(t, c, uint64(2)), param(t, c, uint32(7)), param(t, c, uint32(1))
			for i := range uint64(3) { // all three launches have the parameter n
				recorded(t)(c.Add(gpu.Launch(k, gpu.GridFor(4, 4), n, first, uint32(i), out.Range(16*i, 16))))
			}
			recorded(t)(c.Add(gpu.Launch(k, gpu.GridFor(4, 4), uint64(4), uint32(100), step, out.Range(48, 16))))
			must(t, c.End())

			gate := semaphores(t, 1)[0]
			want := map[*gpu.Buffer][]uint32{}
			var all []*gpu.Semaphore
			for i := range 12 {
				b, s := allocate(t, dev, 64), semaphores(t, 1)[0]
				must(t, dev.Queue(0).Submit(gpu.Order{Signal: pts(s, 1)}, gpu.Fill(b.All(), []byte{0})))
				must(t, s.Wait(minute(t), 1))
				op, f, p := gpu.Execute(c, b.All()), uint32(7), uint32(1)
				if i%3 > 0 {
					f = uint32(10 * i)
					op = op.With(first.Value(f))
				}
				if i%3 > 1 {
					p = uint32(i)
					op = op.With(step.Value(p), n.Value(2))
				}
				must(t, dev.Queue(i%3).Submit(order(gate, 1, s, 2), op))
				all = append(all, s)
				want[b] = []uint32{f, f, 0, 0, f, f + 1, 0, 0, f, f + 2, 0, 0, 100, 100 + p, 100 + 2*p, 100 + 3*p}
			}
			must(t, gate.Signal(1))
			for _, s := range all {
				must(t, s.Wait(minute(t), 2))
			}
			for b, want := range want {
				if got := words(t, b); !slices.Equal(got, want) {
					t.Errorf("mode %v: %v, not %v", m, got, want)
				}
			}
		}
	})
}

// TestParamTypes tests B199: parameters of various sizes up to 16 bytes reach the kernel, in
// launches of Launch and of Typed.
func TestParamTypes(t *testing.T) {
	type pair struct {
		A int8
		B int64
	}
	type args struct {
		Out    *gpu.Buffer
		Small  uint8
		Vector [3]float32
		Pair   pair
		Wide   complex128
		Flag   uint8
	}
	onEach(t, 1, func(t *testing.T, d *simdriver.Driver, caps driver.Caps) {
		dev := openDevice(t, d, 0, gpu.Options{})
		k := kernelOf(t, dev, "values")
		typed, err := gpu.Typed[args](k)
		must(t, err)
		b, s := allocate(t, dev, 72), dev.Queue(0).NewStream()
		for _, m := range []gpu.Mode{gpu.StreamMode, gpu.AutoMode} {
			c := commandBuffer(t, dev, m)
			small, vector, wide := param(t, c, uint8(1)), param(t, c, [3]float32{1, 2, 3}), param(t, c, complex(4, 5))
			both := param(t, c, pair{6, 7})
			recorded(t)(c.Add(gpu.Launch(k, gpu.Grid{}, b, small, vector, both, wide, uint8(9))))
			recorded(t)(c.Add(gpu.Barrier()))
			recorded(t)(c.Add(typed.Launch(gpu.Grid{}, args{Out: b, Flag: 9}).Param(1, small).Param(2, vector).Param(3, both).Param(4, wide)))
			must(t, c.End())
			for _, x := range []struct {
				op   gpu.Op
				want [9]float64
			}{
				{gpu.Execute(c), [9]float64{1, 1, 2, 3, 6, 7, 4, 5, 9}},
				{gpu.Execute(c).With(wide.Value(complex(10, 11)), both.Value(pair{-1, 1 << 40})), [9]float64{1, 1, 2, 3, -1, 1 << 40, 10, 11, 9}},
				{gpu.Execute(c).With(small.Value(255), vector.Value([3]float32{0, 0, 8})), [9]float64{255, 0, 0, 8, 6, 7, 4, 5, 9}},
			} {
				must(t, s.Do(x.op))
				must(t, s.Wait(minute(t)))
				var got [9]float64
				data := bytesOf(t, dev.Queue(0), b)
				for i := range got {
					got[i] = math.Float64frombits(binary.LittleEndian.Uint64(data[8*i:]))
				}
				if got != x.want {
					t.Errorf("%v, not %v", got, x.want)
				}
			}
		}
	})
}

// TestParamBlocks tests B199: a parameter gives the number of blocks of a launch. If the number is
// 0, the launch is skipped, and the rest of the recording runs.
func TestParamBlocks(t *testing.T) {
	onEach(t, 1, func(t *testing.T, d *simdriver.Driver, caps driver.Caps) {
		dev := openDevice(t, d, 0, gpu.Options{})
		k := kernelOf(t, dev, "index")
		b, s := allocate(t, dev, 32), dev.Queue(0).NewStream()
		for _, m := range []gpu.Mode{gpu.StreamMode, gpu.AutoMode} {
			c := commandBuffer(t, dev, m)
			blocks := param(t, c, [3]uint32{1})
			launch := func(first uint32, at uint64) gpu.Op {
				return gpu.Launch(k, gpu.Grid{Threads: [3]uint32{2}}, uint64(4), first, uint32(1), b.Range(at, 16))
			}
			f := recorded(t)(c.Add(gpu.Fill(b.All(), []byte{0})))
			recorded(t)(c.Add(launch(10, 0).GridParam(blocks), f))
			recorded(t)(c.Add(launch(20, 16), f))
			must(t, c.End())
			for _, x := range []struct {
				op   gpu.Op
				want []uint32
			}{
				{gpu.Execute(c), []uint32{10, 11, 0, 0, 20, 21, 0, 0}},
				{gpu.Execute(c).With(blocks.Value([3]uint32{2, 1, 1})), []uint32{10, 11, 12, 13, 20, 21, 0, 0}},
				{gpu.Execute(c).With(blocks.Value(gpu.GridFor(0, 2).Blocks)), []uint32{0, 0, 0, 0, 20, 21, 0, 0}},
				{gpu.Execute(c).With(blocks.Value([3]uint32{1, 2})), []uint32{10, 11, 12, 13, 20, 21, 0, 0}},
				{gpu.Execute(c), []uint32{10, 11, 0, 0, 20, 21, 0, 0}},
			} {
				must(t, s.Do(x.op))
				must(t, s.Wait(minute(t)))
				if got := words(t, b); !slices.Equal(got, x.want) {
					t.Errorf("%v, not %v", got, x.want)
				}
			}
		}
	})
}

// TestParamBlocksBesideNative skips a launch in a part that has native work. The native function
// must then submit its work to the stream, and not to a graph.
func TestParamBlocksBesideNative(t *testing.T) {
	onEach(t, 1, func(t *testing.T, d *simdriver.Driver, caps driver.Caps) {
		if !caps.Native {
			return
		}
		dev := openDevice(t, d, 0, gpu.Options{})
		k := kernelOf(t, dev, "index")
		b, s := allocate(t, dev, 12), dev.Queue(0).NewStream()
		c := commandBuffer(t, dev, gpu.AutoMode)
		blocks := param(t, c, [3]uint32{1})
		recorded(t)(c.Add(gpu.Fill(b.All(), []byte{0})))
		recorded(t)(c.Add(gpu.Barrier()))
		recorded(t)(c.Add(gpu.Native("", func(n gpu.NativeCall) error { return n.Device.Fill(n.Stream, n.Ptrs[0], 7, 4, 1) }, b.Range(0, 4))))
		recorded(t)(c.Add(gpu.Launch(k, gpu.Grid{}, uint64(2), uint32(9), uint32(1), b.Range(4, 8)).GridParam(blocks)))
		must(t, c.End())
		for _, n := range []uint32{1, 0, 2, 0, 0, 1} {
			want := []uint32{7, 9, 10}
			clear(want[1+n:])
			must(t, s.Do(gpu.Execute(c).With(blocks.Value([3]uint32{n}))))
			must(t, s.Wait(minute(t)))
			if got := words(t, b); !slices.Equal(got, want) {
				t.Errorf("%d blocks: %v, not %v", n, got, want)
			}
		}
	})
}

// TestParamLimits tests B199: a parameter sets a number of blocks that the launch cannot have. Add
// must refuse the number as a default, and the call that executes must refuse it as a value.
func TestParamLimits(t *testing.T) {
	onEach(t, 1, func(t *testing.T, d *simdriver.Driver, caps driver.Caps) {
		dev := openDevice(t, d, 0, gpu.Options{})
		k := kernelOf(t, dev, "nothing")
		none := param(t, commandBuffer(t, dev, gpu.AutoMode), [3]uint32{})
		for _, x := range []struct {
			attrs  gpu.LaunchAttrs
			blocks [3]uint32
			why    string
		}{
			{gpu.LaunchAttrs{}, [3]uint32{1, 1 << 31, 1}, "command 1, launch of nothing, a grid of [1 2147483648 1] blocks: the device takes"},
			{gpu.LaunchAttrs{Cluster: [3]uint32{2, 1, 1}}, [3]uint32{3, 1, 1}, "clusters of [2 1 1]"},
			{gpu.LaunchAttrs{Cooperative: true}, [3]uint32{1 << 20, 1, 1}, "it is cooperative, and the device runs"},
		} {
			if x.attrs.Cooperative && !caps.Cooperative || x.attrs.Cluster[0] > 0 && !caps.Clusters {
				continue
			}
			c := commandBuffer(t, dev, gpu.AutoMode)
			blocks, wrong := param(t, c, [3]uint32{4}), param(t, c, x.blocks)
			grid := gpu.Grid{Threads: [3]uint32{256}, Attrs: x.attrs}
			recorded(t)(c.Add(gpu.Barrier()))
			recorded(t)(c.Add(gpu.Launch(k, grid, uint64(0)).GridParam(blocks)))
			if _, err := c.Add(gpu.Launch(k, grid, uint64(0)).GridParam(wrong)); !errors.Is(err, gpu.ErrArgument) {
				t.Errorf("a default of %v: %v", x.blocks, err)
			}
			if _, err := c.Add(gpu.Launch(k, grid, uint64(0)).GridParam(none)); !errors.Is(err, gpu.ErrArgument) {
				t.Errorf("another recording's parameter: %v", err)
			}
			must(t, c.End())
			s := dev.Queue(0).NewStream()
			err := s.Do(gpu.Execute(c).With(blocks.Value(x.blocks)))
			if !errors.Is(err, gpu.ErrArgument) || !strings.Contains(err.Error(), x.why) || !strings.Contains(err.Error(), "parameter 0 ([3]uint32)") {
				t.Errorf("%v: %v", x.blocks, err)
			}
			s = dev.Queue(0).NewStream()
			must(t, s.Do(gpu.Execute(c).With(blocks.Value([3]uint32{8})), gpu.Execute(c).With(blocks.Value([3]uint32{}))))
			must(t, s.Wait(minute(t)))
		}
	})
}

// TestParamMistakes tests B199: mistakes are refused, and each error names the part of the call
// that is wrong.
func TestParamMistakes(t *testing.T) {
	dev := openDevice(t, newSim(t, simdriver.Config{}), 0, gpu.Options{})
	k := kernelOf(t, dev, "index")
	b := allocate(t, dev, 64)
	type args struct {
		N           uint64
		First, Step uint32
		Out         *gpu.Buffer
	}
	typed, err := gpu.Typed[args](k)
	must(t, err)
	launch := typed.Launch(gpu.Grid{}, args{Out: b})
	c, other := commandBuffer(t, dev, gpu.AutoMode), commandBuffer(t, dev, gpu.AutoMode)
	n, first, alien := param(t, c, uint64(1)), param(t, c, uint32(1)), param(t, other, uint32(1))
	blocks, float, zeros := param(t, c, [3]uint32{1}), param(t, c, float32(1)), param(t, c, [3]uint32{})
	inner := commandBuffer(t, dev, gpu.AutoMode)
	innerFirst := param(t, inner, uint32(1))
	recorded(t)(inner.Add(launch.Param(1, innerFirst)))
	must(t, inner.End())
	recorded(t)(c.Add(launch.Param(1, first).GridParam(blocks)))
	add := func(op gpu.Op) func() error {
		return func() error { _, err := c.Add(op); return err }
	}
	var zero gpu.Param[uint32]
	before, err := c.Add(gpu.Barrier())
	must(t, err)
	for why, do := range map[string]func() error{
		"argument 9 is parameter 0 (uint64), and there are 4 arguments":                                      add(launch.Param(9, n)),
		"argument -1 is parameter 0 (uint64)":                                                                add(launch.Param(-1, n)),
		"argument 3 (Out) is an address, and the recording's parameter 0 (uint64) is given":                  add(launch.Param(3, n)),
		"argument 1 (First) has type uint32, and the recording's parameter 0 (uint64) is given":              add(launch.Param(1, n)),
		"argument 2 (Step) has type uint32, and the recording's parameter 3 (float32) is given":              add(launch.Param(2, float)),
		"argument 1 is both parameter 1 (uint32) and parameter 1 (uint32)":                                   add(launch.Param(1, first).Param(1, first)),
		"argument 1 is a zero Param: make it":                                                                add(launch.Param(1, zero)),
		"argument 2 is a zero Param: make it":                                                                add(launch.Param(2, nil)),
		"argument 0 is a zero Param: make it":                                                                add(launch.Param(0, (*gpu.Param[uint32])(nil))),
		"gpu: argument First of index: command 2, launch: parameter 0 (uint32) is of another command buffer": add(launch.Param(1, alien)),
		"the blocks are a zero Param":                                                                        add(launch.GridParam(gpu.Param[[3]uint32]{})),
		"the blocks are both parameter 2 ([3]uint32) and parameter 4 ([3]uint32)":                            add(launch.GridParam(blocks).GridParam(zeros)),
		"gpu: command 2, launch: the default of parameter 4 ([3]uint32) is no blocks":                        add(launch.GridParam(zeros)),
		"launch index: argument 1 is a zero Param":                                                           add(gpu.Launch(k, gpu.Grid{}, uint64(1), zero, uint32(1), b)),
		"argument 1 has 8 bytes, and parameter 1 of the kernel has 4":                                        add(gpu.Launch(k, gpu.Grid{}, uint64(1), n, uint32(1), b)),
		"fill: it takes no parameter":                                                                        add(gpu.Fill(b.All(), []byte{1}).Param(0, first)),
		"fill: it has no blocks":                                                                             add(gpu.Fill(b.All(), []byte{1}).GridParam(blocks)),
		"launch of index: it takes no values of parameters":                                                  add(launch.With(first.Value(1))),
		"parameter 1 (uint32) stands for parameter 1 of a command buffer that has 1":                         add(gpu.Execute(inner).Param(1, first)),
		"parameter 3 (float32) stands for parameter 0 (uint32) of the nested":                                add(gpu.Execute(inner).Param(0, float)),
		"both a value and parameter 1 (uint32) for parameter 0 (uint32) of the nested":                       add(gpu.Execute(inner).With(innerFirst.Value(1)).Param(0, first)),
		"gpu: command 2, execute: parameter 0 (uint32) is of another command":                                add(gpu.Execute(inner).Param(0, alien)),
		"gpu: command 2, execute: a value of parameter 1 (uint32) of another":                                add(gpu.Execute(inner).With(first.Value(1))),
		"a [5]uint32 has 20 bytes, and a parameter at most 16":                                               func() error { _, err := gpu.NewParam(c, [5]uint32{}); return err },
		"elements of type int: a kernel's int may have another size":                                         func() error { _, err := gpu.NewParam(c, 1); return err },
		"it has no bytes":                        func() error { _, err := gpu.NewParam(c, struct{}{}); return err },
		"has ended":                              func() error { _, err := gpu.NewParam(inner, uint32(1)); return err },
		"parameter: a nil or zero CommandBuffer": func() error { _, err := gpu.NewParam(nil, uint32(1)); return err },
	} {
		err := do()
		if !errors.Is(err, gpu.ErrArgument) || !strings.Contains(err.Error(), why) {
			t.Errorf("%s: %v", why, err)
		}
	}
	if at := recorded(t)(c.Add(gpu.Barrier())); at != before+1 {
		t.Errorf("the next command is %d: a mistake has left something", at)
	}
	must(t, c.End())
	do := func(op gpu.Op) error { return dev.Queue(0).Submit(gpu.Order{}, op) }
	for why, op := range map[string]gpu.Op{
		"two values of parameter 1 (uint32)":                        gpu.Execute(c).With(first.Value(1), n.Value(1)).With(first.Value(1)),
		"a value of parameter 0 (uint32) of another command buffer": gpu.Execute(c).With(alien.Value(1)),
		"a value of a zero parameter":                               gpu.Execute(c).With(zero.Value(1)),
		"launch of index (\"it\"): argument 1 is parameter 1 (uint32), which has a value only in a recording": launch.Param(1, first),
		"the blocks are parameter 2 ([3]uint32), which has a value only in a recording":                       launch.GridParam(blocks),
		"execute (\"it\"): argument 0 is parameter 1 (uint32), which has a value only":                        gpu.Execute(inner).Param(0, first),
	} {
		if err := do(op.Label("it")); !errors.Is(err, gpu.ErrArgument) || !strings.Contains(err.Error(), why) || !strings.Contains(err.Error(), `"it"`) {
			t.Errorf("%s: %v", why, err)
		}
	}
	if err := do(gpu.Op{}.With(first.Value(1))); !errors.Is(err, gpu.ErrArgument) || !strings.Contains(err.Error(), "a zero Op") {
		t.Error(err)
	}
}

// TestNestedParams tests B199: a parameter of a nested recording has a value, its default, or the
// value of a parameter of the outer recording.
func TestNestedParams(t *testing.T) {
	onEach(t, 1, func(t *testing.T, d *simdriver.Driver, caps driver.Caps) {
		dev := openDevice(t, d, 0, gpu.Options{})
		k := kernelOf(t, dev, "index")
		for _, m := range []gpu.Mode{gpu.StreamMode, gpu.AutoMode} {
			inner := commandBuffer(t, dev, m)
			x, err := inner.Binding()
			must(t, err)
			n, blocks, first := param(t, inner, uint64(4)), param(t, inner, [3]uint32{4}), param(t, inner, uint32(1))
			recorded(t)(inner.Add(gpu.Launch(k, gpu.Grid{}, n, first, uint32(1), x.Range(0, 16)).GridParam(blocks)))
			must(t, inner.End())
			b, s := allocate(t, dev, 16*5), dev.Queue(0).NewStream()
			// This value must not stay in the recording.
			must(t, s.Do(gpu.Execute(inner, b.Range(0, 16)).With(first.Value(55))))

			outer := commandBuffer(t, dev, m)
			outerBlocks, outerFirst := param(t, outer, [3]uint32{3}), param(t, outer, uint32(40))
			at := func(i uint64) gpu.Op { return gpu.Execute(inner, b.Range(16*i, 16)) }
			recorded(t)(outer.Add(gpu.Fill(b.All(), []byte{0})))
			recorded(t)(outer.Add(gpu.Barrier()))
			recorded(t)(outer.Add(at(0)))
			recorded(t)(outer.Add(at(1).With(first.Value(20), n.Value(2))))
			recorded(t)(outer.Add(at(2).With(blocks.Value([3]uint32{1}), first.Value(30))))
			recorded(t)(outer.Add(at(3).Param(2, outerFirst).Param(1, outerBlocks).With(n.Value(8))))
			recorded(t)(outer.Add(at(4).With(blocks.Value([3]uint32{}))))
			must(t, outer.End())
			for _, x := range []struct {
				op   gpu.Op
				want []uint32
			}{
				{gpu.Execute(outer), []uint32{40, 41, 42, 0}},
				{gpu.Execute(outer).With(outerFirst.Value(60)), []uint32{60, 61, 62, 0}},
				{gpu.Execute(outer).With(outerFirst.Value(70), outerBlocks.Value([3]uint32{1})), []uint32{70, 0, 0, 0}},
				{gpu.Execute(outer).With(outerBlocks.Value([3]uint32{0})), []uint32{0, 0, 0, 0}},
			} {
				must(t, s.Do(x.op))
				must(t, s.Wait(minute(t)))
				want := slices.Concat([]uint32{1, 2, 3, 4, 20, 21, 0, 0, 30, 0, 0, 0}, x.want, make([]uint32, 4))
				if got := words(t, b); !slices.Equal(got, want) {
					t.Errorf("%v, not %v", got, want)
				}
			}
			tooMany := [3]uint32{1, math.MaxUint32, 1}
			if _, err := commandBuffer(t, dev, m).Add(at(0).With(blocks.Value(tooMany))); !errors.Is(err, gpu.ErrArgument) {
				t.Errorf("too many blocks in a nested recording: %v", err)
			}
			err = s.Do(gpu.Execute(outer).With(outerBlocks.Value(tooMany)))
			if !errors.Is(err, gpu.ErrArgument) || !strings.Contains(err.Error(), "gives command ") {
				t.Errorf("too many blocks, passed on: %v", err)
			}
		}
	})
}

// TestParamsOfParts tests B199: all parts of an execution use the execution's values, with host
// calls between the parts and with scratch memory.
func TestParamsOfParts(t *testing.T) {
	onEach(t, 1, func(t *testing.T, d *simdriver.Driver, caps driver.Caps) {
		dev := openDevice(t, d, 0, gpu.Options{Queues: 2})
		k, words2 := kernelOf(t, dev, "index"), kernelOf(t, dev, "words")
		c := commandBuffer(t, dev, gpu.AutoMode)
		out, err := c.Binding()
		must(t, err)
		scratch, err := c.Scratch(32)
		must(t, err)
		first := param(t, c, uint32(1))
		for i := range uint64(2) {
			recorded(t)(c.Add(gpu.Launch(k, gpu.GridFor(4, 4), uint64(4), first, uint32(i), scratch.Range(16*i, 16))))
			recorded(t)(c.Add(gpu.HostCall(func() error { return nil })))
		}
		recorded(t)(c.Add(gpu.Launch(words2, gpu.GridFor(8, 8), uint64(8), out.Range(0, 32), scratch.All())))
		recorded(t)(c.Add(gpu.Barrier()))
		recorded(t)(c.Add(gpu.Launch(k, gpu.GridFor(1, 1), uint64(1), first, uint32(0), out.Range(0, 4))))
		must(t, c.End())
		gate := semaphores(t, 1)[0]
		var all []*gpu.Buffer
		var done []*gpu.Semaphore
		for i := range 6 {
			b, s := allocate(t, dev, 32), semaphores(t, 1)[0]
			must(t, dev.Queue(i%2).Submit(order(gate, 1, s, 1), gpu.Execute(c, b.All()).With(first.Value(uint32(i)))))
			all, done = append(all, b), append(done, s)
		}
		must(t, gate.Signal(1))
		for i, b := range all {
			must(t, done[i].Wait(minute(t), 1))
			f := uint32(i)
			if got, want := words(t, b), []uint32{f, f, f, f, f, f + 1, f + 2, f + 3}; !slices.Equal(got, want) {
				t.Errorf("execution %d: %v, not %v", i, got, want)
			}
		}
	})
}

// TestParamsSet tests B199: only nodes whose values differ from the previous execution's are
// updated.
func TestParamsSet(t *testing.T) {
	d := newSim(t, simdriver.Config{})
	dev := openDevice(t, d, 0, gpu.Options{})
	k := kernelOf(t, dev, "index")
	c := commandBuffer(t, dev, gpu.GraphMode)
	out, err := c.Binding()
	must(t, err)
	a, b := param(t, c, uint32(1)), param(t, c, uint32(2))
	at := uint64(0)
	add := func(first any, times int) {
		for range times {
			recorded(t)(c.Add(gpu.Launch(k, gpu.GridFor(1, 1), uint64(1), first, uint32(0), out.Range(at, 4))))
			at += 4
		}
	}
	add(a, 3)
	add(uint32(0), 1)
	add(b, 1)
	add(a, 2)
	must(t, c.End())
	buf, s := allocate(t, dev, 256), dev.Queue(0).NewStream()
	for i, x := range []struct {
		op   gpu.Op
		sets uint64
	}{
		{gpu.Execute(c, buf.All()), 7}, // the nodes with the binding
		{gpu.Execute(c, buf.All()), 0},
		{gpu.Execute(c, buf.All()).With(a.Value(1), b.Value(2)), 0}, // the values are the defaults
		{gpu.Execute(c, buf.All()).With(b.Value(5)), 1},
		{gpu.Execute(c, buf.All()).With(b.Value(5)), 0},
		{gpu.Execute(c, buf.All()).With(b.Value(5), a.Value(6)), 5},
		{gpu.Execute(c, buf.All()), 6},
	} {
		before := calls(d, 0, simdriver.OpSetNode)
		must(t, s.Do(x.op))
		must(t, s.Wait(minute(t)))
		if n := calls(d, 0, simdriver.OpSetNode) - before; n != x.sets {
			t.Errorf("execution %d set %d nodes, not %d", i, n, x.sets)
		}
	}
}

// TestManyParams executes recordings with many values and bindings. Some executions have more
// values than fit in an Op.
func TestManyParams(t *testing.T) {
	dev := openDevice(t, newSim(t, simdriver.Config{}), 0, gpu.Options{})
	k := kernelOf(t, dev, "index")
	for _, shape := range [][2]int{{0, 16}, {10, 6}, {10, 7}, {16, 1}, {20, 3}, {3, 40}} {
		c := commandBuffer(t, dev, gpu.AutoMode)
		b := allocate(t, dev, 256)
		var ranges []gpu.Range
		for i := range shape[0] {
			_, err := c.Binding()
			must(t, err)
			ranges = append(ranges, b.Range(uint64(i), 0))
		}
		op, once := gpu.Execute(c, ranges...), []gpu.ParamValue(nil)
		for i := range shape[1] {
			p := param(t, c, uint32(0))
			recorded(t)(c.Add(gpu.Launch(k, gpu.Grid{}, uint64(1), p, uint32(0), b.Range(uint64(4*i), 4))))
			once = append(once, p.Value(uint32(100+i)))
		}
		must(t, c.End())
		oneByOne := op
		for _, v := range once {
			oneByOne = oneByOne.With(v)
		}
		s := dev.Queue(0).NewStream()
		for _, op := range []gpu.Op{op.With(once...), oneByOne} {
			must(t, s.Do(gpu.Fill(b.All(), []byte{0}), op))
			must(t, s.Wait(minute(t)))
			got := words(t, b)
			for i := range shape[1] {
				if got[i] != uint32(100+i) {
					t.Errorf("%v: %v", shape, got[:shape[1]])
					break
				}
			}
		}
		// The method With has not changed op, which still has no values.
		must(t, s.Do(gpu.Fill(b.All(), []byte{0}), op))
		must(t, s.Wait(minute(t)))
		if got := words(t, b); got[0] != 0 {
			t.Errorf("%v: the Op has changed", shape)
		}
	}
}

// TestParamsOfManyGoroutines tests B199: executions of several goroutines do not mix their values.
func TestParamsOfManyGoroutines(t *testing.T) {
	for _, m := range []gpu.Mode{gpu.StreamMode, gpu.GraphMode} {
		dev := openDevice(t, newSim(t, simdriver.Config{}), 0, gpu.Options{Queues: 4})
		k := kernelOf(t, dev, "index")
		c := commandBuffer(t, dev, m)
		out, err := c.Binding()
		must(t, err)
		first, blocks := param(t, c, uint32(1)), param(t, c, [3]uint32{1})
		recorded(t)(c.Add(gpu.Launch(k, gpu.Grid{}, uint64(3), first, uint32(1), out.Range(0, 12)).GridParam(blocks)))
		recorded(t)(c.Add(gpu.Launch(k, gpu.GridFor(2, 2), uint64(2), uint32(7), first, out.Range(12, 8))))
		must(t, c.End())
		var wg sync.WaitGroup
		for g := range uint32(4) {
			b := allocate(t, dev, 20)
			wg.Go(func() {
				s := dev.Queue(int(g)).NewStream()
				for i := range uint32(20) {
					f, n := 1000*g+i, (g+i)%4
					err := s.Do(gpu.Fill(b.All(), []byte{0}), gpu.Execute(c, b.All()).With(blocks.Value([3]uint32{n}), first.Value(f)))
					if err := errors.Join(err, s.Wait(minute(t))); err != nil {
						t.Error(err)
						return
					}
					want := []uint32{f, f + 1, f + 2, 7, 7 + f}
					clear(want[n:3])
					if got := words(t, b); !slices.Equal(got, want) {
						t.Errorf("goroutine %d, round %d: %v, not %v", g, i, got, want)
					}
				}
			})
		}
		wg.Wait()
	}
}

// TestParamAllocations checks that executing with values allocates nothing in steady state.
func TestParamAllocations(t *testing.T) {
	if raceEnabled {
		t.Skip("the race detector allocates")
	}
	for _, m := range []gpu.Mode{gpu.StreamMode, gpu.GraphMode} {
		dev := openDevice(t, newSim(t, simdriver.Config{}), 0, gpu.Options{})
		k := kernelOf(t, dev, "nothing")
		b := allocate(t, dev, 64)
		c := commandBuffer(t, dev, m)
		_, err := c.Binding()
		must(t, err)
		n, blocks := param(t, c, uint64(1)), param(t, c, [3]uint32{1})
		for range 4 {
			recorded(t)(c.Add(gpu.Launch(k, gpu.Grid{}, n).GridParam(blocks)))
		}
		must(t, c.End())
		s, v := semaphores(t, 1)[0], uint64(0)
		signal := pts(s, 0)
		for name, with := range map[string]func(gpu.Op) gpu.Op{
			"one scalar": func(op gpu.Op) gpu.Op { return op.With(n.Value(v)) },
			"blocks":     func(op gpu.Op) gpu.Op { return op.With(n.Value(v), blocks.Value([3]uint32{uint32(v % 3)})) },
		} {
			run := func() {
				v++
				signal[0].Value = v
				if err := dev.Queue(0).Submit(gpu.Order{Signal: signal}, with(gpu.Execute(c, b.Range(0, 8)))); err != nil {
					t.Fatal(err)
				}
				for {
					if got, err := s.Query(); err != nil || got >= v {
						break
					}
					runtime.Gosched()
				}
			}
			for range 300 {
				run()
			}
			if n := testing.AllocsPerRun(300, run); n != 0 {
				t.Errorf("mode %v, %s: %v allocations", m, name, n)
			}
		}
	}
}
