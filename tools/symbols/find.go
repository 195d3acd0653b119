package main

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/puregpu/puregpu/symbols"
)

// A browser answers questions about libraries.
type browser struct {
	libs   []*symbols.Library
	goName func(library, symbol string) (name, declaration string, err error)
}

// A record is one meaning of a name. One of the pointers after Note is set.
type record struct {
	Library  string            `json:"library"`
	Kind     string            `json:"kind"`
	Name     string            `json:"name"`
	Summary  string            `json:"summary,omitempty"`
	Note     *symbols.TypeNote `json:"note,omitempty"`
	Function *function         `json:"function,omitempty"`
	Handle   *symbols.Handle   `json:"handle,omitempty"`
	Scalar   *symbols.Scalar   `json:"scalar,omitempty"`
	Alias    *symbols.Alias    `json:"alias,omitempty"`
	Enum     *symbols.Enum     `json:"enum,omitempty"`
	Value    *value            `json:"value,omitempty"`
	Struct   *symbols.Struct   `json:"struct,omitempty"`
	Callback *symbols.Callback `json:"callback,omitempty"`
	Constant *symbols.Constant `json:"constant,omitempty"`
}

// A value is an enumerator and its enumeration.
type value struct {
	symbols.EnumValue
	Enum string `json:"enum"`
}

// A function is one ABI of a function.
type function struct {
	Symbol      string          `json:"symbol"`
	API         string          `json:"api"`
	Since       symbols.Version `json:"since,omitzero"`
	Until       symbols.Version `json:"until,omitzero"`
	Current     bool            `json:"current"`
	Deprecated  bool            `json:"deprecated,omitempty"`
	Lib         string          `json:"lib,omitempty"`
	Twins       []string        `json:"twins,omitempty"`
	Set         *set            `json:"set,omitempty"` // nil if the function is not bound
	Result      string          `json:"result"`
	Params      []param         `json:"params"`
	Callback    bool            `json:"callback,omitempty"`
	Registers   bool            `json:"registers,omitempty"`
	Reason      string          `json:"reason,omitempty"` // of the overlay's entry
	Go          string          `json:"go,omitempty"`
	Declaration string          `json:"declaration,omitempty"`
	NameReason  string          `json:"nameReason,omitempty"` // why the Go name breaks the rules
}

type param struct {
	symbols.Param
	Len    string `json:"len,omitempty"`
	Slice  bool   `json:"slice,omitempty"`
	Size   string `json:"size,omitempty"`
	Fixed  int    `json:"fixed,omitempty"`
	Text   int    `json:"text,omitempty"`
	GoType string `json:"goType,omitempty"`
	Reason string `json:"reason,omitempty"`
}

type set struct {
	Library   string          `json:"library,omitempty"`
	Name      string          `json:"name"`
	Since     symbols.Version `json:"since"`
	Doc       string          `json:"doc"`
	Required  bool            `json:"required,omitempty"`
	Functions int             `json:"functions,omitempty"`
}

// find returns all meanings of a C name, nil if there is none.
func (b *browser) find(name string) ([]record, error) {
	var out []record
	for _, l := range b.libs {
		add := func(kind, cname string) *record {
			out = append(out, record{Library: l.Library, Kind: kind, Name: cname, Summary: l.TypeDoc(cname)})
			r := &out[len(out)-1]
			if n, ok := l.TypeNote(cname); ok {
				r.Note = &n
			}
			return r
		}
		for _, f := range functionsOf(l, name) {
			g, err := b.function(l, &f)
			if err != nil {
				return nil, err
			}
			r := add("function", f.Symbol)
			r.Summary, r.Function = f.Doc, g
		}
		for _, h := range l.Handles {
			if h.Name == name || h.Tag == name {
				add("handle", h.Name).Handle = &h
			}
		}
		for _, s := range l.Scalars {
			if s.Name == name {
				add("scalar", s.Name).Scalar = &s
			}
		}
		for _, a := range l.Aliases {
			if a.Name == name {
				add("alias", a.Name).Alias = &a
			}
		}
		for _, e := range l.Enums {
			if name != "" && (e.Name == name || e.Tag == name) {
				add("enum", e.Name).Enum = &e
			}
			for _, v := range e.Values {
				if v.Name == name {
					add("enumerator", v.Name).Value = &value{v, e.Name}
				}
			}
		}
		for _, s := range l.Structs {
			if s.Name == name || s.Tag != "" && s.Tag == name {
				kind := "struct"
				if s.Union {
					kind = "union"
				}
				add(kind, s.Name).Struct = &s
			}
		}
		for _, c := range l.Callbacks {
			if c.Name == name {
				add("callback", c.Name).Callback = &c
			}
		}
		for _, c := range l.Constants {
			if c.Name == name {
				add("constant", c.Name).Constant = &c
			}
		}
	}
	return out, nil
}

