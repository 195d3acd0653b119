package rendezvous_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync"
	"time"

	"github.com/puregpu/puregpu/runtime/collective"
	"github.com/puregpu/puregpu/runtime/gpu"
	"github.com/puregpu/puregpu/runtime/rendezvous"
)

var (
	_ collective.Rendezvous = rendezvous.File{}
	_ collective.Rendezvous = rendezvous.TCP{}
	_ collective.Rendezvous = rendezvous.Func{}
	_ collective.Rendezvous = rendezvous.NCCLCommID{}
)

// Under torchrun a communicator needs no settings.
func Example() {
	communicator := func(ctx context.Context, dev *gpu.Device) (*collective.Communicator, error) {
		ctx, cancel := context.WithTimeout(ctx, time.Minute) // waits for the other ranks
		defer cancel()
		return collective.New(ctx, dev, collective.Options{Rank: -1, Rendezvous: rendezvous.TCP{}})
	}
	_ = communicator
}

// Slurm gives the ranks no address at which to meet, but its nodes often share a file system.
func ExampleFile_slurm() {
	communicator := func(ctx context.Context, dev *gpu.Device) (*collective.Communicator, error) {
		ctx, cancel := context.WithTimeout(ctx, 5*time.Minute)
		defer cancel()
		return collective.New(ctx, dev, collective.Options{Rank: -1, Rendezvous: rendezvous.File{Path: "/shared/me/rendezvous"}})
	}
	_ = communicator
}

func ExampleFromEnv() {
	vars := map[string]string{
		"SLURM_JOB_ID": "77", "SLURM_STEP_ID": "0", "SLURM_PROCID": "5", "SLURM_LOCALID": "1", "SLURM_NODEID": "2",
		"SLURM_STEP_NUM_TASKS": "7", "SLURM_STEP_TASKS_PER_NODE": "2(x3),1",
	}
	place, err := rendezvous.FromEnv(func(name string) (string, bool) {
		v, ok := vars[name]
		return v, ok
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Printf("%s: rank %d of %d; %d of %d on this machine\n", place.Launcher, place.Rank, place.Count, place.LocalRank, place.LocalCount)

	_, err = rendezvous.FromEnv(func(string) (string, bool) { return "", false })
	if errors.Is(err, rendezvous.ErrNone) {
		fmt.Println("alone")
	}
	// Output:
	// Slurm: rank 5 of 7; 1 of 2 on this machine
	// alone
}

func ExampleFile() {
	dir, err := os.MkdirTemp("", "")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer os.RemoveAll(dir)
	const ranks = 3
	var got [ranks]string
	var wg sync.WaitGroup
	for rank := range ranks { // normally processes, here goroutines
		wg.Go(func() {
			r := rendezvous.File{Path: dir, At: rendezvous.Place{Rank: rank, Count: ranks}}
			var id []byte
			if rank == 0 {
				id = []byte("the id")
			}
			if id, err := r.Share(context.Background(), "communicator", id); err != nil {
				got[rank] = err.Error()
			} else {
				got[rank] = string(id)
			}
		})
	}
	wg.Wait()
	fmt.Printf("%q\n", got)
	// Output: ["the id" "the id" "the id"]
}

func ExampleFunc() {
	store := make(chan []byte, 1) // the program's own, for two ranks
	r := rendezvous.Func{
		At: rendezvous.Place{Rank: 1, Count: 2},
		Exchange: func(ctx context.Context, name string, id []byte) ([]byte, error) {
			if id != nil {
				store <- id
				return id, nil
			}
			select {
			case id = <-store:
				return id, nil
			case <-ctx.Done():
				return nil, context.Cause(ctx)
			}
		},
	}
	store <- []byte("the id") // as rank 0 would do
	id, err := r.Share(context.Background(), "communicator", nil)
	fmt.Printf("%s %v\n", id, err)
	// Output: the id <nil>
}
