package simdriver

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"
)

// TestAwaitEnd destroys streams of a lost device while an operation executes for a minute, as on a
// busy machine. DestroyStream waits until a copy has ended, because a copy touches memory. It waits
// only for a short time for code of the program, which may never return.
func TestAwaitEnd(t *testing.T) {
	for _, c := range []struct {
		what    string
		outside int32
		want    time.Duration
	}{
		{"a copy", 0, time.Minute},
		{"a kernel", 1, lastMoment},
	} {
		synctest.Test(t, func(t *testing.T) {
			s := &stream{ended: make(chan struct{})}
			s.outside.Store(c.outside)
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

// TestAwaitStop destroys one stream of a lost device while another stream still executes. If the
// other stream executes a copy, DestroyStream waits until the copy has ended. If the other stream
// executes code of the program, DestroyStream waits only for a short time.
func TestAwaitStop(t *testing.T) {
	for outside, want := range map[int32]time.Duration{0: time.Second, 1: lastMoment} {
		synctest.Test(t, func(t *testing.T) {
			d := New(Config{})
			v, err := d.Open(0)
			if err != nil {
				t.Fatal(err)
			}
			own, err := v.NewStream()
			other, err2 := v.NewStream()
			if err := errors.Join(err, err2); err != nil {
				t.Fatal(err)
			}
			s := d.streams.get(uintptr(other))
			s.executing.Store(true)
			s.outside.Store(outside)
			time.AfterFunc(time.Second, func() { s.executing.Store(false) })
			d.LoseDevice(0, nil)
			began := time.Now()
			v.DestroyStream(own)
			if took := time.Since(began); took < want || took > want+time.Millisecond {
				t.Errorf("waited for %v, want %v", took, want)
			}
			time.Sleep(time.Second)
			v.DestroyStream(other)
			v.Close()
		})
	}
}
