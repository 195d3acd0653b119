// Numbers and instructions that all kernels use. Nothing of the CUDA toolkit is included, so that
// NVRTC alone compiles the kernels, for compute capability 8.0 and later.

#pragma once

#ifndef HEAD_DIM
#define HEAD_DIM 64 // numbers of a head: 64 or 128
#endif
#ifndef HALF
#define HALF 0 // 1: 16-bit numbers are float16; 0: they are bfloat16
#endif
#ifndef FP8
#define FP8 0 // 1: weights of the layers' products are FP8 e4m3 with a scale for each row
#endif

typedef unsigned short act; // a 16-bit floating-point number
typedef unsigned int u32;   // or two of them
typedef unsigned long long u64;

struct Dims {
	int layers, width, heads, kvHeads, headDim, ffn, vocab;
	int maxPages, half, fp8;
	float eps, ropeFactor;
};

const int pageTokens = 16;
#define infinity __int_as_float(0x7f800000)

extern __shared__ uint4 shared[]; // shared memory whose size the launch sets

// launchNext lets the next kernel begin. That kernel waits in waitPrevious until this one has
// ended.
__device__ inline void launchNext()
{
#if __CUDA_ARCH__ >= 900
	asm volatile("griddepcontrol.launch_dependents;");
#endif
}

// waitPrevious waits until all earlier launches have ended and their results are visible. Every
// thread calls it before it uses memory that a kernel still running may write.
__device__ inline void waitPrevious()
{
#if __CUDA_ARCH__ >= 900
	asm volatile("griddepcontrol.wait;" ::: "memory");
#endif
}

__device__ inline float toFloat(act v)
{
#if HALF
	float f;
	asm("cvt.f32.f16 %0, %1;" : "=f"(f) : "h"(v));
	return f;
#else
	return __uint_as_float((u32)v << 16);
#endif
}

__device__ inline act toAct(float f)
{
	act v;
#if HALF
	asm("cvt.rn.f16.f32 %0, %1;" : "=h"(v) : "f"(f));
#else
	asm("cvt.rn.bf16.f32 %0, %1;" : "=h"(v) : "f"(f));
#endif
	return v;
}

// pack returns two 16-bit numbers, a in the lower half.
__device__ inline u32 pack(float a, float b)
{
	u32 v;
#if HALF
	asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(v) : "f"(b), "f"(a));
#else
	asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(v) : "f"(b), "f"(a));
#endif
	return v;
}

__device__ inline float lower(u32 v)
{
#if HALF
	return toFloat((act)v);
#else
	return __uint_as_float(v << 16);
#endif
}

__device__ inline float upper(u32 v)
{
#if HALF
	return toFloat((act)(v >> 16));
#else
	return __uint_as_float(v & 0xffff0000);
#endif
}

// unpackFP8 converts four FP8 e4m3 numbers to four 16-bit numbers, exactly: it moves exponent and
// fraction to their places, and multiplies by the power of two by which the exponents' biases
// differ.
__device__ inline void unpackFP8(u32 v, u32 &a, u32 &b)
{
	u32 h[2] = {__byte_perm(v, 0, 0x1404), __byte_perm(v, 0, 0x3424)};
#pragma unroll
	for (int i = 0; i < 2; i++) {
#if HALF
		h[i] = (h[i] & 0x80008000) | (h[i] & 0x7f007f00) >> 1;
		asm("fma.rn.f16x2 %0, %0, %1, %2;" : "+r"(h[i]) : "r"(0x5c005c00), "r"(0x80008000)); // 2⁸
#else
		h[i] = (h[i] & 0x80008000) | (h[i] & 0x7f007f00) >> 4;
		asm("fma.rn.bf16x2 %0, %0, %1, %2;" : "+r"(h[i]) : "r"(0x7b807b80), "r"(0x80008000)); // 2¹²⁰
#endif
	}
	a = h[0];
	b = h[1];
}

__device__ inline u32 sharedAddress(const void *p)
{
	return (u32)__cvta_generic_to_shared(p);
}

// copyAsync copies 16 bytes to shared memory in the background, or sets them to 0 if not valid.
__device__ inline void copyAsync(u32 shared, const void *global, bool valid)
{
	asm volatile("cp.async.cg.shared.global.L2::128B [%0], [%1], 16, %2;"
		:: "r"(shared), "l"(global), "r"(valid ? 16 : 0) : "memory");
}

