package main

import (
	"fmt"
	"go/ast"
	"go/token"
	"go/types"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/tools/go/packages"
)

// A rewriter collects the edits of one file.
type rewriter struct {
	res  *result
	pkg  *packages.Package
	file *ast.File
	name string
	text []byte
	gpu  *types.Package // package gpu as this package sees it, or nil
	// The name under which the file imports package gpu, with a dot. It is "" for a dot import, and
	// "gpu." if the file does not import the package.
	local string
	edits []edit
	need  map[string]string // packages to import: names by path

	called map[*ast.Ident]bool // names that were rewritten or reported already
	said   map[ast.Node]bool   // elements of literals that were rewritten, and need no report
}

// An edit replaces the text between two offsets by pieces. A piece is a string, or a node whose
// text moves here with its own edits.
type edit struct {
	from, to int
	pieces   []any
	closes   bool // the insertion belongs to the text before it, not to the text behind it
}

// newRewriter returns nil for a generated file, and for a package without type information.
func newRewriter(res *result, p *packages.Package, f *ast.File, name string, text []byte) *rewriter {
	if ast.IsGenerated(f) || p.Types == nil {
		return nil
	}
	w := &rewriter{res: res, pkg: p, file: f, name: name, text: text, local: "gpu.", need: map[string]string{},
		called: map[*ast.Ident]bool{}, said: map[ast.Node]bool{}}
	for _, i := range p.Types.Imports() {
		if i.Path() == gpuPath {
			w.gpu = i
		}
	}
	if p.PkgPath == gpuPath {
		w.gpu = p.Types
	}
	if name, imported := w.importName(gpuPath); imported {
		w.local = name
	}
	return w
}

// importName reports whether the file imports a package, and returns the package's name in the file
// with a dot, or "" for a dot import.
func (w *rewriter) importName(path string) (name string, imported bool) {
	for _, i := range w.file.Imports {
		if p, _ := strconv.Unquote(i.Path.Value); p != path || i.Name != nil && i.Name.Name == "_" {
			continue
		}
		switch {
		case i.Name == nil:
			return path[strings.LastIndex(path, "/")+1:] + ".", true
		case i.Name.Name == ".":
			return "", true
		}
		return i.Name.Name + ".", true
	}
	return "", false
}

// walk visits the code. Package gpu itself is rewritten by hand.
func (w *rewriter) walk() {
	if w.pkg.PkgPath == gpuPath {
		return
	}
	var stack []ast.Node
	ast.Inspect(w.file, func(n ast.Node) bool {
		if n == nil {
			stack = stack[:len(stack)-1]
			return true
		}
		switch n := n.(type) {
		case *ast.CallExpr:
			w.call(n, stack)
		case *ast.CompositeLit:
			w.literal(n)
		case *ast.KeyValueExpr:
			if key, ok := n.Key.(*ast.Ident); ok && !w.said[n] {
				w.field(key)
			}
		case *ast.SelectorExpr:
			w.selector(n)
			w.field(n.Sel)
		case *ast.InterfaceType:
			w.iface(n)
		case *ast.StructType:
			w.embedded(n)
		case *ast.FuncDecl:
			w.example(n)
		case *ast.Ident:
			w.ident(n)
		}
		stack = append(stack, n)
		return true
	})
}

