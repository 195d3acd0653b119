package checkpoint_test

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/puregpu/puregpu/runtime/examples/llama/internal/checkpoint"
	"github.com/puregpu/puregpu/runtime/examples/llama/internal/checkpoint/checkpointtest"
)

// small is the configuration of a model for tests.
var small = checkpoint.Config{
	Layers: 2, Width: 16, Heads: 4, KVHeads: 2, HeadDim: 4, FFN: 24, Vocab: 40, MaxTokens: 128,
	Eps: 1e-5, Theta: 10000, Rope: checkpoint.Rope{Type: "default", Factor: 1, BetaFast: 32, BetaSlow: 1, Attention: 1},
	BOS: 1, EOS: []int{2, 3},
}

func TestOpen(t *testing.T) {
	for _, files := range []int{1, 3} {
		t.Run(fmt.Sprint(files), func(t *testing.T) {
			dir := t.TempDir()
			if err := checkpointtest.Write(dir, small, files, 1); err != nil {
				t.Fatal(err)
			}
			c, err := checkpoint.Open(dir)
			if err != nil {
				t.Fatal(err)
			}
			defer c.Close()
			if got := c.Config(); !reflect.DeepEqual(got, small) {
				t.Errorf("the configuration is %+v, want %+v", got, small)
			}
			w, err := c.Tensor("model.layers.1.mlp.down_proj.weight")
			if err != nil {
				t.Fatal(err)
			}
			if w.DType != checkpoint.BF16 || !slices.Equal(w.Shape, []int{16, 24}) || w.Size != 2*16*24 {
				t.Errorf("the tensor is %v %v of %d bytes", w.DType, w.Shape, w.Size)
			}
			b := make([]byte, w.Size)
			if n, err := w.ReadAt(b, 0); n != len(b) {
				t.Fatal(err)
			}
			if slices.Max(b) == 0 {
				t.Error("the weights are zero")
			}
			if _, err := w.ReadAt(b[:2], w.Size); err != io.EOF {
				t.Errorf("a read behind the tensor returns %v, want EOF", err)
			}
			if _, err := c.Tensor("model.layers.2.mlp.down_proj.weight"); err == nil {
				t.Error("a tensor that is not there was found")
			}
		})
	}
}

// TestGenerationConfig checks that the end tokens of generation_config.json are added to those of
// config.json.
func TestGenerationConfig(t *testing.T) {
	dir := t.TempDir()
	if err := checkpointtest.Write(dir, small, 1, 1); err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(dir, "generation_config.json"), []byte(`{"eos_token_id": [3, 7]}`))
	c, err := checkpoint.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if got, want := c.Config().EOS, []int{2, 3, 7}; !slices.Equal(got, want) {
		t.Errorf("end tokens are %v, want %v", got, want)
	}
}

// TestConfigRefused checks that Open refuses fields of config.json that are wrong or not supported,
// and says which.
func TestConfigRefused(t *testing.T) {
	for _, test := range []struct{ field, value, want string }{
		{"architectures", `["GPT2LMHeadModel"]`, "GPT2LMHeadModel"},
		{"architectures", `["Qwen2ForCausalLM"]`, "biases"},
		{"architectures", `null`, "architectures"},
		{"hidden_act", `"gelu"`, "hidden_act"},
		{"attention_bias", `true`, "attention_bias"},
		{"mlp_bias", `true`, "mlp_bias"},
		{"sliding_window", `64`, "sliding_window"},
		{"partial_rotary_factor", `0.5`, "partial_rotary_factor"},
		{"hidden_size", `0`, "hidden_size"},
		{"hidden_size", `-16`, "hidden_size"},
		{"hidden_size", `99999999999`, "hidden_size"},
		{"head_dim", `3`, "head_dim"},
		{"num_key_value_heads", `3`, "num_key_value_heads"},
		{"rms_norm_eps", `-1`, "rms_norm_eps"},
		{"eos_token_id", `[2, 40]`, "eos_token_id"},
		{"bos_token_id", `40`, "bos_token_id"},
		{"rope_theta", `0`, "rope_theta"},
		{"rope_scaling", `{"rope_type": "longrope", "factor": 2}`, "longrope"},
		{"rope_scaling", `{"rope_type": "linear", "factor": 0.5}`, "factor"},
		{"rope_scaling", `{"rope_type": "yarn", "factor": 4, "mscale": 1}`, "mscale"},
		{"rope_scaling", `{"rope_type": "yarn", "factor": 4}`, "original_max_position_embeddings"},
		{"rope_scaling", `{"rope_type": "llama3", "factor": 8, "original_max_position_embeddings": 64}`, "low_freq_factor"},
		{"quantization_config", `{"quant_method": "gptq"}`, "gptq"},
		{"quantization_config", `{"quant_method": "compressed-tensors", "config_groups": {"g": {"weights": {"num_bits": 4, "type": "int", "strategy": "group"}}}}`, "strategy"},
		{"vocab_size", `41`, "embed_tokens"},
		{"num_hidden_layers", `3`, "model.layers.2"},
	} {
		t.Run(test.field+test.value, func(t *testing.T) {
			dir := t.TempDir()
			if err := checkpointtest.Write(dir, small, 1, 1); err != nil {
				t.Fatal(err)
			}
			change(t, dir, test.field, test.value)
			c, err := checkpoint.Open(dir)
			if err == nil {
				c.Close()
				t.Fatal("opened")
			}
			if !strings.Contains(err.Error(), test.want) {
				t.Errorf("%v: does not name %s", err, test.want)
			}
		})
	}
}

