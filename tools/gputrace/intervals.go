package main

import (
	"cmp"
	"slices"

	"github.com/puregpu/puregpu/internal/traceformat"
)

// An interval is a stretch of time.
type interval struct{ begin, end traceformat.Time }

// union returns the time covered by any interval, as sorted intervals that do not touch. It sorts
// list.
func union(list []interval) []interval {
	slices.SortFunc(list, func(a, b interval) int { return cmp.Compare(a.begin, b.begin) })
	var out []interval
	for _, v := range list {
		if n := len(out); n > 0 && v.begin <= out[n-1].end {
			out[n-1].end = max(out[n-1].end, v.end)
		} else if v.end > v.begin {
			out = append(out, v)
		}
	}
	return out
}

// length returns the sum of the intervals' lengths.
func length(list []interval) (sum traceformat.Time) {
	for _, v := range list {
		sum += v.end - v.begin
	}
	return sum
}

// overlap returns the time that is in at least two of the intervals.
func overlap(list []interval) traceformat.Time {
	type edge struct {
		at   traceformat.Time
		step int
	}
	edges := make([]edge, 0, 2*len(list))
	for _, v := range list {
		if v.end > v.begin {
			edges = append(edges, edge{v.begin, 1}, edge{v.end, -1})
		}
	}
	slices.SortFunc(edges, func(a, b edge) int { return cmp.Compare(a.at, b.at) })
	var sum traceformat.Time
	depth := 0
	for i, e := range edges {
		if depth >= 2 {
			sum += e.at - edges[i-1].at
		}
		depth += e.step
	}
	return sum
}

// gaps returns the stretches of the interval within that no interval of list covers. list is a
// result of union.
func gaps(list []interval, within interval) []interval {
	var out []interval
	at := within.begin
	for _, v := range list {
		if v.begin > at {
			out = append(out, interval{at, min(v.begin, within.end)})
		}
		at = max(at, v.end)
		if at >= within.end {
			return out
		}
	}
	if within.end > at {
		out = append(out, interval{at, within.end})
	}
	return out
}

// A distribution describes durations.
type distribution struct {
	Count int              `json:"count"`
	Total traceformat.Time `json:"total_ns"`
	P50   traceformat.Time `json:"p50_ns"`
	P99   traceformat.Time `json:"p99_ns"`
	Max   traceformat.Time `json:"max_ns"`
}

// distributionOf sorts list, and returns the distribution of the durations in list.
func distributionOf(list []traceformat.Time) distribution {
	if len(list) == 0 {
		return distribution{}
	}
	slices.Sort(list)
	d := distribution{Count: len(list), P50: list[(len(list)-1)/2], P99: list[(len(list)-1)*99/100], Max: list[len(list)-1]}
	for _, v := range list {
		d.Total += v
	}
	return d
}
