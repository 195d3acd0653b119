// Allreduce trains a linear model on several devices at the same time, data parallel: each device
// has its own samples, and all have the same weights. In each step each device computes a gradient
// from its samples, an all-reduce on a communicator averages the gradients over all devices, and
// each device applies the average. Each device has a stream. The program submits ten steps at once,
// and then downloads the weights. After a failure the training continues from the downloaded
// weights. At the end the program computes the weights on the host, and compares each device's
// weights with them.
//
// A rank may die in the middle. Then the other ranks' all-reduces fail, but steps issued after them
// still run: each rank applies a gradient that is not reduced, and the ranks' weights differ. So
// the survivors discard the data on their devices. They make a new communicator, together with the
// rank that the launcher starts in place of the dead one. The ranks exchange the numbers of steps
// that they have done, and the rank that has done the most steps broadcasts its last state. This
// works only if the launcher restarts the dead process alone.
//
// Started directly, the program uses all devices of the machine, or 4 simulated ones if the machine
// has none. Started by torchrun, mpirun, srun or as a Kubernetes job, the program is one process of
// several, with one device each:
//
//	torchrun --nproc-per-node 8 --no-python allreduce
//	srun -n 16 --gpus-per-task 1 allreduce -id-folder /shared/me
//
// Flags can also set the rank of the process, for example on two machines with one device each:
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

	"github.com/puregpu/puregpu/runtime/collective"
	"github.com/puregpu/puregpu/runtime/driver"
	"github.com/puregpu/puregpu/runtime/driver/simdriver"
	"github.com/puregpu/puregpu/runtime/drivers"
	"github.com/puregpu/puregpu/runtime/gpu"
	"github.com/puregpu/puregpu/runtime/rendezvous"
)

// simulated is the smallest number of simulated devices.
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
	if _, err := run(ctx, d, s, t, os.Stdout); err != nil {
		log.Fatal(err)
	}
}

// settings are the values of the flags.
type settings struct {
	samples     int
	devices     int
	rank, count int
	folder      string
	address     string
	timeout     time.Duration
}

func (s *settings) flags(f *flag.FlagSet) {
	f.IntVar(&s.samples, "samples", 4096, "`number` of samples that each device has")
	f.IntVar(&s.devices, "devices", 0, "`number` of devices of each process (default: all, or one if there are several processes)")
	f.IntVar(&s.rank, "rank", -1, "which `process` this is, from 0; -1 for what the launcher says")
	f.IntVar(&s.count, "count", 0, "`number` of processes; 0 for what the launcher says")
	f.StringVar(&s.folder, "id-folder", "", "`folder` that all processes share, to pass the communicator's id through files")
	f.DurationVar(&s.timeout, "timeout", 20*time.Second, "how long an all-reduce may take; then all ranks begin anew from their last state; 0 for ever")
	f.StringVar(&s.address, "address", "", "`host:port` to pass the communicator's id at, of process 0 (default: by MASTER_ADDR and MASTER_PORT)")
}

// A team is a set of processes that train together.
type team struct {
	place rendezvous.Place
	meet  collective.Rendezvous
}

// team returns the team of this process, with the rank of the process. Without a launcher, and
// without flags for a team, team returns nil: the process trains alone.
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

// devices returns the indices of the devices that this process uses. all is the driver's number of
// devices. each is the number of devices that a process uses; 0 means all devices, or one device
// for a process of a team.
func (t *team) devices(all, each int) []int {
	if t == nil {
		if each == 0 {
			each = all
		}
		return upTo(0, each)
	}
	local := t.place.LocalRank
	if local < 0 {
		local = t.place.Rank // right for one machine, or for machines with equally many devices, all in use
	}
	each = max(each, 1)
	return upTo(local%max(all/each, 1)*each, each) // a launcher may let each process see only its own device
}

// upTo returns n numbers beginning with first.
func upTo(first, n int) []int {
	var all []int
	for i := range n {
		all = append(all, first+i)
	}
	return all
}

// tries is the number of attempts at training, including the first.
const tries = 5

// run opens devices and trains. When a communicator fails, run makes new communicators and
// continues from the last state on the host. It returns the state of each rank of this process.
//
// The weights on the devices cannot be used after a failure. The steps after a failed all-reduce
// still run, with gradients that are not reduced, so the ranks' weights differ.
func run(ctx context.Context, d driver.Driver, s settings, t *team, w io.Writer) (states []state, err error) {
	infos, err := d.Devices()
	if err != nil {
		return nil, err
	}
	g, err := gpu.OpenGroup(d, gpu.Options{}, t.devices(len(infos), s.devices)...)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, g.Close()) }() // also frees the memory and closes the communicators
	o := collective.Options{Name: "allreduce", Timeout: s.timeout}
	if t != nil {
		o.Rank, o.Rendezvous = -1, t.meet
		if l := t.place.Launcher; l != "" {
			fmt.Fprintf(w, "allreduce: process %d of %d, says %s\n", t.place.Rank, t.place.Count, l)
		}
	}
	states = make([]state, len(g.Devices()))
	for try := 1; ; try++ {
		err := attempt(ctx, g, o, s.samples, states, w)
		if _, failed := errors.AsType[*collective.Error](err); !failed || try == tries || ctx.Err() != nil {
			return states, err
		}
		fmt.Fprintf(w, "allreduce: once more, from step %d: %v\n", states[0].steps, err)
	}
}

// attempt makes a communicator for each device, waits for all ranks, including replacements of dead
// ranks, trains, and checks the weights.
func attempt(ctx context.Context, g *gpu.Group, o collective.Options, n int, states []state, w io.Writer) error {
	communicators, err := collective.NewAll(ctx, g.Devices(), o)
	if err != nil {
		return err
	}
	if err := train(ctx, communicators, n, states); err != nil {
		for _, c := range communicators {
			c.Abort(err) // otherwise this process's other communicators would wait for other ranks
		}
		for _, c := range communicators {
			err = errors.Join(err, c.Close())
		}
		return err
	}
	want := hostWeights(communicators[0].Count(), n)
	for i, c := range communicators {
		if err := check(c, states[i].weights, want, n, w); err != nil {
			return err
		}
	}
	return nil
}
