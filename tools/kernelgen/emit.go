package main

import (
	"bytes"
	"fmt"
	"path"
	"strconv"
	"strings"

	. "github.com/dave/jennifer/jen"
)

// render writes the file of a module.
func (m *module) render() ([]byte, error) {
	f := NewFile(m.pkg)
	f.HeaderComment(strings.TrimPrefix(generatedMark, "// ") + fmt.Sprintf("from %s. DO NOT EDIT.", m.from))
	if m.hash != "" {
		f.HeaderComment(hashMark + m.hash)
	}
	f.ImportName(gpuPath, "gpu")
	f.ImportName(compilePath, "compile")
	f.ImportName(driverPath, "driver")
	f.ImportName(simPath, "simdriver")
	f.ImportName(cudaPath, "cuda")
	f.ImportName(smallPath, "smallfloat")
	f.Anon("embed")
	m.emitImages(f)
	m.emitCode(f)
	for _, k := range m.kernels {
		m.emitKernel(f, k)
	}
	m.emitSizes(f)
	m.emitTwins(f)
	var b bytes.Buffer
	if err := f.Render(&b); err != nil {
		return nil, err
	}
	return b.Bytes(), nil
}

// plain replaces what a Go file may not contain: invalid UTF-8, NUL and byte order marks.
func plain(s string) string {
	return strings.Map(func(r rune) rune {
		if r == 0 || r == '\ufeff' {
			return '?'
		}
		return r
	}, strings.ToValidUTF8(s, "?"))
}

// comment writes a documentation comment and wraps it.
func comment(f *File, format string, args ...any) {
	line := ""
	for w := range strings.FieldsSeq(plain(fmt.Sprintf(format, args...))) {
		if line != "" && len(line)+1+len(w) > 97 {
			f.Comment("// " + line)
			line = ""
		}
		line = strings.TrimPrefix(line+" "+w, " ")
	}
	f.Comment("// " + line)
}

func (m *module) imageName(i int) string {
	if len(m.images) == 1 {
		return lower(m.name) + "Image"
	}
	return fmt.Sprintf("%sImage%d", lower(m.name), i)
}

func (m *module) headerName(i int) string { return fmt.Sprintf("%sHeader%d", lower(m.name), i) }

func (m *module) emitImages(f *File) {
	embed := func(file, name string, typ *Statement) {
		f.Line()
		if strings.ContainsAny(file, " \"`") {
			file = strconv.Quote(file)
		}
		f.Comment("//go:embed " + file)
		f.Var().Id(name).Add(typ)
	}
	for i, im := range m.images {
		embed(im.file, m.imageName(i), Index().Byte())
	}
	if m.text != nil {
		embed(m.text.file, lower(m.name)+"Text", String())
		for i, h := range m.text.headers {
			embed(h.file, m.headerName(i), String())
		}
	}
	f.Line()
}

// exe writes the expression for the module of image i. If there is no image, exe writes the
// expression for the module of the source.
func (m *module) exe(i int) *Statement {
	if len(m.images) <= 1 {
		return Id("c").Dot("exe")
	}
	return Id("c").Dot("exes").Index(Lit(i))
}

func errReturn() *Statement {
	return Op(";").Err().Op("!=").Nil()
}

func (m *module) emitCode(f *File) {
	code, load := m.name+"Code", "Load"+m.name
	by := "loaded on a device by [" + load + "]"
	switch {
	case m.text != nil && m.images == nil:
		by = "compiled for a device by [Compile" + m.name + "]"
	case m.text != nil:
		by += " or compiled for it by [Compile" + m.name + "]"
	}
	comment(f, "%s has the kernels of %s, %s. Goroutines may launch them concurrently.", code, m.from, by)
	f.Type().Id(code).StructFunc(func(g *Group) {
		for _, k := range m.kernels {
			g.Id(k.goName).Id(k.goName)
		}
		g.Line()
		if len(m.images) <= 1 {
			g.Id("exe").Op("*").Qual(gpuPath, "Module")
		} else {
			g.Id("exes").Index(Lit(len(m.images))).Op("*").Qual(gpuPath, "Module")
		}
	})
	f.Line()
	if m.images != nil {
		m.emitLoad(f)
	}
	if m.text != nil {
		m.emitCompile(f)
	}
	comment(f, "Close unloads the kernels once the launches in flight are done with them. Do not launch them afterwards.")
	f.Func().Params(Id("c").Op("*").Id(code)).Id("Close").Params().Error().BlockFunc(func(g *Group) {
		if len(m.images) <= 1 {
			g.Return(m.exe(0).Dot("Close").Call())
			return
		}
		g.Return(Qual("errors", "Join").CallFunc(func(g *Group) {
			for i := range m.images {
				g.Add(m.exe(i)).Dot("Close").Call()
			}
		}))
	})
	f.Line()
	for _, v := range m.globals {
		m.emitGlobal(f, v)
	}
}

