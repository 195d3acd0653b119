package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"time"
	"unicode"

	"github.com/puregpu/puregpu/runtime/examples/llama/internal/engine"
	"github.com/puregpu/puregpu/runtime/examples/llama/internal/loadtest"
	"github.com/puregpu/puregpu/runtime/examples/llama/internal/model"
	"github.com/puregpu/puregpu/runtime/examples/llama/internal/server"
	"github.com/puregpu/puregpu/runtime/metrics"
)

type serveSettings struct {
	addr     string
	queue    int
	requests int
	timeout  time.Duration
	grace    time.Duration
}

func (p *program) serveFlags() {
	s := &p.serving
	p.StringVar(&s.addr, "addr", "localhost:8080", "`host:port` to listen at")
	p.IntVar(&s.queue, "queue", 256, "largest `number` of requests that wait for a slot")
	p.IntVar(&s.requests, "requests", 512, "largest `number` of requests in progress")
	p.DurationVar(&s.timeout, "timeout", 5*time.Minute, "`time` for a request")
	p.DurationVar(&s.grace, "grace", 30*time.Second, "`time` for requests in progress when the server ends")
}

func (p *program) serve(ctx context.Context) error {
	p.warm()
	return p.with(ctx, func(ctx context.Context) error {
		l, err := net.Listen("tcp", p.serving.addr)
		if err != nil {
			return err
		}
		p.log.Info("serving", "url", fmt.Sprintf("http://%v/v1/completions", l.Addr()), "model", p.name(), "device", p.deviceName(),
			"pages", p.runner.Info().Pages, "started_in", time.Since(started).Round(time.Millisecond))
		return p.newServer().Serve(ctx, l, p.serving.grace)
	})
}

// warm has [model.Open] make the recordings for steps of all sizes, so that no request waits for
// one.
func (p *program) warm() {
	most := p.options.Slots
	if most <= 0 || most > model.MaxRows {
		most = model.MaxRows
	}
	for n := 1; n < most; n *= 2 {
		p.options.Warm = append(p.options.Warm, n)
	}
	p.options.Warm, p.options.WarmPrompts = append(p.options.Warm, most), true
}

// newServer makes a server with an engine on the model.
func (p *program) newServer() *server.Server {
	return server.New(server.Options{
		Engine:  engine.New(p.runner, engine.Options{Queue: p.serving.queue}),
		Encode:  func(text string) ([]int32, error) { return p.tokenizer.Encode(text, true) },
		Decoder: func() server.Decoder { return p.tokenizer.NewDecoder() },
		Stop:    p.stopTokens(), Model: p.name(), Log: p.log, Metrics: &metrics.Source{Devices: p.devices},
		Requests: p.serving.requests, Timeout: p.serving.timeout,
	})
}

type generateSettings struct {
	tokens      int
	temperature float64
	topP        float64
	topK        int
	seed        uint64
}

func (p *program) generateFlags() {
	g := &p.generating
	p.IntVar(&g.tokens, "n", 64, "largest `number` of tokens")
	p.Float64Var(&g.temperature, "temperature", 0, "0 takes the most likely token")
	p.Float64Var(&g.topP, "top-p", 1, "choose from the most likely tokens with this `probability` together")
	p.IntVar(&g.topK, "top-k", 0, "choose from this `number` of the most likely tokens; 0 for all")
	p.Uint64Var(&g.seed, "seed", 1, "`number` that chooses the tokens if the temperature is above 0")
}

func (p *program) generate(ctx context.Context) error {
	prompt := strings.Join(p.Args(), " ")
	if prompt == "" {
		prompt = "Once upon a time"
	}
	return p.with(ctx, func(ctx context.Context) (err error) {
		tokens, err := p.tokenizer.Encode(prompt, true)
		if err != nil {
			return err
		}
		e := engine.New(p.runner, engine.Options{})
		defer func() { err = errors.Join(err, e.Shutdown(context.WithoutCancel(ctx))) }()
		g, decoder := &p.generating, p.tokenizer.NewDecoder()
		request := engine.Request{Prompt: tokens, MaxTokens: g.tokens, Stop: p.stopTokens(), Sampling: model.Sampling{
			Temperature: float32(g.temperature), TopP: float32(g.topP), TopK: int32(g.topK), Seed: g.seed,
		}}
		n, begin, first := 0, time.Now(), time.Time{}
		for token, err := range e.Generate(ctx, request) {
			if err != nil {
				return err
			}
			if n++; n == 1 {
				first = time.Now()
			}
			fmt.Fprint(p.out, printable(decoder.Next(token)))
		}
		fmt.Fprintln(p.out, printable(decoder.Flush()))
		took := "no time"
		if n > 1 {
			took = (time.Since(first) / time.Duration(n-1)).Round(time.Microsecond).String()
		}
		fmt.Fprintf(p.err, "llama: %d tokens on %s: the first after %v, %v after the start of the process, each further one in %s\n", n,
			p.deviceName(), first.Sub(begin).Round(time.Microsecond), first.Sub(started).Round(time.Millisecond), took)
		return nil
	})
}

// printable replaces characters that could control the terminal. It keeps newlines and tabs.
func printable(text string) string {
	return strings.Map(func(r rune) rune {
		if r == '\n' || r == '\t' || unicode.IsPrint(r) {
			return r
		}
		return unicode.ReplacementChar
	}, text)
}

func (p *program) loadFlags() {
	p.serveFlags()
	o := &p.loading
	p.StringVar(&o.URL, "url", "", "`address` of a running server with -invariant, such as http://localhost:8080 (default: a server of this process)")
	p.IntVar(&o.Clients, "clients", 8, "`number` of clients")
	p.DurationVar(&o.Duration, "duration", 10*time.Second, "`time` under load")
	p.IntVar(&o.Questions, "questions", 32, "`number` of different requests, which are first sent one by one")
	p.IntVar(&o.Prompt, "prompt", 64, "largest `number` of tokens of a prompt")
	p.IntVar(&o.Tokens, "tokens", 64, "largest `number` of tokens of an answer")
	p.IntVar(&o.Vocab, "vocab", 256, "`number` of tokens that prompts are made of")
	p.Float64Var(&o.Cancel, "cancel", 0, "`share` of requests that clients cancel at a random token")
	p.Float64Var(&o.Bad, "bad", 0, "`share` of requests for more tokens than the server has")
	p.Uint64Var(&o.Seed, "seed", 1, "`number` that chooses the requests")
}

func (p *program) load(ctx context.Context) error {
	o := p.loading
	o.Progress = p.err
	test := func(ctx context.Context) error {
		r, err := loadtest.Run(ctx, o)
		if err != nil {
			return err
		}
		r.Print(p.out)
		return r.Err()
	}
	if o.URL != "" {
		return test(ctx)
	}
	p.options.Invariant = true
	p.warm()
	return p.with(ctx, func(ctx context.Context) error {
		l, err := net.Listen("tcp", "localhost:0")
		if err != nil {
			return err
		}
		o.URL = "http://" + l.Addr().String()
		serving, stop := context.WithCancel(ctx)
		ended := make(chan error, 1)
		s := p.newServer()
		go func() { ended <- s.Serve(serving, l, p.serving.grace) }()
		err = test(ctx)
		stop()
		if err = errors.Join(err, <-ended); err == nil {
			fmt.Fprintf(p.out, "llama: %d clients on %s: ok\n", o.Clients, p.deviceName())
		}
		return err
	})
}
