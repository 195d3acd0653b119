package hostinfo

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// These are the error codes of cuInit about which [Host.CUDA] has advice.
const (
	notInitialized = 3
	noDevice       = 100
	invalidDevice  = 101
	notReady       = 802
	mismatch       = 803
	noCompat       = 804
	unknown        = 999
)

// CUDA returns advice about an error code of a library's cuInit, the most likely cause first. It
// returns nothing if it knows no cause, and on systems other than Linux.
func (h Host) CUDA(code int, library string) (say []string) {
	if !h.linux {
		return nil
	}
	add := func(format string, args ...any) { say = append(say, fmt.Sprintf(format, args...)) }
	switch code {
	case notReady:
		add("GPUs behind NVSwitch work once the Fabric Manager has set them up: systemctl status nvidia-fabricmanager says whether it runs, "+
			"and nvidia-smi -q prints Fabric, State: Completed, when it is done; it must be of the driver's release%s", h.kernelRelease())
	case mismatch:
		add("the kernel's driver%s and the library%s must be of one release: restart the machine after an update of the driver, "+
			"and let no image of a container bring a libcuda of its own", named(h.NVIDIA()), named(releaseOf(library)))
	case noCompat:
		add("the library%s in %s is one for forward compatibility (package cuda-compat), and the kernel's driver%s or this GPU does not take it: "+
			"leave its folder out of LD_LIBRARY_PATH, or update the kernel's driver", named(releaseOf(library)), library, named(h.NVIDIA()))
	case notInitialized:
		add("CUDA does not start in a process that was forked from one that had started it, nor in one that is ending: start a program of its own")
		say = append(say, h.absent()...)
	case unknown:
		say = h.absent()
		if len(say) == 0 {
			add("if the machine has slept, load the module again: rmmod nvidia_uvm, modprobe nvidia_uvm; else dmesg has what the kernel's driver says")
		}
	case noDevice, invalidDevice:
		say = append(h.hidden(), h.absent()...)
		if gpus := h.undivided(); len(say) == 0 && len(gpus) > 0 {
			add("GPU %s has no instance of MIG: if its MIG mode is on (nvidia-smi --query-gpu=mig.mode.current --format=csv), "+
				"make some by nvidia-smi mig -cgi and -C, or switch it off by nvidia-smi -mig 0", strings.Join(gpus, " and GPU "))
		}
	}
	return say
}

// NoLibrary returns advice if the kernel has NVIDIA's driver but no library of that driver was
// found, and otherwise "".
func (h Host) NoLibrary() string {
	release := h.NVIDIA()
	switch {
	case !h.linux || release == "":
		return ""
	case h.Container() != "":
		return fmt.Sprintf("the kernel has NVIDIA's driver %s, but the container lacks the driver's library: start it with the GPU, such as by docker run --gpus all, "+
			"with compute among NVIDIA_DRIVER_CAPABILITIES", release)
	}
	return fmt.Sprintf("the kernel has NVIDIA's driver %s, but the driver's library was not found: install the same release of it (on Debian libcuda1), "+
		"or name its folder in PUREGPU_LIBRARY_PATH", release)
}

func (h Host) kernelRelease() string {
	if v := h.NVIDIA(); v != "" {
		return ", " + v
	}
	return ""
}

func named(release string) string {
	if release == "" {
		return ""
	}
	return ", " + release + ","
}

var inName = regexp.MustCompile(`\.so\.(\d+\.\d+(?:\.\d+)?)$`)

// releaseOf returns the driver's release from the name of the driver's library, such as
// libcuda.so.550.54.15. It follows links.
func releaseOf(library string) string {
	if real, err := filepath.EvalSymlinks(library); err == nil {
		library = real
	}
	if m := inName.FindStringSubmatch(library); m != nil && len(m[1]) > len("1.1") {
		return m[1]
	}
	return ""
}

// HidesAll returns advice if CUDA_VISIBLE_DEVICES hides every device of any machine from CUDA, and
// otherwise "". Whether a list that begins with a number or a UUID hides all devices depends on the
// machine.
func (h Host) HidesAll() string {
	v, set := h.env("CUDA_VISIBLE_DEVICES")
	if set && (v == "" || strings.HasPrefix(v, "-") || v == "NoDevFiles") { // Slurm sets NoDevFiles
		return fmt.Sprintf("CUDA_VISIBLE_DEVICES is %q, which hides all devices: unset it, or list some", v)
	}
	return ""
}

