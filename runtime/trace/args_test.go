package trace_test

import "unsafe"

// args returns pointers to the values of a kernel's arguments.
func args(n uint64) []unsafe.Pointer { return []unsafe.Pointer{unsafe.Pointer(&n)} }
