// HIP on top of the CUDA driver API: a test device, to run code that is written for HIP on an NVIDIA GPU.
//
// It is no port of HIP. It has the functions that runtime/driver/hipdriver calls, and those without which package hip does
// not open a library, and it keeps HIP's rules where they differ from CUDA's, more strictly than HIP itself does:
//
//   - Which device a call works on hangs on the thread. HIP takes device 0 where nothing was set, and so works on the wrong
//     one; here a thread that has never called hipSetDevice gets hipErrorInvalidContext, and one whose current device is not
//     that of the stream, event, module or graph that it names gets hipErrorInvalidDevice. With -DSTREAM_DEVICE what is put into
//     a stream of the program's, and asked about an event, takes its device from there, on any thread, as in HIP itself.
//   - An event belongs to the device that was current when it was made, and can be recorded in that device's streams only:
//     hipErrorInvalidHandle.
//   - An event that is not done, or that a stream still waits for, cannot be recorded anew, which HIP's documentation leaves
//     undefined: hipErrorIllegalState.
//   - A launch has less than 2^32 threads along x: hipErrorInvalidConfiguration. A block with more threads than the kernel
//     was compiled for is hipErrorLaunchFailure, though nothing crashed.
//   - Memory of a pool can be allocated where the pool takes no notice of events (hipErrorIllegalState), and freed in the stream that
//     allocated it (hipErrorInvalidHandle): else HIP may give out what a stream still uses. Access to a pool, once given, is not taken
//     back: hipErrorInvalidDevice. The pools are of device memory.
//   - The fills of graphs are checked as HIP does it: see fillOf and hipGraphExecMemsetNodeSetParams.
//   - Each thread remembers the result of its last call, as before HIP 7: hipGetLastError returns and forgets it.
//
// Module images go to cuModuleLoadDataEx as they are, so kernels are PTX. The architecture that it tells of is "sm_90", say.
//
// To build it takes gcc and libc's headers only, on any machine:
//
//	gcc -O2 -Wall -shared -fPIC -o libhipovercuda.so hip_over_cuda.c -ldl -lpthread
//
// It says that it is of HIP 6.4 with -DSTREAM_DEVICE and else of 5.5, or what -DVERSION=60200000 names.
//
// With -DMEMSET_D2D32=4 it has hipMemsetD2D32Async besides, which counts bytes in a row, as AMD's tests of it do; with 1 it
// counts elements, as its documentation says. libcuda.so.1, or another file with -DLIBCUDA='"file"', is opened by the first
// call that needs it; without it, or without a GPU, hipInit answers hipErrorNoDevice.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#ifndef VERSION
#ifdef STREAM_DEVICE
#define VERSION 60400000 // 6.4
#else
#define VERSION 50500000 // 5.5, of which nobody has seen that it is less strict
#endif
#endif

#ifndef LIBCUDA
#define LIBCUDA "libcuda.so.1"
#endif

// Results of HIP. Most are CUDA's too.
enum {
	SUCCESS = 0,
	INVALID_VALUE = 1,
	OUT_OF_MEMORY = 2,
	NOT_INITIALIZED = 3,
	DEINITIALIZED = 4,
	INVALID_CONFIGURATION = 9,
	NO_DEVICE = 100,
	INVALID_DEVICE = 101,
	INVALID_IMAGE = 200,
	INVALID_CONTEXT = 201,
	INVALID_KERNEL_FILE = 218,
	INVALID_HANDLE = 400,
	ILLEGAL_STATE = 401,
	NOT_FOUND = 500,
	NOT_READY = 600,
	LAUNCH_OUT_OF_RESOURCES = 701,
	LAUNCH_FAILURE = 719,
	NOT_SUPPORTED = 801,
	UNKNOWN = 999,
};

// ---- CUDA

typedef int CUresult, CUdevice;
typedef void *CUcontext, *CUstream, *CUevent, *CUmodule, *CUfunction, *CUgraph, *CUgraphNode, *CUgraphExec, *CUmemoryPool;
typedef uint64_t CUdeviceptr;

typedef struct {
	CUfunction func;
	unsigned grid[3], block[3], shared;
	void **params, **extra;
} CUkernelParams; // CUDA_KERNEL_NODE_PARAMS_v1

typedef struct {
	CUdeviceptr dst;
	size_t pitch;
	unsigned value, elementSize;
	size_t width, height;
} CUfillParams; // CUDA_MEMSET_NODE_PARAMS_v1

typedef struct {
	size_t x, y, z, lod;
	int type;
	void *host;
	CUdeviceptr device;
	void *array, *reserved;
	size_t pitch, height;
} CUcopyEnd;

typedef struct {
	CUcopyEnd src, dst;
	size_t width, height, depth;
} CUcopyParams; // CUDA_MEMCPY3D

typedef struct { int type, id; } location; // CUmemLocation
typedef struct { char reserved[64]; } ipcHandle; // CUipcMemHandle

typedef struct { location where; int flags; } accessDesc; // CUmemAccessDesc, and hipMemAccessDesc

typedef struct {
	int type, handles;
	location where;
	void *win32;
	size_t maxSize;
	unsigned char reserved[56];
} poolProps; // CUmemPoolProps, of which some of the reserved bytes mean something, and hipMemPoolProps

_Static_assert(sizeof(poolProps) == 88 && sizeof(accessDesc) == 12, "layouts of both");
_Static_assert(sizeof(CUkernelParams) == 56 && sizeof(CUfillParams) == 40 && sizeof(CUcopyParams) == 200, "CUDA's layouts");

