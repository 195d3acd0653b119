package cudadriver

import (
	"bufio"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/puregpu/puregpu/cuda"
	"github.com/puregpu/puregpu/runtime/gpu"
	"github.com/puregpu/puregpu/runtime/interop"
)

// TestGPUSharingVirtual shares CUDA virtual memory of several sizes with a Python process that
// calls the CUDA driver. Each process maps the other's memory.
func TestGPUSharingVirtual(t *testing.T) {
	if !openGPU(t).Caps().MemSharing {
		t.Skip("the device shares no memory by descriptors")
	}
	for _, size := range []uint64{4096, 2 << 20, 5 << 20} {
		t.Run(fmt.Sprint(size), func(t *testing.T) {
			drv, err := Open(cuda.Options{})
			ok(t, err)
			sharesVirtual(t, drv, "libcuda.so.1", size, 100)
		})
	}
}

// sharesVirtual shares memory with one Python process. The parameter library is the path of the
// CUDA driver that the Python process loads.
func sharesVirtual(t *testing.T, drv *Driver, library string, size uint64, turns int) {
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	dev, err := gpu.Open(drv, 0, gpu.Options{})
	ok(t, err)
	defer func() { ok(t, dev.Close()) }()
	own, err := dev.Alloc(gpu.ShareableMem, size)
	ok(t, err)
	file, err := interop.ExportMemoryFile(own)
	ok(t, err)
	p := startVirtual(ctx, t, library, size, file)
	ok(t, file.Close())
	theirs, err := p.memory()
	ok(t, err)
	back := make(chan struct{})
	far, err := interop.ImportMemoryFile(dev, theirs, size, func() { close(back) })
	ok(t, err)
	ok(t, theirs.Close())

	s := dev.Queue(0).NewStream()
	for i := range turns {
		v := uint32(3*i + 1)
		ok(t, s.Fill(own.All(), binary.LittleEndian.AppendUint32(nil, v)))
		ok(t, s.Wait(ctx)) // wait on the host, because the processes share no event
		p.ask(t, fmt.Sprint("turn ", v), "turned")
		got := make([]byte, size)
		ok(t, s.Download(got, far.All()))
		ok(t, s.Wait(ctx))
		for j := range int(size / 4) {
			want := v
			if uint64(j) < size/2/4 {
				want = v + 1
			}
			if x := binary.LittleEndian.Uint32(got[4*j:]); x != want {
				t.Fatalf("turn %d gave %d as element %d; want %d", i, x, j, want)
			}
		}
	}
	// Memory stays mapped after the process that made it has freed it.
	ok(t, s.Fill(own.All(), binary.LittleEndian.AppendUint32(nil, 77)))
	ok(t, s.Wait(ctx))
	ok(t, own.Close())
	p.ask(t, "free", "freed")
	dev.Queue(0).Flush()
	p.ask(t, "read 77", "right")
	ok(t, s.Fill(far.All(), binary.LittleEndian.AppendUint32(nil, 78)))
	got := make([]byte, 4)
	ok(t, s.Download(got, far.Range(size-4, 4)))
	ok(t, s.Wait(ctx))
	if got[0] != 78 {
		t.Errorf("%v", got)
	}
	ok(t, far.Close())
	<-back
	p.ask(t, "leave", "left")
	p.stdin.Close()
	ok(t, p.cmd.Wait())
}

// TestGPUSharingVirtualKilled kills the Python process. The memory that the process exported keeps
// its content, and the device still works. No stream waits for the process.
func TestGPUSharingVirtualKilled(t *testing.T) {
	if !openGPU(t).Caps().MemSharing {
		t.Skip("the device shares no memory by descriptors")
	}
	drv, err := Open(cuda.Options{})
	ok(t, err)
	virtualKilled(t, drv, "libcuda.so.1")
}

