// An NCCL without a GPU, whose communicators have states but no other ranks. It models what NCCL does beside the caller: a
// communicator that does not block is made, split and finalized by a thread of the library's own, which writes the new
// communicator when the call has long returned; one that was split off by another with splitShare has its abort flag; and an
// abort sets that flag, waits for the thread, and gives the communicator back. It notes what NCCL would crash of.
//
// VERSION is what ncclGetVersion tells; functions that came later are left out. DEVICE is what a thread has for a device at
// first. A test sets, by fake_set:
//
//	a function's name  what it returns, instead of doing anything; with -n for the n-th call from now on
//	polls              how often a communicator says that it is in progress, when it no longer is
//	stuck init         what is to be done does not come to an end, until the abort flag is set; likewise stuck split, stuck
//	                   group, stuck suspend and stuck finalize
//	stuck destroy      destroying or aborting does not return, whatever is set
//	failing split      the result of splits, when they are done; likewise failing suspend
//	blocking           what the settings say of new communicators, plus 1, whatever the caller says
//	state              what communicators that have been made say of themselves
//	split rank, split count  of what is split off, plus 1
#include <pthread.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#ifndef VERSION
#define VERSION 22803
#endif
#ifndef DEVICE
#define DEVICE 0
#endif

enum { SUCCESS, CUDA_ERROR, SYSTEM_ERROR, INTERNAL, INVALID_ARGUMENT, INVALID_USAGE, REMOTE, IN_PROGRESS };
enum { UNDEFINED = -2147483648 };
enum { SETTINGS = 64, COMMS = 4096, OPERATORS = 1024 };

#define SOMETIMES __attribute__((unused)) // by a release

typedef struct { char internal[128]; } id;

typedef struct {
	uint64_t size;
	uint32_t magic, version;
	int blocking;
#if VERSION >= 21701
	int cga, minCTAs, maxCTAs;
	const char *net;
#endif
#if VERSION >= 21801
	int splitShare, trafficClass;
#endif
#if VERSION >= 22703
	const char *name;
	int more[4];
#endif
#if VERSION >= 22803
	int evenMore[2];
#endif
#if VERSION >= 22902
	int graphs[2];
#endif
#if VERSION >= 23003
	int peers[2];
#endif
} config;

static pthread_mutex_t mu = PTHREAD_MUTEX_INITIALIZER;
static struct { char name[64]; int value, after; } settings[SETTINGS];
static int numSettings, live;
static char trace[1 << 16], faults[1 << 12];
static size_t traced, faulted;

int fake_set(const char *name, int value)
{
	char base[64];
	snprintf(base, sizeof base, "%s", name);
	char *nth = strchr(base, '-');
	if (nth) *nth++ = 0;
	pthread_mutex_lock(&mu);
	int i = 0;
	while (i < numSettings && strcmp(settings[i].name, base)) i++;
	if (i == numSettings && i < SETTINGS) strcpy(settings[numSettings++].name, base);
	if (i < SETTINGS) {
		settings[i].value = value;
		settings[i].after = nth ? atoi(nth) : 0;
	}
	pthread_mutex_unlock(&mu);
	return i == SETTINGS;
}

// get returns a setting. The caller holds mu, as it does for what follows.
static int get(const char *name)
{
	for (int i = 0; i < numSettings; i++)
		if (!strcmp(settings[i].name, name)) return settings[i].value;
	return 0;
}

static void note(char *to, size_t *used, size_t room, const char *format, va_list args)
{
	if (room - *used > 512) *used += vsnprintf(to + *used, 512, format, args);
}

static void bad(const char *format, ...)
{
	va_list args;
	va_start(args, format);
	note(faults, &faulted, sizeof faults, format, args);
	va_end(args);
}

static void say(const char *format, ...)
{
	va_list args;
	va_start(args, format);
	note(trace, &traced, sizeof trace, format, args);
	va_end(args);
}

static int copy(char *out, size_t room, const char *from, size_t *n)
{
	pthread_mutex_lock(&mu);
	size_t size = *n < room ? *n : room;
	memcpy(out, from, size);
	*n = 0;
	pthread_mutex_unlock(&mu);
	return (int)size;
}

