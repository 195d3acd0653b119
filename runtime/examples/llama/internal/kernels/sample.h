// Choice of the next token.

#pragma once

#include "number.h"

struct Sampling {
	float temperature, topP;
	int topK, pad;
	unsigned long long seed;
};

// The distance of a token is (largest logit - its logit) / temperature, and its weight is
// exp(-distance). A Candidate has both as integers, so that sums do not depend on their order, and
// the twin in Go gets the same sums.
struct Candidate {
	u32 key;    // the distance as an integer, in steps of 2⁻²⁷
	u32 weight; // in steps of 2⁻³¹
};

// candidate returns key ~0 for a token whose distance is 32 or more: it is never chosen.
__device__ inline Candidate candidate(float logit, float top, float inverse)
{
	float distance = __fmul_rn(__fsub_rn(top, logit), inverse);
	if (!(distance < 32))
		return {~0u, 0};
	float x = __fmul_rn(distance, -1.44269504f), whole = rintf(x), f = __fsub_rn(x, whole);
	float y = 1.54035304e-4f; // 2ᶠ by Taylor's series
	y = __fmaf_rn(y, f, 1.33335581e-3f);
	y = __fmaf_rn(y, f, 9.61812911e-3f);
	y = __fmaf_rn(y, f, 5.55041087e-2f);
	y = __fmaf_rn(y, f, 2.40226507e-1f);
	y = __fmaf_rn(y, f, 6.93147181e-1f);
	y = __fmaf_rn(y, f, 1);
	int n = (int)whole + 31;
	u32 weight = n < 0 ? 0 : (u32)__fmul_rn(y, __uint_as_float((u32)(n + 127) << 23));
	return {(u32)__fmul_rn(distance, 134217728.f), weight};
}

// random64 returns 64 random bits: Philox4x32-10 of a key and a counter.
__device__ inline u64 random64(u64 key, u32 counter)
{
	u32 x0 = counter, x1 = 0, x2 = 0, x3 = 0, k0 = (u32)key, k1 = (u32)(key >> 32);
	for (int i = 0; i < 10; i++) {
		u64 a = (u64)0xd2511f53 * x0, b = (u64)0xcd9e8d57 * x2;
		x0 = (u32)(b >> 32) ^ x1 ^ k0;
		x1 = (u32)b;
		x2 = (u32)(a >> 32) ^ x3 ^ k1;
		x3 = (u32)a;
		k0 += 0x9e3779b9;
		k1 += 0xbb67ae85;
	}
	return (u64)x1 << 32 | x0;
}

__device__ inline u64 sumWarp64(u64 v)
{
#pragma unroll
	for (int i = 16; i > 0; i /= 2)
		v += __shfl_xor_sync(~0u, v, i);
	return v;
}

// sumBlock returns the sum of the values of all 1024 threads, to all of them.
__device__ inline u64 sumBlock(u64 v, u64 *space)
{
	v = sumWarp64(v);
	__syncthreads();
	if (threadIdx.x % 32 == 0)
		space[threadIdx.x / 32] = v;
	__syncthreads();
	return sumWarp64(space[threadIdx.x % 32]);
}

// selectKey returns the least key such that the candidates with keys up to it have a total of
// target or more. The total is the sum of their weights, or with COUNT their number. Candidates
// with keys above limit do not count, and selectKey returns limit if all others do not reach
// target. In the result the bits below bit are 1.
//
// It finds 8 bits of the key at a time, from the totals for each value of these bits. sums has 8
// copies of [256][2]: a total is in two words so that neither overflows, and warps share a copy.
template <bool COUNT> __device__ inline u32 selectKey(const float *logits, int vocab, float top, float inverse, u32 limit, u64 target,
	int bit, u32 *sums, u64 *found)
{
	u32 prefix = 0;
	for (int shift = 24; shift >= bit; shift -= 8) {
		__syncthreads();
		for (int i = threadIdx.x; i < 8 * 512; i += 1024)
			sums[i] = 0;
		__syncthreads();
		u32 *mine = sums + threadIdx.x / 32 % 8 * 512;
		for (int i = threadIdx.x; i < vocab; i += 1024) {
			Candidate c = candidate(logits[i], top, inverse);
			if (c.key > limit || c.key == ~0u || (shift < 24 && c.key >> (shift + 8) != prefix >> (shift + 8)))
				continue;
			u32 *to = mine + (c.key >> shift & 255) * 2;
			atomicAdd(to, COUNT ? 1 : c.weight & 0xffff);
			if (!COUNT && c.weight >> 16)
				atomicAdd(to + 1, c.weight >> 16);
		}
		__syncthreads();
		if (threadIdx.x < 32) {
			u64 own[8], sum = 0; // of 8 values
			for (int k = 0; k < 8; k++) {
				own[k] = 0;
				for (int copy = 0; copy < 8; copy++) {
					const u32 *from = sums + copy * 512 + (threadIdx.x * 8 + k) * 2;
					own[k] += from[0] + ((u64)from[1] << 16);
				}
				sum += own[k];
			}
			u64 before = 0; // sum of the lanes before this one
			for (int i = 0; i < 32; i++) {
				u64 v = __shfl_sync(~0u, sum, i);
				if (i < threadIdx.x)
					before += v;
			}
			if (threadIdx.x == 31 && before + sum < target)
				found[0] = 256;
			if (before < target && before + sum >= target) {
				int k = 0;
				while (before + own[k] < target)
					before += own[k++];
				found[0] = threadIdx.x * 8 + k;
				found[1] = target - before;
			}
		}
		__syncthreads();
		if (found[0] == 256)
			return limit;
		prefix |= (u32)found[0] << shift;
		target = found[1];
	}
	return prefix | ((1u << bit) - 1);
}

