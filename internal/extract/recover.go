package extract

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// maxRecoveries limits the number of declarations of a translation unit that may be left out.
const maxRecoveries = 200

// A recovery leaves out declarations that the C front end cannot read. It blanks their text, so
// that the rest can be read.
type recovery struct {
	files   map[string][]byte // the headers, with declarations blanked
	refused []refusal
	structs map[string]bool // refused names that are structs or unions
	marks   int             // stream.marks of the first reading, or -1 before it
}

// errLostPragma reports that a declaration cannot be left out: a macro next to it contains a
// pragma, which would be left out too.
var errLostPragma = errors.New("the declaration cannot be left out, because a macro beside it contains a pragma: move the pragma to a line of its own")

// errorPlace matches the position in an error of the C front end.
var errorPlace = regexp.MustCompile(`([^:\s]+):(\d+):\d+: (.*)`)

// next leaves out the declaration of the first error. It returns false if no declaration can be
// left out, or if maxRecoveries have been.
func (r *recovery) next(files fs.FS, failure error) bool {
	if len(r.refused) >= maxRecoveries {
		return false
	}
	for line := range strings.Lines(failure.Error()) {
		m := errorPlace.FindStringSubmatch(strings.TrimSpace(line))
		if m == nil {
			continue
		}
		name := path.Clean(m[1])
		text, err := fs.ReadFile(files, name)
		if err != nil {
			continue
		}
		number, _ := strconv.Atoi(m[2])
		d, ok := declarationAt(text, number)
		if !ok {
			return false
		}
		return r.leaveOut(name, text, d, undeclared(text, number, m[0]))
	}
	return false
}

// undeclared adds to an error of the C front end that the word before an unexpected identifier is
// not declared as a type, if there is such a word. The error is in a line of a header.
func undeclared(text []byte, line int, failure string) string {
	m := unexpectedName.FindStringSubmatch(failure)
	if m == nil {
		return failure
	}
	column, _ := strconv.Atoi(m[1])
	for range line - 1 {
		_, text, _ = bytes.Cut(text, []byte("\n"))
	}
	before := lastWord.FindSubmatch(text[:min(max(column-1, 0), len(text))])
	if before == nil || keywords[string(before[1])] {
		return failure
	}
	return fmt.Sprintf("no header declares a type %s (%s)", before[1], failure)
}

// unexpectedName matches the front end's error about an identifier, and lastWord the word before it.
var (
	unexpectedName = regexp.MustCompile(`:(\d+): unexpected identifier`)
	lastWord       = regexp.MustCompile(`\b([A-Za-z_]\w*)[ \t*]*$`)
)

// keywords are the words of C that may precede a name.
var keywords = map[string]bool{
	"auto": true, "char": true, "const": true, "double": true, "enum": true, "extern": true, "float": true, "inline": true, "int": true, "long": true,
	"register": true, "restrict": true, "return": true, "short": true, "signed": true, "static": true, "struct": true, "typedef": true, "union": true,
	"unsigned": true, "void": true, "volatile": true, "_Bool": true, "_Complex": true,
}

// leaveOut blanks a declaration, or puts a shorter declaration in its place. It returns false if
// the text is the shorter declaration already, which the C front end cannot read either.
func (r *recovery) leaveOut(file string, text []byte, d textRange, reason string) bool {
	old := text[d.first:d.end]
	code := directiveLines.ReplaceAllFunc(comments.ReplaceAllFunc(old, blanks), blanks)
	list := identifiers.FindAllString(string(code), -1)
	isTypedef, isStruct := slices.Contains(list, "typedef") && list[len(list)-1] != "typedef", false // a macro may add typedef or struct
	name, isFunction := "", false
	if open := bytes.IndexByte(code, '('); open >= 0 && !isTypedef && !bytes.Contains(code[:open], []byte("{")) {
		if before := identifiers.FindAllString(string(code[:open]), -1); len(before) > 0 {
			name, isFunction = before[len(before)-1], true
		}
	} else if m := tagged.FindSubmatch(code); m != nil {
		name, isStruct = string(m[2]), string(m[1]) != "enum"
	}
	if last := len(list) - 1; last >= 0 && (isTypedef || name == "") {
		name = list[last]
	}
	if m := pointerTypedef.FindSubmatch(code); isTypedef && m != nil {
		name = string(m[1])
	}
	if isTypedef { // a typedef of a pointer, an array or a function is not a struct
		isStruct = structTypedef.Match(code)
	}
	for _, other := range r.refused {
		if slices.Contains(list, other.name) && other.name != name {
			reason = "it uses " + other.name + ", which is refused"
		}
	}
	if r.structs == nil {
		r.files, r.structs = map[string][]byte{}, map[string]bool{}
	}
	begin := len(code) - len(bytes.TrimLeft(code, " \t\r\n")) // the declaration begins after preprocessor lines
	at := 1 + bytes.Count(text[:d.first+begin], []byte("\n"))
	r.refused = append(r.refused, refusal{name, fmt.Sprintf("%s:%d", file, at), fmt.Errorf("cannot be read: %s", reason)})
	r.structs[name] = isStruct
	stand := ""
	if isTypedef && name != "" {
		tag := "puregpu_" + name
		if m := typedefTag.FindSubmatch(code); m != nil && string(m[1]) == name {
			tag = name
		}
		stand = "typedef struct " + tag + " " + name + ";" // the front end can then read declarations that use the typedef; they are refused
	} else if isStruct && !isFunction {
		stand = string(tagged.FindSubmatch(code)[1]) + " " + name + ";"
	}
	if stand != "" && string(bytes.TrimSpace(code)) == stand {
		return false
	}
	rest := withoutCode(comments.ReplaceAllFunc(old, blanks))
	r.files[file] = slices.Concat(text[:d.first], rest[:begin], []byte(stand), rest[begin:], text[d.end:])
	return true
}

