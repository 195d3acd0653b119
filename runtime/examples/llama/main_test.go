package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/puregpu/puregpu/runtime/driver"
	"github.com/puregpu/puregpu/runtime/driver/simdriver"
	"github.com/puregpu/puregpu/runtime/examples/llama/internal/leaktest"
	"github.com/puregpu/puregpu/runtime/examples/llama/internal/model"
)

// alone clears the environment variables of launchers for the test.
func alone(t *testing.T) {
	for _, v := range []string{"RANK", "WORLD_SIZE", "PMI_RANK", "PMI_SIZE", "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", "SLURM_STEP_ID", "JOB_COMPLETION_INDEX"} {
		t.Setenv(v, "")
	}
}

func llama(ctx context.Context, d driver.Driver, args ...string) (out, err string, failed error) {
	var o, e bytes.Buffer
	failed = run(ctx, args, &o, &e, d)
	return o.String(), e.String(), failed
}

// TestGenerate checks that generate prints the same text each time, on one simulated GPU and on
// two.
func TestGenerate(t *testing.T) {
	leaktest.Check(t)
	alone(t)
	for _, flags := range [][]string{nil, {"-temperature", "0.8", "-top-p", "0.9", "-seed", "5"}, {"-tp", "2"}, {"-tp", "2", "-reduce", "collective"}} {
		var before string
		for range 2 {
			out, text, err := llama(t.Context(), nil, append(append([]string{"generate", "-sim", "-n", "12"}, flags...), "hello", "world")...)
			if err != nil || !strings.Contains(text, "Simulated GPU 0") || before != "" && out != before || len(out) < 2 {
				t.Errorf("%v: %v, printed %q, before %q\n%s", flags, err, out, before, text)
			}
			before = out
		}
	}
}

func TestBench(t *testing.T) {
	leaktest.Check(t)
	alone(t)
	out, _, err := llama(t.Context(), nil, "bench", "-sim", "-pages", "40", "-rows", "1,3", "-prompt", "20", "-steps", "4")
	if err != nil || !regexp.MustCompile(`(?m)^ +3 +[0-9.]+ +[0-9.]+ +[0-9]+$`).MatchString(out) {
		t.Errorf("error %v, printed:\n%s", err, out)
	}
	if _, _, err := llama(t.Context(), nil, "bench", "-sim", "-pages", "40", "-rows", "64"); err == nil || !strings.Contains(err.Error(), "do not fit") {
		t.Errorf("too many rows: %v", err)
	}
}

func TestLoad(t *testing.T) {
	leaktest.Check(t)
	alone(t)
	out, text, err := llama(t.Context(), nil, "load", "-sim", "-slots", "4", "-pages", "24", "-duration", "1s", "-clients", "6", "-questions", "6",
		"-prompt", "30", "-tokens", "10", "-cancel", "0.3", "-bad", "0.1")
	if err != nil || !strings.Contains(out, "llama: 6 clients on Simulated GPU 0: ok") {
		t.Errorf("%v\n%s%s", err, out, text)
	}
}

// TestErrors checks errors that a user sees.
func TestErrors(t *testing.T) {
	leaktest.Check(t)
	alone(t)
	for _, test := range []struct {
		args, want string
	}{
		{"", errUsage.Error()},
		{"chat", errUsage.Error()},
		{"generate", "no -model"},
		{"generate -sim -model absent", "absent"},
		{"generate -sim -tp 0", "-tp 0"},
		{"generate -sim -tp 2 -ranks 2", "has one GPU"},
		{"generate -sim -reduce sum", "-reduce sum"},
		{"generate -sim -reduce peer", "several GPUs"},
		{"generate -sim -rank 2 -ranks 2", "ranks begin at 0"},
		{"generate -sim -ranks 2", "cannot reach each other"},
		{"generate -sim -n 1000", "longer than the model's"},
		{"bench -sim -rows x", "-rows x"},
		{"bench -sim -prompt 9000000000000000000", "-prompt 9000000000000000000"},
		{"generate -sim -pages 1000000000000000", "1000000000000000 pages"},
		{"serve -sim -addr nowhere", "nowhere"},
		{"load -sim -prompt 0", "prompts of 0 tokens"},
		{"load -url http://127.0.0.1:1", "question 0 alone"},
	} {
		if _, _, err := llama(t.Context(), nil, strings.Fields(test.args)...); err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("llama %s: %v, want %q", test.args, err, test.want)
		}
	}
}

