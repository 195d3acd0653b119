// Package headerfuzz makes C headers at random and compares what the extractor makes of them with what a C compiler does: right or refused, never
// wrong.
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

// A Checker checks headers with a compiler, in a folder that it writes to.
type Checker struct {
	Compiler *cproof.Compiler
	Dir      string
}

// NewChecker writes what random headers include into a folder.
func NewChecker(cc *cproof.Compiler, dir string) (*Checker, error) {
	for name, text := range Files {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o666); err != nil {
			return nil, err
		}
	}
	return &Checker{cc, dir}, nil
}

// A Result is what became of a header.
type Result struct {
	Header   string // what was compared, without what the compiler or the front end does not accept
	Units    int    // how many were compared
	Invalid  int    // units that are not C to the compiler
	Unparsed int    // units that the front end takes for no C
	Refused  int    // declarations that the extractor refuses
	Records  int    // functions and types in the table
	Facts    int
	Faults   []cproof.Fault

	units []Unit
	kept  map[int]bool
}

// Main is the name of the header.
const Main = "fz.h"

func description() *symbols.Description {
	return &symbols.Description{Library: "fz", Headers: symbols.Headers{Files: []string{Main}, Release: symbols.Version{Major: 1}, Since: symbols.SinceOverlay}}
}

// extracted returns the table of a header, and how many declarations were refused. The table is nil where nothing could be read.
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

// text writes the units that are kept, and says to which of them each line belongs.
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

// drop removes a unit and all that need it.
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

// dropPlaces removes the units in whose lines errors are.
func dropPlaces(units []Unit, kept map[int]bool, lines []int, said string) (n int) {
	for _, m := range place.FindAllStringSubmatch(said, -1) {
		if line, _ := strconv.Atoi(m[1]); line > 0 && line <= len(lines) && lines[line-1] >= 0 {
			n += drop(units, kept, lines[line-1])
		}
	}
	return n
}

var errorLine = regexp.MustCompile(`(?m)^.*error: .*$`)

// accepts compiles a header alone. What it returns are the lines with errors.
func (c *Checker) accepts(ctx context.Context, header string) (string, error) {
	if err := os.WriteFile(filepath.Join(c.Dir, Main), []byte(header), 0o666); err != nil {
		return "", err
	}
	cmd := exec.CommandContext(ctx, c.Compiler.Path, c.Compiler.Flags("-x", "c", "-fsyntax-only", "-I"+c.Dir, filepath.Join(c.Dir, Main))...)
	cmd.Env = append(os.Environ(), "LC_ALL=C")
	out, err := cmd.CombinedOutput()
	if err != nil && ctx.Err() == nil {
		return strings.Join(errorLine.FindAllString(string(out), -1), "\n") + " ", nil
	}
	return "", ctx.Err()
}

// Check compares what the extractor and the compiler make of random units.
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
		n := dropPlaces(units, kept, lines, place.FindString(err.Error())) // the other errors come of the first
		if n == 0 {                                                        // it does not say where: the last unit of the shortest beginning that it does not read
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
	r.Faults = append(report.Wrong, unguessed(t)...)
	return r, nil
}

// unguessed returns the outputs that are not marked as guesses, though nothing in a random header says that they are outputs.
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

// compare proves a table against the header that it was made of. What the table's own check complains of is not silent, and left out.
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
	report.Wrong = append(slices.DeleteFunc(report.Wrong, func(f cproof.Fault) bool { return f.C == cproof.Unknown }), report.Absent...)
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

// has reports whether a header is C and has the same fault.
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

// About returns the units of a result that a fault is in, and with closure those that they need.
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

// Text returns units of a result.
func (r *Result) Text(part map[int]bool) string {
	var b strings.Builder
	for i, u := range r.units {
		if part[i] {
			b.WriteString(u.Text)
		}
	}
	return b.String()
}

// Minimal returns a header that has the same fault as a result has, and of which little can be left out.
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

// reduce leaves out runs of parts, long ones first, until no one can be left out.
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
