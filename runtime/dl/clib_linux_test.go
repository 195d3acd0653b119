//go:build (amd64 || (arm64 && (!puregpu_static || cgo))) && !nogpu

package dl

import (
	"fmt"
	"math"
	"os"
	"os/exec"
	"os/signal"
	"runtime"
	"runtime/debug"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"
	"unsafe"
)

// cLibrary lists the functions of testdata/clib.c and their signatures.
var cLibrary = []Symbol{
	{Name: "set_errno", Sig: "w"}, {Name: "get_errno"}, {Name: "fail"},
	{Name: "count", Sig: "w"}, {Name: "init_count", Sig: "w"},
	{Name: "set_specific", Sig: "w"}, {Name: "get_specific"}, {Name: "get_ended"}, {Name: "self"},
	{Name: "lock", Sig: "w"}, {Name: "trylock", Sig: "w"}, {Name: "unlock", Sig: "w"},
	{Name: "robust_init"}, {Name: "robust_lock"}, {Name: "robust_consistent"}, {Name: "robust_unlock"}, {Name: "robust_thread"}, {Name: "robust_fork"},
	{Name: "threads", Sig: "w"}, {Name: "deep", Sig: "w"}, {Name: "deep_call", Sig: "www"},
	{Name: "open_inner", Sig: "w"}, {Name: "characters", Sig: "ww"}, {Name: "decimal"}, {Name: "resolve", Sig: "w"},
	{Name: "run_fork", Sig: "w"}, {Name: "set_user"}, {Name: "cpu"}, {Name: "env", Sig: "w"}, {Name: "blocked", Sig: "w"},
	{Name: "call", Sig: "ww"}, {Name: "call_on_thread", Sig: "ww"}, {Name: "mixture", Sig: "w"}, {Name: "trim"},
}

// A cLib calls functions of testdata/clib.c by their names.
type cLib struct {
	t testing.TB
	Library
}

func openCLib(t testing.TB) *cLib {
	t.Helper()
	src, err := os.ReadFile("testdata/clib.c")
	if err != nil {
		t.Fatal(err)
	}
	l := &cLib{t: t}
	spec := &Spec{Name: "C library's user", Package: "clib", Sets: []Set{{Name: "core"}}, Symbols: cLibrary}
	path := build(t, "clib.so", string(src), "-fstack-protector-all", "-lpthread", "-ldl")
	if err := l.Open(spec, nil, Options{Path: path}); err != nil {
		t.Fatal(err)
	}
	return l
}

//go:uintptrescapes
func (l *cLib) call(name string, args ...uintptr) int {
	l.t.Helper()
	for i, sym := range cLibrary {
		if sym.Name == name {
			r, err := l.Slow(i, args...)
			if err != nil {
				l.t.Error(err)
			}
			return int(r)
		}
	}
	l.t.Errorf("no function %s", name)
	return 0
}

func (l *cLib) text(s string) uintptr {
	p, err := CString(s)
	if err != nil {
		l.t.Fatal(err)
	}
	texts.Store(p, nil) // never freed: the address is passed as a number
	return uintptr(unsafe.Pointer(p))
}

var texts sync.Map

// want calls a function that returns an int, and reports a result other than want.
func (l *cLib) want(want int, name string, args ...uintptr) {
	l.t.Helper()
	if got := int(int32(l.call(name, args...))); got != want {
		l.t.Errorf("%s(%v) = %d, want %d", name, args, got, want)
	}
}

// onThreads runs f concurrently on n new threads, and ends each thread after f.
func onThreads(n int, f func(i int)) {
	var wg sync.WaitGroup
	for i := range n {
		wg.Add(1)
		go func() {
			runtime.LockOSThread() // never unlocked, so the thread ends
			defer wg.Done()
			f(i)
		}()
	}
	wg.Wait()
}

