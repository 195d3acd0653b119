// A step of a linear regression. x has n rows, each a sample of k features, and t has their targets.
// This command compiles the kernels to kernel.ptx:
//
//	nvcc -ptx -arch=compute_75 -o kernel.ptx kernel.cu

// r = x*w - t, one sample per thread.
extern "C" __global__ void residual(unsigned long long n, unsigned long long k, const float *x, const float *w, const float *t, float *r)
{
	unsigned long long i = (unsigned long long)blockIdx.x * blockDim.x + threadIdx.x;
	if (i >= n)
		return;
	float sum = -t[i];
	for (unsigned long long j = 0; j < k; j++)
		sum = fmaf(x[i * k + j], w[j], sum);
	r[i] = sum;
}

// g = transposed x*r / n, one feature per thread: half the gradient of the mean squared residual.
extern "C" __global__ void gradient(unsigned long long n, unsigned long long k, const float *x, const float *r, float *g)
{
	unsigned long long j = (unsigned long long)blockIdx.x * blockDim.x + threadIdx.x;
	if (j >= k)
		return;
	float sum = 0;
	for (unsigned long long i = 0; i < n; i++)
		sum = fmaf(x[i * k + j], r[i], sum);
	g[j] = sum / (float)n;
}

// w = w - rate*g, one feature per thread.
extern "C" __global__ void step(unsigned long long k, float rate, const float *g, float *w)
{
	unsigned long long j = (unsigned long long)blockIdx.x * blockDim.x + threadIdx.x;
	if (j < k)
		w[j] = fmaf(-rate, g[j], w[j]);
}
