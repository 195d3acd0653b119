package symbols

import (
	"io/fs"
	"maps"
	"math"
	"path"
	"slices"
	"strings"
)

// A Description holds facts about a library for the extractor, the generator and the loader. It is
// the file library.json, beside the table and the overlay, and is written by hand. None of the
// three has a special case for a library's name: a peculiarity of a library is a field here, which
// other libraries may use too.
type Description struct {
	Library     string    `json:"library"`               // name of the Go package, and of the library in the table: "cuda"
	Brand       string    `json:"brand"`                 // name in front of release numbers: "CUDA", for "since CUDA 12.5"
	Prefixes    Prefixes  `json:"prefixes"`              // of C names
	Initialisms []string  `json:"initialisms,omitempty"` // words of C names that stay in capitals in Go names, in addition to common ones such as GPU
	Version     Numbering `json:"version"`
	Headers     Headers   `json:"headers"`
	Hooks       Hooks     `json:"hooks,omitzero"`

	// Grown are structs that begin with their size and get new members in later releases. The
	// package gets lists of their layouts, such as configLayouts and configFields for a Go type
	// Config. Handwritten code of the package uses these lists to fill the struct for the open
	// release.
	Grown []string `json:"grown,omitempty"`

	// Pointers are rules for parameters of many functions, each with a reason. A rule may say that
	// every float * is device memory. The last rule that matches a pointer applies, unless an entry
	// of the overlay says how the pointer is used.
	Pointers []ParamNote `json:"pointers,omitempty"`

	// Uses are libraries that lend types to the headers. An embedded library is given by its name,
	// such as "cuda". A library for which bindgen made a package is given by the path of its
	// description, such as "../cublas/cublas.json". After decoding, Uses has only names.
	Uses  []string `json:"uses,omitempty"`
	Lends *Lends   `json:"lends,omitempty"` // types that headers of other libraries may take, or nil

	// Implementations are the libraries with this API. The table is named after the first one,
	// which the function Open opens. For each of the others, the function's name is "Open" and
	// Implementation.Lib in capitals: OpenRCCL.
	Implementations []Implementation `json:"implementations"`

	Lenders Lenders `json:"-"` // the libraries in Uses that are not embedded
}

// Prefixes are cut from C names to make Go names; the first that matches is cut.
type Prefixes struct {
	Functions []string `json:"functions"`
	Types     []string `json:"types"`
	Values    []string `json:"values"` // of enumerators and constants
}

// A Numbering says how the library numbers its releases, and which function returns the number.
type Numbering struct {
	// Function is the library's function that returns its version, or "" if there is none. It
	// returns the number as its result or through an int pointer, or the parts of the version
	// through two or three int pointers.
	Function string `json:"function,omitempty"`

	Numbers []Number `json:"numbers"`         // ways of numbering, oldest first
	Build   bool     `json:"build,omitempty"` // the third part counts builds, which do not change the API
	Stub    string   `json:"stub,omitempty"`  // error code that Function returns in a stub file that is only for linking
}

// A Number is a way of numbering releases: a release's number is the sum of its parts, each
// multiplied by the field of the same name.
type Number struct {
	Since Version `json:"since,omitzero"` // first release that uses this way; zero for the first way
	Major int     `json:"major"`
	Minor int     `json:"minor"`
	Patch int     `json:"patch,omitempty"` // 0 if the number does not contain the patch level
}

// Encode returns the number of a release.
func (n *Numbering) Encode(v Version) int {
	i := len(n.Numbers) - 1
	for i > 0 && v.Compare(n.Numbers[i].Since) < 0 {
		i--
	}
	return n.Numbers[i].encode(v)
}

func (n Number) encode(v Version) int { return v.Major*n.Major + v.Minor*n.Minor + v.Patch*n.Patch }

// Decode returns the release that has a number.
func (n *Numbering) Decode(code int) Version {
	i := len(n.Numbers) - 1
	for i > 0 && code < n.Numbers[i].encode(n.Numbers[i].Since) {
		i--
	}
	w := n.Numbers[i]
	v := Version{Major: code / w.Major, Minor: code % w.Major / w.Minor}
	if w.Patch > 0 {
		v.Patch = code % w.Minor / w.Patch
	}
	return v
}

