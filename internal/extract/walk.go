package extract

import (
	"cmp"
	"fmt"
	"path"
	"strconv"
	"strings"

	"modernc.org/cc/v4"

	"github.com/puregpu/puregpu/symbols"
)

// A walker turns the declarations of a translation unit into records.
type walker struct {
	keep   func(file string) bool
	inline bool // inline functions are functions too
	out    header
	seen   map[string]bool   // names already recorded
	named  map[string]string // struct, union or enum tag to the name of its record
	packs  *packs            // where structs are packed by pragmas
	pack   int               // how the declaration that is looked at is packed
	behind []cc.Type         // tagged types that members point to, which may be defined there and nowhere else
}

// walk records what it can, and notes what it cannot.
func (w *walker) walk(ast *cc.AST) {
	w.each(ast, w.nameTags)
	w.each(ast, w.declaration)
	for i := 0; i < len(w.behind); i++ { // which may add to them
		t := w.behind[i]
		if at := tagToken(t).Position(); w.keep(path.Clean(at.Filename)) {
			w.pack = w.packs.at(at.Filename, at.Line)
			if err := w.define(w.nameOf(t), t); err != nil {
				w.out.refused = append(w.out.refused, refusal{w.nameOf(t), fmt.Errorf("%v: %w", at, err)})
			}
		}
	}
}

func (w *walker) each(ast *cc.AST, do func(*cc.ExternalDeclaration)) {
	for l := ast.TranslationUnit; l != nil; l = l.TranslationUnit {
		ed := l.ExternalDeclaration
		if ed == nil || !w.keep(path.Clean(ed.Position().Filename)) {
			continue
		}
		defines := ed.FunctionDefinition != nil && w.inline
		if !defines && (ed.Declaration == nil || ed.Declaration.DeclarationSpecifiers == nil) {
			continue
		}
		do(ed)
	}
}

func (w *walker) refuse(ed *cc.ExternalDeclaration, name string, err error) {
	if name != "" {
		err = fmt.Errorf("%s: %w", name, err)
	}
	w.out.refused = append(w.out.refused, refusal{name, fmt.Errorf("%v: %w", ed.Position(), err)})
}

// nameTags finds the name that a tagged type goes by: its first typedef, else the tag itself.
func (w *walker) nameTags(ed *cc.ExternalDeclaration) {
	if ed.Declaration == nil {
		return
	}
	spec := ed.Declaration.DeclarationSpecifiers.Type()
	tag := tagOf(spec)
	if tag == "" || spec.Typedef() != nil {
		return
	}
	for il := ed.Declaration.InitDeclaratorList; il != nil; il = il.InitDeclaratorList {
		d := il.InitDeclarator.Declarator
		if d.IsTypename() && d.Pointer == nil && w.named[tag] == "" {
			w.named[tag] = d.Name()
		}
	}
}

func (w *walker) declaration(ed *cc.ExternalDeclaration) {
	if def := ed.FunctionDefinition; def != nil {
		ft, ok := def.Declarator.Type().(*cc.FunctionType)
		if !ok || !def.Declarator.IsInline() {
			return
		}
		if err := w.function(def.Declarator, ft, parseComment(string(cc.NodeTokens(ed)[0].Sep()))); err != nil {
			w.refuse(ed, def.Declarator.Name(), err)
		}
		return
	}
	spec := ed.Declaration.DeclarationSpecifiers.Type()
	if spec.Typedef() == nil { // written out here, not by name
		name := w.nameOf(spec)
		if il := ed.Declaration.InitDeclaratorList; name == "" && il != nil && il.InitDeclarator.Declarator.IsTypename() {
			name = il.InitDeclarator.Declarator.Name() // typedef struct {...} Name;
		}
		w.pack = w.packs.at(ed.Position().Filename, ed.Position().Line)
		if packedByAttribute(cc.NodeTokens(ed)) {
			w.pack = 1
		}
		if err := w.define(name, spec); err != nil {
			w.out.refused = append(w.out.refused, refusal{name, fmt.Errorf("%v: %w", ed.Position(), err)})
			if spec.Kind() != cc.Enum && name != "" {
				w.out.opaque[name] = cmp.Or(tagOf(spec), name) // which it is to a table that leaves it out
			}
			return
		}
	}
	doc := parseComment(string(cc.NodeTokens(ed)[0].Sep()))
	for il := ed.Declaration.InitDeclaratorList; il != nil; il = il.InitDeclaratorList {
		d := il.InitDeclarator.Declarator
		var err error
		switch ft, isFunc := d.Type().(*cc.FunctionType); {
		case d.IsTypename():
			err = w.typedef(d, spec)
		case isFunc && !d.IsStatic() && !d.IsInline():
			err = w.function(d, ft, doc)
		}
		if err != nil {
			w.refuse(ed, d.Name(), err)
		}
	}
}

