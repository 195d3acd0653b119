// Package fakemodel has a model for tests: each token is a hash of the sequence before it. The
// model keeps sequences in pages, as a real one does. So a plan that mixes up pages or slots fails
// or yields wrong tokens.
package fakemodel

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/fnv"
	"math"
	"sync"
	"time"

	"github.com/puregpu/puregpu/runtime/examples/llama/internal/model"
)

// A Model is a [model.Runner]. It runs plans one after the other.
type Model struct {
	Has model.Info

	// Step, if not nil, is called for each plan. It returns how long the plan takes, the error of
	// Run, and the error of the function that Run returns.
	Step func(p model.Plan) (takes time.Duration, run, done error)

	mu     sync.Mutex // protects the following fields
	cache  []int32    // a token for each place in each page
	slots  []slot
	owner  []int // for each page, the slot that was last started with the page
	free   time.Time
	broken error // the errors of wrong plans
	plans  int
}

type slot struct {
	start  model.Start
	pos    int // the next position
	last   int32
	primed bool // the prompt is complete
}

// New returns a model.
func New(i model.Info) *Model {
	return &Model{Has: i, cache: make([]int32, i.Pages*i.PageTokens), slots: make([]slot, i.Slots), owner: make([]int, i.Pages)}
}

// Next returns the token that follows a sequence of tokens.
func Next(sequence []int32, s model.Sampling, vocab int) int32 {
	h := fnv.New64a()
	binary.Write(h, binary.LittleEndian, sequence)
	binary.Write(h, binary.LittleEndian, []uint64{s.Seed, uint64(math.Float32bits(s.Temperature)), uint64(s.TopK)})
	return int32(h.Sum64() % uint64(vocab))
}

// Answer returns the n tokens that follow a prompt, or only the tokens before the first token that
// is in stop.
func Answer(prompt []int32, s model.Sampling, vocab, n int, stop ...int32) []int32 {
	all, begin := append([]int32(nil), prompt...), len(prompt)
	for range n {
		t := Next(all, s, vocab)
		for _, end := range stop {
			if t == end {
				return all[begin:]
			}
		}
		all = append(all, t)
	}
	return all[begin:]
}

// Info describes the model.
func (m *Model) Info() model.Info { return m.Has }

// Err returns an error if a plan was wrong.
func (m *Model) Err() error {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.broken
}

// Plans returns the number of calls of Run.
func (m *Model) Plans() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.plans
}

// Run runs the plan at once. The function that Run returns waits until the plan's time is over, and
// then writes the tokens.
func (m *Model) Run(p model.Plan, tokens []int32) (func(context.Context) error, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.plans++
	var takes time.Duration
	var run, failed error
	if m.Step != nil {
		takes, run, failed = m.Step(p)
	}
	if run != nil {
		return nil, run
	}
	results, err := m.run(p)
	if err != nil {
		m.broken = errors.Join(m.broken, err)
		return nil, err
	}
	if now := time.Now(); m.free.Before(now) {
		m.free = now
	}
	m.free = m.free.Add(takes)
	at := m.free
	return func(ctx context.Context) error {
		timer := time.NewTimer(time.Until(at))
		defer timer.Stop()
		select {
		case <-timer.C:
		case <-ctx.Done():
			return ctx.Err()
		}
		if failed == nil {
			copy(tokens, results)
		}
		return failed
	}, nil
}

func (m *Model) run(p model.Plan) (results []int32, err error) {
	begun := map[int]bool{}
	for _, s := range p.Starts {
		if begun[s.Slot] {
			return nil, fmt.Errorf("slot %d starts twice", s.Slot)
		}
		begun[s.Slot] = true
		s.Pages = append([]int32(nil), s.Pages...)
		m.slots[s.Slot] = slot{start: s}
		for _, page := range s.Pages {
			m.owner[page] = s.Slot
		}
	}
	var last *int32
	if c := p.Chunk; c != nil {
		s := &m.slots[c.Slot]
		if s.primed || c.Pos != s.pos || c.Pos%m.Has.ChunkTokens != 0 || len(c.Tokens) > m.Has.ChunkTokens ||
			!c.Last && len(c.Tokens) != m.Has.ChunkTokens {
			return nil, fmt.Errorf("chunk of %d tokens at %d of slot %d, which is at %d", len(c.Tokens), c.Pos, c.Slot, s.pos)
		}
		for _, t := range c.Tokens {
			if err := m.put(s, t); err != nil {
				return nil, err
			}
		}
		if c.Last {
			s.primed, s.last = true, m.next(s)
			last = &s.last
		}
	}
	seen := map[int]bool{}
	for _, d := range p.Decode {
		s := &m.slots[d]
		if !s.primed || seen[d] || p.Chunk != nil && p.Chunk.Slot == d {
			return nil, fmt.Errorf("slot %d decodes twice or without a prompt", d)
		}
		seen[d] = true
		if err := m.put(s, s.last); err != nil {
			return nil, err
		}
		s.last = m.next(s)
		results = append(results, s.last)
	}
	if last != nil {
		results = append(results, *last)
	}
	if len(p.Starts)+len(seen) == 0 && p.Chunk == nil {
		return nil, errors.New("an empty plan")
	}
	return results, nil
}

// place returns the place of a token in the cache.
func (m *Model) place(s *slot, pos int) (*int32, error) {
	n := m.Has.PageTokens
	if pos/n >= len(s.start.Pages) || pos >= m.Has.MaxTokens {
		return nil, fmt.Errorf("slot %d has %d pages, and is at position %d of at most %d", s.start.Slot, len(s.start.Pages), pos, m.Has.MaxTokens)
	}
	page := s.start.Pages[pos/n]
	if m.owner[page] != s.start.Slot {
		return nil, fmt.Errorf("page %d of slot %d is slot %d's", page, s.start.Slot, m.owner[page])
	}
	return &m.cache[int(page)*n+pos%n], nil
}

func (m *Model) put(s *slot, token int32) error {
	at, err := m.place(s, s.pos)
	if err == nil {
		*at = token
		s.pos++
	}
	return err
}

// next computes the token that follows the slot's sequence in the cache.
func (m *Model) next(s *slot) int32 {
	all := make([]int32, s.pos)
	for i := range all {
		at, _ := m.place(s, i) // nil if another slot has been started with the page
		if at != nil {
			all[i] = *at
		}
	}
	return Next(all, s.start.Sampling, m.Has.Vocab)
}

// Close does nothing.
func (m *Model) Close() error { return nil }
