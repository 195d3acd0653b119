//go:build linux && (amd64 || arm64) && !nogpu

package nvml

import (
	"errors"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/puregpu/puregpu/runtime/dl"
)

// openReal opens this machine's NVML. Opening it needs neither a GPU nor the kernel driver.
func openReal(t *testing.T) *Library {
	t.Helper()
	l, err := Open(Options{})
	if os.Getenv(spec.Env) == "" && errors.Is(err, dl.ErrNotFound) {
		t.Skipf("no NVML: %v", err)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("NVML of CUDA %s, %s", FormatVersion(l.Version()), l.Path())
	return l
}

func TestRealSymbols(t *testing.T) {
	l := openReal(t)
	if l.Version() == 0 {
		t.Error("the library does not tell its version")
	}
	lacks := l.Missing()
	for _, s := range symbols {
		i := slices.IndexFunc(lacks, func(m dl.MissingSymbol) bool { return m.Name == s.Name })
		missing := i >= 0
		// Driver 525 lacks a function that the header of 12.0 declares.
		late := s.Name == "nvmlDeviceSetVgpuSchedulerState" && l.Version() < 12020
		refused := missing && slices.ContainsFunc(s.Misfits, func(m dl.Misfit) bool { return lacks[i].Why == "not called: "+m.Why })
		if missing && s.Since <= l.Version() && !strings.HasPrefix(lacks[i].Set, "gone") && !late && !refused {
			t.Errorf("%s lacks %s, since %s", FormatVersion(l.Version()), s.Name, FormatVersion(s.Since))
		}
		if !missing && s.Since > l.Version() {
			t.Logf("%s has %s, which the headers have since %s", FormatVersion(l.Version()), s.Name, FormatVersion(s.Since))
		}
	}
}

// TestRealWithoutDevice calls functions that work without the kernel driver, and two that must
// return an error before Init.
func TestRealWithoutDevice(t *testing.T) {
	l := openReal(t)
	text, err := l.SystemGetNVMLVersion()
	early := l.Version() < 12020 && errors.Is(err, ErrorUninitialized) // driver 470 reports the version only after Init
	if !early && (err != nil || parseVersion(text) != l.Version()) {
		t.Errorf("version %q, %v; Open found %d", text, err, l.Version())
	}
	for r := Success; r <= ErrorMemory; r++ {
		if strings.HasPrefix(r.Name(), "Result(") {
			continue
		}
		if text, err := l.ErrorString(r); err != nil || text == "" || strings.Contains(text, "Unknown") {
			t.Errorf("the library describes %s as %q, %v", r.Name(), text, err)
		}
	}
	if _, err := l.DeviceGetCount(); !errors.Is(err, ErrorUninitialized) {
		t.Errorf("the count of devices before Init: %v, want %v", err, ErrorUninitialized)
	}
	if text, err := l.DeviceGetName(0); text != "" || !errors.Is(err, ErrorUninitialized) && !errors.Is(err, ErrorInvalidArgument) {
		t.Errorf("the name of no device: %q, %v", text, err)
	}
}

// TestRealDevices reads the GPUs of this machine, or checks the error of Init if the driver is
// absent or does not match.
func TestRealDevices(t *testing.T) {
	l := openReal(t)
	if err := l.Init(); err != nil {
		if !errors.Is(err, ErrorDriverNotLoaded) && !errors.Is(err, ErrorLibRmVersionMismatch) && !errors.Is(err, ErrorLibraryNotFound) {
			t.Fatalf("Init: %v", err)
		}
		if os.Getenv("PUREGPU_TEST_REQUIRE_GPU") != "" {
			t.Fatalf("Init: %v", err)
		}
		t.Logf("no device: %v", err)
		return
	}
	defer func() {
		if err := l.Shutdown(); err != nil {
			t.Errorf("Shutdown: %v", err)
		}
	}()
	n, err := l.DeviceGetCount()
	if err != nil {
		t.Fatal(err)
	}
	for i := range n {
		device, err := l.DeviceGetHandleByIndex(i)
		if err != nil {
			t.Fatal(err)
		}
		name, err := l.DeviceGetName(device)
		if err != nil || name == "" {
			t.Errorf("device %d: name %q, %v", i, name, err)
		}
		uuid, err := l.DeviceGetUUID(device)
		if err != nil {
			t.Errorf("device %d: UUID: %v", i, err)
		}
		if again, err := l.DeviceGetHandleByUUID(uuid); err != nil || again != device {
			t.Errorf("device %d: its UUID %s leads to %#x, %v; want %#x", i, uuid, again, err, device)
		}
		old, err := l.DeviceGetMemoryInfo(device)
		m := MemoryV2{Version: MemoryV2Version}
		err = errors.Join(err, l.DeviceGetMemoryInfoV2(device, &m))
		if err != nil || old.Total == 0 || m.Total != old.Total || m.Free > m.Total {
			t.Errorf("device %d: memory %+v and %+v, %v", i, old, m, err)
		}
		if err := l.DeviceGetMemoryInfoV2(device, &MemoryV2{}); err == nil {
			t.Errorf("device %d: memory in a layout of no version", i)
		}
		values := []FieldValue{{FieldId: FiDevPowerInstant}, {FieldId: FiMax}}
		if err := l.DeviceGetFieldValues(device, values); err != nil || values[1].NvmlReturn == Success {
			t.Errorf("device %d: fields %+v, %v", i, values, err)
		}
		processes, err := l.DeviceGetComputeRunningProcesses(device, make([]ProcessInfoV2, 64))
		if err != nil {
			t.Errorf("device %d: processes: %v", i, err)
		}
		t.Logf("device %d: %s, %s, %d MiB, %d processes", i, name, uuid, m.Total>>20, processes)
	}
}
