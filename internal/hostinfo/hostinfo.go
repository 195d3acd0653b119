// Package hostinfo reads the operating system's information about GPUs, their drivers and the
// program's container, without any GPU library. Errors and reports use the package to explain why
// an expected GPU is missing, and what to do. The package supports only Linux; on other systems it
// finds nothing.
package hostinfo

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"

	"github.com/puregpu/puregpu/internal/regular"
	"github.com/puregpu/puregpu/internal/secureenv"
)

// A Host is a machine as seen by a program on it.
type Host struct {
	root  string // the folder that is / to the program
	env   func(string) (string, bool)
	try   func(path string) error // opens a device node
	linux bool
}

// This returns the machine that the program runs on.
func This() Host {
	return Host{root: "/", env: secureenv.Lookup, try: try, linux: runtime.GOOS == "linux"}
}

// read returns the text of a regular file without white space at its ends, or "". NUL bytes become
// newlines.
func (h Host) read(name string) string {
	path := filepath.Join(h.root, name)
	if _, err := regular.Stat(path); err != nil {
		return ""
	}
	text, err := os.ReadFile(path)
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(bytes.ReplaceAll(text, []byte{0}, []byte{'\n'})))
}

func (h Host) exists(name string) bool {
	_, err := os.Stat(filepath.Join(h.root, name))
	return err == nil
}

// glob returns the files that match a pattern, with paths as the program sees them.
func (h Host) glob(pattern string) []string {
	files, _ := filepath.Glob(filepath.Join(h.root, pattern))
	for i, f := range files {
		if rel, err := filepath.Rel(h.root, f); err == nil {
			files[i] = "/" + rel
		}
	}
	return files
}

// System returns the system's name, such as "Debian GNU/Linux 12 (bookworm)", and the release of
// its kernel. Outside Linux it returns GOOS and no release.
func (h Host) System() (name, kernel string) {
	if !h.linux {
		return runtime.GOOS, ""
	}
	name = "Linux"
	for _, file := range []string{"etc/os-release", "usr/lib/os-release"} {
		if text := h.read(file); text != "" {
			s := bufio.NewScanner(strings.NewReader(text))
			for s.Scan() {
				if v, ok := strings.CutPrefix(s.Text(), "PRETTY_NAME="); ok {
					name = strings.Trim(v, `"'`)
				}
			}
			break
		}
	}
	return name, h.read("proc/sys/kernel/osrelease")
}

// WSL reports whether this is Linux inside Windows.
func (h Host) WSL() bool {
	return h.exists("dev/dxg") || strings.Contains(strings.ToLower(h.read("proc/sys/kernel/osrelease")), "microsoft")
}

// Tegra reports whether the host is an NVIDIA board with the GPU in its processor, such as a
// Jetson.
func (h Host) Tegra() bool {
	return h.exists("etc/nv_tegra_release") || h.exists("dev/nvhost-gpu") || strings.Contains(h.read("sys/firmware/devicetree/base/compatible"), "nvidia,tegra")
}

