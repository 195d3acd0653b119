// A CUDA driver for testdata/hipovercuda to be on top of, where there is no GPU: two devices that live in the host's memory
// and do their work at once. It has the kernels of testdata/kernels, by their names. Every call checks that its device's
// context is current on the thread.
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { OK, INVALID_VALUE, OUT_OF_MEMORY, NO_DEVICE = 100, INVALID_DEVICE, INVALID_CONTEXT = 201, INVALID_PTX = 218, INVALID_HANDLE = 400, ILLEGAL_STATE, NOT_FOUND = 500,
	NOT_READY = 600, NO_RESOURCES = 701, ALREADY_ENABLED = 704, ALREADY_REGISTERED = 712, NOT_REGISTERED,
	CAPTURE_UNSUPPORTED = 900, CAPTURE_INVALIDATED, UPDATE_FAILURE = 910 };
enum { DEVICES = 2, CONTEXT = 0xc0 };

static pthread_mutex_t mu = PTHREAD_MUTEX_INITIALIZER;
static int held[DEVICES], live, lost;

// fake_hold has events of a device that are recorded from now on look as if they were pending, until it is called with 0. What
// was let go then is not pending again the next time.
void fake_hold(int device, int on)
{
	static int times;
	__atomic_store_n(&held[device], on ? __atomic_add_fetch(&times, 1, __ATOMIC_SEQ_CST) : 0, __ATOMIC_SEQ_CST);
}

// fake_lose has everything that asks the device return a code.
void fake_lose(int code) { __atomic_store_n(&lost, code, __ATOMIC_SEQ_CST); }

// fake_live tells how many objects and allocations there are.
int fake_live(void) { return __atomic_load_n(&live, __ATOMIC_SEQ_CST); }
#define LIVE(n) __atomic_add_fetch(&live, (n), __ATOMIC_SEQ_CST)

// fake_made tells how many events have been made so far, or with 1 how many execs of graphs.
static int made[2];
int fake_made(int execs) { return __atomic_load_n(&made[execs], __ATOMIC_SEQ_CST); }
#define MADE(execs) __atomic_add_fetch(&made[execs], 1, __ATOMIC_SEQ_CST)

static __thread uintptr_t context;

#define CREATE() do { if (!context) return INVALID_CONTEXT; if (lost) return lost; } while (0)
#define ON(o) do { CREATE(); if (!(o)) return INVALID_HANDLE; if ((o)->device != (int)context - CONTEXT) return INVALID_CONTEXT; } while (0)

int cuInit(unsigned flags) { return OK; }
int cuDeviceGetCount(int *n) { *n = DEVICES; return OK; }
int cuDeviceGet(int *id, int i) { if (i >= DEVICES) return INVALID_DEVICE; *id = i + 40; return OK; }
int cuDeviceGetName(char *name, int len, int id) { snprintf(name, len, "Fake %d", id - 40); return OK; }
int cuDeviceTotalMem_v2(size_t *bytes, int id) { *bytes = (size_t)8 << 30; return OK; }
int cuDeviceGetPCIBusId(char *out, int len, int id) { snprintf(out, len, "0000:3B:0%d.0", id - 40); return OK; }
int cuDeviceGetUuid(unsigned char *uuid, int id) { for (int i = 0; i < 16; i++) uuid[i] = i + id; return OK; }
int cuDeviceGetAttribute(int *value, int attribute, int id)
{
	switch (attribute) {
	case 1: case 2: case 3: *value = 1024; break;
	case 4: *value = 64; break;
	case 5: *value = 0x7fffffff; break;
	case 6: case 7: *value = 65535; break;
	case 8: *value = 48 << 10; break;
	case 10: *value = 32; break;
	case 16: *value = 4; break;
	case 18: *value = 0; break;
	case 75: *value = 9; break;
	case 76: *value = 0; break;
	case 12: case 82: *value = 65536; break;
	case 13: case 36: *value = 1000000; break;
	case 37: *value = 256; break;
	case 38: *value = 4 << 20; break;
	case 39: *value = 2048; break;
	case 40: *value = 2; break;
	case 81: *value = 100 << 10; break;
	case 83: case 89: case 95: case 99: case 115: *value = 1; break;
	case 106: *value = 32; break;
	default: return INVALID_VALUE;
	}
	return OK;
}
int cuDevicePrimaryCtxRetain(uintptr_t *ctx, int id) { *ctx = CONTEXT + id - 40; return OK; }
int cuCtxSetCurrent(uintptr_t ctx) { context = ctx; return OK; }
int cuCtxSynchronize(void) { CREATE(); return OK; }
int cuDeviceCanAccessPeer(int *can, int id, int other) { *can = id != other; return OK; }
int cuDeviceGetP2PAttribute(int *value, int attribute, int id, int other) { *value = attribute != 1; return id == other ? INVALID_DEVICE : OK; }
int cuCtxGetStreamPriorityRange(int *least, int *greatest) { CREATE(); *least = 0, *greatest = -5; return OK; }
int cuCtxEnablePeerAccess(uintptr_t ctx, unsigned flags)
{
	static int enabled[DEVICES];
	CREATE();
	if (flags || ctx == context) return INVALID_VALUE;
	return __atomic_exchange_n(&enabled[context - CONTEXT], 1, __ATOMIC_SEQ_CST) ? ALREADY_ENABLED : OK;
}

