package main

import (
	"context"
	"fmt"
	"math"

	"github.com/puregpu/puregpu/runtime/gpu"
	"github.com/puregpu/puregpu/runtime/random"
)

// pi draws points in a square. About π/4 of the points are inside the quarter circle.
func pi(ctx context.Context, dev *gpu.Device) (string, error) {
	lib, err := random.Open(dev, random.Options{})
	if err != nil {
		return "", err
	}
	defer lib.Close() // closes the generator too
	generator, err := lib.NewGenerator(random.GeneratorOptions{Seed: 42})
	if err != nil {
		return "", err
	}
	const n = 1 << 18
	numbers := make([]float32, 2*n)
	s := dev.Queue(0).NewStream()
	points, _ := gpu.AllocSliceIn[float32](s, nil, 2*n) // if it fails, so does Wait
	defer points.Close()
	s.Do(random.Uniform(generator, points), points.Download(numbers))
	if err := s.Wait(ctx); err != nil {
		return "", err
	}
	inside := 0
	for i := range n {
		if x, y := numbers[2*i], numbers[2*i+1]; x*x+y*y <= 1 {
			inside++
		}
	}
	estimate := 4 * float64(inside) / n
	if math.Abs(estimate-math.Pi) > 0.02 { // six standard deviations
		return "", fmt.Errorf("π by %d random points is %.3f", n, estimate)
	}
	return fmt.Sprintf("π by %d random points is about %.3f", n, estimate), nil
}
