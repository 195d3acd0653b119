//go:build race

package runtime

import (
	std "runtime"
	"unsafe"
)

func RaceDisable() { std.RaceDisable() }
func RaceEnable()  { std.RaceEnable() }

func RaceReadRange(addr unsafe.Pointer, n int)  { std.RaceReadRange(addr, n) }
func RaceWriteRange(addr unsafe.Pointer, n int) { std.RaceWriteRange(addr, n) }
