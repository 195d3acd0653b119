package gen

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	. "github.com/dave/jennifer/jen"

	"github.com/puregpu/puregpu/symbols"
)

// ownNames lists the exported names of the package that do not come from the table.
func (p *pkg) ownNames() []string {
	names := []string{"Library", "Options", "FormatVersion"}
	for i := range p.desc.Implementations {
		names = append(names, p.desc.Implementations[i].OpenName())
	}
	return names
}

// variable names a variable of an implementation: "spec" for the first, "rcclSpec" for RCCL.
func variable(m *symbols.Implementation, name string) string {
	if m.Lib == "" {
		return name
	}
	return m.Lib + strings.ToUpper(name[:1]) + name[1:]
}

// emitLibrary writes the type Library, an Open function for each implementation, and the functions
// about versions.
func (p *pkg) emitLibrary() (*File, error) {
	version, err := p.versionFunction()
	if err != nil {
		return nil, err
	}
	f := p.newFile("")
	names := make([]string, len(p.desc.Implementations))
	for i, m := range p.desc.Implementations {
		names[i] = m.Name
	}
	doc(f.Group, fmt.Sprintf("A Library is an open library: %s. The zero Library is not open: its methods return [dl.ErrNotOpen]. It must not be copied. "+
		"All methods may be called concurrently.", strings.Join(names, " or ")))
	f.Type().Id("Library").Struct(
		Qual(dlPath, "Library"),
		Id("fns").Index(Id("numFuncs")).Uintptr(),
	).Line()
	doc(f.Group, "Options say where to look; the zero value is the usual way.")
	f.Type().Id("Options").Op("=").Qual(dlPath, "Options").Line()
	for i := range p.desc.Implementations {
		p.emitOpen(f, &p.desc.Implementations[i])
	}
	f.Comment("// floor is the oldest release that has the required functions.")
	f.Const().Id("floor").Op("=").Lit(p.desc.Version.Encode(p.lib.Sets[0].Since)).Line()
	p.emitFormat(f)
	f.Add(version)
	return f, nil
}

// emitOpen writes an implementation's specification, and the function that opens the
// implementation.
func (p *pkg) emitOpen(f *File, m *symbols.Implementation) {
	text := fmt.Sprintf("%s loads the library (%s) and resolves its functions. It tries opt.Path, else the file that %s names, else opt.Dirs, the folders in PUREGPU_LIBRARY_PATH and $ORIGIN/lib, "+
		"then %s. Of several files it takes the first that is ready, as [dl.Spec] has it.",
		m.OpenName(), m.Name, m.Env, places(m))
	if m.Doc != "" {
		text += " " + m.Doc
	}
	doc(f.Group, text)
	spec := variable(m, "spec")
	f.Func().Id(m.OpenName()).Params(Id("opt").Id("Options")).Params(Op("*").Id("Library"), Error()).Block(
		Id("l").Op(":=").New(Id("Library")),
		If(
			Err().Op(":=").Id("l").Dot("Library").Dot("Open").Call(Op("&").Id(spec), Id("l").Dot("fns").Index(Op(":")), Id("opt")),
			Err().Op("!=").Nil(),
		).Block(Return(Nil(), Err())),
		Return(Id("l"), Nil()),
	).Line()
	f.Var().Id(spec).Op("=").Qual(dlPath, "Spec").ValuesFunc(func(g *Group) {
		line := func(pairs ...pair) { g.Line().Add(List(record(pairs...)...)) }
		line(pair{"Name", Lit(m.Name)}, pair{"Package", Lit(p.desc.Library)}, pair{"Env", Lit(m.Env)})
		line(pair{"Names", Id(variable(m, "names"))}, pair{"Dirs", Id(variable(m, "dirs"))},
			pair{"Symbols", Id("symbols").Index(Op(":"))}, pair{"Sets", Id("sets").Index(Op(":"))})
		line(pair{"Format", Id("FormatVersion")}, pair{"Floor", Id("floor")}, pair{"Version", p.versionHook()},
			pair{"Resolve", hook(p.desc.Hooks.Resolve)}, pair{"Ready", hook(p.desc.Hooks.Ready)})
		line(pair{"Hint", Lit(m.Hint)})
		g.Line()
	}).Line()
}

// hook names a handwritten function, or returns nil if there is none.
func hook(name string) *Statement {
	if name == "" {
		return nil
	}
	return Id(name)
}

