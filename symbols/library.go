package symbols

import (
	"fmt"
	"path"
	"slices"
	"strings"
)

// A Library is a table joined with its overlay and checked. The result of [Load] must not be
// changed.
type Library struct {
	*Table
	Description *Description // nil if only a table and an overlay were decoded
	Import      string       // path of its Go package, if the library is not embedded
	Overlay     *Overlay
	Sets        []Set  // sets and their continuations; Sets[0] is the required core
	Funcs       []Func // the bound functions, in the order of the table
	Skipped     []Func // the functions that are not bound, with the reason in Note

	docs  map[string]string
	types map[string]TypeNote
	names map[string]NameNote
}

// A Set is a set of functions that a release adds together.
type Set struct {
	Name  string
	Since Version
	Doc   string
}

// A Func is one ABI version of a function with everything known about it.
type Func struct {
	Function
	Set       int      // index in Library.Sets
	Doc       string   // a phrase that continues after the function's name
	Callback  bool     // may call back into the program before it returns
	Asks      []string // parameters with function pointers, if no note says when the library runs these functions
	Registers bool     // registers a function that later calls may run before they return
	Use       string   // what to call in a release that lacks the function, or ""
	Note      string   // the reason of its note in the overlay, or of its refusal
	Args      []Arg
}

// An Arg is a parameter joined with its note.
type Arg struct {
	Param
	Len    string // the parameter that holds the length; "*name" if it is a pointer through which the library returns the length
	Slice  bool   // array without a parameter for its length
	Size   string // function that returns how many elements the library writes to the array, or ""
	Fixed  int    // array of this length
	Text   int    // text buffer of this size
	Late   string // when the library finishes with an output that it may write after the call
	GoType string // Go type that overrides the rules

	one bool // a note says that it points to one element
}

// TypeNote returns the overlay's note on a type.
func (l *Library) TypeNote(name string) (TypeNote, bool) {
	n, ok := l.types[name]
	return n, ok
}

// NameNote returns the Go name that the overlay gives a C name.
func (l *Library) NameNote(name string) (NameNote, bool) {
	n, ok := l.names[name]
	return n, ok
}

// TypeDoc returns the summary of a type or an enumerator, or "".
func (l *Library) TypeDoc(name string) string { return l.docs[name] }

// Lookup returns every ABI version of the function with a C name, either an API name or an exported
// symbol. The result is nil if the library has no such function.
func (l *Library) Lookup(cname string) []Func {
	api := cname
	for _, f := range slices.Concat(l.Funcs, l.Skipped) {
		if f.Symbol == cname {
			api = f.API
		}
	}
	var out []Func
	for _, f := range slices.Concat(l.Funcs, l.Skipped) {
		if f.API == api || f.API == cname {
			out = append(out, f)
		}
	}
	return out
}

