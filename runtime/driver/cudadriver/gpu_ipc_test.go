package cudadriver

import (
	"bufio"
	"context"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"testing"
	"time"

	"github.com/puregpu/puregpu/cuda"
	"github.com/puregpu/puregpu/runtime/driver"
	"github.com/puregpu/puregpu/runtime/gpu"
	"github.com/puregpu/puregpu/runtime/gpu/gputest"
)

// TestGPUSharingFar is the other process of the tests of what processes share.
func TestGPUSharingFar(t *testing.T) {
	gputest.BeFar(t, func() (driver.Driver, error) { return Open(cuda.Options{}) })
}

// TestGPUSharingEnd kills a process that is about to record an event for which another one waits. It does so in a process of its own, for
// nobody says whether the device is lost by that, and logs what becomes of it.
func TestGPUSharingEnd(t *testing.T) {
	const env = "PUREGPU_TEST_SHARING_END"
	if os.Getenv(env) == "" {
		openGPU(t)
		exe, err := os.Executable()
		ok(t, err)
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute) // whatever hangs
		defer cancel()
		cmd := exec.CommandContext(ctx, exe, "-test.run=^TestGPUSharingEnd$", "-test.v")
		cmd.Env = append(os.Environ(), env+"=1", "PUREGPU_TEST_REQUIRE_GPU=1")
		out, err := cmd.CombinedOutput()
		t.Logf("%s", out)
		if err != nil {
			t.Error(err)
		}
		return
	}
	drv, err := Open(cuda.Options{})
	ok(t, err)
	gputest.CheckKilled(t, drv, gputest.StartFar(t, "TestGPUSharingFar"))
}

// A named is what the processes of TestGPUSharingPython tell each other of their memory and their events, in JSON.
type named struct {
	Memory string `json:"memory"` // cudaIpcMemHandle_t, in hexadecimal digits
	Offset uint64 `json:"offset"` // bytes from where the allocation begins
	Size   uint64 `json:"size"`
	Event  string `json:"event"` // cudaIpcEventHandle_t
}

// TestGPUSharingPython exchanges a tensor with a process of Python's, a thousand times each way: by PyTorch, by CuPy, and by calls of the CUDA
// driver without either. Each waits for the other by events, and copies on the device.
func TestGPUSharingPython(t *testing.T) {
	openGPU(t)
	python, err := exec.LookPath("python3")
	if err != nil {
		t.Skip(err)
	}
	for _, with := range []string{"torch", "cupy", "cuda"} {
		t.Run(with, func(t *testing.T) { exchangeWith(t, python, with) })
	}
}

// missing is the exit status of a program of Python's that lacks a package.
const missing = 77

func exchangeWith(t *testing.T, python, with string) {
	const rounds, size = 1000, 1 << 20
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	drv, err := Open(cuda.Options{})
	ok(t, err)
	dev, err := gpu.Open(drv, 0, gpu.Options{})
	ok(t, err)
	defer func() { ok(t, dev.Close()) }()
	cmd := exec.CommandContext(ctx, python, "testdata/exchange.py", with, fmt.Sprint(size))
	cmd.Stderr = os.Stderr
	stdin, err := cmd.StdinPipe()
	ok(t, err)
	stdout, err := cmd.StdoutPipe()
	ok(t, err)
	ok(t, cmd.Start())
	defer func() {
		stdin.Close()
		err := cmd.Wait()
		if e, is := errors.AsType[*exec.ExitError](err); is && e.ExitCode() == missing {
			return
		}
		if err != nil {
			t.Error(err)
		}
	}()
	lines := bufio.NewScanner(stdout)
	var theirs named
	if !lines.Scan() {
		t.Skipf("%s has no %s", python, with)
	}
	ok(t, json.Unmarshal(lines.Bytes(), &theirs))
	hear := func(what string) {
		t.Helper()
		if !lines.Scan() {
			t.Fatalf("%s: the other process has ended: %v", what, lines.Err())
		}
		if lines.Text() != what {
			t.Fatalf("the other process says %q, want %q", lines.Text(), what)
		}
	}
	handle := func(digits string) (h [64]byte) {
		t.Helper()
		data, err := hex.DecodeString(digits)
		if err != nil || copy(h[:], data) != 64 || len(data) != 64 {
			t.Fatalf("no handle: %q, %v", digits, err)
		}
		return h
	}
	far, err := dev.ImportShared(gpu.MemoryHandle{Handle: handle(theirs.Memory), Offset: theirs.Offset, Size: theirs.Size}, nil)
	ok(t, err)
	ready, err := dev.ImportSharedEvent(gpu.EventHandle{Handle: handle(theirs.Event)}, nil)
	ok(t, err)
	own, err := dev.Alloc(gpu.DeviceMem, size)
	ok(t, err)
	seen, err := dev.Alloc(gpu.DeviceMem, 4*rounds)
	ok(t, err)
	there, err := dev.NewSharedEvent()
	ok(t, err)
	mh, err := own.Export()
	ok(t, err)
	eh, err := there.Export()
	ok(t, err)
	told, err := json.Marshal(named{hex.EncodeToString(mh.Handle[:]), mh.Offset, mh.Size, hex.EncodeToString(eh.Handle[:])})
	ok(t, err)
	tell := func(what string) {
		t.Helper()
		if _, err := fmt.Fprintln(stdin, what); err != nil {
			t.Fatal(err)
		}
	}
	tell(string(told))
	hear("ready")
	s := dev.Queue(0).NewStream()
	issued := func() {
		t.Helper()
		p := s.Point()
		ok(t, p.Semaphore.WaitIssued(ctx, p.Value))
	}
	start := time.Now()
	for i := range rounds {
		v := i + 1
		s.Fill(own.All(), []byte{byte(v), byte(v >> 8), 0, 0})
		s.RecordEvent(there)
		issued()
		tell("turn")
		hear("turned") // it has copied what we have filled to what it has exported, and recorded
		s.WaitEvent(ready)
		s.Copy(seen.Range(uint64(4*i), 4), far.Range(uint64(4*i)%theirs.Size, 4))
		issued()
	}
	took := time.Since(start)
	data := make([]byte, 4*rounds)
	s.Download(data, seen.All())
	ok(t, s.Wait(ctx))
	for i := range rounds {
		if v := int(data[4*i]) | int(data[4*i+1])<<8 | int(data[4*i+2])<<16; v != i+1 {
			t.Fatalf("round %d has brought %d", i+1, v)
		}
	}
	t.Logf("%d rounds with %s took %v", rounds, with, took)
	tell("leave")
	hear("left") // it has closed what is ours
	ok(t, errors.Join(far.Close(), ready.Close(), there.Close(), own.Close()))
}
