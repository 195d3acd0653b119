package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"sync"
	"text/tabwriter"

	"github.com/puregpu/puregpu/gen"
	"github.com/puregpu/puregpu/internal/cproof"
	"github.com/puregpu/puregpu/internal/extract"
	"github.com/puregpu/puregpu/symbols"
)

// A foreign is a library outside this project, whose headers bindgen must read without a silent
// mistake.
type foreign struct {
	name    string
	unit    string
	include []string // headers that a program includes
	keep    []string // patterns for included headers that also belong to the library
	prelude []string
	stubs   map[string]string
	uses    []string
	folders []string // folders with headers, below usr/include
	reached bool     // included headers belong to the library too, except the C library's
	least   int      // least percentage of bound functions
}

// CUDA's headers include nv/target in C too, although only their C++ code needs it. That header is
// in another Debian package, so an empty file stands for it.
var cudaStubs = map[string]string{"nv/target": ""}

func cudaLibrary(name string, least int, include string, keep ...string) foreign {
	return foreign{name: name, unit: "headers-cuda-12.4", include: []string{include}, keep: keep, uses: []string{"cuda"}, stubs: cudaStubs, least: least}
}

func debian(name, include string, keep ...string) foreign {
	return foreign{name: name, unit: "bind-main", include: strings.Fields(include), keep: keep}
}

func (f foreign) atLeast(n int) foreign { f.least = n; return f }

func (f foreign) after(lines ...string) foreign { f.prelude = lines; return f }

// asked are the libraries that people ask for.
var asked = []foreign{
	cudaLibrary("cuFFT", 95, "cufft.h", "cuComplex.h", "vector_types.h"), cudaLibrary("cuRAND", 95, "curand.h"),
	cudaLibrary("cuSOLVER", 95, "cusolverDn.h", "cusolver_common.h", "cublas_api.h", "cublas_v2.h", "cuComplex.h", "vector_types.h"), cudaLibrary("nvJPEG", 0, "nvjpeg.h"),
	cudaLibrary("NPP", 0, "npp.h", "npp*.h"), cudaLibrary("cuSPARSE", 0, "cusparse.h", "cuComplex.h", "vector_types.h"), cudaLibrary("nvFatbin", 0, "nvFatbin.h"),
	cudaLibrary("NVTX 3", 0, "nvtx3/nvToolsExt.h", "nvtx3/nvtxDetail/*.h"),
	{name: "cuFile", unit: "bind-cufile", include: []string{"cufile.h"}, uses: []string{"cuda"}},
	debian("HSA", "hsa/hsa.h hsa/hsa_ext_amd.h").atLeast(95), debian("Level Zero", "level_zero/ze_api.h"), debian("Vulkan", "vulkan/vulkan_core.h", "vulkan/vk_platform.h", "vk_video/*.h"),
	debian("OpenCL", "CL/cl.h", "CL/cl_platform.h", "CL/cl_version.h").after("#define CL_TARGET_OPENCL_VERSION 300"), debian("libibverbs", "infiniband/verbs.h", "infiniband/*.h"),
	debian("hwloc", "hwloc.h", "hwloc/*.h", "hwloc/autogen/*.h"), debian("zlib", "zlib.h", "zconf.h").atLeast(95), debian("SQLite", "sqlite3.h"),
}

