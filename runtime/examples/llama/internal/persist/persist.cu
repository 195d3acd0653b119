// decode computes one token of a Llama-style decoder at batch 1 in one cooperative launch of a block
// for each multiprocessor. It needs compute capability 9.0.
//
// The time is that of reading all weights once, if memory never rests. So in each block one warp, the
// producer, copies the block's rows of all matrices, in order, into a ring of stages in shared memory,
// also while the other warps wait for other blocks. These multiply rows with the input vector, which
// each thread has in registers: a team of TEAM threads takes ROWS rows at once, and each of its
// threads 8 numbers of a row.
//
// Blocks exchange vectors through tagged words: 32 bits of data, and above them a tag that each layer
// of each token increments. A reader polls the words that it needs until all have the tag. So there
// is no barrier of the whole grid, and no fence. A word is overwritten only by a block that has input
// which depends, through the matrices between, on every block that reads the old value.
//
// Macros, by options -D: BLOCKS, LAYERS, WIDTH, HEADS, KV_HEADS, HEAD_DIM, FFN, VOCAB, MAX_PAGES,
// HALF, and for speed TEAM, TEAMS, ROWS, STAGES, GATHER, TASK_HEADS. With SPIN_LIMIT a wait of so many
// clock cycles traps. Only for measurements: SLEEP (nanoseconds between polls), PROBE (each warp polls
// the words of each PROBE-th lane first), BARRIER (a barrier of the grid before each exchange),
// SAME_POLICY (weights stay in the L2 cache as long as other data), UNTAGGED (no block waits for
// another, so results are wrong), IDLE (nothing is multiplied).

typedef unsigned long long u64;
typedef unsigned int u32;
typedef unsigned short u16;

struct Dims {
	int layers, width, heads, kvHeads, headDim, ffn, vocab, maxPages, half, fp8;
	float eps, ropeFactor;
};

constexpr int PAGE_TOKENS = 16;
constexpr int QKV = (HEADS + 2 * KV_HEADS) * HEAD_DIM;
constexpr int TEAM_WARPS = TEAM / 32, WARPS = TEAM_WARPS * TEAMS, CONSUMERS = TEAM * TEAMS;
constexpr int SEGMENT = TEAM * 8;          // numbers of a row that a team multiplies at once
constexpr int SLOT = ROWS * SEGMENT * 2;   // bytes of a stage
constexpr int PAGE = PAGE_TOKENS * HEAD_DIM * 2; // bytes of keys or values of a page, of one head
constexpr u64 PAGE_BYTES = (u64)LAYERS * 2 * KV_HEADS * PAGE;

// segments is how many steps a row takes. padded is the length of a vector with whole segments.
__device__ constexpr int segments(int k) { return (k + SEGMENT - 1) / SEGMENT; }
__device__ constexpr int padded(int k) { return segments(k) * SEGMENT; }

// Attention: a task is TASK_HEADS heads and a part of the sequence. Block b has task b.
constexpr int GROUPS = HEADS / TASK_HEADS, PARTS = BLOCKS / GROUPS, TASKS = GROUPS * PARTS;
constexpr int PART_PAGES = (MAX_PAGES + PARTS - 1) / PARTS;
constexpr int SLOT_PAGES = SLOT / (2 * PAGE) < 16 ? SLOT / (2 * PAGE) : 16;
constexpr int TOKEN_LANES = HEAD_DIM / 8; // lanes that share a token's key

static_assert(ROWS <= 32 && (ROWS & (ROWS - 1)) == 0 && GATHER % ROWS == 0 && GATHER % 4 == 0, "ROWS, GATHER");
static_assert(SLOT_PAGES > 0, "a stage must hold a page of keys and values");
static_assert(PARTS > 0 && HEADS % TASK_HEADS == 0 && HEADS / KV_HEADS % TASK_HEADS == 0, "TASK_HEADS");
static_assert(WIDTH % 8 == 0 && FFN % 8 == 0 && HEAD_DIM % 16 == 0 && HEAD_DIM <= 256, "sizes");

// Exchanged words, in u64 from the start of work. The two words of a thread's load are adjacent.
constexpr int AT_OUT = (BLOCKS + 2) & ~1;          // residual stream behind the attention
constexpr int AT_DOWN = AT_OUT + padded(WIDTH);    // residual stream behind the layer
constexpr int AT_QKV = AT_DOWN + padded(WIDTH);
constexpr int AT_GATE = AT_QKV + QKV;
constexpr int AT_STATS = AT_GATE + padded(FFN) / 2; // of a part and head: maximum, sum
constexpr int AT_PARTS = AT_STATS + PARTS * HEADS * 2;
constexpr int PART_WORDS = padded(HEADS * HEAD_DIM) / 2;

