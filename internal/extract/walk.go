package extract

import (
	"cmp"
	"errors"
	"fmt"
	"path"
	"slices"
	"strconv"
	"strings"

	"modernc.org/cc/v4"

	"github.com/puregpu/puregpu/symbols"
)

// A walker turns the declarations of a translation unit into records.
type walker struct {
	keep    func(file string) bool
	inline  bool // bind inline functions too
	windows bool // the library also exists on Windows
	out     header
	seen    map[string]bool   // names with a record
	named   map[string]string // by tag of a struct, union or enumeration: the name of its record
	unnamed map[*body]string  // by definition of a type without a tag: the name of its record
	badAt   map[string]string // by name, the place of a declaration that is not understood
	apart   map[string]bool   // typedefs whose type may differ from the struct, union or enumeration that they name
	stream  *stream
	lay     *layouter
	defined []string // non-inline functions that the headers define; no library exports them
	enums   *enumeratorSet
	consts  *consts
	now     span           // the current declaration
	atOf    span           // the declaration of at
	at      map[string]int // by word of a declaration, its index in the stream's tokens, or -1 if there are several
	unclear string         // a typedef in the current declaration that may or may not be const
	behind  []cc.Type      // types with a tag to which members point; the member may be the only place that defines them
}

// walk records every declaration that it can, and notes the others.
func (w *walker) walk(ast *cc.AST) error {
	if err := w.stream.align(ast); err != nil {
		return err
	}
	refused := map[*cc.ExternalDeclaration]error{}
	w.enums, w.consts = enumeratorsOf(ast, w.stream), constsOf(w.stream)
	n := 0
	for l := ast.TranslationUnit; l != nil; l = l.TranslationUnit {
		ed := l.ExternalDeclaration
		if ed == nil {
			continue
		}
		x := w.stream.spans[n]
		n++
		err := w.stream.accept(x, ed)
		if err == nil {
			err = w.enums.checkDeclaration(w.stream, x)
		}
		if err != nil {
			refused[ed] = err
			for _, name := range w.stream.names(x, ed) {
				w.lay.bad[name] = err
				w.badAt[name] = cmp.Or(w.badAt[name], lineOf(ed.Position()))
			}
			w.enums.refuse(w.stream, x)
			if w.stream.alters(x) {
				w.setApart(ed)
			}
		}
	}
	w.every(ast, func(ed *cc.ExternalDeclaration) {
		if ed.Declaration != nil && ed.Declaration.DeclarationSpecifiers != nil {
			_, _ = w.lay.of(ed.Declaration.DeclarationSpecifiers.Type()) // sets w.lay.odd if the front end gives a type a wrong size or alignment
		}
	})
	w.every(ast, func(ed *cc.ExternalDeclaration) {
		if file := path.Clean(ed.Position().Filename); ed.Declaration != nil && !w.keep(file) {
			for il := ed.Declaration.InitDeclaratorList; il != nil; il = il.InitDeclaratorList {
				w.out.elsewhere[il.InitDeclarator.Declarator.Name()] = file
			}
		}
	})
	w.each(ast, w.nameTags)
	w.each(ast, func(ed *cc.ExternalDeclaration) {
		w.now, _ = w.stream.spanOf(ed)
		err := refused[ed]
		if err == nil && w.lay.odd && w.stream.measures(ed) {
			err = fmt.Errorf("depends on the size of a type, and the C front end gets the sizes of some types in these headers wrong")
		}
		if err == nil {
			err = w.lengths(ed)
		}
		if err != nil {
			w.refuseAll(ed, err)
			return
		}
		w.declaration(ed)
	})
	for i := 0; i < len(w.behind); i++ { // define may add to w.behind
		t := w.behind[i]
		for _, x := range w.stream.spans {
			if at := w.stream.index(tagToken(t)); at >= x.first && at <= x.last {
				w.now = x
			}
		}
		if at := tagToken(t).Position(); w.keep(path.Clean(at.Filename)) && w.lay.bad[tagOf(t)] == nil {
			if err := w.define(w.nameOf(t), t); err != nil {
				w.refuse(at, w.nameOf(t), err)
			}
		}
	}
	for _, name := range w.defined {
		w.lay.bad[name] = errInline
	}
	w.out.funcs = slices.DeleteFunc(w.out.funcs, func(f function) bool { return w.lay.bad[f.API] != nil }) // another declaration has refused the function
	return nil
}

