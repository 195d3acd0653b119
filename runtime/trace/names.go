package trace

// A names has the names of the semaphores that were used last: at least as many as the constant
// remembered. It does not keep all names, because a program may run for weeks and name a semaphore
// for each request.
type names struct {
	recent, before map[uint64]string
}

func (n *names) set(semaphore uint64, name string) {
	if len(n.recent) >= remembered || n.recent == nil {
		n.recent, n.before = map[uint64]string{}, n.recent
	}
	n.recent[semaphore] = name
}

// of returns the name of a semaphore, or "". The call counts as a use.
func (n *names) of(semaphore uint64) string {
	name, ok := n.recent[semaphore]
	if !ok {
		if name, ok = n.before[semaphore]; ok {
			n.set(semaphore, name)
		}
	}
	return name
}
