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
	"github.com/puregpu/puregpu/runtime/interop"
)

// TestGPUSharingFar is the second process of the sharing tests.
func TestGPUSharingFar(t *testing.T) {
	gputest.BeFar(t, func() (driver.Driver, error) { return Open(cuda.Options{}) })
}

// TestGPUSharingEnd kills a process that is about to record an event for which another process
// waits, and logs the result. The test runs in a subprocess, because the device may be lost.
func TestGPUSharingEnd(t *testing.T) {
	const env = "PUREGPU_TEST_SHARING_END"
	if os.Getenv(env) == "" {
		openGPU(t)
		exe, err := os.Executable()
		ok(t, err)
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute) // limits a hang
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

// A named holds the handles that the processes of TestGPUSharingPython exchange as JSON.
type named struct {
	Memory string `json:"memory"` // cudaIpcMemHandle_t, in hexadecimal digits
	Offset uint64 `json:"offset"` // offset from the start of the allocation, in bytes
	Size   uint64 `json:"size"`
	Event  string `json:"event"` // cudaIpcEventHandle_t
}

// TestGPUSharingPython passes a tensor to and from a Python process a thousand times: with PyTorch,
// with CuPy, and with direct calls of the CUDA driver. Each side waits for the other with events,
// and copies on the device. Each round checks one element. The first round, the last and every
// hundredth check all elements, which all differ.
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

// missing is the exit status of a Python program that lacks a package.
const missing = 77

func exchangeWith(t *testing.T, python, with string) {
	const rounds, size = 1000, sharedSize
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
		if i == 0 || i%100 == 99 || i == rounds-1 {
			ok(t, x.whole(i+1, seen.Range(uint64(4*i), 4)))
		} else {
			ok(t, x.turn(i+1, seen.Range(uint64(4*i), 4)))
		}
	}
	took := time.Since(start)
	data := make([]byte, 4*rounds)
	x.s.Download(data, seen.All())
	ok(t, x.s.Wait(ctx))
	for i := range rounds {
		if v := int(binary.LittleEndian.Uint32(data[4*i:])); v != i+1 {
			t.Fatalf("round %d gave %d", i+1, v)
		}
	}
	t.Logf("%d rounds with %s took %v", rounds, with, took)
	ok(t, x.tell("leave"))
	ok(t, x.hear("left")) // the Python process has closed this process's exports
	ok(t, x.close())
	x.stdin.Close()
	ok(t, x.cmd.Wait())
}

var errMissing = errors.New("Python lacks a package")

// An exchange passes a tensor to and from a Python process. The buffer own is exported to that
// process, and the buffer far is imported from it.
type exchange struct {
	ctx      context.Context
	cmd      *exec.Cmd
	stdin    io.WriteCloser
	lines    *bufio.Scanner
	theirs   interop.MemoryHandle
	own, far *gpu.Buffer
	there    *interop.Event // recorded by this process
	ready    *interop.Event // recorded by the other process
	s        *gpu.Stream
	gone     chan struct{} // closed when far has been freed
}

// meet starts a Python process, and exchanges handles with it. The process gets files as its
// descriptors 3 and up. The exchange submits its work to the queue.
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
	x.theirs = interop.MemoryHandle{Handle: [64]byte(memory), Offset: theirs.Offset, Size: theirs.Size}
	if x.far, err = interop.ImportMemory(dev, x.theirs, func() { close(x.gone) }); err != nil {
		return nil, err
	}
	if x.ready, err = interop.ImportEvent(dev, interop.EventHandle{Handle: [64]byte(event)}, nil); err != nil {
		return nil, err
	}
	if x.own, err = dev.Alloc(gpu.DeviceMem, size); err != nil {
		return nil, err
	}
	if x.there, err = interop.NewSharedEvent(dev); err != nil {
		return nil, err
	}
	mh, err := interop.ExportMemory(x.own)
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

// issued waits until all work of the stream is issued.
func (x *exchange) issued() error {
	p := x.s.Point()
	return p.Semaphore.WaitIssued(x.ctx, p.Value)
}