// ---- Memory

typedef struct pool pool;
typedef struct block { char *p; size_t n; int registered; pool *pool; struct block *next; } block;
static block *blocks;

static int note(char *p, size_t n, int registered)
{
	block *b = malloc(sizeof *b);
	pthread_mutex_lock(&mu);
	*b = (block){p, n, registered, NULL, blocks};
	blocks = b;
	pthread_mutex_unlock(&mu);
	LIVE(1);
	return OK;
}

static block *find(char *p)
{
	for (block *b = blocks; b; b = b->next)
		if (p >= b->p && p < b->p + b->n) return b;
	return NULL;
}

static int forget(char *p, int registered)
{
	pthread_mutex_lock(&mu);
	block **b = &blocks;
	while (*b && ((*b)->p != p || (*b)->registered != registered)) b = &(*b)->next;
	block *gone = *b;
	if (gone) *b = gone->next;
	pthread_mutex_unlock(&mu);
	if (!gone) return 0;
	free(gone);
	LIVE(-1);
	return 1;
}

// inside reports whether bytes are all of one allocation.
static int inside(uint64_t p, size_t n)
{
	pthread_mutex_lock(&mu);
	block *b = find((char *)p);
	int ok = b && n <= (size_t)(b->p + b->n - (char *)p);
	pthread_mutex_unlock(&mu);
	return ok;
}

static int make(uint64_t *p, size_t n)
{
	CREATE();
	if (!n) return INVALID_VALUE;
	if (n > (size_t)1 << 40 || !(*p = (uintptr_t)aligned_alloc(256, (n + 255) & ~(size_t)255))) return OUT_OF_MEMORY;
	memset((void *)*p, 0xdb, n);
	return note((char *)*p, n, 0);
}

static int drop(uint64_t p)
{
	CREATE();
	if (!forget((char *)p, 0)) return INVALID_VALUE;
	free((void *)p);
	return OK;
}

int cuMemAlloc_v2(uint64_t *p, size_t n) { return make(p, n); }
int cuMemFree_v2(uint64_t p) { return drop(p); }
int cuMemHostAlloc(uint64_t *p, size_t n, unsigned flags) { return (flags & ~4u) == 3 ? make(p, n) : INVALID_VALUE; }
int cuMemFreeHost(uint64_t p) { return drop(p); }
int cuMemAllocManaged(uint64_t *p, size_t n, unsigned flags) { return flags == 1 ? make(p, n) : INVALID_VALUE; }
int cuMemHostGetDevicePointer_v2(uint64_t *d, uint64_t p, unsigned flags) { CREATE(); *d = p; return OK; }
int cuMemHostRegister_v2(uint64_t p, size_t n, unsigned flags) { CREATE(); return inside(p, 1) ? ALREADY_REGISTERED : note((char *)p, n, 1); }
int cuMemHostUnregister(uint64_t p) { CREATE(); return forget((char *)p, 1) ? OK : NOT_REGISTERED; }
int cuMemGetInfo_v2(size_t *available, size_t *total) { CREATE(); *available = *total = (size_t)8 << 30; return OK; }
int cuMemGetAddressRange_v2(uint64_t *base, size_t *n, uint64_t p)
{
	pthread_mutex_lock(&mu);
	block *b = find((char *)p);
	if (b) *base = (uintptr_t)b->p, *n = b->n;
	pthread_mutex_unlock(&mu);
	return b ? OK : NOT_FOUND;
}

