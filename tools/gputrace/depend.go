package main

import (
	"cmp"
	"slices"

	"github.com/puregpu/puregpu/internal/traceformat"
)

// semaphore names a semaphore of a program.
type semaphore struct {
	program int
	number  uint64
}

type signaller struct {
	value uint64
	node  node
}

// link adds an edge to each wait from the signal that released it: the signal of the same semaphore
// with the lowest sufficient value. A wait for 0 is satisfied from the start.
func (t *trace) link() {
	signallers := map[semaphore][]signaller{}
	add := func(program int, n node, points []traceformat.Point) {
		for _, p := range points {
			k := semaphore{program, p.Semaphore}
			signallers[k] = append(signallers[k], signaller{p.Value, n})
		}
	}
	for i := range t.subs {
		add(t.subs[i].program, node{false, i}, t.subs[i].args.Signals)
	}
	for i := range t.slices {
		if s := &t.slices[i]; s.cat == traceformat.CatCall && s.sub < 0 {
			add(t.tracks[s.track].program, node{true, i}, s.args.Signals)
		}
	}
	for _, list := range signallers {
		slices.SortStableFunc(list, func(a, b signaller) int { return cmp.Compare(a.value, b.value) })
	}
	wait := func(program int, n node, points []traceformat.Point) {
		var before []node
		for _, p := range points {
			if p.Value == 0 {
				continue
			}
			list := signallers[semaphore{program, p.Semaphore}]
			i, _ := slices.BinarySearchFunc(list, p.Value, func(s signaller, v uint64) int { return cmp.Compare(s.value, v) })
			if i == len(list) || list[i].node == n || slices.Contains(before, list[i].node) {
				continue
			}
			before = append(before, list[i].node)
			t.edges = append(t.edges, edge{list[i].node, n})
		}
	}
	for i := range t.subs {
		wait(t.subs[i].program, node{false, i}, t.subs[i].args.Waits)
	}
	for i := range t.slices {
		if s := &t.slices[i]; s.sub < 0 && (s.cat == traceformat.CatWait || s.cat == traceformat.CatCall) {
			wait(t.tracks[s.track].program, node{true, i}, s.args.Waits)
		}
	}
}

// befores returns, for each node with waits, the nodes whose signals released these waits.
func (t *trace) befores() map[node][]node {
	m := make(map[node][]node, len(t.edges))
	for _, e := range t.edges {
		m[e.to] = append(m[e.to], e.from)
	}
	return m
}
