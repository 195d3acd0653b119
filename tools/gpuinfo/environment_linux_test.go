//go:build linux && (amd64 || (arm64 && (!puregpu_static || cgo))) && !nogpu

package main

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/puregpu/puregpu/cuda"
	"github.com/puregpu/puregpu/internal/testlib"
	"github.com/puregpu/puregpu/internal/testroot"
	"github.com/puregpu/puregpu/runtime/drivers"
)

// inside names the environment variable that makes the test's program run gpuinfo.
const inside = "PUREGPU_TEST_GPUINFO"

func TestMain(m *testing.M) {
	switch os.Getenv(inside) {
	case "":
	case "best":
		_, err := drivers.Best(drivers.WithoutSim())
		fmt.Println(err)
		return
	case "dirs":
		d, err := drivers.Open(drivers.CUDA, drivers.WithLibraryDirs("/site"), drivers.WithCUDA(cuda.Options{Dirs: []string{"/mine"}}))
		fmt.Println(d, err)
		return
	default:
		os.Unsetenv(inside)
		os.Exit(run(os.Args[1:], os.Stdout, os.Stderr, probes))
	}
	if filepath.Base(os.Args[0]) == "elevated" { // this copy runs with more privileges than its caller, so it must ignore the variables
		os.Exit(run(os.Args[1:], os.Stdout, os.Stderr, probes))
	}
	os.Exit(m.Run())
}

// triplet is Debian's name of this platform.
var triplet = map[string]string{"amd64": "x86_64-linux-gnu", "arm64": "aarch64-linux-gnu"}[runtime.GOARCH]

// An environment is a machine of some kind, with the expected output of gpuinfo -explain there.
type environment struct {
	name string
	// The files by their paths: "cuda" is a fake library, "cuda 100" one whose functions return
	// 100, "node" is a device node, and anything else is the text of a file.
	files  map[string]string
	env    []string
	before func(*testroot.Root)
	says   []string // parts of the output, in order
	not    []string // parts that the output must not contain
	status int      // exit status of gpuinfo -explain -need
}

const (
	loaded = "NVRM version: NVIDIA UNIX x86_64 Kernel Module  550.54.15  Tue Mar  5 22:23:56 UTC 2024\nGCC version:  gcc version 12.2.0\n"
	nobody = 65534
)

