package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"time"
)

// A way says how the ranks of an all-reduce are spread over processes.
type way string

const (
	inOne   way = "one process"
	inMany  way = "processes" // one process for each device
	pytorch way = "PyTorch"   // also one process for each device
)

// An allReduce describes a row, for programs that read the JSON.
type allReduce struct {
	Bytes  uint64 `json:"bytes"`
	Ranks  int    `json:"ranks"`
	Way    way    `json:"way"`
	Figure string `json:"figure"`
}

// busBandwidth is the figure to draw: the load of a link if the ranks are a ring, bytes over time ×
// 2(n-1)/n.
const busBandwidth = "bus bandwidth"

// collectiveBenches time all-reduces over all devices. The raw side is PyTorch; the rows of small
// all-reduces have none. The processes of both sides start once and serve all rows. Each side frees
// its memory after its turn, so that the other side can use the space.
func collectiveBenches(e *env) []bench {
	var all []bench
	for _, w := range []way{inOne, inMany} {
		for _, size := range reduceSizes(e.count, e.opt) {
			all = append(all, reduceBench(e, w, size))
		}
	}
	for _, w := range []way{inOne, inMany} {
		all = append(all, smallBench(e, w))
	}
	return all
}

// reduceSizes returns the numbers of bytes to reduce: powers of 4, or all powers of 2 with -long. A
// single device has nothing to reduce, so it gets two sizes.
func reduceSizes(devices int, opt options) []uint64 {
	const first = 1 << 10
	last, step := uint64(1<<30), 2
	switch {
	case opt.sim: // the host adds up
		last = 256 << 10
	case devices == 1:
		return []uint64{first, 1 << 20}
	}
	if opt.long {
		step = 1
	}
	var sizes []uint64
	for s := uint64(first); s <= last; s <<= step {
		sizes = append(sizes, s)
	}
	return sizes
}

// reduceCounts returns how many all-reduces of size bytes a turn does, and the number of rounds.
// Enough are submitted ahead to hide the host's time at either end, some tens of microseconds.
// Bandwidths vary by one percent between turns, so there are many rounds.
func reduceCounts(size uint64, sim bool) (c counts, rounds int) {
	switch {
	case sim:
		return counts{Warm: 2, Timed: 10, Ahead: 20}, 2
	case size < 1<<20:
		return counts{Warm: 20, Timed: 200, Ahead: 200}, 7
	case size < 16<<20:
		return counts{Warm: 10, Timed: 50, Ahead: 2000}, 21
	case size < 64<<20:
		return counts{Warm: 10, Timed: 50, Ahead: 1300}, 21
	case size < 256<<20:
		return counts{Warm: 5, Timed: 20, Ahead: 400}, 15
	case size < 1<<30:
		return counts{Warm: 3, Timed: 8, Ahead: 110}, 11
	}
	return counts{Warm: 3, Timed: 8, Ahead: 30}, 5
}

// chainedTo is the largest size for which chains are timed. For larger sizes the time on the link
// hides the host's work.
const chainedTo = 16 << 20

// The address of memory changes the bandwidth by one percent, mostly for sizes that fit into the
// devices' caches. So each turn puts its memory behind a gap of another size: a multiple of
// padding, below pads times padding.
const (
	pads    = 31
	padding = 2 << 20 // the size of a large page
)

