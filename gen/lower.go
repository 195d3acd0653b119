package gen

import (
	"errors"
	"fmt"
	"go/token"
	"maps"
	"math"
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/puregpu/puregpu/symbols"
)

// lower decides the Go form of every declaration of a library.
func lower(lib *symbols.Library) (*pkg, error) {
	w, err := lowerTypes(lib)
	if err != nil {
		return nil, err
	}
	if err := unsettled(lib); err != nil {
		w.errs = append(w.errs, err)
	}
	w.functions()
	w.collisions()
	w.misfits = lib.Misfits()
	w.uses()
	for _, name := range lib.UnusedChanges() {
		w.fail("overlay: changes", "%s: no bound function has such a change; remove or correct the entry", name)
	}
	if err := errors.Join(w.errs...); err != nil {
		return nil, err
	}
	return w.pkg, w.names.unused()
}

// unsettled returns an error that lists each pointer and function pointer whose use is unknown. A
// wrong guess about a pointer can let C write over Go's memory. If C calls back into Go during a
// fast call, Go may move the stack that C writes to.
func unsettled(lib *symbols.Library) error {
	functions := lib.Unsettled()
	var pointers, asking int
	var list strings.Builder
	types := map[string]int{}
	for i := range functions {
		f := &functions[i]
		list.WriteString("\n" + lib.Declaration(f))
		for _, a := range f.Args {
			if a.Guess {
				pointers++
				types[lib.HeaderType(a.Type)]++
				fmt.Fprintf(&list, "\n\t{\"name\": \"%s.%s\", \"dir\": \"?\", \"reason\": \"?\"}", f.Symbol, a.Name)
			}
		}
		if len(f.Asks) > 0 {
			asking++
			fmt.Fprintf(&list, "\n\tIt takes a function pointer (%s):\n\t{\"name\": %q, \"callback\": \"?\", \"reason\": \"?\"}", strings.Join(f.Asks, ", "), f.Symbol)
		}
	}
	if len(functions) == 0 {
		return nil
	}
	text := "nothing is generated before all below is settled. bindgen -guess writes the entries with blanks into the overlay."
	if pointers > 0 {
		most := slices.MaxFunc(slices.Sorted(maps.Keys(types)), func(a, b string) int { return types[a] - types[b] })
		text += fmt.Sprintf(`
The header does not say how %s. Each goes into params of the overlay, or a rule for many into pointers of the description:
	{"name": "*.*", "types": [%q], "dir": "?", "reason": "?"}
Instead of "dir": "?" write
%s`, count(pointers, "pointer is meant", "pointers are meant"), most, symbols.HowMeant)
	}
	if asking > 0 {
		text += fmt.Sprintf(`
No header says when a library runs a function that it is given: %s a function pointer. Each goes into functions of the overlay.
Instead of "callback": "?" write
%s`, count(asking, "function takes", "functions take"), symbols.HowCalled)
	}
	return fmt.Errorf("gen: %s: %s%s", lib.Description.Library, text, &list)
}

func count(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, many)
}

// lowerTypes lowers everything except functions.
func lowerTypes(lib *symbols.Library) (*lowering, error) {
	desc := lib.Description
	w := &lowering{pkg: &pkg{desc: desc, lib: lib}, names: namer{desc, lib, map[string]bool{}, structVersions(lib)}, types: map[string]gotype{}, incomplete: map[string]bool{}}
	if err := w.borrow(); err != nil {
		return nil, err
	}
	w.namedTypes()
	w.enumerations()
	w.constants()
	w.aliases()
	w.structures()
	w.callbacks()
	return w, nil
}

type lowering struct {
	*pkg
	names      namer
	types      map[string]gotype // Go types, by C name
	incomplete map[string]bool   // tags of opaque structs
	errs       []error
}

func (w *lowering) fail(symbol, format string, args ...any) {
	w.errs = append(w.errs, fmt.Errorf("gen: %s: %s: %s", w.desc.Library, symbol, fmt.Sprintf(format, args...)))
}

