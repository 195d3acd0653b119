//go:build race

package runtime

import std "runtime"

func RaceDisable() { std.RaceDisable() }
func RaceEnable()  { std.RaceEnable() }
