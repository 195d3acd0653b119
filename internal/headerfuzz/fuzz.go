// Package headerfuzz makes random C headers, extracts a symbol table from each, and compares the
// table with a C compiler. The extractor may refuse a declaration, but it must never bind a
// declaration wrongly.
package headerfuzz

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing/fstest"

	"github.com/puregpu/puregpu/internal/cproof"
	"github.com/puregpu/puregpu/internal/extract"
	"github.com/puregpu/puregpu/symbols"
)

// A Checker compares the tables of headers with what one compiler says. It writes files to Dir.
type Checker struct {
	Compiler *cproof.Compiler
	Dir      string
}

// NewChecker returns a checker, and writes the files that random headers include to the folder.
func NewChecker(cc *cproof.Compiler, dir string) (*Checker, error) {
	for name, text := range Files {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o666); err != nil {
			return nil, err
		}
	}
	return &Checker{cc, dir}, nil
}

// A Result has the differences between a header and its table, and says how much was compared.
type Result struct {
	Header   string // without the units that the compiler or the front end rejects
	Units    int    // compared units
	Invalid  int    // units that the compiler rejects
	Unparsed int    // units that the front end rejects
	Refused  int    // declarations that the extractor refuses
	Records  int    // records of the table
	Facts    int    // facts of the table that the compiler confirms
	Faults   []cproof.Fault

	units []Unit
	kept  map[int]bool
}

// Main is the name of the header.
const Main = "fz.h"

func description() *symbols.Description {
	return &symbols.Description{Library: "fz", Headers: symbols.Headers{Files: []string{Main}, Release: symbols.Version{Major: 1}, Since: symbols.SinceOverlay}}
}

// extracted returns the table of a header, and how many declarations the extractor refused. The
// table is nil if the front end cannot read the header.
func extracted(header string) (t *symbols.Table, refused int, err error) {
	files := fstest.MapFS{Main: {Data: []byte(header)}}
	for name, text := range Files {
		files[name] = &fstest.MapFile{Data: []byte(text)}
	}
	t, err = extract.Table(description(), extract.Input{Releases: []fs.FS{files}})
	if list, ok := errors.AsType[extract.Refused](err); ok {
		refused = len(list)
	}
	return t, refused, err
}

// text joins the kept units into a header. The result lines has, for each line of the header, the
// index of the line's unit, or -1.
func text(units []Unit, kept map[int]bool) (header string, lines []int) {
	var b strings.Builder
	b.WriteString(Head)
	lines = slices.Repeat([]int{-1}, strings.Count(Head, "\n"))
	for i, u := range units {
		if kept[i] {
			b.WriteString(u.Text)
			lines = append(lines, slices.Repeat([]int{i}, strings.Count(u.Text, "\n"))...)
		}
	}
	return b.String(), lines
}

// drop removes a unit and all units that use it. It returns the number removed.
func drop(units []Unit, kept map[int]bool, i int) (n int) {
	if !kept[i] {
		return 0
	}
	delete(kept, i)
	n = 1
	for j, u := range units {
		if kept[j] && slices.Contains(u.Uses, i) {
			n += drop(units, kept, j)
		}
	}
	return n
}

var place = regexp.MustCompile(`(?m)` + regexp.QuoteMeta(Main) + `:(\d+):`)

// dropPlaces removes the units in which an error message reports errors. It returns the number
// removed.
func dropPlaces(units []Unit, kept map[int]bool, lines []int, said string) (n int) {
	for _, m := range place.FindAllStringSubmatch(said, -1) {
		if line, _ := strconv.Atoi(m[1]); line > 0 && line <= len(lines) && lines[line-1] >= 0 {
			n += drop(units, kept, lines[line-1])
		}
	}
	return n
}

var errorLine = regexp.MustCompile(`(?m)^.*error: .*$`)

// accepts compiles a header alone. It returns the compiler's error lines, or "" if the compiler
// accepts the header.
func (c *Checker) accepts(ctx context.Context, header string) (string, error) {
	if err := os.WriteFile(filepath.Join(c.Dir, Main), []byte(header), 0o666); err != nil {
		return "", err
	}
	cmd := exec.CommandContext(ctx, c.Compiler.Path, c.Compiler.Flags("-x", "c", "-fsyntax-only", "-I"+c.Dir, filepath.Join(c.Dir, Main))...)
	cmd.Env = append(os.Environ(), "LC_ALL=C")
	out, err := cmd.CombinedOutput()
	if err != nil && ctx.Err() == nil {
		// With the space the result is not "", even if there is no error line.
		return strings.Join(errorLine.FindAllString(string(out), -1), "\n") + " ", nil
	}
	return "", ctx.Err()
}

