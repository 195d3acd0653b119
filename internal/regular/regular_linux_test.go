package regular

import (
	"errors"
	"net"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

func TestIrregular(t *testing.T) {
	dir := t.TempDir()
	pipe, socket := filepath.Join(dir, "pipe"), filepath.Join(dir, "socket")
	if err := syscall.Mkfifo(pipe, 0o666); err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	for name, what := range map[string]string{pipe: "a named pipe", socket: "a socket", "/dev/zero": "a device", "/dev/tty": "a device"} {
		if _, err := ReadFile(name); err == nil || !strings.HasSuffix(err.Error(), ": "+what+", not a regular file") {
			t.Errorf("%s: %v", name, err)
		}
	}
	if b, err := ReadFile("/proc/self/mem"); len(b) != 0 || err != nil { // its size is 0
		t.Errorf("%d bytes, %v", len(b), err)
	}
}

// TestOpenReplaced checks that Open does not block if a named pipe takes the file's name after
// Stat.
func TestOpenReplaced(t *testing.T) {
	pipe := filepath.Join(t.TempDir(), "pipe")
	if err := syscall.Mkfifo(pipe, 0o666); err != nil {
		t.Fatal(err)
	}
	late := time.AfterFunc(20*time.Second, func() { panic("it blocks") })
	defer late.Stop()
	if _, _, err := open(pipe); !errors.Is(err, ErrIrregular) || !strings.HasSuffix(err.Error(), ": a named pipe, not a regular file") {
		t.Error(err)
	}
}