func (w *lowering) namedTypes() {
	for _, h := range w.lib.Handles {
		if w.isVoidPointer(symbols.CType{Base: h.Name}) {
			w.types[h.Name] = gotype{expr: "unsafe.Pointer", size: 8, align: 8, kind: kindPointer}
			continue
		}
		under := "uintptr"
		if n, ok := w.lib.TypeNote(h.Name); ok && n.Kind == "address" {
			under = "uint64"
		}
		t := namedType{h.Name, w.names.typ(h.Name), under, w.lib.TypeDoc(h.Name)}
		w.handles = append(w.handles, t)
		w.incomplete[h.Tag] = true
		w.types[h.Name] = gotype{expr: t.name, size: 8, align: 8}
	}
	for _, a := range w.lib.Aliases { // aliases that the overlay makes handles
		if n, ok := w.lib.TypeNote(a.Name); ok && n.Kind == "handle" {
			t := namedType{a.Name, w.names.typ(a.Name), "uintptr", w.lib.TypeDoc(a.Name)}
			w.handles = append(w.handles, t)
			w.types[a.Name] = gotype{expr: t.name, size: 8, align: 8}
		}
	}
	codes := w.codes()
	for _, s := range w.lib.Scalars {
		if slices.ContainsFunc(codes, func(e symbols.Enum) bool { return e.Name == s.Name }) {
			continue
		}
		size, under, ok := symbols.Builtin(s.Type)
		if !ok || size == 0 {
			w.fail(s.Name, "no Go type for %s", s.Type)
			continue
		}
		if n, ok := w.lib.TypeNote(s.Name); ok && n.Kind == "number" {
			w.types[s.Name] = gotype{expr: under, size: size, align: size, kind: numberKind(under)}
			continue
		}
		if w.longOfWindows(s.Type) {
			w.fail(s.Name, "%s has another size on Windows: where that does no harm, write {\"name\": %q, \"kind\": \"number\", \"reason\": \"…\"} into types of the overlay", s.Type, s.Name)
		}
		t := namedType{s.Name, w.names.typ(s.Name), under, w.lib.TypeDoc(s.Name)}
		w.scalars = append(w.scalars, t)
		w.types[s.Name] = gotype{expr: t.name, size: size, align: size, kind: numberKind(under), signed: strings.HasPrefix(under, "int")}
	}
}

// numberKind returns the kind of a Go number type.
func numberKind(name string) kind {
	switch name {
	case "bool":
		return kindBool
	case "float32":
		return kindFloat
	case "float64":
		return kindDouble
	}
	return kindInt
}

// codes returns the number types that the overlay makes error codes, as enumerations. Their values
// are the macros that the overlay names.
func (w *lowering) codes() (out []symbols.Enum) {
	for _, s := range w.lib.Scalars {
		n, ok := w.lib.TypeNote(s.Name)
		if !ok || n.Kind != "result" || len(n.Values) == 0 {
			continue
		}
		e := symbols.Enum{Name: s.Name, Signed: true}
		if size, _, _ := symbols.Builtin(s.Type); size != 4 {
			e.Size = size
		}
		for _, c := range w.lib.Constants {
			v, err := strconv.ParseInt(c.Value, 10, 64)
			if err == nil && (c.Type == "int" || c.Type == "uint") && slices.ContainsFunc(n.Values, func(p string) bool { ok, _ := path.Match(p, c.Name); return ok }) {
				e.Values = append(e.Values, symbols.EnumValue{Name: c.Name, Value: v})
			}
		}
		out = append(out, e)
	}
	return out
}

func (w *lowering) enumerations() {
	for _, e := range slices.Concat(w.lib.Enums, w.codes()) {
		size := e.Bytes()
		out := enum{cname: e.Name, under: fmt.Sprintf("uint%d", 8*size), doc: w.lib.TypeDoc(e.Name)}
		if n, ok := w.lib.TypeNote(e.Name); ok && n.Kind == "result" {
			out.result = true
		}
		if e.Signed || out.result {
			out.under = out.under[1:]
		}
		if out.result && size != 4 {
			w.fail(e.Name, "is an error code of %d bytes, which must have 4", size)
		}
		if e.Name != "" {
			out.name = w.names.typ(e.Name)
			w.types[e.Name] = gotype{expr: out.name, size: size, align: size, signed: e.Signed}
		}
		for _, v := range e.Values {
			if !fits(v.Value, size, out.under[0] == 'i') {
				w.fail(v.Name, "the value %d does not fit into %s", v.Value, out.under)
				continue
			}
			spans, others := make([]symbols.Span, len(v.Others)), make([]string, len(v.Others))
			for i, o := range v.Others {
				spans[i], others[i] = o.Span, strconv.FormatInt(o.Value, 10)
			}
			out.values = append(out.values, value{v.Name, w.names.value(v.Name), v.Value, w.lib.TypeDoc(v.Name), lifeOf(v.Since, v.Until, spans, others)})
		}
		w.enums = append(w.enums, out)
	}
	for _, n := range w.lib.Overlay.Types {
		enumeration := slices.ContainsFunc(w.enums, func(e enum) bool { return e.cname == n.Name })
		structure := slices.ContainsFunc(w.lib.Structs, func(s symbols.Struct) bool { return s.Name == n.Name })
		if n.Kind == "result" && !enumeration && !structure {
			w.fail(n.Name, "is an error code, so it must be an enumeration; if its codes are macros, name them in values of the overlay's entry: \"values\": [\"…_*\"]")
		}
	}
}

