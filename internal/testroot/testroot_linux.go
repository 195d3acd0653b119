// Package testroot runs test programs in a separate root folder. The folder imitates another
// machine. It contains only that machine's libraries, device nodes and files of /proc, and the C
// library.
//
// Changing the root folder requires root rights or a user namespace. Without them the test is
// skipped. If the environment variable CI is set, the test fails instead: CI must run it. One case
// is skipped in CI as well: an emulator such as qemu runs the test program, and the kernel cannot
// start programs for the emulated processor.
package testroot

import (
	"debug/elf"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
)

// A Root is a folder that is / to a program.
type Root struct {
	t   testing.TB
	dir string

	// Program is the path of a copy of the test's own program, as seen inside the root folder.
	Program string
}

// New makes a root folder with the C library and the test's own program.
func New(t testing.TB) *Root {
	t.Helper()
	dir, err := os.MkdirTemp("", "root")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	r := &Root{t: t, dir: dir, Program: "/opt/program/bin/program"}
	for _, dir := range []string{"/dev", "/etc", "/proc/self", "/sys", "/tmp", "/usr/lib"} {
		r.check(os.MkdirAll(r.path(dir), 0o755))
	}
	libc(r)
	self, err := os.Executable()
	r.check(err)
	r.Copy(r.Program, self)
	r.Link("/proc/self/exe", r.Program)
	return r
}

// Unavailable skips the test, or fails it in CI.
func Unavailable(t testing.TB, why ...any) {
	t.Helper()
	if os.Getenv("CI") != "" {
		t.Fatal("this must run in CI: " + fmt.Sprint(why...))
	}
	t.Skip(fmt.Sprint(why...))
}

func (r *Root) check(err error) {
	r.t.Helper()
	if err != nil {
		r.t.Fatal(err)
	}
}

func (r *Root) path(name string) string { return filepath.Join(r.dir, name) }

// Write writes a file.
func (r *Root) Write(name, text string) {
	r.t.Helper()
	r.check(os.MkdirAll(filepath.Dir(r.path(name)), 0o755))
	r.check(os.WriteFile(r.path(name), []byte(text), 0o644))
}

// Copy copies a file of the machine.
func (r *Root) Copy(name, from string) {
	r.t.Helper()
	r.check(os.MkdirAll(filepath.Dir(r.path(name)), 0o755))
	data, err := os.ReadFile(from)
	r.check(err)
	r.check(os.WriteFile(r.path(name), data, 0o755))
}

// Link makes a symbolic link.
func (r *Root) Link(name, to string) {
	r.t.Helper()
	r.check(os.MkdirAll(filepath.Dir(r.path(name)), 0o755))
	r.check(os.Symlink(to, r.path(name)))
}

// Mode changes the mode of a file or folder.
func (r *Root) Mode(name string, mode fs.FileMode) {
	r.t.Helper()
	r.check(os.Chmod(r.path(name), mode))
}

// Node makes a device node that programs can open. It is a node of the null device.
func (r *Root) Node(name string) {
	r.t.Helper()
	r.check(os.MkdirAll(filepath.Dir(r.path(name)), 0o755))
	const null = 1<<8 | 3
	err := syscall.Mknod(r.path(name), syscall.S_IFCHR|0o666, null)
	if errors.Is(err, syscall.EPERM) {
		Unavailable(r.t, "only root can make device nodes: ", err)
	}
	r.check(err)
	r.Mode(name, 0o666)
}

