package checkpoint

import (
	"bytes"
	"testing"
)

// FuzzSafetensors checks that readHeader returns an error, or tensors that lie inside the file.
func FuzzSafetensors(f *testing.F) {
	const two = `{"a":{"dtype":"BF16","shape":[2],"data_offsets":[0,4]},"b":{"dtype":"I8","shape":[],"data_offsets":[4,5]}}`
	f.Add(append(append([]byte{byte(len(two)), 0, 0, 0, 0, 0, 0, 0}, two...), 1, 2, 3, 4, 5))
	f.Add([]byte("\x02\x00\x00\x00\x00\x00\x00\x00{}"))
	f.Fuzz(func(t *testing.T, b []byte) {
		tensors, err := readHeader(bytes.NewReader(b), int64(len(b)))
		if err != nil {
			return
		}
		var sum int64
		for _, tensor := range tensors {
			data := make([]byte, tensor.Size)
			if n, err := tensor.ReadAt(data, 0); n != len(data) {
				t.Errorf("tensor %s cannot be read: %v", tensor.Name, err)
			}
			sum += tensor.Size
		}
		if sum > int64(len(b)) {
			t.Errorf("tensors of %d bytes in a file of %d", sum, len(b))
		}
	})
}

// FuzzConfig checks that parseConfig returns an error, or a configuration whose frequencies are
// from 0 to 1.
func FuzzConfig(f *testing.F) {
	f.Add([]byte(`{"architectures":["LlamaForCausalLM"],"num_hidden_layers":1,"hidden_size":8,"num_attention_heads":2,
		"intermediate_size":8,"vocab_size":8,"max_position_embeddings":64,"eos_token_id":[1,2],
		"rope_scaling":{"rope_type":"llama3","factor":8,"original_max_position_embeddings":16,"low_freq_factor":1,"high_freq_factor":4}}`))
	f.Add([]byte(`{"architectures":["MistralForCausalLM"],"num_hidden_layers":1,"hidden_size":8,"num_attention_heads":2,
		"intermediate_size":8,"vocab_size":8,"max_position_embeddings":64,"eos_token_id":1,
		"rope_parameters":{"rope_type":"yarn","factor":4,"rope_theta":1e6,"original_max_position_embeddings":16}}`))
	f.Fuzz(func(t *testing.T, b []byte) {
		c, err := parseConfig(b, []byte("{}"))
		if err != nil {
			return
		}
		c.HeadDim = min(c.HeadDim, 256) // larger heads would only take more time
		for i, freq := range c.InvFreq() {
			if !(freq >= 0 && freq <= 1) {
				t.Errorf("frequency %d is %v", i, freq)
			}
		}
	})
}
