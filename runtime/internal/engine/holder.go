package engine

// A Holder is a thing that work uses: memory, code, a recording. A submission holds it from the
// call until the stream has passed the work, or until it fails without having been issued.
type Holder interface {
	// Use notes that the work at the mark, which is about to be issued, may use the thing. If
	// another device owns the thing, Use calls Borrow of that device. The caller holds the mu of
	// the mark's timeline.
	Use(m Mark) error

	// Unuse undoes Use, because the stream has not got the work. It reports whether an operation
	// may already wait for the mark. It may be called without Use.
	Unuse(m Mark) (awaited bool)

	// LetGo releases the thing for n submissions. The caller may hold a retireMu.
	LetGo(n int32)
}

// A holderRun releases the same Holder for several submissions with one call.
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

// Borrow notes that the work at the mark, which is about to be issued, may use something that the
// device owns. It reports false if the device is closed.
func (d *Device) Borrow(m Mark) bool {
	if d != m.Timeline.Device && !d.lent.add(m) {
		return false
	}
	if d.Short.Load() > 0 {
		m.Timeline.want(m.Seq)
	}
	return true
}
