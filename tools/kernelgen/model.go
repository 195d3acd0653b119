package main

import (
	"cmp"
	"errors"
	"fmt"
	gotoken "go/token"
	"go/types"
	"path"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/puregpu/puregpu/internal/kernelobject"
)

// A module is what one generated file is made from: images or a source, and the kernels and
// variables in them.
type module struct {
	pkg     string
	name    string         // name in Go, such as Saxpy
	from    string         // names of the files, for messages
	hash    string         // result of generator.hash, "" if kernelgen compiles nothing
	text    *runtimeSource // the source that the program compiles, or nil
	images  []*image
	kernels []*kernel
	globals []*global
	notes   []string // messages for the user

	embedded []byte // the first image, if it has to be written
	replaced string // the former image file, to be removed
}

// An image is a file of device code that Go embeds.
type image struct {
	file  string
	data  []byte
	codes []kernelobject.Code
	meta  *kernelobject.Triton // metadata of a Triton kernel
}

// A kernel is a GPU kernel as the generated file declares it: with Go types for its parameters.
type kernel struct {
	name   string
	goName string
	c      bool   // extern "C"
	doc    string // the declaration, for the documentation
	image  int    // index of its image
	params []param
	triton *kernelobject.Triton
	filled int // number of further parameters that the launch of a Triton kernel sets
}

// A param is a parameter.
type param struct {
	name string // name in Go
	typ  goType
	size int // bytes, 0 if unknown
}

// A global is a device variable.
type global struct {
	name   string
	goName string
	doc    string
	image  int
	elem   goType // zero for memory without a type
	count  int    // number of elements, 0 or less if unknown
	bytes  uint64 // 0 if unknown
}

// goReserved are names with a meaning in Go or in the generated file.
var goReserved = map[string]bool{"gpu": true, "driver": true, "simdriver": true, "cuda": true, "smallfloat": true, "errors": true, "fmt": true, "unsafe": true, "_": true}

func init() {
	for t := gotoken.Token(0); t < 256; t++ {
		if t.IsKeyword() {
			goReserved[t.String()] = true
		}
	}
	for _, name := range types.Universe.Names() {
		goReserved[name] = true
	}
}

// goName makes an exported name: vector_add becomes VectorAdd. A name that would not begin with a
// capital letter gets a K in front.
func goName(name string) string {
	var b strings.Builder
	for part := range strings.FieldsFuncSeq(name, func(r rune) bool { return r != '_' && !unicode.IsLetter(r) && !unicode.IsDigit(r) || r == '_' }) {
		r, n := utf8.DecodeRuneInString(part)
		b.WriteRune(unicode.ToUpper(r))
		b.WriteString(part[n:])
	}
	s := b.String()
	if r, _ := utf8.DecodeRuneInString(s); !unicode.IsUpper(r) {
		s = "K" + s
	}
	return s
}

// lower makes an exported name unexported.
func lower(name string) string {
	r, n := utf8.DecodeRuneInString(name)
	return string(unicode.ToLower(r)) + name[n:]
}

// paramNames returns different Go names for parameters, their own names if possible. args is the
// name of the type of the arguments, which no parameter gets.
func paramNames(names []string, args string) []string {
	out, used := make([]string, len(names)), map[string]bool{args: true}
	for i, name := range names {
		if !gotoken.IsIdentifier(name) && !gotoken.IsKeyword(name) || name == "_" {
			name = fmt.Sprintf("p%d", i)
		}
		for goReserved[name] || used[name] {
			name += "_"
		}
		out[i], used[name] = name, true
	}
	return out
}

// own returns a name for an additional parameter, different from all parameters of the kernel.
func (k *kernel) own(name string) string {
	for slices.ContainsFunc(k.params, func(p param) bool { return p.name == name }) {
		name += "_"
	}
	return name
}