// A Layer has the addresses of a layer's weights.
struct Layer {
	const u16 *norm1, *qkv, *out, *norm2, *gateUp, *down;
};

struct Shared {
	u64 full[STAGES], empty[STAGES];
	alignas(16) float sums[2][GATHER][TEAM_WARPS]; // of rows, by warp
	float squares[TEAM_WARPS];
	float residual[2][(WIDTH + BLOCKS - 1) / BLOCKS];
	float cosine[HEAD_DIM / 2], sine[HEAD_DIM / 2];
	float heads[WARPS][TASK_HEADS][HEAD_DIM + 2]; // attention of a warp: sum of values, maximum, sum
	int pages[PART_PAGES];
	Layer layers[LAYERS];
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

// Patience traps if a wait is too long.
struct Patience {
#ifdef SPIN_LIMIT
	long long start = clock64();
	__device__ __forceinline__ void poll() { if (clock64() - start > SPIN_LIMIT) asm volatile("trap;"); }
#else
	__device__ __forceinline__ void poll() {}
#endif
};

// Barriers in shared memory.
__device__ __forceinline__ u32 address(const void *p) { return (u32)__cvta_generic_to_shared(p); }

__device__ __forceinline__ void await(const u64 *barrier, u32 parity)
{
	Patience p;
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
__device__ __forceinline__ void put(u64 *at, float x, u32 tag)
{
	u64 w = (u64)tag << 32 | __float_as_uint(x);
	asm volatile("st.relaxed.gpu.global.u64 [%0], %1;" :: "l"(at), "l"(w) : "memory");
}

__device__ __forceinline__ void peek(const u64 *at, u64 &a, u64 &b)
{
	asm volatile("ld.relaxed.gpu.global.v2.u64 {%0, %1}, [%2];" : "=l"(a), "=l"(b) : "l"(at) : "memory");
}

__device__ __forceinline__ bool tagged(u64 w, u32 tag)
{
#ifdef UNTAGGED
	return true;
#else
	return (u32)(w >> 32) == tag;
#endif
}

__device__ __forceinline__ float value(u64 w) { return __uint_as_float((u32)w); }

// probe waits for a few of a warp's words, so that most polls are small.
__device__ __forceinline__ void probe(const u64 *at, u32 tag)
{
#ifdef PROBE
	if (threadIdx.x % PROBE == 0) {
		u64 a, b;
		Patience p;
		for (peek(at, a, b); !tagged(a, tag) || !tagged(b, tag); peek(at, a, b))
			p.poll();
	}
	__syncwarp(__activemask());
#endif
}

__device__ __forceinline__ void pause()
{
#ifdef SLEEP
	__nanosleep(SLEEP);
#endif
}

// spread is the place of element e in a vector of tagged words, so that a warp's loads are
// contiguous: word pair j of thread t is elements 8t+2j and 8t+2j+1 of the segment.
__device__ __forceinline__ int spread(int e)
{
	int o = e % SEGMENT;
	return e - o + ((o % 8 / 2) * TEAM + o / 8) * 2 + (o & 1);
}

// spreadPairs is the same for a vector whose words have two 16-bit elements: e and e+1. Word pair j of
// thread t is elements 8t+4j to 8t+4j+3 of the segment.
__device__ __forceinline__ int spreadPairs(int e)
{
	int o = e % SEGMENT;
	return (e - o) / 2 + ((o % 8 / 4) * TEAM + o / 8) * 2 + (o / 2 & 1);
}

// take reads a thread's elements of a vector of K tagged words. The others become 0.
template <int K> __device__ __forceinline__ void take(const u64 *from, u32 tag, int t, float (&x)[segments(K)][8])
{
	probe(from + (t * 8 < K ? t : 0) * 2, tag);
	Patience p;
	for (;;) {
		bool ok = true;
		u64 w[segments(K)][8];
#pragma unroll
		for (int s = 0; s < segments(K); s++) {
			if (s * SEGMENT + t * 8 < K) {
#pragma unroll
				for (int j = 0; j < 4; j++)
					peek(from + s * SEGMENT + (j * TEAM + t) * 2, w[s][2 * j], w[s][2 * j + 1]);
			}
		}
#pragma unroll
		for (int s = 0; s < segments(K); s++) {
			bool mine = s * SEGMENT + t * 8 < K;
#pragma unroll
			for (int j = 0; j < 8; j++) {
				if (mine)
					ok = ok && tagged(w[s][j], tag);
				x[s][j] = mine ? value(w[s][j]) : 0;
			}
		}
		if (ok)
			return;
		p.poll();
		pause();
	}
}

// takePairs is take for words of two elements.
template <int K> __device__ __forceinline__ void takePairs(const u64 *from, u32 tag, int t, float (&x)[segments(K)][8])
{
	probe(from + (t * 8 < K ? t : 0) * 2, tag);
	Patience p;
	for (;;) {
		bool ok = true;
		u64 w[segments(K)][4];
#pragma unroll
		for (int s = 0; s < segments(K); s++) {
			if (s * SEGMENT + t * 8 < K) {
				peek(from + s * SEGMENT / 2 + t * 2, w[s][0], w[s][1]);
				peek(from + s * SEGMENT / 2 + (TEAM + t) * 2, w[s][2], w[s][3]);
			}
		}
#pragma unroll
		for (int s = 0; s < segments(K); s++) {
			bool mine = s * SEGMENT + t * 8 < K;
#pragma unroll
			for (int j = 0; j < 4; j++) {
				if (mine)
					ok = ok && tagged(w[s][j], tag);
				x[s][2 * j] = mine ? low((u32)w[s][j]) : 0;
				x[s][2 * j + 1] = mine ? high((u32)w[s][j]) : 0;
			}
		}
		if (ok)
			return;
		p.poll();
		pause();
	}
}

// take8 reads 8 consecutive tagged words.
__device__ __forceinline__ void take8(const u64 *from, u32 tag, float (&x)[8])
{
	Patience p;
	for (;;) {
		bool ok = true;
		u64 w[8];
#pragma unroll
		for (int j = 0; j < 8; j += 2)
			peek(from + j, w[j], w[j + 1]);
#pragma unroll
		for (int j = 0; j < 8; j++) {
			ok = ok && tagged(w[j], tag);
			x[j] = value(w[j]);
		}
		if (ok)
			return;
		p.poll();
		pause();
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
__device__ __forceinline__ Rows rowsOfGate(int layer) { return Rows(FFN / 2, layer * 4 + 2); } // two of gate, two of up
__device__ __forceinline__ Rows rowsOfDown(int layer) { return Rows(WIDTH, layer * 4 + 3); }
__device__ __forceinline__ Rows rowsOfHead() { return Rows(VOCAB, LAYERS * 4); }

// Part is this block's part of the attention, in pages. Only old tokens are in pages; part 0 has the
// new one too.
struct Part {
	int used;     // parts with work
	int first, n; // pages
	bool mine;    // this block has work
	__device__ __forceinline__ Part(int position)
	{
		int pages = (position + PAGE_TOKENS - 1) / PAGE_TOKENS, each = (pages + PARTS - 1) / PARTS;
		used = pages ? (pages + each - 1) / each : 1;
		int part = blockIdx.x / GROUPS;
		first = part * each;
		n = min(each, pages - first);
		mine = blockIdx.x < TASKS && part < used;
	}
};

// Producer is the warp that fills the ring.
struct Producer {
	u32 at = 0; // chunks so far
	int lane;
	u64 policy; // weights are read once: let them leave the L2 cache first

	// begin waits for a free stage and announces bytes for it.
	__device__ __forceinline__ int begin(int bytes)
	{
		int stage = at % STAGES;
		await(&sh.empty[stage], (at / STAGES & 1) ^ 1);
		if (lane == 0)
			asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;"
				:: "r"(address(&sh.full[stage])), "r"(bytes) : "memory");
		__syncwarp();
		at++;
		return stage;
	}

	__device__ __forceinline__ void copy(int stage, int offset, const void *from, int bytes, bool once)
	{
		u32 to = address(ring) + stage * SLOT + offset, full = address(&sh.full[stage]);
#ifndef SAME_POLICY
		if (once)
			asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.L2::cache_hint [%0], [%1], %2, [%3], %4;"
				:: "r"(to), "l"(from), "r"(bytes), "r"(full), "l"(policy) : "memory");
		else
#endif
			asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];"
				:: "r"(to), "l"(from), "r"(bytes), "r"(full) : "memory");
	}