// prefix writes an expression that puts the names of files and a text before err.
func (m *module) prefix(files, text string) *Statement {
	return Qual("fmt", "Errorf").Call(Lit(strings.ReplaceAll(files, "%", "%%")+": "+text+"%w"), Err())
}

func (m *module) emitLoad(f *File) {
	code, load := m.name+"Code", "Load"+m.name
	comment(f, "%s loads the kernels of %s on a device, and checks their parameters against the driver's. It blocks while the driver compiles. "+
		"Close unloads them. A simulated GPU runs Go functions in their place: see [Sim%s].", load, m.from, m.name)
	f.Func().Id(load).Params(Id("d").Op("*").Qual(gpuPath, "Device")).Params(Op("*").Id(code), Error()).Block(
		Id("c").Op(":=").New(Id(code)),
		If(Err().Op(":=").Id("c").Dot("load").Call(Id("d")).Add(errReturn())).Block(
			Id("c").Dot("Close").Call(),
			Return(Nil(), m.prefix(m.from, "")),
		),
		Return(Id("c"), Nil()),
	)
	f.Line()
	f.Func().Params(Id("c").Op("*").Id(code)).Id("load").Params(Id("d").Op("*").Qual(gpuPath, "Device")).Params(Err().Error()).BlockFunc(func(g *Group) {
		for i := range m.images {
			g.If(List(m.exe(i), Err()).Op("=").Id("d").Dot("Load").Call(Id(m.imageName(i))).Add(errReturn())).Block(Return(Err()))
		}
		if m.text != nil {
			g.Return(Id("c").Dot("find").Call())
			return
		}
		m.emitFind(g)
	})
	f.Line()
}

// emitFind writes the body of a function that finds the kernels of the code.
func (m *module) emitFind(g *Group) {
	for _, k := range m.kernels {
		kernel := func() *Statement { return Id("c").Dot(k.goName).Dot("kernel") }
		g.If(List(kernel(), Err()).Op("=").Add(m.exe(k.image)).Dot("Kernel").Call(Lit(k.name)).Add(errReturn())).Block(Return(Err()))
		g.If(List(Id("c").Dot(k.goName).Dot("typed"), Err()).Op("=").Qual(gpuPath, "Typed").Index(Id(k.args())).Call(kernel()).Add(errReturn())).Block(Return(Err()))
	}
	g.Return(Nil())
}

func (m *module) emitCompile(f *File) {
	code := m.name + "Code"
	comment(f, "Compile%s compiles %s for a device, and checks the kernels' parameters against the driver's. It blocks while the compiler works, "+
		"and finds code on disk that it has compiled before: see [compile.Options.Compile]. Close unloads the kernels. "+
		"A simulated GPU runs Go functions in their place: see [Sim%[1]s].", m.name, m.text.file)
	f.Func().Id("Compile"+m.name).Params(Id("d").Op("*").Qual(gpuPath, "Device"), Id("options").Qual(compilePath, "Options")).
		Params(Op("*").Id(code), Qual(compilePath, "Info"), Error()).Block(
		List(Id("exe"), Id("info"), Err()).Op(":=").Id("options").Dot("Compile").Call(Id("d"), Qual(compilePath, "Source").Values(m.sourceFields())),
		If(Err().Op("!=").Nil()).Block(Return(Nil(), Id("info"), Err())),
		Id("c").Op(":=").Op("&").Id(code).Values(Dict{Id("exe"): Id("exe")}),
		If(Err().Op(":=").Id("c").Dot("find").Call().Add(errReturn())).Block(
			Id("c").Dot("Close").Call(),
			Return(Nil(), Id("info"), m.prefix(path.Base(m.text.file), "the kernels differ from those that kernelgen has read: run go generate again: ")),
		),
		Return(Id("c"), Id("info"), Nil()),
	)
	f.Line()
	f.Func().Params(Id("c").Op("*").Id(code)).Id("find").Params().Params(Err().Error()).BlockFunc(m.emitFind)
	f.Line()
}