// fake_trace copies the calls since it was last called, one a line, and fake_faults what was wrong with them.
int fake_trace(char *out, size_t room) { return copy(out, room, trace, &traced); }
int fake_faults(char *out, size_t room) { return copy(out, room, faults, &faulted); }

// fake_live tells how many communicators, operators, registrations and allocations have not been given back.
int fake_live(void) { return __atomic_load_n(&live, __ATOMIC_SEQ_CST); }

// The calling thread's device, 0 for none, and how many groups it is in.
static __thread int device = DEVICE, depth, groupError;
int fake_bind(int to) { device = to; return 0; }
int fake_device(void) { return device; }
int fake_depth(void) { return depth; }

typedef struct { int set, refs; } flag;

typedef struct {
	int number, blocking, share, rank, count;
	flag *flag, *child; // child: of what it is being split into
	int making, state, polls, finalized, dead, inside, ending;
	int suspended; // as far as has been asked
	int held;    // operators and registrations, which go with it
	int working; // a thread is
	pthread_t thread;
} comm;

static comm comms[COMMS];
static int numComms;
static __thread comm *grouped;

static int blocked(const char *what, comm *c)
{
	pthread_mutex_lock(&mu);
	int r = get(what) && !(c->flag->set || (c->child && c->child->set));
	pthread_mutex_unlock(&mu);
	return r;
}

// enter notes a call, and returns what it is to return.
static int enter(const char *call, const char *format, ...)
{
	pthread_mutex_lock(&mu);
	say("%s(", call);
	va_list args;
	va_start(args, format);
	note(trace, &traced, sizeof trace, format, args);
	va_end(args);
	say(")\n");
	int r = 0;
	for (int i = 0; i < numSettings; i++)
		if (!strcmp(settings[i].name, call) && settings[i].value && (settings[i].after == 0 || --settings[i].after == 0)) r = settings[i].value;
	pthread_mutex_unlock(&mu);
	return r;
}

#define ENTER(...) do { int r = enter(__func__, __VA_ARGS__); if (r) return r; } while (0)

// use begins a call that takes a communicator, which leave ends. Only one may at a time.
static int use(const char *call, comm *c)
{
	pthread_mutex_lock(&mu);
	int r = c < comms || c >= comms + numComms || c->dead;
	if (r)
		bad("%s takes what is no communicator, or no longer\n", call);
	else if (c->inside++)
		bad("%s takes c%d, and another call is in it\n", call, c->number);
	pthread_mutex_unlock(&mu);
	return r;
}

static int leave(comm *c, int result)
{
	pthread_mutex_lock(&mu);
	c->inside--;
	pthread_mutex_unlock(&mu);
	return result;
}

static int nodevice(const char *call)
{
	if (device) return 0;
	pthread_mutex_lock(&mu);
	bad("%s on a thread without the device\n", call);
	pthread_mutex_unlock(&mu);
	return CUDA_ERROR;
}

static comm *newComm(const config *x, int rank, int count, flag *f)
{
	if (numComms == COMMS) abort();
	comm *c = &comms[numComms++];
	c->number = numComms;
	c->blocking = x && x->blocking != UNDEFINED ? x->blocking : 1;
	if (get("blocking")) c->blocking = get("blocking") - 1;
#if VERSION >= 21801
	c->share = x && x->splitShare == 1;
#endif
	c->rank = rank, c->count = count;
	c->flag = f ? f : calloc(1, sizeof *f);
	c->flag->refs++;
	live++;
	return c;
}

// awake notes that a communicator is suspended, which the call does not bear.
static void awake(const char *call, comm *c)
{
	pthread_mutex_lock(&mu);
	if (c->suspended) bad("%s takes c%d, which is suspended\n", call, c->number);
	pthread_mutex_unlock(&mu);
}

// A job is what a thread of the library's own does for a communicator.
typedef struct {
	comm *c, *child;
	comm **out;
	const char *stuck, *result;
} job;

static int work(job *j)
{
	if (!j->c->blocking) usleep(300);
	while (blocked(j->stuck, j->c)) usleep(100);
	pthread_mutex_lock(&mu);
	int r = j->c->flag->set || (j->c->child && j->c->child->set) ? INTERNAL : j->result ? get(j->result) : 0;
	if (j->out) __atomic_store_n(j->out, j->child, __ATOMIC_RELEASE); // whether it failed or not
	if (!r) j->c->child = NULL; // else the address stays
	if (!j->c->blocking) j->c->polls = get("polls");
	pthread_mutex_unlock(&mu);
	return r;
}