// Container names the container that the program runs in, such as "Docker, Kubernetes", or "" if
// there is no sign of one.
func (h Host) Container() string {
	var names []string
	add := func(name string, is bool) {
		if is && !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	set := func(variable string) bool { v, _ := h.env(variable); return v != "" }
	add("Docker", h.exists(".dockerenv"))
	add("Podman", h.exists("run/.containerenv"))
	add("Flatpak", h.exists(".flatpak-info"))
	add("Apptainer", h.exists(".singularity.d"))
	add("Snap", set("SNAP"))
	add("Kubernetes", set("KUBERNETES_SERVICE_HOST"))
	// systemd counts WSL among the containers, but WSL has its own kernel and needs no GPU passed
	// to it.
	if v := h.read("run/systemd/container"); v != "" && v != "wsl" {
		add(v, len(names) == 0)
	}
	if names == nil {
		groups := h.read("proc/1/cgroup")
		for _, g := range []struct{ in, name string }{{"docker", "Docker"}, {"kubepods", "Kubernetes"}, {"libpod", "Podman"}, {"lxc", "LXC"}, {"containerd", "containerd"}} {
			add(g.name, strings.Contains(groups, g.in))
		}
	}
	return strings.Join(names, ", ")
}

var moduleVersion = regexp.MustCompile(`Kernel Module.*?\s(\d+\.\d+(?:\.\d+)*)\s`)

// NVIDIA returns the release of NVIDIA's driver in the kernel, such as "550.54.15", or "" if the
// driver is not loaded.
func (h Host) NVIDIA() string {
	if m := moduleVersion.FindStringSubmatch(h.read("proc/driver/nvidia/version") + "\n"); m != nil {
		return m[1]
	}
	return h.read("sys/module/nvidia/version")
}

// AMD returns the release of AMD's driver in the kernel. It returns "loaded" if the release is
// unknown, and "" if the driver is not loaded.
func (h Host) AMD() string {
	if v := h.read("sys/module/amdgpu/version"); v != "" {
		return v
	}
	if h.exists("sys/module/amdgpu") {
		return "loaded"
	}
	return ""
}

// A Node is a file through which programs use a driver.
type Node struct {
	Path     string
	Mode     fs.FileMode
	UID, GID int   // -1 if unknown
	Err      error // why the node is missing or does not open, or nil

	access string // for a node of /dev/nvidia-caps, the file of /proc that describes the node
}

func (n Node) String() string {
	s := n.Path + ": "
	if n.Mode != 0 {
		s += fmt.Sprintf("%v, user %d, group %d, ", n.Mode, n.UID, n.GID)
	}
	if n.Err != nil {
		return s + n.plain()
	}
	return s + "opens"
}

// Nodes returns the device nodes of GPUs. If NVIDIA's driver is loaded, the list has /dev/nvidiactl
// and /dev/nvidia-uvm even when they are missing, except on a Tegra.
func (h Host) Nodes() []Node {
	var nodes []Node
	for _, pattern := range []string{"dev/nvidiactl", "dev/nvidia-uvm", "dev/nvidia-modeset", "dev/nvidia[0-9]*", "dev/nvidia-caps/*", "dev/dxg", "dev/nvmap",
		"dev/nvhost-gpu", "dev/nvgpu/*/ctrl", "dev/kfd", "dev/dri/renderD*"} {
		files := h.glob(pattern)
		slices.SortFunc(files, func(a, b string) int { return cmpLength(a, b) })
		for _, f := range files {
			nodes = append(nodes, h.node(f))
		}
		if len(files) == 0 && h.NVIDIA() != "" && (pattern == "dev/nvidiactl" || pattern == "dev/nvidia-uvm") && !h.Tegra() {
			nodes = append(nodes, Node{Path: "/" + pattern, UID: -1, GID: -1, Err: fs.ErrNotExist})
		}
	}
	return nodes
}

func cmpLength(a, b string) int {
	if len(a) != len(b) {
		return len(a) - len(b)
	}
	return strings.Compare(a, b)
}

// node examines a node and opens it. Opening a GPU's node may start the GPU, as any use of a
// driver's library does.
func (h Host) node(path string) Node {
	n := Node{Path: path, UID: -1, GID: -1}
	full := filepath.Join(h.root, path)
	fi, err := os.Stat(full)
	if err != nil {
		n.Err = err
		return n
	}
	n.Mode = fi.Mode()
	n.UID, n.GID = owner(fi)
	n.Err = h.try(full)
	return n
}

// plain describes the problem of a node.
func (n Node) plain() string {
	switch err := n.Err; {
	case errors.Is(err, fs.ErrNotExist):
		return "is not there"
	case isEPERM(err):
		return "opening it is forbidden whatever its mode says, as by the device rules of a container's cgroup"
	case errors.Is(err, fs.ErrPermission):
		return fmt.Sprintf("this user may not open it: its mode is %v, of user %d and group %d", n.Mode, n.UID, n.GID)
	case isENXIO(err):
		return "no driver is behind it"
	default:
		var pe *fs.PathError
		if errors.As(err, &pe) {
			err = pe.Err
		}
		return fmt.Sprintf("opening it fails: %v", err)
	}
}

// undivided returns the numbers of the GPUs that support MIG and have no instance.
func (h Host) undivided() (gpus []string) {
	for _, mig := range h.glob("proc/driver/nvidia/capabilities/gpu*/mig") {
		if len(h.glob(mig+"/gi*")) == 0 {
			gpus = append(gpus, strings.TrimPrefix(filepath.Base(filepath.Dir(mig)), "gpu"))
		}
	}
	return gpus
}

// An instance is a compute instance of MIG. A program that uses a compute instance opens the
// capability nodes of the compute instance and of the GPU instance around it.
type instance struct {
	name  string // "gpu0/gi1/ci0"
	nodes []Node
}

// instances returns the compute instances of all GPUs.
func (h Host) instances() (all []instance) {
	const capabilities = "/proc/driver/nvidia/capabilities/"
	for _, ci := range h.glob(capabilities + "gpu*/mig/gi*/ci*") {
		i := instance{name: strings.Replace(strings.TrimPrefix(ci, capabilities), "/mig/", "/", 1)}
		for _, access := range []string{filepath.Dir(ci) + "/access", ci + "/access"} {
			if m := deviceMinor.FindStringSubmatch(h.read(access)); m != nil {
				n := h.node("/dev/nvidia-caps/nvidia-cap" + m[1])
				n.access = access
				i.nodes = append(i.nodes, n)
			}
		}
		all = append(all, i)
	}
	return all
}

// deviceMinor matches the number of a capability's device node.
var deviceMinor = regexp.MustCompile(`(?m)^DeviceFileMinor:\s*(\d+)$`)
