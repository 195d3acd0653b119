// Package hostlibc starts the machine's C library inside a static program, so that Go can call C in it.
//
// It has code only on linux/amd64 with the build tag puregpu_static and CGO_ENABLED=0. A program that links it has neither an interpreter
// nor a dynamic section, and starts wherever Linux runs. Only when [Start] is called does it look for glibc.
//
// # What there is instead of a dynamic program
//
// A C library has to be there before C is called: it sets up the thread pointer, on which errno, locks and thread-local variables depend,
// for the first thread, and for each that pthread_create makes. In a dynamic program the kernel starts the dynamic loader, the loader
// starts the C library, and all threads come from pthread_create. Here Go starts its threads by itself, with a thread pointer of its own,
// and the rest is made up for:
//
//   - The loader. Start maps the file ld-linux-x86-64.so.2 as the kernel would, and starts it on a thread of its own, with a stack on which
//     are the arguments, the environment and an auxiliary vector. The vector points to headers in memory, without a file, of a main
//     program. It needs libc.so.6 and two more libraries, and by its relocations has the loader write the addresses of dlopen, dlsym,
//     pthread_create and a few more into a table. Once the loader has started it, the thread sleeps for good.
//   - Identities. A Go thread that calls C and has no thread pointer of the C library's gets one. A new thread of the C library's, made
//     with pthread_create, sleeps and lends the Go thread its identity: all that is kept by thread pointer. The Go thread keeps it until it
//     ends. What is kept by the kernel's thread, such as the signal mask and affinity, is the Go thread's own, as is its stack.
//   - The runtime. It is told that it can call C, through the variables that runtime/cgo has otherwise; so a call is [runtime/cgo]'s, by
//     runtime.cgocall, with all that belongs to it: the scheduler, tracebacks and profiles know of it, and C can call Go.
//
// # Thread pointer and g
//
// Compiled Go code in a static program for linux/amd64 has the pointer to its goroutine, g, 8 bytes below the thread pointer, and uses
// nothing else that depends on it. In the C library's TLS the blocks of thread-local variables lie below the thread pointer, the main
// program's first. The program here has 8 bytes of them and no more. So every thread of the C library's has a slot for g in which no
// library puts anything, and which is 0 where Go has never been: as with cgo. That is why an identity need not be put on and off with each
// call. A Go thread gets it once, in [Enter]'s code: g is copied to the new slot, then the thread pointer is changed. A signal between
// finds g in either. From then on Go code runs with the C library's thread pointer too. A call asks only whether the word at the thread
// pointer is 0. The C library has its own address there; Go, in m.tls, has 0. Start checks by a relocation that the block is at -8.
//
// # Stacks
//
// The runtime starts threads through a hook. Like runtime.newosproc it clones, but onto a stack of 8 MiB, of which only pages that are used
// take memory, with a guard page, since C runs on it. The main thread has the stack that the kernel made. An identity's own stack has only
// the frames of the thread that sleeps, and of destructors in the end. pthread_getattr_np tells that stack, and not the one in use: a
// library that looks for its own stack's bounds is mistaken. An error in the loader's thread, and a stack that overflows, end the process.
//
// # The end of a thread
//
// A Go thread ends when a goroutine that is locked to it does. The kernel then clears a word and wakes who waits for it (set_tid_address);
// that is the thread that lends the identity. It returns from its function, and the C library ends it as any other: with destructors of
// thread-local variables and of pthread keys, CUDA's among them, on the thread pointer for which they were registered. Then the kernel marks
// the robust mutexes that it has left locked, so that who locks one next is told: their list, and the number of the owner in them, are those of
// the thread that lends. The process's first thread does not end with a goroutine.
//
// # Making a thread
//
// pthread_create takes a thread pointer too. The thread that needs an identity takes the loader's thread's for the time of this call, under
// a lock; it sleeps and does not need it. Signals are blocked meanwhile. If the C library refuses, it is asked again for some time, and
// then the process ends with a message, as Go does when it cannot start a thread.
//
// # Signals
//
// Threads of the C library's that are made here block all signals, so handlers run on Go's threads, which have the signal stacks that Go
// gives them. During a call of C the slot below the thread pointer has the g of the thread's scheduler, as with cgo. On threads that
// libraries make, the slot is 0, and the runtime treats the signal, or the call of Go, as on any thread that it does not know. So
// pthread_create need not be interposed. Preemption by SIGURG, and profiling by SIGPROF, find code that is not Go's, and do what they do
// with cgo. The runtime leaves signals 32 and 33 to the C library once it can call C.
//
// # What concerns kernel threads and identities alike
//
//   - Restartable sequences: the kernel would keep the processor's number up to date for the thread that sleeps. The C library is told by
//     GLIBC_TUNABLES not to use them. That is not heeded in programs with the rights of another user, where Start fails.
//   - Thread numbers: gettid is the Go thread's, what is kept in pthread_t is that of the thread that sleeps. Mutexes compare the latter
//     with itself. But mutexes that inherit priority have the kernel compare it, and fail when contended; and pthread_setaffinity_np and
//     pthread_setschedparam, for the calling thread, reach the one that sleeps, as does pthread_kill before glibc 2.34.
//   - User and group: they belong to a kernel thread. Go's functions, such as syscall.Setuid, fail with ENOTSUP; so do C's, which are
//     interposed, since they would change the threads that the C library knows and no others.
//   - fork in C leaves the calling thread, with its identity. It need not call exec.
//   - execve, and os/exec, which shares memory with the child until then, know nothing of all this.
//   - brk is the C library's alone. Go does not use it.
//   - exit of Go does not run what C has registered with atexit, as in dynamic programs.
//   - os.Setenv and os.Unsetenv are passed on to C, which begins with the environment of the time of Start.
//   - pthread_exit and pthread_cancel must not be called for a Go thread, as anywhere.
//   - A library that needs an executable stack can be opened as far as glibc goes along with it; the stacks of Go threads do not become
//     executable.
//
// # Errors
//
// The loader ends the process if it cannot start a program. So it is tried first in a copy of the process (fork), which has no memory in
// common with it and whose output is the text of the error. Whatever is wrong, no glibc, libc.so.6 missing, another C library's loader, is
// an error of Start, and the program goes on.
//
// # What it was proven with
//
// Go 1.26 and 1.27; glibc 2.31, 2.36 and 2.41 (Debian 11, 12 and 13), and shortly 2.43. It depends on what the runtime has for runtime/cgo, by name, as
// package purego does in dynamic programs: a release of Go that changes it fails to link, or to start. Debuggers do not see the libraries
// that the loader loads.
//
// arm64 is left out: there Go keeps g in a register, and the offset at which it saves it for C was not examined.
package hostlibc
