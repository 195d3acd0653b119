package simdriver_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/puregpu/puregpu/runtime/driver"
	"github.com/puregpu/puregpu/runtime/driver/simdriver"
)

// compile compiles a source on a device.
func compile(t *testing.T, v driver.Device, src driver.Source) (driver.Code, error) {
	t.Helper()
	c, err := v.(driver.Compilers).Compiler()
	check(t, err)
	if i := c.Info(); i.Name == "" || i.Target != v.Info().Arch || !i.Transient {
		t.Errorf("%+v", i)
	}
	if src.Name == "" {
		src.Name = "k.cu"
	}
	return c.Compile(&src)
}

const manyKernels = `/* __global__ void in_comment(); */ // __global__ void in_line()
#define KERNEL(name) \
	extern "C" __global__ void name()
#include "h.h"
#  include <sub/g.h> // and more
#include "absent.h"
extern "C" __global__ void a(int x, float (*f)[3]) { const char *s = "__global__ void in_string()"; char c = '"'; int big = 1'000; }
extern "C" {
__device__ int helper(int i) { if (i) { return 1; } return 0; }
static __global__ __launch_bounds__(256, 4) void b(int x);
__global__ void __cluster_dims__(2, 1, 1) b(int x) {}
}
namespace n { __global__ [[maybe_unused]] void plain(int x) __attribute__((cold)) {} }
template <typename T, int N = (1 < 2)> __global__ void scale(T *x, int n) { x[0] = N; }
template __global__ void scale<float>(float *x, int n);
template <> __global__ void scale<int, 3>(int *x, int n) {}
const char *raw = R"x(__global__ void in_raw() " )x";
__global__ auto last() -> void {}
// sim: table=64
`

