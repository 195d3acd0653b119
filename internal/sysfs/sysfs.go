// Package sysfs reads what Linux tells of devices and their drivers, and the GPUs' APIs do not. On other systems there is nothing to
// read.
package sysfs

import (
	"io/fs"
	"os"
	"strconv"
	"strings"
)

// NUMANode returns the node of the host that is nearest to the device with a PCI address, such as "0000:3b:00.0". It is -1 where the
// host has none, or does not tell.
func NUMANode(pci string) int { return numaNode(os.DirFS("/sys"), pci) }

func numaNode(sys fs.FS, pci string) int {
	n, err := strconv.Atoi(read(sys, "bus/pci/devices/"+pci+"/numa_node"))
	if err != nil || n < 0 {
		return -1
	}
	return n
}

// ModuleVersion returns the version of a module of the kernel that is loaded, such as "nvidia", or "" if it does not tell one.
func ModuleVersion(module string) string { return moduleVersion(os.DirFS("/sys"), module) }

func moduleVersion(sys fs.FS, module string) string { return read(sys, "module/"+module+"/version") }

// read returns what a file has on its line, or "".
func read(sys fs.FS, name string) string {
	text, err := fs.ReadFile(sys, name)
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(text))
}
