package loadtest

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"strconv"
	"strings"
	"time"
)

type question struct {
	Prompt      []int32 `json:"prompt"`
	MaxTokens   int     `json:"max_tokens"`
	Temperature float32 `json:"temperature"`
	TopP        float32 `json:"top_p"`
	Seed        int64   `json:"seed"`
	Stream      bool    `json:"stream"`
	TokenIDs    bool    `json:"return_token_ids"`
}

// newQuestion makes a random question. About half of the questions have temperature 0.
func (l *load) newQuestion(r *rand.Rand) question {
	q := question{MaxTokens: 1 + r.IntN(l.Tokens), TopP: 1, Stream: true, TokenIDs: true, Seed: r.Int64()}
	if r.IntN(2) == 0 {
		q.Temperature, q.TopP = .8, .95
	}
	q.Prompt = make([]int32, 1+r.IntN(l.Prompt))
	for i := range q.Prompt {
		q.Prompt[i] = r.Int32N(int32(l.Vocab))
	}
	return q
}

type answer struct {
	tokens []int32
	times  []time.Duration // time since the token before, or since the request
	text   string
	finish string
	left   bool // ask has disconnected after the number of tokens in leave
	err    error
}

// A statusError is an error that the server reported. The code of an error inside a stream is 200.
type statusError struct {
	code int
	text string
}

func (s *statusError) Error() string { return fmt.Sprintf("status %d: %s", s.code, s.text) }

// ask sends a question and reads the answer. If leave is positive, ask disconnects after that
// number of tokens.
func (l *load) ask(ctx context.Context, q question, leave int) (a answer) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	body, err := json.Marshal(q)
	if err != nil {
		return answer{err: err}
	}
	r, err := http.NewRequestWithContext(ctx, "POST", l.URL+"/v1/completions", bytes.NewReader(body))
	if err != nil {
		return answer{err: err}
	}
	last := time.Now()
	resp, err := l.client.Do(r)
	if err != nil {
		return answer{err: err}
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		text, _ := io.ReadAll(resp.Body)
		return answer{err: &statusError{resp.StatusCode, string(bytes.TrimSpace(text))}}
	}
	for lines := bufio.NewScanner(resp.Body); ; {
		if !lines.Scan() {
			a.err = fmt.Errorf("the stream has no end: %w", errors.Join(lines.Err(), io.ErrUnexpectedEOF))
			return a
		}
		data, ok := bytes.CutPrefix(lines.Bytes(), []byte("data: "))
		if !ok {
			continue
		}
		if string(data) == "[DONE]" {
			return a
		}
		var part struct {
			Choices []struct {
				Text     string
				Finish   string  `json:"finish_reason"`
				TokenIDs []int32 `json:"token_ids"`
			}
			Error *struct{ Message string }
		}
		if a.err = json.Unmarshal(data, &part); a.err != nil {
			return a
		}
		if part.Error != nil {
			a.err = &statusError{http.StatusOK, part.Error.Message}
			return a
		}
		for _, c := range part.Choices {
			a.text += c.Text
			a.finish += c.Finish
			if len(c.TokenIDs) == 0 {
				continue
			}
			now := time.Now()
			a.times = append(a.times, now.Sub(last))
			last = now
			a.tokens = append(a.tokens, c.TokenIDs...)
		}
		if leave > 0 && len(a.tokens) >= leave {
			a.left = true
			return a
		}
	}
}

// memory returns the resident memory of the server's process in bytes, or 0 if the server does not
// report it.
func (l *load) memory(ctx context.Context) uint64 {
	r, err := http.NewRequestWithContext(ctx, "GET", l.URL+"/metrics", nil)
	if err != nil {
		return 0
	}
	resp, err := l.client.Do(r)
	if err != nil {
		return 0
	}
	defer resp.Body.Close()
	for lines := bufio.NewScanner(resp.Body); lines.Scan(); {
		if text, ok := strings.CutPrefix(lines.Text(), "process_resident_memory_bytes "); ok {
			n, _ := strconv.ParseUint(text, 10, 64)
			return n
		}
	}
	return 0
}