func TestCompile(t *testing.T) {
	ks := map[string]any{}
	for _, name := range []string{"a", "b", "n::plain", "scale< float >", "scale<int, 3>", "last", "of_header", "deep"} {
		ks[name] = func(*simdriver.Grid) {}
	}
	headers := map[string]string{
		"h.h":     "#include \"h.h\"\n#include <sub/g.h>\nextern \"C\" __global__ void of_header();\n",
		"sub/g.h": "extern \"C\" __global__ void deep();",
		"not.h":   "extern \"C\" __global__ void not_included();",
	}
	names := []string{"n::plain", "scale<float>", "scale<int,3>", "&table"}
	_, vs := open(t, simdriver.Config{Kernels: kernels(ks)})
	code, err := compile(t, vs[0], driver.Source{Text: manyKernels, Headers: headers, Names: names})
	check(t, err)
	if code.Log != "" || len(code.Names) != len(names) {
		t.Errorf("%+v", code)
	}
	m := must(vs[0].Load(code.Image))(t)
	for _, name := range []string{"a", "b", "of_header", "deep", code.Names["n::plain"], code.Names["scale<float>"], code.Names["scale<int,3>"]} {
		if _, _, err := vs[0].Function(m, name); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, size, err := vs[0].Global(m, code.Names["&table"]); size != 64 || err != nil {
		t.Errorf("a variable of %d bytes, %v", size, err)
	}
	// A kernel that is not extern "C", and that no expression asks for, is not found by its plain
	// name.
	_, _, err = vs[0].Function(m, "last")
	refused(t, err, simdriver.ErrNotFound, "kernel last")
	check(t, vs[0].Unload(m))
}

func TestCompileRefuses(t *testing.T) {
	_, vs := open(t, simdriver.Config{Kernels: kernels(map[string]any{"a": func(*simdriver.Grid) {}, "last": func(*simdriver.Grid) {}})})
	src := driver.Source{
		Text: manyKernels, Name: "many.cu", Headers: map[string]string{"h.h": "\n\nextern \"C\" __global__ void of_header();"},
		Names: []string{"scale<double>", "none<int>"},
	}
	_, err := compile(t, vs[0], src)
	refused(t, err, simdriver.ErrNotFound, "compile", "of_header", "Config.Kernels has a, last. If kernelgen wrote them and the source has changed, run go generate again")
	e, ok := errors.AsType[*driver.CompileError](err)
	if !ok {
		t.Fatalf("%v is not a CompileError", err)
	}
	var got []string
	for _, m := range e.Messages {
		got = append(got, m.String())
		if !m.IsError() || !strings.Contains(e.Log, m.String()) {
			t.Errorf("%v is not in the log, or no error", m)
		}
	}
	want := []string{
		"many.cu(14): error: kernel scale<double> has no Go function in Config.Kernels",
		`many.cu: error: name expression "none<int>" denotes no kernel of the source`,
		"h.h(3): error: kernel of_header has no Go function in Config.Kernels",
		"many.cu(10): error: kernel b has no Go function in Config.Kernels",
		"many.cu(13): error: kernel plain has no Go function in Config.Kernels",
	}
	if !slices.Equal(got, want) || e.Source != "many.cu" {
		t.Errorf("%s:\n%s\nwant\n%s", e.Source, strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

// TestCompileLink checks that the image of linked sources has the kernels of each source.
func TestCompileLink(t *testing.T) {
	nothing := func(*simdriver.Grid) {}
	_, vs := open(t, simdriver.Config{Kernels: kernels(map[string]any{"a": nothing, "b<int>": nothing})})
	c, err := vs[0].(driver.Compilers).Compiler()
	check(t, err)
	c, err = c.(driver.Linkers).Linker()
	check(t, err)
	src := driver.Source{Name: "a.cu", Text: "#include \"h.h\"\n", Headers: map[string]string{"h.h": "extern \"C\" __global__ void a();"},
		Link: []driver.Source{{Name: "b.cu", Text: "#include \"h.h\"\ntemplate <typename T> __global__ void b();", Names: []string{"b<int>"},
			Headers: map[string]string{"h.h": "\n"}}}}
	code, err := c.Compile(&src)
	check(t, err)
	m, err := vs[0].Load(code.Image)
	check(t, err)
	for _, name := range []string{"a", code.Names["b<int>"]} {
		if _, _, err := vs[0].Function(m, name); err != nil {
			t.Error(err)
		}
	}
	src.Link[0].Headers["h.h"] = "\nextern \"C\" __global__ void none();"
	_, err = c.Compile(&src)
	refused(t, err, simdriver.ErrNotFound, "h.h(2): error: kernel none has no Go function")
}

// TestCompileFails tests a device without a compiler, a fault, and a lost device.
func TestCompileFails(t *testing.T) {
	none := simdriver.CUDACaps()
	none.Compile = false
	_, vs := open(t, simdriver.Config{Caps: &none})
	refused(t, second(vs[0].(driver.Compilers).Compiler()), driver.ErrUnsupported, "compile")

	d, vs := open(t, simdriver.Config{})
	d.Inject(simdriver.Fault{Op: simdriver.OpCompile, Device: simdriver.AnyDevice, N: 2, Err: errTest})
	_, err := compile(t, vs[0], driver.Source{})
	check(t, err)
	refused(t, second(compile(t, vs[0], driver.Source{})), errTest, "compile")
	check(t, d.LoseDevice(0, errTest))
	refused(t, second(compile(t, vs[0], driver.Source{})), driver.ErrLost)
}

// FuzzCompile checks that Compile returns for any source, and that its images can be loaded.
func FuzzCompile(f *testing.F) {
	f.Add(manyKernels, "scale<int>")
	f.Add("__global__", "a::")
	f.Add("extern \"C\" __global__ void f(", "<")
	f.Add("R\"(", "'")
	f.Add("template<", "")
	d := simdriver.New(simdriver.Config{Kernels: kernels(map[string]any{"a": func(*simdriver.Grid) {}})})
	v, err := d.Open(0)
	if err != nil {
		f.Fatal(err)
	}
	c, err := v.(driver.Compilers).Compiler()
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, text, name string) {
		code, err := c.Compile(&driver.Source{Name: "k.cu", Text: text, Headers: map[string]string{"h.h": text}, Names: []string{name}})
		if err != nil {
			if _, ok := errors.AsType[*driver.CompileError](err); !ok {
				t.Error(err)
			}
			return
		}
		if m, err := v.Load(code.Image); err == nil {
			check(t, v.Unload(m))
		} else if !strings.Contains(text, "// sim:") {
			t.Error(fmt.Errorf("%q: %w", code.Image, err))
		}
	})
}