var environments = []environment{
	{
		name:   "nothing",
		says:   []string{"CUDA driver: not found\n", "not where the system's loader looks: libcuda.so.1, libcuda.so\n", "not in: /usr/local/nvidia/lib64, ", "There is no sign of a GPU"},
		not:    []string{"taken:"},
		status: 3,
	},
	{
		name: "WSL with Debian's libcuda1",
		files: map[string]string{
			"/usr/lib/TRIPLET/libcuda.so.1": "cuda 100", "/usr/lib/wsl/lib/libcuda.so.1": "cuda", "/dev/dxg": "node",
			"/usr/lib/TRIPLET/libnvidia-ml.so.1": "nvml 9", "/usr/lib/wsl/lib/libnvidia-ml.so.1": "nvml",
		},
		says: []string{
			"CUDA driver 12.4\n    taken: /usr/lib/wsl/lib/libcuda.so.1 (directory /usr/lib/wsl/lib, ",
			"tried: /usr/lib/TRIPLET/libcuda.so.1 (system loader), version 12.4: no device (cuInit: cuda: CUDA_ERROR_NO_DEVICE (100): ",
			"device 0: Fake GPU",
			"NVML 12.4\n    taken: /usr/lib/wsl/lib/libnvidia-ml.so.1 (",
			"tried: /usr/lib/TRIPLET/libnvidia-ml.so.1 (system loader), version 12.4: no device (nvmlInit: nvml: NVML_ERROR_DRIVER_NOT_LOADED (9): ",
			"1: CUDA driver: /usr/lib/TRIPLET/libcuda.so.1 precedes /usr/lib/wsl/lib/libcuda.so.1 and does not work here: remove it, or set PUREGPU_CUDA_LIBRARY=/usr/lib/wsl/lib/libcuda.so.1.",
			"A GPU can be used",
		},
	},
	{
		name:  "container with a stub and the device plugin's folder",
		files: map[string]string{"/lib/TRIPLET/libcuda.so.1": "cuda 34", "/usr/local/nvidia/lib64/libcuda.so.1": "cuda", "/.dockerenv": "", "/proc/driver/nvidia/version": loaded},
		says: []string{
			"container: Docker\n", "NVIDIA's driver in the kernel: 550.54.15\n",
			"taken: /usr/local/nvidia/lib64/libcuda.so.1 (directory /usr/local/nvidia/lib64, ",
			"tried: /lib/TRIPLET/libcuda.so.1 (system loader): ", "stub library, only for linking",
		},
	},
	{
		name:   "container without a library",
		files:  map[string]string{"/.dockerenv": "", "/proc/driver/nvidia/version": loaded},
		says:   []string{"CUDA driver: not found\n", "CUDA driver: the kernel has NVIDIA's driver 550.54.15, but the container lacks the driver's library: start it with the GPU, such as by docker run --gpus all"},
		status: 3,
	},
	{
		name:  "NixOS",
		files: map[string]string{"/run/opengl-driver/lib/libcuda.so.1": "cuda"},
		says:  []string{"taken: /run/opengl-driver/lib/libcuda.so.1 (directory /run/opengl-driver/lib, "},
	},
	{
		name:  "nix-ld",
		files: map[string]string{"/nix/ld/lib/libcuda.so.1": "cuda", "/nix/ld2/lib/libnccl.so.2": "nccl"},
		env:   []string{"NIX_LD_LIBRARY_PATH=/nix/ld/lib:/nix/ld2/lib"},
		says:  []string{"variable: NIX_LD_LIBRARY_PATH=", "taken: /nix/ld/lib/libcuda.so.1 (directory $NIX_LD_LIBRARY_PATH, ", "NCCL 2.28.3\n    taken: /nix/ld2/lib/libnccl.so.2 ("},
	},
	{
		name:  "nix-ld's own folder",
		files: map[string]string{"/run/current-system/sw/share/nix-ld/lib/libcuda.so.1": "cuda"},
		says:  []string{"taken: /run/current-system/sw/share/nix-ld/lib/libcuda.so.1 ("},
	},
	{
		name:  "Guix",
		files: map[string]string{"/gnu/store/env/lib/libcuda.so.1": "cuda 999", "/run/current-system/profile/lib/libcuda.so.1": "cuda"},
		env:   []string{"GUIX_ENVIRONMENT=/gnu/store/env"},
		says: []string{
			"taken: /run/current-system/profile/lib/libcuda.so.1 (directory /run/current-system/profile/lib, ",
			"tried: /gnu/store/env/lib/libcuda.so.1 (directory $GUIX_ENVIRONMENT/lib), version 12.4: cuInit: cuda: CUDA_ERROR_UNKNOWN (999)",
		},
	},
	{
		name: "Flatpak with the extensions of two drivers",
		files: map[string]string{
			"/.flatpak-info": "", "/usr/lib/TRIPLET/GL/nvidia-550-54-15/lib/libcuda.so.1": "cuda", "/usr/lib/TRIPLET/GL/nvidia-1000-1/lib/libcuda.so.1": "cuda 803",
			"/proc/driver/nvidia/version": loaded,
		},
		says: []string{
			"container: Flatpak\n", "taken: /usr/lib/TRIPLET/GL/nvidia-550-54-15/lib/libcuda.so.1 (directory /usr/lib/$multiarch/GL/nvidia-*/lib, ",
			"tried: /usr/lib/TRIPLET/GL/nvidia-1000-1/lib/libcuda.so.1 (", "CUDA_ERROR_SYSTEM_DRIVER_MISMATCH (803)",
		},
	},
	{
		name:  "Snap",
		files: map[string]string{"/var/lib/snapd/lib/gl/libcuda.so.1": "cuda"},
		env:   []string{"SNAP=/snap/program/1"},
		says:  []string{"container: Snap\n", "taken: /var/lib/snapd/lib/gl/libcuda.so.1 ("},
	},
	{
		name:  "Jetson",
		files: map[string]string{"/usr/lib/TRIPLET/tegra/libcuda.so.1": "cuda", "/etc/nv_tegra_release": "# R35", "/dev/nvmap": "node", "/dev/nvhost-gpu": "node"},
		says:  []string{"device node: /dev/nvmap: ", "taken: /usr/lib/TRIPLET/tegra/libcuda.so.1 (directory /usr/lib/$multiarch/tegra, "},
	},
	{
		name:  "Jetson with nvgpu",
		files: map[string]string{"/usr/lib/TRIPLET/nvgpu/libcuda.so.1": "cuda"},
		says:  []string{"taken: /usr/lib/TRIPLET/nvgpu/libcuda.so.1 ("},
	},
	{
		name:  "Jetson with JetPack 6",
		files: map[string]string{"/usr/lib/TRIPLET/nvidia/libcuda.so.1": "cuda"},
		says:  []string{"taken: /usr/lib/TRIPLET/nvidia/libcuda.so.1 ("},
	},
	{
		name: "server for arm64 (SBSA), with the toolkit's own folder",
		files: map[string]string{
			"/usr/lib/TRIPLET/libcuda.so.1": "cuda", "/usr/lib/TRIPLET/libnvidia-ml.so.1": "nvml", "/usr/local/cuda/targets/sbsa-linux/lib/libnvrtc.so.12": "nvrtc",
			"/usr/local/cuda/targets/sbsa-linux/lib/libnccl.so.2": "nccl", "/usr/local/cuda/targets/sbsa-linux/include/cuda_fp16.h": "//",
			"/proc/driver/nvidia/version": loaded, "/dev/nvidiactl": "node", "/dev/nvidia-uvm": "node", "/dev/nvidia0": "node",
		},
		says: []string{
			"taken: /usr/lib/TRIPLET/libcuda.so.1 (system loader, ", "taken: /usr/local/cuda/targets/sbsa-linux/lib/libnccl.so.2 (directory /usr/local/cuda/targets/sbsa-linux/lib, ",
			"taken: /usr/lib/TRIPLET/libnvidia-ml.so.1 (system loader, ", "taken: /usr/local/cuda/targets/sbsa-linux/lib/libnvrtc.so.12 (",
			"cuda_fp16.h: /usr/local/cuda/targets/sbsa-linux/include\n", "A GPU can be used",
		},
	},
	{
		name: "toolkit, two releases of it",
		files: map[string]string{
			"/usr/local/cuda-12.4/lib64/libnvrtc.so.12": "nvrtc", "/usr/local/cuda-9.2/lib64/libnvrtc.so.12": "nvrtc", "/usr/local/cuda-12.4/include/cuda_fp16.h": "//",
		},
		says:   []string{"NVRTC 12.4\n    taken: /usr/local/cuda-12.4/lib64/libnvrtc.so.12 (directory /usr/local/cuda-*/lib64, ", "cuda_fp16.h: /usr/local/cuda-12.4/include\n"},
		status: 3,
	},
	{
		name: "Conda",
		files: map[string]string{
			"/home/conda/lib/libnvrtc.so.12": "nvrtc", "/home/conda/lib/libnccl.so.2": "nccl", "/home/conda/targets/x86_64-linux/include/cuda_fp16.h": "//",
		},
		env: []string{"CONDA_PREFIX=/home/conda"},
		says: []string{
			"NCCL 2.28.3\n    taken: /home/conda/lib/libnccl.so.2 (directory $CONDA_PREFIX/lib, ", "NVRTC 12.4\n    taken: /home/conda/lib/libnvrtc.so.12 (",
			"cuda_fp16.h: /home/conda/targets/x86_64-linux/include\n",
		},
		status: 3,
	},
	{
		name: "wheels of Python in a virtual environment",
		files: map[string]string{
			"/venv/lib/python3.12/site-packages/nvidia/nccl/lib/libnccl.so.2":            "nccl",
			"/venv/lib/python3.12/site-packages/nvidia/cuda_nvrtc/lib/libnvrtc.so.12":    "nvrtc",
			"/venv/lib/python3.12/site-packages/nvidia/cuda_runtime/include/cuda_fp16.h": "//",
		},
		env: []string{"VIRTUAL_ENV=/venv"},
		says: []string{
			"taken: /venv/lib/python3.12/site-packages/nvidia/nccl/lib/libnccl.so.2 (", "taken: /venv/lib/python3.12/site-packages/nvidia/cuda_nvrtc/lib/libnvrtc.so.12 (",
			"cuda_fp16.h: /venv/lib/python3.12/site-packages/nvidia/cuda_runtime/include\n",
		},
		status: 3,
	},
	{
		name: "folders that PUREGPU_LIBRARY_PATH names come first",
		files: map[string]string{
			"/site/nvidia/cu13/lib/libnvrtc.so.13": "nvrtc", "/site/nvidia/cu13/include/cuda_fp16.h": "//", "/lib/TRIPLET/libnvrtc.so.13": "nvrtc",
			"/mine/libnccl.so.2": "nccl", "/lib/TRIPLET/libnccl.so.2": "nccl",
		},
		env: []string{"PUREGPU_LIBRARY_PATH=/site::/mine"},
		says: []string{
			"taken: /mine/libnccl.so.2 (environment variable PUREGPU_LIBRARY_PATH, ", "taken: /site/nvidia/cu13/lib/libnvrtc.so.13 (", "cuda_fp16.h: /site/nvidia/cu13/include\n",
		},
		status: 3,
	},
	{
		name:  "lib beside the program",
		files: map[string]string{"/opt/program/bin/lib/libcuda.so.1": "cuda", "/lib/TRIPLET/libcuda.so.1": "cuda"},
		says:  []string{"taken: /opt/program/bin/lib/libcuda.so.1 (directory $ORIGIN/lib, "},
	},
	{
		name:   "lib beside the program to which others can write",
		files:  map[string]string{"/opt/program/bin/lib/libcuda.so.1": "cuda", "/lib/TRIPLET/libcuda.so.1": "cuda"},
		before: func(r *testroot.Root) { r.Mode("/opt/program/bin/lib", 0o777) },
		says:   []string{"taken: /lib/TRIPLET/libcuda.so.1 (system loader, ", "tried: /opt/program/bin/lib (directory $ORIGIN/lib): not used: its mode 0777 lets others write"},
	},
	{
		name:  "the loader's cache has an unusual folder",
		files: map[string]string{"/opt/driver/libcuda.so.1": "cuda"},
		before: func(r *testroot.Root) {
			r.Host("ldconfig", "-r", "%s", "-X", "-C", "/etc/ld.so.cache", "/opt/driver")
		},
		says: []string{"taken: /opt/driver/libcuda.so.1 (system loader, "},
	},
	{
		name:  "a cache that this loader does not read",
		files: map[string]string{"/opt/driver/libcuda.so.1": "cuda"},
		before: func(r *testroot.Root) {
			r.Write("/var/cache/ldconfig/readme", "")
			r.Host("ldconfig", "-r", "%s", "-X", "-C", "/var/cache/ldconfig/ld.so.cache", "/opt/driver")
		},
		says: []string{"taken: /opt/driver/libcuda.so.1 (/var/cache/ldconfig/ld.so.cache, "},
	},
	{
		name:   "a file that is named ends the search",
		files:  map[string]string{"/mine/libcuda.so.1": "cuda 100", "/lib/TRIPLET/libcuda.so.1": "cuda"},
		env:    []string{"PUREGPU_CUDA_LIBRARY=/mine/libcuda.so.1"},
		says:   []string{"taken: /mine/libcuda.so.1 (environment variable PUREGPU_CUDA_LIBRARY, ", "devices: cuInit: cuda: CUDA_ERROR_NO_DEVICE (100)"},
		not:    []string{"/lib/TRIPLET/libcuda"},
		status: 3,
	},
	{
		name:  "none is ready: the best answer counts",
		files: map[string]string{"/lib/TRIPLET/libcuda.so.1": "cuda 100", "/usr/lib/wsl/lib/libcuda.so.1": "cuda 999", "/run/opengl-driver/lib/libcuda.so.1": "cuda 100"},
		says: []string{
			"taken: /usr/lib/wsl/lib/libcuda.so.1 (directory /usr/lib/wsl/lib, ", "for want of a better", "CUDA_ERROR_UNKNOWN (999)", "tried: /lib/TRIPLET/libcuda.so.1 (", "CUDA_ERROR_NO_DEVICE (100)",
			"tried: /run/opengl-driver/lib/libcuda.so.1 (",
		},
		status: 1,
	},
	{
		name: "two of HIP, NCCL and NVRTC, of which the second works",
		files: map[string]string{
			"/lib/TRIPLET/libamdhip64.so.6": "hip 100", "/opt/rocm-6.4.0/lib/libamdhip64.so.6": "hip", "/lib/TRIPLET/libnccl.so.2": "nccl 3", "/usr/local/cuda/lib64/libnccl.so.2": "nccl",
			"/lib/TRIPLET/libnvrtc.so.12": "nvrtc 11", "/usr/local/cuda/lib64/libnvrtc.so.12": "nvrtc",
		},
		says: []string{
			"taken: /usr/local/cuda/lib64/libnccl.so.2 (", "tried: /lib/TRIPLET/libnccl.so.2 (system loader): ncclGetVersion: ",
			"taken: /usr/local/cuda/lib64/libnvrtc.so.12 (", "tried: /lib/TRIPLET/libnvrtc.so.12 (system loader): nvrtcVersion: ",
			"taken: /opt/rocm-6.4.0/lib/libamdhip64.so.6 (", "tried: /lib/TRIPLET/libamdhip64.so.6 (system loader), version 6.4.43484: no device (hipInit: ",
		},
	},
	{
		name:   "cuInit 999 in a container without /dev/nvidia-uvm",
		files:  map[string]string{"/lib/TRIPLET/libcuda.so.1": "cuda 999", "/.dockerenv": "", "/proc/driver/nvidia/version": loaded, "/dev/nvidiactl": "node", "/dev/nvidia0": "node"},
		says:   []string{"device node: /dev/nvidia-uvm: is not there", "1: CUDA driver: cuInit: cuda: CUDA_ERROR_UNKNOWN (999)", "; /dev/nvidia-uvm: is not there: start the container with the GPU, such as by docker run --gpus all, or with --device /dev/nvidia-uvm"},
		status: 1,
	},
	{
		name:   "cuInit 999 on a machine without the module's nodes",
		files:  map[string]string{"/lib/TRIPLET/libcuda.so.1": "cuda 999", "/proc/driver/nvidia/version": loaded, "/dev/nvidiactl": "node", "/dev/nvidia0": "node"},
		says:   []string{"/dev/nvidia-uvm: is not there: nvidia-modprobe -u -c 0 makes the nodes and loads their modules"},
		status: 1,
	},
	{
		name:   "cuInit 803",
		files:  map[string]string{"/lib/TRIPLET/libcuda.so.535.104.05": "cuda", "/lib/TRIPLET/libcuda.so.1.answer": "803", "/proc/driver/nvidia/version": loaded},
		before: func(r *testroot.Root) { r.Link("/lib/"+triplet+"/libcuda.so.1", "libcuda.so.535.104.05") },
		says:   []string{"CUDA_ERROR_SYSTEM_DRIVER_MISMATCH (803)", "the kernel's driver, 550.54.15, and the library, 535.104.05, must be of one release: restart the machine after an update of the driver"},
		status: 1,
	},
	{
		name:   "cuInit 804",
		files:  map[string]string{"/usr/local/cuda/compat/libcuda.so.1": "cuda 804", "/proc/driver/nvidia/version": loaded},
		env:    []string{"LD_LIBRARY_PATH=/usr/local/cuda/compat"},
		says:   []string{"CUDA_ERROR_COMPAT_NOT_SUPPORTED_ON_DEVICE (804)", "in /usr/local/cuda/compat/libcuda.so.1 is one for forward compatibility (package cuda-compat), and the kernel's driver, 550.54.15, or this GPU does not take it: leave its folder out of LD_LIBRARY_PATH"},
		status: 1,
	},
	{
		name:   "cuInit 802",
		files:  map[string]string{"/lib/TRIPLET/libcuda.so.1": "cuda 802", "/proc/driver/nvidia/version": loaded},
		says:   []string{"CUDA_ERROR_SYSTEM_NOT_READY (802)", "systemctl status nvidia-fabricmanager says whether it runs", "it must be of the driver's release, 550.54.15"},
		status: 1,
	},
	{
		name:   "cuInit 3 without a driver in the kernel",
		files:  map[string]string{"/lib/TRIPLET/libcuda.so.1": "cuda 3"},
		says:   []string{"CUDA_ERROR_NOT_INITIALIZED (3)", "CUDA does not start in a process that was forked from one that had started it", "NVIDIA's driver is not loaded in the kernel (no /proc/driver/nvidia/version): load it: modprobe nvidia"},
		status: 1,
	},
	{
		name:   "cuInit 100 and CUDA_VISIBLE_DEVICES",
		files:  map[string]string{"/lib/TRIPLET/libcuda.so.1": "cuda 100", "/proc/driver/nvidia/version": loaded, "/dev/nvidiactl": "node", "/dev/nvidia-uvm": "node", "/dev/nvidia0": "node"},
		env:    []string{"CUDA_VISIBLE_DEVICES=7"},
		says:   []string{`CUDA_VISIBLE_DEVICES is "7": CUDA uses only these devices, up to the first that does not exist; nvidia-smi -L lists all`},
		status: 3,
	},
	{
		name:  "cuInit 100 and an empty CUDA_VISIBLE_DEVICES: the next libcuda, which is stale, is not asked",
		files: map[string]string{"/lib/TRIPLET/libcuda.so.1": "cuda 100", "/usr/local/nvidia/lib64/libcuda.so.1": "cuda 803"},
		env:   []string{"CUDA_VISIBLE_DEVICES="},
		says: []string{
			"taken: /lib/TRIPLET/libcuda.so.1 (system loader, as libcuda.so.1): all devices are hidden: ",
			`1: CUDA driver: cuInit: cuda: CUDA_ERROR_NO_DEVICE (100)`, `; CUDA_VISIBLE_DEVICES is "", which hides all devices: unset it, or list some`,
		},
		not:    []string{"/usr/local/nvidia/lib64/libcuda.so.1", "for want of a better one"},
		status: 3,
	},
	{
		name: "cuInit 100 and MIG without instances",
		files: map[string]string{
			"/lib/TRIPLET/libcuda.so.1": "cuda 100", "/proc/driver/nvidia/version": loaded, "/dev/nvidiactl": "node", "/dev/nvidia-uvm": "node", "/dev/nvidia0": "node",
			"/proc/driver/nvidia/capabilities/gpu0/mig/.keep": "", "/proc/driver/nvidia/capabilities/gpu1/mig/gi1/access": "",
		},
		says:   []string{"GPU 0 has no instance of MIG: if its MIG mode is on (", "make some by nvidia-smi mig -cgi and -C, or switch it off by nvidia-smi -mig 0"},
		status: 3,
	},
	{
		name: "cuInit 100 in a container that lacks a capability node of MIG",
		files: map[string]string{
			"/lib/TRIPLET/libcuda.so.1": "cuda 100", "/.dockerenv": "", "/proc/driver/nvidia/version": loaded, "/dev/nvidiactl": "node", "/dev/nvidia-uvm": "node", "/dev/nvidia0": "node",
			"/proc/driver/nvidia/capabilities/gpu0/mig/gi1/access":     "DeviceFileMinor: 12\nDeviceFileMode: 292\nDeviceFileModify: 1\n",
			"/proc/driver/nvidia/capabilities/gpu0/mig/gi1/ci0/access": "DeviceFileMinor: 13\nDeviceFileMode: 292\nDeviceFileModify: 1\n", "/dev/nvidia-caps/nvidia-cap12": "node",
		},
		says: []string{
			"device node: /dev/nvidia-caps/nvidia-cap12: ", "/dev/nvidia-caps/nvidia-cap13, which CUDA needs for the MIG instance gpu0/gi1/ci0: is not there: start the container with the instance, ",
			"or with --device /dev/nvidia-caps/nvidia-cap13",
		},
		not:    []string{"nvidia-cap12, which"},
		status: 3,
	},
}

