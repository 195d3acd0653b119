package gen

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	. "github.com/dave/jennifer/jen"
)

// emitTypes writes handles, numbers, aliases, callbacks, structs and unions.
func (p *pkg) emitTypes() *File {
	f := p.newFile("")
	g := f.Group
	for _, t := range p.handles {
		kind := "an opaque handle; zero is none"
		if t.under == "uint64" {
			kind = "an address in device memory; zero is none"
		}
		p.typeDoc(g, t.name, t.cname, t.doc, kind)
		f.Type().Id(t.name).Id(t.under).Line()
	}
	for _, t := range p.scalars {
		p.typeDoc(g, t.name, t.cname, t.doc, "a number")
		f.Type().Id(t.name).Id(t.under).Line()
	}
	if p.address {
		doc(g, "DevicePtr is an address in device memory, the same number as in the package of the library that allocated it.")
		f.Type().Id("DevicePtr").Uint64().Line()
	}
	for _, a := range p.aliases {
		doc(g, fmt.Sprintf("%s is another name of [%s] (C: %s).", a.name, a.of, a.cname))
		f.Type().Id(a.name).Op("=").Add(p.typ(a.of)).Line()
	}
	for _, c := range p.cbs {
		p.typeDoc(g, c.name, c.cname, c.doc, "the address of a C function "+c.sig+", as dl.Callback makes one from a Go function")
		f.Type().Id(c.name).Uintptr().Line()
	}
	for _, s := range p.structs {
		if s.union {
			p.emitUnion(f, s)
		} else {
			p.emitStruct(f, s)
		}
	}
	if slices.ContainsFunc(p.structs, func(s structure) bool {
		return slices.ContainsFunc(s.fields, func(m field) bool { return m.bytes > 0 })
	}) {
		emitBitHelpers(f)
	}
	return f
}

func (p *pkg) typeDoc(g *Group, name, cname, summary, kind string) {
	if summary == "" {
		summary = kind
	}
	doc(g, fmt.Sprintf("%s is %s (C: %s).", name, strings.TrimPrefix(summary, "is "), cname))
}

func (p *pkg) emitStruct(f *File, s structure) {
	p.typeDoc(f.Group, s.name, s.cname, s.doc, fmt.Sprintf("a C struct of %d bytes", s.size))
	if s.align > s.goAlign {
		f.Comment("//")
		f.Comment(fmt.Sprintf("// C aligns it to %d bytes and Go to %d: allocate it with New%s where the library asks for alignment.", s.align, s.goAlign, s.name))
	}
	units := map[string]bool{}
	f.Type().Id(s.name).StructFunc(func(g *Group) {
		for _, m := range s.fields {
			switch {
			case m.unit != "" && !units[m.unit]:
				units[m.unit] = true
				unit := p.typ(m.typ.expr)
				if m.bytes > 0 {
					unit = Index(Lit(m.bytes)).Byte()
				}
				g.Id(m.unit).Add(unit).Comment("bit-fields; see the methods")
			case m.unit != "":
			default:
				g.Id(m.name).Add(p.typ(m.typ.expr))
			}
		}
	}).Line()
	for _, m := range s.fields {
		switch {
		case m.unit != "" && m.bytes > 0:
			p.emitByteField(f, s, m)
		case m.unit != "":
			p.emitBitField(f, s, m)
		}
	}
}

// emitByteField writes a getter and a setter of a bit-field that is stored in bytes. The bit-field
// may have any type.
func (p *pkg) emitByteField(f *File, s structure, m field) {
	unit := Id("s").Dot(m.unit).Index(Op(":"))
	get := Id("getBits").Call(unit, Lit(m.bit), Lit(m.bits))
	var bits *Statement
	switch {
	case m.typ.kind == kindBool:
		get = get.Op("!=").Lit(0)
		bits = Uint64().Call(Id("n"))
	case m.signed():
		shift := 64 - m.bits
		get = p.typ(m.typ.expr).Call(Int64().Call(get.Op("<<").Lit(shift)).Op(">>").Lit(shift))
	default:
		get = p.typ(m.typ.expr).Call(get)
	}
	f.Comment(fmt.Sprintf("// %s returns the bit-field %s, %d wide.", m.name, m.cname, m.bits))
	f.Func().Params(Id("s").Op("*").Id(s.name)).Id(m.name).Params().Add(p.typ(m.typ.expr)).Block(Return(get)).Line()
	f.Comment(fmt.Sprintf("// Set%s sets the bit-field %s to the low %d bits of v.", m.name, m.cname, m.bits))
	f.Func().Params(Id("s").Op("*").Id(s.name)).Id("Set" + m.name).Params(Id("v").Add(p.typ(m.typ.expr))).BlockFunc(func(g *Group) {
		if bits != nil {
			g.Id("n").Op(":=").Lit(0)
			g.If(Id("v")).Block(Id("n").Op("=").Lit(1))
		} else {
			bits = Uint64().Call(Id("v"))
		}
		g.Id("setBits").Call(unit, Lit(m.bit), Lit(m.bits), bits)
	}).Line()
}

