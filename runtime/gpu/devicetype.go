package gpu

import (
	"reflect"
	"strings"
)

// notOnDevice checks whether a kernel can use values of the type t as Go lays them out. A kernel
// can use scalars of a fixed size, and arrays and structs of these. The string at is the value's
// name. If the kernel cannot use such values, notOnDevice returns the name and the type of the
// wrong part (the value itself, a field or an element) and the reason. Otherwise the reason is "".
func notOnDevice(t reflect.Type, at string) (where string, of reflect.Type, why string) {
	switch t.Kind() {
	case reflect.Bool,
		reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64,
		reflect.Float32, reflect.Float64, reflect.Complex64, reflect.Complex128:
		return at, t, ""
	case reflect.Int:
		why = "a kernel's int may have another size: use int32 or int64"
	case reflect.Uint:
		why = "a kernel's unsigned int may have another size: use uint32 or uint64"
	case reflect.Uintptr:
		why = "use driver.Ptr for an address of the device, or else uint64"
	case reflect.Array:
		return notOnDevice(t.Elem(), at+"[]")
	case reflect.Struct:
		if isMemory(t) {
			break
		}
		for i := range t.NumField() {
			f := t.Field(i)
			if where, of, why = notOnDevice(f.Type, at+"."+f.Name); why != "" {
				return where, of, why
			}
		}
		return at, t, ""
	case reflect.String, reflect.Slice, reflect.Pointer, reflect.UnsafePointer:
		if !isMemory(t) {
			why = "it is the address of memory of the program's, which a kernel cannot use: use a gpu.Slice"
		}
	default:
		why = "a kernel cannot have one"
	}
	if why == "" {
		why = "inside of another value an address is a driver.Ptr"
	}
	return at, t, why
}

// isMemory reports whether a type is *Buffer, Range or a Slice.
func isMemory(t reflect.Type) bool {
	return t == reflect.TypeFor[*Buffer]() || t == reflect.TypeFor[Range]() || isSlice(t)
}

// isSlice reports whether a type is a Slice with any type of elements.
func isSlice(t reflect.Type) bool {
	return strings.HasPrefix(t.Name(), "Slice[") && t.PkgPath() == reflect.TypeFor[Range]().PkgPath()
}

// hasPointers reports whether values of a type contain addresses of the host.
func hasPointers(t reflect.Type) bool {
	switch t.Kind() {
	case reflect.Array:
		return t.Len() > 0 && hasPointers(t.Elem())
	case reflect.Struct:
		for i := range t.NumField() {
			if hasPointers(t.Field(i).Type) {
				return true
			}
		}
		return false
	}
	return t.Kind() > reflect.Complex128 // such as reflect.String
}
