package main

import (
	"errors"
	gotoken "go/token"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"golang.org/x/tools/txtar"

	"github.com/puregpu/puregpu/hiprtc"
	"github.com/puregpu/puregpu/internal/kernelobject"
	"github.com/puregpu/puregpu/nvrtc"
	"github.com/puregpu/puregpu/runtime/dl"
	"github.com/puregpu/puregpu/runtime/driver/simdriver"
)

// TestRuntimeRefuses checks that the generator refuses sources that the program could not compile
// or launch.
func TestRuntimeRefuses(t *testing.T) {
	withoutCompilers(t)
	const ptx = ".version 7.0\n.target sm_75\n.visible .entry f(.param .u64 x) {}\n"
	for name, c := range map[string]struct {
		source string
		args   string
		want   string
	}{
		"a template without instances":       {"template <class T> __global__ void f(T *x);", "", "k.cu:1: kernel f: it is a template: name each instance that the program launches, by -instance 'f<float>'. Or leave it out by -skip f"},
		"an instance of no template":         {"extern \"C\" __global__ void f(int *x);", "-instance 'g<int>'", "-instance 'g<int>': k.cu has no such template of a kernel"},
		"an instance of another namespace":   {"namespace a { template <class T> __global__ void f(T *x); }", "-instance 'f<int>'", "kernel a::f: it is a template: name each instance that the program launches, by -instance 'a::f<float>'"},
		"an instance that is not closed":     {"template <class T> __global__ void f(T *x);", "-instance 'f<int'", "-instance 'f<int': it does not end with the > of its arguments"},
		"an instance with a call":            {"template <class T> __global__ void f(T *x);", "-instance 'f<int>(x)'", "it does not end with the > of its arguments"},
		"an instance without an argument":    {"template <class T, class U> __global__ void f(T *x);", "-instance 'f<int>'", "there is no argument for the parameter U of the template"},
		"an instance with too many":          {"template <class T> __global__ void f(T *x);", "-instance 'f<int, A<1, 2>>'", "2 arguments, and the template has 1 parameters"},
		"an instance twice":                  {"template <class T> __global__ void f(T *x);", "-instance 'f<int>' -instance 'f<int>'", "it is given twice"},
		"instances of one name in Go":        {"template <class T> __global__ void f(T x);", "-instance 'f<int>' -instance 'f<int*>'", "kernel f<int*> and kernel f<int> would both be FInt in Go: give kernel f<int*> another name by -rename 'f<int*>=Name'"},
		"an instance of an unknown type":     {"template <class T> __global__ void f(T *x);", "-instance 'f<Pair>'", "kernel f: parameter 0, Pair *x: the Go type for Pair is unknown: give it by -type 'Pair=GoType'"},
		"a template of any number":           {"template <class... T> __global__ void f(T... x);", "-instance 'f<int>'", "it is a template with any number of parameters"},
		"a namespace without a name":         {"namespace { __global__ void f(int *x); }", "", "kernel (unnamed)::f: it is in a namespace without a name, so the program cannot name it: move it out"},
		"branches":                           {"__global__ void f(\n#ifdef A\nint x\n#else\nfloat x\n#endif\n);", "", "parts of its declaration are in branches of #if"},
		"a reference":                        {"__global__ void f(int &x);", "", "it is a reference"},
		"a variable of an unknown type":      {"__global__ void f(int *x); __device__ Pair v;", "", "k.cu: variable v: the Go type for Pair is unknown"},
		"nothing":                            {"__device__ int v;", "", "k.cu: no kernel is left"},
		"no source":                          {"", "-name k k.ptx", "-runtime: give the source for the program to compile"},
		"Triton":                             {"", "k.json", "-runtime: Triton compiles its kernels itself: leave out -runtime"},
		"an instance and code":               {"template <class T> __global__ void f(T *x);", "-instance 'f<int>' k.cu k.ptx", "-instance needs kernels that are only compiled at run time"},
		"an instance and an architecture":    {"template <class T> __global__ void f(T *x);", "-instance 'f<int>' -arch sm_80", "-instance needs kernels that are only compiled at run time"},
		"code without the kernel's own name": {"__global__ void f(int *x);", "k.cu k.ptx", `it is not extern "C", and has a mangled name: write extern "C" before __global__. Or give -runtime, and no code`},
		"an architecture and no compiler":    {"extern \"C\" __global__ void f(int *x);", "-arch sm_80", "k.cu: no compiler: "},
		"two files of one name":              {"#include \"a/x.h\"\n#include \"b/y.h\"\n__global__ void f(int *x);", "", `k.cu: both a/z.h and b/z.h are included as "z.h", and a name can stand for one file only at run time: rename one of them`},
		"a header above":                     {"#include \"../up.h\"\n__global__ void f(int *x);", "", "up.h is neither in the folder of the first file nor below it, so Go cannot embed it"},
		"a name of the package":              {"__global__ void f(int *x);", "-rename f=CompileK", "kernel f and the function that compiles would both be CompileK in Go"},
	} {
		dir := filepath.Join(t.TempDir(), "k")
		for file, text := range map[string]string{
			"k.cu": c.source + "\n", "k.ptx": ptx, "k.json": "{}", "../up.h": "", "a/x.h": "#include \"z.h\"\n", "a/z.h": "", "b/y.h": "#include \"z.h\"\n", "b/z.h": "",
		} {
			writeFile(t, filepath.Join(dir, file), []byte(text))
		}
		args := append([]string{"-pkg", "k", "-runtime"}, words(c.args)...)
		if !strings.Contains(c.args, " k.") && !strings.HasPrefix(c.args, "k.") {
			args = append(args, "k.cu")
		}
		if err := run(dir, args, t.Output()); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: error %v\nwant %q", name, err, c.want)
		}
	}
}

