package cproof

import (
	"cmp"
	"fmt"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/puregpu/puregpu/symbols"
)

var numbered = regexp.MustCompile(`_v\d+$`)

// A writer writes the facts of a table.
type writer struct {
	t      *symbols.Table
	names  map[string]string // how C writes the table's types
	tags   map[string]string // tags of handles, with struct or union in front
	align  map[string]int
	inline bool
	older  bool

	facts     []*fact
	structs   map[string]*symbols.Struct
	enums     map[string]*symbols.Enum
	handles   map[string]*symbols.Handle
	callbacks map[string]int    // index of callbacks with a written type
	unnamed   map[string]string // C expressions for unnamed types
	absent    []string          // types that the headers do not declare
}

func (w *writer) add(f *fact) { w.facts = append(w.facts, f) }

// number adds a fact whose constant is a number.
func (w *writer) number(record, kind, what, expr string, want uint64) *fact {
	f := &fact{
		record: record, kind: kind, what: what, table: strconv.FormatUint(want, 10),
		tries: []string{"const unsigned long long @ = (unsigned long long)(" + expr + ");"},
		check: func(x *answer) string {
			if n := x.number(); n != want {
				return strconv.FormatUint(n, 10)
			}
			return ""
		},
	}
	w.add(f)
	return f
}

// integer adds a fact whose constant is the value of an enumerator or a macro.
func (w *writer) integer(record, kind, expr, table string, want uint64, negative bool) {
	real := "__builtin_types_compatible_p(__typeof__(" + expr + "), double) || __builtin_types_compatible_p(__typeof__(" + expr + "), float)"
	w.add(&fact{
		record: record, kind: kind, what: "value", table: table,
		tries: []string{"const unsigned long long @[3] = { (unsigned long long)(" + expr + "), (" + expr + ") < 0, " + real + " };"},
		check: func(x *answer) string {
			b := x.o.bytes(x.name, 24)
			n, below := x.o.f.ByteOrder.Uint64(b), b[8] != 0
			switch {
			case b[16] != 0:
				return "that it is no integer"
			case n == want && below == negative:
				return ""
			case below:
				return strconv.FormatInt(int64(n), 10)
			}
			return strconv.FormatUint(n, 10)
		},
	})
}

// truth adds a fact that holds if the first of the C conditions that compiles is true.
func (w *writer) truth(record, kind, what, table string, qualified, strict bool, conds ...string) {
	f := &fact{record: record, kind: kind, what: what, table: table, qualified: qualified, strict: strict}
	for _, c := range conds {
		f.tries = append(f.tries, "const unsigned long long @ = ("+c+");")
	}
	f.check = func(x *answer) string {
		if x.number() != 1 {
			return "another type"
		}
		return ""
	}
	w.add(f)
}

func same(a, b string) string { return "__builtin_types_compatible_p(" + a + ", " + b + ")" }

