// A fake cuBLAS for the test of this example. It multiplies in the host's memory, during the call,
// and checks the arguments.
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

enum { OK, NOT_INITIALIZED, INVALID_VALUE = 7, F32 = 0, BF16 = 14, COMPUTE_32F = 68 };
typedef struct { uintptr_t stream, work; } handle;

static double get(const void *p, size_t i, int type)
{
	if (type == F32) return ((const float *)p)[i];
	uint32_t u = (uint32_t)((const uint16_t *)p)[i] << 16;
	float f;
	memcpy(&f, &u, 4);
	return f;
}

static void put(void *p, size_t i, int type, double x)
{
	float f = (float)x;
	uint32_t u;
	if (type == F32) { ((float *)p)[i] = f; return; }
	memcpy(&u, &f, 4);
	((uint16_t *)p)[i] = (u + 0x7fff + (u >> 16 & 1)) >> 16;
}

// Matrices are column-major.
static int multiply(handle *h, int ta, int tb, int m, int n, int k, const float *alpha, const void *a, int at, int64_t lda, const void *b, int bt, int64_t ldb, const float *beta, void *c, int ct, int64_t ldc)
{
	if (!h || !h->stream || !h->work) return NOT_INITIALIZED;
	if (ta || tb || *alpha != 1 || *beta != 0) return INVALID_VALUE;
	for (int j = 0; j < n; j++)
		for (int i = 0; i < m; i++) {
			double sum = 0;
			for (int l = 0; l < k; l++) sum += get(a, i + l * lda, at) * get(b, l + j * ldb, bt);
			put(c, i + j * ldc, ct, sum);
		}
	return OK;
}

static int64_t width(int type) { return type == F32 ? 4 : 2; }

int cublasGetProperty(int which, int *value) { *value = which ? 4 : 12; return OK; }
int cublasLtGetProperty(int which, int *value) { return cublasGetProperty(which, value); }
int cublasGetVersion_v2(handle *h, int *v) { *v = 120405; return OK; }
int cublasCreate_v2(handle **h) { *h = calloc(1, sizeof **h); return OK; }
int cublasDestroy_v2(handle *h) { if (!h) return NOT_INITIALIZED; free(h); return OK; }
int cublasSetStream_v2(handle *h, uintptr_t s) { h->stream = s, h->work = 0; return OK; }
int cublasSetWorkspace_v2(handle *h, uintptr_t p, size_t n) { if (!p || n < 1 << 20) return INVALID_VALUE; h->work = p; return OK; }

#define TYPES const void *a, int at, int lda, const void *b, int bt, int ldb
int cublasGemmEx(handle *h, int ta, int tb, int m, int n, int k, const void *alpha, TYPES, const void *beta, void *c, int ct, int ldc, int compute, int algo)
{
	if (compute != COMPUTE_32F || algo != 99) return INVALID_VALUE;
	return multiply(h, ta, tb, m, n, k, alpha, a, at, lda, b, bt, ldb, beta, c, ct, ldc);
}
int cublasSgemm_v2(handle *h, int ta, int tb, int m, int n, int k, const float *alpha, const float *a, int lda, const float *b, int ldb, const float *beta, float *c, int ldc)
{
	return multiply(h, ta, tb, m, n, k, alpha, a, F32, lda, b, F32, ldb, beta, c, F32, ldc);
}
int cublasGemmStridedBatchedEx(handle *h, int ta, int tb, int m, int n, int k, const void *alpha, const char *a, int at, int lda, int64_t sa, const char *b, int bt, int ldb, int64_t sb, const void *beta, char *c, int ct, int ldc, int64_t sc, int count, int compute, int algo)
{
	int err = compute == COMPUTE_32F && algo == -1 ? OK : INVALID_VALUE;
	for (int i = 0; i < count && !err; i++)
		err = multiply(h, ta, tb, m, n, k, alpha, a + i * sa * width(at), at, lda, b + i * sb * width(bt), bt, ldb, beta, c + i * sc * width(ct), ct, ldc);
	return err;
}
int cublasSgemmStridedBatched(handle *h, int ta, int tb, int m, int n, int k, const float *alpha, const float *a, int lda, int64_t sa, const float *b, int ldb, int64_t sb, const float *beta, float *c, int ldc, int64_t sc, int count)
{
	return cublasGemmStridedBatchedEx(h, ta, tb, m, n, k, alpha, (const char *)a, F32, lda, sa, (const char *)b, F32, ldb, sb, beta, (char *)c, F32, ldc, sc, count, COMPUTE_32F, -1);
}
int cublasGemmBatchedEx(handle *h, int ta, int tb, int m, int n, int k, const void *alpha, const void *const *a, int at, int lda, const void *const *b, int bt, int ldb, const void *beta, void *const *c, int ct, int ldc, int count, int compute, int algo)
{
	int err = compute == COMPUTE_32F && algo == -1 ? OK : INVALID_VALUE;
	for (int i = 0; i < count && !err; i++) err = multiply(h, ta, tb, m, n, k, alpha, a[i], at, lda, b[i], bt, ldb, beta, c[i], ct, ldc);
	return err;
}
int cublasSgemmBatched(handle *h, int ta, int tb, int m, int n, int k, const float *alpha, const void *const *a, int lda, const void *const *b, int ldb, const float *beta, void *const *c, int ldc, int count)
{
	return cublasGemmBatchedEx(h, ta, tb, m, n, k, alpha, a, F32, lda, b, F32, ldb, beta, c, F32, ldc, count, COMPUTE_32F, -1);
}

