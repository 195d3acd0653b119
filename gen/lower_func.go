package gen

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/puregpu/puregpu/symbols"
)

// maxFastWords is the number of words that a frame on the stack can carry.
const maxFastWords = 16

// An unbindableError says that no binding can express a function, even with an overlay entry.
type unbindableError struct{ error }

func unbindable(format string, args ...any) error {
	return unbindableError{fmt.Errorf(format, args...)}
}

// Unbindable returns the functions of a library that no binding can express, with reasons.
func Unbindable(lib *symbols.Library) ([]symbols.Refusal, error) {
	w, err := lowerTypes(lib)
	if err != nil {
		return nil, err
	}
	var out []symbols.Refusal
	for i := range lib.Funcs {
		f := &lib.Funcs[i]
		if _, err := w.function(f); err != nil {
			if _, ok := errors.AsType[unbindableError](err); ok {
				out = append(out, symbols.Refusal{Name: f.Symbol, Where: f.Where, Reason: err.Error()})
			}
		}
	}
	return out, nil
}

func (w *lowering) functions() {
	for i := range w.lib.Funcs {
		f, err := w.function(&w.lib.Funcs[i])
		if err != nil {
			w.fail(w.lib.Funcs[i].Symbol, "%v", err)
			continue
		}
		w.funcs = append(w.funcs, f)
	}
	for i := range w.funcs {
		for _, a := range w.funcs[i].params {
			if err := w.checkSize(&w.funcs[i], a); err != nil {
				w.fail(w.funcs[i].sym.Symbol, "parameter %s: %v", a.c.Name, err)
			}
		}
	}
}

// uses puts the names of Go in the place of symbols in the texts that say what to call instead of a
// function.
func (w *lowering) uses() {
	for i := range w.funcs {
		f := &w.funcs[i]
		f.use = w.use(f.sym.Symbol, f.sym.Use)
		for j := range w.misfits[f.sym.Symbol] {
			m := &w.misfits[f.sym.Symbol][j]
			m.Usage = w.use(f.sym.Symbol, m.Usage)
		}
	}
}

// use returns the text for an overlay's use: the names of Go, and the remark behind a comma.
func (w *lowering) use(symbol, text string) string {
	if text == "" {
		return ""
	}
	text, remark, remarked := strings.Cut(text, ",")
	names := strings.Split(text, " or ")
	for i, s := range names {
		j := w.funcIndex(s)
		if j < 0 {
			w.fail(symbol, "overlay: its use names %q, which is no symbol of a bound function", s)
			return ""
		}
		names[i] = w.funcs[j].name
	}
	text = strings.Join(names, " or ")
	if remarked {
		text += "," + remark
	}
	return text
}

// checkSize checks that a method can call the function that returns the size of its array a.
func (w *lowering) checkSize(f *function, a param) error {
	if a.c.Size == "" {
		return nil
	}
	j := w.funcIndex(a.c.Size)
	if j < 0 {
		return fmt.Errorf("its size comes from %s, which is not bound", a.c.Size)
	}
	outs := 0
	for _, b := range w.funcs[j].params {
		switch {
		case b.role == roleOut && slices.Contains([]string{"int32", "uint32", "int64", "uint64"}, b.typ.expr):
			outs++
		case b.role != roleValue || !slices.ContainsFunc(f.params, b.same):
			return fmt.Errorf("its size comes from %s, whose parameter %s is neither a number that it returns nor a parameter of %s", a.c.Size, b.c.Name, f.sym.Symbol)
		}
	}
	if outs != 1 || w.funcs[j].ret != retResult {
		return fmt.Errorf("its size comes from %s, which does not return an error code and one number", a.c.Size)
	}
	return nil
}

// same reports whether two parameters take the same value.
func (a param) same(b param) bool { return a.name == b.name && a.role == b.role && a.typ == b.typ }

