package nvmlhealth

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/puregpu/puregpu/nvml"
	"github.com/puregpu/puregpu/runtime/dl"
	"github.com/puregpu/puregpu/runtime/driver"
	"github.com/puregpu/puregpu/runtime/health"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// A fake is an NVML with one GPU, device 7, whose MIG instance 3 is device 8.
type fake struct {
	err      map[string]error // the errors of functions, by name without nvmlDevice
	types    uint64
	events   []nvml.EventData // the results of EventSetWait, in order
	sets     int              // number of event sets that are not freed
	ecc      [2]uint64
	reasons  uint64
	timeouts []uint32
}

const (
	gpu = nvml.Device(7)
	mig = nvml.Device(8)
)

func newFake() *fake {
	return &fake{err: map[string]error{}, types: nvml.EventTypeXidCriticalError | nvml.EventTypeClock}
}

func (f *fake) DeviceGetHandleByPciBusId(address string) (nvml.Device, error) {
	if address != "0000:3b:00.0" {
		return 0, nvml.ErrorNotFound
	}
	return gpu, f.err["handle"]
}

func (f *fake) DeviceGetHandleByUUID(uuid string) (nvml.Device, error) {
	switch uuid {
	case "GPU-01020304-0506-0708-090a-0b0c0d0e0f10":
		return gpu, f.err["handle"]
	case "MIG-01020304-0506-0708-090a-0b0c0d0e0f10":
		return mig, f.err["handle of instance"]
	}
	return 0, nvml.ErrorNotFound
}

func (f *fake) DeviceGetGpuInstanceId(d nvml.Device) (uint32, error) {
	if d != mig {
		return 0, nvml.ErrorInvalidArgument
	}
	return 3, f.err["instance"]
}

func (f *fake) DeviceGetSupportedEventTypes(nvml.Device) (uint64, error) {
	return f.types, f.err["types"]
}

func (f *fake) EventSetCreate() (nvml.EventSet, error) {
	if err := f.err["create"]; err != nil {
		return 0, err
	}
	f.sets++
	return 1, nil
}

func (f *fake) DeviceRegisterEvents(d nvml.Device, types uint64, _ nvml.EventSet) error {
	if d != gpu || types != nvml.EventTypeXidCriticalError {
		return nvml.ErrorInvalidArgument
	}
	return f.err["register"]
}

func (f *fake) EventSetWait(_ nvml.EventSet, timeout uint32) (e nvml.EventData, err error) {
	f.timeouts = append(f.timeouts, timeout)
	if err := f.err["wait"]; err != nil {
		return e, err
	}
	if len(f.events) == 0 {
		return e, nvml.ErrorTimeout
	}
	e, f.events = f.events[0], f.events[1:]
	return e, nil
}

func (f *fake) EventSetFree(nvml.EventSet) error {
	f.sets--
	return f.err["free"]
}

func (f *fake) DeviceGetTotalEccErrors(_ nvml.Device, kind nvml.MemoryErrorType, counter nvml.EccCounterType) (uint64, error) {
	if counter != nvml.VolatileECC {
		return 0, nvml.ErrorInvalidArgument
	}
	return f.ecc[kind], f.err["ECC"]
}

func (f *fake) DeviceGetCurrentClocksEventReasons(nvml.Device) (uint64, error) {
	return f.reasons, f.err["reasons"]
}

func (f *fake) DeviceGetCurrentClocksThrottleReasons(nvml.Device) (uint64, error) {
	return f.reasons, f.err["older reasons"]
}

var (
	info     = driver.Info{Name: "NVIDIA H200", PCI: "0000:3b:00.0", UUID: [16]byte{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16}}
	instance = driver.Info{Name: "MIG 1g", PCI: info.PCI, UUID: info.UUID, MIG: true}
	noPCI    = driver.Info{Name: "NVIDIA H200", UUID: info.UUID}
)

func xid(n uint64, instance uint32) nvml.EventData {
	return nvml.EventData{Device: gpu, EventType: nvml.EventTypeXidCriticalError, EventData: n, GpuInstanceId: instance}
}

