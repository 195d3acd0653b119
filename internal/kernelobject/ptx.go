package kernelobject

import (
	"bytes"
	"strconv"
	"strings"
)

// IsPTX reports whether a text begins like PTX: with the directive .version, after space and
// comments.
func IsPTX(text []byte) bool {
	for {
		text = bytes.TrimLeft(text, " \t\r\n\f\v")
		switch {
		case bytes.HasPrefix(text, []byte("//")):
			_, text, _ = bytes.Cut(text, []byte("\n"))
		case bytes.HasPrefix(text, []byte("/*")):
			_, text, _ = bytes.Cut(text[2:], []byte("*/"))
		default:
			return bytes.HasPrefix(text, []byte(".version"))
		}
	}
}

// PTX reads the declarations of kernels and variables in a text, and skips everything else.
func PTX(text []byte) Code { return ptx(text, newBudget(len(text))) }

func ptx(text []byte, b *budget) Code {
	c := Code{Form: FormPTX}
	r := ptxReader{tokens: tokens{text}, budget: b}
	depth := 0                        // depth of braces: variables inside belong to a function
	kernel := -1                      // index of the kernel that is being read, or -1
	external, visible := false, false // whether the current declaration has .extern or .visible
	for t := r.next(); t != nil && !b.over; t = r.next() {
		switch string(t) {
		case "{":
			depth++
		case "}":
			if depth--; depth == 0 {
				kernel = -1
			}
			external, visible = false, false
		case ";":
			external, visible = false, false
		case ".extern":
			external = true
		case ".visible":
			visible = true
		case ".target":
			if depth == 0 && c.Arch == "" {
				c.Arch = string(r.word())
			}
		case ".entry":
			name := r.word()
			if name == nil || !b.kernel(len(name)) {
				break
			}
			k := Kernel{Name: string(name)}
			k.Params, k.Told = r.params()
			c.Kernels = append(c.Kernels, k)
			kernel = len(c.Kernels) - 1
		case ".reqntid":
			if depth == 0 && kernel >= 0 {
				c.Kernels[kernel].Threads = r.three()
			}
		case ".reqnctapercluster":
			if depth == 0 && kernel >= 0 {
				c.Kernels[kernel].Cluster = r.three()
			}
		case ".shared":
			if depth > 0 && kernel >= 0 {
				if v := r.variable(); v.end == ";" {
					c.Kernels[kernel].Shared += v.size
				}
			}
		case ".global", ".const":
			if depth != 0 {
				break
			}
			constant := string(t) == ".const"
			if v := r.variable(); v.name != "" && (v.end == ";" || v.end == "=") && b.variable(len(v.name)) {
				c.Variables = append(c.Variables, Variable{Name: v.name, Size: v.size, Constant: constant, Init: v.end == "=", Extern: external, Visible: visible})
			}
			external, visible = false, false
		}
	}
	return c
}

// A ptxReader reads declarations.
type ptxReader struct {
	tokens
	budget *budget
}

// peek returns the next token without consuming it.
func (r *ptxReader) peek() []byte {
	ahead := r.tokens
	return ahead.next()
}

// word returns the next token, and consumes it, if the token is a name. Otherwise it returns nil.
func (r *ptxReader) word() []byte {
	if t := r.peek(); len(t) > 0 && (inWord(t[0]) && (t[0] < '0' || t[0] > '9')) {
		return r.next()
	}
	return nil
}

// three reads one to three numbers separated by commas, and returns 1 for each missing one.
func (r *ptxReader) three() [3]int {
	n := [3]int{1, 1, 1}
	for i := range n {
		if i > 0 {
			if string(r.peek()) != "," {
				break
			}
			r.next()
		}
		v, err := strconv.ParseUint(string(r.peek()), 0, 16)
		if err != nil {
			break
		}
		r.next()
		n[i] = int(max(v, 1))
	}
	return n
}