// TestCLibraryThreadState checks that C's thread state is kept from call to call on the same
// thread.
func TestCLibraryThreadState(t *testing.T) {
	l := openCLib(t)
	ids := make([]int, 20)
	var meet sync.WaitGroup
	meet.Add(len(ids))
	onThreads(len(ids), func(i int) {
		ids[i] = l.call("self")
		meet.Done()
		meet.Wait() // all threads live at the same time
		l.want(int(syscall.EBADF), "fail")
		l.want(0, "count", 0) // the first use of the thread-local variable allocates memory, and may set errno
		l.want(0, "set_errno", uintptr(1000+i))
		l.want(0, "set_specific", 1)
		for n := 1; n <= 100; n++ {
			l.want(n*i, "count", uintptr(i))
			l.want(42+n*i, "init_count", uintptr(i))
			l.want(1000+i, "get_errno")
			runtime.Gosched()
		}
		l.want(1, "get_specific")
		if got := l.call("self"); got != ids[i] {
			t.Errorf("the thread was %#x and is %#x", ids[i], got)
		}
	})
	seen := map[int]bool{}
	for _, id := range ids {
		if seen[id] {
			t.Errorf("two threads are %#x", id)
		}
		seen[id] = true
	}
}

// TestCLibraryThreadEnd checks that C's destructors run when a Go thread ends, and that the
// threads' memory is freed.
func TestCLibraryThreadEnd(t *testing.T) {
	l := openCLib(t)
	before := int(int32(l.call("get_ended")))
	const rounds, each = 50, 10
	threads := threadCount(t)
	for range rounds {
		onThreads(each, func(int) { l.want(0, "set_specific", 1) })
	}
	// One of the goroutines may have run on the process's first thread, which does not end. So one
	// call of a destructor may be missing.
	await(t, "destructors", func() bool { return int(int32(l.call("get_ended")))-before >= rounds*each-1 })
	await(t, "the threads' ends", func() bool { return threadCount(t) < threads+rounds*each/2 })
}

// await waits until done returns true.
func await(t *testing.T, what string, done func() bool) {
	t.Helper()
	for end := time.Now().Add(time.Minute); !done(); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("no %s", what)
		}
	}
}

func threadCount(t *testing.T) int {
	dirs, err := os.ReadDir("/proc/self/task")
	if err != nil {
		t.Skip(err)
	}
	return len(dirs)
}

func TestCLibraryMutexes(t *testing.T) {
	l := openCLib(t)
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	const recursive, checking = 0, 1
	for range 3 {
		l.want(0, "lock", recursive)
	}
	l.want(0, "lock", checking)
	l.want(int(syscall.EDEADLK), "lock", checking)
	onThreads(1, func(int) {
		l.want(int(syscall.EBUSY), "trylock", recursive)
		l.want(int(syscall.EPERM), "unlock", recursive)
		l.want(int(syscall.EPERM), "unlock", checking)
	})
	for range 3 {
		l.want(0, "unlock", recursive)
	}
	l.want(int(syscall.EPERM), "unlock", recursive)
	l.want(0, "unlock", checking)
}

// TestCLibraryRobustMutex ends threads and a process while they hold a mutex. The next thread that
// locks the mutex must be told.
func TestCLibraryRobustMutex(t *testing.T) {
	var list, size uintptr
	if _, _, err := syscall.Syscall(syscall.SYS_GET_ROBUST_LIST, 0, uintptr(unsafe.Pointer(&list)), uintptr(unsafe.Pointer(&size))); err == syscall.ENOSYS {
		t.Skip("this system, or what emulates it, does not look after robust mutexes")
	}
	l := openCLib(t)
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	l.want(0, "robust_init")
	for _, c := range []struct {
		name string
		hold func()
	}{
		{"a thread of C's", func() { l.want(0, "robust_thread") }},
		{"a thread of Go's", func() {
			var meet sync.WaitGroup
			var once sync.Once
			meet.Add(2)
			onThreads(2, func(int) { // at least one of two threads is not the process's first thread, which would not end
				meet.Done()
				meet.Wait()
				if syscall.Gettid() != os.Getpid() {
					once.Do(func() { l.want(0, "robust_lock") })
				}
			})
		}},
		{"a process", func() { l.want(0, "robust_fork") }},
	} {
		for range 20 {
			c.hold()
			l.want(int(syscall.EOWNERDEAD), "robust_lock") // waits for the end of the thread
			l.want(0, "robust_consistent")
			l.want(0, "robust_unlock")
			l.want(0, "robust_lock")
			l.want(0, "robust_unlock")
			if t.Failed() {
				t.Fatalf("with %s", c.name)
			}
		}
	}
}