// call rewrites the call of a method that has a rule. stack holds the enclosing nodes.
func (w *rewriter) call(c *ast.CallExpr, stack []ast.Node) {
	sel, ok := ast.Unparen(c.Fun).(*ast.SelectorExpr)
	if !ok {
		return
	}
	if len(c.Args) > 1 { // with several arguments this calls the new function Native, and does not convert to the old type
		w.called[sel.Sel] = sel.Sel.Name == "Native"
	}
	s := w.pkg.TypesInfo.Selections[sel]
	if s == nil || s.Kind() != types.MethodVal {
		return
	}
	fn := s.Obj().(*types.Func)
	key := w.method(fn)
	if key == "" && types.IsInterface(s.Recv()) && w.declaredBy(fn) != "" {
		w.report(sel.Sel, "a call of an interface's method that is %s's", w.declaredBy(fn))
		return
	}
	r, ok := rules[key]
	if !ok || r.form == renamed {
		return
	}
	switch r.form {
	case function, withContext:
		w.function(c, sel, key, r)
		return
	case grouped:
		w.grouped(c, sel, key, r.op)
		return
	}
	if r.form == byHand {
		w.called[sel.Sel] = true
		w.report(sel.Sel, "%s, which is gone", key)
		return
	}
	w.called[sel.Sel] = true
	if own := w.shadowed(s.Recv(), key); own != "" {
		w.report(sel.Sel, "%s of an embedded field, behind a method %s", key, own)
		return
	}
	// fixed is the number of arguments before the variadic ones.
	sig := fn.Type().(*types.Signature)
	fixed, most := sig.Params().Len(), sig.Params().Len()
	if sig.Variadic() {
		fixed, most = fixed-1, 1<<30
	}
	if len(c.Args) < fixed || len(c.Args) > most {
		if r.form != moved { // an argument may be rewritten already
			w.report(sel.Sel, "%s has other arguments than expected", key)
		}
		return
	}
	if r.form == moved && through[w.typeName(w.pkg.TypesInfo.TypeOf(c.Args[0]))] == "" {
		if w.pkg.TypesInfo.Types[c.Args[0]].IsNil() {
			w.report(sel.Sel, "%s on nil", key)
		}
		return // rewritten already
	}
	if r.form != moved && !w.visible(c.Pos(), r.op) {
		w.report(sel.Sel, "%s: the name of package %s means something else here", key, packageOf(r.op))
		return
	}
	from, end := w.at(c.Lparen)+1, w.at(c.Rparen)
	begin := func(i int) int { // the offset where argument i starts
		if i < len(c.Args) {
			return w.at(c.Args[i].Pos())
		}
		return end
	}
	op := r.op
	if r.form != moved && r.form != alloc {
		op = w.qualified(op)
	} else {
		op = w.local + op
	}
	op += "("
	if r.op == "Native" {
		op += `"", `
	}
	switch r.form {
	case alloc:
		if _, said := w.order(c.Args[0]); w.test() && len(said) == 0 {
			w.replace(w.at(c.Pos()), from, w.use(testkitPath), testkitAlloc, "(", sel.X, ", ")
			break
		}
		into := w.assigned(c, stack)
		if into == "" {
			w.report(sel.Sel, "%s: its result must go to a variable first", key)
			return
		}
		said := w.takeSaid(c.Args[0])
		w.rename(sel.Sel, "Submit")
		w.open(begin(1), op, "&"+into, ", ")
		w.close(end, append([]any{")"}, said...)...)
	case queued:
		said := w.takeSaid(c.Args[0])
		w.rename(sel.Sel, "Submit")
		if len(c.Args) == 1 {
			w.close(w.at(c.Args[0].End()), append([]any{", " + op + ")"}, said...)...)
		} else {
			w.open(begin(1), op)
			w.close(end, append([]any{")"}, said...)...)
		}
	case freed:
		said := w.takeSaid(c.Args[0])
		w.replace(w.at(sel.Sel.Pos()), begin(0), "Device().Queue(0).Submit(")
		w.close(w.at(c.Args[0].End()), append([]any{", " + op, sel.X, ")"}, said...)...)
	case done:
		w.rename(sel.Sel, "Do")
		if len(c.Args) == 0 {
			op += ")"
		} else {
			w.close(end, ")")
		}
		w.open(from, op)
	case recorded:
		if !w.record(c, sel.Sel, key, op, fixed, stack) {
			return
		}
	case moved:
		via := w.typeName(w.pkg.TypesInfo.TypeOf(c.Args[0]))
		n := 1 // number of arguments that move
		pieces := []any{paren(c.Args[0]), "." + through[via] + "("}
		var said []any
		if key == "TypedKernel.Dispatch" {
			n, said = 2, w.takeSaid(c.Args[1])
			pieces = append(pieces, c.Args[1], ", ")
		}
		w.open(w.at(c.Pos()), pieces...)
		w.rename(sel.Sel, r.op)
		w.replace(w.at(c.Args[0].Pos()), begin(n))
		if n < fixed && key == "TypedKernel.Record" && len(c.Args) > fixed {
			w.close(w.at(c.Args[fixed-1].End()), ")")
		} else {
			w.close(w.at(c.End()), append(said, ")")...)
		}
	}
	w.done(c.Pos(), key)
}

