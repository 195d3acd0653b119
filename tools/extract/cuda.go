package main

import (
	"cmp"
	"fmt"
	"io/fs"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/puregpu/puregpu/symbols"
)

// cudaTable reads cuda.h and cudaTypedefs.h of one toolkit.
//
// cuda.h is read twice. With __CUDA_API_VERSION_INTERNAL it declares every ABI of every function, old ones and
// per-thread-stream twins included; without, its macros tell which ABI a plain name means. cudaTypedefs.h has one
// function type for every ABI, PFN_name_vNNNNN, whose number is the release that brought it.
func cudaTable(files fs.FS) (*symbols.Table, error) {
	keep := func(file string) bool { return file == "cuda.h" || file == "cudaTypedefs.h" }
	every, err := parse(source{main: "cudaTypedefs.h", files: files, keep: keep, defines: "#define __CUDA_API_VERSION_INTERNAL 1\n"})
	if err != nil {
		return nil, err
	}
	plain, err := parse(source{main: "cuda.h", files: files, keep: keep})
	if err != nil {
		return nil, err
	}
	t := &every.table
	version, err := cudaVersion(t)
	if err != nil {
		return nil, err
	}
	t.Library, t.Version = "cuda", version
	t.Headers, err = hashes(files, version, "cuda.h", "cudaTypedefs.h")
	if err != nil {
		return nil, err
	}
	abis, callbacks, err := splitPFN(t.Callbacks)
	if err != nil {
		return nil, err
	}
	t.Callbacks = callbacks
	t.Functions, err = pair(every, plain, abis)
	if err != nil {
		return nil, err
	}
	typeConstants(t, plain.alias)
	return t, nil
}

func cudaVersion(t *symbols.Table) (symbols.Version, error) {
	for _, c := range t.Constants {
		if c.Name == "CUDA_VERSION" {
			n, err := strconv.Atoi(c.Value)
			return decodeCUDA(n), err
		}
	}
	return symbols.Version{}, fmt.Errorf("cuda.h: CUDA_VERSION is not defined")
}

// decodeCUDA reads 1000*major + 10*minor.
func decodeCUDA(n int) symbols.Version { return symbols.Version{Major: n / 1000, Minor: n % 1000 / 10} }

// An abi is one PFN type: an ABI of an API and the release that brought it.
type abi struct {
	since  int
	params []symbols.Param
	result string
}

var pfn = regexp.MustCompile(`^PFN_(cu\w+?)_v(\d+)(_ptds|_ptsz)?$`)

// splitPFN sorts the function types into ABIs by API, oldest first, and true callbacks.
func splitPFN(all []symbols.Callback) (map[string][]abi, []symbols.Callback, error) {
	abis := map[string][]abi{}
	callbacks := []symbols.Callback{}
	for _, c := range all {
		if !strings.HasPrefix(c.Name, "PFN_") {
			callbacks = append(callbacks, c)
			continue
		}
		m := pfn.FindStringSubmatch(c.Name)
		if m == nil {
			return nil, nil, fmt.Errorf("cudaTypedefs.h: %s: not of the form PFN_name_vNNNNN", c.Name)
		}
		if m[3] != "" {
			continue // the per-thread-stream twin of the same ABI
		}
		since, err := strconv.Atoi(m[2])
		if err != nil {
			return nil, nil, fmt.Errorf("cudaTypedefs.h: %s: %w", c.Name, err)
		}
		abis[m[1]] = append(abis[m[1]], abi{since, c.Params, c.Result})
	}
	for _, a := range abis {
		slices.SortFunc(a, func(x, y abi) int { return cmp.Compare(x.since, y.since) })
	}
	return abis, callbacks, nil
}

// pair joins the ABIs of each API, oldest first, with its exported names in the order plain, _v2, _v3, and so on, and
// checks that both headers agree on every signature.
func pair(every, plain *header, abis map[string][]abi) ([]symbols.Function, error) {
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
		current[f.Symbol] = true // the macros have been applied: this is what a program calls
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
		names := exported(api, declared)
		if len(names) != len(abis[api]) {
			return nil, fmt.Errorf("%s: cudaTypedefs.h knows %d ABIs and cuda.h exports %v", api, len(abis[api]), names)
		}
		var docs function
		for i := len(names) - 1; i >= 0; i-- { // the newest documented ABI speaks for its elders
			if f, ok := newest[names[i]]; ok {
				docs = f
				break
			}
		}
		for i, symbol := range names {
			a := abis[api][i]
			f, ok := declared[symbol]
			twins := []string{}
			for _, suffix := range []string{"_ptds", "_ptsz"} {
				if twin, is := declared[symbol+suffix]; is {
					twins, used[symbol+suffix] = append(twins, symbol+suffix), true
					if !ok {
						f, ok = twin, true
					}
				}
			}
			if !ok {
				return nil, fmt.Errorf("%s: cuda.h does not declare it", symbol)
			}
			if err := sameShape(f.Params, a.params, aliasesOf(&every.table)); err != nil {
				return nil, fmt.Errorf("%s since %d: cuda.h and cudaTypedefs.h differ: %w", symbol, a.since, err)
			}
			g := f.Function
			g.Symbol, g.API, g.Since, g.Twins = symbol, api, decodeCUDA(a.since), nil
			if len(twins) > 0 {
				g.Twins = twins
			}
			g.Current = current[symbol] && (symbol == api || !current[api]) // cuCtxGetDevice_v2 is a name beside the plain one
			g.Deprecated = docs.Deprecated
			g.Params = slices.Clone(f.Params)
			applyFacts(g.Params, docs.doc)
			out = append(out, g)
			used[symbol] = true
		}
	}
	for _, symbol := range slices.Sorted(maps.Keys(declared)) {
		if !used[symbol] {
			return nil, fmt.Errorf("%s: declared in cuda.h, but cudaTypedefs.h does not know it", symbol)
		}
	}
	return out, nil
}

// exported lists the names of an API's ABIs that the header declares, oldest first.
func exported(api string, declared map[string]function) []string {
	has := func(name string) bool {
		_, a := declared[name]
		_, b := declared[name+"_ptds"]
		_, c := declared[name+"_ptsz"]
		return a || b || c
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

// sameShape compares two parameter lists by their types, aliases resolved.
func sameShape(a, b []symbols.Param, alias map[string]string) error {
	if len(a) != len(b) {
		return fmt.Errorf("%d and %d parameters", len(a), len(b))
	}
	for i := range a {
		x, y := resolve(a[i].Type, alias), resolve(b[i].Type, alias)
		if x != y {
			return fmt.Errorf("parameter %s is %s and %s", a[i].Name, x, y)
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

// applyFacts takes directions and the like from the documentation; where it is silent, the type decides.
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
		case !ok && base != "void" && !strings.HasSuffix(base, "char"):
			p.Dir = symbols.Out // a pointer to a number or a handle that nothing is said of
		}
		if p.Dir == symbols.In {
			p.Dir = ""
		}
	}
}

// countable reports whether a value of the type, or what it points to, is a number that can have a unit.
func countable(ctype string) bool {
	t, err := symbols.ParseType(ctype)
	if err != nil || t.Pointers > 1 || t.Base == "void" || strings.HasSuffix(t.Base, "char") {
		return false
	}
	_, _, builtin := symbols.Builtin(t.Base)
	return builtin || strings.HasPrefix(t.Base, "cuuint")
}

// typeConstants gives a macro that stands for an enumerator that enumerator's type.
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