	// rows sends rows of a matrix of K columns. In fours these are rows 2i, 2i+1, FFN+2i, FFN+2i+1.
	template <int K, bool FOURS> __device__ __forceinline__ void rows(const u16 *w, Rows r)
	{
		int n = FOURS ? 4 * r.n : r.n;
		for (int g = 0; g < n; g += ROWS) {
			int m = min(ROWS, n - g), i = g + lane;
			int row = FOURS ? (r.first + i / 4) * 2 + (i & 1) + (i / 2 & 1) * FFN : r.first + i;
			const u16 *from = w + (u64)row * K;
#pragma unroll
			for (int s = 0; s < segments(K); s++) {
				constexpr int last = K - (segments(K) - 1) * SEGMENT;
				int bytes = (s < segments(K) - 1 ? SEGMENT : last) * 2;
				int stage = begin(m * bytes);
				if (lane < m)
					copy(stage, lane * SEGMENT * 2, from + s * SEGMENT, bytes, true);
			}
		}
	}

	// pages sends keys and values of the block's part of the sequence.
	__device__ __forceinline__ void pages(const unsigned char *cache, Part part, int layer)
	{
		int kv = blockIdx.x % GROUPS * TASK_HEADS / (HEADS / KV_HEADS);
		for (int c = 0; c < part.n; c += SLOT_PAGES) {
			int m = min(SLOT_PAGES, part.n - c);
			int stage = begin(m * 2 * PAGE);
			if (lane < 2 * m)
				copy(stage, lane * PAGE, cache + sh.pages[c + lane / 2] * PAGE_BYTES +
					(u64)((layer * 2 + (lane & 1)) * KV_HEADS + kv) * PAGE, PAGE, false);
		}
	}
};

