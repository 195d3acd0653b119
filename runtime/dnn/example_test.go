package dnn_test

import (
	"context"
	"fmt"
	"log"

	"github.com/puregpu/puregpu/runtime/dnn"
	"github.com/puregpu/puregpu/runtime/driver/simdriver"
	"github.com/puregpu/puregpu/runtime/gpu"
)

// This example finds the edges of a picture by a convolution.
func ExampleNewConv() {
	dev, err := gpu.Open(simdriver.New(simdriver.Config{}), 0, gpu.Options{}) // or drivers.Open(drivers.CUDA)
	if err != nil {
		log.Fatal(err)
	}
	defer dev.Close()
	lib, err := dnn.Open(dev, dnn.Options{})
	if err != nil {
		log.Fatal(err)
	}
	defer lib.Close()
	conv, err := dnn.NewConv[float32](lib, dnn.ConvShape{
		Batch: 1, In: 1, Out: 1, Size: []int{3, 5}, Kernel: []int{1, 2}, ReLU: true,
	})
	if err != nil {
		log.Fatal(err)
	}
	defer conv.Close()
	floats, err := gpu.AllocSlice[float32](dev, gpu.DeviceMem, 32)
	if err != nil {
		log.Fatal(err)
	}
	defer floats.Close()

	// Tensors begin at multiples of 16 bytes.
	y, x, w, edges := floats.Slice(0, 12), floats.Slice(12, 27), floats.Slice(28, 30), make([]float32, 12)
	stream := dev.Queue(0).NewStream()
	err = stream.Do(
		x.UploadCopy([]float32{
			0, 0, 9, 9, 0,
			0, 0, 5, 7, 0,
			0, 0, 0, 3, 3,
		}),
		w.UploadCopy([]float32{-1, 1}),
		conv.Forward(y, x, w, gpu.Slice[float32]{}),
		y.Download(edges),
	)
	if err != nil {
		log.Fatal(err)
	}
	if err := stream.Wait(context.Background()); err != nil {
		log.Fatal(err)
	}
	fmt.Println(edges)
	// Output: [0 9 0 0 0 5 2 0 0 0 3 0]
}
