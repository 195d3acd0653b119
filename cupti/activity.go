package cupti

import (
	"fmt"
	"iter"
	"sync"
	"unsafe"

	"github.com/puregpu/puregpu/cuda"
	"github.com/puregpu/puregpu/runtime/dl"
)

// activities has the buffers of activity records. A process has one set.
var activities struct {
	sync.Mutex
	size int
	done func(records []byte)
	lent map[uintptr][]uint64 // buffers that CUPTI holds, by address
	free [][]uint64           // buffers for reuse, each of size bytes

	once      sync.Once
	requested uintptr // C functions
	completed uintptr
	err       error
}

// minBuffer is the size of the smallest buffer: any record fits into it.
const minBuffer = 1 << 12

// CollectActivities makes CUPTI write activity records to buffers of size bytes, and pass the
// records of each returned buffer to the function done. size must be a multiple of 8 and at least
// 4096; 1 MiB and more are usual. [Library.Records] reads the records. Their memory is reused after
// done has returned.
//
// The function done may run on a thread of CUPTI, concurrently with itself, and in the call of
// [Library.ActivityFlushAll]. It must not call CUDA, and must not panic. A process has one such
// function: a later call of CollectActivities replaces it. CollectActivities calls
// [dl.AllHeapFrames]. Call CollectActivities when the program starts.
func (l *Library) CollectActivities(size int, done func(records []byte)) error {
	if size < minBuffer || size%8 != 0 || done == nil {
		return fmt.Errorf("cupti: collect activities: buffers of %d bytes, and a function that is nil: %v: the size must be a multiple of 8 and at least %d: %w",
			size, done == nil, minBuffer, ErrorInvalidParameter)
	}
	if l.Path() == "" {
		return dl.ErrNotOpen
	}
	a := &activities
	a.once.Do(func() {
		if a.requested, a.err = dl.Callback(bufferRequested); a.err == nil {
			a.completed, a.err = dl.Callback(bufferCompleted)
		}
	})
	if a.err != nil {
		return a.err
	}
	dl.AllHeapFrames()
	a.Lock()
	if a.size != size {
		a.size, a.free = size, nil
	}
	a.done = done
	a.Unlock()
	return l.ActivityRegisterCallbacks(BuffersCallbackRequestFunc(a.requested), BuffersCallbackCompleteFunc(a.completed))
}

// bufferRequested passes a buffer to CUPTI. The parameters point to C memory with arbitrary
// contents, so none has a type that is a pointer to a Go pointer.
func bufferRequested(buffer *uintptr, size, maxRecords *uint64) uintptr {
	a := &activities
	a.Lock()
	defer a.Unlock()
	var b []uint64
	if n := len(a.free); n > 0 {
		b, a.free = a.free[n-1], a.free[:n-1]
	} else {
		b = make([]uint64, a.size/8) // a record needs 8-byte alignment
	}
	if a.lent == nil {
		a.lent = map[uintptr][]uint64{}
	}
	address := uintptr(unsafe.Pointer(&b[0]))
	a.lent[address] = b // the map keeps the memory alive
	*buffer, *size, *maxRecords = address, uint64(len(b)*8), 0
	return 0
}

// bufferCompleted takes a buffer back from CUPTI.
func bufferCompleted(_ cuda.Context, _ uint32, buffer uintptr, _, valid uint64) uintptr {
	a := &activities
	a.Lock()
	b, done := a.lent[buffer], a.done
	delete(a.lent, buffer)
	a.Unlock()
	if b == nil {
		return 0
	}
	if valid = min(valid, uint64(len(b)*8)); valid > 0 {
		done(unsafe.Slice((*byte)(unsafe.Pointer(&b[0])), valid))
	}
	a.Lock()
	defer a.Unlock()
	if len(b)*8 == a.size {
		a.free = append(a.free, b)
	}
	return 0
}

// A Record is an activity record in a buffer.
type Record struct{ activity *Activity }

// Records iterates over a buffer's activity records, in the order in which CUPTI wrote them. The
// iteration ends after an error.
func (l *Library) Records(records []byte) iter.Seq2[Record, error] {
	return func(yield func(Record, error) bool) {
		if len(records) == 0 {
			return
		}
		r := new(Record)
		for {
			switch err := l.ActivityGetNextRecord(records, &r.activity); {
			case err == ErrorMaxLimitReached:
				return
			case err != nil:
				yield(Record{}, err)
				return
			}
			if !yield(*r, nil) {
				return
			}
		}
	}
}

// Kind returns the kind of the record. It is 0 for the zero Record.
func (r Record) Kind() ActivityKind {
	if r.activity == nil {
		return ActivityKindInvalid
	}
	return r.activity.Kind
}

// Pointer returns the address of the record. Convert it to the struct that the library's release
// has for the record's kind.
func (r Record) Pointer() unsafe.Pointer { return unsafe.Pointer(r.activity) }

// Kernel returns a kernel's record with the fields that all releases have, or nil for a record of
// another kind. CacheConfig is a union whose fields' names differ from release to release.
func (r Record) Kernel() *ActivityKernel6 {
	switch r.Kind() {
	case ActivityKindKernel, ActivityKindConcurrentKernel:
		return (*ActivityKernel6)(r.Pointer())
	}
	return nil
}

// Name returns the name of the kernel in a kernel's record, and "" for another record.
func (r Record) Name() string {
	if k := r.Kernel(); k != nil {
		return dl.GoString(unsafe.Pointer(k.Name))
	}
	return ""
}

// Memcpy returns a copy's record with the fields that all releases have, or nil for a record of
// another kind. Copies between devices have kind [ActivityKindMemcpy2] and struct
// [ActivityMemcpyPtoP3].
func (r Record) Memcpy() *ActivityMemcpy4 {
	if r.Kind() == ActivityKindMemcpy {
		return (*ActivityMemcpy4)(r.Pointer())
	}
	return nil
}

// Memset returns a fill's record with the fields that all releases have, or nil for a record of
// another kind.
func (r Record) Memset() *ActivityMemset3 {
	if r.Kind() == ActivityKindMemset {
		return (*ActivityMemset3)(r.Pointer())
	}
	return nil
}

// ExternalCorrelation returns the record that relates one of the program's numbers
// ([Library.ActivityPushExternalCorrelationId]) to the CorrelationId of other records, or nil for a
// record of another kind.
func (r Record) ExternalCorrelation() *ActivityExternalCorrelation {
	if r.Kind() == ActivityKindExternalCorrelation {
		return (*ActivityExternalCorrelation)(r.Pointer())
	}
	return nil
}
