package control_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/puregpu/puregpu/runtime/blas"
	"github.com/puregpu/puregpu/runtime/control"
	"github.com/puregpu/puregpu/runtime/driver"
	"github.com/puregpu/puregpu/runtime/driver/simdriver"
	"github.com/puregpu/puregpu/runtime/gpu"
)

// endless submits a loop that never ends, and returns its stream. If recorded is set, the loop is a
// command of a recording.
func endless(t *testing.T, r *rig, recorded bool) *gpu.Stream {
	cond, x := r.numbers(1), r.numbers(0)
	body := r.record(func(c *gpu.CommandBuffer) { r.Do(c, r.plus(x, 1)) })
	op := control.While(cond, gpu.Execute(body))
	if recorded {
		c := r.record(func(c *gpu.CommandBuffer) { r.Do(c, op, r.plus(x, 1)) })
		op = gpu.Execute(c)
	}
	s := r.dev.Queue(0).NewStream()
	check(t, s.Do(op))
	return s
}

// TestCloseEndsLoop (B203) checks that closing a device ends an endless loop that the host runs,
// and gives the device up if the device runs the loop.
func TestCloseEndsLoop(t *testing.T) {
	for name, c := range caps() {
		for _, recorded := range []bool{false, true} {
			r := newRig(t, simdriver.Config{Caps: c})
			s := endless(t, r, recorded)
			ctx, cancel := context.WithCancel(context.Background())
			if c == nil && recorded {
				cancel() // the device runs the loop: Shutdown gives the device up
			}
			err := r.dev.Shutdown(ctx)
			cancel()
			var unended *gpu.CloseError
			for errors.Is(err, driver.ErrBusy) && !errors.As(err, &unended) { // closing takes longer on a busy machine
				err = r.dev.Close()
			}
			if errors.As(err, &unended) != (c == nil && recorded) {
				t.Errorf("%s, recorded %v: %v", name, recorded, err)
			}
			if err := s.Wait(context.Background()); !errors.Is(err, gpu.ErrClosed) {
				t.Errorf("%s, recorded %v: %v", name, recorded, err)
			}
		}
	}
}

// TestLoss checks that a loop fails with ErrLost if its device is lost.
func TestLoss(t *testing.T) {
	for name, c := range caps() {
		for _, recorded := range []bool{false, true} {
			r := newRig(t, simdriver.Config{Caps: c})
			s := endless(t, r, recorded)
			check(t, r.sim.LoseDevice(0, errors.New("gone")))
			if err := s.Wait(context.Background()); !errors.Is(err, gpu.ErrLost) {
				t.Errorf("%s, recorded %v: %v", name, recorded, err)
			}
			r.dev.Close()
		}
	}
}

// TestFailingBody checks that a loop on the host ends with the error of its body.
func TestFailingBody(t *testing.T) {
	r := newRig(t, simdriver.Config{})
	cond, x := r.numbers(1), r.numbers(0)
	no := errors.New("no")
	for _, recorded := range []bool{false, true} {
		calls := 0
		body := r.record(func(c *gpu.CommandBuffer) {
			r.Do(c, r.plus(x, 1), gpu.HostCall(func() error {
				if calls++; calls < 3 {
					return nil
				}
				return no
			}))
		})
		op := control.While(cond, gpu.Execute(body)).Label("steps")
		if recorded {
			op = gpu.Execute(r.record(func(c *gpu.CommandBuffer) {
				tmp := must(c.Scratch(4))(t)
				r.Do(c, gpu.Fill(tmp.All(), []byte{1}), op, gpu.Fill(tmp.All(), []byte{2}))
			}))
		}
		s := r.dev.Queue(0).NewStream()
		check(t, s.Do(op))
		if err := s.Wait(context.Background()); !errors.Is(err, no) || calls != 3 {
			t.Errorf("%v after %d calls", err, calls)
		}
	}
	r.run(gpu.Fill(x.Range(), one(0)))
	check(t, r.dev.Close())
}