func (w *lowering) function(f *symbols.Func) (function, error) {
	out := function{sym: f, name: w.names.function(f), set: w.lib.Sets[f.Set].Name, since: f.Since.String()}
	out.index = "fn" + out.name
	switch ct, err := symbols.ParseType(f.Result); {
	case err != nil:
		return out, err
	case w.isResult(ct):
		out.ret = retResult
	case ct.Base == "void" && ct.Pointers == 0:
		out.ret = retVoid
	case ct.Base == "char" && ct.Pointers == 1:
		out.ret = retString
	default:
		out.ret = retValue
		if out.value, err = w.gotype(f.Result); err != nil {
			return out, unbindable("returns %s: %w", f.Result, err)
		}
		switch out.value.kind {
		case kindInt, kindBool, kindPointer, kindFloat, kindDouble:
		case kindStruct:
			if err := w.resultStruct(f.Result, out.value.size); err != nil {
				return out, unbindable("returns %s, %w", f.Result, err)
			}
		default:
			return out, unbindable("returns %s, which is neither an error code, nothing, a string, a number, a handle, a pointer nor a struct", f.Result)
		}
	}
	words := 0
	out.fast = out.ret == retResult && !f.Callback && w.resultPair == nil // the fast path returns only 32 bits
	for i := range f.Args {
		p, err := w.param(f, i)
		if err != nil {
			return out, fmt.Errorf("parameter %s: %w", f.Args[i].Name, err)
		}
		code := "w"
		switch {
		case p.role == roleValue && p.typ.kind == kindFloat:
			code = "f"
		case p.role == roleValue && p.typ.kind == kindDouble:
			code = "d"
		case p.role == roleStruct:
			n, elem, ok := w.floats(p.c.Type)
			if err := w.byValue(p.c.Type); err != nil {
				return out, unbindable("parameter %s: %w", p.name, err)
			}
			switch {
			case n > 0 && n <= 4 && ok && p.typ.size == n*elem:
				code, p.floats = fmt.Sprintf("h%d%s;", n, map[int]string{4: "f", 8: "d"}[elem]), true
			case w.hasFloat(p.c.Type):
				return out, unbindable("parameter %s: struct with a float and other members by value", p.name)
			case !inRegister(p.typ.size):
				code = fmt.Sprintf("s%d;", p.typ.size)
			}
		}
		out.fast = out.fast && code == "w" && p.role != roleText && p.role != roleOutStr // functions with other parameters need not be fast
		out.sig += code
		words++
		out.params = append(out.params, p)
	}
	switch {
	case out.ret == retValue && out.value.kind == kindFloat:
		out.sig += ">f"
	case out.ret == retValue && out.value.kind == kindDouble:
		out.sig += ">d"
	}
	out.fast = out.fast && words <= maxFastWords
	distinct(out.params)
	out.nameResult()
	return out, w.counts(&out)
}

// nameResult gives the result a name that no parameter has.
func (f *function) nameResult() {
	names := []string{"n", "number", "result", "returned"}
	switch {
	case f.ret == retString:
		names = []string{"text", "result", "returned"}
	case f.ret != retValue:
		return
	case f.value.kind != kindInt || strings.ToUpper(f.value.expr[:1]) == f.value.expr[:1]:
		names = names[2:]
	}
	for _, f.result = range names {
		if !slices.ContainsFunc(f.params, func(p param) bool { return p.name == f.result }) {
			return
		}
	}
}

func (w *lowering) isResult(ct symbols.CType) bool {
	if s := w.resultPair; s != nil {
		return ct.Base == s.cname && ct.Pointers == 0
	}
	n, ok := w.lib.TypeNote(ct.Base)
	return ok && n.Kind == "result" && ct.Pointers == 0
}

// resultStructs finds the struct that the overlay makes the type of errors. Its first member is an
// error code of the library, 0 on success; its second is a code of another library. C returns the
// struct in one register.
func (w *lowering) resultStructs() {
	for i := range w.structs {
		s := &w.structs[i]
		if n, ok := w.lib.TypeNote(s.cname); !ok || n.Kind != "result" {
			continue
		}
		own := func(f field) bool {
			return slices.ContainsFunc(w.enums, func(e enum) bool { return e.result && e.name == f.typ.expr })
		}
		others := func(f field) bool {
			lender, name := w.lent(f.typ.expr)
			return lender != nil && slices.ContainsFunc(lender.enums, func(e enum) bool { return e.result && e.name == name })
		}
		if s.union || s.size != 8 || len(s.fields) != 2 || !own(s.fields[0]) || !others(s.fields[1]) {
			w.fail(s.cname, "cannot be the type of errors: its members must be an error code of this library and one of a library that it uses")
			continue
		}
		w.resultPair = s
	}
}

// byValue returns an error for a struct that C passes by value in a special way: its alignment is
// above 8 bytes, or it has at most 16 bytes and one of its words is padding, which C does not pass.
func (w *lowering) byValue(ctype string) error {
	s := w.structOf(ctype)
	if s == nil {
		return nil
	}
	if s.Align > 8 {
		return fmt.Errorf("struct by value that is aligned to %d bytes", s.Align)
	}
	used := make([]bool, (s.Size+7)/8)
	var mark func(s *symbols.Struct, at int)
	mark = func(s *symbols.Struct, at int) {
		for _, f := range s.Fields {
			if inner := w.structOf(f.Type); inner != nil {
				mark(inner, at+f.Offset)
				continue
			}
			first, end := at+f.Offset, at+f.Offset+f.Size
			if f.Bits > 0 {
				first, end = first+f.BitOffset/8, first+(f.BitOffset+f.Bits+7)/8
			}
			for i := first / 8; i < (end+7)/8 && i < len(used); i++ {
				used[i] = true
			}
		}
	}
	mark(s, 0)
	if s.Size <= 16 && slices.Contains(used, false) {
		return fmt.Errorf("struct by value that has 8 bytes of padding")
	}
	return nil
}

