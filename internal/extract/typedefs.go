package extract

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/puregpu/puregpu/symbols"
)

// readTypedefs reads the headers of a library that has a header of function types, such as CUDA's
// cudaTypedefs.h. That header declares a type for every ABI version of every function. The type has
// the name PFN_name_vNNNNN. The number is the release that added the version.
//
// readTypedefs reads the headers twice: with the macro that the description names, and without it.
// With the macro they declare every ABI version of every function, including old ones and twins.
// Without the macro they show which version a plain name selects.
func readTypedefs(d *symbols.Description, files fs.FS) (*header, error) {
	h := &d.Headers
	s, err := sourceOf(d, files)
	if err != nil {
		return nil, err
	}
	_, err = fs.Stat(files, h.Typedefs.Header)
	untyped := errors.Is(err, fs.ErrNotExist)
	if s.main = h.Typedefs.Header; untyped {
		s.main = h.Files[0]
	}
	s.defines += "#define " + h.Typedefs.Define + " 1\n"
	every, err := parse(s)
	if err != nil {
		return nil, err
	}
	if s, err = sourceOf(d, files); err != nil {
		return nil, err
	}
	s.main = h.Files[0]
	plain, err := parse(s)
	if err != nil {
		return nil, err
	}
	if untyped {
		every.table.Functions = untypedABIs(h.Typedefs, every, plain)
		every.alias = plain.alias
		return every, nil
	}
	p := pairing{d: d, types: h.Typedefs, main: h.Files[0]}
	abis, callbacks, err := p.split(every.table.Callbacks)
	if err != nil {
		return nil, err
	}
	every.table.Callbacks = callbacks
	every.table.Functions, err = p.join(every, plain, abis)
	every.alias = plain.alias
	return every, err
}

// untypedABIs returns the functions of a release without a header of function types, such as CUDA
// 11.2. The functions have no since-versions. They get the since-versions of the newer release to
// whose table they are added.
func untypedABIs(types *symbols.Typedefs, every, plain *header) []symbols.Function {
	current := map[string]comment{}
	for _, f := range plain.funcs {
		current[f.Symbol] = f.doc
	}
	var out []symbols.Function
	declared := functions(every, nil)
	known := map[string]bool{}
	for _, f := range declared {
		known[f.Symbol] = true
	}
	for _, f := range declared {
		if slices.ContainsFunc(types.Twins, func(suffix string) bool {
			name, is := strings.CutSuffix(f.Symbol, suffix)
			return is && known[name]
		}) {
			continue
		}
		f.API = abiSuffix.ReplaceAllString(f.Symbol, "")
		doc, is := current[f.Symbol]
		f.Current = is
		if is {
			applyFacts(f.Params, doc)
		}
		out = append(out, f)
	}
	return out
}

// A pairing matches the ABI versions of functions with a header of function types.
type pairing struct {
	d     *symbols.Description
	types *symbols.Typedefs
	main  string // header with the functions themselves
}

// An abi is one PFN type: an ABI version of an API and the release that added it.
type abi struct {
	since  int
	params []symbols.Param
	result string
}

// split sorts the function types into ABI versions by API, oldest first, and true callbacks.
func (p *pairing) split(all []symbols.Callback) (map[string][]abi, []symbols.Callback, error) {
	twins := "$^" // matches nothing
	if len(p.types.Twins) > 0 {
		twins = strings.Join(p.types.Twins, "|")
	}
	named := regexp.MustCompile("^" + p.types.Prefix + `(\w+?)_v(\d+)(` + twins + `)?$`)
	abis := map[string][]abi{}
	callbacks := []symbols.Callback{}
	for _, c := range all {
		if !strings.HasPrefix(c.Name, p.types.Prefix) {
			callbacks = append(callbacks, c)
			continue
		}
		m := named.FindStringSubmatch(c.Name)
		if m == nil {
			return nil, nil, fmt.Errorf("%s: %s: not of the form %sname_vNNNNN", p.types.Header, c.Name, p.types.Prefix)
		}
		if m[3] != "" {
			continue // a twin, which is another export of the same version
		}
		since, err := strconv.Atoi(m[2])
		if err != nil {
			return nil, nil, fmt.Errorf("%s: %s: %w", p.types.Header, c.Name, err)
		}
		abis[m[1]] = append(abis[m[1]], abi{since, c.Params, c.Result})
	}
	for _, a := range abis {
		slices.SortFunc(a, func(x, y abi) int { return cmp.Compare(x.since, y.since) })
	}
	return abis, callbacks, nil
}