// hidden returns advice about the variables that may hide devices from the program.
func (h Host) hidden() (say []string) {
	if why := h.HidesAll(); why != "" {
		say = append(say, why)
	} else if v, set := h.env("CUDA_VISIBLE_DEVICES"); set {
		say = append(say, fmt.Sprintf("CUDA_VISIBLE_DEVICES is %q: CUDA uses only these devices, up to the first that does not exist; nvidia-smi -L lists all", v))
	}
	if v, set := h.env("NVIDIA_VISIBLE_DEVICES"); set && slices.Contains([]string{"", "void", "none"}, v) && h.Container() != "" {
		say = append(say, fmt.Sprintf("NVIDIA_VISIBLE_DEVICES is %q, with which a container gets no GPU: set it to all", v))
	}
	return say
}

// absent lists the parts of NVIDIA's driver that are missing or unusable.
func (h Host) absent() (say []string) {
	container, systemd := h.Container(), ""
	switch {
	case h.WSL():
		if n := h.node("/dev/dxg"); n.Err != nil {
			say = append(say, "/dev/dxg: "+n.plain()+": update WSL (wsl --update) and NVIDIA's driver for Windows, and give the device to containers")
		}
		return say
	case h.Tegra():
		for _, path := range []string{"/dev/nvmap", "/dev/nvhost-gpu"} {
			if n := h.node(path); n.Err != nil && !(path == "/dev/nvhost-gpu" && len(h.glob("dev/nvgpu/*/ctrl")) > 0) {
				say = append(say, fmt.Sprintf("%s: %s: add the user to group video, and start containers with --runtime nvidia", path, n.plain()))
			}
		}
		return say
	case h.NVIDIA() == "":
		what := "load it: modprobe nvidia; if that fails install NVIDIA's driver for this kernel"
		if container != "" {
			what = "load it on the machine that runs the container"
		}
		return []string{"NVIDIA's driver is not loaded in the kernel (no /proc/driver/nvidia/version): " + what}
	}
	paths := []string{"/dev/nvidiactl", "/dev/nvidia-uvm"}
	gpus := h.glob("dev/nvidia[0-9]*")
	if len(gpus) == 0 {
		gpus = []string{"/dev/nvidia0"}
	}
	var whats []string
	same := map[string][]string{} // nodes with the same problem
	for _, path := range append(paths, gpus...) {
		n := h.node(path)
		if n.Err == nil {
			continue
		}
		what := n.plain()
		if same[what] == nil {
			whats = append(whats, what)
		}
		same[what] = append(same[what], path)
		if isEPERM(n.Err) && container != "" {
			systemd = "; if the container has had the GPU before, a reload of systemd on the machine took the rules away: start it anew"
		}
	}
	for _, what := range whats {
		nodes, fix := same[what], "nvidia-modprobe -u -c 0 makes the nodes and loads their modules"
		if container != "" {
			fix = "start the container with the GPU, such as by docker run --gpus all, or with --device " + strings.Join(nodes, " --device ")
		}
		say = append(say, strings.Join(nodes, ", ")+": "+what+": "+fix)
	}
	if systemd != "" {
		say[len(say)-1] += systemd
	}
	return append(say, h.closedInstances()...)
}

// closedInstances lists the capability nodes that prevent the use of MIG's instances. It returns
// nothing if the program may use one of the instances.
func (h Host) closedInstances() (say []string) {
	for _, i := range h.instances() {
		var bad []Node
		for _, n := range i.nodes {
			if n.Err != nil {
				bad = append(bad, n)
			}
		}
		if bad == nil {
			return nil
		}
		for _, n := range bad {
			fix := "give the user the right to read it"
			switch {
			case h.Container() != "":
				fix = "start the container with the instance, such as by docker run --gpus device=UUID, with a UUID that nvidia-smi -L lists, or with --device " + n.Path
			case errors.Is(n.Err, fs.ErrNotExist):
				fix = "nvidia-modprobe -f " + n.access + " makes it"
			}
			s := fmt.Sprintf("%s, which CUDA needs for the MIG instance %s: %s: %s", n.Path, i.name, n.plain(), fix)
			if !slices.Contains(say, s) {
				say = append(say, s)
			}
		}
	}
	return say
}
