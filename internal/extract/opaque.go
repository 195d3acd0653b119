package extract

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/puregpu/puregpu/symbols"
)

// handles makes handles of undefined structs that the table uses only behind a pointer, as in
//
//	typedef struct tree tree;
//	tree *treeNew(void);
//
// The handle has the struct's name and replaces the pointer: treeNew returns a tree.
func handles(t *symbols.Table, opaque map[string]string) {
	have := t.TypeNames()
	made := map[string]bool{}
	t.EachType(func(_ string, ctype *string) {
		ct, err := symbols.ParseType(*ctype)
		if err != nil || ct.Pointers == 0 || have[ct.Base] || opaque[ct.Base] == "" {
			return
		}
		made[ct.Base] = true
		before, after, _ := strings.Cut(*ctype, "*")
		*ctype = strings.TrimRight(before+after, " ")
	})
	for _, f := range t.Functions {
		for i := range f.Params {
			p := &f.Params[i]
			if ct, err := symbols.ParseType(p.Type); err == nil && made[ct.Base] && ct.Pointers == 0 {
				p.Dir, p.Null, p.Guess = "", false, false // these facts were about the pointer, which is now part of the handle
			}
		}
	}
	for _, name := range slices.Sorted(maps.Keys(made)) {
		t.Handles = append(t.Handles, symbols.Handle{Name: name, Tag: opaque[name], Struct: name != opaque[name]})
	}
}

// buffers marks pointers to char as guesses, in functions that also take a size, since such a
// pointer may be a text, an array or one byte. It does not mark a pointer if the char is const, or
// if the documentation says that the library only reads there.
func buffers(h *header) {
	docs := map[string]comment{}
	for _, f := range h.funcs {
		docs[f.Symbol] = f.doc
	}
	for _, f := range h.table.Functions {
		for i := range f.Params {
			p := &f.Params[i]
			ct, err := symbols.ParseType(p.Type)
			in := docs[f.Symbol].params[p.Name].dir == symbols.In
			if err == nil && !in && !ct.Const && ct.Pointers == 1 && strings.HasSuffix(ct.Base, "char") && h.table.SizeOf(f.Params, i) != "" {
				p.Guess = true
				p.Dir = cmp.Or(p.Dir, symbols.Out)
			}
		}
	}
}

const whichIsRefused = ", which is refused: "

// unknown removes records that use types which are neither in the table nor lent by another
// library, and returns a refusal for each. Then it makes handles, marks buffers, and removes
// orphans.
func unknown(d *symbols.Description, h *header, declared map[string]string) (refused []symbols.Refusal) {
	t := &h.table
	lent, _ := d.StandIns() // no error: parsing has called StandIns before
	why := func(have map[string]bool, types []string) string {
		for _, ctype := range types {
			ct, err := symbols.ParseType(ctype)
			known := err == nil && (have[ct.Base] || isC(ct.Base))
			switch _, opaque := h.opaque[ct.Base]; {
			case known || opaque && ct.Pointers > 0:
			case h.bad[ct.Base] != nil:
				reason := h.bad[ct.Base].Error()
				if i := strings.LastIndex(reason, whichIsRefused); i >= 0 && strings.HasPrefix(reason, "uses ") { // keep only the last reason
					reason = reason[i+len(whichIsRefused):]
				}
				return "uses " + ct.Base + whichIsRefused + reason
			case ct.Base == "va_list":
				return "takes a va_list, which Go cannot express"
			case opaque:
				return ct.Base + ": is used by value, but no header in headers.files defines it"
			default:
				file := h.elsewhere[ct.Base]
				_, system := standIns().headers[file]
				if _, is := lent[file]; is {
					file = ""
				}
				switch {
				case system:
					return fmt.Sprintf("%s: is a type of <%s>, whose layout is unknown", ct.Base, file)
				case file != "":
					return fmt.Sprintf("%s: is declared in %s, which is not in headers.files", ct.Base, file)
				case len(d.Uses) > 0:
					return ct.Base + ": no header in headers.files declares it, nor does " + strings.Join(d.Uses, " or ") + " lend it"
				}
				return ct.Base + ": no header in headers.files declares it"
			}
		}
		return ""
	}
	gone := func(have map[string]bool, name, where string, types []string) bool {
		reason := why(have, types)
		if reason == "" {
			return false
		}
		h.bad[name] = fmt.Errorf("%s", reason)
		refused = append(refused, symbols.Refusal{Name: name, Where: where, Reason: reason})
		return true
	}
	for before := -1; before != len(refused); { // records that use a removed record are removed too
		before = len(refused)
		have := t.TypeNames()
		t.Structs = slices.DeleteFunc(t.Structs, func(s symbols.Struct) bool {
			var types []string
			for _, f := range s.Fields {
				types = append(types, f.Type)
			}
			if !gone(have, s.Name, h.where[s.Name], types) {
				return false
			}
			h.opaque[s.Name] = cmp.Or(s.Tag, s.Name)
			return true
		})
		t.Callbacks = slices.DeleteFunc(t.Callbacks, func(c symbols.Callback) bool {
			return gone(have, c.Name, h.where[c.Name], append([]string{c.Result}, paramTypes(c.Params)...))
		})
		t.Aliases = slices.DeleteFunc(t.Aliases, func(a symbols.Alias) bool { return gone(have, a.Name, h.where[a.Name], []string{a.Type}) })
		t.Functions = slices.DeleteFunc(t.Functions, func(f symbols.Function) bool {
			return gone(have, f.Symbol, declared[f.Symbol], append([]string{f.Result}, paramTypes(f.Params)...))
		})
	}
	handles(t, h.opaque)
	buffers(h)
	orphans(t)
	return refused
}

// orphans removes the records of unnamed types whose outer record was removed. Such a type is
// declared in place, for a member or parameter, and is named OUTER.NAME.
func orphans(t *symbols.Table) {
	have := t.TypeNames()
	for _, f := range t.Functions {
		have[f.Symbol], have[f.API] = true, true
	}
	orphan := func(name string) bool {
		i := strings.LastIndexByte(name, '.')
		return i > 0 && !have[name[:i]]
	}
	for before := -1; before != len(have); {
		before = len(have)
		t.Structs = slices.DeleteFunc(t.Structs, func(s symbols.Struct) bool { return orphan(s.Name) })
		t.Callbacks = slices.DeleteFunc(t.Callbacks, func(c symbols.Callback) bool { return orphan(c.Name) })
		t.Enums = slices.DeleteFunc(t.Enums, func(e symbols.Enum) bool { return orphan(e.Name) })
		t.Aliases = slices.DeleteFunc(t.Aliases, func(a symbols.Alias) bool { return orphan(a.Name) })
		for name := range have {
			if orphan(name) {
				delete(have, name)
			}
		}
	}
}

func paramTypes(params []symbols.Param) (out []string) {
	for _, p := range params {
		out = append(out, p.Type)
	}
	return out
}

func isC(name string) bool {
	_, _, ok := symbols.Builtin(name)
	return ok
}
