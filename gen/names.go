package gen

import (
	"fmt"
	"go/token"
	"regexp"
	"slices"
	"strings"
	"unicode"

	"github.com/puregpu/puregpu/symbols"
)

// A namer makes Go names from C names by rule. The overlay lists exceptions with reasons.
type namer struct {
	desc *symbols.Description
	lib  *symbols.Library
	used map[string]bool // the overlay's entries that have given a name

	versions map[string]bool // the result of structVersions
}

// exception returns the exported Go name that the overlay gives a C name.
func (n *namer) exception(cname string) (string, bool) {
	note, ok := n.lib.NameNote(cname)
	if ok = ok && token.IsExported(note.Go); ok {
		n.used[cname] = true
	}
	return note.Go, ok
}

func cut(s string, prefixes []string) string {
	for _, p := range prefixes {
		if r, ok := strings.CutPrefix(s, p); ok && r != "" {
			return r
		}
	}
	return s
}

// abiNumber returns the k of a symbol's _vk suffix, or 1.
func abiNumber(f *symbols.Func) string {
	if k, ok := strings.CutPrefix(f.Symbol, f.API+"_v"); ok {
		return k
	}
	return "1"
}

// function returns the Go name of a method. A C function may have several ABI versions. The version
// that the header's plain name selects gets the plain Go name. The names of other versions end in V
// and the version's number.
func (n *namer) function(f *symbols.Func) string {
	if name, ok := n.exception(f.Symbol); ok {
		return name
	}
	name := n.camel(cut(f.API, n.desc.Prefixes.Functions))
	if !f.Current {
		name += "V" + abiNumber(f)
	}
	return name
}

// typ names a type.
func (n *namer) typ(cname string) string {
	if name, ok := n.exception(cname); ok {
		return name
	}
	if i := strings.LastIndexByte(cname, '.'); i > 0 { // an unnamed member type gets the names of the struct and the member
		return n.typ(cname[:i]) + n.camel(cname[i+1:])
	}
	return n.camel(cut(strings.TrimSuffix(cname, "_t"), n.desc.Prefixes.Types))
}

// value names an enumerator or a constant.
func (n *namer) value(cname string) string {
	if name, ok := n.exception(cname); ok {
		return name
	}
	if n.versions[cname] {
		return n.typ(cname+"_t") + "Version"
	}
	return n.camel(cut(cname, n.desc.Prefixes.Values))
}

// structVersions returns the names of the structs whose names end in _t, without _t. A constant
// with such a name is a value of the struct's field version.
func structVersions(lib *symbols.Library) map[string]bool {
	out := map[string]bool{}
	for _, s := range lib.Structs {
		if name, ok := strings.CutSuffix(s.Name, "_t"); ok {
			out[name] = true
		}
	}
	return out
}

func (n *namer) field(structName, cname string) string {
	if name, ok := n.exception(structName + "." + cname); ok {
		return name
	}
	return n.camel(cname)
}

// initialisms are words of C names that stay in capitals in Go names. A library's description may
// add more.
var initialisms = map[string]bool{
	"ABI": true, "API": true, "CPU": true, "D3D": true, "DMA": true, "EGL": true, "ECC": true, "FD": true, "GL": true,
	"GPU": true, "ID": true, "IO": true, "IPC": true, "JIT": true, "L2": true, "NUMA": true, "OS": true, "P2P": true, "PCI": true,
	"RDMA": true, "RGB": true, "SRGB": true, "UUID": true, "1D": true, "2D": true, "3D": true,
}

var capitals = regexp.MustCompile(`^[A-Z0-9_]+$`)

// camel turns snake_case, CAPITALS and mixedCase into an exported Go name.
func (n *namer) camel(s string) string {
	var b strings.Builder
	shout := capitals.MatchString(s)
	for w := range strings.SplitSeq(s, "_") {
		if w == "" {
			continue
		}
		switch {
		case (initialisms[strings.ToUpper(w)] || slices.Contains(n.desc.Initialisms, strings.ToUpper(w))) && (shout || capitals.MatchString(w)):
			w = strings.ToUpper(w)
		case shout || capitals.MatchString(w) && len(w) > 1 && strings.Contains(s, "_"):
			w = strings.ToLower(w)
		}
		if b.Len() > 0 && unicode.IsDigit(rune(w[0])) {
			last := b.String()[b.Len()-1]
			if unicode.IsDigit(rune(last)) {
				b.WriteByte('_') // otherwise 8_4 would become 84
			}
		}
		b.WriteString(strings.ToUpper(w[:1]) + w[1:])
	}
	return b.String()
}

// goNames maps words that cannot name a parameter to names that can: keywords of Go and names in
// generated code.
var goNames = map[string]string{
	"type": "typ", "func": "function", "range": "extent", "map": "mapping", "len": "length", "string": "text", "error": "code",
	"var": "variable", "import": "imported", "package": "pack", "interface": "iface", "select": "choice", "go": "start",
	"default": "fallback", "chan": "channel", "struct": "structure", "const": "constant", "copy": "copying", "new": "created",
	"nil": "null", "true": "yes", "false": "no", "cap": "capacity", "any": "value", "min": "minimum", "max": "maximum", "bool": "flag",
	"l": "list", "dl": "handle", "fmt": "format", "unsafe": "pointer", "math": "number", "runtime": "run", "frame": "frameArg", "addr": "address",
	"out": "output", "res": "resArg", "code": "codeArg", "err": "errArg", "check": "checkArg", "byte": "octet", "uintptr": "word", "append": "more", "close": "end",
	"runes": "text", "clear": "cleared", "print": "printed", "init": "initial", "main": "mainArg", "real": "re", "imag": "im", "defer": "deferred",
	"fallthrough": "next", "goto": "jump", "case": "which", "switch": "toggle", "return": "result", "break": "stop", "continue": "go_on", "else": "other", "for": "each", "if": "condition",
}

// parameter names an argument or a result.
func (n *namer) parameter(f *symbols.Func, cname string) string {
	for _, of := range []string{f.Symbol, f.API} {
		if note, ok := n.lib.NameNote(of + "." + cname); ok && !token.IsExported(note.Go) { // an exported name is for the parameter's type
			n.used[note.Name] = true
			return note.Go
		}
	}
	s := n.camel(cname)
	i := 0
	for i < len(s) && s[i] >= 'A' && s[i] <= 'Z' {
		i++
	}
	if i > 1 && i < len(s) {
		i-- // URLPath becomes urlPath
	}
	i = max(i, 1)
	s = strings.ToLower(s[:i]) + s[i:]
	if other, ok := goNames[s]; ok {
		return other
	}
	if slices.Contains(n.desc.Uses, s) { // the name is taken by an imported package
		return s + "Arg"
	}
	return s
}

// unused returns an error for the first name in the overlay that no generated name uses.
func (n *namer) unused() error {
	for _, note := range n.lib.Overlay.Names {
		if !n.used[note.Name] {
			return fmt.Errorf("gen: %s: the overlay names %s %s, but no generated name uses that entry", n.desc.Library, note.Name, note.Go)
		}
	}
	return nil
}
