// A HIP runtime without a device. VERSION is what hipRuntimeGetVersion tells, VERSION_RESULT what it returns, and
// INIT_RESULT what asks for a device returns.
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
