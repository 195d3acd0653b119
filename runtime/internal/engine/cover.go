package engine

// Covers reports whether work issued to tl from now on runs after the work seq of the timeline of,
// without another native wait. That is so if both timelines are the same, if the stream of tl has
// already waited for seq or a later number, or if the stream of of has passed seq.
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

// addCover records that the stream of tl waits for m. Waiting for m implies waiting for everything
// that the work at m has waited for. addCover does not record that.
func (tl *Timeline) addCover(m Mark) {
	tl.coverMu.Lock()
	defer tl.coverMu.Unlock()
	tl.cover.AddLive(m)
}
