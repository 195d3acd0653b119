//go:build puregpu_static && !nogpu && !cgo

#include "textflag.h"

// callbacks are C functions for Go functions. Each is one call of 5 bytes, so the return address
// identifies the function.
#define CALL4 CALL hostlibc_callback(SB); CALL hostlibc_callback(SB); CALL hostlibc_callback(SB); CALL hostlibc_callback(SB);
#define CALL20 CALL4 CALL4 CALL4 CALL4 CALL4
#define CALL100 CALL20 CALL20 CALL20 CALL20 CALL20
#define CALL500 CALL100 CALL100 CALL100 CALL100 CALL100

TEXT hostlibc_callbacks(SB), NOSPLIT|NOFRAME, $0-0
	CALL500
	CALL500
	CALL500
	CALL500

// callback passes the arguments of a C function to callbackGo, on the stack that the runtime chooses.
TEXT hostlibc_callback(SB), NOSPLIT|NOFRAME, $0-0
	MOVQ 0(SP), AX
	ADDQ $8, SP
	PUSHQ BP
	MOVQ SP, BP
	PUSHQ BX
	PUSHQ R12
	PUSHQ R13
	PUSHQ R14
	PUSHQ R15
	// 0(SP) arguments of cgocallback, 24(SP) a call
	SUBQ $104, SP
	ANDQ $~15, SP
	LEAQ hostlibc_callbacks(SB), R10
	SUBQ R10, AX
	MOVQ AX, 24(SP)
	MOVQ DI, 32(SP)
	MOVQ SI, 40(SP)
	MOVQ DX, 48(SP)
	MOVQ CX, 56(SP)
	MOVQ R8, 64(SP)
	MOVQ R9, 72(SP)
	LEAQ 16(BP), R10
	MOVQ R10, 80(SP)
	MOVQ $0, 88(SP)
	MOVQ ·callbackFunc(SB), R10
	MOVQ (R10), R10
	MOVQ R10, 0(SP)
	LEAQ 24(SP), R10
	MOVQ R10, 8(SP)
	MOVQ $0, 16(SP)
	CALL runtime·cgocallback(SB)
	MOVQ 88(SP), AX
	LEAQ -40(BP), SP
	POPQ R15
	POPQ R14
	POPQ R13
	POPQ R12
	POPQ BX
	POPQ BP
	RET
