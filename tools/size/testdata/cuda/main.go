// Cuda links the bindings of CUDA. It opens the library only if it has an argument, which command
// size never gives.
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
