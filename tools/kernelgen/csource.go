package main

import (
	"fmt"
	"slices"
	"strings"
)

// A source is what the generator takes from a file of CUDA C++ or HIP: the kernels and the variables of the device that it declares. It is no
// parser of C++: it splits the text into tokens, skips what is in braces, and reads declarations that have __global__, __constant__ or
// __device__ in them.
type source struct {
	kernels   []*cKernel
	variables []*cVariable
	includes  []string // in quotes
}

// A cKernel is a kernel's declaration.
type cKernel struct {
	name   string
	line   int
	params []cParam
	flaw   string // why no Go can be written for it
}

// A cParam is a parameter: as it is written, and its parts.
type cParam struct {
	name  string // "" if it has none
	typ   string // without qualifiers and pointers: float, unsigned long long
	stars int    // pointers
	text  string
	flaw  string
}

// A cVariable is a variable of the device.
type cVariable struct {
	name     string
	typ      string
	stars    int
	count    int // of elements, 0 if it is not a number
	constant bool
}

// A token is a word, a number, a text or a character of a source.
type token struct {
	text string
	line int
}

// tokenize splits a source, without comments and without directives of the preprocessor, of which it returns the names of files to include.
func tokenize(text string) (tokens []token, includes []string) {
	line, start := 1, true // of a line
	for len(text) > 0 {
		n := 1
		switch c := text[0]; {
		case c == '\n':
			line, start = line+1, true
			text = text[1:]
			continue
		case c == ' ' || c == '\t' || c == '\r' || c == '\f' || c == '\v':
			text = text[1:]
			continue
		case strings.HasPrefix(text, "//"):
			n = lineEnd(text)
			line += strings.Count(text[:n], "\n")
			text = text[n:]
			continue
		case strings.HasPrefix(text, "/*"):
			n = len(text)
			if i := strings.Index(text[2:], "*/"); i >= 0 {
				n = i + 4
			}
			line += strings.Count(text[:n], "\n")
			text = text[n:]
			continue
		case c == '#' && start:
			n = lineEnd(text)
			if name, ok := strings.CutPrefix(strings.TrimLeft(text[1:n], " \t"), "include"); ok {
				if name, ok = strings.CutPrefix(strings.TrimLeft(name, " \t"), `"`); ok {
					if name, _, ok = strings.Cut(name, `"`); ok {
						includes = append(includes, name)
					}
				}
			}
			line += strings.Count(text[:n], "\n")
			text = text[n:]
			continue
		case c == '"' || c == '\'':
			for n < len(text) && text[n] != c && text[n] != '\n' {
				if text[n] == '\\' {
					n++
				}
				n++
			}
			n = min(n+1, len(text))
		case strings.HasPrefix(text, `R"`):
			n = rawText(text)
		case isWord(c):
			for n < len(text) && (isWord(text[n]) || text[n] == '\'' && c >= '0' && c <= '9') {
				n++
			}
		case strings.HasPrefix(text, "::"), strings.HasPrefix(text, "[["), strings.HasPrefix(text, "]]"):
			n = 2
		}
		tokens = append(tokens, token{text[:n], line})
		line += strings.Count(text[:n], "\n")
		text, start = text[n:], false
	}
	return tokens, includes
}

// rawText returns the length of a raw text, R"x(…)x".
func rawText(text string) int {
	mark, rest, ok := strings.Cut(text[2:], "(")
	if !ok || len(mark) > 16 {
		return 2
	}
	end := ")" + mark + `"`
	if i := strings.Index(rest, end); i >= 0 {
		return 2 + len(mark) + 1 + i + len(end)
	}
	return len(text)
}

// lineEnd returns where a line ends, which a backslash has go on.
func lineEnd(text string) int {
	for i := 0; i < len(text); i++ {
		switch {
		case text[i] == '\\' && strings.HasPrefix(text[i+1:], "\r\n"):
			i += 2
		case text[i] == '\\':
			i++
		case text[i] == '\n':
			return i
		}
	}
	return len(text)
}

func isWord(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '_' || c >= 0x80
}

func isName(s string) bool { return s != "" && isWord(s[0]) && (s[0] < '0' || s[0] > '9') }

// parseSource reads declarations.
func parseSource(text string) *source {
	s := new(source)
	tokens, includes := tokenize(text)
	s.includes = includes
	p := parser{source: s, tokens: tokens}
	p.block(linkage{})
	return s
}

// linkage is what surrounds a declaration.
type linkage struct {
	c     bool   // extern "C"
	space string // a namespace
	depth int
}

// deepest is how deep blocks can be in each other. What is deeper is skipped.
const deepest = 200

type parser struct {
	*source
	tokens []token
}

