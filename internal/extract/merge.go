package extract

import (
	"slices"

	"github.com/puregpu/puregpu/symbols"
)

// mergeEnums adds to t the enumerations and enumerators that only another implementation has, and
// marks them.
func mergeEnums(t, other *symbols.Table) {
	key := func(e symbols.Enum) string { // the key of an enumeration without a name is its first enumerator
		if e.Name == "" && len(e.Values) > 0 {
			return "enum " + e.Values[0].Name
		}
		return e.Name
	}
	index := map[string]int{}
	for i, e := range t.Enums {
		index[key(e)] = i
	}
	for _, o := range other.Enums {
		i, ok := index[key(o)]
		if !ok {
			for j := range o.Values {
				o.Values[j].Lib = other.Library
			}
			t.Enums = append(t.Enums, o)
			continue
		}
		e := &t.Enums[i]
		for _, v := range o.Values {
			if !slices.ContainsFunc(e.Values, func(x symbols.EnumValue) bool { return x.Name == v.Name }) {
				v.Lib = other.Library
				e.Values = append(e.Values, v)
			}
		}
	}
}

// mergeTypes adds to t the types and constants that only another implementation has, except
// enumerations, and marks them. mergeTypes leaves out a type whose name t has with another kind.
func mergeTypes(t, other *symbols.Table) {
	kind := map[string]string{}
	for _, e := range t.Enums {
		for _, v := range e.Values {
			kind[v.Name] = "enumerator"
		}
	}
	for _, h := range t.Handles {
		kind[h.Name], kind[h.Tag] = "handle", "handle"
	}
	for _, s := range t.Scalars {
		kind[s.Name] = "scalar"
	}
	for _, s := range t.Structs {
		kind[s.Name] = "struct"
	}
	for _, a := range t.Aliases {
		kind[a.Name] = "alias"
	}
	m := merger{kind, other.Library}
	t.Handles = merged(m, "handle", t.Handles, other.Handles, func(h *symbols.Handle) (string, *string) { return h.Name, &h.Lib })
	t.Scalars = merged(m, "scalar", t.Scalars, other.Scalars, func(s *symbols.Scalar) (string, *string) { return s.Name, &s.Lib })
	t.Structs = merged(m, "struct", t.Structs, other.Structs, func(s *symbols.Struct) (string, *string) { return s.Name, &s.Lib })
	t.Callbacks = merged(m, "callback", t.Callbacks, other.Callbacks, func(c *symbols.Callback) (string, *string) { return c.Name, &c.Lib })
	t.Constants = merged(m, "constant", t.Constants, other.Constants, func(c *symbols.Constant) (string, *string) { return c.Name, &c.Lib })
	t.Aliases = merged(m, "alias", t.Aliases, other.Aliases, func(a *symbols.Alias) (string, *string) { return a.Name, nil })
}

type merger struct {
	kind map[string]string // kind of record of each name in the table
	lib  string
}

func merged[T any](m merger, kind string, have, theirs []T, key func(*T) (name string, lib *string)) []T {
	names := map[string]bool{}
	for i := range have {
		name, _ := key(&have[i])
		names[name] = true
	}
	for _, o := range theirs {
		name, lib := key(&o)
		if k := m.kind[name]; k != "" && k != kind || names[name] {
			continue
		}
		if lib != nil {
			*lib = m.lib
		}
		names[name] = true
		have = append(have, o)
	}
	return have
}
