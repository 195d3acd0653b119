// decode computes one token of a Llama-style decoder at batch 1, in one cooperative launch of up to
// one block for each multiprocessor. It needs compute capability 9.0 or later.
//
// At best it takes as long as reading all weights once, so memory must never be idle. In each block
// one warp, the producer, copies the block's rows of all matrices, in order, into a ring of stages
// in shared memory. It goes on while the other warps, the consumers, wait for other blocks. The
// consumers multiply rows with the input vector several times as fast as memory delivers rows. So
// the ring is nearly empty when a wait begins, and the consumers catch up after it.
//
// Products run on tensor cores. A stage has 8 rows, and SEGMENT numbers of each. Each consumer warp
// takes PIECE numbers of each row of a stage. A number x of the vector is split into 16-bit numbers
// high and low, x = high + low, so that a product has nearly the precision of float32. With float16
// weights the magnitude of a number of the vector, times the norm's weight, must be less than
// 65504.
//
// Blocks exchange vectors through tagged words. A word is a float32 whose lowest 7 bits are
// replaced by a tag. Each layer of each token has the next tag, and writes each word once. A reader
// polls the words that it needs until all have the tag of the layer. So there is no barrier of the
// whole grid, and no fence. Too many polls are slow, so one thread of a block first polls a count
// of the words written so far. The count may be ahead of the words, so it only saves polls.
//
// A block overwrites a word only when it has input that depends, through the matrices between, on
// every block that reads the old value. With several ranks this is so for the blocks of all ranks,
// and from launch to launch: a rank ends a launch with sums that need every block of all ranks, and
// writes the words of these sums again only after the first sums of the next launch.
//
// Several ranks, each on a device of its own, can share a model: tensor parallelism. A rank has a
// part of the heads and of the FFN, so its products with the matrices out and down are parts of
// sums. It writes them to the words of all ranks, and every rank adds the parts in the order of the
// ranks. The part of rank 0 includes the residual stream. All ranks must launch the same steps.
//
// Macros, by options -D: RANKS, BLOCKS, LAYERS, WIDTH, HEADS, KV_HEADS, HEAD_DIM, FFN, VOCAB,
// MAX_PAGES, HALF. For speed: WARPS (consumer warps), STAGES, GATHER (rows between two barriers of
// a block), COPIES (of exchanged words: a block reads one of them), HINT (the percentage of an
// exchange's words that must be counted before warps poll the words). For tests: SPIN_LIMIT (a wait
// that takes more clock cycles traps; if RANKS is above 1, a wait for words does not). For
// measurements: UNTAGGED (no block waits for another, so results are wrong), IDLE (nothing is
// multiplied), DRY (nothing is copied).

typedef unsigned long long u64;
typedef unsigned int u32;
typedef unsigned short u16;

struct Dims {
	int layers, width, heads, kvHeads, headDim, ffn, vocab, maxPages, half, fp8;
	float eps, ropeFactor;
};

constexpr int MOST = 8; // ranks

// As in package peer. work and own are addresses of scratch memory: the argument work of each rank.
struct Peers {
	u64 work[MOST], own;
	u64 lost;        // address of a word in host memory, which is not 0 once a rank was lost
	u64 patience;    // nanoseconds
	int rank, ranks; // ranks is RANKS
};

// With several ranks, words are exchanged between devices.
#if RANKS > 1
#define SCOPE "sys"
#else
#define SCOPE "gpu"
#endif

constexpr int PAGE_TOKENS = 16;
constexpr int QKV = (HEADS + 2 * KV_HEADS) * HEAD_DIM, Q = HEADS * HEAD_DIM;
constexpr int CONSUMERS = 32 * WARPS;
constexpr int TILE = 8;                          // rows of a stage
constexpr int PIECE = 128;                       // numbers of a row that a warp multiplies at once
constexpr int SEGMENT = PIECE * WARPS;           // numbers of a row in a stage
constexpr int PITCH = SEGMENT * 2 + 64;          // bytes from row to row: a warp's loads have no bank conflict
constexpr int SLOT = TILE * PITCH;               // bytes of a stage
constexpr int PAGE = PAGE_TOKENS * HEAD_DIM * 2; // bytes of keys or values of a page, of one head
constexpr u64 PAGE_BYTES = (u64)LAYERS * 2 * KV_HEADS * PAGE;

// segments is the number of segments of k numbers, and padded the length of whole segments. For two
// segments of a vector a warp holds 8 numbers in each lane: a pass. passes is the number of passes.
__device__ constexpr int segments(int k) { return (k + SEGMENT - 1) / SEGMENT; }
__device__ constexpr int padded(int k) { return segments(k) * SEGMENT; }
__device__ constexpr int passes(int k) { return (segments(k) + 1) / 2; }

// Attention: a task is a head and a part of the sequence. Block b has task b.
constexpr int PARTS = BLOCKS / HEADS, TASKS = HEADS * PARTS;
constexpr int SLOT_PAGES = SLOT / (2 * PAGE) < 16 ? SLOT / (2 * PAGE) : 16;
constexpr int TOKEN_LANES = HEAD_DIM / 8; // lanes that share a token's key

static_assert(GATHER % TILE == 0 && GATHER <= CONSUMERS, "GATHER");
static_assert(SLOT_PAGES > 0, "a stage must hold a page of keys and values");
static_assert(PARTS > 0, "each head must have a block");
static_assert(QKV >= BLOCKS && WIDTH >= BLOCKS && FFN >= BLOCKS, "a block without rows would not keep others from writing too early");
static_assert(WIDTH % 8 == 0 && FFN % 8 == 0 && HEAD_DIM % 32 == 0 && HEAD_DIM <= CONSUMERS, "sizes");

