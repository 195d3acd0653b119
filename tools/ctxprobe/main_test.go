//go:build linux && (amd64 || arm64) && !nogpu

package main

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/puregpu/puregpu/internal/testlib"
	"github.com/puregpu/puregpu/symbols"
)

// TestMain runs the program itself in child processes.
func TestMain(m *testing.M) {
	if os.Getenv(childEnv) != "" {
		os.Exit(run(os.Args[1:], os.Stdout, os.Stderr))
	}
	os.Exit(m.Run())
}

// fake builds the fake CUDA driver of cudadriver's tests.
func fake(t *testing.T, defines ...string) string {
	t.Helper()
	tab, err := symbols.Load("cuda")
	if err != nil {
		t.Fatal(err)
	}
	lib := testlib.Fake{File: "libcuda.so.1", Source: "../../runtime/driver/cudadriver/testdata/driver.c", Defines: append([]string{"VERSION=13000"}, defines...)}
	for _, f := range tab.Funcs {
		if !strings.HasPrefix(f.Symbol, "cuGetProcAddress") {
			lib.Symbols = append(lib.Symbols, f.Symbol)
		}
	}
	return lib.Build(t)
}

func TestProbe(t *testing.T) {
	library, dir := fake(t, "CRASHES"), t.TempDir()
	t.Setenv("GORACE", "atexit_sleep_ms=0") // otherwise the race detector makes each process wait a second at its end
	var out, errs bytes.Buffer
	args := []string{"-library", library, "-device", "1", "-json", filepath.Join(dir, "t.json"), "-text", filepath.Join(dir, "t.txt")}
	if status := run(args, &out, &errs); status != 0 {
		t.Fatalf("status %d: %s", status, &errs)
	}
	text, err := os.ReadFile(filepath.Join(dir, "t.txt"))
	if err != nil || !bytes.Equal(text, out.Bytes()) {
		t.Errorf("%v; the file has\n%s", err, text)
	}
	data, err := os.ReadFile(filepath.Join(dir, "t.json"))
	var table Table
	if err == nil {
		err = json.Unmarshal(data, &table)
	}
	if err != nil || table.CUDA != "13.0" || table.Device != "Fake 1" || table.ByHand || len(table.Rows) != len(trials) {
		t.Fatalf("%v: %+v", err, table)
	}
	const refused = yes + "CUDA_ERROR_INVALID_CONTEXT"
	want := map[string]string{
		"cuGraphExecKernelNodeSetParams_v2": crashes, "cuCtxEnablePeerAccess": refused,
		"cuCtxPopCurrent_v2": refused, "cuGraphExecKernelNodeSetParams": refused, "cuGraphDestroy": refused, "cuEventCreate": refused,
		"cuModuleLoadDataEx": refused, "cuLibraryLoadData": no, "cuLibraryGetModule": refused, "cuFuncSetAttribute": refused, "cuMemPoolTrimTo": refused,
		"cuLaunchKernel": no, "cuGraphLaunch": no, "cuMemAllocFromPoolAsync": no, "cuMemFreeAsync": no, "cuEventQuery": no, "cuEventElapsedTime_v2": no,
		"cuMemcpyDtoHAsync_v2": no, "cuMemsetD2D32Async": no, "cuDeviceGetName": no, "cuCtxSetCurrent": no, "cuStreamWaitEvent": no,
	}
	for _, r := range table.Rows {
		if w, ok := want[r.Function]; ok && r.Answer != w {
			t.Errorf("%s: %s; want %s", r.Function, r.Answer, w)
		}
		if strings.HasPrefix(r.Answer, notTried) {
			t.Errorf("%s: %s", r.Function, r.Answer)
		}
		if !strings.Contains(out.String(), r.Function+" ") {
			t.Errorf("%s is not printed", r.Function)
		}
		delete(want, r.Function)
	}
	if len(want) > 0 {
		t.Errorf("there is nothing on %v", want)
	}
	testCases(t, &table, out.String())
}

