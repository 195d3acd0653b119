package compile

import (
	"cmp"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/puregpu/puregpu/runtime/driver"
	"github.com/puregpu/puregpu/runtime/gpu"
)

// A Source is a program in the language of a device's compiler: CUDA C++ on NVIDIA's devices, HIP
// C++ on AMD's. Only Text is required.
type Source struct {
	// Name is a file name for the compiler's messages: "saxpy.cu". It may be empty.
	Name string

	Text string

	// Headers are the texts of headers, by the names in #include. The headers need not be files.
	Headers map[string]string

	// Options are the compiler's options, one for each element: "--std=c++17", "-DTILE=16",
	// "--use_fast_math". An option that names an architecture, such as "-arch=sm_90a" or
	// "--offload-arch=gfx90a:xnack-", replaces the device's architecture.
	Options []string

	// Names are C++ expressions that name kernels and variables: "scale<float>", "math::norm<4>",
	// "&table". The program passes them to [gpu.Module.Kernel] and [gpu.Module.Global]. An instance
	// of a template is compiled only if it is in Names. Kernels and variables that are extern "C"
	// need not be in Names.
	Names []string

	// Revision is the version of the files that the compiler reads and that are not in Headers. If
	// Revision is empty, code of a source that may read files is not kept on disk; see [Cache].
	Revision string

	// Link are further sources, for link-time optimization. Each is compiled by itself, with its
	// own headers, options and names, and all are linked with this source into one module. The
	// sources in Link must not have Link or LinkOptions. On CUDA linking needs nvJitLink besides
	// NVRTC.
	Link []Source

	// LinkOptions are the linker's options. The linker generates the machine code, so its options
	// belong here: "-maxrregcount=64", "-ftz=1".
	LinkOptions []string
}

// check returns the source with Name set, also in each source of Link, or an error if a field is
// wrong.
func (s Source) check() (Source, error) {
	s.Name = cmp.Or(s.Name, "source")
	wrong := func(format string, args ...any) (Source, error) {
		return s, fmt.Errorf("compile: %s: %s: %w", s.Name, fmt.Sprintf(format, args...), gpu.ErrArgument)
	}
	texts := slices.Concat([]string{s.Name, s.Text}, s.Options, s.Names, s.LinkOptions)
	for name, text := range s.Headers {
		if name == "" {
			return wrong("a header without a name")
		}
		texts = append(texts, name, text)
	}
	for _, text := range texts {
		if strings.IndexByte(text, 0) >= 0 {
			return wrong("a NUL byte in %.40q", text)
		}
	}
	if len(s.Link) == 0 && len(s.LinkOptions) > 0 {
		return wrong("LinkOptions without Link")
	}
	s.Link = slices.Clone(s.Link)
	for i, l := range s.Link {
		l, err := l.check()
		if err != nil {
			return s, err
		}
		if len(l.Link) > 0 {
			return wrong("%s, which is to be linked, has Link itself", l.Name)
		}
		s.Link[i] = l
	}
	return s, nil
}

// forDriver returns the source in the driver's form.
func (s Source) forDriver() *driver.Source {
	d := &driver.Source{Name: s.Name, Text: s.Text, Headers: s.Headers, Options: s.Options, Names: s.Names, LinkOptions: s.LinkOptions}
	for _, l := range s.Link {
		d.Link = append(d.Link, *l.forDriver())
	}
	return d
}

// errFiles is the CacheErr of a source that may read files.
var errFiles = errors.New("it may depend on files that are not among its headers: set Source.Revision to their version")

// mayReadFiles reports whether the compiler may read files for a source without a Revision: for s
// itself or for a source in s.Link.
func (s Source) mayReadFiles() bool {
	return s.Revision == "" && s.readsFiles() || slices.ContainsFunc(s.Link, Source.mayReadFiles)
}

// reading lists the prefixes of options that may make a compiler read files.
var reading = []string{"-I", "-i", "--i", "--pre-include", "-pch", "--pch", "-use-pch", "--use-pch", "-create-pch", "--create-pch",
	"@", "-B", "--config", "--sysroot", "-resource-dir", "--rocm", "--hip", "-Xclang", "-fplugin", "-fprofile-", "-fmodule"}

// readsFiles reports whether a compiler may read files for the source. It may report true even if
// the compiler reads no files.
func (s Source) readsFiles() bool {
	for _, o := range s.Options {
		if slices.ContainsFunc(reading, func(r string) bool { return strings.HasPrefix(o, r) }) {
			return true
		}
	}
	for _, text := range s.Headers {
		if readsMore(text, s.Headers) {
			return true
		}
	}
	return readsMore(s.Text, s.Headers)
}

// splice matches the end of a line that continues on the next line. The compiler joins such lines
// first, even in the middle of a word.
var splice = regexp.MustCompile(`\\[ \t\f\v]*(\r\n?|\n\r?)`)

// wordEnds matches the text after a whole word, include or include_next for example.
var wordEnds = regexp.MustCompile(`^(_next)?(\W|$)`)

// readsMore reports whether a text includes a file that is not among the headers, or tests whether
// such a file exists. It ignores conditions such as #if.
func readsMore(text string, headers map[string]string) bool {
	// "??/" is an older spelling of the backslash.
	text = splice.ReplaceAllString(strings.ReplaceAll(text, "??/", `\`), "")
	for _, word := range []string{"include", "import", "embed"} {
		for rest, at := text, 0; ; {
			i := strings.Index(rest, word)
			if i < 0 {
				break
			}
			at += i
			rest = text[at+len(word):]
			if directive(text[:at], rest) {
				name, ok := quoted(strings.TrimLeft(strings.TrimPrefix(rest, "_next"), " \t("))
				if _, known := headers[name]; !ok || !known {
					return true
				}
			}
			at += len(word)
		}
	}
	return false
}

// directive reports whether a word may belong to a preprocessor directive such as #include, or to
// an expression such as __has_include. The parameters before and behind are the text in front of
// the word and after it. A comment may be inside a directive, so directive reports true behind
// every comment, unless the word goes on.
func directive(before, behind string) bool {
	before = strings.TrimRight(before, " \t\r\n\f\v")
	if strings.HasSuffix(before, "*/") {
		return wordEnds.MatchString(behind)
	}
	return slices.ContainsFunc([]string{"#", "%:", "??=", "__has_"}, func(s string) bool { return strings.HasSuffix(before, s) })
}

// quoted returns the name in quotes or angle brackets at the beginning of a text.
func quoted(text string) (name string, ok bool) {
	line, _, _ := strings.Cut(text, "\n")
	switch {
	case strings.HasPrefix(line, `"`):
		name, _, ok = strings.Cut(line[1:], `"`)
	case strings.HasPrefix(line, "<"):
		name, _, ok = strings.Cut(line[1:], ">")
	}
	return name, ok
}