// Where exchanged words begin, in u32 from AT_WORDS.
constexpr int AT_OUT = 0;                               // [RANKS]: residual stream behind the attention
constexpr int AT_DOWN = AT_OUT + RANKS * padded(WIDTH); // [RANKS]: residual stream behind the layer
constexpr int AT_GATE = AT_DOWN + RANKS * padded(WIDTH);
constexpr int AT_PARTS = AT_GATE + padded(FFN);
constexpr int AT_QKV = AT_PARTS + PARTS * padded(Q);
constexpr int AT_STATS = AT_QKV + QKV; // of a part and head: maximum, sum
constexpr int WORDS = (AT_STATS + TASKS * 2 + 31) / 32 * 32;

// Counts of written words, each in a cache line of its own. Before them, work has each block's
// number of launches.
enum Count { QKV_COUNT, PARTS_COUNT, OUT_COUNT, GATE_COUNT, DOWN_COUNT, COUNTS };
constexpr int AT_COUNTS = (2 * BLOCKS + 31) / 32 * 32; // in u32 from the start of work
constexpr int AT_WORDS = AT_COUNTS + 32 * COUNTS;

// A Layer has the addresses of a layer's weights.
struct Layer {
	const u16 *norm1, *qkv, *out, *norm2, *gateUp, *down;
};

struct Shared {
	u64 full[STAGES], empty[STAGES];
	alignas(16) float sums[2][GATHER][WARPS]; // of a row, by warp
	alignas(16) float squares[WARPS];
	float residual[2][(WIDTH + BLOCKS - 1) / BLOCKS];
	float cosine[HEAD_DIM / 2], sine[HEAD_DIM / 2];
	float heads[WARPS][HEAD_DIM + 2]; // attention of a warp: sum of values, maximum, sum
	Layer layers[LAYERS];
	Peers peers;
	volatile int lost; // not 0 once a rank was lost: then no thread waits for words
};
__shared__ Shared sh;
extern __shared__ __align__(128) unsigned char ring[];

// Conversions of two 16-bit numbers in a word.
#if HALF
__device__ __forceinline__ float halfToFloat(u16 h) { float f; asm("cvt.f32.f16 %0, %1;" : "=f"(f) : "h"(h)); return f; }
__device__ __forceinline__ float low(u32 w) { return halfToFloat((u16)w); }
__device__ __forceinline__ float high(u32 w) { return halfToFloat((u16)(w >> 16)); }
__device__ __forceinline__ u32 pack(float l, float h) { u32 w; asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(w) : "f"(h), "f"(l)); return w; }
#else
__device__ __forceinline__ float low(u32 w) { return __uint_as_float(w << 16); }
__device__ __forceinline__ float high(u32 w) { return __uint_as_float(w & 0xffff0000u); }
__device__ __forceinline__ u32 pack(float l, float h) { u32 w; asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(w) : "f"(h), "f"(l)); return w; }
#endif

__device__ __forceinline__ void unpack(const uint4 &v, float (&x)[8])
{
	x[0] = low(v.x), x[1] = high(v.x), x[2] = low(v.y), x[3] = high(v.y);
	x[4] = low(v.z), x[5] = high(v.z), x[6] = low(v.w), x[7] = high(v.w);
}

__device__ __forceinline__ float power2(float x) { float y; asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x)); return y; }

// multiplyTile adds to c the product of a, 16 rows of 16 numbers, and b, 8 columns of 16 numbers.
__device__ __forceinline__ void multiplyTile(float (&c)[4], u32 a0, u32 a1, u32 a2, u32 a3, u32 b0, u32 b1)
{
#if HALF
	asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
#else
	asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
#endif
		: "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3]) : "r"(a0), "r"(a1), "r"(a2), "r"(a3), "r"(b0), "r"(b1));
}

// A Limit traps if a wait exceeds SPIN_LIMIT.
struct Limit {
#ifdef SPIN_LIMIT
	long long start = clock64();
	__device__ __forceinline__ void poll() { if (clock64() - start > SPIN_LIMIT) asm volatile("trap;"); }
#else
	__device__ __forceinline__ void poll() {}
#endif
};

// A Patience ends a wait for words that another rank does not write in time. With one rank it is a
// Limit.
#if RANKS > 1
struct Patience {
	u32 polls = 0;
	u64 since = 0;

	__device__ __forceinline__ bool over()
	{
		if (sh.lost)
			return true;
		if (++polls % 256 != 0)
			return false;
		u64 now;
		asm volatile("mov.u64 %0, %globaltimer;" : "=l"(now));
		if (since == 0)
			since = now;
		volatile u32 *lost = (volatile u32 *)sh.peers.lost;
		if (now - since < sh.peers.patience && (polls % 16384 != 0 || *lost == 0)) // reads of host memory are slow
			return false;
		if (*lost == 0)
			*lost = 1 + (RANKS == 2 ? 1 - sh.peers.rank : MOST); // MOST: it is not known which rank
		sh.lost = 1;
		return true;
	}
};
#else
struct Patience {
	Limit limit;

	__device__ __forceinline__ bool over()
	{
		limit.poll();
		return false;
	}
};
#endif

// Barriers in shared memory.
__device__ __forceinline__ u32 address(const void *p) { return (u32)__cvta_generic_to_shared(p); }

