package nvtx_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/puregpu/puregpu/cupti"
	"github.com/puregpu/puregpu/internal/nvtxtest"
	"github.com/puregpu/puregpu/internal/testlib"
	"github.com/puregpu/puregpu/nvtx"
	"github.com/puregpu/puregpu/runtime/dl"
)

// wrote checks the tool's record of calls. In the argument want, # stands for any number.
func wrote(t *testing.T, tool *nvtxtest.Tool, want ...string) {
	t.Helper()
	got := tool.Wrote()
	for i := range max(len(got), len(want)) {
		switch {
		case i >= len(got):
			t.Errorf("the tool was not told %q", want[i])
		case i >= len(want):
			t.Errorf("the tool was told %q, too", got[i])
		default:
			pattern := "^" + strings.ReplaceAll(regexp.QuoteMeta(want[i]), "#", `\d+`) + "$"
			if ok, err := regexp.MatchString(pattern, got[i]); err != nil || !ok {
				t.Errorf("the tool was told %q, want %q", got[i], want[i])
			}
		}
	}
}

func TestToolIsToldEvents(t *testing.T) {
	tool := nvtxtest.Attach(t)
	if tool == nil {
		return
	}
	if err := nvtx.Err(); err != nil {
		t.Error(err)
	}
	nvtx.Mark("a mark")
	wrote(t, tool, "mark - good 1:a mark")
	r := nvtx.Start("a range")
	other := nvtx.Start("another")
	r.End()
	other.End()
	wrote(t, tool, "start 101 - good 1:a range", "start 102 - good 1:another", "end 101 -", "end 102 -")
	nvtx.Event{Message: "all", Category: 3, Color: 0xff112233, Payload: nvtx.Uint(1 << 40)}.Mark()
	nvtx.Event{Payload: nvtx.Int(-5)}.Start().End()
	nvtx.Event{Message: "half", Payload: nvtx.Float(0.5)}.Mark()
	wrote(t, tool, "mark - good 1:all category 3 color 1:ff112233 payload 1:1099511627776", "start # - good 1: payload 2:-5", "end # -",
		"mark - good 1:half payload 0.5")
	nvtx.Mark("cut\x00off")
	wrote(t, tool, "mark - good 1:cut")
	nvtx.Range{}.End()
	nvtx.ThreadRange{}.Pop()
	wrote(t, tool)
}

func TestToolIsToldOfDomains(t *testing.T) {
	tool := nvtxtest.Attach(t)
	if tool == nil {
		return
	}
	d := nvtx.NewDomain("lib")
	wrote(t, tool)
	d.Mark("first")
	wrote(t, tool, "create lib", "mark lib good 1:first")
	r := d.Start("range")
	d.Push("inner").Pop()
	d.NameCategory(4, "copies")
	(*nvtx.Domain)(nil).NameCategory(5, "kernels")
	(*nvtx.Domain)(nil).Mark("default")
	wrote(t, tool, "start # lib good 1:range", "push 0 on # lib good 1:inner", "pop 0 on # lib", "category lib 4 copies", "category - 5 kernels",
		"mark - good 1:default")

	s := d.Register("step")
	wrote(t, tool)
	for range 2 {
		nvtx.Event{Domain: d, String: s, Payload: nvtx.Uint(7)}.Mark()
	}
	nvtx.Event{String: s}.Mark() // in another domain the String is an ordinary text
	wrote(t, tool, "register lib step", "mark lib good 3:step payload 1:7", "mark lib good 3:step payload 1:7", "mark - good 1:step")

	d.Close()
	d.Close()
	r.End()
	d.Mark("late")
	d.Start("late").End()
	d.Push("late").Pop()
	d.NameCategory(1, "late")
	(*nvtx.Domain)(nil).Close()
	nvtx.NewDomain("unused").Close()
	wrote(t, tool, "destroy lib")
}

