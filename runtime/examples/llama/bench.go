package main

import (
	"context"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/puregpu/puregpu/runtime/examples/llama/internal/model"
)

type benchSettings struct {
	rows   string
	prompt int
	steps  int
}

func (p *program) benchFlags() {
	b := &p.benching
	p.StringVar(&b.rows, "rows", "1,16,64", "`numbers` of sequences that are decoded together")
	p.IntVar(&b.prompt, "prompt", 512, "`number` of tokens of each prompt")
	p.IntVar(&b.steps, "steps", 128, "`number` of steps to measure")
}

// bench measures the model without the engine.
func (p *program) bench(ctx context.Context) error {
	b := &p.benching
	var rows []int
	for part := range strings.SplitSeq(b.rows, ",") {
		n, err := strconv.Atoi(part)
		if err != nil || n < 1 || n > model.MaxRows || min(b.prompt, b.steps) < 1 || max(b.prompt, b.steps) > math.MaxInt32 {
			return fmt.Errorf("-rows %s -prompt %d -steps %d: rows are from 1 to %d, and there must be a prompt and a step", b.rows, b.prompt, b.steps, model.MaxRows)
		}
		rows = append(rows, n)
	}
	p.options.Warm, p.options.WarmPrompts = rows, true
	return p.with(ctx, func(ctx context.Context) error {
		fmt.Fprintf(p.out, "%s on %s, %d process(es), prompts of %d tokens; ready %v after the start of the process\n",
			p.name(), p.deviceName(), max(p.place.Count, 1), b.prompt, time.Since(started).Round(time.Millisecond))
		fmt.Fprintf(p.out, "%5s  %14s  %12s  %10s\n", "rows", "first token ms", "µs a step", "tokens/s")
		for _, n := range rows {
			first, step, err := p.measure(ctx, n)
			if err != nil {
				return err
			}
			fmt.Fprintf(p.out, "%5d  %14.3f  %12.1f  %10.0f\n", n, first.Seconds()*1e3, step.Seconds()*1e6, float64(n)/step.Seconds())
		}
		return nil
	})
}

// measure returns the time to the first token of a prompt, and the time of a step that decodes rows
// sequences.
func (p *program) measure(ctx context.Context, rows int) (first, step time.Duration, err error) {
	const warm = 16 // steps before the measurement
	b, i := &p.benching, p.runner.Info()
	each := (b.prompt + warm + b.steps + i.PageTokens) / i.PageTokens
	if rows > i.Slots || rows*each > i.Pages || each*i.PageTokens > i.MaxTokens+i.PageTokens {
		return 0, 0, fmt.Errorf("%d sequences of %d tokens do not fit into %d slots, %d pages and sequences of %d tokens", rows, b.prompt+warm+b.steps, i.Slots, i.Pages, i.MaxTokens)
	}
	prompt := make([]int32, b.prompt)
	for j := range prompt {
		prompt[j] = int32((j*7919 + 13) % i.Vocab)
	}
	var decode []int
	for r := range rows + 1 { // slot 0 computes the prompt twice, and the second time is measured
		slot := max(r-1, 0)
		pages := make([]int32, each)
		for j := range pages {
			pages[j] = int32(slot*each + j)
		}
		begin := time.Now()
		var done func(context.Context) error
		tokens := make([]int32, 1)
		for at := 0; at < b.prompt; at += i.ChunkTokens {
			end := min(at+i.ChunkTokens, b.prompt)
			plan := model.Plan{Chunk: &model.Chunk{Slot: slot, Pos: at, Tokens: prompt[at:end], Last: end == b.prompt}}
			if at == 0 {
				plan.Starts = []model.Start{{Slot: slot, Pages: pages}}
			}
			if done, err = p.runner.Run(plan, tokens); err != nil {
				return 0, 0, err
			}
		}
		if err := done(ctx); err != nil {
			return 0, 0, err
		}
		if r == 1 {
			first = time.Since(begin)
		}
		if r > 0 {
			decode = append(decode, slot)
		}
	}
	var begin time.Time
	var before func(context.Context) error // waits for the previous step, once the next is queued
	var tokens [2][model.MaxRows]int32
	for s := range warm + b.steps {
		done, err := p.runner.Run(model.Plan{Decode: decode}, tokens[s%2][:])
		if err != nil {
			return 0, 0, err
		}
		if before != nil {
			if err := before(ctx); err != nil {
				return 0, 0, err
			}
		}
		if before = done; s == warm {
			begin = time.Now() // step warm-1 has ended
		}
	}
	err = before(ctx)
	return first, time.Since(begin) / time.Duration(b.steps), err
}
