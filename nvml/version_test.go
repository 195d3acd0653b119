package nvml

import (
	"testing"
	"unsafe"

	"github.com/puregpu/puregpu/runtime/dl"
)

func TestVersionIsTheBranchsCUDARelease(t *testing.T) {
	for text, want := range map[string]dl.Version{
		"11.470.256.02": 11040,
		"12.535.261.03": 12020,
		"12.550.163.01": 12040,
		"12.552.12":     12040, // a Windows branch, between two known branches
		"13.580.65.06":  13000,
		"13.999.1":      13030,
		"11.450.248.02": 11000, // older than the oldest supported
		"10.418.226":    10010,
		"8.319.37":      0,
		"":              0,
		"12":            0,
		"12.next.1":     0,
		"nothing":       0,
	} {
		if got := parseVersion(text); got != want {
			t.Errorf("%q is %d, want %d", text, got, want)
		}
	}
	for name, want := range map[string]dl.Version{
		"/usr/lib/libnvidia-ml.so.470.256.02": 11040, "libnvidia-ml.so.1": 0, "libnvidia-ml.so": 0, "C:/nvml.dll": 0, "": 0,
	} {
		if got := versionInName(name); got != want {
			t.Errorf("%q is %d, want %d", name, got, want)
		}
	}
	for i := 1; i < len(branches); i++ {
		a, b := branches[i-1], branches[i]
		if a.driver >= b.driver || a.major*100+a.minor >= b.major*100+b.minor {
			t.Errorf("branch %d of %d.%d does not come after %d of %d.%d", b.driver, b.major, b.minor, a.driver, a.major, a.minor)
		}
	}
}

// TestStructVersions checks that each version constant holds the size and the number of its struct,
// as NVML's header computes the constant.
func TestStructVersions(t *testing.T) {
	for _, tt := range []struct {
		name    string
		version uint32
		size    uintptr
		number  uint32
	}{
		{"MemoryV2", MemoryV2Version, unsafe.Sizeof(MemoryV2{}), 2},
		{"PciInfoExtV1", PciInfoExtV1Version, unsafe.Sizeof(PciInfoExtV1{}), 1},
		{"GpuFabricInfoV3", GpuFabricInfoV3Version, unsafe.Sizeof(GpuFabricInfoV3{}), 3},
		{"GpuInstanceProfileInfoV3", GpuInstanceProfileInfoV3Version, unsafe.Sizeof(GpuInstanceProfileInfoV3{}), 3},
		{"ProcessDetailListV1", ProcessDetailListV1Version, unsafe.Sizeof(ProcessDetailListV1{}), 1},
		{"TemperatureV1", TemperatureV1Version, unsafe.Sizeof(TemperatureV1{}), 1},
	} {
		if want := uint32(tt.size) | tt.number<<24; tt.version != want {
			t.Errorf("%s: version %#x, want %#x: %d bytes, number %d", tt.name, tt.version, want, tt.size, tt.number)
		}
	}
}
