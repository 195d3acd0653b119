// A CUDA driver with two devices that live in the host's memory and do their work at once. It keeps contexts per thread, as
// the real one does, writes down each call, and gives out the results that a test asks for.
//
//	VERSION  the release; functions that came later are left out
//	DEVICES  how many devices there are
#include <pthread.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#ifndef VERSION
#define VERSION 13000
#endif
#ifndef DEVICES
#define DEVICES 2
#endif

enum { OK, INVALID_VALUE, OUT_OF_MEMORY, NOT_INITIALIZED, NO_DEVICE = 100, INVALID_CONTEXT = 201, INVALID_PTX = 218, INVALID_HANDLE = 400, NOT_FOUND = 500 };
enum { STREAM = 0x5000, EVENT = 0xe000, MODULE = 0x3000, FUNCTION = 0xf000, CONTEXT = 0xc0, SPECIAL = 0x100 };

static pthread_mutex_t mu = PTHREAD_MUTEX_INITIALIZER;

// What a test sets and reads, by name.
static struct { char name[64]; int value; } settings[32];
static int numSettings;
static char trace[1 << 16];
static size_t traced;

int fake_set(const char *name, int value)
{
	pthread_mutex_lock(&mu);
	int i = 0;
	while (i < numSettings && strcmp(settings[i].name, name)) i++;
	if (i == numSettings && i < 32) numSettings++;
	if (i < 32) {
		snprintf(settings[i].name, sizeof settings[i].name, "%s", name);
		settings[i].value = value;
	}
	pthread_mutex_unlock(&mu);
	return i == 32;
}

static int get(const char *name)
{
	for (int i = 0; i < numSettings; i++)
		if (!strcmp(settings[i].name, name)) return settings[i].value;
	return 0;
}

// fake_trace copies the calls since it was last called, one a line, and returns their length.
int fake_trace(char *out, size_t room)
{
	pthread_mutex_lock(&mu);
	size_t n = traced < room ? traced : room;
	memcpy(out, trace, n);
	traced = 0;
	pthread_mutex_unlock(&mu);
	return (int)n;
}

// fake_live tells how many objects have not been given back.
static int live, retained[DEVICES + 1];
int fake_live(void) { return live; }
int fake_retained(int device) { return retained[device]; }

static __thread uintptr_t stack[16];
static __thread int depth;

// fake_stack tells the calling thread's contexts as digits of base 4096, the current one lowest.
uint64_t fake_stack(void)
{
	uint64_t s = 0;
	for (int i = 0; i < depth; i++) s = s << 12 | stack[i];
	return s;
}

static int enter(const char *call, int needsContext, const char *format, ...)
{
	pthread_mutex_lock(&mu);
	if (sizeof trace - traced > 512) {
		traced += snprintf(trace + traced, 64, "%s(", call);
		va_list args;
		va_start(args, format);
		traced += vsnprintf(trace + traced, 256, format, args);
		va_end(args);
		traced += sprintf(trace + traced, ")\n");
	}
	int result = get(call);
	if (!result && needsContext && (!depth || stack[depth - 1] < CONTEXT)) result = INVALID_CONTEXT;
	pthread_mutex_unlock(&mu);
	return result;
}

#define ENTER(...) do { int r = enter(__func__, 0, __VA_ARGS__); if (r) return r; } while (0)
#define CREATE(...) do { int r = enter(__func__, 1, __VA_ARGS__); if (r) return r; } while (0)
#define SUBMIT(...) do { int r = enter(__func__, get("bound"), __VA_ARGS__); if (r) return r; if (s != STREAM) return INVALID_HANDLE; } while (0)
#define LIVE(n) __atomic_add_fetch(&live, (n), __ATOMIC_SEQ_CST)

int cuDriverGetVersion(int *version) { *version = VERSION; return OK; }
int cuInit(unsigned flags) { ENTER("%u", flags); return OK; }

int cuDeviceGetCount(int *n) { *n = DEVICES; return OK; }
int cuDeviceGet(int *id, int ordinal) { if (ordinal >= DEVICES) return 101; *id = ordinal + 40; return OK; }
int cuDeviceGetName(char *name, int len, int id) { ENTER("%d", id); snprintf(name, len, "Fake %d", id - 40); return OK; }
int cuDeviceTotalMem_v2(size_t *bytes, int id) { *bytes = (size_t)80 << 30; return OK; }
int cuDeviceGetPCIBusId(char *out, int len, int id) { ENTER("%d", id); snprintf(out, len, "0000:3B:0%d.0", id - 40); return OK; }
int cuDeviceGetUuid(unsigned char *uuid, int id) { for (int i = 0; i < 16; i++) uuid[i] = i; return OK; }
#if VERSION >= 11040
int cuDeviceGetUuid_v2(unsigned char *uuid, int id) { for (int i = 0; i < 16; i++) uuid[i] = i | 0x80; return OK; }
#endif