static void *thread(void *arg)
{
	job *j = arg;
	comm *c = j->c;
	int r = work(j);
	free(j);
	__atomic_store_n(&c->state, r, __ATOMIC_RELEASE);
	return NULL;
}

static int begin(comm *c, comm *child, comm **out, const char *stuck, const char *result)
{
	job j = {c, child, out, stuck, result};
	if (c->blocking) return work(&j);
	if (c->working) pthread_join(c->thread, NULL);
	job *p = malloc(sizeof j);
	*p = j;
	__atomic_store_n(&c->state, IN_PROGRESS, __ATOMIC_RELEASE);
	c->working = 1;
	if (pthread_create(&c->thread, NULL, thread, p)) abort();
	return IN_PROGRESS;
}

static SOMETIMES int progress(comm *c)
{
	int r = __atomic_load_n(&c->state, __ATOMIC_ACQUIRE);
	if (r) return r;
	pthread_mutex_lock(&mu);
	if (c->polls > 0) c->polls--, r = IN_PROGRESS;
	else if (c->number) r = get("state");
	pthread_mutex_unlock(&mu);
	return r;
}

static int unready(const char *call, comm *c)
{
	if (__atomic_load_n(&c->state, __ATOMIC_ACQUIRE) != IN_PROGRESS && c->polls == 0) return 0;
	pthread_mutex_lock(&mu);
	bad("%s takes c%d, which is in progress\n", call, c->number);
	pthread_mutex_unlock(&mu);
	return INVALID_ARGUMENT;
}

int ncclGetVersion(int *version) { *version = VERSION; return SUCCESS; }
#if VERSION >= 21304
static const char *last = "as the fake was told";
const char *ncclGetLastError(comm *c) { return last; }
#endif

int ncclGetUniqueId(id *out)
{
	ENTER("");
	for (int i = 0; i < 128; i++) out->internal[i] = (char)(3 * i + 1);
	return SUCCESS;
}

static SOMETIMES const char *settingsOf(const config *x)
{
	static __thread char s[200];
	int n = 0;
	if (!x || x->magic != 0xcafebeef || x->size > sizeof *x) return "no settings";
	n += sprintf(s + n, "blocking %d", x->blocking);
#if VERSION >= 21801
	n += sprintf(s + n, " share %d", x->splitShare);
#endif
#if VERSION >= 22703
	if (x->name) sprintf(s + n, " name %.20s", x->name);
#endif
	return s;
}

static int init(const char *call, comm **out, int count, id in, int rank, const config *x)
{
	id want;
	for (int i = 0; i < 128; i++) want.internal[i] = (char)(3 * i + 1);
	if (nodevice(call)) return CUDA_ERROR;
	if (memcmp(&in, &want, sizeof in) || rank >= count) return INVALID_ARGUMENT;
	pthread_mutex_lock(&mu);
	comm *c = *out = newComm(x, rank, count, NULL);
	pthread_mutex_unlock(&mu);
	return begin(c, NULL, NULL, "stuck init", NULL);
}

int ncclCommInitRank(comm **out, int count, id in, int rank)
{
	ENTER("rank %d of %d", rank, count);
	return init(__func__, out, count, in, rank, NULL);
}

#if VERSION >= 21403
int ncclCommInitRankConfig(comm **out, int count, id in, int rank, config *x)
{
	ENTER("rank %d of %d, %s", rank, count, settingsOf(x));
	return init(__func__, out, count, in, rank, x);
}
#endif

#if VERSION >= 22304
int ncclCommInitRankScalable(comm **out, int count, int rank, int ids, id *in, config *x)
{
	ENTER("rank %d of %d, %d ids, %s", rank, count, ids, settingsOf(x));
	return init(__func__, out, count, in[0], rank, x);
}
#endif

