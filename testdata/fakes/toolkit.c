// A library of CUDA's toolkit, or of ROCm, that computes nothing. It tells a release, and makes and destroys handles.
//
//	VERSION              the number that it tells
//	MAJOR, MINOR, PATCH  its parts
//	CUFFT, CURAND, ...   which library it is
#include <stddef.h>
#include <stdint.h>
#include <string.h>

static int live;
int fake_live(void) { return live; }

#define BAD 4 // not the code of any success

// Handles are numbers from 7 on, so that zero is none.
#define HANDLES(type, create, destroy) \
	int create(type *h) { *h = (type)(intptr_t)(7 + live++); return 0; } \
	int destroy(type h) { return (intptr_t)h < 7 ? BAD : (live--, 0); }

#define PROPERTY(name) \
	int name(int type, int *value) { *value = type == 0 ? MAJOR : type == 1 ? MINOR : PATCH; return 0; }

#if defined(CUFFT)
HANDLES(int, cufftCreate, cufftDestroy)
PROPERTY(cufftGetProperty)
int cufftGetVersion(int *version) { *version = VERSION; return 0; }
int cufftExecC2C(int plan, uint64_t in, uint64_t out, int direction)
{
	return plan >= 7 && in == 0x1000 && out == 0x2000 && direction == -1 ? 0 : BAD;
}
#elif defined(CURAND)
typedef struct generator *generator;
int curandCreateGenerator(generator *g, int kind) { *g = (generator)(intptr_t)(7 + live++); return 0; }
int curandDestroyGenerator(generator g) { return (intptr_t)g < 7 ? 101 : (live--, 0); }
PROPERTY(curandGetProperty)
int curandGetVersion(int *version) { *version = VERSION; return 0; }
int curandGenerateUniform(generator g, uint64_t out, size_t n) { return (intptr_t)g >= 7 && out == 0x1000 && n == 8 ? 0 : 104; }
int curandGenerateNormal(generator g, uint64_t out, size_t n, float mean, float deviation)
{
	return (intptr_t)g >= 7 && out == 0x1000 && n == 8 && mean == 1.5f && deviation == 0.25f ? 0 : 104;
}
#elif defined(CUBLAS)
typedef struct context *context;
int cublasCreate_v2(context *c) { *c = (context)(intptr_t)(7 + live++); return 0; }
int cublasDestroy_v2(context c) { return (intptr_t)c < 7 ? 1 : (live--, 0); }
PROPERTY(cublasGetProperty)
int cublasSgemm_v2(context h, int ta, int tb, int m, int n, int k, const float *alpha, uint64_t a, int lda, uint64_t b, int ldb, const float *beta,
	uint64_t c, int ldc)
{
	return (intptr_t)h >= 7 && ta == 0 && tb == 1 && m == 2 && n == 3 && k == 4 && *alpha == 1 && a == 0x1000 && lda == 2 && b == 0x2000 &&
		ldb == 3 && *beta == 0 && c == 0x3000 && ldc == 2 ? 0 : 7;
}
#elif defined(CUBLASLT)
typedef struct context *context;
int cublasLtCreate(context *c) { *c = (context)(intptr_t)(7 + live++); return 0; }
int cublasLtDestroy(context c) { return (intptr_t)c < 7 ? 1 : (live--, 0); }
PROPERTY(cublasLtGetProperty)
int cublasLtMatmul(intptr_t h, intptr_t desc, const float *alpha, uint64_t a, intptr_t al, uint64_t b, intptr_t bl, const float *beta, uint64_t c, intptr_t cl,
	uint64_t d, intptr_t dl, const uint64_t *algo, uint64_t work, size_t size, intptr_t stream)
{
	return h == 7 && desc == 8 && *alpha == 1 && a == 0x1000 && al == 9 && b == 0x2000 && bl == 10 && *beta == 0 && c == 0x3000 && cl == 11 &&
		d == 0x4000 && dl == 12 && algo && algo[7] == 42 && work == 0x5000 && size == 64 && stream == 13 ? 0 : 15;
}
#elif defined(CUSPARSE)
typedef struct context *context;
int cusparseCreate(context *c) { *c = (context)(intptr_t)(7 + live++); return 0; }
int cusparseDestroy(context c) { return (intptr_t)c < 7 ? 1 : (live--, 0); }
PROPERTY(cusparseGetProperty)
int cusparseSpMV(intptr_t h, int op, const float *alpha, intptr_t a, intptr_t x, const float *beta, intptr_t y, int type, int alg, uint64_t buffer)
{
	return h == 7 && op == 1 && *alpha == 1 && a == 8 && x == 9 && *beta == 0 && y == 10 && type == 0 && alg == 2 && buffer == 0x1000 ? 0 : 3;
}
#elif defined(CUSOLVER)
typedef struct context *context;
int cusolverDnCreate(context *c) { *c = (context)(intptr_t)(7 + live++); return 0; }
int cusolverDnDestroy(context c) { return (intptr_t)c < 7 ? 1 : (live--, 0); }
PROPERTY(cusolverGetProperty)
int cusolverGetVersion(int *version) { *version = VERSION; return 0; }
int cusolverDnSpotrf_bufferSize(intptr_t h, int fill, int n, uint64_t a, int lda, int *count)
{
	*count = 42;
	return h == 7 && fill == 1 && n == 5 && a == 0x1000 && lda == 6 ? 0 : 3;
}
int cusolverDnSpotrf(intptr_t h, int fill, int n, uint64_t a, int lda, uint64_t work, int count, uint64_t info)
{
	return h == 7 && fill == 1 && n == 5 && a == 0x1000 && lda == 6 && work == 0x2000 && count == 42 && info == 0x3000 ? 0 : 3;
}
#elif defined(CUDNN)
typedef struct context *context;
static const char *reason = "";
static int refuse(int code, const char *why) { reason = why; return code; }
int cudnnCreate(context *c) { *c = (context)(intptr_t)(7 + live++); return 0; }
int cudnnDestroy(context c) { return (intptr_t)c < 7 ? 2000 : (live--, 0); }
PROPERTY(cudnnGetProperty)
size_t cudnnGetVersion(void) { return VERSION; }
const char *cudnnGetErrorString(int status) { return status == 2002 ? "CUDNN_STATUS_BAD_PARAM_NULL_POINTER" : "?"; }
void cudnnGetLastErrorString(char *message, size_t size) { if (size) { strncpy(message, reason, size - 1); message[size - 1] = 0; } }
int cudnnBackendCreateDescriptor(int kind, context *c) { return kind == 17 ? cudnnCreate(c) : refuse(2012, "no such descriptor\n"); }
int cudnnBackendDestroyDescriptor(context c) { return cudnnDestroy(c); }
static int64_t kept[4], many;
int cudnnBackendFinalize(context c) { return many ? 0 : refuse(2004, "Reason: the tensor has no dimensions"); }
int cudnnBackendSetAttribute(context c, int name, int type, int64_t count, const void *elements)
{
	if (name != 902 || type != 3) return refuse(2010, "Reason: the attribute is of another type");
	if (count < 1 || count > 4 || !elements) return refuse(2002, "");
	memcpy(kept, elements, (many = count) * 8);
	return 0;
}
int cudnnBackendGetAttribute(context c, int name, int type, int64_t room, int64_t *count, void *elements)
{
	if (name != 902 || type != 3) return refuse(2010, "Reason: the attribute is of another type");
	*count = many;
	if (elements) memcpy(elements, kept, (room < many ? room : many) * 8);
	return 0;
}
int cudnnBackendExecute(intptr_t handle, intptr_t plan, intptr_t pack) { return handle == 7 && plan == 8 && pack == 9 ? 0 : 5000; }
int cudnnSoftmaxForward(intptr_t h, int algo, int mode, const float *alpha, intptr_t xdesc, uint64_t x, const float *beta, intptr_t ydesc, uint64_t y)
{
	return h == 7 && algo == 1 && mode == 1 && *alpha == 1 && xdesc == 8 && x == 0x1000 && *beta == 0 && ydesc == 9 && y == 0x2000 ? 0 : 2000;
}
#elif defined(HIPBLAS)
typedef struct context *context;
int hipblasCreate(context *c) { *c = (context)(intptr_t)(7 + live++); return 0; }
int hipblasDestroy(context c) { return (intptr_t)c < 7 ? 1 : (live--, 0); }
int hipblasSgemm(context h, int ta, int tb, int m, int n, int k, const float *alpha, uint64_t a, int lda, uint64_t b, int ldb, const float *beta,
	uint64_t c, int ldc)
{
	return (intptr_t)h >= 7 && ta == 111 && tb == 112 && m == 2 && n == 3 && k == 4 && *alpha == 1 && a == 0x1000 && lda == 2 && b == 0x2000 &&
		ldb == 3 && *beta == 0 && c == 0x3000 && ldc == 2 ? 0 : 3;
}
#elif defined(HIPFFT)
typedef struct plan *plan;
int hipfftCreate(plan *p) { *p = (plan)(intptr_t)(7 + live++); return 0; }
int hipfftDestroy(plan p) { return (intptr_t)p < 7 ? BAD : (live--, 0); }
int hipfftGetVersion(int *version) { *version = VERSION; return 0; }
int hipfftExecC2C(plan p, uint64_t in, uint64_t out, int direction)
{
	return (intptr_t)p >= 7 && in == 0x1000 && out == 0x2000 && direction == -1 ? 0 : BAD;
}
#elif defined(HIPRAND)
typedef struct generator *generator;
int hiprandCreateGenerator(generator *g, int kind) { *g = (generator)(intptr_t)(7 + live++); return 0; }
int hiprandDestroyGenerator(generator g) { return (intptr_t)g < 7 ? 101 : (live--, 0); }
int hiprandGetVersion(int *version) { *version = VERSION; return 0; }
int hiprandGenerateUniform(generator g, uint64_t out, size_t n) { return (intptr_t)g >= 7 && out == 0x1000 && n == 8 ? 0 : 104; }
int hiprandGenerateNormal(generator g, uint64_t out, size_t n, float mean, float deviation)
{
	return (intptr_t)g >= 7 && out == 0x1000 && n == 8 && mean == 1.5f && deviation == 0.25f ? 0 : 104;
}
#elif defined(CUFILE)
// Files are read and written for real, and memory is the host's. A transfer of 13 bytes fails with a code of the library's, one of 11 bytes with a negative
// errno, and one of at most 4,096 bytes moves no more than 1,024 of them.
#include <unistd.h>
typedef struct { int err, cuda; } result;
result cuFileDriverOpen(void) { return live ? (result){5026, 0} : (live++, (result){0, 99}); }
result cuFileDriverClose_v2(void) { return live ? (live--, (result){0, 99}) : (result){5001, 0}; }
#if VERSION >= 1090
result cuFileGetVersion(int *version) { *version = VERSION; return (result){0, 0}; }
#endif
result cuFileHandleRegister(void **handle, const int *descr)
{
	*handle = (void *)(intptr_t)(100 + descr[2]);
	return (result){descr[0] == 1 ? 0 : 5022, 0};
}
result cuFileBufRegister(const void *base, size_t size, int flags) { return size ? (result){0, 0} : (result){5011, 2}; }
result cuFileBufDeregister(const void *base) { return live ? (result){0, 0} : (result){5024, 0}; }
static size_t part(size_t size) { return size <= 4096 && size > 1024 ? 1024 : size; }
long cuFileRead(intptr_t fh, char *base, size_t size, long file, long offset)
{
	return size == 13 ? -5012 : size == 11 ? -22 : pread((int)(fh - 100), base + offset, part(size), file);
}
long cuFileWrite(intptr_t fh, const char *base, size_t size, long file, long offset)
{
	return size == 13 ? -5012 : size == 11 ? -22 : pwrite((int)(fh - 100), base + offset, part(size), file);
}
#endif

