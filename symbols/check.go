package symbols

import (
	"errors"
	"fmt"
	"go/token"
	"maps"
	"path"
	"slices"
	"strconv"
	"strings"
)

// A checker collects errors.
type checker struct {
	file string
	errs []error
}

func (c *checker) add(record, field, format string, args ...any) {
	if len(c.errs) < 50 { // fifty errors are enough to find the cause
		c.errs = append(c.errs, &Error{c.file, record, field, fmt.Sprintf(format, args...)})
	}
}

func (c *checker) err() error { return errors.Join(c.errs...) }

func (m Lenders) checkTable(file string, t *Table) error {
	c := &checker{file: file}
	if t.Library == "" {
		c.add("table", "library", "is empty")
	}
	if t.Version.IsZero() {
		c.add("table", "version", "is empty")
	}
	if !slices.IsSortedFunc(t.Releases, Version.Compare) || len(t.Releases) > 0 && t.Releases[len(t.Releases)-1] != t.Version {
		c.add("table", "releases", "must be in order, and end with %v", t.Version)
	}
	for _, h := range t.Headers {
		if len(h.SHA256) != 64 || strings.Trim(h.SHA256, "0123456789abcdef") != "" {
			c.add("header "+h.Name, "sha256", "%q is not a SHA-256 sum in lower-case hexadecimal", h.SHA256)
		}
	}
	types := c.types(t)
	for _, b := range t.Borrowed {
		if _, ok := m.lend(b.Library, b.Name); !ok {
			c.add("borrowed "+b.Name, "library", "no library %q lends a type of this name", b.Library)
		}
	}
	known := func(record, field, ctype string) {
		ct, err := ParseType(ctype)
		if err != nil {
			c.add(record, field, "%v", err)
		} else if !types[ct.Base] && !isBuiltin(ct.Base) {
			c.add(record, field, "type %q is not in the table", ct.Base)
		} else if ct.Base == "void" && ct.Pointers == 0 && (field != "result" || len(ct.Dims) > 0) {
			c.add(record, field, "is void")
		}
	}
	for _, a := range t.Aliases {
		known("alias "+a.Name, "type", a.Type)
	}
	for _, s := range t.Scalars {
		if !isBuiltin(s.Type) {
			c.add("scalar "+s.Name, "type", "%q is not an arithmetic type", s.Type)
		}
		for _, o := range s.Others {
			c.other("scalar "+s.Name, o.Span, t)
			if !isBuiltin(o.Type) {
				c.add("scalar "+s.Name, "others", "%q is not an arithmetic type", o.Type)
			}
		}
	}
	c.values(t)
	for _, s := range t.Structs {
		c.layout(&s)
		c.span("struct "+s.Name, s.Since, s.Until)
		for _, f := range s.Fields {
			known("struct "+s.Name, f.Name, f.Type)
		}
		for _, o := range s.Others {
			c.other("struct "+s.Name, o.Span, t)
			c.layout(&Struct{Name: s.Name, Union: s.Union, Size: o.Size, Align: o.Align, Fields: o.Fields})
			for _, f := range o.Fields {
				known("struct "+s.Name, f.Name, f.Type)
			}
		}
		for _, o := range s.Opaque {
			c.other("struct "+s.Name, o, t)
		}
	}
	c.sizes(t)
	for _, cb := range t.Callbacks {
		known("callback "+cb.Name, "result", cb.Result)
		c.params("callback "+cb.Name, cb.Params, known)
		for _, o := range cb.Others {
			c.other("callback "+cb.Name, o.Span, t)
			known("callback "+cb.Name, "result", o.Result)
			c.params("callback "+cb.Name, o.Params, known)
		}
	}
	seen := map[string]bool{}
	current := map[string]string{} // the symbol that the plain name selects, by API name
	for _, f := range t.Functions {
		record := "function " + f.Symbol
		switch {
		case f.Symbol == "":
			c.add(record, "symbol", "is empty")
		case seen[f.Symbol]:
			c.add(record, "symbol", "is in the table twice")
		case !isName(f.Symbol):
			c.add(record, "symbol", "is not a C name")
		case f.API == "":
			c.add(record, "api", "is empty")
		case !isName(f.API):
			c.add(record, "api", "%q is not a C name", f.API)
		case f.Current && current[f.API] != "":
			c.add(record, "current", "%s already selects %s", f.API, current[f.API])
		}
		seen[f.Symbol] = true
		if f.Current {
			current[f.API] = f.Symbol
		}
		c.span(record, f.Since, f.Until)
		known(record, "result", f.Result)
		c.params(record, f.Params, known)
		for _, o := range f.Others {
			c.other(record, o.Span, t)
			known(record, "result", o.Result)
			c.params(record, o.Params, known)
		}
	}
	return c.err()
}

