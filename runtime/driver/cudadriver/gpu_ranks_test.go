package cudadriver

import (
	"bufio"
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/puregpu/puregpu/cuda"
	"github.com/puregpu/puregpu/nccl"
	"github.com/puregpu/puregpu/runtime/collective"
	"github.com/puregpu/puregpu/runtime/gpu"
	"github.com/puregpu/puregpu/runtime/gpu/gputest"
)

// Environment variables of the processes that ranks starts.
const (
	rankVariable  = "PUREGPU_TEST_RANK"
	countVariable = "PUREGPU_TEST_COUNT"
)

// killDeadline is the Timeout of the groups in TestGPUKilledRank. killSlack is the additional time
// that the errors may take.
const (
	killDeadline = 2 * time.Second
	killSlack    = 3 * time.Second
)

// TestGPUKilledRank starts one process per GPU, at least two, which reduce repeatedly, and kills
// one of them. Each other process must get an error in time, close its objects and end. There are
// 20 trials, or 3 with -short, and none may fail.
func TestGPUKilledRank(t *testing.T) {
	n := several(t)
	rounds := 20
	if testing.Short() {
		rounds = 3
	}
	worst := time.Duration(0)
	for round := range rounds {
		took, err := killOne(t, n, rand.IntN(n))
		if err != nil {
			t.Fatalf("round %d: %v", round, err)
		}
		worst = max(worst, took)
	}
	t.Logf("%d rounds of %d processes: the last of the others had its error %v after the kill at the latest", rounds, n, worst)
}

// several returns the number of GPUs. It skips the test with fewer than two or without NCCL.
func several(t *testing.T) int {
	d := openGPU(t)
	n, err := d.lib.DeviceGetCount()
	ok(t, err)
	if n < 2 {
		t.Skipf("needs two GPUs, and there are %d", n)
	}
	if _, err := nccl.Open(nccl.Options{}); err != nil {
		t.Skip(err)
	}
	return int(n)
}

// A member is a process that runs one rank.
type member struct {
	cmd   *exec.Cmd
	in    io.WriteCloser
	lines chan string
}

// ranks starts n processes that run a test as ranks of one group. The caller must stop them.
func ranks(ctx context.Context, n int, test string) (members []*member, err error) {
	defer func() {
		if err != nil {
			stop(members)
		}
	}()
	for i := range n {
		cmd := exec.CommandContext(ctx, os.Args[0], "-test.run=^"+test+"$", "-test.timeout=2m")
		cmd.Env = append(os.Environ(), rankVariable+"="+strconv.Itoa(i), countVariable+"="+strconv.Itoa(n), "NCCL_NVLS_ENABLE=0")
		cmd.Stderr = os.Stderr
		in, err := cmd.StdinPipe()
		if err != nil {
			return members, err
		}
		out, err := cmd.StdoutPipe()
		if err != nil {
			return members, err
		}
		if err := cmd.Start(); err != nil {
			return members, err
		}
		m := &member{cmd, in, make(chan string, 1<<16)}
		members = append(members, m)
		go func() {
			defer close(m.lines)
			for s := bufio.NewScanner(out); s.Scan(); {
				m.lines <- s.Text()
			}
		}()
	}
	id, err := members[0].until(ctx, "id ")
	if err != nil {
		return members, err
	}
	for _, m := range members[1:] {
		if _, err := fmt.Fprintln(m.in, id); err != nil {
			return members, err
		}
	}
	return members, nil
}

func stop(members []*member) {
	for _, m := range members {
		m.cmd.Process.Kill()
		m.cmd.Wait()
	}
}

// killOne starts the processes and kills one. It returns the time until all others have reported
// errors.
func killOne(t *testing.T, n, victim int) (time.Duration, error) {
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	members, err := ranks(ctx, n, "TestGPUKilledRankProcess")
	if err != nil {
		return 0, err
	}
	defer stop(members)
	for i, m := range members {
		if _, err := m.until(ctx, "step 3"); err != nil {
			return 0, fmt.Errorf("rank %d: %w", i, err)
		}
	}
	time.Sleep(time.Duration(rand.IntN(20000)) * time.Microsecond)
	start := time.Now()
	if err := members[victim].cmd.Process.Kill(); err != nil {
		return 0, err
	}
	for i, m := range members {
		if i == victim {
			continue
		}
		if _, err := m.until(ctx, "failed"); err != nil {
			return 0, fmt.Errorf("rank %d of %d, %v after rank %d was killed: %w", i, n, time.Since(start), victim, err)
		}
	}
	took := time.Since(start)
	if took > killDeadline+killSlack {
		return took, fmt.Errorf("the errors came %v after rank %d was killed, and a group may take %v", took, victim, killDeadline)
	}
	for i, m := range members {
		if i == victim {
			continue
		}
		if _, err := m.until(ctx, "closed"); err != nil {
			return 0, fmt.Errorf("rank %d of %d does not close: %w", i, n, err)
		}
		if err := m.cmd.Wait(); err != nil {
			return 0, fmt.Errorf("rank %d of %d: %w", i, n, err)
		}
	}
	return took, nil
}

