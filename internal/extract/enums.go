package extract

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"modernc.org/cc/v4"
)

// The C front end gives enumerators types that are not always those of C:
//
//   - An enumerator without an expression has 64 bits inside its own enumeration. In C it is an
//     int.
//   - If one value of an enumeration is not an int, all its enumerators have a wider type. In C
//     before C23, values that fit are ints.
//   - An enumeration is an int. In C it is unsigned if it has no negative value.
//
// So an expression with such an enumerator, or a conversion to an enumeration, is accepted only if
// the front end's types and those of C give the same value.

// An enumeratorSet holds the enumerators and the type names of a translation unit.
type enumeratorSet struct {
	values map[string]enumerator
	types  map[string]bool  // names of enumerations
	ints   map[string]bool  // enumerations whose values are all ints, so that they have 4 bytes
	over   map[*body]string // by enumeration: an enumerator without an expression that follows an enumerator of math.MaxInt64 or more
	others map[string]bool  // typedefs of structs, unions, arrays and functions
	packed bool             // some enumeration has an attribute that may make it smaller than an int
}

type enumerator struct {
	in    *body
	value int64
	wide  bool // some value of its enumeration is not an int
	bad   bool // its declaration is refused
}

// enumeratorsOf finds the enumerators of a translation unit.
func enumeratorsOf(ast *cc.AST, s *stream) *enumeratorSet {
	e := &enumeratorSet{values: map[string]enumerator{}, types: map[string]bool{}, ints: map[string]bool{}, others: map[string]bool{}, over: map[*body]string{}}
	for _, b := range s.bodies {
		if b.kind != "enum" {
			continue
		}
		e.packed = e.packed || len(b.attrs) > 0
		var names []string
		wide, top := false, false // top: the value before may be math.MaxInt64 or more
		for i := b.open + 1; i < b.close; i++ {
			switch t := s.tokens[i]; {
			case t == "(" || t == "[" || t == "{":
				if i = s.group(i) - 1; i < 0 {
					i = b.close
				}
			case (s.tokens[i-1] == "," || i == b.open+1) && isIdentifier(t):
				x := enumerator{in: b}
				known := false
				for _, n := range ast.Scope.Nodes[t] {
					if n, ok := n.(*cc.Enumerator); ok {
						x.value, known = integer(n.Value())
						_, big := n.Value().(cc.UInt64Value)
						known = known && !(big && x.value < 0)
					}
				}
				if top && (s.tokens[i+1] == "," || s.tokens[i+1] == "}") {
					e.over[b] = t
				}
				top = !known || x.value == math.MaxInt64
				wide = wide || !known || x.value != int64(int32(x.value))
				e.values[t] = x
				names = append(names, t)
			}
		}
		for _, name := range names {
			x := e.values[name]
			x.wide = wide
			e.values[name] = x
		}
	}
	for name, nodes := range ast.Scope.Nodes {
		for _, n := range nodes {
			if d, ok := n.(*cc.Declarator); ok && d.IsTypename() {
				switch d.Type().Kind() {
				case cc.Enum:
					e.types[name] = true
					e.ints[name] = hasInts(d.Type())
				case cc.Struct, cc.Union, cc.Array, cc.Function:
					e.others[name] = true
				}
			}
		}
	}
	return e
}

// hasInts reports whether t is an enumeration whose values all fit in an int.
func hasInts(t cc.Type) bool {
	e, ok := t.(*cc.EnumType)
	if !ok {
		return false
	}
	for _, n := range e.Enumerators() {
		if v, known := integer(n.Value()); !known || v != int64(int32(v)) {
			return false
		}
	}
	return true
}

// withoutSizes replaces each sizeof of an enumeration of ints by a number, because the front end
// computes these sizes correctly.
func (e *enumeratorSet) withoutSizes(tokens []string) []string {
	if e.packed || !slices.Contains(tokens, "sizeof") {
		return tokens
	}
	var out []string
	for i := 0; i < len(tokens); i++ {
		if i+3 < len(tokens) && tokens[i] == "sizeof" && tokens[i+1] == "(" && e.ints[tokens[i+2]] && tokens[i+3] == ")" {
			out = append(out, "4UL")
			i += 3
			continue
		}
		out = append(out, tokens[i])
	}
	return out
}

