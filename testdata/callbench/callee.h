#include <stdint.h>

typedef uint64_t u64;

int f0(void);
int f1(u64 a);
int f2(u64 a, u64 b);
int f3(u64 a, u64 b, u64 c);
int f4(u64 a, u64 b, u64 c, u64 d);
int f6(u64 a, u64 b, u64 c, u64 d, u64 e, u64 f);
int out2(u64 *out, u64 a, u64 b);
int f11(u64 a, u64 b, u64 c, u64 d, u64 e, u64 f, u64 g, u64 h, u64 i, u64 j, u64 k);
int f16(u64 a, u64 b, u64 c, u64 d, u64 e, u64 f, u64 g, u64 h, u64 i, u64 j, u64 k, u64 l, u64 m, u64 n, u64 o, u64 p);
