package extract

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/puregpu/puregpu/symbols"
)

// A union adds releases to a table. A release adds records, the since- and until-version of each
// record, and the layouts, numbers and parameters that differ from the bound ones. If the release
// is the newest, its numbers become the bound ones, and so do its layouts that only extend the
// bound ones. The bound parameters of functions and callbacks, the types of numbers and the sizes of
// enumerations stay.
//
// A record of the oldest release has no since-version, unless it is a function. A record of the
// newest release has no until-version.
type union struct {
	d      *symbols.Description
	t      *symbols.Table
	report func(string)
	onto   bool // the table existed before, so additions of a newer release are new to its users

	settled bool // the description's Headers.Settled

	where   map[string]string // by symbol, the header and the line in the newest release that declares it
	refused []symbols.Refusal // functions of older releases only that the table cannot hold

	unlike map[string]string // functions of the release to add that no table can hold, with Signature.Why
}

// add adds the declarations of a release.
func (u *union) add(h *symbols.Table) {
	v, t := h.Version, u.t
	u.rename(h)
	if !u.onto && !u.settled {
		u.otherKinds(h)
	}
	u.respell(h)
	if slices.Contains(t.Releases, v) {
		u.checkAgain(h)
		return
	}
	s := spans{v: v, releases: t.Releases, report: u.report}
	u.types(h, s)
	u.enums(h, s)
	u.structs(h, s)
	u.constants(h, s)
	u.functions(h, s)
	for _, file := range h.Headers {
		if !slices.ContainsFunc(t.Headers, func(x symbols.Header) bool { return x.Name == file.Name && x.Version == file.Version }) {
			t.Headers = append(t.Headers, file)
		}
	}
	t.Releases = append(slices.Clone(t.Releases), v)
	slices.SortFunc(t.Releases, symbols.Version.Compare)
	t.Version = t.Releases[len(t.Releases)-1]
}

// checkAgain compares the headers of a release with the table, which has that release already. It
// reports differences.
func (u *union) checkAgain(h *symbols.Table) {
	at := u.t.At(h.Version)
	have := map[string]symbols.Function{}
	for _, f := range at.Functions {
		have[f.Symbol] = f
	}
	for _, f := range h.Functions {
		g, ok := have[f.Symbol]
		if !ok {
			u.report(fmt.Sprintf("%s is in the headers of %v and not in the table", f.Symbol, h.Version))
		} else if why := differ(u.t, h, g.Result, g.Params, f.Result, f.Params); why != "" && differ(u.t, u.t, g.Result, g.Params, f.Result, f.Params) != "" {
			u.report(fmt.Sprintf("%s: the headers of %v and the table differ: %s", f.Symbol, h.Version, why))
		}
	}
	layouts := map[string]symbols.Struct{}
	for _, s := range at.Structs {
		layouts[s.Name] = s
	}
	for _, s := range h.Structs {
		if have, ok := layouts[s.Name]; ok && !sameLayout(u.t, h, layoutOf(&have), layoutOf(&s)) {
			u.report(fmt.Sprintf("struct %s: the headers of %v and the table differ", s.Name, h.Version))
		}
	}
}

// rename finds the types of a release whose names are aliases in the table, and gives each of them
// the table's name of the type. CUDA_KERNEL_NODE_PARAMS was a struct before CUDA 11.4; since then
// the struct is CUDA_KERNEL_NODE_PARAMS_v1.
func (u *union) rename(h *symbols.Table) {
	t := u.t
	names, taken := map[string]string{}, h.TypeNames()
	find := func(name string, fits func(of string) bool) {
		i := slices.IndexFunc(t.Aliases, func(a symbols.Alias) bool { return a.Name == name })
		if i < 0 {
			return
		}
		candidates := []string{t.Aliases[i].Type}
		for v := 1; v < 10; v++ {
			candidates = append(candidates, fmt.Sprintf("%s_v%d", name, v))
		}
		for j := range candidates { // follow a chain of aliases to its end
			candidates[j] = t.Canonical(candidates[j])
		}
		if j := slices.IndexFunc(candidates, fits); j >= 0 {
			names[name] = candidates[j]
		} else if !taken[candidates[0]] { // no layout fits: the type that the alias stands for
			names[name] = candidates[0]
		}
		taken[names[name]] = true
	}
	for _, o := range h.Structs {
		find(o.Name, func(of string) bool {
			i := slices.IndexFunc(t.Structs, func(x symbols.Struct) bool { return x.Name == of })
			if i < 0 {
				return false
			}
			x := t.Structs[i]
			if x.Size != o.Size || len(x.Fields) != len(o.Fields) {
				return false
			}
			for k, f := range x.Fields {
				if g := o.Fields[k]; f.Name != g.Name || f.Offset != g.Offset || f.Size != g.Size {
					return false
				}
			}
			return true
		})
	}
	for _, o := range h.Scalars {
		find(o.Name, func(of string) bool {
			return slices.ContainsFunc(t.Scalars, func(x symbols.Scalar) bool { return x.Name == of && x.Type == o.Type })
		})
	}
	for _, o := range h.Enums {
		if of := u.macrosFor(&o); of != "" {
			names[o.Name] = of
			continue
		}
		find(o.Name, func(of string) bool {
			return slices.ContainsFunc(t.Enums, func(x symbols.Enum) bool { return x.Name == of })
		})
	}
	for _, o := range h.Callbacks {
		find(o.Name, func(of string) bool {
			return slices.ContainsFunc(t.Callbacks, func(x symbols.Callback) bool { return x.Name == of })
		})
	}
	if len(names) == 0 {
		return
	}
	renamed := func(name string) string {
		first, rest, member := strings.Cut(name, ".")
		if to := names[first]; to != "" {
			if first = to; member {
				return first + "." + rest
			}
			return first
		}
		return name
	}
	for _, name := range slices.Collect(maps.Keys(names)) {
		if names[name] == "" || strings.ContainsAny(names[name], "*[ ") {
			delete(names, name)
		}
	}
	h.EachType(func(_ string, ctype *string) {
		*ctype = typeName.ReplaceAllStringFunc(*ctype, renamed)
	})
	have := h.TypeNames()
	h.Structs = slices.DeleteFunc(h.Structs, func(o symbols.Struct) bool { return renamed(o.Name) != o.Name && have[renamed(o.Name)] })
	h.Scalars = slices.DeleteFunc(h.Scalars, func(o symbols.Scalar) bool { return renamed(o.Name) != o.Name && have[renamed(o.Name)] })
	h.Enums = slices.DeleteFunc(h.Enums, func(o symbols.Enum) bool { return renamed(o.Name) != o.Name && have[renamed(o.Name)] })
	h.Callbacks = slices.DeleteFunc(h.Callbacks, func(o symbols.Callback) bool { return renamed(o.Name) != o.Name && have[renamed(o.Name)] })
	for i := range h.Structs {
		h.Structs[i].Name = renamed(h.Structs[i].Name)
	}
	for i := range h.Scalars {
		h.Scalars[i].Name = renamed(h.Scalars[i].Name)
	}
	for i := range h.Enums {
		h.Enums[i].Name = renamed(h.Enums[i].Name)
	}
	for i := range h.Callbacks {
		h.Callbacks[i].Name = renamed(h.Callbacks[i].Name)
	}
}

