// Allreduce adds up a million numbers of each of several devices, which all have the sums in the end, and compares them with the
// host's. On each device it submits an upload, the all-reduce on a channel and a download at once, ordered by the values of
// a semaphore alone.
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
//
// Where the library for collective operations is missing it says so and ends well; with -driver cuda it fails.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"

	"github.com/puregpu/puregpu/runtime/dl"
	"github.com/puregpu/puregpu/runtime/driver"
	"github.com/puregpu/puregpu/runtime/driver/simdriver"
	"github.com/puregpu/puregpu/runtime/drivers"
	"github.com/puregpu/puregpu/runtime/examples/internal/ondriver"
	"github.com/puregpu/puregpu/runtime/gpu"
	"github.com/puregpu/puregpu/runtime/rendezvous"
)

func main() { os.Exit(run(os.Args[1:], os.Stdout, os.Stderr)) }

// run runs the program with its arguments and returns its exit status.
func run(args []string, stdout, stderr io.Writer) int {
	var s settings
	return ondriver.Program{
		Name:    "allreduce",
		Flags:   s.flags,
		Sim:     func() drivers.Option { return drivers.WithSim(simdriver.Config{Devices: max(s.devices, simulated)}) },
		Missing: missing,
		Run: func(ctx context.Context, d driver.Driver, w io.Writer) error {
			team, err := s.team(os.LookupEnv)
			if err != nil {
				return err
			}
			if team != nil && team.place.Count > 1 && d.Name() == drivers.Sim {
				return fmt.Errorf("the simulated GPUs of %d processes cannot reach each other: run one, with -devices %[1]d", team.place.Count)
			}
			return allreduce(ctx, d, s, team, w)
		},
	}.Main(args, stdout, stderr)
}

// simulated is how many devices the simulated GPU has if more are not asked for.
const simulated = 4

// missing reports whether an error says that the library is not there, or that the driver has none.
func missing(err error) bool {
	for _, e := range []error{dl.ErrNotFound, dl.ErrNotLoadable, dl.ErrTooOld, dl.ErrSymbol, driver.ErrUnsupported} {
		if errors.Is(err, e) {
			return true
		}
	}
	return false
}

// settings are what the flags say.
type settings struct {
	elements    int
	devices     int
	rank, count int
	folder      string
	address     string
}

func (s *settings) flags(f *flag.FlagSet) {
	f.IntVar(&s.elements, "elements", 1<<20, "`number` of elements that each device has")
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
	if s.devices < 0 || s.elements < 1 {
		return nil, fmt.Errorf("-devices %d -elements %d: nothing to do", s.devices, s.elements)
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

// allreduce opens devices, makes a channel for each, and reduces.
func allreduce(ctx context.Context, d driver.Driver, s settings, t *team, w io.Writer) (err error) {
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
	return reduce(ctx, channels, s.elements, w)
}
