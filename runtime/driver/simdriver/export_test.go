package simdriver

import "github.com/puregpu/puregpu/runtime/driver"

// EncodeFloat rounds x to a type that is none of Go's.
func EncodeFloat(t driver.ElementType, x float64) uint64 { return format(t).encode(x) }

// DecodeFloat returns the number that a code of such a type is.
func DecodeFloat(t driver.ElementType, code uint64) float64 { return format(t).decode(code) }
