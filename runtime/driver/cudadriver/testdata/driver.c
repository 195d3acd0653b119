// A CUDA driver with two devices that live in the host's memory and do their work at once. It keeps contexts per thread, as
// the real one does, writes down each call, and gives out the results that a test asks for.
//
//	VERSION  the release; functions that came later are left out
//	DEVICES  how many devices there are
//	NOPOOLS  leaves functions of memory pools out
//	NOVIRTUAL leaves a function of virtual memory out
//	CRASHES  has nodes of kernels set without a context crash, and the use of another device's pool, as releases of the driver do
#define _GNU_SOURCE
#include <pthread.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#ifndef VERSION
#define VERSION 13000
#endif
#ifndef DEVICES
#define DEVICES 2
#endif

// What a function returns, which fake_failed tells unless it is OK.
#define INVALID_VALUE failed(__func__, 1)
#define OUT_OF_MEMORY failed(__func__, 2)
#define INVALID_CONTEXT failed(__func__, 201)
#define INVALID_PTX failed(__func__, 218)
#define INVALID_HANDLE failed(__func__, 400)
#define NOT_FOUND failed(__func__, 500)
#define ALREADY_ENABLED failed(__func__, 704)
enum { OK };
enum { SETTINGS = 128 };
enum { STREAM = 0x5000, EVENT = 0xe000, MODULE = 0x3000, LIBRARY = 0x3100, FUNCTION = 0xf000, CONTEXT = 0xc0, SPECIAL = 0x100 };
enum { POOL = 0x9000, GRAPH = 0x10000, EXEC = 0x20000, NODE = 0x30000 };

static pthread_mutex_t mu = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER; // a setting

// What a test sets and reads, by name.
static struct { char name[64]; int value; } settings[SETTINGS];
static int numSettings;
static char trace[1 << 16];
static size_t traced;

