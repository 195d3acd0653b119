package extract

import (
	"fmt"
	"slices"

	"github.com/puregpu/puregpu/symbols"
)

// mergeEnums adds to t the enumerations and enumerators that only older has. since tells when a record of older was
// seen, and report gets every enumerator whose number changed: t's wins.
func mergeEnums(t, older *symbols.Table, since symbols.Version, report func(string)) {
	key := func(e symbols.Enum) string { // an enumeration without a name goes by its first enumerator
		if e.Name == "" && len(e.Values) > 0 {
			return "enum " + e.Values[0].Name
		}
		return e.Name
	}
	index := map[string]int{}
	for i, e := range t.Enums {
		index[key(e)] = i
	}
	for _, o := range older.Enums {
		i, ok := index[key(o)]
		if !ok {
			o.Since, o.Until = since, since
			t.Enums = append(t.Enums, o)
			continue
		}
		e := &t.Enums[i]
		for _, v := range o.Values {
			j := slices.IndexFunc(e.Values, func(x symbols.EnumValue) bool { return x.Name == v.Name })
			switch {
			case j < 0:
				v.Since, v.Until, v.Lib = since, since, older.Library
				e.Values = append(e.Values, v)
			case j >= 0 && e.Values[j].Value != v.Value && report != nil:
				report(fmt.Sprintf("enumerator %s.%s was %d and is %d", o.Name, v.Name, v.Value, e.Values[j].Value))
			case j >= 0 && !since.IsZero():
				e.Values[j].Since = since
			}
		}
		if !since.IsZero() {
			e.Since = since
		}
	}
}

// mergeTypes adds to t the handles, scalars, aliases, structs, callbacks and constants that only older has. A name that t
// has as another kind of type stands as t has it: a struct that was visible once and is opaque now is a handle, and a macro that
// is an enumerator now is that. report gets every such macro whose number changed.
func mergeTypes(t, older *symbols.Table, since symbols.Version, report func(string)) {
	kind := map[string]string{}
	number := map[string]string{}
	for _, e := range t.Enums {
		for _, v := range e.Values {
			kind[v.Name], number[v.Name] = "enumerator", fmt.Sprint(v.Value)
		}
	}
	for _, c := range older.Constants {
		if is, ok := number[c.Name]; ok && is != c.Value && report != nil {
			report(fmt.Sprintf("constant %s was %s and is the enumerator %s", c.Name, c.Value, is))
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
	u := merger{kind, since}
	t.Handles = merged(u, "handle", t.Handles, older.Handles, func(h *symbols.Handle) (string, *symbols.Version, *symbols.Version) {
		return h.Name, &h.Since, &h.Until
	})
	t.Scalars = merged(u, "scalar", t.Scalars, older.Scalars, func(s *symbols.Scalar) (string, *symbols.Version, *symbols.Version) {
		return s.Name, &s.Since, &s.Until
	})
	t.Structs = merged(u, "struct", t.Structs, older.Structs, func(s *symbols.Struct) (string, *symbols.Version, *symbols.Version) {
		return s.Name, &s.Since, &s.Until
	})
	t.Callbacks = merged(u, "callback", t.Callbacks, older.Callbacks, func(c *symbols.Callback) (string, *symbols.Version, *symbols.Version) {
		return c.Name, &c.Since, &c.Until
	})
	t.Constants = merged(u, "constant", t.Constants, older.Constants, func(c *symbols.Constant) (string, *symbols.Version, *symbols.Version) {
		return c.Name, &c.Since, &c.Until
	})
	t.Aliases = merged(u, "alias", t.Aliases, older.Aliases, func(a *symbols.Alias) (string, *symbols.Version, *symbols.Version) { return a.Name, nil, nil })
}

type merger struct {
	kind  map[string]string // what the newer table has a name as
	since symbols.Version
}

func merged[T any](u merger, kind string, newer, older []T, key func(*T) (name string, since, until *symbols.Version)) []T {
	have := map[string]int{}
	for i := range newer {
		name, _, _ := key(&newer[i])
		have[name] = i
	}
	for _, o := range older {
		name, _, until := key(&o)
		if k := u.kind[name]; k != "" && k != kind {
			continue
		}
		i, ok := have[name]
		if !ok {
			if until != nil {
				*until = u.since
			}
			i = len(newer)
			newer = append(newer, o)
		}
		if _, v, _ := key(&newer[i]); v != nil && !u.since.IsZero() {
			*v = u.since
		}
	}
	return newer
}
