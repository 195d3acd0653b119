package control_test

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/puregpu/puregpu/runtime/control"
	"github.com/puregpu/puregpu/runtime/driver"
	"github.com/puregpu/puregpu/runtime/driver/simdriver"
	"github.com/puregpu/puregpu/runtime/gpu"
	"github.com/puregpu/puregpu/runtime/internal/libcall"
	"github.com/puregpu/puregpu/runtime/interop"
)

func must[T any](v T, err error) func(testing.TB) T {
	return func(t testing.TB) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
}

func check(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// The kernels work on uint32s.
var kernels = map[string]simdriver.Kernel{
	// add adds n to a number, modulo mod if mod is not 0.
	"add": simdriver.MustKernel(func(g *simdriver.Grid, at driver.Ptr, n, mod uint32) error {
		x, err := simdriver.View[uint32](g, at, 1)
		if err == nil {
			if x[0] += n; mod > 0 {
				x[0] %= mod
			}
		}
		return err
	}),
	// copy copies a number.
	"copy": simdriver.MustKernel(func(g *simdriver.Grid, to, from driver.Ptr) error {
		x, err := simdriver.View[uint32](g, to, 1)
		if err != nil {
			return err
		}
		y, err := simdriver.View[uint32](g, from, 1)
		if err == nil {
			x[0] = y[0]
		}
		return err
	}),
	// decode counts the sequences that have not ended, and makes each one longer.
	"decode": simdriver.MustKernel(func(g *simdriver.Grid, lengths, ends, more driver.Ptr, n uint32) error {
		l, err := simdriver.View[uint32](g, lengths, int(n))
		if err != nil {
			return err
		}
		e, err := simdriver.ReadView[uint32](g, ends, int(n))
		if err != nil {
			return err
		}
		m, err := simdriver.View[uint32](g, more, 1)
		if err != nil {
			return err
		}
		m[0] = 0
		for i := range l {
			if l[i] < e[i] {
				if l[i]++; l[i] < e[i] {
					m[0]++
				}
			}
		}
		return nil
	}),
}

// A rig is a device with the kernels.
type rig struct {
	testing.TB
	sim               *simdriver.Driver
	dev               *gpu.Device
	add, copy, decode *gpu.Kernel
}

// caps returns the capabilities of the simulated devices that tests use. nil means the default
// capabilities. Only "device" has conditional nodes.
func caps() map[string]*driver.Caps {
	host := simdriver.CUDACaps()
	host.Conditionals = false
	hip := simdriver.HIPCaps()
	return map[string]*driver.Caps{"device": nil, "host": &host, "hip": &hip}
}

func newRig(t testing.TB, c simdriver.Config) *rig {
	t.Helper()
	c.Kernels = kernels
	sim := simdriver.New(c)
	dev := must(gpu.Open(sim, 0, gpu.Options{}))(t)
	t.Cleanup(func() { dev.Close() })
	m := must(dev.Load(simdriver.Image("add", "copy", "decode")))(t)
	return &rig{t, sim, dev, must(m.Kernel("add"))(t), must(m.Kernel("copy"))(t), must(m.Kernel("decode"))(t)}
}

// each runs a test on each kind of device.
func each(t *testing.T, f func(t *testing.T, r *rig, onDevice bool)) {
	for name, c := range caps() {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, simdriver.Config{Caps: c})
			f(t, r, c == nil)
			check(t, r.dev.Close())
			if l := r.sim.Leaks(); len(l) > 0 {
				t.Error(l)
			}
		})
	}
}

// numbers allocates numbers that the host can see.
func (r *rig) numbers(all ...uint32) gpu.Slice[uint32] {
	r.Helper()
	s := must(gpu.AllocSlice[uint32](r.dev, gpu.HostMem, len(all)))(r)
	copy(s.Host(), all)
	return s
}

func (r *rig) record(f func(c *gpu.CommandBuffer)) *gpu.CommandBuffer {
	r.Helper()
	c := must(r.dev.NewCommandBuffer(gpu.CommandOptions{InOrder: true}))(r)
	f(c)
	check(r, c.End())
	return c
}

func (r *rig) Do(c *gpu.CommandBuffer, ops ...gpu.Op) (last gpu.Command) {
	r.Helper()
	for _, op := range ops {
		last = must(c.Add(op))(r)
	}
	return last
}

func (r *rig) run(ops ...gpu.Op) {
	r.Helper()
	s := r.dev.Queue(0).NewStream()
	check(r, s.Do(ops...))
	check(r, s.Wait(context.Background()))
}

