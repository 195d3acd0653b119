package remote_test

import (
	"bytes"
	"context"
	"encoding/gob"
	"errors"
	"io"
	"net"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/puregpu/puregpu/runtime/examples/llama/internal/engine"
	"github.com/puregpu/puregpu/runtime/examples/llama/internal/fakemodel"
	"github.com/puregpu/puregpu/runtime/examples/llama/internal/leaktest"
	"github.com/puregpu/puregpu/runtime/examples/llama/internal/model"
	"github.com/puregpu/puregpu/runtime/examples/llama/internal/remote"
)

var info = model.Info{Slots: 4, Pages: 64, PageTokens: 16, MaxTokens: 512, ChunkTokens: 16, Vocab: 256}

// A meeting is a rendezvous of goroutines. The channel has rank 0's id once for each other rank.
type meeting struct {
	rank, count int
	id          chan []byte
}

func (m meeting) Place() (int, int, error) { return m.rank, m.count, nil }

func (m meeting) Share(ctx context.Context, _ string, id []byte) ([]byte, error) {
	if m.rank == 0 {
		for range m.count - 1 {
			m.id <- id
		}
		return id, nil
	}
	select {
	case id := <-m.id:
		return id, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// A team has a model in each rank. The ranks are goroutines, and the test's own is rank 0.
type team struct {
	models  []*fakemodel.Model
	runner  model.Runner
	lost    chan error
	cancels []context.CancelFunc // of the other ranks
	ended   []chan error
}

func newTeam(t *testing.T, count int, step func(rank int) error) *team {
	t.Helper()
	m := &team{lost: make(chan error, count)}
	id := make(chan []byte, count)
	for rank := range count {
		of := fakemodel.New(info)
		of.Step = func(model.Plan) (time.Duration, error, error) { return time.Millisecond, nil, step(rank) }
		m.models = append(m.models, of)
		if rank == 0 {
			continue
		}
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		m.cancels, m.ended = append(m.cancels, cancel), append(m.ended, ended)
		go func() { ended <- follow(ctx, meeting{rank, count, id}, of) }()
	}
	others, err := remote.Lead(t.Context(), "127.0.0.1", meeting{0, count, id}, info, func(err error) { m.lost <- err })
	if err != nil {
		t.Fatal(err)
	}
	m.runner = model.NewTeam(append([]model.Runner{m.models[0]}, others...)...)
	return m
}

// follow joins rank 0 and runs its plans.
func follow(ctx context.Context, m meeting, shard model.Runner) error {
	f, err := remote.Join(ctx, m, shard)
	if err != nil {
		return err
	}
	return f.Run(ctx)
}

func generate(ctx context.Context, e *engine.Engine, r engine.Request) (tokens []int32, err error) {
	for token, err := range e.Generate(ctx, r) {
		if err != nil {
			return tokens, err
		}
		tokens = append(tokens, token)
	}
	return tokens, nil
}

// TestTeam checks that three ranks serve requests, and run equally many plans.
func TestTeam(t *testing.T) {
	leaktest.Check(t)
	m := newTeam(t, 3, func(int) error { return nil })
	e := engine.New(m.runner, engine.Options{})
	var all sync.WaitGroup
	for i := range 20 {
		all.Go(func() {
			r := engine.Request{Prompt: make([]int32, 1+5*i), MaxTokens: 30, Sampling: model.Sampling{Seed: uint64(i)}}
			want := fakemodel.Answer(r.Prompt, r.Sampling, info.Vocab, r.MaxTokens)
			if got, err := generate(t.Context(), e, r); err != nil || !slices.Equal(got, want) {
				t.Errorf("request %d: tokens %v, error %v", i, got, err)
			}
		})
	}
	all.Wait()
	if err := errors.Join(e.Shutdown(t.Context()), m.runner.Close()); err != nil {
		t.Error(err)
	}
	for i, ended := range m.ended {
		if err := <-ended; err != nil {
			t.Errorf("rank %d ended with %v", i+1, err)
		}
	}
	for i, of := range m.models {
		if err := of.Err(); err != nil || of.Plans() != m.models[0].Plans() {
			t.Errorf("rank %d has run %d plans, rank 0 %d: %v", i, of.Plans(), m.models[0].Plans(), err)
		}
	}
	select {
	case err := <-m.lost:
		t.Errorf("a rank is lost: %v", err)
	default:
	}
}

// TestLostRank checks that requests fail with an error about rank 2 when it is killed or a plan
// fails there, and that the other ranks end without an error.
func TestLostRank(t *testing.T) {
	leaktest.Check(t)
	for name, test := range map[string]struct {
		harm func(m *team)
		want string
	}{
		"killed": {func(m *team) { m.cancels[1]() }, "the connection is lost|context canceled"},
		"broken": {func(m *team) {}, "the device fell off the bus"},
	} {
		t.Run(name, func(t *testing.T) {
			steps := 0 // of rank 2
			m := newTeam(t, 3, func(rank int) error {
				if rank != 2 {
					return nil
				}
				if steps++; steps == 50 && name == "broken" {
					return errors.New(test.want)
				}
				return nil
			})
			e := engine.New(m.runner, engine.Options{})
			var all sync.WaitGroup
			for range 6 {
				all.Go(func() {
					_, err := generate(t.Context(), e, engine.Request{Prompt: []int32{1}, MaxTokens: 500})
					if !errors.Is(err, engine.ErrBroken) || !strings.Contains(err.Error(), "rank 2") || !regexp.MustCompile(test.want).MatchString(err.Error()) {
						t.Errorf("error %v, want an error of rank 2: %s", err, test.want)
					}
				})
			}
			for m.models[2].Plans() < 20 {
				time.Sleep(time.Millisecond)
			}
			test.harm(m)
			all.Wait()
			if err := <-m.lost; !regexp.MustCompile(test.want).MatchString(err.Error()) {
				t.Errorf("lost was called with %v, want %s", err, test.want)
			}
			if err := <-m.ended[1]; err == nil {
				t.Error("the rank ended without an error")
			}
			if err := errors.Join(e.Shutdown(t.Context()), m.runner.Close()); err != nil {
				t.Error(err)
			}
			if err := <-m.ended[0]; err != nil {
				t.Errorf("the other rank ended with %v", err)
			}
		})
	}
}

// TestLostLeader checks that a rank ends with an error when rank 0 closes the connection without a
// message.
func TestLostLeader(t *testing.T) {
	leaktest.Check(t)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	go func() {
		if c, err := l.Accept(); err == nil {
			c.Close()
		}
	}()
	id := make(chan []byte, 1)
	id <- []byte("key " + l.Addr().String())
	if err := follow(t.Context(), meeting{1, 2, id}, fakemodel.New(info)); err == nil || !strings.Contains(err.Error(), "rank 0 at") {
		t.Errorf("error %v", err)
	}
}

// TestStrangers checks that Lead closes connections without the key or with a wrong rank, and still
// accepts the rank that connects after them.
func TestStrangers(t *testing.T) {
	leaktest.Check(t)
	id, shown := make(chan []byte, 2), make(chan []byte, 2)
	go func() {
		got := <-id
		key, address, _ := strings.Cut(string(got), " ")
		var wrong bytes.Buffer
		gob.NewEncoder(&wrong).Encode(struct{ Rank int }{2})
		for _, say := range []string{"", "GET / HTTP/1.1\r\nHost: example.com\r\n\r\n", key + wrong.String()} {
			c, err := net.Dial("tcp", address)
			if err != nil {
				t.Error(err)
				break
			}
			io.WriteString(c, say)
			if say == "" {
				c.Close()
				continue
			}
			c.SetReadDeadline(time.Now().Add(time.Minute))
			if _, err := c.Read(make([]byte, 1)); err == nil {
				t.Errorf("a stranger that sends %q gets an answer", say)
			}
			c.Close()
		}
		shown <- got
	}()
	ended := make(chan error, 1)
	go func() { ended <- follow(t.Context(), meeting{1, 2, shown}, fakemodel.New(info)) }()
	others, err := remote.Lead(t.Context(), "127.0.0.1", meeting{0, 2, id}, info, func(err error) { t.Error(err) })
	if err != nil {
		t.Fatal(err)
	}
	if others[0].Info() != info {
		t.Errorf("the rank's Info is %+v", others[0].Info())
	}
	if err := errors.Join(others[0].Close(), <-ended); err != nil {
		t.Error(err)
	}
}

// TestMissingRank checks that rank 0 stops waiting for a rank when the context ends.
func TestMissingRank(t *testing.T) {
	leaktest.Check(t)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	id := make(chan []byte)
	go func() {
		<-id // rank 0 listens
		cancel()
	}()
	_, err := remote.Lead(ctx, "127.0.0.1", meeting{0, 2, id}, info, func(error) {})
	if !errors.Is(err, context.Canceled) || !strings.Contains(err.Error(), "1 of 1 ranks") {
		t.Errorf("error %v", err)
	}
}

// TestTooFewRanks ends the context when only one of two ranks has connected. Then Lead must fail,
// and the connected rank must end too.
func TestTooFewRanks(t *testing.T) {
	leaktest.Check(t)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	id, shown := make(chan []byte, 2), make(chan []byte, 1)
	ended := make(chan error, 1)
	go func() {
		got := <-id
		shown <- got
		f, err := remote.Join(t.Context(), meeting{1, 3, shown}, fakemodel.New(info))
		if err != nil {
			ended <- err
			return
		}
		_, address, _ := strings.Cut(string(got), " ")
		if c, err := net.Dial("tcp", address); err == nil { // a stranger: when it is refused, rank 1 has been accepted
			io.WriteString(c, strings.Repeat("x", 100))
			io.ReadAll(c)
			c.Close()
		}
		cancel()
		ended <- f.Run(t.Context())
	}()
	_, err := remote.Lead(ctx, "127.0.0.1", meeting{0, 3, id}, info, func(error) {})
	if !errors.Is(err, context.Canceled) || !strings.Contains(err.Error(), "1 of 2 ranks") {
		t.Errorf("rank 0: %v, want that 1 of 2 ranks has not connected", err)
	}
	if err := <-ended; err != nil {
		t.Errorf("rank 1: %v", err)
	}
}

// TestOtherOptions checks that a rank whose chunks have another length is refused.
func TestOtherOptions(t *testing.T) {
	leaktest.Check(t)
	other := info
	other.ChunkTokens = 32
	id, ended := make(chan []byte, 1), make(chan error, 1)
	go func() { ended <- follow(t.Context(), meeting{1, 2, id}, fakemodel.New(other)) }()
	_, err := remote.Lead(t.Context(), "127.0.0.1", meeting{0, 2, id}, info, func(error) {})
	if err == nil || !strings.Contains(err.Error(), "rank 1") || !strings.Contains(err.Error(), "16 tokens in a chunk, and another one 32") {
		t.Errorf("rank 0: %v", err)
	}
	if err := <-ended; err != nil {
		t.Errorf("rank 1: %v", err)
	}
}

// TestCloseInFlight checks that a wait for a plan ends if rank 0's side is closed before the plan
// has a reply.
func TestCloseInFlight(t *testing.T) {
	leaktest.Check(t)
	id, ended := make(chan []byte, 1), make(chan error, 1)
	go func() { // a rank that ends without a reply
		key, address, _ := strings.Cut(string(<-id), " ")
		c, err := net.Dial("tcp", address)
		if err != nil {
			ended <- err
			return
		}
		defer c.Close()
		io.WriteString(c, key)
		err = gob.NewEncoder(c).Encode(struct {
			Rank int
			Info model.Info
		}{1, info})
		for in, end := gob.NewDecoder(c), false; err == nil && !end; {
			var m struct {
				Plan model.Plan
				End  bool
			}
			err = in.Decode(&m)
			end = m.End
		}
		ended <- err
	}()
	others, err := remote.Lead(t.Context(), "127.0.0.1", meeting{0, 2, id}, info, func(error) {})
	if err != nil {
		t.Fatal(err)
	}
	done, err := others[0].Run(model.Plan{Decode: []int{0}}, make([]int32, 1))
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(others[0].Close(), <-ended); err != nil {
		t.Error(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if err := done(ctx); err == nil || ctx.Err() != nil {
		t.Errorf("the plan ended with %v", err)
	}
}
