package model_test

import (
	"encoding/binary"
	"fmt"
	"math"
	"slices"
	"testing"

	"github.com/puregpu/puregpu/runtime/examples/llama/internal/checkpoint"
	"github.com/puregpu/puregpu/runtime/smallfloat"
)

// A reference computes with a checkpoint's weights in float64, on the host.
type reference struct {
	checkpoint.Config
	weights map[string]weight
}

type weight struct {
	rows, cols int // a vector is a row
	data       []float64
}

func newReference(t testing.TB, ck *checkpoint.Checkpoint) *reference {
	t.Helper()
	m := &reference{ck.Config(), map[string]weight{}}
	read := func(name string) {
		x, err := ck.Tensor(name + ".weight")
		if err != nil {
			t.Fatal(err)
		}
		raw := make([]byte, x.Size)
		if n, err := x.ReadAt(raw, 0); n < len(raw) {
			t.Fatal(err)
		}
		w := weight{rows: 1, cols: x.Shape[len(x.Shape)-1]}
		if len(x.Shape) == 2 {
			w.rows = x.Shape[0]
		}
		for i := range w.rows * w.cols {
			var f float32
			switch x.DType {
			case checkpoint.BF16:
				f = smallfloat.BFloat16(binary.LittleEndian.Uint16(raw[2*i:])).Float32()
			case checkpoint.F16:
				f = smallfloat.Float16(binary.LittleEndian.Uint16(raw[2*i:])).Float32()
			case checkpoint.F32:
				f = math.Float32frombits(binary.LittleEndian.Uint32(raw[4*i:]))
			case checkpoint.F8E4M3:
				f = smallfloat.Float8E4M3(raw[i]).Float32()
			default:
				t.Fatalf("%s is %v", name, x.DType)
			}
			w.data = append(w.data, float64(f))
		}
		if x.DType == checkpoint.F8E4M3 {
			scales, err := ck.Scales(name)
			if err != nil {
				t.Fatal(err)
			}
			for i := range w.data {
				w.data[i] *= float64(scales[i/w.cols])
			}
		}
		m.weights[name] = w
	}
	read("model.embed_tokens")
	for l := range m.Layers {
		for _, name := range []string{
			"input_layernorm", "post_attention_layernorm", "self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj",
			"self_attn.o_proj", "mlp.gate_proj", "mlp.up_proj", "mlp.down_proj",
		} {
			read(fmt.Sprintf("model.layers.%d.%s", l, name))
		}
	}
	read("model.norm")
	if !m.Tied {
		read("lm_head")
	}
	return m
}

// logits returns the logits after each token, in float64, by the formulas: there is no cache.
func (m *reference) logits(tokens []int32) [][]float64 {
	embed, group := m.weights["model.embed_tokens"], m.Heads/m.KVHeads
	x := make([][]float64, len(tokens))
	for i, t := range tokens {
		x[i] = slices.Clone(embed.data[int(t)*m.Width:][:m.Width])
	}
	for l := range m.Layers {
		p := fmt.Sprintf("model.layers.%d.", l)
		product := func(name string, x []float64) []float64 { return m.weights[p+name].times(x) }
		var keys, values [][]float64
		for i := range x {
			h := normed(x[i], m.weights[p+"input_layernorm"].data, m.Eps)
			q, k := product("self_attn.q_proj", h), product("self_attn.k_proj", h)
			m.rotate(q, i)
			m.rotate(k, i)
			keys, values = append(keys, k), append(values, product("self_attn.v_proj", h))
			sum := make([]float64, m.Heads*m.HeadDim)
			for head := range m.Heads {
				at, kv := head*m.HeadDim, head/group*m.HeadDim
				scores := make([]float64, i+1)
				for j := range scores {
					scores[j] = dot(q[at:at+m.HeadDim], keys[j][kv:kv+m.HeadDim]) / math.Sqrt(float64(m.HeadDim))
				}
				for j, p := range softmax(scores) {
					for d := range m.HeadDim {
						sum[at+d] += p * values[j][kv+d]
					}
				}
			}
			add(x[i], product("self_attn.o_proj", sum))
		}
		for i := range x {
			h := normed(x[i], m.weights[p+"post_attention_layernorm"].data, m.Eps)
			gate, up := product("mlp.gate_proj", h), product("mlp.up_proj", h)
			for j, g := range gate {
				up[j] *= g / (1 + math.Exp(-g))
			}
			add(x[i], product("mlp.down_proj", up))
		}
	}
	head := m.weights["lm_head"]
	if m.Tied {
		head = embed
	}
	for i := range x {
		x[i] = head.times(normed(x[i], m.weights["model.norm"].data, m.Eps))
	}
	return x
}

// rotate applies the rotary embedding to each head of a query or key.
func (m *reference) rotate(x []float64, position int) {
	half, freq := m.HeadDim/2, m.InvFreq()
	for h := 0; h < len(x); h += m.HeadDim {
		for i := range half {
			sin, cos := math.Sincos(float64(position) * float64(freq[i]))
			a, b := x[h+i]*m.Rope.Attention, x[h+i+half]*m.Rope.Attention
			x[h+i], x[h+i+half] = a*cos-b*sin, b*cos+a*sin
		}
	}
}

func (w weight) times(x []float64) []float64 {
	y := make([]float64, w.rows)
	for r := range y {
		y[r] = dot(w.data[r*w.cols:][:w.cols], x)
	}
	return y
}

func normed(x, w []float64, eps float64) []float64 {
	y, scale := make([]float64, len(x)), 1/math.Sqrt(dot(x, x)/float64(len(x))+eps)
	for i := range y {
		y[i] = x[i] * scale * w[i]
	}
	return y
}

func softmax(x []float64) []float64 {
	y, top, sum := make([]float64, len(x)), slices.Max(x), 0.0
	for i := range x {
		y[i] = math.Exp(x[i] - top)
		sum += y[i]
	}
	for i := range y {
		y[i] /= sum
	}
	return y
}

// dot is used by one goroutine at a time. Under the race detector it would take half of the tests'
// time.
//
//go:norace
func dot(a, b []float64) (sum float64) {
	for i := range a {
		sum += a[i] * b[i]
	}
	return sum
}

func add(to, x []float64) {
	for i := range to {
		to[i] += x[i]
	}
}