#if defined(CUPTI)
#include <pthread.h>
#include <string.h>

int cuptiGetVersion(uint32_t *version) { *version = VERSION; return 0; }

typedef void (*requested_t)(uint8_t **, size_t *, size_t *);
typedef void (*completed_t)(void *, uint32_t, uint8_t *, size_t, size_t);
static requested_t requested;
static completed_t completed;
static uint64_t enabled; // a bit for each kind

int cuptiActivityRegisterCallbacks(requested_t r, completed_t c) { requested = r; completed = c; return 0; }
int cuptiActivityEnable(uint32_t kind) { enabled |= 1ull << kind; return 0; }
int cuptiActivityDisable(uint32_t kind) { enabled &= ~(1ull << kind); return 0; }

enum { MEMCPY = 1, MEMSET = 2, KERNEL = 10, CORRELATION = 39 };
static const uint32_t kinds[] = {CORRELATION, KERNEL, MEMCPY, MEMSET};

// The sizes of records in CUDA 12.4.
static size_t size(uint32_t kind) { return kind == KERNEL ? 208 : kind == MEMCPY || kind == MEMSET ? 88 : kind == CORRELATION ? 24 : 0; }

static void put32(uint8_t *to, int offset, uint32_t x) { memcpy(to + offset, &x, sizeof x); }
static void put64(uint8_t *to, int offset, uint64_t x) { memcpy(to + offset, &x, sizeof x); }