// sourceFields are the fields of the compile.Source.
func (m *module) sourceFields() Dict {
	text := Id(lower(m.name) + "Text")
	if vars := m.simVariables(); vars != nil {
		text.Op("+").Lit("\n").Op("+").String().Call(Qual(simPath, "Image").Call(vars...))
	}
	fields := Dict{Id("Name"): Lit(path.Base(m.text.file)), Id("Text"): text}
	texts := func(all []string) *Statement {
		return Index().String().ValuesFunc(func(g *Group) {
			for _, s := range all {
				g.Lit(s)
			}
		})
	}
	if len(m.text.options) > 0 {
		fields[Id("Options")] = texts(m.text.options)
	}
	if m.text.names != nil {
		fields[Id("Names")] = texts(m.text.names)
	}
	if m.text.headers != nil {
		headers := Dict{}
		for i, h := range m.text.headers {
			headers[Lit(h.name)] = Id(m.headerName(i))
		}
		fields[Id("Headers")] = Map(String()).String().Values(headers)
	}
	return fields
}

// simVariables lists the variables for the simulated GPU, in a line that is a comment for
// compilers. It omits variables of unknown size.
func (m *module) simVariables() (all []Code) {
	for _, v := range m.globals {
		switch {
		case v.bytes > 0:
			all = append(all, Lit(fmt.Sprintf("%s=%d", v.name, v.bytes)))
		case v.count > 0 && v.elem.expr != "":
			all = append(all, Qual("fmt", "Sprintf").Call(Lit(v.name+"=%d"), Lit(v.count).Op("*").Qual("unsafe", "Sizeof").Call(Op("*").New(v.elem.code()))))
		}
	}
	return all
}

func (m *module) emitGlobal(f *File, v *global) {
	comment(f, "%s returns the memory of the variable %s, %s. It blocks while the driver looks it up. "+
		"Close the result after use: until then the code stays loaded.", v.goName, v.name, v.doc)
	fn := f.Func().Params(Id("c").Op("*").Id(m.name + "Code")).Id(v.goName).Params()
	find := m.exe(v.image).Dot("Global").Call(Lit(v.name))
	defer f.Line()
	if v.elem.expr == "" {
		fn.Params(Op("*").Qual(gpuPath, "Buffer"), Error()).Block(Return(find))
		return
	}
	slice := func() *Statement { return Qual(gpuPath, "Slice").Index(v.elem.code()) }
	fn.Params(slice(), Error()).Block(
		List(Id("b"), Err()).Op(":=").Add(find),
		If(Err().Op("!=").Nil()).Block(Return(slice().Values(), Err())),
		List(Id("s"), Err()).Op(":=").Qual(gpuPath, "SliceOf").Index(v.elem.code()).Call(Id("b").Dot("All").Call()),
		If(Err().Op("!=").Nil()).Block(Return(slice().Values(), Qual("errors", "Join").Call(Err(), Id("b").Dot("Close").Call()))),
		Return(Id("s"), Nil()),
	)
}

// args returns the name of the type of a kernel's arguments.
func (k *kernel) args() string { return lower(k.goName) + "Args" }

// declare writes parameters, with consecutive ones of the same type together.
func declare(g *Group, params []param, typ func(goType) *Statement) {
	var ids []Code
	for i, p := range params {
		ids = append(ids, Id(p.name))
		if i+1 < len(params) && params[i+1].typ.expr == p.typ.expr {
			continue
		}
		g.List(ids...).Add(typ(p.typ))
		ids = nil
	}
}

// filledNames names the parameters that the launch of a Triton kernel sets.
var filledNames = []string{"globalScratch", "profileScratch"}