// turn sends a tensor with the value v in all elements to the other process and back. It copies one
// element of the result to the range seen.
func (x *exchange) turn(v int, seen gpu.Range) error {
	x.s.Fill(x.own.All(), binary.LittleEndian.AppendUint32(nil, uint32(v)))
	return x.pass(v, seen)
}

// whole sends a tensor of different elements to the other process and back, and checks all of them.
// It copies the element with the value v to the range seen.
func (x *exchange) whole(v int, seen gpu.Range) error {
	data := make([]byte, x.theirs.Size)
	first := uint32(v) - uint32(4*uint64(v)%x.theirs.Size/4)
	for i := range len(data) / 4 {
		binary.LittleEndian.PutUint32(data[4*i:], first+uint32(i))
	}
	x.s.Do(gpu.UploadCopy(x.own.All(), data))
	if err := x.pass(v, seen); err != nil {
		return err
	}
	clear(data)
	x.s.Download(data, x.far.All())
	if err := x.s.Wait(x.ctx); err != nil {
		return err
	}
	for i := range len(data) / 4 {
		if got, want := binary.LittleEndian.Uint32(data[4*i:]), first+uint32(i); got != want {
			return fmt.Errorf("round %d gave %#x as element %d; want %#x", v, got, i, want)
		}
	}
	return nil
}

// pass sends the content of x.own to the other process and back. It copies one element of the
// result to the range seen.
func (x *exchange) pass(v int, seen gpu.Range) error {
	x.s.Do(interop.RecordEvent(x.there))
	if err := x.issued(); err != nil {
		return err
	}
	if err := x.tell("turn"); err != nil {
		return err
	}
	if err := x.hear("turned"); err != nil { // the Python process has copied x.own to the memory that it exports, and recorded its event
		return err
	}
	x.s.Do(interop.WaitEvent(x.ready))
	x.s.Copy(seen, x.far.Range(uint64(4*v)%x.theirs.Size, 4))
	return x.issued()
}

func (x *exchange) close() error {
	return errors.Join(x.far.Close(), x.ready.Close(), x.there.Close(), x.own.Close())
}

// TestGPUSharingKilled kills one of two processes while they exchange a tensor: ten times the
// Python process, and ten times the Go process. Half of the runs use PyTorch. The other process
// sees the end of its pipe, reports it, and continues. Each run has its own subprocess, because a
// stream may wait for work that never comes.
func TestGPUSharingKilled(t *testing.T) {
	const env, kills = "PUREGPU_TEST_SHARING_KILLED", 5
	if doing := os.Getenv(env); doing != "" {
		what, with, _ := strings.Cut(doing, " ")
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		if what == "kill" {
			killsPython(ctx, t, with)
		} else {
			isKilled(ctx, t, with)
		}
		return
	}
	openGPU(t)
	if _, err := exec.LookPath("python3"); err != nil {
		t.Skip(err)
	}
	exe, err := os.Executable()
	ok(t, err)
	// command returns the command that runs this test as the given process.
	command := func(ctx context.Context, doing string) *exec.Cmd {
		cmd := exec.CommandContext(ctx, exe, "-test.run=^TestGPUSharingKilled$", "-test.v")
		cmd.Env = append(os.Environ(), env+"="+doing, "PUREGPU_TEST_REQUIRE_GPU=1")
		return cmd
	}
	right, all := 0, 0 // counted only for the packages that Python has
	for _, with := range []string{"torch", "cuda"} {
		missing := 0
		// try runs a subtest with a deadline, and counts it as missing if it skips, or as right if
		// it passes.
		try := func(name string, f func(ctx context.Context, t *testing.T)) {
			t.Run(name, func(t *testing.T) {
				ctx, cancel := context.WithTimeout(t.Context(), 90*time.Second)
				defer cancel()
				defer func() {
					switch {
					case t.Skipped():
						missing++
					case !t.Failed():
						right++
					}
				}()
				f(ctx, t)
			})
		}
		for i := range kills {
			try(fmt.Sprintf("Python is killed/%s %d", with, i), func(ctx context.Context, t *testing.T) {
				out, err := command(ctx, "kill "+with).CombinedOutput()
				t.Logf("%s", out)
				if err == nil && bytes.Contains(out, []byte("--- SKIP")) {
					t.Skipf("there is no %s", with)
				}
				if err != nil || !bytes.Contains(out, []byte("\ngoes on\n")) {
					t.Errorf("the Go process does not continue: %v", err)
				}
			})
			try(fmt.Sprintf("Go is killed/%s %d", with, i), func(ctx context.Context, t *testing.T) {
				last := 1 + rand.IntN(100)
				report := killGo(ctx, t, command(ctx, "exchange "+with), last)
				var turns int
				if n, err := fmt.Sscanf(report, "the other process has ended after %d turns", &turns); n != 1 || turns < last || !strings.HasSuffix(report, "\ngoes on\n") {
					t.Errorf("after %d turns Python says %q, %v", last, report, err)
				}
				t.Log(report)
			})
		}
		if missing < 2*kills { // Python either has the package or not
			all += 2 * kills
		}
	}
	t.Logf("%d of %d surviving processes have continued", right, all)
	if all == 0 {
		t.Skip("Python has none of the packages")
	}
	if right != all {
		t.Errorf("%d of %d surviving processes have not continued", all-right, all)
	}
}