// Headers say how to read the library's C headers.
type Headers struct {
	// Files are the headers that declare the library, by the names in an #include. The first is
	// required; the others are read in releases that have them.
	Files []string `json:"files"`

	Include []string          `json:"include,omitempty"` // the entries of Files to include, which include the others; empty for all
	Prelude []string          `json:"prelude,omitempty"` // lines of C before the headers
	Stubs   map[string]string `json:"stubs,omitempty"`   // text that replaces other headers, by name
	Handles []Handle          `json:"handles,omitempty"` // types of the stubs that belong in the table
	Omit    []string          `json:"omit,omitempty"`    // prefixes of functions and function types to leave out, and of refused declarations not to report
	Inline  bool              `json:"inline,omitempty"`  // the library also exports the inline functions of the headers
	Version HeaderVersion     `json:"version,omitzero"`  // macros of the version; if Version and Release are both empty, the extractor needs the version as an argument
	Release Version           `json:"release,omitzero"`  // version of headers that do not state one
	Dir     string            `json:"dir,omitempty"`     // folder of the headers, relative to the description, if the headers are kept with the description
	Since   Since             `json:"since"`             // source of since-versions

	// Folders are more folders to search for included headers, relative to the description.
	Folders []string `json:"folders,omitempty"`

	// Settled says that a person has checked each pointer parameter that the headers do not explain.
	// Without Settled the table marks these parameters, and nothing is generated until the overlay
	// or a rule explains each one.
	Settled bool `json:"settled,omitempty"`

	// Old is a macro that makes the headers declare replaced ABI versions under their plain names.
	// If Old is not defined, the headers' own macros give these names to the newest versions. The
	// headers are read twice, with the macro and without it.
	Old string `json:"old,omitempty"`

	Typedefs *Typedefs `json:"typedefs,omitempty"` // for SinceTypedefs
	Nodes    string    `json:"nodes,omitempty"`    // for SinceReleases: prefix of the ELF version nodes that give since-versions
}

// Included returns the names of the headers to include.
func (h *Headers) Included() []string {
	if len(h.Include) > 0 {
		return h.Include
	}
	return h.Files
}

// A HeaderVersion names the macros of a header that hold its version: the number, or its parts.
type HeaderVersion struct {
	Header string   `json:"header"`
	Macros []string `json:"macros"`
}

// Since names the source of the since-versions of functions.
type Since string

// The sources of since-versions.
const (
	SinceTypedefs Since = "typedefs" // a header with a function type for each ABI version
	SinceReleases Since = "releases" // a comparison of the headers of several releases
	SinceOverlay  Since = "overlay"  // notes on functions and sets
)

// Typedefs describe a header that has a type for each ABI version of each function. The type has
// the name of the function and the number of the release that added it: PFN_cuCtxCreate_v12050.
type Typedefs struct {
	Header string   `json:"header"` // the entry of Files that includes the others
	Prefix string   `json:"prefix"` // "PFN_"
	Define string   `json:"define"` // macro with which the headers declare every ABI version, including old ones
	Twins  []string `json:"twins"`  // endings of other exports of the same ABI: "_ptsz"
}

// Hooks name handwritten functions of the package that become the fields of the same name in
// [dl.Spec]. "" means no function, but an empty Version means the generated libraryVersion, which
// calls Numbering.Function.
type Hooks struct {
	Version string `json:"version,omitempty"`
	Resolve string `json:"resolve,omitempty"` // looks up each function by its API name and since-version in the library
	Ready   string `json:"ready,omitempty"`   // reports whether the library can be used on the machine
}

