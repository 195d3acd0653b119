// Products of weight matrices with one row or up to 64 rows of numbers. They read each weight once,
// so the memory's speed limits them. Each multiprocessor keeps tens of kilobytes of weights in
// flight.
//
// Threads copy weights in the background into slots of shared memory. They begin before the
// previous kernel has ended, because no kernel writes weights.
//
// Results come in pairs: first and second number of a rotation, gate and up, or two neighbours.

#pragma once

#include "number.h"

// A Kind says which matrix it is, and where its products go.
enum Kind { qkvKind, gateUpKind, addKind, logitsKind };

// A Place says where results go. Only the fields of the kind are set.
struct Place {
	int layer, add;
	const int *active, *position, *pages;
	void *cache;
	const float *freq, *scale;
	act *q; // or result of gate and up
	float *x; // or logits
};

// A RowState is the slot of a row, its position, and the page there.
struct RowState {
	int slot, position, page;
};

// stateOf is called before waitPrevious. No kernel that may still run writes the numbers that it
// reads.
__device__ inline RowState stateOf(const Dims &d, const Place &p, int r)
{
	RowState s = {p.active[r], 0, 0};
	if (s.slot >= 0) {
		s.position = p.position[s.slot];
		s.page = p.pages[(size_t)s.slot * d.maxPages + s.position / pageTokens];
	}
	return s;
}

// rowOf returns the matrix's row for one of the two results (half) of a pair.
template <Kind KIND> __device__ inline int rowOf(const Dims &d, int pair, int half)
{
	if (KIND == qkvKind)
		return pair / (HEAD_DIM / 2) * HEAD_DIM + pair % (HEAD_DIM / 2) + half * (HEAD_DIM / 2);
	if (KIND == gateUpKind)
		return pair + half * d.ffn;
	return 2 * pair + half;
}

template <Kind KIND> __device__ inline int outputs(const Dims &d)
{
	switch (KIND) {
	case qkvKind: return (d.heads + 2 * d.kvHeads) * HEAD_DIM;
	case gateUpKind: return 2 * d.ffn;
	case addKind: return d.width;
	default: return d.vocab;
	}
}

// store writes a pair of results of row r to the kind's place. Only qkvKind needs the row's state.
template <Kind KIND> __device__ inline void store(const Dims &d, const Place &p, const RowState &state, int r, int pair, float a, float b)
{
	if (FP8 && KIND != logitsKind) {
		a *= p.scale[rowOf<KIND>(d, pair, 0)];
		b *= p.scale[rowOf<KIND>(d, pair, 1)];
	}
	if (KIND == qkvKind) {
		int head = pair / (HEAD_DIM / 2), i = pair % (HEAD_DIM / 2), kv = head - d.heads;
		act *to = p.q + ((size_t)r * d.heads + head) * HEAD_DIM;
		if (state.slot < 0) {
			if (kv < 0)
				to[i] = to[i + HEAD_DIM / 2] = 0;
			return;
		}
		if (kv < d.kvHeads) {
			float2 t = rotation(state.position, p.freq[i], d.ropeFactor);
			float c = a * t.x - b * t.y;
			b = b * t.x + a * t.y;
			a = c;
		}
		if (kv >= 0)
			to = pageOf(d, p.cache, state.page, p.layer, kv / d.kvHeads, kv % d.kvHeads) + state.position % pageTokens * HEAD_DIM;
		to[i] = toAct(a);
		to[i + HEAD_DIM / 2] = toAct(b);
	} else if (KIND == gateUpKind) {
		p.q[(size_t)r * d.ffn + pair] = toAct(a / (1 + __expf(-a)) * b);
	} else if (KIND == addKind) {
		float2 *to = (float2 *)(p.x + (size_t)r * d.width) + pair;
		if (p.add) {
			float2 v = *to;
			a += v.x;
			b += v.y;
		}
		*to = make_float2(a, b);
	} else {
		float *to = p.x + (size_t)r * d.vocab + 2 * pair;
		to[0] = a;
		if (2 * pair + 1 < d.vocab)
			to[1] = b;
	}
}

