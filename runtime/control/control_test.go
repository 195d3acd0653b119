package control_test

import (
	"context"
	"encoding/binary"
	"slices"
	"testing"

	"github.com/puregpu/puregpu/runtime/control"
	"github.com/puregpu/puregpu/runtime/driver"
	"github.com/puregpu/puregpu/runtime/driver/simdriver"
	"github.com/puregpu/puregpu/runtime/gpu"
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

// caps returns the simulated devices of the tests: with conditional nodes, and without.
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

// TestWhile runs a loop in a stream, and recorded.
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
		body.Close() // the outer recording holds it
		before := r.sim.Counters()
		for i := range 3 {
			r.run(gpu.Execute(outer))
			equal(t, left, 0)
			equal(t, sum, 5+107*uint32(i+1))
		}
		_ = before
	})
}