// until reads a process's output up to a line that begins with word, and returns the rest of that
// line.
func (m *member) until(ctx context.Context, word string) (string, error) {
	last := ""
	for {
		select {
		case line, more := <-m.lines:
			if !more {
				return "", fmt.Errorf("the process ended before %q; its last output: %s", word, last)
			}
			if rest, found := strings.CutPrefix(line, word); found {
				return rest, nil
			}
			last = line
		case <-ctx.Done():
			return "", fmt.Errorf("waiting for %q after %q: %w", word, last, ctx.Err())
		}
	}
}

// asRank makes the communicator in a process that ranks has started. It skips the test in other
// processes.
func asRank(t *testing.T, o collective.Options) (*gpu.Device, *collective.Communicator) {
	rank, err := strconv.Atoi(os.Getenv(rankVariable))
	if err != nil {
		t.Skip("this is not one of the processes")
	}
	count, err := strconv.Atoi(os.Getenv(countVariable))
	ok(t, err)
	drv, err := Open(cuda.Options{})
	ok(t, err)
	dev, err := gpu.Open(drv, rank, gpu.Options{Queues: 4})
	ok(t, err)
	if rank == 0 {
		o.ID, err = collective.NewID(dev)
		ok(t, err)
		fmt.Println("id", hex.EncodeToString(o.ID[:]))
	} else {
		line, err := bufio.NewReader(os.Stdin).ReadString('\n')
		ok(t, err)
		raw, err := hex.DecodeString(strings.TrimSpace(line))
		ok(t, err)
		o.ID, err = collective.ParseID(raw)
		ok(t, err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	o.Rank, o.Count = rank, count
	c, err := collective.New(ctx, dev, o)
	ok(t, err)
	return dev, c
}

// TestGPUKilledRankProcess is a process of TestGPUKilledRank.
func TestGPUKilledRankProcess(t *testing.T) {
	dev, c := asRank(t, collective.Options{Name: "kill", Timeout: killDeadline})
	ctx := t.Context()
	b, err := dev.Alloc(gpu.DeviceMem, 64<<20)
	ok(t, err)
	s, err := gpu.NewSemaphore(0)
	ok(t, err)
	for v := uint64(1); ; v++ {
		err := c.Device().Queue(0).Submit(gpu.Order{Signal: []gpu.Point{{Semaphore: s, Value: v}}}, c.GroupContext(ctx, collective.AllReduce(b.All(), b.All(), collective.Float32, collective.Sum())))
		if err == nil {
			err = s.Wait(ctx, v)
		}
		if err != nil {
			var failed *collective.Error
			if !errors.As(err, &failed) {
				t.Errorf("%v is not a communicator's failure", err)
			}
			fmt.Println("failed", err)
			break
		}
		fmt.Println("step", v)
	}
	if err := dev.Close(); err != nil {
		t.Errorf("close: %v", err)
	}
	fmt.Println("closed")
}

// TestGPUProcesses tests all collectives, and sending and receiving, with one process per GPU.
func TestGPUProcesses(t *testing.T) {
	n := several(t)
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Second)
	defer cancel()
	members, err := ranks(ctx, n, "TestGPUProcessesRank")
	ok(t, err)
	defer stop(members)
	for i, m := range members {
		var said []string
		for line := range m.lines {
			said = append(said, line)
		}
		if err := m.cmd.Wait(); err != nil {
			t.Errorf("rank %d of %d: %v:\n%s", i, n, err, strings.Join(said, "\n"))
		}
	}
}

// TestGPUProcessesRank is a process of TestGPUProcesses.
func TestGPUProcessesRank(t *testing.T) {
	dev, c := asRank(t, collective.Options{Name: "processes", Timeout: 20 * time.Second})
	gputest.CheckRank(t, t.Context(), c)
	if err := errors.Join(c.Close(), dev.Close()); err != nil {
		t.Errorf("close: %v", err)
	}
}
