package gen

import (
	"fmt"
	"slices"

	. "github.com/dave/jennifer/jen"

	"github.com/puregpu/puregpu/symbols"
)

// emitGrown writes, for each struct in Description.Grown, the struct's sizes over the releases, and
// a type and a list of its members with the release that added each.
func (p *pkg) emitGrown(f *File) error {
	for _, cname := range p.desc.Grown {
		i := slices.IndexFunc(p.structs, func(s structure) bool { return s.cname == cname })
		if i < 0 {
			return fmt.Errorf("gen: %s: %s is listed as a grown struct, but no such struct is bound", p.desc.Library, cname)
		}
		s := p.structs[i]
		name := variableOf(s.name)
		code := func(v symbols.Version) *Statement { return Lit(p.desc.Version.Encode(v)) }
		var in []symbols.Version
		var layouts []symbols.Struct
		for _, v := range p.lib.Releases {
			for _, at := range p.lib.At(v).Structs {
				if at.Name == cname {
					in, layouts = append(in, v), append(layouts, at)
				}
			}
		}
		if len(in) == 0 {
			return fmt.Errorf("gen: %s: the table does not say which releases have %s", p.desc.Library, cname)
		}
		f.Line().Comment(fmt.Sprintf("// %sLayouts lists the sizes of %s, each with the first release that has it, oldest first.", name, cname))
		f.Var().Id(name+"Layouts").Op("=").Index(Op("...")).Struct(Id("since").Qual(dlPath, "Version"), Id("size").Uint64()).ValuesFunc(func(g *Group) {
			for i := range in {
				if i == 0 || layouts[i].Size != layouts[i-1].Size {
					g.Line().Values(code(in[i]), Lit(layouts[i].Size))
				}
			}
			g.Line()
		})
		f.Line().Comment(fmt.Sprintf("// A %sField is a member of %s, with the release that added it.", name, s.name))
		f.Type().Id(name+"Field").Struct(
			Id("since").Qual(dlPath, "Version"),
			Id("name").String(),
			Id("offset").Uintptr(),
			Id("pointer").Bool().Comment("the member is a pointer, not an int32"),
		)
		f.Line().Comment(fmt.Sprintf("// %sFields lists the release that added each member of %s, without size, magic number and version.", name, cname))
		var fail error
		f.Var().Id(name + "Fields").Op("=").Index(Op("...")).Id(name + "Field").ValuesFunc(func(g *Group) {
			for _, m := range s.fields {
				if m.cname == "" || m.cname == "size" || m.cname == "magic" || m.cname == "version" {
					continue
				}
				if m.typ.kind != kindPointer && (m.typ.kind != kindInt || m.typ.size != 4) {
					fail = fmt.Errorf("gen: %s: %s.%s is neither a pointer nor an int: its default value is unknown", p.desc.Library, cname, m.cname)
				}
				i := slices.IndexFunc(layouts, func(at symbols.Struct) bool {
					return slices.ContainsFunc(at.Fields, func(x symbols.Field) bool { return x.Name == m.cname })
				})
				g.Line().Values(code(in[max(i, 0)]), Lit(m.name), Lit(m.offset), Lit(m.typ.kind == kindPointer))
			}
			g.Line()
		})
		if fail != nil {
			return fail
		}
	}
	return nil
}

// variableOf makes the first letter of a name small.
func variableOf(name string) string { return string(name[0]|0x20) + name[1:] }