// TestInstances checks that an instance gets the arguments for the template's parameters.
func TestInstances(t *testing.T) {
	for name, c := range map[string]struct{ source, instance, want string }{
		"a type":                   {"template <typename T> __global__ void f(int n, T a, const T *x) {}", "f<float>", "int, float, float*"},
		"a type of several words":  {"template <typename T> __global__ void f(T a, T *x) {}", "f<unsigned long long>", "unsigned long long, unsigned long long*"},
		"a pointer":                {"template <typename T> __global__ void f(T a, const T *x) {}", "f<float *>", "float*, float**"},
		"a number":                 {"template <class T, int N> __global__ void f(T x, T y[N]) {}", "f<int, (3 > 2)>", "int, int*"},
		"a default":                {"template <class T, class U = A<T>, class V = U *> __global__ void f(T x, U y, V z) {}", "f<int>", "int, A < int >, A < int >*"},
		"no arguments":             {"template <class T = half> __global__ void f(T x) {}", "f<>", "half"},
		"no name":                  {"template <class, typename = void, int = 3> __global__ void f(float x) {}", "f<int>", "float"},
		"a template as a type":     {"template <class T> __global__ void f(T x) {}", "f<A<B<int>>>", "A < B < int > >"},
		"attributes and namespace": {"namespace a { namespace b::c { template <class T> __launch_bounds__(3) static __global__ void f(T x) {} } }", "a::b::c::f<int>", "int"},
	} {
		s := parseSource(c.source)
		if len(s.kernels) != 1 || s.kernels[0].template == nil {
			t.Errorf("%s: no template: %s", name, declared(s))
			continue
		}
		k, err := s.kernels[0].instance(c.instance)
		if err != nil || k.text() != c.want || !strings.HasPrefix(c.instance, s.kernels[0].full()+"<") {
			t.Errorf("%s: %v, %v, want %s", name, k, err, c.want)
		}
	}
}

// TestRealRuntime checks that NVRTC and hipRTC, which need no GPU, compile the source of a golden
// case to code with the same kernels, variables and sizes of parameters.
func TestRealRuntime(t *testing.T) {
	skip := func(t *testing.T, variable string, err error) {
		t.Helper()
		if os.Getenv(variable) == "" && errors.Is(err, dl.ErrNotFound) || errors.Is(err, dl.ErrUnsupported) {
			t.Skipf("no compiler: %v", err)
		} else if err != nil {
			t.Fatal(err)
		}
	}
	t.Run("NVRTC", func(t *testing.T) {
		lib, err := nvrtc.Open(nvrtc.Options{})
		skip(t, "PUREGPU_NVRTC_LIBRARY", err)
		realRuntime(t, lib, "--gpu-architecture=compute_75", "scale<float>", lib.GetPTXSize, lib.GetPTX)
	})
	t.Run("hipRTC", func(t *testing.T) {
		lib, err := hiprtc.Open(hiprtc.Options{})
		skip(t, "PUREGPU_HIPRTC_LIBRARY", err)
		// hipRTC 5.2 finds an instance only if all its arguments are written out.
		realRuntime(t, lib, "--offload-arch=gfx90a", "scale<float,4>", lib.GetCodeSize, lib.GetCode)
	})
}

