// Package extract reads the C headers of a library and makes its symbol table, following the
// library's description.
//
// It runs no compiler and reads no system headers, so that the same headers give the same table on
// every machine.
package extract

import (
	"crypto/sha256"
	"debug/elf"
	"encoding/hex"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/puregpu/puregpu/symbols"
)

// An Input holds the sources of a table.
type Input struct {
	Releases []fs.FS           // folders of headers: newest release first, or in any order with Onto
	Others   map[string]fs.FS  // folder of another implementation, by its Lib
	Library  io.ReaderAt       // shared library whose version nodes give the functions' since-versions, or nil
	Versions []symbols.Version // versions for headers that do not state theirs, one for each folder
	Spelled  bool              // sets Param.C, takes T *const *p for an input unless the documentation has another direction, and reports variables
	Report   func(string)      // receives notes that are not errors; may be nil

	// Onto is the table to which the function Table adds the releases. If Onto is nil, Table makes
	// a new table.
	Onto *symbols.Table
}

// version returns the version that Versions gives for a folder of headers, or the zero version.
func (in *Input) version(folder int) symbols.Version {
	if folder < len(in.Versions) {
		return in.Versions[folder]
	}
	return symbols.Version{}
}

// Table reads the headers of a library according to its description.
//
// A declaration that a table cannot hold, such as a variadic function, is refused, and so are the
// declarations that use it. The table omits them, and the error is of type Refused. Functions that
// the description omits are left out silently.
//
// With several releases, the newest one makes the table. Older ones add the versions at which each
// record was added and removed, and the values that differ. If in.Onto is set, all releases are
// added to it.
//
// If a library is given, the version nodes of its symbols give more exact since-versions of the
// functions that in.Onto did not have.
func Table(d *symbols.Description, in Input) (*symbols.Table, error) {
	report, flush := once(in.Report)
	in.Report = report
	defer flush()
	var refused Refused
	var all []*symbols.Table
	where := map[string]string{}                     // by symbol, the header and the line in the newest release that declares it
	unlike := map[*symbols.Table]map[string]string{} // by release, the functions that only a newer release has in a form that the table can hold, with reasons
	refuse := func(i int, t *symbols.Table, r symbols.Refusal) {
		newer := func(t *symbols.Table) bool {
			return slices.ContainsFunc(t.Functions, func(f symbols.Function) bool { return f.Symbol == r.Name })
		}
		switch {
		case i == 0 || in.Onto != nil || d.Headers.Settled:
			refused.add(r)
		case !slices.ContainsFunc(all, newer):
			r.Where += fmt.Sprintf(" of %v", t.Version)
			refused.add(r)
		case r.Reason != errInline.Error(): // the library of this release does not have an inline function
			if unlike[t] == nil {
				unlike[t] = map[string]string{}
			}
			unlike[t][r.Name] = fmt.Sprintf("its declaration is refused (%s)", r.Reason)
		}
	}
	for i, files := range in.Releases {
		h, err := readHeaders(d, files, in.version(i))
		if err != nil {
			return nil, err
		}
		t := &h.table
		t.Library = d.Library
		if n := len(all); in.Onto == nil && n > 0 && t.Version.Compare(all[n-1].Version) >= 0 {
			if t.Version == all[n-1].Version {
				return nil, fmt.Errorf("two folders have the headers of %s %v", d.Brand, t.Version)
			}
			return nil, fmt.Errorf("%s %v comes after %v: give the newest release first", d.Brand, t.Version, all[n-1].Version)
		}
		if !d.Headers.Settled {
			h.refused = append(h.refused, h.inlined...)
		}
		for _, r := range h.refused {
			if !omitted(r.name, d.Headers.Omit) {
				refuse(i, t, symbols.Refusal{Name: r.name, Where: r.where, Reason: r.err.Error()})
			}
		}
		spelled(t, in.Spelled)
		if n := len(h.variables); n > 0 && in.Spelled && i == 0 {
			list := strings.Join(h.variables[:min(n, 5)], ", ")
			if n > 5 {
				list += ", …"
			}
			in.Report(fmt.Sprintf("variables are not bound; the headers declare %d: %s", n, list))
		}
		declared := map[string]string{}
		for _, f := range h.funcs {
			declared[f.Symbol] = f.where
		}
		for _, f := range h.funcs {
			if where[f.Symbol] == "" {
				where[f.Symbol] = f.where
			}
		}
		t.Handles = append(t.Handles, d.Headers.Handles...)
		typeConstants(t, h.alias)
		versionedStructs(t)
		t.Borrow(d)
		for _, r := range unknown(d, h, declared) {
			refuse(i, t, r)
		}
		all = append(all, t)
	}
	dated := map[string]bool{}
	if in.Onto != nil {
		for _, f := range in.Onto.Functions {
			dated[f.Symbol] = true
		}
	}
	slices.SortStableFunc(all, func(a, b *symbols.Table) int { return b.Version.Compare(a.Version) }) // newest first
	u := &union{d: d, t: in.Onto, report: in.Report, onto: in.Onto != nil, settled: d.Headers.Settled, where: where}
	switch {
	case u.t == nil:
		u.t = all[0]
		u.t.Releases = []symbols.Version{u.t.Version}
		for i := range u.t.Functions {
			f := &u.t.Functions[i]
			if u.settled {
				settled(f.Params)
			}
			if !u.settled {
				f.Where = where[f.Symbol]
			}
		}
		all = all[1:]
	case len(u.t.Releases) == 0:
		u.t.Releases = []symbols.Version{u.t.Version}
	}
	for i := range u.t.Functions { // from a table of one release
		if f := &u.t.Functions[i]; f.Since.IsZero() && f.Lib == "" && d.Headers.Since == symbols.SinceReleases {
			f.Since = u.t.Releases[0]
		}
	}
	// Newer releases are added first, from the oldest to the newest, so that each is the newest at
	// that time. Then older releases are added, from the newest to the oldest.
	newest := u.t.Version
	for _, t := range slices.Backward(all) {
		if t.Version.Compare(newest) > 0 {
			u.add(t)
		}
	}
	for _, t := range all {
		if t.Version.Compare(newest) <= 0 {
			u.unlike = unlike[t]
			u.add(t)
		}
	}
	for _, r := range u.refused {
		refused.add(r)
	}
	t := u.t
	if d.Headers.Since == symbols.SinceReleases {
		if err := dateByNodes(d, t, in, dated); err != nil {
			return nil, err
		}
		for i := range t.Functions {
			if d.Version.Build {
				t.Functions[i].Since.Patch = 0
			}
		}
	}
	for _, m := range d.Implementations {
		if files := in.Others[m.Lib]; files != nil {
			if err := addImplementation(d, &m, t, files, in.version(0)); err != nil {
				return nil, fmt.Errorf("%s: %w", m.Name, err)
			}
		}
	}
	if in.Onto == nil && len(t.Releases) == 1 {
		t.Releases = nil // a table of one release has no list of releases
	}
	if len(refused) > 0 {
		return t, refused
	}
	return t, nil
}