// join joins a table with its checked overlay, and applies the rules of d, which may be nil.
func join(t *Table, o *Overlay, d *Description) *Library {
	var rules []ParamNote
	if d != nil {
		rules = d.Pointers
	}
	l := &Library{Table: t, Description: d, Overlay: o, docs: map[string]string{}, types: map[string]TypeNote{}, names: map[string]NameNote{}}
	for _, d := range o.Docs {
		l.docs[d.Name] = d.Text
	}
	for _, n := range o.Types {
		l.types[n.Name] = n
	}
	for _, n := range o.Names {
		l.names[n.Name] = n
	}
	notes := map[string]FunctionNote{}
	for _, n := range o.Functions {
		notes[n.Name] = n
	}
	params := map[string]ParamNote{}
	var patterns []ParamNote
	for _, n := range o.Params {
		if n.isPattern() {
			patterns = append(patterns, n)
		} else {
			params[n.Name] = n
		}
	}
	for _, s := range o.Sets {
		l.Sets = append(l.Sets, Set{Name: s.Name, Since: s.Since, Doc: s.Doc})
	}
	refused := map[string]string{}
	for _, r := range t.Refused {
		refused[r.Name] = r.Reason
	}
	known := map[string]bool{}
	isFunction := func(ctype string) bool {
		if _, ok := known[ctype]; !ok {
			known[ctype] = l.isFunction(ctype)
		}
		return known[ctype]
	}
	for _, f := range t.Functions {
		g := Func{Function: f}
		told := false
		for _, name := range []string{f.API, f.Symbol} { // the note on the symbol comes last and overrides the other one
			if n, ok := notes[name]; ok {
				if !n.Since.IsZero() {
					g.Since = n.Since
				}
				g.Callback, g.Registers, g.Use, g.Note = n.Callback == Yes, n.Registers, n.Use, n.Reason
				told = n.Callback != "" || n.Registers
			}
			if d := l.docs[name]; d != "" {
				g.Doc = d
			}
		}
		for _, p := range f.Params {
			a := Arg{Param: p}
			var list []ParamNote // a later note overrides an earlier one
			for _, n := range patterns {
				if n.matches(t, &f, &p) {
					list = append(list, n)
				}
			}
			for _, name := range []string{f.API, f.Symbol} {
				if n, ok := params[name+"."+p.Name]; ok {
					list = append(list, n)
				}
			}
			if !slices.ContainsFunc(list, func(n ParamNote) bool { return n.settles() }) {
				for _, n := range slices.Backward(rules) {
					if n.matches(t, &f, &p) && strings.Contains(p.Type, "*") {
						list = append([]ParamNote{n}, list...)
						break
					}
				}
			}
			for _, n := range list {
				a.apply(n)
			}
			g.Args = append(g.Args, a)
		}
		for _, a := range g.Args {
			result := a.Dir == Out && a.Len == "" && !a.Slice && a.Fixed == 0
			if !told && !result && isFunction(a.Type) {
				g.Asks = append(g.Asks, a.Name)
			}
		}
		for _, a := range g.Args { // a note on an array also explains the pointer to its length
			for i := range g.Args {
				if n := &g.Args[i]; a.Len == "*"+n.Name {
					n.Guess = false
				}
			}
		}
		if why, is := refused[f.Symbol]; is {
			g.Note = why
			l.Skipped = append(l.Skipped, g)
			continue
		}
		if notes[f.Symbol].Skip || notes[f.API].Skip {
			l.Skipped = append(l.Skipped, g)
			continue
		}
		g.Set = l.setFor(&g)
		if f.Absent {
			g.Set = l.absentSet()
		}
		if g.Since.IsZero() { // no header, note or version node tells the first release
			g.Since = l.Sets[g.Set].Since
		}
		l.Funcs = append(l.Funcs, g)
	}
	l.setApart()
	return l
}

// setApart moves functions that newer releases lack into a set named after the last release that
// has them: a library of a newer release would otherwise not have the set that they were in. A set
// that would become empty stays whole.
func (l *Library) setApart() {
	left := make([]bool, len(l.Sets))
	for i := range l.Funcs {
		left[l.Funcs[i].Set] = left[l.Funcs[i].Set] || l.Funcs[i].Until.IsZero()
	}
	for i := range l.Funcs {
		f := &l.Funcs[i]
		if f.Until.IsZero() || !left[f.Set] {
			continue
		}
		of := l.Sets[f.Set]
		name := of.Name + "-until-" + f.Until.String()
		j := slices.IndexFunc(l.Sets, func(s Set) bool { return s.Name == name })
		if j < 0 {
			j = len(l.Sets)
			l.Sets = append(l.Sets, Set{Name: name, Since: of.Since, Doc: of.Doc + ": what went after " + f.Until.String()})
		}
		f.Set = j
	}
}

func (a *Arg) apply(n ParamNote) {
	array := n.array()
	if a.Guess && n.Type != "" && !array {
		a.Dir = "" // the argument is the value, such as an address in device memory, and not a Go pointer
	}
	if a.Guess && array && strings.HasPrefix(a.Type, "const ") {
		a.Dir = "" // const char **: the library may read the pointers or write them
	}
	if a.Guess && (n.Type != "" || array || n.Late != "") {
		a.Guess = false
	}
	if n.Dir != "" {
		a.Dir, a.Guess, a.one = n.Dir, false, true
	}
	if n.Null != nil {
		a.Null = *n.Null
	}
	if array {
		a.Len, a.Slice, a.Size, a.Fixed, a.Text = n.Len, n.Slice, n.Size, n.Fixed, n.Text
	}
	if n.Late != "" {
		a.Late = n.Late
	}
	if n.Type != "" {
		a.GoType = n.Type
	}
}

