package cudnn_test

import (
	"errors"
	"fmt"
	"os"

	"github.com/puregpu/puregpu/cuda"
	"github.com/puregpu/puregpu/cudnn"
	"github.com/puregpu/puregpu/runtime/dl"
)

// A program that can run without cuDNN checks whether it is installed.
func ExampleOpen() {
	os.Setenv("PUREGPU_CUDNN_LIBRARY", "/no/such/libcudnn.so.9") // simulates a machine without cuDNN
	defer os.Unsetenv("PUREGPU_CUDNN_LIBRARY")

	l, err := cudnn.Open(cudnn.Options{})
	if errors.Is(err, dl.ErrNotFound) || errors.Is(err, dl.ErrUnsupported) {
		fmt.Println("no cuDNN here: computing on the host")
		return
	}
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println("cuDNN", cudnn.FormatVersion(l.Version()))
	// Output: no cuDNN here: computing on the host
}

// tensor describes a dense tensor of float32. A variant pack refers to it by its id.
func tensor(l *cudnn.Library, id int64, dims ...int64) (*cudnn.Descriptor, error) {
	d, err := l.NewDescriptor(cudnn.BackendTensorDescriptor)
	if err != nil {
		return nil, err
	}
	strides := make([]int64, len(dims))
	stride := int64(1)
	for i := len(dims) - 1; i >= 0; i-- {
		strides[i] = stride
		stride *= dims[i]
	}
	err = errors.Join(
		cudnn.Set(d, cudnn.AttrTensorUniqueID, id),
		cudnn.Set(d, cudnn.AttrTensorDataType, cudnn.DataFloat),
		cudnn.Set(d, cudnn.AttrTensorByteAlignment, int64(16)),
		cudnn.Set(d, cudnn.AttrTensorDimensions, dims...),
		cudnn.Set(d, cudnn.AttrTensorStrides, strides...),
	)
	if err == nil {
		err = d.Finalize()
	}
	if err != nil {
		d.Close()
		return nil, err
	}
	return d, nil
}

// A program describes the tensors of a graph before its operations.
func ExampleSet() {
	l, err := cudnn.Open(cudnn.Options{})
	if err != nil {
		fmt.Println(err)
		return
	}
	x, err := tensor(l, 1, 8, 32, 16, 16)
	if err != nil {
		fmt.Println(err) // names the attribute, the code and the library's reason
		return
	}
	defer x.Close()
}

// run executes a plan on tensors 1 and 2, on the context's stream. A CUDA context must be current.
func run(l *cudnn.Library, c *cudnn.Context, plan *cudnn.Descriptor, x, y, workspace cuda.DevicePtr) error {
	pack, err := l.NewDescriptor(cudnn.BackendVariantPackDescriptor)
	if err != nil {
		return err
	}
	defer pack.Close()
	err = errors.Join(
		cudnn.Set(pack, cudnn.AttrVariantPackUniqueIds, int64(1), 2),
		cudnn.Set(pack, cudnn.AttrVariantPackDataPointers, x, y),
		cudnn.Set(pack, cudnn.AttrVariantPackWorkspace, workspace),
	)
	if err != nil {
		return err
	}
	if err := pack.Finalize(); err != nil {
		return err
	}
	return l.WithReason(func() error { return l.BackendExecute(c.Handle(), plan.Handle(), pack.Handle()) })
}

func ExampleLibrary_BackendExecute() {
	l, err := cudnn.Open(cudnn.Options{})
	if err != nil {
		fmt.Println(err)
		return
	}
	c, err := l.NewContext()
	if err != nil {
		fmt.Println(err)
		return
	}
	defer c.Close()
	plan, err := l.NewDescriptor(cudnn.BackendExecutionPlanDescriptor)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer plan.Close()
	// Not shown: the program sets the plan's engine, and finalizes the plan.
	var x, y, workspace cuda.DevicePtr // from cuda.Library.MemAlloc
	if err := run(l, c, plan, x, y, workspace); err != nil {
		fmt.Println(err)
	}
}