// Check extracts a table from a header of some units, and compares the table with what the compiler
// says.
func (c *Checker) Check(ctx context.Context, units []Unit) (*Result, error) {
	r := &Result{}
	kept := map[int]bool{}
	for i := range units {
		kept[i] = true
	}
	for {
		header, lines := text(units, kept)
		said, err := c.accepts(ctx, header)
		if err != nil {
			return nil, err
		}
		if said == "" {
			break
		}
		n := dropPlaces(units, kept, lines, said)
		if n == 0 {
			return nil, fmt.Errorf("the compiler names no unit: %s\n%s", said, header)
		}
		r.Invalid += n
	}
	var t *symbols.Table
	for {
		header, lines := text(units, kept)
		var err error
		if t, r.Refused, err = extracted(header); t != nil {
			r.Header = header
			break
		}
		n := dropPlaces(units, kept, lines, place.FindString(err.Error())) // the first error only: other errors may follow from it
		if n == 0 {                                                        // the error names no place: drop the last unit of the shortest prefix that cannot be read
			order := slices.Sorted(maps.Keys(kept))
			low, high := 0, len(order)
			for low+1 < high {
				middle := (low + high) / 2
				part := map[int]bool{}
				for _, i := range order[:middle] {
					part[i] = true
				}
				header, _ := text(units, part)
				if t, _, _ := extracted(header); t != nil {
					low = middle
				} else {
					high = middle
				}
			}
			if high == 0 || len(order) == 0 {
				return nil, fmt.Errorf("no header can be read: %w", err)
			}
			n = drop(units, kept, order[high-1])
		}
		r.Unparsed += n
	}
	r.Units, r.units, r.kept = len(kept), units, kept
	r.Records = len(t.Functions) + len(t.Structs) + len(t.Enums) + len(t.Scalars) + len(t.Aliases) + len(t.Callbacks) + len(t.Constants) + len(t.Handles)
	report, err := c.compare(ctx, r.Header, t)
	if err != nil {
		return nil, fmt.Errorf("%w\n%s", err, r.Header)
	}
	r.Facts = report.Right()
	r.Faults = report.Wrong
	return r, nil
}

// unguessed returns a fault for each parameter that the table calls an output without marking a
// guess. Random headers do not say which parameters are outputs.
func unguessed(t *symbols.Table) (faults []cproof.Fault) {
	for _, f := range t.Functions {
		for _, p := range f.Params {
			if p.Dir == symbols.Out && !p.Guess {
				faults = append(faults, cproof.Fault{Record: "function " + f.Symbol, Kind: "guess", Fact: "direction of " + p.Name, Table: "an output", C: "nothing of it"})
			}
		}
	}
	return faults
}

// compare compares a table with its header, and adds the faults of unguessed. It leaves out
// differences that may be of qualifiers alone (cproof.Unknown). It also leaves out the faults of a
// record that symbols.DecodeTable rejects, because no package is generated from such a table.
func (c *Checker) compare(ctx context.Context, header string, t *symbols.Table) (*cproof.Report, error) {
	if err := os.WriteFile(filepath.Join(c.Dir, Main), []byte(header), 0o666); err != nil {
		return nil, err
	}
	report, err := cproof.Prove(ctx, t, cproof.Input{Compiler: c.Compiler, Description: description(), Dirs: []string{c.Dir}})
	if err != nil {
		return nil, err
	}
	loud := ""
	if text, err := symbols.Encode(t); err != nil {
		loud = err.Error()
	} else if _, err := symbols.DecodeTable("table", text); err != nil {
		loud = err.Error()
	}
	report.Wrong = slices.DeleteFunc(report.Wrong, func(f cproof.Fault) bool { return f.C == cproof.Unknown })
	report.Wrong = slices.Concat(report.Wrong, report.Absent, unguessed(t))
	if loud != "" {
		report.Wrong = slices.DeleteFunc(report.Wrong, func(f cproof.Fault) bool {
			_, name, _ := strings.Cut(f.Record, " ")
			name, _, _ = strings.Cut(name, ".")
			return slices.Contains(word.FindAllString(loud, -1), name)
		})
	}
	return report, nil
}