// testCases checks the table of a driver that crashes if another device's pool is used without a
// context. With a context the driver refuses the pool.
func testCases(t *testing.T, table *Table, text string) {
	if table.Devices != 2 || len(table.Cases) < 200 {
		t.Fatalf("%d devices, %d cases", table.Devices, len(table.Cases))
	}
	seen := map[string]*Case{}
	for i := range table.Cases {
		c := &table.Cases[i]
		name := c.Function + ": " + c.Memory
		if seen[name] != nil {
			t.Errorf("%s is there twice", name)
		}
		seen[name] = c
		without, with := right, right
		// The driver accepts all memory in nodes of graphs.
		node := strings.HasPrefix(c.Memory, "copy node, ") || strings.HasPrefix(c.Memory, "fill node, ")
		if c.barred() && c.Function != "cuMemcpyPeerAsync" && c.Function != "cuMemAllocFromPoolAsync" && !node {
			without, with = crashes, "CUDA_ERROR_INVALID_VALUE"
		}
		if c.Function == "cuMemPrefetchAsync_v2" {
			without = "CUDA_ERROR_INVALID_CONTEXT"
		}
		if c.Without != without || c.With != with {
			t.Errorf("%s: %s, and with a context %s; want %s, and %s", name, c.Without, c.With, without, with)
		}
		if printed := strings.Contains(text, c.Memory+" "); !printed && without != right {
			t.Errorf("%s is not printed", name)
		}
	}
	for _, name := range []string{
		"cuMemcpyAsync: other default pool from default pool", "cuMemcpyAsync: default pool from other default pool", "cuMemcpyAsync: memory from other memory",
		"cuMemcpyPeerAsync: other default pool from default pool", "cuMemcpyDtoDAsync_v2: other pool from memory", "cuMemcpyPeerAsync: host from other host pool",
		"cuMemsetD8Async: other default pool", "cuLaunchKernel: other pool", "cuLaunchKernel: variable", "cuMemFreeAsync: other default pool", "cuMemPrefetchAsync_v2: other managed",
		"cuGraphLaunch: copy node, other pool from pool", "cuMemcpyHtoDAsync_v2: other default pool", "cuMemcpyDtoHAsync_v2: other registered",
	} {
		if seen[name] == nil {
			t.Errorf("there is no case %s", name)
		}
	}
	if !strings.Contains(text, "cuMemcpyPeerAsync        right either way in ") {
		t.Errorf("no summary:\n%s", text)
	}
}

// TestOneDevice checks a run of chosen functions with a driver that has one device.
func TestOneDevice(t *testing.T) {
	t.Setenv("GORACE", "atexit_sleep_ms=0")
	library, js := fake(t, "DEVICES=1"), filepath.Join(t.TempDir(), "t.json")
	var out, errs bytes.Buffer
	if status := run([]string{"-library", library, "-only", "^cuMemcpy(Peer)?Async|cuLaunchKernel: ", "-jobs", "2", "-json", js}, &out, &errs); status != 0 {
		t.Fatalf("status %d: %s", status, &errs)
	}
	data, err := os.ReadFile(js)
	var table Table
	if err == nil {
		err = json.Unmarshal(data, &table)
	}
	if err != nil || table.Devices != 1 || len(table.Rows) != 2 || len(table.Cases) < 40 {
		t.Fatalf("%v: %+v", err, table)
	}
	for _, c := range table.Cases {
		if c.barred() || strings.Contains(c.Memory, other) || c.Without != right || c.With != right {
			t.Errorf("%+v", c)
		}
	}
}

func TestUsage(t *testing.T) {
	for _, c := range []struct {
		args   []string
		status int
		says   string
	}{
		{[]string{"-help"}, 0, "-device"},
		{[]string{"-nothing"}, 2, "-nothing"},
		{[]string{"argument"}, 2, "argument"},
		{[]string{"-only", "("}, 2, "-only: error parsing regexp"},
		{[]string{"-jobs", "0"}, 2, "-jobs is 0"},
		{[]string{"-library", filepath.Join(t.TempDir(), "libcuda.so.1")}, 1, "libcuda.so.1"},
	} {
		var out, errs bytes.Buffer
		if status := run(c.args, &out, &errs); status != c.status || !strings.Contains(errs.String(), c.says) {
			t.Errorf("%v: status %d: %s", c.args, status, &errs)
		}
	}
	if a := try("cuNothing", "", 0); !strings.HasPrefix(a, notTried) {
		t.Errorf("a function that nobody knows: %s", a)
	}
	if a := tryMemory("cuNothing: memory", "", 0, true); !strings.HasPrefix(a, notTried) {
		t.Errorf("a case that nobody knows: %s", a)
	}
	if a := try("cuInit", filepath.Join(t.TempDir(), "libcuda.so.1"), 0); !strings.HasPrefix(a, notTried) {
		t.Errorf("no library: %s", a)
	}
}