// TestWait checks that a session reports its device's XID errors. For a whole GPU the session
// reports all errors. For a MIG instance it reports the instance's own errors and the errors that
// name no instance, or all errors if the instance's number is unknown.
func TestWait(t *testing.T) {
	all := []nvml.EventData{xid(1, 3), xid(2, 4), {EventType: nvml.EventTypeClock, EventData: 5, GpuInstanceId: anyInstance}, xid(79, anyInstance)}
	for name, c := range map[string]struct {
		info driver.Info
		want string
		set  string // a function that fails, and its error
	}{
		"a GPU":                                {info, "[1 2 79]", ""},
		"a GPU without a PCI address":          {noPCI, "[1 2 79]", ""},
		"an instance":                          {instance, "[1 79]", ""},
		"an instance that NVML does not show":  {instance, "[1 2 79]", "handle of instance"},
		"an instance of which the id is unset": {instance, "[1 2 79]", "instance"},
	} {
		f := newFake()
		f.events = all
		if c.set != "" {
			f.err[c.set] = nvml.ErrorNotFound
		}
		s, err := New(f).Watch(c.info)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		var got []uint32
		for {
			x, ok, err := s.Wait(1500 * time.Microsecond)
			if err != nil {
				t.Errorf("%s: %v", name, err)
			}
			if !ok {
				break
			}
			got = append(got, uint32(x))
		}
		if fmt.Sprint(got) != c.want {
			t.Errorf("%s: %v, want %s", name, got, c.want)
		}
		for _, ms := range f.timeouts {
			if ms > 2 {
				t.Errorf("%s: NVML is to wait %d ms where 1.5 ms are left", name, ms)
			}
		}
		if err := s.Close(); err != nil || f.sets != 0 {
			t.Errorf("%s: Close: %v, %d sets are left", name, err, f.sets)
		}
	}
}

// TestErrors checks that errors name the function and the GPU, give advice, and leak no event set.
func TestErrors(t *testing.T) {
	for name, c := range map[string]struct {
		function string
		err      error
		info     driver.Info
		want     []string
	}{
		"no such GPU":       {"", nvml.ErrorNotFound, driver.Info{PCI: "0000:01:00.0"}, []string{"0000:01:00.0"}},
		"not permitted":     {"handle", nvml.ErrorNoPermission, info, []string{info.PCI, "/dev/nvidia*"}},
		"instance":          {"handle", nvml.ErrorNotFound, instance, []string{info.PCI, "whole GPU"}},
		"lost":              {"types", nvml.ErrorGPUIsLost, info, []string{info.PCI, "nvmlDeviceGetSupportedEventTypes", "restart"}},
		"no set":            {"create", nvml.ErrorMemory, info, []string{info.PCI, "nvmlEventSetCreate"}},
		"no registration":   {"register", nvml.ErrorUnknown, info, []string{info.PCI, "nvmlDeviceRegisterEvents"}},
		"no right to watch": {"register", nvml.ErrorNoPermission, info, []string{"nvmlDeviceRegisterEvents", "/dev/nvidia*"}},
	} {
		f := newFake()
		f.err[c.function] = c.err
		s, err := New(f).Watch(c.info)
		if s != nil || !errors.Is(err, c.err) || f.sets != 0 {
			t.Errorf("%s: %v, %v, %d sets are left; want %v", name, s, err, f.sets, c.err)
			continue
		}
		for _, part := range c.want {
			if !strings.Contains(err.Error(), part) {
				t.Errorf("%s: %q does not say %q", name, err, part)
			}
		}
	}
}

// TestWithoutEvents checks that devices can still be read if NVML does not report their XID errors,
// as on Windows.
func TestWithoutEvents(t *testing.T) {
	for name, change := range map[string]func(f *fake){
		"no types":            func(f *fake) { f.types = 0 },
		"another type":        func(f *fake) { f.types = nvml.EventTypeClock },
		"types not supported": func(f *fake) { f.err["types"] = nvml.ErrorNotSupported },
		"no function of sets": func(f *fake) { f.err["create"] = &dl.SymbolError{Symbol: "nvmlEventSetCreate"} },
		"sets not supported":  func(f *fake) { f.err["create"] = nvml.ErrorNotSupported },
		"not to be recorded":  func(f *fake) { f.err["register"] = nvml.ErrorNotSupported },
	} {
		f := newFake()
		change(f)
		s, err := New(f).Watch(info)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if _, ok, err := s.Wait(time.Hour); ok || !errors.Is(err, errors.ErrUnsupported) || !strings.Contains(err.Error(), info.PCI) {
			t.Errorf("%s: Wait: %v, %v", name, ok, err)
		}
		if r, err := s.Read(); !r.ECC || !r.Clocks || err != nil {
			t.Errorf("%s: Read: %+v, %v", name, r, err)
		}
		if err := s.Close(); err != nil || f.sets != 0 {
			t.Errorf("%s: Close: %v, %d sets are left", name, err, f.sets)
		}
	}
}

