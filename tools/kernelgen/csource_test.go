package main

import (
	"fmt"
	"strings"
	"testing"
)

// declared lists the kernels and variables found in a source, one a line.
func declared(s *source) string {
	var b strings.Builder
	for _, k := range s.kernels {
		fmt.Fprintf(&b, "%s(%s)", k.name, k.text())
		if k.flaw != "" {
			b.WriteString(" flawed")
		}
		b.WriteString("\n")
	}
	for _, v := range s.variables {
		fmt.Fprintf(&b, "%s %s%s %d", v.name, v.typ, strings.Repeat("*", v.stars), v.count)
		if v.flaw != "" {
			b.WriteString(" flawed")
		}
		b.WriteString("\n")
	}
	for _, p := range s.problems {
		b.WriteString("problem " + p + "\n")
	}
	return b.String()
}

// TestDeclarations checks which declarations are read from text of all kinds. The same two
// declarations follow each text, which must not hide them.
func TestDeclarations(t *testing.T) {
	const after = "\n__constant__ float last[4];\nextern \"C\" __global__ void end(float *x) {}\n"
	const found, variable = "end(float*)\n", "last float 4\n"
	k := func(body string) string { return "extern \"C\" __global__ void k(int *x, int *y) {" + body + "}" }
	for name, c := range map[string]struct {
		source          string
		kernels, others string // declarations in the text itself
	}{
		"an index of an index":           {k("x[y[threadIdx.x]] = 1; x[y[x[0]]]++;"), "k(int*, int*)\n", ""},
		"an index with spaces":           {k("x[y[0] ] = 1; x [ y [ 0 ] ] = 2;"), "k(int*, int*)\n", ""},
		"a lambda in an index":           {k("x[([=](int i) { return i; })(y[0])] = 1;"), "k(int*, int*)\n", ""},
		"a lambda in a call":             {k("f([] { return 1; }, [&](int i) mutable -> int { return x[y[i]]; });"), "k(int*, int*)\n", ""},
		"a lambda in a variable":         {"__device__ auto f = [] __device__ (int i) { return i; };", "", "f auto 1\n"},
		"attributes":                     {"[[nodiscard]] [[gnu::aligned(16), x(\"]]\")]] int f(int); extern \"C\" [[deprecated(\"[[\")]] __global__ void k([[maybe_unused]] int *x) {}", "k(int*)\n", ""},
		"attributes with spaces":         {"extern \"C\" __global__ void k([ [maybe_unused] ] int *x) { x[0] = 1; }", "k(int*)\n", ""},
		"an attribute before all":        {"[[maybe_unused]] extern \"C\" __global__ void k(int *x) {}", "k(int*)\n", ""},
		"GNU attributes":                 {"extern \"C\" __attribute__((used)) __global__ void __attribute__((amdgpu_flat_work_group_size(1, 256))) k(int *__restrict__ x) {}", "k(int*)\n", ""},
		"launch bounds":                  {"extern \"C\" __global__ void __launch_bounds__(f(16)[2] > 3 ? 1 : 2, 2) k(int *x) {}", "k(int*)\n", ""},
		"alignas":                        {"__constant__ alignas(16) float a[2] = {1, 2}; __device__ __align__(16) struct P { int x[2]; } p;", "", "a float 2\np P 1\n"},
		"an array with an index as size": {"__device__ int a[sizes[1]], b[0x10], c[3][2u];", "", "a int 0\nb int 16\nc int 6\n"},
		"a raw text":                     {"const char *t = R\"x(\"{ )\" [[ )x\"; " + k(""), "k(int*, int*)\n", ""},
		"raw texts with prefixes":        {"auto a = u8R\"({)\", b = LR\"([[)\", c = uR\"(()\", d = UR\"(\")\";" + k(""), "k(int*, int*)\n", ""},
		"texts and characters":           {k("f(\"}\\\"}\", '}', '\\'', L'{', u8\"{\"_x, 1'000'000, 0x1'F);"), "k(int*, int*)\n", ""},
		"a text over lines":              {"const char *t = \"{ \\\n { \\\r\n {\"; " + k(""), "k(int*, int*)\n", ""},
		"spliced words":                  {"extern \"C\" __glo\\\nbal__ void \\\r\n k(int *x) \\\n {}", "k(int*)\n", ""},
		"a spliced comment":              {"// a comment \\\n that goes on {\n" + k(""), "k(int*, int*)\n", ""},
		"digraphs":                       {"extern \"C\" __global__ void k(int x<::>) <% x<:y<:0:>:> = 1; %>", "k(int*)\n", ""},
		"a digraph that is none":         {"struct S : A<::B> {}; " + k(""), "k(int*, int*)\n", ""},
		"comments inside":                {"extern /* { */ \"C\" __global__ // (\n void k(int /* , */ *x /*)*/) { /* } */ }", "k(int*)\n", ""},
		"a comment in a directive":       {"#define X /* {\n { */ 1\n" + k(""), "k(int*, int*)\n", ""},
		"a comment's end in a directive": {"#define X \"/*\" // /*\n" + k(""), "k(int*, int*)\n", ""},
		"a macro over lines":             {"#define X(a) { \\\n [[ \\\r\n (\n%:define Y {\n" + k("X(1)"), "k(int*, int*)\n", ""},
		"left out":                       {"#if 0\n extern \"C\" { it's not \"C {\n#else\n" + k("") + "\n#endif\n", "k(int*, int*)\n", ""},
		"left out, nested":               {"#if 0\n#if 1\n{\n#else\n{\n#endif\n#elif 1\n" + k("") + "\n#else\n {\n#endif\n", "k(int*, int*)\n", ""},
		"C++ or C":                       {"#ifdef __cplusplus\nextern \"C\"\n#else\n{\n#endif\n__global__ void k(int *x) {}", "k(int*)\n", ""},
		"C++ or C, a block":              {"#if defined(__cplusplus)\nextern \"C\" {\n#endif\n__global__ void k(int *x) {}\n#if defined __cplusplus\n}\n#endif\n", "k(int*)\n", ""},
		"brackets in branches":           {k("\n#ifdef A\n if (x) {\n#elif defined(B)\n if (y) {\n#else\n {\n#endif\n }"), "k(int*, int*)\n", ""},
		"a body in branches":             {"#ifdef A\nextern \"C\" __global__ void k(half *x) {\n#else\nextern \"C\" __global__ void k(float *x) {\n#endif\n}", "k(half*)\n", "problem "},
		"heads in branches":              {"#ifdef A\nextern \"C\" __global__ void k(half *x)\n#else\nextern \"C\" __global__ void k(float *x)\n#endif\n{}", "k(half*) flawed\n", ""},
		"a parameter in branches":        {"extern \"C\" __global__ void k(\n#ifdef A\ndouble *a\n#else\nfloat *b\n#endif\n) {}", "k(double float**) flawed\n", ""},
		"an attribute in a branch":       {"extern \"C\" __global__ void\n#ifdef A\n__launch_bounds__(3)\n#endif\nk(int *x) {}", "k(int*)\n", ""},
		"a type in branches":             {"__device__\n#ifdef A\nfloat\n#else\ndouble\n#endif\nv;", "", "v float double 1 flawed\n"},
		"variables in branches":          {"#ifdef A\n__device__ float v;\n#else\n__device__ double v;\n#endif\n", "", "v float 1 flawed\n"},
		"variables declared twice":       {"extern __constant__ float v[];\n__constant__ float v[8];\n", "", "v float 8\n"},
		"a stray brace":                  {"}", "", ""},
		"blocks of C++":                  {"extern \"C++\" { template <class T> struct A<B<T>> {}; extern \"C\" { __global__ void k(int *x) {} } }", "k(int*)\n", ""},
		"namespaces":                     {"inline namespace a::b { namespace { struct S {}; } } namespace [[deprecated]] c {} namespace d = c; " + k(""), "k(int*, int*)\n", ""},
		"templates":                      {"template <typename T, typename U = A<B<T>>> __device__ T f(T x) { return x; } template <int N = (3 > 2)> struct S {}; " + k("f<A<B<int>>>(x);"), "k(int*, int*)\n", ""},
		"a variable of a template":       {"__device__ cuda::atomic<A<int, 2>, B<3>> a, b;", "", "a cuda::atomic < A < int , 2 > , B < 3 > > 1\nb cuda::atomic < A < int , 2 > , B < 3 > > 1\n"},
		"operators":                      {"__device__ V operator<(V a, V b) { return a; } V &V::operator=(const V &v) { return *this; } bool operator()(int) const;", "", ""},
		"initial values":                 {"__constant__ float a = b < c, d[2] = {f(1), g[h[2]]}, *e{nullptr}; __device__ int n = c() ? T{1}.x : T{2}.x;", "", "a float 1\nd float 2\ne float* 1\nn int 1\n"},
		"a struct of its own":            {"__constant__ struct P { int x[2]; } p, *q; __device__ enum class E : int { A } e;", "", "p P 1\nq P* 1\ne E 1\n"},
		"a struct without a name":        {"__constant__ struct { int x; } p;", "", "p  1 flawed\n"},
		"classes":                        {"struct S { __device__ int operator[](int i) const { return x[y[i]]; } int x[2]; }; S::S() : a(1) {}", "", ""},
		"no end":                         {"", "", ""},
	} {
		s := parseSource(c.source + after)
		want := c.kernels + found + c.others + variable
		if strings.HasPrefix(c.others, "problem") {
			want = c.kernels + found + variable + c.others
		}
		if got := declared(s); got != want && !(strings.HasSuffix(want, "problem ") && strings.HasPrefix(got, want)) {
			t.Errorf("%s: %s\ngot\n%swant\n%s", name, c.source, got, want)
		}
	}
}