// stands reports whether a name was left out that may be something other than a struct or a union.
// If the name is a typedef, a struct stands in its place.
func (r *recovery) stands(name string) bool {
	isStruct, refused := r.structs[name]
	return refused && !isStruct
}

// apply marks the names as refused.
func (r *recovery) apply(bad map[string]error) {
	for _, x := range r.refused {
		bad[x.name] = x.err
	}
}

// structTypedef matches a typedef with one name for the struct or union itself.
var structTypedef = regexp.MustCompile(`(?s)^\s*(?:__extension__\s+)?typedef\s+(?:const\s+|volatile\s+)*(?:struct|union)\b(?:.*\}|[\w\s]*)\s*[\w\s]*\s\w+\s*;\s*$`)

// pointerTypedef matches a typedef of a pointer to a function.
var pointerTypedef = regexp.MustCompile(`^\s*typedef\b[^(;{]*\(\s*\*\s*(\w+)\s*\)\s*\(`)

// typedefTag matches the tag of the type in a typedef.
var typedefTag = regexp.MustCompile(`\btypedef\s+(?:(?:const|volatile)\s+)*(?:struct|union)\b(?:\s*__attribute__\s*\(\(.*?\)\))?\s+(\w+)`)

var (
	comments    = regexp.MustCompile(`(?s)/\*.*?\*/|//[^\n]*`)
	identifiers = regexp.MustCompile(`[A-Za-z_]\w*`)
	tagged      = regexp.MustCompile(`\b(struct|union|enum)\b(?:\s*__attribute__\s*\(\(.*?\)\))?\s+(\w+)\s*[:{]`)
)

var directiveLines = regexp.MustCompile(`(?m)^[ \t]*#(?:[^\n\\]|\\\r?\n|\\.)*`)

// withoutCode blanks a text except its preprocessor lines.
func withoutCode(text []byte) []byte {
	out := blanks(text)
	for _, at := range directiveLines.FindAllIndex(text, -1) {
		copy(out[at[0]:at[1]], text[at[0]:at[1]])
	}
	return out
}

// blanks replaces each byte of a text by a space, except line ends.
func blanks(text []byte) []byte {
	out := bytes.Repeat([]byte(" "), len(text))
	for i, c := range text {
		if c == '\n' {
			out[i] = c
		}
	}
	return out
}

type textRange struct{ first, end int }

// declarationAt finds the external declaration around a line of a header. It looks only at the
// text, and expands no macros. It returns false for a preprocessor line outside all declarations.
func declarationAt(text []byte, line int) (textRange, bool) {
	first, depth, now := 0, 0, 1
	some, function, last := false, false, byte(0)
	for i := 0; i < len(text); i++ {
		c := text[i]
		skipTo := func(end int) {
			now += bytes.Count(text[i:end], []byte("\n"))
			i = end - 1
		}
		switch {
		case c == '\n':
			now++
		case c == ' ' || c == '\t' || c == '\r':
		case bytes.HasPrefix(text[i:], []byte("/*")) || bytes.HasPrefix(text[i:], []byte("//")):
			if m := comments.FindIndex(text[i:]); m != nil && m[0] == 0 {
				skipTo(i + m[1])
			}
		case c == '"' || c == '\'':
			if m := literals.FindIndex(text[i:]); m != nil && m[0] == 0 {
				skipTo(i + m[1])
			}
			last = c
		case c == '#' && len(bytes.TrimSpace(text[bytes.LastIndexByte(text[:i], '\n')+1:i])) == 0:
			if m := directives.FindIndex(text[i:]); m != nil && m[0] == 0 {
				skipTo(i + m[1])
			}
			if !some {
				first = i + 1
			}
		case c == '{' && depth == 0 && externC.Match(text[first:i]):
			first, some = i+1, false
		default:
			some = some || depth > 0 || c != '}'
			if c == '{' {
				function = function || depth == 0 && last == ')' && !bytes.Contains(text[first:i], []byte("typedef"))
			}
			switch c {
			case '(', '[', '{':
				depth++
			case ')', ']', '}':
				depth = max(0, depth-1)
			}
			if depth == 0 && (c == ';' || c == '}' && (function || !some)) {
				if now >= line && some {
					begins := bytes.IndexFunc(comments.ReplaceAllFunc(text[first:i], blanks), func(r rune) bool { return !strings.ContainsRune(" \t\r\n", r) })
					begins = 1 + bytes.Count(text[:first+max(0, begins)], []byte("\n"))
					return textRange{first, i + 1}, begins <= line // otherwise the line is a preprocessor line
				}
				first, some, function = i+1, false, false
			}
			last = c
		}
	}
	return textRange{}, false
}

var (
	literals   = regexp.MustCompile(`"(?:[^"\\\n]|\\.)*"|'(?:[^'\\\n]|\\.)*'`)
	directives = regexp.MustCompile(`#(?:[^\n\\]|\\\r?\n|\\.)*`)
	externC    = regexp.MustCompile(`extern\s*"C(\+\+)?"\s*$`)
)
