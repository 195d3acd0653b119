package explore

import (
	"cmp"
	"fmt"
	"iter"
	"reflect"
	"slices"
	"unsafe"
)

// Go iterates over a map in a random order. In a run the order is that of the keys: numbers and
// strings by value, pointers and channels by the time that they first became a key of a map.

// Key returns k, which is put into a map as a key. Key records pointers and channels.
//
//go:norace
func Key[K comparable](k K) K {
	if r := active; r != nil {
		if p, ok := pointerIn(any(k)); ok && p != nil {
			r.objectAt(unsafe.Add(p, 3)).use(r)
		}
	}
	return k
}

//go:norace
func pointerIn(k any) (unsafe.Pointer, bool) {
	v := reflect.ValueOf(k)
	switch v.Kind() {
	case reflect.Pointer, reflect.Chan, reflect.UnsafePointer:
		return v.UnsafePointer(), true
	}
	return nil, false
}

// Pairs iterates over a map.
func Pairs[M ~map[K]V, K comparable, V any](m M) iter.Seq2[K, V] {
	return func(yield func(K, V) bool) {
		for _, k := range sorted(m) {
			if v, ok := m[k]; ok && !yield(k, v) {
				return
			}
		}
	}
}

// Keys iterates over the keys of a map.
func Keys[M ~map[K]V, K comparable, V any](m M) iter.Seq[K] {
	return func(yield func(K) bool) {
		for k := range Pairs(m) {
			if !yield(k) {
				return
			}
		}
	}
}

func sorted[M ~map[K]V, K comparable, V any](m M) []K {
	keys := make([]K, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	if !going() {
		return keys
	}
	slices.SortFunc(keys, func(a, b K) int { return compare(reflect.ValueOf(a), reflect.ValueOf(b)) })
	return keys
}

func compare(a, b reflect.Value) int {
	if a.Kind() != b.Kind() || a.Type() != b.Type() {
		return cmp.Compare(a.Type().String(), b.Type().String())
	}
	switch {
	case a.CanInt():
		return cmp.Compare(a.Int(), b.Int())
	case a.CanUint():
		return cmp.Compare(a.Uint(), b.Uint())
	case a.CanFloat():
		return cmp.Compare(a.Float(), b.Float())
	}
	switch a.Kind() {
	case reflect.String:
		return cmp.Compare(a.String(), b.String())
	case reflect.Bool:
		return cmp.Compare(fmt.Sprint(a.Bool()), fmt.Sprint(b.Bool()))
	case reflect.Pointer, reflect.Chan, reflect.UnsafePointer:
		return cmp.Compare(rank(a.UnsafePointer()), rank(b.UnsafePointer()))
	case reflect.Struct:
		for i := range a.NumField() {
			if c := compare(a.Field(i), b.Field(i)); c != 0 {
				return c
			}
		}
		return 0
	case reflect.Array:
		for i := range a.Len() {
			if c := compare(a.Index(i), b.Index(i)); c != 0 {
				return c
			}
		}
		return 0
	}
	panic(fmt.Sprintf("explore: keys of type %v have no order", a.Type()))
}

//go:norace
func rank(p unsafe.Pointer) uint32 {
	if p == nil {
		return 0
	}
	o := active.objectAt(unsafe.Add(p, 3))
	if o.epoch != active.epoch {
		panic("explore: a pointer that became the key of a map unseen")
	}
	return o.id
}

// Noise returns the next number of a pseudorandom sequence. The sequence is the same in each run.
// Outside a run Noise returns 4.
//
//go:norace
func Noise() uint64 {
	if r := active; r != nil {
		return r.noise.next()
	}
	return 4
}

// going reports whether a run is active.
//
//go:norace
func going() bool { return active != nil }