// check returns an error if the front end may compute another value for an expression than C. The
// parameter in is the enumeration around the expression, or nil.
func (e *enumeratorSet) check(tokens []string, value int64, in *body) error {
	name, wide, negative := "", false, false
	tokens = e.withoutSizes(tokens)
	for _, t := range tokens {
		x, ok := e.values[t]
		negative = negative || x.value < 0 // the value may come from any enumeration
		switch {
		case x.bad:
			return fmt.Errorf("uses %s, which is refused", t)
		case ok && (x.wide || x.in == in):
			name, wide = t, wide || x.wide
		case t == "enum" || e.types[t]:
			name, wide = t, true
		}
	}
	if name == "" || len(tokens) == 1 {
		return nil
	}
	wrong := fmt.Errorf("computes with %s, whose type the C front end does not know", name)
	sums, bits := false, false
	for i, t := range tokens {
		switch {
		case i > 0 && tokens[i-1] == "enum": // its tag
		case t == "(" || t == ")" || t == "|" || t == "&" || t == "enum" || e.types[t]:
		case t == "+" || t == "<<":
			sums = true
		case (t == "-" || t == "~") && !wide:
			sums = true
		case t[0] >= '0' && t[0] <= '9':
			n, err := strconv.ParseUint(strings.TrimRight(t, "uUlL"), 0, 64)
			if err != nil {
				return wrong
			}
			bits = bits || n > math.MaxInt32 || strings.ContainsAny(t, "uUlL")
			if e.packed && n > math.MaxInt8 && (slices.Contains(tokens, "enum") || slices.ContainsFunc(tokens, func(t string) bool { return e.types[t] })) {
				return wrong
			}
		default:
			if _, ok := e.values[t]; !ok {
				return wrong
			}
		}
	}
	switch {
	case negative && (wide || bits), sums && bits:
		return wrong
	case sums && value != int64(int32(value)), sums && wide && value < 0:
		return wrong
	}
	return nil
}

// refuse marks the enumerators of a declaration as refused.
func (e *enumeratorSet) refuse(s *stream, in span) {
	for name, x := range e.values {
		if x.in.open >= in.first && x.in.close <= in.last {
			x.bad = true
			e.values[name] = x
		}
	}
}

// checkDeclaration checks the lengths of arrays, the widths of bit-fields and the values of
// enumerators in a declaration.
func (e *enumeratorSet) checkDeclaration(s *stream, x span) error {
	for i := x.first; i <= x.last; i++ {
		end := i
		in := s.bodyAt(i)
		switch s.tokens[i] {
		case "[":
			if end = s.group(i) - 1; end < 0 {
				return nil
			}
		case ":":
			for in != nil && in.kind != "enum" && end < in.close && s.tokens[end] != ";" && s.tokens[end] != "," {
				end++
			}
		}
		if end > i+1 {
			if err := e.check(s.tokens[i+1:end], 0, nil); err != nil {
				return err
			}
		}
	}
	for _, b := range s.bodies {
		if b.kind != "enum" || b.open < x.first || b.close > x.last {
			continue
		}
		if name := e.over[b]; name != "" {
			return fmt.Errorf("%s: has no explicit value after a value of 63 bits or more, and the C front end cannot count on from there", name)
		}
		name, first := "", 0
		for i := b.open + 1; i <= b.close; i++ {
			switch t := s.tokens[i]; {
			case t == "=" && first == 0:
				name, first = s.tokens[i-1], i+1
			case (t == "," || t == "}") && first > 0:
				if err := e.check(s.tokens[first:i], e.values[name].value, b); err != nil {
					return fmt.Errorf("%s: %w", name, err)
				}
				first = 0
			case t == "(" || t == "[" || t == "{":
				if i = s.group(i) - 1; i < 0 {
					return nil
				}
			}
		}
	}
	return nil
}

// expanded returns the tokens of a macro and of the macros in its text.
func expanded(ast *cc.AST, m *cc.Macro, depth int) (tokens []string) {
	for _, t := range m.ReplacementList() {
		s := strings.TrimSpace(t.SrcStr())
		if to := ast.Macros[s]; to != nil && depth < 16 {
			tokens = append(tokens, expanded(ast, to, depth+1)...)
		} else if s != "" {
			tokens = append(tokens, s)
		}
	}
	return tokens
}
