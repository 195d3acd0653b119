package loadtest_test

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/puregpu/puregpu/runtime/examples/llama/internal/engine"
	"github.com/puregpu/puregpu/runtime/examples/llama/internal/fakemodel"
	"github.com/puregpu/puregpu/runtime/examples/llama/internal/leaktest"
	"github.com/puregpu/puregpu/runtime/examples/llama/internal/loadtest"
	"github.com/puregpu/puregpu/runtime/examples/llama/internal/model"
	"github.com/puregpu/puregpu/runtime/examples/llama/internal/server"
)

// numbers is a decoder: a token's text is its number.
type numbers struct{}

func (numbers) Next(token int32) string { return fmt.Sprintf("%d ", token) }
func (numbers) Flush() string           { return "" }

// A faulty model changes a token, or fails, in a step that decodes three sequences or more.
type faulty struct {
	*fakemodel.Model
	fault string
}

func (f faulty) Run(p model.Plan, tokens []int32) (func(context.Context) error, error) {
	done, err := f.Model.Run(p, tokens)
	if len(p.Decode) < 3 || f.fault == "" {
		return done, err
	}
	return func(ctx context.Context) error {
		err := done(ctx)
		if f.fault == "break" {
			return fmt.Errorf("out of memory")
		}
		tokens[2] ^= 1
		return err
	}, err
}

// run runs a load test of a server with a fake model.
func run(t *testing.T, fault string, change func(*loadtest.Options), wrap func(http.Handler) http.Handler) (*loadtest.Report, error) {
	t.Helper()
	m := fakemodel.New(model.Info{Slots: 8, Pages: 60, PageTokens: 16, MaxTokens: 256, ChunkTokens: 16, Vocab: 1000})
	m.Step = func(model.Plan) (time.Duration, error, error) { return 100 * time.Microsecond, nil, nil }
	e := engine.New(faulty{m, fault}, engine.Options{})
	defer e.Shutdown(t.Context())
	s := server.New(server.Options{
		Engine: e, Model: "fake", Decoder: func() server.Decoder { return numbers{} },
		Log: slog.New(slog.DiscardHandler),
	})
	hs := httptest.NewServer(wrap(s))
	defer hs.Close()
	o := loadtest.Options{URL: hs.URL, Clients: 12, Duration: 100 * time.Millisecond, Each: 8, Questions: 10, Prompt: 40, Tokens: 40, Vocab: 1000, Seed: 1}
	change(&o)
	r, err := loadtest.Run(t.Context(), o)
	if err := m.Err(); err != nil {
		t.Error(err)
	}
	return r, err
}

func same(h http.Handler) http.Handler { return h }

// TestGood checks that a good server passes, with cancelled and impossible requests too.
func TestGood(t *testing.T) {
	leaktest.Check(t)
	r, err := run(t, "", func(o *loadtest.Options) { o.Cancel, o.Bad = .3, .1 }, same)
	if err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	r.Print(&b)
	if err := r.Err(); err != nil || r.Complete < 10 || r.Cancelled == 0 || r.Bad == 0 || r.Tokens == 0 || r.First.Quantile(.5) == 0 {
		t.Errorf("error %v, report:\n%s", err, &b)
	}
	if !strings.Contains(b.String(), "0 wrong, 0 lost, 0 failed") {
		t.Errorf("the report counts wrong, lost or failed requests:\n%s", b.String())
	}
}

// TestFaults checks that a load test finds wrong tokens, failed models, and streams without their
// last event.
func TestFaults(t *testing.T) {
	leaktest.Check(t)
	var requests atomic.Int32
	cut := func(h http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.Method == "POST" && requests.Add(1) > 10 {
				w = &cutter{ResponseWriter: w}
			}
			h.ServeHTTP(w, r)
		})
	}
	for name, test := range map[string]struct {
		fault string
		wrap  func(http.Handler) http.Handler
		want  string
		count func(r *loadtest.Report) uint64
	}{
		"wrong": {"change", same, "are equal", func(r *loadtest.Report) uint64 { return r.Wrong }},
		"error": {"break", same, "out of memory", func(r *loadtest.Report) uint64 { return r.Failed }},
		"lost":  {"", cut, "no end", func(r *loadtest.Report) uint64 { return r.Lost }},
	} {
		t.Run(name, func(t *testing.T) {
			r, err := run(t, test.fault, func(*loadtest.Options) {}, test.wrap)
			if err != nil {
				t.Fatal(err)
			}
			if err := r.Err(); err == nil || !strings.Contains(err.Error(), test.want) || test.count(r) == 0 {
				t.Errorf("error %v, want %q", err, test.want)
			}
		})
	}
}

// A cutter leaves out the last event of a stream.
type cutter struct{ http.ResponseWriter }

func (c *cutter) Unwrap() http.ResponseWriter { return c.ResponseWriter }

func (c *cutter) Write(b []byte) (int, error) {
	if strings.Contains(string(b), "[DONE]") {
		return len(b), nil
	}
	return c.ResponseWriter.Write(b)
}

// TestOptions checks that Run refuses options that are out of range.
func TestOptions(t *testing.T) {
	for name, change := range map[string]func(*loadtest.Options){
		"clients":   func(o *loadtest.Options) { o.Clients = 0 },
		"questions": func(o *loadtest.Options) { o.Questions = 0 },
		"prompt":    func(o *loadtest.Options) { o.Prompt = 0 },
		"tokens":    func(o *loadtest.Options) { o.Tokens = -1 },
		"vocab":     func(o *loadtest.Options) { o.Vocab = 1 << 31 },
	} {
		if _, err := run(t, "", change, same); err == nil || !strings.Contains(err.Error(), "must be from 1") {
			t.Errorf("option %s: error %v", name, err)
		}
	}
}

// TestUnreachable checks the error if there is no server.
func TestUnreachable(t *testing.T) {
	leaktest.Check(t)
	_, err := run(t, "", func(o *loadtest.Options) { o.URL = "http://127.0.0.1:1" }, same)
	if err == nil || !strings.Contains(err.Error(), "question 0 alone") {
		t.Errorf("no server: error %v", err)
	}
}
