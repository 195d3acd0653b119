package secureenv

import _ "unsafe" // for linkname

// getAuxv returns what the kernel gave the program at its start: pairs of a type and a value. Package runtime keeps the name for
// golang.org/x/sys.
//
//go:linkname getAuxv runtime.getAuxv
func getAuxv() []uintptr

// isElevated asks the kernel's own word, AT_SECURE. It is set for capabilities too, which no identity shows, and stays when the program
// gives its rights up. Without an auxiliary vector only the identities are left to ask.
func isElevated() bool {
	const atSecure = 23
	aux := getAuxv()
	for i := 0; i+1 < len(aux); i += 2 {
		if aux[i] == atSecure {
			return aux[i+1] != 0
		}
	}
	return identities()
}
