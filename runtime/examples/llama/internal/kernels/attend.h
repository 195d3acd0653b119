// Attention over the pages of a sequence, with tensor cores. Heads that share keys and values are
// rows of one tile, so that keys and values are read once for all of them.

#pragma once

#include "number.h"

const int tileTokens = 64;         // tokens of a tile of keys and values
const int tilePieces = HEAD_DIM / 8; // pieces of 16 bytes in a row of a tile
const int tileBytes = tileTokens * HEAD_DIM * 2;

// pieceAddress returns where a piece of a row of a tile lies in shared memory. The place differs
// from row to row, so that 8 rows' pieces with the same number lie in different banks.
__device__ inline u32 pieceAddress(u32 tile, int row, int piece)
{
	return tile + row * (HEAD_DIM * 2) + ((piece ^ (row & 7)) << 4);
}

__device__ inline void loadMatrices(u32 *r, u32 address)
{
	asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
		: "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3]) : "r"(address) : "memory");
}

__device__ inline void loadTransposed(u32 *r, u32 address)
{
	asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
		: "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3]) : "r"(address) : "memory");
}

__device__ inline float exponential(float x) // 2ˣ
{
	float y;
	asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
	return y;
}

// A Sequence is a slot's keys and values of a layer and a head, in pages.
struct Sequence {
	const int *pages;
	const char *cache;
	size_t pageBytes, keys, values; // keys and values are offsets in a page
};

__device__ inline Sequence sequenceOf(const Dims &d, int slot, int layer, int head, const int *pages, const void *cache)
{
	Sequence s;
	s.pages = pages + (size_t)slot * d.maxPages;
	s.cache = (const char *)cache;
	s.pageBytes = (size_t)d.layers * 2 * d.kvHeads * pageTokens * HEAD_DIM * 2;
	s.keys = ((size_t)(layer * 2) * d.kvHeads + head) * pageTokens * HEAD_DIM * 2;
	s.values = s.keys + (size_t)d.kvHeads * pageTokens * HEAD_DIM * 2;
	return s;
}

// copyTile copies keys and values of the tile that begins at token first, but only those of tokens
// t with from <= t < to. The keys and values of tokens t >= end become 0. A block of 128 threads
// calls it.
__device__ inline void copyTile(const Sequence &s, u32 keys, u32 values, int first, int from, int to, int end)
{
#pragma unroll
	for (int k = 0; k < tileTokens * tilePieces / 128; k++) {
		int i = k * 128 + threadIdx.x, row = i / tilePieces, piece = i % tilePieces, token = first + row;
		if (token < from || (token >= to && token < end))
			continue;
		bool valid = token < end;
		const char *p = s.cache;
		if (valid)
			p += s.pages[token / pageTokens] * s.pageBytes + (token % pageTokens * HEAD_DIM + piece * 8) * 2;
		copyAsync(pieceAddress(keys, row, piece), valid ? p + s.keys : p, valid);
		copyAsync(pieceAddress(values, row, piece), valid ? p + s.values : p, valid);
	}
}

// Sums are a warp's results for 16 rows of queries: the largest score (times log2 e), the sum of
// the weights, and the weighted sum of the values. A lane has rows lane/4 and lane/4 + 8.
struct Sums {
	float top[2], weight[2], o[HEAD_DIM / 8][4];
};

__device__ inline void clear(Sums &s)
{
	s = Sums{};
	s.top[0] = s.top[1] = -infinity;
}

