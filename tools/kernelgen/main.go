// Command kernelgen makes Go functions from GPU kernels. It embeds a source, which the program
// compiles at run time, or compiled code, and writes a Go file with a type for each kernel. The
// type's method Launch takes the kernel's parameters as arguments and returns a gpu.Op, for
// streams, queues and recordings. A simulated GPU can run a Go function, a twin, in place of the
// kernel.
//
//	//go:generate go run github.com/puregpu/puregpu/tools/kernelgen [flags] FILE...
//
// The files are
//
//   - with -runtime, a source (.cu, .hip): the program compiles it, by package runtime/compile.
//     kernelgen needs no compiler;
//   - without -runtime, a source: kernelgen compiles it with nvcc, clang or NVRTC, or with hipcc,
//     for the architectures of -arch, to zNAME.ptx, .cubin, .fatbin or .hsaco. If the source, the
//     files that it includes in quotes, -arch and -options are as before, kernelgen uses the
//     existing file. If the source, an included file or a flag has changed and there is no
//     compiler, kernelgen keeps the existing file and prints a message;
//   - a source, or a header (.h), with compiled code (.ptx, .cubin, .fatbin, .hsaco, .co): the
//     source or header gives the names and types of the parameters. kernelgen puts several code
//     files for NVIDIA devices into one fat binary;
//   - Triton metadata (.json), one file a kernel. Beside each is its code, .ptx or else .cubin or
//     .hsaco. If the metadata do not have the signature, a file .source or .ttir beside them has
//     it, or a source or a header declares the kernel.
//
// kernelgen writes zNAME.go into the folder of the first file. NAME is the name of that file, or
// -name. The function LoadNAME loads the embedded code, the function CompileNAME compiles the
// embedded source. With -runtime and code, or with -runtime and -arch, -compiler or -force,
// zNAME.go has both.
//
// A tokenizer reads the declarations of kernels. For LoadNAME the kernels must be extern "C" and no
// templates. kernelgen checks the number and the sizes of the code's parameters against the source.
//
// # Flags
//
//	-pkg NAME            the package; $GOPACKAGE by default
//	-name NAME           name of the files, and of types and functions that belong to no single kernel
//	-runtime             write CompileNAME, which compiles the source and the files that it includes in quotes at run time
//	-instance "K<T>"     with -runtime, an instance of the template K. May be repeated
//	-arch A,B,…          compute_75 for PTX, sm_90 for machine code, or gfx942; compute_75 by default
//	-compiler C          nvcc, clang, nvrtc or hipcc; by default the first that is installed and works. $NVCC, $CLANG and $HIPCC name their files
//	-options 'A B …'     options of the compiler, also at run time
//	-type 'C=Go'         the Go type for a C type: float32, [4]float32, Vec3, example.com/geometry.Vec3. May be repeated
//	-arg K.P=Go          the type of kernel K's parameter P, by name or number, such as driver.Ptr for a pointer that may be null. May be repeated
//	-rename NAME=Go      the Go name of a kernel or a variable. May be repeated
//	-skip NAME           a kernel or a variable to leave out. May be repeated
//	-force               compile in any case; a missing compiler is an error
package main

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"flag"
	"fmt"
	gotoken "go/token"
	"io"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/puregpu/puregpu/internal/kernelobject"
	"github.com/puregpu/puregpu/internal/regular"
)

func main() {
	switch err := run(".", os.Args[1:], os.Stdout); {
	case err == nil || errors.Is(err, flag.ErrHelp):
	case errors.Is(err, errUsage):
		os.Exit(2) // the flag package has printed the error
	default:
		fmt.Fprintln(os.Stderr, "kernelgen:", err)
		os.Exit(1)
	}
}

// errUsage means that the command line is wrong.
var errUsage = errors.New("usage")

// A generator has the settings of the command line.
type generator struct {
	dir      string // the folder to which paths are relative
	pkg      string
	name     string
	archs    []string
	compiler string
	options  []string
	types    map[string]goType
	args     map[string]goType
	renames  map[string]string
	skip     map[string]bool
	force    bool

	runtime   bool
	instances []string

	src     *source         // nil if there is none
	headers []runtimeHeader // the headers that it includes
	used    map[string]bool // the types, args, renames and instances of the command line that were used
	out     io.Writer       // for messages
}

