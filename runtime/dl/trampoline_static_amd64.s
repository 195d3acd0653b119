//go:build linux && amd64 && !nogpu && puregpu_static && !cgo

#include "textflag.h"

// A thread of the C library's has its thread pointer at the thread pointer. One that is not calls ·enter to become one.
#define ENTER \
	CMPQ 0(FS), $0;      \
	JNE  3(PC);          \
	MOVQ ·enter(SB), AX; \
	CALL AX;

#include "trampoline_amd64.h"
