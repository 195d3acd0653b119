//go:build linux && (amd64 || arm64) && !nogpu && !puregpu_static && !cgo

package dl

import (
	"cmp"
	"errors"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"syscall"
	"testing"
)

// TestMuslWords checks the plain words for messages of musl's loader.
func TestMuslWords(t *testing.T) {
	for _, test := range []struct {
		path, words string
		kind        error
		want        string
	}{
		{"libcuda.so.1", "Error loading shared library libcuda.so.1: No such file or directory", ErrNotFound, "No such file or directory"},
		{"libcuda.so.1", "Error loading shared library libcuda.so.1: Exec format error", ErrNotLoadable, "Exec format error"},
		{
			"libhip.so", "Error loading shared library libstdc++.so.6: No such file or directory (needed by /usr/lib/libhip.so)", ErrNotLoadable,
			"needs libstdc++.so.6, which was not found (loader: Error loading shared library libstdc++.so.6: No such file or directory (needed by /usr/lib/libhip.so))",
		},
		{
			"libcuda.so.1", "Error relocating /usr/lib/libcuda.so.1: __register_atfork: symbol not found", ErrNotLoadable,
			"needs function __register_atfork, which none of the libraries it depends on has (loader: Error relocating /usr/lib/libcuda.so.1: __register_atfork: symbol not found)",
		},
		{"libcuda.so.1", "Error relocating /usr/lib/libcuda.so.1: unsupported relocation type 37", ErrNotLoadable, "Error relocating /usr/lib/libcuda.so.1: unsupported relocation type 37"},
	} {
		e := explain(test.path, test.words)
		if e.kind != test.kind || e.Error() != test.want || !byMusl(Attempt{Err: e}) {
			t.Errorf("%s: %v, %v, musl %v; want %v, %s", test.words, e.kind, e, e.musl, test.kind, test.want)
		}
	}
	if e := explain("libcuda.so.1", "libcuda.so.1: cannot open shared object file: No such file or directory"); byMusl(Attempt{Err: e}) {
		t.Error("words of glibc's loader are taken for musl's")
	}
}

// TestMusl opens libraries in a process that musl's loader started. PUREGPU_TEST_MUSL names the
// loader, or the system has it. With cgo the test would need more of glibc than musl has.
func TestMusl(t *testing.T) {
	if os.Getenv("PUREGPU_TEST_IN_MUSL") != "" {
		_, err := open(t, Options{}, func(s *Spec) { s.Dirs = []string{"/nowhere"} })
		distinct(t, err, ErrNotFound)
		wantText(t, err.Error(), "", "fix: fixture not found; "+muslHint+"\n"+
			"\tlibpuregpu-absent.so.2, libpuregpu-absent.so (system loader): No such file or directory\n"+
			"\t/nowhere: no libpuregpu-absent.so.2 or libpuregpu-absent.so there")
		return
	}
	arch := map[string]string{"amd64": "x86_64", "arm64": "aarch64"}[runtime.GOARCH]
	loader := cmp.Or(os.Getenv("PUREGPU_TEST_MUSL"), "/lib/ld-musl-"+arch+".so.1")
	if _, err := os.Stat(loader); err != nil {
		t.Skipf("needs musl: %v", err)
	}
	cmd := exec.Command(loader, os.Args[0], "-test.run=^TestMusl$", "-test.v")
	cmd.Env = append(os.Environ(), "PUREGPU_TEST_IN_MUSL=1")
	out, err := cmd.CombinedOutput()
	if errors.Is(err, syscall.ENOEXEC) {
		t.Skip("needs to start itself, which under an emulator the system cannot do")
	}
	if err != nil || !strings.Contains(string(out), "--- PASS: TestMusl ") {
		t.Errorf("%v\n%s", err, out)
	}
}
