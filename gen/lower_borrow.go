package gen

import (
	"fmt"
	"slices"
	"strings"
)

// modulePath begins the import paths of the embedded libraries' packages.
const modulePath = "github.com/puregpu/puregpu/"

// importPath returns the path of the package that has a library's types.
func (p *pkg) importPath(library string) string {
	if lib, err := p.desc.Lender(library); err == nil && lib.Import != "" {
		return lib.Import
	}
	return modulePath + library
}

// borrow finds the Go types that the table takes from other libraries. It lowers these libraries,
// and also the libraries that the description uses, because the overlay may name their types.
func (w *lowering) borrow() error {
	w.lenders = map[string]*lowering{}
	uses := slices.Clone(w.desc.Uses)
	for _, b := range w.lib.Borrowed {
		if !slices.Contains(uses, b.Library) {
			uses = append(uses, b.Library)
		}
	}
	for _, name := range uses {
		lib, err := w.desc.Lender(name)
		if err != nil {
			return err
		}
		if w.lenders[name], err = lowerTypes(lib); err != nil {
			return err
		}
	}
	for _, b := range w.lib.Borrowed {
		lent, ok := w.desc.Lend(b.Library, b.Name)
		if !ok {
			return fmt.Errorf("gen: %s: library %s lends no %s", w.desc.Library, b.Library, b.Name)
		}
		t, err := w.lenders[b.Library].gotype(lent.Type)
		switch {
		case err != nil:
			return fmt.Errorf("gen: %s: %s: %w", w.desc.Library, b.Name, err)
		case lent.Go != "":
			t.expr = b.Library + "." + lent.Go
		default:
			t.expr = qualify(t.expr, b.Library)
		}
		w.types[b.Name] = t
	}
	return nil
}

// qualify puts a package's name before the type name in a Go expression. Go's own types stay as
// they are.
func qualify(expr, pkg string) string {
	i := strings.LastIndexAny(expr, "*]") + 1
	name := expr[i:]
	if name == "" || strings.Contains(name, ".") || name[0] >= 'a' && name[0] <= 'z' {
		return expr
	}
	return expr[:i] + pkg + "." + name
}

// lent returns the lowered library that declares a type, and the type's name there: "Stream" for
// "cuda.Stream". For a type of this package it returns nil.
func (p *pkg) lent(expr string) (*lowering, string) {
	lib, name, ok := strings.Cut(expr, ".")
	if !ok || p.lenders[lib] == nil {
		return nil, ""
	}
	return p.lenders[lib], name
}
