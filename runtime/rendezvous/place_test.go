package rendezvous

import (
	"errors"
	"strings"
	"testing"
)

// environment makes an environment of a text such as "A=1 B=2". An underscore in a value stands for
// a space.
func environment(text string) env {
	vars := map[string]string{}
	for _, v := range strings.Fields(text) {
		name, value, _ := strings.Cut(v, "=")
		vars[name] = strings.ReplaceAll(value, "_", " ")
	}
	return func(name string) (string, bool) {
		v, ok := vars[name]
		return v, ok
	}
}

const (
	torchrun = "RANK=5 WORLD_SIZE=8 LOCAL_RANK=1 LOCAL_WORLD_SIZE=4 GROUP_RANK=1 MASTER_ADDR=a MASTER_PORT=29500 TORCHELASTIC_RUN_ID=job1 TORCHELASTIC_RESTART_COUNT=2"
	openMPI4 = "OMPI_COMM_WORLD_RANK=3 OMPI_COMM_WORLD_SIZE=4 OMPI_COMM_WORLD_LOCAL_RANK=1 OMPI_COMM_WORLD_LOCAL_SIZE=2 OMPI_MCA_ess_base_jobid=3236233217"
	openMPI5 = "OMPI_COMM_WORLD_RANK=3 OMPI_COMM_WORLD_SIZE=4 OMPI_COMM_WORLD_LOCAL_RANK=1 OMPI_COMM_WORLD_LOCAL_SIZE=2 PMIX_NAMESPACE=prterun-host-17@1 PMIX_RANK=3"
	mpich    = "PMI_RANK=2 PMI_SIZE=3 PMI_FD=9 MPI_LOCALRANKID=0 MPI_LOCALNRANKS=1"
	slurm    = "SLURM_JOB_ID=77 SLURM_STEP_ID=0 SLURM_PROCID=6 SLURM_NTASKS=9 SLURM_STEP_NUM_TASKS=7 SLURM_LOCALID=0 SLURM_NODEID=3 SLURM_STEP_TASKS_PER_NODE=2(x3),1 SLURM_TASKS_PER_NODE=3(x3)"
	batch    = "SLURM_JOB_ID=77 SLURM_PROCID=0 SLURM_NTASKS=9 SLURM_LOCALID=0 SLURM_NODEID=0 SLURM_TASKS_PER_NODE=3(x3)"
)