func TestToolIsToldNames(t *testing.T) {
	tool := nvtxtest.Attach(t)
	if tool == nil {
		return
	}
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	nvtx.NameThread("loader")
	nvtx.NameDevice(int32(2), "the third")
	nvtx.NameContext(uintptr(0x10), "context")
	nvtx.NameStream(uintptr(0x20), "copies")
	nvtx.NameEvent(uintptr(0x30), "done")
	wrote(t, tool, "thread own loader", "device 2 the third", "context 0x10 context", "stream 0x20 copies", "event 0x30 done")
}

func TestThreadRangesStayOnTheirThread(t *testing.T) {
	tool := nvtxtest.Attach(t)
	if tool == nil {
		return
	}
	d := nvtx.NewDomain("lib")
	var wg sync.WaitGroup
	for i := range 8 {
		wg.Go(func() {
			for range 50 {
				outer := d.Push(fmt.Sprint("outer ", i))
				runtime.Gosched()
				inner := nvtx.Push(fmt.Sprint("inner ", i))
				runtime.Gosched()
				inner.Pop()
				runtime.Gosched()
				outer.Pop()
			}
		})
	}
	wg.Wait()
	stacks := map[string][]string{} // open ranges of each thread
	pushed := 0
	for _, line := range tool.Wrote() {
		w := strings.Fields(line)
		switch w[0] {
		case "push":
			pushed++
			if w[1] != fmt.Sprint(len(stacks[w[3]])) {
				t.Fatalf("%q on a thread with ranges %q", line, stacks[w[3]])
			}
			stacks[w[3]] = append(stacks[w[3]], w[4]+" "+w[7])
			if s := stacks[w[3]]; len(s) == 2 && s[0] != "lib "+w[7] {
				t.Fatalf("%q inside another goroutine's range %q", line, s[0])
			}
		case "pop":
			s := stacks[w[3]]
			if len(s) == 0 || !strings.HasPrefix(s[len(s)-1], w[4]+" ") {
				t.Fatalf("%q on a thread with ranges %q", line, s)
			}
			stacks[w[3]] = s[:len(s)-1]
		}
	}
	if pushed != 8*50*2 {
		t.Errorf("%d ranges were pushed", pushed)
	}
}

// TestCloseWhileInUse closes a domain while other goroutines use it. The fake tool,
// testdata/fakes/nvtx.c, writes DESTROYED for a use after the close.
func TestCloseWhileInUse(t *testing.T) {
	tool := nvtxtest.Attach(t)
	if tool == nil {
		return
	}
	for range 20 {
		d := nvtx.NewDomain("lib")
		s := d.Register("string")
		var wg sync.WaitGroup
		for range 4 {
			wg.Go(func() {
				for range 20 {
					d.Start("range").End()
					nvtx.Event{Domain: d, String: s}.Mark()
				}
			})
		}
		wg.Go(d.Close)
		wg.Wait()
		d.Mark("late")
		for _, line := range tool.Wrote() {
			if strings.Contains(line, "DESTROYED") || strings.Contains(line, "late") {
				t.Fatalf("the tool was told %q", line)
			}
		}
	}
}

func TestLayoutOfAttributes(t *testing.T) {
	tool := nvtxtest.Attach(t)
	if tool == nil {
		return
	}
	want, real := tool.Layout()
	if got := nvtx.Layout(); !slices.Equal(got, want) {
		t.Errorf("size and offsets %v, want %v", got, want)
	}
	t.Logf("compared with NVIDIA's headers: %v", real)
	if !real && os.Getenv("PUREGPU_REQUIRE_NVTX_HEADERS") != "" {
		t.Error("the fake was compiled without NVIDIA's headers: name their folder in CPATH")
	}
}