// TestConfigAccepted checks that Open accepts fields of config.json that do not change the result,
// such as a window that no sequence exceeds.
func TestConfigAccepted(t *testing.T) {
	for _, test := range []struct{ field, value string }{
		{"sliding_window", `128`},
		{"sliding_window", `null`},
		{"architectures", `["MistralForCausalLM"]`},
		{"rope_scaling", `{"type": "dynamic", "factor": 2.0}`},
		{"rope_parameters", `{"rope_type": "default", "rope_theta": 10000.0}`},
		{"eos_token_id", `null`},
	} {
		t.Run(test.field+test.value, func(t *testing.T) {
			dir := t.TempDir()
			if err := checkpointtest.Write(dir, small, 1, 1); err != nil {
				t.Fatal(err)
			}
			change(t, dir, test.field, test.value)
			c, err := checkpoint.Open(dir)
			if err != nil {
				t.Fatal(err)
			}
			c.Close()
		})
	}
}

// change sets a field of config.json.
func change(t *testing.T, dir, field, value string) {
	path := filepath.Join(dir, "config.json")
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	fields := make(map[string]json.RawMessage)
	if err := json.Unmarshal(b, &fields); err != nil {
		t.Fatal(err)
	}
	fields[field] = json.RawMessage(value)
	if b, err = json.Marshal(fields); err != nil {
		t.Fatal(err)
	}
	write(t, path, b)
}

// TestDamaged checks that Open refuses a damaged safetensors file, and says what is wrong.
func TestDamaged(t *testing.T) {
	const two = `{"a":{"dtype":"BF16","shape":[2],"data_offsets":[0,4]},"b":{"dtype":"I8","shape":[],"data_offsets":[4,5]}}`
	replace := func(old, new string) []byte { return file(strings.Replace(two, old, new, 1), 5) }
	for name, test := range map[string]struct {
		data []byte
		want string
	}{
		"empty":         {nil, "truncated"},
		"no header":     {make([]byte, 7), "truncated"},
		"long header":   {binary.LittleEndian.AppendUint64(nil, 1<<63), "truncated"},
		"short":         {file(two, 4), "data_offsets"},
		"long":          {file(two, 6), "truncated"},
		"not JSON":      {file("[]", 0), "JSON"},
		"cut JSON":      {file(two[:len(two)-1], 5), "EOF"},
		"trailing":      {file(two+"x", 5), "follow"},
		"twice":         {replace(`"b"`, `"a"`), "twice"},
		"overlap":       {replace("[4,5]", "[3,4]"), "begins at 3"},
		"gap":           {file(strings.Replace(two, "[4,5]", "[5,6]", 1), 6), "begins at 5"},
		"negative":      {replace("[0,4]", "[-1,3]"), "data_offsets"},
		"reversed":      {replace("[0,4]", "[4,0]"), "data_offsets"},
		"one offset":    {replace("[0,4]", "[4]"), "data_offsets"},
		"size":          {replace(`"shape":[2]`, `"shape":[3]`), "has 6"},
		"overflow":      {replace(`"shape":[2]`, `"shape":[2147483647,2147483647,2147483647]`), "not possible"},
		"minus":         {replace(`"shape":[2]`, `"shape":[-2]`), "not possible"},
		"unknown dtype": {replace("BF16", "BF17"), "BF17"},
		"metadata":      {replace(`"a"`, `"__metadata__"`), "__metadata__"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			if err := checkpointtest.Write(dir, small, 1, 1); err != nil {
				t.Fatal(err)
			}
			write(t, filepath.Join(dir, "model.safetensors"), test.data)
			c, err := checkpoint.Open(dir)
			if err == nil {
				c.Close()
				t.Fatal("opened")
			}
			if !strings.Contains(err.Error(), test.want) {
				t.Errorf("%v: does not say %q", err, test.want)
			}
		})
	}
}

