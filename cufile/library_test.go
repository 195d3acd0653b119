//go:build linux && (amd64 || arm64) && !nogpu

package cufile

import (
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"unsafe"

	"github.com/puregpu/puregpu/cuda"
	"github.com/puregpu/puregpu/internal/toolkittest"
	"github.com/puregpu/puregpu/runtime/dl"
)

func open(opt dl.Options) (toolkittest.Opened, error) {
	l, err := Open(opt)
	if err != nil {
		return nil, err // not a nil *Library
	}
	return l, nil
}

var release = toolkittest.Case{
	Library: "cufile", File: "libcufile.so.0", Release: "1.9", Open: open, Format: FormatVersion,
	Needs: "cuFileDriverSetMaxCacheSize",
	Lacks: "cuFileStatsStart",
	Call:  func(l toolkittest.Opened) error { return l.(*Library).StatsStart() },
}

func TestOpen(t *testing.T) { toolkittest.Run(t, release) }

func TestVersionOfALibraryThatDoesNotTellIt(t *testing.T) {
	for file, want := range map[string]dl.Version{"libcufile.so.1.4.0": 1040, "libcufile.so.1.6.1": 1060, "libcufile.so.0": 0} {
		old := toolkittest.Case{Library: "cufile", File: file, Release: "1.4"}
		l, err := Open(Options{Path: old.Build(t)})
		if err != nil {
			t.Fatal(err)
		}
		if l.Version() != want {
			t.Errorf("%s: version %d, want %d", file, l.Version(), want)
		}
	}
}

func driver(t *testing.T) (*Library, *Driver) {
	t.Helper()
	l, err := Open(Options{Path: release.Build(t)})
	if err != nil {
		t.Fatal(err)
	}
	d, err := l.NewDriver()
	if err != nil {
		t.Fatal(err)
	}
	return l, d
}

func TestDriverIsClosedOnce(t *testing.T) {
	l, d := driver(t)
	if _, err := l.NewDriver(); !errors.Is(err, DriverAlreadyOpen) {
		t.Errorf("opening the driver again: %v", err)
	}
	for range 2 {
		if err := d.Close(); err != nil {
			t.Errorf("Close: %v", err)
		}
	}
	if err := l.DriverClose(); !errors.Is(err, DriverNotInitialized) {
		t.Errorf("closing a closed driver: %v", err)
	}
}

func TestErrorHasBothCodes(t *testing.T) {
	l, _ := driver(t)
	_, err := l.NewBuffer(0x1000, 0)
	if !errors.Is(err, CudaDriverError) || !errors.Is(err, cuda.ErrorOutOfMemory) {
		t.Errorf("the error is %v", err)
	}
	if e, ok := errors.AsType[Error](err); !ok || e != (Error{CudaDriverError, cuda.ErrorOutOfMemory}) {
		t.Errorf("the error is %#v", err)
	}
	for _, want := range []string{"CU_FILE_CUDA_DRIVER_ERROR", "5011", "CUDA_ERROR_OUT_OF_MEMORY"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("the error does not have %q: %v", want, err)
		}
	}
	if text := (Error{Err: InvalidValue}).Error(); text != InvalidValue.Error() {
		t.Errorf("an error without a code of CUDA's is %q", text)
	}
}

func TestBufferIsUnpinnedOnce(t *testing.T) {
	l, d := driver(t)
	b, err := l.NewBuffer(0x1000, 4096)
	if err != nil {
		t.Fatal(err)
	}
	if m := b.Memory(); m != (Memory{Base: 0x1000, Size: 4096}) {
		t.Errorf("the buffer is %+v", m)
	}
	if err := b.Close(); err != nil {
		t.Error(err)
	}
	d.Close() // the library returns an error after Close
	if err := b.Close(); err != nil {
		t.Error(err)
	}
}

// hostMemory pins host memory, which the fake treats as device memory.
func hostMemory(t *testing.T, data []byte) Memory {
	var p runtime.Pinner
	p.Pin(&data[0])
	t.Cleanup(p.Unpin)
	return Memory{Base: cuda.DevicePtr(uintptr(unsafe.Pointer(&data[0]))), Size: int64(len(data))}
}