// freeAddress returns an address at which nobody listens.
func freeAddress(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().String()
}

// A service is two ranks that serve, each with a simulated GPU. Goroutines stand for the processes.
type service struct {
	d      *simdriver.Driver
	url    string
	client *http.Client
	stop   func()
	ranks  [2]chan error // each gets the error with which its rank ends
	logs   [2]string     // each is set before its rank ends
}

func serve(t *testing.T) *service {
	t.Helper()
	alone(t)
	address, meet := freeAddress(t), freeAddress(t)
	s := &service{
		d:   simdriver.New(simdriver.Config{Devices: 2, Kernels: model.Sim()}),
		url: "http://" + address, client: &http.Client{Transport: &http.Transport{}},
	}
	ctx, stop := context.WithTimeout(t.Context(), 5*time.Minute)
	t.Cleanup(stop)
	s.stop = stop
	for rank := range s.ranks {
		s.ranks[rank] = make(chan error, 1)
		go func() {
			_, text, err := llama(ctx, s.d, "serve", "-sim", "-slots", "4", "-pages", "80", "-addr", address,
				"-rank", fmt.Sprint(rank), "-ranks", "2", "-rendezvous", meet)
			s.logs[rank] = text
			s.ranks[rank] <- err
		}()
	}
	for ctx.Err() == nil {
		if resp, err := s.client.Get(s.url + "/healthz"); err == nil {
			resp.Body.Close()
			return s
		}
		time.Sleep(10 * time.Millisecond)
	}
	t.Fatal("the server does not start")
	return nil
}

// ask returns the status and the body of an answer.
func (s *service) ask(t *testing.T, body string) (int, string) {
	t.Helper()
	resp, err := s.client.Post(s.url+"/v1/completions", "application/json", strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Error(err)
	}
	return resp.StatusCode, string(b)
}

// TestServe checks that two ranks answer a request, and end without errors and leaks when their
// context ends.
func TestServe(t *testing.T) {
	leaktest.Check(t)
	s := serve(t)
	if code, body := s.ask(t, `{"prompt": "hello", "max_tokens": 5}`); code != 200 || !strings.Contains(body, `"prompt_tokens":5,"completion_tokens":5`) {
		t.Errorf("status %d, body: %s", code, body)
	}
	s.client.CloseIdleConnections()
	s.stop()
	for rank, ended := range s.ranks {
		if err := <-ended; err != nil || strings.Contains(s.logs[rank], "level=ERROR") {
			t.Errorf("rank %d: %v\n%s", rank, err, s.logs[rank])
		}
	}
	if left := s.d.Leaks(); len(left) > 0 {
		t.Errorf("objects are left on the devices: %v", left)
	}
}

// TestLostRank checks that running and later requests fail with an error about rank 1 once the GPU
// of rank 1 is lost, and that rank 0 still ends without an error.
func TestLostRank(t *testing.T) {
	leaktest.Check(t)
	s := serve(t)
	resp, err := s.client.Post(s.url+"/v1/completions", "application/json", strings.NewReader(`{"prompt": "hello", "max_tokens": 500, "stream": true}`))
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if err := s.d.LoseDevice(1, errors.New("fell off the bus")); err != nil {
		t.Fatal(err)
	}
	if body, err := io.ReadAll(resp.Body); err != nil || !bytes.Contains(body, []byte("rank 1")) || bytes.Contains(body, []byte("[DONE]")) {
		t.Errorf("the running request: error %v, body: %s", err, body)
	}
	if code, body := s.ask(t, `{"prompt": "hello"}`); code != 503 || !strings.Contains(body, "rank 1") {
		t.Errorf("a later request: %d %s", code, body)
	}
	if err := <-s.ranks[1]; err == nil || !strings.Contains(err.Error(), "fell off the bus") {
		t.Errorf("rank 1: %v", err)
	}
	s.client.CloseIdleConnections()
	s.stop()
	if err := <-s.ranks[0]; err != nil {
		t.Errorf("rank 0: %v", err)
	}
	if left := s.d.Leaks(); len(left) > 0 {
		t.Errorf("objects are left on the devices: %v", left)
	}
}
