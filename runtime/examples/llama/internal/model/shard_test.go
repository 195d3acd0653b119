package model_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/puregpu/puregpu/runtime/collective"
	"github.com/puregpu/puregpu/runtime/driver/simdriver"
	"github.com/puregpu/puregpu/runtime/examples/llama/internal/checkpoint"
	"github.com/puregpu/puregpu/runtime/examples/llama/internal/checkpoint/checkpointtest"
	"github.com/puregpu/puregpu/runtime/examples/llama/internal/fakemodel"
	"github.com/puregpu/puregpu/runtime/examples/llama/internal/leaktest"
	"github.com/puregpu/puregpu/runtime/examples/llama/internal/model"
	"github.com/puregpu/puregpu/runtime/examples/llama/internal/peer"
	"github.com/puregpu/puregpu/runtime/gpu"
)

// tiny has an odd vocabulary, and the longest sequence does not fill its last page.
var tiny = checkpoint.Config{
	Layers: 2, Width: 128, Heads: 4, KVHeads: 2, HeadDim: 64, FFN: 128, Vocab: 131, MaxTokens: 90,
	Eps: 1e-5, Theta: 10000, Rope: checkpoint.Rope{Type: "default", Factor: 1, Attention: 1}, BOS: 1, EOS: []int{2},
}

// written writes a checkpoint with random weights and opens it.
func written(t testing.TB, c checkpoint.Config) *checkpoint.Checkpoint {
	t.Helper()
	dir := t.TempDir()
	if err := checkpointtest.Write(dir, c, 2, 1); err != nil {
		t.Fatal(err)
	}
	return opened(t, dir)
}

func opened(t testing.TB, dir string) *checkpoint.Checkpoint {
	t.Helper()
	ck, err := checkpoint.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { ck.Close() })
	return ck
}

// simulated opens simulated GPUs.
func simulated(t testing.TB, n int, c simdriver.Config) []*gpu.Device {
	t.Helper()
	c.Devices, c.Kernels = n, model.Sim()
	g, err := gpu.OpenGroup(simdriver.New(c), gpu.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := g.Close(); err != nil {
			t.Error(err)
		}
	})
	return g.Devices()
}

// open opens a model on a simulated GPU.
func open(t testing.TB, ck *checkpoint.Checkpoint, o model.Options) *model.Shard {
	t.Helper()
	return openOn(t, simulated(t, 1, simdriver.Config{})[0], ck, o)
}