func TestToolWithoutFunctions(t *testing.T) {
	empty := nvtxtest.Fake
	empty.Defines = []string{"EMPTY"}
	if os.Getenv(nvtx.Variable) == "" {
		nvtxtest.Child(t, empty.Build(t))
		return
	}
	if !nvtx.Enabled() {
		t.Fatal(nvtx.Err())
	}
	everything(nvtx.NewDomain("lib"))
}

func TestToolThatCannotBeUsed(t *testing.T) {
	switch os.Getenv(nvtx.Variable) {
	case "":
		refuses := nvtxtest.Fake
		refuses.Defines = []string{"REFUSES"}
		nvtxtest.Child(t, refuses.Build(t))
		nvtxtest.Child(t, testlib.Fake{File: "libother.so", Source: "answer.c"}.Build(t))
		nvtxtest.Child(t, filepath.Join(t.TempDir(), "absent.so"))
		return
	}
	err := nvtx.Err()
	if err == nil || nvtx.Enabled() || !strings.Contains(err.Error(), nvtx.Variable) {
		t.Fatalf("attached %v, error %v", nvtx.Enabled(), err)
	}
	var want string
	switch path := os.Getenv(nvtx.Variable); filepath.Base(path) {
	case "absent.so":
		if want = path; !errors.Is(err, dl.ErrNotFound) {
			t.Errorf("the error of a file that is not there: %v", err)
		}
	case "libother.so":
		want = "InitializeInjectionNvtx2"
	default:
		want = "returned 0"
	}
	if !strings.Contains(err.Error(), want) {
		t.Errorf("the error does not have %q: %v", want, err)
	}
	everything(nvtx.NewDomain("lib"))
}

// TestRealTool uses this machine's CUPTI as the tool. CUPTI attaches without a GPU.
func TestRealTool(t *testing.T) {
	l, err := cupti.Open(cupti.Options{})
	if err != nil {
		t.Skip(err)
	}
	if !nvtxtest.Child(t, l.Path()) {
		return
	}
	if !nvtx.Enabled() {
		t.Fatal(nvtx.Err())
	}
	d := nvtx.NewDomain("lib")
	everything(d)
	d.Close()
}

// everything calls each function that tells a tool something, except Register and Close.
func everything(d *nvtx.Domain) {
	nvtx.Mark("m")
	nvtx.Start("s").End()
	nvtx.Push("p").Pop()
	d.Mark("m")
	d.Start("s").End()
	d.Push("p").Pop()
	e := nvtx.Event{Domain: d, Message: "m", Category: 1, Payload: nvtx.Int(3)}
	e.Mark()
	e.Start().End()
	e.Push().Pop()
	d.NameCategory(1, "c")
	nvtx.NameThread("t")
	nvtx.NameDevice(int32(1), "d")
	nvtx.NameStream(uintptr(1), "s")
	nvtx.NameContext(uintptr(1), "c")
	nvtx.NameEvent(uintptr(1), "e")
}

func TestWithoutToolNothingIsDone(t *testing.T) {
	if nvtx.Enabled() || nvtx.Err() != nil {
		t.Skipf("%s is set", nvtx.Variable)
	}
	d := nvtx.NewDomain("lib")
	if n := testing.AllocsPerRun(100, func() { everything(d) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
	d.Close()
}

func TestWithToolNothingIsAllocated(t *testing.T) {
	tool := nvtxtest.Attach(t)
	if tool == nil {
		return
	}
	if !dl.Fast || raceEnabled {
		t.Skip("calls allocate in this build") // under the race detector a sync.Pool drops items at random
	}
	d := nvtx.NewDomain("lib")
	s := d.Register("step")
	if n := testing.AllocsPerRun(100, func() {
		everything(d)
		nvtx.Event{Domain: d, String: s}.Mark()
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

func BenchmarkStartEnd(b *testing.B) {
	for b.Loop() {
		nvtx.Start("range").End()
	}
}

func BenchmarkPushPop(b *testing.B) {
	for b.Loop() {
		nvtx.Push("range").Pop()
	}
}