func (w *walker) function(d *cc.Declarator, ft *cc.FunctionType, doc comment) error {
	if ft.IsVariadic() {
		return fmt.Errorf("is variadic, which no binding can express")
	}
	params, err := w.params(d.Name(), ft)
	if err != nil {
		return err
	}
	result := w.spell(ft.Result())
	if strings.Contains(result, "?") {
		return fmt.Errorf("cannot spell type %s, which it returns", ft.Result())
	}
	at := d.NameTok().Position()
	w.out.funcs = append(w.out.funcs, function{doc: doc, where: fmt.Sprintf("%s:%d", at.Filename, at.Line), Function: symbols.Function{
		Symbol: d.Name(), API: d.Name(), Result: result, Params: params,
		Deprecated: doc.deprecated || isDeprecated(d),
	}})
	return nil
}

// params records the parameters of a function or of a callback.
func (w *walker) params(of string, ft *cc.FunctionType) ([]symbols.Param, error) {
	params := []symbols.Param{}
	for i, p := range ft.Parameters() {
		if p.Type().Kind() == cc.Void {
			continue // f(void)
		}
		name := p.Name()
		if name == "" {
			name = "arg" + strconv.Itoa(i)
		}
		t := w.spell(p.Type())
		if fn := bareFunction(p.Type()); fn != nil { // written in place: named after both, as members of structs are
			t = of + "." + name
			if err := w.callback(t, fn); err != nil {
				return nil, fmt.Errorf("parameter %s: %w", name, err)
			}
		}
		if strings.Contains(t, "?") {
			return nil, fmt.Errorf("parameter %s: cannot spell type %s", name, p.Type())
		}
		params = append(params, symbols.Param{Name: name, Type: t})
	}
	return params, nil
}

// bareFunction returns the function type that a type without a name is a pointer to, or nil.
func bareFunction(t cc.Type) *cc.FunctionType {
	if p, ok := t.(*cc.PointerType); ok && p.Typedef() == nil {
		if ft, ok := p.Elem().(*cc.FunctionType); ok && ft.Typedef() == nil {
			return ft
		}
	}
	return nil
}

