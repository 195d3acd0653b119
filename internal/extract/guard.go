package extract

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"path"
	"regexp"
	"runtime"
	"slices"
	"strings"

	"modernc.org/cc/v4"

	"github.com/puregpu/puregpu/internal/regular"
)

// The C front end trusts its input. Some macros expand endlessly, and a header may include itself.
// The front end recurses for brackets and operators, and Go cannot recover from a stack overflow.
// After the star of a pointer the front end looks for a type qualifier. If the input ends there,
// the front end reports the same error until memory runs out.
//
// So headers are first only preprocessed, within limits. Then they are parsed with endOfInput after
// them, which ends the search for a type qualifier.
const (
	maxWork  = 2_000_000 // tokens to expand; the largest headers need 100,000
	maxText  = 16 << 20  // bytes after preprocessing
	maxDepth = 256       // nested brackets
	maxRun   = 4096      // tokens without a comma, a semicolon or a brace
)

const endOfInput = ";extern int puregpu_extract_end;\n"

// A limitError reports a header that exceeds a limit.
type limitError string

func (e limitError) Error() string { return string(e) }

// errEndless reports preprocessing that does not end.
var errEndless = limitError(fmt.Sprintf("more than %d tokens to expand", maxWork))

// translate parses sources, of which the last is a header, and passes their tokens to st.
func translate(cfg *cc.Config, st *stream, sources []cc.Source) (*cc.AST, error) {
	name := sources[len(sources)-1].Name
	first := *cfg
	first.PragmaHandler = st.pragma
	if err := measure(&first, append(slices.Clip(sources), cc.Source{Name: "end of " + name, Value: endOfInput}), io.MultiWriter(new(gauge), st)); err != nil {
		return nil, placed(cfg.FS, name, err)
	}
	st.fold()
	words := "#define __const__ const\n#define " + pragmaWord + "(x)\n#define __attribute__(x)\n#define __attribute(x)\n"
	for _, word := range slices.Sorted(maps.Keys(volatileWords)) {
		words += "#define " + word + "\n"
	}
	for _, word := range slices.Sorted(maps.Keys(foreignFloats)) {
		words += "#define " + word + " float\n"
	}
	sources = append([]cc.Source{{Name: "<words>", Value: words}}, sources...)
	end := cc.Source{Name: "end of " + name, Value: endOfInput}
	ast, err := cc.Parse(cfg, append(slices.Clip(sources), end))
	if err != nil {
		return nil, withoutEnd(err, end.Name)
	}
	// The front end evaluates all macros, even unused ones, each as a separate input.
	var uses strings.Builder
	m := &macroGauge{names: slices.DeleteFunc(slices.Sorted(maps.Keys(ast.Macros)), func(name string) bool { return ast.Macros[name].IsFnLike })}
	for _, name := range m.names {
		uses.WriteString(nextMacro + "\n" + name + "\n;\n")
	}
	err = measure(cfg, append(slices.Clip(sources), cc.Source{Name: "macros of " + name, Value: uses.String()}), m)
	if errors.As(err, new(limitError)) {
		return nil, placed(cfg.FS, name, err)
	}
	text := endOfInput
	for _, name := range m.open() {
		text += "#undef " + name + "\n"
	}
	end.Value = text
	ast, err = cc.Translate(cfg, append(slices.Clip(sources), end))
	if err != nil {
		err = withoutEnd(err, end.Name)
	}
	return ast, err
}

// nextMacro precedes each macro that a macroGauge measures.
const nextMacro = "puregpu_extract_macro"

// A macroGauge measures macros and finds those that leave a bracket open. Such a macro has no
// value, and the front end would search for the closing bracket forever.
type macroGauge struct {
	gauge
	names  []string
	begun  int   // number of macros begun
	depths []int // bracket depth at the end of each macro
}

func (m *macroGauge) Write(token []byte) (int, error) {
	if string(token) == nextMacro {
		m.end()
		m.begun++
		m.gauge = gauge{size: m.size}
		return len(token), nil
	}
	return m.gauge.Write(token)
}

func (m *macroGauge) end() {
	if m.begun > 0 {
		m.depths = append(m.depths, m.depth)
	}
}

func (m *macroGauge) open() (names []string) {
	m.end()
	for i, depth := range m.depths {
		if depth > 0 {
			names = append(names, m.names[i])
		}
	}
	return names
}

// maxErrors is the number of errors of a header that are reported.
const maxErrors = 20

// withoutEnd removes from err the errors in the text after the input. These errors begin with the
// parameter end, the name of that text. If err has no other errors, its first error stays.
// withoutEnd keeps the first maxErrors errors, and adds the number of the rest.
func withoutEnd(err error, end string) error {
	lines := strings.Split(err.Error(), "\n")
	own := slices.DeleteFunc(slices.Clone(lines), func(s string) bool { return strings.HasPrefix(s, end) || s == "" })
	if len(own) == 0 {
		own = lines[:1]
	}
	if more := len(own) - maxErrors; more > 0 {
		own = append(own[:maxErrors], fmt.Sprintf("and %d more errors", more))
	}
	return errors.New(strings.Join(own, "\n"))
}

// measure preprocesses a header within the limits, and passes each token to g.
func measure(cfg *cc.Config, sources []cc.Source, g io.Writer) (err error) {
	defer func() {
		switch p := recover().(type) {
		case nil:
		case runtime.Error: // also the front end's failure at an #include beyond the limit of expansion
			err = errEndless
		default:
			panic(p)
		}
	}()
	limited := *cfg
	limited.ExpansionLimit = maxWork
	err = cc.Preprocess(&limited, sources, g)
	if err != nil && strings.Contains(err.Error(), "ExpansionLimit") {
		err = fmt.Errorf("%w: %w", errEndless, err)
	}
	return err
}

