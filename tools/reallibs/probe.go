package main

import (
	"debug/elf"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/puregpu/puregpu/gen"
	"github.com/puregpu/puregpu/runtime/dl"
	"github.com/puregpu/puregpu/symbols"
)

// facts are the findings about a library's file.
type facts struct {
	Version  dl.Version // version that the library reports
	Exports  []string   // exported functions of the API, sorted
	TooOld   string     // the error of Open if it refuses the library
	Bound    int        // number of functions of the API that the package binds
	Resolved []string   // functions that resolved
	Refused  []string   // functions that the file exports and the package refuses to call
	Absent   int        // number of functions that neither resolved nor were refused
	Notes    []string   // differences between since-versions and the file
	Wrong    []string   // errors
}

// probe opens a file as a library and compares the resolved functions with the file's exports. It
// calls missing functions and checks their errors.
func probe(lib *library, path string) (*facts, error) {
	table, err := symbols.Load(lib.pkg)
	if err != nil {
		return nil, err
	}
	functions, err := gen.Functions(lib.pkg)
	if err != nil {
		return nil, err
	}
	f := new(facts)
	if f.Exports, err = exports(path, table); err != nil {
		return nil, err
	}
	exported := func(name string) bool { _, ok := slices.BinarySearch(f.Exports, name); return ok }
	f.Bound = len(table.Funcs)
	l, err := lib.open(dl.Options{Path: path})
	if old, ok := errors.AsType[*dl.TooOldError](err); ok {
		f.TooOld, f.Version = err.Error(), old.Found
		f.checkTooOld(lib, table, old, exported)
		return f, nil
	}
	if err != nil {
		return nil, err
	}
	f.Version = l.Version()
	missing := map[string]dl.MissingSymbol{}
	for _, m := range l.Missing() {
		missing[m.Name] = m
	}
	for _, fn := range table.Funcs {
		m, lacks := missing[fn.Symbol]
		if lacks == l.HasSymbol(fn.Symbol) {
			f.wrong("HasSymbol(%s) is %v, and Missing does not agree", fn.Symbol, !lacks)
		}
		switch has := exported(fn.Symbol); {
		case has && !lacks:
			f.Resolved = append(f.Resolved, fn.Symbol)
		case has && m.Why != "" && m.Why != "undefined symbol":
			f.Refused = append(f.Refused, fn.Symbol)
		case has:
			f.wrong("%s is exported and did not resolve: %q", fn.Symbol, m.Why)
		case !lacks:
			f.wrong("%s resolved, and the file does not export it", fn.Symbol)
		default:
			f.Absent++
		}
		f.compareSince(lib, &table.Description.Version, &fn, exported(fn.Symbol))
		if lacks {
			f.checkMissing(lib, l, table, &fn, m, functions[fn.Symbol].Method, exported(fn.Symbol))
		}
	}
	return f, nil
}

func (f *facts) wrong(format string, args ...any) {
	f.Wrong = append(f.Wrong, fmt.Sprintf(format, args...))
}

// compareSince notes differences between a since-version and the file.
func (f *facts) compareSince(lib *library, numbers *symbols.Numbering, fn *symbols.Func, exported bool) {
	since := dl.Version(numbers.Encode(fn.Since))
	switch {
	case f.Version == 0 || fn.Lib != lib.lib && fn.Lib != "":
	case exported && since > f.Version:
		f.Notes = append(f.Notes, fmt.Sprintf("%s is there early: the table has it since %s", fn.Symbol, fn.Since))
	case !exported && since <= f.Version && fn.Until.IsZero():
		f.Notes = append(f.Notes, fmt.Sprintf("%s is not there: the table has it since %s", fn.Symbol, fn.Since))
	}
}

// checkTooOld checks the error of a library that is too old.
func (f *facts) checkTooOld(lib *library, table *symbols.Library, old *dl.TooOldError, exported func(string) bool) {
	if !errors.Is(old, dl.ErrTooOld) || old.Package != lib.pkg || old.Path == "" || old.Floor == 0 {
		f.wrong("the error of Open is %#v", old)
	}
	if len(old.Missing) == 0 && (old.Found == 0 || old.Found >= old.Floor) {
		f.wrong("%s is refused, is not below the floor, and lacks nothing: %v", lib.format(old.Found), old)
	}
	for _, m := range old.Missing {
		if exported(m.Name) || m.Set != table.Sets[0].Name {
			f.wrong("the error of Open names %s of set %s, which the file exports or which is not required", m.Name, m.Set)
		}
	}
	if want := lib.format(old.Floor); !strings.Contains(old.Error(), "the oldest version supported is "+want) {
		f.wrong("the error of Open does not tell the oldest version, %s: %v", want, old)
	}
}

// checkMissing calls a function that counts as missing, and checks its error. If the file exports
// the function, the function must not be called.
func (f *facts) checkMissing(lib *library, l opened, table *symbols.Library, fn *symbols.Func, m dl.MissingSymbol, method string, exported bool) {
	v := reflect.ValueOf(l).MethodByName(method)
	if !v.IsValid() {
		f.wrong("%s has no method %s", fn.Symbol, method)
		return
	}
	args := make([]reflect.Value, v.Type().NumIn())
	for i := range args {
		args[i] = reflect.Zero(v.Type().In(i))
	}
	results := v.Call(args)
	err, _ := results[len(results)-1].Interface().(error)
	e, ok := errors.AsType[*dl.SymbolError](err)
	if !ok || !errors.Is(err, dl.ErrSymbol) {
		f.wrong("%s is missing, and calling it gives %v", fn.Symbol, err)
		return
	}
	symbol := fn.Symbol
	if e.Symbol == symbol+"Size" { // the method asks that function first
		symbol = e.Symbol
	}
	set := table.Sets[fn.Set].Name
	if e.Package != lib.pkg || e.Symbol != symbol || e.Set != set || e.Since != m.Since || e.Found != f.Version || !strings.HasPrefix(e.Why, m.Why) || m.Set != set {
		f.wrong("%s is missing, and its error is %+v", fn.Symbol, *e)
	}
	what := " is missing"
	if exported {
		what = " cannot be called"
	}
	for _, want := range []string{symbol + what, "set " + set, "since " + fn.Since.String(), "found "} {
		if !strings.Contains(e.Error(), want) {
			f.wrong("the error of %s has no %q: %v", fn.Symbol, want, e)
		}
	}
}

// exports returns the functions of a library's API that a file exports: the functions in the table,
// and others whose names begin like the API's.
func exports(path string, table *symbols.Library) ([]string, error) {
	file, err := elf.Open(path)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	all, err := file.DynamicSymbols()
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	bound := map[string]bool{}
	for _, fn := range table.Functions {
		bound[fn.Symbol] = true
	}
	var names []string
	for _, s := range all {
		if s.Section == elf.SHN_UNDEF || s.Name == "" {
			continue
		}
		ofAPI := slices.ContainsFunc(table.Description.Prefixes.Functions, func(p string) bool { return strings.HasPrefix(s.Name, p) })
		if bound[s.Name] || ofAPI && elf.ST_TYPE(s.Info) == elf.STT_FUNC {
			names = append(names, s.Name)
		}
	}
	slices.Sort(names)
	return slices.Compact(names), nil
}
