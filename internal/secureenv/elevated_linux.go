package secureenv

import goruntime "github.com/puregpu/puregpu/internal/this-go-is-too-new/build-with-ldflags-checklinkname-0/or-see-docs-new-go"

// isElevated asks the kernel's own word, AT_SECURE. It is set for capabilities too, which no identity shows, and stays when the program
// gives its rights up.
//
// Go does not find the auxiliary vector behind an environment from which the dynamic loader took variables, and cannot read /proc/self/auxv
// of a program with more rights. The loader takes variables from such programs alone. So a vector that is missing means more rights, too.
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