// find finds a kernel in an image. The code for each architecture must have the kernel, with
// parameters of the same sizes.
func (im *image) find(name string) (*kernelobject.Kernel, error) {
	var found *kernelobject.Kernel
	for i := range im.codes {
		c := &im.codes[i]
		k := c.Kernel(name)
		switch {
		case k == nil || k.Called:
			return nil, fmt.Errorf("kernel %s is not in %s%s, which has %s", name, im.file, im.forArch(c), list(kernelNames(c)))
		case !k.Told:
			return nil, fmt.Errorf("%s%s does not contain the parameters of kernel %s", im.file, im.forArch(c), name)
		case found != nil && !slices.Equal(found.Sizes(), k.Sizes()):
			return nil, fmt.Errorf("kernel %s has parameters of %v bytes in %s%s, and of %v%s", name, found.Sizes(), im.file, im.forArch(&im.codes[0]), k.Sizes(), im.forArch(c))
		case found == nil:
			found = k
		}
	}
	if found == nil {
		return nil, fmt.Errorf("%s has no readable code: compile without compression (nvcc --no-compress)", im.file)
	}
	return found, nil
}

// forArch describes one of several codes by its architecture.
func (im *image) forArch(c *kernelobject.Code) string {
	if len(im.codes) > 1 && c.Arch != "" {
		return " for " + c.Arch
	}
	return ""
}

func kernelNames(c *kernelobject.Code) (names []string) {
	for _, k := range c.Kernels {
		if !k.Called {
			names = append(names, k.Name)
		}
	}
	return names
}

func list(names []string) string {
	if len(names) == 0 {
		return "no kernel"
	}
	return strings.Join(names, ", ")
}

// addSource adds the kernels and variables that a source declares, without those of -skip. The
// image must have all these kernels, but may lack variables. A kernel or a visible variable of the
// image that the source does not declare is an error, so that none is lost. Exceptions are names of
// -skip, functions that kernels call, and variables that are extern or have a name made by the
// compiler.
func (g *generator) addSource(m *module, file string, s *source, index int) error {
	im := m.images[index]
	if len(s.problems) > 0 {
		return errors.New(s.problems[0])
	}
	declared := map[string]bool{}
	for _, c := range s.kernels {
		declared[c.name] = true
		if g.skip[c.name] {
			continue
		}
		at := fmt.Sprintf("%s: kernel %s", c.at, c.name)
		if flaw := cmp.Or(c.flaw, c.mangled()); flaw != "" {
			return fmt.Errorf("%s: %s. Or leave it out by -skip %s", at, flaw, c.name)
		}
		k, err := im.find(c.name)
		if err != nil {
			return fmt.Errorf("%s: %w", c.at, err)
		}
		made, err := g.fromC(c, im.file, k.Params)
		if err != nil {
			return fmt.Errorf("%s: %w", at, err)
		}
		made.image = index
		m.kernels = append(m.kernels, made)
	}
	if len(im.codes) == 0 {
		return fmt.Errorf("%s has no readable code: compile without compression (nvcc --no-compress)", im.file)
	}
	for _, v := range s.variables {
		declared[v.name] = true
	}
	// lost returns the error for a kernel or a variable of the image without a declaration.
	lost := func(what, name, decl string) error {
		why := ""
		if len(s.hints) > 0 {
			why = " (" + s.hints[0] + ")"
		}
		return fmt.Errorf("%s %s is in %s, but kernelgen finds no declaration of it in %s%s: write it there as %s, not by a macro, or leave it out by -skip %[2]s", what, name, im.file, file, why, decl)
	}
	for i := range im.codes {
		for _, k := range im.codes[i].Kernels {
			if !declared[k.Name] && !g.skip[k.Name] && !k.Called {
				return lost("kernel", k.Name, fmt.Sprintf(`extern "C" __global__ void %s(…)`, k.Name))
			}
		}
		for _, v := range im.codes[i].Variables {
			if v.Visible && !v.Extern && isOwn(v.Name) && !declared[v.Name] && !g.skip[v.Name] {
				decl := "__device__"
				if v.Constant {
					decl = "__constant__"
				}
				return lost("variable", v.Name, fmt.Sprintf("%s TYPE %s", decl, v.Name))
			}
		}
	}
	for _, v := range s.variables {
		if err := g.addVariable(m, file, v, index); err != nil {
			return err
		}
	}
	return nil
}