static void *hand(void *rounds)
{
	for (long round = 1; round <= (long)rounds; round++) {
		uint8_t *buffer = (void *)0xdead0; // anything
		size_t bytes = 0, most = 99, used = 0;
		requested(&buffer, &bytes, &most);
		if (bytes < 1024 || most || (uintptr_t)buffer % 8)
			return (void *)1;
		memset(buffer, 0xee, bytes);
		for (unsigned i = 0; i < sizeof kinds / sizeof *kinds; i++) {
			uint8_t *r = buffer + used;
			if (!(enabled >> kinds[i] & 1))
				continue;
			used += size(kinds[i]);
			put32(r, 0, kinds[i]);
			switch (kinds[i]) {
			case CORRELATION:
				put32(r, 4, 3);
				put64(r, 8, 1000 + round);
				put32(r, 16, round);
				break;
			case KERNEL:
				put64(r, 16, 100 * round);
				put64(r, 24, 100 * round + 7);
				put32(r, 52, 5); // gridX
				put32(r, 64, 32); // blockX
				put32(r, 92, round);
				put64(r, 104, (uintptr_t) "scale");
				break;
			case MEMCPY:
			case MEMSET:
				put64(r, 8, 4096);
				put64(r, 16, 200 * round);
				put64(r, 24, 200 * round + 9);
				put32(r, 44, round);
				break;
			}
		}
		completed(NULL, 0, buffer, bytes, used);
	}
	return NULL;
}