// attendTokens adds TOKENS tokens to s. They begin at row of a tile and at position of the
// sequence. With masked, a lane's two rows see only positions up to limit.
template <int TOKENS> __device__ inline void attendTokens(Sums &s, const u32 (*q)[4], u32 keys, u32 values, int row, int position,
	bool masked, const int *limit)
{
	// Consecutive products add to different numbers, and matrices are loaded two steps ahead, so
	// that a warp does not wait for the instruction that it has just issued.
	const int lane = threadIdx.x % 32, t = lane % 4, ahead = 2;
	u32 b[ahead + 1][4];
	float p[TOKENS / 8][4] = {};
	auto loadKeys = [&](int i) { // 16 numbers of 16 tokens
		loadMatrices(b[i % (ahead + 1)], pieceAddress(keys, row + i % (TOKENS / 16) * 16 + lane / 16 * 8 + lane % 8, i / (TOKENS / 16) * 2 + lane / 8 % 2));
	};
	const int keySteps = HEAD_DIM / 16 * (TOKENS / 16);
#pragma unroll
	for (int i = -ahead; i < keySteps; i++) {
		if (i + ahead < keySteps)
			loadKeys(i + ahead);
		if (i >= 0) {
			const u32 *a = q[i / (TOKENS / 16)], *k = b[i % (ahead + 1)];
			float(*c)[4] = p + i % (TOKENS / 16) * 2;
			multiply(c[0], a[0], a[1], a[2], a[3], k[0], k[1]);
			multiply(c[1], a[0], a[1], a[2], a[3], k[2], k[3]);
		}
	}
	if (masked)
#pragma unroll
		for (int j = 0; j < TOKENS / 8; j++)
#pragma unroll
			for (int i = 0; i < 4; i++)
				if (position + j * 8 + t * 2 + i % 2 > limit[i / 2])
					p[j][i] = -infinity;
	const float scale = 1.4426950408889634f / (HEAD_DIM == 64 ? 8 : 11.313708498984761f); // log2 e / √HEAD_DIM
#pragma unroll
	for (int half = 0; half < 2; half++) {
		float top = -infinity;
#pragma unroll
		for (int j = 0; j < TOKENS / 8; j++)
			top = fmaxf(top, fmaxf(p[j][half * 2], p[j][half * 2 + 1]));
		top = fmaxf(top, __shfl_xor_sync(~0u, top, 1));
		top = fmaxf(top, __shfl_xor_sync(~0u, top, 2));
		top = fmaxf(s.top[half], top * scale);
		float base = top == -infinity ? 0 : top, factor = exponential(s.top[half] - base), sum = 0;
#pragma unroll
		for (int j = 0; j < TOKENS / 8; j++)
#pragma unroll
			for (int i = 0; i < 2; i++) {
				float &v = p[j][half * 2 + i];
				v = exponential(fmaf(v, scale, -base));
				sum += v;
			}
		s.top[half] = top;
		s.weight[half] = s.weight[half] * factor + sum; // of this lane's columns; finish adds the lanes
#pragma unroll
		for (int j = 0; j < HEAD_DIM / 8; j++) {
			s.o[j][half * 2] *= factor;
			s.o[j][half * 2 + 1] *= factor;
		}
	}
	auto loadValues = [&](int i) { // 16 numbers of 16 tokens
		loadTransposed(b[i % (ahead + 1)], pieceAddress(values, row + i / (HEAD_DIM / 16) * 16 + lane % 16, i % (HEAD_DIM / 16) * 2 + lane / 16));
	};
	const int valueSteps = TOKENS / 16 * (HEAD_DIM / 16);
	u32 a[4];
#pragma unroll
	for (int i = -ahead; i < valueSteps; i++) {
		if (i + ahead < valueSteps)
			loadValues(i + ahead);
		if (i >= 0) {
			if (i % (HEAD_DIM / 16) == 0)
#pragma unroll
				for (int k = 0; k < 4; k++) {
					const float *from = p[i / (HEAD_DIM / 16) * 2 + k / 2] + k % 2 * 2;
					a[k] = pack(from[0], from[1]);
				}
			const u32 *v = b[i % (ahead + 1)];
			float(*c)[4] = s.o + i % (HEAD_DIM / 16) * 2;
			multiply(c[0], a[0], a[1], a[2], a[3], v[0], v[1]);
			multiply(c[1], a[0], a[1], a[2], a[3], v[2], v[3]);
		}
	}
}

