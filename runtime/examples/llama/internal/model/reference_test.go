package model_test

import (
	"encoding/binary"
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/puregpu/puregpu/runtime/smallfloat"
)

// A toy is a small model with random weights, in Go. It is the reference for the shard, which reads
// the same weights from a file.
type toy struct {
	layers, width, heads, kvHeads, headDim, ffn, vocab, maxTokens int

	tied, half bool // half: Float16 weights, not BFloat16
	weights    map[string]tensor
}

type tensor struct {
	rows, cols int // a vector has 1 row
	data       []float64
}

var small = toy{layers: 2, width: 64, heads: 4, kvHeads: 2, headDim: 16, ffn: 96, vocab: 131, maxTokens: 96}

// made returns the toy with random weights.
func (m toy) made(seed uint64) *toy {
	r := rand.New(rand.NewPCG(seed, 1))
	m.weights = map[string]tensor{}
	add := func(name string, rows, cols int, mean, deviation float64) {
		w := tensor{rows, cols, make([]float64, rows*cols)}
		for i := range w.data {
			w.data[i] = m.round(mean + deviation*r.NormFloat64())
		}
		m.weights[name] = w
	}
	matrix := func(name string, rows, cols int) { add(name, rows, cols, 0, 1/math.Sqrt(float64(cols))) }
	add("model.embed_tokens.weight", m.vocab, m.width, 0, 1)
	for l := range m.layers {
		p := fmt.Sprintf("model.layers.%d.", l)
		add(p+"input_layernorm.weight", 1, m.width, 1, 0.1)
		add(p+"post_attention_layernorm.weight", 1, m.width, 1, 0.1)
		matrix(p+"self_attn.q_proj.weight", m.heads*m.headDim, m.width)
		matrix(p+"self_attn.k_proj.weight", m.kvHeads*m.headDim, m.width)
		matrix(p+"self_attn.v_proj.weight", m.kvHeads*m.headDim, m.width)
		matrix(p+"self_attn.o_proj.weight", m.width, m.heads*m.headDim)
		matrix(p+"mlp.gate_proj.weight", m.ffn, m.width)
		matrix(p+"mlp.up_proj.weight", m.ffn, m.width)
		matrix(p+"mlp.down_proj.weight", m.width, m.ffn)
	}
	add("model.norm.weight", 1, m.width, 1, 0.1)
	if !m.tied {
		matrix("lm_head.weight", m.vocab, m.width)
	}
	return &m
}

// round rounds a weight as the file does.
func (m *toy) round(x float64) float64 {
	if m.half {
		return float64(smallfloat.ToFloat16(float32(x)).Float32())
	}
	return float64(smallfloat.ToBFloat16(float32(x)).Float32())
}

// write writes config.json and model.safetensors, and returns their folder.
func (m *toy) write(t testing.TB) string {
	t.Helper()
	dir := t.TempDir()
	kind := "bfloat16"
	if m.half {
		kind = "float16"
	}
	config := map[string]any{
		"architectures": []string{"LlamaForCausalLM"}, "model_type": "llama", "hidden_act": "silu", "torch_dtype": kind,
		"num_hidden_layers": m.layers, "hidden_size": m.width, "num_attention_heads": m.heads, "num_key_value_heads": m.kvHeads,
		"head_dim": m.headDim, "intermediate_size": m.ffn, "vocab_size": m.vocab, "max_position_embeddings": m.maxTokens,
		"rms_norm_eps": 1e-5, "rope_theta": 10000.0, "tie_word_embeddings": m.tied, "bos_token_id": 1, "eos_token_id": 2,
	}
	put(t, filepath.Join(dir, "config.json"), mustJSON(t, config))

	header, data := map[string]any{}, []byte(nil)
	var names []string
	for name := range m.weights {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		w, from := m.weights[name], len(data)
		for _, x := range w.data {
			bits := uint16(smallfloat.ToBFloat16(float32(x)))
			if m.half {
				bits = uint16(smallfloat.ToFloat16(float32(x)))
			}
			data = binary.LittleEndian.AppendUint16(data, bits)
		}
		shape, dtype := []int{w.rows, w.cols}, "BF16"
		if w.rows == 1 {
			shape = shape[1:]
		}
		if m.half {
			dtype = "F16"
		}
		header[name] = map[string]any{"dtype": dtype, "shape": shape, "data_offsets": []int{from, len(data)}}
	}
	text := mustJSON(t, header)
	for len(text)%8 != 0 {
		text = append(text, ' ')
	}
	file := append(binary.LittleEndian.AppendUint64(nil, uint64(len(text))), text...)
	put(t, filepath.Join(dir, "model.safetensors"), append(file, data...))
	return dir
}

