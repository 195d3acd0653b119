package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"strings"
	"sync"
	"time"
)

// A team is a group of processes that do the same work at the same time. Each process reads orders
// from its input, and answers each order with a line that begins with @gpubench (mark). A process
// ends when its input ends. If a process fails, the error has the end of the text that the process
// printed besides answers.
type team struct {
	what    string
	procs   []*process
	replies chan reply
	quit    chan struct{} // closed when nobody reads replies any more
	over    error         // the error after which the team takes no more orders
}

// mark begins an answer, because libraries also write to standard output.
const mark = "@gpubench "

// An order is work for a process. Do decides which fields count: each comment begins with a value
// of Do.
type order struct {
	Do string `json:"do"`

	// open: open the devices of the ranks from Rank on. The process of rank 0 also makes an id, by
	// which the other processes find that one. PyTorch's processes get their rank, and the address
	// at which they find each other, from their environment.
	Simulated int   `json:"simulated,omitempty"` // number of simulated devices; 0: real ones
	Devices   []int `json:"devices,omitempty"`
	Rank      int   `json:"rank,omitempty"`

	// join: make the communicators.
	ID    []byte `json:"id,omitempty"`
	Ranks int    `json:"ranks,omitempty"` // in all processes

	// time: reduce Bytes on all ranks, in memory behind a padding of Pad bytes.
	Bytes uint64 `json:"bytes,omitempty"`
	Pad   uint64 `json:"pad,omitempty"`
	counts

	// measure: do Work with the Python library Library, as often as the counts say.
	Library string `json:"library,omitempty"`
	Work    string `json:"work,omitempty"`

	// small: make as many all-reduces of Bytes bytes as Group says, as separate groups and as one
	// recorded group. Measure each of the two ways as often as Timed says.
	Group int `json:"group,omitempty"`
}

// counts say how often to do the work.
type counts struct {
	Warm  int `json:"warm,omitempty"`  // before timing begins
	Timed int `json:"timed,omitempty"` // each waited for
	Ahead int `json:"ahead,omitempty"` // submitted ahead

	Chained int `json:"chained,omitempty"` // submitted ahead, each after the one before it
}

// An answer is the result of an order. Times are in nanoseconds.
type answer struct {
	Missing string `json:"missing,omitempty"` // what this machine lacks
	Error   string `json:"error,omitempty"`

	ID []byte `json:"id,omitempty"`

	NCCL    string `json:"nccl,omitempty"` // its release
	Library string `json:"library,omitempty"`
	Torch   string `json:"torch,omitempty"`
	Version string `json:"version,omitempty"`

	P50  float64 `json:"p50_ns,omitempty"`
	Min  float64 `json:"min_ns,omitempty"`
	Each float64 `json:"each_ns,omitempty"`

	Chain  float64 `json:"chain_ns,omitempty"`
	Stream float64 `json:"stream_ns,omitempty"`
	Filled float64 `json:"filled_ns,omitempty"`

	OneByOne float64 `json:"one_by_one_ns,omitempty"`
	Recorded float64 `json:"recorded_ns,omitempty"`
}

// slowest returns, for each time, the greatest of all processes.
func slowest(all []answer) (a answer) {
	for _, x := range all {
		a.P50, a.Min, a.Each = max(a.P50, x.P50), max(a.Min, x.Min), max(a.Each, x.Each)
		a.Chain, a.Stream, a.Filled = max(a.Chain, x.Chain), max(a.Stream, x.Stream), max(a.Filled, x.Filled)
		a.OneByOne, a.Recorded = max(a.OneByOne, x.OneByOne), max(a.Recorded, x.Recorded)
	}
	return a
}

// A missingError names what a machine lacks.
type missingError struct{ what string }

func (e *missingError) Error() string { return e.what }

type process struct {
	cmd  *exec.Cmd
	in   io.WriteCloser
	said tail
	gone chan struct{}
}

type reply struct {
	from   int
	answer answer
	err    error
}

// startTeam starts processes. If one of them does not start, the team's error says why.
func startTeam(what string, cmds ...*exec.Cmd) *team {
	t := &team{what: what, replies: make(chan reply, 2*len(cmds)), quit: make(chan struct{})}
	for i, cmd := range cmds {
		p := &process{cmd: cmd, gone: make(chan struct{})}
		cmd.Stderr = &p.said
		cmd.WaitDelay = time.Second
		in, err := cmd.StdinPipe()
		var out io.Reader
		if err == nil {
			p.in = in
			out, err = cmd.StdoutPipe()
		}
		if err == nil {
			err = cmd.Start()
		}
		if err != nil {
			if errors.Is(err, exec.ErrNotFound) {
				err = &missingError{err.Error()}
			}
			t.end(fmt.Errorf("%s: %w", what, err))
			break
		}
		t.procs = append(t.procs, p)
		go p.listen(i, out, t)
	}
	return t
}

