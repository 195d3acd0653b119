package dl

import "fmt"

// CallAddr calls the C function at an address that a library has returned, for example in a table
// of functions. The function's result and its parameters, up to 16, must be integers or pointers of
// up to 8 bytes. CallAddr returns the full result word. If the result has 32 bits, only the low
// half is valid.
//
// A pointer must be converted to uintptr in the call itself, as for [Library.Slow]. The function
// may call back into Go. If the address is 0, or this build cannot load libraries, CallAddr returns
// an error.
//
//go:uintptrescapes
func CallAddr(addr uintptr, args ...uintptr) (uintptr, error) {
	const words = "wwwwwwwwwwwwwwww"
	if addr == 0 {
		return 0, fmt.Errorf("cannot call the C function at address 0: %w", ErrSymbol)
	}
	if len(args) > len(words) {
		return 0, fmt.Errorf("cannot call the C function at %#x with %d arguments: there can be up to %d", addr, len(args), len(words))
	}
	return callSlow(addr, words[:len(args)], args)
}
