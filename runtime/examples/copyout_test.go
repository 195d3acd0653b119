//go:build !race && !nogpu && !puregpu_syscalln

// TestCopyOut builds its copies without the race detector and without build tags. So running the
// test with the race detector or with build tags would prove nothing more.

package examples_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

const (
	module = "github.com/puregpu/puregpu"
	copied = "example.com/copied" // the module of the copies
)

// simulated has the arguments of each program on the simulated GPU, and the beginning of its last
// line of output. The programs that are not listed need a library.
var simulated = map[string]struct {
	args []string
	last string
}{
	"first":     {nil, "[12 24 36 48] on Simulated GPU 0"},
	"compile":   {nil, "[12 24 36 48] [0.5 1 1.5 2] on Simulated GPU 0"},
	"pipeline":  {nil, "pipeline: 12 batches of 262144 floats on Simulated GPU 0: ok"},
	"serve":     {[]string{"-selftest"}, "serve: 200 requests, half of them cancelled, on Simulated GPU 0: ok"},
	"allreduce": {[]string{"-devices", "3"}, "allreduce: rank 2 of 3 on Simulated GPU 2: 30 steps with 4096 samples: ok"},
	"llama":     {[]string{"generate", "-sim"}, "llama: 64 tokens on Simulated GPU 0: "},
	"mlp":       {nil, "mlp: 12 layers of 128, batch of 8, 8 executions on sim (Simulated GPU 0): largest error "},
}

// TestCopyOut checks that the examples build and pass their tests when their folders are copied
// into another module, and that the programs run there on the simulated GPU.
func TestCopyOut(t *testing.T) {
	if _, err := exec.LookPath("go"); err != nil {
		t.Skip("no go command")
	}
	dir, bin := t.TempDir(), t.TempDir()
	copyExamples(t, dir)
	host := func(args ...string) string { return goCommand(t, dir, args...) }

	imports := map[string]bool{} // imported by the examples and their tests
	var mains []string
	for d := json.NewDecoder(strings.NewReader(host("list", "-json=Name,Dir,Imports,TestImports,XTestImports", "./..."))); ; {
		var p struct {
			Name, Dir                          string
			Imports, TestImports, XTestImports []string
		}
		if err := d.Decode(&p); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatal(err)
		}
		if p.Name == "main" {
			mains = append(mains, filepath.Base(p.Dir))
		}
		for _, path := range slices.Concat(p.Imports, p.TestImports, p.XTestImports) {
			imports[path] = true
			first, _, _ := strings.Cut(path, "/")
			if strings.Contains(first, ".") && !strings.HasPrefix(path, copied+"/") &&
				(!strings.HasPrefix(path, module+"/") || strings.HasPrefix(path, module+"/testdata/")) {
				t.Errorf("%s imports %s, which is neither of the standard library nor for programs", filepath.Base(p.Dir), path)
			}
		}
	}
	for _, p := range []string{"cuda", "nccl", "runtime/collective", "runtime/gpu", "runtime/drivers", "runtime/rendezvous", "runtime/driver/simdriver"} {
		if !imports[module+"/"+p] {
			t.Errorf("no example imports %s", p)
		}
	}

	t.Run("programs", func(t *testing.T) {
		host("vet", "./...")
		host("build", "-ldflags=-s -w", "-o", bin+string(filepath.Separator), "./...")
		for _, name := range mains {
			want, known := simulated[name]
			if !known {
				if name != "saxpy" && name != "ncclrank" { // see bindings_test.go
					t.Errorf("%s is not run", name)
				}
				continue
			}
			cmd := exec.Command(filepath.Join(bin, name), want.args...)
			cmd.Env = append(os.Environ(), "PUREGPU_DRIVER=sim")
			for _, v := range []string{"RANK", "WORLD_SIZE", "PMI_RANK", "PMI_SIZE", "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", "SLURM_STEP_ID", "JOB_COMPLETION_INDEX"} {
				cmd.Env = append(cmd.Env, v+"=") // so that the program runs as a single process
			}
			out, err := cmd.CombinedOutput()
			if text := strings.TrimSpace(string(out)); err != nil || !strings.HasPrefix(text[strings.LastIndexByte(text, '\n')+1:], want.last) {
				t.Errorf("%s: %v, printed\n%s\nwant as the last line\n%s", name, err, text, want.last)
			}
		}
	})
	t.Run("tests", func(t *testing.T) {
		if testing.Short() {
			t.Skip("builds each test anew")
		}
		goCommand(t, dir, "test", "-short", "-vet=off", "./...") // the packages run the long tests
	})
}

// copyExamples copies the examples into a new module, as packages independent of each other.
func copyExamples(t *testing.T, dir string) {
	t.Helper()
	root, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	mod := "module " + copied + "\n\ngo 1.26\n\nrequire " + module + " v0.0.0\n\nreplace " + module + " => " + root + "\n"
	sum, err := os.ReadFile(filepath.Join(root, "go.sum"))
	if err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(dir, "go.mod"), []byte(mod))
	write(t, filepath.Join(dir, "go.sum"), sum)
	entries, err := os.ReadDir(".")
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		if !e.IsDir() || e.Name() == "internal" {
			continue
		}
		if err := os.CopyFS(filepath.Join(dir, e.Name()), os.DirFS(e.Name())); err != nil {
			t.Fatal(err)
		}
		moveImports(t, filepath.Join(dir, e.Name()))
		kernels, err := filepath.Glob(filepath.Join(e.Name(), "*.ptx"))
		if err != nil {
			t.Fatal(err)
		}
		for _, k := range kernels {
			if _, err := os.Stat(strings.TrimSuffix(k, ".ptx") + ".cu"); err != nil {
				t.Errorf("the source of %s is not beside it: %v", k, err)
			}
		}
	}
}

// moveImports changes the imports of an example's own packages to those of the copy.
func moveImports(t *testing.T, dir string) {
	t.Helper()
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || filepath.Ext(path) != ".go" {
			return err
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		own := filepath.Base(dir) + "/internal/"
		if moved := bytes.ReplaceAll(text, []byte(`"`+module+"/runtime/examples/"+own), []byte(`"`+copied+"/"+own)); !bytes.Equal(moved, text) {
			return os.WriteFile(path, moved, 0o666)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

func write(t *testing.T, file string, text []byte) {
	t.Helper()
	if err := os.WriteFile(file, text, 0o666); err != nil {
		t.Fatal(err)
	}
}

// goCommand runs the go command in a folder, without a network, and returns its output.
func goCommand(t *testing.T, dir string, args ...string) string {
	t.Helper()
	cmd := exec.Command("go", args...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "GOFLAGS=-mod=mod", "GOPROXY=off", "GOWORK=off", "CGO_ENABLED=0", "GOOS=", "GOARCH=")
	var stderr strings.Builder
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("go %s: %v\n%s%s", strings.Join(args, " "), err, out, &stderr)
	}
	return string(out)
}