// emitBitHelpers writes the functions that emitByteField calls.
func emitBitHelpers(f *File) {
	f.Comment("// getBits returns width bits of b from a bit on, the lowest first.")
	f.Func().Id("getBits").Params(Id("b").Index().Byte(), Id("first"), Id("width").Int()).Uint64().Block(
		Var().Id("v").Uint64(),
		For(Id("i").Op(":=").Range().Id("width")).Block(
			Id("bit").Op(":=").Id("first").Op("+").Id("i"),
			Id("v").Op("|=").Uint64().Call(Id("b").Index(Id("bit").Op("/").Lit(8)).Op(">>").Parens(Id("bit").Op("%").Lit(8)).Op("&").Lit(1)).Op("<<").Id("i"),
		),
		Return(Id("v")),
	).Line()
	f.Comment("// setBits sets width bits of b from a bit on to the low bits of v.")
	f.Func().Id("setBits").Params(Id("b").Index().Byte(), Id("first"), Id("width").Int(), Id("v").Uint64()).Block(
		For(Id("i").Op(":=").Range().Id("width")).Block(
			Id("bit").Op(":=").Id("first").Op("+").Id("i"),
			Id("mask").Op(":=").Byte().Call(Lit(1)).Op("<<").Parens(Id("bit").Op("%").Lit(8)),
			If(Id("v").Op(">>").Id("i").Op("&").Lit(1).Op("!=").Lit(0)).Block(
				Id("b").Index(Id("bit").Op("/").Lit(8)).Op("|=").Id("mask"),
			).Else().Block(
				Id("b").Index(Id("bit").Op("/").Lit(8)).Op("&^=").Id("mask"),
			),
		),
	).Line()
}

// emitBitField writes a getter and a setter of one bit-field.
func (p *pkg) emitBitField(f *File, s structure, m field) {
	mask := uint64(1)<<m.bits - 1
	u := func() *Statement { return Id("s").Dot(m.unit) }
	f.Comment(fmt.Sprintf("// %s returns the bit-field %s, %d wide.", m.name, m.cname, m.bits))
	f.Func().Params(Id("s").Op("*").Id(s.name)).Id(m.name).Params().Add(p.typ(m.typ.expr)).Block(
		Return(u().Op(">>").Lit(m.bit).Op("&").Op(fmt.Sprintf("%#x", mask))),
	).Line()
	f.Comment(fmt.Sprintf("// Set%s sets the bit-field %s to the low %d bits of v.", m.name, m.cname, m.bits))
	f.Func().Params(Id("s").Op("*").Id(s.name)).Id("Set" + m.name).Params(Id("v").Add(p.typ(m.typ.expr))).Block(
		u().Op("=").Add(u()).Op("&^").Op("(").Op(fmt.Sprintf("%#x", mask)).Op("<<").Lit(m.bit).Op(")").Op("|").Op("(").Id("v").Op("&").Op(fmt.Sprintf("%#x", mask)).Op(")").Op("<<").Lit(m.bit),
	).Line()
}

// emitUnion writes a union as an array of bytes of its size and alignment, with a method for each
// member.
func (p *pkg) emitUnion(f *File, s structure) {
	p.typeDoc(f.Group, s.name, s.cname, s.doc, fmt.Sprintf("a C union of %d bytes", s.size))
	doc(f.Group, "\nIts methods give its members, which share its memory. The garbage collector sees no pointers in it: what a member points to must be kept alive, and pinned with [runtime.Pinner] if it is Go memory.")
	unit := map[int]string{1: "uint8", 2: "uint16", 4: "uint32", 8: "uint64"}[s.goAlign]
	f.Type().Id(s.name).Struct(
		Id("_").Index(Lit(0)).Id(unit).Comment("alignment"),
		Id("data").Index(Lit(s.size)).Byte(),
	).Line()
	for _, m := range s.fields {
		if m.bits > 0 {
			p.emitByteField(f, s, m)
			continue
		}
		f.Comment(fmt.Sprintf("// %s is the member %s.", m.name, m.cname))
		f.Func().Params(Id("u").Op("*").Id(s.name)).Id(m.name).Params().Op("*").Add(p.typ(m.typ.expr)).Block(
			Return(p.pointerTo(m.typ.expr, Op("&").Id("u").Dot("data"))),
		).Line()
	}
}

