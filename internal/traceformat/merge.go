package traceformat

import (
	"bufio"
	"cmp"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"
)

// MergedIDBits is the bit at which the number of the program begins in the ids of a merged file.
const MergedIDBits = 40

// A Source is one program's trace, for [Merge].
type Source struct {
	Name   string // for error messages
	Reader io.ReadSeeker
}

// Merge writes the traces of several programs, such as the ranks of a training, as one. The times
// of the merged trace count from the start of the earliest one. Each program has its own processes,
// ids and names. Programs are ordered by rank. Without a launcher, the rank is the one in the
// program's largest communicator; without communicators, a program is named by its process number.
//
// The wall clock at the start of each trace relates the times of the traces. So a change of the
// wall clock between two starts shifts the traces against each other, and so does a difference
// between the wall clocks of two machines. Merge takes all complete events of a cut trace, and adds
// an event where its end is missing ([CatCut]). The output has a complete array. The events of a
// single source stay unchanged, so Merge can turn a cut file into a complete one.
func Merge(w io.Writer, sources []Source) error {
	type program struct {
		Source
		meta Event
	}
	var programs []program
	for _, s := range sources {
		meta, err := head(s)
		if err != nil {
			return err
		}
		if len(sources) > 1 && meta.Args.World == 0 {
			if meta.Args.Rank, meta.Args.World, err = rankIn(s); err != nil {
				return err
			}
		}
		programs = append(programs, program{s, meta})
	}
	slices.SortStableFunc(programs, func(a, b program) int { return cmp.Compare(a.meta.Args.Rank, b.meta.Args.Rank) })
	var first int64
	for i, p := range programs {
		if i == 0 || p.meta.Args.Unix < first {
			first = p.meta.Args.Unix
		}
	}
	out := bufio.NewWriterSize(w, 1<<16)
	buf := []byte("[\n")
	sep := ""
	for i, p := range programs {
		shift := Time(p.meta.Args.Unix - first)
		if _, err := p.Reader.Seek(0, io.SeekStart); err != nil {
			return fmt.Errorf("%s: %w", p.Name, err)
		}
		r := NewReader(p.Reader)
		var e Event
		var last Time
		cut := false // the file is cut, and all its events have been read
		for {
			err := r.Next(&e)
			if err == io.EOF {
				if cut || !r.Cut() {
					break
				}
				cut = true
				e = Event{Phase: Instant, Cat: CatCut, Name: "the file ends", PID: p.meta.PID, Time: last, Scope: 'p'}
			} else if err != nil {
				return fmt.Errorf("%s: %w", p.Name, err)
			}
			last = max(last, e.Time+e.Dur)
			if e.PID < 0 || e.PID >= PIDRange || e.ID >= 1<<MergedIDBits {
				return fmt.Errorf("%s, event %d: process %d, id %#x: the file is already merged, or too long to merge", p.Name, r.Events(), e.PID, e.ID)
			}
			rebase(&e, i, shift)
			if e.Phase == Metadata && len(programs) > 1 {
				switch e.Name {
				case MetaProcess:
					e.Args.Name = p.meta.Args.program() + ": " + e.Args.Name
				case MetaTrace:
					e.Args.Rank, e.Args.World = p.meta.Args.Rank, p.meta.Args.World
					e.Args.Unix = first
					e.Args.Start = programStart(first)
				}
			}
			buf = append(buf, sep...)
			buf = e.Append(buf)
			sep = ",\n"
			if _, err := out.Write(buf); err != nil {
				return err
			}
			buf = buf[:0]
		}
	}
	buf = append(buf, "\n]\n"...)
	if _, err := out.Write(buf); err != nil {
		return err
	}
	return out.Flush()
}

// rebase changes an event of a program's own file to one of the i-th program in a merged file.
func rebase(e *Event, i int, shift Time) {
	e.PID += int64(i) * PIDRange
	switch e.Phase {
	case AsyncBegin, AsyncStep, AsyncEnd, FlowBegin, FlowStep, FlowEnd:
		e.ID += uint64(i) << MergedIDBits
	}
	if e.Phase == Metadata {
		if e.Name == MetaProcessSort {
			e.Args.SortIndex += i * PIDRange
		}
		return
	}
	e.Time += shift
	if e.Args.Issued != 0 {
		e.Args.Issued += shift
	}
}

// head returns the MetaTrace event, which is among the first 1000 events.
func head(s Source) (Event, error) {
	r := NewReader(s.Reader)
	var e Event
	for r.Events() < 1000 {
		if err := r.Next(&e); err == io.EOF {
			break
		} else if err != nil {
			return e, fmt.Errorf("%s: %w", s.Name, err)
		}
		if e.Phase == Metadata && e.Name == MetaTrace {
			return e, nil
		}
	}
	return e, fmt.Errorf("%s: %w", s.Name, errNoMeta)
}

// rankIn returns a program's lowest rank in its largest communicator, and the communicator's number
// of ranks, or 0.
func rankIn(s Source) (rank, ranks int, err error) {
	if _, err := s.Reader.Seek(0, io.SeekStart); err != nil {
		return 0, 0, fmt.Errorf("%s: %w", s.Name, err)
	}
	r := NewReader(s.Reader)
	var e Event
	for err = r.Next(&e); err == nil; err = r.Next(&e) {
		if a := &e.Args; e.Phase != Metadata && (a.Ranks > ranks || a.Ranks > 0 && a.Ranks == ranks && a.Rank < rank) {
			rank, ranks = a.Rank, a.Ranks
		}
	}
	if err != io.EOF {
		return 0, 0, fmt.Errorf("%s: %w", s.Name, err)
	}
	return rank, ranks, nil
}

// program returns the name of a program in a merged file.
func (a *Args) program() string {
	if a.World == 0 {
		return fmt.Sprintf("process %d", a.OSPID)
	}
	return fmt.Sprintf("rank %d", a.Rank)
}

var errNoMeta = errors.New("no metadata event \"" + MetaTrace + "\" at its beginning: it was not written by puregpu")

// programStart returns a wall clock time in the form of MetaTrace.
func programStart(unix int64) string {
	return time.Unix(0, unix).UTC().Format(time.RFC3339Nano)
}