func TestFromEnv(t *testing.T) {
	for name, test := range map[string]struct {
		env  string
		want Place
	}{
		"torchrun":                  {torchrun, Place{5, 8, 1, 4, "torchrun job1", "torchrun"}},
		"Open MPI 4":                {openMPI4, Place{3, 4, 1, 2, "Open MPI 3236233217", "Open MPI"}},
		"Open MPI 5":                {openMPI5, Place{3, 4, 1, 2, "Open MPI prterun-host-17@1", "Open MPI"}},
		"MPICH":                     {mpich, Place{2, 3, 0, 1, "", "MPICH"}},
		"MPICH under Slurm":         {mpich + " " + batch, Place{2, 3, 0, 1, "MPICH 77", "MPICH"}},
		"Slurm":                     {slurm, Place{6, 7, 0, 1, "Slurm 77.0", "Slurm"}},
		"Slurm, older":              {"SLURM_STEP_ID=1 SLURM_PROCID=1 SLURM_NTASKS=2", Place{1, 2, -1, 0, "", "Slurm"}},
		"Slurm, asked for":          {"SLURM_STEP_ID=1 SLURM_PROCID=1 SLURM_NTASKS=2 SLURM_LOCALID=1 SLURM_NODEID=0 SLURM_NTASKS_PER_NODE=2", Place{1, 2, 1, 2, "", "Slurm"}},
		"Slurm, which node":         {"SLURM_STEP_ID=1 SLURM_PROCID=1 SLURM_NTASKS=2 SLURM_LOCALID=1 SLURM_NTASKS_PER_NODE=2", Place{1, 2, 1, 0, "", "Slurm"}},
		"Kubernetes":                {"JOB_COMPLETION_INDEX=1 WORLD_SIZE=2", Place{1, 2, -1, 0, "", "Kubernetes"}},
		"Kubernetes, both":          {"JOB_COMPLETION_INDEX=1 WORLD_SIZE=8 PUREGPU_WORLD_SIZE=2", Place{1, 2, -1, 0, "", "Kubernetes"}},
		"torchrun under all":        {strings.Join([]string{torchrun, openMPI4, mpich, slurm, "JOB_COMPLETION_INDEX=0"}, " "), Place{5, 8, 1, 4, "torchrun job1", "torchrun"}},
		"Open MPI under Slurm":      {openMPI5 + " " + slurm, Place{3, 4, 1, 2, "Open MPI prterun-host-17@1", "Open MPI"}},
		"Open MPI in a pod":         {openMPI5 + " JOB_COMPLETION_INDEX=0", Place{3, 4, 1, 2, "Open MPI prterun-host-17@1", "Open MPI"}},
		"torchrun in a pod":         {torchrun + " JOB_COMPLETION_INDEX=0", Place{5, 8, 1, 4, "torchrun job1", "torchrun"}},
		"by hand":                   {"RANK=0 WORLD_SIZE=1", Place{0, 1, -1, 0, "", "torchrun"}},
		"by hand under Open MPI":    {"RANK=3 WORLD_SIZE=4 " + openMPI4, Place{3, 4, 1, 2, "", "torchrun"}},
		"by hand, another rank":     {"RANK=2 WORLD_SIZE=4 " + openMPI4, Place{2, 4, -1, 0, "", "torchrun"}},
		"a count for others":        {"WORLD_SIZE=9 " + openMPI4, Place{3, 4, 1, 2, "Open MPI 3236233217", "Open MPI"}},
		"srun --mpi=pmi2":           {"PMI_RANK=6 PMI_SIZE=7 " + slurm, Place{6, 7, 0, 1, "MPICH 77", "MPICH"}},
		"local rank alone":          {"RANK=1 WORLD_SIZE=4 LOCAL_RANK=1", Place{1, 4, 1, 0, "", "torchrun"}},
		"local count alone":         {"RANK=1 WORLD_SIZE=4 LOCAL_WORLD_SIZE=2", Place{1, 4, -1, 2, "", "torchrun"}},
		"empty ones are not there":  {"RANK= WORLD_SIZE= LOCAL_RANK= " + mpich, Place{2, 3, 0, 1, "", "MPICH"}},
		"garbage of no use to us":   {mpich + " SLURM_PROCID=x SLURM_STEP_ID=0 JOB_COMPLETION_INDEX=x MASTER_PORT=tcp://10.0.0.1:29500", Place{2, 3, 0, 1, "", "MPICH"}},
		"half of the run's name":    {"SLURM_STEP_ID=1 SLURM_PROCID=1 SLURM_NTASKS=2", Place{1, 2, -1, 0, "", "Slurm"}},
		"an allocation with a pod":  {"SLURM_NTASKS=4 SLURM_JOB_ID=7 JOB_COMPLETION_INDEX=0 WORLD_SIZE=1", Place{0, 1, -1, 0, "", "Kubernetes"}},
		"a large count of machines": {"SLURM_STEP_ID=0 SLURM_PROCID=9 SLURM_NTASKS=10 SLURM_NODEID=5 SLURM_TASKS_PER_NODE=2,1,2(x2),1(x2)", Place{9, 10, -1, 1, "", "Slurm"}},
	} {
		t.Run(name, func(t *testing.T) {
			if got, err := FromEnv(environment(test.env)); err != nil || got != test.want {
				t.Errorf("got %+v, %v; want %+v", got, err, test.want)
			}
		})
	}
}

