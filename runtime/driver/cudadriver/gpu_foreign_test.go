package cudadriver

import (
	"bufio"
	"context"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"testing"
	"time"

	"github.com/puregpu/puregpu/cuda"
	"github.com/puregpu/puregpu/nccl"
	"github.com/puregpu/puregpu/runtime/collective"
	"github.com/puregpu/puregpu/runtime/gpu"
)

// TestGPUForeignRank makes a plain communicator of two ranks, one of which is a Python process that
// uses NCCL directly or PyTorch. Both do every operation and check the results.
func TestGPUForeignRank(t *testing.T) {
	several(t)
	python, err := exec.LookPath("python3")
	if err != nil {
		t.Skip(err)
	}
	lib, err := nccl.Open(nccl.Options{})
	ok(t, err)
	for _, with := range []string{"nccl", "torch"} {
		t.Run(with, func(t *testing.T) { withForeign(t, python, with, lib.Path()) })
	}
}

// given returns element i of a rank's input.
func given(rank, i int) int { return 10007*(rank+1) + i }

func withForeign(t *testing.T, python, with, library string) {
	const n = 1000
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	drv, err := Open(cuda.Options{})
	ok(t, err)
	dev, err := gpu.Open(drv, 0, gpu.Options{})
	ok(t, err)
	defer func() { ok(t, dev.Close()) }()
	cmd := exec.CommandContext(ctx, python, "testdata/foreign.py", with, library, fmt.Sprint(n))
	cmd.Env = append(os.Environ(), "NCCL_NVLS_ENABLE=0")
	cmd.Stderr = os.Stderr
	stdin, err := cmd.StdinPipe()
	ok(t, err)
	stdout, err := cmd.StdoutPipe()
	ok(t, err)
	ok(t, cmd.Start())
	defer func() {
		stdin.Close()
		err := cmd.Wait()
		if e, is := errors.AsType[*exec.ExitError](err); err != nil && !(is && e.ExitCode() == missing) {
			t.Error(err)
		}
	}()
	lines := bufio.NewScanner(stdout)
	if !lines.Scan() {
		t.Skipf("%s has no %s", python, with)
	}
	say := func(what string) {
		t.Helper()
		_, err := fmt.Fprintln(stdin, what)
		ok(t, err)
	}
	hear := func() string {
		t.Helper()
		if !lines.Scan() {
			t.Fatalf("the other rank has ended: %v", lines.Err())
		}
		return lines.Text()
	}
	id, err := collective.NewID(dev)
	ok(t, err)
	say(hex.EncodeToString(id[:]))
	c, err := collective.New(ctx, dev, collective.Options{ID: id, Rank: 0, Count: 2, Plain: true, Timeout: 20 * time.Second})
	ok(t, err)
	if got := hear(); got != "joined" {
		t.Fatalf("the other rank says %q", got)
	}
	if _, err := c.Split(ctx, 0, 0); !errors.Is(err, errors.ErrUnsupported) {
		t.Errorf("split: %v", err)
	}
	s := dev.Queue(0).NewStream()
	src, err := dev.Alloc(gpu.DeviceMem, 8*n)
	ok(t, err)
	dst, err := dev.Alloc(gpu.DeviceMem, 8*n)
	ok(t, err)
	data := make([]byte, 8*n)
	for i := range 2 * n {
		binary.LittleEndian.PutUint32(data[4*i:], uint32(given(0, i)))
	}
	ok(t, s.Do(gpu.UploadCopy(src.All(), data)))
	mine, theirs := src.Range(0, 4*n), dst.Range(0, 4*n)
	sum := func(i int) int { return given(0, i) + given(1, i) }
	none := func(int) int { return 0 }
	for _, x := range []struct {
		name string // name of the operation in the Python program
		op   collective.Operation
		want func(i int) int // element i of this rank's result
	}{
		{"all-reduce", collective.AllReduce(theirs, mine, collective.Int32, collective.Sum()), sum},
		{"reduce", collective.Reduce(theirs, mine, collective.Int32, collective.Sum(), 1), none},
		{"broadcast", collective.Broadcast(theirs, mine, collective.Int32, 0), func(i int) int { return given(0, i) }},
		{"all-gather", collective.AllGather(dst.All(), mine, collective.Int32), func(i int) int { return given(i/n, i%n) }},
		{"reduce-scatter", collective.ReduceScatter(theirs, src.All(), collective.Int32, collective.Sum()), sum},
		{"all-to-all", collective.AllToAll(dst.All(), src.All(), collective.Int32), func(i int) int { return given(i/n, i%n) }},
		{"gather", collective.Gather(dst.All(), mine, collective.Int32, 1), none},
		{"scatter", collective.Scatter(theirs, src.All(), collective.Int32, 0), func(i int) int { return given(0, i) }},
		{"receive", collective.Send(mine, collective.Int32, 1), none},
		{"send", collective.Receive(theirs, collective.Int32, 1), func(i int) int { return given(1, i) }},
	} {
		say(x.name)
		if with == "torch" && (x.name == "reduce" || x.name == "all-to-all" || x.name == "gather" || x.name == "scatter" || x.name == "receive" || x.name == "send") {
			if got := hear(); got != "none" {
				t.Fatalf("%s: the other rank says %q", x.name, got)
			}
			continue
		}
		got := make([]byte, 8*n)
		ok(t, s.Fill(dst.All(), []byte{0}))
		ok(t, s.Do(c.GroupContext(ctx, x.op)))
		ok(t, s.Download(got, dst.All()))
		if err := s.Wait(ctx); err != nil {
			t.Fatalf("%s: %v", x.name, err)
		}
		if said := hear(); said != x.name {
			t.Fatalf("%s: the other rank says %q", x.name, said)
		}
		both := x.name == "all-gather" || x.name == "all-to-all"
		for i := range 2 * n {
			want := 0
			if i < n || both {
				want = x.want(i)
			}
			if have := int(int32(binary.LittleEndian.Uint32(got[4*i:]))); have != want {
				t.Fatalf("%s: element %d is %d, and was to be %d", x.name, i, have, want)
			}
		}
	}
	say("leave")
	ok(t, c.Close())
	if got := hear(); got != "left" {
		t.Errorf("the other rank says %q", got)
	}
}
