package gen

import (
	"fmt"
	"strings"

	"github.com/puregpu/puregpu/symbols"
)

// LayoutAsserts returns a C file that asserts the size of every named struct of a library and the offset of every field
// that has a name, against the vendor's own headers. Records that only headers older than the table's have are left out.
func LayoutAsserts(lib *symbols.Library) (string, error) {
	library := lib.Description.Library
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