__device__ __forceinline__ void await(const u64 *barrier, u32 parity)
{
	Limit p;
	for (;;) {
		u32 done;
		asm volatile("{\n\t.reg .pred p;\n\t"
			"mbarrier.try_wait.parity.shared::cta.b64 p, [%1], %2;\n\tselp.u32 %0, 1, 0, p;\n\t}"
			: "=r"(done) : "r"(address(barrier)), "r"(parity) : "memory");
		if (done)
			return;
		p.poll();
	}
}

__device__ __forceinline__ void arrive(u64 *barrier)
{
	asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" :: "r"(address(barrier)) : "memory");
}

// consumers waits for all warps but the producer.
__device__ __forceinline__ void consumers() { asm volatile("bar.sync 1, %0;" :: "n"(CONSUMERS) : "memory"); }

// Tagged words in global memory.
constexpr u32 TAG = 127; // bits of the tag

__device__ __forceinline__ float value(u32 w) { return __uint_as_float(w & ~TAG); }

// rounded returns the bits of x, rounded so that the bits of the tag are 0.
__device__ __forceinline__ u32 rounded(float x) { return __float_as_uint(x) + (x == x ? (TAG + 1) / 2 : 0) & ~TAG; }

__device__ __forceinline__ void store(u32 *at, u32 w)
{
	asm volatile("st.relaxed." SCOPE ".global.u32 [%0], %1;" :: "l"(at), "r"(w) : "memory");
}

// put writes a word to all copies.
__device__ __forceinline__ void put(u32 *at, float x, u32 tag)
{
	u32 w = rounded(x) | (tag & TAG);
#pragma unroll
	for (int c = 0; c < COPIES; c++)
		store(at + c * WORDS, w);
}

// workOf returns the memory for exchange of a rank.
__device__ __forceinline__ u32 *workOf(int rank, u32 *own) { return RANKS > 1 ? (u32 *)sh.peers.work[rank] : own; }

__device__ __forceinline__ u32 load(const u32 *at)
{
	u32 w;
	asm volatile("ld.relaxed." SCOPE ".global.u32 %0, [%1];" : "=r"(w) : "l"(at) : "memory");
	return w;
}

__device__ __forceinline__ uint4 peek(const u32 *at)
{
	uint4 w;
	asm volatile("ld.relaxed." SCOPE ".global.v4.u32 {%0, %1, %2, %3}, [%4];" : "=r"(w.x), "=r"(w.y), "=r"(w.z), "=r"(w.w) : "l"(at) : "memory");
	return w;
}

__device__ __forceinline__ uint2 peek2(const u32 *at)
{
	uint2 w;
	asm volatile("ld.relaxed." SCOPE ".global.v2.u32 {%0, %1}, [%2];" : "=r"(w.x), "=r"(w.y) : "l"(at) : "memory");
	return w;
}

// untagged returns 0 if all words have the tag.
__device__ __forceinline__ u32 untagged(uint2 w, u32 tag)
{
#ifdef UNTAGGED
	return 0;
#else
	return ((w.x ^ tag) | (w.y ^ tag)) & TAG;
#endif
}

__device__ __forceinline__ u32 untagged(uint4 w, u32 tag)
{
	return untagged(make_uint2(w.x, w.y), tag) | untagged(make_uint2(w.z, w.w), tag);
}

__device__ __forceinline__ void values(uint4 v, uint4 w, float (&x)[8])
{
	x[0] = value(v.x), x[1] = value(v.y), x[2] = value(v.z), x[3] = value(v.w);
	x[4] = value(w.x), x[5] = value(w.y), x[6] = value(w.z), x[7] = value(w.w);
}

// spread is the place of element e in an exchanged vector, so that a warp's loads are contiguous:
// the first halves of all eights of a piece, then the second halves.
__device__ __forceinline__ int spread(int e)
{
	int o = e % PIECE;
	return e - o + o / 4 % 2 * (PIECE / 2) + o / 8 * 4 + o % 4;
}

// takeEights waits for N times 8 consecutive words, and reads them.
template <int N> __device__ __forceinline__ void takeEights(const u32 *const (&from)[N], u32 tag, float (&x)[N][8])
{
	Patience p;
	for (;;) {
		uint4 w[N][2];
#pragma unroll
		for (int i = 0; i < N; i++)
			w[i][0] = peek(from[i]), w[i][1] = peek(from[i] + 4);
		u32 wrong = 0;
#pragma unroll
		for (int i = 0; i < N; i++) {
			wrong |= untagged(w[i][0], tag) | untagged(w[i][1], tag);
			values(w[i][0], w[i][1], x[i]);
		}
		if (!wrong || p.over())
			return;
	}
}

// Rows are this block's rows of a matrix. The blocks with a row more than others differ from matrix
// to matrix.
struct Rows {
	int first, n;
	__device__ __forceinline__ Rows(int rows, int turn)
	{
		u32 b = (blockIdx.x + (u32)turn * 37) % BLOCKS;
		first = (u32)rows * b / BLOCKS;
		n = (u32)rows * (b + 1) / BLOCKS - first;
	}
};

__device__ __forceinline__ Rows rowsOfQKV(int layer) { return Rows(QKV, layer * 4); }
__device__ __forceinline__ Rows rowsOfOut(int layer) { return Rows(WIDTH, layer * 4 + 1); }
__device__ __forceinline__ Rows rowsOfGate(int layer) { return Rows(FFN, layer * 4 + 2); } // of gate; up has the same rows
__device__ __forceinline__ Rows rowsOfDown(int layer) { return Rows(WIDTH, layer * 4 + 3); }
__device__ __forceinline__ Rows rowsOfHead() { return Rows(VOCAB, LAYERS * 4); }

