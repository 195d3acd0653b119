//go:build puregpu_static && !nogpu && !cgo

#include "textflag.h"
#include "abi_amd64.h"

// Stacks of the threads that the runtime starts. Their pages are allocated when they are first used.
#define STACK (8<<20)
#define GUARD 4096

// CLONE_VM, CLONE_FS, CLONE_FILES, CLONE_SIGHAND, CLONE_THREAD, CLONE_SYSVSEM, CLONE_SETTLS
#define THREAD 0xd0f00

// init(g0 *g) is the runtime's _cgo_init. It sets the lower bound of the main thread's stack, and the
// thread's thread pointer.
TEXT hostlibc_init(SB), NOSPLIT|NOFRAME, $0-0
	MOVQ DI, R8
	SUBQ $24, SP
	MOVL $3, DI // RLIMIT_STACK
	MOVQ SP, SI
	MOVL $SYS_getrlimit, AX
	SYSCALL
	MOVQ $STACK, CX
	CMPQ AX, $0
	JNE  known
	CMPQ 0(SP), CX
	JCC  known
	MOVQ 0(SP), CX
known:
	// The arguments and the environment, above here, take at most a quarter of the stack limit.
	SHRQ $2, CX
	LEAQ (CX)(CX*2), CX
	MOVQ SP, AX
	SUBQ CX, AX
	MOVQ AX, 0(R8) // g.stack.lo
	LEAQ ·firstTLS+8(SB), SI
	MOVL $ARCH_SET_FS, DI
	MOVL $SYS_arch_prctl, AX
	SYSCALL
	CMPQ AX, $0
	JEQ  2(PC)
	INT  $3
	ADDQ $24, SP
	RET

// threadstart(ts *struct{g, tls, fn}) is the runtime's _cgo_thread_start. It starts a thread as
// runtime.newosproc does, but with a stack large enough for C.
TEXT hostlibc_threadstart(SB), NOSPLIT|NOFRAME, $0-0
	SAVE
	SUBQ $40, SP
	MOVQ 0(DI), R12
	MOVQ 8(DI), R13
	MOVQ 16(DI), R14
	MOVQ $-1, 0(SP)
	SETMASK(0(SP), 8(SP))

	XORL DI, DI
	MOVL $(STACK+GUARD), SI
	MOVL $3, DX       // PROT_READ, PROT_WRITE
	MOVL $0x24022, R10 // MAP_PRIVATE, MAP_ANONYMOUS, MAP_NORESERVE, MAP_STACK
	MOVL $-1, R8
	XORL R9, R9
	MOVL $SYS_mmap, AX
	SYSCALL
	CMPQ AX, $0xfffffffffffff001
	JCC  nostack
	MOVQ AX, BX
	MOVQ BX, DI
	MOVL $GUARD, SI
	XORL DX, DX
	MOVL $SYS_mprotect, AX
	SYSCALL
	MOVQ $STACK, 8(R12) // g.stack.hi, which mstart uses

	XORL R15, R15
again:
	MOVL $THREAD, DI
	LEAQ (STACK+GUARD)(BX), SI
	XORL DX, DX
	XORL R10, R10
	LEAQ 8(R13), R8
	MOVL $SYS_clone, AX
	SYSCALL
	CMPQ AX, $0
	JEQ  child
	JGT  parent
	CMPQ AX, $-EAGAIN
	JNE  nothread
	// Try again, after one millisecond, two, and so on.
	INCQ R15
	CMPQ R15, $20
	JGT  nothread
	IMUL3Q $1000000, R15, AX
	MOVQ $0, 16(SP)
	MOVQ AX, 24(SP)
	LEAQ 16(SP), DI
	XORL SI, SI
	MOVL $SYS_nanosleep, AX
	SYSCALL
	JMP  again

parent:
	SETMASK(8(SP), 0(SP))
	RESTORE
	RET

child:
	MOVQ R12, -8(FS) // g
	XORL BP, BP
	CALL R14 // mstart, which returns at the thread's end, with signals blocked
	// Only the stack holds its own address: mstart preserves no register.
	LEAQ -(STACK+GUARD)(SP), DI
	MOVL $(STACK+GUARD), SI
	MOVL $SYS_munmap, AX
	SYSCALL
	XORL DI, DI
	MOVL $SYS_exit, AX
	SYSCALL
	INT  $3

nostack:
	LEAQ ·noStackText(SB), SI
	JMP  die
nothread:
	LEAQ ·noThreadText(SB), SI
die:
	JMP  hostlibc_die<>(SB)

// die writes the string whose header SI points to, and ends the process.
TEXT hostlibc_die<>(SB), NOSPLIT|NOFRAME, $0-0
	MOVQ 8(SI), DX
	MOVQ 0(SI), SI
	MOVL $2, DI
	MOVL $SYS_write, AX
	SYSCALL
	MOVL $2, DI
	MOVL $SYS_exit_group, AX
	SYSCALL
	INT  $3

// nothing is a runtime hook that needs no work.
TEXT hostlibc_nothing(SB), NOSPLIT|NOFRAME, $0-0
	RET

// unsupported(*struct{args, ret}) fails a system call that would have to run on all threads of the
// process, including C's.
TEXT hostlibc_unsupported(SB), NOSPLIT|NOFRAME, $0-0
	MOVQ $95, 8(DI) // EOPNOTSUPP
	RET

// setenv(*[2]*byte) and unsetenv(*[1]*byte) are hooks of os.Setenv and os.Unsetenv.
TEXT hostlibc_setenv(SB), NOSPLIT|NOFRAME, $0-0
	CMPQ ·identity0(SB), $0
	JEQ  ret
	SAVE
	ANDQ $~15, SP
	CMPQ 0(FS), $0
	JNE  2(PC)
	CALL hostlibc_enter(SB)
	MOVQ 8(DI), SI
	MOVQ 0(DI), DI
	MOVL $1, DX
	MOVQ ·table+(7*8)(SB), AX
	CALL AX
	RESTORE
ret:
	RET

TEXT hostlibc_unsetenv(SB), NOSPLIT|NOFRAME, $0-0
	CMPQ ·identity0(SB), $0
	JEQ  ret
	SAVE
	ANDQ $~15, SP
	CMPQ 0(FS), $0
	JNE  2(PC)
	CALL hostlibc_enter(SB)
	MOVQ 0(DI), DI
	MOVQ ·table+(8*8)(SB), AX
	CALL AX
	RESTORE
ret:
	RET