func TestFromEnvErrors(t *testing.T) {
	for _, test := range []struct {
		env, want string
		none      bool
	}{
		{"", "none of RANK, OMPI_COMM_WORLD_RANK, PMI_RANK, SLURM_PROCID, JOB_COMPLETION_INDEX is set", true},
		{"PATH=/bin MASTER_ADDR=a RANK=", "is set", true},
		{"SLURM_NTASKS=4 SLURM_JOB_ID=7", "is set", true}, // the variables in a shell of salloc
		{batch, "SLURM_PROCID is set and SLURM_STEP_ID is not", true},
		{"RANK=0", "torchrun: RANK is set and WORLD_SIZE is not", false},
		{"WORLD_SIZE=2", "torchrun: WORLD_SIZE is set and RANK is not", false},
		{"WORLD_SIZE=2 " + batch, "torchrun: WORLD_SIZE is set and RANK is not", false},
		{"OMPI_COMM_WORLD_SIZE=2", "Open MPI: OMPI_COMM_WORLD_SIZE is set and OMPI_COMM_WORLD_RANK is not", false},
		{"PMI_SIZE=2", "MPICH: PMI_SIZE is set and PMI_RANK is not", false},
		{"RANK=0 " + openMPI4, "torchrun: RANK is set and WORLD_SIZE is not", false},
		{"JOB_COMPLETION_INDEX=0", "Kubernetes: JOB_COMPLETION_INDEX is set and PUREGPU_WORLD_SIZE or WORLD_SIZE is not: set it to the number of all processes", false},
		{"SLURM_PROCID=0 SLURM_STEP_ID=0", "Slurm: SLURM_PROCID is set and SLURM_STEP_NUM_TASKS or SLURM_NTASKS is not", false},
		{"RANK=4 WORLD_SIZE=4", "torchrun: RANK=4 and WORLD_SIZE=4: the ranks of 4 processes begin at 0", false},
		{"RANK=0 WORLD_SIZE=0", "RANK=0 and WORLD_SIZE=0", false},
		{"RANK=-1 WORLD_SIZE=4", `RANK="-1" is not a number from 0 to 2147483647`, false},
		{"RANK=one WORLD_SIZE=4", `RANK="one" is not a number`, false},
		{"RANK=0 WORLD_SIZE=4294967296", `WORLD_SIZE="4294967296" is not a number`, false},
		{"RANK=0 WORLD_SIZE=2 LOCAL_RANK=x", `LOCAL_RANK="x" is not a number`, false},
		{"RANK=0 WORLD_SIZE=2 LOCAL_RANK=2", "LOCAL_RANK=2 and WORLD_SIZE=2: a machine cannot have more", false},
		{"RANK=0 WORLD_SIZE=2 LOCAL_WORLD_SIZE=x", `LOCAL_WORLD_SIZE="x" is not a number`, false},
		{"RANK=0 WORLD_SIZE=2 LOCAL_WORLD_SIZE=3", "LOCAL_WORLD_SIZE says that 3 processes of this machine are among the 2 of WORLD_SIZE", false},
		{"RANK=0 WORLD_SIZE=2 LOCAL_WORLD_SIZE=0", "LOCAL_WORLD_SIZE says that 0 processes", false},
		{"RANK=0 WORLD_SIZE=4 LOCAL_RANK=2 LOCAL_WORLD_SIZE=2", "LOCAL_RANK=2, and LOCAL_WORLD_SIZE says that this machine has 2", false},
		{"SLURM_STEP_ID=0 SLURM_PROCID=0 SLURM_NTASKS=4 SLURM_LOCALID=2 SLURM_NODEID=0 SLURM_STEP_TASKS_PER_NODE=2(x2)", "SLURM_LOCALID=2, and SLURM_STEP_TASKS_PER_NODE says that this machine has 2", false},
		{"SLURM_STEP_ID=0 SLURM_PROCID=0 SLURM_NTASKS=4 SLURM_NODEID=2 SLURM_STEP_TASKS_PER_NODE=2(x2)", `SLURM_STEP_TASKS_PER_NODE="2(x2)" has no entry for node 2 (SLURM_NODEID)`, false},
		{"SLURM_STEP_ID=0 SLURM_PROCID=0 SLURM_NTASKS=4 SLURM_NODEID=x SLURM_STEP_TASKS_PER_NODE=2(x2)", `SLURM_NODEID="x" is not a number`, false},
		{"SLURM_STEP_ID=0 SLURM_PROCID=0 SLURM_NTASKS=4 SLURM_NODEID=0 SLURM_STEP_TASKS_PER_NODE=2(3)", `SLURM_STEP_TASKS_PER_NODE="2(3)" has no entry`, false},
	} {
		got, err := FromEnv(environment(test.env))
		if err == nil || !strings.Contains(err.Error(), test.want) || !strings.HasPrefix(err.Error(), "rendezvous: ") ||
			errors.Is(err, ErrNone) != test.none || got != (Place{}) {
			t.Errorf("%s: got %+v, %v; want %q", test.env, got, err, test.want)
		}
	}
}