// other checks the span of an entry of a record's Others or Opaque: the span begins and ends with a
// release that was read.
func (c *checker) other(record string, s Span, t *Table) {
	if s.Until.Compare(s.Since) < 0 || !slices.Contains(t.Releases, s.Since) || !slices.Contains(t.Releases, s.Until) {
		c.add(record, "others", "%v to %v is not a range of releases that were read", s.Since, s.Until)
	}
}

func (c *checker) params(record string, params []Param, known func(record, field, ctype string)) {
	names := map[string]bool{}
	for i, p := range params {
		switch {
		case p.Name == "":
			c.add(record, fmt.Sprintf("parameter %d", i), "has no name")
		case !isName(p.Name):
			c.add(record, p.Name, "is not a C name")
		case names[p.Name]:
			c.add(record, p.Name, "two parameters have this name")
		case !knownDir(p.Dir):
			c.add(record, p.Name, "direction %q is not one of in, out, inout", p.Dir)
		}
		names[p.Name] = true
		known(record, p.Name, p.Type)
	}
}

// types collects the names of the table's types, and checks that each is valid and declared once.
func (c *checker) types(t *Table) map[string]bool {
	types := map[string]bool{}
	add := func(kind, name string) {
		switch {
		case types[name]:
			c.add(kind+" "+name, "name", "another type has this name")
		case isBuiltin(name):
			c.add(kind+" "+name, "name", "C has a type of this name")
		case slices.ContainsFunc(strings.Split(name, "."), func(s string) bool { return !isName(s) }):
			c.add(kind+" "+name, "name", "is not a C name")
		}
		types[name] = true
	}
	for _, b := range t.Borrowed {
		add("borrowed", b.Name)
	}
	for _, h := range t.Handles {
		add("handle", h.Name)
	}
	for _, s := range t.Scalars {
		add("scalar", s.Name)
	}
	for _, a := range t.Aliases {
		add("alias", a.Name)
	}
	for _, e := range t.Enums {
		if e.Name != "" {
			add("enum", e.Name)
		}
	}
	for _, s := range t.Structs {
		add("struct", s.Name)
	}
	for _, cb := range t.Callbacks {
		add("callback", cb.Name)
	}
	return types
}

// layout checks a struct's size and alignment, and that the fields are inside the struct, in order,
// and do not overlap.
func (c *checker) layout(s *Struct) {
	record := "struct " + s.Name
	if s.Size <= 0 || s.Size > maxStruct || s.Align <= 0 || s.Align&(s.Align-1) != 0 || s.Size%s.Align != 0 {
		c.add(record, "size", "%d bytes cannot be aligned to %d", s.Size, s.Align)
		return
	}
	end := 0  // the end of the fields so far, except bit-fields
	bits := 0 // the end of the bit-fields so far, in bits from the start of the struct
	names := map[string]bool{}
	for _, f := range s.Fields {
		switch {
		case f.Name == "":
			c.add(record, "name", "the field at offset %d has no name", f.Offset)
		case !isName(f.Name):
			c.add(record, f.Name, "is not a C name")
		case names[f.Name]:
			c.add(record, f.Name, "two fields have this name")
		case f.Size <= 0 || f.Offset < 0 || f.Offset > s.Size-f.Size:
			c.add(record, f.Name, "%d bytes at offset %d do not fit into %d", f.Size, f.Offset, s.Size)
		case s.Union && f.Offset != 0:
			c.add(record, f.Name, "is at offset %d of a union, not 0", f.Offset)
		case f.Bits < 0 || f.BitOffset < 0 || f.Bits == 0 && f.BitOffset > 0 || f.BitOffset > 8*f.Size || f.Bits > 8*f.Size-f.BitOffset:
			c.add(record, f.Name, "%d bits at bit %d do not fit into %d bytes", f.Bits, f.BitOffset, f.Size)
		case !s.Union && f.Offset < end && f.Bits == 0:
			c.add(record, f.Name, "offset %d overlaps the field that ends at %d", f.Offset, end)
		case !s.Union && 8*f.Offset+f.BitOffset < max(8*end, bits):
			c.add(record, f.Name, "bit %d at offset %d overlaps the field before it", f.BitOffset, f.Offset)
		case f.Bits > 0:
			bits = 8*f.Offset + f.BitOffset + f.Bits
		default:
			end = f.Offset + f.Size
		}
		names[f.Name] = true
	}
}

