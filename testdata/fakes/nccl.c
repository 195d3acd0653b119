// An NCCL without a GPU. VERSION is what ncclGetVersion tells, VERSION_RESULT what it returns.
#include <pthread.h>
#include <stdint.h>
#include <string.h>
#include <unistd.h>

#ifndef VERSION
#define VERSION 22803
#endif
#ifndef VERSION_RESULT
#define VERSION_RESULT 0
#endif

typedef struct { char internal[128]; } id;

// What every ncclConfig_t begins with.
struct config {
	uint64_t size;
	uint32_t magic, version;
};

int ncclGetVersion(int *version) {
	*version = VERSION;
	return VERSION_RESULT;
}

int ncclGetUniqueId(id *out) {
	for (int i = 0; i < 128; i++)
		out->internal[i] = (char)(3 * i + 1);
	return 0;
}

// wrong reports whether an identity is not the one above.
static int wrong(id in) {
	id want;
	ncclGetUniqueId(&want);
	return memcmp(&in, &want, sizeof want) != 0;
}

int ncclCommInitRank(uintptr_t *comm, int ranks, id in, int rank) {
	*comm = (uintptr_t)ranks << 8 | rank;
	return wrong(in) ? 4 : 0;
}

#if VERSION >= 21403
// The communicator tells what settings came in: none at all, or their size and version.
static uintptr_t settings(const struct config *c) { return c ? c->size << 32 | c->version : 1; }

int ncclCommInitRankConfig(uintptr_t *comm, int ranks, id in, int rank, struct config *c) {
	*comm = settings(c);
	return wrong(in) || rank >= ranks || (c && c->magic != 0xcafebeef) ? 4 : 0;
}
#endif

#if VERSION >= 21801
// A thread of the library's own splits LATE, which is in progress until then. The thread waits
// until the caller asks for the state.
#define LATE 12345
static int progress, asked;

static void *split(void *out) {
	while (!__atomic_load_n(&asked, __ATOMIC_ACQUIRE))
		usleep(100);
	__atomic_store_n((uintptr_t *)out, LATE + 1, __ATOMIC_RELEASE);
	__atomic_store_n(&progress, 0, __ATOMIC_RELEASE);
	return NULL;
}

int ncclCommSplit(uintptr_t comm, int color, int key, uintptr_t *out, struct config *c) {
	pthread_t thread;
	*out = comm == LATE ? 0 : settings(c);
	if (comm != LATE)
		return 0;
	progress = 7;
	asked = 0;
	return pthread_create(&thread, NULL, split, out) || pthread_detach(thread) ? 2 : 7;
}

int ncclCommGetAsyncError(uintptr_t comm, int *state) {
	*state = comm == LATE ? __atomic_load_n(&progress, __ATOMIC_ACQUIRE) : 0;
	if (comm == LATE)
		__atomic_store_n(&asked, 1, __ATOMIC_RELEASE);
	return 0;
}
#endif

// A communicator is the code that asking it gives.
int ncclCommCount(uintptr_t comm, int *count) {
	*count = 8;
	return (int)comm;
}

int ncclAllReduce(uint64_t send, uint64_t recv, uint64_t count, int type, int op, uintptr_t comm, uintptr_t stream) {
	return send == 1 && recv == 2 && count == 3 && type == 7 && op == 2 && stream == 4 ? (int)comm : 4;
}

const char *ncclGetErrorString(int code) { return code == 4 ? "invalid argument" : "another"; }

#if VERSION >= 21304
const char *ncclGetLastError(uintptr_t comm) { return comm ? "of the communicator" : "of the process"; }
#endif
