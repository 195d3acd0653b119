// Products of the layers' matrices with one row or up to 64 rows of numbers. They read each weight
// once, so the memory's speed limits them: all of them keep tens of kilobytes of each
// multiprocessor's weights under way.
//
// Each lane copies the weights that it will use itself, in the background, into slots of shared
// memory that only it reads. So no thread waits for another one's copies. A lane begins with
// weights, which no kernel writes, before the previous kernel has ended.
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

// stateOf reads numbers that no kernel of this recording writes in front of this one.
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

// store does as the kind says with a pair of results of row r. Only qkvKind needs the row's
// state.
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
// its lanes share the columns. The row is x after a norm, or else a.
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

	// The copies run ahead: of pair next, step nextStep, whose rows are at r0 and r1.
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

// Sizes of a block of many for ROWS rows: 16 * MT rows of the matrix, and slots of a thread.
#ifndef MANY_TILES_8
#define MANY_TILES_8 2
#define MANY_STAGES_8 5
#define MANY_TILES_16 2
#define MANY_STAGES_16 4
#define MANY_TILES_32 2
#define MANY_STAGES_32 3
#define MANY_TILES_64 4
#define MANY_STAGES_64 3
#endif

// many multiplies rows rows, at most ROWS, by a matrix with tensor cores. A block computes 16 * MT
// rows of the matrix, and reads the columns that its place in the cluster gives it. Its 8 warps
// share the columns in turn. The partial sums of all warps, then of all blocks of the cluster, are
// added in order. So a result does not depend on rows, ROWS and MT.
//
// The order of a tile's columns does not matter, if it is the same for weights and rows. So each
// lane takes 16 neighbouring bytes where the instruction would have it take four times 4 bytes.
template <Kind KIND, int ROWS> __device__ inline void many(const Dims &d, int rows, int in, const act *h, const void *w, const Place &p)
{
	constexpr int MT = ROWS == 8 ? MANY_TILES_8 : ROWS == 16 ? MANY_TILES_16 : ROWS == 32 ? MANY_TILES_32 : MANY_TILES_64;
	constexpr int STAGES = ROWS == 8 ? MANY_STAGES_8 : ROWS == 16 ? MANY_STAGES_16 : ROWS == 32 ? MANY_STAGES_32 : MANY_STAGES_64;
	constexpr bool fp8 = FP8 && KIND != logitsKind;
	constexpr int NT = ROWS / 8;
	constexpr int wide = fp8 ? 2 : 1;      // 16 bytes of weights have columns of 16 * wide bytes of rows
	constexpr int columns = 32 * wide;     // of a step of a warp
	constexpr int piece = 256 * 16;        // 16 bytes for each thread
	constexpr int stage = (MT * 2 + NT * wide) * piece;
	constexpr int M = 16 * MT, stride = ROWS + 1;
	const int warp = threadIdx.x / 32, lane = threadIdx.x % 32, g = lane / 4, t = lane % 4;
	const int out = outputs<KIND>(d), pairs = (out + 1) / 2, firstPair = blockIdx.x * (M / 2);
	const int parts = gridDim.y * 8, part = blockIdx.y * 8 + warp; // this warp's columns
	const int all = in / columns, steps = part < all ? (all - part + parts - 1) / parts : 0;
	const size_t rowBytes = (size_t)in * (fp8 ? 1 : 2);
	const u32 slots = sharedAddress(shared + threadIdx.x);
	launchNext();

	const char *ws[MT * 2];
#pragma unroll
	for (int i = 0; i < MT * 2; i++) {
		int local = i * 8 + g; // row of the tile: the first results of all pairs, then the second ones
		int pair = firstPair + local % (M / 2), row = rowOf<KIND>(d, pair, local / (M / 2));
		ws[i] = pair < pairs && row < out ? (const char *)w + row * rowBytes + part * 64 + t * 16 : 0;
	}
	const char *hs = (const char *)h + ((size_t)g * in + part * columns + t * 8 * wide) * 2;
	auto copyWeights = [&](int step, int slot) {
		u32 to = slots + slot * stage;
#pragma unroll
		for (int i = 0; i < MT * 2; i++)
			copyAsync(to + i * piece, ws[i] ? ws[i] + (size_t)step * parts * 64 : w, ws[i] != 0);
	};
	auto copyRows = [&](int step, int slot) {
		u32 to = slots + slot * stage + MT * 2 * piece;
#pragma unroll
		for (int j = 0; j < NT; j++) {
			bool valid = j * 8 + g < rows;
#pragma unroll
			for (int k = 0; k < wide; k++)
				copyAsync(to + (j * wide + k) * piece, valid ? hs + ((size_t)j * 8 * in + (size_t)step * parts * columns) * 2 + k * 16 : (const char *)h,
					valid);
		}
	};
#pragma unroll
	for (int i = 0; i < STAGES - 1; i++)
		if (i < steps)
			copyWeights(i, i);
	__shared__ RowState states[ROWS];
	if (KIND == qkvKind && threadIdx.x < rows)
		states[threadIdx.x] = stateOf(d, p, threadIdx.x);
	waitPrevious();
#pragma unroll
	for (int i = 0; i < STAGES - 1; i++) {
		if (i < steps)
			copyRows(i, i);
		commitCopies();
	}

	float c[MT][NT][4] = {};
	int slot = 0;
#pragma unroll 1
	for (int step = 0; step < steps; step++) {
		waitCopies<STAGES - 2>();
		u32 from = slots + slot * stage;
		if (fp8) {
			u32 a[MT * 2][8];
#pragma unroll
			for (int i = 0; i < MT * 2; i++) {
				uint4 v = loadShared(from + i * piece);
				unpackFP8(v.x, a[i][0], a[i][1]);
				unpackFP8(v.y, a[i][2], a[i][3]);
				unpackFP8(v.z, a[i][4], a[i][5]);
				unpackFP8(v.w, a[i][6], a[i][7]);
			}
#pragma unroll
			for (int j = 0; j < NT; j++) {
				uint4 b = loadShared(from + (MT * 2 + 2 * j) * piece), b2 = loadShared(from + (MT * 2 + 2 * j + 1) * piece);
#pragma unroll
				for (int i = 0; i < MT; i++) {
					u32 *lo = a[2 * i], *hi = a[2 * i + 1];
					multiply(c[i][j], lo[0], hi[0], lo[1], hi[1], b.x, b.y);
					multiply(c[i][j], lo[2], hi[2], lo[3], hi[3], b.z, b.w);
					multiply(c[i][j], lo[4], hi[4], lo[5], hi[5], b2.x, b2.y);
					multiply(c[i][j], lo[6], hi[6], lo[7], hi[7], b2.z, b2.w);
				}
			}
		} else {
			uint4 a[MT * 2];
#pragma unroll
			for (int i = 0; i < MT * 2; i++)
				a[i] = loadShared(from + i * piece);
#pragma unroll
			for (int j = 0; j < NT; j++) {
				uint4 b = loadShared(from + (MT * 2 + j) * piece);
#pragma unroll
				for (int i = 0; i < MT; i++) {
					uint4 lo = a[2 * i], hi = a[2 * i + 1];
					multiply(c[i][j], lo.x, hi.x, lo.y, hi.y, b.x, b.y);
					multiply(c[i][j], lo.z, hi.z, lo.w, hi.w, b.z, b.w);
				}
			}
		}
		int ahead = step + STAGES - 1, free = slot == 0 ? STAGES - 1 : slot - 1;
		if (ahead < steps) {
			copyWeights(ahead, free);
			copyRows(ahead, free);
		}
		commitCopies();
		slot = slot == STAGES - 1 ? 0 : slot + 1;
	}
	waitCopies<0>();
	__syncthreads(); // all slots are free

	// Add the warps' partial sums: [warp][M][stride].
	float *sums = (float *)shared;
#pragma unroll
	for (int i = 0; i < MT; i++)
#pragma unroll
		for (int j = 0; j < NT; j++) {
			float *to = sums + (warp * M + i * 16 + g) * stride + j * 8 + t * 2;
			to[0] = c[i][j][0];
			to[1] = c[i][j][1];
			to[8 * stride] = c[i][j][2];
			to[8 * stride + 1] = c[i][j][3];
		}
	__syncthreads();
	// A thread takes row i % M of column i / M, so that neighbours do not meet in a bank.
	const int splits = gridDim.y;
	if (splits == 1) {
		for (int i = threadIdx.x; i < M / 2 * rows; i += 256) {
			int j = i % (M / 2), r = i / (M / 2);
			float a = 0, b = 0;
#pragma unroll
			for (int k = 0; k < 8; k++) {
				a += sums[(k * M + j) * stride + r];
				b += sums[(k * M + j + M / 2) * stride + r];
			}
			if (firstPair + j < pairs)
				store<KIND>(d, p, states[r], r, firstPair + j, a, b);
		}
		return;
	}
#if __CUDA_ARCH__ >= 900
	for (int i = threadIdx.x; i < M * rows; i += 256) {
		int j = i % M, r = i / M;
		float a = 0;
#pragma unroll
		for (int k = 0; k < 8; k++)
			a += sums[(k * M + j) * stride + r];
		sums[j * stride + r] = a; // only this thread has read it
	}
	asm volatile("barrier.cluster.arrive.release.aligned;\n\tbarrier.cluster.wait.acquire.aligned;" ::: "memory");
	// Each block of the cluster finishes a part of the pairs.
	const int share = M / 2 / splits, begin = blockIdx.y * share;
	for (int i = threadIdx.x; i < share * rows; i += 256) {
		int j = begin + i % share, r = i / share;
		float a = 0, b = 0;
		for (int k = 0; k < splits; k++) {
			u32 peer;
			float v, v2;
			asm volatile("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(peer) : "r"(sharedAddress(sums + j * stride + r)), "r"(k));
			asm volatile("ld.shared::cluster.f32 %0, [%1];" : "=f"(v) : "r"(peer) : "memory");
			asm volatile("ld.shared::cluster.f32 %0, [%1];" : "=f"(v2) : "r"(peer + M / 2 * stride * 4) : "memory");
			a += v;
			b += v2;
		}
		if (firstPair + j < pairs)
			store<KIND>(d, p, states[r], r, firstPair + j, a, b);
	}
	// A block's memory is there until all have read it.
	asm volatile("barrier.cluster.arrive.release.aligned;\n\tbarrier.cluster.wait.acquire.aligned;" ::: "memory");
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

template <int ROWS> __global__ void __launch_bounds__(256) qkvMany(Dims d, int rows, int layer, const int *active, const int *position,
	const int *pages, void *cache, const float *freq, const act *h, const void *w, const void *scale, act *q)
{
	Place p = {layer, 0, active, position, pages, cache, freq, (const float *)scale, q, 0};
	many<qkvKind, ROWS>(d, rows, d.width, h, w, p);
}

template <int ROWS> __global__ void __launch_bounds__(256) gateUpMany(Dims d, int rows, const act *h, const void *w, const void *scale,
	act *g)
{
	Place p = {0, 0, 0, 0, 0, 0, 0, (const float *)scale, g, 0};
	many<gateUpKind, ROWS>(d, rows, d.width, h, w, p);
}

template <int ROWS> __global__ void __launch_bounds__(256) addMany(Dims d, int rows, int in, int add, const act *a, const void *w,
	const void *scale, float *x)
{
	Place p = {0, add, 0, 0, 0, 0, 0, (const float *)scale, 0, x};
	many<addKind, ROWS>(d, rows, in, a, w, p);
}

template <int ROWS> __global__ void __launch_bounds__(256) logitsMany(Dims d, int rows, const act *h, const void *w, float *logits)
{
	Place p = {0, 0, 0, 0, 0, 0, 0, 0, 0, logits};
	many<logitsKind, ROWS>(d, rows, d.width, h, w, p);
}
