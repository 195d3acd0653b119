package control_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"

	"github.com/puregpu/puregpu/runtime/collective"
	"github.com/puregpu/puregpu/runtime/control"
	"github.com/puregpu/puregpu/runtime/driver/simdriver"
	"github.com/puregpu/puregpu/runtime/gpu"
	"github.com/puregpu/puregpu/runtime/growing"
	"github.com/puregpu/puregpu/runtime/internal/engine"
	"github.com/puregpu/puregpu/runtime/internal/recording"
	"github.com/puregpu/puregpu/runtime/internal/testkit"
)

// stalled submits a loop that the host runs, and returns when the loop's body is in flight. The
// body stalls the device. If recorded is set, the loop is a command of a recording.
func stalled(t *testing.T, r *rig, recorded bool, o gpu.Order) {
	cond, x := r.numbers(1), r.numbers(0)
	body := r.record(func(c *gpu.CommandBuffer) {
		r.Do(c, gpu.HostCall(func() error { return r.sim.StallDevice(0) }), r.plus(x, 1))
	})
	op := control.While(cond, gpu.Execute(body))
	if recorded {
		op = gpu.Execute(r.record(func(c *gpu.CommandBuffer) {
			tmp := must(c.Scratch(4))(t)
			r.Do(c, gpu.Fill(tmp.All(), one(1)), op, r.plus(x, 1))
		}))
	}
	check(t, r.dev.Queue(0).Submit(o, op))
	testkit.Eventually(t, "the body is in flight", func() bool { return testkit.Calls(r.sim, 0, simdriver.OpLaunch) == 1 }, r.dev)
}

// TestFree checks that, if the device is lost while a body is in flight, the points of Order.Free
// are not signalled before the body has ended.
func TestFree(t *testing.T) {
	for _, recorded := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			r := newRig(t, simdriver.Config{})
			done, free := testkit.NewSemaphore(t, 0), testkit.NewSemaphore(t, 0)
			stalled(t, r, recorded, gpu.Order{Signal: []gpu.Point{done.At(1)}, Free: []gpu.Point{free.At(1)}})
			check(t, r.sim.LoseDevice(0, nil))
			if err := done.Wait(context.Background(), 1); !errors.Is(err, gpu.ErrLost) {
				t.Errorf("recorded %v: %v", recorded, err)
			}
			synctest.Wait()
			if n, err := free.Query(); n != 0 || err != nil {
				t.Errorf("recorded %v: the memory is said to be free while the body uses it: %d, %v", recorded, n, err)
			}
			check(t, r.sim.ResumeDevice(0))
			r.dev.Close()
			check(t, free.Wait(testkit.Minute(t), 1))
		})
	}
}

// TestFreeInTheEnd checks that the points of Order.Free are signalled when operations with several
// steps are done or have failed.
func TestFreeInTheEnd(t *testing.T) {
	each(t, func(t *testing.T, r *rig, _ bool) {
		no := errors.New("no")
		for _, want := range []error{nil, no} {
			x := r.numbers(0)
			inner := r.record(func(c *gpu.CommandBuffer) {
				r.Do(c, r.plus(x, 1), gpu.HostCall(func() error { return want }), r.plus(x, 1))
			})
			middle := r.record(func(c *gpu.CommandBuffer) {
				r.Do(c, r.plus(x, 1), control.If(x, gpu.Execute(inner)), r.plus(x, 1))
			})
			outer := r.record(func(c *gpu.CommandBuffer) {
				r.Do(c, gpu.Fill(x.Range(), one(1)), control.If(x, gpu.Execute(middle)), r.plus(x, 1))
			})
			for _, op := range []gpu.Op{gpu.Execute(outer), control.If(x, gpu.Execute(middle))} {
				x.Host()[0] = 1
				done, free := testkit.NewSemaphore(t, 0), testkit.NewSemaphore(t, 0)
				check(t, r.dev.Queue(0).Submit(gpu.Order{Signal: []gpu.Point{done.At(1)}, Free: []gpu.Point{free.At(1)}}, op))
				check(t, free.Wait(testkit.Minute(t), 1))
				if err := done.Wait(testkit.Minute(t), 1); !errors.Is(err, want) {
					t.Error(err)
				}
			}
		}
	})
}