// wait waits for a stream. It steps a simulated GPU that is Deterministic.
func (r *rig) wait(s *gpu.Stream) error {
	done := make(chan error, 1)
	go func() { done <- s.Wait(context.Background()) }()
	for {
		select {
		case err := <-done:
			return err
		default:
			r.sim.Run()
			runtime.Gosched()
		}
	}
}

func (r *rig) plus(at gpu.Slice[uint32], n int) gpu.Op {
	return gpu.Launch(r.add, gpu.Grid{}, at, uint32(n), uint32(0))
}

func equal(t testing.TB, got gpu.Slice[uint32], want ...uint32) {
	t.Helper()
	if !slices.Equal(got.Host(), want) {
		t.Errorf("%v, want %v", got.Host(), want)
	}
}

func one(n uint32) []byte { return binary.NativeEndian.AppendUint32(nil, n) }

// TestWhile checks loops in a stream and in a recording.
func TestWhile(t *testing.T) {
	each(t, func(t *testing.T, r *rig, onDevice bool) {
		left, sum := r.numbers(5), r.numbers(0)
		body := r.record(func(c *gpu.CommandBuffer) { r.Do(c, r.plus(sum, 1), r.plus(left, -1)) })
		r.run(control.While(left, gpu.Execute(body)))
		equal(t, left, 0)
		equal(t, sum, 5)
		r.run(control.While(left, gpu.Execute(body))) // does nothing
		equal(t, sum, 5)
		var at gpu.Command
		outer := r.record(func(c *gpu.CommandBuffer) {
			r.Do(c, gpu.Fill(left.Range(), one(7)))
			at = r.Do(c, control.While(left, gpu.Execute(body)))
			r.Do(c, r.plus(sum, 100))
		})
		why := must(control.Host(outer, at))(t)
		if (why == "") != onDevice {
			t.Errorf("the host runs it because %q", why)
		}
		body.Close() // the outer recording keeps it
		before := r.sim.Counters()
		for i := range 3 {
			r.run(gpu.Execute(outer))
			equal(t, left, 0)
			equal(t, sum, 5+107*uint32(i+1))
		}
		_ = before
	})
}

// TestChoices checks each case of If, IfElse and Switch, in a stream and in a recording.
func TestChoices(t *testing.T) {
	each(t, func(t *testing.T, r *rig, onDevice bool) {
		value, out := r.numbers(0), r.numbers(0)
		body := func(n int) gpu.Op {
			// The body changes the value. The change must not matter, because the operation has
			// read the value before.
			return gpu.Execute(r.record(func(c *gpu.CommandBuffer) { r.Do(c, r.plus(out, n), gpu.Fill(value.Range(), one(uint32(n)))) }))
		}
		a, b, d := body(10), body(20), body(30)
		for _, x := range []struct {
			op   gpu.Op
			want []uint32 // the numbers added for the values 0, 1, …
		}{
			{control.If(value, a), []uint32{0, 10, 10}},
			{control.IfElse(value, a, b), []uint32{20, 10, 10}},
			{control.IfElse(value, gpu.Barrier(), b), []uint32{20, 0, 0}},
			{control.Switch(value, d, a, b), []uint32{10, 20, 30, 30}},
			{control.Switch(value, gpu.Barrier(), a, b), []uint32{10, 20, 0, 0}},
			{control.Switch(value, d), []uint32{30, 30}},
			{control.Switch(value, gpu.Barrier()), []uint32{0, 0}},
		} {
			var at gpu.Command
			recorded := r.record(func(c *gpu.CommandBuffer) { at = r.Do(c, x.op, r.plus(out, 1)) - 1 })
			if why := must(control.Host(recorded, at))(t); (why == "") != onDevice {
				t.Errorf("%v: the host runs it because %q", x.op, why)
			}
			for v, want := range append(x.want, x.want[len(x.want)-1]) {
				if v == len(x.want) {
					v = -1
				}
				for _, op := range []gpu.Op{x.op, gpu.Execute(recorded)} {
					value.Host()[0], out.Host()[0] = uint32(v), 0
					r.run(op)
					if got := out.Host()[0]; got != want && got != want+1 {
						t.Errorf("%v of %d adds %d, want %d", x.op, v, got, want)
					}
				}
			}
		}
	})
}

