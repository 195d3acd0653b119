// A HIP runtime without a device. VERSION is what hipRuntimeGetVersion tells, VERSION_RESULT what it returns, and
// INIT_RESULT what asks for a device returns. It has one fill node, and remembers what that was last told to fill.
#include <stddef.h>
#include <stdint.h>

#ifndef VERSION
#define VERSION 60443484
#endif
#ifndef VERSION_RESULT
#define VERSION_RESULT 0
#endif
#ifndef INIT_RESULT
#define INIT_RESULT 0
#endif

int hipRuntimeGetVersion(int *version) {
	*version = VERSION;
	return VERSION_RESULT;
}

int hipInit(unsigned flags) { return INIT_RESULT; }

int hipGetDeviceCount(int *count) {
	*count = INIT_RESULT ? 0 : 2;
	return INIT_RESULT;
}

// The codes that tests ask for come in as handles.
int hipStreamQuery(uintptr_t stream) { return (int)stream; }
int hipEventQuery(uintptr_t event) { return (int)event; }

int hipDeviceGetAttribute(int *value, int attribute, int device) {
	*value = attribute * 10;
	return device;
}

int hipModuleLaunchKernel(uintptr_t f, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz, unsigned shared,
                          uintptr_t stream, void **params, void **extra) {
	if (f != 1 || gx != 2 || gy != 3 || gz != 4 || bx != 5 || by != 6 || bz != 7 || shared != 8 || extra)
		return 1;
	++*(uint64_t *)params[0];
	return (int)stream;
}

typedef struct {
	void *dst;
	unsigned elementSize;
	size_t height, pitch;
	unsigned value;
	size_t width;
} memsetParams; // hipMemsetParams, which is the same in all releases

static memsetParams fill;

int hipGraphAddMemsetNode(uintptr_t *node, uintptr_t graph, const uintptr_t *after, size_t count, const memsetParams *p) {
	*node = 1;
	fill = *p;
	return 0;
}

int hipGraphMemsetNodeGetParams(uintptr_t node, memsetParams *p) {
	*p = fill;
	return 0;
}

int hipGraphMemsetNodeSetParams(uintptr_t node, const memsetParams *p) {
	fill = *p;
	return 0;
}

int hipGraphExecMemsetNodeSetParams(uintptr_t exec, uintptr_t node, const memsetParams *p) {
	fill = *p;
	return 0;
}

#if VERSION >= 60200000
#if VERSION >= 70000000
typedef memsetParams drvMemsetParams;
#else
typedef struct {
	void *dst;
	size_t pitch;
	unsigned value, elementSize;
	size_t width, height;
} drvMemsetParams; // HIP_MEMSET_NODE_PARAMS
#endif

int hipDrvGraphAddMemsetNode(uintptr_t *node, uintptr_t graph, const uintptr_t *after, size_t count, const drvMemsetParams *p, uintptr_t ctx) {
	*node = 1;
	fill = (memsetParams){p->dst, p->elementSize, p->height, p->pitch, p->value, p->width};
	return 0;
}

int hipDrvGraphExecMemsetNodeSetParams(uintptr_t exec, uintptr_t node, const drvMemsetParams *p, uintptr_t ctx) {
	fill = (memsetParams){p->dst, p->elementSize, p->height, p->pitch, p->value, p->width};
	return 0;
}
#endif