// block reads declarations until the brace that ends them.
func (p *parser) block(in linkage) {
	var decl []token // so far
	for len(p.tokens) > 0 {
		t := p.tokens[0]
		p.tokens = p.tokens[1:]
		switch t.text {
		case "}":
			return
		case ";":
			p.declaration(decl, in)
			decl = nil
		case "(", "[", "[[":
			n := closing(t.text, p.tokens)
			decl = append(append(decl, t), p.tokens[:n]...)
			p.tokens = p.tokens[n:]
		case "{":
			switch {
			case isExternC(decl) && in.depth < deepest:
				p.block(linkage{true, in.space, in.depth + 1})
				decl = nil
			case len(decl) > 0 && (decl[0].text == "namespace" || decl[0].text == "inline" && len(decl) > 1 && decl[1].text == "namespace") && in.depth < deepest:
				p.block(linkage{in.c, decl[len(decl)-1].text, in.depth + 1})
				decl = nil
			default:
				p.tokens = p.tokens[closing("{", p.tokens):]
				if has(decl, "(") && decl[len(decl)-1].text != "=" { // a function
					p.declaration(decl, in)
					decl = nil
				}
			}
		default:
			decl = append(decl, t)
		}
	}
}

// closing returns how many of the tokens that follow an opening one there are up to the one that closes it.
func closing(open string, tokens []token) int {
	end := map[string]string{"(": ")", "[": "]", "{": "}", "[[": "]]"}
	want := []string{end[open]}
	for i, t := range tokens {
		if close, ok := end[t.text]; ok {
			want = append(want, close)
		} else if t.text == want[len(want)-1] {
			if want = want[:len(want)-1]; len(want) == 0 {
				return i + 1
			}
		}
	}
	return len(tokens)
}

func has(tokens []token, text string) bool {
	return slices.ContainsFunc(tokens, func(t token) bool { return t.text == text })
}

func isExternC(decl []token) bool {
	return len(decl) == 2 && decl[0].text == "extern" && decl[1].text == `"C"`
}

// declaration reads a declaration, if it is one of a kernel or of a variable.
func (p *parser) declaration(decl []token, in linkage) {
	if len(decl) == 0 {
		return
	}
	if len(decl) > 1 && decl[0].text == "extern" && decl[1].text == `"C"` {
		in.c, decl = true, decl[2:]
	}
	template := has(decl, "template")
	if has(decl, "__global__") {
		p.kernel(decl, in, template)
		return
	}
	if !template && in.space == "" && (has(decl, "__constant__") || has(decl, "__device__") || has(decl, "__managed__")) {
		p.variable(decl)
	}
}

// attributes are words that say nothing of a type, and may have something in parentheses.
var attributes = map[string]bool{
	"__launch_bounds__": true, "__cluster_dims__": true, "__maxnreg__": true, "__block_size__": true, "__attribute__": true, "__align__": true,
	"alignas": true, "__declspec": true,
}

// plainWords leaves out attributes, and words that say nothing of a type.
func plainWords(tokens []token) (out []token) {
	for i := 0; i < len(tokens); i++ {
		switch t := tokens[i]; {
		case attributes[t.text]:
			if i+1 < len(tokens) && tokens[i+1].text == "(" {
				i += 1 + closing("(", tokens[i+2:])
			}
		case t.text == "[[":
			i += closing("[[", tokens[i+1:])
		default:
			out = append(out, t)
		}
	}
	return out
}

// kernel reads a kernel's declaration.
func (p *parser) kernel(decl []token, in linkage, template bool) {
	words := plainWords(decl)
	from := slices.IndexFunc(words, func(t token) bool { return t.text == "__global__" }) // behind what a template has
	at := from + slices.IndexFunc(words[from:], func(t token) bool { return t.text == "(" })
	if at <= from || !isName(words[at-1].text) {
		return
	}
	k := &cKernel{name: words[at-1].text, line: words[at-1].line}
	switch {
	case template:
		k.flaw = `it is a template, of which code has only what is instantiated, by mangled names: write an extern "C" kernel for each type, which calls a __device__ template`
	case in.space != "":
		k.flaw = fmt.Sprintf(`it is in namespace %s, and has a mangled name: move it out, and write extern "C" before it`, in.space)
	case !in.c:
		k.flaw = `it is not extern "C", and has a mangled name: write extern "C" before __global__`
	}
	inside := words[at+1:][:closing("(", words[at+1:])]
	if n := len(inside); n > 0 && inside[n-1].text == ")" {
		inside = inside[:n-1]
	}
	for _, part := range split(inside) {
		if len(part) == 1 && part[0].text == "void" || len(part) == 0 {
			continue
		}
		k.params = append(k.params, parseParam(part))
	}
	for _, had := range p.kernels {
		if had.name == k.name {
			if k.text() != had.text() && had.flaw == "" {
				had.flaw = fmt.Sprintf("it is declared twice, differently, in lines %d and %d: declare it once, outside of #if", had.line, k.line)
			}
			return // a declaration, and then the definition
		}
	}
	p.kernels = append(p.kernels, k)
}

