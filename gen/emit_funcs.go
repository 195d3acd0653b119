package gen

import (
	"fmt"
	"slices"
	"strings"

	. "github.com/dave/jennifer/jen"

	"github.com/puregpu/puregpu/symbols"
)

// emitFunctions writes a method of Library for every ABI version of every function.
func (p *pkg) emitFunctions() *File {
	f := p.newFile("")
	f.Const().DefsFunc(func(g *Group) {
		for i, fn := range p.funcs {
			if i == 0 {
				g.Id(fn.index).Op("=").Iota()
			} else {
				g.Id(fn.index)
			}
		}
		g.Id("numFuncs").Op("=").Lit(len(p.funcs))
	}).Line()
	for _, fn := range p.funcs {
		p.emitFunction(f, fn)
	}
	return f
}

func (p *pkg) emitFunction(f *File, fn function) {
	p.functionDoc(f.Group, fn)
	f.Func().Params(Id("l").Op("*").Id("Library")).Id(fn.name).ParamsFunc(func(g *Group) {
		for _, a := range fn.params {
			switch a.role {
			case roleValue, roleStruct, rolePointer, roleString:
				g.Id(a.name).Add(p.typ(a.typ.expr))
			case roleSlice:
				g.Id(a.name).Index().Add(p.typ(a.typ.expr))
			}
		}
	}).ParamsFunc(func(g *Group) {
		for _, a := range fn.params {
			switch a.role {
			case roleOut, roleCountOut:
				g.Id(a.name).Add(p.typ(a.typ.expr))
			case roleOutStr, roleText:
				g.Id(a.name).String()
			}
		}
		switch fn.ret {
		case retString:
			g.Id(fn.result).String()
		case retValue:
			g.Id(fn.result).Add(p.typ(fn.value.expr))
		}
		g.Err().Error()
	}).BlockFunc(func(g *Group) {
		p.prepare(g, fn)
		if fn.fast {
			g.If(
				Id("addr").Op(":=").Qual(dlPath, "Load").Call(Op("&").Id("l").Dot("fns").Index(Id(fn.index))),
				Id("addr").Op("!=").Lit(0),
			).BlockFunc(func(g *Group) { p.fastCall(g, fn) })
		}
		p.slow(g, fn)
	}).Line()
}

// prepare writes the statements before the call, for the fast and the slow path.
func (p *pkg) prepare(g *Group, fn function) {
	if fn.sym.Registers {
		g.Comment("From here on any call may run the registered function on this goroutine's stack.")
		g.Id("l").Dot("HeapFrames").Call()
	}
	for i, a := range fn.params {
		switch {
		case a.role == roleString:
			maker := "CString"
			if a.c.Null {
				maker = "OptionalCString"
			}
			g.List(Id(a.name+"C"), Err()).Op(":=").Qual(dlPath, maker).Call(Id(a.name))
			g.If(Err().Op("!=").Nil()).Block(ReturnFunc(func(g *Group) {
				p.results(g, fn, nil)
				g.Qual("fmt", "Errorf").Call(Lit(p.desc.Library+": "+fn.sym.Symbol+": "+a.name+": %w"), Err())
			}))
		case a.c.Size != "":
			size := p.funcs[p.funcIndex(a.c.Size)]
			need := func() *Statement { return Id(a.name + "Need") }
			g.List(need(), Err()).Op(":=").Id("l").Dot(size.name).CallFunc(func(g *Group) {
				for _, b := range size.params {
					if b.role == roleValue {
						g.Id(b.name)
					}
				}
			})
			g.If(Err().Op("!=").Nil()).Block(ReturnFunc(func(g *Group) { p.results(g, fn, nil); g.Err() }))
			n := Uint64().Call(need())
			if slices.ContainsFunc(size.params, func(b param) bool { return b.role == roleOut && b.typ.expr == "uint64" }) {
				n = need()
			}
			g.If(Uint64().Call(Len(Id(a.name))).Op("<").Add(n)).Block(ReturnFunc(func(g *Group) {
				p.results(g, fn, nil)
				g.Op("&").Qual(dlPath, "ShortError").Values(record(
					pair{"Package", Lit(p.desc.Library)}, pair{"Function", Lit(fn.sym.Symbol)},
					pair{"Slice", Lit(a.name)}, pair{"Len", Len(Id(a.name))},
					pair{"Need", n.Clone()}, pair{"Size", Lit(size.name)},
				)...)
			}))
		case fn.counted(i):
			first := fn.params[fn.params[a.len].len]
			differs := Len(Id(a.name)).Op("!=").Len(Id(first.name))
			if a.c.Null { // NULL stands for an array of defaults
				differs = Id(a.name).Op("!=").Nil().Op("&&").Add(differs)
			}
			g.If(differs).Block(ReturnFunc(func(g *Group) {
				p.results(g, fn, nil)
				g.Op("&").Qual(dlPath, "LengthError").Values(record(
					pair{"Package", Lit(p.desc.Library)}, pair{"Function", Lit(fn.sym.Symbol)},
					pair{"A", Lit(first.name)}, pair{"LenA", Len(Id(first.name))},
					pair{"B", Lit(a.name)}, pair{"LenB", Len(Id(a.name))},
				)...)
			}))
		}
	}
}

