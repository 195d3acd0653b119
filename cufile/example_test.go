package cufile_test

import (
	"errors"
	"fmt"
	"os"

	"github.com/puregpu/puregpu/cuda"
	"github.com/puregpu/puregpu/cufile"
	"github.com/puregpu/puregpu/runtime/dl"
)

// A program that can run without cuFile checks whether it is installed.
func ExampleOpen() {
	os.Setenv("PUREGPU_CUFILE_LIBRARY", "/no/such/libcufile.so.0") // simulates a machine without cuFile
	defer os.Unsetenv("PUREGPU_CUFILE_LIBRARY")

	l, err := cufile.Open(cufile.Options{})
	if errors.Is(err, dl.ErrNotFound) || errors.Is(err, dl.ErrUnsupported) {
		fmt.Println("no cuFile here: reading through the host")
		return
	}
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println("cuFile", cufile.FormatVersion(l.Version()))
	// Output: no cuFile here: reading through the host
}

// load reads the first bytes of a file into device memory. The driver must be open and a CUDA
// context current.
func load(l *cufile.Library, name string, data cuda.DevicePtr, size int64) error {
	file, err := os.Open(name) // for direct transfers: os.OpenFile with syscall.O_DIRECT
	if err != nil {
		return err
	}
	defer file.Close()
	f, err := l.NewFile(file)
	if err != nil {
		return err
	}
	defer f.Close()
	_, err = f.ReadAt(cufile.Memory{Base: data, Size: size}, 0)
	return err
}

func ExampleFile_ReadAt() {
	l, err := cufile.Open(cufile.Options{})
	if err != nil {
		fmt.Println(err)
		return
	}
	driver, err := l.NewDriver()
	if err != nil {
		fmt.Println(err)
		return
	}
	defer driver.Close()
	var data cuda.DevicePtr // from cuda.Library.MemAlloc
	if err := load(l, "weights.bin", data, 1<<20); err != nil {
		fmt.Println(err)
	}
}
