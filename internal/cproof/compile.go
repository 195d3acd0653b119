package cproof

import (
	"bytes"
	"context"
	"debug/elf"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// A Compiler is a C compiler that makes ELF objects for a 64-bit system, as the tables require.
type Compiler struct {
	Path  string
	Name  string // the name that it reports: "gcc (Debian 12.2.0-14) 12.2.0"
	clang bool
}

// IsGCC reports whether the compiler is gcc.
func (c *Compiler) IsGCC() bool { return !c.clang }

// Flags returns arguments for the compiler, followed by the given ones. With these arguments the
// compiler reports all errors, and an error in a macro at the use of the macro, not at its
// definition.
func (c *Compiler) Flags(more ...string) []string {
	if c.clang {
		return append([]string{"-std=gnu11", "-w", "-ferror-limit=0"}, more...)
	}
	return append([]string{"-std=gnu11", "-w", "-fmax-errors=0", "-ftrack-macro-expansion=0", "-fno-diagnostics-show-caret"}, more...)
}

// ErrNoCompiler is the error of [Find] if there is no compiler.
var ErrNoCompiler = errors.New("no C compiler: install gcc or clang")

// Find returns the compiler with a name. For an empty name it returns the first of gcc, clang and
// cc that exists.
func Find(ctx context.Context, name string) (*Compiler, error) {
	names := []string{name}
	if name == "" {
		names = []string{"gcc", "clang", "cc"}
	}
	for _, n := range names {
		path, err := exec.LookPath(n)
		if err != nil {
			continue
		}
		out, err := exec.CommandContext(ctx, path, "--version").Output()
		if err != nil {
			return nil, fmt.Errorf("%s --version: %w", path, err)
		}
		first, _, _ := strings.Cut(string(out), "\n")
		return &Compiler{path, strings.TrimSpace(first), strings.Contains(first, "clang")}, nil
	}
	if name != "" {
		return nil, fmt.Errorf("%w: there is no %s", ErrNoCompiler, name)
	}
	return nil, ErrNoCompiler
}

// factsFile is the file name that the compiler reports for the lines with facts.
const factsFile = "puregpu-facts"

var factError = regexp.MustCompile(`(?m)^` + factsFile + `:(\d+)(?::\d+)?: (?:fatal )?error: (.*)$`)

// newerC makes the compiler accept the parts of C23 that it supports.
const newerC = "-std=gnu2x"

// A HeadersError says that the compiler does not accept the headers as C.
type HeadersError struct{ Compiler, Said string }

func (e *HeadersError) Error() string {
	return fmt.Sprintf("%s does not accept the headers:\n%s", e.Compiler, e.Said)
}

var missing = regexp.MustCompile(`fatal error: '?([^\s':]+)'?:? (?:No such file|file not found)`)

func symbolName(i, try int) string { return fmt.Sprintf("puregpu_%d_%d", i, try) }

// compile compiles facts after the head. It leaves out tries that do not compile, and sets
// fact.chosen of each fact to the fact's first try that compiles. With -fsyntax-only in flags it
// returns no object.
func (p *prover) compile(ctx context.Context, head string, facts []*fact, flags []string) (*object, error) {
	type line struct{ fact, try int }
	var lines []line
	for i, f := range facts {
		f.chosen, f.said = -1, ""
		for j := range f.tries {
			lines = append(lines, line{i, j})
		}
	}
	syntax := slices.Contains(flags, "-fsyntax-only")
	for range 20 {
		var b strings.Builder
		b.WriteString(head)
		fmt.Fprintf(&b, "#line 1 %q\n", factsFile)
		for _, l := range lines {
			b.WriteString(strings.ReplaceAll(facts[l.fact].tries[l.try], "@", symbolName(l.fact, l.try)))
			b.WriteByte('\n')
		}
		said, err := p.run(ctx, b.String(), flags)
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		if err != nil && strings.Contains(said, "No space left on device") {
			return nil, fmt.Errorf("%s: %w\n%s", p.cc.Name, err, firstLines(said, 3))
		}
		bad := map[int]string{}
		for _, m := range factError.FindAllStringSubmatch(said, -1) {
			n, _ := strconv.Atoi(m[1])
			if bad[n] != "" {
				bad[n] += "; "
			}
			bad[n] += m[2]
		}
		if err == nil {
			for _, l := range lines {
				if f := facts[l.fact]; f.chosen < 0 {
					f.chosen = l.try
				}
			}
			if syntax {
				return nil, nil
			}
			return openObject(filepath.Join(p.tmp, "facts.o"))
		}
		if len(bad) == 0 {
			if !p.stubsFirst && len(p.in.Description.Headers.Stubs) > 0 { // the file that the stub replaces exists here, but is not C
				p.stubsFirst = true
				continue
			}
			if p.std == "" && (syntax || len(flags) == 0) { // the headers may need attributes in brackets or other features newer than C11
				p.std, p.stubsFirst = newerC, false
				continue
			}
			hint := ""
			if m := missing.FindStringSubmatch(said); m != nil {
				hint = fmt.Sprintf("\nit finds no %s: give its folder, or an entry for it in headers.stubs", m[1])
			}
			return nil, &HeadersError{p.cc.Name, firstLines(said, 20) + hint}
		}
		kept := lines[:0:0]
		for i, l := range lines {
			if why, is := bad[i+1]; is {
				if f := facts[l.fact]; f.said == "" {
					f.said = why
				}
				continue
			}
			kept = append(kept, l)
		}
		if len(kept) == len(lines) {
			return nil, fmt.Errorf("%s: %w\n%s", p.cc.Name, err, firstLines(said, 20))
		}
		lines = kept
	}
	return nil, fmt.Errorf("%s: cannot find the facts that compile", p.cc.Name)
}

func firstLines(text string, n int) string {
	lines := strings.Split(strings.TrimSpace(text), "\n")
	return strings.Join(lines[:min(n, len(lines))], "\n")
}

// run compiles a text to facts.o. If the text compiles, run adds the headers that the compiler read
// to p.files.
func (p *prover) run(ctx context.Context, text string, flags []string) (said string, err error) {
	source, deps := filepath.Join(p.tmp, "facts.c"), filepath.Join(p.tmp, "facts.d")
	if err := os.WriteFile(source, []byte(text), 0o666); err != nil {
		return "", err
	}
	args := p.cc.Flags(append(strings.Fields(p.std), "-g0", "-O1", "-U__OPTIMIZE__", "-fno-inline", "-fno-builtin", "-ffunction-sections", "-fno-pic", "-fno-common", "-MD", "-MF", deps)...)
	if p.stubsFirst { // -I or -idirafter, not both: gcc ignores a -I folder that -idirafter repeats
		args = append(args, "-I"+p.stubs)
	}
	for _, dir := range p.in.Dirs {
		args = append(args, "-I"+dir)
	}
	if !p.stubsFirst {
		args = append(args, "-idirafter", p.stubs)
	}
	args = append(args, flags...)
	if !slices.Contains(flags, "-fsyntax-only") {
		args = append(args, "-c", "-o", filepath.Join(p.tmp, "facts.o"))
	}
	cmd := exec.CommandContext(ctx, p.cc.Path, append(args, source)...)
	cmd.Env = append(os.Environ(), "LC_ALL=C")
	out, err := cmd.CombinedOutput()
	if err == nil {
		if text, err := os.ReadFile(deps); err == nil {
			for _, file := range strings.Fields(strings.ReplaceAll(string(text), "\\\n", " ")) {
				p.files[file] = true
			}
		}
	}
	return strings.ReplaceAll(string(out), p.tmp+"/", ""), err
}

// An object is an ELF object file.
type object struct {
	f       *elf.File
	symbols map[string]elf.Symbol
	all     []elf.Symbol
	data    map[elf.SectionIndex][]byte
}

func openObject(file string) (*object, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	f, err := elf.NewFile(bytes.NewReader(text))
	if err != nil {
		return nil, fmt.Errorf("the compiler does not make ELF objects, which the proof needs: %w", err)
	}
	if f.Class != elf.ELFCLASS64 || f.Data != elf.ELFDATA2LSB || f.Machine != elf.EM_X86_64 && f.Machine != elf.EM_AARCH64 {
		return nil, fmt.Errorf("the compiler is for %v, but the tables are for Linux on amd64 and arm64", f.Machine)
	}
	o := &object{f: f, symbols: map[string]elf.Symbol{}, data: map[elf.SectionIndex][]byte{}}
	if o.all, err = f.Symbols(); err != nil && !errors.Is(err, elf.ErrNoSymbols) {
		return nil, err
	}
	for _, s := range o.all {
		o.symbols[s.Name] = s
	}
	return o, nil
}

// bytes returns the first n bytes of a symbol's data, or all bytes if n is negative. It returns nil
// if the object does not have them.
func (o *object) bytes(name string, n int) []byte {
	s, ok := o.symbols[name]
	if !ok || int(s.Section) >= len(o.f.Sections) {
		return nil
	}
	if n < 0 {
		n = int(s.Size)
	}
	section := o.f.Sections[s.Section]
	if section.Type == elf.SHT_NOBITS {
		return make([]byte, n)
	}
	data, ok := o.data[s.Section]
	if !ok {
		data, _ = section.Data()
		o.data[s.Section] = data
	}
	if s.Value+uint64(n) > uint64(len(data)) {
		return nil
	}
	return data[s.Value : s.Value+uint64(n)]
}

func (o *object) number(name string) uint64 {
	b := o.bytes(name, 8)
	if b == nil {
		return 0xbadbadbadbadbad
	}
	return o.f.ByteOrder.Uint64(b)
}

// references returns the symbols that a function refers to, except variables and symbols of the
// proof. Each function is in its own section. If inline is false, a function that the headers
// define is named as such.
func (o *object) references(function string, inline bool) (names []string) {
	s, ok := o.symbols[function]
	if !ok {
		return nil
	}
	for _, r := range o.f.Sections {
		if r.Type != elf.SHT_RELA || r.Info != uint32(s.Section) {
			continue
		}
		data, err := r.Data()
		if err != nil {
			continue
		}
		for ; len(data) >= 24; data = data[24:] {
			i := int(o.f.ByteOrder.Uint64(data[8:]) >> 32)
			if i == 0 || i > len(o.all) {
				continue
			}
			to := o.all[i-1]
			name := to.Name
			if elf.ST_TYPE(to.Info) == elf.STT_SECTION { // a static function is named by its section
				name = strings.TrimPrefix(o.f.Sections[to.Section].Name, ".text.")
			}
			if strings.HasPrefix(name, "puregpu_") || elf.ST_TYPE(to.Info) == elf.STT_OBJECT {
				continue
			}
			if to.Section != elf.SHN_UNDEF && !inline {
				name = "a function that the header defines, " + name
			}
			if !slices.Contains(names, name) {
				names = append(names, name)
			}
		}
	}
	return names
}

// refers reports whether a function of the proof refers to another symbol of the proof.
func (o *object) refers(function, to string) bool {
	s := o.symbols[function]
	for _, r := range o.f.Sections {
		if r.Type != elf.SHT_RELA || r.Info != uint32(s.Section) {
			continue
		}
		data, _ := r.Data()
		for ; len(data) >= 24; data = data[24:] {
			if i := int(o.f.ByteOrder.Uint64(data[8:]) >> 32); i > 0 && i <= len(o.all) && o.all[i-1].Name == to {
				return true
			}
		}
	}
	return false
}
