package symbols

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// Canonical returns the ABI form of a type: aliases resolved, handles as pointers to their structs,
// without const, with array lengths. Two spellings of one type have the same canonical form.
func (t *Table) Canonical(ctype string) string {
	ct, err := t.resolve(ctype)
	if err != nil {
		return ctype
	}
	s := ct.Base + strings.Repeat("*", ct.Pointers)
	for _, n := range ct.Dims {
		s += fmt.Sprintf("[%d]", n)
	}
	return s
}

// resolve parses a type and follows its aliases and handles.
func (t *Table) resolve(ctype string) (CType, error) {
	ct, err := ParseType(ctype)
	if err != nil {
		return ct, err
	}
	for range 16 { // a chain of aliases is short
		next, handle := "", false
		for _, a := range t.Aliases {
			if a.Name == ct.Base {
				next = a.Type
			}
		}
		for _, h := range t.Handles {
			if h.Name == ct.Base && h.Tag != h.Name {
				next, handle = h.Tag+" *", true
			}
		}
		if next == "" {
			break
		}
		inner, err := ParseType(next)
		if err != nil {
			return ct, err
		}
		inner.Pointers += ct.Pointers
		inner.Dims = append(ct.Dims, inner.Dims...)
		if ct = inner; handle { // the struct's name may be a handle's, too
			ct.Const = false
			return ct, nil
		}
	}
	for _, h := range t.Handles {
		if h.Name == ct.Base && h.Tag == h.Name { // the struct has its handle's name
			ct.Pointers++
		}
	}
	ct.Const = false
	return ct, nil
}

// SameType reports whether a type of this table and a type of another table are the same to the
// ABI. Pointers of the same depth are also the same, unless both tables define their elements or one
// element is a number: a struct may be visible in one release and opaque or renamed in another.
func (t *Table) SameType(a string, other *Table, b string) bool {
	if t.Canonical(a) == other.Canonical(b) {
		return true
	}
	x, err := t.resolve(a)
	y, err2 := other.resolve(b)
	return err == nil && err2 == nil && x.Pointers > 0 && x.Pointers == y.Pointers && len(x.Dims)+len(y.Dims) == 0 && !(t.defines(x.Base) && other.defines(y.Base)) && !t.isNumber(x.Base) && !other.isNumber(y.Base)
}

// isNumber reports whether a type is a number or an enumeration.
func (t *Table) isNumber(base string) bool {
	return base != "void" && t.defines(base) && !slices.ContainsFunc(t.Structs, func(s Struct) bool { return s.Name == base })
}

// defines reports whether a type is a C built-in or has a definition in the table.
func (t *Table) defines(base string) bool {
	if isBuiltin(base) {
		return true
	}
	for _, s := range t.Structs {
		if s.Name == base {
			return true
		}
	}
	for _, e := range t.Enums {
		if e.Name == base {
			return true
		}
	}
	for _, s := range t.Scalars {
		if s.Name == base {
			return true
		}
	}
	return false
}

// SizeOf returns the name of the first parameter that may be the size of the buffer params[buffer],
// or "". Such a parameter is an integer, and it follows the buffer or has a name such as size.
func (t *Table) SizeOf(params []Param, buffer int) string {
	for i, p := range params {
		if i != buffer && (i == buffer+1 || sizeName.MatchString(p.Name)) && t.isCount(p.Type) {
			return p.Name
		}
	}
	return ""
}

var sizeName = regexp.MustCompile(`(?i)^n$|^sz|len|size|cap|count|bytes|max|num|room|limit`)

// isCount reports whether a type is an integer of 2 bytes or more.
func (t *Table) isCount(ctype string) bool {
	ct, err := t.resolve(ctype)
	if err != nil || ct.Pointers > 0 || len(ct.Dims) > 0 {
		return false
	}
	for _, s := range t.Scalars {
		if s.Name == ct.Base {
			ct.Base = s.Type
		}
	}
	size, _, ok := Builtin(ct.Base)
	return ok && size > 1 && !isFloat(ct.Base)
}
