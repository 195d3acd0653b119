package testkit

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
	"unicode"

	"github.com/puregpu/puregpu/runtime/gpu"
)

// A Receiver is a type whose methods [Receivers] calls on a nil pointer and on a zero value.
type Receiver struct {
	Nil       any  // a nil pointer to the type
	NilWorks  bool // methods of a nil pointer may succeed
	ZeroWorks bool // methods of a zero value may succeed
}

// Receivers calls every exported method of the types on a nil pointer and on a zero value: once
// with zero arguments, and once with other arguments, so that no check of an argument hides the
// check of the receiver. No call may panic. A method that returns an error must return
// [gpu.ErrArgument], with the names of the operation and the type, but Close, Shutdown and Err must
// return nil. This is not checked where methods may succeed. Methods with a value receiver are not
// called on nil, because Go itself panics then.
func Receivers(t *testing.T, receivers ...Receiver) {
	for _, r := range receivers {
		typ := reflect.TypeOf(r.Nil)
		name, _, _ := strings.Cut(typ.Elem().Name(), "[")
		for i := range typ.NumMethod() {
			m := typ.Method(i)
			_, ofValue := typ.Elem().MethodByName(m.Name)
			for _, given := range []bool{false, true} {
				if !ofValue {
					call(t, name, reflect.Zero(typ), m, given, r.NilWorks)
				}
				call(t, name, reflect.New(typ.Elem()), m, given, r.ZeroWorks)
			}
		}
	}
}

// call calls one method and checks its results. If given is set, the arguments are not zero. If
// works is set, the method may succeed.
func call(t *testing.T, of string, recv reflect.Value, m reflect.Method, given, works bool) {
	t.Helper()
	text := fmt.Sprintf("%s of a zero %s, with arguments: %t", m.Name, of, given)
	if recv.IsNil() {
		text = fmt.Sprintf("%s of a nil %s, with arguments: %t", m.Name, of, given)
	}
	defer func() {
		if p := recover(); p != nil {
			t.Errorf("%s panics: %v", text, p)
		}
	}()
	results := recv.MethodByName(m.Name).Call(arguments(m, given))
	if n := len(results); n == 0 || results[n-1].Type() != reflect.TypeFor[error]() {
		for _, v := range results {
			if c := v; c.Kind() == reflect.Func && !c.IsNil() && c.Type().NumIn() == 0 {
				c.Call(nil) // the method's result is a function that cancels something
			}
		}
		return
	}
	err, _ := results[len(results)-1].Interface().(error)
	switch none := m.Name == "Close" || m.Name == "Shutdown" || m.Name == "Err"; {
	case works:
	case none && err != nil:
		t.Errorf("%s: %v", text, err)
	case none:
	case !errors.Is(err, gpu.ErrArgument):
		t.Errorf("%s: %v, want ErrArgument", text, err)
	case !strings.Contains(strings.ToLower(err.Error()), strings.ToLower(of)):
		t.Errorf("%s: the error does not name the type: %v", text, err)
	case !namesOperation(err, m):
		t.Errorf("%s: the error does not name the operation: %v", text, err)
	}
}

func arguments(m reflect.Method, given bool) (args []reflect.Value) {
	for i := 1; i < m.Type.NumIn(); i++ {
		in := m.Type.In(i)
		switch variadic := m.Type.IsVariadic() && i == m.Type.NumIn()-1; {
		case variadic && !given:
		case variadic:
			args = append(args, argument(in.Elem(), true))
		default:
			args = append(args, argument(in, given))
		}
	}
	return args
}

// namesOperation reports whether an error has a word of the method's name, or is the error of a
// wrong Op. For a method that takes Ops it returns true, because the error may name the Ops
// instead.
func namesOperation(err error, m reflect.Method) bool {
	for i := 1; i < m.Type.NumIn(); i++ {
		if in := m.Type.In(i); in == reflect.TypeFor[gpu.Op]() || in == reflect.TypeFor[[]gpu.Op]() {
			return true
		}
	}
	var words strings.Builder
	for _, r := range m.Name {
		if unicode.IsUpper(r) {
			words.WriteByte(' ')
		}
		words.WriteRune(unicode.ToLower(r))
	}
	text := strings.ToLower(err.Error())
	return strings.Contains(text, "wrong op") || slices.ContainsFunc(strings.Fields(words.String()), func(w string) bool { return strings.Contains(text, w) })
}

// argument returns the zero value of a type. If given is set, argument returns a value other than
// zero if one is easy to make, such as a pointer to a zero value, a number 1, or a list of one
// element.
func argument(t reflect.Type, given bool) reflect.Value {
	v := reflect.New(t).Elem()
	if !given {
		return v
	}
	switch {
	case t == reflect.TypeFor[context.Context]():
		ctx, cancel := context.WithCancel(context.Background())
		cancel() // the methods of types whose zero value works must not wait
		v.Set(reflect.ValueOf(&ctx).Elem())
	case t == reflect.TypeFor[gpu.Op]():
		v.Set(reflect.ValueOf(gpu.Barrier()))
	case t.Kind() == reflect.Func:
		v.Set(reflect.MakeFunc(t, func([]reflect.Value) (results []reflect.Value) {
			for i := range t.NumOut() {
				results = append(results, reflect.Zero(t.Out(i)))
			}
			return results
		}))
	case t.Kind() == reflect.Pointer:
		v.Set(reflect.New(t.Elem()))
	case t.Kind() == reflect.Slice:
		v.Set(reflect.Append(v, argument(t.Elem(), true)))
	case t.Kind() == reflect.String:
		v.SetString("x")
	case v.CanInt():
		v.SetInt(1)
	case v.CanUint():
		v.SetUint(1)
	case v.CanFloat():
		v.SetFloat(1)
	}
	return v
}
