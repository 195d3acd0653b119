package gen

import . "github.com/dave/jennifer/jen"

// emitSpec writes the tables that the loader resolves symbols from.
func (p *pkg) emitSpec() *File {
	f := p.newFile("")
	f.Comment("// symbols are the functions in the order of the fn constants.")
	f.Var().Id("symbols").Op("=").Index(Op("...")).Qual(dlPath, "Symbol").ValuesFunc(func(g *Group) {
		for _, fn := range p.funcs {
			g.Line().Values(record(
				pair{"Name", Lit(fn.sym.Symbol)}, pair{"API", p.api(fn)}, pair{"Since", Lit(p.desc.Version.Encode(fn.sym.Since))},
				pair{"Until", p.until(fn)}, pair{"Set", Lit(fn.sym.Set)}, pair{"Sig", Lit(fn.sig)}, pair{"Misfits", p.misfitsOf(fn)}, pair{"Use", use(fn)},
			)...)
		}
		g.Line()
	}).Line()
	f.Comment("// sets are the symbol sets; the first is required.")
	f.Var().Id("sets").Op("=").Index(Op("...")).Qual(dlPath, "Set").ValuesFunc(func(g *Group) {
		for _, s := range p.lib.Sets {
			g.Line().Values(record(pair{"Name", Lit(s.Name)}, pair{"Doc", Lit(s.Doc)}, pair{"Since", Lit(p.desc.Version.Encode(s.Since))})...)
		}
		g.Line()
	}).Line()
	f.Comment("// tableVersion is the release that the bindings were generated from.")
	f.Const().Id("tableVersion").Op("=").Lit(p.desc.Version.Encode(p.lib.Version))
	return f
}

// until returns the newest release that has a function, or nil if the newest release known has that
// function.
func (p *pkg) until(fn function) *Statement {
	if fn.sym.Until.IsZero() {
		return nil
	}
	return Lit(p.desc.Version.Encode(fn.sym.Until))
}

// use returns what to call in a library without the function, or nil.
func use(fn function) *Statement {
	if fn.use == "" {
		return nil
	}
	return Lit(fn.use)
}

// misfitsOf lists the releases in which a function must not be called; it returns nil if there are
// none.
func (p *pkg) misfitsOf(fn function) *Statement {
	list := p.misfits[fn.sym.Symbol]
	if len(list) == 0 {
		return nil
	}
	return Index().Qual(dlPath, "Misfit").ValuesFunc(func(g *Group) {
		for _, m := range list {
			text := m.Text
			if m.Usage != "" {
				text += "; use " + m.Usage
			}
			var from, to *Statement
			if !m.From.IsZero() {
				from = Lit(p.desc.Version.Encode(m.From))
			}
			if !m.To.IsZero() {
				to = Lit(p.desc.Version.Encode(m.To))
			}
			g.Values(record(pair{"From", from}, pair{"To", to}, pair{"Why", Lit(text)})...)
		}
	})
}

// api returns the name by which the library's own lookup finds a function, or nil if the library
// has no lookup.
func (p *pkg) api(fn function) *Statement {
	if p.desc.Hooks.Resolve == "" {
		return nil
	}
	return Lit(fn.sym.API)
}

// A pair is a field of a composite literal on one line. Jennifer's Dict would sort the fields and
// put each on a line of its own.
type pair struct {
	key   string
	value *Statement
}

func record(pairs ...pair) []Code {
	var out []Code
	for _, p := range pairs {
		if p.value != nil {
			out = append(out, Id(p.key).Op(":").Add(p.value))
		}
	}
	return out
}
