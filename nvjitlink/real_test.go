//go:build linux && (amd64 || arm64) && !nogpu

package nvjitlink

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/puregpu/puregpu/nvrtc"
	"github.com/puregpu/puregpu/runtime/dl"
)

// openReal opens this machine's nvJitLink, which needs no GPU.
func openReal(t *testing.T) *Library {
	t.Helper()
	l, err := Open(Options{})
	if os.Getenv(spec.Env) == "" && (errors.Is(err, dl.ErrNotFound) || errors.Is(err, dl.ErrTooOld)) {
		t.Skipf("no nvJitLink to link with: %v", err)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("nvJitLink %s, %s", FormatVersion(l.Version()), l.Path())
	return l
}

func newLinker(t *testing.T, l *Library, options ...string) Handle {
	t.Helper()
	texts, err := Texts(options...)
	if err != nil {
		t.Fatal(err)
	}
	runtime.LockOSThread() // all calls for a linker come from one thread
	h, err := l.Create(texts)
	if err != nil {
		t.Fatalf("options %q: %v", options, err)
	}
	t.Cleanup(func() {
		defer runtime.UnlockOSThread()
		if err := l.Destroy(&h); err != nil || h != 0 {
			t.Errorf("destroying the linker leaves %#x: %v", h, err)
		}
	})
	return h
}

// output fetches the output of a pair of functions, one for the size and one for the bytes.
func output(t *testing.T, h Handle, size func(Handle) (uint64, error), get func(Handle, []byte) error) []byte {
	t.Helper()
	n, err := size(h)
	if err != nil {
		t.Fatal(err)
	}
	b := make([]byte, n)
	if n > 0 {
		if err := get(h, b); err != nil {
			t.Fatal(err)
		}
	}
	return b
}

func errorLog(t *testing.T, l *Library, h Handle) string {
	return strings.TrimRight(string(output(t, h, l.GetErrorLogSize, l.GetErrorLog)), "\x00\n")
}

func TestRealSymbols(t *testing.T) {
	l := openReal(t)
	major, minor, err := l.GetVersion()
	if err != nil || dl.Version(major*1000+minor*10) != l.Version() {
		t.Errorf("version %d.%d, %v; Open found %d", major, minor, err, l.Version())
	}
	if missing := l.Missing(); len(missing) > 0 {
		t.Errorf("%s lacks %v", FormatVersion(l.Version()), missing)
	}
}

// sources are two files. A function in one calls a function in the other.
var sources = map[string]string{
	"factor.cu": `__device__ float factor(int i) { return 2.0f * i; }`,
	"scale.cu": `extern __device__ float factor(int i);
extern "C" __global__ void scale(float *x) { x[threadIdx.x] *= factor(threadIdx.x); }`,
}

// ptx has the sources as PTX, for machines without a compiler.
var ptx = map[string]string{
	"factor.cu": `.version 8.0
.target sm_75
.address_size 64
.visible .func (.param .b32 out) _Z6factori(.param .b32 i) {
	.reg .f32 %f; .reg .b32 %r;
	ld.param.u32 %r, [i];
	cvt.rn.f32.s32 %f, %r;
	st.param.f32 [out], %f;
	ret;
}
`,
	"scale.cu": `.version 8.0
.target sm_75
.address_size 64
.extern .func (.param .b32 out) _Z6factori(.param .b32 i);
.visible .entry scale(.param .u64 x) {
	.reg .f32 %f; .reg .b32 %r; .reg .b64 %p;
	ld.param.u64 %p, [x];
	mov.u32 %r, %tid.x;
	{
		.param .b32 i; .param .b32 o;
		st.param.b32 [i], %r;
		call.uni (o), _Z6factori, (i);
		ld.param.f32 %f, [o];
	}
	st.global.f32 [%p], %f;
	ret;
}
`,
}

// compile makes PTX, or LTO-IR if lto is set, from a source with this machine's NVRTC. Without
// NVRTC it returns the PTX written by hand, or skips the test if lto is set.
func compile(t *testing.T, name, arch string, lto bool) []byte {
	t.Helper()
	l, err := nvrtc.Open(nvrtc.Options{})
	if os.Getenv("PUREGPU_NVRTC_LIBRARY") == "" && errors.Is(err, dl.ErrNotFound) {
		if lto {
			t.Skipf("no NVRTC to make LTO-IR with: %v", err)
		}
		t.Log("no NVRTC: PTX written by hand")
		return []byte(ptx[name])
	}
	if err != nil {
		t.Fatal(err)
	}
	p, err := l.CreateProgram(sources[name], name, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer l.DestroyProgram(&p)
	list := []string{"--gpu-architecture=compute_" + arch, "--relocatable-device-code=true"}
	size, get := l.GetPTXSize, l.GetPTX
	if lto {
		list, size, get = append(list[:1], "-dlto"), l.GetLTOIRSize, l.GetLTOIR
	}
	options, err := nvrtc.Texts(list...)
	if err != nil {
		t.Fatal(err)
	}
	if err := l.CompileProgram(p, options); err != nil {
		t.Fatal(err)
	}
	n, err := size(p)
	if err != nil {
		t.Fatal(err)
	}
	out := make([]byte, n)
	if err := get(p, out); err != nil {
		t.Fatal(err)
	}
	t.Logf("NVRTC %s made %d bytes of %s", nvrtc.FormatVersion(l.Version()), n, name)
	return out
}

// hasKernel reports an error if machine code is not an ELF file with the kernel. Package debug/elf
// cannot read NVIDIA's ELF files, because their version is the toolkit's.
func hasKernel(t *testing.T, cubin []byte, kernel string) {
	t.Helper()
	if !bytes.HasPrefix(cubin, []byte("\x7fELF")) || !bytes.Contains(cubin, []byte("\x00.text."+kernel+"\x00")) {
		t.Errorf("%d bytes of machine code are no ELF file with the kernel %s", len(cubin), kernel)
	}
}

func TestRealLink(t *testing.T) {
	l := openReal(t)
	for _, arch := range []string{"75", "80", "90"} {
		h := newLinker(t, l, "-arch=sm_"+arch, "-verbose")
		for name := range sources {
			if err := l.AddData(h, InputPTX, compile(t, name, arch, false), name); err != nil {
				t.Fatalf("sm_%s: %s: %v\n%s", arch, name, err, errorLog(t, l, h))
			}
		}
		if err := l.Complete(h); err != nil {
			t.Fatalf("sm_%s: %v\n%s", arch, err, errorLog(t, l, h))
		}
		hasKernel(t, output(t, h, l.GetLinkedCubinSize, l.GetLinkedCubin), "scale")
		if info := output(t, h, l.GetInfoLogSize, l.GetInfoLog); len(info) == 0 {
			t.Errorf("sm_%s: -verbose says nothing", arch)
		}
	}
}

// TestRealLinkTimeOptimization links LTO-IR to PTX and to machine code. The linker must inline the
// other file's function.
func TestRealLinkTimeOptimization(t *testing.T) {
	l := openReal(t)
	add := func(h Handle) {
		t.Helper()
		for name := range sources {
			if err := l.AddData(h, InputLTOIR, compile(t, name, "80", true), name); err != nil {
				t.Fatalf("%s: %v\n%s", name, err, errorLog(t, l, h))
			}
		}
		if err := l.Complete(h); err != nil {
			t.Fatalf("%v\n%s", err, errorLog(t, l, h))
		}
	}
	h := newLinker(t, l, "-arch=sm_80", "-lto")
	add(h)
	hasKernel(t, output(t, h, l.GetLinkedCubinSize, l.GetLinkedCubin), "scale")
	h = newLinker(t, l, "-arch=sm_80", "-lto", "-ptx")
	add(h)
	text := string(output(t, h, l.GetLinkedPtxSize, l.GetLinkedPtx))
	if !strings.Contains(text, ".entry scale(") || strings.Contains(text, "call") {
		t.Errorf("the linked PTX has no kernel, or still calls a function:\n%.2000s", text)
	}
}

func TestRealMessages(t *testing.T) {
	l := openReal(t)
	for _, tt := range []struct {
		options []string
		want    Result
	}{
		{nil, ErrorMissingArch},
		{[]string{"-arch=sm_80", "-no-such-option"}, ErrorUnrecognizedOption},
	} {
		texts, err := Texts(tt.options...)
		if err != nil {
			t.Fatal(err)
		}
		if h, err := l.Create(texts); !errors.Is(err, tt.want) {
			t.Errorf("options %q give %v, want %v", tt.options, err, tt.want)
			err = l.Destroy(&h)
			t.Log(err)
		}
	}
	// Linking fails if no input defines a called function. nvJitLink 12.4 names the function only
	// on standard error.
	h := newLinker(t, l, "-arch=sm_80")
	if err := l.AddData(h, InputPTX, compile(t, "scale.cu", "80", false), "scale.cu"); err != nil {
		t.Fatal(err)
	}
	err := l.Complete(h)
	if text := errorLog(t, l, h); !errors.Is(err, ErrorInternal) || text == "" {
		t.Errorf("linking without what is called: %v\n%s", err, text)
	}
	// Invalid PTX is an error with a log.
	h = newLinker(t, l, "-arch=sm_80")
	err = l.AddData(h, InputPTX, []byte(".version 8.0\n.target sm_80\nnonsense\n"), "broken.ptx")
	if err == nil {
		err = l.Complete(h)
	}
	if text := errorLog(t, l, h); !errors.Is(err, ErrorPTXCompile) || !strings.Contains(text, "broken.ptx") {
		t.Errorf("broken PTX: %v\n%s", err, text)
	}
	// A missing file is an error, and a file can be added.
	file := filepath.Join(t.TempDir(), "scale.ptx")
	if err := l.AddFile(h, InputPTX, file); err == nil {
		t.Error("a file that is not there is added")
	}
	if err := os.WriteFile(file, compile(t, "factor.cu", "80", false), 0o644); err != nil {
		t.Fatal(err)
	}
	h = newLinker(t, l, "-arch=sm_80")
	if err := errors.Join(l.AddFile(h, InputPTX, file), l.Complete(h)); err != nil {
		t.Errorf("a file: %v\n%s", err, errorLog(t, l, h))
	}
}