// toConst matches the declaration of a pointer to const pointers, and of an array of them.
var toConst = regexp.MustCompile(`\*const (\*\w+|\w+\[\d+\])$`)

// spelled clears Param.C unless keep is set. If it is set, a pointer to const pointers is an input,
// and function types keep Param.C only where it has a length.
func spelled(t *symbols.Table, keep bool) {
	for _, f := range t.Functions {
		for i := range f.Params {
			switch p := &f.Params[i]; {
			case !keep:
				p.C = ""
			case toConst.MatchString(p.C) && p.Guess && p.Dir == symbols.Out:
				p.Dir, p.Guess = "", false
			}
		}
	}
	for _, c := range t.Callbacks {
		for i := range c.Params {
			if p := &c.Params[i]; !keep || p.Length() == 0 {
				p.C = ""
			}
		}
	}
}

// Refused lists declarations that a table cannot hold.
type Refused []symbols.Refusal

func (r Refused) Error() string {
	lines := make([]string, len(r))
	for i, x := range r {
		lines[i] = x.String()
	}
	return strings.Join(lines, "\n")
}

// add adds a refusal, unless the list has one with the same name and reason from another release.
func (r *Refused) add(x symbols.Refusal) {
	if !slices.ContainsFunc(*r, func(y symbols.Refusal) bool { return y.Name == x.Name && y.Reason == x.Reason }) {
		*r = append(*r, x)
	}
}

