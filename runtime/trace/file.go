package trace

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/puregpu/puregpu/internal/filelock"
	"github.com/puregpu/puregpu/internal/printable"
	"github.com/puregpu/puregpu/internal/regular"
	"github.com/puregpu/puregpu/internal/secureenv"
)

// Environment variables.
const (
	// Variable names the file of the trace. If the variable is empty, there is no trace. %p and %r
	// in the name are replaced as in [Create].
	Variable = "PUREGPU_TRACE"
	// TimesVariable selects the work whose device times are recorded: submissions (the default),
	// commands, or none.
	TimesVariable = "PUREGPU_TRACE_TIMES"
	// SlowVariable has a duration such as 5ms. Submissions that take longer are logged.
	SlowVariable = "PUREGPU_TRACE_SLOW"
)

// FromEnv starts the trace that the environment variables describe, or returns nil if they describe
// none. FromEnv calls lookup to read variables. If lookup is nil, FromEnv reads the environment of
// the process. That environment counts as empty if the program has more rights than its caller. The
// trace need not be closed: it is written regularly, and when devices are closed.
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
		o.Times = CommandTimes
	case "none":
		o.Times = NoTimes
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

// rankOf returns the rank of this process and the number of processes from environment variables of
// the runtime or of a launcher. If no pair of variables has a rank and a number of processes, world
// is 0.
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

// create creates and locks the file of a trace. In the name, %p stands for the process id and %r
// for the rank. If there are several processes and the name has neither, create adds the rank. If
// another trace is being written to a file of this name, create adds the process id to the name,
// and a number too if that name is also in use. Only the file's owner can read the file.
func create(name string, rank, world int) (*os.File, error) {
	if world > 1 && !strings.Contains(name, "%r") && !strings.Contains(name, "%p") {
		name = before(name, ".rank%r")
	}
	r := strings.NewReplacer("%p", strconv.Itoa(os.Getpid()), "%r", strconv.Itoa(rank))
	dir, base := filepath.Split(r.Replace(name))
	root, err := os.OpenRoot(cmp.Or(dir, "."))
	if err != nil {
		return nil, failed(dir+base, err)
	}
	defer root.Close()
	for i := range 100 {
		at := base
		if i > 0 {
			at = before(base, "."+strconv.Itoa(os.Getpid()))
		}
		if i > 1 {
			at = before(at, "-"+strconv.Itoa(i))
		}
		f, err := anew(root, at)
		switch {
		case err == nil:
			return f, nil
		case !errors.Is(err, filelock.ErrLocked):
			return nil, failed(dir+at, err)
		}
	}
	return nil, failed(dir+base, errors.New("100 other traces are being written beside it"))
}

// failed returns the error for a file that could not be created.
func failed(name string, err error) error {
	if pe, ok := errors.AsType[*fs.PathError](err); ok {
		err = pe.Err // without its path, which lacks the directory
	}
	return fmt.Errorf("cannot make the file %s: %w", printable.Text(name), err)
}

// anew creates and locks a file. If a regular file of this name exists, anew removes that file
// first. For anything else of this name, such as a link, anew returns an error. So a trace is never
// written through a link, or to a file that also has another name. If a trace is being written to
// the existing file, anew returns [filelock.ErrLocked].
func anew(root *os.Root, name string) (*os.File, error) {
	for range 100 { // another process may create the file between any two steps
		f, err := root.OpenFile(name, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
		if errors.Is(err, fs.ErrExist) {
			err = remove(root, name)
			if err == nil || errors.Is(err, fs.ErrNotExist) {
				continue
			}
		}
		if err != nil {
			return nil, err
		}
		err = lock(root, f, name)
		if err == nil {
			return f, nil
		}
		f.Close()
		if !errors.Is(err, fs.ErrNotExist) {
			return nil, err
		}
	}
	return nil, errors.New("others make and remove it all the time")
}

// remove removes a regular file, unless a trace is being written to it.
func remove(root *os.Root, name string) error {
	info, err := root.Lstat(name)
	if err != nil {
		return err
	}
	if !info.Mode().IsRegular() {
		return errors.New("there is one that is not a regular file, such as a link, a device or a pipe: a trace is written to a file of its own")
	}
	f, err := root.OpenFile(name, os.O_WRONLY|regular.Nonblock, 0)
	if err != nil {
		return err
	}
	defer f.Close()
	if err := lock(root, f, name); err != nil {
		return err
	}
	return root.Remove(name)
}

// lock locks a file. It returns [filelock.ErrLocked] if a trace is being written to the file, and
// [fs.ErrNotExist] if the file no longer has the name. If the file system has no locks, lock checks
// only the name.
func lock(root *os.Root, f *os.File, name string) error {
	switch err := filelock.Try(f); {
	case errors.Is(err, filelock.ErrLocked):
		return err
	case err != nil: // a file system without locks
		slog.Debug("puregpu: a trace's file cannot be locked", "file", f.Name(), "error", err)
	}
	return filelock.Named(root, f, name)
}

// before inserts a text before the extension of a file name.
func before(name, what string) string {
	ext := filepath.Ext(name)
	return strings.TrimSuffix(name, ext) + what + ext
}