func TestFileReadsAndWrites(t *testing.T) {
	l, _ := driver(t)
	file, err := os.Create(filepath.Join(t.TempDir(), "data"))
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	f, err := l.NewFile(file)
	if err != nil {
		t.Fatal(err)
	}
	data := bytes.Repeat([]byte("GPUDirect"), 450) // the fake moves fewer bytes than requested
	if n, err := f.WriteAt(hostMemory(t, data), 10); n != int64(len(data)) || err != nil {
		t.Fatalf("WriteAt: %d bytes, %v", n, err)
	}
	back := make([]byte, len(data)+10)
	m := hostMemory(t, back)
	m.Offset, m.Size = 10, m.Size-10
	if n, err := f.ReadAt(m, 10); n != int64(len(data)) || err != nil {
		t.Fatalf("ReadAt: %d bytes, %v", n, err)
	}
	if !bytes.Equal(back[10:], data) {
		t.Error("other bytes were read than written")
	}
	if n, err := f.ReadAt(hostMemory(t, back), 30); n != int64(len(data))-20 || err != io.EOF {
		t.Errorf("reading over the end: %d bytes, %v", n, err)
	}
	if n, err := f.ReadAt(Memory{}, 0); n != 0 || err != nil {
		t.Errorf("reading nothing: %d bytes, %v", n, err)
	}
	for range 2 {
		if err := f.Close(); err != nil {
			t.Errorf("Close: %v", err)
		}
	}
	if _, err := f.ReadAt(m, 0); !errors.Is(err, os.ErrClosed) {
		t.Errorf("reading a closed file: %v", err)
	}
	if _, err := l.NewFile(nil); !errors.Is(err, os.ErrInvalid) {
		t.Errorf("no file: %v", err)
	}
}

func TestTransferErrors(t *testing.T) {
	l, _ := driver(t)
	name := filepath.Join(t.TempDir(), "data")
	if err := os.WriteFile(name, make([]byte, 100), 0o666); err != nil {
		t.Fatal(err)
	}
	file, err := os.Open(name) // opened for reading only
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	f, err := l.NewFile(file)
	if err != nil {
		t.Fatal(err)
	}
	data := make([]byte, 64)
	for what, c := range map[string]struct {
		err  error
		want error
	}{
		"of the file system": {errorOf(f.WriteAt(hostMemory(t, data), 0)), syscall.EBADF},
		"of the library":     {errorOf(f.ReadAt(hostMemory(t, data[:13]), 0)), CudaPointerInvalid},
		"of an old library":  {errorOf(f.WriteAt(hostMemory(t, data[:11]), 0)), syscall.EINVAL},
	} {
		e, ok := errors.AsType[*os.PathError](c.err)
		if !ok || e.Path != name || !errors.Is(c.err, c.want) {
			t.Errorf("an error %s is %v, want %v", what, c.err, c.want)
		}
	}
	for _, err := range []error{
		errorOf(f.ReadAt(hostMemory(t, data), -1)), errorOf(f.ReadAt(Memory{Size: -1}, 0)), errorOf(f.ReadAt(Memory{Offset: -1, Size: 1}, 0)),
	} {
		if err == nil || !strings.Contains(err.Error(), "negative number") {
			t.Errorf("a negative number: %v", err)
		}
	}
}

func errorOf(n int64, err error) error { return err }

func TestBatchEntryTakesDeviceMemory(t *testing.T) {
	var p IOParams
	p.U.Batch().SetDevPtr(0x7f0000001000)
	if got := uintptr(p.U.Batch().DevPtrBase); got != 0x7f0000001000 {
		t.Errorf("the address is %#x", got)
	}
}

// TestRealSymbols opens this machine's cuFile. Opening it needs no GPU.
func TestRealSymbols(t *testing.T) {
	l := toolkittest.Real(t, "cufile", open, FormatVersion).(*Library)
	if l.Version() == 0 {
		t.Error("the version is unknown")
	}
	if n, err := l.UseCount(); n != 0 || err != nil {
		t.Errorf("the driver is open %d times: %v", n, err)
	}
	if v, err := l.GetVersion(); err == nil && v != int32(l.Version()) {
		t.Errorf("the library tells version %d", v)
	}
	t.Chdir(t.TempDir()) // the library writes a log in the current folder
	d, err := l.NewDriver()
	if err == nil {
		err = d.Close()
		if err != nil {
			t.Errorf("Close: %v", err)
		}
		return
	}
	if e, ok := errors.AsType[Error](err); !ok || strings.HasPrefix(e.Err.Name(), "OpError(") {
		t.Errorf("the driver's error is %v", err)
	}
}
