package model_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/puregpu/puregpu/runtime/drivers"
	"github.com/puregpu/puregpu/runtime/examples/llama/internal/checkpoint"
	"github.com/puregpu/puregpu/runtime/examples/llama/internal/model"
	"github.com/puregpu/puregpu/runtime/gpu"
)

// realGPUs opens the first n GPUs, or skips the test.
func realGPUs(t *testing.T, n int) []*gpu.Device {
	t.Helper()
	d, err := drivers.Best(drivers.WithoutSim())
	if errors.Is(err, drivers.ErrNoGPU) {
		t.Skip(err)
	}
	if err != nil {
		t.Fatal(err)
	}
	g, err := gpu.OpenGroup(d, gpu.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { g.Close() })
	if all := g.Devices(); len(all) >= n {
		return all[:n]
	}
	t.Skipf("there are fewer than %d GPUs", n)
	return nil
}

// Ways to decode.
const withoutAlone, invariant = "without the kernel for a lone sequence", "invariant"

var hows = []string{"as usual", withoutAlone, invariant}

// folder returns the folder that an environment variable names, or skips the test.
func folder(t *testing.T, variable string) string {
	t.Helper()
	dir := os.Getenv(variable)
	if dir == "" {
		t.Skipf("%s does not name a folder", variable)
	}
	return dir
}

// TestGPUSmall compares the kernels of a GPU with the reference, on a small random model.
func TestGPUSmall(t *testing.T) {
	dev := realGPUs(t, 1)[0]
	for _, how := range hows {
		t.Run(how, func(t *testing.T) {
			ck := written(t, tiny)
			s := openOn(t, dev, ck, model.Options{Slots: 3, ChunkTokens: 16, Pages: 64, Invariant: how == invariant})
			if how == withoutAlone {
				s.WithoutAlone()
			}
			checkLogits(t, ck, s, s)
			p, tokens, ctx := model.Plan{Decode: []int{2, 0}}, make([]int32, 2), t.Context()
			step := func() {
				done, err := s.Run(p, tokens)
				if err == nil {
					err = done(ctx)
				}
				if err != nil {
					t.Fatal(err)
				}
			}
			step()
			if n := testing.AllocsPerRun(10, step); n > 4 { // for the function that Run returns, and the wait in it
				t.Errorf("a step allocates %v times", n)
			}
		})
	}
}

func TestGPUManyRows(t *testing.T) { testManyRows(t, realGPUs(t, 1)) }

func TestGPUManyRowsTeam(t *testing.T) { testManyRows(t, realGPUs(t, 2)) }

// TestGPUReference compares logits with those that testdata/reference.py wrote to the folder that
// PUREGPU_LLAMA_REFERENCE names. Each sequence is given the reference's tokens, whatever the shard
// would choose.
func TestGPUReference(t *testing.T) {
	dir := folder(t, "PUREGPU_LLAMA_REFERENCE")
	dev := realGPUs(t, 1)[0]
	ck := opened(t, dir)
	sequences, want := readLogits(t, dir)
	for _, how := range hows {
		s := openOn(t, dev, ck, model.Options{Slots: len(sequences), Invariant: how == invariant})
		if how == withoutAlone {
			s.WithoutAlone()
		}
		for i := range sequences {
			forced(t, fmt.Sprintf("sequence %d alone, %s", i, how), s, sequences[i:i+1], want[i:i+1])
		}
		forced(t, "sequences together, "+how, s, sequences, want)
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

// readLogits returns the sequences of the reference, and the logits for each of their tokens.
func readLogits(t *testing.T, dir string) (all []sequence, logits [][][]float32) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(dir, "logits.json"))
	if err != nil {
		t.Fatal(err)
	}
	var file struct {
		Vocab     int
		Sequences []struct{ Prompt, Tokens []int32 }
	}
	if err := json.Unmarshal(text, &file); err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile(filepath.Join(dir, "logits.f32"))
	if err != nil {
		t.Fatal(err)
	}
	for i, q := range file.Sequences {
		all = append(all, sequence{slot: i, prompt: q.Prompt, tokens: q.Tokens})
		var rows [][]float32
		for range q.Tokens {
			row := make([]float32, file.Vocab)
			data = data[copy(gpu.BytesOf(row), data):]
			rows = append(rows, row)
		}
		logits = append(logits, rows)
	}
	return all, logits
}

