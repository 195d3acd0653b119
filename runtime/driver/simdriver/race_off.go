//go:build !race

package simdriver

import "bytes"

func hush() {}

func unhush() {}

func copyUnseen(dst, src []byte)   { copy(dst, src) }
func equalUnseen(a, b []byte) bool { return bytes.Equal(a, b) }