// An rtc is a library of package nvrtc or hiprtc. P is the type of its programs.
type rtc[P any] interface {
	CreateProgram(src, name string, headers, includeNames []*byte) (P, error)
	DestroyProgram(*P) error
	AddNameExpression(p P, expression string) error
	CompileProgram(p P, options []*byte) error
	GetProgramLogSize(P) (uint64, error)
	GetProgramLog(P, []byte) error
	GetLoweredName(p P, expression string) (string, error)
}

func realRuntime[P any](t *testing.T, lib rtc[P], arch, float string, size func(P) (uint64, error), get func(P, []byte) error) {
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	ar, err := txtar.ParseFile("testdata/runtime.txtar")
	must(err)
	dir := t.TempDir()
	for _, f := range ar.Files {
		writeFile(t, filepath.Join(dir, f.Name), f.Data)
	}
	g := &generator{
		dir: dir, types: map[string]goType{"Pair": {"[2]float32", 8}}, renames: map[string]string{"math::apply<Pair, Pair *>": "ApplyPairs"}, used: map[string]bool{},
		options: []string{"--std=c++17", "-DTILE=16"}, instances: []string{float, "scale<unsigned long long,4>", "math::apply<Pair, Pair *>"},
	}
	text := read(t, filepath.Join(dir, "kernels.cu"))
	g.src = parseFiles(text, "kernels.cu", g.include)
	m := &module{pkg: "k", name: "K", from: "kernels.cu"}
	must(g.addUncompiled(m, "kernels.cu", g.src))
	must(g.addText(m, dir, "kernels.cu"))

	// A program would give these two headers in compile.Options.
	texts, names := []string{"#ifndef __HIP__\nstruct half { unsigned short x; };\n#endif\n", "// absent\n"}, []string{"cuda_fp16.h", "absent.h"}
	for _, h := range m.text.headers {
		texts, names = append(texts, read(t, filepath.Join(dir, h.file))), append(names, h.name)
	}
	pointers := func(all ...string) []*byte {
		p, err := dl.CStrings(all...)
		must(err)
		return p
	}
	p, err := lib.CreateProgram(text+"\n"+string(simdriver.Image("table=16")), "kernels.cu", pointers(texts...), pointers(names...))
	must(err)
	defer lib.DestroyProgram(&p)
	for _, name := range m.text.names {
		must(lib.AddNameExpression(p, name))
	}
	if err := lib.CompileProgram(p, pointers(append([]string{arch}, m.text.options...)...)); err != nil {
		n, _ := lib.GetProgramLogSize(p)
		log := make([]byte, n)
		lib.GetProgramLog(p, log)
		t.Fatalf("%v\n%s", err, log)
	}
	n, err := size(p)
	must(err)
	image := make([]byte, n)
	must(get(p, image))
	codes, err := kernelobject.Read(image)
	must(err)
	for _, k := range m.kernels {
		name := k.name
		if !k.c {
			if name, err = lib.GetLoweredName(p, k.name); err != nil {
				t.Errorf("kernel %s: %v", k.name, err)
				continue
			}
		}
		var want []int
		for _, p := range k.params {
			want = append(want, p.size)
		}
		if got := codes[0].Kernel(name); got == nil || !slices.Equal(got.Sizes(), want) {
			t.Errorf("kernel %s, %s in the code: %+v, want parameters of %v", k.name, name, got, want)
		}
	}
	table := slices.IndexFunc(codes[0].Variables, func(v kernelobject.Variable) bool { return v.Name == "table" && v.Size == 16 })
	if table < 0 {
		t.Errorf("no variable table: %+v", codes[0].Variables)
	}
}

// FuzzRuntime checks that any source and instance give an error or a Go file that compiles.
func FuzzRuntime(f *testing.F) {
	f.Add("template <typename T, int N = (3 > 2)> __global__ void f(T a, const T *x) {} namespace a { __global__ void g(int n) {} }", "f<float>")
	f.Add("extern \"C\" template <class... T = A<B>> __global__ void f(T<T> \xff, T ...) {} const __device__ int v[], *w;", "f<\xfe, (, [>>")
	f.Fuzz(func(t *testing.T, text, instance string) {
		g := &generator{used: map[string]bool{}, instances: []string{instance}}
		m := &module{pkg: "k", name: "K", from: "k.cu"}
		if g.addUncompiled(m, "k.cu", parseSource(text)) != nil || g.addText(m, "", "k.cu") != nil || m.check() != nil {
			return
		}
		out, err := m.render()
		if err != nil {
			t.Fatalf("%.2000s", err)
		}
		if bad, undefined, err := checkTypes(gotoken.NewFileSet(), nil, "zk.go", out, m.ownTypes()); bad != "" || undefined != nil || err != nil {
			t.Fatalf("%s, undefined %q, %v\n%s", bad, undefined, err, out)
		}
	})
}
