//go:build race

package memory

import (
	"runtime"
	"sync"
	"unsafe"
)

// touches protects the slices of programs from the runtime's own accesses, one at a time. A device does
// operations with the same slice in the right order, but the race detector does not see that.
var touches sync.Mutex

// A touch shows the race detector that an operation in flight may touch host memory of the program. A goroutine of its own touches the
// memory: it knows of nothing that the program does after the operation was issued, so the detector reports an access that does not
// wait for the operation, however soon the operation is done.
type touch struct{ done chan struct{} }

// touchWritten tells the race detector that an operation writes the memory, until over of the returned
// touch is called.
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

// over orders the touch before everything that the caller does from now on.
func (t touch) over() {
	if t.done != nil {
		<-t.done
	}
}

// Land copies to or from memory of the program.
func Land(dst, src []byte) {
	touches.Lock()
	defer touches.Unlock()
	copy(dst, src)
}
