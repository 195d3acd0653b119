//go:build linux && (amd64 || (arm64 && (!puregpu_static || cgo))) && !nogpu

package dl

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"unsafe"
)

// buildDir holds compiled fixtures until all tests have ended. An opened library stays loaded, so a
// test's own directory would vanish too early.
var buildDir string

func TestMain(m *testing.M) {
	dir, err := os.MkdirTemp("", "dltest")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	buildDir = dir
	code := m.Run()
	os.RemoveAll(dir)
	os.Exit(code)
}

// compiler returns the C compiler, or "" if there is none.
func compiler() string {
	cc := os.Getenv("PUREGPU_TEST_CC")
	if cc == "" {
		cc = "gcc"
	}
	path, err := exec.LookPath(cc)
	if err != nil {
		return ""
	}
	return path
}

var buildMu sync.Mutex

// build compiles C source to a shared library, or takes the file of that name from
// $PUREGPU_TEST_FIXTURES.
func build(t testing.TB, name, source string, args ...string) string {
	t.Helper()
	if dir := os.Getenv("PUREGPU_TEST_FIXTURES"); dir != "" {
		p := filepath.Join(dir, name)
		if _, err := os.Stat(p); err != nil {
			t.Skipf("no %s among the prebuilt fixtures", name)
		}
		return p
	}
	buildMu.Lock()
	defer buildMu.Unlock()
	out := filepath.Join(buildDir, name)
	if _, err := os.Stat(out); err == nil {
		return out
	}
	cc := compiler()
	if cc == "" {
		t.Skip("no C compiler: set PUREGPU_TEST_CC, or PUREGPU_TEST_FIXTURES to a directory of prebuilt libraries")
	}
	args = append([]string{"-x", "c", "-", "-x", "none", "-O1", "-shared", "-fPIC", "-o", out}, args...)
	cmd := exec.Command(cc, args...)
	cmd.Stdin = strings.NewReader(source)
	if msg, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%s %v: %v\n%s", cc, args, err, msg)
	}
	return out
}

// fixture returns the compiled testdata/fixture.c.
func fixture(t testing.TB) string {
	t.Helper()
	if os.Getenv("PUREGPU_TEST_FIXTURES") != "" {
		return build(t, "fixture.so", "")
	}
	src, err := os.ReadFile("testdata/fixture.c")
	if err != nil {
		t.Fatal(err)
	}
	return build(t, "fixture.so", string(src))
}

// The functions of the fixture, by index.
const (
	fWords0  = iota // words0 to words16 are fWords0 to fWords0+16
	fWords17 = iota + 16
	fWords20
	fGetVersion
	fOut2
	fOut11
	fOutSpin
	fFail7
	fComm
	fLaunch
	fIPC
	fLate64
	fSplit
	fSplit8
	fOdd
	fSetf
	fFloats
	fFloats10
	fVariadic
	fCallBack
	fSpin
	fGetProc
	fText
	fFill
	fResolved
	fAbsent
	fAbsentToo
	numFns
)

const (
	setCore = iota
	setExtra
	setNewer
	setGone
)

