//go:build linux && arm64 && !nogpu && (!puregpu_static || cgo)

#include "textflag.h"

// The runtime enters these functions as C code: on the system stack, with the
// address of a Frame in R0. So AAPCS64 is the only rule here: R19 to R29 are the
// caller's, R18 is the platform's, and R27, the assembler's own scratch register,
// must not be needed (every offset below fits its instruction).
//
// A Frame is {fn, ret, word 0, word 1, ...}, 8 bytes each. The prologue makes a
// frame record {R29, R30} and stores the Frame's address after it.

#define ENTER \
	MOVD.W R29, -32(RSP);  \
	MOVD   R30, 8(RSP);    \
	MOVD   R0, 16(RSP);    \
	MOVD   RSP, R29;       \
	MOVD   0(R0), R16;     \
	MOVD   R0, R17;

#define LEAVE \
	BL     (R16);          \
	MOVD   16(RSP), R1;    \
	MOVD   R0, 8(R1);      \
	MOVD   8(RSP), R30;    \
	MOVD.P 32(RSP), R29;   \
	RET

#define LOAD1 MOVD 16(R17), R0;
#define LOAD2 LDP 16(R17), (R0, R1);
#define LOAD3 LOAD2 MOVD 32(R17), R2;
#define LOAD4 LOAD2 LDP 32(R17), (R2, R3);
#define LOAD5 LOAD4 MOVD 48(R17), R4;
#define LOAD6 LOAD4 LDP 48(R17), (R4, R5);
#define LOAD7 LOAD6 MOVD 64(R17), R6;
#define LOAD8 LOAD6 LDP 64(R17), (R6, R7);

// Words 8 to 15 go to the stack in pairs, through R9 and R10.
#define PAIR(from, to) LDP from(R17), (R9, R10); STP (R9, R10), to(RSP);
#define ONE(from, to) MOVD from(R17), R9; MOVD R9, to(RSP);
#define COPY9 ONE(80, 0)
#define COPY10 PAIR(80, 0)
#define COPY11 COPY10 ONE(96, 16)
#define COPY12 COPY10 PAIR(96, 16)
#define COPY13 COPY12 ONE(112, 32)
#define COPY14 COPY12 PAIR(112, 32)
#define COPY15 COPY14 ONE(128, 48)
#define COPY16 COPY14 PAIR(128, 48)

#define REGISTERS(name, load) \
TEXT name<>(SB), NOSPLIT|NOFRAME, $0-0; \
	ENTER \
	load  \
	LEAVE

#define STACK(name, size, copy) \
TEXT name<>(SB), NOSPLIT|NOFRAME, $0-0; \
	ENTER                 \
	SUB    $size, RSP;    \
	copy                  \
	LOAD8                 \
	BL     (R16);         \
	ADD    $size, RSP;    \
	MOVD   16(RSP), R1;   \
	MOVD   R0, 8(R1);     \
	MOVD   8(RSP), R30;   \
	MOVD.P 32(RSP), R29;  \
	RET

#define LOAD0
REGISTERS(dlcall0, LOAD0)
REGISTERS(dlcall1, LOAD1)
REGISTERS(dlcall2, LOAD2)
REGISTERS(dlcall3, LOAD3)
REGISTERS(dlcall4, LOAD4)
REGISTERS(dlcall5, LOAD5)
REGISTERS(dlcall6, LOAD6)
REGISTERS(dlcall7, LOAD7)
REGISTERS(dlcall8, LOAD8)
STACK(dlcall9, 16, COPY9)
STACK(dlcall10, 16, COPY10)
STACK(dlcall11, 32, COPY11)
STACK(dlcall12, 32, COPY12)
STACK(dlcall13, 48, COPY13)
STACK(dlcall14, 48, COPY14)
STACK(dlcall15, 64, COPY15)
STACK(dlcall16, 64, COPY16)

// dlcallAny takes a general frame:
// {fn, ret, number of stack words, address of stack words, ints [8], floats [8]}.
TEXT dlcallAny<>(SB), NOSPLIT|NOFRAME, $0-0
	ENTER
	MOVD 16(R17), R11
	MOVD 24(R17), R12
	ADD  $1, R11, R13
	AND  $~1, R13, R13
	SUB  R13<<3, RSP, R13
	MOVD R13, RSP

words:
	CBZ  R11, loaded
	SUB  $1, R11, R11
	MOVD (R12)(R11<<3), R9
	MOVD R9, (R13)(R11<<3)
	B    words

loaded:
	FMOVD 96(R17), F0
	FMOVD 104(R17), F1
	FMOVD 112(R17), F2
	FMOVD 120(R17), F3
	FMOVD 128(R17), F4
	FMOVD 136(R17), F5
	FMOVD 144(R17), F6
	FMOVD 152(R17), F7
	LDP   32(R17), (R0, R1)
	LDP   48(R17), (R2, R3)
	LDP   64(R17), (R4, R5)
	LDP   80(R17), (R6, R7)
	BL    (R16)
	MOVD  R29, RSP
	MOVD  16(RSP), R1
	MOVD  R0, 8(R1)
	FMOVD F0, 96(R1)     // a float result
	MOVD  8(RSP), R30
	MOVD.P 32(RSP), R29
	RET

// trampolines[n] is the code for n words; the last one is dlcallAny.
DATA ·trampolines+0(SB)/8, $dlcall0<>(SB)
DATA ·trampolines+8(SB)/8, $dlcall1<>(SB)
DATA ·trampolines+16(SB)/8, $dlcall2<>(SB)
DATA ·trampolines+24(SB)/8, $dlcall3<>(SB)
DATA ·trampolines+32(SB)/8, $dlcall4<>(SB)
DATA ·trampolines+40(SB)/8, $dlcall5<>(SB)
DATA ·trampolines+48(SB)/8, $dlcall6<>(SB)
DATA ·trampolines+56(SB)/8, $dlcall7<>(SB)
DATA ·trampolines+64(SB)/8, $dlcall8<>(SB)
DATA ·trampolines+72(SB)/8, $dlcall9<>(SB)
DATA ·trampolines+80(SB)/8, $dlcall10<>(SB)
DATA ·trampolines+88(SB)/8, $dlcall11<>(SB)
DATA ·trampolines+96(SB)/8, $dlcall12<>(SB)
DATA ·trampolines+104(SB)/8, $dlcall13<>(SB)
DATA ·trampolines+112(SB)/8, $dlcall14<>(SB)
DATA ·trampolines+120(SB)/8, $dlcall15<>(SB)
DATA ·trampolines+128(SB)/8, $dlcall16<>(SB)
DATA ·trampolines+136(SB)/8, $dlcallAny<>(SB)
GLOBL ·trampolines(SB), NOPTR|RODATA, $144