var enumSizes = []int{0, 1, 2, 4, 8} // 0 stands for 4

// values checks enumerators and constants. No two enumerators may have one name, and no two
// constants.
func (c *checker) values(t *Table) {
	enums, owner := map[string]bool{}, map[string]string{}
	for _, e := range t.Enums {
		if !slices.Contains(enumSizes, e.Size) {
			c.add("enum "+e.Name, "size", "%d bytes is not the size of an enumeration", e.Size)
		}
		for _, o := range e.Others {
			c.other("enum "+e.Name, o.Span, t)
			if !slices.Contains(enumSizes, o.Size) {
				c.add("enum "+e.Name, "others", "%d bytes is not the size of an enumeration", o.Size)
			}
		}
		enums[e.Name] = e.Name != ""
		for _, v := range e.Values {
			switch o, twice := owner[v.Name]; {
			case !isName(v.Name):
				c.add("enum "+e.Name, v.Name, "is not a C name")
			case twice:
				c.add("enum "+e.Name, v.Name, "enum %s has this enumerator too", o)
			}
			owner[v.Name] = e.Name
			for _, o := range v.Others {
				c.other("enum "+e.Name, o.Span, t)
			}
		}
	}
	seen := map[string]bool{}
	for _, k := range t.Constants {
		record := "constant " + k.Name
		if !isName(k.Name) {
			c.add(record, "name", "is not a C name")
		}
		if seen[k.Name] {
			c.add(record, "name", "is in the table twice")
		}
		seen[k.Name] = true
		var err error
		switch k.Type {
		case "string":
		case "uint", "pointer":
			_, err = strconv.ParseUint(k.Value, 10, 64)
		case "float":
			_, err = strconv.ParseFloat(k.Value, 64)
		default:
			if k.Type != "int" && !enums[k.Type] {
				c.add(record, "type", "%q is not one of int, uint, float, string, pointer, nor an enumeration", k.Type)
				continue
			}
			_, err = strconv.ParseInt(k.Value, 10, 64)
		}
		if err != nil {
			c.add(record, "value", "%q is not a value of type %s", k.Value, k.Type)
		}
	}
}

