//go:build !linux

package gpu

import "time"

const canNap = false

func nap(time.Duration) {}