func (m *module) emitKernel(f *File, k *kernel) {
	name, t := k.goName, k.triton
	what := "In C it is:"
	if t != nil {
		what = fmt.Sprintf("Triton compiled it from the function below. Its launches have blocks of %d threads and %d bytes of dynamic shared memory.", t.Threads, t.Shared)
	}
	comment(f, "%s is the kernel %s of %s, a value that may be copied. %s", name, k.name, m.from, what)
	f.Comment("//")
	f.Comment("//\t" + strings.Join(strings.Fields(plain(k.doc)), " "))
	f.Type().Id(name).Struct(
		Id("kernel").Op("*").Qual(gpuPath, "Kernel"),
		Id("typed").Op("*").Qual(gpuPath, "TypedKernel").Index(Id(k.args())),
	)
	f.Line()
	scratch := t != nil && t.GlobalScratch > 0
	f.Type().Id(k.args()).StructFunc(func(g *Group) {
		declare(g, k.params, goType.code)
		for i := range k.filled {
			typ := goType{driverPath + ".Ptr", 8}
			if i == 0 && scratch {
				typ = goType{gpuPath + ".Range", 8}
			}
			g.Id(k.own(filledNames[i])).Add(typ.code())
		}
	})
	f.Line()
	recv, grid := k.own("k"), k.own("grid")
	gridType := Qual(gpuPath, "Grid")
	if t != nil {
		grid, gridType = k.own("blocks"), Index(Lit(3)).Uint32()
		m.emitTritonGrid(f, k, recv, grid)
	}
	allocated := k.own("scratch")
	about := "Launch launches the kernel. Arguments may be bindings of the recording to which the Op is added."
	if scratch {
		about += fmt.Sprintf(" %s has [%s.ScratchSize] bytes or more. Nothing else uses them meanwhile.", allocated, name)
	}
	comment(f, "%s", about)
	f.Func().Params(Id(recv).Id(name)).Id("Launch").ParamsFunc(func(g *Group) {
		g.Id(grid).Add(gridType)
		declare(g, k.params, goType.code)
		if scratch {
			g.Id(allocated).Qual(gpuPath, "Range")
		}
	}).Qual(gpuPath, "Op").BlockFunc(func(g *Group) {
		if scratch {
			size := k.own("size")
			g.Id(size).Op(":=").Id(recv).Dot("ScratchSize").Call(Id(grid))
			g.If(Id(allocated).Dot("Size").Op("<").Id(size)).Block(
				Return(Qual(gpuPath, "BadOp").Call(Qual("fmt", "Errorf").Call(
					Lit(fmt.Sprintf("launch of %s: %%d bytes of scratch memory, and it needs %%d: %%w", k.name)), Id(allocated).Dot("Size"), Id(size), Qual(gpuPath, "ErrRange")))),
			)
			g.Id(allocated).Dot("Size").Op("=").Id(size)
		}
		shape := Id(grid)
		if t != nil {
			shape = Id(recv).Dot("Grid").Call(Id(grid))
		}
		g.Return(Id(recv).Dot("typed").Dot("Launch").Call(shape, Id(k.args()).ValuesFunc(func(g *Group) {
			for _, p := range k.params {
				g.Id(p.name)
			}
			for i := range k.filled {
				if i == 0 && scratch {
					g.Id(allocated)
				} else {
					g.Lit(0)
				}
			}
		})))
	})
	f.Line()
	comment(f, "Kernel returns the kernel. Its Info tells what it takes and uses.")
	f.Func().Params(Id(recv).Id(name)).Id("Kernel").Params().Op("*").Qual(gpuPath, "Kernel").Block(Return(Id(recv).Dot("kernel")))
	f.Line()
}

// emitTritonGrid writes the methods Grid and, if launches need scratch memory, ScratchSize.
func (m *module) emitTritonGrid(f *File, k *kernel, recv, blocks string) {
	t := k.triton
	comment(f, "Grid returns the grid for this number of programs along each dimension, as tl.program_id counts them. Zero means one.")
	f.Func().Params(Id(recv).Id(k.goName)).Id("Grid").Params(Id(blocks).Index(Lit(3)).Uint32()).Qual(gpuPath, "Grid").BlockFunc(func(g *Group) {
		clustered := t.Cluster != [3]int{1, 1, 1}
		if clustered {
			for i, n := range t.Cluster {
				if n > 1 {
					g.Id(blocks).Index(Lit(i)).Op("=").Max(Id(blocks).Index(Lit(i)), Lit(1)).Op("*").Lit(n)
				}
			}
		}
		g.Id("grid").Op(":=").Qual(gpuPath, "Grid").Values(Dict{
			Id("Blocks"): Id(blocks), Id("Threads"): Index(Lit(3)).Uint32().Values(Lit(t.Threads), Lit(1), Lit(1)), Id("SharedMem"): Lit(int(t.Shared)),
		})
		if clustered {
			g.Id("grid").Dot("Attrs").Dot("Cluster").Op("=").Index(Lit(3)).Uint32().Values(Lit(t.Cluster[0]), Lit(t.Cluster[1]), Lit(t.Cluster[2]))
		}
		if t.Cooperative {
			g.Id("grid").Dot("Attrs").Dot("Cooperative").Op("=").True()
		}
		g.Return(Id("grid"))
	})
	f.Line()
	if t.GlobalScratch > 0 {
		comment(f, "ScratchSize returns how many bytes of scratch memory a launch of this number of programs needs.")
		f.Func().Params(Id(recv).Id(k.goName)).Id("ScratchSize").Params(Id(blocks).Index(Lit(3)).Uint32()).Uint64().BlockFunc(func(g *Group) {
			along := func(i int) *Statement { return Uint64().Call(Max(Id(blocks).Index(Lit(i)), Lit(1))) }
			g.Return(along(0).Op("*").Add(along(1)).Op("*").Add(along(2)).Op("*").Lit(int(t.GlobalScratch) * t.Cluster[0] * t.Cluster[1] * t.Cluster[2]))
		})
		f.Line()
	}
}

