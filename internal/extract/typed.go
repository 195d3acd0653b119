package extract

import (
	"fmt"
	"reflect"
	"strings"

	"modernc.org/cc/v4"
)

// typed returns an error if a parameter of a declaration has no type. The front end takes a name that it does not know for such
// a parameter, and makes it an int.
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
