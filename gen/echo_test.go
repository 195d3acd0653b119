//go:build linux && (amd64 || arm64) && !nogpu

package gen

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"runtime"
	"testing"
	"unsafe"

	"github.com/puregpu/puregpu/cuda"
	"github.com/puregpu/puregpu/hip"
	"github.com/puregpu/puregpu/nccl"
	"github.com/puregpu/puregpu/nvrtc"
	"github.com/puregpu/puregpu/runtime/dl"
)

// TestEcho calls every function of each package, in every ABI version and on every path, against a C library that
// records what arrives and answers what its name says.
func TestEcho(t *testing.T) {
	open := map[string]func(path string) (any, error){
		"cuda":  func(path string) (any, error) { return cuda.Open(cuda.Options{Path: path}) },
		"hip":   func(path string) (any, error) { return hip.Open(hip.Options{Path: path}) },
		"nccl":  func(path string) (any, error) { return nccl.Open(nccl.Options{Path: path}) },
		"nvrtc": func(path string) (any, error) { return nvrtc.Open(nvrtc.Options{Path: path}) },
	}
	for _, name := range Libraries() {
		t.Run(name, func(t *testing.T) {
			if open[name] == nil {
				t.Fatalf("nothing here opens package %s; add its Open to this test", name)
			}
			p, err := load(name)
			if err != nil {
				t.Fatal(err)
			}
			path := buildEcho(t, p)
			echo := openEcho(t, path)
			echo.fail = 1 // Open asks for the version and for addresses; an echo has none to give
			proven, fast := 0, 0
			for _, heap := range []bool{false, true} {
				l, err := open[name](path)
				if err != nil {
					t.Fatal(err)
				}
				lv := reflect.ValueOf(l)
				if missing := lv.MethodByName("Missing").Call(nil)[0].Len(); missing != 0 {
					t.Fatalf("%d functions do not resolve", missing)
				}
				if heap {
					lv.MethodByName("HeapFrames").Call(nil)
				}
				var last []int // these change the path of all later calls
				for i, f := range p.funcs {
					if f.sym.Registers {
						last = append(last, i)
						continue
					}
					proveFunction(t, lv, echo, p, i)
				}
				for _, i := range last {
					proveFunction(t, lv, echo, p, i)
				}
				proven = len(p.funcs)
			}
			for _, f := range p.funcs {
				if f.fast && dl.Fast {
					fast++
				}
			}
			if !t.Failed() {
				t.Logf("%s/%s: %s: %d functions proven, %d of them through a stack frame too", runtime.GOOS, runtime.GOARCH, name, proven, fast)
			}
		})
	}
}

// echoState is struct echo in C.
type echoState struct {
	function, fail, count, used uint32
	records                     [128]struct{ param, kind, size, offset uint32 }
	bytes                       [1 << 16]byte
}

// An echo is an open echo library seen from the side.
type echo struct {
	*echoState
	arena uintptr
}

