package dnn

import (
	"fmt"
	"math"

	"github.com/puregpu/puregpu/runtime/driver"
	"github.com/puregpu/puregpu/runtime/internal/standin"
	"github.com/puregpu/puregpu/runtime/smallfloat"
)

// widen returns an element as a float64.
func widen[T Element](x T) float64 {
	switch x := any(x).(type) {
	case float32:
		return float64(x)
	case smallfloat.Float16:
		return float64(x.Float32())
	case smallfloat.BFloat16:
		return float64(x.Float32())
	}
	return 0 // unreachable: Element has no other types
}

// round returns the T nearest to a number.
func round[T Element](x float64) T {
	var v T
	switch p := any(&v).(type) {
	case *float32:
		*p = float32(x)
	case *smallfloat.Float16:
		*p = smallfloat.FromFloat64[smallfloat.Float16](x)
	case *smallfloat.BFloat16:
		*p = smallfloat.FromFloat64[smallfloat.BFloat16](x)
	}
	return v
}

// load reads n elements at p and converts them to float64.
func load[T Element](m standin.Memory, p driver.Ptr, n int) ([]float64, error) {
	all, err := standin.Read[T](m, p, n)
	if err != nil {
		return nil, err
	}
	numbers := make([]float64, n)
	for i, x := range all {
		numbers[i] = widen(x)
	}
	return numbers, nil
}

// A volume describes where the elements of images or weights are in memory. It always has three
// dimensions; unused ones have size 1.
type volume struct {
	size    [3]int
	strides [5]int // of images, of channels, and of the three dimensions
	len     int
}

func (s ConvShape) volume(outer, channels int, size []int) volume {
	v := volume{size: [3]int{1, 1, 1}, len: outer * channels * product(size...)}
	copy(v.size[3-len(size):], size)
	d, h, w := v.size[0], v.size[1], v.size[2]
	if s.ChannelsLast {
		v.strides = [5]int{d * h * w * channels, 1, h * w * channels, w * channels, channels}
	} else {
		v.strides = [5]int{channels * d * h * w, d * h * w, h * w, w, 1}
	}
	return v
}

// at returns the index of an element.
func (v *volume) at(outer, channel int, at [3]int) int {
	return outer*v.strides[0] + channel*v.strides[1] + at[0]*v.strides[2] + at[1]*v.strides[3] + at[2]*v.strides[4]
}

// three returns three values: the n values of list, and in front of them 3-n times the value of the
// parameter otherwise. If list is nil, all three values are the value of otherwise.
func three(list []int, n, otherwise int) [3]int {
	all := [3]int{otherwise, otherwise, otherwise}
	for i := range n {
		all[3-n+i] = or(list, i, otherwise)
	}
	return all
}

// convolve does a convolution on a simulated GPU, in place of cuDNN. p has the addresses of y, x, w
// and the bias.
func convolve[T Element](m standin.Memory, s ConvShape, p []driver.Ptr) error {
	in, kernel, out := s.volume(s.Batch, s.In, s.Size), s.volume(s.Out, s.In/s.groups(), s.Kernel), s.volume(s.Batch, s.Out, s.OutSize())
	x, err := load[T](m, p[convX], in.len)
	if err != nil {
		return err
	}
	w, err := load[T](m, p[convW], kernel.len)
	if err != nil {
		return err
	}
	bias := make([]float64, s.Out)
	if s.Bias {
		if bias, err = load[T](m, p[convBias], s.Out); err != nil {
			return err
		}
	}
	y, err := standin.Write[T](m, p[convY], out.len)
	if err != nil {
		return err
	}
	n := len(s.Size)
	stride, padding, dilation := three(s.Stride, n, 1), three(s.Padding, n, 0), three(s.Dilation, n, 1)
	channels, group := s.In/s.groups(), s.Out/s.groups() // numbers of input and of output channels of a group
	for i := range s.Batch {
		for o := range s.Out {
			for at := range positions(out.size) {
				sum := bias[o]
				for k := range positions(kernel.size) {
					var from [3]int
					inside := true
					for d := range from {
						from[d] = at[d]*stride[d] - padding[d] + k[d]*dilation[d]
						inside = inside && from[d] >= 0 && from[d] < in.size[d]
					}
					if !inside {
						continue
					}
					for c := range channels {
						sum += x[in.at(i, o/group*channels+c, from)] * w[kernel.at(o, c, k)]
					}
				}
				if s.ReLU {
					sum = max(sum, 0)
				}
				y[out.at(i, o, at)] = round[T](sum)
			}
		}
	}
	return nil
}

// positions yields all positions in an image.
func positions(size [3]int) func(yield func([3]int) bool) {
	return func(yield func([3]int) bool) {
		for i := range size[0] {
			for j := range size[1] {
				for k := range size[2] {
					if !yield([3]int{i, j, k}) {
						return
					}
				}
			}
		}
	}
}

