// Command bindgen makes a package of bindings for a C library, in a module of its own: typed
// methods on a Library that the program loads at run time, without cgo, and a test that proves
// every call.
//
//	//go:generate go run github.com/puregpu/puregpu/tools/bindgen mylib.json
//
//	bindgen [-headers DIR[,DIR...]] [-include DIR[,DIR...]] [-library FILE] [-cc COMPILER] [-guess] [-check] FILE.json
//
// FILE.json describes the library: its name, the places of its file, and how to read its headers.
// mylib.overlay.json beside it has the facts that headers do not give: sets of functions, the type
// of the error codes, which pointers are arrays. The fields of the two files are those of
// Description and Overlay of package symbols (go doc
// github.com/puregpu/puregpu/symbols.Description).
//
// The headers are in the folder that the description names in headers.dir, or in the folders of
// -headers. bindgen makes mylib.table.json, the symbol table, from them. Without headers it uses
// the existing table. -include names more folders to search for included headers.
//
// Before bindgen writes anything, it compares the table with the original headers by a C compiler:
// gcc or clang, or the one that -cc names. Every size, offset, value, type and symbol of the table
// must agree with the compiler. testdata/zproof.json records the proof. Without a compiler, an
// earlier proof of the same table counts. If there is none, or the compiler rejects the headers,
// bindgen says that nothing was proven, and the package's test fails until there is a proof.
//
// The generated files are z*.go beside FILE.json, including the test zabi_test.go, and its inputs
// testdata/zabi.c and testdata/zabi.json. bindgen refuses a declaration that it does not
// understand, with its place and the reason, and makes the package without it. If the meaning of
// pointers is unknown, bindgen lists them and writes nothing; -guess adds entries for them to the
// overlay. With -library, functions that the file does not export go into an optional set. With
// -check bindgen writes nothing, and a file that would change is an error.
package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"go/parser"
	"go/token"
	"io"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/puregpu/puregpu/gen"
	"github.com/puregpu/puregpu/internal/extract"
	"github.com/puregpu/puregpu/symbols"
)

func main() {
	err := run(os.Args[1:], os.Stdout, os.Stderr)
	if err == nil || errors.Is(err, flag.ErrHelp) {
		return
	}
	for line := range strings.Lines(err.Error()) {
		fmt.Fprint(os.Stderr, "bindgen: ", line)
	}
	fmt.Fprintln(os.Stderr)
	if errors.Is(err, errUsage) {
		os.Exit(2)
	}
	os.Exit(1)
}

var errUsage = errors.New("usage: bindgen [-headers DIR[,DIR...]] [-include DIR[,DIR...]] [-library FILE] [-cc COMPILER] [-guess] [-check] FILE.json")

func run(args []string, stdout, stderr io.Writer) error {
	flags := flag.NewFlagSet("bindgen", flag.ContinueOnError)
	flags.SetOutput(io.Discard)
	headers := flags.String("headers", "", "`folders` with the headers, newest release first, separated by commas")
	include := flags.String("include", "", "further `folders` to look for headers that these include, separated by commas")
	library := flags.String("library", "", "shared library: functions that it does not export go into an optional set")
	check := flags.Bool("check", false, "write nothing, and fail if a file would change")
	guess := flags.Bool("guess", false, "add an entry to the overlay for each pointer of which nothing says how it is meant, and for each function that takes another one")
	compiler := flags.String("cc", "", "the C `compiler` that proves the table, else gcc or clang")
	switch err := flags.Parse(args); {
	case errors.Is(err, flag.ErrHelp):
		fmt.Fprintln(stderr, errUsage)
		flags.SetOutput(stderr)
		flags.PrintDefaults()
		return err
	case err != nil:
		return fmt.Errorf("%w; %w", err, errUsage)
	}
	base, isJSON := strings.CutSuffix(flags.Arg(0), ".json")
	if flags.NArg() != 1 || !isJSON {
		return errUsage
	}
	b := &binding{file: flags.Arg(0), table: base + ".table.json", overlay: base + ".overlay.json", dir: filepath.Dir(flags.Arg(0))}
	b.library = *library
	if *include != "" {
		b.folders = strings.Split(*include, ",")
	}
	b.report = func(s string) { fmt.Fprintln(stderr, "bindgen: note:", s) }
	b.compiler = *compiler
	if *guess {
		return b.guess(*headers, stdout)
	}
	files, err := b.generate(*headers)
	if err != nil {
		return err
	}
	changed, err := gen.Write(b.dir, files, !*check)
	if err != nil {
		return err
	}
	stale, err := b.stale(files)
	if err != nil {
		return err
	}
	if *check && len(changed)+len(stale) > 0 {
		return fmt.Errorf("out of date: %s; run go generate", strings.Join(append(changed, stale...), ", "))
	}
	for _, name := range changed {
		fmt.Fprintln(stdout, "wrote", name)
	}
	for _, name := range stale {
		if err := os.Remove(name); err != nil {
			return err
		}
		fmt.Fprintln(stdout, "removed", name)
	}
	return nil
}