// There is no other process that could have this one's memory: to open what it has exported itself is all that can be tried.
typedef struct { char text[64]; } ipcHandle;
int cuIpcGetMemHandle(ipcHandle *h, uint64_t p) { CREATE(); memset(h, 0, sizeof *h); strcpy(h->text, "memory"); return inside(p, 1) ? OK : INVALID_VALUE; }
int cuIpcOpenMemHandle_v2(uint64_t *p, ipcHandle h, unsigned flags) { CREATE(); return strcmp(h.text, "memory") || flags != 1 ? INVALID_VALUE : INVALID_CONTEXT; }
int cuIpcCloseMemHandle(uint64_t p) { CREATE(); return INVALID_VALUE; }

// ---- Streams and events

// captured is a graph of the fills, copies and kernels that the stream is given, or NULL; all else spoils it.
typedef struct { int device, spoilt; struct graph *captured; } stream;
typedef struct { int device, timing, pending; struct timespec at; } event;

#define DOES(s) do { ON(s); if ((s)->captured) return (s)->spoilt = 1, CAPTURE_UNSUPPORTED; } while (0)
static int noteFill(stream *s, uint64_t p, size_t pitch, unsigned v, size_t size, size_t width, size_t height);
static int noteCopy(stream *s, uint64_t d, uint64_t p, size_t n);

int cuStreamCreate(stream **s, unsigned flags) { CREATE(); *s = calloc(1, sizeof **s); (*s)->device = context - CONTEXT; LIVE(1); return OK; }
int cuStreamCreateWithPriority(stream **s, unsigned flags, int priority) { return priority > 0 || priority < -5 ? INVALID_VALUE : cuStreamCreate(s, flags); }
int cuStreamGetPriority(stream *s, int *priority) { ON(s); *priority = 0; return OK; }
int cuStreamIsCapturing(stream *s, int *status) { ON(s); *status = !s->captured ? 0 : s->spoilt ? 2 : 1; return OK; }
int cuStreamDestroy_v2(stream *s) { ON(s); free(s); LIVE(-1); return OK; }
int cuStreamQuery(stream *s) { DOES(s); return OK; }
int cuStreamSynchronize(stream *s) { DOES(s); return OK; }

int cuEventCreate(event **e, unsigned flags)
{
	CREATE();
	*e = calloc(1, sizeof **e);
	(*e)->device = context - CONTEXT;
	(*e)->timing = !(flags & 2);
	MADE(0);
	LIVE(1);
	return OK;
}
int cuEventDestroy_v2(event *e) { if (lost) return lost; free(e); LIVE(-1); return OK; }

static void record(event *e)
{
	clock_gettime(CLOCK_MONOTONIC, &e->at);
	__atomic_store_n(&e->pending, __atomic_load_n(&held[e->device], __ATOMIC_SEQ_CST), __ATOMIC_SEQ_CST);
}

int cuEventRecord(event *e, stream *s) { DOES(s); if (e->device != s->device) return INVALID_HANDLE; record(e); return OK; }
int cuEventQuery(event *e)
{
	if (lost) return lost;
	int pending = __atomic_load_n(&e->pending, __ATOMIC_SEQ_CST);
	return pending && pending == __atomic_load_n(&held[e->device], __ATOMIC_SEQ_CST) ? NOT_READY : OK;
}
int cuEventSynchronize(event *e) { return OK; }
int cuStreamWaitEvent(stream *s, event *e, unsigned flags) { DOES(s); return OK; }
int cuEventElapsedTime(float *ms, event *a, event *b)
{
	if (!a->timing || !b->timing) return INVALID_HANDLE;
	*ms = (b->at.tv_sec - a->at.tv_sec) * 1e3f + (b->at.tv_nsec - a->at.tv_nsec) * 1e-6f;
	return OK;
}

// ---- Pools. A pool keeps count of what it has reserved, and takes the memory from malloc. One that is destroyed goes with its
// last allocation.

typedef struct { int type, id; } location;
typedef struct { location where; int flags; } accessDesc;
typedef struct { int type, handles; location where; void *win32; size_t max; char reserved[56]; } poolProps;
typedef struct { uint64_t now, high; } level;
struct pool { int switches[4], dying; uint64_t threshold, max; level reserved, used; };
enum { FIRST = 1, LAST_SWITCH = 3, THRESHOLD, RESERVED, RESERVED_HIGH, USED, USED_HIGH };

#define SWITCHES {0, 1, 1, 1}
static pool defaults[DEVICES] = {{SWITCHES}, {SWITCHES}}, *currents[DEVICES] = {&defaults[0], &defaults[1]};
static int isDefault(const pool *p) { return p >= defaults && p < defaults + DEVICES; }

