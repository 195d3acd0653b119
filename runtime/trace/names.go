package trace

// A latest is a map of the keys that were used last: at least as many as the constant remembered. It
// does not keep all keys, because a program may run for weeks and name a semaphore for each request.
type latest[K comparable, V any] struct {
	recent, before map[K]V
}

func (n *latest[K, V]) set(key K, v V) {
	if len(n.recent) >= remembered || n.recent == nil {
		n.recent, n.before = map[K]V{}, n.recent
	}
	n.recent[key] = v
}

// of returns the value of a key, or zero. The call counts as a use.
func (n *latest[K, V]) of(key K) V {
	v, ok := n.recent[key]
	if !ok {
		if v, ok = n.before[key]; ok {
			n.set(key, v)
		}
	}
	return v
}
