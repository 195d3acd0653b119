// A library with only the functions by which a program asks whether it can be used. A file beside it,
// with the library's name and .answer, has its answer: 0, as without the file, or an error code. The
// macro LIBRARY says which library it is.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

#define CUDA 1
#define NVML 2
#define HIP 3
#define NCCL 4
#define NVRTC 5
#define NVJITLINK 6
#define HIPRTC 7

static int answer(void)
{
	Dl_info info;
	char path[4096];
	int code = 0;
	if (!dladdr((void *)answer, &info))
		return 1;
	snprintf(path, sizeof path, "%s.answer", info.dli_fname);
	FILE *f = fopen(path, "r");
	if (!f)
		return 0;
	if (fscanf(f, "%d", &code) != 1)
		code = 1;
	fclose(f);
	return code;
}

#if LIBRARY == CUDA
int cuDriverGetVersion(int *version) { *version = 12040; return answer() == 34 ? 34 : 0; }
int cuInit(unsigned flags) { return flags ? 1 : answer(); }
int cuDeviceGetCount(int *count) { *count = answer() == 0; return answer() == 0 ? 0 : 3; }
int cuDeviceGetName(char *name, int n, int device) { snprintf(name, n, "Fake GPU"); return 0; }
#elif LIBRARY == NVML
static int started;
int nvmlSystemGetNVMLVersion(char *text, unsigned n) { snprintf(text, n, "12.550.54.15"); return 0; }
int nvmlInit_v2(void) { started += answer() == 0; return answer(); }
int nvmlShutdown(void) { return started-- > 0 ? 0 : 1; }
int nvmlDeviceGetCount_v2(unsigned *count) { *count = 1; return started ? 0 : 1; }
#elif LIBRARY == HIP
int hipRuntimeGetVersion(int *version) { *version = 60443484; return 0; }
int hipInit(unsigned flags) { return answer(); }
int hipGetDeviceCount(int *count) { *count = answer() == 0; return answer(); }
#elif LIBRARY == NCCL
int ncclGetVersion(int *version) { *version = 22803; return answer(); }
#elif LIBRARY == NVRTC
int nvrtcVersion(int *major, int *minor) { *major = 12, *minor = 4; return answer(); }
#elif LIBRARY == NVJITLINK
int nvJitLinkVersion(unsigned *major, unsigned *minor) { *major = 12, *minor = 4; return answer(); }
#elif LIBRARY == HIPRTC
int hiprtcVersion(int *major, int *minor) { *major = 6, *minor = 4; return answer(); }
#endif