// text writes the parameters' types.
func (k *cKernel) text() string {
	var all []string
	for _, p := range k.params {
		all = append(all, p.typ+strings.Repeat("*", p.stars))
	}
	return strings.Join(all, ", ")
}

// split splits tokens at the commas that are not inside of something.
func split(tokens []token) (parts [][]token) {
	if len(tokens) == 0 {
		return nil
	}
	depth, from := 0, 0
	for i, t := range tokens {
		switch t.text {
		case "(", "[", "{", "<", "[[":
			depth++
		case ")", "]", "}", ">", "]]":
			depth--
		case ",":
			if depth <= 0 {
				parts, from = append(parts, tokens[from:i]), i+1
			}
		}
	}
	return append(parts, tokens[from:])
}

// qualifiers are words of a parameter or a variable that do not change what bytes it has.
var qualifiers = map[string]bool{
	"const": true, "volatile": true, "__restrict__": true, "__restrict": true, "restrict": true, "__grid_constant__": true, "register": true,
	"struct": true, "union": true, "enum": true, "class": true, "typename": true, "static": true, "extern": true, "__constant__": true,
	"__device__": true, "__managed__": true, "constexpr": true, "inline": true, "__global": true,
}

// keywords are words that are types, or parts of the names of types.
var keywords = map[string]bool{
	"unsigned": true, "signed": true, "char": true, "short": true, "int": true, "long": true, "float": true, "double": true, "bool": true,
	"void": true, "_Bool": true,
}

// parseParam reads a parameter.
func parseParam(tokens []token) cParam {
	c := cParam{text: text(tokens)}
	if i := slices.IndexFunc(tokens, func(t token) bool { return t.text == "=" }); i >= 0 {
		tokens = tokens[:i] // a default value
	}
	var words []string // of the type and, last, the name
	named := false     // the last word is the name
	for i := 0; i < len(tokens); i++ {
		switch t := tokens[i].text; {
		case qualifiers[t]:
		case t == "*":
			c.stars++
			if named = false; len(words) == 0 {
				c.flaw = "it has no type"
			}
		case t == "[": // is a pointer
			c.stars++
			i += closing("[", tokens[i+1:])
			if i+1 < len(tokens) && tokens[i+1].text == "[" {
				c.flaw = "it is a pointer to arrays: declare it as a pointer to their elements"
			}
		case t == "&":
			c.flaw = "it is a reference, which a launch cannot have: pass a pointer or a value"
		case t == "(":
			c.flaw = "it is a function or a pointer to one: pass a number, and choose in the kernel"
			i += closing("(", tokens[i+1:])
		case t == ".":
			c.flaw = "a kernel has as many parameters as it has"
		case c.stars > 0 && isName(t) && !named:
			c.name, named = t, true
		default:
			words = append(words, t)
		}
	}
	if n := len(words); c.name == "" && n > 1 && isName(words[n-1]) && !keywords[words[n-1]] && words[n-2] != "::" && words[n-2] != "<" {
		c.name, words = words[n-1], words[:n-1]
	}
	c.typ = strings.ReplaceAll(strings.Join(words, " "), " :: ", "::")
	c.typ = strings.TrimPrefix(strings.TrimPrefix(c.typ, ":: "), "std::")
	if c.typ == "" && c.flaw == "" {
		c.flaw = "it has no type"
	}
	return c
}

// text writes tokens as a program has them.
func text(tokens []token) string {
	var b strings.Builder
	for i, t := range tokens {
		if i > 0 {
			last := tokens[i-1].text
			if !strings.Contains(", [ ] ( ) < > ::", t.text) && !strings.Contains("* [ ( < :: &", last) {
				b.WriteByte(' ')
			}
		}
		b.WriteString(t.text)
	}
	return b.String()
}

// variable reads a declaration of variables, if it is one.
func (p *parser) variable(decl []token) {
	words := plainWords(decl)
	first := true
	var base string
	for _, part := range split(words) {
		if i := slices.IndexFunc(part, func(t token) bool { return t.text == "=" || t.text == "{" }); i >= 0 {
			part = part[:i]
		}
		if has(part, "(") { // a function
			return
		}
		v := &cVariable{count: 1, constant: has(decl, "__constant__")}
		var kept []token
		for i := 0; i < len(part); i++ {
			if part[i].text != "[" {
				kept = append(kept, part[i])
				continue
			}
			n := closing("[", part[i+1:])
			var count int
			if n == 2 { // a number, and the bracket
				fmt.Sscanf(part[i+1].text, "%d", &count)
			}
			v.count *= count
			i += n
		}
		if !first {
			kept = append([]token{{text: base}}, kept...)
		}
		d := parseParam(kept)
		if d.flaw != "" || d.name == "" || strings.HasPrefix(d.typ, "struct") && first {
			return
		}
		v.name, v.typ, v.stars = d.name, d.typ, d.stars
		base, first = d.typ, false
		p.variables = append(p.variables, v)
	}
}
