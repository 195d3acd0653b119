// The kernels of a Llama-style decoder. Package kernels says what each operation does. This file
// has the small kernels; products, attention and the choice of a token have files of their own.

#include "number.h"
#include "product.h"
#include "attend.h"
#include "sample.h"

// copyEmbedding writes a row of the table as float32. A block of 256 threads calls it.
__device__ inline void copyEmbedding(const Dims &d, const void *table, int token, float *x)
{
	const uint2 *from = (const uint2 *)table + (size_t)token * d.width / 4;
	for (int i = threadIdx.x; i < d.width / 4; i += 256) {
		uint2 v = from[i];
		((float4 *)x)[i] = make_float4(lower(v.x), upper(v.x), lower(v.y), upper(v.y));
	}
}

// embed writes the embedding of the token of each row's slot, one block for each row.
extern "C" __global__ void __launch_bounds__(256) embed(Dims d, const int *active, const int *token, const void *table, float *x)
{
	launchNext();
	waitPrevious();
	int slot = active[blockIdx.x];
	x += (size_t)blockIdx.x * d.width;
	if (slot >= 0) {
		copyEmbedding(d, table, token[slot], x);
	} else {
		for (int i = threadIdx.x; i < d.width; i += 256)
			x[i] = 0;
	}
}

extern "C" __global__ void __launch_bounds__(256) embedChunk(Dims d, const int *tokens, const void *table, float *x)
{
	launchNext();
	waitPrevious();
	copyEmbedding(d, table, tokens[blockIdx.x], x + (size_t)blockIdx.x * d.width);
}

// normShort is normRow for a row of up to COUNT * 1024 numbers, which stay in registers. It begins
// to load the weights before the previous kernel has ended.
template <int COUNT> __device__ inline void normShort(const Dims &d, const float *x, const void *weight, act *h)
{
	uint2 w[COUNT] = {};
	float4 v[COUNT] = {};
#pragma unroll
	for (int k = 0; k < COUNT; k++)
		if (int i = k * 256 + threadIdx.x; i < d.width / 4)
			w[k] = ((const uint2 *)weight)[i];
	waitPrevious();
#pragma unroll
	for (int k = 0; k < COUNT; k++)
		if (int i = k * 256 + threadIdx.x; i < d.width / 4)
			v[k] = ((const float4 *)x)[i];
	float sum = 0;
#pragma unroll
	for (int k = 0; k < COUNT; k++)
		sum += v[k].x * v[k].x + v[k].y * v[k].y + v[k].z * v[k].z + v[k].w * v[k].w;
	float inverse = rsqrtf(sum256(sum) / d.width + d.eps);
#pragma unroll
	for (int k = 0; k < COUNT; k++)
		if (int i = k * 256 + threadIdx.x; i < d.width / 4)
			((uint2 *)h)[i] = make_uint2(pack(v[k].x * inverse * lower(w[k].x), v[k].y * inverse * upper(w[k].x)),
				pack(v[k].z * inverse * lower(w[k].y), v[k].w * inverse * upper(w[k].y)));
}

// rmsNorm computes the RMS norm, one block for each row.
extern "C" __global__ void __launch_bounds__(256) rmsNorm(Dims d, const float *x, const void *weight, act *h)
{
	launchNext();
	x += (size_t)blockIdx.x * d.width;
	h += (size_t)blockIdx.x * d.width;
	if (d.width <= 2048) {
		normShort<2>(d, x, weight, h);
	} else if (d.width <= 4096) {
		normShort<4>(d, x, weight, h);
	} else {
		waitPrevious();
		normRow(d, x, weight, h);
	}
}

// turn rotates two pairs of numbers: the first numbers are in a, and the second ones in b.
__device__ inline void turn(u32 &a, u32 &b, const float2 *turns)
{
	float2 t = turns[0], u = turns[1];
	float a0 = lower(a), a1 = upper(a), b0 = lower(b), b1 = upper(b);
	a = pack(a0 * t.x - b0 * t.y, a1 * u.x - b1 * u.y);
	b = pack(b0 * t.x + a0 * t.y, b1 * u.x + a1 * u.y);
}