// TestIndex checks that Open refuses an index that is not JSON, or that names files outside the
// folder, files that are missing, or tensors that the files do not have.
func TestIndex(t *testing.T) {
	for name, test := range map[string]struct{ old, new, want string }{
		"outside":  {"model-00001-of-00002.safetensors", "../model-00001-of-00002.safetensors", "not the name"},
		"missing":  {"lm_head.weight", "lm_tail.weight", "lm_tail.weight is missing"},
		"no file":  {"model-00001-of-00002", "model-00009-of-00002", "model-00009"},
		"not JSON": {"{", "", "index.json"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			if err := checkpointtest.Write(dir, small, 2, 1); err != nil {
				t.Fatal(err)
			}
			path := filepath.Join(dir, "model.safetensors.index.json")
			b, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			write(t, path, bytes.Replace(b, []byte(test.old), []byte(test.new), 1))
			c, err := checkpoint.Open(dir)
			if err == nil {
				c.Close()
				t.Fatal("opened")
			}
			if !strings.Contains(err.Error(), test.want) {
				t.Errorf("%v: does not say %q", err, test.want)
			}
		})
	}
}

// TestScales checks that Scales reads one number for each row or one for all, as F32 or BF16.
func TestScales(t *testing.T) {
	const module = "model.layers.0.mlp.up_proj"
	for _, test := range []struct {
		dtype string
		shape []int
		data  []byte
		want  func(row int) float32
	}{
		{"F32", []int{24, 1}, repeat(24, func(i int) []byte { return []byte{0, 0, byte(i), 0x3f} }), func(i int) float32 {
			return []float32{0.5, 0.50390625, 0.5078125}[i]
		}},
		{"BF16", []int{24}, repeat(24, func(i int) []byte { return []byte{byte(i), 0x3f} }), func(i int) float32 {
			return []float32{0.5, 0.50390625, 0.5078125}[i]
		}},
		{"BF16", []int{1}, []byte{0x40, 0xc0}, func(int) float32 { return -3 }},
		{"F32", []int{}, []byte{0, 0, 0x80, 0x3e}, func(int) float32 { return 0.25 }},
	} {
		t.Run(fmt.Sprint(test.dtype, test.shape), func(t *testing.T) {
			dir := t.TempDir()
			if err := checkpointtest.Write(dir, small, 1, 1); err != nil {
				t.Fatal(err)
			}
			quantize(t, dir, module, test.dtype, test.shape, test.data)
			c, err := checkpoint.Open(dir)
			if err != nil {
				t.Fatal(err)
			}
			defer c.Close()
			scales, err := c.Scales(module)
			if err != nil {
				t.Fatal(err)
			}
			if len(scales) != 24 {
				t.Fatalf("%d scales, want 24", len(scales))
			}
			for i := range 3 {
				if scales[i] != test.want(i) {
					t.Errorf("scale %d is %v, want %v", i, scales[i], test.want(i))
				}
			}
		})
	}
}

func repeat(n int, f func(i int) []byte) (b []byte) {
	for i := range n {
		b = append(b, f(i)...)
	}
	return b
}

// quantize turns a weight into F8_E4M3, whose numbers are the first half of the weight's bytes, and
// adds a tensor of scales with the given type, shape and data.
func quantize(t *testing.T, dir, module, dtype string, shape []int, data []byte) {
	path := filepath.Join(dir, "model.safetensors")
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	n := binary.LittleEndian.Uint64(b)
	type entry struct {
		DType   string `json:"dtype"`
		Shape   []int  `json:"shape"`
		Offsets [2]int `json:"data_offsets"`
	}
	header := make(map[string]entry)
	if err := json.Unmarshal(b[8:8+n], &header); err != nil {
		t.Fatal(err)
	}
	numbers, out := b[8+n:], []byte{}
	w := header[module+".weight"]
	w.DType, w.Offsets[1] = "F8_E4M3", w.Offsets[0]+(w.Offsets[1]-w.Offsets[0])/2
	header[module+".weight"] = w
	header[module+".weight_scale"] = entry{dtype, shape, [2]int{-len(data), 0}}
	for _, name := range slices.Sorted(maps.Keys(header)) {
		e, begin := header[name], len(out)
		if e.Offsets[0] < 0 {
			out = append(out, data...)
		} else {
			out = append(out, numbers[e.Offsets[0]:e.Offsets[1]]...)
		}
		e.Offsets = [2]int{begin, len(out)}
		header[name] = e
	}
	text, err := json.Marshal(header)
	if err != nil {
		t.Fatal(err)
	}
	write(t, path, append(file(string(text), 0), out...))
}

// file returns a safetensors file with a header and n bytes of numbers.
func file(header string, n int) []byte {
	b := binary.LittleEndian.AppendUint64(nil, uint64(len(header)))
	return append(append(b, header...), make([]byte, n)...)
}

func write(t *testing.T, path string, b []byte) {
	if err := os.WriteFile(path, b, 0o666); err != nil {
		t.Fatal(err)
	}
}
