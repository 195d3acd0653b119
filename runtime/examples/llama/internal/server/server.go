// Package server answers HTTP requests for completions, in the format of OpenAI's API.
package server

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"sync"
	"time"

	"github.com/puregpu/puregpu/runtime/examples/llama/internal/engine"
	"github.com/puregpu/puregpu/runtime/metrics"
)

// Options configure a server. Engine, Encode and Decoder are required.
type Options struct {
	Engine  *engine.Engine
	Encode  func(text string) ([]int32, error)
	Decoder func() Decoder // makes a Decoder for each request
	Stop    []int32        // tokens that end a sequence

	Model    string          // the model's name for clients
	Metrics  *metrics.Source // of the devices; may be nil
	Log      *slog.Logger    // nil means slog.Default()
	Body     int64           // the largest request in bytes; 0 means 1 MiB
	Prompt   int             // the largest number of tokens of a prompt; 0 means what the model allows
	Requests int             // the largest number of requests in progress; 0 means 512
	Timeout  time.Duration   // for a request; 0 means 5 minutes
}

// A Decoder turns tokens into text. It holds back a character until all of its bytes have come.
type Decoder interface {
	Next(token int32) string
	Flush() string
}

// A Server is an http.Handler.
type Server struct {
	Options
	mux     *http.ServeMux
	slots   chan struct{} // one element for each request in progress
	started time.Time

	mu    sync.Mutex     // protects the following field
	codes map[int]uint64 // number of responses by HTTP status
}

const readTimeout = 30 * time.Second // for the body of a request

// New returns a server.
func New(o Options) *Server {
	if o.Log == nil {
		o.Log = slog.Default()
	}
	if o.Metrics == nil {
		o.Metrics = new(metrics.Source)
	}
	if o.Body == 0 {
		o.Body = 1 << 20
	}
	if o.Prompt == 0 {
		o.Prompt = o.Engine.Info().MaxTokens
	}
	if o.Requests == 0 {
		o.Requests = 512
	}
	if o.Timeout == 0 {
		o.Timeout = 5 * time.Minute
	}
	s := &Server{Options: o, mux: http.NewServeMux(), slots: make(chan struct{}, o.Requests), started: time.Now(), codes: map[int]uint64{}}
	s.mux.HandleFunc("POST /v1/completions", s.completions)
	s.mux.HandleFunc("GET /v1/models", s.models)
	s.mux.HandleFunc("GET /healthz", s.health)
	s.mux.HandleFunc("GET /metrics", s.metrics)
	return s
}

func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) { s.mux.ServeHTTP(w, r) }

// Serve serves until the context ends or the listener fails. Then it refuses new requests, waits
// for requests in progress, at most for the duration in grace, cancels the rest, and shuts down the
// engine.
func (s *Server) Serve(ctx context.Context, l net.Listener, grace time.Duration) error {
	hs := &http.Server{
		Handler:           s,
		ReadHeaderTimeout: 10 * time.Second,
		WriteTimeout:      s.Timeout + readTimeout + 10*time.Second, // for a client that stops reading
		IdleTimeout:       2 * time.Minute,
		MaxHeaderBytes:    64 << 10,
		ErrorLog:          slog.NewLogLogger(s.Log.Handler(), slog.LevelDebug),
	}
	ended := make(chan error, 1)
	go func() { ended <- hs.Serve(l) }()
	var err error
	select {
	case err = <-ended:
	case <-ctx.Done():
		s.Log.Info("shutting down", "requests", len(s.slots))
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), grace)
	defer cancel()
	stopped := make(chan error, 1)
	go func() { stopped <- s.Engine.Shutdown(ctx) }()
	if late := hs.Shutdown(ctx); late != nil {
		err = errors.Join(err, late, hs.Close()) // Close ends the contexts of requests
	}
	return errors.Join(err, <-stopped)
}

// health answers a load balancer: 503 if the engine takes no requests.
func (s *Server) health(w http.ResponseWriter, r *http.Request) {
	if err := s.Engine.Err(); err != nil {
		http.Error(w, err.Error(), http.StatusServiceUnavailable)
		return
	}
	fmt.Fprintln(w, "ok")
}

func (s *Server) models(w http.ResponseWriter, r *http.Request) {
	type entry struct {
		ID      string `json:"id"`
		Object  string `json:"object"`
		Created int64  `json:"created"`
		OwnedBy string `json:"owned_by"`
	}
	s.write(w, http.StatusOK, map[string]any{
		"object": "list",
		"data":   []entry{{s.Model, "model", s.started.Unix(), "puregpu"}},
	})
}

// write answers with a JSON object.
func (s *Server) write(w http.ResponseWriter, code int, v any) {
	s.count(code)
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	json.NewEncoder(w).Encode(v) // an error means that the client has disconnected
}

func (s *Server) count(code int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.codes[code]++
}

// A failure is an answer with an error, as OpenAI's API formats it.
type failure struct {
	code    int     // HTTP status
	Message string  `json:"message"`
	Type    string  `json:"type"`
	Param   *string `json:"param"`
	Code    *string `json:"code"`
}

func (f *failure) Error() string { return f.Message }

// invalid returns the answer to a bad request. param is the name of the wrong field, or empty.
func invalid(param, format string, args ...any) *failure {
	f := &failure{code: http.StatusBadRequest, Message: fmt.Sprintf(format, args...), Type: "invalid_request_error"}
	if param != "" {
		f.Param = &param
	}
	return f
}

// errUnread means that the client has disconnected or stopped reading.
var errUnread = errors.New("the client does not read the answer")

// explain turns an error into an answer.
func (s *Server) explain(r *http.Request, err error) *failure {
	if f, ok := errors.AsType[*failure](err); ok {
		return f
	}
	f := &failure{Message: err.Error(), Type: "server_error"}
	switch {
	case r.Context().Err() != nil, errors.Is(err, errUnread): // a nonstandard status, for logs and metrics
		f.code = 499
	case errors.Is(err, engine.ErrInvalid):
		return invalid("", "%v", err)
	case errors.Is(err, engine.ErrBusy):
		f.code, f.Type = http.StatusTooManyRequests, "rate_limit_error"
	case errors.Is(err, engine.ErrClosed), errors.Is(err, engine.ErrBroken):
		f.code = http.StatusServiceUnavailable
	case errors.Is(err, context.DeadlineExceeded): // the request's deadline; the model's is an ErrBroken
		f.code, f.Message = http.StatusGatewayTimeout, fmt.Sprintf("the answer is not complete within %v", s.Timeout)
	default:
		f.code = http.StatusInternalServerError
	}
	return f
}

// refuse answers with an error.
func (s *Server) refuse(w http.ResponseWriter, r *http.Request, err error) {
	f := s.explain(r, err)
	if f.code == http.StatusTooManyRequests || f.code == http.StatusServiceUnavailable {
		w.Header().Set("Retry-After", "1")
	}
	s.logEnd(r, f.code, f)
	s.write(w, f.code, map[string]any{"error": f})
}

// logEnd logs the end of a request, at level error if the status is 500 or more.
func (s *Server) logEnd(r *http.Request, code int, err error, args ...any) {
	level := slog.LevelDebug
	if code >= 500 {
		level = slog.LevelError
	}
	if err != nil {
		args = append(args, "error", err)
	}
	s.Log.Log(r.Context(), level, "request", append([]any{"path", r.URL.Path, "client", r.RemoteAddr, "status", code}, args...)...)
}