#ifndef ONE_STAGES
#define ONE_STAGES 8 // slots of a lane, for one row
#endif

// one multiplies one row by a matrix. A warp computes pairs of results, one pair after the other;
// its lanes share the columns. Each lane copies the weights that it will use itself, into slots
// that only it reads. So no thread waits for another one's copies. The row is the norm of x with
// NORM, otherwise a.
template <Kind KIND, bool NORM> __device__ inline void one(const Dims &d, int in, const float *x, const void *weight, const act *a,
	const void *w, const Place &p)
{
	constexpr bool fp8 = FP8 && KIND != logitsKind;
	constexpr int each = fp8 ? 16 : 8; // weights of 16 bytes
	const int warp = threadIdx.x / 32, lane = threadIdx.x % 32, warps = gridDim.x * 8;
	const int out = outputs<KIND>(d), pairs = (out + 1) / 2, steps = (in + 32 * each - 1) / (32 * each);
	const size_t rowBytes = (size_t)in * (fp8 ? 1 : 2);
	const u32 slots = sharedAddress(shared + warp * ONE_STAGES * 64 + lane);
	act *row = (act *)(shared + 8 * ONE_STAGES * 64);
	RowState state;
	launchNext();

	// The copies run ahead of the products. The next copy is of step nextStep of pair next, whose
	// rows are at r0 and r1.
	int next = blockIdx.x * 8 + warp, nextStep = 0;
	const char *r0 = 0, *r1 = 0;
	auto begin = [&]() {
		r0 = (const char *)w + rowOf<KIND>(d, next, 0) * rowBytes + lane * 16;
		r1 = (const char *)w + rowOf<KIND>(d, next, 1) * rowBytes + lane * 16;
	};
	auto copy = [&](int slot) {
		if (next < pairs) {
			bool valid = nextStep * 32 * each + lane * each < in;
			u32 to = slots + slot * 1024;
			copyAsync(to, valid ? r0 + nextStep * 512 : w, valid);
			valid = valid && rowOf<KIND>(d, next, 1) < out;
			copyAsync(to + 512, valid ? r1 + nextStep * 512 : w, valid);
			if (++nextStep == steps) {
				nextStep = 0;
				next += warps;
				begin();
			}
		}
		commitCopies();
	};
	begin();
#pragma unroll
	for (int i = 0; i < ONE_STAGES - 1; i++)
		copy(i);
	if (KIND == qkvKind)
		state = stateOf(d, p, 0);

	waitPrevious();
	if (NORM) {
		normRow(d, x, weight, row);
	} else {
		for (int i = threadIdx.x; i < in / 8; i += 256)
			((uint4 *)row)[i] = ((const uint4 *)a)[i];
	}
	for (int i = in / 8 + threadIdx.x; i < steps * 4 * each; i += 256)
		((uint4 *)row)[i] = make_uint4(0, 0, 0, 0);
	__syncthreads();

	int slot = 0;
	const u32 mine = sharedAddress(row) + lane * each * 2;
	for (int pair = blockIdx.x * 8 + warp; pair < pairs; pair += warps) {
		float sum0 = 0, sum1 = 0;
		for (int step = 0; step < steps; step++) {
			waitCopies<ONE_STAGES - 2>();
			uint4 w0 = loadShared(slots + slot * 1024), w1 = loadShared(slots + slot * 1024 + 512);
			auto add = [&](u32 w0, u32 w1, u32 v) {
				sum0 = fmaf(lower(w0), lower(v), sum0);
				sum1 = fmaf(lower(w1), lower(v), sum1);
				sum0 = fmaf(upper(w0), upper(v), sum0);
				sum1 = fmaf(upper(w1), upper(v), sum1);
			};
			uint4 v = loadShared(mine + step * 64 * each);
			if (fp8) {
				uint4 v2 = loadShared(mine + step * 64 * each + 16);
				auto add4 = [&](u32 w0, u32 w1, u32 v, u32 v2) {
					u32 a0, b0, a1, b1;
					unpackFP8(w0, a0, b0);
					unpackFP8(w1, a1, b1);
					add(a0, a1, v);
					add(b0, b1, v2);
				};
				add4(w0.x, w1.x, v.x, v.y);
				add4(w0.y, w1.y, v.z, v.w);
				add4(w0.z, w1.z, v2.x, v2.y);
				add4(w0.w, w1.w, v2.z, v2.w);
			} else {
				add(w0.x, w1.x, v.x);
				add(w0.y, w1.y, v.y);
				add(w0.z, w1.z, v.z);
				add(w0.w, w1.w, v.w);
			}
			copy(slot == 0 ? ONE_STAGES - 1 : slot - 1);
			slot = slot == ONE_STAGES - 1 ? 0 : slot + 1;
		}
		sum0 = sumWarp(sum0);
		sum1 = sumWarp(sum1);
		if (lane == 0)
			store<KIND>(d, p, state, 0, pair, sum0, sum1);
	}
}

