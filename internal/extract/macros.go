package extract

import (
	"fmt"
	"maps"
	"math"
	"path"
	"slices"
	"strconv"
	"strings"

	"modernc.org/cc/v4"

	"github.com/puregpu/puregpu/symbols"
)

// macros records object-like macros: names given for other names, and constants.
func (w *walker) macros(ast *cc.AST) {
	names := slices.Sorted(maps.Keys(ast.Macros))
	slices.SortStableFunc(names, func(a, b string) int { // source order, since a map has none
		pa, pb := ast.Macros[a].Position(), ast.Macros[b].Position()
		if pa.Filename != pb.Filename {
			return strings.Compare(pa.Filename, pb.Filename)
		}
		return pa.Line - pb.Line
	})
	for _, name := range names {
		m := ast.Macros[name]
		if m.IsFnLike || !w.keep(path.Clean(m.Position().Filename)) || strings.HasPrefix(name, "_") {
			continue
		}
		text := ""
		for _, t := range m.ReplacementList() {
			text += t.SrcStr()
		}
		text = strings.TrimSpace(text)
		if isIdentifier(text) {
			w.out.alias[name] = text
			if _, ok := integer(m.Value()); !ok {
				continue
			}
		}
		at := m.Position()
		if w.lay.odd && measuresMacro(ast, m, 0) {
			w.refuse(at, name, fmt.Errorf("depends on the size of a type, and there are types that the C front end lays out wrongly"))
			continue
		}
		if v, ok := m.Value().(cc.Float64Value); ok && (math.IsInf(float64(v), 0) || math.IsNaN(float64(v))) {
			w.refuse(at, name, fmt.Errorf("is no finite number, as a constant of Go must be"))
			continue
		}
		c := symbols.Constant{Name: name}
		switch v := m.Value().(type) {
		case cc.Int64Value:
			c.Type, c.Value = "int", strconv.FormatInt(int64(v), 10)
		case cc.UInt64Value:
			c.Type, c.Value = "uint", strconv.FormatUint(uint64(v), 10)
			if m.Type() != nil && m.Type().Kind() == cc.Ptr {
				c.Type = "pointer"
			}
		case cc.Float64Value:
			c.Type, c.Value = "float", strconv.FormatFloat(float64(v), 'g', -1, 64)
		case cc.StringValue:
			c.Type, c.Value = "string", strings.TrimRight(string(v), "\x00")
		default:
			n, ok := castToPointer(text)
			if !ok {
				continue
			}
			c.Type, c.Value = "pointer", n
		}
		n, _ := integer(m.Value())
		tokens := expanded(ast, m, 0)
		err := w.enums.check(tokens, n, nil)
		for _, t := range tokens {
			if _, enumerator := w.enums.values[t]; err == nil && w.lay.bad[t] != nil && !enumerator {
				err = fmt.Errorf("uses %s, which is refused", t)
			}
			if err == nil && (w.enums.others[t] || t == "struct" || t == "union") && !slices.Contains(tokens, "sizeof") && !slices.Contains(tokens, "*") {
				err = fmt.Errorf("converts to %s, which no constant can be", t)
			}
		}
		if err != nil {
			w.refuse(at, name, err)
			continue
		}
		w.out.table.Constants = append(w.out.table.Constants, c)
	}
}

// measuresMacro reports whether a macro takes the size of a type, itself or by another macro.
func measuresMacro(ast *cc.AST, m *cc.Macro, depth int) bool {
	for _, t := range m.ReplacementList() {
		switch s := t.SrcStr(); {
		case s == "sizeof" || s == "_Alignof" || strings.HasPrefix(s, "__alignof") || s == "offsetof":
			return true
		case depth < 16 && ast.Macros[s] != nil && measuresMacro(ast, ast.Macros[s], depth+1):
			return true
		}
	}
	return false
}

// castToPointer reads ((CUstream)0x1) and ((void*)0x00): an address that is a constant, which C's constant
// expressions do not cover.
func castToPointer(text string) (string, bool) {
	text = strings.Trim(text, "()")
	_, n, ok := strings.Cut(text, ")")
	if !ok {
		return "", false
	}
	v, err := strconv.ParseUint(strings.Trim(n, "() "), 0, 64)
	if err != nil {
		return "", false
	}
	return strconv.FormatUint(v, 10), true
}

func isIdentifier(s string) bool {
	for i, r := range s {
		if !(r == '_' || r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || i > 0 && r >= '0' && r <= '9') {
			return false
		}
	}
	return s != ""
}
