package symbols

import (
	"cmp"
	"fmt"
	"strings"
)

// CTypes writes a library's types as C declarations that need no header of a vendor, and
// assertions of the sizes and offsets of structs. Types taken from other libraries come first.
func (l *Library) CTypes() (string, error) { return l.cTypes(true) }

func (l *Library) cTypes(asserts bool) (string, error) {
	c := &cWriter{lib: l, asserts: asserts, aligns: map[string]int{}, done: map[string]bool{}, structs: map[string]bool{}}
	c.line("#include <stdbool.h>\n#include <stddef.h>\n#include <stdint.h>\n")
	if err := c.borrowed(); err != nil {
		return "", err
	}
	c.table(l.Table)
	return c.b.String(), nil
}

// table writes the types of a table.
func (c *cWriter) table(lib *Table) {
	for _, h := range lib.Handles {
		if h.Tag == "void" {
			c.line("typedef void *%s;", h.Name)
		} else {
			c.line("typedef struct %s *%s;", h.Tag, h.Name)
		}
		c.done[h.Name] = true
	}
	for _, s := range lib.Scalars {
		c.line("typedef %s %s;", s.Type, s.Name)
		c.aligns[s.Name] = c.align(s.Type)
		c.done[s.Name] = true
	}
	for _, e := range lib.Enums {
		if e.Name != "" {
			c.line("typedef %s %s;", e.CType(), e.Name)
			c.aligns[e.Name] = e.Bytes()
			c.done[e.Name] = true
		}
	}
	for _, cb := range lib.Callbacks { // declared as functions without parameters: only the size and alignment of the address matter
		c.line("typedef void (*%s)(void);", cName(cb.Name))
		c.done[cb.Name] = true
	}
	for _, s := range lib.Structs {
		word := map[bool]string{true: "union", false: "struct"}[s.Union]
		c.line("typedef %s %s %s;", word, cName(s.Name), cName(s.Name))
		c.structs[s.Name] = true
	}
	pending, aliases := lib.Structs, lib.Aliases
	for len(pending)+len(aliases) > 0 {
		before := len(pending) + len(aliases)
		aliases = c.aliases(aliases)
		pending = c.defineAll(pending)
		if len(pending)+len(aliases) == before {
			break // types that contain each other by value, which is not valid C
		}
	}
}

type cWriter struct {
	lib     *Library
	asserts bool
	b       strings.Builder
	aligns  map[string]int  // alignment of types; a type that is missing is aligned like a pointer
	done    map[string]bool // types that can be used by value so far
	structs map[string]bool // structs declared so far
}

func (c *cWriter) line(format string, args ...any) { fmt.Fprintf(&c.b, format+"\n", args...) }

// cName makes a C identifier of a record's name: the names of unnamed member types contain dots.
func cName(name string) string { return strings.ReplaceAll(name, ".", "__") }

// complete reports whether a type can be used by value at this point of the file.
func (c *cWriter) complete(ct CType) bool {
	_, _, builtin := Builtin(ct.Base)
	return builtin || c.done[ct.Base] || ct.Pointers > 0 && c.structs[ct.Base]
}

func (c *cWriter) aliases(list []Alias) (later []Alias) {
	for _, a := range list {
		ct, err := ParseType(a.Type)
		if c.done[a.Name] {
			continue
		}
		if err != nil || !c.complete(ct) {
			later = append(later, a)
			continue
		}
		c.line("typedef %s;", CDeclaration(a.Type, cName(a.Name)))
		c.done[a.Name] = true
		c.aligns[a.Name] = c.align(a.Type)
	}
	return later
}

func (c *cWriter) defineAll(list []Struct) (later []Struct) {
	for _, s := range list {
		ready := true
		for _, f := range s.Fields {
			ct, err := ParseType(f.Type)
			ready = ready && err == nil && c.complete(ct)
		}
		if !ready {
			later = append(later, s)
			continue
		}
		c.define(&s)
		c.done[s.Name] = true
	}
	return later
}

func (c *cWriter) define(s *Struct) {
	word := map[bool]string{true: "union", false: "struct"}[s.Union]
	c.line("%s %s {", word, cName(s.Name))
	note, _ := c.lib.TypeNote(s.Name)
	natural := s.Union || c.natural(s)
	end := 0 // the end of the members so far, in bits
	pad := func(to int) {
		for n := 0; !natural && end < to; end += n {
			n = min(to-end, 8-end%8)
			c.line("\tunsigned char : %d;", n)
		}
	}
	for i, f := range s.Fields {
		align := ""
		if note.Align > 0 && i == 0 {
			align = fmt.Sprintf("_Alignas(%d) ", note.Align)
		}
		decl := align + CDeclaration(f.Type, f.Name)
		pad(8*f.Offset + f.BitOffset)
		end = 8*f.Offset + f.BitOffset + 8*f.Size
		if f.Bits > 0 {
			decl += fmt.Sprintf(" : %d", f.Bits)
			end += f.Bits - 8*f.Size
		}
		c.line("\t%s;", decl)
	}
	pad(8 * s.Size)
	attribute := ""
	switch {
	case !natural:
		attribute = fmt.Sprintf(" __attribute__((packed, aligned(%d)))", s.Align)
	case s.Align > 8: // no C built-in is aligned to more
		attribute = fmt.Sprintf(" __attribute__((aligned(%d)))", s.Align)
	}
	c.aligns[s.Name] = s.Align
	c.line("}%s;", attribute)
	if !c.asserts {
		return
	}
	c.line("_Static_assert(sizeof(%s) == %d, \"size of %s\");", cName(s.Name), s.Size, s.Name)
	for _, f := range s.Fields {
		if f.Bits == 0 {
			c.line("_Static_assert(offsetof(%s, %s) == %d, \"offset of %s.%s\");", cName(s.Name), f.Name, f.Offset, s.Name, f.Name)
		}
	}
}

// natural reports whether C gives a struct its layout without the attribute packed and without
// unnamed bit-fields. An alignment above 8 does not count: the caller writes an attribute for it.
func (c *cWriter) natural(s *Struct) bool {
	end, most := 0, 1 // in bits; in bytes
	for _, f := range s.Fields {
		align := c.align(f.Type)
		most = max(most, align)
		if f.Bits == 0 {
			at := roundUp((end+7)/8, align)
			if at != f.Offset {
				return false
			}
			end = 8 * (at + f.Size)
			continue
		}
		if end/(8*f.Size) != (end+f.Bits-1)/(8*f.Size) {
			end = roundUp(end, 8*f.Size)
		}
		if end != 8*f.Offset+f.BitOffset {
			return false
		}
		end += f.Bits
	}
	return roundUp((end+7)/8, most) == s.Size && (most == s.Align || s.Align > 8)
}

func roundUp(n, to int) int { return (n + to - 1) / to * to }

// align returns the alignment of a type that is already written.
func (c *cWriter) align(ctype string) int {
	ct, err := ParseType(ctype)
	if err != nil || ct.Pointers > 0 {
		return 8
	}
	if size, _, ok := Builtin(ct.Base); ok {
		return max(1, size)
	}
	return cmp.Or(c.aligns[ct.Base], 8)
}

// CDeclaration writes a declaration of name in C, without the semicolon. It replaces the dots in
// the names of unnamed types by underscores.
func CDeclaration(ctype, name string) string {
	base, dims := ctype, ""
	if i := strings.IndexByte(ctype, '['); i >= 0 {
		base, dims = ctype[:i], ctype[i:]
	}
	base = cName(base)
	if !strings.HasSuffix(base, "*") {
		base += " "
	}
	return base + name + dims
}