// lengths returns an error if the length of an array depends on a type that is refused.
func (w *walker) lengths(ed *cc.ExternalDeclaration) error {
	x, ok := w.stream.spanOf(ed)
	if !ok || ed.FunctionDefinition != nil {
		return nil
	}
	depth := 0
	for _, t := range w.stream.tokens[x.first : x.last+1] {
		switch {
		case t == "[":
			depth++
		case t == "]":
			depth--
		case depth > 0 && (w.lay.bad[t] != nil || strings.HasSuffix(t, "va_list")):
			return fmt.Errorf("uses %s, which is refused", t)
		}
	}
	return nil
}

var errInline = errors.New("is defined in the header, so no library exports it")

// refuseAll refuses all names in a declaration. Its structs become opaque.
func (w *walker) refuseAll(ed *cc.ExternalDeclaration, err error) {
	x, ok := w.stream.spanOf(ed)
	if !ok {
		return
	}
	names := w.stream.names(x, ed)
	if ed.FunctionDefinition != nil || !slices.ContainsFunc(names, func(name string) bool { return !w.seen[name] }) {
		return
	}
	for _, b := range w.stream.bodies {
		if b.tag != "" && b.kind != "enum" && b.open > x.first && b.close <= x.last && w.out.opaque[b.tag] == "" {
			w.out.opaque[b.tag] = b.tag
		}
	}
	for il := ed.Declaration.InitDeclaratorList; il != nil; il = il.InitDeclaratorList {
		d := il.InitDeclarator.Declarator
		switch t := d.Type().(type) {
		case *cc.StructType, *cc.UnionType:
			if d.IsTypename() && !w.apart[d.Name()] {
				w.out.opaque[d.Name()] = cmp.Or(tagOf(t), d.Name())
			}
		case *cc.FunctionType:
		default:
			if !d.IsTypename() && len(names) == 1 {
				return // a variable, which is never bound
			}
		}
	}
	for _, name := range names {
		w.lay.bad[name] = err
	}
	if len(names) > 0 {
		w.refuse(ed.Position(), names[0], err)
	}
}

// every calls a function for each external declaration.
func (w *walker) every(ast *cc.AST, do func(*cc.ExternalDeclaration)) {
	for l := ast.TranslationUnit; l != nil; l = l.TranslationUnit {
		if l.ExternalDeclaration != nil {
			do(l.ExternalDeclaration)
		}
	}
}

func (w *walker) each(ast *cc.AST, do func(*cc.ExternalDeclaration)) {
	for l := ast.TranslationUnit; l != nil; l = l.TranslationUnit {
		ed := l.ExternalDeclaration
		if ed == nil || !w.keep(path.Clean(ed.Position().Filename)) {
			continue
		}
		if def := ed.FunctionDefinition; def != nil && !w.inline {
			w.out.inlined = append(w.out.inlined, refusal{def.Declarator.Name(), lineOf(ed.Position()), errInline})
			if !def.Declarator.IsInline() {
				w.defined = append(w.defined, def.Declarator.Name())
			}
		}
		defines := ed.FunctionDefinition != nil && w.inline
		if !defines && (ed.Declaration == nil || ed.Declaration.DeclarationSpecifiers == nil) {
			if d := ed.Declaration; d != nil && d.InitDeclaratorList != nil {
				w.refuseAll(ed, errors.New("has no type"))
			}
			continue
		}
		do(ed)
	}
}

// refuse records a refused name and its place: the position of a token or a declaration.
func (w *walker) refuse(at fmt.Stringer, name string, err error) {
	if slices.ContainsFunc(w.out.refused, func(r refusal) bool { return r.name == name }) {
		return
	}
	w.out.refused = append(w.out.refused, refusal{name, cmp.Or(w.badAt[name], lineOf(at)), err})
}

// lineOf writes a position as file and line, without the column.
func lineOf(at fmt.Stringer) string {
	text := at.String()
	return text[:max(0, strings.LastIndexByte(text, ':'))]
}

// nameTags finds the name of a struct, a union or an enumeration: its first typedef, or else its
// tag.
func (w *walker) nameTags(ed *cc.ExternalDeclaration) {
	if ed.Declaration == nil {
		return
	}
	spec := ed.Declaration.DeclarationSpecifiers.Type()
	if spec.Typedef() != nil {
		return
	}
	tag := tagOf(spec)
	for il := ed.Declaration.InitDeclaratorList; il != nil; il = il.InitDeclaratorList {
		d := il.InitDeclarator.Declarator
		if !d.IsTypename() || d.Pointer != nil || d.DirectDeclarator.Case != cc.DirectDeclaratorIdent {
			continue
		}
		if b := w.bodyOf(spec); tag == "" && b != nil && w.unnamed[b] == "" {
			w.unnamed[b] = d.Name()
		}
		if tag != "" && w.named[tag] == "" && !w.apart[d.Name()] && !spec.Attributes().IsConst() { // a typedef with const does not name the type itself
			w.named[tag] = d.Name()
		}
	}
}

