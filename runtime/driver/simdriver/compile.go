package simdriver

import (
	"fmt"
	"slices"
	"strings"
	"unicode"

	"github.com/puregpu/puregpu/runtime/driver"
)

var (
	_ driver.Compilers = (*device)(nil)
	_ driver.Linkers   = compiler{}
)

// A compiler finds the kernels of a source among the registered Go functions.
type compiler struct{ v *device }

// Compiler returns a compiler for the device. Counters do not count the call.
func (v *device) Compiler() (driver.Compiler, error) {
	if !v.d.caps.Compile {
		return nil, v.cannot(codeCompile)
	}
	return compiler{v}, nil
}

// Info says that code is valid only in this process, because it names Go functions of the process.
func (c compiler) Info() driver.CompilerInfo {
	return driver.CompilerInfo{Name: "simdriver", Target: "sim", Transient: true}
}

// Linker returns the same compiler, which accepts sources with Link. The image has the kernels of
// all sources.
func (c compiler) Linker() (driver.Compiler, error) { return c, nil }

// Compile makes an image with the kernels of a source in CUDA C++. It reads only the names of the
// functions declared __global__, in the text and in the headers that the text includes. As with a
// real compiler, the image names an extern "C" kernel by its plain name, and other kernels by the
// expressions of Source.Names. Each kernel must be registered in Config.Kernels under its name in
// the image, such as "scale<float>", or else under its plain name. Templates that no expression
// asks for are skipped. If kernels are not registered, the error is a [*driver.CompileError] that
// names all of them. Compile also reads lines in the form that [Image] writes.
func (c compiler) Compile(src *driver.Source) (driver.Code, error) {
	v := c.v
	if err := v.enter(codeCompile, false); err != nil {
		return driver.Code{}, err
	}
	var s scanner
	all := append([]driver.Source{*src}, src.Link...)
	for _, one := range all {
		s.headers, s.seen = one.Headers, map[string]bool{}
		s.scan(one.Name, one.Text)
	}
	var lacks []driver.Message
	lack := func(file string, line int, format string, args ...any) {
		lacks = append(lacks, driver.Message{File: file, Line: line, Kind: "error", Text: fmt.Sprintf(format, args...)})
	}
	code := driver.Code{Names: map[string]string{}}
	var names []string
	called := map[string]bool{} // kernels that an expression asks for, by the name in their declaration
	for _, one := range all {
		for _, expression := range one.Names {
			name := squeeze(expression)
			base := lastPart(name)
			switch {
			case slices.ContainsFunc(s.vars, func(v string) bool { return strings.HasPrefix(v, base+"=") }):
				name = base
			case !slices.ContainsFunc(s.kernels, func(k declared) bool { return k.name == base }):
				lack(one.Name, 0, "name expression %q denotes no kernel of the source", expression)
				continue
			default:
				if _, ok := v.d.kernels[name]; !ok {
					lack(one.Name, s.line(base), "kernel %s has no Go function in Config.Kernels", expression)
					continue
				}
				if !slices.Contains(names, name) {
					names = append(names, name)
				}
			}
			called[base], code.Names[expression] = true, name
		}
	}
	for i, k := range s.kernels {
		if k.template || slices.ContainsFunc(s.kernels[:i], func(o declared) bool { return o.name == k.name && !o.template }) {
			continue // the loop above has added instances of templates; a kernel may be declared repeatedly
		}
		if _, ok := v.d.kernels[k.name]; !ok && !called[k.name] {
			lack(k.file, k.line, "kernel %s has no Go function in Config.Kernels", k.name)
		} else if k.c {
			names = append(names, k.name)
		}
	}
	if len(lacks) > 0 {
		e := &driver.CompileError{Source: src.Name, Compiler: "simdriver", Target: "sim", Messages: lacks,
			Err: fmt.Errorf("%w: kernels without a Go function in Config.Kernels", ErrNotFound)}
		var log strings.Builder
		for _, m := range lacks {
			fmt.Fprintln(&log, m)
		}
		fmt.Fprintf(&log, "A simulated GPU runs Go functions in place of kernels. Config.Kernels has %s. If kernelgen wrote them and the source has changed, run go generate again.\n", list(v.d.kernels))
		e.Log = log.String()
		return driver.Code{}, fail(codeCompile, e)
	}
	code.Image = Image(append(names, s.vars...)...)
	return code, nil
}

