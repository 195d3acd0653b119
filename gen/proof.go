package gen

import (
	"bytes"
	"encoding/json"

	. "github.com/dave/jennifer/jen"

	"github.com/puregpu/puregpu/runtime/dl/dltest"
)

var proofReturns = map[ret]dltest.Returns{
	retResult: dltest.ReturnsCode, retVoid: dltest.ReturnsNone, retString: dltest.ReturnsText, retValue: dltest.ReturnsValue,
}

var proofRoles = map[role]dltest.Role{
	roleValue: dltest.Value, roleStruct: dltest.Struct, rolePointer: dltest.Pointer, roleString: dltest.String, roleSlice: dltest.Slice,
	roleCount: dltest.Count, roleCountOut: dltest.CountOut, roleOut: dltest.Out, roleOutStr: dltest.OutString, roleText: dltest.Text,
}

// Functions returns facts for package dltest about the functions that a library's package binds, by
// C symbol.
func Functions(library string) (map[string]dltest.Function, error) {
	p, err := load(library)
	if err != nil {
		return nil, err
	}
	functions := map[string]dltest.Function{}
	for _, f := range p.proof() {
		functions[f.Symbol] = f
	}
	return functions, nil
}

// proof returns the facts for package dltest about each function, in the order of the echo library.
func (p *pkg) proof() []dltest.Function {
	out := []dltest.Function{}
	for _, f := range p.funcs {
		g := dltest.Function{
			Method: f.name, Symbol: f.sym.Symbol, Returns: proofReturns[f.ret], Registers: f.sym.Registers, Fast: f.fast, Params: []dltest.Param{},
		}
		for _, a := range f.params {
			q := dltest.Param{
				Name: a.c.Name, Type: a.c.Type, Role: proofRoles[a.role], Size: a.typ.size, Text: a.c.Text,
				Opaque: a.typ.expr == "unsafe.Pointer", Widened: a.c.GoType != "", Sized: a.c.Size != "",
			}
			if a.role == roleCount || a.role == roleCountOut {
				q.Counts = a.len
			}
			g.Params = append(g.Params, q)
		}
		out = append(out, g)
	}
	return out
}

// emitProof writes the test that proves the package, the C source of the echo library, and the
// facts for dltest.
func (p *pkg) emitProof() (map[string][]byte, error) {
	source, err := p.echoSource()
	if err != nil {
		return nil, err
	}
	var b bytes.Buffer
	b.WriteString("[")
	for i, f := range p.proof() { // one line each
		if i > 0 {
			b.WriteString(",")
		}
		b.WriteString("\n  ")
		line, err := json.Marshal(f)
		if err != nil {
			return nil, err
		}
		b.Write(line)
	}
	b.WriteString("\n]\n")
	f := p.newFile("")
	f.Comment("// TestABI calls every function of the package in a C library that records arguments and derives results from names.")
	f.Func().Id("TestABI").Params(Id("t").Op("*").Qual("testing", "T")).Block(
		Qual(dlPath+"/dltest", "ABI").Call(Id("t"), Lit("testdata"),
			Func().Params(Id("path").String()).Params(Any(), Error()).Block(Return(Id("Open").Call(Id("Options").Values(Id("Path").Op(":").Id("path"))))),
		),
	)
	f.Comment("// TestProof checks that a C compiler has compared the symbol table with its headers.")
	f.Func().Id("TestProof").Params(Id("t").Op("*").Qual("testing", "T")).Block(
		Qual(dlPath+"/dltest", "Proven").Call(Id("t"), Lit("testdata")),
	)
	test, err := render(f)
	return map[string][]byte{"zabi_test.go": test, "testdata/zabi.c": []byte(source), "testdata/zabi.json": b.Bytes()}, err
}