// setApart records the typedefs of a declaration that names a struct, union or enumeration by its
// tag, but may give the typedefs a different type.
func (w *walker) setApart(ed *cc.ExternalDeclaration) {
	if ed.Declaration == nil || ed.Declaration.DeclarationSpecifiers == nil || tagOf(ed.Declaration.DeclarationSpecifiers.Type()) == "" {
		return // a type without a tag has no name that a typedef could differ from
	}
	for il := ed.Declaration.InitDeclaratorList; il != nil; il = il.InitDeclaratorList {
		if d := il.InitDeclarator.Declarator; d.IsTypename() {
			w.apart[d.Name()] = true
		}
	}
}

// bodyOf returns the definition of a type, or nil.
func (w *walker) bodyOf(t cc.Type) *body {
	switch x := t.(type) {
	case *cc.StructType:
		return w.lay.body(x.NumFields(), x.FieldByIndex)
	case *cc.UnionType:
		return w.lay.body(x.NumFields(), x.FieldByIndex)
	case *cc.EnumType:
		if list := x.Enumerators(); len(list) > 0 {
			return w.stream.bodyAt(w.stream.index(list[0].Token))
		}
	}
	return nil
}

func (w *walker) declaration(ed *cc.ExternalDeclaration) {
	if x, ok := w.stream.spanOf(ed); ok {
		for _, name := range w.stream.names(x, ed) {
			w.out.where[name] = lineOf(ed.Position())
		}
	}
	if def := ed.FunctionDefinition; def != nil {
		ft, ok := def.Declarator.Type().(*cc.FunctionType)
		if !ok || !def.Declarator.IsInline() {
			return
		}
		if err := w.function(def.Declarator, ft, "", parseComment(string(cc.NodeTokens(ed)[0].Sep())), w.stream.deprecated(ed)); err != nil {
			w.refuse(ed.Position(), def.Declarator.Name(), err)
		}
		return
	}
	spec := ed.Declaration.DeclarationSpecifiers.Type()
	if name := w.nameOf(spec); spec.Typedef() == nil && (name != "" || ed.Declaration.InitDeclaratorList == nil) { // not a typedef's name, so the declaration may define the type
		if err := w.define(name, spec); err != nil {
			w.refuse(ed.Position(), name, err)
			for _, name := range []string{name, tagOf(spec)} {
				if name != "" {
					w.lay.bad[name] = err
					if spec.Kind() != cc.Enum {
						w.out.opaque[name] = cmp.Or(tagOf(spec), name) // users see an opaque type, since the table leaves out its definition
					}
				}
			}
			for il := ed.Declaration.InitDeclaratorList; il != nil; il = il.InitDeclaratorList {
				if name := il.InitDeclarator.Declarator.Name(); w.lay.bad[name] == nil {
					w.lay.bad[name] = err
				}
			}
			return
		}
	}
	doc := parseComment(string(cc.NodeTokens(ed)[0].Sep()))
	for il := ed.Declaration.InitDeclaratorList; il != nil; il = il.InitDeclaratorList {
		d := il.InitDeclarator.Declarator
		if _, isFunc := d.Type().(*cc.FunctionType); !isFunc && d.IsExtern() && !slices.Contains(w.out.variables, d.Name()) {
			w.out.variables = append(w.out.variables, d.Name())
		}
		var err error
		switch ft, isFunc := d.Type().(*cc.FunctionType); {
		case w.refusedType(spec) != nil && (d.IsTypename() || isFunc):
			err = w.refusedType(spec)
		case d.IsTypename():
			err = w.typedef(d, spec)
		case isFunc && !d.IsStatic() && !d.IsInline():
			label := w.stream.renamed[d.Name()]
			if a := il.InitDeclarator.Asm; a != nil {
				label = strings.Trim(a.Token3.SrcStr(), `"`)
			}
			err = w.function(d, ft, label, doc, w.stream.deprecated(ed))
		}
		if err != nil {
			w.lay.bad[d.Name()] = err
			w.refuse(d.NameTok().Position(), d.Name(), err)
		}
	}
}

