/* The C side of gpubench: the same calls in a loop as a C program would write it. Build it with
 *   cc -O2 -fPIC -shared -o libcloop.so cloop.c -lpthread
 * and name the file in -c. It gets the driver's functions as addresses and needs no header. */
#include <pthread.h>
#include <stdatomic.h>
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

/* A function that returns at once, to measure the cost of the call alone. */
int cloop_nothing(void *a, void *b) {
	(void)a;
	(void)b;
	return 0;
}

/* A thread that parks until it is woken for the next time. */
struct sleeper {
	pthread_mutex_t mu;
	pthread_cond_t news;
	uint64_t turn, end; /* under mu */
	_Atomic uint64_t ran; /* when it ran, or 0 */
};

static void *sleep_and_tell(void *arg) {
	struct sleeper *s = arg;
	for (uint64_t turn = 1; turn <= s->end; turn++) {
		pthread_mutex_lock(&s->mu);
		while (s->turn < turn) pthread_cond_wait(&s->news, &s->mu);
		pthread_mutex_unlock(&s->mu);
		atomic_store(&s->ran, now());
	}
	return 0;
}

/* Wakes a parked thread n times, and goes on computing. Stores for each wake-up the nanoseconds until
 * the thread ran, and the nanoseconds of the call that woke it. */
int cloop_wake(uint64_t n, uint64_t *woken, uint64_t *call) {
	struct sleeper s = {PTHREAD_MUTEX_INITIALIZER, PTHREAD_COND_INITIALIZER, 0, n, 0};
	pthread_t t;
	int r = pthread_create(&t, 0, sleep_and_tell, &s);
	if (r) return r;
	for (uint64_t i = 0; i < n; i++) {
		for (uint64_t start = now(); now() - start < 200000;) { /* until it has parked */
		}
		atomic_store(&s.ran, 0);
		uint64_t start = now(), ran;
		pthread_mutex_lock(&s.mu);
		s.turn++;
		pthread_mutex_unlock(&s.mu);
		pthread_cond_signal(&s.news);
		call[i] = now() - start;
		while (!(ran = atomic_load(&s.ran))) {
		}
		woken[i] = ran > start ? ran - start : 0;
	}
	pthread_join(t, 0);
	return 0;
}