// types prepares the spelling of types. If all is set, it also adds the facts of types and
// constants.
func (w *writer) types(all bool) {
	w.structs, w.enums = map[string]*symbols.Struct{}, map[string]*symbols.Enum{}
	w.handles, w.callbacks, w.unnamed = map[string]*symbols.Handle{}, map[string]int{}, map[string]string{}
	for i := range w.t.Structs {
		w.structs[w.t.Structs[i].Name] = &w.t.Structs[i]
	}
	for i := range w.t.Enums {
		w.enums[w.t.Enums[i].Name] = &w.t.Enums[i]
	}
	for i := range w.t.Handles {
		w.handles[w.t.Handles[i].Name] = &w.t.Handles[i]
	}
	for i := range w.t.Structs {
		if s := &w.t.Structs[i]; !strings.Contains(s.Name, ".") && w.declared(s.Name) {
			w.reach(s, w.names[s.Name], "")
		}
	}
	for i := range w.t.Callbacks {
		w.callback(i)
	}
	if !all {
		return
	}
	for _, h := range w.t.Handles {
		w.handle(&h)
	}
	for _, s := range w.t.Scalars {
		if !w.declared(s.Name) {
			continue
		}
		w.truth("scalar "+s.Name, "scalar", "type", s.Type, true, false, same(w.names[s.Name], w.spell(s.Type)))
	}
	for _, a := range w.t.Aliases {
		if strings.Contains(a.Name, ".") {
			continue
		}
		if w.older {
			continue
		}
		if _, ok := w.names[a.Name]; !ok {
			w.names[a.Name] = a.Name // prover.names leaves out a type without a size
		}
		w.truth("alias "+a.Name, "alias", "type", a.Type, true, false, same(w.names[a.Name], w.spell(a.Type)))
	}
	for i := range w.t.Enums {
		w.enum(&w.t.Enums[i])
	}
	for i := range w.t.Structs {
		if s := &w.t.Structs[i]; !strings.Contains(s.Name, ".") && w.names[s.Name] != "" {
			w.layout(s, s.Name, w.names[s.Name])
			w.fields(s, s.Name, w.names[s.Name], "", 0)
		}
	}
	for _, c := range w.t.Callbacks {
		if !strings.Contains(c.Name, ".") {
			cb := fmt.Sprintf("puregpu_cb_%d", w.callbacks[c.Name])
			name := strings.TrimSuffix(cmp.Or(w.names[c.Name], c.Name), " *")
			w.truth("callback "+c.Name, "callback", "type", prototype(c.Result, c.Params), true, false, same(name, cb)+" || "+same("__typeof__("+name+") *", cb))
		}
	}
	for i := range w.t.Constants {
		w.constant(&w.t.Constants[i])
	}
}

// declared reports whether the headers declare a type. If not, it adds the type to writer.absent.
func (w *writer) declared(name string) bool {
	_, ok := w.names[name]
	if !ok && !slices.Contains(w.absent, name) {
		w.absent = append(w.absent, name)
	}
	return ok
}

// reach records a C expression for each unnamed type in a struct.
func (w *writer) reach(s *symbols.Struct, root, path string) {
	for _, f := range s.Fields {
		at := path
		if !f.Anonymous {
			at += f.Name
		}
		ct, err := symbols.ParseType(f.Type)
		if err != nil || !strings.Contains(ct.Base, ".") {
			continue
		}
		at += strings.Repeat("[0]", len(ct.Dims)+ct.Pointers)
		w.unnamed[ct.Base] = "__typeof__(((" + root + " *)0)->" + at + ")"
		if inner := w.structs[ct.Base]; inner != nil && ct.Pointers == 0 {
			if !f.Anonymous {
				at += "."
			}
			w.reach(inner, root, at)
		}
	}
}

// callback writes the type of a callback, after the types of its parameters.
func (w *writer) callback(i int) {
	c := &w.t.Callbacks[i]
	if _, ok := w.callbacks[c.Name]; ok {
		return
	}
	w.callbacks[c.Name] = i
	for _, ctype := range append([]string{c.Result}, types(c.Params)...) {
		if ct, err := symbols.ParseType(ctype); err == nil {
			if j := slices.IndexFunc(w.t.Callbacks, func(d symbols.Callback) bool { return d.Name == ct.Base }); j >= 0 {
				w.callback(j)
			}
		}
	}
	w.add(&fact{record: "callback " + c.Name, tries: []string{fmt.Sprintf("typedef %s (*puregpu_cb_%d)(%s);", w.spell(c.Result), i, w.list(c.Params))}})
}

func types(params []symbols.Param) (out []string) {
	for _, p := range params {
		out = append(out, p.Type)
	}
	return out
}

func (w *writer) list(params []symbols.Param) string {
	if len(params) == 0 {
		return "void"
	}
	var out []string
	for _, p := range params {
		out = append(out, w.spell(p.Type))
	}
	return strings.Join(out, ", ")
}

// prototype writes a function's type for messages.
func prototype(result string, params []symbols.Param) string {
	return result + "(" + strings.Join(types(params), ", ") + ")"
}

