package extract

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/puregpu/puregpu/symbols"
)

// DiffFiles prints the differences between the tables in two files.
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

// Diff prints the differences between two tables: the records that were removed, changed and added.
// For a changed record it prints only the parts that differ. It also compares the releases in which
// records exist, and their declarations in other releases.
func Diff(w io.Writer, a, b *symbols.Table) error {
	return diff(w, a, b, true, nil)
}

// DiffRelease prints the differences between the headers of a release and of the release before it.
// The oldest release is compared with the next one. DiffRelease leaves out constants that only
// state the release.
func DiffRelease(w io.Writer, d *symbols.Description, t *symbols.Table, v symbols.Version) error {
	i := slices.Index(t.Releases, v)
	if i < 0 || len(t.Releases) < 2 {
		_, err := fmt.Fprintf(w, "%s %v: there is no other release to compare it with\n", t.Library, v)
		return err
	}
	beside := t.Releases[max(i-1, 0)]
	if i == 0 {
		beside = t.Releases[1]
	}
	a, b := t.At(beside), t.At(v)
	tell := map[string]int{} // by constant: in how many of the two releases it only states the release
	for _, side := range []*symbols.Table{a, b} {
		for _, c := range side.Constants {
			if tellsRelease(d, c, side.Version) {
				tell[c.Name]++
			}
		}
	}
	return diff(w, a, b, false, func(c symbols.Constant) bool { return tell[c.Name] == 2 })
}

// tellsRelease reports whether a constant of release v only states the release.
func tellsRelease(d *symbols.Description, c symbols.Constant, v symbols.Version) bool {
	for _, m := range d.Headers.Version.Macros {
		prefix := m[:strings.LastIndexByte(m, '_')+1]
		if c.Name == m || c.Name == prefix+"BUILD" || c.Name == prefix+"SUFFIX" {
			return true
		}
	}
	n, err := strconv.Atoi(c.Value)
	return err == nil && strings.Contains(c.Name, "VERSION") && len(d.Version.Numbers) > 0 && (n == d.Version.Encode(v) || n == v.Major)
}

// diff prints the differences between two tables. If history is set, it also compares the parts
// about releases (part.history). It leaves out each constant for which skip returns true, unless
// skip is nil.
func diff(w io.Writer, a, b *symbols.Table, history bool, skip func(symbols.Constant) bool) error {
	p := &printer{w: w, history: history}
	p.line("%s %v -> %v", b.Library, a.Version, b.Version)
	compare(p, "function", a.Functions, b.Functions, functionRecord)
	compare(p, "struct", a.Structs, b.Structs, structRecord)
	compare(p, "enum", a.Enums, b.Enums, enumRecord)
	compare(p, "handle", a.Handles, b.Handles, handleRecord)
	compare(p, "scalar", a.Scalars, b.Scalars, func(s symbols.Scalar) record {
		r := record{name: s.Name, text: s.Type, notes: dates(s.Since, s.Until, s.Lib)}
		for _, o := range s.Others {
			r.notes = append(r.notes, inSpan(o.Span, o.Type))
		}
		return r
	})
	compare(p, "alias", a.Aliases, b.Aliases, func(s symbols.Alias) record { return record{name: s.Name, text: s.Type} })
	compare(p, "callback", a.Callbacks, b.Callbacks, func(c symbols.Callback) record {
		r := record{name: c.Name, text: declared(c.Result, c.Params), notes: append(dates(c.Since, c.Until, c.Lib), set("function type", c.Func)...)}
		for _, o := range c.Others {
			r.notes = append(r.notes, inSpan(o.Span, declared(o.Result, o.Params)))
		}
		return r
	})
	constants := [2][]symbols.Constant{slices.Clone(a.Constants), slices.Clone(b.Constants)}
	if skip != nil {
		for i, list := range constants {
			constants[i] = slices.DeleteFunc(list, skip)
		}
	}
	compare(p, "constant", constants[0], constants[1], constantRecord)
	if p.lines == 1 {
		p.line("nothing differs")
	}
	return p.err
}

// A record is the printed form of an entry of a table.
type record struct {
	name  string
	text  string // the declaration, in one line
	parts []part // members, in the order of the header
	notes []part // attributes of the entry
}

// A part is a named part of a record.
type part struct {
	name, text string
	history    bool // the part says in which releases the entry exists, or how another release declares it
}