// once returns a report function that joins reports about the same record in several releases, and
// a function that passes them on.
func once(report func(string)) (add func(string), flush func()) {
	if report == nil {
		return func(string) {}, func() {}
	}
	var order []string
	texts := map[string][]string{}
	add = func(s string) {
		about, _, _ := strings.Cut(s, " in ")
		if texts[about] == nil {
			order = append(order, about)
		}
		texts[about] = append(texts[about], s)
	}
	return add, func() {
		for _, about := range order {
			list := texts[about]
			first := inRelease.FindStringSubmatchIndex(list[0])
			var others []string
			for _, s := range list[1:] {
				if m := inRelease.FindStringSubmatch(s); m != nil && first != nil {
					others = append(others, m[1])
				}
			}
			switch n := len(others); {
			case n > 3:
				list[0] = list[0][:first[3]] + fmt.Sprintf(" and %d other releases", n) + list[0][first[3]:]
			case n > 0:
				list[0] = list[0][:first[3]] + strings.TrimSuffix(", "+strings.Join(others[:n-1], ", "), ", ") + " and " + others[n-1] + list[0][first[3]:]
			}
			report(list[0])
		}
	}
}

// inRelease matches the release in a report.
var inRelease = regexp.MustCompile(` in (\d+(?:\.\d+)+)`)

func omitted(function string, omit []string) bool {
	return slices.ContainsFunc(omit, func(prefix string) bool { return strings.HasPrefix(function, prefix) })
}

// dateByNodes sets since-versions from the version nodes of the library's symbols. It leaves the
// functions in the map dated unchanged.
func dateByNodes(d *symbols.Description, t *symbols.Table, in Input, dated map[string]bool) error {
	if in.Library == nil {
		return nil
	}
	nodes, err := versionNodes(in.Library, d.Headers.Nodes)
	if err != nil {
		return fmt.Errorf("the library's version nodes: %w", err)
	}
	if len(nodes) == 0 {
		return fmt.Errorf("the library has no symbol with a version node %sN.N", d.Headers.Nodes)
	}
	for i := range t.Functions {
		f := &t.Functions[i]
		if v, ok := nodes[f.Symbol]; ok && dated[f.Symbol] {
			continue // the version nodes of an older library have given a more exact version
		} else if ok {
			f.Since = v
		} else if f.Until.IsZero() { // no symbol to bind: the function is inline, or a macro's target
			in.Report(f.Symbol + " is declared and not exported by the library")
		}
	}
	return nil
}

// addImplementation adds to t the additional declarations in the headers of another implementation.
func addImplementation(d *symbols.Description, m *symbols.Implementation, t *symbols.Table, files fs.FS, version symbols.Version) error {
	h, err := readHeaders(d, ownHeader(d, m, files), version)
	if err != nil {
		return err
	}
	spelled(&h.table, false)
	for _, f := range h.table.Headers {
		if f.Name = m.Lib + "/" + f.Name; !slices.Contains(t.Headers, f) {
			t.Headers = append(t.Headers, f)
		}
	}
	have := map[string]bool{}
	for _, f := range t.Functions {
		have[f.Symbol] = true
	}
	for _, f := range h.table.Functions {
		if have[f.Symbol] {
			continue
		}
		f.Lib = m.Lib
		for i := range f.Params {
			f.Params[i].Type = resolve(f.Params[i].Type, m.Types)
		}
		t.Functions = append(t.Functions, f)
	}
	h.table.Library = m.Lib
	mergeEnums(t, &h.table)
	mergeTypes(t, &h.table)
	return nil
}

// ownHeader returns files in which an implementation's main header, such as rccl/rccl.h, also has
// the name of the first implementation's main header, such as nccl.h.
func ownHeader(d *symbols.Description, m *symbols.Implementation, files fs.FS) fs.FS {
	name := d.Headers.Files[0]
	if m.Header == "" {
		return files
	}
	if _, err := fs.Stat(files, name); err == nil {
		return files
	}
	for _, own := range []string{m.Header, path.Base(m.Header)} {
		if _, err := fs.Stat(files, own); err == nil {
			return renamed{files, name, own}
		}
	}
	return files // the error about the missing header then names the first implementation's
}

// renamed makes a file available under another name too.
type renamed struct {
	fs.FS
	name, own string
}