// Room returns how many elements the library may write or read at an argument that C declares as an
// array. It returns 0 if the program decides how many. Without a note of the overlay, the program passes as
// many elements as the bound declaration says.
func (a *Arg) Room() int {
	ct, err := ParseType(a.Type)
	text := err == nil && ct.Base == "char" && ct.Pointers == 1
	switch {
	case a.Len != "":
		return 0
	case a.Text+a.Fixed > 0:
		return max(a.Text, a.Fixed)
	case a.Slice:
		return a.Length()
	case a.Dir == Out && a.Late == "" && !text:
		return 1 // the method returns the element
	case a.one:
		return max(a.Length(), 1)
	}
	return a.Length()
}

func (n *ParamNote) array() bool { return n.Len != "" || n.Slice || n.Fixed != 0 || n.Text != 0 }

// settles reports whether a note says how a pointer is used.
func (n *ParamNote) settles() bool { return n.Dir != "" || n.array() || n.Late != "" || n.Type != "" }

// isPattern reports whether a note is a pattern for parameters.
func (n *ParamNote) isPattern() bool { return strings.ContainsAny(n.Name, "*?[") || len(n.Types) > 0 }

// matches reports whether a pattern matches a parameter of a function in a table.
func (n *ParamNote) matches(t *Table, f *Function, p *Param) bool {
	function, name, _ := strings.Cut(n.Name, ".")
	ofAPI, _ := path.Match(function, f.API)
	ofSymbol, _ := path.Match(function, f.Symbol)
	named, _ := path.Match(name, p.Name)
	return (ofAPI || ofSymbol) && named && (len(n.Types) == 0 || slices.Contains(n.Types, p.Type) ||
		strings.Contains(p.Type, "*") && slices.Contains(n.Types, t.HeaderType(p.Type)))
}

// Settles reports whether a note applies to a parameter and says how the parameter's pointer is
// used.
func (n *ParamNote) Settles(t *Table, f *Function, p *Param) bool {
	return n.matches(t, f, p) && n.settles()
}

// isFunction reports whether a type is a function pointer, or a pointer to one.
func (l *Library) isFunction(ctype string) bool {
	ct, err := l.resolve(ctype)
	if err != nil {
		return false
	}
	for _, b := range l.Borrowed {
		if b.Name != ct.Base {
			continue
		}
		lent, ok := l.Description.Lend(b.Library, b.Name)
		lender, err := l.Description.Lender(b.Library)
		return ok && err == nil && lender.isFunction(lent.Type)
	}
	return slices.ContainsFunc(l.Callbacks, func(c Callback) bool { return c.Name == ct.Base })
}

// Declaration returns the C declaration of a function. If the table has the function's place in the
// header, the text begins with the place.
func (l *Library) Declaration(f *Func) string {
	text := fmt.Sprintf("%s(%s)", l.declare(f.Result, f.API), l.declareAll(f.Params))
	if f.Where != "" {
		text = f.Where + ": " + text
	}
	return text
}

func (l *Library) declareAll(params []Param) string {
	list := make([]string, len(params))
	for i, p := range params {
		if list[i] = l.declare(p.Type, p.Name); p.C != "" {
			list[i] = p.C
		}
	}
	return strings.Join(list, ", ")
}

// declare writes a declaration as in the header. A handle or a callback that shares the name of its
// struct or function type is written as a pointer. A callback without a name is written out.
func (l *Library) declare(ctype, name string) string {
	ct, err := ParseType(ctype)
	if err != nil || len(ct.Dims) > 0 {
		return CDeclaration(ctype, name)
	}
	for _, c := range l.Callbacks {
		if c.Name == ct.Base && strings.Contains(c.Name, ".") {
			return fmt.Sprintf("%s(%s)", CDeclaration(c.Result, "(*"+strings.Repeat("*", ct.Pointers)+name+")"), l.declareAll(c.Params))
		}
	}
	return CDeclaration(l.HeaderType(ctype), name)
}

