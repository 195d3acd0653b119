package sysfs

import (
	"testing"
	"testing/fstest"
)

func TestRead(t *testing.T) {
	sys := fstest.MapFS{
		"bus/pci/devices/0000:3b:00.0/numa_node": {Data: []byte("1\n")},
		"bus/pci/devices/0000:3c:00.0/numa_node": {Data: []byte("-1\n")},
		"bus/pci/devices/0000:3d:00.0/numa_node": {Data: []byte("none\n")},
		"module/nvidia/version":                  {Data: []byte("580.95.05\n")},
		"module/amdgpu/srcversion":               {Data: []byte("0123\n")},
	}
	for pci, want := range map[string]int{"0000:3b:00.0": 1, "0000:3c:00.0": -1, "0000:3d:00.0": -1, "0000:3e:00.0": -1, "": -1, "../../..": -1} {
		if got := numaNode(sys, pci); got != want {
			t.Errorf("%q is near node %d, want %d", pci, got, want)
		}
	}
	for module, want := range map[string]string{"nvidia": "580.95.05", "amdgpu": "", "": ""} {
		if got := moduleVersion(sys, module); got != want {
			t.Errorf("module %q has version %q, want %q", module, got, want)
		}
	}
}
