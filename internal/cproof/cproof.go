// Package cproof proves a symbol table against the C headers that it was extracted from. It does
// not use the C front end that made the table. A C compiler, gcc or clang, reads the original
// headers and evaluates each name of the table, and this package compares the results with the
// table.
//
// For each name the proof writes a line of C after the headers, a fact: the size of a struct as the
// value of a constant, a bit-field written into a constant struct, a function's address. It
// compiles the lines to an object file and reads that file without running it. The constants are in
// the file's sections, and the names of functions in its relocations. A fact that does not compile
// is wrong, or its name is absent from the headers.
package cproof

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/puregpu/puregpu/symbols"
)

// An Input holds the headers that a table is proven against.
type Input struct {
	Compiler    *Compiler
	Description *symbols.Description
	Dirs        []string       // folders of headers, in search order
	Align       map[string]int // struct alignments that the overlay states, by name

	// Union says that the table joins several releases and these headers are one of them. A const
	// may come from another release, so it is not compared.
	Union bool

	// Older says that these headers are of an older release than the table. The proof then compares
	// neither what plain names mean nor aliases of types.
	Older bool
}

// A Report holds the results of the proof of a table.
type Report struct {
	Facts  map[string]int // number of facts that hold, by kind
	Wrong  []Fault        // facts on which the table and the compiler differ
	Absent []Fault        // names that these headers do not declare
	Files  []File         // headers below Input.Dirs: those that the compiler read, and those that the table lists
	Notes  []string
}

// A Fault is a fact that could not be proven.
type Fault struct {
	Record string // "struct vecPair"
	Kind   string // "member offset"
	Fact   string // "offset of b"
	Table  string // the table's value
	C      string // the compiler's value
}

func (f Fault) String() string {
	if f.Table == "" {
		return fmt.Sprintf("%s: %s: %s", f.Record, f.Fact, f.C)
	}
	hint := ""
	if f.Kind == "struct alignment" {
		hint = fmt.Sprintf("; \"align\": %s in the overlay's types says so", f.C)
	}
	return fmt.Sprintf("%s: %s: the table says %s, the compiler %s%s", f.Record, f.Fact, f.Table, f.C, hint)
}

// Unknown is Fault.C of a type that differs from the table's, maybe only by qualifiers. The proof
// cannot tell, because these headers do not compile without qualifiers.
const Unknown = "another type, maybe by qualifiers alone: without these the header is no C"

// A File is a header and its checksum.
type File struct {
	Name   string `json:"name"`
	SHA256 string `json:"sha256"`
}

// Right returns the number of facts that hold.
func (r *Report) Right() (n int) {
	for _, k := range r.Facts {
		n += k
	}
	return n
}

// Err returns an error that lists all wrong and absent facts, or nil.
func (r *Report) Err() error {
	var errs []error
	for _, f := range slices.Concat(r.Wrong, r.Absent) {
		errs = append(errs, errors.New(f.String()))
	}
	return errors.Join(errs...)
}

// A fact is a statement of the table, with C text that makes the compiler evaluate it.
type fact struct {
	record, kind string
	what         string // name of the fact in messages; if "", messages use the field kind
	tries        []string
	table        string                     // the table's value, for messages
	check        func(x *answer) (c string) // returns the compiler's value if it differs, else ""; nil for a line that only later facts need
	qualified    bool                       // a type that may be tried again without qualifiers
	strict       bool                       // a difference in const is a fault

	chosen int    // index of the first of tries that compiles, or -1
	said   string // the compiler's first error about the fact
}

// An answer is the compiler's evaluation of a fact.
type answer struct {
	o     *object
	name  string // the name of the fact's symbol
	tried int    // index in tries
}

// number reads the constant of a fact.
func (x *answer) number() uint64 { return x.o.number(x.name) }

// A mode is a set of macros with which a unit is compiled.
type mode struct {
	flags []string
	bare  bool // the macros remove const
}

// plainer removes the qualifiers that no table records. It also removes noreturn, because to gcc
// the type of a function that does not return is a volatile type.
var plainer = []string{"-Dvolatile=", "-D__volatile=", "-D__volatile__=", "-Drestrict=", "-D__restrict=", "-D__restrict__=", "-Dnoreturn=__unused__", "-D__noreturn__=__unused__"}

