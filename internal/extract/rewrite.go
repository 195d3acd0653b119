package extract

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"io/fs"
	"path"
	"regexp"
	"strconv"
	"strings"
	"testing/fstest"
	"unicode/utf8"
)

// An overlayFS looks up a file in its first file system, which has replacements, and then in the
// second. It rewrites headers for the C front end. Lines keep their numbers.
//
// It also appends two line ends to each file. Without them the front end searches forever for the
// end of a literal, if the file ends in a backslash inside the literal.
type overlayFS [2]fs.FS

func (o overlayFS) Open(name string) (fs.File, error) {
	name = path.Clean(name)
	text, err := fs.ReadFile(o[0], name)
	if err != nil {
		text, err = fs.ReadFile(o[1], name)
	}
	if err != nil {
		return nil, err
	}
	text = append(o.rewrite(text), "\n\n"...)
	if own, err := fs.ReadFile(o[1], name); err == nil && isOnce(own) {
		text = guarded(own, text)
	}
	return fstest.MapFS{name: {Data: text}}.Open(name)
}

var (
	pragmaOnce   = regexp.MustCompile(`(?m)^[ \t]*#[ \t]*pragma[ \t]+once\b`)
	conditionals = regexp.MustCompile(`(?m)^[ \t]*#[ \t]*(if|endif)`)
)

// isOnce reports whether a header has #pragma once outside all conditions.
func isOnce(text []byte) bool {
	if !bytes.Contains(text, []byte("once")) {
		return false
	}
	text = comments.ReplaceAllFunc(text, blanks)
	at := pragmaOnce.FindIndex(text)
	if at == nil {
		return false
	}
	depth := 0
	for _, m := range conditionals.FindAllSubmatch(text[:at[0]], -1) {
		if depth++; string(m[1]) == "endif" {
			depth -= 2
		}
	}
	return depth == 0
}

// guarded adds an include guard to a header, since the front end ignores #pragma once. Headers of
// equal text get the same guard, because compilers read such a header once.
func guarded(header, text []byte) []byte {
	guard := fmt.Sprintf("puregpu_once_%x", sha256.Sum256(header))
	return fmt.Appendf(nil, "#ifndef %s\n#define %s\n#line 1\n%s#endif\n", guard, guard, text)
}

// harmlessBrackets matches C23 attributes that do not change a declaration. Other attributes are
// errors to the C front end.
var harmlessBrackets = regexp.MustCompile(`\[\[\s*(gnu::|clang::)?_*(deprecated|nodiscard|maybe_unused|noreturn|unused|nonnull|pure|const|warn_unused_result|visibility)_*\s*(\([^()\n]*\))?\s*\]\]`)

var (
	lineDirective   = regexp.MustCompile(`(?m)^[ \t]*#[ \t]*(?:line[ \t]|\d)[^\n]*$`)
	pragmaOperator  = regexp.MustCompile(`\b_Pragma\b`)
	builtinOperator = regexp.MustCompile(`\b__has_builtin\b`)
	includeOperator = regexp.MustCompile(`\b__has_include(?:_next)?[ \t]*\([ \t]*[<"]([^>"\n]*)[>"][ \t]*\)`)
)

// rewrite replaces the parts of a header that the C front end and gcc would read differently.
func (o overlayFS) rewrite(text []byte) []byte {
	if bytes.Contains(text, []byte("_Pragma")) {
		text = pragmaOperator.ReplaceAll(text, []byte(pragmaWord))
	}
	if lineDirective.Match(text) { // the front end would search includes beside the file that the directive names; a compiler does not
		text = lineDirective.ReplaceAllFunc(text, blanks)
	}
	if bytes.Contains(text, []byte("[[")) {
		text = harmlessBrackets.ReplaceAllFunc(text, blanks)
	}
	if bytes.Contains(text, []byte("__has_builtin")) {
		text = builtinOperator.ReplaceAll(text, []byte(hasBuiltinWord))
	}
	if bytes.Contains(text, []byte("__has_include")) {
		text = includeOperator.ReplaceAllFunc(text, func(use []byte) []byte {
			if name := string(includeOperator.FindSubmatch(use)[1]); isSystemHeader(name) {
				return append([]byte("1"), blanks(use[1:])...) // real systems have the header, even if there is no stand-in
			}
			return use
		})
	}
	return plainLiterals(text)
}

// plainLiterals writes character constants as numbers, with gcc's values, except simple ones such
// as 'a' and '\n'. It removes the prefix of u8"text". It gives u"text" and U"text" the prefix L; no
// table holds the values of such strings.
func plainLiterals(text []byte) []byte {
	var out []byte
	done := 0
	for i := 0; i < len(text); {
		n := bytes.IndexAny(text[i:], `/"'`)
		if n < 0 {
			break
		}
		i += n
		switch {
		case bytes.HasPrefix(text[i:], []byte("/*")):
			n = bytes.Index(text[i+2:], []byte("*/"))
			if n < 0 {
				n = len(text) - i - 4
			}
			i += n + 4
		case bytes.HasPrefix(text[i:], []byte("//")):
			if n = bytes.IndexByte(text[i:], '\n'); n < 0 {
				n = len(text) - i
			}
			i += n
		case text[i] == '/':
			i++
		default:
			end := literalEnd(text, i)
			if end < 0 { // the quote begins no literal, as in #error don't
				i++
				continue
			}
			first := i
			for first > 0 && isWordByte(text[first-1]) {
				first--
			}
			if new, ok := plainLiteral(string(text[first:i]), string(text[i:end])); ok {
				out, done = append(append(out, text[done:first]...), new...), end
			}
			i = end
		}
	}
	if done == 0 {
		return text
	}
	return append(out, text[done:]...)
}