// cuBLASLt
typedef struct { int type; uint64_t rows, cols; int64_t ld; } layout;
typedef struct { uint64_t algo[8]; size_t work; int state; float waves; int reserved[4]; } heuristic;
static int live;
static void *made(size_t n) { live++; return calloc(1, n); }
static int gone(void *p) { if (!p) return INVALID_VALUE; live--; free(p); return OK; }
int cublasLtCreate(void **h) { *h = made(1); return OK; }
int cublasLtDestroy(void *h) { int err = gone(h); return live ? 14 : err; } // objects that were not destroyed are an error
int cublasLtMatmulDescCreate(void **d, int compute, int scale) { *d = made(8); return compute == COMPUTE_32F && scale == F32 ? OK : INVALID_VALUE; }
int cublasLtMatmulDescDestroy(void *d) { return gone(d); }
int cublasLtMatmulDescSetAttribute(void *d, int attr, const int *buf, size_t n) { return n == 4 && (attr == 3 || attr == 4 ? *buf == 0 : attr == 7 && *buf == 1) ? OK : INVALID_VALUE; } // transa, transb, epilogue
int cublasLtMatrixLayoutCreate(layout **l, int type, uint64_t rows, uint64_t cols, int64_t ld) { *l = made(sizeof **l); **l = (layout){type, rows, cols, ld}; return OK; }
int cublasLtMatrixLayoutDestroy(void *l) { return gone(l); }
int cublasLtMatmulPreferenceCreate(size_t **p) { *p = made(8); return OK; }
int cublasLtMatmulPreferenceDestroy(void *p) { return gone(p); }
int cublasLtMatmulPreferenceSetAttribute(size_t *p, int attr, const size_t *buf, size_t n)
{
	if (attr >= 5 && attr <= 8) return n == 4 ? OK : INVALID_VALUE; // alignments
	if (attr != 1 || n != 8) return INVALID_VALUE;
	*p = *buf;
	return OK;
}
int cublasLtMatmulAlgoGetHeuristic(void *h, void *d, layout *a, layout *b, layout *c, layout *e, size_t *p, int room, heuristic *out, int *count)
{
	if (!h || room != 1 || *p < 1 << 20) return INVALID_VALUE;
	memset(out, 0, sizeof *out);
	out->algo[0] = 0xa190, *count = 1;
	return OK;
}
int cublasLtMatmul(void *h, void *desc, const float *alpha, const void *a, layout *la, const void *b, layout *lb, const float *beta, const void *c, layout *lc, void *d, layout *ld, const uint64_t *algo, uintptr_t work, size_t size, uintptr_t stream)
{
	handle as = {stream, work};
	if (!h || c != d || *algo != 0xa190 || size < 1 << 20) return INVALID_VALUE;
	return multiply(&as, 0, 0, la->rows, lb->cols, la->cols, alpha, a, la->type, la->ld, b, lb->type, lb->ld, beta, d, ld->type, ld->ld);
}