// Part is this block's part of a sequence: some pages, which have only earlier tokens. Part 0 also
// has the new token.
struct Part {
	int used;     // parts with work
	int first, n; // pages
	bool mine;    // this block has work
	__device__ __forceinline__ Part(int position)
	{
		int pages = (position + PAGE_TOKENS - 1) / PAGE_TOKENS, each = (pages + PARTS - 1) / PARTS;
		used = pages ? (pages + each - 1) / each : 1;
		int part = blockIdx.x / HEADS;
		first = part * each;
		n = min(each, pages - first);
		mine = blockIdx.x < TASKS && part < used;
	}
};

// Cursor is a place in the ring.
struct Cursor {
	u32 stage = 0, parity = 0;
	__device__ __forceinline__ void next()
	{
		if (++stage == STAGES)
			stage = 0, parity ^= 1;
	}
};

// Producer is the warp that fills the ring.
struct Producer {
	Cursor at;
	int lane;
	u64 policy; // weights are read once: let them leave the L2 cache first

	// begin waits until the stage is free, and announces bytes for it.
	__device__ __forceinline__ void begin(int bytes)
	{
		await(&sh.empty[at.stage], at.parity ^ 1);
#ifdef DRY
		bytes = 0;
#endif
		if (lane == 0)
			asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;"
				:: "r"(address(&sh.full[at.stage])), "r"(bytes) : "memory");
		__syncwarp();
	}

	__device__ __forceinline__ void copy(int offset, const void *from, int bytes, bool once)
	{
#ifdef DRY
		return;
#endif
		u32 to = address(ring) + at.stage * SLOT + offset, full = address(&sh.full[at.stage]);
		if (once)
			asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.L2::cache_hint [%0], [%1], %2, [%3], %4;"
				:: "r"(to), "l"(from), "r"(bytes), "r"(full), "l"(policy) : "memory");
		else
			asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];"
				:: "r"(to), "l"(from), "r"(bytes), "r"(full) : "memory");
	}

	// rows copies rows of a matrix of K columns. With PAIRS these are rows i and FFN+i in turn.
	template <int K, bool PAIRS> __device__ __forceinline__ void rows(const u16 *w, Rows r)
	{
		int n = PAIRS ? 2 * r.n : r.n;
		for (int g = 0; g < n; g += TILE) {
			int m = min(TILE, n - g), i = g + lane;
			int row = PAIRS ? r.first + i / 2 + i % 2 * FFN : r.first + i;
			const u16 *from = w + (u64)row * K;
#pragma unroll
			for (int s = 0; s < segments(K); s++) {
				int bytes = min(SEGMENT, K - s * SEGMENT) * 2;
				begin(m * bytes);
				if (lane < m)
					copy(lane * PITCH, from + s * SEGMENT, bytes, true);
				at.next();
			}
		}
	}

	// pages copies keys and values of the block's part of the sequence: n pages from the list.
	__device__ __forceinline__ void pages(const unsigned char *cache, const int *list, int n, int layer)
	{
		int kv = blockIdx.x % HEADS / (HEADS / KV_HEADS);
		for (int c = 0; c < n; c += SLOT_PAGES) {
			int m = min(SLOT_PAGES, n - c), page = lane < 2 * m ? __ldg(list + c + lane / 2) : 0;
			begin(m * 2 * PAGE);
			if (lane < 2 * m)
				copy(lane * PAGE, cache + page * PAGE_BYTES + (u64)((layer * 2 + (lane & 1)) * KV_HEADS + kv) * PAGE, PAGE, false);
			at.next();
		}
	}
};

// Input is a warp's part of a vector of K numbers, for multiplication. Pass p of lane i has the
// eight numbers from element(p): the numbers of lanes 0 to 15 belong to segment 2p, the others to
// 2p+1.
template <int K> struct Input {
	uint4 high[passes(K)], low[passes(K)];

	__device__ __forceinline__ void set(int p, const float (&x)[8])
	{
		high[p] = make_uint4(pack(x[0], x[1]), pack(x[2], x[3]), pack(x[4], x[5]), pack(x[6], x[7]));
		float h[8];
		unpack(high[p], h);
		low[p] = make_uint4(pack(x[0] - h[0], x[1] - h[1]), pack(x[2] - h[2], x[3] - h[3]),
			pack(x[4] - h[4], x[5] - h[5]), pack(x[6] - h[6], x[7] - h[7]));
	}
};

// Consumer is a thread of the warps that multiply.
struct Consumer {
	Cursor at;
	int lane, warp;
	u32 parity = 0;   // of the half of sh.sums that is next
	u32 *work;        // counts and exchanged words
	u32 *words;       // the words
	const u32 *copy;  // the copy of them that this block reads

	__device__ __forceinline__ int element(int p) const { return (2 * p + lane / 16) * SEGMENT + warp * PIECE + lane % 16 * 8; }