// minBlock returns the least value of all 1024 threads, to all of them.
__device__ inline u32 minBlock(u32 v, u64 *space)
{
	auto least = [&]() {
#pragma unroll
		for (int i = 16; i > 0; i /= 2)
			v = min(v, __shfl_xor_sync(~0u, v, i));
	};
	least();
	__syncthreads();
	if (threadIdx.x % 32 == 0)
		space[threadIdx.x / 32] = v;
	__syncthreads();
	v = space[threadIdx.x % 32];
	least();
	return v;
}

// A Few has the candidates among which chooseFew chooses, at most maxFew.
const int maxFew = 512;
struct Few {
	int n;
	u32 key[maxFew], weight[maxFew];
	int token[maxFew];
};

// collect stores the candidates with keys up to bound in f, in any order, and their number in f->n.
// If that is above maxFew, some are not stored.
__device__ inline void collect(Few *f, const float *logits, int vocab, float top, float inverse, u32 bound)
{
	__syncthreads();
	if (threadIdx.x == 0)
		f->n = 0;
	__syncthreads();
#pragma unroll 4
	for (int i = threadIdx.x; i < vocab; i += 1024) {
		Candidate c = candidate(logits[i], top, inverse);
		if (c.key > bound)
			continue;
		int k = atomicAdd(&f->n, 1);
		if (k < maxFew) {
			f->key[k] = c.key;
			f->weight[k] = c.weight;
			f->token[k] = i;
		}
	}
	__syncthreads();
}

// chooseFew returns the chosen token to the thread that has it, and -1 to the other threads. It
// compares all candidates with each other. Without topK, total is the weight of all tokens.
__device__ inline int chooseFew(Few *f, const Sampling &s, bool topK, u64 total, u64 random, u64 *space)
{
	const int n = f->n, i = threadIdx.x;
	u32 key = ~0u, weight = 0, limit = ~0u - 1;
	int token = 0;
	if (i < n) {
		key = f->key[i];
		weight = f->weight[i];
		token = f->token[i];
	}
	// restrict lowers the limit to the least key of the threads with reached, if any, and sets the
	// weights of keys above it to 0. All threads call it.
	auto restrict = [&](bool reached) {
		limit = minBlock(reached ? key : limit, space);
		if (key > limit)
			weight = 0;
		if (i < n)
			f->weight[i] = weight;
		total = sumBlock(weight, space);
	};
	if (topK) {
		int count = 0;
		if (i < n)
			for (int k = 0; k < n; k++)
				count += f->key[k] <= key;
		restrict(i < n && count >= s.topK);
	}
	if (s.topP < 1) {
		double p = s.topP > 0 ? (double)s.topP : 0;
		u64 target = (u64)__dmul_rn(p, (double)total), sum = 0;
		if (i < n)
			for (int k = 0; k < n; k++)
				sum += f->key[k] <= key ? f->weight[k] : 0;
		restrict(key <= limit && sum >= (target > 0 ? target : 1));
	}
	const u64 place = __umul64hi(random, total);
	u64 before = 0;
	if (weight > 0)
		for (int k = 0; k < n; k++)
			before += f->token[k] < token ? f->weight[k] : 0;
	return weight > 0 && place >= before && place - before < weight ? token : -1;
}

