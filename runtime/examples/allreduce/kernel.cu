// A step of a linear regression with n samples of k features each: rows of x, with the targets t. kernel.ptx is these kernels; it can be
// made anew by
//
//	nvcc -ptx -arch=compute_75 -o kernel.ptx kernel.cu

// r = x*w - t, a sample a thread.
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

// g = transposed x*r / n, a feature a thread: half the gradient of the mean square of the residuals.
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

// w = w - rate*g, a feature a thread.
extern "C" __global__ void step(unsigned long long k, float rate, const float *g, float *w)
{
	unsigned long long j = (unsigned long long)blockIdx.x * blockDim.x + threadIdx.x;
	if (j < k)
		w[j] = fmaf(-rate, g[j], w[j]);
}
