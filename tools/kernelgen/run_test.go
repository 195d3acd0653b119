package main

import (
	"bytes"
	"errors"
	gotoken "go/token"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"golang.org/x/tools/txtar"

	"github.com/puregpu/puregpu/internal/testlib"
	"github.com/puregpu/puregpu/nvrtc"
	"github.com/puregpu/puregpu/runtime/dl"
)

// TestBuild checks that the output of golden cases builds and passes vet, and that twins run.
func TestBuild(t *testing.T) {
	if testing.Short() {
		t.Skip("builds a module")
	}
	if _, err := exec.LookPath("go"); err != nil {
		t.Skip("no go command")
	}
	withoutCompilers(t)
	root, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	for _, name := range []string{"saxpy", "types", "fatbin", "triton", "runtime", "both", "floats"} {
		ar, err := txtar.ParseFile("testdata/" + name + ".txtar")
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range ar.Files {
			if !strings.HasPrefix(f.Name, "want/") {
				writeFile(t, filepath.Join(dir, name, f.Name), f.Data)
			}
		}
		for line := range strings.Lines(string(ar.Comment)) {
			if args, ok := strings.CutPrefix(strings.TrimSpace(line), "kernelgen "); ok {
				if err := run(filepath.Join(dir, name), words(args), t.Output()); err != nil {
					t.Fatal(err)
				}
			}
		}
	}
	mod, sum := read(t, filepath.Join(root, "go.mod")), []byte(read(t, filepath.Join(root, "go.sum")))
	const path = "github.com/puregpu/puregpu"
	_, rest, _ := strings.Cut(mod, "\n")
	writeFile(t, filepath.Join(dir, "go.mod"), []byte("module example.com/built\n"+rest+"\nrequire "+path+" v0.0.0\n\nreplace "+path+" => "+root+"\n"))
	writeFile(t, filepath.Join(dir, "go.sum"), sum)
	for _, name := range []string{"saxpy", "types", "wrong", "triton", "runtime", "both", "floats"} {
		text := []byte(read(t, filepath.Join("testdata", "built", name+".txt")))
		file := name + "_test.go"
		if name == "types" {
			file = "particle.go"
		}
		writeFile(t, filepath.Join(dir, strings.Replace(name, "wrong", "saxpy", 1), file), text)
	}
	command := func(args ...string) (string, error) {
		cmd := exec.Command("go", args...)
		cmd.Dir = dir
		cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "GOWORK=off", "GOPROXY=off", "GOFLAGS=-mod=mod")
		out, err := cmd.CombinedOutput()
		return string(out), err
	}
	if out, err := command("vet", "./..."); err != nil {
		t.Fatalf("go vet: %v\n%s", err, out)
	}
	if out, err := command("test", "-vet=off", "./saxpy", "./triton", "./runtime", "./both", "./floats"); err != nil {
		t.Fatalf("go test: %v\n%s", err, out)
	}
	small := strings.Replace(read(t, "testdata/built/types.txt"), "Position, Speed", "Position", 1)
	// A missing twin and a type of another size must not compile.
	if out, err := command("vet", "-tags=left_out", "./saxpy"); err == nil || !strings.Contains(out, "missing method Saxpy") {
		t.Errorf("a twin that is left out: %v\n%s", err, out)
	}
	writeFile(t, filepath.Join(dir, "types", "particle.go"), []byte(small))
	if out, err := command("build", "./types"); err == nil || !strings.Contains(out, "zall.go") {
		t.Errorf("a type of another size: %v\n%s", err, out)
	}
}

