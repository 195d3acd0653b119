package engine

// Covers reports whether later work of tl runs after the work seq of the timeline of without
// another native wait. It does if both are the same timeline, if tl's stream has already waited for
// seq or a later number, or if of's stream is known to have passed seq.
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

// addCover records that the stream waits for m. It does not record the marks that the work at m has
// waited for itself.
func (tl *Timeline) addCover(m Mark) {
	tl.coverMu.Lock()
	defer tl.coverMu.Unlock()
	tl.cover.AddLive(m)
}