// function rewrites the call of a method that is now a function of another package.
func (w *rewriter) function(c *ast.CallExpr, sel *ast.SelectorExpr, key string, r rule) {
	w.called[sel.Sel] = true
	if !w.visible(c.Pos(), r.op) {
		w.report(sel.Sel, "%s: the name of package %s means something else here", key, packageOf(r.op))
		return
	}
	pieces, rest := []any{w.qualified(r.op), "("}, c.Args
	if r.form == withContext {
		if len(c.Args) < 2 {
			w.report(sel.Sel, "%s has other arguments than expected", key)
			return
		}
		pieces, rest = append(pieces, c.Args[0], ", "), c.Args[1:]
	}
	_, isPointer := types.Unalias(w.pkg.TypesInfo.TypeOf(sel.X)).(*types.Pointer)
	switch {
	case key == "Group.NewChannels":
		pieces = append(pieces, sel.X, ".Devices()")
	case isPointer:
		pieces = append(pieces, sel.X)
	default:
		pieces = append(pieces, "&", sel.X)
	}
	end := w.at(c.Lparen) + 1
	if len(rest) > 0 {
		pieces, end = append(pieces, ", "), w.at(rest[0].Pos())
	}
	w.replace(w.at(c.Pos()), end, pieces...)
	w.done(c.Pos(), key)
}

// grouped rewrites the call of a channel's Submit. The call then submits to queue 0 of the
// channel's device.
func (w *rewriter) grouped(c *ast.CallExpr, sel *ast.SelectorExpr, key, op string) {
	w.called[sel.Sel] = true
	if len(c.Args) < 2 {
		w.report(sel.Sel, "%s has other arguments than expected", key)
		return
	}
	w.replace(w.at(sel.Sel.Pos()), w.at(c.Args[0].Pos()), "Device().Queue(0).Submit(", c.Args[1], ", ", sel.X, ".", op, "(")
	if len(c.Args) == 2 {
		w.replace(w.at(c.Args[0].End()), w.at(c.End()), "))")
	} else {
		w.replace(w.at(c.Args[0].End()), w.at(c.Args[2].Pos()), ", ")
		w.close(w.at(c.Rparen), ")")
	}
	w.done(c.Pos(), key)
}

// selector rewrites a name of package gpu that moved to another package.
func (w *rewriter) selector(n *ast.SelectorExpr) {
	id, _ := n.X.(*ast.Ident)
	if id == nil {
		return
	}
	p, _ := w.pkg.TypesInfo.Uses[id].(*types.PkgName)
	r, ok := rules[n.Sel.Name]
	if p == nil || p.Imported().Path() != gpuPath || !ok || r.form != renamed || packageOf(r.op) == "gpu" {
		return
	}
	w.called[n.Sel] = true
	if !w.visible(n.Pos(), r.op) {
		w.report(n.Sel, "%s: the name of package %s means something else here", n.Sel.Name, packageOf(r.op))
		return
	}
	w.replace(w.at(n.Pos()), w.at(n.End()), w.qualified(r.op))
	w.done(n.Pos(), n.Sel.Name)
}

// packageOf returns the package of a name in a rule.
func packageOf(op string) string {
	if pkg, _, ok := strings.Cut(op, "."); ok && pkg == strings.ToLower(pkg) {
		return pkg
	}
	return "gpu"
}

// qualified returns a name in a rule as the file writes the name, and imports the name's package.
func (w *rewriter) qualified(op string) string {
	if pkg := packageOf(op); pkg != "gpu" {
		return w.use(module+"/runtime/"+pkg) + strings.TrimPrefix(op, pkg+".")
	}
	w.use(gpuPath)
	return w.local + op
}