// attend computes attention on a simulated GPU, in place of cuDNN. p has the addresses of out, q, k
// and v, and of the lengths if the shape has Lengths.
func attend[T Half](m standin.Memory, s AttentionShape, p []driver.Ptr) error {
	elements, kvElements := s.Batch*s.Heads*s.Queries*s.HeadDim, s.Batch*s.KVHeads*s.Keys*s.HeadDim
	q, err := load[T](m, p[attentionQ], elements)
	if err != nil {
		return err
	}
	k, err := load[T](m, p[attentionK], kvElements)
	if err != nil {
		return err
	}
	v, err := load[T](m, p[attentionV], kvElements)
	if err != nil {
		return err
	}
	out, err := standin.Write[T](m, p[attentionOut], elements)
	if err != nil {
		return err
	}
	queries, keys := make([]int32, s.Batch), make([]int32, s.Batch)
	for b := range s.Batch {
		queries[b], keys[b] = int32(s.Queries), int32(s.Keys)
	}
	if s.Lengths {
		if queries, err = standin.Read[int32](m, p[attentionQueries], s.Batch); err != nil {
			return err
		}
		if keys, err = standin.Read[int32](m, p[attentionKeys], s.Batch); err != nil {
			return err
		}
	}
	qs, ks := s.strides(s.Heads, s.Queries), s.strides(s.KVHeads, s.Keys)
	weights, sums := make([]float64, s.Keys), make([]float64, s.HeadDim)
	for b := range s.Batch {
		if queries[b] < 0 || int(queries[b]) > s.Queries || keys[b] < 0 || int(keys[b]) > s.Keys {
			return fmt.Errorf("sequence %d has %d queries of %d, and %d keys of %d", b, queries[b], s.Queries, keys[b], s.Keys)
		}
		for h := range s.Heads {
			for i := range s.Queries {
				query := b*int(qs[0]) + h*int(qs[1]) + i*int(qs[2])
				if i >= int(queries[b]) {
					for d := range s.HeadDim {
						out[query+d] = round[T](math.NaN())
					}
					continue
				}
				head := b*int(ks[0]) + h/(s.Heads/s.KVHeads)*int(ks[1])
				seen := int(keys[b])
				if s.Causal {
					seen = max(i+1+seen-int(queries[b]), 0)
				}
				for j := range seen {
					dot := 0.0
					for d := range s.HeadDim {
						dot += q[query+d] * k[head+j*int(ks[2])+d]
					}
					weights[j] = dot * s.Scale
				}
				normalize(weights[:seen])
				clear(sums)
				for j, weight := range weights[:seen] {
					for d := range sums {
						sums[d] += weight * v[head+j*int(ks[2])+d]
					}
				}
				for d, sum := range sums {
					out[query+d] = round[T](sum)
				}
			}
		}
	}
	return nil
}

// normalize replaces numbers by their softmax.
func normalize(x []float64) {
	most, sum := math.Inf(-1), 0.0
	for _, v := range x {
		most = max(most, v)
	}
	for i, v := range x {
		x[i] = math.Exp(v - most)
		sum += x[i]
	}
	for i := range x {
		x[i] /= sum
	}
}

// softmax does on a simulated GPU what cudnnSoftmaxForward does on a real one.
func softmax[T Element](m standin.Memory, dst, src driver.Ptr, rows, cols int) error {
	x, err := load[T](m, src, rows*cols)
	if err != nil {
		return err
	}
	y, err := standin.Write[T](m, dst, rows*cols)
	if err != nil {
		return err
	}
	for i := range rows {
		row := x[i*cols : (i+1)*cols]
		normalize(row)
		for j, v := range row {
			y[i*cols+j] = round[T](v)
		}
	}
	return nil
}

// normalizeRows normalizes rows on a simulated GPU, in place of cuDNN. p has the addresses of y, x,
// scale and bias.
func normalizeRows[T Element](m standin.Memory, s NormShape, p []driver.Ptr) error {
	x, err := load[T](m, p[normX], s.Rows*s.Cols)
	if err != nil {
		return err
	}
	scale, err := load[T](m, p[normScale], s.Cols)
	if err != nil {
		return err
	}
	bias := make([]float64, s.Cols)
	if !s.RMS {
		if bias, err = load[T](m, p[normBias], s.Cols); err != nil {
			return err
		}
	}
	y, err := standin.Write[T](m, p[normY], s.Rows*s.Cols)
	if err != nil {
		return err
	}
	for i := range s.Rows {
		row, mean, squares := x[i*s.Cols:(i+1)*s.Cols], 0.0, 0.0
		if !s.RMS {
			for _, v := range row {
				mean += v / float64(s.Cols)
			}
		}
		for _, v := range row {
			squares += (v - mean) * (v - mean) / float64(s.Cols)
		}
		for j, v := range row {
			y[i*s.Cols+j] = round[T]((v-mean)/math.Sqrt(squares+s.Epsilon)*scale[j] + bias[j])
		}
	}
	return nil
}
