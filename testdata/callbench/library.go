package main

import (
	"unsafe"

	"github.com/puregpu/puregpu/runtime/dl"
)

// result is a status code, 0 for success, as the generated packages have it.
type result uint32

func (r result) Error() string { return "failed" }

func (r result) asError() error { return r }

func check(r uintptr, err error) error {
	if err != nil {
		return err
	}
	if r := result(r); r != 0 {
		return r.asError()
	}
	return nil
}

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

// library has the shape of a generated library, and its methods are what the generator would emit for callee.c.
type library struct {
	dl.Library
	fns [numFns]uintptr
}

func (l *library) F0() (err error) {
	if addr := dl.Load(&l.fns[idx0]); addr != 0 {
		var frame struct {
			dl.Frame
		}
		frame.Fn, frame.Ret = addr, 0
		if res := result(dl.Call(0, unsafe.Pointer(&frame))); res != 0 {
			err = res.asError()
		}
		return err
	}
	res, err := l.Slow(idx0)
	return check(res, err)
}

func (l *library) F1(p0 uint64) (err error) {
	if addr := dl.Load(&l.fns[idx1]); addr != 0 {
		a0 := uintptr(p0)
		var frame struct {
			dl.Frame
			a0 uintptr
		}
		frame.Fn, frame.Ret, frame.a0 = addr, 0, a0
		if res := result(dl.Call(1, unsafe.Pointer(&frame))); res != 0 {
			err = res.asError()
		}
		return err
	}
	res, err := l.Slow(idx1, uintptr(p0))
	return check(res, err)
}

func (l *library) F2(p0 uint64, p1 uint64) (err error) {
	if addr := dl.Load(&l.fns[idx2]); addr != 0 {
		a0, a1 := uintptr(p0), uintptr(p1)
		var frame struct {
			dl.Frame
			a0 uintptr
			a1 uintptr
		}
		frame.Fn, frame.Ret, frame.a0, frame.a1 = addr, 0, a0, a1
		if res := result(dl.Call(2, unsafe.Pointer(&frame))); res != 0 {
			err = res.asError()
		}
		return err
	}
	res, err := l.Slow(idx2, uintptr(p0), uintptr(p1))
	return check(res, err)
}

func (l *library) F3(p0 uint64, p1 uint64, p2 uint64) (err error) {
	if addr := dl.Load(&l.fns[idx3]); addr != 0 {
		a0, a1, a2 := uintptr(p0), uintptr(p1), uintptr(p2)
		var frame struct {
			dl.Frame
			a0 uintptr
			a1 uintptr
			a2 uintptr
		}
		frame.Fn, frame.Ret, frame.a0, frame.a1, frame.a2 = addr, 0, a0, a1, a2
		if res := result(dl.Call(3, unsafe.Pointer(&frame))); res != 0 {
			err = res.asError()
		}
		return err
	}
	res, err := l.Slow(idx3, uintptr(p0), uintptr(p1), uintptr(p2))
	return check(res, err)
}

func (l *library) F4(p0 uint64, p1 uint64, p2 uint64, p3 uint64) (err error) {
	if addr := dl.Load(&l.fns[idx4]); addr != 0 {
		a0, a1, a2, a3 := uintptr(p0), uintptr(p1), uintptr(p2), uintptr(p3)
		var frame struct {
			dl.Frame
			a0 uintptr
			a1 uintptr
			a2 uintptr
			a3 uintptr
		}
		frame.Fn, frame.Ret, frame.a0, frame.a1, frame.a2, frame.a3 = addr, 0, a0, a1, a2, a3
		if res := result(dl.Call(4, unsafe.Pointer(&frame))); res != 0 {
			err = res.asError()
		}
		return err
	}
	res, err := l.Slow(idx4, uintptr(p0), uintptr(p1), uintptr(p2), uintptr(p3))
	return check(res, err)
}

func (l *library) F6(p0 uint64, p1 uint64, p2 uint64, p3 uint64, p4 uint64, p5 uint64) (err error) {
	if addr := dl.Load(&l.fns[idx6]); addr != 0 {
		a0, a1, a2, a3, a4, a5 := uintptr(p0), uintptr(p1), uintptr(p2), uintptr(p3), uintptr(p4), uintptr(p5)
		var frame struct {
			dl.Frame
			a0 uintptr
			a1 uintptr
			a2 uintptr
			a3 uintptr
			a4 uintptr
			a5 uintptr
		}
		frame.Fn, frame.Ret, frame.a0, frame.a1, frame.a2, frame.a3, frame.a4, frame.a5 = addr, 0, a0, a1, a2, a3, a4, a5
		if res := result(dl.Call(6, unsafe.Pointer(&frame))); res != 0 {
			err = res.asError()
		}
		return err
	}
	res, err := l.Slow(idx6, uintptr(p0), uintptr(p1), uintptr(p2), uintptr(p3), uintptr(p4), uintptr(p5))
	return check(res, err)
}

