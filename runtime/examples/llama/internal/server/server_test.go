package server_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
	"unicode/utf8"

	"github.com/puregpu/puregpu/runtime/examples/llama/internal/engine"
	"github.com/puregpu/puregpu/runtime/examples/llama/internal/fakemodel"
	"github.com/puregpu/puregpu/runtime/examples/llama/internal/model"
	"github.com/puregpu/puregpu/runtime/examples/llama/internal/server"
)

var info = model.Info{Slots: 4, Pages: 64, PageTokens: 16, MaxTokens: 512, ChunkTokens: 16, Vocab: 256}

// letters is a decoder of tokens that are bytes. It holds back incomplete characters.
type letters struct{ held []byte }

func encode(text string) ([]int32, error) {
	var tokens []int32
	for _, b := range []byte(text) {
		tokens = append(tokens, int32(b))
	}
	return tokens, nil
}

func (l *letters) Next(token int32) string {
	l.held = append(l.held, byte(token))
	if !utf8.FullRune(l.held) {
		return ""
	}
	return l.Flush()
}

func (l *letters) Flush() string {
	text := strings.ToValidUTF8(string(l.held), "\ufffd")
	l.held = nil
	return text
}

// A scripted model yields the bytes of a text, whatever the prompt is.
type scripted struct {
	*fakemodel.Model
	text string
	pos  map[int]int
}

func (s *scripted) Run(p model.Plan, tokens []int32) (func(context.Context) error, error) {
	done, err := s.Model.Run(p, tokens)
	slots := p.Decode
	for _, start := range p.Starts {
		s.pos[start.Slot] = 0
	}
	if p.Chunk != nil && p.Chunk.Last {
		slots = append(slices.Clone(slots), p.Chunk.Slot)
	}
	var bytes []byte
	for _, slot := range slots {
		bytes = append(bytes, s.text[s.pos[slot]%len(s.text)])
		s.pos[slot]++
	}
	return func(ctx context.Context) error {
		err := done(ctx)
		for i, b := range bytes {
			tokens[i] = int32(b)
		}
		return err
	}, err
}

// A rig is a server, on a network of pipes, and a client.
type rig struct {
	*server.Server
	m      *fakemodel.Model
	engine *engine.Engine
	client *http.Client
	log    bytes.Buffer
	stop   func()
	ended  chan error
}

// bubble runs a test with a server. At the end no goroutine and no request may be left.
func bubble(t *testing.T, text string, o server.Options, eo engine.Options, test func(t *testing.T, r *rig)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		r := &rig{m: fakemodel.New(info), ended: make(chan error, 1)}
		r.m.Step = func(model.Plan) (time.Duration, error, error) { return time.Millisecond, nil, nil }
		var runner model.Runner = r.m
		if text != "" {
			runner = &scripted{r.m, text, map[int]int{}}
		}
		r.engine = engine.New(runner, eo)
		o.Engine, o.Model, o.Encode = r.engine, "tiny", encode
		o.Decoder = func() server.Decoder { return new(letters) }
		o.Log = slog.New(slog.NewTextHandler(&r.log, &slog.HandlerOptions{Level: slog.LevelDebug}))
		r.Server = server.New(o)
		l := pipes{conns: make(chan net.Conn), closed: make(chan struct{})}
		tr := &http.Transport{DialContext: l.dial}
		r.client = &http.Client{Transport: tr}
		ctx, stop := context.WithCancel(t.Context())
		r.stop = stop
		go func() { r.ended <- r.Serve(ctx, &l, 10*time.Second) }()
		test(t, r)
		tr.CloseIdleConnections()
		stop()
		if err := <-r.ended; err != nil {
			t.Errorf("the server ended with %v", err)
		}
		if s := r.engine.Stats(); s.Running+s.Waiting+s.PagesUsed != 0 {
			t.Errorf("at the end of the test requests or pages are left: %+v", s)
		}
		if err := r.m.Err(); err != nil {
			t.Error(err)
		}
	})
}

// pipes is a network in memory.
type pipes struct {
	conns  chan net.Conn
	closed chan struct{}
	once   sync.Once
}

func (p *pipes) dial(ctx context.Context, _, _ string) (net.Conn, error) {
	client, far := net.Pipe()
	select {
	case p.conns <- far:
		return client, nil
	case <-p.closed:
		return nil, errors.New("connection refused")
	}
}

