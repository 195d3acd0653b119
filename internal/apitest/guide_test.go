//go:build !race

// TestGuide builds its programs without the race detector, so running it with the detector finds
// nothing more.

package apitest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"go/ast"
	"go/format"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
)

// readmeBuilds says whether the Go blocks of README.md are built too.
const readmeBuilds = true

// TestGuide checks that every Go block of the user pages can be built, that its programs and tests
// run without a GPU, and that a program prints what the comment "// Output:" at its end says. It
// builds the blocks in a separate module.
func TestGuide(t *testing.T) {
	if testing.Short() {
		t.Skip("builds all programs of the guide")
	}
	gocmd, err := exec.LookPath("go")
	if err != nil {
		t.Skip("no go command")
	}
	root, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	lookAt(t, root, "cuda", "cufile", "hipblas", "hipfft", "hiprand", "cupti", "cusolver", "cusparse", "cublaslt", "cublas", "cudnn", "curand", "cufft", "hip", "hiprtc", "nccl", "nvjitlink", "nvml", "nvrtc", "nvtx", "runtime")
	dir := t.TempDir()
	var all []block
	for _, page := range pages(t, root, "docs/guide.md", "docs/guide/*.md", "README.md") {
		if page == "README.md" && !readmeBuilds {
			continue
		}
		text, err := os.ReadFile(filepath.Join(root, page))
		if err != nil {
			t.Fatal(err)
		}
		list, wrong := blocks(page, string(text))
		for _, x := range wrong {
			t.Error(x)
		}
		all = append(all, list...)
	}
	if len(all) == 0 || t.Failed() {
		t.Fatalf("%d blocks can be built", len(all))
	}

	sums, err := os.ReadFile(filepath.Join(root, "go.sum"))
	if err != nil {
		t.Fatal(err)
	}
	own, err := os.ReadFile(filepath.Join(root, "go.mod"))
	if err != nil {
		t.Fatal(err)
	}
	const path = "github.com/puregpu/puregpu"
	_, rest, _ := strings.Cut(string(own), "\n") // the same dependencies, so that the build needs no network
	write(t, filepath.Join(dir, "go.sum"), string(sums))
	write(t, filepath.Join(dir, "go.mod"), "module guide\n"+rest+
		"\nrequire "+path+" v0.0.0\n\nreplace "+path+" => "+root+"\n")
	kernelgen := filepath.Join(dir, "kernelgen.exe")
	generate := func(folder, pkg string, b *block) {
		t.Helper()
		write(t, filepath.Join(dir, folder, b.source), b.kernels)
		cmd := exec.Command(kernelgen, "-runtime", "-pkg", pkg, b.source)
		cmd.Dir = filepath.Join(dir, folder)
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%s: kernelgen: %v\n%s", b.place(), err, out)
		}
	}
	if slices.ContainsFunc(all, func(b block) bool { return b.source != "" }) {
		cmd := exec.Command(gocmd, "build", "-o", kernelgen, "./tools/kernelgen")
		cmd.Dir = root
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
	}
	// Linking takes longest: each program is vetted alone, and then all are linked as functions of
	// one program.
	var folders, tests []string
	var imports, cases strings.Builder
	for i, b := range all {
		folder := b.folder(i)
		folders = append(folders, "./"+folder)
		switch {
		case b.test:
			write(t, filepath.Join(dir, folder, "guide_test.go"), b.code)
			tests = append(tests, "./"+folder)
		case b.main:
			write(t, filepath.Join(dir, folder, "main.go"), b.code)
			write(t, filepath.Join(dir, "as", folder, "main.go"), b.function)
			if b.source != "" {
				generate(folder, "main", &b)
				generate(filepath.Join("as", folder), "as", &b)
			}
			fmt.Fprintf(&imports, "\t%s \"guide/as/%[1]s\"\n", folder)
			fmt.Fprintf(&cases, "\tcase %q:\n\t\t%[1]s.Main()\n", folder)
		default:
			write(t, filepath.Join(dir, folder, "guide.go"), b.code)
		}
	}
	write(t, filepath.Join(dir, "main.go"), "package main\n\nimport (\n\t\"os\"\n"+imports.String()+
		")\n\nfunc main() {\n\tprogram := os.Args[1]\n\tos.Args = os.Args[:1]\n\tswitch program {\n"+cases.String()+"\t}\n}\n")
	run := func(args ...string) {
		t.Helper()
		cmd := exec.Command(gocmd, args...)
		cmd.Dir = dir
		cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "GOWORK=off", "GOPROXY=off", "GOFLAGS=-mod=mod")
		if out, err := cmd.CombinedOutput(); err != nil {
			message := string(out)
			for i, b := range all {
				message = b.atPage(b.folder(i), message)
			}
			t.Fatalf("go %s: %v\n%s", strings.Join(args, " "), err, message)
		}
	}
	run(append([]string{"vet"}, folders...)...)
	program := filepath.Join(dir, "guide.exe")
	run("build", "-ldflags=-s -w", "-o", program)
	if tests != nil {
		run(append([]string{"test", "-vet=off"}, tests...)...)
	}
	for i, b := range all {
		if b.main {
			b.run(t, program, b.folder(i))
		}
	}
}

