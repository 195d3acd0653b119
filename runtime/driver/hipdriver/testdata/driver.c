// A HIP runtime with two devices that live in the host's memory and do their work at once. It keeps the current device per
// thread, as the real one does, writes down each call with the device that was current, remembers the last error, and gives
// out the results that a test asks for.
//
//	VERSION       the release; functions that came later are left out
//	DEVICES       how many devices there are
//	WITHOUT_name  leaves a function out
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
#define VERSION 60443484
#endif
#ifndef DEVICES
#define DEVICES 2
#endif

enum { OK, INVALID_VALUE, OUT_OF_MEMORY, NO_DEVICE = 100, INVALID_DEVICE = 101, INVALID_IMAGE = 200, INVALID_CONTEXT = 201, INVALID_HANDLE = 400, ILLEGAL_STATE = 401, NOT_FOUND = 500, NOT_READY = 600, ALREADY_ENABLED = 704 };
enum { SETTINGS = 128 };
enum { STREAM = 0x5000, EVENT = 0xe000, MODULE = 0x3000, FUNCTION = 0xf000, GRAPH = 0x6000, NODE = 0x9000, EXEC = 0x7000, POOL = 0xb000 };

static pthread_mutex_t mu = PTHREAD_MUTEX_INITIALIZER;

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

// fake_live tells how many objects have not been given back.
static int live;
int fake_live(void) { return live; }

static __thread int device, last;

// fake_device tells what is current on the calling thread, and fake_last what it remembers.
int fake_device(void) { return device; }
int fake_last(void) { return last; }

// remember keeps what a call returned. From HIP 7 on that is errors only.
static int remember(int r)
{
	if (VERSION < 70000000 || (r && r != NOT_READY)) last = r;
	return r;
}

static int enter(const char *call, int named, const char *format, ...)
{
	pthread_mutex_lock(&mu);
	if (sizeof trace - traced > 512) {
		traced += snprintf(trace + traced, 64, "%s(", call);
		va_list args;
		va_start(args, format);
		traced += vsnprintf(trace + traced, 256, format, args);
		va_end(args);
		traced += named ? sprintf(trace + traced, ") on %d\n", device) : sprintf(trace + traced, ")\n");
	}
	int result = get(call);
	char bound[64];
	snprintf(bound, sizeof bound, "bound %s", call);
	if (!result && device != 0 && get(bound)) result = INVALID_DEVICE;
	pthread_mutex_unlock(&mu);
	return remember(result);
}

#define PLAIN(...) do { int r = enter(__func__, 0, __VA_ARGS__); if (r) return r; } while (0)
#define CREATE(...) do { int r = enter(__func__, 1, __VA_ARGS__); if (r) return r; } while (0)
#define WANT(what, code) do { if (!(what)) return remember(code); } while (0)
#define SUBMIT(...) do { CREATE(__VA_ARGS__); WANT(s == STREAM || s == STREAM + 1, INVALID_HANDLE); } while (0)
#define LIVE(n) __atomic_add_fetch(&live, (n), __ATOMIC_SEQ_CST)

int hipRuntimeGetVersion(int *version) { *version = VERSION; return OK; }
int hipInit(unsigned flags) { PLAIN("%u", flags); return OK; }
int hipGetDeviceCount(int *n) { *n = DEVICES; PLAIN(""); return OK; }
int hipGetDevice(int *d) { PLAIN(""); *d = device; return OK; }
int hipSetDevice(int d) { PLAIN("%d", d); WANT(d >= 0 && d < DEVICES, INVALID_DEVICE); device = d; return OK; }

#ifndef WITHOUT_hipGetLastError
int hipGetLastError(void) { int r = last; last = OK; return r; }
#endif

int hipDeviceGet(int *d, int ordinal) { PLAIN("%d", ordinal); *d = ordinal; return OK; }
int hipDeviceGetName(char *name, int len, int d) { PLAIN("%d", d); if (get("nameless")) *name = 0; else snprintf(name, len, "Fake %d", d); return OK; }
int hipDeviceTotalMem(size_t *bytes, int d) { PLAIN("%d", d); *bytes = (size_t)64 << 30; return OK; }
int hipDeviceGetPCIBusId(char *out, int len, int d) { PLAIN("%d", d); snprintf(out, len, "0000:C1:0%d.0", d); return OK; }
int hipDeviceGetUuid(char *uuid, int d) { PLAIN("%d", d); memcpy(uuid, "0123456789abcdef", 16); uuid[15] = '0' + d; return OK; }