__device__ inline void commitCopies()
{
	asm volatile("cp.async.commit_group;" ::: "memory");
}

// waitCopies waits until all but the last N groups of this thread's copies are done.
template <int N> __device__ inline void waitCopies()
{
	asm volatile("cp.async.wait_group %0;" :: "n"(N) : "memory");
}

__device__ inline uint4 loadShared(u32 p)
{
	uint4 v;
	asm volatile("ld.shared.v4.u32 {%0, %1, %2, %3}, [%4];" : "=r"(v.x), "=r"(v.y), "=r"(v.z), "=r"(v.w) : "r"(p) : "memory");
	return v;
}

const int maxManySplits = 8; // largest number of blocks of a cluster

// waitCluster waits until all threads of the cluster have come here.
__device__ inline void waitCluster()
{
#if __CUDA_ARCH__ >= 900
	asm volatile("barrier.cluster.arrive.release;\n\tbarrier.cluster.wait.acquire;" ::: "memory");
#endif
}

// loadPeer loads a number from the shared memory of a block of the cluster.
__device__ inline float loadPeer(u32 p, u32 block)
{
	float v = 0;
#if __CUDA_ARCH__ >= 900
	asm volatile("mapa.shared::cluster.u32 %0, %0, %1;" : "+r"(p) : "r"(block));
	asm volatile("ld.shared::cluster.f32 %0, [%1];" : "=f"(v) : "r"(p) : "memory");
#endif
	return v;
}

// multiply adds to c the product of a tile of 16 rows by 16 columns and one of 16 rows by 8
// columns.
__device__ inline void multiply(float *c, u32 a0, u32 a1, u32 a2, u32 a3, u32 b0, u32 b1)
{
#if HALF
	asm("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
#else
	asm("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
#endif
		: "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3]) : "r"(a0), "r"(a1), "r"(a2), "r"(a3), "r"(b0), "r"(b1));
}

// sumWarp returns the sum of all lanes' v, to all lanes.
__device__ inline float sumWarp(float v)
{
#pragma unroll
	for (int i = 16; i > 0; i /= 2)
		v += __shfl_xor_sync(~0u, v, i);
	return v;
}

// rotation returns the cosine and sine of the rotation of a pair of numbers at a position.
__device__ inline float2 rotation(int position, float freq, float factor)
{
	double angle = __fmul_rn((float)position, freq); // the product of float32, as in the reference
	float rest = (float)fma(-6.283185307179586, rint(angle * 0.15915494309189535), angle);
	float s, c;
	__sincosf(rest, &s, &c);
	return make_float2(c * factor, s * factor);
}

// pageOf returns the keys (kv = 0) or values (1) of a head in a page: [pageTokens][HEAD_DIM].
__device__ inline act *pageOf(const Dims &d, const void *cache, int page, int layer, int kv, int head)
{
	size_t i = (((size_t)page * d.layers + layer) * 2 + kv) * d.kvHeads + head;
	return (act *)cache + i * (pageTokens * HEAD_DIM);
}

// sum256 returns the sum of the values of the block's 256 threads, to all of them.
__device__ inline float sum256(float v)
{
	__shared__ float sums[8];
	v = sumWarp(v);
	if (threadIdx.x % 32 == 0)
		sums[threadIdx.x / 32] = v;
	__syncthreads();
	v = 0;
#pragma unroll
	for (int i = 0; i < 8; i++)
		v += sums[i];
	return v;
}

// normRow writes the RMS norm of a row, multiplied by weight, as 16-bit numbers. A block of 256
// threads calls it; h is in shared or global memory, and width is a multiple of 64.
__device__ inline void normRow(const Dims &d, const float *x, const void *weight, act *h)
{
	const float4 *xs = (const float4 *)x;
	const uint2 *ws = (const uint2 *)weight;
	float sum = 0;
	for (int i = threadIdx.x; i < d.width / 4; i += 256) {
		float4 v = xs[i];
		sum += v.x * v.x + v.y * v.y + v.z * v.z + v.w * v.w;
	}
	float inverse = rsqrtf(sum256(sum) / d.width + d.eps);
	for (int i = threadIdx.x; i < d.width / 4; i += 256) {
		float4 v = xs[i];
		uint2 w = ws[i];
		((uint2 *)h)[i] = make_uint2(pack(v.x * inverse * lower(w.x), v.y * inverse * upper(w.x)),
			pack(v.z * inverse * lower(w.y), v.w * inverse * upper(w.y)));
	}
}