// sharedSize is the size of the tensor.
const sharedSize = 1 << 20

// killsPython exchanges a tensor with a Python process and kills the process. It checks that all
// waits for the process return an error, and that the device still works.
func killsPython(ctx context.Context, t *testing.T, with string) {
	drv, err := Open(cuda.Options{})
	ok(t, err)
	dev, err := gpu.Open(drv, 0, gpu.Options{Queues: 2})
	ok(t, err)
	own, err := dev.Alloc(gpu.DeviceMem, 4)
	ok(t, err)
	seen, err := dev.Alloc(gpu.DeviceMem, 4)
	ok(t, err)
	python, err := exec.LookPath("python3")
	ok(t, err)
	x, err := meet(ctx, dev.Queue(0), python, with, sharedSize)
	if errors.Is(err, errMissing) {
		t.Skip(err, dev.Close())
	}
	ok(t, err)

	// A goroutine and an operation of another queue wait for the semaphore news. The operation then
	// signals the semaphore behind.
	news, err := gpu.NewSemaphore(0)
	ok(t, err)
	behind, err := gpu.NewSemaphore(0)
	ok(t, err)
	told := make(chan error, 1)
	go func() { told <- news.Wait(ctx, 1) }()
	ok(t, dev.Queue(1).Submit(order(news, 1, behind, 1), gpu.Fill(own.All(), []byte{0})))

	last, turn := 1+rand.IntN(100), 0
	for err == nil {
		if turn++; turn == last {
			time.AfterFunc(rand.N(100*time.Microsecond), func() { x.cmd.Process.Kill() })
		}
		err = x.turn(turn, seen.All())
	}
	x.cmd.Wait() // returns the error that reports the kill
	if !errors.Is(err, io.EOF) && !errors.Is(err, syscall.EPIPE) {
		t.Fatalf("killed about turn %d, in turn %d: %v", last, turn, err)
	}
	gone := fmt.Errorf("process %d has ended in turn %d: %w", x.cmd.Process.Pid, turn, err)
	t.Log(gone)
	hears := func(who string, err error) {
		t.Helper()
		if !errors.Is(err, gone) || !strings.Contains(err.Error(), gone.Error()) {
			t.Errorf("%s returned %v; want %v", who, err, gone)
		}
	}
	news.Fail(gone)
	hears("a goroutine that waits", <-told)
	hears("a wait for a waiting operation", behind.Wait(ctx, 1))

	check := func() { // check checks that the device still works.
		t.Helper()
		short, cancel := context.WithTimeout(ctx, 5*time.Second)
		defer cancel()
		s, data := dev.Queue(1).NewStream(), make([]byte, 4)
		s.Fill(own.All(), []byte{1, 2, 3, 4})
		s.Download(data, own.All())
		if err := s.Wait(short); err != nil || !bytes.Equal(data, []byte{1, 2, 3, 4}) {
			t.Fatalf("%v, %v", data, err)
		}
	}
	check()
	short, cancel := context.WithTimeout(ctx, 2*time.Second)
	err = x.s.Wait(short)
	cancel()
	stuck := errors.Is(err, context.DeadlineExceeded)
	if stuck { // the stream waits for an event that is never recorded
		t.Log("the stream waits for an event that never comes")
		p := x.s.Point()
		p.Semaphore.Fail(gone)
		hears("a wait for the stream", x.s.Wait(ctx))
		check()
	} else {
		ok(t, err)
	}
	ok(t, x.close())
	check()
	if !stuck {
		select {
		case <-x.gone:
		case <-ctx.Done():
			t.Fatal("the memory was not freed")
		}
		_, err := interop.ImportMemory(dev, x.theirs, nil)
		if err == nil {
			t.Error("memory of a dead process was imported")
		}
		t.Logf("importing memory of a dead process: %v", err)
		check()
	}
	closing, cancel := context.WithTimeout(ctx, time.Second)
	err = dev.Shutdown(closing)
	cancel()
	var late *gpu.CloseError
	if stuck && (errors.As(err, &late) || errors.Is(err, driver.ErrBusy)) {
		t.Logf("Shutdown says: %v", err)
	} else {
		ok(t, err)
	}
	if !t.Failed() {
		fmt.Println("\ngoes on")
	}
}