// sample chooses a token for the slot of each row, one block of 1024 threads for each row.
extern "C" __global__ void __launch_bounds__(1024) sample(Dims d, const int *active, int *token, int *position, const Sampling *sampling,
	const float *logits, int *out)
{
	__shared__ u32 sums[8 * 512]; // or Few
	__shared__ u64 space[32], found[2];
	__shared__ float tops[32];
	__shared__ int best[32];
	const int row = blockIdx.x, warp = threadIdx.x / 32, lane = threadIdx.x % 32, vocab = d.vocab;
	launchNext();
	waitPrevious();
	const int slot = active[row];
	if (slot < 0) {
		if (threadIdx.x == 0)
			out[row] = -1;
		return;
	}
	logits += (size_t)row * vocab;
	const Sampling s = sampling[slot];

	// The largest logit, and the first token that has it.
	float top = -infinity;
	int first = vocab;
	auto take = [&](float v, int i) {
		if (v > top || (v == top && i < first)) {
			top = v;
			first = i;
		}
	};
#pragma unroll 16
	for (int i = threadIdx.x; i < vocab; i += 1024)
		take(logits[i], i);
#pragma unroll
	for (int i = 16; i > 0; i /= 2) {
		float v = __shfl_xor_sync(~0u, top, i);
		take(v, __shfl_xor_sync(~0u, first, i));
	}
	if (lane == 0) {
		tops[warp] = top;
		best[warp] = first;
	}
	__syncthreads();
	top = tops[lane];
	first = best[lane];
#pragma unroll
	for (int i = 16; i > 0; i /= 2) {
		float v = __shfl_xor_sync(~0u, top, i);
		take(v, __shfl_xor_sync(~0u, first, i));
	}
	if (first == vocab)
		first = 0; // no logit is a number
	auto finish = [&](int chosen) {
		token[slot] = out[row] = chosen;
		position[slot]++;
	};
	if (!(s.temperature >= 1e-5f) || !(top < infinity) || top == -infinity) {
		if (threadIdx.x == 0)
			finish(first);
		return;
	}

	const float inverse = __fdiv_rn(1, s.temperature);
	const u64 random = random64(s.seed, position[slot]);
	// A warp has a piece of the vocabulary: total is the sum of its tokens' weights.
	const int piece = (vocab + 1023) / 1024 * 32, begin = warp * piece, end = min(vocab, begin + piece);
	auto weigh = [&](u32 limit) {
		u64 sum = 0;
		for (int i = begin + lane; i < end; i += 32) {
			Candidate c = candidate(logits[i], top, inverse);
			if (c.key <= limit)
				sum += c.weight;
		}
		return sumWarp64(sum);
	};
	const bool topK = s.topK > 0 && s.topK < vocab;
	u32 limit = ~0u - 1;
	u64 total = 0, all = 0;
	if (!topK) {
		total = weigh(limit);
		all = sumBlock(lane == 0 ? total : 0, space);
	}
	auto target = [&]() {
		u64 v = (u64)__dmul_rn(s.topP > 0 ? (double)s.topP : 0, (double)all);
		return v > 0 ? v : 1;
	};
	if (topK || s.topP < 1) {
		u32 bound = topK ? selectKey<true>(logits, vocab, top, inverse, limit, s.topK, 24, sums, found) :
			selectKey<false>(logits, vocab, top, inverse, limit, target(), 24, sums, found);
		Few *few = (Few *)sums;
		collect(few, logits, vocab, top, inverse, bound);
		if (few->n <= maxFew) {
			int chosen = chooseFew(few, s, topK, all, random, space);
			if (chosen >= 0)
				finish(chosen);
			return;
		}
	}
	if (topK) {
		limit = selectKey<true>(logits, vocab, top, inverse, limit, s.topK, 0, sums, found);
		total = weigh(limit);
		all = sumBlock(lane == 0 ? total : 0, space);
	}
	if (s.topP < 1) {
		limit = selectKey<false>(logits, vocab, top, inverse, limit, target(), 0, sums, found);
		total = weigh(limit);
		all = sumBlock(lane == 0 ? total : 0, space);
	}
	// The token at a random place of the sum of all weights.
	u64 rest = __umul64hi(random, all);
	__syncthreads(); // space is free
	if (lane == 0)
		space[warp] = total;
	__syncthreads();
	for (int i = 0; i < warp; i++) {
		if (rest < space[i])
			return; // another warp has the place
		rest -= space[i];
	}
	if (rest >= total)
		return;
	for (int i = begin; i < end; i += 32) {
		u64 w = 0;
		if (i + lane < end) {
			Candidate c = candidate(logits[i + lane], top, inverse);
			w = c.key <= limit ? c.weight : 0;
		}
		u64 sum = w; // of the lanes up to this one
#pragma unroll
		for (int k = 1; k < 32; k *= 2) {
			u64 v = __shfl_up_sync(~0u, sum, k);
			if (lane >= k)
				sum += v;
		}
		u64 here = __shfl_sync(~0u, sum, 31);
		if (rest < here) {
			if (rest < sum && rest >= sum - w)
				finish(i + lane);
			return;
		}
		rest -= here;
	}
}