// fits reports whether a value fits into an integer with the given number of bytes.
func fits(n int64, bytes int, signed bool) bool {
	if bytes == 8 {
		return true // an int64 also holds the bits of every uint64
	}
	least, most := int64(0), int64(1)<<(8*bytes)-1
	if signed {
		least, most = -1<<(8*bytes-1), most/2
	}
	return least <= n && n <= most
}

// lifeOf describes when a value was added and removed, and its number in other releases. The text
// continues after the value's name. If the number differs in more than two spans of releases, the
// text gives only the end of the last one.
func lifeOf(since, until symbols.Version, spans []symbols.Span, others []string) string {
	text := ""
	if !since.IsZero() {
		text += ", since " + since.String()
	}
	if !until.IsZero() {
		text += ", until " + until.String()
	}
	if n := len(spans); n > 2 {
		return text + "; others until " + spans[n-1].Until.String()
	}
	for i, s := range spans {
		text += "; " + others[i] + " in " + s.Since.String()
		if s.Until != s.Since {
			text += " to " + s.Until.String()
		}
	}
	return text
}

func (w *lowering) constants() {
	enumerators := map[string]bool{}
	for _, e := range w.enums {
		for _, v := range e.values {
			enumerators[v.cname] = true
		}
	}
	for _, c := range w.lib.Constants {
		if enumerators[c.Name] {
			continue // an enumerator in one release of the headers and a macro in another
		}
		spans, others := make([]symbols.Span, len(c.Others)), make([]string, len(c.Others))
		for i, o := range c.Others {
			if spans[i], others[i] = o.Span, o.Value; o.Type == "string" {
				others[i] = strconv.Quote(o.Value)
			}
		}
		k := constant{cname: c.Name, name: w.names.value(c.Name), lit: c.Value, life: lifeOf(c.Since, c.Until, spans, others)}
		switch c.Type {
		case "int", "uint", "float":
		case "pointer":
			k.typ = "uintptr"
			if n, err := strconv.ParseUint(c.Value, 10, 64); err == nil && ^n <= math.MaxUint32 {
				k.lit = fmt.Sprintf("^uintptr(%d)", ^n) // such as (void *)-1: the same on systems of 32 bits
			} else if n > math.MaxUint32 {
				k.typ = "" // it fits into no uintptr of 32 bits
			}
		case "string":
			k.lit = strconv.Quote(c.Value)
		default:
			t, ok := w.types[c.Type]
			if !ok {
				w.fail(c.Name, "constant of unknown type %s", c.Type)
				continue
			}
			k.typ = t.expr
		}
		w.consts = append(w.consts, k)
	}
}

// aliases lowers the aliases of types that are already lowered. An alias becomes a Go alias, unless
// its Go name is that of the type.
func (w *lowering) aliases() {
	for pending := w.lib.Aliases; len(pending) > 0; {
		var later []symbols.Alias
		for _, a := range pending {
			if _, done := w.types[a.Name]; done {
				continue
			}
			if t, ok := w.resolveAlias(a.Type); ok {
				w.addAlias(a, t)
			} else {
				later = append(later, a)
			}
		}
		if len(later) == len(pending) {
			break // the method structures lowers the others: aliases of structs, callbacks and pointers
		}
		pending = later
	}
}

func (w *lowering) addAlias(a symbols.Alias, t gotype) {
	if name := w.names.typ(a.Name); name != t.expr {
		w.pkg.aliases = append(w.pkg.aliases, typeAlias{a.Name, name, t.expr})
	}
	w.types[a.Name] = t
}

func (w *lowering) resolveAlias(ctype string) (gotype, bool) {
	ct, err := symbols.ParseType(ctype)
	if err != nil || ct.Pointers > 0 {
		return gotype{}, false
	}
	t, ok := w.types[ct.Base]
	return t, ok
}

