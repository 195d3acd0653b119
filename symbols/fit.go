package symbols

import (
	"cmp"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// A Misfit is a range of releases in which a function must not be called: there its parameters, its
// result or a type that they use differ from the binding.
type Misfit struct {
	From  Version // the first release of the range; zero for a range that begins with the oldest release
	To    Version // the first release after the range; zero for a range without an end
	What  string  // the name of the struct, enumeration or function that differs
	Text  string  // the difference, in words that continue after the function's name
	Usage string  // the replacement to call, or ""
	Hint  string  // the entry of the overlay with which the function would fit, and when to write it; or ""
}

// Misfits returns the misfits of each function, by symbol and oldest release first.
//
// For each release that was read, Misfits compares the binding with everything that a call passes,
// and follows pointers and members of structs. These differences do not count, since the memory
// where they occur is zero or ignored: members that the other layout reserves, or pads if the
// struct is not a result or a callback's argument; and a shorter struct that is an output, or of
// which a note on its parameter says that it is passed alone. Without such a note, a pointer may be
// to an array. A bound struct that the release leaves opaque differs. An enumeration differs if an
// enumerator has another number, and a function if it declares a longer array than a call passes.
// A note of the overlay on a change can declare a difference harmless.
//
// Between a release that fits and one that does not, the releases that were not read do not fit,
// unless a note names the first release with the change.
func (l *Library) Misfits() map[string][]Misfit {
	out, _ := l.misfits()
	return out
}

// misfits also returns the names of the notes for which the table has a change.
func (l *Library) misfits() (map[string][]Misfit, map[string]bool) {
	out := map[string][]Misfit{}
	if len(l.Releases) < 2 {
		return out, nil
	}
	c := &comparer{l: l, notes: map[string]ChangeNote{}, used: map[string]bool{}, bound: viewOf(l.Table)}
	for _, n := range l.Overlay.Changes {
		c.notes[n.Name] = n
	}
	views := make([]*view, len(l.Releases))
	for i, v := range l.Releases {
		views[i] = viewOf(l.At(v))
		for _, s := range l.Structs {
			views[i].opaque[s.Name] = slices.ContainsFunc(s.Opaque, func(o Span) bool { return o.covers(v) })
		}
	}
	for i := range l.Funcs {
		f := &l.Funcs[i]
		if f.Lib != "" {
			continue
		}
		var at []Version
		var found []*difference
		for j, v := range l.Releases {
			if has(f.Since, f.Until, v) {
				d := c.function(f, views[j], v)
				if o := other(f.Others, v, func(o *Signature) Span { return o.Span }); o != nil && o.Why != "" && !c.harmless(f.Symbol) {
					d = &difference{what: f.Symbol, kind: "parameters", text: o.Why}
				}
				at, found = append(at, v), append(found, d)
			}
		}
		if ms := c.ranges(f.Symbol, at, found); len(ms) > 0 {
			out[f.Symbol] = ms
		}
	}
	return out, c.used
}

// UnusedChanges returns the names of notes on changes for which the table has no change.
func (l *Library) UnusedChanges() []string {
	_, used := l.misfits()
	var out []string
	for _, n := range l.Overlay.Changes {
		if !used[n.Name] {
			out = append(out, n.Name)
		}
	}
	return out
}

// A difference says how a release differs from the binding in a record.
type difference struct {
	what string // name of the record
	kind string // "size", "order", "field", "opaque", "numbers", "parameters"
	was  int    // size in that release
	is   int    // size in the binding
	text string
	hint string // Misfit.Hint

	numbers []string // the enumerators with other numbers, as "LIB_RED is 1"
}

// ranges makes one Misfit for adjacent releases that differ in the same way. The list at has the
// releases with the function, oldest first. The list found has the difference of each release, or
// nil.
func (c *comparer) ranges(symbol string, at []Version, found []*difference) []Misfit {
	var out []Misfit
	for i := 0; i < len(at); {
		d := found[i]
		if d == nil {
			i++
			continue
		}
		j := i
		for j+1 < len(at) && found[j+1] != nil && found[j+1].what == d.what && found[j+1].kind == d.kind {
			j++
		}
		m := Misfit{What: d.what}
		for _, name := range []string{d.what, symbol} { // the function's note is last: its Use wins
			if n, ok := c.notes[name]; ok {
				c.used[name] = true
				m.Usage = cmp.Or(n.Use, m.Usage)
			}
		}
		if i > 0 {
			m.From = c.l.after(at[i-1])
			if n := c.notes[d.what]; !n.Since.IsZero() && n.Since.Compare(at[i-1]) > 0 && n.Since.Compare(at[i]) <= 0 {
				m.From = n.Since
			}
		}
		if j+1 < len(at) {
			m.To = at[j+1]
		}
		m.Text, m.Hint = d.describe(m), d.hint
		if d.kind == "numbers" {
			m.Hint = hintNumbers(found[i : j+1])
		}
		out = append(out, m)
		i = j + 1
	}
	return out
}

// after returns the oldest release that can come after v.
func (l *Library) after(v Version) Version {
	if l.Description != nil && (l.Description.Version.Build || l.Description.Version.Numbers[0].Patch == 0) {
		return Version{Major: v.Major, Minor: v.Minor + 1}
	}
	return Version{v.Major, v.Minor, v.Patch + 1}
}

// hintNumbers returns the hint of a misfit whose enumerators have other numbers. It names each
// enumerator, with the number in the oldest release that differs.
func hintNumbers(differ []*difference) string {
	var is, entries []string
	for _, d := range differ {
		for _, text := range d.numbers {
			name, _, _ := strings.Cut(text, " ")
			if entry := fmt.Sprintf(`{"name": %q, "harmless": true, "reason": "…"}`, name); !slices.Contains(entries, entry) {
				is, entries = append(is, text), append(entries, entry)
			}
		}
	}
	who := "it"
	if len(is) > 1 {
		who = "them"
	}
	if n := len(is); n > 4 {
		is, entries = append(is[:4:4], fmt.Sprintf("and %d more are others", n-4)), append(entries[:4:4], "…")
	}
	return fmt.Sprintf("%s there: if no call is given %s, write into changes of the overlay %s", strings.Join(is, ", "), who, strings.Join(entries, ", "))
}

func (d *difference) describe(m Misfit) string {
	when := ""
	switch {
	case m.From.IsZero() && m.To.IsZero():
		when = "in all releases that have the function"
	case m.From.IsZero():
		when = fmt.Sprintf("before %v", m.To)
	case m.To.IsZero():
		when = fmt.Sprintf("from %v on", m.From)
	default:
		when = fmt.Sprintf("from %v to before %v", m.From, m.To)
	}
	switch d.kind {
	case "size":
		if m.From.IsZero() && m.To.IsZero() {
			return fmt.Sprintf("%s is of %d bytes %s, and of %d where it is bound", d.what, d.was, when, d.is)
		}
		last := map[bool]string{true: "since", false: "before"}[m.From.IsZero()]
		if !m.From.IsZero() && !m.To.IsZero() {
			last = "else"
		}
		return fmt.Sprintf("%s is of %d bytes %s, and of %d %s", d.what, d.was, when, d.is, last)
	case "order":
		return fmt.Sprintf("%s has its fields in another order %s", d.what, when)
	case "numbers":
		return fmt.Sprintf("%s has other numbers %s", d.what, when)
	}
	return fmt.Sprintf("%s %s", d.text, when)
}

// A view holds the records of a table by name.
type view struct {
	t         *Table
	structs   map[string]*Struct
	enums     map[string]*Enum
	callbacks map[string]*Callback
	funcs     map[string]*Function
	opaque    map[string]bool // structs that the release names and does not define
	cache     map[string]CType
	values    map[*Enum]map[string]int64
}

func viewOf(t *Table) *view {
	v := &view{t: t, structs: map[string]*Struct{}, enums: map[string]*Enum{}, callbacks: map[string]*Callback{}, funcs: map[string]*Function{}, opaque: map[string]bool{}, cache: map[string]CType{}, values: map[*Enum]map[string]int64{}}
	for i := range t.Structs {
		v.structs[t.Structs[i].Name] = &t.Structs[i]
	}
	for i := range t.Enums {
		v.enums[t.Enums[i].Name] = &t.Enums[i]
	}
	for i := range t.Callbacks {
		v.callbacks[t.Callbacks[i].Name] = &t.Callbacks[i]
	}
	for i := range t.Functions {
		v.funcs[t.Functions[i].Symbol] = &t.Functions[i]
	}
	return v
}

func (v *view) resolve(ctype string) CType {
	if ct, ok := v.cache[ctype]; ok {
		return ct
	}
	ct, err := v.t.resolve(ctype)
	if err != nil {
		ct = CType{Base: ctype}
	}
	v.cache[ctype] = ct
	return ct
}

// plain returns the C type of which base is a typedef, if base is a typedef of a number. Otherwise
// plain returns base.
func (v *view) plain(base string) string {
	for _, s := range v.t.Scalars {
		if s.Name == base {
			return s.Type
		}
	}
	return base
}

// number returns the size of a number or an enumeration, or 0 for another type.
func (v *view) number(base string) int {
	if size, _, ok := Builtin(base); ok {
		return size
	}
	if e := v.enums[base]; e != nil {
		return e.Bytes()
	}
	size, _, _ := Builtin(v.plain(base))
	return size
}

// float reports whether a type is a float, or a typedef of one.
func (v *view) float(base string) bool { return isFloat(v.plain(base)) }

// narrow returns the C type of an integer of fewer than 4 bytes, and its Go type, which has the
// sign. For char, whose sign differs between systems, and for other types it returns "".
func (v *view) narrow(base string) (ctype, goType string) {
	if e := v.enums[base]; e != nil {
		base = e.CType()
	}
	base = v.plain(base)
	if size, goType, _ := Builtin(base); 0 < size && size < 4 && base != "char" {
		return base, goType
	}
	return "", ""
}

type comparer struct {
	l     *Library
	bound *view
	notes map[string]ChangeNote
	used  map[string]bool
	under map[compared]bool // what is being compared
	given bool              // it is a result or a callback's argument: its padding is not zero
}

// compared names two structs or two function types. It says whether their sizes must be equal, and
// whether they come from the library.
type compared struct {
	here, there  string
	whole, given bool
}

// harmless reports whether a note of the overlay says that a difference is harmless.
func (c *comparer) harmless(names ...string) bool {
	for _, n := range names {
		if note, ok := c.notes[n]; ok {
			c.used[n] = true
			if note.Harmless {
				return true
			}
		}
	}
	return false
}

// function compares a function in a release with the bound one. It returns nil if the release lacks
// the function, or if nothing differs.
func (c *comparer) function(f *Func, there *view, v Version) *difference {
	g := there.funcs[f.Symbol]
	if g == nil {
		return nil
	}
	c.under, c.given = map[compared]bool{}, true
	if len(f.Params) != len(g.Params) {
		if c.harmless(f.Symbol) {
			return nil
		}
		return &difference{what: f.Symbol, kind: "parameters", text: "it takes " + parameters(len(g.Params)) + fmt.Sprintf(" and not %d", len(f.Params))}
	}
	if d := c.types(f.Result, g.Result, there, true); d != nil {
		return c.of(f, d, "it returns "+there.t.HeaderType(g.Result))
	}
	c.given = false
	for i := range f.Params {
		p := &f.Args[i]
		alone := p.Len == "" && !p.Slice && p.Fixed == 0 && (p.one || p.Dir == Out)
		if d := c.types(p.Type, g.Params[i].Type, there, !alone); d != nil {
			if c.bound.resolve(p.Type).Base != there.resolve(g.Params[i].Type).Base {
				d = &difference{} // the parameter has another type, so the difference is the function's
			}
			if p.Len == "" && !p.Slice && p.Fixed == 0 && !alone && c.types(p.Type, g.Params[i].Type, there, false) == nil {
				d.hint = fmt.Sprintf(`if %s points to one %s, not to an array, write into params of the overlay {"name": %q, "dir": %q, "reason": "…"}`, p.Name, c.bound.resolve(p.Type).Base, f.Symbol+"."+p.Name, cmp.Or(p.Dir, In))
			}
			if d = c.of(f, d, "it takes "+there.t.HeaderType(g.Params[i].Type)); d != nil {
				return d
			}
		}
		if room := p.Room(); !p.Guess && room > 0 && g.Params[i].Length() > room {
			if d := c.of(f, &difference{}, "it takes "+g.Params[i].declaration(there.t)); d != nil {
				return d
			}
		}
	}
	return nil
}

func parameters(n int) string {
	if n == 1 {
		return "1 parameter"
	}
	return fmt.Sprintf("%d parameters", n)
}

// of returns the difference of a function whose result or parameter differs, or nil if the
// difference is harmless. A difference in a record, such as a struct, stays that record's
// difference.
func (c *comparer) of(f *Func, d *difference, text string) *difference {
	if c.harmless(f.Symbol) {
		return nil
	}
	if d.what == "" {
		d.what, d.kind, d.text = f.Symbol, "parameters", text
	}
	return d
}

// types compares two types. The sizes of structs must be equal too, with one exception: if whole is
// not set, a struct behind a pointer may be shorter in the release.
func (c *comparer) types(here, theirs string, there *view, whole bool) *difference {
	return c.resolved(c.bound.resolve(here), there.resolve(theirs), there, whole)
}

func (c *comparer) resolved(a, b CType, there *view, whole bool) *difference {
	different := &difference{}
	if a.Pointers > 0 && b.Pointers > 0 && (a.Pointers == 1 && a.Base == "void" || b.Pointers == 1 && b.Base == "void") {
		return nil // any address fits void *
	}
	if a.Pointers != b.Pointers || !slices.Equal(a.Dims, b.Dims) {
		return different
	}
	x, y := c.bound.structs[a.Base], there.structs[b.Base]
	switch {
	case x != nil && there.opaque[a.Base]:
		if c.harmless(a.Base) {
			return nil
		}
		return &difference{what: a.Base, kind: "opaque", text: a.Base + " is opaque"}
	case x != nil && y != nil:
		return c.structs(x, y, there, a.Pointers != 1 || whole)
	case c.bound.enums[a.Base] != nil && there.enums[b.Base] != nil:
		if a.Base != b.Base {
			return different
		}
		if m, n := c.bound.number(a.Base), there.number(b.Base); m != n {
			return c.size(a.Base, m, n)
		}
		if d := c.sign(a.Base, b.Base, there); d != nil {
			return d
		}
		return c.numbers(c.bound.enums[a.Base], there.enums[b.Base], there)
	case c.bound.callbacks[a.Base] != nil && there.callbacks[b.Base] != nil:
		return c.callbacks(c.bound.callbacks[a.Base], there.callbacks[b.Base], there)
	}
	if !there.t.defines(b.Base) { // these headers declare neither the type nor the function, which only the library may have
		return nil
	}
	m, n := c.bound.number(a.Base), there.number(b.Base)
	switch {
	case m != 0 || n != 0:
		same := a.Base == b.Base && !isBuiltin(a.Base)
		switch f := there.float(b.Base); {
		case m != n && m != 0 && n != 0 && same:
			return c.size(a.Base, m, n)
		case c.bound.float(a.Base) != f && same:
			if c.harmless(a.Base) {
				return nil
			}
			return &difference{what: a.Base, kind: "parameters", text: a.Base + " is " + map[bool]string{true: "a float", false: "an integer"}[f]}
		case m != n && a.Base != "void" || c.bound.float(a.Base) != f:
			return different
		}
		return c.sign(a.Base, b.Base, there)
	case a.Base != b.Base && a.Pointers == 0:
		return different
	}
	return nil
}

// callbacks compares two function types. Structs behind their pointers must be of equal size: they
// are the library's, and the Go function would read beyond a shorter one.
func (c *comparer) callbacks(x, y *Callback, there *view) *difference {
	pair := compared{x.Name, y.Name, true, false}
	if c.under[pair] {
		return nil
	}
	c.under[pair] = true
	defer delete(c.under, pair)
	defer func(was bool) { c.given = was }(c.given)
	c.given = false
	of := func(d *difference, text string) *difference {
		if c.harmless(x.Name) {
			return nil
		}
		if d.what == "" {
			d = &difference{what: x.Name, kind: "parameters", text: x.Name + " " + text}
		}
		return d
	}
	if len(x.Params) != len(y.Params) {
		return of(&difference{}, fmt.Sprintf("takes %s and not %d", parameters(len(y.Params)), len(x.Params)))
	}
	if d := c.types(x.Result, y.Result, there, true); d != nil {
		return of(d, "returns "+there.t.HeaderType(y.Result))
	}
	c.given = true
	for i := range x.Params {
		if d := c.types(x.Params[i].Type, y.Params[i].Type, there, true); d != nil {
			return of(d, "takes "+there.t.HeaderType(y.Params[i].Type))
		}
		if n := y.Params[i].Length(); n > 0 && n < x.Params[i].Length() {
			if d := of(&difference{}, "takes "+y.Params[i].declaration(there.t)); d != nil {
				return d
			}
		}
	}
	return nil
}

// size returns the difference of a number or an enumeration with another size in the release.
func (c *comparer) size(name string, is, was int) *difference {
	if c.harmless(name) {
		return nil
	}
	return &difference{what: name, kind: "size", was: was, is: is}
}

// sign compares the signs of two integers of fewer than 4 bytes, and bool with other types: the
// caller extends an argument to 4 bytes by its sign.
func (c *comparer) sign(here, theirs string, there *view) *difference {
	_, x := c.bound.narrow(here)
	is, y := there.narrow(theirs)
	switch {
	case x == y || x == "" || y == "":
		return nil
	case here != theirs || isBuiltin(here):
		return &difference{}
	case c.harmless(here):
		return nil
	}
	return &difference{what: here, kind: "parameters", text: here + " is " + is}
}

func isFloat(base string) bool { return base == "float" || base == "double" }

// numbers returns the numbers of an enumeration's enumerators, and of macros that replace them.
func (v *view) numbers(e *Enum) map[string]int64 {
	if out, ok := v.values[e]; ok {
		return out
	}
	out := map[string]int64{}
	v.values[e] = out
	for _, x := range e.Values {
		out[x.Name] = x.Value
	}
	for _, c := range v.t.Constants {
		if c.Type != e.Name || e.Name == "" {
			continue
		}
		if n, err := strconv.ParseInt(c.Value, 0, 64); err == nil {
			out[c.Name] = n
		}
	}
	return out
}

func (c *comparer) numbers(x, y *Enum, there *view) *difference {
	here, theirs := c.bound.numbers(x), there.numbers(y)
	var differ []string
	for _, name := range slices.Sorted(maps.Keys(here)) {
		if n, ok := theirs[name]; ok && n != here[name] && !c.harmless(name, x.Name+"."+name) {
			differ = append(differ, fmt.Sprintf("%s is %d", name, n))
		}
	}
	if len(differ) == 0 || c.harmless(x.Name) {
		return nil
	}
	return &difference{what: x.Name, kind: "numbers", numbers: differ}
}

// IsReserved reports whether a field's name says that the field is unused.
func IsReserved(name string) bool { return reserved.MatchString(name) }

var reserved = regexp.MustCompile(`(?i)^_*(cuda|hip)?(reserved|pad|padding|unused)_?\d*$`)

// A place is a member of a struct, or of an unnamed member.
type place struct {
	Field
	at    int  // offset from the start of the struct
	union bool // in a union, where each member has its own size
}

// bits returns the number of bits of a member.
func (p *place) bits() int {
	if p.Bits > 0 {
		return p.Bits
	}
	return 8 * p.Size
}

// sameOrder reports whether the members that are in both layouts have the same order.
func sameOrder(here, theirs map[string]place) bool {
	var a []string
	for name := range here {
		if _, ok := theirs[name]; ok {
			a = append(a, name)
		}
	}
	b := slices.Clone(a)
	sort := func(names []string, in map[string]place) {
		slices.SortFunc(names, func(m, n string) int {
			p, q := in[m], in[n]
			return cmp.Or(cmp.Compare(p.at, q.at), cmp.Compare(p.BitOffset, q.BitOffset), cmp.Compare(m, n))
		})
	}
	sort(a, here)
	sort(b, theirs)
	return slices.Equal(a, b)
}

// places adds the named members of a struct to a map. For a member without a name, it adds the
// members inside that member.
func (v *view) places(s *Struct, at int, into map[string]place) {
	for _, f := range s.Fields {
		if inner := v.structs[v.resolve(f.Type).Base]; f.Anonymous && inner != nil {
			v.places(inner, at+f.Offset, into)
			continue
		}
		into[f.Name] = place{f, at + f.Offset, s.Union}
	}
}

// structs compares two layouts. If whole is set, the sizes must also be equal.
func (c *comparer) structs(x, y *Struct, there *view, whole bool) *difference {
	pair := compared{x.Name, y.Name, whole, c.given}
	if c.under[pair] {
		return nil
	}
	c.under[pair] = true
	defer delete(c.under, pair)
	if d := c.layout(x, y, there, whole); d != nil {
		if c.harmless(x.Name) {
			return nil
		}
		return d
	}
	return nil
}

func (c *comparer) layout(x, y *Struct, there *view, whole bool) *difference {
	size := &difference{what: x.Name, kind: "size", was: y.Size, is: x.Size}
	order := &difference{what: x.Name, kind: "order"}
	if x.Size != y.Size {
		order = size
	}
	if y.Size > x.Size || whole && y.Size != x.Size || x.Union != y.Union {
		return size
	}
	here, theirs := map[string]place{}, map[string]place{}
	c.bound.places(x, 0, here)
	there.places(y, 0, theirs)
	for _, name := range slices.Sorted(maps.Keys(here)) {
		f := here[name]
		if IsReserved(name) {
			continue
		}
		if g, ok := theirs[name]; ok {
			if f.at != g.at || f.Bits != g.Bits || f.BitOffset != g.BitOffset {
				if x.Size == y.Size && sameOrder(here, theirs) {
					text := fmt.Sprintf("%s.%s is at offset %d instead of %d", x.Name, name, g.at, f.at)
					if f.Bits != g.Bits {
						text = fmt.Sprintf("%s.%s has %d bits instead of %d", x.Name, name, g.bits(), f.bits())
					} else if f.at == g.at {
						text = fmt.Sprintf("%s.%s begins at bit %d instead of %d", x.Name, name, g.BitOffset, f.BitOffset)
					}
					return &difference{what: x.Name, kind: "field", text: text}
				}
				return order
			}
			if d := c.member(f, g, there); d != nil {
				if d.what == "" && x.Size == y.Size {
					return &difference{what: x.Name, kind: "field", text: fmt.Sprintf("%s.%s is %s instead of %s", x.Name, name, g.Type, f.Type)}
				} else if d.what == "" {
					return size
				}
				return d
			}
			continue
		}
		padding := true
		for _, other := range theirs {
			apart := other.at+other.Size <= f.at || f.at+f.Size <= other.at
			padding = padding && apart
			if apart || f.union || other.union || IsReserved(other.Name) {
				continue
			}
			if other.at != f.at || other.Size != f.Size {
				return order
			}
			if d := c.member(f, other, there); d != nil && d.what != "" { // more than the type's name differs
				return d
			} else if d != nil {
				return order
			}
		}
		if padding && c.given {
			return &difference{what: x.Name, kind: "field", text: x.Name + " has no " + name}
		}
	}
	return nil
}

// member compares the types of two members. Arrays of the same size may have other dimensions. The
// sizes of a union's members may differ, since layout compares the size of the union.
func (c *comparer) member(f, g place, there *view) *difference {
	a, b := c.bound.resolve(f.Type), there.resolve(g.Type)
	array := len(a.Dims) > 0
	if array && len(b.Dims) > 0 && (f.union || f.Size == g.Size) {
		a.Dims, b.Dims = nil, nil
	}
	if s, t := c.bound.structs[a.Base], there.structs[b.Base]; s != nil && t != nil && a.Pointers == 0 && b.Pointers == 0 && slices.Equal(a.Dims, b.Dims) {
		return c.structs(s, t, there, !f.union || array)
	}
	return c.resolved(a, b, there, true)
}
