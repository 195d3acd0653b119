package simdriver

import "syscall"

// threadID returns a function that returns the calling thread's id.
func threadID() func() int {
	p := syscall.NewLazyDLL("kernel32.dll").NewProc("GetCurrentThreadId")
	if p.Find() != nil {
		return nil
	}
	return func() int {
		id, _, _ := p.Call()
		return int(id)
	}
}
