package trace

import (
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/puregpu/puregpu/internal/secureenv"
	"github.com/puregpu/puregpu/runtime/gpu"
)

// Variables of the environment.
const (
	// Variable names the file that a program is traced to; empty is none. %p and %r in it are as in [Create].
	Variable = "PUREGPU_TRACE"
	// TimesVariable says of what device times are noted: submissions, which it means if it is empty, commands, or none.
	TimesVariable = "PUREGPU_TRACE_TIMES"
	// SlowVariable has each submission logged that takes longer: 5ms.
	SlowVariable = "PUREGPU_TRACE_SLOW"
)

// FromEnv begins the trace that the environment asks for, and returns nil if it asks for none. It looks variables up by lookup. A nil
// lookup means the process's environment, which counts as empty in a program that has rights that its caller does not have. Nobody
// need close the trace: it is written when devices are closed, and meanwhile.
func FromEnv(lookup func(string) (string, bool)) (*Trace, error) {
	if lookup == nil {
		lookup = secureenv.Lookup
	}
	name, _ := lookup(Variable)
	if name == "" {
		return nil, nil
	}
	var o Options
	switch s, _ := lookup(TimesVariable); s {
	case "", "submissions":
	case "commands":
		o.Times = gpu.CommandTimes
	case "none":
		o.Times = gpu.NoTimes
	default:
		return nil, fmt.Errorf("trace: the environment variable %s is %q: use submissions, commands or none", TimesVariable, s)
	}
	if s, _ := lookup(SlowVariable); s != "" {
		d, err := time.ParseDuration(s)
		if err != nil || d <= 0 {
			return nil, fmt.Errorf("trace: the environment variable %s is %q: use a time such as 5ms", SlowVariable, s)
		}
		o.Slow = d
	}
	o.Rank, o.World = rankOf(lookup)
	t, err := Create(name, o)
	if err != nil {
		return nil, fmt.Errorf("%w (from the environment variable %s)", err, Variable)
	}
	return t, nil
}

// rankOf returns which of how many processes this is, if a launcher has set that; else a world of 0.
func rankOf(lookup func(string) (string, bool)) (rank, world int) {
	for _, names := range [...][2]string{{"PUREGPU_RANK", "PUREGPU_WORLD_SIZE"}, {"RANK", "WORLD_SIZE"}, {"OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"},
		{"PMI_RANK", "PMI_SIZE"}, {"SLURM_PROCID", "SLURM_STEP_NUM_TASKS"}} {
		r, _ := lookup(names[0])
		w, _ := lookup(names[1])
		rank, err := strconv.Atoi(r)
		world, err2 := strconv.Atoi(w)
		if err == nil && err2 == nil && rank >= 0 && rank < world {
			return rank, world
		}
	}
	return 0, 0
}

// create makes the file, which nobody else writes to then.
func create(name string, rank, world int) (*os.File, error) {
	if world > 1 && !strings.Contains(name, "%r") && !strings.Contains(name, "%p") {
		name = before(name, ".rank%r")
	}
	r := strings.NewReplacer("%p", strconv.Itoa(os.Getpid()), "%r", strconv.Itoa(rank))
	name = r.Replace(name)
	for i := range 100 {
		at := name
		if i > 0 {
			at = before(name, "."+strconv.Itoa(os.Getpid()))
		}
		if i > 1 {
			at = before(at, "-"+strconv.Itoa(i))
		}
		f, err := os.OpenFile(at, os.O_CREATE|os.O_WRONLY, 0o644)
		if err != nil {
			return nil, err
		}
		switch err := lock(f); {
		case errors.Is(err, errLocked):
			f.Close()
			continue
		case err != nil: // a file system without locks
			slog.Debug("puregpu: a trace's file cannot be locked", "file", at, "error", err)
		}
		if info, err := f.Stat(); err == nil && info.Mode().IsRegular() {
			if err := f.Truncate(0); err != nil {
				return nil, errors.Join(err, f.Close())
			}
		}
		return f, nil
	}
	return nil, fmt.Errorf("%s: 100 other traces are being written beside it", name)
}

// errLocked is that somebody else writes to a file.
var errLocked = errors.New("another trace is being written to it")

// before puts something in front of a name's ending.
func before(name, what string) string {
	ext := filepath.Ext(name)
	return strings.TrimSuffix(name, ext) + what + ext
}
