/* Functions for the tests of package dl. Each returns something that depends on every
 * argument and on its position, so that a word in the wrong place shows. */
#include <stdint.h>
#include <stdio.h>
#include <string.h>

typedef uint64_t u64;

#define API __attribute__((visibility("default")))

int dl_version = 12050;
API int get_version(int *out) { *out = dl_version; return 0; }

/* hash folds a word in; the order counts. */
static u64 hash(u64 h, u64 w) { return (h ^ w) * 1099511628211u + 7; }

/* The frame address of an aligned stack is a multiple of 16; otherwise spoil the result. */
#define BEGIN u64 h = ((uintptr_t)__builtin_frame_address(0) & 15) ? 99 : 1
#define H(x) h = hash(h, (x))

API u64 words0(void) { BEGIN; return h; }
API u64 words1(u64 a) { BEGIN; H(a); return h; }
API u64 words2(u64 a, u64 b) { BEGIN; H(a); H(b); return h; }
API u64 words3(u64 a, u64 b, u64 c) { BEGIN; H(a); H(b); H(c); return h; }
API u64 words4(u64 a, u64 b, u64 c, u64 d) { BEGIN; H(a); H(b); H(c); H(d); return h; }
API u64 words5(u64 a, u64 b, u64 c, u64 d, u64 e) { BEGIN; H(a); H(b); H(c); H(d); H(e); return h; }
API u64 words6(u64 a, u64 b, u64 c, u64 d, u64 e, u64 f) { BEGIN; H(a); H(b); H(c); H(d); H(e); H(f); return h; }
#define P7 u64 a, u64 b, u64 c, u64 d, u64 e, u64 f, u64 g
#define H7 H(a); H(b); H(c); H(d); H(e); H(f); H(g)
API u64 words7(P7) { BEGIN; H7; return h; }
API u64 words8(P7, u64 i) { BEGIN; H7; H(i); return h; }
API u64 words9(P7, u64 i, u64 j) { BEGIN; H7; H(i); H(j); return h; }
API u64 words10(P7, u64 i, u64 j, u64 k) { BEGIN; H7; H(i); H(j); H(k); return h; }
API u64 words11(P7, u64 i, u64 j, u64 k, u64 l) { BEGIN; H7; H(i); H(j); H(k); H(l); return h; }
API u64 words12(P7, u64 i, u64 j, u64 k, u64 l, u64 m) { BEGIN; H7; H(i); H(j); H(k); H(l); H(m); return h; }
API u64 words13(P7, u64 i, u64 j, u64 k, u64 l, u64 m, u64 n) { BEGIN; H7; H(i); H(j); H(k); H(l); H(m); H(n); return h; }
API u64 words14(P7, u64 i, u64 j, u64 k, u64 l, u64 m, u64 n, u64 o) { BEGIN; H7; H(i); H(j); H(k); H(l); H(m); H(n); H(o); return h; }
#define P15 P7, u64 i, u64 j, u64 k, u64 l, u64 m, u64 n, u64 o, u64 p
#define H15 H7; H(i); H(j); H(k); H(l); H(m); H(n); H(o); H(p)
API u64 words15(P15) { BEGIN; H15; return h; }
API u64 words16(P15, u64 q) { BEGIN; H15; H(q); return h; }
API u64 words17(P15, u64 q, u64 r) { BEGIN; H15; H(q); H(r); return h; }
API u64 words20(P15, u64 q, u64 r, u64 s, u64 t, u64 u) { BEGIN; H15; H(q); H(r); H(s); H(t); H(u); return h; }

/* Out-parameters. */
API int out2(u64 *out, u64 v) { *out = v; return 0; }
API int out11(u64 *x, u64 a, u64 b, u64 c, u64 d, u64 e, u64 f, u64 g, u64 i, u64 j, u64 *y) {
	*x = a + b + c + d + e; *y = f + g + i + j; return 0;
}
/* Writes late, so that a collection can happen while the call is under way. */
API int out_spin(u64 *out, u64 v, u64 n) {
	for (u64 i = 0; i < n; i++) __asm__ volatile("" ::: "memory");
	*out = v;
	return 0;
}
API int fail7(u64 v) { (void)v; return 7; }