func TestCLibraryThreads(t *testing.T) {
	l := openCLib(t)
	onThreads(4, func(int) {
		for range 20 {
			l.want(8*4950, "threads", 8)
		}
	})
}

// TestCLibraryDeepStack checks that C has a stack of at least a megabyte, on new threads of Go and
// on the test's own thread.
func TestCLibraryDeepStack(t *testing.T) {
	l := openCLib(t)
	for range 10 {
		onThreads(4, func(int) { l.want(1100, "deep", 1100) })
		l.want(1100, "deep", 1100)
	}
}

func TestCLibraryInner(t *testing.T) {
	l := openCLib(t)
	src, err := os.ReadFile("testdata/inner.c")
	if err != nil {
		t.Fatal(err)
	}
	path := l.text(build(t, "inner.so", string(src), "-lpthread"))
	onThreads(4, func(int) {
		l.want(1000+800+7, "open_inner", path)
		l.want(1000+900+7, "open_inner", path)
	})
}

func TestCLibraryLocale(t *testing.T) {
	l := openCLib(t)
	euro := l.text("€")
	onThreads(4, func(int) {
		if got := int(int32(l.call("characters", euro, 1))); got != 3 && got != -1 { // -1: this machine lacks the locale
			t.Errorf("a character of %d bytes, want 3", got)
		}
		l.want(2469, "decimal")
	})
}

func TestCLibraryResolve(t *testing.T) {
	l := openCLib(t)
	number, name := l.text("127.0.0.1"), l.text("localhost")
	onThreads(4, func(int) {
		l.want(0, "resolve", number)
		if err := l.call("resolve", name); err != 0 {
			t.Logf("no localhost here: %d", int32(err))
		}
	})
}

func TestCLibraryFork(t *testing.T) {
	l := openCLib(t)
	onThreads(4, func(int) {
		l.want(0, "set_errno", 0)
		l.want(7, "run_fork", 7)
	})
}

// TestCLibraryUser checks that C can set the user, or gets an error where C cannot set it for all
// threads.
func TestCLibraryUser(t *testing.T) {
	l := openCLib(t)
	if err := syscall.Errno(l.call("set_user")); err != 0 && err != syscall.ENOTSUP {
		t.Errorf("setuid: %v", err)
	}
}

func TestCLibraryCPU(t *testing.T) {
	l := openCLib(t)
	if n := int(int32(l.call("cpu"))); n < 0 {
		t.Errorf("sched_getcpu: %d", n)
	}
}

func TestCLibraryEnvironment(t *testing.T) {
	l := openCLib(t)
	env := func(name string) string {
		p := uintptr(l.call("env", l.text(name)))
		return GoString(*(*unsafe.Pointer)(unsafe.Pointer(&p)))
	}
	if got := env("PATH"); got != os.Getenv("PATH") {
		t.Errorf("PATH is %q in C and %q in Go", got, os.Getenv("PATH"))
	}
	t.Setenv("PUREGPU_TEST_VARIABLE", "value")
	if got := env("PUREGPU_TEST_VARIABLE"); got != "value" {
		t.Errorf("a variable that Go has set is %q in C", got)
	}
	os.Unsetenv("PUREGPU_TEST_VARIABLE")
	if got := env("PUREGPU_TEST_VARIABLE"); got != "" {
		t.Errorf("a variable that Go has unset is %q in C", got)
	}
}

