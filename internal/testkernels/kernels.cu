// Kernels for tests of what tools/kernelgen writes: vector add, softmax of rows, and a product of matrices by tiles.

// out = x + y, an element a thread.
extern "C" __global__ void vector_add(unsigned n, const float *x, const float *y, float *out)
{
	unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
	if (i < n)
		out[i] = x[i] + y[i];
}

// Each row of out is the softmax of scale times that of x, a block a row. The block has a power of two of threads, and a float of dynamic
// shared memory for each.
extern "C" __global__ void softmax(unsigned columns, float scale, const float *x, float *out)
{
	extern __shared__ float part[];
	const float *row = x + (size_t)blockIdx.x * columns;
	float *to = out + (size_t)blockIdx.x * columns;

	float most = __int_as_float(0xff800000); // the least, -infinity
	for (unsigned i = threadIdx.x; i < columns; i += blockDim.x)
		most = fmaxf(most, scale * row[i]);
	part[threadIdx.x] = most;
	__syncthreads();
	for (unsigned n = blockDim.x / 2; n > 0; n /= 2) {
		if (threadIdx.x < n)
			part[threadIdx.x] = fmaxf(part[threadIdx.x], part[threadIdx.x + n]);
		__syncthreads();
	}
	most = part[0];
	__syncthreads();

	float sum = 0;
	for (unsigned i = threadIdx.x; i < columns; i += blockDim.x) {
		float e = expf(scale * row[i] - most);
		to[i] = e;
		sum += e;
	}
	part[threadIdx.x] = sum;
	__syncthreads();
	for (unsigned n = blockDim.x / 2; n > 0; n /= 2) {
		if (threadIdx.x < n)
			part[threadIdx.x] += part[threadIdx.x + n];
		__syncthreads();
	}
	for (unsigned i = threadIdx.x; i < columns; i += blockDim.x)
		to[i] /= part[0];
}

#define TILE 16

// c = factor * a * b, where a has m rows of k, b has k rows of n, and the factor is a variable. Blocks have 16 x 16 threads, and an element of c
// each: columns along x, rows along y.
__constant__ float factor;

extern "C" __global__ void __launch_bounds__(TILE *TILE) matmul(int m, int n, int k, const float *__restrict__ a, const float *__restrict__ b,
	float *__restrict__ c)
{
	__shared__ float as[TILE][TILE], bs[TILE][TILE];
	int row = blockIdx.y * TILE + threadIdx.y, column = blockIdx.x * TILE + threadIdx.x;
	float sum = 0;
	for (int at = 0; at < k; at += TILE) {
		int i = at + threadIdx.x, j = at + threadIdx.y;
		as[threadIdx.y][threadIdx.x] = row < m && i < k ? a[(size_t)row * k + i] : 0;
		bs[threadIdx.y][threadIdx.x] = j < k && column < n ? b[(size_t)j * n + column] : 0;
		__syncthreads();
		for (int i = 0; i < TILE; i++)
			sum = fmaf(as[threadIdx.y][i], bs[i][threadIdx.x], sum);
		__syncthreads();
	}
	if (row < m && column < n)
		c[(size_t)row * n + column] = factor * sum;
}
