//go:build linux && amd64 && !nogpu && puregpu_static && !cgo

#include "textflag.h"

// On a thread that the C library knows, the word at the thread pointer is the thread pointer. Other
// threads call ·enter first.
#define ENTER \
	CMPQ 0(FS), $0;      \
	JNE  3(PC);          \
	MOVQ ·enter(SB), AX; \
	CALL AX;

#include "trampoline_amd64.h"
