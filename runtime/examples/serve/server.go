package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"time"

	"github.com/puregpu/puregpu/runtime/gpu"
)

// A server answers requests with a model.
type server struct {
	model   *model
	timeout time.Duration // limit for each request
	slots   chan struct{} // one element for each request in progress
}

// newServer makes a server that handles up to the given number of requests at once, and refuses
// more.
func newServer(m *model, requests int, timeout time.Duration) *server {
	return &server{model: m, timeout: timeout, slots: make(chan struct{}, requests)}
}

func (s *server) handler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("POST /infer", s.infer)
	mux.HandleFunc("GET /ready", s.ready)
	return mux
}

// A question and an answer, as JSON.
type (
	question struct {
		Input []float32 `json:"input"`
	}
	answer struct {
		Output []float32 `json:"output"`
	}
)

func (s *server) infer(w http.ResponseWriter, r *http.Request) {
	select {
	case s.slots <- struct{}{}:
		defer func() { <-s.slots }()
	default:
		w.Header().Set("Retry-After", "1")
		http.Error(w, "too many requests are under way", http.StatusServiceUnavailable)
		return
	}
	var q question
	if err := json.NewDecoder(http.MaxBytesReader(w, r.Body, 1<<20)).Decode(&q); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	if n := s.model.inputs(); len(q.Input) != n {
		http.Error(w, fmt.Sprintf("the input has %d numbers, and the network takes %d", len(q.Input), n), http.StatusBadRequest)
		return
	}
	ctx, cancel := context.WithTimeout(r.Context(), s.timeout)
	defer cancel()
	output, err := s.model.infer(ctx, q.Input)
	if err != nil {
		s.fail(w, r, err)
		return
	}
	text, err := json.Marshal(answer{output})
	if err != nil { // JSON has no infinity and no NaN
		http.Error(w, err.Error(), http.StatusUnprocessableEntity)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	w.Write(text)
}

// fail answers a request that has failed.
func (s *server) fail(w http.ResponseWriter, r *http.Request, err error) {
	switch {
	case r.Context().Err() != nil: // the client disconnected: a nonstandard status, for logs
		w.WriteHeader(499)
	case errors.Is(err, context.DeadlineExceeded):
		http.Error(w, fmt.Sprintf("no answer within %v", s.timeout), http.StatusGatewayTimeout)
	case errors.Is(err, gpu.ErrLost), errors.Is(err, gpu.ErrClosed), errors.Is(err, gpu.ErrOutOfMemory):
		slog.Error("the device cannot answer", "error", err)
		http.Error(w, "the device cannot answer", http.StatusServiceUnavailable)
	default:
		slog.Error("inference failed", "error", err)
		http.Error(w, "inference failed", http.StatusInternalServerError)
	}
}

// ready tells a load balancer whether to send requests.
func (s *server) ready(w http.ResponseWriter, r *http.Request) {
	if err := s.model.ready(); err != nil {
		http.Error(w, err.Error(), http.StatusServiceUnavailable)
		return
	}
	fmt.Fprintln(w, "ready")
}

// serve serves until the context ends or the listener fails. Then it accepts no more requests,
// waits up to grace for requests in progress, and closes the model.
func (s *server) serve(ctx context.Context, l net.Listener, grace time.Duration) error {
	// A request holds a slot while it is read, so reading has a deadline too.
	hs := &http.Server{Handler: s.handler(), ReadTimeout: s.timeout, IdleTimeout: 2 * time.Minute}
	ended := make(chan error, 1)
	go func() { ended <- hs.Serve(l) }()
	var err error
	select {
	case err = <-ended:
	case <-ctx.Done():
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), grace)
	defer cancel()
	if late := hs.Shutdown(ctx); late != nil {
		err = errors.Join(err, late, hs.Close()) // Close ends the contexts of requests
	}
	return errors.Join(err, s.model.close(ctx))
}
