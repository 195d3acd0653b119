// peerSum adds the partial sums of all ranks to the residual stream of each rank. A rank is a
// device that can write to the memory of the others.
//
// A rank writes its numbers straight to the memory of the others, as words of 64 bits: a number,
// and above it a tag. A word is written and read as a whole. So whoever finds the tag has the
// number too, and there are no flags and no fences. A sum takes the time of one write to another
// device.
//
// A block takes a row of numbers at a time, in rounds of up to CAPACITY groups of four. Behind
// all rounds of a row it can compute the row's RMS norm.
//
// Each block has words of its own, and a count of its rounds in device memory, which gives the tag.
// So an execution of a recorded launch uses other tags than the one before. The blocks of all ranks
// count alike, because all ranks launch the same grids in the same order. Words of a block are in
// two halves, which rounds use in turn. When a rank overwrites a half, it has got the words of the
// round between from all other ranks. Each of them wrote these after it had read the half.
//
// Every rank adds in the order of the ranks, so all have the same bits.

typedef unsigned int u32;
typedef unsigned long long u64;

const int THREADS = 512; // of a block, at most
const int BLOCKS = 128, CAPACITY = 1024, MOST = 8; // as in peer.go

#ifndef RANKS
#define RANKS MOST // number of ranks
#endif

struct Peers {
	u64 words[MOST];  // addresses: [2 halves][BLOCKS][ranks that write][2][CAPACITY] pairs of
	                  // words
	u64 own;          // words[rank]
	u64 lost;         // address of a word in host memory: 0, 1 + the rank that did not write in
	                  // time, or 1 + MOST if another kernel did not know which
	u64 patience;     // nanoseconds
	int rank, ranks;  // ranks is RANKS
};

struct Pair {
	u64 a, b;
};

__device__ inline u64 word(float x, u32 tag)
{
	return (u64)tag << 32 | __float_as_uint(x);
}

__device__ inline float number(u64 word)
{
	return __uint_as_float((u32)word);
}

__device__ inline void put(Pair *to, float a, float b, u32 tag)
{
	asm volatile("st.relaxed.sys.global.v2.u64 [%0], {%1, %2};" :: "l"(to), "l"(word(a, tag)), "l"(word(b, tag)) : "memory");
}

__device__ inline Pair get(const Pair *from)
{
	Pair p;
	asm volatile("ld.relaxed.sys.global.v2.u64 {%0, %1}, [%2];" : "=l"(p.a), "=l"(p.b) : "l"(from) : "memory");
	return p;
}

__device__ inline u64 now()
{
	u64 t;
	asm volatile("mov.u64 %0, %globaltimer;" : "=l"(t));
	return t;
}

__device__ inline float sumWarp(float v)
{
#pragma unroll
	for (int i = 16; i > 0; i /= 2)
		v += __shfl_xor_sync(~0u, v, i);
	return v;
}

// A Norm is an RMS norm of rows: 16-bit numbers, of type float16 if half is 1, or else bfloat16.
struct Norm {
	const uint2 *weight;
	float eps;
	int half;
	uint2 *to;
};

__device__ inline u32 pack(float a, float b, int half)
{
	u32 v;
	if (half)
		asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(v) : "f"(b), "f"(a));
	else
		asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(v) : "f"(b), "f"(a));
	return v;
}

__device__ inline float unpack(u32 v, int half) // of the lower 16 bits
{
	if (!half)
		return __uint_as_float(v << 16);
	float f;
	asm("cvt.f32.f16 %0, %1;" : "=f"(f) : "h"((unsigned short)v));
	return f;
}

// normRow writes the norm of a row of groups. squares is the sum of this thread's squares.
__device__ inline void normRow(const Norm &n, int row, int groups, const float4 *x, float squares)
{
	__shared__ float sums[THREADS / 32];
	squares = sumWarp(squares);
	if (threadIdx.x % 32 == 0)
		sums[threadIdx.x / 32] = squares;
	__syncthreads();
	float sum = 0;
	for (int i = 0; i < blockDim.x / 32; i++)
		sum += sums[i];
	float inverse = rsqrtf(sum / (4 * groups) + n.eps);
	for (int k = threadIdx.x; k < groups; k += blockDim.x) { // this thread has written these groups
		float4 v = x[k];
		uint2 w = n.weight[k];
		n.to[(size_t)row * groups + k] = make_uint2(
			pack(v.x * inverse * unpack(w.x, n.half), v.y * inverse * unpack(w.x >> 16, n.half), n.half),
			pack(v.z * inverse * unpack(w.y, n.half), v.w * inverse * unpack(w.y >> 16, n.half), n.half));
	}
	__syncthreads(); // sums are free
}