// isOwn reports whether a variable's name in an image is also its name in the source. A compiler
// has then neither mangled the name nor made it up.
func isOwn(name string) bool {
	return isName(name) && !strings.HasPrefix(name, "__") && !strings.HasPrefix(name, "_Z") && !strings.ContainsFunc(name, func(r rune) bool {
		return r < 0x80 && !isWord(byte(r))
	})
}

// fromC makes a kernel from its declaration, and checks it against params, the parameters in the
// file object. object is "" if there is no such file.
func (g *generator) fromC(c *cKernel, object string, params []kernelobject.Param) (*kernel, error) {
	if object != "" && len(c.params) != len(params) {
		return nil, fmt.Errorf("%d parameters, and in %s %d, of %v bytes", len(c.params), object, len(params), sizesOf(params))
	}
	out := &kernel{name: c.name, goName: g.goName(c.name), c: c.c}
	var names, texts []string
	for _, p := range c.params {
		names, texts = append(names, p.name), append(texts, p.text)
	}
	names = paramNames(names, out.args())
	out.doc = fmt.Sprintf("void %s(%s)", c.name, strings.Join(texts, ", "))
	for i, p := range c.params {
		what := fmt.Sprintf("parameter %d, %s", i, p.text)
		t, given, err := g.given(c.name, p.name, i)
		switch {
		case err != nil:
			return nil, fmt.Errorf("%s: %w", what, err)
		case given:
		case p.flaw != "":
			return nil, fmt.Errorf("%s: %s", what, p.flaw)
		default:
			if t, err = g.paramType(p.typ, p.stars); err != nil {
				return nil, fmt.Errorf("%s: %w", what, err)
			}
		}
		size := t.size
		if object != "" {
			if err := sizeOf(what, t, params[i], object); err != nil {
				return nil, err
			}
			size = params[i].Size
		}
		out.params = append(out.params, param{names[i], t, size})
	}
	return out, nil
}

// sizeOf checks the size of a type.
func sizeOf(what string, t goType, p kernelobject.Param, object string) error {
	switch {
	case p.Size == 0:
		return fmt.Errorf("%s: %s does not contain its size", what, object)
	case t.size != 0 && t.size != p.Size:
		return fmt.Errorf("%s: %s has %d bytes, and the parameter in %s has %d", what, path.Base(t.expr), t.size, object, p.Size)
	}
	return nil
}

func sizesOf(params []kernelobject.Param) []int {
	k := kernelobject.Kernel{Params: params, Told: true}
	return k.Sizes()
}

// given returns the type that the command line gives a parameter.
func (g *generator) given(kernel, name string, index int) (goType, bool, error) {
	for _, key := range []string{kernel + "." + name, fmt.Sprintf("%s.%d", kernel, index)} {
		if t, ok := g.args[key]; ok {
			g.used[key] = true
			return t, true, nil
		}
	}
	return goType{}, false, nil
}

// ctype returns the Go type for a C type.
func (g *generator) ctype(name string) (goType, bool) {
	if t, ok := g.types[name]; ok {
		g.used[name] = true
		return t, true
	}
	t, ok := scalars[normalize(name)]
	return t, ok
}

// resolve follows the source's aliases, such as typedefs, from a type to the type that they stand
// for. It stops at a type for which the command line sets the Go type.
func (g *generator) resolve(typ string, stars int) (string, int, error) {
	if g.src == nil {
		return typ, stars, nil
	}
	return g.src.resolve(typ, stars, func(name string) bool {
		_, ok := g.types[name]
		return ok
	})
}

