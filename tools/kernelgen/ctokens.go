package main

import (
	"fmt"
	"slices"
	"strings"
)

// A token is a word, a number, a string or a character of a source.
type token struct {
	text   string
	at     string // file and line
	branch int    // branch of a conditional with an unknown condition; 0 outside
}

// A lexer splits sources into tokens, without comments and preprocessor directives. It expands no
// macros. It skips branches that are known to be inactive, such as #if 0. Of
// conditionals whose conditions it does not know it reads all branches, except as endBranch says.
type lexer struct {
	// include returns the text and the path of a file that is included in quotes. include may be
	// nil.
	include func(name, from string) (text, path string, ok bool)

	tokens   []token
	includes []string // names of files included in quotes
	// The bodies of macros without parameters. A body is nil if the macro has several, is
	// undefined, or depends on an unknown condition.
	macros   map[string][]token
	problems []string

	had      map[string]bool // files already included
	conds    []conditional   // open conditionals
	branches int             // number of branches so far
}

// A conditional is the text from #if to #endif.
type conditional struct {
	known bool // whether its condition is known
	taken bool // whether an active branch was found, if the condition is known
	skip  bool // the present branch is inactive

	outerSkip   bool // the enclosing branch is inactive
	outerBranch int  // the number of the enclosing branch

	first  int // index of the first token of the first branch
	start  int // index of the first token of the present branch
	branch int // number of the present branch
	nth    int // how many branches of the conditional came before the present one
	uneven bool
	guard  string // X in the first branch of #ifndef X, if the condition is unknown; else empty
}

// maxFiles limits how many included files are read.
const maxFiles = 1000

// markers are the words that mark kernels and device variables.
var markers = map[string]bool{"__global__": true, "__constant__": true, "__device__": true, "__managed__": true}

// digraphs are other spellings of brackets.
var digraphs = map[string]string{"<:": "[", ":>": "]", "<%": "{", "%>": "}"}

// lex reads a file.
func (x *lexer) lex(text, file string) {
	open := len(x.conds)
	line, start := 1, true // start: only blanks so far in the line
	for len(text) > 0 {
		n, word := 1, ""
		switch c := text[0]; {
		case c == '\n':
			start = true
			fallthrough
		case c == ' ' || c == '\t' || c == '\r' || c == '\f' || c == '\v':
		case splice(text) > 0:
			n = splice(text)
		case strings.HasPrefix(text, "//"):
			n = lineEnd(text)
		case strings.HasPrefix(text, "/*"):
			n = commentEnd(text)
		case start && (c == '#' || strings.HasPrefix(text, "%:")):
			n = x.directive(text, file, line)
		case c == '"' || c == '\'':
			n = textEnd(text)
			word = text[:n]
		case rawPrefix(text) > 0:
			n = rawText(text)
			word = text[:n]
		case isWord(c):
			for n < len(text) {
				if s := splice(text[n:]); s > 0 {
					n += s
				} else if isWord(text[n]) || c >= '0' && c <= '9' && text[n] == '\'' {
					n++
				} else {
					break
				}
			}
			word = unspliced(text[:n])
		case strings.HasPrefix(text, "::"):
			n, word = 2, "::"
		case strings.HasPrefix(text, "<::") && !strings.HasPrefix(text, "<:::") && !strings.HasPrefix(text, "<::>"):
			word = "<"
		default:
			word = text[:1]
			if other, ok := digraphs[text[:min(2, len(text))]]; ok {
				n, word = 2, other
			}
		}
		if word != "" {
			x.emit(token{text: word, at: fmt.Sprintf("%s:%d", file, line)})
			start = false
		}
		line += strings.Count(text[:n], "\n")
		text = text[n:]
	}
	for len(x.conds) > open {
		x.endif()
	}
}

// skipping reports whether the present text is inactive.
func (x *lexer) skipping() bool {
	n := len(x.conds)
	return n > 0 && (x.conds[n-1].skip || x.conds[n-1].outerSkip)
}

// branch returns the branch of the present text in a conditional with an unknown condition, or 0.
func (x *lexer) branch() int {
	n := len(x.conds)
	switch {
	case n == 0:
		return 0
	case x.conds[n-1].known:
		return x.conds[n-1].outerBranch
	}
	return x.conds[n-1].branch
}