// respell writes out the aliases, numbers and enumerations of a release whose names mean something
// else in the table: an alias of another type, or a type of another kind. The table keeps its own.
func (u *union) respell(h *symbols.Table) {
	have, to := kinds(u.t, ""), map[string]string{}
	for _, a := range h.Aliases {
		same := u.t.SameType(a.Name, h, a.Name) || sameNumber(numberOf(u.t, a.Name), numberOf(h, a.Name))
		if have[a.Name] != "" && !same && !strings.Contains(a.Type, "[") {
			to[a.Name] = a.Type
		}
	}
	for _, s := range h.Scalars {
		if kind := have[s.Name]; kind != "" && kind != "scalar" {
			to[s.Name] = s.Type
		}
	}
	for i := range h.Enums {
		if e := &h.Enums[i]; e.Name != "" && have[e.Name] != "" && have[e.Name] != "enum" {
			to[e.Name] = e.CType()
			e.Name, e.Tag = "", "" // the enumerators stay
		}
	}
	if len(to) == 0 {
		return
	}
	h.EachType(func(_ string, ctype *string) {
		*ctype = typeName.ReplaceAllStringFunc(*ctype, func(name string) string {
			for range 16 { // a chain of aliases is short
				next, ok := to[name]
				if !ok {
					break
				}
				name = next
			}
			return name
		})
	})
	h.Aliases = slices.DeleteFunc(h.Aliases, func(a symbols.Alias) bool { return to[a.Name] != "" })
	h.Scalars = slices.DeleteFunc(h.Scalars, func(s symbols.Scalar) bool { return to[s.Name] != "" })
}

// opaque reports whether a handle has the name of its struct.
func opaque(t *symbols.Table, name string) bool {
	return slices.ContainsFunc(t.Handles, func(h symbols.Handle) bool { return h.Name == name && (h.Struct || h.Tag == name) })
}

// otherKinds removes the types of a release that are of another kind than the table's types of their
// names, and everything that uses them. The functions among these go to u.unlike, or are refused if
// the table lacks them. Numbers and enumerations stay, and respell writes them out.
func (u *union) otherKinds(h *symbols.Table) {
	words := map[string]string{"handle": "a handle", "scalar": "a number", "enum": "an enumeration", "struct": "a struct", "callback": "a function pointer"}
	have, bad := kinds(u.t, ""), map[string]string{}
	for name, is := range kinds(h, "") {
		kind := have[name]
		hidden := kind == "struct" && is == "handle" && opaque(h, name) || kind == "handle" && is == "struct" && opaque(u.t, name) // a struct may be visible in one release only
		numbers := (kind == "scalar" || kind == "enum") && (is == "scalar" || is == "enum")                                        // respell writes them out
		alias := kind == "alias" && words[is] != "" && is != "scalar" && is != "enum" || kind == "handle" && is == "alias"         // respell writes out the others
		switch {
		case alias && !u.t.SameType(name, h, name):
			bad[name] = fmt.Sprintf("it uses %s, which is another type", name)
		case kind != is && words[kind] != "" && words[is] != "" && !hidden && !numbers:
			bad[name] = fmt.Sprintf("it uses %s, which is %s", name, words[is])
		}
	}
	for _, o := range h.Structs {
		if i := slices.IndexFunc(u.t.Structs, func(x symbols.Struct) bool { return x.Name == o.Name }); i >= 0 && u.t.Structs[i].Union != o.Union {
			bad[o.Name] = fmt.Sprintf("it uses %s, which is %s", o.Name, map[bool]string{true: "a union", false: "a struct"}[o.Union])
		}
	}
	for before := 0; before != len(bad); {
		before = len(bad)
		h.EachType(func(record string, ctype *string) {
			if ct, err := symbols.ParseType(*ctype); err == nil && bad[ct.Base] != "" && bad[record] == "" {
				bad[record] = bad[ct.Base]
			}
		})
	}
	if len(bad) == 0 {
		return
	}
	gone := func(name string) bool {
		first, _, _ := strings.Cut(name, ".")
		return bad[first] != "" || bad[name] != ""
	}
	h.Handles = slices.DeleteFunc(h.Handles, func(x symbols.Handle) bool { return gone(x.Name) })
	h.Aliases = slices.DeleteFunc(h.Aliases, func(x symbols.Alias) bool { return gone(x.Name) })
	h.Structs = slices.DeleteFunc(h.Structs, func(x symbols.Struct) bool { return gone(x.Name) })
	h.Callbacks = slices.DeleteFunc(h.Callbacks, func(x symbols.Callback) bool { return gone(x.Name) })
	h.Functions = slices.DeleteFunc(h.Functions, func(f symbols.Function) bool {
		if bad[f.Symbol] == "" {
			return false
		}
		if slices.ContainsFunc(u.t.Functions, func(g symbols.Function) bool { return g.Symbol == f.Symbol }) {
			if u.unlike == nil {
				u.unlike = map[string]string{}
			}
			u.unlike[f.Symbol] = bad[f.Symbol]
		} else {
			u.refuse(f.Symbol, h.Version, bad[f.Symbol]+" there, and of another kind where it is bound")
		}
		return true
	})
}