// A binding is a library and the places of its files.
type binding struct {
	file, table, overlay, dir string
	folders                   []string // folders of -include
	library                   string   // the library's file, or ""
	report                    func(string)
	compiler                  string // the compiler that -cc names

	dirs    []string // folders of the headers, if the table was made from headers
	further []string // folders with headers that the headers in dirs include: of -include and the description
}

// load reads the description and the overlay, and makes the library from them and from the headers
// or the table. The returned table also lists the refused declarations, with the reasons.
func (b *binding) load(headers string) (lib *symbols.Library, table []byte, err error) {
	text, err := os.ReadFile(b.file)
	if err != nil {
		return nil, nil, err
	}
	lenders := symbols.Lenders{}
	if err := readUsed(lenders, b.file, text); err != nil {
		return nil, nil, err
	}
	d, err := lenders.DecodeDescription(b.file, text)
	if err != nil {
		return nil, nil, err
	}
	if slices.Contains(symbols.Names(), d.Library) {
		b.report(fmt.Sprintf("there is a package %s in this project already", d.Library))
	}
	if err := b.samePackage(d.Library); err != nil {
		return nil, nil, err
	}
	overlay, err := os.ReadFile(b.overlay)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil, fmt.Errorf("%s: write it beside %s, with at least a set of functions, and the type of the error codes if functions return them: %w", b.overlay, b.file, err)
	} else if err != nil {
		return nil, nil, err
	}
	if table, err = b.extract(d, headers); err != nil {
		return nil, nil, err
	}
	decode := func() error {
		if lib, err = lenders.Decode(b.table, table, b.overlay, overlay); err != nil {
			return err
		}
		return lib.Describe(b.file, d)
	}
	if err := decode(); err != nil {
		if t, tableErr := lenders.DecodeTable(b.table, table); tableErr == nil {
			b.refused(t) // an entry may lack its function for this reason
			b.prefixes(d, t)
		}
		return nil, nil, err
	}
	if err := b.checkCore(lib); err != nil {
		return nil, nil, err
	}
	refused, err := gen.Unbindable(lib)
	if err != nil {
		return nil, nil, err
	}
	if len(refused) > 0 {
		lib.Refused = append(lib.Refused, refused...)
		if table, err = symbols.Encode(lib.Table); err == nil {
			err = decode()
		}
	}
	if err == nil {
		b.summary(lib)
	}
	return lib, table, err
}

