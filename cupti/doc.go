// Package cupti binds CUPTI, NVIDIA's CUDA Profiling Tools Interface, without cgo: records of the
// GPU's activities, and callbacks in calls of the CUDA driver. It binds the activity and the
// callback API. It does not bind the APIs of events, metrics, profiling and PC sampling.
//
// [Open] finds libcupti and resolves its functions. Every function is a method of [Library] that
// returns its outputs and an error, nil on success. An error code is a [Result], a constant:
// compare it with errors.Is. A function that the library lacks returns a [*dl.SymbolError] that
// names the release that introduced it.
//
// # Activity records
//
// [Library.CollectActivities] sets the function that receives records, [Library.ActivityEnable]
// enables records of a kind, and [Library.ActivityFlushAll] makes CUPTI deliver them.
// [Library.Records] reads them.
//
//	err := l.CollectActivities(1<<20, func(records []byte) {
//		for r, err := range l.Records(records) {
//			if k := r.Kernel(); err == nil && k != nil {
//				fmt.Println(r.Name(), time.Duration(k.End-k.Start))
//			}
//		}
//	})
//	err = l.ActivityEnable(cupti.ActivityKindConcurrentKernel)
//	…                                                      // work, until the device has done it
//	err = l.ActivityFlushAll(uint32(cupti.ActivityFlagFlushForced))
//
// Enable kinds before the CUDA context is made, or CUPTI may miss work of contexts that exist
// already. Each release has longer structs for its records: a kernel's is [ActivityKernel9] in CUDA
// 12.4, and [ActivityKernel10] in CUDA 13.0. A longer struct begins with the fields of the shorter
// ones. So [Record.Kernel] returns the fields that all releases since CUDA 11.2 have. For the other
// fields, look at the version of the library and convert [Record.Pointer].
//
// # Callbacks
//
// CUPTI calls C functions, which dl.Callback makes from Go functions, on three kinds of threads: on
// the thread of a call of CUPTI, such as ActivityFlushAll; on its own threads; and on the thread of
// any call of the CUDA driver, including calls by cuBLAS or NCCL. These rules hold:
//
//   - No call in progress may have its arguments on a goroutine's stack, because a Go function can
//     move the stack. [Library.CollectActivities] and [Library.SubscribeFunc] call
//     [dl.AllHeapFrames], which makes calls of all libraries slower until the process ends. A
//     program that calls [Library.ActivityRegisterCallbacks], [Library.Subscribe] or
//     [Library.ActivityRegisterTimestampCallback] itself must call dl.AllHeapFrames first. Do this
//     when the program starts, before other goroutines make calls.
//   - A callback must not call CUDA. The only functions of CUPTI that it may call are
//     [Library.ActivityGetNextRecord], [Library.Records] and functions that return ids and names.
//     It must not wait for a goroutine that makes other calls: CUDA may hold locks.
//   - A callback must not panic: a panic ends the process. It should return soon, because the call
//     of CUDA waits for it.
//   - The process can have one subscriber, and CUPTI can be used by one tool at a time: under
//     Nsight Systems or Nsight Compute the error is [ErrorMultipleSubscribersNotSupported].
//
// # Versions
//
// CUPTI numbered its releases from 1 until CUDA 12.9. From CUDA 13.0 on the number contains the
// CUDA release. Versions in this package are these numbers in three parts:
//
//	CUDA   11.2    11.8    12.4    12.5    13.0
//	CUPTI  0.0.14  0.0.18  0.0.22  0.0.23  13.0.1
package cupti

//go:generate go run github.com/puregpu/puregpu/tools/gen cupti