func read(t *testing.T, name string) string {
	t.Helper()
	b, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// TestReproducible checks that generating again, also in another folder, gives the same files.
func TestReproducible(t *testing.T) {
	withoutCompilers(t)
	ar, err := txtar.ParseFile("testdata/types.txtar")
	if err != nil {
		t.Fatal(err)
	}
	_, args, _ := strings.Cut(string(ar.Comment), "kernelgen ")
	var first []byte
	for range 5 {
		dir := t.TempDir()
		for _, f := range ar.Files {
			writeFile(t, filepath.Join(dir, f.Name), f.Data)
		}
		for range 2 {
			if err := run(dir, words(strings.TrimSpace(args)), t.Output()); err != nil {
				t.Fatal(err)
			}
		}
		got, err := os.ReadFile(filepath.Join(dir, "zall.go"))
		if err != nil {
			t.Fatal(err)
		}
		if first == nil {
			first = got
		} else if !bytes.Equal(got, first) {
			t.Fatal("the same files give another Go file")
		}
	}
}

// TestCompilers compiles with fake compilers, which write their arguments into the PTX.
func TestCompilers(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("the compilers are scripts")
	}
	const script = `#!/bin/sh
for last; do :; done
out=$last
printf '// %s\n.version 7.0\n.target sm_75\n.visible .entry scale(.param .u64 x, .param .u32 n) {}\n' "$*" | sed "s|$out|OUT|" >"$out"
`
	const source = "#include \"part.h\"\nextern \"C\" __global__ void scale(float *x, int n);\n"
	for _, c := range []struct {
		variable string
		args     string
		called   string
	}{
		{"NVCC", "k.cu", "// -ptx -arch=compute_75 k.cu -o OUT"},
		{"NVCC", "-arch compute_80 -options '-O1 -DX=2' k.cu", "// -O1 -DX=2 -ptx -arch=compute_80 k.cu -o OUT"},
		{"NVCC", "-arch sm_90a k.cu", "// -cubin -arch=sm_90a k.cu -o OUT"},
		{"NVCC", "-arch sm_80,compute_90 k.cu", "// -fatbin --no-compress -gencode=arch=compute_80,code=sm_80 -gencode=arch=compute_90,code=compute_90 k.cu -o OUT"},
		{"CLANG", "k.cu", "// -x cuda --cuda-device-only --cuda-gpu-arch=sm_75 -O3 -S k.cu -o OUT"},
		{"HIPCC", "-arch gfx90a,gfx942 k.cu", "// --genco --offload-arch=gfx90a --offload-arch=gfx942 k.cu -o OUT"},
	} {
		t.Run(c.variable+" "+c.args, func(t *testing.T) {
			withoutCompilers(t)
			dir := t.TempDir()
			program := filepath.Join(dir, "compiler")
			if err := os.WriteFile(program, []byte(script), 0o777); err != nil {
				t.Fatal(err)
			}
			t.Setenv(c.variable, program)
			writeFile(t, filepath.Join(dir, "k.cu"), []byte(source))
			writeFile(t, filepath.Join(dir, "part.h"), []byte("#define A 1\n"))
			generate := func() string {
				var out bytes.Buffer
				if err := run(dir, append([]string{"-pkg", "k"}, words(c.args)...), &out); err != nil {
					t.Fatal(err)
				}
				return out.String()
			}
			if out := generate(); strings.Count(out, "wrote") != 2 {
				t.Errorf("the first time: %q", out)
			}
			files, err := filepath.Glob(filepath.Join(dir, "zk.*"))
			if err != nil || len(files) != 2 {
				t.Fatalf("%q, %v", files, err)
			}
			image := files[0]
			if strings.HasSuffix(image, ".go") {
				image = files[1]
			}
			text, err := os.ReadFile(image)
			if first, _, _ := strings.Cut(string(text), "\n"); err != nil || first != c.called {
				t.Errorf("%s: called with %q, want %q", image, first, c.called)
			}
			// An unchanged source is not compiled again, and needs no compiler.
			withoutCompilers(t)
			if out := generate(); out != "" {
				t.Errorf("a second time: %q", out)
			}
			writeFile(t, filepath.Join(dir, "part.h"), []byte("#define A 2\n"))
			if out := generate(); !strings.Contains(out, "k.cu has changed since "+filepath.Base(image)+" was compiled") {
				t.Errorf("a file that is included has changed: %q", out)
			}
			t.Setenv(c.variable, program)
			if out := generate(); out != "kernelgen: wrote zk.go\n" { // the Go file has a new hash
				t.Errorf("compiled again: %q", out)
			}
		})
	}
}