// TestConditionGoes removes the memory of a condition when a body has been submitted. The operation
// must fail only after the body has ended: otherwise another execution would get the scratch memory
// that the body uses.
func TestConditionGoes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, simdriver.Config{})
		m, err := growing.Reserve(r.dev, 1<<30, growing.Options{})
		check(t, err)
		check(t, m.Grow(4))
		cond := must(gpu.SliceOf[uint32](m.Buffer().Range(0, 4)))(t)
		r.run(gpu.Fill(cond.Range(), one(1)))
		gate, x := make(chan struct{}), r.numbers(0)
		body := must(r.dev.NewCommandBuffer(gpu.CommandOptions{InOrder: true, Mode: gpu.StreamMode}))(t)
		tmp := must(body.Binding())(t)
		shrink := gpu.Native("shrink", func(gpu.NativeCall) error { return m.Shrink(0) }, x.Range())
		r.Do(body, shrink, gpu.HostCall(func() error { <-gate; return nil }), gpu.Fill(tmp.Range(0, 4), one(1)))
		check(t, body.End())
		c := r.record(func(c *gpu.CommandBuffer) {
			tmp := must(c.Scratch(4))(t)
			r.Do(c, gpu.Fill(tmp.All(), one(1)), control.While(cond, gpu.Execute(body, tmp.All())), gpu.Copy(x.Range(), tmp.All()))
		})
		done := testkit.NewSemaphore(t, 0)
		check(t, r.dev.Queue(0).Submit(gpu.Order{Signal: []gpu.Point{done.At(1)}}, gpu.Execute(c)))
		synctest.Wait()
		if _, err := done.Query(); err != nil {
			t.Errorf("the operation has failed before its body is over: %v", err)
		}
		close(gate)
		if err := done.Wait(testkit.Minute(t), 1); !errors.Is(err, gpu.ErrRange) {
			t.Error(err)
		}
		check(t, r.dev.Close())
	})
}

// TestLayoutAllocations checks that an execution allocates nothing when it chooses how to run a
// control operation. The body of the operation has a launch with a variable number of blocks.
func TestLayoutAllocations(t *testing.T) {
	r := newRig(t, simdriver.Config{})
	cond, x := r.numbers(0), r.numbers(0)
	body := r.record(func(c *gpu.CommandBuffer) {
		blocks := must(gpu.NewParam(c, [3]uint32{1}))(t)
		r.Do(c, r.plus(x, 1).GridParam(blocks))
	})
	c := r.record(func(c *gpu.CommandBuffer) {
		blocks := must(gpu.NewParam(c, [3]uint32{1}))(t)
		r.Do(c, control.While(cond, gpu.Execute(body).Param(0, blocks)))
	})
	steps := make([]recording.Step, 0, 4)
	if n := testing.AllocsPerRun(100, func() { (*recording.Recording)(c).AddSteps(steps, nil, nil, false) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

// TestNestedCollectives checks that a control operation knows whether its body, or a body nested in
// that, has collectives.
func TestNestedCollectives(t *testing.T) {
	sim := simdriver.New(simdriver.Config{Kernels: kernels})
	g, comms := testkit.OpenCommunicators(t, sim, 1, collective.Options{})
	r := &rig{TB: t, sim: sim, dev: g.Devices()[0]}
	cond, b := r.numbers(0), must(r.dev.Alloc(gpu.DeviceMem, 64))(t)
	inner := r.record(func(c *gpu.CommandBuffer) {
		r.Do(c, comms[0].Group(testkit.Sum(b)))
	})
	middle := r.record(func(c *gpu.CommandBuffer) { r.Do(c, control.If(cond, gpu.Execute(inner))) })
	for _, body := range []*gpu.CommandBuffer{inner, middle} {
		outer := (*recording.Recording)(r.record(func(c *gpu.CommandBuffer) { r.Do(c, control.While(cond, gpu.Execute(body))) }))
		var p recording.Part
		step := outer.AddSteps(nil, nil, nil, false)[0]
		p.SetRun(step)
		s := new(engine.Submission)
		check(t, p.Set(s, step, nil, nil))
		if _, _, bodies := p.Control(); len(bodies) != 1 || !bodies[0].Recording.HasLanes() {
			t.Errorf("%+v", bodies)
		}
		for _, h := range s.Holds {
			h.Release(1)
		}
	}
}
