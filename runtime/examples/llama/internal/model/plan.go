// Package model decodes with a Llama-style model on GPUs. A [Shard] holds the weights and the cache
// of keys and values, and runs plans. A [Plan] is one step: it says which sequences take part.
// Package engine makes the plans from requests.
package model

import (
	"errors"
	"fmt"
)

// MaxRows is the largest number of sequences that one plan may decode.
const MaxRows = 64

// PageTokens is the number of tokens whose keys and values a page of the cache holds.
const PageTokens = 16

// A Plan is one step of the model. It is plain data, so it can be sent to another process.
//
// Its parts run in the order of the fields.
type Plan struct {
	Starts []Start
	Chunk  *Chunk // nil: none
	Decode []int  // slots; each takes its latest token as input and samples the next one
}

// A Start begins a new sequence in a slot.
type Start struct {
	Slot     int
	Sampling Sampling
	Pages    []int32 // the pages of the cache for the sequence, in the order of its tokens
}

// A Chunk is a piece of a prompt. Pos is a multiple of [Info.ChunkTokens]. Each chunk has
// ChunkTokens tokens, except that the last one of a prompt may have fewer.
type Chunk struct {
	Slot, Pos int
	Tokens    []int32
	Last      bool // the prompt ends with this chunk: sample the next token
}

// Sampling says how a token is chosen.
type Sampling struct {
	Temperature float32 // 0: the most likely token
	TopP        float32 // the most likely tokens whose probabilities sum to TopP; 0 or 1: all
	TopK        int32   // the TopK most likely tokens; 0: all
	Seed        uint64
}

// Info describes a [Runner].
type Info struct {
	Slots       int // sequences at once
	Pages       int // pages of the cache
	PageTokens  int // tokens in a page
	MaxTokens   int // largest number of tokens in a sequence, with its prompt
	ChunkTokens int // tokens in a chunk of a prompt
	Vocab       int // tokens are from 0 to Vocab-1
}

// Matches returns an error unless shards with the Infos i and other can form a team. Slots, Pages
// and MaxTokens may differ: the team has the smaller numbers.
func (i Info) Matches(other Info) error {
	for _, d := range []struct {
		name       string
		one, other int
	}{
		{"tokens in a page", i.PageTokens, other.PageTokens},
		{"tokens in a chunk", i.ChunkTokens, other.ChunkTokens},
		{"tokens in the vocabulary", i.Vocab, other.Vocab},
	} {
		if d.one != d.other {
			return fmt.Errorf("model: one shard has %d %s, and another one %d: open all with the same model and options", d.one, d.name, d.other)
		}
	}
	return nil
}

// ErrPlan is the error of a plan that cannot be run, such as one with a slot that does not exist.
// The Runner can run other plans afterwards.
var ErrPlan = errors.New("model: bad plan")

// Tokens returns how many tokens the plan produces.
func (p Plan) Tokens() int {
	if p.Chunk != nil && p.Chunk.Last {
		return len(p.Decode) + 1
	}
	return len(p.Decode)
}

// check returns an error that wraps [ErrPlan] if p does not fit a runner with Info i, or if p's
// tokens do not fit into a slice with the length that the parameter tokens says. check knows
// nothing of the slots' sequences.
func (p Plan) check(i Info, tokens int) error {
	slot := func(s int) error {
		if s < 0 || s >= i.Slots {
			return fmt.Errorf("%w: slot %d of %d", ErrPlan, s, i.Slots)
		}
		return nil
	}
	for _, s := range p.Starts {
		if err := slot(s.Slot); err != nil {
			return err
		}
		if most := i.maxPages(); len(s.Pages) > most {
			return fmt.Errorf("%w: %d pages for slot %d, but %d hold the longest sequence", ErrPlan, len(s.Pages), s.Slot, most)
		}
		for _, page := range s.Pages {
			if page < 0 || int(page) >= i.Pages {
				return fmt.Errorf("%w: page %d of %d", ErrPlan, page, i.Pages)
			}
		}
	}
	if c := p.Chunk; c != nil {
		if err := slot(c.Slot); err != nil {
			return err
		}
		n := len(c.Tokens)
		switch {
		case n == 0 || n > i.ChunkTokens || n < i.ChunkTokens && !c.Last:
			return fmt.Errorf("%w: a chunk of %d tokens, but chunks have %d, and only the last of a prompt may be shorter", ErrPlan, n, i.ChunkTokens)
		case c.Pos < 0 || c.Pos%i.ChunkTokens != 0:
			return fmt.Errorf("%w: a chunk at position %d, which is not a multiple of %d", ErrPlan, c.Pos, i.ChunkTokens)
		case c.Pos+n > i.MaxTokens:
			return fmt.Errorf("%w: a prompt of %d tokens or more, but sequences have at most %d", ErrPlan, c.Pos+n, i.MaxTokens)
		}
		for _, t := range c.Tokens {
			if t < 0 || int(t) >= i.Vocab {
				return fmt.Errorf("%w: token %d of a vocabulary of %d", ErrPlan, t, i.Vocab)
			}
		}
	}
	if len(p.Decode) > MaxRows {
		return fmt.Errorf("%w: %d sequences to decode, but at most %d at once", ErrPlan, len(p.Decode), MaxRows)
	}
	for r, s := range p.Decode {
		if err := slot(s); err != nil {
			return err
		}
		for _, other := range p.Decode[:r] {
			if other == s {
				return fmt.Errorf("%w: slot %d decodes twice", ErrPlan, s)
			}
		}
	}
	if tokens < p.Tokens() {
		return fmt.Errorf("%w: a slice of %d for %d tokens", ErrPlan, tokens, p.Tokens())
	}
	return nil
}