// TestEnvironments checks the output of gpuinfo -explain on many kinds of machines. Each machine is
// a root folder with its own libraries.
func TestEnvironments(t *testing.T) {
	libraries := map[string]string{}
	for _, name := range []string{"cuda", "nvml", "hip", "nccl", "nvrtc"} {
		libraries[name] = testlib.Answering(t, name).Build(t)
	}
	for _, e := range environments {
		t.Run(e.name, func(t *testing.T) {
			r := e.build(t, libraries)
			said, status := r.Run(0, append(e.env, inside+"=1"), "-explain", "-need")
			e.check(t, said, status)
		})
	}
}

// build makes the machine.
func (e *environment) build(t *testing.T, libraries map[string]string) *testroot.Root {
	r := testroot.New(t)
	for path, what := range e.files {
		path = strings.ReplaceAll(path, "TRIPLET", triplet)
		name, answer, _ := strings.Cut(what, " ")
		switch {
		case what == "node":
			r.Node(path)
		case libraries[name] != "":
			r.Copy(path, libraries[name])
			if answer != "" {
				r.Write(path+".answer", answer)
			}
		default:
			r.Write(path, what)
		}
	}
	if e.before != nil {
		e.before(r)
	}
	return r
}

// check compares the output, and ignores line breaks.
func (e *environment) check(t *testing.T, said string, status int) {
	t.Helper()
	flat := strings.ReplaceAll(said, "\n        ", " ")
	rest := flat
	for _, want := range e.says {
		want = strings.ReplaceAll(want, "TRIPLET", triplet)
		_, after, ok := strings.Cut(rest, want)
		if !ok {
			t.Errorf("it does not say %q, or not in its place", want)
			break
		}
		rest = after
	}
	for _, not := range e.not {
		if not = strings.ReplaceAll(not, "TRIPLET", triplet); strings.Contains(flat, not) {
			t.Errorf("it says %q", not)
		}
	}
	if status != e.status {
		t.Errorf("exit status %d, want %d", status, e.status)
	}
	if t.Failed() {
		t.Log(said)
	}
}

