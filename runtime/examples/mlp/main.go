// Mlp runs several batches through a network of 12 layers on a GPU, and compares the outputs with
// the host's. It records the layers once, in a command buffer whose input and output are bindings.
// It executes the recording for each batch, with that batch's buffers. If the device has graphs, an
// execution is one launch of a graph. Layers pass data to each other in scratch memory of the
// recording. All other memory is allocated from a pool and freed in stream order.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"log"
	"os"
	"time"

	"github.com/puregpu/puregpu/runtime/driver"
	"github.com/puregpu/puregpu/runtime/driver/simdriver"
	"github.com/puregpu/puregpu/runtime/drivers"
	"github.com/puregpu/puregpu/runtime/gpu"
	_ "github.com/puregpu/puregpu/runtime/trace/cuptitrace" // times the commands of CUDA graphs: gputrace run -kernels
)

const (
	layers     = 12
	width      = 128 // inputs and outputs of a layer
	batch      = 8   // samples in a batch
	executions = 8

	activations = batch * width
	weights     = width * width // of a layer
	biases      = width

	// tolerance is the largest allowed difference between an output and the host's, relative to the
	// host's largest output. Device and host sum in the same order, but the device rounds once
	// where the host rounds twice.
	tolerance = 1e-5
)

//go:generate go run github.com/puregpu/puregpu/tools/kernelgen -name dense kernel.cu kernel.ptx

func main() {
	flag.Parse() // -h works without a GPU
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	d, err := drivers.Best(drivers.WithSim(simdriver.Config{Kernels: kernels}))
	if err == nil {
		err = mlp(ctx, d, os.Stdout)
	}
	if err != nil {
		log.Fatal(err)
	}
}

func mlp(ctx context.Context, d driver.Driver, w io.Writer) (err error) {
	dev, err := gpu.Open(d, 0, gpu.Options{})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, dev.Close()) }() // also frees the code and the memory
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

// forward runs each input through the network on the device. It submits everything at once, and
// waits only for the end.
func forward(ctx context.Context, dev *gpu.Device, n *network, inputs [][]float32) (outputs [][]float32, err error) {
	pool, err := dev.NewPool(gpu.PoolOptions{})
	if err != nil {
		return nil, err
	}
	defer pool.Close()
	s := dev.Queue(0).NewStream()
	params, err := gpu.AllocSliceIn[float32](s, pool, layers*(weights+biases))
	if err != nil {
		return nil, err
	}
	c, err := record(dev, params)
	if err != nil {
		return nil, err
	}
	defer c.Close()
	s.Do(params.UploadCopy(n.params))
	for _, input := range inputs {
		x, _ := gpu.AllocSliceIn[float32](s, pool, activations) // if it fails, so does Wait
		y, _ := gpu.AllocSliceIn[float32](s, pool, activations)
		output := make([]float32, activations)
		outputs = append(outputs, output)
		s.Do(
			x.UploadCopy(input),
			gpu.Execute(c, x.Range(), y.Range()),
			y.Download(output),
			x.Free(),
			y.Free(),
		)
	}
	s.Do(params.Free())
	return outputs, s.Wait(ctx)
}

// record records the layers. The first layer reads binding 0, and the last layer writes binding 1.
// The other layers write to scratch memory, of which two pieces are in use at a time. A barrier
// orders each layer after the previous one.
func record(dev *gpu.Device, params gpu.Slice[float32]) (*gpu.CommandBuffer, error) {
	code, err := LoadDense(dev)
	if err != nil {
		return nil, err
	}
	c, err := dev.NewCommandBuffer(gpu.CommandOptions{})
	if err != nil {
		return nil, err
	}
	in, err1 := floats(c.Binding())
	out, err2 := floats(c.Binding())
	if err := errors.Join(err1, err2); err != nil {
		return nil, err
	}
	grid := gpu.Grid{Blocks: [3]uint32{(width + 63) / 64, batch, 1}, Threads: [3]uint32{64, 1, 1}}
	x := in
	for l := range layers {
		y := out
		if l < layers-1 {
			if y, err = floats(c.Scratch(4 * activations)); err != nil {
				return nil, err
			}
		}
		if l > 0 {
			if _, err := c.Add(gpu.Barrier()); err != nil {
				return nil, err
			}
		}
		at := l * (weights + biases)
		w, b := params.Slice(at, at+weights), params.Slice(at+weights, at+weights+biases)
		if _, err := c.Add(code.Dense.Launch(grid, width, width, batch, w, b, x, y)); err != nil {
			return nil, err
		}
		x = y
	}
	return c, c.End()
}

// floats returns a recording's buffer as a slice of floats.
func floats(b *gpu.Buffer, err error) (gpu.Slice[float32], error) {
	if err != nil {
		return gpu.Slice[float32]{}, err
	}
	return gpu.SliceOf[float32](b.Range(0, 4*activations))
}
