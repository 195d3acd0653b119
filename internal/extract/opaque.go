package extract

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/puregpu/puregpu/symbols"
)

// handles makes handles of structs without a definition that the table knows only behind a pointer, as in
//
//	typedef struct tree tree;
//	tree *treeNew(void);
//
// The handle has the struct's name, and stands for the pointer: treeNew returns a tree.
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
				p.Dir, p.Null, p.Guess = "", false, false // of the pointer that is now the handle itself
			}
		}
	}
	for _, name := range slices.Sorted(maps.Keys(made)) {
		t.Handles = append(t.Handles, symbols.Handle{Name: name, Tag: opaque[name]})
	}
}

// unknown removes the functions that have types which are neither in the table nor lent, and returns an error for each. What else has such
// a type is for the check of the table to say.
func unknown(d *symbols.Description, t *symbols.Table, opaque map[string]string) (errs []error) {
	have := t.TypeNames()
	t.Functions = slices.DeleteFunc(t.Functions, func(f symbols.Function) bool {
		var missing []string
		byValue := false
		for _, ctype := range append([]string{f.Result}, paramTypes(f.Params)...) {
			if ct, err := symbols.ParseType(ctype); err == nil && !have[ct.Base] && !isC(ct.Base) && !slices.Contains(missing, ct.Base) {
				missing = append(missing, ct.Base)
				byValue = byValue || opaque[ct.Base] != ""
			}
		}
		if len(missing) == 0 {
			return false
		}
		if byValue {
			errs = append(errs, fmt.Errorf("%s: %s: is by value, and no header in files defines it", f.Symbol, strings.Join(missing, ", ")))
			return true
		}
		lend := "a library that is used"
		if len(d.Uses) > 0 {
			lend = strings.Join(d.Uses, " or ")
		}
		errs = append(errs, fmt.Errorf("%s: %s: is of no header in files, nor lent by %s", f.Symbol, strings.Join(missing, ", "), lend))
		return true
	})
	return errs
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