// An Implementation is a library that can be opened.
type Implementation struct {
	Lib   string              `json:"lib,omitempty"`   // marks the table's records that only this implementation has; "" for the first
	Name  string              `json:"name"`            // common name: "CUDA driver"
	Env   string              `json:"env"`             // environment variable that names a file
	Files map[string][]string `json:"files"`           // file names for the system loader, in order, by GOOS
	Dirs  map[string][]string `json:"dirs,omitempty"`  // directories to search after that, by GOOS, as in dl.Spec
	Hint  string              `json:"hint"`            // advice if the library is absent or too old
	Doc   string              `json:"doc,omitempty"`   // additional documentation of Open
	Types map[string]string   `json:"types,omitempty"` // names in this implementation's headers, for types of the first implementation

	// Header is the name of the implementation's main header, if it differs from the first
	// implementation's: "rccl/rccl.h".
	Header string `json:"header,omitempty"`
}

// OpenName returns the name of the Go function that opens the library.
func (m *Implementation) OpenName() string { return "Open" + strings.ToUpper(m.Lib) }

// Systems returns the values of GOOS that an implementation has file names for, sorted.
func (d *Description) Systems() []string {
	set := map[string]bool{}
	for _, m := range d.Implementations {
		for os := range m.Files {
			set[os] = true
		}
	}
	return slices.Sorted(maps.Keys(set))
}

// systems are the values of GOOS that the loader supports.
var systems = []string{"linux", "windows"}

// DecodeDescription reads a description and checks it. An error names the file, the record and the
// field.
func DecodeDescription(file string, text []byte) (*Description, error) {
	return Lenders(nil).DecodeDescription(file, text)
}

// DecodeDescription decodes a description that may use types of the lenders; see the function
// [DecodeDescription].
func (m Lenders) DecodeDescription(file string, text []byte) (*Description, error) {
	d := &Description{Lenders: m}
	if err := decode(file, text, d); err != nil {
		return nil, err
	}
	for i, name := range d.Uses {
		d.Uses[i] = UsedName(name)
	}
	c := &checker{file: file}
	c.description(d)
	if err := c.err(); err != nil {
		return nil, err
	}
	return d, nil
}

// UsedName returns the name of a library in [Description.Uses]. The parameter use is the name
// itself, or the path of the library's description.
func UsedName(use string) string {
	if name, ok := strings.CutSuffix(use, ".json"); ok {
		return path.Base(name)
	}
	return use
}

func (c *checker) description(d *Description) {
	if !isName(d.Library) || strings.ToLower(d.Library) != d.Library {
		c.add("library", "library", "%q cannot name a Go package", d.Library)
	}
	c.filled("library", "brand", d.Brand)
	for _, p := range []struct {
		field string
		list  []string
	}{{"functions", d.Prefixes.Functions}, {"types", d.Prefixes.Types}, {"values", d.Prefixes.Values}} {
		if p.list == nil {
			c.add("prefixes", p.field, "is missing; write [] for none")
		}
	}
	for _, word := range d.Initialisms {
		if !isName("_"+word) || strings.ToUpper(word) != word {
			c.add("library", "initialisms", "%q is not a word in capitals", word)
		}
	}
	c.numbering(&d.Version)
	c.headers(&d.Headers)
	for _, name := range d.Uses {
		if l, err := d.Lenders.describe(name); name == d.Library || err != nil || l.Lends == nil {
			c.add("library", "uses", "no library %q lends its types", name)
		}
	}
	if d.Lends != nil {
		c.lends(d.Lends)
	}
	for _, h := range []struct{ field, name string }{{"version", d.Hooks.Version}, {"resolve", d.Hooks.Resolve}, {"ready", d.Hooks.Ready}} {
		if h.name != "" && !isName(h.name) {
			c.add("hooks", h.field, "%q is not the name of a Go function", h.name)
		}
	}
	if len(d.Implementations) == 0 {
		c.add("library", "implementations", "is empty")
	}
	libs, envs := map[string]bool{}, map[string]bool{}
	for i := range d.Implementations {
		m := &d.Implementations[i]
		record := "implementation " + m.Name
		switch {
		case i == 0 && m.Lib != "":
			c.add(record, "lib", "is %q, but must be empty for the first implementation", m.Lib)
		case i > 0 && (!isName(m.Lib) || strings.ToLower(m.Lib) != m.Lib || libs[m.Lib]):
			c.add(record, "lib", "%q is taken, or not a name in small letters", m.Lib)
		}
		if !isName(m.Env) || envs[m.Env] {
			c.add(record, "env", "%q is taken, or not the name of a variable", m.Env)
		}
		libs[m.Lib], envs[m.Env] = true, true
		c.filled(record, "name", m.Name)
		c.filled(record, "hint", m.Hint)
		if len(m.Files) == 0 {
			c.add(record, "files", "is empty")
		}
		c.bySystem(record, "files", m.Files, m)
		c.bySystem(record, "dirs", m.Dirs, m)
	}
}

