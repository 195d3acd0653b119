// peerSum adds the partial sums of all ranks to the residual stream of each rank. A rank is a device
// that can write to the memory of the others.
//
// A rank writes its numbers straight to the memory of the others, as words of 64 bits: a number, and
// above it a tag. A word is written and read as a whole. So whoever finds the tag has the number too,
// and there are no flags and no fences: a sum takes the time of one write to another device.
//
// Each block has words of its own, and a count of its rounds in device memory, which gives the tag.
// So an execution of a recorded launch uses other tags than the one before. The blocks of all ranks
// count alike, because all ranks launch the same grids in the same order. Words of a block are in two
// halves, which rounds use in turn. A rank that writes to a half again has got words of the round
// between from all others, and those have read the half by then.
//
// Every rank adds in the order of the ranks, so all have the same bits.

typedef unsigned int u32;
typedef unsigned long long u64;

const int THREADS = 128, BLOCKS = 256, RANKS = 8; // as in peer.go

struct Peers {
	u64 words[RANKS]; // addresses: [2 halves][BLOCKS][ranks that write][2][THREADS] pairs of words
	u64 own;          // the address of this rank
	u64 lost;         // address of a word of the host: 1 + the rank that did not write in time
	u64 patience;     // nanoseconds
	int rank, ranks;
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

// state has a word that is not 0 once a rank was lost, and then the tag of each block's next round.
// n counts groups of four numbers.
extern "C" __global__ void __launch_bounds__(THREADS) peerSum(Peers p, int n, const float *part, float *x, u32 *state)
{
#if __CUDA_ARCH__ >= 900
	asm volatile("griddepcontrol.launch_dependents;");
	asm volatile("griddepcontrol.wait;" ::: "memory");
#endif
	volatile u32 *lost = state;
	u32 tag = state[1 + blockIdx.x];
	bool broken = __syncthreads_or(*lost != 0);
	for (int first = blockIdx.x * THREADS; first < n && !broken; first += gridDim.x * THREADS) {
		const int i = first + threadIdx.x;
		if (i < n) {
			// The thread's first pair from rank 0. Those from the next rank are 2 * THREADS further.
			const size_t at = ((size_t)(tag & 1) * BLOCKS + blockIdx.x) * p.ranks * 2 * THREADS + threadIdx.x;
			const float4 mine = ((const float4 *)part)[i];
#pragma unroll
			for (int r = 0; r < RANKS; r++) {
				if (r < p.ranks && r != p.rank) {
					Pair *to = (Pair *)p.words[r] + at + p.rank * 2 * THREADS;
					put(to, mine.x, mine.y, tag);
					put(to + THREADS, mine.z, mine.w, tag);
				}
			}
			float4 sum = ((const float4 *)x)[i];
			Pair got[RANKS][2];
			u64 begin = 0;
			for (u32 polls = 1;; polls++) {
#pragma unroll
				for (int r = 0; r < RANKS; r++) { // all loads are on their way before the first is used
					if (r < p.ranks && r != p.rank) {
						const Pair *from = (const Pair *)p.own + at + r * 2 * THREADS;
						got[r][0] = get(from);
						got[r][1] = get(from + THREADS);
					}
				}
				int missing = -1;
#pragma unroll
				for (int r = 0; r < RANKS; r++)
					if (r < p.ranks && r != p.rank &&
						(got[r][0].a >> 32 != tag || got[r][0].b >> 32 != tag || got[r][1].a >> 32 != tag || got[r][1].b >> 32 != tag))
						missing = r;
				if (missing < 0)
					break;
				if (polls % 256 == 0) {
					u64 t = now();
					if (begin == 0)
						begin = t;
					if (*lost != 0 || t - begin > p.patience) {
						*lost = 1;
						*(volatile u32 *)p.lost = 1 + missing;
						broken = true;
						break;
					}
				}
			}
#pragma unroll
			for (int r = 0; r < RANKS; r++) {
				if (r == p.rank) {
					sum.x += mine.x, sum.y += mine.y, sum.z += mine.z, sum.w += mine.w;
				} else if (r < p.ranks) {
					sum.x += number(got[r][0].a), sum.y += number(got[r][0].b);
					sum.z += number(got[r][1].a), sum.w += number(got[r][1].b);
				}
			}
			((float4 *)x)[i] = sum;
		}
		// No thread writes words of the next round before all have read those of this one.
		broken = __syncthreads_or(broken);
		if (++tag == 0)
			tag = 2; // memory begins with 0, and the halves still alternate
	}
	if (threadIdx.x == 0 && !broken)
		state[1 + blockIdx.x] = tag;
}