// function records a function. The argument label is the function's assembler name, or "".
func (w *walker) function(d *cc.Declarator, ft *cc.FunctionType, label string, doc comment, deprecated bool) error {
	if label == "" {
		label = d.Name()
	} else if !isIdentifier(label) {
		return fmt.Errorf("has the assembler name %q, which is not a C name", label)
	}
	if ft.IsVariadic() {
		return fmt.Errorf("is variadic, which no binding can express")
	}
	params, err := w.params(d.Name(), ft)
	if err != nil {
		return err
	}
	result, err := w.result(d.Name(), ft)
	if err != nil {
		return err
	}
	w.out.funcs = append(w.out.funcs, function{doc: doc, where: lineOf(d.NameTok().Position()), Function: symbols.Function{
		Symbol: label, API: d.Name(), Result: result, Params: params,
		Deprecated: doc.deprecated || deprecated,
	}})
	return nil
}

// params records the parameters of a function or of a callback.
func (w *walker) params(of string, ft *cc.FunctionType) ([]symbols.Param, error) {
	params := []symbols.Param{}
	for i, p := range ft.Parameters() {
		if p.Type().Kind() == cc.Void {
			continue // the void of f(void) is not a parameter
		}
		name := p.Name()
		if name == "" {
			name = "arg" + strconv.Itoa(i)
		}
		if array := p.Type().Undecay(); array != p.Type() && w.refusedType(array) != nil {
			err := w.refusedType(array)
			return nil, fmt.Errorf("parameter %s: %w", name, err)
		}
		t := w.spell(p.Type())
		if a := p.Type().Undecay(); a != p.Type() && a.Kind() == cc.Array && a.Attributes().IsConst() && !strings.HasPrefix(t, "const ") {
			t = "const " + t // the parameter is a pointer, since C converts the array; const of the array type applies to its element
		}
		if a := bareArray(p.Type()); a != nil {
			t = of + "." + name + " *"
			if err := w.array(of+"."+name, a); err != nil {
				return nil, fmt.Errorf("parameter %s: %w", name, err)
			}
		}
		if fn, stars := bareFunction(p.Type()); fn != nil { // a function type declared in place is named after the function and the parameter
			t = of + "." + name + stars
			if err := w.callback(of+"."+name, fn, false); err != nil {
				return nil, fmt.Errorf("parameter %s: %w", name, err)
			}
		}
		if strings.Contains(t, "?") {
			return nil, fmt.Errorf("parameter %s: %w", name, w.inexpressible("has", p.Type()))
		}
		params = append(params, symbols.Param{Name: name, Type: t, C: w.spellParam(p, t)})
	}
	return params, nil
}

// refusedType returns an error for a type that a refused typedef names. It returns none for structs
// and unions, because pointers to them can be opaque, unless the struct only stands for a typedef
// that the front end cannot read.
func (w *walker) refusedType(t cc.Type) error {
	if td := t.Typedef(); td != nil && (t.Kind() != cc.Struct && t.Kind() != cc.Union || w.out.recovered.stands(td.Name())) && w.lay.bad[td.Name()] != nil {
		return fmt.Errorf("uses %s, which is refused: %w", td.Name(), w.lay.bad[td.Name()])
	}
	return nil
}

// inexpressible returns the error for a type that spell cannot write.
func (w *walker) inexpressible(verb string, t cc.Type) error {
	if name := w.unclear; name != "" {
		w.unclear = ""
		return fmt.Errorf("%s %s both with const and without it in one declaration: the C front end cannot tell the two apart", verb, name)
	}
	return fmt.Errorf("%s the type %s, which no binding can express", verb, t)
}

// bareFunction returns the function type behind an unnamed pointer type, and the stars before that
// pointer.
func bareFunction(t cc.Type) (ft *cc.FunctionType, stars string) {
	for {
		p, ok := t.(*cc.PointerType)
		if !ok || p.Typedef() != nil {
			return nil, ""
		}
		if ft, ok := p.Elem().(*cc.FunctionType); ok && ft.Typedef() == nil {
			if stars != "" {
				stars = " " + stars
			}
			return ft, stars
		}
		t, stars = p.Elem(), stars+"*"
	}
}

// result spells the type that a function returns.
func (w *walker) result(of string, ft *cc.FunctionType) (string, error) {
	result := w.spell(ft.Result())
	if fn, stars := bareFunction(ft.Result()); fn != nil {
		result = of + ".result" + stars
		if err := w.callback(of+".result", fn, false); err != nil {
			return "", fmt.Errorf("result: %w", err)
		}
	}
	if strings.Contains(result, "?") {
		return "", w.inexpressible("returns", ft.Result())
	}
	return result, nil
}