// bySystem checks the lists that an implementation has for each system.
func (c *checker) bySystem(record, field string, lists map[string][]string, m *Implementation) {
	for _, os := range slices.Sorted(maps.Keys(lists)) {
		switch {
		case !slices.Contains(systems, os):
			c.add(record, field+"."+os, "is not a supported system; supported are %v", systems)
		case len(lists[os]) == 0 || slices.Contains(lists[os], ""):
			c.add(record, field+"."+os, "is empty or has an empty name")
		case len(m.Files[os]) == 0:
			c.add(record, field+"."+os, "files has no names for this system")
		}
	}
}

func (c *checker) filled(record, field, text string) {
	if strings.TrimSpace(text) == "" {
		c.add(record, field, "is empty")
	}
}

func (c *checker) numbering(n *Numbering) {
	if n.Function != "" && !isName(n.Function) {
		c.add("version", "function", "%q is not a C name", n.Function)
	}
	if n.Stub != "" && (!isName(n.Stub) || n.Function == "") {
		c.add("version", "stub", "%q is not a C name, or no function returns it", n.Stub)
	}
	if len(n.Numbers) == 0 {
		c.add("version", "numbers", "is empty")
	}
	for i, w := range n.Numbers {
		switch {
		case w.Minor <= 0 || w.Major <= w.Minor || w.Major > math.MaxInt32 || w.Patch < 0 || w.Patch >= w.Minor || w.Major%w.Minor != 0 || w.Patch > 0 && w.Minor%w.Patch != 0:
			c.add("version", "numbers", "%d, %d and %d: each must divide the one before it", w.Major, w.Minor, w.Patch)
		case i == 0 && !w.Since.IsZero() || i > 0 && w.Since.Compare(n.Numbers[i-1].Since) <= 0:
			c.add("version", "numbers", "since %v: the first must have no since, and each other must be later than the one before it", w.Since)
		case i > 0 && w.encode(w.Since) <= n.Numbers[i-1].encode(w.Since):
			c.add("version", "numbers", "since %v: the numbers do not grow", w.Since)
		}
	}
}