// listen passes on the answers of a process, and its end.
func (p *process) listen(from int, out io.Reader, t *team) {
	defer close(p.gone)
	pass := func(r reply) {
		r.from = from
		select {
		case t.replies <- r:
		case <-t.quit:
		}
	}
	lines := bufio.NewScanner(out)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		text, isAnswer := strings.CutPrefix(lines.Text(), mark)
		if !isAnswer {
			fmt.Fprintln(&p.said, text)
			continue
		}
		var r reply
		if err := json.Unmarshal([]byte(text), &r.answer); err != nil {
			r.err = fmt.Errorf("answers %q: %w", text, err)
		}
		pass(r)
	}
	_, drained := io.Copy(io.Discard, out) // read on after a line that is too long, so that the process can end
	err := errors.Join(lines.Err(), drained, p.cmd.Wait())
	if err == nil {
		err = errors.New("exit status 0")
	}
	if said := strings.TrimSpace(p.said.String()); said != "" {
		err = fmt.Errorf("%w, having printed\n%s", err, said)
	}
	pass(reply{err: fmt.Errorf("has ended: %w", err)})
}

// ask sends each process its order and waits for all answers. If a process fails, or the context
// ends, ask ends the team.
func (t *team) ask(ctx context.Context, o func(i int) order) ([]answer, error) {
	if t.over != nil {
		return nil, t.over
	}
	for i, p := range t.procs {
		line, err := json.Marshal(o(i))
		if err != nil {
			return nil, t.end(err)
		}
		p.in.Write(append(line, '\n')) // ignore the error: if the process has ended, listen replies with the reason
	}
	all := make([]answer, len(t.procs))
	for range t.procs {
		select {
		case r := <-t.replies:
			switch {
			case r.err != nil:
			case r.answer.Missing != "":
				r.err = &missingError{r.answer.Missing}
			case r.answer.Error != "":
				r.err = errors.New(r.answer.Error)
			}
			if r.err != nil {
				return nil, t.end(fmt.Errorf("%s, process %d of %d: %w", t.what, r.from, len(t.procs), r.err))
			}
			all[r.from] = r.answer
		case <-ctx.Done():
			return nil, t.end(fmt.Errorf("%s: not all of the %d processes answer: %w", t.what, len(t.procs), context.Cause(ctx)))
		}
	}
	return all, nil
}

// askAll sends all processes the same order.
func (t *team) askAll(ctx context.Context, o order) ([]answer, error) {
	return t.ask(ctx, func(int) order { return o })
}

// end kills the processes and returns err, which becomes the team's error if the team has none.
// Closing the input would not do: a process that waits in a library does not read its input.
func (t *team) end(err error) error {
	if t.over == nil {
		t.over = err
		close(t.quit)
	}
	for _, p := range t.procs {
		p.in.Close()
		p.cmd.Process.Kill()
		<-p.gone
	}
	return err
}

// patience is how long processes may take to end.
const patience = 20 * time.Second

// close lets the processes end. Its error names the processes that fail or do not end.
func (t *team) close() error {
	if t.over != nil {
		return nil // the processes have ended
	}
	for _, p := range t.procs {
		p.in.Close()
	}
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	var err error
	for i, p := range t.procs {
		select {
		case <-p.gone:
			if !p.cmd.ProcessState.Success() {
				err = errors.Join(err, fmt.Errorf("%s, process %d of %d: %v\n%s", t.what, i, len(t.procs), p.cmd.ProcessState, &p.said))
			}
		case <-ctx.Done():
			err = errors.Join(err, fmt.Errorf("%s, process %d of %d: does not end", t.what, i, len(t.procs)))
		}
	}
	t.end(errors.New(t.what + ": closed"))
	return err
}

// A tail keeps the end of the text written to it.
type tail struct {
	mu   sync.Mutex
	text []byte
}

func (t *tail) Write(b []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.text = append(t.text, b...)
	if n := len(t.text) - tailSize; n > 0 {
		t.text = append(t.text[:0], t.text[n:]...)
	}
	return len(b), nil
}

const tailSize = 2000

func (t *tail) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return string(t.text)
}
