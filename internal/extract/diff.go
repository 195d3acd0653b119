package extract

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/puregpu/puregpu/symbols"
)

func DiffFiles(w io.Writer, oldFile, newFile string) error {
	var tables [2]symbols.Table
	for i, name := range []string{oldFile, newFile} {
		text, err := os.ReadFile(name)
		if err != nil {
			return err
		}
		if err := json.Unmarshal(text, &tables[i]); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
	}
	return Diff(w, &tables[0], &tables[1])
}

// Diff prints one line for every record that was added, removed or changed.
func Diff(w io.Writer, a, b *symbols.Table) error {
	p := &printer{w: w}
	p.line("%s %v -> %v", b.Library, a.Version, b.Version)
	compare(p, "function", a.Functions, b.Functions, func(f symbols.Function) string { return f.Symbol })
	compare(p, "struct", a.Structs, b.Structs, func(s symbols.Struct) string { return s.Name })
	compare(p, "enum", a.Enums, b.Enums, func(e symbols.Enum) string { return e.Name })
	compare(p, "enumerator", enumerators(a), enumerators(b), func(v symbols.EnumValue) string { return v.Name })
	compare(p, "handle", a.Handles, b.Handles, func(h symbols.Handle) string { return h.Name })
	compare(p, "scalar", a.Scalars, b.Scalars, func(s symbols.Scalar) string { return s.Name })
	compare(p, "alias", a.Aliases, b.Aliases, func(s symbols.Alias) string { return s.Name })
	compare(p, "callback", a.Callbacks, b.Callbacks, func(c symbols.Callback) string { return c.Name })
	compare(p, "constant", a.Constants, b.Constants, func(c symbols.Constant) string { return c.Name })
	return p.err
}

func enumerators(t *symbols.Table) (out []symbols.EnumValue) {
	for _, e := range t.Enums {
		out = append(out, e.Values...)
	}
	return out
}

type printer struct {
	w   io.Writer
	err error
}

func (p *printer) line(format string, args ...any) {
	if _, err := fmt.Fprintf(p.w, format+"\n", args...); err != nil && p.err == nil {
		p.err = err
	}
}

func compare[T any](p *printer, kind string, a, b []T, name func(T) string) {
	index := func(list []T) map[string]string {
		m := map[string]string{}
		for _, x := range list {
			text, err := json.Marshal(withoutValues(x))
			if err != nil && p.err == nil {
				p.err = err
			}
			m[name(x)] = string(text)
		}
		return m
	}
	was, is := index(a), index(b)
	for _, x := range a {
		if _, ok := is[name(x)]; !ok {
			p.line("- %s %s", kind, name(x))
		}
	}
	for _, x := range b {
		switch text, ok := was[name(x)]; {
		case !ok:
			p.line("+ %s %s%s", kind, name(x), declaration(x))
		case text != is[name(x)]:
			p.line("~ %s %s\n    was %s\n    is  %s", kind, name(x), text, is[name(x)])
		}
	}
}

// declaration tells of a function what its header says: what it returns and takes, since when there is one.
func declaration(x any) string {
	f, ok := x.(symbols.Function)
	if !ok {
		return ""
	}
	var params []string
	for _, p := range f.Params {
		text := symbols.CDeclaration(p.Type, p.Name)
		if p.Dir != "" {
			text += " [" + string(p.Dir) + map[bool]string{true: ", guessed"}[p.Guess] + "]"
		}
		params = append(params, text)
	}
	s := fmt.Sprintf(": %s (%s)", f.Result, strings.Join(params, ", "))
	if !f.Since.IsZero() {
		s += ", since " + f.Since.String()
	}
	return s
}

// withoutValues drops an enumeration's values, which are compared one by one.
func withoutValues(x any) any {
	if e, ok := x.(symbols.Enum); ok {
		e.Values = nil
		return e
	}
	return x
}