var modes = []mode{
	{},
	{flags: plainer},
	{flags: append(slices.Clip(plainer), "-Dconst=", "-D__const="), bare: true},
}

// withoutConst removes the qualifier __const__. __const__ is also the name of an attribute, and
// sys/cdefs.h asks whether the compiler has it, so that header is included first.
const withoutConst = "#if __has_include(<sys/cdefs.h>)\n#include <sys/cdefs.h>\n#endif\n#define __const__\n"

var otherConst = regexp.MustCompile(`\b__const__\s*[\w*]|\*\s*__const__\b`)

// hasOtherConst reports whether a header that the compiler read in the folders has the qualifier
// __const__.
func (p *prover) hasOtherConst() bool {
	for file := range p.files {
		if !slices.ContainsFunc(p.in.Dirs, func(dir string) bool { return strings.HasPrefix(file, dir) }) {
			continue
		}
		if text, err := os.ReadFile(file); err == nil && otherConst.Match(text) {
			return true
		}
	}
	return false
}

var constWords = regexp.MustCompile(`"(?:[^"\\\n]|\\.)*"|'(?:[^'\\\n]|\\.)*'|\b(?:const|__const|__const__)\b`)

// expanded returns the preprocessed text of the headers, without const and macros.
func (p *prover) expanded(ctx context.Context, head string) (string, error) {
	text, err := p.run(ctx, head, append(slices.Clip(plainer), "-E", "-P", "-fsyntax-only"))
	return constWords.ReplaceAllStringFunc(text, func(word string) string {
		if !strings.ContainsAny(word, `"'`) {
			return ""
		}
		return word
	}) + "\n", err
}

// Prove proves t, the table of one release, against headers. It returns an error if the compiler
// cannot run or does not accept the headers. Errors of the table are in the report.
func Prove(ctx context.Context, t *symbols.Table, in Input) (*Report, error) {
	tmp, err := os.MkdirTemp("", "cproof")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(tmp)
	p := &prover{in: in, t: t, cc: in.Compiler, tmp: tmp, report: &Report{Facts: map[string]int{}}, files: map[string]bool{}}
	stubs, err := in.Description.StandIns()
	if err != nil {
		return nil, err
	}
	for name, text := range in.Description.Headers.Stubs {
		stubs[name] = text
	}
	p.stubs = filepath.Join(tmp, "stubs")
	for name, text := range stubs {
		file := filepath.Join(p.stubs, filepath.FromSlash(name))
		if err := errors.Join(os.MkdirAll(filepath.Dir(file), 0o777), os.WriteFile(file, []byte(text), 0o666)); err != nil {
			return nil, err
		}
	}
	h := &in.Description.Headers
	define := h.Old
	if h.Typedefs != nil {
		define = h.Typedefs.Define
	}
	switch {
	case define == "":
		err = p.unit(ctx, "", true, !in.Older)
	case in.Older:
		err = p.unit(ctx, "#define "+define+" 1\n", true, false)
	default:
		// The headers are compiled twice: with the macro, each ABI version has its own name;
		// without it, plain names select versions.
		err = errors.Join(p.unit(ctx, "#define "+define+" 1\n", true, false), p.unit(ctx, "", false, true))
	}
	if err != nil {
		return nil, err
	}
	for _, f := range t.Headers {
		for _, dir := range in.Dirs {
			p.files[filepath.Join(dir, filepath.FromSlash(f.Name))] = true
		}
	}
	if p.report.Files, err = hashes(p.files, in.Dirs); err != nil {
		return nil, err
	}
	return p.report, nil
}

// A prover runs the proof of one table.
type prover struct {
	in         Input
	t          *symbols.Table
	cc         *Compiler
	tmp, stubs string
	report     *Report
	files      map[string]bool
	stubsFirst bool
	std        string            // the flag for a newer standard than C11, or ""
	tags       map[string]string // tags of handles, with struct or union in front
}