// preferred maps the name of a struct with a version to its alias without the version:
// CUDA_MEMCPY2D_v2 to CUDA_MEMCPY2D.
func (w *lowering) preferred() map[string]string {
	m := map[string]string{}
	for _, a := range w.lib.Aliases {
		if base, _, ok := strings.Cut(a.Type, "_v"); ok && base == a.Name {
			m[a.Type] = a.Name
		}
	}
	return m
}

func (w *lowering) structures() {
	plain := w.preferred()
	for _, s := range w.lib.Structs { // all names before any fields: structs point to each other
		name := w.names.typ(s.Name)
		if p, ok := plain[s.Name]; ok {
			name = w.names.typ(p)
		}
		w.types[s.Name] = gotype{expr: name, size: s.Size, align: w.goAlign(s.Name), kind: kindStruct}
	}
	for range 4 { // repeated for aliases of aliases of structs
		for _, a := range w.lib.Aliases {
			if _, done := w.types[a.Name]; done {
				continue
			}
			if t, ok := w.resolveAlias(a.Type); ok {
				w.addAlias(a, t)
			}
		}
	}
	for _, cb := range w.lib.Callbacks { // before fields, which may be callbacks
		w.types[cb.Name] = gotype{expr: w.names.typ(cb.Name), size: 8, align: 8}
	}
	for _, a := range w.lib.Aliases { // aliases of pointers to structs
		if _, done := w.types[a.Name]; !done {
			t, err := w.gotype(a.Type)
			if err != nil {
				w.fail(a.Name, "%v", err)
				continue
			}
			w.types[a.Name] = t
		}
	}
	for _, s := range w.lib.Structs {
		w.structure(&s)
	}
	w.resultStructs()
}

// goAlign returns the alignment of a type in Go. The alignment of a struct is the largest alignment
// of its members, even if C aligns the struct differently.
func (w *lowering) goAlign(ctype string) int {
	ct, err := symbols.ParseType(ctype)
	if err != nil || ct.Pointers > 0 {
		return 8
	}
	if size, _, ok := symbols.Builtin(ct.Base); ok {
		return max(1, size)
	}
	for _, s := range w.lib.Structs {
		if s.Name == ct.Base {
			align := 1
			for _, f := range s.Fields {
				align = max(align, w.goAlign(f.Type))
			}
			return align
		}
	}
	for _, a := range w.lib.Aliases {
		if a.Name == ct.Base {
			return w.goAlign(a.Type)
		}
	}
	if t, ok := w.types[ct.Base]; ok {
		return t.align
	}
	return 8
}

func (w *lowering) structure(s *symbols.Struct) {
	out := structure{cname: s.Name, name: w.types[s.Name].expr, doc: w.lib.TypeDoc(s.Name), union: s.Union, size: s.Size, align: s.Align, goAlign: 1}
	if n, ok := w.lib.TypeNote(s.Name); ok && n.Align > 0 {
		out.align = n.Align
	}
	pads, end := 0, 0
	pad := func(to int) {
		if to > end {
			out.fields = append(out.fields, field{name: "_", typ: gotype{expr: fmt.Sprintf("[%d]byte", to-end)}, offset: end, size: to - end})
			pads++
			end = to
		}
	}
	names := w.fieldNames(s)
	bytes := w.byteUnits(s)
	bitUnit := -1
	for i, f := range s.Fields {
		t, err := w.gotype(f.Type)
		if err != nil {
			w.fail(s.Name, "field %s: %v", f.Name, err)
			return
		}
		g := field{cname: f.Name, name: names[i], typ: t, offset: f.Offset, size: f.Size, bits: f.Bits, bit: f.BitOffset}
		if t.size != f.Size {
			w.fail(s.Name, "field %s: %s is %d bytes in Go and %d in C", f.Name, t.expr, t.size, f.Size)
			return
		}
		if f.Bits > 0 && t.kind != kindInt && t.kind != kindBool {
			w.fail(s.Name, "bit-field %s of type %s", f.Name, f.Type)
			return
		}
		if unit, ok := bytes[i]; ok {
			g.offset, g.bytes, g.unit = unit.first, unit.end-unit.first, "bits"+strconv.Itoa(unit.first)
			g.bit = 8*f.Offset + f.BitOffset - 8*unit.first
			out.bitAlign = max(out.bitAlign, t.align)
			if s.Union {
				g.unit = "data"
			}
			if unit.first >= end {
				pad(unit.first)
			}
			out.fields = append(out.fields, g)
			end = unit.end
			continue
		}
		out.goAlign = max(out.goAlign, t.align)
		if s.Union {
			out.fields = append(out.fields, g)
			continue
		}
		if f.Bits > 0 { // all bit-fields of a unit share one unexported integer
			if f.Offset == bitUnit {
				g.unit = "bits" + strconv.Itoa(f.Offset)
				out.fields = append(out.fields, g)
				continue
			}
			if f.Offset < end {
				w.fail(s.Name, "bit-field %s overlaps another unit", f.Name)
				return
			}
			bitUnit = f.Offset
			g.unit = "bits" + strconv.Itoa(f.Offset)
		}
		pad(f.Offset)
		if f.Offset%t.align != 0 {
			w.fail(s.Name, "field %s: Go cannot put %s at offset %d", f.Name, t.expr, f.Offset)
			return
		}
		out.fields = append(out.fields, g)
		end = f.Offset + f.Size
	}
	if out.bitAlign > out.goAlign { // a Go array of bytes has no alignment, so a field of size 0 adds the alignment
		out.goAlign = out.bitAlign
		if !s.Union {
			out.fields = append([]field{{name: "_", typ: gotype{expr: fmt.Sprintf("[0]uint%d", 8*out.bitAlign)}}}, out.fields...)
		}
	}
	if !s.Union {
		if rounded := (end + out.goAlign - 1) / out.goAlign * out.goAlign; rounded < s.Size {
			pad(s.Size)
		}
	}
	w.structs = append(w.structs, out)
}