	// multiply multiplies n rows of K columns with x, and calls done(row, sum) in a thread for each
	// row. With PAIRS, n is the number of pairs, and it calls done(pair, sum, sum) for each pair.
	//
	// The four lanes 4i to 4i+3 have 32 consecutive numbers of x: a group. A tile's products with
	// group i are added to row i of a matrix c, and those with the low parts to row i+8. So the
	// other rows of the first factor must be 0. Column j of c is for row j of the weights.
	template <int K, bool PAIRS, class Done> __device__ __forceinline__ void multiply(const Input<K> &x, int n, int count, Done done)
	{
		if (PAIRS)
			n *= 2;
		for (int first = 0; first < n; first += GATHER) {
			int m = min(GATHER, n - first);
			float (&sums)[GATHER][WARPS] = sh.sums[parity];
			parity ^= 1;
			for (int g = 0; g < m; g += TILE) {
				float c[4][4] = {};
#pragma unroll
				for (int s = 0; s < segments(K); s++) {
					await(&sh.full[at.stage], at.parity);
					int o = warp * PIECE + lane % 4 * 8;
					const unsigned char *from = ring + at.stage * SLOT + lane / 4 * PITCH + o * 2;
					uint4 v[PIECE / 32];
#pragma unroll
					for (int i = 0; i < PIECE / 32; i++) {
						v[i] = make_uint4(0, 0, 0, 0);
						if (s * SEGMENT + o + i * 32 < K)
							v[i] = *(const uint4 *)(from + i * 64);
					}
					__syncwarp();
					if (lane == 0)
						arrive(&sh.empty[at.stage]);
					at.next();
#ifndef IDLE
#pragma unroll
					for (int i = 0; i < PIECE / 32; i++) {
						u32 mask = lane / 4 == s % 2 * 4 + i ? ~0u : 0;
						uint4 h = x.high[s / 2], l = x.low[s / 2];
						multiplyTile(c[i % 2 * 2], h.x & mask, l.x & mask, h.y & mask, l.y & mask, v[i].x, v[i].y);
						multiplyTile(c[i % 2 * 2 + 1], h.z & mask, l.z & mask, h.w & mask, l.w & mask, v[i].z, v[i].w);
					}
#endif
				}
				float a = 0, b = 0;
#pragma unroll
				for (int i = 0; i < 4; i++)
					a += c[i][0] + c[i][2], b += c[i][1] + c[i][3];
				bool odd = lane & 16;
				float y = (odd ? b : a) + __shfl_xor_sync(~0u, odd ? a : b, 16);
				y += __shfl_xor_sync(~0u, y, 8);
				y += __shfl_xor_sync(~0u, y, 4);
				if ((lane & 12) == 0)
					sums[g + lane % 4 * 2 + odd][warp] = y;
			}
			consumers();
			if (int i = threadIdx.x; i < (PAIRS ? m / 2 : m)) {
				if constexpr (PAIRS)
					done(first / 2 + i, total(sums[2 * i]), total(sums[2 * i + 1]));
				else
					done(first + i, total(sums[i]));
			}
			written(count, PAIRS ? m / 2 : m);
		}
	}

	__device__ __forceinline__ static float total(const float (&a)[WARPS])
	{
		float y = 0;
#pragma unroll
		for (int i = 0; i < WARPS; i++)
			y += a[i];
		return y;
	}

	// written adds n, the number of words that the block's first n threads have written, to a
	// count. For sums it does so on all ranks.
	__device__ __forceinline__ void written(int count, int n)
	{
		__syncwarp();
		if (count < 0 || lane != 0 || warp * 32 >= n)
			return;
		bool sum = RANKS > 1 && (count == OUT_COUNT || count == DOWN_COUNT);
		for (int r = 0; r < (sum ? RANKS : 1); r++)
			asm volatile("red.relaxed." SCOPE ".global.add.u32 [%0], %1;"
				:: "l"((sum ? workOf(r, work) : work) + AT_COUNTS + count * 32), "r"(min(32, n - warp * 32)) : "memory");
	}

	// putSum writes this rank's part of number i of a sum to the words of all ranks.
	__device__ __forceinline__ void putSum(int at, int i, float residual, float y, u32 tag)
	{
		int rank = RANKS > 1 ? sh.peers.rank : 0;
		if (rank == 0)
			y += residual;
#pragma unroll
		for (int r = 0; r < RANKS; r++)
			put(workOf(r, work) + AT_WORDS + at + rank * padded(WIDTH) + spread(i), y, tag);
	}

	// takeSum waits for all ranks' parts of a sum, and adds them in a warp's part of x.
	__device__ __forceinline__ void takeSum(int count, int at, u32 tag, float (&x)[passes(WIDTH)][8])
	{
		expect(count, RANKS * WIDTH, tag);
		take<WIDTH>(at, tag, x);
#pragma unroll
		for (int r = 1; r < RANKS; r++) {
			float y[passes(WIDTH)][8];
			take<WIDTH>(at + r * padded(WIDTH), tag, y);
#pragma unroll
			for (int p = 0; p < passes(WIDTH); p++) {
#pragma unroll
				for (int j = 0; j < 8; j++)
					x[p][j] += y[p][j];
			}
		}
	}

	// expect waits until HINT percent of the n words of an exchange are counted. The count may be
	// ahead of the words, so this only saves polls.
	__device__ __forceinline__ void expect(int count, int n, u32 tag)
	{
#ifndef UNTAGGED
		if (threadIdx.x == 0) {
			u32 enough = tag * (u32)n - (u32)(n * (100 - HINT) / 100);
			Patience p;
			while ((int)(load(work + AT_COUNTS + count * 32) - enough) < 0 && !p.over()) {
			}
		}
		consumers();
#endif
	}

	// take waits for a warp's part of an exchanged vector of K words, and reads it. Numbers behind
	// the vector become 0.
	template <int K> __device__ __forceinline__ void take(int from, u32 tag, float (&x)[passes(K)][8])
	{
		uint4 w[passes(K)][2];
		bool wait[passes(K)], again;
#pragma unroll
		for (int p = 0; p < passes(K); p++) {
			wait[p] = element(p) < K;
			w[p][0] = w[p][1] = make_uint4(0, 0, 0, 0);
		}
		Patience patience;
		do {
			again = false;
#pragma unroll
			for (int p = 0; p < passes(K); p++) {
				if (wait[p]) {
					const u32 *at = copy + from + element(p) - lane % 16 * 4;
					w[p][0] = peek(at), w[p][1] = peek(at + PIECE / 2);
				}
			}
#pragma unroll
			for (int p = 0; p < passes(K); p++) {
				wait[p] = wait[p] && (untagged(w[p][0], tag) | untagged(w[p][1], tag));
				again |= wait[p];
			}
		} while (again && !patience.over());
#pragma unroll
		for (int p = 0; p < passes(K); p++)
			values(w[p][0], w[p][1], x[p]);
		__syncwarp();
	}

