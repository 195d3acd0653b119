package tokenizer

import (
	"fmt"
	"math"
	"strings"
	"unicode"
	"unicode/utf8"
)

// A split returns the length of the first piece of a text. The text is not empty.
type split func(text string) int

// The patterns that tokenizer.json files have. They look ahead, which package regexp cannot, so
// each is a function here.
const (
	gpt2Pattern  = `'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+`
	llamaPattern = `(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+`
	qwenPattern  = `(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+`
)

// splitOf returns the split of a pattern.
func splitOf(pattern string) (split, error) {
	switch pattern {
	case gpt2Pattern:
		return splitGPT2, nil
	case llamaPattern:
		return func(text string) int { return splitLlama(text, 3) }, nil
	case qwenPattern:
		return func(text string) int { return splitLlama(text, 1) }, nil
	}
	return nil, fmt.Errorf("pattern %q is unknown: only those of GPT-2, Llama 3 and Qwen are supported", pattern)
}

// A class is a set of characters. Each character is in one class.
type class uint8

const (
	other class = iota
	letter
	digit
	newline // carriage return or line feed
	space   // other white space
)

// classOf returns the class of a text's first character, and its length. The text is not empty.
func classOf(text string) (class, int) {
	r, n := utf8.DecodeRuneInString(text)
	switch {
	case r == '\r' || r == '\n':
		return newline, n
	case unicode.IsSpace(r):
		return space, n
	case unicode.IsLetter(r):
		return letter, n
	case unicode.IsNumber(r):
		return digit, n
	}
	return other, n
}

// run returns the length of the characters of a class at the beginning of text, at most limit
// characters.
func run(text string, c class, limit int) (length int) {
	for ; length < len(text) && limit > 0; limit-- {
		got, n := classOf(text[length:])
		if got != c {
			break
		}
		length += n
	}
	return length
}

// splitGPT2 cuts as gpt2Pattern does. A piece is a contraction, white space, or a run of letters,
// digits or other characters, together with the space before the run if there is one.
func splitGPT2(text string) int {
	if n := contraction(text, false); n > 0 {
		return n
	}
	skip := 0
	if text[0] == ' ' && len(text) > 1 {
		skip = 1
	}
	switch c, _ := classOf(text[skip:]); c {
	case letter, digit, other:
		return skip + run(text[skip:], c, math.MaxInt)
	}
	length, _ := blanks(text)
	return length
}

// splitLlama cuts as llamaPattern does if digits is 3, and as qwenPattern does if digits is 1. A
// number is cut into pieces of at most that many digits.
func splitLlama(text string, digits int) int {
	if n := contraction(text, true); n > 0 {
		return n
	}
	first, n := classOf(text)
	second := first
	if n < len(text) {
		second, _ = classOf(text[n:])
	}
	switch {
	case first == letter:
		return run(text, letter, math.MaxInt)
	case first != digit && first != newline && n < len(text) && second == letter:
		return n + run(text[n:], letter, math.MaxInt)
	case first == digit:
		return run(text, digit, digits)
	case first == other:
		n = run(text, other, math.MaxInt)
		return n + run(text[n:], newline, math.MaxInt)
	case text[0] == ' ' && n < len(text) && second == other:
		n += run(text[1:], other, math.MaxInt)
		return n + run(text[n:], newline, math.MaxInt)
	}
	length, newlines := blanks(text)
	if newlines > 0 {
		return newlines
	}
	return length
}

// blanks returns the length of the white space at the beginning of a text, and the length of the
// white space up to its last newline, with that newline. If other text follows two or more
// characters of white space, the result length does not count the last of these characters, which
// belongs to that text.
func blanks(text string) (length, newlines int) {
	last := 0
	for length < len(text) {
		c, n := classOf(text[length:])
		if c != newline && c != space {
			break
		}
		length, last = length+n, n
		if c == newline {
			newlines = length
		}
	}
	if length < len(text) && length > last {
		length -= last
	}
	return length, newlines
}

// contraction returns the length of an English ending, such as 's or 'll, at the beginning of a
// text, or 0. If fold is set, capitals match too, and the long s (ſ) counts as an s.
func contraction(text string, fold bool) int {
	if len(text) < 2 || text[0] != '\'' {
		return 0
	}
	if fold && len(text) >= 3 && text[1:3] == "ſ" {
		return 3
	}
	end := text[1:min(3, len(text))]
	if fold {
		end = strings.ToLower(end)
	}
	switch {
	case strings.IndexByte("stmd", end[0]) >= 0:
		return 2
	case end == "re" || end == "ve" || end == "ll":
		return 3
	}
	return 0
}

// splitDigits cuts each digit off, and leaves the text between digits whole.
func splitDigits(text string) int {
	if n := run(text, digit, 1); n > 0 {
		return n
	}
	for i, r := range text {
		if unicode.IsNumber(r) {
			return i
		}
	}
	return len(text)
}