// TestRead checks that counts and clocks are read, and that unreported values are left out.
func TestRead(t *testing.T) {
	f := newFake()
	f.ecc = [2]uint64{5, 2}
	f.reasons = nvml.ClocksEventReasonGpuIdle | nvml.ClocksEventReasonSwPowerCap | nvml.ClocksThrottleReasonHwThermalSlowdown
	s, err := New(f).Watch(info)
	if err != nil {
		t.Fatal(err)
	}
	full := health.Reading{ECC: true, Corrected: 5, Uncorrected: 2, Clocks: true, Throttle: health.PowerCap | health.HardwareThermal}
	for name, c := range map[string]struct {
		fails map[string]error
		want  health.Reading
		err   string
	}{
		"all":                     {nil, full, ""},
		"an NVML before 12.2":     {map[string]error{"reasons": &dl.SymbolError{}}, full, ""},
		"without ECC":             {map[string]error{"ECC": nvml.ErrorNotSupported}, health.Reading{Clocks: true, Throttle: full.Throttle}, ""},
		"without clocks":          {map[string]error{"reasons": nvml.ErrorNotSupported}, health.Reading{ECC: true, Corrected: 5, Uncorrected: 2}, ""},
		"without the right":       {map[string]error{"ECC": nvml.ErrorNoPermission, "reasons": nvml.ErrorNoPermission}, health.Reading{}, ""},
		"a lost GPU":              {map[string]error{"ECC": nvml.ErrorGPUIsLost}, health.Reading{}, "nvmlDeviceGetTotalEccErrors"},
		"a GPU lost in the midst": {map[string]error{"reasons": nvml.ErrorGPUIsLost}, health.Reading{}, "nvmlDeviceGetCurrentClocksEventReasons"},
	} {
		f.err = c.fails
		got, err := s.Read()
		if got != c.want || (err != nil) != (c.err != "") || err != nil && !(errors.Is(err, nvml.ErrorGPUIsLost) && strings.Contains(err.Error(), c.err)) {
			t.Errorf("%s: %+v, %v; want %+v, %q", name, got, err, c.want, c.err)
		}
	}
	f.err = map[string]error{"wait": nvml.ErrorGPUIsLost, "free": nvml.ErrorUnknown}
	if _, ok, err := s.Wait(time.Second); ok || !errors.Is(err, nvml.ErrorGPUIsLost) || errors.Is(err, errors.ErrUnsupported) {
		t.Errorf("Wait for a lost GPU: %v, %v", ok, err)
	}
	if err := s.Close(); !errors.Is(err, nvml.ErrorUnknown) {
		t.Errorf("Close: %v", err)
	}
}

// TestOpenWithoutNVML checks the error of Open without NVML.
func TestOpenWithoutNVML(t *testing.T) {
	path := filepath.Join(t.TempDir(), "libnvidia-ml.so.1")
	s, err := Open(nvml.Options{Path: path})
	if s != nil || err == nil || !strings.HasPrefix(err.Error(), "health of NVIDIA's GPUs: ") || !errors.Is(err, dl.ErrNotFound) && !errors.Is(err, dl.ErrUnsupported) {
		t.Errorf("%v, %v", s, err)
	}
}

// TestGPU briefly watches a real GPU, if there is one, without privileges.
func TestGPU(t *testing.T) {
	lib, err := nvml.Open(nvml.Options{})
	if err == nil {
		err = lib.Init()
	}
	if err != nil {
		if os.Getenv("PUREGPU_TEST_REQUIRE_GPU") != "" {
			t.Fatal(err)
		}
		t.Skipf("no GPU: %v", err)
	}
	n, err := lib.DeviceGetCount()
	if err != nil || n == 0 {
		t.Fatalf("%d devices, %v", n, err)
	}
	var infos []driver.Info
	for i := range n {
		d, err := lib.DeviceGetHandleByIndex(i)
		if err != nil {
			t.Fatal(err)
		}
		pci, err := lib.DeviceGetPciInfo(d)
		if err != nil {
			t.Fatal(err)
		}
		infos = append(infos, driver.Info{Index: int(i), PCI: fmt.Sprintf("%04x:%02x:%02x.0", pci.Domain, pci.Bus, pci.Device)})
	}
	w, err := health.Watch(New(lib), infos, health.Options{Interval: 20 * time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	time.Sleep(200 * time.Millisecond)
	for _, s := range w.Status() {
		t.Logf("%+v", s)
		if s.Err != nil || s.NoXIDs != nil || s.ReadAt.IsZero() || !s.ECC && !s.Clocks {
			t.Errorf("device %d: %+v", s.Device.Index, s)
		}
	}
	if err := w.Close(); err != nil {
		t.Error(err)
	}
}