static void raise_(level *l, uint64_t n)
{
	l->now += n;
	if (l->high < l->now) l->high = l->now;
}

int cuDeviceGetDefaultMemPool(pool **p, int id) { *p = &defaults[id - 40]; return OK; }
int cuDeviceGetMemPool(pool **p, int id) { *p = currents[id - 40]; return OK; }
int cuDeviceSetMemPool(int id, pool *p) { currents[id - 40] = p; return OK; }

int cuMemPoolCreate(pool **out, const poolProps *props)
{
	if (props->type != 1 || props->where.type != 1 || props->where.id < 0 || props->where.id >= DEVICES) return INVALID_VALUE;
	pool *p = calloc(1, sizeof *p);
	*p = (pool){SWITCHES, .max = props->max};
	LIVE(1);
	*out = p;
	return OK;
}

int cuMemPoolDestroy(pool *p)
{
	if (isDefault(p)) return INVALID_VALUE;
	pthread_mutex_lock(&mu);
	for (int i = 0; i < DEVICES; i++)
		if (currents[i] == p) currents[i] = &defaults[i];
	p->dying = 1;
	int gone = !p->used.now;
	pthread_mutex_unlock(&mu);
	if (gone) free(p);
	LIVE(-1);
	return OK;
}

int cuMemPoolTrimTo(pool *p, size_t keep)
{
	pthread_mutex_lock(&mu);
	if (p->reserved.now > keep) p->reserved.now = p->used.now > keep ? p->used.now : keep;
	pthread_mutex_unlock(&mu);
	return OK;
}

int cuMemPoolGetAttribute(pool *p, int a, void *value)
{
	if (a < FIRST || a > USED_HIGH) return INVALID_VALUE;
	pthread_mutex_lock(&mu);
	if (a <= LAST_SWITCH)
		*(int *)value = p->switches[a];
	else
		*(uint64_t *)value = a == THRESHOLD ? p->threshold : a == RESERVED ? p->reserved.now : a == RESERVED_HIGH ? p->reserved.high :
			a == USED ? p->used.now : p->used.high;
	pthread_mutex_unlock(&mu);
	return OK;
}

int cuMemPoolSetAttribute(pool *p, int a, void *value)
{
	if (a < FIRST || a > USED_HIGH || a == RESERVED || a == USED || (a > THRESHOLD && *(uint64_t *)value)) return INVALID_VALUE;
	pthread_mutex_lock(&mu);
	if (a <= LAST_SWITCH)
		p->switches[a] = *(int *)value;
	else if (a == THRESHOLD)
		p->threshold = *(uint64_t *)value;
	else if (a == RESERVED_HIGH)
		p->reserved.high = p->reserved.now;
	else
		p->used.high = p->used.now;
	pthread_mutex_unlock(&mu);
	return OK;
}

int cuMemPoolSetAccess(pool *p, const accessDesc *descs, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (descs[i].where.type != 1 || descs[i].where.id < 0 || descs[i].where.id >= DEVICES || descs[i].flags != 3) return INVALID_VALUE;
	return OK;
}

int cuMemAllocFromPoolAsync(uint64_t *out, size_t n, pool *p, stream *s)
{
	DOES(s);
	pthread_mutex_lock(&mu);
	uint64_t more = p->used.now + n > p->reserved.now ? p->used.now + n - p->reserved.now : 0;
	int full = n > (size_t)1 << 40 || (p->max && p->reserved.now + more > p->max);
	if (!full) {
		raise_(&p->reserved, more);
		raise_(&p->used, n);
	}
	pthread_mutex_unlock(&mu);
	if (full) return OUT_OF_MEMORY;
	int r = make(out, n);
	pthread_mutex_lock(&mu);
	if (r)
		p->used.now -= n;
	else
		find((char *)*out)->pool = p;
	pthread_mutex_unlock(&mu);
	return r;
}

int cuMemFreeAsync(uint64_t a, stream *s)
{
	DOES(s);
	pthread_mutex_lock(&mu);
	block *b = find((char *)a);
	pool *p = b && b->p == (char *)a ? b->pool : NULL;
	int gone = 0;
	if (p) {
		p->used.now -= b->n;
		gone = p->dying && !p->used.now;
	}
	pthread_mutex_unlock(&mu);
	if (!p) return INVALID_VALUE;
	if (gone) free(p);
	return drop(a);
}

// ---- Transfers