func (r renamed) Open(name string) (fs.File, error) {
	if name == r.name {
		name = r.own
	}
	return r.FS.Open(name)
}

// readHeaders reads one release of a library's headers.
func readHeaders(d *symbols.Description, files fs.FS, version symbols.Version) (*header, error) {
	h, err := parseLibrary(d, files)
	if err != nil {
		return nil, err
	}
	if version.IsZero() {
		version = d.Headers.Release
	}
	if d.Headers.Version.Header != "" {
		if version, err = headerVersion(d, files); err != nil {
			return nil, err
		}
	}
	names := slices.Clone(d.Headers.Files[:1])
	for _, name := range d.Headers.Files[1:] {
		if _, err := fs.Stat(files, name); err == nil {
			names = append(names, name)
		}
	}
	if name := d.Headers.Version.Header; name != "" && !slices.Contains(names, name) {
		names = append(names, name)
	}
	names = slices.DeleteFunc(names, func(name string) bool { _, own := d.Headers.Stubs[name]; return own })
	h.table.Version = version
	h.table.Headers, err = hashes(files, version, names...)
	return h, err
}

func parseLibrary(d *symbols.Description, files fs.FS) (*header, error) {
	if d.Headers.Since == symbols.SinceTypedefs {
		return readTypedefs(d, files)
	}
	s, err := sourceOf(d, files)
	if err != nil {
		return nil, err
	}
	included := d.Headers.Included()
	s.main = included[0]
	if len(included) > 1 {
		s.main = "all headers of " + d.Library // for messages, since there is no single main header
		var text strings.Builder
		for i, name := range included {
			if _, err := fs.Stat(files, name); err == nil || i == 0 {
				text.WriteString("#include <" + name + ">\n")
			}
		}
		s.stubs[s.main] = text.String()
	}
	h, err := parse(s)
	if err != nil {
		return nil, err
	}
	h.table.Functions = functions(h, d.Headers.Omit)
	h.table.Callbacks = slices.DeleteFunc(h.table.Callbacks, func(c symbols.Callback) bool { return omitted(c.Name, d.Headers.Omit) })
	if d.Headers.Old == "" {
		return h, nil
	}
	s.defines += "#define " + d.Headers.Old + " 1\n"
	every, err := parse(s)
	if err != nil {
		return nil, err
	}
	every.table.Functions = oldABIs(h, functions(every, d.Headers.Omit))
	every.table.Callbacks = h.table.Callbacks
	every.alias = h.alias
	return every, nil
}

// versionedStructs marks outputs whose first field is a version as inputs too: the caller states
// the struct's layout in that field.
func versionedStructs(t *symbols.Table) {
	versioned := map[string]bool{}
	for _, s := range t.Structs {
		versioned[s.Name] = len(s.Fields) > 0 && s.Fields[0].Name == "version"
	}
	alias := aliasesOf(t)
	for _, f := range t.Functions {
		for i := range f.Params {
			p := &f.Params[i]
			if base, ok := strings.CutSuffix(resolve(p.Type, alias), " *"); ok && p.Dir == symbols.Out && versioned[base] {
				p.Dir = symbols.InOut
			}
		}
	}
}

// oldABIs finds old ABI versions in the list every, which is from headers that also declare old
// versions. The argument plain is from the same headers without old versions. A function that is
// only in the list is an old version. If its name without _vN is a macro of plain, that macro's
// name is the API name.
func oldABIs(plain *header, every []symbols.Function) []symbols.Function {
	names := map[string]string{}
	for _, f := range plain.table.Functions {
		names[f.Symbol] = f.API
	}
	for i := range every {
		f := &every[i]
		if api, is := names[f.Symbol]; is {
			if strings.HasPrefix(f.Symbol, api) { // otherwise the macro is not about versions: the names are unrelated
				f.API = api
			}
			continue
		}
		f.Current = false
		base := abiSuffix.ReplaceAllString(f.Symbol, "")
		if plain.alias[base] != "" {
			f.API = base
		}
	}
	return every
}

var abiSuffix = regexp.MustCompile(`_v\d+$`)