// TestBestTellsAll checks that the error of drivers.Best on a machine without a working driver
// lists each file with its error.
func TestBestTellsAll(t *testing.T) {
	e := environment{
		files: map[string]string{
			"/lib/TRIPLET/libcuda.so.1": "cuda 100", "/usr/lib/wsl/lib/libcuda.so.1": "cuda 34", "/run/opengl-driver/lib/libcuda.so.1": "cuda 999",
			"/opt/rocm/lib/libamdhip64.so.6": "hip 100", "/opt/rocm-6.4/lib/libamdhip64.so.6": "hip 101", "/proc/driver/nvidia/version": loaded, "/dev/nvidiactl": "node",
		},
		says: []string{
			"drivers: no GPU can be used\ncuda: init: CUDA_ERROR_UNKNOWN (999): ", "; /dev/nvidia-uvm, /dev/nvidia0: is not there: nvidia-modprobe ",
			"\n\t/lib/TRIPLET/libcuda.so.1 (system loader): no device (cuInit: cuda: CUDA_ERROR_NO_DEVICE (100): ",
			"\n\t/usr/lib/wsl/lib/libcuda.so.1: ", "stub library, only for linking",
			"\n\t/run/opengl-driver/lib/libcuda.so.1: cuInit: cuda: CUDA_ERROR_UNKNOWN (999)",
			"\nhip: init: the HIP runtime in /opt/rocm/lib/libamdhip64.so.6, version 6.4.43484, finds no AMD GPU: ", "\n\t/opt/rocm-6.4/lib/libamdhip64.so.6", ": no device (hipInit: ",
		},
	}
	r := e.build(t, map[string]string{"cuda": testlib.Answering(t, "cuda").Build(t), "hip": testlib.Answering(t, "hip").Build(t)})
	said, status := r.Run(0, []string{inside + "=best"})
	e.check(t, said, status)
}

