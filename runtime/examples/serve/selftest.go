package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"net"
	"net/http"
	"sync"
	"time"
)

// selftest sends a server 200 requests at the same time, and cancels half of them at random
// moments. Then it shuts the server down.
func selftest(ctx context.Context, s *server, l net.Listener) error {
	const requests = 200
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	ended := make(chan error, 1)
	go func() { ended <- s.serve(ctx, l, 10*time.Second) }()
	client := &http.Client{Transport: &http.Transport{}}
	defer client.CloseIdleConnections()
	var wg sync.WaitGroup
	errs := make([]error, requests)
	for i := range errs {
		wg.Go(func() {
			ctx := ctx
			if i%2 == 1 {
				var cancel context.CancelFunc
				ctx, cancel = context.WithTimeout(ctx, rand.N(20*time.Millisecond))
				defer cancel()
			}
			if err := ask(ctx, client, "http://"+l.Addr().String()+"/infer", i); err != nil && ctx.Err() == nil {
				errs[i] = fmt.Errorf("request %d: %w", i, err)
			}
		})
	}
	wg.Wait()
	client.CloseIdleConnections()
	name := s.model.dev.Info().Name
	stop()
	if err := errors.Join(append(errs, <-ended)...); err != nil {
		return err
	}
	fmt.Printf("serve: %d requests, half of them cancelled, on %s: ok\n", requests, name)
	return nil
}

// ask sends a request and compares the answer with the host's.
func ask(ctx context.Context, client *http.Client, url string, seed int) error {
	input := newInput(seed)
	body, err := json.Marshal(question{input})
	if err != nil {
		return err
	}
	r, err := http.NewRequestWithContext(ctx, "POST", url, bytes.NewReader(body))
	if err != nil {
		return err
	}
	resp, err := client.Do(r)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		return err
	}
	if resp.StatusCode != http.StatusOK {
		return fmt.Errorf("%s: %s", resp.Status, bytes.TrimSpace(text))
	}
	return check(input, text)
}

// newInput makes an input from a seed.
func newInput(seed int) []float32 {
	r := rand.New(rand.NewPCG(uint64(seed), 7))
	input := make([]float32, sizes[0])
	for i := range input {
		input[i] = 2*r.Float32() - 1
	}
	return input
}

// check compares the answer to an input with the host's. They may differ a little, because the
// device rounds once where the host rounds twice.
func check(input []float32, text []byte) error {
	var a answer
	if err := json.Unmarshal(text, &a); err != nil {
		return err
	}
	x := input
	for _, l := range newNetwork(sizes...) {
		y := make([]float32, l.out)
		for j, sum := range l.b {
			for k, v := range l.w[j*l.in:][:l.in] {
				sum += v * x[k]
			}
			y[j] = max(sum, 0)
		}
		x = y
	}
	if len(a.Output) != len(x) {
		return fmt.Errorf("the answer has %d numbers, want %d", len(a.Output), len(x))
	}
	for i, want := range x {
		if !(math.Abs(float64(a.Output[i]-want)) <= 1e-4) {
			return fmt.Errorf("output %d is %v, want %v", i, a.Output[i], want)
		}
	}
	return nil
}
