package simdriver

import (
	"cmp"
	"fmt"
	"slices"
	"sync"

	"github.com/puregpu/puregpu/runtime/driver"
)

// An OrderError says that two nodes of a graph use the same memory, that at least one of them
// writes it, and that no edges order the nodes. On a GPU the result would be undefined. The
// simulated GPU loses the device with this error, as a GPU does after an illegal access.
//
// The simulated GPU reports only what it can prove. It knows the memory of fills, copies and test
// nodes. The memory of a [ReadView] counts as read by the kernel. Bytes of a [View] count as
// written if the kernel has changed them. Other uses of a View are unknown. If Views of two
// unordered kernels overlap, it is unknown which kernel has written, unless [Config.Deterministic]
// runs them one after the other. Graphs of more than about 4096 nodes are not checked.
type OrderError struct {
	Nodes  [2]string // the nodes, for example "command 3, launch of scale"
	Device int       // the device that executed the graph
	Addr   driver.Ptr
	Size   uint64 // number of bytes that both nodes use
}

func (e *OrderError) Error() string {
	return fmt.Sprintf("%s and %s of one graph on device %d both use %d bytes at %#x, one of them writes, and nothing orders them: "+
		"record a barrier between them, name the first one where the second is recorded, or record in order", e.Nodes[0], e.Nodes[1], e.Device, e.Size, uint64(e.Addr))
}

// An access is memory that a node uses.
type access struct {
	task  *task
	at    driver.Ptr
	n     uint64
	write bool
	// A fill with a stride writes width bytes every stride bytes.
	stride, width uint64
}

// end returns the address behind the memory.
func (a *access) end() driver.Ptr { return a.at + driver.Ptr(a.n) }

// interleaved reports whether a and b are fills with the same stride that write different bytes, as
// the two halves of a fill with a pattern of 8 bytes do.
func (a *access) interleaved(b *access) bool {
	if a.stride == 0 || a.stride != b.stride {
		return false
	}
	if b.at < a.at {
		a, b = b, a
	}
	apart := uint64(b.at-a.at) % a.stride
	return apart >= a.width && a.stride-apart >= b.width
}

// uses records the memory that a node uses in one execution.
type uses struct {
	mu    sync.Mutex // protects the following fields: a kernel may call View concurrently
	views []viewed
	known []access // accesses of fills, copies, tests and ReadViews; after the node, also the changes in its Views
}

// A viewed is the memory of a View, and the content that it had when the View was made.
type viewed struct {
	access
	memory []byte
	before []byte
}

// maxKept is the maximum size, in bytes, of a buffer (viewed.before) that is kept for the next
// execution.
const maxKept = 64 << 10

// maxRuns is the maximum number of changed pieces that are recorded of one View, and the maximum
// number of accesses that are recorded of one conditional node.
const maxRuns = 256

// maxOrdered is the maximum number of tasks of a graph whose accesses are compared. For more tasks,
// the order of all pairs takes too much memory.
const maxOrdered = 4096

// findOrder sets x.before: for each task, the tasks that the graph orders before that task.
// x.before stays nil if the graph orders all tasks that do something, because then no accesses need
// to be compared. x.before also stays nil for more than maxOrdered tasks.
func (x *exec) findOrder() {
	if len(x.tasks) > maxOrdered {
		return
	}
	words := (len(x.tasks) + 63) / 64
	before := make([][]uint64, len(x.tasks))
	active := make([]uint64, words) // the earlier tasks that do something
	ordered := true
	for i, t := range x.tasks {
		b := make([]uint64, words)
		for _, a := range t.after {
			b[a.index/64] |= 1 << (a.index % 64)
			for w, bits := range before[a.index] {
				b[w] |= bits
			}
		}
		before[i] = b
		if !t.active() {
			continue
		}
		for w, bits := range active {
			ordered = ordered && bits&^b[w] == 0
		}
		active[i/64] |= 1 << (i % 64)
	}
	if !ordered {
		x.before = before
	}
}

// ordered reports whether the graph orders two tasks.
func (x *exec) ordered(a, b *task) bool {
	if a.index > b.index {
		a, b = b, a
	}
	return x.before[b.index][a.index/64]>>(a.index%64)&1 != 0
}

// begin removes the accesses of an earlier execution.
func (u *uses) begin() { u.views, u.known = u.views[:0], u.known[:0] }

// read records memory that a kernel only reads.
func (u *uses) read(t *task, at driver.Ptr, n uint64) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.known = append(u.known, access{task: t, at: at, n: n})
}

