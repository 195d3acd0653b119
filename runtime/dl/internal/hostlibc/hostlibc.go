//go:build linux && amd64 && puregpu_static && !nogpu && !cgo

package hostlibc

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
	"unsafe"
)

// Env names the environment variable that says where glibc's loader is.
const Env = "PUREGPU_LOADER"

// loaders are where glibc's loader is looked for, in order.
var loaders = []string{
	"/lib64/ld-linux-x86-64.so.2",
	"/lib/x86_64-linux-gnu/ld-linux-x86-64.so.2",
	"/usr/lib64/ld-linux-x86-64.so.2",
	"/usr/lib/ld-linux-x86-64.so.2",
	"/usr/lib/x86_64-linux-gnu/ld-linux-x86-64.so.2",
	"/nix/store/*-glibc-[0-9]*/lib/ld-linux-x86-64.so.2",
	"/gnu/store/*-glibc-[0-9]*/lib/ld-linux-x86-64.so.2",
}

// ErrAbsent: the machine has no glibc.
var ErrAbsent = errors.New("no glibc")

// A Libc is the C library of the machine, in this process.
type Libc struct {
	Loader                         string  // the loader's file
	Dlopen, Dlsym, Dlerror, Dlinfo uintptr // functions of C
}

var (
	mu   sync.Mutex
	libc *Libc // nil until it has started
)

// Enter is the address of code that gives a thread an identity.
func Enter() uintptr { return entries[2] }

// Start starts the machine's C library, the first time that it succeeds, and returns it. If there is none the error is [ErrAbsent].
func Start() (*Libc, error) {
	mu.Lock()
	defer mu.Unlock()
	if libc != nil {
		return libc, nil
	}
	l, err := start()
	if err != nil {
		return nil, err
	}
	libc = l
	return l, nil
}

func start() (*Libc, error) {
	ld, err := findLoader()
	if err != nil {
		return nil, err
	}
	p, err := newProgram(ld.path)
	if err != nil {
		ld.unmap()
		return nil, err
	}
	if err := try(ld, p); err != nil {
		ld.unmap()
		return nil, fmt.Errorf("the loader %s cannot start a program: %w", ld.path, err)
	}
	_, sp, err := newStack(ld, p, entries[1])
	if err != nil {
		return nil, err
	}
	const thread = syscall.CLONE_VM | syscall.CLONE_FS | syscall.CLONE_FILES | syscall.CLONE_SIGHAND | syscall.CLONE_THREAD |
		syscall.CLONE_SYSVSEM | syscall.CLONE_SETTLS
	if n := spawn(thread, uintptr(unsafe.Pointer(&firstTLS[0]))+8, 0, sp, ld.entry); n < 0 {
		return nil, fmt.Errorf("cannot start a thread: %w", syscall.Errno(-n))
	}
	for atomic.LoadUint32(&started) == 0 {
		time.Sleep(50 * time.Microsecond)
	}
	return &Libc{Loader: ld.path, Dlopen: table[0], Dlsym: table[1], Dlerror: table[2], Dlinfo: table[3]}, nil
}

// findLoader finds glibc's loader and maps it.
func findLoader() (*loader, error) {
	if path := os.Getenv(Env); path != "" {
		ld, err := mapLoader(path)
		if err != nil {
			return nil, fmt.Errorf("%s is not a loader to use: %s: %w", Env, path, err)
		}
		return ld, nil
	}
	var refused []string
	for _, pattern := range loaders {
		paths, _ := filepath.Glob(pattern)
		slices.Reverse(paths)
		for _, path := range paths {
			ld, err := mapLoader(path)
			if err == nil {
				return ld, nil
			}
			refused = append(refused, fmt.Sprintf("%s: %v", path, err))
		}
	}
	err := fmt.Errorf("%w on this machine, which GPU libraries need: no loader %s (%s names another)", ErrAbsent, strings.Join(loaders, ", "), Env)
	if len(refused) > 0 {
		err = fmt.Errorf("%w; %s", err, strings.Join(refused, "; "))
	}
	return nil, err
}

// try starts the program in a process of its own, which is a copy of this one. So it is known what the loader says, and that it does not end the
// process.
func try(ld *loader, p *program) error {
	base, sp, err := newStack(ld, p, entries[0])
	if err != nil {
		return err
	}
	_ = base
	r, w, err := os.Pipe()
	if err != nil {
		return err
	}
	defer r.Close()
	pid := spawn(0, 0, w.Fd(), sp, ld.entry)
	w.Close()
	if pid < 0 {
		return fmt.Errorf("cannot start a process: %w", syscall.Errno(-pid))
	}
	said, _ := io.ReadAll(io.LimitReader(r, 1<<16))
	var status syscall.WaitStatus
	for {
		_, err := syscall.Wait4(pid, &status, syscall.WALL, nil)
		if err != syscall.EINTR {
			break
		}
	}
	if status.Exited() && status.ExitStatus() == 0 {
		return nil
	}
	what := strings.TrimSpace(string(said))
	if status.Signaled() {
		what = strings.TrimSpace("it ended by " + status.Signal().String() + "\n" + what)
	}
	return errors.New(what)
}
