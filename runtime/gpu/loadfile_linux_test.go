package gpu_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/puregpu/puregpu/runtime/driver/simdriver"
	"github.com/puregpu/puregpu/runtime/gpu"
)

// TestLoadFileIrregular loads code from what is no regular file: that neither waits nor reads for ever.
func TestLoadFileIrregular(t *testing.T) {
	late := time.AfterFunc(patience, func() { panic("it blocks") }) // a thread that waits in open(2) cannot be taken back
	defer late.Stop()
	dev := openDevice(t, newSim(t, simdriver.Config{}), 0, gpu.Options{})
	pipe := filepath.Join(t.TempDir(), "pipe")
	must(t, syscall.Mkfifo(pipe, 0o666))
	for _, name := range []string{pipe, "/dev/zero", "/dev/tty", filepath.Dir(pipe)} {
		_, err := dev.LoadFile(name)
		var path *os.PathError
		if !errors.As(err, &path) || path.Path != name || !strings.Contains(err.Error(), "not a regular file") {
			t.Errorf("%s: %v", name, err)
		}
	}
}