// bareArray returns the array type behind an unnamed pointer type, or nil.
func bareArray(t cc.Type) *cc.ArrayType {
	if p, ok := t.(*cc.PointerType); ok && p.Typedef() == nil {
		if a, ok := p.Elem().(*cc.ArrayType); ok && a.Typedef() == nil {
			return a
		}
	}
	return nil
}

// array records the type of an array under a name.
func (w *walker) array(name string, a *cc.ArrayType) error {
	text := w.spellArray(a)
	if _, err := symbols.ParseType(text); err != nil || a.Len() <= 0 || strings.Contains(text, "?") {
		return fmt.Errorf("has the type %s, which no binding can express", a)
	}
	w.seen[name] = true
	w.out.table.Aliases = append(w.out.table.Aliases, symbols.Alias{Name: name, Type: text})
	return nil
}

// typedef records the name that a typedef adds to a type.
func (w *walker) typedef(d *cc.Declarator, spec cc.Type) error {
	name, tab := d.Name(), &w.out.table
	if w.seen[name] || cTypes[name] {
		return nil
	}
	alias := func(of string) {
		w.seen[name] = true
		tab.Aliases = append(tab.Aliases, symbols.Alias{Name: name, Type: of})
	}
	written := ""
	if td := spec.Typedef(); td != nil && td.Name() != name && d.Pointer == nil && d.DirectDeclarator.Case == cc.DirectDeclaratorIdent {
		written = td.Name() // for typedef Old New;
		if w.systemNumber(td, spec) {
			written = ""
		}
	}
	if isVarArgs(spec) {
		return fmt.Errorf("contains a va_list, which Go cannot express")
	}
	switch t := d.Type().(type) {
	case *cc.FunctionType:
		return w.callback(name, t, true)
	case *cc.PointerType:
		switch e := t.Elem().(type) {
		case *cc.FunctionType:
			if written != "" {
				alias(written)
				return nil
			}
			return w.callback(name, e, false)
		case *cc.StructType:
			switch {
			case written != "":
				alias(written)
			case w.nameOf(e) == "": // typedef struct {...} *Name;
				w.seen[name] = true
				tab.Handles = append(tab.Handles, symbols.Handle{Name: name, Tag: "void"})
			case e.IsIncomplete() && !madeUp(tagOf(e)):
				w.seen[name] = true
				tab.Handles = append(tab.Handles, symbols.Handle{Name: name, Tag: tagOf(e)})
			default:
				alias(w.spell(e) + " *")
			}
			return nil
		}
		switch e := t.Elem(); {
		case written != "":
			alias(written)
		case e.Kind() == cc.Void, e.Kind() == cc.Union && e.Typedef() == nil && w.nameOf(e) == "": // typedef union {...} *Name;
			w.seen[name] = true
			tab.Handles = append(tab.Handles, symbols.Handle{Name: name, Tag: "void"})
		default:
			alias(w.spell(t.Elem()) + " *")
		}
		return nil
	case *cc.ArrayType:
		if written != "" {
			alias(written)
			return nil
		}
		return w.array(name, t)
	case *cc.StructType, *cc.UnionType, *cc.EnumType:
		switch {
		case t.IsIncomplete():
			if structs := w.out.recovered.structs; w.out.opaque[name] == "" && (w.lay.bad[name] == nil || structs[name]) {
				w.out.opaque[name] = tagFor(t, name)
			}
			return nil
		case written != "":
			alias(written)
		case w.nameOf(t) != name && tagOf(t) != "" && !w.seen[name]:
			alias(w.nameOf(t))
		}
		return nil
	default:
		if written != "" && !cTypes[written] {
			alias(written)
			return nil
		}
		base := arithmetic(t)
		if base == "void" {
			return nil // the typedef is another name for void, and spell writes it as void
		}
		if base == "" {
			return fmt.Errorf("is a typedef of %s, which no binding can express", t)
		}
		if written != "" && strings.HasSuffix(base, "long") {
			base = written // such as int64_t, which has the same size everywhere, unlike long
		}
		w.seen[name] = true
		tab.Scalars = append(tab.Scalars, symbols.Scalar{Name: name, Type: base})
		return nil
	}
}