// emitLayout writes assertions, checked by the compiler, of the size of every struct and union and
// of the offset of every field.
func (p *pkg) emitLayout() *File {
	f := p.newFile("amd64 || arm64")
	f.Comment("// A layout that differs from C's does not compile: the two array types have different lengths.")
	f.Var().DefsFunc(func(g *Group) {
		same := func(n int, what *Statement) {
			g.Id("_").Index(Lit(n)).Byte().Op("=").Index(what).Byte().Values()
		}
		for _, s := range p.structs {
			same(s.size, Qual("unsafe", "Sizeof").Call(Id(s.name).Values()))
			if s.union {
				same(s.goAlign, Qual("unsafe", "Alignof").Call(Id(s.name).Values()))
				continue
			}
			units := map[string]bool{}
			for _, m := range s.fields {
				name := m.name
				if m.unit != "" {
					name = m.unit
				}
				if name == "_" || units[name] {
					continue
				}
				units[name] = true
				same(m.offset, Qual("unsafe", "Offsetof").Call(Id(s.name).Values().Dot(name)))
			}
		}
	})
	return f
}

// emitConstants writes enumerations with their values, and macros.
func (p *pkg) emitConstants() *File {
	f := p.newFile("")
	for _, e := range p.enums {
		if e.name != "" {
			p.typeDoc(f.Group, e.name, e.cname, e.doc, "an enumeration")
			f.Type().Id(e.name).Id(e.under).Line()
			f.Comment("// Values of " + e.name + ".")
		}
		f.Const().DefsFunc(func(g *Group) {
			for _, v := range e.values {
				s := g.Id(v.name)
				if e.name != "" {
					s.Id(e.name)
				}
				s.Op("=").Op(e.literal(v)).Comment(valueComment(v))
			}
		}).Line()
		if e.name != "" && !e.result {
			emitString(f, e)
		}
	}
	if len(p.consts) > 0 {
		f.Comment("// Macros of the header.")
		f.Const().DefsFunc(func(g *Group) {
			for _, c := range p.consts {
				s := g.Id(c.name)
				if c.typ != "" {
					s.Id(c.typ)
				}
				s.Op("=").Op(c.lit).Comment(c.cname + c.life)
			}
		})
	}
	return f
}

func valueComment(v value) string {
	s := v.cname + v.life
	if v.doc != "" {
		s += ": " + v.doc
	}
	return s
}

// emitString writes a String method that returns a value's C name. For a value that the table does
// not have, such as one of a newer library, the method returns the type's name and the number.
func emitString(f *File, e enum) {
	number := Qual("strconv", "FormatInt").Call(Int64().Call(Id("v")), Lit(10))
	if e.under == "uint64" {
		number = Qual("strconv", "FormatUint").Call(Uint64().Call(Id("v")), Lit(10))
	}
	f.Comment("// String returns the value's C name, or its number if it has none.")
	f.Func().Params(Id("v").Id(e.name)).Id("String").Params().String().Block(
		Switch(Id("v")).BlockFunc(func(g *Group) {
			seen := map[int64]bool{}
			for _, v := range e.values {
				if seen[v.n] {
					continue
				}
				seen[v.n] = true
				g.Case(Id(v.name)).Block(Return(Lit(v.cname)))
			}
		}),
		Return(Lit(e.name+"(").Op("+").Add(number).Op("+").Lit(")")),
	).Line()
}

// literal writes a value in Go.
func (e *enum) literal(v value) string {
	if e.under == "uint64" {
		return strconv.FormatUint(uint64(v.n), 10)
	}
	return strconv.FormatInt(v.n, 10)
}

