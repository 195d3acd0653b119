/* The C side of gpubench: the same calls in a loop that a C program would write. Build it with
 *   cc -O2 -fPIC -shared -o libcloop.so cloop.c
 * and name the file in -c. The driver's functions arrive as addresses, so that no header is needed. */
#include <stdint.h>
#include <time.h>

static uint64_t now(void) {
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

typedef int (*launch_fn)(void *, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, void *, void **, void **);
typedef int (*one_fn)(void *);
typedef int (*two_fn)(void *, void *);

/* Each stores the time of n calls, in nanoseconds, and returns the first error. */
int cloop_launch(launch_fn launch, void *f, void *stream, void **params, uint64_t n, uint64_t *ns) {
	uint64_t start = now();
	for (uint64_t i = 0; i < n; i++) {
		int r = launch(f, 1, 1, 1, 1, 1, 1, 0, stream, params, 0);
		if (r) return r;
	}
	*ns = now() - start;
	return 0;
}

int cloop_two(two_fn fn, void *a, void *b, uint64_t n, uint64_t *ns) {
	uint64_t start = now();
	for (uint64_t i = 0; i < n; i++) {
		int r = fn(a, b);
		if (r) return r;
	}
	*ns = now() - start;
	return 0;
}

/* A function that returns at once: what is left is the cost of the call. */
int cloop_nothing(void *a, void *b) {
	(void)a;
	(void)b;
	return 0;
}
