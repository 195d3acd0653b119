package rendezvous

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
)

// A launcher starts processes and sets environment variables with their places. Of each list of
// variables the first one that is set counts.
type launcher struct {
	name  string
	rank  []string
	count []string // needed with rank

	localRank  []string
	localCount []string
	perNode    []string // a list of the counts of all nodes, used if localCount is not set
	node       []string // index of this node in perNode

	run     []string // variables that together name the run, if all of them are set
	runElse []string // variables that are used instead if a variable of run is not set

	only      []string // if none of these is set, the launcher is not in use
	countOnly bool     // a count without a rank is no error
}

// launchers lists a launcher before those under which it may run: torchrun may run under all
// others, and mpirun under Slurm and in Kubernetes.
var launchers = []launcher{
	{
		// PyTorch's programs read RANK and WORLD_SIZE, so other tools, such as Kubeflow, and users
		// set these variables too. torchrun counts restarts in TORCHELASTIC_RESTART_COUNT, but its
		// agent on each node counts separately, so the count is not part of the run's name.
		name: "torchrun", rank: []string{"RANK"}, count: []string{"WORLD_SIZE"},
		localRank: []string{"LOCAL_RANK"}, localCount: []string{"LOCAL_WORLD_SIZE"},
		run: []string{"TORCHELASTIC_RUN_ID"},
	},
	{
		// Open MPI documents these four variables. Releases up to 4 also set a job number, and all
		// releases with PMIx set a namespace.
		name: "Open MPI", rank: []string{"OMPI_COMM_WORLD_RANK"}, count: []string{"OMPI_COMM_WORLD_SIZE"},
		localRank: []string{"OMPI_COMM_WORLD_LOCAL_RANK"}, localCount: []string{"OMPI_COMM_WORLD_LOCAL_SIZE"},
		run: []string{"PMIX_NAMESPACE"}, runElse: []string{"OMPI_MCA_ess_base_jobid"},
	},
	{
		// Hydra, the launcher of MPICH and Intel MPI, sets these variables, and srun --mpi=pmi2
		// sets the first two. None of them names the run. Under Slurm mpiexec passes on the job's
		// number, but not always the step's.
		name: "MPICH", rank: []string{"PMI_RANK"}, count: []string{"PMI_SIZE"},
		localRank: []string{"MPI_LOCALRANKID"}, localCount: []string{"MPI_LOCALNRANKS"},
		run: []string{"SLURM_JOB_ID"},
	},
	{
		// A batch script has SLURM_PROCID=0 and the job's SLURM_NTASKS, but is not in a step;
		// programs that it runs without srun are single processes. The step's variables come first,
		// because srun --preserve-env keeps the job's variables. SLURM_NTASKS_PER_NODE comes last,
		// because it is the requested number and not the node's actual one. Every program in an
		// allocation has a count, so a count without a rank is no error.
		name: "Slurm", rank: []string{"SLURM_PROCID"}, count: []string{"SLURM_STEP_NUM_TASKS", "SLURM_NTASKS"},
		localRank: []string{"SLURM_LOCALID"},
		perNode:   []string{"SLURM_STEP_TASKS_PER_NODE", "SLURM_TASKS_PER_NODE", "SLURM_NTASKS_PER_NODE"}, node: []string{"SLURM_NODEID"},
		run:  []string{"SLURM_JOB_ID", "SLURM_STEP_ID"},
		only: []string{"SLURM_STEP_ID"}, countOnly: true,
	},
	{
		// Kubernetes sets only JOB_COMPLETION_INDEX in a pod. PUREGPU_WORLD_SIZE is for jobs whose
		// WORLD_SIZE means something else.
		name: "Kubernetes", rank: []string{"JOB_COMPLETION_INDEX"}, count: []string{"PUREGPU_WORLD_SIZE", "WORLD_SIZE"},
		countOnly: true,
	},
}

// errCountOnly is the error for a count without a rank.
var errCountOnly = errors.New("incomplete")

