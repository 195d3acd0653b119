package dl

import (
	"debug/elf"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"testing"
)

// TestNoGPUStatic checks that a program with the tag nogpu is a static ELF file, which
// runs where there is no glibc.
func TestNoGPUStatic(t *testing.T) {
	if testing.Short() || runtime.GOOS != "linux" {
		t.Skip("builds a program for Linux")
	}
	gocmd, err := exec.LookPath("go")
	if err != nil {
		t.Skip("no go command")
	}
	dir, err := os.MkdirTemp("testdata", "nogpu")
	if err != nil {
		t.Skip(err)
	}
	defer os.RemoveAll(dir)
	src := "package main\n\nimport \"github.com/puregpu/puregpu/runtime/dl\"\n\nfunc main() { println(new(dl.Library).Explain()) }\n"
	if err := os.WriteFile(filepath.Join(dir, "main.go"), []byte(src), 0o666); err != nil {
		t.Fatal(err)
	}
	out := filepath.Join(t.TempDir(), "prog")
	cmd := exec.Command(gocmd, "build", "-tags", "nogpu", "-o", out, "./"+dir)
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if msg, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("go build: %v\n%s", err, msg)
	}
	f, err := elf.Open(out)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for _, p := range f.Progs {
		if p.Type == elf.PT_DYNAMIC || p.Type == elf.PT_INTERP {
			t.Errorf("the program has a %v segment", p.Type)
		}
	}
}