func (p *pipes) Accept() (net.Conn, error) {
	select {
	case c := <-p.conns:
		return c, nil
	case <-p.closed:
		return nil, net.ErrClosed
	}
}

func (p *pipes) Close() error   { p.once.Do(func() { close(p.closed) }); return nil }
func (p *pipes) Addr() net.Addr { return &net.TCPAddr{} }

func (r *rig) post(ctx context.Context, body string) (*http.Response, error) {
	q, err := http.NewRequestWithContext(ctx, "POST", "http://llama/v1/completions", strings.NewReader(body))
	if err != nil {
		return nil, err
	}
	return r.client.Do(q)
}

// ask returns the status and the body of an answer.
func (r *rig) ask(t *testing.T, body string) (int, string) {
	resp, err := r.post(t.Context(), body)
	if err != nil {
		t.Error(err)
		return 0, ""
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Error(err)
	}
	return resp.StatusCode, string(b)
}

func (r *rig) get(t *testing.T, path string) (int, string) {
	resp, err := r.client.Get("http://llama" + path)
	if err != nil {
		t.Error(err)
		return 0, ""
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Error(err)
	}
	return resp.StatusCode, string(b)
}

// An answer has the fields of a response, whole or summed over a stream.
type answer struct {
	Text, Finish string
	Tokens       []int32
	Usage        string
	Parts        int
	Done         bool
}

type part struct {
	ID, Object, Model string
	Created           int64
	Choices           []struct {
		Text   string
		Index  int
		Finish *string `json:"finish_reason"`
		Tokens []int32 `json:"token_ids"`
	}
	Usage json.RawMessage
	Error *struct{ Message, Type string }
}

func (a *answer) add(t *testing.T, b []byte) {
	var p part
	if err := json.Unmarshal(b, &p); err != nil {
		t.Errorf("%q: %v", b, err)
	}
	if p.Error != nil {
		a.Finish = "error: " + p.Error.Message
		return
	}
	if !strings.HasPrefix(p.ID, "cmpl-") || p.Object != "text_completion" || p.Model != "tiny" || p.Created == 0 {
		t.Errorf("%s", b)
	}
	for _, c := range p.Choices {
		a.Text += c.Text
		a.Tokens = append(a.Tokens, c.Tokens...)
		if c.Finish != nil {
			a.Finish += *c.Finish
		}
	}
	a.Usage += string(p.Usage)
	a.Parts++
}

func parse(t *testing.T, body string, stream bool) (a answer) {
	if !stream {
		a.add(t, []byte(body))
		a.Done = true
		return a
	}
	for line := range strings.Lines(body) {
		line = strings.TrimSpace(line)
		if line == "" {
			continue
		}
		data, ok := strings.CutPrefix(line, "data: ")
		switch {
		case a.Done || !ok:
			t.Errorf("%q", line)
		case data == "[DONE]":
			a.Done = true
		default:
			a.add(t, []byte(data))
		}
	}
	return a
}

// TestAnswers checks that answers, in one piece and streamed, have the model's tokens.
func TestAnswers(t *testing.T) {
	want := fakemodel.Answer([]int32{'a', 'b'}, model.Sampling{Temperature: .5, TopP: .9, TopK: 3, Seed: math.MaxUint64}, 256, 20)
	decoder := new(letters)
	text := ""
	for _, token := range want {
		text += decoder.Next(token)
	}
	text += decoder.Flush()
	usage := `{"prompt_tokens":2,"completion_tokens":20,"total_tokens":22}`
	for _, prompt := range []string{`"ab"`, `[97,98]`} {
		for _, stream := range []bool{false, true} {
			bubble(t, "", server.Options{}, engine.Options{}, func(t *testing.T, r *rig) {
				body := fmt.Sprintf(`{"model":"tiny","prompt":%s,"max_tokens":20,"temperature":0.5,"top_p":0.9,"top_k":3,"seed":-1,"n":1,"best_of":1,"echo":false,
					"logprobs":null,"suffix":null,"logit_bias":{},"presence_penalty":0,"user":"u","stop":null,"return_token_ids":true,"stream":%t`, prompt, stream)
				if stream {
					body += `,"stream_options":{"include_usage":true}`
				}
				code, got := r.ask(t, body+"}")
				a := parse(t, got, stream)
				if code != 200 || a.Text != text || !slices.Equal(a.Tokens, want) || a.Finish != "length" || a.Usage != usage || !a.Done {
					t.Errorf("status %d, body: %s", code, got)
				}
				if stream && a.Parts < 22 {
					t.Errorf("the stream has %d parts, want one for each of 20 tokens, the end and the usage", a.Parts)
				}
			})
		}
	}
}

