// The fake CUDA driver of package cudadriver's tests, with additions for gpubench. The group calls needs
// modules loaded without options, and functions found through the driver. The group graph needs a
// kernel "empty" with a pointer, the group kernel a kernel "index" with four parameters, and the group
// pool allocation from the current pool.
#define _GNU_SOURCE
#include <dlfcn.h>
#define cuFuncGetParamInfo otherParamInfo
#define cuModuleGetFunction otherFunction
#include "../../../runtime/driver/cudadriver/testdata/driver.c"
#undef cuFuncGetParamInfo
#undef cuModuleGetFunction

int cuModuleLoadData(uintptr_t *m, const char *image) { CREATE(""); LIVE(1); *m = MODULE; return OK; }

enum { INDEX = FUNCTION + 8 };

int cuModuleGetFunction(uintptr_t *f, uintptr_t m, const char *name)
{
	if (strcmp(name, "index")) return otherFunction(f, m, name);
	CREATE("%s", name);
	*f = INDEX;
	return OK;
}

int cuFuncGetParamInfo(uintptr_t f, size_t i, size_t *offset, size_t *size)
{
	if (f == INDEX) {
		static const size_t offsets[] = { 0, 8, 12, 16 }, sizes[] = { 8, 4, 4, 8 };
		CREATE("%zu", i);
		if (i > 3) return INVALID_VALUE;
		*offset = offsets[i], *size = sizes[i];
		return OK;
	}
	if (f != FUNCTION) return otherParamInfo(f, i, offset, size);
	CREATE("%zu", i);
	if (i > 0) return INVALID_VALUE;
	*offset = 0, *size = 8;
	return OK;
}

int cuMemAllocAsync(uint64_t *p, size_t n, uintptr_t s) { return cuMemAllocFromPoolAsync(p, n, POOL + 16 * (s - STREAM), s); }

// The newest ABI is the only one here.
int cuGetProcAddress_v2(const char *name, void **fn, int version, uint64_t flags, int *status)
{
	static void *self;
	Dl_info info;
	if (!self && dladdr(&self, &info)) self = dlopen(info.dli_fname, RTLD_LAZY | RTLD_NOLOAD);
	static const char *const suffixes[] = { "_v4", "_v3", "_v2", "" };
	*fn = NULL;
	for (int i = 0; i < 4 && !*fn; i++) {
		char full[128];
		snprintf(full, sizeof full, "%s%s", name, suffixes[i]);
		*fn = dlsym(self, full);
	}
	*status = *fn ? 0 : 1;
	return OK;
}