// hashMark begins the line with the hash of the compiled input.
const hashMark = "// compiled from "

// run runs the program in a folder.
func run(dir string, args []string, out io.Writer) error {
	g := &generator{
		dir: dir, out: out, types: map[string]goType{}, args: map[string]goType{}, renames: map[string]string{},
		skip: map[string]bool{}, used: map[string]bool{},
	}
	fs := flag.NewFlagSet("kernelgen", flag.ContinueOnError)
	fs.SetOutput(out)
	fs.StringVar(&g.pkg, "pkg", os.Getenv("GOPACKAGE"), "the `package` to write")
	fs.StringVar(&g.name, "name", "", "the `name` of files, and of types and functions of no single kernel")
	archs := fs.String("arch", "", "`architectures`: compute_75, sm_90, gfx942")
	fs.StringVar(&g.compiler, "compiler", "", "`compiler`: nvcc, clang, nvrtc or hipcc")
	options := fs.String("options", "", "`options` of the compiler")
	fs.Func("type", "the Go type for a C type: `C=Go`", pairs(g.types, parseGoType))
	fs.Func("arg", "the type of a parameter: `kernel.param=Go`", pairs(g.args, parseGoType))
	fs.Func("rename", "the name of a kernel or variable in Go: `name=Go`", pairs(g.renames, func(s string) (string, error) {
		if goReserved[s] || !isName(s) || goName(s) != s {
			return "", fmt.Errorf("%q is no exported name of Go", s)
		}
		return s, nil
	}))
	fs.Func("skip", "a kernel or variable to leave out: `name`", func(s string) error {
		g.skip[s] = true
		return nil
	})
	fs.BoolVar(&g.force, "force", false, "compile in any case")
	fs.BoolVar(&g.runtime, "runtime", false, "compile the source at run time, in the program")
	fs.Func("instance", "with -runtime, an instance of a template: `kernel<type>`", func(s string) error {
		if slices.Contains(g.instances, s) {
			return errors.New("it is given twice")
		}
		g.instances = append(g.instances, s)
		return nil
	})
	fs.Usage = func() {
		fmt.Fprintln(out, "usage: kernelgen [flags] FILE...: a source (.cu, .hip), code and a source that declares its kernels, or Triton's .json")
		fs.PrintDefaults()
	}
	if err := fs.Parse(args); errors.Is(err, flag.ErrHelp) {
		return err
	} else if err != nil {
		return fmt.Errorf("%w: %w", errUsage, err)
	}
	g.archs = strings.FieldsFunc(*archs, func(r rune) bool { return r == ',' || r == ' ' })
	g.options = strings.Fields(*options)
	switch {
	case fs.NArg() == 0:
		fmt.Fprintln(out, "no files: give a source, or compiled code and a source that declares its kernels")
		fs.Usage()
		return errUsage
	case !gotoken.IsIdentifier(g.pkg) || g.pkg == "_":
		return fmt.Errorf("%q is no name of a package: give -pkg", g.pkg)
	case g.name != "" && (!isName(g.name) || !gotoken.IsIdentifier("k"+g.name)):
		return fmt.Errorf("-name %q is no name", g.name)
	}
	return g.generate(fs.Args())
}

// pairs returns the function of a flag with the value key=value, which sets an element of a map.
func pairs[T any](to map[string]T, parse func(string) (T, error)) func(string) error {
	return func(s string) error {
		i := strings.LastIndexByte(s, '=')
		if i <= 0 {
			return errors.New("it must be NAME=VALUE")
		}
		v, err := parse(s[i+1:])
		if err == nil {
			to[normalize(s[:i])] = v
		}
		return err
	}
}

// path returns the path of a file.
func (g *generator) path(name string) string {
	if filepath.IsAbs(name) {
		return name
	}
	return filepath.Join(g.dir, name)
}

