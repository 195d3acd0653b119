package explore

import (
	"fmt"
	"path/filepath"
	"runtime"
	"strings"
)

// lines returns the lines of a trace. Consecutive steps of one goroutine are grouped. If brief is
// set, only the last thousand steps are kept.
func (r *run) lines(steps []step, brief bool) []string {
	var out []string
	const most = 1000
	if brief && len(steps) > most {
		out = append(out, fmt.Sprintf("… %d steps before", len(steps)-most))
		steps = steps[len(steps)-most:]
	}
	var last *goroutine
	for _, s := range steps {
		if s.g != last {
			out = append(out, fmt.Sprintf("goroutine %s", s.g.path))
			last = s.g
		}
		what := s.op.String()
		if s.obj != 0 {
			what += fmt.Sprintf(" #%d", s.obj)
		}
		out = append(out, fmt.Sprintf("  %9.3fms  %-22s %s", float64(s.now)/1e6, what, where(s.place, 3)))
	}
	return out
}

// where returns at most the given number of a call stack's innermost frames. It leaves out this
// package, the packages that replace Go's, and Go's runtime.
func where(pcs []uintptr, most int) string {
	if len(pcs) == 0 {
		return ""
	}
	var out []string
	for frames := runtime.CallersFrames(pcs); ; {
		f, more := frames.Next()
		if f.Function != "" && !ours(f.Function) && !strings.HasPrefix(f.Function, "runtime.") {
			name := f.Function[strings.LastIndex(f.Function, "/")+1:]
			out = append(out, fmt.Sprintf("%s (%s:%d)", name, short(f.File), f.Line))
			if len(out) == most {
				break
			}
		}
		if !more {
			break
		}
	}
	return strings.Join(out, " < ")
}

func short(file string) string {
	dir, base := filepath.Split(file)
	return filepath.Base(dir) + "/" + base
}

const self = "github.com/puregpu/puregpu/internal/explore"

func ours(function string) bool {
	rest, ok := strings.CutPrefix(function, self)
	return ok && (strings.HasPrefix(rest, ".") || strings.HasPrefix(rest, "/std/"))
}

// describe returns the operation of each goroutine that has not ended, and the owner if the
// operation is on a locked mutex.
//
//go:norace
func (r *run) describe() []string {
	var out []string
	for _, g := range r.all {
		if g.state == dead {
			continue
		}
		line := fmt.Sprintf("goroutine %s", g.path)
		switch {
		case g == r.current && g.state == runnable:
			line += " runs"
		case g.state == runnable:
			line += " can run"
		default:
			line += " waits"
		}
		line += ": " + g.op.String()
		if g.obj != nil {
			line += fmt.Sprintf(" #%d", g.obj.id)
			if o := g.obj.owner; o != nil {
				line += fmt.Sprintf(", which goroutine %s has locked", o.path)
				if w := where(g.obj.since, 2); w != "" {
					line += " at " + w
				}
			}
		}
		if w := where(g.place, 4); w != "" {
			line += " at " + w
		}
		out = append(out, line)
	}
	return out
}
