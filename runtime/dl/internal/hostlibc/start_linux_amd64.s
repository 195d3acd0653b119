//go:build puregpu_static && !nogpu && !cgo

#include "textflag.h"
#include "abi_amd64.h"

// func spawn(flags, tls, out, sp, entry uintptr) int
// It starts a thread at entry with its stack at sp, or without CLONE_VM a process whose standard
// output and error are out. All signals are blocked.
TEXT ·spawn(SB), NOSPLIT, $16-48
	MOVQ flags+0(FP), R12
	MOVQ tls+8(FP), R8
	MOVQ out+16(FP), R13
	MOVQ sp+24(FP), SI
	MOVQ entry+32(FP), BX
	MOVQ $-1, mask-8(SP)
	MOVQ SI, R9
	SETMASK(mask-8(SP), old-16(SP))
	MOVQ R12, DI
	MOVQ R9, SI
	XORL DX, DX
	XORL R10, R10
	MOVL $SYS_clone, AX
	SYSCALL
	CMPQ AX, $0
	JEQ  child
	MOVQ AX, R12
	SETMASK(old-16(SP), mask-8(SP))
	MOVQ R12, ret+40(FP)
	RET

child:
	TESTL $0x100, R12
	JNZ  go
	MOVQ R13, DI
	MOVL $1, SI
	MOVL $SYS_dup2, AX
	SYSCALL
	MOVQ R13, DI
	MOVL $2, SI
	MOVL $SYS_dup2, AX
	SYSCALL
go:
	XORL DX, DX
	XORL BP, BP
	JMP  BX

// trial is the entry of the program that a copy of the process uses to test the loader.
TEXT hostlibc_trial(SB), NOSPLIT|NOFRAME, $0-0
	XORL DI, DI
	MOVL $SYS_exit_group, AX
	SYSCALL
	INT  $3

// main is the entry of the program that the loader starts on a thread of this process. The thread
// sleeps from then on. Other threads borrow its thread pointer while they make threads.
TEXT hostlibc_main(SB), NOSPLIT|NOFRAME, $0-0
	ANDQ $~15, SP
	LEAQ ·attr(SB), DI
	MOVQ ·table+(5*8)(SB), AX
	CALL AX
	LEAQ ·attr(SB), DI
	MOVL $1, SI // PTHREAD_CREATE_DETACHED
	MOVQ ·table+(6*8)(SB), AX
	CALL AX
	MOVQ 0(FS), AX
	MOVQ AX, ·identity0(SB)
	MOVL $1, AX
	XCHGL AX, ·started(SB)
	WAKE(·started(SB))
sleep:
	MOVL $SYS_pause, AX
	SYSCALL
	JMP  sleep

// refuse replaces C functions that change the user or group of all threads. It fails with
// EOPNOTSUPP.
TEXT hostlibc_refuse(SB), NOSPLIT|NOFRAME, $0-0
	SUBQ $8, SP
	MOVQ ·table+(9*8)(SB), AX
	CALL AX
	MOVL $95, 0(AX)
	MOVL $-1, AX
	ADDQ $8, SP
	RET

DATA ·entries+0(SB)/8, $hostlibc_trial(SB)
DATA ·entries+8(SB)/8, $hostlibc_main(SB)
DATA ·entries+16(SB)/8, $hostlibc_enter(SB)
DATA ·entries+24(SB)/8, $hostlibc_refuse(SB)
DATA ·entries+32(SB)/8, $hostlibc_callbacks(SB)
GLOBL ·entries(SB), NOPTR|RODATA, $40
