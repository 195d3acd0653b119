package model

import (
	"context"
	"errors"
	"math"
	"time"

	"github.com/puregpu/puregpu/runtime/examples/llama/internal/checkpoint"
	"github.com/puregpu/puregpu/runtime/gpu"
)

// Logits returns one row of the last plan's logits. Row r belongs to Decode[r]. If the plan decoded
// nothing, row 0 belongs to the prompt's last chunk.
func (s *Shard) Logits(row int) ([]float32, error) {
	out := make([]float32, s.info.Vocab)
	s.stream.Do(s.rows.Logits.Slice(row*len(out), (row+1)*len(out)).Download(out))
	return out, s.stream.Wait(context.Background())
}

// Force sets the token that a slot takes as its next input.
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

// StepBytes returns about how many bytes a decode step reads: the weights of all layers and of the
// head, and the keys and values of the given number of tokens.
func (s *Shard) StepBytes(tokens int) uint64 {
	n := s.weights.mem.Size()
	if s.weights.head != s.weights.embed {
		n -= s.weights.embed.Size
	}
	d := s.kernels.Dims()
	return n + uint64(d.PageBytes()/PageTokens*tokens)
}

// WithoutAlone makes a sequence that decodes alone use package kernels instead of package persist.
func (s *Shard) WithoutAlone() { s.alone = nil }

// A PartTime is how long a part of a chunk's recording takes, in all layers.
type PartTime struct {
	Name string
	Took time.Duration
}

// ChunkTimes measures the recording of a whole chunk at the end of a prompt, and each kind of its
// operations. The shard must have no peers, and weights of 16 bits.
func (s *Shard) ChunkTimes() (list []PartTime, err error) {
	n, b, d := s.info.ChunkTokens, s.prompt, s.kernels.Dims()
	chunk := s.chunk.Slice(0, 3)
	all, err := s.recording(n, true, true)
	if err != nil {
		return nil, err
	}
	took, err := s.recordingTime(all)
	list = append(list, PartTime{"all", took})
	launch, wait := time.Duration(math.MaxInt64), time.Duration(math.MaxInt64)
	for range 12 {
		start := time.Now()
		s.stream.Do(gpu.Execute(all))
		launch = min(launch, time.Since(start))
		if err := s.stream.Wait(context.Background()); err != nil {
			return nil, err
		}
		wait = min(wait, time.Since(start))
	}
	list = append(list, PartTime{"host: until it is launched", launch}, PartTime{"host: until it has ended", wait})
	for _, part := range []struct {
		name string
		add  func(r *recorder, i int, y *layer)
	}{
		{"norm", func(r *recorder, i int, y *layer) { r.add(s.kernels.Norm(n, y.attentionNorm, b)...) }},
		{"product, q k v", func(r *recorder, i int, y *layer) { r.product(s.wide, b.H, &y.qkv) }},
		{"rope", func(r *recorder, i int, y *layer) { r.add(s.kernels.RopeChunk(n, chunk, &s.state, i, s.wide, b)...) }},
		{"attend", func(r *recorder, i int, y *layer) { r.add(s.kernels.AttendChunk(n, chunk, &s.state, i, b)...) }},
		{"product, out", func(r *recorder, i int, y *layer) { r.product32(b.X, b.A, &y.o, 1) }},
		{"product, gate up", func(r *recorder, i int, y *layer) { r.product(s.wide, b.H, &y.gateUp) }},
		{"swiglu", func(r *recorder, i int, y *layer) { r.add(s.kernels.SwiGLU(n, s.wide, b)...) }},
		{"product, down", func(r *recorder, i int, y *layer) { r.product32(b.X, b.G, &y.down, 1) }},
	} {
		c, err := s.dev.NewCommandBuffer(gpu.CommandOptions{InOrder: true})
		if err != nil {
			return nil, err
		}
		r := recorder{Shard: s, rows: n, commands: c}
		for i := range int(d.Layers) {
			part.add(&r, i, &s.weights.layers[i])
		}
		if err := errors.Join(r.err, c.End()); err != nil {
			return nil, errors.Join(err, c.Close())
		}
		took, err := s.recordingTime(c)
		if err := errors.Join(err, c.Close()); err != nil {
			return nil, err
		}
		list = append(list, PartTime{part.name, took})
	}
	return list, err
}

// StepTime returns the time of a decode step of n rows, without downloads of the tokens.
func (s *Shard) StepTime(n int) (time.Duration, error) {
	c, err := s.recording(n, false, false)
	if err != nil {
		return 0, err
	}
	const steps = 64
	start := time.Now()
	for range steps {
		s.stream.Do(gpu.Execute(c))
	}
	err = s.stream.Wait(context.Background())
	return time.Since(start) / steps, err
}

// recordingTime returns the least duration of several executions.
func (s *Shard) recordingTime(c *gpu.CommandBuffer) (least time.Duration, err error) {
	timing, err := s.dev.NewTiming()
	if err != nil {
		return 0, err
	}
	defer timing.Close()
	for i := range 12 {
		s.stream.Do(gpu.Execute(c).Timed(timing))
		if err := s.stream.Wait(context.Background()); err != nil {
			return 0, err
		}
		took, err := timing.Duration()
		if err != nil {
			return 0, err
		}
		if i == 0 || took < least {
			least = took
		}
	}
	return least, nil
}
