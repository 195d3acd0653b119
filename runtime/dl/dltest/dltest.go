// Package dltest tests that a package of bindings calls C correctly. A generated C library, the
// echo, exports every function that the package binds. Each function records its arguments as C
// receives them, byte for byte, and fills its outputs and its result with bytes derived from its
// name. [ABI] calls every method, fast and slow, and compares the arguments and the results of both
// sides. This finds a word in the wrong register, a wrong width, a wrong struct layout, and a moved
// stack.
//
// tools/bindgen writes a test that calls [ABI] into each package that it makes.
package dltest

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"hash/fnv"
	"io/fs"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"runtime"
	"slices"
	"testing"
	"unsafe"

	"github.com/puregpu/puregpu/runtime/dl"
)

// A Function describes a method of a package's Library, and the C function that it calls.
type Function struct {
	Method    string  `json:"method"` // name of the Library's method
	Symbol    string  `json:"symbol"`
	Returns   Returns `json:"returns"`
	Registers bool    `json:"registers,omitempty"` // registers a callback, which makes all later calls slow; so it is called last
	Fast      bool    `json:"fast,omitempty"`      // called through a frame on the stack, on platforms with fast calls
	Params    []Param `json:"params"`              // parameters of the C function

	skip bool // takes a pointer to C's long, whose size differs on Windows
}

// Returns says how the method returns the C function's result.
type Returns string

// The ways to return a C result.
const (
	ReturnsCode  Returns = "code" // an error
	ReturnsNone  Returns = "none"
	ReturnsText  Returns = "text"  // a string
	ReturnsValue Returns = "value" // a result of the method
)

// A Param describes a C parameter and its Go counterpart.
type Param struct {
	Name    string `json:"name"`
	Type    string `json:"type"` // C type
	Role    Role   `json:"role"`
	Size    int    `json:"size,omitempty"`    // size of the Go type, of a slice's element, or of the memory that an output points to
	Counts  int    `json:"counts,omitempty"`  // for a Count or a CountOut: index of the parameter that it counts
	Text    int    `json:"text,omitempty"`    // for a Text: size of the buffer
	Opaque  bool   `json:"opaque,omitempty"`  // an unsafe.Pointer in Go
	Sized   bool   `json:"sized,omitempty"`   // for a Slice: the method asks another function for the size first
	Widened bool   `json:"widened,omitempty"` // the Go type was chosen by hand, and may be smaller than C's
}

// A Role says what a C parameter becomes in the Go method.
type Role string

// The roles of parameters.
const (
	Value     Role = "value"     // an argument passed unchanged
	Struct    Role = "struct"    // a struct by value
	Pointer   Role = "pointer"   // an argument that is a pointer
	String    Role = "string"    // a string
	Slice     Role = "slice"     // a slice; C gets the address of the first element
	Count     Role = "count"     // the length of a slice; no argument in Go
	CountOut  Role = "countOut"  // a result: the number of elements; on entry, C finds the slice's length there
	Out       Role = "out"       // a result
	OutString Role = "outString" // a result: a string that C points to
	Text      Role = "text"      // a result: a text that C writes to a buffer
)

// Seed returns the seed for the bytes of a parameter; parameter -1 is the result.
func Seed(symbol string, parameter int) uint64 {
	h := fnv.New64a()
	fmt.Fprintf(h, "%s/%d", symbol, parameter)
	return h.Sum64()
}

// Code returns the error code, or the number, that an echo function returns.
func Code(symbol string) uint32 { return uint32(Seed(symbol, -1)%89) + 900 }

// ABI tests a package of bindings. dir has the files zabi.c and zabi.json, which the generator
// wrote. ABI compiles zabi.c with the C compiler that PUREGPU_TEST_CC names, else cc, else gcc,
// unless the folder PUREGPU_TEST_FIXTURES has the library (see [Prove]). ABI opens the library with
// the function open, and calls the functions that zabi.json lists. The test is skipped if there is
// neither a library nor a compiler, and on systems where the C source cannot be built.
func ABI(t *testing.T, dir string, open func(path string) (any, error)) {
	t.Helper()
	source, err := os.ReadFile(filepath.Join(dir, "zabi.c"))
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(filepath.Join(dir, "zabi.json"))
	if err != nil {
		t.Fatal(err)
	}
	var functions []Function
	if err := json.Unmarshal(text, &functions); err != nil {
		t.Fatalf("zabi.json: %v", err)
	}
	Prove(t, "abi", string(source), functions, open)
}