// base writes the base of a type in C.
func (w *writer) base(name string) string {
	if name == "bool" {
		return "_Bool"
	}
	if c, ok := w.names[name]; ok {
		return c
	}
	if i, ok := w.callbacks[name]; ok {
		return fmt.Sprintf("puregpu_cb_%d", i)
	}
	if c, ok := w.unnamed[name]; ok {
		return c
	}
	if strings.Contains(name, ".") || w.older { // the type of an array that is declared in a parameter, or an alias that older headers lack
		for _, a := range w.t.Aliases {
			if a.Name == name {
				return "__typeof__(" + w.spell(a.Type) + ")"
			}
		}
	}
	if c, ok := w.names[name]; ok {
		return c
	}
	return name
}

// spell writes a type in C, without a declared name.
func (w *writer) spell(ctype string) string { return w.variants(ctype, 1)[0] }

// variants returns at most the given number of spellings of a type in C. The spellings differ in
// const where a table does not record const: after pointers except the last, and at handles and
// callbacks.
func (w *writer) variants(ctype string, most int) []string {
	ct, err := symbols.ParseType(ctype)
	if err != nil {
		return []string{ctype}
	}
	base := w.base(ct.Base)
	bases := []string{base}
	if ct.Const {
		bases = []string{"const " + base}
	}
	if w.handles[ct.Base] != nil { // const at a handle may be the pointer's, before the handle's name, or the opaque target's, in the typedef: try both
		bases = []string{base, "const " + base}
		if ct.Const && ct.Pointers == 0 {
			bases = append(bases, base+" const") // for a result: clang compares the result's const
		}
		if w.older {
			bases = append(bases, "void *") // before there was a handle
		}
	}
	inner := max(0, ct.Pointers-1)
	_, callback := w.callbacks[ct.Base]
	if (w.handles[ct.Base] != nil || callback) && ct.Pointers > 0 {
		inner = ct.Pointers // a handle or a callback is one more pointer
	}
	dims := ""
	for _, n := range ct.Dims {
		dims += fmt.Sprintf("[%d]", n)
	}
	var out []string
	for _, b := range bases {
		for mask := range 1 << inner {
			if len(out) == most {
				return out
			}
			s := b
			h := 0
			if inner == ct.Pointers && inner > 0 { // const of the pointer in the handle or callback
				if mask&1 != 0 {
					s += " const"
				}
				h = 1
			}
			for i := range ct.Pointers {
				s += " *"
				if i < ct.Pointers-1 && mask&(1<<(i+h)) != 0 {
					s += " const"
				}
			}
			out = append(out, s+dims)
		}
	}
	return out
}

// handleFact asks the compiler what a handle's name is: a pointer to the struct with the tag, that
// struct, another pointer, or another type. The last try fails if the tag is a union's.
func handleFact(h *symbols.Handle) *fact {
	f := &fact{}
	if h.Tag != "" && h.Tag != "void" {
		p := "struct " + h.Tag + " *"
		f.tries = []string{"typedef char @[" + same(h.Name, p) + " ? 1 : -1];", "typedef char @[" + same("__typeof__("+h.Name+") *", p) + " ? 1 : -1];"}
	} else {
		f.tries = slices.Repeat([]string{"typedef puregpu no;"}, 2)
	}
	f.tries = append(f.tries, "typedef __typeof__(*("+h.Name+")0) *@;", "typedef "+h.Name+" *@;", "struct "+h.Tag+" *@;")
	return f
}

// handleSpelling returns how C spells a handle, and the handle's tag behind struct or union. f is
// the handle's fact, which has been compiled: the try that compiled gives the spelling, and the
// compiler's error says whether the tag is a union's.
func handleSpelling(h *symbols.Handle, f *fact) (spelled, tag string) {
	tag = "struct " + h.Tag
	if strings.Contains(f.said, "wrong kind of tag") || strings.Contains(f.said, "tag type that does not match") {
		tag = "union " + h.Tag
	}
	switch {
	case f.chosen == 2 || h.Tag == "" || h.Tag == "void":
		return h.Name, tag
	case f.chosen == 3:
		return h.Name + " *", tag
	}
	return tag + " *", tag
}

