package gpu

// A holder is something that work uses: memory, code, a recording. A submission holds it from the call
// until the stream has passed the work.
type holder interface {
	// use notes that the work at the mark, which is about to be issued, may use it. If another device
	// owns it, that device is told. The caller holds the mu of the mark's timeline.
	use(m mark) error

	// unuse takes that back: the stream has not got the work. It reports whether somebody may wait for
	// the mark by now. It may be called without use.
	unuse(m mark) (awaited bool)

	// letGo ends what n submissions held. The caller may hold a retireMu.
	letGo(n int32)
}

// A holderRun is submissions' holds that are let go of together if they are on the same thing.
type holderRun struct {
	h holder
	n int32
}

func (r *holderRun) add(h holder) {
	if h != r.h {
		r.release()
		r.h, r.n = h, 0
	}
	r.n++
}

func (r *holderRun) release() {
	if r.h != nil {
		r.h.letGo(r.n)
	}
}

// borrow notes that the work at a mark is about to use something that a device owns. It reports false if
// that device is closed.
func (d *nativeDevice) borrow(m mark) bool {
	if d != m.tl.dev && !d.lent.add(m) {
		return false
	}
	if d.short.Load() > 0 {
		m.tl.want(m.seq)
	}
	return true
}