// callback records the type of a function that the library calls. If itself is set, name is the
// name of the function type, not of a pointer to it. Such a type is only passed by pointer.
func (w *walker) callback(name string, ft *cc.FunctionType, itself bool) error {
	w.seen[name] = true
	if ft.IsVariadic() {
		return fmt.Errorf("is a variadic function, which Go cannot express")
	}
	params, err := w.params(name, ft)
	if err != nil {
		return err
	}
	result, err := w.result(name, ft)
	if err != nil {
		return err
	}
	w.out.table.Callbacks = append(w.out.table.Callbacks, symbols.Callback{Name: name, Result: result, Params: params, Func: itself})
	return nil
}

// define records a complete struct, union or enum under a name.
func (w *walker) define(name string, t cc.Type) error {
	if w.seen[name] && name != "" {
		return nil
	}
	if t.IsIncomplete() {
		if w.bodyOf(t) != nil {
			return errors.New("has a member of a type that no header defines")
		}
		return nil
	}
	if tag := tagOf(t); tag != "" && w.lay.bad[tag] != nil {
		return w.lay.bad[tag]
	}
	switch x := t.(type) {
	case *cc.EnumType:
		w.seen[name] = true
		shape, err := w.lay.enum(x)
		switch {
		case err != nil:
			return err
		case shape.size > 4 && w.windows:
			return fmt.Errorf("is an enumeration of %d bytes on Linux and of 4 bytes on Windows", shape.size)
		}
		e := symbols.Enum{Name: name, Tag: otherTag(t, name), Signed: shape.signed}
		if shape.size != 4 {
			e.Size = int(shape.size)
		}
		for _, v := range x.Enumerators() {
			n, _ := integer(v.Value())
			e.Values = append(e.Values, symbols.EnumValue{Name: v.Token.SrcStr(), Value: n})
		}
		w.out.table.Enums = append(w.out.table.Enums, e)
	case *cc.StructType:
		return w.layout(name, t, false)
	case *cc.UnionType:
		return w.layout(name, t, true)
	}
	return nil
}

func (w *walker) layout(name string, t cc.Type, union bool) error {
	if name == "" {
		return fmt.Errorf("is a struct with neither a tag nor a typedef")
	}
	w.seen[name] = true
	shape, err := w.lay.of(t)
	if err != nil {
		return err
	}
	if err := shape.inGo(union, w.windows); err != nil {
		return err
	}
	s := symbols.Struct{Name: name, Tag: otherTag(t, name), TagOnly: tagOf(t) == name && w.named[name] == "", Union: union, Size: int(shape.size), Align: int(shape.align), Fields: []symbols.Field{}}
	anonymous := 0
	for _, f := range shape.members {
		out := symbols.Field{Name: f.Name(), Offset: int(f.offset), Size: int(f.size), Bits: int(f.bits), BitOffset: int(f.bit)}
		if out.Name == "" {
			anonymous++
			out.Name, out.Anonymous = "anon"+strconv.Itoa(anonymous), true
		}
		elem, dims := f.Type(), ""
		for {
			a, ok := elem.(*cc.ArrayType)
			if !ok || a.Typedef() != nil {
				break
			}
			dims += "[" + strconv.FormatInt(a.Len(), 10) + "]"
			elem = a.Elem()
		}
		out.Type = w.spell(elem)
		if elem.Typedef() == nil && tagOf(elem) == "" { // an unnamed struct, union or enum declared in place
			switch elem.(type) {
			case *cc.StructType, *cc.UnionType, *cc.EnumType:
				out.Type = name + "." + out.Name
				if err := w.define(out.Type, elem); err != nil {
					return err
				}
			}
		} else if elem.Typedef() == nil && w.named[tagOf(elem)] == "" { // a type with a tag that is declared in place
			if err := w.define(w.nameOf(elem), elem); err != nil {
				return err
			}
		}
		if to := pointee(elem); to != elem && to.Typedef() == nil && tagOf(to) != "" {
			w.behind = append(w.behind, to)
		}
		if ft, stars := bareFunction(elem); ft != nil {
			out.Type = name + "." + out.Name + stars
			if err := w.callback(name+"."+out.Name, ft, false); err != nil {
				return fmt.Errorf("%s: %w", out.Name, err)
			}
		}
		if strings.Contains(out.Type, "?") {
			return fmt.Errorf("%s: %w", out.Name, w.inexpressible("has", f.Type()))
		}
		out.Type += dims
		s.Fields = append(s.Fields, out)
	}
	w.out.table.Structs = append(w.out.table.Structs, s)
	return nil
}