// resultStruct returns an error for a struct that some platform does not return in one register.
func (w *lowering) resultStruct(ctype string, size int) error {
	switch {
	case !inRegister(size):
		return fmt.Errorf("a struct of %d bytes: only structs of 1, 2, 4 or 8 bytes can be results", size)
	case w.hasFloat(ctype):
		return errors.New("a struct with a float")
	}
	return w.byValue(ctype)
}

// structOf returns the struct that a type names by value, or nil.
func (w *lowering) structOf(ctype string) *symbols.Struct {
	ct, err := symbols.ParseType(ctype)
	if err != nil || ct.Pointers > 0 || len(ct.Dims) > 0 || w.types[ct.Base].kind != kindStruct {
		return nil
	}
	for i := range w.lib.Structs {
		if s := &w.lib.Structs[i]; s.Name == ct.Base || w.types[s.Name].expr == w.types[ct.Base].expr {
			return s
		}
	}
	return nil
}

// floats returns the number and size of the floats in a type that has only floats of one size: a
// float, or a struct or array of them. It returns false for any other type.
func (w *lowering) floats(ctype string) (n, size int, ok bool) {
	ct, err := symbols.ParseType(ctype)
	if err != nil || ct.Pointers > 0 {
		return 0, 0, false
	}
	many := 1
	for _, d := range ct.Dims {
		many *= d
	}
	if lender, name := w.lent(w.types[ct.Base].expr); lender != nil {
		for cname, t := range lender.types {
			if t.expr == name && t.kind == kindStruct {
				n, size, ok := lender.floats(cname)
				return many * n, size, ok
			}
		}
	}
	switch t := w.types[ct.Base]; {
	case ct.Base == "float" || ct.Base == "double" || t.kind == kindFloat || t.kind == kindDouble:
		size, _, _ = symbols.Builtin(ct.Base)
		return many, max(size, t.size), true
	case t.kind != kindStruct:
		return 0, 0, false
	}
	for _, s := range w.lib.Structs {
		if w.types[s.Name].expr != w.types[ct.Base].expr || s.Union {
			continue
		}
		for _, f := range s.Fields {
			k, elem, ok := w.floats(f.Type)
			if !ok || size != 0 && elem != size {
				return 0, 0, false
			}
			n, size = n+many*k, elem
		}
		return n, size, n > 0
	}
	return 0, 0, false
}

// hasFloat reports whether a type is or holds a float at any depth: floats are passed in separate
// registers.
func (w *lowering) hasFloat(ctype string) bool {
	ct, err := symbols.ParseType(ctype)
	if err != nil || ct.Pointers > 0 {
		return false
	}
	if k := w.types[ct.Base].kind; ct.Base == "float" || ct.Base == "double" || k == kindFloat || k == kindDouble {
		return true
	}
	if lender, name := w.lent(w.types[ct.Base].expr); lender != nil {
		for cname, t := range lender.types {
			if t.expr == name && t.kind == kindStruct {
				return lender.hasFloat(cname)
			}
		}
	}
	for _, s := range w.lib.Structs {
		if s.Name == ct.Base || w.types[s.Name].expr == w.types[ct.Base].expr && w.types[ct.Base].kind == kindStruct {
			return slices.ContainsFunc(s.Fields, func(f symbols.Field) bool { return w.hasFloat(f.Type) })
		}
	}
	return false
}

