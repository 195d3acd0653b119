package server

import (
	"encoding/json"
	"errors"
	"io"
	"math/rand/v2"
	"net/http"
	"os"
	"strings"
	"time"

	"github.com/puregpu/puregpu/runtime/examples/llama/internal/engine"
	"github.com/puregpu/puregpu/runtime/examples/llama/internal/model"
)

// A question is the body of a request for a completion.
type question struct {
	Model         string         `json:"model"`
	Prompt        prompt         `json:"prompt"`
	MaxTokens     *int           `json:"max_tokens"`
	Temperature   *float32       `json:"temperature"`
	TopP          *float32       `json:"top_p"`
	TopK          int32          `json:"top_k"` // not OpenAI's, but common
	Seed          *int64         `json:"seed"`
	Stop          stops          `json:"stop"`
	Stream        bool           `json:"stream"`
	StreamOptions *streamOptions `json:"stream_options"`
	TokenIDs      bool           `json:"return_token_ids"` // not OpenAI's, but common
	User          string         `json:"user"`

	// Only the default values of the following fields are supported.
	N                *int               `json:"n"`
	BestOf           *int               `json:"best_of"`
	Echo             bool               `json:"echo"`
	Logprobs         *int               `json:"logprobs"`
	Suffix           string             `json:"suffix"`
	PresencePenalty  float64            `json:"presence_penalty"`
	FrequencyPenalty float64            `json:"frequency_penalty"`
	LogitBias        map[string]float64 `json:"logit_bias"`
}

type streamOptions struct {
	IncludeUsage bool `json:"include_usage"`
}

// A prompt is a text or a list of tokens.
type prompt struct {
	text   string
	tokens []int32
}

func (p *prompt) UnmarshalJSON(b []byte) error {
	if json.Unmarshal(b, &p.text) == nil || json.Unmarshal(b, &p.tokens) == nil {
		return nil
	}
	return invalid("prompt", "prompt must be one string or one array of tokens")
}

// stops are strings that end the answer.
type stops []string

func (s *stops) UnmarshalJSON(b []byte) error {
	var one *string
	if json.Unmarshal(b, &one) == nil {
		if one != nil {
			*s = stops{*one}
		}
		return nil
	}
	if json.Unmarshal(b, (*[]string)(s)) == nil {
		return nil
	}
	return invalid("stop", "stop must be a string or an array of strings")
}

// read reads a request, and makes one for the engine.
func (s *Server) read(w http.ResponseWriter, r *http.Request) (*question, *engine.Request, error) {
	control := http.NewResponseController(w)
	control.SetReadDeadline(time.Now().Add(readTimeout)) // fails only without a connection, as in tests
	q := new(question)
	d := json.NewDecoder(http.MaxBytesReader(w, r.Body, s.Body))
	d.DisallowUnknownFields()
	err := d.Decode(q)
	if err == nil {
		if _, err = d.Token(); err == io.EOF {
			err = nil
		} else if err == nil {
			err = errors.New("there is text after the object")
		}
	}
	if err != nil {
		if large, ok := errors.AsType[*http.MaxBytesError](err); ok {
			f := invalid("", "the request is larger than %d bytes", large.Limit)
			f.code = http.StatusRequestEntityTooLarge
			return nil, nil, f
		}
		if f, ok := errors.AsType[*failure](err); ok {
			return nil, nil, f
		}
		if errors.Is(err, os.ErrDeadlineExceeded) {
			f := invalid("", "the request is not complete within %v", readTimeout)
			f.code = http.StatusRequestTimeout
			return nil, nil, f
		}
		return nil, nil, invalid("", "%s", strings.TrimPrefix(err.Error(), "json: "))
	}
	control.SetReadDeadline(time.Time{})
	if err := s.check(q); err != nil {
		return nil, nil, err
	}
	tokens := q.Prompt.tokens
	if tokens == nil {
		if tokens, err = s.Encode(q.Prompt.text); err != nil {
			return nil, nil, invalid("prompt", "%v", err)
		}
	}
	if len(tokens) > s.Prompt {
		return nil, nil, invalid("prompt", "the prompt has %d tokens, and at most %d are allowed", len(tokens), s.Prompt)
	}
	return q, &engine.Request{
		Prompt:    tokens,
		MaxTokens: value(q.MaxTokens, 16),
		Stop:      s.Options.Stop,
		Sampling: model.Sampling{
			Temperature: value(q.Temperature, 1), TopP: value(q.TopP, 1), TopK: q.TopK,
			Seed: uint64(value(q.Seed, rand.Int64())),
		},
	}, nil
}

// check returns an error for a field that is out of range or not supported.
func (s *Server) check(q *question) error {
	switch {
	case q.Model != "" && q.Model != s.Model:
		f := invalid("model", "the model %q does not exist: this is %q", q.Model, s.Model)
		missing := "model_not_found"
		f.code, f.Code = http.StatusNotFound, &missing
		return f
	case !inRange(value(q.Temperature, 1), 0, 2):
		return invalid("temperature", "temperature must be from 0 to 2")
	case !inRange(value(q.TopP, 1), 1e-6, 1):
		return invalid("top_p", "top_p must be above 0 and at most 1")
	case len(q.Stop) > 4:
		return invalid("stop", "there are %d stop strings, and at most 4 are allowed", len(q.Stop))
	case q.StreamOptions != nil && !q.Stream:
		return invalid("stream_options", "stream_options is allowed only with stream")
	}
	for name, set := range map[string]bool{
		"n": value(q.N, 1) != 1, "best_of": value(q.BestOf, 1) != 1, "echo": q.Echo, "logprobs": q.Logprobs != nil,
		"suffix": q.Suffix != "", "presence_penalty": q.PresencePenalty != 0,
		"frequency_penalty": q.FrequencyPenalty != 0, "logit_bias": len(q.LogitBias) > 0,
	} {
		if set {
			return invalid(name, "this value of %s is not supported", name)
		}
	}
	for _, stop := range q.Stop {
		if len(stop) == 0 || len(stop) > 1000 {
			return invalid("stop", "a stop string has %d bytes, and 1 to 1000 are allowed", len(stop))
		}
	}
	return nil
}

func inRange(v, low, high float32) bool { return v >= low && v <= high }

func value[T any](p *T, otherwise T) T {
	if p == nil {
		return otherwise
	}
	return *p
}