/* Structs by value. */
typedef struct { unsigned x, y, z; } dim3;
typedef struct { u64 w[2]; } s16;
typedef struct { u64 w[3]; } s24;
typedef struct { u64 w[4]; } s32;
typedef struct { char b[64]; } s64;
typedef struct { char b[128]; } s128;
typedef struct { char b[5]; } s5;

static u64 bytes(u64 h, const void *p, size_t n) {
	const unsigned char *b = p;
	for (size_t i = 0; i < n; i++) h = hash(h, b[i]);
	return h;
}
#define S(s) h = bytes(h, &(s), sizeof(s))

API u64 comm(u64 *out, int n, s128 id, int rank) { BEGIN; *out = 42; H((u64)n); S(id); H((u64)rank); return h; }
API u64 launch(u64 f, dim3 grid, dim3 block, u64 args, u64 shared, u64 stream) {
	BEGIN; H(f); S(grid); S(block); H(args); H(shared); H(stream); return h;
}
API u64 ipc(u64 *out, s64 handle, unsigned flags) { BEGIN; *out = 43; S(handle); H(flags); return h; }
API u64 late64(u64 a, u64 b, u64 c, u64 d, u64 e, u64 f, s64 s, u64 g) {
	BEGIN; H(a); H(b); H(c); H(d); H(e); H(f); S(s); H(g); return h;
}
/* On amd64 s16 does not fit the one register left, and f takes it; on arm64 it fits. */
API u64 split(u64 a, u64 b, u64 c, u64 d, u64 e, s16 s, u64 f) {
	BEGIN; H(a); H(b); H(c); H(d); H(e); S(s); H(f); return h;
}
/* The same with the one register left on arm64, where h must not take it. */
API u64 split8(u64 a, u64 b, u64 c, u64 d, u64 e, u64 f, u64 g, s16 s, u64 i) {
	BEGIN; H(a); H(b); H(c); H(d); H(e); H(f); H(g); S(s); H(i); return h;
}
API u64 odd(s5 a, s24 b, s32 c, dim3 d) { BEGIN; S(a); S(b); S(c); S(d); return h; }

/* Floats. */
static u64 fbits(float f) { u64 w = 0; memcpy(&w, &f, 4); return w; }
static u64 dbits(double d) { u64 w; memcpy(&w, &d, 8); return w; }
API u64 setf(u64 fn, int offset, float v) { BEGIN; H(fn); H((u64)offset); H(fbits(v)); return h; }
API u64 floats(float a, u64 b, double c, dim3 d, float e) { BEGIN; H(fbits(a)); H(b); H(dbits(c)); S(d); H(fbits(e)); return h; }
API u64 floats10(double a, double b, double c, double d, double e, double f, double g, double i, float j, double k, u64 l) {
	BEGIN; H(dbits(a)); H(dbits(b)); H(dbits(c)); H(dbits(d)); H(dbits(e)); H(dbits(f)); H(dbits(g)); H(dbits(i));
	H(fbits(j)); H(dbits(k)); H(l); return h;
}
/* Variadic: amd64 wants the number of vector registers in al. */
#include <stdarg.h>
API u64 variadic(int n, ...) {
	u64 h = 1;
	va_list ap;
	va_start(ap, n);
	while (n-- > 0) H(va_arg(ap, u64));
	va_end(ap);
	return h;
}

/* Callbacks. */
API int call_back(u64 (*fn)(u64), u64 arg, u64 *out) { *out = fn(arg) + 1; return 0; }

/* spin takes about n iterations, to have calls overlap. */
API u64 spin(u64 n) { u64 h = 1; for (u64 i = 0; i < n; i++) { H(i); __asm__ volatile("" ::: "memory"); } return h; }

/* A resolver like cuGetProcAddress. */
static u64 resolved(u64 a) { return a + 1000; }
API int get_proc(const char *name, void **fn, int version) {
	*fn = strcmp(name, "resolved") == 0 && version >= 12000 ? (void *)resolved : NULL;
	return *fn ? 0 : 500;
}
API const char *text(void) { return "in C"; }
API int fill(char *buf, int n) { snprintf(buf, n, "%d", n); return 0; }
