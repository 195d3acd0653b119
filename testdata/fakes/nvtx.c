// The library of a tool that NVTX loads. It writes down what it is told, a line for each call. Where the headers of NVTX are
// found, it is compiled with them, and so proves the declarations below.
//
//	REFUSES  it does not want to be attached
//	EMPTY    it has no functions for the tables
#define _GNU_SOURCE
#include <pthread.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#if __has_include(<nvtx3/nvToolsExt.h>)
#define HEADERS 1
#define NVTX_NO_IMPL
#include <nvtx3/nvToolsExt.h>
#else
#define HEADERS 0
#define NVTX_API
#define NVTX_VERSION 3
typedef struct {
	uint16_t version, size;
	uint32_t category;
	int32_t colorType;
	uint32_t color;
	int32_t payloadType, reserved0;
	union { uint64_t ullValue; int64_t llValue; double dValue; } payload;
	int32_t messageType;
	union { const char *ascii; const wchar_t *unicode; struct nvtxStringRegistration_st *registered; } message;
} nvtxEventAttributes_t;
typedef struct nvtxDomainRegistration_st *nvtxDomainHandle_t;
typedef struct nvtxStringRegistration_st *nvtxStringHandle_t;
typedef uint64_t nvtxRangeId_t;
enum { NVTX_CB_MODULE_CORE = 1, NVTX_CB_MODULE_CUDA = 2, NVTX_CB_MODULE_OPENCL = 3, NVTX_CB_MODULE_CUDART = 4, NVTX_CB_MODULE_CORE2 = 5, NVTX_CB_MODULE_SYNC = 6 };
enum { NVTX_CBID_CORE_SIZE = 16, NVTX_CBID_CUDA_SIZE = 9, NVTX_CBID_OPENCL_SIZE = 15, NVTX_CBID_CUDART_SIZE = 7, NVTX_CBID_CORE2_SIZE = 16, NVTX_CBID_SYNC_SIZE = 7 };
enum { NVTX_CBID_CORE_MarkEx = 1, NVTX_CBID_CORE_RangeStartEx = 4, NVTX_CBID_CORE_RangeEnd = 7, NVTX_CBID_CORE_RangePushEx = 8, NVTX_CBID_CORE_RangePop = 11,
	NVTX_CBID_CORE_NameCategoryA = 12, NVTX_CBID_CORE_NameOsThreadA = 14 };
enum { NVTX_CBID_CUDA_NameCuDeviceA = 1, NVTX_CBID_CUDA_NameCuContextA = 3, NVTX_CBID_CUDA_NameCuStreamA = 5, NVTX_CBID_CUDA_NameCuEventA = 7 };
enum { NVTX_CBID_CORE2_DomainMarkEx = 1, NVTX_CBID_CORE2_DomainRangeStartEx = 2, NVTX_CBID_CORE2_DomainRangeEnd = 3, NVTX_CBID_CORE2_DomainRangePushEx = 4,
	NVTX_CBID_CORE2_DomainRangePop = 5, NVTX_CBID_CORE2_DomainNameCategoryA = 8, NVTX_CBID_CORE2_DomainRegisterStringA = 10,
	NVTX_CBID_CORE2_DomainCreateA = 12, NVTX_CBID_CORE2_DomainDestroy = 14 };
enum { NVTX_ETID_CALLBACKS = 1, NVTX_ETID_VERSIONINFO = 3 };
typedef void (*NvtxFunctionPointer)(void);
typedef NvtxFunctionPointer **NvtxFunctionTable;
typedef struct {
	size_t struct_size;
	int (*GetModuleFunctionTable)(int module, NvtxFunctionTable *table, unsigned *size);
} NvtxExportTableCallbacks;
typedef struct {
	size_t struct_size;
	uint32_t version, reserved0;
	void (*SetInjectionNvtxVersion)(uint32_t version);
} NvtxExportTableVersionInfo;
typedef const void *(*NvtxGetExportTableFunc_t)(uint32_t id);
#endif

static pthread_mutex_t mu = PTHREAD_MUTEX_INITIALIZER;
static char lines[1 << 20];
static size_t used;
static long ids = 100; // of ranges

__attribute__((format(printf, 1, 2))) static void note(const char *format, ...)
{
	va_list args;
	va_start(args, format);
	pthread_mutex_lock(&mu);
	int n = vsnprintf(lines + used, sizeof lines - used, format, args);
	if (n > 0 && used + n + 2 < sizeof lines) {
		used += n;
		lines[used++] = '\n';
	}
	pthread_mutex_unlock(&mu);
	va_end(args);
}

// fake_take moves the lines to a buffer, and returns their length.
size_t fake_take(char *to, size_t size)
{
	pthread_mutex_lock(&mu);
	size_t n = used < size ? used : size;
	memcpy(to, lines, n);
	used = 0;
	pthread_mutex_unlock(&mu);
	return n;
}