// emit adds a token.
func (x *lexer) emit(t token) {
	if !x.skipping() {
		t.branch = x.branch()
		x.tokens = append(x.tokens, t)
	}
}

// directive reads a directive and returns its length.
func (x *lexer) directive(text, file string, line int) int {
	body, n := directiveText(text)
	name, rest := body, ""
	if i := strings.IndexFunc(body, func(r rune) bool { return r < 'a' || r > 'z' }); i >= 0 {
		name, rest = body[:i], strings.TrimSpace(body[i:])
	}
	switch name {
	case "include":
		if name, ok := strings.CutPrefix(rest, `"`); ok {
			if name, _, ok = strings.Cut(name, `"`); ok {
				x.includes = append(x.includes, name)
				x.enter(name, file)
			}
		}
	case "define", "undef":
		if !x.skipping() {
			x.define(rest, name == "undef")
		}
	case "if", "ifdef", "ifndef":
		c := conditional{start: len(x.tokens), first: len(x.tokens), outerSkip: x.skipping(), outerBranch: x.branch()}
		value, known := condition(name, rest)
		switch c.known = known; {
		case known:
			c.taken, c.skip = value, !value
		case len(x.conds) >= deepest:
			c.known, c.taken = true, true
		default:
			x.branches++
			c.branch = x.branches
			if name == "ifndef" {
				c.guard = rest
			}
		}
		x.conds = append(x.conds, c)
	case "elif", "elifdef", "elifndef", "else":
		if len(x.conds) == 0 {
			break
		}
		x.endBranch()
		c := &x.conds[len(x.conds)-1]
		if c.known {
			value, known := true, true
			if name != "else" {
				value, known = condition(strings.TrimPrefix(name, "el"), rest)
			}
			c.skip = c.taken || known && !value
			c.taken = c.taken || !c.skip
		} else {
			x.branches++
			c.branch = x.branches
		}
		c.start, c.guard = len(x.tokens), ""
		c.nth++
	case "endif":
		if len(x.conds) > 0 {
			x.endif()
		}
	}
	return n
}

func (x *lexer) endif() {
	x.endBranch()
	x.conds = x.conds[:len(x.conds)-1]
}

// endBranch ends a branch of a conditional. It drops a branch after the first if that branch, or an
// earlier one, does not close exactly the brackets that it opens: only one of the branches is
// compiled.
func (x *lexer) endBranch() {
	c := &x.conds[len(x.conds)-1]
	if c.known {
		return
	}
	tokens := x.tokens[c.start:]
	depth := 0
	for _, t := range tokens {
		switch t.text {
		case "(", "[", "{":
			depth++
		case ")", "]", "}":
			depth--
		}
	}
	c.uneven = c.uneven || depth != 0
	if c.nth == 0 || !c.uneven {
		return
	}
	for _, t := range x.tokens[c.first:] {
		if markers[t.text] {
			x.problems = append(x.problems, fmt.Sprintf("%s: a declaration with %s is in a branch of #if that closes other brackets than it opens: write it whole into the branch, or outside of #if", t.at, t.text))
			break
		}
	}
	x.tokens = x.tokens[:c.start]
}

// condition returns the value of a condition, and whether it is known.
func condition(name, text string) (value, known bool) {
	text = strings.Join(strings.Fields(strings.NewReplacer("(", " ", ")", " ", "!", " ! ").Replace(text)), " ")
	not := name == "ifndef"
	if name == "if" {
		text, not = strings.CutPrefix(text, "! ")
		text = strings.TrimPrefix(text, "defined ")
	}
	switch {
	case text == "__cplusplus":
		return !not, true
	case name == "if" && (text == "0" || text == "1"):
		return (text == "1") != not, true
	}
	return false, false
}