// typedef records what a typedef adds to the type that it was written with.
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
		written = td.Name() // typedef Old New;
	}
	switch t := d.Type().(type) {
	case *cc.FunctionType:
		return w.callback(name, t)
	case *cc.PointerType:
		switch e := t.Elem().(type) {
		case *cc.FunctionType:
			if written != "" {
				alias(written)
				return nil
			}
			return w.callback(name, e)
		case *cc.StructType:
			switch {
			case written != "":
				alias(written)
			case e.IsIncomplete():
				w.seen[name] = true
				tab.Handles = append(tab.Handles, symbols.Handle{Name: name, Tag: tagOf(e)})
			default:
				alias(w.spell(e) + " *")
			}
			return nil
		}
		switch {
		case written != "":
			alias(written)
		case t.Elem().Kind() == cc.Void:
			w.seen[name] = true
			tab.Handles = append(tab.Handles, symbols.Handle{Name: name, Tag: "void"})
		default:
			alias(w.spell(t.Elem()) + " *")
		}
		return nil
	case *cc.StructType, *cc.UnionType, *cc.EnumType:
		switch {
		case t.IsIncomplete():
			if w.out.opaque[name] == "" {
				w.out.opaque[name] = tagOf(t)
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
		if base == "" {
			return fmt.Errorf("cannot record a typedef of %s", t)
		}
		if written != "" && strings.HasSuffix(base, "long") {
			base = written // the same size everywhere, which long has not
		}
		w.seen[name] = true
		tab.Scalars = append(tab.Scalars, symbols.Scalar{Name: name, Type: base})
		return nil
	}
}

func (w *walker) callback(name string, ft *cc.FunctionType) error {
	w.seen[name] = true
	if ft.IsVariadic() {
		return fmt.Errorf("is a variadic function, which no program of Go can be")
	}
	params, err := w.params(name, ft)
	if err != nil {
		return err
	}
	result := w.spell(ft.Result())
	if strings.Contains(result, "?") {
		return fmt.Errorf("cannot spell type %s, which it returns", ft.Result())
	}
	w.out.table.Callbacks = append(w.out.table.Callbacks, symbols.Callback{Name: name, Result: result, Params: params})
	return nil
}

// define records a complete struct, union or enum under a name.
func (w *walker) define(name string, t cc.Type) error {
	if w.seen[name] && name != "" || t.IsIncomplete() {
		return nil
	}
	switch x := t.(type) {
	case *cc.EnumType:
		w.seen[name] = true
		e := symbols.Enum{Name: name, Tag: otherTag(t, name), Signed: cc.IsSignedInteger(x.UnderlyingType())}
		for _, v := range x.Enumerators() {
			n, ok := integer(v.Value())
			if !ok {
				return fmt.Errorf("enumerator %s has no integer value", v.Token.SrcStr())
			}
			if x.UnderlyingType().Size() == 4 && n > 1<<31-1 && e.Signed {
				n = int64(int32(n))
			}
			e.Values = append(e.Values, symbols.EnumValue{Name: v.Token.SrcStr(), Value: n})
		}
		w.out.table.Enums = append(w.out.table.Enums, e)
	case *cc.StructType:
		return w.layout(name, t, x.NumFields(), x.FieldByIndex, false)
	case *cc.UnionType:
		return w.layout(name, t, x.NumFields(), x.FieldByIndex, true)
	}
	return nil
}

func (w *walker) layout(name string, t cc.Type, n int, field func(int) *cc.Field, union bool) error {
	if name == "" {
		return fmt.Errorf("a struct without tag and typedef")
	}
	w.seen[name] = true
	if repacked(t, n, field, union, w.pack) {
		return fmt.Errorf("%s: is packed, which the C front end does not see", name)
	}
	s := symbols.Struct{Name: name, Tag: otherTag(t, name), TagOnly: tagOf(t) == name && w.named[name] == "", Union: union, Size: int(t.Size()), Align: t.Align(), Fields: []symbols.Field{}}
	anonymous, end := 0, 0
	for i := range n {
		f := field(i)
		out := symbols.Field{Name: f.Name(), Offset: int(f.Offset()), Size: int(f.Type().Size())}
		if f.IsBitfield() {
			out.Bits, out.BitOffset = int(f.ValueBits()), f.OffsetBits()
			if !union && end%out.Size != 0 {
				return fmt.Errorf("%s.%s: the bit-field may share its unit with what stands before it, which the C front end does not see", name, out.Name)
			}
			if out.Name == "" {
				continue // unnamed padding
			}
		} else {
			end = out.Offset + out.Size
		}
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
			if a.Len() < 0 {
				return fmt.Errorf("%s.%s: is an array without a length, which no Go type has", name, out.Name)
			}
			dims += "[" + strconv.FormatInt(a.Len(), 10) + "]"
			elem = a.Elem()
		}
		out.Type = w.spell(elem)
		if elem.Typedef() == nil && tagOf(elem) == "" { // an unnamed struct, union or enum written in place
			switch elem.(type) {
			case *cc.StructType, *cc.UnionType, *cc.EnumType:
				out.Type = name + "." + out.Name
				if err := w.define(out.Type, elem); err != nil {
					return err
				}
			}
		} else if elem.Typedef() == nil && w.named[tagOf(elem)] == "" { // a tagged one written in place
			if err := w.define(w.nameOf(elem), elem); err != nil {
				return err
			}
		}
		if to := pointee(elem); to != elem && to.Typedef() == nil && tagOf(to) != "" {
			w.behind = append(w.behind, to)
		}
		if ft := bareFunction(elem); ft != nil {
			out.Type = name + "." + out.Name
			if err := w.callback(out.Type, ft); err != nil {
				return fmt.Errorf("%s: %w", out.Type, err)
			}
		}
		if strings.Contains(out.Type, "?") {
			return fmt.Errorf("%s.%s: cannot spell type %s", name, out.Name, f.Type())
		}
		out.Type += dims
		s.Fields = append(s.Fields, out)
	}
	w.out.table.Structs = append(w.out.table.Structs, s)
	return nil
}

// spell writes a C type with the names that the header uses; a ? marks what it cannot write.
func (w *walker) spell(t cc.Type) string {
	qualifier := ""
	if t.Attributes().IsConst() {
		qualifier = "const "
	}
	if td := t.Typedef(); td != nil {
		return qualifier + td.Name()
	}
	switch x := t.(type) {
	case *cc.PointerType:
		if _, ok := x.Elem().(*cc.FunctionType); ok && x.Elem().Typedef() == nil {
			return "?"
		}
		if st, ok := x.Elem().(*cc.StructType); ok && st.IsIncomplete() {
			if h := w.handle(tagOf(st)); h != "" {
				return h // struct X_st * goes by the handle's name, whichever way the header writes it
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
		return w.spell(x.Elem()) + "[" + strconv.FormatInt(x.Len(), 10) + "]"
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

// handle gives the first handle type that points to an opaque struct.
func (w *walker) handle(tag string) string {
	for _, h := range w.out.table.Handles {
		if h.Tag == tag {
			return h.Name
		}
	}
	return ""
}

// nameOf gives the name of a tagged type's record.
func (w *walker) nameOf(t cc.Type) string {
	tag := tagOf(t)
	if name := w.named[tag]; tag != "" && name != "" {
		return name
	}
	return tag
}

func tagOf(t cc.Type) string {
	if tag := tagToken(t); tag != (cc.Token{}) {
		return tag.SrcStr()
	}
	return ""
}

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

// pointee follows the pointers of a type that are written in place.
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

func isDeprecated(d *cc.Declarator) bool {
	a := d.Type().Attributes()
	return a != nil && a.IsAttrSet("deprecated")
}
