package gpu

import (
	"encoding/binary"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"path/filepath"
	"slices"
	"strings"

	"github.com/puregpu/puregpu/internal/ownfolder"
	"github.com/puregpu/puregpu/internal/secureenv"
	"github.com/puregpu/puregpu/runtime/driver"
	"github.com/puregpu/puregpu/runtime/internal/diskcache"
)

// A Source is a program in the language of a device's compiler, which is CUDA C++ on NVIDIA's devices and HIP C++ on AMD's. Only Text is
// needed.
type Source struct {
	// Name is what the compiler's messages call the text, as if it was a file's name: "saxpy.cu". It may be empty.
	Name string

	Text string

	// Headers are the texts of headers, by the names that Text, or one of them, includes them by. They need not be files.
	Headers map[string]string

	// Options are for the compiler, in its own words, each an element of its own: "--std=c++17", "-DTILE=16", "--use_fast_math". One
	// that names an architecture is used in place of the device's: "-arch=sm_90a" for what that has alone, "--offload-arch=gfx90a:xnack-".
	Options []string

	// Names are the kernels and variables of C++ that [Executable.Kernel] and [Executable.Global] are to find, as expressions: "scale<float>",
	// "math::norm<4>", "&table". Each instance of a template must be among them, to be compiled at all. What is extern "C" is found by its name in any case.
	Names []string

	// Revision stands for what the compiler reads besides, such as files that are not among Headers: a version of them, which the program
	// has to know. If it is empty, code of a source that may read files is not kept on disk; see [Device.Compile].
	Revision string

	// Link are further sources, for link-time optimization: each is compiled by itself, with headers, options and names of its own, and all are linked
	// with this one into one executable, as if they were one text. They have no Link themselves. On CUDA that takes nvJitLink besides NVRTC.
	Link []Source

	// LinkOptions are for the linker, in its own words. Code is made there, so that options for that belong here: "-maxrregcount=64", "-ftz=1".
	LinkOptions []string
}

// A CompileInfo tells how an executable was compiled.
type CompileInfo struct {
	Compiler string // "NVRTC 12.4", "NVRTC 12.4, nvJitLink 12.4", "hipRTC 6.4.43484"; "" where it was not compiled but loaded
	Target   string // the architecture for which it compiles by itself: "sm_90", "gfx90a"
	Log      string // what the compiler had to say: its warnings

	Cached   bool  // the code was found on disk
	CacheErr error // why it is not kept there, or nil
}

// errFiles is why code is not kept.
var errFiles = errors.New("it may depend on files that are not among its headers: say by Source.Revision which version of them it is")

// Compile compiles a program for the device and loads it. It takes what the compiler takes, up to seconds, on the caller's goroutine, which
// holds nothing meanwhile: the device works, and may be closed. It cannot be cancelled.
//
// CUDA's compiler is NVRTC, a library of NVIDIA's toolkit, which the driver does not bring. It is looked for when it is first needed. The
// code is for the very architecture of the device, or, if NVRTC is too old to know that, PTX for the newest that it knows. HIP's compiler is
// hipRTC, of ROCm; what it makes has not been run on an AMD GPU. On the simulated GPU
// kernels are registered Go functions: of a source count the names of kernels, which must all be registered. A driver without a compiler,
// and one whose compiler is missing, return an error that is [driver.ErrUnsupported] and says what to install.
//
// Sources with Link are linked by nvJitLink, of NVIDIA's toolkit, which is looked for likewise; on HIP they are [driver.ErrUnsupported].
//
// What the compiler says against the source is a [*driver.CompileError] in the error, with file and line of each message:
//
//	if e, ok := errors.AsType[*driver.CompileError](err); ok {
//		for _, m := range e.Messages { … m.File, m.Line, m.Text … }
//	}
//
// Code is kept on disk, in Options.CacheDir, and found there when the same source is compiled again, also by other processes. It is the same if all of the source
// is, including its name, and the compiler, its version and the architecture are. Files that the compiler reads would have to be, too.
// So a source that includes by a name that is not among its headers, or has an option such as -I, is kept only if Revision is
// set. Whether code was found, and why it is not kept, tells [Executable.CompileInfo]. A folder that cannot be written is no error,
// and neither is one that belongs to another user or that others can write to: it is not used.
func (d *Device) Compile(source Source) (*Executable, error) {
	src, err := source.check()
	if err != nil {
		return nil, err
	}
	c, err := d.compiler(src)
	if err != nil {
		return nil, fmt.Errorf("gpu: compile %s: %w", src.Name, err)
	}
	began := d.opt.Tracer.begin()
	b, err := d.compile(c, &source, src)
	d.opt.Tracer.event(TraceCompile, d, began, src.Name, 0, err)
	if err != nil {
		return nil, err
	}
	return d.loadBuilt(src.Name, b)
}