// define records that a macro is defined or undefined.
func (x *lexer) define(text string, undefine bool) {
	n := 0
	for n < len(text) && isWord(text[n]) {
		n++
	}
	name, body := text[:n], text[n:]
	if i := len(x.conds) - 1; i >= 0 && x.conds[i].guard == name && body == "" && x.conds[i].start == len(x.tokens) && !undefine {
		x.conds[i].known, x.conds[i].taken = true, true // an include guard: the file is read once
		return
	}
	if name == "" || strings.HasPrefix(body, "(") {
		return
	}
	had, ok := x.macros[name]
	var tokens []token
	if !undefine {
		part := lexer{}
		part.lex(body, "")
		tokens = part.tokens
	}
	same := func(a, b token) bool { return a.text == b.text }
	if ok && !slices.EqualFunc(had, tokens, same) || x.branch() != 0 {
		tokens = nil
	}
	if x.macros == nil {
		x.macros = map[string][]token{}
	}
	x.macros[name] = tokens
}

// enter reads an included file, once.
func (x *lexer) enter(name, from string) {
	if x.include == nil || x.skipping() || len(x.had) >= maxFiles {
		return
	}
	text, file, ok := x.include(name, from)
	if !ok || x.had[file] {
		return
	}
	if x.had == nil {
		x.had = map[string]bool{}
	}
	x.had[file] = true
	x.lex(text, file)
}

// directiveText returns a directive without its #, comments and splices, and the directive's
// length.
func directiveText(text string) (string, int) {
	var b strings.Builder
	n := 1
	if text[0] == '%' {
		n = 2
	}
	for n < len(text) && text[n] != '\n' {
		rest := text[n:]
		switch c := text[n]; {
		case splice(rest) > 0:
			n += splice(rest)
		case strings.HasPrefix(rest, "//"):
			n += lineEnd(rest)
		case strings.HasPrefix(rest, "/*"):
			n += commentEnd(rest)
			b.WriteByte(' ')
		case c == '"' || c == '\'':
			end := textEnd(rest)
			b.WriteString(rest[:end])
			n += end
		default:
			b.WriteByte(c)
			n++
		}
	}
	return strings.TrimSpace(b.String()), n
}

// splice returns the length of a backslash and the line end after it, or 0.
func splice(text string) int {
	switch {
	case strings.HasPrefix(text, "\\\n"):
		return 2
	case strings.HasPrefix(text, "\\\r\n"):
		return 3
	}
	return 0
}

func unspliced(text string) string {
	if !strings.Contains(text, "\\") {
		return text
	}
	return strings.NewReplacer("\\\n", "", "\\\r\n", "").Replace(text)
}

// lineEnd returns the length of a line, with the lines that continue it.
func lineEnd(text string) int {
	for i := 0; i < len(text); i++ {
		if n := splice(text[i:]); n > 0 {
			i += n - 1
		} else if text[i] == '\n' {
			return i
		}
	}
	return len(text)
}

// commentEnd returns the length of a comment that begins with /*.
func commentEnd(text string) int {
	if i := strings.Index(text[2:], "*/"); i >= 0 {
		return i + 4
	}
	return len(text)
}

// textEnd returns the length of a string or a character literal. A literal without a closing quote
// ends at the end of its line.
func textEnd(text string) int {
	for n := 1; n < len(text); n++ {
		switch {
		case text[n] == text[0]:
			return n + 1
		case text[n] == '\n':
			return n
		case splice(text[n:]) > 0:
			n += splice(text[n:]) - 1
		case text[n] == '\\':
			n++
		}
	}
	return len(text)
}

// rawPrefix returns the length of the prefix of a raw string, or 0 if none begins here.
func rawPrefix(text string) int {
	for _, p := range []string{`R"`, `u8R"`, `uR"`, `UR"`, `LR"`} {
		if strings.HasPrefix(text, p) {
			return len(p) - 1
		}
	}
	return 0
}

// rawText returns the length of a raw string, R"x(…)x".
func rawText(text string) int {
	from := rawPrefix(text) + 1
	mark, rest, ok := strings.Cut(text[from:], "(")
	if !ok || len(mark) > 16 || strings.ContainsAny(mark, " )\\\t\v\f\n") {
		return from
	}
	end := ")" + mark + `"`
	if i := strings.Index(rest, end); i >= 0 {
		return from + len(mark) + 1 + i + len(end)
	}
	return len(text)
}

func isWord(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '_' || c >= 0x80
}

func isName(s string) bool { return s != "" && isWord(s[0]) && (s[0] < '0' || s[0] > '9') }

// quoted returns the names of files that a source includes in quotes.
func quoted(text string) []string {
	var x lexer
	x.lex(text, "")
	return x.includes
}