// TestStop checks that answers end before stop strings, which may begin and end in different
// tokens, and before stop tokens.
func TestStop(t *testing.T) {
	const text = "one two tree three four \u00e4\u00f6\u00fc abcab"
	for _, test := range []struct {
		stop, want, finish string
		tokens             int // largest number
	}{
		{`"three"`, "one two tree ", "stop", 60},
		{`"three f"`, "one two tree ", "stop", 60},
		{`["zzz","tre","wo"]`, "one t", "stop", 60},
		{`["three x","\u00f6"]`, "one two tree three four \u00e4", "stop", 60},
		{`["o"]`, "", "stop", 60},
		{`"abcabx"`, text, "length", len(text)},
		{`["two t"]`, "one two ", "length", 8},
		{`["\u00c3"]`, text[:len("one two tree three four ")], "length", len("one two tree three four ")},
		{`["\u00fc abcab"]`, "one two tree three four \u00e4\u00f6", "stop", len(text)},
		{`["one two tree three four xxx", "four"]`, "one two tree three ", "stop", 60},
	} {
		for _, stream := range []bool{false, true} {
			bubble(t, text, server.Options{}, engine.Options{}, func(t *testing.T, r *rig) {
				code, got := r.ask(t, fmt.Sprintf(`{"prompt":"x","max_tokens":%d,"stream":%t,"stop":%s}`, test.tokens, stream, test.stop))
				if a := parse(t, got, stream); code != 200 || a.Text != test.want || a.Finish != test.finish || !a.Done {
					t.Errorf("stop %s: %d %q %s, want %q %s", test.stop, code, a.Text, a.Finish, test.want, test.finish)
				}
			})
		}
	}
	bubble(t, text, server.Options{Stop: []int32{'w', 'z'}}, engine.Options{}, func(t *testing.T, r *rig) {
		_, got := r.ask(t, `{"prompt":"x","max_tokens":50}`)
		if a := parse(t, got, false); a.Text != "one t" || a.Finish != "stop" || !strings.Contains(a.Usage, `"completion_tokens":5`) {
			t.Errorf("%s", got)
		}
	})
}

