// Macros for the assembly files. All functions except those that Go calls use C's calling
// convention: they preserve BX, BP and R12 to R15. They never run on a Go stack.

#define SYS_mmap 9
#define SYS_mprotect 10
#define SYS_munmap 11
#define SYS_rt_sigprocmask 14
#define SYS_pause 34
#define SYS_dup2 33
#define SYS_nanosleep 35
#define SYS_clone 56
#define SYS_exit 60
#define SYS_getrlimit 97
#define SYS_write 1
#define SYS_arch_prctl 158
#define SYS_futex 202
#define SYS_set_tid_address 218
#define SYS_exit_group 231

#define ARCH_SET_FS 0x1002
#define SIG_SETMASK 2
#define FUTEX_WAIT 0
#define FUTEX_WAKE 1
#define EAGAIN 11

// SETMASK makes the 8 bytes at new the thread's signal mask, and stores the old one at old.
#define SETMASK(new, old) \
	MOVL $SIG_SETMASK, DI; \
	LEAQ new, SI; \
	LEAQ old, DX; \
	MOVL $8, R10; \
	MOVL $SYS_rt_sigprocmask, AX; \
	SYSCALL

// WAIT sleeps while the 4 bytes at addr are value. It may return early.
#define WAIT(addr, value) \
	LEAQ addr, DI; \
	MOVL $FUTEX_WAIT, SI; \
	MOVL value, DX; \
	XORL R10, R10; \
	MOVL $SYS_futex, AX; \
	SYSCALL

// WAKE wakes one thread that sleeps at addr.
#define WAKE(addr) \
	LEAQ addr, DI; \
	MOVL $FUTEX_WAKE, SI; \
	MOVL $1, DX; \
	MOVL $SYS_futex, AX; \
	SYSCALL

// SETFS makes the register base the thread pointer, with Go's g in the slot below it.
#define SETFS(base, g) \
	MOVQ g, -8(base); \
	MOVL $ARCH_SET_FS, DI; \
	MOVQ base, SI; \
	MOVL $SYS_arch_prctl, AX; \
	SYSCALL

#define SAVE \
	PUSHQ BP; \
	MOVQ  SP, BP; \
	PUSHQ BX; \
	PUSHQ R12; \
	PUSHQ R13; \
	PUSHQ R14; \
	PUSHQ R15; \
	PUSHQ DI

#define RESTORE \
	LEAQ -48(BP), SP; \
	POPQ DI; \
	POPQ R15; \
	POPQ R14; \
	POPQ R13; \
	POPQ R12; \
	POPQ BX; \
	POPQ BP