static int fill(uint64_t p, size_t pitch, unsigned v, size_t size, size_t width, size_t height)
{
	if (p % size || pitch % size) return INVALID_VALUE;
	for (size_t y = 0; y < height; y++) {
		if (!inside(p + y * pitch, width * size)) return INVALID_VALUE;
		for (size_t x = 0; x < width; x++) memcpy((char *)p + y * pitch + x * size, &v, size);
	}
	return OK;
}

static int doFill(stream *s, uint64_t p, size_t pitch, unsigned v, size_t size, size_t width, size_t height)
{
	return s->captured ? noteFill(s, p, pitch, v, size, width, height) : fill(p, pitch, v, size, width, height);
}

#define FILL(bits) \
	int cuMemsetD##bits##Async(uint64_t p, unsigned v, size_t n, stream *s) { ON(s); return doFill(s, p, 0, v, bits / 8, n, 1); }
FILL(8)
FILL(16)
FILL(32)
int cuMemsetD2D8Async(uint64_t p, size_t pitch, unsigned v, size_t w, size_t h, stream *s) { ON(s); return pitch < w ? INVALID_VALUE : doFill(s, p, pitch, v, 1, w, h); }
int cuMemsetD2D32Async(uint64_t p, size_t pitch, unsigned v, size_t w, size_t h, stream *s) { ON(s); return pitch < 4 * w ? INVALID_VALUE : doFill(s, p, pitch, v, 4, w, h); }
int cuMemsetD8_v2(uint64_t p, unsigned v, size_t n) { CREATE(); return fill(p, 0, v, 1, n, 1); }

static int copy(uint64_t d, uint64_t s, size_t n) { memmove((void *)d, (void *)s, n); return OK; }
static int doCopy(stream *s, uint64_t d, uint64_t p, size_t n) { return s->captured ? noteCopy(s, d, p, n) : copy(d, p, n); }
int cuMemcpy(uint64_t d, uint64_t p, size_t n) { CREATE(); return copy(d, p, n); }
int cuMemPrefetchAsync_v2(uint64_t p, size_t n, location to, unsigned flags, stream *s) { DOES(s); return n && inside(p, n) && !flags && (to.type == 1 || to.type == 2) ? OK : INVALID_VALUE; }
int cuMemcpyAsync(uint64_t d, uint64_t p, size_t n, stream *s) { ON(s); return inside(d, n) && inside(p, n) ? doCopy(s, d, p, n) : INVALID_VALUE; }
int cuMemcpyPeerAsync(uint64_t d, uintptr_t to, uint64_t p, uintptr_t from, size_t n, stream *s)
{
	ON(s);
	if (to - CONTEXT >= DEVICES || from - CONTEXT >= DEVICES) return INVALID_CONTEXT;
	return inside(d, n) && inside(p, n) ? doCopy(s, d, p, n) : INVALID_VALUE;
}
int cuMemcpyHtoDAsync_v2(uint64_t d, uint64_t p, size_t n, stream *s) { ON(s); return inside(d, n) ? doCopy(s, d, p, n) : INVALID_VALUE; }
int cuMemcpyDtoHAsync_v2(uint64_t d, uint64_t p, size_t n, stream *s) { ON(s); return inside(p, n) ? doCopy(s, d, p, n) : INVALID_VALUE; }

// ---- Kernels

// table is a variable of 256 bytes, or 0. A kernel of a module with shared memory has 16 KiB of it.
typedef struct { int device, shared; uint64_t table; } module;
typedef struct { const char *name; size_t sizes[5]; void (*run)(const unsigned *grid, const unsigned *block, void **args); unsigned shared; } function;

#define THREADS ((uint64_t)grid[0] * block[0])
#define ARG(type, i) (*(type *)args[i])

static void saxpy(const unsigned *grid, const unsigned *block, void **args)
{
	for (uint64_t i = 0; i < THREADS && i < ARG(uint64_t, 0); i++) ARG(float *, 3)[i] += ARG(float, 1) * ARG(float *, 2)[i];
}
static void indices(const unsigned *grid, const unsigned *block, void **args)
{
	for (uint64_t i = 0; i < THREADS && i < ARG(uint64_t, 0); i++) ARG(uint32_t *, 3)[i] = i * ARG(uint32_t, 2) + ARG(uint32_t, 1);
}
static void words(const unsigned *grid, const unsigned *block, void **args)
{
	for (uint64_t i = 0; i < THREADS && i < ARG(uint64_t, 0); i++) ARG(uint32_t *, 1)[i] = ARG(uint32_t *, 2)[i];
}
static void ids(const unsigned *grid, const unsigned *block, void **args)
{
	uint32_t *out = ARG(uint32_t *, 0);
	for (unsigned z = 0; z < grid[2]; z++)
		for (unsigned y = 0; y < grid[1]; y++)
			for (unsigned x = 0; x < grid[0]; x++) *out++ = x, *out++ = y, *out++ = z, *out++ = block[0] * block[1] * block[2];
}