// TestDecode checks a decode loop, which stops when all sequences have ended. On devices with
// conditional nodes the execution must make no launches.
func TestDecode(t *testing.T) {
	each(t, func(t *testing.T, r *rig, onDevice bool) {
		ends := []uint32{3, 17, 8, 1}
		e, lengths, more := r.numbers(ends...), r.numbers(0, 0, 0, 0), r.numbers(0)
		step := r.record(func(c *gpu.CommandBuffer) {
			r.Do(c, gpu.Launch(r.decode, gpu.Grid{}, lengths, e, more, uint32(4)))
		})
		loop := r.record(func(c *gpu.CommandBuffer) {
			r.Do(c, gpu.Fill(lengths.Range(), []byte{0}), gpu.Fill(more.Range(), one(1)), control.While(more, gpu.Execute(step)))
		})
		before := r.sim.Counters()
		r.run(gpu.Execute(loop))
		equal(t, lengths, ends...)
		if n := r.sim.Counters().Devices[0].Calls[simdriver.OpLaunch] - before.Devices[0].Calls[simdriver.OpLaunch]; onDevice != (n == 0) {
			t.Errorf("%d launches", n)
		}
	})
}

// TestOrder checks that the simulated GPU finds commands that use the same memory and are not
// ordered: inside a body, between a body and another command, and between the condition of a
// control operation and another command.
func TestOrder(t *testing.T) {
	r := newRig(t, simdriver.Config{})
	cond, x, y := r.numbers(1), r.numbers(0), r.numbers(0)
	set := func(n int) gpu.Op { return gpu.Fill(x.Range(), one(uint32(n))) }
	body := r.record(func(c *gpu.CommandBuffer) { r.Do(c, set(1)) })
	for name, c := range map[string]struct {
		record func(c *gpu.CommandBuffer)
		found  bool
	}{
		"after the body": {func(c *gpu.CommandBuffer) {
			at := r.Do(c, control.If(cond, gpu.Execute(body)))
			must(c.Add(set(2), at))(t)
		}, false},
		"after nothing": {func(c *gpu.CommandBuffer) {
			at := r.Do(c, set(1))
			at = must(c.Add(control.Switch(cond, gpu.Barrier()), at))(t)
			must(c.Add(set(2), at))(t)
		}, false},
		"no order": {func(c *gpu.CommandBuffer) { r.Do(c, control.If(cond, gpu.Execute(body)).Label("maybe"), set(2)) }, true},
		"no order with the condition": {func(c *gpu.CommandBuffer) {
			r.Do(c, gpu.Fill(cond.Range(), one(1)), control.If(cond, gpu.Execute(body)))
		}, true},
		"other memory": {func(c *gpu.CommandBuffer) {
			r.Do(c, control.If(cond, gpu.Execute(body)), gpu.Fill(y.Range(), one(1)))
		}, false},
		"inside": {func(c *gpu.CommandBuffer) {
			wild := must(r.dev.NewCommandBuffer(gpu.CommandOptions{}))(t)
			r.Do(wild, set(1), set(2))
			check(t, wild.End())
			r.Do(c, control.If(cond, gpu.Execute(wild)))
		}, true},
	} {
		t.Run(name, func(t *testing.T) {
			for _, manual := range []bool{false, true} {
				if c.found && !manual {
					continue // the race detector finds it, too
				}
				r = newRig(t, simdriver.Config{Deterministic: manual})
				cond, x, y = r.numbers(1), r.numbers(0), r.numbers(0)
				body = r.record(func(c *gpu.CommandBuffer) { r.Do(c, set(1)) })
				buffer := must(r.dev.NewCommandBuffer(gpu.CommandOptions{}))(t)
				c.record(buffer)
				check(t, buffer.End())
				s := r.dev.Queue(0).NewStream()
				check(t, s.Do(gpu.Execute(buffer)))
				err := r.wait(s)
				var found *simdriver.OrderError
				if errors.As(err, &found) != c.found || (err == nil) == c.found {
					t.Errorf("manual %v: %v", manual, err)
				}
			}
		})
	}
}

