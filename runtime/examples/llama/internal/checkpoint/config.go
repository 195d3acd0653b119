package checkpoint

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
)

// A Config is the architecture of a Llama-family model, as config.json describes it.
type Config struct {
	Layers    int // decoder layers
	Width     int // length of the residual stream
	Heads     int // query heads
	KVHeads   int // key and value heads; divides Heads
	HeadDim   int // length of a head; even
	FFN       int // inner length of the feed-forward network
	Vocab     int // rows of the embedding
	MaxTokens int // longest sequence that the positions allow

	Eps   float64 // epsilon of the RMS norms
	Theta float64 // base of the rotary frequencies
	Rope  Rope    // scaling of the rotary frequencies
	Tied  bool    // the output matrix is the embedding

	BOS int   // token that begins a sequence; -1: none
	EOS []int // tokens that end a sequence
}

// configFile has the fields of config.json that change the result of a supported model. A pointer
// is nil if the file has no such field, or null.
type configFile struct {
	Architectures []string        `json:"architectures"`
	Layers        int             `json:"num_hidden_layers"`
	Width         int             `json:"hidden_size"`
	Heads         int             `json:"num_attention_heads"`
	KVHeads       *int            `json:"num_key_value_heads"`
	HeadDim       *int            `json:"head_dim"`
	FFN           int             `json:"intermediate_size"`
	Vocab         int             `json:"vocab_size"`
	MaxTokens     int             `json:"max_position_embeddings"`
	Eps           *float64        `json:"rms_norm_eps"`
	Theta         *float64        `json:"rope_theta"`
	Scaling       json.RawMessage `json:"rope_scaling"`
	Parameters    json.RawMessage `json:"rope_parameters"` // since version 5 of transformers
	Tied          bool            `json:"tie_word_embeddings"`
	BOS           *int            `json:"bos_token_id"`
	EOS           tokenList       `json:"eos_token_id"`

	Activation    string        `json:"hidden_act"`
	AttentionBias bool          `json:"attention_bias"`
	MLPBias       bool          `json:"mlp_bias"`
	Window        *int          `json:"sliding_window"`
	Partial       *float64      `json:"partial_rotary_factor"`
	Quantization  *quantization `json:"quantization_config"`
}

// quantization is the part of quantization_config that says how the weights are stored.
type quantization struct {
	Method string `json:"quant_method"`
	Groups map[string]struct {
		Weights struct {
			Bits     int    `json:"num_bits"`
			Type     string `json:"type"`
			Strategy string `json:"strategy"`
		} `json:"weights"`
	} `json:"config_groups"`
}

// A tokenList is one token or a list of tokens in JSON.
type tokenList []int

func (l *tokenList) UnmarshalJSON(b []byte) error {
	if len(b) > 0 && b[0] == '[' {
		return json.Unmarshal(b, (*[]int)(l))
	}
	var token *int
	if err := json.Unmarshal(b, &token); err != nil {
		return err
	}
	if *l = nil; token != nil {
		*l = tokenList{*token}
	}
	return nil
}

// readConfig reads config.json of a folder. If there is a generation_config.json, readConfig adds
// that file's tokens for the end of a sequence, because chat models list some of them only there.
func readConfig(dir string) (Config, error) {
	b, err := os.ReadFile(filepath.Join(dir, "config.json"))
	if err != nil {
		return Config{}, err
	}
	generation, err := os.ReadFile(filepath.Join(dir, "generation_config.json"))
	if errors.Is(err, fs.ErrNotExist) {
		generation = []byte("{}")
	} else if err != nil {
		return Config{}, err
	}
	c, err := parseConfig(b, generation)
	if err != nil {
		return Config{}, fmt.Errorf("config.json: %w", err)
	}
	return c, nil
}