// paramType returns the Go type of a parameter. A pointer becomes a gpu.Slice. void * becomes a
// gpu.Range, and a pointer to a pointer becomes a slice of addresses. An unknown type is an error.
func (g *generator) paramType(typ string, stars int) (goType, error) {
	typ, stars, err := g.resolve(typ, stars)
	if err != nil {
		return goType{}, err
	}
	t, ok := g.ctype(typ)
	switch {
	case stars > 1:
		return goType{gpuPath + ".Slice[" + driverPath + ".Ptr]", 8}, nil
	case stars == 0 && ok:
		return t, nil
	case stars == 0:
		return goType{}, fmt.Errorf("the Go type for %s is unknown: give it by -type '%[1]s=GoType', where GoType has the same bytes", typ)
	case typ == "void" && !ok, ok && t.isMemory():
		return goType{gpuPath + ".Range", 8}, nil
	case ok:
		return goType{gpuPath + ".Slice[" + t.expr + "]", 8}, nil
	}
	return goType{}, fmt.Errorf("the Go type for %s is unknown: give it by -type '%[1]s=GoType', where GoType has the same bytes, or by -type '%[1]s=gpu.Range' for memory without a type", typ)
}

func (g *generator) goName(name string) string {
	if to, ok := g.renames[name]; ok {
		g.used[name] = true
		return to
	}
	return goName(name)
}

// addVariable adds a variable if the image has it, and otherwise a note.
func (g *generator) addVariable(m *module, file string, v *cVariable, index int) error {
	if g.skip[v.name] {
		return nil
	}
	im := m.images[index]
	var found *kernelobject.Variable
	for i := range im.codes {
		vars := im.codes[i].Variables
		for j := range vars {
			if vars[j].Name == v.name && !vars[j].Extern && found == nil {
				found = &vars[j]
			}
		}
	}
	if found == nil {
		m.notes = append(m.notes, fmt.Sprintf("variable %s of %s is not in %s, and is left out: nothing uses it, or it is static", v.name, file, im.file))
		return nil
	}
	out, err := g.variable(file, v)
	if err != nil {
		return err
	}
	out.image, out.bytes = index, found.Size
	out.doc = fmt.Sprintf("%s, of %d bytes", out.doc, found.Size)
	if t := out.elem; t.size > 0 && found.Size > 0 {
		if want := uint64(v.count) * uint64(t.size); v.count > 0 && want != found.Size || found.Size%uint64(t.size) != 0 {
			return fmt.Errorf("%s: variable %s: %s has %d bytes, and in %s %d", file, v.name, path.Base(t.expr), max(want, uint64(t.size)), im.file, found.Size)
		}
	}
	m.globals = append(m.globals, out)
	return nil
}

// variable makes a variable from its declaration.
func (g *generator) variable(file string, v *cVariable) (*global, error) {
	fail := func(format string, args ...any) (*global, error) {
		return nil, fmt.Errorf("%s: variable %s: %w. Or leave it out by -skip %[2]s", file, v.name, fmt.Errorf(format, args...))
	}
	if v.flaw != "" {
		return fail("%s", v.flaw)
	}
	out := &global{name: v.name, goName: g.goName(v.name), count: v.count}
	typ, stars, err := g.resolve(v.typ, v.stars)
	if err != nil {
		return fail("%w", err)
	}
	t, ok := g.ctype(typ)
	switch {
	case stars > 0:
		t = goType{driverPath + ".Ptr", 8}
	case !ok:
		return fail("the Go type for %s is unknown: give it by -type '%[1]s=GoType', where GoType has the same bytes, or by -type '%[1]s=gpu.Range' for memory without a type", typ)
	case t.isMemory():
		t = goType{}
	}
	what := v.typ + strings.Repeat(" *", min(v.stars, 1)) + strings.Repeat("*", max(v.stars-1, 0))
	if v.constant {
		what = "__constant__ " + what
	} else {
		what = "__device__ " + what
	}
	out.doc, out.elem = what, t
	return out, nil
}

