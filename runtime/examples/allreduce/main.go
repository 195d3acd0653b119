// Allreduce trains a linear model on several devices at the same time, data parallel: each has samples of its own and all have the same
// weights. In each step each device computes a gradient from its samples, an all-reduce on a channel averages the gradients over all
// devices, and each takes the step with the average. All steps are submitted at once, to a stream a device. In the end each device's
// weights are compared with the host's.
//
// By itself it uses all devices that this process has; the simulated GPU, where there is no other, has 4. Started by torchrun,
// mpirun, srun or as a Kubernetes job it is one process of several, with a device each:
//
//	torchrun --nproc-per-node 8 --no-python allreduce
//	srun -n 16 --gpus-per-task 1 allreduce -id-folder /shared/me
//
// And so it is where the flags say which one, as on two machines with one device each:
//
//	allreduce -rank 0 -count 2 -address node1:4000
//	allreduce -rank 1 -count 2 -address node1:4000
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"log"
	"os"
	"time"

	"github.com/puregpu/puregpu/runtime/driver"
	"github.com/puregpu/puregpu/runtime/driver/simdriver"
	"github.com/puregpu/puregpu/runtime/drivers"
	"github.com/puregpu/puregpu/runtime/gpu"
	"github.com/puregpu/puregpu/runtime/rendezvous"
)

// simulated is how many devices the simulated GPU has if more are not asked for.
const simulated = 4

func main() {
	var s settings
	s.flags(flag.CommandLine)
	flag.Parse()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	t, err := s.team(os.LookupEnv)
	if err != nil {
		log.Fatal(err)
	}
	d, err := drivers.Best(drivers.WithSim(simdriver.Config{Devices: max(s.devices, simulated), Kernels: kernels}))
	if err != nil {
		log.Fatal(err)
	}
	if t != nil && t.place.Count > 1 && d.Name() == drivers.Sim {
		log.Fatalf("the simulated GPUs of %d processes cannot reach each other: run one, with -devices %[1]d", t.place.Count)
	}
	if err := run(ctx, d, s, t, os.Stdout); err != nil {
		log.Fatal(err)
	}
}

// settings are what the flags say.
type settings struct {
	samples     int
	devices     int
	rank, count int
	folder      string
	address     string
}

func (s *settings) flags(f *flag.FlagSet) {
	f.IntVar(&s.samples, "samples", 4096, "`number` of samples that each device has")
	f.IntVar(&s.devices, "devices", 0, "`number` of devices of each process (default: all, or one if there are several processes)")
	f.IntVar(&s.rank, "rank", -1, "which `process` this is, from 0; -1 for what the launcher says")
	f.IntVar(&s.count, "count", 0, "`number` of processes; 0 for what the launcher says")
	f.StringVar(&s.folder, "id-folder", "", "`folder` that all processes share, to pass the channel's id through files")
	f.StringVar(&s.address, "address", "", "`host:port` to pass the channel's id at, of process 0 (default: by MASTER_ADDR and MASTER_PORT)")
}

// A team is the processes that this one is of.
type team struct {
	place rendezvous.Place
	meet  gpu.Rendezvous
}

// team finds out which one of several processes this is. If it is alone there is no team.
func (s settings) team(env func(string) (string, bool)) (*team, error) {
	if s.devices < 0 || s.samples < 1 {
		return nil, fmt.Errorf("-devices %d -samples %d: nothing to do", s.devices, s.samples)
	}
	t := &team{place: rendezvous.Place{Rank: s.rank, Count: s.count, LocalRank: -1}}
	if s.rank >= 0 || s.count != 0 {
		if s.rank < 0 || s.rank >= s.count {
			return nil, fmt.Errorf("-rank %d -count %d: both are needed, and ranks begin at 0", s.rank, s.count)
		}
	} else {
		p, err := rendezvous.FromEnv(env)
		if errors.Is(err, rendezvous.ErrNone) && s.folder == "" && s.address == "" {
			return nil, nil
		}
		if err != nil {
			return nil, err
		}
		t.place = p
	}
	if s.folder != "" {
		t.meet = rendezvous.File{Path: s.folder, At: t.place}
	} else {
		t.meet = rendezvous.TCP{Address: s.address, At: t.place}
	}
	return t, nil
}

// devices returns which devices this process takes, of all that the driver has.
func (t *team) devices(all, each int) []int {
	if t == nil {
		if each == 0 {
			each = all
		}
		return upTo(0, each)
	}
	local := t.place.LocalRank
	if local < 0 {
		local = t.place.Rank // of the only machine, or one of equal ones
	}
	each = max(each, 1)
	return upTo(local%max(all/each, 1)*each, each) // a launcher may show each process its own device alone, as the first
}

// upTo returns n numbers beginning with first.
func upTo(first, n int) []int {
	var all []int
	for i := range n {
		all = append(all, first+i)
	}
	return all
}

// run opens devices, makes a channel for each, and trains.
func run(ctx context.Context, d driver.Driver, s settings, t *team, w io.Writer) (err error) {
	infos, err := d.Devices()
	if err != nil {
		return err
	}
	g, err := gpu.OpenGroup(d, gpu.Options{}, t.devices(len(infos), s.devices)...)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, g.Close()) }() // what was allocated goes with it, and the channels do
	o := gpu.ChannelOptions{Name: "allreduce"}
	if t != nil {
		o.Rank, o.Rendezvous = -1, t.meet
		if l := t.place.Launcher; l != "" {
			fmt.Fprintf(w, "allreduce: process %d of %d, says %s\n", t.place.Rank, t.place.Count, l)
		}
	}
	channels, err := g.NewChannels(ctx, o)
	if err != nil {
		return err
	}
	return train(ctx, channels, s.samples, w)
}