// reduce adds each of ROWS numbers over a warp. The sum of row lane/(32/ROWS) is in each lane.
__device__ __forceinline__ float reduce(float (&a)[ROWS], int lane)
{
	int m = 16;
#pragma unroll
	for (int n = ROWS / 2; n > 0; n /= 2, m /= 2) {
		bool upper = lane & m;
#pragma unroll
		for (int i = 0; i < n; i++) {
			float other = __shfl_xor_sync(~0u, upper ? a[i] : a[i + n], m);
			a[i] = (upper ? a[i + n] : a[i]) + other;
		}
	}
#pragma unroll
	for (; m > 0; m /= 2)
		a[0] += __shfl_xor_sync(~0u, a[0], m);
	return a[0];
}

// Consumer is a thread of a team.
struct Consumer {
	u32 at = 0; // chunks so far
	int lane, warp, team, t; // t is the thread's number in its team
	u32 parity = 0;          // of the half of sh.sums that is next
	u64 *work;
	u32 phase = 0; // only for BARRIER
	u32 launch;

	// multiply multiplies n rows of K columns with x, and calls done(row, sum) in a thread for each. With
	// FOURS, n is the number of fours, and it calls done(four, sum, sum, sum, sum).
	template <int K, bool FOURS, class Done> __device__ __forceinline__ void multiply(const float (&x)[segments(K)][8], int n, Done done)
	{
		int w = t / 32;
		if (FOURS)
			n *= 4;
		for (int first = 0; first < n; first += GATHER) {
			int m = min(GATHER, n - first), groups = (m + ROWS - 1) / ROWS;
			float (&sums)[GATHER][TEAM_WARPS] = sh.sums[parity];
			parity ^= 1;
			float before[ROWS]; // of the group whose sums are not reduced yet
#pragma unroll
			for (int r = 0; r < ROWS; r++)
				before[r] = 0;
			int place = -1;
			for (int g = team; g < groups; g += TEAMS) {
				float sum[ROWS];
#pragma unroll
				for (int r = 0; r < ROWS; r++)
					sum[r] = 0;
#pragma unroll
				for (int s = 0; s < segments(K); s++) {
					u32 chunk = at + g * segments(K) + s, stage = chunk % STAGES;
					await(&sh.full[stage], chunk / STAGES & 1);
					const unsigned char *from = ring + stage * SLOT + t * 16;
#ifdef IDLE
					bool mine = false;
#else
					bool mine = s * SEGMENT + t * 8 < K;
#endif
					uint4 v[ROWS];
					if (mine) {
#pragma unroll
						for (int r = 0; r < ROWS; r++)
							v[r] = *(const uint4 *)(from + r * SEGMENT * 2);
					}
					__syncwarp();
					if (lane == 0)
						arrive(&sh.empty[stage]);
					if (s == 0) {
						float y = reduce(before, lane);
						if (place >= 0 && lane % (32 / ROWS) == 0)
							sums[place + lane / (32 / ROWS)][w] = y;
					}
					if (mine) {
#pragma unroll
						for (int r = 0; r < ROWS; r++) {
							float y[8];
							unpack(v[r], y);
#pragma unroll
							for (int j = 0; j < 8; j++)
								sum[r] += y[j] * x[s][j];
						}
					}
				}
#pragma unroll
				for (int r = 0; r < ROWS; r++)
					before[r] = sum[r];
				place = g * ROWS;
			}
			if (place >= 0) {
				float y = reduce(before, lane);
				if (lane % (32 / ROWS) == 0)
					sums[place + lane / (32 / ROWS)][w] = y;
			}
			at += groups * segments(K);
			consumers();
			for (int i = threadIdx.x; i < (FOURS ? m / 4 : m); i += CONSUMERS) {
				if constexpr (FOURS)
					done(first / 4 + i, total(sums[4 * i]), total(sums[4 * i + 1]), total(sums[4 * i + 2]), total(sums[4 * i + 3]));
				else
					done(first + i, total(sums[i]));
			}
		}
		exchanged();
	}