// fieldNames returns the Go names of a struct's fields. If two would be equal, a C name with
// underscores keeps its underscores.
func (w *lowering) fieldNames(s *symbols.Struct) []string {
	names, count := make([]string, len(s.Fields)), map[string]int{}
	for i, f := range s.Fields {
		names[i] = w.names.field(s.Name, f.Name)
		count[names[i]]++
	}
	taken := map[string]bool{}
	for i, f := range s.Fields {
		if count[names[i]] > 1 && strings.Contains(f.Name, "_") {
			names[i] = strings.ToUpper(f.Name[:1]) + f.Name[1:]
		}
		if taken[names[i]] {
			w.fail(s.Name, "field %s would have the name %s of another field; rename one in the overlay, in names: %s", f.Name, names[i], nameEntry(s.Name+"."+f.Name))
		}
		taken[names[i]] = true
		if f.Bits > 0 {
			taken["Set"+names[i]] = true
		}
	}
	return names
}

type byteRange struct{ first, end int }

// byteUnits finds the bit-fields that are stored as bytes. In a union, all bit-fields are stored
// so, each as a group of its own. In a struct, consecutive bit-fields are stored as one group if
// one of them is not an unsigned integer, shares a unit with another type, or overlaps another
// member. byteUnits returns, by the index of each bit-field, the bytes of the group.
func (w *lowering) byteUnits(s *symbols.Struct) map[int]byteRange {
	out := map[int]byteRange{}
	for i := 0; i < len(s.Fields); {
		j := i // consecutive bit-fields are i to j-1
		for j < len(s.Fields) && s.Fields[j].Bits > 0 && (!s.Union || j == i) {
			j++
		}
		if i == j {
			i++
			continue
		}
		run := s.Fields[i:j]
		plain := !s.Union && (i == 0 || s.Fields[i-1].Offset+s.Fields[i-1].Size <= run[0].Offset) &&
			(j == len(s.Fields) || run[len(run)-1].Offset+run[len(run)-1].Size <= s.Fields[j].Offset)
		for k, f := range run {
			t, _ := w.gotype(f.Type)
			same := k == 0 || f.Offset == run[k-1].Offset && f.Type == run[k-1].Type || f.Offset >= run[k-1].Offset+run[k-1].Size
			plain = plain && same && t.kind == kindInt && !(&field{typ: t}).signed()
		}
		if !plain {
			last := run[len(run)-1]
			r := byteRange{(8*run[0].Offset + run[0].BitOffset) / 8, (8*last.Offset + last.BitOffset + last.Bits + 7) / 8}
			for k := range run {
				out[i+k] = r
			}
		}
		i = j
	}
	return out
}

func (w *lowering) callbacks() {
	for _, cb := range w.lib.Callbacks {
		var params []string
		for _, p := range cb.Params {
			params = append(params, p.Type+" "+p.Name)
		}
		w.cbs = append(w.cbs, callback{cb.Name, w.types[cb.Name].expr, w.lib.TypeDoc(cb.Name), cb.Result + "(" + strings.Join(params, ", ") + ")"})
	}
}