// join assigns the ABI versions of each API, oldest first, to its exported names in the order
// plain, _v2, _v3, and so on. It checks that the header of the functions and the header of function
// types agree on every signature.
func (p *pairing) join(every, plain *header, abis map[string][]abi) ([]symbols.Function, error) {
	declared := map[string]function{}
	for _, f := range every.funcs {
		if _, twice := declared[f.Symbol]; !twice {
			declared[f.Symbol] = f
		}
	}
	newest := map[string]function{} // by exported name, with the documentation
	for _, f := range plain.funcs {
		newest[f.Symbol] = f
	}
	current := map[string]bool{}
	for _, f := range plain.funcs {
		current[f.Symbol] = true // the preprocessor has applied macros, so f is the function that programs call
	}
	var out []symbols.Function
	used := map[string]bool{}
	order := map[string]int{}
	for i, f := range plain.funcs {
		api := baseName(f.Symbol, abis)
		if _, ok := order[api]; !ok {
			order[api] = i
		}
	}
	apis := slices.Sorted(maps.Keys(abis))
	slices.SortStableFunc(apis, func(a, b string) int {
		ia, oka := order[a]
		ib, okb := order[b]
		if oka != okb {
			return map[bool]int{true: -1, false: 1}[oka]
		}
		return cmp.Compare(ia, ib)
	})
	for _, api := range apis {
		names := p.exported(api, declared)
		if len(names) != len(abis[api]) {
			return nil, fmt.Errorf("%s: %s has the types of %d ABI versions, but %s declares %v: both headers must be of one release", api, p.types.Header, len(abis[api]), p.main, names)
		}
		var docs function
		for i := len(names) - 1; i >= 0; i-- { // the newest version's documentation applies to older ones
			if f, ok := newest[names[i]]; ok {
				docs = f
				break
			}
		}
		for i, symbol := range names {
			a := abis[api][i]
			f, ok := declared[symbol]
			twins := []string{}
			for _, suffix := range p.types.Twins {
				if twin, is := declared[symbol+suffix]; is {
					twins, used[symbol+suffix] = append(twins, symbol+suffix), true
					if !ok {
						f, ok = twin, true
					}
				}
			}
			if !ok {
				return nil, fmt.Errorf("%s: %s has a type for this function, but %s does not declare it: both headers must be of one release", symbol, p.types.Header, p.main)
			}
			if err := sameShape(f.Params, a.params, aliasesOf(&every.table)); err != nil {
				return nil, fmt.Errorf("%s since %d: %s and %s declare it differently: %w", symbol, a.since, p.main, p.types.Header, err)
			}
			g := f.Function
			g.Symbol, g.API, g.Since, g.Twins = symbol, api, p.d.Version.Decode(a.since), nil
			if len(twins) > 0 {
				g.Twins = twins
			}
			g.Current = symbol == meant(api, names, plain.alias, current)
			g.Deprecated = docs.Deprecated
			g.Params = slices.Clone(f.Params)
			applyFacts(g.Params, docs.doc)
			out = append(out, g)
			used[symbol] = true
		}
	}
	for _, symbol := range slices.Sorted(maps.Keys(declared)) {
		if !used[symbol] {
			return nil, fmt.Errorf("%s: declared in %s, but %s has no type for it: both headers must be of one release", symbol, p.main, p.types.Header)
		}
	}
	return out, nil
}

// meant returns the exported name that an API's plain name selects: the target of a header's macro,
// or the name itself if the map current has it, or else the newest name in the map, or "". In CUDA
// 12.4 cuCtxCreate_v3 exists, but a macro maps cuCtxCreate to cuCtxCreate_v2.
func meant(api string, names []string, alias map[string]string, current map[string]bool) string {
	if to := alias[api]; slices.Contains(names, to) {
		return to
	}
	if current[api] {
		return api
	}
	for _, name := range slices.Backward(names) {
		if current[name] {
			return name
		}
	}
	return ""
}

