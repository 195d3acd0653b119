// The kernels ring, meet, lead and follow of testdata/kernels as CUDA C++, by its cooperative groups: for compute capability 9.0.

#include <cooperative_groups.h>

namespace cg = cooperative_groups;

// ring has each block of a grid along x put its index plus 1000 into its shared memory, and write to its two elements of out what the
// next block of its cluster has there, the first one being next to the last, and how many blocks the cluster has.
extern "C" __global__ void ring(unsigned *out)
{
	__shared__ unsigned box;
	cg::cluster_group cluster = cg::this_cluster();
	unsigned blocks = cluster.num_blocks();
	if (threadIdx.x == 0)
		box = blockIdx.x + 1000;
	cluster.sync();
	unsigned next = *cluster.map_shared_rank(&box, (cluster.block_rank() + 1) % blocks);
	cluster.sync(); // a block stays until nobody reads its memory any more
	if (threadIdx.x == 0) {
		out[2 * blockIdx.x] = next;
		out[2 * blockIdx.x + 1] = blocks;
	}
}

// meet has all blocks of a grid along x wait for each other so many times, and each write how often blocks have come by then to its
// element of out, or -1 if it once has seen another number than there were. The counter begins at 0.
extern "C" __global__ void meet(unsigned rounds, unsigned *counter, unsigned *out)
{
	cg::grid_group grid = cg::this_grid();
	bool wrong = false;
	for (unsigned i = 1; i <= rounds; i++) {
		if (threadIdx.x == 0)
			atomicAdd(counter, 1);
		grid.sync();
		wrong = wrong || *(volatile unsigned *)counter != i * gridDim.x;
		grid.sync();
	}
	wrong = __syncthreads_or(wrong);
	if (threadIdx.x == 0)
		out[blockIdx.x] = wrong ? ~0u : *(volatile unsigned *)counter;
}

// lead lets what is launched behind it begin, waits some milliseconds at the most until flags[0] is not 0, and then writes value plus
// the index of the thread to each thread's element of out, and what flags[0] was to flags[1]. It is for one block.
extern "C" __global__ void lead(unsigned *flags, unsigned *out, unsigned value)
{
	cudaTriggerProgrammaticLaunchCompletion();
	unsigned begun = 0;
	for (int i = 0; i < 10000 && !begun; i++)
		begun = *(volatile unsigned *)flags;
	out[threadIdx.x] = value + threadIdx.x;
	if (threadIdx.x == 0)
		flags[1] = begun;
}

// follow sets flags[0] to 1, waits for the kernel in front of it, and then writes what each thread's element of in is, plus 1, to that
// of out. It is for one block.
extern "C" __global__ void follow(unsigned *flags, unsigned *out, unsigned *in)
{
	if (threadIdx.x == 0)
		*(volatile unsigned *)flags = 1;
	cudaGridDependencySynchronize();
	out[threadIdx.x] = in[threadIdx.x] + 1;
}
