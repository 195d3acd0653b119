package checkpoint

import (
	"fmt"
	"math"
	"testing"
)

// TestInvFreq compares the frequencies with values that PyTorch computed in float32 with the
// formulas of the Python package transformers.
func TestInvFreq(t *testing.T) {
	for _, test := range []struct {
		name, fields string
		headDim      int
		attention    float64
		want         []float32
	}{
		{"default", `"rope_theta": 500000.0`, 64, 1, []float32{
			1, 0.66360128, 0.44036663, 0.29222783, 0.19392276, 0.12868738, 0.085397102,
			0.056669619, 0.037606031, 0.024955409, 0.016560441, 0.010989529, 0.0072926651,
			0.0048394212, 0.0032114461, 0.0021311196, 0.0014142134, 0.00093847385, 0.00062277244,
			0.00041327256, 0.00027424819, 0.00018199143, 0.00012076974, 8.0142949e-05,
			5.3182957e-05, 3.5292276e-05, 2.3419998e-05, 1.554154e-05, 1.0313385e-05,
			6.8439754e-06, 4.5416705e-06, 3.0138581e-06,
		}},
		{"linear", `"rope_scaling": {"type": "linear", "factor": 4.0}`, 16, 1, []float32{
			0.25, 0.079056941, 0.025, 0.0079056947, 0.0024999999, 0.00079056947, 0.00025000001,
			7.9056947e-05,
		}},
		{"llama3", `"rope_theta": 500000.0, "rope_scaling": {"rope_type": "llama3", "factor": 8.0, "low_freq_factor": 1.0,
			"high_freq_factor": 4.0, "original_max_position_embeddings": 8192}`, 64, 1, []float32{
			1, 0.66360128, 0.44036663, 0.29222783, 0.19392276, 0.12868738, 0.085397102,
			0.056669619, 0.037606031, 0.024955409, 0.016560441, 0.010989529, 0.0072926651,
			0.0048394212, 0.0032114461, 0.0013718937, 0.00052484602, 0.00017850779, 7.7846555e-05,
			5.165907e-05, 3.4281024e-05, 2.2748929e-05, 1.5096218e-05, 1.0017869e-05,
			6.6478697e-06, 4.4115345e-06, 2.9274997e-06, 1.9426925e-06, 1.2891732e-06,
			8.5549692e-07, 5.6770881e-07, 3.7673226e-07,
		}},
		{"yarn", `"rope_parameters": {"rope_type": "yarn", "rope_theta": 1e6, "factor": 4.0, "original_max_position_embeddings": 32768}`, 64, 1.138629436111989, []float32{
			1, 0.64938164, 0.42169651, 0.27384198, 0.17782794, 0.1154782, 0.074989416, 0.048696753,
			0.031622779, 0.020535251, 0.013335215, 0.0086596431, 0.0051547955, 0.0030431177,
			0.0017785303, 0.0010266177, 0.00058333337, 0.00032469083, 0.00017570687, 9.128065e-05,
			4.4456985e-05, 2.8869548e-05, 1.8747356e-05, 1.2174189e-05, 7.9056936e-06,
			5.1338125e-06, 3.3338035e-06, 2.1649109e-06, 1.4058534e-06, 9.1293532e-07,
			5.9284343e-07, 3.8498163e-07,
		}},
	} {
		t.Run(test.name, func(t *testing.T) {
			c, err := parseConfig(fmt.Appendf(nil, `{"architectures": ["LlamaForCausalLM"], "num_hidden_layers": 1,
				"hidden_size": 64, "num_attention_heads": 1, "intermediate_size": 8, "vocab_size": 8,
				"max_position_embeddings": 131072, "head_dim": %d, %s}`, test.headDim, test.fields), []byte("{}"))
			if err != nil {
				t.Fatal(err)
			}
			got := c.InvFreq()
			if len(got) != len(test.want) {
				t.Fatalf("%d frequencies, want %d", len(got), len(test.want))
			}
			for i := range got {
				if math.Abs(float64(got[i]-test.want[i])) > 1e-6*float64(test.want[i]) {
					t.Errorf("frequency %d is %v, want %v", i, got[i], test.want[i])
				}
			}
			if math.Abs(c.Rope.Attention-test.attention) > 1e-6 {
				t.Errorf("the attention factor is %v, want %v", c.Rope.Attention, test.attention)
			}
		})
	}
}
