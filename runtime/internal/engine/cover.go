package engine

// Covers reports whether all later work of the stream is ordered after seq of another timeline already: it is the same stream, it has
// waited for that timeline before, or the host knows that seq has been passed.
func (tl *Timeline) Covers(of *Timeline, seq uint64) bool {
	if of == tl || of.passed.Load() >= seq {
		return true
	}
	tl.coverMu.Lock()
	defer tl.coverMu.Unlock()
	for _, m := range tl.cover {
		if m.Timeline == of {
			return m.Seq >= seq
		}
	}
	return false
}

// addCover notes that the stream waits for a mark. What that mark's work has waited for itself is not looked at.
func (tl *Timeline) addCover(m Mark) {
	tl.coverMu.Lock()
	defer tl.coverMu.Unlock()
	tl.cover.AddLive(m)
}
