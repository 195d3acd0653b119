// Package rewrite makes the source of a program that internal/explore runs: an overlay for go build
// and go test. Each step that other goroutines can observe becomes a call of internal/explore.
// Lines stay where they are.
package rewrite

import (
	"errors"
	"fmt"
	"go/ast"
	"go/token"
	"go/types"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/tools/go/ast/astutil"
	"golang.org/x/tools/go/packages"

	"github.com/puregpu/puregpu/internal/overlay"
)

const (
	module  = "github.com/puregpu/puregpu"
	explore = module + "/internal/explore"
	alias   = "_explore" // the import name in rewritten files
)

// standIns are the packages that are replaced by packages of internal/explore, by import path.
var standIns = map[string]string{
	"context": "context", "maps": "maps", "math/rand/v2": "math/rand/v2", "runtime": "runtime", "sync": "sync", "sync/atomic": "sync/atomic",
	"syscall": "syscall", "time": "time",
}

// harmless are the packages that rewritten code uses as they are. The functions listed are refused.
var harmless = map[string][]string{
	"bufio": nil, "bytes": nil, "cmp": nil, "debug/elf": nil, "embed": nil, "encoding": nil, "errors": nil, "flag": nil, "fmt": nil, "io": {"Pipe"}, "io/fs": nil, "iter": {"Pull", "Pull2"},
	"log/slog": nil, "math": nil, "math/big": nil, "math/bits": nil, "os": {"Pipe", "StartProcess"}, "path": nil, "path/filepath": nil,
	"reflect": {"Select", "MakeChan", "ChanOf"}, "regexp": nil, "runtime/debug": nil, "runtime/pprof": {"StartCPUProfile"}, "runtime/trace": {"Start"}, "slices": nil, "sort": nil, "strconv": nil, "strings": nil, "testing": nil,
	"unique": nil, "unsafe": nil, "weak": nil, "hash/fnv": nil, "hash/maphash": {"MakeSeed", "Comparable"},
}

// harmlessBelow are folders of more harmless packages.
var harmlessBelow = []string{"crypto/", "encoding/", "hash/", "text/", "unicode/"}

// A Refusal is code that cannot be rewritten.
type Refusal struct {
	Pos  token.Position
	What string
}

func (r *Refusal) Error() string { return fmt.Sprintf("%s: %s", r.Pos, r.What) }

// Options choose the code to rewrite.
type Options struct {
	Dir     string            // the module's root
	Package string            // import path of the package whose test is rewritten
	Source  map[string][]byte // contents of files that replace those on disk, by absolute path
	Race    bool
	Out     string // the folder for the output
}

// asIs are packages of the module that stay unchanged: they wait for no other goroutine, and the
// order of goroutines does not change what they do.
var asIs = []string{module + "/internal/filelock", module + "/internal/ownfolder", module + "/internal/regular", module + "/internal/secureenv",
	module + "/internal/this-go-is-too-new/build-with-ldflags-checklinkname-0/or-see-docs-new-go"}