int fake_headers(void) { return HEADERS; }

// fake_layout writes down the size of the attributes and the offsets of their fields.
int fake_layout(int *to)
{
#define OFFSET(field) *to++ = offsetof(nvtxEventAttributes_t, field)
	*to++ = sizeof(nvtxEventAttributes_t);
	OFFSET(version);
	OFFSET(size);
	OFFSET(category);
	OFFSET(colorType);
	OFFSET(color);
	OFFSET(payloadType);
	OFFSET(payload);
	OFFSET(messageType);
	OFFSET(message);
	return 0;
}

struct nvtxDomainRegistration_st { char name[100]; int destroyed; };
struct nvtxStringRegistration_st { char text[100]; };

static const char *nameOf(nvtxDomainHandle_t d) { return !d ? "-" : d->destroyed ? "DESTROYED" : d->name; }

static const char *text(const nvtxEventAttributes_t *e, char *to, size_t size)
{
	const char *message = e->messageType == 1 ? e->message.ascii : e->messageType == 3 ? e->message.registered->text : "?";
	int n = snprintf(to, size, "%s %d:%s", e->version == NVTX_VERSION && e->size == sizeof *e ? "good" : "bad", e->messageType, message);
	if (e->category)
		n += snprintf(to + n, size - n, " category %u", e->category);
	if (e->colorType)
		n += snprintf(to + n, size - n, " color %d:%08x", e->colorType, e->color);
	if (e->payloadType == 3)
		snprintf(to + n, size - n, " payload %g", e->payload.dValue);
	else if (e->payloadType)
		snprintf(to + n, size - n, " payload %d:%lld", e->payloadType, (long long)e->payload.llValue);
	return to;
}
#define TEXT(e) text(e, (char[400]){0}, 400)

static long thread(void) { return syscall(SYS_gettid); }
static long next(void) { return __sync_add_and_fetch(&ids, 1); }

__attribute__((unused)) static void domainMark(nvtxDomainHandle_t d, const nvtxEventAttributes_t *e) { note("mark %s %s", nameOf(d), TEXT(e)); }
__attribute__((unused)) static nvtxRangeId_t domainStart(nvtxDomainHandle_t d, const nvtxEventAttributes_t *e)
{
	long id = next();
	note("start %ld %s %s", id, nameOf(d), TEXT(e));
	return id + (7ll << 40);
}
__attribute__((unused)) static void domainEnd(nvtxDomainHandle_t d, nvtxRangeId_t id) { note("end %lld %s", (long long)(id - (7ll << 40)), nameOf(d)); }
static __thread int level;
__attribute__((unused)) static int domainPush(nvtxDomainHandle_t d, const nvtxEventAttributes_t *e)
{
	note("push %d on %ld %s %s", level, thread(), nameOf(d), TEXT(e));
	return level++;
}
__attribute__((unused)) static int domainPop(nvtxDomainHandle_t d)
{
	note("pop %d on %ld %s", --level, thread(), nameOf(d));
	return level;
}
static struct nvtxDomainRegistration_st domains[100];
static int domainCount;
__attribute__((unused)) static nvtxDomainHandle_t domainCreate(const char *name)
{
	nvtxDomainHandle_t d = &domains[__sync_fetch_and_add(&domainCount, 1)];
	snprintf(d->name, sizeof d->name, "%s", name);
	note("create %s", name);
	return d;
}
__attribute__((unused)) static void domainDestroy(nvtxDomainHandle_t d)
{
	note("destroy %s", nameOf(d));
	d->destroyed = 1;
}
static struct nvtxStringRegistration_st strings[100];
static int stringCount;
__attribute__((unused)) static nvtxStringHandle_t domainRegister(nvtxDomainHandle_t d, const char *text)
{
	nvtxStringHandle_t s = &strings[__sync_fetch_and_add(&stringCount, 1)];
	snprintf(s->text, sizeof s->text, "%s", text);
	note("register %s %s", nameOf(d), text);
	return s;
}
__attribute__((unused)) static void domainCategory(nvtxDomainHandle_t d, uint32_t category, const char *name) { note("category %s %u %s", nameOf(d), category, name); }
__attribute__((unused)) static void mark(const nvtxEventAttributes_t *e) { domainMark(NULL, e); }
__attribute__((unused)) static nvtxRangeId_t start(const nvtxEventAttributes_t *e) { return domainStart(NULL, e); }
__attribute__((unused)) static void end(nvtxRangeId_t id) { domainEnd(NULL, id); }
__attribute__((unused)) static int push(const nvtxEventAttributes_t *e) { return domainPush(NULL, e); }
__attribute__((unused)) static int pop(void) { return domainPop(NULL); }
__attribute__((unused)) static void category(uint32_t category, const char *name) { domainCategory(NULL, category, name); }
__attribute__((unused)) static void osThread(uint32_t id, const char *name) { note("thread %s %s", id == thread() ? "own" : "other", name); }
__attribute__((unused)) static void device(int device, const char *name) { note("device %d %s", device, name); }
__attribute__((unused)) static void context(void *context, const char *name) { note("context %p %s", context, name); }
__attribute__((unused)) static void stream(void *stream, const char *name) { note("stream %p %s", stream, name); }
__attribute__((unused)) static void event(void *event, const char *name) { note("event %p %s", event, name); }