int cuDeviceGetAttribute(int *value, int attribute, int id)
{
	char name[16];
	sprintf(name, "attr %d", attribute);
	int r = get("cuDeviceGetAttribute");
	if (r) return r;
	switch (attribute) {
	case 75: *value = 9; break;
	case 76: *value = 0; break;
	case 8: *value = 48 << 10; break;
	case 97: *value = 227 << 10; break;
	case 83: case 89: case 99: *value = 1; break;
	case 18: *value = 0; break;
	default: *value = attribute * 10;
	}
	if ((r = get(name))) *value = r - 1;
	return OK;
}

int cuDevicePrimaryCtxRetain(uintptr_t *ctx, int id) { ENTER("%d", id); retained[id - 40]++; *ctx = CONTEXT + id - 40; return OK; }
int cuDevicePrimaryCtxRelease_v2(int id) { ENTER("%d", id); if (!retained[id - 40]) return INVALID_CONTEXT; retained[id - 40]--; return OK; }

int cuCtxGetCurrent(uintptr_t *ctx) { ENTER(""); *ctx = depth ? stack[depth - 1] : 0; return OK; }
int cuCtxSetCurrent(uintptr_t ctx)
{
	ENTER("%#lx", (long)ctx);
	if (!ctx) {
		if (depth) depth--;
	} else if (depth) {
		stack[depth - 1] = ctx;
	} else {
		stack[depth++] = ctx;
	}
	return OK;
}
int cuCtxPushCurrent_v2(uintptr_t ctx) { ENTER("%#lx", (long)ctx); if (depth == 16 || !ctx) return INVALID_VALUE; stack[depth++] = ctx; return OK; }
int cuCtxPopCurrent_v2(uintptr_t *ctx) { ENTER(""); if (!depth) return INVALID_CONTEXT; *ctx = stack[--depth]; return OK; }

int cuStreamCreate(uintptr_t *s, unsigned flags) { CREATE("%u", flags); LIVE(1); *s = STREAM; return OK; }
int cuStreamDestroy_v2(uintptr_t s) { CREATE("%#lx", (long)s); if (s != STREAM) return INVALID_HANDLE; LIVE(-1); return OK; }
int cuStreamSynchronize(uintptr_t s) { ENTER("%#lx", (long)s); return OK; }
int cuEventCreate(uintptr_t *e, unsigned flags) { CREATE("%u", flags); LIVE(1); *e = EVENT; return OK; }
int cuEventDestroy_v2(uintptr_t e) { CREATE("%#lx", (long)e); if (e != EVENT) return INVALID_HANDLE; LIVE(-1); return OK; }
int cuEventRecord(uintptr_t e, uintptr_t s) { SUBMIT("%#lx, %#lx", (long)e, (long)s); return OK; }
int cuStreamWaitEvent(uintptr_t s, uintptr_t e, unsigned flags) { SUBMIT("%#lx, %#lx, %u", (long)s, (long)e, flags); return OK; }
int cuEventQuery(uintptr_t e) { int r = enter(__func__, get("bound"), "%#lx", (long)e); return r; }

// The pinned memory's addresses for the device differ from those for the host in one bit, to tell them apart.
#define HOSTBIT ((uint64_t)1 << 62)
static void *mem(uint64_t p) { return (void *)(uintptr_t)(p & ~HOSTBIT); }

int cuMemAlloc_v2(uint64_t *p, size_t n) { CREATE("%zu", n); if (!n) return INVALID_VALUE; LIVE(1); *p = (uintptr_t)malloc(n); return OK; }
int cuMemFree_v2(uint64_t p) { CREATE(""); LIVE(-1); free(mem(p)); return OK; }
int cuMemHostAlloc(void **p, size_t n, unsigned flags) { CREATE("%zu, %u", n, flags); LIVE(1); *p = malloc(n); return OK; }
int cuMemFreeHost(void *p) { CREATE(""); LIVE(-1); free(p); return OK; }
int cuMemHostGetDevicePointer_v2(uint64_t *d, void *p, unsigned flags) { CREATE("%u", flags); *d = (uintptr_t)p | HOSTBIT; return OK; }
int cuMemAllocManaged(uint64_t *p, size_t n, unsigned flags) { CREATE("%zu, %u", n, flags); LIVE(1); *p = (uintptr_t)malloc(n); return OK; }
int cuMemHostRegister_v2(void *p, size_t n, unsigned flags) { CREATE("%zu, %u", n, flags); LIVE(1); return OK; }
int cuMemHostUnregister(void *p) { CREATE(""); LIVE(-1); return OK; }

