package checkpoint

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
)

// A Rope is the scaling of the rotary frequencies for sequences longer than those of the model's
// first training.
type Rope struct {
	Type     string  // "default", "linear", "dynamic", "llama3" or "yarn"
	Factor   float64 // how much longer; 1 or more
	Original int     // longest sequence of the first training; 0 if unknown, but llama3 and yarn need it

	// llama3: a frequency with fewer than LowFreq turns in Original tokens is scaled, and one with
	// more than HighFreq turns is kept. A frequency between them is scaled in part.
	LowFreq, HighFreq float64

	// yarn: a frequency with more than BetaFast turns in Original tokens is kept, and one with
	// fewer than BetaSlow turns is scaled. A frequency between them is scaled in part.
	BetaFast, BetaSlow float64

	Attention float64 // factor of cosines and sines; 1 except for yarn
}

// ropeFile is rope_scaling or rope_parameters of config.json.
type ropeFile struct {
	Type      string   `json:"rope_type"`
	OldType   string   `json:"type"`
	Theta     *float64 `json:"rope_theta"`
	Partial   *float64 `json:"partial_rotary_factor"`
	Factor    *float64 `json:"factor"`
	Original  *int     `json:"original_max_position_embeddings"`
	LowFreq   *float64 `json:"low_freq_factor"`
	HighFreq  *float64 `json:"high_freq_factor"`
	BetaFast  *float64 `json:"beta_fast"`
	BetaSlow  *float64 `json:"beta_slow"`
	Attention *float64 `json:"attention_factor"`
	Truncate  *bool    `json:"truncate"`
}

// readRope fills in the base and the scaling of the frequencies. Version 5 of transformers writes
// both to rope_parameters. Earlier versions write rope_theta and rope_scaling.
func (c *Config) readRope(scaling, parameters json.RawMessage) error {
	name, b := "rope_scaling", scaling
	if isSet(parameters) {
		name, b = "rope_parameters", parameters
	}
	f := ropeFile{Type: "default"}
	if isSet(b) {
		d := json.NewDecoder(bytes.NewReader(b))
		d.DisallowUnknownFields() // an unknown field may change the frequencies
		f.Type = ""
		if err := d.Decode(&f); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		if f.Type == "" {
			f.Type = f.OldType
		}
	}
	c.Theta = value(f.Theta, c.Theta)
	r := Rope{
		Type: f.Type, Factor: value(f.Factor, 1), Original: value(f.Original, 0),
		LowFreq: value(f.LowFreq, 0), HighFreq: value(f.HighFreq, 0),
		BetaFast: value(f.BetaFast, 32), BetaSlow: value(f.BetaSlow, 1), Attention: 1,
	}
	switch r.Type {
	case "default", "linear":
	case "dynamic":
		// Dynamic scaling changes the frequencies only of sequences longer than Original. The limit
		// below excludes such sequences.
		if r.Original > 0 {
			c.MaxTokens = min(c.MaxTokens, r.Original)
		}
	case "llama3":
		if !(r.LowFreq > 0 && r.HighFreq > r.LowFreq) {
			return fmt.Errorf("%s: low_freq_factor is %v and high_freq_factor %v: must be positive and increase", name, r.LowFreq, r.HighFreq)
		}
	case "yarn":
		r.Attention = value(f.Attention, 0.1*math.Log(r.Factor)+1)
		if !(r.BetaSlow > 0 && r.BetaFast > r.BetaSlow && r.Attention > 0) {
			return fmt.Errorf("%s: beta_slow is %v, beta_fast %v and attention_factor %v: must be positive, and the betas increase", name, r.BetaSlow, r.BetaFast, r.Attention)
		}
	default:
		return fmt.Errorf("%s: rope_type is %q: only default, linear, dynamic, llama3 and yarn are supported", name, r.Type)
	}
	switch {
	case !(c.Theta > 1 && c.Theta < 1e15):
		return fmt.Errorf("rope_theta is %v: must be above 1", c.Theta)
	case !(r.Factor >= 1 && r.Factor < 1e6):
		return fmt.Errorf("%s: factor is %v: must be 1 or more", name, r.Factor)
	case (r.Type == "llama3" || r.Type == "yarn") && r.Original < 1:
		return fmt.Errorf("%s: original_max_position_embeddings is %d: must be positive", name, r.Original)
	case f.Partial != nil && *f.Partial != 1:
		return fmt.Errorf("%s: partial_rotary_factor is %v: only 1 is supported", name, *f.Partial)
	case f.Truncate != nil && !*f.Truncate:
		return fmt.Errorf("%s: truncate is false: only true is supported", name)
	}
	c.Rope = r
	return nil
}

// isSet reports whether a field is in the file and not null.
func isSet(b json.RawMessage) bool { return len(b) > 0 && string(b) != "null" }

// InvFreq returns the angle by which each pair of numbers of a head turns from one position to the
// next, HeadDim/2 numbers, as the model's reference implementation computes them. The caller
// multiplies cosines and sines of the angles by Rope.Attention.
func (c *Config) InvFreq() []float32 {
	r, freq := &c.Rope, make([]float32, c.HeadDim/2)
	low := max(math.Floor(c.yarnIndex(r.BetaFast)), 0)
	high := min(math.Ceil(c.yarnIndex(r.BetaSlow)), float64(c.HeadDim-1))
	if low == high {
		high += 0.001
	}
	for i := range freq {
		exponent := float32(2*i) / float32(c.HeadDim)
		f := float64(float32(1 / math.Pow(c.Theta, float64(exponent))))
		switch r.Type {
		case "linear":
			f /= r.Factor
		case "llama3":
			turns := float64(r.Original) * f / (2 * math.Pi)
			keep := min(max((turns-r.LowFreq)/(r.HighFreq-r.LowFreq), 0), 1)
			f = (1-keep)*f/r.Factor + keep*f
		case "yarn":
			scale := min(max((float64(i)-low)/(high-low), 0), 1)
			f = scale*f/r.Factor + (1-scale)*f
		}
		freq[i] = float32(f)
	}
	return freq
}

// yarnIndex returns the index, not rounded, of the frequency that makes the given number of turns
// in Original tokens.
func (c *Config) yarnIndex(turns float64) float64 {
	return float64(c.HeadDim) * math.Log(float64(c.Rope.Original)/(turns*2*math.Pi)) / (2 * math.Log(c.Theta))
}