// assigned rewrites the assignment of a call's two results. After the rewrite the call sets the
// first result through a pointer to a variable. assigned returns that variable, or "" if the call
// cannot be rewritten where it is.
func (w *rewriter) assigned(c *ast.CallExpr, stack []ast.Node) string {
	a, ok := stack[len(stack)-1].(*ast.AssignStmt)
	if !ok || len(a.Lhs) != 2 || len(stack) < 2 {
		return ""
	}
	into := w.render(w.at(a.Lhs[0].Pos()), w.at(a.Lhs[0].End()))
	before, token := "", " = "
	switch v := a.Lhs[0].(type) {
	case *ast.Ident:
		if v.Name == "_" {
			return ""
		}
		if w.pkg.TypesInfo.Defs[v] != nil {
			before = "var " + into + " *" + w.local + "Buffer\n"
		}
	case *ast.IndexExpr:
		if _, ok := w.pkg.TypesInfo.TypeOf(v.X).Underlying().(*types.Map); ok {
			return ""
		}
	case *ast.SelectorExpr:
	default:
		return ""
	}
	if before != "" {
		switch stack[len(stack)-2].(type) {
		case *ast.BlockStmt, *ast.CaseClause, *ast.CommClause:
		default:
			return "" // a declaration of the variable cannot stand here
		}
		for _, arg := range c.Args { // an argument may use another variable of that name
			if mentions(arg, into) {
				return ""
			}
		}
	}
	if err, ok := a.Lhs[1].(*ast.Ident); ok && w.pkg.TypesInfo.Defs[err] != nil {
		token = " := "
	}
	w.replace(w.at(a.Pos()), w.at(a.Rhs[0].Pos()), before, a.Lhs[1], token)
	return into
}

// mentions reports whether an expression contains a name.
func mentions(e ast.Expr, name string) (found bool) {
	ast.Inspect(e, func(n ast.Node) bool {
		id, ok := n.(*ast.Ident)
		found = found || ok && id.Name == name
		return true
	})
	return found
}

// shadowed returns the name of the method that takes an Op, if the receiver has another method of
// that name.
func (w *rewriter) shadowed(recv types.Type, key string) string {
	owner, _, _ := strings.Cut(key, ".")
	name := through[owner]
	obj, _, _ := types.LookupFieldOrMethod(recv, true, w.pkg.Types, name)
	if name == "" || obj == nil || obj.Pkg() != nil && obj.Pkg().Path() == gpuPath {
		return ""
	}
	return name
}

// record rewrites the call of a command buffer's method. It returns false if it reports the call
// instead.
func (w *rewriter) record(c *ast.CallExpr, name *ast.Ident, key, op string, fixed int, stack []ast.Node) bool {
	end := ")"
	switch key {
	case "CommandBuffer.Execute": // it returns only an error
		parent := stack[len(stack)-1]
		assign, _ := parent.(*ast.AssignStmt)
		if _, ok := parent.(*ast.ExprStmt); !ok && (assign == nil || len(assign.Lhs) != 1) {
			w.report(name, "%s: Add has two results", key)
			return false
		}
		if assign != nil {
			w.open(w.at(assign.Pos()), "_, ")
		}
		fixed = len(c.Args)
		if c.Ellipsis.IsValid() {
			end = "...)"
		}
	case "CommandBuffer.Native", "CommandBuffer.Nest":
		list := c.Args[1]
		lit, isLit := list.(*ast.CompositeLit)
		switch id, _ := list.(*ast.Ident); {
		case id != nil && id.Name == "nil", isLit && len(lit.Elts) == 0:
			w.replace(w.at(c.Args[0].End()), w.at(list.End()))
		case isLit && w.bare(lit):
			w.replace(w.at(lit.Pos()), w.at(lit.Lbrace)+1)
			w.replace(w.at(lit.Elts[len(lit.Elts)-1].End()), w.at(lit.End()))
		default:
			end = "...)"
		}
	}
	w.rename(name, "Add")
	if fixed == 0 {
		w.open(w.at(c.Lparen)+1, op+")")
		return true
	}
	w.open(w.at(c.Args[0].Pos()), op)
	if key == "CommandBuffer.Execute" && c.Ellipsis.IsValid() {
		w.replace(w.at(c.Ellipsis), w.at(c.Ellipsis)+3) // end writes the dots
	}
	w.close(w.at(c.Args[fixed-1].End()), end)
	return true
}

// bare reports whether the elements of a list literal can stand alone: none omits its type.
func (w *rewriter) bare(list *ast.CompositeLit) bool {
	return !slices.ContainsFunc(list.Elts, func(e ast.Expr) bool {
		lit, ok := e.(*ast.CompositeLit)
		_, keyed := e.(*ast.KeyValueExpr)
		return keyed || ok && lit.Type == nil
	})
}

