package gpu

// covered says that a timeline's work is ordered after seq of another, from its own number at on.
type covered struct {
	of  *timeline
	seq uint64
	at  uint64
}

// covers reports whether all later work is ordered after seq of another timeline already.
func (tl *timeline) covers(of *timeline, seq uint64) bool {
	if of == tl || of.passed.Load() >= seq {
		return true
	}
	tl.coverMu.Lock()
	defer tl.coverMu.Unlock()
	for i := range tl.cover {
		if tl.cover[i].of == of {
			return tl.cover[i].seq >= seq
		}
	}
	return false
}

// addCover notes a wait for seq of another timeline, and whatever that one had waited for by then.
func (tl *timeline) addCover(of *timeline, seq, at uint64) {
	var inherited [16]covered
	n := 0
	of.coverMu.Lock()
	for _, c := range of.cover {
		if c.at <= seq && c.of != tl && n < len(inherited) {
			inherited[n] = c
			n++
		}
	}
	of.coverMu.Unlock()
	tl.coverMu.Lock()
	defer tl.coverMu.Unlock()
	tl.note(of, seq, at)
	for _, c := range inherited[:n] {
		tl.note(c.of, c.seq, at)
	}
}

// note adds an entry, or raises one. What another timeline is known to have passed needs none: an entry that says no more gives up its
// place, so that timelines which come and go do not add up.
func (tl *timeline) note(of *timeline, seq, at uint64) {
	spare := -1
	for i := range tl.cover {
		switch c := &tl.cover[i]; {
		case c.of == of:
			if seq > c.seq {
				c.seq, c.at = seq, at
			}
			return
		case c.of.passed.Load() >= c.seq:
			spare = i
		}
	}
	if spare >= 0 {
		tl.cover[spare] = covered{of, seq, at}
		return
	}
	tl.cover = append(tl.cover, covered{of, seq, at})
}
