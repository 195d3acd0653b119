package engine

// Covers reports whether all later work of tl comes after number seq of timeline of: both are the
// same timeline, tl's stream has waited for that number before, or the host knows that it was
// passed.
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

// addCover notes that the stream waits for a mark. It does not add marks that the work at m has
// itself waited for.
func (tl *Timeline) addCover(m Mark) {
	tl.coverMu.Lock()
	defer tl.coverMu.Unlock()
	tl.cover.AddLive(m)
}