	// weights loads a lane's part of a norm's weights.
	__device__ __forceinline__ void weights(const u16 *w, uint4 (&to)[passes(WIDTH)])
	{
#pragma unroll
		for (int p = 0; p < passes(WIDTH); p++)
			to[p] = element(p) < WIDTH ? __ldg((const uint4 *)(w + element(p))) : make_uint4(0, 0, 0, 0);
	}

	// norm multiplies x with a norm's weights. It stores the sum of squares for scale, and in
	// residual the numbers of x to which the block will add its results.
	__device__ __forceinline__ void norm(const float (&x)[passes(WIDTH)][8], const uint4 (&weight)[passes(WIDTH)], float *residual, Rows own, Input<WIDTH> &to)
	{
		float squares = 0;
#pragma unroll
		for (int p = 0; p < passes(WIDTH); p++) {
			int e = element(p) - own.first;
			float y[8];
			unpack(weight[p], y);
#pragma unroll
			for (int j = 0; j < 8; j++) {
				squares += x[p][j] * x[p][j];
				if (e + j >= 0 && e + j < own.n)
					residual[e + j] = x[p][j];
				y[j] *= x[p][j];
			}
			to.set(p, y);
		}
#pragma unroll
		for (int m = 16; m > 0; m /= 2)
			squares += __shfl_xor_sync(~0u, squares, m);
		if (lane == 0)
			sh.squares[warp] = squares;
	}

	// scale is the norm's factor. The barrier in multiply lies between norm and scale.
	__device__ __forceinline__ static float scale(float eps) { return rsqrtf(total(sh.squares) * (1.f / WIDTH) + eps); }

	// attend computes the block's task of the attention.
	__device__ __forceinline__ void attend(unsigned char *cache, Part part, int position, int newPage, int layer, u32 tag)
	{
		int head = blockIdx.x % HEADS, kv = head / (HEADS / KV_HEADS), number = blockIdx.x / HEADS;
		int d = lane % TOKEN_LANES * 8, place = lane / TOKEN_LANES;
		int partner = (d + HEAD_DIM / 2) % HEAD_DIM;
		bool fresh = number == 0 && warp == 0; // this warp has the new token
		float q[8], newK[8], newV[8], acc[8], most = -1e30f, sum = 0;
		const u32 *atQ = copy + AT_QKV + head * HEAD_DIM, *atK = copy + AT_QKV + (HEADS + kv) * HEAD_DIM;
		const u32 *atV = copy + AT_QKV + (HEADS + KV_HEADS + kv) * HEAD_DIM;
		if (fresh) {
			float y[5][8];
			takeEights<5>({atQ + d, atQ + partner, atK + d, atK + partner, atV + d}, tag, y);
			rotate(y[0], y[1], d, q);
			rotate(y[2], y[3], d, newK);
#pragma unroll
			for (int j = 0; j < 8; j++)
				newV[j] = y[4][j];
		} else {
			float y[2][8];
			takeEights<2>({atQ + d, atQ + partner}, tag, y);
			rotate(y[0], y[1], d, q);
		}
#pragma unroll
		for (int j = 0; j < 8; j++)
			q[j] *= rsqrtf(HEAD_DIM) * 1.44269504f, acc[j] = 0;
		auto token = [&](const float (&k)[8], const float (&v)[8], bool valid) {
			float s = 0;
#pragma unroll
			for (int j = 0; j < 8; j++)
				s += q[j] * k[j];
#pragma unroll
			for (int m = TOKEN_LANES / 2; m > 0; m /= 2)
				s += __shfl_xor_sync(~0u, s, m);
			if (valid) {
				float now = fmaxf(most, s), old = power2(most - now), p = power2(s - now);
				most = now;
				sum = sum * old + p;
#pragma unroll
				for (int j = 0; j < 8; j++)
					acc[j] = acc[j] * old + p * v[j];
			}
		};
		for (int c = 0; c < part.n; c += SLOT_PAGES) {
			await(&sh.full[at.stage], at.parity);
			const unsigned char *from = ring + at.stage * SLOT;
			int tokens = min(SLOT_PAGES, part.n - c) * PAGE_TOKENS;
			int left = position - (part.first + c) * PAGE_TOKENS;
			constexpr int AT_ONCE = 32 / TOKEN_LANES;
			for (int o = warp * AT_ONCE; o < tokens; o += WARPS * AT_ONCE) {
				int i = o + place;
				const unsigned char *key = from + i / PAGE_TOKENS * 2 * PAGE + (i % PAGE_TOKENS * HEAD_DIM + d) * 2;
				float k[8], v[8];
				unpack(*(const uint4 *)key, k);
				unpack(*(const uint4 *)(key + PAGE), v);
				token(k, v, i < left);
			}
			__syncwarp();
			if (lane == 0)
				arrive(&sh.empty[at.stage]);
			at.next();
		}
		if (fresh) {
			uint4 key = make_uint4(pack(newK[0], newK[1]), pack(newK[2], newK[3]), pack(newK[4], newK[5]), pack(newK[6], newK[7]));
			uint4 val = make_uint4(pack(newV[0], newV[1]), pack(newV[2], newV[3]), pack(newV[4], newV[5]), pack(newV[6], newV[7]));
			unpack(key, newK), unpack(val, newV);
			token(newK, newV, place == 0);
			if (place == 0 && head % (HEADS / KV_HEADS) == 0) {
				unsigned char *to = cache + newPage * PAGE_BYTES + (u64)(layer * 2 * KV_HEADS + kv) * PAGE +
					(position % PAGE_TOKENS * HEAD_DIM + d) * 2;
				*(uint4 *)to = key;
				*(uint4 *)(to + KV_HEADS * PAGE) = val;
			}
		}
#pragma unroll
		for (int m = TOKEN_LANES; m < 32; m *= 2) {
			float other = __shfl_xor_sync(~0u, most, m), now = fmaxf(most, other);
			float f = power2(most - now), g = power2(other - now);
			most = now;
			sum = sum * f + __shfl_xor_sync(~0u, sum, m) * g;
#pragma unroll
			for (int j = 0; j < 8; j++)
				acc[j] = acc[j] * f + __shfl_xor_sync(~0u, acc[j], m) * g;
		}
		float *to = sh.heads[warp];
		if (place == 0) {
#pragma unroll
			for (int j = 0; j < 8; j++)
				to[d + j] = acc[j];
		}
		if (lane == 0)
			to[HEAD_DIM] = most, to[HEAD_DIM + 1] = sum;
		consumers();
		if (int e = threadIdx.x; e < HEAD_DIM) {
			float top = -1e30f, all = 0, a = 0;
#pragma unroll
			for (int w = 0; w < WARPS; w++)
				top = fmaxf(top, sh.heads[w][HEAD_DIM]);
			top = __uint_as_float(rounded(top)); // the sums belong to the maximum that readers see
#pragma unroll
			for (int w = 0; w < WARPS; w++) {
				float f = power2(sh.heads[w][HEAD_DIM] - top);
				all += sh.heads[w][HEAD_DIM + 1] * f;
				a += sh.heads[w][e] * f;
			}
			putPart(e, a / all, top, all, tag);
		}
	}