// place returns the place that the launcher's variables give. If the launcher has not started this
// process as a rank, the error is ErrNone or errCountOnly.
func (l *launcher) place(e env) (Place, error) {
	fail := func(format string, args ...any) (Place, error) {
		return Place{}, fmt.Errorf("rendezvous: %s: %w", l.name, fmt.Errorf(format, args...))
	}
	rank, rankName, err := e.number(l.rank)
	if rankName == "" {
		if name, _ := e.first(l.count); name != "" && !l.countOnly {
			return fail("%s is set and %s is not: set it, or unset the other (%w)", name, l.rank[0], errCountOnly)
		}
		return Place{}, ErrNone
	}
	if name, _ := e.first(l.only); name == "" && len(l.only) > 0 {
		return Place{}, ErrNone
	}
	if err != nil {
		return fail("%w", err)
	}
	count, countName, err := e.number(l.count)
	switch {
	case err != nil:
		return fail("%w", err)
	case countName == "":
		return fail("%s is set and %s is not: set it to the number of all processes, or unset the other", rankName, strings.Join(l.count, " or "))
	case rank >= count:
		return fail("%s=%d and %s=%d: the ranks of %d processes begin at 0", rankName, rank, countName, count, count)
	}
	p := Place{Rank: rank, Count: count, LocalRank: -1, Launcher: l.name, Run: l.runName(e)}
	local, localName, err := e.number(l.localRank)
	if err != nil {
		return fail("%w", err)
	}
	if localName != "" {
		p.LocalRank = local
	}
	if local >= count {
		return fail("%s=%d and %s=%d: a machine cannot have more of the processes than there are", localName, local, countName, count)
	}
	n, name, err := e.number(l.localCount)
	if err == nil && name == "" {
		n, name, err = l.onNode(e)
	}
	switch {
	case err != nil:
		return fail("%w", err)
	case name == "":
		return p, nil
	case n < 1 || n > count:
		return fail("%s says that %d processes of this machine are among the %d of %s", name, n, count, countName)
	case local >= n:
		return fail("%s=%d, and %s says that this machine has %d processes, beginning at 0", localName, local, name, n)
	}
	p.LocalCount = n
	return p, nil
}

// runName returns a name for the run.
func (l *launcher) runName(e env) string {
	for _, names := range [][]string{l.run, l.runElse} {
		var parts []string
		for _, n := range names {
			if v, _ := e(n); v != "" {
				parts = append(parts, v)
			}
		}
		if len(parts) > 0 && len(parts) == len(names) {
			return l.name + " " + strings.Join(parts, ".")
		}
	}
	return ""
}

// onNode returns the number of processes on this node, from a list for all nodes.
func (l *launcher) onNode(e env) (n int, name string, err error) {
	name, list := e.first(l.perNode)
	node, nodeName, err := e.number(l.node)
	if err != nil || name == "" || nodeName == "" {
		return 0, "", err
	}
	n, ok := nth(list, node)
	if !ok {
		return 0, name, fmt.Errorf("%s=%q has no entry for node %d (%s)", name, list, node, nodeName)
	}
	return n, name, nil
}

// nth returns number i of a list in Slurm's notation, where 2(x3),1 means 2,2,2,1.
func nth(list string, i int) (n int, ok bool) {
	found := false
	for item := range strings.SplitSeq(list, ",") {
		value, times := item, 1
		if v, rest, repeated := strings.Cut(item, "("); repeated {
			digits, ok := strings.CutSuffix(rest, ")")
			digits, ok2 := strings.CutPrefix(digits, "x")
			t, err := strconv.ParseInt(digits, 10, 32)
			if !ok || !ok2 || err != nil || t < 1 {
				return 0, false
			}
			value, times = v, int(t)
		}
		v, err := strconv.ParseInt(value, 10, 32)
		if err != nil || v < 0 || v > math.MaxInt32 {
			return 0, false
		}
		if !found && i < times {
			n, found = int(v), true
		}
		i -= min(i, times)
	}
	return n, found
}

// none returns the error for an environment without a launcher. The error lists a rank's variable
// of each launcher. If one of these is set, the error says instead which other variable is missing.
func none(e env) error {
	var names []string
	for _, l := range launchers {
		names = append(names, l.rank[0])
		if name, _ := e.first(l.rank); name != "" { // a variable of l.only is missing
			return fmt.Errorf("rendezvous: %w: %s is set and %s is not, so %s did not start this process as a rank; start it with srun",
				ErrNone, name, strings.Join(l.only, " or "), l.name)
		}
	}
	return fmt.Errorf("rendezvous: %w: none of %s is set; use one, or say which rank this is", ErrNone, strings.Join(names, ", "))
}
