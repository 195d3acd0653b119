package cudadriver

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"strings"
	"syscall"
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
	x, err := meet(ctx, dev.Queue(0), python, with, size)
	if errors.Is(err, errMissing) {
		t.Skip(err)
	}
	ok(t, err)
	seen, err := dev.Alloc(gpu.DeviceMem, 4*rounds)
	ok(t, err)
	start := time.Now()
	for i := range rounds {
		ok(t, x.turn(i+1, seen.Range(uint64(4*i), 4)))
	}
	took := time.Since(start)
	data := make([]byte, 4*rounds)
	x.s.Download(data, seen.All())
	ok(t, x.s.Wait(ctx))
	for i := range rounds {
		if v := int(binary.LittleEndian.Uint32(data[4*i:])); v != i+1 {
			t.Fatalf("round %d has brought %d", i+1, v)
		}
	}
	t.Logf("%d rounds with %s took %v", rounds, with, took)
	ok(t, x.tell("leave"))
	ok(t, x.hear("left")) // it has closed what is ours
	ok(t, x.close())
	x.stdin.Close()
	ok(t, x.cmd.Wait())
}

var errMissing = errors.New("Python lacks a package")

// An exchange is of a tensor with a process of Python's.
type exchange struct {
	ctx      context.Context
	cmd      *exec.Cmd
	stdin    io.WriteCloser
	lines    *bufio.Scanner
	theirs   gpu.MemoryHandle
	own, far *gpu.Buffer
	there    *gpu.SharedEvent // recorded by us
	ready    *gpu.SharedEvent // recorded by the other process
	s        *gpu.Stream
	gone     chan struct{} // closed when far has been given back
}

// meet starts a process of Python's, which gets the files as 3 and so on, and exchanges handles with it. The work will be the queue's.
func meet(ctx context.Context, q *gpu.Queue, python, with string, size uint64, files ...*os.File) (*exchange, error) {
	dev := q.Device()
	cmd := exec.CommandContext(ctx, python, "testdata/exchange.py", with, fmt.Sprint(size))
	cmd.Stderr, cmd.ExtraFiles = os.Stderr, files
	stdin, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	x := &exchange{ctx: ctx, cmd: cmd, stdin: stdin, lines: bufio.NewScanner(stdout), s: q.NewStream(), gone: make(chan struct{})}
	var theirs named
	if !x.lines.Scan() {
		err := cmd.Wait()
		if e, is := errors.AsType[*exec.ExitError](err); is && e.ExitCode() == missing {
			err = fmt.Errorf("%w: %s", errMissing, with)
		}
		return nil, errors.Join(err, x.lines.Err())
	}
	if err := json.Unmarshal(x.lines.Bytes(), &theirs); err != nil {
		return nil, err
	}
	memory, err := hex.DecodeString(theirs.Memory)
	event, err2 := hex.DecodeString(theirs.Event)
	if err := errors.Join(err, err2); err != nil || len(memory) != 64 || len(event) != 64 {
		return nil, fmt.Errorf("handles of %d and %d bytes, %v", len(memory), len(event), err)
	}
	x.theirs = gpu.MemoryHandle{Handle: [64]byte(memory), Offset: theirs.Offset, Size: theirs.Size}
	if x.far, err = dev.ImportShared(x.theirs, func() { close(x.gone) }); err != nil {
		return nil, err
	}
	if x.ready, err = dev.ImportSharedEvent(gpu.EventHandle{Handle: [64]byte(event)}, nil); err != nil {
		return nil, err
	}
	if x.own, err = dev.Alloc(gpu.DeviceMem, size); err != nil {
		return nil, err
	}
	if x.there, err = dev.NewSharedEvent(); err != nil {
		return nil, err
	}
	mh, err := x.own.Export()
	if err != nil {
		return nil, err
	}
	eh, err := x.there.Export()
	if err != nil {
		return nil, err
	}
	told, err := json.Marshal(named{hex.EncodeToString(mh.Handle[:]), mh.Offset, mh.Size, hex.EncodeToString(eh.Handle[:])})
	if err != nil {
		return nil, err
	}
	if err := x.tell(string(told)); err != nil {
		return nil, err
	}
	return x, x.hear("ready")
}

func (x *exchange) tell(what string) error {
	_, err := fmt.Fprintln(x.stdin, what)
	return err
}

func (x *exchange) hear(what string) error {
	if !x.lines.Scan() {
		return fmt.Errorf("the other process has ended: %w", cmp.Or(x.lines.Err(), io.EOF))
	}
	if x.lines.Text() != what {
		return fmt.Errorf("the other process says %q; want %q", x.lines.Text(), what)
	}
	return nil
}

// issued waits until all that the stream was given is issued.
func (x *exchange) issued() error {
	p := x.s.Point()
	return p.Semaphore.WaitIssued(x.ctx, p.Value)
}

// turn has a number go there and come back, to seen.
func (x *exchange) turn(v int, seen gpu.Range) error {
	x.s.Fill(x.own.All(), binary.LittleEndian.AppendUint32(nil, uint32(v)))
	x.s.RecordEvent(x.there)
	if err := x.issued(); err != nil {
		return err
	}
	if err := x.tell("turn"); err != nil {
		return err
	}
	if err := x.hear("turned"); err != nil { // it has copied what we have filled to what it has exported, and recorded
		return err
	}
	x.s.WaitEvent(x.ready)
	x.s.Copy(seen, x.far.Range(uint64(4*v)%x.theirs.Size, 4))
	return x.issued()
}

