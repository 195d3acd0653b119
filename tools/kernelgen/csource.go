package main

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// A source has the declarations that the generator reads from a file of CUDA C++ or HIP: kernels,
// device variables, and other names of types. The reader is no C++ parser. It splits the text into
// tokens, skips text in braces except blocks of extern "C" and namespaces, and reads declarations
// that begin with typedef or using, or contain __global__, __constant__, __device__ or __managed__.
type source struct {
	kernels   []*cKernel
	variables []*cVariable
	aliases   map[string]*cAlias
	problems  []string // declarations that cannot be read; generating fails with the first
	hints     []string // possible reasons for missing declarations
}

// A cAlias is another name of a type, from a typedef, a using or a macro.
type cAlias struct {
	typ   string
	stars int
	flaw  string // why its type is unknown
}

// A cKernel is a kernel's declaration.
type cKernel struct {
	name   string
	at     string // file and line
	params []cParam
	flaw   string // why no Go can be written for it

	c        bool            // extern "C"
	space    string          // its namespace, or ""
	template *templateParams // nil if it is no template
	inside   [][]token       // the tokens of each parameter
}

// full returns the name with its namespace.
func (k *cKernel) full() string {
	if k.space == "" {
		return k.name
	}
	return k.space + "::" + k.name
}

// mangled says why compiled code has the kernel under a mangled name. It returns "" if the name is
// not mangled.
func (k *cKernel) mangled() string {
	switch {
	case k.template != nil:
		return `it is a template, of which code has only what is instantiated, by mangled names: write an extern "C" kernel for each type, which calls a __device__ template. Or give -runtime and -instance, and no code`
	case k.space != "":
		return fmt.Sprintf(`it is in namespace %s, and has a mangled name: move it out, and write extern "C" before it. Or give -runtime, and no code`, k.space)
	case !k.c:
		return `it is not extern "C", and has a mangled name: write extern "C" before __global__. Or give -runtime, and no code`
	}
	return ""
}

// A cParam is a parameter in C.
type cParam struct {
	name  string // "" if it has none
	typ   string // without qualifiers and pointers: float, unsigned long long
	stars int    // number of pointers: 2 for float **
	text  string
	flaw  string
}

// A cVariable is a device variable.
type cVariable struct {
	name     string
	typ      string
	stars    int
	count    int // number of elements; 0 if it is no literal, -1 if declarations disagree
	constant bool
	hidden   bool   // static or const: other files cannot name it
	flaw     string // why its type is unknown
}

// parseSource reads declarations.
func parseSource(text string) *source { return parseFiles(text, "", nil) }

// parseFiles reads the declarations of a file and of the files that it includes.
func parseFiles(text, file string, include func(name, from string) (text, path string, ok bool)) *source {
	s := &source{aliases: map[string]*cAlias{}}
	x := lexer{include: include}
	x.lex(text, file)
	s.problems = x.problems
	p := parser{source: s, tokens: x.tokens}
	for len(p.tokens) > 0 { // an unmatched closing brace ends a block early
		p.block(linkage{})
	}
	for name, body := range x.macros {
		if !slices.ContainsFunc(body, func(t token) bool { return !isName(t.text) && t.text != "*" && t.text != "::" }) {
			p.alias(name, body)
		}
	}
	return s
}

// linkage describes the blocks around a declaration.
type linkage struct {
	c     bool   // extern "C"
	space string // namespaces, with :: between them
	depth int
}

// unnamed marks a namespace without a name.
const unnamed = "(unnamed)"

// within returns the namespace that a declaration opens.
func (in linkage) within(words []token) string {
	name := unnamed
	if i := slices.IndexFunc(words, func(t token) bool { return t.text == "namespace" }); i+1 < len(words) {
		name = text(words[i+1:])
	}
	if in.space != "" {
		name = in.space + "::" + name
	}
	return name
}

// deepest is the greatest depth of nested blocks, and of nested #if. Deeper blocks are skipped. Of
// a deeper #if only the first branch is read.
const deepest = 200