// results writes the results of a return statement, without the error. If value is nil, each named
// result holds its value. Otherwise value returns the expression for a parameter's result, and the
// caller writes the C result.
func (p *pkg) results(g *Group, fn function, value func(param) *Statement) {
	for _, a := range fn.params {
		switch a.role {
		case roleOut, roleCountOut, roleOutStr, roleText:
			if value != nil {
				g.Add(value(a))
			} else {
				g.Id(a.name)
			}
		}
	}
	switch {
	case (fn.ret == retString || fn.ret == retValue) && value == nil:
		g.Id(fn.result)
	}
}

// fastCall writes a call through a frame on the stack.
func (p *pkg) fastCall(g *Group, fn function) {
	for _, a := range fn.params {
		if a.role == roleCountOut {
			g.Id(a.name).Op("=").Add(p.typ(a.typ.expr)).Call(Len(Id(fn.params[a.len].name)))
		}
	}
	// All words are read first and assigned to the frame at once: the compiler then neither clears
	// nor copies the frame.
	if len(fn.params) > 0 {
		g.ListFunc(func(g *Group) {
			for i := range fn.params {
				g.Id(fmt.Sprintf("a%d", i))
			}
		}).Op(":=").ListFunc(func(g *Group) {
			for _, a := range fn.params {
				g.Add(p.frameWord(fn, a))
			}
		})
	}
	g.Var().Id("frame").StructFunc(func(g *Group) {
		g.Qual(dlPath, "Frame")
		for i, a := range fn.params {
			g.Id(fmt.Sprintf("a%d", i)).Add(p.wordType(a))
		}
	})
	g.ListFunc(func(g *Group) {
		g.Id("frame").Dot("Fn")
		g.Id("frame").Dot("Ret")
		for i := range fn.params {
			g.Id("frame").Dot(fmt.Sprintf("a%d", i))
		}
	}).Op("=").ListFunc(func(g *Group) {
		g.Id("addr")
		g.Lit(0)
		for i := range fn.params {
			g.Id(fmt.Sprintf("a%d", i))
		}
	})
	result := p.resultType()
	g.If(
		Id("res").Op(":=").Id(result).Call(Qual(dlPath, "Call").Call(Lit(len(fn.params)), Qual("unsafe", "Pointer").Call(Op("&").Id("frame")))),
		Id("res").Op("!=").Lit(0),
	).Block(Err().Op("=").Id("res").Dot("asError").Call())
	g.ReturnFunc(func(g *Group) { p.results(g, fn, nil); g.Err() })
}

func (p *pkg) resultType() string {
	for _, e := range p.enums {
		if e.result {
			return e.name
		}
	}
	return "int32" // unreachable: a function with a fast path returns an error code
}

// wordType returns the type of a frame's word. Pointers keep a pointer type, so that the Go runtime
// sees them.
func (p *pkg) wordType(a param) *Statement {
	switch a.role {
	case rolePointer:
		return p.typ(a.typ.expr)
	case roleString:
		return Op("*").Byte()
	case roleSlice, roleOut, roleCountOut:
		return Op("*").Add(p.typ(a.typ.expr))
	}
	return Uintptr()
}

func (p *pkg) frameWord(fn function, a param) *Statement {
	switch a.role {
	case rolePointer:
		return Id(a.name)
	case roleString:
		return Id(a.name + "C")
	case roleSlice:
		return Qual("unsafe", "SliceData").Call(Id(a.name))
	case roleOut, roleCountOut:
		return Op("&").Id(a.name)
	}
	return p.plainWord(fn, a)
}

