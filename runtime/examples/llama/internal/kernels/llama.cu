struct Dims {
	int layers, width, heads, kvHeads, headDim, ffn, vocab, maxPages, half, fp8;
	float eps, ropeFactor;
};
struct Sampling { float temperature, topP; int topK, pad; unsigned long long seed; };

typedef unsigned short act;

extern "C" __global__ void embed(Dims d, const int *active, const int *token, const void *table, float *x) {}
extern "C" __global__ void embedChunk(Dims d, const int *tokens, const void *table, float *x) {}
extern "C" __global__ void norm(Dims d, const float *x, const void *weight, act *h) {}
extern "C" __global__ void qkvOne(Dims d, int layer, const int *active, const int *position, const int *pages, void *cache,
	const float *freq, const float *x, const void *norm, const void *w, const void *scale, act *q) {}
extern "C" __global__ void gateUpOne(Dims d, const float *x, const void *norm, const void *w, const void *scale, act *g) {}
extern "C" __global__ void addOne(Dims d, int in, int add, const act *a, const void *w, const void *scale, float *x) {}
extern "C" __global__ void logitsOne(Dims d, const float *x, const void *norm, const void *w, float *logits) {}
template <int ROWS> __global__ void qkvMany(Dims d, int rows, int layer, const int *active, const int *position, const int *pages,
	void *cache, const float *freq, const act *h, const void *w, const void *scale, act *q) {}
template <int ROWS> __global__ void gateUpMany(Dims d, int rows, const act *h, const void *w, const void *scale, act *g) {}
template <int ROWS> __global__ void addMany(Dims d, int rows, int in, int add, const act *a, const void *w, const void *scale,
	float *x) {}
template <int ROWS> __global__ void logitsMany(Dims d, int rows, const act *h, const void *w, float *logits) {}
extern "C" __global__ void attend(Dims d, int layer, const int *active, const int *position, const int *pages, const void *cache,
	const act *q, act *a, unsigned *work) {}
extern "C" __global__ void sample(Dims d, const int *active, int *token, int *position, const Sampling *sampling,
	const float *logits, int *out) {}
extern "C" __global__ void ropeChunk(Dims d, int layer, const int *chunk, const int *pages, void *cache, const float *freq,
	const act *qkv, act *q) {}
extern "C" __global__ void attendChunk(Dims d, int layer, const int *chunk, const int *pages, const void *cache, const act *q,
	act *a) {}
extern "C" __global__ void swiglu(Dims d, const act *gu, act *g) {}
extern "C" __global__ void last(Dims d, const int *chunk, int *position, const float *from, float *to) {}
extern "C" __global__ void dequantize(Dims d, int in, const void *w, const float *scale, act *dst) {}
