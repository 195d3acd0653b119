//go:build linux && (amd64 || arm64) && !nogpu

package toolkittest

import (
	"fmt"
	"slices"
	"sync"
	"testing"
	"unsafe"

	"github.com/puregpu/puregpu/cuda"
	"github.com/puregpu/puregpu/cupti"
	"github.com/puregpu/puregpu/internal/nvtxtest"
	"github.com/puregpu/puregpu/nvtx"
	"github.com/puregpu/puregpu/runtime/dl"
)

// storePTX is a kernel that stores 42.
const storePTX = `.version 6.4
.target sm_75
.address_size 64
.visible .entry store(.param .u64 at)
{
	.reg .b64 %p<3>;
	.reg .b32 %r<2>;
	ld.param.u64 %p1, [at];
	cvta.to.global.u64 %p2, %p1;
	mov.u32 %r1, 42;
	st.global.u32 [%p2], %r1;
	ret;
}
` + "\x00"

// launcher returns a function that launches the kernel and waits for it.
func launcher(g *GPU, at cuda.DevicePtr) func() {
	image := []byte(storePTX)
	module, err := g.lib.ModuleLoadData(unsafe.Pointer(&image[0]))
	g.Check("ModuleLoadData", err)
	g.t.Cleanup(func() { g.lib.ModuleUnload(module) })
	f, err := g.lib.ModuleGetFunction(module, "store")
	g.Check("ModuleGetFunction", err)
	return func() {
		arg := at
		g.Check("LaunchKernel", g.lib.LaunchKernel(f, 3, 1, 1, 32, 1, 1, 0, 0, []unsafe.Pointer{unsafe.Pointer(&arg)}, nil))
		g.Check("CtxSynchronize", g.lib.CtxSynchronize())
	}
}

// TestGPUCUPTIRecords checks the records of a launch, a fill and a copy.
func TestGPUCUPTIRecords(t *testing.T) {
	g := OpenGPU(t)
	l, err := cupti.Open(cupti.Options{})
	g.Check("Open", err)
	var mu sync.Mutex
	var kernels []cupti.ActivityKernel6
	var names []string
	var filled, copied []uint64
	external := map[uint32]uint64{} // by correlation id, the program's number
	g.Check("CollectActivities", l.CollectActivities(1<<20, func(records []byte) {
		mu.Lock()
		defer mu.Unlock()
		for r, err := range l.Records(records) {
			if err != nil {
				t.Errorf("Records: %v", err)
			}
			if k := r.Kernel(); k != nil {
				kernels, names = append(kernels, *k), append(names, r.Name())
			}
			if m := r.Memset(); m != nil {
				filled = append(filled, m.Bytes)
			}
			if m := r.Memcpy(); m != nil {
				copied = append(copied, m.Bytes)
			}
			if x := r.ExternalCorrelation(); x != nil {
				external[x.CorrelationId] = x.ExternalId
			}
		}
	}))
	for _, kind := range []cupti.ActivityKind{cupti.ActivityKindConcurrentKernel, cupti.ActivityKindMemset, cupti.ActivityKindMemcpy,
		cupti.ActivityKindDriver, cupti.ActivityKindExternalCorrelation} { // Driver too: CUPTI links an external ID, pushed below, to the ID of a driver call
		g.Check("ActivityEnable "+kind.String(), l.ActivityEnable(kind))
		defer l.ActivityDisable(kind)
	}
	at := g.Alloc(4096)
	launch := launcher(g, at)
	before, err := l.GetTimestamp()
	g.Check("GetTimestamp", err)
	g.Check("MemsetD8", g.lib.MemsetD8(at, 0, 4096))
	g.Check("push", l.ActivityPushExternalCorrelationId(cupti.ExternalCorrelationKindCustom0, 12345))
	launch()
	id, err := l.ActivityPopExternalCorrelationId(cupti.ExternalCorrelationKindCustom0)
	g.Check("pop", err)
	if id != 12345 {
		t.Errorf("popped %d", id)
	}
	Same(g, "what the kernel stored", Download[uint32](g, at, 4), 42, 0, 0, 0)
	after, err := l.GetTimestamp()
	g.Check("GetTimestamp", err)
	g.Check("ActivityFlushAll", l.ActivityFlushAll(uint32(cupti.ActivityFlagFlushForced)))

	mu.Lock()
	defer mu.Unlock()
	i := slices.Index(names, "store")
	if i < 0 || len(kernels) != 1 {
		t.Fatalf("the kernels are %q, want store", names)
	}
	k := kernels[i]
	const minute = 60e9 // tolerance: the clocks of the device and the host differ
	if k.GridX != 3 || k.BlockX != 32 || k.Start+minute < before || k.End < k.Start || k.End > after+minute {
		t.Errorf("the kernel ran from %d to %d, with %d blocks of %d; want about %d to %d, with 3 of 32", k.Start, k.End, k.GridX, k.BlockX, before, after)
	}
	if external[k.CorrelationId] != 12345 {
		t.Errorf("the kernel has correlation %d, and the program's numbers are %v", k.CorrelationId, external)
	}
	if !slices.Contains(filled, 4096) || !slices.Contains(copied, 16) {
		t.Errorf("fills of %v bytes and copies of %v, want 4096 and 16", filled, copied)
	}
}