// others are libraries that many programs use.
var others = []foreign{
	debian("ALSA", "alsa/asoundlib.h", "alsa/*.h"), debian("bzip2", "bzlib.h").after("#include <stdio.h>"), debian("cap", "sys/capability.h"), debian("cJSON", "cjson/cJSON.h"),
	debian("cups", "cups/cups.h", "cups/*.h"), debian("curl", "curl/curl.h", "curl/*.h"), debian("drm", "xf86drm.h", "drm.h", "drm_mode.h"), debian("event", "event2/event.h", "event2/*.h"), debian("expat", "expat.h", "expat_*.h"),
	debian("FFTW", "fftw3.h"), debian("FLAC", "FLAC/all.h", "FLAC/*.h"), debian("FreeType", "ft2build.h freetype/freetype.h", "freetype/*.h", "freetype/config/*.h"), debian("GMP", "gmp.h"), debian("Jansson", "jansson.h", "jansson_config.h"),
	debian("JPEG", "jpeglib.h", "jconfig.h", "jmorecfg.h").after("#include <stddef.h>", "#include <stdio.h>"), debian("lcms2", "lcms2.h"), debian("LMDB", "lmdb.h"), debian("LZ4", "lz4.h lz4frame.h"), debian("LZMA", "lzma.h", "lzma/*.h"),
	debian("magic", "magic.h"), debian("MPFR", "mpfr.h"), debian("nghttp2", "nghttp2/nghttp2.h", "nghttp2/*.h"), debian("numa", "numa.h"), debian("Ogg", "ogg/ogg.h", "ogg/*.h"), debian("OpenSSL", "openssl/evp.h", "openssl/*.h"), debian("Opus", "opus/opus.h", "opus/*.h"),
	debian("PCI", "pci/pci.h", "pci/*.h"), debian("PCRE2", "pcre2.h").after("#define PCRE2_CODE_UNIT_WIDTH 8"), debian("PNG", "png.h", "png*.h"), debian("samplerate", "samplerate.h"), debian("seccomp", "seccomp.h"), debian("sndfile", "sndfile.h"), debian("sodium", "sodium.h", "sodium/*.h"),
	debian("SSH2", "libssh2.h", "libssh2_*.h"), debian("TIFF", "tiffio.h", "tiff*.h"), debian("udev", "libudev.h"), debian("USB", "libusb-1.0/libusb.h"), debian("uv", "uv.h", "uv/*.h"), debian("Vorbis", "vorbis/codec.h", "vorbis/*.h"), debian("WebP", "webp/encode.h webp/decode.h", "webp/*.h"),
	debian("X11", "X11/Xlib.h", "X11/*.h"), debian("xcb", "xcb/xcb.h", "xcb/*.h"), debian("XML 2", "libxml/parser.h", "libxml/*.h"), debian("YAML", "yaml.h"), debian("ZeroMQ", "zmq.h"), debian("Zstandard", "zstd.h"),
}

// foreigns returns all libraries: the lists asked and others, and the drawn libraries.
func foreigns() ([]foreign, error) {
	all := slices.Concat(asked, others)
	list, err := drawnLibraries()
	for _, d := range list {
		all = append(all, foreign{name: d.Package, unit: drawnUnit, include: d.Include, folders: d.Folders, reached: true})
	}
	return all, err
}

const drawnUnit = "bind-drawn"

// fetchable returns the units that have the libraries' headers.
func fetchable() ([]unit, error) {
	list, err := drawnLibraries()
	u := unit{name: drawnUnit, suites: []string{"bookworm"}, components: "main", bind: true}
	for _, d := range list {
		u.packages = append(u.packages, d.Packages...)
	}
	slices.Sort(u.packages)
	u.packages = slices.Compact(u.packages)
	return slices.Concat(bindUnits, headerUnits, []unit{u}), err
}

// A binding is the result of reading a library's headers.
type binding struct {
	bound, unsettled int            // number of bound functions, and of bound functions with a pointer that the overlay must explain
	inline           int            // number of functions that the headers define
	others           int            // number of other declarations that are refused
	facts            int            // number of facts that the compiler confirms
	wrong            []string       // facts that it does not confirm
	refused          map[string]int // number of functions for each kind of reason
	list             []string       // all refused declarations, except functions that the headers define
}

// count returns the number of refused functions.
func (b *binding) count() (n int) {
	for _, k := range b.refused {
		n += k
	}
	return n
}

// why lists the kinds of reasons, the most frequent one first.
func (b *binding) why() string {
	kinds := slices.Collect(maps.Keys(b.refused))
	slices.SortFunc(kinds, func(x, y string) int { return cmp.Or(b.refused[y]-b.refused[x], strings.Compare(x, y)) })
	for i, k := range kinds {
		kinds[i] = fmt.Sprintf("%s: %d", k, b.refused[k])
	}
	return strings.Join(kinds, ", ")
}