// Overlay writes the rewritten source of a package's test, and of all packages of the module that
// it needs, and returns the file for -overlay.
func Overlay(o Options) (string, error) {
	env := append(os.Environ(), "CGO_ENABLED=0")
	near := &packages.Config{Mode: packages.NeedName | packages.NeedImports | packages.NeedDeps | packages.NeedFiles, Dir: o.Dir, Env: env, Tests: true, Overlay: o.Source, BuildFlags: o.tags()}
	roots, err := packages.Load(near, o.Package)
	if err != nil {
		return "", err
	}
	if err := errorsOf(roots); err != nil {
		return "", err
	}
	paths := map[string]bool{}
	packages.Visit(roots, nil, func(p *packages.Package) {
		path := strings.TrimSuffix(p.PkgPath, "_test")
		if path == module || strings.HasPrefix(path, module+"/") {
			if path != explore && !slices.Contains(asIs, path) && !strings.HasPrefix(path, explore+"/") && !strings.HasSuffix(path, ".test") {
				paths[path] = true
			}
		}
	})
	root := roots[0].PkgPath
	root = strings.TrimSuffix(strings.TrimSuffix(root, ".test"), "_test")
	all := []string{}
	for p := range paths {
		if p != root {
			all = append(all, p)
		}
	}
	for _, s := range standIns {
		all = append(all, explore+"/std/"+s)
	}
	slices.Sort(all)
	full := &packages.Config{Mode: packages.NeedName | packages.NeedFiles | packages.NeedCompiledGoFiles | packages.NeedImports | packages.NeedSyntax | packages.NeedTypes | packages.NeedTypesInfo | packages.NeedForTest,
		Dir: o.Dir, Env: env, Overlay: o.Source, BuildFlags: o.tags()}
	pkgs, err := packages.Load(full, all...)
	if err != nil {
		return "", err
	}
	full.Tests = true
	own, err := packages.Load(full, root)
	if err != nil {
		return "", err
	}
	pkgs = append(own, pkgs...)
	if err := errorsOf(pkgs); err != nil {
		return "", err
	}
	w := &rewriter{exports: map[string]*types.Scope{}, overlay: map[string]string{}, out: o.Out, source: o.Source}
	for _, p := range pkgs {
		if of, ok := strings.CutPrefix(p.PkgPath, explore+"/std/"); ok {
			w.exports[of] = p.Types.Scope()
		}
	}
	var errs []error
	// A package may be listed with and without its tests: the variant with tests has all files, so
	// it comes first.
	slices.SortStableFunc(pkgs, func(a, b *packages.Package) int { return len(b.Syntax) - len(a.Syntax) })
	for _, p := range pkgs {
		path := strings.TrimSuffix(p.PkgPath, "_test")
		if !paths[path] || strings.HasSuffix(p.PkgPath, ".test") {
			continue
		}
		for i, f := range p.Syntax {
			name := p.CompiledGoFiles[i]
			if _, ok := w.overlay[name]; ok || !strings.HasSuffix(name, ".go") {
				continue
			}
			if err := w.file(p, f, name); err != nil {
				errs = append(errs, err)
			}
		}
		for _, name := range p.OtherFiles {
			if strings.HasSuffix(name, ".s") {
				errs = append(errs, &Refusal{token.Position{Filename: name}, "assembly"})
			}
		}
	}
	if err := errors.Join(errs...); err != nil {
		return "", err
	}
	mode := filepath.Join(o.Dir, "internal", "explore", "mode.go")
	if err := w.write(mode, []byte("package explore\n\nconst rewritten = true\n")); err != nil {
		return "", err
	}
	for name, text := range o.Source { // files that are not Go, or were not rewritten
		if _, ok := w.overlay[name]; !ok {
			if err := w.write(name, text); err != nil {
				return "", err
			}
		}
	}
	return overlay.Write(o.Out, w.overlay)
}

func errorsOf(pkgs []*packages.Package) error {
	var errs []error
	packages.Visit(pkgs, nil, func(p *packages.Package) {
		for _, e := range p.Errors {
			errs = append(errs, e)
		}
	})
	return errors.Join(errs...)
}

type rewriter struct {
	exports map[string]*types.Scope // exported names of the stand-in packages
	overlay map[string]string
	out     string
	source  map[string][]byte
}

func (w *rewriter) write(name string, text []byte) error {
	file := filepath.Join(w.out, fmt.Sprintf("%04d-%s", len(w.overlay), filepath.Base(name)))
	w.overlay[name] = file
	return os.WriteFile(file, text, 0o644)
}

// file rewrites a file.
func (w *rewriter) file(p *packages.Package, f *ast.File, name string) error {
	src, ok := w.source[name]
	if !ok {
		var err error
		if src, err = os.ReadFile(name); err != nil {
			return err
		}
	}
	e := &edit{fset: p.Fset, info: p.TypesInfo, file: p.Fset.File(f.FileStart), src: src, name: name, exports: w.exports}
	if err := e.rewrite(f); err != nil {
		return err
	}
	return w.write(name, e.text(0, len(src)))
}

// An edit is a file being rewritten.
type edit struct {
	fset    *token.FileSet
	info    *types.Info
	file    *token.File
	name    string
	src     []byte
	exports map[string]*types.Scope

	changes []change
	uses    bool // the file needs the import of internal/explore
	selects int
	errs    []error
}

// A change replaces the bytes between two offsets by a text.
type change struct {
	from, to int
	text     string
	// order sorts insertions at one place: closing brackets come before opening ones, outer opening
	// brackets before inner ones, and inner closing brackets before outer ones.
	order int
}