// forced makes s decode the tokens of the sequences, and compares the logits of each sequence with
// those in want.
func forced(t *testing.T, what string, s *model.Shard, sequences []sequence, want [][][]float32) {
	t.Helper()
	var wrong, squares float64
	check := func(i, row, step int, token int32) {
		got, err := s.Logits(row)
		if err != nil {
			t.Fatal(err)
		}
		compare(t, fmt.Sprintf("%s: token %d behind a prompt of %d", what, step, len(sequences[i].prompt)), got, token, want[i][step])
		for k, w := range want[i][step] {
			wrong += float64(w-got[k]) * float64(w-got[k])
			squares += float64(w) * float64(w)
		}
	}
	var p model.Plan
	for i, q := range sequences {
		q := sequence{slot: q.slot, prompt: q.prompt, pages: pages(s, q.slot)}
		q.begin(t, s)
		check(i, 0, 0, q.tokens[0])
		p.Decode = append(p.Decode, q.slot)
	}
	for step := 1; step < len(sequences[0].tokens); step++ {
		for _, q := range sequences {
			if err := s.Force(q.slot, q.tokens[step-1]); err != nil {
				t.Fatal(err)
			}
		}
		for i, token := range run(t, s, p) {
			check(i, i, step, token)
		}
	}
	t.Logf("%s: relative error of the logits %.2e", what, math.Sqrt(wrong/squares))
}

func TestGPUTeam(t *testing.T) {
	for name, ck := range map[string]*checkpoint.Checkpoint{"bfloat16": written(t, tiny), "FP8": converted(t, tiny, checkpoint.F8E4M3)} {
		for _, way := range ways {
			t.Run(name+", "+way, func(t *testing.T) {
				team, shards := teamOn(t, way, realGPUs(t, 2), ck, model.Options{Slots: 3, ChunkTokens: 16, Pages: 64})
				for _, s := range shards {
					checkLogits(t, ck, team, s)
				}
				checkSame(t, shards)
			})
		}
	}
}

