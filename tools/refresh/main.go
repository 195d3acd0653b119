// Command refresh adds new releases of a library to its symbol table and its bindings.
//
//	refresh [-C DIR] [-library FILE] [-version V[,V...]] LIBRARY HEADERS[,HEADERS...]
//
// HEADERS are folders with the headers of the new releases, in any order. LIBRARY and the flags
// -library and -version are those of tools/extract. DIR is the module's root, by default the
// nearest folder upwards with a go.mod.
//
// refresh adds the releases to the table. Bound functions, types and constants stay in it. If there
// is a C compiler, it compares the table with the headers of each new release. refresh prints what
// each release adds and changes.
//
// Some facts are not in headers: whether C reads or writes the target of a pointer, the set and the
// summary of a function, the meaning of an error code. For each such fact refresh adds an entry
// with blanks to the overlay. Then it lists the blanks with their places and stops with an error.
// Fill in the blanks and run refresh again with the same arguments: then it generates the bindings.
// The exit status is 0 only if no blank is left.
package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/puregpu/puregpu/gen"
	"github.com/puregpu/puregpu/internal/cproof"
	"github.com/puregpu/puregpu/internal/extract"
	"github.com/puregpu/puregpu/symbols"
)

func main() {
	root := flag.String("C", "", "root `folder` of the module")
	library := flag.String("library", "", "shared `library` whose version nodes date the functions")
	version := flag.String("version", "", "`releases` of the headers, one for each folder, where they do not tell it")
	flag.Usage = func() {
		fmt.Fprintln(os.Stderr, usage)
		flag.PrintDefaults()
	}
	flag.Parse()
	if flag.NArg() != 2 {
		flag.Usage()
		os.Exit(2)
	}
	if *root == "" {
		var err error
		if *root, err = moduleRoot(); err != nil {
			fmt.Fprintln(os.Stderr, "refresh:", err)
			os.Exit(1)
		}
	}
	r := refresh{
		out: os.Stdout, folder: filepath.Join(*root, "symbols", flag.Arg(0)), pkg: filepath.Join(*root, flag.Arg(0)),
		headers: strings.Split(flag.Arg(1), ","), library: *library, version: *version,
	}
	if err := r.run(); err != nil {
		fmt.Fprintln(os.Stderr, "refresh:", err)
		os.Exit(1)
	}
}

const usage = "usage: refresh [-C DIR] [-library FILE] [-version V[,V...]] LIBRARY HEADERS[,HEADERS...]"

// A refresh has the settings of a run.
type refresh struct {
	out     io.Writer
	folder  string   // has the library's description, table and overlay
	pkg     string   // folder of the Go package
	headers []string // folders with the headers of releases
	library string
	version string
}

// errUnsaid is the error of a run that leaves blanks in the overlay.
var errUnsaid = errors.New("fill in what is listed above, and run it again")

func (r *refresh) run() error {
	d, err := symbols.ReadDescription(os.DirFS(r.folder), ".")
	if err != nil {
		return fmt.Errorf("%s: %w", r.folder, err)
	}
	old, err := r.table()
	if err != nil {
		return err
	}
	table, err := r.extract(d)
	if err != nil {
		return err
	}
	text, err := symbols.Encode(table)
	if err != nil {
		return err
	}
	if _, err := symbols.DecodeTable("the new table", text); err != nil {
		return fmt.Errorf("the headers give no valid table, and nothing is changed: %w", err)
	}
	if err := r.prove(d, table); err != nil {
		return fmt.Errorf("nothing is changed: %w", err)
	}
	for _, v := range table.Releases {
		if v == old.Version || slices.Contains(old.Releases, v) {
			continue
		}
		fmt.Fprintln(r.out)
		if err := extract.DiffRelease(r.out, d, table, v); err != nil {
			return err
		}
	}
	overlayFile := filepath.Join(r.folder, "overlay.json")
	overlay, err := os.ReadFile(overlayFile)
	if err != nil {
		return err
	}
	var notes symbols.Overlay
	if err := json.Unmarshal(overlay, &notes); err != nil {
		return fmt.Errorf("%s: %w", overlayFile, err)
	}
	filled, err := symbols.WithStubs(overlay, stubs(old, table, &notes, d.Pointers))
	if err != nil {
		return fmt.Errorf("%s: %w", overlayFile, err)
	}
	// Write both files only now, so that an earlier error changes neither.
	if err := replace(filepath.Join(r.folder, "table.json"), text); err != nil {
		return err
	}
	if err := replace(overlayFile, filled); err != nil {
		return err
	}
	if asked := unsaid(overlayFile, filled); len(asked) > 0 {
		fmt.Fprintf(r.out, "\n%d things that the headers do not say:\n", len(asked))
		for _, a := range asked {
			fmt.Fprintln(r.out, "  "+a)
		}
		return errUnsaid
	}
	return r.generate()
}

