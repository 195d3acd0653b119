// Package time replaces Go's in rewritten programs: its clock is virtual.
package time

import (
	std "time"

	"github.com/puregpu/puregpu/internal/explore"
)

type (
	Time     = std.Time
	Duration = std.Duration
	Month    = std.Month
	Location = std.Location
)

const (
	Nanosecond  = std.Nanosecond
	Microsecond = std.Microsecond
	Millisecond = std.Millisecond
	Second      = std.Second
	Minute      = std.Minute
	Hour        = std.Hour

	RFC3339     = std.RFC3339
	RFC3339Nano = std.RFC3339Nano
)

var UTC = std.UTC

func Unix(sec, nsec int64) Time                { return std.Unix(sec, nsec) }
func UnixMilli(ms int64) Time                  { return std.UnixMilli(ms) }
func ParseDuration(s string) (Duration, error) { return std.ParseDuration(s) }
func Now() Time                                { return explore.Now() }
func Since(t Time) Duration                    { return Now().Sub(t) }
func Until(t Time) Duration                    { return t.Sub(Now()) }
func Sleep(d Duration)                         { explore.Sleep(d) }
func After(d Duration) <-chan Time             { return NewTimer(d).C }

type Timer struct {
	C <-chan Time
	c chan Time
	t *explore.Timer
}

func NewTimer(d Duration) *Timer {
	c := make(chan Time, 1)
	return &Timer{C: c, c: c, t: explore.Call(d, func() { explore.Push(c, explore.Fired()) })}
}

func AfterFunc(d Duration, f func()) *Timer { return &Timer{t: explore.After(d, f)} }

// drain removes a value that the timer has sent and nobody has received, as Stop and Reset of Go's
// timers do.
func (t *Timer) drain() bool {
	if t.c == nil {
		return false
	}
	select {
	case <-t.c:
		return true
	default:
		return false
	}
}

func (t *Timer) Stop() bool {
	was := t.t.Stop()
	return t.drain() || was
}

func (t *Timer) Reset(d Duration) bool {
	was := t.t.Stop()
	was = t.drain() || was
	t.t.Reset(d)
	return was
}

type Ticker struct {
	C <-chan Time
	t *explore.Timer
}

func NewTicker(d Duration) *Ticker {
	if d <= 0 {
		panic("time: a ticker of no time")
	}
	c := make(chan Time, 1)
	k := &Ticker{C: c}
	k.t = explore.Call(d, func() {
		explore.Push(c, explore.Fired())
		k.again(d)
	})
	return k
}

// again restarts the timer. The goroutine whose step reached the timer's time calls this method.
// That call is not ordered after NewTicker, but is no race of the program.
//
//go:norace
func (k *Ticker) again(d Duration) { k.t.Again(d) }

func (k *Ticker) Stop()           { k.t.Stop() }
func Tick(d Duration) <-chan Time { return NewTicker(d).C }