// A gauge measures preprocessed text, one token a call.
type gauge struct{ size, depth, run int }

func (g *gauge) Write(token []byte) (int, error) {
	g.size += len(token)
	switch string(token) {
	case " ", "\n":
	case ",", ";":
		g.run = 0
	case "{":
		g.run = 0
		g.depth++
	case "}":
		g.run = 0
		g.depth--
	case "(", "[":
		g.run++
		g.depth++
	case ")", "]":
		g.run++
		g.depth--
	default:
		g.run++
	}
	switch {
	case g.size > maxText:
		return 0, limitError(fmt.Sprintf("more than %d bytes including its includes", maxText))
	case g.depth > maxDepth:
		return 0, limitError(fmt.Sprintf("more than %d brackets in brackets", maxDepth))
	case g.run > maxRun:
		return 0, limitError(fmt.Sprintf("more than %d tokens without a comma, a semicolon or a brace", maxRun))
	}
	return len(token), nil
}

// placed adds to err the file and line at which a header exceeds a limit, if the text shows the
// place.
func placed(files fs.FS, name string, err error) error {
	if limit, ok := errors.AsType[limitError](err); ok {
		if where := place(files, name, limit, map[string]bool{}); where != "" {
			return fmt.Errorf("%s: %w", where, err)
		}
	}
	return err
}

// place returns the line, in a header or an included header, that exceeds the limit even without
// expansion. If there is no such line, place returns the result of heaviest.
func place(files fs.FS, name string, limit limitError, seen map[string]bool) string {
	text, err := fs.ReadFile(files, name)
	if err != nil || seen[name] {
		return ""
	}
	seen[name] = true
	g, line := new(gauge), 1
	for _, token := range words.FindAll(text, -1) {
		if token[0] == '\n' {
			line++
			continue
		}
		if _, err := g.Write(token); err == error(limit) {
			return fmt.Sprintf("%s:%d", name, line)
		}
	}
	for _, m := range includes.FindAllStringSubmatch(string(text), -1) {
		for _, dir := range []string{path.Dir(name), "."} {
			if where := place(files, path.Join(dir, m[1]), limit, seen); where != "" {
				return where
			}
		}
	}
	return heaviest(name, string(text))
}

var (
	words  = regexp.MustCompile(`\n|\w+|[^\s\w]`)
	define = regexp.MustCompile(`^[ \t]*#[ \t]*define[ \t]+(\w+)(.*)`)
)

// heaviest returns the line of the macro with the longest expansion in a header, or "" if no
// expansion has more than 1000 words. It estimates the length from the names in the macros.
func heaviest(name, text string) string {
	weight := map[string]float64{}
	found, most := "", 1000.
	for i, line := range strings.Split(text, "\n") {
		m := define.FindStringSubmatch(line)
		if m == nil {
			continue
		}
		w := 0.
		for _, word := range words.FindAllString(m[2], -1) {
			w += max(1, weight[word])
		}
		weight[m[1]] = w
		if w > most {
			found, most = fmt.Sprintf("%s:%d: macro %s", name, i+1, m[1]), w
		}
	}
	return found
}

var includes = regexp.MustCompile(`(?m)^[ \t]*#[ \t]*include[ \t]*["<]([^">\n]+)[">]`)

// cycle follows the includes of a header, and returns a chain in which a header includes itself, or
// "". It ignores conditions such as #ifdef, and follows chains of at most 16 headers.
func cycle(files fs.FS, name string, chain ...string) string {
	if i := slices.Index(chain, name); i >= 0 {
		return strings.Join(append(chain[i:], name), " includes ")
	}
	text, err := fs.ReadFile(files, name)
	if err != nil || len(chain) == 16 {
		return ""
	}
	for _, m := range includes.FindAllStringSubmatch(string(text), -1) {
		for _, dir := range []string{path.Dir(name), "."} {
			if found := cycle(files, path.Join(dir, m[1]), append(slices.Clip(chain), name)...); found != "" {
				return found
			}
		}
	}
	return ""
}

// A Folder is a folder of headers.
type Folder string

func (dir Folder) Open(name string) (fs.File, error) {
	if !fs.ValidPath(name) {
		return nil, &fs.PathError{Op: "open", Path: name, Err: errors.New("outside of the folder")}
	}
	f, _, err := regular.Open(path.Join(string(dir), name))
	if err != nil {
		return nil, err
	}
	return f, nil
}

// Folders are several folders of headers. A header comes from the first folder that has it.
type Folders []fs.FS

func (list Folders) Open(name string) (fs.File, error) {
	var first error
	for _, dir := range list {
		f, err := dir.Open(name)
		if err == nil {
			return f, nil
		}
		first = cmp.Or(first, err)
	}
	return nil, first
}

// inFolder adds the folder's name to an error about headers in the folder. The C front end does not
// know folders. An *fs.PathError stays unchanged.
func inFolder(files fs.FS, err error) error {
	if list, ok := files.(Folders); ok && len(list) > 0 {
		files = list[0]
	}
	dir, ok := files.(Folder)
	if _, named := errors.AsType[*fs.PathError](err); err == nil || !ok || named {
		return err
	}
	return fmt.Errorf("headers in %s: %w", string(dir), err)
}
