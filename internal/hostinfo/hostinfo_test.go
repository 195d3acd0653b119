//go:build unix

package hostinfo

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
)

// machine makes a host from files. Device nodes are plain files, and errs has the errors of opening
// them, by path.
func machine(t *testing.T, files map[string]string, env map[string]string, errs map[string]error) Host {
	t.Helper()
	root := t.TempDir()
	for name, text := range files {
		path := filepath.Join(root, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o777); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	return Host{
		root: root, linux: true,
		env: func(name string) (string, bool) { v, set := env[name]; return v, set },
		try: func(path string) error {
			rel, err := filepath.Rel(root, path)
			if err != nil {
				t.Fatal(err)
			}
			if err := errs["/"+filepath.ToSlash(rel)]; err != nil {
				return &fs.PathError{Op: "open", Path: path, Err: err}
			}
			return nil
		},
	}
}

const (
	closed = "NVRM version: NVIDIA UNIX x86_64 Kernel Module  550.54.15  Tue Mar  5 22:23:56 UTC 2024\nGCC version:  gcc version 12.2.0 (Debian 12.2.0-14)\n"
	opened = "NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  580.95.05  Release Build  (dvs-builder@U22)  Tue Sep 23\nGCC version:\n"
)

func TestNVIDIA(t *testing.T) {
	for text, want := range map[string]string{closed: "550.54.15", opened: "580.95.05", "NVRM version: nothing of this kind": "", "": ""} {
		if got := machine(t, map[string]string{"proc/driver/nvidia/version": text}, nil, nil).NVIDIA(); got != want {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
	if got := machine(t, map[string]string{"sys/module/nvidia/version": "535.1\n"}, nil, nil).NVIDIA(); got != "535.1" {
		t.Errorf("of the module: %q", got)
	}
}

func TestContainer(t *testing.T) {
	for _, c := range []struct {
		files, env map[string]string
		want       string
	}{
		{nil, nil, ""},
		{map[string]string{".dockerenv": ""}, map[string]string{"KUBERNETES_SERVICE_HOST": "10.0.0.1"}, "Docker, Kubernetes"},
		{map[string]string{"run/.containerenv": ""}, nil, "Podman"},
		{map[string]string{".singularity.d/env": ""}, nil, "Apptainer"},
		{map[string]string{"run/systemd/container": "lxc"}, nil, "lxc"},
		{map[string]string{"run/systemd/container": "wsl\n", "dev/dxg": ""}, nil, ""},
		{map[string]string{"run/systemd/container": "wsl\n", "dev/dxg": "", ".dockerenv": ""}, nil, "Docker"},
		{map[string]string{"proc/1/cgroup": "12:devices:/kubepods/besteffort/pod1"}, nil, "Kubernetes"},
	} {
		if got := machine(t, c.files, c.env, nil).Container(); got != c.want {
			t.Errorf("%v, %v: %q, want %q", c.files, c.env, got, c.want)
		}
	}
}

// TestCUDA checks the advice for machines that need more than files in a folder, such as errors of
// opening nodes. Tests of tools/gpuinfo check the advice for other machines.
func TestCUDA(t *testing.T) {
	nodes := map[string]string{"proc/driver/nvidia/version": closed, "dev/nvidiactl": "", "dev/nvidia-uvm": "", "dev/nvidia0": "", "dev/nvidia1": ""}
	with := func(more ...string) map[string]string {
		all := map[string]string{}
		for k, v := range nodes {
			all[k] = v
		}
		for _, m := range more {
			all[m] = ""
		}
		return all
	}
	for _, c := range []struct {
		name  string
		files map[string]string
		env   map[string]string
		errs  map[string]error
		code  int
		want  []string // part of each line of advice
	}{
		{"all is well but for the driver", nodes, nil, nil, unknown, []string{"if the machine has slept"}},
		{"rules of a control group", with(".dockerenv"), nil, map[string]error{"/dev/nvidiactl": syscall.EPERM, "/dev/nvidia0": syscall.EPERM, "/dev/nvidia1": syscall.EPERM}, noDevice,
			[]string{"/dev/nvidiactl, /dev/nvidia0, /dev/nvidia1: opening it is forbidden whatever its mode says, as by the device rules of a container's cgroup: start the container with the GPU, such as by docker run --gpus all, or with --device /dev/nvidiactl --device /dev/nvidia0 --device /dev/nvidia1; if the container has had the GPU before, a reload of systemd"}},
		{"mode of a node", nodes, nil, map[string]error{"/dev/nvidiactl": syscall.EACCES}, noDevice, []string{"/dev/nvidiactl: this user may not open it: its mode is "}},
		{"node without a driver", nodes, nil, map[string]error{"/dev/nvidia-uvm": syscall.ENXIO}, unknown, []string{"/dev/nvidia-uvm: no driver is behind it: "}},
		{"variables of a container", with(".dockerenv"), map[string]string{"NVIDIA_VISIBLE_DEVICES": "void", "CUDA_VISIBLE_DEVICES": "-1"}, nil, noDevice,
			[]string{`CUDA_VISIBLE_DEVICES is "-1", which hides all`, `NVIDIA_VISIBLE_DEVICES is "void", with which a container gets no GPU`}},
		{"WSL without the device", map[string]string{"proc/sys/kernel/osrelease": "5.15.146.1-microsoft-standard-WSL2"}, nil, nil, noDevice, []string{"/dev/dxg: is not there: update WSL"}},
		{"Jetson, and not in group video", map[string]string{"etc/nv_tegra_release": "", "dev/nvmap": "", "dev/nvhost-gpu": ""}, nil, map[string]error{"/dev/nvmap": syscall.EACCES}, unknown,
			[]string{"/dev/nvmap: this user may not open it", "if the machine"}[:1]},
		{"no capability node of MIG", instances(nodes), nil, map[string]error{"/dev/nvidia-caps/nvidia-cap11": syscall.EACCES, "/dev/nvidia-caps/nvidia-cap21": syscall.EACCES}, noDevice,
			[]string{
				"/dev/nvidia-caps/nvidia-cap11, which CUDA needs for the MIG instance gpu0/gi1/ci0: this user may not open it: its mode is ",
				"/dev/nvidia-caps/nvidia-cap20, which CUDA needs for the MIG instance gpu0/gi2/ci0: is not there: nvidia-modprobe -f /proc/driver/nvidia/capabilities/gpu0/mig/gi2/access makes it",
				"/dev/nvidia-caps/nvidia-cap21, which CUDA needs for the MIG instance gpu0/gi2/ci0: this user may not",
			}},
		{"no capability node in a container", instances(with(".dockerenv")), nil, map[string]error{"/dev/nvidia-caps/nvidia-cap10": syscall.EPERM}, noDevice,
			[]string{
				"/dev/nvidia-caps/nvidia-cap10, which CUDA needs for the MIG instance gpu0/gi1/ci0: opening it is forbidden whatever its mode says, as by the device rules of a container's cgroup: start the container with the instance, such as by docker run --gpus device=UUID",
				"/dev/nvidia-caps/nvidia-cap20, which",
			}},
		{"one instance of MIG that may be used", instances(nodes), nil, nil, noDevice, nil},
		{"a code that speaks for itself", nodes, nil, nil, 2, nil},
	} {
		got := machine(t, c.files, c.env, c.errs).CUDA(c.code, "/usr/lib/libcuda.so.1")
		if len(got) != len(c.want) {
			t.Errorf("%s: %q, want %d of them", c.name, got, len(c.want))
			continue
		}
		for i, want := range c.want {
			if !strings.Contains(got[i], want) {
				t.Errorf("%s: %q\nwant %q", c.name, got[i], want)
			}
		}
	}
	if got := (Host{}).CUDA(unknown, ""); got != nil {
		t.Errorf("on another system: %q", got)
	}
}

// instances adds two MIG instances to a machine. The first has nodes 10 and 11. The second has node
// 21 and lacks node 20.
func instances(files map[string]string) map[string]string {
	all := map[string]string{"dev/nvidia-caps/nvidia-cap10": "", "dev/nvidia-caps/nvidia-cap11": "", "dev/nvidia-caps/nvidia-cap21": ""}
	for path, text := range files {
		all[path] = text
	}
	for path, minor := range map[string]int{"gi1": 10, "gi1/ci0": 11, "gi2": 20, "gi2/ci0": 21} {
		all["proc/driver/nvidia/capabilities/gpu0/mig/"+path+"/access"] = fmt.Sprintf("DeviceFileMinor: %d\nDeviceFileMode: 292\nDeviceFileModify: 1\n", minor)
	}
	return all
}

// TestTry checks that try opens a capability node only for reading, since its mode allows no more.
// A running program's file serves as the node: Linux lets no user write to it, not even root.
func TestTry(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("needs a file that root cannot write to")
	}
	program, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]error{"nvidia-cap1": nil, "nvidia1": syscall.ETXTBSY} {
		path := filepath.Join(t.TempDir(), name)
		if err := os.Symlink(program, path); err != nil {
			t.Fatal(err)
		}
		if err := try(path); !errors.Is(err, want) {
			t.Errorf("%s: %v, want %v", name, err, want)
		}
	}
}

func TestReleaseOf(t *testing.T) {
	for name, want := range map[string]string{"/lib/libcuda.so.550.54.15": "550.54.15", "/lib/libcuda.so.1": "", "/lib/libcuda.so.1.1": "", "nvcuda.dll": ""} {
		if got := releaseOf(name); got != want {
			t.Errorf("%s: %q, want %q", name, got, want)
		}
	}
}

func TestNodes(t *testing.T) {
	h := machine(t, map[string]string{"proc/driver/nvidia/version": closed, "dev/nvidiactl": "", "dev/nvidia10": "", "dev/nvidia2": "", "dev/kfd": ""}, nil, map[string]error{"/dev/kfd": syscall.EACCES})
	var got []string
	for _, n := range h.Nodes() {
		path, _, _ := strings.Cut(n.String(), ": ")
		got = append(got, path)
	}
	if want := "/dev/nvidiactl /dev/nvidia-uvm /dev/nvidia2 /dev/nvidia10 /dev/kfd"; strings.Join(got, " ") != want {
		t.Errorf("%q, want %q", got, want)
	}
}