static void meet(const unsigned *grid, const unsigned *block, void **args)
{
	*ARG(uint32_t *, 1) += ARG(uint32_t, 0) * grid[0];
	for (unsigned i = 0; i < grid[0]; i++) ARG(uint32_t *, 2)[i] = *ARG(uint32_t *, 1);
}
static void params(const unsigned *grid, const unsigned *block, void **args)
{
	uint64_t *out = ARG(uint64_t *, 0);
	out[0] = ((uint64_t *)args[1])[0], out[1] = ((uint64_t *)args[1])[4093], out[2] = ARG(uint32_t, 2);
}

static function functions[] = {
	{"saxpy", {8, 4, 8, 8}, saxpy},
	{"index", {8, 4, 4, 8}, indices},
	{"words", {8, 8, 8}, words},
	{"ids", {8}, ids},
	{"meet", {4, 8, 8}, meet},
	{"params", {8, 32752, 4}, params},
	{"ring", {8}, ids}, // these are launched with what HIP does not have, so not at all
	{"lead", {8, 8, 4}, ids},
	{"follow", {8, 8, 8}, ids},
};
static function idsShared = {"ids", {8}, ids, 16 << 10};

int cuModuleLoadDataEx(module **m, const char *image, unsigned n, void *options, void *values)
{
	CREATE();
	if (!strstr(image, ".version")) return 200;
	if (strstr(image, "99.9")) return 222;
	*m = malloc(sizeof **m);
	(*m)->device = context - CONTEXT;
	(*m)->table = 0;
	(*m)->shared = strstr(image, ".shared .align 4 .b8 table[16384];") != NULL;
	if (strstr(image, "table")) make(&(*m)->table, 256);
	LIVE(1);
	return OK;
}
int cuModuleUnload(module *m)
{
	ON(m);
	if (m->table) drop(m->table);
	free(m);
	LIVE(-1);
	return OK;
}
int cuModuleGetFunction(function **f, module *m, const char *name)
{
	ON(m);
	for (size_t i = 0; i < sizeof functions / sizeof *functions; i++)
		if (!strcmp(functions[i].name, name)) {
			*f = m->shared && functions[i].run == ids ? &idsShared : &functions[i];
			return OK;
		}
	return NOT_FOUND;
}
int cuModuleGetGlobal_v2(uint64_t *p, size_t *n, module *m, const char *name)
{
	ON(m);
	if (!m->table || strcmp(name, "table")) return NOT_FOUND;
	*p = m->table;
	*n = 256;
	return OK;
}
int cuFuncGetAttribute(int *value, int attribute, function *f) { CREATE(); *value = attribute == 0 ? 512 : attribute == 1 ? f->shared : 0; return OK; }

// A multiprocessor has 2048 threads, 32 blocks and 100 KiB of shared memory.
int cuOccupancyMaxActiveBlocksPerMultiprocessor(int *blocks, function *f, int threads, size_t shared)
{
	CREATE();
	if (threads <= 0) return INVALID_VALUE;
	int n = 2048 / ((threads + 31) & ~31);
	if (n > 32) n = 32;
	size_t each = f->shared + shared;
	if (each && (size_t)n > (100 << 10) / each) n = (100 << 10) / each;
	*blocks = threads > 512 || each > 48 << 10 ? 0 : n;
	return OK;
}

// run checks a launch; without the arguments it does no more.
static int run(function *f, const unsigned *grid, const unsigned *block, unsigned shared, void **args, int really)
{
	uint64_t threads = 1;
	for (int i = 0; i < 3; i++) {
		if (!grid[i] || !block[i]) return INVALID_VALUE;
		threads *= block[i];
	}
	if (threads > 1024 || f->shared + (uint64_t)shared > 48 << 10) return INVALID_VALUE;
	if (threads > 512) return NO_RESOURCES;
	if (really) f->run(grid, block, args);
	return OK;
}

static int noteKernel(stream *s, function *f, const unsigned *grid, const unsigned *block, unsigned shared, void **args);