// testSpec returns a spec of the fixture.
func testSpec() *Spec {
	s := &Spec{
		Name:    "fixture",
		Package: "fix",
		Env:     "PUREGPU_TEST_LIBRARY",
		Names:   []string{"libpuregpu-absent.so.2", "libpuregpu-absent.so"},
		Sets: []Set{
			{Name: "core", Since: 11000},
			{Name: "extra", Since: 11020},
			{Name: "newer", Since: 12000},
			{Name: "gone", Since: 13000},
		},
		Format:  func(v Version) string { return fmt.Sprintf("%d.%d", v/1000, v%1000/10) },
		Floor:   11000,
		Hint:    "install the fixture",
		Symbols: make([]Symbol, numFns),
		Version: func(l *Library) (Version, error) {
			v := new(int32)
			r, err := l.Slow(fGetVersion, uintptr(unsafe.Pointer(v)))
			if err != nil {
				return 0, err
			}
			if int32(r) != 0 {
				return 0, fmt.Errorf("get_version: %d", int32(r))
			}
			return Version(*v), nil
		},
		Resolve: func(l *Library) Resolver {
			if l.Addr(fGetProc) == 0 {
				return nil
			}
			return func(sym *Symbol) (uintptr, string) {
				name, err := CString(sym.API)
				if err != nil {
					return 0, err.Error()
				}
				fn := new(uintptr)
				r, err := l.Slow(fGetProc, uintptr(unsafe.Pointer(name)), uintptr(unsafe.Pointer(fn)), uintptr(sym.Since))
				if err != nil {
					return 0, err.Error()
				}
				if int32(r) != 0 {
					return 0, fmt.Sprintf("get_proc: error %d", int32(r))
				}
				return *fn, ""
			}
		},
	}
	for n := range 17 {
		s.Symbols[fWords0+n] = Symbol{Name: fmt.Sprintf("words%d", n), Sig: strings.Repeat("w", n)}
	}
	for i, sym := range map[int]Symbol{
		fWords17:    {Name: "words17", Sig: strings.Repeat("w", 17), Set: setExtra},
		fWords20:    {Name: "words20", Sig: strings.Repeat("w", 20), Set: setExtra},
		fGetVersion: {Name: "get_version", Sig: "w"},
		fOut2:       {Name: "out2", Sig: "ww"},
		fOut11:      {Name: "out11", Sig: "wwwwwwwwwww"},
		fOutSpin:    {Name: "out_spin", Sig: "www"},
		fFail7:      {Name: "fail7", Sig: "w"},
		fComm:       {Name: "comm", Sig: "wws128;w", Set: setExtra},
		fLaunch:     {Name: "launch", Sig: "ws12;s12;www", Set: setExtra},
		fIPC:        {Name: "ipc", Sig: "ws64;w", Set: setExtra},
		fLate64:     {Name: "late64", Sig: "wwwwwws64;w", Set: setExtra},
		fSplit:      {Name: "split", Sig: "wwwwws16;w", Set: setExtra},
		fSplit8:     {Name: "split8", Sig: "wwwwwwws16;w", Set: setExtra},
		fOdd:        {Name: "odd", Sig: "s5;s24;s32;s12;", Set: setExtra},
		fSetf:       {Name: "setf", Sig: "wwf", Set: setExtra},
		fFloats:     {Name: "floats", Sig: "fwds12;f", Set: setExtra},
		fFloats10:   {Name: "floats10", Sig: "ddddddddfdw", Set: setExtra},
		fVariadic:   {Name: "variadic", Sig: "wwwwwwwww", Set: setExtra},
		fCallBack:   {Name: "call_back", Sig: "www"},
		fSpin:       {Name: "spin", Sig: "w"},
		fGetProc:    {Name: "get_proc", Sig: "www"},
		fText:       {Name: "text", Sig: ""},
		fFill:       {Name: "fill", Sig: "ww"},
		fResolved:   {Name: "resolved_v2", API: "resolved", Sig: "w", Set: setNewer, Since: 12000},
		fAbsent:     {Name: "absent_v3", API: "absent", Sig: "ww", Set: setNewer, Since: 12090},
		fAbsentToo:  {Name: "gone", Sig: "w", Set: setGone, Since: 13000},
	} {
		s.Symbols[i] = sym
	}
	for i := range s.Symbols {
		if s.Symbols[i].Since == 0 {
			s.Symbols[i].Since = s.Sets[s.Symbols[i].Set].Since
		}
	}
	return s
}

// lib has the shape of a generated library.
type lib struct {
	Library
	fns [numFns]uintptr
}

func openFixture(t testing.TB) *lib {
	t.Helper()
	l := new(lib)
	if err := l.Open(testSpec(), l.fns[:], Options{Path: fixture(t)}); err != nil {
		t.Fatal(err)
	}
	return l
}

type result uint32

func (r result) Error() string { return fmt.Sprintf("result %d", uint32(r)) }

