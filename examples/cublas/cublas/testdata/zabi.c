/* Generated from the table of cublas: every function, recording what it is called with. */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct CUstream_st *CUstream;
typedef unsigned int cudaDataType;
typedef unsigned int cudaDataType_t;
typedef CUstream cudaStream_t;
typedef unsigned int libraryPropertyType;
typedef struct cublasContext *cublasHandle_t;
typedef struct cublasLtContext *cublasLtHandle_t;
typedef uint64_t cublasLtNumericalImplFlags_t;
typedef unsigned int cublasStatus_t;
typedef unsigned int cublasFillMode_t;
typedef unsigned int cublasDiagType_t;
typedef unsigned int cublasSideMode_t;
typedef unsigned int cublasOperation_t;
typedef unsigned int cublasPointerMode_t;
typedef unsigned int cublasAtomicsMode_t;
typedef int cublasGemmAlgo_t;
typedef unsigned int cublasMath_t;
typedef unsigned int cublasComputeType_t;
typedef unsigned int cublasLtMatmulTile_t;
typedef unsigned int cublasLtMatmulStages_t;
typedef unsigned int cublasLtClusterShape_t;
typedef unsigned int cublasLtMatmulInnerShape_t;
typedef unsigned int cublasLtPointerMode_t;
typedef unsigned int cublasLtPointerModeMask_t;
typedef unsigned int cublasLtOrder_t;
typedef unsigned int cublasLtMatrixLayoutAttribute_t;
typedef unsigned int cublasLtMatmulDescAttributes_t;
typedef unsigned int cublasLtMatrixTransformDescAttributes_t;
typedef unsigned int cublasLtReductionScheme_t;
typedef unsigned int cublasLtEpilogue_t;
typedef unsigned int cublasLtMatmulSearch_t;
typedef unsigned int cublasLtMatmulPreferenceAttributes_t;
typedef unsigned int cublasLtMatmulAlgoCapAttributes_t;
typedef unsigned int cublasLtMatmulAlgoConfigAttributes_t;
typedef void (*cublasLogCallback)(void);
typedef void (*cublasLtLoggerCallback_t)(void);
typedef struct cuComplex cuComplex;
typedef struct cuDoubleComplex cuDoubleComplex;
typedef struct cublasLtMatrixLayoutOpaque_t cublasLtMatrixLayoutOpaque_t;
typedef struct cublasLtMatmulAlgo_t cublasLtMatmulAlgo_t;
typedef struct cublasLtMatmulDescOpaque_t cublasLtMatmulDescOpaque_t;
typedef struct cublasLtMatrixTransformDescOpaque_t cublasLtMatrixTransformDescOpaque_t;
typedef struct cublasLtMatmulPreferenceOpaque_t cublasLtMatmulPreferenceOpaque_t;
typedef struct cublasLtMatmulHeuristicResult_t cublasLtMatmulHeuristicResult_t;
typedef cudaDataType cublasDataType_t;
typedef cublasLtMatrixLayoutOpaque_t *cublasLtMatrixLayout_t;
typedef cublasLtMatmulDescOpaque_t *cublasLtMatmulDesc_t;
typedef cublasLtMatrixTransformDescOpaque_t *cublasLtMatrixTransformDesc_t;
typedef cublasLtMatmulPreferenceOpaque_t *cublasLtMatmulPreference_t;
struct cuComplex {
	_Alignas(8) float x;
	float y;
};
_Static_assert(sizeof(cuComplex) == 8, "size of cuComplex");
_Static_assert(offsetof(cuComplex, x) == 0, "offset of cuComplex.x");
_Static_assert(offsetof(cuComplex, y) == 4, "offset of cuComplex.y");
struct cuDoubleComplex {
	_Alignas(16) double x;
	double y;
};
_Static_assert(sizeof(cuDoubleComplex) == 16, "size of cuDoubleComplex");
_Static_assert(offsetof(cuDoubleComplex, x) == 0, "offset of cuDoubleComplex.x");
_Static_assert(offsetof(cuDoubleComplex, y) == 8, "offset of cuDoubleComplex.y");
struct cublasLtMatrixLayoutOpaque_t {
	uint64_t data[8];
};
_Static_assert(sizeof(cublasLtMatrixLayoutOpaque_t) == 64, "size of cublasLtMatrixLayoutOpaque_t");
_Static_assert(offsetof(cublasLtMatrixLayoutOpaque_t, data) == 0, "offset of cublasLtMatrixLayoutOpaque_t.data");
struct cublasLtMatmulAlgo_t {
	uint64_t data[8];
};
_Static_assert(sizeof(cublasLtMatmulAlgo_t) == 64, "size of cublasLtMatmulAlgo_t");
_Static_assert(offsetof(cublasLtMatmulAlgo_t, data) == 0, "offset of cublasLtMatmulAlgo_t.data");
struct cublasLtMatmulDescOpaque_t {
	uint64_t data[32];
};
_Static_assert(sizeof(cublasLtMatmulDescOpaque_t) == 256, "size of cublasLtMatmulDescOpaque_t");
_Static_assert(offsetof(cublasLtMatmulDescOpaque_t, data) == 0, "offset of cublasLtMatmulDescOpaque_t.data");
struct cublasLtMatrixTransformDescOpaque_t {
	uint64_t data[8];
};
_Static_assert(sizeof(cublasLtMatrixTransformDescOpaque_t) == 64, "size of cublasLtMatrixTransformDescOpaque_t");
_Static_assert(offsetof(cublasLtMatrixTransformDescOpaque_t, data) == 0, "offset of cublasLtMatrixTransformDescOpaque_t.data");
struct cublasLtMatmulPreferenceOpaque_t {
	uint64_t data[8];
};
_Static_assert(sizeof(cublasLtMatmulPreferenceOpaque_t) == 64, "size of cublasLtMatmulPreferenceOpaque_t");
_Static_assert(offsetof(cublasLtMatmulPreferenceOpaque_t, data) == 0, "offset of cublasLtMatmulPreferenceOpaque_t.data");
struct cublasLtMatmulHeuristicResult_t {
	cublasLtMatmulAlgo_t algo;
	size_t workspaceSize;
	cublasStatus_t state;
	float wavesCount;
	int reserved[4];
};
_Static_assert(sizeof(cublasLtMatmulHeuristicResult_t) == 96, "size of cublasLtMatmulHeuristicResult_t");
_Static_assert(offsetof(cublasLtMatmulHeuristicResult_t, algo) == 0, "offset of cublasLtMatmulHeuristicResult_t.algo");
_Static_assert(offsetof(cublasLtMatmulHeuristicResult_t, workspaceSize) == 64, "offset of cublasLtMatmulHeuristicResult_t.workspaceSize");
_Static_assert(offsetof(cublasLtMatmulHeuristicResult_t, state) == 72, "offset of cublasLtMatmulHeuristicResult_t.state");
_Static_assert(offsetof(cublasLtMatmulHeuristicResult_t, wavesCount) == 76, "offset of cublasLtMatmulHeuristicResult_t.wavesCount");
_Static_assert(offsetof(cublasLtMatmulHeuristicResult_t, reserved) == 80, "offset of cublasLtMatmulHeuristicResult_t.reserved");

/* One record a call. kind 'v' is an argument as passed, 'm' the memory that it points to. */
struct record { uint32_t param, kind, size, offset; };
struct echo {
	uint32_t function, fail, count, used;
	struct record records[128];
	unsigned char bytes[1 << 16];
} puregpu_echo;
unsigned char puregpu_arena[4096]; /* pointers that mean nothing lead here */

static void begin(uint32_t function) {
	puregpu_echo.function = function;
	puregpu_echo.count = puregpu_echo.used = 0;
}
static void put(uint32_t param, uint32_t kind, const void *p, size_t size) {
	struct echo *e = &puregpu_echo;
	if (e->count == 128 || size > sizeof e->bytes - e->used) { e->count = 0xffff; return; }
	struct record *r = &e->records[e->count++];
	r->param = param; r->kind = kind; r->size = (uint32_t)size; r->offset = e->used;
	__builtin_memcpy(e->bytes + e->used, p, size);
	e->used += (uint32_t)size;
}
static uint64_t next(uint64_t *s) { /* splitmix64 */
	uint64_t z = (*s += 0x9e3779b97f4a7c15u);
	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
	z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
	return z ^ (z >> 31);
}
/* fill writes size bytes from a seed; where a pointer lies it is one into the arena, since Go looks at pointers. */
static void fill(void *p, size_t size, uint64_t seed, const uint16_t *ptrs, int nptrs) {
	unsigned char *b = p;
	if (!p) return;
	for (size_t i = 0; i < size; i++) b[i] = (unsigned char)next(&seed);
	for (int i = 0; i < nptrs; i++) {
		void *q = puregpu_arena + (b[ptrs[i]] | (unsigned)(b[ptrs[i] + 1] & 15) << 8);
		__builtin_memcpy(b + ptrs[i], &q, sizeof q);
	}
}
static void text(uint32_t param, const char *p) { if (p) put(param, 'm', p, __builtin_strlen(p) + 1); }
#define VALUE(i, x) put(i, 'v', &(x), sizeof(x))
#define MEMORY(i, p, n) do { if (p) put(i, 'm', (p), (n)); } while (0)

cublasStatus_t cublasCreate_v2(cublasHandle_t *p_handle) {
	begin(0);
	VALUE(0, p_handle);
	fill(p_handle, sizeof *p_handle, 0xcf5d1752cfbb2907u, 0, 0);
	return (cublasStatus_t)(puregpu_echo.fail ? 974 : 0);
}

cublasStatus_t cublasDestroy_v2(cublasHandle_t p_handle) {
	begin(1);
	VALUE(0, p_handle);
	return (cublasStatus_t)(puregpu_echo.fail ? 938 : 0);
}

cublasStatus_t cublasGetVersion_v2(cublasHandle_t p_handle, int *p_version) {
	begin(2);
	VALUE(0, p_handle);
	VALUE(1, p_version);
	fill(p_version, sizeof *p_version, 0x7966b4103f383340u, 0, 0);
	return (cublasStatus_t)(puregpu_echo.fail ? 985 : 0);
}

cublasStatus_t cublasGetProperty(libraryPropertyType p_type, int *p_value) {
	begin(3);
	VALUE(0, p_type);
	VALUE(1, p_value);
	fill(p_value, sizeof *p_value, 0xbf6ec04de0c68148u, 0, 0);
	return (cublasStatus_t)(puregpu_echo.fail ? 986 : 0);
}

size_t cublasGetCudartVersion(void) {
	begin(4);
	return (size_t)(uintptr_t)(puregpu_echo.fail == 2 ? 0 : 963);
}

cublasStatus_t cublasSetWorkspace_v2(cublasHandle_t p_handle, void *p_workspace, size_t p_workspaceSizeInBytes) {
	begin(5);
	VALUE(0, p_handle);
	VALUE(1, p_workspace);
	VALUE(2, p_workspaceSizeInBytes);
	return (cublasStatus_t)(puregpu_echo.fail ? 971 : 0);
}

cublasStatus_t cublasSetStream_v2(cublasHandle_t p_handle, cudaStream_t p_streamId) {
	begin(6);
	VALUE(0, p_handle);
	VALUE(1, p_streamId);
	return (cublasStatus_t)(puregpu_echo.fail ? 982 : 0);
}

cublasStatus_t cublasGetStream_v2(cublasHandle_t p_handle, cudaStream_t *p_streamId) {
	begin(7);
	VALUE(0, p_handle);
	VALUE(1, p_streamId);
	fill(p_streamId, sizeof *p_streamId, 0xa8057c115444acfau, 0, 0);
	return (cublasStatus_t)(puregpu_echo.fail ? 960 : 0);
}

cublasStatus_t cublasGetPointerMode_v2(cublasHandle_t p_handle, cublasPointerMode_t *p_mode) {
	begin(8);
	VALUE(0, p_handle);
	VALUE(1, p_mode);
	fill(p_mode, sizeof *p_mode, 0xc1a2b6fa0141e436u, 0, 0);
	return (cublasStatus_t)(puregpu_echo.fail ? 945 : 0);
}

cublasStatus_t cublasSetPointerMode_v2(cublasHandle_t p_handle, cublasPointerMode_t p_mode) {
	begin(9);
	VALUE(0, p_handle);
	VALUE(1, p_mode);
	return (cublasStatus_t)(puregpu_echo.fail ? 909 : 0);
}

cublasStatus_t cublasGetAtomicsMode(cublasHandle_t p_handle, cublasAtomicsMode_t *p_mode) {
	begin(10);
	VALUE(0, p_handle);
	VALUE(1, p_mode);
	fill(p_mode, sizeof *p_mode, 0x416fbec5704ab422u, 0, 0);
	return (cublasStatus_t)(puregpu_echo.fail ? 915 : 0);
}

cublasStatus_t cublasSetAtomicsMode(cublasHandle_t p_handle, cublasAtomicsMode_t p_mode) {
	begin(11);
	VALUE(0, p_handle);
	VALUE(1, p_mode);
	return (cublasStatus_t)(puregpu_echo.fail ? 919 : 0);
}

cublasStatus_t cublasGetMathMode(cublasHandle_t p_handle, cublasMath_t *p_mode) {
	begin(12);
	VALUE(0, p_handle);
	VALUE(1, p_mode);
	fill(p_mode, sizeof *p_mode, 0xb8978ab65041db60u, 0, 0);
	return (cublasStatus_t)(puregpu_echo.fail ? 944 : 0);
}

cublasStatus_t cublasSetMathMode(cublasHandle_t p_handle, cublasMath_t p_mode) {
	begin(13);
	VALUE(0, p_handle);
	VALUE(1, p_mode);
	return (cublasStatus_t)(puregpu_echo.fail ? 936 : 0);
}

cublasStatus_t cublasGetSmCountTarget(cublasHandle_t p_handle, int *p_smCountTarget) {
	begin(14);
	VALUE(0, p_handle);
	VALUE(1, p_smCountTarget);
	fill(p_smCountTarget, sizeof *p_smCountTarget, 0xd5b2b3721172cb81u, 0, 0);
	return (cublasStatus_t)(puregpu_echo.fail ? 959 : 0);
}

cublasStatus_t cublasSetSmCountTarget(cublasHandle_t p_handle, int p_smCountTarget) {
	begin(15);
	VALUE(0, p_handle);
	VALUE(1, p_smCountTarget);
	return (cublasStatus_t)(puregpu_echo.fail ? 967 : 0);
}

const char *cublasGetStatusName(cublasStatus_t p_status) {
	begin(16);
	VALUE(0, p_status);
	return "cublasGetStatusName";
}

const char *cublasGetStatusString(cublasStatus_t p_status) {
	begin(17);
	VALUE(0, p_status);
	return "cublasGetStatusString";
}

cublasStatus_t cublasLoggerConfigure(int p_logIsOn, int p_logToStdOut, int p_logToStdErr, const char *p_logFileName) {
	begin(18);
	VALUE(0, p_logIsOn);
	VALUE(1, p_logToStdOut);
	VALUE(2, p_logToStdErr);
	VALUE(3, p_logFileName);
	text(3, p_logFileName);
	return (cublasStatus_t)(puregpu_echo.fail ? 973 : 0);
}

cublasStatus_t cublasSetLoggerCallback(cublasLogCallback p_userCallback) {
	begin(19);
	VALUE(0, p_userCallback);
	return (cublasStatus_t)(puregpu_echo.fail ? 942 : 0);
}

cublasStatus_t cublasGetLoggerCallback(cublasLogCallback *p_userCallback) {
	begin(20);
	VALUE(0, p_userCallback);
	fill(p_userCallback, sizeof *p_userCallback, 0x59aa3e127cc4969du, 0, 0);
	return (cublasStatus_t)(puregpu_echo.fail ? 966 : 0);
}

void cublasXerbla(const char *p_srName, int p_info) {
	begin(21);
	VALUE(0, p_srName);
	text(0, p_srName);
	VALUE(1, p_info);
}

cublasStatus_t cublasNrm2Ex(cublasHandle_t p_handle, int p_n, const void *p_x, cudaDataType p_xType, int p_incx, void *p_result, cudaDataType p_resultType, cudaDataType p_executionType) {
	begin(22);
	VALUE(0, p_handle);
	VALUE(1, p_n);
	VALUE(2, p_x);
	VALUE(3, p_xType);
	VALUE(4, p_incx);
	VALUE(5, p_result);
	VALUE(6, p_resultType);
	VALUE(7, p_executionType);
	return (cublasStatus_t)(puregpu_echo.fail ? 929 : 0);
}

cublasStatus_t cublasNrm2Ex_64(cublasHandle_t p_handle, int64_t p_n, const void *p_x, cudaDataType p_xType, int64_t p_incx, void *p_result, cudaDataType p_resultType, cudaDataType p_executionType) {
	begin(23);
	VALUE(0, p_handle);
	VALUE(1, p_n);
	VALUE(2, p_x);
	VALUE(3, p_xType);
	VALUE(4, p_incx);
	VALUE(5, p_result);
	VALUE(6, p_resultType);
	VALUE(7, p_executionType);
	return (cublasStatus_t)(puregpu_echo.fail ? 939 : 0);
}

cublasStatus_t cublasSnrm2_v2(cublasHandle_t p_handle, int p_n, const float *p_x, int p_incx, float *p_result) {
	begin(24);
	VALUE(0, p_handle);
	VALUE(1, p_n);
	VALUE(2, p_x);
	VALUE(3, p_incx);
	VALUE(4, p_result);
	fill(p_result, sizeof *p_result, 0x7b97924d22911367u, 0, 0);
	return (cublasStatus_t)(puregpu_echo.fail ? 982 : 0);
}

cublasStatus_t cublasSnrm2_v2_64(cublasHandle_t p_handle, int64_t p_n, const float *p_x, int64_t p_incx, float *p_result) {
	begin(25);
	VALUE(0, p_handle);
	VALUE(1, p_n);
	VALUE(2, p_x);
	VALUE(3, p_incx);
	VALUE(4, p_result);
	fill(p_result, sizeof *p_result, 0x5b60ec3ea8577bc8u, 0, 0);
	return (cublasStatus_t)(puregpu_echo.fail ? 931 : 0);
}

cublasStatus_t cublasDnrm2_v2(cublasHandle_t p_handle, int p_n, const double *p_x, int p_incx, double *p_result) {
	begin(26);
	VALUE(0, p_handle);
	VALUE(1, p_n);
	VALUE(2, p_x);
	VALUE(3, p_incx);
	VALUE(4, p_result);
	fill(p_result, sizeof *p_result, 0xd2eb9b60461a2b04u, 0, 0);
	return (cublasStatus_t)(puregpu_echo.fail ? 953 : 0);
}

cublasStatus_t cublasDnrm2_v2_64(cublasHandle_t p_handle, int64_t p_n, const double *p_x, int64_t p_incx, double *p_result) {
	begin(27);
	VALUE(0, p_handle);
	VALUE(1, p_n);
	VALUE(2, p_x);
	VALUE(3, p_incx);
	VALUE(4, p_result);
	fill(p_result, sizeof *p_result, 0x6dbd3382e3f038d1u, 0, 0);
	return (cublasStatus_t)(puregpu_echo.fail ? 918 : 0);
}

cublasStatus_t cublasScnrm2_v2(cublasHandle_t p_handle, int p_n, const cuComplex *p_x, int p_incx, float *p_result) {
	begin(28);
	VALUE(0, p_handle);
	VALUE(1, p_n);
	VALUE(2, p_x);
	VALUE(3, p_incx);
	VALUE(4, p_result);
	fill(p_result, sizeof *p_result, 0x8ed85da9223c9250u, 0, 0);
	return (cublasStatus_t)(puregpu_echo.fail ? 955 : 0);
}

cublasStatus_t cublasScnrm2_v2_64(cublasHandle_t p_handle, int64_t p_n, const cuComplex *p_x, int64_t p_incx, float *p_result) {
	begin(29);
	VALUE(0, p_handle);
	VALUE(1, p_n);
	VALUE(2, p_x);
	VALUE(3, p_incx);
	VALUE(4, p_result);
	fill(p_result, sizeof *p_result, 0x8ee07fe179f4b3fdu, 0, 0);
	return (cublasStatus_t)(puregpu_echo.fail ? 952 : 0);
}

cublasStatus_t cublasDznrm2_v2(cublasHandle_t p_handle, int p_n, const cuDoubleComplex *p_x, int p_incx, double *p_result) {
	begin(30);
	VALUE(0, p_handle);
	VALUE(1, p_n);
	VALUE(2, p_x);
	VALUE(3, p_incx);
	VALUE(4, p_result);
	fill(p_result, sizeof *p_result, 0x800a95060323024u, 0, 0);
	return (cublasStatus_t)(puregpu_echo.fail ? 984 : 0);
}

cublasStatus_t cublasDznrm2_v2_64(cublasHandle_t p_handle, int64_t p_n, const cuDoubleComplex *p_x, int64_t p_incx, double *p_result) {
	begin(31);
	VALUE(0, p_handle);
	VALUE(1, p_n);
	VALUE(2, p_x);
	VALUE(3, p_incx);
	VALUE(4, p_result);
	fill(p_result, sizeof *p_result, 0x59dbd754eef0ba31u, 0, 0);
	return (cublasStatus_t)(puregpu_echo.fail ? 910 : 0);
}

cublasStatus_t cublasDotEx(cublasHandle_t p_handle, int p_n, const void *p_x, cudaDataType p_xType, int p_incx, const void *p_y, cudaDataType p_yType, int p_incy, void *p_result, cudaDataType p_resultType, cudaDataType p_executionType) {
	begin(32);
	VALUE(0, p_handle);
	VALUE(1, p_n);
	VALUE(2, p_x);
	VALUE(3, p_xType);
	VALUE(4, p_incx);
	VALUE(5, p_y);
	VALUE(6, p_yType);
	VALUE(7, p_incy);
	VALUE(8, p_result);
	VALUE(9, p_resultType);
	VALUE(10, p_executionType);
	return (cublasStatus_t)(puregpu_echo.fail ? 904 : 0);
}

cublasStatus_t cublasDotEx_64(cublasHandle_t p_handle, int64_t p_n, const void *p_x, cudaDataType p_xType, int64_t p_incx, const void *p_y, cudaDataType p_yType, int64_t p_incy, void *p_result, cudaDataType p_resultType, cudaDataType p_executionType) {
	begin(33);
	VALUE(0, p_handle);
	VALUE(1, p_n);
	VALUE(2, p_x);
	VALUE(3, p_xType);
	VALUE(4, p_incx);
	VALUE(5, p_y);
	VALUE(6, p_yType);
	VALUE(7, p_incy);
	VALUE(8, p_result);
	VALUE(9, p_resultType);
	VALUE(10, p_executionType);
	return (cublasStatus_t)(puregpu_echo.fail ? 905 : 0);
}

cublasStatus_t cublasDotcEx(cublasHandle_t p_handle, int p_n, const void *p_x, cudaDataType p_xType, int p_incx, const void *p_y, cudaDataType p_yType, int p_incy, void *p_result, cudaDataType p_resultType, cudaDataType p_executionType) {
	begin(34);
	VALUE(0, p_handle);
	VALUE(1, p_n);
	VALUE(2, p_x);
	VALUE(3, p_xType);
	VALUE(4, p_incx);
	VALUE(5, p_y);
	VALUE(6, p_yType);
	VALUE(7, p_incy);
	VALUE(8, p_result);
	VALUE(9, p_resultType);
	VALUE(10, p_executionType);
	return (cublasStatus_t)(puregpu_echo.fail ? 940 : 0);
}

cublasStatus_t cublasDotcEx_64(cublasHandle_t p_handle, int64_t p_n, const void *p_x, cudaDataType p_xType, int64_t p_incx, const void *p_y, cudaDataType p_yType, int64_t p_incy, void *p_result, cudaDataType p_resultType, cudaDataType p_executionType) {
	begin(35);
	VALUE(0, p_handle);
	VALUE(1, p_n);
	VALUE(2, p_x);
	VALUE(3, p_xType);
	VALUE(4, p_incx);
	VALUE(5, p_y);
	VALUE(6, p_yType);
	VALUE(7, p_incy);
	VALUE(8, p_result);
	VALUE(9, p_resultType);
	VALUE(10, p_executionType);
	return (cublasStatus_t)(puregpu_echo.fail ? 963 : 0);
}

cublasStatus_t cublasSdot_v2(cublasHandle_t p_handle, int p_n, const float *p_x, int p_incx, const float *p_y, int p_incy, float *p_result) {
	begin(36);
	VALUE(0, p_handle);
	VALUE(1, p_n);
	VALUE(2, p_x);
	VALUE(3, p_incx);
	VALUE(4, p_y);
	VALUE(5, p_incy);
	VALUE(6, p_result);
	fill(p_result, sizeof *p_result, 0x8700a6ee2d4d1fdu, 0, 0);
	return (cublasStatus_t)(puregpu_echo.fail ? 928 : 0);
}

cublasStatus_t cublasSdot_v2_64(cublasHandle_t p_handle, int64_t p_n, const float *p_x, int64_t p_incx, const float *p_y, int64_t p_incy, float *p_result) {
	begin(37);
	VALUE(0, p_handle);
	VALUE(1, p_n);
	VALUE(2, p_x);
	VALUE(3, p_incx);
	VALUE(4, p_y);
	VALUE(5, p_incy);
	VALUE(6, p_result);
	fill(p_result, sizeof *p_result, 0x40843b4c1f49cd9eu, 0, 0);
	return (cublasStatus_t)(puregpu_echo.fail ? 920 : 0);
}

cublasStatus_t cublasDdot_v2(cublasHandle_t p_handle, int p_n, const double *p_x, int p_incx, const double *p_y, int p_incy, double *p_result) {
	begin(38);
	VALUE(0, p_handle);
	VALUE(1, p_n);
	VALUE(2, p_x);
	VALUE(3, p_incx);
	VALUE(4, p_y);
	VALUE(5, p_incy);
	VALUE(6, p_result);
	fill(p_result, sizeof *p_result, 0xb9e2b14325b13c28u, 0, 0);
	return (cublasStatus_t)(puregpu_echo.fail ? 924 : 0);
}

cublasStatus_t cublasDdot_v2_64(cublasHandle_t p_handle, int64_t p_n, const double *p_x, int64_t p_incx, const double *p_y, int64_t p_incy, double *p_result) {
	begin(39);
	VALUE(0, p_handle);
	VALUE(1, p_n);
	VALUE(2, p_x);
	VALUE(3, p_incx);
	VALUE(4, p_y);
	VALUE(5, p_incy);
	VALUE(6, p_result);
	fill(p_result, sizeof *p_result, 0xaf79f2a5d28b7485u, 0, 0);
	return (cublasStatus_t)(puregpu_echo.fail ? 976 : 0);
}

cublasStatus_t cublasCdotu_v2(cublasHandle_t p_handle, int p_n, const cuComplex *p_x, int p_incx, const cuComplex *p_y, int p_incy, cuComplex *p_result) {
	begin(40);
	VALUE(0, p_handle);
	VALUE(1, p_n);
	VALUE(2, p_x);
	VALUE(3, p_incx);
	VALUE(4, p_y);
	VALUE(5, p_incy);
	VALUE(6, p_result);
	fill(p_result, sizeof *p_result, 0xee89cf6e950ca6d6u, 0, 0);
	return (cublasStatus_t)(puregpu_echo.fail ? 905 : 0);
}

cublasStatus_t cublasCdotu_v2_64(cublasHandle_t p_handle, int64_t p_n, const cuComplex *p_x, int64_t p_incx, const cuComplex *p_y, int64_t p_incy, cuComplex *p_result) {
	begin(41);
	VALUE(0, p_handle);
	VALUE(1, p_n);
	VALUE(2, p_x);
	VALUE(3, p_incx);
	VALUE(4, p_y);
	VALUE(5, p_incy);
	VALUE(6, p_result);
	fill(p_result, sizeof *p_result, 0xc0d01351aa6205f7u, 0, 0);
	return (cublasStatus_t)(puregpu_echo.fail ? 935 : 0);
}

cublasStatus_t cublasCdotc_v2(cublasHandle_t p_handle, int p_n, const cuComplex *p_x, int p_incx, const cuComplex *p_y, int p_incy, cuComplex *p_result) {
	begin(42);
	VALUE(0, p_handle);
	VALUE(1, p_n);
	VALUE(2, p_x);
	VALUE(3, p_incx);
	VALUE(4, p_y);
	VALUE(5, p_incy);
	VALUE(6, p_result);
	fill(p_result, sizeof *p_result, 0x757ea6c5f7b9acecu, 0, 0);
	return (cublasStatus_t)(puregpu_echo.fail ? 949 : 0);
}

cublasStatus_t cublasCdotc_v2_64(cublasHandle_t p_handle, int64_t p_n, const cuComplex *p_x, int64_t p_incx, const cuComplex *p_y, int64_t p_incy, cuComplex *p_result) {
	begin(43);
	VALUE(0, p_handle);
	VALUE(1, p_n);
	VALUE(2, p_x);
	VALUE(3, p_incx);
	VALUE(4, p_y);
	VALUE(5, p_incy);
	VALUE(6, p_result);
	fill(p_result, sizeof *p_result, 0xbf7452f27d3d4ad9u, 0, 0);
	return (cublasStatus_t)(puregpu_echo.fail ? 972 : 0);
}

cublasStatus_t cublasZdotu_v2(cublasHandle_t p_handle, int p_n, const cuDoubleComplex *p_x, int p_incx, const cuDoubleComplex *p_y, int p_incy, cuDoubleComplex *p_result) {
	begin(44);
	VALUE(0, p_handle);
	VALUE(1, p_n);
	VALUE(2, p_x);
	VALUE(3, p_incx);
	VALUE(4, p_y);
	VALUE(5, p_incy);
	VALUE(6, p_result);
	fill(p_result, sizeof *p_result, 0xe7d26b744124fedfu, 0, 0);
	return (cublasStatus_t)(puregpu_echo.fail ? 945 : 0);
}

cublasStatus_t cublasZdotu_v2_64(cublasHandle_t p_handle, int64_t p_n, const cuDoubleComplex *p_x, int64_t p_incx, const cuDoubleComplex *p_y, int64_t p_incy, cuDoubleComplex *p_result) {
	begin(45);
	VALUE(0, p_handle);
	VALUE(1, p_n);
	VALUE(2, p_x);
	VALUE(3, p_incx);
	VALUE(4, p_y);
	VALUE(5, p_incy);
	VALUE(6, p_result);
	fill(p_result, sizeof *p_result, 0x1ab9bb9405a674f4u, 0, 0);
	return (cublasStatus_t)(puregpu_echo.fail ? 928 : 0);
}

cublasStatus_t cublasZdotc_v2(cublasHandle_t p_handle, int p_n, const cuDoubleComplex *p_x, int p_incx, const cuDoubleComplex *p_y, int p_incy, cuDoubleComplex *p_result) {
	begin(46);
	VALUE(0, p_handle);
	VALUE(1, p_n);
	VALUE(2, p_x);
	VALUE(3, p_incx);
	VALUE(4, p_y);
	VALUE(5, p_incy);
	VALUE(6, p_result);
	fill(p_result, sizeof *p_result, 0x1515a3478dce4d6du, 0, 0);
	return (cublasStatus_t)(puregpu_echo.fail ? 948 : 0);
}

cublasStatus_t cublasZdotc_v2_64(cublasHandle_t p_handle, int64_t p_n, const cuDoubleComplex *p_x, int64_t p_incx, const cuDoubleComplex *p_y, int64_t p_incy, cuDoubleComplex *p_result) {
	begin(47);
	VALUE(0, p_handle);
	VALUE(1, p_n);
	VALUE(2, p_x);
	VALUE(3, p_incx);
	VALUE(4, p_y);
	VALUE(5, p_incy);
	VALUE(6, p_result);
	fill(p_result, sizeof *p_result, 0x7fa523502963878eu, 0, 0);
	return (cublasStatus_t)(puregpu_echo.fail ? 966 : 0);
}

cublasStatus_t cublasScalEx(cublasHandle_t p_handle, int p_n, const void *p_alpha, cudaDataType p_alphaType, void *p_x, cudaDataType p_xType, int p_incx, cudaDataType p_executionType) {
	begin(48);
	VALUE(0, p_handle);
	VALUE(1, p_n);
	VALUE(2, p_alpha);
	VALUE(3, p_alphaType);
	VALUE(4, p_x);
	VALUE(5, p_xType);
	VALUE(6, p_incx);
	VALUE(7, p_executionType);
	return (cublasStatus_t)(puregpu_echo.fail ? 955 : 0);
}

cublasStatus_t cublasScalEx_64(cublasHandle_t p_handle, int64_t p_n, const void *p_alpha, cudaDataType p_alphaType, void *p_x, cudaDataType p_xType, int64_t p_incx, cudaDataType p_executionType) {
	begin(49);
	VALUE(0, p_handle);
	VALUE(1, p_n);
	VALUE(2, p_alpha);
	VALUE(3, p_alphaType);
	VALUE(4, p_x);
	VALUE(5, p_xType);
	VALUE(6, p_incx);
	VALUE(7, p_executionType);
	return (cublasStatus_t)(puregpu_echo.fail ? 979 : 0);
}

cublasStatus_t cublasSscal_v2(cublasHandle_t p_handle, int p_n, const float *p_alpha, float *p_x, int p_incx) {
	begin(50);
	VALUE(0, p_handle);
	VALUE(1, p_n);
	VALUE(2, p_alpha);
	MEMORY(2, p_alpha, sizeof *p_alpha);
	VALUE(3, p_x);
	VALUE(4, p_incx);
	return (cublasStatus_t)(puregpu_echo.fail ? 987 : 0);
}

cublasStatus_t cublasSscal_v2_64(cublasHandle_t p_handle, int64_t p_n, const float *p_alpha, float *p_x, int64_t p_incx) {
	begin(51);
	VALUE(0, p_handle);
	VALUE(1, p_n);
	VALUE(2, p_alpha);
	MEMORY(2, p_alpha, sizeof *p_alpha);
	VALUE(3, p_x);
	VALUE(4, p_incx);
	return (cublasStatus_t)(puregpu_echo.fail ? 932 : 0);
}

cublasStatus_t cublasDscal_v2(cublasHandle_t p_handle, int p_n, const double *p_alpha, double *p_x, int p_incx) {
	begin(52);
	VALUE(0, p_handle);
	VALUE(1, p_n);
	VALUE(2, p_alpha);
	MEMORY(2, p_alpha, sizeof *p_alpha);
	VALUE(3, p_x);
	VALUE(4, p_incx);
	return (cublasStatus_t)(puregpu_echo.fail ? 923 : 0);
}

cublasStatus_t cublasDscal_v2_64(cublasHandle_t p_handle, int64_t p_n, const double *p_alpha, double *p_x, int64_t p_incx) {
	begin(53);
	VALUE(0, p_handle);
	VALUE(1, p_n);
	VALUE(2, p_alpha);
	MEMORY(2, p_alpha, sizeof *p_alpha);
	VALUE(3, p_x);
	VALUE(4, p_incx);
	return (cublasStatus_t)(puregpu_echo.fail ? 981 : 0);
}

cublasStatus_t cublasCscal_v2(cublasHandle_t p_handle, int p_n, const cuComplex *p_alpha, cuComplex *p_x, int p_incx) {
	begin(54);
	VALUE(0, p_handle);
	VALUE(1, p_n);
	VALUE(2, p_alpha);
	MEMORY(2, p_alpha, sizeof *p_alpha);
	VALUE(3, p_x);
	VALUE(4, p_incx);
	return (cublasStatus_t)(puregpu_echo.fail ? 917 : 0);
}

cublasStatus_t cublasCscal_v2_64(cublasHandle_t p_handle, int64_t p_n, const cuComplex *p_alpha, cuComplex *p_x, int64_t p_incx) {
	begin(55);
	VALUE(0, p_handle);
	VALUE(1, p_n);
	VALUE(2, p_alpha);
	MEMORY(2, p_alpha, sizeof *p_alpha);
	VALUE(3, p_x);
	VALUE(4, p_incx);
	return (cublasStatus_t)(puregpu_echo.fail ? 955 : 0);
}

cublasStatus_t cublasCsscal_v2(cublasHandle_t p_handle, int p_n, const float *p_alpha, cuComplex *p_x, int p_incx) {
	begin(56);
	VALUE(0, p_handle);
	VALUE(1, p_n);
	VALUE(2, p_alpha);
	MEMORY(2, p_alpha, sizeof *p_alpha);
	VALUE(3, p_x);
	VALUE(4, p_incx);
	return (cublasStatus_t)(puregpu_echo.fail ? 987 : 0);
}

cublasStatus_t cublasCsscal_v2_64(cublasHandle_t p_handle, int64_t p_n, const float *p_alpha, cuComplex *p_x, int64_t p_incx) {
	begin(57);
	VALUE(0, p_handle);
	VALUE(1, p_n);
	VALUE(2, p_alpha);
	MEMORY(2, p_alpha, sizeof *p_alpha);
	VALUE(3, p_x);
	VALUE(4, p_incx);
	return (cublasStatus_t)(puregpu_echo.fail ? 956 : 0);
}

cublasStatus_t cublasZscal_v2(cublasHandle_t p_handle, int p_n, const cuDoubleComplex *p_alpha, cuDoubleComplex *p_x, int p_incx) {
	begin(58);
	VALUE(0, p_handle);
	VALUE(1, p_n);
	VALUE(2, p_alpha);
	MEMORY(2, p_alpha, sizeof *p_alpha);
	VALUE(3, p_x);
	VALUE(4, p_incx);
	return (cublasStatus_t)(puregpu_echo.fail ? 948 : 0);
}

cublasStatus_t cublasZscal_v2_64(cublasHandle_t p_handle, int64_t p_n, const cuDoubleComplex *p_alpha, cuDoubleComplex *p_x, int64_t p_incx) {
	begin(59);
	VALUE(0, p_handle);
	VALUE(1, p_n);
	VALUE(2, p_alpha);
	MEMORY(2, p_alpha, sizeof *p_alpha);
	VALUE(3, p_x);
	VALUE(4, p_incx);
	return (cublasStatus_t)(puregpu_echo.fail ? 935 : 0);
}

cublasStatus_t cublasZdscal_v2(cublasHandle_t p_handle, int p_n, const double *p_alpha, cuDoubleComplex *p_x, int p_incx) {
	begin(60);
	VALUE(0, p_handle);
	VALUE(1, p_n);
	VALUE(2, p_alpha);
	MEMORY(2, p_alpha, sizeof *p_alpha);
	VALUE(3, p_x);
	VALUE(4, p_incx);
	return (cublasStatus_t)(puregpu_echo.fail ? 978 : 0);
}

cublasStatus_t cublasZdscal_v2_64(cublasHandle_t p_handle, int64_t p_n, const double *p_alpha, cuDoubleComplex *p_x, int64_t p_incx) {
	begin(61);
	VALUE(0, p_handle);
	VALUE(1, p_n);
	VALUE(2, p_alpha);
	MEMORY(2, p_alpha, sizeof *p_alpha);
	VALUE(3, p_x);
	VALUE(4, p_incx);
	return (cublasStatus_t)(puregpu_echo.fail ? 967 : 0);
}

cublasStatus_t cublasAxpyEx(cublasHandle_t p_handle, int p_n, const void *p_alpha, cudaDataType p_alphaType, const void *p_x, cudaDataType p_xType, int p_incx, void *p_y, cudaDataType p_yType, int p_incy, cudaDataType p_executiontype) {
	begin(62);
	VALUE(0, p_handle);
	VALUE(1, p_n);
	VALUE(2, p_alpha);
	VALUE(3, p_alphaType);
	VALUE(4, p_x);
	VALUE(5, p_xType);
	VALUE(6, p_incx);
	VALUE(7, p_y);
	VALUE(8, p_yType);
	VALUE(9, p_incy);
	VALUE(10, p_executiontype);
	return (cublasStatus_t)(puregpu_echo.fail ? 988 : 0);
}

cublasStatus_t cublasAxpyEx_64(cublasHandle_t p_handle, int64_t p_n, const void *p_alpha, cudaDataType p_alphaType, const void *p_x, cudaDataType p_xType, int64_t p_incx, void *p_y, cudaDataType p_yType, int64_t p_incy, cudaDataType p_executiontype) {
	begin(63);
	VALUE(0, p_handle);
	VALUE(1, p_n);
	VALUE(2, p_alpha);
	VALUE(3, p_alphaType);
	VALUE(4, p_x);
	VALUE(5, p_xType);
	VALUE(6, p_incx);
	VALUE(7, p_y);
	VALUE(8, p_yType);
	VALUE(9, p_incy);
	VALUE(10, p_executiontype);
	return (cublasStatus_t)(puregpu_echo.fail ? 971 : 0);
}

cublasStatus_t cublasSaxpy_v2(cublasHandle_t p_handle, int p_n, const float *p_alpha, const float *p_x, int p_incx, float *p_y, int p_incy) {
	begin(64);
	VALUE(0, p_handle);
	VALUE(1, p_n);
	VALUE(2, p_alpha);
	MEMORY(2, p_alpha, sizeof *p_alpha);
	VALUE(3, p_x);
	VALUE(4, p_incx);
	VALUE(5, p_y);
	VALUE(6, p_incy);
	return (cublasStatus_t)(puregpu_echo.fail ? 980 : 0);
}

cublasStatus_t cublasSaxpy_v2_64(cublasHandle_t p_handle, int64_t p_n, const float *p_alpha, const float *p_x, int64_t p_incx, float *p_y, int64_t p_incy) {
	begin(65);
	VALUE(0, p_handle);
	VALUE(1, p_n);
	VALUE(2, p_alpha);
	MEMORY(2, p_alpha, sizeof *p_alpha);
	VALUE(3, p_x);
	VALUE(4, p_incx);
	VALUE(5, p_y);
	VALUE(6, p_incy);
	return (cublasStatus_t)(puregpu_echo.fail ? 985 : 0);
}

cublasStatus_t cublasDaxpy_v2(cublasHandle_t p_handle, int p_n, const double *p_alpha, const double *p_x, int p_incx, double *p_y, int p_incy) {
	begin(66);
	VALUE(0, p_handle);
	VALUE(1, p_n);
	VALUE(2, p_alpha);
	MEMORY(2, p_alpha, sizeof *p_alpha);
	VALUE(3, p_x);
	VALUE(4, p_incx);
	VALUE(5, p_y);
	VALUE(6, p_incy);
	return (cublasStatus_t)(puregpu_echo.fail ? 921 : 0);
}

cublasStatus_t cublasDaxpy_v2_64(cublasHandle_t p_handle, int64_t p_n, const double *p_alpha, const double *p_x, int64_t p_incx, double *p_y, int64_t p_incy) {
	begin(67);
	VALUE(0, p_handle);
	VALUE(1, p_n);
	VALUE(2, p_alpha);
	MEMORY(2, p_alpha, sizeof *p_alpha);
	VALUE(3, p_x);
	VALUE(4, p_incx);
	VALUE(5, p_y);
	VALUE(6, p_incy);
	return (cublasStatus_t)(puregpu_echo.fail ? 959 : 0);
}

cublasStatus_t cublasCaxpy_v2(cublasHandle_t p_handle, int p_n, const cuComplex *p_alpha, const cuComplex *p_x, int p_incx, cuComplex *p_y, int p_incy) {
	begin(68);
	VALUE(0, p_handle);
	VALUE(1, p_n);
	VALUE(2, p_alpha);
	MEMORY(2, p_alpha, sizeof *p_alpha);
	VALUE(3, p_x);
	VALUE(4, p_incx);
	VALUE(5, p_y);
	VALUE(6, p_incy);
	return (cublasStatus_t)(puregpu_echo.fail ? 971 : 0);
}

cublasStatus_t cublasCaxpy_v2_64(cublasHandle_t p_handle, int64_t p_n, const cuComplex *p_alpha, const cuComplex *p_x, int64_t p_incx, cuComplex *p_y, int64_t p_incy) {
	begin(69);
	VALUE(0, p_handle);
	VALUE(1, p_n);
	VALUE(2, p_alpha);
	MEMORY(2, p_alpha, sizeof *p_alpha);
	VALUE(3, p_x);
	VALUE(4, p_incx);
	VALUE(5, p_y);
	VALUE(6, p_incy);
	return (cublasStatus_t)(puregpu_echo.fail ? 953 : 0);
}

cublasStatus_t cublasZaxpy_v2(cublasHandle_t p_handle, int p_n, const cuDoubleComplex *p_alpha, const cuDoubleComplex *p_x, int p_incx, cuDoubleComplex *p_y, int p_incy) {
	begin(70);
	VALUE(0, p_handle);
	VALUE(1, p_n);
	VALUE(2, p_alpha);
	MEMORY(2, p_alpha, sizeof *p_alpha);
	VALUE(3, p_x);
	VALUE(4, p_incx);
	VALUE(5, p_y);
	VALUE(6, p_incy);
	return (cublasStatus_t)(puregpu_echo.fail ? 908 : 0);
}

cublasStatus_t cublasZaxpy_v2_64(cublasHandle_t p_handle, int64_t p_n, const cuDoubleComplex *p_alpha, const cuDoubleComplex *p_x, int64_t p_incx, cuDoubleComplex *p_y, int64_t p_incy) {
	begin(71);
	VALUE(0, p_handle);
	VALUE(1, p_n);
	VALUE(2, p_alpha);
	MEMORY(2, p_alpha, sizeof *p_alpha);
	VALUE(3, p_x);
	VALUE(4, p_incx);
	VALUE(5, p_y);
	VALUE(6, p_incy);
	return (cublasStatus_t)(puregpu_echo.fail ? 946 : 0);
}

cublasStatus_t cublasCopyEx(cublasHandle_t p_handle, int p_n, const void *p_x, cudaDataType p_xType, int p_incx, void *p_y, cudaDataType p_yType, int p_incy) {
	begin(72);
	VALUE(0, p_handle);
	VALUE(1, p_n);
	VALUE(2, p_x);
	VALUE(3, p_xType);
	VALUE(4, p_incx);
	VALUE(5, p_y);
	VALUE(6, p_yType);
	VALUE(7, p_incy);
	return (cublasStatus_t)(puregpu_echo.fail ? 905 : 0);
}

cublasStatus_t cublasCopyEx_64(cublasHandle_t p_handle, int64_t p_n, const void *p_x, cudaDataType p_xType, int64_t p_incx, void *p_y, cudaDataType p_yType, int64_t p_incy) {
	begin(73);
	VALUE(0, p_handle);
	VALUE(1, p_n);
	VALUE(2, p_x);
	VALUE(3, p_xType);
	VALUE(4, p_incx);
	VALUE(5, p_y);
	VALUE(6, p_yType);
	VALUE(7, p_incy);
	return (cublasStatus_t)(puregpu_echo.fail ? 916 : 0);
}

cublasStatus_t cublasScopy_v2(cublasHandle_t p_handle, int p_n, const float *p_x, int p_incx, float *p_y, int p_incy) {
	begin(74);
	VALUE(0, p_handle);
	VALUE(1, p_n);
	VALUE(2, p_x);
	VALUE(3, p_incx);
	VALUE(4, p_y);
	VALUE(5, p_incy);
	return (cublasStatus_t)(puregpu_echo.fail ? 981 : 0);
}

cublasStatus_t cublasScopy_v2_64(cublasHandle_t p_handle, int64_t p_n, const float *p_x, int64_t p_incx, float *p_y, int64_t p_incy) {
	begin(75);
	VALUE(0, p_handle);
	VALUE(1, p_n);
	VALUE(2, p_x);
	VALUE(3, p_incx);
	VALUE(4, p_y);
	VALUE(5, p_incy);
	return (cublasStatus_t)(puregpu_echo.fail ? 970 : 0);
}

cublasStatus_t cublasDcopy_v2(cublasHandle_t p_handle, int p_n, const double *p_x, int p_incx, double *p_y, int p_incy) {
	begin(76);
	VALUE(0, p_handle);
	VALUE(1, p_n);
	VALUE(2, p_x);
	VALUE(3, p_incx);
	VALUE(4, p_y);
	VALUE(5, p_incy);
	return (cublasStatus_t)(puregpu_echo.fail ? 905 : 0);
}

cublasStatus_t cublasDcopy_v2_64(cublasHandle_t p_handle, int64_t p_n, const double *p_x, int64_t p_incx, double *p_y, int64_t p_incy) {
	begin(77);
	VALUE(0, p_handle);
	VALUE(1, p_n);
	VALUE(2, p_x);
	VALUE(3, p_incx);
	VALUE(4, p_y);
	VALUE(5, p_incy);
	return (cublasStatus_t)(puregpu_echo.fail ? 943 : 0);
}

cublasStatus_t cublasCcopy_v2(cublasHandle_t p_handle, int p_n, const cuComplex *p_x, int p_incx, cuComplex *p_y, int p_incy) {
	begin(78);
	VALUE(0, p_handle);
	VALUE(1, p_n);
	VALUE(2, p_x);
	VALUE(3, p_incx);
	VALUE(4, p_y);
	VALUE(5, p_incy);
	return (cublasStatus_t)(puregpu_echo.fail ? 946 : 0);
}

cublasStatus_t cublasCcopy_v2_64(cublasHandle_t p_handle, int64_t p_n, const cuComplex *p_x, int64_t p_incx, cuComplex *p_y, int64_t p_incy) {
	begin(79);
	VALUE(0, p_handle);
	VALUE(1, p_n);
	VALUE(2, p_x);
	VALUE(3, p_incx);
	VALUE(4, p_y);
	VALUE(5, p_incy);
	return (cublasStatus_t)(puregpu_echo.fail ? 929 : 0);
}

cublasStatus_t cublasZcopy_v2(cublasHandle_t p_handle, int p_n, const cuDoubleComplex *p_x, int p_incx, cuDoubleComplex *p_y, int p_incy) {
	begin(80);
	VALUE(0, p_handle);
	VALUE(1, p_n);
	VALUE(2, p_x);
	VALUE(3, p_incx);
	VALUE(4, p_y);
	VALUE(5, p_incy);
	return (cublasStatus_t)(puregpu_echo.fail ? 939 : 0);
}

cublasStatus_t cublasZcopy_v2_64(cublasHandle_t p_handle, int64_t p_n, const cuDoubleComplex *p_x, int64_t p_incx, cuDoubleComplex *p_y, int64_t p_incy) {
	begin(81);
	VALUE(0, p_handle);
	VALUE(1, p_n);
	VALUE(2, p_x);
	VALUE(3, p_incx);
	VALUE(4, p_y);
	VALUE(5, p_incy);
	return (cublasStatus_t)(puregpu_echo.fail ? 959 : 0);
}

cublasStatus_t cublasSswap_v2(cublasHandle_t p_handle, int p_n, float *p_x, int p_incx, float *p_y, int p_incy) {
	begin(82);
	VALUE(0, p_handle);
	VALUE(1, p_n);
	VALUE(2, p_x);
	VALUE(3, p_incx);
	VALUE(4, p_y);
	VALUE(5, p_incy);
	return (cublasStatus_t)(puregpu_echo.fail ? 963 : 0);
}

cublasStatus_t cublasSswap_v2_64(cublasHandle_t p_handle, int64_t p_n, float *p_x, int64_t p_incx, float *p_y, int64_t p_incy) {
	begin(83);
	VALUE(0, p_handle);
	VALUE(1, p_n);
	VALUE(2, p_x);
	VALUE(3, p_incx);
	VALUE(4, p_y);
	VALUE(5, p_incy);
	return (cublasStatus_t)(puregpu_echo.fail ? 971 : 0);
}

cublasStatus_t cublasDswap_v2(cublasHandle_t p_handle, int p_n, double *p_x, int p_incx, double *p_y, int p_incy) {
	begin(84);
	VALUE(0, p_handle);
	VALUE(1, p_n);
	VALUE(2, p_x);
	VALUE(3, p_incx);
	VALUE(4, p_y);
	VALUE(5, p_incy);
	return (cublasStatus_t)(puregpu_echo.fail ? 927 : 0);
}

cublasStatus_t cublasDswap_v2_64(cublasHandle_t p_handle, int64_t p_n, double *p_x, int64_t p_incx, double *p_y, int64_t p_incy) {
	begin(85);
	VALUE(0, p_handle);
	VALUE(1, p_n);
	VALUE(2, p_x);
	VALUE(3, p_incx);
	VALUE(4, p_y);
	VALUE(5, p_incy);
	return (cublasStatus_t)(puregpu_echo.fail ? 951 : 0);
}

cublasStatus_t cublasCswap_v2(cublasHandle_t p_handle, int p_n, cuComplex *p_x, int p_incx, cuComplex *p_y, int p_incy) {
	begin(86);
	VALUE(0, p_handle);
	VALUE(1, p_n);
	VALUE(2, p_x);
	VALUE(3, p_incx);
	VALUE(4, p_y);
	VALUE(5, p_incy);
	return (cublasStatus_t)(puregpu_echo.fail ? 970 : 0);
}

cublasStatus_t cublasCswap_v2_64(cublasHandle_t p_handle, int64_t p_n, cuComplex *p_x, int64_t p_incx, cuComplex *p_y, int64_t p_incy) {
	begin(87);
	VALUE(0, p_handle);
	VALUE(1, p_n);
	VALUE(2, p_x);
	VALUE(3, p_incx);
	VALUE(4, p_y);
	VALUE(5, p_incy);
	return (cublasStatus_t)(puregpu_echo.fail ? 952 : 0);
}

cublasStatus_t cublasZswap_v2(cublasHandle_t p_handle, int p_n, cuDoubleComplex *p_x, int p_incx, cuDoubleComplex *p_y, int p_incy) {
	begin(88);
	VALUE(0, p_handle);
	VALUE(1, p_n);
	VALUE(2, p_x);
	VALUE(3, p_incx);
	VALUE(4, p_y);
	VALUE(5, p_incy);
	return (cublasStatus_t)(puregpu_echo.fail ? 911 : 0);
}

cublasStatus_t cublasZswap_v2_64(cublasHandle_t p_handle, int64_t p_n, cuDoubleComplex *p_x, int64_t p_incx, cuDoubleComplex *p_y, int64_t p_incy) {
	begin(89);
	VALUE(0, p_handle);
	VALUE(1, p_n);
	VALUE(2, p_x);
	VALUE(3, p_incx);
	VALUE(4, p_y);
	VALUE(5, p_incy);
	return (cublasStatus_t)(puregpu_echo.fail ? 938 : 0);
}

cublasStatus_t cublasSwapEx(cublasHandle_t p_handle, int p_n, void *p_x, cudaDataType p_xType, int p_incx, void *p_y, cudaDataType p_yType, int p_incy) {
	begin(90);
	VALUE(0, p_handle);
	VALUE(1, p_n);
	VALUE(2, p_x);
	VALUE(3, p_xType);
	VALUE(4, p_incx);
	VALUE(5, p_y);
	VALUE(6, p_yType);
	VALUE(7, p_incy);
	return (cublasStatus_t)(puregpu_echo.fail ? 950 : 0);
}

cublasStatus_t cublasSwapEx_64(cublasHandle_t p_handle, int64_t p_n, void *p_x, cudaDataType p_xType, int64_t p_incx, void *p_y, cudaDataType p_yType, int64_t p_incy) {
	begin(91);
	VALUE(0, p_handle);
	VALUE(1, p_n);
	VALUE(2, p_x);
	VALUE(3, p_xType);
	VALUE(4, p_incx);
	VALUE(5, p_y);
	VALUE(6, p_yType);
	VALUE(7, p_incy);
	return (cublasStatus_t)(puregpu_echo.fail ? 941 : 0);
}

cublasStatus_t cublasIsamax_v2(cublasHandle_t p_handle, int p_n, const float *p_x, int p_incx, int *p_result) {
	begin(92);
	VALUE(0, p_handle);
	VALUE(1, p_n);
	VALUE(2, p_x);
	VALUE(3, p_incx);
	VALUE(4, p_result);
	fill(p_result, sizeof *p_result, 0x92057dbf802999d2u, 0, 0);
	return (cublasStatus_t)(puregpu_echo.fail ? 930 : 0);
}

cublasStatus_t cublasIsamax_v2_64(cublasHandle_t p_handle, int64_t p_n, const float *p_x, int64_t p_incx, int64_t *p_result) {
	begin(93);
	VALUE(0, p_handle);
	VALUE(1, p_n);
	VALUE(2, p_x);
	VALUE(3, p_incx);
	VALUE(4, p_result);
	fill(p_result, sizeof *p_result, 0x92d085a15c2b3ff3u, 0, 0);
	return (cublasStatus_t)(puregpu_echo.fail ? 951 : 0);
}

cublasStatus_t cublasIdamax_v2(cublasHandle_t p_handle, int p_n, const double *p_x, int p_incx, int *p_result) {
	begin(94);
	VALUE(0, p_handle);
	VALUE(1, p_n);
	VALUE(2, p_x);
	VALUE(3, p_incx);
	VALUE(4, p_result);
	fill(p_result, sizeof *p_result, 0xb5f7384ab63102c5u, 0, 0);
	return (cublasStatus_t)(puregpu_echo.fail ? 906 : 0);
}

cublasStatus_t cublasIdamax_v2_64(cublasHandle_t p_handle, int64_t p_n, const double *p_x, int64_t p_incx, int64_t *p_result) {
	begin(95);
	VALUE(0, p_handle);
	VALUE(1, p_n);
	VALUE(2, p_x);
	VALUE(3, p_incx);
	VALUE(4, p_result);
	fill(p_result, sizeof *p_result, 0xc8a350cc90a9cddau, 0, 0);
	return (cublasStatus_t)(puregpu_echo.fail ? 903 : 0);
}

cublasStatus_t cublasIcamax_v2(cublasHandle_t p_handle, int p_n, const cuComplex *p_x, int p_incx, int *p_result) {
	begin(96);
	VALUE(0, p_handle);
	VALUE(1, p_n);
	VALUE(2, p_x);
	VALUE(3, p_incx);
	VALUE(4, p_result);
	fill(p_result, sizeof *p_result, 0xbc837ed3e7739a82u, 0, 0);
	return (cublasStatus_t)(puregpu_echo.fail ? 935 : 0);
}

cublasStatus_t cublasIcamax_v2_64(cublasHandle_t p_handle, int64_t p_n, const cuComplex *p_x, int64_t p_incx, int64_t *p_result) {
	begin(97);
	VALUE(0, p_handle);
	VALUE(1, p_n);
	VALUE(2, p_x);
	VALUE(3, p_incx);
	VALUE(4, p_result);
	fill(p_result, sizeof *p_result, 0xc93756626cb802a3u, 0, 0);
	return (cublasStatus_t)(puregpu_echo.fail ? 936 : 0);
}

cublasStatus_t cublasIzamax_v2(cublasHandle_t p_handle, int p_n, const cuDoubleComplex *p_x, int p_incx, int *p_result) {
	begin(98);
	VALUE(0, p_handle);
	VALUE(1, p_n);
	VALUE(2, p_x);
	VALUE(3, p_incx);
	VALUE(4, p_result);
	fill(p_result, sizeof *p_result, 0xec5b1f81853f53cfu, 0, 0);
	return (cublasStatus_t)(puregpu_echo.fail ? 919 : 0);
}

cublasStatus_t cublasIzamax_v2_64(cublasHandle_t p_handle, int64_t p_n, const cuDoubleComplex *p_x, int64_t p_incx, int64_t *p_result) {
	begin(99);
	VALUE(0, p_handle);
	VALUE(1, p_n);
	VALUE(2, p_x);
	VALUE(3, p_incx);
	VALUE(4, p_result);
	fill(p_result, sizeof *p_result, 0x565769c47d165630u, 0, 0);
	return (cublasStatus_t)(puregpu_echo.fail ? 957 : 0);
}

cublasStatus_t cublasIamaxEx(cublasHandle_t p_handle, int p_n, const void *p_x, cudaDataType p_xType, int p_incx, int *p_result) {
	begin(100);
	VALUE(0, p_handle);
	VALUE(1, p_n);
	VALUE(2, p_x);
	VALUE(3, p_xType);
	VALUE(4, p_incx);
	VALUE(5, p_result);
	fill(p_result, sizeof *p_result, 0xa592c9acf66d2eb0u, 0, 0);
	return (cublasStatus_t)(puregpu_echo.fail ? 951 : 0);
}

cublasStatus_t cublasIamaxEx_64(cublasHandle_t p_handle, int64_t p_n, const void *p_x, cudaDataType p_xType, int64_t p_incx, int64_t *p_result) {
	begin(101);
	VALUE(0, p_handle);
	VALUE(1, p_n);
	VALUE(2, p_x);
	VALUE(3, p_xType);
	VALUE(4, p_incx);
	VALUE(5, p_result);
	fill(p_result, sizeof *p_result, 0x7631bbaf98ca8a67u, 0, 0);
	return (cublasStatus_t)(puregpu_echo.fail ? 983 : 0);
}

cublasStatus_t cublasIsamin_v2(cublasHandle_t p_handle, int p_n, const float *p_x, int p_incx, int *p_result) {
	begin(102);
	VALUE(0, p_handle);
	VALUE(1, p_n);
	VALUE(2, p_x);
	VALUE(3, p_incx);
	VALUE(4, p_result);
	fill(p_result, sizeof *p_result, 0xca68969bfc8e75c8u, 0, 0);
	return (cublasStatus_t)(puregpu_echo.fail ? 954 : 0);
}

cublasStatus_t cublasIsamin_v2_64(cublasHandle_t p_handle, int64_t p_n, const float *p_x, int64_t p_incx, int64_t *p_result) {
	begin(103);
	VALUE(0, p_handle);
	VALUE(1, p_n);
	VALUE(2, p_x);
	VALUE(3, p_incx);
	VALUE(4, p_result);
	fill(p_result, sizeof *p_result, 0xa2020e26d87338d5u, 0, 0);
	return (cublasStatus_t)(puregpu_echo.fail ? 983 : 0);
}

cublasStatus_t cublasIdamin_v2(cublasHandle_t p_handle, int p_n, const double *p_x, int p_incx, int *p_result) {
	begin(104);
	VALUE(0, p_handle);
	VALUE(1, p_n);
	VALUE(2, p_x);
	VALUE(3, p_incx);
	VALUE(4, p_result);
	fill(p_result, sizeof *p_result, 0x275345e074b7268fu, 0, 0);
	return (cublasStatus_t)(puregpu_echo.fail ? 968 : 0);
}

cublasStatus_t cublasIdamin_v2_64(cublasHandle_t p_handle, int64_t p_n, const double *p_x, int64_t p_incx, int64_t *p_result) {
	begin(105);
	VALUE(0, p_handle);
	VALUE(1, p_n);
	VALUE(2, p_x);
	VALUE(3, p_incx);
	VALUE(4, p_result);
	fill(p_result, sizeof *p_result, 0x6723dbf2d8c56af0u, 0, 0);
	return (cublasStatus_t)(puregpu_echo.fail ? 925 : 0);
}

cublasStatus_t cublasIcamin_v2(cublasHandle_t p_handle, int p_n, const cuComplex *p_x, int p_incx, int *p_result) {
	begin(106);
	VALUE(0, p_handle);
	VALUE(1, p_n);
	VALUE(2, p_x);
	VALUE(3, p_incx);
	VALUE(4, p_result);
	fill(p_result, sizeof *p_result, 0xbf635c236a29b398u, 0, 0);
	return (cublasStatus_t)(puregpu_echo.fail ? 974 : 0);
}

cublasStatus_t cublasIcamin_v2_64(cublasHandle_t p_handle, int64_t p_n, const cuComplex *p_x, int64_t p_incx, int64_t *p_result) {
	begin(107);
	VALUE(0, p_handle);
	VALUE(1, p_n);
	VALUE(2, p_x);
	VALUE(3, p_incx);
	VALUE(4, p_result);
	fill(p_result, sizeof *p_result, 0xa7b2b49049d0c0e5u, 0, 0);
	return (cublasStatus_t)(puregpu_echo.fail ? 941 : 0);
}

cublasStatus_t cublasIzamin_v2(cublasHandle_t p_handle, int p_n, const cuDoubleComplex *p_x, int p_incx, int *p_result) {
	begin(108);
	VALUE(0, p_handle);
	VALUE(1, p_n);
	VALUE(2, p_x);
	VALUE(3, p_incx);
	VALUE(4, p_result);
	fill(p_result, sizeof *p_result, 0x7aff11ebc6b93005u, 0, 0);
	return (cublasStatus_t)(puregpu_echo.fail ? 946 : 0);
}

cublasStatus_t cublasIzamin_v2_64(cublasHandle_t p_handle, int64_t p_n, const cuDoubleComplex *p_x, int64_t p_incx, int64_t *p_result) {
	begin(109);
	VALUE(0, p_handle);
	VALUE(1, p_n);
	VALUE(2, p_x);
	VALUE(3, p_incx);
	VALUE(4, p_result);
	fill(p_result, sizeof *p_result, 0x8f3b420e590561au, 0, 0);
	return (cublasStatus_t)(puregpu_echo.fail ? 929 : 0);
}

cublasStatus_t cublasIaminEx(cublasHandle_t p_handle, int p_n, const void *p_x, cudaDataType p_xType, int p_incx, int *p_result) {
	begin(110);
	VALUE(0, p_handle);
	VALUE(1, p_n);
	VALUE(2, p_x);
	VALUE(3, p_xType);
	VALUE(4, p_incx);
	VALUE(5, p_result);
	fill(p_result, sizeof *p_result, 0xb48823351f24c93au, 0, 0);
	return (cublasStatus_t)(puregpu_echo.fail ? 927 : 0);
}

cublasStatus_t cublasIaminEx_64(cublasHandle_t p_handle, int64_t p_n, const void *p_x, cudaDataType p_xType, int64_t p_incx, int64_t *p_result) {
	begin(111);
	VALUE(0, p_handle);
	VALUE(1, p_n);
	VALUE(2, p_x);
	VALUE(3, p_xType);
	VALUE(4, p_incx);
	VALUE(5, p_result);
	fill(p_result, sizeof *p_result, 0x68c6615ebd4c36d5u, 0, 0);
	return (cublasStatus_t)(puregpu_echo.fail ? 976 : 0);
}

cublasStatus_t cublasAsumEx(cublasHandle_t p_handle, int p_n, const void *p_x, cudaDataType p_xType, int p_incx, void *p_result, cudaDataType p_resultType, cudaDataType p_executiontype) {
	begin(112);
	VALUE(0, p_handle);
	VALUE(1, p_n);
	VALUE(2, p_x);
	VALUE(3, p_xType);
	VALUE(4, p_incx);
	VALUE(5, p_result);
	VALUE(6, p_resultType);
	VALUE(7, p_executiontype);
	return (cublasStatus_t)(puregpu_echo.fail ? 934 : 0);
}

cublasStatus_t cublasAsumEx_64(cublasHandle_t p_handle, int64_t p_n, const void *p_x, cudaDataType p_xType, int64_t p_incx, void *p_result, cudaDataType p_resultType, cudaDataType p_executiontype) {
	begin(113);
	VALUE(0, p_handle);
	VALUE(1, p_n);
	VALUE(2, p_x);
	VALUE(3, p_xType);
	VALUE(4, p_incx);
	VALUE(5, p_result);
	VALUE(6, p_resultType);
	VALUE(7, p_executiontype);
	return (cublasStatus_t)(puregpu_echo.fail ? 902 : 0);
}

cublasStatus_t cublasSasum_v2(cublasHandle_t p_handle, int p_n, const float *p_x, int p_incx, float *p_result) {
	begin(114);
	VALUE(0, p_handle);
	VALUE(1, p_n);
	VALUE(2, p_x);
	VALUE(3, p_incx);
	VALUE(4, p_result);
	fill(p_result, sizeof *p_result, 0x4ac6154df05250f0u, 0, 0);
	return (cublasStatus_t)(puregpu_echo.fail ? 977 : 0);
}

cublasStatus_t cublasSasum_v2_64(cublasHandle_t p_handle, int64_t p_n, const float *p_x, int64_t p_incx, float *p_result) {
	begin(115);
	VALUE(0, p_handle);
	VALUE(1, p_n);
	VALUE(2, p_x);
	VALUE(3, p_incx);
	VALUE(4, p_result);
	fill(p_result, sizeof *p_result, 0x8838a6a85291edddu, 0, 0);
	return (cublasStatus_t)(puregpu_echo.fail ? 930 : 0);
}

cublasStatus_t cublasDasum_v2(cublasHandle_t p_handle, int p_n, const double *p_x, int p_incx, double *p_result) {
	begin(116);
	VALUE(0, p_handle);
	VALUE(1, p_n);
	VALUE(2, p_x);
	VALUE(3, p_incx);
	VALUE(4, p_result);
	fill(p_result, sizeof *p_result, 0xdb234e9a136abf97u, 0, 0);
	return (cublasStatus_t)(puregpu_echo.fail ? 980 : 0);
}

cublasStatus_t cublasDasum_v2_64(cublasHandle_t p_handle, int64_t p_n, const double *p_x, int64_t p_incx, double *p_result) {
	begin(117);
	VALUE(0, p_handle);
	VALUE(1, p_n);
	VALUE(2, p_x);
	VALUE(3, p_incx);
	VALUE(4, p_result);
	fill(p_result, sizeof *p_result, 0xff69216acf8fc538u, 0, 0);
	return (cublasStatus_t)(puregpu_echo.fail ? 933 : 0);
}

cublasStatus_t cublasScasum_v2(cublasHandle_t p_handle, int p_n, const cuComplex *p_x, int p_incx, float *p_result) {
	begin(118);
	VALUE(0, p_handle);
	VALUE(1, p_n);
	VALUE(2, p_x);
	VALUE(3, p_incx);
	VALUE(4, p_result);
	fill(p_result, sizeof *p_result, 0x6d24c8b8599c4073u, 0, 0);
	return (cublasStatus_t)(puregpu_echo.fail ? 984 : 0);
}

cublasStatus_t cublasScasum_v2_64(cublasHandle_t p_handle, int64_t p_n, const cuComplex *p_x, int64_t p_incx, float *p_result) {
	begin(119);
	VALUE(0, p_handle);
	VALUE(1, p_n);
	VALUE(2, p_x);
	VALUE(3, p_incx);
	VALUE(4, p_result);
	fill(p_result, sizeof *p_result, 0x69974bd11df63304u, 0, 0);
	return (cublasStatus_t)(puregpu_echo.fail ? 909 : 0);
}

cublasStatus_t cublasDzasum_v2(cublasHandle_t p_handle, int p_n, const cuDoubleComplex *p_x, int p_incx, double *p_result) {
	begin(120);
	VALUE(0, p_handle);
	VALUE(1, p_n);
	VALUE(2, p_x);
	VALUE(3, p_incx);
	VALUE(4, p_result);
	fill(p_result, sizeof *p_result, 0x10c7d23acc3e8437u, 0, 0);
	return (cublasStatus_t)(puregpu_echo.fail ? 965 : 0);
}

cublasStatus_t cublasDzasum_v2_64(cublasHandle_t p_handle, int64_t p_n, const cuDoubleComplex *p_x, int64_t p_incx, double *p_result) {
	begin(121);
	VALUE(0, p_handle);
	VALUE(1, p_n);
	VALUE(2, p_x);
	VALUE(3, p_incx);
	VALUE(4, p_result);
	fill(p_result, sizeof *p_result, 0xe813c1c44cbe4a98u, 0, 0);
	return (cublasStatus_t)(puregpu_echo.fail ? 950 : 0);
}

cublasStatus_t cublasSrot_v2(cublasHandle_t p_handle, int p_n, float *p_x, int p_incx, float *p_y, int p_incy, const float *p_c, const float *p_s) {
	begin(122);
	VALUE(0, p_handle);
	VALUE(1, p_n);
	VALUE(2, p_x);
	VALUE(3, p_incx);
	VALUE(4, p_y);
	VALUE(5, p_incy);
	VALUE(6, p_c);
	MEMORY(6, p_c, sizeof *p_c);
	VALUE(7, p_s);
	MEMORY(7, p_s, sizeof *p_s);
	return (cublasStatus_t)(puregpu_echo.fail ? 977 : 0);
}

cublasStatus_t cublasSrot_v2_64(cublasHandle_t p_handle, int64_t p_n, float *p_x, int64_t p_incx, float *p_y, int64_t p_incy, const float *p_c, const float *p_s) {
	begin(123);
	VALUE(0, p_handle);
	VALUE(1, p_n);
	VALUE(2, p_x);
	VALUE(3, p_incx);
	VALUE(4, p_y);
	VALUE(5, p_incy);
	VALUE(6, p_c);
	MEMORY(6, p_c, sizeof *p_c);
	VALUE(7, p_s);
	MEMORY(7, p_s, sizeof *p_s);
	return (cublasStatus_t)(puregpu_echo.fail ? 916 : 0);
}

cublasStatus_t cublasDrot_v2(cublasHandle_t p_handle, int p_n, double *p_x, int p_incx, double *p_y, int p_incy, const double *p_c, const double *p_s) {
	begin(124);
	VALUE(0, p_handle);
	VALUE(1, p_n);
	VALUE(2, p_x);
	VALUE(3, p_incx);
	VALUE(4, p_y);
	VALUE(5, p_incy);
	VALUE(6, p_c);
	MEMORY(6, p_c, sizeof *p_c);
	VALUE(7, p_s);
	MEMORY(7, p_s, sizeof *p_s);
	return (cublasStatus_t)(puregpu_echo.fail ? 971 : 0);
}

cublasStatus_t cublasDrot_v2_64(cublasHandle_t p_handle, int64_t p_n, double *p_x, int64_t p_incx, double *p_y, int64_t p_incy, const double *p_c, const double *p_s) {
	begin(125);
	VALUE(0, p_handle);
	VALUE(1, p_n);
	VALUE(2, p_x);
	VALUE(3, p_incx);
	VALUE(4, p_y);
	VALUE(5, p_incy);
	VALUE(6, p_c);
	MEMORY(6, p_c, sizeof *p_c);
	VALUE(7, p_s);
	MEMORY(7, p_s, sizeof *p_s);
	return (cublasStatus_t)(puregpu_echo.fail ? 949 : 0);
}

cublasStatus_t cublasCrot_v2(cublasHandle_t p_handle, int p_n, cuComplex *p_x, int p_incx, cuComplex *p_y, int p_incy, const float *p_c, const cuComplex *p_s) {
	begin(126);
	VALUE(0, p_handle);
	VALUE(1, p_n);
	VALUE(2, p_x);
	VALUE(3, p_incx);
	VALUE(4, p_y);
	VALUE(5, p_incy);
	VALUE(6, p_c);
	MEMORY(6, p_c, sizeof *p_c);
	VALUE(7, p_s);
	MEMORY(7, p_s, sizeof *p_s);
	return (cublasStatus_t)(puregpu_echo.fail ? 955 : 0);
}

cublasStatus_t cublasCrot_v2_64(cublasHandle_t p_handle, int64_t p_n, cuComplex *p_x, int64_t p_incx, cuComplex *p_y, int64_t p_incy, const float *p_c, const cuComplex *p_s) {
	begin(127);
	VALUE(0, p_handle);
	VALUE(1, p_n);
	VALUE(2, p_x);
	VALUE(3, p_incx);
	VALUE(4, p_y);
	VALUE(5, p_incy);
	VALUE(6, p_c);
	MEMORY(6, p_c, sizeof *p_c);
	VALUE(7, p_s);
	MEMORY(7, p_s, sizeof *p_s);
	return (cublasStatus_t)(puregpu_echo.fail ? 945 : 0);
}

cublasStatus_t cublasCsrot_v2(cublasHandle_t p_handle, int p_n, cuComplex *p_x, int p_incx, cuComplex *p_y, int p_incy, const float *p_c, const float *p_s) {
	begin(128);
	VALUE(0, p_handle);
	VALUE(1, p_n);
	VALUE(2, p_x);
	VALUE(3, p_incx);
	VALUE(4, p_y);
	VALUE(5, p_incy);
	VALUE(6, p_c);
	MEMORY(6, p_c, sizeof *p_c);
	VALUE(7, p_s);
	MEMORY(7, p_s, sizeof *p_s);
	return (cublasStatus_t)(puregpu_echo.fail ? 908 : 0);
}

cublasStatus_t cublasCsrot_v2_64(cublasHandle_t p_handle, int64_t p_n, cuComplex *p_x, int64_t p_incx, cuComplex *p_y, int64_t p_incy, const float *p_c, const float *p_s) {
	begin(129);
	VALUE(0, p_handle);
	VALUE(1, p_n);
	VALUE(2, p_x);
	VALUE(3, p_incx);
	VALUE(4, p_y);
	VALUE(5, p_incy);
	VALUE(6, p_c);
	MEMORY(6, p_c, sizeof *p_c);
	VALUE(7, p_s);
	MEMORY(7, p_s, sizeof *p_s);
	return (cublasStatus_t)(puregpu_echo.fail ? 971 : 0);
}

cublasStatus_t cublasZrot_v2(cublasHandle_t p_handle, int p_n, cuDoubleComplex *p_x, int p_incx, cuDoubleComplex *p_y, int p_incy, const double *p_c, const cuDoubleComplex *p_s) {
	begin(130);
	VALUE(0, p_handle);
	VALUE(1, p_n);
	VALUE(2, p_x);
	VALUE(3, p_incx);
	VALUE(4, p_y);
	VALUE(5, p_incy);
	VALUE(6, p_c);
	MEMORY(6, p_c, sizeof *p_c);
	VALUE(7, p_s);
	MEMORY(7, p_s, sizeof *p_s);
	return (cublasStatus_t)(puregpu_echo.fail ? 901 : 0);
}

cublasStatus_t cublasZrot_v2_64(cublasHandle_t p_handle, int64_t p_n, cuDoubleComplex *p_x, int64_t p_incx, cuDoubleComplex *p_y, int64_t p_incy, const double *p_c, const cuDoubleComplex *p_s) {
	begin(131);
	VALUE(0, p_handle);
	VALUE(1, p_n);
	VALUE(2, p_x);
	VALUE(3, p_incx);
	VALUE(4, p_y);
	VALUE(5, p_incy);
	VALUE(6, p_c);
	MEMORY(6, p_c, sizeof *p_c);
	VALUE(7, p_s);
	MEMORY(7, p_s, sizeof *p_s);
	return (cublasStatus_t)(puregpu_echo.fail ? 974 : 0);
}

cublasStatus_t cublasZdrot_v2(cublasHandle_t p_handle, int p_n, cuDoubleComplex *p_x, int p_incx, cuDoubleComplex *p_y, int p_incy, const double *p_c, const double *p_s) {
	begin(132);
	VALUE(0, p_handle);
	VALUE(1, p_n);
	VALUE(2, p_x);
	VALUE(3, p_incx);
	VALUE(4, p_y);
	VALUE(5, p_incy);
	VALUE(6, p_c);
	MEMORY(6, p_c, sizeof *p_c);
	VALUE(7, p_s);
	MEMORY(7, p_s, sizeof *p_s);
	return (cublasStatus_t)(puregpu_echo.fail ? 934 : 0);
}

cublasStatus_t cublasZdrot_v2_64(cublasHandle_t p_handle, int64_t p_n, cuDoubleComplex *p_x, int64_t p_incx, cuDoubleComplex *p_y, int64_t p_incy, const double *p_c, const double *p_s) {
	begin(133);
	VALUE(0, p_handle);
	VALUE(1, p_n);
	VALUE(2, p_x);
	VALUE(3, p_incx);
	VALUE(4, p_y);
	VALUE(5, p_incy);
	VALUE(6, p_c);
	MEMORY(6, p_c, sizeof *p_c);
	VALUE(7, p_s);
	MEMORY(7, p_s, sizeof *p_s);
	return (cublasStatus_t)(puregpu_echo.fail ? 913 : 0);
}

cublasStatus_t cublasRotEx(cublasHandle_t p_handle, int p_n, void *p_x, cudaDataType p_xType, int p_incx, void *p_y, cudaDataType p_yType, int p_incy, const void *p_c, const void *p_s, cudaDataType p_csType, cudaDataType p_executiontype) {
	begin(134);
	VALUE(0, p_handle);
	VALUE(1, p_n);
	VALUE(2, p_x);
	VALUE(3, p_xType);
	VALUE(4, p_incx);
	VALUE(5, p_y);
	VALUE(6, p_yType);
	VALUE(7, p_incy);
	VALUE(8, p_c);
	VALUE(9, p_s);
	VALUE(10, p_csType);
	VALUE(11, p_executiontype);
	return (cublasStatus_t)(puregpu_echo.fail ? 926 : 0);
}

cublasStatus_t cublasRotEx_64(cublasHandle_t p_handle, int64_t p_n, void *p_x, cudaDataType p_xType, int64_t p_incx, void *p_y, cudaDataType p_yType, int64_t p_incy, const void *p_c, const void *p_s, cudaDataType p_csType, cudaDataType p_executiontype) {
	begin(135);
	VALUE(0, p_handle);
	VALUE(1, p_n);
	VALUE(2, p_x);
	VALUE(3, p_xType);
	VALUE(4, p_incx);
	VALUE(5, p_y);
	VALUE(6, p_yType);
	VALUE(7, p_incy);
	VALUE(8, p_c);
	VALUE(9, p_s);
	VALUE(10, p_csType);
	VALUE(11, p_executiontype);
	return (cublasStatus_t)(puregpu_echo.fail ? 907 : 0);
}

cublasStatus_t cublasSrotg_v2(cublasHandle_t p_handle, float *p_a, float *p_b, float *p_c, float *p_s) {
	begin(136);
	VALUE(0, p_handle);
	VALUE(1, p_a);
	MEMORY(1, p_a, sizeof *p_a);
	VALUE(2, p_b);
	MEMORY(2, p_b, sizeof *p_b);
	VALUE(3, p_c);
	VALUE(4, p_s);
	fill(p_c, sizeof *p_c, 0xbc50d9e947907685u, 0, 0);
	fill(p_s, sizeof *p_s, 0xbc50d2e947906aa0u, 0, 0);
	return (cublasStatus_t)(puregpu_echo.fail ? 933 : 0);
}

cublasStatus_t cublasDrotg_v2(cublasHandle_t p_handle, double *p_a, double *p_b, double *p_c, double *p_s) {
	begin(137);
	VALUE(0, p_handle);
	VALUE(1, p_a);
	MEMORY(1, p_a, sizeof *p_a);
	VALUE(2, p_b);
	MEMORY(2, p_b, sizeof *p_b);
	VALUE(3, p_c);
	VALUE(4, p_s);
	fill(p_c, sizeof *p_c, 0x7b116d7433f95ef2u, 0, 0);
	fill(p_s, sizeof *p_s, 0x7b11687433f95673u, 0, 0);
	return (cublasStatus_t)(puregpu_echo.fail ? 928 : 0);
}

cublasStatus_t cublasCrotg_v2(cublasHandle_t p_handle, cuComplex *p_a, cuComplex *p_b, float *p_c, cuComplex *p_s) {
	begin(138);
	VALUE(0, p_handle);
	VALUE(1, p_a);
	MEMORY(1, p_a, sizeof *p_a);
	VALUE(2, p_b);
	MEMORY(2, p_b, sizeof *p_b);
	VALUE(3, p_c);
	VALUE(4, p_s);
	fill(p_c, sizeof *p_c, 0x50a0cc04d7d4b215u, 0, 0);
	fill(p_s, sizeof *p_s, 0x50a0c504d7d4a630u, 0, 0);
	return (cublasStatus_t)(puregpu_echo.fail ? 909 : 0);
}

cublasStatus_t cublasZrotg_v2(cublasHandle_t p_handle, cuDoubleComplex *p_a, cuDoubleComplex *p_b, double *p_c, cuDoubleComplex *p_s) {
	begin(139);
	VALUE(0, p_handle);
	VALUE(1, p_a);
	MEMORY(1, p_a, sizeof *p_a);
	VALUE(2, p_b);
	MEMORY(2, p_b, sizeof *p_b);
	VALUE(3, p_c);
	VALUE(4, p_s);
	fill(p_c, sizeof *p_c, 0xcab0e7b63e5ba25cu, 0, 0);
	fill(p_s, sizeof *p_s, 0xcab0e6b63e5ba0a9u, 0, 0);
	return (cublasStatus_t)(puregpu_echo.fail ? 902 : 0);
}

cublasStatus_t cublasRotgEx(cublasHandle_t p_handle, void *p_a, void *p_b, cudaDataType p_abType, void *p_c, void *p_s, cudaDataType p_csType, cudaDataType p_executiontype) {
	begin(140);
	VALUE(0, p_handle);
	VALUE(1, p_a);
	VALUE(2, p_b);
	VALUE(3, p_abType);
	VALUE(4, p_c);
	VALUE(5, p_s);
	VALUE(6, p_csType);
	VALUE(7, p_executiontype);
	return (cublasStatus_t)(puregpu_echo.fail ? 962 : 0);
}

cublasStatus_t cublasSrotm_v2(cublasHandle_t p_handle, int p_n, float *p_x, int p_incx, float *p_y, int p_incy, const float *p_param) {
	begin(141);
	VALUE(0, p_handle);
	VALUE(1, p_n);
	VALUE(2, p_x);
	VALUE(3, p_incx);
	VALUE(4, p_y);
	VALUE(5, p_incy);
	VALUE(6, p_param);
	MEMORY(6, p_param, 5 * sizeof *p_param);
	return (cublasStatus_t)(puregpu_echo.fail ? 928 : 0);
}

cublasStatus_t cublasSrotm_v2_64(cublasHandle_t p_handle, int64_t p_n, float *p_x, int64_t p_incx, float *p_y, int64_t p_incy, const float *p_param) {
	begin(142);
	VALUE(0, p_handle);
	VALUE(1, p_n);
	VALUE(2, p_x);
	VALUE(3, p_incx);
	VALUE(4, p_y);
	VALUE(5, p_incy);
	VALUE(6, p_param);
	MEMORY(6, p_param, 5 * sizeof *p_param);
	return (cublasStatus_t)(puregpu_echo.fail ? 981 : 0);
}

cublasStatus_t cublasDrotm_v2(cublasHandle_t p_handle, int p_n, double *p_x, int p_incx, double *p_y, int p_incy, const double *p_param) {
	begin(143);
	VALUE(0, p_handle);
	VALUE(1, p_n);
	VALUE(2, p_x);
	VALUE(3, p_incx);
	VALUE(4, p_y);
	VALUE(5, p_incy);
	VALUE(6, p_param);
	MEMORY(6, p_param, 5 * sizeof *p_param);
	return (cublasStatus_t)(puregpu_echo.fail ? 936 : 0);
}

cublasStatus_t cublasDrotm_v2_64(cublasHandle_t p_handle, int64_t p_n, double *p_x, int64_t p_incx, double *p_y, int64_t p_incy, const double *p_param) {
	begin(144);
	VALUE(0, p_handle);
	VALUE(1, p_n);
	VALUE(2, p_x);
	VALUE(3, p_incx);
	VALUE(4, p_y);
	VALUE(5, p_incy);
	VALUE(6, p_param);
	MEMORY(6, p_param, 5 * sizeof *p_param);
	return (cublasStatus_t)(puregpu_echo.fail ? 941 : 0);
}

cublasStatus_t cublasRotmEx(cublasHandle_t p_handle, int p_n, void *p_x, cudaDataType p_xType, int p_incx, void *p_y, cudaDataType p_yType, int p_incy, const void *p_param, cudaDataType p_paramType, cudaDataType p_executiontype) {
	begin(145);
	VALUE(0, p_handle);
	VALUE(1, p_n);
	VALUE(2, p_x);
	VALUE(3, p_xType);
	VALUE(4, p_incx);
	VALUE(5, p_y);
	VALUE(6, p_yType);
	VALUE(7, p_incy);
	VALUE(8, p_param);
	VALUE(9, p_paramType);
	VALUE(10, p_executiontype);
	return (cublasStatus_t)(puregpu_echo.fail ? 958 : 0);
}

cublasStatus_t cublasRotmEx_64(cublasHandle_t p_handle, int64_t p_n, void *p_x, cudaDataType p_xType, int64_t p_incx, void *p_y, cudaDataType p_yType, int64_t p_incy, const void *p_param, cudaDataType p_paramType, cudaDataType p_executiontype) {
	begin(146);
	VALUE(0, p_handle);
	VALUE(1, p_n);
	VALUE(2, p_x);
	VALUE(3, p_xType);
	VALUE(4, p_incx);
	VALUE(5, p_y);
	VALUE(6, p_yType);
	VALUE(7, p_incy);
	VALUE(8, p_param);
	VALUE(9, p_paramType);
	VALUE(10, p_executiontype);
	return (cublasStatus_t)(puregpu_echo.fail ? 965 : 0);
}

cublasStatus_t cublasSrotmg_v2(cublasHandle_t p_handle, float *p_d1, float *p_d2, float *p_x1, const float *p_y1, float *p_param) {
	begin(147);
	VALUE(0, p_handle);
	VALUE(1, p_d1);
	MEMORY(1, p_d1, sizeof *p_d1);
	VALUE(2, p_d2);
	MEMORY(2, p_d2, sizeof *p_d2);
	VALUE(3, p_x1);
	MEMORY(3, p_x1, sizeof *p_x1);
	VALUE(4, p_y1);
	MEMORY(4, p_y1, sizeof *p_y1);
	VALUE(5, p_param);
	MEMORY(5, p_param, 5 * sizeof *p_param);
	return (cublasStatus_t)(puregpu_echo.fail ? 902 : 0);
}

cublasStatus_t cublasDrotmg_v2(cublasHandle_t p_handle, double *p_d1, double *p_d2, double *p_x1, const double *p_y1, double *p_param) {
	begin(148);
	VALUE(0, p_handle);
	VALUE(1, p_d1);
	MEMORY(1, p_d1, sizeof *p_d1);
	VALUE(2, p_d2);
	MEMORY(2, p_d2, sizeof *p_d2);
	VALUE(3, p_x1);
	MEMORY(3, p_x1, sizeof *p_x1);
	VALUE(4, p_y1);
	MEMORY(4, p_y1, sizeof *p_y1);
	VALUE(5, p_param);
	MEMORY(5, p_param, 5 * sizeof *p_param);
	return (cublasStatus_t)(puregpu_echo.fail ? 912 : 0);
}

cublasStatus_t cublasRotmgEx(cublasHandle_t p_handle, void *p_d1, cudaDataType p_d1Type, void *p_d2, cudaDataType p_d2Type, void *p_x1, cudaDataType p_x1Type, const void *p_y1, cudaDataType p_y1Type, void *p_param, cudaDataType p_paramType, cudaDataType p_executiontype) {
	begin(149);
	VALUE(0, p_handle);
	VALUE(1, p_d1);
	VALUE(2, p_d1Type);
	VALUE(3, p_d2);
	VALUE(4, p_d2Type);
	VALUE(5, p_x1);
	VALUE(6, p_x1Type);
	VALUE(7, p_y1);
	VALUE(8, p_y1Type);
	VALUE(9, p_param);
	VALUE(10, p_paramType);
	VALUE(11, p_executiontype);
	return (cublasStatus_t)(puregpu_echo.fail ? 942 : 0);
}

cublasStatus_t cublasSgemv_v2(cublasHandle_t p_handle, cublasOperation_t p_trans, int p_m, int p_n, const float *p_alpha, const float *p_A, int p_lda, const float *p_x, int p_incx, const float *p_beta, float *p_y, int p_incy) {
	begin(150);
	VALUE(0, p_handle);
	VALUE(1, p_trans);
	VALUE(2, p_m);
	VALUE(3, p_n);
	VALUE(4, p_alpha);
	MEMORY(4, p_alpha, sizeof *p_alpha);
	VALUE(5, p_A);
	VALUE(6, p_lda);
	VALUE(7, p_x);
	VALUE(8, p_incx);
	VALUE(9, p_beta);
	MEMORY(9, p_beta, sizeof *p_beta);
	VALUE(10, p_y);
	VALUE(11, p_incy);
	return (cublasStatus_t)(puregpu_echo.fail ? 915 : 0);
}

cublasStatus_t cublasSgemv_v2_64(cublasHandle_t p_handle, cublasOperation_t p_trans, int64_t p_m, int64_t p_n, const float *p_alpha, const float *p_A, int64_t p_lda, const float *p_x, int64_t p_incx, const float *p_beta, float *p_y, int64_t p_incy) {
	begin(151);
	VALUE(0, p_handle);
	VALUE(1, p_trans);
	VALUE(2, p_m);
	VALUE(3, p_n);
	VALUE(4, p_alpha);
	MEMORY(4, p_alpha, sizeof *p_alpha);
	VALUE(5, p_A);
	VALUE(6, p_lda);
	VALUE(7, p_x);
	VALUE(8, p_incx);
	VALUE(9, p_beta);
	MEMORY(9, p_beta, sizeof *p_beta);
	VALUE(10, p_y);
	VALUE(11, p_incy);
	return (cublasStatus_t)(puregpu_echo.fail ? 955 : 0);
}

cublasStatus_t cublasDgemv_v2(cublasHandle_t p_handle, cublasOperation_t p_trans, int p_m, int p_n, const double *p_alpha, const double *p_A, int p_lda, const double *p_x, int p_incx, const double *p_beta, double *p_y, int p_incy) {
	begin(152);
	VALUE(0, p_handle);
	VALUE(1, p_trans);
	VALUE(2, p_m);
	VALUE(3, p_n);
	VALUE(4, p_alpha);
	MEMORY(4, p_alpha, sizeof *p_alpha);
	VALUE(5, p_A);
	VALUE(6, p_lda);
	VALUE(7, p_x);
	VALUE(8, p_incx);
	VALUE(9, p_beta);
	MEMORY(9, p_beta, sizeof *p_beta);
	VALUE(10, p_y);
	VALUE(11, p_incy);
	return (cublasStatus_t)(puregpu_echo.fail ? 900 : 0);
}

cublasStatus_t cublasDgemv_v2_64(cublasHandle_t p_handle, cublasOperation_t p_trans, int64_t p_m, int64_t p_n, const double *p_alpha, const double *p_A, int64_t p_lda, const double *p_x, int64_t p_incx, const double *p_beta, double *p_y, int64_t p_incy) {
	begin(153);
	VALUE(0, p_handle);
	VALUE(1, p_trans);
	VALUE(2, p_m);
	VALUE(3, p_n);
	VALUE(4, p_alpha);
	MEMORY(4, p_alpha, sizeof *p_alpha);
	VALUE(5, p_A);
	VALUE(6, p_lda);
	VALUE(7, p_x);
	VALUE(8, p_incx);
	VALUE(9, p_beta);
	MEMORY(9, p_beta, sizeof *p_beta);
	VALUE(10, p_y);
	VALUE(11, p_incy);
	return (cublasStatus_t)(puregpu_echo.fail ? 962 : 0);
}

cublasStatus_t cublasCgemv_v2(cublasHandle_t p_handle, cublasOperation_t p_trans, int p_m, int p_n, const cuComplex *p_alpha, const cuComplex *p_A, int p_lda, const cuComplex *p_x, int p_incx, const cuComplex *p_beta, cuComplex *p_y, int p_incy) {
	begin(154);
	VALUE(0, p_handle);
	VALUE(1, p_trans);
	VALUE(2, p_m);
	VALUE(3, p_n);
	VALUE(4, p_alpha);
	MEMORY(4, p_alpha, sizeof *p_alpha);
	VALUE(5, p_A);
	VALUE(6, p_lda);
	VALUE(7, p_x);
	VALUE(8, p_incx);
	VALUE(9, p_beta);
	MEMORY(9, p_beta, sizeof *p_beta);
	VALUE(10, p_y);
	VALUE(11, p_incy);
	return (cublasStatus_t)(puregpu_echo.fail ? 955 : 0);
}

cublasStatus_t cublasCgemv_v2_64(cublasHandle_t p_handle, cublasOperation_t p_trans, int64_t p_m, int64_t p_n, const cuComplex *p_alpha, const cuComplex *p_A, int64_t p_lda, const cuComplex *p_x, int64_t p_incx, const cuComplex *p_beta, cuComplex *p_y, int64_t p_incy) {
	begin(155);
	VALUE(0, p_handle);
	VALUE(1, p_trans);
	VALUE(2, p_m);
	VALUE(3, p_n);
	VALUE(4, p_alpha);
	MEMORY(4, p_alpha, sizeof *p_alpha);
	VALUE(5, p_A);
	VALUE(6, p_lda);
	VALUE(7, p_x);
	VALUE(8, p_incx);
	VALUE(9, p_beta);
	MEMORY(9, p_beta, sizeof *p_beta);
	VALUE(10, p_y);
	VALUE(11, p_incy);
	return (cublasStatus_t)(puregpu_echo.fail ? 911 : 0);
}

cublasStatus_t cublasZgemv_v2(cublasHandle_t p_handle, cublasOperation_t p_trans, int p_m, int p_n, const cuDoubleComplex *p_alpha, const cuDoubleComplex *p_A, int p_lda, const cuDoubleComplex *p_x, int p_incx, const cuDoubleComplex *p_beta, cuDoubleComplex *p_y, int p_incy) {
	begin(156);
	VALUE(0, p_handle);
	VALUE(1, p_trans);
	VALUE(2, p_m);
	VALUE(3, p_n);
	VALUE(4, p_alpha);
	MEMORY(4, p_alpha, sizeof *p_alpha);
	VALUE(5, p_A);
	VALUE(6, p_lda);
	VALUE(7, p_x);
	VALUE(8, p_incx);
	VALUE(9, p_beta);
	MEMORY(9, p_beta, sizeof *p_beta);
	VALUE(10, p_y);
	VALUE(11, p_incy);
	return (cublasStatus_t)(puregpu_echo.fail ? 960 : 0);
}

cublasStatus_t cublasZgemv_v2_64(cublasHandle_t p_handle, cublasOperation_t p_trans, int64_t p_m, int64_t p_n, const cuDoubleComplex *p_alpha, const cuDoubleComplex *p_A, int64_t p_lda, const cuDoubleComplex *p_x, int64_t p_incx, const cuDoubleComplex *p_beta, cuDoubleComplex *p_y, int64_t p_incy) {
	begin(157);
	VALUE(0, p_handle);
	VALUE(1, p_trans);
	VALUE(2, p_m);
	VALUE(3, p_n);
	VALUE(4, p_alpha);
	MEMORY(4, p_alpha, sizeof *p_alpha);
	VALUE(5, p_A);
	VALUE(6, p_lda);
	VALUE(7, p_x);
	VALUE(8, p_incx);
	VALUE(9, p_beta);
	MEMORY(9, p_beta, sizeof *p_beta);
	VALUE(10, p_y);
	VALUE(11, p_incy);
	return (cublasStatus_t)(puregpu_echo.fail ? 936 : 0);
}

cublasStatus_t cublasSgbmv_v2(cublasHandle_t p_handle, cublasOperation_t p_trans, int p_m, int p_n, int p_kl, int p_ku, const float *p_alpha, const float *p_A, int p_lda, const float *p_x, int p_incx, const float *p_beta, float *p_y, int p_incy) {
	begin(158);
	VALUE(0, p_handle);
	VALUE(1, p_trans);
	VALUE(2, p_m);
	VALUE(3, p_n);
	VALUE(4, p_kl);
	VALUE(5, p_ku);
	VALUE(6, p_alpha);
	MEMORY(6, p_alpha, sizeof *p_alpha);
	VALUE(7, p_A);
	VALUE(8, p_lda);
	VALUE(9, p_x);
	VALUE(10, p_incx);
	VALUE(11, p_beta);
	MEMORY(11, p_beta, sizeof *p_beta);
	VALUE(12, p_y);
	VALUE(13, p_incy);
	return (cublasStatus_t)(puregpu_echo.fail ? 925 : 0);
}

cublasStatus_t cublasSgbmv_v2_64(cublasHandle_t p_handle, cublasOperation_t p_trans, int64_t p_m, int64_t p_n, int64_t p_kl, int64_t p_ku, const float *p_alpha, const float *p_A, int64_t p_lda, const float *p_x, int64_t p_incx, const float *p_beta, float *p_y, int64_t p_incy) {
	begin(159);
	VALUE(0, p_handle);
	VALUE(1, p_trans);
	VALUE(2, p_m);
	VALUE(3, p_n);
	VALUE(4, p_kl);
	VALUE(5, p_ku);
	VALUE(6, p_alpha);
	MEMORY(6, p_alpha, sizeof *p_alpha);
	VALUE(7, p_A);
	VALUE(8, p_lda);
	VALUE(9, p_x);
	VALUE(10, p_incx);
	VALUE(11, p_beta);
	MEMORY(11, p_beta, sizeof *p_beta);
	VALUE(12, p_y);
	VALUE(13, p_incy);
	return (cublasStatus_t)(puregpu_echo.fail ? 960 : 0);
}

cublasStatus_t cublasDgbmv_v2(cublasHandle_t p_handle, cublasOperation_t p_trans, int p_m, int p_n, int p_kl, int p_ku, const double *p_alpha, const double *p_A, int p_lda, const double *p_x, int p_incx, const double *p_beta, double *p_y, int p_incy) {
	begin(160);
	VALUE(0, p_handle);
	VALUE(1, p_trans);
	VALUE(2, p_m);
	VALUE(3, p_n);
	VALUE(4, p_kl);
	VALUE(5, p_ku);
	VALUE(6, p_alpha);
	MEMORY(6, p_alpha, sizeof *p_alpha);
	VALUE(7, p_A);
	VALUE(8, p_lda);
	VALUE(9, p_x);
	VALUE(10, p_incx);
	VALUE(11, p_beta);
	MEMORY(11, p_beta, sizeof *p_beta);
	VALUE(12, p_y);
	VALUE(13, p_incy);
	return (cublasStatus_t)(puregpu_echo.fail ? 909 : 0);
}

cublasStatus_t cublasDgbmv_v2_64(cublasHandle_t p_handle, cublasOperation_t p_trans, int64_t p_m, int64_t p_n, int64_t p_kl, int64_t p_ku, const double *p_alpha, const double *p_A, int64_t p_lda, const double *p_x, int64_t p_incx, const double *p_beta, double *p_y, int64_t p_incy) {
	begin(161);
	VALUE(0, p_handle);
	VALUE(1, p_trans);
	VALUE(2, p_m);
	VALUE(3, p_n);
	VALUE(4, p_kl);
	VALUE(5, p_ku);
	VALUE(6, p_alpha);
	MEMORY(6, p_alpha, sizeof *p_alpha);
	VALUE(7, p_A);
	VALUE(8, p_lda);
	VALUE(9, p_x);
	VALUE(10, p_incx);
	VALUE(11, p_beta);
	MEMORY(11, p_beta, sizeof *p_beta);
	VALUE(12, p_y);
	VALUE(13, p_incy);
	return (cublasStatus_t)(puregpu_echo.fail ? 927 : 0);
}

cublasStatus_t cublasCgbmv_v2(cublasHandle_t p_handle, cublasOperation_t p_trans, int p_m, int p_n, int p_kl, int p_ku, const cuComplex *p_alpha, const cuComplex *p_A, int p_lda, const cuComplex *p_x, int p_incx, const cuComplex *p_beta, cuComplex *p_y, int p_incy) {
	begin(162);
	VALUE(0, p_handle);
	VALUE(1, p_trans);
	VALUE(2, p_m);
	VALUE(3, p_n);
	VALUE(4, p_kl);
	VALUE(5, p_ku);
	VALUE(6, p_alpha);
	MEMORY(6, p_alpha, sizeof *p_alpha);
	VALUE(7, p_A);
	VALUE(8, p_lda);
	VALUE(9, p_x);
	VALUE(10, p_incx);
	VALUE(11, p_beta);
	MEMORY(11, p_beta, sizeof *p_beta);
	VALUE(12, p_y);
	VALUE(13, p_incy);
	return (cublasStatus_t)(puregpu_echo.fail ? 903 : 0);
}

cublasStatus_t cublasCgbmv_v2_64(cublasHandle_t p_handle, cublasOperation_t p_trans, int64_t p_m, int64_t p_n, int64_t p_kl, int64_t p_ku, const cuComplex *p_alpha, const cuComplex *p_A, int64_t p_lda, const cuComplex *p_x, int64_t p_incx, const cuComplex *p_beta, cuComplex *p_y, int64_t p_incy) {
	begin(163);
	VALUE(0, p_handle);
	VALUE(1, p_trans);
	VALUE(2, p_m);
	VALUE(3, p_n);
	VALUE(4, p_kl);
	VALUE(5, p_ku);
	VALUE(6, p_alpha);
	MEMORY(6, p_alpha, sizeof *p_alpha);
	VALUE(7, p_A);
	VALUE(8, p_lda);
	VALUE(9, p_x);
	VALUE(10, p_incx);
	VALUE(11, p_beta);
	MEMORY(11, p_beta, sizeof *p_beta);
	VALUE(12, p_y);
	VALUE(13, p_incy);
	return (cublasStatus_t)(puregpu_echo.fail ? 962 : 0);
}

cublasStatus_t cublasZgbmv_v2(cublasHandle_t p_handle, cublasOperation_t p_trans, int p_m, int p_n, int p_kl, int p_ku, const cuDoubleComplex *p_alpha, const cuDoubleComplex *p_A, int p_lda, const cuDoubleComplex *p_x, int p_incx, const cuDoubleComplex *p_beta, cuDoubleComplex *p_y, int p_incy) {
	begin(164);
	VALUE(0, p_handle);
	VALUE(1, p_trans);
	VALUE(2, p_m);
	VALUE(3, p_n);
	VALUE(4, p_kl);
	VALUE(5, p_ku);
	VALUE(6, p_alpha);
	MEMORY(6, p_alpha, sizeof *p_alpha);
	VALUE(7, p_A);
	VALUE(8, p_lda);
	VALUE(9, p_x);
	VALUE(10, p_incx);
	VALUE(11, p_beta);
	MEMORY(11, p_beta, sizeof *p_beta);
	VALUE(12, p_y);
	VALUE(13, p_incy);
	return (cublasStatus_t)(puregpu_echo.fail ? 970 : 0);
}

cublasStatus_t cublasZgbmv_v2_64(cublasHandle_t p_handle, cublasOperation_t p_trans, int64_t p_m, int64_t p_n, int64_t p_kl, int64_t p_ku, const cuDoubleComplex *p_alpha, const cuDoubleComplex *p_A, int64_t p_lda, const cuDoubleComplex *p_x, int64_t p_incx, const cuDoubleComplex *p_beta, cuDoubleComplex *p_y, int64_t p_incy) {
	begin(165);
	VALUE(0, p_handle);
	VALUE(1, p_trans);
	VALUE(2, p_m);
	VALUE(3, p_n);
	VALUE(4, p_kl);
	VALUE(5, p_ku);
	VALUE(6, p_alpha);
	MEMORY(6, p_alpha, sizeof *p_alpha);
	VALUE(7, p_A);
	VALUE(8, p_lda);
	VALUE(9, p_x);
	VALUE(10, p_incx);
	VALUE(11, p_beta);
	MEMORY(11, p_beta, sizeof *p_beta);
	VALUE(12, p_y);
	VALUE(13, p_incy);
	return (cublasStatus_t)(puregpu_echo.fail ? 916 : 0);
}

cublasStatus_t cublasStrmv_v2(cublasHandle_t p_handle, cublasFillMode_t p_uplo, cublasOperation_t p_trans, cublasDiagType_t p_diag, int p_n, const float *p_A, int p_lda, float *p_x, int p_incx) {
	begin(166);
	VALUE(0, p_handle);
	VALUE(1, p_uplo);
	VALUE(2, p_trans);
	VALUE(3, p_diag);
	VALUE(4, p_n);
	VALUE(5, p_A);
	VALUE(6, p_lda);
	VALUE(7, p_x);
	VALUE(8, p_incx);
	return (cublasStatus_t)(puregpu_echo.fail ? 954 : 0);
}

cublasStatus_t cublasStrmv_v2_64(cublasHandle_t p_handle, cublasFillMode_t p_uplo, cublasOperation_t p_trans, cublasDiagType_t p_diag, int64_t p_n, const float *p_A, int64_t p_lda, float *p_x, int64_t p_incx) {
	begin(167);
	VALUE(0, p_handle);
	VALUE(1, p_uplo);
	VALUE(2, p_trans);
	VALUE(3, p_diag);
	VALUE(4, p_n);
	VALUE(5, p_A);
	VALUE(6, p_lda);
	VALUE(7, p_x);
	VALUE(8, p_incx);
	return (cublasStatus_t)(puregpu_echo.fail ? 931 : 0);
}

cublasStatus_t cublasDtrmv_v2(cublasHandle_t p_handle, cublasFillMode_t p_uplo, cublasOperation_t p_trans, cublasDiagType_t p_diag, int p_n, const double *p_A, int p_lda, double *p_x, int p_incx) {
	begin(168);
	VALUE(0, p_handle);
	VALUE(1, p_uplo);
	VALUE(2, p_trans);
	VALUE(3, p_diag);
	VALUE(4, p_n);
	VALUE(5, p_A);
	VALUE(6, p_lda);
	VALUE(7, p_x);
	VALUE(8, p_incx);
	return (cublasStatus_t)(puregpu_echo.fail ? 982 : 0);
}

cublasStatus_t cublasDtrmv_v2_64(cublasHandle_t p_handle, cublasFillMode_t p_uplo, cublasOperation_t p_trans, cublasDiagType_t p_diag, int64_t p_n, const double *p_A, int64_t p_lda, double *p_x, int64_t p_incx) {
	begin(169);
	VALUE(0, p_handle);
	VALUE(1, p_uplo);
	VALUE(2, p_trans);
	VALUE(3, p_diag);
	VALUE(4, p_n);
	VALUE(5, p_A);
	VALUE(6, p_lda);
	VALUE(7, p_x);
	VALUE(8, p_incx);
	return (cublasStatus_t)(puregpu_echo.fail ? 908 : 0);
}

cublasStatus_t cublasCtrmv_v2(cublasHandle_t p_handle, cublasFillMode_t p_uplo, cublasOperation_t p_trans, cublasDiagType_t p_diag, int p_n, const cuComplex *p_A, int p_lda, cuComplex *p_x, int p_incx) {
	begin(170);
	VALUE(0, p_handle);
	VALUE(1, p_uplo);
	VALUE(2, p_trans);
	VALUE(3, p_diag);
	VALUE(4, p_n);
	VALUE(5, p_A);
	VALUE(6, p_lda);
	VALUE(7, p_x);
	VALUE(8, p_incx);
	return (cublasStatus_t)(puregpu_echo.fail ? 920 : 0);
}

cublasStatus_t cublasCtrmv_v2_64(cublasHandle_t p_handle, cublasFillMode_t p_uplo, cublasOperation_t p_trans, cublasDiagType_t p_diag, int64_t p_n, const cuComplex *p_A, int64_t p_lda, cuComplex *p_x, int64_t p_incx) {
	begin(171);
	VALUE(0, p_handle);
	VALUE(1, p_uplo);
	VALUE(2, p_trans);
	VALUE(3, p_diag);
	VALUE(4, p_n);
	VALUE(5, p_A);
	VALUE(6, p_lda);
	VALUE(7, p_x);
	VALUE(8, p_incx);
	return (cublasStatus_t)(puregpu_echo.fail ? 959 : 0);
}

cublasStatus_t cublasZtrmv_v2(cublasHandle_t p_handle, cublasFillMode_t p_uplo, cublasOperation_t p_trans, cublasDiagType_t p_diag, int p_n, const cuDoubleComplex *p_A, int p_lda, cuDoubleComplex *p_x, int p_incx) {
	begin(172);
	VALUE(0, p_handle);
	VALUE(1, p_uplo);
	VALUE(2, p_trans);
	VALUE(3, p_diag);
	VALUE(4, p_n);
	VALUE(5, p_A);
	VALUE(6, p_lda);
	VALUE(7, p_x);
	VALUE(8, p_incx);
	return (cublasStatus_t)(puregpu_echo.fail ? 914 : 0);
}

cublasStatus_t cublasZtrmv_v2_64(cublasHandle_t p_handle, cublasFillMode_t p_uplo, cublasOperation_t p_trans, cublasDiagType_t p_diag, int64_t p_n, const cuDoubleComplex *p_A, int64_t p_lda, cuDoubleComplex *p_x, int64_t p_incx) {
	begin(173);
	VALUE(0, p_handle);
	VALUE(1, p_uplo);
	VALUE(2, p_trans);
	VALUE(3, p_diag);
	VALUE(4, p_n);
	VALUE(5, p_A);
	VALUE(6, p_lda);
	VALUE(7, p_x);
	VALUE(8, p_incx);
	return (cublasStatus_t)(puregpu_echo.fail ? 932 : 0);
}

cublasStatus_t cublasStbmv_v2(cublasHandle_t p_handle, cublasFillMode_t p_uplo, cublasOperation_t p_trans, cublasDiagType_t p_diag, int p_n, int p_k, const float *p_A, int p_lda, float *p_x, int p_incx) {
	begin(174);
	VALUE(0, p_handle);
	VALUE(1, p_uplo);
	VALUE(2, p_trans);
	VALUE(3, p_diag);
	VALUE(4, p_n);
	VALUE(5, p_k);
	VALUE(6, p_A);
	VALUE(7, p_lda);
	VALUE(8, p_x);
	VALUE(9, p_incx);
	return (cublasStatus_t)(puregpu_echo.fail ? 968 : 0);
}

cublasStatus_t cublasStbmv_v2_64(cublasHandle_t p_handle, cublasFillMode_t p_uplo, cublasOperation_t p_trans, cublasDiagType_t p_diag, int64_t p_n, int64_t p_k, const float *p_A, int64_t p_lda, float *p_x, int64_t p_incx) {
	begin(175);
	VALUE(0, p_handle);
	VALUE(1, p_uplo);
	VALUE(2, p_trans);
	VALUE(3, p_diag);
	VALUE(4, p_n);
	VALUE(5, p_k);
	VALUE(6, p_A);
	VALUE(7, p_lda);
	VALUE(8, p_x);
	VALUE(9, p_incx);
	return (cublasStatus_t)(puregpu_echo.fail ? 974 : 0);
}

cublasStatus_t cublasDtbmv_v2(cublasHandle_t p_handle, cublasFillMode_t p_uplo, cublasOperation_t p_trans, cublasDiagType_t p_diag, int p_n, int p_k, const double *p_A, int p_lda, double *p_x, int p_incx) {
	begin(176);
	VALUE(0, p_handle);
	VALUE(1, p_uplo);
	VALUE(2, p_trans);
	VALUE(3, p_diag);
	VALUE(4, p_n);
	VALUE(5, p_k);
	VALUE(6, p_A);
	VALUE(7, p_lda);
	VALUE(8, p_x);
	VALUE(9, p_incx);
	return (cublasStatus_t)(puregpu_echo.fail ? 979 : 0);
}

cublasStatus_t cublasDtbmv_v2_64(cublasHandle_t p_handle, cublasFillMode_t p_uplo, cublasOperation_t p_trans, cublasDiagType_t p_diag, int64_t p_n, int64_t p_k, const double *p_A, int64_t p_lda, double *p_x, int64_t p_incx) {
	begin(177);
	VALUE(0, p_handle);
	VALUE(1, p_uplo);
	VALUE(2, p_trans);
	VALUE(3, p_diag);
	VALUE(4, p_n);
	VALUE(5, p_k);
	VALUE(6, p_A);
	VALUE(7, p_lda);
	VALUE(8, p_x);
	VALUE(9, p_incx);
	return (cublasStatus_t)(puregpu_echo.fail ? 900 : 0);
}

cublasStatus_t cublasCtbmv_v2(cublasHandle_t p_handle, cublasFillMode_t p_uplo, cublasOperation_t p_trans, cublasDiagType_t p_diag, int p_n, int p_k, const cuComplex *p_A, int p_lda, cuComplex *p_x, int p_incx) {
	begin(178);
	VALUE(0, p_handle);
	VALUE(1, p_uplo);
	VALUE(2, p_trans);
	VALUE(3, p_diag);
	VALUE(4, p_n);
	VALUE(5, p_k);
	VALUE(6, p_A);
	VALUE(7, p_lda);
	VALUE(8, p_x);
	VALUE(9, p_incx);
	return (cublasStatus_t)(puregpu_echo.fail ? 987 : 0);
}

cublasStatus_t cublasCtbmv_v2_64(cublasHandle_t p_handle, cublasFillMode_t p_uplo, cublasOperation_t p_trans, cublasDiagType_t p_diag, int64_t p_n, int64_t p_k, const cuComplex *p_A, int64_t p_lda, cuComplex *p_x, int64_t p_incx) {
	begin(179);
	VALUE(0, p_handle);
	VALUE(1, p_uplo);
	VALUE(2, p_trans);
	VALUE(3, p_diag);
	VALUE(4, p_n);
	VALUE(5, p_k);
	VALUE(6, p_A);
	VALUE(7, p_lda);
	VALUE(8, p_x);
	VALUE(9, p_incx);
	return (cublasStatus_t)(puregpu_echo.fail ? 960 : 0);
}

cublasStatus_t cublasZtbmv_v2(cublasHandle_t p_handle, cublasFillMode_t p_uplo, cublasOperation_t p_trans, cublasDiagType_t p_diag, int p_n, int p_k, const cuDoubleComplex *p_A, int p_lda, cuDoubleComplex *p_x, int p_incx) {
	begin(180);
	VALUE(0, p_handle);
	VALUE(1, p_uplo);
	VALUE(2, p_trans);
	VALUE(3, p_diag);
	VALUE(4, p_n);
	VALUE(5, p_k);
	VALUE(6, p_A);
	VALUE(7, p_lda);
	VALUE(8, p_x);
	VALUE(9, p_incx);
	return (cublasStatus_t)(puregpu_echo.fail ? 984 : 0);
}

cublasStatus_t cublasZtbmv_v2_64(cublasHandle_t p_handle, cublasFillMode_t p_uplo, cublasOperation_t p_trans, cublasDiagType_t p_diag, int64_t p_n, int64_t p_k, const cuDoubleComplex *p_A, int64_t p_lda, cuDoubleComplex *p_x, int64_t p_incx) {
	begin(181);
	VALUE(0, p_handle);
	VALUE(1, p_uplo);
	VALUE(2, p_trans);
	VALUE(3, p_diag);
	VALUE(4, p_n);
	VALUE(5, p_k);
	VALUE(6, p_A);
	VALUE(7, p_lda);
	VALUE(8, p_x);
	VALUE(9, p_incx);
	return (cublasStatus_t)(puregpu_echo.fail ? 933 : 0);
}

cublasStatus_t cublasStpmv_v2(cublasHandle_t p_handle, cublasFillMode_t p_uplo, cublasOperation_t p_trans, cublasDiagType_t p_diag, int p_n, const float *p_AP, float *p_x, int p_incx) {
	begin(182);
	VALUE(0, p_handle);
	VALUE(1, p_uplo);
	VALUE(2, p_trans);
	VALUE(3, p_diag);
	VALUE(4, p_n);
	VALUE(5, p_AP);
	VALUE(6, p_x);
	VALUE(7, p_incx);
	return (cublasStatus_t)(puregpu_echo.fail ? 956 : 0);
}

cublasStatus_t cublasStpmv_v2_64(cublasHandle_t p_handle, cublasFillMode_t p_uplo, cublasOperation_t p_trans, cublasDiagType_t p_diag, int64_t p_n, const float *p_AP, float *p_x, int64_t p_incx) {
	begin(183);
	VALUE(0, p_handle);
	VALUE(1, p_uplo);
	VALUE(2, p_trans);
	VALUE(3, p_diag);
	VALUE(4, p_n);
	VALUE(5, p_AP);
	VALUE(6, p_x);
	VALUE(7, p_incx);
	return (cublasStatus_t)(puregpu_echo.fail ? 986 : 0);
}

cublasStatus_t cublasDtpmv_v2(cublasHandle_t p_handle, cublasFillMode_t p_uplo, cublasOperation_t p_trans, cublasDiagType_t p_diag, int p_n, const double *p_AP, double *p_x, int p_incx) {
	begin(184);
	VALUE(0, p_handle);
	VALUE(1, p_uplo);
	VALUE(2, p_trans);
	VALUE(3, p_diag);
	VALUE(4, p_n);
	VALUE(5, p_AP);
	VALUE(6, p_x);
	VALUE(7, p_incx);
	return (cublasStatus_t)(puregpu_echo.fail ? 941 : 0);
}

cublasStatus_t cublasDtpmv_v2_64(cublasHandle_t p_handle, cublasFillMode_t p_uplo, cublasOperation_t p_trans, cublasDiagType_t p_diag, int64_t p_n, const double *p_AP, double *p_x, int64_t p_incx) {
	begin(185);
	VALUE(0, p_handle);
	VALUE(1, p_uplo);
	VALUE(2, p_trans);
	VALUE(3, p_diag);
	VALUE(4, p_n);
	VALUE(5, p_AP);
	VALUE(6, p_x);
	VALUE(7, p_incx);
	return (cublasStatus_t)(puregpu_echo.fail ? 962 : 0);
}

cublasStatus_t cublasCtpmv_v2(cublasHandle_t p_handle, cublasFillMode_t p_uplo, cublasOperation_t p_trans, cublasDiagType_t p_diag, int p_n, const cuComplex *p_AP, cuComplex *p_x, int p_incx) {
	begin(186);
	VALUE(0, p_handle);
	VALUE(1, p_uplo);
	VALUE(2, p_trans);
	VALUE(3, p_diag);
	VALUE(4, p_n);
	VALUE(5, p_AP);
	VALUE(6, p_x);
	VALUE(7, p_incx);
	return (cublasStatus_t)(puregpu_echo.fail ? 938 : 0);
}

cublasStatus_t cublasCtpmv_v2_64(cublasHandle_t p_handle, cublasFillMode_t p_uplo, cublasOperation_t p_trans, cublasDiagType_t p_diag, int64_t p_n, const cuComplex *p_AP, cuComplex *p_x, int64_t p_incx) {
	begin(187);
	VALUE(0, p_handle);
	VALUE(1, p_uplo);
	VALUE(2, p_trans);
	VALUE(3, p_diag);
	VALUE(4, p_n);
	VALUE(5, p_AP);
	VALUE(6, p_x);
	VALUE(7, p_incx);
	return (cublasStatus_t)(puregpu_echo.fail ? 900 : 0);
}

cublasStatus_t cublasZtpmv_v2(cublasHandle_t p_handle, cublasFillMode_t p_uplo, cublasOperation_t p_trans, cublasDiagType_t p_diag, int p_n, const cuDoubleComplex *p_AP, cuDoubleComplex *p_x, int p_incx) {
	begin(188);
	VALUE(0, p_handle);
	VALUE(1, p_uplo);
	VALUE(2, p_trans);
	VALUE(3, p_diag);
	VALUE(4, p_n);
	VALUE(5, p_AP);
	VALUE(6, p_x);
	VALUE(7, p_incx);
	return (cublasStatus_t)(puregpu_echo.fail ? 960 : 0);
}

cublasStatus_t cublasZtpmv_v2_64(cublasHandle_t p_handle, cublasFillMode_t p_uplo, cublasOperation_t p_trans, cublasDiagType_t p_diag, int64_t p_n, const cuDoubleComplex *p_AP, cuDoubleComplex *p_x, int64_t p_incx) {
	begin(189);
	VALUE(0, p_handle);
	VALUE(1, p_uplo);
	VALUE(2, p_trans);
	VALUE(3, p_diag);
	VALUE(4, p_n);
	VALUE(5, p_AP);
	VALUE(6, p_x);
	VALUE(7, p_incx);
	return (cublasStatus_t)(puregpu_echo.fail ? 970 : 0);
}

cublasStatus_t cublasStrsv_v2(cublasHandle_t p_handle, cublasFillMode_t p_uplo, cublasOperation_t p_trans, cublasDiagType_t p_diag, int p_n, const float *p_A, int p_lda, float *p_x, int p_incx) {
	begin(190);
	VALUE(0, p_handle);
	VALUE(1, p_uplo);
	VALUE(2, p_trans);
	VALUE(3, p_diag);
	VALUE(4, p_n);
	VALUE(5, p_A);
	VALUE(6, p_lda);
	VALUE(7, p_x);
	VALUE(8, p_incx);
	return (cublasStatus_t)(puregpu_echo.fail ? 980 : 0);
}

cublasStatus_t cublasStrsv_v2_64(cublasHandle_t p_handle, cublasFillMode_t p_uplo, cublasOperation_t p_trans, cublasDiagType_t p_diag, int64_t p_n, const float *p_A, int64_t p_lda, float *p_x, int64_t p_incx) {
	begin(191);
	VALUE(0, p_handle);
	VALUE(1, p_uplo);
	VALUE(2, p_trans);
	VALUE(3, p_diag);
	VALUE(4, p_n);
	VALUE(5, p_A);
	VALUE(6, p_lda);
	VALUE(7, p_x);
	VALUE(8, p_incx);
	return (cublasStatus_t)(puregpu_echo.fail ? 950 : 0);
}

cublasStatus_t cublasDtrsv_v2(cublasHandle_t p_handle, cublasFillMode_t p_uplo, cublasOperation_t p_trans, cublasDiagType_t p_diag, int p_n, const double *p_A, int p_lda, double *p_x, int p_incx) {
	begin(192);
	VALUE(0, p_handle);
	VALUE(1, p_uplo);
	VALUE(2, p_trans);
	VALUE(3, p_diag);
	VALUE(4, p_n);
	VALUE(5, p_A);
	VALUE(6, p_lda);
	VALUE(7, p_x);
	VALUE(8, p_incx);
	return (cublasStatus_t)(puregpu_echo.fail ? 957 : 0);
}

cublasStatus_t cublasDtrsv_v2_64(cublasHandle_t p_handle, cublasFillMode_t p_uplo, cublasOperation_t p_trans, cublasDiagType_t p_diag, int64_t p_n, const double *p_A, int64_t p_lda, double *p_x, int64_t p_incx) {
	begin(193);
	VALUE(0, p_handle);
	VALUE(1, p_uplo);
	VALUE(2, p_trans);
	VALUE(3, p_diag);
	VALUE(4, p_n);
	VALUE(5, p_A);
	VALUE(6, p_lda);
	VALUE(7, p_x);
	VALUE(8, p_incx);
	return (cublasStatus_t)(puregpu_echo.fail ? 967 : 0);
}

cublasStatus_t cublasCtrsv_v2(cublasHandle_t p_handle, cublasFillMode_t p_uplo, cublasOperation_t p_trans, cublasDiagType_t p_diag, int p_n, const cuComplex *p_A, int p_lda, cuComplex *p_x, int p_incx) {
	begin(194);
	VALUE(0, p_handle);
	VALUE(1, p_uplo);
	VALUE(2, p_trans);
	VALUE(3, p_diag);
	VALUE(4, p_n);
	VALUE(5, p_A);
	VALUE(6, p_lda);
	VALUE(7, p_x);
	VALUE(8, p_incx);
	return (cublasStatus_t)(puregpu_echo.fail ? 905 : 0);
}

cublasStatus_t cublasCtrsv_v2_64(cublasHandle_t p_handle, cublasFillMode_t p_uplo, cublasOperation_t p_trans, cublasDiagType_t p_diag, int64_t p_n, const cuComplex *p_A, int64_t p_lda, cuComplex *p_x, int64_t p_incx) {
	begin(195);
	VALUE(0, p_handle);
	VALUE(1, p_uplo);
	VALUE(2, p_trans);
	VALUE(3, p_diag);
	VALUE(4, p_n);
	VALUE(5, p_A);
	VALUE(6, p_lda);
	VALUE(7, p_x);
	VALUE(8, p_incx);
	return (cublasStatus_t)(puregpu_echo.fail ? 945 : 0);
}

cublasStatus_t cublasZtrsv_v2(cublasHandle_t p_handle, cublasFillMode_t p_uplo, cublasOperation_t p_trans, cublasDiagType_t p_diag, int p_n, const cuDoubleComplex *p_A, int p_lda, cuDoubleComplex *p_x, int p_incx) {
	begin(196);
	VALUE(0, p_handle);
	VALUE(1, p_uplo);
	VALUE(2, p_trans);
	VALUE(3, p_diag);
	VALUE(4, p_n);
	VALUE(5, p_A);
	VALUE(6, p_lda);
	VALUE(7, p_x);
	VALUE(8, p_incx);
	return (cublasStatus_t)(puregpu_echo.fail ? 939 : 0);
}

cublasStatus_t cublasZtrsv_v2_64(cublasHandle_t p_handle, cublasFillMode_t p_uplo, cublasOperation_t p_trans, cublasDiagType_t p_diag, int64_t p_n, const cuDoubleComplex *p_A, int64_t p_lda, cuDoubleComplex *p_x, int64_t p_incx) {
	begin(197);
	VALUE(0, p_handle);
	VALUE(1, p_uplo);
	VALUE(2, p_trans);
	VALUE(3, p_diag);
	VALUE(4, p_n);
	VALUE(5, p_A);
	VALUE(6, p_lda);
	VALUE(7, p_x);
	VALUE(8, p_incx);
	return (cublasStatus_t)(puregpu_echo.fail ? 940 : 0);
}

cublasStatus_t cublasStpsv_v2(cublasHandle_t p_handle, cublasFillMode_t p_uplo, cublasOperation_t p_trans, cublasDiagType_t p_diag, int p_n, const float *p_AP, float *p_x, int p_incx) {
	begin(198);
	VALUE(0, p_handle);
	VALUE(1, p_uplo);
	VALUE(2, p_trans);
	VALUE(3, p_diag);
	VALUE(4, p_n);
	VALUE(5, p_AP);
	VALUE(6, p_x);
	VALUE(7, p_incx);
	return (cublasStatus_t)(puregpu_echo.fail ? 979 : 0);
}

cublasStatus_t cublasStpsv_v2_64(cublasHandle_t p_handle, cublasFillMode_t p_uplo, cublasOperation_t p_trans, cublasDiagType_t p_diag, int64_t p_n, const float *p_AP, float *p_x, int64_t p_incx) {
	begin(199);
	VALUE(0, p_handle);
	VALUE(1, p_uplo);
	VALUE(2, p_trans);
	VALUE(3, p_diag);
	VALUE(4, p_n);
	VALUE(5, p_AP);
	VALUE(6, p_x);
	VALUE(7, p_incx);
	return (cublasStatus_t)(puregpu_echo.fail ? 945 : 0);
}

cublasStatus_t cublasDtpsv_v2(cublasHandle_t p_handle, cublasFillMode_t p_uplo, cublasOperation_t p_trans, cublasDiagType_t p_diag, int p_n, const double *p_AP, double *p_x, int p_incx) {
	begin(200);
	VALUE(0, p_handle);
	VALUE(1, p_uplo);
	VALUE(2, p_trans);
	VALUE(3, p_diag);
	VALUE(4, p_n);
	VALUE(5, p_AP);
	VALUE(6, p_x);
	VALUE(7, p_incx);
	return (cublasStatus_t)(puregpu_echo.fail ? 959 : 0);
}

cublasStatus_t cublasDtpsv_v2_64(cublasHandle_t p_handle, cublasFillMode_t p_uplo, cublasOperation_t p_trans, cublasDiagType_t p_diag, int64_t p_n, const double *p_AP, double *p_x, int64_t p_incx) {
	begin(201);
	VALUE(0, p_handle);
	VALUE(1, p_uplo);
	VALUE(2, p_trans);
	VALUE(3, p_diag);
	VALUE(4, p_n);
	VALUE(5, p_AP);
	VALUE(6, p_x);
	VALUE(7, p_incx);
	return (cublasStatus_t)(puregpu_echo.fail ? 960 : 0);
}

cublasStatus_t cublasCtpsv_v2(cublasHandle_t p_handle, cublasFillMode_t p_uplo, cublasOperation_t p_trans, cublasDiagType_t p_diag, int p_n, const cuComplex *p_AP, cuComplex *p_x, int p_incx) {
	begin(202);
	VALUE(0, p_handle);
	VALUE(1, p_uplo);
	VALUE(2, p_trans);
	VALUE(3, p_diag);
	VALUE(4, p_n);
	VALUE(5, p_AP);
	VALUE(6, p_x);
	VALUE(7, p_incx);
	return (cublasStatus_t)(puregpu_echo.fail ? 953 : 0);
}

cublasStatus_t cublasCtpsv_v2_64(cublasHandle_t p_handle, cublasFillMode_t p_uplo, cublasOperation_t p_trans, cublasDiagType_t p_diag, int64_t p_n, const cuComplex *p_AP, cuComplex *p_x, int64_t p_incx) {
	begin(203);
	VALUE(0, p_handle);
	VALUE(1, p_uplo);
	VALUE(2, p_trans);
	VALUE(3, p_diag);
	VALUE(4, p_n);
	VALUE(5, p_AP);
	VALUE(6, p_x);
	VALUE(7, p_incx);
	return (cublasStatus_t)(puregpu_echo.fail ? 920 : 0);
}

cublasStatus_t cublasZtpsv_v2(cublasHandle_t p_handle, cublasFillMode_t p_uplo, cublasOperation_t p_trans, cublasDiagType_t p_diag, int p_n, const cuDoubleComplex *p_AP, cuDoubleComplex *p_x, int p_incx) {
	begin(204);
	VALUE(0, p_handle);
	VALUE(1, p_uplo);
	VALUE(2, p_trans);
	VALUE(3, p_diag);
	VALUE(4, p_n);
	VALUE(5, p_AP);
	VALUE(6, p_x);
	VALUE(7, p_incx);
	return (cublasStatus_t)(puregpu_echo.fail ? 909 : 0);
}

cublasStatus_t cublasZtpsv_v2_64(cublasHandle_t p_handle, cublasFillMode_t p_uplo, cublasOperation_t p_trans, cublasDiagType_t p_diag, int64_t p_n, const cuDoubleComplex *p_AP, cuDoubleComplex *p_x, int64_t p_incx) {
	begin(205);
	VALUE(0, p_handle);
	VALUE(1, p_uplo);
	VALUE(2, p_trans);
	VALUE(3, p_diag);
	VALUE(4, p_n);
	VALUE(5, p_AP);
	VALUE(6, p_x);
	VALUE(7, p_incx);
	return (cublasStatus_t)(puregpu_echo.fail ? 963 : 0);
}

cublasStatus_t cublasStbsv_v2(cublasHandle_t p_handle, cublasFillMode_t p_uplo, cublasOperation_t p_trans, cublasDiagType_t p_diag, int p_n, int p_k, const float *p_A, int p_lda, float *p_x, int p_incx) {
	begin(206);
	VALUE(0, p_handle);
	VALUE(1, p_uplo);
	VALUE(2, p_trans);
	VALUE(3, p_diag);
	VALUE(4, p_n);
	VALUE(5, p_k);
	VALUE(6, p_A);
	VALUE(7, p_lda);
	VALUE(8, p_x);
	VALUE(9, p_incx);
	return (cublasStatus_t)(puregpu_echo.fail ? 983 : 0);
}

cublasStatus_t cublasStbsv_v2_64(cublasHandle_t p_handle, cublasFillMode_t p_uplo, cublasOperation_t p_trans, cublasDiagType_t p_diag, int64_t p_n, int64_t p_k, const float *p_A, int64_t p_lda, float *p_x, int64_t p_incx) {
	begin(207);
	VALUE(0, p_handle);
	VALUE(1, p_uplo);
	VALUE(2, p_trans);
	VALUE(3, p_diag);
	VALUE(4, p_n);
	VALUE(5, p_k);
	VALUE(6, p_A);
	VALUE(7, p_lda);
	VALUE(8, p_x);
	VALUE(9, p_incx);
	return (cublasStatus_t)(puregpu_echo.fail ? 942 : 0);
}

cublasStatus_t cublasDtbsv_v2(cublasHandle_t p_handle, cublasFillMode_t p_uplo, cublasOperation_t p_trans, cublasDiagType_t p_diag, int p_n, int p_k, const double *p_A, int p_lda, double *p_x, int p_incx) {
	begin(208);
	VALUE(0, p_handle);
	VALUE(1, p_uplo);
	VALUE(2, p_trans);
	VALUE(3, p_diag);
	VALUE(4, p_n);
	VALUE(5, p_k);
	VALUE(6, p_A);
	VALUE(7, p_lda);
	VALUE(8, p_x);
	VALUE(9, p_incx);
	return (cublasStatus_t)(puregpu_echo.fail ? 964 : 0);
}

cublasStatus_t cublasDtbsv_v2_64(cublasHandle_t p_handle, cublasFillMode_t p_uplo, cublasOperation_t p_trans, cublasDiagType_t p_diag, int64_t p_n, int64_t p_k, const double *p_A, int64_t p_lda, double *p_x, int64_t p_incx) {
	begin(209);
	VALUE(0, p_handle);
	VALUE(1, p_uplo);
	VALUE(2, p_trans);
	VALUE(3, p_diag);
	VALUE(4, p_n);
	VALUE(5, p_k);
	VALUE(6, p_A);
	VALUE(7, p_lda);
	VALUE(8, p_x);
	VALUE(9, p_incx);
	return (cublasStatus_t)(puregpu_echo.fail ? 955 : 0);
}

cublasStatus_t cublasCtbsv_v2(cublasHandle_t p_handle, cublasFillMode_t p_uplo, cublasOperation_t p_trans, cublasDiagType_t p_diag, int p_n, int p_k, const cuComplex *p_A, int p_lda, cuComplex *p_x, int p_incx) {
	begin(210);
	VALUE(0, p_handle);
	VALUE(1, p_uplo);
	VALUE(2, p_trans);
	VALUE(3, p_diag);
	VALUE(4, p_n);
	VALUE(5, p_k);
	VALUE(6, p_A);
	VALUE(7, p_lda);
	VALUE(8, p_x);
	VALUE(9, p_incx);
	return (cublasStatus_t)(puregpu_echo.fail ? 959 : 0);
}

cublasStatus_t cublasCtbsv_v2_64(cublasHandle_t p_handle, cublasFillMode_t p_uplo, cublasOperation_t p_trans, cublasDiagType_t p_diag, int64_t p_n, int64_t p_k, const cuComplex *p_A, int64_t p_lda, cuComplex *p_x, int64_t p_incx) {
	begin(211);
	VALUE(0, p_handle);
	VALUE(1, p_uplo);
	VALUE(2, p_trans);
	VALUE(3, p_diag);
	VALUE(4, p_n);
	VALUE(5, p_k);
	VALUE(6, p_A);
	VALUE(7, p_lda);
	VALUE(8, p_x);
	VALUE(9, p_incx);
	return (cublasStatus_t)(puregpu_echo.fail ? 910 : 0);
}

cublasStatus_t cublasZtbsv_v2(cublasHandle_t p_handle, cublasFillMode_t p_uplo, cublasOperation_t p_trans, cublasDiagType_t p_diag, int p_n, int p_k, const cuDoubleComplex *p_A, int p_lda, cuDoubleComplex *p_x, int p_incx) {
	begin(212);
	VALUE(0, p_handle);
	VALUE(1, p_uplo);
	VALUE(2, p_trans);
	VALUE(3, p_diag);
	VALUE(4, p_n);
	VALUE(5, p_k);
	VALUE(6, p_A);
	VALUE(7, p_lda);
	VALUE(8, p_x);
	VALUE(9, p_incx);
	return (cublasStatus_t)(puregpu_echo.fail ? 977 : 0);
}

cublasStatus_t cublasZtbsv_v2_64(cublasHandle_t p_handle, cublasFillMode_t p_uplo, cublasOperation_t p_trans, cublasDiagType_t p_diag, int64_t p_n, int64_t p_k, const cuDoubleComplex *p_A, int64_t p_lda, cuDoubleComplex *p_x, int64_t p_incx) {
	begin(213);
	VALUE(0, p_handle);
	VALUE(1, p_uplo);
	VALUE(2, p_trans);
	VALUE(3, p_diag);
	VALUE(4, p_n);
	VALUE(5, p_k);
	VALUE(6, p_A);
	VALUE(7, p_lda);
	VALUE(8, p_x);
	VALUE(9, p_incx);
	return (cublasStatus_t)(puregpu_echo.fail ? 900 : 0);
}

cublasStatus_t cublasSsymv_v2(cublasHandle_t p_handle, cublasFillMode_t p_uplo, int p_n, const float *p_alpha, const float *p_A, int p_lda, const float *p_x, int p_incx, const float *p_beta, float *p_y, int p_incy) {
	begin(214);
	VALUE(0, p_handle);
	VALUE(1, p_uplo);
	VALUE(2, p_n);
	VALUE(3, p_alpha);
	MEMORY(3, p_alpha, sizeof *p_alpha);
	VALUE(4, p_A);
	VALUE(5, p_lda);
	VALUE(6, p_x);
	VALUE(7, p_incx);
	VALUE(8, p_beta);
	MEMORY(8, p_beta, sizeof *p_beta);
	VALUE(9, p_y);
	VALUE(10, p_incy);
	return (cublasStatus_t)(puregpu_echo.fail ? 988 : 0);
}

cublasStatus_t cublasSsymv_v2_64(cublasHandle_t p_handle, cublasFillMode_t p_uplo, int64_t p_n, const float *p_alpha, const float *p_A, int64_t p_lda, const float *p_x, int64_t p_incx, const float *p_beta, float *p_y, int64_t p_incy) {
	begin(215);
	VALUE(0, p_handle);
	VALUE(1, p_uplo);
	VALUE(2, p_n);
	VALUE(3, p_alpha);
	MEMORY(3, p_alpha, sizeof *p_alpha);
	VALUE(4, p_A);
	VALUE(5, p_lda);
	VALUE(6, p_x);
	VALUE(7, p_incx);
	VALUE(8, p_beta);
	MEMORY(8, p_beta, sizeof *p_beta);
	VALUE(9, p_y);
	VALUE(10, p_incy);
	return (cublasStatus_t)(puregpu_echo.fail ? 941 : 0);
}

cublasStatus_t cublasDsymv_v2(cublasHandle_t p_handle, cublasFillMode_t p_uplo, int p_n, const double *p_alpha, const double *p_A, int p_lda, const double *p_x, int p_incx, const double *p_beta, double *p_y, int p_incy) {
	begin(216);
	VALUE(0, p_handle);
	VALUE(1, p_uplo);
	VALUE(2, p_n);
	VALUE(3, p_alpha);
	MEMORY(3, p_alpha, sizeof *p_alpha);
	VALUE(4, p_A);
	VALUE(5, p_lda);
	VALUE(6, p_x);
	VALUE(7, p_incx);
	VALUE(8, p_beta);
	MEMORY(8, p_beta, sizeof *p_beta);
	VALUE(9, p_y);
	VALUE(10, p_incy);
	return (cublasStatus_t)(puregpu_echo.fail ? 908 : 0);
}

cublasStatus_t cublasDsymv_v2_64(cublasHandle_t p_handle, cublasFillMode_t p_uplo, int64_t p_n, const double *p_alpha, const double *p_A, int64_t p_lda, const double *p_x, int64_t p_incx, const double *p_beta, double *p_y, int64_t p_incy) {
	begin(217);
	VALUE(0, p_handle);
	VALUE(1, p_uplo);
	VALUE(2, p_n);
	VALUE(3, p_alpha);
	MEMORY(3, p_alpha, sizeof *p_alpha);
	VALUE(4, p_A);
	VALUE(5, p_lda);
	VALUE(6, p_x);
	VALUE(7, p_incx);
	VALUE(8, p_beta);
	MEMORY(8, p_beta, sizeof *p_beta);
	VALUE(9, p_y);
	VALUE(10, p_incy);
	return (cublasStatus_t)(puregpu_echo.fail ? 935 : 0);
}

cublasStatus_t cublasCsymv_v2(cublasHandle_t p_handle, cublasFillMode_t p_uplo, int p_n, const cuComplex *p_alpha, const cuComplex *p_A, int p_lda, const cuComplex *p_x, int p_incx, const cuComplex *p_beta, cuComplex *p_y, int p_incy) {
	begin(218);
	VALUE(0, p_handle);
	VALUE(1, p_uplo);
	VALUE(2, p_n);
	VALUE(3, p_alpha);
	MEMORY(3, p_alpha, sizeof *p_alpha);
	VALUE(4, p_A);
	VALUE(5, p_lda);
	VALUE(6, p_x);
	VALUE(7, p_incx);
	VALUE(8, p_beta);
	MEMORY(8, p_beta, sizeof *p_beta);
	VALUE(9, p_y);
	VALUE(10, p_incy);
	return (cublasStatus_t)(puregpu_echo.fail ? 911 : 0);
}

cublasStatus_t cublasCsymv_v2_64(cublasHandle_t p_handle, cublasFillMode_t p_uplo, int64_t p_n, const cuComplex *p_alpha, const cuComplex *p_A, int64_t p_lda, const cuComplex *p_x, int64_t p_incx, const cuComplex *p_beta, cuComplex *p_y, int64_t p_incy) {
	begin(219);
	VALUE(0, p_handle);
	VALUE(1, p_uplo);
	VALUE(2, p_n);
	VALUE(3, p_alpha);
	MEMORY(3, p_alpha, sizeof *p_alpha);
	VALUE(4, p_A);
	VALUE(5, p_lda);
	VALUE(6, p_x);
	VALUE(7, p_incx);
	VALUE(8, p_beta);
	MEMORY(8, p_beta, sizeof *p_beta);
	VALUE(9, p_y);
	VALUE(10, p_incy);
	return (cublasStatus_t)(puregpu_echo.fail ? 969 : 0);
}

cublasStatus_t cublasZsymv_v2(cublasHandle_t p_handle, cublasFillMode_t p_uplo, int p_n, const cuDoubleComplex *p_alpha, const cuDoubleComplex *p_A, int p_lda, const cuDoubleComplex *p_x, int p_incx, const cuDoubleComplex *p_beta, cuDoubleComplex *p_y, int p_incy) {
	begin(220);
	VALUE(0, p_handle);
	VALUE(1, p_uplo);
	VALUE(2, p_n);
	VALUE(3, p_alpha);
	MEMORY(3, p_alpha, sizeof *p_alpha);
	VALUE(4, p_A);
	VALUE(5, p_lda);
	VALUE(6, p_x);
	VALUE(7, p_incx);
	VALUE(8, p_beta);
	MEMORY(8, p_beta, sizeof *p_beta);
	VALUE(9, p_y);
	VALUE(10, p_incy);
	return (cublasStatus_t)(puregpu_echo.fail ? 908 : 0);
}

cublasStatus_t cublasZsymv_v2_64(cublasHandle_t p_handle, cublasFillMode_t p_uplo, int64_t p_n, const cuDoubleComplex *p_alpha, const cuDoubleComplex *p_A, int64_t p_lda, const cuDoubleComplex *p_x, int64_t p_incx, const cuDoubleComplex *p_beta, cuDoubleComplex *p_y, int64_t p_incy) {
	begin(221);
	VALUE(0, p_handle);
	VALUE(1, p_uplo);
	VALUE(2, p_n);
	VALUE(3, p_alpha);
	MEMORY(3, p_alpha, sizeof *p_alpha);
	VALUE(4, p_A);
	VALUE(5, p_lda);
	VALUE(6, p_x);
	VALUE(7, p_incx);
	VALUE(8, p_beta);
	MEMORY(8, p_beta, sizeof *p_beta);
	VALUE(9, p_y);
	VALUE(10, p_incy);
	return (cublasStatus_t)(puregpu_echo.fail ? 905 : 0);
}

cublasStatus_t cublasChemv_v2(cublasHandle_t p_handle, cublasFillMode_t p_uplo, int p_n, const cuComplex *p_alpha, const cuComplex *p_A, int p_lda, const cuComplex *p_x, int p_incx, const cuComplex *p_beta, cuComplex *p_y, int p_incy) {
	begin(222);
	VALUE(0, p_handle);
	VALUE(1, p_uplo);
	VALUE(2, p_n);
	VALUE(3, p_alpha);
	MEMORY(3, p_alpha, sizeof *p_alpha);
	VALUE(4, p_A);
	VALUE(5, p_lda);
	VALUE(6, p_x);
	VALUE(7, p_incx);
	VALUE(8, p_beta);
	MEMORY(8, p_beta, sizeof *p_beta);
	VALUE(9, p_y);
	VALUE(10, p_incy);
	return (cublasStatus_t)(puregpu_echo.fail ? 967 : 0);
}

cublasStatus_t cublasChemv_v2_64(cublasHandle_t p_handle, cublasFillMode_t p_uplo, int64_t p_n, const cuComplex *p_alpha, const cuComplex *p_A, int64_t p_lda, const cuComplex *p_x, int64_t p_incx, const cuComplex *p_beta, cuComplex *p_y, int64_t p_incy) {
	begin(223);
	VALUE(0, p_handle);
	VALUE(1, p_uplo);
	VALUE(2, p_n);
	VALUE(3, p_alpha);
	MEMORY(3, p_alpha, sizeof *p_alpha);
	VALUE(4, p_A);
	VALUE(5, p_lda);
	VALUE(6, p_x);
	VALUE(7, p_incx);
	VALUE(8, p_beta);
	MEMORY(8, p_beta, sizeof *p_beta);
	VALUE(9, p_y);
	VALUE(10, p_incy);
	return (cublasStatus_t)(puregpu_echo.fail ? 933 : 0);
}

cublasStatus_t cublasZhemv_v2(cublasHandle_t p_handle, cublasFillMode_t p_uplo, int p_n, const cuDoubleComplex *p_alpha, const cuDoubleComplex *p_A, int p_lda, const cuDoubleComplex *p_x, int p_incx, const cuDoubleComplex *p_beta, cuDoubleComplex *p_y, int p_incy) {
	begin(224);
	VALUE(0, p_handle);
	VALUE(1, p_uplo);
	VALUE(2, p_n);
	VALUE(3, p_alpha);
	MEMORY(3, p_alpha, sizeof *p_alpha);
	VALUE(4, p_A);
	VALUE(5, p_lda);
	VALUE(6, p_x);
	VALUE(7, p_incx);
	VALUE(8, p_beta);
	MEMORY(8, p_beta, sizeof *p_beta);
	VALUE(9, p_y);
	VALUE(10, p_incy);
	return (cublasStatus_t)(puregpu_echo.fail ? 915 : 0);
}

cublasStatus_t cublasZhemv_v2_64(cublasHandle_t p_handle, cublasFillMode_t p_uplo, int64_t p_n, const cuDoubleComplex *p_alpha, const cuDoubleComplex *p_A, int64_t p_lda, const cuDoubleComplex *p_x, int64_t p_incx, const cuDoubleComplex *p_beta, cuDoubleComplex *p_y, int64_t p_incy) {
	begin(225);
	VALUE(0, p_handle);
	VALUE(1, p_uplo);
	VALUE(2, p_n);
	VALUE(3, p_alpha);
	MEMORY(3, p_alpha, sizeof *p_alpha);
	VALUE(4, p_A);
	VALUE(5, p_lda);
	VALUE(6, p_x);
	VALUE(7, p_incx);
	VALUE(8, p_beta);
	MEMORY(8, p_beta, sizeof *p_beta);
	VALUE(9, p_y);
	VALUE(10, p_incy);
	return (cublasStatus_t)(puregpu_echo.fail ? 915 : 0);
}

cublasStatus_t cublasSsbmv_v2(cublasHandle_t p_handle, cublasFillMode_t p_uplo, int p_n, int p_k, const float *p_alpha, const float *p_A, int p_lda, const float *p_x, int p_incx, const float *p_beta, float *p_y, int p_incy) {
	begin(226);
	VALUE(0, p_handle);
	VALUE(1, p_uplo);
	VALUE(2, p_n);
	VALUE(3, p_k);
	VALUE(4, p_alpha);
	MEMORY(4, p_alpha, sizeof *p_alpha);
	VALUE(5, p_A);
	VALUE(6, p_lda);
	VALUE(7, p_x);
	VALUE(8, p_incx);
	VALUE(9, p_beta);
	MEMORY(9, p_beta, sizeof *p_beta);
	VALUE(10, p_y);
	VALUE(11, p_incy);
	return (cublasStatus_t)(puregpu_echo.fail ? 961 : 0);
}

cublasStatus_t cublasSsbmv_v2_64(cublasHandle_t p_handle, cublasFillMode_t p_uplo, int64_t p_n, int64_t p_k, const float *p_alpha, const float *p_A, int64_t p_lda, const float *p_x, int64_t p_incx, const float *p_beta, float *p_y, int64_t p_incy) {
	begin(227);
	VALUE(0, p_handle);
	VALUE(1, p_uplo);
	VALUE(2, p_n);
	VALUE(3, p_k);
	VALUE(4, p_alpha);
	MEMORY(4, p_alpha, sizeof *p_alpha);
	VALUE(5, p_A);
	VALUE(6, p_lda);
	VALUE(7, p_x);
	VALUE(8, p_incx);
	VALUE(9, p_beta);
	MEMORY(9, p_beta, sizeof *p_beta);
	VALUE(10, p_y);
	VALUE(11, p_incy);
	return (cublasStatus_t)(puregpu_echo.fail ? 985 : 0);
}

cublasStatus_t cublasDsbmv_v2(cublasHandle_t p_handle, cublasFillMode_t p_uplo, int p_n, int p_k, const double *p_alpha, const double *p_A, int p_lda, const double *p_x, int p_incx, const double *p_beta, double *p_y, int p_incy) {
	begin(228);
	VALUE(0, p_handle);
	VALUE(1, p_uplo);
	VALUE(2, p_n);
	VALUE(3, p_k);
	VALUE(4, p_alpha);
	MEMORY(4, p_alpha, sizeof *p_alpha);
	VALUE(5, p_A);
	VALUE(6, p_lda);
	VALUE(7, p_x);
	VALUE(8, p_incx);
	VALUE(9, p_beta);
	MEMORY(9, p_beta, sizeof *p_beta);
	VALUE(10, p_y);
	VALUE(11, p_incy);
	return (cublasStatus_t)(puregpu_echo.fail ? 909 : 0);
}

cublasStatus_t cublasDsbmv_v2_64(cublasHandle_t p_handle, cublasFillMode_t p_uplo, int64_t p_n, int64_t p_k, const double *p_alpha, const double *p_A, int64_t p_lda, const double *p_x, int64_t p_incx, const double *p_beta, double *p_y, int64_t p_incy) {
	begin(229);
	VALUE(0, p_handle);
	VALUE(1, p_uplo);
	VALUE(2, p_n);
	VALUE(3, p_k);
	VALUE(4, p_alpha);
	MEMORY(4, p_alpha, sizeof *p_alpha);
	VALUE(5, p_A);
	VALUE(6, p_lda);
	VALUE(7, p_x);
	VALUE(8, p_incx);
	VALUE(9, p_beta);
	MEMORY(9, p_beta, sizeof *p_beta);
	VALUE(10, p_y);
	VALUE(11, p_incy);
	return (cublasStatus_t)(puregpu_echo.fail ? 911 : 0);
}

cublasStatus_t cublasChbmv_v2(cublasHandle_t p_handle, cublasFillMode_t p_uplo, int p_n, int p_k, const cuComplex *p_alpha, const cuComplex *p_A, int p_lda, const cuComplex *p_x, int p_incx, const cuComplex *p_beta, cuComplex *p_y, int p_incy) {
	begin(230);
	VALUE(0, p_handle);
	VALUE(1, p_uplo);
	VALUE(2, p_n);
	VALUE(3, p_k);
	VALUE(4, p_alpha);
	MEMORY(4, p_alpha, sizeof *p_alpha);
	VALUE(5, p_A);
	VALUE(6, p_lda);
	VALUE(7, p_x);
	VALUE(8, p_incx);
	VALUE(9, p_beta);
	MEMORY(9, p_beta, sizeof *p_beta);
	VALUE(10, p_y);
	VALUE(11, p_incy);
	return (cublasStatus_t)(puregpu_echo.fail ? 923 : 0);
}

cublasStatus_t cublasChbmv_v2_64(cublasHandle_t p_handle, cublasFillMode_t p_uplo, int64_t p_n, int64_t p_k, const cuComplex *p_alpha, const cuComplex *p_A, int64_t p_lda, const cuComplex *p_x, int64_t p_incx, const cuComplex *p_beta, cuComplex *p_y, int64_t p_incy) {
	begin(231);
	VALUE(0, p_handle);
	VALUE(1, p_uplo);
	VALUE(2, p_n);
	VALUE(3, p_k);
	VALUE(4, p_alpha);
	MEMORY(4, p_alpha, sizeof *p_alpha);
	VALUE(5, p_A);
	VALUE(6, p_lda);
	VALUE(7, p_x);
	VALUE(8, p_incx);
	VALUE(9, p_beta);
	MEMORY(9, p_beta, sizeof *p_beta);
	VALUE(10, p_y);
	VALUE(11, p_incy);
	return (cublasStatus_t)(puregpu_echo.fail ? 937 : 0);
}

cublasStatus_t cublasZhbmv_v2(cublasHandle_t p_handle, cublasFillMode_t p_uplo, int p_n, int p_k, const cuDoubleComplex *p_alpha, const cuDoubleComplex *p_A, int p_lda, const cuDoubleComplex *p_x, int p_incx, const cuDoubleComplex *p_beta, cuDoubleComplex *p_y, int p_incy) {
	begin(232);
	VALUE(0, p_handle);
	VALUE(1, p_uplo);
	VALUE(2, p_n);
	VALUE(3, p_k);
	VALUE(4, p_alpha);
	MEMORY(4, p_alpha, sizeof *p_alpha);
	VALUE(5, p_A);
	VALUE(6, p_lda);
	VALUE(7, p_x);
	VALUE(8, p_incx);
	VALUE(9, p_beta);
	MEMORY(9, p_beta, sizeof *p_beta);
	VALUE(10, p_y);
	VALUE(11, p_incy);
	return (cublasStatus_t)(puregpu_echo.fail ? 971 : 0);
}

cublasStatus_t cublasZhbmv_v2_64(cublasHandle_t p_handle, cublasFillMode_t p_uplo, int64_t p_n, int64_t p_k, const cuDoubleComplex *p_alpha, const cuDoubleComplex *p_A, int64_t p_lda, const cuDoubleComplex *p_x, int64_t p_incx, const cuDoubleComplex *p_beta, cuDoubleComplex *p_y, int64_t p_incy) {
	begin(233);
	VALUE(0, p_handle);
	VALUE(1, p_uplo);
	VALUE(2, p_n);
	VALUE(3, p_k);
	VALUE(4, p_alpha);
	MEMORY(4, p_alpha, sizeof *p_alpha);
	VALUE(5, p_A);
	VALUE(6, p_lda);
	VALUE(7, p_x);
	VALUE(8, p_incx);
	VALUE(9, p_beta);
	MEMORY(9, p_beta, sizeof *p_beta);
	VALUE(10, p_y);
	VALUE(11, p_incy);
	return (cublasStatus_t)(puregpu_echo.fail ? 968 : 0);
}

cublasStatus_t cublasSspmv_v2(cublasHandle_t p_handle, cublasFillMode_t p_uplo, int p_n, const float *p_alpha, const float *p_AP, const float *p_x, int p_incx, const float *p_beta, float *p_y, int p_incy) {
	begin(234);
	VALUE(0, p_handle);
	VALUE(1, p_uplo);
	VALUE(2, p_n);
	VALUE(3, p_alpha);
	MEMORY(3, p_alpha, sizeof *p_alpha);
	VALUE(4, p_AP);
	VALUE(5, p_x);
	VALUE(6, p_incx);
	VALUE(7, p_beta);
	MEMORY(7, p_beta, sizeof *p_beta);
	VALUE(8, p_y);
	VALUE(9, p_incy);
	return (cublasStatus_t)(puregpu_echo.fail ? 924 : 0);
}

cublasStatus_t cublasSspmv_v2_64(cublasHandle_t p_handle, cublasFillMode_t p_uplo, int64_t p_n, const float *p_alpha, const float *p_AP, const float *p_x, int64_t p_incx, const float *p_beta, float *p_y, int64_t p_incy) {
	begin(235);
	VALUE(0, p_handle);
	VALUE(1, p_uplo);
	VALUE(2, p_n);
	VALUE(3, p_alpha);
	MEMORY(3, p_alpha, sizeof *p_alpha);
	VALUE(4, p_AP);
	VALUE(5, p_x);
	VALUE(6, p_incx);
	VALUE(7, p_beta);
	MEMORY(7, p_beta, sizeof *p_beta);
	VALUE(8, p_y);
	VALUE(9, p_incy);
	return (cublasStatus_t)(puregpu_echo.fail ? 983 : 0);
}

cublasStatus_t cublasDspmv_v2(cublasHandle_t p_handle, cublasFillMode_t p_uplo, int p_n, const double *p_alpha, const double *p_AP, const double *p_x, int p_incx, const double *p_beta, double *p_y, int p_incy) {
	begin(236);
	VALUE(0, p_handle);
	VALUE(1, p_uplo);
	VALUE(2, p_n);
	VALUE(3, p_alpha);
	MEMORY(3, p_alpha, sizeof *p_alpha);
	VALUE(4, p_AP);
	VALUE(5, p_x);
	VALUE(6, p_incx);
	VALUE(7, p_beta);
	MEMORY(7, p_beta, sizeof *p_beta);
	VALUE(8, p_y);
	VALUE(9, p_incy);
	return (cublasStatus_t)(puregpu_echo.fail ? 943 : 0);
}

cublasStatus_t cublasDspmv_v2_64(cublasHandle_t p_handle, cublasFillMode_t p_uplo, int64_t p_n, const double *p_alpha, const double *p_AP, const double *p_x, int64_t p_incx, const double *p_beta, double *p_y, int64_t p_incy) {
	begin(237);
	VALUE(0, p_handle);
	VALUE(1, p_uplo);
	VALUE(2, p_n);
	VALUE(3, p_alpha);
	MEMORY(3, p_alpha, sizeof *p_alpha);
	VALUE(4, p_AP);
	VALUE(5, p_x);
	VALUE(6, p_incx);
	VALUE(7, p_beta);
	MEMORY(7, p_beta, sizeof *p_beta);
	VALUE(8, p_y);
	VALUE(9, p_incy);
	return (cublasStatus_t)(puregpu_echo.fail ? 958 : 0);
}

cublasStatus_t cublasChpmv_v2(cublasHandle_t p_handle, cublasFillMode_t p_uplo, int p_n, const cuComplex *p_alpha, const cuComplex *p_AP, const cuComplex *p_x, int p_incx, const cuComplex *p_beta, cuComplex *p_y, int p_incy) {
	begin(238);
	VALUE(0, p_handle);
	VALUE(1, p_uplo);
	VALUE(2, p_n);
	VALUE(3, p_alpha);
	MEMORY(3, p_alpha, sizeof *p_alpha);
	VALUE(4, p_AP);
	VALUE(5, p_x);
	VALUE(6, p_incx);
	VALUE(7, p_beta);
	MEMORY(7, p_beta, sizeof *p_beta);
	VALUE(8, p_y);
	VALUE(9, p_incy);
	return (cublasStatus_t)(puregpu_echo.fail ? 964 : 0);
}

cublasStatus_t cublasChpmv_v2_64(cublasHandle_t p_handle, cublasFillMode_t p_uplo, int64_t p_n, const cuComplex *p_alpha, const cuComplex *p_AP, const cuComplex *p_x, int64_t p_incx, const cuComplex *p_beta, cuComplex *p_y, int64_t p_incy) {
	begin(239);
	VALUE(0, p_handle);
	VALUE(1, p_uplo);
	VALUE(2, p_n);
	VALUE(3, p_alpha);
	MEMORY(3, p_alpha, sizeof *p_alpha);
	VALUE(4, p_AP);
	VALUE(5, p_x);
	VALUE(6, p_incx);
	VALUE(7, p_beta);
	MEMORY(7, p_beta, sizeof *p_beta);
	VALUE(8, p_y);
	VALUE(9, p_incy);
	return (cublasStatus_t)(puregpu_echo.fail ? 943 : 0);
}

cublasStatus_t cublasZhpmv_v2(cublasHandle_t p_handle, cublasFillMode_t p_uplo, int p_n, const cuDoubleComplex *p_alpha, const cuDoubleComplex *p_AP, const cuDoubleComplex *p_x, int p_incx, const cuDoubleComplex *p_beta, cuDoubleComplex *p_y, int p_incy) {
	begin(240);
	VALUE(0, p_handle);
	VALUE(1, p_uplo);
	VALUE(2, p_n);
	VALUE(3, p_alpha);
	MEMORY(3, p_alpha, sizeof *p_alpha);
	VALUE(4, p_AP);
	VALUE(5, p_x);
	VALUE(6, p_incx);
	VALUE(7, p_beta);
	MEMORY(7, p_beta, sizeof *p_beta);
	VALUE(8, p_y);
	VALUE(9, p_incy);
	return (cublasStatus_t)(puregpu_echo.fail ? 983 : 0);
}

cublasStatus_t cublasZhpmv_v2_64(cublasHandle_t p_handle, cublasFillMode_t p_uplo, int64_t p_n, const cuDoubleComplex *p_alpha, const cuDoubleComplex *p_AP, const cuDoubleComplex *p_x, int64_t p_incx, const cuDoubleComplex *p_beta, cuDoubleComplex *p_y, int64_t p_incy) {
	begin(241);
	VALUE(0, p_handle);
	VALUE(1, p_uplo);
	VALUE(2, p_n);
	VALUE(3, p_alpha);
	MEMORY(3, p_alpha, sizeof *p_alpha);
	VALUE(4, p_AP);
	VALUE(5, p_x);
	VALUE(6, p_incx);
	VALUE(7, p_beta);
	MEMORY(7, p_beta, sizeof *p_beta);
	VALUE(8, p_y);
	VALUE(9, p_incy);
	return (cublasStatus_t)(puregpu_echo.fail ? 926 : 0);
}

cublasStatus_t cublasSger_v2(cublasHandle_t p_handle, int p_m, int p_n, const float *p_alpha, const float *p_x, int p_incx, const float *p_y, int p_incy, float *p_A, int p_lda) {
	begin(242);
	VALUE(0, p_handle);
	VALUE(1, p_m);
	VALUE(2, p_n);
	VALUE(3, p_alpha);
	MEMORY(3, p_alpha, sizeof *p_alpha);
	VALUE(4, p_x);
	VALUE(5, p_incx);
	VALUE(6, p_y);
	VALUE(7, p_incy);
	VALUE(8, p_A);
	VALUE(9, p_lda);
	return (cublasStatus_t)(puregpu_echo.fail ? 929 : 0);
}

cublasStatus_t cublasSger_v2_64(cublasHandle_t p_handle, int64_t p_m, int64_t p_n, const float *p_alpha, const float *p_x, int64_t p_incx, const float *p_y, int64_t p_incy, float *p_A, int64_t p_lda) {
	begin(243);
	VALUE(0, p_handle);
	VALUE(1, p_m);
	VALUE(2, p_n);
	VALUE(3, p_alpha);
	MEMORY(3, p_alpha, sizeof *p_alpha);
	VALUE(4, p_x);
	VALUE(5, p_incx);
	VALUE(6, p_y);
	VALUE(7, p_incy);
	VALUE(8, p_A);
	VALUE(9, p_lda);
	return (cublasStatus_t)(puregpu_echo.fail ? 946 : 0);
}

cublasStatus_t cublasDger_v2(cublasHandle_t p_handle, int p_m, int p_n, const double *p_alpha, const double *p_x, int p_incx, const double *p_y, int p_incy, double *p_A, int p_lda) {
	begin(244);
	VALUE(0, p_handle);
	VALUE(1, p_m);
	VALUE(2, p_n);
	VALUE(3, p_alpha);
	MEMORY(3, p_alpha, sizeof *p_alpha);
	VALUE(4, p_x);
	VALUE(5, p_incx);
	VALUE(6, p_y);
	VALUE(7, p_incy);
	VALUE(8, p_A);
	VALUE(9, p_lda);
	return (cublasStatus_t)(puregpu_echo.fail ? 920 : 0);
}

cublasStatus_t cublasDger_v2_64(cublasHandle_t p_handle, int64_t p_m, int64_t p_n, const double *p_alpha, const double *p_x, int64_t p_incx, const double *p_y, int64_t p_incy, double *p_A, int64_t p_lda) {
	begin(245);
	VALUE(0, p_handle);
	VALUE(1, p_m);
	VALUE(2, p_n);
	VALUE(3, p_alpha);
	MEMORY(3, p_alpha, sizeof *p_alpha);
	VALUE(4, p_x);
	VALUE(5, p_incx);
	VALUE(6, p_y);
	VALUE(7, p_incy);
	VALUE(8, p_A);
	VALUE(9, p_lda);
	return (cublasStatus_t)(puregpu_echo.fail ? 975 : 0);
}

cublasStatus_t cublasCgeru_v2(cublasHandle_t p_handle, int p_m, int p_n, const cuComplex *p_alpha, const cuComplex *p_x, int p_incx, const cuComplex *p_y, int p_incy, cuComplex *p_A, int p_lda) {
	begin(246);
	VALUE(0, p_handle);
	VALUE(1, p_m);
	VALUE(2, p_n);
	VALUE(3, p_alpha);
	MEMORY(3, p_alpha, sizeof *p_alpha);
	VALUE(4, p_x);
	VALUE(5, p_incx);
	VALUE(6, p_y);
	VALUE(7, p_incy);
	VALUE(8, p_A);
	VALUE(9, p_lda);
	return (cublasStatus_t)(puregpu_echo.fail ? 959 : 0);
}

cublasStatus_t cublasCgeru_v2_64(cublasHandle_t p_handle, int64_t p_m, int64_t p_n, const cuComplex *p_alpha, const cuComplex *p_x, int64_t p_incx, const cuComplex *p_y, int64_t p_incy, cuComplex *p_A, int64_t p_lda) {
	begin(247);
	VALUE(0, p_handle);
	VALUE(1, p_m);
	VALUE(2, p_n);
	VALUE(3, p_alpha);
	MEMORY(3, p_alpha, sizeof *p_alpha);
	VALUE(4, p_x);
	VALUE(5, p_incx);
	VALUE(6, p_y);
	VALUE(7, p_incy);
	VALUE(8, p_A);
	VALUE(9, p_lda);
	return (cublasStatus_t)(puregpu_echo.fail ? 985 : 0);
}

cublasStatus_t cublasCgerc_v2(cublasHandle_t p_handle, int p_m, int p_n, const cuComplex *p_alpha, const cuComplex *p_x, int p_incx, const cuComplex *p_y, int p_incy, cuComplex *p_A, int p_lda) {
	begin(248);
	VALUE(0, p_handle);
	VALUE(1, p_m);
	VALUE(2, p_n);
	VALUE(3, p_alpha);
	MEMORY(3, p_alpha, sizeof *p_alpha);
	VALUE(4, p_x);
	VALUE(5, p_incx);
	VALUE(6, p_y);
	VALUE(7, p_incy);
	VALUE(8, p_A);
	VALUE(9, p_lda);
	return (cublasStatus_t)(puregpu_echo.fail ? 906 : 0);
}

cublasStatus_t cublasCgerc_v2_64(cublasHandle_t p_handle, int64_t p_m, int64_t p_n, const cuComplex *p_alpha, const cuComplex *p_x, int64_t p_incx, const cuComplex *p_y, int64_t p_incy, cuComplex *p_A, int64_t p_lda) {
	begin(249);
	VALUE(0, p_handle);
	VALUE(1, p_m);
	VALUE(2, p_n);
	VALUE(3, p_alpha);
	MEMORY(3, p_alpha, sizeof *p_alpha);
	VALUE(4, p_x);
	VALUE(5, p_incx);
	VALUE(6, p_y);
	VALUE(7, p_incy);
	VALUE(8, p_A);
	VALUE(9, p_lda);
	return (cublasStatus_t)(puregpu_echo.fail ? 910 : 0);
}

cublasStatus_t cublasZgeru_v2(cublasHandle_t p_handle, int p_m, int p_n, const cuDoubleComplex *p_alpha, const cuDoubleComplex *p_x, int p_incx, const cuDoubleComplex *p_y, int p_incy, cuDoubleComplex *p_A, int p_lda) {
	begin(250);
	VALUE(0, p_handle);
	VALUE(1, p_m);
	VALUE(2, p_n);
	VALUE(3, p_alpha);
	MEMORY(3, p_alpha, sizeof *p_alpha);
	VALUE(4, p_x);
	VALUE(5, p_incx);
	VALUE(6, p_y);
	VALUE(7, p_incy);
	VALUE(8, p_A);
	VALUE(9, p_lda);
	return (cublasStatus_t)(puregpu_echo.fail ? 976 : 0);
}

cublasStatus_t cublasZgeru_v2_64(cublasHandle_t p_handle, int64_t p_m, int64_t p_n, const cuDoubleComplex *p_alpha, const cuDoubleComplex *p_x, int64_t p_incx, const cuDoubleComplex *p_y, int64_t p_incy, cuDoubleComplex *p_A, int64_t p_lda) {
	begin(251);
	VALUE(0, p_handle);
	VALUE(1, p_m);
	VALUE(2, p_n);
	VALUE(3, p_alpha);
	MEMORY(3, p_alpha, sizeof *p_alpha);
	VALUE(4, p_x);
	VALUE(5, p_incx);
	VALUE(6, p_y);
	VALUE(7, p_incy);
	VALUE(8, p_A);
	VALUE(9, p_lda);
	return (cublasStatus_t)(puregpu_echo.fail ? 915 : 0);
}

cublasStatus_t cublasZgerc_v2(cublasHandle_t p_handle, int p_m, int p_n, const cuDoubleComplex *p_alpha, const cuDoubleComplex *p_x, int p_incx, const cuDoubleComplex *p_y, int p_incy, cuDoubleComplex *p_A, int p_lda) {
	begin(252);
	VALUE(0, p_handle);
	VALUE(1, p_m);
	VALUE(2, p_n);
	VALUE(3, p_alpha);
	MEMORY(3, p_alpha, sizeof *p_alpha);
	VALUE(4, p_x);
	VALUE(5, p_incx);
	VALUE(6, p_y);
	VALUE(7, p_incy);
	VALUE(8, p_A);
	VALUE(9, p_lda);
	return (cublasStatus_t)(puregpu_echo.fail ? 961 : 0);
}

cublasStatus_t cublasZgerc_v2_64(cublasHandle_t p_handle, int64_t p_m, int64_t p_n, const cuDoubleComplex *p_alpha, const cuDoubleComplex *p_x, int64_t p_incx, const cuDoubleComplex *p_y, int64_t p_incy, cuDoubleComplex *p_A, int64_t p_lda) {
	begin(253);
	VALUE(0, p_handle);
	VALUE(1, p_m);
	VALUE(2, p_n);
	VALUE(3, p_alpha);
	MEMORY(3, p_alpha, sizeof *p_alpha);
	VALUE(4, p_x);
	VALUE(5, p_incx);
	VALUE(6, p_y);
	VALUE(7, p_incy);
	VALUE(8, p_A);
	VALUE(9, p_lda);
	return (cublasStatus_t)(puregpu_echo.fail ? 940 : 0);
}

cublasStatus_t cublasSsyr_v2(cublasHandle_t p_handle, cublasFillMode_t p_uplo, int p_n, const float *p_alpha, const float *p_x, int p_incx, float *p_A, int p_lda) {
	begin(254);
	VALUE(0, p_handle);
	VALUE(1, p_uplo);
	VALUE(2, p_n);
	VALUE(3, p_alpha);
	MEMORY(3, p_alpha, sizeof *p_alpha);
	VALUE(4, p_x);
	VALUE(5, p_incx);
	VALUE(6, p_A);
	VALUE(7, p_lda);
	return (cublasStatus_t)(puregpu_echo.fail ? 937 : 0);
}

cublasStatus_t cublasSsyr_v2_64(cublasHandle_t p_handle, cublasFillMode_t p_uplo, int64_t p_n, const float *p_alpha, const float *p_x, int64_t p_incx, float *p_A, int64_t p_lda) {
	begin(255);
	VALUE(0, p_handle);
	VALUE(1, p_uplo);
	VALUE(2, p_n);
	VALUE(3, p_alpha);
	MEMORY(3, p_alpha, sizeof *p_alpha);
	VALUE(4, p_x);
	VALUE(5, p_incx);
	VALUE(6, p_A);
	VALUE(7, p_lda);
	return (cublasStatus_t)(puregpu_echo.fail ? 925 : 0);
}

cublasStatus_t cublasDsyr_v2(cublasHandle_t p_handle, cublasFillMode_t p_uplo, int p_n, const double *p_alpha, const double *p_x, int p_incx, double *p_A, int p_lda) {
	begin(256);
	VALUE(0, p_handle);
	VALUE(1, p_uplo);
	VALUE(2, p_n);
	VALUE(3, p_alpha);
	MEMORY(3, p_alpha, sizeof *p_alpha);
	VALUE(4, p_x);
	VALUE(5, p_incx);
	VALUE(6, p_A);
	VALUE(7, p_lda);
	return (cublasStatus_t)(puregpu_echo.fail ? 906 : 0);
}

cublasStatus_t cublasDsyr_v2_64(cublasHandle_t p_handle, cublasFillMode_t p_uplo, int64_t p_n, const double *p_alpha, const double *p_x, int64_t p_incx, double *p_A, int64_t p_lda) {
	begin(257);
	VALUE(0, p_handle);
	VALUE(1, p_uplo);
	VALUE(2, p_n);
	VALUE(3, p_alpha);
	MEMORY(3, p_alpha, sizeof *p_alpha);
	VALUE(4, p_x);
	VALUE(5, p_incx);
	VALUE(6, p_A);
	VALUE(7, p_lda);
	return (cublasStatus_t)(puregpu_echo.fail ? 909 : 0);
}

cublasStatus_t cublasCsyr_v2(cublasHandle_t p_handle, cublasFillMode_t p_uplo, int p_n, const cuComplex *p_alpha, const cuComplex *p_x, int p_incx, cuComplex *p_A, int p_lda) {
	begin(258);
	VALUE(0, p_handle);
	VALUE(1, p_uplo);
	VALUE(2, p_n);
	VALUE(3, p_alpha);
	MEMORY(3, p_alpha, sizeof *p_alpha);
	VALUE(4, p_x);
	VALUE(5, p_incx);
	VALUE(6, p_A);
	VALUE(7, p_lda);
	return (cublasStatus_t)(puregpu_echo.fail ? 921 : 0);
}

cublasStatus_t cublasCsyr_v2_64(cublasHandle_t p_handle, cublasFillMode_t p_uplo, int64_t p_n, const cuComplex *p_alpha, const cuComplex *p_x, int64_t p_incx, cuComplex *p_A, int64_t p_lda) {
	begin(259);
	VALUE(0, p_handle);
	VALUE(1, p_uplo);
	VALUE(2, p_n);
	VALUE(3, p_alpha);
	MEMORY(3, p_alpha, sizeof *p_alpha);
	VALUE(4, p_x);
	VALUE(5, p_incx);
	VALUE(6, p_A);
	VALUE(7, p_lda);
	return (cublasStatus_t)(puregpu_echo.fail ? 963 : 0);
}

cublasStatus_t cublasZsyr_v2(cublasHandle_t p_handle, cublasFillMode_t p_uplo, int p_n, const cuDoubleComplex *p_alpha, const cuDoubleComplex *p_x, int p_incx, cuDoubleComplex *p_A, int p_lda) {
	begin(260);
	VALUE(0, p_handle);
	VALUE(1, p_uplo);
	VALUE(2, p_n);
	VALUE(3, p_alpha);
	MEMORY(3, p_alpha, sizeof *p_alpha);
	VALUE(4, p_x);
	VALUE(5, p_incx);
	VALUE(6, p_A);
	VALUE(7, p_lda);
	return (cublasStatus_t)(puregpu_echo.fail ? 975 : 0);
}

cublasStatus_t cublasZsyr_v2_64(cublasHandle_t p_handle, cublasFillMode_t p_uplo, int64_t p_n, const cuDoubleComplex *p_alpha, const cuDoubleComplex *p_x, int64_t p_incx, cuDoubleComplex *p_A, int64_t p_lda) {
	begin(261);
	VALUE(0, p_handle);
	VALUE(1, p_uplo);
	VALUE(2, p_n);
	VALUE(3, p_alpha);
	MEMORY(3, p_alpha, sizeof *p_alpha);
	VALUE(4, p_x);
	VALUE(5, p_incx);
	VALUE(6, p_A);
	VALUE(7, p_lda);
	return (cublasStatus_t)(puregpu_echo.fail ? 959 : 0);
}

cublasStatus_t cublasCher_v2(cublasHandle_t p_handle, cublasFillMode_t p_uplo, int p_n, const float *p_alpha, const cuComplex *p_x, int p_incx, cuComplex *p_A, int p_lda) {
	begin(262);
	VALUE(0, p_handle);
	VALUE(1, p_uplo);
	VALUE(2, p_n);
	VALUE(3, p_alpha);
	MEMORY(3, p_alpha, sizeof *p_alpha);
	VALUE(4, p_x);
	VALUE(5, p_incx);
	VALUE(6, p_A);
	VALUE(7, p_lda);
	return (cublasStatus_t)(puregpu_echo.fail ? 919 : 0);
}

cublasStatus_t cublasCher_v2_64(cublasHandle_t p_handle, cublasFillMode_t p_uplo, int64_t p_n, const float *p_alpha, const cuComplex *p_x, int64_t p_incx, cuComplex *p_A, int64_t p_lda) {
	begin(263);
	VALUE(0, p_handle);
	VALUE(1, p_uplo);
	VALUE(2, p_n);
	VALUE(3, p_alpha);
	MEMORY(3, p_alpha, sizeof *p_alpha);
	VALUE(4, p_x);
	VALUE(5, p_incx);
	VALUE(6, p_A);
	VALUE(7, p_lda);
	return (cublasStatus_t)(puregpu_echo.fail ? 985 : 0);
}

cublasStatus_t cublasZher_v2(cublasHandle_t p_handle, cublasFillMode_t p_uplo, int p_n, const double *p_alpha, const cuDoubleComplex *p_x, int p_incx, cuDoubleComplex *p_A, int p_lda) {
	begin(264);
	VALUE(0, p_handle);
	VALUE(1, p_uplo);
	VALUE(2, p_n);
	VALUE(3, p_alpha);
	MEMORY(3, p_alpha, sizeof *p_alpha);
	VALUE(4, p_x);
	VALUE(5, p_incx);
	VALUE(6, p_A);
	VALUE(7, p_lda);
	return (cublasStatus_t)(puregpu_echo.fail ? 985 : 0);
}

cublasStatus_t cublasZher_v2_64(cublasHandle_t p_handle, cublasFillMode_t p_uplo, int64_t p_n, const double *p_alpha, const cuDoubleComplex *p_x, int64_t p_incx, cuDoubleComplex *p_A, int64_t p_lda) {
	begin(265);
	VALUE(0, p_handle);
	VALUE(1, p_uplo);
	VALUE(2, p_n);
	VALUE(3, p_alpha);
	MEMORY(3, p_alpha, sizeof *p_alpha);
	VALUE(4, p_x);
	VALUE(5, p_incx);
	VALUE(6, p_A);
	VALUE(7, p_lda);
	return (cublasStatus_t)(puregpu_echo.fail ? 941 : 0);
}

cublasStatus_t cublasSspr_v2(cublasHandle_t p_handle, cublasFillMode_t p_uplo, int p_n, const float *p_alpha, const float *p_x, int p_incx, float *p_AP) {
	begin(266);
	VALUE(0, p_handle);
	VALUE(1, p_uplo);
	VALUE(2, p_n);
	VALUE(3, p_alpha);
	MEMORY(3, p_alpha, sizeof *p_alpha);
	VALUE(4, p_x);
	VALUE(5, p_incx);
	VALUE(6, p_AP);
	return (cublasStatus_t)(puregpu_echo.fail ? 951 : 0);
}

cublasStatus_t cublasSspr_v2_64(cublasHandle_t p_handle, cublasFillMode_t p_uplo, int64_t p_n, const float *p_alpha, const float *p_x, int64_t p_incx, float *p_AP) {
	begin(267);
	VALUE(0, p_handle);
	VALUE(1, p_uplo);
	VALUE(2, p_n);
	VALUE(3, p_alpha);
	MEMORY(3, p_alpha, sizeof *p_alpha);
	VALUE(4, p_x);
	VALUE(5, p_incx);
	VALUE(6, p_AP);
	return (cublasStatus_t)(puregpu_echo.fail ? 975 : 0);
}

cublasStatus_t cublasDspr_v2(cublasHandle_t p_handle, cublasFillMode_t p_uplo, int p_n, const double *p_alpha, const double *p_x, int p_incx, double *p_AP) {
	begin(268);
	VALUE(0, p_handle);
	VALUE(1, p_uplo);
	VALUE(2, p_n);
	VALUE(3, p_alpha);
	MEMORY(3, p_alpha, sizeof *p_alpha);
	VALUE(4, p_x);
	VALUE(5, p_incx);
	VALUE(6, p_AP);
	return (cublasStatus_t)(puregpu_echo.fail ? 918 : 0);
}

cublasStatus_t cublasDspr_v2_64(cublasHandle_t p_handle, cublasFillMode_t p_uplo, int64_t p_n, const double *p_alpha, const double *p_x, int64_t p_incx, double *p_AP) {
	begin(269);
	VALUE(0, p_handle);
	VALUE(1, p_uplo);
	VALUE(2, p_n);
	VALUE(3, p_alpha);
	MEMORY(3, p_alpha, sizeof *p_alpha);
	VALUE(4, p_x);
	VALUE(5, p_incx);
	VALUE(6, p_AP);
	return (cublasStatus_t)(puregpu_echo.fail ? 901 : 0);
}

cublasStatus_t cublasChpr_v2(cublasHandle_t p_handle, cublasFillMode_t p_uplo, int p_n, const float *p_alpha, const cuComplex *p_x, int p_incx, cuComplex *p_AP) {
	begin(270);
	VALUE(0, p_handle);
	VALUE(1, p_uplo);
	VALUE(2, p_n);
	VALUE(3, p_alpha);
	MEMORY(3, p_alpha, sizeof *p_alpha);
	VALUE(4, p_x);
	VALUE(5, p_incx);
	VALUE(6, p_AP);
	return (cublasStatus_t)(puregpu_echo.fail ? 968 : 0);
}

cublasStatus_t cublasChpr_v2_64(cublasHandle_t p_handle, cublasFillMode_t p_uplo, int64_t p_n, const float *p_alpha, const cuComplex *p_x, int64_t p_incx, cuComplex *p_AP) {
	begin(271);
	VALUE(0, p_handle);
	VALUE(1, p_uplo);
	VALUE(2, p_n);
	VALUE(3, p_alpha);
	MEMORY(3, p_alpha, sizeof *p_alpha);
	VALUE(4, p_x);
	VALUE(5, p_incx);
	VALUE(6, p_AP);
	return (cublasStatus_t)(puregpu_echo.fail ? 928 : 0);
}

cublasStatus_t cublasZhpr_v2(cublasHandle_t p_handle, cublasFillMode_t p_uplo, int p_n, const double *p_alpha, const cuDoubleComplex *p_x, int p_incx, cuDoubleComplex *p_AP) {
	begin(272);
	VALUE(0, p_handle);
	VALUE(1, p_uplo);
	VALUE(2, p_n);
	VALUE(3, p_alpha);
	MEMORY(3, p_alpha, sizeof *p_alpha);
	VALUE(4, p_x);
	VALUE(5, p_incx);
	VALUE(6, p_AP);
	return (cublasStatus_t)(puregpu_echo.fail ? 945 : 0);
}

cublasStatus_t cublasZhpr_v2_64(cublasHandle_t p_handle, cublasFillMode_t p_uplo, int64_t p_n, const double *p_alpha, const cuDoubleComplex *p_x, int64_t p_incx, cuDoubleComplex *p_AP) {
	begin(273);
	VALUE(0, p_handle);
	VALUE(1, p_uplo);
	VALUE(2, p_n);
	VALUE(3, p_alpha);
	MEMORY(3, p_alpha, sizeof *p_alpha);
	VALUE(4, p_x);
	VALUE(5, p_incx);
	VALUE(6, p_AP);
	return (cublasStatus_t)(puregpu_echo.fail ? 936 : 0);
}

cublasStatus_t cublasSsyr2_v2(cublasHandle_t p_handle, cublasFillMode_t p_uplo, int p_n, const float *p_alpha, const float *p_x, int p_incx, const float *p_y, int p_incy, float *p_A, int p_lda) {
	begin(274);
	VALUE(0, p_handle);
	VALUE(1, p_uplo);
	VALUE(2, p_n);
	VALUE(3, p_alpha);
	MEMORY(3, p_alpha, sizeof *p_alpha);
	VALUE(4, p_x);
	VALUE(5, p_incx);
	VALUE(6, p_y);
	VALUE(7, p_incy);
	VALUE(8, p_A);
	VALUE(9, p_lda);
	return (cublasStatus_t)(puregpu_echo.fail ? 919 : 0);
}

cublasStatus_t cublasSsyr2_v2_64(cublasHandle_t p_handle, cublasFillMode_t p_uplo, int64_t p_n, const float *p_alpha, const float *p_x, int64_t p_incx, const float *p_y, int64_t p_incy, float *p_A, int64_t p_lda) {
	begin(275);
	VALUE(0, p_handle);
	VALUE(1, p_uplo);
	VALUE(2, p_n);
	VALUE(3, p_alpha);
	MEMORY(3, p_alpha, sizeof *p_alpha);
	VALUE(4, p_x);
	VALUE(5, p_incx);
	VALUE(6, p_y);
	VALUE(7, p_incy);
	VALUE(8, p_A);
	VALUE(9, p_lda);
	return (cublasStatus_t)(puregpu_echo.fail ? 980 : 0);
}

cublasStatus_t cublasDsyr2_v2(cublasHandle_t p_handle, cublasFillMode_t p_uplo, int p_n, const double *p_alpha, const double *p_x, int p_incx, const double *p_y, int p_incy, double *p_A, int p_lda) {
	begin(276);
	VALUE(0, p_handle);
	VALUE(1, p_uplo);
	VALUE(2, p_n);
	VALUE(3, p_alpha);
	MEMORY(3, p_alpha, sizeof *p_alpha);
	VALUE(4, p_x);
	VALUE(5, p_incx);
	VALUE(6, p_y);
	VALUE(7, p_incy);
	VALUE(8, p_A);
	VALUE(9, p_lda);
	return (cublasStatus_t)(puregpu_echo.fail ? 909 : 0);
}

cublasStatus_t cublasDsyr2_v2_64(cublasHandle_t p_handle, cublasFillMode_t p_uplo, int64_t p_n, const double *p_alpha, const double *p_x, int64_t p_incx, const double *p_y, int64_t p_incy, double *p_A, int64_t p_lda) {
	begin(277);
	VALUE(0, p_handle);
	VALUE(1, p_uplo);
	VALUE(2, p_n);
	VALUE(3, p_alpha);
	MEMORY(3, p_alpha, sizeof *p_alpha);
	VALUE(4, p_x);
	VALUE(5, p_incx);
	VALUE(6, p_y);
	VALUE(7, p_incy);
	VALUE(8, p_A);
	VALUE(9, p_lda);
	return (cublasStatus_t)(puregpu_echo.fail ? 969 : 0);
}

cublasStatus_t cublasCsyr2_v2(cublasHandle_t p_handle, cublasFillMode_t p_uplo, int p_n, const cuComplex *p_alpha, const cuComplex *p_x, int p_incx, const cuComplex *p_y, int p_incy, cuComplex *p_A, int p_lda) {
	begin(278);
	VALUE(0, p_handle);
	VALUE(1, p_uplo);
	VALUE(2, p_n);
	VALUE(3, p_alpha);
	MEMORY(3, p_alpha, sizeof *p_alpha);
	VALUE(4, p_x);
	VALUE(5, p_incx);
	VALUE(6, p_y);
	VALUE(7, p_incy);
	VALUE(8, p_A);
	VALUE(9, p_lda);
	return (cublasStatus_t)(puregpu_echo.fail ? 929 : 0);
}

cublasStatus_t cublasCsyr2_v2_64(cublasHandle_t p_handle, cublasFillMode_t p_uplo, int64_t p_n, const cuComplex *p_alpha, const cuComplex *p_x, int64_t p_incx, const cuComplex *p_y, int64_t p_incy, cuComplex *p_A, int64_t p_lda) {
	begin(279);
	VALUE(0, p_handle);
	VALUE(1, p_uplo);
	VALUE(2, p_n);
	VALUE(3, p_alpha);
	MEMORY(3, p_alpha, sizeof *p_alpha);
	VALUE(4, p_x);
	VALUE(5, p_incx);
	VALUE(6, p_y);
	VALUE(7, p_incy);
	VALUE(8, p_A);
	VALUE(9, p_lda);
	return (cublasStatus_t)(puregpu_echo.fail ? 965 : 0);
}

cublasStatus_t cublasZsyr2_v2(cublasHandle_t p_handle, cublasFillMode_t p_uplo, int p_n, const cuDoubleComplex *p_alpha, const cuDoubleComplex *p_x, int p_incx, const cuDoubleComplex *p_y, int p_incy, cuDoubleComplex *p_A, int p_lda) {
	begin(280);
	VALUE(0, p_handle);
	VALUE(1, p_uplo);
	VALUE(2, p_n);
	VALUE(3, p_alpha);
	MEMORY(3, p_alpha, sizeof *p_alpha);
	VALUE(4, p_x);
	VALUE(5, p_incx);
	VALUE(6, p_y);
	VALUE(7, p_incy);
	VALUE(8, p_A);
	VALUE(9, p_lda);
	return (cublasStatus_t)(puregpu_echo.fail ? 904 : 0);
}

cublasStatus_t cublasZsyr2_v2_64(cublasHandle_t p_handle, cublasFillMode_t p_uplo, int64_t p_n, const cuDoubleComplex *p_alpha, const cuDoubleComplex *p_x, int64_t p_incx, const cuDoubleComplex *p_y, int64_t p_incy, cuDoubleComplex *p_A, int64_t p_lda) {
	begin(281);
	VALUE(0, p_handle);
	VALUE(1, p_uplo);
	VALUE(2, p_n);
	VALUE(3, p_alpha);
	MEMORY(3, p_alpha, sizeof *p_alpha);
	VALUE(4, p_x);
	VALUE(5, p_incx);
	VALUE(6, p_y);
	VALUE(7, p_incy);
	VALUE(8, p_A);
	VALUE(9, p_lda);
	return (cublasStatus_t)(puregpu_echo.fail ? 974 : 0);
}

cublasStatus_t cublasCher2_v2(cublasHandle_t p_handle, cublasFillMode_t p_uplo, int p_n, const cuComplex *p_alpha, const cuComplex *p_x, int p_incx, const cuComplex *p_y, int p_incy, cuComplex *p_A, int p_lda) {
	begin(282);
	VALUE(0, p_handle);
	VALUE(1, p_uplo);
	VALUE(2, p_n);
	VALUE(3, p_alpha);
	MEMORY(3, p_alpha, sizeof *p_alpha);
	VALUE(4, p_x);
	VALUE(5, p_incx);
	VALUE(6, p_y);
	VALUE(7, p_incy);
	VALUE(8, p_A);
	VALUE(9, p_lda);
	return (cublasStatus_t)(puregpu_echo.fail ? 905 : 0);
}

cublasStatus_t cublasCher2_v2_64(cublasHandle_t p_handle, cublasFillMode_t p_uplo, int64_t p_n, const cuComplex *p_alpha, const cuComplex *p_x, int64_t p_incx, const cuComplex *p_y, int64_t p_incy, cuComplex *p_A, int64_t p_lda) {
	begin(283);
	VALUE(0, p_handle);
	VALUE(1, p_uplo);
	VALUE(2, p_n);
	VALUE(3, p_alpha);
	MEMORY(3, p_alpha, sizeof *p_alpha);
	VALUE(4, p_x);
	VALUE(5, p_incx);
	VALUE(6, p_y);
	VALUE(7, p_incy);
	VALUE(8, p_A);
	VALUE(9, p_lda);
	return (cublasStatus_t)(puregpu_echo.fail ? 955 : 0);
}

cublasStatus_t cublasZher2_v2(cublasHandle_t p_handle, cublasFillMode_t p_uplo, int p_n, const cuDoubleComplex *p_alpha, const cuDoubleComplex *p_x, int p_incx, const cuDoubleComplex *p_y, int p_incy, cuDoubleComplex *p_A, int p_lda) {
	begin(284);
	VALUE(0, p_handle);
	VALUE(1, p_uplo);
	VALUE(2, p_n);
	VALUE(3, p_alpha);
	MEMORY(3, p_alpha, sizeof *p_alpha);
	VALUE(4, p_x);
	VALUE(5, p_incx);
	VALUE(6, p_y);
	VALUE(7, p_incy);
	VALUE(8, p_A);
	VALUE(9, p_lda);
	return (cublasStatus_t)(puregpu_echo.fail ? 951 : 0);
}

cublasStatus_t cublasZher2_v2_64(cublasHandle_t p_handle, cublasFillMode_t p_uplo, int64_t p_n, const cuDoubleComplex *p_alpha, const cuDoubleComplex *p_x, int64_t p_incx, const cuDoubleComplex *p_y, int64_t p_incy, cuDoubleComplex *p_A, int64_t p_lda) {
	begin(285);
	VALUE(0, p_handle);
	VALUE(1, p_uplo);
	VALUE(2, p_n);
	VALUE(3, p_alpha);
	MEMORY(3, p_alpha, sizeof *p_alpha);
	VALUE(4, p_x);
	VALUE(5, p_incx);
	VALUE(6, p_y);
	VALUE(7, p_incy);
	VALUE(8, p_A);
	VALUE(9, p_lda);
	return (cublasStatus_t)(puregpu_echo.fail ? 967 : 0);
}

cublasStatus_t cublasSspr2_v2(cublasHandle_t p_handle, cublasFillMode_t p_uplo, int p_n, const float *p_alpha, const float *p_x, int p_incx, const float *p_y, int p_incy, float *p_AP) {
	begin(286);
	VALUE(0, p_handle);
	VALUE(1, p_uplo);
	VALUE(2, p_n);
	VALUE(3, p_alpha);
	MEMORY(3, p_alpha, sizeof *p_alpha);
	VALUE(4, p_x);
	VALUE(5, p_incx);
	VALUE(6, p_y);
	VALUE(7, p_incy);
	VALUE(8, p_AP);
	return (cublasStatus_t)(puregpu_echo.fail ? 959 : 0);
}

cublasStatus_t cublasSspr2_v2_64(cublasHandle_t p_handle, cublasFillMode_t p_uplo, int64_t p_n, const float *p_alpha, const float *p_x, int64_t p_incx, const float *p_y, int64_t p_incy, float *p_AP) {
	begin(287);
	VALUE(0, p_handle);
	VALUE(1, p_uplo);
	VALUE(2, p_n);
	VALUE(3, p_alpha);
	MEMORY(3, p_alpha, sizeof *p_alpha);
	VALUE(4, p_x);
	VALUE(5, p_incx);
	VALUE(6, p_y);
	VALUE(7, p_incy);
	VALUE(8, p_AP);
	return (cublasStatus_t)(puregpu_echo.fail ? 908 : 0);
}

cublasStatus_t cublasDspr2_v2(cublasHandle_t p_handle, cublasFillMode_t p_uplo, int p_n, const double *p_alpha, const double *p_x, int p_incx, const double *p_y, int p_incy, double *p_AP) {
	begin(288);
	VALUE(0, p_handle);
	VALUE(1, p_uplo);
	VALUE(2, p_n);
	VALUE(3, p_alpha);
	MEMORY(3, p_alpha, sizeof *p_alpha);
	VALUE(4, p_x);
	VALUE(5, p_incx);
	VALUE(6, p_y);
	VALUE(7, p_incy);
	VALUE(8, p_AP);
	return (cublasStatus_t)(puregpu_echo.fail ? 942 : 0);
}

cublasStatus_t cublasDspr2_v2_64(cublasHandle_t p_handle, cublasFillMode_t p_uplo, int64_t p_n, const double *p_alpha, const double *p_x, int64_t p_incx, const double *p_y, int64_t p_incy, double *p_AP) {
	begin(289);
	VALUE(0, p_handle);
	VALUE(1, p_uplo);
	VALUE(2, p_n);
	VALUE(3, p_alpha);
	MEMORY(3, p_alpha, sizeof *p_alpha);
	VALUE(4, p_x);
	VALUE(5, p_incx);
	VALUE(6, p_y);
	VALUE(7, p_incy);
	VALUE(8, p_AP);
	return (cublasStatus_t)(puregpu_echo.fail ? 928 : 0);
}

cublasStatus_t cublasChpr2_v2(cublasHandle_t p_handle, cublasFillMode_t p_uplo, int p_n, const cuComplex *p_alpha, const cuComplex *p_x, int p_incx, const cuComplex *p_y, int p_incy, cuComplex *p_AP) {
	begin(290);
	VALUE(0, p_handle);
	VALUE(1, p_uplo);
	VALUE(2, p_n);
	VALUE(3, p_alpha);
	MEMORY(3, p_alpha, sizeof *p_alpha);
	VALUE(4, p_x);
	VALUE(5, p_incx);
	VALUE(6, p_y);
	VALUE(7, p_incy);
	VALUE(8, p_AP);
	return (cublasStatus_t)(puregpu_echo.fail ? 914 : 0);
}

cublasStatus_t cublasChpr2_v2_64(cublasHandle_t p_handle, cublasFillMode_t p_uplo, int64_t p_n, const cuComplex *p_alpha, const cuComplex *p_x, int64_t p_incx, const cuComplex *p_y, int64_t p_incy, cuComplex *p_AP) {
	begin(291);
	VALUE(0, p_handle);
	VALUE(1, p_uplo);
	VALUE(2, p_n);
	VALUE(3, p_alpha);
	MEMORY(3, p_alpha, sizeof *p_alpha);
	VALUE(4, p_x);
	VALUE(5, p_incx);
	VALUE(6, p_y);
	VALUE(7, p_incy);
	VALUE(8, p_AP);
	return (cublasStatus_t)(puregpu_echo.fail ? 983 : 0);
}

cublasStatus_t cublasZhpr2_v2(cublasHandle_t p_handle, cublasFillMode_t p_uplo, int p_n, const cuDoubleComplex *p_alpha, const cuDoubleComplex *p_x, int p_incx, const cuDoubleComplex *p_y, int p_incy, cuDoubleComplex *p_AP) {
	begin(292);
	VALUE(0, p_handle);
	VALUE(1, p_uplo);
	VALUE(2, p_n);
	VALUE(3, p_alpha);
	MEMORY(3, p_alpha, sizeof *p_alpha);
	VALUE(4, p_x);
	VALUE(5, p_incx);
	VALUE(6, p_y);
	VALUE(7, p_incy);
	VALUE(8, p_AP);
	return (cublasStatus_t)(puregpu_echo.fail ? 921 : 0);
}

cublasStatus_t cublasZhpr2_v2_64(cublasHandle_t p_handle, cublasFillMode_t p_uplo, int64_t p_n, const cuDoubleComplex *p_alpha, const cuDoubleComplex *p_x, int64_t p_incx, const cuDoubleComplex *p_y, int64_t p_incy, cuDoubleComplex *p_AP) {
	begin(293);
	VALUE(0, p_handle);
	VALUE(1, p_uplo);
	VALUE(2, p_n);
	VALUE(3, p_alpha);
	MEMORY(3, p_alpha, sizeof *p_alpha);
	VALUE(4, p_x);
	VALUE(5, p_incx);
	VALUE(6, p_y);
	VALUE(7, p_incy);
	VALUE(8, p_AP);
	return (cublasStatus_t)(puregpu_echo.fail ? 939 : 0);
}

cublasStatus_t cublasSgemvBatched(cublasHandle_t p_handle, cublasOperation_t p_trans, int p_m, int p_n, const float *p_alpha, const float **p_Aarray, int p_lda, const float **p_xarray, int p_incx, const float *p_beta, float **p_yarray, int p_incy, int p_batchCount) {
	begin(294);
	VALUE(0, p_handle);
	VALUE(1, p_trans);
	VALUE(2, p_m);
	VALUE(3, p_n);
	VALUE(4, p_alpha);
	MEMORY(4, p_alpha, sizeof *p_alpha);
	VALUE(5, p_Aarray);
	VALUE(6, p_lda);
	VALUE(7, p_xarray);
	VALUE(8, p_incx);
	VALUE(9, p_beta);
	MEMORY(9, p_beta, sizeof *p_beta);
	VALUE(10, p_yarray);
	VALUE(11, p_incy);
	VALUE(12, p_batchCount);
	return (cublasStatus_t)(puregpu_echo.fail ? 917 : 0);
}

cublasStatus_t cublasSgemvBatched_64(cublasHandle_t p_handle, cublasOperation_t p_trans, int64_t p_m, int64_t p_n, const float *p_alpha, const float **p_Aarray, int64_t p_lda, const float **p_xarray, int64_t p_incx, const float *p_beta, float **p_yarray, int64_t p_incy, int64_t p_batchCount) {
	begin(295);
	VALUE(0, p_handle);
	VALUE(1, p_trans);
	VALUE(2, p_m);
	VALUE(3, p_n);
	VALUE(4, p_alpha);
	MEMORY(4, p_alpha, sizeof *p_alpha);
	VALUE(5, p_Aarray);
	VALUE(6, p_lda);
	VALUE(7, p_xarray);
	VALUE(8, p_incx);
	VALUE(9, p_beta);
	MEMORY(9, p_beta, sizeof *p_beta);
	VALUE(10, p_yarray);
	VALUE(11, p_incy);
	VALUE(12, p_batchCount);
	return (cublasStatus_t)(puregpu_echo.fail ? 910 : 0);
}

cublasStatus_t cublasDgemvBatched(cublasHandle_t p_handle, cublasOperation_t p_trans, int p_m, int p_n, const double *p_alpha, const double **p_Aarray, int p_lda, const double **p_xarray, int p_incx, const double *p_beta, double **p_yarray, int p_incy, int p_batchCount) {
	begin(296);
	VALUE(0, p_handle);
	VALUE(1, p_trans);
	VALUE(2, p_m);
	VALUE(3, p_n);
	VALUE(4, p_alpha);
	MEMORY(4, p_alpha, sizeof *p_alpha);
	VALUE(5, p_Aarray);
	VALUE(6, p_lda);
	VALUE(7, p_xarray);
	VALUE(8, p_incx);
	VALUE(9, p_beta);
	MEMORY(9, p_beta, sizeof *p_beta);
	VALUE(10, p_yarray);
	VALUE(11, p_incy);
	VALUE(12, p_batchCount);
	return (cublasStatus_t)(puregpu_echo.fail ? 921 : 0);
}

cublasStatus_t cublasDgemvBatched_64(cublasHandle_t p_handle, cublasOperation_t p_trans, int64_t p_m, int64_t p_n, const double *p_alpha, const double **p_Aarray, int64_t p_lda, const double **p_xarray, int64_t p_incx, const double *p_beta, double **p_yarray, int64_t p_incy, int64_t p_batchCount) {
	begin(297);
	VALUE(0, p_handle);
	VALUE(1, p_trans);
	VALUE(2, p_m);
	VALUE(3, p_n);
	VALUE(4, p_alpha);
	MEMORY(4, p_alpha, sizeof *p_alpha);
	VALUE(5, p_Aarray);
	VALUE(6, p_lda);
	VALUE(7, p_xarray);
	VALUE(8, p_incx);
	VALUE(9, p_beta);
	MEMORY(9, p_beta, sizeof *p_beta);
	VALUE(10, p_yarray);
	VALUE(11, p_incy);
	VALUE(12, p_batchCount);
	return (cublasStatus_t)(puregpu_echo.fail ? 982 : 0);
}

cublasStatus_t cublasCgemvBatched(cublasHandle_t p_handle, cublasOperation_t p_trans, int p_m, int p_n, const cuComplex *p_alpha, const cuComplex **p_Aarray, int p_lda, const cuComplex **p_xarray, int p_incx, const cuComplex *p_beta, cuComplex **p_yarray, int p_incy, int p_batchCount) {
	begin(298);
	VALUE(0, p_handle);
	VALUE(1, p_trans);
	VALUE(2, p_m);
	VALUE(3, p_n);
	VALUE(4, p_alpha);
	MEMORY(4, p_alpha, sizeof *p_alpha);
	VALUE(5, p_Aarray);
	VALUE(6, p_lda);
	VALUE(7, p_xarray);
	VALUE(8, p_incx);
	VALUE(9, p_beta);
	MEMORY(9, p_beta, sizeof *p_beta);
	VALUE(10, p_yarray);
	VALUE(11, p_incy);
	VALUE(12, p_batchCount);
	return (cublasStatus_t)(puregpu_echo.fail ? 936 : 0);
}

cublasStatus_t cublasCgemvBatched_64(cublasHandle_t p_handle, cublasOperation_t p_trans, int64_t p_m, int64_t p_n, const cuComplex *p_alpha, const cuComplex **p_Aarray, int64_t p_lda, const cuComplex **p_xarray, int64_t p_incx, const cuComplex *p_beta, cuComplex **p_yarray, int64_t p_incy, int64_t p_batchCount) {
	begin(299);
	VALUE(0, p_handle);
	VALUE(1, p_trans);
	VALUE(2, p_m);
	VALUE(3, p_n);
	VALUE(4, p_alpha);
	MEMORY(4, p_alpha, sizeof *p_alpha);
	VALUE(5, p_Aarray);
	VALUE(6, p_lda);
	VALUE(7, p_xarray);
	VALUE(8, p_incx);
	VALUE(9, p_beta);
	MEMORY(9, p_beta, sizeof *p_beta);
	VALUE(10, p_yarray);
	VALUE(11, p_incy);
	VALUE(12, p_batchCount);
	return (cublasStatus_t)(puregpu_echo.fail ? 981 : 0);
}

cublasStatus_t cublasZgemvBatched(cublasHandle_t p_handle, cublasOperation_t p_trans, int p_m, int p_n, const cuDoubleComplex *p_alpha, const cuDoubleComplex **p_Aarray, int p_lda, const cuDoubleComplex **p_xarray, int p_incx, const cuDoubleComplex *p_beta, cuDoubleComplex **p_yarray, int p_incy, int p_batchCount) {
	begin(300);
	VALUE(0, p_handle);
	VALUE(1, p_trans);
	VALUE(2, p_m);
	VALUE(3, p_n);
	VALUE(4, p_alpha);
	MEMORY(4, p_alpha, sizeof *p_alpha);
	VALUE(5, p_Aarray);
	VALUE(6, p_lda);
	VALUE(7, p_xarray);
	VALUE(8, p_incx);
	VALUE(9, p_beta);
	MEMORY(9, p_beta, sizeof *p_beta);
	VALUE(10, p_yarray);
	VALUE(11, p_incy);
	VALUE(12, p_batchCount);
	return (cublasStatus_t)(puregpu_echo.fail ? 939 : 0);
}

cublasStatus_t cublasZgemvBatched_64(cublasHandle_t p_handle, cublasOperation_t p_trans, int64_t p_m, int64_t p_n, const cuDoubleComplex *p_alpha, const cuDoubleComplex **p_Aarray, int64_t p_lda, const cuDoubleComplex **p_xarray, int64_t p_incx, const cuDoubleComplex *p_beta, cuDoubleComplex **p_yarray, int64_t p_incy, int64_t p_batchCount) {
	begin(301);
	VALUE(0, p_handle);
	VALUE(1, p_trans);
	VALUE(2, p_m);
	VALUE(3, p_n);
	VALUE(4, p_alpha);
	MEMORY(4, p_alpha, sizeof *p_alpha);
	VALUE(5, p_Aarray);
	VALUE(6, p_lda);
	VALUE(7, p_xarray);
	VALUE(8, p_incx);
	VALUE(9, p_beta);
	MEMORY(9, p_beta, sizeof *p_beta);
	VALUE(10, p_yarray);
	VALUE(11, p_incy);
	VALUE(12, p_batchCount);
	return (cublasStatus_t)(puregpu_echo.fail ? 978 : 0);
}

cublasStatus_t cublasSgemvStridedBatched(cublasHandle_t p_handle, cublasOperation_t p_trans, int p_m, int p_n, const float *p_alpha, const float *p_A, int p_lda, long long p_strideA, const float *p_x, int p_incx, long long p_stridex, const float *p_beta, float *p_y, int p_incy, long long p_stridey, int p_batchCount) {
	begin(302);
	VALUE(0, p_handle);
	VALUE(1, p_trans);
	VALUE(2, p_m);
	VALUE(3, p_n);
	VALUE(4, p_alpha);
	MEMORY(4, p_alpha, sizeof *p_alpha);
	VALUE(5, p_A);
	VALUE(6, p_lda);
	VALUE(7, p_strideA);
	VALUE(8, p_x);
	VALUE(9, p_incx);
	VALUE(10, p_stridex);
	VALUE(11, p_beta);
	MEMORY(11, p_beta, sizeof *p_beta);
	VALUE(12, p_y);
	VALUE(13, p_incy);
	VALUE(14, p_stridey);
	VALUE(15, p_batchCount);
	return (cublasStatus_t)(puregpu_echo.fail ? 904 : 0);
}

cublasStatus_t cublasSgemvStridedBatched_64(cublasHandle_t p_handle, cublasOperation_t p_trans, int64_t p_m, int64_t p_n, const float *p_alpha, const float *p_A, int64_t p_lda, long long p_strideA, const float *p_x, int64_t p_incx, long long p_stridex, const float *p_beta, float *p_y, int64_t p_incy, long long p_stridey, int64_t p_batchCount) {
	begin(303);
	VALUE(0, p_handle);
	VALUE(1, p_trans);
	VALUE(2, p_m);
	VALUE(3, p_n);
	VALUE(4, p_alpha);
	MEMORY(4, p_alpha, sizeof *p_alpha);
	VALUE(5, p_A);
	VALUE(6, p_lda);
	VALUE(7, p_strideA);
	VALUE(8, p_x);
	VALUE(9, p_incx);
	VALUE(10, p_stridex);
	VALUE(11, p_beta);
	MEMORY(11, p_beta, sizeof *p_beta);
	VALUE(12, p_y);
	VALUE(13, p_incy);
	VALUE(14, p_stridey);
	VALUE(15, p_batchCount);
	return (cublasStatus_t)(puregpu_echo.fail ? 930 : 0);
}

cublasStatus_t cublasDgemvStridedBatched(cublasHandle_t p_handle, cublasOperation_t p_trans, int p_m, int p_n, const double *p_alpha, const double *p_A, int p_lda, long long p_strideA, const double *p_x, int p_incx, long long p_stridex, const double *p_beta, double *p_y, int p_incy, long long p_stridey, int p_batchCount) {
	begin(304);
	VALUE(0, p_handle);
	VALUE(1, p_trans);
	VALUE(2, p_m);
	VALUE(3, p_n);
	VALUE(4, p_alpha);
	MEMORY(4, p_alpha, sizeof *p_alpha);
	VALUE(5, p_A);
	VALUE(6, p_lda);
	VALUE(7, p_strideA);
	VALUE(8, p_x);
	VALUE(9, p_incx);
	VALUE(10, p_stridex);
	VALUE(11, p_beta);
	MEMORY(11, p_beta, sizeof *p_beta);
	VALUE(12, p_y);
	VALUE(13, p_incy);
	VALUE(14, p_stridey);
	VALUE(15, p_batchCount);
	return (cublasStatus_t)(puregpu_echo.fail ? 913 : 0);
}

cublasStatus_t cublasDgemvStridedBatched_64(cublasHandle_t p_handle, cublasOperation_t p_trans, int64_t p_m, int64_t p_n, const double *p_alpha, const double *p_A, int64_t p_lda, long long p_strideA, const double *p_x, int64_t p_incx, long long p_stridex, const double *p_beta, double *p_y, int64_t p_incy, long long p_stridey, int64_t p_batchCount) {
	begin(305);
	VALUE(0, p_handle);
	VALUE(1, p_trans);
	VALUE(2, p_m);
	VALUE(3, p_n);
	VALUE(4, p_alpha);
	MEMORY(4, p_alpha, sizeof *p_alpha);
	VALUE(5, p_A);
	VALUE(6, p_lda);
	VALUE(7, p_strideA);
	VALUE(8, p_x);
	VALUE(9, p_incx);
	VALUE(10, p_stridex);
	VALUE(11, p_beta);
	MEMORY(11, p_beta, sizeof *p_beta);
	VALUE(12, p_y);
	VALUE(13, p_incy);
	VALUE(14, p_stridey);
	VALUE(15, p_batchCount);
	return (cublasStatus_t)(puregpu_echo.fail ? 986 : 0);
}

cublasStatus_t cublasCgemvStridedBatched(cublasHandle_t p_handle, cublasOperation_t p_trans, int p_m, int p_n, const cuComplex *p_alpha, const cuComplex *p_A, int p_lda, long long p_strideA, const cuComplex *p_x, int p_incx, long long p_stridex, const cuComplex *p_beta, cuComplex *p_y, int p_incy, long long p_stridey, int p_batchCount) {
	begin(306);
	VALUE(0, p_handle);
	VALUE(1, p_trans);
	VALUE(2, p_m);
	VALUE(3, p_n);
	VALUE(4, p_alpha);
	MEMORY(4, p_alpha, sizeof *p_alpha);
	VALUE(5, p_A);
	VALUE(6, p_lda);
	VALUE(7, p_strideA);
	VALUE(8, p_x);
	VALUE(9, p_incx);
	VALUE(10, p_stridex);
	VALUE(11, p_beta);
	MEMORY(11, p_beta, sizeof *p_beta);
	VALUE(12, p_y);
	VALUE(13, p_incy);
	VALUE(14, p_stridey);
	VALUE(15, p_batchCount);
	return (cublasStatus_t)(puregpu_echo.fail ? 925 : 0);
}

cublasStatus_t cublasCgemvStridedBatched_64(cublasHandle_t p_handle, cublasOperation_t p_trans, int64_t p_m, int64_t p_n, const cuComplex *p_alpha, const cuComplex *p_A, int64_t p_lda, long long p_strideA, const cuComplex *p_x, int64_t p_incx, long long p_stridex, const cuComplex *p_beta, cuComplex *p_y, int64_t p_incy, long long p_stridey, int64_t p_batchCount) {
	begin(307);
	VALUE(0, p_handle);
	VALUE(1, p_trans);
	VALUE(2, p_m);
	VALUE(3, p_n);
	VALUE(4, p_alpha);
	MEMORY(4, p_alpha, sizeof *p_alpha);
	VALUE(5, p_A);
	VALUE(6, p_lda);
	VALUE(7, p_strideA);
	VALUE(8, p_x);
	VALUE(9, p_incx);
	VALUE(10, p_stridex);
	VALUE(11, p_beta);
	MEMORY(11, p_beta, sizeof *p_beta);
	VALUE(12, p_y);
	VALUE(13, p_incy);
	VALUE(14, p_stridey);
	VALUE(15, p_batchCount);
	return (cublasStatus_t)(puregpu_echo.fail ? 964 : 0);
}

cublasStatus_t cublasZgemvStridedBatched(cublasHandle_t p_handle, cublasOperation_t p_trans, int p_m, int p_n, const cuDoubleComplex *p_alpha, const cuDoubleComplex *p_A, int p_lda, long long p_strideA, const cuDoubleComplex *p_x, int p_incx, long long p_stridex, const cuDoubleComplex *p_beta, cuDoubleComplex *p_y, int p_incy, long long p_stridey, int p_batchCount) {
	begin(308);
	VALUE(0, p_handle);
	VALUE(1, p_trans);
	VALUE(2, p_m);
	VALUE(3, p_n);
	VALUE(4, p_alpha);
	MEMORY(4, p_alpha, sizeof *p_alpha);
	VALUE(5, p_A);
	VALUE(6, p_lda);
	VALUE(7, p_strideA);
	VALUE(8, p_x);
	VALUE(9, p_incx);
	VALUE(10, p_stridex);
	VALUE(11, p_beta);
	MEMORY(11, p_beta, sizeof *p_beta);
	VALUE(12, p_y);
	VALUE(13, p_incy);
	VALUE(14, p_stridey);
	VALUE(15, p_batchCount);
	return (cublasStatus_t)(puregpu_echo.fail ? 929 : 0);
}

cublasStatus_t cublasZgemvStridedBatched_64(cublasHandle_t p_handle, cublasOperation_t p_trans, int64_t p_m, int64_t p_n, const cuDoubleComplex *p_alpha, const cuDoubleComplex *p_A, int64_t p_lda, long long p_strideA, const cuDoubleComplex *p_x, int64_t p_incx, long long p_stridex, const cuDoubleComplex *p_beta, cuDoubleComplex *p_y, int64_t p_incy, long long p_stridey, int64_t p_batchCount) {
	begin(309);
	VALUE(0, p_handle);
	VALUE(1, p_trans);
	VALUE(2, p_m);
	VALUE(3, p_n);
	VALUE(4, p_alpha);
	MEMORY(4, p_alpha, sizeof *p_alpha);
	VALUE(5, p_A);
	VALUE(6, p_lda);
	VALUE(7, p_strideA);
	VALUE(8, p_x);
	VALUE(9, p_incx);
	VALUE(10, p_stridex);
	VALUE(11, p_beta);
	MEMORY(11, p_beta, sizeof *p_beta);
	VALUE(12, p_y);
	VALUE(13, p_incy);
	VALUE(14, p_stridey);
	VALUE(15, p_batchCount);
	return (cublasStatus_t)(puregpu_echo.fail ? 914 : 0);
}

cublasStatus_t cublasSgemm_v2(cublasHandle_t p_handle, cublasOperation_t p_transa, cublasOperation_t p_transb, int p_m, int p_n, int p_k, const float *p_alpha, const float *p_A, int p_lda, const float *p_B, int p_ldb, const float *p_beta, float *p_C, int p_ldc) {
	begin(310);
	VALUE(0, p_handle);
	VALUE(1, p_transa);
	VALUE(2, p_transb);
	VALUE(3, p_m);
	VALUE(4, p_n);
	VALUE(5, p_k);
	VALUE(6, p_alpha);
	MEMORY(6, p_alpha, sizeof *p_alpha);
	VALUE(7, p_A);
	VALUE(8, p_lda);
	VALUE(9, p_B);
	VALUE(10, p_ldb);
	VALUE(11, p_beta);
	MEMORY(11, p_beta, sizeof *p_beta);
	VALUE(12, p_C);
	VALUE(13, p_ldc);
	return (cublasStatus_t)(puregpu_echo.fail ? 949 : 0);
}

cublasStatus_t cublasSgemm_v2_64(cublasHandle_t p_handle, cublasOperation_t p_transa, cublasOperation_t p_transb, int64_t p_m, int64_t p_n, int64_t p_k, const float *p_alpha, const float *p_A, int64_t p_lda, const float *p_B, int64_t p_ldb, const float *p_beta, float *p_C, int64_t p_ldc) {
	begin(311);
	VALUE(0, p_handle);
	VALUE(1, p_transa);
	VALUE(2, p_transb);
	VALUE(3, p_m);
	VALUE(4, p_n);
	VALUE(5, p_k);
	VALUE(6, p_alpha);
	MEMORY(6, p_alpha, sizeof *p_alpha);
	VALUE(7, p_A);
	VALUE(8, p_lda);
	VALUE(9, p_B);
	VALUE(10, p_ldb);
	VALUE(11, p_beta);
	MEMORY(11, p_beta, sizeof *p_beta);
	VALUE(12, p_C);
	VALUE(13, p_ldc);
	return (cublasStatus_t)(puregpu_echo.fail ? 960 : 0);
}

cublasStatus_t cublasDgemm_v2(cublasHandle_t p_handle, cublasOperation_t p_transa, cublasOperation_t p_transb, int p_m, int p_n, int p_k, const double *p_alpha, const double *p_A, int p_lda, const double *p_B, int p_ldb, const double *p_beta, double *p_C, int p_ldc) {
	begin(312);
	VALUE(0, p_handle);
	VALUE(1, p_transa);
	VALUE(2, p_transb);
	VALUE(3, p_m);
	VALUE(4, p_n);
	VALUE(5, p_k);
	VALUE(6, p_alpha);
	MEMORY(6, p_alpha, sizeof *p_alpha);
	VALUE(7, p_A);
	VALUE(8, p_lda);
	VALUE(9, p_B);
	VALUE(10, p_ldb);
	VALUE(11, p_beta);
	MEMORY(11, p_beta, sizeof *p_beta);
	VALUE(12, p_C);
	VALUE(13, p_ldc);
	return (cublasStatus_t)(puregpu_echo.fail ? 952 : 0);
}

cublasStatus_t cublasDgemm_v2_64(cublasHandle_t p_handle, cublasOperation_t p_transa, cublasOperation_t p_transb, int64_t p_m, int64_t p_n, int64_t p_k, const double *p_alpha, const double *p_A, int64_t p_lda, const double *p_B, int64_t p_ldb, const double *p_beta, double *p_C, int64_t p_ldc) {
	begin(313);
	VALUE(0, p_handle);
	VALUE(1, p_transa);
	VALUE(2, p_transb);
	VALUE(3, p_m);
	VALUE(4, p_n);
	VALUE(5, p_k);
	VALUE(6, p_alpha);
	MEMORY(6, p_alpha, sizeof *p_alpha);
	VALUE(7, p_A);
	VALUE(8, p_lda);
	VALUE(9, p_B);
	VALUE(10, p_ldb);
	VALUE(11, p_beta);
	MEMORY(11, p_beta, sizeof *p_beta);
	VALUE(12, p_C);
	VALUE(13, p_ldc);
	return (cublasStatus_t)(puregpu_echo.fail ? 974 : 0);
}

cublasStatus_t cublasCgemm_v2(cublasHandle_t p_handle, cublasOperation_t p_transa, cublasOperation_t p_transb, int p_m, int p_n, int p_k, const cuComplex *p_alpha, const cuComplex *p_A, int p_lda, const cuComplex *p_B, int p_ldb, const cuComplex *p_beta, cuComplex *p_C, int p_ldc) {
	begin(314);
	VALUE(0, p_handle);
	VALUE(1, p_transa);
	VALUE(2, p_transb);
	VALUE(3, p_m);
	VALUE(4, p_n);
	VALUE(5, p_k);
	VALUE(6, p_alpha);
	MEMORY(6, p_alpha, sizeof *p_alpha);
	VALUE(7, p_A);
	VALUE(8, p_lda);
	VALUE(9, p_B);
	VALUE(10, p_ldb);
	VALUE(11, p_beta);
	MEMORY(11, p_beta, sizeof *p_beta);
	VALUE(12, p_C);
	VALUE(13, p_ldc);
	return (cublasStatus_t)(puregpu_echo.fail ? 974 : 0);
}

cublasStatus_t cublasCgemm_v2_64(cublasHandle_t p_handle, cublasOperation_t p_transa, cublasOperation_t p_transb, int64_t p_m, int64_t p_n, int64_t p_k, const cuComplex *p_alpha, const cuComplex *p_A, int64_t p_lda, const cuComplex *p_B, int64_t p_ldb, const cuComplex *p_beta, cuComplex *p_C, int64_t p_ldc) {
	begin(315);
	VALUE(0, p_handle);
	VALUE(1, p_transa);
	VALUE(2, p_transb);
	VALUE(3, p_m);
	VALUE(4, p_n);
	VALUE(5, p_k);
	VALUE(6, p_alpha);
	MEMORY(6, p_alpha, sizeof *p_alpha);
	VALUE(7, p_A);
	VALUE(8, p_lda);
	VALUE(9, p_B);
	VALUE(10, p_ldb);
	VALUE(11, p_beta);
	MEMORY(11, p_beta, sizeof *p_beta);
	VALUE(12, p_C);
	VALUE(13, p_ldc);
	return (cublasStatus_t)(puregpu_echo.fail ? 906 : 0);
}

cublasStatus_t cublasCgemm3m(cublasHandle_t p_handle, cublasOperation_t p_transa, cublasOperation_t p_transb, int p_m, int p_n, int p_k, const cuComplex *p_alpha, const cuComplex *p_A, int p_lda, const cuComplex *p_B, int p_ldb, const cuComplex *p_beta, cuComplex *p_C, int p_ldc) {
	begin(316);
	VALUE(0, p_handle);
	VALUE(1, p_transa);
	VALUE(2, p_transb);
	VALUE(3, p_m);
	VALUE(4, p_n);
	VALUE(5, p_k);
	VALUE(6, p_alpha);
	MEMORY(6, p_alpha, sizeof *p_alpha);
	VALUE(7, p_A);
	VALUE(8, p_lda);
	VALUE(9, p_B);
	VALUE(10, p_ldb);
	VALUE(11, p_beta);
	MEMORY(11, p_beta, sizeof *p_beta);
	VALUE(12, p_C);
	VALUE(13, p_ldc);
	return (cublasStatus_t)(puregpu_echo.fail ? 912 : 0);
}

cublasStatus_t cublasCgemm3m_64(cublasHandle_t p_handle, cublasOperation_t p_transa, cublasOperation_t p_transb, int64_t p_m, int64_t p_n, int64_t p_k, const cuComplex *p_alpha, const cuComplex *p_A, int64_t p_lda, const cuComplex *p_B, int64_t p_ldb, const cuComplex *p_beta, cuComplex *p_C, int64_t p_ldc) {
	begin(317);
	VALUE(0, p_handle);
	VALUE(1, p_transa);
	VALUE(2, p_transb);
	VALUE(3, p_m);
	VALUE(4, p_n);
	VALUE(5, p_k);
	VALUE(6, p_alpha);
	MEMORY(6, p_alpha, sizeof *p_alpha);
	VALUE(7, p_A);
	VALUE(8, p_lda);
	VALUE(9, p_B);
	VALUE(10, p_ldb);
	VALUE(11, p_beta);
	MEMORY(11, p_beta, sizeof *p_beta);
	VALUE(12, p_C);
	VALUE(13, p_ldc);
	return (cublasStatus_t)(puregpu_echo.fail ? 910 : 0);
}

cublasStatus_t cublasCgemm3mEx(cublasHandle_t p_handle, cublasOperation_t p_transa, cublasOperation_t p_transb, int p_m, int p_n, int p_k, const cuComplex *p_alpha, const void *p_A, cudaDataType p_Atype, int p_lda, const void *p_B, cudaDataType p_Btype, int p_ldb, const cuComplex *p_beta, void *p_C, cudaDataType p_Ctype, int p_ldc) {
	begin(318);
	VALUE(0, p_handle);
	VALUE(1, p_transa);
	VALUE(2, p_transb);
	VALUE(3, p_m);
	VALUE(4, p_n);
	VALUE(5, p_k);
	VALUE(6, p_alpha);
	MEMORY(6, p_alpha, sizeof *p_alpha);
	VALUE(7, p_A);
	VALUE(8, p_Atype);
	VALUE(9, p_lda);
	VALUE(10, p_B);
	VALUE(11, p_Btype);
	VALUE(12, p_ldb);
	VALUE(13, p_beta);
	MEMORY(13, p_beta, sizeof *p_beta);
	VALUE(14, p_C);
	VALUE(15, p_Ctype);
	VALUE(16, p_ldc);
	return (cublasStatus_t)(puregpu_echo.fail ? 970 : 0);
}

cublasStatus_t cublasCgemm3mEx_64(cublasHandle_t p_handle, cublasOperation_t p_transa, cublasOperation_t p_transb, int64_t p_m, int64_t p_n, int64_t p_k, const cuComplex *p_alpha, const void *p_A, cudaDataType p_Atype, int64_t p_lda, const void *p_B, cudaDataType p_Btype, int64_t p_ldb, const cuComplex *p_beta, void *p_C, cudaDataType p_Ctype, int64_t p_ldc) {
	begin(319);
	VALUE(0, p_handle);
	VALUE(1, p_transa);
	VALUE(2, p_transb);
	VALUE(3, p_m);
	VALUE(4, p_n);
	VALUE(5, p_k);
	VALUE(6, p_alpha);
	MEMORY(6, p_alpha, sizeof *p_alpha);
	VALUE(7, p_A);
	VALUE(8, p_Atype);
	VALUE(9, p_lda);
	VALUE(10, p_B);
	VALUE(11, p_Btype);
	VALUE(12, p_ldb);
	VALUE(13, p_beta);
	MEMORY(13, p_beta, sizeof *p_beta);
	VALUE(14, p_C);
	VALUE(15, p_Ctype);
	VALUE(16, p_ldc);
	return (cublasStatus_t)(puregpu_echo.fail ? 973 : 0);
}

cublasStatus_t cublasZgemm_v2(cublasHandle_t p_handle, cublasOperation_t p_transa, cublasOperation_t p_transb, int p_m, int p_n, int p_k, const cuDoubleComplex *p_alpha, const cuDoubleComplex *p_A, int p_lda, const cuDoubleComplex *p_B, int p_ldb, const cuDoubleComplex *p_beta, cuDoubleComplex *p_C, int p_ldc) {
	begin(320);
	VALUE(0, p_handle);
	VALUE(1, p_transa);
	VALUE(2, p_transb);
	VALUE(3, p_m);
	VALUE(4, p_n);
	VALUE(5, p_k);
	VALUE(6, p_alpha);
	MEMORY(6, p_alpha, sizeof *p_alpha);
	VALUE(7, p_A);
	VALUE(8, p_lda);
	VALUE(9, p_B);
	VALUE(10, p_ldb);
	VALUE(11, p_beta);
	MEMORY(11, p_beta, sizeof *p_beta);
	VALUE(12, p_C);
	VALUE(13, p_ldc);
	return (cublasStatus_t)(puregpu_echo.fail ? 965 : 0);
}

cublasStatus_t cublasZgemm_v2_64(cublasHandle_t p_handle, cublasOperation_t p_transa, cublasOperation_t p_transb, int64_t p_m, int64_t p_n, int64_t p_k, const cuDoubleComplex *p_alpha, const cuDoubleComplex *p_A, int64_t p_lda, const cuDoubleComplex *p_B, int64_t p_ldb, const cuDoubleComplex *p_beta, cuDoubleComplex *p_C, int64_t p_ldc) {
	begin(321);
	VALUE(0, p_handle);
	VALUE(1, p_transa);
	VALUE(2, p_transb);
	VALUE(3, p_m);
	VALUE(4, p_n);
	VALUE(5, p_k);
	VALUE(6, p_alpha);
	MEMORY(6, p_alpha, sizeof *p_alpha);
	VALUE(7, p_A);
	VALUE(8, p_lda);
	VALUE(9, p_B);
	VALUE(10, p_ldb);
	VALUE(11, p_beta);
	MEMORY(11, p_beta, sizeof *p_beta);
	VALUE(12, p_C);
	VALUE(13, p_ldc);
	return (cublasStatus_t)(puregpu_echo.fail ? 909 : 0);
}

cublasStatus_t cublasZgemm3m(cublasHandle_t p_handle, cublasOperation_t p_transa, cublasOperation_t p_transb, int p_m, int p_n, int p_k, const cuDoubleComplex *p_alpha, const cuDoubleComplex *p_A, int p_lda, const cuDoubleComplex *p_B, int p_ldb, const cuDoubleComplex *p_beta, cuDoubleComplex *p_C, int p_ldc) {
	begin(322);
	VALUE(0, p_handle);
	VALUE(1, p_transa);
	VALUE(2, p_transb);
	VALUE(3, p_m);
	VALUE(4, p_n);
	VALUE(5, p_k);
	VALUE(6, p_alpha);
	MEMORY(6, p_alpha, sizeof *p_alpha);
	VALUE(7, p_A);
	VALUE(8, p_lda);
	VALUE(9, p_B);
	VALUE(10, p_ldb);
	VALUE(11, p_beta);
	MEMORY(11, p_beta, sizeof *p_beta);
	VALUE(12, p_C);
	VALUE(13, p_ldc);
	return (cublasStatus_t)(puregpu_echo.fail ? 924 : 0);
}

cublasStatus_t cublasZgemm3m_64(cublasHandle_t p_handle, cublasOperation_t p_transa, cublasOperation_t p_transb, int64_t p_m, int64_t p_n, int64_t p_k, const cuDoubleComplex *p_alpha, const cuDoubleComplex *p_A, int64_t p_lda, const cuDoubleComplex *p_B, int64_t p_ldb, const cuDoubleComplex *p_beta, cuDoubleComplex *p_C, int64_t p_ldc) {
	begin(323);
	VALUE(0, p_handle);
	VALUE(1, p_transa);
	VALUE(2, p_transb);
	VALUE(3, p_m);
	VALUE(4, p_n);
	VALUE(5, p_k);
	VALUE(6, p_alpha);
	MEMORY(6, p_alpha, sizeof *p_alpha);
	VALUE(7, p_A);
	VALUE(8, p_lda);
	VALUE(9, p_B);
	VALUE(10, p_ldb);
	VALUE(11, p_beta);
	MEMORY(11, p_beta, sizeof *p_beta);
	VALUE(12, p_C);
	VALUE(13, p_ldc);
	return (cublasStatus_t)(puregpu_echo.fail ? 900 : 0);
}

cublasStatus_t cublasSgemmEx(cublasHandle_t p_handle, cublasOperation_t p_transa, cublasOperation_t p_transb, int p_m, int p_n, int p_k, const float *p_alpha, const void *p_A, cudaDataType p_Atype, int p_lda, const void *p_B, cudaDataType p_Btype, int p_ldb, const float *p_beta, void *p_C, cudaDataType p_Ctype, int p_ldc) {
	begin(324);
	VALUE(0, p_handle);
	VALUE(1, p_transa);
	VALUE(2, p_transb);
	VALUE(3, p_m);
	VALUE(4, p_n);
	VALUE(5, p_k);
	VALUE(6, p_alpha);
	MEMORY(6, p_alpha, sizeof *p_alpha);
	VALUE(7, p_A);
	VALUE(8, p_Atype);
	VALUE(9, p_lda);
	VALUE(10, p_B);
	VALUE(11, p_Btype);
	VALUE(12, p_ldb);
	VALUE(13, p_beta);
	MEMORY(13, p_beta, sizeof *p_beta);
	VALUE(14, p_C);
	VALUE(15, p_Ctype);
	VALUE(16, p_ldc);
	return (cublasStatus_t)(puregpu_echo.fail ? 928 : 0);
}

cublasStatus_t cublasSgemmEx_64(cublasHandle_t p_handle, cublasOperation_t p_transa, cublasOperation_t p_transb, int64_t p_m, int64_t p_n, int64_t p_k, const float *p_alpha, const void *p_A, cudaDataType p_Atype, int64_t p_lda, const void *p_B, cudaDataType p_Btype, int64_t p_ldb, const float *p_beta, void *p_C, cudaDataType p_Ctype, int64_t p_ldc) {
	begin(325);
	VALUE(0, p_handle);
	VALUE(1, p_transa);
	VALUE(2, p_transb);
	VALUE(3, p_m);
	VALUE(4, p_n);
	VALUE(5, p_k);
	VALUE(6, p_alpha);
	MEMORY(6, p_alpha, sizeof *p_alpha);
	VALUE(7, p_A);
	VALUE(8, p_Atype);
	VALUE(9, p_lda);
	VALUE(10, p_B);
	VALUE(11, p_Btype);
	VALUE(12, p_ldb);
	VALUE(13, p_beta);
	MEMORY(13, p_beta, sizeof *p_beta);
	VALUE(14, p_C);
	VALUE(15, p_Ctype);
	VALUE(16, p_ldc);
	return (cublasStatus_t)(puregpu_echo.fail ? 980 : 0);
}

cublasStatus_t cublasGemmEx(cublasHandle_t p_handle, cublasOperation_t p_transa, cublasOperation_t p_transb, int p_m, int p_n, int p_k, const void *p_alpha, const void *p_A, cudaDataType p_Atype, int p_lda, const void *p_B, cudaDataType p_Btype, int p_ldb, const void *p_beta, void *p_C, cudaDataType p_Ctype, int p_ldc, cublasComputeType_t p_computeType, cublasGemmAlgo_t p_algo) {
	begin(326);
	VALUE(0, p_handle);
	VALUE(1, p_transa);
	VALUE(2, p_transb);
	VALUE(3, p_m);
	VALUE(4, p_n);
	VALUE(5, p_k);
	VALUE(6, p_alpha);
	VALUE(7, p_A);
	VALUE(8, p_Atype);
	VALUE(9, p_lda);
	VALUE(10, p_B);
	VALUE(11, p_Btype);
	VALUE(12, p_ldb);
	VALUE(13, p_beta);
	VALUE(14, p_C);
	VALUE(15, p_Ctype);
	VALUE(16, p_ldc);
	VALUE(17, p_computeType);
	VALUE(18, p_algo);
	return (cublasStatus_t)(puregpu_echo.fail ? 962 : 0);
}

cublasStatus_t cublasGemmEx_64(cublasHandle_t p_handle, cublasOperation_t p_transa, cublasOperation_t p_transb, int64_t p_m, int64_t p_n, int64_t p_k, const void *p_alpha, const void *p_A, cudaDataType p_Atype, int64_t p_lda, const void *p_B, cudaDataType p_Btype, int64_t p_ldb, const void *p_beta, void *p_C, cudaDataType p_Ctype, int64_t p_ldc, cublasComputeType_t p_computeType, cublasGemmAlgo_t p_algo) {
	begin(327);
	VALUE(0, p_handle);
	VALUE(1, p_transa);
	VALUE(2, p_transb);
	VALUE(3, p_m);
	VALUE(4, p_n);
	VALUE(5, p_k);
	VALUE(6, p_alpha);
	VALUE(7, p_A);
	VALUE(8, p_Atype);
	VALUE(9, p_lda);
	VALUE(10, p_B);
	VALUE(11, p_Btype);
	VALUE(12, p_ldb);
	VALUE(13, p_beta);
	VALUE(14, p_C);
	VALUE(15, p_Ctype);
	VALUE(16, p_ldc);
	VALUE(17, p_computeType);
	VALUE(18, p_algo);
	return (cublasStatus_t)(puregpu_echo.fail ? 905 : 0);
}

cublasStatus_t cublasCgemmEx(cublasHandle_t p_handle, cublasOperation_t p_transa, cublasOperation_t p_transb, int p_m, int p_n, int p_k, const cuComplex *p_alpha, const void *p_A, cudaDataType p_Atype, int p_lda, const void *p_B, cudaDataType p_Btype, int p_ldb, const cuComplex *p_beta, void *p_C, cudaDataType p_Ctype, int p_ldc) {
	begin(328);
	VALUE(0, p_handle);
	VALUE(1, p_transa);
	VALUE(2, p_transb);
	VALUE(3, p_m);
	VALUE(4, p_n);
	VALUE(5, p_k);
	VALUE(6, p_alpha);
	MEMORY(6, p_alpha, sizeof *p_alpha);
	VALUE(7, p_A);
	VALUE(8, p_Atype);
	VALUE(9, p_lda);
	VALUE(10, p_B);
	VALUE(11, p_Btype);
	VALUE(12, p_ldb);
	VALUE(13, p_beta);
	MEMORY(13, p_beta, sizeof *p_beta);
	VALUE(14, p_C);
	VALUE(15, p_Ctype);
	VALUE(16, p_ldc);
	return (cublasStatus_t)(puregpu_echo.fail ? 977 : 0);
}

cublasStatus_t cublasCgemmEx_64(cublasHandle_t p_handle, cublasOperation_t p_transa, cublasOperation_t p_transb, int64_t p_m, int64_t p_n, int64_t p_k, const cuComplex *p_alpha, const void *p_A, cudaDataType p_Atype, int64_t p_lda, const void *p_B, cudaDataType p_Btype, int64_t p_ldb, const cuComplex *p_beta, void *p_C, cudaDataType p_Ctype, int64_t p_ldc) {
	begin(329);
	VALUE(0, p_handle);
	VALUE(1, p_transa);
	VALUE(2, p_transb);
	VALUE(3, p_m);
	VALUE(4, p_n);
	VALUE(5, p_k);
	VALUE(6, p_alpha);
	MEMORY(6, p_alpha, sizeof *p_alpha);
	VALUE(7, p_A);
	VALUE(8, p_Atype);
	VALUE(9, p_lda);
	VALUE(10, p_B);
	VALUE(11, p_Btype);
	VALUE(12, p_ldb);
	VALUE(13, p_beta);
	MEMORY(13, p_beta, sizeof *p_beta);
	VALUE(14, p_C);
	VALUE(15, p_Ctype);
	VALUE(16, p_ldc);
	return (cublasStatus_t)(puregpu_echo.fail ? 988 : 0);
}

cublasStatus_t cublasSsyrk_v2(cublasHandle_t p_handle, cublasFillMode_t p_uplo, cublasOperation_t p_trans, int p_n, int p_k, const float *p_alpha, const float *p_A, int p_lda, const float *p_beta, float *p_C, int p_ldc) {
	begin(330);
	VALUE(0, p_handle);
	VALUE(1, p_uplo);
	VALUE(2, p_trans);
	VALUE(3, p_n);
	VALUE(4, p_k);
	VALUE(5, p_alpha);
	MEMORY(5, p_alpha, sizeof *p_alpha);
	VALUE(6, p_A);
	VALUE(7, p_lda);
	VALUE(8, p_beta);
	MEMORY(8, p_beta, sizeof *p_beta);
	VALUE(9, p_C);
	VALUE(10, p_ldc);
	return (cublasStatus_t)(puregpu_echo.fail ? 902 : 0);
}

cublasStatus_t cublasSsyrk_v2_64(cublasHandle_t p_handle, cublasFillMode_t p_uplo, cublasOperation_t p_trans, int64_t p_n, int64_t p_k, const float *p_alpha, const float *p_A, int64_t p_lda, const float *p_beta, float *p_C, int64_t p_ldc) {
	begin(331);
	VALUE(0, p_handle);
	VALUE(1, p_uplo);
	VALUE(2, p_trans);
	VALUE(3, p_n);
	VALUE(4, p_k);
	VALUE(5, p_alpha);
	MEMORY(5, p_alpha, sizeof *p_alpha);
	VALUE(6, p_A);
	VALUE(7, p_lda);
	VALUE(8, p_beta);
	MEMORY(8, p_beta, sizeof *p_beta);
	VALUE(9, p_C);
	VALUE(10, p_ldc);
	return (cublasStatus_t)(puregpu_echo.fail ? 953 : 0);
}

cublasStatus_t cublasDsyrk_v2(cublasHandle_t p_handle, cublasFillMode_t p_uplo, cublasOperation_t p_trans, int p_n, int p_k, const double *p_alpha, const double *p_A, int p_lda, const double *p_beta, double *p_C, int p_ldc) {
	begin(332);
	VALUE(0, p_handle);
	VALUE(1, p_uplo);
	VALUE(2, p_trans);
	VALUE(3, p_n);
	VALUE(4, p_k);
	VALUE(5, p_alpha);
	MEMORY(5, p_alpha, sizeof *p_alpha);
	VALUE(6, p_A);
	VALUE(7, p_lda);
	VALUE(8, p_beta);
	MEMORY(8, p_beta, sizeof *p_beta);
	VALUE(9, p_C);
	VALUE(10, p_ldc);
	return (cublasStatus_t)(puregpu_echo.fail ? 908 : 0);
}

cublasStatus_t cublasDsyrk_v2_64(cublasHandle_t p_handle, cublasFillMode_t p_uplo, cublasOperation_t p_trans, int64_t p_n, int64_t p_k, const double *p_alpha, const double *p_A, int64_t p_lda, const double *p_beta, double *p_C, int64_t p_ldc) {
	begin(333);
	VALUE(0, p_handle);
	VALUE(1, p_uplo);
	VALUE(2, p_trans);
	VALUE(3, p_n);
	VALUE(4, p_k);
	VALUE(5, p_alpha);
	MEMORY(5, p_alpha, sizeof *p_alpha);
	VALUE(6, p_A);
	VALUE(7, p_lda);
	VALUE(8, p_beta);
	MEMORY(8, p_beta, sizeof *p_beta);
	VALUE(9, p_C);
	VALUE(10, p_ldc);
	return (cublasStatus_t)(puregpu_echo.fail ? 936 : 0);
}

cublasStatus_t cublasCsyrk_v2(cublasHandle_t p_handle, cublasFillMode_t p_uplo, cublasOperation_t p_trans, int p_n, int p_k, const cuComplex *p_alpha, const cuComplex *p_A, int p_lda, const cuComplex *p_beta, cuComplex *p_C, int p_ldc) {
	begin(334);
	VALUE(0, p_handle);
	VALUE(1, p_uplo);
	VALUE(2, p_trans);
	VALUE(3, p_n);
	VALUE(4, p_k);
	VALUE(5, p_alpha);
	MEMORY(5, p_alpha, sizeof *p_alpha);
	VALUE(6, p_A);
	VALUE(7, p_lda);
	VALUE(8, p_beta);
	MEMORY(8, p_beta, sizeof *p_beta);
	VALUE(9, p_C);
	VALUE(10, p_ldc);
	return (cublasStatus_t)(puregpu_echo.fail ? 948 : 0);
}

cublasStatus_t cublasCsyrk_v2_64(cublasHandle_t p_handle, cublasFillMode_t p_uplo, cublasOperation_t p_trans, int64_t p_n, int64_t p_k, const cuComplex *p_alpha, const cuComplex *p_A, int64_t p_lda, const cuComplex *p_beta, cuComplex *p_C, int64_t p_ldc) {
	begin(335);
	VALUE(0, p_handle);
	VALUE(1, p_uplo);
	VALUE(2, p_trans);
	VALUE(3, p_n);
	VALUE(4, p_k);
	VALUE(5, p_alpha);
	MEMORY(5, p_alpha, sizeof *p_alpha);
	VALUE(6, p_A);
	VALUE(7, p_lda);
	VALUE(8, p_beta);
	MEMORY(8, p_beta, sizeof *p_beta);
	VALUE(9, p_C);
	VALUE(10, p_ldc);
	return (cublasStatus_t)(puregpu_echo.fail ? 961 : 0);
}

cublasStatus_t cublasZsyrk_v2(cublasHandle_t p_handle, cublasFillMode_t p_uplo, cublasOperation_t p_trans, int p_n, int p_k, const cuDoubleComplex *p_alpha, const cuDoubleComplex *p_A, int p_lda, const cuDoubleComplex *p_beta, cuDoubleComplex *p_C, int p_ldc) {
	begin(336);
	VALUE(0, p_handle);
	VALUE(1, p_uplo);
	VALUE(2, p_trans);
	VALUE(3, p_n);
	VALUE(4, p_k);
	VALUE(5, p_alpha);
	MEMORY(5, p_alpha, sizeof *p_alpha);
	VALUE(6, p_A);
	VALUE(7, p_lda);
	VALUE(8, p_beta);
	MEMORY(8, p_beta, sizeof *p_beta);
	VALUE(9, p_C);
	VALUE(10, p_ldc);
	return (cublasStatus_t)(puregpu_echo.fail ? 970 : 0);
}

cublasStatus_t cublasZsyrk_v2_64(cublasHandle_t p_handle, cublasFillMode_t p_uplo, cublasOperation_t p_trans, int64_t p_n, int64_t p_k, const cuDoubleComplex *p_alpha, const cuDoubleComplex *p_A, int64_t p_lda, const cuDoubleComplex *p_beta, cuDoubleComplex *p_C, int64_t p_ldc) {
	begin(337);
	VALUE(0, p_handle);
	VALUE(1, p_uplo);
	VALUE(2, p_trans);
	VALUE(3, p_n);
	VALUE(4, p_k);
	VALUE(5, p_alpha);
	MEMORY(5, p_alpha, sizeof *p_alpha);
	VALUE(6, p_A);
	VALUE(7, p_lda);
	VALUE(8, p_beta);
	MEMORY(8, p_beta, sizeof *p_beta);
	VALUE(9, p_C);
	VALUE(10, p_ldc);
	return (cublasStatus_t)(puregpu_echo.fail ? 976 : 0);
}

cublasStatus_t cublasCsyrkEx(cublasHandle_t p_handle, cublasFillMode_t p_uplo, cublasOperation_t p_trans, int p_n, int p_k, const cuComplex *p_alpha, const void *p_A, cudaDataType p_Atype, int p_lda, const cuComplex *p_beta, void *p_C, cudaDataType p_Ctype, int p_ldc) {
	begin(338);
	VALUE(0, p_handle);
	VALUE(1, p_uplo);
	VALUE(2, p_trans);
	VALUE(3, p_n);
	VALUE(4, p_k);
	VALUE(5, p_alpha);
	MEMORY(5, p_alpha, sizeof *p_alpha);
	VALUE(6, p_A);
	VALUE(7, p_Atype);
	VALUE(8, p_lda);
	VALUE(9, p_beta);
	MEMORY(9, p_beta, sizeof *p_beta);
	VALUE(10, p_C);
	VALUE(11, p_Ctype);
	VALUE(12, p_ldc);
	return (cublasStatus_t)(puregpu_echo.fail ? 947 : 0);
}

cublasStatus_t cublasCsyrkEx_64(cublasHandle_t p_handle, cublasFillMode_t p_uplo, cublasOperation_t p_trans, int64_t p_n, int64_t p_k, const cuComplex *p_alpha, const void *p_A, cudaDataType p_Atype, int64_t p_lda, const cuComplex *p_beta, void *p_C, cudaDataType p_Ctype, int64_t p_ldc) {
	begin(339);
	VALUE(0, p_handle);
	VALUE(1, p_uplo);
	VALUE(2, p_trans);
	VALUE(3, p_n);
	VALUE(4, p_k);
	VALUE(5, p_alpha);
	MEMORY(5, p_alpha, sizeof *p_alpha);
	VALUE(6, p_A);
	VALUE(7, p_Atype);
	VALUE(8, p_lda);
	VALUE(9, p_beta);
	MEMORY(9, p_beta, sizeof *p_beta);
	VALUE(10, p_C);
	VALUE(11, p_Ctype);
	VALUE(12, p_ldc);
	return (cublasStatus_t)(puregpu_echo.fail ? 901 : 0);
}

cublasStatus_t cublasCsyrk3mEx(cublasHandle_t p_handle, cublasFillMode_t p_uplo, cublasOperation_t p_trans, int p_n, int p_k, const cuComplex *p_alpha, const void *p_A, cudaDataType p_Atype, int p_lda, const cuComplex *p_beta, void *p_C, cudaDataType p_Ctype, int p_ldc) {
	begin(340);
	VALUE(0, p_handle);
	VALUE(1, p_uplo);
	VALUE(2, p_trans);
	VALUE(3, p_n);
	VALUE(4, p_k);
	VALUE(5, p_alpha);
	MEMORY(5, p_alpha, sizeof *p_alpha);
	VALUE(6, p_A);
	VALUE(7, p_Atype);
	VALUE(8, p_lda);
	VALUE(9, p_beta);
	MEMORY(9, p_beta, sizeof *p_beta);
	VALUE(10, p_C);
	VALUE(11, p_Ctype);
	VALUE(12, p_ldc);
	return (cublasStatus_t)(puregpu_echo.fail ? 939 : 0);
}

cublasStatus_t cublasCsyrk3mEx_64(cublasHandle_t p_handle, cublasFillMode_t p_uplo, cublasOperation_t p_trans, int64_t p_n, int64_t p_k, const cuComplex *p_alpha, const void *p_A, cudaDataType p_Atype, int64_t p_lda, const cuComplex *p_beta, void *p_C, cudaDataType p_Ctype, int64_t p_ldc) {
	begin(341);
	VALUE(0, p_handle);
	VALUE(1, p_uplo);
	VALUE(2, p_trans);
	VALUE(3, p_n);
	VALUE(4, p_k);
	VALUE(5, p_alpha);
	MEMORY(5, p_alpha, sizeof *p_alpha);
	VALUE(6, p_A);
	VALUE(7, p_Atype);
	VALUE(8, p_lda);
	VALUE(9, p_beta);
	MEMORY(9, p_beta, sizeof *p_beta);
	VALUE(10, p_C);
	VALUE(11, p_Ctype);
	VALUE(12, p_ldc);
	return (cublasStatus_t)(puregpu_echo.fail ? 902 : 0);
}

cublasStatus_t cublasCherk_v2(cublasHandle_t p_handle, cublasFillMode_t p_uplo, cublasOperation_t p_trans, int p_n, int p_k, const float *p_alpha, const cuComplex *p_A, int p_lda, const float *p_beta, cuComplex *p_C, int p_ldc) {
	begin(342);
	VALUE(0, p_handle);
	VALUE(1, p_uplo);
	VALUE(2, p_trans);
	VALUE(3, p_n);
	VALUE(4, p_k);
	VALUE(5, p_alpha);
	MEMORY(5, p_alpha, sizeof *p_alpha);
	VALUE(6, p_A);
	VALUE(7, p_lda);
	VALUE(8, p_beta);
	MEMORY(8, p_beta, sizeof *p_beta);
	VALUE(9, p_C);
	VALUE(10, p_ldc);
	return (cublasStatus_t)(puregpu_echo.fail ? 970 : 0);
}

cublasStatus_t cublasCherk_v2_64(cublasHandle_t p_handle, cublasFillMode_t p_uplo, cublasOperation_t p_trans, int64_t p_n, int64_t p_k, const float *p_alpha, const cuComplex *p_A, int64_t p_lda, const float *p_beta, cuComplex *p_C, int64_t p_ldc) {
	begin(343);
	VALUE(0, p_handle);
	VALUE(1, p_uplo);
	VALUE(2, p_trans);
	VALUE(3, p_n);
	VALUE(4, p_k);
	VALUE(5, p_alpha);
	MEMORY(5, p_alpha, sizeof *p_alpha);
	VALUE(6, p_A);
	VALUE(7, p_lda);
	VALUE(8, p_beta);
	MEMORY(8, p_beta, sizeof *p_beta);
	VALUE(9, p_C);
	VALUE(10, p_ldc);
	return (cublasStatus_t)(puregpu_echo.fail ? 926 : 0);
}

cublasStatus_t cublasZherk_v2(cublasHandle_t p_handle, cublasFillMode_t p_uplo, cublasOperation_t p_trans, int p_n, int p_k, const double *p_alpha, const cuDoubleComplex *p_A, int p_lda, const double *p_beta, cuDoubleComplex *p_C, int p_ldc) {
	begin(344);
	VALUE(0, p_handle);
	VALUE(1, p_uplo);
	VALUE(2, p_trans);
	VALUE(3, p_n);
	VALUE(4, p_k);
	VALUE(5, p_alpha);
	MEMORY(5, p_alpha, sizeof *p_alpha);
	VALUE(6, p_A);
	VALUE(7, p_lda);
	VALUE(8, p_beta);
	MEMORY(8, p_beta, sizeof *p_beta);
	VALUE(9, p_C);
	VALUE(10, p_ldc);
	return (cublasStatus_t)(puregpu_echo.fail ? 931 : 0);
}

cublasStatus_t cublasZherk_v2_64(cublasHandle_t p_handle, cublasFillMode_t p_uplo, cublasOperation_t p_trans, int64_t p_n, int64_t p_k, const double *p_alpha, const cuDoubleComplex *p_A, int64_t p_lda, const double *p_beta, cuDoubleComplex *p_C, int64_t p_ldc) {
	begin(345);
	VALUE(0, p_handle);
	VALUE(1, p_uplo);
	VALUE(2, p_trans);
	VALUE(3, p_n);
	VALUE(4, p_k);
	VALUE(5, p_alpha);
	MEMORY(5, p_alpha, sizeof *p_alpha);
	VALUE(6, p_A);
	VALUE(7, p_lda);
	VALUE(8, p_beta);
	MEMORY(8, p_beta, sizeof *p_beta);
	VALUE(9, p_C);
	VALUE(10, p_ldc);
	return (cublasStatus_t)(puregpu_echo.fail ? 914 : 0);
}

cublasStatus_t cublasCherkEx(cublasHandle_t p_handle, cublasFillMode_t p_uplo, cublasOperation_t p_trans, int p_n, int p_k, const float *p_alpha, const void *p_A, cudaDataType p_Atype, int p_lda, const float *p_beta, void *p_C, cudaDataType p_Ctype, int p_ldc) {
	begin(346);
	VALUE(0, p_handle);
	VALUE(1, p_uplo);
	VALUE(2, p_trans);
	VALUE(3, p_n);
	VALUE(4, p_k);
	VALUE(5, p_alpha);
	MEMORY(5, p_alpha, sizeof *p_alpha);
	VALUE(6, p_A);
	VALUE(7, p_Atype);
	VALUE(8, p_lda);
	VALUE(9, p_beta);
	MEMORY(9, p_beta, sizeof *p_beta);
	VALUE(10, p_C);
	VALUE(11, p_Ctype);
	VALUE(12, p_ldc);
	return (cublasStatus_t)(puregpu_echo.fail ? 985 : 0);
}

cublasStatus_t cublasCherkEx_64(cublasHandle_t p_handle, cublasFillMode_t p_uplo, cublasOperation_t p_trans, int64_t p_n, int64_t p_k, const float *p_alpha, const void *p_A, cudaDataType p_Atype, int64_t p_lda, const float *p_beta, void *p_C, cudaDataType p_Ctype, int64_t p_ldc) {
	begin(347);
	VALUE(0, p_handle);
	VALUE(1, p_uplo);
	VALUE(2, p_trans);
	VALUE(3, p_n);
	VALUE(4, p_k);
	VALUE(5, p_alpha);
	MEMORY(5, p_alpha, sizeof *p_alpha);
	VALUE(6, p_A);
	VALUE(7, p_Atype);
	VALUE(8, p_lda);
	VALUE(9, p_beta);
	MEMORY(9, p_beta, sizeof *p_beta);
	VALUE(10, p_C);
	VALUE(11, p_Ctype);
	VALUE(12, p_ldc);
	return (cublasStatus_t)(puregpu_echo.fail ? 905 : 0);
}

cublasStatus_t cublasCherk3mEx(cublasHandle_t p_handle, cublasFillMode_t p_uplo, cublasOperation_t p_trans, int p_n, int p_k, const float *p_alpha, const void *p_A, cudaDataType p_Atype, int p_lda, const float *p_beta, void *p_C, cudaDataType p_Ctype, int p_ldc) {
	begin(348);
	VALUE(0, p_handle);
	VALUE(1, p_uplo);
	VALUE(2, p_trans);
	VALUE(3, p_n);
	VALUE(4, p_k);
	VALUE(5, p_alpha);
	MEMORY(5, p_alpha, sizeof *p_alpha);
	VALUE(6, p_A);
	VALUE(7, p_Atype);
	VALUE(8, p_lda);
	VALUE(9, p_beta);
	MEMORY(9, p_beta, sizeof *p_beta);
	VALUE(10, p_C);
	VALUE(11, p_Ctype);
	VALUE(12, p_ldc);
	return (cublasStatus_t)(puregpu_echo.fail ? 971 : 0);
}

cublasStatus_t cublasCherk3mEx_64(cublasHandle_t p_handle, cublasFillMode_t p_uplo, cublasOperation_t p_trans, int64_t p_n, int64_t p_k, const float *p_alpha, const void *p_A, cudaDataType p_Atype, int64_t p_lda, const float *p_beta, void *p_C, cudaDataType p_Ctype, int64_t p_ldc) {
	begin(349);
	VALUE(0, p_handle);
	VALUE(1, p_uplo);
	VALUE(2, p_trans);
	VALUE(3, p_n);
	VALUE(4, p_k);
	VALUE(5, p_alpha);
	MEMORY(5, p_alpha, sizeof *p_alpha);
	VALUE(6, p_A);
	VALUE(7, p_Atype);
	VALUE(8, p_lda);
	VALUE(9, p_beta);
	MEMORY(9, p_beta, sizeof *p_beta);
	VALUE(10, p_C);
	VALUE(11, p_Ctype);
	VALUE(12, p_ldc);
	return (cublasStatus_t)(puregpu_echo.fail ? 964 : 0);
}

cublasStatus_t cublasSsyr2k_v2(cublasHandle_t p_handle, cublasFillMode_t p_uplo, cublasOperation_t p_trans, int p_n, int p_k, const float *p_alpha, const float *p_A, int p_lda, const float *p_B, int p_ldb, const float *p_beta, float *p_C, int p_ldc) {
	begin(350);
	VALUE(0, p_handle);
	VALUE(1, p_uplo);
	VALUE(2, p_trans);
	VALUE(3, p_n);
	VALUE(4, p_k);
	VALUE(5, p_alpha);
	MEMORY(5, p_alpha, sizeof *p_alpha);
	VALUE(6, p_A);
	VALUE(7, p_lda);
	VALUE(8, p_B);
	VALUE(9, p_ldb);
	VALUE(10, p_beta);
	MEMORY(10, p_beta, sizeof *p_beta);
	VALUE(11, p_C);
	VALUE(12, p_ldc);
	return (cublasStatus_t)(puregpu_echo.fail ? 978 : 0);
}

cublasStatus_t cublasSsyr2k_v2_64(cublasHandle_t p_handle, cublasFillMode_t p_uplo, cublasOperation_t p_trans, int64_t p_n, int64_t p_k, const float *p_alpha, const float *p_A, int64_t p_lda, const float *p_B, int64_t p_ldb, const float *p_beta, float *p_C, int64_t p_ldc) {
	begin(351);
	VALUE(0, p_handle);
	VALUE(1, p_uplo);
	VALUE(2, p_trans);
	VALUE(3, p_n);
	VALUE(4, p_k);
	VALUE(5, p_alpha);
	MEMORY(5, p_alpha, sizeof *p_alpha);
	VALUE(6, p_A);
	VALUE(7, p_lda);
	VALUE(8, p_B);
	VALUE(9, p_ldb);
	VALUE(10, p_beta);
	MEMORY(10, p_beta, sizeof *p_beta);
	VALUE(11, p_C);
	VALUE(12, p_ldc);
	return (cublasStatus_t)(puregpu_echo.fail ? 977 : 0);
}

cublasStatus_t cublasDsyr2k_v2(cublasHandle_t p_handle, cublasFillMode_t p_uplo, cublasOperation_t p_trans, int p_n, int p_k, const double *p_alpha, const double *p_A, int p_lda, const double *p_B, int p_ldb, const double *p_beta, double *p_C, int p_ldc) {
	begin(352);
	VALUE(0, p_handle);
	VALUE(1, p_uplo);
	VALUE(2, p_trans);
	VALUE(3, p_n);
	VALUE(4, p_k);
	VALUE(5, p_alpha);
	MEMORY(5, p_alpha, sizeof *p_alpha);
	VALUE(6, p_A);
	VALUE(7, p_lda);
	VALUE(8, p_B);
	VALUE(9, p_ldb);
	VALUE(10, p_beta);
	MEMORY(10, p_beta, sizeof *p_beta);
	VALUE(11, p_C);
	VALUE(12, p_ldc);
	return (cublasStatus_t)(puregpu_echo.fail ? 961 : 0);
}

cublasStatus_t cublasDsyr2k_v2_64(cublasHandle_t p_handle, cublasFillMode_t p_uplo, cublasOperation_t p_trans, int64_t p_n, int64_t p_k, const double *p_alpha, const double *p_A, int64_t p_lda, const double *p_B, int64_t p_ldb, const double *p_beta, double *p_C, int64_t p_ldc) {
	begin(353);
	VALUE(0, p_handle);
	VALUE(1, p_uplo);
	VALUE(2, p_trans);
	VALUE(3, p_n);
	VALUE(4, p_k);
	VALUE(5, p_alpha);
	MEMORY(5, p_alpha, sizeof *p_alpha);
	VALUE(6, p_A);
	VALUE(7, p_lda);
	VALUE(8, p_B);
	VALUE(9, p_ldb);
	VALUE(10, p_beta);
	MEMORY(10, p_beta, sizeof *p_beta);
	VALUE(11, p_C);
	VALUE(12, p_ldc);
	return (cublasStatus_t)(puregpu_echo.fail ? 908 : 0);
}

cublasStatus_t cublasCsyr2k_v2(cublasHandle_t p_handle, cublasFillMode_t p_uplo, cublasOperation_t p_trans, int p_n, int p_k, const cuComplex *p_alpha, const cuComplex *p_A, int p_lda, const cuComplex *p_B, int p_ldb, const cuComplex *p_beta, cuComplex *p_C, int p_ldc) {
	begin(354);
	VALUE(0, p_handle);
	VALUE(1, p_uplo);
	VALUE(2, p_trans);
	VALUE(3, p_n);
	VALUE(4, p_k);
	VALUE(5, p_alpha);
	MEMORY(5, p_alpha, sizeof *p_alpha);
	VALUE(6, p_A);
	VALUE(7, p_lda);
	VALUE(8, p_B);
	VALUE(9, p_ldb);
	VALUE(10, p_beta);
	MEMORY(10, p_beta, sizeof *p_beta);
	VALUE(11, p_C);
	VALUE(12, p_ldc);
	return (cublasStatus_t)(puregpu_echo.fail ? 983 : 0);
}

cublasStatus_t cublasCsyr2k_v2_64(cublasHandle_t p_handle, cublasFillMode_t p_uplo, cublasOperation_t p_trans, int64_t p_n, int64_t p_k, const cuComplex *p_alpha, const cuComplex *p_A, int64_t p_lda, const cuComplex *p_B, int64_t p_ldb, const cuComplex *p_beta, cuComplex *p_C, int64_t p_ldc) {
	begin(355);
	VALUE(0, p_handle);
	VALUE(1, p_uplo);
	VALUE(2, p_trans);
	VALUE(3, p_n);
	VALUE(4, p_k);
	VALUE(5, p_alpha);
	MEMORY(5, p_alpha, sizeof *p_alpha);
	VALUE(6, p_A);
	VALUE(7, p_lda);
	VALUE(8, p_B);
	VALUE(9, p_ldb);
	VALUE(10, p_beta);
	MEMORY(10, p_beta, sizeof *p_beta);
	VALUE(11, p_C);
	VALUE(12, p_ldc);
	return (cublasStatus_t)(puregpu_echo.fail ? 912 : 0);
}

cublasStatus_t cublasZsyr2k_v2(cublasHandle_t p_handle, cublasFillMode_t p_uplo, cublasOperation_t p_trans, int p_n, int p_k, const cuDoubleComplex *p_alpha, const cuDoubleComplex *p_A, int p_lda, const cuDoubleComplex *p_B, int p_ldb, const cuDoubleComplex *p_beta, cuDoubleComplex *p_C, int p_ldc) {
	begin(356);
	VALUE(0, p_handle);
	VALUE(1, p_uplo);
	VALUE(2, p_trans);
	VALUE(3, p_n);
	VALUE(4, p_k);
	VALUE(5, p_alpha);
	MEMORY(5, p_alpha, sizeof *p_alpha);
	VALUE(6, p_A);
	VALUE(7, p_lda);
	VALUE(8, p_B);
	VALUE(9, p_ldb);
	VALUE(10, p_beta);
	MEMORY(10, p_beta, sizeof *p_beta);
	VALUE(11, p_C);
	VALUE(12, p_ldc);
	return (cublasStatus_t)(puregpu_echo.fail ? 956 : 0);
}

cublasStatus_t cublasZsyr2k_v2_64(cublasHandle_t p_handle, cublasFillMode_t p_uplo, cublasOperation_t p_trans, int64_t p_n, int64_t p_k, const cuDoubleComplex *p_alpha, const cuDoubleComplex *p_A, int64_t p_lda, const cuDoubleComplex *p_B, int64_t p_ldb, const cuDoubleComplex *p_beta, cuDoubleComplex *p_C, int64_t p_ldc) {
	begin(357);
	VALUE(0, p_handle);
	VALUE(1, p_uplo);
	VALUE(2, p_trans);
	VALUE(3, p_n);
	VALUE(4, p_k);
	VALUE(5, p_alpha);
	MEMORY(5, p_alpha, sizeof *p_alpha);
	VALUE(6, p_A);
	VALUE(7, p_lda);
	VALUE(8, p_B);
	VALUE(9, p_ldb);
	VALUE(10, p_beta);
	MEMORY(10, p_beta, sizeof *p_beta);
	VALUE(11, p_C);
	VALUE(12, p_ldc);
	return (cublasStatus_t)(puregpu_echo.fail ? 926 : 0);
}

cublasStatus_t cublasCher2k_v2(cublasHandle_t p_handle, cublasFillMode_t p_uplo, cublasOperation_t p_trans, int p_n, int p_k, const cuComplex *p_alpha, const cuComplex *p_A, int p_lda, const cuComplex *p_B, int p_ldb, const float *p_beta, cuComplex *p_C, int p_ldc) {
	begin(358);
	VALUE(0, p_handle);
	VALUE(1, p_uplo);
	VALUE(2, p_trans);
	VALUE(3, p_n);
	VALUE(4, p_k);
	VALUE(5, p_alpha);
	MEMORY(5, p_alpha, sizeof *p_alpha);
	VALUE(6, p_A);
	VALUE(7, p_lda);
	VALUE(8, p_B);
	VALUE(9, p_ldb);
	VALUE(10, p_beta);
	MEMORY(10, p_beta, sizeof *p_beta);
	VALUE(11, p_C);
	VALUE(12, p_ldc);
	return (cublasStatus_t)(puregpu_echo.fail ? 915 : 0);
}

cublasStatus_t cublasCher2k_v2_64(cublasHandle_t p_handle, cublasFillMode_t p_uplo, cublasOperation_t p_trans, int64_t p_n, int64_t p_k, const cuComplex *p_alpha, const cuComplex *p_A, int64_t p_lda, const cuComplex *p_B, int64_t p_ldb, const float *p_beta, cuComplex *p_C, int64_t p_ldc) {
	begin(359);
	VALUE(0, p_handle);
	VALUE(1, p_uplo);
	VALUE(2, p_trans);
	VALUE(3, p_n);
	VALUE(4, p_k);
	VALUE(5, p_alpha);
	MEMORY(5, p_alpha, sizeof *p_alpha);
	VALUE(6, p_A);
	VALUE(7, p_lda);
	VALUE(8, p_B);
	VALUE(9, p_ldb);
	VALUE(10, p_beta);
	MEMORY(10, p_beta, sizeof *p_beta);
	VALUE(11, p_C);
	VALUE(12, p_ldc);
	return (cublasStatus_t)(puregpu_echo.fail ? 964 : 0);
}

cublasStatus_t cublasZher2k_v2(cublasHandle_t p_handle, cublasFillMode_t p_uplo, cublasOperation_t p_trans, int p_n, int p_k, const cuDoubleComplex *p_alpha, const cuDoubleComplex *p_A, int p_lda, const cuDoubleComplex *p_B, int p_ldb, const double *p_beta, cuDoubleComplex *p_C, int p_ldc) {
	begin(360);
	VALUE(0, p_handle);
	VALUE(1, p_uplo);
	VALUE(2, p_trans);
	VALUE(3, p_n);
	VALUE(4, p_k);
	VALUE(5, p_alpha);
	MEMORY(5, p_alpha, sizeof *p_alpha);
	VALUE(6, p_A);
	VALUE(7, p_lda);
	VALUE(8, p_B);
	VALUE(9, p_ldb);
	VALUE(10, p_beta);
	MEMORY(10, p_beta, sizeof *p_beta);
	VALUE(11, p_C);
	VALUE(12, p_ldc);
	return (cublasStatus_t)(puregpu_echo.fail ? 956 : 0);
}

cublasStatus_t cublasZher2k_v2_64(cublasHandle_t p_handle, cublasFillMode_t p_uplo, cublasOperation_t p_trans, int64_t p_n, int64_t p_k, const cuDoubleComplex *p_alpha, const cuDoubleComplex *p_A, int64_t p_lda, const cuDoubleComplex *p_B, int64_t p_ldb, const double *p_beta, cuDoubleComplex *p_C, int64_t p_ldc) {
	begin(361);
	VALUE(0, p_handle);
	VALUE(1, p_uplo);
	VALUE(2, p_trans);
	VALUE(3, p_n);
	VALUE(4, p_k);
	VALUE(5, p_alpha);
	MEMORY(5, p_alpha, sizeof *p_alpha);
	VALUE(6, p_A);
	VALUE(7, p_lda);
	VALUE(8, p_B);
	VALUE(9, p_ldb);
	VALUE(10, p_beta);
	MEMORY(10, p_beta, sizeof *p_beta);
	VALUE(11, p_C);
	VALUE(12, p_ldc);
	return (cublasStatus_t)(puregpu_echo.fail ? 959 : 0);
}

cublasStatus_t cublasSsyrkx(cublasHandle_t p_handle, cublasFillMode_t p_uplo, cublasOperation_t p_trans, int p_n, int p_k, const float *p_alpha, const float *p_A, int p_lda, const float *p_B, int p_ldb, const float *p_beta, float *p_C, int p_ldc) {
	begin(362);
	VALUE(0, p_handle);
	VALUE(1, p_uplo);
	VALUE(2, p_trans);
	VALUE(3, p_n);
	VALUE(4, p_k);
	VALUE(5, p_alpha);
	MEMORY(5, p_alpha, sizeof *p_alpha);
	VALUE(6, p_A);
	VALUE(7, p_lda);
	VALUE(8, p_B);
	VALUE(9, p_ldb);
	VALUE(10, p_beta);
	MEMORY(10, p_beta, sizeof *p_beta);
	VALUE(11, p_C);
	VALUE(12, p_ldc);
	return (cublasStatus_t)(puregpu_echo.fail ? 973 : 0);
}

cublasStatus_t cublasSsyrkx_64(cublasHandle_t p_handle, cublasFillMode_t p_uplo, cublasOperation_t p_trans, int64_t p_n, int64_t p_k, const float *p_alpha, const float *p_A, int64_t p_lda, const float *p_B, int64_t p_ldb, const float *p_beta, float *p_C, int64_t p_ldc) {
	begin(363);
	VALUE(0, p_handle);
	VALUE(1, p_uplo);
	VALUE(2, p_trans);
	VALUE(3, p_n);
	VALUE(4, p_k);
	VALUE(5, p_alpha);
	MEMORY(5, p_alpha, sizeof *p_alpha);
	VALUE(6, p_A);
	VALUE(7, p_lda);
	VALUE(8, p_B);
	VALUE(9, p_ldb);
	VALUE(10, p_beta);
	MEMORY(10, p_beta, sizeof *p_beta);
	VALUE(11, p_C);
	VALUE(12, p_ldc);
	return (cublasStatus_t)(puregpu_echo.fail ? 967 : 0);
}

cublasStatus_t cublasDsyrkx(cublasHandle_t p_handle, cublasFillMode_t p_uplo, cublasOperation_t p_trans, int p_n, int p_k, const double *p_alpha, const double *p_A, int p_lda, const double *p_B, int p_ldb, const double *p_beta, double *p_C, int p_ldc) {
	begin(364);
	VALUE(0, p_handle);
	VALUE(1, p_uplo);
	VALUE(2, p_trans);
	VALUE(3, p_n);
	VALUE(4, p_k);
	VALUE(5, p_alpha);
	MEMORY(5, p_alpha, sizeof *p_alpha);
	VALUE(6, p_A);
	VALUE(7, p_lda);
	VALUE(8, p_B);
	VALUE(9, p_ldb);
	VALUE(10, p_beta);
	MEMORY(10, p_beta, sizeof *p_beta);
	VALUE(11, p_C);
	VALUE(12, p_ldc);
	return (cublasStatus_t)(puregpu_echo.fail ? 914 : 0);
}

cublasStatus_t cublasDsyrkx_64(cublasHandle_t p_handle, cublasFillMode_t p_uplo, cublasOperation_t p_trans, int64_t p_n, int64_t p_k, const double *p_alpha, const double *p_A, int64_t p_lda, const double *p_B, int64_t p_ldb, const double *p_beta, double *p_C, int64_t p_ldc) {
	begin(365);
	VALUE(0, p_handle);
	VALUE(1, p_uplo);
	VALUE(2, p_trans);
	VALUE(3, p_n);
	VALUE(4, p_k);
	VALUE(5, p_alpha);
	MEMORY(5, p_alpha, sizeof *p_alpha);
	VALUE(6, p_A);
	VALUE(7, p_lda);
	VALUE(8, p_B);
	VALUE(9, p_ldb);
	VALUE(10, p_beta);
	MEMORY(10, p_beta, sizeof *p_beta);
	VALUE(11, p_C);
	VALUE(12, p_ldc);
	return (cublasStatus_t)(puregpu_echo.fail ? 909 : 0);
}

cublasStatus_t cublasCsyrkx(cublasHandle_t p_handle, cublasFillMode_t p_uplo, cublasOperation_t p_trans, int p_n, int p_k, const cuComplex *p_alpha, const cuComplex *p_A, int p_lda, const cuComplex *p_B, int p_ldb, const cuComplex *p_beta, cuComplex *p_C, int p_ldc) {
	begin(366);
	VALUE(0, p_handle);
	VALUE(1, p_uplo);
	VALUE(2, p_trans);
	VALUE(3, p_n);
	VALUE(4, p_k);
	VALUE(5, p_alpha);
	MEMORY(5, p_alpha, sizeof *p_alpha);
	VALUE(6, p_A);
	VALUE(7, p_lda);
	VALUE(8, p_B);
	VALUE(9, p_ldb);
	VALUE(10, p_beta);
	MEMORY(10, p_beta, sizeof *p_beta);
	VALUE(11, p_C);
	VALUE(12, p_ldc);
	return (cublasStatus_t)(puregpu_echo.fail ? 946 : 0);
}

cublasStatus_t cublasCsyrkx_64(cublasHandle_t p_handle, cublasFillMode_t p_uplo, cublasOperation_t p_trans, int64_t p_n, int64_t p_k, const cuComplex *p_alpha, const cuComplex *p_A, int64_t p_lda, const cuComplex *p_B, int64_t p_ldb, const cuComplex *p_beta, cuComplex *p_C, int64_t p_ldc) {
	begin(367);
	VALUE(0, p_handle);
	VALUE(1, p_uplo);
	VALUE(2, p_trans);
	VALUE(3, p_n);
	VALUE(4, p_k);
	VALUE(5, p_alpha);
	MEMORY(5, p_alpha, sizeof *p_alpha);
	VALUE(6, p_A);
	VALUE(7, p_lda);
	VALUE(8, p_B);
	VALUE(9, p_ldb);
	VALUE(10, p_beta);
	MEMORY(10, p_beta, sizeof *p_beta);
	VALUE(11, p_C);
	VALUE(12, p_ldc);
	return (cublasStatus_t)(puregpu_echo.fail ? 954 : 0);
}

cublasStatus_t cublasZsyrkx(cublasHandle_t p_handle, cublasFillMode_t p_uplo, cublasOperation_t p_trans, int p_n, int p_k, const cuDoubleComplex *p_alpha, const cuDoubleComplex *p_A, int p_lda, const cuDoubleComplex *p_B, int p_ldb, const cuDoubleComplex *p_beta, cuDoubleComplex *p_C, int p_ldc) {
	begin(368);
	VALUE(0, p_handle);
	VALUE(1, p_uplo);
	VALUE(2, p_trans);
	VALUE(3, p_n);
	VALUE(4, p_k);
	VALUE(5, p_alpha);
	MEMORY(5, p_alpha, sizeof *p_alpha);
	VALUE(6, p_A);
	VALUE(7, p_lda);
	VALUE(8, p_B);
	VALUE(9, p_ldb);
	VALUE(10, p_beta);
	MEMORY(10, p_beta, sizeof *p_beta);
	VALUE(11, p_C);
	VALUE(12, p_ldc);
	return (cublasStatus_t)(puregpu_echo.fail ? 919 : 0);
}

cublasStatus_t cublasZsyrkx_64(cublasHandle_t p_handle, cublasFillMode_t p_uplo, cublasOperation_t p_trans, int64_t p_n, int64_t p_k, const cuDoubleComplex *p_alpha, const cuDoubleComplex *p_A, int64_t p_lda, const cuDoubleComplex *p_B, int64_t p_ldb, const cuDoubleComplex *p_beta, cuDoubleComplex *p_C, int64_t p_ldc) {
	begin(369);
	VALUE(0, p_handle);
	VALUE(1, p_uplo);
	VALUE(2, p_trans);
	VALUE(3, p_n);
	VALUE(4, p_k);
	VALUE(5, p_alpha);
	MEMORY(5, p_alpha, sizeof *p_alpha);
	VALUE(6, p_A);
	VALUE(7, p_lda);
	VALUE(8, p_B);
	VALUE(9, p_ldb);
	VALUE(10, p_beta);
	MEMORY(10, p_beta, sizeof *p_beta);
	VALUE(11, p_C);
	VALUE(12, p_ldc);
	return (cublasStatus_t)(puregpu_echo.fail ? 985 : 0);
}

cublasStatus_t cublasCherkx(cublasHandle_t p_handle, cublasFillMode_t p_uplo, cublasOperation_t p_trans, int p_n, int p_k, const cuComplex *p_alpha, const cuComplex *p_A, int p_lda, const cuComplex *p_B, int p_ldb, const float *p_beta, cuComplex *p_C, int p_ldc) {
	begin(370);
	VALUE(0, p_handle);
	VALUE(1, p_uplo);
	VALUE(2, p_trans);
	VALUE(3, p_n);
	VALUE(4, p_k);
	VALUE(5, p_alpha);
	MEMORY(5, p_alpha, sizeof *p_alpha);
	VALUE(6, p_A);
	VALUE(7, p_lda);
	VALUE(8, p_B);
	VALUE(9, p_ldb);
	VALUE(10, p_beta);
	MEMORY(10, p_beta, sizeof *p_beta);
	VALUE(11, p_C);
	VALUE(12, p_ldc);
	return (cublasStatus_t)(puregpu_echo.fail ? 967 : 0);
}

cublasStatus_t cublasCherkx_64(cublasHandle_t p_handle, cublasFillMode_t p_uplo, cublasOperation_t p_trans, int64_t p_n, int64_t p_k, const cuComplex *p_alpha, const cuComplex *p_A, int64_t p_lda, const cuComplex *p_B, int64_t p_ldb, const float *p_beta, cuComplex *p_C, int64_t p_ldc) {
	begin(371);
	VALUE(0, p_handle);
	VALUE(1, p_uplo);
	VALUE(2, p_trans);
	VALUE(3, p_n);
	VALUE(4, p_k);
	VALUE(5, p_alpha);
	MEMORY(5, p_alpha, sizeof *p_alpha);
	VALUE(6, p_A);
	VALUE(7, p_lda);
	VALUE(8, p_B);
	VALUE(9, p_ldb);
	VALUE(10, p_beta);
	MEMORY(10, p_beta, sizeof *p_beta);
	VALUE(11, p_C);
	VALUE(12, p_ldc);
	return (cublasStatus_t)(puregpu_echo.fail ? 982 : 0);
}

cublasStatus_t cublasZherkx(cublasHandle_t p_handle, cublasFillMode_t p_uplo, cublasOperation_t p_trans, int p_n, int p_k, const cuDoubleComplex *p_alpha, const cuDoubleComplex *p_A, int p_lda, const cuDoubleComplex *p_B, int p_ldb, const double *p_beta, cuDoubleComplex *p_C, int p_ldc) {
	begin(372);
	VALUE(0, p_handle);
	VALUE(1, p_uplo);
	VALUE(2, p_trans);
	VALUE(3, p_n);
	VALUE(4, p_k);
	VALUE(5, p_alpha);
	MEMORY(5, p_alpha, sizeof *p_alpha);
	VALUE(6, p_A);
	VALUE(7, p_lda);
	VALUE(8, p_B);
	VALUE(9, p_ldb);
	VALUE(10, p_beta);
	MEMORY(10, p_beta, sizeof *p_beta);
	VALUE(11, p_C);
	VALUE(12, p_ldc);
	return (cublasStatus_t)(puregpu_echo.fail ? 937 : 0);
}

cublasStatus_t cublasZherkx_64(cublasHandle_t p_handle, cublasFillMode_t p_uplo, cublasOperation_t p_trans, int64_t p_n, int64_t p_k, const cuDoubleComplex *p_alpha, const cuDoubleComplex *p_A, int64_t p_lda, const cuDoubleComplex *p_B, int64_t p_ldb, const double *p_beta, cuDoubleComplex *p_C, int64_t p_ldc) {
	begin(373);
	VALUE(0, p_handle);
	VALUE(1, p_uplo);
	VALUE(2, p_trans);
	VALUE(3, p_n);
	VALUE(4, p_k);
	VALUE(5, p_alpha);
	MEMORY(5, p_alpha, sizeof *p_alpha);
	VALUE(6, p_A);
	VALUE(7, p_lda);
	VALUE(8, p_B);
	VALUE(9, p_ldb);
	VALUE(10, p_beta);
	MEMORY(10, p_beta, sizeof *p_beta);
	VALUE(11, p_C);
	VALUE(12, p_ldc);
	return (cublasStatus_t)(puregpu_echo.fail ? 972 : 0);
}

cublasStatus_t cublasSsymm_v2(cublasHandle_t p_handle, cublasSideMode_t p_side, cublasFillMode_t p_uplo, int p_m, int p_n, const float *p_alpha, const float *p_A, int p_lda, const float *p_B, int p_ldb, const float *p_beta, float *p_C, int p_ldc) {
	begin(374);
	VALUE(0, p_handle);
	VALUE(1, p_side);
	VALUE(2, p_uplo);
	VALUE(3, p_m);
	VALUE(4, p_n);
	VALUE(5, p_alpha);
	MEMORY(5, p_alpha, sizeof *p_alpha);
	VALUE(6, p_A);
	VALUE(7, p_lda);
	VALUE(8, p_B);
	VALUE(9, p_ldb);
	VALUE(10, p_beta);
	MEMORY(10, p_beta, sizeof *p_beta);
	VALUE(11, p_C);
	VALUE(12, p_ldc);
	return (cublasStatus_t)(puregpu_echo.fail ? 933 : 0);
}

cublasStatus_t cublasSsymm_v2_64(cublasHandle_t p_handle, cublasSideMode_t p_side, cublasFillMode_t p_uplo, int64_t p_m, int64_t p_n, const float *p_alpha, const float *p_A, int64_t p_lda, const float *p_B, int64_t p_ldb, const float *p_beta, float *p_C, int64_t p_ldc) {
	begin(375);
	VALUE(0, p_handle);
	VALUE(1, p_side);
	VALUE(2, p_uplo);
	VALUE(3, p_m);
	VALUE(4, p_n);
	VALUE(5, p_alpha);
	MEMORY(5, p_alpha, sizeof *p_alpha);
	VALUE(6, p_A);
	VALUE(7, p_lda);
	VALUE(8, p_B);
	VALUE(9, p_ldb);
	VALUE(10, p_beta);
	MEMORY(10, p_beta, sizeof *p_beta);
	VALUE(11, p_C);
	VALUE(12, p_ldc);
	return (cublasStatus_t)(puregpu_echo.fail ? 946 : 0);
}

cublasStatus_t cublasDsymm_v2(cublasHandle_t p_handle, cublasSideMode_t p_side, cublasFillMode_t p_uplo, int p_m, int p_n, const double *p_alpha, const double *p_A, int p_lda, const double *p_B, int p_ldb, const double *p_beta, double *p_C, int p_ldc) {
	begin(376);
	VALUE(0, p_handle);
	VALUE(1, p_side);
	VALUE(2, p_uplo);
	VALUE(3, p_m);
	VALUE(4, p_n);
	VALUE(5, p_alpha);
	MEMORY(5, p_alpha, sizeof *p_alpha);
	VALUE(6, p_A);
	VALUE(7, p_lda);
	VALUE(8, p_B);
	VALUE(9, p_ldb);
	VALUE(10, p_beta);
	MEMORY(10, p_beta, sizeof *p_beta);
	VALUE(11, p_C);
	VALUE(12, p_ldc);
	return (cublasStatus_t)(puregpu_echo.fail ? 956 : 0);
}

cublasStatus_t cublasDsymm_v2_64(cublasHandle_t p_handle, cublasSideMode_t p_side, cublasFillMode_t p_uplo, int64_t p_m, int64_t p_n, const double *p_alpha, const double *p_A, int64_t p_lda, const double *p_B, int64_t p_ldb, const double *p_beta, double *p_C, int64_t p_ldc) {
	begin(377);
	VALUE(0, p_handle);
	VALUE(1, p_side);
	VALUE(2, p_uplo);
	VALUE(3, p_m);
	VALUE(4, p_n);
	VALUE(5, p_alpha);
	MEMORY(5, p_alpha, sizeof *p_alpha);
	VALUE(6, p_A);
	VALUE(7, p_lda);
	VALUE(8, p_B);
	VALUE(9, p_ldb);
	VALUE(10, p_beta);
	MEMORY(10, p_beta, sizeof *p_beta);
	VALUE(11, p_C);
	VALUE(12, p_ldc);
	return (cublasStatus_t)(puregpu_echo.fail ? 940 : 0);
}

cublasStatus_t cublasCsymm_v2(cublasHandle_t p_handle, cublasSideMode_t p_side, cublasFillMode_t p_uplo, int p_m, int p_n, const cuComplex *p_alpha, const cuComplex *p_A, int p_lda, const cuComplex *p_B, int p_ldb, const cuComplex *p_beta, cuComplex *p_C, int p_ldc) {
	begin(378);
	VALUE(0, p_handle);
	VALUE(1, p_side);
	VALUE(2, p_uplo);
	VALUE(3, p_m);
	VALUE(4, p_n);
	VALUE(5, p_alpha);
	MEMORY(5, p_alpha, sizeof *p_alpha);
	VALUE(6, p_A);
	VALUE(7, p_lda);
	VALUE(8, p_B);
	VALUE(9, p_ldb);
	VALUE(10, p_beta);
	MEMORY(10, p_beta, sizeof *p_beta);
	VALUE(11, p_C);
	VALUE(12, p_ldc);
	return (cublasStatus_t)(puregpu_echo.fail ? 930 : 0);
}

cublasStatus_t cublasCsymm_v2_64(cublasHandle_t p_handle, cublasSideMode_t p_side, cublasFillMode_t p_uplo, int64_t p_m, int64_t p_n, const cuComplex *p_alpha, const cuComplex *p_A, int64_t p_lda, const cuComplex *p_B, int64_t p_ldb, const cuComplex *p_beta, cuComplex *p_C, int64_t p_ldc) {
	begin(379);
	VALUE(0, p_handle);
	VALUE(1, p_side);
	VALUE(2, p_uplo);
	VALUE(3, p_m);
	VALUE(4, p_n);
	VALUE(5, p_alpha);
	MEMORY(5, p_alpha, sizeof *p_alpha);
	VALUE(6, p_A);
	VALUE(7, p_lda);
	VALUE(8, p_B);
	VALUE(9, p_ldb);
	VALUE(10, p_beta);
	MEMORY(10, p_beta, sizeof *p_beta);
	VALUE(11, p_C);
	VALUE(12, p_ldc);
	return (cublasStatus_t)(puregpu_echo.fail ? 964 : 0);
}

cublasStatus_t cublasZsymm_v2(cublasHandle_t p_handle, cublasSideMode_t p_side, cublasFillMode_t p_uplo, int p_m, int p_n, const cuDoubleComplex *p_alpha, const cuDoubleComplex *p_A, int p_lda, const cuDoubleComplex *p_B, int p_ldb, const cuDoubleComplex *p_beta, cuDoubleComplex *p_C, int p_ldc) {
	begin(380);
	VALUE(0, p_handle);
	VALUE(1, p_side);
	VALUE(2, p_uplo);
	VALUE(3, p_m);
	VALUE(4, p_n);
	VALUE(5, p_alpha);
	MEMORY(5, p_alpha, sizeof *p_alpha);
	VALUE(6, p_A);
	VALUE(7, p_lda);
	VALUE(8, p_B);
	VALUE(9, p_ldb);
	VALUE(10, p_beta);
	MEMORY(10, p_beta, sizeof *p_beta);
	VALUE(11, p_C);
	VALUE(12, p_ldc);
	return (cublasStatus_t)(puregpu_echo.fail ? 935 : 0);
}

cublasStatus_t cublasZsymm_v2_64(cublasHandle_t p_handle, cublasSideMode_t p_side, cublasFillMode_t p_uplo, int64_t p_m, int64_t p_n, const cuDoubleComplex *p_alpha, const cuDoubleComplex *p_A, int64_t p_lda, const cuDoubleComplex *p_B, int64_t p_ldb, const cuDoubleComplex *p_beta, cuDoubleComplex *p_C, int64_t p_ldc) {
	begin(381);
	VALUE(0, p_handle);
	VALUE(1, p_side);
	VALUE(2, p_uplo);
	VALUE(3, p_m);
	VALUE(4, p_n);
	VALUE(5, p_alpha);
	MEMORY(5, p_alpha, sizeof *p_alpha);
	VALUE(6, p_A);
	VALUE(7, p_lda);
	VALUE(8, p_B);
	VALUE(9, p_ldb);
	VALUE(10, p_beta);
	MEMORY(10, p_beta, sizeof *p_beta);
	VALUE(11, p_C);
	VALUE(12, p_ldc);
	return (cublasStatus_t)(puregpu_echo.fail ? 919 : 0);
}

cublasStatus_t cublasChemm_v2(cublasHandle_t p_handle, cublasSideMode_t p_side, cublasFillMode_t p_uplo, int p_m, int p_n, const cuComplex *p_alpha, const cuComplex *p_A, int p_lda, const cuComplex *p_B, int p_ldb, const cuComplex *p_beta, cuComplex *p_C, int p_ldc) {
	begin(382);
	VALUE(0, p_handle);
	VALUE(1, p_side);
	VALUE(2, p_uplo);
	VALUE(3, p_m);
	VALUE(4, p_n);
	VALUE(5, p_alpha);
	MEMORY(5, p_alpha, sizeof *p_alpha);
	VALUE(6, p_A);
	VALUE(7, p_lda);
	VALUE(8, p_B);
	VALUE(9, p_ldb);
	VALUE(10, p_beta);
	MEMORY(10, p_beta, sizeof *p_beta);
	VALUE(11, p_C);
	VALUE(12, p_ldc);
	return (cublasStatus_t)(puregpu_echo.fail ? 977 : 0);
}

cublasStatus_t cublasChemm_v2_64(cublasHandle_t p_handle, cublasSideMode_t p_side, cublasFillMode_t p_uplo, int64_t p_m, int64_t p_n, const cuComplex *p_alpha, const cuComplex *p_A, int64_t p_lda, const cuComplex *p_B, int64_t p_ldb, const cuComplex *p_beta, cuComplex *p_C, int64_t p_ldc) {
	begin(383);
	VALUE(0, p_handle);
	VALUE(1, p_side);
	VALUE(2, p_uplo);
	VALUE(3, p_m);
	VALUE(4, p_n);
	VALUE(5, p_alpha);
	MEMORY(5, p_alpha, sizeof *p_alpha);
	VALUE(6, p_A);
	VALUE(7, p_lda);
	VALUE(8, p_B);
	VALUE(9, p_ldb);
	VALUE(10, p_beta);
	MEMORY(10, p_beta, sizeof *p_beta);
	VALUE(11, p_C);
	VALUE(12, p_ldc);
	return (cublasStatus_t)(puregpu_echo.fail ? 965 : 0);
}

cublasStatus_t cublasZhemm_v2(cublasHandle_t p_handle, cublasSideMode_t p_side, cublasFillMode_t p_uplo, int p_m, int p_n, const cuDoubleComplex *p_alpha, const cuDoubleComplex *p_A, int p_lda, const cuDoubleComplex *p_B, int p_ldb, const cuDoubleComplex *p_beta, cuDoubleComplex *p_C, int p_ldc) {
	begin(384);
	VALUE(0, p_handle);
	VALUE(1, p_side);
	VALUE(2, p_uplo);
	VALUE(3, p_m);
	VALUE(4, p_n);
	VALUE(5, p_alpha);
	MEMORY(5, p_alpha, sizeof *p_alpha);
	VALUE(6, p_A);
	VALUE(7, p_lda);
	VALUE(8, p_B);
	VALUE(9, p_ldb);
	VALUE(10, p_beta);
	MEMORY(10, p_beta, sizeof *p_beta);
	VALUE(11, p_C);
	VALUE(12, p_ldc);
	return (cublasStatus_t)(puregpu_echo.fail ? 928 : 0);
}

cublasStatus_t cublasZhemm_v2_64(cublasHandle_t p_handle, cublasSideMode_t p_side, cublasFillMode_t p_uplo, int64_t p_m, int64_t p_n, const cuDoubleComplex *p_alpha, const cuDoubleComplex *p_A, int64_t p_lda, const cuDoubleComplex *p_B, int64_t p_ldb, const cuDoubleComplex *p_beta, cuDoubleComplex *p_C, int64_t p_ldc) {
	begin(385);
	VALUE(0, p_handle);
	VALUE(1, p_side);
	VALUE(2, p_uplo);
	VALUE(3, p_m);
	VALUE(4, p_n);
	VALUE(5, p_alpha);
	MEMORY(5, p_alpha, sizeof *p_alpha);
	VALUE(6, p_A);
	VALUE(7, p_lda);
	VALUE(8, p_B);
	VALUE(9, p_ldb);
	VALUE(10, p_beta);
	MEMORY(10, p_beta, sizeof *p_beta);
	VALUE(11, p_C);
	VALUE(12, p_ldc);
	return (cublasStatus_t)(puregpu_echo.fail ? 950 : 0);
}

cublasStatus_t cublasStrsm_v2(cublasHandle_t p_handle, cublasSideMode_t p_side, cublasFillMode_t p_uplo, cublasOperation_t p_trans, cublasDiagType_t p_diag, int p_m, int p_n, const float *p_alpha, const float *p_A, int p_lda, float *p_B, int p_ldb) {
	begin(386);
	VALUE(0, p_handle);
	VALUE(1, p_side);
	VALUE(2, p_uplo);
	VALUE(3, p_trans);
	VALUE(4, p_diag);
	VALUE(5, p_m);
	VALUE(6, p_n);
	VALUE(7, p_alpha);
	MEMORY(7, p_alpha, sizeof *p_alpha);
	VALUE(8, p_A);
	VALUE(9, p_lda);
	VALUE(10, p_B);
	VALUE(11, p_ldb);
	return (cublasStatus_t)(puregpu_echo.fail ? 927 : 0);
}

cublasStatus_t cublasStrsm_v2_64(cublasHandle_t p_handle, cublasSideMode_t p_side, cublasFillMode_t p_uplo, cublasOperation_t p_trans, cublasDiagType_t p_diag, int64_t p_m, int64_t p_n, const float *p_alpha, const float *p_A, int64_t p_lda, float *p_B, int64_t p_ldb) {
	begin(387);
	VALUE(0, p_handle);
	VALUE(1, p_side);
	VALUE(2, p_uplo);
	VALUE(3, p_trans);
	VALUE(4, p_diag);
	VALUE(5, p_m);
	VALUE(6, p_n);
	VALUE(7, p_alpha);
	MEMORY(7, p_alpha, sizeof *p_alpha);
	VALUE(8, p_A);
	VALUE(9, p_lda);
	VALUE(10, p_B);
	VALUE(11, p_ldb);
	return (cublasStatus_t)(puregpu_echo.fail ? 926 : 0);
}

cublasStatus_t cublasDtrsm_v2(cublasHandle_t p_handle, cublasSideMode_t p_side, cublasFillMode_t p_uplo, cublasOperation_t p_trans, cublasDiagType_t p_diag, int p_m, int p_n, const double *p_alpha, const double *p_A, int p_lda, double *p_B, int p_ldb) {
	begin(388);
	VALUE(0, p_handle);
	VALUE(1, p_side);
	VALUE(2, p_uplo);
	VALUE(3, p_trans);
	VALUE(4, p_diag);
	VALUE(5, p_m);
	VALUE(6, p_n);
	VALUE(7, p_alpha);
	MEMORY(7, p_alpha, sizeof *p_alpha);
	VALUE(8, p_A);
	VALUE(9, p_lda);
	VALUE(10, p_B);
	VALUE(11, p_ldb);
	return (cublasStatus_t)(puregpu_echo.fail ? 924 : 0);
}

cublasStatus_t cublasDtrsm_v2_64(cublasHandle_t p_handle, cublasSideMode_t p_side, cublasFillMode_t p_uplo, cublasOperation_t p_trans, cublasDiagType_t p_diag, int64_t p_m, int64_t p_n, const double *p_alpha, const double *p_A, int64_t p_lda, double *p_B, int64_t p_ldb) {
	begin(389);
	VALUE(0, p_handle);
	VALUE(1, p_side);
	VALUE(2, p_uplo);
	VALUE(3, p_trans);
	VALUE(4, p_diag);
	VALUE(5, p_m);
	VALUE(6, p_n);
	VALUE(7, p_alpha);
	MEMORY(7, p_alpha, sizeof *p_alpha);
	VALUE(8, p_A);
	VALUE(9, p_lda);
	VALUE(10, p_B);
	VALUE(11, p_ldb);
	return (cublasStatus_t)(puregpu_echo.fail ? 927 : 0);
}

cublasStatus_t cublasCtrsm_v2(cublasHandle_t p_handle, cublasSideMode_t p_side, cublasFillMode_t p_uplo, cublasOperation_t p_trans, cublasDiagType_t p_diag, int p_m, int p_n, const cuComplex *p_alpha, const cuComplex *p_A, int p_lda, cuComplex *p_B, int p_ldb) {
	begin(390);
	VALUE(0, p_handle);
	VALUE(1, p_side);
	VALUE(2, p_uplo);
	VALUE(3, p_trans);
	VALUE(4, p_diag);
	VALUE(5, p_m);
	VALUE(6, p_n);
	VALUE(7, p_alpha);
	MEMORY(7, p_alpha, sizeof *p_alpha);
	VALUE(8, p_A);
	VALUE(9, p_lda);
	VALUE(10, p_B);
	VALUE(11, p_ldb);
	return (cublasStatus_t)(puregpu_echo.fail ? 920 : 0);
}

cublasStatus_t cublasCtrsm_v2_64(cublasHandle_t p_handle, cublasSideMode_t p_side, cublasFillMode_t p_uplo, cublasOperation_t p_trans, cublasDiagType_t p_diag, int64_t p_m, int64_t p_n, const cuComplex *p_alpha, const cuComplex *p_A, int64_t p_lda, cuComplex *p_B, int64_t p_ldb) {
	begin(391);
	VALUE(0, p_handle);
	VALUE(1, p_side);
	VALUE(2, p_uplo);
	VALUE(3, p_trans);
	VALUE(4, p_diag);
	VALUE(5, p_m);
	VALUE(6, p_n);
	VALUE(7, p_alpha);
	MEMORY(7, p_alpha, sizeof *p_alpha);
	VALUE(8, p_A);
	VALUE(9, p_lda);
	VALUE(10, p_B);
	VALUE(11, p_ldb);
	return (cublasStatus_t)(puregpu_echo.fail ? 906 : 0);
}

cublasStatus_t cublasZtrsm_v2(cublasHandle_t p_handle, cublasSideMode_t p_side, cublasFillMode_t p_uplo, cublasOperation_t p_trans, cublasDiagType_t p_diag, int p_m, int p_n, const cuDoubleComplex *p_alpha, const cuDoubleComplex *p_A, int p_lda, cuDoubleComplex *p_B, int p_ldb) {
	begin(392);
	VALUE(0, p_handle);
	VALUE(1, p_side);
	VALUE(2, p_uplo);
	VALUE(3, p_trans);
	VALUE(4, p_diag);
	VALUE(5, p_m);
	VALUE(6, p_n);
	VALUE(7, p_alpha);
	MEMORY(7, p_alpha, sizeof *p_alpha);
	VALUE(8, p_A);
	VALUE(9, p_lda);
	VALUE(10, p_B);
	VALUE(11, p_ldb);
	return (cublasStatus_t)(puregpu_echo.fail ? 966 : 0);
}

cublasStatus_t cublasZtrsm_v2_64(cublasHandle_t p_handle, cublasSideMode_t p_side, cublasFillMode_t p_uplo, cublasOperation_t p_trans, cublasDiagType_t p_diag, int64_t p_m, int64_t p_n, const cuDoubleComplex *p_alpha, const cuDoubleComplex *p_A, int64_t p_lda, cuDoubleComplex *p_B, int64_t p_ldb) {
	begin(393);
	VALUE(0, p_handle);
	VALUE(1, p_side);
	VALUE(2, p_uplo);
	VALUE(3, p_trans);
	VALUE(4, p_diag);
	VALUE(5, p_m);
	VALUE(6, p_n);
	VALUE(7, p_alpha);
	MEMORY(7, p_alpha, sizeof *p_alpha);
	VALUE(8, p_A);
	VALUE(9, p_lda);
	VALUE(10, p_B);
	VALUE(11, p_ldb);
	return (cublasStatus_t)(puregpu_echo.fail ? 982 : 0);
}

cublasStatus_t cublasStrmm_v2(cublasHandle_t p_handle, cublasSideMode_t p_side, cublasFillMode_t p_uplo, cublasOperation_t p_trans, cublasDiagType_t p_diag, int p_m, int p_n, const float *p_alpha, const float *p_A, int p_lda, const float *p_B, int p_ldb, float *p_C, int p_ldc) {
	begin(394);
	VALUE(0, p_handle);
	VALUE(1, p_side);
	VALUE(2, p_uplo);
	VALUE(3, p_trans);
	VALUE(4, p_diag);
	VALUE(5, p_m);
	VALUE(6, p_n);
	VALUE(7, p_alpha);
	MEMORY(7, p_alpha, sizeof *p_alpha);
	VALUE(8, p_A);
	VALUE(9, p_lda);
	VALUE(10, p_B);
	VALUE(11, p_ldb);
	VALUE(12, p_C);
	VALUE(13, p_ldc);
	return (cublasStatus_t)(puregpu_echo.fail ? 972 : 0);
}

cublasStatus_t cublasStrmm_v2_64(cublasHandle_t p_handle, cublasSideMode_t p_side, cublasFillMode_t p_uplo, cublasOperation_t p_trans, cublasDiagType_t p_diag, int64_t p_m, int64_t p_n, const float *p_alpha, const float *p_A, int64_t p_lda, const float *p_B, int64_t p_ldb, float *p_C, int64_t p_ldc) {
	begin(395);
	VALUE(0, p_handle);
	VALUE(1, p_side);
	VALUE(2, p_uplo);
	VALUE(3, p_trans);
	VALUE(4, p_diag);
	VALUE(5, p_m);
	VALUE(6, p_n);
	VALUE(7, p_alpha);
	MEMORY(7, p_alpha, sizeof *p_alpha);
	VALUE(8, p_A);
	VALUE(9, p_lda);
	VALUE(10, p_B);
	VALUE(11, p_ldb);
	VALUE(12, p_C);
	VALUE(13, p_ldc);
	return (cublasStatus_t)(puregpu_echo.fail ? 917 : 0);
}

cublasStatus_t cublasDtrmm_v2(cublasHandle_t p_handle, cublasSideMode_t p_side, cublasFillMode_t p_uplo, cublasOperation_t p_trans, cublasDiagType_t p_diag, int p_m, int p_n, const double *p_alpha, const double *p_A, int p_lda, const double *p_B, int p_ldb, double *p_C, int p_ldc) {
	begin(396);
	VALUE(0, p_handle);
	VALUE(1, p_side);
	VALUE(2, p_uplo);
	VALUE(3, p_trans);
	VALUE(4, p_diag);
	VALUE(5, p_m);
	VALUE(6, p_n);
	VALUE(7, p_alpha);
	MEMORY(7, p_alpha, sizeof *p_alpha);
	VALUE(8, p_A);
	VALUE(9, p_lda);
	VALUE(10, p_B);
	VALUE(11, p_ldb);
	VALUE(12, p_C);
	VALUE(13, p_ldc);
	return (cublasStatus_t)(puregpu_echo.fail ? 987 : 0);
}

cublasStatus_t cublasDtrmm_v2_64(cublasHandle_t p_handle, cublasSideMode_t p_side, cublasFillMode_t p_uplo, cublasOperation_t p_trans, cublasDiagType_t p_diag, int64_t p_m, int64_t p_n, const double *p_alpha, const double *p_A, int64_t p_lda, const double *p_B, int64_t p_ldb, double *p_C, int64_t p_ldc) {
	begin(397);
	VALUE(0, p_handle);
	VALUE(1, p_side);
	VALUE(2, p_uplo);
	VALUE(3, p_trans);
	VALUE(4, p_diag);
	VALUE(5, p_m);
	VALUE(6, p_n);
	VALUE(7, p_alpha);
	MEMORY(7, p_alpha, sizeof *p_alpha);
	VALUE(8, p_A);
	VALUE(9, p_lda);
	VALUE(10, p_B);
	VALUE(11, p_ldb);
	VALUE(12, p_C);
	VALUE(13, p_ldc);
	return (cublasStatus_t)(puregpu_echo.fail ? 928 : 0);
}

cublasStatus_t cublasCtrmm_v2(cublasHandle_t p_handle, cublasSideMode_t p_side, cublasFillMode_t p_uplo, cublasOperation_t p_trans, cublasDiagType_t p_diag, int p_m, int p_n, const cuComplex *p_alpha, const cuComplex *p_A, int p_lda, const cuComplex *p_B, int p_ldb, cuComplex *p_C, int p_ldc) {
	begin(398);
	VALUE(0, p_handle);
	VALUE(1, p_side);
	VALUE(2, p_uplo);
	VALUE(3, p_trans);
	VALUE(4, p_diag);
	VALUE(5, p_m);
	VALUE(6, p_n);
	VALUE(7, p_alpha);
	MEMORY(7, p_alpha, sizeof *p_alpha);
	VALUE(8, p_A);
	VALUE(9, p_lda);
	VALUE(10, p_B);
	VALUE(11, p_ldb);
	VALUE(12, p_C);
	VALUE(13, p_ldc);
	return (cublasStatus_t)(puregpu_echo.fail ? 965 : 0);
}

cublasStatus_t cublasCtrmm_v2_64(cublasHandle_t p_handle, cublasSideMode_t p_side, cublasFillMode_t p_uplo, cublasOperation_t p_trans, cublasDiagType_t p_diag, int64_t p_m, int64_t p_n, const cuComplex *p_alpha, const cuComplex *p_A, int64_t p_lda, const cuComplex *p_B, int64_t p_ldb, cuComplex *p_C, int64_t p_ldc) {
	begin(399);
	VALUE(0, p_handle);
	VALUE(1, p_side);
	VALUE(2, p_uplo);
	VALUE(3, p_trans);
	VALUE(4, p_diag);
	VALUE(5, p_m);
	VALUE(6, p_n);
	VALUE(7, p_alpha);
	MEMORY(7, p_alpha, sizeof *p_alpha);
	VALUE(8, p_A);
	VALUE(9, p_lda);
	VALUE(10, p_B);
	VALUE(11, p_ldb);
	VALUE(12, p_C);
	VALUE(13, p_ldc);
	return (cublasStatus_t)(puregpu_echo.fail ? 942 : 0);
}

cublasStatus_t cublasZtrmm_v2(cublasHandle_t p_handle, cublasSideMode_t p_side, cublasFillMode_t p_uplo, cublasOperation_t p_trans, cublasDiagType_t p_diag, int p_m, int p_n, const cuDoubleComplex *p_alpha, const cuDoubleComplex *p_A, int p_lda, const cuDoubleComplex *p_B, int p_ldb, cuDoubleComplex *p_C, int p_ldc) {
	begin(400);
	VALUE(0, p_handle);
	VALUE(1, p_side);
	VALUE(2, p_uplo);
	VALUE(3, p_trans);
	VALUE(4, p_diag);
	VALUE(5, p_m);
	VALUE(6, p_n);
	VALUE(7, p_alpha);
	MEMORY(7, p_alpha, sizeof *p_alpha);
	VALUE(8, p_A);
	VALUE(9, p_lda);
	VALUE(10, p_B);
	VALUE(11, p_ldb);
	VALUE(12, p_C);
	VALUE(13, p_ldc);
	return (cublasStatus_t)(puregpu_echo.fail ? 970 : 0);
}

cublasStatus_t cublasZtrmm_v2_64(cublasHandle_t p_handle, cublasSideMode_t p_side, cublasFillMode_t p_uplo, cublasOperation_t p_trans, cublasDiagType_t p_diag, int64_t p_m, int64_t p_n, const cuDoubleComplex *p_alpha, const cuDoubleComplex *p_A, int64_t p_lda, const cuDoubleComplex *p_B, int64_t p_ldb, cuDoubleComplex *p_C, int64_t p_ldc) {
	begin(401);
	VALUE(0, p_handle);
	VALUE(1, p_side);
	VALUE(2, p_uplo);
	VALUE(3, p_trans);
	VALUE(4, p_diag);
	VALUE(5, p_m);
	VALUE(6, p_n);
	VALUE(7, p_alpha);
	MEMORY(7, p_alpha, sizeof *p_alpha);
	VALUE(8, p_A);
	VALUE(9, p_lda);
	VALUE(10, p_B);
	VALUE(11, p_ldb);
	VALUE(12, p_C);
	VALUE(13, p_ldc);
	return (cublasStatus_t)(puregpu_echo.fail ? 981 : 0);
}

cublasStatus_t cublasSgemmBatched(cublasHandle_t p_handle, cublasOperation_t p_transa, cublasOperation_t p_transb, int p_m, int p_n, int p_k, const float *p_alpha, const float **p_Aarray, int p_lda, const float **p_Barray, int p_ldb, const float *p_beta, float **p_Carray, int p_ldc, int p_batchCount) {
	begin(402);
	VALUE(0, p_handle);
	VALUE(1, p_transa);
	VALUE(2, p_transb);
	VALUE(3, p_m);
	VALUE(4, p_n);
	VALUE(5, p_k);
	VALUE(6, p_alpha);
	MEMORY(6, p_alpha, sizeof *p_alpha);
	VALUE(7, p_Aarray);
	VALUE(8, p_lda);
	VALUE(9, p_Barray);
	VALUE(10, p_ldb);
	VALUE(11, p_beta);
	MEMORY(11, p_beta, sizeof *p_beta);
	VALUE(12, p_Carray);
	VALUE(13, p_ldc);
	VALUE(14, p_batchCount);
	return (cublasStatus_t)(puregpu_echo.fail ? 914 : 0);
}

cublasStatus_t cublasSgemmBatched_64(cublasHandle_t p_handle, cublasOperation_t p_transa, cublasOperation_t p_transb, int64_t p_m, int64_t p_n, int64_t p_k, const float *p_alpha, const float **p_Aarray, int64_t p_lda, const float **p_Barray, int64_t p_ldb, const float *p_beta, float **p_Carray, int64_t p_ldc, int64_t p_batchCount) {
	begin(403);
	VALUE(0, p_handle);
	VALUE(1, p_transa);
	VALUE(2, p_transb);
	VALUE(3, p_m);
	VALUE(4, p_n);
	VALUE(5, p_k);
	VALUE(6, p_alpha);
	MEMORY(6, p_alpha, sizeof *p_alpha);
	VALUE(7, p_Aarray);
	VALUE(8, p_lda);
	VALUE(9, p_Barray);
	VALUE(10, p_ldb);
	VALUE(11, p_beta);
	MEMORY(11, p_beta, sizeof *p_beta);
	VALUE(12, p_Carray);
	VALUE(13, p_ldc);
	VALUE(14, p_batchCount);
	return (cublasStatus_t)(puregpu_echo.fail ? 956 : 0);
}

cublasStatus_t cublasDgemmBatched(cublasHandle_t p_handle, cublasOperation_t p_transa, cublasOperation_t p_transb, int p_m, int p_n, int p_k, const double *p_alpha, const double **p_Aarray, int p_lda, const double **p_Barray, int p_ldb, const double *p_beta, double **p_Carray, int p_ldc, int p_batchCount) {
	begin(404);
	VALUE(0, p_handle);
	VALUE(1, p_transa);
	VALUE(2, p_transb);
	VALUE(3, p_m);
	VALUE(4, p_n);
	VALUE(5, p_k);
	VALUE(6, p_alpha);
	MEMORY(6, p_alpha, sizeof *p_alpha);
	VALUE(7, p_Aarray);
	VALUE(8, p_lda);
	VALUE(9, p_Barray);
	VALUE(10, p_ldb);
	VALUE(11, p_beta);
	MEMORY(11, p_beta, sizeof *p_beta);
	VALUE(12, p_Carray);
	VALUE(13, p_ldc);
	VALUE(14, p_batchCount);
	return (cublasStatus_t)(puregpu_echo.fail ? 961 : 0);
}

cublasStatus_t cublasDgemmBatched_64(cublasHandle_t p_handle, cublasOperation_t p_transa, cublasOperation_t p_transb, int64_t p_m, int64_t p_n, int64_t p_k, const double *p_alpha, const double **p_Aarray, int64_t p_lda, const double **p_Barray, int64_t p_ldb, const double *p_beta, double **p_Carray, int64_t p_ldc, int64_t p_batchCount) {
	begin(405);
	VALUE(0, p_handle);
	VALUE(1, p_transa);
	VALUE(2, p_transb);
	VALUE(3, p_m);
	VALUE(4, p_n);
	VALUE(5, p_k);
	VALUE(6, p_alpha);
	MEMORY(6, p_alpha, sizeof *p_alpha);
	VALUE(7, p_Aarray);
	VALUE(8, p_lda);
	VALUE(9, p_Barray);
	VALUE(10, p_ldb);
	VALUE(11, p_beta);
	MEMORY(11, p_beta, sizeof *p_beta);
	VALUE(12, p_Carray);
	VALUE(13, p_ldc);
	VALUE(14, p_batchCount);
	return (cublasStatus_t)(puregpu_echo.fail ? 915 : 0);
}

cublasStatus_t cublasCgemmBatched(cublasHandle_t p_handle, cublasOperation_t p_transa, cublasOperation_t p_transb, int p_m, int p_n, int p_k, const cuComplex *p_alpha, const cuComplex **p_Aarray, int p_lda, const cuComplex **p_Barray, int p_ldb, const cuComplex *p_beta, cuComplex **p_Carray, int p_ldc, int p_batchCount) {
	begin(406);
	VALUE(0, p_handle);
	VALUE(1, p_transa);
	VALUE(2, p_transb);
	VALUE(3, p_m);
	VALUE(4, p_n);
	VALUE(5, p_k);
	VALUE(6, p_alpha);
	MEMORY(6, p_alpha, sizeof *p_alpha);
	VALUE(7, p_Aarray);
	VALUE(8, p_lda);
	VALUE(9, p_Barray);
	VALUE(10, p_ldb);
	VALUE(11, p_beta);
	MEMORY(11, p_beta, sizeof *p_beta);
	VALUE(12, p_Carray);
	VALUE(13, p_ldc);
	VALUE(14, p_batchCount);
	return (cublasStatus_t)(puregpu_echo.fail ? 940 : 0);
}

cublasStatus_t cublasCgemmBatched_64(cublasHandle_t p_handle, cublasOperation_t p_transa, cublasOperation_t p_transb, int64_t p_m, int64_t p_n, int64_t p_k, const cuComplex *p_alpha, const cuComplex **p_Aarray, int64_t p_lda, const cuComplex **p_Barray, int64_t p_ldb, const cuComplex *p_beta, cuComplex **p_Carray, int64_t p_ldc, int64_t p_batchCount) {
	begin(407);
	VALUE(0, p_handle);
	VALUE(1, p_transa);
	VALUE(2, p_transb);
	VALUE(3, p_m);
	VALUE(4, p_n);
	VALUE(5, p_k);
	VALUE(6, p_alpha);
	MEMORY(6, p_alpha, sizeof *p_alpha);
	VALUE(7, p_Aarray);
	VALUE(8, p_lda);
	VALUE(9, p_Barray);
	VALUE(10, p_ldb);
	VALUE(11, p_beta);
	MEMORY(11, p_beta, sizeof *p_beta);
	VALUE(12, p_Carray);
	VALUE(13, p_ldc);
	VALUE(14, p_batchCount);
	return (cublasStatus_t)(puregpu_echo.fail ? 940 : 0);
}

cublasStatus_t cublasCgemm3mBatched(cublasHandle_t p_handle, cublasOperation_t p_transa, cublasOperation_t p_transb, int p_m, int p_n, int p_k, const cuComplex *p_alpha, const cuComplex **p_Aarray, int p_lda, const cuComplex **p_Barray, int p_ldb, const cuComplex *p_beta, cuComplex **p_Carray, int p_ldc, int p_batchCount) {
	begin(408);
	VALUE(0, p_handle);
	VALUE(1, p_transa);
	VALUE(2, p_transb);
	VALUE(3, p_m);
	VALUE(4, p_n);
	VALUE(5, p_k);
	VALUE(6, p_alpha);
	MEMORY(6, p_alpha, sizeof *p_alpha);
	VALUE(7, p_Aarray);
	VALUE(8, p_lda);
	VALUE(9, p_Barray);
	VALUE(10, p_ldb);
	VALUE(11, p_beta);
	MEMORY(11, p_beta, sizeof *p_beta);
	VALUE(12, p_Carray);
	VALUE(13, p_ldc);
	VALUE(14, p_batchCount);
	return (cublasStatus_t)(puregpu_echo.fail ? 960 : 0);
}

cublasStatus_t cublasCgemm3mBatched_64(cublasHandle_t p_handle, cublasOperation_t p_transa, cublasOperation_t p_transb, int64_t p_m, int64_t p_n, int64_t p_k, const cuComplex *p_alpha, const cuComplex **p_Aarray, int64_t p_lda, const cuComplex **p_Barray, int64_t p_ldb, const cuComplex *p_beta, cuComplex **p_Carray, int64_t p_ldc, int64_t p_batchCount) {
	begin(409);
	VALUE(0, p_handle);
	VALUE(1, p_transa);
	VALUE(2, p_transb);
	VALUE(3, p_m);
	VALUE(4, p_n);
	VALUE(5, p_k);
	VALUE(6, p_alpha);
	MEMORY(6, p_alpha, sizeof *p_alpha);
	VALUE(7, p_Aarray);
	VALUE(8, p_lda);
	VALUE(9, p_Barray);
	VALUE(10, p_ldb);
	VALUE(11, p_beta);
	MEMORY(11, p_beta, sizeof *p_beta);
	VALUE(12, p_Carray);
	VALUE(13, p_ldc);
	VALUE(14, p_batchCount);
	return (cublasStatus_t)(puregpu_echo.fail ? 940 : 0);
}

cublasStatus_t cublasZgemmBatched(cublasHandle_t p_handle, cublasOperation_t p_transa, cublasOperation_t p_transb, int p_m, int p_n, int p_k, const cuDoubleComplex *p_alpha, const cuDoubleComplex **p_Aarray, int p_lda, const cuDoubleComplex **p_Barray, int p_ldb, const cuDoubleComplex *p_beta, cuDoubleComplex **p_Carray, int p_ldc, int p_batchCount) {
	begin(410);
	VALUE(0, p_handle);
	VALUE(1, p_transa);
	VALUE(2, p_transb);
	VALUE(3, p_m);
	VALUE(4, p_n);
	VALUE(5, p_k);
	VALUE(6, p_alpha);
	MEMORY(6, p_alpha, sizeof *p_alpha);
	VALUE(7, p_Aarray);
	VALUE(8, p_lda);
	VALUE(9, p_Barray);
	VALUE(10, p_ldb);
	VALUE(11, p_beta);
	MEMORY(11, p_beta, sizeof *p_beta);
	VALUE(12, p_Carray);
	VALUE(13, p_ldc);
	VALUE(14, p_batchCount);
	return (cublasStatus_t)(puregpu_echo.fail ? 965 : 0);
}

cublasStatus_t cublasZgemmBatched_64(cublasHandle_t p_handle, cublasOperation_t p_transa, cublasOperation_t p_transb, int64_t p_m, int64_t p_n, int64_t p_k, const cuDoubleComplex *p_alpha, const cuDoubleComplex **p_Aarray, int64_t p_lda, const cuDoubleComplex **p_Barray, int64_t p_ldb, const cuDoubleComplex *p_beta, cuDoubleComplex **p_Carray, int64_t p_ldc, int64_t p_batchCount) {
	begin(411);
	VALUE(0, p_handle);
	VALUE(1, p_transa);
	VALUE(2, p_transb);
	VALUE(3, p_m);
	VALUE(4, p_n);
	VALUE(5, p_k);
	VALUE(6, p_alpha);
	MEMORY(6, p_alpha, sizeof *p_alpha);
	VALUE(7, p_Aarray);
	VALUE(8, p_lda);
	VALUE(9, p_Barray);
	VALUE(10, p_ldb);
	VALUE(11, p_beta);
	MEMORY(11, p_beta, sizeof *p_beta);
	VALUE(12, p_Carray);
	VALUE(13, p_ldc);
	VALUE(14, p_batchCount);
	return (cublasStatus_t)(puregpu_echo.fail ? 906 : 0);
}

cublasStatus_t cublasSgemmStridedBatched(cublasHandle_t p_handle, cublasOperation_t p_transa, cublasOperation_t p_transb, int p_m, int p_n, int p_k, const float *p_alpha, const float *p_A, int p_lda, long long p_strideA, const float *p_B, int p_ldb, long long p_strideB, const float *p_beta, float *p_C, int p_ldc, long long p_strideC, int p_batchCount) {
	begin(412);
	VALUE(0, p_handle);
	VALUE(1, p_transa);
	VALUE(2, p_transb);
	VALUE(3, p_m);
	VALUE(4, p_n);
	VALUE(5, p_k);
	VALUE(6, p_alpha);
	MEMORY(6, p_alpha, sizeof *p_alpha);
	VALUE(7, p_A);
	VALUE(8, p_lda);
	VALUE(9, p_strideA);
	VALUE(10, p_B);
	VALUE(11, p_ldb);
	VALUE(12, p_strideB);
	VALUE(13, p_beta);
	MEMORY(13, p_beta, sizeof *p_beta);
	VALUE(14, p_C);
	VALUE(15, p_ldc);
	VALUE(16, p_strideC);
	VALUE(17, p_batchCount);
	return (cublasStatus_t)(puregpu_echo.fail ? 932 : 0);
}

cublasStatus_t cublasSgemmStridedBatched_64(cublasHandle_t p_handle, cublasOperation_t p_transa, cublasOperation_t p_transb, int64_t p_m, int64_t p_n, int64_t p_k, const float *p_alpha, const float *p_A, int64_t p_lda, long long p_strideA, const float *p_B, int64_t p_ldb, long long p_strideB, const float *p_beta, float *p_C, int64_t p_ldc, long long p_strideC, int64_t p_batchCount) {
	begin(413);
	VALUE(0, p_handle);
	VALUE(1, p_transa);
	VALUE(2, p_transb);
	VALUE(3, p_m);
	VALUE(4, p_n);
	VALUE(5, p_k);
	VALUE(6, p_alpha);
	MEMORY(6, p_alpha, sizeof *p_alpha);
	VALUE(7, p_A);
	VALUE(8, p_lda);
	VALUE(9, p_strideA);
	VALUE(10, p_B);
	VALUE(11, p_ldb);
	VALUE(12, p_strideB);
	VALUE(13, p_beta);
	MEMORY(13, p_beta, sizeof *p_beta);
	VALUE(14, p_C);
	VALUE(15, p_ldc);
	VALUE(16, p_strideC);
	VALUE(17, p_batchCount);
	return (cublasStatus_t)(puregpu_echo.fail ? 938 : 0);
}

cublasStatus_t cublasDgemmStridedBatched(cublasHandle_t p_handle, cublasOperation_t p_transa, cublasOperation_t p_transb, int p_m, int p_n, int p_k, const double *p_alpha, const double *p_A, int p_lda, long long p_strideA, const double *p_B, int p_ldb, long long p_strideB, const double *p_beta, double *p_C, int p_ldc, long long p_strideC, int p_batchCount) {
	begin(414);
	VALUE(0, p_handle);
	VALUE(1, p_transa);
	VALUE(2, p_transb);
	VALUE(3, p_m);
	VALUE(4, p_n);
	VALUE(5, p_k);
	VALUE(6, p_alpha);
	MEMORY(6, p_alpha, sizeof *p_alpha);
	VALUE(7, p_A);
	VALUE(8, p_lda);
	VALUE(9, p_strideA);
	VALUE(10, p_B);
	VALUE(11, p_ldb);
	VALUE(12, p_strideB);
	VALUE(13, p_beta);
	MEMORY(13, p_beta, sizeof *p_beta);
	VALUE(14, p_C);
	VALUE(15, p_ldc);
	VALUE(16, p_strideC);
	VALUE(17, p_batchCount);
	return (cublasStatus_t)(puregpu_echo.fail ? 962 : 0);
}

cublasStatus_t cublasDgemmStridedBatched_64(cublasHandle_t p_handle, cublasOperation_t p_transa, cublasOperation_t p_transb, int64_t p_m, int64_t p_n, int64_t p_k, const double *p_alpha, const double *p_A, int64_t p_lda, long long p_strideA, const double *p_B, int64_t p_ldb, long long p_strideB, const double *p_beta, double *p_C, int64_t p_ldc, long long p_strideC, int64_t p_batchCount) {
	begin(415);
	VALUE(0, p_handle);
	VALUE(1, p_transa);
	VALUE(2, p_transb);
	VALUE(3, p_m);
	VALUE(4, p_n);
	VALUE(5, p_k);
	VALUE(6, p_alpha);
	MEMORY(6, p_alpha, sizeof *p_alpha);
	VALUE(7, p_A);
	VALUE(8, p_lda);
	VALUE(9, p_strideA);
	VALUE(10, p_B);
	VALUE(11, p_ldb);
	VALUE(12, p_strideB);
	VALUE(13, p_beta);
	MEMORY(13, p_beta, sizeof *p_beta);
	VALUE(14, p_C);
	VALUE(15, p_ldc);
	VALUE(16, p_strideC);
	VALUE(17, p_batchCount);
	return (cublasStatus_t)(puregpu_echo.fail ? 954 : 0);
}

cublasStatus_t cublasCgemmStridedBatched(cublasHandle_t p_handle, cublasOperation_t p_transa, cublasOperation_t p_transb, int p_m, int p_n, int p_k, const cuComplex *p_alpha, const cuComplex *p_A, int p_lda, long long p_strideA, const cuComplex *p_B, int p_ldb, long long p_strideB, const cuComplex *p_beta, cuComplex *p_C, int p_ldc, long long p_strideC, int p_batchCount) {
	begin(416);
	VALUE(0, p_handle);
	VALUE(1, p_transa);
	VALUE(2, p_transb);
	VALUE(3, p_m);
	VALUE(4, p_n);
	VALUE(5, p_k);
	VALUE(6, p_alpha);
	MEMORY(6, p_alpha, sizeof *p_alpha);
	VALUE(7, p_A);
	VALUE(8, p_lda);
	VALUE(9, p_strideA);
	VALUE(10, p_B);
	VALUE(11, p_ldb);
	VALUE(12, p_strideB);
	VALUE(13, p_beta);
	MEMORY(13, p_beta, sizeof *p_beta);
	VALUE(14, p_C);
	VALUE(15, p_ldc);
	VALUE(16, p_strideC);
	VALUE(17, p_batchCount);
	return (cublasStatus_t)(puregpu_echo.fail ? 916 : 0);
}

cublasStatus_t cublasCgemmStridedBatched_64(cublasHandle_t p_handle, cublasOperation_t p_transa, cublasOperation_t p_transb, int64_t p_m, int64_t p_n, int64_t p_k, const cuComplex *p_alpha, const cuComplex *p_A, int64_t p_lda, long long p_strideA, const cuComplex *p_B, int64_t p_ldb, long long p_strideB, const cuComplex *p_beta, cuComplex *p_C, int64_t p_ldc, long long p_strideC, int64_t p_batchCount) {
	begin(417);
	VALUE(0, p_handle);
	VALUE(1, p_transa);
	VALUE(2, p_transb);
	VALUE(3, p_m);
	VALUE(4, p_n);
	VALUE(5, p_k);
	VALUE(6, p_alpha);
	MEMORY(6, p_alpha, sizeof *p_alpha);
	VALUE(7, p_A);
	VALUE(8, p_lda);
	VALUE(9, p_strideA);
	VALUE(10, p_B);
	VALUE(11, p_ldb);
	VALUE(12, p_strideB);
	VALUE(13, p_beta);
	MEMORY(13, p_beta, sizeof *p_beta);
	VALUE(14, p_C);
	VALUE(15, p_ldc);
	VALUE(16, p_strideC);
	VALUE(17, p_batchCount);
	return (cublasStatus_t)(puregpu_echo.fail ? 964 : 0);
}

cublasStatus_t cublasCgemm3mStridedBatched(cublasHandle_t p_handle, cublasOperation_t p_transa, cublasOperation_t p_transb, int p_m, int p_n, int p_k, const cuComplex *p_alpha, const cuComplex *p_A, int p_lda, long long p_strideA, const cuComplex *p_B, int p_ldb, long long p_strideB, const cuComplex *p_beta, cuComplex *p_C, int p_ldc, long long p_strideC, int p_batchCount) {
	begin(418);
	VALUE(0, p_handle);
	VALUE(1, p_transa);
	VALUE(2, p_transb);
	VALUE(3, p_m);
	VALUE(4, p_n);
	VALUE(5, p_k);
	VALUE(6, p_alpha);
	MEMORY(6, p_alpha, sizeof *p_alpha);
	VALUE(7, p_A);
	VALUE(8, p_lda);
	VALUE(9, p_strideA);
	VALUE(10, p_B);
	VALUE(11, p_ldb);
	VALUE(12, p_strideB);
	VALUE(13, p_beta);
	MEMORY(13, p_beta, sizeof *p_beta);
	VALUE(14, p_C);
	VALUE(15, p_ldc);
	VALUE(16, p_strideC);
	VALUE(17, p_batchCount);
	return (cublasStatus_t)(puregpu_echo.fail ? 946 : 0);
}

cublasStatus_t cublasCgemm3mStridedBatched_64(cublasHandle_t p_handle, cublasOperation_t p_transa, cublasOperation_t p_transb, int64_t p_m, int64_t p_n, int64_t p_k, const cuComplex *p_alpha, const cuComplex *p_A, int64_t p_lda, long long p_strideA, const cuComplex *p_B, int64_t p_ldb, long long p_strideB, const cuComplex *p_beta, cuComplex *p_C, int64_t p_ldc, long long p_strideC, int64_t p_batchCount) {
	begin(419);
	VALUE(0, p_handle);
	VALUE(1, p_transa);
	VALUE(2, p_transb);
	VALUE(3, p_m);
	VALUE(4, p_n);
	VALUE(5, p_k);
	VALUE(6, p_alpha);
	MEMORY(6, p_alpha, sizeof *p_alpha);
	VALUE(7, p_A);
	VALUE(8, p_lda);
	VALUE(9, p_strideA);
	VALUE(10, p_B);
	VALUE(11, p_ldb);
	VALUE(12, p_strideB);
	VALUE(13, p_beta);
	MEMORY(13, p_beta, sizeof *p_beta);
	VALUE(14, p_C);
	VALUE(15, p_ldc);
	VALUE(16, p_strideC);
	VALUE(17, p_batchCount);
	return (cublasStatus_t)(puregpu_echo.fail ? 980 : 0);
}

cublasStatus_t cublasZgemmStridedBatched(cublasHandle_t p_handle, cublasOperation_t p_transa, cublasOperation_t p_transb, int p_m, int p_n, int p_k, const cuDoubleComplex *p_alpha, const cuDoubleComplex *p_A, int p_lda, long long p_strideA, const cuDoubleComplex *p_B, int p_ldb, long long p_strideB, const cuDoubleComplex *p_beta, cuDoubleComplex *p_C, int p_ldc, long long p_strideC, int p_batchCount) {
	begin(420);
	VALUE(0, p_handle);
	VALUE(1, p_transa);
	VALUE(2, p_transb);
	VALUE(3, p_m);
	VALUE(4, p_n);
	VALUE(5, p_k);
	VALUE(6, p_alpha);
	MEMORY(6, p_alpha, sizeof *p_alpha);
	VALUE(7, p_A);
	VALUE(8, p_lda);
	VALUE(9, p_strideA);
	VALUE(10, p_B);
	VALUE(11, p_ldb);
	VALUE(12, p_strideB);
	VALUE(13, p_beta);
	MEMORY(13, p_beta, sizeof *p_beta);
	VALUE(14, p_C);
	VALUE(15, p_ldc);
	VALUE(16, p_strideC);
	VALUE(17, p_batchCount);
	return (cublasStatus_t)(puregpu_echo.fail ? 933 : 0);
}

cublasStatus_t cublasZgemmStridedBatched_64(cublasHandle_t p_handle, cublasOperation_t p_transa, cublasOperation_t p_transb, int64_t p_m, int64_t p_n, int64_t p_k, const cuDoubleComplex *p_alpha, const cuDoubleComplex *p_A, int64_t p_lda, long long p_strideA, const cuDoubleComplex *p_B, int64_t p_ldb, long long p_strideB, const cuDoubleComplex *p_beta, cuDoubleComplex *p_C, int64_t p_ldc, long long p_strideC, int64_t p_batchCount) {
	begin(421);
	VALUE(0, p_handle);
	VALUE(1, p_transa);
	VALUE(2, p_transb);
	VALUE(3, p_m);
	VALUE(4, p_n);
	VALUE(5, p_k);
	VALUE(6, p_alpha);
	MEMORY(6, p_alpha, sizeof *p_alpha);
	VALUE(7, p_A);
	VALUE(8, p_lda);
	VALUE(9, p_strideA);
	VALUE(10, p_B);
	VALUE(11, p_ldb);
	VALUE(12, p_strideB);
	VALUE(13, p_beta);
	MEMORY(13, p_beta, sizeof *p_beta);
	VALUE(14, p_C);
	VALUE(15, p_ldc);
	VALUE(16, p_strideC);
	VALUE(17, p_batchCount);
	return (cublasStatus_t)(puregpu_echo.fail ? 938 : 0);
}

cublasStatus_t cublasGemmBatchedEx(cublasHandle_t p_handle, cublasOperation_t p_transa, cublasOperation_t p_transb, int p_m, int p_n, int p_k, const void *p_alpha, const void **p_Aarray, cudaDataType p_Atype, int p_lda, const void **p_Barray, cudaDataType p_Btype, int p_ldb, const void *p_beta, void **p_Carray, cudaDataType p_Ctype, int p_ldc, int p_batchCount, cublasComputeType_t p_computeType, cublasGemmAlgo_t p_algo) {
	begin(422);
	VALUE(0, p_handle);
	VALUE(1, p_transa);
	VALUE(2, p_transb);
	VALUE(3, p_m);
	VALUE(4, p_n);
	VALUE(5, p_k);
	VALUE(6, p_alpha);
	VALUE(7, p_Aarray);
	VALUE(8, p_Atype);
	VALUE(9, p_lda);
	VALUE(10, p_Barray);
	VALUE(11, p_Btype);
	VALUE(12, p_ldb);
	VALUE(13, p_beta);
	VALUE(14, p_Carray);
	VALUE(15, p_Ctype);
	VALUE(16, p_ldc);
	VALUE(17, p_batchCount);
	VALUE(18, p_computeType);
	VALUE(19, p_algo);
	return (cublasStatus_t)(puregpu_echo.fail ? 963 : 0);
}

cublasStatus_t cublasGemmBatchedEx_64(cublasHandle_t p_handle, cublasOperation_t p_transa, cublasOperation_t p_transb, int64_t p_m, int64_t p_n, int64_t p_k, const void *p_alpha, const void **p_Aarray, cudaDataType p_Atype, int64_t p_lda, const void **p_Barray, cudaDataType p_Btype, int64_t p_ldb, const void *p_beta, void **p_Carray, cudaDataType p_Ctype, int64_t p_ldc, int64_t p_batchCount, cublasComputeType_t p_computeType, cublasGemmAlgo_t p_algo) {
	begin(423);
	VALUE(0, p_handle);
	VALUE(1, p_transa);
	VALUE(2, p_transb);
	VALUE(3, p_m);
	VALUE(4, p_n);
	VALUE(5, p_k);
	VALUE(6, p_alpha);
	VALUE(7, p_Aarray);
	VALUE(8, p_Atype);
	VALUE(9, p_lda);
	VALUE(10, p_Barray);
	VALUE(11, p_Btype);
	VALUE(12, p_ldb);
	VALUE(13, p_beta);
	VALUE(14, p_Carray);
	VALUE(15, p_Ctype);
	VALUE(16, p_ldc);
	VALUE(17, p_batchCount);
	VALUE(18, p_computeType);
	VALUE(19, p_algo);
	return (cublasStatus_t)(puregpu_echo.fail ? 968 : 0);
}

cublasStatus_t cublasGemmStridedBatchedEx(cublasHandle_t p_handle, cublasOperation_t p_transa, cublasOperation_t p_transb, int p_m, int p_n, int p_k, const void *p_alpha, const void *p_A, cudaDataType p_Atype, int p_lda, long long p_strideA, const void *p_B, cudaDataType p_Btype, int p_ldb, long long p_strideB, const void *p_beta, void *p_C, cudaDataType p_Ctype, int p_ldc, long long p_strideC, int p_batchCount, cublasComputeType_t p_computeType, cublasGemmAlgo_t p_algo) {
	begin(424);
	VALUE(0, p_handle);
	VALUE(1, p_transa);
	VALUE(2, p_transb);
	VALUE(3, p_m);
	VALUE(4, p_n);
	VALUE(5, p_k);
	VALUE(6, p_alpha);
	VALUE(7, p_A);
	VALUE(8, p_Atype);
	VALUE(9, p_lda);
	VALUE(10, p_strideA);
	VALUE(11, p_B);
	VALUE(12, p_Btype);
	VALUE(13, p_ldb);
	VALUE(14, p_strideB);
	VALUE(15, p_beta);
	VALUE(16, p_C);
	VALUE(17, p_Ctype);
	VALUE(18, p_ldc);
	VALUE(19, p_strideC);
	VALUE(20, p_batchCount);
	VALUE(21, p_computeType);
	VALUE(22, p_algo);
	return (cublasStatus_t)(puregpu_echo.fail ? 901 : 0);
}

cublasStatus_t cublasGemmStridedBatchedEx_64(cublasHandle_t p_handle, cublasOperation_t p_transa, cublasOperation_t p_transb, int64_t p_m, int64_t p_n, int64_t p_k, const void *p_alpha, const void *p_A, cudaDataType p_Atype, int64_t p_lda, long long p_strideA, const void *p_B, cudaDataType p_Btype, int64_t p_ldb, long long p_strideB, const void *p_beta, void *p_C, cudaDataType p_Ctype, int64_t p_ldc, long long p_strideC, int64_t p_batchCount, cublasComputeType_t p_computeType, cublasGemmAlgo_t p_algo) {
	begin(425);
	VALUE(0, p_handle);
	VALUE(1, p_transa);
	VALUE(2, p_transb);
	VALUE(3, p_m);
	VALUE(4, p_n);
	VALUE(5, p_k);
	VALUE(6, p_alpha);
	VALUE(7, p_A);
	VALUE(8, p_Atype);
	VALUE(9, p_lda);
	VALUE(10, p_strideA);
	VALUE(11, p_B);
	VALUE(12, p_Btype);
	VALUE(13, p_ldb);
	VALUE(14, p_strideB);
	VALUE(15, p_beta);
	VALUE(16, p_C);
	VALUE(17, p_Ctype);
	VALUE(18, p_ldc);
	VALUE(19, p_strideC);
	VALUE(20, p_batchCount);
	VALUE(21, p_computeType);
	VALUE(22, p_algo);
	return (cublasStatus_t)(puregpu_echo.fail ? 925 : 0);
}

cublasStatus_t cublasSgemmGroupedBatched(cublasHandle_t p_handle, const cublasOperation_t *p_transa_array, const cublasOperation_t *p_transb_array, const int *p_m_array, const int *p_n_array, const int *p_k_array, const float *p_alpha_array, const float **p_Aarray, const int *p_lda_array, const float **p_Barray, const int *p_ldb_array, const float *p_beta_array, float **p_Carray, const int *p_ldc_array, int p_group_count, const int *p_group_size) {
	begin(426);
	VALUE(0, p_handle);
	VALUE(1, p_transa_array);
	MEMORY(1, p_transa_array, (size_t)(p_group_count) * sizeof *p_transa_array);
	VALUE(2, p_transb_array);
	MEMORY(2, p_transb_array, (size_t)(p_group_count) * sizeof *p_transb_array);
	VALUE(3, p_m_array);
	MEMORY(3, p_m_array, (size_t)(p_group_count) * sizeof *p_m_array);
	VALUE(4, p_n_array);
	MEMORY(4, p_n_array, (size_t)(p_group_count) * sizeof *p_n_array);
	VALUE(5, p_k_array);
	MEMORY(5, p_k_array, (size_t)(p_group_count) * sizeof *p_k_array);
	VALUE(6, p_alpha_array);
	MEMORY(6, p_alpha_array, (size_t)(p_group_count) * sizeof *p_alpha_array);
	VALUE(7, p_Aarray);
	VALUE(8, p_lda_array);
	MEMORY(8, p_lda_array, (size_t)(p_group_count) * sizeof *p_lda_array);
	VALUE(9, p_Barray);
	VALUE(10, p_ldb_array);
	MEMORY(10, p_ldb_array, (size_t)(p_group_count) * sizeof *p_ldb_array);
	VALUE(11, p_beta_array);
	MEMORY(11, p_beta_array, (size_t)(p_group_count) * sizeof *p_beta_array);
	VALUE(12, p_Carray);
	VALUE(13, p_ldc_array);
	MEMORY(13, p_ldc_array, (size_t)(p_group_count) * sizeof *p_ldc_array);
	VALUE(14, p_group_count);
	VALUE(15, p_group_size);
	MEMORY(15, p_group_size, (size_t)(p_group_count) * sizeof *p_group_size);
	return (cublasStatus_t)(puregpu_echo.fail ? 950 : 0);
}

cublasStatus_t cublasSgemmGroupedBatched_64(cublasHandle_t p_handle, const cublasOperation_t *p_transa_array, const cublasOperation_t *p_transb_array, const int64_t *p_m_array, const int64_t *p_n_array, const int64_t *p_k_array, const float *p_alpha_array, const float **p_Aarray, const int64_t *p_lda_array, const float **p_Barray, const int64_t *p_ldb_array, const float *p_beta_array, float **p_Carray, const int64_t *p_ldc_array, int64_t p_group_count, const int64_t *p_group_size) {
	begin(427);
	VALUE(0, p_handle);
	VALUE(1, p_transa_array);
	MEMORY(1, p_transa_array, (size_t)(p_group_count) * sizeof *p_transa_array);
	VALUE(2, p_transb_array);
	MEMORY(2, p_transb_array, (size_t)(p_group_count) * sizeof *p_transb_array);
	VALUE(3, p_m_array);
	MEMORY(3, p_m_array, (size_t)(p_group_count) * sizeof *p_m_array);
	VALUE(4, p_n_array);
	MEMORY(4, p_n_array, (size_t)(p_group_count) * sizeof *p_n_array);
	VALUE(5, p_k_array);
	MEMORY(5, p_k_array, (size_t)(p_group_count) * sizeof *p_k_array);
	VALUE(6, p_alpha_array);
	MEMORY(6, p_alpha_array, (size_t)(p_group_count) * sizeof *p_alpha_array);
	VALUE(7, p_Aarray);
	VALUE(8, p_lda_array);
	MEMORY(8, p_lda_array, (size_t)(p_group_count) * sizeof *p_lda_array);
	VALUE(9, p_Barray);
	VALUE(10, p_ldb_array);
	MEMORY(10, p_ldb_array, (size_t)(p_group_count) * sizeof *p_ldb_array);
	VALUE(11, p_beta_array);
	MEMORY(11, p_beta_array, (size_t)(p_group_count) * sizeof *p_beta_array);
	VALUE(12, p_Carray);
	VALUE(13, p_ldc_array);
	MEMORY(13, p_ldc_array, (size_t)(p_group_count) * sizeof *p_ldc_array);
	VALUE(14, p_group_count);
	VALUE(15, p_group_size);
	MEMORY(15, p_group_size, (size_t)(p_group_count) * sizeof *p_group_size);
	return (cublasStatus_t)(puregpu_echo.fail ? 984 : 0);
}

cublasStatus_t cublasDgemmGroupedBatched(cublasHandle_t p_handle, const cublasOperation_t *p_transa_array, const cublasOperation_t *p_transb_array, const int *p_m_array, const int *p_n_array, const int *p_k_array, const double *p_alpha_array, const double **p_Aarray, const int *p_lda_array, const double **p_Barray, const int *p_ldb_array, const double *p_beta_array, double **p_Carray, const int *p_ldc_array, int p_group_count, const int *p_group_size) {
	begin(428);
	VALUE(0, p_handle);
	VALUE(1, p_transa_array);
	MEMORY(1, p_transa_array, (size_t)(p_group_count) * sizeof *p_transa_array);
	VALUE(2, p_transb_array);
	MEMORY(2, p_transb_array, (size_t)(p_group_count) * sizeof *p_transb_array);
	VALUE(3, p_m_array);
	MEMORY(3, p_m_array, (size_t)(p_group_count) * sizeof *p_m_array);
	VALUE(4, p_n_array);
	MEMORY(4, p_n_array, (size_t)(p_group_count) * sizeof *p_n_array);
	VALUE(5, p_k_array);
	MEMORY(5, p_k_array, (size_t)(p_group_count) * sizeof *p_k_array);
	VALUE(6, p_alpha_array);
	MEMORY(6, p_alpha_array, (size_t)(p_group_count) * sizeof *p_alpha_array);
	VALUE(7, p_Aarray);
	VALUE(8, p_lda_array);
	MEMORY(8, p_lda_array, (size_t)(p_group_count) * sizeof *p_lda_array);
	VALUE(9, p_Barray);
	VALUE(10, p_ldb_array);
	MEMORY(10, p_ldb_array, (size_t)(p_group_count) * sizeof *p_ldb_array);
	VALUE(11, p_beta_array);
	MEMORY(11, p_beta_array, (size_t)(p_group_count) * sizeof *p_beta_array);
	VALUE(12, p_Carray);
	VALUE(13, p_ldc_array);
	MEMORY(13, p_ldc_array, (size_t)(p_group_count) * sizeof *p_ldc_array);
	VALUE(14, p_group_count);
	VALUE(15, p_group_size);
	MEMORY(15, p_group_size, (size_t)(p_group_count) * sizeof *p_group_size);
	return (cublasStatus_t)(puregpu_echo.fail ? 916 : 0);
}

cublasStatus_t cublasDgemmGroupedBatched_64(cublasHandle_t p_handle, const cublasOperation_t *p_transa_array, const cublasOperation_t *p_transb_array, const int64_t *p_m_array, const int64_t *p_n_array, const int64_t *p_k_array, const double *p_alpha_array, const double **p_Aarray, const int64_t *p_lda_array, const double **p_Barray, const int64_t *p_ldb_array, const double *p_beta_array, double **p_Carray, const int64_t *p_ldc_array, int64_t p_group_count, const int64_t *p_group_size) {
	begin(429);
	VALUE(0, p_handle);
	VALUE(1, p_transa_array);
	MEMORY(1, p_transa_array, (size_t)(p_group_count) * sizeof *p_transa_array);
	VALUE(2, p_transb_array);
	MEMORY(2, p_transb_array, (size_t)(p_group_count) * sizeof *p_transb_array);
	VALUE(3, p_m_array);
	MEMORY(3, p_m_array, (size_t)(p_group_count) * sizeof *p_m_array);
	VALUE(4, p_n_array);
	MEMORY(4, p_n_array, (size_t)(p_group_count) * sizeof *p_n_array);
	VALUE(5, p_k_array);
	MEMORY(5, p_k_array, (size_t)(p_group_count) * sizeof *p_k_array);
	VALUE(6, p_alpha_array);
	MEMORY(6, p_alpha_array, (size_t)(p_group_count) * sizeof *p_alpha_array);
	VALUE(7, p_Aarray);
	VALUE(8, p_lda_array);
	MEMORY(8, p_lda_array, (size_t)(p_group_count) * sizeof *p_lda_array);
	VALUE(9, p_Barray);
	VALUE(10, p_ldb_array);
	MEMORY(10, p_ldb_array, (size_t)(p_group_count) * sizeof *p_ldb_array);
	VALUE(11, p_beta_array);
	MEMORY(11, p_beta_array, (size_t)(p_group_count) * sizeof *p_beta_array);
	VALUE(12, p_Carray);
	VALUE(13, p_ldc_array);
	MEMORY(13, p_ldc_array, (size_t)(p_group_count) * sizeof *p_ldc_array);
	VALUE(14, p_group_count);
	VALUE(15, p_group_size);
	MEMORY(15, p_group_size, (size_t)(p_group_count) * sizeof *p_group_size);
	return (cublasStatus_t)(puregpu_echo.fail ? 951 : 0);
}

cublasStatus_t cublasSgeam(cublasHandle_t p_handle, cublasOperation_t p_transa, cublasOperation_t p_transb, int p_m, int p_n, const float *p_alpha, const float *p_A, int p_lda, const float *p_beta, const float *p_B, int p_ldb, float *p_C, int p_ldc) {
	begin(430);
	VALUE(0, p_handle);
	VALUE(1, p_transa);
	VALUE(2, p_transb);
	VALUE(3, p_m);
	VALUE(4, p_n);
	VALUE(5, p_alpha);
	MEMORY(5, p_alpha, sizeof *p_alpha);
	VALUE(6, p_A);
	VALUE(7, p_lda);
	VALUE(8, p_beta);
	MEMORY(8, p_beta, sizeof *p_beta);
	VALUE(9, p_B);
	VALUE(10, p_ldb);
	VALUE(11, p_C);
	VALUE(12, p_ldc);
	return (cublasStatus_t)(puregpu_echo.fail ? 912 : 0);
}

cublasStatus_t cublasSgeam_64(cublasHandle_t p_handle, cublasOperation_t p_transa, cublasOperation_t p_transb, int64_t p_m, int64_t p_n, const float *p_alpha, const float *p_A, int64_t p_lda, const float *p_beta, const float *p_B, int64_t p_ldb, float *p_C, int64_t p_ldc) {
	begin(431);
	VALUE(0, p_handle);
	VALUE(1, p_transa);
	VALUE(2, p_transb);
	VALUE(3, p_m);
	VALUE(4, p_n);
	VALUE(5, p_alpha);
	MEMORY(5, p_alpha, sizeof *p_alpha);
	VALUE(6, p_A);
	VALUE(7, p_lda);
	VALUE(8, p_beta);
	MEMORY(8, p_beta, sizeof *p_beta);
	VALUE(9, p_B);
	VALUE(10, p_ldb);
	VALUE(11, p_C);
	VALUE(12, p_ldc);
	return (cublasStatus_t)(puregpu_echo.fail ? 914 : 0);
}

cublasStatus_t cublasDgeam(cublasHandle_t p_handle, cublasOperation_t p_transa, cublasOperation_t p_transb, int p_m, int p_n, const double *p_alpha, const double *p_A, int p_lda, const double *p_beta, const double *p_B, int p_ldb, double *p_C, int p_ldc) {
	begin(432);
	VALUE(0, p_handle);
	VALUE(1, p_transa);
	VALUE(2, p_transb);
	VALUE(3, p_m);
	VALUE(4, p_n);
	VALUE(5, p_alpha);
	MEMORY(5, p_alpha, sizeof *p_alpha);
	VALUE(6, p_A);
	VALUE(7, p_lda);
	VALUE(8, p_beta);
	MEMORY(8, p_beta, sizeof *p_beta);
	VALUE(9, p_B);
	VALUE(10, p_ldb);
	VALUE(11, p_C);
	VALUE(12, p_ldc);
	return (cublasStatus_t)(puregpu_echo.fail ? 966 : 0);
}

cublasStatus_t cublasDgeam_64(cublasHandle_t p_handle, cublasOperation_t p_transa, cublasOperation_t p_transb, int64_t p_m, int64_t p_n, const double *p_alpha, const double *p_A, int64_t p_lda, const double *p_beta, const double *p_B, int64_t p_ldb, double *p_C, int64_t p_ldc) {
	begin(433);
	VALUE(0, p_handle);
	VALUE(1, p_transa);
	VALUE(2, p_transb);
	VALUE(3, p_m);
	VALUE(4, p_n);
	VALUE(5, p_alpha);
	MEMORY(5, p_alpha, sizeof *p_alpha);
	VALUE(6, p_A);
	VALUE(7, p_lda);
	VALUE(8, p_beta);
	MEMORY(8, p_beta, sizeof *p_beta);
	VALUE(9, p_B);
	VALUE(10, p_ldb);
	VALUE(11, p_C);
	VALUE(12, p_ldc);
	return (cublasStatus_t)(puregpu_echo.fail ? 924 : 0);
}

cublasStatus_t cublasCgeam(cublasHandle_t p_handle, cublasOperation_t p_transa, cublasOperation_t p_transb, int p_m, int p_n, const cuComplex *p_alpha, const cuComplex *p_A, int p_lda, const cuComplex *p_beta, const cuComplex *p_B, int p_ldb, cuComplex *p_C, int p_ldc) {
	begin(434);
	VALUE(0, p_handle);
	VALUE(1, p_transa);
	VALUE(2, p_transb);
	VALUE(3, p_m);
	VALUE(4, p_n);
	VALUE(5, p_alpha);
	MEMORY(5, p_alpha, sizeof *p_alpha);
	VALUE(6, p_A);
	VALUE(7, p_lda);
	VALUE(8, p_beta);
	MEMORY(8, p_beta, sizeof *p_beta);
	VALUE(9, p_B);
	VALUE(10, p_ldb);
	VALUE(11, p_C);
	VALUE(12, p_ldc);
	return (cublasStatus_t)(puregpu_echo.fail ? 929 : 0);
}

cublasStatus_t cublasCgeam_64(cublasHandle_t p_handle, cublasOperation_t p_transa, cublasOperation_t p_transb, int64_t p_m, int64_t p_n, const cuComplex *p_alpha, const cuComplex *p_A, int64_t p_lda, const cuComplex *p_beta, const cuComplex *p_B, int64_t p_ldb, cuComplex *p_C, int64_t p_ldc) {
	begin(435);
	VALUE(0, p_handle);
	VALUE(1, p_transa);
	VALUE(2, p_transb);
	VALUE(3, p_m);
	VALUE(4, p_n);
	VALUE(5, p_alpha);
	MEMORY(5, p_alpha, sizeof *p_alpha);
	VALUE(6, p_A);
	VALUE(7, p_lda);
	VALUE(8, p_beta);
	MEMORY(8, p_beta, sizeof *p_beta);
	VALUE(9, p_B);
	VALUE(10, p_ldb);
	VALUE(11, p_C);
	VALUE(12, p_ldc);
	return (cublasStatus_t)(puregpu_echo.fail ? 900 : 0);
}

cublasStatus_t cublasZgeam(cublasHandle_t p_handle, cublasOperation_t p_transa, cublasOperation_t p_transb, int p_m, int p_n, const cuDoubleComplex *p_alpha, const cuDoubleComplex *p_A, int p_lda, const cuDoubleComplex *p_beta, const cuDoubleComplex *p_B, int p_ldb, cuDoubleComplex *p_C, int p_ldc) {
	begin(436);
	VALUE(0, p_handle);
	VALUE(1, p_transa);
	VALUE(2, p_transb);
	VALUE(3, p_m);
	VALUE(4, p_n);
	VALUE(5, p_alpha);
	MEMORY(5, p_alpha, sizeof *p_alpha);
	VALUE(6, p_A);
	VALUE(7, p_lda);
	VALUE(8, p_beta);
	MEMORY(8, p_beta, sizeof *p_beta);
	VALUE(9, p_B);
	VALUE(10, p_ldb);
	VALUE(11, p_C);
	VALUE(12, p_ldc);
	return (cublasStatus_t)(puregpu_echo.fail ? 919 : 0);
}

cublasStatus_t cublasZgeam_64(cublasHandle_t p_handle, cublasOperation_t p_transa, cublasOperation_t p_transb, int64_t p_m, int64_t p_n, const cuDoubleComplex *p_alpha, const cuDoubleComplex *p_A, int64_t p_lda, const cuDoubleComplex *p_beta, const cuDoubleComplex *p_B, int64_t p_ldb, cuDoubleComplex *p_C, int64_t p_ldc) {
	begin(437);
	VALUE(0, p_handle);
	VALUE(1, p_transa);
	VALUE(2, p_transb);
	VALUE(3, p_m);
	VALUE(4, p_n);
	VALUE(5, p_alpha);
	MEMORY(5, p_alpha, sizeof *p_alpha);
	VALUE(6, p_A);
	VALUE(7, p_lda);
	VALUE(8, p_beta);
	MEMORY(8, p_beta, sizeof *p_beta);
	VALUE(9, p_B);
	VALUE(10, p_ldb);
	VALUE(11, p_C);
	VALUE(12, p_ldc);
	return (cublasStatus_t)(puregpu_echo.fail ? 912 : 0);
}

cublasStatus_t cublasStrsmBatched(cublasHandle_t p_handle, cublasSideMode_t p_side, cublasFillMode_t p_uplo, cublasOperation_t p_trans, cublasDiagType_t p_diag, int p_m, int p_n, const float *p_alpha, const float **p_A, int p_lda, float **p_B, int p_ldb, int p_batchCount) {
	begin(438);
	VALUE(0, p_handle);
	VALUE(1, p_side);
	VALUE(2, p_uplo);
	VALUE(3, p_trans);
	VALUE(4, p_diag);
	VALUE(5, p_m);
	VALUE(6, p_n);
	VALUE(7, p_alpha);
	MEMORY(7, p_alpha, sizeof *p_alpha);
	VALUE(8, p_A);
	VALUE(9, p_lda);
	VALUE(10, p_B);
	VALUE(11, p_ldb);
	VALUE(12, p_batchCount);
	return (cublasStatus_t)(puregpu_echo.fail ? 928 : 0);
}

cublasStatus_t cublasStrsmBatched_64(cublasHandle_t p_handle, cublasSideMode_t p_side, cublasFillMode_t p_uplo, cublasOperation_t p_trans, cublasDiagType_t p_diag, int64_t p_m, int64_t p_n, const float *p_alpha, const float **p_A, int64_t p_lda, float **p_B, int64_t p_ldb, int64_t p_batchCount) {
	begin(439);
	VALUE(0, p_handle);
	VALUE(1, p_side);
	VALUE(2, p_uplo);
	VALUE(3, p_trans);
	VALUE(4, p_diag);
	VALUE(5, p_m);
	VALUE(6, p_n);
	VALUE(7, p_alpha);
	MEMORY(7, p_alpha, sizeof *p_alpha);
	VALUE(8, p_A);
	VALUE(9, p_lda);
	VALUE(10, p_B);
	VALUE(11, p_ldb);
	VALUE(12, p_batchCount);
	return (cublasStatus_t)(puregpu_echo.fail ? 928 : 0);
}

cublasStatus_t cublasDtrsmBatched(cublasHandle_t p_handle, cublasSideMode_t p_side, cublasFillMode_t p_uplo, cublasOperation_t p_trans, cublasDiagType_t p_diag, int p_m, int p_n, const double *p_alpha, const double **p_A, int p_lda, double **p_B, int p_ldb, int p_batchCount) {
	begin(440);
	VALUE(0, p_handle);
	VALUE(1, p_side);
	VALUE(2, p_uplo);
	VALUE(3, p_trans);
	VALUE(4, p_diag);
	VALUE(5, p_m);
	VALUE(6, p_n);
	VALUE(7, p_alpha);
	MEMORY(7, p_alpha, sizeof *p_alpha);
	VALUE(8, p_A);
	VALUE(9, p_lda);
	VALUE(10, p_B);
	VALUE(11, p_ldb);
	VALUE(12, p_batchCount);
	return (cublasStatus_t)(puregpu_echo.fail ? 967 : 0);
}

cublasStatus_t cublasDtrsmBatched_64(cublasHandle_t p_handle, cublasSideMode_t p_side, cublasFillMode_t p_uplo, cublasOperation_t p_trans, cublasDiagType_t p_diag, int64_t p_m, int64_t p_n, const double *p_alpha, const double **p_A, int64_t p_lda, double **p_B, int64_t p_ldb, int64_t p_batchCount) {
	begin(441);
	VALUE(0, p_handle);
	VALUE(1, p_side);
	VALUE(2, p_uplo);
	VALUE(3, p_trans);
	VALUE(4, p_diag);
	VALUE(5, p_m);
	VALUE(6, p_n);
	VALUE(7, p_alpha);
	MEMORY(7, p_alpha, sizeof *p_alpha);
	VALUE(8, p_A);
	VALUE(9, p_lda);
	VALUE(10, p_B);
	VALUE(11, p_ldb);
	VALUE(12, p_batchCount);
	return (cublasStatus_t)(puregpu_echo.fail ? 903 : 0);
}

cublasStatus_t cublasCtrsmBatched(cublasHandle_t p_handle, cublasSideMode_t p_side, cublasFillMode_t p_uplo, cublasOperation_t p_trans, cublasDiagType_t p_diag, int p_m, int p_n, const cuComplex *p_alpha, const cuComplex **p_A, int p_lda, cuComplex **p_B, int p_ldb, int p_batchCount) {
	begin(442);
	VALUE(0, p_handle);
	VALUE(1, p_side);
	VALUE(2, p_uplo);
	VALUE(3, p_trans);
	VALUE(4, p_diag);
	VALUE(5, p_m);
	VALUE(6, p_n);
	VALUE(7, p_alpha);
	MEMORY(7, p_alpha, sizeof *p_alpha);
	VALUE(8, p_A);
	VALUE(9, p_lda);
	VALUE(10, p_B);
	VALUE(11, p_ldb);
	VALUE(12, p_batchCount);
	return (cublasStatus_t)(puregpu_echo.fail ? 933 : 0);
}

cublasStatus_t cublasCtrsmBatched_64(cublasHandle_t p_handle, cublasSideMode_t p_side, cublasFillMode_t p_uplo, cublasOperation_t p_trans, cublasDiagType_t p_diag, int64_t p_m, int64_t p_n, const cuComplex *p_alpha, const cuComplex **p_A, int64_t p_lda, cuComplex **p_B, int64_t p_ldb, int64_t p_batchCount) {
	begin(443);
	VALUE(0, p_handle);
	VALUE(1, p_side);
	VALUE(2, p_uplo);
	VALUE(3, p_trans);
	VALUE(4, p_diag);
	VALUE(5, p_m);
	VALUE(6, p_n);
	VALUE(7, p_alpha);
	MEMORY(7, p_alpha, sizeof *p_alpha);
	VALUE(8, p_A);
	VALUE(9, p_lda);
	VALUE(10, p_B);
	VALUE(11, p_ldb);
	VALUE(12, p_batchCount);
	return (cublasStatus_t)(puregpu_echo.fail ? 950 : 0);
}

cublasStatus_t cublasZtrsmBatched(cublasHandle_t p_handle, cublasSideMode_t p_side, cublasFillMode_t p_uplo, cublasOperation_t p_trans, cublasDiagType_t p_diag, int p_m, int p_n, const cuDoubleComplex *p_alpha, const cuDoubleComplex **p_A, int p_lda, cuDoubleComplex **p_B, int p_ldb, int p_batchCount) {
	begin(444);
	VALUE(0, p_handle);
	VALUE(1, p_side);
	VALUE(2, p_uplo);
	VALUE(3, p_trans);
	VALUE(4, p_diag);
	VALUE(5, p_m);
	VALUE(6, p_n);
	VALUE(7, p_alpha);
	MEMORY(7, p_alpha, sizeof *p_alpha);
	VALUE(8, p_A);
	VALUE(9, p_lda);
	VALUE(10, p_B);
	VALUE(11, p_ldb);
	VALUE(12, p_batchCount);
	return (cublasStatus_t)(puregpu_echo.fail ? 911 : 0);
}

cublasStatus_t cublasZtrsmBatched_64(cublasHandle_t p_handle, cublasSideMode_t p_side, cublasFillMode_t p_uplo, cublasOperation_t p_trans, cublasDiagType_t p_diag, int64_t p_m, int64_t p_n, const cuDoubleComplex *p_alpha, const cuDoubleComplex **p_A, int64_t p_lda, cuDoubleComplex **p_B, int64_t p_ldb, int64_t p_batchCount) {
	begin(445);
	VALUE(0, p_handle);
	VALUE(1, p_side);
	VALUE(2, p_uplo);
	VALUE(3, p_trans);
	VALUE(4, p_diag);
	VALUE(5, p_m);
	VALUE(6, p_n);
	VALUE(7, p_alpha);
	MEMORY(7, p_alpha, sizeof *p_alpha);
	VALUE(8, p_A);
	VALUE(9, p_lda);
	VALUE(10, p_B);
	VALUE(11, p_ldb);
	VALUE(12, p_batchCount);
	return (cublasStatus_t)(puregpu_echo.fail ? 940 : 0);
}

cublasStatus_t cublasSdgmm(cublasHandle_t p_handle, cublasSideMode_t p_mode, int p_m, int p_n, const float *p_A, int p_lda, const float *p_x, int p_incx, float *p_C, int p_ldc) {
	begin(446);
	VALUE(0, p_handle);
	VALUE(1, p_mode);
	VALUE(2, p_m);
	VALUE(3, p_n);
	VALUE(4, p_A);
	VALUE(5, p_lda);
	VALUE(6, p_x);
	VALUE(7, p_incx);
	VALUE(8, p_C);
	VALUE(9, p_ldc);
	return (cublasStatus_t)(puregpu_echo.fail ? 916 : 0);
}

cublasStatus_t cublasSdgmm_64(cublasHandle_t p_handle, cublasSideMode_t p_mode, int64_t p_m, int64_t p_n, const float *p_A, int64_t p_lda, const float *p_x, int64_t p_incx, float *p_C, int64_t p_ldc) {
	begin(447);
	VALUE(0, p_handle);
	VALUE(1, p_mode);
	VALUE(2, p_m);
	VALUE(3, p_n);
	VALUE(4, p_A);
	VALUE(5, p_lda);
	VALUE(6, p_x);
	VALUE(7, p_incx);
	VALUE(8, p_C);
	VALUE(9, p_ldc);
	return (cublasStatus_t)(puregpu_echo.fail ? 921 : 0);
}

cublasStatus_t cublasDdgmm(cublasHandle_t p_handle, cublasSideMode_t p_mode, int p_m, int p_n, const double *p_A, int p_lda, const double *p_x, int p_incx, double *p_C, int p_ldc) {
	begin(448);
	VALUE(0, p_handle);
	VALUE(1, p_mode);
	VALUE(2, p_m);
	VALUE(3, p_n);
	VALUE(4, p_A);
	VALUE(5, p_lda);
	VALUE(6, p_x);
	VALUE(7, p_incx);
	VALUE(8, p_C);
	VALUE(9, p_ldc);
	return (cublasStatus_t)(puregpu_echo.fail ? 930 : 0);
}

cublasStatus_t cublasDdgmm_64(cublasHandle_t p_handle, cublasSideMode_t p_mode, int64_t p_m, int64_t p_n, const double *p_A, int64_t p_lda, const double *p_x, int64_t p_incx, double *p_C, int64_t p_ldc) {
	begin(449);
	VALUE(0, p_handle);
	VALUE(1, p_mode);
	VALUE(2, p_m);
	VALUE(3, p_n);
	VALUE(4, p_A);
	VALUE(5, p_lda);
	VALUE(6, p_x);
	VALUE(7, p_incx);
	VALUE(8, p_C);
	VALUE(9, p_ldc);
	return (cublasStatus_t)(puregpu_echo.fail ? 944 : 0);
}

cublasStatus_t cublasCdgmm(cublasHandle_t p_handle, cublasSideMode_t p_mode, int p_m, int p_n, const cuComplex *p_A, int p_lda, const cuComplex *p_x, int p_incx, cuComplex *p_C, int p_ldc) {
	begin(450);
	VALUE(0, p_handle);
	VALUE(1, p_mode);
	VALUE(2, p_m);
	VALUE(3, p_n);
	VALUE(4, p_A);
	VALUE(5, p_lda);
	VALUE(6, p_x);
	VALUE(7, p_incx);
	VALUE(8, p_C);
	VALUE(9, p_ldc);
	return (cublasStatus_t)(puregpu_echo.fail ? 957 : 0);
}

cublasStatus_t cublasCdgmm_64(cublasHandle_t p_handle, cublasSideMode_t p_mode, int64_t p_m, int64_t p_n, const cuComplex *p_A, int64_t p_lda, const cuComplex *p_x, int64_t p_incx, cuComplex *p_C, int64_t p_ldc) {
	begin(451);
	VALUE(0, p_handle);
	VALUE(1, p_mode);
	VALUE(2, p_m);
	VALUE(3, p_n);
	VALUE(4, p_A);
	VALUE(5, p_lda);
	VALUE(6, p_x);
	VALUE(7, p_incx);
	VALUE(8, p_C);
	VALUE(9, p_ldc);
	return (cublasStatus_t)(puregpu_echo.fail ? 979 : 0);
}

cublasStatus_t cublasZdgmm(cublasHandle_t p_handle, cublasSideMode_t p_mode, int p_m, int p_n, const cuDoubleComplex *p_A, int p_lda, const cuDoubleComplex *p_x, int p_incx, cuDoubleComplex *p_C, int p_ldc) {
	begin(452);
	VALUE(0, p_handle);
	VALUE(1, p_mode);
	VALUE(2, p_m);
	VALUE(3, p_n);
	VALUE(4, p_A);
	VALUE(5, p_lda);
	VALUE(6, p_x);
	VALUE(7, p_incx);
	VALUE(8, p_C);
	VALUE(9, p_ldc);
	return (cublasStatus_t)(puregpu_echo.fail ? 936 : 0);
}

cublasStatus_t cublasZdgmm_64(cublasHandle_t p_handle, cublasSideMode_t p_mode, int64_t p_m, int64_t p_n, const cuDoubleComplex *p_A, int64_t p_lda, const cuDoubleComplex *p_x, int64_t p_incx, cuDoubleComplex *p_C, int64_t p_ldc) {
	begin(453);
	VALUE(0, p_handle);
	VALUE(1, p_mode);
	VALUE(2, p_m);
	VALUE(3, p_n);
	VALUE(4, p_A);
	VALUE(5, p_lda);
	VALUE(6, p_x);
	VALUE(7, p_incx);
	VALUE(8, p_C);
	VALUE(9, p_ldc);
	return (cublasStatus_t)(puregpu_echo.fail ? 930 : 0);
}

cublasStatus_t cublasSmatinvBatched(cublasHandle_t p_handle, int p_n, const float **p_A, int p_lda, float **p_Ainv, int p_lda_inv, int *p_info, int p_batchSize) {
	begin(454);
	VALUE(0, p_handle);
	VALUE(1, p_n);
	VALUE(2, p_A);
	VALUE(3, p_lda);
	VALUE(4, p_Ainv);
	VALUE(5, p_lda_inv);
	VALUE(6, p_info);
	VALUE(7, p_batchSize);
	return (cublasStatus_t)(puregpu_echo.fail ? 978 : 0);
}

cublasStatus_t cublasDmatinvBatched(cublasHandle_t p_handle, int p_n, const double **p_A, int p_lda, double **p_Ainv, int p_lda_inv, int *p_info, int p_batchSize) {
	begin(455);
	VALUE(0, p_handle);
	VALUE(1, p_n);
	VALUE(2, p_A);
	VALUE(3, p_lda);
	VALUE(4, p_Ainv);
	VALUE(5, p_lda_inv);
	VALUE(6, p_info);
	VALUE(7, p_batchSize);
	return (cublasStatus_t)(puregpu_echo.fail ? 944 : 0);
}

cublasStatus_t cublasCmatinvBatched(cublasHandle_t p_handle, int p_n, const cuComplex **p_A, int p_lda, cuComplex **p_Ainv, int p_lda_inv, int *p_info, int p_batchSize) {
	begin(456);
	VALUE(0, p_handle);
	VALUE(1, p_n);
	VALUE(2, p_A);
	VALUE(3, p_lda);
	VALUE(4, p_Ainv);
	VALUE(5, p_lda_inv);
	VALUE(6, p_info);
	VALUE(7, p_batchSize);
	return (cublasStatus_t)(puregpu_echo.fail ? 916 : 0);
}

cublasStatus_t cublasZmatinvBatched(cublasHandle_t p_handle, int p_n, const cuDoubleComplex **p_A, int p_lda, cuDoubleComplex **p_Ainv, int p_lda_inv, int *p_info, int p_batchSize) {
	begin(457);
	VALUE(0, p_handle);
	VALUE(1, p_n);
	VALUE(2, p_A);
	VALUE(3, p_lda);
	VALUE(4, p_Ainv);
	VALUE(5, p_lda_inv);
	VALUE(6, p_info);
	VALUE(7, p_batchSize);
	return (cublasStatus_t)(puregpu_echo.fail ? 957 : 0);
}

cublasStatus_t cublasSgeqrfBatched(cublasHandle_t p_handle, int p_m, int p_n, float **p_Aarray, int p_lda, float **p_TauArray, int *p_info, int p_batchSize) {
	begin(458);
	VALUE(0, p_handle);
	VALUE(1, p_m);
	VALUE(2, p_n);
	VALUE(3, p_Aarray);
	VALUE(4, p_lda);
	VALUE(5, p_TauArray);
	VALUE(6, p_info);
	VALUE(7, p_batchSize);
	fill(p_info, sizeof *p_info, 0xc0b928f636d8b7f5u, 0, 0);
	return (cublasStatus_t)(puregpu_echo.fail ? 911 : 0);
}

cublasStatus_t cublasDgeqrfBatched(cublasHandle_t p_handle, int p_m, int p_n, double **p_Aarray, int p_lda, double **p_TauArray, int *p_info, int p_batchSize) {
	begin(459);
	VALUE(0, p_handle);
	VALUE(1, p_m);
	VALUE(2, p_n);
	VALUE(3, p_Aarray);
	VALUE(4, p_lda);
	VALUE(5, p_TauArray);
	VALUE(6, p_info);
	VALUE(7, p_batchSize);
	fill(p_info, sizeof *p_info, 0x6c42985088d20a58u, 0, 0);
	return (cublasStatus_t)(puregpu_echo.fail ? 957 : 0);
}

cublasStatus_t cublasCgeqrfBatched(cublasHandle_t p_handle, int p_m, int p_n, cuComplex **p_Aarray, int p_lda, cuComplex **p_TauArray, int *p_info, int p_batchSize) {
	begin(460);
	VALUE(0, p_handle);
	VALUE(1, p_m);
	VALUE(2, p_n);
	VALUE(3, p_Aarray);
	VALUE(4, p_lda);
	VALUE(5, p_TauArray);
	VALUE(6, p_info);
	VALUE(7, p_batchSize);
	fill(p_info, sizeof *p_info, 0x1cbc446f98d42365u, 0, 0);
	return (cublasStatus_t)(puregpu_echo.fail ? 934 : 0);
}

cublasStatus_t cublasZgeqrfBatched(cublasHandle_t p_handle, int p_m, int p_n, cuDoubleComplex **p_Aarray, int p_lda, cuDoubleComplex **p_TauArray, int *p_info, int p_batchSize) {
	begin(461);
	VALUE(0, p_handle);
	VALUE(1, p_m);
	VALUE(2, p_n);
	VALUE(3, p_Aarray);
	VALUE(4, p_lda);
	VALUE(5, p_TauArray);
	VALUE(6, p_info);
	VALUE(7, p_batchSize);
	fill(p_info, sizeof *p_info, 0x5058246ceeb04e8au, 0, 0);
	return (cublasStatus_t)(puregpu_echo.fail ? 937 : 0);
}

cublasStatus_t cublasSgelsBatched(cublasHandle_t p_handle, cublasOperation_t p_trans, int p_m, int p_n, int p_nrhs, float **p_Aarray, int p_lda, float **p_Carray, int p_ldc, int *p_info, int *p_devInfoArray, int p_batchSize) {
	begin(462);
	VALUE(0, p_handle);
	VALUE(1, p_trans);
	VALUE(2, p_m);
	VALUE(3, p_n);
	VALUE(4, p_nrhs);
	VALUE(5, p_Aarray);
	VALUE(6, p_lda);
	VALUE(7, p_Carray);
	VALUE(8, p_ldc);
	VALUE(9, p_info);
	VALUE(10, p_devInfoArray);
	VALUE(11, p_batchSize);
	fill(p_info, sizeof *p_info, 0xde7d387fd2559ceu, 0, 0);
	return (cublasStatus_t)(puregpu_echo.fail ? 927 : 0);
}

cublasStatus_t cublasDgelsBatched(cublasHandle_t p_handle, cublasOperation_t p_trans, int p_m, int p_n, int p_nrhs, double **p_Aarray, int p_lda, double **p_Carray, int p_ldc, int *p_info, int *p_devInfoArray, int p_batchSize) {
	begin(463);
	VALUE(0, p_handle);
	VALUE(1, p_trans);
	VALUE(2, p_m);
	VALUE(3, p_n);
	VALUE(4, p_nrhs);
	VALUE(5, p_Aarray);
	VALUE(6, p_lda);
	VALUE(7, p_Carray);
	VALUE(8, p_ldc);
	VALUE(9, p_info);
	VALUE(10, p_devInfoArray);
	VALUE(11, p_batchSize);
	fill(p_info, sizeof *p_info, 0x53395076be296b91u, 0, 0);
	return (cublasStatus_t)(puregpu_echo.fail ? 979 : 0);
}

cublasStatus_t cublasCgelsBatched(cublasHandle_t p_handle, cublasOperation_t p_trans, int p_m, int p_n, int p_nrhs, cuComplex **p_Aarray, int p_lda, cuComplex **p_Carray, int p_ldc, int *p_info, int *p_devInfoArray, int p_batchSize) {
	begin(464);
	VALUE(0, p_handle);
	VALUE(1, p_trans);
	VALUE(2, p_m);
	VALUE(3, p_n);
	VALUE(4, p_nrhs);
	VALUE(5, p_Aarray);
	VALUE(6, p_lda);
	VALUE(7, p_Carray);
	VALUE(8, p_ldc);
	VALUE(9, p_info);
	VALUE(10, p_devInfoArray);
	VALUE(11, p_batchSize);
	fill(p_info, sizeof *p_info, 0xc21276aea475863eu, 0, 0);
	return (cublasStatus_t)(puregpu_echo.fail ? 971 : 0);
}

cublasStatus_t cublasZgelsBatched(cublasHandle_t p_handle, cublasOperation_t p_trans, int p_m, int p_n, int p_nrhs, cuDoubleComplex **p_Aarray, int p_lda, cuDoubleComplex **p_Carray, int p_ldc, int *p_info, int *p_devInfoArray, int p_batchSize) {
	begin(465);
	VALUE(0, p_handle);
	VALUE(1, p_trans);
	VALUE(2, p_m);
	VALUE(3, p_n);
	VALUE(4, p_nrhs);
	VALUE(5, p_Aarray);
	VALUE(6, p_lda);
	VALUE(7, p_Carray);
	VALUE(8, p_ldc);
	VALUE(9, p_info);
	VALUE(10, p_devInfoArray);
	VALUE(11, p_batchSize);
	fill(p_info, sizeof *p_info, 0xaadc8e2b86a95e7fu, 0, 0);
	return (cublasStatus_t)(puregpu_echo.fail ? 943 : 0);
}

cublasStatus_t cublasStpttr(cublasHandle_t p_handle, cublasFillMode_t p_uplo, int p_n, const float *p_AP, float *p_A, int p_lda) {
	begin(466);
	VALUE(0, p_handle);
	VALUE(1, p_uplo);
	VALUE(2, p_n);
	VALUE(3, p_AP);
	VALUE(4, p_A);
	VALUE(5, p_lda);
	return (cublasStatus_t)(puregpu_echo.fail ? 952 : 0);
}

cublasStatus_t cublasDtpttr(cublasHandle_t p_handle, cublasFillMode_t p_uplo, int p_n, const double *p_AP, double *p_A, int p_lda) {
	begin(467);
	VALUE(0, p_handle);
	VALUE(1, p_uplo);
	VALUE(2, p_n);
	VALUE(3, p_AP);
	VALUE(4, p_A);
	VALUE(5, p_lda);
	return (cublasStatus_t)(puregpu_echo.fail ? 972 : 0);
}

cublasStatus_t cublasCtpttr(cublasHandle_t p_handle, cublasFillMode_t p_uplo, int p_n, const cuComplex *p_AP, cuComplex *p_A, int p_lda) {
	begin(468);
	VALUE(0, p_handle);
	VALUE(1, p_uplo);
	VALUE(2, p_n);
	VALUE(3, p_AP);
	VALUE(4, p_A);
	VALUE(5, p_lda);
	return (cublasStatus_t)(puregpu_echo.fail ? 965 : 0);
}

cublasStatus_t cublasZtpttr(cublasHandle_t p_handle, cublasFillMode_t p_uplo, int p_n, const cuDoubleComplex *p_AP, cuDoubleComplex *p_A, int p_lda) {
	begin(469);
	VALUE(0, p_handle);
	VALUE(1, p_uplo);
	VALUE(2, p_n);
	VALUE(3, p_AP);
	VALUE(4, p_A);
	VALUE(5, p_lda);
	return (cublasStatus_t)(puregpu_echo.fail ? 974 : 0);
}

cublasStatus_t cublasStrttp(cublasHandle_t p_handle, cublasFillMode_t p_uplo, int p_n, const float *p_A, int p_lda, float *p_AP) {
	begin(470);
	VALUE(0, p_handle);
	VALUE(1, p_uplo);
	VALUE(2, p_n);
	VALUE(3, p_A);
	VALUE(4, p_lda);
	VALUE(5, p_AP);
	return (cublasStatus_t)(puregpu_echo.fail ? 916 : 0);
}

cublasStatus_t cublasDtrttp(cublasHandle_t p_handle, cublasFillMode_t p_uplo, int p_n, const double *p_A, int p_lda, double *p_AP) {
	begin(471);
	VALUE(0, p_handle);
	VALUE(1, p_uplo);
	VALUE(2, p_n);
	VALUE(3, p_A);
	VALUE(4, p_lda);
	VALUE(5, p_AP);
	return (cublasStatus_t)(puregpu_echo.fail ? 980 : 0);
}

cublasStatus_t cublasCtrttp(cublasHandle_t p_handle, cublasFillMode_t p_uplo, int p_n, const cuComplex *p_A, int p_lda, cuComplex *p_AP) {
	begin(472);
	VALUE(0, p_handle);
	VALUE(1, p_uplo);
	VALUE(2, p_n);
	VALUE(3, p_A);
	VALUE(4, p_lda);
	VALUE(5, p_AP);
	return (cublasStatus_t)(puregpu_echo.fail ? 924 : 0);
}

cublasStatus_t cublasZtrttp(cublasHandle_t p_handle, cublasFillMode_t p_uplo, int p_n, const cuDoubleComplex *p_A, int p_lda, cuDoubleComplex *p_AP) {
	begin(473);
	VALUE(0, p_handle);
	VALUE(1, p_uplo);
	VALUE(2, p_n);
	VALUE(3, p_A);
	VALUE(4, p_lda);
	VALUE(5, p_AP);
	return (cublasStatus_t)(puregpu_echo.fail ? 983 : 0);
}

cublasStatus_t cublasSgetrfBatched(cublasHandle_t p_handle, int p_n, float **p_A, int p_lda, int *p_P, int *p_info, int p_batchSize) {
	begin(474);
	VALUE(0, p_handle);
	VALUE(1, p_n);
	VALUE(2, p_A);
	VALUE(3, p_lda);
	VALUE(4, p_P);
	VALUE(5, p_info);
	VALUE(6, p_batchSize);
	return (cublasStatus_t)(puregpu_echo.fail ? 925 : 0);
}

cublasStatus_t cublasDgetrfBatched(cublasHandle_t p_handle, int p_n, double **p_A, int p_lda, int *p_P, int *p_info, int p_batchSize) {
	begin(475);
	VALUE(0, p_handle);
	VALUE(1, p_n);
	VALUE(2, p_A);
	VALUE(3, p_lda);
	VALUE(4, p_P);
	VALUE(5, p_info);
	VALUE(6, p_batchSize);
	return (cublasStatus_t)(puregpu_echo.fail ? 905 : 0);
}

cublasStatus_t cublasCgetrfBatched(cublasHandle_t p_handle, int p_n, cuComplex **p_A, int p_lda, int *p_P, int *p_info, int p_batchSize) {
	begin(476);
	VALUE(0, p_handle);
	VALUE(1, p_n);
	VALUE(2, p_A);
	VALUE(3, p_lda);
	VALUE(4, p_P);
	VALUE(5, p_info);
	VALUE(6, p_batchSize);
	return (cublasStatus_t)(puregpu_echo.fail ? 966 : 0);
}

cublasStatus_t cublasZgetrfBatched(cublasHandle_t p_handle, int p_n, cuDoubleComplex **p_A, int p_lda, int *p_P, int *p_info, int p_batchSize) {
	begin(477);
	VALUE(0, p_handle);
	VALUE(1, p_n);
	VALUE(2, p_A);
	VALUE(3, p_lda);
	VALUE(4, p_P);
	VALUE(5, p_info);
	VALUE(6, p_batchSize);
	return (cublasStatus_t)(puregpu_echo.fail ? 983 : 0);
}

cublasStatus_t cublasSgetriBatched(cublasHandle_t p_handle, int p_n, const float **p_A, int p_lda, const int *p_P, float **p_C, int p_ldc, int *p_info, int p_batchSize) {
	begin(478);
	VALUE(0, p_handle);
	VALUE(1, p_n);
	VALUE(2, p_A);
	VALUE(3, p_lda);
	VALUE(4, p_P);
	VALUE(5, p_C);
	VALUE(6, p_ldc);
	VALUE(7, p_info);
	VALUE(8, p_batchSize);
	return (cublasStatus_t)(puregpu_echo.fail ? 939 : 0);
}

cublasStatus_t cublasDgetriBatched(cublasHandle_t p_handle, int p_n, const double **p_A, int p_lda, const int *p_P, double **p_C, int p_ldc, int *p_info, int p_batchSize) {
	begin(479);
	VALUE(0, p_handle);
	VALUE(1, p_n);
	VALUE(2, p_A);
	VALUE(3, p_lda);
	VALUE(4, p_P);
	VALUE(5, p_C);
	VALUE(6, p_ldc);
	VALUE(7, p_info);
	VALUE(8, p_batchSize);
	return (cublasStatus_t)(puregpu_echo.fail ? 968 : 0);
}

cublasStatus_t cublasCgetriBatched(cublasHandle_t p_handle, int p_n, const cuComplex **p_A, int p_lda, const int *p_P, cuComplex **p_C, int p_ldc, int *p_info, int p_batchSize) {
	begin(480);
	VALUE(0, p_handle);
	VALUE(1, p_n);
	VALUE(2, p_A);
	VALUE(3, p_lda);
	VALUE(4, p_P);
	VALUE(5, p_C);
	VALUE(6, p_ldc);
	VALUE(7, p_info);
	VALUE(8, p_batchSize);
	return (cublasStatus_t)(puregpu_echo.fail ? 988 : 0);
}

cublasStatus_t cublasZgetriBatched(cublasHandle_t p_handle, int p_n, const cuDoubleComplex **p_A, int p_lda, const int *p_P, cuDoubleComplex **p_C, int p_ldc, int *p_info, int p_batchSize) {
	begin(481);
	VALUE(0, p_handle);
	VALUE(1, p_n);
	VALUE(2, p_A);
	VALUE(3, p_lda);
	VALUE(4, p_P);
	VALUE(5, p_C);
	VALUE(6, p_ldc);
	VALUE(7, p_info);
	VALUE(8, p_batchSize);
	return (cublasStatus_t)(puregpu_echo.fail ? 956 : 0);
}

cublasStatus_t cublasSgetrsBatched(cublasHandle_t p_handle, cublasOperation_t p_trans, int p_n, int p_nrhs, const float **p_Aarray, int p_lda, const int *p_devIpiv, float **p_Barray, int p_ldb, int *p_info, int p_batchSize) {
	begin(482);
	VALUE(0, p_handle);
	VALUE(1, p_trans);
	VALUE(2, p_n);
	VALUE(3, p_nrhs);
	VALUE(4, p_Aarray);
	VALUE(5, p_lda);
	VALUE(6, p_devIpiv);
	VALUE(7, p_Barray);
	VALUE(8, p_ldb);
	VALUE(9, p_info);
	VALUE(10, p_batchSize);
	fill(p_info, sizeof *p_info, 0x448b402506dc68cu, 0, 0);
	return (cublasStatus_t)(puregpu_echo.fail ? 903 : 0);
}

cublasStatus_t cublasDgetrsBatched(cublasHandle_t p_handle, cublasOperation_t p_trans, int p_n, int p_nrhs, const double **p_Aarray, int p_lda, const int *p_devIpiv, double **p_Barray, int p_ldb, int *p_info, int p_batchSize) {
	begin(483);
	VALUE(0, p_handle);
	VALUE(1, p_trans);
	VALUE(2, p_n);
	VALUE(3, p_nrhs);
	VALUE(4, p_Aarray);
	VALUE(5, p_lda);
	VALUE(6, p_devIpiv);
	VALUE(7, p_Barray);
	VALUE(8, p_ldb);
	VALUE(9, p_info);
	VALUE(10, p_batchSize);
	fill(p_info, sizeof *p_info, 0x7bf92f1dc087a59u, 0, 0);
	return (cublasStatus_t)(puregpu_echo.fail ? 926 : 0);
}

cublasStatus_t cublasCgetrsBatched(cublasHandle_t p_handle, cublasOperation_t p_trans, int p_n, int p_nrhs, const cuComplex **p_Aarray, int p_lda, const int *p_devIpiv, cuComplex **p_Barray, int p_ldb, int *p_info, int p_batchSize) {
	begin(484);
	VALUE(0, p_handle);
	VALUE(1, p_trans);
	VALUE(2, p_n);
	VALUE(3, p_nrhs);
	VALUE(4, p_Aarray);
	VALUE(5, p_lda);
	VALUE(6, p_devIpiv);
	VALUE(7, p_Barray);
	VALUE(8, p_ldb);
	VALUE(9, p_info);
	VALUE(10, p_batchSize);
	fill(p_info, sizeof *p_info, 0x9ba5ced6a0d5709cu, 0, 0);
	return (cublasStatus_t)(puregpu_echo.fail ? 960 : 0);
}

cublasStatus_t cublasZgetrsBatched(cublasHandle_t p_handle, cublasOperation_t p_trans, int p_n, int p_nrhs, const cuDoubleComplex **p_Aarray, int p_lda, const int *p_devIpiv, cuDoubleComplex **p_Barray, int p_ldb, int *p_info, int p_batchSize) {
	begin(485);
	VALUE(0, p_handle);
	VALUE(1, p_trans);
	VALUE(2, p_n);
	VALUE(3, p_nrhs);
	VALUE(4, p_Aarray);
	VALUE(5, p_lda);
	VALUE(6, p_devIpiv);
	VALUE(7, p_Barray);
	VALUE(8, p_ldb);
	VALUE(9, p_info);
	VALUE(10, p_batchSize);
	fill(p_info, sizeof *p_info, 0x2bc283911547ad4fu, 0, 0);
	return (cublasStatus_t)(puregpu_echo.fail ? 981 : 0);
}

cublasStatus_t cublasUint8gemmBias(cublasHandle_t p_handle, cublasOperation_t p_transa, cublasOperation_t p_transb, cublasOperation_t p_transc, int p_m, int p_n, int p_k, const unsigned char *p_A, int p_A_bias, int p_lda, const unsigned char *p_B, int p_B_bias, int p_ldb, unsigned char *p_C, int p_C_bias, int p_ldc, int p_C_mult, int p_C_shift) {
	begin(486);
	VALUE(0, p_handle);
	VALUE(1, p_transa);
	VALUE(2, p_transb);
	VALUE(3, p_transc);
	VALUE(4, p_m);
	VALUE(5, p_n);
	VALUE(6, p_k);
	VALUE(7, p_A);
	VALUE(8, p_A_bias);
	VALUE(9, p_lda);
	VALUE(10, p_B);
	VALUE(11, p_B_bias);
	VALUE(12, p_ldb);
	VALUE(13, p_C);
	VALUE(14, p_C_bias);
	VALUE(15, p_ldc);
	VALUE(16, p_C_mult);
	VALUE(17, p_C_shift);
	return (cublasStatus_t)(puregpu_echo.fail ? 966 : 0);
}

cublasStatus_t cublasLtCreate(cublasLtHandle_t *p_lightHandle) {
	begin(487);
	VALUE(0, p_lightHandle);
	fill(p_lightHandle, sizeof *p_lightHandle, 0x6981d42bdb237ec8u, 0, 0);
	return (cublasStatus_t)(puregpu_echo.fail ? 954 : 0);
}

cublasStatus_t cublasLtDestroy(cublasLtHandle_t p_lightHandle) {
	begin(488);
	VALUE(0, p_lightHandle);
	return (cublasStatus_t)(puregpu_echo.fail ? 974 : 0);
}

const char *cublasLtGetStatusName(cublasStatus_t p_status) {
	begin(489);
	VALUE(0, p_status);
	return "cublasLtGetStatusName";
}

const char *cublasLtGetStatusString(cublasStatus_t p_status) {
	begin(490);
	VALUE(0, p_status);
	return "cublasLtGetStatusString";
}

size_t cublasLtGetVersion(void) {
	begin(491);
	return (size_t)(uintptr_t)(puregpu_echo.fail == 2 ? 0 : 930);
}

size_t cublasLtGetCudartVersion(void) {
	begin(492);
	return (size_t)(uintptr_t)(puregpu_echo.fail == 2 ? 0 : 938);
}

cublasStatus_t cublasLtGetProperty(libraryPropertyType p_type, int *p_value) {
	begin(493);
	VALUE(0, p_type);
	VALUE(1, p_value);
	fill(p_value, sizeof *p_value, 0xa4e87f586b927480u, 0, 0);
	return (cublasStatus_t)(puregpu_echo.fail ? 954 : 0);
}

cublasStatus_t cublasLtHeuristicsCacheGetCapacity(size_t *p_capacity) {
	begin(494);
	VALUE(0, p_capacity);
	fill(p_capacity, sizeof *p_capacity, 0x5d8cf2f502c18cd7u, 0, 0);
	return (cublasStatus_t)(puregpu_echo.fail ? 903 : 0);
}

cublasStatus_t cublasLtHeuristicsCacheSetCapacity(size_t p_capacity) {
	begin(495);
	VALUE(0, p_capacity);
	return (cublasStatus_t)(puregpu_echo.fail ? 947 : 0);
}

cublasStatus_t cublasLtMatmul(cublasLtHandle_t p_lightHandle, cublasLtMatmulDesc_t p_computeDesc, const void *p_alpha, const void *p_A, cublasLtMatrixLayout_t p_Adesc, const void *p_B, cublasLtMatrixLayout_t p_Bdesc, const void *p_beta, const void *p_C, cublasLtMatrixLayout_t p_Cdesc, void *p_D, cublasLtMatrixLayout_t p_Ddesc, const cublasLtMatmulAlgo_t *p_algo, void *p_workspace, size_t p_workspaceSizeInBytes, cudaStream_t p_stream) {
	begin(496);
	VALUE(0, p_lightHandle);
	VALUE(1, p_computeDesc);
	VALUE(2, p_alpha);
	VALUE(3, p_A);
	VALUE(4, p_Adesc);
	VALUE(5, p_B);
	VALUE(6, p_Bdesc);
	VALUE(7, p_beta);
	VALUE(8, p_C);
	VALUE(9, p_Cdesc);
	VALUE(10, p_D);
	VALUE(11, p_Ddesc);
	VALUE(12, p_algo);
	MEMORY(12, p_algo, sizeof *p_algo);
	VALUE(13, p_workspace);
	VALUE(14, p_workspaceSizeInBytes);
	VALUE(15, p_stream);
	return (cublasStatus_t)(puregpu_echo.fail ? 942 : 0);
}

cublasStatus_t cublasLtMatrixTransform(cublasLtHandle_t p_lightHandle, cublasLtMatrixTransformDesc_t p_transformDesc, const void *p_alpha, const void *p_A, cublasLtMatrixLayout_t p_Adesc, const void *p_beta, const void *p_B, cublasLtMatrixLayout_t p_Bdesc, void *p_C, cublasLtMatrixLayout_t p_Cdesc, cudaStream_t p_stream) {
	begin(497);
	VALUE(0, p_lightHandle);
	VALUE(1, p_transformDesc);
	VALUE(2, p_alpha);
	VALUE(3, p_A);
	VALUE(4, p_Adesc);
	VALUE(5, p_beta);
	VALUE(6, p_B);
	VALUE(7, p_Bdesc);
	VALUE(8, p_C);
	VALUE(9, p_Cdesc);
	VALUE(10, p_stream);
	return (cublasStatus_t)(puregpu_echo.fail ? 973 : 0);
}

cublasStatus_t cublasLtMatrixLayoutCreate(cublasLtMatrixLayout_t *p_matLayout, cudaDataType p_type, uint64_t p_rows, uint64_t p_cols, int64_t p_ld) {
	begin(498);
	VALUE(0, p_matLayout);
	VALUE(1, p_type);
	VALUE(2, p_rows);
	VALUE(3, p_cols);
	VALUE(4, p_ld);
	fill(p_matLayout, sizeof *p_matLayout, 0x2a6207ed1741753fu, 0, 0);
	return (cublasStatus_t)(puregpu_echo.fail ? 951 : 0);
}

cublasStatus_t cublasLtMatrixLayoutDestroy(cublasLtMatrixLayout_t p_matLayout) {
	begin(499);
	VALUE(0, p_matLayout);
	return (cublasStatus_t)(puregpu_echo.fail ? 904 : 0);
}

cublasStatus_t cublasLtMatrixLayoutSetAttribute(cublasLtMatrixLayout_t p_matLayout, cublasLtMatrixLayoutAttribute_t p_attr, const void *p_buf, size_t p_sizeInBytes) {
	begin(500);
	VALUE(0, p_matLayout);
	VALUE(1, p_attr);
	VALUE(2, p_buf);
	VALUE(3, p_sizeInBytes);
	return (cublasStatus_t)(puregpu_echo.fail ? 930 : 0);
}

cublasStatus_t cublasLtMatrixLayoutGetAttribute(cublasLtMatrixLayout_t p_matLayout, cublasLtMatrixLayoutAttribute_t p_attr, void *p_buf, size_t p_sizeInBytes, size_t *p_sizeWritten) {
	begin(501);
	VALUE(0, p_matLayout);
	VALUE(1, p_attr);
	VALUE(2, p_buf);
	VALUE(3, p_sizeInBytes);
	VALUE(4, p_sizeWritten);
	fill(p_sizeWritten, sizeof *p_sizeWritten, 0xb47c077106fe0993u, 0, 0);
	return (cublasStatus_t)(puregpu_echo.fail ? 924 : 0);
}

cublasStatus_t cublasLtMatmulDescCreate(cublasLtMatmulDesc_t *p_matmulDesc, cublasComputeType_t p_computeType, cudaDataType_t p_scaleType) {
	begin(502);
	VALUE(0, p_matmulDesc);
	VALUE(1, p_computeType);
	VALUE(2, p_scaleType);
	fill(p_matmulDesc, sizeof *p_matmulDesc, 0xcb524c26423653fdu, 0, 0);
	return (cublasStatus_t)(puregpu_echo.fail ? 903 : 0);
}

cublasStatus_t cublasLtMatmulDescDestroy(cublasLtMatmulDesc_t p_matmulDesc) {
	begin(503);
	VALUE(0, p_matmulDesc);
	return (cublasStatus_t)(puregpu_echo.fail ? 944 : 0);
}

cublasStatus_t cublasLtMatmulDescSetAttribute(cublasLtMatmulDesc_t p_matmulDesc, cublasLtMatmulDescAttributes_t p_attr, const void *p_buf, size_t p_sizeInBytes) {
	begin(504);
	VALUE(0, p_matmulDesc);
	VALUE(1, p_attr);
	VALUE(2, p_buf);
	VALUE(3, p_sizeInBytes);
	return (cublasStatus_t)(puregpu_echo.fail ? 982 : 0);
}

cublasStatus_t cublasLtMatmulDescGetAttribute(cublasLtMatmulDesc_t p_matmulDesc, cublasLtMatmulDescAttributes_t p_attr, void *p_buf, size_t p_sizeInBytes, size_t *p_sizeWritten) {
	begin(505);
	VALUE(0, p_matmulDesc);
	VALUE(1, p_attr);
	VALUE(2, p_buf);
	VALUE(3, p_sizeInBytes);
	VALUE(4, p_sizeWritten);
	fill(p_sizeWritten, sizeof *p_sizeWritten, 0xc5ffa00a82cd9c4du, 0, 0);
	return (cublasStatus_t)(puregpu_echo.fail ? 946 : 0);
}

cublasStatus_t cublasLtMatrixTransformDescCreate(cublasLtMatrixTransformDesc_t *p_transformDesc, cudaDataType p_scaleType) {
	begin(506);
	VALUE(0, p_transformDesc);
	VALUE(1, p_scaleType);
	fill(p_transformDesc, sizeof *p_transformDesc, 0x76c97734839f0534u, 0, 0);
	return (cublasStatus_t)(puregpu_echo.fail ? 980 : 0);
}

cublasStatus_t cublasLtMatrixTransformDescDestroy(cublasLtMatrixTransformDesc_t p_transformDesc) {
	begin(507);
	VALUE(0, p_transformDesc);
	return (cublasStatus_t)(puregpu_echo.fail ? 950 : 0);
}

cublasStatus_t cublasLtMatrixTransformDescSetAttribute(cublasLtMatrixTransformDesc_t p_transformDesc, cublasLtMatrixTransformDescAttributes_t p_attr, const void *p_buf, size_t p_sizeInBytes) {
	begin(508);
	VALUE(0, p_transformDesc);
	VALUE(1, p_attr);
	VALUE(2, p_buf);
	VALUE(3, p_sizeInBytes);
	return (cublasStatus_t)(puregpu_echo.fail ? 918 : 0);
}

cublasStatus_t cublasLtMatrixTransformDescGetAttribute(cublasLtMatrixTransformDesc_t p_transformDesc, cublasLtMatrixTransformDescAttributes_t p_attr, void *p_buf, size_t p_sizeInBytes, size_t *p_sizeWritten) {
	begin(509);
	VALUE(0, p_transformDesc);
	VALUE(1, p_attr);
	VALUE(2, p_buf);
	VALUE(3, p_sizeInBytes);
	VALUE(4, p_sizeWritten);
	fill(p_sizeWritten, sizeof *p_sizeWritten, 0x13faaabaf3615c4cu, 0, 0);
	return (cublasStatus_t)(puregpu_echo.fail ? 973 : 0);
}

cublasStatus_t cublasLtMatmulPreferenceCreate(cublasLtMatmulPreference_t *p_pref) {
	begin(510);
	VALUE(0, p_pref);
	fill(p_pref, sizeof *p_pref, 0xe8853b593a1be555u, 0, 0);
	return (cublasStatus_t)(puregpu_echo.fail ? 921 : 0);
}

cublasStatus_t cublasLtMatmulPreferenceDestroy(cublasLtMatmulPreference_t p_pref) {
	begin(511);
	VALUE(0, p_pref);
	return (cublasStatus_t)(puregpu_echo.fail ? 978 : 0);
}

cublasStatus_t cublasLtMatmulPreferenceSetAttribute(cublasLtMatmulPreference_t p_pref, cublasLtMatmulPreferenceAttributes_t p_attr, const void *p_buf, size_t p_sizeInBytes) {
	begin(512);
	VALUE(0, p_pref);
	VALUE(1, p_attr);
	VALUE(2, p_buf);
	VALUE(3, p_sizeInBytes);
	return (cublasStatus_t)(puregpu_echo.fail ? 914 : 0);
}

cublasStatus_t cublasLtMatmulPreferenceGetAttribute(cublasLtMatmulPreference_t p_pref, cublasLtMatmulPreferenceAttributes_t p_attr, void *p_buf, size_t p_sizeInBytes, size_t *p_sizeWritten) {
	begin(513);
	VALUE(0, p_pref);
	VALUE(1, p_attr);
	VALUE(2, p_buf);
	VALUE(3, p_sizeInBytes);
	VALUE(4, p_sizeWritten);
	fill(p_sizeWritten, sizeof *p_sizeWritten, 0x45b1478accc88835u, 0, 0);
	return (cublasStatus_t)(puregpu_echo.fail ? 920 : 0);
}

cublasStatus_t cublasLtMatmulAlgoGetHeuristic(cublasLtHandle_t p_lightHandle, cublasLtMatmulDesc_t p_operationDesc, cublasLtMatrixLayout_t p_Adesc, cublasLtMatrixLayout_t p_Bdesc, cublasLtMatrixLayout_t p_Cdesc, cublasLtMatrixLayout_t p_Ddesc, cublasLtMatmulPreference_t p_preference, int p_requestedAlgoCount, cublasLtMatmulHeuristicResult_t *p_heuristicResultsArray, int *p_returnAlgoCount) {
	begin(514);
	VALUE(0, p_lightHandle);
	VALUE(1, p_operationDesc);
	VALUE(2, p_Adesc);
	VALUE(3, p_Bdesc);
	VALUE(4, p_Cdesc);
	VALUE(5, p_Ddesc);
	VALUE(6, p_preference);
	VALUE(7, p_requestedAlgoCount);
	VALUE(8, p_heuristicResultsArray);
	MEMORY(8, p_heuristicResultsArray, (size_t)(p_requestedAlgoCount) * sizeof *p_heuristicResultsArray);
	VALUE(9, p_returnAlgoCount);
	fill(p_returnAlgoCount, sizeof *p_returnAlgoCount, 0x9f4c1fc3c601a64cu, 0, 0);
	return (cublasStatus_t)(puregpu_echo.fail ? 971 : 0);
}

cublasStatus_t cublasLtMatmulAlgoGetIds(cublasLtHandle_t p_lightHandle, cublasComputeType_t p_computeType, cudaDataType_t p_scaleType, cudaDataType_t p_Atype, cudaDataType_t p_Btype, cudaDataType_t p_Ctype, cudaDataType_t p_Dtype, int p_requestedAlgoCount, int *p_algoIdsArray, int *p_returnAlgoCount) {
	begin(515);
	VALUE(0, p_lightHandle);
	VALUE(1, p_computeType);
	VALUE(2, p_scaleType);
	VALUE(3, p_Atype);
	VALUE(4, p_Btype);
	VALUE(5, p_Ctype);
	VALUE(6, p_Dtype);
	VALUE(7, p_requestedAlgoCount);
	VALUE(8, p_algoIdsArray);
	MEMORY(8, p_algoIdsArray, (size_t)(p_requestedAlgoCount) * sizeof *p_algoIdsArray);
	VALUE(9, p_returnAlgoCount);
	fill(p_returnAlgoCount, sizeof *p_returnAlgoCount, 0x3911f0761fa3e0eau, 0, 0);
	return (cublasStatus_t)(puregpu_echo.fail ? 954 : 0);
}

cublasStatus_t cublasLtMatmulAlgoInit(cublasLtHandle_t p_lightHandle, cublasComputeType_t p_computeType, cudaDataType_t p_scaleType, cudaDataType_t p_Atype, cudaDataType_t p_Btype, cudaDataType_t p_Ctype, cudaDataType_t p_Dtype, int p_algoId, cublasLtMatmulAlgo_t *p_algo) {
	begin(516);
	VALUE(0, p_lightHandle);
	VALUE(1, p_computeType);
	VALUE(2, p_scaleType);
	VALUE(3, p_Atype);
	VALUE(4, p_Btype);
	VALUE(5, p_Ctype);
	VALUE(6, p_Dtype);
	VALUE(7, p_algoId);
	VALUE(8, p_algo);
	fill(p_algo, sizeof *p_algo, 0xe9499935e9389f61u, 0, 0);
	return (cublasStatus_t)(puregpu_echo.fail ? 905 : 0);
}

cublasStatus_t cublasLtMatmulAlgoCheck(cublasLtHandle_t p_lightHandle, cublasLtMatmulDesc_t p_operationDesc, cublasLtMatrixLayout_t p_Adesc, cublasLtMatrixLayout_t p_Bdesc, cublasLtMatrixLayout_t p_Cdesc, cublasLtMatrixLayout_t p_Ddesc, const cublasLtMatmulAlgo_t *p_algo, cublasLtMatmulHeuristicResult_t *p_result) {
	begin(517);
	VALUE(0, p_lightHandle);
	VALUE(1, p_operationDesc);
	VALUE(2, p_Adesc);
	VALUE(3, p_Bdesc);
	VALUE(4, p_Cdesc);
	VALUE(5, p_Ddesc);
	VALUE(6, p_algo);
	MEMORY(6, p_algo, sizeof *p_algo);
	VALUE(7, p_result);
	fill(p_result, sizeof *p_result, 0xee5914126d64592u, 0, 0);
	return (cublasStatus_t)(puregpu_echo.fail ? 962 : 0);
}

cublasStatus_t cublasLtMatmulAlgoCapGetAttribute(const cublasLtMatmulAlgo_t *p_algo, cublasLtMatmulAlgoCapAttributes_t p_attr, void *p_buf, size_t p_sizeInBytes, size_t *p_sizeWritten) {
	begin(518);
	VALUE(0, p_algo);
	MEMORY(0, p_algo, sizeof *p_algo);
	VALUE(1, p_attr);
	VALUE(2, p_buf);
	VALUE(3, p_sizeInBytes);
	VALUE(4, p_sizeWritten);
	fill(p_sizeWritten, sizeof *p_sizeWritten, 0xa26de7127b98a3b3u, 0, 0);
	return (cublasStatus_t)(puregpu_echo.fail ? 949 : 0);
}

cublasStatus_t cublasLtMatmulAlgoConfigSetAttribute(cublasLtMatmulAlgo_t *p_algo, cublasLtMatmulAlgoConfigAttributes_t p_attr, const void *p_buf, size_t p_sizeInBytes) {
	begin(519);
	VALUE(0, p_algo);
	MEMORY(0, p_algo, sizeof *p_algo);
	VALUE(1, p_attr);
	VALUE(2, p_buf);
	VALUE(3, p_sizeInBytes);
	return (cublasStatus_t)(puregpu_echo.fail ? 923 : 0);
}

cublasStatus_t cublasLtMatmulAlgoConfigGetAttribute(const cublasLtMatmulAlgo_t *p_algo, cublasLtMatmulAlgoConfigAttributes_t p_attr, void *p_buf, size_t p_sizeInBytes, size_t *p_sizeWritten) {
	begin(520);
	VALUE(0, p_algo);
	MEMORY(0, p_algo, sizeof *p_algo);
	VALUE(1, p_attr);
	VALUE(2, p_buf);
	VALUE(3, p_sizeInBytes);
	VALUE(4, p_sizeWritten);
	fill(p_sizeWritten, sizeof *p_sizeWritten, 0xbf4e9434d0599c39u, 0, 0);
	return (cublasStatus_t)(puregpu_echo.fail ? 981 : 0);
}

cublasStatus_t cublasLtLoggerSetCallback(cublasLtLoggerCallback_t p_callback) {
	begin(521);
	VALUE(0, p_callback);
	return (cublasStatus_t)(puregpu_echo.fail ? 968 : 0);
}

cublasStatus_t cublasLtLoggerOpenFile(const char *p_logFile) {
	begin(522);
	VALUE(0, p_logFile);
	text(0, p_logFile);
	return (cublasStatus_t)(puregpu_echo.fail ? 956 : 0);
}

cublasStatus_t cublasLtLoggerSetLevel(int p_level) {
	begin(523);
	VALUE(0, p_level);
	return (cublasStatus_t)(puregpu_echo.fail ? 946 : 0);
}

cublasStatus_t cublasLtLoggerSetMask(int p_mask) {
	begin(524);
	VALUE(0, p_mask);
	return (cublasStatus_t)(puregpu_echo.fail ? 931 : 0);
}

cublasStatus_t cublasLtLoggerForceDisable(void) {
	begin(525);
	return (cublasStatus_t)(puregpu_echo.fail ? 969 : 0);
}