	// putPart writes number e of the result of the block's task. For e = 0 it also writes the
	// maximum and the sum.
	__device__ __forceinline__ void putPart(int e, float x, float most, float sum, u32 tag)
	{
		put(words + AT_PARTS + blockIdx.x / HEADS * padded(Q) + spread(blockIdx.x % HEADS * HEAD_DIM + e), x, tag);
		if (e == 0)
			put(words + AT_STATS + blockIdx.x * 2, most, tag), put(words + AT_STATS + blockIdx.x * 2 + 1, sum, tag);
	}

	// rotate applies the rotary position embedding to numbers d to d+7 of a head of q or k. y are
	// their partners.
	__device__ __forceinline__ static void rotate(const float (&x)[8], const float (&y)[8], int d, float (&to)[8])
	{
		int o = d % (HEAD_DIM / 2);
#pragma unroll
		for (int j = 0; j < 8; j++)
			to[j] = x[j] * sh.cosine[o + j] + (d < HEAD_DIM / 2 ? -y[j] : y[j]) * sh.sine[o + j];
	}

	// combine waits for the results of all parts of the sequence, and joins them.
	__device__ __forceinline__ void combine(int used, u32 tag, Input<Q> &to)
	{
		constexpr int BATCH = PARTS < 4 ? PARTS : 4;
#pragma unroll
		for (int p = 0; p < passes(Q); p++) {
			float top = -1e30f, all = 0, x[8] = {};
			int e = element(p);
			if (e < Q) {
				for (int first = 0; first < used; first += BATCH) {
					uint2 stats[BATCH];
					uint4 w[BATCH][2];
					bool wait[BATCH], again;
#pragma unroll
					for (int i = 0; i < BATCH; i++)
						wait[i] = first + i < used;
					Patience patience;
					do {
						again = false;
#pragma unroll
						for (int i = 0; i < BATCH; i++) {
							if (wait[i]) {
								const u32 *at = copy + AT_PARTS + (first + i) * padded(Q) + e - lane % 16 * 4;
								stats[i] = peek2(copy + AT_STATS + ((first + i) * HEADS + e / HEAD_DIM) * 2);
								w[i][0] = peek(at), w[i][1] = peek(at + PIECE / 2);
							}
						}
#pragma unroll
						for (int i = 0; i < BATCH; i++) {
							wait[i] = wait[i] && (untagged(stats[i], tag) | untagged(w[i][0], tag) | untagged(w[i][1], tag));
							again |= wait[i];
						}
					} while (again && !patience.over());
#pragma unroll
					for (int i = 0; i < BATCH; i++) {
						if (first + i < used) {
							float y[8], most = value(stats[i].x), now = fmaxf(top, most);
							float f = power2(top - now), g = power2(most - now) * value(stats[i].y);
							values(w[i][0], w[i][1], y);
							top = now;
							all = all * f + g;
#pragma unroll
							for (int j = 0; j < 8; j++)
								x[j] = x[j] * f + g * y[j];
						}
					}
				}
#pragma unroll
				for (int j = 0; j < 8; j++)
					x[j] /= all;
			}
			to.set(p, x);
		}
		__syncwarp();
	}
};