// sourceOf returns the source to parse, without the main header.
func sourceOf(d *symbols.Description, files fs.FS) (source, error) {
	h := &d.Headers
	stubs, err := d.StandIns()
	if err != nil {
		return source{}, err
	}
	for _, name := range h.Files { // a header that the table binds is read itself
		delete(stubs, name)
	}
	maps.Copy(stubs, h.Stubs)
	s := source{files: files, stubs: stubs, inline: h.Inline, windows: slices.Contains(d.Systems(), "windows"), keep: func(file string) bool { return slices.Contains(h.Files, path.Clean(file)) }}
	for _, line := range h.Prelude {
		s.defines += line + "\n"
	}
	return s, nil
}

// headerVersion reads the version from the macros that the description names.
func headerVersion(d *symbols.Description, files fs.FS) (v symbols.Version, err error) {
	from := d.Headers.Version
	text, err := fs.ReadFile(files, from.Header)
	if err != nil {
		return v, err
	}
	numbers := make([]int, len(from.Macros))
	for i, name := range from.Macros {
		m := regexp.MustCompile(`(?m)^[ \t]*#[ \t]*define[ \t]+` + name + `[ \t]+\(?(\w+)`).FindSubmatch(text)
		if m == nil {
			return v, fmt.Errorf("%s does not define the macro %s", from.Header, name)
		}
		if numbers[i], err = strconv.Atoi(string(m[1])); err != nil {
			return v, fmt.Errorf("%s: %s: %w", from.Header, name, err)
		}
	}
	if len(numbers) == 1 {
		return d.Version.Decode(numbers[0]), nil
	}
	numbers = append(numbers, 0)
	return symbols.Version{Major: numbers[0], Minor: numbers[1], Patch: numbers[2]}, nil
}

// functions returns the functions of a header in its order. If a macro maps a plain name to an
// exported name, the plain name is the API name.
func functions(h *header, omit []string) []symbols.Function {
	api := map[string]string{} // by exported name, the plain name that a macro maps to it
	for _, name := range slices.Sorted(maps.Keys(h.alias)) {
		api[h.alias[name]] = name
	}
	declared := map[string]bool{}
	for _, f := range h.funcs {
		declared[f.Symbol] = true
	}
	var out []symbols.Function
	seen := map[string]bool{}
	for _, f := range h.funcs {
		if seen[f.Symbol] || omitted(f.Symbol, omit) {
			continue
		}
		seen[f.Symbol] = true
		g := f.Function
		g.Current = !declared[h.alias[g.API]] // false if a macro maps the plain name to another function
		if name := api[g.Symbol]; name != "" {
			g.API, g.Current = name, true
		}
		applyFacts(g.Params, f.doc)
		out = append(out, g)
	}
	return out
}

// Exports returns the names that a shared library of Linux exports.
func Exports(r io.ReaderAt) (map[string]bool, error) {
	f, err := elf.NewFile(r)
	if err != nil {
		return nil, err
	}
	list, err := f.DynamicSymbols()
	if err != nil {
		return nil, err
	}
	out := map[string]bool{}
	for _, s := range list {
		if s.Section != elf.SHN_UNDEF {
			out[s.Name] = true
		}
	}
	return out, nil
}

// versionNodes reads the versions in the ELF version nodes of a library's exports. A node is a
// prefix and a version: hip_5.3.
func versionNodes(r io.ReaderAt, prefix string) (map[string]symbols.Version, error) {
	f, err := elf.NewFile(r)
	if err != nil {
		return nil, err
	}
	exports, err := f.DynamicSymbols()
	if err != nil {
		return nil, err
	}
	out := map[string]symbols.Version{}
	for _, s := range exports {
		node, ok := strings.CutPrefix(s.Version, prefix)
		if !ok || s.Section == elf.SHN_UNDEF {
			continue
		}
		v, err := symbols.ParseVersion(node)
		if err != nil {
			return nil, fmt.Errorf("%s: version node %s: %w", s.Name, s.Version, err)
		}
		out[s.Name] = v
	}
	return out, nil
}

func hashes(files fs.FS, v symbols.Version, names ...string) ([]symbols.Header, error) {
	var out []symbols.Header
	for _, name := range names {
		b, err := fs.ReadFile(files, name)
		if err != nil {
			return nil, err
		}
		sum := sha256.Sum256(b)
		out = append(out, symbols.Header{Name: name, Version: v, SHA256: hex.EncodeToString(sum[:])})
	}
	return out, nil
}