// addTriton adds the Triton kernel of an image. c, if not nil, declares the kernel's parameters
// without those that Triton adds.
func (g *generator) addTriton(m *module, index int, sig []kernelobject.TritonParam, c *cKernel) error {
	im := m.images[index]
	t := im.meta
	fail := func(format string, args ...any) error {
		return fmt.Errorf("kernel %s of Triton: %w", t.Name, fmt.Errorf(format, args...))
	}
	k, err := im.find(t.Name)
	switch {
	case err != nil:
		return fail("%w", err)
	case t.TensorMaps:
		return fail("it takes tensor maps that Triton's host code makes: pass addresses, and have the kernel make descriptors (tl.make_tensor_descriptor)")
	case t.ProfileScratch > 0:
		return fail("it was compiled for a profiler")
	}
	if n := k.Threads; n[0] > 0 && n[0]*n[1]*n[2] != t.Threads {
		return fail("its metadata say %d threads in a block, and %s %d", t.Threads, im.file, n[0]*n[1]*n[2])
	}
	n := len(sig)
	if c != nil {
		n = len(c.params)
	}
	extra := len(k.Params) - n
	if extra < 0 || extra > 2 {
		return fail("%d parameters in its signature, and in %s %d, of %v bytes; up to two more than in the signature are memory that Triton adds", n, im.file, len(k.Params), k.Sizes())
	}
	for i, p := range k.Params[n:] {
		if p.Size != 8 {
			return fail("parameter %d in %s has %d bytes, and is no address of memory that Triton adds: the signature lacks parameters", n+i, im.file, p.Size)
		}
	}
	if t.GlobalScratch > 0 && extra == 0 {
		return fail("it needs %d bytes of memory for each block, and no parameter in %s has the address", t.GlobalScratch, im.file)
	}
	var out *kernel
	if c != nil {
		if out, err = g.fromC(c, im.file, k.Params[:n]); err != nil {
			return fail("%w", err)
		}
	} else if out, err = g.fromTriton(t, sig, k, im.file); err != nil {
		return fail("%w", err)
	}
	out.image, out.triton, out.filled = index, t, extra
	m.kernels = append(m.kernels, out)
	return nil
}

var tritonTypes = map[string]goType{
	"i1": {"bool", 1}, "i8": {"int8", 1}, "i16": {"int16", 2}, "i32": {"int32", 4}, "i64": {"int64", 8},
	"u8": {"uint8", 1}, "u16": {"uint16", 2}, "u32": {"uint32", 4}, "u64": {"uint64", 8},
	"f16": float16, "bf16": bfloat16, "f32": {"float32", 4}, "f64": {"float64", 8}, "f8e4m3": float8E4M3, "f8e5m2": float8E5M2, "f8": {"uint8", 1}, "ptr": {driverPath + ".Ptr", 8},
}

// fromTriton makes a kernel from its signature.
func (g *generator) fromTriton(t *kernelobject.Triton, sig []kernelobject.TritonParam, k *kernelobject.Kernel, object string) (*kernel, error) {
	out := &kernel{name: t.Name, goName: g.goName(t.Name)}
	var names, texts []string
	for _, p := range sig {
		names, texts = append(names, p.Name), append(texts, strings.TrimSpace(p.Name+" "+p.Text))
	}
	names = paramNames(names, out.args())
	out.doc = fmt.Sprintf("%s(%s)", t.Name, strings.Join(texts, ", "))
	for i, p := range sig {
		what := fmt.Sprintf("parameter %d, %s", i, texts[i])
		typ, given, err := g.given(t.Name, p.Name, i)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", what, err)
		}
		if !given {
			elem, known := tritonTypes[p.Type]
			switch {
			case p.Pointer && p.Type == "i1":
				typ = goType{gpuPath + ".Slice[uint8]", 8} // any byte is valid
			case p.Pointer && known:
				typ = goType{gpuPath + ".Slice[" + elem.expr + "]", 8}
			case p.Pointer:
				typ = goType{gpuPath + ".Range", 8}
			case !known:
				return nil, fmt.Errorf("%s: its Go type is unknown: give it by -arg %s.%d=GoType", what, t.Name, i)
			case k.Params[i].Size == 4 && (p.Type == "f16" || p.Type == "bf16"):
				typ = goType{"float32", 4} // Triton passes half-precision scalars as float32
			case k.Params[i].Size == 4 && p.Type == "i1":
				typ = goType{"int32", 4}
			default:
				typ = elem
			}
		}
		if err := sizeOf(what, typ, k.Params[i], object); err != nil {
			return nil, err
		}
		out.params = append(out.params, param{names[i], typ, k.Params[i].Size})
	}
	return out, nil
}

