//go:build linux && (amd64 || arm64) && !nogpu

package main

import (
	"os/exec"
	"strings"
	"testing"

	"github.com/puregpu/puregpu/internal/testlib"
	"github.com/puregpu/puregpu/runtime/dl"
	"github.com/puregpu/puregpu/symbols"
)

// TestFake runs on a CUDA driver made of C, which does its work at once, and wants everything to be given back. Its graphs
// are small, and it takes long to fill as much memory as the group wake wants.
func TestFake(t *testing.T) {
	tab, err := symbols.Load("cuda")
	if err != nil {
		t.Fatal(err)
	}
	fake := testlib.Fake{File: "libcuda.so.1", Source: "../../tools/gpubench/testdata/fake.c", Defines: []string{"VERSION=13000"}}
	for _, f := range tab.Funcs {
		if !strings.HasPrefix(f.Symbol, "cuGetProcAddress") {
			fake.Symbols = append(fake.Symbols, f.Symbol)
		}
	}
	path := fake.Build(t)
	t.Setenv("PUREGPU_CUDA_LIBRARY", path)
	rows := runJSON(t, "-rounds", "1", "-c", buildLoop(t), "-device", "1", "-run", "^(calls|latency|chain|pool|parked|semaphore)/|^graph/(10 |rec)")
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
		"graph/10 kernels, each bound anew: until done", "graph/10 kernels, launched one by one: until done"} {
		if r := rows[name]; r.Raw == nil || r.Ratio == nil || r.Goal == nil {
			t.Errorf("%s was not compared: %+v", name, r)
		}
	}
	var ctl dl.Library
	if err := ctl.Open(&dl.Spec{Name: "fake", Package: "fake", Sets: []dl.Set{{Name: "core"}}, Symbols: []dl.Symbol{{Name: "fake_live"}}}, nil, dl.Options{Path: path}); err != nil {
		t.Fatal(err)
	}
	if live, err := ctl.Slow(0); live != 0 || err != nil {
		t.Errorf("%d objects were not given back, %v", live, err)
	}

	rows = runJSON(t, "-rounds", "1", "-run", "calls|latency")
	if r := rows["calls/cuLaunchKernel"]; !strings.Contains(r.NotRun, "-c") {
		t.Errorf("without the C side: %+v", r)
	}
}

func buildLoop(t *testing.T) string {
	out := t.TempDir() + "/libcloop.so"
	if msg, err := exec.Command("gcc", "-O2", "-fPIC", "-shared", "-o", out, "testdata/cloop.c").CombinedOutput(); err != nil {
		t.Skipf("the C side needs gcc: %v\n%s", err, msg)
	}
	return out
}