// A block of many has manyTall * manyWide warps, for each kind. manyTall of them share the rows of
// its tile, and manyWide the columns of a stage. manyStages has the number of stages, for each
// kind, and for 8, 16, 32 and 64 rows.
#ifndef MANY_TALL
#define MANY_TALL {3, 3, 2, 4}
#define MANY_WIDE {2, 2, 4, 2}
#define MANY_STAGES {{5, 5, 5, 5}, {5, 5, 5, 5}, {3, 3, 3, 3}, {4, 4, 4, 4}}
#endif
constexpr int manyTall[4] = MANY_TALL, manyWide[4] = MANY_WIDE, manyStages[4][4] = MANY_STAGES;

__host__ __device__ constexpr int manyThreads(Kind kind) { return 32 * manyTall[kind] * manyWide[kind]; }

// manyBlocks returns how many blocks a multiprocessor's registers must hold.
__host__ __device__ constexpr int manyBlocks(Kind kind, int rows) { return FP8 && kind != logitsKind && rows == 64 ? 1 : 2; }

// manyPlace returns where 16 bytes of a row lie in a stage, such that each lane reads 16 bytes
// beside its neighbours'. A piece of 512 bytes has 16 bytes for each lane: 8 rows of 64 bytes. Two
// neighbouring pieces differ in the order of their rows, so that the parts of a row are written to
// different banks.
__device__ inline u32 manyPlace(int row, int piece, int pieces, int k)
{
	return (row / 8 * pieces + piece) * 512 + ((row % 8 * 4 + k) ^ (piece & 1) << 2) * 16;
}