	__device__ __forceinline__ static float total(const float (&a)[TEAM_WARPS])
	{
		float y = 0;
#pragma unroll
		for (int i = 0; i < TEAM_WARPS; i++)
			y += a[i];
		return y;
	}

	// exchanged waits until all blocks have called it, for measurements. Tags alone are enough.
	__device__ __forceinline__ void exchanged()
	{
#ifdef BARRIER
		consumers();
		if (threadIdx.x == 0) {
			u64 *counter = work + BLOCKS; // the words before are the blocks' own
			asm volatile("red.release.gpu.global.add.u64 [%0], 1;" :: "l"(counter) : "memory");
			u64 now, target = ((u64)launch * (LAYERS * 5 + 1) + ++phase) * BLOCKS;
			Patience p;
			do {
				asm volatile("ld.acquire.gpu.global.u64 %0, [%1];" : "=l"(now) : "l"(counter) : "memory");
				p.poll();
			} while (now < target);
		}
		consumers();
#endif
	}

	// weights loads a thread's part of a norm's weights.
	__device__ __forceinline__ void weights(const u16 *w, uint4 (&to)[segments(WIDTH)])
	{
#pragma unroll
		for (int s = 0; s < segments(WIDTH); s++) {
			int e = s * SEGMENT + t * 8;
			to[s] = e < WIDTH ? __ldg((const uint4 *)(w + e)) : make_uint4(0, 0, 0, 0);
		}
	}

	// norm multiplies x with a norm's weights and keeps what else the norm and the residual need:
	// the squares, and the rows that the block will add to.
	__device__ __forceinline__ void norm(float (&x)[segments(WIDTH)][8], const uint4 (&weight)[segments(WIDTH)], float *residual, Rows own)
	{
		float squares = 0;
#pragma unroll
		for (int s = 0; s < segments(WIDTH); s++) {
			int e = s * SEGMENT + t * 8 - own.first;
			float g[8];
			unpack(weight[s], g);
#pragma unroll
			for (int j = 0; j < 8; j++) {
				squares += x[s][j] * x[s][j];
				if (team == 0 && e + j >= 0 && e + j < own.n)
					residual[e + j] = x[s][j];
				x[s][j] *= g[j];
			}
		}
#pragma unroll
		for (int m = 16; m > 0; m /= 2)
			squares += __shfl_xor_sync(~0u, squares, m);
		if (team == 0 && lane == 0)
			sh.squares[t / 32] = squares;
	}

	// scale is the norm's factor. The barrier in multiply lies between norm and scale.
	__device__ __forceinline__ static float scale(float eps) { return rsqrtf(total(sh.squares) * (1.f / WIDTH) + eps); }