// TestMistakes checks the errors of wrong arguments.
func TestMistakes(t *testing.T) {
	each(t, func(t *testing.T, r *rig, _ bool) {
		cond := r.numbers(1)
		body := r.record(func(c *gpu.CommandBuffer) { r.Do(c, r.plus(cond, 1)) })
		open := must(r.dev.NewCommandBuffer(gpu.CommandOptions{}))(t)
		closed := r.record(func(c *gpu.CommandBuffer) { r.Do(c, r.plus(cond, 1)) })
		closed.Close()
		bound := r.record(func(c *gpu.CommandBuffer) { must(c.Binding())(t) })
		other := must(gpu.Open(r.sim, 0, gpu.Options{}))(t)
		defer other.Close()
		foreign := must(other.NewCommandBuffer(gpu.CommandOptions{}))(t)
		check(t, foreign.End())
		var timing gpu.Timing
		good := gpu.Execute(body)
		for name, c := range map[string]struct {
			op   gpu.Op
			want error
		}{
			"zero condition":         {control.If(gpu.Slice[uint32]{}, good), gpu.ErrArgument},
			"empty condition":        {control.If(cond.Slice(1, 1), good), gpu.ErrArgument},
			"condition outside":      {control.If(cond.Slice(1, 2), good), gpu.ErrRange},
			"no body":                {control.While(cond, gpu.Op{}), gpu.ErrArgument},
			"loop of nothing":        {control.While(cond, gpu.Barrier()), gpu.ErrArgument},
			"body that is a fill":    {control.If(cond, gpu.Fill(cond.Range(), []byte{0})), gpu.ErrArgument},
			"body with a timing":     {control.If(cond, good.Timed(&timing)), gpu.ErrArgument},
			"body of no recording":   {control.If(cond, gpu.Execute(nil)), gpu.ErrArgument},
			"body that has no end":   {control.If(cond, gpu.Execute(open)), gpu.ErrArgument},
			"closed body":            {control.IfElse(cond, good, gpu.Execute(closed)), gpu.ErrClosed},
			"too few bindings":       {control.If(cond, gpu.Execute(bound)), gpu.ErrArgument},
			"too many bindings":      {control.If(cond, gpu.Execute(body, cond.Range())), gpu.ErrArgument},
			"body of another device": {control.If(cond, gpu.Execute(foreign)), gpu.ErrArgument},
			"wrong body":             {control.If(cond, gpu.BadOp(gpu.ErrRange)), gpu.ErrRange},
		} {
			c2 := must(r.dev.NewCommandBuffer(gpu.CommandOptions{}))(t)
			if _, err := c2.Add(c.op); !errors.Is(err, c.want) {
				t.Errorf("%s, recorded: %v", name, err)
			}
			if err := r.dev.Queue(0).Submit(gpu.Order{}, c.op); !errors.Is(err, c.want) {
				t.Errorf("%s: %v", name, err)
			}
			check(t, c2.End())
			r.run(gpu.Execute(c2)) // nothing was recorded
		}
		c := r.record(func(c *gpu.CommandBuffer) { r.Do(c, gpu.Fill(cond.Range(), []byte{0})) })
		for _, at := range []gpu.Command{-1, 0, 1} {
			if _, err := control.Host(c, at); !errors.Is(err, gpu.ErrArgument) {
				t.Error(err)
			}
		}
		if _, err := control.Host(nil, 0); !errors.Is(err, gpu.ErrArgument) {
			t.Error(err)
		}
		if _, err := control.Host(open, 0); !errors.Is(err, gpu.ErrArgument) {
			t.Error(err)
		}
		equal(t, cond, 1)
	})
}

// TestReasons checks that Host says why the host runs a control operation, and that the operation
// works in each case.
func TestReasons(t *testing.T) {
	r := newRig(t, simdriver.Config{Devices: 2})
	other := must(gpu.Open(r.sim, 1, gpu.Options{}))(t)
	defer other.Close()
	far := must(gpu.AllocSlice[uint32](other, gpu.DeviceMem, 1))(t)
	cond, x := r.numbers(1), r.numbers(0)
	called := 0
	for name, c := range map[string]struct {
		body func(c *gpu.CommandBuffer)
		mode gpu.Mode
		want string
	}{
		"plain":     {func(c *gpu.CommandBuffer) {}, gpu.AutoMode, ""},
		"graph":     {func(c *gpu.CommandBuffer) {}, gpu.GraphMode, ""},
		"stream":    {func(c *gpu.CommandBuffer) {}, gpu.StreamMode, "StreamMode"},
		"host call": {func(c *gpu.CommandBuffer) { r.Do(c, gpu.HostCall(func() error { called++; return nil })) }, gpu.AutoMode, "host call"},
		"timestamp": {func(c *gpu.CommandBuffer) { must(c.Timestamp())(t) }, gpu.AutoMode, "timestamp"},
		"value": {func(c *gpu.CommandBuffer) {
			v := must(r.dev.Alloc(gpu.DeviceMem, 8))(t)
			r.Do(c, interop.WriteValue(v.All(), 1))
		}, gpu.AutoMode, "value write"},
		"far": {func(c *gpu.CommandBuffer) { r.Do(c, gpu.Copy(x.Range(), far.Range()), gpu.Fill(x.Range(), one(0))) }, gpu.AutoMode, "copy"},
		"nested": {func(c *gpu.CommandBuffer) {
			r.Do(c, control.If(cond, gpu.Execute(r.record(func(c *gpu.CommandBuffer) { must(c.Timestamp())(t) }))))
		}, gpu.AutoMode, "timestamp"},
		"native": {func(c *gpu.CommandBuffer) {
			r.Do(c, gpu.Native("fill", func(n gpu.NativeCall) error { return n.Device.Fill(n.Stream, n.Ptrs[0], 0, 4, 1) }, x.Range()))
		}, gpu.AutoMode, ""},
		"library": {func(c *gpu.CommandBuffer) {
			r.Do(c, libcall.EachExecution(gpu.Native("fill", func(n gpu.NativeCall) error { return n.Device.Fill(n.Stream, n.Ptrs[0], 0, 4, 1) }, x.Range())))
		}, gpu.AutoMode, "a body has a call of a library, which cannot be captured (its command 0"},
	} {
		t.Run(name, func(t *testing.T) {
			x.Host()[0] = 0
			body := r.record(func(b *gpu.CommandBuffer) {
				c.body(b)
				r.Do(b, r.plus(x, 1))
			})
			outer := must(r.dev.NewCommandBuffer(gpu.CommandOptions{Mode: c.mode}))(t)
			at := r.Do(outer, control.If(cond, gpu.Execute(body)))
			check(t, outer.End())
			why := must(control.Host(outer, at))(t)
			if (why == "") != (c.want == "") || !strings.Contains(why, c.want) {
				t.Errorf("the host runs it because %q, want %q", why, c.want)
			}
			r.run(gpu.Execute(outer))
			equal(t, x, 1)
		})
	}
	if called != 1 {
		t.Errorf("%d calls", called)
	}
}