#if VERSION >= 21801
static int derive(const char *call, comm *c, comm **out, int share, int color, int rank, int count, const config *x)
{
	if (use(call, c)) return INVALID_ARGUMENT;
	if (nodevice(call)) return leave(c, CUDA_ERROR);
	int state = __atomic_load_n(&c->state, __ATOMIC_ACQUIRE);
	if (unready(call, c)) return leave(c, INVALID_ARGUMENT);
	if (state) return leave(c, state);
	*out = NULL;
	comm *child = NULL;
	if (color >= 0) {
		pthread_mutex_lock(&mu);
		child = newComm(x, rank, count, share ? c->flag : NULL);
		c->child = share ? NULL : child->flag;
		pthread_mutex_unlock(&mu);
	}
	return leave(c, begin(c, child, out, "stuck split", "failing split"));
}

int ncclCommSplit(comm *c, int color, int key, comm **out, config *x)
{
	ENTER("c%d, %d, %d, %s", c->number, color, key, settingsOf(x));
	pthread_mutex_lock(&mu);
	int rank = get("split rank"), count = get("split count");
	pthread_mutex_unlock(&mu);
	return derive(__func__, c, out, c->share, color, rank ? rank - 1 : c->rank, count ? count - 1 : c->count, x);
}
#endif

#if VERSION >= 22703
static int less(const void *a, const void *b) { return *(const int *)a - *(const int *)b; }

int ncclCommShrink(comm *c, int *out, int n, comm **new, config *x, int flags)
{
	char list[100] = "";
	for (int i = 0; i < n && i < 8; i++) sprintf(list + strlen(list), " %d", out[i]);
	ENTER("c%d,%s, %s, %d", c->number, list, settingsOf(x), flags);
	if (n < 1) return INVALID_ARGUMENT;
	qsort(out, n, sizeof *out, less);
	int rank = c->rank;
	for (int i = 0; i < n; i++) rank -= out[i] < c->rank;
	return derive(__func__, c, new, 0, 0, rank, c->count - n, x);
}
#endif

#if VERSION >= 20402
int ncclCommGetAsyncError(comm *c, int *state)
{
	pthread_mutex_lock(&mu);
	int r = c < comms || c >= comms + numComms || c->dead || c->ending, n = get(__func__);
	if (r) bad("%s takes what is no communicator, or no longer\n", __func__);
	pthread_mutex_unlock(&mu);
	if (r) return INVALID_ARGUMENT;
	if (n) return n;
	*state = progress(c);
	return SUCCESS;
}
#endif

// give gives a communicator back. As with NCCL the thread may have another device afterwards.
static int give(const char *call, comm *c, int abort)
{
	int was = device;
	if (nodevice(call) || use(call, c)) return INVALID_ARGUMENT;
	if (!abort) awake(call, c);
	pthread_mutex_lock(&mu);
	c->ending = 1;
	if (abort) {
		c->flag->set = 1;
		if (c->child) {
			if (c->child->refs == 0) bad("%s of c%d sets a flag that is gone\n", call, c->number);
			c->child->set = 1;
		}
	}
	pthread_mutex_unlock(&mu);
	if (c->working) pthread_join(c->thread, NULL);
	c->working = 0;
	for (;;) {
		pthread_mutex_lock(&mu);
		int stuck = get("stuck destroy");
		pthread_mutex_unlock(&mu);
		if (!stuck) break;
		usleep(100);
	}
	pthread_mutex_lock(&mu);
	c->dead = 1;
	c->flag->refs--;
	live -= 1 + c->held;
	pthread_mutex_unlock(&mu);
	device = was + 1;
	return leave(c, SUCCESS);
}

#if VERSION >= 20402
int ncclCommAbort(comm *c) { ENTER("c%d", c->number); return give(__func__, c, 1); }
#endif
int ncclCommDestroy(comm *c) { ENTER("c%d", c->number); return give(__func__, c, 0); }

#if VERSION >= 21403
int ncclCommFinalize(comm *c)
{
	ENTER("c%d", c->number);
	if (nodevice(__func__) || use(__func__, c)) return INVALID_ARGUMENT;
	if (unready(__func__, c) || c->finalized) return leave(c, INVALID_ARGUMENT);
	c->finalized = 1;
	return leave(c, begin(c, NULL, NULL, "stuck finalize", NULL));
}
#endif

static int ask(const char *call, comm *c, int *out, int value)
{
	if (use(call, c)) return INVALID_ARGUMENT;
	if (unready(call, c)) return leave(c, INVALID_ARGUMENT);
	*out = value;
	return leave(c, SUCCESS);
}