// plainWord writes a word that is not a pointer.
func (p *pkg) plainWord(fn function, a param) *Statement {
	switch {
	case a.role == roleCount && fn.params[a.len].role == roleText:
		return Lit(fn.params[a.len].c.Text)
	case a.role == roleCount:
		return Uintptr().Call(Len(Id(fn.params[a.len].name)))
	case a.role == roleStruct && a.typ.size < 8: // 1, 2 or 4 bytes
		return Uintptr().Call(Op("*").Parens(Op("*").Id(fmt.Sprintf("uint%d", 8*a.typ.size))).Call(Qual("unsafe", "Pointer").Call(Op("&").Id(a.name))))
	case a.role == roleStruct: // 8 bytes
		return Op("*").Parens(Op("*").Uintptr()).Call(Qual("unsafe", "Pointer").Call(Op("&").Id(a.name)))
	case a.typ.kind == kindFloat:
		return Uintptr().Call(Qual("math", "Float32bits").Call(p.converted(a, "float32")))
	case a.typ.kind == kindDouble:
		return Uintptr().Call(Qual("math", "Float64bits").Call(p.converted(a, "float64")))
	case a.typ.kind == kindBool: // a byte that is 0 or 1, as in C
		return Uintptr().Call(Op("*").Parens(Op("*").Uint8()).Call(Qual("unsafe", "Pointer").Call(Op("&").Id(a.name))))
	}
	return Uintptr().Call(Id(a.name))
}

// converted converts an argument to its underlying Go type.
func (p *pkg) converted(a param, to string) *Statement {
	if a.typ.expr == to {
		return Id(a.name)
	}
	return Id(to).Call(Id(a.name))
}

// slow writes a call that is correct for every function, with the outputs on the heap.
func (p *pkg) slow(g *Group, fn function) {
	if hasOutputs(fn) {
		g.Id("out").Op(":=").New(StructFunc(func(g *Group) {
			for _, a := range fn.params {
				switch a.role {
				case roleOut, roleCountOut:
					g.Id(a.name).Add(p.typ(a.typ.expr))
				case roleOutStr:
					g.Id(a.name).Qual("unsafe", "Pointer")
				case roleText:
					g.Id(a.name).Index(Lit(a.c.Text)).Byte()
				}
			}
		}))
	}
	for _, a := range fn.params {
		if a.role == roleCountOut {
			g.Id("out").Dot(a.name).Op("=").Add(p.typ(a.typ.expr)).Call(Len(Id(fn.params[a.len].name)))
		}
	}
	g.List(Id("res"), Err()).Op(":=").Id("l").Dot("Slow").CallFunc(func(g *Group) {
		g.Id(fn.index)
		for _, a := range fn.params {
			g.Add(p.slowWord(fn, a))
		}
	})
	outputs := func(g *Group) {
		p.results(g, fn, func(a param) *Statement {
			field := Id("out").Dot(a.name)
			switch a.role {
			case roleOutStr:
				return Qual(dlPath, "GoString").Call(field)
			case roleText:
				return Qual(dlPath, "Text").Call(field.Index(Op(":")))
			}
			return field
		})
	}
	switch fn.ret {
	case retResult:
		g.ReturnFunc(func(g *Group) { outputs(g); g.Id("check").Call(Id("res"), Err()) })
	case retVoid:
		g.Id("_").Op("=").Id("res")
		g.ReturnFunc(func(g *Group) { outputs(g); g.Err() })
	case retString:
		g.ReturnFunc(func(g *Group) {
			outputs(g)
			g.Qual(dlPath, "GoString").Call(Op("*").Parens(Op("*").Qual("unsafe", "Pointer")).Call(Qual("unsafe", "Pointer").Call(Op("&").Id("res"))))
			g.Err()
		})
	case retValue:
		g.ReturnFunc(func(g *Group) {
			outputs(g)
			switch fn.value.kind {
			case kindBool:
				g.Uint8().Call(Id("res")).Op("!=").Lit(0)
			case kindFloat:
				g.Add(p.typ(fn.value.expr)).Call(Qual("math", "Float32frombits").Call(Uint32().Call(Id("res"))))
			case kindDouble:
				g.Add(p.typ(fn.value.expr)).Call(Qual("math", "Float64frombits").Call(Uint64().Call(Id("res"))))
			case kindPointer, kindStruct:
				g.Op("*").Parens(Op("*").Add(p.typ(fn.value.expr))).Call(Qual("unsafe", "Pointer").Call(Op("&").Id("res")))
			default:
				g.Add(p.typ(fn.value.expr)).Call(Id("res"))
			}
			g.Err()
		})
	}
}

