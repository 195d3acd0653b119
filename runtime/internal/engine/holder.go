package engine

// A Holder is something that work uses: memory, code, a recording. A submission holds it from the call
// until the stream has passed the work.
type Holder interface {
	// Use notes that the work at the mark, which is about to be issued, may use it. If another device
	// owns it, that device is told. The caller holds the mu of the mark's timeline.
	Use(m Mark) error

	// Unuse takes that back: the stream has not got the work. It reports whether somebody may wait for
	// the mark by now. It may be called without use.
	Unuse(m Mark) (awaited bool)

	// LetGo ends what n submissions held. The caller may hold a retireMu.
	LetGo(n int32)
}

// A holderRun is submissions' holds that are let go of together if they are on the same thing.
type holderRun struct {
	h Holder
	n int32
}

func (r *holderRun) add(h Holder) {
	if h != r.h {
		r.release()
		r.h, r.n = h, 0
	}
	r.n++
}

func (r *holderRun) release() {
	if r.h != nil {
		r.h.LetGo(r.n)
	}
}

// Borrow notes that the work at a mark is about to use something that a device owns. It reports false if
// that device is closed.
func (d *Device) Borrow(m Mark) bool {
	if d != m.Timeline.Device && !d.lent.add(m) {
		return false
	}
	if d.Short.Load() > 0 {
		m.Timeline.want(m.Seq)
	}
	return true
}