int ncclCommCount(comm *c, int *out) { ENTER("c%d", c->number); return ask(__func__, c, out, c->count); }
int ncclCommUserRank(comm *c, int *out) { ENTER("c%d", c->number); return ask(__func__, c, out, c->rank); }

int ncclGroupStart(void) { ENTER(""); depth++; return SUCCESS; }

int ncclGroupEnd(void)
{
	int told = enter(__func__, ""), r = groupError;
	comm *c = grouped;
	if (depth == 0) {
		pthread_mutex_lock(&mu);
		bad("%s without a group\n", __func__);
		pthread_mutex_unlock(&mu);
		return INVALID_USAGE;
	}
	if (--depth) return SUCCESS;
	groupError = 0, grouped = NULL;
	if (!c || r) return told ? told : r;
	if (use(__func__, c)) return INVALID_ARGUMENT;
	awake(__func__, c);
	r = told ? told : begin(c, NULL, NULL, "stuck group", NULL);
	return leave(c, r);
}

static int operate(const char *call, comm *c, int told)
{
	int r = told;
	pthread_mutex_lock(&mu);
	if (!depth) bad("%s outside of a group\n", call);
	if (grouped && grouped != c) bad("%s is of another communicator than its group\n", call);
	pthread_mutex_unlock(&mu);
	grouped = c;
	if (!r && use(call, c)) return INVALID_ARGUMENT;
	if (!told) leave(c, 0);
	if (r) groupError = r;
	return r;
}

#define OP(...) return operate(__func__, c, enter(__func__, __VA_ARGS__))
typedef long p;

int ncclAllReduce(p src, p dst, size_t n, int t, int op, comm *c, p s) { OP("%#lx, %#lx, %zu, %d, %d, c%d, %#lx", src, dst, n, t, op, c->number, s); }
int ncclReduceScatter(p src, p dst, size_t n, int t, int op, comm *c, p s) { OP("%#lx, %#lx, %zu, %d, %d, c%d, %#lx", src, dst, n, t, op, c->number, s); }
int ncclReduce(p src, p dst, size_t n, int t, int op, int root, comm *c, p s) { OP("%#lx, %#lx, %zu, %d, %d, %d, c%d, %#lx", src, dst, n, t, op, root, c->number, s); }
int ncclBroadcast(p src, p dst, size_t n, int t, int root, comm *c, p s) { OP("%#lx, %#lx, %zu, %d, %d, c%d, %#lx", src, dst, n, t, root, c->number, s); }
int ncclAllGather(p src, p dst, size_t n, int t, comm *c, p s) { OP("%#lx, %#lx, %zu, %d, c%d, %#lx", src, dst, n, t, c->number, s); }
#if VERSION >= 2703
int ncclSend(p src, size_t n, int t, int peer, comm *c, p s) { OP("%#lx, %zu, %d, %d, c%d, %#lx", src, n, t, peer, c->number, s); }
int ncclRecv(p dst, size_t n, int t, int peer, comm *c, p s) { OP("%#lx, %zu, %d, %d, c%d, %#lx", dst, n, t, peer, c->number, s); }
#endif
#if VERSION >= 22803
int ncclAlltoAll(p src, p dst, size_t n, int t, comm *c, p s) { OP("%#lx, %#lx, %zu, %d, c%d, %#lx", src, dst, n, t, c->number, s); }
int ncclGather(p src, p dst, size_t n, int t, int root, comm *c, p s) { OP("%#lx, %#lx, %zu, %d, %d, c%d, %#lx", src, dst, n, t, root, c->number, s); }
int ncclScatter(p src, p dst, size_t n, int t, int root, comm *c, p s) { OP("%#lx, %#lx, %zu, %d, %d, c%d, %#lx", src, dst, n, t, root, c->number, s); }
#endif

static SOMETIMES int operators[OPERATORS], numOperators, handles;

#if VERSION >= 21104
int ncclRedOpCreatePreMulSum(int *op, const unsigned char *scalar, int t, int residence, comm *c)
{
	ENTER("%02x%02x, %d, %d, c%d", scalar[0], scalar[1], t, residence, c->number);
	pthread_mutex_lock(&mu);
	int i = 0;
	while (i < numOperators && operators[i]) i++;
	if (i == numOperators) numOperators++;
	operators[i] = 1, c->held++, live++;
	*op = 5 + i;
	pthread_mutex_unlock(&mu);
	return SUCCESS;
}

