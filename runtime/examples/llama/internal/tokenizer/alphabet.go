package tokenizer

// Alphabet returns the character that stands for each byte in a vocabulary, since JSON has no
// bytes. A visible character of Latin-1 stands for the byte with the same number. The characters
// from U+0100 on stand for the other bytes, in order.
func Alphabet() (runes [256]rune) {
	next := rune(256)
	for b := range runes {
		r := rune(b)
		if printable := r >= '!' && r <= '~' || r >= '¡' && r <= '¬' || r >= '®'; !printable {
			r = next
			next++
		}
		runes[b] = r
	}
	return runes
}

// An alphabet has the characters of Alphabet, and the byte of each.
type alphabet struct {
	runes [256]rune
	bytes map[rune]byte
}

func newAlphabet() *alphabet {
	a := &alphabet{runes: Alphabet(), bytes: make(map[rune]byte, 256)}
	for b, r := range a.runes {
		a.bytes[r] = byte(b)
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