// TestRealNVRTC compiles the kernels of internal/testkernels with this machine's NVRTC. That needs
// no GPU.
func TestRealNVRTC(t *testing.T) {
	lib, err := nvrtc.Open(nvrtc.Options{})
	if os.Getenv("PUREGPU_NVRTC_LIBRARY") == "" && errors.Is(err, dl.ErrNotFound) || errors.Is(err, dl.ErrUnsupported) {
		t.Skipf("no NVRTC to compile with: %v", err)
	} else if err != nil {
		t.Fatal(err)
	}
	t.Logf("NVRTC %s", nvrtc.FormatVersion(lib.Version()))
	dir, from := t.TempDir(), filepath.Join("..", "..", "internal", "testkernels")
	writeFile(t, filepath.Join(dir, "kernels.cu"), []byte(read(t, filepath.Join(from, "kernels.cu"))))
	want := read(t, filepath.Join(from, "zkernels.go"))
	for _, archs := range []string{"compute_75", "sm_80", "compute_75,sm_80,sm_90"} {
		ext := map[string]string{"compute_75": ".ptx", "sm_80": ".cubin"}[archs]
		if ext == "" {
			ext = ".fatbin"
		}
		if err := run(dir, []string{"-pkg", "testkernels", "-runtime", "-compiler", "nvrtc", "-arch", archs, "kernels.cu"}, t.Output()); err != nil {
			t.Fatal(err)
		}
		files, err := filepath.Glob(filepath.Join(dir, "z*"))
		if err != nil || len(files) != 2 {
			t.Errorf("%s: files %q, %v", archs, files, err)
		}
		strip := func(text string) string { // removes the line about the compilation
			_, text, _ = strings.Cut(text, "package ")
			return strings.Replace(text, "zkernels"+ext, "zkernels.ptx", 1)
		}
		if got := read(t, filepath.Join(dir, "zkernels.go")); strip(got) != strip(want) {
			t.Errorf("%s: the file differs from that of internal/testkernels:\n%s", archs, got)
		}
	}
	// If no compiler is named, nvcc is absent and clang lacks CUDA, NVRTC is used.
	if runtime.GOOS != "windows" {
		t.Setenv("NVCC", "/absent/nvcc")
		t.Setenv("CLANG", filepath.Join(dir, "clang"))
		if err := os.WriteFile(filepath.Join(dir, "clang"), []byte("#!/bin/sh\necho 'error: cannot find CUDA installation' >&2\nexit 1\n"), 0o777); err != nil {
			t.Fatal(err)
		}
		if err := run(dir, []string{"-pkg", "testkernels", "-force", "kernels.cu"}, t.Output()); err != nil {
			t.Errorf("clang lacks CUDA: %v", err)
		}
	}
	writeFile(t, filepath.Join(dir, "kernels.cu"), []byte("extern \"C\" __global__ void f(int *x) {\n\t*x = nothing;\n}\n"))
	err = run(dir, []string{"-pkg", "testkernels", "-compiler", "nvrtc", "kernels.cu"}, t.Output())
	if err == nil || !strings.Contains(err.Error(), "kernels.cu(2): error: ") {
		t.Errorf("a source that is wrong: %v", err)
	}
}

// TestToolkitHeaders checks that NVRTC compiles with a header of the toolkit, which the option -I
// must name. If no folder has the header, the error lists the folders.
func TestToolkitHeaders(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("the fake library is for Linux")
	}
	t.Setenv("PUREGPU_NVRTC_LIBRARY", testlib.Fake{File: "libnvrtc.so.12", Source: "nvrtc.c"}.Build(t))
	dir := t.TempDir()
	t.Setenv("CUDA_HOME", dir)
	include, source := filepath.Join(dir, "include"), filepath.Join(dir, "k.cu")
	writeFile(t, filepath.Join(include, "toolkit.h"), nil)
	writeFile(t, source, []byte("#include <toolkit.h>\n"))
	g := &generator{archs: []string{"compute_75"}, options: []string{"-lineinfo"}}
	image, _, err := nvrtcCompile(g, source)
	if errors.Is(err, errNoCompiler) {
		t.Skip(err)
	}
	if want := "option -lineinfo\noption -I" + include + "\n"; err != nil || !strings.Contains(string(image), want) {
		t.Errorf("compiled with\n%s, %v; want\n%s", image, err, want)
	}
	writeFile(t, source, []byte("#include <no/such.h>\n"))
	_, _, err = nvrtcCompile(g, source)
	if err == nil || !strings.Contains(err.Error(), "\nk.cu: note: no/such.h is in none of ") || !strings.Contains(err.Error(), include) ||
		!strings.HasSuffix(err.Error(), ": name its folder by -options -IFOLDER") {
		t.Errorf("a header that is missing: %v", err)
	}
}