// functionsOf returns all ABIs of the function with a name. For a per-thread-stream variant it
// returns the one ABI that the variant belongs to.
func functionsOf(l *symbols.Library, name string) []symbols.Func {
	if found := l.Lookup(name); found != nil {
		return found
	}
	for _, f := range slices.Concat(l.Funcs, l.Skipped) {
		if slices.Contains(f.Twins, name) {
			return []symbols.Func{f}
		}
	}
	return nil
}

func (b *browser) function(l *symbols.Library, f *symbols.Func) (*function, error) {
	g := &function{
		Symbol: f.Symbol, API: f.API, Since: f.Since, Until: f.Until, Current: f.Current, Deprecated: f.Deprecated, Lib: f.Lib,
		Twins: f.Twins, Result: f.Result, Params: []param{}, Callback: f.Callback, Registers: f.Registers, Reason: f.Note,
	}
	reasons := map[string]string{}
	for _, n := range l.Overlay.Params {
		reasons[n.Name] = n.Reason
	}
	for _, a := range f.Args {
		g.Params = append(g.Params, param{
			Param: a.Param, Len: a.Len, Slice: a.Slice, Size: a.Size, Fixed: a.Fixed, Text: a.Text, GoType: a.GoType,
			Reason: cmp.Or(reasons[f.Symbol+"."+a.Name], reasons[f.API+"."+a.Name]),
		})
	}
	if slices.ContainsFunc(l.Skipped, func(s symbols.Func) bool { return s.Symbol == f.Symbol }) {
		return g, nil
	}
	s := l.Sets[f.Set]
	g.Set = &set{Name: s.Name, Since: s.Since, Doc: s.Doc, Required: f.Set == 0}
	if n, ok := l.NameNote(f.Symbol); ok {
		g.NameReason = n.Reason
	}
	var err error
	g.Go, g.Declaration, err = b.goName(l.Library, f.Symbol)
	return g, err
}

// sets lists the symbol sets with the number of functions in each.
func (b *browser) sets() []set {
	var out []set
	for _, l := range b.libs {
		first := len(out)
		for i, s := range l.Sets {
			out = append(out, set{Library: l.Library, Name: s.Name, Since: s.Since, Doc: s.Doc, Required: i == 0})
		}
		for _, f := range l.Funcs {
			out[first+f.Set].Functions++
		}
	}
	return out
}

// unknown returns the error for a name that no library has. It suggests the nearest names.
func (b *browser) unknown(name string) error {
	who := "no library has"
	if len(b.libs) == 1 {
		who = b.libs[0].Library + " has no"
	}
	if rest, ok := strings.CutPrefix(name, "cuda"); ok && rest != "" && 'A' <= rest[0] && rest[0] <= 'Z' {
		return fmt.Errorf("%s %s, which is in CUDA's runtime API: docs/guide/bindings.md lists what package cuda has in its place", who, name)
	}
	near := b.near(name)
	if len(near) == 0 {
		return fmt.Errorf("%s %s", who, name)
	}
	return fmt.Errorf("%s %s; did you mean %s?", who, name, strings.Join(near, ", "))
}

// near returns up to five known names within few edits, nearest first.
func (b *browser) near(name string) []string {
	type candidate struct {
		name string
		d    int
	}
	var list []candidate
	limit := max(2, len(name)/3)
	seen := map[string]bool{}
	try := func(known string) {
		if known == "" || seen[known] {
			return
		}
		seen[known] = true
		if d := distance(strings.ToLower(name), strings.ToLower(known), limit); d <= limit {
			list = append(list, candidate{known, d})
		}
	}
	for _, l := range b.libs {
		for _, f := range l.Functions {
			try(f.API)
			try(f.Symbol)
		}
		for _, h := range l.Handles {
			try(h.Name)
		}
		for _, s := range l.Scalars {
			try(s.Name)
		}
		for _, a := range l.Aliases {
			try(a.Name)
		}
		for _, e := range l.Enums {
			try(e.Name)
			try(e.Tag)
			for _, v := range e.Values {
				try(v.Name)
			}
		}
		for _, s := range l.Structs {
			try(s.Name)
			try(s.Tag)
		}
		for _, c := range l.Callbacks {
			try(c.Name)
		}
		for _, c := range l.Constants {
			try(c.Name)
		}
	}
	slices.SortFunc(list, func(x, y candidate) int { return cmp.Or(cmp.Compare(x.d, y.d), cmp.Compare(x.name, y.name)) })
	var out []string
	for _, c := range list[:min(5, len(list))] {
		out = append(out, c.name)
	}
	return out
}

// distance returns the number of bytes to insert, remove or replace to turn a into b. If that
// number is greater than limit, the result is some number greater than limit.
func distance(a, b string, limit int) int {
	if d := len(a) - len(b); d > limit || -d > limit {
		return limit + 1
	}
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal, least := row[0], i+1
		row[0] = i + 1
		for j := range len(b) {
			change := diagonal
			if a[i] != b[j] {
				change++
			}
			diagonal = row[j+1]
			row[j+1] = min(change, row[j]+1, row[j+1]+1)
			least = min(least, row[j+1])
		}
		if least > limit {
			return limit + 1
		}
	}
	return row[len(b)]
}