// emitResult writes the methods that make the type of error codes an error. It returns nil if the
// library has no such type.
func (p *pkg) emitResult() (*File, error) {
	for _, e := range p.enums {
		if !e.result {
			continue
		}
		f := p.newFile("")
		var success string
		unique := []value{}
		seen := map[int64]bool{}
		for _, v := range e.values {
			if v.n == 0 && success == "" {
				success = v.name
			}
			if !seen[v.n] {
				seen[v.n] = true
				unique = append(unique, v)
			}
		}
		if success == "" {
			return nil, fmt.Errorf("gen: %s: %s has no value 0 for success", p.desc.Library, e.cname)
		}
		f.Comment("// Error returns the code's C name, number and meaning. An unknown code has a number alone.")
		f.Func().Params(Id("r").Id(e.name)).Id("Error").Params().String().Block(
			List(Id("name"), Id("number")).Op(":=").List(Id("r").Dot("Name").Call(), Qual("strconv", "Itoa").Call(Int().Call(Id("r")))),
			If(Id("name").Op("==").Lit(e.name+"(").Op("+").Id("number").Op("+").Lit(")")).Block(Return(Lit(p.desc.Library+": unknown code ").Op("+").Id("number"))),
			Id("text").Op(":=").Lit(p.desc.Library+": ").Op("+").Id("name").Op("+").Lit(" (").Op("+").Id("number").Op("+").Lit(")"),
			If(Id("m").Op(":=").Id("r").Dot("Meaning").Call(), Id("m").Op("!=").Lit("")).Block(
				Id("text").Op("+=").Lit(": ").Op("+").Id("m"),
			),
			Return(Id("text")),
		).Line()
		f.Comment("// Name returns the code's C name, or its number if the table does not have the code.")
		f.Func().Params(Id("r").Id(e.name)).Id("Name").Params().String().Block(
			Switch(Id("r")).BlockFunc(func(g *Group) {
				for _, v := range unique {
					g.Case(Id(v.name)).Block(Return(Lit(v.cname)))
				}
			}),
			Return(Lit(e.name+"(").Op("+").Qual("strconv", "Itoa").Call(Int().Call(Id("r"))).Op("+").Lit(")")),
		).Line()
		f.Comment("// Meaning returns a description of the code, or \"\" if there is none.")
		f.Func().Params(Id("r").Id(e.name)).Id("Meaning").Params().String().Block(
			Switch(Id("r")).BlockFunc(func(g *Group) {
				for _, v := range unique {
					if v.doc != "" {
						g.Case(Id(v.name)).Block(Return(Lit(v.doc)))
					}
				}
			}),
			Return(Lit("")),
		).Line()
		f.Comment("// asError returns nil for success. Errors of known codes are constants, so that it does not allocate.")
		f.Func().Params(Id("r").Id(e.name)).Id("asError").Params().Error().Block(
			Switch(Id("r")).BlockFunc(func(g *Group) {
				for _, v := range unique {
					if v.name == success {
						g.Case(Id(v.name)).Block(Return(Nil()))
						continue
					}
					g.Case(Id(v.name)).Block(Return(Id(v.name)))
				}
			}),
			Return(Id("r")),
		).Line()
		f.Comment("// check turns a result of Slow into an error.")
		f.Func().Id("check").Params(Id("res").Uintptr(), Err().Error()).Error().BlockFunc(func(g *Group) {
			g.If(Err().Op("!=").Nil()).Block(Return(Err()))
			if s := p.resultPair; s != nil {
				g.If(
					Id("e").Op(":=").Op("*").Parens(Op("*").Id(s.name)).Call(Qual("unsafe", "Pointer").Call(Op("&").Id("res"))),
					Id("e").Dot(s.fields[0].name).Op("!=").Id(success),
				).Block(Return(Id("e")))
				g.Return(Nil())
				return
			}
			g.Return(Id(e.name).Call(Int32().Call(Id("res"))).Dot("asError").Call())
		})
		if p.resultPair != nil {
			f.Line()
			emitPair(f, p.resultPair)
		}
		return f, nil
	}
	return nil, nil
}

// emitPair writes the methods that make a struct of two error codes an error.
func emitPair(f *File, s *structure) {
	first, second := Id("e").Dot(s.fields[0].name), Id("e").Dot(s.fields[1].name)
	f.Comment("// Error returns the text of the first code, followed by the text of the second unless it is 0.")
	f.Func().Params(Id("e").Id(s.name)).Id("Error").Params().String().Block(
		If(second.Clone().Op("==").Lit(0)).Block(Return(first.Clone().Dot("Error").Call())),
		Return(first.Clone().Dot("Error").Call().Op("+").Lit(": ").Op("+").Add(second).Dot("Error").Call()),
	).Line()
	f.Comment("// Unwrap returns the codes that are not 0, so that errors.Is finds both.")
	f.Func().Params(Id("e").Id(s.name)).Id("Unwrap").Params().Index().Error().Block(
		If(second.Clone().Op("==").Lit(0)).Block(Return(Index().Error().Values(first.Clone()))),
		Return(Index().Error().Values(first.Clone(), second.Clone())),
	)
}
