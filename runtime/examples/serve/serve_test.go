package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/puregpu/puregpu/runtime/driver"
	"github.com/puregpu/puregpu/runtime/driver/simdriver"
	"github.com/puregpu/puregpu/runtime/gpu"
)

// newTestServer makes a server on a simulated GPU.
func newTestServer(t *testing.T, c simdriver.Config, requests int, timeout time.Duration) (*simdriver.Driver, *server) {
	t.Helper()
	c.Kernels = kernels
	d := simdriver.New(c)
	o := gpu.Options{Queues: 4}
	m, err := newModel(t.Context(), d, o, newNetwork(sizes...))
	if err != nil {
		t.Fatal(err)
	}
	return d, newServer(m, requests, timeout)
}

// end closes the model, and reports memory that requests or the model have leaked.
func end(t *testing.T, d *simdriver.Driver, s *server) {
	t.Helper()
	idle(t, s)
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	if err := s.model.close(ctx); err != nil {
		t.Error(err)
	}
	if left := d.Leaks(); len(left) > 0 {
		t.Errorf("leaked: %v", left)
	}
}

// idle checks that all memory is back in the pool when the device's work has completed, and that no
// request holds a slot.
func idle(t *testing.T, s *server) {
	t.Helper()
	var used uint64
	for range 1000 {
		for i := range s.model.dev.Queues() {
			if err := s.model.dev.Queue(i).Flush(); err != nil { // polls for completed work
				t.Fatal(err)
			}
		}
		stats, err := s.model.pool.Stats()
		if err != nil {
			t.Fatal(err)
		}
		if used = stats.Used; used == 0 {
			break
		}
		time.Sleep(time.Millisecond)
	}
	if used != 0 {
		t.Errorf("%d bytes of the pool are used", used)
	}
	if n := len(s.slots); n != 0 {
		t.Errorf("%d requests are counted, and none is there", n)
	}
}

// post sends a request directly, without a network.
func post(ctx context.Context, s *server, input []float32) *httptest.ResponseRecorder {
	body, err := json.Marshal(question{input})
	if err != nil {
		panic(err)
	}
	w := httptest.NewRecorder()
	s.handler().ServeHTTP(w, httptest.NewRequestWithContext(ctx, "POST", "/infer", bytes.NewReader(body)))
	return w
}

// get requests the server's readiness, and returns the status.
func get(s *server) int {
	w := httptest.NewRecorder()
	s.handler().ServeHTTP(w, httptest.NewRequest("GET", "/ready", nil))
	return w.Code
}

// TestConcurrent checks the answers to 200 requests at the same time. Every other request is
// cancelled at a random moment within 20 ms, unless the request is answered earlier. No memory and
// no goroutine may be left.
func TestConcurrent(t *testing.T) {
	hip := simdriver.HIPCaps()
	for name, caps := range map[string]*driver.Caps{"like CUDA": nil, "like HIP": &hip} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				d, s := newTestServer(t, simdriver.Config{
					Caps: caps,
					Latency: map[simdriver.Op]time.Duration{
						simdriver.OpLaunch: 100 * time.Microsecond, simdriver.OpUpload: 30 * time.Microsecond,
						simdriver.OpNewEvent: 100 * time.Microsecond, // so slow that submissions wait for events, and can be cancelled before they are issued
					},
				}, 200, time.Minute)
				start := time.Now()
				var mu sync.Mutex
				codes := map[int]int{}
				var wg sync.WaitGroup
				for i := range 200 {
					wg.Go(func() {
						ctx := t.Context()
						if i%2 == 1 {
							var cancel context.CancelFunc
							ctx, cancel = context.WithCancel(ctx)
							defer time.AfterFunc(rand.N(20*time.Millisecond), cancel).Stop()
							defer cancel()
						}
						input := newInput(i)
						w := post(ctx, s, input)
						if w.Code == http.StatusOK {
							if err := check(input, w.Body.Bytes()); err != nil {
								t.Errorf("request %d: %v", i, err)
							}
						} else if ctx.Err() == nil {
							t.Errorf("request %d: %d %s", i, w.Code, w.Body)
						}
						mu.Lock()
						codes[w.Code]++
						mu.Unlock()
					})
				}
				wg.Wait()
				t.Logf("statuses %v in %v", codes, time.Since(start))
				if codes[http.StatusOK] < 100 || codes[499] == 0 {
					t.Errorf("statuses %v, want 200 of those that were not cancelled, and 499 of some that were", codes)
				}
				end(t, d, s)
			})
		})
	}
}

