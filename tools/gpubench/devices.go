package main

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/puregpu/puregpu/runtime/gpu"
)

// deviceBenches time work on two devices: the named one and the next. The raw side of loading is
// package gpu on the first device alone.
func deviceBenches(e *env) []bench {
	const fills, kernels = 2000, 200
	size := e.opt.copySize
	switch {
	case size > 0:
	case e.opt.sim: // the host copies
		size = 64 << 20
	default:
		size = 1 << 30
	}
	return []bench{
		{
			rows: []row{
				{name: "devices/hop between two devices: total", unit: ns, goal: goal{max: 1.5, of: ofRaw, device: true}},
				{name: "devices/hop between two devices: submitting", unit: ns},
				{name: "devices/hop between two devices: CPU", unit: ns},
			},
			rounds: 31,
			open:   func(e *env) (sides, error) { return deviceHop(e, fills) },
		},
		{
			rows:   []row{{name: "devices/peer copy of " + sizeText(size), unit: ns, goal: goal{max: 1 / 0.95, of: ofRaw, device: true}}},
			rounds: 15,
			open:   func(e *env) (sides, error) { return deviceCopy(e, size) },
		},
		{
			rows: []row{{name: fmt.Sprintf("devices/load a module of %d kernels on two devices", kernels), unit: ns,
				goal: goal{max: 1.2, of: ofRaw, device: true}}},
			rounds: 11, // every load makes the drivers compile
			open:   func(e *env) (sides, error) { return deviceLoad(e, kernels) },
		},
	}
}

// openTwo opens two devices.
func openTwo(e *env) (g *gpu.Group, indices [2]int, err error) {
	infos, err := e.drv.Devices()
	if err != nil {
		return nil, indices, err
	}
	if len(infos) < 2 {
		return nil, indices, fmt.Errorf("%w: two devices are needed, and there is one", errNotRun)
	}
	indices = [2]int{e.index, (e.index + 1) % len(infos)}
	g, err = gpu.OpenGroup(e.drv, gpu.Options{Queues: 1}, indices[:]...)
	return g, indices, err
}

// A pair is two devices, for both sides.
type pair struct {
	group  *gpu.Group
	rigs   [2]*rig
	thread *thread // the raw side's thread
	raw    [2]api
}

func newPair(e *env) (*pair, error) {
	group, indices, err := openTwo(e)
	if err != nil {
		return nil, err
	}
	p := &pair{group: group, thread: newThread()}
	for i, dev := range group.Devices() {
		if p.rigs[i], err = rigOn(dev); err != nil {
			return nil, errors.Join(err, p.close())
		}
	}
	err = p.thread.do(func() (err error) {
		for i, index := range indices {
			if p.raw[i], err = e.newRaw(index); err != nil {
				return fmt.Errorf("raw side: %w", err)
			}
		}
		return nil
	})
	if err != nil {
		return nil, errors.Join(err, p.close())
	}
	return p, nil
}

func (p *pair) close() error {
	err := p.thread.do(func() error {
		var errs []error
		for _, a := range p.raw {
			if a != nil {
				errs = append(errs, a.bind(), a.close())
			}
		}
		return errors.Join(errs...)
	})
	p.thread.end()
	return errors.Join(err, p.group.Close())
}

// deviceHop submits n fills, on two devices in turn. Each waits for the one before.
func deviceHop(e *env, n int) (sides, error) {
	p, err := newPair(e)
	if err != nil {
		return sides{}, err
	}
	sem, v := p.rigs[0].sem, uint64(0)
	return sides{
		raw: func(f []float64) error {
			return p.thread.do(func() error {
				return ahead(f, n, func() error { return rawHop(p.raw, n) }, func() error { return e.awaitOn(p.raw[(n-1)%2], (n-1)%rawEvents) })
			})
		},
		pure: func(f []float64) error {
			return ahead(f, n, func() error {
				for i := range n {
					r := p.rigs[i%2]
					if err := r.fill(r.q, sem, v, sem, v+1); err != nil {
						return err
					}
					v++
				}
				return nil
			}, func() error { return sem.Wait(e.ctx, v) })
		},
		close: p.close,
	}, nil
}

// rawHop submits n fills, on two devices in turn, with an event behind each. It does not change the
// current device: the driver takes the device from the stream or the event.
func rawHop(on [2]api, n int) error {
	for i := range n {
		a, before := on[i%2], on[1-i%2]
		if i > 0 {
			if err := a.follow(0, before, (i-1)%rawEvents); err != nil {
				return err
			}
		}
		if err := a.fill(0); err != nil {
			return err
		}
		if err := a.record(i%rawEvents, 0); err != nil {
			return err
		}
	}
	return nil
}