// Attributes that have not come yet are not known, nor those with the setting "unknown N".
int hipDeviceGetAttribute(int *value, int attribute, int d)
{
	char name[16];
	sprintf(name, "unknown %d", attribute);
	WANT(!get(name), INVALID_VALUE);
	sprintf(name, "attr %d", attribute);
	int r = get("hipDeviceGetAttribute");
	if (r) return remember(r);
	WANT(attribute != 90 || VERSION >= 60000000, INVALID_VALUE);
	WANT(attribute != 75 || VERSION >= 60000000, INVALID_VALUE);
	switch (attribute) {
	case 74: case 75: *value = 64 << 10; break;
	case 9: case 24: case 88: case 90: *value = 1; break;
	case 16: *value = 0; break;
	default: *value = attribute * 10;
	}
	if ((r = get(name))) *value = r - 1;
	return remember(OK);
}

// The two layouts of properties, of which nothing but the architecture is filled in.
int hipGetDeviceProperties(char *prop, int d) { PLAIN("%d", d); memset(prop, 0, 792); strcpy(prop + 396, "gfx906:sramecc-:xnack-"); return OK; }
#if VERSION >= 60000000 && !defined WITHOUT_hipGetDevicePropertiesR0600
int hipGetDevicePropertiesR0600(char *prop, int d)
{
	PLAIN("%d", d);
	memset(prop, 0, 1472);
	strcpy(prop + 1160, get("nvidia") ? "sm_90" : "gfx90a:sramecc+:xnack-");
	return OK;
}
#endif

// With the setting "apart" there is no way between the devices.
static int peers;
#ifndef WITHOUT_hipDeviceCanAccessPeer
int hipDeviceCanAccessPeer(int *can, int d, int other) { PLAIN("%d, %d", d, other); *can = d != other && !get("apart"); return OK; }
#endif
int hipDeviceEnablePeerAccess(int other, unsigned flags)
{
	CREATE("%d, %u", other, flags);
	WANT(!flags && other != device, INVALID_VALUE);
	WANT(!(peers & 1 << device), ALREADY_ENABLED);
	peers |= 1 << device;
	return OK;
}

// All properties of a link are there, unless the setting "p2p N" takes one away, and it is of HSA's kind 4, of one hop.
#ifndef WITHOUT_hipDeviceGetP2PAttribute
int hipDeviceGetP2PAttribute(int *value, int attribute, int d, int other)
{
	char name[16];
	sprintf(name, "p2p %d", attribute);
	PLAIN("%d, %d, %d", attribute, d, other);
	WANT(d != other && d < DEVICES && other < DEVICES, INVALID_DEVICE);
	*value = !get(name);
	return OK;
}
#endif
#ifndef WITHOUT_hipExtGetLinkTypeAndHopCount
int hipExtGetLinkTypeAndHopCount(int d, int other, unsigned *kind, unsigned *hops)
{
	PLAIN("%d, %d", d, other);
	WANT(d != other, INVALID_VALUE);
	*kind = get("pcie") ? 2 : get("qpi") ? 1 : 4, *hops = 1;
	return OK;
}
#endif

int hipStreamCreateWithFlags(uintptr_t *s, unsigned flags) { CREATE("%u", flags); LIVE(1); *s = STREAM; return OK; }
#ifndef WITHOUT_hipDeviceGetStreamPriorityRange
int hipDeviceGetStreamPriorityRange(int *least, int *greatest) { CREATE(""); *least = 1, *greatest = -1; return OK; }
#endif
int hipStreamCreateWithPriority(uintptr_t *s, unsigned flags, int priority) { CREATE("%u, %d", flags, priority); LIVE(1); *s = STREAM; return OK; }
int hipStreamDestroy(uintptr_t s) { SUBMIT("%#lx", (long)s); LIVE(-1); return OK; }
// Fills and kernels are not done while a stream captures, of which the graph knows nothing. With the setting "no graph" a capture ends
// without one.
static int capturing[2];
#define CAPTURES(s) (capturing[(s) - STREAM])
#ifndef WITHOUT_hipStreamBeginCapture
int hipStreamBeginCapture(uintptr_t s, int mode)
{
	SUBMIT("%#lx, %d", (long)s, mode);
	WANT(mode >= 0 && mode <= 2, INVALID_VALUE);
	WANT(!CAPTURES(s), ILLEGAL_STATE);
	CAPTURES(s) = 1;
	return OK;
}
#endif
#ifndef WITHOUT_hipStreamEndCapture
int hipStreamEndCapture(uintptr_t s, uintptr_t *g)
{
	int was = (s == STREAM || s == STREAM + 1) && CAPTURES(s);
	*g = 0;
	if (was) CAPTURES(s) = 0;
	SUBMIT("%#lx", (long)s);
	WANT(was, ILLEGAL_STATE);
	if (get("no graph")) return OK;
	LIVE(1);
	*g = GRAPH;
	return OK;
}
#endif

