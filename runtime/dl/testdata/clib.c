/* What libraries do with the C library, for tests of the threads on which Go calls them. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <locale.h>
#include <netdb.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include <wchar.h>

#define API __attribute__((visibility("default")))

/* errno is the thread's own. */
API int set_errno(int v) { errno = v; return 0; }
API int get_errno(void) { return errno; }
API int fail(void) { errno = 0; close(-1); return errno; }

/* Thread-local variables, initialized and not, and thread-specific values with a destructor. */
static __thread long counter;
static __thread long initialized = 42;
API long count(long n) { return counter += n; }
API long init_count(long n) { return initialized += n; }

static pthread_key_t key;
static int ended;
static void destroy(void *p) { __atomic_add_fetch(&ended, (int)(intptr_t)p, __ATOMIC_SEQ_CST); }
__attribute__((constructor)) static void make_key(void) { pthread_key_create(&key, destroy); }
API int set_specific(long v) { return pthread_setspecific(key, (void *)v); }
API long get_specific(void) { return (long)pthread_getspecific(key); }
API int get_ended(void) { return __atomic_load_n(&ended, __ATOMIC_SEQ_CST); }
API unsigned long self(void) { return pthread_self(); }

/* Mutexes that know their owner. kind is 0 for a recursive one, 1 for one that checks. */
static pthread_mutex_t mutexes[2];
__attribute__((constructor)) static void make_mutexes(void) {
	pthread_mutexattr_t a;
	pthread_mutexattr_init(&a);
	pthread_mutexattr_settype(&a, PTHREAD_MUTEX_RECURSIVE);
	pthread_mutex_init(&mutexes[0], &a);
	pthread_mutexattr_settype(&a, PTHREAD_MUTEX_ERRORCHECK);
	pthread_mutex_init(&mutexes[1], &a);
}
API int lock(int kind) { return pthread_mutex_lock(&mutexes[kind]); }
API int trylock(int kind) { return pthread_mutex_trylock(&mutexes[kind]); }
API int unlock(int kind) { return pthread_mutex_unlock(&mutexes[kind]); }