// add adds n groups of four numbers, in rows of length groups. state[0] is not 0 once a rank was
// lost, and state[1 + b] is the tag of block b's next round.
template <bool NORM> __device__ inline void add(const Peers &p, int n, int length, const float4 *part, float4 *x, u32 *state, const Norm &norm)
{
#if __CUDA_ARCH__ >= 900
	asm volatile("griddepcontrol.launch_dependents;");
	asm volatile("griddepcontrol.wait;" ::: "memory");
#endif
	volatile u32 *lost = state;
	u32 tag = state[1 + blockIdx.x];
	bool broken = __syncthreads_or(*lost != 0);
	for (int row = blockIdx.x; (size_t)row * length < n && !broken; row += gridDim.x) {
		const int begin = row * length, all = min(length, n - begin);
		float squares = 0;
		for (int first = 0; first < all && !broken; first += CAPACITY) {
			const int last = min(first + CAPACITY, all);
			const size_t half = ((size_t)(tag & 1) * BLOCKS + blockIdx.x) * RANKS * 2 * CAPACITY;
			for (int k = first + threadIdx.x; k < last; k += blockDim.x) {
				const float4 mine = part[begin + k];
#pragma unroll
				for (int r = 0; r < RANKS; r++) {
					if (r != p.rank) {
						Pair *to = (Pair *)p.words[r] + half + p.rank * 2 * CAPACITY + k - first;
						put(to, mine.x, mine.y, tag);
						put(to + CAPACITY, mine.z, mine.w, tag);
					}
				}
			}
			for (int k = first + threadIdx.x; k < last && !broken; k += blockDim.x) {
				const float4 mine = part[begin + k];
				float4 sum = x[begin + k];
				Pair got[RANKS][2];
				u64 since = 0;
				for (u32 polls = 1;; polls++) {
#pragma unroll
					for (int r = 0; r < RANKS; r++) { // all loads are on their way before the first is used
						if (r != p.rank) {
							const Pair *from = (const Pair *)p.own + half + r * 2 * CAPACITY + k - first;
							got[r][0] = get(from);
							got[r][1] = get(from + CAPACITY);
						}
					}
					int missing = -1;
#pragma unroll
					for (int r = 0; r < RANKS; r++)
						if (r != p.rank &&
							(got[r][0].a >> 32 != tag || got[r][0].b >> 32 != tag || got[r][1].a >> 32 != tag || got[r][1].b >> 32 != tag))
							missing = r;
					if (missing < 0)
						break;
					if (polls % 256 == 0) {
						u64 t = now();
						if (since == 0)
							since = t;
						// Reads of host memory are slow. Those of all threads together take about
						// 0.3 ms, and the other rank waits that long for this one. So a thread reads
						// only after 16,384 polls, which take longer: about 10 ms, an estimate. If it
						// read sooner, the other rank's wait would lead to its own reads, and this
						// rank would wait in turn, in each sum from then on.
						volatile u32 *told = (volatile u32 *)p.lost;
						if (*lost != 0 || t - since > p.patience || polls % 16384 == 0 && *told != 0) {
							if (*told == 0)
								*told = 1 + missing;
							*lost = 1;
							broken = true;
							break;
						}
					}
				}
#pragma unroll
				for (int r = 0; r < RANKS; r++) {
					if (r == p.rank) {
						sum.x += mine.x, sum.y += mine.y, sum.z += mine.z, sum.w += mine.w;
					} else {
						sum.x += number(got[r][0].a), sum.y += number(got[r][0].b);
						sum.z += number(got[r][1].a), sum.w += number(got[r][1].b);
					}
				}
				x[begin + k] = sum;
				if (NORM)
					squares += sum.x * sum.x + sum.y * sum.y + sum.z * sum.z + sum.w * sum.w;
			}
			// No thread of the block writes words of the next round before all have read those of
			// this one.
			broken = __syncthreads_or(broken);
			if (++tag == 0)
				tag = 2; // not 0, which fresh memory has; and even, so that the halves alternate
		}
		if (NORM && !broken)
			normRow(norm, row, all, x + begin, squares);
	}
	if (threadIdx.x == 0 && !broken)
		state[1 + blockIdx.x] = tag;
}

extern "C" __global__ void __launch_bounds__(THREADS) peerSum(Peers p, int n, int length, const float *part, float *x, u32 *state)
{
	add<false>(p, n, length, (const float4 *)part, (float4 *)x, state, {});
}

extern "C" __global__ void __launch_bounds__(THREADS) peerSumNorm(Peers p, int n, int length, const float *part, float *x, u32 *state,
	const void *weight, float eps, int half, unsigned short *h)
{
	add<true>(p, n, length, (const float4 *)part, (float4 *)x, state, {(const uint2 *)weight, eps, half, (uint2 *)h});
}
