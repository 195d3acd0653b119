package memory_test

import (
	"strings"
	"testing"
	"time"

	"github.com/puregpu/puregpu/runtime/driver"
	"github.com/puregpu/puregpu/runtime/driver/simdriver"
	"github.com/puregpu/puregpu/runtime/gpu"
)

// TestImportAgain imports memory of the program again right after the buffer of the first import
// was closed. The second import must work if the work on the buffer has completed, even if the host
// does not know of the completion, and however long the driver takes to unregister the memory.
func TestImportAgain(t *testing.T) {
	onEach(t, 1, func(t *testing.T, d *simdriver.Driver, caps driver.Caps) {
		if !caps.HostRegister {
			t.Skip("no imports")
		}
		dev := openDevice(t, d, 0, gpu.Options{})
		s, mem := dev.Queue(0).NewStream(), make([]byte, 4096)
		imports := map[string]func() (*gpu.Buffer, error){
			"ImportHost":         func() (*gpu.Buffer, error) { return dev.ImportHost(mem, nil) },
			"ImportHostReadOnly": func() (*gpu.Buffer, error) { return dev.ImportHostReadOnly(mem, nil) },
		}
		to := allocate(t, dev, 4096)
		for name, again := range imports {
			for _, x := range []struct {
				name string
				use  func(b *gpu.Buffer) error
			}{
				{"B198 unused", func(*gpu.Buffer) error { return nil }},
				{"B198 used, and waited for", func(b *gpu.Buffer) error {
					must(t, s.Copy(to.All(), b.All()))
					return s.Wait(t.Context())
				}},
				{"B198 used, and not waited for", func(b *gpu.Buffer) error {
					err := s.Copy(to.All(), b.All())
					time.Sleep(time.Second) // time of the bubble, in which the device does the copy
					return err
				}},
			} {
				d.SetLatency(simdriver.OpUnregister, 100*time.Millisecond)
				b, err := again()
				must(t, err)
				must(t, x.use(b))
				must(t, b.Close())
				b, err = again()
				if err != nil {
					t.Fatalf("%s, %s: %v", name, x.name, err)
				}
				must(t, b.Close())
				d.SetLatency(simdriver.OpUnregister, 0)
				b, err = again()
				must(t, err)
				must(t, b.Close())
			}
		}
		// Memory that an open buffer has, or that work still uses, cannot be imported. The errors
		// say what to do.
		b, err := dev.ImportHost(mem, nil)
		must(t, err)
		if _, err := dev.ImportHost(mem[8:16], nil); err == nil || !strings.Contains(err.Error(), "a buffer has this memory that is not closed") {
			t.Errorf("B198 memory of a buffer that is open: %v", err)
		}
		must(t, d.StallDevice(0))
		must(t, s.Copy(to.All(), b.All()))
		must(t, b.Close())
		if _, err := dev.ImportHost(mem, nil); err == nil || !strings.Contains(err.Error(), "wait until the function freed of that import is called") {
			t.Errorf("B198 memory of a closed buffer that is in use: %v", err)
		}
		must(t, d.ResumeDevice(0))
		must(t, s.Wait(t.Context()))
		b, err = dev.ImportHost(mem, nil)
		must(t, err)
		must(t, b.Close())
	})
}