func (l *library) F11(p0 uint64, p1 uint64, p2 uint64, p3 uint64, p4 uint64, p5 uint64, p6 uint64, p7 uint64, p8 uint64, p9 uint64, p10 uint64) (err error) {
	if addr := dl.Load(&l.fns[idx11]); addr != 0 {
		a0, a1, a2, a3, a4, a5, a6, a7, a8, a9, a10 := uintptr(p0), uintptr(p1), uintptr(p2), uintptr(p3), uintptr(p4), uintptr(p5), uintptr(p6), uintptr(p7), uintptr(p8), uintptr(p9), uintptr(p10)
		var frame struct {
			dl.Frame
			a0  uintptr
			a1  uintptr
			a2  uintptr
			a3  uintptr
			a4  uintptr
			a5  uintptr
			a6  uintptr
			a7  uintptr
			a8  uintptr
			a9  uintptr
			a10 uintptr
		}
		frame.Fn, frame.Ret, frame.a0, frame.a1, frame.a2, frame.a3, frame.a4, frame.a5, frame.a6, frame.a7, frame.a8, frame.a9, frame.a10 = addr, 0, a0, a1, a2, a3, a4, a5, a6, a7, a8, a9, a10
		if res := result(dl.Call(11, unsafe.Pointer(&frame))); res != 0 {
			err = res.asError()
		}
		return err
	}
	res, err := l.Slow(idx11, uintptr(p0), uintptr(p1), uintptr(p2), uintptr(p3), uintptr(p4), uintptr(p5), uintptr(p6), uintptr(p7), uintptr(p8), uintptr(p9), uintptr(p10))
	return check(res, err)
}

func (l *library) F16(p0 uint64, p1 uint64, p2 uint64, p3 uint64, p4 uint64, p5 uint64, p6 uint64, p7 uint64, p8 uint64, p9 uint64, p10 uint64, p11 uint64, p12 uint64, p13 uint64, p14 uint64, p15 uint64) (err error) {
	if addr := dl.Load(&l.fns[idx16]); addr != 0 {
		a0, a1, a2, a3, a4, a5, a6, a7, a8, a9, a10, a11, a12, a13, a14, a15 := uintptr(p0), uintptr(p1), uintptr(p2), uintptr(p3), uintptr(p4), uintptr(p5), uintptr(p6), uintptr(p7), uintptr(p8), uintptr(p9), uintptr(p10), uintptr(p11), uintptr(p12), uintptr(p13), uintptr(p14), uintptr(p15)
		var frame struct {
			dl.Frame
			a0  uintptr
			a1  uintptr
			a2  uintptr
			a3  uintptr
			a4  uintptr
			a5  uintptr
			a6  uintptr
			a7  uintptr
			a8  uintptr
			a9  uintptr
			a10 uintptr
			a11 uintptr
			a12 uintptr
			a13 uintptr
			a14 uintptr
			a15 uintptr
		}
		frame.Fn, frame.Ret, frame.a0, frame.a1, frame.a2, frame.a3, frame.a4, frame.a5, frame.a6, frame.a7, frame.a8, frame.a9, frame.a10, frame.a11, frame.a12, frame.a13, frame.a14, frame.a15 = addr, 0, a0, a1, a2, a3, a4, a5, a6, a7, a8, a9, a10, a11, a12, a13, a14, a15
		if res := result(dl.Call(16, unsafe.Pointer(&frame))); res != 0 {
			err = res.asError()
		}
		return err
	}
	res, err := l.Slow(idx16, uintptr(p0), uintptr(p1), uintptr(p2), uintptr(p3), uintptr(p4), uintptr(p5), uintptr(p6), uintptr(p7), uintptr(p8), uintptr(p9), uintptr(p10), uintptr(p11), uintptr(p12), uintptr(p13), uintptr(p14), uintptr(p15))
	return check(res, err)
}

func (l *library) Out(a, b uint64) (out uint64, err error) {
	if addr := dl.Load(&l.fns[idxOut]); addr != 0 {
		a0, a1, a2 := &out, uintptr(a), uintptr(b)
		var frame struct {
			dl.Frame
			a0 *uint64
			a1 uintptr
			a2 uintptr
		}
		frame.Fn, frame.Ret, frame.a0, frame.a1, frame.a2 = addr, 0, a0, a1, a2
		if res := result(dl.Call(3, unsafe.Pointer(&frame))); res != 0 {
			err = res.asError()
		}
		return out, err
	}
	p := new(struct {
		out uint64
	})
	res, err := l.Slow(idxOut, uintptr(unsafe.Pointer(&p.out)), uintptr(a), uintptr(b))
	return p.out, check(res, err)
}
