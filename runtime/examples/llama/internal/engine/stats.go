package engine

import "slices"

// Stats are the state of an engine, and counts since New.
type Stats struct {
	Waiting, Running int // requests now
	Pages, PagesUsed int // of the cache, now

	// Ended requests, by the reason of the end.
	Stopped   uint64 // at a stop token
	Complete  uint64 // with as many tokens as they asked for
	Cancelled uint64 // by their contexts or readers
	Failed    uint64 // because the model failed or refused a plan, or Shutdown's context ended
	Refused   uint64 // never accepted

	PromptTokens uint64 // computed tokens of prompts
	Tokens       uint64 // tokens returned
	Dropped      uint64 // tokens computed for sequences that had ended

	Batch      Histogram // sequences decoded in a step
	FirstToken Histogram // seconds from a request to its first token
	NextToken  Histogram // seconds from a token to the next of its sequence
}

func newStats() Stats {
	seconds := []float64{.0005, .001, .002, .003, .005, .0075, .01, .02, .03, .05, .1, .2, .5, 1, 2, 5, 10, 30}
	return Stats{
		Batch:      newHistogram(1, 2, 4, 8, 16, 32, 64),
		FirstToken: newHistogram(seconds...),
		NextToken:  newHistogram(seconds...),
	}
}

// A Histogram counts values in buckets.
type Histogram struct {
	Bounds []float64 // bucket i has the values up to Bounds[i] that are in no earlier bucket
	Counts []uint64  // of each bucket; the last bucket has the values above all bounds
	Sum    float64
}

func newHistogram(bounds ...float64) Histogram {
	return Histogram{Bounds: bounds, Counts: make([]uint64, len(bounds)+1)}
}

func (h *Histogram) add(v float64) {
	i, _ := slices.BinarySearch(h.Bounds, v)
	h.Counts[i]++
	h.Sum += v
}
