// Cuda is linked with the bindings of CUDA, and opens nothing unless it is given an argument, which it never is.
package main

import (
	"os"

	"github.com/puregpu/puregpu/cuda"
)

func main() {
	if len(os.Args) > 1 {
		lib, err := cuda.Open(cuda.Options{})
		if err == nil {
			err = lib.Init(0)
		}
		if err != nil {
			os.Exit(1)
		}
	}
	os.Stdout.WriteString("hello\n")
}