// touchOut returns script text that creates the file named by the last argument.
const touchOut = "for last; do :; done\n: >\"$last\"\n"

// TestBroken checks that compilers that compile nothing, such as Debian's clang without CUDA, are
// passed over for the next compiler.
func TestBroken(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("the compilers are scripts")
	}
	const noCUDA = "#!/bin/sh\necho 'clang: warning: something' >&2\necho 'clang: error: cannot find CUDA installation' >&2\nexit 1\n"
	const works = "#!/bin/sh\nfor last; do :; done\nprintf '.version 7.0\\n.target sm_75\\n.visible .entry scale(.param .u64 x) {}\\n' >\"$last\"\n"
	const onlyProbes = "#!/bin/sh\ncase \"$*\" in *k.cu*) echo 'k.cu(1): error: no' >&2; exit 1;; esac\n" + touchOut
	for name, c := range map[string]struct {
		nvcc, clang string
		args        string
		want        []string // parts of the error; empty if it succeeds
	}{
		"clang lacks CUDA":                  {"", noCUDA, "", []string{"k.cu: no compiler: no program /absent/nvcc; clang compiles nothing for compute_75 here: clang: error: cannot find CUDA installation; no library NVRTC: PUREGPU_NVRTC_LIBRARY names /absent/puregpu_nvrtc_library", "install the CUDA toolkit", "kernelgen k.cu k.ptx", "kernelgen -runtime k.cu"}},
		"clang lacks CUDA, and is named":    {"", noCUDA, "-compiler clang", []string{"clang compiles nothing for compute_75 here", "cannot find CUDA installation", "kernelgen -runtime k.cu"}},
		"nvcc is broken":                    {noCUDA, works, "", nil},
		"the source is broken":              {onlyProbes, works, "", []string{"compile k.cu with nvcc: exit status 1\nk.cu(1): error: no"}},
		"an architecture that there is not": {"#!/bin/sh\ncase \"$*\" in *_999*) echo 'nvcc fatal: no such architecture' >&2; exit 1;; esac\n" + touchOut, "", "-arch compute_999", []string{"compile k.cu: nvcc compiles nothing for compute_999 here: nvcc fatal: no such architecture"}},
		"clang makes no machine code":       {"", works, "-arch sm_80", []string{"clang compiles nothing for sm_80 here: clang makes PTX here: give compute_80 in place of sm_80; no library NVRTC: PUREGPU_NVRTC_LIBRARY names /absent/puregpu_nvrtc_library"}},
	} {
		withoutCompilers(t)
		dir := t.TempDir()
		for variable, script := range map[string]string{"NVCC": c.nvcc, "CLANG": c.clang} {
			if script != "" {
				program := filepath.Join(dir, strings.ToLower(variable))
				if err := os.WriteFile(program, []byte(script), 0o777); err != nil {
					t.Fatal(err)
				}
				t.Setenv(variable, program)
			}
		}
		writeFile(t, filepath.Join(dir, "k.cu"), []byte("extern \"C\" __global__ void scale(float *x);\n"))
		if name == "an architecture that there is not" { // an existing file, which must not hide the error
			writeFile(t, filepath.Join(dir, "zk.go"), []byte(generatedMark+"from k.cu. DO NOT EDIT.\npackage k\n//go:embed zk.ptx\n"))
			writeFile(t, filepath.Join(dir, "zk.ptx"), []byte(".version 7.0\n"))
		}
		err := run(dir, append(append([]string{"-pkg", "k"}, words(c.args)...), "k.cu"), t.Output())
		if (err == nil) != (c.want == nil) {
			t.Errorf("%s: %v", name, err)
			continue
		}
		for _, want := range c.want {
			if !strings.Contains(err.Error(), want) {
				t.Errorf("%s: error %v\nwant %q", name, err, want)
			}
		}
	}
}

