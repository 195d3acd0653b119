//go:build cgo

/* Functions that return at once: what is measured is the way there and back. */
#include "callee.h"

#pragma GCC diagnostic ignored "-Wunused-parameter"

int f0(void) { return 0; }
int f1(u64 a) { return 0; }
int f2(u64 a, u64 b) { return 0; }
int f3(u64 a, u64 b, u64 c) { return 0; }
int f4(u64 a, u64 b, u64 c, u64 d) { return 0; }
int f6(u64 a, u64 b, u64 c, u64 d, u64 e, u64 f) { return 0; }
int out2(u64 *out, u64 a, u64 b) { *out = a + b; return 0; }
int f11(u64 a, u64 b, u64 c, u64 d, u64 e, u64 f, u64 g, u64 h, u64 i, u64 j, u64 k) { return 0; }
int f16(u64 a, u64 b, u64 c, u64 d, u64 e, u64 f, u64 g, u64 h, u64 i, u64 j, u64 k, u64 l, u64 m, u64 n, u64 o, u64 p) { return 0; }