// TestCLibraryCallbacks checks that C can call Go on the thread of a call, also with much of the
// stack in use, and on threads that C has made.
func TestCLibraryCallbacks(t *testing.T) {
	l := openCLib(t)
	var grow func(n int) int
	grow = func(n int) int {
		var buf [256]byte
		buf[n&255] = 1
		if n == 0 {
			return int(buf[0])
		}
		return grow(n-1) + 1
	}
	fn, err := Callback(func(arg int) int {
		if arg < 0 {
			return l.call("deep", uintptr(-arg)) + l.call("call_on_thread", addrOfAdd(t), 5)
		}
		runtime.GC()
		return grow(arg)
	})
	if err != nil {
		t.Fatal(err)
	}
	onThreads(4, func(int) {
		l.want(2001, "call", fn, 2000)
		l.want(301, "deep_call", 1000, fn, 300)
		l.want(301, "call_on_thread", fn, 300)
		minus := -200
		l.want(206, "call", fn, uintptr(minus))
	})
	l.want(301, "deep_call", 1000, fn, 300)
}

var addOnce = sync.OnceValues(func() (uintptr, error) { return Callback(func(n int32) int32 { return n + 1 }) })

func addrOfAdd(t *testing.T) uintptr {
	fn, err := addOnce()
	if err != nil {
		t.Error(err)
	}
	return fn
}

// TestCLibrarySignals checks that signals reach Go while its threads are in C, and that C's signal
// mask does not block SIGURG and SIGPROF, which Go uses.
func TestCLibrarySignals(t *testing.T) {
	l := openCLib(t)
	l.want(0, "blocked", uintptr(syscall.SIGURG))
	l.want(0, "blocked", uintptr(syscall.SIGPROF))
	ch := make(chan os.Signal, 1)
	signal.Notify(ch, syscall.SIGUSR1)
	defer signal.Stop(ch)
	var stop atomic.Bool
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			for n := uintptr(0); !stop.Load(); n++ {
				if got := l.call("mixture", n); got != int(n) {
					t.Errorf("mixture(%d) = %d", n, got)
					return
				}
			}
		})
	}
	for range 200 {
		syscall.Kill(os.Getpid(), syscall.SIGUSR1)
		<-ch
	}
	stop.Store(true)
	wg.Wait()
}

// TestCLibraryStress calls C from many goroutines together with everything that may disturb a call,
// and checks for leaks: it compares the process's resources at the end with those at half time. The
// flag -dl.stress sets the duration.
func TestCLibraryStress(t *testing.T) {
	l := openCLib(t)
	defer debug.SetGCPercent(debug.SetGCPercent(1))
	l.stress(t, *stressFor/2, 1)
	before := l.held(t)
	for same := 0; same < 20; same++ { // until the figures stay the same: ended threads and processes take time to go
		if least := before.least(l.held(t)); least != before {
			before, same = least, 0
		}
	}

	// With this many calls a leak of 16 bytes per call (32 in malloc) is visible. The race detector
	// and CPU emulators use memory of their own and are slow.
	calls, allowed := 150_000, held{threads: 8, mappings: 16, memory: 2 << 10}
	if comm, _ := os.ReadFile("/proc/self/comm"); race || strings.HasPrefix(string(comm), "qemu-") {
		calls, allowed.memory = 1, math.MaxInt32
	}
	done := l.stress(t, *stressFor/2, calls)
	after := l.held(t)
	defer func() { t.Logf("%s; held before: %+v, and after: %+v", done, before, after) }()
	await(t, "end of what the calls have left", func() bool {
		after = after.least(l.held(t))
		return after.threads <= before.threads+allowed.threads && after.files <= before.files+allowed.files &&
			after.mappings <= before.mappings+allowed.mappings && after.memory <= before.memory+allowed.memory
	})
}

