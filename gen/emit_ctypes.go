package gen

import (
	"fmt"
	"strings"

	"github.com/puregpu/puregpu/symbols"
)

// cTypes writes a table's types as C declarations of their own, with assertions of every size and offset: what the echo
// library is compiled with in place of the vendor's headers.
func cTypes(lib *symbols.Library) string {
	c := &cWriter{lib: lib, done: map[string]bool{}}
	c.line("#include <stdbool.h>\n#include <stddef.h>\n#include <stdint.h>\n")
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
		c.done[s.Name] = true
	}
	for _, e := range lib.Enums {
		if e.Name != "" {
			c.line("typedef %s %s;", map[bool]string{true: "int", false: "unsigned int"}[e.Signed], e.Name)
			c.done[e.Name] = true
		}
	}
	for _, cb := range lib.Callbacks { // a function's address, whatever its type
		c.line("typedef void (*%s)(void);", cName(cb.Name))
		c.done[cb.Name] = true
	}
	for _, s := range lib.Structs {
		word := map[bool]string{true: "union", false: "struct"}[s.Union]
		c.line("typedef %s %s %s;", word, cName(s.Name), cName(s.Name))
	}
	pending, aliases := lib.Structs, lib.Aliases
	for len(pending)+len(aliases) > 0 {
		before := len(pending) + len(aliases)
		aliases = c.aliases(aliases)
		pending = c.structs(pending)
		if len(pending)+len(aliases) == before {
			break // a cycle of values, which C could not have declared either
		}
	}
	return c.b.String()
}

type cWriter struct {
	lib  *symbols.Library
	b    strings.Builder
	done map[string]bool // complete types
}

func (c *cWriter) line(format string, args ...any) { fmt.Fprintf(&c.b, format+"\n", args...) }

// cName makes a C identifier of a record's name; unnamed member types have a point in theirs.
func cName(name string) string { return strings.ReplaceAll(name, ".", "__") }

// complete reports whether a type can stand by value at this point of the file.
func (c *cWriter) complete(ct symbols.CType) bool {
	_, _, builtin := symbols.Builtin(ct.Base)
	return builtin || c.done[ct.Base] || ct.Pointers > 0 && c.isStruct(ct.Base)
}

func (c *cWriter) isStruct(name string) bool {
	for _, s := range c.lib.Structs {
		if s.Name == name {
			return true
		}
	}
	return false
}

func (c *cWriter) aliases(list []symbols.Alias) (later []symbols.Alias) {
	for _, a := range list {
		ct, err := symbols.ParseType(a.Type)
		if c.done[a.Name] {
			continue
		}
		if err != nil || !c.complete(ct) {
			later = append(later, a)
			continue
		}
		c.line("typedef %s;", c.declare(a.Type, a.Name))
		c.done[a.Name] = true
	}
	return later
}

func (c *cWriter) structs(list []symbols.Struct) (later []symbols.Struct) {
	for _, s := range list {
		ready := true
		for _, f := range s.Fields {
			ct, err := symbols.ParseType(f.Type)
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

func (c *cWriter) define(s *symbols.Struct) {
	word := map[bool]string{true: "union", false: "struct"}[s.Union]
	c.line("%s %s {", word, cName(s.Name))
	for i, f := range s.Fields {
		align := ""
		if n, ok := c.lib.TypeNote(s.Name); ok && n.Align > 0 && i == 0 {
			align = fmt.Sprintf("_Alignas(%d) ", n.Align)
		}
		decl := align + c.declare(f.Type, f.Name)
		if f.Bits > 0 {
			decl += fmt.Sprintf(" : %d", f.Bits)
		}
		c.line("\t%s;", decl)
	}
	c.line("};")
	c.line("_Static_assert(sizeof(%s) == %d, \"size of %s\");", cName(s.Name), s.Size, s.Name)
	for _, f := range s.Fields {
		if f.Bits == 0 {
			c.line("_Static_assert(offsetof(%s, %s) == %d, \"offset of %s.%s\");", cName(s.Name), f.Name, f.Offset, s.Name, f.Name)
		}
	}
}

// declare writes a declaration of name; the names of unnamed types are mangled.
func (c *cWriter) declare(ctype, name string) string {
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

// LayoutAsserts returns a C file that asserts the size of every named struct of a library and the offset of every field
// that has a name, against the vendor's own headers. Records that only headers older than the table's have are left out.
func LayoutAsserts(library string) (string, error) {
	lib, err := symbols.Load(library)
	if err != nil {
		return "", err
	}
	var b strings.Builder
	fmt.Fprintf(&b, "/* Generated from the table of %s: sizes, offsets and enumerators against the library's headers. */\n", library)
	b.WriteString("#include <stddef.h>\n")
	h := &lib.Description.Headers
	if h.Typedefs != nil {
		fmt.Fprintf(&b, "#define %s 1 /* old ABIs too */\n", h.Typedefs.Define)
	}
	for _, line := range h.Prelude {
		b.WriteString(line + "\n")
	}
	for _, name := range h.Included() {
		fmt.Fprintf(&b, "#if __has_include(<%s>)\n#include <%s>\n#endif\n", name, name)
	}
	checks := 0
	assert := func(cond, what string) {
		fmt.Fprintf(&b, "_Static_assert(%s, %q);\n", cond, what)
		checks++
	}
	structs := map[string]*symbols.Struct{}
	for i := range lib.Structs {
		structs[lib.Structs[i].Name] = &lib.Structs[i]
	}
	for i := range lib.Structs {
		s := &lib.Structs[i]
		if strings.Contains(s.Name, ".") || !s.Until.IsZero() {
			continue // reached through its parent, or gone from the headers
		}
		name := s.Name
		if s.TagOnly {
			name = map[bool]string{true: "union ", false: "struct "}[s.Union] + name
		}
		assert(fmt.Sprintf("sizeof(%s) == %d", name, s.Size), "size of "+s.Name)
		if n, ok := lib.TypeNote(s.Name); ok && n.Align > 0 {
			assert(fmt.Sprintf("_Alignof(%s) == %d", name, n.Align), "alignment of "+s.Name)
		}
		assertFields(assert, structs, name, s, "", 0)
	}
	for _, e := range lib.Enums {
		for _, v := range e.Values {
			if v.Until.IsZero() && e.Until.IsZero() && v.Lib == "" {
				assert(fmt.Sprintf("(long long)%s == %dLL", v.Name, v.Value), "value of "+v.Name)
			}
		}
	}
	fmt.Fprintf(&b, "const int puregpu_checks_%s = %d;\n", library, checks)
	return b.String(), nil
}

// assertFields asserts offsets, through named and unnamed members of unnamed types.
func assertFields(assert func(cond, what string), structs map[string]*symbols.Struct, root string, s *symbols.Struct, path string, base int) {
	for _, f := range s.Fields {
		if f.Bits > 0 {
			continue // C gives no offset of a bit-field
		}
		at := path
		if !f.Anonymous {
			at += f.Name
			assert(fmt.Sprintf("offsetof(%s, %s) == %d", root, at, base+f.Offset), "offset of "+root+"."+at)
			at += "."
		}
		if inner, ok := structs[f.Type]; ok && strings.Contains(inner.Name, ".") {
			assertFields(assert, structs, root, inner, at, base+f.Offset)
		}
	}
}
