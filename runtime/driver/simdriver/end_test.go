package simdriver

import (
	"testing"
	"testing/synctest"
	"time"
)

// TestAwaitEnd waits for streams of a lost device that are at something for a minute, as they may be on a machine that has much to do: for
// a copy to the end, for it touches memory, and not for the program's code, which may go on for ever.
func TestAwaitEnd(t *testing.T) {
	plain, watched := new(Driver), &Driver{executed: func(Executed) {}}
	for _, c := range []struct {
		what string
		d    *Driver
		code code
		want time.Duration
	}{
		{"a copy", plain, codeCopy, time.Minute},
		{"an exchange", plain, codeCollect, time.Minute},
		{"a kernel", plain, codeLaunch, lastMoment},
		{"a graph", plain, codeLaunchGraph, lastMoment},
		{"a copy, after which the program is called", watched, codeCopy, lastMoment},
	} {
		synctest.Test(t, func(t *testing.T) {
			s := &stream{ended: make(chan struct{})}
			s.executing.Store((&operation{code: c.code}).kind(c.d))
			time.AfterFunc(time.Minute, func() { close(s.ended) })
			began := time.Now()
			s.awaitEnd(false)
			if took := time.Since(began); took != c.want {
				t.Errorf("%s: waited for %v, want %v", c.what, took, c.want)
			}
			<-s.ended
		})
	}
}
