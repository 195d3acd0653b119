// Package leaks reports things that the program has dropped without closing them: the garbage
// collector has found that nothing refers to them any more.
package leaks

import (
	"fmt"
	"log/slog"
	"runtime"
	"strings"
)

// A Site is the place where the program has made something.
type Site struct{ pcs []uintptr }

// Here returns the place of the call. It costs about a microsecond.
func Here() *Site {
	pcs := make([]uintptr, 32)
	return &Site{pcs[:runtime.Callers(2, pcs)]}
}

// String returns the file and line of the first caller outside of the packages of isOurs, and the
// name of the calling function.
func (s *Site) String() string {
	frames := runtime.CallersFrames(s.pcs)
	for {
		f, more := frames.Next()
		if !more || !isOurs(f) {
			return fmt.Sprintf("%s:%d (%s)", f.File, f.Line, f.Function)
		}
	}
}

const root = "github.com/puregpu/puregpu/runtime/"

// isOurs reports whether a frame is code of package gpu, collective or interop, or of an internal
// package of the runtime, and not of a test.
func isOurs(f runtime.Frame) bool {
	name, ok := strings.CutPrefix(f.Function, root)
	if !ok || strings.HasSuffix(f.File, "_test.go") {
		return false
	}
	for _, of := range []string{"gpu.", "collective.", "interop.", "internal/"} {
		if strings.HasPrefix(name, of) {
			return true
		}
	}
	return false
}

// A Reporter logs things that were dropped. Each device has a Reporter, which also serves the
// device's buffers and pools.
type Reporter struct {
	Log    *slog.Logger
	Device string
}

// Dropped reports that the program has dropped a thing without Close. thing is its type, such as
// "Buffer", and made is the place where the program made the thing. args are further attributes for
// the logger.
func (r *Reporter) Dropped(thing string, made *Site, args ...any) {
	r.Log.Warn("gpu: a "+thing+" was dropped without Close", append([]any{"made", made.String(), "device", r.Device}, args...)...)
}