// TestRefusals checks the status and the error of bad requests.
func TestRefusals(t *testing.T) {
	bubble(t, "", server.Options{Body: 4000, Prompt: 30}, engine.Options{}, func(t *testing.T, r *rig) {
		for _, test := range []struct {
			body  string
			code  int
			param string // of the error
			text  string
		}{
			{`{`, 400, "", "unexpected EOF"},
			{`[]`, 400, "", "array"},
			{`{"prompt":"a"} {}`, 400, "", "after the object"},
			{`{"prompt":"a","tools":[]}`, 400, "", `"tools"`},
			{`{"prompt":"` + strings.Repeat("a", 4000) + `"}`, 413, "", "4000 bytes"},
			{`{"prompt":"` + strings.Repeat("a", 31) + `"}`, 400, "prompt", "31 tokens"},
			{`{"prompt":["a","b"]}`, 400, "prompt", "one string or one array"},
			{`{"prompt":{}}`, 400, "prompt", "one string or one array"},
			{`{"prompt":""}`, 400, "", "the prompt is empty"},
			{`{}`, 400, "", "the prompt is empty"},
			{`{"prompt":[256]}`, 400, "", "token 256"},
			{`{"prompt":"a","model":"huge"}`, 404, "model", `"huge" does not exist`},
			{`{"prompt":"a","max_tokens":0}`, 400, "", "0 tokens"},
			{`{"prompt":"a","max_tokens":10000}`, 400, "", "longer than the model's 512"},
			{`{"prompt":"a","temperature":2.5}`, 400, "temperature", "0 to 2"},
			{`{"prompt":"a","top_p":0}`, 400, "top_p", "above 0"},
			{`{"prompt":"a","top_k":-1}`, 400, "", "top-k"},
			{`{"prompt":"a","stop":5}`, 400, "stop", "string"},
			{`{"prompt":"a","stop":[""]}`, 400, "stop", "0 bytes"},
			{`{"prompt":"a","stop":["1","2","3","4","5"]}`, 400, "stop", "at most 4"},
			{`{"prompt":"a","stream_options":{}}`, 400, "stream_options", "only with stream"},
			{`{"prompt":"a","n":2}`, 400, "n", "not supported"},
			{`{"prompt":"a","best_of":2}`, 400, "best_of", "not supported"},
			{`{"prompt":"a","echo":true}`, 400, "echo", "not supported"},
			{`{"prompt":"a","logprobs":0}`, 400, "logprobs", "not supported"},
			{`{"prompt":"a","suffix":"s"}`, 400, "suffix", "not supported"},
			{`{"prompt":"a","presence_penalty":1}`, 400, "presence_penalty", "not supported"},
			{`{"prompt":"a","frequency_penalty":-1}`, 400, "frequency_penalty", "not supported"},
			{`{"prompt":"a","logit_bias":{"5":1}}`, 400, "logit_bias", "not supported"},
			{`{"prompt":"a","seed":"x"}`, 400, "", "seed"},
		} {
			code, got := r.ask(t, test.body)
			var f struct {
				Error *struct {
					Message, Type string
					Param         *string
				}
			}
			if err := json.Unmarshal([]byte(got), &f); err != nil || f.Error == nil {
				t.Errorf("%.80s: status %d, and the body is not an error: %s", test.body, code, got)
				continue
			}
			param := ""
			if f.Error.Param != nil {
				param = *f.Error.Param
			}
			if code != test.code || f.Error.Type != "invalid_request_error" || param != test.param || !strings.Contains(f.Error.Message, test.text) {
				t.Errorf("%.80s: %d %s, want %d about %q", test.body, code, got, test.code, test.text)
			}
		}
		for path, want := range map[string]int{"/v1/completions": 405, "/": 404, "/v1/chat/completions": 404} {
			if code, _ := r.get(t, path); code != want {
				t.Errorf("%s: %d, want %d", path, code, want)
			}
		}
	})
}

// TestBusy checks that a request gets 429 if the queue or the server is full.
func TestBusy(t *testing.T) {
	for name, limits := range map[string]struct {
		o  server.Options
		eo engine.Options
	}{
		"queue":    {server.Options{}, engine.Options{Queue: 1}},
		"requests": {server.Options{Requests: 5}, engine.Options{}},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, "", limits.o, limits.eo, func(t *testing.T, r *rig) {
				var all sync.WaitGroup
				for range 5 { // four run, one waits
					all.Go(func() {
						if code, got := r.ask(t, `{"prompt":"a","max_tokens":100}`); code != 200 {
							t.Errorf("status %d, body: %s", code, got)
						}
					})
					time.Sleep(3 * time.Millisecond)
				}
				resp, err := r.post(t.Context(), `{"prompt":"a"}`)
				if err != nil {
					t.Fatal(err)
				}
				defer resp.Body.Close()
				if resp.StatusCode != 429 || resp.Header.Get("Retry-After") == "" {
					t.Errorf("%s %v, want 429 and when to come again", resp.Status, resp.Header)
				}
				all.Wait()
			})
		})
	}
}

// TestDisconnect checks that the pages of requests whose clients disconnect are soon free, and that
// other requests go on.
func TestDisconnect(t *testing.T) {
	bubble(t, "", server.Options{}, engine.Options{}, func(t *testing.T, r *rig) {
		var all sync.WaitGroup
		for i := range 12 {
			all.Go(func() {
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				if i%2 == 0 {
					time.AfterFunc(time.Duration(5+i)*time.Millisecond, cancel)
				}
				resp, err := r.post(ctx, fmt.Sprintf(`{"prompt":"a","max_tokens":50,"stream":%t}`, i%4 < 2))
				var b []byte
				if err == nil {
					b, err = io.ReadAll(resp.Body)
					resp.Body.Close()
				}
				if i%2 == 0 && !errors.Is(err, context.Canceled) {
					t.Errorf("a cancelled request: %v %s", err, b)
				}
				if i%2 == 1 && (err != nil || resp.StatusCode != 200) {
					t.Errorf("a request that is not cancelled: error %v, body: %s", err, b)
				}
			})
		}
		all.Wait()
		time.Sleep(5 * time.Millisecond)
		if s := r.engine.Stats(); s.Complete != 6 || s.Cancelled != 6 || s.Running != 0 || s.PagesUsed != 0 {
			t.Errorf("the engine's stats are %+v", s)
		}
		if code, text := r.get(t, "/healthz"); code != 200 || text != "ok\n" {
			t.Errorf("status %d, body: %s", code, text)
		}
	})
}