#define FUNCTIONS(X) \
	X(cuInit, (unsigned)) \
	X(cuDeviceGetCount, (int *)) \
	X(cuDeviceGet, (CUdevice *, int)) \
	X(cuDeviceGetName, (char *, int, CUdevice)) \
	X(cuDeviceTotalMem_v2, (size_t *, CUdevice)) \
	X(cuDeviceGetPCIBusId, (char *, int, CUdevice)) \
	X(cuDeviceGetUuid, (void *, CUdevice)) \
	X(cuDeviceGetAttribute, (int *, int, CUdevice)) \
	X(cuDevicePrimaryCtxRetain, (CUcontext *, CUdevice)) \
	X(cuCtxSetCurrent, (CUcontext)) \
	X(cuCtxSynchronize, (void)) \
	X(cuCtxEnablePeerAccess, (CUcontext, unsigned)) \
	X(cuDeviceCanAccessPeer, (int *, CUdevice, CUdevice)) \
	X(cuDeviceGetP2PAttribute, (int *, int, CUdevice, CUdevice)) \
	X(cuCtxGetStreamPriorityRange, (int *, int *)) \
	X(cuMemGetInfo_v2, (size_t *, size_t *)) \
	X(cuMemGetAddressRange_v2, (CUdeviceptr *, size_t *, CUdeviceptr)) \
	X(cuMemAlloc_v2, (CUdeviceptr *, size_t)) \
	X(cuIpcGetMemHandle, (ipcHandle *, CUdeviceptr)) \
	X(cuIpcOpenMemHandle_v2, (CUdeviceptr *, ipcHandle, unsigned)) \
	X(cuIpcCloseMemHandle, (CUdeviceptr)) \
	X(cuMemFree_v2, (CUdeviceptr)) \
	X(cuMemHostAlloc, (void **, size_t, unsigned)) \
	X(cuMemFreeHost, (void *)) \
	X(cuMemHostGetDevicePointer_v2, (CUdeviceptr *, void *, unsigned)) \
	X(cuMemAllocManaged, (CUdeviceptr *, size_t, unsigned)) \
	X(cuMemPrefetchAsync_v2, (CUdeviceptr, size_t, location, unsigned, CUstream)) \
	X(cuDeviceGetDefaultMemPool, (CUmemoryPool *, CUdevice)) \
	X(cuDeviceGetMemPool, (CUmemoryPool *, CUdevice)) \
	X(cuDeviceSetMemPool, (CUdevice, CUmemoryPool)) \
	X(cuMemPoolCreate, (CUmemoryPool *, const poolProps *)) \
	X(cuMemPoolDestroy, (CUmemoryPool)) \
	X(cuMemPoolTrimTo, (CUmemoryPool, size_t)) \
	X(cuMemPoolGetAttribute, (CUmemoryPool, int, void *)) \
	X(cuMemPoolSetAttribute, (CUmemoryPool, int, void *)) \
	X(cuMemPoolSetAccess, (CUmemoryPool, const accessDesc *, size_t)) \
	X(cuMemAllocFromPoolAsync, (CUdeviceptr *, size_t, CUmemoryPool, CUstream)) \
	X(cuMemFreeAsync, (CUdeviceptr, CUstream)) \
	X(cuMemHostRegister_v2, (void *, size_t, unsigned)) \
	X(cuMemHostUnregister, (void *)) \
	X(cuMemcpy, (CUdeviceptr, CUdeviceptr, size_t)) \
	X(cuMemcpyAsync, (CUdeviceptr, CUdeviceptr, size_t, CUstream)) \
	X(cuMemcpyPeerAsync, (CUdeviceptr, CUcontext, CUdeviceptr, CUcontext, size_t, CUstream)) \
	X(cuMemcpyHtoDAsync_v2, (CUdeviceptr, const void *, size_t, CUstream)) \
	X(cuMemcpyDtoHAsync_v2, (void *, CUdeviceptr, size_t, CUstream)) \
	X(cuMemsetD8_v2, (CUdeviceptr, unsigned char, size_t)) \
	X(cuMemsetD8Async, (CUdeviceptr, unsigned char, size_t, CUstream)) \
	X(cuMemsetD16Async, (CUdeviceptr, unsigned short, size_t, CUstream)) \
	X(cuMemsetD32Async, (CUdeviceptr, unsigned, size_t, CUstream)) \
	X(cuMemsetD2D8Async, (CUdeviceptr, size_t, unsigned char, size_t, size_t, CUstream)) \
	X(cuMemsetD2D32Async, (CUdeviceptr, size_t, unsigned, size_t, size_t, CUstream)) \
	X(cuStreamCreate, (CUstream *, unsigned)) \
	X(cuStreamCreateWithPriority, (CUstream *, unsigned, int)) \
	X(cuStreamDestroy_v2, (CUstream)) \
	X(cuStreamQuery, (CUstream)) \
	X(cuStreamSynchronize, (CUstream)) \
	X(cuStreamWaitEvent, (CUstream, CUevent, unsigned)) \
	X(cuStreamGetPriority, (CUstream, int *)) \
	X(cuStreamIsCapturing, (CUstream, int *)) \
	X(cuStreamBeginCapture_v2, (CUstream, int)) \
	X(cuStreamEndCapture, (CUstream, CUgraph *)) \
	X(cuEventCreate, (CUevent *, unsigned)) \
	X(cuEventDestroy_v2, (CUevent)) \
	X(cuEventRecord, (CUevent, CUstream)) \
	X(cuEventQuery, (CUevent)) \
	X(cuEventSynchronize, (CUevent)) \
	X(cuEventElapsedTime, (float *, CUevent, CUevent)) \
	X(cuModuleLoadDataEx, (CUmodule *, const void *, unsigned, int *, void **)) \
	X(cuModuleUnload, (CUmodule)) \
	X(cuModuleGetFunction, (CUfunction *, CUmodule, const char *)) \
	X(cuModuleGetGlobal_v2, (CUdeviceptr *, size_t *, CUmodule, const char *)) \
	X(cuFuncGetAttribute, (int *, int, CUfunction)) \
	X(cuOccupancyMaxActiveBlocksPerMultiprocessor, (int *, CUfunction, int, size_t)) \
	X(cuLaunchKernel, (CUfunction, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, CUstream, void **, void **)) \
	X(cuLaunchCooperativeKernel, (CUfunction, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, CUstream, void **)) \
	X(cuGraphCreate, (CUgraph *, unsigned)) \
	X(cuGraphDestroy, (CUgraph)) \
	X(cuGraphAddEmptyNode, (CUgraphNode *, CUgraph, const CUgraphNode *, size_t)) \
	X(cuGraphAddKernelNode, (CUgraphNode *, CUgraph, const CUgraphNode *, size_t, const CUkernelParams *)) \
	X(cuGraphAddMemsetNode, (CUgraphNode *, CUgraph, const CUgraphNode *, size_t, const CUfillParams *, CUcontext)) \
	X(cuGraphAddMemcpyNode, (CUgraphNode *, CUgraph, const CUgraphNode *, size_t, const CUcopyParams *, CUcontext)) \
	X(cuGraphAddChildGraphNode, (CUgraphNode *, CUgraph, const CUgraphNode *, size_t, CUgraph)) \
	X(cuGraphAddEventRecordNode, (CUgraphNode *, CUgraph, const CUgraphNode *, size_t, CUevent)) \
	X(cuGraphMemsetNodeGetParams, (CUgraphNode, CUfillParams *)) \
	X(cuGraphInstantiateWithFlags, (CUgraphExec *, CUgraph, unsigned long long)) \
	X(cuGraphExecDestroy, (CUgraphExec)) \
	X(cuGraphExecKernelNodeSetParams, (CUgraphExec, CUgraphNode, const CUkernelParams *)) \
	X(cuGraphExecMemsetNodeSetParams, (CUgraphExec, CUgraphNode, const CUfillParams *, CUcontext)) \
	X(cuGraphExecMemcpyNodeSetParams, (CUgraphExec, CUgraphNode, const CUcopyParams *, CUcontext)) \
	X(cuGraphExecChildGraphNodeSetParams, (CUgraphExec, CUgraphNode, CUgraph)) \
	X(cuGraphLaunch, (CUgraphExec, CUstream))

#define DECLARE(name, params) static CUresult (*name) params;
FUNCTIONS(DECLARE)

enum { MAX_DEVICES = 64 };

static pthread_once_t once = PTHREAD_ONCE_INIT;
static int started = NO_DEVICE; // what hipInit returns
static int devices;
static CUdevice ids[MAX_DEVICES];

static int fromCUDA(CUresult r);