// Run runs the test's program in the folder with only the given environment, as the given user, and
// returns its output and exit status. User 0 is root.
func (r *Root) Run(user int, env []string, args ...string) (said string, status int) {
	r.t.Helper()
	cmd := exec.Command(r.Program, args...)
	cmd.Dir, cmd.Env = "/", env
	cmd.SysProcAttr = &syscall.SysProcAttr{Chroot: r.dir}
	switch {
	case os.Getuid() != 0:
		cmd.SysProcAttr.Cloneflags = syscall.CLONE_NEWUSER | syscall.CLONE_NEWNS
		cmd.SysProcAttr.UidMappings = []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getuid(), Size: 1}}
		cmd.SysProcAttr.GidMappings = []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getgid(), Size: 1}}
		if user != 0 {
			Unavailable(r.t, "only root can start a program as another user")
		}
	case user != 0:
		cmd.SysProcAttr.Credential = &syscall.Credential{Uid: uint32(user), Gid: uint32(user)}
	}
	out, err := cmd.CombinedOutput()
	if exit, ok := errors.AsType[*exec.ExitError](err); ok && exit.Exited() {
		return string(out), exit.ExitCode()
	}
	if errors.Is(err, syscall.ENOEXEC) {
		if !emulated() {
			Unavailable(r.t, "the kernel cannot start the test's own program: ", err)
		}
		r.t.Skip("not run under the emulator: the kernel cannot start programs for " + runtime.GOARCH)
	}
	if errors.Is(err, fs.ErrPermission) || errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EUSERS) {
		Unavailable(r.t, "a root folder of its own cannot be had here: ", err)
	}
	if err != nil {
		r.t.Fatalf("%v\n%s", err, out)
	}
	return string(out), 0
}

// emulated reports whether the test's program is for a different processor than the machine's
// shell.
func emulated() bool {
	machine := func(name string) elf.Machine {
		f, err := elf.Open(name)
		if err != nil {
			return elf.EM_NONE
		}
		defer f.Close()
		return f.Machine
	}
	shell, self := machine("/bin/sh"), machine("/proc/self/exe")
	return shell != elf.EM_NONE && self != elf.EM_NONE && shell != self
}

// Host runs a command outside the root folder. In the arguments %s stands for the folder.
func (r *Root) Host(name string, args ...string) {
	r.t.Helper()
	for i := range args {
		args[i] = strings.ReplaceAll(args[i], "%s", r.dir)
	}
	path, err := exec.LookPath(name)
	for _, dir := range []string{"/sbin", "/usr/sbin"} {
		if err != nil {
			path, err = exec.LookPath(filepath.Join(dir, name))
		}
	}
	if err != nil {
		Unavailable(r.t, err)
	}
	if out, err := exec.Command(path, args...).CombinedOutput(); err != nil {
		r.t.Fatalf("%s %v: %v\n%s", name, args, err, out)
	}
}

// libc copies the dynamic loader into the root at the same path, and glibc's libraries to
// /lib/TRIPLET.
func libc(r *Root) {
	r.t.Helper()
	loader := map[string]string{"amd64": "/lib64/ld-linux-x86-64.so.2", "arm64": "/lib/ld-linux-aarch64.so.1"}[runtime.GOARCH]
	if self, err := elf.Open("/proc/self/exe"); err == nil {
		for _, p := range self.Progs {
			if p.Type == elf.PT_INTERP {
				name := make([]byte, p.Filesz)
				if _, err := p.ReadAt(name, 0); err == nil {
					loader = strings.TrimRight(string(name), "\x00")
				}
			}
		}
		self.Close()
	}
	r.Copy(loader, loader)
	triplet := map[string]string{"amd64": "x86_64-linux-gnu", "arm64": "aarch64-linux-gnu"}[runtime.GOARCH]
	found := false
	for _, dir := range []string{"/lib64", "/lib", "/usr/lib64", "/usr/lib", "/lib/" + triplet, "/usr/lib/" + triplet} {
		for _, name := range []string{"libc.so.6", "libpthread.so.0", "libdl.so.2", "librt.so.1", "libm.so.6"} {
			if _, err := os.Stat(filepath.Join(dir, name)); err == nil {
				r.Copy(filepath.Join("/lib", triplet, name), filepath.Join(dir, name))
				found = found || name == "libc.so.6"
			}
		}
	}
	if !found {
		Unavailable(r.t, "no glibc on this machine")
	}
}