// squeeze removes the spaces from a name, because an image separates names with spaces.
func squeeze(name string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsSpace(r) {
			return -1
		}
		return r
	}, name)
}

// lastPart returns the name that a kernel's declaration has: scale for the expression
// &math::scale<float>.
func lastPart(expression string) string {
	name, _, _ := strings.Cut(expression, "<")
	if i := strings.LastIndex(name, "::"); i >= 0 {
		name = name[i+2:]
	}
	return strings.Trim(name, "&()")
}

// A declared is the declaration of a kernel in a source.
type declared struct {
	file     string
	line     int
	name     string
	c        bool // declared extern "C"
	template bool // declared as a template, or an instance of one
}

// A scanner finds the kernels of a source. It evaluates neither conditions nor macros.
type scanner struct {
	headers map[string]string
	seen    map[string]bool // names of the headers read so far
	kernels []declared
	vars    []string // names of kernels and variables, from lines in the form that Image writes
}

// line returns the line of a kernel's first declaration.
func (s *scanner) line(name string) int {
	for _, k := range s.kernels {
		if k.name == name {
			return k.line
		}
	}
	return 0
}

func (s *scanner) scan(file, text string) {
	for line := range strings.Lines(text) {
		if names, ok := strings.CutPrefix(strings.TrimSpace(line), marker); ok {
			s.vars = append(s.vars, strings.Fields(names)...)
		}
	}
	tokens, includes := lex(text)
	for _, name := range includes {
		if header, ok := s.headers[name]; ok && !s.seen[name] {
			s.seen[name] = true
			s.scan(name, header)
		}
	}
	scopes := []bool{false} // scopes of the open braces: true inside extern "C"
	c, template := false, false
	for i := 0; i < len(tokens); i++ {
		switch t := tokens[i]; t.text {
		case "extern":
			if at(tokens, i+1) == `"C"` {
				c = true
			}
		case "template":
			template = true
			if at(tokens, i+1) == "<" {
				i = skip(tokens, i+1)
			}
		case "{":
			scopes = append(scopes, scopes[len(scopes)-1] || c)
			c, template = false, false
		case "}":
			if len(scopes) > 1 {
				scopes = scopes[:len(scopes)-1]
			}
			c, template = false, false
		case ";":
			c, template = false, false
		case "__global__":
			if n, instance := kernelName(tokens, i+1); n >= 0 {
				s.kernels = append(s.kernels, declared{file: file, line: tokens[n].line, name: tokens[n].text,
					c: (c || scopes[len(scopes)-1]) && !template && !instance, template: template || instance})
				i = n
			}
		}
	}
}

// kernelName returns the index of the token that is a kernel's name, or -1. It also reports whether
// template arguments follow the name. The name is the word before the parameters. Attributes and
// macros look like a name with parameters too, but the declaration continues after their
// parentheses.
func kernelName(tokens []token, i int) (n int, instance bool) {
	for ; i < len(tokens); i++ {
		switch t := tokens[i].text; {
		case t == ";" || t == "{" || t == "}":
			return -1, false
		case t == "[":
			i = skip(tokens, i)
		case tokens[i].word:
			open, instance := i+1, false
			if at(tokens, open) == "<" {
				open, instance = skip(tokens, open)+1, true
			}
			if at(tokens, open) != "(" {
				i = open - 1
				continue
			}
			end := skip(tokens, open) + 1
			if !behind[t] && (end >= len(tokens) || !tokens[end].word || behind[tokens[end].text]) {
				return i, instance
			}
			i = end - 1
		}
	}
	return -1, false
}

// behind holds words that may follow the parameters in a declaration.
var behind = map[string]bool{"__attribute__": true, "noexcept": true, "requires": true}

