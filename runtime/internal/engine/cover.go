package engine

// Covers reports whether work issued to tl from now on is known to run after the work with the
// number seq of the second timeline (other), without a further native wait. This is known in three
// cases: both timelines are the same, the stream of tl has been given a wait for seq or a later
// number, or the stream of the second timeline has passed seq.
func (tl *Timeline) Covers(other *Timeline, seq uint64) bool {
	if other == tl || other.passed.Load() >= seq {
		return true
	}
	tl.coverMu.Lock()
	defer tl.coverMu.Unlock()
	for _, m := range tl.cover {
		if m.Timeline == other {
			return m.Seq >= seq
		}
	}
	return false
}

// addCover records that the stream of tl waits for m. It does not record the work that the stream
// of m has waited for before, although the stream of tl comes after that work too.
func (tl *Timeline) addCover(m Mark) {
	tl.coverMu.Lock()
	defer tl.coverMu.Unlock()
	tl.cover.AddLive(m)
}
