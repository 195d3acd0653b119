package model

import (
	"context"
	"fmt"
	"slices"

	"github.com/puregpu/puregpu/runtime/examples/llama/internal/kernels"
	"github.com/puregpu/puregpu/runtime/gpu"
)

// A slot is what the host knows about a sequence after the plans so far.
type slot struct {
	room   int  // tokens for which the sequence has pages
	next   int  // position of the next token
	primed bool // the whole prompt has been queued
}

// Run queues a plan: see [Runner].
func (s *Shard) Run(p Plan, tokens []int32) (func(context.Context) error, error) {
	if err := p.check(s.info, len(tokens)); err != nil {
		return nil, err
	}
	if err := s.follow(p); err != nil {
		return nil, err
	}
	if err := s.queue(p, tokens); err != nil {
		return nil, fmt.Errorf("model: %w", err)
	}
	point := s.stream.Point()
	return func(ctx context.Context) error {
		if err := point.Semaphore.Wait(ctx, point.Value); err != nil || s.options.Peer == nil {
			return err
		}
		return s.options.Peer.Err() // a sum that gave up waiting has written wrong numbers
	}, nil
}

// prepare makes the recordings that a plan needs.
func (s *Shard) prepare(p Plan) error {
	if c := p.Chunk; c != nil {
		if _, err := s.recording(len(c.Tokens), true, c.Last); err != nil {
			return err
		}
	}
	if n := len(p.Decode); n > 0 {
		if _, err := s.recording(n, false, false); err != nil {
			return err
		}
	}
	return nil
}

// follow checks that the plan continues the slots' sequences within their pages, and updates the
// slots. So no kernel uses the entries of the page table behind a sequence's last page.
func (s *Shard) follow(p Plan) error {
	most := s.info.MaxTokens
	after := func(n int) slot { // slot n after the Starts
		y := s.slots[n]
		for _, b := range p.Starts {
			if b.Slot == n {
				y = slot{room: min(len(b.Pages)*PageTokens, most)}
			}
		}
		return y
	}
	if c := p.Chunk; c != nil {
		y := after(c.Slot)
		if end := c.Pos + len(c.Tokens); y.primed || c.Pos != y.next || end > y.room {
			return fmt.Errorf("%w: tokens %d to %d of a prompt for slot %d, which is at %d and has pages for %d", ErrPlan, c.Pos, end, c.Slot, y.next, y.room)
		}
	}
	for _, n := range p.Decode {
		y := after(n)
		if p.Chunk != nil && p.Chunk.Slot == n || !y.primed || y.next >= y.room {
			return fmt.Errorf("%w: slot %d decodes at %d, and has a prompt: %t, pages for %d tokens", ErrPlan, n, y.next, y.primed, y.room)
		}
	}

	for _, b := range p.Starts {
		s.slots[b.Slot] = after(b.Slot)
	}
	if c := p.Chunk; c != nil {
		y := &s.slots[c.Slot]
		y.next, y.primed = c.Pos+len(c.Tokens), c.Last
	}
	for _, n := range p.Decode {
		s.slots[n].next++
	}
	return nil
}

// queue gives the plan to the stream.
func (s *Shard) queue(p Plan, tokens []int32) error {
	s.ops = s.ops[:0]
	for _, b := range p.Starts {
		n := copy(s.hostPages, b.Pages)
		clear(s.hostPages[n:])
		at, most := b.Slot, s.info.maxPages()
		err := s.stream.Do(
			s.state.Pages.Slice(at*most, (at+1)*most).UploadCopy(s.hostPages),
			s.state.Sampling.Slice(at, at+1).UploadCopy([]kernels.Sampling{b.Sampling.kernel()}))
		if err != nil {
			return err
		}
	}
	if c := p.Chunk; c != nil {
		r, err := s.recording(len(c.Tokens), true, c.Last)
		if err != nil {
			return err
		}
		s.hostChunk[0], s.hostChunk[1], s.hostChunk[2] = int32(c.Slot), int32(c.Pos), int32(len(c.Tokens))
		n := copy(s.hostChunk[chunkHead:], c.Tokens)
		clear(s.hostChunk[chunkHead+n:])
		s.ops = append(s.ops, s.chunk.UploadCopy(s.hostChunk), gpu.Execute(r).Label("prompt"))
	}
	if n := len(p.Decode); n > 0 {
		r, err := s.recording(n, false, false)
		if err != nil {
			return err
		}
		if s.activate(p.Decode) {
			s.ops = append(s.ops, s.active.UploadCopy(s.hostActive[:]))
		}
		s.ops = append(s.ops, gpu.Execute(r).Label("decode"), s.out.Slice(0, n).Download(tokens[:n]))
	}
	if n := len(p.Decode); p.Tokens() > n {
		s.ops = append(s.ops, s.out.Slice(MaxRows, MaxRows+1).Download(tokens[n:n+1]))
	}
	return s.stream.Do(s.ops...)
}

// activate sets hostActive to the slots that decode, and reports whether they have changed.
func (s *Shard) activate(decode []int) bool {
	before := s.hostActive
	for i := range s.hostActive {
		s.hostActive[i] = -1
		if i < len(decode) {
			s.hostActive[i] = int32(decode[i])
		}
	}
	return !slices.Equal(before[:], s.hostActive[:])
}

// kernel returns s in the kernels' format.
func (s Sampling) kernel() kernels.Sampling {
	if s.TopP == 0 {
		s.TopP = 1
	}
	return kernels.Sampling{Temperature: s.Temperature, TopP: s.TopP, TopK: s.TopK, Seed: s.Seed}
}

// maxPages is the number of pages of the longest sequence.
func (i Info) maxPages() int { return (i.MaxTokens + i.PageTokens - 1) / i.PageTokens }