// loadBuilt loads what has been compiled.
func (d *Device) loadBuilt(name string, b *built) (*Executable, error) {
	x, err := d.Load(b.code.Image)
	if err != nil {
		return nil, fmt.Errorf("gpu: code of %s: %w", name, err)
	}
	x.built = b
	return x, nil
}

// CompileInfo tells how the executable was compiled. It is zero if it was loaded.
func (x *Executable) CompileInfo() CompileInfo {
	if x == nil || x.built == nil {
		return CompileInfo{}
	}
	return x.built.info
}

// native returns the name in the code of what a program calls name.
func (x *Executable) native(name string) string {
	if x.built != nil {
		if n, ok := x.built.code.Names[name]; ok {
			return n
		}
	}
	return name
}

// A built program is what an executable was loaded from. It does not change.
type built struct {
	code driver.Code
	info CompileInfo
}

// check returns the source as drivers take it.
func (s *Source) check() (*driver.Source, error) {
	src, err := s.alone()
	if err != nil {
		return nil, err
	}
	for _, text := range s.LinkOptions {
		if strings.IndexByte(text, 0) >= 0 {
			return nil, argument("compile "+src.Name, "a NUL byte in %.40q", text)
		}
	}
	if len(s.Link) == 0 && len(s.LinkOptions) > 0 {
		return nil, argument("compile "+src.Name, "LinkOptions without Link")
	}
	src.LinkOptions = s.LinkOptions
	for i := range s.Link {
		one, err := s.Link[i].alone()
		if err != nil {
			return nil, err
		}
		if len(s.Link[i].Link) > 0 || len(s.Link[i].LinkOptions) > 0 {
			return nil, argument("compile "+src.Name, "%s, which is to be linked, has Link or LinkOptions itself", one.Name)
		}
		src.Link = append(src.Link, *one)
	}
	return src, nil
}

// alone is check for a source without what is linked with it.
func (s *Source) alone() (*driver.Source, error) {
	src := &driver.Source{Name: s.Name, Text: s.Text, Headers: s.Headers, Options: s.Options, Names: s.Names}
	if src.Name == "" {
		src.Name = "source"
	}
	texts := append([]string{src.Name, src.Text}, slices.Concat(s.Options, s.Names)...)
	for name, text := range s.Headers {
		if name == "" {
			return nil, argument("compile "+src.Name, "a header without a name")
		}
		texts = append(texts, name, text)
	}
	for _, text := range texts {
		if strings.IndexByte(text, 0) >= 0 {
			return nil, argument("compile "+src.Name, "a NUL byte in %.40q", text)
		}
	}
	return src, nil
}

// compiler returns the device's compiler, for a source that is to be linked the one that links.
func (d *Device) compiler(src *driver.Source) (c driver.Compiler, err error) {
	if err := d.failed(); err != nil {
		return nil, err
	}
	compilers, ok := d.drv.(driver.Compilers)
	if !ok || !d.caps.Compile {
		return nil, fmt.Errorf("%s has no compiler: %w", d.info.Name, driver.ErrUnsupported)
	}
	err = d.do(func() (err error) {
		if c, err = compilers.Compiler(); err != nil || len(src.Link) == 0 {
			return err
		}
		linkers, ok := c.(driver.Linkers)
		if !ok {
			return fmt.Errorf("%s links no sources: %w", c.Info().Name, driver.ErrUnsupported)
		}
		c, err = linkers.Linker()
		return err
	})
	if err != nil {
		d.check(err)
		return nil, fmt.Errorf("compiler for %s: %w", d.info.Name, err)
	}
	return c, nil
}

// compile returns the code of a source, from the disk if it is there. It holds nothing of the device.
func (d *Device) compile(c driver.Compiler, source *Source, src *driver.Source) (*built, error) {
	by := c.Info()
	b := &built{info: CompileInfo{Compiler: strings.TrimSpace(by.Name + " " + by.Version), Target: by.Target}}
	cache, err := d.opt.cache(by)
	if err == nil && cache != nil && source.mayRead(src) {
		cache, err = nil, errFiles
	}
	b.info.CacheErr = err
	var key diskcache.Key
	if cache != nil {
		key = keyOf(by, source, src)
		if data, ok := cache.Get(key); ok {
			if code, ok := unpack(data); ok {
				b.code, b.info.Log, b.info.Cached = code, code.Log, true
				return b, nil
			}
		}
	}
	if b.code, err = c.Compile(src); err != nil {
		d.check(err)
		return nil, fmt.Errorf("gpu: compile %s on %s: %w", src.Name, d.info.Name, err)
	}
	b.info.Log = b.code.Log
	if cache != nil {
		b.info.CacheErr = cache.Put(key, pack(b.code))
		if errors.Is(b.info.CacheErr, ownfolder.ErrForeign) {
			d.badCache.Do(func() { slog.Warn("gpu: compiled code is not kept", "device", d.info.Name, "err", b.info.CacheErr) })
		}
	}
	return b, nil
}