// order returns the literal and its elements Label and Timing if e is a literal of an Order. Else
// order returns nil.
func (w *rewriter) order(e ast.Expr) (lit *ast.CompositeLit, said []*ast.KeyValueExpr) {
	lit, ok := e.(*ast.CompositeLit)
	if !ok || w.typeName(w.pkg.TypesInfo.TypeOf(lit)) != "Order" {
		return nil, nil
	}
	for _, e := range lit.Elts {
		if kv, ok := e.(*ast.KeyValueExpr); ok {
			if key, ok := kv.Key.(*ast.Ident); ok && (key.Name == "Label" || key.Name == "Timing") {
				said = append(said, kv)
			}
		}
	}
	return lit, said
}

// takeSaid removes Label and Timing from the literal of an Order. It returns the calls of an Op's
// methods that replace them.
func (w *rewriter) takeSaid(e ast.Expr) (calls []any) {
	lit, said := w.order(e)
	if len(said) == 0 {
		return nil
	}
	kept := len(lit.Elts) // the elements from this index on are removed
	for kept > 0 && slices.Contains(said, asKeyValue(lit.Elts[kept-1])) {
		kept--
	}
	for i, e := range lit.Elts[:kept] {
		if slices.Contains(said, asKeyValue(e)) {
			w.replace(w.at(e.Pos()), w.at(lit.Elts[i+1].Pos()))
		}
	}
	switch {
	case kept == 0:
		w.replace(w.at(lit.Lbrace)+1, w.at(lit.Rbrace))
	case kept < len(lit.Elts):
		w.replace(w.at(lit.Elts[kept-1].End()), w.at(lit.Elts[len(lit.Elts)-1].End()))
	}
	for _, kv := range said {
		name := ".Label("
		if kv.Key.(*ast.Ident).Name == "Timing" {
			name = ".Timed("
		}
		calls = append(calls, name, kv.Value, ")")
		w.said[kv] = true
		w.done(kv.Pos(), "Order."+kv.Key.(*ast.Ident).Name)
	}
	return calls
}

func asKeyValue(e ast.Expr) *ast.KeyValueExpr {
	kv, _ := e.(*ast.KeyValueExpr)
	return kv
}

// literal reports literals of Dispatch.
func (w *rewriter) literal(lit *ast.CompositeLit) {
	if w.typeName(w.pkg.TypesInfo.TypeOf(lit)) == "Dispatch" {
		w.report(lit, "a literal of Dispatch")
	}
}

// field reports uses of removed fields.
func (w *rewriter) field(name *ast.Ident) {
	v, ok := w.pkg.TypesInfo.Uses[name].(*types.Var)
	if !ok || !v.IsField() || v.Pkg() == nil || v.Pkg().Path() != gpuPath {
		return
	}
	for owner, gone := range fields {
		of := v.Pkg().Scope().Lookup(owner)
		if of == nil || !slices.Contains(gone, v.Name()) {
			continue
		}
		t, _ := of.Type().Underlying().(*types.Struct)
		for i := 0; t != nil && i < t.NumFields(); i++ {
			if t.Field(i) == v {
				w.report(name, "%s.%s", owner, v.Name())
			}
		}
	}
}

// iface reports the methods of an interface that match methods of package gpu in rules.
func (w *rewriter) iface(t *ast.InterfaceType) {
	for _, m := range t.Methods.List {
		for _, name := range m.Names {
			if fn, ok := w.pkg.TypesInfo.Defs[name].(*types.Func); ok && w.declaredBy(fn) != "" {
				w.report(name, "an interface's method that is %s's", w.declaredBy(fn))
			}
		}
	}
}

// declaredBy returns the type of package gpu that has a method in the map rules with the name and
// type of fn, or "".
func (w *rewriter) declaredBy(fn *types.Func) string {
	if w.gpu == nil {
		return ""
	}
	for _, name := range []string{"Queue", "Stream", "CommandBuffer", "Buffer"} {
		if _, ok := rules[name+"."+fn.Name()]; !ok {
			continue
		}
		t, ok := w.gpu.Scope().Lookup(name).(*types.TypeName)
		if !ok {
			continue
		}
		m, _, _ := types.LookupFieldOrMethod(types.NewPointer(t.Type()), false, nil, fn.Name())
		if m != nil && types.Identical(m.Type(), fn.Type()) {
			return name
		}
	}
	return ""
}