// Which device a stream is of the setting "stream's device" says, and its priority is "priority" below 0.
#if VERSION >= 50600000 && !defined WITHOUT_hipStreamGetDevice
int hipStreamGetDevice(uintptr_t s, int *d) { SUBMIT("%#lx", (long)s); *d = get("stream's device"); return OK; }
#endif
int hipStreamGetPriority(uintptr_t s, int *priority) { SUBMIT("%#lx", (long)s); *priority = -get("priority"); return OK; }
int hipStreamIsCapturing(uintptr_t s, int *status) { SUBMIT("%#lx", (long)s); *status = CAPTURES(s) ? 1 : 0; return OK; }
int hipStreamSynchronize(uintptr_t s) { SUBMIT("%#lx", (long)s); return OK; }
int hipStreamQuery(uintptr_t s) { SUBMIT("%#lx", (long)s); return OK; }
int hipEventCreateWithFlags(uintptr_t *e, unsigned flags) { CREATE("%u", flags); LIVE(1); *e = EVENT; return OK; }
int hipEventDestroy(uintptr_t e) { CREATE("%#lx", (long)e); WANT(e == EVENT, INVALID_HANDLE); LIVE(-1); return OK; }
int hipEventRecord(uintptr_t e, uintptr_t s) { SUBMIT("%#lx, %#lx", (long)e, (long)s); return OK; }
int hipStreamWaitEvent(uintptr_t s, uintptr_t e, unsigned flags) { SUBMIT("%#lx, %#lx, %u", (long)s, (long)e, flags); return OK; }
int hipEventQuery(uintptr_t e) { CREATE("%#lx", (long)e); return OK; }
int hipEventElapsedTime(float *ms, uintptr_t a, uintptr_t b) { CREATE("%#lx, %#lx", (long)a, (long)b); *ms = 1.5f; return OK; }

// The pinned memory's addresses for the device differ from those for the host in one bit, to tell them apart.
#define HOSTBIT ((uint64_t)1 << 62)
static void *mem(uint64_t p) { return (void *)(uintptr_t)(p & ~HOSTBIT); }

int hipMemGetInfo(size_t *available, size_t *total) { CREATE(""); *available = (size_t)60 << 30, *total = (size_t)64 << 30; return OK; }
int hipMalloc(uint64_t *p, size_t n) { CREATE("%zu", n); LIVE(1); *p = (uintptr_t)malloc(n); return OK; }
int hipFree(uint64_t p) { CREATE(""); LIVE(-1); free(mem(p)); return OK; }
int hipHostMalloc(void **p, size_t n, unsigned flags) { CREATE("%zu, %u", n, flags); LIVE(1); *p = malloc(n); return OK; }
int hipHostFree(void *p) { CREATE(""); LIVE(-1); free(p); return OK; }
int hipHostGetDevicePointer(uint64_t *d, void *p, unsigned flags) { CREATE("%u", flags); *d = (uintptr_t)p | HOSTBIT; return OK; }
#ifndef WITHOUT_hipMallocManaged
int hipMallocManaged(void **p, size_t n, unsigned flags) { CREATE("%zu, %u", n, flags); LIVE(1); *p = malloc(n); return OK; }
#endif
#ifndef WITHOUT_hipMemPrefetchAsync
int hipMemPrefetchAsync(void *p, size_t n, int to, uintptr_t s) { SUBMIT("%zu, %d, %#lx", n, to, (long)s); return OK; }
#endif
#ifndef WITHOUT_hipHostRegister
int hipHostRegister(void *p, size_t n, unsigned flags) { CREATE("%zu, %u", n, flags); LIVE(1); return OK; }
#endif
int hipHostUnregister(void *p) { CREATE(""); LIVE(-1); return OK; }

