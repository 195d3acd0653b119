package main

import (
	"errors"
	"fmt"
	"time"

	"github.com/puregpu/puregpu/cuda"
	"github.com/puregpu/puregpu/internal/cublas"
	"github.com/puregpu/puregpu/runtime/dl"
	"github.com/puregpu/puregpu/runtime/driver/cudadriver"
	"github.com/puregpu/puregpu/runtime/gpu"
)

// nativeBenches time matrix products, which cuBLAS makes and gpu.Native puts into a queue's order.
// Each product runs after the one before, and a program can wait for each product. The raw side
// makes the same cuBLAS calls on a stream and records an event behind the last call. In the rows
// that say so, and in the last row, the raw side records an event behind each call, so that a
// program could wait for each product on that side too.
func nativeBenches() []bench {
	const n, side, large = 2000, 64, 1024
	goal := goal{max: 1.1, of: ofRaw, device: true}
	rows := func(side int, events string) []row {
		name := fmt.Sprintf("native/2,000 products of %d × %d%s: ", side, side, events)
		return []row{{name: name + "total", unit: ns}, {name: name + "submitting", unit: ns}, {name: name + "CPU", unit: ns}}
	}
	const each = ", raw with an event behind each"
	small, slow := rows(side, ""), rows(large, "")
	small[0].goal, small[1].goal = goal, goal
	slow[0].goal = goal // the device is slower than the host on both sides
	return []bench{
		{rows: small, rounds: 31, open: func(e *env) (sides, error) { return products(e, side, n, false) }},
		{rows: rows(side, each), rounds: 31, open: func(e *env) (sides, error) { return products(e, side, n, true) }},
		{rows: slow, rounds: 11, open: func(e *env) (sides, error) { return products(e, large, n, false) }},
		{
			rows:   []row{{name: "native/product of 64 × 64, p50 to wait", unit: ns, goal: goal}},
			rounds: 31,
			open: func(e *env) (s sides, err error) {
				x, err := newProducer(e, side)
				if err != nil {
					return s, err
				}
				times := make([]time.Duration, 1000)
				return sides{
					raw: func(f []float64) error {
						return e.anywhere(func() (err error) {
							f[0], err = typical(times, func() error {
								if err := x.raw(true); err != nil {
									return err
								}
								return e.await(x.mark)
							})
							return err
						})
					},
					pure: func(f []float64) (err error) {
						f[0], err = typical(times, func() error {
							x.r.v++
							if err := x.pure(x.r.order(nil, 0, x.r.sem, x.r.v)); err != nil {
								return err
							}
							return x.r.sem.Wait(e.ctx, x.r.v)
						})
						return err
					},
					close: x.close,
				}, nil
			},
		},
	}
}

// products returns both sides of a benchmark that submits n products ahead. If events is set, the
// raw side records an event behind each product, otherwise only behind the last one.
func products(e *env, side, n int, events bool) (s sides, err error) {
	x, err := newProducer(e, side)
	if err != nil {
		return s, err
	}
	return sides{
		raw: func(f []float64) error {
			return e.thread.do(func() error {
				return ahead(f, n, func() error {
					for i := range n {
						if err := x.raw(events || i == n-1); err != nil {
							return err
						}
					}
					return nil
				}, func() error { return e.await(x.mark) })
			})
		},
		pure:  func(f []float64) error { return x.r.ahead(e, f, n, x.pure) },
		close: x.close,
	}, nil
}

// A producer multiplies matrices on both sides of a benchmark. Each side has a multiplier. Both use
// the same matrices.
type producer struct {
	e     *env
	r     *rig
	of    [2]*cublas.Multiplier // the raw side's, and the queue's
	uses  [3]gpu.Range
	mark  int // the last event that the raw side recorded
	multi func(gpu.NativeCall) error
}

// newProducer makes the raw side's multiplier on the raw side's thread, and the queue's in a
// function of gpu.Native, because in both places the device is current on the thread.
func newProducer(e *env, side int) (x *producer, err error) {
	if e.lib == nil {
		return nil, fmt.Errorf("%w: there is no cuBLAS for a simulated device", errNotRun)
	}
	lib, err := cublas.Open(dl.Options{})
	if err != nil {
		return nil, fmt.Errorf("%w: %w", errNotRun, err)
	}
	r, err := newRig(e, 1)
	if err != nil {
		return nil, err
	}
	x = &producer{e: e, r: r}
	defer func() {
		if err != nil {
			err = errors.Join(err, x.close())
		}
	}()
	const room = 4 << 20
	size := 4 * uint64(side) * uint64(side)
	matrices, err := r.dev.Alloc(gpu.DeviceMem, 3*size)
	if err != nil {
		return nil, err
	}
	work, err := r.dev.Alloc(gpu.DeviceMem, 2*room)
	if err != nil {
		return nil, err
	}
	for i := range x.uses {
		x.uses[i] = matrices.Range(uint64(i)*size, size)
	}
	err = e.thread.do(func() (err error) {
		x.of[0], err = lib.NewMultiplier(side, cuda.DevicePtr(work.Ptr()), room)
		return err
	})
	if err != nil {
		return nil, err
	}
	x.multi = func(n gpu.NativeCall) (err error) {
		if x.of[1] == nil {
			if x.of[1], err = lib.NewMultiplier(side, cuda.DevicePtr(work.Ptr()+room), room); err != nil {
				return err
			}
		}
		return x.of[1].Multiply(cudadriver.Stream(n.Stream), cuda.DevicePtr(n.Ptrs[0]), cuda.DevicePtr(n.Ptrs[1]), cuda.DevicePtr(n.Ptrs[2]))
	}
	// All numbers are 1.
	r.v++
	err = r.q.Submit(r.order(nil, 0, r.sem, r.v), gpu.Fill(matrices.All(), []byte{0, 0, 0x80, 0x3f}))
	if err == nil {
		r.v++
		err = x.pure(r.order(r.sem, r.v-1, r.sem, r.v))
	}
	if err == nil {
		err = r.sem.Wait(e.ctx, r.v)
	}
	return x, err
}

// pure submits the product to the queue.
func (x *producer) pure(o gpu.Order) error {
	return x.r.q.Submit(o, gpu.Native("", x.multi, x.uses[0], x.uses[1], x.uses[2]))
}

// raw calls cuBLAS on a stream. If event is set, raw also records an event behind the product.
func (x *producer) raw(event bool) error {
	p := [3]cuda.DevicePtr{}
	for i, u := range x.uses {
		p[i] = cuda.DevicePtr(u.Buffer.Ptr()) + cuda.DevicePtr(u.Offset)
	}
	if err := x.of[0].Multiply(x.e.raw.(*rawCUDA).stream[0], p[0], p[1], p[2]); err != nil {
		return err
	}
	if !event {
		return nil
	}
	x.mark = (x.mark + 1) % rawEvents
	return x.e.raw.record(x.mark, 0)
}

func (x *producer) close() error {
	var errs []error
	if m := x.of[0]; m != nil {
		errs = append(errs, x.e.thread.do(m.Close))
	}
	if m := x.of[1]; m != nil {
		x.r.v++
		errs = append(errs, x.r.q.Submit(x.r.order(nil, 0, x.r.sem, x.r.v), gpu.Native("", func(gpu.NativeCall) error { return m.Close() })), x.r.sem.Wait(x.e.ctx, x.r.v))
	}
	return errors.Join(append(errs, x.r.close())...)
}
