//go:build race

package memory

import (
	"runtime"
	"sync"
	"unsafe"
)

// touches protects the program's slices from concurrent accesses of the runtime. A device runs
// operations on one slice in the right order, but the race detector does not see that order.
var touches sync.Mutex

// A touch tells the race detector that an operation in flight may access memory of the program: a
// goroutine of its own accesses the memory. To the detector, this access is ordered before what the
// program does later only if the method touch.over is called in between. So if the program accesses
// the memory without waiting for the operation, the detector reports a race, even if the operation
// is already done.
type touch struct{ done chan struct{} }

// touchWritten tells the race detector that an operation writes the memory, until touch.over is
// called for the returned touch.
func touchWritten(p []byte) touch {
	t := touch{make(chan struct{})}
	go func() {
		touches.Lock()
		runtime.RaceWriteRange(unsafe.Pointer(unsafe.SliceData(p)), len(p))
		touches.Unlock()
		close(t.done)
	}()
	return t
}

// over orders the touch before everything that the caller does afterwards.
func (t touch) over() {
	if t.done != nil {
		<-t.done
	}
}

// Land copies src to dst. One of the two is memory of the program.
func Land(dst, src []byte) {
	touches.Lock()
	defer touches.Unlock()
	copy(dst, src)
}