#define FILL(bits) \
	int cuMemsetD##bits##Async(uint64_t p, unsigned v, size_t n, uintptr_t s) \
	{ \
		SUBMIT("%#x, %zu, %#lx", v, n, (long)s); \
		for (size_t i = 0; i < n; i++) ((uint##bits##_t *)mem(p))[i] = v; \
		return OK; \
	}
FILL(8)
FILL(16)
FILL(32)

int cuMemcpyAsync(uint64_t d, uint64_t p, size_t n, uintptr_t s) { SUBMIT("%zu, %#lx", n, (long)s); memcpy(mem(d), mem(p), n); return OK; }
int cuMemcpyHtoDAsync_v2(uint64_t d, void *p, size_t n, uintptr_t s) { SUBMIT("%zu, %#lx", n, (long)s); memcpy(mem(d), p, n); return OK; }
int cuMemcpyDtoHAsync_v2(void *d, uint64_t p, size_t n, uintptr_t s) { SUBMIT("%zu, %#lx", n, (long)s); memcpy(d, mem(p), n); return OK; }

// The compiler logs lines of the text, those with "error" as errors, and fails if there is such a line. With the setting
// "log" it fills the logs to the brim. An image that is not text is accepted.
int cuModuleLoadDataEx(uintptr_t *m, const char *image, unsigned n, const int *options, uintptr_t *values)
{
	CREATE("%u: %d %d %d %d", n, options[0], options[1], options[2], options[3]);
	char *info = (char *)values[0], *err = (char *)values[2];
	size_t infoSize = (uint32_t)values[1], errSize = (uint32_t)values[3];
	if (get("log")) {
		memset(info, 'i', infoSize);
		memset(err, 'e', errSize);
		return INVALID_PTX;
	}
	values[1] = values[3] = 0;
	const char *bad = *image == '.' ? strstr(image, "error") : NULL;
	if (bad) {
		values[1] = snprintf(info, infoSize, "info : %zu bytes of text\n", strlen(image));
		values[3] = snprintf(err, errSize, "ptxas fatal : %s\n", bad);
		return INVALID_PTX;
	}
	LIVE(1);
	*m = MODULE;
	return OK;
}
int cuModuleUnload(uintptr_t m) { CREATE("%#lx", (long)m); if (m != MODULE) return INVALID_HANDLE; LIVE(-1); return OK; }
int cuModuleGetFunction(uintptr_t *f, uintptr_t m, const char *name)
{
	CREATE("%s", name);
	if (strcmp(name, "empty") && strcmp(name, "count")) return NOT_FOUND;
	*f = FUNCTION + (*name == 'c');
	return OK;
}
int cuModuleGetGlobal_v2(uint64_t *p, size_t *n, uintptr_t m, const char *name)
{
	CREATE("%s", name);
	static long variable;
	if (strcmp(name, "variable")) return NOT_FOUND;
	*p = (uintptr_t)&variable, *n = sizeof variable;
	return OK;
}
int cuFuncGetAttribute(int *value, int attribute, uintptr_t f) { CREATE("%d", attribute); *value = attribute == 1 ? 1024 : 100 + attribute; return OK; }
int cuFuncSetAttribute(uintptr_t f, int attribute, int value) { CREATE("%d, %d", attribute, value); return OK; }
#if VERSION >= 12040
int cuFuncLoad(uintptr_t f) { CREATE("%#lx", (long)f); return OK; }
int cuFuncGetParamInfo(uintptr_t f, size_t i, size_t *offset, size_t *size)
{
	CREATE("%zu", i);
	if (f == FUNCTION || i > 1) return INVALID_VALUE;
	*offset = 8 * i, *size = 8 >> i;
	return OK;
}
#endif

// The kernel "count" adds its second parameter to the counter that its first one points to.
int cuLaunchKernel(uintptr_t f, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz, unsigned shared,
                   uintptr_t s, void **params, void **extra)
{
	SUBMIT("%#lx, %u %u %u, %u %u %u, %u, %#lx", (long)f, gx, gy, gz, bx, by, bz, shared, (long)s);
	if (extra) return INVALID_VALUE;
	if (f == FUNCTION + 1) **(uint64_t **)params[0] += *(uint32_t *)params[1];
	return OK;
}