// refuse refuses a function that only older releases have.
func (u *union) refuse(symbol string, v symbols.Version, why string) {
	u.refused = append(u.refused, symbols.Refusal{Name: symbol, Where: fmt.Sprintf("%s of %v", u.where[symbol], v), Reason: why})
}

// numberOf returns the arithmetic type that the name has in a table. If the name is not that of an
// arithmetic type, it returns "".
func numberOf(t *symbols.Table, name string) string {
	name = t.Canonical(name)
	for _, s := range t.Scalars {
		if s.Name == name {
			name = s.Type
		}
	}
	if _, _, ok := symbols.Builtin(name); ok {
		return name
	}
	return ""
}

// macrosFor returns the enumeration of the table that has replaced e, or "". If an enumeration has
// replaced e, the table has a macro of that type for each enumerator of e.
func (u *union) macrosFor(e *symbols.Enum) string {
	of := ""
	for _, v := range e.Values {
		i := slices.IndexFunc(u.t.Constants, func(c symbols.Constant) bool { return c.Name == v.Name })
		if i < 0 || of != "" && u.t.Constants[i].Type != of {
			return ""
		}
		of = u.t.Constants[i].Type
	}
	if !slices.ContainsFunc(u.t.Enums, func(x symbols.Enum) bool { return x.Name == of }) {
		return ""
	}
	return of
}

var typeName = regexp.MustCompile(`\w+(\.\w+)*`)

// spans maintains the since- and until-versions of records while a release is added.
type spans struct {
	v        symbols.Version
	releases []symbols.Version // the other releases of the table, oldest first
	report   func(string)
}

func (s *spans) newest() symbols.Version { return s.releases[len(s.releases)-1] }
func (s *spans) newer() bool             { return s.v.Compare(s.newest()) > 0 }
func (s *spans) older() bool             { return s.v.Compare(s.releases[0]) < 0 }

// both updates the versions of a record that is in the table and in the release.
func (s *spans) both(since, until *symbols.Version) {
	if !since.IsZero() && s.v.Compare(*since) < 0 {
		*since = s.v
	}
	if s.older() && *since == s.v {
		*since = symbols.Version{}
	}
	if !until.IsZero() && s.v.Compare(*until) > 0 {
		*until = s.v
		if s.newer() {
			*until = symbols.Version{}
		}
	}
}

// gone updates the versions of a record that is in the table and not in the release.
func (s *spans) gone(name string, since, until *symbols.Version) {
	switch {
	case s.newer():
		if until.IsZero() {
			*until = s.newest()
		}
	case s.older():
		if since.IsZero() {
			*since = s.releases[0]
		}
	case (since.IsZero() || since.Compare(s.v) < 0) && (until.IsZero() || s.v.Compare(*until) < 0):
		s.report(fmt.Sprintf("%s is not in %v, but in releases before and after it", name, s.v))
	}
}

// new sets the versions of a record that the table lacks.
func (s *spans) new(since, until *symbols.Version) {
	if !s.older() {
		*since = s.v
	}
	if !s.newer() {
		*until = s.v
	}
}

// at lists the releases of the table that have a record, and the record's value in each: the value
// that the list others has for the release, or else bound.
func at[T, O any](releases []symbols.Version, since, until symbols.Version, bound T, others []O, of func(*O) (symbols.Span, T)) (in []symbols.Version, what []T) {
	for _, r := range releases {
		if !since.IsZero() && r.Compare(since) < 0 || !until.IsZero() && r.Compare(until) > 0 {
			continue
		}
		x := bound
		for i := range others {
			if span, o := of(&others[i]); span.Since.Compare(r) <= 0 && r.Compare(span.Until) <= 0 {
				x = o
			}
		}
		in, what = append(in, r), append(what, x)
	}
	return in, what
}