func (c *checker) headers(h *Headers) {
	if len(h.Files) == 0 {
		c.add("headers", "files", "is empty")
	}
	for _, name := range slices.Concat(h.Files, slices.Sorted(maps.Keys(h.Stubs))) {
		if !fs.ValidPath(name) || path.Base(name) == "." {
			c.add("headers", "files", "%q is not the name of a header", name)
		}
	}
	for _, name := range h.Include {
		if !slices.Contains(h.Files, name) {
			c.add("headers", "include", "%q is not one of files", name)
		}
	}
	if len(h.Include) > 0 && !slices.Equal(h.Include[:1], h.Files[:min(1, len(h.Files))]) {
		c.add("headers", "include", "must begin with the first of files")
	}
	for _, k := range h.Handles {
		if !isName(k.Name) || !isName(k.Tag) {
			c.add("headers", "handles", "%q, of tag %q, is not a C name", k.Name, k.Tag)
		}
	}
	if slices.Contains(h.Omit, "") {
		c.add("headers", "omit", "has an empty prefix, which matches all functions")
	}
	if (h.Version.Header == "") != (len(h.Version.Macros) == 0) || len(h.Version.Macros) > 3 {
		c.add("headers", "version", "must have a header, and one to three macros")
	}
	if !h.Release.IsZero() && h.Version.Header != "" {
		c.add("headers", "release", "must be absent, since version names the macros that have it")
	}
	if h.Dir != "" && !fs.ValidPath(h.Dir) {
		c.add("headers", "dir", "%q is not a path with slashes below the folder of the description", h.Dir)
	}
	for _, name := range h.Version.Macros {
		if !isName(name) {
			c.add("headers", "version", "%q is not the name of a macro", name)
		}
	}
	switch h.Since {
	case SinceTypedefs, SinceReleases, SinceOverlay:
	default:
		c.add("headers", "since", "%q is not one of typedefs, releases, overlay", h.Since)
	}
	if h.Old != "" && (!isName(h.Old) || h.Since == SinceTypedefs) {
		c.add("headers", "old", "%q is not the name of a macro, or since is typedefs, which list old ABI versions", h.Old)
	}
	if (h.Since == SinceTypedefs) != (h.Typedefs != nil) {
		c.add("headers", "typedefs", "is required if since is typedefs, and not allowed otherwise")
	}
	if h.Nodes != "" && h.Since != SinceReleases {
		c.add("headers", "nodes", "is only for since-versions from releases")
	}
	if t := h.Typedefs; t != nil {
		if !slices.Contains(h.Files, t.Header) {
			c.add("headers", "typedefs.header", "%q is not one of files", t.Header)
		}
		if !isName(t.Prefix) {
			c.add("headers", "typedefs.prefix", "%q cannot start a C name", t.Prefix)
		}
		if !isName(t.Define) {
			c.add("headers", "typedefs.define", "%q is not a C name", t.Define)
		}
		for _, s := range t.Twins {
			if !isName(s) {
				c.add("headers", "typedefs.twins", "%q cannot end a C name", s)
			}
		}
	}
}

func (c *checker) lends(l *Lends) {
	if len(l.Headers) == 0 {
		c.add("lends", "headers", "is empty")
	}
	seen := map[string]bool{}
	for _, t := range l.Types {
		if !isName(t.Name) || seen[t.Name] {
			c.add("lends", "types", "%q is not a C name, or is in the list twice", t.Name)
		}
		seen[t.Name] = true
		if t.Go != "" && !isBuiltin(t.Type) {
			c.add("lends", "types", "%s: %q is not a C built-in type, which the Go type %s requires", t.Name, t.Type, t.Go)
		}
	}
}

// fits checks a description against the table.
func (c *checker) fits(d *Description, t *Table) {
	if d.Library != t.Library {
		c.add("library", "library", "is %q, but the table is of %q", d.Library, t.Library)
	}
	if n := d.Version.Encode(t.Version); n > math.MaxInt32 {
		c.add("version", "numbers", "%v is %d, which does not fit into 32 bits", t.Version, n)
	}
	functions := functionsByName(t)
	for _, n := range d.Pointers {
		c.reason("pointers "+n.Name, n.Reason)
		c.param("pointers", n, t, functions)
	}
	if d.Lends != nil {
		have := t.TypeNames()
		for _, l := range d.Lends.Types {
			if !have[l.Type] && !isBuiltin(l.Type) {
				c.add("lends", "types", "%s: the table has no type %q", l.Name, l.Type)
			}
		}
	}
	if f := d.Version.Function; f != "" && !slices.ContainsFunc(t.Functions, func(g Function) bool { return g.Symbol == f }) {
		c.add("version", "function", "the table has no %s", f)
	}
	if s := d.Version.Stub; s != "" && !slices.ContainsFunc(t.Enums, func(e Enum) bool {
		return slices.ContainsFunc(e.Values, func(v EnumValue) bool { return v.Name == s })
	}) {
		c.add("version", "stub", "the table has no enumerator %s", s)
	}
	for _, f := range t.Functions {
		if !slices.ContainsFunc(d.Implementations, func(m Implementation) bool { return m.Lib == f.Lib }) {
			c.add("library", "implementations", "no implementation has the lib %q of %s", f.Lib, f.Symbol)
		}
	}
}
