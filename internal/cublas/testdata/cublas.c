// A cuBLAS for tests without a GPU: it multiplies in the host's memory, at once, and tells what it was given. With IDLE it does neither.
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { OK, NOT_INITIALIZED, INVALID_VALUE = 7 };

typedef struct { uintptr_t stream, work; size_t size; } handle;

static char trace[1 << 12];

int fake_trace(char *out, size_t room)
{
	size_t n = strlen(trace) < room ? strlen(trace) : room;
	memcpy(out, trace, n);
	*trace = 0;
	return (int)n;
}

#define NOTE(...) do { size_t n_ = strlen(trace); snprintf(trace + n_, sizeof trace - n_, __VA_ARGS__); } while (0)

int cublasGetProperty(int which, int *value) { if (which < 0 || which > 2) return INVALID_VALUE; *value = which ? 4 + which : 12; return OK; }
int cublasCreate_v2(handle **h) { *h = calloc(1, sizeof **h); NOTE("create\n"); return OK; }
int cublasDestroy_v2(handle *h) { if (!h) return NOT_INITIALIZED; free(h); NOTE("destroy\n"); return OK; }
int cublasSetStream_v2(handle *h, uintptr_t s) { h->stream = s, h->work = 0; NOTE("stream %#lx\n", (long)s); return OK; }
#ifdef IDLE
#define ALIGNED 1
#else
#define ALIGNED 256
#endif
int cublasSetWorkspace_v2(handle *h, uintptr_t p, size_t n) { if (p % ALIGNED) return INVALID_VALUE; h->work = p, h->size = n; NOTE("workspace %#lx, %zu\n", (long)p, n); return OK; }

int cublasSgemm_v2(handle *h, int ta, int tb, int m, int n, int k, const float *alpha, const float *a, int lda, const float *b, int ldb, const float *beta, float *c, int ldc)
{
	if (!h) return NOT_INITIALIZED;
	if (ta || tb || m < 0 || n < 0 || k < 0) return INVALID_VALUE;
#ifndef IDLE
	NOTE("sgemm %d %d %d in %#lx with %#lx\n", m, n, k, (long)h->stream, (long)h->work);
	for (int j = 0; j < n; j++)
		for (int i = 0; i < m; i++) {
			float sum = 0;
			for (int l = 0; l < k; l++) sum += a[i + l * lda] * b[l + j * ldb];
			c[i + j * ldc] = *alpha * sum + (*beta ? *beta * c[i + j * ldc] : 0);
		}
#endif
	return OK;
}