// finish adds up the weights of the lanes that share a row.
__device__ inline void finish(Sums &s)
{
#pragma unroll
	for (int half = 0; half < 2; half++) {
		s.weight[half] += __shfl_xor_sync(~0u, s.weight[half], 1);
		s.weight[half] += __shfl_xor_sync(~0u, s.weight[half], 2);
	}
}

__device__ inline void loadQueries(u32 (*q)[4], u32 tile, int row)
{
	const int lane = threadIdx.x % 32;
#pragma unroll
	for (int k = 0; k < HEAD_DIM / 16; k++)
		loadMatrices(q[k], pieceAddress(tile, row + lane % 16, k * 2 + lane / 16));
}

const int maxSplits = 32;

// splitTokens returns how many tokens each split of a sequence of n tokens has. The last split may
// have fewer.
__device__ inline int splitTokens(int n)
{
	int tiles = (n + tileTokens - 1) / tileTokens;
	return (tiles + maxSplits - 1) / maxSplits * tileTokens;
}

// attend computes a row's attention for up to 16 heads that share keys and values. A sequence has
// up to maxSplits splits, whose size depends only on its length. A block takes every gridDim.z-th
// split. The block that ends last adds the splits' results, in order.
//
// work has a counter for each of 64 rows and group of heads, all 0 between launches, then results
// of splits: for each row, head and split HEAD_DIM + 2 numbers.
extern "C" __global__ void __launch_bounds__(128, HEAD_DIM == 64 ? 5 : 3) attend(Dims d, int layer, const int *active, const int *position, const int *pages,
	const void *cache, const act *q, act *a, u32 *work)
{
	__shared__ float tops[4][16], weights[4][16];
	__shared__ bool lastSplit;
	const int ratio = d.heads / d.kvHeads, groups = (ratio + 15) / 16, warp = threadIdx.x / 32, lane = threadIdx.x % 32;
	const int kvHead = blockIdx.x / groups, firstHead = kvHead * ratio + blockIdx.x % groups * 16, row = blockIdx.y;
	const int heads = min(16, (kvHead + 1) * ratio - firstHead);
	const u32 queries = sharedAddress(shared), tiles = queries + 16 * HEAD_DIM * 2; // two tiles of keys and of values
	launchNext();
	// Before waitPrevious the block reads the slot, its position and pages, and the cache before
	// the position. No kernel that may still run writes these.
	const int slot = active[row];
	if (slot < 0) {
		waitPrevious();
		if (blockIdx.z == 0)
			for (int i = threadIdx.x; i < heads * HEAD_DIM; i += 128)
				a[((size_t)row * d.heads + firstHead) * HEAD_DIM + i] = 0;
		return;
	}
	const int own = position[slot], n = own + 1, length = splitTokens(n), splits = (n + length - 1) / length;
	const Sequence s = sequenceOf(d, slot, layer, kvHead, pages, cache);
	int split = blockIdx.z;
	// nextTile returns the first token of the next tile of this split, or else of the block's next
	// split.
	auto nextTile = [&](int first) {
		return first + tileTokens < min(n, (split + 1) * length) ? first + tileTokens : (split + (int)gridDim.z) * length;
	};
	if (split < splits) {
		copyTile(s, tiles, tiles + tileBytes, split * length, 0, own, n);
		if (int next = nextTile(split * length); next < n)
			copyTile(s, tiles + 2 * tileBytes, tiles + 3 * tileBytes, next, 0, own, n);
	}
	waitPrevious();
	if (split >= splits)
		return;
	copyTile(s, tiles, tiles + tileBytes, split * length, own, n, n);
	for (int i = threadIdx.x; i < 16 * tilePieces; i += 128) {
		int h = i / tilePieces, piece = i % tilePieces;
		copyAsync(pieceAddress(queries, h, piece), q + ((size_t)row * d.heads + firstHead + (h < heads ? h : 0)) * HEAD_DIM + piece * 8,
			h < heads);
	}
	commitCopies();

	float *partial = (float *)(work + 64 * gridDim.x) + ((size_t)row * d.heads + firstHead) * maxSplits * (HEAD_DIM + 2);
	u32 qs[HEAD_DIM / 16][4];
	int buffer = 0, done = 0; // done counts splits
	for (; split < splits; split += gridDim.z) {
		const int end = min(n, (split + 1) * length);
		Sums sums;
		clear(sums);
		for (int first = split * length; first < end; first += tileTokens) {
			const bool begin = first == (int)blockIdx.z * length; // then the next tile's copy has begun, except for the row's own token
			if (int next = nextTile(first); next < n) {
				u32 to = tiles + (1 - buffer) * 2 * tileBytes;
				copyTile(s, to, to + tileBytes, next, begin ? own : 0, n, n);
			}
			commitCopies();
			waitCopies<1>();
			__syncthreads();
			if (begin)
				loadQueries(qs, queries, 0);
			const int limit[2] = {own, own};
			u32 from = tiles + buffer * 2 * tileBytes;
			if (first + warp * 16 < n)
				attendTokens<16>(sums, qs, from, from + tileBytes, warp * 16, first + warp * 16, true, limit);
			__syncthreads();
			buffer = 1 - buffer;
		}
		finish(sums);

		// Add the warps' results.
		float *o = (float *)(shared + (16 * HEAD_DIM * 2 + (1 - buffer) * 2 * tileBytes) / 16); // [4][16][HEAD_DIM], in place of the last tile
		const int g = lane / 4, t = lane % 4;
		if (t == 0) {
			tops[warp][g] = sums.top[0];
			tops[warp][g + 8] = sums.top[1];
			weights[warp][g] = sums.weight[0];
			weights[warp][g + 8] = sums.weight[1];
		}
#pragma unroll
		for (int half = 0; half < 2; half++)
			if (g + half * 8 < heads)
#pragma unroll
				for (int j = 0; j < HEAD_DIM / 8; j++)
					*(float2 *)(o + (warp * 16 + g + half * 8) * HEAD_DIM + j * 8 + t * 2) = make_float2(sums.o[j][half * 2], sums.o[j][half * 2 + 1]);
		__syncthreads();
		for (int i = threadIdx.x; i < heads * HEAD_DIM; i += 128) {
			int h = i / HEAD_DIM, c = i % HEAD_DIM;
			float top = fmaxf(fmaxf(tops[0][h], tops[1][h]), fmaxf(tops[2][h], tops[3][h])), weight = 0, v = 0;
#pragma unroll
			for (int k = 0; k < 4; k++) {
				float f = exponential(tops[k][h] - top);
				weight += weights[k][h] * f;
				v += o[(k * 16 + h) * HEAD_DIM + c] * f;
			}
			if (splits == 1) {
				a[((size_t)row * d.heads + firstHead + h) * HEAD_DIM + c] = toAct(v / weight);
			} else {
				float *to = partial + (h * maxSplits + split) * (HEAD_DIM + 2);
				to[2 + c] = v;
				if (c == 0) {
					to[0] = top;
					to[1] = weight;
				}
			}
		}
		__syncthreads(); // tops, weights and o are free again
		done++;
	}
	if (splits == 1)
		return;
	__threadfence();
	__syncthreads();
	u32 *counter = work + row * gridDim.x + blockIdx.x;
	if (threadIdx.x == 0)
		lastSplit = atomicAdd(counter, done) + done == splits;
	__syncthreads();
	if (!lastSplit)
		return;
	__threadfence();
	if (threadIdx.x == 0)
		*counter = 0;
	for (int h = warp; h < heads; h += 4) {
		const float *from = partial + h * maxSplits * (HEAD_DIM + 2);
		float top = lane < splits ? __ldcg(from + lane * (HEAD_DIM + 2)) : -infinity, most = top;
#pragma unroll
		for (int i = 16; i > 0; i /= 2)
			most = fmaxf(most, __shfl_xor_sync(~0u, most, i));
		float factor = exponential(top - most); // of split lane
		factor /= sumWarp(lane < splits ? __ldcg(from + lane * (HEAD_DIM + 2) + 1) * factor : 0);
		float v[HEAD_DIM / 32] = {};
#pragma unroll 8
		for (int k = 0; k < splits; k++) {
			float f = __shfl_sync(~0u, factor, k);
#pragma unroll
			for (int i = 0; i < HEAD_DIM / 32; i++)
				v[i] = fmaf(__ldcg(from + k * (HEAD_DIM + 2) + 2 + i * 32 + lane), f, v[i]);
		}
#pragma unroll
		for (int i = 0; i < HEAD_DIM / 32; i++)
			a[((size_t)row * d.heads + firstHead + h) * HEAD_DIM + i * 32 + lane] = toAct(v[i]);
	}
}