// gotype returns the Go type that has the shape of a C type.
func (w *lowering) gotype(ctype string) (gotype, error) {
	ct, err := symbols.ParseType(ctype)
	if err != nil {
		return gotype{}, err
	}
	t, err := w.base(ct.Base, ct.Pointers > 0)
	if err != nil {
		return gotype{}, err
	}
	for range ct.Pointers {
		if t.expr == "" { // void, or an opaque struct
			t.expr = "unsafe.Pointer"
		} else {
			t.expr = "*" + t.expr
		}
		t = gotype{expr: t.expr, size: 8, align: 8, kind: kindPointer}
	}
	for i := len(ct.Dims) - 1; i >= 0; i-- {
		t = gotype{expr: fmt.Sprintf("[%d]%s", ct.Dims[i], t.expr), size: ct.Dims[i] * t.size, align: t.align, kind: kindArray}
	}
	return t, nil
}

// longOfWindows reports whether a type is C's long or unsigned long, the library exists on Windows,
// where these types have another size, and the overlay has no note that the different size is
// harmless.
func (w *lowering) longOfWindows(name string) bool {
	_, allowed := w.lib.TypeNote(name)
	return !allowed && (name == "long" || name == "unsigned long") && slices.Contains(w.desc.Systems(), "windows")
}

func (w *lowering) base(name string, pointedTo bool) (gotype, error) {
	if t, ok := w.types[name]; ok {
		return t, nil
	}
	if w.longOfWindows(name) {
		return gotype{}, fmt.Errorf("%s has another size on Windows: where that does no harm, write {\"name\": %[1]q, \"kind\": \"number\", \"reason\": \"…\"} into types of the overlay", name)
	}
	if size, goes, ok := symbols.Builtin(name); ok {
		t := gotype{expr: goes, size: size, align: size}
		if goes == "" && !pointedTo {
			return t, fmt.Errorf("void by value")
		}
		t.kind = numberKind(goes)
		return t, nil
	}
	if w.incomplete[name] && pointedTo {
		return gotype{}, nil
	}
	return gotype{}, fmt.Errorf("unknown type %q", name)
}

// nameEntry returns the overlay entry that gives a C name another Go name.
func nameEntry(cname string) string {
	return fmt.Sprintf(`{"name": %q, "go": "…", "reason": "…"}`, cname)
}

// collisions reports Go names that two declarations would have, or that Go does not export.
func (w *lowering) collisions() {
	owner := map[string]string{}
	for _, name := range w.ownNames() {
		owner[name] = "the package's own " + name
	}
	take := func(name, cname string) {
		if !token.IsExported(name) || !token.IsIdentifier(name) {
			w.fail(cname, "would be called %q, which is not an exported Go name; name it in the overlay, in names: %s", name, nameEntry(cname))
		}
		if other, taken := owner[name]; taken && other != cname {
			w.fail(cname, "would have the name %s of %s; rename one in the overlay, in names: %s", name, other, nameEntry(cname))
		}
		owner[name] = cname
	}
	if w.address {
		take("DevicePtr", "the package's own DevicePtr")
	}
	for _, t := range w.handles {
		take(t.name, t.cname)
	}
	for _, t := range w.scalars {
		take(t.name, t.cname)
	}
	for _, t := range w.pkg.aliases {
		take(t.name, t.cname)
	}
	for _, t := range w.structs {
		take(t.name, t.cname)
	}
	for _, t := range w.cbs {
		take(t.name, t.cname)
	}
	for _, e := range w.enums {
		if e.name != "" {
			take(e.name, e.cname)
		}
		for _, v := range e.values {
			take(v.name, v.cname)
		}
	}
	for _, c := range w.consts {
		take(c.name, c.cname)
	}
	methods := map[string]string{}
	for _, name := range []string{"Open", "Slow", "Addr", "Path", "Version", "Has", "HasSymbol", "Missing", "Sets", "Explain", "HeapFrames"} {
		methods[name] = "a method of dl.Library"
	}
	for _, f := range w.funcs {
		if !token.IsExported(f.name) || !token.IsIdentifier(f.name) {
			w.fail(f.sym.Symbol, "would be the method %q, which is not an exported Go name; name it in the overlay, in names: %s", f.name, nameEntry(f.sym.Symbol))
		}
		if other, taken := methods[f.name]; taken {
			w.fail(f.sym.Symbol, "would be the method %s, as %s is; rename it in the overlay, in names: %s", f.name, other, nameEntry(f.sym.Symbol))
		}
		methods[f.name] = f.sym.Symbol
	}
}
