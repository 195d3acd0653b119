package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/puregpu/puregpu/runtime/collective"
	"github.com/puregpu/puregpu/runtime/driver"
	"github.com/puregpu/puregpu/runtime/driver/simdriver"
	"github.com/puregpu/puregpu/runtime/drivers"
	"github.com/puregpu/puregpu/runtime/examples/llama/internal/checkpoint"
	"github.com/puregpu/puregpu/runtime/examples/llama/internal/loadtest"
	"github.com/puregpu/puregpu/runtime/examples/llama/internal/model"
	"github.com/puregpu/puregpu/runtime/examples/llama/internal/peer"
	"github.com/puregpu/puregpu/runtime/examples/llama/internal/remote"
	"github.com/puregpu/puregpu/runtime/examples/llama/internal/tokenizer"
	"github.com/puregpu/puregpu/runtime/gpu"
	"github.com/puregpu/puregpu/runtime/rendezvous"
	_ "github.com/puregpu/puregpu/runtime/trace/cuptitrace" // times the commands of CUDA graphs: gputrace run -kernels
)

// A program has the flags and the state of the command that runs.
type program struct {
	*flag.FlagSet
	out, err  io.Writer
	log       *slog.Logger
	simulated driver.Driver // used with -sim; nil means new simulated GPUs

	folder     string
	sim        bool
	device     int
	tp         int
	place      rendezvous.Place
	rendezvous string
	wait       time.Duration
	reduce     string
	options    model.Options
	serving    serveSettings
	generating generateSettings
	benching   benchSettings
	loading    loadtest.Options

	// with sets the following fields.
	checkpoint *checkpoint.Checkpoint
	tokenizer  *tokenizer.Tokenizer
	devices    []*gpu.Device
	runner     model.Runner
}

// modelFlags defines the flags of all commands.
func (p *program) modelFlags() {
	p.StringVar(&p.folder, "model", "", "`folder` of the model")
	p.BoolVar(&p.sim, "sim", false, "use simulated GPUs, and a tiny random model if there is no -model")
	p.IntVar(&p.device, "device", -1, "`number` of the first GPU (default: by the rank)")
	p.IntVar(&p.tp, "tp", 1, "`number` of GPUs of this process that share the model's work")
	p.IntVar(&p.place.Rank, "rank", 0, "which `process` this is, from 0 (default: what the launcher says)")
	p.IntVar(&p.place.Count, "ranks", 0, "`number` of processes (default: what the launcher says)")
	p.StringVar(&p.rendezvous, "rendezvous", "", "`host:port` of rank 0 at which the ranks meet (default: by MASTER_ADDR and MASTER_PORT)")
	p.DurationVar(&p.wait, "rank-timeout", 30*time.Second, "how long ranks wait for each other in a step before they give up")
	p.StringVar(&p.reduce, "reduce", "", "`way` in which GPUs add their products: peer, a kernel that writes to the memory of the process's other GPUs, or collective (default: peer if possible)")
	o := &p.options
	p.IntVar(&o.Slots, "slots", 0, "`number` of sequences at once (default 64)")
	p.IntVar(&o.Pages, "pages", 0, "`number` of pages of 16 tokens of the cache (default: what fits into the memory)")
	p.IntVar(&o.ChunkTokens, "chunk", 0, "`number` of tokens of a prompt in a step (default 256)")
	p.IntVar(&o.MaxTokens, "max-tokens", 0, "`number` of tokens of the longest sequence (default: the model's)")
	p.BoolVar(&o.Invariant, "invariant", false, "make answers independent of the other requests; one alone is slower")
}

// A stack calls functions in the reverse order of push.
type stack []func() error

func (s *stack) push(f func() error) { *s = append(*s, f) }

func (s stack) close() (err error) {
	for i := range s {
		err = errors.Join(err, s[len(s)-1-i]())
	}
	return err
}

// with opens the model and runs a command. In a rank other than 0 the plans of rank 0 run instead
// of the command.
func (p *program) with(ctx context.Context, command func(context.Context) error) (err error) {
	if err := p.findPlace(); err != nil {
		return err
	}
	var open stack
	defer func() { err = errors.Join(err, open.close()) }()
	if p.folder == "" && p.sim {
		dir, err := os.MkdirTemp("", "llama")
		if err != nil {
			return err
		}
		open.push(func() error { return os.RemoveAll(dir) })
		p.folder = filepath.Join(dir, "tiny")
		if err := writeTiny(p.folder); err != nil {
			return err
		}
	}
	if p.folder == "" {
		return errors.New("no -model: give the folder of one, or -sim for a tiny random one on a simulated GPU")
	}
	if p.tokenizer, err = tokenizer.Load(p.folder); err != nil {
		return err
	}
	if p.checkpoint, err = checkpoint.Open(p.folder); err != nil {
		return err
	}
	open.push(p.checkpoint.Close)
	d, err := p.driver()
	if err != nil {
		return err
	}
	if err := p.openDevices(d, &open); err != nil {
		return err
	}
	peers, comms, err := p.join(ctx, &open)
	if err != nil {
		return err
	}
	shards, err := p.openShards(ctx, peers, comms)
	if err != nil {
		return err
	}
	p.runner = model.NewTeam(shards...)
	open.push(func() error { return p.runner.Close() })
	if p.place.Count <= 1 {
		return command(ctx)
	}
	abort := func(err error) { comms[0].Abort(err) } // without Abort, collectives wait for a lost rank until a timeout
	if p.place.Rank > 0 {
		f, err := remote.Join(ctx, p.meet(), p.runner)
		if err != nil {
			return err
		}
		p.log.Info("working for rank 0", "rank", p.place.Rank, "ranks", p.place.Count, "device", p.deviceName())
		if err = f.Run(context.WithoutCancel(ctx)); err != nil { // a signal does not end this rank: rank 0 does
			abort(err)
		}
		return err
	}
	others, err := remote.Lead(ctx, p.host(), p.meet(), p.runner.Info(), abort)
	if err != nil {
		return err
	}
	p.runner = model.NewTeam(append([]model.Runner{p.runner}, others...)...)
	return command(ctx)
}

