// A CUDA driver without a device. Macros say how it behaves:
//
//	VERSION         what cuDriverGetVersion tells; functions that came later are left out
//	VERSION_RESULT  what cuDriverGetVersion returns
//	INIT_RESULT     what cuInit returns
//	PROC            0: no cuGetProcAddress; 1: the one of CUDA 11.3; 2: the one of 12.0 too
//	PROC_STATUS     what the latter says of a function it does not know: 1 not found, 2 not at this version
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#ifndef VERSION
#define VERSION 13000
#endif
#ifndef VERSION_RESULT
#define VERSION_RESULT 0
#endif
#ifndef INIT_RESULT
#define INIT_RESULT 0
#endif
#ifndef PROC
#define PROC 2
#endif
#ifndef PROC_STATUS
#define PROC_STATUS 1
#endif

int cuDriverGetVersion(int *version) {
	*version = VERSION;
	return VERSION_RESULT;
}

int cuInit(unsigned flags) { return flags == 0 ? INIT_RESULT : 1; }

// The codes that tests ask for come in as handles.
int cuStreamQuery(uintptr_t stream) { return (int)stream; }
int cuEventQuery(uintptr_t event) { return (int)event; }

// A program may have a function called in every call that fails, before its outputs are written.
typedef void logger(void *data, int level, char *message, size_t length);
static logger *log_function;
static void *log_data;

#if VERSION >= 12090
int cuLogsRegisterCallback(logger *fn, void *data, uintptr_t *handle) {
	log_function = fn;
	log_data = data;
	*handle = 1;
	return 0;
}

int cuLogsUnregisterCallback(uintptr_t handle) {
	log_function = NULL;
	return handle != 1;
}
#endif

int cuDeviceGetAttribute(int *value, int attribute, int device) {
	if (device != 0 && log_function)
		log_function(log_data, 1, "no such device", 14);
	*value = attribute * 10;
	return device;
}

#if VERSION >= 13000
int cuDeviceGetHostAtomicCapabilities(unsigned *capabilities, const unsigned *operations, unsigned count, int device) {
	for (unsigned i = 0; i < count; i++)
		capabilities[i] = 2 * operations[i] + 1;
	return device;
}
#endif

int cuOccupancyMaxPotentialBlockSize(int *grid, int *block, uintptr_t f, size_t (*shared)(int), size_t size, int limit) {
	size_t sum = size;
	for (int n = 32; shared && n <= 1024; n *= 2)
		sum += shared(n);
	*grid = (int)sum;
	*block = limit;
	return (int)f;
}

// The first parameter of a launch is a counter; the result is the code that the stream stands for.
int cuLaunchKernel(uintptr_t f, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz, unsigned shared,
                   uintptr_t stream, void **params, void **extra) {
	if (f != 1 || gx != 2 || gy != 3 || gz != 4 || bx != 5 || by != 6 || bz != 7 || shared != 8 || extra)
		return 1;
	++*(uint64_t *)params[0];
	return (int)stream;
}

// A context tells who made it: 'D' for the functions that dlsym finds, 'P' for those of cuGetProcAddress, then the ABI, the
// flags and the device.
#define CONTEXT(way, abi, flags, dev) ((uintptr_t)(way) << 24 | (abi) << 16 | (flags) << 8 | (dev))
#define CREATE_V1(name, way, abi) \
	int name(uintptr_t *c, unsigned flags, int dev) { *c = CONTEXT(way, abi, flags, dev); return 0; }
#define CREATE_V3(name, way) \
	int name(uintptr_t *c, void *affinity, int count, unsigned flags, int dev) { \
		*c = CONTEXT(way, 3, flags, dev); \
		return count != (affinity ? 2 : 0); \
	}
#define CREATE_V4(name, way) \
	int name(uintptr_t *c, void *params, unsigned flags, int dev) { *c = CONTEXT(way, 4, flags, dev); return params == NULL; }

CREATE_V1(cuCtxCreate, 'D', 1)
CREATE_V1(cuCtxCreate_v2, 'D', 2)
#if VERSION >= 11040
CREATE_V3(cuCtxCreate_v3, 'D')
#endif
#if VERSION >= 12050
CREATE_V4(cuCtxCreate_v4, 'D')
#endif

#if PROC > 0
static CREATE_V1(create1, 'P', 1)
static CREATE_V1(create2, 'P', 2)
static CREATE_V3(create3, 'P')
static CREATE_V4(create4, 'P')

// find picks the newest ABI that version has, as the driver does.
static void *find(const char *name, int version) {
	if (strcmp(name, "cuCtxCreate"))
		return NULL;
	return version >= 12050 ? (void *)create4 : version >= 11040 ? (void *)create3 : version >= 3020 ? (void *)create2 : (void *)create1;
}

int cuGetProcAddress(const char *name, void **fn, int version, uint64_t flags) {
	if (version > VERSION || flags != 1)
		return 1;
	*fn = find(name, version);
	return *fn ? 0 : 500;
}
#endif

#if PROC > 1
int cuGetProcAddress_v2(const char *name, void **fn, int version, uint64_t flags, int *status) {
	if (version > VERSION || flags != 1)
		return 1;
	*fn = find(name, version);
	*status = *fn ? 0 : PROC_STATUS;
	return 0;
}
#endif