func (w *writer) handle(h *symbols.Handle) {
	if w.older && (w.t.Version.Compare(h.Since) < 0 || !h.Until.IsZero() && h.Until.Compare(w.t.Version) < 0) {
		return // Table.At keeps handles of other releases
	}
	record := "handle " + h.Name
	if h.Tag == "void" {
		w.truth(record, "handle", "type", "void *", true, false, "sizeof("+h.Name+") == 8 && __builtin_classify_type(("+h.Name+")0) == __builtin_classify_type((void *)0)")
	}
	if h.Tag == "void" || h.Tag == h.Name || h.Tag == "" { // void * was handled above; the name of a struct without a tag or without a typedef is proven by its uses
		return
	}
	p := w.tags[h.Name] + " *"
	conds := []string{same(h.Name, p) + " || " + same(h.Name, "const "+p) + " || " + same("__typeof__("+h.Name+") *", p)}
	if w.older { // any pointer has the handle's ABI, and so has a pointer to any struct or to void
		switch w.names[h.Name] {
		case h.Name:
			conds[0] += " || __builtin_classify_type((" + h.Name + ")0) == __builtin_classify_type((void *)0)"
		case h.Name + " *": // only a number and void can be cast from 0
			conds = []string{"sizeof((" + h.Name + ")0) && (" + conds[0] + " || " + same(h.Name, "void") + ")", "1"}
		}
	}
	w.truth(record, "handle", "type", p, true, false, conds...)
}

func (w *writer) enum(e *symbols.Enum) {
	record := "enum " + e.Name
	if e.Name != "" && (w.unnamed[e.Name] != "" || !strings.Contains(e.Name, ".") && w.declared(e.Name)) {
		name := w.base(e.Name)
		w.number(record, "enum size", "size", "sizeof("+name+")", uint64(e.Bytes()))
		sign := uint64(0)
		if e.Signed {
			sign = 1
		}
		w.number(record, "enum sign", "signed", "("+name+")-1 < ("+name+")0", sign)
	}
	for _, v := range e.Values {
		negative := v.Value < 0 && e.Signed
		w.integer("enumerator "+v.Name, "enumerator", v.Name, strconv.FormatInt(v.Value, 10), uint64(v.Value), negative)
	}
}

func (w *writer) layout(s *symbols.Struct, name, c string) {
	record := "struct " + name
	w.number(record, "struct size", "size", "sizeof("+c+")", uint64(s.Size))
	f := w.number(record, "struct alignment", "alignment", "_Alignof("+c+")", uint64(s.Align))
	if most := w.align[s.Name]; most > s.Align { // alignment in the newest release
		f.check = func(x *answer) string {
			if n := x.number(); n < uint64(s.Align) || n > uint64(most) {
				return strconv.FormatUint(n, 10)
			}
			return ""
		}
	}
}

// fields adds the facts of a struct's members, and of the members of unnamed structs and unions in
// it.
func (w *writer) fields(s *symbols.Struct, record, root, path string, base int) {
	for _, f := range s.Fields {
		at := path
		ct, err := symbols.ParseType(f.Type)
		if err != nil {
			continue
		}
		inner := w.structs[ct.Base]
		if !f.Anonymous {
			at += f.Name
			what := at
			member := "((" + root + " *)0)->" + at
			if f.Bits > 0 {
				w.bits(record, root, at, &f, base)
				continue
			}
			w.number("struct "+record, "member offset", "offset of "+what, "__builtin_offsetof("+root+", "+at+")", uint64(base+f.Offset))
			w.number("struct "+record, "member size", "size of "+what, "sizeof("+member+")", uint64(f.Size))
			w.truth("struct "+record, "member type", "type of "+what, f.Type, true, false, same("__typeof__("+member+")", w.spell(f.Type)))
		}
		if inner == nil || !strings.Contains(ct.Base, ".") || ct.Pointers > 0 {
			continue
		}
		if !f.Anonymous {
			at += strings.Repeat("[0]", len(ct.Dims))
			w.layout(inner, inner.Name, "__typeof__((("+root+" *)0)->"+at+")")
			at += "."
		}
		w.fields(inner, record, root, at, base+f.Offset)
	}
}

