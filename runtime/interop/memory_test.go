package interop_test

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/puregpu/puregpu/runtime/driver"
	"github.com/puregpu/puregpu/runtime/driver/simdriver"
	"github.com/puregpu/puregpu/runtime/gpu"
	"github.com/puregpu/puregpu/runtime/interop"
)

// shareable allocates memory of kind ShareableMem.
func shareable(t *testing.T, dev *gpu.Device, size uint64) *gpu.Buffer {
	t.Helper()
	b, err := dev.Alloc(gpu.ShareableMem, size)
	must(t, err)
	return b
}

// viaFile exports a buffer as a file and imports the file on another device. The channel is closed
// when the driver has released the import.
func viaFile(t *testing.T, b *gpu.Buffer, on *gpu.Device) (*gpu.Buffer, <-chan struct{}) {
	t.Helper()
	f, err := interop.ExportMemoryFile(b)
	must(t, err)
	defer f.Close()
	back := make(chan struct{})
	o, err := interop.ImportMemoryFile(on, f, b.Size(), func() { close(back) })
	must(t, err)
	return o, back
}

// TestSharedFile tests B190: a process imports another process's memory, and imports its own memory
// at a second address. The memory must outlive the buffer that allocated it, and that buffer's
// device.
func TestSharedFile(t *testing.T) {
	onProcesses(t, func(t *testing.T, ds [2]*simdriver.Driver, devs [2]*gpu.Device, caps driver.Caps) {
		a, b := devs[0], devs[1]
		if !caps.MemSharing {
			_, err := a.Alloc(gpu.ShareableMem, 64)
			f, err2 := os.CreateTemp(t.TempDir(), "")
			must(t, err2)
			defer f.Close()
			_, err2 = interop.ImportMemoryFile(b, f, 64, nil)
			if a.Has(gpu.ShareableMem) || !errors.Is(err, driver.ErrUnsupported) || !errors.Is(err2, driver.ErrUnsupported) {
				t.Errorf("%v, %v", err, err2)
			}
			return
		}
		own := shareable(t, a, 1000)
		if st := a.Stats(); st.Device.Live != 1000 || own.Kind() != gpu.ShareableMem || own.Bytes() != nil {
			t.Errorf("kind %v, %d bytes are counted", own.Kind(), st.Device.Live)
		}
		file, err := interop.ExportMemoryFile(own)
		must(t, err)
		defer file.Close()
		far, back := viaFile(t, own, b)
		part, err := interop.ImportMemoryFile(b, file, 16, nil)
		must(t, err)
		same, err := interop.ImportMemoryFile(a, file, 1000, nil)
		must(t, err)
		if far.Size() != 1000 || far.Kind() != gpu.ShareableMem || far.Device() != b || part.Size() != 16 || part.Ptr() == far.Ptr() || same.Ptr() == own.Ptr() {
			t.Errorf("%d bytes of kind %v at %#x, %d at %#x, %#x and %#x", far.Size(), far.Kind(), far.Ptr(), part.Size(), part.Ptr(), own.Ptr(), same.Ptr())
		}
		if st := b.Stats(); st.Device.Live != 0 || st.Buffers != 2 {
			t.Errorf("%d bytes of %d buffers are counted", st.Device.Live, st.Buffers)
		}
		s := semaphores(t, 1)[0]
		must(t, a.Queue(0).Submit(gpu.Order{Signal: pts(s, 1)}, gpu.Fill(own.All(), []byte{1})))
		must(t, s.Wait(minute(t), 1)) // the host orders the two processes
		must(t, b.Queue(0).Submit(gpu.Order{Signal: pts(s, 2)}, gpu.Fill(part.Range(8, 8), []byte{2})))
		must(t, s.Wait(minute(t), 2))
		want := bytes.Repeat([]byte{1}, 1000)
		copy(want[8:], bytes.Repeat([]byte{2}, 8))
		for what, got := range map[string][]byte{"own": bytesOf(t, a.Queue(0), own), "by another address": bytesOf(t, a.Queue(1), same), "of the other": bytesOf(t, b.Queue(0), far)} {
			if !bytes.Equal(got, want) {
				t.Errorf("%s: %v", what, got[:20])
			}
		}

		// The process that allocated the memory closes its buffers. The other process's buffers
		// keep the memory.
		must(t, own.Close())
		must(t, same.Close())
		a.Queue(0).Flush()
		synctest.Wait()
		if n := calls(ds[0], 0, simdriver.OpFree); n != 2 {
			t.Errorf("freed %d times", n)
		}
		must(t, a.Close())
		if got := bytesOf(t, b.Queue(0), far); !bytes.Equal(got, want) {
			t.Errorf("behind its owner's end: %v", got[:20])
		}
		third, err := interop.ImportMemoryFile(b, file, 1000, nil)
		must(t, err)
		must(t, third.Close())

		// The driver releases the import after the last use of the import.
		host := semaphores(t, 1)[0]
		must(t, part.Close())
		must(t, b.Queue(0).Submit(order(host, 1, host, 2), gpu.Fill(far.All(), []byte{3})))
		must(t, far.Close())
		synctest.Wait()
		if n := calls(ds[1], 0, simdriver.OpFree); n != 2 {
			t.Errorf("freed %d times, and one is in use", n)
		}
		must(t, host.Signal(1))
		must(t, host.Wait(minute(t), 2))
		<-back
		if n := calls(ds[1], 0, simdriver.OpFree); n != 3 {
			t.Errorf("freed %d times", n)
		}
		if _, err := interop.ImportMemoryFile(b, file, 1000, nil); !errors.Is(err, simdriver.ErrInvalidHandle) || !strings.Contains(err.Error(), "no process has that memory any more") {
			t.Errorf("import of memory that no process has: %v", err)
		}
	})
}

