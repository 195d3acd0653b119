//go:build race

package runtime

import (
	std "runtime"
	"unsafe"
)

func RaceDisable() { std.RaceDisable() }
func RaceEnable()  { std.RaceEnable() }

func RaceWriteRange(addr unsafe.Pointer, n int) { std.RaceWriteRange(addr, n) }
