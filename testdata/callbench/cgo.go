//go:build cgo

package main

/*
#cgo CFLAGS: -O2
#include "callee.h"
#cgo noescape f0
#cgo nocallback f0
#cgo noescape f1
#cgo nocallback f1
#cgo noescape f2
#cgo nocallback f2
#cgo noescape f3
#cgo nocallback f3
#cgo noescape f4
#cgo nocallback f4
#cgo noescape f6
#cgo nocallback f6
#cgo noescape f11
#cgo nocallback f11
#cgo noescape f16
#cgo nocallback f16
#cgo noescape out2
#cgo nocallback out2
*/
import "C"

import "unsafe"

// cgoLibrary calls the functions through cgo, the way a cgo binding does.
type cgoLibrary struct{}

var cgoLib cgoLibrary

func (cgoLibrary) F0() error {
	if r := result(C.f0()); r != 0 {
		return r
	}
	return nil
}

func (cgoLibrary) F1(a0 uint64) error {
	if r := result(C.f1(C.u64(a0))); r != 0 {
		return r
	}
	return nil
}

func (cgoLibrary) F2(a0, a1 uint64) error {
	if r := result(C.f2(C.u64(a0), C.u64(a1))); r != 0 {
		return r
	}
	return nil
}

func (cgoLibrary) F3(a0, a1, a2 uint64) error {
	if r := result(C.f3(C.u64(a0), C.u64(a1), C.u64(a2))); r != 0 {
		return r
	}
	return nil
}

func (cgoLibrary) F4(a0, a1, a2, a3 uint64) error {
	if r := result(C.f4(C.u64(a0), C.u64(a1), C.u64(a2), C.u64(a3))); r != 0 {
		return r
	}
	return nil
}

func (cgoLibrary) F6(a0, a1, a2, a3, a4, a5 uint64) error {
	if r := result(C.f6(C.u64(a0), C.u64(a1), C.u64(a2), C.u64(a3), C.u64(a4), C.u64(a5))); r != 0 {
		return r
	}
	return nil
}

func (cgoLibrary) F11(a0, a1, a2, a3, a4, a5, a6, a7, a8, a9, a10 uint64) error {
	if r := result(C.f11(C.u64(a0), C.u64(a1), C.u64(a2), C.u64(a3), C.u64(a4), C.u64(a5), C.u64(a6), C.u64(a7), C.u64(a8), C.u64(a9), C.u64(a10))); r != 0 {
		return r
	}
	return nil
}

func (cgoLibrary) F16(a0, a1, a2, a3, a4, a5, a6, a7, a8, a9, a10, a11, a12, a13, a14, a15 uint64) error {
	if r := result(C.f16(C.u64(a0), C.u64(a1), C.u64(a2), C.u64(a3), C.u64(a4), C.u64(a5), C.u64(a6), C.u64(a7), C.u64(a8), C.u64(a9), C.u64(a10), C.u64(a11), C.u64(a12), C.u64(a13), C.u64(a14), C.u64(a15))); r != 0 {
		return r
	}
	return nil
}

func (cgoLibrary) Out(a, b uint64) (uint64, error) {
	var out C.u64
	if r := result(C.out2(&out, C.u64(a), C.u64(b))); r != 0 {
		return uint64(out), r
	}
	return uint64(out), nil
}

// open gives l the very functions that cgo calls.
func open(l *library) error {
	l.fns[idx0] = uintptr(unsafe.Pointer(C.f0))
	l.fns[idx1] = uintptr(unsafe.Pointer(C.f1))
	l.fns[idx2] = uintptr(unsafe.Pointer(C.f2))
	l.fns[idx3] = uintptr(unsafe.Pointer(C.f3))
	l.fns[idx4] = uintptr(unsafe.Pointer(C.f4))
	l.fns[idx6] = uintptr(unsafe.Pointer(C.f6))
	l.fns[idx11] = uintptr(unsafe.Pointer(C.f11))
	l.fns[idx16] = uintptr(unsafe.Pointer(C.f16))
	l.fns[idxOut] = uintptr(unsafe.Pointer(C.out2))
	return nil
}

const haveCgo = true

// cgoLoops run a case n times through cgo.
var cgoLoops = map[string]func(n int) error{
	"0": func(n int) error {
		for range n {
			if err := cgoLib.F0(); err != nil {
				return err
			}
		}
		return nil
	},
	"1": func(n int) error {
		for i := range n {
			if err := cgoLib.F1(uint64(i)); err != nil {
				return err
			}
		}
		return nil
	},
	"2": func(n int) error {
		for i := range n {
			if err := cgoLib.F2(uint64(i), 2); err != nil {
				return err
			}
		}
		return nil
	},
	"3": func(n int) error {
		for i := range n {
			if err := cgoLib.F3(uint64(i), 2, 3); err != nil {
				return err
			}
		}
		return nil
	},
	"4": func(n int) error {
		for i := range n {
			if err := cgoLib.F4(uint64(i), 2, 3, 4); err != nil {
				return err
			}
		}
		return nil
	},
	"6": func(n int) error {
		for i := range n {
			if err := cgoLib.F6(uint64(i), 2, 3, 4, 5, 6); err != nil {
				return err
			}
		}
		return nil
	},
	"11": func(n int) error {
		for i := range n {
			if err := cgoLib.F11(uint64(i), 2, 3, 4, 5, 6, 7, 8, 9, 10, 11); err != nil {
				return err
			}
		}
		return nil
	},
	"16": func(n int) error {
		for i := range n {
			if err := cgoLib.F16(uint64(i), 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16); err != nil {
				return err
			}
		}
		return nil
	},
	"2+out": func(n int) error {
		for i := range n {
			if out, err := cgoLib.Out(uint64(i), 2); err != nil || out != uint64(i)+2 {
				return wrong(out, err)
			}
		}
		return nil
	},
}
