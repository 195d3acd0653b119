package extract

import (
	_ "embed"
	"strings"
	"sync"
)

// gccFacts lists what gcc knows before it reads a header, one fact a line:
//
//	#define NAME TEXT    a predefined macro
//	attribute NAME       __has_attribute(NAME) is 1
//	builtin NAME         __has_builtin(NAME) is 1
//	header NAME          a header of the compiler or of the C library
//
// Conditions of headers depend on all of them. A test compares the file with the installed gcc. To write it anew, on Debian for
// amd64: go test ./internal/extract -run TestPredefined -gcc.
//
// Macros that flags of the compiler decide are not in the file: __OPTIMIZE__, __NO_INLINE__, __pic__, __pie__.
//
//go:embed gcc.txt
var gccFacts string

// compilerFacts are the facts in gccFacts, by their kind.
type compilerFacts struct {
	macros                        string // #define lines
	attributes, builtins, headers map[string]bool
}

var knownFacts = sync.OnceValue(func() *compilerFacts {
	f := &compilerFacts{attributes: map[string]bool{}, builtins: map[string]bool{}, headers: map[string]bool{}}
	var macros strings.Builder
	for line := range strings.Lines(gccFacts) {
		kind, name, _ := strings.Cut(strings.TrimSpace(line), " ")
		switch kind {
		case "#define":
			macros.WriteString(line)
		case "attribute":
			f.attributes[name] = true
		case "builtin":
			f.builtins[name] = true
		case "header":
			f.headers[name] = true
		}
	}
	f.macros = macros.String()
	return f
})

// hasBuiltinWord stands for __has_builtin in all headers. The C front end does not treat that operator as a macro, so it would say
// that it is not defined.
const hasBuiltinWord = "__HAS_BUILTIN"

// predefined returns the macros that gcc defines, and those by which the operators of conditions have gcc's values.
//
// The operators for attributes ask [hasName] with a prefix. An operator expands its argument first, as gcc does.
func predefined() string { return knownFacts().macros + operators }

const operators = `
#define ` + hasBuiltinWord + `(x) __has_builtin(x)
#define __has_attribute(x) __puregpu_attribute(x)
#define __puregpu_attribute(x) __has_builtin(` + attributePrefix + `##x)
#define __has_c_attribute(x) __puregpu_c_attribute(x)
#define __has_cpp_attribute(x) __puregpu_c_attribute(x)
#define __puregpu_c_attribute(x) __puregpu_c_attribute_##x
#define __puregpu_c_attribute_deprecated 201904
#define __puregpu_c_attribute___deprecated__ 201904
#define __puregpu_c_attribute_nodiscard 202003
#define __puregpu_c_attribute___nodiscard__ 202003
#define __puregpu_c_attribute_maybe_unused 201904
#define __puregpu_c_attribute___maybe_unused__ 201904
#define __puregpu_c_attribute_fallthrough 201904
#define __puregpu_c_attribute___fallthrough__ 201904
`

const attributePrefix = "__puregpu_attribute_"

// hasName reports whether gcc has a builtin function or, with the prefix, an attribute.
func hasName(name string) bool {
	attribute, ok := strings.CutPrefix(name, attributePrefix)
	if !ok {
		return knownFacts().builtins[name]
	}
	if inner, ok := strings.CutPrefix(attribute, "__"); ok && strings.HasSuffix(inner, "__") {
		attribute = strings.TrimSuffix(inner, "__")
	}
	return knownFacts().attributes[attribute]
}

// isSystemHeader reports whether a system has a header that need not be among the stand-ins.
func isSystemHeader(name string) bool {
	first, _, inFolder := strings.Cut(name, "/")
	return knownFacts().headers[name] || inFolder && (first == "linux" || first == "asm" || first == "asm-generic")
}
