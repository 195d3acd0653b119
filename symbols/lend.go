package symbols

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Lends lists the types that the headers of other libraries may take from a library. The bindings
// of those libraries then use this library's Go types. Every type of the table is lent under its
// own name; the list can add names.
type Lends struct {
	Headers []string `json:"headers"`         // headers that other libraries include for these types
	Types   []Lent   `json:"types,omitempty"` // types with another name in those headers, or types that no header of this library declares
	Text    []string `json:"text,omitempty"`  // additional lines of C of such a header
}

// A Lent is a type that the headers of other libraries take from a library, under the name that
// they use.
type Lent struct {
	Name string `json:"name"`         // "cudaStream_t"
	Type string `json:"type"`         // the type that Name stands for: a type of the table, or a C built-in
	Go   string `json:"go,omitempty"` // handwritten Go type of the package, with the shape of Type
}

// A Borrowed is a type of another library.
type Borrowed struct {
	Name    string `json:"name"`    // as in the borrowing headers
	Library string `json:"library"` // the library that lends the type
}

// Lenders are libraries, by name, that lend types and are not embedded.
type Lenders map[string]*Library

// Add adds a library that is not embedded, and whose Go package is importPath. If its description
// has no Lends, the library lends its types to headers that include one of its own headers.
func (m Lenders) Add(l *Library, importPath string) error {
	name := l.Description.Library
	if slices.Contains(names(), name) {
		return fmt.Errorf("symbols: there is an embedded library %s", name)
	}
	lent := *l
	d := *l.Description
	if d.Lends == nil {
		d.Lends = &Lends{Headers: d.Headers.Files}
	}
	lent.Description, lent.Import = &d, importPath
	m[name] = &lent
	return nil
}

func (m Lenders) load(name string) (*Library, error) {
	if l := m[name]; l != nil {
		return l, nil
	}
	return Load(name)
}

func (m Lenders) describe(name string) (*Description, error) {
	if l := m[name]; l != nil {
		return l.Description, nil
	}
	return Describe(name)
}

// Lender returns the library with a name: one of d.Lenders, or else an embedded library.
func (d *Description) Lender(name string) (*Library, error) {
	if d == nil { // the table has no description, so all lenders are embedded
		return Load(name)
	}
	return d.Lenders.load(name)
}

// Lend returns the type that a library lends under a name. A type of the library's table that is
// not in Lends.Types is lent under its own name.
func (d *Description) Lend(library, name string) (Lent, bool) {
	if d == nil {
		return Lenders(nil).lend(library, name)
	}
	return d.Lenders.lend(library, name)
}

func (m Lenders) lend(library, name string) (Lent, bool) {
	lib, err := m.load(library)
	if err != nil || lib.Description.Lends == nil {
		return Lent{}, false
	}
	for _, t := range lib.Description.Lends.Types {
		if t.Name == name {
			return t, true
		}
	}
	return Lent{Name: name, Type: name}, lib.TypeNames()[name]
}

// StandIns returns C text that replaces the headers of embedded libraries, by the names in an
// #include.
func StandIns(libraries []string) (map[string]string, error) {
	return Lenders(nil).standIns(libraries)
}

// StandIns returns C text that replaces the headers of the libraries that the description uses, by
// the name of the header.
func (d *Description) StandIns() (map[string]string, error) { return d.Lenders.standIns(d.Uses) }

func (m Lenders) standIns(libraries []string) (map[string]string, error) {
	out := map[string]string{}
	for _, name := range libraries {
		text, err := m.standIn(name)
		if err != nil {
			return nil, err
		}
		d, err := m.describe(name)
		if err != nil {
			return nil, err
		}
		for _, h := range d.Lends.Headers {
			out[h] += text
		}
	}
	return out, nil
}

func (m Lenders) standIn(library string) (string, error) {
	lib, err := m.load(library)
	if err != nil {
		return "", err
	}
	if lib.Description.Lends == nil {
		return "", fmt.Errorf("symbols: library %s lends no types", library)
	}
	types, err := lib.cTypes(false)
	if err != nil {
		return "", err
	}
	var b strings.Builder
	guard := "PUREGPU_TYPES_OF_" + strings.ToUpper(library)
	fmt.Fprintf(&b, "#ifndef %s\n#define %s\n%s", guard, guard, types)
	for _, t := range lib.Description.Lends.Types {
		fmt.Fprintf(&b, "typedef %s;\n", CDeclaration(t.Type, t.Name))
	}
	for _, line := range lib.Description.Lends.Text {
		b.WriteString(line + "\n")
	}
	b.WriteString("#endif\n")
	return b.String(), nil
}

