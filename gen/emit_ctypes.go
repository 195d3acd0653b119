package gen

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/puregpu/puregpu/symbols"
)

// LayoutAsserts returns a C file that asserts the size of every number and named struct of a library and the offset of every field
// that has a name, against the vendor's own headers. Records that only headers older than the table's have are left out.
func LayoutAsserts(lib *symbols.Library) (string, error) {
	library := lib.Description.Library
	var b strings.Builder
	fmt.Fprintf(&b, "/* Generated from the table of %s: sizes, offsets and enumerators against the library's headers. */\n", library)
	b.WriteString(includeAll(&lib.Description.Headers))
	checks := 0
	assert := func(cond, what string) {
		fmt.Fprintf(&b, "_Static_assert(%s, %q);\n", cond, what)
		checks++
	}
	for _, s := range lib.Scalars {
		if size, _, ok := symbols.Builtin(s.Type); ok && s.Until.IsZero() && s.Lib == "" {
			assert(fmt.Sprintf("sizeof(%s) == %d", s.Name, size), "size of "+s.Name)
		}
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

// includeAll includes a library's headers as the extractor reads them.
func includeAll(h *symbols.Headers) string {
	var b strings.Builder
	b.WriteString("#include <stddef.h>\n")
	if h.Typedefs != nil {
		fmt.Fprintf(&b, "#define %s 1 /* old ABIs too */\n", h.Typedefs.Define)
	}
	if h.Old != "" {
		fmt.Fprintf(&b, "#define %s 1 /* old ABIs by their own names */\n", h.Old)
	}
	for _, line := range h.Prelude {
		b.WriteString(line + "\n")
	}
	for _, name := range h.Included() {
		fmt.Fprintf(&b, "#if __has_include(<%s>)\n#include <%s>\n#endif\n", name, name)
	}
	return b.String()
}

// IncludeAll returns C text that includes a library's headers as they are read.
func IncludeAll(lib *symbols.Library) string { return includeAll(&lib.Description.Headers) }

// ReleaseAsserts returns a C file that asserts all that a table says of one release, a line each, against that release's headers: sizes and
// offsets, enumerators, macros that are numbers, and the types of functions. headers is the text of the headers once preprocessed, with their macros. It also returns how much
// is left out, since the headers have no such name: the table has functions from when a library exported them.
func ReleaseAsserts(lib *symbols.Library, v symbols.Version, headers string) (text string, checks, left int) {
	t := lib.At(v)
	var b strings.Builder
	// What a pointer leads to may be const in one release and not in another: to the ABI it is the same.
	b.WriteString("#define const\n")
	b.WriteString(includeAll(&lib.Description.Headers))
	words := map[string]bool{}
	for _, w := range cWord.FindAllString(headers, -1) {
		words[w] = true
	}
	declares := func(name string) bool { return words[name] }
	// A type that had no typedef yet.
	typedefs := map[string]bool{}
	for _, m := range closed.FindAllStringSubmatch(headers, -1) {
		typedefs[m[1]] = true
	}
	for _, m := range tagged.FindAllStringSubmatch(headers, -1) {
		if kind, name := m[1], m[2]; t.TypeNames()[name] && !typedefs[name] {
			typedefs[name] = true
			fmt.Fprintf(&b, "typedef %s %s %s;\n", kind, name, name)
		}
	}
	for name := range t.TypeNames() { // by the name that it had before it had a number
		if base := numbered.ReplaceAllString(name, ""); base != name && !declares(name) && declares(base) {
			fmt.Fprintf(&b, "#define %s %s\n", name, base)
		}
	}
	known := func(ctype string) bool {
		for _, name := range cWord.FindAllString(ctype, -1) {
			if !declares(name) && !declares(numbered.ReplaceAllString(name, "")) {
				if _, _, ok := symbols.Builtin(name); !ok && name != "const" && name != "unsigned" && name != "signed" {
					return false
				}
			}
		}
		return !strings.Contains(ctype, ".")
	}
	assert := func(cond, what string) {
		fmt.Fprintf(&b, "_Static_assert(%s, %q);\n", cond, what)
		checks++
	}
	tags := map[string]string{}
	for _, h := range t.Handles {
		if tags[h.Name] = h.Tag; h.Tag != "void" {
			fmt.Fprintf(&b, "typedef struct %s *puregpu_%s;\n", h.Tag, h.Name)
		}
	}
	structs := map[string]*symbols.Struct{}
	for i := range t.Structs {
		structs[t.Structs[i].Name] = &t.Structs[i]
	}
	for i := range t.Structs {
		s := &t.Structs[i]
		if strings.Contains(s.Name, ".") {
			continue // reached through its parent
		}
		if !known(s.Name) {
			left++
			continue
		}
		assert(fmt.Sprintf("sizeof(%s) == %d", s.Name, s.Size), "size of "+s.Name)
		assertFields(assert, structs, s.Name, s, "", 0)
	}
	for _, e := range t.Enums {
		for _, x := range e.Values {
			if !declares(x.Name) {
				left++
				continue
			}
			assert(fmt.Sprintf("(long long)%s == %dLL", x.Name, x.Value), "value of "+x.Name)
		}
	}
	enums := map[string]bool{}
	for _, e := range t.Enums {
		enums[e.Name] = true
	}
	for _, c := range t.Constants {
		switch {
		case !declares(c.Name):
			left++
		case c.Type == "int" || enums[c.Type]:
			assert(fmt.Sprintf("(long long)(%s) == %sLL", c.Name, c.Value), "value of "+c.Name)
		case c.Type == "uint":
			assert(fmt.Sprintf("(unsigned long long)(%s) == %sULL", c.Name, c.Value), "value of "+c.Name)
		}
	}
	for _, f := range t.Functions {
		ok := declares(f.Symbol) && known(f.Result)
		params, plain := []string{}, []string{}
		for _, p := range f.Params {
			ok = ok && known(p.Type)
			plain = append(plain, p.Type)
			params = append(params, cWord.ReplaceAllStringFunc(p.Type, func(w string) string { // a release may spell a handle as a pointer to its struct
				if tag := tags[w]; tag != "" && tag != "void" {
					return "puregpu_" + w
				}
				return w
			}))
		}
		if !ok {
			left++
			continue
		}
		if len(params) == 0 {
			params, plain = []string{"void"}, []string{"void"}
		}
		same := func(params []string) string {
			return fmt.Sprintf("__builtin_types_compatible_p(__typeof__(%s), %s (%s))", f.Symbol, f.Result, strings.Join(params, ", "))
		}
		cond := same(plain)
		if !slices.Equal(plain, params) {
			cond += " || " + same(params)
		}
		assert(cond, "type of "+f.Symbol)
	}
	return b.String(), checks, left
}

var (
	closed   = regexp.MustCompile(`(?:\}|typedef (?:struct|union|enum)\s+\w+)[\s*]*(\w+)\s*;`)
	tagged   = regexp.MustCompile(`\b(struct|union|enum)\s+(\w+)\s*\{`)
	numbered = regexp.MustCompile(`_v\d+$`)
	cWord    = regexp.MustCompile(`[A-Za-z_]\w*`)
)

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
