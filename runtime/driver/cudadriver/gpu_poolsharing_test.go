package cudadriver

import (
	"bufio"
	"bytes"
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/puregpu/puregpu/cuda"
	"github.com/puregpu/puregpu/runtime/gpu"
	"github.com/puregpu/puregpu/runtime/interop"
)

// TestGPUPoolSharing lets another process use memory of a pool through an inherited descriptor. The
// other process adds to the memory. Meanwhile this process uses the pool too, and it checks the
// sums. The other process closes memory before this process frees the memory.
func TestGPUPoolSharing(t *testing.T) {
	const env, size = "PUREGPU_TEST_POOL_SHARING", 1 << 20
	if os.Getenv(env) != "" {
		importsPool(t)
		return
	}
	if !openGPU(t).Caps().PoolSharing {
		t.Skip("the device shares no pools")
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	drv, err := Open(cuda.Options{})
	ok(t, err)
	dev, err := gpu.Open(drv, 0, gpu.Options{})
	ok(t, err)
	defer func() { ok(t, dev.Close()) }()
	pool, err := dev.NewPool(gpu.PoolOptions{Shareable: true})
	ok(t, err)
	file, err := interop.ExportPool(pool)
	ok(t, err)
	defer file.Close()
	exe, err := os.Executable()
	ok(t, err)
	cmd := exec.CommandContext(ctx, exe, "-test.run=^TestGPUPoolSharing$", "-test.timeout=1m")
	cmd.Env = append(os.Environ(), env+"=1", "PUREGPU_TEST_REQUIRE_GPU=1")
	cmd.ExtraFiles, cmd.Stderr = []*os.File{file}, os.Stderr // descriptor 3 in the child
	stdin, err := cmd.StdinPipe()
	ok(t, err)
	stdout, err := cmd.StdoutPipe()
	ok(t, err)
	ok(t, cmd.Start())
	lines := bufio.NewScanner(stdout)
	hear := func(what string) {
		t.Helper()
		for lines.Scan() {
			if lines.Text() == what {
				return
			}
			t.Log(lines.Text())
		}
		t.Fatalf("the other process has ended before %q: %v", what, lines.Err())
	}
	s := dev.Queue(0).NewStream()
	for i := range 10 {
		front, err := s.Alloc(pool, 4096*uint64(i+1)) // allocations of different sizes, so that the address of b differs in each round
		ok(t, err)
		b, err := s.Alloc(pool, size)
		ok(t, err)
		ok(t, s.Fill(b.All(), []byte{byte(i), 0, 0, 0}))
		ok(t, s.Wait(ctx)) // wait until the allocation has executed
		h, err := interop.ExportMemory(b)
		ok(t, err)
		data, err := h.MarshalBinary()
		ok(t, err)
		_, err = fmt.Fprintln(stdin, hex.EncodeToString(data))
		ok(t, err)
		hear(fmt.Sprint("closed ", i))
		got := make([]byte, size)
		ok(t, s.Download(got, b.All()))
		ok(t, s.Wait(ctx))
		want := bytes.Repeat([]byte{byte(i), 0, 0, 0}, size/4)
		copy(want[size/2:], bytes.Repeat([]byte{0xa5}, 64))
		if !bytes.Equal(got, want) {
			t.Fatalf("round %d: the other process has written the wrong value", i)
		}
		ok(t, errors.Join(s.Free(b), s.Free(front), s.Wait(ctx)))
	}
	stdin.Close()
	hear("left")
	ok(t, cmd.Wait())
	ok(t, pool.Close())
}

// importsPool runs in the other process.
func importsPool(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	drv, err := Open(cuda.Options{})
	ok(t, err)
	dev, err := gpu.Open(drv, 0, gpu.Options{})
	ok(t, err)
	file := os.NewFile(3, "pool")
	pool, err := interop.ImportPool(dev, file)
	ok(t, err)
	ok(t, file.Close())
	s := dev.Queue(0).NewStream()
	in := bufio.NewScanner(os.Stdin)
	for i := 0; in.Scan(); i++ {
		data, err := hex.DecodeString(strings.TrimSpace(in.Text()))
		ok(t, err)
		var h interop.MemoryHandle
		ok(t, h.UnmarshalBinary(data))
		freed := make(chan struct{})
		b, err := pool.Import(h, func() { close(freed) })
		ok(t, err)
		got := make([]byte, h.Size)
		ok(t, s.Download(got, b.All()))
		ok(t, s.Fill(b.Range(h.Size/2, 64), []byte{0xa5}))
		ok(t, s.Wait(ctx))
		if want := bytes.Repeat([]byte{byte(i), 0, 0, 0}, len(got)/4); !bytes.Equal(got, want) {
			t.Fatalf("round %d: got %v", i, got[:16])
		}
		ok(t, b.Close())
		<-freed
		fmt.Println("closed", i)
	}
	ok(t, errors.Join(pool.Close(), dev.Close()))
	fmt.Println("left")
}