// inRegister reports whether C passes a struct of this size as one word on all platforms.
func inRegister(size int) bool { return size == 1 || size == 2 || size == 4 || size == 8 }

func hasOutputs(fn function) bool {
	for _, a := range fn.params {
		switch a.role {
		case roleOut, roleCountOut, roleOutStr, roleText:
			return true
		}
	}
	return false
}

// slowWord writes an argument of Slow. Pointers are converted within the call expression, which
// keeps their memory alive and on the heap.
func (p *pkg) slowWord(fn function, a param) *Statement {
	address := func(x *Statement) *Statement { return Uintptr().Call(Qual("unsafe", "Pointer").Call(x)) }
	switch a.role {
	case rolePointer:
		if a.typ.expr == "unsafe.Pointer" {
			return Uintptr().Call(Id(a.name))
		}
		return address(Id(a.name))
	case roleString:
		return address(Id(a.name + "C"))
	case roleSlice:
		return address(Qual("unsafe", "SliceData").Call(Id(a.name)))
	case roleOut, roleCountOut, roleOutStr, roleText:
		return address(Op("&").Id("out").Dot(a.name))
	case roleStruct:
		if a.floats || !inRegister(a.typ.size) {
			return address(Op("&").Id(a.name))
		}
	}
	return p.plainWord(fn, a)
}

// functionDoc writes a method's documentation.
func (p *pkg) functionDoc(g *Group, fn function) {
	summary := fn.sym.Doc
	if summary == "" {
		summary = "calls " + fn.sym.Symbol
	}
	text := fn.name + " " + summary + ".\n\nC: " + fn.sym.Symbol + ", since " + p.desc.Brand + " " + fn.since
	if !fn.sym.Until.IsZero() {
		text += ", until " + fn.sym.Until.String()
	}
	text += ", set " + fn.set + "."
	var filled, optional []string
	for i, a := range fn.params {
		if a.role == roleSlice && (a.c.Dir == symbols.Out || a.c.Dir == symbols.InOut) {
			filled = append(filled, a.name)
		}
		if s := p.paramDoc(fn, a); s != "" {
			text += " " + s
		}
		if fn.counted(i) && a.c.Null {
			optional = append(optional, a.name)
		}
	}
	if len(optional) > 0 {
		text += " " + list(optional) + " may be nil."
	}
	if len(filled) > 0 {
		text += " The library writes to " + list(filled) + "."
	}
	if fn.sym.Callback {
		text += " It may call back into the program before it returns."
	}
	if list := p.misfits[fn.sym.Symbol]; len(list) > 0 {
		var whys []string
		for _, m := range list {
			whys = append(whys, m.Text)
			if m.Usage != "" {
				whys[len(whys)-1] += ": use " + m.Usage
			}
		}
		text += "\n\nIt is not called, and returns a [*dl.SymbolError], where " + strings.Join(whys, ", and where ") + "."
	}
	if fn.use != "" {
		text += " In a release without it use " + fn.use + "."
	}
	if fn.sym.Deprecated {
		text += "\n\nDeprecated: the library's header marks " + fn.sym.API + " as deprecated."
	}
	doc(g, text)
}

// list writes "a, b and c".
func list(words []string) string {
	if len(words) < 2 {
		return strings.Join(words, "")
	}
	return strings.Join(words[:len(words)-1], ", ") + " and " + words[len(words)-1]
}

// paramDoc documents the facts about a parameter that its Go type does not show.
func (p *pkg) paramDoc(fn function, a param) string {
	switch {
	case a.role == roleCountOut:
		return fmt.Sprintf("The library reads the length of %s and returns %s.", fn.params[a.len].name, a.name)
	case a.c.Late != "":
		return fmt.Sprintf("The library may write *%[1]s until %[2]s, even after the call: keep it reachable until then.", a.name, a.c.Late)
	case a.role == rolePointer && a.c.Null && strings.HasPrefix(a.typ.expr, "*"):
		return fmt.Sprintf("%s may be nil.", a.name)
	case a.role == roleString && a.c.Null:
		return fmt.Sprintf("An empty %s passes NULL.", a.name)
	case a.role == roleValue && a.c.Unit == "bytes" && !strings.Contains(strings.ToLower(a.name), "byte"):
		return fmt.Sprintf("%s counts bytes.", a.name)
	case a.role == rolePointer && a.c.Dir == "inout":
		return fmt.Sprintf("The library reads and writes *%s.", a.name)
	}
	return ""
}