// TestSharedFileMistakes checks the errors of sharing memory by files.
func TestSharedFileMistakes(t *testing.T) {
	onProcesses(t, func(t *testing.T, _ [2]*simdriver.Driver, devs [2]*gpu.Device, caps driver.Caps) {
		if !caps.MemSharing {
			return
		}
		a, b := devs[0], devs[1]
		own, plain := shareable(t, a, 1024), allocate(t, a, 64)
		file, err := interop.ExportMemoryFile(own)
		must(t, err)
		defer file.Close()
		other, err := os.CreateTemp(t.TempDir(), "")
		must(t, err)
		defer other.Close()
		closed := shareable(t, a, 64)
		must(t, closed.Close())
		far, _ := viaFile(t, own, b)
		over := newPool(t, a, gpu.PoolOptions{Over: own})
		only := func(_ any, err error) error { return err }
		called := false
		for what, c := range map[string]struct {
			err, want error
			say       string
		}{
			"no file":                   {only(interop.ImportMemoryFile(b, nil, 64, nil)), gpu.ErrArgument, "no file"},
			"nothing":                   {only(interop.ImportMemoryFile(b, file, 0, nil)), gpu.ErrArgument, "0 bytes"},
			"more than there is":        {only(interop.ImportMemoryFile(b, file, 1025, func() { called = true })), simdriver.ErrInvalidValue, "the memory has 1024"},
			"more than there can be":    {only(interop.ImportMemoryFile(b, file, 1<<64-1, nil)), driver.ErrOutOfMemory, ""},
			"another file":              {only(interop.ImportMemoryFile(b, other, 64, nil)), simdriver.ErrInvalidHandle, "import a shared file"},
			"export of other memory":    {only(interop.ExportMemoryFile(plain)), gpu.ErrArgument, "of kind ShareableMem"},
			"export of imported memory": {only(interop.ExportMemoryFile(far)), gpu.ErrArgument, "can be sent on"},
			"export of a part":          {only(interop.ExportMemoryFile(alloca(t, a.Queue(0), gpu.Order{}, over, 16))), gpu.ErrArgument, ""},
			"export of no bytes":        {only(interop.ExportMemoryFile(shareable(t, a, 0))), gpu.ErrArgument, "no memory"},
			"export of a closed buffer": {only(interop.ExportMemoryFile(closed)), gpu.ErrClosed, ""},
			"export of no buffer":       {only(interop.ExportMemoryFile(new(gpu.Buffer))), gpu.ErrArgument, ""},
			"its handle":                {only(interop.ExportMemory(own)), gpu.ErrArgument, "ExportMemoryFile"},
			"a pool of it":              {only(a.NewPool(gpu.PoolOptions{Kind: gpu.ShareableMem})), driver.ErrUnsupported, ""},
			"more than the device has":  {only(a.Alloc(gpu.ShareableMem, 1<<40)), driver.ErrOutOfMemory, ""},
		} {
			if !errors.Is(c.err, c.want) || !strings.Contains(c.err.Error(), c.say) {
				t.Errorf("%s: %v; want %v", what, c.err, c.want)
			}
		}
		if synctest.Wait(); called {
			t.Error("what was not imported is told to be unused")
		}
		must(t, b.Close())
		if _, err := interop.ImportMemoryFile(b, file, 64, nil); !errors.Is(err, gpu.ErrClosed) {
			t.Errorf("a closed device: %v", err)
		}
		must(t, a.Close())
		if _, err := interop.ExportMemoryFile(own); !errors.Is(err, gpu.ErrClosed) {
			t.Errorf("export on a closed device: %v", err)
		}
	})
}