// sizes checks that no alias refers to itself, that no type contains itself except through a
// pointer, and that each field has the size of its type.
func (c *checker) sizes(t *Table) {
	aliases, holds := map[string][]string{}, map[string][]string{} // by name: the base types that an alias stands for, and the types that a value of the type contains
	stands := map[string]string{}                                  // the type that each alias stands for
	for _, a := range t.Aliases {
		if ct, err := ParseType(a.Type); err == nil {
			stands[a.Name] = a.Type
			aliases[a.Name] = []string{ct.Base}
			if ct.Pointers == 0 {
				holds[a.Name] = []string{ct.Base}
			}
		}
	}
	for _, s := range t.Structs {
		for _, f := range s.Fields {
			if ct, err := ParseType(f.Type); err == nil && ct.Pointers == 0 {
				holds[s.Name] = append(holds[s.Name], ct.Base)
			}
		}
	}
	if name := cycle(aliases); name != "" {
		c.add("alias "+name, "type", "refers to itself")
		return
	}
	if name := cycle(holds); name != "" {
		c.add("struct "+name, "fields", "contains itself")
		return
	}
	size := map[string]int64{}
	for name, b := range builtins {
		size[name] = int64(b.size)
	}
	for _, h := range t.Handles {
		size[h.Name] = 8
	}
	for _, cb := range t.Callbacks {
		size[cb.Name] = 8
	}
	for _, s := range t.Scalars {
		size[s.Name] = size[s.Type]
	}
	for _, s := range t.Structs {
		size[s.Name] = int64(s.Size)
	}
	for _, e := range t.Enums {
		size[e.Name] = int64(e.Bytes())
	}
	of := func(ctype string) int64 {
		n := int64(1)
		for {
			ct, err := ParseType(ctype)
			if err != nil {
				return 0 // the function known has reported the type
			}
			for _, d := range ct.Dims {
				if n *= int64(d); n > maxElements {
					return n
				}
			}
			if ct.Pointers > 0 {
				return 8 * n
			}
			next, ok := stands[ct.Base]
			if !ok {
				return n * size[ct.Base]
			}
			ctype = next
		}
	}
	for _, s := range t.Structs {
		for _, f := range s.Fields {
			if n := of(f.Type); n != 0 && n != int64(f.Size) {
				c.add("struct "+s.Name, f.Name, "has %d bytes, and its type %s has %d", f.Size, f.Type, n)
			}
		}
	}
}

// cycle returns a name that is on a cycle in a graph, or "". For equal graphs it returns the same
// name. edges has the names to which each name leads.
func cycle(edges map[string][]string) string {
	const open, done = 1, 2
	state := map[string]int{}
	var found string
	var visit func(name string) bool
	visit = func(name string) bool {
		switch state[name] {
		case open:
			found = name
			return true
		case done:
			return false
		}
		state[name] = open
		defer func() { state[name] = done }()
		return slices.ContainsFunc(edges[name], visit)
	}
	for _, name := range slices.Sorted(maps.Keys(edges)) {
		if visit(name) {
			return found
		}
	}
	return ""
}

// span checks that a record was not removed before it was added.
func (c *checker) span(record string, since, until Version) {
	if !until.IsZero() && until.Compare(since) < 0 {
		c.add(record, "until", "%v is before %v, when it was added", until, since)
	}
}

func isName(s string) bool {
	for i, r := range s {
		if !(r == '_' || r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || i > 0 && r >= '0' && r <= '9') {
			return false
		}
	}
	return s != ""
}

