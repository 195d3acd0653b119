//go:build linux && (amd64 || (arm64 && (!puregpu_static || cgo))) && !nogpu

package dl

import (
	"math"
	"runtime"
	"runtime/debug"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"unsafe"
)

// callWords calls words<n> on the fast path. Each call of Call passes a constant number of words.
func callWords(fn uintptr, n int, a *[16]uint64) (uint32, uint64) {
	f := struct {
		Frame
		a [16]uint64
	}{Frame{Fn: fn}, *a}
	p := unsafe.Pointer(&f)
	var r uint32
	switch n {
	case 0:
		r = Call(0, p)
	case 1:
		r = Call(1, p)
	case 2:
		r = Call(2, p)
	case 3:
		r = Call(3, p)
	case 4:
		r = Call(4, p)
	case 5:
		r = Call(5, p)
	case 6:
		r = Call(6, p)
	case 7:
		r = Call(7, p)
	case 8:
		r = Call(8, p)
	case 9:
		r = Call(9, p)
	case 10:
		r = Call(10, p)
	case 11:
		r = Call(11, p)
	case 12:
		r = Call(12, p)
	case 13:
		r = Call(13, p)
	case 14:
		r = Call(14, p)
	case 15:
		r = Call(15, p)
	case 16:
		r = Call(16, p)
	}
	return r, uint64(f.Ret)
}

func TestCallWords(t *testing.T) {
	if !Fast {
		t.Skip("no fast path in this build")
	}
	l := openFixture(t)
	var a [16]uint64
	for i := range a {
		a[i] = 0x0102030405060708 * uint64(i+3)
	}
	for n := range 17 {
		fn := Load(&l.fns[fWords0+n])
		if fn == 0 || fn != l.Addr(fWords0+n) {
			t.Fatalf("words%d: fast address %#x, Addr %#x", n, fn, l.Addr(fWords0+n))
		}
		r, ret := callWords(fn, n, &a)
		if want := hashAll(a[:n]...); ret != want || r != uint32(want) {
			t.Errorf("words%d = %#x, full %#x, want %#x", n, r, ret, want)
		}
	}
}

func TestSlowWords(t *testing.T) {
	l := openFixture(t)
	for _, i := range []int{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, fWords17, fWords20} {
		n := len(testSpec().Symbols[i].Sig)
		args := make([]uintptr, n)
		words := make([]uint64, n)
		for j := range args {
			words[j] = 0xfedcba9876543210 * uint64(j+5)
			args[j] = uintptr(words[j])
		}
		r, err := l.Slow(i, args...)
		if err != nil {
			t.Fatal(err)
		}
		if want := hashAll(words...); uint64(r) != want {
			t.Errorf("words%d = %#x, want %#x", n, r, want)
		}
	}
	for i, sym := range testSpec().Symbols {
		if fast := l.fns[i] != 0; fast != (Fast && len(sym.Sig) <= 16 && onlyWords(sym.Sig) && l.HasSymbol(sym.Name)) {
			t.Errorf("%s: fast %v", sym.Name, fast)
		}
	}
}

// pattern returns the bytes of a struct for a by-value argument.
func pattern(n int, seed byte) []byte {
	b := make([]byte, n)
	for i := range b {
		b[i] = seed + byte(i)*3
	}
	return b
}