// param decides the role of a parameter.
func (w *lowering) param(f *symbols.Func, i int) (param, error) {
	a := &f.Args[i]
	p := param{c: a, name: w.names.parameter(f, a.Name), len: -1}
	ct, err := symbols.ParseType(a.Type)
	if err != nil {
		return p, err
	}
	if len(ct.Dims) > 0 {
		return p, unbindable("array by value")
	}
	p.typ, err = w.gotype(a.Type)
	if err != nil {
		return p, unbindable("%w", err)
	}
	array := a.Len != "" || a.Slice || a.Fixed > 0
	if w.isVoidPointer(ct) { // by either name
		ct.Base, ct.Pointers = "void", 1
	}
	isPointer := ct.Pointers > 0 && p.typ.kind == kindPointer
	if !isPointer && (array || a.Dir == symbols.Out || a.Dir == symbols.InOut) {
		return p, w.notPointer(a.Type)
	}
	if a.GoType != "" {
		override, ok := w.override(a.GoType)
		if !ok {
			return p, fmt.Errorf("overlay: unknown Go type %s", a.GoType)
		}
		switch {
		case ct.Pointers >= 1 && (a.Dir == symbols.Out || array):
			p.typ = gotype{expr: "*" + override.expr, size: 8, align: 8, kind: kindPointer}
		case override.size > p.typ.size:
			return p, fmt.Errorf("overlay: %s has %d bytes and %s only %d", a.GoType, override.size, a.Type, p.typ.size)
		default:
			p.typ = override
			isPointer = false
		}
	}
	elem, size := strings.TrimPrefix(p.typ.expr, "*"), 0
	if isPointer {
		if n, room := a.Length(), a.Room(); room > 0 && n > room && !a.Guess {
			word := map[bool]string{true: "text", false: "fixed"}[a.Text > 0]
			return p, fmt.Errorf("the header declares %s, and a call would pass %s: write \"%s\": %d", a.C, count(room, "element", "elements"), word, n)
		}
		if size, err = w.elemSize(ct, a); err != nil {
			return p, err
		}
	}
	switch {
	case !isPointer:
		p.role = roleValue
		switch p.typ.kind {
		case kindStruct:
			p.role = roleStruct
		case kindPointer:
			p.role = rolePointer // a typedef of a pointer, or unsafe.Pointer from the overlay
		case kindArray:
			return p, fmt.Errorf("array by value")
		}
	case a.Text > 0:
		if ct.Base != "char" || ct.Pointers != 1 {
			return p, fmt.Errorf("a text buffer must be char *, not %s", a.Type)
		}
		p.role = roleText
	case a.Fixed > 0:
		p.role, p.typ.expr = rolePointer, fmt.Sprintf("*[%d]%s", a.Fixed, elem)
	case array:
		p.role = roleSlice
		switch {
		case p.typ.expr == "unsafe.Pointer":
			p.typ = gotype{expr: "byte", size: 1}
		default:
			p.typ = gotype{expr: elem, size: size}
		}
	case a.Late != "":
		if a.Dir != symbols.Out || p.typ.expr == "unsafe.Pointer" {
			return p, fmt.Errorf("overlay: %s is not an output, so it cannot be written late", a.Type)
		}
		p.role = rolePointer // the caller passes memory that outlives the call
	case a.Dir == symbols.Out && ct.Base == "char" && ct.Pointers == 2:
		p.role, p.typ = roleOutStr, gotype{expr: "string"}
	case a.Dir == symbols.Out && p.typ.expr != "unsafe.Pointer" && !(ct.Base == "char" && ct.Pointers == 1):
		p.role, p.typ = roleOut, gotype{expr: elem, size: size}
	case ct.Base == "char" && ct.Const && ct.Pointers == 1:
		p.role, p.typ = roleString, gotype{expr: "string"}
	default:
		p.role = rolePointer
	}
	return p, nil
}

// elemSize returns the size of a pointer's element. A Go type from the overlay must have C's size,
// because the library writes that many bytes. For an output of type void * the size is that of the
// Go type.
func (w *lowering) elemSize(ct symbols.CType, a *symbols.Arg) (int, error) {
	size := 8
	if ct.Pointers == 1 {
		size = 1
		if t, err := w.base(ct.Base, false); err == nil {
			size = t.size
		}
	}
	if a.GoType == "" {
		return size, nil
	}
	override, ok := w.override(a.GoType)
	switch {
	case !ok:
		return 0, fmt.Errorf("overlay: unknown Go type %s", a.GoType)
	case w.isVoidPointer(ct) && a.Dir == symbols.Out && a.Len == "" && !a.Slice && a.Fixed == 0:
	case override.size != size:
		return 0, fmt.Errorf("overlay: %s has %d bytes and the element of %s has %d", a.GoType, override.size, a.Type, size)
	}
	return override.size, nil
}

// isVoidPointer reports whether a type is void *, or a typedef of it that the overlay makes a
// pointer.
func (p *pkg) isVoidPointer(ct symbols.CType) bool {
	n, _ := p.lib.TypeNote(ct.Base)
	return ct.Base == "void" && ct.Pointers == 1 || n.Kind == "pointer" && ct.Pointers == 0
}