// stress calls C from many goroutines, until the time d has passed, and at least as many times as
// least says. stress returns a text with the numbers of calls, of ended threads and of processes.
func (l *cLib) stress(t *testing.T, d time.Duration, least int) string {
	end := time.Now().Add(d)
	var calls, endings, processes atomic.Int64
	var wg sync.WaitGroup
	each := func(n int, f func(i int)) {
		for range n {
			wg.Go(func() {
				for i := 0; (time.Now().Before(end) || calls.Load() < int64(least)) && !t.Failed(); i++ {
					f(i)
				}
			})
		}
	}
	var sink atomic.Pointer[[]byte]
	each(16, func(i int) { // calls, garbage, and growing and shrinking stacks
		if got := l.call("mixture", uintptr(i)); got != i {
			t.Errorf("mixture(%d) = %d", i, got)
		}
		if i%16 == 0 {
			b := make([]byte, 1000+i%5000)
			sink.Store(&b)
		}
		calls.Add(1)
	})
	each(1, func(i int) { // threads that end with their goroutines
		onThreads(4, func(int) {
			l.want(i, "count", uintptr(i))
			l.want(0, "set_specific", 1)
		})
		endings.Add(4)
	})
	each(1, func(int) { // Go code without calls, to be preempted by SIGURG
		x := 0
		for i := range 10_000_000 {
			x += i
		}
		runtime.KeepAlive(x)
		runtime.GC()
	})
	each(1, func(int) { // threads made by C
		l.want(4*4950, "threads", 4)
	})
	if callbacks, err := addOnce(); err != nil {
		t.Error(err)
	} else {
		each(1, func(i int) { l.want(i+1, "call_on_thread", callbacks, uintptr(i)) })
	}
	each(1, func(int) { // timers
		timer := time.AfterFunc(50*time.Microsecond, func() {})
		<-time.After(100 * time.Microsecond)
		timer.Stop()
	})
	if exe, err := exec.LookPath("true"); err == nil {
		each(1, func(int) { // processes
			if out, err := exec.Command(exe).CombinedOutput(); err != nil {
				t.Errorf("%v %s", err, out)
			}
			processes.Add(1)
		})
	}
	each(1, func(int) { // profiles
		stopProfile := startProfile(t)
		time.Sleep(20 * time.Millisecond)
		stopProfile()
	})
	wg.Wait()
	done := fmt.Sprintf("%d calls, %d threads ended, %d processes", calls.Load(), endings.Load(), processes.Load())
	if calls.Load() == 0 || endings.Load() == 0 {
		t.Fatal("nothing was done")
	}
	return done
}

// held has the resources that a process holds.
type held struct {
	threads, files, mappings int
	memory                   int // resident, in KiB
}

// least returns the smaller value of each field.
func (h held) least(o held) held {
	return held{min(h.threads, o.threads), min(h.files, o.files), min(h.mappings, o.mappings), min(h.memory, o.memory)}
}

// held returns the resources that the process holds now. held first makes Go start 64 threads, more
// than the rest of the test uses. Go keeps these threads, so each call of held counts the same
// number. Then held frees unused memory of Go and malloc.
func (l *cLib) held(t *testing.T) (h held) {
	const threads = 64
	var meet, ready sync.WaitGroup
	meet.Add(threads)
	for range threads {
		ready.Go(func() {
			runtime.LockOSThread()
			defer runtime.UnlockOSThread()
			l.call("count", 0)
			meet.Done()
			meet.Wait()
		})
	}
	ready.Wait()
	debug.FreeOSMemory()
	l.call("trim")
	for _, d := range []struct {
		name string
		n    *int
	}{{"task", &h.threads}, {"fd", &h.files}} {
		dirs, err := os.ReadDir("/proc/self/" + d.name)
		if err != nil {
			t.Skip(err)
		}
		*d.n = len(dirs)
	}
	maps, err := os.ReadFile("/proc/self/maps")
	if err != nil {
		t.Skip(err)
	}
	h.mappings = strings.Count(string(maps), "\n")
	status, err := os.ReadFile("/proc/self/status")
	if err != nil {
		t.Skip(err)
	}
	_, rss, _ := strings.Cut(string(status), "\nVmRSS:")
	if _, err := fmt.Sscan(rss, &h.memory); err != nil {
		t.Skipf("/proc/self/status has no VmRSS: %v", err)
	}
	return h
}