// unit compiles the headers with some macros, and facts after them. If plain is set, the facts
// include what plain names mean. If all is set, they include all other facts.
func (p *prover) unit(ctx context.Context, defines string, all, plain bool) error {
	head := p.head(defines, "")
	names, err := p.names(ctx, head)
	if err != nil {
		return err
	}
	w := &writer{t: p.t, names: names, tags: p.tags, align: p.in.Align, inline: p.in.Description.Headers.Inline, older: p.in.Older}
	w.types(all)
	if all {
		for _, name := range w.absent {
			p.report.Absent = append(p.report.Absent, Fault{Record: "type " + name, Kind: "name", Fact: "name", C: "the headers do not declare it, or not its members"})
		}
	}
	w.functions(all, plain)
	facts := w.facts
	for _, m := range modes {
		if m.bare && p.hasOtherConst() {
			head = p.head(defines, withoutConst)
		}
		o, err := p.compile(ctx, head, facts, m.flags)
		noMacros := false
		if _, ok := errors.AsType[*HeadersError](err); ok && m.bare { // for example, a header tests for the attribute const, which is a macro here
			if text, expandErr := p.expanded(ctx, head); expandErr == nil {
				o, err = p.compile(ctx, text, facts, m.flags)
				noMacros = true
			}
		}
		if _, ok := errors.AsType[*HeadersError](err); ok && len(m.flags) > 0 { // the headers do not compile without qualifiers
			for _, f := range facts {
				if f.check != nil {
					p.report.Wrong = append(p.report.Wrong, Fault{f.record, f.kind, cmp.Or(f.what, f.kind), f.table, Unknown})
				}
			}
			break
		}
		if err != nil {
			return err
		}
		var again []*fact
		for i, f := range facts {
			c := f.said
			if f.chosen >= 0 && f.check != nil {
				c = f.check(&answer{o, symbolName(i, f.chosen), f.chosen})
			}
			switch {
			case f.check == nil: // facts that are tried again may need it
				again = append(again, f)
			case c == "" && m.bare && f.strict && !p.in.Union:
				p.report.Wrong = append(p.report.Wrong, Fault{f.record, f.kind, cmp.Or(f.what, f.kind), f.table, "that a const differs"})
			case c == "":
				p.report.Facts[f.kind]++
			case f.qualified && !m.bare:
				again = append(again, f)
			case noMacros:
				p.report.Wrong = append(p.report.Wrong, Fault{f.record, f.kind, cmp.Or(f.what, f.kind), f.table, Unknown})
			case f.chosen < 0 && p.undeclared(c):
				p.report.Absent = append(p.report.Absent, Fault{f.record, f.kind, cmp.Or(f.what, f.kind), "", c})
			default:
				p.report.Wrong = append(p.report.Wrong, Fault{f.record, f.kind, cmp.Or(f.what, f.kind), f.table, c})
			}
		}
		if facts = again; !slices.ContainsFunc(facts, func(f *fact) bool { return f.check != nil }) {
			break
		}
	}
	return nil
}

// undeclared reports whether the compiler's error is about an undeclared name or an incomplete
// type. If the type of a first parameter is unknown, gcc may only report what should come before
// the type's name.
func (p *prover) undeclared(said string) bool {
	if m := expected.FindStringSubmatch(said); m != nil && !p.t.TypeNames()[m[1]] {
		return true
	}
	return strings.Contains(said, "undeclared") || strings.Contains(said, "unknown type name") || strings.Contains(said, "incomplete type")
}

var expected = regexp.MustCompile(`expected '\)' before '(\w+)'`)

// head returns the text that comes before the facts. The last argument is put right before the
// headers.
func (p *prover) head(defines, last string) string {
	h := &p.in.Description.Headers
	var b strings.Builder
	b.WriteString(defines)
	for _, line := range h.Prelude {
		b.WriteString(line + "\n")
	}
	b.WriteString(last)
	for i, name := range h.Included() {
		if i == 0 {
			fmt.Fprintf(&b, "#include <%s>\n", name)
		} else {
			fmt.Fprintf(&b, "#if __has_include(<%s>)\n#include <%s>\n#endif\n", name, name)
		}
	}
	b.WriteString("#include <stddef.h>\n#include <stdint.h>\n")
	return b.String()
}