const int chunkGroups = HEAD_DIM == 64 ? 2 : 1; // groups of 4 warps in a block of attendChunk

// waitGroup waits until the 4 warps of a group have come here.
__device__ inline void waitGroup(int group)
{
	asm volatile("bar.sync %0, 128;" :: "r"(group + 1) : "memory");
}

// TilePages are the pages of the tokens of a tile.
struct TilePages {
	int page[tileTokens / pageTokens];
};

// pagesOf reads the pages of the tile that begins at token first. Pages behind the token end - 1
// become that token's.
__device__ inline TilePages pagesOf(const Sequence &s, int first, int end)
{
	TilePages p;
#pragma unroll
	for (int i = 0; i < tileTokens / pageTokens; i++)
		p.page[i] = s.pages[min(first / pageTokens + i, (end - 1) / pageTokens)];
	return p;
}

// copyPages copies keys and values of the tile that begins at token first. Tokens from end on
// become 0. The threads of a group call it, with their numbers in the group.
__device__ inline void copyPages(const Sequence &s, const TilePages &p, u32 keys, u32 values, int first, int end, int thread)
{
#pragma unroll
	for (int k = 0; k < tileTokens * tilePieces / 128; k++) {
		int row = k * (128 / tilePieces) + thread / tilePieces, piece = thread % tilePieces;
		bool valid = first + row < end;
		const char *from = s.cache + p.page[k * (128 / tilePieces) / pageTokens] * s.pageBytes + (row % pageTokens * HEAD_DIM + piece * 8) * 2;
		copyAsync(pieceAddress(keys, row, piece), from + s.keys, valid);
		copyAsync(pieceAddress(values, row, piece), from + s.values, valid);
	}
}