// spell writes a C type with the header's names; a ? marks a part that it cannot write.
func (w *walker) spell(t cc.Type) string {
	qualifier := ""
	if t.Attributes().IsConst() {
		qualifier = "const "
	}
	if td := t.Typedef(); td != nil {
		if w.systemNumber(td, t) {
			return qualifier + arithmetic(t) // such as ssize_t
		}
		if t.Kind() == cc.Void {
			return qualifier + "void"
		}
		isConst, known := w.consts.isConst(w.stream, w.now, td.Name(), qualifier != "")
		if !known {
			w.unclear = td.Name()
			return "?"
		}
		if qualifier = ""; isConst {
			qualifier = "const "
		}
		if t.Kind() == cc.Function { // a const before a function type is about its result
			return td.Name()
		}
		return qualifier + td.Name()
	}
	switch x := t.(type) {
	case *cc.PointerType:
		if _, ok := x.Elem().(*cc.FunctionType); ok {
			if td := x.Elem().Typedef(); td != nil {
				return td.Name() // after typedef int f(void); the record of f is the pointer to the function
			}
			return "?"
		}
		if w.foreign(x.Elem()) {
			name := w.nameOf(x.Elem())
			if td := x.Elem().Typedef(); td != nil {
				name = td.Name()
			}
			if name != "" && w.out.opaque[name] == "" {
				w.out.opaque[name] = tagFor(x.Elem(), name)
			}
		}
		if st, ok := x.Elem().(*cc.StructType); ok && st.IsIncomplete() {
			if h := w.handle(tagOf(st)); h != "" {
				return h // the table names a pointer to the struct like this, by tag or by typedef
			}
			if tag := tagOf(st); st.Typedef() == nil && w.nameOf(st) == tag && w.out.opaque[tag] == "" {
				w.out.opaque[tag] = tag
			}
		}
		s := w.spell(x.Elem())
		if !strings.HasSuffix(s, "*") {
			s += " "
		}
		return s + "*"
	case *cc.ArrayType:
		return w.spellArray(x)
	case *cc.StructType, *cc.UnionType, *cc.EnumType:
		if name := w.nameOf(t); name != "" {
			return qualifier + name
		}
		return "?"
	}
	if a := arithmetic(t); a != "" {
		return qualifier + a
	}
	return "?"
}

// spellParam writes the declaration of a parameter whose type spell writes as t: with each const
// between its pointers, and as an array if the header gives its length. It returns "" if the
// declaration of t and the name is the same.
func (w *walker) spellParam(p *cc.Parameter, t string) string {
	length := ""
	if a, ok := p.Type().Undecay().(*cc.ArrayType); ok && a.Len() > 0 {
		length = "[" + strconv.FormatInt(a.Len(), 10) + "]"
	}
	if a := bareArray(p.Type()); a != nil {
		elem, dims, _ := strings.Cut(w.spellArray(a), "[")
		if length != "" {
			return symbols.CDeclaration(elem, p.Name()+length+"["+dims)
		}
		return symbols.CDeclaration(elem, "(*"+p.Name()+")["+dims)
	}
	if length == "" && strings.Count(t, "*") < 2 {
		return ""
	}
	stars := w.stars(p)
	if strings.Count(stars, "*") != strings.Count(t, "*") {
		stars = strings.Repeat("*", strings.Count(t, "*")) // a typedef is a pointer
	}
	if length == "" && !strings.Contains(stars, "const") || stars == "" {
		return ""
	}
	if length != "" {
		stars = strings.TrimSuffix(stars, "*")
	}
	text := strings.TrimRight(t, " *") + " " + stars
	if !strings.HasSuffix(text, "*") && !strings.HasSuffix(text, " ") {
		text += " "
	}
	return text + p.Name() + length
}

// stars returns the pointers in front of a parameter's name with their consts, "*const *", and one
// more if the parameter is an array. It returns "" if it does not find the parameter.
func (w *walker) stars(p *cc.Parameter) (stars string) {
	if w.at == nil || w.atOf != w.now {
		w.at, w.atOf = map[string]int{}, w.now
		for i := w.now.first; i <= w.now.last; i++ {
			if _, twice := w.at[w.stream.tokens[i]]; twice {
				w.at[w.stream.tokens[i]] = -1
			} else {
				w.at[w.stream.tokens[i]] = i
			}
		}
	}
	at, ok := w.at[p.Name()]
	if !ok || at < 0 {
		return ""
	}
	if at < w.now.last && w.stream.tokens[at+1] == "[" {
		stars = "*"
	}
	for i := at - 1; i >= w.now.first; i-- {
		word := w.stream.tokens[i]
		if word == "*" {
			stars = "*" + stars
		} else if word == "const" && strings.HasPrefix(stars, "*") {
			stars = "const " + stars
		} else if word != "const" {
			break
		}
	}
	return strings.TrimPrefix(stars, "const ") // that const belongs to the base
}

