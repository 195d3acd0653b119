package extract

import (
	"fmt"
	"reflect"
	"strings"

	"modernc.org/cc/v4"
)

// typed returns an error for a declaration that the front end reads in another way than a compiler:
//
//   - An unknown name as a parameter. The front end takes the parameter for an int.
//   - A member declaration without a declarator. The front end makes a member of the type. To a
//     compiler only an unnamed struct or union is then a member, and any other type declares
//     nothing.
//   - A struct without members and without a tag. The front end takes it for a struct that is
//     defined elsewhere. The layouter refuses such a struct with a tag.
func typed(d *cc.Declaration) error { return typedIn(reflect.ValueOf(d)) }

func typedIn(v reflect.Value) error {
	switch v.Kind() {
	case reflect.Pointer:
		if v.IsNil() || v.Elem().Kind() != reflect.Struct {
			return nil
		}
		switch x := v.Interface().(type) {
		case *cc.ConstantExpression, *cc.AssignmentExpression, *cc.FunctionDefinition:
			return nil
		case *cc.DirectDeclarator:
			if x.Case == cc.DirectDeclaratorFuncIdent && x.IdentifierList != nil {
				return fmt.Errorf("has the parameter %s, whose type no header declares", strings.TrimSpace(cc.NodeSource(x.IdentifierList)))
			}
		case *cc.ParameterDeclaration:
			some := false
			for s := x.DeclarationSpecifiers; s != nil; s = s.DeclarationSpecifiers {
				some = some || s.Case == cc.DeclarationSpecifiersTypeSpec
			}
			if !some {
				name := "a parameter"
				if x.Declarator != nil {
					name = "the parameter " + x.Declarator.Name()
				}
				return fmt.Errorf("has %s, whose type no header declares", name)
			}
		case *cc.StructDeclaration:
			s := x.SpecifierQualifierList // nil for a lone semicolon, which the layouter skips
			if x.Case == cc.StructDeclarationDecl && x.StructDeclaratorList == nil && s != nil && !isUnnamed(s) {
				return fmt.Errorf("has a member declaration that declares nothing in line %d", x.Position().Line)
			}
		case *cc.StructOrUnionSpecifier:
			if x.Case == cc.StructOrUnionSpecifierDef && x.StructDeclarationList == nil && x.Token == (cc.Token{}) {
				return fmt.Errorf("has a %s without members", strings.TrimSpace(cc.NodeSource(x.StructOrUnion)))
			}
		}
		v = v.Elem()
		for i := range v.NumField() {
			if v.Type().Field(i).IsExported() {
				if err := typedIn(v.Field(i)); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// isUnnamed reports whether specifiers define a struct or a union without a tag.
func isUnnamed(s *cc.SpecifierQualifierList) bool {
	for ; s != nil; s = s.SpecifierQualifierList {
		if t := s.TypeSpecifier; t != nil && t.StructOrUnionSpecifier != nil {
			x := t.StructOrUnionSpecifier
			return x.Case == cc.StructOrUnionSpecifierDef && x.Token == (cc.Token{})
		}
	}
	return false
}
