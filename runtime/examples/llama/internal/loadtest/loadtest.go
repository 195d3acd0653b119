// Package loadtest loads a server with many clients, and checks each answer. It first asks each
// question alone. Under load the same question must get the same tokens, so the server's answers
// must not depend on the batch.
package loadtest

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"
)

// Options describe a load.
type Options struct {
	URL       string // of the server, such as http://localhost:8080
	Clients   int
	Duration  time.Duration
	Each      int     // each client sends at least this number of requests, even if they take longer than Duration
	Questions int     // the number of different requests
	Prompt    int     // the largest number of tokens of a prompt
	Tokens    int     // the largest number of tokens of an answer
	Vocab     int     // prompts have tokens below this
	Cancel    float64 // the share of requests that clients cancel at a random token
	Bad       float64 // the share of requests that ask for more tokens than the model allows
	Seed      uint64
	Transport http.RoundTripper // nil means a transport with a connection for each client
	Progress  io.Writer         // nil means none
}

// A Report has the results.
type Report struct {
	Complete, Cancelled, Bad uint64 // requests that ended as they should
	Wrong, Lost, Failed      uint64 // requests with another answer than when asked alone; with a stream that broke off; with an unexpected status
	Tokens                   uint64
	Took                     time.Duration
	First, Next              Times     // from request to first token, and from token to token
	Memory                   [3]uint64 // bytes of the server: before the load, after a quarter of the time, and at the end; 0: unknown
	Examples                 []string  // descriptions of some failures
}

// A load is a running test.
type load struct {
	Options
	client    *http.Client
	questions []question
	answers   []answer

	mu     sync.Mutex // protects what the clients write to the report
	report Report
}

// Run runs a test. The error says why the test could not be run. [Report.Err] says whether the
// server passed it.
func Run(ctx context.Context, o Options) (*Report, error) {
	if min(o.Clients, o.Questions, o.Prompt, o.Tokens, o.Vocab) < 1 || max(o.Prompt, o.Tokens, o.Vocab) > math.MaxInt32 {
		return nil, fmt.Errorf("%d clients, %d questions, prompts of %d tokens, answers of %d, tokens below %d: each must be from 1 to %d",
			o.Clients, o.Questions, o.Prompt, o.Tokens, o.Vocab, math.MaxInt32)
	}
	if o.Transport == nil {
		t := &http.Transport{MaxIdleConnsPerHost: o.Clients}
		defer t.CloseIdleConnections()
		o.Transport = t
	}
	if o.Progress == nil {
		o.Progress = io.Discard
	}
	l := &load{Options: o, client: &http.Client{Transport: o.Transport}}
	r := rand.New(rand.NewPCG(o.Seed, 0))
	for range o.Questions {
		l.questions = append(l.questions, l.newQuestion(r))
	}
	begin := time.Now()
	for i, q := range l.questions {
		a := l.ask(ctx, q, -1)
		if a.err != nil {
			return nil, fmt.Errorf("question %d alone: %w", i, a.err)
		}
		l.answers = append(l.answers, a)
	}
	fmt.Fprintf(o.Progress, "%d questions alone took %v\n", o.Questions, time.Since(begin).Round(time.Millisecond))
	l.report.Memory[0] = l.memory(ctx)

	begin = time.Now()
	ctx, cancel := context.WithTimeout(ctx, o.Duration)
	defer cancel()
	var all sync.WaitGroup
	for c := range o.Clients {
		all.Go(func() {
			r := rand.New(rand.NewPCG(o.Seed, uint64(c)+1))
			for n := 0; n < o.Each || ctx.Err() == nil; n++ {
				l.request(context.WithoutCancel(ctx), r)
			}
		})
	}
	select {
	case <-time.After(o.Duration / 4):
		l.report.Memory[1] = l.memory(ctx)
	case <-ctx.Done():
	}
	all.Wait()
	l.report.Took = time.Since(begin)
	l.report.Memory[2] = l.memory(context.WithoutCancel(ctx))
	return &l.report, nil
}

