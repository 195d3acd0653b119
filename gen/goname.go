package gen

import (
	"bytes"
	"fmt"
	"go/ast"
	"go/parser"
	"go/printer"
	"go/token"
)

// GoName returns the name and the Go declaration of the method that binds an exported C symbol. For
// a symbol that is not bound both are "", and there is no error.
func GoName(library, symbol string) (name, declaration string, err error) {
	p, err := load(library)
	if err != nil {
		return "", "", err
	}
	for _, f := range p.funcs {
		if f.sym.Symbol != symbol {
			continue
		}
		file := p.newFile("")
		p.emitFunction(file, f)
		src, err := render(file)
		if err != nil {
			return "", "", err
		}
		declaration, err := declarationIn(src)
		return f.name, declaration, err
	}
	return "", "", nil
}

// declarationIn prints the only function of a file, without its body.
func declarationIn(src []byte) (string, error) {
	set := token.NewFileSet()
	file, err := parser.ParseFile(set, "", src, 0)
	if err != nil {
		return "", err
	}
	for _, d := range file.Decls {
		if f, ok := d.(*ast.FuncDecl); ok {
			f.Body = nil
			var b bytes.Buffer
			err := printer.Fprint(&b, set, f)
			return b.String(), err
		}
	}
	return "", fmt.Errorf("gen: the generated file has no function")
}
