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
	"unsafe"

	"github.com/puregpu/puregpu/internal/secureenv"
)

// Env names the environment variable with the path of glibc's loader.
const Env = "PUREGPU_LOADER"

// loaders are the usual paths of glibc's loader, in order.
var loaders = []string{
	"/lib64/ld-linux-x86-64.so.2",
	"/lib/x86_64-linux-gnu/ld-linux-x86-64.so.2",
	"/usr/lib64/ld-linux-x86-64.so.2",
	"/usr/lib/ld-linux-x86-64.so.2",
	"/usr/lib/x86_64-linux-gnu/ld-linux-x86-64.so.2",
	"/nix/store/*-glibc-[0-9]*/lib/ld-linux-x86-64.so.2",
	"/gnu/store/*-glibc-[0-9]*/lib/ld-linux-x86-64.so.2",
}

const futexWait = 0 // FUTEX_WAIT

// ErrAbsent: the machine has no glibc.
var ErrAbsent = errors.New("no glibc")

// A Libc is the machine's C library, loaded in this process.
type Libc struct {
	Loader                         string  // the loader's file
	Dlopen, Dlsym, Dlerror, Dlinfo uintptr // functions of C
}

var (
	mu     sync.Mutex
	libc   *Libc // nil until it has started
	broken error // why the started library cannot be used; a library cannot be started twice
)

// Enter returns the address of code that gives the calling thread the thread pointer that functions
// of the C library need.
func Enter() uintptr { return entries.enter }

// Start starts the machine's C library in this process, unless it has started already, and returns
// it. On a machine without glibc the error is [ErrAbsent]. After an error Start may be called
// again. If the C library has started but cannot be used, each call returns the same error.
func Start() (*Libc, error) {
	mu.Lock()
	defer mu.Unlock()
	if libc == nil && broken == nil {
		if err := start(); err != nil {
			return nil, err
		}
	}
	return libc, broken
}

// start starts the C library and sets the variable libc or the variable broken. It returns an error
// if nothing was started.
func start() error {
	ld, p, err := find()
	if err != nil {
		return err
	}
	stack, sp, err := newStack(ld, p, entries.main)
	if err != nil {
		ld.unmap()
		p.unmap()
		return fmt.Errorf("out of memory: %w", err)
	}
	const thread = syscall.CLONE_VM | syscall.CLONE_FS | syscall.CLONE_FILES | syscall.CLONE_SIGHAND | syscall.CLONE_THREAD |
		syscall.CLONE_SYSVSEM | syscall.CLONE_SETTLS
	if n := spawn(thread, uintptr(unsafe.Pointer(&firstTLS[0]))+8, 0, sp, ld.entry); n < 0 {
		ld.unmap()
		p.unmap()
		stack.unmap()
		return fmt.Errorf("cannot start a thread: %w", syscall.Errno(-n))
	}
	for atomic.LoadUint32(&started) == 0 {
		syscall.Syscall6(syscall.SYS_FUTEX, uintptr(unsafe.Pointer(&started)), futexWait, 0, 0, 0, 0)
	}
	if offset := int(table[len(imports)]); offset != -tlsSize {
		broken = fmt.Errorf("the loader %s puts the first thread-local variable at %d, and Go needs it at %d", ld.path, offset, -tlsSize)
	} else if v := table[rseqSize]; v != 0 && le.Uint32(memory(v, 4)) != 0 {
		broken = errors.New("the C library uses restartable sequences, which do not work on Go's threads: it ignored " +
			"GLIBC_TUNABLES=glibc.pthread.rseq=0, as in a set-user-ID program")
	} else {
		libc = &Libc{Loader: ld.path, Dlopen: table[0], Dlsym: table[1], Dlerror: table[2], Dlinfo: table[3]}
	}
	return nil
}

// find finds a glibc loader that can start a program, and makes the program that the loader will
// start.
func find() (*loader, *program, error) {
	if path := secureenv.Get(Env); path != "" {
		ld, p, err := prepare(path)
		if err != nil {
			return nil, nil, fmt.Errorf("%s=%s: %w", Env, path, err)
		}
		return ld, p, nil
	}
	var refused, dirs []string
	for _, pattern := range loaders {
		dirs = append(dirs, filepath.Dir(pattern))
		paths, _ := filepath.Glob(pattern)
		slices.Reverse(paths)
		for _, path := range paths {
			ld, p, err := prepare(path)
			if err == nil {
				return ld, p, nil
			}
			refused = append(refused, fmt.Sprintf("%s: %v", path, err))
		}
	}
	if len(refused) > 0 {
		return nil, nil, fmt.Errorf("no usable glibc loader: %s; name one in %s", strings.Join(refused, "; "), Env)
	}
	return nil, nil, fmt.Errorf("%w on this machine, which GPU libraries need: no ld-linux-x86-64.so.2 in %s; name it in %s if it is elsewhere",
		ErrAbsent, strings.Join(dirs, ", "), Env)
}

// prepare maps the loader at path, makes a program for it, and checks that the loader can start the
// program.
func prepare(path string) (*loader, *program, error) {
	ld, err := mapLoader(path)
	if err != nil {
		return nil, nil, err
	}
	p, err := newProgram(path)
	if err != nil {
		ld.unmap()
		return nil, nil, fmt.Errorf("out of memory: %w", err)
	}
	if err := try(ld, p); err != nil {
		ld.unmap()
		p.unmap()
		return nil, nil, fmt.Errorf("it cannot start a program: %w", err)
	}
	return ld, p, nil
}

// try starts the program in a copy of this process, because a loader that fails ends its process.
// The error has the loader's message.
func try(ld *loader, p *program) error {
	stack, sp, err := newStack(ld, p, entries.trial)
	if err != nil {
		return err
	}
	defer stack.unmap()
	r, w, err := os.Pipe()
	if err != nil {
		return err
	}
	pid := spawn(0, 0, w.Fd(), sp, ld.entry)
	w.Close()
	if pid < 0 {
		return fmt.Errorf("cannot start a process: %w", syscall.Errno(-pid))
	}
	said, _ := io.ReadAll(io.LimitReader(r, 1<<12))
	r.Close() // if the loader writes more, it gets an error instead of blocking
	var status syscall.WaitStatus
	_, err = syscall.Wait4(pid, &status, syscall.WALL, nil)
	for err == syscall.EINTR {
		_, err = syscall.Wait4(pid, &status, syscall.WALL, nil)
	}
	what := strings.TrimSpace(string(said))
	switch {
	case err != nil:
		return fmt.Errorf("cannot wait for a process: %w", err)
	case status.Exited() && status.ExitStatus() == 0:
		return nil
	case status.Signaled():
		return fmt.Errorf("%v %s", status.Signal(), what)
	case what == "":
		return fmt.Errorf("exit status %d", status.ExitStatus())
	}
	return errors.New(what)
}