	// attend computes the block's task of the attention.
	__device__ __forceinline__ void attend(unsigned char *cache, Part part, int position, int newPage, int layer, u32 tag)
	{
		int head = blockIdx.x % GROUPS * TASK_HEADS, kv = head / (HEADS / KV_HEADS), number = blockIdx.x / GROUPS;
		int d = lane % TOKEN_LANES * 8, place = lane / TOKEN_LANES;
		int partner = (d + HEAD_DIM / 2) % HEAD_DIM;
		const u64 *words = work + AT_QKV;
		float q[TASK_HEADS][8], acc[TASK_HEADS][8], most[TASK_HEADS], sum[TASK_HEADS];
#pragma unroll
		for (int i = 0; i < TASK_HEADS; i++) {
			rotated(words + (head + i) * HEAD_DIM, d, partner, tag, q[i]);
			most[i] = -1e30f, sum[i] = 0;
#pragma unroll
			for (int j = 0; j < 8; j++)
				q[i][j] *= rsqrtf(HEAD_DIM) * 1.44269504f, acc[i][j] = 0;
		}
		auto token = [&](const float (&k)[8], const float (&v)[8], bool valid) {
#pragma unroll
			for (int i = 0; i < TASK_HEADS; i++) {
				float s = 0;
#pragma unroll
				for (int j = 0; j < 8; j++)
					s += q[i][j] * k[j];
#pragma unroll
				for (int m = TOKEN_LANES / 2; m > 0; m /= 2)
					s += __shfl_xor_sync(~0u, s, m);
				if (valid) {
					float now = fmaxf(most[i], s), old = power2(most[i] - now), p = power2(s - now);
					most[i] = now;
					sum[i] = sum[i] * old + p;
#pragma unroll
					for (int j = 0; j < 8; j++)
						acc[i][j] = acc[i][j] * old + p * v[j];
				}
			}
		};
		int chunks = (part.n + SLOT_PAGES - 1) / SLOT_PAGES;
		for (int c = team; c < chunks; c += TEAMS) {
			u32 chunk = at + c, stage = chunk % STAGES;
			await(&sh.full[stage], chunk / STAGES & 1);
			const unsigned char *from = ring + stage * SLOT;
			int tokens = min(SLOT_PAGES, part.n - c * SLOT_PAGES) * PAGE_TOKENS;
			int left = position - (part.first + c * SLOT_PAGES) * PAGE_TOKENS;
			constexpr int AT_ONCE = 32 / TOKEN_LANES;
			for (int o = t / 32 * AT_ONCE; o < tokens; o += TEAM_WARPS * AT_ONCE) {
				int i = o + place;
				const unsigned char *key = from + i / PAGE_TOKENS * 2 * PAGE + (i % PAGE_TOKENS * HEAD_DIM + d) * 2;
				float k[8], v[8];
				unpack(*(const uint4 *)key, k);
				unpack(*(const uint4 *)(key + PAGE), v);
				token(k, v, i < left);
			}
			__syncwarp();
			if (lane == 0)
				arrive(&sh.empty[stage]);
		}
		at += chunks;
		if (number == 0 && warp == 0) { // the new token
			float k[8], v[8];
			rotated(words + (HEADS + kv) * HEAD_DIM, d, partner, tag, k);
			take8(words + (HEADS + KV_HEADS + kv) * HEAD_DIM + d, tag, v);
			uint4 key = make_uint4(pack(k[0], k[1]), pack(k[2], k[3]), pack(k[4], k[5]), pack(k[6], k[7]));
			uint4 val = make_uint4(pack(v[0], v[1]), pack(v[2], v[3]), pack(v[4], v[5]), pack(v[6], v[7]));
			unpack(key, k), unpack(val, v);
			token(k, v, place == 0);
			if (place == 0 && head % (HEADS / KV_HEADS) == 0) {
				unsigned char *to = cache + newPage * PAGE_BYTES + (u64)(layer * 2 * KV_HEADS + kv) * PAGE +
					(position % PAGE_TOKENS * HEAD_DIM + d) * 2;
				*(uint4 *)to = key;
				*(uint4 *)(to + KV_HEADS * PAGE) = val;
			}
		}
#pragma unroll
		for (int i = 0; i < TASK_HEADS; i++) {
#pragma unroll
			for (int m = TOKEN_LANES; m < 32; m *= 2) {
				float other = __shfl_xor_sync(~0u, most[i], m), now = fmaxf(most[i], other);
				float f = power2(most[i] - now), g = power2(other - now);
				most[i] = now;
				sum[i] = sum[i] * f + __shfl_xor_sync(~0u, sum[i], m) * g;
#pragma unroll
				for (int j = 0; j < 8; j++)
					acc[i][j] = acc[i][j] * f + __shfl_xor_sync(~0u, acc[i][j], m) * g;
			}
			float *to = sh.heads[warp][i];
			if (place == 0) {
#pragma unroll
				for (int j = 0; j < 8; j++)
					to[d + j] = acc[i][j];
			}
			if (lane == 0)
				to[HEAD_DIM] = most[i], to[HEAD_DIM + 1] = sum[i];
		}
		consumers();
		for (int e = threadIdx.x * 2; e < TASK_HEADS * HEAD_DIM; e += CONSUMERS * 2) {
			int i = e / HEAD_DIM, o = e % HEAD_DIM;
			float top = -1e30f, all = 0, a = 0, b = 0;
			for (int w = 0; w < WARPS; w++)
				top = fmaxf(top, sh.heads[w][i][HEAD_DIM]);
			for (int w = 0; w < WARPS; w++) {
				float f = power2(sh.heads[w][i][HEAD_DIM] - top);
				all += sh.heads[w][i][HEAD_DIM + 1] * f;
				a += sh.heads[w][i][o] * f, b += sh.heads[w][i][o + 1] * f;
			}
			u64 *parts = work + AT_PARTS + number * PART_WORDS;
			put(parts + spreadPairs(head * HEAD_DIM + e), __uint_as_float(pack(a / all, b / all)), tag);
			if (o == 0) {
				u64 *stats = work + AT_STATS + (number * HEADS + head + i) * 2;
				put(stats, top, tag), put(stats + 1, all, tag);
			}
		}
	}