// stalled runs a test with a server whose device starts no work until the device is resumed. After
// the test, stalled resumes the device and closes the server.
func stalled(t *testing.T, requests int, timeout time.Duration, test func(t *testing.T, d *simdriver.Driver, s *server)) {
	synctest.Test(t, func(t *testing.T) {
		d, s := newTestServer(t, simdriver.Config{}, requests, timeout)
		if err := d.StallDevice(0); err != nil {
			t.Fatal(err)
		}
		test(t, d, s)
		if err := d.ResumeDevice(0); err != nil {
			t.Fatal(err)
		}
		end(t, d, s)
	})
}

func TestTooMany(t *testing.T) {
	stalled(t, 2, time.Minute, func(t *testing.T, d *simdriver.Driver, s *server) {
		var wg sync.WaitGroup
		for range 2 {
			wg.Go(func() {
				if w := post(t.Context(), s, newInput(0)); w.Code != http.StatusOK {
					t.Errorf("%d %s, want 200", w.Code, w.Body)
				}
			})
		}
		synctest.Wait()
		if w := post(t.Context(), s, newInput(0)); w.Code != http.StatusServiceUnavailable || w.Header().Get("Retry-After") == "" {
			t.Errorf("%d %s, want 503 and when to come again", w.Code, w.Body)
		}
		if code := get(s); code != http.StatusOK {
			t.Errorf("/ready: %d, want 200", code)
		}
		if err := d.ResumeDevice(0); err != nil {
			t.Error(err)
		}
		wg.Wait()
	})
}

func TestDeadline(t *testing.T) {
	stalled(t, 2, 3*time.Second, func(t *testing.T, _ *simdriver.Driver, s *server) {
		start := time.Now()
		if w := post(t.Context(), s, newInput(0)); w.Code != http.StatusGatewayTimeout {
			t.Errorf("%d %s, want 504", w.Code, w.Body)
		}
		if took := time.Since(start); took != 3*time.Second {
			t.Errorf("took %v, want 3 s", took)
		}
	})
}

// TestLost checks that running and later requests and /ready get 503 once the device is lost.
func TestLost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d, s := newTestServer(t, simdriver.Config{}, 2, time.Minute)
		if err := d.StallDevice(0); err != nil {
			t.Fatal(err)
		}
		var wg sync.WaitGroup
		wg.Go(func() {
			if w := post(t.Context(), s, newInput(0)); w.Code != http.StatusServiceUnavailable {
				t.Errorf("the request under way: %d %s, want 503", w.Code, w.Body)
			}
		})
		synctest.Wait()
		if err := d.LoseDevice(0, errors.New("fell off the bus")); err != nil {
			t.Fatal(err)
		}
		wg.Wait()
		if w := post(t.Context(), s, newInput(0)); w.Code != http.StatusServiceUnavailable {
			t.Errorf("a later request: %d %s, want 503", w.Code, w.Body)
		}
		if code := get(s); code != http.StatusServiceUnavailable {
			t.Errorf("/ready: %d, want 503", code)
		}
		s.model.close(t.Context()) // returns the loss of the device as an error
		if left := d.Leaks(); len(left) > 0 {
			t.Errorf("leaked: %v", left)
		}
	})
}

// TestLostIdle checks that /ready gets 503 if the device is lost while no request is in progress.
func TestLostIdle(t *testing.T) {
	d, s := newTestServer(t, simdriver.Config{}, 1, time.Minute)
	if code := get(s); code != http.StatusOK {
		t.Errorf("/ready: %d, want 200", code)
	}
	if err := d.LoseDevice(0, errors.New("fell off the bus")); err != nil {
		t.Fatal(err)
	}
	if code := get(s); code != http.StatusServiceUnavailable {
		t.Errorf("/ready: %d, want 503", code)
	}
	s.model.close(t.Context())
}

