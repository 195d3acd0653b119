package random_test

import (
	"context"
	"fmt"
	"log"

	"github.com/puregpu/puregpu/runtime/driver/simdriver"
	"github.com/puregpu/puregpu/runtime/gpu"
	"github.com/puregpu/puregpu/runtime/random"
)

func check(errs ...error) {
	for _, err := range errs {
		if err != nil {
			log.Fatal(err)
		}
	}
}

// The simulated GPU draws the same uniform numbers as a GPU with CUDA.
func Example() {
	dev, err := gpu.Open(simdriver.New(simdriver.Config{}), 0, gpu.Options{})
	check(err)
	defer dev.Close()
	lib, err := random.Open(dev, random.Options{})
	check(err)
	defer lib.Close()

	g, err := lib.NewGenerator(random.GeneratorOptions{Seed: 1234})
	check(err)
	x, err := gpu.AllocSlice[float32](dev, gpu.DeviceMem, 4)
	check(err)
	draw, out := random.Uniform(g, x), make([]float32, 4)
	s := dev.Queue(0).NewStream()
	for range 2 { // the same Op draws the next numbers
		check(s.Do(draw, x.Download(out)), s.Wait(context.Background()))
		fmt.Printf("%.4f\n", out)
	}
	// Output:
	// [0.1272 0.8535 0.2656 0.7961]
	// [0.8167 0.3242 0.7811 0.0589]
}
