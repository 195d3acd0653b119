//go:build linux && amd64 && puregpu_static && !nogpu && !cgo

package hostlibc

import _ "unsafe" // for linkname

// These variables tell the runtime that it can call C, and how. In other programs runtime/cgo
// defines them. The linker lets this package define them.

//go:linkname iscgo runtime.iscgo
var iscgo = true

//go:linkname hostlibc_init hostlibc_init
var hostlibc_init byte

//go:linkname _cgo_init _cgo_init
var _cgo_init = &hostlibc_init

//go:linkname hostlibc_threadstart hostlibc_threadstart
var hostlibc_threadstart byte

//go:linkname _cgo_thread_start _cgo_thread_start
var _cgo_thread_start = &hostlibc_threadstart

//go:linkname hostlibc_nothing hostlibc_nothing
var hostlibc_nothing byte

//go:linkname _cgo_notify_runtime_init_done _cgo_notify_runtime_init_done
var _cgo_notify_runtime_init_done = &hostlibc_nothing

//go:linkname _cgo_bindm _cgo_bindm
var _cgo_bindm = &hostlibc_nothing

// pthreadKey stays 0. So the runtime forgets a C thread when the thread's call of Go returns, and
// has nothing to do when the thread ends.
var pthreadKey uintptr

//go:linkname _cgo_pthread_key_created _cgo_pthread_key_created
var _cgo_pthread_key_created = &pthreadKey

//go:linkname set_crosscall2 runtime.set_crosscall2
var set_crosscall2 = func() {}

//go:linkname hostlibc_setenv hostlibc_setenv
var hostlibc_setenv byte

//go:linkname _cgo_setenv runtime._cgo_setenv
var _cgo_setenv = &hostlibc_setenv

//go:linkname hostlibc_unsetenv hostlibc_unsetenv
var hostlibc_unsetenv byte

//go:linkname _cgo_unsetenv runtime._cgo_unsetenv
var _cgo_unsetenv = &hostlibc_unsetenv

// These variables make syscall.Setuid and similar functions fail. Without them package syscall
// would ask the runtime to change user and group on all threads, and in a program that can call C
// the runtime panics on that.

//go:linkname hostlibc_unsupported hostlibc_unsupported
var hostlibc_unsupported byte

//go:linkname cgo_libc_setegid syscall.cgo_libc_setegid
//go:linkname cgo_libc_seteuid syscall.cgo_libc_seteuid
//go:linkname cgo_libc_setgid syscall.cgo_libc_setgid
//go:linkname cgo_libc_setregid syscall.cgo_libc_setregid
//go:linkname cgo_libc_setresgid syscall.cgo_libc_setresgid
//go:linkname cgo_libc_setresuid syscall.cgo_libc_setresuid
//go:linkname cgo_libc_setreuid syscall.cgo_libc_setreuid
//go:linkname cgo_libc_setuid syscall.cgo_libc_setuid
//go:linkname cgo_libc_setgroups syscall.cgo_libc_setgroups
var (
	cgo_libc_setegid   = &hostlibc_unsupported
	cgo_libc_seteuid   = &hostlibc_unsupported
	cgo_libc_setgid    = &hostlibc_unsupported
	cgo_libc_setregid  = &hostlibc_unsupported
	cgo_libc_setresgid = &hostlibc_unsupported
	cgo_libc_setresuid = &hostlibc_unsupported
	cgo_libc_setreuid  = &hostlibc_unsupported
	cgo_libc_setuid    = &hostlibc_unsupported
	cgo_libc_setgroups = &hostlibc_unsupported
)

// firstTLS is the thread-local storage of the main thread, with the thread's g, until the thread
// has an identity. Other threads begin with the storage in the runtime's m.
var firstTLS [6]uintptr

// These variables are for the assembly code. None points to the Go heap.
var (
	table     [len(imports) + 1]uintptr // addresses written by the loader, then the offset of the TLS block
	identity0 uintptr                   // thread pointer of the loader's thread; not 0 after its start
	attr      [16]uintptr               // pthread_attr_t
	started   uint32
	lock      uint32

	noStackText    = "puregpu: out of memory for the stack of a thread\n"
	noThreadText   = "puregpu: cannot start a thread\n"
	noIdentityText = "puregpu: cannot start a thread of the C library's\n"
)

// imports are the imported C functions. The assembly code knows their indexes in table.
var imports = [...]string{
	"dlopen", "dlsym", "dlerror", "dlinfo",
	"pthread_create", "pthread_attr_init", "pthread_attr_setdetachstate",
	"setenv", "unsetenv", "__errno_location",
	rseqSize: "__rseq_size", // a variable, not a function; glibc before 2.35 lacks it
}

const rseqSize = 10

// exports are functions that libraries must find here instead of in the C library. The C library's
// versions would change only the threads that it knows, and would wait for sleeping threads.
var exports = [...]string{
	"setuid", "seteuid", "setreuid", "setresuid", "setgid", "setegid", "setregid", "setresgid", "setgroups",
}

// Addresses of code in the assembly files.
var entries struct {
	trial, main uintptr // entries of programs for the loader to start
	enter       uintptr // gives the calling thread an identity
	refuse      uintptr // a C function that returns an error, in place of all exports
	callbacks   uintptr // the callbacks' C functions, in a row
}

// spawn starts a thread at entry. Without CLONE_VM in flags it starts a process instead, whose
// standard output and standard error go to the file descriptor out. The thread or process begins
// with all signals blocked, with the thread pointer tls and the stack pointer sp. spawn returns the
// number of the thread or process, or a negative error number.
func spawn(flags, tls, out, sp, entry uintptr) int