// folders returns the folders of headers below a unit's root.
func folders(root string) (dirs []string) {
	for _, name := range []string{"usr/include", "usr/include/x86_64-linux-gnu", "usr/include/libxml2", "usr/include/freetype2", "usr/include/libdrm"} {
		if dir := filepath.Join(root, name); isFolder(dir) {
			dirs = append(dirs, dir)
		}
	}
	return dirs
}

func isFolder(dir string) bool {
	fi, err := os.Stat(dir)
	return err == nil && fi.IsDir()
}

// bind reads a library's headers, refuses what bindgen refuses, and has a C compiler compare the
// rest with the headers.
func (f *foreign) bind(ctx context.Context, cc *cproof.Compiler, dirs []string) (*binding, error) {
	files := slices.Clone(f.include)
	if f.reached {
		files = f.included(ctx, cc, dirs)
	}
	for _, pattern := range f.keep {
		for _, dir := range dirs {
			found, err := filepath.Glob(filepath.Join(dir, pattern))
			if err != nil {
				return nil, err
			}
			for _, file := range found {
				if name, err := filepath.Rel(dir, file); err == nil && !slices.Contains(files, name) {
					files = append(files, name)
				}
			}
		}
	}
	library := strings.ToLower(regexp.MustCompile(`\W`).ReplaceAllString(f.name, ""))
	d := &symbols.Description{
		Library: library, Brand: f.name, Prefixes: symbols.Prefixes{Functions: []string{}, Types: []string{}, Values: []string{}},
		Version: symbols.Numbering{Numbers: []symbols.Number{{Major: 1000, Minor: 10}}},
		Headers: symbols.Headers{
			Files: files, Include: f.include, Prelude: f.prelude, Stubs: f.stubs, Release: symbols.Version{Major: 1}, Since: symbols.SinceOverlay,
		},
		Uses:            f.uses,
		Implementations: []symbols.Implementation{{Name: f.name, Env: "FOREIGN_LIBRARY", Files: map[string][]string{"linux": {"lib" + library + ".so"}}, Hint: "install it"}},
	}
	var all []fs.FS
	for _, dir := range dirs {
		all = append(all, extract.Folder(dir))
	}
	t, err := extract.Table(d, extract.Input{Releases: []fs.FS{extract.Folders(all)}})
	refused, _ := errors.AsType[extract.Refused](err)
	if t == nil {
		return nil, err
	}
	overlay, err := json.Marshal(map[string]any{"sets": []symbols.SetNote{{Name: "core", Since: symbols.Version{Major: 1}, Doc: "all", Match: []string{"*"}}}})
	if err != nil {
		return nil, err
	}
	text, err := symbols.Encode(t)
	if err != nil {
		return nil, err
	}
	b := &binding{refused: map[string]int{}}
	var more []symbols.Refusal
	if len(t.Functions) > 0 { // without functions there is nothing to generate
		lib, err := symbols.Decode("table", text, "overlay", overlay)
		if err == nil {
			err = lib.Describe("description", d)
		}
		if err == nil {
			more, err = gen.Unbindable(lib)
		}
		if err != nil {
			return nil, fmt.Errorf("the table is refused as a whole: %w", err)
		}
		b.bound, b.unsettled = len(lib.Funcs)-len(more), len(lib.Unsettled())
	}
	for _, r := range slices.Concat([]symbols.Refusal(refused), more) {
		switch {
		case strings.Contains(r.Reason, "is defined in the header"):
			b.inline++
			continue
		case function(r, dirs):
			b.refused[kindOf(r.Reason)]++
		default:
			b.others++
		}
		b.list = append(b.list, r.String())
	}
	report, err := cproof.Prove(ctx, t, cproof.Input{Compiler: cc, Description: d, Dirs: dirs})
	if err != nil {
		return b, err
	}
	b.facts = report.Right()
	for _, w := range slices.Concat(report.Wrong, report.Absent) {
		b.wrong = append(b.wrong, w.String())
	}
	return b, nil
}