	// rotated reads a head of q or k, and applies the rotary position embedding.
	__device__ __forceinline__ void rotated(const u64 *from, int d, int partner, u32 tag, float (&x)[8])
	{
		float y[8];
		take8(from + d, tag, x);
		take8(from + partner, tag, y);
		int o = d % (HEAD_DIM / 2);
#pragma unroll
		for (int j = 0; j < 8; j++)
			x[j] = x[j] * sh.cosine[o + j] + (d < HEAD_DIM / 2 ? -y[j] : y[j]) * sh.sine[o + j];
	}

	// combine reads the attention's result: it joins the parts of the sequence.
	__device__ __forceinline__ void combine(int used, u32 tag, float (&x)[segments(HEADS * HEAD_DIM)][8])
	{
		constexpr int K = HEADS * HEAD_DIM, BATCH = PARTS < 4 ? PARTS : 4;
#pragma unroll
		for (int s = 0; s < segments(K); s++) {
			float top = -1e30f, all = 0;
#pragma unroll
			for (int j = 0; j < 8; j++)
				x[s][j] = 0;
			int e = s * SEGMENT + t * 8;
			if (e >= K)
				continue;
			for (int first = 0; first < used; first += BATCH) {
				u64 stats[BATCH][2], w[BATCH][4];
				probe(work + AT_STATS + ((min(first + BATCH, used) - 1) * HEADS + e / HEAD_DIM) * 2, tag);
				Patience p;
				for (bool ok = false; !ok; p.poll()) {
					ok = true;
#pragma unroll
					for (int i = 0; i < BATCH; i++) {
						if (first + i < used) {
							const u64 *from = work + AT_PARTS + (first + i) * PART_WORDS + s * SEGMENT / 2 + t * 2;
							peek(work + AT_STATS + ((first + i) * HEADS + e / HEAD_DIM) * 2, stats[i][0], stats[i][1]);
							peek(from, w[i][0], w[i][1]);
							peek(from + TEAM * 2, w[i][2], w[i][3]);
						}
					}
#pragma unroll
					for (int i = 0; i < BATCH; i++) {
						if (first + i < used)
							ok = ok && tagged(stats[i][0], tag) && tagged(stats[i][1], tag) && tagged(w[i][0], tag) &&
								tagged(w[i][1], tag) && tagged(w[i][2], tag) && tagged(w[i][3], tag);
					}
					if (!ok)
						pause();
				}
#pragma unroll
				for (int i = 0; i < BATCH; i++) {
					if (first + i < used) {
						float most = value(stats[i][0]), now = fmaxf(top, most);
						float f = power2(top - now), g = power2(most - now) * value(stats[i][1]);
						top = now;
						all = all * f + g;
#pragma unroll
						for (int j = 0; j < 4; j++) {
							x[s][2 * j] = x[s][2 * j] * f + g * low((u32)w[i][j]);
							x[s][2 * j + 1] = x[s][2 * j + 1] * f + g * high((u32)w[i][j]);
						}
					}
				}
			}
#pragma unroll
			for (int j = 0; j < 8; j++)
				x[s][j] /= all;
		}
	}
};

