// A layer of a network: y = relu(W*x + b), for each sample of a batch. Each thread computes one
// element: x of the grid and block is the output, y is the sample. W has a row of weights for each
// output; x and y have a row for each sample. This command compiles it to kernel.ptx:
//
//	nvcc -ptx -arch=compute_75 -o kernel.ptx kernel.cu

extern "C" __global__ void dense(unsigned long long in, unsigned long long out, unsigned long long batch,
	const float *w, const float *b, const float *x, float *y)
{
	unsigned long long j = (unsigned long long)blockIdx.x * blockDim.x + threadIdx.x;
	unsigned long long s = (unsigned long long)blockIdx.y * blockDim.y + threadIdx.y;
	if (j >= out || s >= batch)
		return;
	float sum = b[j];
	for (unsigned long long k = 0; k < in; k++)
		sum = fmaf(w[j * in + k], x[s * in + k], sum);
	y[s * out + j] = fmaxf(sum, 0);
}