// reduceBench times all-reduces of one size.
func reduceBench(e *env, w way, size uint64) bench {
	n := e.count
	var rows []row
	add := func(short, figure string, u unit, g goal, detail bool) {
		rows = append(rows, row{name: fmt.Sprintf("collectives/all-reduce %s, %s: %s", sizeText(size), w, short),
			unit: u, goal: g, detail: detail, of: &allReduce{size, n, w, figure}})
	}
	var fast, wide goal
	if size < 1<<20 {
		fast = goal{max: 1, of: ofRaw, device: true}
	} else {
		wide = goal{min: 0.99, of: ofRaw, device: true}
	}
	add("p50", "time until done, p50", ns, fast, false)
	add("min", "time until done, min", ns, goal{}, true)
	add("each", "time of one of many submitted ahead", ns, goal{}, true)
	if n > 1 { // one rank moves no data
		add("algbw", "algorithm bandwidth", gigabytes, goal{}, true)
		add("busbw", busBandwidth, gigabytes, wide, false)
	}
	c, rounds := reduceCounts(size, e.opt.sim)
	chained := -1 // index of the first row of chained all-reduces; -1 if there is none
	if n > 1 && size <= chainedTo {
		chained, c.Chained = len(rows), min(c.Ahead, 200)
		few := goal{max: 1, of: ofRaw, device: true}
		if size <= 64<<10 {
			few = goal{max: 20e3, device: true}
		}
		add("chain", "time of one of a chain by points, submitted ahead", ns, few, false)
		add("stream", "time of one of a stream, submitted ahead", ns, few, false)
		add("stream, fills", "time of a fill and one of a stream, submitted ahead", ns, goal{}, false)
	}
	return bench{
		rows:   rows,
		rounds: rounds,
		open: func(e *env) (sides, error) {
			ours, err := e.workers(w)
			if err != nil {
				return sides{}, err
			}
			turn := func(t *team) func(f []float64) error {
				turns := uint64(0)
				return func(f []float64) error {
					turns++
					all, err := t.askAll(e.ctx, order{Do: "time", Bytes: size, Pad: turns * 7 % pads * padding, counts: c})
					if err != nil {
						return err
					}
					a := slowest(all)
					f[0], f[1], f[2] = a.P50, a.Min, a.Each
					if n > 1 {
						f[3] = float64(size) / a.Each // bytes a nanosecond are GB a second
						f[4] = f[3] * 2 * float64(n-1) / float64(n)
					}
					if chained >= 0 {
						f[chained], f[chained+1], f[chained+2] = a.Chain, a.Stream, a.Filled
					}
					return nil
				}
			}
			raw := e.pytorch()
			if raw == nil {
				return sides{pure: turn(ours), lone: true}, nil
			}
			return sides{raw: turn(raw), pure: turn(ours)}, nil
		},
	}
}

// smallBench times many small all-reduces, each as a group of its own, and recorded as one group.
func smallBench(e *env, w way) bench {
	const group, size = 100, 4 << 10
	name := func(how string) string {
		return fmt.Sprintf("collectives/%d × %s %s, %s", group, sizeText(size), how, w)
	}
	times := 20
	if e.opt.sim {
		times = 2
	}
	var g goal
	if e.count > 1 {
		g = goal{max: 0.2, of: ofBase, device: true}
	}
	return bench{
		rows:   []row{{name: name("one by one"), unit: ns}, {name: name("recorded"), unit: ns, goal: g}},
		rounds: 5,
		open: func(e *env) (sides, error) {
			ours, err := e.workers(w)
			if err != nil {
				return sides{}, err
			}
			return sides{pure: func(f []float64) error {
				all, err := ours.askAll(e.ctx, order{Do: "small", Bytes: size, Group: group, counts: counts{Timed: times}})
				if err != nil {
					return err
				}
				a := slowest(all)
				f[0], f[1] = a.OneByOne, a.Recorded
				return nil
			}}, nil
		},
	}
}

// teams are the processes for collectives. The first bench that needs them starts them.
type teams struct {
	byWay map[way]*team
	torch answer // PyTorch's answer to the order "open"; zero without PyTorch
	known bool   // whether the remark about NCCL was printed
}

// startLimit is how long processes may take to get ready: PyTorch is large.
const startLimit = 2 * time.Minute

// team returns the team of a way. The first call for a way starts it.
func (e *env) team(w way, start func(ctx context.Context) *team) *team {
	t, ok := e.teams.byWay[w]
	if !ok {
		ctx, cancel := context.WithTimeoutCause(e.ctx, startLimit, fmt.Errorf("not ready after %v", startLimit))
		defer cancel()
		t = start(ctx)
		if e.teams.byWay == nil {
			e.teams.byWay = map[way]*team{}
		}
		e.teams.byWay[w] = t
	}
	return t
}