// embedded reports embedded fields whose names would change.
func (w *rewriter) embedded(t *ast.StructType) {
	for _, f := range t.Fields.List {
		name := w.typeName(w.pkg.TypesInfo.TypeOf(f.Type))
		if r := rules[name]; len(f.Names) == 0 && r.op != "" {
			w.report(f, "an embedded field that becomes %s", strings.TrimPrefix(r.op, packageOf(r.op)+"."))
		}
	}
}

var exampleName = regexp.MustCompile(`^Example([A-Z]\w*)_([A-Z]\w*?)(_[a-z]\w*)?$`)

// example reports an example function of package gpu whose method was removed or renamed.
func (w *rewriter) example(f *ast.FuncDecl) {
	if m := exampleName.FindStringSubmatch(f.Name.Name); m != nil && w.pkg.PkgPath == gpuPath+"_test" {
		if r, ok := rules[m[1]+"."+m[2]]; ok && (r.form != moved || r.op != m[2]) {
			w.report(f.Name, "an example of %s.%s", m[1], m[2])
		}
	}
}

// ident renames the use of a name, and reports methods that are used as values.
func (w *rewriter) ident(id *ast.Ident) {
	obj := w.pkg.TypesInfo.Uses[id]
	if obj == nil || obj.Pkg() == nil || obj.Pkg().Path() != gpuPath {
		return
	}
	key := ""
	switch obj := obj.(type) {
	case *types.Func:
		if key = w.method(obj); key == "" && obj.Signature().Recv() == nil {
			key = obj.Name()
		}
	case *types.TypeName, *types.Const, *types.Var:
		if obj.Parent() == obj.Pkg().Scope() {
			key = obj.Name()
		}
	}
	if _, isFunc := obj.(*types.Func); isFunc && key == "Native" {
		return // renamed already
	}
	switch r, ok := rules[key]; {
	case !ok || w.called[id]:
	case r.form == renamed && packageOf(r.op) == "gpu":
		w.rename(id, r.op)
		w.done(id.Pos(), key)
	case r.form == renamed: // through a dot import
		w.rename(id, w.qualified(r.op))
		w.done(id.Pos(), key)
	default:
		w.report(id, "%s as a value", key)
	}
}

// linkPattern matches a doc link: its part before the name, and the name.
var linkPattern = regexp.MustCompile(`\[(\*?)((?:[\w.-]+/)*[a-z]\w*\.)?([A-Z]\w*(?:\.[A-Z]\w*)?)\]`)

// comments rewrites doc links.
func (w *rewriter) comments() {
	inside := w.pkg.PkgPath == gpuPath || w.pkg.PkgPath == gpuPath+"_test"
	if w.pkg.PkgPath == gpuPath && strings.HasSuffix(w.name, "_test.go") {
		return
	}
	for _, group := range w.file.Comments {
		for _, c := range group.List {
			at := w.at(c.Pos())
			raw := string(w.text[at:w.at(c.End())])
			for _, m := range linkPattern.FindAllStringSubmatchIndex(raw, -1) {
				prefix, name := "", raw[m[6]:m[7]]
				if m[4] >= 0 {
					prefix = raw[m[4]:m[5]]
				}
				if prefix != w.local && prefix != gpuPath+"." && (prefix != "" || !inside) || m[1] < len(raw) && raw[m[1]] == '(' {
					continue
				}
				to, changes := newLink(name)
				if !changes {
					continue
				}
				pos := c.Pos() + token.Pos(m[6])
				if to == "" {
					w.reportAt(pos, "the link [%s%s]", prefix, name)
					continue
				}
				if pkg := packageOf(to); pkg != "gpu" {
					path := module + "/runtime/" + pkg
					if _, imported := w.importName(path); imported || w.need[path] != "" {
						path = pkg
					}
					w.replace(at+m[6]-len(prefix), at+m[7], path+strings.TrimPrefix(to, pkg))
				} else {
					w.replace(at+m[6], at+m[7], to)
				}
				w.done(pos, "doc link")
			}
		}
	}
}

