// The runtime enters these functions as C code: on the system stack, with the
// address of a Frame in DI and SP 8 bytes off 16-byte alignment. So the C ABI is
// the only rule here: BX, BP and R12 to R15 stay untouched. Pushing DI saves the frame's
// address during the call and aligns the stack.
//
// A Frame is {fn, ret, word 0, word 1, ...}, 8 bytes each.
//
// Each function begins with ENTER, which the including file defines. It preserves DI.

#define LOAD1
#define LOAD2 MOVQ 24(DI), SI;
#define LOAD3 LOAD2 MOVQ 32(DI), DX;
#define LOAD4 LOAD3 MOVQ 40(DI), CX;
#define LOAD5 LOAD4 MOVQ 48(DI), R8;
#define LOAD6 LOAD5 MOVQ 56(DI), R9;

#define PUSH7 PUSHQ 64(DI);
#define PUSH8 PUSHQ 72(DI); PUSH7
#define PUSH9 PUSHQ 80(DI); PUSH8
#define PUSH10 PUSHQ 88(DI); PUSH9
#define PUSH11 PUSHQ 96(DI); PUSH10
#define PUSH12 PUSHQ 104(DI); PUSH11
#define PUSH13 PUSHQ 112(DI); PUSH12
#define PUSH14 PUSHQ 120(DI); PUSH13
#define PUSH15 PUSHQ 128(DI); PUSH14
#define PUSH16 PUSHQ 136(DI); PUSH15

// CALLC calls fn with AX clear (no vector registers, should fn be variadic).
#define CALLC \
	MOVQ 0(DI), R11; \
	MOVQ 16(DI), DI; \
	XORL AX, AX;     \
	CALL R11;

#define FINISH \
	POPQ DI;        \
	MOVQ AX, 8(DI); \
	RET

#define REGISTERS(name, load) \
TEXT name<>(SB), NOSPLIT|NOFRAME, $0-0; \
	ENTER     \
	PUSHQ DI; \
	load      \
	CALLC     \
	FINISH

// STACK pads if the number of pushed words is odd; drop is the size of the words and
// the padding.
#define PAD0
#define PAD8 ADJSP $8;

#define STACK(name, pad, push, drop) \
TEXT name<>(SB), NOSPLIT|NOFRAME, $0-0; \
	ENTER           \
	PUSHQ DI;       \
	pad             \
	push            \
	LOAD6           \
	CALLC           \
	ADJSP $-drop;   \
	FINISH

TEXT dlcall0<>(SB), NOSPLIT|NOFRAME, $0-0
	ENTER
	PUSHQ DI
	MOVQ  0(DI), R11
	XORL  AX, AX
	CALL  R11
	FINISH

REGISTERS(dlcall1, LOAD1)
REGISTERS(dlcall2, LOAD2)
REGISTERS(dlcall3, LOAD3)
REGISTERS(dlcall4, LOAD4)
REGISTERS(dlcall5, LOAD5)
REGISTERS(dlcall6, LOAD6)
STACK(dlcall7, PAD8, PUSH7, 16)
STACK(dlcall8, PAD0, PUSH8, 16)
STACK(dlcall9, PAD8, PUSH9, 32)
STACK(dlcall10, PAD0, PUSH10, 32)
STACK(dlcall11, PAD8, PUSH11, 48)
STACK(dlcall12, PAD0, PUSH12, 48)
STACK(dlcall13, PAD8, PUSH13, 64)
STACK(dlcall14, PAD0, PUSH14, 64)
STACK(dlcall15, PAD8, PUSH15, 80)
STACK(dlcall16, PAD0, PUSH16, 80)

// dlcallAny takes a general frame:
// {fn, ret, number of stack words, address of stack words, ints [8], floats [8]}.
TEXT dlcallAny<>(SB), NOSPLIT|NOFRAME, $0-0
	ENTER
	PUSHQ BP
	MOVQ  SP, BP
	PUSHQ DI
	PUSHQ DI // only for alignment

	MOVQ 16(DI), R10
	MOVQ 24(DI), R11
	LEAQ 1(R10), AX
	ANDQ $~1, AX
	SHLQ $3, AX
	SUBQ AX, SP
	JMP  test

words:
	SUBQ $1, R10
	MOVQ (R11)(R10*8), AX
	MOVQ AX, (SP)(R10*8)

test:
	TESTQ R10, R10
	JNZ   words

	MOVSD 96(DI), X0
	MOVSD 104(DI), X1
	MOVSD 112(DI), X2
	MOVSD 120(DI), X3
	MOVSD 128(DI), X4
	MOVSD 136(DI), X5
	MOVSD 144(DI), X6
	MOVSD 152(DI), X7
	MOVQ  0(DI), R11
	MOVQ  40(DI), SI
	MOVQ  48(DI), DX
	MOVQ  56(DI), CX
	MOVQ  64(DI), R8
	MOVQ  72(DI), R9
	MOVQ  32(DI), DI
	MOVL  $8, AX         // upper bound of the vector registers in use
	CALL  R11

	LEAQ -16(BP), SP
	POPQ DI
	POPQ DI
	MOVQ AX, 8(DI)
	MOVSD X0, 96(DI)     // a float result
	POPQ BP
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