// runs joins consecutive releases with equal values, and leaves out releases with the bound value.
func runs[T any](in []symbols.Version, what []T, same func(a, b T) bool, bound T) (spans []symbols.Span, other []T) {
	before := -1
	for i := range in {
		if same(what[i], bound) {
			continue
		}
		if before >= 0 && before == i-1 && same(what[i], other[len(other)-1]) {
			spans[len(spans)-1].Until = in[i]
		} else {
			spans, other = append(spans, symbols.Span{Since: in[i], Until: in[i]}), append(other, what[i])
		}
		before = i
	}
	return spans, other
}

// insert inserts a release and its value into the lists, which are sorted by release.
func insert[T any](in []symbols.Version, what []T, v symbols.Version, x T) ([]symbols.Version, []T) {
	i, _ := slices.BinarySearchFunc(in, v, symbols.Version.Compare)
	return slices.Insert(in, i, v), slices.Insert(what, i, x)
}

func layoutOf(s *symbols.Struct) symbols.Layout {
	return symbols.Layout{Size: s.Size, Align: s.Align, Fields: s.Fields}
}

// sameLayout compares layouts as a compiler sees them: sizes, alignments, and fields. The types of
// fields may be spelled differently.
func sameLayout(ta, tb *symbols.Table, a, b symbols.Layout) bool {
	return a.Size == b.Size && a.Align == b.Align && slices.EqualFunc(a.Fields, b.Fields, func(f, g symbols.Field) bool {
		same := ta.SameType(f.Type, tb, g.Type)
		f.Type = g.Type
		return same && f == g
	})
}

func (u *union) structs(h *symbols.Table, s spans) {
	t := u.t
	index := map[string]int{}
	for i := range t.Structs {
		index[t.Structs[i].Name] = i
	}
	other := kinds(t, "struct")
	seen := h.TypeNames()
	for _, o := range h.Structs {
		if other[o.Name] != "" {
			continue
		}
		i, ok := index[o.Name]
		if !ok {
			for j := range o.Fields { // numbers of another width than the table's are written out
				f := &o.Fields[j]
				base := typeName.FindString(strings.TrimPrefix(f.Type, "const "))
				if is := numberOf(h, base); is != "" && base != is && numberOf(t, base) != "" && !sameNumber(is, numberOf(t, base)) {
					f.Type = strings.Replace(f.Type, base, is, 1)
				}
				j := slices.IndexFunc(h.Enums, func(e symbols.Enum) bool { return e.Name == base })
				k := slices.IndexFunc(t.Enums, func(e symbols.Enum) bool { return e.Name == base })
				if j >= 0 && k >= 0 && base != "" && h.Enums[j].Bytes() != t.Enums[k].Bytes() {
					f.Type = strings.Replace(f.Type, base, h.Enums[j].CType(), 1)
				}
			}
			s.new(&o.Since, &o.Until)
			t.Structs = append(t.Structs, o)
			continue
		}
		have := &t.Structs[i]
		if have.Lib != "" { // until now only another implementation had it
			s.new(&o.Since, &o.Until)
			*have = o
			continue
		}
		bound, theirs := layoutOf(have), layoutOf(&o)
		same := func(a, b symbols.Layout) bool { return sameLayout(t, t, a, b) }
		if sameLayout(t, h, bound, theirs) {
			theirs = bound // the layouts differ only in spelling
		}
		in, what := at(s.releases, have.Since, have.Until, bound, have.Others, func(l *symbols.Layout) (symbols.Span, symbols.Layout) {
			return l.Span, symbols.Layout{Size: l.Size, Align: l.Align, Fields: l.Fields}
		})
		in, what = insert(in, what, s.v, theirs)
		s.both(&have.Since, &have.Until)
		if !same(bound, theirs) && !s.newer() {
			u.report(fmt.Sprintf("struct %s has another layout in %v: %s", o.Name, s.v, layoutDiffers(bound, theirs)))
		}
		if s.newer() && !same(bound, theirs) {
			if grown(t, h, have, bound, theirs) {
				bound = theirs
			} else {
				u.report(fmt.Sprintf("struct %s: the bound layout stays, since the layout of %v does not extend it", o.Name, s.v))
			}
		}
		have.Size, have.Align, have.Fields, have.Others = bound.Size, bound.Align, bound.Fields, nil
		spans, layouts := runs(in, what, same, bound)
		for j, l := range layouts {
			have.Others = append(have.Others, symbols.Layout{Span: spans[j], Size: l.Size, Align: l.Align, Fields: l.Fields})
		}
	}
	opaque := map[string]bool{}
	for _, o := range h.Handles {
		opaque[o.Name], opaque[o.Tag] = true, true
	}
	for _, o := range h.Structs {
		delete(opaque, o.Name)
		delete(opaque, o.Tag)
	}
	for i := range t.Structs {
		x := &t.Structs[i]
		if (opaque[x.Name] || x.Tag != "" && opaque[x.Tag]) && x.Lib == "" {
			x.Opaque = append(x.Opaque, symbols.Span{Since: s.v, Until: s.v})
		}
		if _, was := index[x.Name]; was && !seen[x.Name] && x.Lib == "" {
			s.gone("struct "+x.Name, &x.Since, &x.Until)
		}
	}
}

// layoutDiffers describes the difference of two layouts.
func layoutDiffers(bound, theirs symbols.Layout) string {
	if bound.Size != theirs.Size {
		return fmt.Sprintf("%d bytes, and %d where it is bound", theirs.Size, bound.Size)
	}
	for _, f := range theirs.Fields {
		if !slices.Contains(bound.Fields, f) {
			return "field " + f.Name
		}
	}
	return "fields that it lacks"
}