// ropeRow rotates the queries and keys of the block's row, and writes keys and values to the slot's
// page at the position. With slot -1 the queries become 0. A block of 256 threads calls it.
__device__ inline void ropeRow(const Dims &d, int layer, int slot, int position, const int *pages, void *cache, const float *freq,
	const act *qkv, act *q)
{
	__shared__ float2 turns[HEAD_DIM / 2];
	const int each = HEAD_DIM / 16, row = blockIdx.x, heads = d.heads + 2 * d.kvHeads;
	int k = threadIdx.x; // a head's part of eight pairs
	uint4 a = {}, b = {};
	auto load = [&]() {
		if (k < heads * each) {
			const act *from = qkv + ((size_t)row * heads + k / each) * HEAD_DIM + k % each * 8;
			a = *(const uint4 *)from;
			b = *(const uint4 *)(from + HEAD_DIM / 2);
		}
	};
	load();
	if (threadIdx.x < HEAD_DIM / 2)
		turns[threadIdx.x] = rotation(position, freq[threadIdx.x], d.ropeFactor);
	const int page = slot >= 0 ? pages[(size_t)slot * d.maxPages + position / pageTokens] : 0;
	__syncthreads();
	for (; k < heads * each; k += 256, load()) {
		int head = k / each, i = k % each * 8, kv = head - d.heads;
		act *to = q + ((size_t)row * d.heads + head) * HEAD_DIM + i;
		if (slot < 0)
			a = b = uint4{};
		if (kv >= 0) {
			if (slot < 0)
				continue;
			to = pageOf(d, cache, page, layer, kv / d.kvHeads, kv % d.kvHeads) + position % pageTokens * HEAD_DIM + i;
		}
		if (kv < d.kvHeads) {
			turn(a.x, b.x, turns + i);
			turn(a.y, b.y, turns + i + 2);
			turn(a.z, b.z, turns + i + 4);
			turn(a.w, b.w, turns + i + 6);
		}
		*(uint4 *)to = a;
		*(uint4 *)(to + HEAD_DIM / 2) = b;
	}
}

// ropeChunk rotates the queries and keys of a chunk, and writes keys and values to their pages, one
// block for each row.
extern "C" __global__ void __launch_bounds__(256) ropeChunk(Dims d, int layer, const int *chunk, const int *pages, void *cache,
	const float *freq, const act *qkv, act *q)
{
	launchNext();
	waitPrevious();
	const int row = blockIdx.x;
	ropeRow(d, layer, row < chunk[2] ? chunk[0] : -1, chunk[1] + row, pages, cache, freq, qkv, q);
}

// ropeRows is ropeChunk for the rows of a decode step.
extern "C" __global__ void __launch_bounds__(256) ropeRows(Dims d, int layer, const int *active, const int *position, const int *pages,
	void *cache, const float *freq, const act *qkv, act *q)
{
	launchNext();
	waitPrevious();
	const int slot = active[blockIdx.x];
	ropeRow(d, layer, slot, slot < 0 ? 0 : position[slot], pages, cache, freq, qkv, q);
}

// gated returns silu(gate) * up for two gates and two ups.
__device__ inline u32 gated(u32 gate, u32 up)
{
	float a = lower(gate), b = upper(gate);
	return pack(__fdividef(a, 1 + __expf(-a)) * lower(up), __fdividef(b, 1 + __expf(-b)) * upper(up));
}

__device__ inline uint4 gated(uint4 gate, uint4 up)
{
	return make_uint4(gated(gate.x, up.x), gated(gate.y, up.y), gated(gate.z, up.z), gated(gate.w, up.w));
}

// swiglu computes silu(gate) * up, one block for each row. A thread takes twice 8 numbers at a
// time.
extern "C" __global__ void __launch_bounds__(1024) swiglu(Dims d, const act *gu, act *g)
{
	launchNext();
	waitPrevious();
	const int n = d.ffn / 8;
	const uint4 *gate = (const uint4 *)gu + (size_t)blockIdx.x * 2 * n, *up = gate + n;
	uint4 *to = (uint4 *)g + (size_t)blockIdx.x * n;
	for (int i = threadIdx.x; i < n; i += 2 * blockDim.x) {
		int k = i + blockDim.x;
		uint4 a = gate[i], b = up[i], c = {}, e = {};
		if (k < n) {
			c = gate[k];
			e = up[k];
		}
		to[i] = gated(a, b);
		if (k < n)
			to[k] = gated(c, e);
	}
}

// last copies the chunk's last row, and sets the slot's position.
extern "C" __global__ void __launch_bounds__(256) last(Dims d, const int *chunk, int *position, const float *from, float *to)
{
	launchNext();
	waitPrevious();
	from += (size_t)(chunk[2] - 1) * d.width;
	for (int i = threadIdx.x; i < d.width; i += 256)
		to[i] = from[i];
	if (threadIdx.x == 0)
		position[chunk[0]] = chunk[1] + chunk[2] - 1;
}

// dequantize converts an FP8 matrix to 16-bit numbers, one block for each row.
extern "C" __global__ void __launch_bounds__(256) dequantize(Dims d, int in, const void *w, const float *scale, act *dst)
{
	launchNext();
	waitPrevious();
	const u32 *from = (const u32 *)w + (size_t)blockIdx.x * in / 4;
	uint2 *to = (uint2 *)dst + (size_t)blockIdx.x * in / 4;
	float s = scale[blockIdx.x];
	for (int i = threadIdx.x; i < in / 4; i += 256) {
		u32 a, b;
		unpackFP8(from[i], a, b);
		to[i] = make_uint2(pack(lower(a) * s, upper(a) * s), pack(lower(b) * s, upper(b) * s));
	}
}