type parser struct {
	*source
	tokens []token
}

// block reads declarations up to the closing brace or the end.
func (p *parser) block(in linkage) {
	var decl []token // tokens of the current declaration
	for len(p.tokens) > 0 {
		t := p.tokens[0]
		p.tokens = p.tokens[1:]
		switch t.text {
		case "}":
			return
		case ";":
			p.declaration(decl, in)
			decl = nil
		case "(", "[":
			decl = append(append(decl, t), p.take(t)...)
		case "{":
			words := plainWords(decl)
			n := len(words)
			switch {
			case n == 2 && words[0].text == "extern" && strings.HasPrefix(words[1].text, `"C`) && in.depth < deepest:
				p.block(linkage{words[1].text == `"C"`, in.space, in.depth + 1})
				decl = nil
			case n > 0 && (words[0].text == "namespace" || n > 1 && words[0].text == "inline" && words[1].text == "namespace") && in.depth < deepest:
				p.block(linkage{in.c, in.within(words), in.depth + 1})
				decl = nil
			case isFunction(words):
				p.take(t)
				p.declaration(decl, in)
				decl = nil
			default: // braces of a type or of an initial value
				p.take(t)
				decl = append(decl, token{braces, t.at, t.branch})
			}
		default:
			decl = append(decl, t)
		}
	}
}

// braces is the token that stands for a pair of braces and all tokens in it.
const braces = "{}"

// take returns the tokens up to the closing bracket, with it, and advances past them.
func (p *parser) take(open token) []token {
	n, closed := closingOf(open.text, p.tokens)
	inside := p.tokens[:n]
	if !closed {
		p.hints = append(p.hints, fmt.Sprintf("%s: the %s is not closed, as far as kernelgen can tell, which expands no macros", open.at, open.text))
	}
	p.tokens = p.tokens[n:]
	return inside
}

// isFunction reports whether the braces after a declaration are a function's body.
func isFunction(words []token) bool {
	n := len(words)
	if n == 0 || words[n-1].text == "=" || !has(words, "(") {
		return false
	}
	if has(words, "operator") || has(words, "template") {
		return true
	}
	// int x = f() ? T{1} : T{2} is no function.
	for i := 0; i < n; i++ {
		switch words[i].text {
		case "(", "[":
			i += closing(words[i].text, words[i+1:])
		case "=":
			return false
		}
	}
	return true
}

var closers = map[string]string{"(": ")", "[": "]", "{": "}"}

// closing returns the number of tokens up to the closing bracket, with it, or of all tokens if
// there is none. The tokens begin after the opening bracket.
func closing(open string, tokens []token) int {
	n, _ := closingOf(open, tokens)
	return n
}

func closingOf(open string, tokens []token) (n int, closed bool) {
	want := []string{closers[open]}
	for i, t := range tokens {
		if close, ok := closers[t.text]; ok {
			want = append(want, close)
		} else if t.text == want[len(want)-1] {
			if want = want[:len(want)-1]; len(want) == 0 {
				return i + 1, true
			}
		}
	}
	return len(tokens), false
}

func has(tokens []token, text string) bool {
	return slices.ContainsFunc(tokens, func(t token) bool { return t.text == text })
}