func TestSlowStructs(t *testing.T) {
	l := openFixture(t)
	check := func(name string, r uintptr, err error, want uint64) {
		t.Helper()
		if err != nil {
			t.Error(err)
		} else if uint64(r) != want {
			t.Errorf("%s = %#x, want %#x", name, r, want)
		}
	}
	h := func(h uint64, words ...uint64) uint64 {
		for _, w := range words {
			h = hash(h, w)
		}
		return h
	}

	id, out := pattern(128, 7), new(uint64)
	r, err := l.Slow(fComm, uintptr(unsafe.Pointer(out)), 3, uintptr(unsafe.Pointer(&id[0])), 2)
	check("comm", r, err, h(hashBytes(h(1, 3), id), 2))
	if *out != 42 {
		t.Errorf("comm: out %d", *out)
	}

	grid, block := pattern(12, 1), pattern(12, 100)
	r, err = l.Slow(fLaunch, 11, uintptr(unsafe.Pointer(&grid[0])), uintptr(unsafe.Pointer(&block[0])), 12, 13, 14)
	check("launch", r, err, h(hashBytes(hashBytes(h(1, 11), grid), block), 12, 13, 14))

	handle := pattern(64, 50)
	r, err = l.Slow(fIPC, uintptr(unsafe.Pointer(out)), uintptr(unsafe.Pointer(&handle[0])), 9)
	check("ipc", r, err, h(hashBytes(1, handle), 9))
	if *out != 43 {
		t.Errorf("ipc: out %d", *out)
	}

	r, err = l.Slow(fLate64, 1, 2, 3, 4, 5, 6, uintptr(unsafe.Pointer(&handle[0])), 7)
	check("late64", r, err, h(hashBytes(h(1, 1, 2, 3, 4, 5, 6), handle), 7))

	pair := pattern(16, 200)
	r, err = l.Slow(fSplit, 1, 2, 3, 4, 5, uintptr(unsafe.Pointer(&pair[0])), 6)
	check("split", r, err, h(hashBytes(h(1, 1, 2, 3, 4, 5), pair), 6))
	r, err = l.Slow(fSplit8, 1, 2, 3, 4, 5, 6, 7, uintptr(unsafe.Pointer(&pair[0])), 8)
	check("split8", r, err, h(hashBytes(h(1, 1, 2, 3, 4, 5, 6, 7), pair), 8))

	a, b, c := pattern(5, 1), pattern(24, 2), pattern(32, 3)
	r, err = l.Slow(fOdd, uintptr(unsafe.Pointer(&a[0])), uintptr(unsafe.Pointer(&b[0])), uintptr(unsafe.Pointer(&c[0])), uintptr(unsafe.Pointer(&grid[0])))
	check("odd", r, err, hashBytes(hashBytes(hashBytes(hashBytes(1, a), b), c), grid))
}

func TestSlowFloats(t *testing.T) {
	l := openFixture(t)
	f, d := math.Float32bits, math.Float64bits

	r, err := l.Slow(fSetf, 5, 16, uintptr(f(1.5)))
	if want := hashAll(5, 16, uint64(f(1.5))); err != nil || uint64(r) != want {
		t.Errorf("setf = %#x, %v, want %#x", r, err, want)
	}

	s := pattern(12, 9)
	r, err = l.Slow(fFloats, uintptr(f(-2.25)), 77, uintptr(d(math.Pi)), uintptr(unsafe.Pointer(&s[0])), uintptr(f(3)))
	want := hash(hashBytes(hashAll(uint64(f(-2.25)), 77, d(math.Pi)), s), uint64(f(3)))
	if err != nil || uint64(r) != want {
		t.Errorf("floats = %#x, %v, want %#x", r, err, want)
	}

	var args []uintptr
	var words []uint64
	for i := range 11 {
		w := d(float64(i) + 0.5)
		switch i {
		case 8:
			w = uint64(f(8.5))
		case 10:
			w = 99
		}
		args, words = append(args, uintptr(w)), append(words, w)
	}
	r, err = l.Slow(fFloats10, args...)
	if want := hashAll(words...); err != nil || uint64(r) != want {
		t.Errorf("floats10 = %#x, %v, want %#x", r, err, want)
	}

	r, err = l.Slow(fVariadic, 8, 1, 2, 3, 4, 5, 6, 7, 8)
	if want := hashAll(1, 2, 3, 4, 5, 6, 7, 8); err != nil || uint64(r) != want {
		t.Errorf("variadic = %#x, %v, want %#x", r, err, want)
	}
}

func TestMethods(t *testing.T) {
	l := openFixture(t)
	for range 2 {
		if out, err := l.Out2(123456789012345); out != 123456789012345 || err != nil {
			t.Errorf("Out2 = %d, %v", out, err)
		}
		x, y, err := l.Out11([9]uint64{1, 2, 3, 4, 5, 6, 7, 8, 9})
		if x != 15 || y != 30 || err != nil {
			t.Errorf("Out11 = %d, %d, %v", x, y, err)
		}
		isErr(t, l.Fail7(), result(7))
		l.HeapFrames()
	}
}

