package model

import (
	"context"
	"errors"

	"github.com/puregpu/puregpu/runtime/examples/llama/internal/kernels"
	"github.com/puregpu/puregpu/runtime/examples/llama/internal/persist"
	"github.com/puregpu/puregpu/runtime/gpu"
)

// openAlone sets s.alone, unless the options, the model or the device rule it out.
func (s *Shard) openAlone(ctx context.Context, d *kernels.Dims) error {
	if s.options.Invariant || s.options.Ranks > 1 && s.options.Peer == nil || d.FP8 == 1 || !persist.Supported(s.dev) {
		return nil
	}
	w := s.weights
	args := persist.Args{
		Embeddings: w.embed, LastNorm: w.norm, Head: w.head,
		Freq: s.state.Freq, Cache: s.state.Cache, Pages: s.state.Pages, Active: s.active,
		Token: s.state.Token, Position: s.state.Position, Logits: s.rows.Logits.Slice(0, int(d.Vocab)), Rank: s.options.Peer,
	}
	for _, y := range w.layers {
		args.Layers = append(args.Layers, persist.Layer{
			Norm1: y.attentionNorm, QKV: y.qkv.Data, Out: y.o.Data,
			Norm2: y.ffnNorm, GateUp: y.gateUp.Data, Down: y.down.Data,
		})
	}
	k, err := persist.New(ctx, s.dev, persist.Dims(*d), args, persist.Tuning{})
	lacksTwin := s.dev.Info().Arch == "sim" && s.options.Ranks == 1 && err != nil
	if errors.Is(err, gpu.ErrUnsupported) || lacksTwin {
		return nil
	}
	if err != nil {
		return err
	}
	s.alone = k.Op
	s.closers = append(s.closers, k)
	return nil
}
