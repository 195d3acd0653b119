// Package printable escapes unprintable characters in errors. A path or a variable that an error
// quotes may contain any byte. On a terminal or in a log, an escape sequence would rewrite text,
// and a newline would forge a line.
package printable

import (
	"strconv"
	"strings"
	"unicode/utf8"
)

// Text returns s with every unprintable character in Go's escaped form: \n, \x1b. Printable text
// stays unchanged, including backslashes.
func Text(s string) string {
	if is(s) {
		return s
	}
	var b strings.Builder
	for s != "" {
		r, n := utf8.DecodeRuneInString(s)
		if good(r, n) {
			b.WriteString(s[:n])
		} else {
			quoted := strconv.Quote(s[:n])
			b.WriteString(quoted[1 : len(quoted)-1])
		}
		s = s[n:]
	}
	return b.String()
}

// Lines is like [Text] but keeps newlines and tabs.
func Lines(s string) string {
	var b strings.Builder
	for s != "" {
		n := strings.IndexAny(s, "\n\t")
		if n < 0 {
			return b.String() + Text(s)
		}
		b.WriteString(Text(s[:n]))
		b.WriteByte(s[n])
		s = s[n+1:]
	}
	return b.String()
}

func is(s string) bool {
	for i := 0; i < len(s); {
		r, n := utf8.DecodeRuneInString(s[i:])
		if !good(r, n) {
			return false
		}
		i += n
	}
	return true
}

func good(r rune, n int) bool { return strconv.IsPrint(r) && !(r == utf8.RuneError && n == 1) }

// Error returns err if its text is printable. Otherwise it returns an error that wraps err, with
// err's text escaped by [Text].
func Error(err error) error {
	if err == nil || is(err.Error()) {
		return err
	}
	return &escaped{err}
}

type escaped struct{ err error }

func (e *escaped) Error() string { return Text(e.err.Error()) }
func (e *escaped) Unwrap() error { return e.err }
