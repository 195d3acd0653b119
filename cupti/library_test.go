//go:build linux && (amd64 || arm64) && !nogpu

package cupti

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"unsafe"

	"github.com/puregpu/puregpu/internal/testlib"
	"github.com/puregpu/puregpu/internal/toolkittest"
	"github.com/puregpu/puregpu/runtime/dl"
	table "github.com/puregpu/puregpu/symbols"
)

func open(opt dl.Options) (toolkittest.Opened, error) {
	l, err := Open(opt)
	if err != nil {
		return nil, err // not a nil *Library
	}
	return l, nil
}

var release = toolkittest.Case{
	Library: "cupti", File: "libcupti.so.12", Release: "0.0.23", Open: open, Format: FormatVersion,
	Needs: "cuptiEnableDomain",
	Lacks: "cuptiActivityEnableHWTrace",
	Call:  func(l toolkittest.Opened) error { return l.(*Library).ActivityEnableHWTrace(1) },
}

func TestOpen(t *testing.T) { toolkittest.Run(t, release) }

func openFake(t *testing.T) *Library {
	t.Helper()
	l, err := Open(Options{Path: release.Build(t)})
	if err != nil {
		t.Fatal(err)
	}
	return l
}

func TestRecords(t *testing.T) {
	l := openFake(t)
	var mu sync.Mutex
	var got []string
	err := l.CollectActivities(minBuffer, func(records []byte) {
		testlib.Deep(500) // makes the stack of the call in progress move
		for r, err := range l.Records(records) {
			line := fmt.Sprint(r.Kind())
			switch {
			case err != nil:
				line = err.Error()
			case r.Kernel() != nil:
				k := r.Kernel()
				line = fmt.Sprintf("kernel %s %d-%d grid %d block %d correlation %d", r.Name(), k.Start, k.End, k.GridX, k.BlockX, k.CorrelationId)
			case r.Memcpy() != nil:
				line = fmt.Sprintf("memcpy %d %d-%d", r.Memcpy().Bytes, r.Memcpy().Start, r.Memcpy().End)
			case r.Memset() != nil:
				line = fmt.Sprintf("memset %d %d-%d", r.Memset().Bytes, r.Memset().Start, r.Memset().End)
			case r.ExternalCorrelation() != nil:
				x := r.ExternalCorrelation()
				line = fmt.Sprintf("external %d is %d", x.ExternalId, x.CorrelationId)
			}
			mu.Lock()
			got = append(got, line)
			mu.Unlock()
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, k := range []ActivityKind{ActivityKindConcurrentKernel, ActivityKindMemcpy, ActivityKindMemset, ActivityKindExternalCorrelation} {
		if err := l.ActivityEnable(k); err != nil {
			t.Fatal(err)
		}
	}
	var want []string
	for _, i := range []int{1, 2, 3, 1} {
		want = append(want, fmt.Sprintf("external %d is %d", 1000+i, i), fmt.Sprintf("kernel scale %d-%d grid 5 block 32 correlation %d", 100*i, 100*i+7, i),
			fmt.Sprintf("memcpy 4096 %d-%d", 200*i, 200*i+9), fmt.Sprintf("memset 4096 %d-%d", 200*i, 200*i+9))
	}
	done := make(chan error)
	for range 3 { // more than once, to reuse buffers
		got = nil
		go func() { done <- l.ActivityFlushAll(1) }() // on a new goroutine, which has a small stack
		if err := <-done; err != nil {
			t.Fatal(err)
		}
		if !slices.Equal(got, want) {
			t.Fatalf("the records are\n\t%s\nwant\n\t%s", strings.Join(got, "\n\t"), strings.Join(want, "\n\t"))
		}
	}
	if len(activities.lent) != 0 || len(activities.free) != 1 {
		t.Errorf("%d buffers are lent and %d are free, after each was handed over", len(activities.lent), len(activities.free))
	}
	if dl.Load(&l.fns[fnGetVersion]) != 0 {
		t.Error("calls still have their arguments on the stack")
	}
}

func TestRecordsOfABrokenBuffer(t *testing.T) {
	l := openFake(t)
	broken := make([]uint64, 20)
	broken[0], broken[11] = uint64(ActivityKindMemset), 77 // a record, then one of an unknown kind
	var got []error
	for r, err := range l.Records(unsafe.Slice((*byte)(unsafe.Pointer(&broken[0])), 160)) {
		if got = append(got, err); err != nil && (r.Kind() != 0 || r.Kernel() != nil || r.Name() != "" || r.Memcpy() != nil) {
			t.Errorf("with an error comes the record %v", r.Kind())
		}
	}
	if len(got) != 2 || got[0] != nil || !errors.Is(got[1], ErrorInvalidKind) {
		t.Errorf("errors %v", got)
	}
	for range l.Records(nil) {
		t.Error("there is a record in no memory")
	}
}

func TestCollectActivitiesOfMistakes(t *testing.T) {
	l := openFake(t)
	for _, size := range []int{-8, 0, 100, minBuffer + 1} {
		if err := l.CollectActivities(size, func([]byte) {}); !errors.Is(err, ErrorInvalidParameter) {
			t.Errorf("buffers of %d bytes: %v", size, err)
		}
	}
	if err := l.CollectActivities(minBuffer, nil); !errors.Is(err, ErrorInvalidParameter) {
		t.Errorf("a nil function: %v", err)
	}
	if err := new(Library).CollectActivities(minBuffer, func([]byte) {}); !errors.Is(err, dl.ErrNotOpen) {
		t.Errorf("a library that is not open: %v", err)
	}
	if _, err := l.SubscribeFunc(nil); !errors.Is(err, ErrorInvalidParameter) {
		t.Errorf("a nil function: %v", err)
	}
	if _, err := new(Library).SubscribeFunc(func(CallbackDomain, CallbackId, unsafe.Pointer) {}); !errors.Is(err, dl.ErrNotOpen) {
		t.Errorf("a library that is not open: %v", err)
	}
}

func TestSubscribeFunc(t *testing.T) {
	l := openFake(t)
	other := openFake(t) // a separate copy of the library, with no subscriber yet
	calls := 0
	s, err := l.SubscribeFunc(func(domain CallbackDomain, cbid CallbackId, data unsafe.Pointer) {
		testlib.Deep(500)
		if domain != CBDomainDriverAPI || cbid != CallbackId(DriverTraceCBIDCuLaunchKernel) || data == nil {
			t.Errorf("domain %v, function %v, data %v", domain, cbid, data)
		}
		calls++
	})
	if err != nil {
		t.Fatal(err)
	}
	if dl.Load(&other.fns[fnGetTimestamp]) != 0 {
		t.Error("calls of other libraries still have their arguments on the stack")
	}
	done := make(chan error)
	for range 5 {
		go func() {
			now, err := l.GetTimestamp()
			if now != 42 {
				err = errors.Join(err, fmt.Errorf("the time is %d", now))
			}
			done <- err
		}()
		if err := <-done; err != nil {
			t.Error(err)
		}
	}
	if calls != 5 {
		t.Errorf("%d calls, want 5", calls)
	}
	if _, err := l.SubscribeFunc(func(CallbackDomain, CallbackId, unsafe.Pointer) { t.Error("called") }); !errors.Is(err, ErrorMultipleSubscribersNotSupported) {
		t.Errorf("the second subscriber: %v", err)
	}
	if _, err := l.GetTimestamp(); err != nil || calls != 6 {
		t.Errorf("%d calls, %v", calls, err)
	}
	if err := l.Unsubscribe(s); err != nil {
		t.Error(err)
	}
	if _, err := l.GetTimestamp(); err != nil || calls != 6 {
		t.Errorf("a call after Unsubscribe: %d, %v", calls, err)
	}
}

// TestLongerRecordsBeginWithShorterOnes checks that the structs that Record returns are the
// beginning of later releases' structs.
func TestLongerRecordsBeginWithShorterOnes(t *testing.T) {
	lib, err := table.Load("cupti")
	if err != nil {
		t.Fatal(err)
	}
	fields := func(name string) map[string]string {
		for _, s := range lib.Structs {
			if s.Name == name {
				all := map[string]string{}
				for _, f := range s.Fields {
					if f.Name != "padding" && f.Name != "cacheConfig" {
						all[f.Name] = fmt.Sprintf("%s of %d bytes at %d", f.Type, f.Size, f.Offset)
					}
				}
				return all
			}
		}
		return nil
	}
	for _, x := range []struct {
		name          string
		from, through int
	}{{"CUpti_ActivityKernel", 6, 10}, {"CUpti_ActivityMemcpy", 4, 6}, {"CUpti_ActivityMemset", 3, 4}, {"CUpti_ActivityMemcpyPtoP", 3, 4}} {
		short := fields(fmt.Sprint(x.name, x.from))
		if len(short) < 10 || fields(fmt.Sprint(x.name, x.through+1)) != nil {
			t.Errorf("%s%d is unknown, or %d is not the last one", x.name, x.from, x.through)
		}
		for v := x.from + 1; v <= x.through; v++ {
			long := fields(fmt.Sprint(x.name, v))
			for f, at := range short {
				if long[f] != at {
					t.Errorf("%s%d has the field %s as %q, and %s%d has it as %q", x.name, v, f, long[f], x.name, x.from, at)
				}
			}
		}
	}
}

// TestRealSymbols opens this machine's CUPTI. Opening it needs no GPU.
func TestRealSymbols(t *testing.T) {
	l := toolkittest.Real(t, "cupti", open, FormatVersion).(*Library)
	if name, err := l.GetResultString(ErrorInvalidKind); err != nil || name != "CUPTI_ERROR_INVALID_KIND" {
		t.Errorf("the name of a result: %q, %v", name, err)
	}
	if name, err := l.GetCallbackName(CBDomainDriverAPI, uint32(DriverTraceCBIDCuLaunchKernel)); err != nil || name != "cuLaunchKernel" {
		t.Errorf("the name of a function: %q, %v", name, err)
	}
}