// view records memory that a kernel may read and write, unless an earlier View contains it.
func (u *uses) view(t *task, at driver.Ptr, memory []byte) {
	u.mu.Lock()
	defer u.mu.Unlock()
	for i := range u.views {
		if v := &u.views[i]; at >= v.at && at+driver.Ptr(len(memory)) <= v.end() {
			return
		}
	}
	n := len(u.views)
	u.views = slices.Grow(u.views, 1)[:n+1]
	v := &u.views[n]
	v.access, v.memory = access{task: t, at: at, n: uint64(len(memory)), write: true}, memory
	v.before = slices.Grow(v.before[:0], len(memory))[:len(memory)]
	copyUnseen(v.before, memory)
}

// note records the memory that an operation has used. For a kernel, note records the bytes that
// changed in the kernel's Views; the method read has recorded the kernel's ReadViews.
func (u *uses) note(t *task, o *operation) {
	switch o.code {
	case codeFill:
		n := o.n * uint64(o.width)
		if o.stride > 0 {
			n = (o.n-1)*o.stride + uint64(o.width)
		}
		u.known = append(u.known, access{task: t, at: o.dst, n: n, write: true, stride: o.stride, width: uint64(o.width)})
	case codeCopy:
		u.known = append(u.known, access{task: t, at: o.dst, n: o.n, write: true}, access{task: t, at: o.src, n: o.n})
	case codeTest:
		u.known = append(u.known, access{task: t, at: o.src, n: 4})
	case codeLaunch:
		for i := range u.views {
			v := &u.views[i]
			u.known = v.addRuns(u.known)
			if v.memory = nil; cap(v.before) > maxKept {
				v.before = nil
			}
		}
	}
}

// addRuns appends the pieces of a View that have changed, at most maxRuns. addRuns hides its reads
// from the race detector, because other nodes may be writing bytes of the View that this kernel
// does not use.
//
//go:norace
func (v *viewed) addRuns(to []access) []access {
	if equalUnseen(v.memory, v.before) {
		return to
	}
	all := to
	for i := 0; i < len(v.memory); i++ {
		if v.memory[i] == v.before[i] {
			continue
		}
		from := i
		for i < len(v.memory) && v.memory[i] != v.before[i] {
			i++
		}
		if len(all)-len(to) == maxRuns {
			return all
		}
		all = append(all, access{task: v.task, at: v.at + driver.Ptr(from), n: uint64(i - from), write: true})
	}
	return all
}

// checkOrder returns an OrderError if two tasks of the run used the same memory, at least one of
// them wrote it, and the graph does not order them.
func (r *run) checkOrder(x *exec) error {
	if x.before == nil {
		return nil
	}
	views, all := r.views[:0], r.accesses[:0]
	defer func() { r.views, r.accesses = views, all }()
	for _, t := range x.tasks {
		for i := range t.uses.views {
			views = append(views, t.uses.views[i].access)
		}
	}
	for _, t := range x.tasks {
		if x.dev.d.manual || len(t.uses.views) == 0 || !x.meets(t, views) {
			all = append(all, t.uses.known...)
			continue
		}
		for _, a := range t.uses.known { // another task may have made the changes in t's Views, so compare only t's reads
			if !a.write {
				all = append(all, a)
			}
		}
	}
	slices.SortStableFunc(all, func(a, b access) int { return cmp.Compare(a.at, b.at) })
	var longest uint64
	for i := range all {
		longest = max(longest, all[i].n)
	}
	for i := range all {
		a := &all[i]
		if !a.write {
			continue
		}
		from, _ := slices.BinarySearchFunc(all, a.at-min(a.at, driver.Ptr(longest)), func(b access, at driver.Ptr) int { return cmp.Compare(b.at, at) })
		for j := from; j < len(all) && all[j].at < a.end(); j++ {
			b := &all[j]
			if b.end() <= a.at || a.task == b.task || a.interleaved(b) || x.ordered(a.task, b.task) {
				continue
			}
			first, second := a.task, b.task
			if first.index > second.index {
				first, second = second, first
			}
			at := max(a.at, b.at)
			return &OrderError{Nodes: [2]string{r.describe(first), r.describe(second)}, Device: x.dev.index, Addr: at, Size: uint64(min(a.end(), b.end()) - at)}
		}
	}
	return nil
}

// meets reports whether a View of t overlaps a View of a task that is not ordered with t.
func (x *exec) meets(t *task, views []access) bool {
	for i := range t.uses.views {
		a := &t.uses.views[i].access
		for j := range views {
			if b := &views[j]; a.at < b.end() && b.at < a.end() && a.task != b.task && !x.ordered(a.task, b.task) {
				return true
			}
		}
	}
	return false
}

// describe returns a text that names a task.
func (r *run) describe(t *task) string {
	o := &r.plan.ops[t.index]
	what := string(ops[o.code])
	if t.body != nil {
		what = "conditional"
	}
	if o.call != nil {
		what = "launch of " + o.call.f.name
	}
	if t.name != "" {
		return t.name + ", " + what
	}
	return fmt.Sprintf("node %#x, %s", uint64(o.node), what)
}