func (e *edit) at(p token.Pos) int { return e.file.Offset(p) }

func (e *edit) refuse(n ast.Node, format string, args ...any) {
	e.errs = append(e.errs, &Refusal{e.fset.Position(n.Pos()), fmt.Sprintf(format, args...)})
}

func (e *edit) replace(from, to token.Pos, text string) {
	e.changes = append(e.changes, change{e.at(from), e.at(to), text, 0})
}

// open and close insert text before and after a node. Call them for inner nodes before outer ones.
func (e *edit) open(p token.Pos, text string) {
	e.changes = append(e.changes, change{e.at(p), e.at(p), text, 1_000_000 - len(e.changes)})
}

func (e *edit) close(p token.Pos, text string) {
	e.changes = append(e.changes, change{e.at(p), e.at(p), text, -1_000_000 + len(e.changes)})
}

// text returns a part of the file after the changes. If changes overlap, only the outermost is
// made.
func (e *edit) text(from, to int) []byte {
	var in []change
	for _, c := range e.changes {
		if c.from >= from && c.to <= to {
			in = append(in, c)
		}
	}
	slices.SortStableFunc(in, func(a, b change) int {
		switch {
		case a.from != b.from:
			return a.from - b.from
		case a.from == a.to && b.from == b.to:
			return a.order - b.order
		case a.from == a.to:
			return -1
		case b.from == b.to:
			return 1
		}
		return b.to - a.to
	})
	var out []byte
	for _, c := range in {
		if c.from < from {
			continue // lies inside a change that was made
		}
		out = append(out, e.src[from:c.from]...)
		out = append(out, c.text...)
		from = c.to
	}
	return append(out, e.src[from:to]...)
}

// of returns the text of a node after the changes, joined to one line.
func (e *edit) of(n ast.Node) string {
	text := string(e.text(e.at(n.Pos()), e.at(n.End())))
	if strings.Contains(text, "\n") {
		if strings.Contains(text, "//") {
			e.refuse(n, "a comment inside of a case of select")
		}
		text = strings.ReplaceAll(text, "\n", " ")
	}
	return text
}

func (e *edit) call(name string) string {
	e.uses = true
	return alias + "." + name
}

func (e *edit) rewrite(f *ast.File) error {
	e.imports(f)
	for _, c := range f.Comments {
		for _, l := range c.List {
			if strings.HasPrefix(l.Text, "//go:linkname ") {
				e.refuse(l, "go:linkname: the linked code cannot be rewritten")
			}
		}
	}
	var labels []string
	done := map[ast.Node]bool{} // receives with two results
	astutil.Apply(f, func(c *astutil.Cursor) bool {
		switch n := c.Node().(type) {
		case *ast.ImportSpec:
			return false
		case *ast.AssignStmt:
			if len(n.Lhs) == 2 && len(n.Rhs) == 1 {
				if x := receive(n.Rhs[0]); x != nil {
					done[x] = true
				}
			}
		case *ast.ValueSpec:
			if len(n.Names) == 2 && len(n.Values) == 1 {
				if x := receive(n.Values[0]); x != nil {
					done[x] = true
				}
			}
		}
		return true
	}, nil)
	two := done
	inSelect := map[ast.Node]bool{}
	ast.Inspect(f, func(n ast.Node) bool {
		if s, ok := n.(*ast.SelectStmt); ok {
			for _, c := range s.Body.List {
				switch x := c.(*ast.CommClause).Comm.(type) {
				case *ast.SendStmt:
					inSelect[x] = true
				case *ast.ExprStmt:
					inSelect[receive(x.X)] = true
				case *ast.AssignStmt:
					inSelect[receive(x.Rhs[0])] = true
				}
			}
		}
		return true
	})
	_ = labels
	astutil.Apply(f, nil, func(c *astutil.Cursor) bool {
		switch n := c.Node().(type) {
		case *ast.UnaryExpr:
			if n.Op == token.ARROW && !inSelect[n] {
				name := "Recv("
				if two[n] {
					name = "Recv2("
				}
				e.replace(n.OpPos, n.OpPos+2, e.call(name))
				e.close(n.End(), ")")
			}
		case *ast.SendStmt:
			if !inSelect[n] {
				e.open(n.Chan.Pos(), e.call("Send("))
				e.replace(n.Arrow, n.Arrow+2, ").Value(")
				e.close(n.Value.End(), ")")
			}
		case *ast.GoStmt:
			e.goStmt(n)
		case *ast.SelectStmt:
			e.selectStmt(n)
		case *ast.RangeStmt:
			e.rangeStmt(n)
		case *ast.CallExpr:
			if id, ok := ast.Unparen(n.Fun).(*ast.Ident); ok && id.Name == "close" {
				if _, ok := e.info.Uses[id].(*types.Builtin); ok {
					e.replace(id.Pos(), id.End(), e.call("Close"))
				}
			}
		case *ast.IndexExpr:
			if e.isTarget(c) {
				e.key(n.X, n.Index)
			}
		case *ast.CompositeLit:
			if t := e.info.TypeOf(n); t != nil {
				if m, ok := t.Underlying().(*types.Map); ok && pointed(m.Key()) {
					for _, x := range n.Elts {
						k := x.(*ast.KeyValueExpr).Key
						e.open(k.Pos(), e.call("Key("))
						e.close(k.End(), ")")
					}
				}
			}
		}
		return true
	})
	if e.uses {
		e.close(f.Name.End(), "; import "+alias+" "+strconv.Quote(explore))
	}
	return errors.Join(e.errs...)
}