func TestSlowBadUse(t *testing.T) {
	l := openFixture(t)
	id := new([128]byte)
	for _, c := range []struct {
		name string
		call func() (uintptr, error)
		want string
	}{
		{"index", func() (uintptr, error) { return l.Slow(numFns) }, "fix: no function 43: the spec has 43"},
		{"negative", func() (uintptr, error) { return l.Slow(-1) }, "fix: no function -1: the spec has 43"},
		{"few", func() (uintptr, error) { return l.Slow(fOut2, 1) }, "fix: out2: 1 arguments, want 2"},
		{"many", func() (uintptr, error) { return l.Slow(fText, 1) }, "fix: text: 1 arguments, want 0"},
		{"struct", func() (uintptr, error) { return l.Slow(fComm, 0, 1, 0, 2) }, "fix: comm: argument 2, a struct by value, is a nil pointer"},
		{"few with struct", func() (uintptr, error) { return l.Slow(fComm, 0, 1, uintptr(unsafe.Pointer(id))) }, "fix: comm: 3 arguments, want 4"},
	} {
		if _, err := c.call(); err == nil || err.Error() != c.want {
			t.Errorf("%s: error %v, want %s", c.name, err, c.want)
		}
	}
	var zero Library
	_, err := zero.Slow(0)
	isErr(t, err, ErrNotOpen)
}

func TestCallAllocates(t *testing.T) {
	if !Fast {
		t.Skip("no fast path in this build")
	}
	l := openFixture(t)
	var sum uint64
	if n := testing.AllocsPerRun(1000, func() {
		out, err := l.Out2(5)
		if err != nil {
			panic(err)
		}
		x, y, _ := l.Out11([9]uint64{1})
		sum += out + x + y
	}); n != 0 {
		t.Errorf("%v allocations a run", n)
	}
	if n := testing.AllocsPerRun(1000, func() {
		if l.Fail7() != result(7) {
			panic("no error")
		}
	}); n != 0 {
		t.Errorf("%v allocations for an error", n)
	}
}

// grow uses about n KiB of stack.
//
//go:noinline
func grow(n int) byte {
	var b [1024]byte
	b[n%1024] = byte(n)
	if n > 0 {
		b[0] += grow(n - 1)
	}
	return b[0] + b[n%1024]
}

// TestStackMoves checks that outputs reach the callers while the callers' stacks grow and garbage
// collections shrink them.
func TestStackMoves(t *testing.T) {
	defer debug.SetGCPercent(debug.SetGCPercent(5))
	cb, err := Callback(func(v uint64) uint64 {
		grow(300)
		return v * 2
	})
	if err != nil {
		t.Fatal(err)
	}
	rounds := 400
	if testing.Short() || runtime.GOARCH == "arm64" {
		rounds = 60
	}
	slow := openFixture(t)
	slow.HeapFrames()
	for name, c := range map[string]struct {
		l    *lib
		call func(l *lib, v uint64) (uint64, error)
	}{
		"fast": {openFixture(t), func(l *lib, v uint64) (uint64, error) { return l.OutSpin(v, 2000) }},
		"slow": {slow, func(l *lib, v uint64) (uint64, error) { return l.OutSpin(v, 2000) }},
		"callback": {slow, func(l *lib, v uint64) (uint64, error) {
			p := new(uint64)
			if _, err := l.Slow(fCallBack, cb, uintptr(v), uintptr(unsafe.Pointer(p))); err != nil {
				return 0, err
			}
			return (*p - 1) / 2, nil
		}},
		// Here the output is a local variable, which must be on the heap during the call of Slow.
		"callback, local output": {slow, func(l *lib, v uint64) (uint64, error) {
			var out uint64
			_, err := l.Slow(fCallBack, cb, uintptr(v), uintptr(unsafe.Pointer(&out)))
			return (out - 1) / 2, err
		}},
	} {
		t.Run(name, func(t *testing.T) {
			var stop atomic.Bool
			var gc sync.WaitGroup
			gc.Go(func() {
				for !stop.Load() {
					runtime.GC()
				}
			})
			var wg sync.WaitGroup
			for g := range 4 {
				wg.Go(func() {
					for i := range rounds {
						v := uint64(g*rounds + i)
						if i%3 == 0 {
							grow(i % 64) // now the stack is too large, so the collector shrinks it
						}
						out, err := atDepth(i%40, func() (uint64, error) { return c.call(c.l, v) })
						if out != v || err != nil {
							t.Errorf("call %d: %d, %v", v, out, err)
							return
						}
					}
				})
			}
			wg.Wait()
			stop.Store(true)
			gc.Wait()
		})
	}
}