extern "C" __global__ void __launch_bounds__(CONSUMERS + 32, 1) decode(Dims dims, const u64 *table, const void *embeddings, const void *lastNorm,
	const void *head, const float *freq, void *cache, const int *pages, const int *active, const int *token,
	const int *position, u64 *work, float *logits)
{
	int slot = active[0];
	if (slot < 0)
		return;
	int pos = position[slot];
	Part part(pos);
	u32 launch = (u32)work[blockIdx.x]; // this block's launches before
	pages += (u64)slot * MAX_PAGES;
	if (threadIdx.x == 0) {
		for (int i = 0; i < STAGES; i++) {
			asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" :: "r"(address(&sh.full[i])));
			asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" :: "r"(address(&sh.empty[i])), "n"(TEAM_WARPS));
		}
		asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
		asm volatile("fence.proxy.async;" ::: "memory");
	}
	for (int i = threadIdx.x; i < LAYERS * 6; i += CONSUMERS + 32)
		((u64 *)sh.layers)[i] = table[i];
	if (part.mine) {
		for (int i = threadIdx.x; i < part.n; i += CONSUMERS + 32)
			sh.pages[i] = pages[part.first + i];
	}
	for (int i = threadIdx.x; i < HEAD_DIM / 2; i += CONSUMERS + 32) {
		float s, c;
		sincosf(pos * freq[i], &s, &c);
		sh.cosine[i] = c * dims.ropeFactor, sh.sine[i] = s * dims.ropeFactor;
	}
	__syncthreads();

	if (threadIdx.x >= CONSUMERS) {
		Producer p;
		p.lane = threadIdx.x % 32;
		asm volatile("createpolicy.fractional.L2::evict_first.b64 %0, 1.0;" : "=l"(p.policy));
		for (int l = 0; l < LAYERS; l++) {
			p.rows<WIDTH, false>(sh.layers[l].qkv, rowsOfQKV(l));
			if (part.mine)
				p.pages((const unsigned char *)cache, part, l);
			p.rows<HEADS * HEAD_DIM, false>(sh.layers[l].out, rowsOfOut(l));
			p.rows<WIDTH, true>(sh.layers[l].gateUp, rowsOfGate(l));
			p.rows<FFN, false>(sh.layers[l].down, rowsOfDown(l));
		}
		p.rows<WIDTH, false>((const u16 *)head, rowsOfHead());
		return;
	}

	Consumer c;
	c.lane = threadIdx.x % 32, c.warp = threadIdx.x / 32, c.team = threadIdx.x / TEAM, c.t = threadIdx.x % TEAM;
	c.work = work, c.launch = launch;
	int newPage = pages[pos / PAGE_TOKENS];
	float x[segments(WIDTH)][8];
	uint4 weight[segments(WIDTH)];
	c.weights((const u16 *)embeddings + (u64)token[slot] * WIDTH, weight);
#pragma unroll
	for (int s = 0; s < segments(WIDTH); s++)
		unpack(weight[s], x[s]);
	for (int l = 0; l < LAYERS; l++) {
		u32 tag = launch * LAYERS + l + 1;
		Rows out = rowsOfOut(l), gate = rowsOfGate(l), down = rowsOfDown(l), qkv = rowsOfQKV(l);
		c.weights(sh.layers[l].norm1, weight);
		if (l > 0)
			take<WIDTH>(work + AT_DOWN, tag - 1, c.t, x);
		c.norm(x, weight, sh.residual[0], out);
		c.multiply<WIDTH, false>(x, qkv.n, [&](int i, float y) {
			put(work + AT_QKV + qkv.first + i, y * Consumer::scale(dims.eps), tag);
		});
		if (part.mine)
			c.attend((unsigned char *)cache, part, pos, newPage, l, tag);
		c.exchanged();
		{
			float a[segments(HEADS * HEAD_DIM)][8];
			c.combine(part.used, tag, a);
			c.multiply<HEADS * HEAD_DIM, false>(a, out.n, [&](int i, float y) {
				put(work + AT_OUT + spread(out.first + i), sh.residual[0][i] + y, tag);
			});
		}
		c.weights(sh.layers[l].norm2, weight);
		take<WIDTH>(work + AT_OUT, tag, c.t, x);
		c.norm(x, weight, sh.residual[1], down);
		c.multiply<WIDTH, true>(x, gate.n, [&](int i, float g, float h, float u, float v) {
			float f = Consumer::scale(dims.eps);
			g *= f, h *= f, u *= f, v *= f;
			u32 both = pack(g / (1 + __expf(-g)) * u, h / (1 + __expf(-h)) * v);
			put(work + AT_GATE + spreadPairs((gate.first + i) * 2), __uint_as_float(both), tag);
		});
		{
			float h[segments(FFN)][8];
			takePairs<FFN>(work + AT_GATE, tag, c.t, h);
			c.multiply<FFN, false>(h, down.n, [&](int i, float y) {
				put(work + AT_DOWN + spread(down.first + i), sh.residual[1][i] + y, tag);
			});
		}
	}
	Rows rows = rowsOfHead();
	c.weights((const u16 *)lastNorm, weight);
	take<WIDTH>(work + AT_DOWN, launch * LAYERS + LAYERS, c.t, x);
	c.norm(x, weight, sh.residual[0], Rows(0, 0));
	c.multiply<WIDTH, false>(x, rows.n, [&](int i, float y) {
		logits[rows.first + i] = y * Consumer::scale(dims.eps);
	});
	if (threadIdx.x == 0)
		work[blockIdx.x] = launch + 1;
}