// readUsed adds the libraries that a description uses, with their tables on disk.
func readUsed(lenders symbols.Lenders, file string, text []byte) error {
	var d struct{ Uses []string }
	if json.Unmarshal(text, &d) != nil {
		return nil // the check of the description reports the error
	}
	for _, use := range d.Uses {
		base, ok := strings.CutSuffix(use, ".json")
		if !ok {
			continue
		}
		base = filepath.Join(filepath.Dir(file), filepath.FromSlash(base))
		var files [3][]byte
		for i, end := range []string{".json", ".table.json", ".overlay.json"} {
			var err error
			if files[i], err = os.ReadFile(base + end); err != nil {
				return fmt.Errorf("%s uses %s: make the package of %[2]s first: %w", file, use, err)
			}
		}
		if err := readUsed(lenders, base+".json", files[0]); err != nil {
			return err
		}
		used, err := lenders.DecodeDescription(base+".json", files[0])
		if err != nil {
			return err
		}
		lib, err := lenders.Decode(base+".table.json", files[1], base+".overlay.json", files[2])
		if err == nil {
			err = lib.Describe(base+".json", used)
		}
		if err != nil {
			return err
		}
		path, err := importPath(filepath.Dir(base))
		if err != nil {
			return err
		}
		if err := lenders.Add(lib, path); err != nil {
			return err
		}
	}
	return nil
}

var moduleLine = regexp.MustCompile(`(?m)^module\s+"?([^\s"]+)`)

// importPath returns the path of the Go package in a folder.
func importPath(dir string) (string, error) {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return "", err
	}
	for root := dir; ; root = filepath.Dir(root) {
		if text, err := os.ReadFile(filepath.Join(root, "go.mod")); err == nil {
			m := moduleLine.FindSubmatch(text)
			if m == nil {
				return "", fmt.Errorf("%s: has no module line", filepath.Join(root, "go.mod"))
			}
			rel, err := filepath.Rel(root, dir)
			return path.Join(string(m[1]), filepath.ToSlash(rel)), err
		}
		if root == filepath.Dir(root) {
			return "", fmt.Errorf("%s: is not in a module", dir)
		}
	}
}

// otherHeader matches the reason for refusing a use of a type that another header declares.
var otherHeader = regexp.MustCompile(`: is declared in (\S+), which is not in headers\.files$`)

// prefixes reports prefixes of the description with which no name begins.
func (b *binding) prefixes(d *symbols.Description, t *symbols.Table) {
	var functions, values []string
	for _, f := range t.Functions {
		functions = append(functions, f.API)
	}
	for _, e := range t.Enums {
		for _, v := range e.Values {
			values = append(values, v.Name)
		}
	}
	for _, c := range t.Constants {
		values = append(values, c.Name)
	}
	for _, x := range []struct {
		field           string
		prefixes, names []string
	}{
		{"functions", d.Prefixes.Functions, functions}, {"types", d.Prefixes.Types, slices.Collect(maps.Keys(t.TypeNames()))}, {"values", d.Prefixes.Values, values},
	} {
		for _, prefix := range x.prefixes {
			if len(x.names) > 0 && !slices.ContainsFunc(x.names, func(name string) bool { return strings.HasPrefix(name, prefix) }) {
				b.report(fmt.Sprintf("prefixes.%s: no name begins with %q", x.field, prefix))
			}
		}
	}
}

// summary reports the refused declarations, the functions that are refused in some releases, and the
// handles that may be pointers to memory.
func (b *binding) summary(lib *symbols.Library) {
	b.prefixes(lib.Description, lib.Table)
	var voids []string
	for _, h := range lib.Handles {
		if _, told := lib.TypeNote(h.Name); h.Tag == "void" && !told {
			voids = append(voids, h.Name)
		}
	}
	if len(voids) > 0 {
		b.report(fmt.Sprintf("%s: bound as a handle, which is a number in Go. If it is void * and points to memory, write {\"name\": %q, \"kind\": \"pointer\", \"reason\": \"…\"} into types of the overlay, else \"kind\": \"handle\"", strings.Join(voids, ", "), voids[0]))
	}
	b.refused(lib.Table)
	b.misfits(lib)
}