// HeaderType returns a type as headers write it. If a handle has the name of its struct, or a
// callback that of its function type, headers have one more pointer than the table.
func (t *Table) HeaderType(ctype string) string {
	ct, err := ParseType(ctype)
	if err == nil && (slices.ContainsFunc(t.Handles, func(h Handle) bool { return h.Name == ct.Base && (h.Tag == h.Name || h.Struct) }) ||
		slices.ContainsFunc(t.Callbacks, func(c Callback) bool { return c.Name == ct.Base && c.Func })) {
		return pointerTo(ctype)
	}
	return ctype
}

func pointerTo(ctype string) string {
	if strings.HasSuffix(ctype, "*") {
		return ctype + "*"
	}
	return ctype + " *"
}

// Unsettled returns the functions with open questions. A parameter with Guess set is a pointer that
// the header, the description and the overlay do not explain. A function with Asks set takes
// function pointers, and no note says when the library runs the functions behind them.
func (l *Library) Unsettled() []Func {
	return slices.DeleteFunc(slices.Clone(l.Funcs), func(f Func) bool {
		return len(f.Asks) == 0 && !slices.ContainsFunc(f.Args, func(a Arg) bool { return a.Guess })
	})
}

// Required reports whether a function belongs to the required core by its symbol, even if the
// library does not export the function.
func (l *Library) Required(f *Func) bool { return setOf(l.Overlay.Sets, f) == 0 }

// absentSet returns the index of the set of functions that the library does not export. On first
// use it adds that set.
func (l *Library) absentSet() int {
	const name = "absent"
	if i := slices.IndexFunc(l.Sets, func(s Set) bool { return s.Name == name }); i >= 0 {
		return i
	}
	doc := "what the headers declare and the library does not export"
	l.Sets = append(l.Sets, Set{Name: name, Since: l.Overlay.Sets[0].Since, Doc: doc})
	return len(l.Sets) - 1
}

// setFor returns a function's set, or the set's continuation if the function is newer than the set
// and the set is not the core.
func (l *Library) setFor(f *Func) int {
	i := setOf(l.Overlay.Sets, f)
	s := l.Overlay.Sets[i]
	if i == 0 || f.Since.Compare(s.Since) <= 0 {
		return i
	}
	name := s.Name + "-" + f.Since.String()
	if j := slices.IndexFunc(l.Sets, func(s Set) bool { return s.Name == name }); j >= 0 {
		return j
	}
	l.Sets = append(l.Sets, Set{Name: name, Since: f.Since, Doc: strings.TrimSuffix(s.Doc, ".") + ": what came with " + f.Since.String()})
	return len(l.Sets) - 1
}

// CatchAll reports whether a function belongs to the last set, and that set has the pattern "*" and
// is not the core.
func (o *Overlay) CatchAll(symbol, api string) bool {
	i := setOf(o.Sets, &Func{Function: Function{Symbol: symbol, API: api}})
	return i == len(o.Sets)-1 && i > 0 && slices.Contains(o.Sets[i].Match, "*")
}

// setOf returns the index of the first set that matches a function, or -1. The required core,
// sets[0], matches symbols only, so that it cannot take a newer ABI version of the same name.
func setOf(sets []SetNote, f *Func) int {
	return slices.IndexFunc(sets, func(s SetNote) bool {
		if s.Name == sets[0].Name {
			return s.matches(f.Symbol)
		}
		return s.matches(f.Symbol, f.API)
	})
}

func (s *SetNote) matches(names ...string) bool {
	return slices.ContainsFunc(s.Match, func(pattern string) bool {
		for _, name := range names {
			if ok, _ := path.Match(pattern, name); ok { // patterns were checked during loading
				return true
			}
		}
		return false
	})
}
