//go:build linux && (amd64 || (arm64 && (!puregpu_static || cgo))) && !nogpu

package dl_test

import (
	"errors"
	"fmt"
	"strings"
	"unsafe"

	"github.com/puregpu/puregpu/runtime/dl"
)

// libc describes the C library: two functions that it has, and one function, in a separate set,
// that it lacks.
var libc = dl.Spec{
	Name: "C library", Package: "libc", Names: []string{"libc.so.6"},
	Sets: []dl.Set{{Name: "core"}, {Name: "future"}},
	Symbols: []dl.Symbol{
		{Name: "strlen", Sig: "w"},
		{Name: "labs", Sig: "w"},
		{Name: "strlen_on_gpu", Sig: "w", Set: 1, Since: 9},
	},
}

// Indexes into libc.Symbols.
const (
	strlen = iota
	labs
	strlenOnGPU
)

// A program opens a library without cgo, calls a function, and checks which functions are missing.
func Example() {
	var l dl.Library
	if err := l.Open(&libc, nil, dl.Options{}); err != nil {
		fmt.Println(err)
		return
	}
	text, err := dl.CString("puregpu")
	if err != nil {
		fmt.Println(err)
		return
	}
	n, err := l.Slow(strlen, uintptr(unsafe.Pointer(text)))
	fmt.Println(n, err)

	fmt.Println(l.Has("core"), l.Has("future"))
	_, err = l.Slow(strlenOnGPU, uintptr(unsafe.Pointer(text)))
	fmt.Println(errors.Is(err, dl.ErrSymbol))
	fmt.Println(err)
	// Output:
	// 7 <nil>
	// true false
	// true
	// libc: strlen_on_gpu is missing (set future, since 9; found C library unknown): undefined symbol
}

// Generated bindings make fast calls: the arguments are in a frame, and nothing is allocated. If a
// build has no fast calls, or the function is missing, Load returns 0. Slow then makes the call, or
// returns the error.
func ExampleCall() {
	var l dl.Library
	fast := make([]uintptr, len(libc.Symbols))
	if err := l.Open(&libc, fast, dl.Options{}); err != nil {
		fmt.Println(err)
		return
	}
	abs := func(x int) (uintptr, error) {
		fn := dl.Load(&fast[labs])
		if fn == 0 {
			return l.Slow(labs, uintptr(x))
		}
		var f struct {
			dl.Frame
			x int
		}
		f.Fn, f.Ret, f.x = fn, 0, x
		dl.Call(1, unsafe.Pointer(&f))
		return f.Ret, nil
	}
	fmt.Println(abs(-42))
	// Output: 42 <nil>
}

// Opening a missing library returns an error. The error's first line says that the library is
// missing and what to do. The following lines list the places searched.
func ExampleOpenError() {
	spec := &dl.Spec{
		Name: "toy library", Package: "toy", Names: []string{"libpuregpu-toy.so.1", "libpuregpu-toy.so"}, Dirs: []string{"/opt/no-toys"},
		Hint: "install the toy, or name its file in Options.Path",
	}
	var l dl.Library
	err := l.Open(spec, nil, dl.Options{})
	fmt.Println(errors.Is(err, dl.ErrNotFound))
	fmt.Println(strings.ReplaceAll(err.Error(), "\t", "    "))
	if open, ok := errors.AsType[*dl.OpenError](err); ok {
		fmt.Println(len(open.Attempts), "candidates")
	}
	// Output:
	// true
	// toy: toy library not found; install the toy, or name its file in Options.Path
	//     libpuregpu-toy.so.1, libpuregpu-toy.so (system loader): cannot open shared object file: No such file or directory
	//     /opt/no-toys: no libpuregpu-toy.so.1 or libpuregpu-toy.so there
	// 3 candidates
}
