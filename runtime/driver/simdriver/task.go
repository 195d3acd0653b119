package simdriver

import (
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"github.com/puregpu/puregpu/runtime/driver"
)

// A task is a node of an exec. Tasks that none orders run concurrently, and the race detector must see no order between
// them that the graph does not make. Therefore a goroutine goes on from a task to one that runs after it only, its heir,
// and each task has a WaitGroup of its own for the others that it runs after, for that orders those who wait, and not
// those who are waited for.
type task struct {
	exec  *exec
	index int
	kind  driver.NodeKind
	name  string // "" if it has none
	uses  uses   // if exec.before is set
	after []*task
	inner []*task // of a child node's end: its nodes
	next  []*task // those that run after this one, without the heirs
	heirs []*task // whose goroutine comes from this one's: the first has it, others have new ones

	wait  sync.WaitGroup // for after, less the one that this is an heir of
	start func()         // spawned
	timer *time.Timer

	left int // tasks that it still runs after; for Step
}

// A run is a launch of an exec that is being executed: one at a time.
type run struct {
	roots  []*task
	chains int            // how many goroutines there are in the course of it, with the stream's
	all    sync.WaitGroup // for those that are not the stream's

	stream *stream
	plan   *plan
	record uint64 // number of the timers' records
	err    atomic.Pointer[error]

	views, accesses []access // of the tasks, for checkOrder

	launch *operation // which it is; for Step
	ready  []*task    // likewise
}

// arrange divides the tasks among goroutines.
func (x *exec) arrange() {
	for _, t := range x.tasks {
		if len(t.after) == 0 {
			x.run.roots = append(x.run.roots, t)
			x.run.chains++
			continue
		}
		from := t.after[0]
		for _, a := range t.after {
			if len(a.heirs) == 0 {
				from = a
				break
			}
		}
		if from.heirs = append(from.heirs, t); len(from.heirs) > 1 {
			x.run.chains++
		}
		for _, a := range t.after {
			if a != from {
				a.next = append(a.next, t)
			}
		}
	}
}

// begin prepares a run.
func (r *run) begin(s *stream, o *operation) {
	r.stream, r.plan, r.record = s, o.plan, o.record
	r.err.Store(nil)
}

// execute executes a launch. The caller is the goroutine of the stream.
func (r *run) execute(s *stream, o *operation) (err error) {
	r.begin(s, o)
	if len(r.roots) == 0 {
		return nil
	}
	for _, t := range o.plan.exec.tasks {
		if n := len(t.after); n > 1 {
			t.wait.Add(n - 1)
		}
	}
	r.all.Add(r.chains - 1)
	defer func() { // a kernel may end the goroutine
		r.all.Wait()
		if e := r.err.Load(); e != nil {
			err = *e
		} else if !r.over() {
			err = r.checkOrder(o.plan.exec)
		}
	}()
	for _, t := range r.roots[1:] {
		go t.start()
	}
	r.roots[0].chain()
	return nil
}

// spawned is the goroutine that begins with a task.
func (t *task) spawned() {
	defer t.exec.run.all.Done()
	t.chain()
}

// chain executes a task and its heirs.
func (t *task) chain() {
	defer func() {
		if t != nil { // a kernel has ended the goroutine; what comes has to be gone through, so that nobody waits for it
			if t = t.finish(); t != nil {
				t.chain()
			}
		}
	}()
	for t != nil {
		if len(t.after) > 1 {
			t.wait.Wait()
		}
		t.execute()
		t = t.finish()
	}
}

// finish lets go on what runs after a task, but for its first heir, which it returns.
func (t *task) finish() *task {
	for _, n := range t.next {
		n.wait.Done()
	}
	if len(t.heirs) == 0 {
		return nil
	}
	for _, h := range t.heirs[1:] {
		go h.start()
	}
	return t.heirs[0]
}

// execute does what the task is for, unless something has failed.
func (t *task) execute() {
	r := &t.exec.run
	o := &r.plan.ops[t.index]
	if !t.active() || r.over() || t.sleep(o) && r.over() {
		return
	}
	if err := r.perform(t, o); err != nil {
		first := err
		r.err.CompareAndSwap(nil, &first)
		r.stream.lose(err) // at once, though others may go on for long
	}
}

// active reports whether the task does something.
func (t *task) active() bool { return t.kind != driver.EmptyNode && t.kind != driver.ChildNode }

// over reports whether nothing more is to begin.
func (r *run) over() bool {
	return r.err.Load() != nil || r.stream.dev.down.Load() != nil || r.stream.stopped.Load()
}

// sleep takes the time that operations such as o take, and reports whether that was any.
func (t *task) sleep(o *operation) bool {
	v := t.exec.dev
	delay := time.Duration(v.d.delays[o.code].Load())
	if delay <= 0 {
		return false
	}
	if t.timer == nil {
		t.timer = time.NewTimer(delay)
	} else {
		t.timer.Reset(delay)
	}
	select {
	case <-t.timer.C:
	case <-*v.gone.Load():
		t.timer.Stop()
	}
	return true
}

// perform does what o, the operation of a task, is for. An error loses the device.
func (r *run) perform(t *task, o *operation) error {
	s := r.stream
	var err error
	if o.code != codeRecord {
		if t.exec.before != nil {
			t.uses.begin()
			if o.call != nil {
				o.call.task = t
			}
		}
		err = s.perform(o)
		if t.exec.before != nil && err == nil {
			t.uses.note(t, o)
		}
	}
	s.tell(o, err)
	if o.code == codeRecord {
		o.event.mark(r.record)
		if s.waiting.Load() > 0 {
			s.alert()
		}
	}
	return err
}

// step executes a task of a launch, chosen by rnd among those that are ready, and reports whether nothing is left. If the
// task fails, the launch is to fail with its error.
func (r *run) step(s *stream, o *operation, rnd *rand.Rand) (done bool) {
	if r.launch != o {
		r.begin(s, o)
		r.launch, r.ready = o, r.ready[:0]
		for _, t := range o.plan.exec.tasks {
			t.left = len(t.after)
		}
		for _, t := range r.roots {
			r.reach(t)
		}
	}
	if len(r.ready) == 0 {
		return true
	}
	i, last := rnd.IntN(len(r.ready)), len(r.ready)-1
	t := r.ready[i]
	r.ready[i] = r.ready[last]
	r.ready = r.ready[:last]
	if err := r.perform(t, &o.plan.ops[t.index]); err != nil {
		o.fail = err
		return true
	}
	r.pass(t)
	if len(r.ready) > 0 {
		return false
	}
	if err := r.checkOrder(o.plan.exec); err != nil {
		o.fail = err
	}
	return true
}

// reach makes a task ready, or passes it if it does nothing.
func (r *run) reach(t *task) {
	if t.active() {
		r.ready = append(r.ready, t)
		return
	}
	r.pass(t)
}

// pass makes ready what has run after t only.
func (r *run) pass(t *task) {
	for _, list := range [2][]*task{t.heirs, t.next} {
		for _, n := range list {
			if n.left--; n.left == 0 {
				r.reach(n)
			}
		}
	}
}