// isKilled is the Go process that is killed. It exchanges a tensor and prints the number of each
// turn. The Python process writes its report to descriptor 3.
func isKilled(ctx context.Context, t *testing.T, with string) {
	drv, err := Open(cuda.Options{})
	ok(t, err)
	dev, err := gpu.Open(drv, 0, gpu.Options{Queues: 1})
	ok(t, err)
	seen, err := dev.Alloc(gpu.DeviceMem, 4)
	ok(t, err)
	python, err := exec.LookPath("python3")
	ok(t, err)
	x, err := meet(ctx, dev.Queue(0), python, with, sharedSize, os.NewFile(3, "report"))
	if errors.Is(err, errMissing) {
		t.Skip(err, dev.Close())
	}
	ok(t, err)
	for v := 1; ; v++ {
		ok(t, x.turn(v, seen.All()))
		fmt.Println("turn", v)
	}
}

// killGo starts the process of isKilled, kills it during a turn after the turn with the number
// last, and returns the report of the Python process.
func killGo(ctx context.Context, t *testing.T, cmd *exec.Cmd, last int) string {
	r, w, err := os.Pipe()
	ok(t, err)
	defer r.Close()
	cmd.ExtraFiles, cmd.Stderr = []*os.File{w}, os.Stderr
	stdout, err := cmd.StdoutPipe()
	ok(t, err)
	ok(t, cmd.Start())
	w.Close()
	lines, reached, skipped := bufio.NewScanner(stdout), false, false
	for !reached && lines.Scan() {
		reached = lines.Text() == fmt.Sprint("turn ", last)
		skipped = skipped || strings.Contains(lines.Text(), "--- SKIP")
		if !strings.HasPrefix(lines.Text(), "turn ") {
			t.Log(lines.Text())
		}
	}
	time.Sleep(rand.N(100 * time.Microsecond)) // so that the kill comes at any point of a turn
	cmd.Process.Kill()
	err = cmd.Wait()
	switch {
	case skipped:
		t.Skip("Python lacks a package")
	case !reached:
		t.Fatalf("the process has ended before turn %d: %v", last, err)
	}
	ok(t, r.SetReadDeadline(time.Now().Add(30*time.Second)))
	report, err := io.ReadAll(r)
	if err != nil {
		t.Errorf("Python reports nothing: %v", err)
	}
	return string(report)
}