// generate writes the Go file, and the file of embedded code if there is one, from the input files.
func (g *generator) generate(files []string) error {
	var sources, objects, metas []string
	for _, f := range files {
		switch filepath.Ext(f) {
		case ".cu", ".cuh", ".hip", ".h", ".hpp", ".c", ".cpp":
			sources = append(sources, f)
		case ".json":
			metas = append(metas, f)
		case ".ptx", ".cubin", ".fatbin", ".hsaco", ".co":
			objects = append(objects, f)
		default:
			return fmt.Errorf("%s: unknown kind of file: give .cu or .hip, .ptx, .cubin, .fatbin or .hsaco, or Triton's .json", f)
		}
	}
	ahead := !g.runtime || objects != nil || len(g.archs) > 0 || g.compiler != "" || g.force
	switch {
	case g.runtime && metas != nil:
		return errors.New("-runtime: Triton compiles its kernels itself: leave out -runtime")
	case g.runtime && sources == nil:
		return errors.New("-runtime: give the source for the program to compile")
	case ahead && g.instances != nil:
		return errors.New("-instance needs kernels that are only compiled at run time: give -runtime, without code and compiler flags")
	}
	if len(sources) > 1 {
		return fmt.Errorf("%s: give one source at a time; each makes its own file", strings.Join(sources, ", "))
	}
	at := g.path(filepath.Dir(files[0]))
	if g.name == "" {
		g.name = strings.TrimSuffix(filepath.Base(files[0]), filepath.Ext(files[0]))
	}
	var from []string
	for _, f := range slices.Concat(sources, metas, objects) {
		from = append(from, filepath.Base(f))
	}
	if metas != nil { // leave out the code files, which belong to the metadata
		from = from[:len(sources)+len(metas)]
	}
	m := &module{pkg: g.pkg, name: goName(g.name), from: strings.Join(from, " and ")}
	var src *source
	if sources != nil {
		text, err := regular.ReadFile(g.path(sources[0]))
		if err != nil {
			return err
		}
		g.src = parseFiles(string(text), filepath.ToSlash(sources[0]), g.include)
		src = g.src
	}
	var err error
	switch {
	case metas != nil:
		err = g.triton(m, at, metas, objects, src)
	case objects != nil && src == nil:
		err = fmt.Errorf("%s does not contain the types of its parameters: add a source or a header that declares the kernels", objects[0])
	case objects != nil:
		err = g.compiled(m, at, sources[0], objects, src)
	case !ahead:
		err = g.addUncompiled(m, filepath.Base(sources[0]), src)
	default:
		err = g.source(m, at, sources[0], src)
	}
	if errors.Is(err, errStays) {
		return nil
	} else if err != nil {
		return err
	}
	if g.runtime {
		if err := g.addText(m, at, sources[0]); err != nil {
			return err
		}
	}
	if err := m.check(); err != nil {
		return err
	}
	if err := g.unused(); err != nil {
		return err
	}
	code, err := m.render()
	if err != nil {
		return err
	}
	file := "z" + g.name + ".go"
	notes, err := g.checkFile(m, at, file, code)
	if err != nil {
		return err
	}
	if m.embedded != nil {
		if err := g.write(filepath.Join(at, m.images[0].file), m.embedded); err != nil {
			return err
		}
	}
	if m.replaced != "" {
		if err := os.Remove(filepath.Join(at, m.replaced)); err != nil {
			return err
		}
	}
	for _, note := range append(m.notes, notes...) {
		fmt.Fprintln(g.out, "kernelgen:", note)
	}
	return g.write(filepath.Join(at, file), code)
}

// unused returns an error for flags that name nothing in the input.
func (g *generator) unused() error {
	for _, set := range []struct {
		flag  string
		names []string
	}{{"type", keys(g.types)}, {"arg", keys(g.args)}, {"rename", keys(g.renames)}} {
		for _, name := range set.names {
			if !g.used[name] {
				return fmt.Errorf("-%s %s: there is no such parameter, type or name", set.flag, name)
			}
		}
	}
	return nil
}

func keys[T any](m map[string]T) (all []string) {
	for k := range m {
		all = append(all, k)
	}
	slices.Sort(all)
	return all
}

// write writes a file if its contents change.
func (g *generator) write(name string, data []byte) error {
	if old, err := os.ReadFile(name); err == nil && bytes.Equal(old, data) {
		return nil
	}
	if err := os.WriteFile(name, data, 0o666); err != nil {
		return err
	}
	fmt.Fprintln(g.out, "kernelgen: wrote", filepath.Base(name))
	return nil
}