// refused reports the refused declarations of a table.
func (b *binding) refused(t *symbols.Table) {
	// Names of functions that headers define, and the number of refused declarations by the header
	// that they need.
	inline, missing := map[string][]string{}, map[string]int{}
	for _, r := range t.Refused {
		file, _, _ := strings.Cut(r.Where, ":")
		if strings.HasPrefix(r.Reason, "is defined in the header") {
			inline[file] = append(inline[file], r.Name)
			continue
		}
		b.report("refused: " + r.String())
		if m := otherHeader.FindStringSubmatch(r.Reason); m != nil {
			missing[m[1]]++
		}
	}
	for _, file := range slices.Sorted(maps.Keys(inline)) {
		if list := inline[file]; len(list) > 1 {
			b.report(fmt.Sprintf("refused: %s: %d functions are defined in the header, and no library exports them: %s", file, len(list), strings.Join(list, ", ")))
			continue
		}
		b.report(fmt.Sprintf("refused: %s: %s is defined in the header, and no library exports it", file, inline[file][0]))
	}
	for _, file := range slices.Sorted(maps.Keys(missing)) {
		const why = " refused for a type of another header: to bind "
		b.report(count(missing[file], "declaration is"+why+"it", "declarations are"+why+"them") + fmt.Sprintf(", write %q into headers.files", file))
	}
}

// misfits reports the functions that must not be called in some releases. Open refuses a release in
// which a required function is one of them.
func (b *binding) misfits(lib *symbols.Library) {
	misfits := lib.Misfits()
	for _, f := range lib.Funcs {
		for _, m := range misfits[f.Symbol] {
			text := fmt.Sprintf("refused in some releases: %s: %s", f.Symbol, m.Text)
			core := lib.Sets[0]
			if f.Set == 0 && (m.To.IsZero() || m.To.Compare(core.Since) > 0) {
				text += fmt.Sprintf("; it is in the required set %s, so Open refuses these releases: ", core.Name)
				if m.From.Compare(core.Since) <= 0 && !m.To.IsZero() {
					text += fmt.Sprintf("write \"since\": \"%v\" into the set, or ", m.To)
				}
				text += "move the function out of the set"
			}
			if m.Hint != "" {
				text += "; " + m.Hint
			}
			b.report(text)
		}
	}
}

func count(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, many)
}

// generate returns all files generated from a library, and the library's table, by their names
// relative to the folder.
func (b *binding) generate(headers string) (map[string][]byte, error) {
	lib, table, err := b.load(headers)
	if err != nil {
		return nil, err
	}
	files, err := gen.GenerateWithProof(lib)
	if err != nil {
		return nil, err
	}
	b.report(count(len(lib.Funcs), "function is", "functions are") + " bound, " + count(len(lib.Refused), "declaration is", "declarations are") + " refused")
	files[filepath.Base(b.table)] = table
	proof, err := b.prove(lib, table)
	if err != nil {
		return nil, err
	}
	if proof != nil {
		files[proofFile] = proof
	}
	return files, nil
}

// guess adds an entry to the overlay for each pointer with an unknown meaning, and for each
// function that may call a function pointer at an unknown time. The entries have blanks. bindgen
// refuses them until somebody has filled them in.
func (b *binding) guess(headers string, stdout io.Writer) error {
	lib, _, err := b.load(headers)
	if err != nil {
		return err
	}
	var stubs []symbols.Stub
	functions := lib.Unsettled()
	for i := range functions {
		f := &functions[i]
		for _, a := range f.Args {
			if a.Guess {
				stubs = append(stubs, symbols.Stub{Section: "params", Entry: symbols.ParamNote{Name: f.Symbol + "." + a.Name, Dir: "?", Reason: lib.Declaration(f)}})
			}
		}
		if len(f.Asks) > 0 {
			stubs = append(stubs, symbols.Stub{Section: "functions", Entry: symbols.FunctionNote{Name: f.Symbol, Callback: symbols.Unknown, Reason: lib.Declaration(f)}})
		}
	}
	text, err := os.ReadFile(b.overlay)
	if err != nil {
		return err
	}
	if text, err = symbols.WithStubs(text, stubs); err != nil {
		return fmt.Errorf("%s: %w", b.overlay, err)
	}
	if err := os.WriteFile(b.overlay, text, 0o644); err != nil {
		return err
	}
	fmt.Fprintf(stdout, "wrote %d entries into %s. Instead of \"dir\": \"?\" write\n%s\nInstead of \"callback\": \"?\" write\n%s\n", len(stubs), b.overlay, symbols.HowMeant, symbols.HowCalled)
	return nil
}