// declaration reads a declaration of a kernel, a variable or another name of a type. It ignores
// other declarations.
func (p *parser) declaration(decl []token, in linkage) {
	if len(decl) == 0 {
		return
	}
	switch decl[0].text {
	case "typedef":
		p.typedef(decl[1:])
		return
	case "using":
		if words := plainWords(decl); len(words) > 3 && words[2].text == "=" {
			p.alias(words[1].text, words[3:])
		}
		return
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

// attributes are words without meaning for a type. Some have arguments in parentheses.
var attributes = map[string]bool{
	"__launch_bounds__": true, "__cluster_dims__": true, "__maxnreg__": true, "__block_size__": true, "__attribute__": true, "__align__": true,
	"__attribute": true, "alignas": true, "_Alignas": true, "__declspec": true,
}

// plainWords returns the tokens without attributes and their arguments.
func plainWords(tokens []token) (out []token) {
	for i := 0; i < len(tokens); i++ {
		switch t := tokens[i]; {
		case attributes[t.text]:
			if i+1 < len(tokens) && tokens[i+1].text == "(" {
				i += 1 + closing("(", tokens[i+2:])
			}
		// Two opening brackets can only begin an attribute.
		case t.text == "[" && i+1 < len(tokens) && tokens[i+1].text == "[":
			i += closing("[", tokens[i+1:])
		default:
			out = append(out, t)
		}
	}
	return out
}

// kernel reads a kernel's declaration.
func (p *parser) kernel(decl []token, in linkage, template bool) {
	words := plainWords(decl)
	// __global__ comes after the template parameters.
	from := slices.IndexFunc(words, func(t token) bool { return t.text == "__global__" })
	at := from + slices.IndexFunc(words[from:], func(t token) bool { return t.text == "(" })
	if at <= from || !isName(words[at-1].text) {
		return
	}
	k := &cKernel{name: words[at-1].text, at: words[at-1].at, space: in.space}
	end := at + 1 + closing("(", words[at+1:])
	for i, t := range words[:at] {
		if t.text == "extern" && words[i+1].text == `"C"` {
			in.c, from = true, min(from, i)
		}
	}
	k.c = in.c
	if branched(words[from:end]) || has(words[end:], "__global__") {
		k.flaw = "parts of its declaration are in branches of #if: declare it once, outside of #if"
	}
	if template {
		k.template = readTemplate(words[:from])
	}
	inside := words[at+1 : end]
	if n := len(inside); n > 0 && inside[n-1].text == ")" {
		inside = inside[:n-1]
	}
	for _, part := range split(inside) {
		if len(part) == 1 && part[0].text == "void" || len(part) == 0 {
			continue
		}
		k.params, k.inside = append(k.params, parseParam(part)), append(k.inside, part)
	}
	for _, had := range p.kernels {
		if had.full() == k.full() {
			if k.text() != had.text() && had.flaw == "" {
				had.flaw = fmt.Sprintf("it is declared twice, differently, at %s and %s: declare it once, outside of #if", had.at, k.at)
			}
			return // known from an earlier declaration
		}
	}
	p.kernels = append(p.kernels, k)
}

// branched reports whether tokens belong to several branches of conditionals.
func branched(tokens []token) bool {
	return len(tokens) > 0 && slices.ContainsFunc(tokens, func(t token) bool { return t.branch != tokens[0].branch })
}

// text writes the parameters' types.
func (k *cKernel) text() string {
	var all []string
	for _, p := range k.params {
		all = append(all, p.typ+strings.Repeat("*", p.stars))
	}
	return strings.Join(all, ", ")
}

// split splits tokens at commas outside brackets.
func split(tokens []token) (parts [][]token) {
	if len(tokens) == 0 {
		return nil
	}
	depth, from := 0, 0
	for i, t := range tokens {
		switch t.text {
		case "(", "[", "{", "<":
			depth++
		case ")", "]", "}", ">":
			depth--
		case ",":
			if depth <= 0 {
				parts, from = append(parts, tokens[from:i]), i+1
			}
		}
	}
	return append(parts, tokens[from:])
}

// qualifiers are words that do not change the bytes of a parameter or a variable.
var qualifiers = map[string]bool{
	"const": true, "volatile": true, "__restrict__": true, "__restrict": true, "restrict": true, "__grid_constant__": true, "register": true,
	"struct": true, "union": true, "enum": true, "class": true, "typename": true, "static": true, "extern": true, "__constant__": true,
	"__device__": true, "__managed__": true, "constexpr": true, "inline": true, "__global": true,
	"constinit": true, "mutable": true, "thread_local": true, "__host__": true, "__inline__": true, "__forceinline__": true, "__weak__": true,
}

// keywords are types, or words in the names of types.
var keywords = map[string]bool{
	"unsigned": true, "signed": true, "char": true, "short": true, "int": true, "long": true, "float": true, "double": true, "bool": true,
	"void": true, "_Bool": true,
}

// parseParam reads a parameter.
func parseParam(tokens []token) cParam {
	c := cParam{text: text(tokens)}
	if i := slices.IndexFunc(tokens, func(t token) bool { return t.text == "=" }); i >= 0 {
		tokens = tokens[:i] // remove a default value
	}
	var words []string // words of the type and, last, the name
	named := false     // the last word is the name
	for i := 0; i < len(tokens); i++ {
		switch t := tokens[i].text; {
		case qualifiers[t]:
		case t == "*":
			c.stars++
			if named = false; len(words) == 0 {
				c.flaw = "it has no type"
			}
		case t == "[": // an array parameter is a pointer
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
	c.typ = strings.TrimPrefix(strings.TrimPrefix(strings.TrimPrefix(c.typ, ":: "), "cuda::std::"), "std::")
	if c.typ == "" && c.flaw == "" {
		c.flaw = "it has no type"
	}
	return c
}

// text joins tokens as a program would write them.
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

// variable reads a declaration of device variables. It ignores functions and declarations without a
// name.
func (p *parser) variable(decl []token) {
	words, unnamed := withoutBody(plainWords(decl))
	first := true
	var base []token
	for _, part := range declarators(words) {
		if has(part, "(") { // it is a function
			return
		}
		v := &cVariable{count: 1, constant: has(decl, "__constant__")}
		constant := has(decl, "const") && !has(decl, "*") && !has(decl, "extern")
		v.hidden = constant || has(decl, "static") || has(decl, "constexpr")
		var kept []token
		for i := 0; i < len(part); i++ {
			if part[i].text != "[" {
				kept = append(kept, part[i])
				continue
			}
			n := closing("[", part[i+1:])
			count := int64(0)
			if n == 2 { // a single token stands between the brackets
				digits := strings.TrimRight(strings.ReplaceAll(part[i+1].text, "'", ""), "uUlLzZ")
				count, _ = strconv.ParseInt(digits, 0, 32)
			}
			v.count = int(min(int64(v.count)*count, 1<<31-1))
			i += n
		}
		switch {
		case first:
			base = baseType(kept)
		default:
			kept = append(slices.Clone(base), kept...)
		}
		if branched(kept) {
			v.flaw = "parts of its declaration are in branches of #if: declare it once, outside of #if"
		}
		if unnamed {
			kept = append([]token{{text: "struct_"}}, kept...)
		}
		d := parseParam(kept)
		if d.name == "" {
			return
		}
		v.name, v.typ, v.stars, first = d.name, d.typ, d.stars, false
		if unnamed {
			v.typ, v.flaw = "", "its type has no name: give it one, and say by -type what it is in Go"
		}
		p.addVariable(v)
	}
}

// addVariable adds a variable, or merges it with an earlier declaration.
func (p *parser) addVariable(v *cVariable) {
	for _, had := range p.variables {
		if had.name != v.name {
			continue
		}
		if had.typ != v.typ || had.stars != v.stars {
			had.flaw = "it is declared twice, differently: declare it once, outside of #if"
		}
		switch {
		case had.count == 0:
			had.count = v.count
		case v.count != 0 && v.count != had.count:
			had.count = -1 // unknown
		}
		return
	}
	p.variables = append(p.variables, v)
}

// declarators splits a declaration at its commas and removes initial values.
func declarators(words []token) (parts [][]token) {
	var part []token
	angle, value := 0, false
	for i := 0; i < len(words); i++ {
		t := words[i]
		switch {
		case t.text == "(" || t.text == "[":
			n := closing(t.text, words[i+1:])
			if !value {
				part = append(part, words[i:i+1+n]...)
			}
			i += n
			continue
		case t.text == "," && angle <= 0:
			parts, part, value = append(parts, part), nil, false
			continue
		case value:
			continue
		case t.text == "=" || t.text == braces:
			value = true
			continue
		case t.text == "<":
			angle++
		case t.text == ">":
			angle--
		}
		part = append(part, t)
	}
	return append(parts, part)
}

// baseType returns the tokens that all declarators of a declaration share.
func baseType(tokens []token) []token {
	n := len(tokens)
	for i, t := range tokens {
		if t.text == "*" || t.text == "&" {
			return tokens[:i]
		}
	}
	return tokens[:max(n-1, 0)]
}

// withoutBody removes the body of a type defined in a declaration. It reports whether the type has
// no name.
func withoutBody(words []token) ([]token, bool) {
	at := slices.IndexFunc(words, func(t token) bool {
		return t.text == "struct" || t.text == "class" || t.text == "union" || t.text == "enum"
	})
	body := slices.IndexFunc(words, func(t token) bool { return t.text == braces })
	if at < 0 || body < at {
		return words, false
	}
	name := words[at+1 : body]
	for i, t := range name {
		if t.text == ":" { // a base class follows
			name = name[:i]
			break
		}
	}
	name = slices.DeleteFunc(slices.Clone(name), func(t token) bool { return qualifiers[t.text] || t.text == "final" })
	if len(name) > 1 { // struct P p{}
		return words, false
	}
	return slices.Concat(words[:at], name, words[body+1:]), len(name) == 0
}

// typedef reads the tokens after the word typedef.
func (p *parser) typedef(decl []token) {
	words, unnamed := withoutBody(plainWords(decl))
	if unnamed {
		return // the type has no other name
	}
	var base []token
	for i, part := range declarators(words) {
		if i == 0 {
			base = baseType(part)
		} else {
			part = append(slices.Clone(base), part...)
		}
		switch open := slices.IndexFunc(part, func(t token) bool { return t.text == "(" || t.text == "[" }); {
		case open < 0:
			if d := parseParam(part); d.name != "" {
				p.setAlias(d.name, cAlias{d.typ, d.stars, d.flaw})
			}
		case part[open].text == "[" && open > 0:
			p.setAlias(part[open-1].text, cAlias{flaw: "is an array"})
		default: // a function, or a pointer to one: (*name)(…)
			for _, t := range part[open+1:] {
				if isName(t.text) {
					p.setAlias(t.text, cAlias{flaw: "is a function or a pointer to one"})
					break
				}
			}
		}
	}
}

// alias records another name of a type.
func (p *parser) alias(name string, tokens []token) {
	d := parseParam(append(slices.Clone(tokens), token{text: "name"}))
	switch {
	case len(tokens) == 0 || branched(tokens):
		d.flaw = "has several meanings, or depends on #if"
	case has(tokens, "["):
		d.flaw = "is an array"
	case d.name != "name" && d.flaw == "":
		d.flaw = "is no type that kernelgen understands"
	}
	p.setAlias(name, cAlias{d.typ, d.stars, d.flaw})
}

func (p *parser) setAlias(name string, a cAlias) {
	if a.typ == name && a.stars == 0 { // typedef struct P P
		return
	}
	if had := p.aliases[name]; had != nil && *had != a {
		a = cAlias{flaw: "has several meanings, or depends on #if"}
	}
	p.aliases[name] = &a
}

// deepestAlias limits how many aliases resolve follows.
const deepestAlias = 32

// resolve follows aliases up to a name that the function known accepts, or that is no alias. stars
// are the pointers of the type.
func (s *source) resolve(typ string, stars int, known func(string) bool) (string, int, error) {
	from := typ
	for range deepestAlias {
		if known(typ) {
			return typ, stars, nil
		}
		a := s.aliases[typ]
		if i := strings.LastIndex(typ, "::"); a == nil && i >= 0 {
			a = s.aliases[typ[i+2:]]
		}
		switch {
		case a == nil:
			return typ, stars, nil
		case a.flaw != "":
			return "", 0, fmt.Errorf("the type %s %s: give its Go type by -type '%[1]s=GoType'", typ, strings.TrimPrefix(a.flaw, "it "))
		}
		typ, stars = a.typ, stars+a.stars
	}
	return "", 0, fmt.Errorf("the type %s is defined by itself", from)
}