// grown reports whether a layout only adds to an older one: every field keeps its place, except
// reserved ones. Programs that set the old fields then work unchanged with the new layout.
func grown(t, h *symbols.Table, s *symbols.Struct, old, now symbols.Layout) bool {
	if now.Size < old.Size {
		return false
	}
	for _, f := range old.Fields {
		i := slices.IndexFunc(now.Fields, func(g symbols.Field) bool { return g.Name == f.Name })
		if symbols.IsReserved(f.Name) {
			continue
		}
		if i < 0 {
			return false
		}
		g := now.Fields[i]
		grew := s.Union && g.Size >= f.Size // a member of a union may be a struct that has grown
		if g.Offset != f.Offset || g.Size != f.Size && !grew || g.Bits != f.Bits || g.BitOffset != f.BitOffset || !t.SameType(f.Type, h, g.Type) {
			return false
		}
	}
	return true
}

func (u *union) enums(h *symbols.Table, s spans) {
	t := u.t
	key := func(e *symbols.Enum) string { // the key of an enumeration without a name is its first enumerator
		if e.Name == "" && len(e.Values) > 0 {
			return "enum " + e.Values[0].Name
		}
		return e.Name
	}
	index, owner := map[string]int{}, map[string]string{}
	for i := range t.Enums {
		index[key(&t.Enums[i])] = i
		for _, v := range t.Enums[i].Values {
			owner[v.Name] = key(&t.Enums[i])
		}
	}
	other := kinds(t, "enum")
	macros := map[string]bool{}
	for _, c := range t.Constants {
		macros[c.Name] = true
	}
	seenEnum, seen := h.TypeNames(), map[string]bool{}
	for _, o := range h.Enums {
		if other[o.Name] != "" {
			continue
		}
		name := key(&o)
		values := slices.DeleteFunc(slices.Clone(o.Values), func(x symbols.EnumValue) bool {
			if is, ok := owner[x.Name]; ok && is != name || macros[x.Name] {
				if ok {
					u.report(fmt.Sprintf("enumerator %s is of %s in %v, and stays with %s", x.Name, name, s.v, is))
				}
				seen[x.Name] = true
				return true
			}
			return false
		})
		i, ok := index[name]
		if !ok {
			if len(values) == 0 && o.Name == "" {
				continue
			}
			o.Values = values
			s.new(&o.Since, &o.Until)
			for j := range o.Values {
				s.new(&o.Values[j].Since, &o.Values[j].Until)
			}
			t.Enums = append(t.Enums, o)
			continue
		}
		e := &t.Enums[i]
		seenEnum[name] = true
		u.enumSize(e, &o, s)
		s.both(&e.Since, &e.Until)
		for _, x := range values {
			seen[x.Name] = true
			j := slices.IndexFunc(e.Values, func(y symbols.EnumValue) bool { return y.Name == x.Name })
			fits := e.Name == "" || fits(e, x.Value)
			if !fits && (j < 0 || e.Values[j].Lib != "") {
				u.report(fmt.Sprintf("enumerator %s.%s is %d in %v and left out: the bound enumeration cannot hold it", name, x.Name, x.Value, s.v))
				continue
			}
			if j < 0 {
				s.new(&x.Since, &x.Until)
				e.Values = append(e.Values, x)
				continue
			}
			y := &e.Values[j]
			if y.Lib != "" { // until now only another implementation had it
				x.Since, x.Until = symbols.Version{}, symbols.Version{}
				s.new(&x.Since, &x.Until)
				*y = x
				continue
			}
			in, what := at(s.releases, y.Since, y.Until, y.Value, y.Others, func(o *symbols.OtherValue) (symbols.Span, int64) { return o.Span, o.Value })
			if x.Value != y.Value && !s.newer() { // a newer release's value becomes the bound one
				u.report(fmt.Sprintf("enumerator %s.%s is %d in %v, and %d where it is bound", name, x.Name, x.Value, s.v, y.Value))
			}
			in, what = insert(in, what, s.v, x.Value)
			s.both(&y.Since, &y.Until)
			if s.newer() && fits {
				y.Value = x.Value
			}
			y.Others = nil
			spans, numbers := runs(in, what, func(a, b int64) bool { return a == b }, y.Value)
			for k, n := range numbers {
				y.Others = append(y.Others, symbols.OtherValue{Span: spans[k], Value: n})
			}
		}
	}
	for i := range t.Enums {
		e := &t.Enums[i]
		if _, was := index[key(e)]; !was {
			continue
		}
		own := func(v symbols.EnumValue) bool { return v.Lib == "" } // the enumerator is not only in another implementation
		if !seenEnum[key(e)] && slices.ContainsFunc(e.Values, own) {
			s.gone("enum "+key(e), &e.Since, &e.Until)
		}
		for j := range e.Values {
			if y := &e.Values[j]; !seen[y.Name] && owner[y.Name] != "" && y.Lib == "" {
				s.gone("enumerator "+y.Name, &y.Since, &y.Until)
			}
		}
	}
}

