//go:build linux && amd64 && puregpu_static && !nogpu && !cgo

package hostlibc

import (
	"errors"
	"os"
	"strings"
	"syscall"
	"testing"
)

func TestMain(m *testing.M) {
	// The test of Setuid runs in a process of its own: a success would change the process.
	if os.Getenv("HOSTLIBC_TEST_SETUID") != "" {
		if err := syscall.Setuid(os.Getuid()); err != nil {
			println(err.Error())
			os.Exit(3)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// TestStart checks that Start returns an error if the file in PUREGPU_LOADER is not glibc's loader,
// and that calls of Start after the first success return the same C library.
func TestStart(t *testing.T) {
	anyLoader(t)
	for _, path := range []string{"/nonexistent", "/dev/null", os.Args[0]} {
		t.Setenv(Env, path)
		if l, err := Start(); err == nil || errors.Is(err, ErrAbsent) || !strings.Contains(err.Error(), path) {
			t.Errorf("with %s=%s: %v, %v", Env, path, l, err)
		}
	}
	t.Setenv(Env, "")
	l, err := Start()
	if err != nil {
		t.Fatal(err)
	}
	if l.Dlopen == 0 || l.Dlsym == 0 || l.Dlerror == 0 || l.Dlinfo == 0 {
		t.Errorf("functions are missing: %+v", l)
	}
	if again, err := Start(); again != l || err != nil {
		t.Errorf("started twice: %v, %v", again, err)
	}
}

// TestSetuid checks that changing the user is an error, and does not make the runtime panic.
func TestSetuid(t *testing.T) {
	p, err := os.StartProcess("/proc/self/exe", os.Args[:1], &os.ProcAttr{Env: append(os.Environ(), "HOSTLIBC_TEST_SETUID=1")})
	if err != nil {
		t.Skip(err)
	}
	state, err := p.Wait()
	if err != nil || state.ExitCode() != 3 {
		t.Errorf("syscall.Setuid: %v, %v, want an error", state, err)
	}
}