//go:noinline
func atDepth(n int, f func() (uint64, error)) (uint64, error) {
	var b [512]byte
	b[n] = 1
	if n > 0 {
		return atDepth(n-int(b[n]), f)
	}
	return f()
}

// TestCallbackMovesStack checks that an output reaches the caller although a callback makes the
// goroutine's stack move. Each call is on a new goroutine, whose stack is small.
func TestCallbackMovesStack(t *testing.T) {
	l := openFixture(t)
	cb, err := Callback(func(v uint64) uint64 { grow(100); runtime.GC(); return v })
	if err != nil {
		t.Fatal(err)
	}
	for i := range 20 {
		done := make(chan uint64)
		go func() {
			var out uint64
			l.Slow(fCallBack, cb, uintptr(i), uintptr(unsafe.Pointer(&out)))
			done <- out
		}()
		if out := <-done; out != uint64(i)+1 {
			t.Errorf("call %d: %d", i, out)
		}
	}
}

func TestConcurrentCalls(t *testing.T) {
	l := openFixture(t)
	var wg sync.WaitGroup
	for g := range 16 {
		wg.Go(func() {
			for i := range 2000 {
				v := uint64(g)<<32 | uint64(i)
				if out, err := l.Out2(v); out != v || err != nil {
					t.Errorf("Out2(%d) = %d, %v", v, out, err)
					return
				}
				if g == 0 && i == 1000 {
					l.HeapFrames()
				}
			}
		})
	}
	wg.Wait()
}

func TestHeapFrames(t *testing.T) {
	l := openFixture(t)
	if fast := Load(&l.fns[fOut2]) != 0; fast != Fast {
		t.Errorf("fast %v before, want %v", fast, Fast)
	}
	if got := l.Explain(); Fast && !strings.Contains(got, "calls: fast\n") {
		t.Errorf("Explain before:\n%s", got)
	}
	l.HeapFrames()
	for i := range l.fns {
		if Load(&l.fns[i]) != 0 {
			t.Fatalf("function %d is still fast", i)
		}
	}
	if got := l.Explain(); Fast && !strings.Contains(got, "calls: slow (heap frames, for callbacks)\n") {
		t.Errorf("Explain after:\n%s", got)
	}
	if l.Addr(fOut2) == 0 {
		t.Error("Addr is gone")
	}
	if out, err := l.Out2(8); out != 8 || err != nil {
		t.Errorf("Out2 = %d, %v", out, err)
	}

	// HeapFrames also works before Open.
	early := new(lib)
	early.HeapFrames()
	if err := early.Open(testSpec(), early.fns[:], Options{Path: fixture(t)}); err != nil {
		t.Fatal(err)
	}
	if Load(&early.fns[fOut2]) != 0 {
		t.Error("fast after HeapFrames and Open")
	}
}

func TestStrings(t *testing.T) {
	l := openFixture(t)
	p, err := l.Slow(fText)
	if err != nil {
		t.Fatal(err)
	}
	if s := GoString(*(*unsafe.Pointer)(unsafe.Pointer(&p))); s != "in C" {
		t.Errorf("text = %q", s)
	}
	buf := make([]byte, 16)
	if _, err := l.Slow(fFill, uintptr(unsafe.Pointer(&buf[0])), 16); err != nil {
		t.Fatal(err)
	}
	if s := GoString(unsafe.Pointer(&buf[0])); s != "16" {
		t.Errorf("fill = %q", s)
	}
}

func TestCallbackErrors(t *testing.T) {
	for _, fn := range []any{nil, 5, (func())(nil), func(string) {}, func() (int, int) { return 0, 0 }} {
		if addr, err := Callback(fn); err == nil || addr != 0 {
			t.Errorf("Callback(%T) = %#x, %v", fn, addr, err)
		}
	}
}

func BenchmarkCall(b *testing.B) {
	l := openFixture(b)
	b.ReportAllocs()
	for b.Loop() {
		if _, err := l.Out2(1); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkSlow(b *testing.B) {
	l := openFixture(b)
	l.HeapFrames()
	b.ReportAllocs()
	for b.Loop() {
		if _, err := l.Out2(1); err != nil {
			b.Fatal(err)
		}
	}
}
