//go:build linux && (amd64 || arm64) && !nogpu

package main

import (
	"os/exec"
	"strings"
	"testing"

	"github.com/puregpu/puregpu/internal/testlib"
	"github.com/puregpu/puregpu/runtime/dl"
)

// TestFake checks on a fake CUDA driver, which does its work at once, that gpubench compares rows
// with their raw sides and gives all objects back to the driver.
func TestFake(t *testing.T) {
	path := buildCUDA(t)
	rows := runJSON(t, "-rounds", "1", "-c", buildLoop(t), "-device", "1", "-run", "^(calls|latency|chain|pool|parked|semaphore)/|^graph/(10 |82 |rec)")
	for _, name := range append(callNames, "open again, all symbols") {
		if r := rows["calls/"+name]; r.Puregpu == nil {
			t.Errorf("the row of %s is missing", name)
		}
	}
	if r := rows["calls/cuLaunchKernel"]; r.Raw == nil || r.Ratio == nil || r.Goal == nil {
		t.Errorf("cuLaunchKernel was not compared with C: %+v", r)
	}
	if r := rows["latency/empty submission, p50"]; r.Goal == nil {
		t.Errorf("an empty submission has no goal: %+v", r)
	}
	for _, name := range []string{"pool/alloca and dealloca of 1 MiB", "pool/alloca, fill, dealloca: total", "graph/10 kernels: until done",
		"graph/10 kernels, each bound anew: until done", "graph/82 kernels, a scalar of 48 changed: until done", "graph/82 kernels, each bound anew: until done",
		"graph/10 kernels, launched one by one: until done"} {
		if r := rows[name]; r.Raw == nil || r.Ratio == nil || r.Goal == nil {
			t.Errorf("%s was not compared: %+v", name, r)
		}
	}
	for _, r := range runDevices(t, options{device: "1", copySize: 1 << 20}) {
		if r.NotRun != "" || r.Error != "" || r.Raw == nil || r.Ratio == nil {
			t.Errorf("%s was not compared: %+v", r.Row, r)
		}
	}
	rows = runJSON(t, "-rounds", "1", "-device", "1", "-hip", buildHIP(t), "-run", "^hip/")
	if r := rows["hip/fill 4 KiB through hipdriver, p50 to wait"]; r.Raw == nil || r.Ratio == nil {
		t.Errorf("a fill was not compared: %+v", r)
	}
	for _, name := range []string{"hip/2,000 chained fills: submitting"} {
		if r := rows[name]; r.Raw == nil || r.Ratio == nil || r.Goal == nil {
			t.Errorf("%s was not compared: %+v", name, r)
		}
	}
	for _, args := range [][]string{{}, {"-c", buildLoop(t)}} {
		rows = runJSON(t, append(args, "-rounds", "1", "-device", "1", "-run", "^kernel/")...)
		for name, goal := range map[string]bool{"kernel/2,000 launches: submitting": true, "kernel/launch, p50 to wait": true,
			"kernel/2,000 launches, raw with an event behind each: submitting": false} {
			if r := rows[name]; r.Raw == nil || r.Ratio == nil || (r.Goal != nil) != goal {
				t.Errorf("%q: %s was not compared: %+v", args, name, r)
			}
		}
	}
	t.Setenv("PUREGPU_CUBLAS_LIBRARY", testlib.Fake{File: "libcublas.so.12", Source: "../../internal/cublas/testdata/cublas.c", Symbols: []string{}, Defines: []string{"IDLE"}}.Build(t))
	rows = runJSON(t, "-rounds", "1", "-device", "1", "-run", "^native/")
	for _, name := range []string{"native/2,000 products of 64 × 64: total", "native/2,000 products of 64 × 64: submitting",
		"native/2,000 products of 1024 × 1024: total", "native/product of 64 × 64, p50 to wait"} {
		if r := rows[name]; r.Raw == nil || r.Ratio == nil || r.Goal == nil {
			t.Errorf("%s was not compared: %+v", name, r)
		}
	}
	if r := rows["native/2,000 products of 64 × 64, raw with an event behind each: submitting"]; r.Raw == nil || r.Ratio == nil || r.Goal != nil {
		t.Errorf("the raw side with an event behind each product was not compared, or has a goal: %+v", r)
	}
	var ctl dl.Library
	if err := ctl.Open(&dl.Spec{Name: "fake", Package: "fake", Sets: []dl.Set{{Name: "core"}}, Symbols: []dl.Symbol{{Name: "fake_live"}}}, nil, dl.Options{Path: path}); err != nil {
		t.Fatal(err)
	}
	if live, err := ctl.Slow(0); live != 0 || err != nil {
		t.Errorf("%d objects leak, %v", live, err)
	}

	t.Setenv("PUREGPU_CUBLAS_LIBRARY", t.TempDir()+"/libcublas.so.12")
	rows = runJSON(t, "-rounds", "1", "-run", "calls|latency|hip|native")
	for name, r := range rows {
		if strings.HasPrefix(name, "native/") && !strings.Contains(r.NotRun, "PUREGPU_CUBLAS_LIBRARY") {
			t.Errorf("without cuBLAS: %s: %+v", name, r)
		}
		if strings.HasPrefix(name, "hip/") && !strings.Contains(r.NotRun, "-hip") {
			t.Errorf("without a HIP library: %s: %+v", name, r)
		}
	}
	if r := rows["calls/cuLaunchKernel"]; !strings.Contains(r.NotRun, "-c") {
		t.Errorf("without the C side: %+v", r)
	}
}

// buildHIP builds HIP on top of a fake CUDA driver of its own.
func buildHIP(t *testing.T) string {
	cuda := testlib.Fake{File: "libcuda.so.1", Source: "../../runtime/driver/hipdriver/testdata/cuda.c"}.Build(t)
	return testlib.Fake{
		File: "libhipovercuda.so", Source: "../hipovercuda/hip_over_cuda.c", Defines: []string{`LIBCUDA="` + cuda + `"`, "STREAM_DEVICE"},
	}.Build(t)
}

func buildLoop(t *testing.T) string {
	out := t.TempDir() + "/libcloop.so"
	if msg, err := exec.Command("gcc", "-O2", "-fPIC", "-shared", "-o", out, "testdata/cloop.c", "-lpthread").CombinedOutput(); err != nil {
		t.Skipf("the C side needs gcc: %v\n%s", err, msg)
	}
	return out
}
