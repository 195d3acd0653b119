package extract

import (
	"slices"
	"strings"
)

// The C front end stores the const of a typedef in a place shared with the typedef's uses. After
//
//	typedef const char *name;
//	struct s { const name n; };
//
// the front end considers the typedef itself const. So constness of typedefs with qualifiers is
// read from the tokens.

// consts records the typedefs that are const, and the typedefs that the front end may wrongly take
// for const.
type consts struct {
	always    map[string]bool // typedefs whose own declaration makes them const
	qualified map[string]bool // typedefs with a qualifier of their own or of a typedef that they name
}

// constsOf reads the tokens of a translation unit.
func constsOf(s *stream) *consts {
	c := &consts{map[string]bool{}, map[string]bool{}}
	for _, x := range s.spans {
		if slices.Contains(s.tokens[x.first:x.last+1], "typedef") {
			c.typedef(s, x)
		}
	}
	return c
}

func isConstWord(t string) bool { return t == "const" || t == "__const" }

// besideConst reports whether const is among the specifiers around a token.
func (s *stream) besideConst(i int) bool {
	specifier := func(j int) bool {
		return j >= 0 && j < len(s.tokens) && (understood[s.tokens[j]] && s.tokens[j] != "sizeof" || isConstWord(s.tokens[j]))
	}
	for j := i - 1; specifier(j); j-- {
		if isConstWord(s.tokens[j]) {
			return true
		}
	}
	for j := i + 1; specifier(j); j++ {
		if isConstWord(s.tokens[j]) {
			return true
		}
	}
	return false
}

// typedef records which names of a typedef declaration are const themselves, and which have a
// qualifier of their own or of a typedef that the declaration uses.
func (c *consts) typedef(s *stream, x span) {
	depth, specifiers, isConst := 0, true, false // specifiers: no declarator has begun; isConst: const is among the specifiers
	pointer := false                             // the last qualifiers follow a star
	own, qualified := false, false
	for i := x.first; i <= x.last; i++ {
		switch t := s.tokens[i]; {
		case t == "{":
			if i = s.group(i) - 1; i < 0 {
				return
			}
		case t == "(" || t == "[":
			depth++
		case t == ")" || t == "]":
			depth--
		case t == "*":
			specifiers, pointer, own = false, true, false
		case t == ",":
			if depth == 0 {
				pointer, own = false, false
			}
		case strings.Contains(t, "restrict") || isAlignas(t):
			qualified = true
		case isConstWord(t):
			qualified = true
			isConst, own = isConst || specifiers, own || pointer
		case isIdentifier(t) && c.qualified[t] && specifiers && s.tokens[i+1] != ";" && s.tokens[i+1] != ",":
			isConst, qualified = isConst || c.always[t], true
		case isIdentifier(t) && !understood[t] && depth <= 1 && (s.tokens[i+1] == ";" || s.tokens[i+1] == "," || s.tokens[i+1] == "[" || s.tokens[i+1] == "(" || s.tokens[i+1] == ")"):
			if pointer && own || !pointer && isConst {
				c.always[t] = true
			}
			c.qualified[t] = c.qualified[t] || qualified
			specifiers = false
		}
	}
}

// isConst reports whether a typedef is const where a declaration uses it. The parameter told is the
// front end's answer. The result known is false if the declaration uses the typedef both with const
// and without.
func (c *consts) isConst(s *stream, x span, name string, told bool) (yes, known bool) {
	if !told || c.always[name] || !c.qualified[name] {
		return told, true
	}
	some, all := false, true
	for i := x.first; i <= x.last; i++ {
		if s.tokens[i] == name {
			beside := s.besideConst(i)
			some, all = some || beside, all && beside
		}
	}
	return some, some == all
}