// many multiplies rows rows, at most ROWS, by a matrix with tensor cores. A block computes 32 *
// manyTall rows of the matrix, and reads the columns that its place in the cluster gives it, stage
// after stage. The partial sums of its warps, then of all blocks of the cluster, are added in
// order. So a result does not depend on rows and ROWS.
//
// In most cases a block takes less than half of a multiprocessor's shared memory and registers.
// Then blocks of the next kernel find room beside it, and begin to read their weights before this
// kernel has ended.
//
// The order of a tile's columns does not matter, if it is the same for weights and rows. So each
// lane takes 16 neighbouring bytes, and not four times 4 bytes as in the instruction's description.
template <Kind KIND, int ROWS> __device__ inline void many(const Dims &d, int rows, int in, const act *h, const void *w, const Place &p)
{
	constexpr bool fp8 = FP8 && KIND != logitsKind;
	constexpr int TALL = manyTall[KIND], WIDE = manyWide[KIND], THREADS = manyThreads(KIND);
	constexpr int STAGES = manyStages[KIND][ROWS == 8 ? 0 : ROWS == 16 ? 1 : ROWS == 32 ? 2 : 3];
	constexpr int M = 32 * TALL, NT = ROWS / 8, stride = ROWS + 1;
	constexpr int wide = fp8 ? 2 : 1;       // 16 bytes of weights are as many columns as 16 * wide bytes of rows
	constexpr int chunks = 4 * WIDE;        // pieces of 16 bytes of a row of weights in a stage
	constexpr int rowChunks = chunks * wide;
	constexpr int weightBytes = M * chunks * 16, stage = weightBytes + ROWS * rowChunks * 16;
	constexpr int step = THREADS / chunks;  // rows of weights that all threads copy at once
	constexpr int rowStep = THREADS / rowChunks;
	const int thread = threadIdx.x, warp = thread / 32, lane = thread % 32, g = lane / 4, t = lane % 4;
	const int tall = warp % TALL, part = warp / TALL; // this warp's rows and columns
	const int out = outputs<KIND>(d), pairs = (out + 1) / 2, firstPair = blockIdx.x * (M / 2), splits = gridDim.y;
	const int all = (in + chunks * 8 * wide - 1) / (chunks * 8 * wide);
	const int first = all * (int)blockIdx.y / splits, steps = all * ((int)blockIdx.y + 1) / splits - first;
	const u32 slots = sharedAddress(shared);
	launchNext();

	// In each stage this thread copies piece chunk of four rows of weights, and piece rowChunk of
	// some of the rows of numbers.
	const int chunk = thread % chunks, rowChunk = thread % rowChunks;
	const char *ws[4];
#pragma unroll
	for (int i = 0; i < 4; i++) {
		int local = thread / chunks + i * step; // row of the tile: the first results of all pairs, then the second ones
		int pair = firstPair + local % (M / 2), row = rowOf<KIND>(d, pair, local / (M / 2));
		ws[i] = pair < pairs && row < out ? (const char *)w + (size_t)row * in * 2 / wide + chunk * 16 : 0;
	}
	const u32 weightTo = slots + manyPlace(thread / chunks, chunk / 4, WIDE, chunk % 4);
	auto rowTo = [&](int row) {
		return slots + weightBytes + (fp8 ? manyPlace(row, rowChunk / 8 * 2 + rowChunk % 2, 2 * WIDE, rowChunk % 8 / 2) :
			manyPlace(row, rowChunk / 4, WIDE, rowChunk % 4));
	};
	const u32 firstTo = rowTo(thread / rowChunks);
	const char *hs = (const char *)(h + (size_t)(thread / rowChunks) * in + rowChunk * 8);
	auto copyWeights = [&](int i, int slot) {
		i += first;
		bool valid = (i * chunks + chunk) * 8 * wide < in;
#pragma unroll
		for (int k = 0; k < 4; k++)
			copyAsync(weightTo + slot * stage + k * (step / 8 * WIDE * 512), valid && ws[k] ? ws[k] + (size_t)i * chunks * 16 : w,
				valid && ws[k]);
	};
	auto copyRows = [&](int i, int slot) {
		i += first;
		bool valid = (i * rowChunks + rowChunk) * 8 < in;
#pragma unroll
		for (int k = 0; k * rowStep < ROWS; k++) {
			int row = thread / rowChunks + k * rowStep;
			if (ROWS % rowStep == 0 || row < ROWS)
				copyAsync((rowStep % 8 == 0 ? firstTo + k * (rowStep * rowChunks * 16) : rowTo(row)) + slot * stage,
					valid && row < rows ? hs + ((size_t)k * rowStep * in + (size_t)i * rowChunks * 8) * 2 : (const char *)h, valid && row < rows);
		}
	};
#pragma unroll
	for (int i = 0; i < STAGES - 1; i++)
		if (i < steps)
			copyWeights(i, i);
	__shared__ RowState states[ROWS];
	if (KIND == qkvKind && thread < rows)
		states[thread] = stateOf(d, p, thread);
	waitPrevious();
#pragma unroll
	for (int i = 0; i < STAGES - 1; i++) {
		if (i < steps)
			copyRows(i, i);
		commitCopies();
	}

	float c[2][NT][4] = {};
	const u32 weightFrom = slots + (tall * 4 * WIDE + part) * 512 + (lane ^ (part & 1) << 2) * 16;
	const u32 rowFrom = slots + weightBytes + part * wide * 512;
	int slot = 0;
#pragma unroll 1
	for (int i = 0; i < steps; i++) {
		waitCopies<STAGES - 2>();
		__syncthreads(); // this stage is complete, and all threads are done with the stage before
		if (i + STAGES - 1 < steps) {
			int free = slot == 0 ? STAGES - 1 : slot - 1;
			copyWeights(i + STAGES - 1, free);
			copyRows(i + STAGES - 1, free);
		}
		commitCopies();
		uint4 a[4];
#pragma unroll
		for (int k = 0; k < 4; k++)
			a[k] = loadShared(weightFrom + slot * stage + k * (WIDE * 512));
		if (fp8) {
#pragma unroll
			for (int s = 0; s < 2; s++) {
				u32 v[4][4];
#pragma unroll
				for (int k = 0; k < 4; k++) {
					unpackFP8(s ? a[k].z : a[k].x, v[k][0], v[k][1]);
					unpackFP8(s ? a[k].w : a[k].y, v[k][2], v[k][3]);
				}
#pragma unroll
				for (int j = 0; j < NT; j++) {
					uint4 b = loadShared(rowFrom + slot * stage + (j * 2 * WIDE + s) * 512 + (lane ^ s << 2) * 16);
#pragma unroll
					for (int k = 0; k < 2; k++) {
						multiply(c[k][j], v[2 * k][0], v[2 * k + 1][0], v[2 * k][1], v[2 * k + 1][1], b.x, b.y);
						multiply(c[k][j], v[2 * k][2], v[2 * k + 1][2], v[2 * k][3], v[2 * k + 1][3], b.z, b.w);
					}
				}
			}
		} else {
#pragma unroll
			for (int j = 0; j < NT; j++) {
				uint4 b = loadShared(rowFrom + slot * stage + j * (WIDE * 512) + (lane ^ (part & 1) << 2) * 16);
#pragma unroll
				for (int k = 0; k < 2; k++) {
					uint4 lo = a[2 * k], hi = a[2 * k + 1];
					multiply(c[k][j], lo.x, hi.x, lo.y, hi.y, b.x, b.y);
					multiply(c[k][j], lo.z, hi.z, lo.w, hi.w, b.z, b.w);
				}
			}
		}
		slot = slot == STAGES - 1 ? 0 : slot + 1;
	}
	waitCopies<0>();
	__syncthreads(); // all slots are free

	// Add the warps' partial sums: [part][M][stride].
	float *sums = (float *)shared;
#pragma unroll
	for (int i = 0; i < 2; i++)
#pragma unroll
		for (int j = 0; j < NT; j++) {
			float *to = sums + (part * M + tall * 32 + i * 16 + g) * stride + j * 8 + t * 2;
			to[0] = c[i][j][0];
			to[1] = c[i][j][1];
			to[8 * stride] = c[i][j][2];
			to[8 * stride + 1] = c[i][j][3];
		}
	__syncthreads();
	// Neighbouring threads take neighbouring rows, which lie in different banks.
	if (splits == 1) {
		for (int i = thread; i < M / 2 * rows; i += THREADS) {
			int j = i % (M / 2), r = i / (M / 2);
			float a = 0, b = 0;
#pragma unroll
			for (int k = 0; k < WIDE; k++) {
				a += sums[(k * M + j) * stride + r];
				b += sums[(k * M + j + M / 2) * stride + r];
			}
			if (firstPair + j < pairs)
				store<KIND>(d, p, states[r], r, firstPair + j, a, b);
		}
		return;
	}
#if __CUDA_ARCH__ >= 900
	for (int i = thread; i < M * rows; i += THREADS) {
		int j = i % M, r = i / M;
		float a = 0;
#pragma unroll
		for (int k = 0; k < WIDE; k++)
			a += sums[(k * M + j) * stride + r];
		sums[j * stride + r] = a; // only this thread has read it
	}
	waitCluster();
	// Each block of the cluster finishes a part of the pairs.
	const int share = M / 2 / splits, begin = blockIdx.y * share;
	for (int i = thread; i < share * rows; i += THREADS) {
		int j = begin + i % share, r = i / share;
		float v[maxManySplits], v2[maxManySplits], a = 0, b = 0;
#pragma unroll
		for (int k = 0; k < maxManySplits; k++)
			if (k < splits) {
				v[k] = loadPeer(sharedAddress(sums + j * stride + r), k);
				v2[k] = loadPeer(sharedAddress(sums + (j + M / 2) * stride + r), k);
			}
#pragma unroll
		for (int k = 0; k < maxManySplits; k++)
			if (k < splits) {
				a += v[k];
				b += v2[k];
			}
		if (firstPair + j < pairs)
			store<KIND>(d, p, states[r], r, firstPair + j, a, b);
	}
	waitCluster(); // a block must not end before the others have read its memory
#endif
}