// generate writes the bindings, and prints which functions are refused in which releases.
func (r *refresh) generate() error {
	lib, err := symbols.Read(os.DirFS(r.folder), ".")
	if err != nil {
		return fmt.Errorf("the table and the overlay do not fit; the places are in %s:\n%w", r.folder, err)
	}
	changed, err := gen.Run(r.pkg, lib, true)
	if err != nil {
		return fmt.Errorf("the bindings cannot be generated before %s says more:\n%w", filepath.Join(r.folder, "overlay.json"), err)
	}
	misfits := lib.Misfits()
	for _, f := range lib.Funcs {
		for _, m := range misfits[f.Symbol] {
			fmt.Fprintf(r.out, "refused: %s, where %s; if that does no harm, say so in the overlay's changes\n", f.Symbol, m.Text)
		}
	}
	for _, name := range changed {
		fmt.Fprintln(r.out, "wrote", name)
	}
	fmt.Fprintln(r.out, "next: make generate check-headers; go test ./internal/apitest ./gen -run 'API|Methods' -update, whose changes under testdata/api want a look; make test test-abi; a line in CHANGELOG.md")
	return nil
}

func (r *refresh) table() (*symbols.Table, error) {
	file := filepath.Join(r.folder, "table.json")
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	return symbols.DecodeTable(file, text)
}

// extract adds the releases to the table, the newest first.
func (r *refresh) extract(d *symbols.Description) (*symbols.Table, error) {
	in := extract.Input{Report: func(s string) { fmt.Fprintln(r.out, "note:", s) }}
	var err error
	if in.Onto, err = r.table(); err != nil { // a second copy, because extract.Table changes it
		return nil, err
	}
	if d.Headers.Version.Header == "" && r.version == "" {
		return nil, fmt.Errorf("the headers of %s do not tell their release: give it with -version", d.Library)
	}
	for _, dir := range r.headers {
		if fi, err := os.Stat(dir); err != nil {
			return nil, err
		} else if !fi.IsDir() {
			return nil, fmt.Errorf("%s is no folder", dir)
		}
		in.Releases = append(in.Releases, fs.FS(extract.Folder(dir)))
	}
	if in.Versions, err = r.versions(); err != nil {
		return nil, err
	}
	if r.library != "" {
		f, err := os.Open(r.library)
		if err != nil {
			return nil, err
		}
		defer f.Close()
		in.Library = f
	}
	return extract.Table(d, in)
}

// prove lets a C compiler compare the table with the headers of each new release. Without a
// compiler it only prints a note.
func (r *refresh) prove(d *symbols.Description, table *symbols.Table) error {
	ctx := context.Background()
	cc, err := cproof.Find(ctx, "")
	if err != nil {
		fmt.Fprintf(r.out, "NOTHING IS PROVEN: %v. Where there is one, make check-headers compares the table with the headers.\n", err)
		return nil
	}
	text, err := os.ReadFile(filepath.Join(r.folder, "overlay.json"))
	if err != nil {
		return err
	}
	var notes symbols.Overlay
	if err := json.Unmarshal(text, &notes); err != nil {
		return err
	}
	align := map[string]int{}
	for _, n := range notes.Types {
		align[n.Name] = n.Align
	}
	versions, err := r.versions()
	if err != nil {
		return err
	}
	for i, dir := range r.headers {
		in := extract.Input{Releases: []fs.FS{extract.Folder(dir)}}
		if len(versions) > 0 {
			in.Versions = versions[i : i+1]
		}
		one, err := extract.Table(d, in)
		if one == nil {
			return err
		}
		v := one.Version
		report, err := cproof.Prove(ctx, table.At(v), cproof.Input{Compiler: cc, Description: d, Dirs: []string{dir}, Align: align, Union: true, Older: v != table.Version})
		if err != nil {
			return err
		}
		report.Absent = nil // the table may have functions that this release's headers lack, because an older library exports them
		if err := report.Err(); err != nil {
			return fmt.Errorf("the table is not what %s makes of the headers in %s:\n%w", cc.Name, dir, err)
		}
		fmt.Fprintf(r.out, "%v: %d facts are as %s has them\n", v, report.Right(), cc.Name)
	}
	return nil
}

// versions returns the releases of the flag -version.
func (r *refresh) versions() (out []symbols.Version, err error) {
	if r.version == "" {
		return nil, nil
	}
	for text := range strings.SplitSeq(r.version, ",") {
		v, err := symbols.ParseVersion(text)
		if err != nil {
			return nil, fmt.Errorf("-version: %w", err)
		}
		out = append(out, v)
	}
	if len(out) != len(r.headers) {
		return nil, fmt.Errorf("-version: %d releases for %d folders", len(out), len(r.headers))
	}
	return out, nil
}

