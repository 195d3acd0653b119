//go:build puregpu_static && !nogpu && !cgo

#include "textflag.h"
#include "abi_amd64.h"

// enter gives the calling thread an identity. It is called on a stack large enough for C, with any
// alignment. It preserves DI and the registers that C functions preserve.
TEXT hostlibc_enter(SB), NOSPLIT|NOFRAME, $0-0
	SAVE
	// 0(SP) mask, 8(SP) mask before, 16(SP) time, 32(SP) identity: {ready, thread pointer, owner}, 56(SP) thread
	SUBQ $72, SP
	ANDQ $~15, SP
	MOVQ $-1, 0(SP)
	SETMASK(0(SP), 8(SP))
	MOVQ $0, 32(SP)

	// Lock: 0 free, 1 held, 2 held with possible waiters.
	XORL AX, AX
	MOVL $1, CX
	LOCK
	CMPXCHGL CX, ·lock(SB)
	JEQ  locked
lock:
	MOVL $2, AX
	XCHGL AX, ·lock(SB)
	TESTL AX, AX
	JZ   locked
	WAIT(·lock(SB), $2)
	JMP  lock
locked:

	// Borrow the sleeping loader's thread pointer while making a thread.
	MOVQ -8(FS), R12
	MOVQ ·identity0(SB), R13
	SETFS(R13, R12)
	XORL R15, R15
again:
	LEAQ 56(SP), DI
	LEAQ ·attr(SB), SI
	LEAQ hostlibc_identity(SB), DX
	LEAQ 32(SP), CX
	MOVQ ·table+(4*8)(SB), AX
	CALL AX
	TESTL AX, AX
	JZ   made
	CMPL AX, $EAGAIN
	JNE  nothread
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
made:
	MOVL 32(SP), AX
	TESTL AX, AX
	JNZ  ready
	WAIT(32(SP), $0)
	JMP  made
ready:
	MOVQ 40(SP), R13
	SETFS(R13, R12)
	MOVQ 48(SP), DI
	MOVL $SYS_set_tid_address, AX
	SYSCALL

	XORL AX, AX
	XCHGL AX, ·lock(SB)
	CMPL AX, $2
	JNE  unlocked
	WAKE(·lock(SB))
unlocked:
	SETMASK(8(SP), 0(SP))
	RESTORE
	RET

nothread:
	LEAQ ·noIdentityText(SB), SI
	JMP  hostlibc_die<>(SB)

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

// identity(*struct{ready, thread pointer, owner}) is the function of a thread that lends its
// identity. When the borrowing thread ends, the kernel clears the word that owner points to. Then
// this thread ends like any C thread, and its destructors run.
TEXT hostlibc_identity(SB), NOSPLIT|NOFRAME, $0-0
	SUBQ $24, SP
	MOVL $1, 0(SP)
	MOVQ 0(FS), AX
	MOVQ AX, 8(DI)
	MOVQ SP, 16(DI)
	MOVL $1, AX
	XCHGL AX, 0(DI)
	WAKE(0(DI))
sleep:
	MOVL 0(SP), AX
	TESTL AX, AX
	JZ   end
	WAIT(0(SP), $1)
	JMP  sleep
end:
	XORL AX, AX
	ADDQ $24, SP
	RET