extern "C" __global__ void __launch_bounds__(256) qkvOne(Dims d, int layer, const int *active, const int *position, const int *pages,
	void *cache, const float *freq, const float *x, const void *norm, const void *w, const void *scale, act *q)
{
	Place p = {layer, 0, active, position, pages, cache, freq, (const float *)scale, q, 0};
	one<qkvKind, true>(d, d.width, x, norm, 0, w, p);
}

extern "C" __global__ void __launch_bounds__(256) gateUpOne(Dims d, const float *x, const void *norm, const void *w, const void *scale,
	act *g)
{
	Place p = {0, 0, 0, 0, 0, 0, 0, (const float *)scale, g, 0};
	one<gateUpKind, true>(d, d.width, x, norm, 0, w, p);
}

extern "C" __global__ void __launch_bounds__(256) addOne(Dims d, int in, int add, const act *a, const void *w, const void *scale, float *x)
{
	Place p = {0, add, 0, 0, 0, 0, 0, (const float *)scale, 0, x};
	one<addKind, false>(d, in, 0, 0, a, w, p);
}

extern "C" __global__ void __launch_bounds__(256) logitsOne(Dims d, const float *x, const void *norm, const void *w, float *logits)
{
	Place p = {0, 0, 0, 0, 0, 0, 0, 0, 0, logits};
	one<logitsKind, true>(d, d.width, x, norm, 0, w, p);
}

