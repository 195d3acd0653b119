/* A CUDA driver whose device is the host: its memory is host memory, and its one kernel is saxpy. A call that needs a
 * current context fails without one. Unlike in a real driver, cuCtxSetCurrent(NULL) fails while something is not freed.
 * Faults are compiled in: NO_DEVICE, FEW_ALLOCATIONS=n, WRONG_KERNEL=n. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

enum { OK = 0, INVALID_VALUE = 1, OUT_OF_MEMORY = 2, NO_DEVICE_FOUND = 100, INVALID_IMAGE = 200, INVALID_CONTEXT = 201, INVALID_HANDLE = 400, NOT_FOUND = 500, LEAK = 999 };

#define CONTEXT ((void *)0xc0)
#define MODULE ((void *)0xd0)
#define FUNCTION ((void *)0xf0)
#define STREAM ((void *)0xe0)
#ifndef FEW_ALLOCATIONS
#define FEW_ALLOCATIONS 1000
#endif
#ifndef WRONG_KERNEL
#define WRONG_KERNEL 0
#endif

static int started, retained, live, allocated;
static __thread void *current;

#define NEED_CONTEXT if (!started || !retained || current != CONTEXT) return INVALID_CONTEXT

int cuDriverGetVersion(int *v) { *v = 13000; return OK; }

int cuInit(unsigned flags)
{
	if (flags) return INVALID_VALUE;
#ifdef NO_DEVICE
	return NO_DEVICE_FOUND;
#endif
	started = 1;
	return OK;
}

int cuDeviceGet(int *dev, int i) { if (!started || i != 0) return INVALID_VALUE; *dev = 7; return OK; }
int cuDeviceGetCount(int *n) { if (!started) return 3; *n = 1; return OK; }
int cuDeviceGetName(char *name, int len, int dev)
{
	if (dev != 7 || len < 16) return INVALID_VALUE;
	strcpy(name, "Fake GPU");
	return OK;
}

int cuDevicePrimaryCtxRetain(void **ctx, int dev) { if (dev != 7) return INVALID_VALUE; retained++; *ctx = CONTEXT; return OK; }
int cuDevicePrimaryCtxRelease_v2(int dev) { if (dev != 7 || !retained) return INVALID_CONTEXT; retained--; return OK; }

int cuCtxSetCurrent(void *ctx)
{
	if (ctx && ctx != CONTEXT) return INVALID_CONTEXT;
	current = ctx;
	return !ctx && live ? LEAK : OK;
}

int cuCtxSynchronize(void) { NEED_CONTEXT; return OK; }
int cuStreamCreate(void **s, unsigned flags) { NEED_CONTEXT; if (flags) return INVALID_VALUE; live++; *s = STREAM; return OK; }
int cuStreamSynchronize(void *s) { return s == STREAM ? OK : INVALID_HANDLE; }
int cuStreamDestroy_v2(void *s) { if (s != STREAM) return INVALID_HANDLE; live--; return OK; }

int cuMemAlloc_v2(uint64_t *p, size_t n)
{
	NEED_CONTEXT;
	if (allocated == FEW_ALLOCATIONS) return OUT_OF_MEMORY;
	allocated++, live++;
	*p = (uintptr_t)malloc(n);
	return OK;
}
int cuMemFree_v2(uint64_t p) { NEED_CONTEXT; live--; free((void *)(uintptr_t)p); return OK; }
int cuMemcpyHtoD_v2(uint64_t d, const void *s, size_t n) { NEED_CONTEXT; memcpy((void *)(uintptr_t)d, s, n); return OK; }
int cuMemcpyDtoH_v2(void *d, uint64_t s, size_t n) { NEED_CONTEXT; memcpy(d, (void *)(uintptr_t)s, n); return OK; }
int cuMemsetD32_v2(uint64_t d, unsigned v, size_t n)
{
	NEED_CONTEXT;
	for (size_t i = 0; i < n; i++) ((unsigned *)(uintptr_t)d)[i] = v;
	return OK;
}

int cuModuleLoadData(void **m, const char *image)
{
	NEED_CONTEXT;
	if (!strstr(image, ".visible .entry saxpy(")) return INVALID_IMAGE;
	live++, *m = MODULE;
	return OK;
}
int cuModuleUnload(void *m) { NEED_CONTEXT; if (m != MODULE) return INVALID_HANDLE; live--; return OK; }
int cuModuleGetFunction(void **f, void *m, const char *name)
{
	if (m != MODULE) return INVALID_HANDLE;
	if (strcmp(name, "saxpy")) return NOT_FOUND;
	*f = FUNCTION;
	return OK;
}

int cuLaunchKernel(void *f, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz, unsigned shared, void *stream, void **args, void **extra)
{
	NEED_CONTEXT;
	if (f != FUNCTION || gy != 1 || gz != 1 || by != 1 || bz != 1 || shared || stream || extra) return INVALID_VALUE;
	uint64_t n = *(uint64_t *)args[0];
	float a = *(float *)args[1], *x = *(float **)args[2], *y = *(float **)args[3];
	for (uint64_t i = 0; i < (uint64_t)gx * bx && i < n; i++) y[i] = a * x[i] + y[i];
	y[n - 1] += WRONG_KERNEL;
	return OK;
}
