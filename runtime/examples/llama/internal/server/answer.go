package server

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/puregpu/puregpu/runtime/examples/llama/internal/engine"
)

// An answer is the body of a response, or one event of a stream.
type answer struct {
	ID      string   `json:"id"`
	Object  string   `json:"object"`
	Created int64    `json:"created"`
	Model   string   `json:"model"`
	Choices []choice `json:"choices"`
	Usage   *usage   `json:"usage,omitempty"`
}

type choice struct {
	Text         string  `json:"text"`
	Index        int     `json:"index"`
	Logprobs     *int    `json:"logprobs"` // always null
	FinishReason *string `json:"finish_reason"`
	TokenIDs     []int32 `json:"token_ids,omitempty"`
}

type usage struct {
	PromptTokens     int `json:"prompt_tokens"`
	CompletionTokens int `json:"completion_tokens"`
	TotalTokens      int `json:"total_tokens"`
}

func (s *Server) completions(w http.ResponseWriter, r *http.Request) {
	select {
	case s.slots <- struct{}{}:
		defer func() { <-s.slots }()
	default:
		s.refuse(w, r, engine.ErrBusy)
		return
	}
	begin := time.Now()
	ctx, cancel := context.WithTimeout(r.Context(), s.Timeout)
	defer cancel()
	q, request, err := s.read(w, r)
	if err != nil {
		s.refuse(w, r, err)
		return
	}
	a := &answer{ID: "cmpl-" + rand.Text(), Object: "text_completion", Created: begin.Unix(), Model: s.Model}
	answering := s.whole
	if q.Stream {
		answering = s.stream
	}
	n, begun, err := answering(ctx, w, q, request, a)
	switch {
	case err == nil:
		s.logEnd(r, http.StatusOK, nil, "prompt", len(request.Prompt), "tokens", n, "took", time.Since(begin))
	case begun: // the status is sent already, so the error is an event
		f := s.explain(r, err)
		s.count(f.code)
		s.logEnd(r, f.code, f)
		event(w, map[string]any{"error": f})
	default:
		s.refuse(w, r, err)
	}
}

// whole sends the answer in one piece. It returns the number of tokens, and whether it has begun to
// send.
func (s *Server) whole(ctx context.Context, w http.ResponseWriter, q *question, request *engine.Request, a *answer) (n int, begun bool, err error) {
	var text strings.Builder
	var tokens []int32
	n, finish, err := s.generate(ctx, q, request, func(part string, token []int32) error {
		text.WriteString(part)
		tokens = append(tokens, token...)
		return nil
	})
	if err != nil {
		return n, false, err
	}
	a.Choices = []choice{{Text: text.String(), FinishReason: &finish}}
	if q.TokenIDs {
		a.Choices[0].TokenIDs = tokens
	}
	a.Usage = used(request, n)
	s.write(w, http.StatusOK, a)
	return n, true, nil
}

// stream sends the text of each token at once, as a server-sent event. It returns the same values
// as the method whole.
func (s *Server) stream(ctx context.Context, w http.ResponseWriter, q *question, request *engine.Request, a *answer) (n int, begun bool, err error) {
	control := http.NewResponseController(w)
	send := func() error {
		if !begun {
			begun = true
			w.Header().Set("Content-Type", "text/event-stream")
			w.Header().Set("Cache-Control", "no-store")
		}
		if err := event(w, a); err != nil {
			return err
		}
		if err := control.Flush(); err != nil {
			return fmt.Errorf("%w: %w", errUnread, err)
		}
		return nil
	}
	a.Choices = make([]choice, 1)
	n, finish, err := s.generate(ctx, q, request, func(part string, token []int32) error {
		a.Choices[0] = choice{Text: part}
		if q.TokenIDs {
			a.Choices[0].TokenIDs = token
		} else if part == "" {
			return nil
		}
		return send()
	})
	if err == nil {
		a.Choices[0] = choice{FinishReason: &finish}
		err = send()
	}
	if o := q.StreamOptions; err == nil && o != nil && o.IncludeUsage {
		a.Choices, a.Usage = []choice{}, used(request, n)
		err = send()
	}
	if err == nil {
		if _, err = w.Write([]byte("data: [DONE]\n\n")); err != nil {
			return n, begun, fmt.Errorf("%w: %w", errUnread, err)
		}
		s.count(http.StatusOK)
	}
	return n, begun, err
}

// event sends v as a server-sent event, in JSON.
func event(w http.ResponseWriter, v any) error {
	b, err := json.Marshal(v)
	if err != nil {
		return err
	}
	if _, err := w.Write(append(append([]byte("data: "), b...), "\n\n"...)); err != nil {
		return fmt.Errorf("%w: %w", errUnread, err)
	}
	return nil
}

// generate calls the function part for each token, with the token and the text that can be sent
// now. In the end it calls part with text that was held back, if any, and no token. It returns the
// number of tokens and why the answer ends: "stop" for a token or string that ends the text, or
// "length".
func (s *Server) generate(ctx context.Context, q *question, request *engine.Request, part func(string, []int32) error) (n int, finish string, err error) {
	decoder, stopper := s.Decoder(), stopper{stops: q.Stop}
	var buffer [1]int32
	for token, err := range s.Engine.Generate(ctx, *request) {
		if err != nil {
			return n, "", err
		}
		n++
		text, stopped := stopper.next(decoder.Next(token))
		buffer[0] = token
		if err := part(text, buffer[:]); err != nil {
			return n, "", err
		}
		if stopped {
			return n, "stop", nil
		}
	}
	text, stopped := stopper.next(decoder.Flush())
	if !stopped {
		text += stopper.held
	}
	finish = "stop"
	if n == request.MaxTokens && !stopped {
		finish = "length"
	}
	if text != "" {
		err = part(text, nil)
	}
	return n, finish, err
}

func used(r *engine.Request, tokens int) *usage {
	return &usage{len(r.Prompt), tokens, len(r.Prompt) + tokens}
}