// Proven checks the record that bindgen has written to zproof.json in dir. The record says that a C
// compiler compared the symbol table, in the folder above, with the headers that the table names.
// Proven needs neither compiler nor headers. The test fails if there is no record, if the table has
// changed since, or if the record does not cover every header that the table names.
func Proven(t *testing.T, dir string) {
	t.Helper()
	const again = "run bindgen where gcc or clang and the library's headers are"
	text, err := os.ReadFile(filepath.Join(dir, "zproof.json"))
	if errors.Is(err, fs.ErrNotExist) {
		t.Fatalf("nothing has proven this package's symbol table against the C headers: %s", again)
	}
	type header struct {
		Name   string `json:"name"`
		SHA256 string `json:"sha256"`
	}
	var proof struct {
		Table    string `json:"table"`
		SHA256   string `json:"sha256"`
		Releases []struct {
			Compiler string   `json:"compiler"`
			Facts    int      `json:"facts"`
			Headers  []header `json:"headers"`
		} `json:"releases"`
	}
	if err == nil {
		err = json.Unmarshal(text, &proof)
	}
	if err != nil {
		t.Fatalf("zproof.json: %v", err)
	}
	table, err := os.ReadFile(filepath.Join(dir, "..", filepath.Base(proof.Table)))
	if err != nil {
		t.Fatal(err)
	}
	if sum := sha256.Sum256(table); hex.EncodeToString(sum[:]) != proof.SHA256 {
		t.Fatalf("%s has changed since it was proven against the C headers: %s", proof.Table, again)
	}
	var of struct {
		Headers []header `json:"headers"`
	}
	if err := json.Unmarshal(table, &of); err != nil {
		t.Fatalf("%s: %v", proof.Table, err)
	}
	var proven []header
	facts := 0
	for _, r := range proof.Releases {
		proven, facts = append(proven, r.Headers...), facts+r.Facts
	}
	for _, h := range of.Headers {
		if !slices.Contains(proven, h) {
			t.Errorf("%s is made of %s, and was not proven against it: %s", proof.Table, h.Name, again)
		}
	}
	if facts == 0 {
		t.Errorf("zproof.json: no fact was proven: %s", again)
	}
	for _, r := range proof.Releases {
		t.Logf("%s: %d facts are as %s has them", proof.Table, r.Facts, r.Compiler)
	}
}

// Prove tests functions with the echo library named name. If the folder that PUREGPU_TEST_FIXTURES
// names has libecho_NAME.so, or on Windows libecho_NAME.dll, Prove uses this file. Otherwise it
// compiles the C code in source.
func Prove(t *testing.T, name, source string, functions []Function, open func(path string) (any, error)) {
	t.Helper()
	switch runtime.GOOS + "/" + runtime.GOARCH {
	case "linux/amd64", "linux/arm64", "windows/amd64":
	default:
		t.Skipf("the echo library is for Linux on amd64 and arm64, and for Windows on amd64, and this is %s/%s", runtime.GOOS, runtime.GOARCH)
	}
	if runtime.GOOS == "windows" {
		functions = slices.Clone(functions)
		for i := range functions { // keep all functions in the list: the echo numbers them by index
			functions[i].skip = slices.ContainsFunc(functions[i].Params, func(p Param) bool { return p.Type == "unsigned long *" })
		}
	}
	path := build(t, name, source)
	e := openEcho(t, path)
	fast := 0
	for _, heap := range []bool{false, true} {
		e.fail = 2 // the echo returns no version and no addresses while the package's Open asks for them
		l, err := open(path)
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
		var last []int
		for i := range functions {
			if functions[i].skip {
				continue
			}
			if functions[i].Registers {
				last = append(last, i)
				continue
			}
			proveFunction(t, lv, e, &functions[i], i)
		}
		for _, i := range last {
			proveFunction(t, lv, e, &functions[i], i)
		}
	}
	proven := 0
	for i := range functions {
		if !functions[i].skip {
			proven++
		}
		if functions[i].Fast && dl.Fast {
			fast++
		}
	}
	if !t.Failed() {
		t.Logf("%s/%s: %s: %d functions proven, %d of them through a stack frame too", runtime.GOOS, runtime.GOARCH, name, proven, fast)
	}
}