// Pools: one of each device, and those that are made, of which no more than a few. Handles are POOL, and a multiple of 16 for
// each. Of the attributes the first three are ints. An allocation has its pool and its size in front. To take access back is an
// error, but with the setting "revokes".
typedef struct { int type, id; } location;
typedef struct {
	int type, handles;
	location loc;
	void *win32;
	size_t max;
	unsigned char reserved[56];
} poolProps;
typedef struct { location loc; int flags; } accessDesc;
_Static_assert(sizeof(poolProps) == 88 && sizeof(accessDesc) == 12, "layout");

enum { POOLS = 8, RESERVED = 5, RESERVED_HIGH, USED, USED_HIGH };
static struct { int switches[4]; uint64_t values[9], max; } pools[POOLS] = {{.switches = {0, 1, 1, 1}}, {.switches = {0, 1, 1, 1}}};
static int currentPools[2] = {0, 1}, poolsMade;

static int poolOf(uintptr_t p) { return p < POOL || p % 16 || (p - POOL) / 16 >= POOLS ? -1 : (int)(p - POOL) / 16; }
#define POOL_OF(i, p) int i = poolOf(p); WANT(i >= 0, INVALID_VALUE)

int hipDeviceGetDefaultMemPool(uintptr_t *p, int d) { CREATE("%d", d); *p = POOL + 16 * d; return OK; }
int hipDeviceGetMemPool(uintptr_t *p, int d) { CREATE("%d", d); *p = POOL + 16 * currentPools[d]; return OK; }
int hipDeviceSetMemPool(int d, uintptr_t p) { CREATE("%d, %#lx", d, (long)p); POOL_OF(i, p); currentPools[d] = i; return OK; }
int hipMemPoolCreate(uintptr_t *p, const poolProps *props)
{
	CREATE("%d, %d, %d %d, %p, %zu", props->type, props->handles, props->loc.type, props->loc.id, props->win32, props->max);
	for (int i = 0; i < 56; i++) WANT(!props->reserved[i], INVALID_VALUE);
	int i = 2 + poolsMade++ % (POOLS - 2);
	memset(&pools[i], 0, sizeof pools[i]);
	for (int a = 1; a <= 3; a++) pools[i].switches[a] = 1;
	pools[i].max = props->max;
	LIVE(1);
	*p = POOL + 16 * i;
	return OK;
}
int hipMemPoolDestroy(uintptr_t p) { CREATE("%#lx", (long)p); POOL_OF(i, p); WANT(i >= 2, INVALID_VALUE); LIVE(-1); return OK; }
int hipMemPoolGetAttribute(uintptr_t p, int a, void *value)
{
	CREATE("%#lx, %d", (long)p, a);
	POOL_OF(i, p);
	WANT(a >= 1 && a <= 8, INVALID_VALUE);
	if (a <= 3) *(int *)value = pools[i].switches[a]; else *(uint64_t *)value = pools[i].values[a];
	return OK;
}
int hipMemPoolSetAttribute(uintptr_t p, int a, void *value)
{
	if (a <= 3) CREATE("%#lx, %d, %d", (long)p, a, *(int *)value); else CREATE("%#lx, %d, %lu", (long)p, a, *(unsigned long *)value);
	POOL_OF(i, p);
	WANT(a >= 1 && a <= 8 && a != RESERVED && a != USED && (a <= 4 || !*(uint64_t *)value), INVALID_VALUE);
	if (a <= 3) pools[i].switches[a] = *(int *)value; else pools[i].values[a] = *(uint64_t *)value;
	return OK;
}
#ifndef WITHOUT_hipMemPoolTrimTo
int hipMemPoolTrimTo(uintptr_t p, size_t keep) { CREATE("%#lx, %zu", (long)p, keep); POOL_OF(i, p); pools[i].values[RESERVED] = keep; return OK; }
#endif
int hipMemPoolSetAccess(uintptr_t p, const accessDesc *descs, size_t n)
{
	CREATE("%#lx, %d %d %d, %zu", (long)p, descs->loc.type, descs->loc.id, descs->flags, n);
	POOL_OF(i, p);
	WANT(n == 1 && (descs->flags || get("revokes")), INVALID_DEVICE);
	return i < 0;
}
int hipMallocFromPoolAsync(uint64_t *out, size_t n, uintptr_t p, uintptr_t s)
{
	SUBMIT("%zu, %#lx, %#lx", n, (long)p, (long)s);
	POOL_OF(i, p);
	WANT(!pools[i].max || pools[i].values[USED] + n <= pools[i].max, OUT_OF_MEMORY);
	uint64_t *m = malloc(n + 16);
	m[0] = i, m[1] = n;
	pools[i].values[USED] += n;
	LIVE(1);
	*out = (uintptr_t)(m + 2);
	return OK;
}
int hipFreeAsync(uint64_t p, uintptr_t s)
{
	SUBMIT("%#lx", (long)s);
	WANT(p, INVALID_VALUE);
	uint64_t *m = (uint64_t *)p - 2;
	pools[m[0]].values[USED] -= m[1];
	LIVE(-1);
	free(m);
	return OK;
}