func virtualKilled(t *testing.T, drv *Driver, library string) {
	const size = 1 << 20
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	dev, err := gpu.Open(drv, 0, gpu.Options{})
	ok(t, err)
	defer func() { ok(t, dev.Close()) }()
	own, err := dev.Alloc(gpu.ShareableMem, size)
	ok(t, err)
	file, err := interop.ExportMemoryFile(own)
	ok(t, err)
	defer file.Close()
	p := startVirtual(ctx, t, library, size, file)
	theirs, err := p.memory()
	ok(t, err)
	defer theirs.Close()
	far, err := interop.ImportMemoryFile(dev, theirs, size, nil)
	ok(t, err)
	s := dev.Queue(0).NewStream()
	ok(t, s.Fill(own.All(), []byte{5, 0, 0, 0}))
	ok(t, s.Wait(ctx))
	p.ask(t, "turn 5", "turned")
	ok(t, p.cmd.Process.Kill())
	p.cmd.Wait()
	got := make([]byte, size)
	ok(t, s.Download(got, far.All()))
	ok(t, s.Fill(own.All(), []byte{6, 0, 0, 0}))
	ok(t, s.Copy(own.Range(0, size/2), far.Range(size/2, size/2)))
	mine := make([]byte, size)
	ok(t, s.Download(mine, own.All()))
	ok(t, s.Wait(ctx))
	if got[0] != 6 || got[size/2] != 5 || mine[0] != 5 || mine[size-4] != 6 {
		t.Errorf("the imported memory has %d and %d, the own memory %d and %d", got[0], got[size/2], mine[0], mine[size-4])
	}
	again, err := interop.ImportMemoryFile(dev, theirs, size, nil) // a second import while the descriptor is open
	ok(t, err)
	ok(t, errors.Join(far.Close(), again.Close(), own.Close()))
}

// A virtual is a Python process that shares CUDA virtual memory with this process.
type virtual struct {
	cmd   *exec.Cmd
	stdin io.WriteCloser
	lines *bufio.Scanner
	sock  *os.File
}

// startVirtual starts a Python process, which maps the memory that the parameter file exports. It
// skips the test without Python.
func startVirtual(ctx context.Context, t *testing.T, library string, size uint64, file *os.File) *virtual {
	t.Helper()
	python, err := exec.LookPath("python3")
	if err != nil {
		t.Skip(err)
	}
	machine := map[string]string{"amd64": "x86_64", "arm64": "aarch64"}[runtime.GOARCH]
	if out, err := exec.CommandContext(ctx, python, "-c", "import platform; print(platform.machine())").Output(); err != nil || strings.TrimSpace(string(out)) != machine {
		t.Skipf("needs a python3 for %s, which loads this machine's driver: %s is for %q, %v", machine, python, out, err)
	}
	here, there := socketPair(t)
	defer there.Close()
	cmd := exec.CommandContext(ctx, python, "testdata/virtual.py", fmt.Sprint(size), library)
	cmd.Stderr, cmd.ExtraFiles = os.Stderr, []*os.File{file, there}
	stdin, err := cmd.StdinPipe()
	ok(t, err)
	stdout, err := cmd.StdoutPipe()
	ok(t, err)
	ok(t, cmd.Start())
	t.Cleanup(func() { // for tests that end before they stop the process
		cmd.Process.Kill()
		cmd.Wait()
		here.Close()
	})
	p := &virtual{cmd: cmd, stdin: stdin, lines: bufio.NewScanner(stdout), sock: here}
	p.hear(t, "ready")
	return p
}

func (p *virtual) ask(t *testing.T, what, want string) {
	t.Helper()
	_, err := fmt.Fprintln(p.stdin, what)
	ok(t, err)
	p.hear(t, want)
}

func (p *virtual) hear(t *testing.T, want string) {
	t.Helper()
	if !p.lines.Scan() || p.lines.Text() != want {
		t.Fatalf("the other process says %q, %v; want %q", p.lines.Text(), p.lines.Err(), want)
	}
}

// memory returns the file with which the process exports its memory.
func (p *virtual) memory() (*os.File, error) { return received(p.sock) }
