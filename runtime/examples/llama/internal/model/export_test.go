package model

import (
	"context"
	"errors"

	"github.com/puregpu/puregpu/runtime/examples/llama/internal/checkpoint"
	"github.com/puregpu/puregpu/runtime/gpu"
)

// Logits returns the logits of a row of the last plan. They are row 0 after the last chunk of a
// prompt, if nothing decoded.
func (s *Shard) Logits(row int) ([]float32, error) {
	out := make([]float32, s.info.Vocab)
	s.stream.Do(s.rows.Logits.Slice(row*len(out), (row+1)*len(out)).Download(out))
	return out, s.stream.Wait(context.Background())
}

// Force sets the token that a slot decodes next.
func (s *Shard) Force(slot int, token int32) error {
	return s.stream.Do(s.state.Token.Slice(slot, slot+1).UploadCopy([]int32{token}))
}

// Upload uploads a model's weights, frees them, and returns their size.
func Upload(ctx context.Context, dev *gpu.Device, ck *checkpoint.Checkpoint) (uint64, error) {
	w, err := loadWeights(dev, ck, 0, 1)
	if err != nil {
		return 0, err
	}
	return w.mem.Size(), errors.Join(w.wait(ctx), w.mem.Close())
}

// StepBytes returns how many bytes a decode step reads: all matrices once, and the keys and values
// of the given number of tokens.
func (s *Shard) StepBytes(tokens int) uint64 {
	n := s.weights.mem.Size()
	if s.weights.head != s.weights.embed {
		n -= s.weights.embed.Size
	}
	d := s.kernels.Dims()
	return n + uint64(d.PageBytes()/PageTokens*tokens)
}

// WithoutAlone makes a sequence that decodes alone use the kernels of several.
func (s *Shard) WithoutAlone() { s.alone = nil }