func openOn(t testing.TB, dev *gpu.Device, ck *checkpoint.Checkpoint, o model.Options) *model.Shard {
	t.Helper()
	s, err := model.Open(t.Context(), dev, ck, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

// A sequence is a prompt in a slot, and the tokens that follow.
type sequence struct {
	slot     int
	prompt   []int32
	pages    []int32
	sampling model.Sampling
	tokens   []int32
}

// plans returns the plans of the prompt. The last plan samples the token that follows.
func (q *sequence) plans(i model.Info) (all []model.Plan) {
	for pos := 0; pos < len(q.prompt); pos += i.ChunkTokens {
		end := min(pos+i.ChunkTokens, len(q.prompt))
		p := model.Plan{Chunk: &model.Chunk{Slot: q.slot, Pos: pos, Tokens: q.prompt[pos:end], Last: end == len(q.prompt)}}
		if pos == 0 {
			p.Starts = []model.Start{{Slot: q.slot, Sampling: q.sampling, Pages: q.pages}}
		}
		all = append(all, p)
	}
	return all
}

// run runs a plan, and returns its tokens.
func run(t testing.TB, r model.Runner, p model.Plan) []int32 {
	t.Helper()
	tokens := make([]int32, p.Tokens())
	done, err := r.Run(p, tokens)
	if err != nil {
		t.Fatal(err)
	}
	if err := done(t.Context()); err != nil {
		t.Fatal(err)
	}
	return tokens
}

// begin runs the prompt, and appends the token that follows the prompt.
func (q *sequence) begin(t testing.TB, r model.Runner) {
	t.Helper()
	for _, p := range q.plans(r.Info()) {
		q.tokens = append(q.tokens, run(t, r, p)...)
	}
}

// decode appends n tokens to each sequence, decoded together.
func decode(t testing.TB, r model.Runner, n int, all ...*sequence) {
	t.Helper()
	var p model.Plan
	for _, q := range all {
		p.Decode = append(p.Decode, q.slot)
	}
	for range n {
		for i, token := range run(t, r, p) {
			all[i].tokens = append(all[i].tokens, token)
		}
	}
}

// alone returns the tokens that follow a prompt on a runner that does nothing else.
func alone(t testing.TB, r model.Runner, prompt []int32, n int, s model.Sampling) []int32 {
	t.Helper()
	q := &sequence{prompt: prompt, pages: pages(r, 0), sampling: s}
	q.begin(t, r)
	decode(t, r, n-1, q)
	return q.tokens
}

// pages returns the nth set of pages, enough for the longest sequence, not in order.
func pages(r model.Runner, nth int) []int32 {
	i := r.Info()
	n := (i.MaxTokens + i.PageTokens - 1) / i.PageTokens
	var all []int32
	for k := range n {
		all = append(all, int32(nth*n+(k*5+nth)%n))
	}
	return all
}

func random(r *rand.Rand, n, vocab int) []int32 {
	all := make([]int32, n)
	for i := range all {
		all[i] = int32(r.IntN(vocab))
	}
	return all
}

// tolerance is how far a logit may be from the reference, in standard deviations of the logits: the
// shard rounds to 16 bits between products.
const tolerance = 0.05

// compare compares logits, and the token that was chosen from them, with a reference.
func compare[T float32 | float64](t testing.TB, what string, got []float32, token int32, want []T) {
	t.Helper()
	mean, square, worst := 0.0, 0.0, 0.0
	for i, w := range want {
		mean += float64(w) / float64(len(want))
		square += float64(w) * float64(w) / float64(len(want))
		worst = max(worst, math.Abs(float64(w)-float64(got[i])))
	}
	allowed := tolerance * math.Sqrt(square-mean*mean)
	if !(worst <= allowed) {
		t.Fatalf("%s: logits differ by %.4f; %.4f is allowed", what, worst, allowed)
	}
	best := slices.Max(want)
	if float64(best-want[token]) > 2*allowed {
		t.Fatalf("%s: token %d has logit %v; the best is %v", what, token, want[token], best)
	}
}

func TestLogits(t *testing.T) {
	tied := tiny
	tied.Tied = true
	scaled := tiny
	scaled.Rope = checkpoint.Rope{Type: "llama3", Factor: 4, Original: 16, LowFreq: 1, HighFreq: 4, Attention: 1}
	for name, ck := range map[string]*checkpoint.Checkpoint{
		"plain": written(t, tiny), "tied": written(t, tied), "scaled rope": written(t, scaled),
		"float16": converted(t, tiny, checkpoint.F16), "float32": converted(t, tiny, checkpoint.F32), "FP8": converted(t, tiny, checkpoint.F8E4M3),
	} {
		t.Run(name, func(t *testing.T) {
			if testing.Short() && name != "plain" {
				t.Skip("tests one kind of weights only")
			}
			s := open(t, ck, model.Options{ChunkTokens: 16, Slots: 3})
			checkLogits(t, ck, s, s)
			s = open(t, ck, model.Options{ChunkTokens: 16, Slots: 3})
			s.WithoutAlone()
			checkLogits(t, ck, s, s)
		})
	}
}

// checkLogits compares with the reference the logits behind prompts of some lengths, and behind
// tokens that are decoded alone and together. The logits are those of shard s of runner r.
func checkLogits(t *testing.T, ck *checkpoint.Checkpoint, r model.Runner, s *model.Shard) {
	t.Helper()
	ref := newReference(t, ck)
	check := func(q *sequence, row int, how string) {
		t.Helper()
		logits, err := s.Logits(row)
		if err != nil {
			t.Fatal(err)
		}
		all := append(slices.Clone(q.prompt), q.tokens[:len(q.tokens)-1]...)
		want := ref.logits(all)
		compare(t, fmt.Sprintf("a prompt of %d and %d tokens %s", len(q.prompt), len(q.tokens)-1, how), logits, q.tokens[len(q.tokens)-1], want[len(all)-1])
	}
	var all []*sequence
	for slot, n := range []int{37, 1, 16} {
		q := &sequence{slot: slot, prompt: random(rand.New(rand.NewPCG(1, uint64(n))), n, ref.Vocab), pages: pages(r, slot)}
		q.begin(t, r)
		check(q, 0, "")
		for range 4 {
			decode(t, r, 1, q)
			check(q, 0, "alone")
		}
		all = append(all, q)
	}
	all[0], all[2] = all[2], all[0]
	for range 4 {
		decode(t, r, 1, all...)
		for row, q := range all {
			check(q, row, "together")
		}
	}
}

// TestManyRows checks the logits if so many sequences decode together that package blas multiplies.
func TestManyRows(t *testing.T) { testManyRows(t, simulated(t, 2, simdriver.Config{})) }

// testManyRows uses the first device, and then a team of all, if there are several.
func testManyRows(t *testing.T, devices []*gpu.Device) {
	t.Helper()
	o := model.Options{Slots: 40, ChunkTokens: 16, Pages: 240}
	for _, kind := range []checkpoint.DType{checkpoint.BF16, checkpoint.F16} {
		if testing.Short() && kind != checkpoint.BF16 {
			continue // only the conversions differ
		}
		ck := written(t, tiny)
		if kind != checkpoint.BF16 {
			ck = converted(t, tiny, kind)
		}
		s := openOn(t, devices[0], ck, o)
		checkManyRows(t, ck, s, s)
		for _, way := range ways {
			if len(devices) > 1 {
				team, shards := teamOn(t, way, devices, ck, o)
				checkManyRows(t, ck, team, shards...)
				if err := team.Close(); err != nil {
					t.Error(err)
				}
			}
		}
	}
}

// checkManyRows compares the logits of runner r with the reference. The logits of all the runner's
// shards must be equal, bit by bit.
func checkManyRows(t *testing.T, ck *checkpoint.Checkpoint, r model.Runner, shards ...*model.Shard) {
	t.Helper()
	ref := newReference(t, ck)
	var all []*sequence
	for i := range 33 {
		n := 1 + i%4*5
		q := &sequence{slot: 39 - i, prompt: random(rand.New(rand.NewPCG(3, uint64(i))), n, ref.Vocab), pages: pages(r, i)}
		q.begin(t, r)
		all = append(all, q)
	}
	for range 2 {
		decode(t, r, 1, all...)
		for row, q := range all {
			logits, err := shards[0].Logits(row)
			if err != nil {
				t.Fatal(err)
			}
			for _, s := range shards[1:] {
				if other, err := s.Logits(row); err != nil || !slices.Equal(other, logits) {
					t.Errorf("row %d: a shard has other logits than shard 0, or the error %v", row, err)
				}
			}
			tokens := append(slices.Clone(q.prompt), q.tokens[:len(q.tokens)-1]...)
			want := ref.logits(tokens)
			compare(t, fmt.Sprintf("row %d", row), logits, q.tokens[len(q.tokens)-1], want[len(tokens)-1])
		}
	}
}

// TestWholeSequence checks the tokens of a sequence of the largest length, and that one token more
// is refused.
func TestWholeSequence(t *testing.T) {
	ck := written(t, tiny)
	s := open(t, ck, model.Options{Slots: 1, ChunkTokens: 32})
	prompt := random(rand.New(rand.NewPCG(2, 2)), 70, tiny.Vocab)
	got := alone(t, s, prompt, tiny.MaxTokens-len(prompt)+1, model.Sampling{})
	if _, err := s.Run(model.Plan{Decode: []int{0}}, make([]int32, 1)); !errors.Is(err, model.ErrPlan) {
		t.Errorf("a token beyond the longest sequence: error %v, want ErrPlan", err)
	}
	all := append(prompt, got...)
	want := newReference(t, ck).logits(all[:len(all)-1])
	for i, token := range got {
		logits := want[len(prompt)-1+i]
		if best := slices.Max(logits); best-logits[token] > 0.3 {
			t.Errorf("token %d is %d with logit %v; the best is %v", i, token, logits[token], best)
		}
	}
}

func TestChunkSizes(t *testing.T) {
	ck := written(t, tiny)
	prompt := random(rand.New(rand.NewPCG(3, 3)), 77, tiny.Vocab)
	var first []float32
	for _, size := range []int{16, 48, 256} {
		s := open(t, ck, model.Options{Slots: 1, ChunkTokens: size})
		q := &sequence{prompt: prompt, pages: pages(s, 0)}
		q.begin(t, s)
		logits, err := s.Logits(0)
		if err != nil {
			t.Fatal(err)
		}
		if first == nil {
			first = logits
		}
		compare(t, fmt.Sprintf("chunks of %d", size), logits, q.tokens[0], first)
	}
}

// TestTogether checks that, if Invariant is set, sequences get the same tokens together as alone.
// They begin at different times, in slots and pages that earlier sequences had.
func TestTogether(t *testing.T) {
	ck := written(t, tiny)
	r := rand.New(rand.NewPCG(4, 4))
	const slots, count, length = 5, 12, 20
	all := make([]*sequence, count)
	want := make([][]int32, count)
	single := open(t, ck, model.Options{Slots: 1, ChunkTokens: 16, Invariant: true})
	for i := range all {
		q := &sequence{prompt: random(r, 1+r.IntN(40), tiny.Vocab)}
		if i%2 == 1 {
			q.sampling = model.Sampling{Temperature: 0.8, TopP: 0.9, TopK: 20, Seed: uint64(i)}
		}
		all[i], want[i] = q, alone(t, single, q.prompt, length, q.sampling)
	}

	s := open(t, ck, model.Options{Slots: slots, ChunkTokens: 16, Invariant: true})
	freeSlots, freePages := []int{4, 2, 0, 3, 1}, make([]int32, s.Info().Pages)
	for i := range freePages {
		freePages[i] = int32(i)
	}
	var running []*sequence // sequences whose prompts are complete
	var next *sequence      // the sequence whose prompt is not complete
	var prompt []model.Plan // the plans that are left of that prompt
	for begun := 0; begun < count || next != nil || len(running) > 0; {
		if next == nil && begun < count && len(freeSlots) > 0 {
			next = all[begun]
			begun++
			n := (len(next.prompt) + length + model.PageTokens - 1) / model.PageTokens
			r.Shuffle(len(freePages), func(i, j int) { freePages[i], freePages[j] = freePages[j], freePages[i] })
			next.slot, freeSlots = freeSlots[0], freeSlots[1:]
			next.pages, freePages = freePages[:n:n], freePages[n:]
			prompt = next.plans(s.Info())
		}
		var p model.Plan
		if next != nil {
			p, prompt = prompt[0], prompt[1:]
		}
		r.Shuffle(len(running), func(i, j int) { running[i], running[j] = running[j], running[i] })
		for _, q := range running {
			p.Decode = append(p.Decode, q.slot)
		}
		tokens := run(t, s, p)
		for i, q := range running {
			q.tokens = append(q.tokens, tokens[i])
		}
		if next != nil && len(prompt) == 0 {
			next.tokens = append(next.tokens, tokens[len(running)])
			running, next = append(running, next), nil
		}
		running = slices.DeleteFunc(running, func(q *sequence) bool {
			if len(q.tokens) < length {
				return false
			}
			freeSlots, freePages = append(freeSlots, q.slot), append(freePages, q.pages...)
			return true
		})
	}
	for i, q := range all {
		if !slices.Equal(q.tokens, want[i]) {
			t.Errorf("sequence %d: tokens %v, alone %v", i, q.tokens, want[i])
		}
	}
}

// TestAhead checks the tokens of steps that are all queued before the test waits for any of them.
func TestAhead(t *testing.T) {
	ck := written(t, tiny)
	s := open(t, ck, model.Options{Slots: 1, ChunkTokens: 32})
	prompt := random(rand.New(rand.NewPCG(5, 5)), 20, tiny.Vocab)
	want := alone(t, s, prompt, 30, model.Sampling{})

	q := &sequence{prompt: prompt, pages: pages(s, 0)}
	got := make([]int32, 30)
	var waits []func(context.Context) error
	plans := q.plans(s.Info())
	for range 29 {
		plans = append(plans, model.Plan{Decode: []int{0}})
	}
	for i, p := range plans {
		done, err := s.Run(p, got[i:i+1])
		if err != nil {
			t.Fatal(err)
		}
		waits = append(waits, done)
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if err := waits[29](ended); err != nil && !errors.Is(err, context.Canceled) {
		t.Errorf("done of an ended context: %v", err)
	}
	for _, done := range slices.Backward(waits) {
		if err := done(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	if !slices.Equal(got, want) {
		t.Errorf("tokens %v, one by one %v", got, want)
	}
}

// Ways to add the shards' products.
const byPeer, byCollective = "peer", "collective"

var ways = []string{byPeer, byCollective}

// teamOn opens a model on several devices, which add their products in the given way.
func teamOn(t *testing.T, way string, devices []*gpu.Device, ck *checkpoint.Checkpoint, o model.Options) (model.Runner, []*model.Shard) {
	t.Helper()
	o.Ranks = len(devices)
	var peers []*peer.Sum
	var comms []*collective.Communicator
	var err error
	if way == byPeer {
		peers, err = peer.New(t.Context(), devices, time.Minute)
	} else {
		comms, err = collective.NewAll(t.Context(), devices, collective.Options{Timeout: time.Minute})
	}
	if err != nil {
		t.Fatal(err)
	}
	var shards []*model.Shard
	var runners []model.Runner
	for i, dev := range devices {
		o.Rank = i
		if way == byPeer {
			t.Cleanup(func() { peers[i].Close() })
			o.Peer = peers[i]
		} else {
			t.Cleanup(func() { comms[i].Close() })
			o.Comm = comms[i]
		}
		s, err := model.Open(t.Context(), dev, ck, o)
		if err != nil {
			t.Fatal(err)
		}
		shards, runners = append(shards, s), append(runners, s)
	}
	team := model.NewTeam(runners...)
	t.Cleanup(func() {
		if err := team.Close(); err != nil {
			t.Error(err)
		}
	})
	return team, shards
}

func TestTeam(t *testing.T) {
	leaktest.Check(t)
	for name, ck := range map[string]*checkpoint.Checkpoint{
		"bfloat16": written(t, tiny), "float32": converted(t, tiny, checkpoint.F32), "FP8": converted(t, tiny, checkpoint.F8E4M3),
	} {
		for _, way := range ways {
			t.Run(name+", "+way, func(t *testing.T) {
				if testing.Short() && name != "bfloat16" {
					t.Skip("tests one kind of weights only")
				}
				team, shards := teamOn(t, way, simulated(t, 2, simdriver.Config{}), ck, model.Options{Slots: 3, ChunkTokens: 16, Warm: []int{1, 3}, WarmPrompts: true})
				if got, want := team.Info(), shards[0].Info(); got != want {
					t.Errorf("the team is %+v, its first shard %+v", got, want)
				}
				for _, s := range shards {
					checkLogits(t, ck, team, s)
				}
				checkSame(t, shards)
				if _, err := team.Run(model.Plan{Decode: []int{3}}, make([]int32, 1)); !errors.Is(err, model.ErrPlan) {
					t.Errorf("a bad plan: error %v", err)
				}
				invariant, shards := teamOn(t, way, simulated(t, 2, simdriver.Config{}), ck, model.Options{Slots: 3, ChunkTokens: 16, Invariant: true})
				checkLogits(t, ck, invariant, shards[1])
				prompt, sampling := []int32{1, 2, 3}, model.Sampling{Temperature: 1, Seed: 3}
				got := alone(t, team, prompt, 5, sampling)
				if again := alone(t, team, prompt, 5, sampling); !slices.Equal(got, again) {
					t.Errorf("one seed gave the tokens %v and then %v", got, again)
				}
			})
		}
	}
}

// TestTeamDisagrees checks that a team is broken after its second shard, but not the first, has
// refused a plan. The error must not be ErrPlan.
func TestTeamDisagrees(t *testing.T) {
	info := model.Info{Slots: 1, Pages: 4, PageTokens: 16, MaxTokens: 64, ChunkTokens: 16, Vocab: 10}
	first, second := fakemodel.New(info), fakemodel.New(info)
	second.Step = func(model.Plan) (time.Duration, error, error) {
		return 0, fmt.Errorf("%w: by the test", model.ErrPlan), nil
	}
	team := model.NewTeam(first, second)
	q := &sequence{prompt: []int32{1, 2, 3}, pages: pages(team, 0)}
	for range 2 {
		_, err := team.Run(q.plans(info)[0], make([]int32, 1))
		if err == nil || errors.Is(err, model.ErrPlan) || !strings.Contains(err.Error(), "shard 1 of 2: ") || !strings.Contains(err.Error(), "by the test") {
			t.Errorf("error %v", err)
		}
	}
	if n := first.Plans(); n != 1 {
		t.Errorf("the first shard has run %d plans, want 1", n)
	}
}

// TestOneGraph checks that with peers a decode step is one graph on each device, and no collective.
func TestOneGraph(t *testing.T) {
	d := simdriver.New(simdriver.Config{Devices: 2, Kernels: model.Sim()})
	g, err := gpu.OpenGroup(d, gpu.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { g.Close() })
	team, _ := teamOn(t, byPeer, g.Devices(), written(t, tiny), model.Options{Slots: 1, ChunkTokens: 16})
	q := &sequence{prompt: []int32{1, 2, 3}, pages: pages(team, 0)}
	q.begin(t, team)
	before := d.Counters()
	const steps = 5
	decode(t, team, steps, q)
	for i, c := range d.Counters().Devices {
		if n := c.Calls[simdriver.OpLaunchGraph] - before.Devices[i].Calls[simdriver.OpLaunchGraph]; n != steps {
			t.Errorf("device %d: %d graphs in %d steps", i, n, steps)
		}
		if n := c.Calls[simdriver.OpCollect]; n > 0 {
			t.Errorf("device %d: %d collectives", i, n)
		}
	}
}

// checkSame checks that the logits of all shards are equal, bit by bit. Otherwise the shards could
// choose different tokens.
func checkSame(t *testing.T, shards []*model.Shard) {
	t.Helper()
	want, err := shards[0].Logits(0)
	if err != nil {
		t.Fatal(err)
	}
	for i, s := range shards {
		if got, err := s.Logits(0); err != nil || !slices.Equal(got, want) {
			t.Errorf("shard %d has other logits than shard 0, or the error %v", i, err)
		}
	}
}

// TestLostPeer checks that plans fail, and do not run forever, if only one shard of two runs them.
func TestLostPeer(t *testing.T) {
	leaktest.Check(t)
	devices := simulated(t, 2, simdriver.Config{})
	ck := written(t, tiny)
	peers, err := peer.New(t.Context(), devices, 20*time.Millisecond)
	if err != nil {
		t.Fatal(err)
	}
	s := openOn(t, devices[0], ck, model.Options{Slots: 1, ChunkTokens: 16, Ranks: 2, Peer: peers[0]})
	t.Cleanup(func() { // closes the shard before the peers
		s.Close()
		for _, p := range peers {
			p.Close()
		}
	})
	q := &sequence{prompt: []int32{1, 2, 3}, pages: pages(s, 0)}
	for range 2 {
		done, err := s.Run(q.plans(s.Info())[0], make([]int32, 1))
		if err != nil {
			t.Fatal(err)
		}
		if err := done(t.Context()); err == nil || !strings.Contains(err.Error(), "for the numbers of rank 1") {
			t.Errorf("a plan without shard 1: error %v", err)
		}
	}
}

func TestBadPlans(t *testing.T) {
	ck := written(t, tiny)
	s := open(t, ck, model.Options{Slots: 2, ChunkTokens: 16})
	q := &sequence{prompt: []int32{1, 2, 3}, pages: pages(s, 0)[:1]}
	q.begin(t, s)
	chunk := func(slot, pos, n int, last bool) model.Plan {
		return model.Plan{
			Starts: []model.Start{{Slot: slot, Pages: []int32{4, 5}}},
			Chunk:  &model.Chunk{Slot: slot, Pos: pos, Tokens: make([]int32, n), Last: last},
		}
	}
	bad := map[string]model.Plan{
		"slot":                    {Decode: []int{2}},
		"negative slot":           {Decode: []int{-1}},
		"slot twice":              {Decode: []int{0, 0}},
		"slot without a prompt":   {Decode: []int{1}},
		"started slot":            {Starts: []model.Start{{Slot: 0}}, Decode: []int{0}},
		"start of no slot":        {Starts: []model.Start{{Slot: 5}}},
		"page":                    {Starts: []model.Start{{Slot: 1, Pages: []int32{int32(s.Info().Pages)}}}},
		"too many pages":          {Starts: []model.Start{{Slot: 1, Pages: make([]int32, 7)}}},
		"position":                chunk(1, 8, 3, true),
		"position behind":         chunk(1, 16, 3, true),
		"short chunk":             chunk(1, 0, 3, false),
		"long chunk":              chunk(1, 0, 17, true),
		"empty chunk":             chunk(1, 0, 0, true),
		"token":                   {Starts: []model.Start{{Slot: 1, Pages: []int32{1}}}, Chunk: &model.Chunk{Slot: 1, Tokens: []int32{131}, Last: true}},
		"chunk without pages":     {Starts: []model.Start{{Slot: 1}}, Chunk: &model.Chunk{Slot: 1, Tokens: []int32{1}, Last: true}},
		"chunk after the last":    {Chunk: &model.Chunk{Slot: 0, Tokens: []int32{1}, Last: true}},
		"decode of chunk's slot":  {Starts: []model.Start{{Slot: 1, Pages: []int32{1}}}, Chunk: &model.Chunk{Slot: 1, Tokens: []int32{1}, Last: true}, Decode: []int{1}},
		"more rows than possible": {Decode: make([]int, model.MaxRows+1)},
	}
	for name, p := range bad {
		if _, err := s.Run(p, make([]int32, 100)); !errors.Is(err, model.ErrPlan) {
			t.Errorf("%s: error %v, want ErrPlan", name, err)
		}
	}
	if _, err := s.Run(model.Plan{Decode: []int{0}}, nil); !errors.Is(err, model.ErrPlan) {
		t.Errorf("no room for the token: error %v, want ErrPlan", err)
	}
	decode(t, s, 13, q) // the page is full then
	if _, err := s.Run(model.Plan{Decode: []int{0}}, make([]int32, 1)); !errors.Is(err, model.ErrPlan) {
		t.Errorf("a token without a page: error %v, want ErrPlan", err)
	}
	if want := alone(t, open(t, ck, model.Options{Slots: 1, ChunkTokens: 16}), q.prompt, 14, model.Sampling{}); !slices.Equal(q.tokens, want) {
		t.Errorf("tokens %v beside bad plans, %v alone", q.tokens, want)
	}
}

func TestDoesNotFit(t *testing.T) {
	leaktest.Check(t)
	ck := written(t, tiny)
	for _, c := range []struct {
		memory uint64
		pages  int
		want   string
	}{
		{100 << 10, 0, "the weights need"},
		{64 << 20, 10_000, "the cache needs"},
	} {
		dev := simulated(t, 1, simdriver.Config{Memory: c.memory})[0]
		_, err := model.Open(t.Context(), dev, ck, model.Options{Slots: 1, Pages: c.pages})
		if !errors.Is(err, gpu.ErrOutOfMemory) || !strings.Contains(err.Error(), c.want) || !strings.Contains(err.Error(), " MB") {
			t.Errorf("memory of %d bytes: error %v", c.memory, err)
		}
		for dev.Stats().Buffers > 0 { // buffers are freed when the last work that used them has ended
			runtime.Gosched()
		}
	}
}

func TestBadWeights(t *testing.T) {
	leaktest.Check(t)
	dir := t.TempDir()
	if err := checkpointtest.Write(dir, tiny, 1, 1); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(dir, "model.safetensors")
	whole, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	dev := simulated(t, 1, simdriver.Config{})[0]

	cut := opened(t, dir)
	if err := os.Truncate(file, int64(len(whole)-100)); err != nil {
		t.Fatal(err)
	}
	if _, err := model.Open(t.Context(), dev, cut, model.Options{Slots: 1}); err == nil || !strings.Contains(err.Error(), "upload of the weights") {
		t.Errorf("a file that was cut: error %v", err)
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := model.Open(ended, dev, written(t, tiny), model.Options{Slots: 1}); !errors.Is(err, context.Canceled) {
		t.Errorf("a context that has ended: error %v", err)
	}

	// The first matrix of 128 × 128 becomes float16.
	mixed := strings.Replace(string(whole), `"BF16","shape":[128,128]`, `"F16","shape":[128,128] `, 1)
	if mixed == string(whole) {
		t.Fatal("the header has no matrix of 128 × 128")
	}
	if err := os.WriteFile(file, []byte(mixed), 0o666); err != nil {
		t.Fatal(err)
	}
	if _, err := model.Open(t.Context(), dev, opened(t, dir), model.Options{Slots: 1}); err == nil || !strings.Contains(err.Error(), "F16") {
		t.Errorf("matrices of two types: error %v", err)
	}
}

func TestBadOptions(t *testing.T) {
	ck := written(t, tiny)
	dev := simulated(t, 1, simdriver.Config{})[0]
	for _, o := range []model.Options{
		{MaxTokens: 91}, {ChunkTokens: 24}, {Slots: -1}, {Pages: -1}, {Warm: []int{0}}, {Warm: []int{65}}, {Ranks: 2}, {Rank: 1}, {Ranks: 3}, {Rank: -1},
	} {
		if _, err := model.Open(t.Context(), dev, ck, o); !errors.Is(err, gpu.ErrArgument) {
			t.Errorf("%+v: error %v", o, err)
		}
	}
}
