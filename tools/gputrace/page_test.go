package main

import (
	"slices"
	"testing"
	"time"

	"github.com/puregpu/puregpu/internal/traceformat"
	"github.com/puregpu/puregpu/internal/tracetest"
)

// TestCounterMax checks that the maximum of a counter on the page is the highest value of all its
// series, and 0 for a counter that was always 0.
func TestCounterMax(t *testing.T) {
	b := tracetest.New("counters", 0, 1, time.Unix(1, 0))
	pid := b.Device(0, "Model")
	b.Queue(pid, 0, "queue 0")
	sample := func(at traceformat.Time, parked, reserved, used int64) {
		for _, c := range []struct {
			name   string
			series []traceformat.Series
		}{
			{traceformat.CounterParked, []traceformat.Series{{Name: "operations", Value: parked}}},
			{traceformat.CounterPoolBytes, []traceformat.Series{{Name: "reserved", Value: reserved}, {Name: "used", Value: used}}},
		} {
			b.Events = append(b.Events, traceformat.Event{Phase: traceformat.Counter, Name: c.name, PID: pid, Time: at, Args: traceformat.Args{Series: c.series}})
		}
	}
	maxima := func() (list []int64) {
		tr := loaded(t, b.JSON())
		for _, c := range newPageData(tr, summarize(tr)).Counters {
			list = append(list, c.Max)
		}
		return list
	}
	sample(tracetest.Microsecond, 0, 0, 0)
	sample(2*tracetest.Microsecond, 0, 0, 0)
	if got := maxima(); !slices.Equal(got, []int64{0, 0}) {
		t.Errorf("every sample is 0, and the maxima are %v", got)
	}
	sample(3*tracetest.Microsecond, 1, 4096, 512)
	sample(4*tracetest.Microsecond, 0, 2048, 2048)
	if got := maxima(); !slices.Equal(got, []int64{1, 4096}) {
		t.Errorf("the maxima are %v, not 1 parked operation and 4096 bytes", got)
	}
}
