package dl

// A Frame is the head of the argument frame that [Call] takes. The words of the arguments follow
// it, 8 bytes each:
//
//	var f struct {
//		dl.Frame
//		a0 *Stream // has a pointer type, so that it follows a moving stack
//		a1 uintptr
//	}
//	f.Fn, f.Ret, f.a0, f.a1 = fn, 0, &stream, uintptr(flags)
//
// Assign every field in one statement, Ret included. The compiler then generates the least code: it
// clears and copies nothing.
type Frame struct {
	Fn  uintptr // address of the function, from [Load]
	Ret uintptr // after the call: the full result word
}

// maxFastWords is the largest number of argument words that [Call] takes.
const maxFastWords = 16