// params reads an optional list of parameters in parentheses. It returns false if the text ends
// inside the list or the budget is exceeded.
func (r *ptxReader) params() ([]Param, bool) {
	if string(r.peek()) != "(" {
		return nil, true
	}
	var all []Param
	for t := r.next(); ; {
		switch string(t) {
		case "":
			return nil, false
		case ")":
			return all, true
		case ".param":
			v := r.variable()
			if !r.budget.param(len(v.name) + len(v.typ)) {
				return nil, false
			}
			size := 0
			if v.size <= 1<<20 {
				size = int(v.size)
			}
			all = append(all, Param{Name: v.name, Type: v.typ, Size: size, Align: v.align, Pointer: v.pointer})
			if v.end == ")" {
				return all, true
			}
		}
		t = r.next()
	}
}

// A declaration holds the parts of a PTX declaration that follow the state space.
type declaration struct {
	name    string
	typ     string
	size    uint64 // 0 if unknown
	align   int
	pointer bool
	end     string // the token after the declaration, such as a comma
}

// variable reads a declaration such as ".align 8 .b8 name[16]", and the token after it unless that
// is a brace.
func (r *ptxReader) variable() (d declaration) {
	vector := uint64(1)
	for {
		t := r.peek()
		switch {
		case t == nil || string(t) == "}" || string(t) == "{":
			return d
		case string(t) == ".align":
			r.next()
			if n, err := strconv.ParseUint(string(r.peek()), 0, 16); err == nil {
				r.next()
				if !d.pointer { // after .ptr, .align is about the memory at the address
					d.align = int(n)
				}
			}
			continue
		case string(t) == ".ptr":
			d.pointer = true
		case string(t) == ".v2":
			vector = 2
		case string(t) == ".v4":
			vector = 4
		case t[0] == '.':
			// The name of a type ends in its number of bits. Other words, such as state spaces, do
			// not.
			bits := strings.TrimLeft(string(t[1:]), "abcdefghijklmnopqrstuvwxyz")
			if n, err := strconv.ParseUint(bits, 10, 16); err == nil && n%8 == 0 && len(bits) < len(t)-1 {
				d.size, d.typ = n/8*vector, string(t[1:])
				d.align = max(d.align, int(d.size))
			}
		case string(t) == "(": // arguments of .attribute
			for string(t) != ")" {
				if t = r.next(); t == nil {
					return d
				}
			}
			continue
		default:
			name := r.word()
			if name == nil {
				d.end, d.size = string(r.next()), 0
				return d
			}
			d.name = string(name)
			for string(r.peek()) == "[" {
				r.next()
				n, err := strconv.ParseUint(string(r.peek()), 0, 32)
				if err != nil || d.size != 0 && n > 1<<40/d.size {
					n = 0
				}
				d.size *= n
				for t := r.peek(); t != nil && string(t) != "]" && string(t) != ";"; t = r.peek() {
					r.next()
				}
				if string(r.peek()) == "]" {
					r.next()
				}
			}
			switch end := r.peek(); string(end) {
			case "{", "}", "":
			default:
				d.end = string(r.next())
			}
			return d
		}
		r.next()
	}
}

// tokens holds the remaining PTX text.
type tokens struct{ text []byte }

// next returns the next token: a word, which may begin with a dot, or a single character. It skips
// comments and quoted text. It returns nil at the end.
func (t *tokens) next() []byte {
	for len(t.text) > 0 {
		b := t.text
		switch {
		case bytes.HasPrefix(b, []byte("//")):
			_, t.text, _ = bytes.Cut(b, []byte("\n"))
		case bytes.HasPrefix(b, []byte("/*")):
			_, t.text, _ = bytes.Cut(b[2:], []byte("*/"))
		case b[0] == '"':
			_, t.text, _ = bytes.Cut(b[1:], []byte(`"`))
		case b[0] <= ' ':
			t.text = b[1:]
		default:
			n := 1
			if b[0] == '.' || inWord(b[0]) {
				for n < len(b) && inWord(b[n]) {
					n++
				}
			}
			t.text = b[n:]
			return b[:n]
		}
	}
	return nil
}

func inWord(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '_' || c == '$' || c == '%'
}