// TestTimeout checks the answers to requests that take longer than Options.Timeout.
func TestTimeout(t *testing.T) {
	bubble(t, "", server.Options{Timeout: 25 * time.Millisecond}, engine.Options{}, func(t *testing.T, r *rig) {
		code, got := r.ask(t, `{"prompt":"a","max_tokens":100}`)
		if code != 504 || !strings.Contains(got, "25ms") {
			t.Errorf("status %d, body: %s", code, got)
		}
		code, got = r.ask(t, `{"prompt":"a","max_tokens":100,"stream":true,"return_token_ids":true}`)
		if a := parse(t, got, true); code != 200 || a.Done || !strings.Contains(a.Finish, "error: ") || len(a.Tokens) < 10 {
			t.Errorf("status %d, body: %s", code, got)
		}
	})
}

// TestSlowBody checks that a request whose body does not end gets 408 after 30 seconds.
func TestSlowBody(t *testing.T) {
	bubble(t, "", server.Options{}, engine.Options{}, func(t *testing.T, r *rig) {
		body, writer := io.Pipe()
		defer writer.Close()
		begin := time.Now()
		q := httptest.NewRequest("POST", "http://llama/v1/completions", body)
		q.RequestURI = ""
		resp, err := r.client.Do(q)
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		if d := time.Since(begin); resp.StatusCode != 408 || d != 30*time.Second {
			t.Errorf("status %s after %v, want 408 after 30s", resp.Status, d)
		}
	})
}

// TestSlowReader checks that a request ends if its client stops reading, and delays no other
// request.
func TestSlowReader(t *testing.T) {
	bubble(t, "", server.Options{Timeout: time.Second}, engine.Options{}, func(t *testing.T, r *rig) {
		resp, err := r.post(t.Context(), `{"prompt":"a","max_tokens":500,"stream":true,"return_token_ids":true}`)
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		if _, err := bufio.NewReaderSize(resp.Body, 16).ReadString('\n'); err != nil {
			t.Fatal(err)
		}
		if code, got := r.ask(t, `{"prompt":"a","max_tokens":100}`); code != 200 {
			t.Errorf("status %d, body: %s", code, got)
		}
		time.Sleep(2 * time.Minute)
		if b, err := io.ReadAll(resp.Body); err == nil && bytes.Contains(b, []byte("[DONE]")) {
			t.Error("the stream is complete")
		}
		if _, text := r.get(t, "/metrics"); !strings.Contains(text, "puregpu_llama_requests_in_progress 0\n") {
			t.Errorf("a request is left:\n%s", text)
		}
	})
}

// TestUnread checks that a stream whose client does not read counts as 499 once a write fails, and
// is not logged as an error.
func TestUnread(t *testing.T) {
	bubble(t, "", server.Options{}, engine.Options{}, func(t *testing.T, r *rig) {
		w := &unwritable{header: http.Header{}}
		r.ServeHTTP(w, httptest.NewRequest("POST", "/v1/completions", strings.NewReader(`{"prompt":"a","max_tokens":50,"stream":true}`)))
		if _, text := r.get(t, "/metrics"); !strings.Contains(text, `puregpu_llama_responses_total{code="499"} 1`) {
			t.Errorf("the metrics count no response with 499:\n%s", text)
		}
		if strings.Contains(r.log.String(), "level=ERROR") {
			t.Errorf("the log has an error:\n%s", &r.log)
		}
	})
}

// An unwritable is the ResponseWriter of a client that does not read.
type unwritable struct{ header http.Header }

func (w *unwritable) Header() http.Header       { return w.header }
func (w *unwritable) WriteHeader(int)           {}
func (w *unwritable) Write([]byte) (int, error) { return 0, os.ErrDeadlineExceeded }
func (w *unwritable) Flush()                    {}

