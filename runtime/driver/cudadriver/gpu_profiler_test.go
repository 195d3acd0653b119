package cudadriver

import (
	"context"
	"encoding/csv"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/puregpu/puregpu/runtime/gpu"
)

// TestGPUProfilerTimes compares the times of a Timing with Nsight Compute's for the same kernels.
// Nsight Compute runs them in a subprocess, because a profiler serializes kernels. A Timing also
// includes the time to begin a kernel behind an event and to record the next event. This time is
// the same for each kernel, at most 4 microseconds (1.4 on an H200, 2.7 on an H100 with a slower
// host), and measured with an empty kernel. After this time is subtracted, the medians agree within
// 2 percent or half a microsecond, for kernels of 5 microseconds to 10 milliseconds. The variable
// NCU names the profiler if it is not in its usual place.
func TestGPUProfilerTimes(t *testing.T) {
	lengths := []time.Duration{0, 5 * time.Microsecond, 20 * time.Microsecond, 100 * time.Microsecond, time.Millisecond, 10 * time.Millisecond}
	const each = 11
	profiled := os.Getenv("PUREGPU_TEST_PROFILED") != ""
	d := openGPU(t)
	var ncu string
	if !profiled {
		if ncu = profiler(); ncu == "" {
			t.Skip("there is no ncu")
		}
	}
	drv, err := New(d.lib)
	ok(t, err)
	dev, err := gpu.Open(drv, 0, gpu.Options{})
	ok(t, err)
	defer dev.Close()
	x, err := dev.Load([]byte(gpuPTX))
	ok(t, err)
	spin, err := x.Kernel("spin")
	ok(t, err)
	timing, err := dev.NewTiming()
	ok(t, err)
	defer timing.Close()
	s := dev.Queue(0).NewStream()
	launch := func(took time.Duration) gpu.Op { return gpu.Launch(spin, gpu.Grid{}, uint64(took)) }
	ours := make([][]time.Duration, len(lengths))
	for i, length := range lengths {
		for range each {
			if !profiled { // submit behind work in flight, so that no kernel waits for the host
				ok(t, s.Do(launch(100*time.Microsecond)))
			}
			ok(t, s.Do(launch(length).Timed(timing)))
			ok(t, s.Wait(context.Background()))
			took, err := timing.Duration()
			ok(t, err)
			ours[i] = append(ours[i], took)
		}
		slices.Sort(ours[i])
	}
	if profiled {
		return
	}
	cmd := exec.CommandContext(t.Context(), ncu, "--csv", "--metrics", "gpu__time_duration.sum", "--print-units", "base", "--clock-control", "none", "--kernel-name", "spin",
		os.Args[0], "-test.run=^"+t.Name()+"$", "-test.timeout=2m")
	cmd.Env = append(os.Environ(), "PUREGPU_TEST_PROFILED=1", "PUREGPU_TEST_REQUIRE_GPU=1")
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Skipf("%s does not work here: %v\n%s", ncu, err, out)
	}
	theirs, err := profiledTimes(string(out))
	if err != nil || len(theirs) != each*len(lengths) {
		t.Fatalf("%s names %d of %d kernels: %v\n%s", ncu, len(theirs), each*len(lengths), err, out)
	}
	var around time.Duration
	for i, length := range lengths {
		list := theirs[each*i : each*(i+1)]
		slices.Sort(list)
		got, want := ours[i][each/2], list[each/2]
		t.Logf("%v: Timing %v, Nsight Compute %v", length, got, want)
		if i == 0 {
			if around = got - want; around < 0 || around > 4*time.Microsecond {
				t.Errorf("around a kernel that does nothing a Timing has %v more than Nsight Compute", around)
			}
			continue
		}
		if (got - around - want).Abs() > max(want/50, 500*time.Nanosecond) {
			t.Errorf("%v: Timing says %v, of which %v are around the kernel, and Nsight Compute %v", length, got, around, want)
		}
	}
}

// profiler returns the path of Nsight Compute's program, or "".
func profiler() string {
	if name := os.Getenv("NCU"); name != "" {
		return name
	}
	if name, err := exec.LookPath("ncu"); err == nil {
		return name
	}
	found, _ := filepath.Glob("/opt/nvidia/nsight-compute/*/ncu")
	found = append(found, "/usr/local/cuda/bin/ncu")
	for _, name := range found {
		if _, err := exec.LookPath(name); err == nil {
			return name
		}
	}
	return ""
}

// profiledTimes reads the durations of kernels, in order, from Nsight Compute's output.
func profiledTimes(text string) ([]time.Duration, error) {
	var table strings.Builder
	for line := range strings.Lines(text) {
		if strings.HasPrefix(line, `"`) {
			table.WriteString(line)
		}
	}
	rows, err := csv.NewReader(strings.NewReader(table.String())).ReadAll()
	if err != nil || len(rows) == 0 {
		return nil, fmt.Errorf("no table (%v)", err)
	}
	metric, unit, value := slices.Index(rows[0], "Metric Name"), slices.Index(rows[0], "Metric Unit"), slices.Index(rows[0], "Metric Value")
	if metric < 0 || unit < 0 || value < 0 {
		return nil, fmt.Errorf("the table has the columns %q", rows[0])
	}
	units := map[string]time.Duration{"ns": 1, "nsecond": 1, "us": 1e3, "usecond": 1e3, "ms": 1e6, "msecond": 1e6, "s": 1e9, "second": 1e9}
	var out []time.Duration
	for _, row := range rows[1:] {
		if row[metric] != "gpu__time_duration.sum" {
			continue
		}
		v, err := strconv.ParseFloat(strings.ReplaceAll(row[value], ",", ""), 64)
		if err != nil || units[row[unit]] == 0 {
			return nil, fmt.Errorf("a duration of %q %s (%v)", row[value], row[unit], err)
		}
		out = append(out, time.Duration(v*float64(units[row[unit]])))
	}
	return out, nil
}

func TestProfiledTimes(t *testing.T) {
	const head = `"ID","Process ID","Kernel Name","Metric Name","Metric Unit","Metric Value"` + "\n"
	for _, c := range []struct {
		text string
		want []time.Duration
	}{
		{"==PROF== Connected\n" + head + `"0","7","spin","gpu__time_duration.sum","ns","10,001,920"` + "\nPASS\n" + `"1","7","spin","gpu__time_duration.sum","usecond","6.5"` + "\n",
			[]time.Duration{10001920, 6500}},
		{head + `"0","7","spin","sm__cycles","cycle","1"` + "\n" + `"0","7","spin","gpu__time_duration.sum","ms","1.5"` + "\n", []time.Duration{1500000}},
	} {
		if got, err := profiledTimes(c.text); err != nil || !slices.Equal(got, c.want) {
			t.Errorf("%v, %v, want %v", got, err, c.want)
		}
	}
	for _, text := range []string{"", "==ERROR== no\n", `"ID","Name"` + "\n", head + `"0","7","spin","gpu__time_duration.sum","cycle","1"` + "\n",
		head + `"0","7","spin","gpu__time_duration.sum","ns","n/a"` + "\n"} {
		if got, err := profiledTimes(text); err == nil {
			t.Errorf("%q gives %v and no error", text, got)
		}
	}
}