// bits adds the facts of a bit-field. Writing it shows its bits; a comparison that the compiler
// folds shows its sign.
func (w *writer) bits(record, root, at string, f *symbols.Field, base int) {
	first := (base+f.Offset)*8 + f.BitOffset
	end := first + f.Bits
	w.add(&fact{
		record: "struct " + record, kind: "bit-field", what: "bits of " + at, table: fmt.Sprintf("%d to %d", first, end-1),
		tries: []string{"const " + root + " @ = { ." + at + " = -1 };"},
		check: func(x *answer) string {
			var set []int
			for i, b := range x.o.bytes(x.name, -1) {
				for j := range 8 {
					if b>>j&1 != 0 {
						set = append(set, i*8+j)
					}
				}
			}
			switch {
			case len(set) == f.Bits && set[0] == first && set[len(set)-1] == end-1:
				return ""
			case len(set) == 0:
				return "none"
			}
			return fmt.Sprintf("%d to %d", set[0], set[len(set)-1])
		},
	})
	signed, known := w.signed(f.Type)
	if !known {
		return
	}
	w.add(&fact{
		record: "struct " + record, kind: "bit-field sign", what: "sign of " + at, table: f.Type,
		tries: []string{"void @(" + root + " *p) { extern void @_below(void); if (p->" + at + " < 0) @_below(); }"},
		check: func(x *answer) string {
			if below := x.o.refers(x.name, x.name+"_below"); below != signed {
				return map[bool]string{true: "signed", false: "unsigned"}[below]
			}
			return ""
		},
	})
}

// signed reports whether a number type is signed.
func (w *writer) signed(ctype string) (signed, known bool) {
	base := w.t.Canonical(ctype)
	if e := w.enums[base]; e != nil {
		return e.Signed, true
	}
	for _, s := range w.t.Scalars {
		if s.Name == base {
			base = s.Type
		}
	}
	_, goes, ok := symbols.Builtin(base)
	return strings.HasPrefix(goes, "int"), ok && base != "char"
}

func (w *writer) constant(c *symbols.Constant) {
	record := "constant " + c.Name
	switch c.Type {
	case "float":
		want, err := strconv.ParseFloat(c.Value, 64)
		if err != nil {
			w.truth(record, "constant", "value", c.Value, false, false, "0")
			return
		}
		w.add(&fact{
			record: record, kind: "constant", what: "value", table: c.Value, tries: []string{"const double @ = " + c.Name + ";"},
			check: func(x *answer) string {
				if got := math.Float64frombits(x.number()); got != want && got != float64(float32(want)) && !(math.IsNaN(got) && math.IsNaN(want)) {
					return strconv.FormatFloat(got, 'g', -1, 64)
				}
				return ""
			},
		})
	case "string":
		w.add(&fact{
			record: record, kind: "constant", what: "value", table: strconv.Quote(c.Value), tries: []string{"const char @[] = " + c.Name + ";"},
			check: func(x *answer) string {
				if got := strings.TrimRight(string(x.o.bytes(x.name, -1)), "\x00"); got != c.Value {
					return strconv.Quote(got)
				}
				return ""
			},
		})
	case "pointer":
		want, _ := strconv.ParseUint(c.Value, 0, 64)
		w.number(record, "constant", "value", c.Name, want)
	default:
		if n, err := strconv.ParseInt(c.Value, 0, 64); err == nil {
			w.integer(record, "constant", c.Name, c.Value, uint64(n), n < 0)
		} else {
			n, _ := strconv.ParseUint(c.Value, 0, 64)
			w.integer(record, "constant", c.Name, c.Value, n, false)
		}
	}
}