// enumSize adds the size and the sign of an enumeration in a release. The bound ones stay.
func (u *union) enumSize(e, o *symbols.Enum, s spans) {
	type form struct {
		signed bool
		size   int
	}
	bound, theirs := form{e.Signed, e.Size}, form{o.Signed, o.Size}
	if theirs.size != bound.size {
		u.report(fmt.Sprintf("enum %s is of %d bytes in %v, and of %d where it is bound", e.Name, o.Bytes(), s.v, e.Bytes()))
	}
	in, what := at(s.releases, e.Since, e.Until, bound, e.Others, func(o *symbols.OtherEnum) (symbols.Span, form) { return o.Span, form{o.Signed, o.Size} })
	in, what = insert(in, what, s.v, theirs)
	e.Others = nil
	spans, forms := runs(in, what, func(a, b form) bool { return a == b }, bound)
	for i, f := range forms {
		e.Others = append(e.Others, symbols.OtherEnum{Span: spans[i], Signed: f.signed, Size: f.size})
	}
}

// fits reports whether an enumeration can hold a value.
func fits(e *symbols.Enum, v int64) bool {
	bits := 8 * e.Bytes()
	if bits == 64 {
		return true
	}
	if e.Signed {
		return -1<<(bits-1) <= v && v < 1<<(bits-1)
	}
	return 0 <= v && v < 1<<bits
}

func (u *union) constants(h *symbols.Table, s spans) {
	t := u.t
	index := map[string]int{}
	for i, c := range t.Constants {
		index[c.Name] = i
	}
	enumerators := map[string]int64{}
	for _, e := range t.Enums {
		for _, v := range e.Values {
			enumerators[v.Name] = v.Value
		}
	}
	seen := map[string]bool{}
	theirs := slices.Clone(h.Constants)
	for _, e := range h.Enums {
		for _, v := range e.Values {
			seen[v.Name] = true
			if i, ok := index[v.Name]; ok { // the name is a macro in the table and an enumerator in the release
				theirs = append(theirs, symbols.Constant{Name: v.Name, Type: t.Constants[i].Type, Value: fmt.Sprint(v.Value)})
			}
		}
	}
	for _, o := range theirs {
		seen[o.Name] = true
		if is, ok := enumerators[o.Name]; ok {
			if text := fmt.Sprint(is); text != o.Value {
				u.report(fmt.Sprintf("constant %s was %s and is the enumerator %s", o.Name, o.Value, text))
			}
			continue
		}
		i, ok := index[o.Name]
		if !ok {
			s.new(&o.Since, &o.Until)
			t.Constants = append(t.Constants, o)
			continue
		}
		c := &t.Constants[i]
		if c.Lib != "" { // until now only another implementation had it
			s.new(&o.Since, &o.Until)
			*c = o
			continue
		}
		type value struct{ typ, text string }
		in, what := at(s.releases, c.Since, c.Until, value{c.Type, c.Value}, c.Others, func(o *symbols.OtherConstant) (symbols.Span, value) {
			return o.Span, value{o.Type, o.Value}
		})
		theirs := value{o.Type, o.Value}
		if o.Value == c.Value {
			theirs.typ = c.Type
		}
		if o.Value != c.Value && !s.newer() && !tellsRelease(u.d, o, s.v) {
			u.report(fmt.Sprintf("constant %s is %s in %v, and %s where it is bound", o.Name, o.Value, s.v, c.Value))
		}
		in, what = insert(in, what, s.v, theirs)
		s.both(&c.Since, &c.Until)
		if s.newer() && o.Value != c.Value {
			c.Type, c.Value = o.Type, o.Value
		}
		c.Others = nil
		spans, values := runs(in, what, func(a, b value) bool { return a.text == b.text }, value{c.Type, c.Value})
		for k, x := range values {
			c.Others = append(c.Others, symbols.OtherConstant{Span: spans[k], Type: x.typ, Value: x.text})
		}
	}
	for i := range t.Constants {
		if c := &t.Constants[i]; !seen[c.Name] && c.Lib == "" {
			if _, was := index[c.Name]; was {
				s.gone("constant "+c.Name, &c.Since, &c.Until)
			}
		}
	}
}

// types adds records without a layout: handles, numbers, function types and aliases.
func (u *union) types(h *symbols.Table, s spans) {
	t := u.t
	u.changed(h, s)
	t.Handles = kept(t.Handles, h.Handles, kinds(t, "handle"), h.TypeNames(), s, "handle", func(x *symbols.Handle) (string, *symbols.Version, *symbols.Version, *string) {
		return x.Name, &x.Since, &x.Until, &x.Lib
	})
	t.Scalars = kept(t.Scalars, h.Scalars, kinds(t, "scalar"), h.TypeNames(), s, "scalar", func(x *symbols.Scalar) (string, *symbols.Version, *symbols.Version, *string) {
		return x.Name, &x.Since, &x.Until, &x.Lib
	})
	t.Callbacks = kept(t.Callbacks, h.Callbacks, kinds(t, "callback"), h.TypeNames(), s, "callback", func(x *symbols.Callback) (string, *symbols.Version, *symbols.Version, *string) {
		return x.Name, &x.Since, &x.Until, &x.Lib
	})
	other := kinds(t, "alias")
	for _, a := range h.Aliases {
		if other[a.Name] == "" && !slices.ContainsFunc(t.Aliases, func(b symbols.Alias) bool { return b.Name == a.Name }) {
			t.Aliases = append(t.Aliases, a)
		}
	}
}