// TestBroken checks that requests, also later ones, and /healthz answer with the model's error once
// the model has failed.
func TestBroken(t *testing.T) {
	bubble(t, "", server.Options{}, engine.Options{}, func(t *testing.T, r *rig) {
		lost := fmt.Errorf("the device fell off the bus: %w", context.DeadlineExceeded)
		left := 30
		r.m.Step = func(model.Plan) (time.Duration, error, error) {
			if left--; left > 0 {
				return time.Millisecond, nil, nil
			}
			return 0, lost, nil
		}
		var all sync.WaitGroup
		for i := range 8 {
			all.Go(func() {
				stream := i%2 == 0
				code, got := r.ask(t, fmt.Sprintf(`{"prompt":"a","max_tokens":100,"stream":%t}`, stream))
				if code != 503 && !(stream && code == 200) || !strings.Contains(got, lost.Error()) || strings.Contains(got, "[DONE]") {
					t.Errorf("status %d, body: %s", code, got)
				}
			})
		}
		all.Wait()
		if code, got := r.ask(t, `{"prompt":"a"}`); code != 503 || !strings.Contains(got, lost.Error()) {
			t.Errorf("a later request: %d %s", code, got)
		}
		if code, got := r.get(t, "/healthz"); code != 503 || !strings.Contains(got, lost.Error()) {
			t.Errorf("/healthz: %d %s", code, got)
		}
		if !strings.Contains(r.log.String(), "level=ERROR") {
			t.Errorf("the log has no error:\n%s", &r.log)
		}
	})
}

// TestShutdown checks that the server answers requests in progress when it shuts down, and no new
// ones.
func TestShutdown(t *testing.T) {
	bubble(t, "", server.Options{}, engine.Options{}, func(t *testing.T, r *rig) {
		var all sync.WaitGroup
		for i := range 6 {
			all.Go(func() {
				stream := i%2 == 0
				code, got := r.ask(t, fmt.Sprintf(`{"prompt":"a","max_tokens":100,"stream":%t}`, stream))
				if a := parse(t, got, stream); code != 200 || a.Finish != "length" || !a.Done {
					t.Errorf("status %d, body: %s", code, got)
				}
			})
		}
		time.Sleep(20 * time.Millisecond)
		r.stop()
		synctest.Wait()
		if _, err := r.post(t.Context(), `{"prompt":"a"}`); err == nil {
			t.Error("a new request is answered")
		}
		all.Wait()
	})
}

// TestMetrics checks the metrics and the list of models.
func TestMetrics(t *testing.T) {
	bubble(t, "", server.Options{}, engine.Options{}, func(t *testing.T, r *rig) {
		r.ask(t, `{"prompt":"abc","max_tokens":9}`)
		r.ask(t, `{"prompt":"a","max_tokens":9,"stream":true}`)
		r.ask(t, `{`)
		code, text := r.get(t, "/metrics")
		for _, line := range []string{
			`puregpu_llama_responses_total{code="200"} 2`, `puregpu_llama_responses_total{code="400"} 1`,
			`puregpu_llama_requests_total{end="length"} 2`, `puregpu_llama_tokens_total{kind="prompt"} 4`,
			`puregpu_llama_tokens_total{kind="generated"} 18`, `puregpu_llama_queue_length 0`, `puregpu_llama_running 0`,
			`puregpu_llama_pages 64`, `puregpu_llama_pages_used 0`, `puregpu_llama_batch_size_count 16`,
			`puregpu_llama_first_token_seconds_count 2`, `puregpu_llama_next_token_seconds_count 16`,
			`puregpu_llama_next_token_seconds_bucket{le="+Inf"} 16`, `# TYPE puregpu_device_lost gauge`,
		} {
			if !strings.Contains(text, line+"\n") {
				t.Errorf("the metrics have no line %q", line)
			}
		}
		if code != 200 || !strings.HasSuffix(text, "# EOF\n") || t.Failed() {
			t.Errorf("%d\n%s", code, text)
		}
		if code, text := r.get(t, "/v1/models"); code != 200 || !strings.Contains(text, `"id":"tiny"`) {
			t.Errorf("status %d, body: %s", code, text)
		}
	})
}