extern "C" __global__ void __launch_bounds__(CONSUMERS + 32, 1) decode(Dims dims, Peers peers, const u64 *table, const void *embeddings, const void *lastNorm,
	const void *head, const float *freq, void *cache, const int *pages, const int *active, const int *token,
	const int *position, u64 *work, float *logits)
{
	int slot = active[0];
	if (threadIdx.x == 0) {
		for (int i = 0; i < STAGES; i++) {
			asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" :: "r"(address(&sh.full[i])));
			asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" :: "r"(address(&sh.empty[i])), "n"(WARPS));
		}
		asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
		asm volatile("fence.proxy.async;" ::: "memory");
		if (RANKS > 1)
			sh.peers = peers, sh.lost = 0;
	}
	for (int i = threadIdx.x; i < LAYERS * 6; i += CONSUMERS + 32)
		((u64 *)sh.layers)[i] = table[i];
	if (slot < 0)
		return;
	__syncthreads();
	int pos = position[slot];
	Part part(pos);
	pages += (u64)slot * MAX_PAGES;

	if (threadIdx.x >= CONSUMERS) {
		Producer p;
		p.lane = threadIdx.x % 32;
		asm volatile("createpolicy.fractional.L2::evict_first.b64 %0, 1.0;" : "=l"(p.policy));
		for (int l = 0; l < LAYERS; l++) {
			p.rows<WIDTH, false>(sh.layers[l].qkv, rowsOfQKV(l));
			if (part.mine)
				p.pages((const unsigned char *)cache, pages + part.first, part.n, l);
			p.rows<Q, false>(sh.layers[l].out, rowsOfOut(l));
			p.rows<WIDTH, true>(sh.layers[l].gateUp, rowsOfGate(l));
			p.rows<FFN, false>(sh.layers[l].down, rowsOfDown(l));
		}
		p.rows<WIDTH, false>((const u16 *)head, rowsOfHead());
		return;
	}

	Consumer c;
	c.lane = threadIdx.x % 32, c.warp = threadIdx.x / 32;
	c.work = (u32 *)work, c.words = c.work + AT_WORDS, c.copy = c.words + blockIdx.x % COPIES * WORDS;
	u32 launch = (u32)work[blockIdx.x]; // number of this block's launches before this one
	int newPage = pages[pos / PAGE_TOKENS];
	float x[passes(WIDTH)][8];
	uint4 weight[passes(WIDTH)];
	Input<WIDTH> in;
	c.weights((const u16 *)embeddings + (u64)token[slot] * WIDTH, weight);
#pragma unroll
	for (int p = 0; p < passes(WIDTH); p++)
		unpack(weight[p], x[p]);
	for (int i = threadIdx.x; i < HEAD_DIM / 2; i += CONSUMERS) { // a barrier lies between this and attend
		float s, c;
		sincosf(pos * freq[i], &s, &c);
		sh.cosine[i] = c * dims.ropeFactor, sh.sine[i] = s * dims.ropeFactor;
	}
	for (int l = 0; l < LAYERS; l++) {
		u32 tag = launch * LAYERS + l + 1;
		Rows out = rowsOfOut(l), gate = rowsOfGate(l), down = rowsOfDown(l), qkv = rowsOfQKV(l);
		c.weights(sh.layers[l].norm1, weight);
		if (l > 0)
			c.takeSum(DOWN_COUNT, AT_DOWN, tag - 1, x);
		c.norm(x, weight, sh.residual[0], out, in);
		c.multiply<WIDTH, false>(in, qkv.n, QKV_COUNT, [&](int i, float y) {
			put(c.words + AT_QKV + qkv.first + i, y * Consumer::scale(dims.eps), tag);
		});
		if (part.mine) {
			c.expect(QKV_COUNT, QKV, tag);
			c.attend((unsigned char *)cache, part, pos, newPage, l, tag);
		} else if (blockIdx.x < TASKS && threadIdx.x < HEAD_DIM)
			c.putPart(threadIdx.x, 0, 0, 0, tag);
		if (blockIdx.x < TASKS)
			c.written(PARTS_COUNT, HEAD_DIM);
		{
			Input<Q> a;
			c.expect(PARTS_COUNT, TASKS * HEAD_DIM, tag);
			c.combine(part.used, tag, a);
			c.multiply<Q, false>(a, out.n, OUT_COUNT, [&](int i, float y) {
				c.putSum(AT_OUT, out.first + i, sh.residual[0][i], y, tag);
			});
		}
		c.weights(sh.layers[l].norm2, weight);
		c.takeSum(OUT_COUNT, AT_OUT, tag, x);
		c.norm(x, weight, sh.residual[1], down, in);
		c.multiply<WIDTH, true>(in, gate.n, GATE_COUNT, [&](int i, float g, float u) {
			float f = Consumer::scale(dims.eps);
			g *= f;
			put(c.words + AT_GATE + spread(gate.first + i), g / (1 + __expf(-g)) * u * f, tag);
		});
		{
			Input<FFN> h;
			float y[passes(FFN)][8];
			c.expect(GATE_COUNT, FFN, tag);
			c.take<FFN>(AT_GATE, tag, y);
#pragma unroll
			for (int p = 0; p < passes(FFN); p++)
				h.set(p, y[p]);
			c.multiply<FFN, false>(h, down.n, DOWN_COUNT, [&](int i, float y) {
				c.putSum(AT_DOWN, down.first + i, sh.residual[1][i], y, tag);
			});
		}
	}
	Rows rows = rowsOfHead();
	c.weights((const u16 *)lastNorm, weight);
	c.takeSum(DOWN_COUNT, AT_DOWN, launch * LAYERS + LAYERS, x);
	c.norm(x, weight, sh.residual[0], Rows(0, 0), in);
	c.multiply<WIDTH, false>(in, rows.n, -1, [&](int i, float y) {
		logits[rows.first + i] = y * Consumer::scale(dims.eps);
	});
	if (threadIdx.x == 0)
		work[blockIdx.x] = launch + 1;
}