// names asks the compiler how C writes each type of the table: by a typedef, or with struct, union
// or enum. It leaves out undeclared types and types without a size.
func (p *prover) names(ctx context.Context, head string) (map[string]string, error) {
	var facts []*fact
	var spellings [][]string
	var list []string
	aliases := map[string][]string{} // of each type: an older release may know a renamed type by its alias only
	if p.in.Older {
		for _, a := range p.t.Aliases {
			of := p.t.Canonical(a.Name)
			aliases[of] = append(aliases[of], a.Name)
		}
	}
	ask := func(name string, spelled ...string) {
		if strings.Contains(name, ".") {
			return
		}
		spelled = append(spelled, aliases[name]...)
		if base := numbered.ReplaceAllString(name, ""); base != name { // the extractor may have numbered the name: also try it without the number
			spelled = append(spelled, base)
		}
		f := &fact{}
		for _, s := range spelled {
			f.tries = append(f.tries, "typedef char @[sizeof(*("+s+" *)0)];")
		}
		facts, spellings, list = append(facts, f), append(spellings, spelled), append(list, name)
	}
	for i := range p.t.Structs {
		s := &p.t.Structs[i]
		word := map[bool]string{true: "union ", false: "struct "}[s.Union]
		if s.TagOnly {
			ask(s.Name, word+s.Name, s.Name)
		} else {
			ask(s.Name, s.Name, word+s.Name)
		}
	}
	for _, e := range p.t.Enums {
		if e.Name != "" {
			ask(e.Name, e.Name, "enum "+e.Name)
		}
	}
	for _, s := range p.t.Scalars {
		ask(s.Name, s.Name)
	}
	for _, a := range p.t.Aliases {
		ask(a.Name, a.Name)
		// The writer writes out aliases that the headers lack, but not aliases of a type without a
		// size.
		if p.in.Older && !strings.Contains(a.Name, ".") {
			f := facts[len(facts)-1]
			f.tries, spellings[len(spellings)-1] = append(f.tries, "typedef "+a.Name+" *@;"), append(spellings[len(spellings)-1], a.Name)
		}
	}
	for _, c := range p.t.Callbacks {
		if !strings.Contains(c.Name, ".") { // the name is a pointer to a function, or a function type
			f, spelled := &fact{}, []string{}
			for _, n := range append([]string{c.Name}, aliases[c.Name]...) {
				f.tries = append(f.tries, "typedef __typeof__(*("+n+")0) *@;", "typedef "+n+" *@;")
				spelled = append(spelled, n, n+" *")
			}
			facts, spellings, list = append(facts, f), append(spellings, spelled), append(list, c.Name)
		}
	}
	handles := len(facts)
	for _, h := range p.t.Handles {
		facts, list = append(facts, handleFact(&h)), append(list, h.Name)
	}
	if _, err := p.compile(ctx, head, facts, []string{"-fsyntax-only"}); err != nil {
		return nil, err
	}
	names := map[string]string{}
	p.tags = map[string]string{}
	for i, f := range facts {
		if i >= handles {
			names[list[i]], p.tags[list[i]] = handleSpelling(&p.t.Handles[i-handles], f)
		} else if f.chosen >= 0 {
			names[list[i]] = spellings[i][f.chosen]
		}
	}
	return names, nil
}

// hashes returns the files that lie below the folders, with their checksums and with the names that
// an #include gives them.
func hashes(files map[string]bool, dirs []string) ([]File, error) {
	var out []File
	for file := range files {
		for _, dir := range dirs {
			name, err := filepath.Rel(dir, file)
			if err != nil || strings.HasPrefix(name, "..") {
				continue
			}
			text, err := os.ReadFile(file)
			if errors.Is(err, fs.ErrNotExist) {
				break
			}
			if err != nil {
				return nil, err
			}
			out = append(out, File{filepath.ToSlash(name), Sum(text)})
			break
		}
	}
	slices.SortFunc(out, func(a, b File) int { return strings.Compare(a.Name, b.Name) })
	return slices.Compact(out), nil
}