// receive returns x without parentheses if it receives from a channel, and otherwise nil.
func receive(x ast.Expr) ast.Node {
	if u, ok := ast.Unparen(x).(*ast.UnaryExpr); ok && u.Op == token.ARROW {
		return u
	}
	return nil
}

// imports replaces imports as standIns says. It refuses other packages unless they are harmless or
// of the module.
func (e *edit) imports(f *ast.File) {
	for _, s := range f.Imports {
		path, err := strconv.Unquote(s.Path.Value)
		if err != nil {
			e.refuse(s, "%v", err)
			continue
		}
		if path == "C" {
			e.refuse(s, "cgo")
		}
		if s.Name != nil && s.Name.Name == "." {
			e.refuse(s, "a dot import")
		}
		if at, ok := standIns[path]; ok {
			e.replace(s.Path.Pos(), s.Path.End(), strconv.Quote(explore+"/std/"+at))
			continue
		}
		if strings.HasPrefix(path, module+"/") {
			continue
		}
		if _, ok := harmless[path]; ok || slices.ContainsFunc(harmlessBelow, func(b string) bool { return strings.HasPrefix(path, b) }) {
			continue
		}
		if path == "unicode" {
			continue
		}
		e.refuse(s, "package %s: it has no stand-in, and is not in the list of harmless packages", path)
	}
	ast.Inspect(f, func(n ast.Node) bool {
		x, ok := n.(*ast.SelectorExpr)
		if !ok {
			return true
		}
		id, ok := x.X.(*ast.Ident)
		if !ok {
			return true
		}
		p, ok := e.info.Uses[id].(*types.PkgName)
		if !ok {
			return true
		}
		path := p.Imported().Path()
		if at, ok := standIns[path]; ok {
			if scope := e.exports[at]; scope == nil || scope.Lookup(x.Sel.Name) == nil {
				e.refuse(x, "%s.%s: it has no stand-in", path, x.Sel.Name)
			}
		}
		if slices.Contains(harmless[path], x.Sel.Name) {
			e.refuse(x, "%s.%s: it has no stand-in", path, x.Sel.Name)
		}
		return true
	})
}

func (e *edit) goStmt(n *ast.GoStmt) {
	sig, ok := e.info.TypeOf(n.Call.Fun).(*types.Signature)
	if !ok {
		sig, ok = e.info.TypeOf(n.Call.Fun).Underlying().(*types.Signature)
	}
	if !ok || n.Call.Ellipsis.IsValid() || sig.Variadic() {
		e.refuse(n, "a go statement with a builtin, or a function of any number of arguments")
		return
	}
	params, results := sig.Params().Len(), sig.Results().Len()
	if params > 4 || results > 1 || params != len(n.Call.Args) {
		e.refuse(n, "a go statement with a function of %d arguments and %d results", params, results)
		return
	}
	name := "Go"
	if params > 0 || results > 0 {
		name += strconv.Itoa(params)
	}
	if results > 0 {
		name += "R"
	}
	e.replace(n.Go, n.Go+2, "")
	e.open(n.Call.Fun.Pos(), e.call(name+"("))
	e.close(n.Call.Fun.End(), ")")
	if name == "Go" {
		e.replace(n.Call.Lparen, n.Call.Rparen+1, "")
	}
}

