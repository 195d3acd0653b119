// Package sysfs reads facts about devices and drivers that Linux provides and the GPU APIs do not.
// On other systems it returns nothing.
package sysfs

import (
	"io/fs"
	"os"
	"strconv"
	"strings"
)

// NUMANode returns the host's NUMA node that is nearest to the device with a PCI address, such as
// "0000:3b:00.0". It returns -1 if there is none or it is unknown.
func NUMANode(pci string) int { return numaNode(os.DirFS("/sys"), pci) }

func numaNode(sys fs.FS, pci string) int {
	n, err := strconv.Atoi(read(sys, "bus/pci/devices/"+pci+"/numa_node"))
	if err != nil || n < 0 {
		return -1
	}
	return n
}

// ModuleVersion returns the version of a loaded kernel module, such as "nvidia", or "" if it is
// unknown.
func ModuleVersion(module string) string { return moduleVersion(os.DirFS("/sys"), module) }

func moduleVersion(sys fs.FS, module string) string { return read(sys, "module/"+module+"/version") }

// read returns the only line of a file, or "".
func read(sys fs.FS, name string) string {
	text, err := fs.ReadFile(sys, name)
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(text))
}