// borrowed writes the types that the library takes from other libraries, and the types that the
// borrowed types mention.
func (c *cWriter) borrowed() error {
	own, asserts := c.lib, c.asserts
	c.asserts = false
	defer func() { c.lib, c.asserts = own, asserts }()
	want := map[string][]Lent{} // lent types, by library
	for _, b := range own.Borrowed {
		lent, ok := own.Description.Lend(b.Library, b.Name)
		if !ok {
			return fmt.Errorf("symbols: library %s lends no %s", b.Library, b.Name)
		}
		want[b.Library] = append(want[b.Library], lent)
	}
	for _, name := range slices.Sorted(maps.Keys(want)) {
		lib, err := own.Description.Lender(name)
		if err != nil {
			return err
		}
		need := map[string]bool{}
		for _, lent := range want[name] {
			if ct, err := ParseType(lent.Type); err == nil {
				need[ct.Base] = true
			}
		}
		c.lib = lib
		c.table(lib.only(need))
		for _, lent := range want[name] {
			if !c.done[lent.Name] {
				c.line("typedef %s;", CDeclaration(lent.Type, lent.Name))
				c.done[lent.Name] = true
				c.aligns[lent.Name] = c.align(lent.Type)
			}
		}
	}
	return nil
}

// only returns a table with the types in the map need, and with all types that they mention. It
// adds the mentioned types to the map.
func (t *Table) only(need map[string]bool) *Table {
	for before := -1; before != len(need); {
		before = len(need)
		t.EachType(func(record string, ctype *string) {
			if ct, err := ParseType(*ctype); err == nil && need[record] {
				need[ct.Base] = true
			}
		})
	}
	return &Table{
		Handles:   filter(t.Handles, func(h Handle) bool { return need[h.Name] }),
		Scalars:   filter(t.Scalars, func(s Scalar) bool { return need[s.Name] }),
		Aliases:   filter(t.Aliases, func(a Alias) bool { return need[a.Name] }),
		Enums:     filter(t.Enums, func(e Enum) bool { return need[e.Name] }),
		Structs:   filter(t.Structs, func(s Struct) bool { return need[s.Name] }),
		Callbacks: filter(t.Callbacks, func(c Callback) bool { return need[c.Name] }),
	}
}

func filter[T any](list []T, keep func(T) bool) []T {
	return slices.DeleteFunc(slices.Clone(list), func(x T) bool { return !keep(x) })
}

// Borrow adds to the table the types that it mentions but lacks, if a library that the description
// uses lends them.
func (t *Table) Borrow(d *Description) {
	have := t.TypeNames()
	want := map[string]bool{}
	t.EachType(func(_ string, ctype *string) {
		if ct, err := ParseType(*ctype); err == nil && !have[ct.Base] && !isBuiltin(ct.Base) {
			want[ct.Base] = true
		}
	})
	for _, name := range slices.Sorted(maps.Keys(want)) {
		for _, library := range d.Uses {
			if _, ok := d.Lend(library, name); ok {
				t.Borrowed = append(t.Borrowed, Borrowed{name, library})
				break
			}
		}
	}
}

// EachType calls f for each type that a record of the table mentions, with the name of the record.
func (t *Table) EachType(f func(record string, ctype *string)) {
	for i := range t.Aliases {
		f(t.Aliases[i].Name, &t.Aliases[i].Type)
	}
	for _, s := range t.Structs {
		for i := range s.Fields {
			f(s.Name, &s.Fields[i].Type)
		}
		for _, o := range s.Others {
			for i := range o.Fields {
				f(s.Name, &o.Fields[i].Type)
			}
		}
	}
	params := func(record string, list []Param) {
		for i := range list {
			f(record, &list[i].Type)
		}
	}
	for i := range t.Callbacks {
		f(t.Callbacks[i].Name, &t.Callbacks[i].Result)
		params(t.Callbacks[i].Name, t.Callbacks[i].Params)
		for j := range t.Callbacks[i].Others {
			o := &t.Callbacks[i].Others[j]
			f(t.Callbacks[i].Name, &o.Result)
			params(t.Callbacks[i].Name, o.Params)
		}
	}
	for i := range t.Functions {
		f(t.Functions[i].Symbol, &t.Functions[i].Result)
		params(t.Functions[i].Symbol, t.Functions[i].Params)
		for j := range t.Functions[i].Others {
			o := &t.Functions[i].Others[j]
			f(t.Functions[i].Symbol, &o.Result)
			params(t.Functions[i].Symbol, o.Params)
		}
	}
}

// TypeNames returns the names of the table's types, including borrowed types.
func (t *Table) TypeNames() map[string]bool { return (&checker{}).types(t) }