static NvtxFunctionTable table(const NvtxExportTableCallbacks *c, int module, unsigned want)
{
	NvtxFunctionTable t = NULL;
	unsigned size = 0;
	if (!c->GetModuleFunctionTable(module, &t, &size) || size != want || !t || t[0]) {
		note("BAD table %d of %u", module, size);
		return NULL;
	}
	for (unsigned i = 1; i < size; i++)
		if (!t[i]) {
			note("BAD slot %u of table %d", i, module);
			return NULL;
		}
	return t;
}

__attribute__((visibility("default"))) int InitializeInjectionNvtx2(NvtxGetExportTableFunc_t get)
{
	const NvtxExportTableVersionInfo *v = get(NVTX_ETID_VERSIONINFO);
	const NvtxExportTableCallbacks *c = get(NVTX_ETID_CALLBACKS);
	if (!v || v->struct_size != sizeof *v || v->version != NVTX_VERSION || !c || c->struct_size != sizeof *c || get(99)) {
		note("BAD export tables");
		return 0;
	}
	v->SetInjectionNvtxVersion(NVTX_VERSION);
	if (c->GetModuleFunctionTable(99, NULL, NULL) || !c->GetModuleFunctionTable(1, NULL, NULL))
		note("BAD answer");
	NvtxFunctionTable core = table(c, NVTX_CB_MODULE_CORE, NVTX_CBID_CORE_SIZE), core2 = table(c, NVTX_CB_MODULE_CORE2, NVTX_CBID_CORE2_SIZE);
	NvtxFunctionTable cuda = table(c, NVTX_CB_MODULE_CUDA, NVTX_CBID_CUDA_SIZE);
	if (!table(c, NVTX_CB_MODULE_OPENCL, NVTX_CBID_OPENCL_SIZE) || !table(c, NVTX_CB_MODULE_CUDART, NVTX_CBID_CUDART_SIZE) ||
		!table(c, NVTX_CB_MODULE_SYNC, NVTX_CBID_SYNC_SIZE) || !core || !core2 || !cuda)
		return 0;
#ifdef REFUSES
	return 0;
#endif
#ifndef EMPTY
	*core[NVTX_CBID_CORE_MarkEx] = (NvtxFunctionPointer)mark;
	*core[NVTX_CBID_CORE_RangeStartEx] = (NvtxFunctionPointer)start;
	*core[NVTX_CBID_CORE_RangeEnd] = (NvtxFunctionPointer)end;
	*core[NVTX_CBID_CORE_RangePushEx] = (NvtxFunctionPointer)push;
	*core[NVTX_CBID_CORE_RangePop] = (NvtxFunctionPointer)pop;
	*core[NVTX_CBID_CORE_NameCategoryA] = (NvtxFunctionPointer)category;
	*core[NVTX_CBID_CORE_NameOsThreadA] = (NvtxFunctionPointer)osThread;
	*cuda[NVTX_CBID_CUDA_NameCuDeviceA] = (NvtxFunctionPointer)device;
	*cuda[NVTX_CBID_CUDA_NameCuContextA] = (NvtxFunctionPointer)context;
	*cuda[NVTX_CBID_CUDA_NameCuStreamA] = (NvtxFunctionPointer)stream;
	*cuda[NVTX_CBID_CUDA_NameCuEventA] = (NvtxFunctionPointer)event;
	*core2[NVTX_CBID_CORE2_DomainMarkEx] = (NvtxFunctionPointer)domainMark;
	*core2[NVTX_CBID_CORE2_DomainRangeStartEx] = (NvtxFunctionPointer)domainStart;
	*core2[NVTX_CBID_CORE2_DomainRangeEnd] = (NvtxFunctionPointer)domainEnd;
	*core2[NVTX_CBID_CORE2_DomainRangePushEx] = (NvtxFunctionPointer)domainPush;
	*core2[NVTX_CBID_CORE2_DomainRangePop] = (NvtxFunctionPointer)domainPop;
	*core2[NVTX_CBID_CORE2_DomainNameCategoryA] = (NvtxFunctionPointer)domainCategory;
	*core2[NVTX_CBID_CORE2_DomainRegisterStringA] = (NvtxFunctionPointer)domainRegister;
	*core2[NVTX_CBID_CORE2_DomainCreateA] = (NvtxFunctionPointer)domainCreate;
	*core2[NVTX_CBID_CORE2_DomainDestroy] = (NvtxFunctionPointer)domainDestroy;
#endif
	return 1;
}
