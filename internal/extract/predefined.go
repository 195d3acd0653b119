package extract

import (
	_ "embed"
	"strings"
	"sync"
)

// gccFacts lists gcc's predefined names, one fact a line:
//
//	#define NAME TEXT    a predefined macro
//	attribute NAME       __has_attribute(NAME) is 1
//	builtin NAME         __has_builtin(NAME) is 1
//	header NAME          a header of the compiler or of the C library
//
// Conditions in headers depend on these facts. A test compares the file with the installed gcc. To
// write the file again, on Debian for amd64: go test ./internal/extract -run TestPredefined -gcc.
//
// The file omits macros that depend on compiler flags, such as __OPTIMIZE__ and __pic__.
//
//go:embed gcc.txt
var gccFacts string

// compilerFacts are the facts in gccFacts, by kind.
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

// hasBuiltinWord replaces __has_builtin in all headers. To the C front end __has_builtin is no
// macro, so a test such as #ifdef __has_builtin would fail.
const hasBuiltinWord = "__HAS_BUILTIN"

// predefined returns gcc's predefined macros, and macros that make operators such as
// __has_attribute return gcc's values.
//
// The operators for attributes call [hasName] with a prefix. An operator first expands its
// argument, as in gcc.
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

// isSystemHeader reports whether a header belongs to the C library, the compiler or Linux. The
// header need not have a stand-in.
func isSystemHeader(name string) bool {
	first, _, inFolder := strings.Cut(name, "/")
	return knownFacts().headers[name] || inFolder && (first == "linux" || first == "asm" || first == "asm-generic")
}