int cuLaunchKernel(function *f, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz, unsigned shared, stream *s, void **args, void **extra)
{
	ON(s);
	unsigned grid[] = {gx, gy, gz}, block[] = {bx, by, bz};
	if (extra) return INVALID_VALUE;
	return s->captured ? noteKernel(s, f, grid, block, shared, args) : run(f, grid, block, shared, args, 1);
}

int cuLaunchCooperativeKernel(function *f, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz, unsigned shared, stream *s, void **args)
{
	return cuLaunchKernel(f, gx, gy, gz, bx, by, bz, shared, s, args, NULL);
}

// ---- Graphs. The nodes run in the order in which they were added.

typedef struct { function *func; unsigned grid[3], block[3], shared; void **args, **extra; } kernelParams;
typedef struct { uint64_t dst; size_t pitch; unsigned value, size; size_t width, height; } fillParams;
typedef struct { size_t x, y, z, lod; int type; void *host; uint64_t device; void *array, *reserved; size_t pitch, height; } end;
typedef struct { end src, dst; size_t width, height, depth; } copyParams;
typedef struct node {
	enum { EMPTY, KERNEL, FILLING, COPY, CHILD, RECORD } kind;
	kernelParams k;
	char *values[5];
	fillParams f;
	copyParams c;
	event *e;
	struct graph *child;
	const struct node *of; // of an exec's node: the graph's
	struct node *next;
} node;
typedef struct graph { node *first; int device; } graph;

static void setKernel(node *n, const kernelParams *p)
{
	n->k = *p;
	for (int i = 0; i < 5 && p->func->sizes[i]; i++) n->values[i] = memcpy(realloc(n->values[i], p->func->sizes[i]), p->args[i], p->func->sizes[i]);
	n->k.args = NULL;
}

static node *add(graph *g, int kind, node **out)
{
	node *n = calloc(1, sizeof *n), **p = &g->first;
	n->kind = kind;
	while (*p) p = &(*p)->next;
	*p = n;
	return *out = n;
}

static graph *clone(const graph *g)
{
	graph *c = calloc(1, sizeof *c);
	node **p = &c->first;
	c->device = g->device;
	for (const node *n = g->first; n; n = n->next) {
		*p = malloc(sizeof **p);
		**p = *n;
		(*p)->of = n;
		if (n->child) (*p)->child = clone(n->child);
		if (n->kind == KERNEL)
			for (int i = 0; i < 5 && n->values[i]; i++) (*p)->values[i] = memcpy(malloc(n->k.func->sizes[i]), n->values[i], n->k.func->sizes[i]);
		p = &(*p)->next;
	}
	return c;
}

static void destroy(graph *g)
{
	while (g->first) {
		node *n = g->first;
		g->first = n->next;
		if (n->child) destroy(n->child);
		for (int i = 0; i < 5; i++) free(n->values[i]);
		free(n);
	}
	free(g);
}

static int play(const graph *g)
{
	for (node *n = g->first; n; n = n->next) {
		int r = OK;
		void *args[5];
		for (int i = 0; i < 5; i++) args[i] = n->values[i];
		switch (n->kind) {
		case KERNEL: r = run(n->k.func, n->k.grid, n->k.block, n->k.shared, args, 1); break;
		case FILLING: r = fill(n->f.dst, n->f.pitch, n->f.value, n->f.size, n->f.width, n->f.height); break;
		case COPY: r = copy(n->c.dst.device, n->c.src.device, n->c.width); break;
		case CHILD: r = play(n->child); break;
		case RECORD: record(n->e); break;
		case EMPTY: break;
		}
		if (r) return r;
	}
	return OK;
}