// build returns the path of an echo library. It compiles the library unless the folder in
// PUREGPU_TEST_FIXTURES has it.
func build(t *testing.T, name, source string) string {
	t.Helper()
	file := "libecho_" + name + map[bool]string{true: ".dll", false: ".so"}[runtime.GOOS == "windows"]
	if dir := os.Getenv("PUREGPU_TEST_FIXTURES"); dir != "" {
		if abs, err := filepath.Abs(filepath.Join(dir, file)); err == nil {
			if _, err := os.Stat(abs); err == nil {
				return abs
			}
		}
	}
	compiler := os.Getenv("PUREGPU_TEST_CC")
	for _, usual := range []string{"cc", "gcc"} {
		if _, err := exec.LookPath(usual); compiler == "" && err == nil {
			compiler = usual
		}
	}
	if _, err := exec.LookPath(compiler); err != nil {
		t.Skipf("no C compiler, which the echo library needs: install gcc, or name one in PUREGPU_TEST_CC (%v)", err)
	}
	dir := t.TempDir()
	c, path := filepath.Join(dir, "echo.c"), filepath.Join(dir, file)
	if err := os.WriteFile(c, []byte(source), 0o644); err != nil {
		t.Fatal(err)
	}
	out, err := exec.Command(compiler, "-std=gnu11", "-O1", "-Wall", "-Wno-unused-function", "-fPIC", "-shared", "-o", path, c).CombinedOutput()
	if err != nil {
		t.Fatalf("%s: %v\n%.4000s", compiler, err, out)
	}
	return path
}

// echoState is C's struct echo.
type echoState struct {
	function, fail, count, _ uint32
	records                  [128]struct{ param, kind, size, offset uint32 }
	bytes                    [1 << 16]byte
	size                     uint32
}

// An echo gives access to an open echo library's records.
type echo struct {
	*echoState
	arena uintptr
}

// openEcho opens an echo library and finds its records.
func openEcho(t *testing.T, path string) echo {
	t.Helper()
	l := new(dl.Library)
	spec := &dl.Spec{Name: "echo", Package: "echo", Sets: []dl.Set{{Name: "core"}}, Symbols: []dl.Symbol{{Name: "puregpu_echo"}, {Name: "puregpu_arena"}}}
	if err := l.Open(spec, nil, dl.Options{Path: path}); errors.Is(err, dl.ErrUnsupported) {
		t.Skip(err)
	} else if err != nil {
		t.Fatal(err)
	}
	state := l.Addr(0)
	return echo{*(**echoState)(unsafe.Pointer(&state)), l.Addr(1)}
}

// proveFunction calls function i twice: the echo reports success the first time and failure the
// second time. Each time proveFunction compares the arguments and the results of both sides.
func proveFunction(t *testing.T, lib reflect.Value, e echo, f *Function, i int) {
	t.Helper()
	for fail := range uint32(2) {
		m := lib.MethodByName(f.Method)
		if !m.IsValid() {
			t.Errorf("%s: no method %s", f.Symbol, f.Method)
			return
		}
		args, byParam := echoArguments(f, m.Type(), e)
		e.function, e.fail, e.count = math.MaxUint32, fail, 0
		if slices.ContainsFunc(f.Params, func(p Param) bool { return p.Sized }) {
			e.size = echoElements // the method first asks for the size
			defer func() { e.size = 0 }()
		}
		results := m.Call(args)
		if e.function != uint32(i) {
			t.Errorf("%s reached function %d of the echo, not %d", f.Method, int32(e.function), i)
			return
		}
		if err := compareInputs(f, e, byParam); err != nil {
			t.Errorf("%s: %v", f.Method, err)
		}
		if err := compareResults(f, results, fail, e); err != nil {
			t.Errorf("%s: %v", f.Method, err)
		}
		runtime.KeepAlive(args)
	}
}