// emitSizes writes code that does not compile if a Go type of unknown size does not have the size
// of the kernel's parameter.
func (m *module) emitSizes(f *File) {
	type check struct {
		expr string
		size int
	}
	var all []check
	had := map[check]bool{}
	for _, k := range m.kernels {
		for _, p := range k.params {
			if c := (check{p.typ.expr, p.size}); p.typ.size == 0 && p.size != 0 && !had[c] {
				had[c], all = true, append(all, c)
			}
		}
	}
	if len(all) == 0 {
		return
	}
	comment(f, "Each line compiles only if the Go type has the size of the kernel's parameter: otherwise the two array types differ in length.")
	f.Var().DefsFunc(func(g *Group) {
		for _, c := range all {
			g.Id("_").Index(Lit(c.size)).Byte().Op("=").Index(Qual("unsafe", "Sizeof").Call(Op("*").New(typeCode(c.expr)))).Byte().Values()
		}
	})
	f.Line()
}

func (m *module) emitTwins(f *File) {
	twins, none := m.name+"Twins", "No"+m.name+"Twins"
	params := func(k *kernel, grid string) func(*Group) {
		return func(g *Group) {
			g.Id(grid).Op("*").Qual(simPath, "Grid")
			all := make([]param, 0, len(k.params)+k.filled)
			for _, p := range k.params {
				p.typ = p.typ.twin()
				all = append(all, p)
			}
			for i := range k.filled {
				all = append(all, param{name: k.own(filledNames[i]), typ: goType{driverPath + ".Ptr", 8}})
			}
			declare(g, all, goType.code)
		}
	}
	comment(f, "%s are Go functions that a simulated GPU runs in place of the kernels of %s. Each method is called once per launch, and does the work of all "+
		"its threads: see simdriver.NewKernel. Embed [%s] to leave some out.", twins, m.from, none)
	f.Type().Id(twins).InterfaceFunc(func(g *Group) {
		for _, k := range m.kernels {
			g.Id(k.goName).ParamsFunc(params(k, k.own("grid"))).Error()
		}
	})
	f.Line()
	comment(f, "Sim%s returns the twins by the names of their kernels, for simdriver.Config.Kernels. If t is nil, it is [%s].", m.name, none)
	f.Func().Id("Sim"+m.name).Params(Id("t").Id(twins)).Map(String()).Qual(simPath, "Kernel").Block(
		If(Id("t").Op("==").Nil()).Block(Id("t").Op("=").Id(none).Values()),
		Return(Map(String()).Qual(simPath, "Kernel").ValuesFunc(func(g *Group) {
			for _, k := range m.kernels {
				g.Line().Lit(k.name).Op(":").Qual(simPath, "MustKernel").Call(Id("t").Dot(k.goName))
			}
			g.Line()
		})),
	)
	f.Line()
	comment(f, "%s has no twins: on a simulated GPU, launches fail with an error that names the kernel.", none)
	f.Type().Id(none).Struct()
	for _, k := range m.kernels {
		f.Line()
		f.Func().Params(Id(none)).Id(k.goName).ParamsFunc(func(g *Group) {
			g.Op("*").Qual(simPath, "Grid")
			for _, p := range k.params {
				g.Add(p.typ.twin().code())
			}
			for range k.filled {
				g.Qual(driverPath, "Ptr")
			}
		}).Error().Block(
			Return(Qual("errors", "New").Call(Lit(fmt.Sprintf("kernel %s of %s has no twin: implement %s.%s", k.name, m.from, twins, k.goName)))),
		)
	}
}