func isWordByte(c byte) bool {
	return c == '_' || c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z'
}

// literalEnd returns the end of the string or character constant that begins at i, or -1 if it does
// not end on its line.
func literalEnd(text []byte, i int) int {
	for j := i + 1; j < len(text); j++ {
		switch text[j] {
		case '\n':
			return -1
		case '\\':
			j++
			if j < len(text) && text[j] == '\r' {
				j++
			}
		case text[i]:
			return j + 1
		}
	}
	return -1
}

// plainLiteral rewrites one literal. It returns false if the literal stays as it is.
func plainLiteral(prefix, quoted string) (string, bool) {
	if quoted[0] == '"' {
		switch prefix {
		case "u8":
			return "  " + quoted, true
		case "u", "U":
			return "L" + quoted, true
		}
		return "", false
	}
	body := quoted[1 : len(quoted)-1]
	switch prefix {
	case "", "L", "u", "U":
	default:
		return "", false
	}
	if plain := len(body) == 1 && body[0] < utf8.RuneSelf || len(body) == 2 && body[0] == '\\' && strings.Contains(`'"?\abfnrtv0`, body[1:]); plain && (prefix == "" || prefix == "L") {
		return "", false
	}
	codes, ok := charCodes(body)
	if !ok {
		return "", false // the front end reports an error too
	}
	if prefix != "" { // the value is the last character
		n := codes[len(codes)-1].wide
		switch prefix {
		case "u":
			if len(codes) > 1 || n > 0xffff {
				return "", false
			}
			return strconv.Itoa(int(n)), true
		case "U":
			if len(codes) > 1 {
				return "", false
			}
			return strconv.FormatUint(uint64(n), 10) + "U", true
		}
		return number(int32(n)), true
	}
	var all []byte
	for _, c := range codes {
		all = append(all, c.bytes...)
	}
	if len(all) == 1 {
		return number(int32(int8(all[0]))), true
	}
	n := uint32(0)
	for _, b := range all {
		n = n<<8 | uint32(b)
	}
	return number(int32(n)), true
}

// number writes a number such that it can stand wherever a character constant can: a negative one
// in brackets.
func number(n int32) string {
	if n == -1<<31 {
		return "(-2147483647-1)"
	}
	if n < 0 {
		return "(" + strconv.Itoa(int(n)) + ")"
	}
	return strconv.Itoa(int(n))
}

// A charCode is one character or escape sequence: its bytes in UTF-8, and its value in a wide
// literal.
type charCode struct {
	bytes []byte
	wide  uint32
}

// charCodes reads the text between the quotes of a character constant. It returns false if the text
// is not valid.
func charCodes(body string) (codes []charCode, ok bool) {
	ofRune := func(r rune) charCode { return charCode{utf8.AppendRune(nil, r), uint32(r)} }
	for body != "" {
		if body[0] != '\\' {
			r, n := utf8.DecodeRuneInString(body)
			if r == utf8.RuneError {
				return nil, false
			}
			codes, body = append(codes, ofRune(r)), body[n:]
			continue
		}
		if len(body) < 2 {
			return nil, false
		}
		digits := func(from, most, base int) (uint32, bool) {
			n := from
			for n < len(body) && n < from+most && strings.IndexByte("0123456789abcdef", body[n]|0x20) >= 0 && (base == 16 || body[n] >= '0' && body[n] < '8') {
				n++
			}
			v, err := strconv.ParseUint(body[from:n], base, 32)
			body = body[n:]
			return uint32(v), err == nil
		}
		c := body[1]
		switch {
		case c == 'x':
			v, ok := digits(2, 100, 16)
			if !ok {
				return nil, false
			}
			codes = append(codes, charCode{[]byte{byte(v)}, v})
		case c >= '0' && c <= '7':
			v, ok := digits(1, 3, 8)
			if !ok {
				return nil, false
			}
			codes = append(codes, charCode{[]byte{byte(v)}, v})
		case c == 'u' || c == 'U':
			n := map[byte]int{'u': 4, 'U': 8}[c]
			if len(body) < 2+n {
				return nil, false
			}
			v, ok := digits(2, n, 16)
			if !ok || v > utf8.MaxRune {
				return nil, false
			}
			codes = append(codes, ofRune(rune(v)))
		default:
			at := strings.IndexByte(`'"?\abfnrtveE`, c)
			if at < 0 {
				return nil, false
			}
			v := "'\"?\\\a\b\f\n\r\t\v\x1b\x1b"[at]
			codes, body = append(codes, charCode{[]byte{v}, uint32(v)}), body[2:]
		}
	}
	return codes, len(codes) > 0
}