// extract returns the text of the table, made from the headers. Without headers it returns the
// existing table.
func (b *binding) extract(d *symbols.Description, headers string) ([]byte, error) {
	var dirs []string
	switch {
	case headers != "":
		dirs = strings.Split(headers, ",")
	case d.Headers.Dir != "":
		dirs = []string{filepath.Join(b.dir, filepath.FromSlash(d.Headers.Dir))}
	case b.library != "":
		return nil, fmt.Errorf("-library %s: no headers are read: name their folder with -headers, or in headers.dir of %s", b.library, b.file)
	default:
		text, err := os.ReadFile(b.table)
		if errors.Is(err, fs.ErrNotExist) {
			return nil, fmt.Errorf("%w: name the folder of the C headers with -headers, or in headers.dir of %s", err, b.file)
		}
		return text, err
	}
	in := extract.Input{Report: b.report, Spelled: true}
	var further []fs.FS
	for _, dir := range slices.Concat(b.folders, d.Headers.Folders) {
		if !filepath.IsAbs(dir) && !slices.Contains(b.folders, dir) {
			dir = filepath.Join(b.dir, filepath.FromSlash(dir))
		}
		if err := checkFolder(dir); err != nil {
			return nil, err
		}
		further, b.further = append(further, extract.Folder(dir)), append(b.further, dir)
	}
	for _, dir := range dirs {
		if err := checkFolder(dir); err != nil {
			return nil, err
		}
		in.Releases = append(in.Releases, extract.Folders(append([]fs.FS{extract.Folder(dir)}, further...)))
	}
	switch h := &d.Headers; {
	case len(dirs) > 1 && h.Since != symbols.SinceReleases:
		return nil, fmt.Errorf("-headers: give one folder: the description of %s does not compare releases", d.Library)
	case h.Version.Header == "" && h.Release.IsZero():
		return nil, fmt.Errorf("%s: headers: set version or release, the release of the headers", b.file)
	}
	b.dirs = dirs
	t, err := extract.Table(d, in)
	if refused, ok := errors.AsType[extract.Refused](err); ok {
		t.Refused = refused // the package is made without them
	} else if err != nil {
		return nil, err
	}
	old := b.oldTable(d)
	if err := b.sameReleases(d, old, t); err != nil {
		return nil, err
	}
	if err := b.markAbsent(old, t); err != nil {
		return nil, err
	}
	return symbols.Encode(t)
}

// oldTable returns the table on disk, or nil if there is none that can be read: it will be written
// again.
func (b *binding) oldTable(d *symbols.Description) *symbols.Table {
	text, err := os.ReadFile(b.table)
	if err != nil {
		return nil
	}
	t, err := d.Lenders.DecodeTable(b.table, text)
	if err != nil {
		return nil
	}
	return t
}

// sameReleases returns an error if the table on disk has releases that the new one lacks: their
// functions, layouts and since-versions would be forgotten.
func (b *binding) sameReleases(d *symbols.Description, old, t *symbols.Table) error {
	if old == nil || d.Headers.Since != symbols.SinceReleases {
		return nil
	}
	releases := func(t *symbols.Table) []symbols.Version {
		if len(t.Releases) == 0 {
			return []symbols.Version{t.Version}
		}
		return t.Releases
	}
	var lost []string
	for _, v := range releases(old) {
		if !slices.Contains(releases(t), v) {
			lost = append(lost, v.String())
		}
	}
	if len(lost) == 0 {
		return nil
	}
	return fmt.Errorf("%s knows %s: name those headers too, with -headers DIR,DIR, or remove the file to forget them and what an earlier -library did not export", b.table, strings.Join(lost, ", "))
}