func checkOverlay(file string, t *Table, o *Overlay) error {
	c := &checker{file: file}
	functions := functionsByName(t)
	typed := map[string]bool{}
	ignore := &checker{}
	for name := range ignore.types(t) {
		typed[name] = true
	}
	values := map[string]bool{}
	for _, e := range t.Enums {
		for _, v := range e.Values {
			values[v.Name] = true
		}
	}
	for _, k := range t.Constants {
		values[k.Name] = true
	}
	fields := map[string]bool{}
	for _, s := range t.Structs {
		for _, f := range s.Fields {
			fields[s.Name+"."+f.Name] = true
		}
	}
	c.sets(t, o)
	once := func(kind string, seen map[string]bool, name string) {
		if seen[name] {
			c.add(kind+" "+name, "name", "has two entries")
		}
		seen[name] = true
	}
	seen := map[string]bool{}
	for _, n := range o.Functions {
		once("function", seen, n.Name)
		c.reason("function "+n.Name, n.Reason)
		if n.Callback == Unknown {
			c.add("function "+n.Name, "callback", "is not answered: write true if the function may run the given function before it returns, else false; write \"registers\": true instead if later calls may run it")
		}
		if functions[n.Name] == nil {
			c.add("function "+n.Name, "name", "the table has no such function; remove or correct the entry")
		}
	}
	seen = map[string]bool{}
	for _, n := range o.Params {
		once("param", seen, n.Name)
		c.reason("param "+n.Name, n.Reason)
		c.param("param", n, t, functions)
	}
	seen = map[string]bool{}
	for _, n := range o.Types {
		once("type", seen, n.Name)
		c.reason("type "+n.Name, n.Reason)
		if !typed[n.Name] && !(sizedBySystem(n.Name) && n.Kind == "number") {
			c.add("type "+n.Name, "name", "the table has no such type")
		}
		for _, p := range n.Values {
			if n.Kind != "result" || !slices.ContainsFunc(t.Constants, func(k Constant) bool { ok, _ := path.Match(p, k.Name); return ok }) {
				c.add("type "+n.Name, "values", "%q matches no macro, or the type is not a result", p)
			}
		}
		c.kind(t, n)
	}
	seen = map[string]bool{}
	for _, n := range o.Names {
		once("name", seen, n.Name)
		c.reason("name "+n.Name, n.Reason)
		of, param, _ := strings.Cut(n.Name, ".")
		isParam := !typed[n.Name] && slices.ContainsFunc(functions[of], func(f Function) bool {
			return slices.ContainsFunc(f.Params, func(p Param) bool { return p.Name == param })
		})
		if functions[n.Name] == nil && !typed[n.Name] && !values[n.Name] && !fields[n.Name] && !isParam {
			c.add("name "+n.Name, "name", "the table has no such function, type, value, field or parameter")
		}
		if isParam || typed[n.Name] && strings.Contains(n.Name, ".") && !token.IsExported(n.Go) {
			if !token.IsIdentifier(n.Go) || token.IsExported(n.Go) {
				c.add("name "+n.Name, "go", "%q cannot name a parameter in Go", n.Go)
			}
		} else if !isName(n.Go) || n.Go[0] < 'A' || n.Go[0] > 'Z' {
			c.add("name "+n.Name, "go", "%q is not an exported Go name", n.Go)
		}
	}
	seen = map[string]bool{}
	for _, n := range o.Changes {
		once("change", seen, n.Name)
		c.reason("change "+n.Name, n.Reason)
		if !n.Harmless && n.Since.IsZero() && n.Use == "" {
			c.add("change "+n.Name, "harmless", "the entry is empty: say that the change is harmless, when it came, or what to use instead")
		}
	}
	seen = map[string]bool{}
	for _, n := range o.Docs {
		once("doc", seen, n.Name)
		if functions[n.Name] == nil && !typed[n.Name] && !values[n.Name] {
			c.add("doc "+n.Name, "name", "the table has no such function, type or value")
		}
		if n.Text == "" || n.Text == "?" || strings.HasSuffix(n.Text, ".") || strings.Contains(n.Text, "\n") {
			c.add("doc "+n.Name, "text", "must be one line, not empty and without a full stop")
		}
	}
	return c.err()
}

// kind checks that a type's note has a kind, and one that the type can have.
func (c *checker) kind(t *Table, n TypeNote) {
	record := "type " + n.Name
	if !slices.Contains([]string{"result", "address", "handle", "pointer", "struct", "number"}, n.Kind) {
		c.add(record, "kind", "%q is not one of result, address, handle, pointer, struct, number", n.Kind)
		return
	}
	i := slices.IndexFunc(t.Handles, func(h Handle) bool { return h.Name == n.Name })
	switch {
	case n.Kind == "pointer" && (i < 0 || t.Handles[i].Tag != "void"):
		c.add(record, "kind", "only a typedef of void * can be of the kind pointer")
	case i >= 0 && t.Handles[i].Tag == "void" && (n.Kind == "number" || n.Kind == "struct"):
		c.add(record, "kind", "it is a typedef of void *: write handle, or pointer if it points to memory of the program, or address if to device memory")
	case i >= 0 && (n.Kind == "number" || n.Kind == "struct"):
		c.add(record, "kind", "it is a handle, so it cannot be of the kind %s", n.Kind)
	}
}

// functionsByName returns a table's functions by symbol and by API name.
func functionsByName(t *Table) map[string][]Function {
	functions := map[string][]Function{}
	for _, f := range t.Functions {
		functions[f.Symbol] = append(functions[f.Symbol], f)
		if f.API != f.Symbol {
			functions[f.API] = append(functions[f.API], f)
		}
	}
	return functions
}

