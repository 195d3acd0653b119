package engine

// A Holder is a thing that work uses: memory, code, a recording. A submission holds it from the
// call until the stream has passed the work, or until it fails without having been issued.
type Holder interface {
	// Use records that work about to be issued at m may use the thing. If another device owns the
	// thing, Use calls Borrow of that device. The caller holds the mu of m's timeline.
	Use(m Mark) error

	// Unuse undoes Use after the driver has refused the work. It reports whether another operation
	// may already wait for m. It may be called even if Use was not.
	Unuse(m Mark) (awaited bool)

	// Release releases the thing for n submissions. The caller may hold a retireMu.
	Release(n int32)
}

// A holderRun releases the Holders of a batch of submissions. If consecutive submissions hold the
// same Holder, it calls Release once for all of them.
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
		r.h.Release(r.n)
	}
}

// Borrow records that work about to be issued at m may use memory or another object of d. It
// returns false if d is closed.
func (d *Device) Borrow(m Mark) bool {
	if d != m.Timeline.Device && !d.lent.add(m) {
		return false
	}
	if d.Short.Load() > 0 {
		m.Timeline.want(m.Seq)
	}
	return true
}