func (x *exchange) close() error {
	return errors.Join(x.far.Close(), x.ready.Close(), x.there.Close(), x.own.Close())
}

// TestGPUSharingKilled kills one of two processes that exchange a tensor, in the middle: ten times that of Python, ten times that of Go. The
// other one learns of it by its pipe, and goes on. What its stream was given to wait for may never come, so each exchange has a queue of
// its own; a stream of which the wait is never over is given up when the device is closed.
func TestGPUSharingKilled(t *testing.T) {
	const env, size, kills = "PUREGPU_TEST_SHARING_KILLED", 1 << 20, 10
	with := os.Getenv(env)
	if with == "" {
		openGPU(t)
	}
	python, err := exec.LookPath("python3")
	if err != nil {
		t.Skip(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	drv, err := Open(cuda.Options{})
	ok(t, err)
	dev, err := gpu.Open(drv, 0, gpu.Options{Queues: 1 + kills})
	ok(t, err)
	stuck := 0
	defer func() {
		if err := dev.Close(); err != nil && stuck == 0 {
			t.Error(err)
		} else {
			t.Logf("%d streams wait for what never comes; Close says: %v", stuck, err)
		}
	}()
	seen, err := dev.Alloc(gpu.DeviceMem, 4)
	ok(t, err)
	if with != "" { // the process of Go's that will be killed
		x, err := meet(ctx, dev.Queue(0), python, with, size, os.NewFile(3, "report"))
		ok(t, err)
		for v := 1; ; v++ {
			ok(t, x.turn(v, seen.All()))
			fmt.Println("turn", v)
		}
	}
	own, err := dev.Alloc(gpu.DeviceMem, 4)
	ok(t, err)
	check := func() { // that the device does what it is given
		t.Helper()
		short, cancel := context.WithTimeout(ctx, 5*time.Second)
		defer cancel()
		s, data := dev.Queue(kills).NewStream(), make([]byte, 4)
		s.Fill(own.All(), []byte{1, 2, 3, 4})
		s.Download(data, own.All())
		if err := s.Wait(short); err != nil || !bytes.Equal(data, []byte{1, 2, 3, 4}) {
			t.Fatalf("%v, %v", data, err)
		}
	}
	for i := range kills {
		with := "cuda"
		if i == 0 {
			with = "torch"
		}
		x, err := meet(ctx, dev.Queue(i), python, with, size)
		if errors.Is(err, errMissing) {
			x, err = meet(ctx, dev.Queue(i), python, "cuda", size)
		}
		ok(t, err)
		last := 1 + rand.IntN(100)
		for v := 1; err == nil; v++ {
			if v == last {
				time.AfterFunc(rand.N(100*time.Microsecond), func() { x.cmd.Process.Kill() })
			}
			err = x.turn(v, seen.All())
		}
		x.cmd.Wait() // was killed
		if !errors.Is(err, io.EOF) && !errors.Is(err, syscall.EPIPE) {
			t.Fatalf("kill %d: %v", i, err)
		}
		short, cancel := context.WithTimeout(ctx, time.Second)
		if err := x.s.Wait(short); err != nil {
			t.Logf("kill %d: %v", i, err)
			stuck++
		}
		cancel()
		check()
		ok(t, x.close())
		check()
		if stuck > 0 { // it is this process's until no stream waits for a process any more, which is never
			continue
		}
		select {
		case <-x.gone:
		case <-ctx.Done():
			t.Fatalf("kill %d: the memory was not given back", i)
		}
		if _, err := dev.ImportShared(x.theirs, nil); err == nil {
			t.Errorf("kill %d: memory of a process that is no more was imported", i)
		} else if i == 0 {
			t.Logf("to import memory of a process that is no more: %v", err)
		}
		check()
	}
	for i := range kills {
		r, w, err := os.Pipe()
		ok(t, err)
		exe, err := os.Executable()
		ok(t, err)
		cmd := exec.CommandContext(ctx, exe, "-test.run=^TestGPUSharingKilled$")
		cmd.Env, cmd.ExtraFiles = append(os.Environ(), env+"=cuda", "PUREGPU_TEST_REQUIRE_GPU=1"), []*os.File{w}
		cmd.Stderr = os.Stderr
		stdout, err := cmd.StdoutPipe()
		ok(t, err)
		ok(t, cmd.Start())
		w.Close()
		lines, last := bufio.NewScanner(stdout), fmt.Sprint("turn ", 1+rand.IntN(100))
		for lines.Scan() && lines.Text() != last {
			if !strings.HasPrefix(lines.Text(), "turn ") {
				t.Log(lines.Text())
			}
		}
		time.Sleep(rand.N(100 * time.Microsecond)) // anywhere in a turn
		ok(t, cmd.Process.Kill())
		cmd.Wait() // was killed
		ok(t, r.SetReadDeadline(time.Now().Add(10*time.Second)))
		report, err := io.ReadAll(r)
		r.Close()
		if err != nil || string(report) != "goes on\n" {
			t.Errorf("kill %d after %s: Python says %q, %v", i, last, report, err)
		}
		check()
	}
}
