// CUPTI as a program sees it that launches graphs. A node has its handle + 1000 as its number. When the
// number is asked for the first time, the node is cloned, as to instantiate its graph: the callback is told of
// a clone whose handle is 100000 higher. A launch, between a push and a pop of a number of the program, runs
// the clones of all nodes one after the other.
//
//	VERSION  the number that it tells
//	LATE     the program's number of a launch comes one flush after the kernels, unless the flush is forced
//	NONE     nodes have no numbers
//	BUSY     another program has subscribed
#include <pthread.h>
#include <stdint.h>
#include <string.h>

#ifndef LATE
#define LATE 0
#endif

enum { KERNEL = 10, CORRELATION = 39, SIZE = 208, MOST = 64 };
enum { CLONE = 100000, NUMBER = 1000 };

static pthread_mutex_t mu = PTHREAD_MUTEX_INITIALIZER;

int cuptiGetVersion(uint32_t *version) { *version = VERSION; return 0; }
int cuptiGetTimestamp(uint64_t *now) { *now = 1000000; return 0; }

typedef void (*requested_t)(uint8_t **, size_t *, size_t *);
typedef void (*completed_t)(void *, uint32_t, uint8_t *, size_t, size_t);
static requested_t requested;
static completed_t completed;
static uint64_t enabled;
int cuptiActivityRegisterCallbacks(requested_t r, completed_t c) { requested = r; completed = c; return 0; }
int cuptiActivityEnable(uint32_t kind) { enabled |= 1ull << kind; return 0; }

typedef void (*callback_t)(void *, uint32_t, uint32_t, const void *);
static callback_t callback;
static void *userdata;
static int cloning; // the callback is enabled
int cuptiSubscribe(void **subscriber, callback_t c, void *data)
{
#ifdef BUSY
	return 39;
#endif
	callback = c;
	userdata = data;
	*subscriber = (void *)7;
	return 0;
}
int cuptiEnableCallback(uint32_t enable, void *subscriber, uint32_t domain, uint32_t cbid)
{
	cloning = enable && subscriber == (void *)7 && domain == 3 && cbid == 20;
	return 0;
}

static uint64_t nodes[MOST];
static int known;

int cuptiGetGraphNodeId(uint64_t node, uint64_t *id)
{
	struct { uint64_t graph, original_graph, node, original_node; uint32_t type, pad; uint64_t dependency, exec; } graph = {1, 2, node + CLONE, node, 0, 0, 0, 3};
	struct { uint64_t context, stream; const void *data; } resource = {0, 0, &graph};
#ifdef NONE
	return 1;
#endif
	*id = node + NUMBER;
	if (node >= CLONE)
		return 0;
	pthread_mutex_lock(&mu);
	for (int i = 0; i < known; i++)
		if (nodes[i] == node) {
			pthread_mutex_unlock(&mu);
			return 0;
		}
	if (known < MOST)
		nodes[known++] = node;
	pthread_mutex_unlock(&mu);
	if (cloning)
		callback(userdata, 3, 20, &resource);
	return 0;
}

static __thread uint64_t pushed; // on this thread
static struct { uint64_t program; int ran, told; } launches[MOST];
static int launched;

int cuptiActivityPushExternalCorrelationId(int kind, uint64_t id) { pushed = kind == 5 ? id : 0; return 0; }
int cuptiActivityPopExternalCorrelationId(int kind, uint64_t *last)
{
	if (kind != 5 || !pushed)
		return 1; // not the thread that pushed
	*last = pushed;
	pthread_mutex_lock(&mu);
	if (launched < MOST)
		launches[launched++].program = pushed;
	pthread_mutex_unlock(&mu);
	pushed = 0;
	return 0;
}

static void put32(uint8_t *to, int offset, uint32_t x) { memcpy(to + offset, &x, sizeof x); }
static void put64(uint8_t *to, int offset, uint64_t x) { memcpy(to + offset, &x, sizeof x); }

// Each record takes SIZE bytes.
static uint8_t *record(uint8_t *buffer, size_t *used, uint32_t kind)
{
	uint8_t *r = buffer + *used;
	if (!(enabled >> kind & 1))
		return NULL;
	memset(r, 0, SIZE);
	put32(r, 0, kind);
	*used += SIZE;
	return r;
}

// cuptiActivityFlushAll hands over one buffer.
int cuptiActivityFlushAll(uint32_t forced)
{
	uint8_t *buffer = NULL, *r;
	size_t bytes = 0, most = 0, used = 0;
	requested(&buffer, &bytes, &most);
	pthread_mutex_lock(&mu);
	for (int i = 0; i < launched; i++) {
		int late = LATE && !launches[i].ran && !forced;
		for (int k = 0; k < known && !launches[i].ran && (r = record(buffer, &used, KERNEL)); k++) {
			put64(r, 16, 1000 + 100 * i + 10 * k);     // start
			put64(r, 24, 1000 + 100 * i + 10 * k + 7); // end
			put32(r, 92, 500 + i);                     // correlation
			put64(r, 104, (uintptr_t) "kernel");
			put64(r, 144, nodes[k] + CLONE + NUMBER);
		}
		launches[i].ran = 1;
		if (late || launches[i].told || !(r = record(buffer, &used, CORRELATION)))
			continue;
		launches[i].told = 1;
		put32(r, 4, 5);
		put64(r, 8, launches[i].program);
		put32(r, 16, 500 + i);
	}
	pthread_mutex_unlock(&mu);
	completed(NULL, 0, buffer, bytes, used);
	return 0;
}

int cuptiActivityGetNextRecord(uint8_t *buffer, size_t valid, uint8_t **record)
{
	uint8_t *next = *record ? *record + SIZE : buffer;
	if (next >= buffer + valid)
		return 12;
	*record = next;
	return 0;
}
