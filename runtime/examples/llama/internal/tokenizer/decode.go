package tokenizer

import "unicode/utf8"

// A Decoder turns the tokens of one sequence into text, one after the other. A token may end inside
// a character: the decoder holds such bytes back until the rest comes. Bytes that cannot become a
// character are replaced by U+FFFD, so all text is UTF-8.
type Decoder struct {
	Special bool // return the text of special tokens too

	t    *Tokenizer
	held []byte // the beginning of a character
}

// NewDecoder returns a Decoder for one sequence.
func (t *Tokenizer) NewDecoder() *Decoder { return &Decoder{t: t} }

// Next returns the text that is complete with this token. The text is empty for a special token,
// unless Special is set, and for a token that the vocabulary does not have.
func (d *Decoder) Next(token int32) string {
	if token < 0 || int(token) >= len(d.t.texts) || d.t.special[token] && !d.Special {
		return ""
	}
	b := append(d.held, d.t.texts[token]...)
	var text []byte
	for len(b) > 0 && utf8.FullRune(b) {
		r, n := utf8.DecodeRune(b)
		if r == utf8.RuneError && n == 1 {
			n = badLength(b)
		}
		text, b = utf8.AppendRune(text, r), b[n:]
	}
	d.held = append(d.held[:0], b...)
	return string(text)
}

// Flush ends the sequence. It returns U+FFFD if the last character is not complete.
func (d *Decoder) Flush() string {
	if len(d.held) == 0 {
		return ""
	}
	d.held = d.held[:0]
	return string(utf8.RuneError)
}

// badLength returns the number of bytes that one U+FFFD replaces: the longest beginning of a
// character, or one byte.
func badLength(b []byte) int {
	n := 1
	for n < len(b) && !utf8.FullRune(b[:n]) && !utf8.FullRune(b[:n+1]) {
		n++
	}
	return n
}