// buildEcho compiles a library's echo, or takes one that was compiled elsewhere.
func buildEcho(t *testing.T, p *pkg) string {
	t.Helper()
	name := "libecho_" + p.desc.Library + ".so"
	if dir := os.Getenv("PUREGPU_TEST_FIXTURES"); dir != "" {
		if abs, err := filepath.Abs(filepath.Join(dir, name)); err == nil {
			if _, err := os.Stat(abs); err == nil {
				return abs
			}
		}
	}
	compiler := os.Getenv("PUREGPU_TEST_CC")
	if compiler == "" {
		compiler = "gcc"
	}
	if _, err := exec.LookPath(compiler); err != nil {
		t.Skipf("no C compiler %s, which the echo library needs; install gcc or set PUREGPU_TEST_CC", compiler)
	}
	dir := t.TempDir()
	source, path := filepath.Join(dir, "echo.c"), filepath.Join(dir, name)
	text, err := p.echoSource()
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(source, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	out, err := exec.Command(compiler, "-std=gnu11", "-O1", "-Wall", "-Wno-unused-function", "-fPIC", "-shared", "-o", path, source).CombinedOutput()
	if err != nil {
		t.Fatalf("%s: %v\n%s", compiler, err, bytes.Join(bytes.SplitN(out, []byte("\n"), 20)[:min(19, bytes.Count(out, []byte("\n")))], []byte("\n")))
	}
	return path
}

func openEcho(t *testing.T, path string) echo {
	t.Helper()
	l := new(dl.Library)
	spec := &dl.Spec{Name: "echo", Package: "echo", Sets: []dl.Set{{Name: "core"}}, Symbols: []dl.Symbol{{Name: "puregpu_echo"}, {Name: "puregpu_arena"}}}
	if err := l.Open(spec, nil, dl.Options{Path: path}); err != nil {
		t.Fatal(err)
	}
	state := l.Addr(0)
	return echo{*(**echoState)(unsafe.Pointer(&state)), l.Addr(1)}
}

// proveFunction calls function i twice, once to succeed and once to fail, and compares both directions.
func proveFunction(t *testing.T, lib reflect.Value, e echo, p *pkg, i int) {
	t.Helper()
	f := p.funcs[i]
	for fail := range uint32(2) {
		m := lib.MethodByName(f.name)
		if !m.IsValid() {
			t.Errorf("%s: no method %s", f.sym.Symbol, f.name)
			return
		}
		args, byParam := echoArguments(f, m.Type(), e)
		e.function, e.fail, e.count = math.MaxUint32, fail, 0
		results := m.Call(args)
		if e.function != uint32(i) {
			t.Errorf("%s reached function %d of the echo, not %d", f.name, int32(e.function), i)
			return
		}
		if err := compareInputs(f, e, byParam); err != nil {
			t.Errorf("%s: %v", f.name, err)
		}
		if err := compareResults(f, results, fail, e); err != nil {
			t.Errorf("%s: %v", f.name, err)
		}
		runtime.KeepAlive(args)
	}
}

const echoElements = 3 // length of every array

// echoArguments makes arguments whose bytes follow from the function's name, by C parameter.
func echoArguments(f function, mt reflect.Type, e echo) (args []reflect.Value, byParam map[int]reflect.Value) {
	byParam = map[int]reflect.Value{}
	for i, a := range f.params {
		switch a.role {
		case roleValue, roleStruct, rolePointer, roleString, roleSlice:
		default:
			continue
		}
		t := mt.In(len(args))
		seed := echoSeed(f.sym.Symbol, 1000+i)
		var v reflect.Value
		switch {
		case a.role == roleString:
			v = reflect.ValueOf(fmt.Sprintf("in %x", seed)).Convert(t)
		case a.role == roleSlice:
			v = reflect.MakeSlice(t, echoElements, echoElements)
			for k := range echoElements {
				fillValue(v.Index(k), seed+uint64(k), e.arena)
			}
		case t.Kind() == reflect.Pointer:
			v = reflect.New(t.Elem())
			fillValue(v.Elem(), seed, e.arena)
		default:
			v = reflect.New(t).Elem()
			fillValue(v, seed, e.arena)
			if t.Kind() == reflect.Float32 || t.Kind() == reflect.Float64 {
				v.SetFloat(float64(seed%100000) / 8) // a NaN would not compare
			}
		}
		args, byParam[i] = append(args, v), v
	}
	return args, byParam
}

// fillValue is fill in C.
func fillValue(v reflect.Value, seed uint64, arena uintptr) {
	b := unsafe.Slice((*byte)(v.Addr().UnsafePointer()), int(v.Type().Size()))
	raw := echoBytes(seed, len(b))
	for _, at := range pointerOffsets(v.Type(), 0) {
		q := arena + (uintptr(raw[at]) | uintptr(raw[at+1]&15)<<8)
		binary.LittleEndian.PutUint64(raw[at:], uint64(q))
	}
	copy(b, raw)
}

func echoBytes(seed uint64, n int) []byte {
	out := make([]byte, n)
	for i := range out {
		seed += 0x9e3779b97f4a7c15
		z := seed
		z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
		z = (z ^ z>>27) * 0x94d049bb133111eb
		out[i] = byte(z ^ z>>31)
	}
	return out
}

// pointerOffsets finds where Go sees pointers in a type.
func pointerOffsets(t reflect.Type, base uintptr) (out []uintptr) {
	switch t.Kind() {
	case reflect.Pointer, reflect.UnsafePointer:
		return []uintptr{base}
	case reflect.Array:
		for i := range t.Len() {
			out = append(out, pointerOffsets(t.Elem(), base+uintptr(i)*t.Elem().Size())...)
		}
	case reflect.Struct:
		for i := range t.NumField() {
			out = append(out, pointerOffsets(t.Field(i).Type, base+t.Field(i).Offset)...)
		}
	}
	return out
}

// compareInputs checks what C recorded against what Go passed.
func compareInputs(f function, e echo, byParam map[int]reflect.Value) error {
	if e.count > 128 {
		return fmt.Errorf("the echo ran out of room for its records")
	}
	values := 0
	memory := map[int]bool{}
	for _, r := range e.records[:e.count] {
		got := e.bytes[r.offset : r.offset+r.size]
		i := int(r.param)
		a := f.params[i]
		v, isArg := byParam[i]
		where := fmt.Sprintf("parameter %s (%s)", a.c.Name, a.c.Type)
		if r.kind == 'm' {
			memory[i] = true
			want, err := pointed(a, v, isArg)
			if err != nil {
				return fmt.Errorf("%s: %w", where, err)
			}
			if !bytes.Equal(got, want) {
				return fmt.Errorf("%s: C read % x there, and Go had put % x", where, got, want)
			}
			continue
		}
		values++
		if err := compareWord(f, a, v, got); err != nil {
			return fmt.Errorf("%s: %w", where, err)
		}
	}
	if values != len(f.params) {
		return fmt.Errorf("C recorded %d parameters of %d", values, len(f.params))
	}
	for i, a := range f.params {
		needs := a.role == roleString || a.role == roleSlice || a.role == roleCountOut || a.role == rolePointer && a.typ.expr != "unsafe.Pointer"
		if needs && !memory[i] {
			return fmt.Errorf("parameter %s (%s): C did not see what it points to", a.c.Name, a.c.Type)
		}
	}
	return nil
}

// pointed is the memory that Go passed by address.
func pointed(a param, v reflect.Value, isArg bool) ([]byte, error) {
	switch {
	case a.role == roleCountOut:
		n := make([]byte, 8)
		binary.LittleEndian.PutUint64(n, echoElements)
		return n[:a.typ.size], nil
	case !isArg:
		return nil, fmt.Errorf("C read memory that is no argument")
	case a.role == roleString:
		return append([]byte(v.String()), 0), nil
	case a.role == roleSlice:
		return unsafe.Slice((*byte)(v.UnsafePointer()), v.Len()*int(v.Type().Elem().Size())), nil
	}
	return unsafe.Slice((*byte)(v.UnsafePointer()), int(v.Type().Elem().Size())), nil
}

// compareWord checks a parameter as C received it.
func compareWord(f function, a param, v reflect.Value, got []byte) error {
	switch a.role {
	case roleOut, roleOutStr, roleText, roleCountOut, roleString:
		if len(got) != 8 || binary.LittleEndian.Uint64(got) == 0 {
			return fmt.Errorf("C received % x for a pointer", got)
		}
		return nil
	case roleCount:
		n := f.params[a.len].c.Text
		if n == 0 {
			n = echoElements
		}
		want := make([]byte, 8)
		binary.LittleEndian.PutUint64(want, uint64(n))
		if !bytes.Equal(got, want[:len(got)]) {
			return fmt.Errorf("C received % x for the count %d", got, n)
		}
		return nil
	case roleSlice:
		return sameAddress(got, uintptr(v.UnsafePointer()))
	case rolePointer:
		return sameAddress(got, uintptr(v.UnsafePointer()))
	}
	if a.c.GoType != "" && (v.CanInt() || v.CanUint()) && int(v.Type().Size()) < len(got) { // the overlay's type, widened
		var want uint64
		if v.CanInt() {
			want = uint64(v.Int())
		} else {
			want = v.Uint()
		}
		if word := binary.LittleEndian.AppendUint64(nil, want); !bytes.Equal(got, word[:len(got)]) {
			return fmt.Errorf("C received % x, and Go had passed %v", got, v)
		}
		return nil
	}
	if len(got) != int(v.Type().Size()) {
		return fmt.Errorf("C takes %d bytes and Go passes %d", len(got), v.Type().Size())
	}
	back := reflect.New(v.Type())
	copy(unsafe.Slice((*byte)(back.UnsafePointer()), len(got)), got)
	if !sameValue(back.Elem(), v) {
		return fmt.Errorf("C received % x, and Go had passed %v", got, v)
	}
	return nil
}

func sameAddress(got []byte, want uintptr) error {
	if len(got) != 8 || binary.LittleEndian.Uint64(got) != uint64(want) {
		return fmt.Errorf("C received % x for the address %#x", got, want)
	}
	return nil
}

// sameValue compares all but padding; pointers by address.
func sameValue(a, b reflect.Value) bool {
	switch a.Kind() {
	case reflect.Struct:
		for i := range a.NumField() {
			if a.Type().Field(i).Name != "_" && !sameValue(a.Field(i), b.Field(i)) {
				return false
			}
		}
		return true
	case reflect.Array:
		for i := range a.Len() {
			if !sameValue(a.Index(i), b.Index(i)) {
				return false
			}
		}
		return true
	case reflect.Pointer, reflect.UnsafePointer:
		return a.Pointer() == b.Pointer()
	case reflect.Float32, reflect.Float64:
		return a.Float() == b.Float() || math.IsNaN(a.Float()) && math.IsNaN(b.Float())
	case reflect.String:
		return a.String() == b.String()
	case reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		return a.Int() == b.Int()
	case reflect.Bool:
		return a.Bool() == b.Bool()
	}
	return a.Uint() == b.Uint()
}

// compareResults checks outputs, result and error.
func compareResults(f function, results []reflect.Value, fail uint32, e echo) error {
	err, _ := results[len(results)-1].Interface().(error)
	results = results[:len(results)-1]
	switch code := echoResult(f.sym.Symbol); {
	case f.ret != retResult && err != nil:
		return err
	case f.ret == retResult && fail == 0 && err != nil:
		return fmt.Errorf("error %v where C reported success", err)
	case f.ret == retResult && fail == 1 && err == nil:
		return fmt.Errorf("no error where C returned %d", code)
	case f.ret == retResult && fail == 1 && reflect.ValueOf(err).Kind() != reflect.Int32:
		return fmt.Errorf("error %v is no result code", err)
	case f.ret == retResult && fail == 1 && reflect.ValueOf(err).Int() != int64(code):
		return fmt.Errorf("error %d where C returned %d", reflect.ValueOf(err).Int(), code)
	case f.ret == retString && results[len(results)-1].String() != f.sym.Symbol:
		return fmt.Errorf("string %q where C returned %q", results[len(results)-1], f.sym.Symbol)
	case f.ret == retInt && results[len(results)-1].Int() != int64(code):
		return fmt.Errorf("number %d where C returned %d", results[len(results)-1].Int(), code)
	}
	for i, a := range f.params {
		if a.role != roleOut && a.role != roleCountOut && a.role != roleOutStr && a.role != roleText {
			continue
		}
		got := results[0]
		results = results[1:]
		want := reflect.New(got.Type()).Elem()
		switch a.role {
		case roleOutStr:
			want.SetString(f.sym.Symbol + "." + a.c.Name)
		case roleText:
			want.SetString(f.sym.Symbol)
		default:
			fillValue(want, echoSeed(f.sym.Symbol, i), e.arena)
		}
		if !sameValue(got, want) {
			return fmt.Errorf("output %s is %v where C wrote %v", a.c.Name, got, want)
		}
	}
	return nil
}