const echoElements = 3 // length of every array

// echoArguments makes a method's arguments, and maps the index of each C parameter to its argument.
// The arguments' bytes are derived from the function's name.
func echoArguments(f *Function, mt reflect.Type, e echo) (args []reflect.Value, byParam map[int]reflect.Value) {
	byParam = map[int]reflect.Value{}
	for i, a := range f.Params {
		switch a.Role {
		case Value, Struct, Pointer, String, Slice:
		default:
			continue
		}
		t := mt.In(len(args))
		seed := Seed(f.Symbol, 1000+i)
		var v reflect.Value
		switch {
		case a.Role == String:
			v = reflect.ValueOf(fmt.Sprintf("in %x", seed)).Convert(t)
		case a.Role == Slice:
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
				v.SetFloat(float64(seed%100000) / 8) // not a NaN: a NaN does not equal itself
			}
		}
		args, byParam[i] = append(args, v), v
	}
	return args, byParam
}

// fillValue fills a value with the same bytes as the echo's C function fill.
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

// pointerOffsets returns the offsets of Go pointers in a type.
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

// compareInputs compares C's record with the arguments that Go passed.
func compareInputs(f *Function, e echo, byParam map[int]reflect.Value) error {
	if e.count > 128 {
		return fmt.Errorf("the echo ran out of room for its records")
	}
	values := 0
	memory := map[int]bool{}
	for _, r := range e.records[:e.count] {
		got := e.bytes[r.offset : r.offset+r.size]
		i := int(r.param)
		a := f.Params[i]
		v, isArg := byParam[i]
		where := fmt.Sprintf("parameter %s (%s)", a.Name, a.Type)
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
	if values != len(f.Params) {
		return fmt.Errorf("C recorded %d parameters of %d", values, len(f.Params))
	}
	for i, a := range f.Params {
		needs := a.Role == String || a.Role == Slice || a.Role == CountOut || a.Role == Pointer && !a.Opaque
		if needs && !memory[i] {
			return fmt.Errorf("parameter %s (%s): C did not see what it points to", a.Name, a.Type)
		}
	}
	return nil
}

// pointed returns the bytes that C must find at the address passed for parameter a.
func pointed(a Param, v reflect.Value, isArg bool) ([]byte, error) {
	switch {
	case a.Role == CountOut:
		n := make([]byte, 8)
		binary.LittleEndian.PutUint64(n, echoElements)
		return n[:a.Size], nil
	case !isArg:
		return nil, fmt.Errorf("C read memory that is no argument")
	case a.Role == String:
		return append([]byte(v.String()), 0), nil
	case a.Role == Slice:
		return unsafe.Slice((*byte)(v.UnsafePointer()), v.Len()*int(v.Type().Elem().Size())), nil
	}
	return unsafe.Slice((*byte)(v.UnsafePointer()), int(v.Type().Elem().Size())), nil
}

// compareWord checks a parameter as C received it.
func compareWord(f *Function, a Param, v reflect.Value, got []byte) error {
	switch a.Role {
	case Out, OutString, Text, CountOut, String:
		if len(got) != 8 || binary.LittleEndian.Uint64(got) == 0 {
			return fmt.Errorf("C received % x for a pointer", got)
		}
		return nil
	case Count:
		n := f.Params[a.Counts].Text
		if n == 0 {
			n = echoElements
		}
		want := make([]byte, 8)
		binary.LittleEndian.PutUint64(want, uint64(n))
		if !bytes.Equal(got, want[:len(got)]) {
			return fmt.Errorf("C received % x for the count %d", got, n)
		}
		return nil
	case Slice:
		return sameAddress(got, uintptr(v.UnsafePointer()))
	case Pointer:
		return sameAddress(got, uintptr(v.UnsafePointer()))
	}
	// The overlay gives the parameter a narrower Go type, which the call widens.
	if a.Widened && (v.CanInt() || v.CanUint()) && int(v.Type().Size()) < len(got) {
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

// sameValue reports whether two values are equal, apart from padding. It compares pointers by
// address.
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

// compareError returns an error unless v is code, or a struct of code and code+1.
func compareError(v reflect.Value, code int64) error {
	if v.Kind() == reflect.Struct && v.NumField() == 2 {
		if err := compareError(v.Field(0), code); err != nil {
			return err
		}
		return compareError(v.Field(1), code+1)
	}
	if v.Kind() != reflect.Int32 {
		return fmt.Errorf("error %v is no result code", v)
	}
	if v.Int() != code {
		return fmt.Errorf("error %d where C returned %d", v.Int(), code)
	}
	return nil
}

// compareResults checks the outputs, the result and the error.
func compareResults(f *Function, results []reflect.Value, fail uint32, e echo) error {
	err, _ := results[len(results)-1].Interface().(error)
	results = results[:len(results)-1]
	switch code := Code(f.Symbol); {
	case f.Returns != ReturnsCode && err != nil:
		return err
	case f.Returns == ReturnsCode && fail == 0 && err != nil:
		return fmt.Errorf("error %v where C reported success", err)
	case f.Returns == ReturnsCode && fail == 1 && err == nil:
		return fmt.Errorf("no error where C returned %d", code)
	case f.Returns == ReturnsCode && fail == 1:
		if err := compareError(reflect.ValueOf(err), int64(code)); err != nil {
			return err
		}
	case f.Returns == ReturnsText && results[len(results)-1].String() != f.Symbol:
		return fmt.Errorf("string %q where C returned %q", results[len(results)-1], f.Symbol)
	case f.Returns == ReturnsValue:
		got := results[len(results)-1]
		if want := returned(got.Type(), code, e.arena); !sameValue(got, want) {
			return fmt.Errorf("result %v where C returned %v", got, want)
		}
	}
	for i, a := range f.Params {
		if a.Role != Out && a.Role != CountOut && a.Role != OutString && a.Role != Text {
			continue
		}
		got := results[0]
		results = results[1:]
		want := reflect.New(got.Type()).Elem()
		switch a.Role {
		case OutString:
			want.SetString(f.Symbol + "." + a.Name)
		case Text:
			want.SetString(f.Symbol[:min(len(f.Symbol), a.Text)])
		default:
			fillValue(want, Seed(f.Symbol, i), e.arena)
		}
		if !sameValue(got, want) {
			return fmt.Errorf("output %s is %v where C wrote %v", a.Name, got, want)
		}
	}
	return nil
}

// firstOf returns the kind of the first field of a type.
func firstOf(t reflect.Type) reflect.Kind {
	switch {
	case t.Kind() == reflect.Struct && t.NumField() > 0:
		return firstOf(t.Field(0).Type)
	case t.Kind() == reflect.Array:
		return firstOf(t.Elem())
	}
	return t.Kind()
}

// returned returns the result of an echo function whose result is a number, a handle, a pointer or
// a small struct.
func returned(t reflect.Type, code uint32, arena uintptr) reflect.Value {
	v := reflect.New(t).Elem()
	word := uint64(code)
	switch t.Kind() {
	case reflect.Bool:
		word = 1
	case reflect.Float32, reflect.Float64:
		v.SetFloat(float64(code))
		return v
	default:
		if first := firstOf(t); first == reflect.Pointer || first == reflect.UnsafePointer {
			word = uint64(arena) + uint64(code)
		}
	}
	b := binary.LittleEndian.AppendUint64(nil, word)
	copy(unsafe.Slice((*byte)(v.Addr().UnsafePointer()), t.Size()), b)
	return v
}