func (p *pkg) versionHook() *Statement {
	if h := p.desc.Hooks.Version; h != "" {
		return Id(h)
	}
	if p.desc.Version.Function != "" {
		return Id("libraryVersion")
	}
	return nil
}

// places lists the file names and folders that the loader tries on each system.
func places(m *symbols.Implementation) string {
	var all []string
	for _, os := range slices.Sorted(maps.Keys(m.Files)) {
		s := systemNames[os] + " " + list(m.Files[os]) + " by the system's own rules"
		if dirs := m.Dirs[os]; len(dirs) > 0 {
			s += ", then in " + list(dirs)
		}
		all = append(all, s)
	}
	return strings.Join(all, "; ")
}

var systemNames = map[string]string{"linux": "on Linux", "windows": "on Windows"}

// emitNames writes the names of the library's file: a Go file for each system, and one for systems
// without the library.
func (p *pkg) emitNames() map[string]*File {
	files := map[string]*File{}
	others := ""
	for _, os := range p.desc.Systems() {
		files["znames_"+os+".go"] = p.emitNamesOf(os, "")
		if others != "" {
			others += " && "
		}
		others += "!" + os
	}
	files["znames_other.go"] = p.emitNamesOf("", others)
	return files
}

func (p *pkg) emitNamesOf(os, constraint string) *File {
	f := p.newFile(constraint)
	f.Comment("// File names for the system loader, and directories to search after that.")
	f.Var().DefsFunc(func(g *Group) {
		for i := range p.desc.Implementations {
			m := &p.desc.Implementations[i]
			for _, v := range []struct {
				name string
				list []string
			}{{"names", m.Files[os]}, {"dirs", m.Dirs[os]}} {
				if len(v.list) == 0 {
					g.Id(variable(m, v.name)).Index().String()
					continue
				}
				g.Id(variable(m, v.name)).Op("=").Index().String().ValuesFunc(func(g *Group) {
					for _, s := range v.list {
						g.Lit(s)
					}
				})
			}
		}
	})
	return f
}

// emitFormat writes FormatVersion.
func (p *pkg) emitFormat(f *File) {
	n := &p.desc.Version
	newest := n.Encode(p.lib.Version)
	how := "version that is a number"
	if i := p.funcIndex(n.Function); i >= 0 && len(p.funcs[i].params) < 2 {
		how = "version as " + n.Function + " gives it"
	}
	doc(f.Group, fmt.Sprintf("FormatVersion prints a %s: %d is %v.", how, newest, n.Decode(newest)))
	f.Func().Id("FormatVersion").Params(Id("v").Qual(dlPath, "Version")).String().BlockFunc(func(g *Group) {
		for i := range n.Numbers {
			if i+1 < len(n.Numbers) {
				next := n.Numbers[i+1]
				g.If(Id("v").Op("<").Lit(n.Encode(next.Since))).BlockFunc(func(g *Group) { emitParts(g, n.Numbers[i], n.Build) })
				continue
			}
			emitParts(g, n.Numbers[i], n.Build)
		}
	}).Line()
}

// emitParts writes code that returns the version v as text. A build number of 0 is left out.
func emitParts(g *Group, w symbols.Number, build bool) {
	part := func(above, unit int) *Statement {
		s := Id("v")
		if above > 0 {
			s.Op("%").Lit(above)
		}
		if unit > 1 {
			s.Op("/").Lit(unit)
		}
		return s
	}
	sprintf := func(format string, args ...Code) *Statement {
		return Qual("fmt", "Sprintf").Call(append([]Code{Lit(format)}, args...)...)
	}
	major, minor := part(0, w.Major), part(w.Major, w.Minor)
	switch {
	case w.Patch == 0:
		g.Return(sprintf("%d.%d", major, minor))
	case build:
		g.If(Id("build").Op(":=").Add(part(w.Minor, w.Patch)), Id("build").Op("!=").Lit(0)).Block(
			Return(sprintf("%d.%d.%d", major, minor, Id("build"))),
		)
		g.Return(sprintf("%d.%d", major, minor))
	default:
		g.Return(sprintf("%d.%d.%d", major, minor, part(w.Minor, w.Patch)))
	}
}