#define ADD(kind) node *n_; CREATE(); node *n = add(g, kind, out ? out : &n_)
int cuGraphCreate(graph **g, unsigned flags) { CREATE(); *g = calloc(1, sizeof **g); (*g)->device = context - CONTEXT; LIVE(1); return OK; }
int cuGraphDestroy(graph *g) { CREATE(); destroy(g); LIVE(-1); return OK; }
int cuGraphAddEmptyNode(node **out, graph *g, node **after, size_t count) { ADD(EMPTY); n->of = n; return OK; }
int cuGraphAddKernelNode(node **out, graph *g, node **after, size_t count, const kernelParams *p)
{
	int r = run(p->func, p->grid, p->block, p->shared, NULL, 0);
	if (r) return r;
	ADD(KERNEL);
	setKernel(n, p);
	return OK;
}
int cuGraphAddMemsetNode(node **out, graph *g, node **after, size_t count, const fillParams *p, void *ctx) { ADD(FILLING); n->f = *p; return ctx ? OK : INVALID_CONTEXT; }
int cuGraphAddMemcpyNode(node **out, graph *g, node **after, size_t count, const copyParams *p, void *ctx)
{
	if (p->src.type != 4 || p->dst.type != 4 || p->height != 1 || p->depth != 1) return INVALID_VALUE;
	ADD(COPY);
	n->c = *p;
	return ctx ? OK : INVALID_CONTEXT;
}
int cuGraphAddChildGraphNode(node **out, graph *g, node **after, size_t count, graph *child) { ADD(CHILD); n->child = clone(child); return OK; }
int cuGraphAddEventRecordNode(node **out, graph *g, node **after, size_t count, event *e) { ADD(RECORD); n->e = e; return OK; }
int cuGraphMemsetNodeGetParams(node *n, fillParams *p) { if (n->kind != FILLING) return INVALID_VALUE; *p = n->f; return OK; }
int cuGraphInstantiateWithFlags(graph **x, graph *g, unsigned long long flags) { CREATE(); *x = clone(g); MADE(1); LIVE(1); return OK; }
int cuGraphExecDestroy(graph *x) { CREATE(); destroy(x); LIVE(-1); return OK; }

static node *of(graph *x, const node *n, int kind)
{
	for (node *m = x->first; m; m = m->next)
		if (m->of == n && (int)m->kind == kind) return m;
	return NULL;
}
#define SET(kind) CREATE(); node *m = of(x, n, kind); if (!m) return INVALID_VALUE
int cuGraphExecKernelNodeSetParams(graph *x, node *n, const kernelParams *p) { SET(KERNEL); setKernel(m, p); return OK; }
int cuGraphExecMemsetNodeSetParams(graph *x, node *n, const fillParams *p, void *ctx) { SET(FILLING); m->f = *p; return OK; }
int cuGraphExecMemcpyNodeSetParams(graph *x, node *n, const copyParams *p, void *ctx) { SET(COPY); m->c = *p; return OK; }

// Another child must have as many nodes of the same kinds and kernels.
int cuGraphExecChildGraphNodeSetParams(graph *x, node *n, graph *child)
{
	SET(CHILD);
	node *a = m->child->first, *b = child->first;
	for (; a && b && a->kind == b->kind && a->k.func == b->k.func; a = a->next) b = b->next;
	if (a || b) return UPDATE_FAILURE;
	destroy(m->child);
	m->child = clone(child);
	return OK;
}

static int noteFill(stream *s, uint64_t p, size_t pitch, unsigned v, size_t size, size_t width, size_t height)
{
	node *n;
	add(s->captured, FILLING, &n)->f = (fillParams){p, pitch, v, size, width, height};
	return OK;
}

static int noteCopy(stream *s, uint64_t d, uint64_t p, size_t bytes)
{
	node *n;
	add(s->captured, COPY, &n)->c = (copyParams){.dst = {.device = d}, .src = {.device = p}, .width = bytes};
	return OK;
}

static int noteKernel(stream *s, function *f, const unsigned *grid, const unsigned *block, unsigned shared, void **args)
{
	int r = run(f, grid, block, shared, NULL, 0);
	if (r) return s->spoilt = 1, r;
	kernelParams p = {.func = f, .shared = shared, .args = args};
	memcpy(p.grid, grid, sizeof p.grid);
	memcpy(p.block, block, sizeof p.block);
	node *n;
	setKernel(add(s->captured, KERNEL, &n), &p);
	return OK;
}

int cuStreamBeginCapture_v2(stream *s, int mode)
{
	ON(s);
	if (s->captured || mode < 0 || mode > 2) return ILLEGAL_STATE;
	s->captured = calloc(1, sizeof(graph));
	s->captured->device = s->device;
	s->spoilt = 0;
	return OK;
}

// Whatever it returns, the stream captures no more.
int cuStreamEndCapture(stream *s, graph **g)
{
	ON(s);
	graph *was = s->captured;
	s->captured = NULL;
	if (!was) return ILLEGAL_STATE;
	if (s->spoilt) return destroy(was), CAPTURE_INVALIDATED;
	LIVE(1);
	*g = was;
	return OK;
}

int cuGraphLaunch(graph *x, stream *s) { DOES(s); return x->device == s->device ? play(x) : INVALID_CONTEXT; }