// changed adds the types of numbers, and the signatures of function types, that differ from the
// bound ones. The bound ones stay.
func (u *union) changed(h *symbols.Table, s spans) {
	t := u.t
	for i := range t.Scalars {
		x := &t.Scalars[i]
		j := slices.IndexFunc(h.Scalars, func(o symbols.Scalar) bool { return o.Name == x.Name })
		if j < 0 || x.Lib != "" {
			continue
		}
		in, what := at(s.releases, x.Since, x.Until, x.Type, x.Others, func(o *symbols.OtherScalar) (symbols.Span, string) { return o.Span, o.Type })
		theirs := h.Scalars[j].Type
		if sameNumber(theirs, x.Type) {
			theirs = x.Type
		} else {
			u.report(fmt.Sprintf("%s is %s in %v, and %s where it is bound", x.Name, theirs, s.v, x.Type))
		}
		in, what = insert(in, what, s.v, theirs)
		x.Others = nil
		spans, others := runs(in, what, func(a, b string) bool { return a == b }, x.Type)
		for k, o := range others {
			x.Others = append(x.Others, symbols.OtherScalar{Span: spans[k], Type: o})
		}
	}
	for i := range t.Callbacks {
		x := &t.Callbacks[i]
		j := slices.IndexFunc(h.Callbacks, func(o symbols.Callback) bool { return o.Name == x.Name })
		if j < 0 || x.Lib != "" {
			continue
		}
		bound, theirs := signature{x.Result, x.Params, ""}, signature{h.Callbacks[j].Result, h.Callbacks[j].Params, ""}
		if why := differ(t, h, bound.result, bound.params, theirs.result, theirs.params); why == "" {
			theirs = bound
		} else {
			u.report(fmt.Sprintf("%s has other parameters in %v: %s; the bound parameters stay", x.Name, s.v, why))
		}
		in, what := at(s.releases, x.Since, x.Until, bound, x.Others, func(o *symbols.Signature) (symbols.Span, signature) {
			return o.Span, signature{o.Result, o.Params, ""}
		})
		in, what = insert(in, what, s.v, theirs)
		x.Others = nil
		spans, signatures := runs(in, what, func(a, b signature) bool { return differ(t, t, a.result, a.params, b.result, b.params) == "" }, bound)
		for k, o := range signatures {
			x.Others = append(x.Others, symbols.Signature{Span: spans[k], Result: o.result, Params: o.params})
		}
	}
}

// sameNumber reports whether two arithmetic types are the same to a compiler. In Go, char is the
// same as unsigned char, and long as long long.
func sameNumber(a, b string) bool {
	_, x, ok := symbols.Builtin(a)
	_, y, _ := symbols.Builtin(b)
	return ok && x == y && strings.HasSuffix(a, "long long") == strings.HasSuffix(b, "long long") && (a == "char") == (b == "char")
}

func kept[T any](have, theirs []T, other map[string]string, seen map[string]bool, s spans, kind string, of func(*T) (name string, since, until *symbols.Version, lib *string)) []T {
	index := map[string]int{}
	for i := range have {
		name, _, _, _ := of(&have[i])
		index[name] = i
	}
	for _, x := range theirs {
		name, since, until, _ := of(&x)
		if other[name] != "" {
			continue
		}
		i, ok := index[name]
		if !ok {
			s.new(since, until)
			have = append(have, x)
			continue
		}
		var lib *string
		if _, since, until, lib = of(&have[i]); *lib != "" { // until now only another implementation had it
			*lib = ""
			s.new(since, until)
			continue
		}
		s.both(since, until)
	}
	for i := range have {
		name, since, until, lib := of(&have[i])
		if _, was := index[name]; was && !seen[name] && *lib == "" {
			s.gone(kind+" "+name, since, until)
		}
	}
	return have
}

// kinds returns the kind of each type of a table, by name, except types of the given kind. If a
// release has a type of that kind whose name is in the result, the table keeps its own type: a
// struct that later became opaque stays a handle.
func kinds(t *symbols.Table, but string) map[string]string {
	out := map[string]string{}
	add := func(kind, name string) {
		if kind != but && name != "" {
			out[name] = kind
		}
	}
	for _, x := range t.Handles {
		add("handle", x.Name)
		if but == "struct" {
			add("handle", x.Tag)
		}
	}
	for _, x := range t.Scalars {
		add("scalar", x.Name)
	}
	for _, x := range t.Aliases {
		add("alias", x.Name)
	}
	for _, x := range t.Enums {
		add("enum", x.Name)
	}
	for _, x := range t.Structs {
		add("struct", x.Name)
	}
	for _, x := range t.Callbacks {
		add("callback", x.Name)
	}
	delete(out, "void")
	return out
}

type signature struct {
	result string
	params []symbols.Param
	why    string // Signature.Why
}

// namesakes describes types of two tables that are written alike and differ.
func namesakes(param, ctype string, ta, tb *symbols.Table) string {
	ct, err := symbols.ParseType(ctype)
	if err != nil {
		return fmt.Sprintf("%s is of another %s", param, ctype)
	}
	form := func(t *symbols.Table) string {
		base := strings.TrimRight(t.Canonical(ct.Base), "*")
		for _, s := range t.Structs {
			if s.Name == base {
				return fmt.Sprintf("a struct of %d bytes", s.Size)
			}
		}
		for _, s := range t.Scalars {
			if s.Name == base {
				return s.Type
			}
		}
		if slices.ContainsFunc(t.Handles, func(h symbols.Handle) bool { return h.Tag == base }) {
			return "a handle"
		}
		return t.Canonical(ct.Base)
	}
	name := ct.Base
	if strings.Contains(name, ".") { // the type of a row, in the type of the parameter
		name = "a row"
	}
	return fmt.Sprintf("%s: %s is %s, and %s where it is bound", param, name, form(tb), form(ta))
}