// Out2 has the shape of a generated method.
func (l *lib) Out2(v uint64) (out uint64, err error) {
	fn := Load(&l.fns[fOut2])
	if fn == 0 {
		p := new(uint64)
		r, err := l.Slow(fOut2, uintptr(unsafe.Pointer(p)), uintptr(v))
		if err != nil {
			return 0, err
		}
		if r := result(r); r != 0 {
			return *p, r
		}
		return *p, nil
	}
	var f struct {
		Frame
		a0 *uint64
		a1 uintptr
	}
	f.Fn, f.Ret, f.a0, f.a1 = fn, 0, &out, uintptr(v)
	if r := result(Call(2, unsafe.Pointer(&f))); r != 0 {
		return out, r
	}
	return out, nil
}

// OutSpin is like Out2, for a C function that takes longer the larger n is.
func (l *lib) OutSpin(v, n uint64) (out uint64, err error) {
	fn := Load(&l.fns[fOutSpin])
	if fn == 0 {
		p := new(uint64)
		r, err := l.Slow(fOutSpin, uintptr(unsafe.Pointer(p)), uintptr(v), uintptr(n))
		if err != nil {
			return 0, err
		}
		if r := result(r); r != 0 {
			return *p, r
		}
		return *p, nil
	}
	var f struct {
		Frame
		a0 *uint64
		a1 uintptr
		a2 uintptr
	}
	f.Fn, f.Ret, f.a0, f.a1, f.a2 = fn, 0, &out, uintptr(v), uintptr(n)
	if r := result(Call(3, unsafe.Pointer(&f))); r != 0 {
		return out, r
	}
	return out, nil
}

// Out11 has two outputs. The pointer to the second one is the last argument, which is on the stack.
func (l *lib) Out11(a [9]uint64) (x, y uint64, err error) {
	fn := Load(&l.fns[fOut11])
	if fn == 0 {
		p, q := new(uint64), new(uint64)
		r, err := l.Slow(fOut11, uintptr(unsafe.Pointer(p)), uintptr(a[0]), uintptr(a[1]), uintptr(a[2]), uintptr(a[3]),
			uintptr(a[4]), uintptr(a[5]), uintptr(a[6]), uintptr(a[7]), uintptr(a[8]), uintptr(unsafe.Pointer(q)))
		if err != nil {
			return 0, 0, err
		}
		if r := result(r); r != 0 {
			return *p, *q, r
		}
		return *p, *q, nil
	}
	var f struct {
		Frame
		a0  *uint64
		a   [9]uint64
		a10 *uint64
	}
	f.Fn, f.Ret, f.a0, f.a, f.a10 = fn, 0, &x, a, &y
	if r := result(Call(11, unsafe.Pointer(&f))); r != 0 {
		return x, y, r
	}
	return x, y, nil
}

func (l *lib) Fail7() error {
	fn := Load(&l.fns[fFail7])
	if fn == 0 {
		r, err := l.Slow(fFail7, 0)
		if err != nil {
			return err
		}
		if r := result(r); r != 0 {
			return r
		}
		return nil
	}
	var f struct {
		Frame
		a0 uintptr
	}
	f.Fn, f.Ret, f.a0 = fn, 0, 0
	if r := result(Call(1, unsafe.Pointer(&f))); r != 0 {
		return r
	}
	return nil
}

// hash is the fixture's hash function.
func hash(h, w uint64) uint64 { return (h^w)*1099511628211 + 7 }

func hashAll(words ...uint64) uint64 {
	h := uint64(1)
	for _, w := range words {
		h = hash(h, w)
	}
	return h
}

func hashBytes(h uint64, b []byte) uint64 {
	for _, c := range b {
		h = hash(h, uint64(c))
	}
	return h
}

// isErr fails the test unless err is target.
func isErr(t *testing.T, err, target error) {
	t.Helper()
	if !errors.Is(err, target) {
		t.Fatalf("error %v, want one that is %v", err, target)
	}
}