template <int ROWS> __global__ void __launch_bounds__(manyThreads(qkvKind), manyBlocks(qkvKind, ROWS)) qkvMany(Dims d, int rows, int layer, const int *active, const int *position,
	const int *pages, void *cache, const float *freq, const act *h, const void *w, const void *scale, act *q)
{
	Place p = {layer, 0, active, position, pages, cache, freq, (const float *)scale, q, 0};
	many<qkvKind, ROWS>(d, rows, d.width, h, w, p);
}

template <int ROWS> __global__ void __launch_bounds__(manyThreads(gateUpKind), manyBlocks(gateUpKind, ROWS)) gateUpMany(Dims d, int rows, const act *h, const void *w, const void *scale,
	act *g)
{
	Place p = {0, 0, 0, 0, 0, 0, 0, (const float *)scale, g, 0};
	many<gateUpKind, ROWS>(d, rows, d.width, h, w, p);
}

template <int ROWS> __global__ void __launch_bounds__(manyThreads(addKind), manyBlocks(addKind, ROWS)) addMany(Dims d, int rows, int in, int add, const act *a, const void *w,
	const void *scale, float *x)
{
	Place p = {0, add, 0, 0, 0, 0, 0, (const float *)scale, 0, x};
	many<addKind, ROWS>(d, rows, in, a, w, p);
}

template <int ROWS> __global__ void __launch_bounds__(manyThreads(logitsKind), manyBlocks(logitsKind, ROWS)) logitsMany(Dims d, int rows, const act *h, const void *w, float *logits)
{
	Place p = {0, 0, 0, 0, 0, 0, 0, 0, 0, logits};
	many<logitsKind, ROWS>(d, rows, d.width, h, w, p);
}
