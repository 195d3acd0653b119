package main

import (
	"fmt"
	"io"
	"strings"
	"text/tabwriter"

	"github.com/puregpu/puregpu/symbols"
)

func writeRecords(w io.Writer, records []record) error {
	p := &printer{w: w}
	for i, r := range records {
		if i > 0 {
			p.line("")
		}
		p.record(&r)
	}
	return p.err
}

func writeSets(w io.Writer, sets []set) error {
	t := tabwriter.NewWriter(w, 0, 8, 2, ' ', 0)
	for _, s := range sets {
		fmt.Fprintf(t, "%s\t%s\tsince %v\t%d\t%s\n", s.Library, s.Name, s.Since, s.Functions, s.Doc)
	}
	return t.Flush() // Flush also returns an error of an earlier write
}

// A printer writes lines and keeps the first error.
type printer struct {
	w   io.Writer
	err error
}

func (p *printer) line(format string, args ...any) {
	if p.err == nil {
		_, p.err = fmt.Fprintf(p.w, format+"\n", args...)
	}
}

// table writes rows with aligned columns.
func (p *printer) table(rows [][]string) {
	if p.err != nil {
		return
	}
	t := tabwriter.NewWriter(p.w, 0, 8, 2, ' ', 0)
	for _, r := range rows {
		fmt.Fprintf(t, "    %s\n", strings.TrimRight(strings.Join(r, "\t"), "\t"))
	}
	p.err = t.Flush()
}

func (p *printer) record(r *record) {
	name := r.Name
	if name == "" {
		name = "(no name)"
	}
	p.line("%s (%s %s)", name, r.Library, r.Kind)
	if r.Summary != "" {
		p.line("  %s", r.Summary)
	}
	if r.Note != nil {
		p.line("  kind: %s (%s)", r.Note.Kind, r.Note.Reason)
	}
	switch {
	case r.Function != nil:
		p.function(r.Function)
	case r.Handle != nil:
		p.span(r.Handle.Since, r.Handle.Until)
		if r.Handle.Tag == "void" {
			p.line("  void *, opaque")
		} else {
			p.line("  struct %s *, opaque", r.Handle.Tag)
		}
	case r.Scalar != nil:
		p.span(r.Scalar.Since, r.Scalar.Until)
		p.line("  %s", r.Scalar.Type)
	case r.Alias != nil:
		p.line("  another name of %s", r.Alias.Type)
	case r.Enum != nil:
		p.enum(r.Enum)
	case r.Value != nil:
		p.span(r.Value.Since, r.Value.Until)
		if r.Value.Lib != "" {
			p.line("  only in %s", r.Value.Lib)
		}
		hex := ""
		if r.Value.Value > 9 {
			hex = fmt.Sprintf(" (%#x)", r.Value.Value)
		}
		p.line("  %d%s, of %s", r.Value.Value, hex, owner(r.Value.Enum))
	case r.Struct != nil:
		p.structure(r.Struct)
	case r.Callback != nil:
		p.span(r.Callback.Since, r.Callback.Until)
		p.line("  returns %s", r.Callback.Result)
		var rows [][]string
		for _, a := range r.Callback.Params {
			rows = append(rows, []string{a.Name, a.Type})
		}
		p.table(rows)
	case r.Constant != nil:
		p.span(r.Constant.Since, r.Constant.Until)
		p.line("  %s %s", r.Constant.Type, constant(r.Constant))
	}
}

func owner(enum string) string {
	if enum == "" {
		return "an enum without a name"
	}
	return "enum " + enum
}

func constant(c *symbols.Constant) string {
	if c.Type == "string" {
		return fmt.Sprintf("%q", c.Value)
	}
	return c.Value
}

func (p *printer) span(since, until symbols.Version) {
	if !since.IsZero() {
		p.line("  since %v", since)
	}
	if !until.IsZero() {
		p.line("  until %v; newer headers do not have it", until)
	}
}

