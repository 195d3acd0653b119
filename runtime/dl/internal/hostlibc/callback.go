//go:build linux && amd64 && puregpu_static && !nogpu && !cgo

package hostlibc

import (
	"fmt"
	"reflect"
	"sync"
	"sync/atomic"
	"unsafe"
)

const (
	maxCallbacks = 2000 // as many as the assembly code has
	callSize     = 5    // bytes of code for each callback
)

// A call describes one call of a callback by a C function.
type call struct {
	offset uintptr    // offset of the return address in the callbacks' code
	ints   [6]uintptr // arguments in registers
	stack  *uintptr   // further arguments
	result uintptr
}

// A callback is a Go function that C can call.
type callback struct {
	fn  reflect.Value
	in  []reflect.Type
	out bool
}

var callbacks struct {
	mu   sync.Mutex
	n    atomic.Int32 // number of callbacks
	list [maxCallbacks]callback
}

// callbackFunc is a variable, so that the assembly code gets the ABIInternal entry.
var callbackFunc = callbackGo

// NewCallback returns the address of a C function that calls fn. fn takes integers, bools and
// pointers, and returns nothing or one value of these types. NewCallback panics if fn is anything
// else, or if there are maxCallbacks callbacks already.
func NewCallback(fn any) uintptr {
	v := reflect.ValueOf(fn)
	if v.Kind() != reflect.Func {
		panic("not a function")
	}
	if v.IsNil() {
		panic("a nil function")
	}
	t := v.Type()
	if t.IsVariadic() {
		panic("a variadic function")
	}
	cb := callback{fn: v}
	for i := range t.NumIn() {
		if !isWord(t.In(i)) {
			panic(fmt.Sprintf("parameter %d is a %v, neither an integer nor a pointer", i, t.In(i)))
		}
		cb.in = append(cb.in, t.In(i))
	}
	switch t.NumOut() {
	case 0:
	case 1:
		if !isWord(t.Out(0)) {
			panic(fmt.Sprintf("the result is a %v, neither an integer nor a pointer", t.Out(0)))
		}
		cb.out = true
	default:
		panic("more than one result")
	}
	callbacks.mu.Lock()
	defer callbacks.mu.Unlock()
	n := callbacks.n.Load()
	if n == maxCallbacks {
		panic("too many callbacks")
	}
	callbacks.list[n] = cb
	callbacks.n.Store(n + 1)
	return entries.callbacks + uintptr(n)*callSize
}

func isWord(t reflect.Type) bool {
	switch t.Kind() {
	case reflect.Bool, reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64,
		reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64, reflect.Uintptr,
		reflect.Pointer, reflect.UnsafePointer:
		return true
	}
	return false
}

// callbackGo runs the Go function of a callback.
func callbackGo(c *call) {
	i := int32(c.offset/callSize) - 1
	if i >= callbacks.n.Load() {
		panic("C called a callback that there is not")
	}
	cb := &callbacks.list[i]
	args := make([]reflect.Value, len(cb.in))
	for i, t := range cb.in {
		word := unsafe.Pointer(&c.ints[min(i, 5)])
		if i >= len(c.ints) {
			word = unsafe.Add(unsafe.Pointer(c.stack), (i-len(c.ints))*8)
		}
		// The value is in the low bytes of the word, whatever the size of the value.
		args[i] = reflect.NewAt(t, word).Elem()
	}
	results := cb.fn.Call(args)
	if !cb.out {
		return
	}
	switch r := results[0]; r.Kind() {
	case reflect.Bool:
		if r.Bool() {
			c.result = 1
		}
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		c.result = uintptr(r.Int())
	case reflect.Pointer, reflect.UnsafePointer:
		c.result = uintptr(r.UnsafePointer())
	default:
		c.result = uintptr(r.Uint())
	}
}
