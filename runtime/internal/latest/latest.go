// Package latest has a map that keeps the most recently used keys and forgets the others. So a
// program may run for weeks and use a new key for each request.
package latest

// A Map keeps at least the Keep most recently used keys. The zero Map keeps [Default] keys.
type Map[K comparable, V any] struct {
	Keep           int
	recent, before map[K]V
}

// Default is the number of keys that a Map keeps if Keep is 0.
const Default = 1 << 15

// Set sets the value of a key. The call counts as a use.
func (m *Map[K, V]) Set(key K, v V) {
	keep := m.Keep
	if keep == 0 {
		keep = Default
	}
	if _, known := m.recent[key]; !known && len(m.recent) >= keep || m.recent == nil {
		m.recent, m.before = map[K]V{}, m.recent
	}
	m.recent[key] = v
}

// Len returns the number of entries in memory: at most twice Keep, or twice Default if Keep is 0. A
// key may have two entries.
func (m *Map[K, V]) Len() int { return len(m.recent) + len(m.before) }

// Of returns the value of a key, and whether the value is known. The call counts as a use.
func (m *Map[K, V]) Of(key K) (v V, ok bool) {
	if v, ok = m.recent[key]; ok {
		return v, true
	}
	if v, ok = m.before[key]; ok {
		m.Set(key, v)
	}
	return v, ok
}
