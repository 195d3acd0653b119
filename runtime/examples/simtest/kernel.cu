// y = a*x + b for n floats, one per thread. This command compiles it to kernel.ptx:
//
//	nvcc -ptx -arch=compute_75 -o kernel.ptx kernel.cu

extern "C" __global__ void scale(unsigned long long n, float a, float b, const float *x, float *y)
{
	unsigned long long i = (unsigned long long)blockIdx.x * blockDim.x + threadIdx.x;
	if (i < n)
		y[i] = a * x[i] + b;
}
