// Package checkpointtest writes small checkpoints with random weights, for tests.
package checkpointtest

import (
	"encoding/binary"
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/puregpu/puregpu/runtime/examples/llama/internal/checkpoint"
)

// Write writes a checkpoint of a model to a folder: config.json, and bf16 weights in the given
// number of files. The weights depend on the seed, and the logits have a standard deviation of
// about 3.
func Write(dir string, c checkpoint.Config, files int, seed uint64) error {
	if err := writeJSON(filepath.Join(dir, "config.json"), fields(c)); err != nil {
		return err
	}
	all := weights(c, rand.New(rand.NewPCG(seed, 0)))
	names := slices.Sorted(maps.Keys(all))
	if files < 2 {
		return writeFile(filepath.Join(dir, "model.safetensors"), all, names)
	}
	index := make(map[string]string)
	for i := range files {
		part := names[i*len(names)/files : (i+1)*len(names)/files]
		file := fmt.Sprintf("model-%05d-of-%05d.safetensors", i+1, files)
		if err := writeFile(filepath.Join(dir, file), all, part); err != nil {
			return err
		}
		for _, name := range part {
			index[name] = file
		}
	}
	return writeJSON(filepath.Join(dir, "model.safetensors.index.json"), map[string]any{"weight_map": index})
}

// fields returns the fields of a model's config.json.
func fields(c checkpoint.Config) map[string]any {
	f := map[string]any{
		"architectures": []string{"LlamaForCausalLM"}, "model_type": "llama", "hidden_act": "silu",
		"num_hidden_layers": c.Layers, "hidden_size": c.Width, "num_attention_heads": c.Heads,
		"num_key_value_heads": c.KVHeads, "head_dim": c.HeadDim, "intermediate_size": c.FFN,
		"vocab_size": c.Vocab, "max_position_embeddings": c.MaxTokens, "rms_norm_eps": c.Eps,
		"rope_theta": c.Theta, "tie_word_embeddings": c.Tied, "torch_dtype": "bfloat16",
	}
	if c.BOS >= 0 {
		f["bos_token_id"] = c.BOS
	}
	if len(c.EOS) > 0 {
		f["eos_token_id"] = c.EOS
	}
	if r := c.Rope; r.Type == "llama3" {
		f["rope_scaling"] = map[string]any{
			"rope_type": r.Type, "factor": r.Factor, "original_max_position_embeddings": r.Original,
			"low_freq_factor": r.LowFreq, "high_freq_factor": r.HighFreq,
		}
	}
	return f
}

// An array is a weight: a matrix or a vector.
type array struct {
	shape []int
	bf16  []uint16
}

// weights returns random weights. They are scaled such that the numbers between layers stay near 1.
func weights(c checkpoint.Config, random *rand.Rand) map[string]array {
	all := make(map[string]array)
	add := func(name string, mean, deviation float64, shape ...int) {
		n := 1
		for _, d := range shape {
			n *= d
		}
		a := array{shape, make([]uint16, n)}
		for i := range a.bf16 {
			a.bf16[i] = bf16(float32(mean + deviation*random.NormFloat64()))
		}
		all[name+".weight"] = a
	}
	matrix := func(name string, gain float64, out, in int) {
		add(name, 0, gain/math.Sqrt(float64(in)), out, in)
	}
	if c.Tied {
		matrix("model.embed_tokens", 3, c.Vocab, c.Width)
	} else {
		add("model.embed_tokens", 0, 1, c.Vocab, c.Width)
		matrix("lm_head", 3, c.Vocab, c.Width)
	}
	add("model.norm", 1, 0.1, c.Width)
	residual := 1 / math.Sqrt(float64(2*c.Layers))
	for i := range c.Layers {
		layer := fmt.Sprintf("model.layers.%d.", i)
		add(layer+"input_layernorm", 1, 0.1, c.Width)
		add(layer+"post_attention_layernorm", 1, 0.1, c.Width)
		matrix(layer+"self_attn.q_proj", 2, c.Heads*c.HeadDim, c.Width)
		matrix(layer+"self_attn.k_proj", 1, c.KVHeads*c.HeadDim, c.Width)
		matrix(layer+"self_attn.v_proj", 1, c.KVHeads*c.HeadDim, c.Width)
		matrix(layer+"self_attn.o_proj", 2*residual, c.Width, c.Heads*c.HeadDim)
		matrix(layer+"mlp.gate_proj", 1, c.FFN, c.Width)
		matrix(layer+"mlp.up_proj", 1, c.FFN, c.Width)
		matrix(layer+"mlp.down_proj", 2*residual, c.Width, c.FFN)
	}
	return all
}

// bf16 rounds to the nearest bf16, ties to even.
func bf16(f float32) uint16 {
	b := math.Float32bits(f)
	return uint16((b + 0x7fff + b>>16&1) >> 16)
}

// writeFile writes some weights to a safetensors file.
func writeFile(path string, all map[string]array, names []string) error {
	header := make(map[string]any)
	var data []byte
	for _, name := range names {
		a, begin := all[name], len(data)
		for _, h := range a.bf16 {
			data = binary.LittleEndian.AppendUint16(data, h)
		}
		header[name] = map[string]any{"dtype": "BF16", "shape": a.shape, "data_offsets": []int{begin, len(data)}}
	}
	b, err := json.Marshal(header)
	if err != nil {
		return err
	}
	b = append(b, strings.Repeat(" ", -len(b)&7)...) // the numbers begin at a multiple of 8
	file := binary.LittleEndian.AppendUint64(nil, uint64(len(b)))
	return os.WriteFile(path, append(append(file, b...), data...), 0o666)
}

func writeJSON(path string, v any) error {
	b, err := json.MarshalIndent(v, "", "  ")
	if err != nil {
		return err
	}
	return os.WriteFile(path, append(b, '\n'), 0o666)
}