// request sends a random request and checks the answer.
func (l *load) request(ctx context.Context, r *rand.Rand) {
	i := r.IntN(len(l.questions))
	q, want, leave := l.questions[i], l.answers[i], -1
	kind := r.Float64()
	switch {
	case kind < l.Cancel:
		leave = r.IntN(q.MaxTokens)
		if leave == 0 {
			var cancel context.CancelFunc
			ctx, cancel = context.WithTimeout(ctx, time.Duration(r.IntN(20))*time.Millisecond)
			defer cancel()
		}
	case kind < l.Cancel+l.Bad:
		q.MaxTokens = math.MaxInt32
	}
	got := l.ask(ctx, q, leave)
	early := got.left || leave >= 0 && ctx.Err() != nil
	status, _ := errors.AsType[*statusError](got.err)

	l.mu.Lock()
	defer l.mu.Unlock()
	p := &l.report
	p.Tokens += uint64(len(got.tokens))
	for i, d := range got.times {
		if i == 0 {
			p.First.add(d)
		} else {
			p.Next.add(d)
		}
	}
	bad := q.MaxTokens == math.MaxInt32
	problem := ""
	switch {
	case bad && status != nil && status.code == http.StatusBadRequest:
		p.Bad++
	case bad:
		p.Failed++
		problem = "a request for too many tokens was not refused"
	case early && len(got.tokens) <= len(want.tokens) && slices.Equal(got.tokens, want.tokens[:len(got.tokens)]):
		p.Cancelled++
	case status != nil:
		p.Failed++
		problem = got.err.Error()
	case got.err != nil && !early:
		p.Lost++
		problem = got.err.Error()
	case !slices.Equal(got.tokens, want.tokens) || got.text != want.text || got.finish != want.finish:
		p.Wrong++
		at := 0
		for at < min(len(got.tokens), len(want.tokens)) && got.tokens[at] == want.tokens[at] {
			at++
		}
		problem = fmt.Sprintf("%d tokens ending by %q, alone %d by %q; the first %d are equal", len(got.tokens), got.finish, len(want.tokens), want.finish, at)
	default:
		p.Complete++
	}
	if problem != "" && len(p.Examples) < 10 {
		p.Examples = append(p.Examples, fmt.Sprintf("question %d: %s", i, problem))
	}
}

// Err returns an error if a request did not end as it should, or if no request is complete.
func (r *Report) Err() error {
	if n := r.Wrong + r.Lost + r.Failed; n > 0 {
		return fmt.Errorf("%d wrong, %d lost and %d failed requests, such as\n\t%s", r.Wrong, r.Lost, r.Failed, strings.Join(r.Examples, "\n\t"))
	}
	if r.Complete == 0 {
		return errors.New("no request is complete")
	}
	return nil
}

// Print prints a table.
func (r *Report) Print(w io.Writer) {
	s := r.Took.Seconds()
	fmt.Fprintf(w, "%d complete, %d cancelled, %d refused as wanted; %d wrong, %d lost, %d failed; in %.1f s\n",
		r.Complete, r.Cancelled, r.Bad, r.Wrong, r.Lost, r.Failed, s)
	fmt.Fprintf(w, "%.1f requests/s, %.0f tokens/s\n", float64(r.Complete)/s, float64(r.Tokens)/s)
	for _, line := range []struct {
		name string
		of   *Times
	}{{"first token", &r.First}, {"next token", &r.Next}} {
		p50, p99 := line.of.Quantile(.5), line.of.Quantile(.99)
		fmt.Fprintf(w, "%-12s p50 %8.3f ms  p99 %8.3f ms  ratio %.2f\n", line.name, ms(p50), ms(p99), float64(p99)/float64(max(p50, 1)))
	}
	if r.Memory[0] > 0 {
		fmt.Fprintf(w, "memory of the server: %.1f MB before, %.1f at a quarter, %.1f at the end\n",
			float64(r.Memory[0])/1e6, float64(r.Memory[1])/1e6, float64(r.Memory[2])/1e6)
	}
}

func ms(d time.Duration) float64 { return float64(d) / 1e6 }

// Times is a histogram of durations from 1 µs to 7 minutes. Each bucket is 1 % wider than the one
// before.
type Times struct {
	counts [2000]uint64
	n      uint64
}

func (t *Times) add(d time.Duration) {
	i := int(math.Log(max(float64(d)/1e3, 1)) / math.Log(1.01))
	t.counts[min(i, len(t.counts)-1)]++
	t.n++
}

// Quantile returns the duration that the given share of all durations does not exceed, with an
// error of at most 1 %.
func (t *Times) Quantile(share float64) time.Duration {
	left := share * float64(t.n)
	for i, n := range t.counts {
		if left -= float64(n); n > 0 && left <= 0 {
			return time.Duration(1e3 * math.Pow(1.01, float64(i)+.5))
		}
	}
	return 0
}
