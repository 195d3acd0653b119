/* A library that another one opens. */
#include <pthread.h>

static int constructed;
static __thread long local = 7;
static __thread char large[2000];
__attribute__((constructor)) static void construct(void) { constructed = 1000; }

static void *other(void *arg) { (void)arg; return (void *)(local++ + large[1999]); }

__attribute__((visibility("default"))) long inner(void) {
	pthread_t t;
	void *r = 0;
	local++;
	if (pthread_create(&t, 0, other, 0)) return -3;
	pthread_join(t, &r);
	return constructed + local * 100 + (long)r;
}
