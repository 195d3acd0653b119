package main

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"net/http"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/puregpu/puregpu/runtime/driver"
	"github.com/puregpu/puregpu/runtime/driver/simdriver"
	"github.com/puregpu/puregpu/runtime/examples/llama/internal/kernels"
)

// alone makes the test's processes forget a launcher.
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

// TestGenerate continues a text on one simulated GPU and on two. The same seed gives the same text.
func TestGenerate(t *testing.T) {
	alone(t)
	for _, flags := range [][]string{nil, {"-temperature", "0.8", "-top-p", "0.9", "-seed", "5"}, {"-tp", "2"}} {
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
	alone(t)
	out, _, err := llama(t.Context(), nil, "bench", "-sim", "-pages", "40", "-rows", "1,3", "-prompt", "20", "-steps", "4")
	if err != nil || !regexp.MustCompile(`(?m)^ +3 +[0-9.]+ +[0-9.]+ +[0-9]+$`).MatchString(out) {
		t.Errorf("%v\n%s", err, out)
	}
	if _, _, err := llama(t.Context(), nil, "bench", "-sim", "-pages", "40", "-rows", "64"); err == nil || !strings.Contains(err.Error(), "do not fit") {
		t.Errorf("too many rows: %v", err)
	}
}

func TestLoad(t *testing.T) {
	alone(t)
	out, text, err := llama(t.Context(), nil, "load", "-sim", "-slots", "4", "-pages", "24", "-duration", "1s", "-clients", "6", "-questions", "6",
		"-prompt", "30", "-tokens", "10", "-cancel", "0.3", "-bad", "0.1")
	if err != nil || !strings.Contains(out, "llama: 6 clients on Simulated GPU 0: ok") {
		t.Errorf("%v\n%s%s", err, out, text)
	}
}

// TestErrors checks errors that a user sees.
func TestErrors(t *testing.T) {
	alone(t)
	for _, test := range []struct {
		args, want string
	}{
		{"", flag.ErrHelp.Error()},
		{"chat", flag.ErrHelp.Error()},
		{"generate", "no -model"},
		{"generate -sim -model absent", "absent"},
		{"generate -sim -tp 0", "-tp 0"},
		{"generate -sim -tp 2 -ranks 2", "has one GPU"},
		{"generate -sim -rank 2 -ranks 2", "ranks begin at 0"},
		{"generate -sim -ranks 2", "cannot reach each other"},
		{"generate -sim -n 1000", "longer than the model's"},
		{"bench -sim -rows x", "-rows x"},
		{"serve -sim -addr nowhere", "nowhere"},
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

// TestServe serves with two ranks, until a signal.
func TestServe(t *testing.T) {
	alone(t)
	d := simdriver.New(simdriver.Config{Devices: 2, Kernels: kernels.Sim()})
	address, meet := freeAddress(t), freeAddress(t)
	ctx, stop := context.WithTimeout(t.Context(), 5*time.Minute)
	defer stop()
	var ranks sync.WaitGroup
	for rank := range 2 {
		ranks.Go(func() {
			_, text, err := llama(ctx, d, "serve", "-sim", "-slots", "4", "-pages", "40", "-addr", address,
				"-rank", fmt.Sprint(rank), "-ranks", "2", "-rendezvous", meet)
			if err != nil || strings.Contains(text, "level=ERROR") {
				t.Errorf("rank %d: %v\n%s", rank, err, text)
			}
		})
	}
	client := &http.Client{Transport: &http.Transport{}}
	for ready := false; !ready && ctx.Err() == nil; {
		resp, err := client.Get("http://" + address + "/healthz")
		if err != nil {
			time.Sleep(10 * time.Millisecond)
			continue
		}
		resp.Body.Close()
		ready = true
	}
	resp, err := client.Post("http://"+address+"/v1/completions", "application/json", strings.NewReader(`{"prompt": "hello", "max_tokens": 5}`))
	if err != nil {
		t.Fatal(err)
	}
	body, err := io.ReadAll(resp.Body)
	if resp.Body.Close(); err != nil || resp.StatusCode != 200 || !bytes.Contains(body, []byte(`"prompt_tokens":5`)) {
		t.Errorf("%v %s %s", err, resp.Status, body)
	}
	client.CloseIdleConnections()
	stop()
	ranks.Wait()
	if left := d.Leaks(); len(left) > 0 {
		t.Errorf("not given back: %v", left)
	}
	if !errors.Is(ctx.Err(), context.Canceled) {
		t.Error(ctx.Err())
	}
}
