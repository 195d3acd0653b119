package main

import (
	"context"
	"fmt"
	"math"

	"github.com/puregpu/puregpu/runtime/dnn"
	"github.com/puregpu/puregpu/runtime/gpu"
	"github.com/puregpu/puregpu/runtime/smallfloat"
)

// blur blurs a picture of one bright point by a convolution. The blurred point must look like the
// kernel of the convolution.
func blur(ctx context.Context, dev *gpu.Device) (string, error) {
	lib, err := dnn.Open(dev, dnn.Options{})
	if err != nil {
		return "", err
	}
	defer lib.Close() // closes the plan too
	conv, err := dnn.NewConv[float32](lib, dnn.ConvShape{
		Batch: 1, In: 1, Out: 1, Size: []int{5, 5}, Kernel: []int{3, 3}, Padding: []int{1, 1}, // NCHW
	})
	if err != nil {
		return "", err
	}
	picture, blurred := make([]float32, 25), make([]float32, 25)
	picture[2*5+2] = 1
	kernel := []float32{1. / 16, 2. / 16, 1. / 16, 2. / 16, 4. / 16, 2. / 16, 1. / 16, 2. / 16, 1. / 16}
	s := dev.Queue(0).NewStream()
	x, _ := gpu.AllocSliceIn[float32](s, nil, 25) // if it fails, so does Wait
	y, _ := gpu.AllocSliceIn[float32](s, nil, 25)
	weights, _ := gpu.AllocSliceIn[float32](s, nil, 9)
	defer x.Close()
	defer y.Close()
	defer weights.Close()
	s.Do(x.Upload(picture), weights.Upload(kernel), conv.Forward(y, x, weights, gpu.Slice[float32]{}), y.Download(blurred))
	if err := s.Wait(ctx); err != nil {
		return "", err
	}
	for i, got := range blurred {
		want := float32(0)
		if row, col := i/5-1, i%5-1; row >= 0 && row < 3 && col >= 0 && col < 3 {
			want = kernel[row*3+col]
		}
		if !(math.Abs(float64(got-want)) < 1e-5) { // NaN is wrong too
			return "", fmt.Errorf("row %d, column %d of the blurred picture is %v, want %v", i/5, i%5, got, want)
		}
	}
	return fmt.Sprintf("the blurred point has the rows %.4f %.4f %.4f", blurred[6:9], blurred[11:14], blurred[16:19]), nil
}

// attend looks up values by attention: each query is like one key, and gets the value of that key.
func attend(ctx context.Context, dev *gpu.Device) (string, error) {
	lib, err := dnn.Open(dev, dnn.Options{})
	if err != nil {
		return "", err
	}
	defer lib.Close() // closes the plan too
	const n = 8       // tokens, and elements of each
	attention, err := dnn.NewAttention[smallfloat.Float16](lib, dnn.AttentionShape{Batch: 1, Heads: 1, Queries: n, HeadDim: n, Scale: 1})
	if err != nil {
		return "", err
	}
	var queries, keys, values, found [n * n]smallfloat.Float16
	for i := range n {
		keys[i*n+i] = smallfloat.ToFloat16(1)
		queries[i*n+n-1-i] = smallfloat.ToFloat16(32) // query i selects key n-1-i
		values[i*n] = smallfloat.ToFloat16(float32(i + 1))
	}
	s := dev.Queue(0).NewStream()
	data, _ := gpu.AllocSliceIn[smallfloat.Float16](s, nil, 4*n*n) // if it fails, so does Wait
	defer data.Close()
	q, k, v, out := data.Slice(0, 64), data.Slice(64, 128), data.Slice(128, 192), data.Slice(192, 256)
	s.Do(q.Upload(queries[:]), k.Upload(keys[:]), v.Upload(values[:]), attention.Forward(out, q, k, v), out.Download(found[:]))
	if err := s.Wait(ctx); err != nil {
		return "", err
	}
	text := "attention finds the values"
	for i := range n {
		text += fmt.Sprintf(" %.1f", found[i*n].Float32())
	}
	if want := "attention finds the values 8.0 7.0 6.0 5.0 4.0 3.0 2.0 1.0"; text != want {
		return "", fmt.Errorf("%s; want %s", text, want)
	}
	return text, nil
}
