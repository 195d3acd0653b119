//go:build nogpu || !((linux && (amd64 || (arm64 && (!puregpu_static || cgo)))) || (windows && amd64))

package dl

// A loader does nothing in this build.
type loader struct{}

func newLoader() (*loader, error) { return nil, ErrUnsupported }

func (*loader) open(path string, loaded bool) (handle uintptr, words string) { return 0, "" }
func (*loader) sym(handle uintptr, name string) (addr uintptr, words string) { return 0, "" }
func (*loader) file(handle uintptr) string                                   { return "" }
func explain(path, words string) *loadError                                  { return &loadError{kind: ErrNotFound} }
func callSlow(fn uintptr, sig string, args []uintptr) (result uintptr, err error) {
	return 0, ErrUnsupported
}
func newCallback(fn any) (uintptr, error) { return 0, ErrUnsupported }