// included returns the headers of the library and those that they include, without headers of the C
// library.
func (f *foreign) included(ctx context.Context, cc *cproof.Compiler, dirs []string) []string {
	args := cc.Flags("-M", "-x", "c", "-")
	for _, dir := range dirs {
		args = append(args, "-I"+dir)
	}
	cmd := exec.CommandContext(ctx, cc.Path, args...)
	cmd.Stdin = strings.NewReader("#include <" + strings.Join(f.include, ">\n#include <") + ">\n")
	out, _ := cmd.Output() // if the compiler fails, the proof reports the same error
	files := slices.Clone(f.include)
	for _, file := range strings.Fields(string(out)) {
		for _, dir := range dirs { // a header has a name for each folder that contains it
			if name, ok := strings.CutPrefix(file, dir+"/"); ok && strings.Contains(dir, "/"+drawnUnit+"/") && !slices.Contains(files, name) {
				files = append(files, name)
			}
		}
	}
	return files
}

// kinds has patterns for the texts of reasons, with the kind of each. The first that matches
// counts.
var kinds = []struct{ has, kind string }{
	{`is a variadic function`, "variadic callback"}, {`variadic`, "variadic"}, {`va_list`, "va_list"},
	{`can be results|^returns .*struct`, "struct as result"}, {`by value`, "struct by value"},
	{`headers\.files|is a type of <`, "type of other headers"}, {`cannot be read`, "not readable"}, {`without a length`, "flexible array"},
	{`packed|align|bit-field`, "layout"}, {`has an? .*attribute|pragma`, "attribute"}, {`no binding can express`, "no Go type"},
}

// kindOf returns the kind of a reason, in a few words.
func kindOf(reason string) string {
	for _, k := range kinds {
		if regexp.MustCompile(k.has).MatchString(reason) {
			return k.kind
		}
	}
	return "other"
}

// function reports whether a header declares a refused name as a function.
func function(r symbols.Refusal, dirs []string) bool {
	file, _, _ := strings.Cut(r.Where, ":")
	for _, dir := range dirs {
		if text, err := os.ReadFile(filepath.Join(dir, filepath.FromSlash(file))); err == nil {
			return regexp.MustCompile(`(?m)\b` + regexp.QuoteMeta(r.Name) + `\)?\s*\(`).Match(text)
		}
	}
	return strings.Contains(r.Reason, "parameter") || strings.Contains(r.Reason, "returns")
}

// dirs returns the folders of headers: the folders of the unit, then the folders of bind-main,
// which has the C library's headers.
func (f *foreign) dirs(roots map[string]string) []string {
	root := roots[f.unit]
	dirs := folders(root)
	for _, name := range f.folders {
		for _, below := range []string{"usr/include", "usr/include/x86_64-linux-gnu"} {
			if dir := filepath.Join(root, below, name); isFolder(dir) {
				dirs = append(dirs, dir)
			}
		}
	}
	if main := roots["bind-main"]; f.unit != "bind-main" && main != "" {
		dirs = append(dirs, folders(main)...)
	}
	return dirs
}