func (p part) String() string { return strings.TrimSpace(p.name + " " + p.text) }

func functionRecord(f symbols.Function) record {
	r := record{name: f.Symbol, text: declared(f.Result, f.Params)}
	if f.API != f.Symbol {
		r.notes = append(r.notes, part{name: "declared as", text: f.API})
	}
	r.notes = append(r.notes, set("deprecated", f.Deprecated)...)
	r.notes = append(r.notes, set("not exported by the library", f.Absent)...)
	if f.API != f.Symbol || !f.Current {
		r.notes = append(r.notes, set("what the plain name means", f.Current)...)
	}
	if len(f.Twins) > 0 {
		r.notes = append(r.notes, part{name: "twins", text: strings.Join(f.Twins, ", ")})
	}
	r.notes = append(r.notes, dates(f.Since, f.Until, f.Lib)...)
	for _, o := range f.Others {
		r.notes = append(r.notes, inSpan(o.Span, cmp.Or(o.Why, declared(o.Result, o.Params))))
	}
	return r
}

func structRecord(s symbols.Struct) record {
	kind := ""
	if s.Union {
		kind = "union of "
	}
	r := record{name: s.Name, text: kind + size(s.Size, s.Align), parts: fieldParts(s.Fields), notes: dates(s.Since, s.Until, s.Lib)}
	if s.TagOnly {
		r.notes = append(r.notes, part{name: "known by its tag only"})
	}
	for _, o := range s.Others {
		texts := []string{size(o.Size, o.Align)}
		for _, f := range fieldParts(o.Fields) {
			texts = append(texts, f.String())
		}
		r.notes = append(r.notes, inSpan(o.Span, strings.Join(texts, ", ")))
	}
	for _, o := range s.Opaque {
		r.notes = append(r.notes, inSpan(o, "opaque"))
	}
	return r
}

func size(size, align int) string { return fmt.Sprintf("%d bytes, aligned to %d", size, align) }

func fieldParts(fields []symbols.Field) (out []part) {
	for _, f := range fields {
		text := fmt.Sprintf("%s at %d", f.Type, f.Offset)
		if f.Bits > 0 {
			text += fmt.Sprintf(", %d bits from bit %d", f.Bits, f.BitOffset)
		} else {
			text += fmt.Sprintf(", %d bytes", f.Size)
		}
		if f.Anonymous {
			text += ", anonymous"
		}
		out = append(out, part{name: f.Name + ":", text: text})
	}
	return out
}

func enumRecord(e symbols.Enum) record {
	r := record{name: e.Name, text: e.CType(), notes: dates(e.Since, e.Until, "")}
	if e.Name == "" && len(e.Values) > 0 {
		r.name = "of " + e.Values[0].Name
	}
	for _, o := range e.Others {
		r.notes = append(r.notes, inSpan(o.Span, (&symbols.Enum{Size: o.Size, Signed: o.Signed}).CType()))
	}
	for _, v := range e.Values {
		r.parts = append(r.parts, part{name: v.Name + " =", text: fmt.Sprint(v.Value)})
		for _, n := range dates(v.Since, v.Until, v.Lib) {
			r.notes = append(r.notes, part{name: v.Name + " " + n.name, text: n.text, history: true})
		}
		for _, o := range v.Others {
			n := inSpan(o.Span, fmt.Sprint(o.Value))
			n.name = v.Name + " " + n.name
			r.notes = append(r.notes, n)
		}
	}
	return r
}

func handleRecord(h symbols.Handle) record {
	text := "struct " + h.Tag + " *"
	if h.Struct {
		text = "struct " + h.Tag
	}
	return record{name: h.Name, text: text, notes: dates(h.Since, h.Until, h.Lib)}
}

func constantRecord(c symbols.Constant) record {
	r := record{name: c.Name, text: constant(c.Type, c.Value), notes: dates(c.Since, c.Until, c.Lib)}
	for _, o := range c.Others {
		r.notes = append(r.notes, inSpan(o.Span, constant(o.Type, o.Value)))
	}
	return r
}

func constant(typ, value string) string {
	if typ == "string" {
		value = strconv.Quote(value)
	}
	return fmt.Sprintf("%s (%s)", value, typ)
}

