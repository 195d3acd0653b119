// Package fft computes fast Fourier transforms of device memory in a queue's order, with NVIDIA's
// library cuFFT.
//
// [Open] loads the library for a device. [NewPlan] makes a plan for transforms of complex numbers,
// [NewRealPlan] one for transforms of real numbers. Forward and Inverse of a plan return an Op, for
// a stream, a queue or a recording:
//
//	plan, err := fft.NewPlan[complex64](lib, fft.Shape{Dims: []int{1024}})
//	err = stream.Do(plan.Forward(y, x), plan.Inverse(x, y))
//
// For a row of n numbers, Forward computes y[k] = Σ x[j]·exp(-2πi·jk/n), and Inverse computes x[j]
// = Σ y[k]·exp(+2πi·jk/n). Inverse does not divide. So Forward followed by Inverse multiplies each
// number by Shape.Points, the number of points of one transform. Divide by it in the program's own
// kernel.
//
// # Plans
//
// Making a plan may take long: cuFFT chooses algorithms, loads kernels and allocates tables. A
// transform does none of this. Its work area is scratch memory of the queue or of the recording, so
// one plan may be used in several queues and recordings at once, and in a graph the transform
// becomes nodes.
//
// # Simulated devices
//
// On a simulated device the package loads no library. Functions in Go compute in float64 and round
// the result once, so results differ from cuFFT's in the last bits. For devices of HIP and other
// drivers Open returns [gpu.ErrUnsupported].
package fft

import (
	"fmt"

	"github.com/puregpu/puregpu/cufft"
	"github.com/puregpu/puregpu/runtime/gpu"
	"github.com/puregpu/puregpu/runtime/internal/libcall"
)

// Options configure a [Library]. The zero value loads the system's library.
type Options struct {
	CuFFT cufft.Options // where cuFFT is
}

// A Library is cuFFT for one device. All methods and functions may be called concurrently.
type Library struct {
	dev   libcall.Device
	cufft *cufft.Library // nil on a simulated device
	plans libcall.Parts
}

// Open loads cuFFT for a device. If the library is not installed, the error is dl.ErrNotFound.
// Close the Library before the device.
func Open(dev *gpu.Device, o Options) (*Library, error) {
	d, err := libcall.For("fft", dev)
	if err != nil {
		return nil, err
	}
	l := &Library{dev: d}
	if !d.Simulated() {
		if l.cufft, err = cufft.Open(o.CuFFT); err != nil {
			return nil, fmt.Errorf("fft: %w", err)
		}
	}
	return l, nil
}

// Close closes the plans that are not closed yet: see [Plan.Close]. Closing again does nothing.
func (l *Library) Close() error {
	if l == nil {
		return nil
	}
	return l.plans.Close()
}

// isZero reports whether the Library is nil or a zero value.
func (l *Library) isZero() bool { return l == nil || l.dev.GPU() == nil }

var errZero = fmt.Errorf("fft: a nil or zero Library: use Open: %w", gpu.ErrArgument)
