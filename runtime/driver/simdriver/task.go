package simdriver

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/puregpu/puregpu/runtime/driver"
)

// A task is the work of a node of an exec. A child node whose graph is not empty has two tasks, one
// before and one after the tasks of that graph's nodes. Unordered tasks run concurrently, and the
// race detector must not see an order that the graph does not have. So a goroutine that has run a
// task runs or starts only heirs of the task, which come after it in the graph. A task is the heir
// of one of its predecessors, and waits for the others with its own WaitGroup. Wait orders the
// waiting goroutine after the calls of Done, but does not order these calls with each other.
type task struct {
	exec  *exec
	index int
	kind  driver.NodeKind
	name  string      // the node's name, or else the name of the child node that contains the node; or ""
	node  driver.Node // handle of the node; for a node inside a child node, the handle of the outermost child node
	uses  uses        // used only if exec.tracks is set
	after []*task
	inner []*task // only for the second task of a child node: the tasks of the child's nodes
	next  []*task // tasks that come after this task, except heirs
	heirs []*task // tasks that start after this task: the first on this task's goroutine, the others on new goroutines

	wait  sync.WaitGroup // counts the unfinished tasks in after, except the task whose heir this task is
	start func()         // t.spawned
	timer *time.Timer

	begun, ended time.Time // times in the last launch whose run.number was not 0

	left int // number of unfinished tasks in after; only for Step

	// The next fields are for conditional nodes.
	body   *exec
	launch operation // the operation that launches the body
	going  bool      // a launch of the body has begun; only for Step
}

// A run is the execution of a launch. An exec has one run at a time.
type run struct {
	roots  []*task
	chains int            // number of goroutines, including the one that calls execute
	all    sync.WaitGroup // counts the goroutines that have not ended, except the one that calls execute

	stream *stream
	plan   *plan
	record uint64 // number that all timer records of this launch have
	number uint64 // launch number for NodeTimes; if 0, times are not recorded
	err    atomic.Pointer[error]

	views, accesses []access // reused by checkOrder

	launch *operation // operation of the launch; only for Step
	ready  []*task    // tasks that are ready; only for Step
}

// arrange decides which goroutine runs each task.
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

// begin sets the run's fields for a launch.
func (r *run) begin(s *stream, o *operation) {
	r.stream, r.plan, r.record, r.number = s, o.plan, o.record, o.n
	r.err.Store(nil)
}

// execute executes a launch, and waits until it is done.
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
	defer func() { // deferred, because a kernel may call runtime.Goexit
		r.all.Wait()
		if e := r.err.Load(); e != nil {
			err = *e
		} else if !r.over() {
			err = r.checkOrder(o.plan.exec)
			r.tellTimes(o.plan.exec)
		}
	}()
	for _, t := range r.roots[1:] {
		go t.start()
	}
	r.roots[0].chain()
	return nil
}

// spawned runs the chain that begins with t on a new goroutine.
func (t *task) spawned() {
	defer t.exec.run.all.Done()
	t.chain()
}

// chain executes a task, then the task's first heir, then that task's first heir, and so on.
func (t *task) chain() {
	defer func() {
		if t != nil { // a kernel has called Goexit; the tasks after t must still be released
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

// finish releases the tasks after t, and starts all heirs of t but the first on new goroutines. It
// returns the first heir, which the caller must execute, or nil if t has no heir.
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

// execute performs the task's operation, unless there is nothing to do or the run is over.
func (t *task) execute() {
	r := &t.exec.run
	o := &r.plan.ops[t.index]
	if !t.active() || r.over() {
		return
	}
	t.begins()
	if t.body == nil && t.sleep(o) && r.over() {
		return
	}
	if err := r.perform(t, o); err != nil {
		first := err
		r.err.CompareAndSwap(nil, &first)
		r.stream.lose(err) // immediately, because other tasks may run for a long time
		return
	}
	t.ends()
}

// active reports whether the task's node does something.
func (t *task) active() bool { return t.kind != driver.EmptyNode && t.kind != driver.ChildNode }

// over reports whether no more tasks may begin.
func (r *run) over() bool {
	return r.err.Load() != nil || r.stream.dev.down.Load() != nil || r.stream.stopped.Load()
}

// sleep waits until the latency of o has passed or the device is lost. It reports whether o has a
// latency.
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

// perform performs o, the operation of a task. If it returns an error, the device is lost.
func (r *run) perform(t *task, o *operation) error {
	if t.body != nil {
		return r.branch(t, o)
	}
	s := r.stream
	var err error
	if o.code != codeRecord {
		if t.exec.tracks {
			t.uses.begin()
			if o.call != nil {
				o.call.task = t
			}
		}
		err = s.perform(o)
		if t.exec.tracks && err == nil {
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

// step executes one of the ready tasks, or one step of the body of a conditional task. choose
// returns a number below its argument. step reports whether the launch is done, because no task is
// left or the task has failed. If the task has failed, or checkOrder fails, step sets o.fail.
func (r *run) step(s *stream, o *operation, choose func(int) int) (done bool) {
	if r.launch != o {
		r.begin(s, o)
		r.launch, r.ready = o, r.ready[:0]
		for _, t := range o.plan.exec.tasks {
			t.left, t.going = len(t.after), false
			if t.body != nil {
				t.uses.begin()
			}
		}
		for _, t := range r.roots {
			r.reach(t)
		}
	}
	if len(r.ready) == 0 {
		return true
	}
	i, last := choose(len(r.ready)), len(r.ready)-1
	t := r.ready[i]
	if !t.going {
		t.begins()
	}
	var more bool
	var err error
	if t.body != nil {
		more, err = r.stepBody(t, s, choose)
	} else {
		err = r.perform(t, &o.plan.ops[t.index])
	}
	switch {
	case err != nil:
		o.fail = err
		return true
	case more:
		return false
	}
	r.ready[i] = r.ready[last]
	r.ready = r.ready[:last]
	t.ends()
	r.pass(t)
	if len(r.ready) > 0 {
		return false
	}
	if err := r.checkOrder(o.plan.exec); err != nil {
		o.fail = err
	}
	r.tellTimes(o.plan.exec)
	return true
}

// reach makes a task ready. If the task does nothing, reach calls pass instead.
func (r *run) reach(t *task) {
	if t.active() {
		r.ready = append(r.ready, t)
		return
	}
	r.pass(t)
}

// pass makes each task ready that waits for t and for no other unfinished task.
func (r *run) pass(t *task) {
	for _, list := range [2][]*task{t.heirs, t.next} {
		for _, n := range list {
			if n.left--; n.left == 0 {
				r.reach(n)
			}
		}
	}
}