// maxImage is the greatest size of code.
const maxImage = 256 << 20

// newImage reads device code. file is the name for messages.
func newImage(file string, data []byte) (*image, error) {
	if len(data) > maxImage {
		return nil, fmt.Errorf("%s has %d bytes, more than %d", file, len(data), maxImage)
	}
	codes, err := kernelobject.Read(data)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	return &image{file: file, data: data, codes: codes}, nil
}

// embeddable returns the name of a file for an embed directive in the folder at. The file must be
// in that folder or below it.
func (g *generator) embeddable(at, file string) (string, error) {
	rel, err := filepath.Rel(at, g.path(file))
	if err != nil || !filepath.IsLocal(rel) {
		return "", fmt.Errorf("%s is neither in the folder of the first file nor below it, so Go cannot embed it", file)
	}
	return filepath.ToSlash(rel), nil
}

// compiled makes a module from existing code.
func (g *generator) compiled(m *module, at, file string, objects []string, src *source) error {
	var images [][]byte
	for _, o := range objects {
		data, err := regular.ReadFile(g.path(o))
		if err != nil {
			return err
		}
		images = append(images, data)
	}
	name, err := g.embeddable(at, objects[0])
	if err != nil {
		return err
	}
	data := images[0]
	if len(images) > 1 {
		if data, err = kernelobject.MakeFatbin(images...); err != nil {
			return fmt.Errorf("put %s into a fat binary: %w", strings.Join(objects, ", "), err)
		}
		name = "z" + g.name + ".fatbin"
		m.embedded = data
	}
	im, err := newImage(name, data)
	if err != nil {
		return err
	}
	m.images = append(m.images, im)
	return g.addSource(m, filepath.Base(file), src, 0)
}

// include reads a file that a source includes in quotes. ok is false if there is none beside the
// source: the compiler searches more folders.
func (g *generator) include(name, from string) (text, file string, ok bool) {
	file = path.Join(path.Dir(from), filepath.ToSlash(name))
	if path.IsAbs(name) {
		file = name
	}
	b, err := regular.ReadFile(g.path(filepath.FromSlash(file)))
	if err == nil {
		g.headers = append(g.headers, runtimeHeader{name, filepath.FromSlash(file)})
	}
	return string(b), file, err == nil
}

// errStays means that the existing files are kept.
var errStays = errors.New("what is there stays")

// extensions are the file extensions of compiled code.
var extensions = []string{".ptx", ".cubin", ".fatbin", ".hsaco"}

// source makes a module from a source. It compiles the source if the existing code is not up to
// date, or with -force.
func (g *generator) source(m *module, at, file string, src *source) error {
	if len(g.archs) == 0 {
		if isHIP(file, nil) {
			return fmt.Errorf("%s: give the architectures to compile for: -arch gfx942", file)
		}
		g.archs = []string{"compute_75"}
	}
	full := g.path(file)
	hash, err := g.hash(full, src)
	if err != nil {
		return err
	}
	m.hash = hash
	before, _ := os.ReadFile(filepath.Join(at, "z"+g.name+".go"))
	same := bytes.Contains(before, []byte("\n"+hashMark+hash+"\n"))
	name, data := "", []byte(nil)
	for _, ext := range extensions {
		if b, err := regular.ReadFile(filepath.Join(at, "z"+g.name+ext)); err == nil && bytes.Contains(before, []byte("//go:embed z"+g.name+ext+"\n")) {
			name, data = "z"+g.name+ext, b
		}
	}
	if data == nil || !same || g.force {
		image, ext, err := g.compile(full)
		switch {
		case errors.Is(err, errNoCompiler) && data != nil && !g.force:
			fmt.Fprintf(g.out, "kernelgen: %s has changed since %s was compiled, or the flags have, and is not compiled: %v. What is there stays\n", filepath.Base(file), name, err)
			return errStays
		case errors.Is(err, errNoCompiler):
			return fmt.Errorf("%s: %w. To go on, %s", file, err, g.install(file))
		case err != nil:
			return err
		}
		if name != "" && name != "z"+g.name+ext {
			m.replaced = name
		}
		name, data = "z"+g.name+ext, image
	}
	im, err := newImage(name, data)
	if err != nil {
		return err
	}
	m.images = append(m.images, im)
	m.embedded = data
	return g.addSource(m, filepath.Base(file), src, 0)
}