// TestBestWithoutLibrary checks the error of drivers.Best in a container that has the kernel's
// driver and no library.
func TestBestWithoutLibrary(t *testing.T) {
	e := environment{
		files: map[string]string{"/.dockerenv": "", "/proc/driver/nvidia/version": loaded},
		says: []string{
			"drivers: no GPU can be used\ncuda: the kernel has NVIDIA's driver 550.54.15, but the container lacks the driver's library: start it with the GPU, such as by docker run --gpus all, ",
			": cuda: CUDA driver not found; install ", "\n\tlibcuda.so.1, libcuda.so (system loader): ", "\n\t/usr/local/nvidia/lib64, /usr/local/nvidia/lib, /usr/lib/wsl/lib, ",
		},
	}
	said, status := e.build(t, nil).Run(0, []string{inside + "=best"})
	e.check(t, said, status)
}

// TestNamedFileIsMissing checks that the error for a missing file that a variable names does not
// claim that no library was found.
func TestNamedFileIsMissing(t *testing.T) {
	e := environment{
		files: map[string]string{"/proc/driver/nvidia/version": loaded},
		env:   []string{"PUREGPU_CUDA_LIBRARY=/no/such/libcuda.so.1"},
		says:  []string{"/no/such/libcuda.so.1 (environment variable PUREGPU_CUDA_LIBRARY): no such file"},
		not:   []string{"no library of it"},
	}
	r := e.build(t, nil)
	said, status := r.Run(0, append(e.env, inside+"=best"))
	e.check(t, said, status)
	said, status = r.Run(0, append(e.env, inside+"=1"), "-explain")
	e.says = []string{"What to do", "/no/such/libcuda.so.1 (environment variable PUREGPU_CUDA_LIBRARY): no such file"}
	e.check(t, said, status)
}

