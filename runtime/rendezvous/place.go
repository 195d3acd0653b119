package rendezvous

import (
	"errors"
	"fmt"
	"math"
	"strconv"

	"github.com/puregpu/puregpu/internal/secureenv"
)

// ErrNone is the error if the environment does not say that a launcher has started this process as
// a rank.
var ErrNone = errors.New("not started by a known launcher")

// A Place is the place of this process in a run. In this package's types a Place with a Count of 0
// means the place in the environment. If Run of such a Place is set, it replaces the Run of the
// environment.
type Place struct {
	Rank  int
	Count int // of all processes

	// LocalRank and LocalCount are the rank and count among the processes of one machine. [FromEnv]
	// returns -1 and 0 if they are unknown.
	LocalRank  int
	LocalCount int

	// Run distinguishes runs that use the same folder or address at the same time. Run is the same
	// on all ranks, and may be empty.
	Run string

	// Launcher is the launcher that set the variables, empty if the program made the Place.
	Launcher string
}

// FromEnv finds the Place of a process from the process's environment variables. lookup returns the
// variables' values; if lookup is nil, FromEnv reads the variables of this process. Empty variables
// count as absent. FromEnv tries the launchers in the following order. A launcher is often started
// by a later one of the list, and the launcher that directly started the process knows best:
//
//   - torchrun, and other tools that set RANK and WORLD_SIZE
//   - Open MPI: OMPI_COMM_WORLD_RANK and OMPI_COMM_WORLD_SIZE
//   - MPICH and Intel MPI: PMI_RANK and PMI_SIZE
//   - Slurm's srun: SLURM_PROCID and SLURM_STEP_NUM_TASKS
//   - Kubernetes' indexed jobs: JOB_COMPLETION_INDEX; the job must set the count, in
//     PUREGPU_WORLD_SIZE or WORLD_SIZE
//
// Invalid or contradictory variables of a launcher are an error, and so is a rank without a count.
// FromEnv then does not try the next launcher. A count without a rank is an error only if no other
// launcher gives a place, and never for Slurm and Kubernetes. If no launcher has started the
// process as a rank, the error is [ErrNone].
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
				half = err // the error if no other launcher has both variables
			}
			continue
		case errors.Is(err, ErrNone):
			continue
		case err != nil:
			return Place{}, err
		}
		for _, other := range launchers[i+1:] { // for a user who sets RANK and leaves the local rank to mpirun
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

// resolve fills in a zero Place from the environment, and checks the place.
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

// An env looks up environment variables.
type env func(string) (string, bool)

// first returns the first variable that is set, and its value.
func (e env) first(names []string) (name, value string) {
	for _, n := range names {
		if v, ok := e(n); ok && v != "" {
			return n, v
		}
	}
	return "", ""
}

// number returns the value of the first variable that is set, and that variable's name for an
// error; the name is empty if none is set.
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