// findPlace sets the place of this process among the ranks, from the flags or the launcher's
// environment. It also checks -tp and -reduce.
func (p *program) findPlace() error {
	p.place.LocalRank = -1
	if p.place.Count == 0 && p.place.Rank == 0 {
		place, err := rendezvous.FromEnv(nil)
		if err == nil {
			p.place = place
		} else if !errors.Is(err, rendezvous.ErrNone) {
			return err
		}
	} else if p.place.Rank < 0 || p.place.Rank >= p.place.Count {
		return fmt.Errorf("-rank %d -ranks %d: both are needed, and ranks begin at 0", p.place.Rank, p.place.Count)
	}
	if p.tp < 1 || p.tp > 1 && p.place.Count > 1 {
		return fmt.Errorf("-tp %d in %d process(es): with several processes, each has one GPU", p.tp, p.place.Count)
	}
	switch {
	case p.reduce != "" && p.reduce != "peer" && p.reduce != "collective":
		return fmt.Errorf("-reduce %s: it is peer or collective", p.reduce)
	case p.reduce == "peer" && p.tp == 1:
		return errors.New("-reduce peer: it needs several GPUs in the process, as with -tp 2")
	}
	return nil
}

func (p *program) meet() rendezvous.TCP { return rendezvous.TCP{Address: p.rendezvous, At: p.place} }

// host returns the name or address of rank 0's machine.
func (p *program) host() string {
	if host, _, err := net.SplitHostPort(p.rendezvous); err == nil {
		return host
	}
	return os.Getenv("MASTER_ADDR")
}

func (p *program) driver() (driver.Driver, error) {
	switch {
	case !p.sim:
		return drivers.Best(drivers.WithoutSim(), drivers.WithLogger(p.log))
	case p.simulated != nil:
		return p.simulated, nil
	case p.place.Count > 1:
		return nil, fmt.Errorf("the simulated GPUs of %d processes cannot reach each other: run one, with -tp %[1]d", p.place.Count)
	}
	return simdriver.New(simdriver.Config{Devices: max(p.device, 0) + p.tp, Kernels: model.Sim()}), nil
}

// openDevices opens the process's devices.
func (p *program) openDevices(d driver.Driver, open *stack) error {
	all, err := d.Devices()
	if err != nil {
		return err
	}
	first := p.device
	if first < 0 {
		if first = p.place.LocalRank; first < 0 {
			first = p.place.Rank // right for one machine, or for machines with equally many GPUs, all in use
		}
		first %= max(len(all), 1) // a launcher may let each process see only its own device
	}
	var indices []int
	for i := range p.tp {
		indices = append(indices, first+i)
	}
	g, err := gpu.OpenGroup(d, gpu.Options{}, indices...)
	if err != nil {
		return err
	}
	open.push(g.Close) // also closes communicators
	p.devices = g.Devices()
	return nil
}

// join makes a [peer.Sum] or a communicator for each device, if several devices share the model.
func (p *program) join(ctx context.Context, open *stack) ([]*peer.Sum, []*collective.Communicator, error) {
	o := collective.Options{Name: "llama", Timeout: p.wait}
	switch {
	case p.place.Count > 1:
		o.Rank, o.Rendezvous = -1, p.meet()
	case p.tp == 1:
		return nil, nil, nil
	case p.reduce != "collective":
		peers, err := peer.New(ctx, p.devices, p.wait)
		if err == nil {
			open.push(func() (err error) {
				for _, s := range peers {
					err = errors.Join(err, s.Close())
				}
				return err
			})
			return peers, nil, nil
		}
		if p.reduce != "" || !errors.Is(err, gpu.ErrUnsupported) {
			return nil, nil, err
		}
		p.log.Info("the GPUs add their products by collectives", "reason", err)
	}
	comms, err := collective.NewAll(ctx, p.devices, o)
	return nil, comms, err
}

// openShards opens a shard of the model on each device.
func (p *program) openShards(ctx context.Context, peers []*peer.Sum, comms []*collective.Communicator) ([]model.Runner, error) {
	shards, errs := make([]model.Runner, len(p.devices)), make([]error, len(p.devices))
	var all sync.WaitGroup
	for i, dev := range p.devices {
		o := p.options
		if peers != nil {
			o.Rank, o.Ranks, o.Peer = i, len(peers), peers[i]
		}
		if comms != nil {
			o.Rank, o.Ranks, o.Comm = comms[i].Rank(), comms[i].Count(), comms[i]
		}
		all.Go(func() {
			shard, err := model.Open(ctx, dev, p.checkpoint, o)
			if errs[i] = err; err == nil {
				shards[i] = shard
			}
		})
	}
	all.Wait()
	err := errors.Join(errs...)
	if err != nil {
		for _, s := range shards {
			if s != nil {
				err = errors.Join(err, s.Close())
			}
		}
		return nil, err
	}
	return shards, nil
}

func (p *program) stopTokens() (all []int32) {
	for _, t := range p.checkpoint.Config().EOS {
		all = append(all, int32(t))
	}
	return all
}

func (p *program) name() string { return filepath.Base(p.folder) }

func (p *program) deviceName() string {
	name := p.devices[0].Info().Name
	if n := len(p.devices); n > 1 {
		return fmt.Sprintf("%d × %s", n, name)
	}
	return name
}