// blank stands for text to fill in. The checks of package symbols refuse it.
const blank = "?"

// stubs makes an overlay entry for everything that the table leaves open, unless the overlay or a
// rule of the description settles it. Error codes get an entry only if the old table lacks them.
func stubs(old, t *symbols.Table, o *symbols.Overlay, rules []symbols.ParamNote) []symbols.Stub {
	var out []symbols.Stub
	params, docs, skipped := map[string]bool{}, map[string]bool{}, map[string]bool{}
	for _, n := range o.Params {
		params[n.Name] = true
	}
	for _, n := range o.Docs {
		docs[n.Name] = true
	}
	for _, n := range o.Functions {
		skipped[n.Name] = n.Skip
	}
	homeless := symbols.SetNote{Name: blank, Doc: blank}
	for _, f := range t.Functions {
		if skipped[f.Symbol] || skipped[f.API] {
			continue
		}
		for _, p := range f.Params {
			settled := slices.ContainsFunc(slices.Concat(rules, o.Params), func(n symbols.ParamNote) bool { return n.Settles(t, &f, &p) })
			if p.Guess && !settled && !params[f.Symbol+"."+p.Name] && !params[f.API+"."+p.Name] {
				out = append(out, symbols.Stub{Section: "params", Entry: symbols.ParamNote{Name: f.Symbol + "." + p.Name, Dir: blank, Reason: blank}})
			}
		}
		if !docs[f.Symbol] && !docs[f.API] {
			out = append(out, symbols.Stub{Section: "docs", Entry: symbols.DocNote{Name: f.Symbol, Text: blank}})
			if o.CatchAll(f.Symbol, f.API) { // the function is new, and no set takes it but the last one, which takes all functions
				homeless.Match = append(homeless.Match, f.Symbol)
				if homeless.Since.IsZero() || f.Since.Compare(homeless.Since) < 0 {
					homeless.Since = f.Since
				}
			}
		}
	}
	codes := map[string]bool{}
	for _, e := range old.Enums {
		for _, v := range e.Values {
			codes[v.Name] = true
		}
	}
	for _, e := range t.Enums {
		if !slices.ContainsFunc(o.Types, func(n symbols.TypeNote) bool { return n.Name == e.Name && n.Kind == "result" }) {
			continue
		}
		for _, v := range e.Values {
			if !codes[v.Name] && !docs[v.Name] && v.Value != 0 {
				out = append(out, symbols.Stub{Section: "docs", Entry: symbols.DocNote{Name: v.Name, Text: blank}})
			}
		}
	}
	if len(homeless.Match) > 0 {
		out = append(out, symbols.Stub{Section: "sets", Entry: homeless})
	}
	return out
}

// unsaid lists the lines of an overlay that have a blank, with their places and what to fill in.
func unsaid(file string, overlay []byte) []string {
	what := map[string]string{
		"dir":    "which side writes what it points to: dir is in, out or inout; and len where it is an array",
		"text":   "the summary, or what the error code means",
		"doc":    "what the functions have in common, in a few words",
		"reason": "the reason",
	}
	var out []string
	for i, line := range strings.Split(string(overlay), "\n") {
		var entry map[string]any
		if json.Unmarshal([]byte(strings.TrimSuffix(strings.TrimSpace(line), ",")), &entry) != nil {
			continue
		}
		var missing []string
		for _, key := range []string{"name", "dir", "text", "doc", "reason"} {
			if entry[key] != blank {
				continue
			}
			if key == "name" {
				missing = append(missing, fmt.Sprintf("the set that %v belong to: a name for a new one, or put them into the match of another", entry["match"]))
			} else {
				missing = append(missing, what[key])
			}
		}
		if len(missing) > 0 {
			name, _ := entry["name"].(string)
			out = append(out, fmt.Sprintf("%s:%d: %s: %s", file, i+1, name, strings.Join(missing, "; ")))
		}
	}
	return out
}

// replace writes a file as a whole, or leaves it unchanged.
func replace(file string, text []byte) error {
	if old, err := os.ReadFile(file); err == nil && bytes.Equal(old, text) {
		return nil
	}
	tmp := file + ".new"
	if err := os.WriteFile(tmp, text, 0o644); err != nil {
		return err
	}
	return os.Rename(tmp, file)
}

func moduleRoot() (string, error) {
	dir, err := os.Getwd()
	if err != nil {
		return "", err
	}
	for {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			return dir, nil
		}
		up := filepath.Dir(dir)
		if up == dir {
			return "", errors.New("no go.mod upwards from here: name the module's root with -C")
		}
		dir = up
	}
}