// TestGPUCUPTICallbacks checks that a Go function is called at the begin and end of a launch, and
// not after Unsubscribe.
func TestGPUCUPTICallbacks(t *testing.T) {
	g := OpenGPU(t)
	l, err := cupti.Open(cupti.Options{})
	g.Check("Open", err)
	var got []string
	s, err := l.SubscribeFunc(func(domain cupti.CallbackDomain, cbid cupti.CallbackId, data unsafe.Pointer) {
		d := (*cupti.CallbackData)(data)
		got = append(got, fmt.Sprint(d.CallbackSite, " ", dl.GoString(unsafe.Pointer(d.FunctionName)), " ", dl.GoString(unsafe.Pointer(d.SymbolName))))
	})
	g.Check("SubscribeFunc", err)
	defer l.Unsubscribe(s)
	launch := launcher(g, g.Alloc(4096))
	g.Check("EnableCallback", l.EnableCallback(1, s, cupti.CBDomainDriverAPI, cupti.CallbackId(cupti.DriverTraceCBIDCuLaunchKernel)))
	launch()
	if err := l.Unsubscribe(s); err != nil {
		t.Error(err)
	}
	launch()
	want := []string{fmt.Sprint(cupti.APIEnter, " cuLaunchKernel store"), fmt.Sprint(cupti.APIExit, " cuLaunchKernel store")}
	if !slices.Equal(got, want) {
		t.Errorf("the function was called for %q, want %q", got, want)
	}
}

// TestGPUNVTXTool checks that NVTX loads CUPTI as its tool.
func TestGPUNVTXTool(t *testing.T) {
	g := OpenGPU(t)
	l, err := cupti.Open(cupti.Options{})
	g.Check("Open", err)
	if !nvtxtest.Child(t, l.Path()) {
		return
	}
	var got []string
	s, err := l.SubscribeFunc(func(domain cupti.CallbackDomain, cbid cupti.CallbackId, data unsafe.Pointer) {
		got = append(got, dl.GoString(unsafe.Pointer((*cupti.NvtxData)(data).FunctionName)))
	})
	g.Check("SubscribeFunc", err)
	defer l.Unsubscribe(s)
	g.Check("EnableDomain", l.EnableDomain(1, s, cupti.CBDomainNVTX))
	if !nvtx.Enabled() {
		t.Fatal(nvtx.Err())
	}
	d := nvtx.NewDomain("test")
	nvtx.Mark("mark")
	d.Start("range").End()
	d.Push("thread").Pop()
	d.Close()
	want := []string{"nvtxMarkEx", "nvtxDomainCreateA", "nvtxDomainRangeStartEx", "nvtxDomainRangeEnd", "nvtxDomainRangePushEx", "nvtxDomainRangePop", "nvtxDomainDestroy"}
	if !slices.Equal(got, want) {
		t.Errorf("the tool was told %q, want %q", got, want)
	}
}
