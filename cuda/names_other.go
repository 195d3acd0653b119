//go:build !linux

package cuda

var (
	names = []string{"nvcuda.dll"}
	dirs  []string
)