// Physical memory is a file of Linux's; handles are PHYSICAL and a number. A range of addresses is reserved before memory is
// mapped there, and nothing is accessible before access is set. Before 5.3 the properties had another layout.
typedef struct {
	int type, handles;
	location loc;
	void *win32;
	unsigned char compression, rdma;
	unsigned short usage;
} physicalProp;
_Static_assert(sizeof(physicalProp) == 32, "layout");
enum { PHYSICAL = 0x140000, HANDLES = 64, GRANULE = 2 << 20 };
static struct { int fd, refs; } physical[HANDLES]; // without references there is none
typedef struct range { uint64_t p, n; int fd; struct range *next; } range; // fd is that of memory mapped there
static range *reserved, *mapped;
static int newPhysical(uintptr_t *h, int fd) // which it takes
{
	pthread_mutex_lock(&mu);
	int i = 0;
	while (i < HANDLES && physical[i].refs) i++;
	if (i < HANDLES) physical[i].fd = fd, physical[i].refs = 1;
	pthread_mutex_unlock(&mu);
	if (i == HANDLES) return remember(OUT_OF_MEMORY);
	LIVE(1);
	*h = PHYSICAL + i;
	return OK;
}
static int isPhysical(uintptr_t h) { return h >= PHYSICAL && h < PHYSICAL + HANDLES && physical[h - PHYSICAL].refs; }
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
int hipMemGetAllocationGranularity(size_t *n, const physicalProp *prop, int option)
{
	CREATE("%d %d, %d %d, %d, %d", prop->type, prop->handles, prop->loc.type, prop->loc.id, prop->rdma, option);
	*n = GRANULE;
	return OK;
}
int hipMemCreate(uintptr_t *h, size_t n, const physicalProp *prop, unsigned long flags)
{
	CREATE("%zu, %d %d, %d %d, %d, %lu", n, prop->type, prop->handles, prop->loc.type, prop->loc.id, prop->rdma, flags);
	if (!n || n % GRANULE || prop->type != 1 || prop->handles > 1 || prop->win32 || prop->compression || prop->usage) return remember(INVALID_VALUE);
	int fd = memfd_create("physical memory", 0);
	if (fd < 0 || ftruncate(fd, n)) return remember(OUT_OF_MEMORY);
	return newPhysical(h, fd);
}
int hipMemRelease(uintptr_t h)
{
	CREATE("%#lx", (long)h);
	if (!isPhysical(h)) return remember(INVALID_VALUE);
	if (!--physical[h - PHYSICAL].refs) close(physical[h - PHYSICAL].fd);
	LIVE(-1);
	return OK;
}
int hipMemAddressReserve(uint64_t *p, size_t n, size_t alignment, uint64_t at, unsigned long flags)
{
	CREATE("%zu, %zu, %lu, %lu", n, alignment, (long)at, flags);
	if (!n || n % GRANULE || at || flags) return remember(INVALID_VALUE);
	void *m = mmap(0, n, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (m == MAP_FAILED) return remember(OUT_OF_MEMORY);
	*p = (uintptr_t)m;
	pthread_mutex_lock(&mu);
	addRange(&reserved, *p, n, -1);
	pthread_mutex_unlock(&mu);
	return OK;
}
int hipMemAddressFree(uint64_t p, size_t n)
{
	CREATE("%zu", n);
	pthread_mutex_lock(&mu);
	range **r = findRange(&reserved, p, n, 1);
	int found = *r && !overlapsMapped(p, n);
	if (found) dropRange(r), munmap((void *)(uintptr_t)p, n);
	pthread_mutex_unlock(&mu);
	return remember(found ? OK : INVALID_VALUE);
}
int hipMemMap(uint64_t p, size_t n, size_t offset, uintptr_t h, unsigned long flags)
{
	CREATE("%zu, %zu, %#lx, %lu", n, offset, (long)h, flags);
	struct stat st;
	if (!n || n % GRANULE || !*findRange(&reserved, p, n, 0) || overlapsMapped(p, n) || offset || flags || !isPhysical(h)) return remember(INVALID_VALUE);
	if (fstat(physical[h - PHYSICAL].fd, &st) || (uint64_t)st.st_size < n) return remember(INVALID_VALUE);
	int fd = dup(physical[h - PHYSICAL].fd);
	mmap((void *)(uintptr_t)p, n, PROT_NONE, MAP_SHARED | MAP_FIXED, fd, 0);
	pthread_mutex_lock(&mu);
	addRange(&mapped, p, n, fd);
	pthread_mutex_unlock(&mu);
	return OK;
}
int hipMemUnmap(uint64_t p, size_t n)
{
	CREATE("%zu", n);
	range **r = findRange(&mapped, p, n, 1);
	if (!*r) return remember(INVALID_VALUE);
	mmap((void *)(uintptr_t)p, n, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0);
	close((*r)->fd);
	pthread_mutex_lock(&mu);
	dropRange(r);
	pthread_mutex_unlock(&mu);
	return OK;
}
int hipMemSetAccess(uint64_t p, size_t n, const accessDesc *descs, size_t count)
{
	CREATE("%zu, %d %d %d, %zu", n, descs->loc.type, descs->loc.id, descs->flags, count);
	for (uint64_t at = p; at < p + n; at += GRANULE)
		if (!*findRange(&mapped, at, GRANULE, 0)) return remember(INVALID_VALUE);
	return !count || mprotect((void *)(uintptr_t)p, n, PROT_READ | PROT_WRITE) ? remember(INVALID_VALUE) : OK;
}

// What processes share: a handle has the address as text. With the setting "own process" it is as this process's own.
typedef struct { char text[64]; } ipcHandle;
int hipMemGetAddressRange(uint64_t *base, size_t *n, uint64_t p) { CREATE(""); *base = p - 256, *n = 4096; return OK; }
int hipIpcGetMemHandle(ipcHandle *h, uint64_t p) { CREATE(""); memset(h, 0, sizeof *h); sprintf(h->text, "memory %#lx", (long)p); return OK; }
#ifndef WITHOUT_hipIpcOpenMemHandle
int hipIpcOpenMemHandle(uint64_t *p, ipcHandle h, unsigned flags)
{
	unsigned long at;
	CREATE("%.6s, %u", h.text, flags);
	WANT(!get("own process"), INVALID_CONTEXT);
	WANT(flags == (VERSION >= 60000000) && sscanf(h.text, "memory %lx", &at) == 1, INVALID_VALUE);
	LIVE(1);
	*p = at;
	return OK;
}
#endif
int hipIpcCloseMemHandle(uint64_t p) { CREATE(""); LIVE(-1); return OK; }

static void fill(uint64_t p, size_t pitch, unsigned v, size_t size, size_t width, size_t height)
{
	for (size_t y = 0; y < height; y++)
		for (size_t x = 0; x < width; x++) memcpy((char *)mem(p) + y * pitch + x * size, &v, size);
}

#define FILL(bits, type) \
	int hipMemsetD##bits##Async(uint64_t p, type v, size_t n, uintptr_t s) { SUBMIT("%#x, %zu, %#lx", v, n, (long)s); if (!CAPTURES(s)) fill(p, 0, v, bits / 8, n, 1); return OK; }
FILL(8, unsigned char)
#ifndef WITHOUT_hipMemsetD16Async
FILL(16, unsigned short)
#endif
FILL(32, int)

int hipMemset2DAsync(uint64_t p, size_t pitch, int v, size_t w, size_t h, uintptr_t s)
{
	SUBMIT("%zu, %#x, %zu, %zu, %#lx", pitch, v, w, h, (long)s);
	fill(p, pitch, v, 1, w, h);
	return OK;
}

// A row is of elements, of bytes with the setting "unit" at 4, and with 3 of something that nobody knows.
#if VERSION >= 70100000
int hipMemsetD2D32Async(uint64_t p, size_t pitch, unsigned v, size_t w, size_t h, uintptr_t s)
{
	SUBMIT("%zu, %#x, %zu, %zu, %#lx", pitch, v, w, h, (long)s);
	int unit = get("unit");
	fill(p, pitch, v, 4, unit == 4 ? w / 4 : unit == 3 ? 2 : w, h);
	return OK;
}
#endif

int hipMemcpyDtoDAsync(uint64_t d, uint64_t p, size_t n, uintptr_t s)
{
	SUBMIT("%zu, %#lx", n, (long)s);
	if (!get("idle")) memcpy(mem(d), mem(p), n);
	return OK;
}
int hipMemcpyPeerAsync(uint64_t d, int to, uint64_t p, int from, size_t n, uintptr_t s)
{
	SUBMIT("%d, %d, %zu, %#lx", to, from, n, (long)s);
	if (!get("idle")) memcpy(mem(d), mem(p), n);
	return OK;
}
int hipMemcpyHtoDAsync(uint64_t d, void *p, size_t n, uintptr_t s) { SUBMIT("%zu, %#lx", n, (long)s); memcpy(mem(d), p, n); return OK; }
int hipMemcpyDtoHAsync(void *d, uint64_t p, size_t n, uintptr_t s) { SUBMIT("%zu, %#lx", n, (long)s); memcpy(d, mem(p), n); return OK; }

// The module reads its image again when it is asked for a kernel, as HIP may. fake_image tells what is there now.
static const char *loaded;
int fake_image(void) { return loaded ? (unsigned char)loaded[0] | (uintptr_t)loaded % 4096 << 8 : -1; }
int hipModuleLoadData(uintptr_t *m, const char *image)
{
	CREATE("%.4s", image + 1);
	loaded = image;
	LIVE(1);
	*m = MODULE;
	return OK;
}
int hipModuleUnload(uintptr_t m) { CREATE("%#lx", (long)m); WANT(m == MODULE, INVALID_HANDLE); LIVE(-1); return OK; }
int hipModuleGetFunction(uintptr_t *f, uintptr_t m, const char *name)
{
	CREATE("%s", name);
	WANT(!strcmp(name, "empty") || !strcmp(name, "count"), NOT_FOUND);
	*f = FUNCTION + (*name == 'c');
	return OK;
}
int hipModuleGetGlobal(uint64_t *p, size_t *n, uintptr_t m, const char *name)
{
	CREATE("%s", name);
	static long variable;
	WANT(!strcmp(name, "variable"), NOT_FOUND);
	*p = (uintptr_t)&variable, *n = sizeof variable;
	return OK;
}
int hipFuncGetAttribute(int *value, int attribute, uintptr_t f) { CREATE("%d", attribute); *value = attribute == 1 ? 1024 : 100 + attribute; return OK; }

#ifndef WITHOUT_hipModuleOccupancyMaxActiveBlocksPerMultiprocessor
int hipModuleOccupancyMaxActiveBlocksPerMultiprocessor(int *blocks, uintptr_t f, int threads, size_t shared) { CREATE("%#lx, %d, %zu", (long)f, threads, shared); *blocks = 2048 / threads; return OK; }
#endif

static void run(uintptr_t f, void **params) { if (f == FUNCTION + 1) **(uint64_t **)params[0] += *(uint32_t *)params[1]; }

// The kernel "count" adds its second parameter to the counter that its first one points to.
int hipModuleLaunchKernel(uintptr_t f, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz, unsigned shared,
                          uintptr_t s, void **params, void **extra)
{
	SUBMIT("%#lx, %u %u %u, %u %u %u, %u, %#lx", (long)f, gx, gy, gz, bx, by, bz, shared, (long)s);
	WANT(!extra, INVALID_VALUE);
	if (!CAPTURES(s)) run(f, params);
	return OK;
}

#if VERSION >= 50500000 && !defined WITHOUT_hipModuleLaunchCooperativeKernel
int hipModuleLaunchCooperativeKernel(uintptr_t f, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz, unsigned shared,
                                     uintptr_t s, void **params)
{
	SUBMIT("%#lx, %u %u %u, %u %u %u, %u, %#lx", (long)f, gx, gy, gz, bx, by, bz, shared, (long)s);
	run(f, params);
	return OK;
}
#endif

// Graphs are handles only, but that adding a kernel runs it.
static const char *deps(const uintptr_t *after, size_t n)
{
	static __thread char text[64];
	text[0] = 0;
	for (size_t i = 0; i < n; i++) sprintf(text + strlen(text), " %#lx", (long)after[i]);
	return text;
}

typedef struct { unsigned block[3]; void **extra; uintptr_t f; unsigned grid[3]; void **params; unsigned shared; } kernelParams;
typedef struct { uint64_t dst; unsigned size; size_t height, pitch; unsigned value; size_t width; } fillParams;

#define KERNEL(k) "%#lx, %u %u %u, %u %u %u, %u", (long)k->f, k->grid[0], k->grid[1], k->grid[2], k->block[0], k->block[1], k->block[2], k->shared
#define NODE_ARGS uintptr_t *n, uintptr_t g, const uintptr_t *after, size_t count

int hipGraphCreate(uintptr_t *g, unsigned flags) { CREATE("%u", flags); LIVE(1); *g = GRAPH; return OK; }
int hipGraphDestroy(uintptr_t g) { CREATE("%#lx", (long)g); LIVE(-1); return OK; }
int hipGraphAddEmptyNode(NODE_ARGS) { CREATE("%#lx:%s", (long)g, deps(after, count)); *n = NODE; return OK; }
int hipGraphAddKernelNode(NODE_ARGS, const kernelParams *k)
{
	CREATE(KERNEL(k));
	WANT(!k->extra, INVALID_VALUE);
	run(k->f, k->params);
	*n = NODE + 1;
	return OK;
}
int hipGraphAddMemsetNode(NODE_ARGS, const fillParams *p)
{
	CREATE("%#lx, %zu, %#x, %u, %zu, %zu:%s", (long)p->dst, p->pitch, p->value, p->size, p->width, p->height, deps(after, count));
	*n = NODE + 2;
	return OK;
}
#if VERSION >= 60100000 && !defined WITHOUT_hipDrvGraphAddMemcpyNode
int hipDrvGraphAddMemcpyNode(void) { return INVALID_VALUE; }
#endif
int hipGraphAddMemcpyNode1D(NODE_ARGS, uint64_t d, uint64_t p, size_t bytes, int kind)
{
	CREATE("%#lx, %#lx, %zu, %d:%s", (long)d, (long)p, bytes, kind, deps(after, count));
	*n = NODE + 3;
	return OK;
}
int hipGraphAddChildGraphNode(NODE_ARGS, uintptr_t child) { CREATE("%#lx", (long)child); *n = NODE + 4; return OK; }
int hipGraphAddEventRecordNode(NODE_ARGS, uintptr_t e) { CREATE("%#lx", (long)e); *n = NODE + 5; return OK; }
int hipGraphInstantiateWithFlags(uintptr_t *x, uintptr_t g, unsigned long long flags) { CREATE("%#lx, %llu", (long)g, flags); LIVE(1); *x = EXEC; return OK; }
int hipGraphExecDestroy(uintptr_t x) { CREATE("%#lx", (long)x); LIVE(-1); return OK; }
int hipGraphExecKernelNodeSetParams(uintptr_t x, uintptr_t n, const kernelParams *k) { CREATE(KERNEL(k)); return OK; }
int hipGraphExecMemsetNodeSetParams(uintptr_t x, uintptr_t n, const fillParams *p)
{
	CREATE("%#lx, %#lx, %#lx, %zu, %#x, %u, %zu, %zu", (long)x, (long)n, (long)p->dst, p->pitch, p->value, p->size, p->width, p->height);
	return OK;
}
int hipGraphExecMemcpyNodeSetParams1D(uintptr_t x, uintptr_t n, uint64_t d, uint64_t p, size_t bytes, int kind)
{
	CREATE("%#lx, %#lx, %#lx, %#lx, %zu, %d", (long)x, (long)n, (long)d, (long)p, bytes, kind);
	return OK;
}
#ifndef WITHOUT_hipGraphExecChildGraphNodeSetParams
int hipGraphExecChildGraphNodeSetParams(uintptr_t x, uintptr_t n, uintptr_t child) { CREATE("%#lx, %#lx, %#lx", (long)x, (long)n, (long)child); return OK; }
#endif
int hipGraphLaunch(uintptr_t x, uintptr_t s) { SUBMIT("%#lx, %#lx", (long)x, (long)s); return OK; }