// hash returns the hash of -arch, -options, a source and the files that it includes in quotes.
func (g *generator) hash(file string, src *source) (string, error) {
	h := sha256.New()
	fmt.Fprintf(h, "%q %q\n", g.archs, g.options)
	had := map[string]bool{}
	var add func(name string, first bool) error
	add = func(name string, first bool) error {
		if had[name] || len(had) > 1000 {
			return nil
		}
		had[name] = true
		text, err := regular.ReadFile(name)
		if err != nil {
			if first {
				return err
			}
			return nil // the compiler may find the file in another folder, or skip the #include
		}
		// A checkout may convert line ends.
		text = bytes.ReplaceAll(text, []byte("\r\n"), []byte("\n"))
		fmt.Fprintf(h, "%s %d\n", filepath.Base(name), len(text))
		h.Write(text)
		for _, i := range quoted(string(text)) {
			if err := add(filepath.Join(filepath.Dir(name), filepath.FromSlash(i)), false); err != nil {
				return err
			}
		}
		return nil
	}
	if err := add(file, true); err != nil {
		return "", err
	}
	return fmt.Sprintf("sha256:%x", h.Sum(nil)), nil
}

// triton makes a module of Triton kernels.
func (g *generator) triton(m *module, at string, metas, objects []string, src *source) error {
	if objects != nil && len(metas) > 1 {
		return errors.New("with several Triton kernels the code is beside their metadata: name no code files")
	}
	for i, meta := range metas {
		text, err := regular.ReadFile(g.path(meta))
		if err != nil {
			return err
		}
		t, err := kernelobject.ReadTriton(text)
		if err != nil {
			return fmt.Errorf("%s: %w", meta, err)
		}
		base := strings.TrimSuffix(meta, filepath.Ext(meta))
		file, err := g.beside(base, objects)
		if err != nil {
			return err
		}
		data, err := regular.ReadFile(g.path(file))
		if err != nil {
			return err
		}
		name, err := g.embeddable(at, file)
		if err != nil {
			return err
		}
		im, err := newImage(name, data)
		if err != nil {
			return err
		}
		im.meta = t
		m.images = append(m.images, im)
		var decl *cKernel
		if src != nil {
			for _, k := range src.kernels {
				if k.name == t.Name {
					decl = k
				}
			}
		}
		sig := t.Signature
		if decl == nil && sig == nil {
			if sig, err = g.signature(base, t.Name); err != nil {
				return err
			}
		}
		if err := g.addTriton(m, i, sig, decl); err != nil {
			return fmt.Errorf("%s: %w", meta, err)
		}
	}
	return nil
}

// beside returns the code file that belongs to metadata.
func (g *generator) beside(base string, objects []string) (string, error) {
	if objects != nil {
		return objects[0], nil
	}
	for _, ext := range []string{".ptx", ".cubin", ".hsaco"} {
		if _, err := regular.Stat(g.path(base + ext)); err == nil {
			return base + ext, nil
		}
	}
	return "", fmt.Errorf("there is no code beside %s.json: %[1]s.ptx, .cubin or .hsaco", base)
}

// signature finds a kernel's signature beside its metadata.
func (g *generator) signature(base, kernel string) ([]kernelobject.TritonParam, error) {
	for _, ext := range []string{".source", ".ttir"} {
		text, err := regular.ReadFile(g.path(base + ext))
		if errors.Is(err, os.ErrNotExist) {
			continue
		} else if err != nil {
			return nil, err
		}
		sig, err := kernelobject.TritonIR(text, kernel)
		if err != nil {
			return nil, fmt.Errorf("%s%s: %w", base, ext, err)
		}
		return sig, nil
	}
	return nil, fmt.Errorf("%s.json does not contain the signature: put %[1]s.source or .ttir beside it, or give a header that declares the kernel in CUDA C++", base)
}