// TestMessages checks the error if a compiler fails.
func TestMessages(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("the compiler is a script")
	}
	withoutCompilers(t)
	dir := t.TempDir()
	program := filepath.Join(dir, "compiler")
	if err := os.WriteFile(program, []byte("#!/bin/sh\ncase \"$*\" in *k.cu*) echo 'k.cu(1): error: no' >&2; exit 2;; esac\n"+touchOut), 0o777); err != nil {
		t.Fatal(err)
	}
	t.Setenv("NVCC", program)
	writeFile(t, filepath.Join(dir, "k.cu"), []byte("extern \"C\" __global__ void scale(float *x);\n"))
	err := run(dir, []string{"-pkg", "k", "k.cu"}, t.Output())
	if err == nil || !strings.Contains(err.Error(), "compile k.cu with nvcc: exit status 2\nk.cu(1): error: no") {
		t.Error(err)
	}
}

// FuzzSource checks that no text has more kernels, parameters and variables than bytes.
func FuzzSource(f *testing.F) {
	files, _ := filepath.Glob("testdata/*.txtar")
	for _, file := range files {
		ar, err := txtar.ParseFile(file)
		if err != nil {
			f.Fatal(err)
		}
		for _, x := range ar.Files {
			if strings.HasSuffix(x.Name, ".cu") {
				f.Add(string(x.Data))
			}
		}
	}
	f.Add("R\"x()\" x)x\" extern \"C\" { __global__ void k(int (*f)(int), struct { int a; } b = {1}, ...) {} } }")
	f.Fuzz(func(t *testing.T, text string) {
		s := parseSource(text)
		n := 0
		for _, k := range s.kernels {
			n += 1 + len(k.params)
			for _, p := range k.params {
				normalize(p.typ)
			}
		}
		if n+len(s.variables) > len(text) {
			t.Errorf("%d things of %d bytes", n, len(text))
		}
	})
}

// FuzzGenerate checks that any source with any PTX gives an error or a Go file that compiles.
func FuzzGenerate(f *testing.F) {
	files, _ := filepath.Glob("testdata/*.txtar")
	for _, file := range files {
		ar, err := txtar.ParseFile(file)
		if err != nil {
			f.Fatal(err)
		}
		var source, code string
		for _, x := range ar.Files {
			switch filepath.Ext(x.Name) {
			case ".cu", ".h":
				source = string(x.Data)
			case ".ptx":
				code = string(x.Data)
			}
		}
		f.Add(source, code)
	}
	f.Add("extern \"C\" __global__ void \xff(int \xfe = R\"(\n)\", int ü) {} __device__ int Close;", ".version 7.0\n.entry \xff(.param .u32 a, .param .u32 b) {}")
	f.Fuzz(func(t *testing.T, text, code string) {
		if !strings.HasPrefix(code, ".version") {
			code = ".version 7.0\n" + code
		}
		im, err := newImage("k.ptx", []byte(code))
		if err != nil {
			return
		}
		g := &generator{used: map[string]bool{}}
		m := &module{pkg: "k", name: "K", from: "k.cu", images: []*image{im}}
		if g.addSource(m, "k.cu", parseSource(text), 0) != nil || m.check() != nil {
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

// TestAbsolutePath checks that files may be anywhere, and that the output is beside them.
func TestAbsolutePath(t *testing.T) {
	dir := t.TempDir()
	var files []string
	for name, from := range map[string]string{"k.h": "kernels.cu", "k.ptx": "zkernels.ptx"} {
		text, err := os.ReadFile(filepath.Join("..", "..", "internal", "testkernels", from))
		if err != nil {
			t.Fatal(err)
		}
		files = append(files, filepath.Join(dir, name))
		if err := os.WriteFile(files[len(files)-1], text, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if err := run(t.TempDir(), append([]string{"-pkg", "k", "-name", "k"}, files...), t.Output()); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Join(dir, "zk.go")); err != nil {
		t.Error(err)
	}
}

// TestNames checks that invalid names of packages and files are refused before anything is read.
func TestNames(t *testing.T) {
	for _, args := range [][]string{{"-pkg", "a b"}, {"-pkg", "type"}, {"-pkg", "a", "-name", "b c"}, {"-pkg", "a", "-name", "../b"}} {
		if err := run(t.TempDir(), append(args, "none.cu"), t.Output()); err == nil || !strings.Contains(err.Error(), "is no name") {
			t.Errorf("%q: %v", args, err)
		}
	}
}
