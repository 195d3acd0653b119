package cudadriver

import (
	"bytes"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/puregpu/puregpu/cuda"
	"github.com/puregpu/puregpu/runtime/gpu"
)

// TestGPUMappedFile copies from a file that is mapped read-only, like a model's weights.
func TestGPUMappedFile(t *testing.T) {
	d := openGPU(t)
	if !d.caps.ReadOnlyRegister {
		t.Skip("memory cannot be registered for reading")
	}
	const n = 1 << 20
	want := bytes.Repeat([]byte("weights."), n/8)
	name := filepath.Join(t.TempDir(), "weights")
	ok(t, os.WriteFile(name, want, 0o600))
	file, err := os.Open(name)
	ok(t, err)
	defer file.Close()
	mem, err := syscall.Mmap(int(file.Fd()), 0, n, syscall.PROT_READ, syscall.MAP_PRIVATE)
	ok(t, err)
	unmap := func() { ok(t, syscall.Munmap(mem)) }

	drv, err := Open(cuda.Options{})
	ok(t, err)
	dev, err := gpu.Open(drv, 0, gpu.Options{})
	ok(t, err)
	if b, err := dev.ImportHost(mem, nil); err == nil {
		t.Log("the driver pins read-only memory for writing")
		ok(t, b.Close())
	} else {
		t.Logf("pinned for writing: %v", err)
	}
	freed := make(chan struct{})
	weights, err := dev.ImportHostReadOnly(mem, func() { close(freed) })
	if err != nil {
		unmap()
		t.Fatal(err, dev.Close())
	}
	to, err := dev.Alloc(gpu.DeviceMem, n)
	ok(t, err)
	s, err := gpu.NewSemaphore(0)
	ok(t, err)
	got := make([]byte, n)
	q := dev.Queue(0)
	at := func(v uint64) []gpu.Point { return []gpu.Point{{Semaphore: s, Value: v}} }
	ok(t, q.Submit(gpu.Order{Signal: at(1)}, gpu.Copy(to.All(), weights.All())))
	ok(t, q.Submit(gpu.Order{Wait: at(1), Signal: at(2)}, gpu.Download(got, to.All())))
	ok(t, weights.Close())
	ok(t, s.Wait(t.Context(), 2))
	if !bytes.Equal(got, want) {
		t.Error("the copy differs from the file")
	}
	<-freed
	ok(t, to.Close())
	ok(t, dev.Close())
	unmap()
}