// cuptiActivityFlushAll hands over three buffers on a thread of its own, and with a flag one more on this thread.
int cuptiActivityFlushAll(uint32_t flag)
{
	pthread_t t;
	void *wrong = NULL;
	if (!requested)
		return 7;
	if (pthread_create(&t, NULL, hand, (void *)3) || pthread_join(t, &wrong) || wrong)
		return BAD;
	return flag && hand((void *)1) ? BAD : 0;
}

int cuptiActivityGetNextRecord(uint8_t *buffer, size_t valid, uint8_t **record)
{
	uint8_t *next = *record ? *record + size(*(uint32_t *)*record) : buffer;
	if (next >= buffer + valid)
		return 12;
	if (!size(*(uint32_t *)next))
		return 21;
	*record = next;
	return 0;
}

typedef void (*callback_t)(void *, uint32_t, uint32_t, const void *);
static callback_t callback;
static void *userdata;

int cuptiSubscribe(void **subscriber, callback_t c, void *data)
{
	if (callback)
		return 39;
	callback = c;
	userdata = data;
	*subscriber = (void *)7;
	return 0;
}
int cuptiUnsubscribe(void *subscriber) { callback = NULL; return subscriber == (void *)7 ? 0 : 1; }

// cuptiGetTimestamp is a call that runs the callback, as calls of the driver do.
int cuptiGetTimestamp(uint64_t *now)
{
	if (callback)
		callback(userdata, 1, 307, &live);
	*now = 42;
	return 0;
}
#endif
