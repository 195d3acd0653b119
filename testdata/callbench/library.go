package main

import (
	"unsafe"

	"github.com/puregpu/puregpu/runtime/dl"
)

// result is a status code, 0 for success, as the generated packages have it.
type result uint32

func (r result) Error() string { return "failed" }

// The functions of callee.c.
const (
	idx0 = iota
	idx1
	idx2
	idx3
	idx4
	idx6
	idx11
	idx16
	idxOut
	numFns
)

// library has the shape of a generated library, and its methods that of generated
// methods.
type library struct {
	dl.Library
	fns [numFns]uintptr
}

func (l *library) F0() error {
	fn := dl.Load(&l.fns[idx0])
	if fn == 0 {
		r, err := l.Slow(idx0)
		if err != nil {
			return err
		}
		if r := result(r); r != 0 {
			return r
		}
		return nil
	}
	var f struct {
		dl.Frame
	}
	f.Fn, f.Ret = fn, 0
	if r := result(dl.Call(0, unsafe.Pointer(&f))); r != 0 {
		return r
	}
	return nil
}

func (l *library) F1(a0 uint64) error {
	fn := dl.Load(&l.fns[idx1])
	if fn == 0 {
		r, err := l.Slow(idx1, uintptr(a0))
		if err != nil {
			return err
		}
		if r := result(r); r != 0 {
			return r
		}
		return nil
	}
	var f struct {
		dl.Frame
		a0 uint64
	}
	f.Fn, f.a0, f.Ret = fn, a0, 0
	if r := result(dl.Call(1, unsafe.Pointer(&f))); r != 0 {
		return r
	}
	return nil
}

func (l *library) F2(a0, a1 uint64) error {
	fn := dl.Load(&l.fns[idx2])
	if fn == 0 {
		r, err := l.Slow(idx2, uintptr(a0), uintptr(a1))
		if err != nil {
			return err
		}
		if r := result(r); r != 0 {
			return r
		}
		return nil
	}
	var f struct {
		dl.Frame
		a0 uint64
		a1 uint64
	}
	f.Fn, f.a0, f.a1, f.Ret = fn, a0, a1, 0
	if r := result(dl.Call(2, unsafe.Pointer(&f))); r != 0 {
		return r
	}
	return nil
}

func (l *library) F3(a0, a1, a2 uint64) error {
	fn := dl.Load(&l.fns[idx3])
	if fn == 0 {
		r, err := l.Slow(idx3, uintptr(a0), uintptr(a1), uintptr(a2))
		if err != nil {
			return err
		}
		if r := result(r); r != 0 {
			return r
		}
		return nil
	}
	var f struct {
		dl.Frame
		a0 uint64
		a1 uint64
		a2 uint64
	}
	f.Fn, f.a0, f.a1, f.a2, f.Ret = fn, a0, a1, a2, 0
	if r := result(dl.Call(3, unsafe.Pointer(&f))); r != 0 {
		return r
	}
	return nil
}

func (l *library) F4(a0, a1, a2, a3 uint64) error {
	fn := dl.Load(&l.fns[idx4])
	if fn == 0 {
		r, err := l.Slow(idx4, uintptr(a0), uintptr(a1), uintptr(a2), uintptr(a3))
		if err != nil {
			return err
		}
		if r := result(r); r != 0 {
			return r
		}
		return nil
	}
	var f struct {
		dl.Frame
		a0 uint64
		a1 uint64
		a2 uint64
		a3 uint64
	}
	f.Fn, f.a0, f.a1, f.a2, f.a3, f.Ret = fn, a0, a1, a2, a3, 0
	if r := result(dl.Call(4, unsafe.Pointer(&f))); r != 0 {
		return r
	}
	return nil
}

