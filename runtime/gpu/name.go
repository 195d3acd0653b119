package gpu

import "fmt"

// SetName gives the semaphore a name, by which errors and [Device.Parked] mention it. An empty name takes it away.
func (s *Semaphore) SetName(name string) {
	if s == nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	defer s.renamed()
	if s.list == nil {
		if name == "" {
			return
		}
		s.list = new(expected)
	}
	s.list.name = name
}

// String returns how the semaphore is mentioned: semaphore "name", or "a semaphore" if it has no name.
func (s *Semaphore) String() string {
	if s == nil {
		return "no semaphore"
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.list.mention()
}

// mention is Semaphore.String. The caller holds the semaphore's mu.
func (l *expected) mention() string {
	if l == nil || l.name == "" {
		return "a semaphore"
	}
	return fmt.Sprintf("semaphore %q", l.name)
}

// SetName gives the queue a name, by which errors and [Device.Parked] mention it. An empty name takes it away.
func (q *Queue) SetName(name string) { q.name.Store(&name) }

// String returns how the queue is mentioned: queue "name" of its device, or queue 0, by its number.
func (q *Queue) String() string {
	if q == nil || q.dev == nil {
		return "no queue"
	}
	return q.mention() + " of " + q.dev.info.Name
}

// mention is String without the device.
func (q *Queue) mention() string {
	name := q.name.Load()
	switch {
	case name != nil && *name != "":
		return fmt.Sprintf("queue %q", *name)
	case q.tl.adopted:
		return fmt.Sprintf("native stream %#x", uintptr(q.tl.h))
	case q.tl.ch == nil:
		return fmt.Sprintf("queue %d", q.index)
	case q.tl.ch.opt.Name != "":
		return fmt.Sprintf("channel %q", q.tl.ch.opt.Name)
	}
	return "a channel"
}