// TestBlocksOfBody gives a launch in a body more blocks than the device takes. The error must name
// the control command.
func TestBlocksOfBody(t *testing.T) {
	r := newRig(t, simdriver.Config{})
	cond, x := r.numbers(1), r.numbers(0)
	var blocks, outerBlocks gpu.Param[[3]uint32]
	body := r.record(func(c *gpu.CommandBuffer) {
		blocks = must(gpu.NewParam(c, [3]uint32{1}))(t)
		r.Do(c, r.plus(x, 1).GridParam(blocks))
	})
	var at gpu.Command
	outer := r.record(func(c *gpu.CommandBuffer) {
		outerBlocks = must(gpu.NewParam(c, [3]uint32{1}))(t)
		r.Do(c, x.Fill(1))
		at = r.Do(c, control.If(cond, gpu.Execute(body).Param(0, outerBlocks)))
	})
	err := r.dev.Queue(0).NewStream().Do(gpu.Execute(outer).With(outerBlocks.Value([3]uint32{1 << 31})))
	if !errors.Is(err, gpu.ErrArgument) || !strings.Contains(err.Error(), fmt.Sprintf("command %d, ", at)) {
		t.Errorf("error %v, want one that names command %d", err, at)
	}
}

// TestSwitchesToHost (B202) checks that executions work if they bind another device's memory, or
// give a launch no blocks. No conditional node can do either, so the host runs the operation.
func TestSwitchesToHost(t *testing.T) {
	r := newRig(t, simdriver.Config{Devices: 2})
	other := must(gpu.Open(r.sim, 1, gpu.Options{}))(t)
	defer other.Close()
	near, far := r.numbers(7), must(gpu.AllocSlice[uint32](other, gpu.DeviceMem, 1))(t)
	cond, x := r.numbers(1), r.numbers(0)
	var blocks gpu.Param[[3]uint32]
	body := r.record(func(c *gpu.CommandBuffer) {
		from := must(c.Binding())(t)
		blocks = must(gpu.NewParam(c, [3]uint32{1}))(t)
		r.Do(c, gpu.Copy(x.Range(), from.Range(0, 4)), r.plus(x, 1).GridParam(blocks))
	})
	var outerBlocks gpu.Param[[3]uint32]
	var at gpu.Command
	outer := r.record(func(c *gpu.CommandBuffer) {
		from := must(c.Binding())(t)
		outerBlocks = must(gpu.NewParam(c, [3]uint32{1}))(t)
		at = r.Do(c, control.If(cond, gpu.Execute(body, from.Range(0, 4)).Param(0, outerBlocks)))
	})
	if why := must(control.Host(outer, at))(t); why != "" {
		t.Error(why)
	}
	s := other.Queue(0).NewStream()
	check(t, s.Fill(far.Range(), one(100)))
	check(t, s.Wait(context.Background()))
	for range 2 {
		r.run(gpu.Execute(outer, near.Range()))
		equal(t, x, 8)
		r.run(gpu.Execute(outer, far.Range()))
		equal(t, x, 101)
		r.run(gpu.Execute(outer, near.Range()).With(outerBlocks.Value([3]uint32{})))
		equal(t, x, 7)
	}
}