// attendChunk computes the attention of a chunk of a prompt. A row of a block is a pair of a query
// and a head, for all heads that share keys and values: 64 rows, 16 for each warp of a group. If
// there are two groups, each takes every other tile of keys and values, and in the end the first
// adds the other's sums to its own. all is the number of a's rows. The rows behind the chunk's
// tokens become 0.
extern "C" __global__ void __launch_bounds__(128 * chunkGroups, chunkGroups) attendChunk(Dims d, int all, int layer, const int *chunk,
	const int *pages, const void *cache, const act *q, act *a)
{
	const int ratio = d.heads / d.kvHeads, kvHead = blockIdx.x;
	const int group = threadIdx.x / 128, thread = threadIdx.x % 128, warp = thread / 32, lane = thread % 32;
	const int firstRow = (gridDim.y - 1 - blockIdx.y) * 64; // the longest work begins first
	const u32 tiles = sharedAddress(shared) + group * 4 * tileBytes; // two of keys and of values
	launchNext();
	// No kernel of this recording writes chunk or pages.
	const int slot = chunk[0], position = chunk[1], rows = chunk[2] * ratio;
	const int end = rows <= firstRow ? 0 : position + (min(rows, firstRow + 64) - 1) / ratio + 1; // number of positions that the block's rows see
	const Sequence s = sequenceOf(d, slot, layer, kvHead, pages, cache);
	int first = group * tileTokens;
	const int step = chunkGroups * tileTokens;
	TilePages next = {};
	if (first < end)
		next = pagesOf(s, first, end);
	const int g = lane / 4, t = lane % 4, mine = firstRow + warp * 16 + g;
	auto place = [&](int row) { // of a row's query, in q and in a
		return ((size_t)(row / ratio) * d.heads + kvHead * ratio + row % ratio) * HEAD_DIM + t * 2;
	};
	const int low = position + (firstRow + warp * 16) / ratio; // the warp's first row sees positions up to this one
	const int limit[2] = {position + mine / ratio, position + (mine + 8) / ratio};
	const size_t places[2] = {place(mine), place(mine + 8)};
	waitPrevious();
	if (first < end) {
		copyPages(s, next, tiles, tiles + tileBytes, first, end, thread);
		next = pagesOf(s, first + step, end);
	}
	commitCopies();
	u32 qs[HEAD_DIM / 16][4];
#pragma unroll
	for (int k = 0; k < HEAD_DIM / 16; k++)
#pragma unroll
		for (int i = 0; i < 4; i++)
			qs[k][i] = mine + i % 2 * 8 < rows ? *(const u32 *)(q + places[i % 2] + k * 16 + i / 2 * 8) : 0;

	Sums sums;
	clear(sums);
	u32 from = tiles, to = tiles + 2 * tileBytes;
	for (; first < end; first += step) {
		if (first + step < end) {
			copyPages(s, next, to, to + tileBytes, first + step, end, thread);
			next = pagesOf(s, first + 2 * step, end);
		}
		commitCopies();
		waitCopies<1>();
		waitGroup(group);
		attendTokens<tileTokens>(sums, qs, from, from + tileBytes, 0, first, first + tileTokens - 1 > low, limit);
		waitGroup(group);
		u32 was = from;
		from = to;
		to = was;
	}
	finish(sums);
	if (chunkGroups == 2) {
		const int each = HEAD_DIM / 2 + 4; // numbers of a lane
		float *other = (float *)shared + warp * each * 32 + lane;
		__syncthreads(); // all tiles have been used
		if (group == 1) {
#pragma unroll
			for (int i = 0; i < 2; i++) {
				other[i * 32] = sums.top[i];
				other[(i + 2) * 32] = sums.weight[i];
			}
#pragma unroll
			for (int i = 0; i < HEAD_DIM / 2; i++)
				other[(i + 4) * 32] = sums.o[i / 4][i % 4];
		}
		__syncthreads();
		if (group == 1)
			return;
		float mineOf[2], othersOf[2]; // factors
#pragma unroll
		for (int i = 0; i < 2; i++) {
			float top = other[i * 32], most = fmaxf(sums.top[i], top), base = most == -infinity ? 0 : most;
			mineOf[i] = exponential(sums.top[i] - base);
			othersOf[i] = exponential(top - base);
			sums.weight[i] = sums.weight[i] * mineOf[i] + other[(i + 2) * 32] * othersOf[i];
		}
#pragma unroll
		for (int i = 0; i < HEAD_DIM / 2; i++) {
			float &o = sums.o[i / 4][i % 4];
			o = o * mineOf[i / 2 % 2] + other[(i + 4) * 32] * othersOf[i / 2 % 2];
		}
	}
#pragma unroll
	for (int half = 0; half < 2; half++) {
		int row = mine + half * 8;
		if (row >= all * ratio)
			continue;
		float inverse = row < rows ? 1 / sums.weight[half] : 0;
#pragma unroll
		for (int j = 0; j < HEAD_DIM / 8; j++)
			*(u32 *)(a + places[half] + j * 8) = row < rows ? pack(sums.o[j][half * 2] * inverse, sums.o[j][half * 2 + 1] * inverse) : 0;
	}
}
