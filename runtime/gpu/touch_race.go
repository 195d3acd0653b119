//go:build race

package gpu

import (
	"runtime"
	"unsafe"
)

// A touch shows the race detector that an operation in flight may touch host memory of the program. A
// goroutine of its own touches the memory: it knows of nothing that the program does after the call, so
// the detector reports an access that does not wait for the operation, however soon the operation is done.
type touch struct{ done chan struct{} }

// touchWritten says that an operation writes the memory until over is called.
func touchWritten(p []byte) touch { return startTouch(p, runtime.RaceWriteRange) }

// touchRead says that an operation reads the memory until over is called.
func touchRead(p []byte) touch { return startTouch(p, runtime.RaceReadRange) }

func startTouch(p []byte, access func(unsafe.Pointer, int)) touch {
	t := touch{make(chan struct{})}
	go func() {
		access(unsafe.Pointer(unsafe.SliceData(p)), len(p))
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
