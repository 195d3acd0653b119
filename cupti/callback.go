package cupti

import (
	"fmt"
	"sync"
	"sync/atomic"
	"unsafe"

	"github.com/puregpu/puregpu/runtime/dl"
)

// A Callback is a function for [Library.SubscribeFunc]. The type behind data depends on the domain:
// a [CallbackData] in the domains of the driver and the runtime API, and a [ResourceData], a
// [SynchronizeData], an [NvtxData] or a [StateData] in the domain of the same name. The memory is
// valid until the callback returns.
type Callback func(domain CallbackDomain, cbid CallbackId, data unsafe.Pointer)

// subscribed has the function of the process's one subscriber.
var subscribed struct {
	fn   atomic.Pointer[Callback]
	once sync.Once
	addr uintptr // the C function that calls fn
	err  error
}

// SubscribeFunc makes fn the subscriber's function. A process can have one subscriber.
// [Library.EnableCallback] and [Library.EnableDomain] then choose the calls in which the function
// runs, on the thread of the call. The function must not call CUDA, and must not panic.
// [Library.Unsubscribe] ends the subscription. SubscribeFunc calls [dl.AllHeapFrames], so call
// SubscribeFunc when the program starts.
func (l *Library) SubscribeFunc(fn Callback) (SubscriberHandle, error) {
	if fn == nil {
		return 0, fmt.Errorf("cupti: subscribe: the function is nil: %w", ErrorInvalidParameter)
	}
	if l.Path() == "" {
		return 0, dl.ErrNotOpen
	}
	s := &subscribed
	s.once.Do(func() { s.addr, s.err = dl.Callback(called) })
	if s.err != nil {
		return 0, s.err
	}
	dl.AllHeapFrames()
	handle, err := l.Subscribe(CallbackFunc(s.addr), 0)
	if err == nil { // if Subscribe fails, the function of an earlier subscriber stays in fn
		s.fn.Store(&fn)
	}
	return handle, err
}

// called runs the subscriber's function.
func called(_ uintptr, domain CallbackDomain, cbid CallbackId, data unsafe.Pointer) uintptr {
	if fn := subscribed.fn.Load(); fn != nil {
		(*fn)(domain, cbid, data)
	}
	return 0
}
