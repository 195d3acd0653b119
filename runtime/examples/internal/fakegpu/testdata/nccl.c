/* An NCCL of one rank, whose buffers are host memory. VERSION is the version that it reports. FAIL_REDUCE makes reductions
 * fail. WRONG_REDUCE=n makes them leave out the last n elements. */
#include <stddef.h>
#include <stdint.h>
#include <string.h>

enum { OK = 0, SYSTEM = 2, INVALID_ARGUMENT = 4 };

#define COMM ((void *)0xcc)
#ifndef VERSION
#define VERSION 22803
#endif
#ifndef WRONG_REDUCE
#define WRONG_REDUCE 0
#endif

typedef struct { unsigned char internal[128]; } id;
typedef struct { size_t size; unsigned magic, version; int blocking; } config;

static int live;

int ncclGetVersion(int *v) { *v = VERSION; return OK; }
int ncclGetUniqueId(id *u) { for (int i = 0; i < 128; i++) u->internal[i] = i * 7; return OK; }
const char *ncclGetLastError(void *comm) { return "the fake fails as it was told to"; }

int ncclCommInitRank(void **comm, int ranks, id u, int rank)
{
	for (int i = 0; i < 128; i++)
		if (u.internal[i] != (unsigned char)(i * 7)) return INVALID_ARGUMENT;
	if (ranks != 1 || rank != 0 || live) return INVALID_ARGUMENT;
	live++, *comm = COMM;
	return OK;
}

int ncclCommInitAll(void **comms, int n, const int *devs)
{
	if (n != 1 || devs[0] != 0 || live) return INVALID_ARGUMENT;
	live++, comms[0] = COMM;
	return OK;
}

#if VERSION >= 21403
int ncclCommInitRankConfig(void **comm, int ranks, id u, int rank, config *c)
{
	if (c->magic != 0xcafebeef || c->version != VERSION || c->blocking != 1) return INVALID_ARGUMENT;
	if (c->size != (VERSION >= 22803 ? 80 : 24)) return INVALID_ARGUMENT;
	return ncclCommInitRank(comm, ranks, u, rank);
}
#endif

int ncclCommDestroy(void *comm) { if (comm != COMM || !live) return INVALID_ARGUMENT; live--; return OK; }

int ncclAllReduce(const void *send, void *recv, size_t count, int type, int op, void *comm, void *stream)
{
	if (type != 7 || (op != 0 && op != 4) || comm != COMM || !stream) return INVALID_ARGUMENT;
#ifdef FAIL_REDUCE
	return SYSTEM;
#endif
	memcpy(recv, send, (count - WRONG_REDUCE) * 4);
	return OK;
}
