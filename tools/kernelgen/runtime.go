package main

import (
	"errors"
	"fmt"
	"slices"
	"strings"
)

// A runtimeSource is a source that the program embeds and compiles at run time.
type runtimeSource struct {
	file    string // the path in the embed directive
	headers []runtimeHeader
	options []string
	names   []string // expressions of kernels that are not extern "C"
}

// A runtimeHeader is a file that the source includes in quotes.
type runtimeHeader struct{ name, file string }

// addText embeds the source and the headers that kernelgen found, for compiling at run time.
func (g *generator) addText(m *module, at, file string) error {
	name, err := g.embeddable(at, file)
	if err != nil {
		return err
	}
	m.text = &runtimeSource{file: name, options: g.options}
	for _, h := range g.headers {
		if h.file, err = g.embeddable(at, h.file); err != nil {
			return err
		}
		had := slices.IndexFunc(m.text.headers, func(o runtimeHeader) bool { return o.name == h.name })
		switch {
		case had < 0:
			m.text.headers = append(m.text.headers, h)
		case m.text.headers[had].file != h.file:
			return fmt.Errorf("%s: both %s and %s are included as %q, and a name can stand for one file only at run time: rename one of them", file, m.text.headers[had].file, h.file, h.name)
		}
	}
	for _, k := range m.kernels {
		if !k.c {
			m.text.names = append(m.text.names, k.name)
		}
	}
	return nil
}

// addUncompiled adds the kernels and variables that a source declares. There is no code to compare
// them with.
func (g *generator) addUncompiled(m *module, file string, s *source) error {
	if len(s.problems) > 0 {
		return errors.New(s.problems[0])
	}
	for _, c := range s.kernels {
		if g.skip[c.name] || g.skip[c.full()] {
			continue
		}
		fail := func(err error) error { return fmt.Errorf("%s: kernel %s: %w", c.at, c.full(), err) }
		instances, err := g.expressions(c)
		if err != nil {
			return fail(fmt.Errorf("%w. Or leave it out by -skip %s", err, c.full()))
		}
		for _, one := range instances {
			k, err := g.fromC(one, "", nil)
			if err != nil {
				return fail(err)
			}
			m.kernels = append(m.kernels, k)
		}
	}
	for _, name := range g.instances {
		if !g.used[name] {
			return fmt.Errorf("-instance '%s': %s has no such template of a kernel", name, file)
		}
	}
	for _, v := range s.variables {
		switch {
		case g.skip[v.name]:
			continue
		case v.hidden:
			m.notes = append(m.notes, fmt.Sprintf("variable %s of %s is left out: it is static or const, so that it has no name in the code", v.name, file))
			continue
		}
		out, err := g.variable(file, v)
		if err != nil {
			return err
		}
		out.bytes = uint64(max(v.count, 0)) * uint64(out.elem.size)
		if out.bytes > 0 {
			out.doc = fmt.Sprintf("%s, of %d bytes", out.doc, out.bytes)
		}
		m.globals = append(m.globals, out)
	}
	return nil
}

// expressions returns a kernel once for each name that it has in the code. A template has one name
// for each instance.
func (g *generator) expressions(c *cKernel) (all []*cKernel, err error) {
	switch {
	case c.flaw != "":
		return nil, errors.New(c.flaw)
	case c.template == nil && c.c:
		return []*cKernel{c}, nil
	case strings.Contains(c.space, unnamed):
		return nil, errors.New("it is in a namespace without a name, so the program cannot name it: move it out")
	case c.template == nil:
		one := *c
		one.name = c.full()
		return []*cKernel{&one}, nil
	}
	for _, name := range g.instances {
		if base, _, _ := strings.Cut(name, "<"); strings.TrimSpace(base) != c.full() {
			continue
		}
		g.used[name] = true
		one, err := c.instance(name)
		if err != nil {
			return nil, fmt.Errorf("-instance '%s': %w", name, err)
		}
		all = append(all, one)
	}
	if all == nil {
		return nil, fmt.Errorf("it is a template: name each instance that the program launches, by -instance '%s<float>'", c.full())
	}
	return all, nil
}

// A templateParams has the parameters of a template.
type templateParams struct {
	params []templateParam
	flaw   string // why kernelgen cannot derive the parameters of an instance
}

// A templateParam is a parameter of a template, and its default.
type templateParam struct {
	name     string
	defaults []token
}

// readTemplate reads the parameters of a template from the tokens before the kernel.
func readTemplate(words []token) *templateParams {
	t := &templateParams{}
	at := slices.IndexFunc(words, func(t token) bool { return t.text == "template" })
	inside := angled(words[at+1:])
	if inside == nil {
		t.flaw = "kernelgen finds no parameters of the template"
		return t
	}
	for _, part := range split(inside) {
		if has(part, ".") {
			t.flaw = "it is a template with any number of parameters: write one with as many as it has"
		}
		var p templateParam
		if i := slices.IndexFunc(part, func(t token) bool { return t.text == "=" }); i >= 0 {
			part, p.defaults = part[:i], part[i+1:]
		}
		if n := len(part); n > 1 {
			p.name = part[n-1].text
		}
		t.params = append(t.params, p)
	}
	return t
}

// angled returns the tokens inside the angle brackets at the beginning, or nil if there are none.
func angled(tokens []token) []token {
	depth := 0
	for i := 0; i < len(tokens); i++ {
		switch t := tokens[i].text; t {
		case "(", "[", "{":
			i += closing(t, tokens[i+1:])
		case "<":
			depth++
		case ">":
			if depth--; depth == 0 {
				return tokens[1:i]
			}
		}
		if depth == 0 {
			return nil
		}
	}
	return nil
}

// instance returns the instance of a template for an expression.
func (k *cKernel) instance(expression string) (*cKernel, error) {
	t := k.template
	if t.flaw != "" {
		return nil, errors.New(t.flaw)
	}
	var x lexer
	x.lex(expression, "")
	at := slices.IndexFunc(x.tokens, func(t token) bool { return t.text == "<" })
	var args [][]token
	if at >= 0 {
		inside := angled(x.tokens[at:])
		if inside == nil || at+len(inside)+2 != len(x.tokens) {
			return nil, errors.New("it does not end with the > of its arguments")
		}
		args = split(inside)
	}
	if len(args) > len(t.params) {
		return nil, fmt.Errorf("%d arguments, and the template has %d parameters", len(args), len(t.params))
	}
	values := map[string][]token{}
	replace := func(tokens []token) (out []token) {
		for _, t := range tokens {
			if value, ok := values[t.text]; ok {
				out = append(out, value...)
			} else {
				out = append(out, t)
			}
		}
		return out
	}
	for i, p := range t.params {
		switch {
		case i < len(args):
			values[p.name] = args[i]
		case p.defaults != nil:
			values[p.name] = replace(p.defaults)
		default:
			return nil, fmt.Errorf("there is no argument for the parameter %s of the template", p.name)
		}
	}
	delete(values, "") // drop parameters without a name
	one := &cKernel{name: expression, at: k.at, space: k.space}
	for _, part := range k.inside {
		one.params = append(one.params, parseParam(replace(part)))
	}
	return one, nil
}