// functions adds the facts of functions: type and symbol. If all is set, it adds the facts of every
// ABI version, otherwise only of the current versions. If plain is set, the facts of a current
// version use the plain name, or the symbol if the plain name does not compile.
func (w *writer) functions(all, plain bool) {
	means := map[string]string{} // the symbol that each plain name selects
	for _, f := range w.t.Functions {
		if f.Current {
			means[f.API] = f.Symbol
		}
	}
	var hidden []*symbols.Function // functions whose name is a macro for another function
	for i := range w.t.Functions {
		f := &w.t.Functions[i]
		switch {
		case plain && f.Current:
			w.function(f, f.API, f.Symbol)
		case all && means[f.Symbol] != "" && means[f.Symbol] != f.Symbol:
			hidden = append(hidden, f)
		case all || f.Current:
			w.function(f, f.Symbol, "")
		}
	}
	for _, f := range hidden {
		w.add(&fact{record: "function " + f.Symbol, tries: []string{"#undef " + f.Symbol}})
		w.function(f, f.Symbol, "")
	}
}

const maxVariants = 64

func (w *writer) function(f *symbols.Function, name, other string) {
	record := "function " + f.Symbol
	for _, ctype := range append([]string{f.Result}, types(f.Params)...) {
		if ct, err := symbols.ParseType(ctype); err == nil && slices.Contains(w.absent, ct.Base) {
			w.add(&fact{record: record, kind: "function type", what: "type", tries: []string{"typedef char @[sizeof(" + ct.Base + ")];"}, check: func(*answer) string { return "" }})
			return
		}
	}
	lists, strict := []string{""}, true
	for _, p := range f.Params {
		var next []string
		for _, v := range w.variants(p.Type, 8) {
			for _, l := range lists {
				if l != "" {
					l += ", "
				}
				next = append(next, l+v)
			}
		}
		if lists = next; len(lists) > maxVariants {
			lists, strict = lists[:maxVariants], false // trying const in all places would take too long
		}
	}
	if len(f.Params) == 0 {
		lists = []string{"void"}
	}
	for _, ctype := range append([]string{f.Result}, types(f.Params)...) {
		if ct, err := symbols.ParseType(ctype); err == nil && strings.Contains(ct.Base, ".") {
			strict = false // a table does not record every const in a function type that is declared in place
		}
	}
	var tries []string
	for _, n := range []string{name, other} {
		if n == "" || n == name && len(tries) > 0 {
			continue
		}
		var conds []string
		for _, r := range w.variants(f.Result, 4) {
			for _, l := range lists {
				conds = append(conds, same("__typeof__("+n+")", r+" ("+l+")"))
			}
		}
		old := same("__typeof__("+n+")", w.spell(f.Result)+" (struct puregpu_none *, struct puregpu_none *)")
		tries = append(tries, "const unsigned long long @[2] = { "+strings.Join(conds, " || ")+", "+old+" };")
	}
	w.add(&fact{
		record: record, kind: "function type", what: "type", table: prototype(f.Result, f.Params), tries: tries, qualified: true, strict: strict,
		check: func(x *answer) string {
			b := x.o.bytes(x.name, 16)
			switch {
			case b[8] != 0 && len(f.Params) > 0:
				return "that its parameters are not declared"
			case b[0] == 0:
				return "another type"
			}
			return ""
		},
	})
	var uses []string // in parentheses, so that a macro with parameters does not replace the name
	for _, n := range []string{name, other} {
		if n != "" && (n != name || len(uses) == 0) {
			uses = append(uses, "const void *@(void) { return (const void *)("+n+"); }")
		}
	}
	w.add(&fact{
		record: record, kind: "symbol", what: "symbol of " + name, table: f.Symbol, tries: uses,
		check: func(x *answer) string {
			reached := x.o.references(x.name, w.inline)
			if slices.Contains(reached, f.Symbol) {
				return ""
			}
			if len(reached) == 0 {
				return "no symbol"
			}
			return strings.Join(reached, " and ")
		},
	})
}
