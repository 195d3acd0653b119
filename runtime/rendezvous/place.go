package rendezvous

import (
	"errors"
	"fmt"
	"math"
	"strconv"

	"github.com/puregpu/puregpu/internal/secureenv"
)

// ErrNone is the error for an environment in which no launcher has left anything.
var ErrNone = errors.New("not started by a launcher that is known")

// A Place says which of the processes of a run this one is. In the types of this package, one with a Count of 0 is looked for
// in the environment; what Run it has is kept.
type Place struct {
	Rank  int
	Count int // of all processes

	// LocalRank and LocalCount are the same among the processes of one machine. [FromEnv] gives -1 and 0 for what it cannot tell.
	LocalRank  int
	LocalCount int

	// Run tells runs apart that use the same folder or address at the same time. It is the same on all ranks, and may be empty.
	Run string

	// Launcher is what has told, empty if the program has.
	Launcher string
}

// FromEnv finds a process's place in its environment; lookup is the process's own if it is nil. Variables that are empty count as
// absent. The launchers are tried in this order, for one often starts the next, and the last knows best:
//
//   - torchrun, and whatever else sets RANK and WORLD_SIZE
//   - Open MPI: OMPI_COMM_WORLD_RANK and OMPI_COMM_WORLD_SIZE
//   - MPICH and Intel MPI: PMI_RANK and PMI_SIZE
//   - Slurm's srun: SLURM_PROCID and SLURM_STEP_NUM_TASKS
//   - Kubernetes' indexed jobs: JOB_COMPLETION_INDEX; how many there are the job has to say, in PUREGPU_WORLD_SIZE or
//     WORLD_SIZE
//
// What one of them has left incomplete or contradictory is an error, and not a reason to try the next. Where none has left
// anything it is [ErrNone].
func FromEnv(lookup func(string) (string, bool)) (Place, error) {
	if lookup == nil {
		lookup = secureenv.Lookup
	}
	e := env(lookup)
	var half error
	for i, l := range launchers {
		p, err := l.place(e)
		switch {
		case errors.Is(err, errCountOnly):
			if half == nil {
				half = err // unless another launcher has both
			}
			continue
		case errors.Is(err, ErrNone):
			continue
		case err != nil:
			return Place{}, err
		}
		for _, other := range launchers[i+1:] { // who exports RANK by hand leaves the local rank to mpirun, say
			if p.LocalRank >= 0 {
				break
			}
			if o, err := other.place(e); err == nil && o.Rank == p.Rank && o.Count == p.Count {
				p.LocalRank, p.LocalCount = o.LocalRank, o.LocalCount
			}
		}
		return p, nil
	}
	if half != nil {
		return Place{}, half
	}
	return Place{}, none(e)
}

// resolve finds out what is missing, and checks the rest.
func (p Place) resolve() (Place, error) {
	if p.Count == 0 {
		found, err := FromEnv(nil)
		if p.Run != "" {
			found.Run = p.Run
		}
		return found, err
	}
	if p.Count < 0 || p.Rank < 0 || p.Rank >= p.Count {
		return p, fmt.Errorf("rendezvous: there is no rank %d of %d", p.Rank, p.Count)
	}
	return p, nil
}

// env is an environment.
type env func(string) (string, bool)

// first returns the first of some variables that is there, and its value.
func (e env) first(names []string) (name, value string) {
	for _, n := range names {
		if v, ok := e(n); ok && v != "" {
			return n, v
		}
	}
	return "", ""
}

// number returns the value of the first variable that is there, and how to call it in an error; without one the name is empty.
func (e env) number(names []string) (n int, name string, err error) {
	name, value := e.first(names)
	if name == "" {
		return 0, "", nil
	}
	n, err = strconv.Atoi(value)
	if err != nil || n < 0 || n > math.MaxInt32 {
		return 0, name, fmt.Errorf("%s=%q is not a number from 0 to %d", name, value, math.MaxInt32)
	}
	return n, name, nil
}
