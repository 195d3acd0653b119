package main

import (
	"errors"
	"fmt"
	"time"

	"github.com/puregpu/puregpu/hip"
	"github.com/puregpu/puregpu/runtime/driver/hipdriver"
	"github.com/puregpu/puregpu/runtime/gpu"
)

// hipBenches time hipdriver on the HIP library that the user named. Both sides use package gpu: one
// on hipdriver, and the raw side on the CUDA driver, on the device of the same number.
func hipBenches() []bench {
	const fills = 2000
	g := goal{max: 1.3, of: ofRaw, device: true}
	return []bench{
		{
			rows:   []row{{name: "hip/fill 4 KiB through hipdriver, p50 to wait", unit: ns}},
			rounds: 31,
			open: func(e *env) (sides, error) {
				times := make([]time.Duration, 1000)
				return throughHIP(e, func(r *rig, f []float64) (err error) {
					f[0], err = typical(times, func() error { return r.roundTrip(e) })
					return err
				})
			},
		},
		{
			rows: []row{
				{name: "hip/2,000 chained fills: total", unit: ns},
				{name: "hip/2,000 chained fills: submitting", unit: ns, goal: g},
				{name: "hip/2,000 chained fills: CPU", unit: ns},
			},
			rounds: 31,
			open: func(e *env) (sides, error) {
				return throughHIP(e, func(r *rig, f []float64) error { return r.chain(e, f, fills, 1) })
			},
		},
	}
}

// throughHIP makes the sides of a bench that does the same work with both drivers.
func throughHIP(e *env, work func(r *rig, f []float64) error) (s sides, err error) {
	switch {
	case e.opt.hip == "":
		return s, fmt.Errorf("%w: name a HIP library with -hip", errNotRun)
	case e.lib == nil:
		return s, fmt.Errorf("%w: a simulated device cannot be compared with a library", errNotRun)
	case e.hip == nil:
		d, err := hipdriver.Open(hip.Options{Path: e.opt.hip})
		if err != nil {
			return s, err
		}
		e.hip = d
	}
	left, err := newRig(e, 1)
	if err != nil {
		return s, err
	}
	right, err := openRig(e.hip, e.index, gpu.Options{Queues: 1})
	if err != nil {
		return s, errors.Join(err, left.close())
	}
	return sides{
		raw:   func(f []float64) error { return work(left, f) },
		pure:  func(f []float64) error { return work(right, f) },
		close: func() error { return errors.Join(left.close(), right.close()) },
	}, nil
}
