package checkpoint

import (
	"errors"
	"fmt"
	"slices"
	"strings"
)

// checkWeights checks that each weight of the model is there, with its shape and a type that the
// model can use.
func (c *Checkpoint) checkWeights() error {
	for name := range c.tensors {
		if strings.HasPrefix(name, "model.") && strings.HasSuffix(name, ".bias") {
			return fmt.Errorf("tensor %s: biases are not supported", name)
		}
	}
	m := &c.config
	err := c.check("model.embed_tokens", m.Vocab, m.Width)
	for i := range m.Layers {
		layer := fmt.Sprintf("model.layers.%d.", i)
		q, kv := m.Heads*m.HeadDim, m.KVHeads*m.HeadDim
		err = errors.Join(err,
			c.check(layer+"input_layernorm", m.Width),
			c.check(layer+"self_attn.q_proj", q, m.Width),
			c.check(layer+"self_attn.k_proj", kv, m.Width),
			c.check(layer+"self_attn.v_proj", kv, m.Width),
			c.check(layer+"self_attn.o_proj", m.Width, q),
			c.check(layer+"post_attention_layernorm", m.Width),
			c.check(layer+"mlp.gate_proj", m.FFN, m.Width),
			c.check(layer+"mlp.up_proj", m.FFN, m.Width),
			c.check(layer+"mlp.down_proj", m.Width, m.FFN))
		if err != nil {
			return err // stop at the first bad layer: the other layers may have the same errors
		}
	}
	if err = errors.Join(err, c.check("model.norm", m.Width)); err == nil && !m.Tied {
		err = c.check("lm_head", m.Vocab, m.Width)
	}
	return err
}

// check checks the weight of a module. If the weight is quantized, check also checks the scale of
// the weight: a number for each row, or one number for all rows.
func (c *Checkpoint) check(module string, shape ...int) error {
	t, err := c.Tensor(module + ".weight")
	if err != nil {
		return err
	}
	if !slices.Equal(t.Shape, shape) {
		return fmt.Errorf("tensor %s has shape %v: the configuration asks for %v", t.Name, t.Shape, shape)
	}
	if t.DType == BF16 || t.DType == F16 || t.DType == F32 {
		return nil
	}
	if t.DType != F8E4M3 || !strings.HasSuffix(module, "_proj") {
		return fmt.Errorf("tensor %s has numbers of type %s: not supported", t.Name, t.DType)
	}
	scale, err := c.Tensor(module + ".weight_scale")
	if err != nil {
		return err
	}
	if scale.DType != F32 && scale.DType != BF16 {
		return fmt.Errorf("tensor %s has numbers of type %s: not supported", scale.Name, scale.DType)
	}
	if n := int(scale.Size) / scale.DType.Size(); n != 1 && n != shape[0] {
		return fmt.Errorf("tensor %s has %d numbers: must be one for each of %d rows, or one", scale.Name, n, shape[0])
	}
	return nil
}
