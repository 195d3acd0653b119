// Package hostlibc starts the machine's C library inside a static program, so that Go can call C.
//
// It has code only on linux/amd64 with the build tag puregpu_static and CGO_ENABLED=0. A program
// that links the package has neither an interpreter nor a dynamic section, and starts on any Linux
// machine. The package looks for glibc only when [Start] is called.
//
// # Replacing a dynamic program's start
//
// The C library must be initialized before C is called. It sets the thread pointer of the first
// thread and of each thread that pthread_create makes; errno, locks and thread-local variables
// depend on that pointer. In a dynamic program the kernel starts the dynamic loader, the loader
// starts the C library, and pthread_create makes all threads. In a static program Go makes its own
// threads, each with Go's thread pointer. This package replaces the loader's start, the C library's
// threads and runtime/cgo:
//
//   - The loader. Start maps the file ld-linux-x86-64.so.2 as the kernel would. It starts the
//     loader on a thread of its own, whose stack has the arguments, the environment and an
//     auxiliary vector. The vector points to the headers of a main program that exist only in
//     memory. The program in memory needs libc.so.6 and two more libraries. Its relocations make
//     the loader write the addresses of dlopen, dlsym, pthread_create and a few more functions to a
//     table. After the loader has started the program in memory, the thread sleeps forever.
//   - Identities. A Go thread gets a thread pointer of the C library before its first call of C.
//     For this, pthread_create makes a new thread, which sleeps and lends its identity: all state
//     that is found through the thread pointer. The identity stays with the Go thread until
//     that thread ends. State of the kernel thread, such as the signal mask and affinity, and the
//     stack remain the Go thread's own.
//   - The runtime. Variables that runtime/cgo normally defines tell the runtime that it can call C.
//     A call then works as in [runtime/cgo], through runtime.cgocall: the scheduler, tracebacks and
//     profiles know of the call, and C can call Go.
//
// # Thread pointer and g
//
// In a static program for linux/amd64, compiled Go code finds its goroutine, g, 8 bytes below the
// thread pointer, and uses nothing else relative to it. In the C library's TLS the blocks of
// thread-local variables are below the thread pointer, the main program's first. The main program
// here has a block of exactly 8 bytes. So every thread of the C library has a slot for g that no
// library uses, and that is 0 on threads where Go has never run, as with cgo.
//
// A thread therefore does not switch identities at each call. A Go thread gets its identity once,
// from the code whose address [Enter] returns. This code copies g to the new slot and then changes
// the thread pointer. A signal between the two steps finds g in either slot. From then on Go code
// also runs with the C library's thread pointer. A call only checks whether the word at the thread
// pointer is 0. The C library stores the word's own address there. Go's thread pointer points into
// m.tls, where the word is 0. Start checks with a relocation that the block is at -8.
//
// # Stacks
//
// The runtime starts threads through a hook. Like runtime.newosproc the hook calls clone, but with
// a stack of 8 MiB and a guard page, because C runs on that stack. Only used pages take memory. The
// main thread keeps the kernel's stack. An identity's own stack holds only the frames of the
// sleeping thread and, when that thread ends, of destructors. pthread_getattr_np returns the
// identity's own stack and not the stack in use, so a library that asks for the bounds of its stack
// gets the wrong bounds. An error in the loader's thread and a stack overflow end the process.
//
// # The end of a thread
//
// A Go thread ends when a goroutine locked to it ends. The kernel then clears a word and wakes the
// thread that lends the identity (set_tid_address). That thread returns from its function, and the
// C library ends it like any other: it runs destructors of thread-local variables and of pthread
// keys, including CUDA's, on the thread pointer for which they were registered. Then the kernel
// marks the robust mutexes that the thread left locked, so that the next thread to lock one is told
// that the owner has died. This works because the list of these mutexes and the owner's number in
// them belong to the lending thread.
// The process's first thread does not end with a goroutine.
//
// # Making a thread
//
// pthread_create itself needs a thread pointer. A thread that needs an identity borrows the thread
// pointer of the sleeping loader's thread for this call, under a lock and with signals blocked. If
// pthread_create fails, the thread retries for some time. If all retries fail, the process ends
// with a message, as Go does when it cannot start a thread.
//
// # Signals
//
// Lending threads block all signals, so handlers run on Go's threads, on Go's signal stacks. During
// a call of C the slot below the thread pointer has the g of the thread's scheduler, as with cgo.
// On threads made by libraries the slot is 0, and the runtime treats a signal or a call of Go as on
// any foreign thread. So pthread_create need not be interposed. Preemption by SIGURG and profiling
// by SIGPROF may interrupt C code, and then act as with cgo. Once the runtime can call C, it leaves
// signals 32 and 33 to the C library.
//
// # Differences from a dynamic program
//
//   - Restartable sequences: the kernel would update the processor number of the sleeping thread.
//     Start sets GLIBC_TUNABLES to turn them off. In a set-user-ID program glibc ignores the
//     variable, so Start fails there if glibc uses restartable sequences.
//   - Thread numbers: gettid returns the Go thread's number, and pthread_t holds the sleeping
//     thread's. Mutexes work, because they compare the sleeping thread's number with itself.
//     Mutexes that inherit priority fail when contended, because the kernel compares that number
//     with the Go thread's. pthread_setaffinity_np and pthread_setschedparam for the calling thread
//     change the sleeping thread, and so does pthread_kill before glibc 2.34.
//   - User and group belong to a kernel thread. Go's functions, such as syscall.Setuid, fail with
//     ENOTSUP. C's functions are interposed and fail too: they would change only the threads that
//     the C library knows.
//   - fork in C keeps the calling thread with its identity. The child need not call exec.
//   - execve and os/exec work unchanged.
//   - Only the C library uses brk. Go does not.
//   - Go's exit does not run functions that C registered with atexit, as in dynamic programs.
//   - os.Setenv and os.Unsetenv also change C's environment, which starts as a copy made by Start.
//   - pthread_exit and pthread_cancel must not be called for a Go thread, as in any program.
//   - A library that needs an executable stack opens only if glibc allows it. The stacks of Go
//     threads do not become executable.
//
// # Errors
//
// The loader ends the process if it cannot start a program. So Start first runs the loader in a
// forked copy of the process. If the loader fails there, its output becomes the text of the error.
// If glibc or libc.so.6 is missing, or the loader belongs to another C library, Start returns an
// error and the program continues.
//
// # Tested versions
//
// Go 1.26 and 1.27; glibc 2.31, 2.36 and 2.41 (Debian 11, 12 and 13), and briefly 2.43. The package
// depends by name on parts of the runtime that exist for runtime/cgo, as package purego does in
// dynamic programs. A Go release that changes them fails to link, or to start. Debuggers do not see
// libraries that the loader has loaded.
//
// arm64 is not supported. Go keeps g in a register there, and the offset at which it saves g during
// a call of C was not examined.
package hostlibc