// exported lists the names of an API's ABI versions that the header declares, oldest first.
func (p *pairing) exported(api string, declared map[string]function) []string {
	has := func(name string) bool {
		_, ok := declared[name]
		return ok || slices.ContainsFunc(p.types.Twins, func(suffix string) bool { _, ok := declared[name+suffix]; return ok })
	}
	var names []string
	if has(api) {
		names = append(names, api)
	}
	for v := 2; v < 20; v++ {
		if name := api + "_v" + strconv.Itoa(v); has(name) {
			names = append(names, name)
		}
	}
	return names
}

func baseName(symbol string, abis map[string][]abi) string {
	if _, ok := abis[symbol]; ok {
		return symbol
	}
	if i := strings.LastIndex(symbol, "_v"); i > 0 {
		return symbol[:i]
	}
	return symbol
}

func aliasesOf(t *symbols.Table) map[string]string {
	m := map[string]string{}
	for _, a := range t.Aliases {
		m[a.Name] = a.Type
	}
	return m
}

// sameShape compares the types of two parameter lists, with aliases resolved.
func sameShape(a, b []symbols.Param, alias map[string]string) error {
	if len(a) != len(b) {
		return fmt.Errorf("with %d and %d parameters", len(a), len(b))
	}
	for i := range a {
		x, y := resolve(a[i].Type, alias), resolve(b[i].Type, alias)
		if x != y {
			return fmt.Errorf("parameter %s is %s in the first and %s in the second", a[i].Name, x, y)
		}
	}
	return nil
}

var word = regexp.MustCompile(`\w+`)

func resolve(t string, alias map[string]string) string {
	full := word.ReplaceAllStringFunc(t, func(w string) string {
		for range 8 {
			next, ok := alias[w]
			if !ok {
				return w
			}
			w = next
		}
		return w
	})
	return strings.ReplaceAll(full, "* *", "**")
}

// applyFacts sets units, directions, and which pointers may be null, from the documentation. A
// const T * or void * never gets a direction. Another pointer gets the documented direction. It is
// marked as a guess if the documentation gives no direction, or describes an output as an array or
// as device memory. A pointer to char is never marked. A marked pointer that the documentation does
// not mention is taken for an output.
func applyFacts(params []symbols.Param, doc comment) {
	for i := range params {
		p := &params[i]
		f, ok := doc.params[p.Name]
		p.Null = f.null && strings.HasSuffix(p.Type, "*")
		if countable(p.Type) {
			p.Unit = f.unit
		}
		if !strings.HasSuffix(p.Type, "*") {
			continue
		}
		base := strings.TrimSpace(strings.TrimSuffix(p.Type, "*"))
		switch {
		case strings.HasPrefix(p.Type, "const ") && strings.Count(p.Type, "*") == 1:
		case p.Type == "void *":
		case ok && f.dir != "":
			p.Dir = f.dir
			p.Guess = f.many && f.dir == symbols.Out && base != "void" && !strings.HasSuffix(base, "char")
		case base != "void" && !strings.HasSuffix(base, "char"):
			p.Guess = true // the documentation does not say how the pointer is used
			if !ok {
				p.Dir = symbols.Out
			}
		}
		if p.Dir == symbols.In {
			p.Dir = ""
		}
	}
}

// countable reports whether a value of the type, or its element, is a number that can have a unit.
func countable(ctype string) bool {
	t, err := symbols.ParseType(ctype)
	if err != nil || t.Pointers > 1 || t.Base == "void" || strings.HasSuffix(t.Base, "char") {
		return false
	}
	_, _, builtin := symbols.Builtin(t.Base)
	return builtin || sizedInt.MatchString(t.Base)
}

// sizedInt matches typedefs whose names end like C's sized integers, such as cuuint64_t.
var sizedInt = regexp.MustCompile(`u?int(8|16|32|64)_t$`)

// typeConstants gives a macro that is defined as an enumerator the enumerator's type.
func typeConstants(t *symbols.Table, alias map[string]string) {
	owner := map[string]string{}
	for _, e := range t.Enums {
		for _, v := range e.Values {
			owner[v.Name] = e.Name
		}
	}
	for i, c := range t.Constants {
		if e := owner[alias[c.Name]]; e != "" {
			t.Constants[i].Type = e
		}
	}
}