// markAbsent marks the functions that the library does not export: the functions absent from the
// file of -library or, without -library, the functions that the old table marks.
func (b *binding) markAbsent(old, t *symbols.Table) error {
	absent := map[string]bool{}
	if b.library == "" {
		if old == nil {
			return nil
		}
		for _, f := range old.Functions {
			absent[f.Symbol] = f.Absent
		}
	} else {
		file, err := os.Open(b.library)
		if err != nil {
			return err
		}
		defer file.Close()
		exports, err := extract.Exports(file)
		if err != nil {
			return fmt.Errorf("%s: %w", b.library, err)
		}
		for _, f := range t.Functions {
			if !exports[f.Symbol] {
				absent[f.Symbol] = true
				b.report(fmt.Sprintf("%s: %s does not export %s: it goes into the optional set absent", f.Where, b.library, f.Symbol))
			}
		}
	}
	for i := range t.Functions {
		t.Functions[i].Absent = absent[t.Functions[i].Symbol]
	}
	return nil
}

// checkCore returns an error if the core, without which no program opens the library, lacks a
// function that it names, or all functions.
func (b *binding) checkCore(lib *symbols.Library) error {
	core := lib.Overlay.Sets[0]
	inCore, gone, named := false, []string{}, []string{}
	for _, f := range lib.Funcs {
		switch {
		case !f.Absent:
			inCore = inCore || f.Set == 0
		case slices.Contains(core.Match, f.Symbol):
			named = append(named, f.Symbol)
		case lib.Required(&f):
			gone = append(gone, f.Symbol)
		}
	}
	if len(named) == 0 && (inCore || len(gone) == 0) {
		return nil
	}
	list := append(named, gone...)
	if len(list) > 5 {
		list = append(list[:5], "…")
	}
	what := fmt.Sprintf("functions of the required set %s: %s", core.Name, strings.Join(list, ", "))
	if b.library == "" {
		return fmt.Errorf("%s: the file of an earlier -library does not export %s; name %s's file with -library", b.table, what, lib.Description.Brand)
	}
	return fmt.Errorf("%s: does not export %s; is it %s's file?", b.library, what, lib.Description.Brand)
}

func checkFolder(dir string) error {
	fi, err := os.Stat(dir)
	if err == nil && !fi.IsDir() {
		err = fmt.Errorf("%s is no folder", dir)
	}
	if err != nil {
		return fmt.Errorf("headers: %w", err)
	}
	return nil
}

// samePackage refuses a folder with Go files of another package.
func (b *binding) samePackage(name string) error {
	files, err := filepath.Glob(filepath.Join(b.dir, "*.go"))
	if err != nil {
		return err
	}
	for _, file := range files {
		f, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.PackageClauseOnly)
		if err == nil && f.Name.Name != name && f.Name.Name != name+"_test" {
			return fmt.Errorf("%s: is of package %s, and %s makes package %s: give each a folder of its own", file, f.Name.Name, b.file, name)
		}
	}
	return nil
}

// stale lists files in the folder that are no longer generated.
func (b *binding) stale(files map[string][]byte) ([]string, error) {
	found, err := filepath.Glob(filepath.Join(b.dir, "z*.go"))
	if err != nil {
		return nil, err
	}
	var out []string
	for _, name := range found {
		text, err := os.ReadFile(name)
		if err != nil {
			return nil, err
		}
		if _, ok := files[filepath.Base(name)]; !ok && bytes.HasPrefix(text, []byte("// Code generated by puregpu's gen ")) {
			out = append(out, name)
		}
	}
	return out, nil
}
