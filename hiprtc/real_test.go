//go:build linux && (amd64 || arm64) && !nogpu

package hiprtc

import (
	"bytes"
	"errors"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/puregpu/puregpu/runtime/dl"
)

// openReal opens this machine's hipRTC, which needs no GPU. In HIP 5 hipRTC is part of libamdhip64,
// which tests open only if an environment variable asks for it.
func openReal(t *testing.T) *Library {
	t.Helper()
	if os.Getenv(spec.Env) == "" && os.Getenv("PUREGPU_TEST_REAL_HIP") != "1" {
		t.Skipf("neither %s nor PUREGPU_TEST_REAL_HIP=1 asks for it", spec.Env)
	}
	l, err := Open(Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("hipRTC %s, %s", FormatVersion(l.Version()), l.Path())
	return l
}

func newProgram(t *testing.T, l *Library, source, file string, headers, names []*byte) Program {
	t.Helper()
	p, err := l.CreateProgram(source, file, headers, names)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := l.DestroyProgram(&p); err != nil {
			t.Errorf("destroying the program: %v", err)
		}
	})
	return p
}

func texts(t *testing.T, s ...string) []*byte {
	t.Helper()
	out, err := Texts(s...)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func log(t *testing.T, l *Library, p Program) string {
	t.Helper()
	n, err := l.GetProgramLogSize(p)
	if err != nil || n == 0 {
		return ""
	}
	b := make([]byte, n)
	if err := l.GetProgramLog(p, b); err != nil {
		t.Fatal(err)
	}
	return strings.TrimRight(string(b), "\x00")
}

func TestRealSymbols(t *testing.T) {
	l := openReal(t)
	major, minor, err := l.GetVersion()
	t.Logf("the library tells %d.%d, %v", major, minor, err)
	lacks := l.Missing()
	for _, s := range symbols {
		missing := slices.ContainsFunc(lacks, func(m dl.MissingSymbol) bool { return m.Name == s.Name })
		if missing && s.Since <= l.Version() {
			t.Errorf("%s lacks %s, since %s", FormatVersion(l.Version()), s.Name, FormatVersion(s.Since))
		}
		if !missing && s.Since > l.Version() && l.Version() != 0 {
			t.Errorf("%s has %s, since %s", FormatVersion(l.Version()), s.Name, FormatVersion(s.Since))
		}
	}
	for r := Success; r <= ErrorInternalError; r++ {
		if got, err := l.GetErrorString(r); err != nil || got != r.Name() {
			t.Errorf("the library calls %d %q, %v; want %q", r, got, err, r.Name())
		}
	}
}

const scale = `#include "factor.h"
template <typename T> __global__ void scale(T *x) { x[threadIdx.x] *= FACTOR; }
extern "C" __global__ void plain(float *x) { x[threadIdx.x] += FACTOR; }
`

func TestRealCompile(t *testing.T) {
	l := openReal(t)
	for _, arch := range []string{"gfx906", "gfx90a", "gfx1030"} {
		p := newProgram(t, l, scale, "scale.hip", texts(t, "#define FACTOR 3\n"), texts(t, "factor.h"))
		if err := l.AddNameExpression(p, "scale<double>"); err != nil {
			t.Fatal(err)
		}
		err := l.CompileProgram(p, texts(t, "--offload-arch="+arch))
		if err != nil {
			t.Fatalf("%s: %v\n%s", arch, err, log(t, l, p))
		}
		lowered, err := l.GetLoweredName(p, "scale<double>")
		if err != nil {
			t.Fatal(err)
		}
		n, err := l.GetCodeSize(p)
		if err != nil {
			t.Fatal(err)
		}
		code := make([]byte, n)
		if err := l.GetCode(p, code); err != nil {
			t.Fatal(err)
		}
		for _, want := range []string{"plain", lowered} {
			if !bytes.Contains(code, []byte("\x00"+want+"\x00")) && !bytes.Contains(code, []byte(want+".kd\x00")) {
				t.Errorf("%s: %d bytes of code have no kernel %q", arch, n, want)
			}
		}
	}
}

func TestRealMessages(t *testing.T) {
	l := openReal(t)
	p := newProgram(t, l, "extern \"C\" __global__ void f(int *x) {\n\t*x = nothing;\n}\n", "broken.hip", nil, nil)
	if err := l.CompileProgram(p, texts(t, "--offload-arch=gfx90a")); !errors.Is(err, ErrorCompilation) {
		t.Fatalf("compiling gives %v, want %v\n%s", err, ErrorCompilation, log(t, l, p))
	}
	text := log(t, l, p)
	for _, want := range []string{":2:", "'nothing'", "*x = nothing;", "^"} {
		if !strings.Contains(text, want) {
			t.Errorf("the log has no %q:\n%s", want, text)
		}
	}
}
