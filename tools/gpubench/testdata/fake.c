// The fake CUDA driver of package cudadriver's tests, with what the calls group needs besides: modules that are loaded
// without options, and functions that are found through the driver.
#define _GNU_SOURCE
#include <dlfcn.h>
#include "../../../runtime/driver/cudadriver/testdata/driver.c"

int cuModuleLoadData(uintptr_t *m, const char *image) { CREATE(""); LIVE(1); *m = MODULE; return OK; }

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