func TestBadRequests(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d, s := newTestServer(t, simdriver.Config{}, 1, time.Minute)
		for _, test := range []struct {
			method, path, body string
			code               int
			text               string
		}{
			{"POST", "/infer", "{", 400, "unexpected EOF"},
			{"POST", "/infer", `{"input": [1, 2]}`, 400, "the input has 2 numbers, and the network takes 64"},
			{"POST", "/infer", strings.Repeat(" ", 1<<20+1), 400, "too large"},
			{"POST", "/infer", `{"input": [` + strings.Repeat("3e38, ", 63) + `3e38]}`, 422, "unsupported value"},
			{"GET", "/infer", "", 405, ""},
			{"GET", "/", "", 404, ""},
		} {
			w := httptest.NewRecorder()
			s.handler().ServeHTTP(w, httptest.NewRequest(test.method, test.path, strings.NewReader(test.body)))
			if w.Code != test.code || !strings.Contains(w.Body.String(), test.text) {
				t.Errorf("%s %s %.20q: %d %s, want %d %q", test.method, test.path, test.body, w.Code, w.Body, test.code, test.text)
			}
		}
		end(t, d, s)
	})
}

// TestServe checks the self-test, which sends requests over the network.
func TestServe(t *testing.T) {
	d, s := newTestServer(t, simdriver.Config{}, 200, time.Minute)
	if err := selftest(t.Context(), s, listen(t)); err != nil {
		t.Error(err)
	}
	if left := d.Leaks(); len(left) > 0 {
		t.Errorf("leaked: %v", left)
	}
}

// TestShutdown checks that the server shuts down within its deadline although the device does
// nothing and a client waits.
func TestShutdown(t *testing.T) {
	d, s := newTestServer(t, simdriver.Config{}, 1, time.Minute)
	if err := d.StallDevice(0); err != nil {
		t.Fatal(err)
	}
	l := listen(t)
	ctx, stop := context.WithCancel(t.Context())
	ended, answered := make(chan error, 1), make(chan error, 1)
	go func() { ended <- s.serve(ctx, l, 50*time.Millisecond) }()
	client := &http.Client{Transport: &http.Transport{}}
	go func() { answered <- ask(t.Context(), client, "http://"+l.Addr().String()+"/infer", 0) }()
	for len(s.slots) == 0 {
		time.Sleep(time.Millisecond)
	}
	stop()
	if err := <-ended; !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("the server ended with %v, want %v", err, context.DeadlineExceeded)
	}
	if err := <-answered; err == nil {
		t.Error("the request was answered")
	}
	client.CloseIdleConnections()
	if err := d.ResumeDevice(0); err != nil {
		t.Error(err)
	}
}

// TestSlowBody checks that a request ends and releases its slot if the client sends only a part of
// the body.
func TestSlowBody(t *testing.T) {
	d, s := newTestServer(t, simdriver.Config{}, 1, 200*time.Millisecond)
	l := listen(t)
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- s.serve(ctx, l, time.Minute) }()
	c, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if err := c.SetDeadline(time.Now().Add(20 * time.Second)); err != nil {
		t.Fatal(err)
	}
	fmt.Fprintf(c, "POST /infer HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n\r\n{")
	if b, err := io.ReadAll(c); err != nil || !strings.HasPrefix(string(b), "HTTP/1.1 400 ") {
		t.Errorf("%q, %v; want status 400", b, err)
	}
	if n := len(s.slots); n != 0 {
		t.Errorf("%d slots are taken", n)
	}
	stop()
	if err := <-ended; err != nil {
		t.Error(err)
	}
	if left := d.Leaks(); len(left) > 0 {
		t.Errorf("leaked: %v", left)
	}
}

func listen(t *testing.T) net.Listener {
	t.Helper()
	l, err := net.Listen("tcp", "localhost:0")
	if err != nil {
		t.Fatal(err)
	}
	return l
}
