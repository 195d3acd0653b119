package main

import (
	"syscall"
	"time"
)

// cpuTime returns the processor time of the process.
func cpuTime() time.Duration {
	var created, exited, kernel, user syscall.Filetime
	p, err := syscall.GetCurrentProcess()
	if err != nil || syscall.GetProcessTimes(p, &created, &exited, &kernel, &user) != nil {
		return 0
	}
	return ticks(kernel) + ticks(user)
}

// ticks converts a count of 100 ns. Filetime.Nanoseconds is only for dates.
func ticks(t syscall.Filetime) time.Duration {
	return time.Duration(uint64(t.HighDateTime)<<32|uint64(t.LowDateTime)) * 100
}