// notPointer says why a parameter cannot be an array or an output, and what to write.
func (w *lowering) notPointer(ctype string) error {
	ct, _ := symbols.ParseType(ctype) // no error: the caller has parsed it
	for _, h := range w.lib.Handles {
		switch {
		case h.Name != ct.Base:
		case h.Tag == "void":
			return fmt.Errorf(`%s is bound as a handle: remove the entry, or write {"name": %[1]q, "kind": "pointer", "reason": "…"} into types of the overlay if it points to memory`, h.Name)
		case slices.ContainsFunc(w.lib.Refused, func(r symbols.Refusal) bool { return r.Name == h.Name }):
			return fmt.Errorf("%s is refused, so %[1]s * is a handle: remove the entry", h.Name)
		case h.Struct || h.Tag == h.Name:
			return fmt.Errorf("no header defines %s, so %[1]s * is a handle: remove the entry", h.Name)
		default:
			return fmt.Errorf("%s is a handle: remove the entry", h.Name)
		}
	}
	return fmt.Errorf("%s is not a pointer and cannot be an array or an output", ctype)
}

func (w *lowering) override(name string) (gotype, bool) {
	switch name {
	case "uintptr", "uint64":
		return gotype{expr: name, size: 8, align: 8}, true
	case "unsafe.Pointer":
		return gotype{expr: name, size: 8, align: 8, kind: kindPointer}, true
	}
	for _, t := range slices.Concat(w.handles, w.scalars) {
		if t.name == name {
			return w.types[t.cname], true
		}
	}
	for _, e := range w.enums {
		if e.name != "" && e.name == name {
			return w.types[e.cname], true
		}
	}
	if lender, name := w.lent(name); lender != nil {
		t, ok := lender.override(name)
		t.expr = qualify(t.expr, lender.desc.Library)
		return t, ok
	}
	if name == "DevicePtr" {
		w.address = true
		return gotype{expr: name, size: 8, align: 8}, true
	}
	return gotype{}, false
}

// counts joins arrays and text buffers with their length parameters.
func (w *lowering) counts(f *function) error {
	for i := range f.params {
		a := f.params[i].c
		if f.params[i].role == roleText && a.Len == "" {
			size := w.lib.SizeOf(f.sym.Params, i)
			if size != "" && !slices.ContainsFunc(f.sym.Args, func(b symbols.Arg) bool { return b.Len == size }) {
				return fmt.Errorf(`parameter %s: %s may be its size, and C would write as many bytes over a buffer of %d: write "text": %[3]d, "len": %[2]q, or "fixed": %[3]d if %[2]s is something else`, a.Name, size, a.Text)
			}
		}
		if a.Len == "" {
			continue
		}
		name, byPointer := strings.CutPrefix(a.Len, "*")
		j := slices.IndexFunc(f.params, func(p param) bool { return p.c.Name == name })
		if j < 0 {
			return fmt.Errorf("parameter %s: no parameter %s to count it", a.Name, name)
		}
		n := &f.params[j]
		f.params[i].len = j
		switch {
		case n.len >= 0 && (n.role == roleCount || n.role == roleCountOut):
			continue // several arrays share a count: the first one determines it
		case byPointer:
			if n.role != roleOut && n.role != rolePointer {
				return fmt.Errorf("parameter %s counts %s by pointer but is %s", name, a.Name, n.c.Type)
			}
			n.role, n.len = roleCountOut, i
			ct, err := symbols.ParseType(n.c.Type)
			if err != nil {
				return err
			}
			size, err := w.elemSize(ct, n.c)
			if err != nil {
				return fmt.Errorf("parameter %s: %w", name, err)
			}
			n.typ = gotype{expr: strings.TrimPrefix(n.typ.expr, "*"), size: size}
		default:
			if n.role != roleValue || n.typ.kind != kindInt {
				return fmt.Errorf("parameter %s counts %s but is %s", name, a.Name, n.c.Type)
			}
			n.role, n.len = roleCount, i
		}
	}
	return nil
}

// distinct renames parameters that would have the same Go name. Parameters that keep C's name go
// first.
func distinct(params []param) {
	taken, reserved := map[string]bool{}, map[string]bool{}
	for _, p := range params {
		if p.role == roleString {
			reserved[p.name+"C"] = true // the method has a variable of this name
		}
	}
	for _, p := range params {
		if p.name == p.c.Name && !reserved[p.name] {
			taken[p.name] = true
		}
	}
	for i := range params {
		p := &params[i]
		if p.name == p.c.Name && !reserved[p.name] {
			continue
		}
		for taken[p.name] || reserved[p.name] {
			p.name += "Arg"
		}
		taken[p.name] = true
	}
}