// systemNumber reports whether a typedef is a number type of the C library. Tables do not have the
// names of such types.
func (w *walker) systemNumber(td *cc.Declarator, t cc.Type) bool {
	_, system := standIns().headers[td.Position().Filename]
	return system && !cTypes[td.Name()] && w.lay.bad[td.Name()] == nil && arithmetic(t) != ""
}

// spellArray writes the type of an array without its own name, the outermost dimension first.
func (w *walker) spellArray(a *cc.ArrayType) string {
	dims := "[" + strconv.FormatInt(a.Len(), 10) + "]"
	elem := a.Elem()
	for {
		inner, ok := elem.(*cc.ArrayType)
		if !ok || elem.Typedef() != nil {
			return w.spell(elem) + dims
		}
		dims, elem = dims+"["+strconv.FormatInt(inner.Len(), 10)+"]", inner.Elem()
	}
}

// foreign reports whether a type is a struct or a union of a header outside the library. Pointers
// to such a type are opaque.
func (w *walker) foreign(t cc.Type) bool {
	switch t.(type) {
	case *cc.StructType, *cc.UnionType:
	default:
		return false
	}
	if td := t.Typedef(); td != nil {
		return !w.keep(path.Clean(td.Position().Filename))
	}
	tag := tagToken(t)
	return tag != (cc.Token{}) && !w.keep(path.Clean(tag.Position().Filename)) && !w.seen[w.nameOf(t)]
}

// handle returns the first handle type that points to the struct with a tag, or "".
func (w *walker) handle(tag string) string {
	for _, h := range w.out.table.Handles {
		if h.Tag == tag {
			return h.Name
		}
	}
	return ""
}

// nameOf returns the name of the record of a struct, union or enumeration, or "".
func (w *walker) nameOf(t cc.Type) string {
	tag := tagOf(t)
	if name := w.named[tag]; tag != "" && name != "" {
		return name
	}
	if tag == "" {
		if b := w.bodyOf(t); b != nil {
			return w.unnamed[b]
		}
	}
	return tag
}

func tagOf(t cc.Type) string {
	if tag := tagToken(t); tag != (cc.Token{}) {
		return tag.SrcStr()
	}
	return ""
}

// tagFor returns a type's tag, or the given name if the type has no tag or a stand-in invented the
// tag.
func tagFor(t cc.Type, name string) string {
	if tag := tagOf(t); !madeUp(tag) {
		return cmp.Or(tag, name)
	}
	return name
}

// madeUp reports whether a stand-in invented the tag.
func madeUp(tag string) bool { return strings.HasPrefix(tag, "puregpu_") }

func tagToken(t cc.Type) (tag cc.Token) {
	switch x := t.(type) {
	case *cc.StructType:
		tag = x.Tag()
	case *cc.UnionType:
		tag = x.Tag()
	case *cc.EnumType:
		tag = x.Tag()
	}
	return tag
}

// pointee removes the pointers from a type until it reaches a typedef.
func pointee(t cc.Type) cc.Type {
	for {
		p, ok := t.(*cc.PointerType)
		if !ok || p.Typedef() != nil {
			return t
		}
		t = p.Elem()
	}
}

func otherTag(t cc.Type, name string) string {
	if tag := tagOf(t); tag != name {
		return tag
	}
	return ""
}

func arithmetic(t cc.Type) string {
	switch t.Kind() {
	case cc.Void:
		return "void"
	case cc.Bool:
		return "bool"
	case cc.Char:
		return "char"
	case cc.SChar:
		return "signed char"
	case cc.UChar:
		return "unsigned char"
	case cc.Short:
		return "short"
	case cc.UShort:
		return "unsigned short"
	case cc.Int:
		return "int"
	case cc.UInt:
		return "unsigned int"
	case cc.Long:
		return "long"
	case cc.ULong:
		return "unsigned long"
	case cc.LongLong:
		return "long long"
	case cc.ULongLong:
		return "unsigned long long"
	case cc.Float:
		return "float"
	case cc.Double:
		return "double"
	}
	return ""
}

func integer(v cc.Value) (int64, bool) {
	switch x := v.(type) {
	case cc.Int64Value:
		return int64(x), true
	case cc.UInt64Value:
		return int64(x), true
	}
	return 0, false
}