int ncclRedOpDestroy(int op, comm *c)
{
	ENTER("%d, c%d", op, c->number);
	pthread_mutex_lock(&mu);
	if (depth) bad("%s within the group\n", __func__);
	int known = op >= 5 && op < 5 + numOperators && operators[op - 5];
	if (known) operators[op - 5] = 0, c->held--, live--;
	pthread_mutex_unlock(&mu);
	return known ? SUCCESS : INVALID_ARGUMENT;
}
#endif

static SOMETIMES int hand(const char *call, comm *c, uintptr_t *handle)
{
	if (nodevice(call) || use(call, c)) return INVALID_ARGUMENT;
	awake(call, c);
	pthread_mutex_lock(&mu);
	*handle = 0x100 + ++handles, c->held++, live++;
	pthread_mutex_unlock(&mu);
	return leave(c, SUCCESS);
}

static SOMETIMES int back(const char *call, comm *c)
{
	if (nodevice(call) || use(call, c)) return INVALID_ARGUMENT;
	awake(call, c);
	pthread_mutex_lock(&mu);
	c->held--, live--;
	pthread_mutex_unlock(&mu);
	return leave(c, SUCCESS);
}

#if VERSION >= 21901
int ncclCommRegister(comm *c, p at, size_t n, uintptr_t *handle) { ENTER("c%d, %#lx, %zu", c->number, at, n); return hand(__func__, c, handle); }
int ncclCommDeregister(comm *c, uintptr_t handle) { ENTER("c%d, %#lx", c->number, (long)handle); return back(__func__, c); }
int ncclMemAlloc(uintptr_t *at, size_t n)
{
	ENTER("%zu", n);
	if (nodevice(__func__)) return CUDA_ERROR;
	if (n >> 40) {
		last = "Cuda failure 2 'out of memory'";
		return CUDA_ERROR;
	}
	*at = 0x70000000;
	__atomic_add_fetch(&live, 1, __ATOMIC_SEQ_CST);
	return SUCCESS;
}
int ncclMemFree(uintptr_t at) { ENTER("%#lx", (long)at); __atomic_sub_fetch(&live, 1, __ATOMIC_SEQ_CST); return SUCCESS; }
#endif
#if VERSION >= 22703
int ncclCommWindowRegister(comm *c, p at, size_t n, uintptr_t *window, int flags) { ENTER("c%d, %#lx, %zu, %d", c->number, at, n, flags); return hand(__func__, c, window); }
int ncclCommWindowDeregister(comm *c, uintptr_t window) { ENTER("c%d, %#lx", c->number, (long)window); return back(__func__, c); }
#endif

#if VERSION >= 22907
// rest suspends or resumes. As with NCCL what shares its memory is not, and the one call is of no use after itself.
static int rest(const char *call, comm *c, int suspend)
{
	if (nodevice(call) || use(call, c)) return INVALID_ARGUMENT;
	if (unready(call, c)) return leave(c, INVALID_ARGUMENT);
	if (c->flag->refs > 1) return leave(c, INVALID_USAGE);
	pthread_mutex_lock(&mu);
	if (c->suspended == suspend) bad("%s of c%d again\n", call, c->number);
	c->suspended = suspend;
	pthread_mutex_unlock(&mu);
	return leave(c, begin(c, NULL, NULL, "stuck suspend", "failing suspend"));
}

int ncclCommSuspend(comm *c, int flags) { ENTER("c%d, %d", c->number, flags); return rest(__func__, c, 1); }
int ncclCommResume(comm *c) { ENTER("c%d", c->number); return rest(__func__, c, 0); }

int ncclCommMemStats(comm *c, int what, uint64_t *value)
{
	ENTER("c%d, %d", c->number, what);
	if (use(__func__, c)) return INVALID_ARGUMENT;
	if (unready(__func__, c)) return leave(c, INVALID_ARGUMENT);
	uint64_t values[] = {1 << 20, c->suspended, 1 << 10, (1 << 20) + (1 << 10)};
	if (what < 0 || what > 3) return leave(c, INVALID_ARGUMENT);
	*value = values[what];
	return leave(c, SUCCESS);
}
#endif