// TestClosedLibrary checks that executions fail if a body, or a body inside a body, needs a library
// that was closed after the recording was made.
func TestClosedLibrary(t *testing.T) {
	each(t, func(t *testing.T, r *rig, onDevice bool) {
		cond, data := r.numbers(1), must(gpu.AllocSlice[float32](r.dev, gpu.DeviceMem, 2))(t)
		lib := must(blas.Open(r.dev, blas.Options{}))(t)
		one := func(i int) blas.Matrix[float32] {
			return blas.Matrix[float32]{Data: data.Slice(i, i+1), Rows: 1, Cols: 1}
		}
		body := r.record(func(b *gpu.CommandBuffer) { r.Do(b, blas.Gemm(lib, one(1), one(0), one(0))) })
		loop := r.record(func(b *gpu.CommandBuffer) {
			r.Do(b, blas.Gemm(lib, one(1), one(0), one(0)), gpu.Fill(cond.Range(), make([]byte, 4)))
		})
		recordings := map[string]*gpu.CommandBuffer{}
		for name, op := range map[string]gpu.Op{
			"if":    control.If(cond, gpu.Execute(body)),
			"while": control.While(cond, gpu.Execute(loop)),
			"in if": control.If(cond, gpu.Execute(r.record(func(b *gpu.CommandBuffer) { r.Do(b, control.If(cond, gpu.Execute(body))) }))),
		} {
			var at gpu.Command
			outer := r.record(func(c *gpu.CommandBuffer) { at = r.Do(c, op) })
			if why := must(control.Host(outer, at))(t); (why == "") != onDevice {
				t.Errorf("%s: the host runs it because %q", name, why)
			}
			cond.Host()[0] = 1
			r.run(gpu.Execute(outer))
			recordings[name] = outer
		}
		check(t, lib.Close())
		for name, c := range recordings {
			cond.Host()[0] = 1
			s := r.dev.Queue(0).NewStream()
			if err := errors.Join(s.Do(gpu.Execute(c)), s.Wait(context.Background())); !errors.Is(err, gpu.ErrClosed) || errors.Is(err, gpu.ErrLost) {
				t.Errorf("%s: %v", name, err)
			}
		}
	})
}

// TestRefused (B202) makes the driver refuse each call that conditional nodes need. Then the host
// runs the control operation, and control.Host says why.
func TestRefused(t *testing.T) {
	for _, op := range []simdriver.Op{simdriver.OpReadyConditionals, simdriver.OpNewCondition, simdriver.OpAddConditional, simdriver.OpInstantiate} {
		r := newRig(t, simdriver.Config{})
		left, x := r.numbers(3), r.numbers(0)
		body := r.record(func(c *gpu.CommandBuffer) { r.Do(c, r.plus(x, 1), r.plus(left, -1)) })
		r.sim.Inject(simdriver.Fault{Op: op, N: 1})
		var at gpu.Command
		c := r.record(func(c *gpu.CommandBuffer) { at = r.Do(c, control.While(left, gpu.Execute(body))) })
		if why := must(control.Host(c, at))(t); !strings.Contains(why, simdriver.ErrInjected.Error()) {
			t.Errorf("%s: the host runs it because %q", op, why)
		}
		r.run(gpu.Execute(c))
		equal(t, x, 3)
		// Next, run a recording that executes c, and a recording with a control operation of its
		// own.
		for _, nested := range []bool{true, false} {
			left.Host()[0] = 2
			d := r.record(func(d *gpu.CommandBuffer) {
				if nested {
					r.Do(d, gpu.Execute(c))
				} else {
					r.Do(d, control.While(left, gpu.Execute(body)))
				}
			})
			r.run(gpu.Execute(d))
		}
		equal(t, x, 7)
		check(t, r.dev.Close())
		if l := r.sim.Leaks(); len(l) > 0 {
			t.Error(op, l)
		}
	}
}

// TestFaults makes each call of the driver fail once, while recordings with control operations are
// made and run. Nothing leaks, and each wait ends.
func TestFaults(t *testing.T) {
	for name, c := range caps() {
		for n := uint64(1); n < 80; n++ {
			r := newRig(t, simdriver.Config{Caps: c})
			left, x := r.numbers(2), r.numbers(0)
			body := r.record(func(c *gpu.CommandBuffer) { r.Do(c, r.plus(x, 1), r.plus(left, -1)) })
			fault := r.sim.Inject(simdriver.Fault{Device: simdriver.AnyDevice, N: n})
			buffer, err := r.dev.NewCommandBuffer(gpu.CommandOptions{InOrder: true})
			if err == nil {
				_, err = buffer.Add(control.While(left, gpu.Execute(body)))
				err = errors.Join(err, buffer.End())
			}
			s := r.dev.Queue(0).NewStream()
			if err == nil {
				err = s.Do(gpu.Execute(buffer), control.If(x, gpu.Execute(body)))
			}
			ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
			if err == nil {
				err = s.Wait(ctx)
			}
			cancel()
			if errors.Is(err, context.DeadlineExceeded) {
				t.Fatal("the stream hangs")
			}
			if err == nil {
				equal(t, x, 3)
			}
			hits := fault.Hits()
			r.dev.Close()
			if l := r.sim.Leaks(); len(l) > 0 {
				t.Errorf("%s, call %d: %v", name, n, l)
			}
			if hits == 0 {
				break
			}
		}
	}
}