// newLink reports whether a doc link changes, and returns its new text, or "" if a person must
// decide.
func newLink(name string) (to string, changes bool) {
	if to, ok := links[name]; ok {
		return to, true
	}
	owner, member, isMember := strings.Cut(name, ".")
	r, ok := rules[name]
	switch {
	case !ok && isMember && rules[owner].op != "": // a member of a type that has a new name
		return rules[owner].op + "." + member, true
	case !ok:
		return "", false
	case isMember && (r.form == renamed || r.form == moved) && packageOf(r.op) == "gpu":
		return owner + "." + r.op, r.op != member
	}
	return r.op, true // "" if a person must rewrite the link
}

// imports adds the imports that the new code needs.
func (w *rewriter) imports() {
	for path := range w.need {
		text := "\n" + strconv.Quote(path)
		last := w.file.Name.End()
		for _, d := range w.file.Decls {
			g, ok := d.(*ast.GenDecl)
			if !ok || g.Tok != token.IMPORT {
				break
			}
			for _, s := range g.Specs { // add the import behind the last one of the same module, or behind the last of all
				p, _ := strconv.Unquote(s.(*ast.ImportSpec).Path.Value)
				if before := strings.HasPrefix(w.importAt(last), module); !before || strings.HasPrefix(p, module) {
					last = s.End()
				}
			}
			if !g.Lparen.IsValid() {
				last = g.End()
			}
		}
		if last == w.file.Name.End() || !w.hasImportGroup() {
			text = "\nimport " + strconv.Quote(path)
		}
		w.close(w.at(last), text)
	}
}

// importAt returns the path of the import that ends at a position, or "".
func (w *rewriter) importAt(end token.Pos) string {
	for _, i := range w.file.Imports {
		if i.End() == end {
			p, _ := strconv.Unquote(i.Path.Value)
			return p
		}
	}
	return ""
}

// hasImportGroup reports whether the file has its imports in parentheses.
func (w *rewriter) hasImportGroup() bool {
	g, ok := w.file.Decls[0].(*ast.GenDecl)
	return ok && g.Tok == token.IMPORT && g.Lparen.IsValid()
}

// use imports a package and returns its name with a dot.
func (w *rewriter) use(path string) string {
	name, imported := w.importName(path)
	if !imported {
		name = path[strings.LastIndex(path, "/")+1:] + "."
		w.need[path] = name
	}
	return name
}

// test reports whether the file is a test of puregpu's runtime, which may import package testkit.
func (w *rewriter) test() bool {
	return strings.HasSuffix(w.name, "_test.go") && strings.HasPrefix(w.pkg.PkgPath, module+"/runtime/") && w.pkg.PkgPath != testkitPath
}

// visible reports whether, at a position, the name of the package that has op refers to that
// package.
func (w *rewriter) visible(pos token.Pos, op string) bool {
	path, local := module+"/runtime/"+packageOf(op), w.local
	if path != gpuPath {
		local = packageOf(op) + "."
		if name, imported := w.importName(path); imported {
			local = name
		}
	}
	name := strings.TrimSuffix(local, ".")
	scope := w.pkg.TypesInfo.Scopes[w.file]
	if name == "" || scope == nil {
		return true
	}
	if inner := scope.Innermost(pos); inner != nil {
		scope = inner
	}
	_, obj := scope.LookupParent(name, pos)
	p, ok := obj.(*types.PkgName)
	return obj == nil || ok && p.Imported().Path() == path
}

// method returns Type.Method for a method of package gpu, and TypedKernel.Method for a method of a
// generated kernel; otherwise "".
func (w *rewriter) method(fn *types.Func) string {
	recv := fn.Signature().Recv()
	if recv == nil || types.IsInterface(recv.Type()) {
		return ""
	}
	if name := w.typeName(recv.Type()); name != "" {
		return name + "." + fn.Name()
	}
	if through, ok := map[string]string{"Launch": "Stream", "Dispatch": "Queue", "Record": "CommandBuffer"}[fn.Name()]; ok {
		p := fn.Signature().Params()
		if p.Len() > 1 && w.typeName(p.At(0).Type()) == through && generated(w.pkg.Fset.Position(fn.Pos()).Filename) {
			return "TypedKernel." + fn.Name()
		}
	}
	return ""
}

