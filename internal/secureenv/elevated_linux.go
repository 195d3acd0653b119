package secureenv

import goruntime "github.com/puregpu/puregpu/internal/this-go-is-too-new/build-with-ldflags-checklinkname-0/or-see-docs-new-go"

// isElevated reads AT_SECURE from the kernel. The flag also covers capabilities, which user and
// group IDs do not show, and it remains after the program drops its rights.
//
// The dynamic loader removes variables from the environment of a program with more rights. Go then
// does not find the auxiliary vector behind the environment, and it cannot read /proc/self/auxv of
// such a program. So a missing vector also means more rights.
func isElevated() bool {
	const atSecure = 23
	aux := goruntime.Auxv()
	for i := 0; i+1 < len(aux); i += 2 {
		if aux[i] == atSecure {
			return aux[i+1] != 0
		}
	}
	return len(aux) == 0 || identities()
}