// TestLibraryDirs checks the order in which folders that the program names are searched: folders
// for CUDA alone come first.
func TestLibraryDirs(t *testing.T) {
	e := environment{
		files: map[string]string{"/mine/libcuda.so.1": "cuda 999", "/site/libcuda.so.1": "cuda 999", "/lib/TRIPLET/libcuda.so.1": "cuda 999"},
		says:  []string{"\n\t/mine/libcuda.so.1 (Options.Dirs): cuInit: ", "\n\t/site/libcuda.so.1 (Options.Dirs): cuInit: ", "\n\t/lib/TRIPLET/libcuda.so.1 (system loader): cuInit: "},
	}
	r := e.build(t, map[string]string{"cuda": testlib.Answering(t, "cuda").Build(t)})
	said, status := r.Run(0, []string{inside + "=dirs"})
	e.check(t, said, status)
}

// TestElevated checks that a set-user-ID program takes no library that a variable names, and none
// from a folder beside the program.
func TestElevated(t *testing.T) {
	e := environment{
		files: map[string]string{
			"/theirs/libcuda.so.1": "cuda", "/opt/program/bin/lib/libcuda.so.1": "cuda", "/theirs/lib/libcuda.so.1": "cuda", "/lib/TRIPLET/libcuda.so.1": "cuda 100",
		},
		env: []string{"PUREGPU_CUDA_LIBRARY=/theirs/libcuda.so.1", "PUREGPU_LIBRARY_PATH=/theirs", "NIX_LD_LIBRARY_PATH=/theirs", "GUIX_ENVIRONMENT=/theirs", "CONDA_PREFIX=/theirs", "LD_LIBRARY_PATH=/theirs"},
	}
	r := e.build(t, map[string]string{"cuda": testlib.Answering(t, "cuda").Build(t)})
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	r.Program = "/opt/program/bin/elevated"
	r.Copy(r.Program, self)
	said, _ := r.Run(nobody, e.env, "-explain")
	e.says = []string{"taken: /theirs/libcuda.so.1 (environment variable PUREGPU_CUDA_LIBRARY, "}
	e.check(t, said, 0)
	r.Mode(r.Program, os.ModeSetuid|0o755)
	said, _ = r.Run(nobody, e.env, "-explain")
	e.says = []string{"taken: /lib/TRIPLET/libcuda.so.1 (system loader, "}
	if static := "as in a set-user-ID program"; strings.Contains(strings.Join(strings.Fields(said), " "), static) {
		e.says = []string{static} // a static program opens no library
	}
	e.not = []string{"(environment variable", "taken: /theirs", "tried: /theirs", "$ORIGIN"}
	e.check(t, said, 0)
}