func mustJSON(t testing.TB, v any) []byte {
	t.Helper()
	text, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

func put(t testing.TB, name string, data []byte) {
	t.Helper()
	if err := os.WriteFile(name, data, 0o600); err != nil {
		t.Fatal(err)
	}
}

// logits returns the logits after each token, in float64, by the formulas: there is no cache.
func (m *toy) logits(tokens []int32) [][]float64 {
	embed, group := m.weights["model.embed_tokens.weight"], m.heads/m.kvHeads
	x := make([][]float64, len(tokens))
	for i, t := range tokens {
		x[i] = slices.Clone(embed.data[int(t)*m.width:][:m.width])
	}
	for l := range m.layers {
		p := fmt.Sprintf("model.layers.%d.", l)
		product := func(name string, x []float64) []float64 { return m.weights[p+name+".weight"].times(x) }
		var keys, values [][]float64
		for i := range x {
			h := normed(x[i], m.weights[p+"input_layernorm.weight"].data)
			q, k := product("self_attn.q_proj", h), product("self_attn.k_proj", h)
			m.rotate(q, i)
			m.rotate(k, i)
			keys, values = append(keys, k), append(values, product("self_attn.v_proj", h))
			sum := make([]float64, m.heads*m.headDim)
			for head := range m.heads {
				at, kv := head*m.headDim, head/group*m.headDim
				scores := make([]float64, i+1)
				for j := range scores {
					scores[j] = dot(q[at:at+m.headDim], keys[j][kv:kv+m.headDim]) / math.Sqrt(float64(m.headDim))
				}
				for j, p := range softmax(scores) {
					for d := range m.headDim {
						sum[at+d] += p * values[j][kv+d]
					}
				}
			}
			add(x[i], product("self_attn.o_proj", sum))
		}
		for i := range x {
			h := normed(x[i], m.weights[p+"post_attention_layernorm.weight"].data)
			gate, up := product("mlp.gate_proj", h), product("mlp.up_proj", h)
			for j, g := range gate {
				up[j] *= g / (1 + math.Exp(-g))
			}
			add(x[i], product("mlp.down_proj", up))
		}
	}
	head := m.weights["lm_head.weight"]
	if m.tied {
		head = embed
	}
	for i := range x {
		x[i] = head.times(normed(x[i], m.weights["model.norm.weight"].data))
	}
	return x
}

// rotate applies the rotary embedding to each head of a query or key.
func (m *toy) rotate(x []float64, position int) {
	half := m.headDim / 2
	for h := 0; h < len(x); h += m.headDim {
		for i := range half {
			sin, cos := math.Sincos(float64(position) * math.Pow(10000, -float64(i)/float64(half)))
			a, b := x[h+i], x[h+i+half]
			x[h+i], x[h+i+half] = a*cos-b*sin, b*cos+a*sin
		}
	}
}

func (w tensor) times(x []float64) []float64 {
	y := make([]float64, w.rows)
	for r := range y {
		y[r] = dot(w.data[r*w.cols:][:w.cols], x)
	}
	return y
}

func normed(x, w []float64) []float64 {
	y, scale := make([]float64, len(x)), 1/math.Sqrt(dot(x, x)/float64(len(x))+1e-5)
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