func (p *printer) function(f *function) {
	if f.Declaration != "" {
		p.line("  Go: %s", strings.Join(strings.Fields(f.Declaration), " "))
	}
	if f.NameReason != "" {
		p.line("  Go name: %s", f.NameReason)
	}
	switch {
	case f.Current && f.API != f.Symbol:
		p.line("  %s means this ABI", f.API)
	case !f.Current:
		p.line("  an ABI of %s, not what the name means", f.API)
	}
	p.span(f.Since, f.Until)
	if f.Deprecated {
		p.line("  deprecated")
	}
	if f.Lib != "" {
		p.line("  only in %s", f.Lib)
	}
	if len(f.Twins) > 0 {
		p.line("  per-thread-stream twins: %s", strings.Join(f.Twins, ", "))
	}
	if s := f.Set; s == nil {
		p.line("  not bound: %s", f.Reason)
	} else {
		required := ""
		if s.Required {
			required = ", required"
		}
		p.line("  set %s (since %v%s): %s", s.Name, s.Since, required, s.Doc)
		if f.Callback {
			p.line("  may call back before it returns")
		}
		if f.Registers {
			p.line("  registers a function that later calls may run")
		}
		if f.Reason != "" {
			p.line("  overlay: %s", f.Reason)
		}
	}
	p.line("  returns %s", f.Result)
	var rows [][]string
	for _, a := range f.Params {
		dir := a.Dir
		if dir == "" {
			dir = symbols.In
		}
		reason := ""
		if a.Reason != "" {
			reason = "(" + a.Reason + ")"
		}
		rows = append(rows, []string{a.Name, a.Type, string(dir), strings.Join(a.says(), ", "), reason})
	}
	p.table(rows)
}

// says lists the facts about a parameter besides its type and direction.
func (a *param) says() []string {
	var out []string
	if a.Unit != "" {
		out = append(out, a.Unit)
	}
	if a.Text > 0 {
		out = append(out, fmt.Sprintf("text of up to %d bytes", a.Text))
	}
	switch {
	case strings.HasPrefix(a.Len, "*"):
		out = append(out, "length in and out through "+a.Len[1:])
	case a.Len != "":
		out = append(out, "length in "+a.Len)
	case a.Fixed > 0:
		out = append(out, fmt.Sprintf("array of %d", a.Fixed))
	case a.Size != "":
		out = append(out, "length returned by "+a.Size)
	case a.Slice:
		out = append(out, "array of a length that no parameter tells")
	}
	if a.Null {
		out = append(out, "NULL allowed")
	}
	if a.GoType != "" {
		out = append(out, "Go "+a.GoType)
	}
	return out
}

func (p *printer) enum(e *symbols.Enum) {
	p.span(e.Since, e.Until)
	if e.Tag != "" {
		p.line("  enum %s", e.Tag)
	}
	var rows [][]string
	for _, v := range e.Values {
		row := []string{v.Name, fmt.Sprint(v.Value), ""}
		if !v.Since.IsZero() {
			row[2] = "since " + v.Since.String()
		}
		if !v.Until.IsZero() {
			row[2] = strings.TrimSpace(row[2] + " until " + v.Until.String())
		}
		if v.Lib != "" {
			row[2] = strings.TrimSpace(row[2] + " only in " + v.Lib)
		}
		rows = append(rows, row)
	}
	p.table(rows)
}

func (p *printer) structure(s *symbols.Struct) {
	p.span(s.Since, s.Until)
	if s.Tag != "" {
		p.line("  tag %s", s.Tag)
	}
	p.line("  %d bytes, aligned to %d", s.Size, s.Align)
	var rows [][]string
	for _, f := range s.Fields {
		row := []string{fmt.Sprint(f.Offset), f.Name, f.Type, fmt.Sprintf("%d bytes", f.Size)}
		if f.Bits > 0 {
			row[3] = fmt.Sprintf("bits %d to %d of %d bytes", f.BitOffset, f.BitOffset+f.Bits-1, f.Size)
		}
		if f.Anonymous {
			row = append(row, "anonymous")
		}
		rows = append(rows, row)
	}
	p.table(rows)
}
