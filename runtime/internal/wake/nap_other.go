//go:build !linux

package wake

import "time"

const canNap = false

func nap(time.Duration) {}
