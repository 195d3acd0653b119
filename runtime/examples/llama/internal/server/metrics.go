package server

import (
	"bytes"
	"fmt"
	"maps"
	"net/http"
	"os"
	"slices"
	"strconv"

	"github.com/puregpu/puregpu/runtime/examples/llama/internal/engine"
)

// metrics answers with the metrics of the server, the engine, the process and the devices, in the
// text format of OpenMetrics 1.0, which Prometheus reads.
func (s *Server) metrics(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "application/openmetrics-text; version=1.0.0; charset=utf-8")
	w.Write(s.text())
	s.Options.Metrics.ServeHTTP(w, r) // ends the text
}

// text returns the metrics of the server, the engine and the process.
func (s *Server) text() []byte {
	var b bytes.Buffer
	e := s.Engine.Stats()
	family := func(name, kind, unit, help string) {
		fmt.Fprintf(&b, "# TYPE %s %s\n", name, kind)
		if unit != "" {
			fmt.Fprintf(&b, "# UNIT %s %s\n", name, unit)
		}
		fmt.Fprintf(&b, "# HELP %s %s\n", name, help)
	}
	gauge := func(name, unit, help string, v int) {
		family(name, "gauge", unit, help)
		fmt.Fprintf(&b, "%s %d\n", name, v)
	}
	type sample struct {
		label string
		value uint64
	}
	counter := func(name, label, help string, samples ...sample) {
		family(name, "counter", "", help)
		for _, v := range samples {
			fmt.Fprintf(&b, "%s_total{%s=%q} %d\n", name, label, v.label, v.value)
		}
	}
	histogram := func(name, unit, help string, h engine.Histogram) {
		family(name, "histogram", unit, help)
		n := uint64(0)
		for i, c := range h.Counts {
			le := "+Inf"
			if i < len(h.Bounds) {
				le = strconv.FormatFloat(h.Bounds[i], 'g', -1, 64)
			}
			n += c
			fmt.Fprintf(&b, "%s_bucket{le=%q} %d\n", name, le, n)
		}
		fmt.Fprintf(&b, "%s_sum %v\n%s_count %d\n", name, h.Sum, name, n)
	}
	var responses []sample
	s.mu.Lock()
	for _, code := range slices.Sorted(maps.Keys(s.codes)) {
		responses = append(responses, sample{strconv.Itoa(code), s.codes[code]})
	}
	s.mu.Unlock()

	counter("puregpu_llama_responses", "code", "Responses by HTTP status; 499 means that the client has disconnected or stopped reading.", responses...)
	counter("puregpu_llama_requests", "end", "Requests of the engine by their ends. Stop strings and disconnects cancel.",
		sample{"stop", e.Stopped}, sample{"length", e.Complete}, sample{"cancelled", e.Cancelled}, sample{"failed", e.Failed}, sample{"refused", e.Refused})
	counter("puregpu_llama_tokens", "kind", "Tokens of prompts, tokens returned, and tokens computed in vain for sequences that had ended.",
		sample{"prompt", e.PromptTokens}, sample{"generated", e.Tokens}, sample{"dropped", e.Dropped})
	gauge("puregpu_llama_requests_in_progress", "", "Requests that the server holds.", len(s.slots))
	gauge("puregpu_llama_queue_length", "", "Requests that wait for a slot or for pages.", e.Waiting)
	gauge("puregpu_llama_running", "", "Requests that have a slot.", e.Running)
	gauge("puregpu_llama_pages", "", "Pages of the cache.", e.Pages)
	gauge("puregpu_llama_pages_used", "", "Pages of the cache that sequences have reserved.", e.PagesUsed)
	histogram("puregpu_llama_batch_size", "", "Sequences decoded in a step.", e.Batch)
	histogram("puregpu_llama_first_token_seconds", "seconds", "Time from a request to its first token.", e.FirstToken)
	histogram("puregpu_llama_next_token_seconds", "seconds", "Time from a token to the next of its sequence.", e.NextToken)
	if n := resident(); n > 0 {
		gauge("process_resident_memory_bytes", "bytes", "Memory of the process.", n)
	}
	return b.Bytes()
}

// resident returns the resident memory of the process in bytes, or 0 if the system does not tell.
func resident() int {
	text, err := os.ReadFile("/proc/self/statm")
	if err != nil {
		return 0
	}
	var all, pages int
	fmt.Sscan(string(text), &all, &pages)
	return pages * os.Getpagesize()
}