// pytorch returns the raw side, or nil if there is none.
func (e *env) pytorch() *team {
	if e.opt.sim || e.count < 2 {
		return nil
	}
	t := e.team(pytorch, func(ctx context.Context) *team {
		cmds, err := pytorchCommands(e.opt.python, e.count)
		t := startTeam("PyTorch", cmds...)
		if err != nil {
			t.end(err)
		}
		if all, err := t.askAll(ctx, order{Do: "open"}); err != nil {
			if missing := (*missingError)(nil); errors.As(err, &missing) {
				err = missing
			}
			e.remark("collectives have no raw side: %v", err)
		} else {
			e.teams.torch = all[0]
		}
		return t
	})
	if t.over != nil {
		return nil
	}
	return t
}

// workers returns puregpu's side.
func (e *env) workers(w way) (*team, error) {
	switch {
	case w == inMany && e.opt.sim:
		return nil, fmt.Errorf("%w: simulated devices of several processes cannot reach each other", errNotRun)
	case w == inMany && e.count < 2:
		return nil, fmt.Errorf("%w: two devices are needed, and there is one", errNotRun)
	}
	e.pytorch() // starts PyTorch's processes first, because the workers use their NCCL
	t := e.team(w, func(ctx context.Context) *team { return e.startWorkers(ctx, w) })
	if missing := (*missingError)(nil); errors.As(t.over, &missing) {
		return nil, fmt.Errorf("%w: %v", errNotRun, missing)
	}
	return t, t.over
}

// ncclVariable is the environment variable with the file of NCCL.
const ncclVariable = "PUREGPU_NCCL_LIBRARY"

// startWorkers starts this program once, or once for each device, and makes a communicator for each
// device.
func (e *env) startWorkers(ctx context.Context, w way) *team {
	var devices [][]int
	for i := range e.count {
		if w == inMany || i == 0 {
			devices = append(devices, nil)
		}
		last := &devices[len(devices)-1]
		*last = append(*last, i)
	}
	self, err := os.Executable()
	var cmds []*exec.Cmd
	for range devices {
		cmd := exec.Command(self, workerArg)
		cmd.Env = append(os.Environ(), noMulticast)
		if file := e.teams.torch.Library; file != "" && os.Getenv(ncclVariable) == "" {
			cmd.Env = append(cmd.Env, ncclVariable+"="+file)
		}
		cmds = append(cmds, cmd)
	}
	t := startTeam("puregpu in "+string(w), cmds...)
	if err != nil {
		t.end(err)
	}
	simulated := 0
	if e.opt.sim {
		simulated = e.count
	}
	all, err := t.ask(ctx, func(i int) order {
		return order{Do: "open", Simulated: simulated, Devices: devices[i], Rank: devices[i][0]}
	})
	if err == nil {
		all, err = t.askAll(ctx, order{Do: "join", ID: all[0].ID, Ranks: e.count})
	}
	if err == nil && !e.opt.sim && !e.teams.known {
		e.teams.known = true
		e.remarkNCCL(all[0])
	}
	return t
}

// remarkNCCL prints the NCCL of each side.
func (e *env) remarkNCCL(ours answer) {
	torch := e.teams.torch
	if torch.NCCL == "" {
		e.remark("NCCL %s, %s", ours.NCCL, noMulticast)
		e.remark("NCCL is %s", ours.Library)
		return
	}
	e.remark("NCCL %s of puregpu and %s of PyTorch %s, %s for both", ours.NCCL, torch.NCCL, torch.Torch, noMulticast)
	if torch.Library == "" {
		torch.Library = "unknown"
	}
	if torch.Library == ours.Library {
		e.remark("NCCL is %s", ours.Library)
	} else {
		e.remark("puregpu's NCCL is %s, PyTorch's %s", ours.Library, torch.Library)
	}
	if torch.NCCL != ours.NCCL {
		e.remark("warning: the two sides are not the same NCCL: compare them with care, or name PyTorch's in %s", ncclVariable)
	}
}

// close ends the processes. It ignores errors of PyTorch's processes.
func (s *teams) close() (err error) {
	for w, t := range s.byWay {
		if end := t.close(); w != pytorch {
			err = errors.Join(err, end)
		}
	}
	s.byWay = nil
	return err
}
