package blas_test

import (
	"context"
	"fmt"
	"log"

	"github.com/puregpu/puregpu/cuda"
	"github.com/puregpu/puregpu/runtime/blas"
	"github.com/puregpu/puregpu/runtime/driver/simdriver"
	"github.com/puregpu/puregpu/runtime/gpu"
)

// This example computes a layer of a neural network: y = relu(x·wᵀ + bias).
func ExampleGemm() {
	dev, err := gpu.Open(simdriver.New(simdriver.Config{}), 0, gpu.Options{}) // or drivers.Open(drivers.CUDA)
	if err != nil {
		log.Fatal(err)
	}
	defer dev.Close()
	lib, err := blas.Open(dev, blas.Options{})
	if err != nil {
		log.Fatal(err)
	}
	defer lib.Close()

	stream := dev.Queue(0).NewStream()
	upload := func(data ...float32) gpu.Slice[float32] {
		s, err := gpu.AllocSliceIn[float32](stream, nil, len(data))
		if err != nil {
			log.Fatal(err)
		}
		if err := stream.Do(s.UploadCopy(data)); err != nil {
			log.Fatal(err)
		}
		return s
	}
	x := blas.Matrix[float32]{Data: upload(1, 2, 3, 4, 5, 6), Rows: 2, Cols: 3}
	w := blas.Matrix[float32]{Data: upload(1, 0, -1, 0, 1, 0), Rows: 2, Cols: 3}
	y := blas.Matrix[float32]{Data: upload(0, 0, 0, 0), Rows: 2, Cols: 2}
	layer := blas.GemmWith(lib, y, x, w.T(), blas.GemmOptions[float32]{Bias: upload(1, 10), Activation: blas.ReLU})

	result := make([]float32, 4)
	if err := stream.Do(layer, y.Data.Download(result)); err != nil {
		log.Fatal(err)
	}
	if err := stream.Wait(context.Background()); err != nil {
		log.Fatal(err)
	}
	fmt.Println(result)
	// Output: [0 12 0 15]
}

// Call makes an operation of any function of cuBLAS, here of cublasSaxpy: y = 2x + y.
func ExampleLibrary_Call() {
	axpy := func(lib *blas.Library, y, x gpu.Slice[float32]) gpu.Op {
		return lib.Call("axpy", func(c blas.Call) error {
			two := float32(2)
			return c.Saxpy(c.Handle, int32(x.Len()), &two, cuda.DevicePtr(c.Ptrs[1]), 1, cuda.DevicePtr(c.Ptrs[0]), 1)
		}, y.Range(), x.Range())
	}
	_ = axpy // stream.Do(axpy(lib, y, x))
}
