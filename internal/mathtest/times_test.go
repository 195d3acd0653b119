//go:build linux && (amd64 || arm64) && !nogpu

package mathtest

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/puregpu/puregpu/runtime/gpu"
)

// A timed is one row of TestTimes: an operation in Go and in PyTorch.
type timed struct {
	name  string
	small bool // the device needs less time than the host
	open  func(t *testing.T, dev *gpu.Device) gpu.Op
	setup string // Python that creates tensors
	run   string // Python that runs the operation once
}

// allTimes returns the rows of TestTimes, library by library.
func allTimes() []timed { return slices.Concat(blasTimes(), fftTimes(), randomTimes(), dnnTimes()) }

// TestTimes prints the times of operations in a stream and in PyTorch, in alternating runs. Each
// time is a median. The host's time is the time of submission.
func TestTimes(t *testing.T) {
	if os.Getenv("PUREGPU_MATH_TIMES") == "" {
		t.Skip("PUREGPU_MATH_TIMES is not set")
	}
	openGPU(t)
	torch := startTorch(t)
	fmt.Printf("%-40s %12s %12s %7s %12s %12s\n", "name", "puregpu_us", "torch_us", "ratio", "host_us", "torch_host_us")
	for _, row := range allTimes() {
		t.Run(row.name, func(t *testing.T) {
			dev := openGPU(t)
			op, st := row.open(t, dev), dev.Queue(0).NewStream()
			times := func(n int) (each, host float64) {
				start := time.Now()
				for range n {
					must(t, st.Do(op))
				}
				given := time.Since(start)
				must(t, st.Wait(t.Context()))
				return float64(time.Since(start).Nanoseconds()) / float64(n) / 1e3, float64(given.Nanoseconds()) / float64(n) / 1e3
			}
			torch.ask(t, map[string]any{"setup": row.setup, "run": row.run})
			n := 1000
			times(3)
			torch.times(t, 3)
			if !row.small { // enough runs for about 20 ms
				each, _ := times(3)
				n = min(max(int(20e3/each), 3), n)
			}
			var all [4][]float64
			for range 9 {
				each, host := times(n)
				theirs, theirHost := torch.times(t, n)
				for i, v := range []float64{each, theirs, host, theirHost} {
					all[i] = append(all[i], v)
				}
			}
			for i := range all {
				slices.Sort(all[i])
			}
			m := len(all[0]) / 2
			fmt.Printf("%-40s %12.2f %12.2f %7.3f %12.2f %12.2f\n", strings.ReplaceAll(row.name, " ", "_"), all[0][m], all[1][m], all[0][m]/all[1][m], all[2][m], all[3][m])
		})
	}
}

// A torch is a Python process that runs testdata/times.py.
type torch struct {
	in  *json.Encoder
	out *bufio.Scanner
}

func startTorch(t *testing.T) *torch {
	t.Helper()
	python := os.Getenv("PUREGPU_MATH_PYTHON")
	if python == "" {
		python = "python3"
	}
	cmd := exec.CommandContext(t.Context(), python, "testdata/times.py")
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	must(t, err)
	out, err := cmd.StdoutPipe()
	must(t, err)
	must(t, cmd.Start())
	t.Cleanup(func() {
		in.Close()
		if err := cmd.Wait(); err != nil && t.Context().Err() == nil {
			t.Error(err)
		}
	})
	x := &torch{json.NewEncoder(in), bufio.NewScanner(out)}
	about := x.answer(t)
	t.Logf("%v", about)
	return x
}

// ask makes the process execute a request, and returns its answer.
func (x *torch) ask(t *testing.T, request map[string]any) map[string]any {
	t.Helper()
	must(t, x.in.Encode(request))
	return x.answer(t)
}

func (x *torch) answer(t *testing.T) (answer map[string]any) {
	t.Helper()
	for x.out.Scan() {
		if text, found := strings.CutPrefix(x.out.Text(), "@math "); found {
			must(t, json.Unmarshal([]byte(text), &answer))
			if answer["error"] != nil {
				t.Fatalf("PyTorch: %v", answer["error"])
			}
			return answer
		}
	}
	t.Fatalf("the process of PyTorch ended: %v", x.out.Err())
	return nil
}

// times runs the operation n times. It returns the microseconds of one run, in total and on the
// host.
func (x *torch) times(t *testing.T, n int) (each, host float64) {
	t.Helper()
	a := x.ask(t, map[string]any{"times": n})
	return a["each"].(float64), a["host"].(float64)
}