func (e *edit) rangeStmt(n *ast.RangeStmt) {
	t := e.info.TypeOf(n.X)
	if t == nil {
		return
	}
	switch u := t.Underlying().(type) {
	case *types.Chan:
		e.open(n.X.Pos(), e.call("Elements("))
		e.close(n.X.End(), ")")
	case *types.Map:
		if n.Key != nil {
			e.open(n.X.Pos(), e.call("Pairs("))
			e.close(n.X.End(), ")")
		}
		_ = u
	}
}

// isTarget reports whether an index expression is the target of an assignment.
func (e *edit) isTarget(c *astutil.Cursor) bool {
	switch p := c.Parent().(type) {
	case *ast.AssignStmt:
		return c.Name() == "Lhs"
	case *ast.IncDecStmt:
		return true
	case *ast.RangeStmt:
		_ = p
		return c.Name() == "Key" || c.Name() == "Value"
	}
	return false
}

// key makes the program record k, a key that is put into the map x, if keys of this type have no
// order: pointers, channels and interfaces.
func (e *edit) key(x, k ast.Expr) {
	t := e.info.TypeOf(x)
	if t == nil {
		return
	}
	if m, ok := t.Underlying().(*types.Map); ok && pointed(m.Key()) {
		e.open(k.Pos(), e.call("Key("))
		e.close(k.End(), ")")
	}
}

func pointed(t types.Type) bool {
	switch u := t.Underlying().(type) {
	case *types.Pointer, *types.Chan, *types.Interface:
		return true
	case *types.Basic:
		return u.Kind() == types.UnsafePointer
	}
	return false
}

// selectStmt turns a select into a switch. The switch's init statement declares a variable for each
// case.
func (e *edit) selectStmt(n *ast.SelectStmt) {
	e.selects++
	var vars, values []string
	name := "Select("
	at := 0
	for _, c := range n.Body.List {
		c := c.(*ast.CommClause)
		if c.Comm == nil {
			name = "TrySelect("
			continue
		}
		v := fmt.Sprintf("_case%d_%d", e.selects, at)
		head := fmt.Sprintf("case %d:", at)
		at++
		vars = append(vars, v)
		switch x := c.Comm.(type) {
		case *ast.SendStmt:
			values = append(values, e.call("OnSend(")+e.of(x.Chan)+").Value("+e.of(x.Value)+")")
		case *ast.ExprStmt:
			values = append(values, e.call("OnRecv(")+e.of(receive(x.X).(*ast.UnaryExpr).X)+")")
		case *ast.AssignStmt:
			values = append(values, e.call("OnRecv(")+e.of(receive(x.Rhs[0]).(*ast.UnaryExpr).X)+")")
			from := []string{v + ".V", v + ".OK"}[:len(x.Lhs)]
			to := make([]string, len(x.Lhs))
			for i, l := range x.Lhs {
				to[i] = e.of(l)
			}
			head += " " + strings.Join(to, ", ") + " " + x.Tok.String() + " " + strings.Join(from, ", ") + ";"
		default:
			e.refuse(c, "a case of select that is neither a send nor a receive")
		}
		lines := strings.Count(string(e.src[e.at(c.Case):e.at(c.Colon)]), "\n")
		e.replace(c.Case, c.Colon+1, head+strings.Repeat("\n", lines))
	}
	if name == "Select(" { // a function may end with a select; with a switch only if the switch has a default case
		e.close(n.Body.Rbrace, `; default: panic("unreachable") `)
	}
	text := "switch "
	if len(vars) > 0 {
		text += strings.Join(vars, ", ") + " := " + strings.Join(values, ", ") + "; "
	}
	e.replace(n.Select, n.Body.Lbrace, text+e.call(name)+strings.Join(vars, ", ")+") ")
}

// tags are the flags that select the files of the build.
func (o Options) tags() []string {
	if o.Race {
		return []string{"-tags=race"}
	}
	return nil
}