// TestSharedFileKilled tests B190: one of two processes that share memory is killed before its fill
// has run. The other process must continue, and must find only its own writes in the memory.
func TestSharedFileKilled(t *testing.T) {
	for _, killed := range []int{0, 1} { // the owner of the memory, and the importer
		t.Run([]string{"that has made it", "that has imported it"}[killed], func(t *testing.T) {
			onProcesses(t, func(t *testing.T, ds [2]*simdriver.Driver, devs [2]*gpu.Device, caps driver.Caps) {
				if !caps.MemSharing {
					return
				}
				own := shareable(t, devs[0], 64)
				far, back := viaFile(t, own, devs[1])
				bufs := [2]*gpu.Buffer{own, far}
				gone, left := devs[killed], devs[1-killed]
				mine, theirs := bufs[1-killed], bufs[killed]
				s, lost := semaphores(t, 1)[0], semaphores(t, 1)[0]
				must(t, left.Queue(0).Submit(gpu.Order{Signal: pts(s, 1)}, gpu.Fill(mine.All(), []byte{1})))
				must(t, s.Wait(minute(t), 1))
				must(t, ds[0].StallDevice(0))
				must(t, ds[1].StallDevice(0))
				must(t, gone.Queue(0).Submit(gpu.Order{Signal: pts(lost, 1)}, gpu.Fill(theirs.All(), []byte{2}))) // the killed process's device never runs this
				must(t, left.Queue(0).Submit(gpu.Order{Signal: pts(s, 2)}, gpu.Fill(mine.Range(0, 8), []byte{3})))
				ds[killed].Kill()
				if err := lost.Wait(minute(t), 1); !errors.Is(err, driver.ErrLost) || !errors.Is(err, simdriver.ErrKilled) {
					t.Errorf("the process that was killed: %v", err)
				}
				gone.Close()
				must(t, ds[1-killed].ResumeDevice(0))
				must(t, s.Wait(minute(t), 2))
				want := append(bytes.Repeat([]byte{3}, 8), bytes.Repeat([]byte{1}, 56)...)
				if got := bytesOf(t, left.Queue(1), mine); !bytes.Equal(got, want) {
					t.Errorf("the memory has %v", got)
				}
				must(t, mine.Close())
				must(t, left.Close())
				<-back
			})
		})
	}
}

// TestSharedFileFaults is like TestSharingFaults, for memory that is shared by files.
func TestSharedFileFaults(t *testing.T) { sharingFaults(t, shareFiles) }

// shareFiles makes each of two processes use the other's memory, after the owner has closed its
// buffer. If a call fails, shareFiles returns early, with the call's error if sound is true and
// with nil otherwise. Work that never ends, wrong data in the memory, and an import that is never
// released are errors even if sound is false.
func shareFiles(t *testing.T, d, other driver.Driver, sound bool) error {
	var devs [2]*gpu.Device
	for i, d := range []driver.Driver{d, other} {
		dev, err := gpu.Open(d, 0, gpu.Options{Queues: 2, Events: 2})
		if err != nil {
			return failed(sound, err)
		}
		devs[i] = dev
		defer dev.Close() // may return the injected fault
	}
	ctx := in(t, 30*time.Second)
	var errs []error
	for round := range byte(2) {
		var own, far [2]*gpu.Buffer
		var streams [2]*gpu.Stream
		var back [2]chan struct{}
		for i, dev := range devs {
			var err error
			if own[i], err = dev.Alloc(gpu.ShareableMem, 64); err != nil {
				return failed(sound, err)
			}
			streams[i] = dev.Queue(1).NewStream()
		}
		for i, dev := range devs {
			f, err := interop.ExportMemoryFile(own[1-i])
			if err != nil {
				return failed(sound, err)
			}
			back[i] = make(chan struct{})
			far[i], err = interop.ImportMemoryFile(dev, f, 64, func() { close(back[i]) })
			if err := errors.Join(err, f.Close()); err != nil {
				return failed(sound, err)
			}
			streams[i].Fill(own[i].All(), []byte{round})
		}
		for _, s := range streams {
			if err := s.Wait(ctx); err != nil { // the host orders their operations
				return endsIn(ctx, sound, err)
			}
		}
		for i, s := range streams { // close the owner's buffer before the importer uses the memory
			own[1-i].Close()
			s.Fill(far[i].Range(1, 1), []byte{10})
			got := make([]byte, 4)
			s.Download(got, far[i].Range(0, 4))
			err := s.Wait(ctx)
			if err := endsIn(ctx, sound, err); err != nil {
				return err
			}
			if want := []byte{round, 10, round, round}; err == nil && !bytes.Equal(got, want) {
				errs = append(errs, fmt.Errorf("%v came, and %v was to", got, want))
			}
			far[i].Close()
			select {
			case <-back[i]:
			case <-in(t, 5*time.Second).Done(): // after a fault, only closing the device may release the import
				devs[i].Close()
				select {
				case <-back[i]:
				case <-ctx.Done():
					sound = true
				}
				return failed(sound, fmt.Errorf("the other process's memory is not given back\n%s", dump(devs[i])))
			}
		}
	}
	synctest.Wait()
	return errors.Join(errs...)
}
