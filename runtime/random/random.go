// Package random writes random numbers to device memory in a queue's order, with NVIDIA's library
// cuRAND.
//
// [Open] loads the library for a device, and [Library.NewGenerator] makes a generator. [Uniform],
// [Normal] and [Bits] return an Op that writes the generator's next numbers:
//
//	g, err := lib.NewGenerator(random.GeneratorOptions{Seed: 42})
//	err = stream.Do(random.Uniform(g, x), random.Normal(g, y, 0, 1))
//
// # Sequences
//
// The numbers depend on the generator's kind, seed and offset, and on its earlier draws. So a
// program draws the same numbers each time it runs. Each draw continues where the previous draw
// ended. cuRAND makes normal numbers in pairs, so an odd count takes one more number. Results come
// in groups of four. If a draw ends within a group, and the next draw has another type, the two
// draws may share random bits. To avoid that, let the count of each draw be a multiple of four.
//
// An Op draws when it is executed. So an Op that is submitted again draws other numbers. Making an
// Op allocates; submitting the Op again does not.
//
// # Queues and recordings
//
// The state of a generator is memory of the device, which each draw changes. So a generator belongs
// to one queue: the queue that draws from it first. Draws in another queue fail. Make a generator
// with another seed for each queue.
//
// cuRAND keeps a part of a generator's state on the host. A graph would repeat that part as it was
// when the graph was made, while the state in the device's memory moves on. So a draw never becomes
// a node of a graph. In a recording each execution draws new numbers: the recording is divided at
// the draw, which runs after everything that was recorded before it, and before everything recorded
// later. A graph stays whole if the program draws into memory that the graph reads, before it
// executes the graph.
//
// # Simulated devices
//
// On a simulated device the package loads no library, and functions in Go draw the numbers. The
// functions implement cuRAND's generator Philox4x32-10, also for generators of other kinds. For a
// generator of the kind Philox4x32-10, the results of Bits and Uniform are the same as cuRAND's,
// bit by bit. Normal numbers are computed in float64 and rounded once, so they differ in the last
// bits. For devices of HIP and other drivers Open returns [gpu.ErrUnsupported].
package random

import (
	"fmt"

	"github.com/puregpu/puregpu/curand"
	"github.com/puregpu/puregpu/runtime/gpu"
	"github.com/puregpu/puregpu/runtime/internal/libcall"
)

// Options configure a [Library]. The zero value loads the system's library.
type Options struct {
	CuRAND curand.Options // where cuRAND is
}

// A Library is cuRAND for one device. All methods may be called concurrently.
type Library struct {
	dev        libcall.Device
	curand     *curand.Library // nil on a simulated device
	generators libcall.Parts
}

// Open loads cuRAND for a device. If the library is not installed, the error is dl.ErrNotFound.
// Close the Library before the device.
func Open(dev *gpu.Device, o Options) (*Library, error) {
	d, err := libcall.For("random", dev)
	if err != nil {
		return nil, err
	}
	l := &Library{dev: d}
	if !d.Simulated() {
		if l.curand, err = curand.Open(o.CuRAND); err != nil {
			return nil, fmt.Errorf("random: %w", err)
		}
	}
	return l, nil
}

// Close closes the generators that are not closed yet: see [Generator.Close]. Closing again does
// nothing.
func (l *Library) Close() error {
	if l == nil {
		return nil
	}
	return l.generators.Close()
}