// versionFunction writes libraryVersion, or nothing if the description names no version function.
func (p *pkg) versionFunction() (Code, error) {
	n := &p.desc.Version
	if n.Function == "" {
		return Null(), nil
	}
	i := p.funcIndex(n.Function)
	if i < 0 {
		return nil, fmt.Errorf("gen: %s: the version function %s is not bound", p.desc.Library, n.Function)
	}
	fn := p.funcs[i]
	for _, a := range fn.params {
		if a.role != roleOut || a.typ.kind != kindInt || a.typ.size != 4 {
			return nil, fmt.Errorf("gen: %s: %s cannot tell the version: its parameter %s is not an output of type int", p.desc.Library, n.Function, a.c.Name)
		}
	}
	body, err := p.askVersion(fn)
	if err != nil {
		return nil, err
	}
	return Comment("// libraryVersion asks the library for its version.").Line().
		Func().Id("libraryVersion").Params(Id("l").Op("*").Qual(dlPath, "Library")).Params(Qual(dlPath, "Version"), Error()).BlockFunc(body), nil
}

// funcIndex returns the index of the function that binds a symbol, or -1.
func (p *pkg) funcIndex(symbol string) int {
	return slices.IndexFunc(p.funcs, func(f function) bool { return f.sym.Symbol == symbol })
}

// askVersion writes the call of the function that returns the version.
func (p *pkg) askVersion(fn function) (func(*Group), error) {
	n := &p.desc.Version
	wrap := func() *Statement {
		return Qual("fmt", "Errorf").Call(Lit(n.Function+": %w"), Err())
	}
	if fn.ret == retValue && fn.value.kind == kindInt && len(fn.params) == 0 {
		return func(g *Group) {
			g.List(Id("v"), Err()).Op(":=").Id("l").Dot("Slow").Call(Id(fn.index))
			g.If(Err().Op("!=").Nil()).Block(Return(Lit(0), wrap()))
			g.Return(Qual(dlPath, "Version").Call(Id("v")), Nil())
		}, nil
	}
	weights := []int{n.Numbers[0].Major, n.Numbers[0].Minor, n.Numbers[0].Patch}
	switch {
	case fn.ret != retResult || len(fn.params) == 0 || len(fn.params) > 3:
		return nil, fmt.Errorf("gen: %s: %s cannot tell the version: it must return an error code and write one, two or three ints, or return an int", p.desc.Library, n.Function)
	case len(fn.params) > 1 && len(n.Numbers) > 1:
		return nil, fmt.Errorf("gen: %s: %s returns the parts of a version, which allows only one way of numbering", p.desc.Library, n.Function)
	case len(fn.params) == 3 && weights[2] == 0:
		return nil, fmt.Errorf("gen: %s: %s returns three parts of a version, but a version number has two", p.desc.Library, n.Function)
	}
	stub, err := p.enumerator(n.Stub)
	if err != nil {
		return nil, err
	}
	return func(g *Group) {
		g.Id("p").Op(":=").New(Index(Lit(len(fn.params))).Int32())
		g.If(
			Err().Op(":=").Id("check").Call(Id("l").Dot("Slow").CallFunc(func(g *Group) {
				g.Id(fn.index)
				for i := range fn.params {
					g.Uintptr().Call(Qual("unsafe", "Pointer").Call(Op("&").Id("p").Index(Lit(i))))
				}
			})),
			Err().Op("!=").Nil(),
		).BlockFunc(func(g *Group) {
			if stub != "" {
				g.If(Err().Op("==").Id(stub)).Block(
					Err().Op("=").Qual("fmt", "Errorf").Call(Lit("%w (%w)"), Qual(dlPath, "ErrStub"), Err()),
				)
			}
			g.Return(Lit(0), wrap())
		})
		number := Id("p").Index(Lit(0))
		if len(fn.params) > 1 {
			for i := range fn.params {
				part := Id("p").Index(Lit(i)).Op("*").Lit(weights[i])
				if i == 0 {
					number = part
				} else {
					number.Op("+").Add(part)
				}
			}
		}
		g.Return(Qual(dlPath, "Version").Call(number), Nil())
	}, nil
}

// enumerator returns the Go name of an error code.
func (p *pkg) enumerator(cname string) (string, error) {
	if cname == "" {
		return "", nil
	}
	for _, e := range p.enums {
		for _, v := range e.values {
			if e.result && v.cname == cname {
				return v.name, nil
			}
		}
	}
	return "", fmt.Errorf("gen: %s: %s, the code of a stub library, is not an error code", p.desc.Library, cname)
}