// cache returns where code is kept: nowhere if there is none, with the reason unless that is as it should be.
func (o *Options) cache(by driver.CompilerInfo) (*diskcache.Cache, error) {
	if o.CacheSize < 0 || by.Transient {
		return nil, nil
	}
	c := diskcache.Cache{Dir: o.CacheDir, Max: o.CacheSize}
	if c.Dir == "" {
		dir, err := secureenv.UserCacheDir()
		if err != nil {
			return nil, err
		}
		c.Dir = filepath.Join(dir, "puregpu")
	}
	return &c, nil
}

// keyFormat is another one for each way of making keys and entries.
const keyFormat = "puregpu compiled code 1"

// keyOf returns the key of a source's code. Every list is preceded by its length, and a text's length is part of the key.
func keyOf(by driver.CompilerInfo, source *Source, src *driver.Source) diskcache.Key {
	parts := []string{keyFormat, by.Name, by.Version, by.Build, by.Target, src.Name, src.Text, source.Revision}
	list := func(texts []string) { parts = append(append(parts, fmt.Sprint(len(texts))), texts...) }
	list(src.Options)
	list(src.Names)
	var headers []string
	for _, name := range slices.Sorted(maps.Keys(src.Headers)) {
		headers = append(headers, name, src.Headers[name])
	}
	list(headers)
	if len(src.Link) > 0 {
		parts = append(parts, fmt.Sprint(len(src.Link)))
		list(src.LinkOptions)
		for i := range src.Link {
			part := keyOf(driver.CompilerInfo{}, &source.Link[i], &src.Link[i])
			parts = append(parts, string(part[:]))
		}
	}
	return diskcache.KeyOf(parts...)
}

// reading are how options begin that name files or folders.
var reading = []string{"-I", "-i", "--i", "--pre-include", "-pch", "--pch", "-use-pch", "--use-pch", "-create-pch", "--create-pch",
	"@", "-B", "--config", "--sysroot", "-resource-dir", "--rocm", "--hip", "-Xclang", "-fplugin", "-fprofile-", "-fmodule"}

// mayRead reports whether the compiler may read files for a source, or for one that is linked with it, of whose version nothing is said.
func (s *Source) mayRead(src *driver.Source) bool {
	if s.Revision == "" && readsFiles(src) {
		return true
	}
	for i := range src.Link {
		if s.Link[i].Revision == "" && readsFiles(&src.Link[i]) {
			return true
		}
	}
	return false
}

// readsFiles reports whether a compiler may read files for a source. It may say so of one for which none does.
func readsFiles(src *driver.Source) bool {
	for _, o := range src.Options {
		if slices.ContainsFunc(reading, func(r string) bool { return strings.HasPrefix(o, r) }) {
			return true
		}
	}
	for _, text := range src.Headers {
		if readsMore(text, src.Headers) {
			return true
		}
	}
	return readsMore(src.Text, src.Headers)
}

// readsMore reports whether a text includes, or asks for, what is not among the headers. Whether a condition leaves that out it does not see.
func readsMore(text string, headers map[string]string) bool {
	for _, word := range []string{"include", "import", "embed"} {
		for rest, at := text, 0; ; {
			i := strings.Index(rest, word)
			if i < 0 {
				break
			}
			at += i
			rest = text[at+len(word):]
			if directive(text[:at]) {
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

// directive reports whether the word behind a text is one for the preprocessor.
func directive(before string) bool {
	for {
		before = strings.TrimRight(before, " \t\r\n\f\v\\")
		if !strings.HasSuffix(before, "*/") {
			break
		}
		before = before[:max(strings.LastIndex(before, "/*"), 0)]
	}
	return slices.ContainsFunc([]string{"#", "%:", "??=", "__has_"}, func(s string) bool { return strings.HasSuffix(before, s) })
}

// quoted returns what a text begins with in quotes or angle brackets.
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

// pack writes code as a list of texts, each behind its length.
func pack(code driver.Code) []byte {
	var b []byte
	put := func(text string) { b = append(binary.AppendUvarint(b, uint64(len(text))), text...) }
	put(string(code.Image))
	put(code.Log)
	for _, name := range slices.Sorted(maps.Keys(code.Names)) {
		put(name)
		put(code.Names[name])
	}
	return b
}

// unpack reads what pack wrote.
func unpack(b []byte) (code driver.Code, ok bool) {
	var texts [][]byte
	for len(b) > 0 {
		size, n := binary.Uvarint(b)
		if n <= 0 || size > uint64(len(b)-n) {
			return code, false
		}
		texts, b = append(texts, b[n:n+int(size)]), b[n+int(size):]
	}
	if len(texts) < 2 || len(texts)%2 != 0 {
		return code, false
	}
	code = driver.Code{Image: texts[0], Log: string(texts[1]), Names: map[string]string{}}
	for i := 2; i < len(texts); i += 2 {
		code.Names[string(texts[i])] = string(texts[i+1])
	}
	return code, true
}
