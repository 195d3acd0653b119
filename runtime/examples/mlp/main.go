// Mlp runs a network of 12 layers forward on a GPU, for several batches, and compares what comes out with the same on the
// host. The layers are recorded once, in a command buffer whose input and output are bindings, and executed for each batch
// with buffers of its own, by one launch of a graph where the device has graphs. All memory is from a pool, and is allocated
// and deallocated in the order of the work.
//
// It runs on the GPU that there is, and otherwise on the simulated one; with -driver cuda it takes no other.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"unsafe"

	"github.com/puregpu/puregpu/runtime/driver"
	"github.com/puregpu/puregpu/runtime/examples/internal/ondriver"
	"github.com/puregpu/puregpu/runtime/gpu"
	"github.com/puregpu/puregpu/testdata/kernels"
)

const (
	layers     = 12
	width      = 128 // inputs and outputs of a layer
	batch      = 8   // samples that go through the layers at once
	executions = 8

	// tolerance is how far an output may be from the host's, as a share of the host's largest: the two add up in the same
	// order, but the device rounds once where the host rounds twice.
	tolerance = 1e-5
)

// Bytes of floats.
const (
	activations = 4 * batch * width
	weights     = 4 * width * width // of a layer
	biases      = 4 * width
)

func main() { os.Exit(run(os.Args[1:], os.Stdout, os.Stderr)) }

// run runs the program with its arguments and returns its exit status.
func run(args []string, stdout, stderr io.Writer) int {
	return ondriver.Main("mlp", args, stdout, stderr, simulation, mlp)
}

func mlp(ctx context.Context, d driver.Driver, w io.Writer) error {
	dev, err := gpu.Open(d, 0, gpu.Options{})
	if err != nil {
		return err
	}
	defer dev.Close() // what was loaded and allocated goes with it
	n := newNetwork()
	inputs := newInputs(executions)
	outputs, err := forward(ctx, dev, n, inputs)
	if err != nil {
		return err
	}
	worst, err := n.compare(inputs, outputs)
	if err != nil {
		return fmt.Errorf("on %s (%s): %w", d.Name(), dev.Info().Name, err)
	}
	fmt.Fprintf(w, "mlp: %d layers of %d, batch of %d, %d executions on %s (%s): largest error %.1e (%.0e allowed): ok\n",
		layers, width, batch, executions, d.Name(), dev.Info().Name, worst, tolerance)
	return nil
}

// forward has the device run each input through the network. It submits everything at once, and waits for the end alone.
func forward(ctx context.Context, dev *gpu.Device, n *network, inputs [][]float32) (outputs [][]float32, err error) {
	s, err := newSteps(dev)
	if err != nil {
		return nil, err
	}
	params := s.alloca(layers * (weights + biases))
	between := [2]*gpu.Buffer{s.alloca(activations), s.alloca(activations)}
	in, out := make([]*gpu.Buffer, len(inputs)), make([]*gpu.Buffer, len(inputs))
	for i := range inputs {
		in[i], out[i] = s.alloca(activations), s.alloca(activations)
	}
	if s.err != nil {
		return nil, s.err
	}
	c, err := record(dev, params, between)
	if err != nil {
		return nil, err
	}
	s.update(params, n.params)
	for i, x := range inputs {
		outputs = append(outputs, make([]float32, batch*width))
		s.update(in[i], x)
		s.execute(c, in[i], out[i])
		s.download(outputs[i], out[i])
		s.dealloca(in[i])
		s.dealloca(out[i])
	}
	for _, b := range []*gpu.Buffer{between[0], between[1], params} {
		s.dealloca(b)
	}
	if s.err != nil {
		return nil, s.err
	}
	err = s.done.Wait(ctx, s.n)
	return outputs, errors.Join(err, c.Close())
}

// record records the layers. The first reads binding 0, the last writes binding 1, and those between hand over in two
// buffers by turns. A barrier puts each layer behind the one before.
func record(dev *gpu.Device, params *gpu.Buffer, between [2]*gpu.Buffer) (*gpu.CommandBuffer, error) {
	code, err := dev.Load(kernels.Dense)
	if err != nil {
		return nil, err
	}
	dense, err := code.Kernel("dense")
	if err != nil {
		return nil, err
	}
	c, err := dev.NewCommandBuffer(gpu.CommandOptions{})
	if err != nil {
		return nil, err
	}
	in, err1 := c.Binding()
	out, err2 := c.Binding()
	if err := errors.Join(err1, err2); err != nil {
		return nil, err
	}
	size, samples := uint64(width), uint64(batch)
	from := in
	for l := range layers {
		to := between[l%2]
		if l == layers-1 {
			to = out
		}
		if l > 0 {
			if _, err := c.Barrier(); err != nil {
				return nil, err
			}
		}
		at := uint64(l) * (weights + biases)
		_, err := c.Dispatch(gpu.Dispatch{
			Kernel: dense, Grid: [3]uint32{(width + 63) / 64, batch, 1}, Block: [3]uint32{64, 1, 1},
			Args:  []unsafe.Pointer{unsafe.Pointer(&size), unsafe.Pointer(&size), unsafe.Pointer(&samples), nil, nil, nil, nil},
			Sizes: []int{8, 8, 8, 8, 8, 8, 8},
			Buffers: []gpu.BufferArg{
				{Index: 3, Range: params.Range(at, weights)}, {Index: 4, Range: params.Range(at+weights, biases)},
				{Index: 5, Range: from.Range(0, activations)}, {Index: 6, Range: to.Range(0, activations)},
			},
		})
		if err != nil {
			return nil, err
		}
		from = to
	}
	return c, c.End()
}