int fake_set(const char *name, int value)
{
	pthread_mutex_lock(&mu);
	int i = 0;
	while (i < numSettings && strcmp(settings[i].name, name)) i++;
	if (i == numSettings && i < SETTINGS) numSettings++;
	if (i < SETTINGS) {
		snprintf(settings[i].name, sizeof settings[i].name, "%s", name);
		settings[i].value = value;
	}
	pthread_cond_broadcast(&changed);
	pthread_mutex_unlock(&mu);
	return i == SETTINGS;
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

static char failures[1 << 12];

// failed notes a call that fails.
static int failed(const char *call, int code)
{
	size_t n = strlen(failures);
	snprintf(failures + n, sizeof failures - n, "%s returned %d\n", call, code);
	return code;
}

// fake_failed copies the calls that failed since it was last called, one a line, and returns their length.
int fake_failed(char *out, size_t room)
{
	pthread_mutex_lock(&mu);
	size_t n = strlen(failures) < room ? strlen(failures) : room;
	memcpy(out, failures, n);
	*failures = 0;
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

// bound tells whether a function, or all of them, submit only on a thread with a context.
static int bound(const char *call)
{
	char name[64];
	snprintf(name, sizeof name, "bound %s", call);
	return get("bound") || get(name);
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
	if (!result && needsContext && (!depth || stack[depth - 1] < CONTEXT)) result = 201; // there is no context
	if (result) failed(call, result);
	pthread_mutex_unlock(&mu);
	return result;
}

// A stream's handle tells its device.
#define IS_STREAM(s) ((s) >= STREAM && (s) < STREAM + DEVICES)

#define ENTER(...) do { int r = enter(__func__, 0, __VA_ARGS__); if (r) return r; } while (0)
#define CREATE(...) do { int r = enter(__func__, 1, __VA_ARGS__); if (r) return r; } while (0)
#define WORK(...) do { int r = enter(__func__, bound(__func__), __VA_ARGS__); if (r) return r; if (!IS_STREAM(s)) return INVALID_HANDLE; } while (0)
#define SUBMIT(...) do { WORK(__VA_ARGS__); if (captured[s - STREAM]) return spoil(s, failed(__func__, 900)); } while (0)
#define LIVE(n) __atomic_add_fetch(&live, (n), __ATOMIC_SEQ_CST)

// What a device's stream captures: a graph of its fills and kernels, in order. All else spoils it.
struct graph;
static struct graph *captured[DEVICES + 1];
static int spoilt[DEVICES + 1];
static int spoil(uintptr_t s, int code) { spoilt[s - STREAM] = 1; return code; }
static int noteFill(uintptr_t s, uint64_t p, unsigned v, int size, size_t n);
static int noteKernel(uintptr_t s, uintptr_t f, void **params);

int cuDriverGetVersion(int *version) { *version = VERSION; return OK; }
int cuInit(unsigned flags) { ENTER("%u", flags); return OK; }

int cuDeviceGetCount(int *n) { *n = DEVICES; return OK; }
int cuDeviceGet(int *id, int ordinal) { if (ordinal >= DEVICES) return 101; *id = ordinal + 40; return OK; }
int cuDeviceGetName(char *name, int len, int id) { ENTER("%d", id); snprintf(name, len, "Fake %d", id - 40); return OK; }
int cuDeviceTotalMem_v2(size_t *bytes, int id) { *bytes = (size_t)80 << 30; return OK; }
int cuDeviceGetPCIBusId(char *out, int len, int id) { ENTER("%d", id); snprintf(out, len, "0000:3B:0%d.0", id - 40); return OK; }
int cuDeviceGetUuid(unsigned char *uuid, int id) { for (int i = 0; i < 16; i++) uuid[i] = i; return OK; }
#if VERSION >= 11040
// With the setting "MIG" the devices are parts of one, of which the older form tells the UUID.
int cuDeviceGetUuid_v2(unsigned char *uuid, int id) { for (int i = 0; i < 16; i++) uuid[i] = get("MIG") ? i | 0x80 : i; return OK; }
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
	case 120:
		if (VERSION < 11080) return INVALID_VALUE;
		*value = 1;
		break;
	case 134:
		if (VERSION < 12020) return INVALID_VALUE;
		*value = 1;
		break;
	case 119: *value = VERSION < 11030 ? 0 : 9; break;
	case 144:
		if (VERSION < 13000) return INVALID_VALUE;
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

// With the setting "apart" there is no way between the devices. Nothing undoes the access to a peer.
static int peers;
int cuDeviceCanAccessPeer(int *can, int id, int other) { ENTER("%d, %d", id, other); *can = id != other && !get("apart"); return OK; }
int cuCtxEnablePeerAccess(uintptr_t ctx, unsigned flags)
{
	CREATE("%#lx, %u", (long)ctx, flags);
	int bit = 1 << (stack[depth - 1] - CONTEXT);
	if (flags || ctx < CONTEXT || ctx == stack[depth - 1]) return INVALID_VALUE;
	if (peers & bit) return ALREADY_ENABLED;
	peers |= bit;
	return OK;
}

// A link's properties are ten times their numbers, and those with the setting "p2p N" one less than that.
int cuDeviceGetP2PAttribute(int *value, int attribute, int id, int other)
{
	char name[16];
	sprintf(name, "p2p %d", attribute);
	ENTER("%d, %d, %d", attribute, id, other);
	if (id == other) return failed(__func__, 101);
	*value = get(name) ? get(name) - 1 : attribute * 10;
	return OK;
}

int cuCtxGetStreamPriorityRange(int *least, int *greatest) { CREATE(""); *least = 0, *greatest = -5; return OK; }

int cuStreamCreate(uintptr_t *s, unsigned flags) { CREATE("%u", flags); LIVE(1); *s = STREAM + stack[depth - 1] - CONTEXT; return OK; }

int cuStreamCreateWithPriority(uintptr_t *s, unsigned flags, int priority) { CREATE("%u, %d", flags, priority); LIVE(1); *s = STREAM + stack[depth - 1] - CONTEXT; return OK; }

// With the setting "linger" a stream is gone some time before this returns, until the setting is off.
int cuStreamDestroy_v2(uintptr_t s)
{
	CREATE("%#lx", (long)s);
	if (!IS_STREAM(s)) return INVALID_HANDLE;
	LIVE(-1);
	pthread_mutex_lock(&mu);
	while (get("linger")) pthread_cond_wait(&changed, &mu);
	pthread_mutex_unlock(&mu);
	return OK;
}
// With the setting "other context" a stream is of one that nobody has, and "priority" is what its priority is below 0.
int cuStreamGetCtx(uintptr_t s, uintptr_t *ctx) { ENTER("%#lx", (long)s); if (!IS_STREAM(s)) return INVALID_HANDLE; *ctx = get("other context") ? 0xabc : CONTEXT + s - STREAM; return OK; }
int cuStreamGetPriority(uintptr_t s, int *priority) { ENTER("%#lx", (long)s); if (!IS_STREAM(s)) return INVALID_HANDLE; *priority = -get("priority"); return OK; }
int cuStreamIsCapturing(uintptr_t s, int *status) { WORK("%#lx", (long)s); *status = !captured[s - STREAM] ? 0 : spoilt[s - STREAM] ? 2 : 1; return OK; }
int cuStreamSynchronize(uintptr_t s) { ENTER("%#lx", (long)s); return IS_STREAM(s) && captured[s - STREAM] ? spoil(s, failed(__func__, 900)) : OK; }
int cuEventCreate(uintptr_t *e, unsigned flags) { CREATE("%u", flags); LIVE(1); *e = EVENT; return OK; }
int cuEventDestroy_v2(uintptr_t e) { CREATE("%#lx", (long)e); if (e != EVENT) return INVALID_HANDLE; LIVE(-1); return OK; }
int cuEventRecord(uintptr_t e, uintptr_t s) { SUBMIT("%#lx, %#lx", (long)e, (long)s); return OK; }
int cuStreamWaitEvent(uintptr_t s, uintptr_t e, unsigned flags) { SUBMIT("%#lx, %#lx, %u", (long)s, (long)e, flags); return OK; }
int cuEventQuery(uintptr_t e) { int r = enter(__func__, bound(__func__), "%#lx", (long)e); return r; }

// Whatever two events, they are 1.5 ms apart.
static int elapsed(const char *call, float *ms, uintptr_t a, uintptr_t b)
{
	int r = enter(call, bound(call), "%#lx, %#lx", (long)a, (long)b);
	if (!r) *ms = 1.5;
	return r;
}
int cuEventElapsedTime(float *ms, uintptr_t a, uintptr_t b) { return elapsed(__func__, ms, a, b); }
#if VERSION >= 12080
int cuEventElapsedTime_v2(float *ms, uintptr_t a, uintptr_t b) { return elapsed(__func__, ms, a, b); }
#endif

// The pinned memory's addresses for the device differ from those for the host in one bit, to tell them apart.
#define HOSTBIT ((uint64_t)1 << 62)
static void *mem(uint64_t p) { return (void *)(uintptr_t)(p & ~HOSTBIT); }

// Which device's pool an address is of, and which devices, as bits, that pool lets in.
typedef struct pooled { uint64_t base, n; int device; unsigned *users; struct pooled *next; } pooled;
static pooled *allPooled;

static pooled *findPooled(uint64_t p)
{
	pthread_mutex_lock(&mu);
	pooled *m = allPooled;
	while (m && (p < m->base || p - m->base >= m->n)) m = m->next;
	pthread_mutex_unlock(&mu);
	return m;
}

// reaches tells whether a device may use an address. Only what is of pools it may not have access to.
static int reaches(uint64_t p, int device)
{
	pooled *m = findPooled(p);
	if (!m || m->device == device || *m->users >> device & 1) return 1;
#ifdef CRASHES
	if (!depth) *(volatile int *)0 = 1;
#endif
	return 0;
}
// Where a context is current, its device must have access too, whatever device the stream is of: so it is with the driver's copies.
#define REACH(p) do { if (!reaches((p), s - STREAM)) return INVALID_VALUE; } while (0)
#define REACH_TOO(p) do { REACH(p); if (depth && !reaches((p), stack[depth - 1] - CONTEXT)) return INVALID_VALUE; } while (0)

int cuMemGetInfo_v2(size_t *available, size_t *total) { CREATE(""); *available = (size_t)60 << 30, *total = (size_t)80 << 30; return OK; }
int cuMemAlloc_v2(uint64_t *p, size_t n) { CREATE("%zu", n); if (!n) return INVALID_VALUE; LIVE(1); *p = (uintptr_t)malloc(n); return OK; }
int cuMemFree_v2(uint64_t p) { CREATE(""); LIVE(-1); free(mem(p)); return OK; }
int cuMemHostAlloc(void **p, size_t n, unsigned flags) { CREATE("%zu, %u", n, flags); LIVE(1); *p = malloc(n); return OK; }
int cuMemFreeHost(void *p) { CREATE(""); LIVE(-1); free(p); return OK; }
int cuMemHostGetDevicePointer_v2(uint64_t *d, void *p, unsigned flags) { CREATE("%u", flags); *d = (uintptr_t)p | HOSTBIT; return OK; }
int cuMemAllocManaged(uint64_t *p, size_t n, unsigned flags) { CREATE("%zu, %u", n, flags); LIVE(1); *p = (uintptr_t)malloc(n); return OK; }
int cuMemHostRegister_v2(void *p, size_t n, unsigned flags) { CREATE("%zu, %u", n, flags); LIVE(1); return OK; }
#if VERSION >= 12020
int cuMemPrefetchAsync_v2(uint64_t p, size_t n, uint64_t where, unsigned flags, uintptr_t s) { int r = enter(__func__, 1, "%zu, %u %d, %u, %#lx", n, (unsigned)where, (int)(where >> 32), flags, (long)s); return r ? r : !IS_STREAM(s) ? INVALID_HANDLE : OK; }
#endif
int cuMemPrefetchAsync(uint64_t p, size_t n, int device, uintptr_t s) { int r = enter(__func__, 1, "%zu, %d, %#lx", n, device, (long)s); return r ? r : !IS_STREAM(s) ? INVALID_HANDLE : OK; }
#if VERSION >= 11070
// A wait is over at once, or never: then it is as if the stream had been refused.
int cuStreamWriteValue64_v2(uintptr_t s, uint64_t p, uint64_t v, unsigned flags) { SUBMIT("%#lx, %#lx, %u", (long)s, (long)v, flags); if (p & 7) return INVALID_VALUE; *(uint64_t *)mem(p) = v; return OK; }
int cuStreamWaitValue64_v2(uintptr_t s, uint64_t p, uint64_t v, unsigned flags) { SUBMIT("%#lx, %#lx, %u", (long)s, (long)v, flags); return p & 7 || (int64_t)(*(uint64_t *)mem(p) - v) < 0 ? INVALID_VALUE : OK; }
#endif
int cuMemHostUnregister(void *p) { CREATE(""); LIVE(-1); return OK; }

// What processes share: a handle has the address, or the event, as text. With the setting "own process" it is as this process's own.
typedef struct { char text[64]; } ipcHandle;
int cuMemGetAddressRange_v2(uint64_t *base, size_t *n, uint64_t p) { CREATE(""); *base = p - 256, *n = 4096; return OK; }
int cuIpcGetMemHandle(ipcHandle *h, uint64_t p) { CREATE(""); memset(h, 0, sizeof *h); sprintf(h->text, "memory %#lx", (long)p); return OK; }
int cuIpcOpenMemHandle_v2(uint64_t *p, ipcHandle h, unsigned flags)
{
	unsigned long at;
	CREATE("%.6s, %u", h.text, flags);
	if (get("own process")) return INVALID_CONTEXT;
	if (sscanf(h.text, "memory %lx", &at) != 1) return INVALID_VALUE;
	LIVE(1);
	*p = at;
	return OK;
}
int cuIpcCloseMemHandle(uint64_t p) { CREATE(""); LIVE(-1); return OK; }
int cuIpcGetEventHandle(ipcHandle *h, uintptr_t e) { CREATE("%#lx", (long)e); if (e != EVENT) return INVALID_HANDLE; memset(h, 0, sizeof *h); sprintf(h->text, "event %#lx", (long)e); return OK; }
int cuIpcOpenEventHandle(uintptr_t *e, ipcHandle h)
{
	unsigned long event;
	CREATE("%.16s", h.text);
	if (get("own process")) return INVALID_CONTEXT;
	if (sscanf(h.text, "event %lx", &event) != 1) return INVALID_HANDLE;
	LIVE(1);
	*e = event;
	return OK;
}

#define FILL(bits) \
	int cuMemsetD##bits##Async(uint64_t p, unsigned v, size_t n, uintptr_t s) \
	{ \
		WORK("%#x, %zu, %#lx", v, n, (long)s); \
		REACH(p); \
		if (captured[s - STREAM]) return noteFill(s, p, v, bits / 8, n); \
		for (size_t i = 0; i < n; i++) ((uint##bits##_t *)mem(p))[i] = v; \
		return OK; \
	}
FILL(8)
FILL(16)
FILL(32)

static void fill2D(uint64_t p, size_t pitch, uint32_t v, int size, size_t width, size_t height)
{
	for (size_t y = 0; y < height; y++)
		for (size_t x = 0; x < width; x++) memcpy((char *)mem(p) + y * pitch + x * size, &v, size);
}
int cuMemsetD2D32Async(uint64_t p, size_t pitch, unsigned v, size_t width, size_t height, uintptr_t s)
{
	SUBMIT("%zu, %#x, %zu, %zu, %#lx", pitch, v, width, height, (long)s);
	REACH(p);
	fill2D(p, pitch, v, 4, width, height);
	return OK;
}

int cuMemcpyAsync(uint64_t d, uint64_t p, size_t n, uintptr_t s) { SUBMIT("%zu, %#lx", n, (long)s); REACH_TOO(d); REACH_TOO(p); memcpy(mem(d), mem(p), n); return OK; }
int cuMemcpyDtoDAsync_v2(uint64_t d, uint64_t p, size_t n, uintptr_t s) { SUBMIT("%zu, %#lx", n, (long)s); REACH(d); REACH(p); memcpy(mem(d), mem(p), n); return OK; }

// With the setting "device memory only" these refuse memory that a pool has of the host's, as the driver does.
#define DEVICE_ONLY if (get("device memory only")) return INVALID_VALUE
int cuMemcpyHtoDAsync_v2(uint64_t d, void *p, size_t n, uintptr_t s) { SUBMIT("%zu, %#lx", n, (long)s); DEVICE_ONLY; REACH_TOO(d); memcpy(mem(d), p, n); return OK; }
int cuMemcpyDtoHAsync_v2(void *d, uint64_t p, size_t n, uintptr_t s) { SUBMIT("%zu, %#lx", n, (long)s); DEVICE_ONLY; REACH_TOO(p); memcpy(d, mem(p), n); return OK; }

// A copy between devices needs no access, but the contexts of those whose memory it is.
int cuMemcpyPeerAsync(uint64_t d, uintptr_t to, uint64_t p, uintptr_t from, size_t n, uintptr_t s)
{
	SUBMIT("%#lx, %#lx, %zu, %#lx", (long)to, (long)from, n, (long)s);
	if (!reaches(d, to - CONTEXT) || !reaches(p, from - CONTEXT)) return INVALID_VALUE;
	memcpy(mem(d), mem(p), n);
	return OK;
}

static char *infoLog; // of the library that was loaded last, which cuModuleGetFunction writes with the setting "late log"

// The compiler logs lines of the text, those with "error" as errors, and fails if there is such a line. With the setting
// "log" it fills the logs to the brim. An image that is not text is accepted.
static int compile(const char *image, uintptr_t *values)
{
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
	return OK;
}
int cuModuleGetLoadingMode(int *mode) { *mode = get("eager") ? 1 : 2; return OK; }
int cuModuleLoadDataEx(uintptr_t *m, const char *image, unsigned n, const int *options, uintptr_t *values)
{
	CREATE("%u: %d %d %d %d", n, options[0], options[1], options[2], options[3]);
	*m = MODULE;
	return compile(image, values);
}
#if VERSION >= 12000
int cuLibraryLoadData(uintptr_t *l, const char *image, const int *options, uintptr_t *values, unsigned n, const int *own, void **ownValues, unsigned ownN)
{
	int r = enter(__func__, 0, "%u: %d %d %d %d, %u", n, options[0], options[1], options[2], options[3], ownN);
	if (r) return r;
	*l = LIBRARY;
	infoLog = (char *)values[0];
	return compile(image, values);
}
int cuLibraryGetModule(uintptr_t *m, uintptr_t l) { CREATE("%#lx", (long)l); if (l != LIBRARY) return INVALID_HANDLE; *m = MODULE; return OK; }
int cuLibraryUnload(uintptr_t l) { int r = enter(__func__, 0, "%#lx", (long)l); if (r) return r; if (l != LIBRARY) return INVALID_HANDLE; LIVE(-1); return OK; }
#endif
int cuModuleUnload(uintptr_t m) { CREATE("%#lx", (long)m); if (m != MODULE) return INVALID_HANDLE; LIVE(-1); return OK; }
int cuModuleGetFunction(uintptr_t *f, uintptr_t m, const char *name)
{
	CREATE("%s", name);
	if (get("late log")) strcpy(infoLog, "compiled when it was needed");
	if (strcmp(name, "empty") && strcmp(name, "count") && strcmp(name, "touch") && strcmp(name, "puregpu_test")) return NOT_FOUND;
	*f = FUNCTION + (*name == 'c') + 2 * (*name == 't') + 3 * (*name == 'p');
	return OK;
}
int cuModuleGetGlobal_v2(uint64_t *p, size_t *n, uintptr_t m, const char *name)
{
	CREATE("%s", name);
	static char variable[64];
	if (strcmp(name, "variable")) return NOT_FOUND;
	*p = (uintptr_t)variable, *n = sizeof variable;
	return OK;
}
int cuFuncGetAttribute(int *value, int attribute, uintptr_t f) { CREATE("%d", attribute); if (attribute > 10 && (VERSION < 11080 || attribute > 13)) return INVALID_VALUE; *value = attribute == 1 ? 1024 : attribute > 10 ? get("clusters") : 100 + attribute; return OK; }
int cuOccupancyMaxActiveBlocksPerMultiprocessor(int *blocks, uintptr_t f, int threads, size_t shared) { CREATE("%#lx, %d, %zu", (long)f, threads, shared); *blocks = 2048 / threads; return OK; }
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

// The kernel "count" adds its second parameter to the counter that its first one points to, and "touch" writes 64 bytes.
int cuLaunchKernel(uintptr_t f, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz, unsigned shared,
                   uintptr_t s, void **params, void **extra)
{
	WORK("%#lx, %u %u %u, %u %u %u, %u, %#lx", (long)f, gx, gy, gz, bx, by, bz, shared, (long)s);
	if (extra) return INVALID_VALUE;
	if (captured[s - STREAM]) return noteKernel(s, f, params);
	if (f == FUNCTION + 1) **(uint64_t **)params[0] += *(uint32_t *)params[1];
	if (f == FUNCTION + 2) {
		REACH(*(uint64_t *)params[0]);
		memset(mem(*(uint64_t *)params[0]), 0x5a, 64);
	}
	return OK;
}

// Attributes of launches, as text.
typedef struct { int id; char pad[4]; union { char pad[64]; int number; unsigned dims[3]; } value; } attribute;
typedef struct { unsigned grid[3], block[3], shared; uintptr_t stream; attribute *attrs; unsigned n; } config;
_Static_assert(sizeof(attribute) == 72 && sizeof(config) == 56, "layout");

static char *attributeText(char *end, int id, const void *value)
{
	const unsigned *dims = value;
	if (id == 12) return end + sprintf(end, " %d: %#lx %u", id, *(const long *)value, dims[2]);
	return end + (id == 4 ? sprintf(end, " %d: %u %u %u", id, dims[0], dims[1], dims[2]) : sprintf(end, " %d: %d", id, *(const int *)value));
}

#if VERSION >= 11060
int cuLaunchKernelEx(const config *c, uintptr_t f, void **params, void **extra)
{
	uintptr_t s = c->stream;
	char attrs[256] = "", *end = attrs;
	for (unsigned i = 0; i < c->n && i < 8; i++) end = attributeText(end, c->attrs[i].id, &c->attrs[i].value);
	SUBMIT("%#lx, %u %u %u, %u %u %u, %u, %#lx;%s", (long)f, c->grid[0], c->grid[1], c->grid[2], c->block[0], c->block[1], c->block[2], c->shared, (long)s, attrs);
	if (extra) return INVALID_VALUE;
	if (f == FUNCTION + 1) **(uint64_t **)params[0] += *(uint32_t *)params[1];
	return OK;
}
#endif
#if VERSION >= 11070
int cuOccupancyMaxPotentialClusterSize(int *n, uintptr_t f, const config *c)
{
	CREATE("%#lx, %u %u %u, %u %u %u, %u", (long)f, c->grid[0], c->grid[1], c->grid[2], c->block[0], c->block[1], c->block[2], c->shared);
	if (c->n || c->stream) return INVALID_VALUE;
	*n = 16;
	return OK;
}
#endif

typedef struct { int type, id; } location;
typedef struct { location loc; int flags; } accessDesc;
_Static_assert(sizeof(accessDesc) == 12, "layout");

// Physical memory is a file of Linux's, which descriptors stand for; handles are PHYSICAL and a number. A range of addresses is reserved before memory
// is mapped there, and nothing is accessible before access is set.
typedef struct {
	int type, handles;
	location loc;
	void *win32;
	unsigned char compression, rdma;
	unsigned short usage;
	unsigned char reserved[4];
} physicalProp;
_Static_assert(sizeof(physicalProp) == 32, "layout");
enum { PHYSICAL = 0x40000, HANDLES = 64, GRANULE = 2 << 20 };
static struct { int fd, refs; } physical[HANDLES]; // without references there is none
typedef struct range { uint64_t p, n; int fd; struct range *next; } range; // fd is that of memory mapped there
static range *reserved, *mapped;
static int newPhysical(uint64_t *h, int fd) // which it takes
{
	pthread_mutex_lock(&mu);
	int i = 0;
	while (i < HANDLES && physical[i].refs) i++;
	if (i < HANDLES) physical[i].fd = fd, physical[i].refs = 1;
	pthread_mutex_unlock(&mu);
	if (i == HANDLES) return OUT_OF_MEMORY;
	LIVE(1);
	*h = PHYSICAL + i;
	return OK;
}
static int isPhysical(uint64_t h) { return h >= PHYSICAL && h < PHYSICAL + HANDLES && physical[h - PHYSICAL].refs; }
// findRange finds the range with the bytes. Without the exact one that is the range around them.
static range **findRange(range **at, uint64_t p, uint64_t n, int exact)
{
	while (*at && (exact ? (*at)->p != p || (*at)->n != n : p < (*at)->p || p + n > (*at)->p + (*at)->n)) at = &(*at)->next;
	return at;
}
static int overlapsMapped(uint64_t p, uint64_t n)
{
	range *r = mapped;
	while (r && (r->p >= p + n || p >= r->p + r->n)) r = r->next;
	return r != 0;
}
static void addRange(range **to, uint64_t p, uint64_t n, int fd)
{
	range *r = malloc(sizeof *r);
	*r = (range){p, n, fd, *to};
	*to = r;
	LIVE(1);
}
static void dropRange(range **at)
{
	range *r = *at;
	*at = r->next;
	free(r);
	LIVE(-1);
}
// With the setting "granularity" that is 1 less than this.
int cuMemGetAllocationGranularity(size_t *n, const physicalProp *prop, int option)
{
	ENTER("%d %d, %d %d, %d, %d", prop->type, prop->handles, prop->loc.type, prop->loc.id, prop->rdma, option);
	*n = get("granularity") ? get("granularity") - 1 : GRANULE;
	return OK;
}
int cuMemCreate(uint64_t *h, size_t n, const physicalProp *prop, unsigned long flags)
{
	CREATE("%zu, %d %d, %d %d, %d, %lu", n, prop->type, prop->handles, prop->loc.type, prop->loc.id, prop->rdma, flags);
	if (!n || n % GRANULE || prop->type != 1 || prop->handles > 1 || prop->win32 || prop->compression || prop->usage) return INVALID_VALUE;
	int fd = memfd_create("physical memory", 0);
	if (fd < 0 || ftruncate(fd, n)) return OUT_OF_MEMORY;
	return newPhysical(h, fd);
}
int cuMemRelease(uint64_t h)
{
	CREATE("%#lx", (long)h);
	if (!isPhysical(h)) return INVALID_VALUE;
	if (!--physical[h - PHYSICAL].refs) close(physical[h - PHYSICAL].fd);
	LIVE(-1);
	return OK;
}
int cuMemAddressReserve(uint64_t *p, size_t n, size_t alignment, uint64_t at, unsigned long flags)
{
	CREATE("%zu, %zu, %lu, %lu", n, alignment, (long)at, flags);
	if (!n || n % GRANULE || at || flags) return INVALID_VALUE;
	void *m = mmap(0, n, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (m == MAP_FAILED) return OUT_OF_MEMORY;
	*p = (uintptr_t)m;
	pthread_mutex_lock(&mu);
	addRange(&reserved, *p, n, -1);
	pthread_mutex_unlock(&mu);
	return OK;
}
int cuMemAddressFree(uint64_t p, size_t n)
{
	CREATE("%zu", n);
	pthread_mutex_lock(&mu);
	range **r = findRange(&reserved, p, n, 1);
	int found = *r && !overlapsMapped(p, n);
	if (found) dropRange(r), munmap((void *)(uintptr_t)p, n);
	pthread_mutex_unlock(&mu);
	return found ? OK : INVALID_VALUE;
}
#ifndef NOVIRTUAL
int cuMemMap(uint64_t p, size_t n, size_t offset, uint64_t h, unsigned long flags)
{
	CREATE("%zu, %zu, %#lx, %lu", n, offset, (long)h, flags);
	struct stat st;
	if (!n || n % GRANULE || !*findRange(&reserved, p, n, 0) || overlapsMapped(p, n) || offset || flags || !isPhysical(h)) return INVALID_VALUE;
	if (fstat(physical[h - PHYSICAL].fd, &st) || (uint64_t)st.st_size < n) return INVALID_VALUE;
	int fd = dup(physical[h - PHYSICAL].fd);
	mmap((void *)(uintptr_t)p, n, PROT_NONE, MAP_SHARED | MAP_FIXED, fd, 0);
	pthread_mutex_lock(&mu);
	addRange(&mapped, p, n, fd);
	pthread_mutex_unlock(&mu);
	return OK;
}
#endif
int cuMemUnmap(uint64_t p, size_t n)
{
	CREATE("%zu", n);
	range **r = findRange(&mapped, p, n, 1);
	if (!*r) return INVALID_VALUE;
	mmap((void *)(uintptr_t)p, n, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0);
	close((*r)->fd);
	pthread_mutex_lock(&mu);
	dropRange(r);
	pthread_mutex_unlock(&mu);
	return OK;
}
int cuMemSetAccess(uint64_t p, size_t n, const accessDesc *descs, size_t count)
{
	CREATE("%zu, %d %d %d, %zu", n, descs->loc.type, descs->loc.id, descs->flags, count);
	for (uint64_t at = p; at < p + n; at += GRANULE)
		if (!*findRange(&mapped, at, GRANULE, 0)) return INVALID_VALUE;
	return !count || mprotect((void *)(uintptr_t)p, n, PROT_READ | PROT_WRITE) ? INVALID_VALUE : OK;
}
int cuMemRetainAllocationHandle(uint64_t *h, uint64_t p)
{
	CREATE("");
	range *r = *findRange(&mapped, p, 1, 0);
	return r ? newPhysical(h, dup(r->fd)) : INVALID_VALUE;
}
int cuMemExportToShareableHandle(int *fd, uint64_t h, int type, unsigned long flags)
{
	CREATE("%#lx, %d, %lu", (long)h, type, flags);
	if (type != 1 || flags || !isPhysical(h)) return INVALID_VALUE;
	*fd = dup(physical[h - PHYSICAL].fd);
	return *fd < 0 ? INVALID_VALUE : OK;
}
int cuMemImportFromShareableHandle(uint64_t *h, void *handle, int type)
{
	CREATE("%d", type);
	struct stat st;
	int fd = dup((int)(uintptr_t)handle);
	if (type != 1 || fd < 0) return INVALID_VALUE;
	if (fstat(fd, &st) || !st.st_size || st.st_size % GRANULE) return close(fd), INVALID_VALUE;
	return newPhysical(h, fd);
}

#ifndef NOPOOLS
// Pools: one of each device, and those that are made. Handles are POOL, and a multiple of 16 for each. Of the attributes the
// first three are ints. An allocation has its pool and its size in front.
typedef struct {
	int type, handles;
	location loc;
	void *win32;
	size_t max;
	unsigned short usage;
	unsigned char reserved[54];
} poolProps;
_Static_assert(sizeof(poolProps) == 88, "layout");

enum { POOLS = 8 };
static struct { int switches[4]; uint64_t values[9], max; int device; unsigned users; } pools[POOLS] = {{.device = 0}, {.device = 1}};
static int current[DEVICES + 1], made;

static int pool(uintptr_t p)
{
	return p < POOL || p % 16 || (p - POOL) / 16 >= POOLS ? -1 : (int)(p - POOL) / 16;
}
#define POOL_OF(i, p) int i = pool(p); if (i < 0) return INVALID_VALUE

int cuDeviceGetDefaultMemPool(uintptr_t *p, int id) { CREATE("%d", id); *p = POOL + 16 * (id - 40); return OK; }
int cuDeviceGetMemPool(uintptr_t *p, int id) { CREATE("%d", id); *p = POOL + 16 * (current[id - 40] ? current[id - 40] : id - 40); return OK; }
int cuDeviceSetMemPool(int id, uintptr_t p) { CREATE("%d, %#lx", id, (long)p); POOL_OF(i, p); current[id - 40] = i; return OK; }
int cuMemPoolCreate(uintptr_t *p, const poolProps *props)
{
	CREATE("%d, %d, %d %d, %p, %zu, %d", props->type, props->handles, props->loc.type, props->loc.id, props->win32, props->max, props->usage);
	for (int i = 0; i < 54; i++)
		if (props->reserved[i]) return INVALID_VALUE;
	int i = 2 + made++ % (POOLS - 2);
	memset(&pools[i], 0, sizeof pools[i]);
	pools[i].max = props->max;
	pools[i].device = props->loc.id;
	LIVE(1);
	*p = POOL + 16 * i;
	return OK;
}
int cuMemPoolDestroy(uintptr_t p) { CREATE("%#lx", (long)p); POOL_OF(i, p); if (i < 2) return INVALID_VALUE; LIVE(-1); return OK; }
int cuMemPoolGetAttribute(uintptr_t p, int a, void *value)
{
	CREATE("%#lx, %d", (long)p, a);
	POOL_OF(i, p);
	if (a < 1 || a > 8) return INVALID_VALUE;
	if (a <= 3) *(int *)value = pools[i].switches[a]; else *(uint64_t *)value = pools[i].values[a];
	return OK;
}
int cuMemPoolSetAttribute(uintptr_t p, int a, void *value)
{
	if (a <= 3) CREATE("%#lx, %d, %d", (long)p, a, *(int *)value); else CREATE("%#lx, %d, %lu", (long)p, a, *(unsigned long *)value);
	POOL_OF(i, p);
	if (a < 1 || a > 8 || a == 5 || a == 7) return INVALID_VALUE;
	if (a <= 3) pools[i].switches[a] = *(int *)value; else pools[i].values[a] = *(uint64_t *)value;
	return OK;
}
int cuMemPoolExportToShareableHandle(int *fd, uintptr_t p, int type, unsigned long flags)
{
	CREATE("%#lx, %d, %lu", (long)p, type, flags);
	POOL_OF(i, p);
	if (type != 1 || flags) return INVALID_VALUE;
	*fd = dup(0);
	return *fd < 0 ? INVALID_VALUE : OK;
}
int cuMemPoolImportFromShareableHandle(uintptr_t *p, void *handle, int type, unsigned long flags)
{
	CREATE("%d, %lu", type, flags);
	int fd = dup((int)(uintptr_t)handle); // which it must be open for
	if (type != 1 || flags || fd < 0) return INVALID_VALUE;
	close(fd);
	*p = POOL + 16 * 7;
	LIVE(1);
	return OK;
}
int cuMemPoolExportPointer(ipcHandle *h, uint64_t p) { CREATE(""); memset(h, 0, sizeof *h); sprintf(h->text, "pool memory %#lx", (long)p); return OK; }
int cuMemPoolImportPointer(uint64_t *p, uintptr_t pool, ipcHandle *h)
{
	CREATE("%#lx, %.11s", (long)pool, h->text);
	unsigned long at;
	if (sscanf(h->text, "pool memory %lx", &at) != 1) return INVALID_HANDLE;
	*p = at;
	LIVE(1);
	return OK;
}
int cuMemPoolTrimTo(uintptr_t p, size_t keep) { CREATE("%#lx, %zu", (long)p, keep); POOL_OF(i, p); pools[i].values[5] = keep; return OK; }
int cuMemPoolSetAccess(uintptr_t p, const accessDesc *descs, size_t n)
{
	CREATE("%#lx, %d %d %d, %zu", (long)p, descs->loc.type, descs->loc.id, descs->flags, n);
	POOL_OF(i, p);
	if (n != 1) return INVALID_VALUE;
	if (descs->flags) pools[i].users |= 1u << descs->loc.id; else pools[i].users &= ~(1u << descs->loc.id);
	return OK;
}

int cuMemAllocFromPoolAsync(uint64_t *out, size_t n, uintptr_t p, uintptr_t s)
{
	SUBMIT("%zu, %#lx, %#lx", n, (long)p, (long)s);
	POOL_OF(i, p);
	if (!n) return INVALID_VALUE;
	if (pools[i].max && pools[i].values[7] + n > pools[i].max) return OUT_OF_MEMORY;
	uint64_t *m = malloc(n + 16);
	m[0] = i, m[1] = n;
	pooled *known = malloc(sizeof *known);
	pthread_mutex_lock(&mu);
	*known = (pooled){(uintptr_t)(m + 2), n, pools[i].device, &pools[i].users, allPooled};
	allPooled = known;
	pthread_mutex_unlock(&mu);
	pools[i].values[7] += n;
	LIVE(1);
	*out = (uintptr_t)(m + 2);
	return OK;
}
int cuMemFreeAsync(uint64_t p, uintptr_t s)
{
	SUBMIT("%#lx", (long)s);
	if (!p) return INVALID_VALUE;
	REACH(p);
	pthread_mutex_lock(&mu);
	pooled **known = &allPooled;
	while (*known && (*known)->base != p) known = &(*known)->next;
	pooled *gone = *known;
	if (gone) *known = gone->next;
	pthread_mutex_unlock(&mu);
	if (!gone) return INVALID_VALUE;
	free(gone);
	uint64_t *m = (uint64_t *)mem(p) - 2;
	pools[m[0]].values[7] -= m[1];
	LIVE(-1);
	free(m);
	return OK;
}
#endif

// Graphs: nodes run in the order in which they were added. The third hexadecimal digit from the right of a node's handle is
// its graph's number, the lowest two are its own.
typedef struct {
	uintptr_t function;
	unsigned grid[3], block[3], shared;
	void **params, **extra;
	uintptr_t kernel, context; // not in the first form
} kernelParams;
typedef struct { uint64_t dst; size_t pitch; unsigned value, size; size_t width, height; } fillParams;
typedef struct { size_t x, y, z, lod; int type; const void *host; uint64_t device; uintptr_t array, reserved; size_t pitch, height; } side;
typedef struct { side src, dst; size_t width, height, depth; } copyParams;
_Static_assert(sizeof(kernelParams) == 72 && sizeof(fillParams) == 40 && sizeof(copyParams) == 200, "layout");

enum { GRAPHS = 64, NODES = 256 }; // so many that none is used again while threads of a test have it
enum kind { EMPTY, KERNEL, FILL_, COPY, CHILD, RECORD, IF, WHILE };
struct graph;
typedef struct {
	enum kind kind;
	uintptr_t function;
	uint64_t *counter;
	uint32_t by;
	fillParams fill;
	copyParams copy;
	struct graph *child;
	uint64_t condition; // of a conditional node or a test
	uint32_t *tested, low, high;
} node;
typedef struct graph { int n; node nodes[NODES]; } graph;
static graph graphs[GRAPHS], execs[GRAPHS];
static int numGraphs;

#define GRAPH_OF(i, g) uintptr_t i = (g) - GRAPH; if (i >= GRAPHS) return INVALID_VALUE
#define EXEC_OF(i, x) uintptr_t i = (x) - EXEC; if (i >= GRAPHS) return INVALID_VALUE

static const char *list(const uintptr_t *nodes, size_t n, char *out)
{
	char *end = out;
	*end = 0;
	for (size_t i = 0; i < n && i < 8; i++) end += sprintf(end, " %#lx", (long)nodes[i]);
	return out;
}

#define ADD(format, ...) \
	char after[160]; \
	CREATE("%#lx,%s; " format, (long)g, list(deps, n, after), ##__VA_ARGS__); \
	GRAPH_OF(i, g); \
	if (graphs[i].n == NODES) return OUT_OF_MEMORY; \
	node *new = &graphs[i].nodes[graphs[i].n]; \
	memset(new, 0, sizeof *new); \
	*out = NODE + 256 * i + graphs[i].n++
#define SET(x, n, k, format, ...) \
	CREATE("%#lx, %#lx; " format, (long)x, (long)n, __VA_ARGS__); \
	EXEC_OF(i, x); \
	node *old = &execs[i].nodes[n % 256]; \
	if ((int)(n % 256) >= execs[i].n || old->kind != k) return INVALID_VALUE
#define DEPS uintptr_t *out, uintptr_t g, const uintptr_t *deps, size_t n

int cuGraphCreate(uintptr_t *g, unsigned flags)
{
	CREATE("%u", flags);
	int i = __sync_fetch_and_add(&numGraphs, 1) % GRAPHS;
	graphs[i].n = 0;
	LIVE(1);
	*g = GRAPH + i;
	return OK;
}
int cuGraphDestroy(uintptr_t g) { CREATE("%#lx", (long)g); GRAPH_OF(i, g); LIVE(-1); graphs[i].n = 0; return OK; }

// The kernel's arguments are copied here, and let go of.
static void setKernel(node *n, const kernelParams *p)
{
	n->kind = KERNEL;
	n->function = p->function;
	if (p->function == FUNCTION + 1) n->counter = *(uint64_t **)p->params[0], n->by = *(uint32_t *)p->params[1];
	if (p->function == FUNCTION + 3) {
		n->condition = *(uint64_t *)p->params[0], n->tested = *(uint32_t **)p->params[1];
		n->low = *(uint32_t *)p->params[2], n->high = *(uint32_t *)p->params[3];
	}
}
static void setFill(node *n, const fillParams *p) { n->kind = FILL_; n->fill = *p; }
static void setCopy(node *n, const copyParams *p) { n->kind = COPY; n->copy = *p; }

#define KERNEL_FORMAT "%#lx, %u %u %u, %u %u %u, %u"
#define KERNEL_ARGS (long)p->function, p->grid[0], p->grid[1], p->grid[2], p->block[0], p->block[1], p->block[2], p->shared
#define FILL_FORMAT "%zu, %#x, %u, %zu %zu, %#lx"
#define FILL_ARGS p->pitch, p->value, p->size, p->width, p->height, (long)c
#define COPY_FORMAT "%d to %d, %zu %zu %zu, %#lx"
#define COPY_ARGS p->src.type, p->dst.type, p->width, p->height, p->depth, (long)c

int cuGraphAddEmptyNode(DEPS) { ADD(""); return OK; }
int cuGraphAddKernelNode(DEPS, const kernelParams *p) { ADD(KERNEL_FORMAT, KERNEL_ARGS); setKernel(new, p); return p->extra ? INVALID_VALUE : OK; }
#if VERSION >= 12000
int cuGraphAddKernelNode_v2(DEPS, const kernelParams *p)
{
	ADD(KERNEL_FORMAT, KERNEL_ARGS);
	setKernel(new, p);
	return p->extra || p->kernel || p->context ? INVALID_VALUE : OK;
}
#endif
int cuGraphNodeGetType(uintptr_t n, int *type)
{
	CREATE("%#lx", (long)n);
	GRAPH_OF(i, GRAPH + (n - NODE) / 256);
	*type = graphs[i].nodes[n % 256].kind == KERNEL ? 0 : 5;
	return OK;
}
int cuGraphDestroyNode(uintptr_t n) { CREATE("%#lx", (long)n); return OK; }
int cuGraphKernelNodeSetAttribute(uintptr_t n, int id, const void *value)
{
	char attr[64];
	attributeText(attr, id, value);
	CREATE("%#lx,%s", (long)n, attr);
	return OK;
}
#if VERSION >= 12030
int cuGraphAddDependencies_v2(uintptr_t g, const uintptr_t *from, const uintptr_t *to, const unsigned char *data, size_t n)
{
	CREATE("%#lx, %#lx to %#lx, port %d to %d, type %d, %zu", (long)g, (long)*from, (long)*to, data[0], data[1], data[2], n);
	return OK;
}
#endif
int cuGraphAddMemsetNode(DEPS, const fillParams *p, uintptr_t c) { ADD(FILL_FORMAT, FILL_ARGS); setFill(new, p); return OK; }
int cuGraphAddMemcpyNode(DEPS, const copyParams *p, uintptr_t c) { ADD(COPY_FORMAT, COPY_ARGS); setCopy(new, p); return OK; }
int cuGraphAddChildGraphNode(DEPS, uintptr_t child)
{
	ADD("%#lx", (long)child);
	GRAPH_OF(j, child);
	new->kind = CHILD;
	new->child = memcpy(malloc(sizeof(graph)), &graphs[j], sizeof(graph));
	return OK;
}
int cuGraphAddEventRecordNode(DEPS, uintptr_t event) { ADD("%#lx", (long)event); new->kind = RECORD; return event == EVENT ? OK : INVALID_VALUE; }

#if VERSION >= 11040
int cuGraphInstantiateWithFlags(uintptr_t *x, uintptr_t g, unsigned long long flags)
{
	CREATE("%#lx, %llu", (long)g, flags);
	GRAPH_OF(i, g);
	static int numExecs;
	int j = __sync_fetch_and_add(&numExecs, 1) % GRAPHS;
	execs[j] = graphs[i];
	LIVE(1);
	*x = EXEC + j;
	return OK;
}
#endif
int cuGraphExecDestroy(uintptr_t x) { CREATE("%#lx", (long)x); EXEC_OF(i, x); LIVE(-1); execs[i].n = 0; return OK; }
int cuGraphExecKernelNodeSetParams(uintptr_t x, uintptr_t n, const kernelParams *p) { SET(x, n, KERNEL, KERNEL_FORMAT, KERNEL_ARGS); setKernel(old, p); return OK; }
#if VERSION >= 12000
int cuGraphExecKernelNodeSetParams_v2(uintptr_t x, uintptr_t n, const kernelParams *p)
{
#ifdef CRASHES
	if (!depth) *(volatile int *)0 = 1;
#endif
	SET(x, n, KERNEL, KERNEL_FORMAT, KERNEL_ARGS);
	setKernel(old, p);
	return p->extra || p->kernel || p->context ? INVALID_VALUE : OK;
}
#endif
int cuGraphExecMemsetNodeSetParams(uintptr_t x, uintptr_t n, const fillParams *p, uintptr_t c) { SET(x, n, FILL_, FILL_FORMAT, FILL_ARGS); setFill(old, p); return OK; }
int cuGraphExecMemcpyNodeSetParams(uintptr_t x, uintptr_t n, const copyParams *p, uintptr_t c) { SET(x, n, COPY, COPY_FORMAT, COPY_ARGS); setCopy(old, p); return OK; }

// Another child must have as many nodes of the same kinds and functions.
int cuGraphExecChildGraphNodeSetParams(uintptr_t x, uintptr_t n, uintptr_t child)
{
	SET(x, n, CHILD, "%#lx", (long)child);
	GRAPH_OF(j, child);
	int same = graphs[j].n == old->child->n;
	for (int k = 0; same && k < graphs[j].n; k++)
		same = graphs[j].nodes[k].kind == old->child->nodes[k].kind && graphs[j].nodes[k].function == old->child->nodes[k].function;
	if (!same) return failed(__func__, 910);
	old->child = memcpy(malloc(sizeof(graph)), &graphs[j], sizeof(graph)); // that of the graph's own node stays
	return OK;
}

static int noteFill(uintptr_t s, uint64_t p, unsigned v, int size, size_t n)
{
	graph *g = captured[s - STREAM];
	if (g->n == NODES) return spoil(s, OUT_OF_MEMORY);
	setFill(&g->nodes[g->n++], &(fillParams){p, 0, v, size, n, 1});
	return OK;
}

static int noteKernel(uintptr_t s, uintptr_t f, void **params)
{
	graph *g = captured[s - STREAM];
	if (g->n == NODES) return spoil(s, OUT_OF_MEMORY);
	setKernel(&g->nodes[g->n++], &(kernelParams){.function = f, .params = params});
	return OK;
}

int cuStreamBeginCapture_v2(uintptr_t s, int mode)
{
	CREATE("%#lx, %d", (long)s, mode);
	if (!IS_STREAM(s)) return INVALID_HANDLE;
	if (captured[s - STREAM] || mode < 0 || mode > 2) return failed(__func__, 401);
	captured[s - STREAM] = calloc(1, sizeof(graph));
	spoilt[s - STREAM] = 0;
	return OK;
}

// Whatever it returns, unless a context is missing, the stream captures no more. With the setting "no graph" there is none, and no error.
int cuStreamEndCapture(uintptr_t s, uintptr_t *g)
{
	graph *was = IS_STREAM(s) ? captured[s - STREAM] : NULL;
	int r = enter(__func__, 1, "%#lx", (long)s);
	if (was && r != 201) captured[s - STREAM] = NULL;
	*g = 0;
	if (r) return r;
	if (!was) return failed(__func__, 401);
	if (spoilt[s - STREAM]) return failed(__func__, 901);
	if (get("no graph")) return OK;
	int i = __sync_fetch_and_add(&numGraphs, 1) % GRAPHS;
	graphs[i] = *was;
	free(was);
	LIVE(1);
	*g = GRAPH + i;
	return OK;
}

#if VERSION >= 12040
enum { CONDITION = 0x700, CONDITIONS = 64 };
static int conditions[CONDITIONS], numConditions;

int cuGraphConditionalHandleCreate(uint64_t *h, uintptr_t g, uintptr_t c, unsigned value, unsigned flags)
{
	CREATE("%#lx, %#lx, %u, %u", (long)g, (long)c, value, flags);
	GRAPH_OF(i, g);
	*h = CONDITION + __sync_fetch_and_add(&numConditions, 1) % CONDITIONS;
	return OK;
}
int cuGraphAddNode_v2(uintptr_t *out, uintptr_t g, const uintptr_t *deps, const void *edges, size_t n, uint64_t *params)
{
	int type = (int)params[0], kind = (int)params[3];
	static uintptr_t bodies[GRAPHS];
	ADD("%d, %#lx, %d %d, %#lx", type, (long)params[2], kind, (int)(params[3] >> 32), (long)params[5]);
	if (type != 13 || edges || kind > 1) return INVALID_VALUE;
	int j = __sync_fetch_and_add(&numGraphs, 1) % GRAPHS;
	graphs[j].n = 0;
	new->kind = kind ? WHILE : IF, new->condition = params[2], new->child = &graphs[j];
	bodies[j] = GRAPH + j;
	params[4] = (uintptr_t)&bodies[j];
	return OK;
}
#else
enum { CONDITION = 0, CONDITIONS = 1 };
static int conditions[CONDITIONS];
#endif

static void run(const graph *g)
{
	for (const node *n = g->nodes; n < g->nodes + g->n; n++)
		switch (n->kind) {
		case KERNEL:
			if (n->counter) *n->counter += n->by;
			if (n->tested) conditions[(n->condition - CONDITION) % CONDITIONS] = *n->tested >= n->low && *n->tested <= n->high;
			break;
		case IF: if (conditions[(n->condition - CONDITION) % CONDITIONS]) run(n->child); break;
		case WHILE: while (conditions[(n->condition - CONDITION) % CONDITIONS]) run(n->child); break;
		case FILL_: fill2D(n->fill.dst, n->fill.height > 1 ? n->fill.pitch : 0, n->fill.value, n->fill.size, n->fill.width, n->fill.height); break;
		case COPY: memcpy(mem(n->copy.dst.device), mem(n->copy.src.device), n->copy.width); break;
		case CHILD: run(n->child); break;
		default: break;
		}
}
int cuGraphLaunch(uintptr_t x, uintptr_t s) { SUBMIT("%#lx, %#lx", (long)x, (long)s); EXEC_OF(i, x); run(&execs[i]); return OK; }