// deviceCopy copies from the first device to the second. Both sides use the same memory. The group
// has given the devices direct access to each other, if possible.
func deviceCopy(e *env, size uint64) (sides, error) {
	p, err := newPair(e)
	if err != nil {
		return sides{}, err
	}
	r := p.rigs[0]
	src, err := r.dev.Alloc(gpu.DeviceMem, size)
	if err != nil {
		return sides{}, errors.Join(err, p.close())
	}
	dst, err := p.rigs[1].dev.Alloc(gpu.DeviceMem, size)
	if err != nil {
		return sides{}, errors.Join(err, p.close())
	}
	r.v++
	if err := errors.Join(r.q.Submit(r.order(nil, 0, r.sem, r.v), gpu.Fill(src.All(), pattern)), r.sem.Wait(e.ctx, r.v)); err != nil {
		return sides{}, errors.Join(err, p.close())
	}
	return sides{
		raw: func(f []float64) error {
			return p.thread.do(func() error {
				start := time.Now()
				if err := p.raw[0].copyTo(0, p.raw[1], uint64(dst.Ptr()), uint64(src.Ptr()), size); err != nil {
					return err
				}
				if err := p.raw[0].record(0, 0); err != nil {
					return err
				}
				err := e.awaitOn(p.raw[0], 0)
				f[0] = each(time.Since(start), 1)
				return err
			})
		},
		pure: func(f []float64) error {
			start := time.Now()
			r.v++
			if err := r.q.Submit(r.order(nil, 0, r.sem, r.v), gpu.Copy(dst.All(), src.All())); err != nil {
				return err
			}
			err := r.sem.Wait(e.ctx, r.v)
			f[0] = each(time.Since(start), 1)
			return err
		},
		close: p.close,
	}, nil
}

// deviceLoad loads code on the first of two devices, and on both.
func deviceLoad(e *env, kernels int) (sides, error) {
	group, _, err := openTwo(e)
	if err != nil {
		return sides{}, err
	}
	timed := func(f []float64, load func(image []byte) ([]*gpu.Module, error)) error {
		image := module(kernels)
		start := time.Now()
		all, err := load(image)
		f[0] = each(time.Since(start), 1)
		for _, x := range all {
			err = errors.Join(err, x.Close())
		}
		return err
	}
	return sides{
		raw: func(f []float64) error {
			return timed(f, func(image []byte) ([]*gpu.Module, error) {
				x, err := group.Devices()[0].Load(image)
				if err != nil {
					return nil, err
				}
				return []*gpu.Module{x}, nil
			})
		},
		pure:  func(f []float64) error { return timed(f, group.Load) },
		close: group.Close,
	}, nil
}

// module returns the PTX of a module of kernels k0, k1 and so on. Each kernel computes something at
// random with one word for each thread, so that a driver cannot take compiled code from its cache.
func module(kernels int) []byte {
	var b bytes.Buffer
	b.WriteString(".version 6.4\n.target sm_50\n.address_size 64\n")
	for k := range kernels {
		fmt.Fprintf(&b, "\n.visible .entry k%d(\n\t.param .u64 k%d_p\n)\n{\n", k, k)
		b.WriteString("\t.reg .b32 %r<4>;\n\t.reg .b64 %rd<5>;\n\n")
		fmt.Fprintf(&b, "\tld.param.u64 %%rd1, [k%d_p];\n", k)
		b.WriteString("\tcvta.to.global.u64 %rd2, %rd1;\n\tmov.u32 %r1, %tid.x;\n\tmul.wide.u32 %rd3, %r1, 4;\n")
		b.WriteString("\tadd.s64 %rd4, %rd2, %rd3;\n\tld.global.u32 %r2, [%rd4];\n\tmov.u32 %r3, %r1;\n")
		for range 25 + rand.IntN(25) { // every instruction affects the result
			c := rand.Uint32() >> 1
			switch rand.IntN(6) {
			case 0:
				fmt.Fprintf(&b, "\tmad.lo.u32 %%r2, %%r2, %d, %%r3;\n", c)
			case 1:
				fmt.Fprintf(&b, "\txor.b32 %%r3, %%r3, %d;\n", c)
			case 2:
				fmt.Fprintf(&b, "\tadd.u32 %%r3, %%r3, %d;\n", c)
			case 3:
				fmt.Fprintf(&b, "\tshl.b32 %%r1, %%r3, %d;\n\tsub.u32 %%r2, %%r2, %%r1;\n", 1+c%31)
			case 4:
				fmt.Fprintf(&b, "\tmul.hi.u32 %%r1, %%r2, %d;\n\txor.b32 %%r3, %%r3, %%r1;\n", c)
			case 5:
				b.WriteString("\tmax.u32 %r2, %r2, %r3;\n")
			}
		}
		fmt.Fprintf(&b, "\tadd.u32 %%r2, %%r2, %d;\n\txor.b32 %%r2, %%r2, %%r3;\n", rand.Uint32()>>1)
		b.WriteString("\tst.global.u32 [%rd4], %r2;\n\tret;\n}\n")
	}
	b.WriteByte(0) // the driver needs the zero byte
	return b.Bytes()
}

// sizeText formats a number of bytes.
func sizeText(n uint64) string {
	switch {
	case n >= 1<<30 && n%(1<<30) == 0:
		return fmt.Sprintf("%d GiB", n>>30)
	case n >= 1<<20 && n%(1<<20) == 0:
		return fmt.Sprintf("%d MiB", n>>20)
	case n >= 1<<10 && n%(1<<10) == 0:
		return fmt.Sprintf("%d KiB", n>>10)
	}
	return fmt.Sprintf("%d bytes", n)
}