// parseConfig reads config.json and generation_config.json. It refuses a model that this program
// would compute wrongly.
func parseConfig(b, generation []byte) (Config, error) {
	f := configFile{Activation: "silu"}
	if err := json.Unmarshal(b, &f); err != nil {
		return Config{}, err
	}
	var g struct {
		EOS tokenList `json:"eos_token_id"`
	}
	if err := json.Unmarshal(generation, &g); err != nil {
		return Config{}, fmt.Errorf("generation_config.json: %w", err)
	}
	if err := f.supported(); err != nil {
		return Config{}, err
	}
	c := Config{
		Layers: f.Layers, Width: f.Width, Heads: f.Heads, KVHeads: value(f.KVHeads, f.Heads), FFN: f.FFN,
		Vocab: f.Vocab, MaxTokens: f.MaxTokens, Eps: value(f.Eps, 1e-6), Theta: value(f.Theta, 10000),
		Tied: f.Tied, BOS: value(f.BOS, -1), EOS: f.EOS,
	}
	for _, token := range g.EOS {
		if !slices.Contains(c.EOS, token) {
			c.EOS = append(c.EOS, token)
		}
	}
	const large = 1 << 24 // far above any model, and the product of two such numbers does not overflow
	for _, d := range []struct {
		name string
		n    int
	}{
		{"num_hidden_layers", c.Layers}, {"hidden_size", c.Width}, {"num_attention_heads", c.Heads},
		{"num_key_value_heads", c.KVHeads}, {"intermediate_size", c.FFN}, {"vocab_size", c.Vocab},
		{"max_position_embeddings", c.MaxTokens},
	} {
		if d.n < 1 || d.n > large {
			return Config{}, fmt.Errorf("%s is %d: must be from 1 to %d", d.name, d.n, large)
		}
	}
	if f.HeadDim == nil && c.Width%c.Heads != 0 {
		return Config{}, fmt.Errorf("hidden_size is %d: not a multiple of num_attention_heads %d", c.Width, c.Heads)
	}
	c.HeadDim = value(f.HeadDim, c.Width/c.Heads)
	switch {
	case c.HeadDim < 2 || c.HeadDim > large || c.HeadDim%2 != 0:
		return Config{}, fmt.Errorf("head_dim is %d: must be even and positive", c.HeadDim)
	case c.Heads%c.KVHeads != 0:
		return Config{}, fmt.Errorf("num_attention_heads is %d: not a multiple of num_key_value_heads %d", c.Heads, c.KVHeads)
	case !(c.Eps >= 0 && c.Eps < 1):
		return Config{}, fmt.Errorf("rms_norm_eps is %v: must be small and not negative", c.Eps)
	case f.Window != nil && *f.Window < c.MaxTokens:
		return Config{}, fmt.Errorf("sliding_window is %d, below max_position_embeddings %d: sliding windows are not supported", *f.Window, c.MaxTokens)
	}
	for _, token := range append([]int{max(c.BOS, 0)}, c.EOS...) {
		if token < 0 || token >= c.Vocab {
			return Config{}, fmt.Errorf("bos_token_id or eos_token_id: %d is not a token: the vocabulary has %d", token, c.Vocab)
		}
	}
	if err := c.readRope(f.Scaling, f.Parameters); err != nil {
		return Config{}, err
	}
	return c, nil
}

// supported returns an error that names a field whose value this program does not support.
func (f *configFile) supported() error {
	if len(f.Architectures) != 1 {
		return fmt.Errorf("architectures is %q: must name one model", f.Architectures)
	}
	switch f.Architectures[0] {
	case "LlamaForCausalLM", "MistralForCausalLM":
	case "Qwen2ForCausalLM":
		return errors.New("architectures is Qwen2ForCausalLM: its biases of queries, keys and values are not supported")
	default:
		return fmt.Errorf("architectures is %s: only LlamaForCausalLM and MistralForCausalLM are supported", f.Architectures[0])
	}
	switch {
	case f.Activation != "silu":
		return fmt.Errorf("hidden_act is %q: only silu is supported", f.Activation)
	case f.AttentionBias:
		return errors.New("attention_bias is true: biases are not supported")
	case f.MLPBias:
		return errors.New("mlp_bias is true: biases are not supported")
	case f.Partial != nil && *f.Partial != 1:
		return fmt.Errorf("partial_rotary_factor is %v: only 1 is supported", *f.Partial)
	case f.Quantization == nil:
		return nil
	case f.Quantization.Method != "compressed-tensors" || len(f.Quantization.Groups) == 0:
		return fmt.Errorf("quantization_config: quant_method is %q: only compressed-tensors with config_groups is supported", f.Quantization.Method)
	}
	for name, g := range f.Quantization.Groups {
		if w := g.Weights; w.Bits != 8 || w.Type != "float" || w.Strategy != "channel" && w.Strategy != "tensor" {
			return fmt.Errorf("quantization_config: weights of %s have %d bits, type %q and strategy %q: only 8 bits, float, and channel or tensor are supported",
				name, w.Bits, w.Type, w.Strategy)
		}
	}
	return nil
}

// value returns *p, or the default if p is nil.
func value[T any](p *T, def T) T {
	if p == nil {
		return def
	}
	return *p
}
