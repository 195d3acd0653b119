package extract

import (
	"errors"
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

// macros records the macros without parameters: one that stands for an identifier as an alternative
// name, one with a value as a constant.
func (w *walker) macros(ast *cc.AST) {
	names := slices.Sorted(maps.Keys(ast.Macros))
	slices.SortStableFunc(names, func(a, b string) int { // source order, since maps have no order
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
		if v, ok := m.Value().(cc.Float64Value); ok && (math.IsInf(float64(v), 0) || math.IsNaN(float64(v))) {
			w.refuse(at, name, fmt.Errorf("is not a finite number, as a Go constant must be"))
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
		if reason := findIn(ast, m, map[*cc.Macro]bool{}, func(token string) string { return w.noConstant(ast, token) }); reason != "" {
			w.refuse(at, name, errors.New(reason))
			continue
		}
		n, _ := integer(m.Value())
		tokens := expanded(ast, m, 0)
		err := w.enums.check(tokens, n, nil)
		for _, t := range tokens {
			if _, enumerator := w.enums.values[t]; err == nil && w.lay.bad[t] != nil && !enumerator {
				err = fmt.Errorf("uses %s, which is refused", t)
			}
			if err == nil && (w.enums.others[t] || t == "struct" || t == "union") && !slices.Contains(tokens, "sizeof") && !slices.Contains(tokens, "*") {
				err = fmt.Errorf("converts to %s, which cannot be the type of a constant", t)
			}
		}
		if err != nil {
			w.refuse(at, name, err)
			continue
		}
		w.out.table.Constants = append(w.out.table.Constants, c)
	}
}

// findIn calls the function why for each token of a macro and of the macros in its text. It returns
// the first reason that the function returns, or "".
func findIn(ast *cc.AST, m *cc.Macro, seen map[*cc.Macro]bool, why func(token string) string) string {
	seen[m] = true
	for _, t := range m.ReplacementList() {
		token := t.SrcStr()
		if reason := why(token); reason != "" {
			return reason
		}
		if to := ast.Macros[token]; to != nil && !seen[to] {
			if reason := findIn(ast, to, seen, why); reason != "" {
				return reason
			}
		}
	}
	return ""
}

// noConstant returns the reason why a macro with this token is not a constant, or "".
func (w *walker) noConstant(ast *cc.AST, token string) string {
	switch {
	case w.lay.odd && (token == "sizeof" || token == "_Alignof" || strings.HasPrefix(token, "__alignof") || token == "offsetof"):
		return "depends on the size of a type, and the C front end gets the sizes of some types in these headers wrong"
	case slices.Contains(elsewhere, token):
		return "has " + token + ", whose value depends on the place or the time of its use"
	case standIns().differs[token]:
		return "has " + token + ", which has another value on arm64"
	case w.windows && (slices.Contains(ofLong, token) || ast.Macros[token] != nil && strings.HasPrefix(path.Clean(ast.Macros[token].Position().Filename), numbersOf)):
		return "has " + token + " of the C library, which may have another value on Windows"
	}
	return ""
}

var ofLong = []string{"LONG_MIN", "LONG_MAX", "ULONG_MAX"}

// elsewhere lists predefined macros whose values depend on the place of their use or on the time.
var elsewhere = []string{"__LINE__", "__FILE__", "__FILE_NAME__", "__BASE_FILE__", "__COUNTER__", "__DATE__", "__TIME__", "__TIMESTAMP__", "__INCLUDE_LEVEL__"}

// castToPointer reads a constant address, such as ((CUstream)0x1) or ((void*)0x00), which is not a
// constant expression in C.
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
