// Package tokenizer turns text into tokens and back, as the file tokenizer.json of a model says.
// The package supports byte-level BPE, with the patterns of GPT-2, Llama 3 and Qwen.
package tokenizer

import (
	"fmt"
	"math"
	"unicode/utf8"
)

// A Tokenizer may be used by several goroutines at the same time.
type Tokenizer struct {
	texts   []string // of each token; empty where the vocabulary has no token
	special []bool   // of each token: whether it controls the model and has no text for the reader

	added         [2]matcher // tokens that are cut out of the text first, in two passes
	splits        []split    // rules that cut the rest into pieces; each rule cuts the pieces of the rule before
	bpe           bpe        // makes tokens of a piece
	before, after []int32    // special tokens around a text
}

// Vocab returns the number of tokens, including holes in their numbering. The model's own
// vocabulary may be larger.
func (t *Tokenizer) Vocab() int { return len(t.texts) }

// Encode returns the tokens of a text. If special is true, Encode adds the special tokens that the
// model expects around a text, such as the token for the beginning of a text. In any case Encode
// finds special tokens that are written out in the text. Text that is not UTF-8 or has more than
// [math.MaxInt32] bytes is an error.
func (t *Tokenizer) Encode(text string, special bool) ([]int32, error) {
	if len(text) > math.MaxInt32 {
		return nil, fmt.Errorf("tokenizer: the text has %d bytes: too long", len(text))
	}
	if !utf8.ValidString(text) {
		return nil, fmt.Errorf("tokenizer: the text is not UTF-8")
	}
	var e encoder
	if special {
		e.tokens = append(e.tokens, t.before...)
	}
	t.encode(&e, text, 0)
	if special {
		e.tokens = append(e.tokens, t.after...)
	}
	return e.tokens, nil
}

// An encoder has the tokens of one text so far, and a merger for its pieces.
type encoder struct {
	tokens []int32
	merger merger
}

// encode cuts out the added tokens of a pass and of later passes, and encodes the text between
// them.
func (t *Tokenizer) encode(e *encoder, text string, pass int) {
	if pass == len(t.added) {
		t.pieces(e, text, t.splits)
		return
	}
	for text != "" {
		begin, end, token := t.added[pass].find(text)
		t.encode(e, text[:begin], pass+1)
		if begin == end {
			return
		}
		e.tokens = append(e.tokens, token)
		text = text[end:]
	}
}

// pieces cuts a text by the rules and encodes the pieces.
func (t *Tokenizer) pieces(e *encoder, text string, splits []split) {
	if len(splits) == 0 {
		e.tokens = t.bpe.encode(&e.merger, e.tokens, text)
		return
	}
	for text != "" {
		n := splits[0](text)
		t.pieces(e, text[:n], splits[1:])
		text = text[n:]
	}
}