// bindAll binds libraries whose headers Debian has, and prints a line of a table for each.
func bindAll(ctx, fetching context.Context, w io.Writer, dir string, names []string, verbose, write bool) error {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return err
	}
	cc, err := cproof.Find(ctx, os.Getenv("PUREGPU_TEST_CC"))
	if err != nil {
		return err
	}
	foreigns, err := foreigns()
	if err != nil {
		return err
	}
	all, err := fetchable()
	if err != nil {
		return err
	}
	roots, absent := map[string]string{}, []string{}
	for _, u := range all {
		if u.name != "bind-main" && !slices.ContainsFunc(foreigns, func(f foreign) bool { return f.unit == u.name && (len(names) == 0 || slices.Contains(names, f.name)) }) {
			continue
		}
		root, err := u.fetch(fetching, dir)
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if err != nil {
			absent = append(absent, fmt.Sprintf("%s: %v", u.name, strings.ReplaceAll(err.Error(), "\n", "\n\t")))
			continue
		}
		roots[u.name] = root
	}
	chosen := slices.DeleteFunc(slices.Clone(foreigns), func(f foreign) bool {
		return roots[f.unit] == "" || len(names) > 0 && !slices.Contains(names, f.name)
	})
	bindings, failures := make([]*binding, len(chosen)), make([]error, len(chosen))
	var group sync.WaitGroup
	turns := make(chan bool, runtime.GOMAXPROCS(0))
	for i, f := range chosen {
		dirs := f.dirs(roots)
		turns <- true
		group.Go(func() {
			bindings[i], failures[i] = f.bind(ctx, cc, dirs)
			<-turns
		})
	}
	group.Wait()
	var errs []error
	tab := tabwriter.NewWriter(w, 0, 8, 1, ' ', 0)
	row := func(end string, cells ...any) string {
		text := ""
		for _, c := range cells {
			text += fmt.Sprintf("| %v%s", c, end)
		}
		return text + "|\n"
	}
	heads := []any{"library", "functions bound", "refused", "why", "defined in the header", "other refusals", "with a pointer to settle", "facts", "that disagree"}
	rules := slices.Repeat([]any{"---"}, len(heads))
	guide := "\n" + row(" ", heads...) + row(" ", rules...)
	io.WriteString(tab, row("\t", heads...)+row("\t", rules...))
	var details strings.Builder
	for i, f := range chosen {
		b, err := bindings[i], failures[i]
		if err != nil {
			if _, no := errors.AsType[*cproof.HeadersError](err); no || f.unit != drawnUnit {
				errs = append(errs, fmt.Errorf("%s: %w", f.name, err))
			}
			io.WriteString(tab, row("\t", f.name, "", "all", fmt.Sprintf("%.80s", firstLine(err)), "", "", "", "", ""))
			guide += row(" ", f.name, 0, "all", "what the front end cannot read", "", "", "", "", 0)
			continue
		}
		cells := []any{f.name, b.bound, b.count(), b.why(), b.inline, b.others, b.unsettled, b.facts, len(b.wrong)}
		io.WriteString(tab, row("\t", cells...))
		guide += row(" ", cells...)
		if n := b.bound + b.count(); n > 0 && b.bound*100 < f.least*n {
			errs = append(errs, fmt.Errorf("%s: %d of %d functions are bound, and not %d %%", f.name, b.bound, n, f.least))
		}
		if len(b.wrong) > 0 {
			errs = append(errs, fmt.Errorf("%s: %s disagrees with %d facts:\n\t%s", f.name, cc.Name, len(b.wrong), strings.Join(b.wrong[:min(len(b.wrong), 20)], "\n\t")))
		}
		if verbose {
			for _, r := range b.list {
				fmt.Fprintf(&details, "%s: %s\n", f.name, r)
			}
		}
	}
	tab.Flush()
	io.WriteString(w, details.String())
	for _, a := range absent {
		fmt.Fprintln(w, "could not be had:", a)
	}
	switch {
	case len(chosen) == 0:
		errs = append(errs, errors.New("no headers could be fetched"))
	case write && len(chosen) < len(foreigns):
		errs = append(errs, fmt.Errorf("the guide's table is not written: it has %d of %d libraries", len(chosen), len(foreigns)))
	}
	if err := errors.Join(errs...); err != nil || !write {
		return err
	}
	return writeGuide(guide)
}

const (
	guidePage  = "docs/bindgen-libraries.md"
	guideBegin = "<!-- make bind-headers WRITE=1 writes this table -->\n"
	guideEnd   = "\n<!-- end of the table -->\n"
)

// writeGuide writes the table into the guide.
func writeGuide(table string) error {
	page, err := os.ReadFile(guidePage)
	if err != nil {
		return err
	}
	before, rest, begun := strings.Cut(string(page), guideBegin)
	_, after, ended := strings.Cut(rest, guideEnd)
	if !begun || !ended {
		return fmt.Errorf("%s has no place for the table", guidePage)
	}
	return os.WriteFile(guidePage, []byte(before+guideBegin+table+guideEnd+after), 0o644)
}

func firstLine(err error) string {
	line, _, _ := strings.Cut(err.Error(), "\n")
	return line
}
