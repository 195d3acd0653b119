package tokenizer

// An alphabet writes bytes as characters, since JSON has no bytes: a printable byte of Latin-1 as
// the character of that number, and the others, in order, from U+0100.
type alphabet struct {
	runes [256]rune
	bytes map[rune]byte
}

func newAlphabet() *alphabet {
	a := &alphabet{bytes: make(map[rune]byte, 256)}
	next := rune(256)
	for b := range a.runes {
		r := rune(b)
		if printable := r >= '!' && r <= '~' || r >= '¡' && r <= '¬' || r >= '®'; !printable {
			r = next
			next++
		}
		a.runes[b], a.bytes[r] = r, byte(b)
	}
	return a
}

// decode returns the bytes that a text of the vocabulary stands for. A text with a character
// outside the alphabet stands for itself.
func (a *alphabet) decode(text string) string {
	raw := make([]byte, 0, len(text))
	for _, r := range text {
		b, ok := a.bytes[r]
		if !ok {
			return text
		}
		raw = append(raw, b)
	}
	return string(raw)
}
