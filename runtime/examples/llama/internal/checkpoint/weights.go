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
			return err // of the first bad layer only: the others may be as bad
		}
	}
	if err = errors.Join(err, c.check("model.norm", m.Width)); err == nil && !m.Tied {
		err = c.check("lm_head", m.Vocab, m.Width)
	}
	return err
}

// check checks the weight of a module, and its scale if it is quantized: a number for each row, or
// one for all.
func (c *Checkpoint) check(module string, shape ...int) error {
	t, err := c.Tensor(module + ".weight")
	if err != nil {
		return err
	}
	if !slices.Equal(t.Shape, shape) {
		return fmt.Errorf("tensor %s has shape %v: the configuration asks for %v", t.Name, t.Shape, shape)
	}
	switch t.DType {
	case BF16, F16, F32:
		return nil
	case F8E4M3:
		if len(shape) == 2 && strings.HasSuffix(module, "_proj") {
			break
		}
		fallthrough
	default:
		return fmt.Errorf("tensor %s has numbers of type %s: not supported", t.Name, t.DType)
	}
	scale, err := c.Tensor(module + ".weight_scale")
	if err != nil {
		return err
	}
	numbers := 1
	for _, n := range scale.Shape {
		numbers *= n
	}
	if numbers != 1 && !slices.Equal(scale.Shape, shape[:1]) && !slices.Equal(scale.Shape, []int{shape[0], 1}) {
		return fmt.Errorf("tensor %s has shape %v: must be a number for each of %d rows, or one", scale.Name, scale.Shape, shape[0])
	}
	if scale.DType != F32 && scale.DType != BF16 && scale.DType != F16 {
		return fmt.Errorf("tensor %s has numbers of type %s: not supported", scale.Name, scale.DType)
	}
	return nil
}