// lookAt stats all Go files of folders. The go command records the files at which a test looks, and
// repeats a cached test when they have changed.
func lookAt(t *testing.T, root string, folders ...string) {
	t.Helper()
	for _, folder := range folders {
		err := filepath.WalkDir(filepath.Join(root, folder), func(name string, _ fs.DirEntry, err error) error {
			if err == nil && strings.HasSuffix(name, ".go") {
				_, err = os.Stat(name)
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
}

func write(t *testing.T, name, text string) {
	t.Helper()
	if err := errors.Join(os.MkdirAll(filepath.Dir(name), 0o777), os.WriteFile(name, []byte(text), 0o666)); err != nil {
		t.Fatal(err)
	}
}

// pages returns the names of the pages that match patterns. Each pattern must match at least one.
func pages(t *testing.T, root string, patterns ...string) (all []string) {
	t.Helper()
	for _, p := range patterns {
		names, err := filepath.Glob(filepath.Join(root, filepath.FromSlash(p)))
		if err != nil || len(names) == 0 {
			t.Fatalf("no page %s, %v", p, err)
		}
		for _, name := range names {
			page, err := filepath.Rel(root, name)
			if err != nil {
				t.Fatal(err)
			}
			all = append(all, filepath.ToSlash(page))
		}
	}
	return all
}

// A block is Go source in a page.
type block struct {
	page       string
	line       int // its first line in the page
	code       string
	main, test bool
	function   string // the program as a package with a function Main
	output     string // the program's expected output; empty if the block gives none
	// kernels is CUDA C++ source, for which kernelgen generates Go code: the last CUDA block before
	// the program. The field source is the name of the file with that source, from the block's
	// first line.
	kernels, source string
}

func (b *block) place() string { return fmt.Sprintf("%s:%d", b.page, b.line) }

// folder returns the name of the block's folder, from its page and its index.
func (b *block) folder(i int) string {
	return fmt.Sprintf("%s%d", strings.TrimSuffix(filepath.Base(b.page), ".md"), i)
}

// atPage replaces places in the block's file by places in the block's page, in the output of the go
// command.
func (b *block) atPage(folder, message string) string {
	place := regexp.MustCompile(`\b` + regexp.QuoteMeta(folder) + `[/\\](\w+\.go):(\d+)`)
	return place.ReplaceAllStringFunc(message, func(s string) string {
		n, _ := strconv.Atoi(s[strings.LastIndexByte(s, ':')+1:]) // no error: the text has only digits
		return fmt.Sprintf("%s:%d", b.page, b.line+n-1)
	})
}

var (
	fenced = regexp.MustCompile("(?ms)^```go *\n(.*?)^```")
	cuda   = regexp.MustCompile("(?ms)^ *```cuda *\n *// (\\w+\\.cu)\n(.*?)^ *```")
)

// blocks returns the Go blocks of a page, and errors for malformed blocks.
func blocks(page, text string) (all []block, wrong []string) {
	for _, m := range fenced.FindAllStringSubmatchIndex(text, -1) {
		b := block{page: page, line: 1 + strings.Count(text[:m[2]], "\n"), code: text[m[2]:m[3]]}
		refuse := func(why string) { wrong = append(wrong, b.place()+": "+why) }
		fset := token.NewFileSet()
		f, err := parser.ParseFile(fset, "", b.code, parser.ParseComments|parser.SkipObjectResolution)
		if err != nil {
			refuse("a Go block that is no file, with package clause and imports: " + err.Error())
			continue
		}
		if formatted, err := format.Source([]byte(b.code)); err != nil || string(formatted) != b.code {
			refuse("a Go block that gofmt would change")
			continue
		}
		for _, d := range f.Decls {
			fn, ok := d.(*ast.FuncDecl)
			switch {
			case !ok || fn.Recv != nil:
			case strings.HasPrefix(fn.Name.Name, "Test"):
				b.test = true
			case f.Name.Name == "main" && fn.Name.Name == "main":
				b.main = true
				pkg, name := fset.Position(f.Name.Pos()).Offset, fset.Position(fn.Name.Pos()).Offset
				b.function = b.code[:pkg] + "as" + b.code[pkg+len("main"):name] + "Main" + b.code[name+len("main"):]
			}
		}
		if b.main {
			for _, m := range cuda.FindAllStringSubmatch(text[:m[0]], -1) {
				b.source, b.kernels = m[1], m[2]
			}
		}
		if n := len(f.Comments); n > 0 {
			if said, ok := strings.CutPrefix(f.Comments[n-1].Text(), "Output:\n"); ok {
				b.output = said
			}
		}
		if b.output != "" && !b.main {
			refuse("a Go block that is no program, and says what it prints")
			continue
		}
		all = append(all, b)
	}
	return all, wrong
}

// run runs a block's program.
func (b *block) run(t *testing.T, program, folder string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, program, folder)
	cmd.Dir = t.TempDir()
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	cmd.Env = append(os.Environ(), "PUREGPU_DRIVER=sim", "PUREGPU_CUDA_LIBRARY=/nonexistent", "PUREGPU_HIP_LIBRARY=/nonexistent",
		"PUREGPU_LEAKS=1", "GOGC=1") // the collector runs often and finds handles that a program did not close
	if err := cmd.Run(); err != nil {
		t.Errorf("%s: %v; it printed\n%s%s", b.place(), err, stdout.Bytes(), stderr.Bytes())
		return
	}
	if got, want := strings.TrimSpace(stdout.String()), strings.TrimSpace(b.output); want != "" && got != want {
		t.Errorf("%s: it printed\n%s\n\nand says that it prints\n%s\n\nStandard error was\n%s", b.place(), got, want, stderr.Bytes())
	}
	if strings.Contains(stderr.String(), "was dropped without Close") {
		t.Errorf("%s: it leaks handles:\n%s", b.place(), stderr.Bytes())
	}
}

func TestBlocks(t *testing.T) {
	const program = "package main\n\nimport \"fmt\"\n\nfunc main() { fmt.Println(1) }\n"
	for name, x := range map[string]struct {
		code  string
		want  block
		wrong string
	}{
		"program":         {program, block{main: true}, ""},
		"with output":     {program + "\n// Output:\n// 1\n//\n//  2\n", block{main: true, output: "1\n\n 2\n"}, ""},
		"package":         {"package x\n\nvar X int\n", block{}, ""},
		"test":            {"package x\n\nimport \"testing\"\n\nfunc TestX(t *testing.T) {}\n", block{test: true}, ""},
		"excerpt":         {"x := 1\n", block{}, "page:3: a Go block that is no file"},
		"not formatted":   {"package x\nvar  X int\n", block{}, "page:3: a Go block that gofmt would change"},
		"package, output": {"package x\n\nvar X int\n\n// Output:\n// 1\n", block{}, "page:3: a Go block that is no program"},
	} {
		list, wrong := blocks("page", "Text.\n```go\n"+x.code+"```\nMore.\n```sh\nx := 1\n```\n")
		if x.want.main {
			x.want.function = "package as" + strings.Replace(strings.TrimPrefix(x.code, "package main"), "func main", "func Main", 1)
		}
		x.want.page, x.want.line, x.want.code = "page", 3, x.code
		switch {
		case x.wrong == "" && (len(wrong) > 0 || len(list) != 1 || list[0] != x.want):
			t.Errorf("%s: %+v, %q, want %+v", name, list, wrong, x.want)
		case x.wrong != "" && (len(wrong) != 1 || len(list) > 0 || !strings.HasPrefix(wrong[0], x.wrong)):
			t.Errorf("%s: %+v, %q, want %q", name, list, wrong, x.wrong)
		}
	}
}