/* A mutex that processes share, and of which the next is told that its owner has ended without unlocking it. */
static pthread_mutex_t *robust;
API int robust_init(void) {
	pthread_mutexattr_t a;
	if (!robust) robust = mmap(NULL, sizeof *robust, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (robust == MAP_FAILED) return errno;
	pthread_mutexattr_init(&a);
	pthread_mutexattr_setpshared(&a, PTHREAD_PROCESS_SHARED);
	pthread_mutexattr_setrobust(&a, PTHREAD_MUTEX_ROBUST);
	return pthread_mutex_init(robust, &a);
}
API int robust_lock(void) { /* for a minute */
	struct timespec end;
	clock_gettime(CLOCK_REALTIME, &end);
	end.tv_sec += 60;
	return pthread_mutex_timedlock(robust, &end);
}
API int robust_consistent(void) { return pthread_mutex_consistent(robust); }
API int robust_unlock(void) { return pthread_mutex_unlock(robust); }
static void *robust_work(void *arg) { return (void *)(long)robust_lock(); }
API int robust_thread(void) {
	pthread_t t;
	void *r;
	if (pthread_create(&t, NULL, robust_work, NULL) || pthread_join(t, &r)) return -1;
	return (int)(long)r;
}
API int robust_fork(void) {
	pid_t pid = fork();
	if (pid == 0) _exit(robust_lock());
	int status;
	while (waitpid(pid, &status, 0) < 0)
		if (errno != EINTR) return -1;
	return WIFEXITED(status) ? WEXITSTATUS(status) : -2;
}

/* Threads of the library's own. */
static void *work(void *arg) {
	long n = (long)arg, sum = 0;
	for (long i = 0; i < 100; i++) {
		char *p = malloc(100 + i * n);
		memset(p, (int)i, 100 + i * n);
		sum += p[50];
		free(p);
	}
	counter = sum;
	return (void *)counter;
}
API long threads(int n) {
	pthread_t t[64];
	long sum = 0;
	for (int i = 0; i < n && i < 64; i++)
		if (pthread_create(&t[i], NULL, work, (void *)(long)(i + 1))) return -1;
	for (int i = 0; i < n && i < 64; i++) {
		void *r;
		if (pthread_join(t[i], &r)) return -2;
		sum += (long)r;
	}
	return sum;
}

/* A deep stack: n frames of a KiB, each of which is written and checked. */
API long deep(long n) {
	volatile char buf[1024];
	memset((char *)buf, (int)(n & 63), sizeof buf);
	long below = n > 1 ? deep(n - 1) : 0;
	return buf[512] == (n & 63) ? below + 1 : -1000000;
}
API long deep_call(long n, long (*fn)(long), long arg) {
	volatile char buf[1024];
	memset((char *)buf, (int)(n & 63), sizeof buf);
	long r = n > 1 ? deep_call(n - 1, fn, arg) : fn(arg);
	return buf[512] == (n & 63) ? r : -1000000;
}

/* Another library, which has a constructor and thread-local variables. */
API long open_inner(const char *path) {
	void *h = dlopen(path, RTLD_NOW | RTLD_LOCAL);
	if (!h) return -1;
	long (*fn)(void) = (long (*)(void))dlsym(h, "inner");
	return fn ? fn() : -2;
}

/* Locale: 3 bytes of UTF-8 are one character in a UTF-8 locale. */
API int characters(const char *s, int utf8) {
	locale_t l = newlocale(LC_ALL_MASK, utf8 ? "C.UTF-8" : "C", (locale_t)0);
	if (!l) return -1;
	locale_t old = uselocale(l);
	wchar_t w;
	mbstate_t st;
	memset(&st, 0, sizeof st);
	int n = (int)mbrtowc(&w, s, strlen(s), &st);
	uselocale(old);
	freelocale(l);
	return n;
}
API int decimal(void) { setlocale(LC_ALL, ""); setlocale(LC_ALL, "C"); return (int)(strtod("1234.5", NULL) * 2); }

API int resolve(const char *name) {
	struct addrinfo hints, *r;
	memset(&hints, 0, sizeof hints);
	hints.ai_socktype = SOCK_STREAM;
	int err = getaddrinfo(name, "80", &hints, &r);
	if (!err) freeaddrinfo(r);
	return err;
}

/* Processes. */
API int run_fork(int code) {
	pid_t pid = fork();
	if (pid == 0) _exit(errno == 0 && pthread_self() ? code : 99);
	int status;
	while (waitpid(pid, &status, 0) < 0)
		if (errno != EINTR) return -1;
	return WIFEXITED(status) ? WEXITSTATUS(status) : -2;
}

/* Sets the user to what it is. */
API int set_user(void) { errno = 0; return setuid(getuid()) == 0 ? 0 : errno; }

API int cpu(void) { return sched_getcpu(); }
API const char *env(const char *name) { return getenv(name); }
API int blocked(int sig) { sigset_t s; pthread_sigmask(SIG_BLOCK, NULL, &s); return sigismember(&s, sig); }

/* Calls of Go, on this thread, or on a thread of the library's. */
API long call(long (*fn)(long), long arg) { return fn(arg); }
struct job { long (*fn)(long); long arg, result; };
static void *run(void *p) {
	struct job *j = p;
	for (int i = 0; i < 3; i++) j->result = j->fn(j->arg);
	return NULL;
}
API long call_on_thread(long (*fn)(long), long arg) {
	struct job j = {fn, arg, -1};
	pthread_t t;
	if (pthread_create(&t, NULL, run, &j)) return -2;
	pthread_join(t, NULL);
	return j.result;
}

/* Gives back to the system what memory the C library has and nobody uses, where it can. */
API void trim(void) {
	int (*malloc_trim)(size_t) = (int (*)(size_t))dlsym(RTLD_DEFAULT, "malloc_trim");
	if (malloc_trim) malloc_trim(0);
}

/* A mixture of the above for one call of many. */
static long shared;
API long mixture(long n) {
	long before = counter;
	char *p = malloc(64 + n % 4000);
	memset(p, 1, 64 + n % 4000);
	errno = (int)(n % 100);
	if (pthread_mutex_lock(&mutexes[0])) return -1;
	if (pthread_mutex_lock(&mutexes[0])) return -2;
	shared++;
	if (pthread_mutex_unlock(&mutexes[0]) || pthread_mutex_unlock(&mutexes[0])) return -3;
	if (n % 64 == 0 && deep(100) != 100) return -4;
	free(p);
	if (errno != n % 100) return -5;
	if (counter != before) return -6;
	return n;
}