var word = regexp.MustCompile(`\w+`)

// has reports whether a header compiles and its table has the fault f.
func (c *Checker) has(ctx context.Context, header string, f cproof.Fault) bool {
	t, _, _ := extracted(header)
	if t == nil {
		return false
	}
	if said, err := c.accepts(ctx, header); err != nil || said != "" {
		return false
	}
	report, err := c.compare(ctx, header, t)
	return err == nil && slices.ContainsFunc(report.Wrong, func(g cproof.Fault) bool { return g == f })
}

var token = regexp.MustCompile(`(?m)^[ \t]*#.*\n|__attribute(?:__)?\s*\(\((?:[^()]|\([^()]*\))*\)\)|"[^"\n]*"|'[^'\n]*'|\w+|\n|[ \t]+|[^\w\s]`)

// About returns the units that declare the record of a fault. If closure is set, it adds all units
// that those units use, directly or not.
func (r *Result) About(f cproof.Fault, closure bool) map[int]bool {
	_, name, _ := strings.Cut(f.Record, " ")
	number := regexp.MustCompile(`(?i)fz\d+`).FindString(name)
	part := map[int]bool{}
	var take func(i int)
	take = func(i int) {
		if part[i] {
			return
		}
		part[i] = true
		if closure {
			for _, j := range r.units[i].Uses {
				take(j)
			}
		}
	}
	about := regexp.MustCompile(`(?i)\b` + number + `(\D|$)`)
	for i := range r.kept {
		if number != "" && about.MatchString(r.units[i].Text) {
			take(i)
		}
	}
	return part
}

// Text joins some units of a result.
func (r *Result) Text(part map[int]bool) string {
	var b strings.Builder
	for i, u := range r.units {
		if part[i] {
			b.WriteString(u.Text)
		}
	}
	return b.String()
}

// Minimal returns a small part of the result's header that still has the fault f.
func (c *Checker) Minimal(ctx context.Context, r *Result, f cproof.Fault) string {
	part := r.About(f, true)
	header, _ := text(r.units, part)
	if !c.has(ctx, header, f) {
		if header = r.Header; !c.has(ctx, header, f) {
			return header
		}
	}
	parts := []string{Head}
	for i, u := range r.units {
		if part[i] || header == r.Header && r.kept[i] {
			parts = append(parts, u.Text)
		}
	}
	parts = c.reduce(ctx, parts, len(parts)/2, f)
	parts = strings.SplitAfter(strings.Join(parts, ""), "\n")
	parts = c.reduce(ctx, parts, len(parts)/2, f)
	parts = token.FindAllString(strings.Join(parts, ""), -1)
	parts = c.reduce(ctx, parts, min(16, len(parts)/2), f)
	text := strings.Join(parts, "")
	for _, x := range [][2]string{{"\n\n", "\n"}, {"  ", " "}, {"\n ", "\n"}, {" ;", ";"}} {
		for strings.Contains(text, x[0]) && c.has(ctx, strings.ReplaceAll(text, x[0], x[1]), f) {
			text = strings.ReplaceAll(text, x[0], x[1])
		}
	}
	return strings.TrimSpace(text) + "\n"
}

// reduce removes each run of parts without which the fault stays, long runs first.
func (c *Checker) reduce(ctx context.Context, parts []string, longest int, f cproof.Fault) []string {
	for n := max(longest, 1); n >= 1 && ctx.Err() == nil; {
		less := false
		for i := 0; i < len(parts); {
			end := min(i+n, len(parts))
			if strings.TrimSpace(strings.Join(parts[i:end], "")) == "" {
				i++
				continue
			}
			if try := slices.Concat(parts[:i], parts[end:]); c.has(ctx, strings.Join(try, ""), f) {
				parts, less = try, true
			} else {
				i += max(1, n/2)
			}
		}
		switch {
		case n > 1:
			n /= 2
		case !less:
			return parts
		}
	}
	return parts
}