func (c *checker) reason(record, reason string) {
	if strings.TrimSpace(reason) == "" || reason == "?" {
		c.add(record, "reason", "is empty; every entry of an overlay needs a reason")
	}
}

func (c *checker) sets(t *Table, o *Overlay) {
	if len(o.Sets) == 0 {
		c.add("sets", "", "there must be at least one set, the required core")
		return
	}
	names := map[string]bool{}
	for _, s := range o.Sets {
		record := "set " + s.Name
		if s.Name == "" || names[s.Name] {
			c.add(record, "name", "is empty or taken")
		}
		names[s.Name] = true
		if s.Since.IsZero() {
			c.add(record, "since", "is empty")
		}
		if s.Name == "?" || s.Doc == "?" {
			c.add(record, "name", "has a blank to fill in")
		}
		for _, p := range s.Match {
			if _, err := path.Match(p, ""); err != nil {
				c.add(record, "match", "%q: %v", p, err)
				continue
			}
			one := SetNote{Match: []string{p}}
			if !slices.ContainsFunc(t.Functions, func(f Function) bool { return one.matches(f.Symbol, f.API) }) {
				c.add(record, "match", "%q matches no function", p)
			}
		}
	}
	for _, f := range t.Functions {
		if setOf(o.Sets, &Func{Function: f}) < 0 {
			c.add("sets", "", "function %s is in no set", f.Symbol)
		}
	}
}

// param checks a parameter's note against every ABI version that the note covers.
func (c *checker) param(kind string, n ParamNote, t *Table, functions map[string][]Function) {
	record := kind + " " + n.Name
	fname, pname, ok := strings.Cut(n.Name, ".")
	named := functions[fname]
	if n.isPattern() {
		named = nil
		for _, name := range slices.Sorted(maps.Keys(functions)) {
			if ok, _ := path.Match(fname, name); ok {
				named = append(named, functions[name]...)
			}
		}
	}
	switch {
	case named == nil && slices.ContainsFunc(t.Refused, func(r Refusal) bool { return r.Name == fname }):
		c.add(record, "name", "%s is refused: remove the entry, or mend the reason for the refusal", fname)
		return
	case !ok || named == nil:
		c.add(record, "name", "must be function.parameter, and the table must have the function")
		return
	}
	switch {
	case n.Dir == "?":
		c.add(record, "dir", "is not answered: write in, out or inout, or use len, slice, fixed or type instead")
	case !knownDir(n.Dir):
		c.add(record, "dir", "%q is not one of in, out, inout", n.Dir)
	}
	found := false
	for _, f := range named {
		has := func(name string) bool {
			return slices.ContainsFunc(f.Params, func(p Param) bool { return p.Name == name })
		}
		if !slices.ContainsFunc(f.Params, func(p Param) bool { return p.Name == pname || n.isPattern() && n.matches(t, &f, &p) }) {
			continue
		}
		found = true
		if n.Len != "" && !has(strings.TrimPrefix(n.Len, "*")) {
			c.add(record, "len", "%s has no parameter %q", f.Symbol, strings.TrimPrefix(n.Len, "*"))
		}
	}
	switch {
	case !found && len(n.Types) > 0:
		c.add(record, "name", "no function matching %s has a parameter %s of type %s: remove the entry or correct the name", fname, pname, strings.Join(n.Types, " or "))
	case !found && n.isPattern():
		c.add(record, "name", "no function matching %s has a parameter %s: remove the entry or correct the name", fname, pname)
	case !found:
		c.add(record, "name", "%s has no parameter %s: remove the entry or correct the name", fname, pname)
	}
	if n.Fixed < 0 {
		c.add(record, "fixed", "is negative")
	}
	if n.Text < 0 {
		c.add(record, "text", "is negative")
	}
	if n.Len != "" && (n.Slice || n.Fixed != 0) || n.Slice && n.Fixed != 0 {
		c.add(record, "len", "an array must have only one of len, slice and fixed")
	}
	if n.Size != "" && !n.Slice {
		c.add(record, "size", "is for an array with slice")
	}
	if n.Late != "" && (n.Len != "" || n.Slice || n.Fixed != 0) {
		c.add(record, "late", "an array needs no late: its memory is the caller's")
	}
}
