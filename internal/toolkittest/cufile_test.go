//go:build linux && (amd64 || arm64) && !nogpu

package toolkittest

import (
	"bytes"
	"errors"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/puregpu/puregpu/cufile"
)

// TestGPUCuFile checks that data is unchanged after cuFile has written it from device memory to a
// file and read it into other device memory. In its compatibility mode cuFile copies through host
// memory and needs no kernel module. The test runs in a separate process, because the library sees
// only the environment that its process began with.
func TestGPUCuFile(t *testing.T) {
	const inside = "PUREGPU_TEST_CUFILE"
	if os.Getenv(inside) == "" {
		OpenGPU(t)
		dir := t.TempDir()
		config := filepath.Join(dir, "cufile.json")
		if err := os.WriteFile(config, []byte(`{"properties": {"allow_compat_mode": true}}`), 0o666); err != nil {
			t.Fatal(err)
		}
		self, err := os.Executable()
		if err != nil {
			t.Fatal(err)
		}
		cmd := exec.Command(self, "-test.run=^TestGPUCuFile$", "-test.v")
		cmd.Dir = dir // the library writes its log there
		cmd.Env = append(os.Environ(), inside+"="+dir, "CUFILE_ENV_PATH_JSON="+config, "CUFILE_ALLOW_COMPAT_MODE=true", "CUFILE_FORCE_COMPAT_MODE=true")
		out, err := cmd.CombinedOutput()
		switch {
		case err != nil:
			log, _ := os.ReadFile(filepath.Join(dir, "cufile.log"))
			t.Fatalf("%v\n%s\ncufile.log:\n%s", err, out, log)
		case bytes.Contains(out, []byte("--- SKIP")):
			t.Skipf("%s", out)
		}
		t.Logf("%s", out)
		return
	}

	g := OpenGPU(t)
	l, err := cufile.Open(cufile.Options{})
	g.Check("Open", err)
	t.Logf("cuFile %s", cufile.FormatVersion(l.Version()))
	driver, err := l.NewDriver()
	for _, missing := range []error{
		cufile.DriverNotInitialized, cufile.NVFSSetupError, cufile.NVFSDriverError, cufile.PlatformNotSupported, cufile.DeviceNotSupported, cufile.PermissionDenied,
		cufile.DriverVersionMismatch,
	} {
		if errors.Is(err, missing) {
			t.Skipf("cuFile cannot run on this machine, even in its compatibility mode: %v", err)
		}
	}
	g.Check("NewDriver", err)

	const size, at = 3<<20 + 1000, 4096 // the size is not a multiple of a page
	data := make([]byte, size)
	rnd := rand.New(rand.NewPCG(1, 2))
	for i := range data {
		data[i] = byte(rnd.Uint32())
	}
	from, to := Upload(g, data...), g.Alloc(size)
	var file *os.File
	var f *cufile.File
	for _, dir := range []string{os.Getenv(inside), "/dev/shm", "/var/tmp", "."} { // cuFile does not support every file system
		if file, err = os.CreateTemp(dir, "cufile"); err != nil {
			continue
		}
		defer os.Remove(file.Name())
		defer file.Close()
		if f, err = l.NewFile(file); err == nil {
			t.Logf("in %s", dir)
			break
		}
	}
	if errors.Is(err, cufile.HandleNotRegistered) {
		t.Skipf("cuFile takes no file system of this machine: %v", err)
	}
	g.Check("NewFile", err)

	n, err := f.WriteAt(cufile.Memory{Base: from, Size: size}, at)
	g.Check("WriteAt", err)
	if n != size {
		t.Errorf("wrote %d bytes", n)
	}
	onDisk := make([]byte, size)
	if _, err := file.ReadAt(onDisk, at); err != nil || !bytes.Equal(onDisk, data) {
		t.Errorf("the file differs from the device memory: %v", err)
	}
	n, err = f.ReadAt(cufile.Memory{Base: to, Size: size}, at)
	g.Check("ReadAt", err)
	if n != size || !bytes.Equal(Download[byte](g, to, size), data) {
		t.Errorf("read %d bytes, which differ from the written ones", n)
	}

	// Read a part of the file into a part of a pinned buffer.
	base := g.Alloc(1 << 20)
	b, err := l.NewBuffer(base, 1<<20)
	g.Check("NewBuffer", err)
	part := b.Memory()
	part.Offset, part.Size = 8192, 65536
	n, err = f.ReadAt(part, at+4096)
	g.Check("ReadAt into a buffer", err)
	if n != 65536 || !bytes.Equal(Download[byte](g, base, 8192+65536)[8192:], data[4096:4096+65536]) {
		t.Errorf("read %d bytes into the buffer, which differ from the file", n)
	}
	g.Check("Close of the buffer", b.Close())

	n, err = f.ReadAt(cufile.Memory{Base: to, Size: 4096}, at+size-100)
	if n != 100 || err != io.EOF {
		t.Errorf("reading over the end of the file: %d bytes, %v", n, err)
	}
	g.Check("Close of the file", f.Close())
	g.Check("Close of the driver", driver.Close())
}
