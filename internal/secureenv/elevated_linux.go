package secureenv

import goruntime "github.com/puregpu/puregpu/internal/this-go-is-too-new/build-with-ldflags-checklinkname-0/or-see-docs-new-go"

// isElevated asks the kernel's own word, AT_SECURE. It is set for capabilities too, which no identity shows, and stays when the program
// gives its rights up. Without an auxiliary vector only the identities are left to ask.
func isElevated() bool {
	const atSecure = 23
	aux := goruntime.Auxv()
	for i := 0; i+1 < len(aux); i += 2 {
		if aux[i] == atSecure {
			return aux[i+1] != 0
		}
	}
	return identities()
}