// at returns the text of token i, or "" if there is no such token.
func at(tokens []token, i int) string {
	if i < len(tokens) {
		return tokens[i].text
	}
	return ""
}

// skip returns the index of the bracket that closes the bracket at i. Without one it returns the
// last index.
func skip(tokens []token, i int) int {
	depth, angles := 0, 0
	for ; i < len(tokens)-1; i++ {
		switch tokens[i].text {
		case "(", "[", "{":
			depth++
		case ")", "]", "}":
			depth--
		case "<":
			if depth == 0 {
				angles++
			}
		case ">":
			if depth == 0 {
				angles--
			}
		}
		if depth <= 0 && angles <= 0 {
			break
		}
	}
	return i
}

// A token of C++: a word, a character, or a string.
type token struct {
	text string
	line int
	word bool
}

// lex splits C++ into tokens. It drops comments, numbers and preprocessor lines, and returns the
// names of the included headers.
func lex(text string) (tokens []token, includes []string) {
	line, first := 1, true // first: no token on this line yet
	for i := 0; i < len(text); {
		begin := i
		switch r := text[i]; {
		case r == '\n':
			line, first = line+1, true
			i++
			continue
		case r == ' ' || r == '\t' || r == '\r' || r == '\f' || r == '\v':
			i++
			continue
		case strings.HasPrefix(text[i:], "//"):
			i = endOfLine(text, i)
		case strings.HasPrefix(text[i:], "/*"):
			i += 2 + through(text[i+2:], "*/")
			line += strings.Count(text[begin:i], "\n")
			continue // a comment counts as a space, so it does not change the variable first
		case r == '#' && first:
			i = endOfLine(text, i)
			if name, ok := included(text[begin:i]); ok {
				includes = append(includes, name)
			}
		case strings.HasPrefix(text[i:], `R"`):
			delimiter, _, _ := strings.Cut(text[i+2:], "(")
			i += 2
			i += through(text[i:], ")"+delimiter+`"`)
			tokens = append(tokens, token{text: `""`, line: line})
		case r == '"' || r == '\'':
			for i++; i < len(text) && text[i] != r && text[i] != '\n'; i++ {
				if text[i] == '\\' {
					i++
				}
			}
			i = min(i+1, len(text))
			tokens = append(tokens, token{text: text[begin:i], line: line})
		case r >= '0' && r <= '9':
			for i < len(text) && (isWord(text[i]) || text[i] == '.' || text[i] == '\'') {
				i++
			}
		case isWord(r):
			for i < len(text) && isWord(text[i]) {
				i++
			}
			tokens = append(tokens, token{text: text[begin:i], line: line, word: true})
		default:
			i++
			tokens = append(tokens, token{text: text[begin:i], line: line})
		}
		line += strings.Count(text[begin:i], "\n")
		first = false
	}
	return tokens, includes
}

func isWord(c byte) bool {
	return c == '_' || c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= 0x80
}

// endOfLine returns the index of the end of a line. A line continues after a backslash at its end.
func endOfLine(text string, i int) int {
	for ; i < len(text) && text[i] != '\n'; i++ {
		if text[i] == '\\' && i+1 < len(text) {
			if i++; text[i] == '\r' && i+1 < len(text) && text[i+1] == '\n' {
				i++
			}
		}
	}
	return min(i, len(text))
}

// through returns the length of text up to and with the first occurrence of the string end. If text
// does not contain that string, through returns the length of text.
func through(text, end string) int {
	if i := strings.Index(text, end); i >= 0 {
		return i + len(end)
	}
	return len(text)
}

// included returns the header that a preprocessor line includes.
func included(line string) (name string, ok bool) {
	rest, ok := strings.CutPrefix(strings.TrimSpace(line[1:]), "include")
	if rest = strings.TrimSpace(rest); !ok || len(rest) < 2 {
		return "", false
	}
	end, ok := map[byte]string{'"': `"`, '<': ">"}[rest[0]]
	if !ok {
		return "", false
	}
	name, _, ok = strings.Cut(rest[1:], end)
	return name, ok
}