// check checks that all names in the generated file are different.
func (m *module) check() error {
	if len(m.kernels) == 0 {
		return fmt.Errorf("%s: no kernel is left", m.from)
	}
	lowerName := lower(m.name)
	had := map[string]string{
		m.name + "Code": "the code", m.name + "Twins": "the twins", "No" + m.name + "Twins": "the absent twins",
		"Sim" + m.name: "the function for simulated GPUs",
	}
	if m.images != nil {
		had["Load"+m.name], had[lowerName+"Image"] = "the function that loads", "the image"
	}
	if m.text != nil {
		had["Compile"+m.name], had[lowerName+"Text"] = "the function that compiles", "the source"
	}
	own := map[string]bool{}
	for _, t := range m.ownTypes() {
		if other, ok := had[t.name]; ok && !own[t.name] {
			return fmt.Errorf("the type %s of %s would be one of the package, and %s has that name: rename it by -name", t.name, t.of, other)
		}
		own[t.name] = true
		had[t.name] = fmt.Sprintf("the type %s of the package, which -type or -arg names for %s,", t.name, t.of)
	}
	fields := map[string]string{"Close": "the method", "load": "a method", "find": "a method", "exe": "a field", "exes": "a field"}
	add := func(names map[string]string, name, what, c string) error {
		if other, ok := names[name]; ok {
			return fmt.Errorf("%s %s and %s would both be %s in Go: give %[5]s %[2]s another name by -rename %[6]s", what, c, other, name, kindOf(what), quote(c+"=Name"))
		}
		names[name] = what + " " + c
		return nil
	}
	for _, k := range m.kernels {
		if !gotoken.IsIdentifier(k.goName) {
			return fmt.Errorf("kernel %q has no valid Go name: give it one by -rename '%[1]s=Name'", k.name)
		}
		if err := add(had, k.goName, "kernel", k.name); err != nil {
			return err
		}
		if err := add(had, lower(k.goName)+"Args", "the arguments of kernel", k.name); err != nil {
			return err
		}
		if err := add(fields, k.goName, "kernel", k.name); err != nil {
			return err
		}
	}
	for _, v := range m.globals {
		if !gotoken.IsIdentifier(v.goName) {
			return fmt.Errorf("variable %q has no valid Go name: give it one by -rename '%[1]s=Name'", v.name)
		}
		if err := add(fields, v.goName, "variable", v.name); err != nil {
			return err
		}
	}
	return nil
}

// quote quotes a shell argument that has special characters.
func quote(arg string) string {
	if strings.ContainsAny(arg, "<>*&() ") {
		return "'" + arg + "'"
	}
	return arg
}

// kindOf returns the last word of a description: "kernel" of "the arguments of kernel".
func kindOf(what string) string { return what[strings.LastIndexByte(what, ' ')+1:] }

// An ownType is a type of the package itself that the generated file uses.
type ownType struct{ name, of string }

// ownTypes returns the package's own types of parameters and variables.
func (m *module) ownTypes() (all []ownType) {
	add := func(t goType, of string) {
		name := t.expr
		for {
			switch {
			case strings.HasPrefix(name, "["):
				_, name, _ = strings.Cut(name, "]")
			case strings.HasPrefix(name, gpuPath+".Slice["):
				name = strings.TrimSuffix(strings.TrimPrefix(name, gpuPath+".Slice["), "]")
			default:
				name = strings.TrimPrefix(name, "*")
				if name != "" && basic[name] == 0 && !strings.ContainsAny(name, "./") {
					all = append(all, ownType{name, of})
				}
				return
			}
		}
	}
	for _, k := range m.kernels {
		for _, p := range k.params {
			add(p.typ, fmt.Sprintf("kernel %s", k.name))
		}
	}
	for _, v := range m.globals {
		add(v.elem, fmt.Sprintf("variable %s", v.name))
	}
	return all
}