func TestNth(t *testing.T) {
	for _, test := range []struct {
		list string
		i, n int
		ok   bool
	}{
		{"4", 0, 4, true}, {"4", 1, 0, false}, {"2(x3),1", 0, 2, true}, {"2(x3),1", 2, 2, true}, {"2(x3),1", 3, 1, true}, {"2(x3),1", 4, 0, false},
		{"1,2,1(x3),3,2", 1, 2, true}, {"1,2,1(x3),3,2", 4, 1, true}, {"1,2,1(x3),3,2", 6, 2, true}, {"1(x2147483647)", 2147483646, 1, true},
		{"", 0, 0, false}, {"1,", 0, 0, false}, {"1(x0)", 0, 0, false}, {"1(x2", 0, 0, false}, {"1(2)", 0, 0, false}, {"-1", 0, 0, false}, {"1(x-1)", 0, 0, false},
		{"1(x99999999999)", 0, 0, false}, {"x", 0, 0, false}, {"1;2", 0, 0, false},
	} {
		if n, ok := nth(test.list, test.i); ok != test.ok || ok && n != test.n {
			t.Errorf("number %d of %q: %d, %v; want %d, %v", test.i, test.list, n, ok, test.n, test.ok)
		}
	}
}

func TestResolve(t *testing.T) {
	for _, v := range []string{"RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE", "TORCHELASTIC_RUN_ID"} {
		t.Setenv(v, "")
	}
	t.Setenv("RANK", "1")
	t.Setenv("WORLD_SIZE", "2")
	t.Setenv("TORCHELASTIC_RUN_ID", "job")
	given := Place{Rank: 2, Count: 3}
	for _, r := range []interface{ Place() (int, int, error) }{File{At: given}, TCP{At: given}, Func{At: given}, NCCLCommID{given}} {
		if rank, count, err := r.Place(); rank != 2 || count != 3 || err != nil {
			t.Errorf("%T: rank %d of %d, %v; want 2 of 3", r, rank, count, err)
		}
	}
	for _, r := range []interface{ Place() (int, int, error) }{File{}, TCP{}, Func{}, NCCLCommID{}} {
		if rank, count, err := r.Place(); rank != 1 || count != 2 || err != nil {
			t.Errorf("%T: rank %d of %d, %v; want 1 of 2", r, rank, count, err)
		}
	}
	if p, err := (Place{Run: "mine"}).resolve(); err != nil || p.Run != "mine" || p.Rank != 1 {
		t.Errorf("%+v, %v; want rank 1 of run mine", p, err)
	}
	for _, p := range []Place{{Rank: 1, Count: 1}, {Rank: -1, Count: 1}, {Count: -1}} {
		if _, _, err := (TCP{At: p}).Place(); err == nil || !strings.Contains(err.Error(), "there is no rank") {
			t.Errorf("%+v: %v", p, err)
		}
	}
}

// FuzzFromEnv checks that any environment gives a possible place or an error.
func FuzzFromEnv(f *testing.F) {
	for _, seed := range []string{torchrun, openMPI4, openMPI5, mpich, slurm, batch, torchrun + " " + slurm, "JOB_COMPLETION_INDEX=1 WORLD_SIZE=2",
		"SLURM_STEP_ID=0 SLURM_PROCID=0 SLURM_NTASKS=4 SLURM_NODEID=2 SLURM_STEP_TASKS_PER_NODE=2(x99999),,"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		p, err := FromEnv(environment(text))
		if err != nil {
			if p != (Place{}) || !strings.HasPrefix(err.Error(), "rendezvous: ") {
				t.Errorf("%q: %+v, %v", text, p, err)
			}
			return
		}
		if p.Rank < 0 || p.Rank >= p.Count || p.LocalRank < -1 || p.LocalRank >= p.Count || p.LocalCount < 0 || p.LocalCount > p.Count ||
			p.LocalCount > 0 && p.LocalRank >= p.LocalCount || p.Launcher == "" {
			t.Errorf("%q: %+v", text, p)
		}
		if again, err := (Place{Rank: p.Rank, Count: p.Count}).resolve(); err != nil {
			t.Errorf("%q: %+v, %v", text, again, err)
		}
	})
}
