package smallfloat_test

import (
	"context"
	"encoding/json"
	"fmt"
	"log"
	"math"

	"github.com/puregpu/puregpu/runtime/driver/simdriver"
	"github.com/puregpu/puregpu/runtime/gpu"
	"github.com/puregpu/puregpu/runtime/smallfloat"
)

// A type of this package can be the element type of a gpu.Slice. The host computes in float32 and
// converts.
func Example() {
	dev, err := gpu.Open(simdriver.New(simdriver.Config{}), 0, gpu.Options{})
	if err != nil {
		log.Fatal(err)
	}
	defer dev.Close()
	weights := []float32{1, -0.333, 1e-3, 70000}
	small := smallfloat.Append[smallfloat.Float16](nil, weights)

	s := dev.Queue(0).NewStream()
	xs, err := gpu.AllocSliceIn[smallfloat.Float16](s, nil, len(small))
	if err != nil {
		log.Fatal(err)
	}
	s.Do(
		xs.Upload(small),
		xs.Slice(0, 1).Fill(smallfloat.ToFloat16(2)),
		xs.Download(small),
		xs.Free(),
	)
	if err := s.Wait(context.Background()); err != nil {
		log.Fatal(err)
	}
	fmt.Println(small)
	fmt.Println(smallfloat.AppendFloat32(weights[:0], small)) // allocates nothing
	// Output:
	// [2 -0.3330078 0.0010004044 +Inf]
	// [2 -0.3330078 0.0010004044 +Inf]
}

// This example converts the same numbers to each type.
func ExampleFromFloat64() {
	for _, x := range []float64{math.Pi, 1000, 1e6} {
		fmt.Println(
			smallfloat.FromFloat64[smallfloat.Float16](x),
			smallfloat.FromFloat64[smallfloat.BFloat16](x),
			smallfloat.FromFloat64[smallfloat.Float8E4M3](x),
			smallfloat.FromFloat64[smallfloat.Float8E5M2](x),
		)
	}
	// Output:
	// 3.140625 3.140625 3.25 3
	// 1000 1000 448 1024
	// +Inf 999424 448 57344
}

// Verbs for floating-point numbers print the number. Verbs for integers print the bits.
func ExampleFloat16_Format() {
	x := smallfloat.ToFloat16(1.0 / 3)
	fmt.Printf("%v %.3f %#04x\n", x, x, x)
	// Output:
	// 0.33325195 0.333 0x3555
}

func ExampleBFloat16_MarshalJSON() {
	scales := struct{ Scales []smallfloat.BFloat16 }{smallfloat.Append[smallfloat.BFloat16](nil, []float32{0.5, 3})}
	text, err := json.Marshal(scales)
	fmt.Println(string(text), err)
	// Output:
	// {"Scales":[0.5,3]} <nil>
}
