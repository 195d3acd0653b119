#include "axpy.h"

template <typename T> __global__ void saxpy(unsigned long long n, T a, const T *x, T *y)
{
	unsigned long long i = (unsigned long long)blockIdx.x * blockDim.x + threadIdx.x;
	if (i < n)
		y[i] = axpy(a, x[i], y[i]);
}