// TestGPUTimes prints the times of a model, if PUREGPU_LLAMA_TIMES names its folder.
func TestGPUTimes(t *testing.T) {
	dir := folder(t, "PUREGPU_LLAMA_TIMES")
	dev := realGPUs(t, 1)[0]
	var table strings.Builder
	row := func(what, format string, args ...any) {
		fmt.Fprintf(&table, "%-44s "+format+"\n", append([]any{what}, args...)...)
	}
	row("device", "%s", dev.Info().Name)
	bandwidth := copyBandwidth(t, dev)
	row("copy on the device, read and written", "%.0f GB/s", bandwidth/1e9)

	start := time.Now()
	ck := opened(t, dir)
	row("open the checkpoint", "%v", time.Since(start).Round(time.Millisecond/10))
	for _, when := range []string{"first", "again"} {
		start = time.Now()
		n, err := model.Upload(t.Context(), dev, ck)
		if err != nil {
			t.Fatal(err)
		}
		took := time.Since(start)
		row("upload the weights, "+when, "%v, %.2f GB, %.1f GB/s", took.Round(time.Millisecond), float64(n)/1e9, float64(n)/1e9/took.Seconds())
	}
	for _, how := range hows {
		start = time.Now()
		s := openOn(t, dev, ck, model.Options{
			MaxTokens: min(2048, ck.Config().MaxTokens), ChunkTokens: 512, Pages: model.MaxRows * 128, Invariant: how == invariant, WarmPrompts: true,
		})
		row("open the model, "+how, "%v", time.Since(start).Round(time.Millisecond))
		if how == withoutAlone {
			s.WithoutAlone()
		}
		times(t, s, s, ck, bandwidth, row)
		if how == hows[0] {
			list, err := s.ChunkTimes()
			if err != nil {
				t.Fatal(err)
			}
			for _, p := range list {
				row("chunk of 512 on the device, "+p.Name, "%.1f µs, %.2f µs a layer", float64(p.Took.Nanoseconds())/1e3,
					float64(p.Took.Nanoseconds())/1e3/float64(ck.Config().Layers))
			}
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
	}
	t.Logf("\n%s", table.String())
}

// TestGPUTeamTimes prints the times of a model on one GPU and on two, if PUREGPU_LLAMA_TIMES names
// its folder.
func TestGPUTeamTimes(t *testing.T) {
	dir := folder(t, "PUREGPU_LLAMA_TIMES")
	devices := realGPUs(t, 2)
	var table strings.Builder
	row := func(what, format string, args ...any) {
		fmt.Fprintf(&table, "%-44s "+format+"\n", append([]any{what}, args...)...)
	}
	row("device", "%s", devices[0].Info().Name)
	bandwidth := copyBandwidth(t, devices[0])
	ck := opened(t, dir)
	o := model.Options{MaxTokens: min(2048, ck.Config().MaxTokens), ChunkTokens: 512, Pages: model.MaxRows * 128}
	row("one GPU", "")
	s := openOn(t, devices[0], ck, o)
	times(t, s, s, ck, bandwidth, row)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	for _, way := range ways {
		row("two GPUs, "+way, "")
		start := time.Now()
		team, shards := teamOn(t, way, devices, ck, o)
		row("open the model", "%v", time.Since(start).Round(time.Millisecond))
		times(t, team, shards[0], ck, bandwidth, row)
		if err := team.Close(); err != nil {
			t.Fatal(err)
		}
	}
	t.Logf("\n%s", table.String())
}

// times measures prompts and decode steps of a runner that has the shard.
func times(t *testing.T, r model.Runner, s *model.Shard, ck *checkpoint.Checkpoint, bandwidth float64, row func(what, format string, args ...any)) {
	const length, steps = 512, 32
	prompt := random(rand.New(rand.NewPCG(1, 1)), length, ck.Config().Vocab)
	var queued, took []time.Duration
	for slot := range model.MaxRows {
		q := &sequence{slot: slot, prompt: prompt, pages: pages(r, slot)}
		var token [1]int32
		start := time.Now()
		done, err := r.Run(q.plans(r.Info())[0], token[:])
		if err != nil {
			t.Fatal(err)
		}
		queued = append(queued, time.Since(start))
		if err := done(t.Context()); err != nil {
			t.Fatal(err)
		}
		took = append(took, time.Since(start))
	}
	row(fmt.Sprintf("first token of a prompt of %d, time 1", length), "%v", took[0].Round(time.Microsecond))
	slices.Sort(queued)
	slices.Sort(took)
	row(fmt.Sprintf("first token of a prompt of %d, median", length), "%v, least %v; Run returns after %v", took[len(took)/2].Round(time.Microsecond),
		took[0].Round(time.Microsecond), queued[len(queued)/2].Round(time.Microsecond))
	for _, rows := range []int{1, 2, 4, 8, 16, 32, 64} {
		var p model.Plan
		for slot := range rows {
			p.Decode = append(p.Decode, slot)
		}
		ahead(t, r, p, 3)
		var list []time.Duration // of runs of all steps
		for range 3 {
			start := time.Now()
			ahead(t, r, p, steps)
			list = append(list, time.Since(start)/steps)
		}
		slices.Sort(list)
		step := list[1]
		share := float64(s.StepBytes(rows*(length+steps))) / step.Seconds() / bandwidth
		row(fmt.Sprintf("decode step of %d", rows), "%.1f µs (slowest %.1f), %.0f tokens/s, %.1f %% of the copy's bandwidth",
			float64(step.Nanoseconds())/1e3, float64(list[2].Nanoseconds())/1e3, float64(rows)/step.Seconds(), 100*share)
		if r != model.Runner(s) {
			continue // a shard of a team cannot run a step alone
		}
		alone, err := s.StepTime(rows)
		if err != nil {
			t.Fatal(err)
		}
		row(fmt.Sprintf("decode step of %d, without downloads", rows), "%.1f µs, %.1f %% of the copy's bandwidth",
			float64(alone.Nanoseconds())/1e3, 100*share*step.Seconds()/alone.Seconds())
	}
}

// ahead runs a plan several times, without waiting in between.
func ahead(t *testing.T, r model.Runner, p model.Plan, n int) {
	t.Helper()
	var done func(context.Context) error
	tokens := make([]int32, model.MaxRows)
	for range n {
		var err error
		if done, err = r.Run(p, tokens); err != nil {
			t.Fatal(err)
		}
	}
	if err := done(t.Context()); err != nil {
		t.Fatal(err)
	}
}

// copyBandwidth returns the bytes that copies on the device read and write in a second.
func copyBandwidth(t *testing.T, dev *gpu.Device) float64 {
	t.Helper()
	const size, count = 1 << 30, 20
	a, err1 := dev.Alloc(gpu.DeviceMem, size)
	b, err2 := dev.Alloc(gpu.DeviceMem, size)
	if err := errors.Join(err1, err2); err != nil {
		t.Fatal(err)
	}
	defer a.Close()
	defer b.Close()
	s := dev.Queue(0).NewStream()
	run := func(n int) time.Duration {
		start := time.Now()
		for range n {
			s.Copy(b.All(), a.All())
		}
		if err := s.Wait(t.Context()); err != nil {
			t.Fatal(err)
		}
		return time.Since(start)
	}
	run(2)
	return 2 * size * count / run(count).Seconds()
}