func (l *library) F6(a0, a1, a2, a3, a4, a5 uint64) error {
	fn := dl.Load(&l.fns[idx6])
	if fn == 0 {
		r, err := l.Slow(idx6, uintptr(a0), uintptr(a1), uintptr(a2), uintptr(a3), uintptr(a4), uintptr(a5))
		if err != nil {
			return err
		}
		if r := result(r); r != 0 {
			return r
		}
		return nil
	}
	var f struct {
		dl.Frame
		a0 uint64
		a1 uint64
		a2 uint64
		a3 uint64
		a4 uint64
		a5 uint64
	}
	f.Fn, f.a0, f.a1, f.a2, f.a3, f.a4, f.a5, f.Ret = fn, a0, a1, a2, a3, a4, a5, 0
	if r := result(dl.Call(6, unsafe.Pointer(&f))); r != 0 {
		return r
	}
	return nil
}

func (l *library) F11(a0, a1, a2, a3, a4, a5, a6, a7, a8, a9, a10 uint64) error {
	fn := dl.Load(&l.fns[idx11])
	if fn == 0 {
		r, err := l.Slow(idx11, uintptr(a0), uintptr(a1), uintptr(a2), uintptr(a3), uintptr(a4), uintptr(a5), uintptr(a6), uintptr(a7), uintptr(a8), uintptr(a9), uintptr(a10))
		if err != nil {
			return err
		}
		if r := result(r); r != 0 {
			return r
		}
		return nil
	}
	var f struct {
		dl.Frame
		a0  uint64
		a1  uint64
		a2  uint64
		a3  uint64
		a4  uint64
		a5  uint64
		a6  uint64
		a7  uint64
		a8  uint64
		a9  uint64
		a10 uint64
	}
	f.Fn, f.a0, f.a1, f.a2, f.a3, f.a4, f.a5, f.a6, f.a7, f.a8, f.a9, f.a10, f.Ret = fn, a0, a1, a2, a3, a4, a5, a6, a7, a8, a9, a10, 0
	if r := result(dl.Call(11, unsafe.Pointer(&f))); r != 0 {
		return r
	}
	return nil
}

func (l *library) F16(a0, a1, a2, a3, a4, a5, a6, a7, a8, a9, a10, a11, a12, a13, a14, a15 uint64) error {
	fn := dl.Load(&l.fns[idx16])
	if fn == 0 {
		r, err := l.Slow(idx16, uintptr(a0), uintptr(a1), uintptr(a2), uintptr(a3), uintptr(a4), uintptr(a5), uintptr(a6), uintptr(a7), uintptr(a8), uintptr(a9), uintptr(a10), uintptr(a11), uintptr(a12), uintptr(a13), uintptr(a14), uintptr(a15))
		if err != nil {
			return err
		}
		if r := result(r); r != 0 {
			return r
		}
		return nil
	}
	var f struct {
		dl.Frame
		a0  uint64
		a1  uint64
		a2  uint64
		a3  uint64
		a4  uint64
		a5  uint64
		a6  uint64
		a7  uint64
		a8  uint64
		a9  uint64
		a10 uint64
		a11 uint64
		a12 uint64
		a13 uint64
		a14 uint64
		a15 uint64
	}
	f.Fn, f.a0, f.a1, f.a2, f.a3, f.a4, f.a5, f.a6, f.a7, f.a8, f.a9, f.a10, f.a11, f.a12, f.a13, f.a14, f.a15, f.Ret = fn, a0, a1, a2, a3, a4, a5, a6, a7, a8, a9, a10, a11, a12, a13, a14, a15, 0
	if r := result(dl.Call(16, unsafe.Pointer(&f))); r != 0 {
		return r
	}
	return nil
}

func (l *library) Out(a, b uint64) (out uint64, err error) {
	fn := dl.Load(&l.fns[idxOut])
	if fn == 0 {
		p := new(uint64)
		r, err := l.Slow(idxOut, uintptr(unsafe.Pointer(p)), uintptr(a), uintptr(b))
		if err != nil {
			return 0, err
		}
		if r := result(r); r != 0 {
			return *p, r
		}
		return *p, nil
	}
	var f struct {
		dl.Frame
		out *uint64
		a   uint64
		b   uint64
	}
	f.Fn, f.out, f.a, f.b, f.Ret = fn, &out, a, b, 0
	if r := result(dl.Call(3, unsafe.Pointer(&f))); r != 0 {
		return out, r
	}
	return out, nil
}
