// Package runtime replaces Go's in rewritten programs.
package runtime

import (
	std "runtime"

	"github.com/puregpu/puregpu/internal/explore"
)

const (
	GOOS   = std.GOOS
	GOARCH = std.GOARCH
)

type (
	Cleanup  = std.Cleanup
	Error    = std.Error
	Frame    = std.Frame
	Frames   = std.Frames
	MemStats = std.MemStats
)

func Gosched() {
	if !explore.Yield() {
		std.Gosched()
	}
}

// GOMAXPROCS always returns 4, on any machine.
func GOMAXPROCS(int) int { return 4 }

func NumCPU() int { return 4 }

func LockOSThread()                                                { explore.LockThread() }
func UnlockOSThread()                                              { explore.UnlockThread() }
func Goexit()                                                      { std.Goexit() }
func KeepAlive(x any)                                              { std.KeepAlive(x) }
func GC()                                                          { std.GC() }
func Version() string                                              { return std.Version() }
func Caller(skip int) (pc uintptr, file string, line int, ok bool) { return std.Caller(skip + 1) }
func Stack(buf []byte, all bool) int                               { return std.Stack(buf, all) }
func Callers(skip int, pc []uintptr) int                           { return std.Callers(skip+1, pc) }
func CallersFrames(callers []uintptr) *Frames                      { return std.CallersFrames(callers) }

// AddCleanup is Go's: cleanups run on one of Go's own goroutines, outside the run's schedule.
func AddCleanup[T, S any](ptr *T, cleanup func(S), arg S) Cleanup {
	return std.AddCleanup(ptr, cleanup, arg)
}