func length(n int) string {
	if n == 0 {
		return "no declared length"
	}
	return fmt.Sprintf("the length %d", n)
}

// differ returns the difference of two signatures in their ABI or in the lengths of arrays, or "".
func differ(ta, tb *symbols.Table, resultA string, a []symbols.Param, resultB string, b []symbols.Param) string {
	if !ta.SameType(resultA, tb, resultB) {
		return fmt.Sprintf("it returns %s, and %s where it is bound", resultB, resultA)
	}
	if len(a) != len(b) {
		s := "s"
		if len(b) == 1 {
			s = ""
		}
		return fmt.Sprintf("%d parameter%s, and %d where it is bound", len(b), s, len(a))
	}
	for i := range a {
		if !ta.SameType(a[i].Type, tb, b[i].Type) {
			if a[i].Type == b[i].Type {
				return namesakes(a[i].Name, a[i].Type, ta, tb)
			}
			return fmt.Sprintf("%s is %s, and %s where it is bound", a[i].Name, b[i].Type, a[i].Type)
		}
		if m, n := a[i].Length(), b[i].Length(); m != n {
			return fmt.Sprintf("%s has %s, and %s where it is bound", a[i].Name, length(n), length(m))
		}
	}
	return ""
}

func (u *union) functions(h *symbols.Table, s spans) {
	t := u.t
	index, current := map[string]int{}, map[string]bool{}
	for i, f := range t.Functions {
		index[f.Symbol] = i
		current[f.API] = current[f.API] || f.Current
	}
	seen := map[string]bool{}
	list := slices.Clone(h.Functions)
	for _, name := range slices.Sorted(maps.Keys(u.unlike)) {
		if _, ok := index[name]; ok {
			list = append(list, symbols.Function{Symbol: name})
		}
	}
	for _, o := range list {
		i, ok := index[o.Symbol]
		seen[o.Symbol] = true
		if !ok {
			if why := differ(t, h, o.Result, o.Params, o.Result, o.Params); why != "" && !u.onto && !u.settled {
				u.refuse(o.Symbol, s.v, "has parameters that no table can hold beside the newest ones: "+why)
				continue
			}
			told := o.Since
			s.new(&o.Since, &o.Until)
			if o.Since = told; told.IsZero() {
				o.Since = s.v
			}
			o.Current = o.Current && !current[o.API]
			if u.onto && s.newer() {
				for j := range o.Params {
					o.Params[j].Guess = o.Params[j].Guess && o.Params[j].Dir != ""
				}
			} else if u.settled {
				settled(o.Params)
			}
			t.Functions = append(t.Functions, o)
			continue
		}
		f := &t.Functions[i]
		if f.Lib != "" { // until now only another implementation had it
			f.Lib = ""
			u.report(fmt.Sprintf("%s was only in another implementation, but %v has it too", f.Symbol, s.v))
			continue
		}
		since, until := f.Since, f.Until
		if s.releases[0].Compare(since) >= 0 {
			since = symbols.Version{} // version nodes may name releases that were not read
		}
		same := func(a, b signature) bool {
			return a.why == b.why && differ(t, t, a.result, a.params, b.result, b.params) == ""
		}
		bound, theirs := signature{f.Result, f.Params, ""}, signature{o.Result, o.Params, ""}
		if why := u.unlike[o.Symbol]; why != "" {
			theirs = signature{"void", nil, why}
		} else if why := differ(t, h, f.Result, f.Params, o.Result, o.Params); why == "" {
			theirs = bound
		} else {
			settled(theirs.params)
			if !u.onto && !u.settled && differ(t, h, o.Result, o.Params, o.Result, o.Params) != "" { // a type of that name is in the table, and another one is meant
				theirs = signature{"void", nil, fmt.Sprintf("it has other parameters (%s)", why)}
			}
			u.report(fmt.Sprintf("%s has other parameters in %v: %s; the bound parameters stay", f.Symbol, s.v, why))
		}
		in, what := at(s.releases, since, until, bound, f.Others, func(o *symbols.Signature) (symbols.Span, signature) {
			return o.Span, signature{o.Result, o.Params, o.Why}
		})
		in, what = insert(in, what, s.v, theirs)
		if s.v.Compare(f.Since) < 0 {
			f.Since = s.v
		}
		s.both(new(symbols.Version), &f.Until)
		if s.newer() {
			f.Deprecated = o.Deprecated
		}
		for _, twin := range o.Twins {
			if !slices.Contains(f.Twins, twin) {
				f.Twins = append(f.Twins, twin)
			}
		}
		f.Others = nil
		spans, signatures := runs(in, what, same, bound)
		for k, x := range signatures {
			f.Others = append(f.Others, symbols.Signature{Span: spans[k], Result: x.result, Params: x.params, Why: x.why})
		}
	}
	for i := range t.Functions {
		f := &t.Functions[i]
		if _, was := index[f.Symbol]; !was || seen[f.Symbol] || f.Lib != "" {
			continue
		}
		s.gone(f.Symbol, new(symbols.Version), &f.Until)
	}
}

// settled removes the marks of guesses, because a person has checked each of them or the parameter
// belongs to an ABI version that is not bound.
func settled(params []symbols.Param) {
	for i := range params {
		params[i].Guess = false
	}
}
