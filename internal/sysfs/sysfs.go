// Package sysfs reads facts about devices and drivers that Linux provides and the GPU APIs do not.
// On other systems its functions find nothing.
package sysfs

import (
	"io/fs"
	"os"
	"strconv"
	"strings"
)

// NUMANode returns the host's NUMA node that is nearest to the device at a PCI address such as
// "0000:3b:00.0". It returns -1 if the device has none or its node is unknown.
func NUMANode(pci string) int { return numaNode(os.DirFS("/sys"), pci) }

func numaNode(sys fs.FS, pci string) int {
	n, err := strconv.Atoi(read(sys, "bus/pci/devices/"+pci+"/numa_node"))
	if err != nil || n < 0 {
		return -1
	}
	return n
}

// ModuleVersion returns the version of a kernel module such as "nvidia". It returns "" if the
// module is not loaded or has no version.
func ModuleVersion(module string) string { return moduleVersion(os.DirFS("/sys"), module) }

func moduleVersion(sys fs.FS, module string) string { return read(sys, "module/"+module+"/version") }

// read returns the text of a file without white space at its ends, or "".
func read(sys fs.FS, name string) string {
	text, err := fs.ReadFile(sys, name)
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(text))
}