// declared writes a function's result and parameters as in its header. Other facts about a
// parameter, such as which side writes the memory, follow the parameter.
func declared(result string, params []symbols.Param) string {
	var list []string
	for _, p := range params {
		text := symbols.CDeclaration(p.Type, p.Name)
		var marks []string
		if p.Dir != "" {
			marks = append(marks, string(p.Dir))
		}
		if p.Guess {
			marks = append(marks, "guessed")
		}
		if p.Null {
			marks = append(marks, "may be NULL")
		}
		if p.Unit != "" {
			marks = append(marks, "in "+p.Unit)
		}
		if len(marks) > 0 {
			text += " [" + strings.Join(marks, ", ") + "]"
		}
		list = append(list, text)
	}
	return fmt.Sprintf("%s (%s)", result, strings.Join(list, ", "))
}

func dates(since, until symbols.Version, lib string) (out []part) {
	if !since.IsZero() {
		out = append(out, part{name: "since", text: since.String(), history: true})
	}
	if !until.IsZero() {
		out = append(out, part{name: "until", text: until.String(), history: true})
	}
	if lib != "" {
		out = append(out, part{name: "only in", text: lib})
	}
	return out
}

func inSpan(s symbols.Span, text string) part {
	return part{name: fmt.Sprintf("in %v to %v:", s.Since, s.Until), text: text, history: true}
}

func set(name string, is bool) []part {
	if !is {
		return nil
	}
	return []part{{name: name}}
}

type printer struct {
	w       io.Writer
	history bool
	lines   int
	err     error
}

func (p *printer) line(format string, args ...any) {
	p.lines++
	if _, err := fmt.Fprintf(p.w, format+"\n", args...); err != nil && p.err == nil {
		p.err = err
	}
}

// compare prints the records of a kind that were removed, changed and added.
func compare[T any](p *printer, kind string, a, b []T, of func(T) record) {
	records := func(list []T) (all []record, index map[string]record) {
		index = map[string]record{}
		for _, x := range list {
			r := of(x)
			if !p.history {
				r.notes = slices.DeleteFunc(r.notes, func(n part) bool { return n.history })
			}
			all, index[r.name] = append(all, r), r
		}
		return all, index
	}
	old, was := records(a)
	now, is := records(b)
	for _, r := range old {
		if _, ok := is[r.name]; !ok {
			p.line("- %s %s: %s", kind, r.name, r.text)
		}
	}
	for _, r := range now {
		if o, ok := was[r.name]; ok {
			p.changed(kind, o, r)
		}
	}
	for _, r := range now {
		if _, ok := was[r.name]; ok {
			continue
		}
		texts := []string{r.text}
		for _, n := range r.notes {
			texts = append(texts, n.String())
		}
		p.line("+ %s %s: %s", kind, r.name, strings.Join(texts, ", "))
		for _, m := range r.parts {
			p.line("    %s", m)
		}
	}
}

// changed prints the parts in which two versions of a record differ. It prints nothing if the
// versions are equal.
func (p *printer) changed(kind string, a, b record) {
	var lines []string
	if a.text != b.text {
		if len(a.text)+len(b.text) > 70 {
			lines = append(lines, "was "+a.text, "is  "+b.text)
		} else {
			lines = append(lines, a.text+" -> "+b.text)
		}
	}
	lines = append(lines, differences(a.parts, b.parts)...)
	lines = append(lines, differences(a.notes, b.notes)...)
	if len(lines) == 1 && a.text != b.text && len(a.parts) == 0 && len(a.notes) == 0 {
		p.line("~ %s %s: %s", kind, b.name, lines[0])
		return
	}
	if len(lines) > 0 {
		p.line("~ %s %s", kind, b.name)
	}
	for _, l := range lines {
		p.line("    %s", l)
	}
}

// differences lists the parts that were removed, changed and added.
func differences(a, b []part) (out []string) {
	find := func(list []part, name string) (part, bool) {
		i := slices.IndexFunc(list, func(p part) bool { return p.name == name })
		if i < 0 {
			return part{}, false
		}
		return list[i], true
	}
	for _, x := range a {
		if _, ok := find(b, x.name); !ok {
			out = append(out, "- "+x.String())
		}
	}
	for _, y := range b {
		switch x, ok := find(a, y.name); {
		case !ok:
			out = append(out, "+ "+y.String())
		case x.text != y.text:
			out = append(out, fmt.Sprintf("~ %s %s -> %s", y.name, cmp.Or(x.text, "nothing"), cmp.Or(y.text, "nothing")))
		}
	}
	return out
}