// typeName returns the name of a type of package gpu, or of a pointer's element type; otherwise "".
func (w *rewriter) typeName(t types.Type) string {
	if p, ok := types.Unalias(t).(*types.Pointer); ok {
		t = p.Elem()
	}
	if n, ok := types.Unalias(t).(*types.Named); ok && n.Obj().Pkg() != nil && n.Obj().Pkg().Path() == gpuPath {
		return n.Obj().Name()
	}
	return ""
}

// generated reports whether kernelgen generated a file.
func generated(name string) bool {
	text, err := os.ReadFile(name)
	first, _, _ := strings.Cut(string(text), "\n")
	return err == nil && strings.Contains(first, "kernelgen") && strings.Contains(first, "DO NOT EDIT")
}

// paren puts e in parentheses if a selector could not follow e otherwise.
func paren(e ast.Expr) any {
	switch e.(type) {
	case *ast.UnaryExpr, *ast.StarExpr, *ast.BinaryExpr:
		return &ast.ParenExpr{X: e}
	}
	return e
}

func (w *rewriter) at(p token.Pos) int { return w.pkg.Fset.Position(p).Offset }

// open inserts pieces before the text that starts at an offset.
func (w *rewriter) open(at int, pieces ...any) {
	w.edits = append(w.edits, edit{at, at, pieces, false})
}

// close inserts pieces after the text that ends at an offset. Of several insertions at one offset,
// the one made last stands first, because it is the inner one.
func (w *rewriter) close(at int, pieces ...any) {
	if len(pieces) > 0 {
		w.edits = append(w.edits, edit{at, at, pieces, true})
	}
}

// replace replaces text by pieces.
func (w *rewriter) replace(from, to int, pieces ...any) {
	for _, g := range w.file.Comments {
		if from <= w.at(g.Pos()) && w.at(g.End()) <= to {
			w.report(g, "a comment here is lost")
		}
	}
	w.edits = append(w.edits, edit{from, to, pieces, false})
}

func (w *rewriter) rename(id *ast.Ident, name string) {
	w.replace(w.at(id.Pos()), w.at(id.End()), name)
}

// render returns the text between two offsets, with the edits in it.
func (w *rewriter) render(from, to int) string {
	var in, closing []edit
	for _, e := range w.edits {
		if from <= e.from && e.to <= to {
			if e.from == from && e.to == to && e.pieces == nil && from < to {
				continue // this text moves elsewhere, so it is left out here
			}
			if e.closes {
				closing = append(closing, e)
			} else {
				in = append(in, e)
			}
		}
	}
	slices.Reverse(closing)
	in = append(closing, in...)
	slices.SortStableFunc(in, func(a, b edit) int { return a.from - b.from })
	var b strings.Builder
	for _, e := range in {
		if e.from < from {
			continue // inside replaced text
		}
		b.Write(w.text[from:e.from])
		for _, p := range e.pieces {
			switch p := p.(type) {
			case string:
				b.WriteString(p)
			case *ast.ParenExpr:
				if !p.Lparen.IsValid() {
					b.WriteString("(" + w.render(w.at(p.X.Pos()), w.at(p.X.End())) + ")")
					continue
				}
				b.WriteString(w.render(w.at(p.Pos()), w.at(p.End())))
			case ast.Node:
				b.WriteString(w.render(w.at(p.Pos()), w.at(p.End())))
			}
		}
		from = e.to
	}
	b.Write(w.text[from:to])
	return b.String()
}

// done counts a rewrite.
func (w *rewriter) done(pos token.Pos, key string) {
	w.res.counts[key]++
	w.res.changes = append(w.res.changes, report{w.name, w.pkg.Fset.Position(pos).Line, "rewritten: " + key})
}

func (w *rewriter) report(n ast.Node, format string, args ...any) {
	w.reportAt(n.Pos(), format, args...)
}

func (w *rewriter) reportAt(pos token.Pos, format string, args ...any) {
	w.res.left[report{w.name, w.pkg.Fset.Position(pos).Line, fmt.Sprintf(format, args...)}] = true
}
