package lockcheck

import (
	"bytes"
	"runtime"
	"slices"
	"strconv"
	"unsafe"
)

// goroutine returns the number of this goroutine. No other goroutine ever gets the same number,
// even after this one ended with a mutex locked. A printed stack contains the number, but printing
// takes a microsecond for each frame. So goroutine reads the number at the offset that [findNumber]
// found, and prints the stack only if findNumber found no offset.
func goroutine() uint64 {
	if where == 0 {
		return printedNumber()
	}
	return *(*uint64)(unsafe.Add(descriptor(), where))
}

// where holds the offset of the number in a goroutine's descriptor, or 0 if findNumber did not find
// the number.
var where = findNumber()

// findNumber looks for the offset at which the descriptors of several goroutines have their
// numbers.
func findNumber() uintptr {
	const size = 320 // bytes searched; a descriptor is larger
	if descriptor() == nil {
		return 0
	}
	var places []uintptr
	for i := range 8 {
		found := make(chan []uintptr)
		go func() {
			var all []uintptr
			for at := uintptr(8); at < size; at += 8 {
				if *(*uint64)(unsafe.Add(descriptor(), at)) == printedNumber() {
					all = append(all, at)
				}
			}
			found <- all
		}()
		here := <-found
		if i == 0 {
			places = here
		}
		places = slices.DeleteFunc(places, func(at uintptr) bool { return !slices.Contains(here, at) })
	}
	if len(places) != 1 {
		return 0
	}
	return places[0]
}

// printedNumber returns this goroutine's number, from the start of its printed stack.
func printedNumber() uint64 {
	var buf [64]byte
	_, number, _ := bytes.Cut(buf[:runtime.Stack(buf[:], false)], []byte(" "))
	number, _, _ = bytes.Cut(number, []byte(" "))
	n, err := strconv.ParseUint(string(number), 10, 64)
	if err != nil {
		panic("lockcheck: a stack does not begin with the goroutine's number")
	}
	return n
}