static void startCUDA(void)
{
	void *lib = dlopen(LIBCUDA, RTLD_NOW);
	if (!lib) return;
#define FIND(name, params) \
	if (!(*(void **)&name = dlsym(lib, #name))) { \
		fprintf(stderr, "hip over CUDA: the CUDA driver has no " #name "\n"); \
		return; \
	}
	FUNCTIONS(FIND)
	int r = fromCUDA(cuInit(0)), n = 0;
	if (!r) r = fromCUDA(cuDeviceGetCount(&n));
	if (!r && !n) r = NO_DEVICE;
	for (int i = 0; !r && i < n && i < MAX_DEVICES; i++) r = fromCUDA(cuDeviceGet(&ids[i], i));
	if (!r) devices = n < MAX_DEVICES ? n : MAX_DEVICES;
	started = r;
}

static int start(void)
{
	pthread_once(&once, startCUDA);
	return started;
}

// fromCUDA returns HIP's word for a result. Where HIP has none that is exact, a crash stays one.
static int fromCUDA(CUresult r)
{
	switch (r) {
	case 34: case 36: case 46: case 102: case 223: case 802: case 803: case 804: case 805: case 806: case 807: case 808: case 809: case 812: return NO_DEVICE;
	case 220: return 214; // an error of NVLink's: no word but that for memory
	case 221: case 222: case 224: return INVALID_KERNEL_FILE; // PTX that cannot be compiled here
	case 226: case 714: case 715: case 716: case 717: case 718: case 721: case 810: case 911: return LAUNCH_FAILURE;
	case 402: case 703: case 711: case 800: case 909: case 912: case 913: case 914: case 915: case 916: return UNKNOWN;
	}
	return r;
}

// ---- Threads

static __thread int current;  // device
static __thread int chosen;   // hipSetDevice was called
static __thread int lastCall; // result of the thread's last call

static int done(int r)
{
	lastCall = r;
	return r;
}

static pthread_mutex_t mu = PTHREAD_MUTEX_INITIALIZER; // of contexts, and of all free lists
static CUcontext contexts[MAX_DEVICES];

// contextOf returns a device's context, and makes it if need be.
static int contextOf(int device, CUcontext *ctx)
{
	int r = SUCCESS;
	pthread_mutex_lock(&mu);
	if (!contexts[device]) r = fromCUDA(cuDevicePrimaryCtxRetain(&contexts[device], ids[device]));
	*ctx = contexts[device];
	pthread_mutex_unlock(&mu);
	return r;
}

static int useContext(int device)
{
	CUcontext ctx;
	int r = contextOf(device, &ctx);
	return r ? r : fromCUDA(cuCtxSetCurrent(ctx));
}

// use makes CUDA work on the thread's current device, which must be this one; -1 is any.
static int use(int device)
{
	int r = start();
	if (r) return r;
	if (!chosen) return INVALID_CONTEXT;
	if (device >= 0 && device != current) return INVALID_DEVICE;
	return useContext(current);
}

// useOf makes CUDA work on the device of a stream, an event or what is launched in a stream.
static int useOf(int device)
{
#ifdef STREAM_DEVICE
	int r = start();
	return r ? r : useContext(device);
#else
	return use(device);
#endif
}

#define START() do { int r_ = start(); if (r_) return done(r_); } while (0)
#define USE(device) do { int r_ = use(device); if (r_) return done(r_); } while (0)
#define USE_OF(device) do { int r_ = useOf(device); if (r_) return done(r_); } while (0)
#define WANT(what, code) do { if (!(what)) return done(code); } while (0)
#define CUDA(call) done(fromCUDA(call))

// ---- Objects. Their memory is never given back, so that a handle that was destroyed can be told.

enum { STREAM = 0x5ea1, EVENT, MODULE, EXEC };

typedef struct object {
	int kind; // 0: destroyed
	int device;
	void *cu;
	struct object *next; // free
	// of an event:
	unsigned flags;
	pthread_mutex_t mu;
	struct object *stream; // where it was recorded last, or NULL
	struct wait *waits;
	// of a stream:
	struct object *nextStream; // of all that there are
	int captured;              // it is being captured, and must not be asked about
	// of a module: nothing; of an exec: nothing
} object;

static object *freeObjects;

static object *newObject(int kind, void *cu)
{
	pthread_mutex_lock(&mu);
	object *o = freeObjects;
	if (o)
		freeObjects = o->next;
	else if ((o = calloc(1, sizeof *o)))
		pthread_mutex_init(&o->mu, NULL);
	if (o) {
		o->device = current, o->cu = cu, o->next = NULL, o->flags = 0, o->stream = NULL, o->waits = NULL, o->captured = 0;
		o->kind = kind;
	}
	pthread_mutex_unlock(&mu);
	return o;
}

static void freeObject(object *o)
{
	pthread_mutex_lock(&mu);
	o->kind = 0;
	o->next = freeObjects, freeObjects = o;
	pthread_mutex_unlock(&mu);
}

static int is(const object *o, int kind) { return (uintptr_t)o > 2 && o->kind == kind; }

// A wait is one that a stream was told to make: it is over when its event, which comes behind it in the stream, is.
typedef struct wait {
	CUevent over;
	int device;
	struct wait *next;
} wait;

static wait *freeWaits[MAX_DEVICES];

static void freeWait(wait *w)
{
	pthread_mutex_lock(&mu);
	w->next = freeWaits[w->device], freeWaits[w->device] = w;
	pthread_mutex_unlock(&mu);
}

// newWait returns one for a stream of the device, whose context the thread uses.
static wait *newWait(int device)
{
	pthread_mutex_lock(&mu);
	wait *w = freeWaits[device];
	if (w) freeWaits[device] = w->next;
	pthread_mutex_unlock(&mu);
	if (w) return w;
	if (!(w = calloc(1, sizeof *w))) return NULL;
	w->device = device;
	if (cuEventCreate(&w->over, 2)) {
		free(w);
		return NULL;
	}
	return w;
}

// waitedFor reports whether a stream still waits for the event, whose lock the caller holds.
static int waitedFor(object *e)
{
	int pending = 0;
	for (wait **p = &e->waits; *p;) {
		wait *w = *p;
		if (cuEventQuery(w->over) == NOT_READY) {
			pending = 1;
			p = &w->next;
		} else {
			*p = w->next;
			freeWait(w);
		}
	}
	return pending;
}

// ---- Devices

int hipInit(unsigned flags) { return done(flags ? INVALID_VALUE : start()); }

int hipRuntimeGetVersion(int *version)
{
	START();
	*version = VERSION;
	return done(SUCCESS);
}

int hipDriverGetVersion(int *version) { return hipRuntimeGetVersion(version); }

int hipGetDeviceCount(int *count)
{
	*count = 0;
	START();
	*count = devices;
	return done(SUCCESS);
}

int hipGetDevice(int *device)
{
	START();
	*device = current;
	return done(SUCCESS);
}

int hipSetDevice(int device)
{
	START();
	WANT(device >= 0 && device < devices, INVALID_DEVICE);
	current = device;
	chosen = 1;
	return done(SUCCESS);
}

#define DEVICE(i) \
	START(); \
	WANT((i) >= 0 && (i) < devices, INVALID_DEVICE)

int hipDeviceGet(int *device, int ordinal)
{
	DEVICE(ordinal);
	*device = ordinal;
	return done(SUCCESS);
}

int hipDeviceGetName(char *name, int len, int device) { DEVICE(device); return CUDA(cuDeviceGetName(name, len, ids[device])); }
int hipDeviceGetUuid(void *uuid, int device) { DEVICE(device); return CUDA(cuDeviceGetUuid(uuid, ids[device])); }
int hipDeviceTotalMem(size_t *bytes, int device) { DEVICE(device); return CUDA(cuDeviceTotalMem_v2(bytes, ids[device])); }
int hipDeviceGetPCIBusId(char *id, int len, int device) { DEVICE(device); return CUDA(cuDeviceGetPCIBusId(id, len, ids[device])); }

int hipDeviceGetAttribute(int *value, int attribute, int device)
{
	static const struct { int hip, cuda; } names[] = {
		{2, 40},   // copy engines
		{5, 13},   // clock
		{9, 89},   // concurrent managed access
		{10, 95},  // cooperative launches
		{16, 18},  // integrated
		{19, 38},  // L2 cache
		{23, 75},  // compute capability
		{61, 76},
		{24, 83},  // managed memory
		{25, 106}, // blocks of a multiprocessor
		{26, 2},   // block size
		{27, 3},
		{28, 4},
		{29, 5},   // grid size
		{30, 6},
		{31, 7},
		{56, 1},   // threads in a block
		{57, 39},  // threads of a multiprocessor
		{59, 37},  // width of the bus to the memory
		{60, 36},  // clock of the memory
		{63, 16},  // multiprocessors
		{71, 12},  // registers of a block
		{72, 82},  // registers of a multiprocessor
		{74, 8},   // shared memory of a block
		{75, 8},   // on request: CUDA wants to be asked kernel by kernel for more, and HIP has nothing to ask with
		{87, 10},  // warp size
		{88, 115}, // memory pools
		{90, 99},  // host memory can be registered
		{10002, 81}, // shared memory of a multiprocessor
	};
	DEVICE(device);
	for (size_t i = 0; i < sizeof names / sizeof *names; i++)
		if (names[i].hip == attribute) return CUDA(cuDeviceGetAttribute(value, names[i].cuda, ids[device]));
	return done(INVALID_VALUE);
}

// The struct is hipDeviceProp_tR0600: only what cannot be had otherwise is filled in.
int hipGetDevicePropertiesR0600(char *prop, int device)
{
	enum { SIZE = 1472, UUID = 256, MEMORY = 288, ARCH = 1160 };
	DEVICE(device);
	int major = 0, minor = 0;
	memset(prop, 0, SIZE);
	int r = cuDeviceGetName(prop, 256, ids[device]);
	if (!r) r = cuDeviceGetUuid(prop + UUID, ids[device]);
	if (!r) r = cuDeviceTotalMem_v2((size_t *)(prop + MEMORY), ids[device]);
	if (!r) r = cuDeviceGetAttribute(&major, 75, ids[device]);
	if (!r) r = cuDeviceGetAttribute(&minor, 76, ids[device]);
	snprintf(prop + ARCH, 256, "sm_%d%d", major, minor);
	return CUDA(r);
}

int hipDeviceCanAccessPeer(int *can, int device, int peer)
{
	DEVICE(device);
	WANT(peer >= 0 && peer < devices, INVALID_DEVICE);
	*can = 0;
	return device == peer ? done(SUCCESS) : CUDA(cuDeviceCanAccessPeer(can, ids[device], ids[peer]));
}

int hipDeviceEnablePeerAccess(int peer, unsigned flags)
{
	USE(-1);
	WANT(peer >= 0 && peer < devices && peer != current, INVALID_DEVICE);
	CUcontext ctx;
	int r = contextOf(peer, &ctx);
	return r ? done(r) : CUDA(cuCtxEnablePeerAccess(ctx, flags));
}

// CUDA does not tell the kind of a link, which is what HIP means by its rank too.
int hipDeviceGetP2PAttribute(int *value, int attribute, int device, int peer)
{
	DEVICE(device);
	WANT(peer >= 0 && peer < devices && peer != device, INVALID_DEVICE);
	WANT(attribute >= 0 && attribute <= 3, INVALID_VALUE);
	WANT(attribute, INVALID_HANDLE);
	return CUDA(cuDeviceGetP2PAttribute(value, attribute + 1, ids[device], ids[peer]));
}

int hipExtGetLinkTypeAndHopCount(int device, int peer, unsigned *kind, unsigned *hops)
{
	START();
	WANT(kind && hops && device >= 0 && peer >= 0 && device != peer, INVALID_VALUE);
	WANT(device < devices && peer < devices, INVALID_DEVICE);
	return done(INVALID_HANDLE);
}

int hipDeviceGetStreamPriorityRange(int *least, int *greatest) { USE(-1); return CUDA(cuCtxGetStreamPriorityRange(least, greatest)); }

int hipDeviceSynchronize(void) { USE(-1); return CUDA(cuCtxSynchronize()); }

// ---- Errors

int hipGetLastError(void)
{
	int r = lastCall;
	lastCall = SUCCESS;
	return r;
}

int hipPeekAtLastError(void) { return lastCall; }

const char *hipGetErrorName(int r)
{
	static const struct { int code; const char *name; } names[] = {
		{SUCCESS, "hipSuccess"}, {INVALID_VALUE, "hipErrorInvalidValue"}, {OUT_OF_MEMORY, "hipErrorOutOfMemory"},
		{NOT_INITIALIZED, "hipErrorNotInitialized"}, {DEINITIALIZED, "hipErrorDeinitialized"},
		{INVALID_CONFIGURATION, "hipErrorInvalidConfiguration"}, {NO_DEVICE, "hipErrorNoDevice"}, {INVALID_DEVICE, "hipErrorInvalidDevice"},
		{INVALID_IMAGE, "hipErrorInvalidImage"}, {INVALID_CONTEXT, "hipErrorInvalidContext"}, {INVALID_KERNEL_FILE, "hipErrorInvalidKernelFile"},
		{INVALID_HANDLE, "hipErrorInvalidHandle"}, {ILLEGAL_STATE, "hipErrorIllegalState"}, {NOT_FOUND, "hipErrorNotFound"},
		{NOT_READY, "hipErrorNotReady"}, {700, "hipErrorIllegalAddress"}, {LAUNCH_OUT_OF_RESOURCES, "hipErrorLaunchOutOfResources"},
		{LAUNCH_FAILURE, "hipErrorLaunchFailure"}, {NOT_SUPPORTED, "hipErrorNotSupported"},
	};
	for (size_t i = 0; i < sizeof names / sizeof *names; i++)
		if (names[i].code == r) return names[i].name;
	return "hipErrorUnknown";
}

const char *hipGetErrorString(int r) { return hipGetErrorName(r); }

// ---- Streams and events

// NULL is the default stream of the current device.
#define STREAM_OF(s) \
	WANT(!(s) || is(s, STREAM), INVALID_HANDLE); \
	if (s) USE_OF((s)->device); else USE(-1); \
	CUstream cu = (s) ? (s)->cu : NULL

static pthread_mutex_t streamsMu = PTHREAD_MUTEX_INITIALIZER; // locked before any other
static object *streams;                                       // all that there are

// settle waits for the streams that have nothing left to do, so that CUDA notices what they have freed. No stream is destroyed
// meanwhile.
static int settle(void)
{
	int r = SUCCESS;
	pthread_mutex_lock(&streamsMu);
	for (object *s = streams; s && !r; s = s->nextStream) {
		if (s->captured) continue;
		r = useContext(s->device);
		if (!r && !cuStreamQuery(s->cu)) r = fromCUDA(cuStreamSynchronize(s->cu));
	}
	pthread_mutex_unlock(&streamsMu);
	return r ? r : useContext(current);
}

static void setCaptured(object *s, int is)
{
	pthread_mutex_lock(&streamsMu);
	s->captured = is;
	pthread_mutex_unlock(&streamsMu);
}

// newStream makes a stream of CUDA's, unless that could not be made.
static int newStream(int r, object **stream, CUstream cu)
{
	if (!r && !(*stream = newObject(STREAM, cu))) r = OUT_OF_MEMORY;
	if (!r) {
		pthread_mutex_lock(&streamsMu);
		(*stream)->nextStream = streams, streams = *stream;
		pthread_mutex_unlock(&streamsMu);
	}
	return done(r);
}

int hipStreamCreateWithPriority(object **stream, unsigned flags, int priority)
{
	USE(-1);
	WANT(flags <= 1, INVALID_VALUE);
	CUstream cu;
	int r = fromCUDA(cuStreamCreateWithPriority(&cu, flags, priority));
	return newStream(r, stream, cu);
}

int hipStreamCreateWithFlags(object **stream, unsigned flags)
{
	USE(-1);
	WANT(flags <= 1, INVALID_VALUE);
	CUstream cu;
	int r = fromCUDA(cuStreamCreate(&cu, flags));
	return newStream(r, stream, cu);
}

int hipStreamCreate(object **stream) { return hipStreamCreateWithFlags(stream, 0); }

int hipStreamDestroy(object *s)
{
	WANT(is(s, STREAM), INVALID_HANDLE);
	USE(s->device);
	pthread_mutex_lock(&streamsMu);
	int r = fromCUDA(cuStreamDestroy_v2(s->cu));
	if (!r) {
		object **p = &streams;
		while (*p != s) p = &(*p)->nextStream;
		*p = s->nextStream;
		freeObject(s);
	}
	pthread_mutex_unlock(&streamsMu);
	return done(r);
}

int hipStreamQuery(object *s) { STREAM_OF(s); return CUDA(cuStreamQuery(cu)); }
int hipStreamSynchronize(object *s) { STREAM_OF(s); return CUDA(cuStreamSynchronize(cu)); }

int hipStreamGetDevice(object *s, int *device) { STREAM_OF(s); WANT(s, INVALID_HANDLE); (void)cu; *device = s->device; return done(SUCCESS); }
int hipStreamGetPriority(object *s, int *priority) { STREAM_OF(s); return CUDA(cuStreamGetPriority(cu, priority)); }
int hipStreamIsCapturing(object *s, int *status) { STREAM_OF(s); return CUDA(cuStreamIsCapturing(cu, status)); }

// The modes have the same numbers.
int hipStreamBeginCapture(object *s, int mode)
{
	STREAM_OF(s);
	WANT(s && mode >= 0 && mode <= 2, INVALID_VALUE);
	setCaptured(s, 1);
	int r = fromCUDA(cuStreamBeginCapture_v2(cu, mode));
	if (r) setCaptured(s, 0);
	return done(r);
}

int hipStreamEndCapture(object *s, CUgraph *g)
{
	*g = NULL;
	STREAM_OF(s);
	WANT(s, INVALID_VALUE);
	int r = fromCUDA(cuStreamEndCapture(cu, g));
	setCaptured(s, 0);
	return done(r);
}

int hipEventCreateWithFlags(object **event, unsigned flags)
{
	enum { BLOCKING = 1, NO_TIMING = 2 };
	USE(-1);
	WANT(!(flags & ~(BLOCKING | NO_TIMING)), INVALID_VALUE);
	CUevent cu;
	int r = fromCUDA(cuEventCreate(&cu, flags));
	if (!r && !(*event = newObject(EVENT, cu))) r = OUT_OF_MEMORY;
	if (!r) (*event)->flags = flags;
	return done(r);
}

int hipEventCreate(object **event) { return hipEventCreateWithFlags(event, 0); }

// An event may be destroyed while a stream waits for it.
int hipEventDestroy(object *e)
{
	WANT(is(e, EVENT), INVALID_HANDLE);
	USE(e->device);
	int r = fromCUDA(cuEventDestroy_v2(e->cu));
	if (r) return done(r);
	while (e->waits) {
		wait *w = e->waits;
		e->waits = w->next;
		freeWait(w); // to be recorded anew, which CUDA allows at any time
	}
	freeObject(e);
	return done(SUCCESS);
}

int hipEventRecord(object *e, object *s)
{
	WANT(is(e, EVENT), INVALID_HANDLE);
	STREAM_OF(s);
	WANT(e->device == (s ? s->device : current), INVALID_HANDLE);
	pthread_mutex_lock(&e->mu);
	int r = waitedFor(e) || cuEventQuery(e->cu) == NOT_READY ? ILLEGAL_STATE : fromCUDA(cuEventRecord(e->cu, cu));
	if (!r) e->stream = s;
	pthread_mutex_unlock(&e->mu);
	return done(r);
}

int hipEventQuery(object *e)
{
	WANT(is(e, EVENT), INVALID_HANDLE);
	USE_OF(e->device);
	return CUDA(cuEventQuery(e->cu));
}

int hipEventSynchronize(object *e)
{
	WANT(is(e, EVENT), INVALID_HANDLE);
	USE_OF(e->device);
	return CUDA(cuEventSynchronize(e->cu));
}

int hipEventElapsedTime(float *ms, object *from, object *to)
{
	WANT(is(from, EVENT) && is(to, EVENT) && from->device == to->device, INVALID_HANDLE);
	USE_OF(from->device);
	return CUDA(cuEventElapsedTime(ms, from->cu, to->cu));
}

// The event may be of any device. There is nothing to wait for in its own stream, and where it is done.
int hipStreamWaitEvent(object *s, object *e, unsigned flags)
{
	WANT(is(e, EVENT), INVALID_HANDLE);
	WANT(!flags, INVALID_VALUE);
	STREAM_OF(s);
	pthread_mutex_lock(&e->mu);
	int r = SUCCESS;
	if ((!e->stream || e->stream != s) && cuEventQuery(e->cu)) {
		wait *w = newWait(s ? s->device : current);
		r = w ? fromCUDA(cuStreamWaitEvent(cu, e->cu, 0)) : OUT_OF_MEMORY;
		if (!r) r = fromCUDA(cuEventRecord(w->over, cu));
		if (!r)
			w->next = e->waits, e->waits = w;
		else if (w)
			freeWait(w);
	}
	pthread_mutex_unlock(&e->mu);
	return done(r);
}

// ---- Memory

int hipMalloc(CUdeviceptr *p, size_t size)
{
	USE(-1);
	if (size) return CUDA(cuMemAlloc_v2(p, size));
	*p = 0;
	return done(SUCCESS);
}

int hipFree(CUdeviceptr p) { USE(-1); return p ? CUDA(cuMemFree_v2(p)) : done(SUCCESS); }

int hipMemGetInfo(size_t *available, size_t *total) { USE(-1); return CUDA(cuMemGetInfo_v2(available, total)); }

int hipMemGetAddressRange(CUdeviceptr *base, size_t *size, CUdeviceptr p) { USE(-1); return CUDA(cuMemGetAddressRange_v2(base, size, p)); }

int hipIpcGetMemHandle(ipcHandle *handle, CUdeviceptr p) { USE(-1); return CUDA(cuIpcGetMemHandle(handle, p)); }

int hipIpcOpenMemHandle(CUdeviceptr *p, ipcHandle handle, unsigned flags)
{
	USE(-1);
	WANT(flags == (VERSION >= 60000000), INVALID_VALUE); // hipIpcMemLazyEnablePeerAccess
	return CUDA(cuIpcOpenMemHandle_v2(p, handle, 1));
}

int hipIpcCloseMemHandle(CUdeviceptr p) { USE(-1); return CUDA(cuIpcCloseMemHandle(p)); }

int hipHostMalloc(void **p, size_t size, unsigned flags)
{
	enum { PORTABLE = 1, MAPPED = 2, WRITE_COMBINED = 4 };
	USE(-1);
	WANT(!(flags & ~(PORTABLE | MAPPED | WRITE_COMBINED)), INVALID_VALUE);
	if (size) return CUDA(cuMemHostAlloc(p, size, flags | PORTABLE | MAPPED)); // HIP's always is both
	*p = NULL;
	return done(SUCCESS);
}

int hipHostFree(void *p) { USE(-1); return p ? CUDA(cuMemFreeHost(p)) : done(SUCCESS); }

int hipHostGetDevicePointer(CUdeviceptr *device, void *host, unsigned flags)
{
	USE(-1);
	WANT(!flags, INVALID_VALUE);
	return CUDA(cuMemHostGetDevicePointer_v2(device, host, 0));
}

int hipMallocManaged(CUdeviceptr *p, size_t size, unsigned flags)
{
	USE(-1);
	WANT(size && flags == 1, INVALID_VALUE);
	return CUDA(cuMemAllocManaged(p, size, flags));
}

int hipMemPrefetchAsync(CUdeviceptr p, size_t size, int to, object *s)
{
	enum { CPU = -1, DEVICE = 1, HOST };
	STREAM_OF(s);
	WANT(size && to >= CPU && to < devices, INVALID_VALUE);
	location where = { to == CPU ? HOST : DEVICE, to == CPU ? 0 : to };
	return CUDA(cuMemPrefetchAsync_v2(p, size, where, 0, cu));
}

int hipHostRegister(void *p, size_t size, unsigned flags)
{
	USE(-1);
	WANT(p && size && flags <= 3, INVALID_VALUE);
	return CUDA(cuMemHostRegister_v2(p, size, 3));
}

int hipHostUnregister(void *p) { USE(-1); return CUDA(cuMemHostUnregister(p)); }

// ---- Pools. They are CUDA's own.

enum { DEVICE_LOCATION = 1, EVENT_DEPENDENCIES = 1 };

int hipDeviceGetDefaultMemPool(CUmemoryPool *p, int device) { DEVICE(device); return CUDA(cuDeviceGetDefaultMemPool(p, ids[device])); }
int hipDeviceGetMemPool(CUmemoryPool *p, int device) { DEVICE(device); return CUDA(cuDeviceGetMemPool(p, ids[device])); }
int hipDeviceSetMemPool(int device, CUmemoryPool p) { DEVICE(device); WANT(p, INVALID_VALUE); return CUDA(cuDeviceSetMemPool(ids[device], p)); }

int hipMemPoolCreate(CUmemoryPool *p, const poolProps *props)
{
	enum { PINNED = 1 };
	START();
	WANT(p && props && props->type == PINNED && !props->handles, INVALID_VALUE);
	WANT(props->where.type == DEVICE_LOCATION && props->where.id >= 0 && props->where.id < devices, INVALID_VALUE);
	for (size_t i = 0; i < sizeof props->reserved; i++) WANT(!props->reserved[i], INVALID_VALUE);
	return CUDA(cuMemPoolCreate(p, props));
}

int hipMemPoolDestroy(CUmemoryPool p)
{
	USE(-1);
	WANT(p, INVALID_VALUE);
	int r = settle();
	return r ? done(r) : CUDA(cuMemPoolDestroy(p));
}

int hipMemPoolTrimTo(CUmemoryPool p, size_t keep)
{
	USE(-1);
	WANT(p, INVALID_VALUE);
	int r = settle();
	return r ? done(r) : CUDA(cuMemPoolTrimTo(p, keep));
}

int hipMemPoolGetAttribute(CUmemoryPool p, int attribute, void *value) { START(); WANT(p && value, INVALID_VALUE); return CUDA(cuMemPoolGetAttribute(p, attribute, value)); }
int hipMemPoolSetAttribute(CUmemoryPool p, int attribute, void *value) { START(); WANT(p && value, INVALID_VALUE); return CUDA(cuMemPoolSetAttribute(p, attribute, value)); }

int hipMemPoolSetAccess(CUmemoryPool p, const accessDesc *descs, size_t count)
{
	START();
	WANT(p && descs, INVALID_VALUE);
	for (size_t i = 0; i < count; i++) {
		WANT(descs[i].where.type == DEVICE_LOCATION, INVALID_VALUE);
		WANT(descs[i].where.id >= 0 && descs[i].where.id < devices && descs[i].flags, INVALID_DEVICE);
	}
	return CUDA(cuMemPoolSetAccess(p, descs, count));
}

// An allocation is one of a pool's that has not been freed.
typedef struct allocation {
	CUdeviceptr p;
	object *stream;
	struct allocation *next;
} allocation;

static pthread_mutex_t allocationsMu = PTHREAD_MUTEX_INITIALIZER;
static allocation *allocations;

static void addAllocation(allocation *a)
{
	pthread_mutex_lock(&allocationsMu);
	a->next = allocations, allocations = a;
	pthread_mutex_unlock(&allocationsMu);
}

int hipMallocFromPoolAsync(CUdeviceptr *p, size_t size, CUmemoryPool pool, object *s)
{
	STREAM_OF(s);
	WANT(p && pool, INVALID_VALUE);
	*p = 0;
	if (!size) return done(SUCCESS);
	int events = 0, r = fromCUDA(cuMemPoolGetAttribute(pool, EVENT_DEPENDENCIES, &events));
	if (r) return done(r);
	WANT(!events, ILLEGAL_STATE);
	allocation *a = malloc(sizeof *a);
	WANT(a, OUT_OF_MEMORY);
	if ((r = fromCUDA(cuMemAllocFromPoolAsync(p, size, pool, cu)))) {
		free(a);
		*p = 0;
		return done(r);
	}
	a->p = *p, a->stream = s;
	addAllocation(a);
	return done(SUCCESS);
}

int hipFreeAsync(CUdeviceptr p, object *s)
{
	STREAM_OF(s);
	pthread_mutex_lock(&allocationsMu);
	allocation **at = &allocations;
	while (*at && (*at)->p != p) at = &(*at)->next;
	allocation *a = *at;
	int r = !a ? INVALID_VALUE : a->stream != s ? INVALID_HANDLE : SUCCESS;
	if (!r) *at = a->next; // before somebody else has the address
	pthread_mutex_unlock(&allocationsMu);
	if (r) return done(r);
	if ((r = fromCUDA(cuMemFreeAsync(p, cu))))
		addAllocation(a);
	else
		free(a);
	return done(r);
}

// ---- Transfers

// CUDA finds out itself whose memory an address is.
int hipMemcpy(CUdeviceptr dst, CUdeviceptr src, size_t n, int kind) { USE(-1); return n ? CUDA(cuMemcpy(dst, src, n)) : done(SUCCESS); }

int hipMemcpyAsync(CUdeviceptr dst, CUdeviceptr src, size_t n, int kind, object *s)
{
	STREAM_OF(s);
	return n ? CUDA(cuMemcpyAsync(dst, src, n, cu)) : done(SUCCESS);
}

int hipMemcpyDtoDAsync(CUdeviceptr dst, CUdeviceptr src, size_t n, object *s) { return hipMemcpyAsync(dst, src, n, 3, s); }

int hipMemcpyPeerAsync(CUdeviceptr dst, int to, CUdeviceptr src, int from, size_t n, object *s)
{
	STREAM_OF(s);
	WANT(to >= 0 && to < devices && from >= 0 && from < devices, INVALID_DEVICE);
	CUcontext there, here;
	int r = contextOf(to, &there);
	if (!r) r = contextOf(from, &here);
	if (r || !n) return done(r);
	return CUDA(cuMemcpyPeerAsync(dst, there, src, here, n, cu));
}

int hipMemcpyHtoDAsync(CUdeviceptr dst, void *src, size_t n, object *s)
{
	STREAM_OF(s);
	return n ? CUDA(cuMemcpyHtoDAsync_v2(dst, src, n, cu)) : done(SUCCESS);
}

int hipMemcpyDtoHAsync(void *dst, CUdeviceptr src, size_t n, object *s)
{
	STREAM_OF(s);
	return n ? CUDA(cuMemcpyDtoHAsync_v2(dst, src, n, cu)) : done(SUCCESS);
}

int hipMemset(CUdeviceptr dst, int value, size_t n) { USE(-1); return n ? CUDA(cuMemsetD8_v2(dst, value, n)) : done(SUCCESS); }

#define MEMSET(name, type, call) \
	int name(CUdeviceptr dst, type value, size_t n, object *s) \
	{ \
		STREAM_OF(s); \
		return n ? CUDA(call(dst, value, n, cu)) : done(SUCCESS); \
	}
MEMSET(hipMemsetAsync, int, cuMemsetD8Async)
MEMSET(hipMemsetD8Async, unsigned char, cuMemsetD8Async)
MEMSET(hipMemsetD16Async, unsigned short, cuMemsetD16Async)
MEMSET(hipMemsetD32Async, int, cuMemsetD32Async)

int hipMemset2DAsync(CUdeviceptr dst, size_t pitch, int value, size_t width, size_t height, object *s)
{
	STREAM_OF(s);
	return width && height ? CUDA(cuMemsetD2D8Async(dst, pitch, value, width, height, cu)) : done(SUCCESS);
}

#ifdef MEMSET_D2D32
int hipMemsetD2D32Async(CUdeviceptr dst, size_t pitch, unsigned value, size_t width, size_t height, object *s)
{
	STREAM_OF(s);
	WANT(width % MEMSET_D2D32 == 0, INVALID_VALUE);
	return width && height ? CUDA(cuMemsetD2D32Async(dst, pitch, value, width / MEMSET_D2D32, height, cu)) : done(SUCCESS);
}
#endif

// ---- Modules and kernels

int hipModuleLoadData(object **module, const void *image)
{
	USE(-1);
	CUmodule cu;
	int r = fromCUDA(cuModuleLoadDataEx(&cu, image, 0, NULL, NULL));
	if (!r && !(*module = newObject(MODULE, cu))) r = OUT_OF_MEMORY;
	return done(r);
}

int hipModuleUnload(object *m)
{
	WANT(is(m, MODULE), INVALID_HANDLE);
	USE(m->device);
	int r = fromCUDA(cuModuleUnload(m->cu));
	if (!r) freeObject(m);
	return done(r);
}

int hipModuleGetFunction(CUfunction *f, object *m, const char *name)
{
	WANT(name && *name, INVALID_VALUE);
	WANT(is(m, MODULE), INVALID_HANDLE);
	USE(m->device);
	return CUDA(cuModuleGetFunction(f, m->cu, name));
}

int hipModuleGetGlobal(CUdeviceptr *p, size_t *size, object *m, const char *name)
{
	WANT(name && *name, INVALID_VALUE);
	WANT(is(m, MODULE), INVALID_HANDLE);
	USE(m->device);
	return CUDA(cuModuleGetGlobal_v2(p, size, m->cu, name));
}

int hipFuncGetAttribute(int *value, int attribute, CUfunction f)
{
	WANT(f, INVALID_HANDLE);
	USE(-1);
	return CUDA(cuFuncGetAttribute(value, attribute, f)); // the first ten have the same numbers
}

int hipModuleOccupancyMaxActiveBlocksPerMultiprocessor(int *blocks, CUfunction f, int threads, size_t shared)
{
	WANT(f && blocks, INVALID_VALUE);
	USE(-1);
	return CUDA(cuOccupancyMaxActiveBlocksPerMultiprocessor(blocks, f, threads, shared));
}

// launched returns HIP's word for what became of a launch.
static int launched(CUresult r)
{
	r = fromCUDA(r);
	return r == LAUNCH_OUT_OF_RESOURCES ? LAUNCH_FAILURE : r;
}

int hipModuleLaunchKernel(CUfunction f, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz, unsigned shared,
                          object *s, void **params, void **extra)
{
	WANT(f, INVALID_HANDLE);
	WANT(!extra, NOT_SUPPORTED);
	STREAM_OF(s);
	WANT((uint64_t)gx * bx <= UINT32_MAX, INVALID_CONFIGURATION);
	return done(launched(cuLaunchKernel(f, gx, gy, gz, bx, by, bz, shared, cu, params, NULL)));
}

int hipModuleLaunchCooperativeKernel(CUfunction f, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz, unsigned shared,
                                     object *s, void **params)
{
	WANT(f, INVALID_HANDLE);
	STREAM_OF(s);
	return done(launched(cuLaunchCooperativeKernel(f, gx, gy, gz, bx, by, bz, shared, cu, params)));
}

// ---- Graphs. A graph and its nodes are CUDA's own.

typedef struct {
	unsigned block[3];
	void **extra;
	CUfunction func;
	unsigned grid[3];
	void **params;
	unsigned shared;
} kernelParams; // hipKernelNodeParams

_Static_assert(sizeof(kernelParams) == 64, "HIP's layout");

static CUkernelParams kernelOf(const kernelParams *k)
{
	CUkernelParams p = {.func = k->func, .shared = k->shared, .params = k->params};
	memcpy(p.grid, k->grid, sizeof p.grid);
	memcpy(p.block, k->block, sizeof p.block);
	return p;
}

static CUcopyParams copyOf(CUdeviceptr dst, CUdeviceptr src, size_t n)
{
	enum { UNIFIED = 4 };
	return (CUcopyParams){.src = {.type = UNIFIED, .device = src}, .dst = {.type = UNIFIED, .device = dst}, .width = n, .height = 1, .depth = 1};
}

typedef struct {
	CUdeviceptr dst;
	unsigned elementSize;
	size_t height, pitch;
	unsigned value;
	size_t width;
} fillParams; // hipMemsetParams

_Static_assert(sizeof(fillParams) == 48, "HIP's layout");

// fillOf checks a fill as HIP does: the last row must have room for all of the pitch.
static int fillOf(const fillParams *p, CUfillParams *out)
{
	CUdeviceptr base;
	size_t size;
	if (!p || !p->dst || !p->width || !p->height || (p->elementSize != 1 && p->elementSize != 2 && p->elementSize != 4)) return INVALID_VALUE;
	if (p->height > 1 && p->pitch < p->width * p->elementSize) return INVALID_VALUE;
	if (cuMemGetAddressRange_v2(&base, &size, p->dst) == SUCCESS && p->pitch * p->height > size) return INVALID_VALUE;
	*out = (CUfillParams){p->dst, p->pitch, p->value, p->elementSize, p->width, p->height};
	return SUCCESS;
}

int hipGraphCreate(CUgraph *g, unsigned flags) { USE(-1); return CUDA(cuGraphCreate(g, flags)); }
int hipGraphDestroy(CUgraph g) { USE(-1); return CUDA(cuGraphDestroy(g)); }

int hipGraphAddEmptyNode(CUgraphNode *n, CUgraph g, const CUgraphNode *after, size_t count)
{
	USE(-1);
	return CUDA(cuGraphAddEmptyNode(n, g, after, count));
}

int hipGraphAddKernelNode(CUgraphNode *n, CUgraph g, const CUgraphNode *after, size_t count, const kernelParams *k)
{
	USE(-1);
	WANT(k && k->func, INVALID_VALUE);
	WANT(!k->extra, NOT_SUPPORTED);
	CUkernelParams p = kernelOf(k);
	return done(launched(cuGraphAddKernelNode(n, g, after, count, &p)));
}

int hipGraphAddMemsetNode(CUgraphNode *n, CUgraph g, const CUgraphNode *after, size_t count, const fillParams *p)
{
	USE(-1);
	CUfillParams fill;
	int r = fillOf(p, &fill);
	return r ? done(r) : CUDA(cuGraphAddMemsetNode(n, g, after, count, &fill, contexts[current]));
}

int hipGraphAddMemcpyNode1D(CUgraphNode *n, CUgraph g, const CUgraphNode *after, size_t count, CUdeviceptr dst, CUdeviceptr src, size_t bytes, int kind)
{
	USE(-1);
	WANT(dst && src && bytes, INVALID_VALUE);
	CUcopyParams p = copyOf(dst, src, bytes);
	return CUDA(cuGraphAddMemcpyNode(n, g, after, count, &p, contexts[current]));
}

// Callers look whether this is there. To be called it would want one of HIP's contexts.
int hipDrvGraphAddMemcpyNode(CUgraphNode *n, CUgraph g, const CUgraphNode *after, size_t count, const void *params, void *ctx)
{
	return done(NOT_SUPPORTED);
}

int hipGraphAddChildGraphNode(CUgraphNode *n, CUgraph g, const CUgraphNode *after, size_t count, CUgraph child)
{
	USE(-1);
	return CUDA(cuGraphAddChildGraphNode(n, g, after, count, child));
}

int hipGraphAddEventRecordNode(CUgraphNode *n, CUgraph g, const CUgraphNode *after, size_t count, object *e)
{
	WANT(is(e, EVENT), INVALID_HANDLE);
	USE(e->device);
	return CUDA(cuGraphAddEventRecordNode(n, g, after, count, e->cu));
}

int hipGraphInstantiateWithFlags(object **x, CUgraph g, unsigned long long flags)
{
	USE(-1);
	WANT(!flags, INVALID_VALUE);
	CUgraphExec cu;
	int r = fromCUDA(cuGraphInstantiateWithFlags(&cu, g, 0));
	if (!r && !(*x = newObject(EXEC, cu))) r = OUT_OF_MEMORY;
	return done(r);
}

#define EXEC_OF(x) \
	WANT(is(x, EXEC), INVALID_VALUE); \
	USE((x)->device)

int hipGraphExecDestroy(object *x)
{
	EXEC_OF(x);
	int r = fromCUDA(cuGraphExecDestroy(x->cu));
	if (!r) freeObject(x);
	return done(r);
}

int hipGraphExecKernelNodeSetParams(object *x, CUgraphNode n, const kernelParams *k)
{
	EXEC_OF(x);
	WANT(n && k && k->func, INVALID_VALUE);
	WANT(!k->extra, NOT_SUPPORTED);
	CUkernelParams p = kernelOf(k);
	return done(launched(cuGraphExecKernelNodeSetParams(x->cu, n, &p)));
}

// HIP lets a fill of several rows keep its shape only.
int hipGraphExecMemsetNodeSetParams(object *x, CUgraphNode n, const fillParams *p)
{
	EXEC_OF(x);
	CUfillParams was, fill;
	int r = n ? fillOf(p, &fill) : INVALID_VALUE;
	if (!r) r = fromCUDA(cuGraphMemsetNodeGetParams(n, &was));
	if (!r && p->height > 1 && (p->height != was.height || p->width * p->elementSize != was.width * was.elementSize)) r = INVALID_VALUE;
	return r ? done(r) : CUDA(cuGraphExecMemsetNodeSetParams(x->cu, n, &fill, contexts[current]));
}

int hipGraphExecMemcpyNodeSetParams1D(object *x, CUgraphNode n, CUdeviceptr dst, CUdeviceptr src, size_t bytes, int kind)
{
	EXEC_OF(x);
	WANT(n && dst && src && bytes && dst != src, INVALID_VALUE);
	CUcopyParams p = copyOf(dst, src, bytes);
	return CUDA(cuGraphExecMemcpyNodeSetParams(x->cu, n, &p, contexts[current]));
}

int hipGraphExecChildGraphNodeSetParams(object *x, CUgraphNode n, CUgraph child)
{
	EXEC_OF(x);
	WANT(n && child, INVALID_VALUE);
	return CUDA(cuGraphExecChildGraphNodeSetParams(x->cu, n, child));
}

int hipGraphLaunch(object *x, object *s)
{
	WANT(is(x, EXEC), INVALID_VALUE);
	STREAM_OF(s);
	WANT(x->device == (s ? s->device : current), INVALID_DEVICE);
	return done(launched(cuGraphLaunch(x->cu, cu)));
}
